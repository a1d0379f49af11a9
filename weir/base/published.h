#pragma once
// A value that readers use without a lock and writers replace whole.

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include <weir/base/epoch.h>

namespace weir {

/// Holds one immutable T. Readers must be online in `epochs`; the reference they get lives until their next
/// quiescent state. Writers may call from any thread.
template <class T>
class Published {
 public:
  Published(Epochs& epochs, T value) : epochs_(epochs), current_(new T(std::move(value))) {}
  ~Published() { delete current_.load(std::memory_order_relaxed); }
  Published(const Published&) = delete;
  Published& operator=(const Published&) = delete;

  [[nodiscard]] const T& read() const { return *current_.load(std::memory_order_acquire); }

  void publish(T value) {
    const T* old = current_.exchange(new T(std::move(value)), std::memory_order_acq_rel);
    epochs_.retire([old] { delete old; });
  }

 private:
  Epochs& epochs_;
  std::atomic<const T*> current_;
};

}  // namespace weir
