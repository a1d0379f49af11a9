"""Everything that can be wrong has a message that says what to do, and the right exit status."""

import os
import pathlib
import signal
import subprocess
import time

import pytest
from conftest import node_file, records, two_ports

GOOD = 'weir: 1\nports: {a: "memory:count=10", b: "memory:"}\nservices: {l2_switch: {}}\n'

BAD_FILES = [
    ("an unknown key", GOOD + "wokers: 2\n",
     ["node.yaml:4:1: unknown key 'wokers'; allowed: weir, node, workers,", "did you mean 'workers'?"]),
    ("an unknown key of a port", 'weir: 1\nports:\n  a: {device: "memory:", rolle: host}\nservices: {l2_switch: {}}\n',
     ["node.yaml:3:26: unknown key 'rolle'; allowed: device, role, labels, addresses, mac, mtu; did you mean 'role'?"]),
    ("an Ethernet address of a group",
     'weir: 1\nports:\n  a: {device: "memory:", mac: "01:00:00:00:00:01"}\nservices: {l2_switch: {}}\n',
     ["node.yaml:3:31: 01:00:00:00:00:01 is not the address of one station"]),
    ("an MTU below all", 'weir: 1\nports:\n  a: {device: "memory:", mtu: 67}\nservices: {l2_switch: {}}\n',
     ["node.yaml:3:31: expected a whole number from 68 to 65535, found '67'"]),
    ("an unknown setting", GOOD.replace("{l2_switch: {}}", "{l2_switch: {ageing: 1}}"),
     ["node.yaml:3:24: unknown key 'ageing'; allowed: aging, macs; did you mean 'aging'?"]),
    ("a wrong type", GOOD + "workers: two\n",
     ["node.yaml:4:10: expected a map with the keys count, idle, found 'two'"]),
    ("a number out of range", GOOD + "workers: {count: 0}\n",
     ["node.yaml:4:18: expected a whole number from 1 to 64, found '0'"]),
    ("a setting of a wrong type", GOOD.replace("{l2_switch: {}}", "{l2_switch: {macs: many}}"),
     ["node.yaml:3:30: expected a whole number from 16 to 1048576, found 'many'"]),
    ("a duplicate key", GOOD + "seed: 1\nseed: 2\n",
     ["node.yaml:5:1: 'seed' is there twice; the first is at node.yaml:4:1; remove one"]),
    ("a port used twice", 'weir: 1\nports:\n  a: "memory:"\n  a: "memory:"\nservices: {l2_switch: {}}\n',
     ["node.yaml:4:3: 'a' is there twice; the first is at node.yaml:3:3; remove one"]),
    ("an output of two ports", 'weir: 1\nports: {a: "pcap:,out=x.pcap", b: "pcap:,out=./x.pcap"}\n'
                               "services: {l2_switch: {}}\n",
     ["node.yaml:2:35: the file", "x.pcap is used by port 'a' already (node.yaml:2:12); give each port its own"]),
    ("an unknown device", GOOD.replace("memory:count", "memroy:count"),
     ["node.yaml:2:12: device 'memroy:count=10': unknown kind of device 'memroy', did you mean 'memory'?"]),
    ("an unknown option of a device", GOOD.replace("count=", "cuont="),
     ["node.yaml:2:12:", "unknown option 'cuont', did you mean 'count'?"]),
    ("an unknown service", GOOD.replace("l2_switch", "l2_swich"),
     ["node.yaml:3:12: unknown service 'l2_swich'; there are: l2_switch,", "did you mean 'l2_switch'?"]),
    ("a service that is not in the file", GOOD + "chains: [{services: [firewall]}]\n",
     ["node.yaml:4:22: no service 'firewall' in this file; there are: l2_switch"]),
    ("two chains", GOOD + "chains: [{services: [l2_switch]}, {services: []}]\n",
     ["node.yaml:4:35: a chain without services; nothing would handle its packets"]),
    ("a selector", GOOD + "chains: [{selector: {app: web}, services: [l2_switch]}]\n",
     ["node.yaml:4:9: no chain takes port 'a'; add one with an empty selector at the end, or give the port a label that one selects"]),
    ("no version", 'ports: {a: "memory:"}\n', ["node.yaml:1:1: expected 'weir: 1' first"]),
    ("a later version", "weir: 2\n", ["node.yaml:1:7: schema version '2', and this weir knows version 1"]),
    ("no ports", "weir: 1\nservices: {l2_switch: {}}\n", ["no ports; write ports: {NAME: DEVICE}"]),
    ("no services", 'weir: 1\nports: {a: "memory:"}\n', ["no services; nothing would handle the packets"]),
    ("a port without a device", GOOD.replace('b: "memory:"', "b:"), ["port 'b' has no device"]),
    ("an engine that is not there", GOOD + "engines: [core, kernel]\n", ["node.yaml:4:10: expected one engine"]),
    ("a bad address", 'weir: 1\nports: {a: {device: "memory:", addresses: [10.0.0.300/24]}}\nservices: {l2_switch: {}}\n',
     ["node.yaml:2:44: "]),
    ("a missing setting", GOOD.replace("{l2_switch: {}}", "{acl_firewall: {}, l2_switch: {}}"),
     ["node.yaml:3:26: acl_firewall needs the setting 'rules': YAML file of rules"]),
    ("a chain without an end", GOOD.replace("l2_switch: {}", "acl_firewall: {rules: acl.yaml}"),
     ["'acl_firewall' passes packets on, and nothing is behind it"]),
    ("a chain that goes on", GOOD + "services2: {}\n", ["unknown key 'services2'"]),
    ("a syntax error", "weir: 1\nports: [a\n", ["node.yaml:3:1: end of sequence flow not found"]),
    ("a tab", "weir: 1\nports:\n\ta: x\n", ["node.yaml:3:1: a tab in the indentation; YAML wants spaces"]),
    ("nothing", "", ["node.yaml is empty"]),
    ("no text", "\x00\x01\x02", ["node.yaml:1:1: byte 0x00 is no text"]),
    ("a list", "- 1\n", ["node.yaml:1:1: expected a node file, a map that begins with 'weir: 1', found a list of 1"]),
]


