"""How long traffic misses when a next hop fails: a router with two of them, which speak BFD (BIRD), and a sink behind both.

The peers, the sender and the sink run in a real-time class: they stand for other machines. So does the node, behind them,
as a worker has a processor of its own elsewhere; it sleeps when it has nothing to do (idle: interrupt), since the kernel
stops real-time programs that use up their processor. In the environment, WEIR_BFD_BEFORE is what runs the node instead
("nice -n 0"), WEIR_BFD_IDLE its idle mode, WEIR_BFD_MINUTES how long false alarms are waited for.
"""

import collections
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from network import WEIR, Network, program, wait_for

FLOWS, RATE = 64, 10_000
MINUTES = float(os.environ.get("WEIR_BFD_MINUTES", "10"))
BEFORE = os.environ.get("WEIR_BFD_BEFORE", "chrt --rr 5").split()

NODE = """
weir: 1
workers: {{count: 1, idle: {idle}}}
ports:
  left: {{device: "xdp:left0", addresses: [10.1.0.1/24]}}
  one:  {{device: "xdp:one0", addresses: [10.2.0.1/24]}}
  two:  {{device: "xdp:two0", addresses: [10.3.0.1/24]}}
services:
  router: {{bfd: {{interval: 10ms, multiplier: 3}}, routes: {{10.9.0.0/24: {{via: [10.2.0.10, 10.3.0.10]}}}}}}
control: {control}
"""

BIRD = """
router id {address};
protocol device {{}}
protocol bfd {{
  interface "eth0" {{ interval 10 ms; multiplier 3; }};
  neighbor {node} dev "eth0" local {address};
}}
"""


def as_another_machine():
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))
    except PermissionError:
        pass


