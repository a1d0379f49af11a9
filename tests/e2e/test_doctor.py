"""weir doctor: what it says of real interfaces, and what it makes of what a killed node has left."""

import json
import subprocess

import pytest
from xdp_network import Weir, network, switched, until  # two of them are fixtures


def doctor(network, *arguments, status=0):
    process = network.start_weir("switch", "doctor", "--json", *arguments, stdout=subprocess.PIPE, text=True)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == status, output
    return json.loads(output)


def found(answer, subject):
    return [finding["found"] for finding in answer["findings"] if finding["subject"] == subject]


def test_what_a_killed_node_left_is_repaired(network, switched, tmp_path):
    switched.connect("alice")
    switched.connect("bob")
    hosts = ("alice", "bob")
    before = {host: network.offloads(host, "eth0") for host in hosts}
    weir = switched.run(more="node: killed\ncontrol: /run/weir/killed.sock\n").up()
    file = tmp_path / "node.yaml"

    # While it runs, nothing of it is left behind, and its interfaces and its socket are taken.
    running = doctor(network, "--repair", file, status=1)
    assert running["repair"] == {"done": [], "failed": []}
    assert found(running, "left behind") == ["nothing, by nodes that were killed"]
    assert f"of weir (process {weir.process.pid})" in found(running, "port 'alice'")[1]
    assert "a running node has it" in found(running, "control socket")[0]
    assert {host: network.offloads(host, "eth0") for host in hosts} != before

    weir.kill()
    until(lambda: not network.link("switch", "port-alice").get("xdp"), "its program has gone")
    left = doctor(network, file)  # nothing that would stop a node
    assert sorted(found(left, "left behind")) == [
        "offload settings of eth0 were left changed by a process that was killed",
        "offload settings of eth0 were left changed by a process that was killed",
        "the control socket /run/weir/killed.sock of a node that was killed"]
    assert {finding["remedy"] for finding in left["findings"] if finding["subject"] == "left behind"} == {
        "weir doctor --repair"}
    assert {host: network.offloads(host, "eth0") for host in hosts} != before

    repair = doctor(network, "--repair")["repair"]
    assert len(repair["done"]) == 3 and repair["failed"] == []
    assert {host: network.offloads(host, "eth0") for host in hosts} == before
    assert not network.offload_records() and not (network.state / "killed.sock").exists()
    assert doctor(network, "--repair")["repair"] == {"done": [], "failed": []}
    assert {host: network.offloads(host, "eth0") for host in hosts} == before


def test_what_cannot_be_repaired_is_said(network, switched):
    weir = switched().up()
    weir.kill()
    # Without the right to change settings.
    process = network.start_weir("switch", "doctor", "--repair", stdout=subprocess.PIPE, text=True,
                                 before=["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"])
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert output.count("failed   offload settings of eth0 are not as they were found") == 2
    assert len(network.offload_records()) == 2


@pytest.mark.parametrize("said", ["program", "queues", "far end", "mtu"])
def test_what_stands_in_the_way_of_a_port(network, switched, tmp_path, said):
    switched.connect("alice", "numrxqueues", "4", "numtxqueues", "4")
    file = tmp_path / "node.yaml"
    file.write_text('weir: 1\nports: {a: "xdp:port-alice"}\nservices: {l2_switch: {}}\n' +
                    ("frames: 512\n" if said == "queues" else ""))
    if said == "program":
        other = tmp_path / "other"
        other.mkdir()
        Weir(network, "switch", other, {"x": "xdp:port-alice"}).up()
    elif said == "mtu":
        network.on("alice", "ip", "link", "set", "eth0", "mtu", "2000")
    answer = doctor(network, file, status=1 if said in ("program", "queues") else 0)
    words = {"program": "port-alice is used by XDP program", "queues": "4 queues, which need 1024 frames",
             "far end": "set at its far end eth0 while the port is open: tx-checksum-ip-generic off",
             "mtu": "port-alice has MTU 1500, and its far end eth0 2000"}[said]
    assert any(words in text for text in found(answer, "port 'a'")), answer
