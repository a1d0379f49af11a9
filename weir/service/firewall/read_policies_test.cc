#include <weir/service/firewall/read_policies.h>

#include <gtest/gtest.h>

#include <weir/packet/ipv4.h>

namespace weir {
namespace {

Result<std::vector<ReadPolicy>> read(std::string_view text, Names& names) {
  const auto documents = Config::parse_documents(text, "p.yaml");
  return documents ? read_policies(*documents, names) : std::unexpected(documents.error());
}

std::string message(const auto& result) { return result ? "no error" : result.error().message; }

constexpr const char* two_documents = R"(---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: web
  namespace: shop
  labels: {team: a}
  annotations: {note: "any text"}
  uid: 6b1b3f9e
spec:
  podSelector:
    matchLabels: {app: web}
  policyTypes: [Ingress, Egress]
  ingress:
  - from:
    - ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}
    - namespaceSelector: {}
    ports:
    - {protocol: TCP, port: 80}
    - {protocol: UDP, port: 5000, endPort: 6000}
    - port: metrics
  - {}
status: {}
---
# nothing
---
apiVersion: v1
kind: List
items:
- apiVersion: policy.networking.k8s.io/v1alpha1
  kind: AdminNetworkPolicy
  metadata: {name: first}
  spec:
    priority: 7
    subject: {pods: {namespaceSelector: {}, podSelector: {matchLabels: {app: web}}}}
    egress:
    - name: no world
      action: Deny
      to: [{networks: [192.0.2.0/24, "2001:db8::/32"]}]
      ports: [{portRange: {start: 1, end: 9}}, {namedPort: dns}]
)";

TEST(ReadPolicies, AsKubernetesWritesThem) {
  Names names;
  const auto policies = read(two_documents, names);
  ASSERT_TRUE(policies) << message(policies);
  ASSERT_EQ(policies->size(), 2U);
  const Policy& web = *(*policies)[0].policy;
  EXPECT_EQ(web.key, (PolicyKey{PolicyKind::network, "shop", "web"}));
  EXPECT_EQ((*policies)[0].place, "p.yaml:2:1");
  EXPECT_EQ(web.applies, (std::array{true, true}));
  EXPECT_EQ(web.pods, (Selector{{{names.id("app"), Requirement::Operator::in, {names.id("web")}}}}));
  ASSERT_EQ(web.rules_of(Direction::ingress).size(), 2U);
  EXPECT_TRUE(web.rules_of(Direction::egress).empty());
  const PolicyRule& rule = web.rules_of(Direction::ingress)[0];
  EXPECT_EQ((*policies)[0].rule_places[0][0], "p.yaml:15:5");
  ASSERT_EQ(rule.peers.size(), 2U);
  EXPECT_TRUE(rule.peers[0].is_block);
  EXPECT_EQ(rule.peers[0].except[0].to_string(), "10.1.0.0/16");
  EXPECT_FALSE(rule.peers[1].in_namespace) << "any namespace";
  ASSERT_EQ(rule.ports.size(), 3U);
  EXPECT_EQ(rule.ports[0], (PolicyPort{ip_protocol::tcp, 80, 80}));
  EXPECT_EQ(rule.ports[1], (PolicyPort{ip_protocol::udp, 5000, 6000}));
  EXPECT_EQ(rule.ports[2], (PolicyPort{.protocol = ip_protocol::tcp, .name = names.id("metrics")}));
  EXPECT_TRUE(web.rules_of(Direction::ingress)[1].any_peer);
  EXPECT_TRUE(web.rules_of(Direction::ingress)[1].any_port);

  const Policy& first = *(*policies)[1].policy;
  EXPECT_EQ(first.key.to_string(), "AdminNetworkPolicy first");
  EXPECT_EQ(first.priority, 7);
  EXPECT_EQ(first.applies, (std::array{false, true}));
  const PolicyRule& denial = first.rules_of(Direction::egress)[0];
  EXPECT_EQ(denial.effect, Effect::deny);
  EXPECT_EQ(denial.name, "no world");
  ASSERT_EQ(denial.peers.size(), 2U);
  EXPECT_EQ(denial.peers[1].block.to_string(), "2001:db8::/32");
  EXPECT_EQ(denial.ports[0], (PolicyPort{ip_protocol::tcp, 1, 9}));
  EXPECT_EQ(denial.ports[1], (PolicyPort{.protocol = 0, .name = names.id("dns")}));
}

