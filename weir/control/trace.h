#pragma once
// Explains one packet: the stages it goes through, what they look at, the rule it becomes, and where it goes. Nothing
// leaves the node.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <weir/control/node_file.h>
#include <weir/control/rule_text.h>

namespace weir {

/// One frame and where it came from.
struct TracedFrame {
  std::vector<std::uint8_t> bytes;
  PortId port;
  Nanoseconds time = 0;
};

/// One decision: from the graph's start, or from where a packet stage or decapsulation sent the packet on.
struct TracedDecision {
  struct Step {
    std::string stage;
    std::vector<std::string> events;  ///< "reads l4.dst_port=23", "looks up ... in macs: port bob", in order
  };
  std::vector<Step> steps;
  std::vector<std::string> match, guards, actions;  ///< the rule it became
  std::vector<std::string> dependencies;
  std::string not_cacheable;  ///< if not empty, why no rule is kept
};

struct TraceReport {
  std::string port;
  std::vector<std::string> packet;  ///< its headers, a line each
  std::vector<TracedDecision> decisions;
  std::vector<std::string> outputs;  ///< "bob: 74 bytes", in order
  std::vector<std::string> drops;    ///< "denied_by_rule: a rule of the firewall denies it"
  std::string placement;
  std::vector<RuleLine> cached;  ///< of a running node: the rules of its workers that take such packets now
};

enum class TraceMode : std::uint8_t {
  replay,   ///< a node built with LoadMode::trace, which remembers what it learns as the node itself would
  running,  ///< a node that runs, in which nothing changes: nothing is learned, counted or sent
};

/// Runs frames through a node, at their times. Of a running node: any thread but a worker's, for a short time.
class PacketTracer {
 public:
  explicit PacketTracer(Node& node, TraceMode mode = TraceMode::replay);
  ~PacketTracer();

  /// Without a report: what came before.
  void pass(const TracedFrame& frame);
  TraceReport trace(const TracedFrame& frame);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// For people.
std::string trace_text(const TraceReport& report);
std::string trace_json(const TraceReport& report);
/// From the answer of a running node (/v1/trace).
Result<TraceReport> read_trace(const std::string& json);

/// What the node file's captures hold.
struct TraceInput {
  TracedFrame frame;                ///< the one to explain
  std::vector<TracedFrame> before;  ///< the others to pass first, in the order of their times
};

/// Packet `number` (from 1) of the capture that `port` reads (empty: the first port that reads one), and the first
/// `after` packets of all captures together, in the order of their times, but only such as came before it.
Result<TraceInput> find_packet(const NodeFile& file, std::uint64_t number, const std::string& port,
                               std::uint64_t after);
/// A frame from hexadecimal digits; spaces, colons and line ends between them do not matter.
Result<TraceInput> packet_from_hex(const NodeFile& file, std::string_view digits, const std::string& port);
Result<std::vector<std::uint8_t>> frame_from_hex(std::string_view digits);

}  // namespace weir
