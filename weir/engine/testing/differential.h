#pragma once
// Programs, that is graphs with a name, and what the engines make of them.

#include <weir/engine/testing/corpus.h>

namespace weir::testing {

struct Program {
  std::string name;
  Build build;
};

/// A graph of one stage.
template <class F>
Program one(std::string name, F decide) {
  return {std::move(name), [decide](GraphBuilder& graph) { graph.stage(decide); }};
}

/// A graph of one stage, which `make(graph)` returns.
template <class Make>
Program with(std::string name, Make make) {
  return {std::move(name), [make](GraphBuilder& graph) { graph.stage(make(graph)); }};
}

/// Sends the corpus, twice, whole and cut short, in batches of several sizes, through nodes of all engines. Returns the
/// first difference in words; empty if there is none.
std::string check(const Program& program);

/// The same with `count` mutated packets, each sent twice.
std::string check_mutations(const Program& program, std::uint64_t seed, unsigned count);

/// What the reference engine sends for one packet that comes in by port 0 at time 1, by port.
std::map<std::uint16_t, std::vector<Sent>> reference_output(const Build& build, const TestPacket& packet);

inline PortId port(std::uint16_t number) { return PortId{number}; }
inline MacAddress mac(std::uint8_t last) { return {{2, 0, 0, 0, 1, last}}; }
inline IpAddress ip_address(std::string_view text) { return *IpAddress::parse(text); }

inline constexpr DropReason refused{"refused", "by a test"};

}  // namespace weir::testing
