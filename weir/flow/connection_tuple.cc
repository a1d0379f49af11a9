#include <weir/flow/connection_tuple.h>

#include <fmt/format.h>

#include <weir/packet/ipv4.h>

namespace weir {

std::string ConnectionTuple::to_string() const {
  const char* name = protocol == ip_protocol::tcp      ? "tcp"
                     : protocol == ip_protocol::udp    ? "udp"
                     : protocol == ip_protocol::sctp   ? "sctp"
                     : protocol == ip_protocol::icmp   ? "icmp"
                     : protocol == ip_protocol::icmpv6 ? "icmpv6"
                                                       : nullptr;
  const std::string what = name != nullptr ? name : fmt::format("protocol {}", protocol);
  if (role != Role::none) {
    return fmt::format("{} {} > {} {} {}", what, src.to_string(), dst.to_string(),
                       role == Role::request ? "request" : "reply", src_port);
  }
  if (src_port == 0 && dst_port == 0) {
    return fmt::format("{} {} > {}", what, src.to_string(), dst.to_string());
  }
  const auto end = [](const IpAddress& address, std::uint16_t port) {
    return address.v6 ? fmt::format("[{}]:{}", address.to_string(), port)
                      : fmt::format("{}:{}", address.to_string(), port);
  };
  return fmt::format("{} {} > {}", what, end(src, src_port), end(dst, dst_port));
}

}  // namespace weir
