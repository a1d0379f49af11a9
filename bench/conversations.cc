#include <cstring>

#include "conversations.h"

#include <weir/packet/checksum.h>
#include <weir/packet/ethernet.h>
#include <weir/packet/frame_pool.h>
#include <weir/packet/ipv4.h>
#include <weir/packet/tcp.h>

namespace weir::bench {

namespace {

constexpr std::size_t l3 = sizeof(EthernetHeader);
constexpr std::size_t l4 = l3 + sizeof(Ipv4Header);
constexpr std::uint32_t first_client = 1'000;
constexpr std::uint32_t first_server = 5'000;
constexpr std::uint64_t ahead = 64;  // connections in their opening at a time

class End final : public Device {
 public:
  End(std::shared_ptr<Conversations> conversations, unsigned side)
      : conversations_(std::move(conversations)), side_(side) {}

  Result<> open(const DeviceContext& context) override {
    clock_ = &context.clock;
    return {};
  }
  [[nodiscard]] DeviceTraits traits() const override { return {.waits = true}; }
  std::size_t receive(unsigned /*queue*/, std::span<Packet*> out, PacketCache& frames) override {
    std::size_t count = 0;
    const Nanoseconds now = clock_->now();
    for (; count < out.size(); ++count) {
      Packet* packet = frames.allocate();
      if (packet == nullptr) {
        break;
      }
      if (!conversations_->next(side_, packet->data)) {
        frames.free(packet);
        break;
      }
      packet->segment = static_cast<std::uint16_t>(conversations_->frame_bytes());
      packet->length = packet->segment;
      packet->timestamp = now;
      out[count] = packet;
    }
    return count;
  }
  std::size_t transmit(unsigned /*queue*/, std::span<Packet*> packets, PacketCache& frames) override {
    for (Packet* packet : packets) {
      frames.free(packet);
    }
    return packets.size();
  }

