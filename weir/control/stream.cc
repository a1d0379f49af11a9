#include <weir/control/internal/stream.h>

#include <array>
#include <cerrno>

#include <sys/socket.h>

namespace weir {

namespace {

/// As recv(2). Not in the task itself, whose variables lie in memory for as long as it waits.
ssize_t receive(int socket, std::string& into) {
  std::array<char, 16U << 10U> bytes;
  const ssize_t count = ::recv(socket, bytes.data(), bytes.size(), 0);
  if (count > 0) {
    into.append(bytes.data(), static_cast<std::size_t>(count));
  }
  return count;
}

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

Task<Stream::Outcome> Stream::read(std::string& into, Nanoseconds deadline) {
  for (;;) {
    const ssize_t count = receive(socket_.get(), into);
    if (count > 0) {
      co_return Outcome::done;
    }
    if (count == 0 || (!would_block() && errno != EINTR)) {
      co_return Outcome::closed;
    }
    const Outcome waited = co_await wait(false, deadline);
    if (waited != Outcome::done) {
      co_return waited;
    }
  }
}

Task<Stream::Outcome> Stream::write(std::string_view bytes, Nanoseconds deadline) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    if (!would_block() && errno != EINTR) {
      co_return Outcome::closed;
    }
    const Outcome waited = co_await wait(true, deadline);
    if (waited != Outcome::done) {
      co_return waited;
    }
  }
  co_return Outcome::done;
}

Task<Stream::Outcome> Stream::wait(bool for_write, Nanoseconds deadline) {
  const Nanoseconds now = loop_.clock().now();
  if (now >= deadline) {
    co_return Outcome::late;
  }
  bool late = false;
  const Timer timer = loop_.after(std::chrono::nanoseconds(deadline - now), [this, &late] {
    late = true;
    loop_.forget(socket_.get());  // ends the wait below
  });
  Result<> ready;
  if (for_write) {
    ready = co_await loop_.writable(socket_.get());
  } else {
    ready = co_await loop_.readable(socket_.get());
  }
  if (late) {
    co_return Outcome::late;
  }
  co_return ready ? Outcome::done : Outcome::closed;
}

}  // namespace weir
