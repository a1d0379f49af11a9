# Every header compiles alone: for each one a source file that includes it twice and nothing else, built with the
# include path of its own module. A header that misses an include, lacks its guard, or includes a later layer breaks
# the build.

option(WEIR_HEADER_CHECK "Compile every header alone" ${WEIR_TESTS})

# weir_header_check(NAME LIBRARY INCLUDE header...): headers as they are included, NAME for the target.
function(weir_header_check name library include)
  set(sources "")
  foreach(header ${ARGN})
    set(source ${CMAKE_BINARY_DIR}/header_check/${header}.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include <@header@>\n#include <@header@>\n" @ONLY)
    list(APPEND sources ${source})
  endforeach()
  if(sources)
    add_library(header_check_${name} OBJECT ${sources})
    target_link_libraries(header_check_${name} PRIVATE ${library})
    target_include_directories(header_check_${name} PRIVATE ${include})
    target_compile_options(header_check_${name} PRIVATE ${WEIR_WARNINGS} -O0 -g0)
    add_dependencies(header_check header_check_${name})
  endif()
endfunction()

add_custom_target(header_check)
if(WEIR_HEADER_CHECK)
  get_property(modules GLOBAL PROPERTY WEIR_MODULES)
  foreach(module ${modules})
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} weir/${module}/*.h)
    weir_header_check(${module} weir_${module} ${CMAKE_BINARY_DIR}/include-internal/${module} ${headers})
  endforeach()
  file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} weir/*.h)
  weir_header_check(umbrella weir "" ${headers})
endif()
