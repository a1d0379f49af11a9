#include <weir/base/epoch.h>

#include <algorithm>
#include <thread>

#include <weir/base/spin_lock.h>

namespace weir {

Epochs::~Epochs() {
  while (!retired_.empty()) {  // what is destroyed may retire more
    const Retired retired = std::move(retired_.front());
    retired_.pop_front();
    retired.destroy();
  }
  for (Reader* reader : readers_) {
    delete reader;
  }
}

Epochs::Reader& Epochs::add() {
  auto* reader = new Reader(*this);
  const std::lock_guard guard(mutex_);
  readers_.push_back(reader);
  return *reader;
}

void Epochs::remove(Reader& reader) {
  {
    const std::lock_guard guard(mutex_);
    std::erase(readers_, &reader);
  }
  delete &reader;
}

bool Epochs::passed(std::uint64_t epoch) const {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with Reader::online
  const std::lock_guard guard(mutex_);
  return std::ranges::all_of(
      readers_, [epoch](const Reader* reader) { return reader->seen_.load(std::memory_order_acquire) >= epoch; });
}

void Epochs::barrier() {
  const std::uint64_t epoch = advance();
  for (unsigned spins = 0; !passed(epoch); ++spins) {
    // On a machine with fewer cores than threads the reader may need this one.
    if (spins < 1'000) {
      SpinLock::pause();
    } else {
      std::this_thread::yield();
    }
  }
}

void Epochs::retire(std::function<void()> destroy) {
  {
    // Under the lock, so that the queue is in the order of epochs.
    const std::lock_guard guard(mutex_);
    retired_.push_back({advance(), std::move(destroy)});
  }
  reclaim();
}

std::size_t Epochs::reclaim() {
  std::vector<Retired> due;
  std::size_t left = 0;
  {
    const std::lock_guard guard(mutex_);
    // Pairs with Reader::online. Under the lock, so that it comes after the publishing of all that is in the queue.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    std::uint64_t oldest = offline_mark;
    for (const Reader* reader : readers_) {
      oldest = std::min(oldest, reader->seen_.load(std::memory_order_acquire));
    }
    while (!retired_.empty() && retired_.front().epoch <= oldest) {
      due.push_back(std::move(retired_.front()));
      retired_.pop_front();
    }
    left = retired_.size();
  }
  for (Retired& retired : due) {
    retired.destroy();
  }
  return left;
}

}  // namespace weir
