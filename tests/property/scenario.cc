#include <algorithm>

#include "scenario.h"

namespace weir::property {

namespace {

IpPrefix random_prefix(Random& random) {
  if (random.one_in(3)) {
    Ipv6Address a{{0x20, 0x01, 0x0d, 0xb8, 0, static_cast<std::uint8_t>(random.below(2))}};
    a.bytes[15] = static_cast<std::uint8_t>(random.below(5));
    static constexpr unsigned lengths[] = {0, 16, 32, 48, 64, 126, 127, 128};
    return {a, lengths[random.below(8)]};
  }
  const Ipv4Address a{{10, static_cast<std::uint8_t>(random.below(2)), static_cast<std::uint8_t>(random.below(2)),
                       static_cast<std::uint8_t>(random.below(5))}};
  static constexpr unsigned lengths[] = {0, 8, 15, 16, 24, 30, 31, 32};
  return {a, lengths[random.below(8)]};
}

Match random_match(Random& random) {
  Match match;
  if (random.one_in(2)) {
    match.with(random.one_in(2) ? ip::src : ip::dst, random_prefix(random));
  }
  static constexpr Layer layer[] = {Layer::tcp, Layer::udp,  Layer::icmp, Layer::ip,
                                    Layer::arp, Layer::vlan, Layer::sctp};
  if (random.one_in(3)) {
    match.with(layer[random.below(7)]);
  }
  static constexpr std::uint16_t ports[] = {53, 80, 1000, 1024, 5000};
  if (random.one_in(3)) {
    match.with(random.one_in(2) ? l4::dst_port : l4::src_port, ports[random.below(5)]);
  } else if (random.one_in(4)) {
    match.with_block(l4::dst_port, 1024, 10);
  }
  if (random.one_in(5)) {
    match.with(vlan::id, static_cast<std::uint16_t>(1 + random.below(2)));
  }
  if (random.one_in(6)) {
    match.with(ip::ttl, static_cast<std::uint8_t>(random.one_in(2) ? 63 : 64));
  }
  if (random.one_in(6)) {
    match.with(eth::dst, MacAddress{{2, 0, 0, 0, 0, static_cast<std::uint8_t>(1 + random.below(4))}});
  }
  if (random.one_in(6)) {
    const PortId port{static_cast<std::uint16_t>(random.below(3))};
    random.one_in(2) ? match.with_ingress(port) : match.with_egress(port);
  }
  return match;
}

std::shared_ptr<const FloodDomain> random_domain(Random& random, World& world, std::vector<PortId> ports) {
  FloodDomain domain;
  domain.ports = std::move(ports);
  for (std::uint32_t i = random.below(3); i > 0; --i) {
    domain.tagged.push_back(
        {PortId{static_cast<std::uint16_t>(random.below(5))}, static_cast<std::uint16_t>(random.below(4))});
  }
  const bool v6 = random.one_in(2);
  const auto address = [&](std::uint32_t last) {
    return *IpAddress::parse(fmt::format("{}{}", v6 ? "2001:db8::" : "10.0.0.", last));
  };
  domain.tunnel.vni = random.below(3);
  domain.tunnel.src = address(100);
  for (std::uint32_t i = random.below(4); i > 0; --i) {
    Remote remote{.address = address(100 + i)};
    if (random.one_in(2)) {
      remote.group = world.groups[random.below(World::kinds)];
    } else {
      remote.port = PortId{static_cast<std::uint16_t>(random.below(5))};
      remote.next_hop = *IpAddress::parse(fmt::format("10.0.0.{}", 1 + random.below(4)));
    }
    domain.remotes.push_back(remote);
  }
  return std::make_shared<const FloodDomain>(std::move(domain));
}

void record(const Change& change, World& world, Update& update) {
  Random random(change.random);
  const std::size_t object = change.object % World::kinds;
  switch (change.what) {
    case Change::What::set_entry:
    case Change::What::erase_entry: {
      // A key that packets have: a hashed address or number, as programs build it.
      static constexpr std::uint16_t numbers[] = {53, 80, 1000, 1, 2, 100};
      const std::uint64_t a =
          random.one_in(2) ? hash_value(MacAddress{{2, 0, 0, 0, 0, static_cast<std::uint8_t>(1 + random.below(4))}}, 7)
                           : hash_value(numbers[random.below(6)], 7);
      const PairKey key{random.one_in(8) ? 0 : a, random.one_in(8) ? 0U : 1U};
      if (change.what == Change::What::set_entry) {
        update.set(*world.tables[object], key, random.below(4));
      } else {
        update.erase(*world.tables[object], key);
      }
      break;
    }
    case Change::What::set_route:
      update.set(
          *world.prefixes[object], random_prefix(random),
          {static_cast<std::uint16_t>(random.below(2)), static_cast<std::uint16_t>(1000 + 100 * random.below(32))});
      break;
    case Change::What::erase_route:
      update.erase(*world.prefixes[object], random_prefix(random));
      break;
    case Change::What::set_rule: {
      const std::uint32_t order = random.below(12);
      update.set(*world.classifiers[object], order, random_match(random), random.below(4));
      break;
    }
    case Change::What::erase_rule:
      update.erase(*world.classifiers[object], random.below(12));
      break;
    case Change::What::set_version:
      update.set(*world.versioned[object], random.below(4));
      break;
    case Change::What::members: {
      std::vector<Member> members;
      for (std::uint32_t i = random.below(4); i > 0; --i) {
        members.push_back({PortId{static_cast<std::uint16_t>(random.below(5))},
                           MacAddress{{2, 0, 0, 0, 9, static_cast<std::uint8_t>(i)}},
                           MacAddress{{2, 0, 0, 0, 8, static_cast<std::uint8_t>(random.below(3))}}, !random.one_in(4)});
        if (random.one_in(2)) {
          members.back().path = IpAddress(Ipv4Address{{10, 0, 0, static_cast<std::uint8_t>(1 + random.below(4))}});
        }
      }
      update.set_members(*world.groups[object], std::move(members));
      break;
    }
    case Change::What::domain: {
      std::vector<PortId> ports;
      for (std::uint16_t i = 0; i < 4; ++i) {
        if (random.one_in(2)) {
          ports.push_back(PortId{i});
        }
      }
      if (object == 0) {
        update.set_flood_ports(std::move(ports));
      } else if (random.one_in(2)) {
        update.set_flood_domain(static_cast<std::uint16_t>(random.below(3)), std::move(ports));
      } else {
        update.set_flood_domain(DomainId{DomainId::first + random.below(2)},
                                random.one_in(6) ? nullptr : random_domain(random, world, std::move(ports)));
      }
      break;
    }
    case Change::What::delivery: {
      // Mostly a delivery stage or none; a stage that is meant for what comes in makes programming errors there.
      const std::uint32_t kind = random.below(8);
      const std::uint32_t stage = kind < 2 ? Deliveries::nowhere
                                  : kind == 2
                                      ? random.below(World::stages)
                                      : World::first_delivery + random.below(World::stages - World::first_delivery);
      update.set_delivery(PortId{static_cast<std::uint16_t>(random.below(5))}, static_cast<std::uint8_t>(stage));
      break;
    }
    case Change::What::path:
      // At once, and no part of the update: links and neighbours change of themselves.
      world.state.paths().link(PortId{static_cast<std::uint16_t>(random.below(3))}, !random.one_in(3));
      break;
  }
}

Change random_change(Random& random) {
  static constexpr Change::What kinds[] = {
      Change::What::set_entry,  Change::What::set_entry,   Change::What::erase_entry, Change::What::set_route,
      Change::What::set_route,  Change::What::erase_route, Change::What::set_rule,    Change::What::set_rule,
      Change::What::erase_rule, Change::What::set_version, Change::What::members,     Change::What::domain,
      Change::What::delivery,   Change::What::delivery,    Change::What::path};
  return {kinds[random.below(std::size(kinds))], random.below(2), random()};
}

}  // namespace

Scenario make_scenario(std::uint64_t seed, unsigned workers) {
  Random random(seed);
  Scenario scenario;
  scenario.seed = seed;
  scenario.workers = workers;
  static constexpr std::uint32_t caches[] = {64, 64, 256, 1024};
  scenario.rule_cache = caches[random.below(4)];
  static constexpr std::size_t masks[] = {RuleCache::mask_limit, RuleCache::mask_limit, 8, 3};
  scenario.masks = masks[random.below(4)];
  scenario.idle_timeout = random.one_in(3) ? 30'000'000 : 10'000'000'000;
  for (unsigned stage = 0; stage < World::stages; ++stage) {
    scenario.programs.push_back(random_program(random, stage));
  }
  // A first set of state, so that look-ups find something.
  ScenarioStep first{ScenarioStep::What::update};
  for (int i = 0; i < 24; ++i) {
    first.changes.push_back(random_change(random));
  }
  first.changes.push_back({Change::What::domain, 0, random()});
  scenario.steps.push_back(std::move(first));

  // A few frames come again and again: hits.
  std::vector<Frame> known;
  for (int i = 0; i < 12; ++i) {
    known.push_back(random_frame(random));
  }
  for (int i = 0; i < 50; ++i) {
    ScenarioStep step{ScenarioStep::What::batch};
    const std::uint32_t kind = random.below(11);
    if (kind < 7 || kind == 10) {
      step.worker = random.below(workers);
      step.port = PortId{static_cast<std::uint16_t>(random.below(Subject::ports))};
      const std::uint32_t count = 1 + random.below(random.one_in(4) ? 32 : 8);
      for (std::uint32_t p = 0; p < count; ++p) {
        Frame& from = known[random.below(static_cast<std::uint32_t>(known.size()))];
        if (random.one_in(20)) {
          from = random_frame(random);
        }
        step.frames.push_back(random.one_in(8) ? random_frame(random) : from);
        // The same flow with another TTL, length or checksum state.
        if (random.one_in(8) && step.frames.back().bytes.size() > 23) {
          step.frames.back().bytes[22] = static_cast<std::uint8_t>(random.below(4));
        }
      }
      if (kind == 10) {
        step.what = ScenarioStep::What::during;
        step.frames.resize(1);
        while (step.changes.size() < 2) {
          if (const Change change = random_change(random); change.what < Change::What::members) {
            step.changes.push_back(change);
          }
        }
      }
    } else if (kind < 9) {
      step.what = ScenarioStep::What::update;
      for (std::uint32_t c = 1 + random.below(3); c > 0; --c) {
        step.changes.push_back(random_change(random));
      }
    } else {
      step.what = ScenarioStep::What::clock;
      static constexpr Nanoseconds steps[] = {1'000,         1'000'000,      20'000'000,    60'000'000,
                                              1'000'000'000, 11'000'000'000, 46'000'000'000};
      step.advance = steps[random.below(7)];
    }
    scenario.steps.push_back(std::move(step));
  }
  return scenario;
}

std::size_t Scenario::packets() const {
  std::size_t count = 0;
  for (const ScenarioStep& step : steps) {
    count += step.frames.size();
  }
  return count;
}

std::string Scenario::to_string() const {
  std::string text = fmt::format("seed {}, {} worker(s), rule cache {}, {} masks, idle {} ms\n", seed, workers,
                                 rule_cache, masks, idle_timeout / 1'000'000);
  for (std::size_t i = 0; i < programs.size(); ++i) {
    text += fmt::format("  stage {}:\n{}", i, programs[i].to_string());
  }
  for (const ScenarioStep& step : steps) {
    switch (step.what) {
      case ScenarioStep::What::during:
      case ScenarioStep::What::batch:
        text += fmt::format("  batch, worker {}, port {}:\n", step.worker, step.port.number);
        for (const Frame& frame : step.frames) {
          text +=
              fmt::format("    {}{}\n", hex(frame.bytes),
                          frame.partial_checksum ? fmt::format(" (partial checksum, segment {})", frame.segment) : "");
        }
        if (step.what == ScenarioStep::What::batch) {
          break;
        }
        text += "   during";
        [[fallthrough]];
      case ScenarioStep::What::update:
        text += "  update:";
        for (const Change& change : step.changes) {
          text += fmt::format(" {}/{}/{}", static_cast<int>(change.what), change.object, change.random);
        }
        text += "\n";
        break;
      case ScenarioStep::What::clock:
        text += fmt::format("  clock +{} us\n", step.advance / 1000);
        break;
    }
  }
  return text;
}

namespace {

// Between the last of the subjects and the others, since the last look; or what does not add up in one.
std::optional<std::string> difference(const std::vector<std::unique_ptr<Subject>>& subjects) {
  static constexpr const char* names[] = {"cached", "uncached", "reference"};
  const Observed expected = subjects[2]->observe();
  for (std::size_t i = 0; i < 2; ++i) {
    const Observed seen = subjects[i]->observe();
    if (!(seen == expected)) {
      return fmt::format("{} and reference differ:\n{}", names[i], seen.difference(expected));
    }
  }
  for (std::size_t i = 0; i < 2; ++i) {
    if (subjects[i]->table_contents() != subjects[2]->table_contents() ||
        subjects[i]->neighbours() != subjects[2]->neighbours()) {
      return fmt::format("{} and reference have learned differently", names[i]);
    }
  }
  for (std::size_t i = 0; i < 3; ++i) {
    if (!subjects[i]->accounted()) {
      return fmt::format("{} lost count of a packet", names[i]);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> run(const Scenario& scenario, Outcome& outcome) {
  std::vector<std::unique_ptr<Subject>> subjects;
  for (const Kind kind : {Kind::cached, Kind::uncached, Kind::reference}) {
    subjects.push_back(
        std::make_unique<Subject>(SubjectOptions{kind, scenario.rule_cache, scenario.masks, scenario.idle_timeout,
                                                 scenario.workers, scenario.seed | 1U},
                                  scenario.programs));
  }
  Nanoseconds now = 1'000'000;
  for (std::size_t s = 0; s < scenario.steps.size(); ++s) {
    const ScenarioStep& step = scenario.steps[s];
    now += 10'000;
    if (step.what == ScenarioStep::What::clock) {
      now += step.advance;
      continue;
    }
    for (const auto& subject : subjects) {
      if (step.what == ScenarioStep::What::batch) {
        subject->process(step.worker, step.port, step.frames, now);
      } else {
        Update update;
        for (const Change& change : step.changes) {
          record(change, subject->world(), update);
        }
        if (step.what == ScenarioStep::What::during) {
          subject->process_during(step.worker, step.port, step.frames, update, now);
        } else {
          subject->apply(update, now);
        }
      }
      subject->idle(step.worker, now);
    }
    if (auto text = difference(subjects)) {
      return fmt::format("step {}: {}", s, *text);
    }
  }
  for (const auto& subject : subjects) {
    subject->finish(now);
  }
  if (auto text = difference(subjects)) {
    return fmt::format("at the end: {}", *text);
  }
  outcome.cached_packets += subjects[0]->hits();
  outcome.masks = std::max(outcome.masks, subjects[0]->masks());
  if (subjects[0]->masks() > RuleCache::mask_limit) {
    return fmt::format("{} masks", subjects[0]->masks());
  }
  return std::nullopt;
}

namespace {

bool fails(const Scenario& scenario) {
  Outcome ignored;
  return run(scenario, ignored).has_value();
}

// Leaves out as many elements as it can, in runs of half the length each time.
template <class T, class Still>
void thin(std::vector<T>& list, Still still_fails) {
  for (std::size_t run = std::max<std::size_t>(1, list.size() / 2);; run /= 2) {
    for (std::size_t at = 0; at < list.size();) {
      std::vector<T> kept(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(at));
      kept.insert(kept.end(), list.begin() + static_cast<std::ptrdiff_t>(std::min(list.size(), at + run)), list.end());
      std::swap(list, kept);
      if (!still_fails()) {
        std::swap(list, kept);
        at += run;
      }
    }
    if (run <= 1) {
      return;
    }
  }
}

}  // namespace

Scenario shrink(Scenario scenario) {
  for (int round = 0; round < 2; ++round) {
    thin(scenario.steps, [&] { return fails(scenario); });
    for (ScenarioStep& step : scenario.steps) {
      thin(step.frames, [&] { return fails(scenario); });
      thin(step.changes, [&] { return fails(scenario); });
    }
  }
  return scenario;
}

}  // namespace weir::property
