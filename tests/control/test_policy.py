"""Network policies of a running node: by its control socket, and by the commands that ask it."""

import json
import os
import subprocess

import jsonschema
import pytest
from openapi import API
from test_api import check

FILE = """weir: 1
node: {name}
ports:
  web: {{device: "memory:flows=20,rate=2000", labels: {{app: web, namespace: shop}}, addresses: [10.0.0.1/24]}}
  db: {{device: "memory:", labels: {{app: db, namespace: shop}}, addresses: [10.0.0.2/24]}}
  up: {{device: "memory:", role: uplink}}
services: {{firewall: {{policies: [policies.yaml], endpoints: endpoints.yaml}}, l2_switch: {{}}}}
{more}"""

ENDPOINTS = """weir_endpoints: 1
namespaces:
  ops: {team: ops}
endpoints:
  ops/monitor: {labels: {app: monitor}, addresses: [10.0.0.9]}
"""


def network_policy(name, spec, namespace="shop"):
    return (f"---\napiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\n"
            f"metadata: {{name: {name}, namespace: {namespace}}}\nspec: {json.dumps(spec)}\n")


DB = network_policy("db", {"podSelector": {"matchLabels": {"app": "db"}}, "ingress": [
    {"from": [{"podSelector": {"matchLabels": {"app": "web"}}}], "ports": [{"port": 5432}]}]})
SILENT = network_policy("silent", {"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Egress"]})
MONITOR = """---
apiVersion: policy.networking.k8s.io/v1alpha1
kind: AdminNetworkPolicy
metadata: {name: monitor}
spec:
  priority: 10
  subject: {namespaces: {}}
  ingress:
  - {name: ops, action: Allow, from: [{namespaces: {matchLabels: {team: ops}}}]}
"""


@pytest.fixture
def node(start, tmp_path):
    (tmp_path / "policies.yaml").write_text(DB)
    (tmp_path / "endpoints.yaml").write_text(ENDPOINTS)
    return start(text=FILE)


@pytest.fixture
def weir(node, tmp_path):
    """weir(*arguments, status=0) -> what it prints, asking the one node that runs"""
    def run(*arguments, status=0):
        result = subprocess.run([os.environ["WEIR"], *arguments], cwd=tmp_path, capture_output=True, text=True,
                                timeout=60)
        assert result.returncode == status, (result.stdout, result.stderr)
        return result.stdout if status == 0 else result.stderr
    return run


def call(node, name, arguments, schema=None, status=200):
    answer = node.ask(f"/v1/services/firewall/{name}", "POST", body=json.dumps(arguments))
    assert answer[0] == status, answer
    check("/v1/services/{name}/{call}", answer, "post")
    body = json.loads(answer[2])
    if schema:
        jsonschema.validate(body, {"$ref": f"#/components/schemas/{schema}", "components": API["components"]},
                            cls=jsonschema.Draft202012Validator)
    return body


def explain(node, source, to, port=5432, **more):
    return call(node, "explain", {"from": source, "to": to, "port": port, **more}, "PolicyAnswer")


def test_answers_are_as_described(node, tmp_path):
    (tmp_path / "more.yaml").write_text(SILENT + MONITOR)
    files = {"files": [str(tmp_path / "more.yaml")]}
    policies = call(node, "list", {}, "PolicyList")["policies"]
    assert [(each["kind"], each["namespace"], each["name"], each["endpoints"], each["directions"])
            for each in policies] == [("NetworkPolicy", "shop", "db", 1, ["ingress"])]
    endpoints = call(node, "endpoints", {}, "PolicyEndpoints")["endpoints"]
    assert [(each["name"], each["port"], each["policies"]) for each in endpoints] == \
        [("ops/monitor", "", 0), ("shop/db", "db", 1), ("shop/web", "web", 0)]
    shown = call(node, "apply", {**files, "dry_run": True}, "PolicyChanges")
    done = call(node, "apply", files, "PolicyChanges")
    assert (shown["applied"], done["applied"]) == (False, True)
    assert shown["changes"] == done["changes"]
    assert [(each["kind"], each["what"]) for each in done["changes"]] == \
        [("add", "NetworkPolicy shop/silent"), ("add", "AdminNetworkPolicy monitor")]
    assert call(node, "apply", files, "PolicyChanges")["changes"] == []
    removed = call(node, "delete", {"name": "monitor"}, "PolicyChanges")
    assert [(each["kind"], each["what"]) for each in removed["changes"]] == [("remove", "AdminNetworkPolicy monitor")]
    assert node.get("/v1/services/firewall")["state"] == {"policies": 2, "endpoints": 3, "behind_ports": 2}


