#pragma once
// Numbers as they stand on the wire: big-endian, at any alignment.

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace weir {

template <class T>
T load_big(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  if constexpr (std::endian::native == std::endian::little && sizeof(T) > 1) {
    value = std::byteswap(value);
  }
  return value;
}

template <class T>
void store_big(void* to, std::type_identity_t<T> value) {
  if constexpr (std::endian::native == std::endian::little && sizeof(T) > 1) {
    value = std::byteswap(value);
  }
  std::memcpy(to, &value, sizeof value);
}

/// A big-endian integer of alignment 1, for header structures.
template <class T>
class Big {
 public:
  Big() = default;
  Big(T value) { *this = value; }  // NOLINT: a number by any other byte order
  Big& operator=(T value) {
    store_big<T>(bytes_, value);
    return *this;
  }
  operator T() const { return load_big<T>(bytes_); }  // NOLINT

 private:
  std::uint8_t bytes_[sizeof(T)];
};

using Big16 = Big<std::uint16_t>;
using Big32 = Big<std::uint32_t>;
static_assert(sizeof(Big16) == 2 && alignof(Big16) == 1);
static_assert(sizeof(Big32) == 4 && alignof(Big32) == 1);

}  // namespace weir
