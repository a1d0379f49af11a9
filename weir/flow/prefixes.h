#pragma once
// Longest-prefix match for IPv4 and IPv6.

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <weir/base/published.h>
#include <weir/flow/field.h>
#include <weir/flow/region.h>

namespace weir {

/// From prefixes to V. Looked up through a Flow only, changed through an Update only. Look-ups take no lock: the trie
/// is immutable, and an update replaces the nodes on one path. A look-up costs one step per branching prefix on the
/// way, and consults only the bits it walked.
template <class V>
class Prefixes {
 public:
  using Value = V;

  /// One bit for look-ups of sources and one for those of destinations: a change concerns the rules that looked the
  /// changed addresses up, not those that merely may carry them in the other field.
  Prefixes(std::string name, Epochs& epochs, std::uint64_t src_bit, std::uint64_t dst_bit)
      : name_(std::move(name)),
        states_{{RegionState(src_bit), RegionState(dst_bit)}},
        tries_{{{epochs, nullptr}, {epochs, nullptr}}} {}

  [[nodiscard]] const std::string& name() const { return name_; }

  /// Entries. Any thread.
  [[nodiscard]] std::size_t size() const { return size_.load(std::memory_order_relaxed); }

 private:
  friend class Flow;
  friend class Update;
  template <class T>
  friend class PrefixesTester;

  // A prefix of the path; `value` if it is an entry. Children continue with bit 0 or 1 and are longer.
  struct Node {
    IpPrefix prefix;
    std::shared_ptr<const V> value;
    std::array<std::shared_ptr<const Node>, 2> child;
  };
  using NodePtr = std::shared_ptr<const Node>;

  struct Found {
    const V* value;  ///< until the caller's next quiescent state
    unsigned depth;  ///< every address with the same first `depth` bits finds the same
  };

  static bool bit_of(const IpAddress& address, unsigned i) { return (address.bytes[i / 8] >> (7 - i % 8) & 1U) != 0; }

  // Length of the common prefix, at most `limit`.
  static unsigned common(const IpAddress& a, const IpAddress& b, unsigned limit) {
    for (unsigned i = 0; 8 * i < limit; ++i) {
      const unsigned difference = a.bytes[i] ^ b.bytes[i];
      if (difference != 0) {
        return std::min(limit, 8 * i + static_cast<unsigned>(std::countl_zero(static_cast<std::uint8_t>(difference))));
      }
    }
    return limit;
  }

  [[nodiscard]] const RegionState& state(FieldId field) const { return states_[field == FieldId::ip_src ? 0 : 1]; }

  Found lookup(const IpAddress& address) const {
    const V* best = nullptr;
    unsigned depth = 0;
    for (const Node* node = tries_[address.v6 ? 1 : 0].read().get(); node != nullptr;) {
      const unsigned shared = common(address, node->prefix.address, node->prefix.length);
      if (shared < node->prefix.length) {
        return {best, shared + 1};  // the bit that differs
      }
      depth = node->prefix.length;
      if (node->value != nullptr) {
        best = node->value.get();
      }
      if (depth == address.bits()) {
        break;
      }
      if (node->child[0] == nullptr && node->child[1] == nullptr) {
        break;
      }
      const Node* next = node->child[bit_of(address, depth)].get();
      ++depth;  // the branching bit
      node = next;
    }
    return {best, depth};
  }

  // The trie with `prefix` set to `value` (or removed, if null).
  static NodePtr with(const NodePtr& node, const IpPrefix& prefix, const std::shared_ptr<const V>& value) {
    if (node == nullptr) {
      return value == nullptr ? nullptr : std::make_shared<const Node>(Node{prefix, value, {}});
    }
    const unsigned limit = std::min<unsigned>(node->prefix.length, prefix.length);
    const unsigned shared = common(prefix.address, node->prefix.address, limit);
    if (shared < node->prefix.length) {
      if (value == nullptr) {
        return node;  // not there
      }
      if (shared == prefix.length) {  // above this node
        Node above{prefix, value, {}};
        above.child[bit_of(node->prefix.address, shared)] = node;
        return std::make_shared<const Node>(std::move(above));
      }
      Node fork{IpPrefix(prefix.address, shared), nullptr, {}};
      fork.child[bit_of(node->prefix.address, shared)] = node;
      fork.child[bit_of(prefix.address, shared)] = std::make_shared<const Node>(Node{prefix, value, {}});
      return std::make_shared<const Node>(std::move(fork));
    }
    Node copy = *node;
    if (prefix.length == node->prefix.length) {
      copy.value = value;
    } else {
      const bool side = bit_of(prefix.address, node->prefix.length);
      copy.child[side] = with(node->child[side], prefix, value);
    }
    if (copy.value == nullptr) {  // a fork needs two children
      for (const bool side : {false, true}) {
        if (copy.child[side] == nullptr) {
          return copy.child[!side];
        }
      }
    }
    return std::make_shared<const Node>(std::move(copy));
  }

  std::shared_ptr<const V> exact(const IpPrefix& prefix) const {
    NodePtr node = tries_[prefix.address.v6 ? 1 : 0].read();
    while (node != nullptr && node->prefix.length < prefix.length) {
      node = node->child[bit_of(prefix.address, node->prefix.length)];
    }
    return node != nullptr && node->prefix == prefix ? node->value : nullptr;
  }

  static void collect(const NodePtr& node, std::vector<std::pair<IpPrefix, std::shared_ptr<const V>>>& entries) {
    if (node != nullptr) {
      if (node->value != nullptr) {
        entries.emplace_back(node->prefix, node->value);
      }
      collect(node->child[0], entries);
      collect(node->child[1], entries);
    }
  }

  // Control: what to put (null: nothing any more) so that the entries are `wanted`; the later of two of one prefix
  // counts.
  std::vector<std::pair<IpPrefix, std::shared_ptr<const V>>> edits(
      const std::vector<std::pair<IpPrefix, V>>& wanted) const {
    std::map<IpPrefix, const V*> to_be;
    for (const auto& [prefix, value] : wanted) {
      to_be[prefix] = &value;
    }
    std::vector<std::pair<IpPrefix, std::shared_ptr<const V>>> now;
    collect(tries_[0].read(), now);
    collect(tries_[1].read(), now);
    std::vector<std::pair<IpPrefix, std::shared_ptr<const V>>> edits;
    for (const auto& [prefix, value] : now) {
      const auto place = to_be.find(prefix);
      if (place == to_be.end()) {
        edits.emplace_back(prefix, nullptr);
      } else if (*place->second == *value) {
        to_be.erase(place);
      }
    }
    for (const auto& [prefix, value] : to_be) {
      edits.emplace_back(prefix, std::make_shared<const V>(*value));
    }
    return edits;
  }

  // Control: sets or, with null, removes; returns what was there. The caller revokes rules afterwards.
  std::shared_ptr<const V> put(const IpPrefix& prefix, const std::shared_ptr<const V>& value) {
    auto before = exact(prefix);
    auto& trie = tries_[prefix.address.v6 ? 1 : 0];
    trie.publish(with(trie.read(), prefix, value));
    size_.store(size() + (value != nullptr ? 1 : 0) - (before != nullptr ? 1 : 0), std::memory_order_relaxed);
    for (RegionState& state : states_) {
      state.changed();
    }
    return before;
  }

  std::string name_;
  std::array<RegionState, 2> states_;        // of look-ups by ip.src and by ip.dst
  std::array<Published<NodePtr>, 2> tries_;  // IPv4, IPv6
  std::atomic<std::size_t> size_{0};
};

}  // namespace weir
