#include <weir/device/pcap_reader.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/device/internal/capture_source.h>

namespace weir {

using device_internal::CaptureSource;

namespace {

constexpr std::uint32_t magic_micro = 0xa1b2c3d4;
constexpr std::uint32_t magic_nano = 0xa1b23c4d;
constexpr std::size_t file_header_bytes = 24;
constexpr std::size_t record_header_bytes = 16;

namespace block {
constexpr std::uint32_t interface = 1;
constexpr std::uint32_t old_packet = 2;
constexpr std::uint32_t simple_packet = 3;
constexpr std::uint32_t packet = 6;
constexpr std::uint32_t section = 0x0a0d0d0a;  // the same in both byte orders
constexpr std::uint32_t byte_order = 0x1a2b3c4d;
constexpr std::uint32_t least_bytes = 12;
}  // namespace block

namespace option {
constexpr std::uint16_t end = 0;
constexpr std::uint16_t time_resolution = 9;
constexpr std::uint16_t time_offset = 14;
}  // namespace option

constexpr std::uint16_t link_ethernet = 1;
constexpr std::size_t max_interfaces = 65'536;

std::string link_name(std::uint16_t type) {
  static constexpr std::array<std::pair<std::uint16_t, std::string_view>, 9> known{{
      {0, "BSD loopback"},
      {101, "raw IP"},
      {105, "802.11"},
      {113, "Linux cooked"},
      {127, "802.11 with radiotap"},
      {228, "raw IPv4"},
      {229, "raw IPv6"},
      {276, "Linux cooked v2"},
      {147, "private"},
  }};
  const auto* found = std::ranges::find(known, type, &std::pair<std::uint16_t, std::string_view>::first);
  return found == known.end() ? fmt::format("{}", type) : fmt::format("{} ({})", type, found->second);
}

std::string not_ethernet(std::uint16_t type) {
  return fmt::format("its link type is {}, and only Ethernet (1) can be read; capture on an Ethernet interface",
                     link_name(type));
}

std::string first_bytes(std::span<const std::uint8_t> bytes) {
  std::string text =
      fmt::format("it starts with {:02x}", fmt::join(bytes.first(std::min<std::size_t>(8, bytes.size())), " "));
  const auto starts = [&](std::initializer_list<std::uint8_t> with) {
    return bytes.size() >= with.size() && std::equal(with.begin(), with.end(), bytes.begin());
  };
  if (starts({0x1f, 0x8b})) {
    text += ", as gzip does: gunzip it first";
  } else if (starts({0x28, 0xb5, 0x2f, 0xfd})) {
    text += ", as zstd does: unzstd it first";
  }
  return text;
}

constexpr std::uint32_t padded(std::uint32_t length) { return (length + 3) & ~3U; }

}  // namespace

template <class T>
T PcapReader::load(const std::uint8_t* from) const {
  T value;
  std::memcpy(&value, from, sizeof value);
  return swapped_ ? std::byteswap(value) : value;
}

PcapReader::PcapReader(std::unique_ptr<CaptureSource> source, std::string name)
    : name_(std::move(name)), source_(std::move(source)) {}

PcapReader::~PcapReader() = default;

Result<std::unique_ptr<PcapReader>> PcapReader::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    const int reason = errno;
    const char* remedy = "";
    if (reason == ENOENT) {
      remedy = "; check the path, which starts from where the command was called unless it begins with '/'";
    } else if (reason == EACCES) {
      remedy = "; give yourself the right to read it";
    }
    return weir::error("cannot read {}: {}{}", path, std::strerror(reason), remedy);
  }
  std::unique_ptr<PcapReader> reader(new PcapReader(std::make_unique<CaptureSource>(descriptor), path));
  struct stat status{};
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    return weir::error("{} is {}; give a capture file", path,
                       S_ISDIR(status.st_mode) ? "a directory" : "not a regular file");
  }
  return start(std::move(reader));
}

