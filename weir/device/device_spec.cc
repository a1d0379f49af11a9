#include <weir/device/device_spec.h>

#include <algorithm>

#include <fmt/ranges.h>

#include <weir/base/nearest.h>
#include <weir/device/gateway.h>
#include <weir/device/memory.h>
#include <weir/device/pcap.h>
#include <weir/device/tap.h>
#include <weir/device/xdp.h>

namespace weir {

namespace {

const DeviceKind* find_kind(std::string_view name) {
  const auto& kinds = device_kinds();
  const auto found = std::ranges::find(kinds, name, &DeviceKind::name);
  return found == kinds.end() ? nullptr : &*found;
}

// "unknown KIND 'word', did you mean 'x'? There is: a, b, c"
template <class Range, class Member>
std::unexpected<Error> unknown(std::string_view what, std::string_view word, const Range& known, Member name) {
  std::vector<std::string_view> names;
  names.reserve(known.size());
  for (const auto& one : known) {
    names.emplace_back(one.*name);
  }
  const std::string hint = did_you_mean(word, names);
  return error("unknown {} '{}'{} known: {}", what, word, hint.empty() ? ";" : hint, fmt::join(names, ", "));
}

Result<std::unique_ptr<Device>> make(const DeviceSpec& spec) {
  const DeviceKind* kind = find_kind(spec.kind);
  if (kind == nullptr) {
    return unknown("kind of device", spec.kind, device_kinds(), &DeviceKind::name);
  }
  for (const auto& [key, value] : spec.options) {
    if (std::ranges::find(kind->options, key, &DeviceKind::Option::name) == kind->options.end()) {
      return unknown("option", key, kind->options, &DeviceKind::Option::name);
    }
  }
  return kind->make(spec);
}

}  // namespace

std::string DeviceSpec::to_string() const {
  std::string text = kind + ":" + argument;
  for (const auto& [name, value] : options) {
    text += fmt::format("{}{}={}", text.back() == ':' ? "" : ",", name, value);
  }
  return text;
}

Result<DeviceSpec> DeviceSpec::parse(std::string_view text) {
  DeviceSpec spec;
  const std::size_t colon = text.find(':');
  spec.kind = text.substr(0, colon);
  if (spec.kind.empty() || spec.kind.find_first_of(",=") != std::string::npos) {
    return error("no kind of device; write kind:argument,key=value as in 'pcap:in.pcap,loop=2'");
  }
  if (colon == std::string_view::npos || colon + 1 == text.size()) {
    return spec;
  }
  std::string_view rest = text.substr(colon + 1);
  const DeviceKind* kind = find_kind(spec.kind);
  bool argument = kind == nullptr || !kind->argument.empty() || rest.front() == ',';
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    if (argument) {
      spec.argument = part;
      argument = false;
    } else {
      const std::size_t equals = part.find('=');
      if (part.empty()) {
        return error("an empty option: two commas in a row, or one at the end");
      }
      if (equals == std::string_view::npos && spec.options.empty() && kind != nullptr && kind->argument.empty()) {
        return error("{} takes no argument, found '{}'; options are written key=value", spec.kind, part);
      }
      if (equals == std::string_view::npos || equals == 0 || equals + 1 == part.size()) {
        return error("'{}' is not an option; options are written key=value", part);
      }
      if (!spec.options.emplace(part.substr(0, equals), part.substr(equals + 1)).second) {
        return error("option '{}' is given twice", part.substr(0, equals));
      }
    }
    if (comma == std::string_view::npos) {
      return spec;
    }
    rest.remove_prefix(comma + 1);
  }
}

const std::vector<DeviceKind>& device_kinds() {
  static const std::vector<DeviceKind> kinds{memory_kind(), pcap_kind(), tap_kind(), xdp_kind(), gateway_kind()};
  return kinds;
}

Result<std::unique_ptr<Device>> make_device(std::string_view text) {
  const auto place = [&] { return fmt::format("device '{}'", text); };
  const auto spec = DeviceSpec::parse(text);
  if (!spec) {
    return std::unexpected(spec.error().at(place()));
  }
  auto device = make(*spec);
  if (!device) {
    return std::unexpected(device.error().at(place()));
  }
  return device;
}

}  // namespace weir
