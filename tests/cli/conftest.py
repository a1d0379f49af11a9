"""What the tests of the command share."""

import pathlib
import shutil
import struct

import pytest

DEMO = pathlib.Path(__file__).parents[2] / "examples" / "demo"


@pytest.fixture
def demo(tmp_path):
    """The demo's files, copied to where weir runs."""
    for file in [*DEMO.glob("*.yaml"), *DEMO.glob("*.pcap")]:
        shutil.copy(file, tmp_path)
    return tmp_path


def node_file(folder, text, name="node.yaml"):
    (folder / name).write_text(text)
    return name


def two_ports(folder, a="memory:count=10", b="memory:", more=""):
    return node_file(folder, f'weir: 1\nports: {{a: "{a}", b: "{b}"}}\nservices: {{l2_switch: {{}}}}\n{more}')


def records(path):
    """The records of a pcap with nanoseconds; fails if it is not whole."""
    data = pathlib.Path(path).read_bytes()
    assert struct.unpack("<I", data[:4])[0] == 0xA1B23C4D
    at, found = 24, []
    while at < len(data):
        assert at + 16 <= len(data), "a record's header is cut off"
        captured = struct.unpack("<I", data[at + 8 : at + 12])[0]
        assert at + 16 + captured <= len(data), "a record is cut off"
        found.append(data[at + 16 : at + 16 + captured])
        at += 16 + captured
    return found
