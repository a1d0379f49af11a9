// The one place that reads YAML: events of yaml-cpp become a Config, within limits, each node with its place.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <istream>
#include <map>
#include <optional>
#include <streambuf>
#include <unordered_map>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <weir/base/config.h>

namespace weir {

namespace {

/// Thrown out of yaml-cpp's parser, and caught below.
struct Refused {
  Error error;
};

/// Reads a string where it is; yaml-cpp wants a stream.
class View final : public std::streambuf {
 public:
  explicit View(std::string_view text) {
    char* start = const_cast<char*>(text.data());  // never written: there is no put area
    setg(start, start, start + text.size());
  }
};

class Builder final : public YAML::EventHandler {
 public:
  Builder(std::string_view text, std::shared_ptr<const std::string> name, bool places)
      : text_(text), name_(std::move(name)), places_(places) {}

  [[nodiscard]] Config::Place at(const YAML::Mark& mark) const {
    if (!places_ || mark.is_null()) {
      return {name_, 0, 0};
    }
    return {name_, static_cast<std::uint32_t>(mark.line + 1), static_cast<std::uint32_t>(mark.column + 1)};
  }
  [[noreturn]] static void refuse(const Config::Place& place, std::string message) {
    throw Refused{Error{std::move(message)}.at(place.to_string())};
  }
  /// The document that was read, to make room for the next one.
  Config take() { return std::exchange(root_, {}); }

  void OnDocumentStart(const YAML::Mark& /*mark*/) override { anchors_.clear(); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    count(mark, 1);
    put(Config::null(at(mark)), "", anchor, 1);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = anchors_.find(anchor);
    if (known == anchors_.end()) {
      refuse(at(mark), "an alias inside of what it stands for; write it out");
    }
    count(mark, known->second.nodes);
    put(known->second.value, known->second.text, 0, known->second.nodes);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    count(mark, 1);
    if (tag == "!") {
      require_closed(mark);
    }
    put(Config::scalar(at(mark), value, tag == "!"), value, anchor, 1);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(mark, anchor, false);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(mark, anchor, true);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Config::Place place;
    YAML::anchor_t anchor;
    bool is_map;
    std::size_t nodes = 1;
    std::vector<Config> items;
    std::vector<Config::Entry> entries;
    std::unordered_map<std::string, std::size_t> names;
    std::optional<Config::Entry> pending;  // a key that waits for its value
  };
  struct Anchored {
    Config value;
    std::string text;
    std::size_t nodes;
  };

  void count(const YAML::Mark& mark, std::size_t nodes) {
    nodes_ += nodes;
    if (nodes_ > Config::node_limit) {
      refuse(at(mark),
             fmt::format("more than {} values, with what aliases repeat; split the file", Config::node_limit));
    }
  }

  // yaml-cpp takes a line's end at the end of the file for the closing quote.
  void require_closed(const YAML::Mark& mark) const {
    const auto start = static_cast<std::size_t>(mark.pos);
    const char quote = start < text_.size() ? text_[start] : ' ';
    if (quote != '\'' && quote != '"') {
      return;
    }
    for (std::size_t i = start + 1; i < text_.size(); ++i) {
      const bool doubled = quote == '\'' && i + 1 < text_.size() && text_[i + 1] == quote;
      if (text_[i] == quote && !doubled) {
        return;
      }
      i += (quote == '"' && text_[i] == '\\') || (text_[i] == quote && doubled) ? 1 : 0;
    }
    refuse(at(mark), "a quote that is not closed");
  }

  void open(const YAML::Mark& mark, YAML::anchor_t anchor, bool is_map) {
    count(mark, 1);
    if (open_.size() == Config::depth_limit) {
      refuse(at(mark), fmt::format("nested more than {} levels deep", Config::depth_limit));
    }
    if (!open_.empty() && open_.back().is_map && !open_.back().pending) {
      refuse(at(mark), fmt::format("a {} as a key; keys are plain words", is_map ? "map" : "list"));
    }
    open_.push_back({at(mark), anchor, is_map, 1, {}, {}, {}, {}});
  }

