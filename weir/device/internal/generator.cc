#include <weir/device/internal/generator.h>

#include <algorithm>
#include <cstring>

#include <weir/packet/ethernet.h>
#include <weir/packet/ipv6.h>
#include <weir/packet/tcp.h>
#include <weir/packet/udp.h>

namespace weir::device_internal {

namespace {

static_assert(FramePool::segment_bytes % simd::block == 0, "whole blocks are copied into a segment");

// 7 : 4 : 1, the large ones spread out.
constexpr std::array<std::uint8_t, 12> imix_pattern{0, 1, 0, 0, 1, 0, 2, 0, 1, 0, 1, 0};
constexpr std::array<std::uint32_t, 3> imix_sizes{64, 570, 1518};

std::uint32_t header_bytes(const GeneratorConfig& config) {
  return static_cast<std::uint32_t>(sizeof(EthernetHeader) + (config.vlan ? sizeof(VlanTag) : 0) +
                                    (config.v6 ? sizeof(Ipv6Header) : sizeof(Ipv4Header)) +
                                    (config.tcp ? sizeof(TcpHeader) : sizeof(UdpHeader)));
}

IpAddress address_or(const std::optional<IpAddress>& given, bool v6, std::uint8_t network) {
  if (given) {
    return *given;
  }
  return v6 ? IpAddress(Ipv6Address{{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, network}}) : Ipv4Address{{10, network, 0, 0}};
}

// The last four bytes: the part that counts flows.
std::uint32_t low_bytes(const IpAddress& address) {
  return load_big<std::uint32_t>(address.bytes.data() + (address.v6 ? 12 : 0));
}

template <class T>
T to_big(T value) {
  return std::endian::native == std::endian::little ? std::byteswap(value) : value;
}

// The sum of 16-bit words in this machine's order; an odd last byte is followed by a zero.
std::uint64_t native_sum(std::span<const std::uint8_t> bytes) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    std::array<std::uint8_t, 2> pair{bytes[i], i + 1 < bytes.size() ? bytes[i + 1] : std::uint8_t{0}};
    std::uint16_t word;
    std::memcpy(&word, pair.data(), 2);
    sum += word;
  }
  return sum;
}

// Folded to 16 bits. Sums stay far below 2^48.
inline std::uint64_t fold(std::uint64_t sum) {
  sum = (sum & 0xffffU) + (sum >> 16U);
  sum = (sum & 0xffffU) + (sum >> 16U);
  return (sum & 0xffffU) + (sum >> 16U);
}

// The checksum field, in the same byte order, of a folded sum and up to three numbers of 32 bits: with them it is below
// 2^34, and three folds leave no carry.
inline std::uint16_t finish(std::uint64_t sum) { return static_cast<std::uint16_t>(~fold(sum)); }

