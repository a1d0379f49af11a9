#pragma once
// Ordered rules over many fields: the first that matches decides.
//
// A tuple space: rules with the same (coarsened) mask share a hash table, and the tables are tried in the order of the
// best rule each holds. Masks are coarsened as in TupleMerge (Daly et al., 2019), prefixes to multiples of 8 bits, so
// that a few tables hold rules of many lengths; a bucket that grows too long falls back to the exact mask.

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <weir/base/error.h>
#include <weir/base/published.h>
#include <weir/flow/match.h>

namespace weir {

namespace classifier_detail {

/// A mask whose address prefixes are cut to a multiple of 8 bits and whose partial ports are left out.
Key coarse(const Key& mask);

std::uint64_t hash(const Key& key, const Key& mask);

/// The values that a table's rules have in one word of the key: tells that a packet has none of them by few bits, where
/// the whole mask would make a rule per address.
class Neighbours {
 public:
  /// `values`: of the rules, under `mask`, as Key::word gives them.
  void assign(std::vector<std::uint64_t> values, std::uint64_t mask);

  /// The bits of the word, of those in the mask, that prove `value` to be none of the rules', as Key::word has them; a
  /// whole number of leading bytes. 0: it may be one.
  [[nodiscard]] std::uint64_t proof(std::uint64_t value) const;

 private:
  std::vector<std::uint64_t> values_;  // big-endian numbers, sorted
  std::uint64_t mask_ = 0;             // as Key::word has it
};

}  // namespace classifier_detail

/// From matches to A. Looked up through a Flow only, changed through an Update only. `order`: the lower, the earlier;
/// one rule per order. Look-ups take no lock; an update copies each table it touches, once.
template <class A>
class Classifier {
 public:
  using Value = A;

  Classifier(std::string name, Epochs& epochs, std::uint64_t bit)
      : name_(std::move(name)), state_(bit), tuples_(epochs, {}) {}

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::size_t size() const { return size_.load(std::memory_order_relaxed); }

 private:
  friend class Flow;
  friend class Update;
  template <class T>
  friend class ClassifierTester;

  struct Rule {
    std::uint32_t order;
    Match match;
    A action;
  };
  using RulePtr = std::shared_ptr<const Rule>;
  struct Tuple {
    Key mask;
    std::uint32_t best = ~std::uint32_t{0};
    std::unordered_map<std::uint64_t, std::vector<RulePtr>> buckets;  // each sorted by order
    std::size_t size = 0;
    bool published = false;                                   // control side
    std::array<classifier_detail::Neighbours, 2> neighbours;  // of the words that addresses begin in
  };
  using TuplePtr = std::shared_ptr<const Tuple>;
  using Tuples = std::vector<TuplePtr>;  // sorted by best

  static constexpr std::size_t bucket_limit = 8;
  static constexpr std::uint64_t spacing = 1024;  // between the orders that `edits` gives
  static constexpr std::array<std::size_t, 2> address_words{offsetof(Key, src) / 8, offsetof(Key, dst) / 8};

  struct Found {
    const A* action;  ///< until the caller's next quiescent state
    Key consulted;    ///< every packet that agrees on these bits finds the same
  };

  Found lookup(const Key& key) const {
    Found found{nullptr, {}};
    std::uint32_t best = ~std::uint32_t{0};
    for (const TuplePtr& tuple : tuples_.read()) {
      if (tuple->best >= best) {
        break;
      }
      if (const auto [word, bits] = absence(*tuple, key); bits != 0) {
        found.consulted.set_word(word, found.consulted.word(word) | bits);
        continue;
      }
      found.consulted = found.consulted | tuple->mask;
      const auto bucket = tuple->buckets.find(classifier_detail::hash(key, tuple->mask));
      if (bucket == tuple->buckets.end()) {
        continue;
      }
      for (const RulePtr& rule : bucket->second) {
        if (rule->order >= best) {
          break;
        }
        const Key& mask = rule->match.mask();
        const std::size_t word = first_difference(key, *rule);
        if (word == Key::words) {
          found.consulted = found.consulted | mask;
          found.action = &rule->action;
          best = rule->order;
          break;
        }
        // One differing word proves that the rule does not match.
        found.consulted.set_word(word, found.consulted.word(word) | mask.word(word));
      }
    }
    return found;
  }