  void close() {
    Open closed = std::move(open_.back());
    open_.pop_back();
    Config value = closed.is_map ? Config::map(closed.place, std::move(closed.entries))
                                 : Config::list(closed.place, std::move(closed.items));
    put(std::move(value), "", closed.anchor, closed.nodes);
  }

  void put(Config value, const std::string& text, YAML::anchor_t anchor, std::size_t nodes) {
    if (anchor != 0) {
      anchors_[anchor] = {value, text, nodes};
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return;
    }
    Open& top = open_.back();
    top.nodes += nodes;
    if (!top.is_map) {
      top.items.push_back(std::move(value));
    } else if (top.pending) {
      top.pending->value = std::move(value);
      top.entries.push_back(std::move(*top.pending));
      top.pending.reset();
    } else {
      if (value.kind() != Config::Kind::scalar) {
        throw Refused{value.error("{} as a key; keys are plain words", value.found()).error()};
      }
      const auto [first, fresh] = top.names.try_emplace(text, top.entries.size());
      if (!fresh) {
        throw Refused{value
                          .error("'{}' is there twice; the first is at {}; remove one", text,
                                 top.entries[first->second].key.place())
                          .error()};
      }
      top.pending = Config::Entry{std::move(value), text, {}};
    }
  }

  std::string_view text_;
  std::shared_ptr<const std::string> name_;
  bool places_;
  std::size_t nodes_ = 0;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  Config root_;
};

/// The length of the UTF-8 character at `text`, or 0.
std::size_t character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = byte(0) < 0x80                      ? 1
                             : byte(0) >= 0xc2 && byte(0) < 0xe0 ? 2
                             : byte(0) >= 0xe0 && byte(0) < 0xf0 ? 3
                             : byte(0) >= 0xf0 && byte(0) < 0xf5 ? 4
                                                                 : 0;
  if (length == 0 || length > text.size()) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) {
      return 0;
    }
  }
  return length;
}

/// What yaml-cpp would pass over, or report far from its cause: what is no text, and tabs that indent.
Result<> check_text(std::string_view text, const std::shared_ptr<const std::string>& name) {
  std::uint32_t line = 1;
  std::uint32_t column = 1;
  bool indenting = true;
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t length = character(text.substr(i));
    const auto refuse = [&](std::string message) {
      return Result<>(std::unexpected(Error{std::move(message)}.at(Config::Place{name, line, column}.to_string())));
    };
    if (length == 0 || byte == 0x7f || (byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t')) {
      return refuse(fmt::format("byte 0x{:02x} is no text; a YAML file in UTF-8 is wanted", byte));
    }
    if (byte == '\t' && indenting) {
      const std::size_t next = text.find_first_not_of(" \t", i);
      if (next != std::string_view::npos && text[next] != '\n' && text[next] != '\r' && text[next] != '#') {
        return refuse("a tab in the indentation; YAML wants spaces");
      }
    }
    indenting = byte == '\n' || (indenting && (byte == ' ' || byte == '\t'));
    line += byte == '\n' ? 1 : 0;
    column = byte == '\n' ? 1 : column + 1;
    i += length;
  }
  return {};
}

/// yaml-cpp's message, with what to do about it.
std::string explain(const std::string& message) {
  static const std::map<std::string, const char*> remedies{
      {"end of map not found", "check the indentation here, and that every key ends with ': '"},
      {"end of map flow not found", "a '{' is not closed, or a comma is missing"},
      {"end of sequence not found", "check the indentation here; every item of a list begins with '- '"},
      {"end of sequence flow not found", "a '[' is not closed, or a comma is missing"},
      {"illegal map value", "put the value in quotes if it contains ': '"},
      {"illegal EOF in scalar", "a quote is not closed"},
      {"unknown token", "put the value in quotes"},
  };
  const auto known = remedies.find(message);
  return known == remedies.end() ? fmt::format("{}; this is not valid YAML", message)
                                 : fmt::format("{}; {}", message, known->second);
}

