#pragma once
// A field's value, or its absence: a packet without a VLAN tag has no VLAN identifier, not identifier 0.

#include <weir/base/hash.h>

namespace weir {

/// Like std::optional, but plain data: it can be part of a table's key. An absent one equals only an absent one.
template <class T>
struct Maybe {
  T value{};
  bool present = false;

  constexpr Maybe() = default;
  constexpr Maybe(T v) : value(v), present(true) {}  // NOLINT: a value is a present value

  explicit operator bool() const { return present; }
  const T& operator*() const { return value; }
  const T* operator->() const { return &value; }
  [[nodiscard]] T value_or(T other) const { return present ? value : other; }

  bool operator==(const Maybe& other) const { return present == other.present && (!present || value == other.value); }
  [[nodiscard]] std::uint64_t hash(std::uint64_t seed) const {
    return present ? hash_value(value, seed + 1) : hash_value(std::uint64_t{0}, seed);
  }
};

}  // namespace weir
