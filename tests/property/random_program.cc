#include <array>
#include <utility>

#include "random_program.h"

#include <weir/packet/tcp.h>

namespace weir::property {

namespace {

constexpr std::array<const char*, 2> group_names{"g0", "g1"};
constexpr DropReason reasons[] = {{"random_a", "a"}, {"random_b", "b"}, {"random_c", "c"}};
constexpr DropReason scrambled{"scrambled", "by the packet stage"};

constexpr std::string_view step_names[] = {
    "read",        "below",     "equals",   "multicast", "inside",     "has",     "flags",         "ingress",
    "egress",      "table",     "prefix",   "classify",  "version",    "learn",   "decrement_ttl", "fits",
    "set",         "push_vlan", "pop_vlan", "count",     "meter",      "mirror",  "every_packet",  "encapsulate",
    "decapsulate", "neighbour", "pick",     "path_up",   "connection", "output",  "flood",         "select",
    "select_hops", "drop",      "reject",   "next",      "to",         "to_host", "resolve",
};

struct Number {
  bool present = false;
  std::uint64_t value = 0;
};

template <class T>
Number number_of(const Maybe<T>& maybe) {
  return {maybe.present, maybe.present ? hash_value(maybe.value, 7) : 0};
}

Number read(Flow& flow, FieldId field) {
  switch (field) {
    case FieldId::eth_dst:
    case FieldId::eth_src:
    case FieldId::arp_sender_mac:
    case FieldId::arp_target_mac:
      return number_of(flow[Field<MacAddress>{field}]);
    case FieldId::arp_sender_ip:
    case FieldId::arp_target_ip:
      return number_of(flow[Field<Ipv4Address>{field}]);
    case FieldId::ip_src:
    case FieldId::ip_dst:
      return number_of(flow[Field<IpAddress>{field}]);
    case FieldId::eth_type:
    case FieldId::vlan_id:
    case FieldId::vlan_inner_id:
    case FieldId::arp_operation:
    case FieldId::l4_src_port:
    case FieldId::l4_dst_port:
    case FieldId::icmp_id:
      return number_of(flow[Field<std::uint16_t>{field}]);
    case FieldId::vxlan_vni:
    case FieldId::tunnel_vni:
      return number_of(flow[Field<std::uint32_t>{field}]);
    default:
      return number_of(flow[Field<std::uint8_t>{field}]);
  }
}

template <class Predicate>
bool test(Flow& flow, FieldId field, const Predicate& predicate) {
  const FieldSpec& s = spec(field);
  if (s.bytes == 16) {
    return flow.test(Field<IpAddress>{field}, predicate);
  }
  if (s.bytes == 6) {
    return flow.test(Field<MacAddress>{field}, predicate);
  }
  if (s.bytes == 4) {
    return flow.test(Field<Ipv4Address>{field}, predicate);
  }
  if (s.bytes == 3) {
    return flow.test(Field<std::uint32_t>{field}, predicate);
  }
  if (s.bytes == 2) {
    return flow.test(Field<std::uint16_t>{field}, predicate);
  }
  return flow.test(Field<std::uint8_t>{field}, predicate);
}

IpAddress address(bool v6, std::uint32_t number) {
  if (v6) {
    Ipv6Address a{{0x20, 0x01, 0x0d, 0xb8, 0, static_cast<std::uint8_t>(number >> 3U & 1U)}};
    a.bytes[15] = static_cast<std::uint8_t>(1 + (number & 3U));
    return a;
  }
  return Ipv4Address{
      {10, 0, static_cast<std::uint8_t>(number >> 3U & 1U), static_cast<std::uint8_t>(1 + (number & 3U))}};
}

MacAddress mac(std::uint32_t number) { return {{2, 0, 0, 0, 0, static_cast<std::uint8_t>(1 + number % 5)}}; }

// What `equals` compares with, of the field's type.
Equals wanted(FieldId field, std::uint32_t number) {
  const FieldSpec& s = spec(field);
  if (s.bytes == 16) {
    return equals(address((number & 16U) != 0, number));
  }
  if (s.bytes == 6) {
    return equals(mac(number));
  }
  if (s.bytes == 4) {
    return equals(address(false, number).to_v4());
  }
  if (s.bytes == 3) {
    return equals(number % 3);
  }
  if (s.bytes == 2) {
    static constexpr std::array<std::uint16_t, 8> values{1, 2, 100, 80, 53, 1000, 0x0800, 0x8100};
    return equals(values[number % values.size()]);
  }
  static constexpr std::array<std::uint8_t, 8> values{0, 1, 2, 6, 17, 64, 8, 3};
  return equals(values[number % values.size()]);
}

// Whether the packet has the field, by its layout.
bool present_now(Flow& flow, FieldId field) {
  switch (field) {
    case FieldId::eth_dst:
    case FieldId::eth_src:
    case FieldId::eth_type:
      return flow.has(layers::ethernet);
    case FieldId::vlan_id:
    case FieldId::vlan_pcp:
      return flow.has(layers::vlan);
    case FieldId::vlan_inner_id:
    case FieldId::vlan_inner_pcp:
      return flow.has(layers::vlan_inner);
    case FieldId::l4_src_port:
    case FieldId::l4_dst_port:
      return flow.has(layers::ports);
    default:
      return flow.has(layers::ip);
  }
}

void set(Flow& flow, FieldId field, std::uint32_t number) {
  switch (field) {
    case FieldId::eth_dst:
    case FieldId::eth_src:
      return flow.set(Field<MacAddress>{field}, mac(number));
    case FieldId::ip_src:
    case FieldId::ip_dst:
      // Mostly the packet's own family; the other one is a programming error.
      return flow.set(Field<IpAddress>{field}, address(flow.has(layers::ipv6) != (number % 16 == 15), number));
    case FieldId::vlan_id:
    case FieldId::vlan_inner_id:
    case FieldId::l4_src_port:
    case FieldId::l4_dst_port:
    case FieldId::eth_type:
      return flow.set(Field<std::uint16_t>{field}, static_cast<std::uint16_t>(number % 7 == 0 ? 100 : 80 + number));
    default:
      return flow.set(Field<std::uint8_t>{field}, static_cast<std::uint8_t>(number % 5 == 0 ? 1 : 2 + number));
  }
}

Vxlan tunnel(std::uint32_t number) {
  Vxlan vxlan;
  const bool v6 = (number & 1U) != 0;
  vxlan.vni = number % 3;
  vxlan.src = address(v6, 0);
  vxlan.dst = address(v6, 1 + number);
  vxlan.eth_src = mac(1);
  vxlan.eth_dst = mac(2);
  vxlan.dscp = static_cast<std::uint8_t>(number % 64);
  vxlan.ttl = static_cast<std::uint8_t>(10 + number);
  return vxlan;
}

// Looks the packet's connection up, judges it, takes the packet in or not, translates it or not.
bool converse(Flow& flow, const Classifier<std::uint32_t>& policies, std::uint32_t n) {
  Connection connection = flow.connection((n & 2U) != 0   ? ConnectionZone::shared(static_cast<std::uint16_t>(n & 4U))
                                          : (n & 4U) != 0 ? ConnectionZone::of_port(PortId{7})
                                                          : ConnectionZone::by_link());
  if (connection.invalid() || n % 8 == 7) {
    return connection.invalid();
  }
  bool yes = connection.is_new();
  if (n % 5 == 1) {
    const std::uint32_t* found = flow.match(policies, connection);
    yes = found != nullptr && (*found & 1U) != 0;
  }
  if (n % 3 == 0) {
    const bool v6 = connection.initiator().src.v6;
    Translation translation;
    translation.src = *IpAddress::parse(v6 ? "2001:db8:9::1" : "203.0.113.1");
    translation.src_ports = {1024, static_cast<std::uint16_t>(1023 + n)};
    if ((n & 8U) != 0) {
      translation.dst = *IpAddress::parse(v6 ? "2001:db8:1::1" : "10.0.1.1");
    }
    yes = connection.commit(translation) == Committed::created;
    connection.translate();
  } else if (n % 3 == 1) {
    yes = connection.commit() != Committed::noted;
    connection.translate();
  }
  return yes != connection.reply();
}

}  // namespace

World::World(State& s) : state(s) {
  s.limit_connections(24);
  for (unsigned i = 0; i < kinds; ++i) {
    tables.push_back(&s.table<PairKey, std::uint32_t>(
        "table", {.capacity = i == 0 ? 6U : 64U, .idle = i == 0 ? Nanoseconds{0} : Nanoseconds{50'000'000}}));
    prefixes.push_back(&s.prefixes<NextHops>("prefixes"));
    classifiers.push_back(&s.classifier<std::uint32_t>("classifier"));
    versioned.push_back(&s.versioned<std::uint32_t>("versioned", 0));
    groups.push_back(&s.group(group_names[i]));
    meters.push_back(i == 0 ? &s.packet_meter("packets", 1000, 3) : &s.byte_meter("bytes", 100'000, 2'000));
    counters.push_back(&s.counter("counter"));
  }
}

std::string Program::to_string() const {
  std::string text;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const ProgramNode& node = nodes[i];
    text += fmt::format("    {:3}: {} {} {} #{} -> {} {}\n", i, step_names[static_cast<unsigned>(node.step)],
                        spec(node.field).name, spec(node.field2).name, node.number, node.child[0], node.child[1]);
  }
  return text;
}

