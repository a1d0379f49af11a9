#pragma once
// Intrusive doubly linked lists: an element carries its own links, so it joins and leaves in constant time, without
// allocation, and takes itself out when it is destroyed.

#include <cstddef>

namespace weir {

/// Base of what can be on a List; on one at a time. Not thread-safe; the list and its elements belong to one thread.
class ListHook {
 public:
  ListHook() = default;
  ListHook(const ListHook&) = delete;
  ListHook& operator=(const ListHook&) = delete;
  ~ListHook() { unlink(); }

  [[nodiscard]] bool linked() const { return next_ != nullptr; }

  /// Leaves the list it is on, if any.
  void unlink() {
    if (next_ == nullptr) {
      return;
    }
    previous_->next_ = next_;
    next_->previous_ = previous_;
    previous_ = next_ = nullptr;
  }

 private:
  template <class T>
  friend class List;
  ListHook* previous_ = nullptr;
  ListHook* next_ = nullptr;
};

/// A list of T, which derives from ListHook. It does not own its elements: destroying it leaves them unlinked.
template <class T>
class List {
 public:
  List() { head_.previous_ = head_.next_ = &head_; }
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() {
    while (pop_front() != nullptr) {
    }
  }

  [[nodiscard]] bool empty() const { return head_.next_ == &head_; }
  [[nodiscard]] T* front() const { return element(head_.next_); }

  /// The element after `of`, which is on this list; nullptr at the end.
  [[nodiscard]] T* next(const T& of) const { return element(static_cast<const ListHook&>(of).next_); }

  /// Appends `added`, which leaves the list it was on.
  void push_back(T& added) {
    ListHook& hook = added;
    hook.unlink();
    hook.previous_ = head_.previous_;
    hook.next_ = &head_;
    head_.previous_->next_ = &hook;
    head_.previous_ = &hook;
  }

  T* pop_front() {
    T* first = front();
    if (first != nullptr) {
      static_cast<ListHook*>(first)->unlink();
    }
    return first;
  }

  /// Appends all of `other`, in order, and leaves it empty.
  void take(List& other) {
    if (other.empty()) {
      return;
    }
    ListHook* const first = other.head_.next_;
    ListHook* const last = other.head_.previous_;
    other.head_.previous_ = other.head_.next_ = &other.head_;
    first->previous_ = head_.previous_;
    last->next_ = &head_;
    head_.previous_->next_ = first;
    head_.previous_ = last;
  }

 private:
  T* element(ListHook* hook) const { return hook == &head_ ? nullptr : static_cast<T*>(hook); }

  ListHook head_;
};

}  // namespace weir
