#pragma once
// A hash table of rules that grows without standing still.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

namespace weir {

/// A rule's place in its cache.
using RuleIndex = std::uint32_t;
inline constexpr RuleIndex no_rule = ~RuleIndex{0};

/// Rules by the tag of their hash: open addressing, at most half full. What a rule is compared by is the caller's.
/// Growing takes a larger array and moves a few rules over with each insertion; until all are, both arrays are
/// searched. (Moving 65,536 rules at once takes a millisecond, in which a port at 10 Mpps loses 10,000 packets.) One
/// thread.
class RuleSlots {
 public:
  struct Slot {
    std::uint32_t tag;  ///< 0: empty
    RuleIndex rule;
  };

  /// Never 0. Its bits also say where a rule stands, so that moving one needs nothing but its slot.
  static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32U) | 1U; }

  RuleSlots() { clear(); }

  void clear() {
    now_ = Array(least);
    before_ = {};
    count_ = 0;
  }

  void prefetch(std::uint32_t tag) const { __builtin_prefetch(&now_.slots[now_.home(tag)]); }

  /// The first slot with this tag whose rule is `wanted`, or nullptr.
  template <class Wanted>
  [[nodiscard]] Slot* find(std::uint32_t tag, Wanted wanted) const {
    Slot* found = find_in(now_, tag, wanted);
    if (found == nullptr && before_.size != 0) [[unlikely]] {
      found = find_in(before_, tag, wanted);
    }
    return found;
  }

  void insert(std::uint32_t tag, RuleIndex rule) {
    if (before_.size == 0 && (count_ + 1) * 2 > now_.size) {
      before_ = std::exchange(now_, Array(now_.size * 2));
      moved_ = 0;
    }
    move_some();
    place(tag, rule);
    ++count_;
  }

  /// `slot`: from `find`, with nothing done in between.
  void erase(Slot* slot) {
    --count_;
    if (slot < now_.slots.get() || slot >= now_.slots.get() + now_.size) {
      slot->tag = gone;  // those behind it must still be found
      return;
    }
    // Closes the gap with whatever may stand nearer to its place.
    std::size_t at = static_cast<std::size_t>(slot - now_.slots.get());
    for (std::size_t next = now_.after(at); now_.slots[next].tag != 0; next = now_.after(next)) {
      const std::size_t wrap = now_.size - 1;
      if (((next - now_.home(now_.slots[next].tag)) & wrap) >= ((next - at) & wrap)) {
        now_.slots[at] = now_.slots[next];
        at = next;
      }
    }
    now_.slots[at] = {};
  }

 private:
  static constexpr std::size_t least = 16;
  static constexpr std::uint32_t gone = 2;  // no tag is even
  /// The new array has room for as many again as were moved into it: two slots at a time would do.
  static constexpr std::size_t moved_at_a_time = 8;

  struct Free {
    void operator()(Slot* slots) const { std::free(slots); }
  };
  struct Array {
    Array() = default;
    // From calloc, whose fresh pages are zero without being written.
    explicit Array(std::size_t wanted)
        : slots(static_cast<Slot*>(std::calloc(wanted, sizeof(Slot)))), size(slots != nullptr ? wanted : 0) {
      if (slots == nullptr) {
        throw std::bad_alloc();
      }
    }
    [[nodiscard]] std::size_t home(std::uint32_t tag) const { return (tag >> 1U) & (size - 1); }
    [[nodiscard]] std::size_t after(std::size_t at) const { return (at + 1) & (size - 1); }

    std::unique_ptr<Slot[], Free> slots;
    std::size_t size = 0;  // a power of two
  };

  template <class Wanted>
  static Slot* find_in(const Array& array, std::uint32_t tag, Wanted& wanted) {
    for (std::size_t at = array.home(tag);; at = array.after(at)) {
      Slot& slot = array.slots[at];
      if (slot.tag == 0) {
        return nullptr;
      }
      if (slot.tag == tag && wanted(slot.rule)) {
        return &slot;
      }
    }
  }

  void place(std::uint32_t tag, RuleIndex rule) {
    std::size_t at = now_.home(tag);
    while (now_.slots[at].tag != 0) {
      at = now_.after(at);
    }
    now_.slots[at] = {tag, rule};
  }

  void move_some() {
    for (std::size_t i = 0; i < moved_at_a_time && before_.size != 0; ++i) {
      Slot& slot = before_.slots[moved_];
      if (slot.tag != 0 && slot.tag != gone) {
        place(slot.tag, slot.rule);
        slot.tag = gone;
      }
      if (++moved_ == before_.size) {
        before_ = {};
      }
    }
  }

  Array now_;
  Array before_;           // being moved over; size 0: none
  std::size_t moved_ = 0;  // slots of it
  std::size_t count_ = 0;  // rules in both
};

}  // namespace weir