namespace {

// Steps that other steps follow, in the shares in which they are picked.
constexpr std::array branching{
    Step::read,       Step::read,         Step::below,         Step::equals,        Step::equals,     Step::multicast,
    Step::inside,     Step::has,          Step::has,           Step::flags,         Step::ingress,    Step::table,
    Step::table,      Step::prefix,       Step::prefix,        Step::classify,      Step::classify,   Step::version,
    Step::learn,      Step::learn,        Step::decrement_ttl, Step::decrement_ttl, Step::fits,       Step::set,
    Step::set,        Step::set,          Step::push_vlan,     Step::pop_vlan,      Step::count,      Step::meter,
    Step::mirror,     Step::every_packet, Step::encapsulate,   Step::decapsulate,   Step::neighbour,  Step::pick,
    Step::path_up,    Step::connection,   Step::connection,    Step::connection,    Step::connection, Step::connection,
    Step::connection,
};
constexpr std::array final{
    Step::output,  Step::output,  Step::flood,   Step::select,  Step::select_hops, Step::drop,
    Step::reject,  Step::next,    Step::next,    Step::next,    Step::to,          Step::to,
    Step::to_host, Step::to_host, Step::resolve, Step::resolve,
};

std::uint32_t grow(Random& random, Program& program, unsigned stage, unsigned depth) {
  const auto at = static_cast<std::uint32_t>(program.nodes.size());
  program.nodes.emplace_back();
  ProgramNode node;
  const bool end = depth == 0 || random.one_in(9);
  node.step = end ? final[random.below(final.size())] : branching[random.below(branching.size())];
  node.field = static_cast<FieldId>(random.below(field_count));
  node.field2 = static_cast<FieldId>(random.below(field_count));
  node.number = random.below(32);
  if (node.step == Step::every_packet && !random.one_in(4)) {
    node.step = Step::count;
  }
  if (node.step == Step::prefix || node.step == Step::inside) {
    node.field = random.one_in(3) ? FieldId::ip_src : FieldId::ip_dst;
  }
  if (node.step == Step::set && !random.one_in(10)) {
    static constexpr std::array settable{FieldId::eth_dst,     FieldId::eth_src, FieldId::ip_src, FieldId::ip_dst,
                                         FieldId::ip_dst,      FieldId::ip_dscp, FieldId::ip_ttl, FieldId::l4_src_port,
                                         FieldId::l4_dst_port, FieldId::vlan_id};
    node.field = settable[random.below(settable.size())];
  }
  if (stage >= World::first_delivery && !random.one_in(16)) {
    // Few programming errors.
    node.step = node.step == Step::ingress                                         ? Step::egress
                : node.step == Step::encapsulate || node.step == Step::decapsulate ? Step::read
                : node.step >= Step::output && node.step <= Step::select_hops      ? Step::next
                : node.step == Step::to_host || node.step == Step::resolve         ? Step::to
                                                                                   : node.step;
    node.number &= ~4U;  // learn does not ask for the ingress port
  }
  if (node.step == Step::to && stage + 1 >= World::stages) {
    node.step = Step::next;
  }
  if (node.step == Step::to) {
    const unsigned limit = stage < World::first_delivery && !random.one_in(12) ? World::first_delivery : World::stages;
    node.number = stage + 1 < limit ? stage + 1 + random.below(limit - stage - 1) : stage + 1;
  }
  if (!end) {
    node.child[0] = grow(random, program, stage, depth - 1);
    node.child[1] = grow(random, program, stage, depth - 1);
  }
  program.nodes[at] = node;
  return at;
}

}  // namespace

