#include <weir/service/firewall/read_labels.h>

#include <algorithm>
#include <array>

#include <weir/packet/ipv4.h>

namespace weir {

namespace {

bool is_lower(char byte) { return byte >= 'a' && byte <= 'z'; }
bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }
bool is_alphanumeric(char byte) { return is_lower(byte) || is_digit(byte) || (byte >= 'A' && byte <= 'Z'); }

/// Letters and digits at both ends, in between also those of `inside`.
bool is_word(std::string_view text, std::size_t limit, std::string_view inside) {
  return !text.empty() && text.size() <= limit && is_alphanumeric(text.front()) && is_alphanumeric(text.back()) &&
         std::ranges::all_of(text, [&](char byte) { return is_alphanumeric(byte) || inside.contains(byte); });
}

bool is_domain(std::string_view text) {
  const auto lower = [](char byte) { return is_lower(byte) || is_digit(byte) || byte == '-' || byte == '.'; };
  return is_word(text, 253, "-.") && std::ranges::all_of(text, lower) && !text.contains("..") && !text.contains(".-") &&
         !text.contains("-.");
}

std::string read_label_key(const Config& config, Errors& errors) {
  const auto text = config.string("the key of a label");
  if (!text) {
    errors.add(text.error());
    return {};
  }
  const std::size_t slash = text->find('/');
  const bool good = slash == std::string::npos
                        ? is_word(*text, 63, "-_.")
                        : is_domain(text->substr(0, slash)) && is_word(text->substr(slash + 1), 63, "-_.");
  if (!good) {
    errors.take(
        config.error("{} cannot be the key of a label; it is at most 63 letters, digits, '-', '_' and '.', "
                     "perhaps behind a domain and '/'",
                     config.found()));
  }
  return *text;
}

std::string read_label_value(const Config& config, Errors& errors) {
  const auto text = config.string("the value of a label");
  if (!text) {
    errors.add(text.error());
    return {};
  }
  if (!text->empty() && !is_word(*text, 63, "-_.")) {
    errors.take(config.error("{} cannot be the value of a label; it is at most 63 letters, digits, '-', '_' and '.'",
                             config.found()));
  }
  return *text;
}

Requirement read_requirement(const Config& config, Names& names, Errors& errors) {
  Requirement requirement;
  if (auto checked = config.check_keys({"key", "operator", "values"}); !checked) {
    errors.take(checked);
    return requirement;
  }
  requirement.key = names.id(read_label_key(config.get("key"), errors));
  const auto op = config.get("operator").one_of({"In", "NotIn", "Exists", "DoesNotExist"});
  if (!op) {
    errors.add(op.error());
    return requirement;
  }
  requirement.op = static_cast<Requirement::Operator>(*op);
  const Config values = config.get("values");
  for (const Config& value : errors.take(values.list("a list of values"))) {
    requirement.values.push_back(names.id(read_label_value(value, errors)));
  }
  const bool wants = *op < 2;
  if (wants && requirement.values.empty()) {
    errors.take(values.error("'In' and 'NotIn' need values; write values: [a, b]"));
  } else if (!wants && !requirement.values.empty()) {
    errors.take(values.error("'Exists' and 'DoesNotExist' take no values; leave them out"));
  }
  std::ranges::sort(requirement.values);
  return requirement;
}

}  // namespace

std::map<std::string, std::string> read_labels(const Config& config, Errors& errors) {
  std::map<std::string, std::string> labels;
  for (const auto& [key, name, value] : errors.take(config.map("a map of labels"))) {
    labels[read_label_key(key, errors)] = read_label_value(value, errors);
  }
  return labels;
}

Selector read_selector(const Config& config, Names& names, Errors& errors) {
  Selector selector;
  if (auto checked = config.check_keys({"matchLabels", "matchExpressions"}); !checked) {
    errors.take(checked);
    return selector;
  }
  for (const auto& [key, value] : read_labels(config.get("matchLabels"), errors)) {
    selector.all.push_back({names.id(key), Requirement::Operator::in, {names.id(value)}});
  }
  for (const Config& each : errors.take(config.get("matchExpressions").list("a list of expressions"))) {
    selector.all.push_back(read_requirement(each, names, errors));
  }
  return selector;
}

std::string read_object_name(const Config& config, std::string_view what, Errors& errors) {
  const auto text = config.string(what);
  if (!text) {
    errors.add(text.error());
    return {};
  }
  if (!is_domain(*text)) {
    errors.take(config.error("{} cannot be {}; it is lower-case letters, digits, '-' and '.'", config.found(), what));
  }
  return *text;
}

std::uint8_t read_protocol(const Config& config, Errors& errors) {
  constexpr std::array numbers{ip_protocol::tcp, ip_protocol::udp, ip_protocol::sctp};
  return numbers.at(errors.take(config.one_of({"TCP", "UDP", "SCTP"})));
}

std::string read_port_name(const Config& config, Errors& errors) {
  const auto text = config.string("the name of a port");
  if (!text) {
    errors.add(text.error());
    return {};
  }
  const auto allowed = [](char byte) { return is_lower(byte) || is_digit(byte) || byte == '-'; };
  if (!is_word(*text, 15, "-") || !std::ranges::all_of(*text, allowed) || !std::ranges::any_of(*text, is_lower) ||
      text->contains("--")) {
    errors.take(config.error(
        "{} cannot be the name of a port; it is at most 15 of a-z, 0-9 and '-', with a letter. Numbers stand without "
        "quotes, from 1 to 65535",
        config.found()));
  }
  return *text;
}

}  // namespace weir