TEST(ReadPolicies, WithoutANamespaceItIsTheDefaultOne) {
  Names names;
  const auto policies = read(
      "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: p}, spec: {podSelector: {}}}", names);
  ASSERT_TRUE(policies) << message(policies);
  EXPECT_EQ((*policies)[0].policy->key.in_namespace, "default");
}

struct Bad {
  const char* description;
  std::string text;
  const char* message;
};

std::string network(const std::string& spec) {
  return "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: p}\nspec: " + spec + "\n";
}
std::string ingress(const std::string& rule) { return network("{podSelector: {}, ingress: [" + rule + "]}"); }
std::string admin(const std::string& spec) {
  return "apiVersion: policy.networking.k8s.io/v1alpha1\nkind: AdminNetworkPolicy\nmetadata: {name: p}\nspec: " + spec +
         "\n";
}
std::string admin_rule(const std::string& rule) {
  return admin("{priority: 1, subject: {namespaces: {}}, egress: [" + rule + "]}");
}

class BadPolicy : public testing::TestWithParam<Bad> {};

TEST_P(BadPolicy, IsExplained) {
  Names names;
  EXPECT_EQ(message(read(GetParam().text, names)), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    ReadPolicies, BadPolicy,
    testing::Values(
        Bad{"no object", "- a\n",
            "p.yaml:1:1: expected a Kubernetes object, a map with apiVersion, kind, metadata and spec, found a list of "
            "1"},
        Bad{"no kind", "a: 1\n", "p.yaml:1:1: expected the kind of an object, such as NetworkPolicy, found nothing"},
        Bad{"another kind", "{kind: NetworkPolice}\n",
            "p.yaml:1:8: a NetworkPolice is no policy; there are AdminNetworkPolicy, NetworkPolicy, "
            "BaselineAdminNetworkPolicy, and List of them, did you mean 'NetworkPolicy'?"},
        Bad{"another version", "{apiVersion: networking.k8s.io/v1beta1, kind: NetworkPolicy, metadata: {name: p}}\n",
            "p.yaml:1:14: expected apiVersion networking.k8s.io/v1 for a NetworkPolicy, found "
            "'networking.k8s.io/v1beta1'"},
        Bad{"a misspelt namespace",
            "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: p, namespcae: x}\nspec: "
            "{podSelector: {}}\n",
            "p.yaml:3:21: unknown key 'namespcae'; allowed: name, namespace, labels, annotations, uid, "
            "resourceVersion, generation, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds, "
            "finalizers, ownerReferences, managedFields, selfLink, generateName; did you mean 'namespace'?"},
        Bad{"no name", "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {}\nspec: {podSelector: {}}\n",
            "p.yaml:3:11: expected the name of a policy, found nothing"},
        Bad{"no spec", "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: p}}\n",
            "p.yaml:1:1: expected the policy's 'spec', a map, found nothing"},
        Bad{"twice", ingress("") + "---\n" + ingress(""),
            "p.yaml:6:1: NetworkPolicy default/p is there twice; the first is at p.yaml:1:1"},
        Bad{"a misspelt key", network("{podSelecter: {}}"),
            "p.yaml:4:8: unknown key 'podSelecter'; allowed: podSelector, policyTypes, ingress, egress; did you mean "
            "'podSelector'?"},
        Bad{"an unknown type", network("{policyTypes: [ingress]}"),
            "p.yaml:4:22: expected one of Ingress, Egress, found 'ingress', did you mean 'Ingress'?"},
        Bad{"two mistakes", network("{policyTypes: [In], podSelector: {matchLabels: {a: -}}}"),
            "p.yaml:4:58: '-' cannot be the value of a label; it is at most 63 letters, digits, '-', '_' and '.'\n"
            "p.yaml:4:22: expected one of Ingress, Egress, found 'In'"},
        Bad{"an operator without values", network("{podSelector: {matchExpressions: [{key: a, operator: In}]}}"),
            "p.yaml:4:41: 'In' and 'NotIn' need values; write values: [a, b]"},
        Bad{"an operator with values too many",
            network("{podSelector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}"),
            "p.yaml:4:76: 'Exists' and 'DoesNotExist' take no values; leave them out"},
        Bad{"an empty rule", ingress("null"), "p.yaml:4:35: an empty rule; write {} for one that allows everything"},
        Bad{"to in a rule of from", ingress("{to: []}"), "p.yaml:4:36: unknown key 'to'; allowed: from, ports"},
        Bad{"an empty peer", ingress("{from: [{}]}"),
            "p.yaml:4:43: a peer without podSelector, namespaceSelector or ipBlock; write namespaceSelector: {} for "
            "all "
            "endpoints"},
        Bad{"a block and a selector", ingress("{from: [{podSelector: {}, ipBlock: {cidr: 10.0.0.0/8}}]}"),
            "p.yaml:4:70: an ipBlock stands alone; give the selectors a peer of their own"},
        Bad{"an address", ingress("{from: [{ipBlock: {cidr: 10.0.0.1}}]}"),
            "p.yaml:4:60: '10.0.0.1' has no length; write 10.0.0.1/32"},
        Bad{"an exception beside the block", ingress("{from: [{ipBlock: {cidr: 10.0.0.0/8, except: [11.0.0.0/16]}}]}"),
            "p.yaml:4:81: 11.0.0.0/16 is no part of 10.0.0.0/8"},
        Bad{"an exception of the whole", ingress("{from: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.0.0.0/8]}}]}"),
            "p.yaml:4:81: 10.0.0.0/8 is no part of 10.0.0.0/8"},
        Bad{"a port of 0", ingress("{ports: [{port: 0}]}"),
            "p.yaml:4:51: expected a whole number from 1 to 65535, found '0'"},
        Bad{"a number in quotes", ingress("{ports: [{port: '80'}]}"),
            "p.yaml:4:51: '80' cannot be the name of a port; it is at most 15 of a-z, 0-9 and '-', with a letter. "
            "Numbers stand without quotes, from 1 to 65535"},
        Bad{"an endPort alone", ingress("{ports: [{endPort: 80}]}"),
            "p.yaml:4:54: an endPort without a port; write port: FIRST, endPort: LAST"},
        Bad{"an endPort behind a name", ingress("{ports: [{port: http, endPort: 80}]}"),
            "p.yaml:4:66: an endPort behind a port's name; a range is of numbers"},
        Bad{"a range backwards", ingress("{ports: [{port: 80, endPort: 79}]}"),
            "p.yaml:4:64: the range ends before it begins: 80 to 79"},
        Bad{"a protocol", ingress("{ports: [{protocol: tcp}]}"),
            "p.yaml:4:55: expected one of TCP, UDP, SCTP, found 'tcp'"},
        Bad{"no priority", admin("{subject: {namespaces: {}}}"),
            "p.yaml:4:7: expected a whole number from 0 to 1000, found nothing"},
        Bad{"no subject", admin("{priority: 1}"),
            "p.yaml:4:7: expected one of 'namespaces' and 'pods' as the subject, found neither; write namespaces: {} "
            "for everyone"},
        Bad{"half of a subject", admin("{priority: 1, subject: {pods: {podSelector: {}}}}"),
            "p.yaml:4:37: 'pods' without a namespaceSelector; write namespaceSelector: {} to select all"},
        Bad{"no action", admin_rule("{to: [{namespaces: {}}]}"),
            "p.yaml:4:57: expected one of Allow, Deny, Pass, found nothing"},
        Bad{"no peers", admin_rule("{action: Deny}"),
            "p.yaml:4:57: a rule without peers; write to: [{namespaces: {}}] for all endpoints"},
        Bad{"nodes", admin_rule("{action: Deny, to: [{nodes: {}}]}"),
            "p.yaml:4:85: weir knows no 'nodes'; name their addresses in 'networks'"},
        Bad{"two ports in one",
            admin_rule("{action: Deny, to: [{namespaces: {}}], ports: [{namedPort: a, portNumber: {port: 1}}]}"),
            "p.yaml:4:104: expected one of 'portNumber', 'portRange' and 'namedPort'"},
        Bad{"a baseline policy of another name",
            "{apiVersion: policy.networking.k8s.io/v1alpha1, kind: BaselineAdminNetworkPolicy, metadata: {name: p}, "
            "spec: {subject: {namespaces: {}}}}\n",
            "p.yaml:1:100: there is one BaselineAdminNetworkPolicy, and its name is 'default', not 'p'"},
        Bad{"Pass in a baseline policy",
            "{apiVersion: policy.networking.k8s.io/v1alpha1, kind: BaselineAdminNetworkPolicy, metadata: {name: "
            "default},"
            " spec: {subject: {namespaces: {}}, egress: [{action: Pass, to: [{namespaces: {}}]}]}}\n",
            "p.yaml:1:162: expected one of Allow, Deny, found 'Pass'"}));

struct Selected {
  const char* selector;
  const char* labels;
  bool selects;
};

class SelectorTable : public testing::TestWithParam<Selected> {};

TEST_P(SelectorTable, Selects) {
  Names names;
  const auto policies = read(network(std::string("{podSelector: ") + GetParam().selector + "}"), names);
  ASSERT_TRUE(policies) << message(policies);
  std::map<std::string, std::string> words;
  const auto labels = Config::parse(GetParam().labels, "l.yaml");
  const auto entries = labels->map();
  for (const auto& [key, name, value] : *entries) {
    words[name] = *value.string();
  }
  EXPECT_EQ((*policies)[0].policy->pods.selects(labels_of(words, names)), GetParam().selects)
      << GetParam().selector << " of " << GetParam().labels;
}

INSTANTIATE_TEST_SUITE_P(
    Selectors, SelectorTable,
    testing::Values(Selected{"{}", "{}", true}, Selected{"{}", "{a: x}", true},
                    Selected{"{matchLabels: {a: x}}", "{a: x, b: y}", true},
                    Selected{"{matchLabels: {a: x}}", "{a: y}", false}, Selected{"{matchLabels: {a: x}}", "{}", false},
                    Selected{"{matchLabels: {a: x, b: y}}", "{a: x}", false},
                    Selected{"{matchLabels: {a: ''}}", "{a: ''}", true},
                    Selected{"{matchLabels: {a: ''}}", "{}", false},
                    Selected{"{matchExpressions: [{key: a, operator: In, values: [x, y]}]}", "{a: y}", true},
                    Selected{"{matchExpressions: [{key: a, operator: In, values: [x, y]}]}", "{a: z}", false},
                    Selected{"{matchExpressions: [{key: a, operator: In, values: [x, y]}]}", "{}", false},
                    Selected{"{matchExpressions: [{key: a, operator: NotIn, values: [x]}]}", "{a: x}", false},
                    Selected{"{matchExpressions: [{key: a, operator: NotIn, values: [x]}]}", "{a: y}", true},
                    Selected{"{matchExpressions: [{key: a, operator: NotIn, values: [x]}]}", "{}", true},
                    Selected{"{matchExpressions: [{key: a, operator: Exists}]}", "{a: ''}", true},
                    Selected{"{matchExpressions: [{key: a, operator: Exists}]}", "{b: x}", false},
                    Selected{"{matchExpressions: [{key: a, operator: DoesNotExist}]}", "{a: x}", false},
                    Selected{"{matchExpressions: [{key: a, operator: DoesNotExist, values: []}]}", "{b: x}", true},
                    Selected{"{matchLabels: {a: x}, matchExpressions: [{key: a, operator: NotIn, values: [x]}]}",
                             "{a: x}", false}));

}  // namespace
}  // namespace weir
