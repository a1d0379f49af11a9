// Sends frames by AF_XDP as fast as the kernel takes them, and says how many that were: what bench/live loads both
// contenders with. It attaches no program, so what comes back goes to the kernel's stack.
//
//   xdp_sender INTERFACE SECONDS [DESTINATION-MAC]      64 flows of 60-byte UDP frames

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <xdp/xsk.h>

#include <weir/packet/address.h>

namespace weir::bench {
namespace {

constexpr std::uint32_t frames = 2048;
constexpr std::uint32_t frame_bytes = 2048;
constexpr std::uint32_t sent_bytes = 60;
constexpr std::uint32_t batch = 64;

[[noreturn]] void give_up(const char* what, int reason) {
  fmt::print(stderr, "xdp_sender: {}: {}\n", what, std::strerror(reason));
  std::exit(1);
}

/// Flow `number`: 10.0.0.1 to 10.0.0.2, with a source port of its own.
void write_frame(std::uint8_t* to, const MacAddress& destination, std::uint8_t number) {
  static constexpr std::array<std::uint8_t, sent_bytes> pattern{
      0,    0, 0,  0,  0, 0, 0x02, 0, 0,  0,  0,    1,    0x08, 0,  // Ethernet
      0x45, 0, 0,  46, 0, 0, 0,    0, 64, 17, 0x66, 0xbd, 10,   0,
      0,    1, 10, 0,  0, 2, 0x10, 0, 0,  9,  0,    26,   0,    0};  // no UDP checksum
  std::memcpy(to, pattern.data(), pattern.size());
  std::memcpy(to, destination.bytes.data(), destination.bytes.size());
  to[35] = number;
}

class Sender {
 public:
  Sender(const char* interface, const MacAddress& destination) {
    memory_ = static_cast<std::uint8_t*>(
        ::mmap(nullptr, std::size_t{frames} * frame_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory_ == MAP_FAILED) {
      give_up("no memory", errno);
    }
    for (std::uint32_t i = 0; i < frames; ++i) {
      write_frame(memory_ + std::size_t{i} * frame_bytes, destination, static_cast<std::uint8_t>(i % 64));
    }
    if (const int failure =
            xsk_umem__create(&umem_, memory_, std::uint64_t{frames} * frame_bytes, &fill_, &completed_, nullptr);
        failure != 0) {
      give_up("frames cannot be shared with the kernel", -failure);
    }
    xsk_socket_config config{};
    config.tx_size = frames;
    config.libbpf_flags = XSK_LIBBPF_FLAGS__INHIBIT_PROG_LOAD;
    config.bind_flags = XDP_COPY | XDP_USE_NEED_WAKEUP;
    if (const int failure = xsk_socket__create(&socket_, interface, 0, umem_, nullptr, &ring_, &config); failure != 0) {
      give_up("no AF_XDP socket", -failure);
    }
  }
  ~Sender() {
    xsk_socket__delete(socket_);
    xsk_umem__delete(umem_);
    ::munmap(memory_, std::size_t{frames} * frame_bytes);
  }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  /// Hands over a batch if there is room, and takes back what was sent; how many frames that was.
  std::uint32_t send() {
    std::uint32_t at = 0;
    if (under_way_ + batch <= frames / 2 && xsk_ring_prod__reserve(&ring_, batch, &at) == batch) {
      for (std::uint32_t i = 0; i < batch; ++i) {
        *xsk_ring_prod__tx_desc(&ring_, at + i) = {std::uint64_t{next_++ % frames} * frame_bytes, sent_bytes, 0};
      }
      xsk_ring_prod__submit(&ring_, batch);
      under_way_ += batch;
    }
    (void)::sendto(xsk_socket__fd(socket_), nullptr, 0, MSG_DONTWAIT, nullptr, 0);
    const std::uint32_t done = xsk_ring_cons__peek(&completed_, frames, &at);
    xsk_ring_cons__release(&completed_, done);
    under_way_ -= done;
    return done;
  }

 private:
  std::uint8_t* memory_ = nullptr;
  xsk_umem* umem_ = nullptr;
  xsk_socket* socket_ = nullptr;
  xsk_ring_prod fill_{}, ring_{};
  xsk_ring_cons completed_{};
  std::uint32_t next_ = 0, under_way_ = 0;
};

}  // namespace
}  // namespace weir::bench

int main(int count, char** arguments) {
  using Clock = std::chrono::steady_clock;
  if (count < 3) {
    fmt::print(stderr, "xdp_sender INTERFACE SECONDS [DESTINATION-MAC]\n");
    return 2;
  }
  const auto destination = weir::MacAddress::parse(count > 3 ? arguments[3] : "02:00:00:00:00:02");
  weir::bench::Sender sender(arguments[1], destination.value_or(weir::MacAddress{}));
  const auto from = Clock::now();
  const auto end = from + std::chrono::duration<double>(std::atof(arguments[2]));
  std::uint64_t sent = 0;
  auto now = from;
  while (now < end) {
    sent += sender.send();
    now = Clock::now();
  }
  fmt::print("{:.0f}\n", static_cast<double>(sent) / std::chrono::duration<double>(now - from).count());
}
