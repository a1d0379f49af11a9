#include <weir/engine/reference/tunnel.h>

#include <algorithm>

#include <weir/engine/reference/checksums.h>
#include <weir/engine/reference/rewrite.h>

namespace weir::reference {

namespace {

// Bytes written one after the other.
class Writer {
 public:
  Writer& byte(unsigned value) {
    bytes_.push_back(static_cast<std::uint8_t>(value));
    return *this;
  }
  Writer& word(std::size_t value) {
    return byte(static_cast<unsigned>(value >> 8U & 0xffU)).byte(static_cast<unsigned>(value & 0xffU));
  }
  template <class Array>
  Writer& all(const Array& array) {
    bytes_.insert(bytes_.end(), array.begin(), array.end());
    return *this;
  }
  std::vector<std::uint8_t> bytes() { return std::move(bytes_); }

 private:
  std::vector<std::uint8_t> bytes_;
};

std::vector<std::uint8_t> ipv4_header(const Vxlan& vxlan, unsigned tos, std::size_t payload) {
  std::vector<std::uint8_t> header = Writer()
                                         .byte(0x45)
                                         .byte(tos)
                                         .word(20 + payload)
                                         .word(0)       // identification: never fragmented
                                         .word(0x4000)  // don't fragment (RFC 7348, section 4.3)
                                         .byte(vxlan.ttl)
                                         .byte(17)
                                         .word(0)
                                         .all(vxlan.src.to_v4().bytes)
                                         .all(vxlan.dst.to_v4().bytes)
                                         .bytes();
  const auto checksum = static_cast<std::uint16_t>(~sum(header));
  header[10] = static_cast<std::uint8_t>(checksum >> 8U);
  header[11] = static_cast<std::uint8_t>(checksum);
  return header;
}

std::vector<std::uint8_t> ipv6_header(const Vxlan& vxlan, unsigned tos, std::size_t payload) {
  return Writer()
      .byte(0x60U | tos >> 4U)
      .byte(tos << 4U)
      .word(0)
      .word(payload)
      .byte(17)
      .byte(vxlan.ttl)
      .all(vxlan.src.to_v6().bytes)
      .all(vxlan.dst.to_v6().bytes)
      .bytes();
}

enum Ecn : unsigned { not_ect = 0, ect_1 = 1, ect_0 = 2, ce = 3 };

// The mark that a packet leaves a tunnel with (RFC 6040, figure 4); nothing if it must be dropped.
std::optional<unsigned> decapsulated_ecn(unsigned inner, unsigned outer) {
  if (outer == ce) {
    return inner == not_ect ? std::nullopt : std::optional<unsigned>(ce);
  }
  if (outer == ect_1 && inner == ect_0) {
    return ect_1;
  }
  return inner;
}

}  // namespace

void encapsulate(Frame& frame, const Headers& headers, const Vxlan& vxlan, std::uint64_t hash) {
  const bool segmented = frame.offload.gso_size != 0;
  if (!segmented) {
    finish_checksum(frame);  // no device finds it behind another header
  }
  const unsigned ecn = headers.layout.ip() ? tos_of(frame, headers) & 3U : not_ect;
  const unsigned tos = (unsigned{vxlan.dscp} << 2U & 0xffU) | ecn;
  const std::size_t udp_length = 8 + 8 + frame.bytes.size();
  const bool v6 = vxlan.src.v6;
  const std::vector<std::uint8_t> outer =
      Writer()
          .all(vxlan.eth_dst.bytes)
          .all(vxlan.eth_src.bytes)
          .word(v6 ? 0x86dd : 0x0800)
          .all(v6 ? ipv6_header(vxlan, tos, udp_length) : ipv4_header(vxlan, tos, udp_length))
          .word(49'152 + (hash >> 32U & 0x3fffU))
          .word(vxlan.dst_port)
          .word(udp_length)
          .word(0)     // checksum: none
          .byte(0x08)  // the VNI is valid
          .byte(0)
          .word(0)
          .word(vxlan.vni >> 8U)
          .byte(vxlan.vni)
          .byte(0)
          .bytes();
  frame.bytes.insert(frame.bytes.begin(), outer.begin(), outer.end());
  if (segmented) {
    // Whoever cuts the segments does it behind these headers.
    frame.offload.gso_type = static_cast<std::uint8_t>(frame.offload.gso_type | (v6 ? 0x40 : 0x20));
    frame.offload.checksum_start = static_cast<std::uint16_t>(frame.offload.checksum_start + outer.size());
    frame.offload.header_length = static_cast<std::uint16_t>(frame.offload.header_length + outer.size());
  }
}

std::optional<ReasonId> decapsulate(Frame& frame, const Headers& headers) {
  if (frame.offload.gso_size == 0) {
    finish_checksum(frame);  // of the inner packet, if its sender left that to a device
    frame.offload = {};
  } else if ((frame.offload.gso_type & 0x60) == 0) {
    return drop::bad_offload;  // several tunnel packets in one
  } else {
    frame.offload.gso_type = static_cast<std::uint8_t>(frame.offload.gso_type & ~0x60);
    frame.offload.checksum_start = static_cast<std::uint16_t>(frame.offload.checksum_start - headers.payload);
    frame.offload.header_length = static_cast<std::uint16_t>(frame.offload.header_length - headers.payload);
  }
  const unsigned outer = tos_of(frame, headers) & 3U;
  const std::uint8_t* vni = &frame.bytes[headers.payload - 4];
  frame.vni = unsigned{vni[0]} << 16U | unsigned{vni[1]} << 8U | vni[2];
  frame.tunnel = true;
  frame.bytes.erase(frame.bytes.begin(), frame.bytes.begin() + static_cast<std::ptrdiff_t>(headers.payload));
  const Headers inner = parse(frame);
  if (!inner.layout.ip()) {
    return std::nullopt;  // carries no marks
  }
  const unsigned before = tos_of(frame, inner) & 3U;
  const std::optional<unsigned> after = decapsulated_ecn(before, outer);
  if (after && *after != before) {
    FieldValue mark;
    mark.bytes[0] = static_cast<std::uint8_t>(*after);
    set(frame, inner, FieldId::ip_ecn, mark);
  }
  return after ? std::nullopt : std::optional<ReasonId>(drop::tunnel_ecn);
}

}  // namespace weir::reference
