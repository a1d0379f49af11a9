#include <weir/engine/reference/rewrite.h>

#include <algorithm>
#include <span>

#include <weir/engine/reference/checksums.h>

namespace weir::reference {

namespace {

using Bytes = std::vector<std::uint8_t>;

// The whole words in which some bytes lie, before and after these were replaced.
struct Change {
  Bytes before;
  Bytes after;
};

Change replace(Frame& frame, std::size_t at, std::span<const std::uint8_t> with) {
  const auto first = frame.bytes.begin() + static_cast<std::ptrdiff_t>(at & ~std::size_t{1});
  const auto last = frame.bytes.begin() + static_cast<std::ptrdiff_t>((at + with.size() + 1) & ~std::size_t{1});
  Change change{Bytes(first, last), {}};
  std::ranges::copy(with, frame.bytes.begin() + static_cast<std::ptrdiff_t>(at));
  change.after.assign(first, last);
  return change;
}

// Replaces one byte of the IP header; IPv4 sums its header.
void replace_ip_byte(Frame& frame, const Headers& headers, std::size_t at, std::uint8_t with) {
  const Change change = replace(frame, at, {&with, 1});
  if (headers.layout.l3() == L3::ipv4) {
    const std::size_t field = headers.l3 + 10;
    put_word(frame, field, updated(word_at(frame, field), change.before, change.after));
  }
}

// Brings the transport checksum along. `pseudo`: what changed is in the pseudo-header, not in the transport header.
void update_transport(Frame& frame, const Headers& headers, const Change& change, bool pseudo) {
  if (headers.layout.later_fragment()) {
    return;  // the first one has the checksum
  }
  std::size_t field = headers.l4;
  switch (headers.layout.l4()) {
    case L4::tcp:
      field += 16;
      break;
    case L4::udp:
      field += 6;
      break;
    case L4::icmp:
      if (pseudo) {
        return;  // covers no pseudo-header
      }
      field += 2;
      break;
    case L4::icmpv6:
      field += 2;
      break;
    default:
      return;  // no checksum, or one that does not cover addresses
  }
  const std::uint16_t value = word_at(frame, field);
  const Offload& offload = frame.offload;
  if ((offload.flags & Offload::needs_checksum) != 0 && offload.checksum_start + offload.checksum_offset == field) {
    // The field holds the pseudo-header's sum, not inverted. The rest is still to be summed.
    if (pseudo) {
      const auto inverted = static_cast<std::uint16_t>(~value);
      put_word(frame, field, static_cast<std::uint16_t>(~updated(inverted, change.before, change.after)));
    }
    return;
  }
  const bool udp = headers.layout.l4() == L4::udp;
  if (udp && value == 0) {
    return;  // the sender computed none (RFC 768)
  }
  const std::uint16_t result = updated(value, change.before, change.after);
  put_word(frame, field, udp && result == 0 ? 0xffff : result);
}

void set_address(Frame& frame, const Headers& headers, bool destination, const FieldValue& value) {
  const bool v6 = headers.layout.l3() == L3::ipv6;
  const std::size_t size = v6 ? 16 : 4;
  const std::size_t at = headers.l3 + (v6 ? 8 : 12) + (destination ? size : 0);
  const Change change = replace(frame, at, std::span(value.bytes).first(size));
  if (!v6) {
    const std::size_t field = headers.l3 + 10;
    put_word(frame, field, updated(word_at(frame, field), change.before, change.after));
  }
  update_transport(frame, headers, change, true);
}

void set_port(Frame& frame, const Headers& headers, bool destination, const FieldValue& value) {
  if (headers.layout.later_fragment()) {
    const auto port = load_big<std::uint16_t>(value.bytes.data());
    (destination ? frame.offload.checksum_offset : frame.offload.checksum_start) = port;
    return;
  }
  const std::size_t at = headers.l4 + (destination ? 2 : 0);
  const auto port = std::span(value.bytes).first(2);
  if (headers.layout.l4() != L4::sctp) {
    update_transport(frame, headers, replace(frame, at, port), false);
    return;
  }
  // The CRC is linear: the difference of the two packets' CRCs is what the field changes by, right or wrong.
  const auto packet = std::span(frame.bytes).subspan(headers.l4, headers.l3_end - headers.l4);
  const std::uint32_t before = crc32c(packet);
  replace(frame, at, port);
  const std::uint32_t difference = before ^ crc32c(packet);
  for (unsigned i = 0; i < 4; ++i) {  // least significant byte first
    packet[8 + i] = static_cast<std::uint8_t>(packet[8 + i] ^ difference >> 8U * i);
  }
}

void set_tos(Frame& frame, const Headers& headers, std::uint8_t tos) {
  const std::size_t at = headers.l3;
  if (headers.layout.l3() == L3::ipv4) {
    replace_ip_byte(frame, headers, at + 1, tos);
    return;
  }
  frame.bytes[at] = static_cast<std::uint8_t>(0x60U | tos >> 4U);
  frame.bytes[at + 1] = static_cast<std::uint8_t>((frame.bytes[at + 1] & 0x0fU) | (tos & 0x0fU) << 4U);
}

// Bits `mask` of a tag's control word.
void set_tag(Frame& frame, std::size_t at, std::uint16_t mask, unsigned bits) {
  put_word(frame, at, static_cast<std::uint16_t>((word_at(frame, at) & ~mask) | (bits & mask)));
}

// The headers behind the tags have moved.
void move_offload(Frame& frame, int bytes) {
  if ((frame.offload.flags & Offload::needs_checksum) != 0) {
    frame.offload.checksum_start = static_cast<std::uint16_t>(frame.offload.checksum_start + bytes);
  }
}

}  // namespace

void set(Frame& frame, const Headers& headers, FieldId field, const FieldValue& value) {
  const std::uint8_t byte = value.bytes[0];
  const unsigned word = unsigned{byte} << 8U | value.bytes[1];
  switch (field) {
    case FieldId::eth_dst:
      std::copy_n(value.bytes.begin(), 6, frame.bytes.begin());
      return;
    case FieldId::eth_src:
      std::copy_n(value.bytes.begin(), 6, frame.bytes.begin() + 6);
      return;
    case FieldId::vlan_id:
      return set_tag(frame, 14, 0x0fff, word);
    case FieldId::vlan_inner_id:
      return set_tag(frame, 18, 0x0fff, word);
    case FieldId::vlan_pcp:
      return set_tag(frame, 14, 0xe000, unsigned{byte} << 13U);
    case FieldId::vlan_inner_pcp:
      return set_tag(frame, 18, 0xe000, unsigned{byte} << 13U);
    case FieldId::ip_src:
    case FieldId::ip_dst:
      return set_address(frame, headers, field == FieldId::ip_dst, value);
    case FieldId::ip_dscp:
      return set_tos(frame, headers, static_cast<std::uint8_t>((tos_of(frame, headers) & 0x03U) | byte << 2U));
    case FieldId::ip_ecn:
      return set_tos(frame, headers, static_cast<std::uint8_t>((tos_of(frame, headers) & 0xfcU) | (byte & 0x03U)));
    case FieldId::ip_ttl:
      return set_ttl(frame, headers, byte);
    case FieldId::l4_src_port:
    case FieldId::l4_dst_port:
      return set_port(frame, headers, field == FieldId::l4_dst_port, value);
    case FieldId::icmp_id:
      if (headers.layout.later_fragment()) {
        frame.offload.checksum_offset = load_big<std::uint16_t>(value.bytes.data());
        return;
      }
      return update_transport(frame, headers, replace(frame, headers.l4 + 4, std::span(value.bytes).first(2)), false);
    default:
      return;  // cannot be set
  }
}

void set_ttl(Frame& frame, const Headers& headers, std::uint8_t ttl) {
  replace_ip_byte(frame, headers, headers.l3 + (headers.layout.l3() == L3::ipv4 ? 8 : 7), ttl);
}

void push_vlan(Frame& frame, std::uint16_t control) {
  const std::uint8_t tag[] = {0x81, 0x00, static_cast<std::uint8_t>(control >> 8U), static_cast<std::uint8_t>(control)};
  frame.bytes.insert(frame.bytes.begin() + 12, std::begin(tag), std::end(tag));
  move_offload(frame, 4);
}

void pop_vlan(Frame& frame) {
  frame.bytes.erase(frame.bytes.begin() + 12, frame.bytes.begin() + 16);
  move_offload(frame, -4);
}

// The quoted packet is rewritten as a packet of its own would be; then the message's checksum learns of all of it.
void translate_quoted(Frame& frame, const Headers& headers, const QuotedTranslation& translation) {
  if (frame.offload.gso_size == 0) {
    finish_checksum(frame);
  }
  const std::size_t icmp = headers.l4;
  const std::size_t l3 = icmp + translation.l3;
  const std::size_t l4 = icmp + translation.l4;
  const auto padded = [&] {
    Bytes quoted(frame.bytes.begin() + static_cast<std::ptrdiff_t>(l3), frame.bytes.end());
    quoted.resize((quoted.size() + 1) / 2 * 2);
    return quoted;
  };
  const Bytes before = padded();

  const std::uint8_t protocol = translation.protocol;
  const bool icmp_too = protocol == 1 || protocol == 58;
  const std::size_t field = l4 + (protocol == 6 ? 16 : protocol == 17 ? 6 : 2);
  bool has_checksum = (protocol == 6 || protocol == 17 || icmp_too) && field + 2 <= l3 + translation.bytes &&
                      field + 2 <= std::min<std::size_t>(frame.bytes.size(), Packet::header_bytes);
  has_checksum = has_checksum && !(protocol == 17 && word_at(frame, field) == 0);
  std::uint16_t own = has_checksum ? word_at(frame, field) : 0;
  const auto put = [&](std::size_t at, std::span<const std::uint8_t> with, bool covered) {
    const Change change = replace(frame, at, with);
    if (covered) {
      own = updated(own, change.before, change.after);
    }
    return change;
  };
  const bool v6 = translation.src.v6;
  const std::size_t size = v6 ? 16 : 4;
  for (const bool destination : {false, true}) {
    const IpAddress& address = destination ? translation.dst : translation.src;
    const Change change =
        put(l3 + (v6 ? 8 : 12) + (destination ? size : 0), std::span(address.bytes).first(size), protocol != 1);
    if (!v6) {
      put_word(frame, l3 + 10, updated(word_at(frame, l3 + 10), change.before, change.after));
    }
  }
  const auto put_number = [&](std::size_t at, std::uint16_t number) {
    const std::uint8_t word[] = {static_cast<std::uint8_t>(number >> 8U), static_cast<std::uint8_t>(number)};
    put(at, word, true);
  };
  if (icmp_too) {
    put_number(l4 + 4, translation.icmp_id);
  } else if (protocol == 6 || protocol == 17 || protocol == 132) {
    put_number(l4, translation.src_port);
    put_number(l4 + 2, translation.dst_port);
  }
  if (has_checksum) {
    put_word(frame, field, protocol == 17 && own == 0 ? 0xffff : own);
  }
  put_word(frame, icmp + 2, updated(word_at(frame, icmp + 2), before, padded()));
}

void finish_checksum(Frame& frame) {
  Offload& offload = frame.offload;
  if ((offload.flags & Offload::needs_checksum) == 0) {
    return;
  }
  offload.flags = static_cast<std::uint8_t>(offload.flags & ~Offload::needs_checksum);
  const std::size_t start = offload.checksum_start;
  const std::size_t field = start + offload.checksum_offset;
  if (field + 2 > frame.bytes.size()) {
    return;  // the sender's claim does not fit its frame
  }
  const auto checksum = static_cast<std::uint16_t>(~sum(std::span(frame.bytes).subspan(start)));
  // 0xffff is the same number, and does not mean "none" in UDP.
  put_word(frame, field, checksum == 0 ? 0xffff : checksum);
}

}  // namespace weir::reference