template <class T>
inline void store(std::uint8_t* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

FrameTemplate make_template(const GeneratorConfig& config, const IpAddress& src, const IpAddress& dst,
                            std::uint32_t size) {
  FrameTemplate made;
  made.size = size;
  made.bytes.resize((size + simd::block - 1) / simd::block * simd::block);
  std::uint8_t* at = made.bytes.data();
  EthernetHeader ethernet{config.dst_mac, config.src_mac, config.v6 ? ethertype::ipv6 : ethertype::ipv4};
  if (config.vlan) {
    const VlanTag tag{*config.vlan, ethernet.type};
    ethernet.type = ethertype::vlan;
    std::memcpy(at + sizeof ethernet, &tag, sizeof tag);
  }
  std::memcpy(at, &ethernet, sizeof ethernet);
  const std::uint32_t l3 = sizeof ethernet + (config.vlan ? sizeof(VlanTag) : 0);
  const std::uint8_t protocol = config.tcp ? ip_protocol::tcp : ip_protocol::udp;
  std::uint32_t l4 = l3;
  if (config.v6) {
    l4 += sizeof(Ipv6Header);
    Ipv6Header ip{6U << 28U, static_cast<std::uint16_t>(size - l4), protocol, 64, src.to_v6(), dst.to_v6()};
    std::memcpy(at + l3, &ip, sizeof ip);
  } else {
    l4 += sizeof(Ipv4Header);
    Ipv4Header ip{0x45, 0, static_cast<std::uint16_t>(size - l3), 0, Ipv4Header::dont_fragment, 64, protocol, 0,
                  {},   {}};
    made.ip_sum = fold(native_sum({reinterpret_cast<const std::uint8_t*>(&ip), sizeof ip}));
    std::memcpy(at + l3, &ip, sizeof ip);
  }
  const auto l4_bytes = static_cast<std::uint16_t>(size - l4);
  std::uint32_t payload = l4;
  if (config.tcp) {
    const TcpHeader tcp{0, 0, 1, 1, sizeof(TcpHeader) / 4 << 4U, tcp_flag::ack, 65'535, 0, 0};
    std::memcpy(at + l4, &tcp, sizeof tcp);
    payload += sizeof tcp;
  } else {
    const UdpHeader udp{0, 0, l4_bytes, 0};
    std::memcpy(at + l4, &udp, sizeof udp);
    payload += sizeof udp;
  }
  for (std::uint32_t i = payload; i < size; ++i) {
    at[i] = static_cast<std::uint8_t>(i - payload);
  }
  // The pseudo-header (RFC 9293, section 3.1; RFC 8200, section 8.1), without what varies: the addresses' last bytes.
  std::array<std::uint8_t, 4> pseudo{0, protocol};
  store_big<std::uint16_t>(&pseudo[2], l4_bytes);
  made.l4_sum = native_sum(pseudo) + native_sum(std::span(made.bytes).subspan(l4, l4_bytes));
  if (config.v6) {
    made.l4_sum += native_sum(std::span(src.bytes).first(12)) + native_sum(std::span(dst.bytes).first(12));
  }
  made.l4_sum = fold(made.l4_sum);
  return made;
}

}  // namespace

Result<> Generator::check(const GeneratorConfig& config) {
  for (const auto& [key, given] : {std::pair{"src", &config.src}, std::pair{"dst", &config.dst}}) {
    if (*given && (*given)->v6 != config.v6) {
      return error("option {}: {} is not an address of IPv{}; change it or give ip={}", key, (*given)->to_string(),
                   config.v6 ? 6 : 4, config.v6 ? 4 : 6);
    }
  }
  const std::uint32_t most = 0xffffffffU - (config.flows - 1);
  if (config.vary_src && low_bytes(address_or(config.src, config.v6, 0)) > most) {
    return error("option src: {} flows run past the last address; start lower", config.flows);
  }
  if (config.vary_dst && low_bytes(address_or(config.dst, config.v6, 1)) > most) {
    return error("option dst: {} flows run past the last address; start lower", config.flows);
  }
  if (config.size != 0 && config.size < header_bytes(config) && !config.random_headers) {
    return error("option size: {} is too small for the headers, which take {} bytes", config.size,
                 header_bytes(config));
  }
  return {};
}

Generator::Generator(const GeneratorConfig& config, std::uint32_t first, std::uint32_t step, std::uint32_t share,
                     std::uint64_t seed)
    : config_(config), order_(config.order, config.skew, first, step, share, seed), random_(seed) {
  const IpAddress src = address_or(config.src, config.v6, 0);
  const IpAddress dst = address_or(config.dst, config.v6, 1);
  const std::uint32_t headers = header_bytes(config);
  if (config.imix) {
    for (const std::uint32_t size : imix_sizes) {
      templates_.push_back(make_template(config, src, dst, std::max(size, headers)));
    }
  } else {
    config_.size = config.size != 0 ? config.size : std::max(imix_sizes[0], headers);
    templates_.push_back(make_template(config, src, dst, config.random_headers ? headers : config_.size));
  }
  const std::uint32_t l3 = sizeof(EthernetHeader) + (config.vlan ? sizeof(VlanTag) : 0);
  const std::uint32_t l4 = l3 + (config.v6 ? sizeof(Ipv6Header) : sizeof(Ipv4Header));
  fields_.l3_at = l3;
  fields_.l4_checksum_at = l4 + (config.tcp ? offsetof(TcpHeader, checksum) : offsetof(UdpHeader, checksum));
  fields_.src = low_bytes(src);
  fields_.dst = low_bytes(dst);
  fields_.src_port = config.src_port;
  fields_.dst_port = config.dst_port;
  fields_.vary_src = config.vary_src ? ~0U : 0;
  fields_.vary_dst = config.vary_dst ? ~0U : 0;
  fields_.vary_ports = config.vary_ports ? ~0U : 0;
  fields_.vary_macs = config.vary_macs;
  fields_.src_mac = load_big<std::uint32_t>(&config.src_mac.bytes[2]);
  fields_.udp = !config.tcp;
  if (templates_.size() == 1 && templates_[0].size <= sizeof small_) {
    std::vector<std::uint8_t> bytes = templates_[0].bytes;
    bytes.resize(sizeof small_);
    small_ = simd::Line(bytes.data());
    small_size_ = templates_[0].size;
  }
}

// What the flow changes, written over the template's copy at `at`.
template <bool V4, bool L4Checksum>
inline void Generator::patch(std::uint8_t* at, const Fields& fields, const FrameTemplate& frame, std::uint32_t flow) {
  std::uint8_t* const l3 = at + fields.l3_at;
  const std::uint32_t src = fields.src + (flow & fields.vary_src);
  const std::uint32_t dst = fields.dst + (flow & fields.vary_dst);
  const std::uint64_t both = to_big((std::uint64_t{src} << 32U) | dst);
  const std::uint64_t sum = (both >> 32U) + (both & 0xffffffffU);
  // The source port counts the flows; what runs over goes on in the destination port.
  const std::uint32_t number = fields.src_port + (flow & fields.vary_ports);
  const std::uint32_t ports = to_big((number << 16U) | ((fields.dst_port + (number >> 16U)) & 0xffffU));
  if constexpr (V4) {
    store(l3 + offsetof(Ipv4Header, checksum), finish(frame.ip_sum + sum));
    store(l3 + offsetof(Ipv4Header, src), both);
    store(l3 + sizeof(Ipv4Header), ports);
  } else {
    store(l3 + offsetof(Ipv6Header, src) + 12, to_big(src));
    store(l3 + offsetof(Ipv6Header, dst) + 12, to_big(dst));
    store(l3 + sizeof(Ipv6Header), ports);
  }
  if constexpr (L4Checksum) {
    std::uint16_t checksum = finish(frame.l4_sum + sum + ports);
    if (checksum == 0 && fields.udp) {
      checksum = 0xffff;  // RFC 768: zero says that there is none
    }
    store(at + fields.l4_checksum_at, checksum);
  }
  if (fields.vary_macs) [[unlikely]] {
    store(at + offsetof(EthernetHeader, src) + 2, to_big(fields.src_mac + flow));
  }
}

// Frames of one size up to two blocks, which stay in registers.
template <bool V4, bool L4Checksum>
std::size_t Generator::write_small(std::span<Packet*> out, std::span<const std::uint32_t> flows, PacketCache& frames,
                                   std::uint64_t timestamp) {
  const Fields fields = fields_;  // copies, which the stores to frames cannot change in the compiler's eyes
  const simd::Line small = small_;
  const std::uint32_t size = small_size_;
  FrameTemplate sums;
  sums.ip_sum = templates_.front().ip_sum;
  sums.l4_sum = templates_.front().l4_sum;
  const std::size_t made = frames.allocate_many(out);
  for (std::size_t i = 0; i < made; ++i) {
    Packet* packet = out[i];
    std::uint8_t* const at = packet->data;
    packet->length = size;
    packet->segment = static_cast<std::uint16_t>(size);
    packet->timestamp = timestamp;
    small.store(at);
    patch<V4, L4Checksum>(at, fields, sums, flows[i]);
  }
  return made;
}

template <bool V4, bool L4Checksum>
std::size_t Generator::write_batch(std::span<Packet*> out, std::span<const std::uint32_t> flows, PacketCache& frames,
                                   std::uint64_t timestamp) {
  if (small_size_ != 0) {
    return write_small<V4, L4Checksum>(out, flows, frames, timestamp);
  }
  const Fields fields = fields_;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const FrameTemplate& frame = templates_[templates_.size() == 1 ? 0 : imix_pattern[position_]];
    Packet* packet = nullptr;
    if (frame.size <= FramePool::segment_bytes) [[likely]] {
      packet = frames.allocate();
      if (packet == nullptr) {
        return i;
      }
      simd::copy_blocks(packet->data, frame.bytes.data(), frame.size);
      packet->segment = static_cast<std::uint16_t>(frame.size);
      packet->length = frame.size;
    } else {
      packet = frames.allocate(std::span(frame.bytes).first(frame.size));
      if (packet == nullptr) {
        return i;
      }
    }
    packet->timestamp = timestamp;
    out[i] = packet;
    patch<V4, L4Checksum>(packet->data, fields, frame, flows[i]);
    position_ = position_ + 1 == imix_pattern.size() ? 0 : position_ + 1;
  }
  return out.size();
}

