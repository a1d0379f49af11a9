"""weir show: a running node, for people and for programs."""

import json
import os
import socket
import subprocess
import threading

import pytest


def words(weir, *arguments):
    result = weir("show", *arguments)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def test_ports(node, weir):
    lines = words(weir, "ports").splitlines()
    assert lines[0] == "Ports"
    assert " ".join(lines[1].split()) == \
        "port role state in packets bytes packets/s out packets bytes packets/s lost"
    assert lines[2].split()[:3] == ["left", "host", "up"] and lines[3].split()[:3] == ["right", "uplink", "up"]
    assert len(lines) == 4


def test_rules(node, weir):
    text = words(weir, "rules")
    assert text.startswith("Rules\n    packets\n") and "flood" in text and "of in by left" in text


def test_rules_beyond_the_limit(node, weir):
    total = node.get("/v1/rules")["total"]
    shown = json.loads(words(weir, "rules", "--limit", 1, "--json"))
    assert len(shown["rules"]) == 1 and shown["total"] >= total >= 1


def test_stages(node, weir):
    lines = words(weir, "stages").splitlines()
    assert lines[0] == "Stages" and [line.split()[0] for line in lines[2:]] == \
        ["chains", "acl_firewall", "l2_switch", "behind"]


def test_stats_are_the_summary(node, weir):
    text = words(weir, "stats")
    for title in ["Ports", "Stages", "Dropped", "Counters", "Tables", "Rule cache", "Time"]:
        assert f"\n{title}\n" in f"\n{text}"
    assert "no telnet" in text and "packets/s" in text


@pytest.mark.parametrize("what", ["ports", "stages", "stats", "rules"])
def test_json_is_the_answer(node, weir, what):
    shown = json.loads(words(weir, what, "--json"))
    answer = node.get(f"/v1/{what}")
    assert shown.keys() == answer.keys()


def test_one_of_several(start, weir):
    start("edge-1")
    start("edge-2")
    result = weir("show", "ports")
    assert result.returncode == 1
    assert result.stderr == "weir: several nodes are running; choose one with --node NAME: edge-1, edge-2\n"
    assert "left" in words(weir, "ports", "--node", "edge-2")


def test_by_its_socket(start, weir, runtime_folder):
    path = runtime_folder / "mine.sock"
    start(path=path, options=["--control", path])
    assert "left" in words(weir, "ports", "--control", path)
    assert "no node is running" in weir("show", "ports").stderr  # a path that no name leads to


def test_no_node(weir, runtime_folder):
    result = weir("show", "stats")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("weir: no node is running; start one: weir run FILE (looked in ")
    assert f"{runtime_folder}/weir" in result.stderr and "/run/weir" in result.stderr
    assert "no node 'x' is running; start it, with 'node: x' in its file" in weir("show", "stats", "--node", "x").stderr
    result = weir("show", "stats", "--control", "x.sock")
    assert "no node runs with the control socket x.sock; start one: weir run FILE --control x.sock" in result.stderr


def test_a_node_that_has_died(start, weir):
    node = start()
    node.process.kill()
    node.process.wait()
    node.process.returncode = 0
    assert "no node is running" in weir("show", "stats").stderr
    assert "has ended; start it again" in weir("show", "stats", "--control", node.path).stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be somebody else")
def test_a_node_of_another_user(start, runtime_folder):
    runtime_folder.chmod(0o755)
    node = start()
    command = runtime_folder / "weir-command"  # nobody may not be able to reach the build folder
    command.write_bytes(open(os.environ["WEIR"], "rb").read())
    command.chmod(0o755)
    result = subprocess.run([command, "show", "ports", "--control", node.path], user=65534, group=65534,
                            extra_groups=[], cwd="/", capture_output=True, text=True)
    assert result.returncode == 1
    assert "belongs to another user; try as that user, or with sudo" in result.stderr


@pytest.mark.parametrize("arguments", [
    [], ["ports", "--limit", "0"], ["flows"], ["ports", "--node", "a", "--control", "b"]])
def test_wrong_calls(weir, arguments):
    result = weir("show", *arguments)
    assert result.returncode == 2 and "weir: see: weir show --help" in result.stderr


def test_something_that_is_no_node(weir, runtime_folder):
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(runtime_folder / "x.sock"))
    server.listen()
    for answer, message in [(b"hello\r\n\r\n", "is no HTTP/1.1 response"), (b"", "went away before it had answered"),
                            (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", "not understood"),
                            (b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", "status 500"),
                            (b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n[]", "went away before it had answered")]:
        def serve():
            client, _ = server.accept()
            client.recv(65536)
            client.sendall(answer)
            client.close()

        thread = threading.Thread(target=serve)
        thread.start()
        result = weir("show", "ports", "--control", runtime_folder / "x.sock")
        thread.join()
        assert result.returncode == 1 and message in result.stderr, answer
