#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>
#include <tuple>
#include <vector>

#include "calibration.h"
#include "measure.h"

#include <weir/base/hash.h>
#include <weir/base/random.h>
#include <weir/packet/bytes.h>

namespace weir::bench {

namespace {

constexpr std::size_t batch = 32;
constexpr std::size_t packet_bytes = 64;

struct Entry {
  std::uint64_t addresses = 0;
  std::uint32_t ports = 0;
  std::uint8_t macs[12]{};
  std::uint64_t hits = 0;
};

class Loop {
 public:
  explicit Loop(unsigned flows) : flows_(flows), table_(std::size_t{4} * std::bit_ceil(flows)) {
    static constexpr std::uint8_t header[] = {2, 0, 0,  0,  0, 2, 2,  0, 0, 0, 0,  1, 8, 0, 0x45, 0, 0, 50, 0, 0,
                                              0, 0, 64, 17, 0, 0, 10, 0, 0, 0, 10, 1, 0, 0, 4,    0, 8, 0,  0, 30};
    std::memcpy(template_.data(), header, sizeof header);
    for (unsigned f = 0; f < flows; ++f) {
      write(0, f);
      const auto [addresses, ports] = parse(0);
      std::size_t at = hash(addresses, ports) & (table_.size() - 1);
      while (table_[at].addresses != 0) {
        at = (at + 1) & (table_.size() - 1);
      }
      table_[at].addresses = addresses;
      table_[at].ports = ports;
      table_[at].macs[0] = 2;
      table_[at].macs[5] = static_cast<std::uint8_t>(f);
    }
  }

  void run(std::size_t packets, bool encapsulate) {
    for (std::size_t done = 0; done < packets; done += batch) {
      for (std::size_t i = 0; i < batch; ++i) {
        write(i, static_cast<std::uint32_t>((random_() >> 32U) * flows_ >> 32U));
      }
      for (std::size_t i = 0; i < batch; ++i) {
        std::tie(addresses_[i], ports_[i]) = parse(i);
        hashes_[i] = hash(addresses_[i], ports_[i]);
        __builtin_prefetch(&table_[hashes_[i] & (table_.size() - 1)]);
      }
      for (std::size_t i = 0; i < batch; ++i) {
        std::size_t at = hashes_[i] & (table_.size() - 1);
        while (table_[at].addresses != addresses_[i] || table_[at].ports != ports_[i]) {
          at = (at + 1) & (table_.size() - 1);
        }
        ++table_[at].hits;
        std::uint8_t* p = packet(i);
        std::memcpy(p, table_[at].macs, 12);
        --p[22];
        const std::uint32_t sum = load_big<std::uint16_t>(p + 24) + 0x100U;
        store_big<std::uint16_t>(p + 24, static_cast<std::uint16_t>(sum + (sum >> 16U)));
        std::size_t length = packet_bytes;
        if (encapsulate) {
          p -= 50;
          std::memcpy(p, outer_.data(), 50);
          store_big<std::uint16_t>(p + 34, static_cast<std::uint16_t>(hashes_[i] >> 48U));
          length += 50;
        }
        digest(p, length);
      }
    }
  }

  [[nodiscard]] std::uint64_t digest() const { return digest_; }

 private:
  std::uint8_t* packet(std::size_t i) { return &memory_[i * 256 + 64]; }

  void write(std::size_t i, std::uint32_t flow) {
    std::uint8_t* p = packet(i);
    std::memcpy(p, template_.data(), packet_bytes);
    store_big<std::uint32_t>(p + 26, 0x0a000000U + flow);
    store_big<std::uint32_t>(p + 30, 0x0a010000U + flow);
  }

  std::pair<std::uint64_t, std::uint32_t> parse(std::size_t i) {
    const std::uint8_t* p = packet(i);
    std::uint64_t addresses = 0;
    std::uint32_t ports = 0;
    if (load_big<std::uint16_t>(p + 12) == 0x0800 && p[14] == 0x45 && (p[23] == 17 || p[23] == 6)) {
      std::memcpy(&addresses, p + 26, 8);
      std::memcpy(&ports, p + 34, 4);
    }
    return {addresses, ports};
  }

  static std::uint64_t hash(std::uint64_t addresses, std::uint32_t ports) {
    return multiply_fold(addresses ^ 0x9e3779b97f4a7c15U, ports ^ 0xbf58476d1ce4e5b9U);
  }

  void digest(const std::uint8_t* p, std::size_t length) {
    std::uint64_t a = 0;
    for (std::size_t at = 0; at + 16 <= length; at += 16) {
      std::uint64_t x;
      std::uint64_t y;
      std::memcpy(&x, p + at, 8);
      std::memcpy(&y, p + at + 8, 8);
      a += multiply_fold(x ^ 0x2545f4914f6cdd1dU, y ^ (0x94d049bb133111ebU + at));
    }
    digest_ += a;
  }

  unsigned flows_;
  std::vector<Entry> table_;
  Random random_{1};
  std::array<std::uint8_t, packet_bytes> template_{};
  std::array<std::uint8_t, 64> outer_{};
  std::array<std::uint8_t, batch * 256> memory_{};
  std::array<std::uint64_t, batch> addresses_{};
  std::array<std::uint32_t, batch> ports_{};
  std::array<std::uint64_t, batch> hashes_{};
  std::uint64_t digest_ = 0;
};

double median_ns(Loop& loop, bool encapsulate) {
  constexpr std::size_t packets = 4'000'000;
  std::array<double, 5> ns{};
  loop.run(packets / 4, encapsulate);
  for (double& one : ns) {
    const std::uint64_t before = thread_cpu_ns();
    loop.run(packets, encapsulate);
    one = static_cast<double>(thread_cpu_ns() - before) / packets;
  }
  std::ranges::sort(ns);
  volatile std::uint64_t keep = loop.digest();
  (void)keep;
  return ns[2];
}

}  // namespace

double scale_of_two_cores() {
  constexpr std::size_t packets = 40'000'000;
  const auto run = [] {
    Loop loop(1024);
    loop.run(packets, false);
    volatile std::uint64_t keep = loop.digest();
    (void)keep;
  };
  const auto wall = [] { return std::chrono::steady_clock::now(); };
  const auto start = wall();
  run();
  const auto one = wall() - start;
  const auto again = wall();
  std::thread other(run);
  run();
  other.join();
  return 2.0 * static_cast<double>(one.count()) / static_cast<double>((wall() - again).count());
}

Calibration calibrate(unsigned flows) {
  Loop loop(flows);
  return {median_ns(loop, false), median_ns(loop, true)};
}

}  // namespace weir::bench
