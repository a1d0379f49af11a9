"""Broken, slow, many and malicious clients: the node says what is wrong, stays within its limits, and goes on."""

import contextlib
import json
import os
import random
import socket
import time

import pytest
from conftest import connect, read_all

HOST = b"Host: x\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
LINE = b"GET /v1/node HTTP/1.1\r\n"
GOOD = LINE + HOST + b"\r\n"

BROKEN = [
    ("no HTTP", b"hello world\r\n\r\n", 400),
    ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200), 400),
    ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    ("HTTP/0.9", b"GET /v1/node\r\n\r\n", 400),
    ("no host", LINE + b"\r\n", 400),
    ("two hosts", LINE + HOST + HOST + b"\r\n", 400),
    ("a field without a name", LINE + HOST + b": x\r\n\r\n", 400),
    ("a field with a space", LINE + HOST + b"X Y: z\r\n\r\n", 400),
    ("a zero byte", LINE + HOST + b"X: a\x00b\r\n\r\n", 400),
    ("a length that is no number", LINE + HOST + b"Content-Length: ten\r\n\r\n", 400),
    ("a length below zero", LINE + HOST + b"Content-Length: -1\r\n\r\n", 400),
    ("a length beyond all numbers", LINE + HOST + b"Content-Length: 99999999999999999999999\r\n\r\n", 400),
    ("two lengths", LINE + HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
    ("a length and chunks", LINE + HOST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("a chunk without a length", LINE + HOST + CHUNKED + b"xyz\r\n", 400),
    ("a long line", b"GET /" + b"a" * 20_000, 431),
    ("a long field", LINE + b"X: " + b"a" * 20_000, 431),
    ("many fields", LINE + b"X: y\r\n" * 4_000, 431),
    ("an endless header", LINE + b"X: " + b"a" * 5_000_000, 431),
    ("a long body", LINE + HOST + b"Content-Length: 1048577\r\n\r\n", 413),
    ("an endless body", LINE + HOST + b"Content-Length: 9223372036854775807\r\n\r\n" + b"a" * 5_000_000, 413),
    ("a long body in chunks", LINE + HOST + CHUNKED + (b"8000\r\n" + b"a" * 0x8000 + b"\r\n") * 40, 413),
]


def send_all(client, data):
    """What the node does not want to read is not sent."""
    try:
        client.sendall(data)
    except (BrokenPipeError, ConnectionResetError):
        pass


def responses(data):
    """[(status, body)]"""
    found = []
    while data:
        header, data = data.split(b"\r\n\r\n", 1)
        lines = header.decode().split("\r\n")
        fields = dict(line.split(": ", 1) for line in lines[1:])
        length = int(fields["Content-Length"])
        assert len(data) >= length
        found.append((int(lines[0].split()[1]), data[:length]))
        data = data[length:]
    return found


@pytest.fixture
def calm(node):
    """A node that is to answer as ever at the end."""
    yield node
    assert node.get("/v1/node")["name"] == "edge-1"


@pytest.mark.parametrize("data,status", [(d, s) for _, d, s in BROKEN], ids=[name for name, _, _ in BROKEN])
def test_broken_requests(calm, data, status):
    client = connect(calm.path)
    send_all(client, data)
    (got, body), = responses(read_all(client))  # and then the node has closed
    assert got == status
    assert json.loads(body)["error"] and json.loads(body)["remedy"]


def test_a_body_is_skipped(calm):
    client = connect(calm.path)
    body = b"x" * (1 << 20)
    client.sendall(LINE + HOST + b"Content-Length: 1048576\r\n\r\n" + body +
                   LINE + HOST + CHUNKED + b"3\r\nabc\r\n0\r\n\r\n" + LINE + HOST + b"Connection: close\r\n\r\n")
    assert [status for status, _ in responses(read_all(client))] == [200, 200, 200]


def test_a_client_that_waits_with_its_body(calm):
    client = connect(calm.path)
    client.sendall(LINE + HOST + b"Connection: close\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
    expected = b"HTTP/1.1 100 Continue\r\n\r\n"
    assert client.recv(len(expected)) == expected
    client.sendall(b"ok")
    assert responses(read_all(client))[0][0] == 200


def test_pipelined_requests(calm):
    paths = ["/v1/node", "/v1/none", "/v1/ports", "/v1/rules?limit=1", "/metrics"] * 100
    requests = b"".join(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path.encode() for path in paths)
    client = connect(calm.path)
    for at in range(0, len(requests), 1000):  # borders of sends are not those of requests
        client.sendall(requests[at : at + 1000])
        if at == 1000:
            time.sleep(0.1)
    client.sendall(LINE + HOST + b"Connection: close\r\n\r\n" + GOOD)  # what is behind it is not answered
    got = responses(read_all(client))
    assert [status for status, _ in got] == [404 if path == "/v1/none" else 200 for path in paths] + [200]
    assert "ports" in json.loads(got[2][1]) and "rules" in json.loads(got[3][1])


def test_byte_by_byte(calm):
    client = connect(calm.path)
    for byte in LINE + HOST + b"Connection: close\r\n\r\n":
        client.sendall(bytes([byte]))
    assert responses(read_all(client))[0][0] == 200


def test_a_client_that_stops_in_the_middle(calm):
    client = connect(calm.path)
    client.sendall(LINE)
    (status, body), = responses(read_all(client))
    assert status == 408 and "10000 ms" in json.loads(body)["remedy"]


def test_a_client_that_does_not_read(calm):
    """Its answers wait in the sockets' buffers; then the node stops reading, too."""
    client = connect(calm.path)
    client.setblocking(False)
    sent = 0
    request = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 100
    try:
        while sent < 50_000_000:
            sent += client.send(request)
            calm.get("/v1/node")
    except BlockingIOError:
        pass
    assert sent < 50_000_000


def test_clients_that_go_away(calm):
    for i in range(200):
        client = connect(calm.path)
        client.sendall((GOOD * 50)[: i * 7] if i % 2 else GOOD * 50)
        client.close()


def test_half_closed(calm):
    client = connect(calm.path)
    client.sendall(GOOD)
    client.shutdown(socket.SHUT_WR)
    assert responses(read_all(client))[0][0] == 200


def test_a_thousand_idle_connections(calm):
    idle = [connect(calm.path) for _ in range(1000)]
    for client in idle[::100]:
        client.sendall(GOOD)
        assert client.recv(65536).startswith(b"HTTP/1.1 200 OK\r\n")
    assert calm.get("/v1/node")["name"] == "edge-1"
    for client in idle:
        client.close()


def test_more_connections_than_there_may_be(calm):
    clients = []
    refused = b""
    while not refused and len(clients) < 1100:
        clients.append(connect(calm.path))
        with contextlib.suppress(BrokenPipeError):  # one too many may be refused before it has asked
            clients[-1].sendall(GOOD)
        answer = clients[-1].recv(65536)
        if answer.startswith(b"HTTP/1.1 503 "):
            refused = answer + read_all(clients[-1])
    assert len(clients) == 1025
    (status, body), = responses(refused)
    assert "1024 connections are open" in json.loads(body)["error"]
    for client in clients:
        client.close()
    deadline = time.monotonic() + 60
    status = None
    while status != 200:
        assert time.monotonic() < deadline
        with contextlib.suppress(BrokenPipeError):
            status = calm.ask("/v1/node")[0]


def test_memory_is_bounded(calm):
    """A thousand clients with headers that do not end, and bodies that do not: some 16 KiB each."""
    def resident():
        status = open(f"/proc/{calm.process.pid}/status").read()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) << 10

    before = resident()
    clients = []
    for i in range(1000):
        clients.append(connect(calm.path))
        if i % 2:
            clients[-1].sendall(LINE + b"X: " + b"a" * 16_000)
        else:
            clients[-1].sendall(LINE + HOST + b"Content-Length: 1048576\r\n\r\n" + b"a" * 100_000)
    assert calm.get("/v1/node")["name"] == "edge-1"
    assert resident() - before < 150 << 20  # ThreadSanitizer takes several times what it watches
    for client in clients:
        client.close()


SEED = int(os.environ.get("WEIR_SEED", random.randrange(1 << 32)))


def test_random_bytes(calm):
    print(f"WEIR_SEED={SEED}")
    source = random.Random(SEED)
    for _ in range(300):
        kind = source.randrange(3)
        if kind == 0:
            data = source.randbytes(source.randrange(3000))
        else:
            data = bytearray(GOOD * source.randrange(1, 5))
            for _ in range(source.randrange(1, 6)):
                data[source.randrange(len(data))] = source.randrange(256)
            if kind == 2:
                del data[source.randrange(len(data)) :]
        client = connect(calm.path)
        send_all(client, bytes(data))
        if source.randrange(2):
            client.setblocking(False)
            try:
                client.recv(65536)
            except (BlockingIOError, ConnectionResetError):
                pass
        client.close()
