#include <weir/packet/layout.h>

namespace weir {

std::string_view name_of(ParseVerdict verdict) {
  static constexpr std::string_view names[parse_verdicts] = {
      "ok",
      "truncated_ethernet",
      "truncated_vlan",
      "truncated_arp",
      "truncated_ipv4",
      "bad_ipv4",
      "ipv4_length",
      "truncated_ipv6",
      "bad_ipv6",
      "ipv6_length",
      "truncated_extension",
      "headers_too_long",
      "truncated_l4",
      "bad_l4",
      "truncated_vxlan",
  };
  const auto index = static_cast<unsigned>(verdict);
  return index < parse_verdicts ? names[index] : "unknown";
}

std::string Layout::to_string() const {
  std::string text;
  const auto add = [&text](std::string_view word) {
    if (!text.empty()) {
      text += ' ';
    }
    text += word;
  };
  if (tunnel()) {
    add("tunnel");
  }
  for (unsigned i = 0; i < tags(); ++i) {
    add("vlan");
  }
  static constexpr std::string_view l3_names[] = {"ethernet", "arp", "ipv4", "ipv6"};
  static constexpr std::string_view l4_names[] = {"", "other", "icmp", "icmpv6", "tcp", "udp", "sctp", ""};
  if (ethernet()) {
    add(l3_names[static_cast<unsigned>(l3())]);
  }
  if (l4() != L4::none) {
    add(l4_names[static_cast<unsigned>(l4())]);
  }
  if (options()) {
    add(l3() == L3::ipv6 ? "extensions" : "options");
  }
  if (fragment()) {
    add(later_fragment() ? "later-fragment" : "first-fragment");
  }
  if (vxlan()) {
    add("vxlan");
  }
  if (verdict() != ParseVerdict::ok) {
    add("broken:");
    add(name_of(verdict()));
  }
  return text;
}

}  // namespace weir
