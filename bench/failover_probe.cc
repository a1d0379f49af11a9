// Numbered UDP datagrams of several flows at a steady rate, and what becomes of each flow, for bench/live.
//
//   failover_probe send ADDRESS PORT FLOWS RATE      FLOWS source ports in turn, RATE datagrams a second, until killed
//   failover_probe sink PORT                         a line for each event, until killed; times in us on
//   CLOCK_MONOTONIC,
//                                                    as the kernel took them when the datagram arrived:
//       first  TIME FLOW INTERFACE                            of a flow
//       moved  TIME FLOW FROM TO GAP LOST                     it arrives by another interface, GAP us after the last
//       one lost   TIME FLOW INTERFACE LOST                       and stays where it is late   TIME FLOW INTERFACE it
//       comes after one that was sent later

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <weir/base/clock.h>
#include <weir/base/descriptor.h>

namespace {

struct Datagram {
  std::uint32_t flow;
  std::uint32_t reserved;
  std::uint64_t number;
};

sockaddr_in address(const char* host, unsigned port) {
  sockaddr_in made{};
  made.sin_family = AF_INET;
  made.sin_port = htons(static_cast<std::uint16_t>(port));
  inet_pton(AF_INET, host, &made.sin_addr);
  return made;
}

int fail(const char* what) {
  fmt::print(stderr, "failover_probe: {}: {}\n", what, std::strerror(errno));
  return 1;
}

int send(const char* host, unsigned port, unsigned flows, unsigned rate) {
  constexpr unsigned first_port = 20'000;
  constexpr std::uint64_t second = 1'000'000'000;
  const sockaddr_in to = address(host, port);
  std::vector<weir::Descriptor> sockets;
  for (unsigned flow = 0; flow < flows; ++flow) {
    const sockaddr_in from = address("0.0.0.0", first_port + flow);
    const auto& socket = sockets.emplace_back(::socket(AF_INET, SOCK_DGRAM, 0));
    if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&from), sizeof from) != 0 ||
        connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
      return fail("a socket");
    }
  }
  prctl(PR_SET_TIMERSLACK, 1UL);
  std::vector<std::uint64_t> numbers(flows);
  std::uint64_t next = weir::SystemClock::read();
  for (std::uint32_t flow = 0;; flow = (flow + 1) % flows) {
    const timespec until{static_cast<time_t>(next / second), static_cast<long>(next % second)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    const Datagram datagram{flow, 0, ++numbers[flow]};
    (void)::send(sockets[flow].get(), &datagram, sizeof datagram, MSG_DONTWAIT);  // a refusal is not the way's fault
    next += second / rate;
  }
}

struct Flow {
  std::uint64_t number = 0;
  std::uint64_t seen = 0;  ///< us
  int interface = 0;
};

void note(Flow& flow, const Datagram& datagram, int interface, std::uint64_t now) {
  const auto lost = static_cast<std::int64_t>(datagram.number - flow.number) - 1;
  if (flow.interface == 0) {
    fmt::print("first {} {} {}\n", now, datagram.flow, interface);
  } else if (lost < 0) {
    fmt::print("late {} {} {}\n", now, datagram.flow, interface);
    return;
  } else if (interface != flow.interface) {
    fmt::print("moved {} {} {} {} {} {}\n", now, datagram.flow, flow.interface, interface, now - flow.seen, lost);
  } else if (lost > 0) {
    fmt::print("lost {} {} {} {}\n", now, datagram.flow, interface, lost);
  }
  flow = {datagram.number, now, interface};
}

std::uint64_t realtime() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

int sink(unsigned port) {
  const std::uint64_t ahead = realtime() - weir::SystemClock::read();
  const weir::Descriptor socket(::socket(AF_INET, SOCK_DGRAM, 0));
  const sockaddr_in own = address("0.0.0.0", port);
  const int yes = 1;
  const int room = 8 << 20;
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
  if (setsockopt(socket.get(), IPPROTO_IP, IP_PKTINFO, &yes, sizeof yes) != 0 ||
      setsockopt(socket.get(), SOL_SOCKET, SO_TIMESTAMPNS, &yes, sizeof yes) != 0 ||
      bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) {
    return fail("the socket");
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::vector<Flow> flows;
  for (;;) {
    Datagram datagram{};
    alignas(cmsghdr) char control[256];
    iovec part{&datagram, sizeof datagram};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (recvmsg(socket.get(), &message, 0) != sizeof datagram || datagram.flow >= 65'536) {
      continue;
    }
    int interface = 0;
    std::uint64_t arrived = weir::SystemClock::read();
    for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr; each = CMSG_NXTHDR(&message, each)) {
      if (each->cmsg_level == IPPROTO_IP && each->cmsg_type == IP_PKTINFO) {
        in_pktinfo info;
        std::memcpy(&info, CMSG_DATA(each), sizeof info);
        interface = info.ipi_ifindex;
      } else if (each->cmsg_level == SOL_SOCKET && each->cmsg_type == SCM_TIMESTAMPNS) {
        timespec at{};
        std::memcpy(&at, CMSG_DATA(each), sizeof at);
        arrived =
            static_cast<std::uint64_t>(at.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(at.tv_nsec) - ahead;
      }
    }
    flows.resize(std::max<std::size_t>(flows.size(), datagram.flow + std::size_t{1}));
    note(flows[datagram.flow], datagram, interface, arrived / 1'000);
  }
}

}  // namespace

int main(int count, char** words) {
  const auto number = [&](int i) { return static_cast<unsigned>(std::strtoul(words[i], nullptr, 10)); };
  if (count == 6 && std::strcmp(words[1], "send") == 0) {
    return send(words[2], number(3), std::max(1U, number(4)), std::max(1U, number(5)));
  }
  if (count == 3 && std::strcmp(words[1], "sink") == 0) {
    return sink(number(2));
  }
  fmt::print(stderr, "failover_probe send ADDRESS PORT FLOWS RATE | sink PORT\n");
  return 2;
}
