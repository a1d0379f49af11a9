#include <weir/control/rule_text.h>

#include <algorithm>

#include <fmt/ranges.h>

#include <weir/control/table_text.h>

namespace weir {

namespace {

std::string mac_text(const std::uint8_t* bytes) {
  MacAddress mac;
  std::copy_n(bytes, mac.bytes.size(), mac.bytes.begin());
  return mac.to_string();
}

std::string address_text(const Operation& operation, bool v6) {
  IpAddress address;
  std::copy_n(operation.bytes(), v6 ? 16 : 4, address.bytes.begin());
  address.v6 = v6;
  return address.to_string();
}

std::string describe(const Operation& operation, Layout layout, const Names& names) {
  const auto action = [&](ActionKind kind) {
    const ReasonId reason = kind == ActionKind::reject ? operation.operand<ReasonId>()
                            : kind == ActionKind::drop ? static_cast<ReasonId>(operation.number)
                                                       : ReasonId{0};
    return describe(Action{.kind = kind, .reason = reason, .number = operation.number}, names);
  };
  const auto object_action = [&](ActionKind kind, void* object) {
    return describe(Action{.kind = kind, .object = object}, names);
  };
  const bool v6 = layout.l3() == L3::ipv6;
  switch (operation.op) {
    case Op::set_macs:
      return fmt::format("set eth.dst to {} and eth.src to {}", mac_text(operation.bytes()),
                         mac_text(operation.bytes() + 6));
    case Op::set_eth_dst:
      return fmt::format("set eth.dst to {}", mac_text(operation.bytes()));
    case Op::set_eth_src:
      return fmt::format("set eth.src to {}", mac_text(operation.bytes()));
    case Op::set_vlan:
      return fmt::format("set tag {} to 0x{:02x}{:02x}/0x{:02x}{:02x}", operation.slot, operation.bytes()[0],
                         operation.bytes()[1], operation.bytes()[2], operation.bytes()[3]);
    case Op::set_src:
      return "set ip.src to " + address_text(operation, v6);
    case Op::set_dst:
      return "set ip.dst to " + address_text(operation, v6);
    case Op::set_src_port:
      return fmt::format("set l4.src_port to {}", load_big<std::uint16_t>(operation.bytes()));
    case Op::set_dst_port:
      return fmt::format("set l4.dst_port to {}", load_big<std::uint16_t>(operation.bytes()));
    case Op::set_tos:
      return fmt::format("set the traffic class to 0x{:02x}/0x{:02x}", operation.bytes()[0], operation.bytes()[1]);
    case Op::set_icmp_id:
      return fmt::format("set icmp.id to {}", load_big<std::uint16_t>(operation.bytes()));
    case Op::translate_quoted:
      return action(ActionKind::translate_quoted);
    case Op::track:
      return action(ActionKind::track);
    case Op::set_ttl:
      return fmt::format("set ip.ttl to {}", operation.bytes()[0]);
    case Op::decrement_ttl:
      return action(ActionKind::decrement_ttl);
    case Op::push_vlan:
      return action(ActionKind::push_vlan);
    case Op::pop_vlan:
      return action(ActionKind::pop_vlan);
    case Op::encapsulate:
      return action(ActionKind::encapsulate);
    case Op::decapsulate:
      return action(ActionKind::decapsulate);
    case Op::count:
      return object_action(ActionKind::count, operation.operand<Counter*>());
    case Op::meter:
      return object_action(ActionKind::meter, operation.operand<Meter*>());
    case Op::mirror:
      return action(ActionKind::mirror);
    case Op::output:
      return action(ActionKind::output);
    case Op::flood:
      return action(ActionKind::flood);
    case Op::select:
      return object_action(ActionKind::select, operation.operand<Group*>());
    case Op::reject:
      return action(ActionKind::reject);
    case Op::drop:
      return action(ActionKind::drop);
    case Op::enter:
      return action(ActionKind::enter);
    case Op::to_host:
      return action(ActionKind::to_host);
    case Op::resolve:
      return describe(Action{.kind = ActionKind::resolve,
                             .number = operation.number,
                             .value = to_field(operation.operand<IpAddress>())},
                      names);
  }
  return {};
}

RuleLine line_of(unsigned worker, const Key& value, const Key& mask, const RuleBody& body, const Names& names) {
  const Layout layout{value.layout};
  RuleLine line{worker, body.packets.get(), body.bytes.get(), describe_match(value, mask, layout, names), {}, {}};
  for (unsigned i = 0; i < body.guard_count; ++i) {
    const std::uint32_t bits = body.guards[i].bits;
    line.guards.push_back(describe(static_cast<GuardKind>(bits >> 24U & 0x7fU), bits & 0xffffffU, bits >> 31U != 0));
  }
  for (const Operation* operation = body.program.begin();; operation = operation->next()) {
    line.actions.push_back(describe(*operation, layout, names));
    if (operation->op >= Op::output) {
      return line;
    }
  }
}

}  // namespace

Names names_of(Node& node) {
  std::vector<std::string> ports;
  node.for_each_port([&](PortId id, const Port& port) {
    ports.resize(std::size_t{id.number} + 1);
    ports.back() = port.name;
  });
  return {node.state(), node.pipeline(), std::move(ports)};
}

RuleLines rule_lines(Node& node, std::size_t limit) {
  struct Found {
    std::uint64_t packets;
    unsigned worker;
    Key value, mask;
    const RuleBody* body;
    bool operator>(const Found& other) const { return packets > other.packets; }
  };
  std::vector<Found> found;  // a heap, the least used rule in front: there may be millions, and few be asked for
  RuleLines lines{};
  const Names names = names_of(node);
  const EpochScope scope(node.epochs());  // what is found stays until the scope's end
  for (unsigned i = 0; i < node.workers().size(); ++i) {
    if (CoreExecutor* core = node.workers()[i]->core()) {
      core->cache().for_each([&](const Key& value, const Key& mask, const RuleBody& body) {
        ++lines.total;
        found.push_back({body.packets.get(), i, value, mask, &body});
        std::ranges::push_heap(found, std::greater{});
        if (found.size() > limit) {
          std::ranges::pop_heap(found, std::greater{});
          found.pop_back();
        }
      });
    }
  }
  std::ranges::sort_heap(found, std::greater{});
  for (const Found& rule : found) {
    lines.rules.push_back(line_of(rule.worker, rule.value, rule.mask, *rule.body, names));
  }
  return lines;
}

std::vector<RuleLine> rules_for(Node& node, const Key& key) {
  std::vector<RuleLine> lines;
  const Names names = names_of(node);
  const EpochScope scope(node.epochs());
  for (unsigned i = 0; i < node.workers().size(); ++i) {
    if (CoreExecutor* core = node.workers()[i]->core()) {
      core->cache().for_each([&](const Key& value, const Key& mask, const RuleBody& body) {
        if (equal_under(key, value, mask)) {
          lines.push_back(line_of(i, value, mask, body, names));
        }
      });
    }
  }
  return lines;
}

std::string rules_text(const RuleLines& lines) {
  std::string text;
  for (const RuleLine& line : lines.rules) {
    text += fmt::format("  {:>9}  {}\n             of {}\n", grouped(line.packets), fmt::join(line.actions, ", "),
                        line.match.empty() ? "everything" : fmt::format("{}", fmt::join(line.match, ", ")));
    if (!line.guards.empty()) {
      text += fmt::format("             if {}\n", fmt::join(line.guards, ", "));
    }
  }
  if (lines.rules.size() < lines.total) {
    text += fmt::format("  {} rules more\n", grouped(lines.total - lines.rules.size()));
  }
  return text.empty() ? "  none\n" : "    packets\n" + text;
}

}  // namespace weir
