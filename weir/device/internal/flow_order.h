#pragma once
// Which flow comes next.

#include <cstdint>
#include <span>
#include <vector>

#include <weir/base/random.h>

namespace weir::device_internal {

enum class Order : std::uint8_t { random, zipf, sequential };

/// Ranks 1 to `ranks` with probability proportional to 1 / rank^skew, by rejection-inversion (W. Hörmann, G.
/// Derflinger: Rejection-inversion to generate variates from monotone discrete distributions, 1996): no table, any
/// number of ranks.
class ZipfSampler {
 public:
  /// `ranks` and `skew` > 0.
  ZipfSampler(std::uint32_t ranks, double skew);
  std::uint32_t operator()(Random& random) const;

 private:
  [[nodiscard]] double density(double x) const;
  [[nodiscard]] double integral(double x) const;
  [[nodiscard]] double inverse(double y) const;

  double ranks_;
  double skew_;
  double low_;
  double high_;
  double accept_;
};

/// An endless sequence of the numbers of `share` flows: first, first + step, first + 2 * step, ...
class FlowOrder {
 public:
  /// How many draws a Zipf order makes before it begins again.
  static constexpr std::uint32_t zipf_period = 1U << 20U;

  FlowOrder(Order order, double skew, std::uint32_t first, std::uint32_t step, std::uint32_t share, std::uint64_t seed);

  /// The next flow.size() flows.
  void next(std::span<std::uint32_t> flows);

  /// The last `n` were not used (n is at most what `next` gave last): they come again, or others in a random order.
  void put_back(std::uint32_t n);

 private:
  Order order_;
  std::uint32_t first_;
  std::uint32_t step_;
  std::uint32_t share_;
  std::uint32_t position_ = 0;
  Random random_;
  std::vector<std::uint32_t> drawn_;  // of a Zipf order: flow numbers, zipf_period of them
};

}  // namespace weir::device_internal
