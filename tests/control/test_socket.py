"""The control socket's file: where it is, who may use it, and that it goes."""

import os
import signal
import socket
import stat
import subprocess

import pytest
from conftest import FILE


def test_only_the_owner_may_connect(node, runtime_folder):
    status = os.stat(runtime_folder / "weir" / "edge-1.sock")
    assert stat.S_ISSOCK(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o600
    assert status.st_uid == os.geteuid()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be somebody else")
def test_others_may_not(start, runtime_folder):
    runtime_folder.chmod(0o755)
    node = start()
    code = f"import socket; socket.socket(socket.AF_UNIX).connect('{node.path}')"
    result = subprocess.run(["python3", "-c", code], user=65534, capture_output=True, text=True)
    assert "PermissionError" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_removes_it(node, runtime_folder, number):
    output, errors = node.end(number)
    assert node.process.returncode == 0 and errors == "" and '"packets"' in output
    assert list((runtime_folder / "weir").iterdir()) == []


def test_the_end_of_input_removes_it(weir, tmp_path, runtime_folder):
    (tmp_path / "n.yaml").write_text('weir: 1\nports: {a: "memory:count=10"}\nservices: {l2_switch: {}}\n')
    assert weir("run", "n.yaml").returncode == 0
    assert list((runtime_folder / "weir").iterdir()) == []


def test_of_a_dead_node_is_replaced(start, runtime_folder):
    (runtime_folder / "weir").mkdir()
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(runtime_folder / "weir" / "edge-1.sock"))
    stale.listen()
    stale.close()  # the file stays
    assert start().get("/v1/node")["name"] == "edge-1"


def test_of_a_killed_node_is_replaced(start, runtime_folder):
    first = start("edge-1")
    first.process.kill()
    first.process.wait()
    assert (runtime_folder / "weir" / "edge-1.sock").exists()
    first.process.returncode = 0
    assert start("edge-1").get("/v1/node")["process"] != first.process.pid


def test_of_a_live_node_is_not(node, weir):
    result = weir("run", "edge-1.yaml")
    assert result.returncode == 1 and result.stdout == ""
    assert f"a running node has the control socket {node.path}; give this one another name (node: NAME), or " \
           "--control PATH or --control off" in result.stderr
    assert node.get("/v1/node")["name"] == "edge-1"


def test_something_else_is_not(weir, tmp_path):
    (tmp_path / "edge-1.yaml").write_text(FILE.format(name="edge-1", more=""))
    (tmp_path / "acl.yaml").write_text("[]\n")
    (tmp_path / "x").write_text("precious")
    result = weir("run", "edge-1.yaml", "--control", "x")
    assert result.returncode == 1 and "x is there and is no socket; remove it" in result.stderr
    assert (tmp_path / "x").read_text() == "precious"


def test_a_path_of_the_node_file(start, tmp_path, runtime_folder):
    node = start(more=f"control: {runtime_folder}/here.sock\n", path=runtime_folder / "here.sock")
    assert node.get("/v1/node")["name"] == "edge-1"
    assert not (runtime_folder / "weir").exists()


def test_a_path_of_the_command_line(start, runtime_folder):
    path = runtime_folder / "there.sock"
    node = start(more="control: off\n", path=path, options=["--control", path])
    assert node.get("/v1/node")["name"] == "edge-1"


@pytest.mark.parametrize("more,options", [("control: off\n", []), ("", ["--control", "off"])])
def test_off(weir, tmp_path, runtime_folder, more, options):
    (tmp_path / "n.yaml").write_text(FILE.format(name="x", more=more))
    (tmp_path / "acl.yaml").write_text("[]\n")
    assert weir("run", "n.yaml", "--for", "100ms", *options).returncode == 0
    assert list(runtime_folder.iterdir()) == []


@pytest.mark.parametrize("path,message", [
    ("none/x.sock", "cannot use the folder none for the node's control socket: No such file or directory"),
    ("x" * 200, "the path has 200 bytes, and a socket's may have 1 to 107; give a shorter one"),
])
def test_a_path_that_cannot_be(weir, tmp_path, path, message):
    (tmp_path / "n.yaml").write_text(FILE.format(name="x", more=""))
    (tmp_path / "acl.yaml").write_text("[]\n")
    result = weir("run", "n.yaml", "--control", path)
    assert result.returncode == 1 and message in result.stderr


def test_a_name_that_is_no_file_name(start, runtime_folder):
    name = '../a b"%'
    node = start("odd", name=name, path=runtime_folder / "weir" / "%2E.%2Fa%20b%22%25.sock")
    assert node.get("/v1/node")["name"] == name
    assert 'weir_info{node="../a b\\"%",' in node.ask("/metrics")[2].decode()
