#pragma once
// Reads captures: pcap (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng), of Ethernet.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <weir/base/clock.h>
#include <weir/base/error.h>

namespace weir {

namespace device_internal {
class CaptureSource;
}

/// pcap in both byte orders, with micro- and nanoseconds; pcapng in both byte orders, with any number of sections and
/// interfaces and any time resolution; blocks that are not packets are passed over. Any input is safe: what is broken
/// ends the capture with an error that names file, offset and how many packets before it were good. One thread at a
/// time.
class PcapReader {
 public:
  /// No record holds more bytes than this (tcpdump's limit); a larger number is taken for damage.
  static constexpr std::uint32_t max_record = 262'144;

  struct Record {
    std::span<const std::uint8_t> bytes;  ///< as many as were captured
    Nanoseconds time;                     ///< since 1970; what does not fit is the nearest that does
    std::uint32_t original_length;        ///< on the wire
  };

  /// A regular file. Errors: it cannot be read, is empty, is no capture, or does not hold Ethernet.
  static Result<std::unique_ptr<PcapReader>> open(const std::string& path);
  /// A capture in memory, which must outlive the reader. Errors call it `name`.
  static Result<std::unique_ptr<PcapReader>> from_memory(std::span<const std::uint8_t> capture, std::string name);
  ~PcapReader();

  /// The next record, valid until the next call; nullptr at the end, and from the first damaged record on: then `error`
  /// is set.
  const Record* next();

  /// Back to the first record; errors are forgotten.
  void rewind();

  /// Records that `next` gave since the start.
  [[nodiscard]] std::uint64_t records() const { return records_; }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  struct Interface {
    std::uint8_t resolution;  // of times: 10^-n, or 2^-n with the upper bit set
    std::int64_t offset;      // seconds to add
    std::uint32_t snaplen;    // 0: none
  };

  PcapReader(std::unique_ptr<device_internal::CaptureSource> source, std::string name);
  static Result<std::unique_ptr<PcapReader>> start(std::unique_ptr<PcapReader> reader);

  template <class T>
  [[nodiscard]] T load(const std::uint8_t* from) const;

  bool read_header();
  bool next_pcap();
  bool next_block();
  bool enter_packet_block();
  bool section_header();
  bool interface_block(std::span<const std::uint8_t> block);
  bool packet_block(std::span<const std::uint8_t> block, std::uint32_t type);
  bool pass_block(std::uint64_t length);
  [[nodiscard]] static Nanoseconds time_of(const Interface& interface, std::uint64_t ticks);
  bool cut_off(std::uint64_t needed, std::uint64_t there);
  bool damaged(std::string what);

  std::string name_;
  std::unique_ptr<device_internal::CaptureSource> source_;
  bool blocks_ = false;       // pcapng
  bool swapped_ = false;      // not this machine's byte order
  bool nanoseconds_ = false;  // pcap
  std::uint64_t passed_ = 0;  // bytes of the current record, to skip before the next
  std::vector<Interface> interfaces_;
  Record record_{};
  std::uint64_t records_ = 0;
  std::optional<Error> error_;
};

}  // namespace weir