/// All documents of a text.
Result<std::vector<Config>> read(std::string_view text, std::string name, bool places) {
  auto shared = std::make_shared<const std::string>(std::move(name));
  if (text.size() > Config::byte_limit) {
    return error("{}: {} bytes, and the limit is {}; is this the right file?", *shared, text.size(),
                 Config::byte_limit);
  }
  if (auto checked = check_text(text, shared); !checked) {
    return std::unexpected(checked.error());
  }
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (text.starts_with(byte_order_mark)) {
    text.remove_prefix(byte_order_mark.size());
  }
  Builder builder(text, shared, places);
  try {
    View view(text);
    std::istream stream(&view);
    YAML::Parser parser(stream);
    std::vector<Config> documents;
    while (parser.HandleNextDocument(builder)) {
      documents.push_back(builder.take());
    }
    return documents;
  } catch (const Refused& refused) {
    return std::unexpected(refused.error);
  } catch (const YAML::Exception& exception) {
    return std::unexpected(Error{explain(exception.msg)}.at(builder.at(exception.mark).to_string()));
  } catch (const std::exception& exception) {
    return error("{}: {}", *shared, exception.what());
  }
}

/// The one document of a text.
Result<Config> read_one(std::string_view text, const std::string& name, bool places) {
  const auto documents = read(text, name, places);
  if (!documents) {
    return std::unexpected(documents.error());
  }
  if (documents->size() > 1) {
    return (*documents)[1].error("a second document; one file holds one");
  }
  return documents->empty() ? Config::null({std::make_shared<const std::string>(name), 0, 0}) : documents->front();
}

Result<std::string> read_bytes(const std::string& path) {
  const auto refuse = [&](int reason) {
    const char* remedy = reason == ENOENT   ? "; check the path"
                         : reason == EACCES ? "; give yourself the right to read it"
                                            : "";
    return error("cannot read {}: {}{}", path, std::strerror(reason), remedy);
  };
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    return refuse(errno);
  }
  struct stat status{};
  std::string text;
  int reason = fstat(descriptor, &status) == 0 ? 0 : errno;
  if (reason == 0 && S_ISDIR(status.st_mode)) {
    reason = EISDIR;
  }
  while (reason == 0 && text.size() <= Config::byte_limit) {
    constexpr std::size_t piece = 65'536;
    const std::size_t had = text.size();
    text.resize(had + piece);
    const ssize_t got = ::read(descriptor, text.data() + had, piece);
    text.resize(had + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (got == 0) {
      break;
    }
    if (got < 0 && errno != EINTR) {
      reason = errno;
    }
  }
  close(descriptor);
  if (reason == EISDIR) {
    return error("{} is a directory; give a YAML file", path);
  }
  if (reason != 0) {
    return refuse(reason);
  }
  return text;
}

}  // namespace

Result<std::string> Config::read_text(const std::string& path) { return read_bytes(path); }

Result<Config> Config::read_file(const std::string& path) {
  auto text = read_bytes(path);
  if (!text) {
    return std::unexpected(text.error());
  }
  if (text->find_first_not_of(" \t\r\n") == std::string::npos) {
    return weir::error("{} is empty", path);
  }
  return read_one(*text, path, true);
}

Result<std::vector<Config>> Config::read_documents(const std::string& path) {
  const auto text = read_bytes(path);
  return text ? parse_documents(*text, path) : std::unexpected(text.error());
}

Result<Config> Config::parse(std::string_view text, std::string name) { return read_one(text, name, true); }

Result<std::vector<Config>> Config::parse_documents(std::string_view text, std::string name) {
  auto documents = read(text, std::move(name), true);
  if (documents) {
    std::erase_if(*documents, &Config::is_null);
  }
  return documents;
}

Result<Config> Config::parse_argument(std::string_view text, std::string name) { return read_one(text, name, false); }

}  // namespace weir
