"""The service nat in front of the router: alice is hidden from bob, who has no way to her network."""

import json
import os
import subprocess
import sys

import pytest
from test_router import Routed
from xdp_network import TCP_CLIENT, TCP_SERVER, network  # one of them is a fixture

NODE = """
weir: 1
ports:
  left:  {device: "xdp:left0", addresses: [10.1.0.1/24, "fd00:1::1/64"], mac: 02:00:00:00:aa:01}
  right: {device: "xdp:right0", addresses: [10.2.0.1/24, "fd00:2::1/64"], role: uplink}
services:
  nat: %s
  router: {}
decision_budget: unlimited
connections: {limit: 1000, udp_new: 5}
"""

HIDDEN = "{masquerade: [{from: 10.1.0.0/24, to: right}, {from: 'fd00:1::/64', to: right}]}"

# Whom a datagram server hears, and what a refused one learns.
UDP_SERVER = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('', 5353))
print('ready', flush=True)
data, peer = s.recvfrom(65536)
print(peer[0], len(data), flush=True)
s.sendto(data, peer)
"""
UDP_CLIENT = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(5)
s.connect((sys.argv[1], int(sys.argv[2])))
data = bytes(i % 251 for i in range(int(sys.argv[3])))
s.send(data)
try:
    print('the same' if s.recv(65536) == data else 'other')
except ConnectionRefusedError:
    print('refused')
"""


def hidden(network, folder, settings=HIDDEN):
    routed = Routed(network, folder, settings, NODE)
    for family in ("-4", "-6"):
        network.on("bob", "ip", family, "route", "del", "default")
    return routed


def test_alice_reaches_bob_who_could_not_answer_her(network, tmp_path):
    routed = hidden(network, tmp_path)
    routed.reaches("alice", "10.2.0.10")
    routed.reaches("alice", "-6", "fd00:2::10")
    routed.reaches("alice", "10.1.0.1")  # the node itself
    routed.reaches("bob", "10.2.0.1")
    assert routed.ping("bob", "-W", "1", "10.1.0.10").returncode != 0
    server = network.start("bob", sys.executable, "-c", TCP_SERVER, stdout=subprocess.PIPE, text=True)
    assert server.stdout.readline() == "ready\n"
    assert network.on("alice", sys.executable, "-c", TCP_CLIENT, "10.2.0.10", 1 << 20).stdout == "the same\n"
    shown = routed.weir("show", "connections")
    assert "10.1.0.10" in shown.stdout and "10.2.0.1" in shown.stdout, shown.stdout
    answer = json.loads(routed.weir("show", "connections", "--json").stdout)
    assert answer["limit"] == 1000
    assert any(each["connection"].startswith("tcp") and "10.2.0.1" in each["answers"] for each in answer["connections"])
    drops = routed.stop()
    assert not {"nat_exhausted", "connections_full", "stage_error", "unrewritable"} & drops.keys(), drops


@pytest.mark.parametrize("size", [100, 8000])
def test_datagrams_whole_and_in_fragments(network, tmp_path, size):
    routed = hidden(network, tmp_path)
    server = network.start("bob", sys.executable, "-c", UDP_SERVER, stdout=subprocess.PIPE, text=True)
    assert server.stdout.readline() == "ready\n"
    client = network.on("alice", sys.executable, "-c", UDP_CLIENT, "10.2.0.10", 5353, size)
    assert server.stdout.readline() == f"10.2.0.1 {size}\n"
    assert client.stdout == "the same\n"
    routed.reaches("alice", "-s", "4000", "10.2.0.10")
    routed.reaches("alice", "-6", "-s", "4000", "fd00:2::10")
    drops = routed.stop()
    assert not [reason for reason in drops if reason.startswith("fragment")], drops


def test_errors_come_back_to_who_asked(network, tmp_path):
    routed = hidden(network, tmp_path)
    # Bob's kernel quotes the translated packet; alice's takes the error only if it quotes her own.
    assert network.on("alice", sys.executable, "-c", UDP_CLIENT, "10.2.0.10", 9, 10).stdout == "refused\n"
    routed.stop()


def test_a_port_leads_to_alice(network, tmp_path):
    routed = hidden(network, tmp_path, "{forward: [{address: right, protocol: tcp, port: 5000, to: 10.1.0.10}]}")
    server = network.start("alice", sys.executable, "-c", TCP_SERVER, stdout=subprocess.PIPE, text=True)
    assert server.stdout.readline() == "ready\n"
    assert network.on("bob", sys.executable, "-c", TCP_CLIENT, "10.2.0.1", 1 << 18).stdout == "the same\n"
    # It can change while the node runs; what was begun goes on.
    file = tmp_path / "node.yaml"
    file.write_text(file.read_text().replace("port: 5000", "port: 5001"))
    routed.weir("apply", file)
    # What nobody takes is dropped without a word: the client would ask for a minute.
    refused = network.on("bob", "timeout", "3", sys.executable, "-c", TCP_CLIENT, "10.2.0.1", 1 << 10, check=False)
    assert refused.returncode != 0
    assert routed.stop()["no_listener"] >= 1


def test_mistakes_are_named(network, tmp_path):
    file = tmp_path / "node.yaml"
    file.write_text(NODE % "{masquerade: [{from: 10.1.0.0/24, to: nowhere, ports: 9-1}], forward: [{to: right, port: 5}]}")
    file.write_text(file.read_text().replace("xdp:left0", "memory:").replace("xdp:right0", "memory:"))
    network.space("node")
    checked = network.on("node", os.environ["WEIR"], "check", file, check=False)
    text = checked.stdout + checked.stderr
    for mistake in ("found 'nowhere'", "a range of ports like 1024-65535, found '9-1'", "a port needs a protocol"):
        assert mistake in text, text
