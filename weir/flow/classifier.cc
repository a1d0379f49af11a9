#include <weir/flow/classifier.h>

namespace weir::classifier_detail {

Key coarse(const Key& mask) {
  Key result = mask;
  for (auto& field : {&result.src, &result.dst}) {
    for (std::uint8_t& byte : *field) {
      byte = byte == 0xff ? 0xff : 0;
    }
  }
  for (auto& field : {&result.src_port, &result.dst_port}) {
    if ((*field)[0] != 0xff || (*field)[1] != 0xff) {
      field->fill(0);
    }
  }
  return result;
}

namespace {

// Between a word as Key::word gives it and the number that its bytes are in network order.
std::uint64_t big(std::uint64_t word) {
  return std::endian::native == std::endian::little ? std::byteswap(word) : word;
}

}  // namespace

void Neighbours::assign(std::vector<std::uint64_t> values, std::uint64_t mask) {
  mask_ = mask;
  for (std::uint64_t& value : values) {
    value = big(value & mask);
  }
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  values_ = std::move(values);
}

std::uint64_t Neighbours::proof(std::uint64_t value) const {
  if (mask_ == 0) {
    return 0;
  }
  const std::uint64_t number = big(value & mask_);
  const auto above = std::ranges::lower_bound(values_, number);
  if (above != values_.end() && *above == number) {
    return 0;
  }
  // The next values on both sides share the longest prefixes with it; one bit more tells it from all of them.
  int shared = 0;
  if (above != values_.end()) {
    shared = std::max(shared, std::countl_zero(*above ^ number));
  }
  if (above != values_.begin()) {
    shared = std::max(shared, std::countl_zero(*std::prev(above) ^ number));
  }
  const int bits = (shared / 8 + 1) * 8;
  return big(~std::uint64_t{0} << (64 - bits)) & mask_;
}

std::uint64_t hash(const Key& key, const Key& mask) {
  std::uint64_t result = 0x2545f4914f6cdd1dU;
  for (std::size_t i = 0; i < Key::words; ++i) {
    result = multiply_fold((key.word(i) & mask.word(i)) ^ result, 0x9e3779b97f4a7c15U + 2 * i);
  }
  return result;
}

}  // namespace weir::classifier_detail
