"""Requests made up from docs/openapi.yaml, many of them broken: the node answers each as described, and stays well.

WEIR_FUZZ_REQUESTS says how many, WEIR_SEED which."""

import contextlib
import http.client
import json
import os
import random
import shutil
import socket
import time

from conftest import connect
from openapi import API, check_answer, operations
from random_requests import Generator

SEED = int(os.environ.get("WEIR_SEED", random.randrange(1 << 32)))
REQUESTS = int(os.environ.get("WEIR_FUZZ_REQUESTS", 1500))
STAYS = "stays"
ERROR = {"$ref": "#/components/responses/Error"}
# What a request may be answered that is not as the description has it; it may be another good one by accident.
REFUSALS = {400, 404, 405, 408, 413, 431, 503} | {int(status) for _, _, operation in operations()
                                                  for status in operation["responses"]}


def resident(node):
    """Bytes of the node's memory."""
    status = open(f"/proc/{node.process.pid}/status").read()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) << 10


def names_in(json_value):
    """All that is called name."""
    if isinstance(json_value, dict):
        own = [json_value["name"]] if isinstance(json_value.get("name"), str) else []
        return own + [name for value in json_value.values() for name in names_in(value)]
    return [name for value in json_value for name in names_in(value)] if isinstance(json_value, list) else []


def receive(client, method):
    """(status, type, body); of events only the first. None if the node closed without an answer."""
    response = http.client.HTTPResponse(client, method=method)
    try:
        response.begin()
    except (http.client.BadStatusLine, ConnectionResetError):
        return None
    media = response.getheader("Content-Type", "")
    if media.startswith("text/event-stream") and method != "HEAD":
        return response.status, media, response.read1(1)
    return response.status, media, response.read()


def exchange(node, request):
    client = connect(node.path)
    try:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.sendall(request.data)  # what the node does not want to read is not sent
        if request.path is None:
            client.shutdown(socket.SHUT_WR)  # of a broken header, the node may wait for the rest
        return receive(client, request.method)
    except OSError as failure:
        assert isinstance(failure, (ConnectionResetError, BrokenPipeError)) or failure.errno == 107, failure
        return None
    finally:
        client.close()


def check(request, answer):
    if answer is None:
        assert request.path is None, "only a broken request may get no answer"
        return
    status, media, body = answer
    if request.path is None or request.large:
        if status >= 400 and request.method != "HEAD" and body:
            check_answer(ERROR, media, body)
        assert status in REFUSALS
        return
    operation = API["paths"][request.path]["get" if request.method == "HEAD" else request.method.lower()]
    assert str(status) in operation["responses"], "the description has no such status"
    if request.wrong_body:
        assert status >= 400, "the body is not as described"
    if request.method == "HEAD":
        assert body == b""
    elif not media.startswith("text/event-stream"):
        check_answer(operation["responses"][str(status)], media, body)


def fuzz(node, source, count):
    """The statuses that came back, and how often."""
    names = ["left", "right"]
    generator = Generator(source, names)
    seen = {}
    for number in range(count):
        request = generator.next()
        try:
            answer = exchange(node, request)
            check(request, answer)
        except Exception as wrong:
            time.sleep(0.5)
            ended = node.process.poll()
            said = node.process.stderr.read() if ended is not None else ""
            wrong.add_note(f"WEIR_SEED={SEED}, request {number}: {request}\nthe node ended: {ended} {said}")
            raise
        status = answer and answer[0]
        seen[status] = seen.get(status, 0) + 1
        if answer and answer[0] == 200 and answer[1] == "application/json" and request.method == "GET":
            names[2:] = sorted({*names[2:], *names_in(json.loads(answer[2]))} - {STAYS})[:50]
    return seen


def test_random_requests_among_idle_and_slow_clients(start):
    print(f"WEIR_SEED={SEED}")
    source = random.Random(SEED)
    # In a network namespace of its own: ports may be asked for that would make interfaces.
    before = ["unshare", "--net"] if os.geteuid() == 0 and shutil.which("unshare") else []
    node = start(before=before)
    # A node without input ends: one port is named in no request.
    assert node.ask(f"/v1/ports/{STAYS}", "PUT", body='{"device": "memory:rate=100,flows=2"}')[0] == 201
    idle = [connect(node.path) for _ in range(950)]
    slow = [(connect(node.path), bytearray(b"PUT /v1/ports/left HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"))
            for _ in range(30)]
    rounds = 10
    fuzz(node, source, REQUESTS // rounds)  # whatever is made once has been made
    at_first = resident(node)
    for _ in range(rounds - 1):
        for client, rest in slow:  # a few bytes at a time
            with contextlib.suppress(OSError):
                client.send(rest[:7] or b"x")
                del rest[:7]
        seen = fuzz(node, source, REQUESTS // rounds)
        assert seen.get(200, 0) and seen.get(400, 0)
    grown = resident(node) - at_first
    print(f"{REQUESTS} requests, {grown >> 10} KiB more than after the first tenth")
    assert grown < 16 << 20
    assert node.process.poll() is None
    for client in [*idle, *(client for client, _ in slow)]:
        client.close()
    assert node.get("/v1/node")["name"] == "edge-1"
