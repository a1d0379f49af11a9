// Node files: any text gives a node file or an error, never a crash, and within limits of time and memory.

#include <examples/services.h>

#include <weir/control/node_file.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const weir::ServiceRegistry registry = [] {
    weir::ServiceRegistry services;
    weir::examples::register_all(services);
    return services;
  }();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto file = weir::NodeFile::parse(text, "fuzz.yaml", "/nowhere", registry); !file) {
    if (file.error().message.empty()) {
      __builtin_trap();
    }
  }
  return 0;
}
