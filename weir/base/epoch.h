#pragma once
// Epochs: how readers that take no lock, and writers that must wait for them, find each other.
//
// A reader (a worker) announces a quiescent state between batches; in between it may hold pointers to anything that
// is published. A writer publishes a new version and then either waits until every reader has been quiescent
// (`barrier`: the old version is out of use) or hands the old one over to be destroyed then (`retire`).
// A reader that is about to sleep goes offline, so nobody waits for it.

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

namespace weir {

/// One domain of readers and writers. Readers are registered before they run and may come and go.
class Epochs {
 public:
  /// A thread that reads. Its public members are for that thread alone.
  ///
  /// Why this is right. (a) A reader's uses of an old version come before its store of `seen_` (release), which a
  /// writer loads (acquire) before it destroys: no use after that. (b) A reader whose `seen_` says E got E from
  /// `current_` (acquire), which the writer moved to E after publishing (release): its next read finds the new version.
  /// (c) `online` and a writer that finds the reader offline race, and nothing orders a store and a later load but a
  /// fence on both sides: either the writer sees the reader online and waits, or the reader sees the new version.
  class alignas(64) Reader {
   public:
    /// Between batches: drops every pointer read before. Only while online. A plain load and store on x86.
    void quiescent() { seen_.store(owner_.current_.load(std::memory_order_acquire), std::memory_order_release); }

    /// Before sleeping. Until `online`, the reader may hold nothing.
    void offline() { seen_.store(offline_mark, std::memory_order_release); }

    /// After sleeping. What was published before is visible after.
    void online() {
      // The store must be visible to writers before this thread reads anything they publish; if the epoch moved in
      // between, the older number only makes a writer wait longer.
      seen_.store(owner_.current_.load(std::memory_order_acquire), std::memory_order_release);
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }

   private:
    friend class Epochs;
    explicit Reader(Epochs& owner) : owner_(owner) {}
    Epochs& owner_;
    std::atomic<std::uint64_t> seen_{offline_mark};
  };

  Epochs() = default;
  Epochs(const Epochs&) = delete;
  Epochs& operator=(const Epochs&) = delete;
  ~Epochs();

  /// A new reader, offline. It lives until `remove`, which its thread calls, or another one after that has ended.
  Reader& add();
  void remove(Reader& reader);

  /// Starts a new epoch and returns it; `passed` tells when every reader has seen it. Any thread.
  std::uint64_t advance() { return current_.fetch_add(1, std::memory_order_acq_rel) + 1; }

  /// Whether every online reader has been quiescent since `epoch` began. The thread that called `advance`, or one that
  /// was told by it.
  [[nodiscard]] bool passed(std::uint64_t epoch) const;

  /// Waits until every reader has been quiescent (or offline) once after this call began. Never call it from a
  /// thread that is an online reader: it would wait for itself.
  void barrier();

  /// Runs `destroy` once every reader has been quiescent after this call, from a later `retire` or `reclaim`.
  void retire(std::function<void()> destroy);

  /// Runs what has become due; returns how many still wait. Any thread.
  std::size_t reclaim();

 private:
  static constexpr std::uint64_t offline_mark = ~std::uint64_t{0};
  struct Retired {
    std::uint64_t epoch;
    std::function<void()> destroy;
  };

  std::atomic<std::uint64_t> current_{1};
  mutable std::mutex mutex_;  // guards readers_ and retired_
  std::vector<Reader*> readers_;
  std::deque<Retired> retired_;
};

/// Keeps a thread that is not a worker online for a scope, so that what it reads stays alive.
class EpochScope {
 public:
  explicit EpochScope(Epochs& epochs) : epochs_(epochs), reader_(epochs.add()) { reader_.online(); }
  ~EpochScope() { epochs_.remove(reader_); }
  EpochScope(const EpochScope&) = delete;
  EpochScope& operator=(const EpochScope&) = delete;

 private:
  Epochs& epochs_;
  Epochs::Reader& reader_;
};

}  // namespace weir
