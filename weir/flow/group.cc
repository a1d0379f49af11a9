#include <weir/flow/group.h>

#include <algorithm>

namespace weir {

Members::Members(std::vector<Member> members, const Members& before) : members_(std::move(members)) {
  if (members_.empty()) {
    return;
  }
  constexpr std::size_t unset = limit;
  const std::size_t n = members_.size();
  std::vector<std::size_t> share(n, 0);
  std::array<std::size_t, buckets> owner{};
  owner.fill(unset);
  // Keep what the old owner may keep: its fair share, and where that is no whole number, as many members as there must
  // be have one bucket more.
  const std::size_t fair = buckets / n;
  std::size_t extra = buckets % n;
  for (std::size_t i = 0; i < buckets && !before.members_.empty(); ++i) {
    const auto place = std::ranges::find(members_, before.members_[before.bucket_[i]]);
    if (place == members_.end()) {
      continue;
    }
    const auto member = static_cast<std::size_t>(place - members_.begin());
    const bool above = share[member] == fair && extra > 0;
    if (share[member] < fair || above) {
      owner[i] = member;
      ++share[member];
      extra -= above ? 1 : 0;
    }
  }
  // The others go to whoever has the least, the first of equals.
  for (std::size_t& bucket : owner) {
    if (bucket == unset) {
      bucket = static_cast<std::size_t>(std::ranges::min_element(share) - share.begin());
      ++share[bucket];
    }
  }
  std::ranges::transform(owner, bucket_.begin(), [](std::size_t m) { return static_cast<std::uint8_t>(m); });
}

}  // namespace weir