std::size_t Generator::write_random(std::span<Packet*> out, PacketCache& frames, std::uint64_t timestamp) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] = frames.allocate(); out[i] == nullptr) {
      return i;
    }
    write_random_frame({out[i]->data, config_.size}, random_);
    out[i]->segment = static_cast<std::uint16_t>(config_.size);
    out[i]->length = config_.size;
    out[i]->timestamp = timestamp;
  }
  return out.size();
}

std::size_t Generator::generate(std::span<Packet*> out, PacketCache& frames, std::uint64_t timestamp) {
  if (config_.random_headers) {
    return write_random(out, frames, timestamp);
  }
  std::array<std::uint32_t, 256> flows;
  std::size_t done = 0;
  while (done < out.size()) {
    const std::size_t wanted = std::min(out.size() - done, flows.size());
    const std::span<std::uint32_t> next = std::span(flows).first(wanted);
    order_.next(next);
    const std::span<Packet*> part = out.subspan(done, wanted);
    std::size_t made = 0;
    if (config_.v6) {
      made = write_batch<false, true>(part, next, frames, timestamp);
    } else if (config_.tcp) {
      made = write_batch<true, true>(part, next, frames, timestamp);
    } else {
      made = write_batch<true, false>(part, next, frames, timestamp);
    }
    done += made;
    if (made < wanted) {
      order_.put_back(static_cast<std::uint32_t>(wanted - made));
      break;
    }
  }
  return done;
}

}  // namespace weir::device_internal