@pytest.mark.parametrize("name,arguments,message", [
    ("apply", {}, "no files"),
    ("apply", {"files": ["x.yaml"]}, "'x.yaml' is no absolute path"),
    ("apply", {"files": ["/nowhere/x.yaml"]}, "cannot read /nowhere/x.yaml"),
    ("apply", {"files": 1}, "'files' is no list of paths"),
    ("apply", {"file": "/x"}, "unknown argument 'file'; there are: files, dry_run, did you mean 'files'?"),
    ("apply", {"files": ["/x"], "dry_run": 1}, "'dry_run' is true or false"),
    ("delete", {}, "'name' is missing"),
    ("delete", {"name": "shop/dbb"}, "there is no policy 'shop/dbb', did you mean 'shop/db'?"),
    ("explain", {"from": "shop/web"}, "'to' is missing"),
    ("explain", {"from": "shop/web", "to": "shop/d", "port": 1}, "did you mean 'shop/db'?"),
    ("explain", {"from": "shop/web", "to": "shop/db"}, "'port' is missing"),
    ("explain", {"from": "shop/web", "to": "shop/db", "port": 0}, "'port' is a number from 1 to 65535"),
    ("explain", {"from": "shop/web", "to": "shop/db", "protocol": "icmp", "port": 1}, "icmp has no ports"),
    ("explain", {"from": "shop/web", "to": "shop/db", "protocol": "x"}, "'protocol' is one of"),
])
def test_wrong_arguments_are_told(node, name, arguments, message):
    assert message in call(node, name, arguments, status=409)["error"]


def test_explains_and_what_would_change(node, tmp_path):
    allowed = explain(node, "shop/web", "shop/db")
    assert allowed["allowed"]
    assert (allowed["ingress"]["policy"], allowed["ingress"]["rule"]) == ("NetworkPolicy shop/db", 1)
    assert allowed["ingress"]["place"].endswith("policies.yaml:5:67")
    assert explain(node, "10.0.0.1", "10.0.0.2")["allowed"], "by their addresses"
    for source, to, port in [("shop/web", "shop/db", 80), ("ops/monitor", "shop/db", 5432),
                             ("192.0.2.1", "shop/db", 5432)]:
        assert not explain(node, source, to, port)["allowed"]
    assert explain(node, "shop/db", "shop/db", 80)["ingress"]["why"] == "an endpoint always reaches itself"
    assert not call(node, "explain", {"from": "shop/web", "to": "shop/db", "protocol": "icmp"})["allowed"]
    (tmp_path / "monitor.yaml").write_text(MONITOR)
    both = explain(node, "ops/monitor", "shop/db", files=[str(tmp_path / "monitor.yaml")])
    assert (both["allowed"], both["with_files"]["allowed"]) == (False, True)
    assert both["with_files"]["ingress"]["why"] == "rule 1 ('ops') of AdminNetworkPolicy monitor allows it"
    assert len(call(node, "list", {})["policies"]) == 1, "nothing was applied"


def test_a_mistake_in_a_file_changes_nothing(node, weir, tmp_path):
    (tmp_path / "bad.yaml").write_text(SILENT + DB.replace("5432", "70000") + DB.replace("podSelector", "podselector"))
    errors = weir("policy", "apply", "bad.yaml", status=1)
    assert "bad.yaml:10:" in errors and "expected a whole number from 1 to 65535, found '70000'" in errors
    assert "bad.yaml:15:" in errors and "did you mean 'podSelector'?" in errors
    assert len(call(node, "list", {})["policies"]) == 1


def test_commands(node, weir, tmp_path):
    (tmp_path / "more.yaml").write_text(SILENT + MONITOR)
    shown = weir("policy", "apply", "more.yaml", "--dry-run")
    assert shown.splitlines() == ["Would change (--dry-run)",
                                  "  + NetworkPolicy shop/silent: 0 rules for ingress, 0 for egress",
                                  "  + AdminNetworkPolicy monitor: 1 rule for ingress, 0 for egress",
                                  "About 3 endpoints"]
    assert weir("policy", "apply", "more.yaml").splitlines()[0] == "Changed"
    assert weir("policy", "apply", "more.yaml") == "Nothing differs\n"
    assert "monitor" in weir("policy", "list") and "10.0.0.9" in weir("policy", "list", "--endpoints")
    assert weir("policy", "explain", "shop/web", "shop/db", "--port", "5432").startswith("Denied\n")
    assert weir("policy", "delete", "shop/silent").startswith("Changed\n  - NetworkPolicy shop/silent")
    assert weir("policy", "explain", "shop/web", "shop/db", "--port", "5432").startswith("Allowed\n")
    assert json.loads(weir("policy", "list", "--json"))["policies"][0]["kind"] == "AdminNetworkPolicy"
    for command in ("apply", "delete", "list", "explain"):
        assert "Example:" in weir("policy", command, "--help")


