# weir_bpf(MODULE FILE.bpf.c): compiles a BPF program of a module and puts its object into the module's library, as
# std::span<const unsigned char> FILE_object in the module's internal namespace.

find_program(BPF_CLANG NAMES clang-19 clang REQUIRED)

function(weir_bpf module file)
  set(source ${CMAKE_SOURCE_DIR}/weir/${module}/${file})
  cmake_path(GET source STEM name)  # without all of its extensions
  set(object ${CMAKE_BINARY_DIR}/bpf/${name}.bpf.o)
  set(embedded ${CMAKE_BINARY_DIR}/bpf/${name}.bpf.cc)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/bpf)
  # The architecture's own headers are not on the search path of the target bpf.
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${BPF_CLANG} -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Werror
      -isystem /usr/include/${CMAKE_LIBRARY_ARCHITECTURE} -c ${source} -o ${object}
    DEPENDS ${source} VERBATIM)
  add_custom_command(
    OUTPUT ${embedded}
    COMMAND ${CMAKE_COMMAND} -DOBJECT=${object} -DSOURCE=${embedded} -DNAME=${name}_object -DMODULE=${module}
      -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${object} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
  target_sources(weir_${module} PRIVATE ${embedded})
endfunction()