 private:
  std::shared_ptr<Conversations> conversations_;
  unsigned side_;
  const Clock* clock_ = nullptr;
};

}  // namespace

Conversations::Conversations(const ConversationOptions& options)
    : options_(options), frame_(options.frame_bytes), sent_(options.churn ? 1 : options.flows, {0, 0}) {
  const MacAddress client{{2, 0, 0, 0, 0, 1}};
  const MacAddress server{{2, 0, 0, 0, 0, 2}};
  const EthernetHeader ethernet{server, client, ethertype::ipv4};
  std::memcpy(frame_.data(), &ethernet, sizeof ethernet);
  Ipv4Header ip{};
  ip.version_length = 0x45;
  ip.total_length = static_cast<std::uint16_t>(options.frame_bytes - l3);
  ip.ttl = 64;
  ip.protocol = ip_protocol::tcp;
  std::memcpy(frame_.data() + l3, &ip, sizeof ip);
  TcpHeader tcp{};
  tcp.data_offset = sizeof(TcpHeader) / 4 << 4U;
  tcp.window = 60'000;
  std::memcpy(frame_.data() + l4, &tcp, sizeof tcp);
  ip_sum_ = checksum::sum_scalar({frame_.data() + l3, sizeof ip});
  tcp_sum_ = checksum::sum_scalar({frame_.data() + l4, options.frame_bytes - l4}) + ip_protocol::tcp +
             options.frame_bytes - static_cast<std::uint32_t>(l4);
}

std::pair<std::unique_ptr<Device>, std::unique_ptr<Device>> Conversations::make(const ConversationOptions& options) {
  auto shared = std::make_shared<Conversations>(options);
  return {std::make_unique<End>(shared, 0U), std::make_unique<End>(shared, 1U)};
}

void Conversations::write(unsigned side, std::uint64_t flow, std::uint8_t flags, std::uint32_t sequence,
                          std::uint32_t acknowledgment, std::uint8_t* frame) const {
  if (options_.frame_bytes == 64) {
    std::memcpy(frame, frame_.data(), 64);
  } else {
    std::memcpy(frame, frame_.data(), options_.frame_bytes);
  }
  const std::uint32_t client =
      10U << 24U | std::uint32_t{options_.client_network} << 16U | static_cast<std::uint32_t>(flow & 0xffffU);
  const std::uint32_t server = 10U << 24U | 200U << 16U | static_cast<std::uint32_t>(flow >> 16U & 0xffffU);
  const auto port = static_cast<std::uint16_t>(1024 + (flow >> 32U) % 60'000);
  const std::uint32_t src = side == 0 ? client : server;
  const std::uint32_t dst = side == 0 ? server : client;
  const std::uint16_t src_port = side == 0 ? port : 80;
  const std::uint16_t dst_port = side == 0 ? 80 : port;
  if (side == 1) {
    std::swap_ranges(frame, frame + 6, frame + 6);
  }
  store_big<std::uint32_t>(frame + l3 + 12, src);
  store_big<std::uint32_t>(frame + l3 + 16, dst);
  const std::uint64_t addresses = std::uint64_t{src} + dst;
  store_big<std::uint16_t>(frame + l3 + 10, static_cast<std::uint16_t>(
                                                ~checksum::fold(ip_sum_ + (addresses >> 16U) + (addresses & 0xffffU))));
  store_big<std::uint16_t>(frame + l4, src_port);
  store_big<std::uint16_t>(frame + l4 + 2, dst_port);
  store_big<std::uint32_t>(frame + l4 + 4, sequence);
  store_big<std::uint32_t>(frame + l4 + 8, acknowledgment);
  frame[l4 + 13] = flags;
  const std::uint64_t sum =
      tcp_sum_ + addresses + src_port + dst_port + std::uint64_t{sequence} + acknowledgment + flags;
  store_big<std::uint16_t>(
      frame + l4 + 16,
      static_cast<std::uint16_t>(~checksum::fold((sum >> 32U) + (sum >> 16U & 0xffffU) + (sum & 0xffffU))));
}

bool Conversations::next(unsigned side, std::uint8_t* frame) {
  constexpr std::uint8_t S = tcp_flag::syn, A = tcp_flag::ack;
  if (options_.churn) {
    return next_of_churn(side, frame);
  }
  const std::uint64_t acks = opened();
  if (acks == options_.flows) {
    random_ = random_ * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
    const std::uint64_t flow = (random_ >> 33U) * options_.flows >> 31U;
    const auto payload = static_cast<std::uint32_t>(options_.frame_bytes - l4 - sizeof(TcpHeader));
    Sent& sent = sent_[flow];
    const std::uint32_t client = first_client + 1 + sent.client;
    const std::uint32_t server = first_server + 1 + sent.server;
    if (side == 0) {
      write(0, flow, A, client, server, frame);
      sent.client += payload;
    } else {
      write(1, flow, A, server, client, frame);
      sent.server += payload;
    }
    return true;
  }
  // SYNs carry the frame's payload, as TCP Fast Open has it; the next bytes follow behind it.
  const auto payload = static_cast<std::uint32_t>(options_.frame_bytes - l4 - sizeof(TcpHeader));
  if (side == 1) {
    if (answers_ == syns_) {
      return false;
    }
    write(1, answers_, S | A, first_server, first_client + 1 + payload, frame);
    sent_[answers_++].server = payload;
    return true;
  }
  if (acks < answers_) {
    write(0, acks, A, first_client + 1 + payload, first_server + 1 + payload, frame);
    sent_[acks].client = 2 * payload;
    add(acks_);
    return true;
  }
  if (syns_ == options_.flows || syns_ >= acks + ahead) {
    return false;
  }
  write(0, syns_++, S, first_client, 0, frame);
  return true;
}

bool Conversations::next_of_churn(unsigned side, std::uint8_t* frame) {
  constexpr std::uint8_t S = tcp_flag::syn, A = tcp_flag::ack, R = tcp_flag::rst;
  const auto payload = static_cast<std::uint32_t>(options_.frame_bytes - l4 - sizeof(TcpHeader));
  const std::uint64_t acks = opened();
  if (side == 1) {
    if (answers_ == syns_) {
      return false;
    }
    write(1, answers_++, S | A, first_server, first_client + 1 + payload, frame);
  } else if (resets_ < acks) {
    write(0, resets_++, R, first_client + 1 + 2 * payload, 0, frame);
  } else if (acks < answers_) {
    write(0, acks, A, first_client + 1 + payload, first_server + 1 + payload, frame);
    add(acks_);
  } else if (syns_ < acks + ahead) {
    write(0, syns_++, S, first_client, 0, frame);
  } else {
    return false;
  }
  return true;
}

}  // namespace weir::bench
