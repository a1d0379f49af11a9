// The node's host part: whatever comes in, packets are accounted for, what it sends can be read and has the right
// checksums, and the table of neighbours holds nobody who is not on the link. It has BFD sessions with 192.0.2.5 and
// 2001:db8::5 by port 0.
//
// An input is a sequence of frames: two bytes of length, of which the topmost bit asks that the frame wait for a
// neighbour instead, then the frame. Between them, a tenth of a second passes.

#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include <weir/engine/host/bfd_datagram.h>
#include <weir/engine/host/checksums.h>
#include <weir/engine/host/host.h>
#include <weir/flow/state.h>
#include <weir/packet/parse.h>

namespace {

using weir::IpPrefix;
using weir::Packet;

constexpr std::uint16_t waits = 0x8000;
constexpr std::size_t longest_frame = 3000;

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

class Node {
 public:
  Node() {
    for (std::uint16_t i = 0; i < 2; ++i) {
      auto& port = ports_->ports[i];
      port.up = true;
      port.mac = {{2, 0, 0, 0, 0xff, static_cast<std::uint8_t>(i + 1)}};
      for (const char* text :
           {i == 0 ? "192.0.2.1/24" : "198.51.100.1/24", i == 0 ? "2001:db8::1/64" : "2001:db8:1::1/64"}) {
        const auto own = *IpPrefix::parse_interface(text);
        port.addresses.push_back({own.first, own.second});
      }
    }
    ports_->count = 2;
    for (const weir::PathKey& key : watched()) {
      state_.neighbours().learn(key, {{2, 0, 0, 0, 0, 5}}, now_);
    }
    state_.paths().want("fuzz", {{watched()[0], weir::BfdSettings{.interval = 50'000'000}},
                                 {watched()[1], weir::BfdSettings{.interval = 10'000'000, .multiplier = 1}}});
  }

  void run(std::span<const std::uint8_t> input) {
    const weir::EpochScope scope(epochs_);
    while (input.size() > 2) {
      const auto head = weir::load_big<std::uint16_t>(input.data());
      const std::size_t length = std::min<std::size_t>({head & ~waits & 0xffffU, input.size() - 2, longest_frame});
      if (Packet* packet = length != 0 ? frames_.allocate(input.subspan(2, length)) : nullptr) {
        ++in_;
        packet->ingress = 0;
        if ((head & waits) != 0) {
          host_.resolve(packet, neighbour(input.subspan(2, length)), now_);
        } else {
          host_.take(packet, now_);
        }
      }
      input = input.subspan(2 + length);
      now_ += 100'000'000;
      host_.idle(now_);
      collect();
    }
    host_.finish();
    collect();
    const auto& stats = *stats_;
    std::uint64_t dropped = 0;
    for (const auto& count : stats.drops) {
      dropped += count.get();
    }
    require(stats.waiting.get() == 0);
    require(in_ + stats.originated.get() == out_ + dropped + stats.consumed.get());
  }

 private:
  static std::array<weir::PathKey, 2> watched() {
    return {{{weir::PortId{0}, *weir::IpAddress::parse("192.0.2.5")},
             {weir::PortId{0}, *weir::IpAddress::parse("2001:db8::5")}}};
  }
  static weir::NeighbourKey neighbour(std::span<const std::uint8_t> bytes) {
    return {weir::PortId{static_cast<std::uint16_t>(bytes[0] % 3)},
            weir::Ipv4Address{{192, 0, 2, static_cast<std::uint8_t>(bytes.back() % 8)}}};
  }

  void collect() {
    std::array<Packet*, 8> back;
    while (const std::size_t count = host_.take_back(back)) {
      for (Packet* packet : std::span(back).first(count)) {
        ++out_;
        frames_.free(packet);
      }
    }
    outputs_.flush([this](weir::PortId, std::span<Packet*> packets) {
      for (Packet* packet : packets) {
        check(*packet);
        ++out_;
        frames_.free(packet);
      }
    });
    if (state_.has_neighbours()) {
      state_.neighbours().table().for_each([this](const weir::NeighbourKey& key, const weir::MacAddress& mac) {
        require(ports_->ports[key.port.number].on_link(key.address) != nullptr && !mac.multicast());
      });
    }
  }

  void check(Packet& packet) {
    weir::Key key;
    weir::parse(packet, key);
    require(packet.layout.verdict() == weir::ParseVerdict::ok);
    if (packet.layout.l3() == weir::L3::ipv4) {
      require(weir::ipv4_checksum_right(packet));
    }
    if (packet.layout.l4() == weir::L4::udp) {
      require(weir::is_bfd(packet) && weir::read_bfd_datagram(packet).has_value());
    } else if (packet.layout.ip()) {
      require(weir::icmp_sum(packet) == 0xffff);
    }
  }

  weir::Epochs epochs_;
  weir::State state_{epochs_, 1};
  weir::Pipeline pipeline_;
  std::unique_ptr<weir::PortTable> ports_ = std::make_unique<weir::PortTable>();
  std::unique_ptr<weir::FramePool> pool_ = std::move(*weir::FramePool::create(256));
  weir::PacketCache frames_{*pool_};
  weir::Outputs outputs_;
  std::unique_ptr<weir::WorkerStats> stats_ = std::make_unique<weir::WorkerStats>();
  weir::Host host_{{state_, pipeline_, *ports_, frames_, outputs_, *stats_, 0}};
  weir::Nanoseconds now_ = 1;
  std::uint64_t in_ = 0;
  std::uint64_t out_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size <= 64'000) {
    Node().run({data, size});
  }
  return 0;
}
