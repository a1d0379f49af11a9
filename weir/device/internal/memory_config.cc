#include <weir/device/internal/memory_config.h>

#include <weir/device/internal/option_reader.h>

namespace weir::device_internal {

namespace {

void read_size(OptionReader& read, GeneratorConfig& config) {
  std::string text;
  read.text("size", text);
  if (text == "imix") {
    config.imix = true;
    if (config.random_headers) {
      read.fail("size", "imix does not go with headers=random; give one size");
    }
  } else if (config.random_headers) {
    config.size = 64;
    read.number("size", config.size, 64, FramePool::segment_bytes);
  } else {
    read.number("size", config.size, 60, Generator::max_size);
  }
}

void read_vary(OptionReader& read, GeneratorConfig& config) {
  if (!read.has("vary")) {
    return;
  }
  config.vary_src = config.vary_dst = config.vary_ports = false;
  for (const std::string_view word : read.list("vary")) {
    if (word == "all") {
      config.vary_src = config.vary_dst = config.vary_ports = true;
    } else if (word == "src") {
      config.vary_src = true;
    } else if (word == "dst") {
      config.vary_dst = true;
    } else if (word == "ports") {
      config.vary_ports = true;
    } else if (word == "macs") {
      config.vary_macs = true;
    } else {
      return read.wrong_word("vary", word, {"src", "dst", "ports", "macs", "all"});
    }
  }
}

}  // namespace

Result<MemoryConfig> MemoryConfig::parse(const DeviceSpec& spec) {
  MemoryConfig config;
  GeneratorConfig& generator = config.generator;
  if (!spec.argument.empty()) {
    return error("memory takes no argument, found '{}'; options are written key=value", spec.argument);
  }
  OptionReader read(spec);
  for (const auto& [key, value] : spec.options) {
    config.generates |= key != "record";
  }
  read.number("record", config.record, 1, 1'000'000);
  read.number("flows", generator.flows, 1, 1U << 24U);
  read.choice<Order>("order", generator.order,
                     {{"random", Order::random}, {"zipf", Order::zipf}, {"sequential", Order::sequential}});
  if (read.has("skew") && generator.order != Order::zipf) {
    read.fail("skew", "is the exponent of a Zipf order; give order=zipf too");
  }
  read.decimal("skew", generator.skew, 0.01, 10);
  read.choice<bool>("headers", generator.random_headers, {{"fixed", false}, {"random", true}});
  if (generator.random_headers) {
    for (const char* key : {"flows", "order", "proto", "ip", "vlan", "src", "dst", "src_mac", "dst_mac", "src_port",
                            "dst_port", "vary"}) {
      if (read.has(key)) {
        read.fail(key, "does not go with headers=random, which leaves nothing to choose");
      }
    }
  }
  read_size(read, generator);
  read.choice<bool>("proto", generator.tcp, {{"udp", false}, {"tcp", true}});
  read.choice<bool>("ip", generator.v6, {{"4", false}, {"6", true}});
  if (read.has("vlan")) {
    read.number("vlan", generator.vlan.emplace(), 1, 4094);
  }
  read.address("src", generator.src);
  read.address("dst", generator.dst);
  read.mac("src_mac", generator.src_mac);
  read.mac("dst_mac", generator.dst_mac);
  read.number("src_port", generator.src_port);
  read.number("dst_port", generator.dst_port);
  read_vary(read, generator);
  read.number("rate", config.rate, 0, 1'000'000'000);
  read.number("count", config.count);
  if (read.has("queue") && config.rate == 0) {
    read.fail("queue", "nothing waits without a rate; give rate= too");
  }
  read.number("queue", config.queue, 1, 1U << 20U);
  if (const auto result = read.result(); !result) {
    return std::unexpected(result.error());
  }
  if (const auto result = Generator::check(generator); !result) {
    return std::unexpected(result.error());
  }
  return config;
}

}  // namespace weir::device_internal
