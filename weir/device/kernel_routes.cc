#include <weir/device/kernel_routes.h>

#include <sys/socket.h>

#include <weir/device/internal/netlink.h>
#include <weir/device/internal/netlink_message.h>

namespace weir {

using device_internal::for_each_attribute;
using device_internal::Netlink;
using device_internal::NetlinkRequest;
using device_internal::value_of;

namespace {

using Bytes = std::span<const std::uint8_t>;
using Names = std::map<unsigned, std::string>;  // of interfaces, by number

struct Found {
  IpPrefix to;
  std::uint32_t table = 0;
  std::uint32_t metric = 0;
  KernelRoute route;
};

IpAddress address_of(bool v6, Bytes bytes) {
  IpAddress address;
  address.v6 = v6;
  std::copy_n(bytes.begin(), std::min<std::size_t>(bytes.size(), v6 ? 16 : 4), address.bytes.begin());
  return address;
}

std::string name_of(const Names& names, std::uint32_t index) {
  const auto place = names.find(index);
  return place == names.end() ? std::string() : place->second;
}

std::vector<KernelHop> hops_of(bool v6, Bytes list, const Names& names) {
  std::vector<KernelHop> hops;
  while (list.size() >= sizeof(rtnexthop)) {
    const auto head = value_of<rtnexthop>(list);
    if (head.rtnh_len < sizeof(rtnexthop) || head.rtnh_len > list.size()) {
      break;
    }
    KernelHop hop{name_of(names, static_cast<std::uint32_t>(head.rtnh_ifindex)), std::nullopt};
    for_each_attribute(list.subspan(sizeof head, head.rtnh_len - sizeof head), [&](unsigned type, Bytes value) {
      if (type == RTA_GATEWAY) {
        hop.address = address_of(v6, value);
      }
    });
    hops.push_back(std::move(hop));
    list = list.subspan(std::min<std::size_t>(RTNH_ALIGN(head.rtnh_len), list.size()));
  }
  return hops;
}

// Nothing if it is no route for packets to one host, or only a cached one.
std::optional<Found> parse(Bytes content, const Names& names) {
  if (content.size() < sizeof(rtmsg)) {
    return std::nullopt;
  }
  const auto head = value_of<rtmsg>(content);
  const bool drops =
      head.rtm_type == RTN_BLACKHOLE || head.rtm_type == RTN_UNREACHABLE || head.rtm_type == RTN_PROHIBIT;
  const bool v6 = head.rtm_family == AF_INET6;
  if ((head.rtm_flags & RTM_F_CLONED) != 0 || (head.rtm_type != RTN_UNICAST && !drops) ||
      (!v6 && head.rtm_family != AF_INET) || head.rtm_dst_len > (v6 ? 128 : 32) || head.rtm_src_len != 0 ||
      head.rtm_tos != 0) {
    return std::nullopt;
  }
  Found found;
  found.table = head.rtm_table;
  IpAddress to;
  to.v6 = v6;
  KernelHop single;
  bool other_family = false;
  for_each_attribute(content.subspan(NLMSG_ALIGN(sizeof head)), [&](unsigned type, Bytes value) {
    if (type == RTA_DST) {
      to = address_of(v6, value);
    } else if (type == RTA_TABLE) {
      found.table = value_of<std::uint32_t>(value);
    } else if (type == RTA_PRIORITY) {
      found.metric = value_of<std::uint32_t>(value);
    } else if (type == RTA_OIF) {
      single.interface = name_of(names, value_of<std::uint32_t>(value));
    } else if (type == RTA_GATEWAY) {
      single.address = address_of(v6, value);
    } else if (type == RTA_VIA) {
      other_family = true;
    } else if (type == RTA_MULTIPATH) {
      found.route.hops = hops_of(v6, value, names);
    }
  });
  found.to = IpPrefix(to, head.rtm_dst_len);
  if (drops) {
    found.route.hops.clear();
  } else if (found.route.hops.empty()) {
    found.route.hops.push_back(std::move(single));
  }
  return other_family ? std::nullopt : std::optional(std::move(found));
}

}  // namespace

struct KernelRoutes::Sockets {
  Netlink questions;
  Netlink watch;
};

KernelRoutes::KernelRoutes(std::unique_ptr<Sockets> sockets, std::uint32_t table)
    : sockets_(std::move(sockets)), table_(table) {}

KernelRoutes::~KernelRoutes() = default;

Result<std::unique_ptr<KernelRoutes>> KernelRoutes::open(std::uint32_t table) {
  auto watch = Netlink::open(Netlink::Watch::links_and_routes);  // first: no change falls between it and a reading
  auto questions = Netlink::open();
  if (!watch || !questions) {
    return std::unexpected(watch ? questions.error() : watch.error());
  }
  auto sockets = std::make_unique<Sockets>(Sockets{std::move(*questions), std::move(*watch)});
  std::unique_ptr<KernelRoutes> routes(new KernelRoutes(std::move(sockets), table));
  if (auto read = routes->read(); !read) {
    return std::unexpected(read.error());
  }
  return routes;
}

Result<bool> KernelRoutes::tend(Nanoseconds now) {
  stale_ = sockets_->watch.changed() || stale_;
  if (!stale_ || now < read_again_) {
    return false;
  }
  read_again_ = now + time_between_readings;
  const Map before = routes_;
  if (auto done = read(); !done) {
    return std::unexpected(done.error());
  }
  return routes_ != before;
}

Result<> KernelRoutes::read() {
  const auto links = sockets_->questions.links();
  if (!links) {
    return std::unexpected(links.error());
  }
  Names names;
  for (const auto& link : *links) {
    names[link.index] = link.name;
  }
  Map routes;
  std::map<IpPrefix, std::uint32_t> metrics;
  for (const unsigned char family : {static_cast<unsigned char>(AF_INET), static_cast<unsigned char>(AF_INET6)}) {
    NetlinkRequest request(RTM_GETROUTE, NLM_F_DUMP);
    request.fixed(rtmsg{.rtm_family = family});
    const auto asked = sockets_->questions.ask(request.bytes(), [&](unsigned type, Bytes content) {
      auto found = type == RTM_NEWROUTE ? parse(content, names) : std::nullopt;
      if (!found || found->table != table_) {
        return;
      }
      const auto [place, fresh] = metrics.try_emplace(found->to, found->metric);
      if (fresh || found->metric < place->second) {
        place->second = found->metric;
        routes[found->to] = std::move(found->route);
      }
    });
    if (!asked) {
      return std::unexpected(asked.error());
    }
  }
  routes_ = std::move(routes);
  stale_ = false;
  return {};
}

}  // namespace weir
