#include <weir/service/firewall/read_policies.h>

#include <algorithm>
#include <map>

#include <fmt/ranges.h>

#include <weir/base/nearest.h>
#include <weir/service/firewall/internal/policy_reader.h>
#include <weir/service/firewall/read_labels.h>

namespace weir {

namespace {

struct ObjectKind {
  std::string_view name;
  std::string_view version;
  PolicyKind kind;
};

constexpr std::array<ObjectKind, policy_kinds> object_kinds{{
    {"AdminNetworkPolicy", "policy.networking.k8s.io/v1alpha1", PolicyKind::admin},
    {"NetworkPolicy", "networking.k8s.io/v1", PolicyKind::network},
    {"BaselineAdminNetworkPolicy", "policy.networking.k8s.io/v1alpha1", PolicyKind::baseline},
}};

bool is_list(std::string_view kind) {
  return kind == "List" || (kind.ends_with("List") && std::ranges::find(object_kinds, kind.substr(0, kind.size() - 4),
                                                                        &ObjectKind::name) != object_kinds.end());
}

class Reader {
 public:
  explicit Reader(Names& names) : names_(names) {}

  /// A document, or an item of a list.
  void read(const Config& object) {
    if (object.kind() != Config::Kind::map) {
      errors_.take(object.error(
          "expected a Kubernetes object, a map with apiVersion, kind, metadata and spec, found {}", object.found()));
      return;
    }
    const auto kind = object.get("kind").string("the kind of an object, such as NetworkPolicy");
    if (!kind) {
      errors_.add(kind.error());
    } else if (is_list(*kind)) {
      read_list(object);
    } else if (const ObjectKind* known = find_kind(object.get("kind"), *kind)) {
      read_object(object, *known);
    }
  }

  Result<std::vector<ReadPolicy>> result() {
    if (!errors_.empty()) {
      return std::unexpected(errors_.result().error());
    }
    return std::move(policies_);
  }

 private:
  const ObjectKind* find_kind(const Config& place, const std::string& kind) {
    const auto known = std::ranges::find(object_kinds, kind, &ObjectKind::name);
    if (known != object_kinds.end()) {
      return &*known;
    }
    std::array<std::string_view, policy_kinds> words;
    std::ranges::transform(object_kinds, words.begin(), &ObjectKind::name);
    errors_.take(place.error("a {} is no policy; there are {}, and List of them{}", kind, fmt::join(words, ", "),
                             did_you_mean(kind, words)));
    return nullptr;
  }

  void read_list(const Config& list) {
    if (auto checked = list.check_keys({"apiVersion", "kind", "metadata", "items"}); !checked) {
      errors_.take(checked);
      return;
    }
    for (const Config& item : errors_.take(list.get("items").list("a list of objects"))) {
      read(item);
    }
  }

  void read_object(const Config& object, const ObjectKind& kind) {
    if (auto checked = object.check_keys({"apiVersion", "kind", "metadata", "spec", "status"}); !checked) {
      errors_.take(checked);
      return;
    }
    const Config version = object.get("apiVersion");
    if (const auto found = version.string(); !found || *found != kind.version) {
      errors_.take(
          version.error("expected apiVersion {} for a {}, found {}", kind.version, kind.name, version.found()));
      return;
    }
    PolicyDraft draft;
    Policy& policy = draft.policy;
    policy.key.kind = kind.kind;
    read_metadata(object.get("metadata"), policy.key);
    const Config spec = object.get("spec");
    if (spec.kind() != Config::Kind::map) {
      errors_.take(spec.error("expected the policy's 'spec', a map, found {}", spec.found()));
      return;
    }
    if (kind.kind == PolicyKind::network) {
      read_network_policy(spec, draft, names_, errors_);
    } else {
      read_admin_policy(spec, draft, names_, errors_);
    }
    if (policies_.size() == policy_limit) {
      errors_.take(object.error("more than {} policies", policy_limit));
      return;
    }
    const auto [first, fresh] = places_.try_emplace(policy.key, object.place());
    if (!fresh) {
      errors_.take(object.error("{} is there twice; the first is at {}", policy.key.to_string(), first->second));
    }
    policies_.push_back(
        {std::make_shared<const Policy>(std::move(policy)), object.place(), std::move(draft.rule_places)});
  }

