"""Changes of a running node: by its control socket, and by the commands that ask it."""

import json
import os
import subprocess

import pytest
from test_api import check

TELNET = ("020000000003020000000002080045000028000100004006" "66310a4d00020a4d0003"
          "9c400017000000000000000050022000deec0000")


@pytest.fixture
def weir(node, tmp_path, runtime_folder):
    """weir(*arguments, status=0) -> what it prints, asking the one node that runs"""
    def run(*arguments, status=0):
        result = subprocess.run([os.environ["WEIR"], *arguments], cwd=tmp_path, capture_output=True, text=True,
                                timeout=60)
        assert result.returncode == status, (result.stdout, result.stderr)
        return result.stdout if status == 0 else result.stderr
    return run


def send(node, method, path, body=None, status=200, template=None):
    answer = node.ask(path, method, body=None if body is None else json.dumps(body))
    assert answer[0] == status, answer
    check(template or path, answer, method.lower())
    return json.loads(answer[2])


def test_a_port_is_added_changed_and_removed(node):
    path, template = "/v1/ports/n%20ew", "/v1/ports/{name}"
    made = send(node, "PUT", path, {"device": "memory:", "labels": {"app": "x"}}, 201, template)
    assert (made["name"], made["device"], made["up"], made["labels"]) == ("n ew", "memory:", True, {"app": "x"})
    assert node.get("/v1/node")["revision"] == 1
    changed = send(node, "PUT", path, {"labels": {}, "role": "uplink", "addresses": ["10.0.0.9/24"], "up": False},
                   template=template)
    assert (changed["labels"], changed["role"], changed["addresses"], changed["up"]) == \
        ({}, "uplink", ["10.0.0.9/24"], False)
    removed = send(node, "DELETE", path, template=template)
    assert [(change["kind"], change["what"]) for change in removed["changes"]] == [("remove", "port n ew")]
    assert node.ask(path)[0] == 404
    assert [port["name"] for port in node.get("/v1/ports")["ports"]] == ["left", "right"]


@pytest.mark.parametrize("path,body,status", [
    ("new", {"labels": {}}, 404), ("new", {"device": "memry:"}, 400), ("new", {"device": 1}, 400),
    ("new", {"device": "memory:", "role": "x"}, 400), ("new", {"device": "memory:", "labels": {"a": [1]}}, 400), ("new", {"device": "memory:", "labels": 1}, 400),
    ("new", {"device": "memory:", "addresses": ["x"]}, 400), ("new", {"device": "memory:", "addresses": [1]}, 400),
    ("new", {"device": "pcap:,out=/nowhere/x"}, 409), ("new", {"device": "memory:", "more": 1}, 400),
    ("new", {"device": "memory:", "mac": "03:00:00:00:00:01"}, 400), ("new", {"device": "memory:", "mtu": 67}, 400),
    ("left", {"device": "memory:count"}, 400), ("new", {"device": "pcap:x.pcap"}, 409)])
def test_a_refused_port_changes_nothing(node, path, body, status):
    send(node, "PUT", f"/v1/ports/{path}", body, status, "/v1/ports/{name}")
    assert node.get("/v1/node")["revision"] == 0
    assert [port["name"] for port in node.get("/v1/ports")["ports"]] == ["left", "right"]


def test_two_ports_cannot_share_what_one_must_have_alone(node):
    template = "/v1/ports/{name}"
    send(node, "PUT", "/v1/ports/one", {"device": "pcap:,out=out.pcap"}, 201, template)
    answer = send(node, "PUT", "/v1/ports/two", {"device": "pcap:,out=out.pcap"}, 409, template)
    assert "out.pcap is used by port 'one' already" in answer["error"]


def test_apply_shows_then_does_then_has_nothing_to_do(node, weir, tmp_path):
    file = tmp_path / "edge-1.yaml"
    assert weir("apply", "edge-1.yaml") == "Nothing differs; the node is what the file says\n"
    text = file.read_text().replace("role: uplink", "labels: {app: y}").replace("default: allow", "default: deny")
    file.write_text(text + "chains:\n- {name: open, selector: {app: y}, services: [l2_switch]}\n"
                           "- {name: default, services: [acl_firewall, l2_switch]}\n")
    with (tmp_path / "acl.yaml").open("a") as rules:
        rules.write("- {action: allow, protocol: udp, name: UDP}\n")
    lines = ["  ~ port right: role: uplink -> host; labels: none -> app=y",
             "  ~ service acl_firewall: default: allow -> deny",
             "  + chain open: l2_switch for app=y",
             "  ~ acl: 1 added",
             "  ~ the default of acl: 1 changed"]
    assert weir("apply", "edge-1.yaml", "--dry-run").splitlines() == ["Would change (--dry-run)", *lines]
    assert node.get("/v1/node")["revision"] == 0
    assert weir("apply", "edge-1.yaml").splitlines() == ["Changed", *lines]
    assert node.get("/v1/node")["revision"] == 1
    assert [(chain["name"], chain["ports"]) for chain in node.get("/v1/chains")["chains"]] == \
        [("open", ["right"]), ("default", ["left"])]
    answer = json.loads(weir("apply", "edge-1.yaml", "--json"))
    assert answer == {"changes": [], "applied": True, "revision": 1}


