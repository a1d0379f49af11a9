#include <weir/control/control_client.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <sys/socket.h>

#include <weir/control/control_socket.h>
#include <weir/control/http.h>
#include <weir/control/internal/json.h>

namespace weir {

namespace {

constexpr timeval patience{.tv_sec = 30, .tv_usec = 0};

/// Sends `bytes`, then reads what comes until the response is whole.
Result<> exchange(int socket, const std::string& bytes, HttpResponseReader& reader) {
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = ::send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno != EINTR) {
      return error("the node does not take the request: {}", std::strerror(errno));
    }
    sent += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
  std::string input;
  std::array<char, 64U << 10U> piece;
  for (;;) {
    const ssize_t count = ::recv(socket, piece.data(), piece.size(), 0);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0 && errno == EAGAIN) {
      return error("the node has not answered for {} s; is it stopped?", patience.tv_sec);
    }
    if (count <= 0) {
      return reader.end() ? Result<>() : error("the node went away before it had answered; is it still running?");
    }
    input.append(piece.data(), static_cast<std::size_t>(count));
    const auto whole = reader.take(input);
    if (!whole) {
      return std::unexpected(whole.error());
    }
    if (*whole) {
      return {};
    }
  }
}

std::unexpected<Error> refusal(const HttpResponseReader& reader) {
  const Json json = Json::parse(reader.body(), nullptr, false);
  if (json.is_object()) {
    return error("the node refuses: {}; {}", json.value("error", "?"), json.value("remedy", "?"));
  }
  return error("the node answers with status {}; is it of another version of weir?", reader.status());
}

}  // namespace

Result<std::string> ask_control(const std::filesystem::path& socket, const ControlRequest& request) {
  const auto connection = connect_control(socket);
  if (!connection) {
    return std::unexpected(connection.error());
  }
  ::setsockopt(connection->get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  HttpResponseReader reader;
  if (auto exchanged = exchange(connection->get(), http_request(request.method, request.target, request.body), reader);
      !exchanged) {
    return std::unexpected(exchanged.error().at(socket.string()));
  }
  if (reader.status() / 100 != 2) {
    return std::unexpected(refusal(reader).error().at(socket.string()));
  }
  return reader.body();
}

}  // namespace weir
