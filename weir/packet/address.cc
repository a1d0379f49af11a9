#include <weir/packet/address.h>

#include <algorithm>
#include <charconv>

#include <arpa/inet.h>

namespace weir {

Result<MacAddress> MacAddress::parse(std::string_view text) {
  const auto bad = [&] { return error("'{}' is not an Ethernet address; write it as 02:00:00:00:00:01", text); };
  MacAddress mac;
  if (text.size() != 17) {
    return bad();
  }
  for (std::size_t i = 0; i < 6; ++i) {
    const char* from = text.data() + 3 * i;
    const auto [end, code] = std::from_chars(from, from + 2, mac.bytes[i], 16);
    if (code != std::errc{} || end != from + 2 || (i < 5 && text[3 * i + 2] != ':')) {
      return bad();
    }
  }
  return mac;
}

std::string MacAddress::to_string() const {
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", bytes[0], bytes[1], bytes[2], bytes[3], bytes[4],
                     bytes[5]);
}

Result<IpAddress> IpAddress::parse(std::string_view text) {
  // A zero byte would end the text early.
  const std::string zero_ended(text.find('\0') == std::string_view::npos ? text : std::string_view());
  if (in_addr v4{}; inet_pton(AF_INET, zero_ended.c_str(), &v4) == 1) {
    Ipv4Address address;
    std::memcpy(address.bytes.data(), &v4, 4);
    return IpAddress(address);
  }
  if (in6_addr v6{}; inet_pton(AF_INET6, zero_ended.c_str(), &v6) == 1) {
    Ipv6Address address;
    std::memcpy(address.bytes.data(), &v6, 16);
    return IpAddress(address);
  }
  return error("'{}' is not an IP address; write it as 10.0.0.1 or 2001:db8::1", text);
}

std::string IpAddress::to_string() const {
  char text[INET6_ADDRSTRLEN];
  inet_ntop(v6 ? AF_INET6 : AF_INET, bytes.data(), text, sizeof text);
  return text;
}

IpPrefix::IpPrefix(IpAddress base, unsigned bits) : address(base), length(static_cast<std::uint8_t>(bits)) {
  for (unsigned i = 0; i < 16; ++i) {
    const unsigned kept = std::clamp(static_cast<int>(bits) - static_cast<int>(8 * i), 0, 8);
    address.bytes[i] = static_cast<std::uint8_t>(address.bytes[i] & (0xff00U >> kept));
  }
}

bool IpPrefix::contains(const IpAddress& other) const {
  return other.v6 == address.v6 && IpPrefix(other, length).address == address;
}

Result<std::pair<IpAddress, IpPrefix>> IpPrefix::parse_interface(std::string_view text) {
  const auto slash = text.find('/');
  const auto base = IpAddress::parse(text.substr(0, slash));
  if (!base) {
    return std::unexpected(base.error());
  }
  unsigned bits = base->bits();
  if (slash != std::string_view::npos) {
    const std::string_view digits = text.substr(slash + 1);
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
    if (code != std::errc{} || end != digits.data() + digits.size() || bits > base->bits()) {
      return error("'{}' is not an IP prefix; its length is a number from 0 to {}", text, base->bits());
    }
  }
  return std::pair{*base, IpPrefix(*base, bits)};
}

Result<IpPrefix> IpPrefix::parse(std::string_view text) {
  const auto both = parse_interface(text);
  if (!both) {
    return std::unexpected(both.error());
  }
  if (both->first != both->second.address) {
    return error("'{}' has bits set beyond its length; did you mean {}?", text, both->second.to_string());
  }
  return both->second;
}

std::string IpPrefix::to_string() const { return fmt::format("{}/{}", address.to_string(), length); }

}  // namespace weir
