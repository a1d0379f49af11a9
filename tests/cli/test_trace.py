"""weir trace: one packet explained."""

import json

import pytest
from conftest import node_file, two_ports


def test_a_denied_packet(weir, demo):
    result = weir("trace", "firewall.yaml", "--packet", 58, "--port", "carol")
    assert result.returncode == 0, result.stderr
    for words in ["Packet, in by carol", "74 bytes: ipv4 tcp", "l4.dst_port=23", "acl_firewall",
                  "matches the rules of 'acl' against l4.dst_port=23: deny, no telnet",
                  "match     ipv4 tcp, l4.dst_port=23", "guards    none",
                  "placed in core: this node has no engine above it", "dropped, denied_by_rule: a rule of the firewall"]:
        assert words in result.stdout
    assert "l2_switch" not in result.stdout


def test_state_is_as_it_was(weir, demo):
    command = ["trace", "firewall.yaml", "--packet", 100, "--port", "alice", "--json"]
    alone = json.loads(weir(*command).stdout)
    then = json.loads(weir(*command, "--after", "all").stdout)
    assert len(alone["outputs"]) == 2  # nobody is known yet: flooded
    assert len(then["outputs"]) == 1 and then["outputs"][0].startswith("bob: ")
    assert alone["decisions"][0]["rule"]["not_kept"] == "state was learned by this packet"
    assert then["decisions"][0]["rule"]["not_kept"] == ""
    events = next(stage for stage in then["decisions"][0]["stages"] if stage["stage"] == "l2_switch")["events"]
    assert "looks up 02:00:00:00:00:02 in 'macs': bob" in events


def test_bytes(weir, demo):
    frame = "ffffffffffff 020000000009 0806 0001 0800 06 04 0001 020000000009 0a000009 000000000000 0a000001"
    result = weir("trace", "firewall.yaml", "--packet", frame, "--port", "bob")
    assert result.returncode == 0, result.stderr
    assert "arp.operation=1  arp.sender_ip=10.0.0.9" in result.stdout
    assert "out by alice: 42 bytes" in result.stdout and "out by carol: 42 bytes" in result.stdout


def test_a_broken_packet(weir, demo):
    result = weir("trace", "firewall.yaml", "--packet", "0102030405")
    assert "broken: truncated_ethernet" in result.stdout and "dropped, no_ethernet" in result.stdout


def test_a_packet_stage_and_a_guard(weir, tmp_path):
    node_file(tmp_path, """weir: 1
ports: {a: "memory:", b: {device: "memory:", addresses: [10.0.0.1/24]}}
services:
  payload_scan: {patterns: [secret]}
  l3_router: {routes: {10.0.0.0/24: [{port: a, mac: 02:00:00:00:00:aa, from: 02:00:00:00:00:bb}]}}
""")
    ip = "4500 0024 0000 0000 40 11 0000 0a000003 0a000002"
    frame = f"020000000001 020000000002 0800 {ip} 0001 0002 0010 0000 0000000000000000"
    result = weir("trace", "node.yaml", "--packet", frame)
    assert result.returncode == 0, result.stderr
    for words in ["l3_router", "tests each packet: TTL above 1", "reads ip.dst=10.0.0.0/24",
                  "looks up 10.0.0.2 in 'routes': next hops '10.0.0.0/24', MTU 1500",
                  "guards    TTL above 1, not longer than 1500 bytes from the L3 header on",
                  "take one off the TTL, send by a member of '10.0.0.0/24'", "out by a: 50 bytes"]:
        assert words in result.stdout


@pytest.mark.parametrize("arguments,message", [
    (["--packet", "999"], "port 'alice' has no packet 999; its capture holds 167"),
    (["--packet", "0"], "port 'alice' has no packet 0; its capture holds 167"),
    (["--packet", "1", "--port", "dave"], "no port 'dave'; there are: alice, bob, carol"),
    (["--packet", "0x12zz"], "'x' is no hexadecimal digit"),
    (["--packet", "abc"], "3 hexadecimal digits; two make a byte"),
    (["--packet", "abcd", "--after", "5"], "--after needs the number of a packet"),
    (["--packet", "1", "--after", "some"], "--after takes a number of packets or 'all', not 'some'"),
])
def test_mistakes(weir, demo, arguments, message):
    result = weir("trace", "firewall.yaml", *arguments)
    assert result.returncode == 1 and message in result.stderr


def test_a_node_without_captures(weir, tmp_path):
    result = weir("trace", two_ports(tmp_path), "--packet", 1)
    assert result.returncode == 1
    assert "no port reads a capture; give the packet as hexadecimal digits" in result.stderr
