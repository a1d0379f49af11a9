#include <weir/engine/reference/checksums.h>

namespace weir::reference {

namespace {

std::uint16_t inverse(std::uint16_t word) { return static_cast<std::uint16_t>(~word); }

std::uint16_t word(std::span<const std::uint8_t> bytes, std::size_t at) {
  const unsigned low = at + 1 < bytes.size() ? bytes[at + 1] : 0;
  return static_cast<std::uint16_t>(bytes[at] << 8U | low);
}

}  // namespace

std::uint16_t add(std::uint16_t a, std::uint16_t b) {
  const std::uint32_t total = std::uint32_t{a} + b;
  return static_cast<std::uint16_t>((total & 0xffffU) + (total >> 16U));
}

std::uint16_t sum(std::span<const std::uint8_t> bytes) {
  std::uint16_t total = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    total = add(total, word(bytes, i));
  }
  return total;
}

std::uint16_t updated(std::uint16_t checksum, std::span<const std::uint8_t> before,
                      std::span<const std::uint8_t> after) {
  std::uint16_t total = inverse(checksum);
  for (std::size_t i = 0; i < before.size(); i += 2) {
    total = add(add(total, inverse(word(before, i))), word(after, i));
  }
  return inverse(total);
}

std::uint32_t crc32c(std::span<const std::uint8_t> bytes) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 1U) != 0 ? crc >> 1U ^ 0x82f63b78U : crc >> 1U;
    }
  }
  return ~crc;
}

}  // namespace weir::reference
