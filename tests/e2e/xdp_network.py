"""Networks of namespaces and veth pairs, and Weir running among them with xdp: ports."""

import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

# Sends so many bytes to an address, whose side sends them back.
TCP_SERVER = """
import socket
listener = socket.create_server(("", 5000))
print("ready", flush=True)
peer = listener.accept()[0]
while data := peer.recv(65536):
    peer.sendall(data)
"""
TCP_CLIENT = """
import socket, sys, threading
data = bytes(range(256)) * (int(sys.argv[2]) // 256)
peer = socket.create_connection((sys.argv[1], 5000), timeout=60)
sender = threading.Thread(target=lambda: (peer.sendall(data), peer.shutdown(socket.SHUT_WR)))
sender.start()
back = bytearray()
while part := peer.recv(65536):
    back += part
sender.join()
print("the same" if back == data else f"{len(back)} bytes of {len(data)}, or others")
"""


def until(condition, what, seconds=30):
    """Waits until `condition()` is true, and gives what it gave."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError(f"still not true after {seconds} seconds: {what}")


class Network:
    """Namespaces under names of their own, which go with everything in them when it is closed."""

    numbers = itertools.count()

    def __init__(self):
        self.prefix = f"weir-e2e-{os.getpid()}-{next(self.numbers)}"
        self.spaces, self.processes = [], []
        self.state = pathlib.Path(tempfile.mkdtemp(prefix="weir-e2e-"))

    def path(self, space):
        return f"{self.prefix}-{space}"

    def space(self, name):
        subprocess.run(["ip", "netns", "add", self.path(name)], check=True)
        self.spaces.append(name)
        self.on(name, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")

    def on(self, space, *command, check=True):
        """Runs a command there."""
        result = subprocess.run(["ip", "netns", "exec", self.path(space), *map(str, command)], capture_output=True,
                                text=True, timeout=120)
        assert not check or result.returncode == 0, f"{command}: {result.stdout}{result.stderr}"
        return result

    def start(self, space, *command, **options):
        process = subprocess.Popen(["ip", "netns", "exec", self.path(space), *map(str, command)], **options)
        self.processes.append(process)
        return process

    def start_weir(self, space, *arguments, before=(), **options):
        """With a /run/weir of this network's own: other nodes on the machine would undo what a killed one has left.
        `before` is a command that runs it."""
        script = 'mkdir -p /run/weir && mount --bind "$0" /run/weir && unset XDG_RUNTIME_DIR && exec "$@"'
        return self.start(space, "sh", "-c", script, self.state, *before, os.environ["WEIR"], *arguments, **options)

    def offload_records(self):
        """What is left to be undone."""
        return list(self.state.glob("offloads/*"))

    def pair(self, here, interface, there, far, *parameters, mtu=1500, address="02:00:00:00:00:0f"):
        """A veth pair between two namespaces, both ends up; `address` is the far end's."""
        subprocess.run(["ip", "link", "add", interface, "netns", self.path(here), "mtu", str(mtu), *parameters, "type",
                        "veth", "peer", "name", far, "address", address, "netns", self.path(there), "mtu", str(mtu), *parameters],
                       check=True)
        for space, name in [(here, interface), (there, far)]:
            self.on(space, "ip", "link", "set", name, "up")

    def link(self, space, interface):
        return json.loads(self.on(space, "ip", "-d", "-j", "link", "show", interface).stdout)[0]

    def offloads(self, space, interface):
        """ethtool -k, as a dictionary of "on" and "off"."""
        lines = self.on(space, "ethtool", "-k", interface).stdout.splitlines()[1:]
        return {name.strip(): value.split()[0] for name, value in (line.split(":") for line in lines)}

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        for space in self.spaces:
            subprocess.run(["ip", "netns", "del", self.path(space)], check=True)
        shutil.rmtree(self.state)


def summary_of(process, log):
    """Ends a node that runs with --json; what it counted, in which every packet is accounted for."""
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, log()
    summary = json.loads(output)
    packets = summary["packets"]
    assert packets["in"] + packets["cloned"] + packets["originated"] == packets["out"] + packets["dropped"] + \
        packets["consumed"] + packets["held"]
    return summary


class Weir:
    """A `weir run` in one namespace."""

    def __init__(self, network, space, folder, ports, more=""):
        lines = "".join(f'  {name}: "{device}"\n' for name, device in ports.items())
        (folder / "node.yaml").write_text(f"weir: 1\nports:\n{lines}services: {{l2_switch: {{}}}}\n{more}")
        self.log_path, self.ports = folder / "weir.log", ports
        with open(self.log_path, "w") as log:
            self.process = network.start_weir(space, "run", folder / "node.yaml", "--json", stdout=subprocess.PIPE,
                                              stderr=log, text=True)

    def log(self):
        return self.log_path.read_text()

    def said(self, text, times=1):
        until(lambda: self.log().count(text) >= times or self.process.poll() is not None, f"{text}\n{self.log()}")
        assert self.log().count(text) >= times, self.log()

    def up(self):
        """Waits until all its ports are."""
        for device in self.ports.values():
            self.said(f"{device.split(',')[0]} is up")
        return self

    def fails(self):
        """What it says when it does not even start."""
        self.process.communicate(timeout=60)
        assert self.process.returncode == 1, self.log()
        return self.log()

    def stop(self):
        """Its summary."""
        return summary_of(self.process, self.log)

    def kill(self):
        self.process.kill()
        self.process.communicate(timeout=60)


@pytest.fixture
def network():
    made = Network()
    yield made
    made.close()


@pytest.fixture
def switched(network, tmp_path):
    """Two hosts, alice and bob, each by a veth pair to the namespace `switch`: switched(...) starts Weir there."""
    for space in ("switch", "alice", "bob"):
        network.space(space)
    number = {"alice": 1, "bob": 2}

    def connect(host, *parameters, mtu=1500):
        # The same address whenever it is made: the others remember it.
        network.pair("switch", f"port-{host}", host, "eth0", *parameters, mtu=mtu,
                     address=f"02:00:00:00:00:0{number[host]}")
        network.on(host, "ip", "address", "add", f"10.0.0.{number[host]}/24", "dev", "eth0")

    def start(options="", more="", parameters=(), mtu=1500):
        for host in number:
            connect(host, *parameters, mtu=mtu)
        return run(options, more)

    def run(options="", more=""):
        return Weir(network, "switch", tmp_path, {host: f"xdp:port-{host}{options}" for host in number}, more)

    start.connect, start.run = connect, run
    return start


class Running:
    """A node between hosts, for what all of them are asked: has `network`, `process` and `log_path`."""

    def log(self):
        return self.log_path.read_text()

    def ping(self, host, *arguments):
        return self.network.on(host, "ping", "-n", "-c", "1", "-W", "5", *arguments, check=False)

    def reaches(self, host, *arguments):
        answer = self.ping(host, *arguments)
        assert answer.returncode == 0, answer.stdout + answer.stderr + self.log()

    def stop(self):
        summary = summary_of(self.process, self.log)
        return {drop["reason"]: drop["packets"] for drop in summary["drops"]}