Result<std::unique_ptr<PcapReader>> PcapReader::from_memory(std::span<const std::uint8_t> capture, std::string name) {
  return start(std::unique_ptr<PcapReader>(new PcapReader(std::make_unique<CaptureSource>(capture), std::move(name))));
}

Result<std::unique_ptr<PcapReader>> PcapReader::start(std::unique_ptr<PcapReader> reader) {
  if (!reader->read_header()) {
    return std::unexpected(*reader->error_);
  }
  return reader;
}

void PcapReader::rewind() {
  source_->rewind();
  passed_ = 0;
  records_ = 0;
  error_.reset();
  interfaces_.clear();
  read_header();
}

const PcapReader::Record* PcapReader::next() {
  if (error_) {
    return nullptr;
  }
  source_->skip(passed_);
  passed_ = 0;
  if (!(blocks_ ? next_block() : next_pcap())) {
    return nullptr;
  }
  ++records_;
  return &record_;
}

// Always false, so that it can be returned. Only the first damage counts.
bool PcapReader::damaged(std::string what) {
  if (source_->failure() != 0) {
    what = fmt::format("cannot be read: {}", std::strerror(source_->failure()));
  }
  error_ = Error{fmt::format("{}: byte {}: {}; {} packet{} before it {} read", name_, source_->offset(), what,
                             records_ == 0 ? std::string("no") : fmt::format("the {}", records_),
                             records_ == 1 ? "" : "s", records_ == 1 ? "was" : "were")};
  return false;
}

bool PcapReader::cut_off(std::uint64_t needed, std::uint64_t there) {
  return damaged(fmt::format("the file is cut off: the record needs {} bytes and {} are there", needed, there));
}

bool PcapReader::read_header() {
  const auto header = source_->peek(file_header_bytes);
  const auto refuse = [this](std::string_view what) {
    error_ = Error{fmt::format("{} {}", name_, what)};
    return false;
  };
  if (source_->failure() != 0) {
    return refuse(fmt::format("cannot be read: {}", std::strerror(source_->failure())));
  }
  if (header.empty()) {
    return refuse("is empty, not a capture; is whoever writes it done?");
  }
  std::uint32_t magic = 0;
  if (header.size() >= sizeof magic) {
    std::memcpy(&magic, header.data(), sizeof magic);
  }
  if (magic == block::section) {
    blocks_ = true;
    return enter_packet_block() || !error_;
  }
  const std::uint32_t other = std::byteswap(magic);
  if (magic != magic_micro && magic != magic_nano && other != magic_micro && other != magic_nano) {
    return refuse(fmt::format("is not a pcap or pcapng capture: {}", first_bytes(header)));
  }
  blocks_ = false;
  swapped_ = other == magic_micro || other == magic_nano;
  nanoseconds_ = magic == magic_nano || other == magic_nano;
  if (header.size() < file_header_bytes) {
    return refuse(fmt::format("is cut off in its file header: {} bytes of {}", header.size(), file_header_bytes));
  }
  const auto major = load<std::uint16_t>(&header[4]);
  if (major != 2) {
    return refuse(fmt::format("is pcap version {}, and only version 2 can be read", major));
  }
  // The upper half holds other things.
  const auto link = static_cast<std::uint16_t>(load<std::uint32_t>(&header[20]));
  if (link != link_ethernet) {
    return refuse(fmt::format("cannot be used: {}", not_ethernet(link)));
  }
  source_->skip(file_header_bytes);
  return true;
}

