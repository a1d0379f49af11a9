// The reader of HTTP requests: any bytes end in requests and at most one error; how they are cut into pieces does not
// matter, and what waits to be understood stays within the limit.

#include <cstdlib>

#include <weir/control/http.h>

namespace {

using weir::HttpRequestReader;

/// The requests in `bytes`, given in pieces of `piece`.
std::vector<std::string> requests(const std::string& bytes, std::size_t piece) {
  std::vector<std::string> found;
  HttpRequestReader reader;
  std::string input;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    input += bytes.substr(at, piece);
    auto state = reader.take(input);
    while (state == HttpRequestReader::State::request) {
      const weir::HttpRequest& request = reader.request();
      if (request.body.size() > weir::HttpRequest::kept_body || request.body.size() > request.body_size) {
        std::abort();
      }
      found.push_back(fmt::format("{} {} {} {} {} {}", request.method, request.path, request.query, request.keep_alive,
                                  request.body, request.body_size));
      state = reader.take(input);
    }
    if (state == HttpRequestReader::State::broken) {
      if (reader.status() < 400 || reader.problem().empty() || reader.take(input) != state) {
        std::abort();
      }
      return found;
    }
    if (input.size() > HttpRequestReader::header_limit) {
      std::abort();
    }
    static_cast<void>(reader.wants_continue());
  }
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (requests(bytes, 1 + data[0] % 32U) != requests(bytes, bytes.size() + 1)) {
    std::abort();
  }
  return 0;
}