  // The word and its bits, the fewer the better, that prove that no rule of the table matches; no bits: one may.
  static std::pair<std::size_t, std::uint64_t> absence(const Tuple& tuple, const Key& key) {
    std::pair<std::size_t, std::uint64_t> best{0, 0};
    for (std::size_t i = 0; i < address_words.size(); ++i) {
      const std::size_t word = address_words[i];
      const std::uint64_t bits = tuple.neighbours[i].proof(key.word(word));
      if (bits != 0 && (best.second == 0 || std::popcount(bits) < std::popcount(best.second))) {
        best = {word, bits};
      }
    }
    return best;
  }

  static std::size_t first_difference(const Key& key, const Rule& rule) {
    std::size_t word = 0;
    while (word < Key::words &&
           ((key.word(word) ^ rule.match.value().word(word)) & rule.match.mask().word(word)) == 0) {
      ++word;
    }
    return word;
  }

  [[nodiscard]] RulePtr at(std::uint32_t order) const {
    const auto place = rules_.find(order);
    return place != rules_.end() ? place->second : nullptr;
  }

  // Control: what to put, and at which order (null: nothing any more), so that the rules are `wanted`. What both lists
  // have in common at their beginning and end stays; between them, new rules get orders that are free there, or, where
  // there are too few, all rules get new ones.
  Result<std::vector<std::pair<std::uint32_t, RulePtr>>> edits(const std::vector<std::pair<Match, A>>& wanted) const {
    std::vector<RulePtr> now;
    for (const auto& [order, rule] : rules_) {
      now.push_back(rule);
    }
    std::ranges::sort(now, {}, &Rule::order);
    const auto same = [](const RulePtr& rule, const std::pair<Match, A>& want) {
      return rule->match == want.first && rule->action == want.second;
    };
    const std::size_t most = std::min(now.size(), wanted.size());
    std::size_t before = 0;
    while (before < most && same(now[before], wanted[before])) {
      ++before;
    }
    std::size_t after = 0;
    while (after < most - before && same(now[now.size() - 1 - after], wanted[wanted.size() - 1 - after])) {
      ++after;
    }
    std::size_t fresh = wanted.size() - before - after;
    std::uint64_t low = before == 0 ? 0 : std::uint64_t{now[before - 1]->order} + 1;
    std::uint64_t high = after == 0 ? low + spacing * (fresh + 1) : now[now.size() - after]->order;
    if (high - low < fresh || high > ~std::uint32_t{0}) {
      before = after = 0;
      fresh = wanted.size();
      low = 0;
      high = spacing * (fresh + 1);
      if (high > ~std::uint32_t{0}) {
        return error("'{}' cannot hold {} rules; give at most {}", name_, fresh, ~std::uint32_t{0} / spacing - 1);
      }
    }
    std::vector<std::pair<std::uint32_t, RulePtr>> edits;
    std::size_t old = before;
    const std::size_t old_end = now.size() - after;
    for (std::size_t i = 0; i < fresh; ++i) {
      const auto order = static_cast<std::uint32_t>(low + (high - low) * (i + 1) / (fresh + 1));
      for (; old < old_end && now[old]->order < order; ++old) {
        edits.emplace_back(now[old]->order, nullptr);
      }
      old += old < old_end && now[old]->order == order ? 1 : 0;  // replaced
      const auto& [match, action] = wanted[before + i];
      edits.emplace_back(order, std::make_shared<const Rule>(Rule{order, match, action}));
    }
    for (; old < old_end; ++old) {
      edits.emplace_back(now[old]->order, nullptr);
    }
    return edits;
  }

