#include <weir/flow/fragment_tracker.h>

#include <algorithm>
#include <list>
#include <unordered_map>
#include <vector>

#include <weir/packet/ipv4.h>
#include <weir/packet/ipv6.h>
#include <weir/packet/parse.h>
#include <weir/packet/tcp.h>

namespace weir {

namespace {

/// What tells fragmented packets apart: RFC 791, section 3.2; for IPv6 the protocol is not among it. Plus where they
/// are.
struct FragmentKey {
  IpAddress src, dst;
  std::uint32_t id = 0;
  std::uint32_t tags = 0;     ///< VLANs, and how many
  std::uint32_t tunnel = 0;   ///< 1 + its VNI, of what came out of one
  std::uint8_t protocol = 0;  ///< IPv4 only

  bool operator==(const FragmentKey&) const = default;
};

struct FragmentKeyHash {
  std::size_t operator()(const FragmentKey& key) const {
    std::uint64_t hash = key.src.hash(key.id);
    hash = key.dst.hash(hash);
    return hash_value(key.tunnel, hash_value(std::uint64_t{key.tags} << 8U | key.protocol, hash));
  }
};

/// Where a fragment lies in its packet's payload.
struct Piece {
  std::uint32_t from = 0, to = 0;
  bool last = false;
};

/// Reads the fragment's place; false if it cannot be one.
bool read_fragment(const Packet& packet, FragmentKey& key, Piece& piece) {
  const std::uint8_t* l3 = packet.data + packet.l3;
  std::uint32_t payload = 0;
  if (packet.layout.l3() == L3::ipv4) {
    const auto& ip = *reinterpret_cast<const Ipv4Header*>(l3);
    key.src = IpAddress(ip.src);
    key.dst = IpAddress(ip.dst);
    key.id = ip.id;
    key.protocol = ip.protocol;
    piece.from = (ip.fragment & Ipv4Header::offset_mask) * 8U;
    piece.last = (ip.fragment & Ipv4Header::more_fragments) == 0;
    payload = ip.total_length - ip.header_length();
  } else {
    const auto& ip = *reinterpret_cast<const Ipv6Header*>(l3);
    key.src = IpAddress(ip.src);
    key.dst = IpAddress(ip.dst);
    // The parser has walked these headers and found a fragment header.
    std::uint8_t next = ip.next_header;
    std::uint32_t at = sizeof(Ipv6Header);
    while (next != ipv6_extension::fragment) {
      next = l3[at];
      at += next == ipv6_extension::authentication ? 8U : (l3[at + 1] + 1U) * 8U;
    }
    const auto& header = *reinterpret_cast<const Ipv6Fragment*>(l3 + at);
    key.id = header.id;
    piece.from = header.offset & 0xfff8U;
    piece.last = (header.offset & 1U) == 0;
    payload = ip.payload_length + static_cast<std::uint32_t>(sizeof(Ipv6Header)) - at -
              static_cast<std::uint32_t>(sizeof(Ipv6Fragment));
  }
  piece.to = piece.from + payload;
  return payload != 0 && piece.to <= 65'535 && (piece.last || payload % 8 == 0);
}

}  // namespace

/// The packets of which one worker has seen fragments.
class FragmentTracker::Followed {
 public:
  explicit Followed(const FragmentOptions& options) : options_(options) {}

  void take(Batch& batch, std::size_t i) {
    FragmentKey key;
    Piece piece;
    Packet& packet = batch[i];
    if (!read_fragment(packet, key, piece)) {
      return batch.drop(i, drop::fragment_malformed);
    }
    add_place(packet, key);
    Entry& entry = find(batch, key);
    const Fault fault = entry.broken ? Fault::overlap : fault_of(entry, piece, packet);
    if (fault == Fault::duplicate) {
      return batch.drop(i, drop::fragment_duplicate);
    }
    if (fault != Fault::none) {
      break_up(batch, entry);
      return batch.drop(i, fault == Fault::overlap ? drop::fragment_overlap : drop::fragment_malformed);
    }
    entry.pieces.push_back(piece);
    if (piece.from == 0) {
      note_first(batch, entry, packet);
    } else if (entry.known) {
      tell(entry, packet);
    } else if (const auto kept = batch.keep(i)) {
      entry.waiting.push_back(*kept);
    } else {
      entry.pieces.pop_back();
      batch.drop(i, drop::fragment_limit);
    }
  }

  /// Those that wait too long. Entries stand in the order of their beginnings.
  void expire(Batch& batch) {
    while (!order_.empty() && (order_.front().begun + options_.timeout <= batch.now() || batch.last())) {
      if (!batch.last()) {
        drop_waiting(batch, order_.front(), drop::fragment_timeout);
      }
      forget(order_.front());
    }
  }

