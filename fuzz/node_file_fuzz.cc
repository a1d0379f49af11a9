// Node files: any text gives a node or an error, never a crash, and within limits of time and memory. A file that can
// be read is built too, without its devices.

#include <cstdlib>

#include <examples/services.h>

#include <weir/control/managed_node.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const weir::ServiceRegistry registry = [] {
    weir::ServiceRegistry services;
    weir::examples::register_all(services);
    return services;
  }();
  const auto require_message = [](const weir::Error& error) {
    if (error.message.empty()) {
      std::abort();
    }
  };
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = weir::NodeFile::parse(text, "fuzz.yaml", "/nowhere", registry);
  if (!file) {
    require_message(file.error());
  } else if (const auto node = weir::ManagedNode::build(*file, weir::LoadMode::trace); !node) {
    require_message(node.error());
  }
  return 0;
}
