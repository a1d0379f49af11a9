// The parser: never reads past the frame (AddressSanitizer sees the heap block's end), and finds what the reference
// engine's parser finds.

#include <cstdlib>
#include <cstring>
#include <memory>

#include <weir/engine/reference/headers.h>
#include <weir/packet/parse.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > 2000) {
    return 0;
  }
  const auto block = std::make_unique_for_overwrite<std::uint8_t[]>(size);
  std::memcpy(block.get(), data, size);
  weir::Packet packet{};
  packet.data = block.get();
  packet.length = static_cast<std::uint32_t>(size);
  packet.segment = static_cast<std::uint16_t>(size);
  weir::Key key;
  weir::parse(packet, key);

  weir::reference::Frame frame;
  frame.bytes.assign(data, data + size);
  const auto headers = weir::reference::parse(frame);
  if (!(weir::reference::key_of(frame, headers) == key) || headers.l3 != packet.l3 || headers.l4 != packet.l4 ||
      weir::reference::l3_length(frame, headers) != weir::l3_length(packet)) {
    std::abort();
  }
  return 0;
}