def test_policies_hold_at_once(node, weir, tmp_path):
    """What an endpoint sends is dropped from the answer on."""
    (tmp_path / "silent.yaml").write_text(SILENT)

    def denied():
        return {line["reason"]: line["packets"] for line in node.get("/v1/stats")["drops"]}.get("denied_by_policy", 0)

    def sent_by_uplink():
        return node.get("/v1/ports")["ports"][2]["out_packets"]
    while sent_by_uplink() < 20:
        pass
    weir("policy", "apply", "silent.yaml")
    sent, before = sent_by_uplink(), denied()
    while denied() < before + 100:
        pass
    assert sent_by_uplink() == sent
    weir("policy", "delete", "shop/silent")
    while sent_by_uplink() == sent:
        pass


def test_policies_hold_at_once_on_all_workers(start, tmp_path):
    (tmp_path / "policies.yaml").write_text(DB)
    (tmp_path / "endpoints.yaml").write_text(ENDPOINTS)
    (tmp_path / "silent.yaml").write_text(SILENT)
    node = start(text=FILE.replace("rate=2000", "rate=50000"), more="workers: {count: 2}\n")

    def counts():
        ports = {each["name"]: each for each in node.get("/v1/ports")["ports"]}
        return ports["web"]["in_packets"], ports["up"]["out_packets"]
    for _ in range(20):
        call(node, "apply", {"files": [str(tmp_path / "silent.yaml")]})
        came, sent = counts()
        while counts()[0] < came + 500:
            pass
        assert counts()[1] == sent
        call(node, "delete", {"name": "shop/silent"})
        while counts()[1] == sent:
            pass


def test_a_file_counts_when_it_says_something_new(node, weir, tmp_path):
    """What a command did stands until the node's own files say something else about the policy."""
    (tmp_path / "silent.yaml").write_text(SILENT)
    weir("policy", "apply", "silent.yaml")
    weir("policy", "delete", "shop/db")
    names = [each["name"] for each in call(node, "list", {})["policies"]]
    assert names == ["silent"]
    weir("port", "add", "extra", "memory:", "--label", "namespace=shop")
    assert [each["name"] for each in call(node, "list", {})["policies"]] == names
    assert weir("port", "remove", "extra") == ""
    (tmp_path / "policies.yaml").write_text(DB.replace("5432", "5433"))
    assert "~ the policies: 1 changed" in weir("apply", "edge-1.yaml", "--dry-run")
    weir("apply", "edge-1.yaml")
    assert [each["name"] for each in call(node, "list", {})["policies"]] == ["db", "silent"]
    (tmp_path / "policies.yaml").write_text("# none\n")
    weir("apply", "edge-1.yaml")
    assert [each["name"] for each in call(node, "list", {})["policies"]] == ["silent"]


def test_a_new_port_is_guarded_before_its_first_packet(start, tmp_path):
    (tmp_path / "policies.yaml").write_text(SILENT)
    (tmp_path / "endpoints.yaml").write_text(ENDPOINTS)
    node = start(text=FILE)
    port = {"device": "memory:flows=50,rate=200000", "labels": {"namespace": "shop", "app": "web"}}
    answer = node.ask("/v1/ports/late", "PUT", body=json.dumps(port))
    assert answer[0] == 201, answer

    def ports():
        return {each["name"]: each for each in node.get("/v1/ports")["ports"]}
    while ports()["late"]["in_packets"] < 5000:
        pass
    assert [port["out_packets"] for port in ports().values()] == [0, 0, 0, 0]


def test_labels_change_live(node, weir):
    assert not explain(node, "ops/monitor", "shop/db")["allowed"]
    weir("port", "set", "db", "--label", "app=cache", "--label", "namespace=shop")
    assert explain(node, "ops/monitor", "shop/db")["allowed"]


def test_mistakes_in_the_node_files_are_told(node, weir, tmp_path):
    (tmp_path / "endpoints.yaml").write_text(ENDPOINTS.replace("10.0.0.9", "10.0.0.2"))
    assert "10.0.0.2 is the address of endpoint ops/monitor already" in weir("apply", "edge-1.yaml", status=1)
    (tmp_path / "endpoints.yaml").unlink()
    assert "endpoints.yaml" in weir("apply", "edge-1.yaml", status=1)
