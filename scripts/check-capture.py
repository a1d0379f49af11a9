#!/usr/bin/python3
"""Checks the demo's captures (check-capture.py FILE.pcap...): format, size, checksums, order, and who talked how."""

import collections
import logging
import pathlib
import struct
import sys

logging.getLogger("scapy").setLevel(logging.ERROR)
from scapy.all import ARP, ICMP, TCP, UDP, Dot1Q, Ether, ICMPv6EchoReply, ICMPv6EchoRequest, IPv6, RawPcapReader

MAX_FILE, MAX_FRAME = 150 * 1024, 1514
EXPECTED = {
    "ARP": ARP, "ping": ICMP, "ping (IPv6)": (ICMPv6EchoRequest, ICMPv6EchoReply),
    "HTTP": 80, "HTTP (IPv6)": (80, IPv6), "HTTP (VLAN)": (80, Dot1Q), "DNS": 53, "iperf3": 5201,
    "telnet": 23, "closed port": 8081, "UDP 4444": 4444,
}


def checksums_are_right(packet):
    again = packet.copy()
    layer = again
    while layer:
        for name in ("chksum", "cksum"):
            if name in layer.fields:
                delattr(layer, name)  # for scapy to fill in
        if isinstance(layer, ICMP):
            break  # what an error quotes behind it was not made for this packet
        layer = layer.payload
    return bytes(again) == bytes(packet)


def describe(packet, what):
    if isinstance(what, tuple) and isinstance(what[0], int):
        return what[1] in packet and describe(packet, what[0])
    if isinstance(what, int):
        return any(layer in packet and what in (packet[layer].sport, packet[layer].dport) for layer in (TCP, UDP))
    return any(layer in packet for layer in (what if isinstance(what, tuple) else (what,)))


def main():
    seen = collections.Counter()
    for path in map(pathlib.Path, sys.argv[1:]):
        def fail(message):
            sys.exit(f"{path}: {message}")

        if path.stat().st_size > MAX_FILE:
            fail(f"{path.stat().st_size} bytes, more than {MAX_FILE}")
        if struct.unpack("<I", path.read_bytes()[:4])[0] != 0xA1B2C3D4:
            fail("not a little-endian microsecond pcap")
        count, last, senders = 0, 0, set()
        for count, (data, meta) in enumerate(RawPcapReader(str(path)), 1):
            packet = Ether(data)
            time = meta.sec * 1_000_000 + meta.usec
            if time < last:
                fail(f"packet {count} is earlier than the one before it")
            if meta.wirelen != len(data) or len(data) > MAX_FRAME:
                fail(f"packet {count} has {len(data)} bytes of {meta.wirelen}, at most {MAX_FRAME} expected")
            if not checksums_are_right(packet):
                fail(f"packet {count} has a wrong checksum: {packet.summary()}")
            last = time
            senders.add(packet.src)
            seen.update(name for name, what in EXPECTED.items() if describe(packet, what))
        if len(senders) != 1:
            fail(f"one host was expected to have sent all, but it was {sorted(senders) or 'nobody'}")
        print(f"{path.name}: {count} packets, {path.stat().st_size} bytes, from {senders.pop()}")
    missing = [name for name in EXPECTED if not seen[name]]
    if missing:
        sys.exit(f"nothing was recorded of: {', '.join(missing)}")
    print(", ".join(f"{name} {seen[name]}" for name in EXPECTED))


if __name__ == "__main__":
    main()
