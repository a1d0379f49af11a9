#pragma once

#include <string>

#include <weir/base/published.h>
#include <weir/flow/dependency.h>

namespace weir {

/// One value that control replaces whole: a policy's mode, a list, a parameter. Read through a Flow only, changed
/// through an Update only; a change makes every rule decide again that read it.
template <class T>
class Versioned {
 public:
  using Value = T;

  Versioned(std::string name, Epochs& epochs, T value) : name_(std::move(name)), value_(epochs, std::move(value)) {}

  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  friend class Flow;
  friend class Update;

  std::string name_;
  Published<T> value_;
  mutable Dependents dependents_;
};

}  // namespace weir