  // Of an object's metadata only its name and namespace count; the rest that Kubernetes knows is passed over. A word
  // that it does not know may be one of those two, misspelt, and the policy would land in another namespace.
  void read_metadata(const Config& metadata, PolicyKey& key) {
    constexpr std::array<std::string_view, 15> known{"name",
                                                     "namespace",
                                                     "labels",
                                                     "annotations",
                                                     "uid",
                                                     "resourceVersion",
                                                     "generation",
                                                     "creationTimestamp",
                                                     "deletionTimestamp",
                                                     "deletionGracePeriodSeconds",
                                                     "finalizers",
                                                     "ownerReferences",
                                                     "managedFields",
                                                     "selfLink",
                                                     "generateName"};
    if (auto checked = metadata.check_keys(known); !checked) {
      errors_.take(checked);
      return;
    }
    key.name = read_object_name(metadata.get("name"), "the name of a policy", errors_);
    const Config* in = metadata.find("namespace");
    if (key.kind == PolicyKind::network) {
      key.in_namespace = in == nullptr || in->is_null() || in->string() == ""
                             ? "default"
                             : read_object_name(*in, "the name of a namespace", errors_);
    } else if (in != nullptr && !in->is_null() && in->string() != "") {
      errors_.take(in->error("a {} is in no namespace; leave it out", kind_name(key.kind)));
    }
    if (key.kind == PolicyKind::baseline && key.name != "default" && !key.name.empty()) {
      errors_.take(metadata.get("name").error(
          "there is one BaselineAdminNetworkPolicy, and its name is 'default', not '{}'", key.name));
    }
  }

  Names& names_;
  Errors errors_;
  std::vector<ReadPolicy> policies_;
  std::map<PolicyKey, std::string> places_;
};

}  // namespace

IpPrefix read_block(const Config& config, Errors& errors) {
  const auto text = config.string("a prefix such as 10.0.0.0/8");
  if (!text) {
    errors.add(text.error());
    return {};
  }
  const auto both = IpPrefix::parse_interface(*text);
  if (!both) {
    errors.add(both.error().at(config.place()));
    return {};
  }
  if (!text->contains('/')) {
    errors.take(config.error("'{}' has no length; write {}", *text, both->second.to_string()));
  }
  return both->second;
}

std::uint16_t read_port_number(const Config& config, Errors& errors) {
  return static_cast<std::uint16_t>(errors.take(config.integer(1, 65'535)));
}

Result<std::vector<ReadPolicy>> read_policies(std::span<const Config> documents, Names& names) {
  Reader reader(names);
  for (const Config& document : documents) {
    reader.read(document);
  }
  return reader.result();
}

Result<std::vector<FileText>> read_texts(std::span<const std::string> paths) {
  Errors errors;
  std::vector<FileText> files;
  for (const std::string& path : paths) {
    files.push_back({path, errors.take(Config::read_text(path))});
  }
  return errors.empty() ? Result<std::vector<FileText>>(std::move(files)) : std::unexpected(errors.result().error());
}

Result<std::vector<ReadPolicy>> read_policy_files(std::span<const FileText> files, Names& names) {
  Reader reader(names);
  Errors errors;
  for (const FileText& file : files) {
    for (const Config& document : errors.take(Config::parse_documents(file.text, file.path))) {
      reader.read(document);
    }
  }
  auto policies = reader.result();
  if (!policies) {
    errors.add(policies.error());
  }
  return errors.empty() ? std::move(policies) : std::unexpected(errors.result().error());
}

}  // namespace weir
