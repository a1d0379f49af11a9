#pragma once
// Writes captures: pcap with nanoseconds, of Ethernet.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <weir/base/clock.h>
#include <weir/base/error.h>
#include <weir/packet/packet.h>

namespace weir {

/// What is in the file is a valid capture at any time after `create`: only whole records are written, and a record that
/// did not fit on the disk is taken off again. One thread at a time.
class PcapWriter {
 public:
  static constexpr std::uint32_t max_snaplen = 262'144;

  /// Creates `path`, or replaces what it held; `input`, if not empty, is a file that it must not be. Of each frame
  /// `snaplen` bytes are kept, 1 to max_snaplen.
  static Result<std::unique_ptr<PcapWriter>> create(const std::string& path, std::uint32_t snaplen = max_snaplen,
                                                    const std::string& input = {});
  /// Writes what is buffered.
  ~PcapWriter();

  /// Adds `packet`, captured at `time` (since 1970). False once the file could not be written.
  bool write(const Packet& packet, Nanoseconds time);

  /// Writes out what is buffered. Once it failed it tells that error for ever.
  Result<> flush();

  [[nodiscard]] bool failed() const { return error_.has_value(); }

 private:
  PcapWriter(int descriptor, std::string path, std::uint32_t snaplen);
  void write_out();
  void give_up(std::size_t written, int reason);

  int descriptor_;
  std::string path_;
  std::uint32_t snaplen_;
  std::vector<std::uint8_t> buffer_;  // whole records
  std::vector<std::size_t> ends_;     // of the records in buffer_
  std::uint64_t bytes_in_file_ = 0;
  std::uint64_t records_in_file_ = 0;
  std::optional<Error> error_;
};

}  // namespace weir
