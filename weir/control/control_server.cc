#include <weir/control/control_server.h>

#include <cerrno>
#include <cstring>

#include <pthread.h>
#include <sys/socket.h>

#include <weir/base/log.h>
#include <weir/control/control_api.h>
#include <weir/control/internal/stream.h>

namespace weir {

namespace {

/// A share of a counter, given back at the scope's end, also if the task that holds it is cancelled.
template <class Number>
class Share {
 public:
  Share(Number& of, Number amount) : of_(of), amount_(amount) { of_ += amount_; }
  ~Share() { of_ -= amount_; }
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

 private:
  Number& of_;
  Number amount_;
};

}  // namespace

ControlServer::ControlServer(ManagedNode& node, ControlSocket socket, ControlLimits limits)
    : node_(node), socket_(std::move(socket)), limits_(limits) {}

Result<std::unique_ptr<ControlServer>> ControlServer::start(ManagedNode& node, ControlSocket socket,
                                                            ControlLimits limits) {
  std::unique_ptr<ControlServer> server(new ControlServer(node, std::move(socket), limits));
  auto loop = Loop::create(server->clock_);
  if (!loop) {
    return std::unexpected(loop.error());
  }
  server->loop_ = std::move(*loop);
  server->loop_->spawn(server->accept());
  server->thread_ = std::thread([&node, loop = server->loop_.get()] {
    node.node().keep_off_workers();
    loop->run();
  });
  pthread_setname_np(server->thread_.native_handle(), "weir-control");
  return server;
}

ControlServer::~ControlServer() {
  if (thread_.joinable()) {
    loop_->stop();
    thread_.join();
  }
  loop_.reset();  // its tasks use what is above
}

Nanoseconds ControlServer::after(std::chrono::milliseconds duration) const {
  return clock_.now() + nanoseconds(duration);
}

Task<> ControlServer::accept() {
  for (;;) {
    const Result<> ready = co_await loop_->readable(socket_.descriptor());
    if (!ready) {
      log::error("control socket {}: {}", socket_.path().string(), ready.error().message);
      co_return;
    }
    Descriptor connection(::accept4(socket_.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (connection) {
      admit(std::move(connection));
    } else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
      // Out of descriptors or memory: those that wait are served when others have gone.
      co_await loop_->sleep(std::chrono::milliseconds(100));
    }
  }
}

void ControlServer::admit(Descriptor connection) {
  if (connections_ < limits_.connections) {
    loop_->spawn(serve(std::move(connection)));
    return;
  }
  const std::string refusal =
      to_bytes(error_response(503, fmt::format("{} connections are open, and no more are taken", limits_.connections),
                              "close some of them, then try again"));
  // Far less than the socket's buffer; if it does not fit, closing has to say it.
  [[maybe_unused]] const ssize_t sent =
      ::send(connection.get(), refusal.data(), refusal.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

Task<> ControlServer::serve(Descriptor connection) {
  const Share counted(connections_, 1U);
  Stream stream(*loop_, std::move(connection));
  HttpRequestReader reader;
  std::string input;
  bool open = true;
  while (open) {
    open = co_await serve_one(stream, reader, input);
    co_await loop_->sleep(std::chrono::nanoseconds::zero());  // one that asks without pause does not stop the others
  }
}

/// Reads one request and answers it; whether there can be another.
Task<bool> ControlServer::serve_one(Stream& stream, HttpRequestReader& reader, std::string& input) {
  using Read = HttpRequestReader::State;
  bool begun = !input.empty();
  Nanoseconds deadline = after(begun ? limits_.request : limits_.idle);
  Read state = reader.take(input);
  while (state == Read::more) {
    if (reader.wants_continue()) {
      const auto written = co_await stream.write(http_continue, deadline);
      if (written != Stream::Outcome::done) {
        co_return false;
      }
    }
    const auto read = co_await stream.read(input, deadline);
    if (read == Stream::Outcome::late && begun) {
      co_await send(stream, error_response(408, "the request did not arrive in time",
                                           fmt::format("send it within {} ms", limits_.request.count())));
    }
    if (read != Stream::Outcome::done) {
      co_return false;
    }
    if (!begun) {
      begun = true;
      deadline = after(limits_.request);
    }
    state = reader.take(input);
  }
  if (state == Read::broken) {
    co_await send(stream, error_response(reader.status(), reader.problem(),
                                         "send an HTTP/1.1 request as RFC 9112 "
                                         "has it, within these limits"));
    co_return false;
  }
  const HttpRequest& request = reader.request();
  if (answers_ > limits_.answers) {
    co_await send(stream, error_response(503, "too many answers wait for their readers", "try again in a while"));
    co_return false;
  }
  ControlAnswer answered = answer(node_, request);
  answered.response.head_only = request.method == "HEAD";
  answered.response.keep_alive = request.keep_alive;
  const bool sent = co_await send(stream, answered.response);
  if (sent && answered.interval && !answered.response.head_only) {
    co_await watch(stream, *answered.interval);
  }
  co_return sent&& request.keep_alive && !answered.interval;
}

Task<bool> ControlServer::send(Stream& stream, const HttpResponse& response) {
  const std::string bytes = to_bytes(response);
  const Share waiting(answers_, bytes.size());
  const auto written = co_await stream.write(bytes, after(limits_.answer));
  co_return written == Stream::Outcome::done;
}

/// An event now and one each interval, until the client goes away or says something, which it has no reason to.
Task<> ControlServer::watch(Stream& stream, std::chrono::milliseconds interval) {
  for (;;) {
    const Nanoseconds next = after(interval);
    const std::string event = stats_event(node_.node());
    const Share waiting(answers_, event.size());
    const auto written = co_await stream.write(event, after(limits_.answer));
    if (written != Stream::Outcome::done) {
      co_return;
    }
    std::string said;
    const auto read = co_await stream.read(said, next);
    if (read != Stream::Outcome::late) {
      co_return;
    }
  }
}

}  // namespace weir
