// The parser: never reads past the frame (AddressSanitizer sees the heap block's end), and finds what the reference
// engine's parser finds.

#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include <weir/engine/reference/headers.h>
#include <weir/packet/parse.h>

namespace {

// The VNI of the tunnel that the frame is to have come out of; 0 if it came out of none.
void compare(std::span<const std::uint8_t> bytes, std::uint32_t vni) {
  const auto block = std::make_unique_for_overwrite<std::uint8_t[]>(bytes.size());
  std::memcpy(block.get(), bytes.data(), bytes.size());
  weir::Packet packet{};
  packet.data = block.get();
  packet.length = static_cast<std::uint32_t>(bytes.size());
  packet.segment = static_cast<std::uint16_t>(bytes.size());
  packet.tunnel = vni != 0 ? 1 : 0;
  packet.vni = vni;
  weir::Key key;
  weir::parse(packet, key);

  weir::reference::Frame frame;
  frame.bytes.assign(bytes.begin(), bytes.end());
  frame.tunnel = vni != 0;
  frame.vni = vni;
  const auto headers = weir::reference::parse(frame);
  if (!(weir::reference::key_of(frame, headers) == key) || headers.layout != packet.layout || headers.l3 != packet.l3 ||
      headers.l4 != packet.l4 || headers.payload != packet.payload ||
      weir::reference::l3_length(frame, headers) != weir::l3_length(packet)) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > 2000) {
    return 0;
  }
  compare({data, size}, 0);
  compare({data, size}, 0xabcdef);
  return 0;
}
