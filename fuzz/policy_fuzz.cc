// Network policies and endpoints: any text gives some, or errors that say where, never a crash. What can be read is
// decided by, for endpoints that the policies may be about.

#include <cstdlib>

#include <weir/packet/ipv4.h>
#include <weir/service/firewall/policy_model.h>
#include <weir/service/firewall/read_endpoints.h>

namespace {

void require_place(const weir::Error& error) {
  if (!error.message.starts_with("fuzz.yaml")) {
    std::abort();
  }
}

/// Two endpoints with what the corpus' policies ask for.
weir::Endpoints endpoints(weir::Names& names) {
  weir::Endpoints all{.namespaces = {{"x", {{"ns", "x"}}}}, .entries = {}};
  for (const char* name : {"a", "b"}) {
    all.entries.push_back({.key = {"x", name},
                           .labels = {{"pod", name}},
                           .addresses = {*weir::IpAddress::parse(name[0] == 'a' ? "10.0.0.1" : "10.0.0.2")},
                           .ports = {{names.id("http"), weir::ip_protocol::tcp, 80}}});
  }
  return all;
}

void decide_all(const weir::PolicyModel& model) {
  for (const auto& [key, guarded] : model.endpoints()) {
    for (const auto& [other, peer] : model.endpoints()) {
      for (const weir::Direction direction : weir::both_directions) {
        const weir::Traffic traffic{
            .peer = peer.entry->addresses.front(), .protocol = weir::ip_protocol::tcp, .port = std::uint16_t{80}};
        const weir::Decision decision =
            weir::decide(direction, *guarded.identity, *guarded.policies, traffic, peer.identity.get());
        if (decision.by == weir::Decision::By::rule && decision.rule >= decision.policy->rules_of(direction).size()) {
          std::abort();
        }
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  weir::Names names;
  const auto documents = weir::Config::parse_documents(text, "fuzz.yaml");
  if (!documents) {
    require_place(documents.error());
    return 0;
  }
  auto policies = weir::read_policies(*documents, names);
  if (!policies) {
    require_place(policies.error());
  } else {
    weir::PolicyModel model(names);
    model.commit(model.draft({.endpoints = endpoints(names)}));
    model.commit(model.draft({.policies = std::move(*policies)}));
    decide_all(model);
  }
  for (const weir::Config& document : *documents) {
    if (const auto read = weir::read_endpoints(document, names); !read) {
      require_place(read.error());
    }
  }
  return 0;
}
