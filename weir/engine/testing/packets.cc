#include <weir/engine/testing/packets.h>

#include <algorithm>
#include <stdexcept>

#include <weir/engine/reference/checksums.h>
#include <weir/engine/reference/headers.h>
#include <weir/packet/address.h>

namespace weir::testing {

namespace {

Bytes numbers(std::initializer_list<unsigned> words) {
  Bytes bytes;
  for (const unsigned word : words) {
    bytes.push_back(static_cast<std::uint8_t>(word >> 8U));
    bytes.push_back(static_cast<std::uint8_t>(word));
  }
  return bytes;
}

void append(Bytes& to, const Bytes& more) { to.insert(to.end(), more.begin(), more.end()); }

Bytes joined(Bytes first, const Bytes& second) {
  append(first, second);
  return first;
}

Bytes address(std::string_view text) {
  const auto parsed = IpAddress::parse(text);
  if (!parsed) {
    throw std::invalid_argument("not an address");
  }
  return {parsed->bytes.begin(), parsed->bytes.begin() + (parsed->v6 ? 16 : 4)};
}

void put(Bytes& bytes, std::size_t at, std::uint16_t value) {
  bytes[at] = static_cast<std::uint8_t>(value >> 8U);
  bytes[at + 1] = static_cast<std::uint8_t>(value);
}

// Where the protocol has its Internet checksum; 0: it has none.
std::size_t checksum_offset(std::uint8_t protocol) {
  switch (protocol) {
    case 1:
    case 58:
      return 2;
    case 6:
      return 16;
    case 17:
      return 6;
    default:
      return 0;
  }
}

std::uint16_t transport_sum(std::uint8_t protocol, const Bytes& addresses, const Bytes& bytes) {
  std::uint16_t total = reference::sum(bytes);
  if (protocol != 1) {
    total = reference::add(total, reference::sum(addresses));
    total = reference::add(total, protocol);
    total = reference::add(total, static_cast<std::uint16_t>(bytes.size()));
  }
  return total;
}

Bytes summed(const Transport& transport, const Bytes& addresses) {
  Bytes bytes = transport.bytes;
  const std::size_t at = checksum_offset(transport.protocol);
  // A field that is not zero asks for no checksum (udp_unsummed).
  if (at == 0 || bytes.size() < at + 2) {
    return bytes;
  }
  if (bytes[at] != 0) {
    put(bytes, at, 0);
    return bytes;
  }
  const auto checksum = static_cast<std::uint16_t>(~transport_sum(transport.protocol, addresses, bytes));
  put(bytes, at, transport.protocol == 17 && checksum == 0 ? 0xffff : checksum);
  return bytes;
}

}  // namespace

Bytes payload(std::size_t bytes) {
  Bytes result(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    result[i] = static_cast<std::uint8_t>(i);
  }
  return result;
}

Transport tcp(std::uint16_t src, std::uint16_t dst, std::uint8_t flags, const Bytes& data, const Bytes& options) {
  const auto offset = static_cast<unsigned>((20 + options.size()) / 4);
  Bytes header = numbers({src, dst, 0x1111, 0x2222, 0x3333, 0x4444, offset << 12U | flags, 0x7210, 0, 0});
  append(header, options);
  return {6, joined(header, data)};
}

Transport udp(std::uint16_t src, std::uint16_t dst, const Bytes& data) {
  return {17, joined(numbers({src, dst, static_cast<unsigned>(8 + data.size()), 0}), data)};
}

Transport udp_unsummed(std::uint16_t src, std::uint16_t dst, const Bytes& data) {
  Transport transport = udp(src, dst, data);
  transport.bytes[6] = 0xff;
  return transport;
}

Transport sctp(std::uint16_t src, std::uint16_t dst, const Bytes& data) {
  Transport transport{132, joined(numbers({src, dst, 0x1234, 0x5678, 0, 0}), data)};
  const std::uint32_t crc = reference::crc32c(transport.bytes);
  for (unsigned i = 0; i < 4; ++i) {
    transport.bytes[8 + i] = static_cast<std::uint8_t>(crc >> 8U * i);
  }
  return transport;
}

Transport icmp(std::uint8_t type, std::uint8_t code, std::uint16_t id, const Bytes& data) {
  return {1, joined(numbers({unsigned{type} << 8U | code, 0, id, 7}), data)};
}

Transport icmpv6(std::uint8_t type, std::uint8_t code, std::uint16_t id, const Bytes& data) {
  return {58, joined(numbers({unsigned{type} << 8U | code, 0, id, 7}), data)};
}

Transport vxlan(std::uint32_t vni, const Bytes& inner) {
  return udp_unsummed(50'000, 4789, joined(numbers({0x0800, 0, vni >> 8U, (vni & 0xffU) << 8U}), inner));
}

Content ipv4(const Ipv4Options& options, const Transport& transport) {
  const std::size_t header_bytes = 20 + options.options.size();
  const auto version = static_cast<unsigned>(0x40U | header_bytes / 4);
  const Bytes addresses = joined(address(options.src), address(options.dst));
  Bytes header = numbers({version << 8U | options.tos, static_cast<unsigned>(header_bytes + transport.bytes.size()),
                          0xabcd, options.fragment, unsigned{options.ttl} << 8U | transport.protocol, 0});
  append(header, addresses);
  append(header, options.options);
  put(header, 10, static_cast<std::uint16_t>(~reference::sum(header)));
  const bool later = (options.fragment & 0x1fffU) != 0;
  return {0x0800, joined(header, later ? transport.bytes : summed(transport, addresses))};
}

Content ipv6(const Ipv6Options& options, const Transport& transport) {
  Bytes extensions;
  std::uint8_t next = transport.protocol;
  for (auto extension = options.extensions.rbegin(); extension != options.extensions.rend(); ++extension) {
    Bytes header{next};
    append(header, extension->second);
    extensions = joined(header, extensions);
    next = extension->first;
  }
  const Bytes addresses = joined(address(options.src), address(options.dst));
  Bytes header = numbers({0x6000U | unsigned{options.traffic_class} << 4U, 0x2345,
                          static_cast<unsigned>(extensions.size() + transport.bytes.size()),
                          unsigned{next} << 8U | options.hop_limit});
  append(header, addresses);
  append(header, extensions);
  return {0x86dd, joined(header, summed(transport, addresses))};
}

Content arp(std::uint16_t operation) {
  Bytes bytes = numbers({1, 0x0800, 0x0604, operation, 0x0200, 0x0000, 0x0001, 0x0a00, 0x0001, 0, 0, 0});
  append(bytes, {10, 0, 1, 1});
  return {0x0806, bytes};
}

Bytes ethernet(const Content& content, const std::vector<std::uint16_t>& tags) {
  Bytes frame{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1};
  for (std::size_t i = 0; i < tags.size(); ++i) {
    append(frame, numbers({i == 0 && tags.size() == 2 ? 0x88a8U : 0x8100U, tags[i]}));
  }
  append(frame, numbers({content.type}));
  return joined(frame, content.bytes);
}

std::string_view wrong_checksum(const Bytes& bytes) {
  reference::Frame frame;
  frame.bytes = bytes;
  const reference::Headers headers = reference::parse(frame);
  const auto part = [&bytes](std::size_t from, std::size_t to) {
    return Bytes(bytes.begin() + static_cast<std::ptrdiff_t>(from), bytes.begin() + static_cast<std::ptrdiff_t>(to));
  };
  const bool v6 = headers.layout.l3() == L3::ipv6;
  if (!headers.layout.ip() || headers.layout.later_fragment()) {
    return {};
  }
  if (!v6 && reference::sum(part(headers.l3, headers.l3 + (bytes[headers.l3] & 0x0fU) * 4U)) != 0xffff) {
    return "IPv4";
  }
  const std::size_t size = v6 ? 16 : 4;
  const std::size_t src = headers.l3 + (v6 ? 8 : 12);
  Bytes transport = part(headers.l4, headers.l3_end);
  switch (headers.layout.l4()) {
    case L4::udp:
      if (transport[6] == 0 && transport[7] == 0) {
        return {};
      }
      [[fallthrough]];
    case L4::tcp:
    case L4::icmp:
    case L4::icmpv6:
      return transport_sum(headers.protocol, part(src, src + 2 * size), transport) == 0xffff ? "" : "transport";
    case L4::sctp: {
      Bytes zeroed = transport;
      std::fill_n(zeroed.begin() + 8, 4, 0);
      const std::uint32_t crc = reference::crc32c(zeroed);
      for (unsigned i = 0; i < 4; ++i) {
        if (transport[8 + i] != static_cast<std::uint8_t>(crc >> 8U * i)) {
          return "SCTP";
        }
      }
      return {};
    }
    default:
      return {};
  }
}

}  // namespace weir::testing
