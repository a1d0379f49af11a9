#include <weir/control/http.h>

#include <algorithm>
#include <charconv>

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/http.hpp>
#include <boost/optional.hpp>

namespace weir {

namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;

/// Keeps the start of a body.
struct CutBody {
  struct value_type {
    std::string start;
    std::uint64_t size = 0;
  };
  class reader {
   public:
    template <bool request, class Fields>
    reader(http::header<request, Fields>& /*header*/, value_type& body) : body_(body) {}
    void init(const boost::optional<std::uint64_t>&, error_code& ec) { ec = {}; }
    template <class Buffers>
    std::size_t put(const Buffers& buffers, error_code& ec) {
      ec = {};
      const std::size_t size = boost::asio::buffer_size(buffers);
      body_.size += size;
      if (body_.start.size() < HttpRequest::kept_body) {
        body_.start += boost::beast::buffers_to_string(buffers);
        body_.start.resize(std::min(body_.start.size(), HttpRequest::kept_body));
      }
      return size;
    }
    void finish(error_code& ec) { ec = {}; }

   private:
    value_type& body_;
  };
};

/// Gives the parser `input` until it has a whole message (or, if it is not eager, a header) or wants more.
template <class Parser>
bool advance(Parser& parser, std::string& input, error_code& ec) {
  // A body in chunks ends with "0\r\n\r\n" or more, and Beast asserts that it is given as much when it comes back to
  // it.
  const std::size_t least = parser.is_header_done() && parser.chunked() ? 5 : 1;
  std::size_t used = 0;
  bool more = true;
  while (more && !ec && !parser.is_done() && used + least <= input.size()) {
    used += parser.put(boost::asio::buffer(input.data() + used, input.size() - used), ec);
    more = parser.eager();
  }
  if (ec == http::error::need_more) {
    ec = {};
  }
  input.erase(0, used);
  return parser.is_done();
}

template <class Message>
std::string header_of(const Message& message) {
  http::serializer<Message::is_request::value, http::empty_body> serializer(message);
  serializer.split(true);
  std::string bytes;
  error_code ec;
  serializer.next(ec, [&](error_code&, const auto& buffers) { bytes = boost::beast::buffers_to_string(buffers); });
  return bytes;
}

/// The path and the query of a target: "/a?b", or "http://host/a?b" as RFC 9112, section 3.2.2, has it.
std::pair<std::string, std::string> split_target(std::string target) {
  constexpr std::string_view scheme = "http://";
  if (target.starts_with(scheme)) {
    const std::size_t path = target.find('/', scheme.size());
    target = path == std::string::npos ? "/" : target.substr(path);
  }
  const std::size_t mark = target.find('?');
  return mark == std::string::npos ? std::pair(target, std::string())
                                   : std::pair(target.substr(0, mark), target.substr(mark + 1));
}

}  // namespace

struct HttpRequestReader::Parser : http::request_parser<CutBody> {
  Parser() {
    header_limit(HttpRequestReader::header_limit);
    body_limit(HttpRequestReader::body_limit);
    eager(false);
  }
  std::size_t header_bytes = 0;
  bool continued = false;
};

HttpRequestReader::HttpRequestReader() : parser_(std::make_unique<Parser>()) {}
HttpRequestReader::~HttpRequestReader() = default;

HttpRequestReader::State HttpRequestReader::take(std::string& input) {
  if (status_ != 0) {
    return State::broken;
  }
  error_code ec;
  if (!parser_->is_header_done()) {
    // Beast's limit is for what it has not consumed yet, and it consumes field by field.
    const std::size_t before = input.size();
    advance(*parser_, input, ec);
    parser_->header_bytes += before - input.size();
    const std::size_t begun = parser_->is_header_done() ? 0 : input.size();
    if (ec == http::error::header_limit || (!ec && parser_->header_bytes + begun > header_limit)) {
      return broken(431, fmt::format("the request's header is longer than {} bytes", header_limit));
    }
    parser_->eager(parser_->is_header_done());
  }
  if (!ec && parser_->is_header_done() && advance(*parser_, input, ec)) {
    return finish();
  }
  if (ec == http::error::body_limit) {
    return broken(413, fmt::format("the request's body is longer than {} bytes", body_limit));
  }
  if (ec) {
    return broken(400, fmt::format("this is no HTTP/1.1 request: {}", ec.message()));
  }
  if (input.size() > header_limit) {  // a chunk's header or the fields behind the last one, which are read at once
    return broken(431, fmt::format("the head or tail of a chunk is longer than {} bytes", header_limit));
  }
  return State::more;
}