 private:
  struct Entry {
    FragmentKey key;
    Nanoseconds begun = 0;
    bool known = false;   ///< the first fragment was seen
    bool broken = false;  ///< nothing of the packet passes any more
    std::uint8_t protocol = 0;
    std::uint16_t src_port = 0, dst_port = 0;
    std::vector<Piece> pieces;
    std::vector<KeptPacket> waiting;
  };
  enum class Fault : std::uint8_t { none, duplicate, overlap, malformed };

  static void add_place(const Packet& packet, FragmentKey& key) {
    for (unsigned tag = 0; tag < packet.layout.tags(); ++tag) {
      key.tags = key.tags << 12U | (load_big<std::uint16_t>(packet.data + 14 + 4 * tag) & 0xfffU);
    }
    key.tags |= packet.layout.tags() << 24U;
    key.tunnel = packet.layout.tunnel() ? 1 + packet.vni : 0;
  }

  Entry& find(Batch& batch, const FragmentKey& key) {
    const auto known = by_key_.find(key);
    if (known != by_key_.end()) {
      return *known->second;
    }
    if (order_.size() >= options_.packets) {
      drop_waiting(batch, order_.front(), drop::fragment_displaced);
      forget(order_.front());
    }
    Entry& entry = order_.emplace_back();
    entry.key = key;
    entry.begun = batch.now();
    by_key_.emplace(key, std::prev(order_.end()));
    return order_.back();
  }

  void forget(Entry& entry) {
    const auto place = by_key_.find(entry.key);
    const auto at = place->second;
    by_key_.erase(place);
    order_.erase(at);
  }

  [[nodiscard]] static Fault fault_of(const Entry& entry, const Piece& piece, const Packet& packet) {
    if (entry.pieces.size() == FragmentOptions::most_fragments) {
      return Fault::malformed;
    }
    for (const Piece& other : entry.pieces) {
      if (piece.from == other.from && piece.to == other.to && piece.last == other.last) {
        return Fault::duplicate;
      }
      if (piece.from < other.to && other.from < piece.to) {
        return Fault::overlap;
      }
      if ((other.last && piece.to > other.to) || (piece.last && (other.last || other.to > piece.to))) {
        return Fault::overlap;  // two ends
      }
    }
    const ParseVerdict verdict = packet.layout.verdict();
    if (piece.from == 0) {
      return verdict == ParseVerdict::ok ? Fault::none : Fault::malformed;  // the rest of a header comes later
    }
    // TCP's flags lie in bytes that a second fragment could replace (RFC 3128).
    return entry.key.protocol == ip_protocol::tcp && piece.from < sizeof(TcpHeader) ? Fault::malformed : Fault::none;
  }

  void break_up(Batch& batch, Entry& entry) {
    entry.broken = true;
    drop_waiting(batch, entry, drop::fragment_overlap);
  }

  static void drop_waiting(Batch& batch, Entry& entry, const DropReason& reason) {
    for (const KeptPacket kept : entry.waiting) {
      batch.drop(kept, reason);
    }
    entry.waiting.clear();
  }

  static void note_first(Batch& batch, Entry& entry, Packet& packet) {
    Key key;
    parse(packet, key);
    entry.known = true;
    entry.protocol = key.protocol;
    entry.src_port = load_big<std::uint16_t>(key.src_port.data());
    entry.dst_port = load_big<std::uint16_t>(key.dst_port.data());
    for (const KeptPacket kept : entry.waiting) {
      tell(entry, *batch.kept(kept));
      batch.hand_back(kept);
    }
    entry.waiting.clear();
  }

  static void tell(const Entry& entry, Packet& packet) {
    Key key;
    parse(packet, key);
    if (key.protocol != entry.protocol) {
      return;  // headers of its own behind the fragment header: it stays without ports
    }
    packet.offload.flags = static_cast<std::uint8_t>((packet.offload.flags & Offload::has_vlan) | Offload::has_ports);
    packet.offload.gso_size = 0;
    packet.offload.checksum_start = entry.src_port;
    packet.offload.checksum_offset = entry.dst_port;
  }

  const FragmentOptions& options_;
  std::list<Entry> order_;  // the oldest first
  std::unordered_map<FragmentKey, std::list<Entry>::iterator, FragmentKeyHash> by_key_;
};

FragmentTracker::FragmentTracker(FragmentOptions options) : options_(options) {}
FragmentTracker::~FragmentTracker() = default;

void FragmentTracker::process(Batch& batch) {
  std::unique_ptr<Followed>& followed = workers_[batch.worker()];
  if (followed == nullptr) {
    followed = std::make_unique<Followed>(options_);
  }
  followed->expire(batch);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (batch[i].layout.fragment()) {
      followed->take(batch, i);
    }
  }
}

}  // namespace weir
