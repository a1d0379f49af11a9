// A program outside of Weir's tree, built against an installed copy.

#include <weir/base/epoch.h>
#include <weir/base/error.h>

#include <cstdio>

int main() {
  const weir::Result<int> failed = weir::error("port '{}' is used twice", "a");
  weir::Epochs epochs;
  epochs.barrier();  // linked, not only included
  if (failed || failed.error().at("node.yaml:3:7").message != "node.yaml:3:7: port 'a' is used twice") {
    return 1;
  }
  std::puts("built against the installed copy, and running");
}
