#!/usr/bin/python3
"""A VLAN subinterface for kernels without 802.1Q support: vlan-interface.py INTERFACE ID.

Makes a tap interface INTERFACE.ID with INTERFACE's MAC address, and carries frames between the two: tagged on
INTERFACE, untagged on the tap. Runs until it is killed; the tap goes with it.
"""

import contextlib
import fcntl
import os
import select
import socket
import struct
import subprocess
import sys

ETH_P_ALL = 0x0003
SOL_PACKET, PACKET_AUXDATA = 263, 8
AUXDATA = struct.Struct("=IIIHHHH")  # status, length, captured, mac, net, tci, tpid
STATUS_VLAN_VALID = 0x10
TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000


def main():
    parent, vlan = sys.argv[1], int(sys.argv[2])
    name = f"{parent}.{vlan}"

    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    wire.bind((parent, ETH_P_ALL))
    wire.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    mac = wire.getsockname()[4]

    tap = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TAP | IFF_NO_PI))
    # 4 bytes less than the parent's, so that a tagged frame fits the wire.
    subprocess.run(["ip", "link", "set", name, "address", mac.hex(":"), "mtu", "1496"], check=True)

    while True:
        ready, _, _ = select.select([tap, wire], [], [])
        if tap in ready:
            frame = os.read(tap, 2048)
            wire.send(frame[:12] + struct.pack("!HH", 0x8100, vlan) + frame[12:])
        if wire in ready:
            # The kernel takes the outer tag out of the frame and reports it beside it.
            frame, ancillary, _, address = wire.recvmsg(2048, socket.CMSG_SPACE(AUXDATA.size))
            if address[2] == socket.PACKET_OUTGOING:
                continue
            for level, kind, data in ancillary:
                if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
                    status, _, _, _, _, tci, _ = AUXDATA.unpack(data[: AUXDATA.size])
                    if status & STATUS_VLAN_VALID and tci & 0xFFF == vlan:
                        with contextlib.suppress(OSError):  # the tap is not up yet
                            os.write(tap, frame)


if __name__ == "__main__":
    main()