@pytest.mark.parametrize("text,messages", [(t, m) for _, t, m in BAD_FILES], ids=[name for name, _, _ in BAD_FILES])
@pytest.mark.parametrize("command", ["run", "check"])
def test_bad_node_file(weir, tmp_path, command, text, messages):
    (tmp_path / "acl.yaml").write_text("- {action: deny}\n")
    result = weir(command, node_file(tmp_path, text))
    assert result.returncode == 1
    for message in messages:
        assert message in result.stderr
    assert all(line.startswith("weir: ") for line in result.stderr.splitlines())
    assert result.stdout == ""


def test_all_mistakes_are_told_at_once(weir, tmp_path):
    text = 'weir: 1\nworkers: {count: 99}\nports: {a: "memroy:", b: "memory:"}\nservices: {x: {}}\nbatch: 0\n'
    lines = weir("check", node_file(tmp_path, text)).stderr.splitlines()
    assert len(lines) == 4


BAD_CALLS = [
    ([], "Usage: weir"),
    (["rnu"], "unknown command 'rnu', did you mean 'run'?"),
    (["run"], "FILE is required"),
    (["run", "node.yaml", "--fast"], "--fast"),
    (["run", "node.yaml", "--for", "ten"], "--for: 'ten' is no time; write 10s, 500ms, 2m or 1h"),
    (["run", "node.yaml", "--for", "-1s"], "is no time"),
    (["run", "node.yaml", "--cache", "maybe"], "--cache"),
    (["run", "node.yaml", "--engine", "gpu"], "--engine"),
    (["trace", "node.yaml"], "--packet is required"),
    (["completion", "fish"], "fish"),
]


@pytest.mark.parametrize("arguments,message", BAD_CALLS, ids=[" ".join(a) or "nothing" for a, _ in BAD_CALLS])
def test_bad_call(weir, tmp_path, arguments, message):
    node_file(tmp_path, GOOD)
    result = weir(*arguments)
    assert result.returncode == 2
    assert message in result.stderr and result.stdout == ""


def test_missing_node_file(weir):
    result = weir("run", "none.yaml")
    assert result.returncode == 1
    assert result.stderr == "weir: cannot read none.yaml: No such file or directory; check the path\n"


def test_a_folder_as_node_file(weir, tmp_path):
    result = weir("check", tmp_path)
    assert (result.returncode, result.stderr) == (1, f"weir: {tmp_path} is a directory; give a YAML file\n")


@pytest.mark.parametrize("command", ["run", "check"])
def test_missing_capture(weir, tmp_path, command):
    result = weir(command, two_ports(tmp_path, "pcap:none.pcap"))
    assert result.returncode == 1
    assert "node.yaml:2:12: " in result.stderr
    assert "cannot read none.pcap: No such file or directory; check the path" in result.stderr


@pytest.mark.parametrize("command", ["run", "check"])
def test_missing_rules(weir, tmp_path, command):
    file = node_file(tmp_path, GOOD.replace("{l2_switch: {}}", "{acl_firewall: {rules: none.yaml}, l2_switch: {}}"))
    result = weir(command, file)
    assert result.returncode == 1
    assert "cannot read none.yaml: No such file or directory; check the path" in result.stderr


def test_bad_rules(weir, tmp_path):
    (tmp_path / "acl.yaml").write_text("- {action: alow, dst: 10.0.0.1/8}\n- {action: deny, dst_port: 99999}\n")
    file = node_file(tmp_path, GOOD.replace("{l2_switch: {}}", "{acl_firewall: {rules: acl.yaml}, l2_switch: {}}"))
    lines = weir("check", file).stderr.splitlines()
    assert lines[0] == "weir: acl.yaml:1:12: expected one of deny, allow, found 'alow', did you mean 'allow'?"
    assert lines[1].startswith("weir: acl.yaml:1:23: ")
    assert lines[2].startswith("weir: acl.yaml:2:28: expected a port (0 to 65535) or a range")


