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

std::uint64_t hash(const Key& key, const Key& mask) {
  std::uint64_t result = 0x2545f4914f6cdd1dU;
  for (std::size_t i = 0; i < Key::words; ++i) {
    result = multiply_fold((key.word(i) & mask.word(i)) ^ result, 0x9e3779b97f4a7c15U + 2 * i);
  }
  return result;
}

}  // namespace weir::classifier_detail
