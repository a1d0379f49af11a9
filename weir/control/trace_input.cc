// Which packets a trace is about.

#include <algorithm>

#include <fmt/ranges.h>

#include <weir/base/nearest.h>
#include <weir/control/device_use.h>
#include <weir/control/trace.h>
#include <weir/device/pcap_reader.h>

namespace weir {

namespace {

bool reads_capture(const NodeFile::PortEntry& port) {
  return port.device.kind == "pcap" && !port.device.argument.empty();
}

Result<PortId> choose(const NodeFile& file, const std::string& name, bool capture) {
  std::vector<std::string_view> names;
  for (std::uint16_t i = 0; i < file.ports.size(); ++i) {
    const NodeFile::PortEntry& port = file.ports[i];
    names.emplace_back(port.name);
    if (name.empty() ? !capture || reads_capture(port) : port.name == name) {
      if (capture && !reads_capture(port)) {
        return error("port '{}' reads no capture; give the packet as hexadecimal digits", name);
      }
      return PortId{i};
    }
  }
  if (name.empty()) {
    return error("no port reads a capture; give the packet as hexadecimal digits");
  }
  return error("no port '{}'; there are: {}{}", name, fmt::join(names, ", "), did_you_mean(name, names));
}

/// One capture that is read record by record.
struct Source {
  std::unique_ptr<PcapReader> reader;
  const PcapReader::Record* record;
  PortId port;
};

Result<std::vector<Source>> open_all(const NodeFile& file) {
  std::vector<Source> sources;
  for (std::uint16_t i = 0; i < file.ports.size(); ++i) {
    if (reads_capture(file.ports[i])) {
      auto reader = PcapReader::open(file.ports[i].device.argument);
      if (!reader) {
        return std::unexpected(reader.error().at(file.ports[i].place.place()));
      }
      const PcapReader::Record* first = (*reader)->next();
      sources.push_back({std::move(*reader), first, PortId{i}});
    }
  }
  return sources;
}

TracedFrame frame_of(const PcapReader::Record& record, PortId port) {
  return {{record.bytes.begin(), record.bytes.end()}, port, record.time};
}

}  // namespace

Result<TraceInput> find_packet(const NodeFile& file, std::uint64_t number, const std::string& port,
                               std::uint64_t after) {
  const auto chosen = choose(file, port, true);
  if (!chosen) {
    return std::unexpected(chosen.error());
  }
  auto sources = open_all(file);
  if (!sources) {
    return std::unexpected(sources.error());
  }
  TraceInput input;
  // As the node takes them: the oldest first, of equally old ones that of the earlier port.
  for (;;) {
    Source* oldest = nullptr;
    for (Source& source : *sources) {
      if (source.record != nullptr && (oldest == nullptr || source.record->time < oldest->record->time)) {
        oldest = &source;
      }
    }
    if (oldest == nullptr) {
      const auto own = std::ranges::find(*sources, *chosen, &Source::port);
      if (own->reader->error()) {
        return std::unexpected(*own->reader->error());
      }
      return error("port '{}' has no packet {}; its capture holds {}", file.ports[chosen->number].name, number,
                   own->reader->records());
    }
    if (oldest->port == *chosen && oldest->reader->records() == number) {
      input.frame = frame_of(*oldest->record, *chosen);
      return input;
    }
    if (input.before.size() < after) {
      input.before.push_back(frame_of(*oldest->record, oldest->port));
    }
    oldest->record = oldest->reader->next();
  }
}

Result<std::vector<std::uint8_t>> frame_from_hex(std::string_view digits) {
  std::vector<std::uint8_t> bytes;
  unsigned half = 0;
  bool odd = false;
  for (const char digit : digits) {
    const unsigned value = digit >= '0' && digit <= '9'   ? static_cast<unsigned>(digit - '0')
                           : digit >= 'a' && digit <= 'f' ? static_cast<unsigned>(digit - 'a' + 10)
                           : digit >= 'A' && digit <= 'F' ? static_cast<unsigned>(digit - 'A' + 10)
                                                          : 16;
    if (value == 16) {
      if (digit == ' ' || digit == ':' || digit == '\n' || digit == '\r' || digit == '\t') {
        continue;
      }
      return error("'{}' is no hexadecimal digit; give a packet's number, or its bytes as in 'ffff ffff ffff 0200'",
                   digit);
    }
    if (odd) {
      bytes.push_back(static_cast<std::uint8_t>(half << 4U | value));
    }
    half = value;
    odd = !odd;
  }
  if (odd || bytes.empty()) {
    return error("{} hexadecimal digits; two make a byte", 2 * bytes.size() + (odd ? 1 : 0));
  }
  constexpr std::size_t longest = 65'535;
  if (bytes.size() > longest) {
    return error("a frame of {} bytes; the longest is {}", bytes.size(), longest);
  }
  return bytes;
}

Result<TraceInput> packet_from_hex(const NodeFile& file, std::string_view digits, const std::string& port) {
  const auto chosen = choose(file, port, false);
  auto bytes = frame_from_hex(digits);
  if (!chosen || !bytes) {
    return std::unexpected(chosen ? bytes.error() : chosen.error());
  }
  return TraceInput{{std::move(*bytes), *chosen}, {}};
}

}  // namespace weir