Program random_program(Random& random, unsigned stage) {
  Program program;
  grow(random, program, stage, 3 + random.below(4));
  return program;
}

namespace {

// Elsewhere, to ask for the egress port is a programming error.
bool delivers(Flow& flow) {
  try {
    return flow.egress().valid();
  } catch (...) {
    return false;
  }
}

}  // namespace

Verdict ProgramStage::decide(Flow& flow) const {
  bool another_pass = false;
  const Verdict verdict = run(flow, another_pass);
  another_pass =
      another_pass || verdict.kind == Verdict::Kind::flood || verdict.kind == Verdict::Kind::select ||
      (verdict.kind == Verdict::Kind::output && world_.state.deliveries().stage(verdict.number) != Deliveries::nowhere);
  const bool final = !another_pass && verdict.kind != Verdict::Kind::next && verdict.kind != Verdict::Kind::to;
  // Nor on a delivery side, where copies of the same packet follow.
  if (final && world_.when_decided != nullptr && !delivers(flow)) {
    if (const auto call = std::exchange(world_.when_decided, nullptr)) {
      call();
    }
  }
  return verdict;
}

Verdict ProgramStage::run(Flow& flow, bool& another_pass) const {
  std::uint32_t at = 0;
  for (;;) {
    const ProgramNode& node = program_.nodes[at];
    const std::uint32_t n = node.number;
    const std::size_t object = n % World::kinds;
    bool yes = false;
    switch (node.step) {
      case Step::read: {
        const Number number = read(flow, node.field);
        yes = number.present && (number.value >> 20U & 1U) != 0;
        break;
      }
      case Step::below:
        yes = spec(node.field).number && test(flow, node.field, below(std::uint64_t{1} << n % 17U));
        break;
      case Step::equals:
        yes = test(flow, node.field, wanted(node.field, n));
        break;
      case Step::multicast:
        yes = (n & 1U) != 0 ? flow.test(eth::dst, multicast()) : flow.test(ip::dst, multicast());
        break;
      case Step::inside: {
        const bool v6 = (n & 16U) != 0;
        yes = test(flow, node.field, inside(IpPrefix(address(v6, n), v6 ? 48 - n % 20 : 31 - n % 16)));
        break;
      }
      case Step::has:
        yes = flow.has(static_cast<Layer>(n % 19));
        break;
      case Step::flags:
        yes = flow.test(tcp::flags, (n & 1U) != 0 ? flags(tcp_flag::syn | tcp_flag::ack, tcp_flag::syn)
                                                  : flags(tcp_flag::fin | tcp_flag::rst, 0));
        break;
      case Step::ingress:
        yes = flow.ingress().number < 1 + n % 3;
        break;
      case Step::egress:
        yes = flow.egress().number < 1 + n % 3;
        break;
      case Step::table: {
        const Number a = read(flow, node.field);
        const std::uint32_t* found = flow.lookup(*world_.tables[object], {a.value, a.present ? 1U : 0U});
        yes = found != nullptr && (*found & 1U) == (n >> 1U & 1U);
        break;
      }
      case Step::prefix: {
        const NextHops* found = flow.lookup(*world_.prefixes[object], Field<IpAddress>{node.field});
        yes = found != nullptr && found->mtu < 1000 + 100 * n;
        break;
      }
      case Step::classify: {
        const std::uint32_t* found = flow.match(*world_.classifiers[object]);
        yes = found != nullptr && (*found & 1U) == (n >> 1U & 1U);
        break;
      }
      case Step::version:
        yes = flow.read(*world_.versioned[object]) % 4 < n % 4;
        break;
      case Step::learn: {
        const Number a = read(flow, node.field);
        const Learned learned = flow.learn(*world_.tables[object], {a.value, a.present ? 1U : 0U},
                                           (n & 4U) != 0 ? flow.ingress().number : n);
        yes = (n & 8U) != 0 && (learned == Learned::added || learned == Learned::full);
        break;
      }
      case Step::decrement_ttl:
        yes = flow.has(layers::ip) && flow.decrement_ttl();
        break;
      case Step::fits:
        yes = flow.fits(60 + 50 * n);
        break;
      case Step::set:
        // Without asking first, one time in eight, is the programming error that it is.
        if (n % 8 == 7 || present_now(flow, node.field)) {
          set(flow, node.field, n);
        }
        break;
      case Step::push_vlan:
        if (n % 8 == 7 || !flow.has(layers::vlan_inner)) {
          flow.push_vlan(static_cast<std::uint16_t>(n % 2 == 0 ? 100 : 0x2001));
        }
        break;
      case Step::pop_vlan:
        if (n % 8 == 7 || flow.has(layers::vlan)) {
          flow.pop_vlan();
        }
        break;
      case Step::count:
        flow.count(*world_.counters[object]);
        break;
      case Step::meter:
        flow.meter(*world_.meters[object]);
        break;
      case Step::mirror:
        flow.mirror(PortId{static_cast<std::uint16_t>(n % 6)});
        break;
      case Step::every_packet:
        flow.every_packet();
        break;
      case Step::encapsulate:
        if (n % 4 == 0) {
          flow.encapsulate(tunnel(n));
          return (n & 4U) != 0 ? flow.output(PortId{1}) : flow.next();
        }
        break;
      case Step::decapsulate:
        if (n % 8 == 7 || flow.has(layers::vxlan)) {
          n % 3 == 1 ? flow.decapsulate(n) : flow.decapsulate();
          another_pass = true;
          return (n & 1U) != 0 ? flow.next() : flow.output(PortId{2});
        }
        break;
      case Step::neighbour:
        yes = flow.neighbour(PortId{static_cast<std::uint16_t>(n % 3)}, address((n & 16U) != 0, n)) != nullptr;
        break;
      case Step::pick:
        yes = ((n & 8U) != 0 ? flow.pick_again(1 + n % 4, n) : flow.pick(1 + n % 4)) == 0;
        break;
      case Step::path_up:
        yes = flow.path_up(PortId{static_cast<std::uint16_t>(n % 3)}, address((n & 16U) != 0, n));
        break;
      case Step::connection:
        yes = converse(flow, *world_.classifiers[object], n);
        break;
      case Step::output:
        return flow.output(PortId{static_cast<std::uint16_t>(n % 6)});
      case Step::flood:
        return (n & 2U) != 0   ? flow.flood(DomainId{DomainId::first + n / 4 % 2})
               : (n & 1U) != 0 ? flow.flood(flow[vlan::id])
                               : flow.flood();
      case Step::select:
        return flow.select(*world_.groups[object]);
      case Step::select_hops: {
        const NextHops* hops = flow.lookup(*world_.prefixes[object], ip::dst);
        return hops != nullptr ? flow.select(*hops) : flow.reject(no_route);
      }
      case Step::drop:
        return flow.drop(reasons[n % 3]);
      case Step::reject:
        return n % 3 == 0   ? flow.reject(time_exceeded, PortId{static_cast<std::uint16_t>(n / 3 % 5)})
               : n % 3 == 1 ? flow.reject(prohibited)
                            : flow.reject(too_big(1280));
      case Step::next:
        return flow.next();
      case Step::to:
        return world_.stage_is_flow[n] ? flow.to(*static_cast<const FlowStage*>(world_.stage_addresses[n]))
                                       : flow.to(*static_cast<const PacketStage*>(world_.stage_addresses[n]));
      case Step::to_host:
        return flow.to_host();
      case Step::resolve: {
        // Without asking first, one time in eight, it may be known.
        const PortId port{static_cast<std::uint16_t>(n % 5)};
        const IpAddress next = address((n & 16U) != 0, n);
        return n % 8 == 7 || flow.neighbour(port, next) == nullptr ? flow.resolve(port, next) : flow.output(port);
      }
    }
    at = node.child[yes ? 1 : 0];
  }
}

