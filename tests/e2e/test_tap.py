"""tap devices: the kernel's own traffic through a node."""

import json
import pathlib
import signal
import time

import pytest
from scapy.all import IP, TCP, PcapReader

from conftest import check, run, wait_for


def exists(interface):
    return pathlib.Path(f"/sys/class/net/{interface}").exists()


def place(interface, namespace, address):
    """Moves a tap into a namespace, where it is a host's only link."""
    wait_for(lambda: exists(interface), f"{interface} is made")
    check("ip", "link", "set", interface, "netns", namespace.name)
    namespace.check("ip", "address", "add", address, "dev", interface, "nodad")
    namespace.check("ip", "link", "set", interface, "up")


@pytest.fixture
def pair(weir, namespace, names):
    """Two namespaces joined by a switching node: (node, a, b), 10.9.0.1 and 10.9.0.2."""

    def make(options="", services="l2_switch: {}", more=""):
        taps = names("ta"), names("tb")
        node = weir(f"""
weir: 1
ports:
  a: {{device: "tap:{taps[0]}{options}"}}
  b: {{device: "tap:{taps[1]}{options}"}}
services: {{{services}}}
{more}""")
        sides = namespace("a"), namespace("b")
        for tap, side, address in zip(taps, sides, ("10.9.0.1/24", "10.9.0.2/24")):
            place(tap, side, address)
        return node, *sides

    return make


RECEIVE = """
import hashlib, socket
listener = socket.create_server(("10.9.0.2", 7001)); listener.settimeout(20)
print("ready", flush=True)
peer = listener.accept()[0]; peer.settimeout(20)
digest = hashlib.sha256()
while part := peer.recv(1 << 20):
    digest.update(part)
print(digest.hexdigest(), flush=True)"""

SEND = """
import hashlib, random, socket, sys
data = random.Random(1).randbytes(int(sys.argv[1]))
peer = socket.create_connection(("10.9.0.2", 7001), 20)
peer.sendall(data)
print(hashlib.sha256(data).hexdigest())"""


def transfer(a, b, size):
    """Whether `size` bytes that go from a to b by TCP arrive as they were."""
    receive = b.start("python3", "-c", RECEIVE)
    try:
        assert receive.stdout.readline() == "ready\n"
        sent = a.check("python3", "-c", SEND, size)
        return receive.stdout.readline() == sent
    finally:
        receive.kill()
        receive.wait()


@pytest.mark.parametrize("workers", [1, 2])
def test_ping_and_tcp_with_offloads(pair, workers):
    node, a, b = pair(more=f"workers: {{count: {workers}}}")
    assert "3 received" in a.check("ping", "-c", "3", "-i", "0.05", "10.9.0.2")
    assert transfer(a, b, 20_000_000)
    summary = node.stop()
    port = next(port for port in summary["ports"] if port["name"] == "a")
    assert port["in_bytes"] / port["in_packets"] > 3000, "frames come unsegmented"


def test_without_offloads(pair):
    node, a, b = pair(options=",offload=off,mtu=1400")
    assert transfer(a, b, 2_000_000)
    port = next(port for port in node.stop()["ports"] if port["name"] == "a")
    assert port["in_bytes"] / port["in_packets"] <= 1414


def test_udp_segmentation(pair):
    """What a sender gives the kernel as one large datagram to be cut arrives as many."""
    node, a, b = pair()
    receive = b.start("python3", "-c", """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("10.9.0.2", 7000)); s.settimeout(15)
print("ready", flush=True)
print([len(s.recv(9000)) for _ in range(5)], flush=True)""")
    assert receive.stdout.readline() == "ready\n"
    a.check("python3", "-c", """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_UDP, 103, 1200)  # UDP_SEGMENT
s.sendto(bytes(5000), ("10.9.0.2", 7000))""")
    assert receive.stdout.readline() == "[1200, 1200, 1200, 1200, 200]\n"
    receive.wait()
    node.stop()