class Peer:
    """A next hop that forwards to the sink."""

    def __init__(self, network, folder, name, number):
        self.network, self.name, self.address = network, name, f"10.{number}.0.10"
        network.space(name)
        network.pair("node", f"{name}0", name, "eth0", f"02:00:00:00:00:0{number}")
        network.pair(name, "eth1", "sink", name, f"02:00:00:00:01:0{number}")
        network.on(name, "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0",
                   "net.ipv4.conf.eth0.rp_filter=0")
        network.on(name, "ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        network.on(name, "ip", "address", "add", f"10.{number + 10}.0.1/24", "dev", "eth1")
        network.on("sink", "ip", "address", "add", f"10.{number + 10}.0.2/24", "dev", name)
        network.on("sink", "sysctl", "-qw", f"net.ipv4.conf.{name}.rp_filter=0")
        network.on(name, "ip", "neigh", "replace", f"10.{number + 10}.0.2", "lladdr", f"02:00:00:00:01:0{number}", "dev",
                   "eth1", "nud", "permanent")
        network.on(name, "ip", "route", "add", "10.9.0.0/24", "via", f"10.{number + 10}.0.2")
        self.at_sink = int(network.on("sink", "cat", f"/sys/class/net/{name}/ifindex"))
        self.config, self.socket = pathlib.Path(folder) / f"{name}.conf", pathlib.Path(folder) / f"{name}.ctl"
        self.config.write_text(BIRD.format(address=self.address, node=f"10.{number}.0.1"))
        self.shell = network.start(name, "sh", stdin=subprocess.PIPE)  # what fails, fails at once
        self.start()

    def do(self, command):
        self.shell.stdin.write(command + "\n")
        self.shell.stdin.flush()

    def start(self):
        self.bird = self.network.start(self.name, "bird", "-f", "-c", self.config, "-s", self.socket,
                                       preexec_fn=as_another_machine, stdout=subprocess.DEVNULL)

    def fail(self, how):
        if how == "killed":  # the whole machine: it forwards no more, and its link stays
            self.do(f"echo 0 > /proc/sys/net/ipv4/conf/eth0/forwarding; kill -9 {self.bird.pid}")
        else:
            self.do("ip link set eth0 down")

    def repair(self, how):
        if how == "killed":
            self.network.end(self.bird)
            self.do("echo 1 > /proc/sys/net/ipv4/conf/eth0/forwarding")
            self.start()
        else:
            self.do("ip link set eth0 up")


class Bench:
    def __init__(self, network, folder, idle):
        self.network, self.folder = network, folder
        self.control = pathlib.Path(folder) / "control"
        for name in ("node", "source", "sink"):
            network.space(name)
        network.on("sink", "sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0")
        network.on("sink", "ip", "address", "add", "10.9.0.1/32", "dev", "lo")
        network.pair("node", "left0", "source", "eth0", "02:00:00:00:00:01")
        network.on("source", "ip", "address", "add", "10.1.0.10/24", "dev", "eth0")
        network.on("source", "ip", "route", "add", "default", "via", "10.1.0.1")
        self.peers = {name: Peer(network, folder, name, number) for number, name in enumerate(("one", "two"), 2)}
        file = pathlib.Path(folder) / "node.yaml"
        file.write_text(NODE.format(idle=idle, control=self.control))
        self.log = open(pathlib.Path(folder) / "weir.log", "w+")
        self.node = network.start("node", *BEFORE, WEIR, "run", file, stderr=self.log)
        wait_for(lambda: self.control.exists(), "the node runs")
        self.events = []
        self.sink = network.start("sink", program("failover_probe"), "sink", "9000", preexec_fn=as_another_machine)
        threading.Thread(target=self.read, daemon=True).start()
        self.all_up()
        self.sender = network.start("source", program("failover_probe"), "send", "10.9.0.1", "9000", FLOWS, RATE,
                                    preexec_fn=as_another_machine)
        wait_for(lambda: len([e for e in list(self.events) if e[0] == "first"]) == FLOWS, "all flows reach the sink")

    def read(self):
        for line in self.sink.stdout:
            word, *numbers = line.split()
            self.events.append((word, *map(int, numbers)))

    def router(self):
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(10)
        connection.sock.connect(str(self.control))
        connection.request("GET", "/v1/services")
        services = json.loads(connection.getresponse().read())["services"]
        connection.close()
        return next(each["state"] for each in services if each["name"] == "router")

    def all_up(self):
        def up():
            paths = self.router()["paths"]
            sessions = [path["bfd"] for path in paths if path["up"] and "bfd" in path]
            return len(sessions) == 2 and all(each["state"] == each["remote_state"] == "up" and
                                              each["detection_time_ms"] == 30 for each in sessions)
        wait_for(up, "both sessions are up and have agreed on 10 ms", 60)

    def flaps(self):
        return sum(path["bfd"]["flaps"] for path in self.router()["paths"])

    def diagnostics(self):
        return {path["address"]: path["bfd"]["diagnostic"] for path in self.router()["paths"]}


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def spread(name, values):
    print(f"  {name:34} p50 {quantile(values, 0.5):6.1f}  p99 {quantile(values, 0.99):6.1f}  max {max(values):6.1f} ms "
          f" ({len(values)})")


def failovers(bench, count):
    """Fails each peer in turn, in both ways; what traffic saw."""
    seen = collections.defaultdict(lambda: {"gaps": [], "flow_gaps": [], "lost": 0, "unaffected": [], "back": 0, "late": 0})
    disturbed = 0
    number = 0
    while number < count:
        how = ("killed", "cut")[number % 2]
        peer = bench.peers[("one", "two")[number // 2 % 2]]
        bench.all_up()
        time.sleep(0.2)
        before, began, flaps = len(bench.events), time.monotonic_ns() // 1000, bench.flaps()
        peer.fail(how)
        time.sleep(0.5)
        if bench.flaps() != flaps + 1:  # the other session went down, too, or this one just before
            disturbed += 1
            peer.repair(how)
            continue
        number += 1
        during = [e for e in bench.events[before:] if e[1] >= began]
        moved = [e for e in during if e[0] == "moved" and e[3] == peer.at_sink]
        gone = {e[2] for e in moved}
        result = seen[how]
        if not moved:
            sys.exit(f"bench: failover {number} ({how}) moved no flow; the node says:\n{open(bench.log.name).read()}")
        last_good = max(e[1] - e[5] for e in moved)
        result["gaps"].append((min(e[1] for e in moved if e[1] > last_good) - last_good) / 1000)
        result["flow_gaps"] += [e[5] / 1000 for e in moved]
        result["lost"] += sum(e[6] for e in moved)
        result["unaffected"] += [e for e in during if e[2] not in gone and e[0] != "first"]
        before = len(bench.events)
        peer.repair(how)
        bench.all_up()
        time.sleep(0.3)  # until the sink has told of all flows
        back = bench.events[before:]
        result["back"] += len({e[2] for e in back if e[0] == "moved" and e[4] == peer.at_sink} ^ gone)
        result["late"] += len([e for e in back if e[0] == "late"])
        result["unaffected"] += [e for e in back if e[2] not in gone and e[0] != "first"]
    for how, result in seen.items():
        print(f"\n{len(result['gaps'])} times a peer's {'machine was killed' if how == 'killed' else 'link was cut'}, "
              f"{RATE} datagrams a second in {FLOWS} flows:")
        spread("last good to first rerouted packet", result["gaps"])
        spread("the same of each flow that moved", result["flow_gaps"])
        late = sum(1 for e in result["unaffected"] if e[0] == "late")
        lost = sum(e[4] for e in result["unaffected"] if e[0] == "lost")
        strays = sum(1 for e in result["unaffected"] if e[0] == "moved")
        print(f"  lost: {result['lost']} of the flows that moved, {lost} of others; out of order in others: {late}; others "
              f"that moved: {strays}; not back where they were: {result['back']}; out of order on the way back: "
              f"{result['late']}", flush=True)
    spread_all = [gap for result in seen.values() for gap in result["gaps"]]
    print(f"\nall; {disturbed} more were disturbed by a false alarm, and are not counted:")
    spread("last good to first rerouted packet", spread_all)
    return quantile(spread_all, 0.99)


def false_alarms(bench, minutes):
    """Both processors busy: how often a session goes down although nothing is wrong."""
    bench.all_up()
    load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())]
    try:
        time.sleep(0.5)
        before, events = bench.flaps(), len(bench.events)
        end = time.monotonic() + 60 * minutes
        causes = collections.Counter()
        known = before
        while time.monotonic() < end:
            time.sleep(0.2)
            if (now := bench.flaps()) != known:
                known = now
                causes.update(cause for cause in bench.diagnostics().values() if cause != "none")
        alarms = bench.flaps() - before
        moved = sum(1 for e in bench.events[events:] if e[0] == "moved")
    finally:
        for each in load:
            each.kill()
            each.wait()
    print(f"\n{minutes:g} minutes at 10 ms x 3 with {os.cpu_count()} busy loops on {os.cpu_count()} processors and the "
          f"traffic: {alarms} false alarms of 2 sessions {dict(causes) or ''}, {moved} flows moved", flush=True)


def main(rounds):
    print(f"\n== Failover of next hops by BFD at 10 ms x 3, {10 * rounds} times; then false alarms")
    with Network() as network, tempfile.TemporaryDirectory() as folder:
        bench = Bench(network, folder, os.environ.get("WEIR_BFD_IDLE", "interrupt"))
        failovers(bench, 10 * rounds)
        false_alarms(bench, MINUTES)
        bench.node.send_signal(signal.SIGTERM)