void Scrambler::process(Batch& batch) {
  Kept& kept = kept_[batch.worker()];
  // Every other call between batches, and the last one, sends the oldest on; a full house in between drops it.
  if (batch.size() == 0 && (batch.last() || kept.idle_calls++ % 2 == 1)) {
    batch.hand_back(kept.packets.front(), kept.idle_calls % 4 == 1 ? 1 : 0);
    kept.packets.pop_front();
  }
  for (std::size_t i = 0; i < batch.size(); ++i) {
    Packet& packet = batch[i];
    std::uint32_t sum = 0;
    for (const Packet* segment = &packet; segment != nullptr; segment = segment->next) {
      for (const std::uint8_t byte : segment->bytes()) {
        sum = sum * 31 + byte;
      }
    }
    if (sum % 5 == 0) {
      batch.drop(i, scrambled);
      continue;
    }
    if (sum % 5 == 1 && packet.segment >= 12) {
      packet.data[11] = static_cast<std::uint8_t>(1 + sum % 4);
    }
    if (sum % 5 == 2) {
      if (const auto number = batch.keep(i)) {
        kept.packets.push_back(*number);
      } else {
        batch.drop(kept.packets.front(), scrambled);
        kept.packets.pop_front();
      }
    }
    batch.send(i, static_cast<std::uint16_t>(sum >> 8U & 1U));
  }
}

}  // namespace weir::property
