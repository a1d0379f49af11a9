#include <weir/control/device_use.h>

#include <algorithm>
#include <cstring>

#include <unistd.h>

#include <weir/device/pcap_reader.h>
#include <weir/device/xdp.h>

namespace weir {

namespace {

std::string option(const DeviceSpec& spec, const char* key) {
  const auto place = spec.options.find(key);
  return place == spec.options.end() ? std::string() : place->second;
}

std::filesystem::path resolved(const std::string& path) {
  std::error_code failure;
  auto canonical = std::filesystem::weakly_canonical(std::filesystem::absolute(path), failure);
  return failure ? std::filesystem::path(path) : canonical;
}

bool is_special(const std::string& path) {
  std::error_code failure;
  const auto status = std::filesystem::status(path, failure);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
}

}  // namespace

DeviceSpec below(DeviceSpec spec, const std::filesystem::path& folder) {
  if (spec.kind == "pcap") {
    if (!spec.argument.empty()) {
      spec.argument = folder / spec.argument;
    }
    if (const auto out = spec.options.find("out"); out != spec.options.end()) {
      out->second = folder / out->second;
    }
  }
  return spec;
}

std::vector<DeviceUse> uses_of(const DeviceSpec& spec) {
  std::vector<DeviceUse> uses;
  if (spec.kind == "pcap") {
    if (!spec.argument.empty()) {
      uses.push_back({fmt::format("the file {}", resolved(spec.argument).string()), false});
    }
    if (const std::string out = option(spec, "out"); !out.empty() && !is_special(out)) {
      uses.push_back({fmt::format("the file {}", resolved(out).string()), true});
    }
  } else if (!spec.argument.empty()) {
    uses.push_back({fmt::format("the device {}:{}", spec.kind, spec.argument), true});
  }
  return uses;
}

DeviceInput input_of(const DeviceSpec& spec) {
  if (spec.kind == "pcap") {
    return spec.argument.empty()           ? DeviceInput::none
           : spec.options.contains("rate") ? DeviceInput::timed
                                           : DeviceInput::capture;
  }
  if (spec.kind == "gateway") {
    return DeviceInput::none;
  }
  return spec.kind == "memory" &&
                 (spec.options.empty() || (spec.options.size() == 1 && spec.options.contains("record")))
             ? DeviceInput::none
             : DeviceInput::timed;
}

Result<> try_device(const DeviceSpec& spec) {
  if (spec.kind == "xdp") {
    return find_xdp_interface(spec.argument);
  }
  if (spec.kind != "pcap") {
    return {};
  }
  if (!spec.argument.empty()) {
    if (const auto reader = PcapReader::open(spec.argument); !reader) {
      return std::unexpected(reader.error());
    }
  }
  if (const std::string out = option(spec, "out"); !out.empty()) {
    const std::filesystem::path folder = std::filesystem::absolute(out).parent_path();
    std::error_code failure;
    if (std::filesystem::is_directory(out, failure)) {
      return error("cannot write {}: it is a directory; give a file that you may write", out);
    }
    const bool there = access(out.c_str(), F_OK) == 0;
    if (access(there ? out.c_str() : folder.c_str(), W_OK) != 0) {
      return error("cannot write {}: {}; {}", out, std::strerror(errno),
                   errno == ENOENT ? "make its folder first" : "give a file that you may write");
    }
  }
  return {};
}

Result<std::unique_ptr<Device>> make_device(const DeviceSpec& spec) {
  const auto& kinds = device_kinds();
  const auto kind = std::ranges::find(kinds, spec.kind, &DeviceKind::name);
  if (kind == kinds.end()) {
    return error("unknown kind of device '{}'", spec.kind);
  }
  return kind->make(spec);
}

}  // namespace weir
