#include <weir/control/http.h>

#include <gtest/gtest.h>

namespace weir {
namespace {

using State = HttpRequestReader::State;

TEST(HttpRequestReader, ReadsARequestByteByByte) {
  HttpRequestReader reader;
  const std::string bytes = "GET /v1/rules?limit=3 HTTP/1.1\r\nHost: x\r\n\r\n";
  std::string input;
  for (const char byte : bytes.substr(0, bytes.size() - 1)) {
    input += byte;
    ASSERT_EQ(reader.take(input), State::more);
  }
  input += bytes.back();
  ASSERT_EQ(reader.take(input), State::request);
  EXPECT_EQ(input, "");
  EXPECT_EQ(reader.request().method, "GET");
  EXPECT_EQ(reader.request().path, "/v1/rules");
  EXPECT_EQ(reader.request().query, "limit=3");
  EXPECT_TRUE(reader.request().keep_alive);
}

TEST(HttpRequestReader, ReadsPipelinedRequestsAndTheirBodies) {
  HttpRequestReader reader;
  std::string input =
      "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
      "PUT /b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
      "PUT /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
      "GET http://host/d?e HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
      "GET /f HTTP/1.0\r\n\r\nGET";
  for (const char* path : {"/a", "/b", "/c", "/d", "/f"}) {
    ASSERT_EQ(reader.take(input), State::request) << path << reader.problem();
    EXPECT_EQ(reader.request().path, path);
    EXPECT_EQ(reader.request().keep_alive, path < std::string("/d"));
    EXPECT_EQ(reader.request().body, path == std::string("/b") ? "hello" : path == std::string("/c") ? "abc" : "");
    EXPECT_EQ(reader.request().body_size, reader.request().body.size());
  }
  EXPECT_EQ(reader.take(input), State::more);
}

TEST(HttpRequestReader, SaysWhatIsWrong) {
  const std::string host = "Host: x\r\n";
  std::string fields;
  for (int i = 0; i < 3000; ++i) {
    fields += "X: y\r\n";
  }
  const struct {
    const char* what;
    std::string bytes;
    unsigned status;
  } cases[] = {
      {"no HTTP", "hello\r\n\r\n", 400},
      {"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
      {"no Host", "GET / HTTP/1.1\r\n\r\n", 400},
      {"two Hosts", "GET / HTTP/1.1\r\n" + host + host + "\r\n", 400},
      {"a bad field", "GET / HTTP/1.1\r\nbad field: x\r\n\r\n", 400},
      {"a length that is none", "GET / HTTP/1.1\r\n" + host + "Content-Length: -1\r\n\r\n", 400},
      {"two lengths", "PUT / HTTP/1.1\r\n" + host + "Content-Length: 3\r\nContent-Length: 4\r\n\r\n", 400},
      {"a length and chunks", "PUT / HTTP/1.1\r\n" + host + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
       400},
      {"a long line", "GET /" + std::string(20'000, 'a'), 431},
      {"a long header", "GET / HTTP/1.1\r\nX: " + std::string(20'000, 'a'), 431},
      {"a long header of short fields", "GET / HTTP/1.1\r\n" + fields, 431},
      {"a long header of short fields that ends", "GET / HTTP/1.1\r\n" + fields + host + "\r\n", 431},
      {"a long extension of a chunk",
       "PUT / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n1;" + std::string(20'000, 'a'), 431},
      {"long trailers", "PUT / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + fields, 431},
      {"a long body", "PUT / HTTP/1.1\r\n" + host + "Content-Length: 1048577\r\n\r\n", 413},
      {"a long body in chunks",
       "PUT / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n100001\r\n" + std::string(0x100001, 'a'), 413},
  };
  for (const auto& c : cases) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{1000}, std::size_t{16'384}, c.bytes.size()}) {
      HttpRequestReader reader;
      std::string input;
      State state = State::more;
      for (std::size_t at = 0; at < c.bytes.size() && state == State::more; at += piece) {
        input += c.bytes.substr(at, piece);
        state = reader.take(input);
        EXPECT_LE(input.size(), HttpRequestReader::header_limit + piece) << c.what;
      }
      EXPECT_EQ(state, State::broken) << c.what << " in pieces of " << piece;
      EXPECT_EQ(reader.status(), c.status) << c.what << " in pieces of " << piece << ": " << reader.problem();
      EXPECT_EQ(reader.take(input), State::broken) << c.what;
    }
  }
}

TEST(HttpRequestReader, KeepsTheStartOfALongBody) {
  HttpRequestReader reader;
  std::string input = "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + std::string(500'000, 'a');
  EXPECT_EQ(reader.take(input), State::more);
  input += std::string(500'000, 'b');
  ASSERT_EQ(reader.take(input), State::request);
  EXPECT_EQ(reader.request().body, std::string(HttpRequest::kept_body, 'a'));
  EXPECT_EQ(reader.request().body_size, 1'000'000U);
}

TEST(PercentDecoded, GivesTheBytes) {
  EXPECT_EQ(percent_decoded("a%2fb%20%C3%A4"), "a/b \xc3\xa4");
  EXPECT_EQ(percent_decoded(""), "");
  for (const char* wrong : {"%", "%1", "a%", "%zz", "%+1", "%-1", "%1g"}) {
    EXPECT_EQ(percent_decoded(wrong), std::nullopt) << wrong;
  }
}

TEST(HttpRequestReader, SaysOnceThatTheClientWaits) {
  HttpRequestReader reader;
  std::string input = "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
  EXPECT_EQ(reader.take(input), State::more);
  EXPECT_TRUE(reader.wants_continue());
  EXPECT_FALSE(reader.wants_continue());
  input = "ok";
  EXPECT_EQ(reader.take(input), State::request);
}

TEST(HttpResponse, IsReadAsItWasWritten) {
  std::string bytes = to_bytes({.status = 404, .type = "text/plain", .fields = {{"Allow", "GET"}}, .body = "none"});
  EXPECT_TRUE(bytes.starts_with("HTTP/1.1 404 Not Found\r\n")) << bytes;
  EXPECT_NE(bytes.find("Allow: GET\r\n"), std::string::npos);
  HttpResponseReader reader;
  std::string input = bytes.substr(0, 20);
  EXPECT_FALSE(reader.take(input).value());
  input += bytes.substr(20);
  EXPECT_TRUE(reader.take(input).value());
  EXPECT_EQ(reader.status(), 404U);
  EXPECT_EQ(reader.body(), "none");
}

TEST(HttpResponse, ToHeadHasTheLengthWithoutTheBody) {
  const std::string bytes = to_bytes({.body = "12345", .head_only = true});
  EXPECT_NE(bytes.find("Content-Length: 5\r\n"), std::string::npos);
  EXPECT_TRUE(bytes.ends_with("\r\n\r\n"));
}

TEST(HttpResponse, ThatIsEndlessEndsWithTheConnection) {
  const std::string bytes = to_bytes({.type = "text/event-stream", .endless = true});
  EXPECT_EQ(bytes.find("Content-Length"), std::string::npos);
  EXPECT_NE(bytes.find("Connection: close\r\n"), std::string::npos);
  HttpResponseReader reader;
  std::string input = bytes + "data";
  EXPECT_FALSE(reader.take(input).value());
  EXPECT_TRUE(reader.end());
  EXPECT_EQ(reader.body(), "data");
}

}  // namespace
}  // namespace weir
