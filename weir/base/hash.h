#pragma once
// Hashing of plain values: integers, enums, arrays, and aggregates of up to six members of those.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace weir {

/// Multiplies to 128 bits and folds the halves: the mixing step of every hash in Weir, available in BPF as well.
inline std::uint64_t multiply_fold(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
}

namespace hash_detail {

struct Anything {
  template <class T>
  operator T() const;  // NOLINT: implicit by design, declared only
};

template <class T, std::size_t... I>
constexpr bool has_members(std::index_sequence<I...>) {
  return requires { T{((void)I, Anything{})...}; };
}

template <class T>
constexpr std::size_t member_count() {
  if constexpr (has_members<T>(std::make_index_sequence<6>{})) {
    return 6;
  } else if constexpr (has_members<T>(std::make_index_sequence<5>{})) {
    return 5;
  } else if constexpr (has_members<T>(std::make_index_sequence<4>{})) {
    return 4;
  } else if constexpr (has_members<T>(std::make_index_sequence<3>{})) {
    return 3;
  } else if constexpr (has_members<T>(std::make_index_sequence<2>{})) {
    return 2;
  } else {
    return 1;
  }
}

}  // namespace hash_detail

/// Mixes `value` into `seed`. Equal values give equal hashes; padding is never read.
template <class T>
std::uint64_t hash_value(const T& value, std::uint64_t seed) {
  if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    return multiply_fold(static_cast<std::uint64_t>(value) ^ seed, 0x9e3779b97f4a7c15U);
  } else if constexpr (requires {
                         value.begin();
                         value.end();
                       }) {
    for (const auto& element : value) {
      seed = hash_value(element, seed);
    }
    return seed;
  } else if constexpr (requires { value.hash(seed); }) {
    return value.hash(seed);
  } else {
    static_assert(std::is_aggregate_v<T>, "give the key type a `hash(seed)` member");
    const auto all = [&seed](const auto&... member) {
      ((seed = hash_value(member, seed)), ...);
      return seed;
    };
    constexpr std::size_t members = hash_detail::member_count<T>();
    if constexpr (members == 6) {
      const auto& [a, b, c, d, e, f] = value;
      return all(a, b, c, d, e, f);
    } else if constexpr (members == 5) {
      const auto& [a, b, c, d, e] = value;
      return all(a, b, c, d, e);
    } else if constexpr (members == 4) {
      const auto& [a, b, c, d] = value;
      return all(a, b, c, d);
    } else if constexpr (members == 3) {
      const auto& [a, b, c] = value;
      return all(a, b, c);
    } else if constexpr (members == 2) {
      const auto& [a, b] = value;
      return all(a, b);
    } else {
      const auto& [a] = value;
      return all(a);
    }
  }
}

}  // namespace weir
