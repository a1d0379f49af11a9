"""Mutants of the semantics (docs/architecture.md, section 5): each leaves out one rule, or a part of one.

NAME: (rule, what is left out, file, text in it, text instead). The text occurs exactly once in the file.
"""

MUTANTS = {
    "layout_not_matched": (
        "1", "a rule does not match the packet's layout",
        "weir/flow/traced_flow.cc", "    rule_.mask.layout = 0xffff;\n", "    rule_.mask.layout = 0x0001;\n"),
    "reads_not_consulted": (
        "1", "what a stage reads is not matched",
        "weir/flow/traced_flow.cc", "  consulted_ = consulted_ | fresh;\n", ""),
    "guards_not_tested": (
        "2", "guards are not tested on a hit",
        "weir/engine/core/core_executor.cc", "g < body.guard_count; ++g", "g < body.guard_count * 0; ++g"),
    "guard_outcome_ignored": (
        "2", "a rule for the opposite outcome takes packets of either",
        "weir/engine/core/core_executor.cc", "if (holds != (bits >> 31U != 0)) {", "if (!holds && bits >> 31U != 0) {"),
    "guard_not_on_untouched": (
        "2", "a second TTL guard is tested as if the first decrement had not been",
        "weir/flow/traced_actions.cc", "guard(GuardKind::ttl_above, ttl_taken_ + 1,", "guard(GuardKind::ttl_above, 1,"),
    "ecn_not_per_packet": (
        "3", "the outer ECN is not the packet's own",
        "weir/engine/core/core_actions.cc",
        "const std::uint8_t ecn = packet.layout.ip() ? edit::tos(packet) & 3U : 0;", "const std::uint8_t ecn = 0;"),
    "source_port_not_per_packet": (
        "3", "the outer source port is the same for all packets of a rule",
        "weir/engine/core/core_actions.cc", "(49152U + (hash >> 32U & 0x3fffU))", "(49152U + (hash & 0U))"),
    "stage_not_matched": (
        "4", "a rule made behind a packet stage or decapsulation also takes packets that have not been there",
        "weir/flow/traced_flow.cc", "  rule_.mask.stage = 0xff;\n", "  rule_.mask.stage = 0;\n"),
    "tunnel_not_matched": (
        "4", "a packet out of a tunnel is looked up as if it had come in by itself",
        "weir/packet/parse.cc", "layout_.bits = packet_.tunnel != 0 ? Layout::tunnel_bit : 0;", "layout_.bits = 0;"),
    "members_frozen": (
        "5", "a select keeps the members of its first packet",
        "weir/engine/core/core_actions.cc", "  const Member* member = group.members().pick(hash);\n",
        "  static std::map<std::pair<const Group*, std::uint64_t>, Members> frozen;\n"
        "  const Member* member = frozen.try_emplace({&group, context_.state.seed()}, group.members()).first->second.pick(hash);\n"),
    "copies_share_headers": (
        "5", "a mirror shows what was done to the packet after it",
        "weir/packet/frame_pool.cc", "  const unsigned own = std::min<unsigned>(packet.segment, 2 * Packet::header_bytes);\n",
        "  const unsigned own = 0;\n"),
    "hash_after_nat": (
        "6", "a select goes by the packet as rewritten",
        "weir/engine/core/core_actions.cc",
        "        return select(packet, *operation->operand<const Group*>(), hash_of(i), operation->slot != 0);",
        "        parse(*packet, keys_[i]);\n"
        "        return select(packet, *operation->operand<const Group*>(), hash_of(i), operation->slot != 0);"),
    "keyed_not_checked_at_install": (
        "7", "a rule is installed though a key it looked up has changed since",
        "weir/flow/dependency.cc", "  if (generation != generation_) {\n", "  if (generation > generation_ + 1000) {\n"),
    "change_clears_nothing": (
        "7", "a changed entry leaves the rules that depend on it valid",
        "weir/flow/dependency.cc", "links_[i]->rule->valid.exchange(0, std::memory_order_acq_rel)",
        "links_[i]->rule->valid.load(std::memory_order_acquire)"),
    "validity_not_checked": (
        "7", "what the look-up found is executed even if a packet before it in the batch cleared it",
        "weir/engine/core/core_executor.cc",
        "    if (body.anchor.valid.load(std::memory_order_acquire) != 0 && (body.guard_count == 0",
        "    if (true && (body.guard_count == 0"),
    "hint_not_verified": (
        "7", "an entry of the exact cache is taken at its word",
        "weir/engine/core/rule_cache.h", "           equal_under(key, values_[rule], masks_[body.mask].mask);",
        "           key.stage == values_[rule].stage;"),
    "policy_edit_finds_nothing": (
        "7", "a policy edit clears no rule",
        "weir/flow/update.cc", "state.revoke(noted.source, noted.regions);", "state.revoke(noted.source * 0, noted.regions);"),
    "rewritten_bits_taken_as_known": (
        "7", "a policy edit compares bits that a rule had rewritten before it looked",
        "weir/flow/region.h", "region.mask.word(i) & mask.word(i) & ~unknown.word(i);", "region.mask.word(i) & mask.word(i) & ~(unknown.word(i) & 0U);"),
    "learning_seen_as_no_change": (
        "7", "a rule is installed for a decision that itself changed what it saw",
        "weir/flow/traced_flow.h", 'void not_cacheable(std::string_view why) override { rule_.not_cacheable = why; }',
        "void not_cacheable(std::string_view) override {}"),
    "connection_rule_without_flags": (
        "12", "a rule of an established connection takes its SYNs, FINs and RSTs, too",
        "weir/flow/connection.cc", "flow_.test(tcp::flags, flags(tcp_flag::control, facts.flags & tcp_flag::control));", "(void)facts;"),
    "connection_in_transition_kept": (
        "12", "a decision on a packet that changes its connection is kept",
        "weir/flow/connection.cc", 'flow_.not_cacheable("its connection opens or closes");', "(void)0;"),
    "connection_change_tells_nobody": (
        "12", "rules of a connection outlive a change of its state",
        "weir/flow/connections.cc", "    changed(found.original, found.reply, found.translated);\n", ""),
    "track_does_nothing": (
        "12", "packets that a rule takes do not keep their connection alive",
        "weir/engine/core/core_actions.cc", "  if (!track.holds()) [[unlikely]] {", "  if (!track.holds() || now != 0) {"),
    "waves_run_deep": (
        "7", "packets that recirculate keep no order of arrival",
        "weir/engine/core/core_actions.cc", "        next_[place] = packet;\n",
        "        next_[place < count_ && next_[count_ - 1 - place] == nullptr ? count_ - 1 - place : place] = packet;\n"),
    "stale_install_kept": (
        "8", "a rule traced before a policy edit is installed after it",
        "weir/engine/core/rule_install.cc", "    holds = holds && region.state->holds(region.generation);\n",
        "    (void)region;\n"),
    "update_returns_before_revoking": (
        "9", "an update returns while rules it concerns are still in force",
        "weir/flow/update.cc", "  revoke_noted(state);\n  steps_.clear();", "  steps_.clear();"),
    "own_writes_late": (
        "10", "an entry that a worker moves is not visible to the rules that used it",
        "weir/flow/table.h", "    entry.value = value;\n    stripe.dependents.changed();\n    return result(Learned::moved, i);",
        "    entry.value = value;\n    return result(Learned::moved, i);"),
    "expiry_forgets_rules": (
        "13", "expiry does not ask rules when they used an entry",
        "weir/flow/table.h", "entry.last_used = std::max(entry.last_used, stripe.dependents.last_used(*this, due.entry));\n",
        "\n"),
    "widened_to_less": (
        "14", "past the mask limit a rule is widened to a mask with fewer bits",
        "weir/engine/core/rule_install.cc", "    if (masks_[i].rules != 0 && covers(masks_[i].mask, mask)) {",
        "    if (masks_[i].rules != 0 && covers(mask, masks_[i].mask)) {"),
    "partial_checksum_as_whole": (
        "15", "a rewrite treats a checksum that is left to the device as a whole one",
        "weir/packet/edit.h", "  if ((packet.offload.flags & Offload::needs_checksum) != 0 &&",
        "  if ((packet.offload.flags & 0x80U) != 0 &&"),
    "pick_not_consulted": (
        "6", "a rule of one flow takes the packets of all that pick by their hash",
        "weir/flow/traced_flow.cc", "  consulted_ = consulted_ | hashed;\n", ""),
    "delivery_not_depended_on": (
        "19", "a rule stays when the delivery side of its port changes",
        "weir/flow/traced_flow.cc", "  depend(entry.dependency);\n", ""),
    "egress_not_consulted": (
        "19", "a rule made on one port's delivery side takes packets for others",
        "weir/flow/traced_flow.cc", "act({.kind = ActionKind::output, .number = egress().number});",
        "act({.kind = ActionKind::output, .number = egress_.number});"),
    "resolve_leaves_traces": (
        "16", "what a decision did before it found that the packet must wait is done all the same",
        "weir/flow/traced_flow.cc", "      undo();\n      return act({.kind = ActionKind::resolve",
        "      return act({.kind = ActionKind::resolve"),
    "path_not_depended_on": (
        "20", "a rule stays when a path that its decision asked for goes down",
        "weir/flow/flow.h", "    const PathState* path = lookup(state().paths().table(), {port, address});\n    return path == nullptr || path->up;\n",
        "    return state().paths().up({port, address});\n"),
    "gateway_looks_past_its_flow": (
        "services", "a gateway's rule stays when the Ethernet address of its destination changes",
        "weir/service/vswitch/routing.cc", "  const Binding* binding = flow.lookup(tables_.bindings, {vni, to});\n",
        "  const auto found = tables_.bindings.find({vni, to});\n  const Binding* binding = found ? &*found : nullptr;\n"),
    "switch_forgets_who_left": (
        "services", "frames still go to a port that has left their network",
        "weir/service/vswitch/forwarding.cc",
        "const Attachment* there = flow.lookup(tables_.attachments, {to->port, to->vlan});",
        "const Attachment* there = [&]() -> const Attachment* {\n"
        "      static thread_local Attachment kept;\n"
        "      const auto found = tables_.attachments.find({to->port, to->vlan});\n"
        "      kept = found.value_or(Attachment{});\n      return found ? &kept : nullptr;\n    }();"),
}
