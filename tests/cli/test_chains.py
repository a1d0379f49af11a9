"""Chains: which services a port's packets pass goes by its labels."""

import json

from scapy.all import IP, TCP, UDP, Ether, PcapReader, wrpcap

from conftest import node_file


def packets(source, first_port):
    return [Ether(src=source, dst="02:00:00:00:00:99") / IP(src="10.0.0.1", dst="10.0.0.2") / layer
            for layer in (TCP(sport=first_port, dport=80), UDP(sport=first_port, dport=53))]


NODE = """weir: 1
ports:
  trusted: {device: "pcap:trusted.pcap", labels: {app: trusted}}
  other: {device: "pcap:other.pcap"}
  out: {device: "pcap:,out=out.pcap"}
services:
  acl_firewall: {rules: acl.yaml, default: allow}
  l2_switch: {}
chains:
  - {name: trusted, selector: {app: trusted}, services: [l2_switch]}
  - {name: default, services: [acl_firewall, l2_switch]}
"""


def test_only_the_chain_of_the_port_applies(weir, tmp_path):
    (tmp_path / "acl.yaml").write_text("- {name: no TCP, action: deny, protocol: tcp}\n")
    wrpcap(str(tmp_path / "trusted.pcap"), packets("02:00:00:00:00:01", 1000))
    wrpcap(str(tmp_path / "other.pcap"), packets("02:00:00:00:00:02", 2000))
    for options in ([], ["--cache", "off"], ["--engine", "reference"]):
        result = weir("run", node_file(tmp_path, NODE), "--json", *options)
        assert result.returncode == 0, result.stderr
        out = [packet[IP].sport for packet in PcapReader(str(tmp_path / "out.pcap"))]
        assert sorted(out) == [1000, 1000, 2000], "of the other port, TCP is denied"
        summary = json.loads(result.stdout)
        assert {drop["reason"]: drop["packets"] for drop in summary["drops"]} == {"denied_by_rule": 1}
