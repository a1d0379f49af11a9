#pragma once
// Captures for tests, made byte by byte in either byte order.

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace weir::device_testing {

/// Writes numbers in one byte order.
class CaptureBuilder {
 public:
  using Bytes = std::vector<std::uint8_t>;

  explicit CaptureBuilder(bool swapped) : swapped_(swapped) {}

  template <class T>
  CaptureBuilder& put(std::type_identity_t<T> value) {
    const T stored = swapped_ ? std::byteswap(value) : value;
    const auto* at = reinterpret_cast<const std::uint8_t*>(&stored);
    bytes_.insert(bytes_.end(), at, at + sizeof stored);
    return *this;
  }
  CaptureBuilder& u16(std::uint16_t value) { return put<std::uint16_t>(value); }
  CaptureBuilder& u32(std::uint32_t value) { return put<std::uint32_t>(value); }
  CaptureBuilder& raw(std::span<const std::uint8_t> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  CaptureBuilder& align() {
    bytes_.resize((bytes_.size() + 3) / 4 * 4);
    return *this;
  }

  // pcap

  CaptureBuilder& pcap_header(bool nanoseconds, std::uint32_t link = 1, std::uint16_t major = 2) {
    return u32(nanoseconds ? 0xa1b23c4d : 0xa1b2c3d4).u16(major).u16(4).u32(0).u32(0).u32(65'535).u32(link);
  }
  CaptureBuilder& record(std::uint32_t seconds, std::uint32_t fraction, const Bytes& frame) {
    const auto length = static_cast<std::uint32_t>(frame.size());
    return u32(seconds).u32(fraction).u32(length).u32(length).raw(frame);
  }

  // pcapng

  CaptureBuilder& block(std::uint32_t type, const CaptureBuilder& body) {
    const auto length = static_cast<std::uint32_t>((body.bytes_.size() + 3) / 4 * 4 + 12);
    return u32(type).u32(length).raw(body.bytes_).align().u32(length);
  }
  [[nodiscard]] CaptureBuilder body() const { return CaptureBuilder(swapped_); }

  CaptureBuilder& section(std::uint16_t major = 1) {
    return block(0x0a0d0d0a, body().u32(0x1a2b3c4d).u16(major).u16(0).u32(~0U).u32(~0U));
  }
  CaptureBuilder& interface(std::uint16_t link = 1, const CaptureBuilder& options = CaptureBuilder(false),
                            std::uint32_t snaplen = 0) {
    return block(1, body().u16(link).u16(0).u32(snaplen).raw(options.bytes_));
  }
  CaptureBuilder& option(std::uint16_t code, std::span<const std::uint8_t> value) {
    return u16(code).u16(static_cast<std::uint16_t>(value.size())).raw(value).align();
  }
  CaptureBuilder& enhanced(std::uint32_t interface, std::uint64_t ticks, const Bytes& frame) {
    const auto length = static_cast<std::uint32_t>(frame.size());
    return block(6, body()
                        .u32(interface)
                        .u32(static_cast<std::uint32_t>(ticks >> 32U))
                        .u32(static_cast<std::uint32_t>(ticks))
                        .u32(length)
                        .u32(length)
                        .raw(frame));
  }
  CaptureBuilder& simple(std::uint32_t original, const Bytes& frame) {
    return block(3, body().u32(original).raw(frame));
  }
  CaptureBuilder& old(std::uint16_t interface, std::uint64_t ticks, const Bytes& frame) {
    const auto length = static_cast<std::uint32_t>(frame.size());
    return block(2, body()
                        .u16(interface)
                        .u16(0)
                        .u32(static_cast<std::uint32_t>(ticks >> 32U))
                        .u32(static_cast<std::uint32_t>(ticks))
                        .u32(length)
                        .u32(length)
                        .raw(frame));
  }

  [[nodiscard]] const Bytes& bytes() const { return bytes_; }

 private:
  bool swapped_;
  Bytes bytes_;
};

}  // namespace weir::device_testing
