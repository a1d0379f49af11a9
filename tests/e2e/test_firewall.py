"""The firewall between network namespaces: kernels' own connections under network policies."""

import json
import os

import pytest

from conftest import check, run
from test_tap import place, transfer

FILE = """
weir: 1
node: {node}
ports:
  web: {{device: "tap:{taps[0]}", labels: {{namespace: shop, app: web}}}}
  db: {{device: "tap:{taps[1]}", labels: {{namespace: shop, app: db}}}}
  other: {{device: "tap:{taps[2]}", labels: {{namespace: shop, app: other}}}}
services:
  firewall: {{policies: [policies.yaml], endpoints: endpoints.yaml}}
  {switch}
chains: [{{name: default, services: [firewall, {switch_name}]}}]
"""

ENDPOINTS = """
weir_endpoints: 1
endpoints:
  shop/web: {port: web, labels: {app: web}, addresses: [10.9.0.1]}
  shop/db: {port: db, labels: {app: db}, addresses: [10.9.0.2], ports: {sql: 7001}}
  shop/other: {port: other, labels: {app: other}, addresses: [10.9.0.3]}
"""

POLICY = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: db, namespace: shop}
spec:
  podSelector: {matchLabels: {app: db}}
  ingress:
  - from: [{podSelector: {matchLabels: {app: web}}}]
    ports: [{port: sql}]
"""

# Answers each line that it gets, until it has not got any for some seconds.
ECHO = """
import socket
listener = socket.create_server(("10.9.0.2", 7001)); print("ready", flush=True)
peer = listener.accept()[0]
while part := peer.recv(65536):
    peer.sendall(part)
"""

TALK = """
import socket, sys
peer = socket.create_connection(("10.9.0.2", 7001), 10)
for line in sys.stdin:
    peer.settimeout(float(line))
    peer.sendall(b"x")
    try:
        print("answered" if peer.recv(1) else "closed", flush=True)
    except TimeoutError:
        print("silence", flush=True)
"""


class Shop:
    def __init__(self, weir, namespace, names, folder, switch="l2_switch: {}"):
        self.name, self.folder = names("fw"), folder
        taps = names("ta"), names("tb"), names("tc")
        (folder / "endpoints.yaml").write_text(ENDPOINTS)
        (folder / "policies.yaml").write_text(POLICY)
        self.node = weir(FILE.format(node=self.name, taps=taps, switch=switch, switch_name=switch.split(":")[0]))
        self.web, self.db, self.other = namespace("a"), namespace("b"), namespace("c")
        for tap, side, address in zip(taps, (self.web, self.db, self.other), "123"):
            place(tap, side, f"10.9.0.{address}/24")

    def policy(self, *arguments):
        return check(os.environ["WEIR"], "policy", *arguments, "--node", self.name, cwd=self.folder)

    def connects(self, side, port):
        client = f'import socket; socket.create_connection(("10.9.0.2", {port}), 1.5)'
        return run("ip", "netns", "exec", side.name, "python3", "-c", client).returncode == 0


@pytest.fixture
def shop(weir, namespace, names, tmp_path):
    return Shop(weir, namespace, names, tmp_path)


def test_what_is_allowed_arrives_whole_and_nothing_else_does(shop):
    assert transfer(shop.web, shop.db, 20_000_000), "allowed, by the name of a port"
    server = shop.db.start("python3", "-c", "import socket, time; a = socket.create_server(('', 8000)); "
                                            "b = socket.create_server(('', 7001)); print('ready', flush=True); "
                                            "time.sleep(60)")
    try:
        assert server.stdout.readline() == "ready\n"
        assert shop.connects(shop.web, 7001)
        assert not shop.connects(shop.web, 8000), "another port"
        assert not shop.connects(shop.other, 7001), "another endpoint"
        assert shop.other.run("ping", "-c", "1", "-W", "1", "10.9.0.2").returncode != 0
        shop.other.check("ping", "-c", "1", "-W", "5", "10.9.0.1")
        shop.db.check("ping", "-c", "1", "-W", "5", "10.9.0.3")  # what it begins itself is answered
    finally:
        server.kill()
        server.wait()
    drops = {drop["reason"]: drop["packets"] for drop in shop.node.stop()["drops"]}
    assert drops["denied_by_policy"] > 0
    assert "stage_error" not in drops


def test_a_policy_ends_a_connection_and_lets_it_go_on(shop):
    server = shop.db.start("python3", "-c", ECHO)
    assert server.stdout.readline() == "ready\n"
    client = shop.web.start("python3", "-c", TALK, stdin=-1)

    def answered(patience=10):
        client.stdin.write(f"{patience}\n")
        client.stdin.flush()
        return client.stdout.readline().strip()
    try:
        assert answered() == "answered"
        (shop.folder / "none.yaml").write_text(POLICY.replace("app: web", "app: nobody"))
        shop.policy("apply", "none.yaml")
        assert answered(1) == "silence"
        assert "Denied" in shop.policy("explain", "shop/web", "shop/db", "--port", "7001")
        shop.policy("apply", "policies.yaml")
        assert answered() == "answered", "the kernel sends again what was lost"
    finally:
        for process in (client, server):
            process.kill()
            process.wait()


WEB = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web, namespace: shop}
spec:
  podSelector: {matchLabels: {app: web}}
  policyTypes: [Ingress, Egress]
  egress:
  - to: [{podSelector: {matchLabels: {app: db}}}]
    ports: [{port: sql}]
"""


@pytest.mark.parametrize("switch", ["l2_switch: {}", "vswitch: {networks: {100: {}}}"])
def test_rules_are_kept_for_both_sides(weir, namespace, names, tmp_path, switch):
    """A rule has room for few dependencies: those of two restricted endpoints and a switch must fit."""
    shop = Shop(weir, namespace, names, tmp_path, switch)
    (tmp_path / "web.yaml").write_text(WEB)
    shop.policy("apply", "web.yaml")
    assert transfer(shop.web, shop.db, 50_000_000)
    summary = shop.node.stop()
    assert summary["rule_cache"]["hit_ratio"] > 0.9, json.dumps(summary["rule_cache"])
