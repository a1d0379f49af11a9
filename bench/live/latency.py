"""Round trips between two hosts: through a switching node, in each way of idling, and through a Linux bridge."""

import statistics
import tempfile
import time

from network import Network, program, wait_for

PATHS = ("bridge", "poll", "adaptive", "interrupt")
COUNT, INTERVAL_US = 2000, 200
IDLE_SECONDS = 10


def build(network, path, folder):
    """Two hosts on `path`, each with an echo; hosts are a-PATH and b-PATH."""
    hosts = [f"{side}-{path}" for side in "ab"]
    for space in (path, *hosts):
        network.space(space)
    for number, host in enumerate(hosts, 1):
        network.pair(path, f"port{number}", host, "eth0", f"02:00:00:00:00:0{number}")
        network.host(host, number, "eth0")
    if path == "bridge":
        network.bridge(path, ("port1", "port2"))
    else:
        network.weir(path, folder, {"a": "xdp:port1", "b": "xdp:port2"}, f"workers: {{idle: {path}}}\n")
    wait_for(lambda: network.reaches(hosts[0], "10.0.0.2"), f"the hosts on {path} reach each other")
    network.start(hosts[1], program("udp_ping"), "echo", "9000")
    # So that no look-up of an address is measured.
    for host, other in (hosts, reversed(hosts)):
        number = "1" if other.startswith("a") else "2"
        network.on(host, "ip", "neighbour", "replace", f"10.0.0.{number}", "lladdr", f"02:00:00:00:00:0{number}", "dev",
                   "eth0")


def round_trips(network, path, count):
    text = network.on(f"a-{path}", program("udp_ping"), "10.0.0.2", "9000", count, INTERVAL_US)
    return sorted(float(line) for line in text.split())


def percentile(values, share):
    return values[min(len(values) - 1, int(len(values) * share))]


def main(rounds):
    print(f"\n== Round trips of UDP, in microseconds: {COUNT} at {1e6 / INTERVAL_US:,.0f} a second, {rounds} times in turn; "
          f"and the first after {IDLE_SECONDS} s without any, 3 times")
    steady, first = {path: [] for path in PATHS}, {path: [] for path in PATHS}
    with tempfile.TemporaryDirectory() as folder:
        # One that polls takes a processor all the time: the others are measured without it.
        for together in (("bridge", "adaptive", "interrupt"), ("poll",)):
            with Network() as network:
                for path in together:
                    build(network, path, folder)
                for _ in range(rounds):
                    for path in together:
                        steady[path].append(round_trips(network, path, COUNT))
                for _ in range(3):
                    for number, path in enumerate(together):
                        if number == 0:
                            time.sleep(IDLE_SECONDS)
                        first[path] += round_trips(network, path, 1)
    print(f"\n{'':10} {'p50':>7} {'p99':>7}   first after {IDLE_SECONDS} s idle")
    for path in PATHS:
        p50, p99 = (statistics.median(percentile(each, share) for each in steady[path]) for share in (0.5, 0.99))
        print(f"{path:10} {p50:7.1f} {p99:7.1f}   {', '.join(f'{value:.0f}' for value in first[path])}")
