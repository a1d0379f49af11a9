#pragma once
// Two ends of many TCP connections, as two devices of a node between them: every sequence number is valid.

#include <memory>
#include <vector>

#include <weir/device/device.h>

namespace weir::bench {

struct ConversationOptions {
  std::uint32_t flows = 1024;
  /// false: all are opened, then data goes both ways, flow by flow at random. true: connections are opened and reset,
  /// one after the other, forever: four packets each.
  bool churn = false;
  unsigned frame_bytes = 64;
  std::uint8_t client_network = 0;  ///< of 10.N.0.0, by which the clients' addresses begin
};

/// What the two ends know of their connections. One thread.
class Conversations {
 public:
  explicit Conversations(const ConversationOptions& options);

  /// The device of the clients (0) and that of the servers (1). Both keep what they share alive.
  static std::pair<std::unique_ptr<Device>, std::unique_ptr<Device>> make(const ConversationOptions& options);

  /// Connections opened so far.
  [[nodiscard]] std::uint64_t opened() const { return acks_.load(std::memory_order_relaxed); }

  /// Writes the next packet of a side; false if it has to wait for the other one.
  bool next(unsigned side, std::uint8_t* frame);
  [[nodiscard]] unsigned frame_bytes() const { return options_.frame_bytes; }

 private:
  struct Sent {
    std::uint32_t client, server;  ///< next sequence numbers
  };

  void write(unsigned side, std::uint64_t flow, std::uint8_t flags, std::uint32_t sequence,
             std::uint32_t acknowledgment, std::uint8_t* frame) const;
  bool next_of_churn(unsigned side, std::uint8_t* frame);
  void add(std::atomic<std::uint64_t>& counter) const {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  ConversationOptions options_;
  std::vector<std::uint8_t> frame_;  ///< without what differs
  std::uint32_t ip_sum_ = 0, tcp_sum_ = 0;
  std::vector<Sent> sent_;
  std::uint64_t random_ = 1;
  std::uint64_t syns_ = 0, answers_ = 0, resets_ = 0;
  std::atomic<std::uint64_t> acks_{0};
};

}  // namespace weir::bench
