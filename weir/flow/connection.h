#pragma once
// What a stage sees of the connection that its packet belongs to: `flow.connection()`.

#include <cstdint>

#include <weir/flow/connections.h>
#include <weir/flow/drop_reason.h>
#include <weir/flow/maybe.h>
#include <weir/flow/region.h>
#include <weir/packet/key.h>

namespace weir {

class Flow;

/// Reasons for which stages that follow connections drop packets.
namespace drop {
inline constexpr DropReason invalid_connection{"invalid_connection",
                                               "belongs to no connection, and cannot begin one (or not in this way)"};
inline constexpr DropReason connections_full{"connections_full",
                                             "would begin a connection, and all that may be followed are established"};
inline constexpr DropReason nat_exhausted{"nat_exhausted", "no port is left for the translation of its connection"};
}  // namespace drop

/// The ports that a translation may take; `first` <= `last`.
struct PortRange {
  std::uint16_t first = 1024;
  std::uint16_t last = 65'535;

  bool operator==(const PortRange&) const = default;
};

/// How a connection is to be translated: its packets get these, and those of answers the originals. What is absent
/// stays. Given when the connection begins, and kept until it ends.
struct Translation {
  Maybe<IpAddress> src;  ///< source NAT; of the packet's own family
  PortRange src_ports;   ///< that it may use; its own is kept if it is free and in the range
  Maybe<IpAddress> dst;  ///< destination NAT
  Maybe<std::uint16_t> dst_port;
};

/// The packet's place among the node's connections. Lives for one `decide`.
class Connection {
 public:
  [[nodiscard]] ConnectionState state() const { return state_; }
  [[nodiscard]] bool is_new() const { return state_ == ConnectionState::fresh; }
  [[nodiscard]] bool established() const { return state_ == ConnectionState::established; }
  [[nodiscard]] bool related() const { return state_ == ConnectionState::related; }
  [[nodiscard]] bool invalid() const { return state_ == ConnectionState::invalid; }

  /// The packet goes from the responder to the initiator.
  [[nodiscard]] bool reply() const { return found_.side == 1 && !found_.reopens; }
  /// It is of a connection whose packets are translated.
  [[nodiscard]] bool translated() const { return found_.translated && !found_.reopens; }
  /// Addresses and ports of the connection's first packet, as it came: what policies judge packets of both directions
  /// by. Of an invalid packet, its own.
  [[nodiscard]] const ConnectionTuple& initiator() const { return tuple_; }
  /// The port that the first packet came in by.
  [[nodiscard]] PortId ingress() const;

  /// The packet is accepted: it begins the connection, or is taken in by it. Without this a packet leaves no trace; so
  /// that a stage calls it when it knows that it will not drop the packet. Once the packet has been rewritten, or is in
  /// a tunnel, it is still the packet that came that counts.
  Committed commit();
  /// The same; a connection that begins is translated. See `translate`.
  Committed commit(const Translation& translation);
  /// Rewrites the packet as the connection's translation, if it has one, wants it: forth, back, or in the header that
  /// an ICMP error quotes. After `commit`.
  void translate();

 private:
  friend class Flow;
  explicit Connection(Flow& flow) : flow_(flow) {}

  // Puts what the first packet had where a key has it; whether that changed the key.
  bool put_initiator(Key& key) const;
  static constexpr std::uint8_t not_its_own = rewritten::src | rewritten::dst | rewritten::ports | rewritten::way;
  // Without the bits that were the first packet's.
  static Key without_initiator(Key mask);

  void look_up(ConnectionZone zone);
  [[nodiscard]] bool read_tuple(ConnectionZone zone, const TransportFacts& facts);
  void judge_error(const TransportFacts& facts);
  Committed begin(const ConnectionTuple& reply);
  void translate_error(const ConnectionTuple& came, const ConnectionTuple& goes);
  [[nodiscard]] Maybe<ConnectionTuple> find_reply(const Translation& translation) const;

  Flow& flow_;
  ConnectionTuple tuple_;
  ConnectionState state_ = ConnectionState::invalid;
  Connections::Found found_{};
};

}  // namespace weir
