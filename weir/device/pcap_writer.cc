#include <weir/device/pcap_writer.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weir {

namespace {

constexpr std::size_t buffer_bytes = 1U << 20U;

struct FileHeader {
  std::uint32_t magic = 0xa1b23c4d;  // nanoseconds, in this machine's byte order
  std::uint16_t major = 2;
  std::uint16_t minor = 4;
  std::uint32_t reserved[2] = {};
  std::uint32_t snaplen = 0;
  std::uint32_t link = 1;
};
static_assert(sizeof(FileHeader) == 24);

struct RecordHeader {
  std::uint32_t seconds;
  std::uint32_t nanoseconds;
  std::uint32_t captured;
  std::uint32_t original;
};
static_assert(sizeof(RecordHeader) == 16);

// Writes all of `bytes`; how many it got to, with errno if not all.
std::size_t write_all(int descriptor, const std::uint8_t* bytes, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t wrote = write(descriptor, bytes + done, size - done);
    if (wrote > 0) {
      done += static_cast<std::size_t>(wrote);
    } else if (wrote == 0 || errno != EINTR) {
      break;
    }
  }
  return done;
}

}  // namespace

Result<std::unique_ptr<PcapWriter>> PcapWriter::create(const std::string& path, std::uint32_t snaplen,
                                                       const std::string& input) {
  struct stat in{};
  struct stat out{};
  if (!input.empty() && stat(input.c_str(), &in) == 0 && stat(path.c_str(), &out) == 0 && in.st_dev == out.st_dev &&
      in.st_ino == out.st_ino) {
    return error("{} is read and written at once; write to another file", path);
  }
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    const int reason = errno;
    const char* remedy = "";
    if (reason == ENOENT) {
      remedy = "; make its folder first";
    } else if (reason == EACCES || reason == EISDIR || reason == EROFS) {
      remedy = "; give a file that you may write";
    }
    return error("cannot write {}: {}{}", path, std::strerror(reason), remedy);
  }
  std::unique_ptr<PcapWriter> writer(new PcapWriter(descriptor, path, snaplen));
  const FileHeader header{.snaplen = snaplen};
  if (write_all(descriptor, reinterpret_cast<const std::uint8_t*>(&header), sizeof header) < sizeof header) {
    return error("cannot write {}: {}; make room or write elsewhere", path, std::strerror(errno));
  }
  writer->bytes_in_file_ = sizeof header;
  return writer;
}

PcapWriter::PcapWriter(int descriptor, std::string path, std::uint32_t snaplen)
    : descriptor_(descriptor), path_(std::move(path)), snaplen_(snaplen) {
  buffer_.reserve(buffer_bytes);
}

PcapWriter::~PcapWriter() {
  write_out();
  close(descriptor_);
}

bool PcapWriter::write(const Packet& packet, Nanoseconds time) {
  const std::uint32_t captured = std::min(packet.length, snaplen_);
  if (buffer_.size() + sizeof(RecordHeader) + captured > buffer_bytes) {
    write_out();
  }
  if (error_) {
    return false;
  }
  constexpr std::uint64_t second = 1'000'000'000;
  const auto seconds = std::min<std::uint64_t>(time / second, std::numeric_limits<std::uint32_t>::max());
  const RecordHeader header{static_cast<std::uint32_t>(seconds), static_cast<std::uint32_t>(time % second), captured,
                            packet.length};
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&header);
  buffer_.insert(buffer_.end(), bytes, bytes + sizeof header);
  std::uint32_t left = captured;
  for (const Packet* segment = &packet; segment != nullptr && left > 0; segment = segment->next) {
    const std::uint32_t part = std::min<std::uint32_t>(left, segment->segment);
    buffer_.insert(buffer_.end(), segment->data, segment->data + part);
    left -= part;
  }
  ends_.push_back(buffer_.size());
  return true;
}

void PcapWriter::write_out() {
  if (error_ || buffer_.empty()) {
    return;
  }
  const std::size_t written = write_all(descriptor_, buffer_.data(), buffer_.size());
  if (written < buffer_.size()) {
    give_up(written, errno);
  } else {
    bytes_in_file_ += buffer_.size();
    records_in_file_ += ends_.size();
  }
  buffer_.clear();
  ends_.clear();
}

void PcapWriter::give_up(std::size_t written, int reason) {
  const auto whole = static_cast<std::size_t>(std::ranges::upper_bound(ends_, written) - ends_.begin());
  bytes_in_file_ += whole == 0 ? 0 : ends_[whole - 1];
  records_in_file_ += whole;
  error_ =
      Error{fmt::format("cannot write {}: {}; make room or write elsewhere. It holds the first {} packets, {} more "
                        "were accepted and lost",
                        path_, std::strerror(reason), records_in_file_, ends_.size() - whole)};
  if (ftruncate(descriptor_, static_cast<off_t>(bytes_in_file_)) != 0 && errno != EINVAL) {  // EINVAL: not a file
    error_->message += fmt::format("; its last record is cut off ({})", std::strerror(errno));
  }
}

Result<> PcapWriter::flush() {
  write_out();
  if (error_) {
    return std::unexpected(*error_);
  }
  return {};
}

}  // namespace weir
