"""The service vswitch as the gateway of its networks: between local hosts, and to a network that the kernel, as another
node, routes into by its own VXLAN device (symmetric IRB)."""

import subprocess
import sys

from xdp_network import Running, TCP_CLIENT, TCP_SERVER, network, until  # one of them is a fixture

NODE = """
weir: 1
decision_budget: unlimited
ports:
  pod-a: {device: "xdp:pod0", labels: {net: blue}}
  pod-b: {device: "xdp:pod1", labels: {net: red}}
  up:    {device: "xdp:up0", role: uplink, addresses: [192.0.2.1/24], mac: 02:00:00:00:aa:01}
  gw-blue: {device: gateway, mac: "02:00:5e:00:00:01", mtu: 1450, addresses: [10.1.0.1/24, "fd00:1::1/64"]}
  gw-red:  {device: gateway, mac: "02:00:5e:00:00:01", mtu: 1450, addresses: [10.2.0.1/24, "fd00:2::1/64"]}
services:
  vswitch:
    networks:
      100: {selector: {net: blue}, gateway: gw-blue, vrf: tenant}
      200: {selector: {net: red}, gateway: gw-red, vrf: tenant}
    vrfs:
      tenant:
        vni: 5000
        routes:
          10.3.0.0/24: {vtep: 192.0.2.2, mac: "02:00:00:00:cc:02"}
          "fd00:3::/64": {vtep: 192.0.2.2, mac: "02:00:00:00:cc:02"}
control: %s
"""

HOSTS = {"alice": ("pod0", 1), "bob": ("pod1", 2)}


class Routed(Running):
    """alice and bob on the node; dave behind a kernel that is the router of his network."""

    def __init__(self, network, folder):
        self.network = network
        self.folder = folder
        for name in ("node", "alice", "bob", "remote", "dave"):
            network.space(name)
            network.on(name, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=0",
                       "net.ipv6.conf.default.disable_ipv6=0")
        network.on("remote", "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
        for host, (port, net) in HOSTS.items():
            network.pair("node", port, host, "eth0", address=f"02:00:00:00:00:{net:02x}")
            self.host(host, net)
        network.pair("node", "up0", "remote", "eth0", address="02:00:00:00:bb:02")
        network.pair("remote", "eth1", "dave", "eth0", mtu=1450, address="02:00:00:00:00:03")
        self.host("dave", 3)
        for address in ("10.3.0.1/24", "fd00:3::1/64"):
            network.on("remote", "ip", "address", "add", address, "dev", "eth1", *["nodad"] * (":" in address))
        network.on("remote", "ip", "address", "add", "192.0.2.2/24", "dev", "eth0")
        # As a routing daemon sets a kernel up for the network of routed packets.
        network.on("remote", "ip", "link", "add", "vx5000", "address", "02:00:00:00:cc:02", "type", "vxlan", "id", 5000,
                   "local", "192.0.2.2", "remote", "192.0.2.1", "dstport", 4789, "dev", "eth0", "nolearning")
        network.on("remote", "ip", "link", "set", "vx5000", "up")
        for family, prefixes, hop in (("-4", ("10.1.0.0/24", "10.2.0.0/24"), "192.0.2.1"),
                                      ("-6", ("fd00:1::/64", "fd00:2::/64"), "fe80::1")):
            network.on("remote", "ip", family, "neigh", "add", hop, "lladdr", "02:00:00:00:aa:01", "dev", "vx5000")
            for prefix in prefixes:
                network.on("remote", "ip", family, "route", "add", prefix, "via", hop, "dev", "vx5000", "onlink")
        self.control = folder / "control"
        (folder / "node.yaml").write_text(NODE % self.control)
        self.log_path = folder / "weir.log"
        with open(self.log_path, "w") as log:
            self.process = network.start_weir("node", "run", folder / "node.yaml", "--json", stdout=subprocess.PIPE,
                                              stderr=log, text=True)
        for port in ("pod0", "pod1", "up0"):
            until(lambda: f"{port} is up" in self.log() or self.process.poll() is not None, self.log())

    def host(self, name, net):
        self.network.on(name, "ip", "link", "set", "eth0", "mtu", "1450")
        self.network.on(name, "ip", "address", "add", f"10.{net}.0.5/24", "dev", "eth0")
        self.network.on(name, "ip", "-6", "address", "add", f"fd00:{net}::5/64", "dev", "eth0", "nodad")
        self.network.on(name, "ip", "route", "add", "default", "via", f"10.{net}.0.1")
        self.network.on(name, "ip", "-6", "route", "add", "default", "via", f"fd00:{net}::1")


def test_hosts_of_all_networks_reach_each_other(network, tmp_path):
    routed = Routed(network, tmp_path)
    nets = {"alice": 1, "bob": 2, "dave": 3}
    for here, own in nets.items():
        routed.reaches(here, f"10.{own}.0.1")
        routed.reaches(here, "-6", f"fd00:{own}::1")
        for there, net in nets.items():
            if there != here:
                routed.reaches(here, f"10.{net}.0.5")
                routed.reaches(here, "-6", f"fd00:{net}::5")
                routed.reaches(here, "-M", "do", "-s", 1450 - 28, f"10.{net}.0.5")
    drops = routed.stop()
    assert not {"stage_error", "no_route", "too_big", "mac_fixed", "address_fixed", "loop_limit"} & drops.keys(), drops


def test_tcp_between_networks(network, tmp_path):
    routed = Routed(network, tmp_path)
    for server, client, address in (("bob", "alice", "10.2.0.5"), ("alice", "dave", "10.1.0.5")):
        process = network.start(server, sys.executable, "-c", TCP_SERVER, stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "ready\n"
        assert network.on(client, sys.executable, "-c", TCP_CLIENT, address, 1 << 20).stdout == "the same\n"
    routed.stop()


def test_the_way_is_seen(network, tmp_path):
    routed = Routed(network, tmp_path)
    routed.reaches("alice", "10.3.0.5")
    first = routed.ping("alice", "-t", 1, "10.3.0.5").stdout
    assert "From 10.1.0.1" in first and "Time to live exceeded" in first, first
    second = routed.ping("alice", "-t", 2, "10.3.0.5").stdout
    assert "Time to live exceeded" in second and "From 10.1.0.1" not in second, second
    nowhere = routed.ping("alice", "10.9.0.5").stdout
    assert "From 10.1.0.1" in nowhere and "Unreachable" in nowhere, nowhere
    silent = routed.ping("alice", "10.2.0.99").stdout
    assert "Destination Host Unreachable" in silent, silent
    routed.stop()
