#include <weir/flow/group.h>

#include <algorithm>

namespace weir {

Members::Members(std::vector<Member> members, const Members& before, std::vector<Paths::Alive> alive)
    : members_(std::move(members)), alive_(std::move(alive)) {
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

// Where a flow goes depends on nothing but the dead members that it comes across: another one's failure or return does
// not move it.
const Member* Members::pick_other(std::uint64_t hash, std::size_t dead) const {
  constexpr unsigned tries = 16;
  for (unsigned i = 0; i < tries; ++i) {
    hash = members_[dead].path->hash(members_[dead].port.hash(hash));
    dead = bucket_[hash % buckets];
    if (alive(dead)) {
      return &members_[dead];
    }
  }
  for (std::size_t i = 1; i < members_.size(); ++i) {
    const std::size_t other = (dead + i) % members_.size();
    if (alive(other)) {
      return &members_[other];
    }
  }
  return nullptr;
}

}  // namespace weir