  // Control: sets or, with null, removes the rule at `order`; returns what was there. Look-ups see it after `publish`,
  // so that an update of many rules copies each table once.
  RulePtr put(std::uint32_t order, const RulePtr& rule) {
    const RulePtr before = at(order);
    if (before != nullptr) {
      remove(before);
    }
    if (rule != nullptr) {
      add(rule);
      rules_[order] = rule;
    }
    return before;
  }

  // Control: makes what was put visible. The caller revokes rules afterwards.
  void publish() {
    std::ranges::sort(draft_, {}, [](const auto& tuple) { return tuple->best; });
    for (const auto& tuple : draft_) {
      if (!tuple->published) {
        find_neighbours(*tuple);
        tuple->published = true;
      }
    }
    tuples_.publish(Tuples(draft_.begin(), draft_.end()));
    size_.store(rules_.size(), std::memory_order_relaxed);
    state_.changed();
  }

  static void find_neighbours(Tuple& tuple) {
    for (std::size_t i = 0; i < address_words.size(); ++i) {
      const std::size_t word = address_words[i];
      std::vector<std::uint64_t> values;
      for (const auto& [hash, rules] : tuple.buckets) {
        for (const RulePtr& rule : rules) {
          values.push_back(rule->match.value().word(word));
        }
      }
      tuple.neighbours[i].assign(std::move(values), tuple.mask.word(word));
    }
  }

  // A table of the draft, copied first if look-ups may be reading it.
  static Tuple& writable(std::shared_ptr<Tuple>& tuple) {
    if (tuple->published) {
      tuple = std::make_shared<Tuple>(*tuple);
      tuple->published = false;
    }
    return *tuple;
  }

  void add(const RulePtr& rule) {
    for (const Key& mask : {classifier_detail::coarse(rule->match.mask()), rule->match.mask()}) {
      auto place = std::ranges::find_if(draft_, [&](const auto& tuple) { return tuple->mask == mask; });
      if (place == draft_.end()) {
        draft_.push_back(std::make_shared<Tuple>(Tuple{mask}));
        place = draft_.end() - 1;
      }
      const std::uint64_t hash = classifier_detail::hash(rule->match.value(), mask);
      const auto bucket = (*place)->buckets.find(hash);
      if (bucket == (*place)->buckets.end() || bucket->second.size() < bucket_limit || mask == rule->match.mask()) {
        Tuple& tuple = writable(*place);
        auto& rules = tuple.buckets[hash];
        rules.insert(std::ranges::upper_bound(rules, rule->order, {}, &Rule::order), rule);
        tuple.best = std::min(tuple.best, rule->order);
        ++tuple.size;
        return;
      }
    }
  }

  void remove(const RulePtr& rule) {
    const auto place = std::ranges::find_if(draft_, [&](const auto& tuple) {
      const auto bucket = tuple->buckets.find(classifier_detail::hash(rule->match.value(), tuple->mask));
      return covers(rule->match.mask(), tuple->mask) && bucket != tuple->buckets.end() &&
             std::ranges::find(bucket->second, rule) != bucket->second.end();
    });
    Tuple& tuple = writable(*place);
    const auto bucket = tuple.buckets.find(classifier_detail::hash(rule->match.value(), tuple.mask));
    std::erase(bucket->second, rule);
    if (bucket->second.empty()) {
      tuple.buckets.erase(bucket);
    }
    if (--tuple.size == 0) {
      draft_.erase(place);
    } else if (tuple.best == rule->order) {
      tuple.best = ~std::uint32_t{0};
      for (const auto& [hash, rules] : tuple.buckets) {
        tuple.best = std::min(tuple.best, rules.front()->order);
      }
    }
    rules_.erase(rule->order);
  }

  std::string name_;
  RegionState state_;
  Published<Tuples> tuples_;
  std::vector<std::shared_ptr<Tuple>> draft_;         // control side: what `publish` will show
  std::unordered_map<std::uint32_t, RulePtr> rules_;  // control side
  std::atomic<std::size_t> size_{0};
};

}  // namespace weir
