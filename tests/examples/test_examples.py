"""Each example does what its first line says."""

import collections
import os
import pathlib
import subprocess

import pytest
from scapy.all import ARP, ICMP, IP, TCP, UDP, Dot1Q, Ether, IPv6, Raw, rdpcap, wrpcap

SOURCES = pathlib.Path(__file__).parents[2] / "examples"
A, B, C = (f"02:00:00:00:00:0{i}" for i in (1, 2, 3))


@pytest.fixture
def example(tmp_path):
    def run(name, *arguments, status=0):
        result = subprocess.run([pathlib.Path(os.environ["EXAMPLES"]) / name, *arguments], capture_output=True,
                                text=True, cwd=tmp_path, timeout=60)
        assert result.returncode == status, result.stderr
        return result

    return run


def write(folder, name, packets):
    """Packet i at second i, so that several files have an order."""
    for i, packet in enumerate(packets):
        packet.time = 1_700_000_000 + (packet.time if packet.time < 1000 else i)
    wrpcap(str(folder / name), packets)


def at(second, packet):
    packet.time = second
    return packet


def read(folder, name):
    return [Ether(bytes(packet)) for packet in rdpcap(str(folder / name))]


def udp(src, dst, sport=1000, dport=2000, ttl=64, payload=b"hello", eth=(A, B)):
    return Ether(src=eth[0], dst=eth[1]) / IP(src=src, dst=dst, ttl=ttl) / UDP(sport=sport, dport=dport) / Raw(payload)


@pytest.mark.parametrize("source", ["l2_switch", "acl_firewall", "l3_router", "payload_scan", "hello"])
def test_examples_are_short(source):
    assert len((SOURCES / f"{source}.cc").read_text().splitlines()) < 60


@pytest.mark.parametrize("name", ["l2_switch", "acl_firewall", "l3_router", "payload_scan", "hello"])
def test_usage(example, name):
    assert "usage: " + name in example(name, status=2).stderr


def test_hello(example, tmp_path):
    write(tmp_path, "in.pcap", [udp("10.0.0.1", "10.0.0.2"), Ether(src=A, dst=B) / ARP()])
    result = example("hello", "pcap:in.pcap", "pcap:,out=out.pcap")
    assert result.stdout == "2 packets in, 2 out\n"
    assert [bytes(p) for p in read(tmp_path, "out.pcap")] == [bytes(p) for p in read(tmp_path, "in.pcap")]


