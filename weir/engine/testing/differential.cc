#include <weir/engine/testing/differential.h>

#include <algorithm>

namespace weir::testing {

namespace {

struct Named {
  std::string name;
  TestPacket packet;
};

const std::vector<Named>& packets() {
  static const std::vector<Named> all = [] {
    std::vector<Named> result;
    for (const Specimen& specimen : corpus()) {
      result.push_back({specimen.name, specimen.packet});
    }
    for (const Specimen& specimen : corpus()) {
      for (const TestPacket& cut : truncations(specimen.packet)) {
        result.push_back({fmt::format("{}, cut to {}", specimen.name, cut.bytes.size()), cut});
      }
    }
    return result;
  }();
  return all;
}

constexpr std::size_t sizes[] = {1, 32, 7, 256, 3, 64};
constexpr Nanoseconds step = 1'000'000;

}  // namespace

std::string check(const Program& program) {
  Differential nodes(program.build);
  Nanoseconds now = 1;
  std::size_t batch = 0;
  for (unsigned round = 0; round < 2; ++round) {
    for (std::size_t at = 0; at < packets().size(); ++batch) {
      const std::size_t size = std::min(sizes[batch % std::size(sizes)], packets().size() - at);
      std::vector<TestPacket> together;
      for (std::size_t i = at; i < at + size; ++i) {
        together.push_back(packets()[i].packet);
      }
      const std::string text = nodes.send(port(batch % 5 == 4 ? 1 : 0), together, now);
      if (!text.empty()) {
        return fmt::format("{}: round {}, from '{}' to '{}': {}", program.name, round, packets()[at].name,
                           packets()[at + size - 1].name, text);
      }
      at += size;
      now += step;
    }
    if (const std::string text = nodes.idle(now); !text.empty()) {
      return fmt::format("{}: idle: {}", program.name, text);
    }
  }
  return nodes.close();
}

std::string check_mutations(const Program& program, std::uint64_t seed, unsigned count) {
  Random random(seed);
  const std::vector<Specimen> specimens = corpus();
  Differential nodes(program.build);
  Nanoseconds now = 1;
  for (unsigned sent = 0; sent < count;) {
    std::vector<TestPacket> together;
    for (std::size_t i = 1 + random.below(20); i > 0; --i) {
      TestPacket packet = specimens[random.below(static_cast<std::uint32_t>(specimens.size()))].packet;
      together.push_back(random.one_in(4) ? packet : mutation(packet, random));
    }
    for (unsigned round = 0; round < 2; ++round) {
      const std::string text = nodes.send(port(static_cast<std::uint16_t>(random.below(2))), together, now);
      if (!text.empty()) {
        return fmt::format("{}: seed {}, after {} packets: {}", program.name, seed, sent, text);
      }
      now += step;
    }
    sent += static_cast<unsigned>(together.size());
  }
  return nodes.close();
}

std::map<std::uint16_t, std::vector<Sent>> reference_output(const Build& build, const TestPacket& packet) {
  TestNode node(EngineKind::reference, build, {});
  node.send(port(0), {{packet}}, 1);
  return node.observe().sent;
}

}  // namespace weir::testing
