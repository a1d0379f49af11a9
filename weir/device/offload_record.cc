#include <weir/device/offload_record.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/base/descriptor.h>
#include <weir/device/internal/ethtool.h>
#include <weir/device/internal/far_end.h>
#include <weir/device/internal/net_namespace.h>

namespace weir {

using device_internal::FarEnd;
using device_internal::NamespaceId;

namespace {

constexpr std::string_view first_line = "weir offloads 1";

/// The next line of `text`, which is taken off it.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

/// The next word of `line`, which is taken off it.
std::string_view take_word(std::string_view& line) {
  const std::size_t end = line.find(' ');
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return word;
}

template <class T>
bool take_number(std::string_view& line, T& value) {
  const std::string_view word = take_word(line);
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
  return failure == std::errc() && end == word.data() + word.size();
}

bool take_place(std::string_view& line, InterfacePlace& place) {
  return take_number(line, place.namespace_device) && take_number(line, place.namespace_inode) &&
         take_number(line, place.index);
}

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> buffer;
  ssize_t size = 0;
  while ((size = read(descriptor, buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(size));
  }
  return text;
}

}  // namespace

std::string OffloadRecord::to_text() const {
  std::string text = fmt::format("{}\ninterface {} {} {} {} {}\n", first_line, place.namespace_device,
                                 place.namespace_inode, place.index, mac.to_string(), name);
  if (via) {
    text += fmt::format("via {} {} {}\n", via->namespace_device, via->namespace_inode, via->index);
  }
  for (const auto& [feature, on] : before) {
    text += fmt::format("before {} {}\n", on ? "on" : "off", feature);
  }
  return text + "end\n";
}

Result<OffloadRecord> OffloadRecord::parse(std::string_view text) {
  OffloadRecord record;
  bool complete = false;
  if (take_line(text) != first_line) {
    return error("this is no record of offload settings");
  }
  while (!text.empty() && !complete) {
    std::string_view line = take_line(text);
    const std::string_view what = take_word(line);
    bool good = true;
    if (what == "interface") {
      good = take_place(line, record.place);
      const auto mac = MacAddress::parse(take_word(line));
      good = good && mac;
      record.mac = mac.value_or(MacAddress{});
      record.name = line;
    } else if (what == "via") {
      good = take_place(line, record.via.emplace());
    } else if (what == "before") {
      const std::string_view value = take_word(line);
      good = (value == "on" || value == "off") && !line.empty();
      record.before.emplace_back(line, value == "on");
    } else {
      complete = good = what == "end";
    }
    if (!good) {
      return error("a line of this record of offload settings is damaged: {} ...", what);
    }
  }
  if (!complete) {
    return error("this record of offload settings breaks off");
  }
  return record;
}

namespace {

/// What is at a place now; nothing if the namespace or the interface is not there.
Result<std::optional<FarEnd>> look_up(const InterfacePlace& place) {
  const NamespaceId wanted{place.namespace_device, place.namespace_inode};
  Descriptor space = device_internal::find_namespace(
      [&](int descriptor) { return device_internal::namespace_id(descriptor) == wanted; });
  if (!space) {
    return std::nullopt;
  }
  auto netlink = device_internal::netlink_in(space.get());
  if (!netlink) {
    return std::unexpected(netlink.error());
  }
  auto link = netlink->link(place.index);
  if (!link) {
    return std::unexpected(link.error());
  }
  return *link ? std::optional<FarEnd>({std::move(space), std::move(**link)}) : std::nullopt;
}

}  // namespace

Result<bool> restore(const OffloadRecord& record) {
  // Numbers of namespaces and interfaces are used again, and every container has an eth0.
  const auto is_it = [&](const device_internal::Link& link) {
    return link.mac == record.mac ||
           (record.via && link.peer == record.via->index && link.name == record.name && link.peer != 0);
  };
  auto found = look_up(record.place);
  if (!found) {
    return std::unexpected(found.error());
  }
  if ((!*found || !is_it((*found)->link)) && record.via) {
    found = look_up(*record.via);
    if (!found) {
      return std::unexpected(found.error());
    }
    if (*found && (*found)->link.peer != 0) {
      auto netlink = device_internal::netlink_in((*found)->space.get());
      auto end = netlink ? device_internal::find_far_end(*netlink, (*found)->space.get(), (*found)->link)
                         : Result<FarEnd>(std::unexpected(netlink.error()));
      if (!end) {
        return std::unexpected(end.error());
      }
      *found = std::move(*end);
    }
  }
  if (!*found || !is_it((*found)->link)) {
    return false;
  }
  std::vector<device_internal::FeatureSetting> settings;
  settings.reserve(record.before.size());
  for (const auto& [feature, on] : record.before) {
    settings.push_back({feature, on});
  }
  const auto done = device_internal::in_namespace(
      (*found)->space.get(), [&] { return device_internal::set_features((*found)->link.name, settings); });
  return done ? Result<bool>(true) : std::unexpected(done.error());
}

namespace {

/// Calls work(path, record) for each record whose process is no more; it may remove the file.
template <class Work>
void for_each_left(const std::string& folder, Work work) {
  std::error_code failure;
  for (std::filesystem::directory_iterator at(folder, failure), end; at != end; at.increment(failure)) {
    const std::string path = at->path();
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status{};
    // Who changes settings holds its record's lock for as long as it lives. A file that is gone was undone meanwhile.
    if (file && flock(file.get(), LOCK_EX | LOCK_NB) == 0 && fstat(file.get(), &status) == 0 && status.st_nlink != 0) {
      work(path, OffloadRecord::parse(read_all(file.get())));
    }
  }
}

}  // namespace

UndoneOffloads undo_left_offloads(const std::string& folder) {
  UndoneOffloads undone;
  for_each_left(folder, [&](const std::string& path, const Result<OffloadRecord>& record) {
    if (record) {
      const auto restored = restore(*record);
      if (!restored) {
        undone.failed.push_back(fmt::format("offload settings of {} are not as they were found: {} (see {})",
                                            record->name, restored.error().message, path));
        return;
      }
      undone.done.push_back(*restored ? fmt::format("offload settings of {}, left changed by a process that was "
                                                    "killed, are as they were found again",
                                                    record->name)
                                      : fmt::format("{}, whose offload settings were left changed by a process that "
                                                    "was killed, has gone: nothing is to be undone",
                                                    record->name));
    }
    // Otherwise it was killed while it wrote, before it changed anything.
    if (unlink(path.c_str()) != 0) {
      undone.failed.push_back(fmt::format("{} cannot be removed: {}", path, std::strerror(errno)));
    }
  });
  return undone;
}

std::vector<std::string> left_offloads(const std::string& folder) {
  std::vector<std::string> left;
  for_each_left(folder, [&](const std::string& path, const Result<OffloadRecord>& record) {
    left.push_back(
        record ? fmt::format("offload settings of {} were left changed by a process that was killed", record->name)
               : fmt::format("{} was left unfinished by a process that was killed", path));
  });
  return left;
}

}  // namespace weir
