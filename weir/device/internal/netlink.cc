#include <weir/device/internal/netlink.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/net_namespace.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <weir/device/internal/netlink_message.h>

namespace weir::device_internal {

namespace {

std::optional<Link> parse_link(std::span<const std::uint8_t> content) {
  if (content.size() < sizeof(ifinfomsg)) {
    return std::nullopt;
  }
  const auto head = value_of<ifinfomsg>(content);
  Link link;
  link.index = static_cast<unsigned>(head.ifi_index);
  link.ethernet = head.ifi_type == ARPHRD_ETHER;
  link.up = (head.ifi_flags & IFF_UP) != 0;
  link.carrier = (head.ifi_flags & IFF_LOWER_UP) != 0;
  for_each_attribute(content.subspan(NLMSG_ALIGN(sizeof head)), [&](unsigned type, auto value) {
    if (type == IFLA_IFNAME) {
      link.name = text_of(value);
    } else if (type == IFLA_MTU) {
      link.mtu = value_of<std::uint32_t>(value);
    } else if (type == IFLA_ADDRESS) {
      link.mac = value_of<MacAddress>(value);
    } else if (type == IFLA_LINK) {
      link.peer = value_of<std::uint32_t>(value);
    } else if (type == IFLA_LINK_NETNSID) {
      link.peer_namespace = value_of<std::int32_t>(value);
    } else if (type == IFLA_LINKINFO) {
      for_each_attribute(value, [&](unsigned inner, auto kind) {
        if (inner == IFLA_INFO_KIND) {
          link.kind = text_of(kind);
        }
      });
    } else if (type == IFLA_XDP) {
      for_each_attribute(value, [&](unsigned inner, auto program) {
        if (inner == IFLA_XDP_PROG_ID) {
          link.xdp_program = value_of<std::uint32_t>(program);
        }
      });
    }
  });
  return link;
}

std::unexpected<Error> failure() {
  return error("the kernel cannot be asked about network interfaces: {}", std::strerror(errno));
}

}  // namespace

Result<Netlink> Netlink::open(Watch watch) {
  Descriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  if (watch != Watch::nothing) {
    address.nl_groups = RTMGRP_LINK;
  }
  if (watch == Watch::links_and_routes) {
    address.nl_groups |= RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE;
  }
  if (!socket || bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return failure();
  }
  return Netlink(std::move(socket));
}

Result<int> Netlink::ask(std::span<const std::uint8_t> request,
                         const std::function<void(unsigned, std::span<const std::uint8_t>)>& each) {
  auto header = value_of<nlmsghdr>(request);
  header.nlmsg_seq = ++sequence_;
  std::vector<std::uint8_t> sent(request.begin(), request.end());
  std::memcpy(sent.data(), &header, sizeof header);
  if (send(socket_.get(), sent.data(), sent.size(), 0) < 0) {
    return failure();
  }
  std::array<std::uint8_t, 65'536> buffer;
  while (true) {
    const ssize_t size = recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (size < 0 && errno != EINTR) {
      return failure();
    }
    std::span<const std::uint8_t> rest(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    while (rest.size() >= sizeof(nlmsghdr)) {
      const auto got = value_of<nlmsghdr>(rest);
      if (got.nlmsg_len < sizeof(nlmsghdr) || got.nlmsg_len > rest.size()) {
        break;
      }
      const auto content = rest.subspan(sizeof got, got.nlmsg_len - sizeof got);
      rest = rest.subspan(std::min<std::size_t>(NLMSG_ALIGN(got.nlmsg_len), rest.size()));
      if (got.nlmsg_seq != sequence_) {
        continue;  // the end of an earlier answer
      }
      if (got.nlmsg_type == NLMSG_ERROR) {
        return -value_of<nlmsgerr>(content).error;
      }
      if (got.nlmsg_type == NLMSG_DONE) {
        return 0;
      }
      each(got.nlmsg_type, content);
    }
  }
}

Result<std::vector<Link>> Netlink::links() {
  NetlinkRequest request(RTM_GETLINK, NLM_F_DUMP);
  request.fixed(ifinfomsg{});
  std::vector<Link> links;
  const auto asked = ask(request.bytes(), [&](unsigned type, std::span<const std::uint8_t> content) {
    if (auto link = type == RTM_NEWLINK ? parse_link(content) : std::nullopt) {
      links.push_back(std::move(*link));
    }
  });
  return asked ? Result<std::vector<Link>>(std::move(links)) : std::unexpected(asked.error());
}

Result<std::optional<Link>> Netlink::link(const std::string& name) { return ask_link(0, name, {}); }

Result<std::optional<Link>> Netlink::link(unsigned index, std::optional<int> space) {
  return ask_link(index, {}, space);
}

Result<std::optional<Link>> Netlink::ask_link(unsigned index, const std::string& name, std::optional<int> space) {
  NetlinkRequest request(RTM_GETLINK, NLM_F_ACK);
  ifinfomsg head{};
  head.ifi_index = static_cast<int>(index);
  request.fixed(head);
  if (!name.empty()) {
    request.attribute(IFLA_IFNAME, name.c_str(), name.size() + 1);
  }
  if (space) {
    request.attribute(IFLA_TARGET_NETNSID, *space);
  }
  std::optional<Link> link;
  const auto asked = ask(request.bytes(), [&](unsigned type, std::span<const std::uint8_t> content) {
    if (type == RTM_NEWLINK) {
      link = parse_link(content);
    }
  });
  return asked ? Result<std::optional<Link>>(std::move(link)) : std::unexpected(asked.error());
}

std::optional<int> Netlink::identifier(int descriptor) {
  NetlinkRequest request(RTM_GETNSID, NLM_F_ACK);
  request.fixed(rtgenmsg{.rtgen_family = AF_UNSPEC});
  request.attribute(NETNSA_FD, descriptor);
  std::optional<int> found;
  const auto asked = ask(request.bytes(), [&](unsigned type, std::span<const std::uint8_t> content) {
    if (type == RTM_NEWNSID) {
      for_each_attribute(content.subspan(std::min<std::size_t>(NLMSG_ALIGN(sizeof(rtgenmsg)), content.size())),
                         [&](unsigned attribute, auto value) {
                           const auto number = value_of<std::int32_t>(value);
                           if (attribute == NETNSA_NSID && number != NETNSA_NSID_NOT_ASSIGNED) {
                             found = number;
                           }
                         });
    }
  });
  return asked ? found : std::nullopt;
}

bool Netlink::changed() {
  std::array<std::uint8_t, 8192> buffer;
  bool any = false;
  while (true) {
    // A failure but "nothing there" is a message lost for lack of room: something did change.
    if (recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT) < 0 && errno != ENOBUFS) {
      return any;
    }
    any = true;
  }
}

}  // namespace weir::device_internal
