// The reader of captures: any bytes end in records and at most one error, within the input.

#include <cstdlib>

#include <weir/device/pcap_reader.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto reader = weir::PcapReader::from_memory({data, size}, "fuzz.pcap");
  if (!reader) {
    return 0;
  }
  std::uint64_t first = 0;
  for (int pass = 0; pass < 2; ++pass) {
    std::uint64_t records = 0;
    std::uint8_t sum = 0;
    while (const auto* record = (*reader)->next()) {
      ++records;
      for (const std::uint8_t byte : record->bytes) {
        sum = static_cast<std::uint8_t>(sum + byte);
      }
      if (record->bytes.size() > size) {
        std::abort();
      }
    }
    static volatile std::uint8_t keep = 0;
    keep = static_cast<std::uint8_t>(keep + sum);  // the bytes must be read
    if ((*reader)->records() != records || (pass == 1 && records != first)) {
      std::abort();
    }
    first = records;
    (*reader)->rewind();
  }
  return 0;
}