@pytest.mark.parametrize("old,new,problem", [
    ("weir: 1", "weir: 2", "schema version '2'"),
    ("rate=2000", "rat=2000", "did you mean 'rate'"),
    ("services: {", "services: {no_such: {}, ", "unknown service 'no_such'"),
    ("services: {", "services: {payload_scan: {patterns: [x]}, ", "cannot be added while the node runs"),
    ("l2_switch: {}", "l2_switch: {macs: 100}", "'macs' of l2_switch cannot change while the node runs"),
    ("acl.yaml", "none.yaml", "none.yaml"),
])
def test_a_file_that_cannot_be_applied_changes_nothing(node, weir, tmp_path, old, new, problem):
    file = tmp_path / "edge-1.yaml"
    file.write_text(file.read_text().replace(old, new).replace("role: uplink", "role: host"))
    assert problem in weir("apply", "edge-1.yaml", status=1)
    assert node.get("/v1/node")["revision"] == 0
    assert node.get("/v1/ports/right")["role"] == "uplink"


@pytest.mark.parametrize("body,status", [
    ({}, 400), ({"file": 1}, 400), ({"file": "x.yaml"}, 400), ({"file": "/x", "dry": True}, 400),
    ({"file": "/x", "dry_run": 1}, 400), ({"file": "/x", "revision": -1}, 400), ({"file": "/x", "revision": 1}, 409),
    ({"file": "/nowhere/x.yaml"}, 409), ({"file": "/" + "x" * 5000}, 409), ({"file": "/dev/null"}, 409)])
def test_bad_requests_to_apply(node, body, status):
    send(node, "POST", "/v1/apply", body, status)


def test_a_revision_that_is_right_is_taken(node, tmp_path):
    body = {"file": str(tmp_path / "edge-1.yaml"), "revision": 0, "dry_run": True}
    assert send(node, "POST", "/v1/apply", body) == {"changes": [], "applied": False, "revision": 0}


def test_a_rule_changes_while_packets_run(node, weir, tmp_path):
    def telnet():
        return json.loads(weir("trace", "--port", "left", "--packet", TELNET, "--json"))
    assert telnet()["drops"] == ["denied_by_rule: a rule of the firewall denies it"]
    (tmp_path / "acl.yaml").write_text("- {action: allow, protocol: tcp, dst_port: 23, name: telnet}\n")
    weir("apply", "edge-1.yaml")
    assert (telnet()["drops"], telnet()["outputs"]) == ([], ["right: 54 bytes"])


def test_a_trace_changes_nothing(node, weir):
    macs = {table["name"]: table["size"] if "size" in table else table["entries"]
            for table in node.get("/v1/stats")["tables"]}
    text = weir("trace", "--port", "right", "--packet", TELNET.replace("0017", "0050"))
    assert "learns 02:00:00:00:00:02 is right in 'macs': added" in text
    assert "out by left: 54 bytes" in text
    assert {table["name"]: table["size"] if "size" in table else table["entries"]
            for table in node.get("/v1/stats")["tables"]} == macs
    assert not [counter for counter in node.get("/v1/stats")["counters"] if counter["packets"]]


def test_a_trace_names_the_cached_rule(node, weir):
    rule = node.get("/v1/rules")["rules"][0]
    # As the generator of the left port makes them.
    packet = node.ask("/v1/trace", "POST", body=json.dumps({"port": "left", "packet": TELNET}))
    check("/v1/trace", packet, "post")
    assert rule["packets"] > 0


@pytest.mark.parametrize("body,status", [
    ({}, 400), ({"port": "left"}, 400), ({"port": "left", "packet": "0"}, 400), ({"port": "left", "packet": "xx"}, 400),
    ({"port": "none", "packet": "00"}, 404), ({"port": "left", "packet": ""}, 400), ({"port": 1, "packet": "00"}, 400),
    ({"port": "left", "packet": "00", "x": 1}, 400)])
def test_bad_requests_to_trace(node, body, status):
    send(node, "POST", "/v1/trace", body, status)


@pytest.mark.parametrize("packet", ["00", "ff" * 14, "ff" * 8000])
def test_any_bytes_can_be_traced(node, packet):
    send(node, "POST", "/v1/trace", {"port": "left", "packet": packet})


def test_ports_by_command(node, weir):
    weir("port", "add", "third", "memory:", "--label", "app=z", "--address", "10.0.0.3/24")
    assert node.get("/v1/ports/third")["labels"] == {"app": "z"}
    weir("port", "set", "third", "--state", "down", "--role", "uplink", "--mac", "02:00:00:00:00:33", "--mtu", "9000")
    port = node.get("/v1/ports/third")
    assert (port["up"], port["role"], port["labels"], port["mac"], port["mtu"]) == \
        (False, "uplink", {"app": "z"}, "02:00:00:00:00:33", 9000)
    weir("port", "remove", "third")
    assert "there is no port 'third'" in weir("port", "remove", "third", status=1)
    assert "'x' is no label" in weir("port", "set", "left", "--label", "x", status=2)


def test_services_and_calls(node, weir):
    names = [service["name"] for service in node.get("/v1/services")["services"]]
    assert names == ["acl_firewall", "l2_switch"]
    assert "a learning switch" in weir("show", "services")
    send(node, "POST", "/v1/services/l2_switch/none", {}, 404, "/v1/services/{name}/{call}")
    send(node, "POST", "/v1/services/none/none", {}, 404, "/v1/services/{name}/{call}")
