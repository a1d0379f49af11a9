"""The answers of a running node: as docs/openapi.yaml describes them, and true."""

import json
import pathlib
import re
import time

import jsonschema
import pytest
import yaml
from conftest import Connection, connect

API = yaml.safe_load((pathlib.Path(__file__).parents[2] / "docs" / "openapi.yaml").read_text())


def schema_of(response, media):
    return {**response["content"][media]["schema"], "components": API["components"]}


def real(path):
    return path.replace("{name}", "l2_switch" if "services" in path else "left")


def check(path, answer, method="get"):
    status, headers, body = answer
    response = API["paths"][path][method]["responses"][str(status)]
    if "$ref" in response:
        response = API["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
    media = headers["Content-Type"].split(";")[0]
    if media == "application/json":
        jsonschema.Draft202012Validator(schema_of(response, media)).validate(json.loads(body))
    else:
        assert media in response["content"]


def test_the_description_is_one():
    assert API["openapi"].startswith("3.1")
    for schema in API["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


JSON_PATHS = [path for path, what in API["paths"].items()
              if "get" in what and path not in ("/metrics", "/v1/watch/stats")]


@pytest.mark.parametrize("path", JSON_PATHS)
def test_answers_are_as_described(node, path):
    answer = node.ask(real(path))
    assert answer[0] == 200
    check(path, answer)


def test_every_path_is_described(node):
    status, _, body = node.ask("/")
    assert status == 404
    assert sorted(re.findall(r"/[\w/{}]+", json.loads(body)["remedy"])) == sorted(API["paths"])


def test_node(node):
    answer = node.get("/v1/node")
    assert (answer["name"], answer["version"], answer["engine"], answer["workers"]) == ("edge-1", "0.1.0", "core", 1)
    assert answer["process"] == node.process.pid
    assert 0 < answer["uptime_ns"] <= node.get("/v1/node")["uptime_ns"]


def test_ports(node):
    left, right = node.get("/v1/ports")["ports"]
    assert (left["name"], left["role"], left["up"], left["labels"], left["addresses"]) == \
        ("left", "host", True, {"app": "x"}, ["10.0.0.1/24"])
    assert (right["name"], right["role"], right["labels"], right["addresses"]) == ("right", "uplink", {}, [])
    assert left["in_packets"] > 0 and right["out_packets"] > 0


def test_stages_and_stats_say_the_same(node):
    stages = [stage["name"] for stage in node.get("/v1/stages")["stages"]]
    stats = node.get("/v1/stats")
    assert stages == [stage["name"] for stage in stats["stages"]] == \
        ["chains", "acl_firewall", "l2_switch", "behind acl_firewall"]
    assert [table["name"] for table in stats["tables"]] == ["macs"]
    later = node.get("/v1/stats")
    assert later["packets"]["in"] >= stats["packets"]["in"] and later["wall_ns"] > stats["wall_ns"]


def test_rules(node):
    answer = node.get("/v1/rules")
    assert answer["total"] == len(answer["rules"]) >= 1
    assert "flood" in answer["rules"][0]["actions"]
    assert len(node.get("/v1/rules?limit=1")["rules"]) == 1


@pytest.mark.parametrize("target,status,problem", [
    ("/v1/port", 404, "there is no '/v1/port', did you mean '/v1/ports'?"),
    ("/v1/ports/", 404, "there is no '/v1/ports/', did you mean '/v1/ports'?"),
    ("/v1/ports/lef", 404, "there is no port 'lef'"),
    ("/v1/ports/%zz", 404, "there is no '/v1/ports/%zz'"),
    ("/v1/services/lef", 404, "there is no service 'lef'"),
    ("/v1/ports/left?x", 400, "'?x' behind a path that takes no parameters"),
    ("/v1/ports?limit=3", 400, "'?limit=3' behind a path that takes no parameters"),
    ("/v1/rules?limt=3", 400, "'?limt=3' is not the parameter 'limit'"),
    ("/v1/rules?limit=0", 400, "'0' is no whole number from 1 to 100000"),
    ("/v1/rules?limit=100001", 400, "'100001' is no whole number"),
    ("/v1/rules?limit=1x", 400, "'1x' is no whole number"),
    ("/v1/rules?limit=99999999999999999999999", 400, "is no whole number"),
    ("/v1/watch/stats?interval=99", 400, "'99' is no whole number from 100 to 60000"),
])
def test_mistakes(node, target, status, problem):
    answer = node.ask(target)
    assert answer[0] == status
    json_answer = json.loads(answer[2])
    assert problem in json_answer["error"] and json_answer["remedy"]
    if target.split("?")[0] in API["paths"]:
        check(target.split("?")[0], answer)


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "PATCH", "OPTIONS", "BREW"])
def test_other_methods(node, method):
    status, headers, body = node.ask("/v1/ports", method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")
    assert json.loads(body)["error"] == f"{method} of '/v1/ports'"


def test_a_port_goes_down_and_up(node):
    path = "/v1/ports/{name}"

    def put(body):
        answer = node.ask("/v1/ports/l%65ft", "PUT", body=json.dumps(body))
        assert answer[0] == 200, answer
        check(path, answer, "put")
        return json.loads(answer[2])

    down = put({"up": False})
    assert (down["name"], down["up"]) == ("left", False)
    taken = node.get("/v1/ports/left")["in_packets"]
    assert node.get("/v1/node") and node.get("/v1/ports/left")["in_packets"] == taken == down["in_packets"]
    assert put({"up": True})["up"] is True
    deadline = time.monotonic() + 60
    while node.get("/v1/ports/left")["in_packets"] == taken:
        assert time.monotonic() < deadline


def test_what_is_sent_to_a_port_that_is_down_is_dropped(node):
    assert node.ask("/v1/ports/right", "PUT", body='{"up": false}')[0] == 200
    deadline = time.monotonic() + 60
    while "port_down" not in [drop["reason"] for drop in node.get("/v1/stats")["drops"]]:
        assert time.monotonic() < deadline


@pytest.mark.parametrize("body,status", [
    ("", 400), ("{}", 400), ("[]", 400), ("true", 400), ('{"up": 1}', 400), ('{"up": true, "x": 1}', 400), ("{", 400),
    ("\xff", 400), ('{"up": true}\0', 400), ("[" * 4000, 400), (" " * 16_385, 413), ('{"up": true}' + " " * 100_000, 413)],
    ids=lambda value: str(value)[:20])
def test_a_body_that_is_no_state(node, body, status):
    answer = node.ask("/v1/ports/left", "PUT", body=body)
    assert answer[0] == status
    check("/v1/ports/{name}", answer, "put")
    assert json.loads(answer[2])["remedy"].startswith("send ")
    assert node.get("/v1/ports/left")["up"] is True


def test_other_methods_of_a_port(node):
    status, headers, _ = node.ask("/v1/ports/left", "POST")
    assert (status, headers["Allow"]) == (405, "GET, HEAD, PUT, DELETE")


@pytest.mark.parametrize("path", [*API["paths"], "/none"])
def test_head(node, path):
    connection = Connection(node.path)
    connection.request("HEAD", real(path))
    response = connection.getresponse()
    assert response.status == (404 if path == "/none" else 200 if "get" in API["paths"][path] else 405)
    assert response.read() == b""
    if path != "/v1/watch/stats":
        assert int(response.headers["Content-Length"]) > 0
        connection.request("GET", "/v1/node")  # the next answer begins where it should
        assert json.loads(connection.getresponse().read())["name"] == "edge-1"


def test_a_connection_serves_many_requests(node):
    connection = Connection(node.path)
    connection.connect()
    first = connection.sock
    for _ in range(100):
        connection.request("GET", "/v1/node")
        assert connection.getresponse().read()
        assert connection.sock is first


@pytest.mark.parametrize("request_line,fields,stays", [
    ("HTTP/1.1", "", True), ("HTTP/1.1", "Connection: close\r\n", False),
    ("HTTP/1.0", "", False), ("HTTP/1.0", "Connection: keep-alive\r\n", True)])
def test_keep_alive(node, request_line, fields, stays):
    client = connect(node.path)
    request = f"GET /v1/node {request_line}\r\nHost: x\r\n{fields}\r\n".encode()
    client.sendall(request)
    received = b""
    while b"}\n" not in received:
        piece = client.recv(65536)
        assert piece
        received += piece
    if stays:
        client.sendall(request)
        assert client.recv(65536)
    else:
        assert client.recv(65536) == b""


def events(client):
    """The data of the events that come, as they come."""
    received = b""
    while True:
        piece = client.recv(65536)
        assert piece
        received += piece
        while b"\n\n" in received:
            event, received = received.split(b"\n\n", 1)
            lines = event.decode().split("\n")
            assert lines[0] == "event: stats" and lines[1].startswith("data: ") and len(lines) == 2
            yield json.loads(lines[1].removeprefix("data: "))


def test_events(node):
    client = connect(node.path)
    client.sendall(b"GET /v1/watch/stats?interval=100 HTTP/1.1\r\nHost: x\r\n\r\n")
    header = b""
    while not header.endswith(b"\r\n\r\n"):
        header += client.recv(1)
    assert header.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Content-Type: text/event-stream\r\n" in header and b"Content-Length" not in header
    stream = events(client)
    seen = [next(stream) for _ in range(5)]
    schema = schema_of(API["paths"]["/v1/stats"]["get"]["responses"]["200"], "application/json")
    for event in seen:
        jsonschema.Draft202012Validator(schema).validate(event)
    times = [event["wall_ns"] for event in seen]
    assert all(later - earlier >= 90e6 for earlier, later in zip(times, times[1:]))


def test_watchers_end_with_the_node(node):
    client = connect(node.path)
    client.sendall(b"GET /v1/watch/stats?interval=60000 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert client.recv(1)
    node.end()
    while client.recv(65536):
        pass


SAMPLE = re.compile(r'([a-z_]+)\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\} ([0-9.e+-]+)')


def metrics(text):
    """{metric: {labels: value}}; fails on what is not in the format."""
    found, kind, name = {}, None, None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split()[2]
            assert name not in found and len(line.split(maxsplit=3)) == 4
            found[name] = {}
        elif line.startswith("# TYPE "):
            assert line.split()[2] == name
            kind = line.split()[3]
            assert kind in ("counter", "gauge") and (kind == "counter") == name.endswith("_total")
        else:
            match = SAMPLE.fullmatch(line)
            assert match and match[1] == name, line
            assert match[2] not in found[name]
            found[name][match[2]] = float(match[3])
    assert text.endswith("\n")
    return found


def test_metrics(node):
    before = node.get("/v1/stats")
    status, headers, body = node.ask("/metrics")
    assert (status, headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    found = metrics(body.decode())
    assert found["weir_info"] == {'node="edge-1",version="0.1.0"': 1}
    for i, port in enumerate(("left", "right")):
        for count in ("in_packets", "in_bytes", "out_packets", "out_bytes"):
            assert found[f"weir_port_{count}_total"][f'node="edge-1",port="{port}"'] >= before["ports"][i][count]
    assert 'node="edge-1",stage="l2_switch"' in found["weir_stage_packets_total"]
    assert sum(found["weir_rule_cache_hits_total"].values()) > 0
    assert 'node="edge-1",worker="0"' in found["weir_worker_cpu_seconds_total"]
    assert 'node="edge-1",counter="no telnet"' in found["weir_counter_packets_total"]


def test_a_node_that_counts_goes_on_while_it_is_asked(node):
    before = node.get("/v1/stats")["packets"]["in"]
    deadline = time.monotonic() + 60
    while node.get("/v1/stats")["packets"]["in"] == before:
        assert time.monotonic() < deadline