def as_nobody(*command, **options):
    return subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *map(str, command)],
                          capture_output=True, text=True, timeout=60, **options)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes nobody, which only root can")


@needs_root
@pytest.mark.parametrize("forbidden", ["node.yaml", "in.pcap", "out"])
def test_no_permission(demo, tmp_path, forbidden):
    # nobody can reach neither pytest's folders nor, perhaps, the build folder: all are in a folder of their own.
    folder = pathlib.Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True).stdout.strip())
    try:
        folder.chmod(0o755)
        (folder / "out").mkdir()
        (folder / "out").chmod(0o755 if forbidden == "out" else 0o777)
        (folder / "in.pcap").write_bytes((demo / "alice.pcap").read_bytes())
        two_ports(folder, "pcap:in.pcap", "pcap:,out=out/x.pcap")
        if forbidden != "out":
            (folder / forbidden).chmod(0o600)
        weir = folder / "weir"
        weir.write_bytes(pathlib.Path(os.environ["WEIR"]).read_bytes())
        weir.chmod(0o755)
        result = as_nobody(weir, "run", folder / "node.yaml")
        what = "out/x.pcap: Permission denied; give a file that you may write" if forbidden == "out" else \
            f"{forbidden}: Permission denied; give yourself the right to read it"
        assert result.returncode == 1 and what in result.stderr
    finally:
        subprocess.run(["rm", "-r", folder])


def test_a_folder_as_output(weir, tmp_path):
    (tmp_path / "x.pcap").mkdir()
    for command in ("run", "check"):
        result = weir(command, two_ports(tmp_path, b="pcap:,out=x.pcap"))
        assert result.returncode == 1 and "x.pcap: " in result.stderr and "give a file that you may write" in result.stderr


def test_a_missing_folder_of_an_output(weir, tmp_path):
    result = weir("run", two_ports(tmp_path, b="pcap:,out=none/x.pcap"))
    assert result.returncode == 1
    assert "cannot write none/x.pcap: No such file or directory; make its folder first" in result.stderr


def test_full_disk_from_the_start(weir, tmp_path):
    result = weir("run", two_ports(tmp_path, b="pcap:,out=/dev/full"))
    assert result.returncode == 1
    assert "cannot write /dev/full: No space left on device; make room or write elsewhere" in result.stderr


@needs_root
def test_full_disk_in_the_middle(weir, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", disk]).returncode != 0:
        pytest.skip("cannot mount a small disk here")
    try:
        result = weir("run", two_ports(tmp_path, "memory:count=100000,size=1000", "pcap:,out=disk/x.pcap"))
        assert result.returncode == 1
        assert "No space left on device; make room or write elsewhere. It holds the first" in result.stderr
        assert "output_full" in result.stdout  # the summary is printed all the same
        assert 900 < len(records(disk / "x.pcap")) < 1100
    finally:
        subprocess.run(["umount", disk], check=True)


def test_full_disk_as_standard_output(weir, tmp_path):
    with open("/dev/full", "w") as full:
        result = weir("devices", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert result.returncode == 1
    assert result.stderr == "weir: cannot write to standard output: No space left on device\n"


def test_truncated_capture(weir, demo):
    whole = (demo / "alice.pcap").read_bytes()
    (demo / "cut.pcap").write_bytes(whole[:-10])
    result = weir("run", two_ports(demo, "pcap:cut.pcap", "pcap:,out=out.pcap"))
    assert result.returncode == 1
    assert "cut.pcap: byte " in result.stderr and "the file is cut off" in result.stderr
    assert "166 packets in" in result.stdout
    assert len(records(demo / "out.pcap")) == 166


@pytest.mark.parametrize("command", ["run", "check"])
def test_empty_capture(weir, tmp_path, command):
    (tmp_path / "empty.pcap").touch()
    result = weir(command, two_ports(tmp_path, "pcap:empty.pcap"))
    assert result.returncode == 1
    assert "empty.pcap is empty, not a capture; is whoever writes it done?" in result.stderr


def test_no_capture(weir, tmp_path):
    (tmp_path / "x.pcap").write_text("hello, this is text")
    result = weir("run", two_ports(tmp_path, "pcap:x.pcap"))
    assert result.returncode == 1 and "is not a pcap or pcapng capture" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle(tmp_path, number):
    two_ports(tmp_path, "memory:flows=10,rate=10000", "pcap:,out=out.pcap")
    process = subprocess.Popen([os.environ["WEIR"], "run", "node.yaml"], cwd=tmp_path, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    process.send_signal(number)
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    assert "packets in" in output
    assert len(records(tmp_path / "out.pcap")) > 0
