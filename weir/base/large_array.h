#pragma once
// Memory for large tables that are read at random.

#include <cstddef>
#include <memory>
#include <new>
#include <span>

#include <sys/mman.h>

namespace weir {

/// `size` values of T, each made by its default constructor, at a fixed address. Asks the kernel for huge pages (it
/// gives them where transparent_hugepage is `madvise` or `always`): a table of 16 MiB then takes 8 entries of the TLB,
/// not 4,096, and a random read costs no walk through page tables. Throws std::bad_alloc.
template <class T>
class LargeArray {
 public:
  explicit LargeArray(std::size_t size) : size_(size) {
    std::size_t bytes = size * sizeof(T);
    std::size_t alignment = alignof(T) > 64 ? alignof(T) : 64;
    if (bytes >= huge_page) {
      bytes = (bytes + huge_page - 1) / huge_page * huge_page;
      alignment = huge_page;
    }
    data_ = static_cast<T*>(::operator new(bytes, std::align_val_t{alignment}));
    alignment_ = alignment;
    if (alignment == huge_page) {
      madvise(static_cast<void*>(data_), bytes, MADV_HUGEPAGE);
    }
    std::uninitialized_default_construct_n(data_, size);
  }
  ~LargeArray() {
    std::destroy_n(data_, size_);
    ::operator delete(data_, std::align_val_t{alignment_});
  }
  LargeArray(const LargeArray&) = delete;
  LargeArray& operator=(const LargeArray&) = delete;

  [[nodiscard]] std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  static constexpr std::size_t huge_page = std::size_t{2} << 20U;

  T* data_;
  std::size_t size_;
  std::size_t alignment_;
};

}  // namespace weir
