#pragma once
// TCP (RFC 9293).

#include <weir/packet/bytes.h>

namespace weir {

namespace tcp_flag {
inline constexpr std::uint8_t fin = 0x01;
inline constexpr std::uint8_t syn = 0x02;
inline constexpr std::uint8_t rst = 0x04;
inline constexpr std::uint8_t psh = 0x08;
inline constexpr std::uint8_t ack = 0x10;
inline constexpr std::uint8_t urg = 0x20;
inline constexpr std::uint8_t ece = 0x40;
inline constexpr std::uint8_t cwr = 0x80;
/// Those that a connection's state goes by.
inline constexpr std::uint8_t control = syn | fin | rst | ack;
}  // namespace tcp_flag

struct TcpHeader {
  Big16 src_port;
  Big16 dst_port;
  Big32 sequence;
  Big32 acknowledgment;
  std::uint8_t data_offset;  ///< header length in units of 4 bytes (4 bits), reserved (4)
  std::uint8_t flags;
  Big16 window;
  Big16 checksum;
  Big16 urgent;

  [[nodiscard]] unsigned header_length() const { return (data_offset >> 4U) * 4U; }
};
static_assert(sizeof(TcpHeader) == 20);

}  // namespace weir
