"""TCP between two hosts: through a switching node on tap: ports, and through a Linux bridge."""

import json
import statistics
import tempfile

from network import Network, wait_for

SECONDS = 2


def build(network, path, folder):
    hosts = [f"{side}-{path}" for side in "ab"]
    for space in (path, *hosts):
        network.space(space)
    if path == "weir":
        network.weir(path, folder, {"a": "tap:tap1", "b": "tap:tap2"})
        for number, host in enumerate(hosts, 1):
            wait_for(lambda n=number: f"tap{n}" in network.on(path, "ip", "-o", "link"), "the taps are there")
            network.on(path, "ip", "link", "set", f"tap{number}", "netns", network.path(host), "name", "eth0")
    else:
        for number, host in enumerate(hosts, 1):
            network.pair(path, f"port{number}", host, "eth0", f"02:00:00:00:00:0{number}")
        network.bridge(path, ("port1", "port2"))
    for number, host in enumerate(hosts, 1):
        network.host(host, number, "eth0")
    wait_for(lambda: network.reaches(hosts[0], "10.0.0.2"), f"the hosts on {path} reach each other")


def gigabits(network, path):
    server = network.start(f"b-{path}", "iperf3", "-s", "-1")
    wait_for(lambda: "5201" in network.on(f"b-{path}", "ss", "-Hltn"), "iperf3 listens")
    result = json.loads(network.on(f"a-{path}", "iperf3", "-c", "10.0.0.2", "-t", SECONDS, "-J"))
    network.end(server)
    return result["end"]["sum_received"]["bits_per_second"] / 1e9


def main(rounds):
    print(f"\n== TCP, one stream, {SECONDS} s each, in Gbit/s, {rounds} times in turn: tap: ports with segmentation left to "
          "the kernel, and a bridge of veths")
    with Network() as network, tempfile.TemporaryDirectory() as folder:
        for path in ("weir", "bridge"):
            build(network, path, folder)
        print(f"\n{'':4} {'weir':>6} {'bridge':>7} {'ratio':>6}")
        ratios = []
        for number in range(1, rounds + 1):
            ours, theirs = gigabits(network, "weir"), gigabits(network, "bridge")
            ratios.append(ours / theirs)
            print(f"{number:4} {ours:6.2f} {theirs:7.2f} {ratios[-1]:6.3f}", flush=True)
        print(f"median ratio {statistics.median(ratios):.3f}")
