#include <weir/device/internal/flow_order.h>

#include <algorithm>
#include <cmath>

namespace weir::device_internal {

namespace {

// log(1 + x) / x and (e^x - 1) / x, good near zero.
double log1p_over(double x) { return std::abs(x) > 1e-8 ? std::log1p(x) / x : 1 - x * (0.5 - x / 3); }
double expm1_over(double x) { return std::abs(x) > 1e-8 ? std::expm1(x) / x : 1 + x * 0.5 * (1 + x / 3); }

}  // namespace

ZipfSampler::ZipfSampler(std::uint32_t ranks, double skew)
    : ranks_(ranks),
      skew_(skew),
      low_(integral(1.5) - 1),
      high_(integral(ranks + 0.5)),
      accept_(2 - inverse(integral(2.5) - density(2))) {}

double ZipfSampler::density(double x) const { return std::exp(-skew_ * std::log(x)); }

double ZipfSampler::integral(double x) const {
  const double log = std::log(x);
  return expm1_over((1 - skew_) * log) * log;
}

double ZipfSampler::inverse(double y) const {
  const double t = std::max(-1.0, y * (1 - skew_));
  return std::exp(log1p_over(t) * y);
}

std::uint32_t ZipfSampler::operator()(Random& random) const {
  while (true) {
    const double uniform = static_cast<double>(random() >> 11U) * 0x1p-53;
    const double y = high_ + uniform * (low_ - high_);
    const double x = inverse(y);
    const double rank = std::clamp(std::floor(x + 0.5), 1.0, ranks_);
    if (rank - x <= accept_ || y >= integral(rank + 0.5) - density(rank)) {
      return static_cast<std::uint32_t>(rank);
    }
  }
}

FlowOrder::FlowOrder(Order order, double skew, std::uint32_t first, std::uint32_t step, std::uint32_t share,
                     std::uint64_t seed)
    : order_(order), first_(first), step_(step), share_(share), random_(seed) {
  if (order == Order::zipf) {
    const ZipfSampler sample(share, skew);
    drawn_.resize(zipf_period);
    std::ranges::generate(drawn_, [&] { return first + step * (sample(random_) - 1); });
  }
}

void FlowOrder::next(std::span<std::uint32_t> flows) {
  switch (order_) {
    case Order::random:
      for (std::uint32_t& flow : flows) {
        flow = first_ + step_ * random_.below(share_);
      }
      break;
    case Order::zipf:
      for (std::uint32_t& flow : flows) {
        flow = drawn_[position_];
        position_ = (position_ + 1) % zipf_period;
      }
      break;
    case Order::sequential:
      for (std::uint32_t& flow : flows) {
        flow = first_ + step_ * position_;
        position_ = position_ + 1 == share_ ? 0 : position_ + 1;
      }
      break;
  }
}

void FlowOrder::put_back(std::uint32_t n) {
  if (order_ == Order::zipf) {
    position_ = (position_ - n) % zipf_period;
  } else if (order_ == Order::sequential) {
    position_ = (position_ + share_ - n % share_) % share_;
  }
}

}  // namespace weir::device_internal
