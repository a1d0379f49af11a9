#pragma once
// HTTP/1.1 as bytes in and bytes out: nothing here reads or writes a socket. Boost.Beast does the parsing; it stays in
// http.cc.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weir/base/error.h>

namespace weir {

/// A request that was read whole.
struct HttpRequest {
  /// Of a body only so much is kept: a connection's memory is bounded, and no request here needs more.
  static constexpr std::size_t kept_body = 16U << 10U;

  std::string method;  ///< as it came: "GET"
  std::string path;    ///< of the target, as it came: "/v1/rules"
  std::string query;   ///< of the target, without '?'
  bool keep_alive = true;
  std::string body;             ///< its first `kept_body` bytes
  std::uint64_t body_size = 0;  ///< that it had
};

/// Reads requests from a stream of bytes. Holds no more than one header and the start of a body.
class HttpRequestReader {
 public:
  static constexpr std::uint32_t header_limit = 16U << 10U;
  static constexpr std::uint64_t body_limit = 1U << 20U;

  enum class State : std::uint8_t {
    more,     ///< needs more bytes
    request,  ///< `request` is whole; the next one begins behind it
    broken,   ///< answer with `status` and `problem`, and close: where the next request begins is not known
  };

  HttpRequestReader();
  ~HttpRequestReader();
  HttpRequestReader(const HttpRequestReader&) = delete;
  HttpRequestReader& operator=(const HttpRequestReader&) = delete;

  /// Takes from the front of `input` what it can use.
  State take(std::string& input);

  [[nodiscard]] const HttpRequest& request() const { return request_; }
  [[nodiscard]] unsigned status() const { return status_; }
  [[nodiscard]] const std::string& problem() const { return problem_; }
  /// True once for a request whose client waits for "100 Continue" before it sends the body.
  bool wants_continue();

 private:
  struct Parser;
  State broken(unsigned status, std::string problem);
  State finish();

  std::unique_ptr<Parser> parser_;
  HttpRequest request_;
  unsigned status_ = 0;
  std::string problem_;
};

/// A part of a path with "%2F" and the like as the bytes they stand for; nothing if that is malformed.
std::optional<std::string> percent_decoded(std::string_view text);

/// A response to be sent.
struct HttpResponse {
  unsigned status = 200;
  std::string type;                                         ///< of the body
  std::vector<std::pair<std::string, std::string>> fields;  ///< others than those that follow from the rest
  std::string body;
  bool keep_alive = true;
  bool head_only = false;  ///< the answer to HEAD: as it would be, without its body
  bool endless = false;    ///< what follows has no known length and ends when the connection does
};
std::string to_bytes(const HttpResponse& response);

inline constexpr const char* http_continue = "HTTP/1.1 100 Continue\r\n\r\n";

/// A request of a client that asks once; `body` is JSON, or empty.
std::string http_request(const std::string& method, const std::string& target, const std::string& body = {});

/// Reads the response to one `http_request`.
class HttpResponseReader {
 public:
  static constexpr std::uint64_t body_limit = 1U << 30U;

  HttpResponseReader();
  ~HttpResponseReader();
  HttpResponseReader(const HttpResponseReader&) = delete;
  HttpResponseReader& operator=(const HttpResponseReader&) = delete;

  /// Takes from the front of `input` what it can use; true when the response is whole.
  Result<bool> take(std::string& input);
  /// The other side has closed. True if that ends the response.
  bool end();

  [[nodiscard]] unsigned status() const;
  [[nodiscard]] const std::string& body() const;

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace weir
