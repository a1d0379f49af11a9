"""Running nodes, and clients of their control sockets."""

import http.client
import json
import os
import resource
import signal
import socket
import subprocess
import time

import pytest

# As many connections as a node takes, and more.
SOFT, HARD = resource.getrlimit(resource.RLIMIT_NOFILE)
WANTED = 4096 if HARD == resource.RLIM_INFINITY else min(4096, HARD)
resource.setrlimit(resource.RLIMIT_NOFILE, (max(SOFT, WANTED), HARD))

PATIENCE = 60

FILE = """weir: 1
node: {name}
ports:
  left: {{device: "memory:flows=20,rate=2000", labels: {{app: x}}, addresses: [10.0.0.1/24]}}
  right: {{device: "memory:", role: uplink}}
services: {{acl_firewall: {{rules: acl.yaml, default: allow}}, l2_switch: {{}}}}
{more}"""


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("weir", timeout=PATIENCE)
        self.path = path

    def connect(self):
        self.sock = connect(self.path)


def connect(path):
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(PATIENCE)
    client.connect(str(path))
    return client


class Node:
    """A running weir."""

    def __init__(self, folder, path, file, name, more="", options=(), before=(), text=FILE):
        self.path = path
        (folder / f"{file}.yaml").write_text(text.format(name=json.dumps(name), more=more))
        (folder / "acl.yaml").write_text("- {action: deny, protocol: tcp, dst_port: 23, name: no telnet}\n")
        self.process = subprocess.Popen([*before, os.environ["WEIR"], "run", f"{file}.yaml", "--json", *options],
                                        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ready(self):
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                if self.get("/v1/stats")["rule_cache"]["hit_ratio"] > 0:
                    return self
            except OSError:
                assert self.process.poll() is None, self.process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def ask(self, target, method="GET", **options):
        """(status, headers, body)"""
        connection = Connection(self.path)
        connection.request(method, target, **options)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, response.headers, body

    def get(self, target):
        status, _, body = self.ask(target)
        assert status == 200, body
        return json.loads(body)

    def end(self, number=signal.SIGINT):
        if self.process.poll() is None:
            self.process.send_signal(number)
        output, errors = self.process.communicate(timeout=PATIENCE)
        return output, errors


@pytest.fixture
def start(tmp_path, runtime_folder):
    """start(file, name=the file's, path=where names say, more="", options=(), before=a command that runs it, text=the
    file's, with {{name}} and {{more}}) -> a running Node that has rules"""
    nodes = []

    def run(file="edge-1", path=None, name=None, **options):
        nodes.append(Node(tmp_path, path or runtime_folder / "weir" / f"{file}.sock", file, name or file, **options))
        return nodes[-1].ready()

    yield run
    for node in nodes:
        _, errors = node.end()
        assert node.process.returncode == 0, errors
        assert errors == ""


@pytest.fixture
def node(start):
    return start()


def read_all(client):
    """What comes until the node closes."""
    received = b""
    while True:
        try:
            piece = client.recv(65536)
        except ConnectionResetError:
            return received
        if not piece:
            return received
        received += piece
