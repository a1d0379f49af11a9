// Round trips of small UDP datagrams, for bench/live.
//
//   udp_ping echo PORT                           sends back what comes
//   udp_ping ADDRESS PORT COUNT INTERVAL-US      one after the other; prints each round trip in microseconds

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <weir/base/descriptor.h>

namespace {

using Clock = std::chrono::steady_clock;

sockaddr_in address(const char* host, const char* port) {
  sockaddr_in made{};
  made.sin_family = AF_INET;
  made.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
  inet_pton(AF_INET, host, &made.sin_addr);
  return made;
}

int echo(const weir::Descriptor& socket, const char* port) {
  const sockaddr_in own = address("0.0.0.0", port);
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) {
    fmt::print(stderr, "udp_ping: port {} cannot be had\n", port);
    return 1;
  }
  for (;;) {
    char bytes[2048];
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const ssize_t got = recvfrom(socket.get(), bytes, sizeof bytes, 0, reinterpret_cast<sockaddr*>(&from), &size);
    if (got > 0) {
      (void)sendto(socket.get(), bytes, static_cast<std::size_t>(got), 0, reinterpret_cast<const sockaddr*>(&from),
                   size);
    }
  }
}

/// Every datagram is waited for, for a second at most; one that does not come back is left out.
int ask(const weir::Descriptor& socket, const sockaddr_in& to, unsigned count, std::chrono::microseconds interval) {
  const timeval patience{.tv_sec = 1, .tv_usec = 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  (void)connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to);
  for (unsigned i = 0; i < count; ++i) {
    char bytes[64]{};
    std::memcpy(bytes, &i, sizeof i);
    const auto before = Clock::now();
    (void)send(socket.get(), bytes, sizeof bytes, 0);
    unsigned back = ~0U;
    while (recv(socket.get(), bytes, sizeof bytes, 0) > 0) {
      std::memcpy(&back, bytes, sizeof back);
      if (back == i) {
        fmt::print("{:.1f}\n", std::chrono::duration<double, std::micro>(Clock::now() - before).count());
        break;
      }
    }
    std::this_thread::sleep_for(interval);
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const weir::Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (count == 3 && std::strcmp(arguments[1], "echo") == 0) {
    return echo(socket, arguments[2]);
  }
  if (count == 5) {
    return ask(socket, address(arguments[1], arguments[2]), static_cast<unsigned>(std::atoi(arguments[3])),
               std::chrono::microseconds(std::atoi(arguments[4])));
  }
  fmt::print(stderr, "udp_ping echo PORT | udp_ping ADDRESS PORT COUNT INTERVAL-US\n");
  return 2;
}
