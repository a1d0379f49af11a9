"""Nodes that are killed under traffic, again and again: nothing of theirs stays. WEIR_ENDURANCE says how often."""

import ctypes
import errno
import json
import os
import pathlib
import subprocess
import sys

from xdp_network import Weir, network, until  # one of them is a fixture

ROUNDS = int(os.environ.get("WEIR_ENDURANCE", 3))
POOL = 64 << 20  # a node's frames, in a memfd

# Broadcasts as fast as it can.
FLOODER = """
import socket
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind(("eth0", 0))
frame = bytes.fromhex("ffffffffffff" + wire.getsockname()[4].hex() + "88b5") + bytes(500)
while True:
    try:
        wire.send(frame)
    except OSError:  # the queue is full, or the interface has gone
        pass
"""

# bpf(2): the number of the object that follows the one given.
BPF = {"amd64": 321, "x86_64": 321, "aarch64": 280}[os.uname().machine]
NEXT = {"prog_id": 11, "map_id": 12, "link_id": 31}
LIBC = ctypes.CDLL(None, use_errno=True)


def exists(kind, number):
    """Whether the kernel has a BPF object of that number."""
    attributes = (ctypes.c_uint32 * 8)(number - 1)
    if LIBC.syscall(BPF, NEXT[kind], attributes, 32) == 0:
        return attributes[1] == number
    assert ctypes.get_errno() == errno.ENOENT
    return False


def bpf_objects(process):
    """{(kind, number)} that the process holds."""
    found = set()
    for info in pathlib.Path(f"/proc/{process.pid}/fdinfo").iterdir():
        for line in info.read_text().splitlines():
            kind, _, value = line.partition(":\t")
            if kind in NEXT:
                found.add((kind, int(value)))
    return found


def sockets(network):
    """Of the kinds that ports use, how many are open in the switch's namespace."""
    lines = network.on("switch", "cat", "/proc/net/protocols").stdout.splitlines()
    return {line.split()[0]: int(line.split()[2]) for line in lines if line.split()[0] in ("XDP", "PACKET")}


def links(network):
    """What is seen of the interfaces in all namespaces; statistics and times apart."""
    def of(space):
        return [(link["ifname"], link.get("xdp"), link["promiscuity"], link["flags"], link["mtu"])
                for link in json.loads(network.on(space, "ip", "-d", "-j", "link").stdout)]
    return {space: of(space) for space in network.spaces}


def memory():
    """Bytes that can be had, and bytes in shared memory."""
    fields = dict(line.split(":", 1) for line in open("/proc/meminfo"))
    return [int(fields[name].split()[0]) << 10 for name in ("MemAvailable", "Shmem")]


def run_under_traffic(network, folder):
    """A node between an xdp: and a tap: port, with both sides sending."""
    weir = Weir(network, "switch", folder, {"alice": "xdp:port-alice", "bob": "tap:tap0"},
                "control: /run/weir/node.sock\n")
    weir.said("xdp:port-alice is up")
    network.on("switch", "ip", "link", "set", "tap0", "netns", network.path("bob"), "name", "eth0")
    network.on("bob", "ip", "link", "set", "eth0", "address", "02:00:00:00:00:02")  # that alice remembers
    network.on("bob", "ip", "address", "add", "10.0.0.2/24", "dev", "eth0")
    network.on("bob", "ip", "link", "set", "eth0", "up")
    until(lambda: network.on("alice", "ping", "-c", "1", "-W", "1", "10.0.0.2", check=False).returncode == 0,
          "one side reaches the other")
    flooders = [network.start(side, sys.executable, "-c", FLOODER) for side in ("alice", "bob")]
    counts = lambda: [int(network.on(side, "cat", "/sys/class/net/eth0/statistics/rx_packets").stdout)
                      for side in ("alice", "bob")]
    before = counts()
    until(lambda: all(now > then + 1000 for now, then in zip(counts(), before)), "both sides receive")
    return weir, flooders


def test_killed_nodes_leave_nothing(network, tmp_path):
    for space in ("switch", "alice", "bob"):
        network.space(space)
    network.pair("switch", "port-alice", "alice", "eth0")
    network.on("alice", "ip", "address", "add", "10.0.0.1/24", "dev", "eth0")
    offloads, before, sockets_before = network.offloads("alice", "eth0"), links(network), sockets(network)
    had = memory()
    for number in range(1, ROUNDS + 1):
        weir, flooders = run_under_traffic(network, tmp_path)
        undone = "left changed by a process that was killed, are as they were" in weir.log()
        assert undone == (number > 1)
        held = bpf_objects(weir.process)
        assert {kind for kind, _ in held} == set(NEXT) and all(exists(*each) for each in held)
        assert sockets(network) != sockets_before and links(network) != before
        weir.kill()
        for flooder in flooders:
            flooder.kill()
            flooder.wait()
        until(lambda: not any(exists(*each) for each in held), f"its BPF objects have gone: {held}")
        until(lambda: sockets(network) == sockets_before, "its sockets have gone")
        until(lambda: links(network) == before, "its interfaces and programs have gone")
        assert len(network.offload_records()) == 1
        available, shared = (now - then >> 20 for now, then in zip(memory(), had))
        print(f"round {number}: {len(held)} BPF objects, all gone; MiB since the start: available {available:+}, "
              f"shared {shared:+}")

    # Others on the machine take and give memory, too; more than half of what the nodes had is no accident.
    if ROUNDS >= 20:
        until(lambda: memory()[1] - had[1] < ROUNDS * POOL // 2, "their frames have gone")
        assert had[0] - memory()[0] < ROUNDS * POOL // 2
    weir = network.start_weir("switch", "doctor", "--repair", stdout=subprocess.PIPE)
    assert weir.wait(timeout=60) == 0
    assert network.offloads("alice", "eth0") == offloads and not network.offload_records()
