#pragma once
// A small seeded generator (xoshiro-style quality is not needed; SplitMix64 is): same seed, same numbers, anywhere.

#include <cstdint>

namespace weir {

/// SplitMix64. Satisfies UniformRandomBitGenerator. Not for secrets. One thread at a time.
class Random {
 public:
  using result_type = std::uint64_t;

  explicit Random(std::uint64_t seed) : state_(seed) {}

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }

  result_type operator()() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }

  /// A number in [0, limit); `limit` > 0. The bias for limits far below 2^32 does not matter to its users.
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>((((*this)() >> 32U) * limit) >> 32U); }

  /// True with probability 1/n.
  bool one_in(std::uint32_t n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace weir
