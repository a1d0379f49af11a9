#pragma once
// Fragments of IP packets as part of the flow that they belong to, without putting them together.
//
// Only the first fragment of a packet has ports. The tracker remembers them, and tells them of the later fragments, so
// that stages behind it see these with ports, and rules match them. Later fragments that come first wait for the first
// one. It passes all of them in the order in which their packet's first one came, and lets none through that could be
// put together to something that nobody looked at (RFC 1858, RFC 3128, RFC 5722, RFC 8200, section 4.5).

#include <memory>

#include <weir/flow/stage.h>

namespace weir {

namespace drop {
inline constexpr DropReason fragment_overlap{"fragment_overlap",
                                             "a fragment of a packet whose fragments overlap (RFC 5722, RFC 8200)"};
inline constexpr DropReason fragment_duplicate{"fragment_duplicate", "a fragment that was there already"};
inline constexpr DropReason fragment_malformed{
    "fragment_malformed", "a fragment without the whole header of its protocol, inside that, or beyond 65,535 bytes"};
inline constexpr DropReason fragment_timeout{"fragment_timeout", "waited too long for its packet's first fragment"};
inline constexpr DropReason fragment_limit{"fragment_limit", "too many fragments wait for their packets' first ones"};
inline constexpr DropReason fragment_displaced{"fragment_displaced",
                                               "waited for its packet's first fragment, when newer packets came"};
}  // namespace drop

struct FragmentOptions {
  unsigned packets = 1024;                            ///< followed at a time, by each worker, 1 to 65,536
  unsigned waiting = 256;                             ///< fragments that may wait for a first one, on each worker
  Nanoseconds timeout = 30'000'000'000;               ///< from a packet's first seen fragment on (RFC 791)
  static constexpr std::size_t most_fragments = 128;  ///< of one packet; more are taken for an attack (malformed)
};

/// A packet stage that all fragments pass, and only they.
class FragmentTracker final : public PacketStage {
 public:
  explicit FragmentTracker(FragmentOptions options = {});
  ~FragmentTracker() override;

  void process(Batch& batch) override;
  [[nodiscard]] unsigned keep_limit() const override { return options_.waiting; }

 private:
  class Followed;

  FragmentOptions options_;
  PerWorker<std::unique_ptr<Followed>> workers_;
};

/// Stands in front of a stage that asks for ports or connections: sends fragments to the tracker, everything else on.
/// Connect its output, and the tracker's, to that stage.
class FragmentGate final : public FlowStage {
 public:
  explicit FragmentGate(const FragmentTracker& tracker) : tracker_(tracker) {}
  [[nodiscard]] Verdict decide(Flow& flow) const override {
    return flow.has(layers::fragment) ? flow.to(tracker_) : flow.next();
  }

 private:
  const FragmentTracker& tracker_;
};

}  // namespace weir
