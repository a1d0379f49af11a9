#pragma once
// The pieces that rtnetlink messages are made of (netlink(7), rtnetlink(7)).

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

namespace weir::device_internal {

/// A request: a header, a fixed part and attributes.
class NetlinkRequest {
 public:
  NetlinkRequest(std::uint16_t type, std::uint16_t flags) {
    const nlmsghdr header{.nlmsg_type = type, .nlmsg_flags = static_cast<std::uint16_t>(flags | NLM_F_REQUEST)};
    fixed(header);
  }

  template <class T>
  void fixed(const T& part) {
    append(&part, sizeof part);
  }

  void attribute(std::uint16_t type, const void* value, std::size_t size) {
    const rtattr head{static_cast<std::uint16_t>(RTA_LENGTH(size)), type};
    append(&head, sizeof head);
    append(value, size);
  }
  template <class T>
  void attribute(std::uint16_t type, const T& value) {
    attribute(type, &value, sizeof value);
  }

  std::span<std::uint8_t> bytes() {
    const auto size = static_cast<std::uint32_t>(bytes_.size());
    std::memcpy(bytes_.data() + offsetof(nlmsghdr, nlmsg_len), &size, sizeof size);
    return bytes_;
  }

 private:
  void append(const void* part, std::size_t size) {
    const auto* from = static_cast<const std::uint8_t*>(part);
    bytes_.insert(bytes_.end(), from, from + size);
    bytes_.resize(NLMSG_ALIGN(bytes_.size()));
  }

  std::vector<std::uint8_t> bytes_;
};

template <class T>
T value_of(std::span<const std::uint8_t> bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), std::min(sizeof value, bytes.size()));
  return value;
}

inline std::string text_of(std::span<const std::uint8_t> bytes) {
  const auto end = std::ranges::find(bytes, 0);
  return {bytes.begin(), end};
}

/// Calls each(type, value) for the attributes that fill `bytes`.
template <class Each>
void for_each_attribute(std::span<const std::uint8_t> bytes, Each each) {
  while (bytes.size() >= sizeof(rtattr)) {
    const auto head = value_of<rtattr>(bytes);
    if (head.rta_len < sizeof(rtattr) || head.rta_len > bytes.size()) {
      return;
    }
    each(head.rta_type & NLA_TYPE_MASK, bytes.subspan(sizeof head, head.rta_len - sizeof head));
    bytes = bytes.subspan(std::min<std::size_t>(RTA_ALIGN(head.rta_len), bytes.size()));
  }
}

}  // namespace weir::device_internal
