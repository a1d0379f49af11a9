#pragma once
// Who is told what a decision looks at, while it is traced: `weir trace`, and tests.

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include <weir/flow/action.h>
#include <weir/flow/group.h>
#include <weir/flow/table.h>

namespace weir {

struct Rule;

/// Told in the order of events, on the thread that decides. Text is made only if there is an observer.
class TraceObserver {
 public:
  virtual ~TraceObserver() = default;

  /// A decision begins for a packet with this key.
  virtual void begin(const Key& key) = 0;
  /// The stage of that number decides.
  virtual void stage(std::uint8_t number) = 0;
  /// The packet's layout was looked at.
  virtual void layout(Layout layout) = 0;
  /// Of the field's `value`, the bits of `mask` were looked at.
  virtual void read(FieldId field, const FieldValue& value, const FieldValue& mask) = 0;
  /// A field was asked for that the packet does not have.
  virtual void absent(FieldId field) = 0;
  /// A table or trie was asked for `key` and gave `value`; empty if it has none.
  virtual void looked_up(std::string_view name, const std::string& key, const std::string& value) = 0;
  /// Ordered rules were matched against `key`, of which they compared the bits of `mask`; `action` is empty if none
  /// did.
  virtual void matched(std::string_view name, const Key& key, const Key& mask, const std::string& action) = 0;
  /// A value that control replaces whole was read.
  virtual void consulted(std::string_view name) = 0;
  virtual void learned(std::string_view name, const std::string& key, const std::string& value, Learned outcome) = 0;
  virtual void guarded(GuardKind kind, std::uint32_t number, bool holds) = 0;
  virtual void acted(const Action& action) = 0;
  /// What became of it; valid until the next decision.
  virtual void decided(const Rule& rule) = 0;

  // Names, for values in words.
  [[nodiscard]] virtual std::string name_of(PortId port) const = 0;
  [[nodiscard]] virtual std::string name_of(const NextHops& hops) const = 0;

  /// A key or value of some state in words: its to_string(), a number, or "an entry".
  template <class T>
  [[nodiscard]] std::string text_of(const T& value) const {
    if constexpr (std::same_as<T, PortId> || std::same_as<T, NextHops>) {
      return name_of(value);
    } else if constexpr (requires {
                           { value.to_string() } -> std::convertible_to<std::string>;
                         }) {
      return value.to_string();
    } else if constexpr (std::is_arithmetic_v<T>) {
      return fmt::format("{}", value);
    } else {
      return "an entry";
    }
  }
};

}  // namespace weir