def test_l2_switch_learns(tmp_path):
    frame = lambda src, dst, tag=None: Ether(src=src, dst=dst) / (Dot1Q(vlan=tag) / Raw(b"x") if tag else Raw(b"x"))
    write(tmp_path, "a.pcap", [at(0, frame(A, B)), at(2, frame(A, B)), at(4, frame(A, B, 7)), at(900, frame(A, C))])
    write(tmp_path, "b.pcap", [at(1, frame(B, A)), at(3, frame(B, "ff:ff:ff:ff:ff:ff"))])
    write(tmp_path, "c.pcap", [at(5, frame(C, A)), at(6, frame("03:00:00:00:00:01", C))])
    (tmp_path / "node.yaml").write_text("""weir: 1
ports: {a: "pcap:a.pcap,out=a.out", b: "pcap:b.pcap,out=b.out", c: "pcap:c.pcap,out=c.out"}
services: {l2_switch: {aging: 300}}
""")
    result = subprocess.run([os.environ["WEIR"], "run", "node.yaml"], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    # b: flooded while unknown, then by address, flooded again in VLAN 7 and after C's address aged.
    assert len(read(tmp_path, "b.out")) == 4
    # c: what was flooded: the first to B, B's broadcast, VLAN 7, the one after C's address aged.
    assert len(read(tmp_path, "c.out")) == 4
    assert len(read(tmp_path, "a.out")) == 3  # B's answer, B's broadcast, C's
    assert "same_port" in result.stdout  # to C from C's own port


def test_acl_firewall(example, tmp_path):
    (tmp_path / "acl.yaml").write_text("""
- {name: dns, action: allow, protocol: udp, dst_port: 53}
- {name: low ports, action: deny, protocol: udp, dst_port: 1-1023}
- {name: net, action: deny, src: 10.9.0.0/16}
- {name: six, action: allow, src: fd00::/8}
""")
    good = [udp("10.0.0.1", "10.0.0.2", dport=53), udp("10.0.0.1", "10.0.0.2", dport=1024), Ether(src=A, dst=B) / ARP(),
            Ether(src=A, dst=B) / IPv6(src="fd00::1", dst="fd00::2") / TCP()]
    bad = [udp("10.0.0.1", "10.0.0.2", dport=p) for p in (1, 52, 54, 1023)] + [udp("10.9.1.1", "10.0.0.2", dport=5000)]
    write(tmp_path, "in.pcap", bad + good)
    result = example("acl_firewall", "rules=acl.yaml", "pcap:in.pcap", "pcap:,out=out.pcap")
    assert [bytes(p) for p in read(tmp_path, "out.pcap")] == [bytes(p) for p in good]
    assert "denied_by_rule        5" in result.stdout and "low ports        4" in result.stdout
    example("acl_firewall", "rules=acl.yaml", "default=deny", "pcap:in.pcap", "pcap:,out=out.pcap")
    assert len(read(tmp_path, "out.pcap")) == 3  # DNS, ARP and IPv6


def test_acl_firewall_settings_are_checked(example):
    assert "setting 'default': expected one of allow, deny, found 'maybe'" in example(
        "acl_firewall", "rules=x", "default=maybe", "memory:", "memory:", status=2).stderr
    assert "acl_firewall needs the setting 'rules'" in example("acl_firewall", "memory:", "memory:", status=2).stderr
    assert "cannot read none.yaml" in example("acl_firewall", "rules=none.yaml", "memory:", "memory:", status=1).stderr


ROUTER = """weir: 1
ports:
  in: {{device: "pcap:in.pcap,out=in.out", addresses: [10.0.0.254/24]}}
  a: "pcap:,out=a.out"
  b: "pcap:,out=b.out"
services:
  l3_router:
    mtu: 500
    routes:
      10.1.0.0/16:
        - {{port: a, mac: 02:00:00:00:00:0a, from: 02:00:00:00:00:fe}}
        - {{port: b, mac: 02:00:00:00:00:0b, from: 02:00:00:00:00:ff}}
      10.1.2.0/24: [{{port: b, mac: 02:00:00:00:00:0c, from: 02:00:00:00:00:fd}}]
engines: [{engine}]
"""


@pytest.mark.parametrize("engine", ["core", "reference"])
def test_l3_router(tmp_path, engine):
    flows = [udp("10.0.0.1", "10.1.0.1", sport=port) for port in range(1000, 1064)]
    longest = [udp("10.0.0.1", "10.1.2.3", sport=7)]
    expired = [udp("10.0.0.1", "10.1.0.1", sport=1000, ttl=1)]
    nowhere = [udp("10.0.0.1", "192.0.2.1")]
    big = [udp("10.0.0.1", "10.1.0.1", payload=b"x" * 800)]
    write(tmp_path, "in.pcap", flows + longest + expired + nowhere + big)
    (tmp_path / "node.yaml").write_text(ROUTER.format(engine=engine))
    result = subprocess.run([os.environ["WEIR"], "run", "node.yaml"], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    by_a, by_b = read(tmp_path, "a.out"), read(tmp_path, "b.out")
    macs = collections.Counter(packet.dst for packet in by_a + by_b)
    assert macs["02:00:00:00:00:0c"] == 1
    assert macs["02:00:00:00:00:0a"] > 10 and macs["02:00:00:00:00:0b"] > 10
    assert macs["02:00:00:00:00:0a"] + macs["02:00:00:00:00:0b"] == 64
    for packet in by_a:
        assert (packet.src, packet.dst, packet[IP].ttl) == ("02:00:00:00:00:fe", "02:00:00:00:00:0a", 63)
    for packet in by_a + by_b:
        checksum = packet[IP].chksum
        del packet[IP].chksum
        assert IP(bytes(packet[IP])).chksum == checksum
    errors = read(tmp_path, "in.out")
    assert [(e[IP].src, e[IP].dst, e[ICMP].type, e[ICMP].code) for e in errors] == [
        ("10.0.0.254", "10.0.0.1", 11, 0),  # time exceeded
        ("10.0.0.254", "10.0.0.1", 3, 0),  # network unreachable
        ("10.0.0.254", "10.0.0.1", 3, 4),  # too big
    ]
    assert errors[2][ICMP].nexthopmtu == 500
    for reason in ("time_exceeded        1", "no_route             1", "too_big              1"):
        assert reason in result.stdout


def test_l3_router_names_its_mistakes(tmp_path):
    (tmp_path / "node.yaml").write_text("""weir: 1
ports: {a: "memory:"}
services:
  l3_router:
    routes:
      10.0.0.1/8: [{port: b, mac: 02:00:00:00:00:0g, from: 02:00:00:00:00:01}]
""")
    result = subprocess.run([os.environ["WEIR"], "check", "node.yaml"], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 1
    for place in ("node.yaml:6:7: ", "node.yaml:6:27: no port 'b'; there are: a", "node.yaml:6:35: "):
        assert place in result.stderr


@pytest.mark.parametrize("action,left", [("drop", 2), ("count", 5)])
def test_payload_scan(example, tmp_path, action, left):
    inside = b"x" * 3000  # in the second segment of a chained frame
    write(tmp_path, "in.pcap", [
        udp("10.0.0.1", "10.0.0.2", payload=b"nothing here"),
        udp("10.0.0.1", "10.0.0.2", payload=b"a secret!"),
        udp("10.0.0.1", "10.0.0.2", payload=b"malware"),
        udp("10.0.0.1", "10.0.0.2", payload=inside + b"secret"),
        udp("10.0.0.1", "10.0.0.2", payload=inside + b"secre"),
    ])
    result = example("payload_scan", "patterns=[secret, malware]", f"action={action}", "pcap:in.pcap",
                     "pcap:,out=out.pcap")
    assert len(read(tmp_path, "out.pcap")) == left
    assert "payload_match        3" in result.stdout
