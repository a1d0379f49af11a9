#pragma once
// The reference engine's parser: where the headers of a frame are, as the RFCs and ParseVerdict define it.

#include <optional>

#include <weir/engine/reference/frame.h>
#include <weir/packet/key.h>

namespace weir::reference {

/// Offsets are from the start of the frame.
struct Headers {
  Layout layout;
  std::size_t l3 = 0;         ///< behind the Ethernet header and its tags; 0 without Ethernet
  std::size_t l3_end = 0;     ///< of the L3 packet: where its header says, or the end of the frame
  std::size_t l4 = 0;         ///< what follows the L3 headers; 0 if that was not reached
  std::size_t payload = 0;    ///< behind the last header that was read
  std::uint16_t type = 0;     ///< EtherType behind all tags
  std::uint8_t protocol = 0;  ///< of IP: what follows the last header that was read
};

/// `vxlan`: whether a UDP packet is VXLAN, where that is known; otherwise its port and its flags say it. It is known
/// while a stage decides: the packet stays what it was found to be, even if its port is rewritten.
Headers parse(const Frame& frame, std::optional<bool> vxlan = {});

/// The fields that rules match, `stage` left at 0. `headers` are the frame's.
Key key_of(const Frame& frame, const Headers& headers);

/// What must fit a link's MTU: the length of the L3 packet as its header has it, or all that follows the Ethernet
/// header. Of a frame that awaits segmentation, that of one segment.
std::uint32_t l3_length(const Frame& frame, const Headers& headers);

/// A big-endian number of 2 bytes in the frame.
inline std::uint16_t word_at(const Frame& frame, std::size_t at) {
  return static_cast<std::uint16_t>(frame.bytes[at] << 8U | frame.bytes[at + 1]);
}
inline void put_word(Frame& frame, std::size_t at, std::uint16_t value) {
  frame.bytes[at] = static_cast<std::uint8_t>(value >> 8U);
  frame.bytes[at + 1] = static_cast<std::uint8_t>(value);
}

/// IPv4 TOS or IPv6 traffic class. The frame is IP.
std::uint8_t tos_of(const Frame& frame, const Headers& headers);

}  // namespace weir::reference
