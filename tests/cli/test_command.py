"""What the commands print when all is well."""

import json
import os
import subprocess

import pytest
from conftest import node_file, records, two_ports

COMMANDS = ["run", "check", "devices", "show", "trace", "completion"]


def test_version(weir):
    result = weir("--version")
    assert (result.returncode, result.stdout) == (0, "weir 0.1.0\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(weir, command):
    result = weir(command, "--help")
    assert result.returncode == 0
    assert "Example:" in result.stdout and "weir " in result.stdout.split("Example:")[1]


def test_run_prints_a_summary(weir, demo):
    result = weir("run", "firewall.yaml")
    assert result.returncode == 0, result.stderr
    for words in ["Ports", "alice         167", "Stages", "denied_by_rule       19", "no telnet replies        8", "Rule cache",
                  "353 packets in"]:
        assert words in result.stdout
    assert "\033" not in result.stdout
    assert len(records(demo / "carol.out.pcap")) == 59


def test_json_says_the_same(weir, demo):
    summary = json.loads(weir("run", "firewall.yaml", "--json", "--rules").stdout)
    assert summary["packets"] == {"in": 353, "out": 365, "dropped": 19, "cloned": 31, "originated": 0,
                                  "consumed": 0, "held": 0}
    assert summary["drops"] == [
        {"reason": "denied_by_rule", "packets": 19, "help": "a rule of the firewall denies it"}]
    assert [port["name"] for port in summary["ports"]] == ["alice", "bob", "carol"]
    assert {"actions", "match", "guards", "packets", "bytes", "worker"} == set(summary["rules"][0])
    assert summary["rule_cache"]["hit_ratio"] > 0.7


def test_packets_are_accounted_for(weir, demo):
    for options in [[], ["--cache", "off"], ["--engine", "reference"]]:
        packets = json.loads(weir("run", "firewall.yaml", "--json", *options).stdout)["packets"]
        assert packets["in"] + packets["cloned"] + packets["originated"] == packets["out"] + packets["dropped"]


def test_cache_off_and_reference_give_the_same_bytes(weir, demo):
    outputs = []
    for options in [[], ["--cache", "off"], ["--engine", "reference"]]:
        assert weir("run", "firewall.yaml", *options).returncode == 0
        outputs.append([(demo / f"{host}.out.pcap").read_bytes() for host in ("alice", "bob", "carol")])
    assert outputs[0] == outputs[1] == outputs[2]


def test_rules_in_words(weir, demo):
    text = weir("run", "firewall.yaml", "--rules").stdout
    assert "count as 'no telnet', drop: denied_by_rule" in text
    assert "of ipv4 tcp, l4.dst_port=23" in text


def test_run_for_a_time(weir, tmp_path):
    file = two_ports(tmp_path, "memory:flows=10", "memory:")
    result = weir("run", file, "--for", "300ms", "--json")
    assert result.returncode == 0, result.stderr
    summary = json.loads(result.stdout)
    assert summary["packets"]["in"] > 0 and 0.25e9 < summary["wall_ns"] < 5e9


def test_paths_start_from_the_node_file(weir, demo):
    folder = demo / "elsewhere"
    folder.mkdir()
    assert weir("run", "../firewall.yaml", cwd=folder).returncode == 0
    assert (demo / "bob.out.pcap").exists() and not list(folder.iterdir())


def test_check_writes_nothing(weir, demo):
    before = sorted(demo.iterdir())
    result = weir("check", "firewall.yaml")
    assert (result.returncode, result.stdout) == (0, "firewall.yaml can run: node 'demo', 3 ports, 2 services\n")
    assert sorted(demo.iterdir()) == before
    assert json.loads(weir("check", "firewall.yaml", "--json").stdout)["ok"] is True


def test_devices(weir):
    assert "memory: a generator and sink" in weir("devices").stdout
    kinds = json.loads(weir("devices", "--json").stdout)
    assert [kind["kind"] for kind in kinds] == ["memory", "pcap", "tap", "xdp", "gateway"]


def test_broken_pipe_is_fine(demo):
    command = f'"{os.environ["WEIR"]}" devices | head -1; echo ${{PIPESTATUS[0]}}'
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=demo, timeout=60)
    assert result.stdout.splitlines()[-1] == "0" and result.stderr == ""


def test_completion(weir, tmp_path):
    script = tmp_path / "weir.bash"
    script.write_text(weir("completion", "bash").stdout)
    for line, expected in [("weir de", "devices"), ("weir run --ru", "--rules"), ("weir run --cache o", "on off"),
                           ("weir sh", "show"), ("weir show s", "stages services stats"), ("weir show ports --no", "--node"),
                           ("weir run --con", "--control")]:
        words = line.split(" ")
        test = f'source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _weir; echo "${{COMPREPLY[*]}}"'
        result = subprocess.run(["bash", "-c", test], capture_output=True, text=True, timeout=60)
        assert result.stdout.strip() == expected, result.stderr


def test_several_workers(weir, tmp_path):
    file = two_ports(tmp_path, "memory:flows=100,count=20000", "memory:", "workers: {count: 2}\n")
    packets = json.loads(weir("run", file, "--json").stdout)["packets"]
    assert packets["in"] == 20000 and packets["out"] + packets["dropped"] == 20000 + packets["cloned"]


def test_settings_of_the_node(weir, tmp_path):
    file = two_ports(tmp_path, more="rule_cache: 0\nseed: 7\nframes: 256\nbatch: 1\ndecision_budget: unlimited\n"
                                    "clock: system\nengines: [core]\nnode: x\n")
    result = weir("run", file)
    assert result.returncode == 0 and "not used: all 10 packets were decided" in result.stdout
