#include <weir/flow/predicate.h>

namespace weir {

namespace {

// The first `bits` bits of a value.
FieldValue leading(unsigned bits) {
  FieldValue mask;
  for (unsigned i = 0; i < 16 && bits > 0; ++i) {
    const unsigned part = bits < 8 ? bits : 8;
    mask.bytes[i] = static_cast<std::uint8_t>(0xff00U >> part);
    bits -= part;
  }
  return mask;
}

}  // namespace

Tested Below::test(const FieldValue& value, unsigned bytes) const {
  std::uint64_t number = 0;
  for (unsigned i = 0; i < bytes; ++i) {
    number = number << 8U | value.bytes[i];
  }
  const bool holds = number < limit;
  // The shortest prefix of the number whose whole range lies on one side of the limit.
  const unsigned width = 8 * bytes;
  for (unsigned bits = 0; bits < width; ++bits) {
    const std::uint64_t rest = width - bits < 64 ? (std::uint64_t{1} << (width - bits)) - 1 : ~std::uint64_t{0};
    const bool lowest = (number & ~rest) < limit;
    const bool highest = (number | rest) < limit;
    if (lowest == highest) {
      return {holds, leading(bits)};
    }
  }
  return {holds, leading(width)};
}

Tested Equals::test(const FieldValue& value, unsigned bytes) const {
  if (value.v6 != wanted.v6) {
    return {false, {}};  // told apart by the layout
  }
  for (unsigned i = 0; i < bytes; ++i) {
    const auto difference = static_cast<std::uint8_t>(value.bytes[i] ^ wanted.bytes[i]);
    if (difference != 0) {
      FieldValue proof;
      proof.bytes[i] = std::bit_floor(difference);
      return {false, proof};
    }
  }
  return {true, leading(8 * bytes)};
}

Tested Multicast::test(const FieldValue& value, unsigned bytes) const {
  FieldValue proof;
  if (bytes == 6) {
    proof.bytes[0] = 0x01;
    return {(value.bytes[0] & 1U) != 0, proof};
  }
  if (value.v6) {
    proof.bytes[0] = 0xff;
    return {value.bytes[0] == 0xff, proof};
  }
  proof.bytes[0] = 0xf0;
  return {(value.bytes[0] & 0xf0U) == 0xe0, proof};
}

Tested Inside::test(const FieldValue& value, unsigned bytes) const {
  (void)bytes;
  if (value.v6 != prefix.address.v6) {
    return {false, {}};  // told apart by the layout
  }
  for (unsigned bit = 0; bit < prefix.length; ++bit) {
    const auto one = static_cast<std::uint8_t>(0x80U >> bit % 8);
    if (((value.bytes[bit / 8] ^ prefix.address.bytes[bit / 8]) & one) != 0) {
      return {false, leading(bit + 1)};
    }
  }
  return {true, leading(prefix.length)};
}

}  // namespace weir