def test_a_port_that_does_not_segment_gets_segments(weir, namespace, names, tmp_path):
    """A capture of TCP from a tap: whole segments with right checksums, which add up to what was sent."""
    tap = names("ta")
    node = weir(f"""
weir: 1
ports:
  a: {{device: "tap:{tap}"}}
  copy: {{device: "pcap:,out=copy.pcap"}}
services: {{l2_switch: {{}}}}
""")
    side = namespace("a")
    place(tap, side, "10.9.0.1/24")
    side.check("ip", "neighbour", "replace", "10.9.0.2", "lladdr", "02:00:00:00:00:02", "dev", tap)
    # Nobody answers; a UDP datagram to be cut will do.
    side.check("python3", "-c", """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_UDP, 103, 1000)
s.sendto(bytes(range(250)) * 10, ("10.9.0.2", 7000))""")
    # The capture is buffered until the end; the interface has counted what it sent.
    wait_for(lambda: json.loads(side.check("ip", "-s", "-j", "link", "show", tap))[0]["stats64"]["tx"]["bytes"] > 2500,
             "the datagram is sent")
    node.stop()
    frames = [packet[IP] for packet in PcapReader(str(tmp_path / "copy.pcap")) if IP in packet and packet[IP].proto == 17]
    assert [len(frame.payload) - 8 for frame in frames] == [1000, 1000, 500]
    assert b"".join(bytes(frame.payload.payload) for frame in frames) == bytes(range(250)) * 10
    for frame in frames:
        again = IP(bytes(frame))
        del again.chksum, again.payload.chksum
        assert bytes(again) == bytes(frame), "its checksums are right"


def test_the_interface_goes_with_the_node(weir, names):
    tap = names("ta")
    node = weir(f'weir: 1\nports: {{a: "tap:{tap}", b: "memory:"}}\nservices: {{l2_switch: {{}}}}\n')
    wait_for(lambda: exists(tap), "the tap is made")
    node.process.send_signal(signal.SIGKILL)
    node.process.wait()
    wait_for(lambda: not exists(tap), "the tap is gone")


def test_an_interface_that_was_there_is_left_as_it_was(weir, names):
    tap = names("ta")
    check("ip", "tuntap", "add", tap, "mode", "tap")
    try:
        check("ip", "link", "set", tap, "mtu", "1300")
        node = weir(f'weir: 1\nports: {{a: "tap:{tap},mtu=1450", b: "memory:"}}\nservices: {{l2_switch: {{}}}}\n')
        wait_for(lambda: "UP" in check("ip", "-o", "link", "show", tap).split(">")[0], "it is up")
        assert "mtu 1450" in check("ip", "-o", "link", "show", tap)
        node.stop()
        after = check("ip", "-o", "link", "show", tap)
        assert "mtu 1300" in after and "UP" not in after.split(">")[0]
    finally:
        run("ip", "link", "delete", tap)


@pytest.mark.parametrize("device, message", [
    ("tap:", "tap needs the name of an interface; write tap:tap0"),
    ("tap:a-name-that-is-far-too-long", "is too long; it may have 15 characters"),
    ("tap:a/b", "cannot be the name of an interface"),
    ("tap:lo", "is no tap"),
    ("tap:x,mtu=1", "68 to 65521"),
    ("tap:x,offload=maybe", "on, off"),
])
def test_mistakes(weir, device, message):
    node = weir(f'weir: 1\nports: {{a: "{device}", b: "memory:"}}\nservices: {{l2_switch: {{}}}}\n')
    node.process.wait(20)
    assert node.process.returncode == 1 and message in node.text(), node.text()


def test_an_interface_that_is_removed_is_a_port_that_is_down(weir, names):
    tap = names("ta")
    node = weir(f'weir: 1\nports: {{a: "tap:{tap}", b: "memory:rate=1000"}}\nservices: {{l2_switch: {{}}}}\n')
    wait_for(lambda: exists(tap), "the tap is made")
    check("ip", "link", "delete", tap)
    wait_for(lambda: f"tap:{tap} was removed" in node.text(), "it is told")
    time.sleep(0.1)  # the generator goes on
    summary = node.stop()
    assert "port_down" in [drop["reason"] for drop in summary["drops"]]