bool PcapReader::next_pcap() {
  const auto header = source_->peek(record_header_bytes);
  if (header.empty() && source_->failure() == 0) {
    return false;
  }
  if (header.size() < record_header_bytes) {
    return cut_off(record_header_bytes, header.size());
  }
  const auto captured = load<std::uint32_t>(&header[8]);
  if (captured > max_record) {
    return damaged(fmt::format("a record of {} bytes, and none is longer than {}", captured, max_record));
  }
  const std::uint64_t fraction = load<std::uint32_t>(&header[4]);
  record_.time =
      load<std::uint32_t>(&header[0]) * std::uint64_t{1'000'000'000} + (nanoseconds_ ? fraction : fraction * 1000);
  record_.original_length = load<std::uint32_t>(&header[12]);
  passed_ = record_header_bytes + captured;
  const auto whole = source_->peek(passed_);
  if (whole.size() < passed_) {
    return cut_off(passed_, whole.size());
  }
  record_.bytes = whole.subspan(record_header_bytes);
  return true;
}

// Passes over what is not a packet. True before a packet's block; false at the end or at damage.
bool PcapReader::enter_packet_block() {
  while (true) {
    const auto start = source_->peek(block::least_bytes);
    if (start.empty() && source_->failure() == 0) {
      return false;
    }
    if (start.size() < block::least_bytes) {
      return cut_off(block::least_bytes, start.size());
    }
    const auto type = load<std::uint32_t>(&start[0]);
    if (type == block::section) {
      if (!section_header()) {
        return false;
      }
      continue;
    }
    const auto length = load<std::uint32_t>(&start[4]);
    if (length < block::least_bytes || length % 4 != 0) {
      return damaged(fmt::format("a block of {} bytes cannot be", length));
    }
    const bool packet = type == block::packet || type == block::old_packet || type == block::simple_packet;
    if (!packet && type != block::interface) {
      if (!pass_block(length)) {
        return false;
      }
      continue;
    }
    if (length > CaptureSource::window) {
      return damaged(
          fmt::format("a block of {} bytes, and none of its kind is longer than {}", length, CaptureSource::window));
    }
    const auto whole = source_->peek(length);
    if (whole.size() < length) {
      return cut_off(length, whole.size());
    }
    const auto repeated = load<std::uint32_t>(&whole[length - 4]);
    if (repeated != length) {
      return damaged(fmt::format("a block begins with length {} and ends with {}", length, repeated));
    }
    if (packet) {
      return true;
    }
    if (!interface_block(whole)) {
      return false;
    }
    source_->skip(length);
  }
}

bool PcapReader::next_block() {
  if (!enter_packet_block()) {
    return false;
  }
  const auto start = source_->peek(8);
  const auto type = load<std::uint32_t>(&start[0]);
  const auto length = load<std::uint32_t>(&start[4]);
  passed_ = length;
  return packet_block(source_->peek(length), type);
}

// A block whose content does not matter; it may be longer than the window.
bool PcapReader::pass_block(std::uint64_t length) {
  const std::uint64_t from = source_->offset();
  source_->skip(length - 4);
  const auto end = source_->peek(4);
  if (end.size() < 4) {
    return cut_off(length, source_->offset() - from + end.size());
  }
  const auto repeated = load<std::uint32_t>(end.data());
  if (repeated != length) {
    return damaged(fmt::format("a block begins with length {} and ends with {}", length, repeated));
  }
  source_->skip(4);
  return true;
}

bool PcapReader::section_header() {
  constexpr std::uint32_t least = 28;
  const auto start = source_->peek(least);
  if (start.size() < least) {
    return cut_off(least, start.size());
  }
  swapped_ = false;
  const auto order = load<std::uint32_t>(&start[8]);
  swapped_ = std::byteswap(order) == block::byte_order;
  if (order != block::byte_order && !swapped_) {
    return damaged(fmt::format("a section without a byte order: {:08x}", order));
  }
  const auto length = load<std::uint32_t>(&start[4]);
  if (length < least || length % 4 != 0) {
    return damaged(fmt::format("a section header of {} bytes cannot be", length));
  }
  const auto major = load<std::uint16_t>(&start[12]);
  if (major != 1) {
    return damaged(fmt::format("a section of pcapng version {}, and only version 1 can be read", major));
  }
  interfaces_.clear();
  return pass_block(length);
}

bool PcapReader::interface_block(std::span<const std::uint8_t> block) {
  constexpr std::size_t options_at = 16;
  if (block.size() < options_at + 4) {
    return damaged(fmt::format("an interface block of {} bytes cannot be", block.size()));
  }
  if (interfaces_.size() == max_interfaces) {
    return damaged(fmt::format("a section has more than {} interfaces", max_interfaces));
  }
  const auto link = load<std::uint16_t>(&block[8]);
  if (link != link_ethernet) {
    return damaged(fmt::format("interface {} cannot be used: {}", interfaces_.size(), not_ethernet(link)));
  }
  Interface interface{.resolution = 6, .offset = 0, .snaplen = load<std::uint32_t>(&block[12])};
  auto options = block.subspan(options_at, block.size() - options_at - 4);
  while (options.size() >= 4) {
    const auto code = load<std::uint16_t>(&options[0]);
    const auto length = load<std::uint16_t>(&options[2]);
    if (code == option::end) {
      break;
    }
    if (4U + padded(length) > options.size()) {
      return damaged("an option runs past the end of its interface block");
    }
    if (code == option::time_resolution && length == 1) {
      interface.resolution = options[4];
    } else if (code == option::time_offset && length == 8) {
      interface.offset = static_cast<std::int64_t>(load<std::uint64_t>(&options[4]));
    }
    options = options.subspan(4U + padded(length));
  }
  interfaces_.push_back(interface);
  return true;
}

bool PcapReader::packet_block(std::span<const std::uint8_t> block, std::uint32_t type) {
  const bool simple = type == block::simple_packet;
  const std::uint32_t head = simple ? 12 : 28;
  const auto length = static_cast<std::uint32_t>(block.size());
  if (length < head + 4) {
    return damaged(fmt::format("a packet block of {} bytes cannot be", length));
  }
  std::uint32_t number = 0;
  if (type == block::packet) {
    number = load<std::uint32_t>(&block[8]);
  } else if (type == block::old_packet) {
    number = load<std::uint16_t>(&block[8]);
  }
  if (number >= interfaces_.size()) {
    return damaged(fmt::format("a packet of interface {}, and the section has {}", number, interfaces_.size()));
  }
  const Interface& interface = interfaces_[number];
  const std::uint32_t room = length - head - 4;
  std::uint32_t captured = 0;
  if (simple) {
    // It has no captured length: the packet's own, unless the interface cut it; and no time: the last one's stays.
    record_.original_length = load<std::uint32_t>(&block[8]);
    captured = record_.original_length;
    if (interface.snaplen != 0) {
      captured = std::min(captured, interface.snaplen);
    }
    if (records_ == 0) {
      record_.time = 0;
    }
  } else {
    captured = load<std::uint32_t>(&block[20]);
    record_.original_length = load<std::uint32_t>(&block[24]);
    const std::uint64_t ticks = std::uint64_t{load<std::uint32_t>(&block[12])} << 32U | load<std::uint32_t>(&block[16]);
    record_.time = time_of(interface, ticks);
  }
  if (captured > max_record) {
    return damaged(fmt::format("a packet of {} bytes, and none is longer than {}", captured, max_record));
  }
  if (captured > room) {
    return damaged(fmt::format("a packet of {} bytes in a block that has room for {}", captured, room));
  }
  record_.bytes = block.subspan(head, captured);
  return true;
}

Nanoseconds PcapReader::time_of(const Interface& interface, std::uint64_t ticks) {
  __extension__ using Wide = __int128;
  const unsigned exponent = interface.resolution & 0x7fU;
  Wide time = ticks;
  if ((interface.resolution & 0x80U) != 0) {
    time = time * 1'000'000'000 >> exponent;
  } else {
    for (unsigned i = exponent; i < 9; ++i) {
      time *= 10;
    }
    for (unsigned i = 9; i < exponent && time != 0; ++i) {
      time /= 10;
    }
  }
  time += static_cast<Wide>(interface.offset) * 1'000'000'000;
  constexpr Wide most = std::numeric_limits<Nanoseconds>::max();
  return static_cast<Nanoseconds>(std::clamp<Wide>(time, 0, most));
}

}  // namespace weir
