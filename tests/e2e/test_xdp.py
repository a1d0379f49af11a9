"""The device xdp: on veth pairs: traffic of real programs, offloads, interfaces that come and go, what is left behind."""

import json
import os
import signal
import subprocess
import sys

import pytest
from xdp_network import TCP_CLIENT, TCP_SERVER, Weir, network, switched, until  # two of them are fixtures

# Prints every frame that eth0 receives from then on, in hexadecimal, with the tag that the kernel takes out.
LISTENER = """
import socket, struct
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
wire.bind(("eth0", 3))
wire.setsockopt(263, 8, 1)  # SOL_PACKET, PACKET_AUXDATA
print("ready", flush=True)
while True:
    frame, ancillary, _, address = wire.recvmsg(65536, 256)
    if address[2] == socket.PACKET_OUTGOING:
        continue
    for level, kind, data in ancillary:
        status, _, _, _, _, tci, tpid = struct.unpack("=IIIHHHH", data[:20])
        if status & 0x10:
            frame = frame[:12] + struct.pack("!HH", tpid, tci) + frame[12:]
    print(frame.hex(), flush=True)
"""
SENDER = """
import socket, sys
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind(("eth0", 0))
for frame in sys.argv[1:]:
    wire.send(bytes.fromhex(frame))
"""
# Sends as fast as it can until its input ends, and says how many frames that were.
FLOODER = """
import select, socket, sys
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind(("eth0", 0))
frame = bytes.fromhex("ffffffffffff" + "02000000000a" + "88b5") + bytes(1000)
count = 0
while not select.select([sys.stdin], [], [], 0.001)[0]:
    for _ in range(20):
        wire.send(frame)
        count += 1
print(count)
"""


def ping(network, *options, count=3):
    return network.on("alice", "ping", "-c", count, "-i", "0.05", "-W", "5", *options, "10.0.0.2").stdout


def reached(network):
    """Whether one ping comes back; switches and hosts may still be learning addresses."""
    return network.on("alice", "ping", "-c", "1", "-W", "1", "10.0.0.2", check=False).returncode == 0


def tcp(network, size=4 << 20):
    server = network.start("bob", sys.executable, "-c", TCP_SERVER, stdout=subprocess.PIPE, text=True)
    assert server.stdout.readline() == "ready\n"
    assert network.on("alice", sys.executable, "-c", TCP_CLIENT, "10.0.0.2", size).stdout == "the same\n"
    assert server.wait(timeout=60) == 0


@pytest.mark.parametrize("mode", ["native", "generic"])
def test_ping_and_tcp(network, switched, mode):
    weir = switched(f",mode={mode}").up()
    assert f"xdp:port-alice: {mode} mode, copying, 1 queue(s)" in weir.log()
    assert "3 received" in ping(network)
    tcp(network)
    summary = weir.stop()
    assert [port["lost"] for port in summary["ports"]] == [0, 0]
    assert summary["packets"]["in"] > 100


@pytest.mark.parametrize("idle", ["poll", "adaptive", "interrupt"])
@pytest.mark.parametrize("workers,queues", [(1, 4), (2, 1), (2, 3)])
def test_workers_and_queues(network, switched, workers, queues, idle):
    weir = switched(more=f"workers: {{count: {workers}, idle: {idle}}}\n",
                    parameters=("numrxqueues", str(queues), "numtxqueues", str(queues))).up()
    assert f"{queues} queue(s)" in weir.log()
    assert "3 received" in ping(network)
    tcp(network)
    weir.stop()


def test_frames_stay_as_they_are(network, switched):
    weir = switched().up()
    ethernet = "ffffffffffff" + "02000000000a"
    frames = [
        ethernet + "88b5" + bytes(range(46)).hex(),  # EtherType for experiments
        ethernet + "81000007" + "88b5" + bytes(range(46)).hex(),  # VLAN 7
        ethernet + "88a80009" + "81000007" + "88b5" + bytes(range(60)).hex(),  # VLAN 7 in service VLAN 9
        ethernet + "88b5" + bytes(range(256)).hex() * 5 + bytes(220).hex(),  # 1514 bytes
        ethernet + "81000007" + "88b5" + bytes(range(256)).hex() * 5 + bytes(220).hex(),  # and a tag
    ]
    listener = network.start("bob", sys.executable, "-c", LISTENER, stdout=subprocess.PIPE, text=True)
    assert listener.stdout.readline() == "ready\n"
    network.on("alice", sys.executable, "-c", SENDER, *frames)
    got = []
    while len(got) < len(frames):
        frame = listener.stdout.readline().strip()
        if "88b5" in frame[:48]:
            got.append(frame)
    assert got == frames
    weir.stop()


