#!/usr/bin/env python3
"""Benchmarks on real interfaces, between namespaces that it makes and removes; as root.

    bench/live/run.py [--rounds N] [contenders|latency|tcp|failover ...]     all of them by default
"""

import argparse
import os
import signal
import sys

import contenders
import failover
import latency
import tcp
from network import program, run

PARTS = {"contenders": (contenders.main, 10), "latency": (latency.main, 5), "tcp": (tcp.main, 5),
         "failover": (failover.main, 10)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--rounds", type=int, help="of each part, instead of its own number")
    arguments = parser.parse_args()
    wrong = [part for part in arguments.parts if part not in PARTS]
    if wrong:
        parser.error(f"there is no part '{wrong[0]}'; there are: {', '.join(PARTS)}")
    if os.geteuid() != 0:
        sys.exit("bench: makes network namespaces, which only root can; run it as root")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench: terminated"))  # so that all it made is removed
    for part in arguments.parts or PARTS:
        measure, rounds = PARTS[part]
        print(run(program("calibration_main")).strip(), flush=True)
        measure(arguments.rounds or rounds)
    print("\n" + run(program("calibration_main")).strip())


if __name__ == "__main__":
    main()
