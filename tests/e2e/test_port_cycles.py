"""Ports that are added and removed again and again under traffic: nothing of theirs stays, and flows between other ports
lose nothing. WEIR_CYCLES says how often."""

import http.client
import json
import os
import pathlib
import socket
import subprocess
import sys

from test_endurance import bpf_objects, links, memory, sockets
from xdp_network import Weir, network, until  # one of them is a fixture

CYCLES = int(os.environ.get("WEIR_CYCLES", 20))

# Sends numbered datagrams, 1,000 a second, until it is told to stop; then prints how many.
SENDER = """
import signal, socket, time
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
wire.connect(("10.0.0.2", 7000))
sent, start = 0, time.monotonic()
while not stopped:
    wire.send(sent.to_bytes(8, "big"))
    sent += 1
    time.sleep(max(0, start + sent / 1000 - time.monotonic()))
print(sent)
"""

# Prints how many datagrams came, once the sender's last one has come or a second without any is over.
RECEIVER = """
import signal, socket
wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
wire.bind(("10.0.0.2", 7000))
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
signal.siginterrupt(signal.SIGTERM, False)
numbers = set()
wire.settimeout(1)
print("ready", flush=True)
while True:
    try:
        numbers.add(wire.recv(100))
    except TimeoutError:
        if stopped:
            break
print(len(numbers))
"""


class Control(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("weir", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(str(self.path))

    def ask(self, method, target, body=None):
        self.request(method, target, body=None if body is None else json.dumps(body))
        response = self.getresponse()
        return response.status, json.loads(response.read())


def test_ports_come_and_go(network, tmp_path):
    for space in ("switch", "alice", "bob", "carol"):
        network.space(space)
    for number, host in enumerate(("alice", "bob", "carol"), 1):
        network.pair("switch", f"port-{host}", host, "eth0", address=f"02:00:00:00:00:0{number}")
        network.on(host, "ip", "address", "add", f"10.0.0.{number}/24", "dev", "eth0")
    offloads = network.offloads("carol", "eth0")
    weir = Weir(network, "switch", tmp_path, {"alice": "xdp:port-alice", "bob": "xdp:port-bob"},
                "control: /run/weir/node.sock\n")
    weir.said("xdp:port-bob is up")
    until(lambda: network.on("alice", "ping", "-c", "1", "-W", "1", "10.0.0.2", check=False).returncode == 0,
          "alice reaches bob")
    control = Control(network.state / "node.sock")
    receiver = network.start("bob", sys.executable, "-c", RECEIVER, stdout=subprocess.PIPE, text=True)
    assert receiver.stdout.readline() == "ready\n"
    sender = network.start("alice", sys.executable, "-c", SENDER, stdout=subprocess.PIPE, text=True)

    def cycle(number):
        name, device = ("carol", "xdp:port-carol") if number % 2 == 0 else (f"tap {number}", "tap:cycle0")
        target = "/v1/ports/" + name.replace(" ", "%20")
        status, answer = control.ask("PUT", target, {"device": device})
        assert status == 201, answer
        if number % 20 == 0:
            until(lambda: network.on("carol", "ping", "-c", "1", "-W", "1", "10.0.0.2", check=False).returncode == 0,
                  "carol reaches bob")
        status, answer = control.ask("DELETE", target)
        assert status == 200, answer

    def held():
        folder = pathlib.Path(f"/proc/{weir.process.pid}")
        return {"descriptors": len(list((folder / "fd").iterdir())), "bpf": bpf_objects(weir.process),
                "sockets": sockets(network), "links": links(network),
                "mappings": len((folder / "maps").read_text().splitlines())}

    cycle(0)
    cycle(1)
    before, had = held(), memory()
    size = lambda: int(pathlib.Path(f"/proc/{weir.process.pid}/statm").read_text().split()[1]) * 4096
    resident = size()
    for number in range(2, CYCLES + 2):
        cycle(number)
    after = held()
    assert {name: value for name, value in after.items() if name != "mappings"} == \
        {name: value for name, value in before.items() if name != "mappings"}
    assert after["mappings"] < before["mappings"] + 20
    grown = size() - resident
    print(f"{CYCLES} cycles: {grown >> 10} KiB more resident, {(had[0] - memory()[0]) >> 20} MiB less available")
    assert grown < 16 << 20, "the frames of a port alone are more, twice"
    sender.terminate()
    sent = int(sender.communicate(timeout=60)[0])
    receiver.terminate()
    received = int(receiver.communicate(timeout=60)[0])
    assert sent >= 1000 or CYCLES < 100
    assert received == sent, "flows between other ports lose nothing"
    weir.stop()
    assert network.offloads("carol", "eth0") == offloads and not network.offload_records()