def test_between_tap_and_xdp(network, switched, tmp_path):
    switched.connect("bob")
    weir = Weir(network, "switch", tmp_path, {"alice": "tap:tap0", "bob": "xdp:port-bob"})
    weir.said("xdp:port-bob is up")
    # The tap's kernel leaves checksums and segmentation to the node, which does both for the port that can neither.
    network.on("switch", "ip", "link", "set", "tap0", "netns", network.path("alice"), "name", "eth0")
    network.on("alice", "ip", "address", "add", "10.0.0.1/24", "dev", "eth0")
    network.on("alice", "ip", "link", "set", "eth0", "up")
    assert "3 received" in ping(network)
    tcp(network)
    weir.stop()


@pytest.mark.parametrize("mtu", [9000, 65535])
@pytest.mark.parametrize("mode", ["native", "generic"])
def test_jumbo_frames(network, switched, mode, mtu):
    weir = switched(f",mode={mode}", mtu=mtu).up()
    assert "frames of several buffers" in weir.log()
    assert "3 received" in ping(network, "-M", "do", "-s", mtu - 28)
    tcp(network)
    weir.stop()


def test_frames_that_are_too_long_are_not_sent(network, switched):
    weir = switched(mtu=9000)
    weir.up()
    network.on("switch", "ip", "link", "set", "port-bob", "mtu", "1500")
    assert "3 received" in ping(network)
    assert network.on("alice", "ping", "-c", "2", "-i", "0.05", "-W", "1", "-s", "4000", "10.0.0.2",
                      check=False).returncode == 1
    assert "3 received" in ping(network)
    drops = {drop["reason"]: drop["packets"] for drop in weir.stop()["drops"]}
    assert drops["output_full"] == 2


def test_what_the_kernel_drops_is_counted(network, switched):
    weir = switched(",ring=64").up()
    assert "3 received" in ping(network)
    weir.process.send_signal(signal.SIGSTOP)
    frame = "02000000000f" + "02000000000a" + "88b5" + bytes(46).hex()
    network.on("alice", sys.executable, "-c", SENDER, *[frame] * 500)
    weir.process.send_signal(signal.SIGCONT)
    assert "3 received" in ping(network)
    alice = weir.stop()["ports"][0]
    assert alice["lost"] >= 500 - 64 and alice["in_packets"] + alice["lost"] >= 500 + 6


def test_offloads_are_set_and_restored(network, switched):
    switched.connect("alice")
    switched.connect("bob")
    network.on("bob", "ethtool", "-K", "eth0", "tx-checksum-sctp", "off", "gro", "on")  # its own wish
    hosts = ("alice", "bob")
    before = {host: network.offloads(host, "eth0") for host in hosts}
    assert before["alice"]["tx-checksum-ip-generic"] == "on" and before["alice"]["generic-receive-offload"] == "off"
    weir = switched.run().up()
    for host in hosts:
        during = network.offloads(host, "eth0")
        assert {during[name] for name in ("tx-checksumming", "tcp-segmentation-offload", "tx-vlan-offload",
                                          "tx-vlan-stag-hw-insert")} == {"off"}
        assert during["generic-receive-offload"] == "on"
    assert len(network.offload_records()) == 2
    weir.stop()
    assert {host: network.offloads(host, "eth0") for host in hosts} == before
    assert not network.offload_records()


def test_a_far_end_that_is_moved_gets_its_offloads_back(network, tmp_path):
    for space in ("switch", "host"):
        network.space(space)
    network.pair("switch", "port", "switch", "far")
    before = network.offloads("switch", "far")
    weir = Weir(network, "switch", tmp_path, {"a": "xdp:port"}).up()
    network.on("switch", "ip", "link", "set", "far", "netns", network.path("host"), "name", "eth0")
    network.on("host", "ip", "link", "set", "eth0", "up")
    assert network.offloads("host", "eth0")["tx-checksumming"] == "off"
    weir.stop()
    assert network.offloads("host", "eth0") == before
    assert not network.offload_records()


