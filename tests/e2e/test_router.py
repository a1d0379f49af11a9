"""The service router between two networks of real hosts, over xdp: ports."""

import json
import os
import subprocess
import sys
import time

import pytest
from xdp_network import Running, TCP_CLIENT, TCP_SERVER, network, until  # one of them is a fixture

ROUTER = """
weir: 1
ports:
  left:  {device: "xdp:left0", addresses: [10.1.0.1/24, "fd00:1::1/64"], mac: 02:00:00:00:aa:01}
  right: {device: "xdp:right0", addresses: [10.2.0.1/24, "fd00:2::1/64"]}
services:
  router: %s
"""


class Routed(Running):
    """alice (10.1.0.10) -- left, node, right -- bob (10.2.0.10), and the same in IPv6."""

    def __init__(self, network, folder, settings="{}", node=ROUTER):
        self.network = network
        for name in ("node", "alice", "bob"):
            network.space(name)
        for number, (host, port) in enumerate([("alice", "left0"), ("bob", "right0")], 1):
            network.on(host, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=0", "net.ipv6.conf.default.disable_ipv6=0")
            network.pair("node", port, host, "eth0", address=f"02:00:00:00:00:0{number}")
            network.on(host, "ip", "address", "add", f"10.{number}.0.10/24", "dev", "eth0")
            network.on(host, "ip", "-6", "address", "add", f"fd00:{number}::10/64", "dev", "eth0", "nodad")
            network.on(host, "ip", "route", "add", "default", "via", f"10.{number}.0.1")
            network.on(host, "ip", "-6", "route", "add", "default", "via", f"fd00:{number}::1")
        self.control = folder / "control"
        (folder / "node.yaml").write_text(node % settings + f"control: {self.control}\n")
        self.log_path = folder / "weir.log"
        with open(self.log_path, "w") as log:
            self.process = network.start_weir("node", "run", folder / "node.yaml", "--json", stdout=subprocess.PIPE,
                                              stderr=log, text=True)
        for port in ("left0", "right0"):
            until(lambda: f"{port} is up" in self.log() or self.process.poll() is not None, self.log())

    def weir(self, *arguments):
        return self.network.on("node", os.environ["WEIR"], *arguments, "--control", self.control)


def test_hosts_reach_the_router_and_each_other(network, tmp_path):
    routed = Routed(network, tmp_path)
    for host, number in [("alice", 1), ("bob", 2)]:
        routed.reaches(host, f"10.{number}.0.1")
        routed.reaches(host, "-6", f"fd00:{number}::1")
    routed.reaches("alice", "10.2.0.1")  # of its other port
    # The first packet waits while bob is asked for, and is not lost.
    routed.reaches("alice", "10.2.0.10")
    routed.reaches("alice", "-6", "fd00:2::10")
    routed.reaches("bob", "10.1.0.10")
    routed.reaches("bob", "-6", "fd00:1::10")
    routed.reaches("alice", "-s", "1400", "10.2.0.10")
    drops = routed.stop()
    assert not {"neighbour_unreachable", "no_route", "stage_error", "host_malformed"} & drops.keys(), drops


def test_tcp_across(network, tmp_path):
    routed = Routed(network, tmp_path)
    server = network.start("bob", sys.executable, "-c", TCP_SERVER, stdout=subprocess.PIPE, text=True)
    assert server.stdout.readline() == "ready\n"
    assert network.on("alice", sys.executable, "-c", TCP_CLIENT, "10.2.0.10", 1 << 20).stdout == "the same\n"
    routed.stop()


def test_senders_are_told_why(network, tmp_path):
    routed = Routed(network, tmp_path)
    assert "From 10.1.0.1 icmp_seq=1 Time to live exceeded" in routed.ping("alice", "-t", "1", "10.2.0.10").stdout
    assert "From fd00:1::1 icmp_seq=1 Time exceeded" in routed.ping("alice", "-6", "-t", "1", "fd00:2::10").stdout
    assert "Destination Net Unreachable" in routed.ping("alice", "192.0.2.1").stdout
    # Nobody has this address: three questions, then the answer.
    assert "From 10.1.0.1 icmp_seq=1 Destination Host Unreachable" in routed.ping("alice", "10.2.0.77").stdout
    assert "Address unreachable" in routed.ping("alice", "-6", "fd00:2::77").stdout
    drops = routed.stop()
    assert drops["neighbour_unreachable"] == 2, drops


def test_a_static_route_leads_on(network, tmp_path):
    routed = Routed(network, tmp_path, "{routes: {10.9.0.0/16: {via: 10.2.0.10}, 10.9.9.0/24: blackhole}}")
    network.on("bob", "ip", "address", "add", "10.9.0.1/32", "dev", "lo")
    network.on("bob", "ip", "link", "set", "lo", "up")
    routed.reaches("alice", "10.9.0.1")
    assert routed.ping("alice", "-W", "1", "10.9.9.1").returncode != 0
    assert routed.stop()["blackhole"] == 1


def test_a_host_with_a_new_ethernet_address_is_found_again(network, tmp_path):
    routed = Routed(network, tmp_path)
    routed.reaches("alice", "10.2.0.10")
    network.on("bob", "sysctl", "-qw", "net.ipv4.conf.eth0.arp_notify=1")
    network.on("bob", "ip", "link", "set", "eth0", "address", "02:00:00:00:00:99")
    until(lambda: routed.ping("alice", "-W", "1", "10.2.0.10").returncode == 0, "bob answers", 20)
    routed.stop()


def test_routes_of_the_kernel_count_too(network, tmp_path):
    routed = Routed(network, tmp_path, "{kernel_routes: true, routes: {10.8.0.0/16: blackhole}}")
    for address in ("10.9.0.1/32", "10.8.0.1/32"):
        network.on("bob", "ip", "address", "add", address, "dev", "lo")
    network.on("bob", "ip", "link", "set", "lo", "up")
    assert "Destination Net Unreachable" in routed.ping("alice", "10.9.0.1").stdout
    # As a routing daemon would: the kernel needs an address of its own there, though no packet comes to it.
    network.on("node", "ip", "address", "add", "10.2.0.1/24", "dev", "right0")
    for route in ("10.9.0.0/16", "10.8.0.0/16"):
        network.on("node", "ip", "route", "add", route, "via", "10.2.0.10", "dev", "right0")
    until(lambda: routed.ping("alice", "-W", "1", "10.9.0.1").returncode == 0, "the route is taken over")
    assert routed.ping("alice", "-W", "1", "10.8.0.1").returncode != 0, "static routes come first"
    network.on("node", "ip", "route", "del", "10.9.0.0/16")
    until(lambda: "Net Unreachable" in routed.ping("alice", "-W", "1", "10.9.0.1").stdout, "the route is given up")
    routed.stop()


def test_routes_change_while_it_runs(network, tmp_path):
    routed = Routed(network, tmp_path)
    network.on("bob", "ip", "address", "add", "10.9.0.1/32", "dev", "lo")
    network.on("bob", "ip", "link", "set", "lo", "up")
    assert routed.ping("alice", "10.9.0.1").returncode != 0
    settings = "{routes: {default: {via: 10.2.0.10}}}"
    (tmp_path / "node.yaml").write_text(ROUTER % settings + f"control: {routed.control}\n")
    routed.weir("apply", tmp_path / "node.yaml")
    routed.reaches("alice", "10.9.0.1")
    shown = json.loads(routed.weir("show", "ports", "--json").stdout)["ports"]
    assert shown[0]["mac"] == "02:00:00:00:aa:01" and shown[1]["mtu"] == 1500
    routed.stop()
