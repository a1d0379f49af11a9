#!/usr/bin/env python3
"""Fails if a test was skipped that tests/allowed-skips.txt does not name.

    scripts/check-skips.py RESULTS.xml     what ctest --output-junit wrote
"""

import pathlib
import sys
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    lines = (ROOT / "tests/allowed-skips.txt").read_text().splitlines()
    allowed = {line.strip() for line in lines if line.strip() and not line.startswith("#")}
    tests = list(ElementTree.parse(sys.argv[1]).iter("testcase"))
    if not tests:
        sys.exit(f"check-skips: {sys.argv[1]} names no test")
    skipped = [test.get("name") for test in tests if test.find("skipped") is not None or test.get("status") == "notrun"]
    wrong = [name for name in skipped if name not in allowed]
    if wrong:
        sys.exit("check-skips: skipped, which CI does not accept (tests/allowed-skips.txt): " + ", ".join(wrong))


if __name__ == "__main__":
    main()
