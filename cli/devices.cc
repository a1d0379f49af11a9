// weir devices: the kinds of devices that ports can be on.

#include "command.h"
#include <nlohmann/json.hpp>

#include <weir/control/table_text.h>
#include <weir/device/device_spec.h>

namespace weir::cli {

namespace {

void devices(bool as_json, int& status) {
  if (as_json) {
    auto json = nlohmann::ordered_json::array();
    for (const DeviceKind& kind : device_kinds()) {
      nlohmann::ordered_json options = nlohmann::ordered_json::array();
      for (const auto& [name, help] : kind.options) {
        options.push_back({{"name", name}, {"help", help}});
      }
      json.push_back({{"kind", kind.name},
                      {"help", kind.help},
                      {"argument", kind.argument},
                      {"example", kind.example},
                      {"options", options}});
    }
    print(json.dump(2) + "\n", status);
    return;
  }
  std::string text;
  for (const DeviceKind& kind : device_kinds()) {
    text += fmt::format("{}{}: {}\n", text.empty() ? "" : "\n", kind.name, kind.help);
    if (!kind.argument.empty()) {
      text += fmt::format("  {}:ARGUMENT  {}\n", kind.name, kind.argument);
    }
    TableText table({"option", "meaning (default)<"});
    for (const auto& [name, help] : kind.options) {
      table.row({name + "=", help});
    }
    text += table.to_string() + fmt::format("  example: {}\n", kind.example);
  }
  print(text, status);
}

}  // namespace

void add_devices(CLI::App& app, int& status) {
  CLI::App& command = subcommand(app, "devices", "List the kinds of devices that ports can be on", "weir devices");
  auto json = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "Print them as JSON");
  command.callback([json, &status] { devices(*json, status); });
}

}  // namespace weir::cli