def test_a_far_end_out_of_reach_is_an_error_with_the_command(network, tmp_path):
    network.space("switch")
    # A namespace that only a descriptor of this process keeps.
    keeper = subprocess.Popen(["unshare", "--net", "sleep", "600"])
    network.processes.append(keeper)
    own = os.stat("/proc/self/ns/net").st_ino
    until(lambda: os.stat(f"/proc/{keeper.pid}/ns/net").st_ino != own, "the namespace is there")
    descriptor = os.open(f"/proc/{keeper.pid}/ns/net", os.O_RDONLY)
    try:
        subprocess.run(["ip", "link", "add", "port", "netns", network.path("switch"), "type", "veth", "peer", "name",
                        "far0", "netns", str(keeper.pid)], check=True)
        inside = ["nsenter", f"--net=/proc/{os.getpid()}/fd/{descriptor}"]
        subprocess.run([*inside, "ip", "link", "set", "far0", "up"], check=True)
        network.on("switch", "ip", "link", "set", "port", "up")
        keeper.kill()
        keeper.wait()

        said = Weir(network, "switch", tmp_path, {"a": "xdp:port"}).fails()
        command = "ethtool -K far0 tx off txvlan off tx-vlan-stag-hw-insert off gro on"
        assert f"Run there: {command} ; then write xdp:port,far_end=prepared" in said
        assert "xdp" not in network.link("switch", "port")
        subprocess.run([*inside, *command.split()], check=True)
        Weir(network, "switch", tmp_path, {"a": "xdp:port,far_end=prepared"}).up().stop()
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("mode", ["native", "generic"])
def test_an_interface_that_disappears_and_returns(network, switched, mode):
    weir = switched(f",mode={mode}").up()
    assert "3 received" in ping(network)
    network.on("switch", "ip", "link", "del", "port-bob")
    weir.said("xdp:port-bob has disappeared")
    assert not reached(network)
    switched.connect("bob")
    weir.said("xdp:port-bob is up", times=2)
    until(lambda: reached(network), "ping comes back")
    tcp(network)
    drops = {drop["reason"]: drop["packets"] for drop in weir.stop()["drops"]}
    assert drops["port_down"] > 0


def test_every_frame_is_accounted_for_while_an_interface_comes_and_goes(network, switched):
    weir = switched().up()
    flooder = network.start("alice", sys.executable, "-c", FLOODER, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            text=True)
    for times in range(1, 5):
        network.on("switch", "ip", "link", "del", "port-bob")
        weir.said("xdp:port-bob has disappeared", times)
        switched.connect("bob")
        weir.said("xdp:port-bob is up", times + 1)
    sent = int(flooder.communicate("", timeout=60)[0])
    assert "3 received" in ping(network)
    summary = weir.stop()
    alice, bob = summary["ports"]
    assert alice["in_packets"] + alice["lost"] >= sent
    assert bob["out_packets"] > 0 and "no_frames" not in [drop["reason"] for drop in summary["drops"]]


def test_an_interface_that_is_set_down_and_up(network, switched):
    weir = switched().up()
    network.on("switch", "ip", "link", "set", "port-bob", "down")
    weir.said("xdp:port-bob is set down")
    network.on("switch", "ip", "link", "set", "port-bob", "up")
    weir.said("xdp:port-bob is up", times=2)
    until(lambda: reached(network), "ping comes back")
    network.on("bob", "ip", "link", "set", "eth0", "down")
    weir.said("xdp:port-bob has no carrier")
    network.on("bob", "ip", "link", "set", "eth0", "up")
    weir.said("xdp:port-bob is up", times=3)
    until(lambda: reached(network), "ping comes back")
    weir.stop()


def untouched(network):
    """What of the switch's interfaces shows whether somebody uses them."""
    links = [network.link("switch", f"port-{host}") for host in ("alice", "bob")]
    return [(link.get("xdp"), link["promiscuity"], "PROMISC" in link["flags"], network.offloads("switch", link["ifname"]))
            for link in links]


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_nothing_is_left(network, switched, end):
    switched.connect("alice")
    switched.connect("bob")
    before, far_before = untouched(network), network.offloads("alice", "eth0")
    weir = switched.run().up()
    assert untouched(network) != before
    assert "3 received" in ping(network)
    if end == "stop":
        weir.stop()
        assert untouched(network) == before
    else:
        weir.kill()
        until(lambda: untouched(network) == before, "programs and sockets have gone")
        assert network.offloads("alice", "eth0") != far_before and len(network.offload_records()) == 2
        weir = switched.run().up()  # undoes it, and does it again
        assert "offload settings of eth0, left changed by a process that was killed, are as they were" in weir.log()
        tcp(network)
        weir.stop()
    assert network.offloads("alice", "eth0") == far_before
    assert not network.offload_records()


