#pragma once
// Serves what a node says of itself (docs/openapi.yaml) on its control socket, while it runs.

#include <chrono>
#include <memory>
#include <thread>

#include <weir/base/loop.h>
#include <weir/control/control_socket.h>
#include <weir/control/http.h>
#include <weir/control/managed_node.h>

namespace weir {

class Stream;

/// What clients may cost.
struct ControlLimits {
  unsigned connections = 1024;                ///< at a time; one more is answered 503 and closed
  std::size_t answers = 64U << 20U;           ///< bytes of answers that wait to be read; beyond, 503
  std::chrono::milliseconds idle{60'000};     ///< a connection without a request is closed after so long
  std::chrono::milliseconds request{10'000};  ///< from a request's first byte to its last; later, 408
  std::chrono::milliseconds answer{30'000};   ///< for an answer to be read; then the connection is closed
};

/// One thread with a loop of its own, which no packet waits for. Lives shorter than its node.
class ControlServer {
 public:
  /// Serves from now on. The node was started: what it says before that is empty.
  static Result<std::unique_ptr<ControlServer>> start(ManagedNode& node, ControlSocket socket,
                                                      ControlLimits limits = {});
  /// Closes all connections and removes the socket.
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

 private:
  ControlServer(ManagedNode& node, ControlSocket socket, ControlLimits limits);

  Task<> accept();
  void admit(Descriptor connection);
  Task<> serve(Descriptor connection);
  Task<bool> serve_one(Stream& stream, HttpRequestReader& reader, std::string& input);
  Task<bool> send(Stream& stream, const HttpResponse& response);
  Task<> watch(Stream& stream, std::chrono::milliseconds interval);
  [[nodiscard]] Nanoseconds after(std::chrono::milliseconds duration) const;

  ManagedNode& node_;
  ControlSocket socket_;
  ControlLimits limits_;
  unsigned connections_ = 0;
  std::size_t answers_ = 0;  ///< bytes that wait to be read
  SystemClock clock_;
  std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace weir
