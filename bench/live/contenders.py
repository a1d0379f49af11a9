"""xdp: on a veth pair against dpdk-testpmd with net_af_xdp: receiving, and sending back with addresses swapped."""

import re
import shutil
import statistics
import time

from network import Network, program, wait_for

SENDER, NODE = "0", "1"  # processors
FIRST = ("chrt", "--rr", "1")  # before whatever else runs on the machine
SECONDS = 1.5
FORWARD = {"receive": "rxonly", "macswap": "macswap"}


def received(network):
    """Frames that came back to the sender."""
    return int(network.on("peer", "cat", "/sys/class/net/peer0/statistics/rx_packets"))


def send(network):
    """(frames a second that were sent, that came back)"""
    before = received(network)
    sent = float(network.on("peer", *FIRST, "taskset", "-c", SENDER, program("xdp_sender"), "peer0", SECONDS))
    return sent, (received(network) - before) / SECONDS


def weir(network, mode):
    """(Mpps sent, Mpps taken and, if so, sent back)"""
    node = network.start("node", *FIRST, "taskset", "-c", NODE, program("live_node"), "node0", mode)
    assert node.stdout.readline() == "ready\n"
    sent, back = send(network)
    output = node.communicate("", timeout=20)[0]
    network.processes.remove(node)
    taken = int(output.split()[0]) / SECONDS
    return sent / 1e6, (taken if mode == "receive" else back) / 1e6


def testpmd(network, mode):
    process = network.start("node", *FIRST, "dpdk-testpmd", "--no-huge", "-m", "256", "--no-pci", "--no-shconf", "-l",
                            f"{SENDER},{NODE}", "--vdev", "net_af_xdp0,iface=node0,busy_budget=0", "--", "-i",
                            f"--forward-mode={FORWARD[mode]}", "--auto-start", "--total-num-mbufs=16384",
                            "--nb-cores=1")
    wait_for(lambda: "prog/xdp" in network.on("node", "ip", "-d", "link", "show", "node0"), "testpmd has its interface")
    time.sleep(0.7)  # what it says is buffered, so nothing tells when it begins to forward
    sent, back = send(network)
    output = process.communicate("stop\nquit\n", timeout=20)[0]
    network.processes.remove(process)
    taken = int(re.findall(r"RX-packets: (\d+)", output)[-1]) / SECONDS
    return sent / 1e6, (taken if mode == "receive" else back) / 1e6


def main(rounds):
    if shutil.which("dpdk-testpmd") is None:
        raise SystemExit("bench: no dpdk-testpmd; install what scripts/packages.txt has for [live]")
    print(f"\n== Frames of 60 bytes between namespaces (veth), in Mpps: each contender {SECONDS} s, in turn, {rounds} times;"
          " all in a real-time class")
    with Network() as network:
        for space in ("peer", "node"):
            network.space(space)
        network.pair("node", "node0", "peer", "peer0", "02:00:00:00:00:01")
        network.on("node", "ip", "link", "set", "node0", "address", "02:00:00:00:00:02")
        print(f"the sender alone, to an interface that nobody has: {send(network)[0] / 1e6:.3f} Mpps")
        for mode in FORWARD:
            print(f"\n{mode:10} {'weir':>7} {'testpmd':>8} {'ratio':>6}   sent to: {'weir':>7} {'testpmd':>8}")
            ratios = []
            for number in range(1, rounds + 1):
                (sent_ours, ours), (sent_theirs, theirs) = weir(network, mode), testpmd(network, mode)
                ratios.append(ours / theirs)
                print(f"{number:10} {ours:7.3f} {theirs:8.3f} {ratios[-1]:6.3f}            {sent_ours:7.3f} "
                      f"{sent_theirs:8.3f}", flush=True)
            print(f"median ratio {statistics.median(ratios):.3f}, least {min(ratios):.3f} (aim >= 1.00 - 0.03)")
