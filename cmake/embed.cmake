# A script: writes the C++ file SOURCE that holds the bytes of the file OBJECT, as NAME in the namespace of MODULE.

file(READ ${OBJECT} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
file(WRITE ${SOURCE} "#include <span>

namespace weir::${MODULE}_internal {

namespace {
alignas(8) constexpr unsigned char bytes[] = {${bytes}};
}

extern const std::span<const unsigned char> ${NAME};
const std::span<const unsigned char> ${NAME}{bytes};

}  // namespace weir::${MODULE}_internal
")