def test_an_interface_that_is_in_use(network, switched, tmp_path):
    first = switched().up()
    folder = tmp_path / "second"
    folder.mkdir()
    said = Weir(network, "switch", folder, {"a": "xdp:port-alice"}).fails()
    assert "port-alice is used by another XDP program (number " in said
    assert "ip link set dev port-alice xdp off" in said
    assert "3 received" in ping(network)
    first.stop()


def test_errors_say_what_to_do(network, switched, tmp_path):
    switched.connect("alice")
    run = lambda port, more="": Weir(network, "switch", tmp_path, {"a": port}, more).fails()
    said = run("xdp:port-alise")
    assert "node.yaml:3:" in said and "no interface 'port-alise'" in said and "did you mean 'port-alice'?" in said
    said = run("xdp:port-alice,ring=4096", "frames: 8192\n")
    assert "port-alice has 1 queue(s)" in said and "Write frames: 16384 or more in the node file" in said
    checked = network.on("switch", os.environ["WEIR"], "check", tmp_path / "node.yaml")
    assert "can run" in checked.stdout


def test_a_driver_without_xdp_is_used_in_generic_mode(network, tmp_path):
    network.space("switch")
    network.on("switch", "ip", "link", "add", "br0", "type", "bridge")
    network.on("switch", "ip", "link", "set", "br0", "up")
    weir = Weir(network, "switch", tmp_path, {"a": "xdp:br0"}).up()
    weir.said("xdp:br0: its driver takes no XDP program (Operation not supported), so it runs in generic mode")
    weir.said("xdp:br0: generic mode")
    weir.stop()
    said = Weir(network, "switch", tmp_path, {"a": "xdp:br0,mode=native"}).fails()
    assert "br0 takes no XDP program in its driver: Operation not supported; leave out mode=native" in said


def test_both_ends_of_one_pair(network, tmp_path):
    network.space("switch")
    network.pair("switch", "left", "switch", "right")
    before = [network.offloads("switch", name) for name in ("left", "right")]
    # Each frame that is flooded to one end comes back by the other: they go round for ever, as fast as can be.
    weir = Weir(network, "switch", tmp_path, {"left": "xdp:left", "right": "xdp:right", "in": "memory:count=2000"})
    received = lambda: json.loads(network.on("switch", "ip", "-s", "-j", "link", "show", "right").stdout)[0]["stats64"]["rx"]
    until(lambda: received()["packets"] > 100_000, "frames go round")
    assert weir.stop()["packets"]["in"] > 100_000
    assert [network.offloads("switch", name) for name in ("left", "right")] == before


def test_too_little_memory_may_be_locked(network, switched, tmp_path):
    switched.connect("alice")
    node = tmp_path / "node.yaml"
    node.write_text('weir: 1\nports: {a: "xdp:port-alice"}\nservices: {l2_switch: {}}\n')
    result = network.on("switch", "prlimit", "--memlock=1048576", "setpriv", "--bounding-set=-ipc_lock",
                        "--inh-caps=-ipc_lock", os.environ["WEIR"], "run", node, check=False)
    assert result.returncode == 1
    assert "the 16384 frames of the node are 65536 KiB" in result.stderr
    assert "this process may lock 1024 KiB" in result.stderr
    assert "xdp" not in network.link("switch", "port-alice")


def test_without_privileges(network, switched, tmp_path):
    switched.connect("alice")
    node = tmp_path / "node.yaml"
    node.write_text('weir: 1\nports: {a: "xdp:port-alice"}\nservices: {l2_switch: {}}\n')
    # The file may lie where others than root cannot read it.
    result = network.on("switch", "setpriv", "--bounding-set=-all", "--inh-caps=-all", os.environ["WEIR"], "run", node,
                        check=False)
    assert result.returncode == 1
    assert "run as root, or give CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF" in result.stderr
    assert "xdp" not in network.link("switch", "port-alice")