HttpRequestReader::State HttpRequestReader::finish() {
  auto message = parser_->release();
  // RFC 9112, section 3.2: exactly one Host.
  if (const auto hosts = message.count(http::field::host); hosts > 1 || (hosts == 0 && message.version() > 10)) {
    return broken(400, fmt::format("{} Host fields in the request's header; there must be one", hosts));
  }
  request_.method = std::string(message.method_string());
  std::tie(request_.path, request_.query) = split_target(std::string(message.target()));
  request_.keep_alive = message.keep_alive();
  request_.body = std::move(message.body().start);
  request_.body_size = message.body().size;
  parser_ = std::make_unique<Parser>();
  return State::request;
}

HttpRequestReader::State HttpRequestReader::broken(unsigned status, std::string problem) {
  status_ = status;
  problem_ = std::move(problem);
  return State::broken;
}

bool HttpRequestReader::wants_continue() {
  if (parser_->continued || !parser_->is_header_done() || parser_->is_done()) {
    return false;
  }
  parser_->continued = true;
  return boost::beast::iequals(parser_->get()[http::field::expect], "100-continue");
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  while (!text.empty()) {
    if (text.front() != '%') {
      decoded += text.front();
      text.remove_prefix(1);
      continue;
    }
    unsigned byte = 0;
    const std::string_view digits = text.substr(1, 2);
    const auto [at, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (failure != std::errc{} || digits.size() != 2 || at != digits.data() + 2) {
      return std::nullopt;
    }
    decoded += static_cast<char>(byte);
    text.remove_prefix(3);
  }
  return decoded;
}

std::string to_bytes(const HttpResponse& response) {
  http::response<http::empty_body> header(static_cast<http::status>(response.status), 11);
  header.set(http::field::server, "weir");
  header.set(http::field::cache_control, "no-store");
  if (!response.type.empty()) {
    header.set(http::field::content_type, response.type);
  }
  for (const auto& [name, value] : response.fields) {
    header.set(name, value);
  }
  if (!response.endless) {
    header.content_length(response.body.size());
  }
  header.keep_alive(response.keep_alive && !response.endless);
  std::string bytes = header_of(header);
  return response.head_only ? bytes : bytes + response.body;
}

std::string http_request(const std::string& method, const std::string& target, const std::string& body) {
  http::request<http::empty_body> header(http::string_to_verb(method), target, 11);
  header.set(http::field::host, "weir");
  header.keep_alive(false);
  if (!body.empty()) {
    header.set(http::field::content_type, "application/json");
    header.content_length(body.size());
  }
  return header_of(header) + body;
}

struct HttpResponseReader::Parser : http::response_parser<http::string_body> {
  Parser() {
    body_limit(HttpResponseReader::body_limit);
    eager(true);
  }
};

HttpResponseReader::HttpResponseReader() : parser_(std::make_unique<Parser>()) {}
HttpResponseReader::~HttpResponseReader() = default;

Result<bool> HttpResponseReader::take(std::string& input) {
  error_code ec;
  const bool whole = advance(*parser_, input, ec);
  if (ec) {
    return error("what came back is no HTTP/1.1 response: {}", ec.message());
  }
  return whole;
}

bool HttpResponseReader::end() {
  error_code ec;
  if (parser_->got_some()) {
    parser_->put_eof(ec);
  }
  return !ec && parser_->is_done();
}

unsigned HttpResponseReader::status() const { return parser_->get().result_int(); }
const std::string& HttpResponseReader::body() const { return parser_->get().body(); }

}  // namespace weir
