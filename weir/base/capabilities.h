#pragma once
// What a process may do beyond its user (capabilities(7)).

#include <cstdint>
#include <initializer_list>

#include <weir/base/error.h>

namespace weir {

/// A set of capabilities, a bit each, by the kernel's numbers.
class Capabilities {
 public:
  constexpr Capabilities() = default;
  constexpr explicit Capabilities(std::uint64_t bits) : bits_(bits) {}
  static constexpr Capabilities of(std::initializer_list<unsigned> numbers) {
    std::uint64_t bits = 0;
    for (const unsigned number : numbers) {
      bits |= std::uint64_t{1} << number;
    }
    return Capabilities(bits);
  }

  [[nodiscard]] constexpr std::uint64_t bits() const { return bits_; }
  [[nodiscard]] constexpr bool has(unsigned number) const { return (bits_ >> number & 1U) != 0; }
  constexpr Capabilities operator&(Capabilities other) const { return Capabilities(bits_ & other.bits_); }
  constexpr Capabilities operator|(Capabilities other) const { return Capabilities(bits_ | other.bits_); }
  constexpr bool operator==(const Capabilities&) const = default;

 private:
  std::uint64_t bits_ = 0;
};

/// Leaves the calling thread, and the threads that it makes later, with those capabilities of `kept` that it has, and
/// no way to others: the inheritable, ambient and bounding sets are emptied, and programs that it executes gain none
/// (no_new_privs). Other threads that run already keep what they have. An error leaves something as it was.
Result<> keep_capabilities(Capabilities kept);

}  // namespace weir
