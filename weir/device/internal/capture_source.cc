#include <weir/device/internal/capture_source.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <unistd.h>

namespace weir::device_internal {

CaptureSource::~CaptureSource() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

void CaptureSource::fill(std::size_t n) {
  std::size_t held = view_.size();
  if (held != 0) {
    std::memmove(buffer_.data(), view_.data(), held);
  }
  while (held < n) {
    const ssize_t got = read(descriptor_, buffer_.data() + held, buffer_.size() - held);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      failure_ = errno;
    }
    if (got <= 0) {
      break;
    }
    held += static_cast<std::size_t>(got);
  }
  view_ = std::span(buffer_).first(held);
}

void CaptureSource::skip(std::uint64_t n) {
  while (n > 0) {
    if (view_.empty() && peek(1).empty()) {
      return;
    }
    const std::size_t part = std::min<std::uint64_t>(n, view_.size());
    view_ = view_.subspan(part);
    offset_ += part;
    n -= part;
  }
}

void CaptureSource::rewind() {
  offset_ = 0;
  failure_ = 0;
  view_ = whole_;
  if (descriptor_ >= 0 && lseek(descriptor_, 0, SEEK_SET) != 0) {
    failure_ = errno;
  }
}

}  // namespace weir::device_internal
