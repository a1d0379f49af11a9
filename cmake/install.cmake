# `cmake --install`: the libraries and their public headers, the weir command, and what lets other projects find them:
# find_package(weir) with the target weir::weir, and `pkg-config weir`.

include(CMakePackageConfigHelpers)

get_property(modules GLOBAL PROPERTY WEIR_MODULES)
set(targets weir)
set(archives "")
add_custom_target(weir_libraries)
foreach(module ${modules})
  target_include_directories(weir_${module} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  list(APPEND targets weir_${module})
  get_target_property(type weir_${module} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    list(PREPEND archives -lweir_${module})
    add_dependencies(weir_libraries weir_${module})
  endif()
endforeach()
list(JOIN archives " " WEIR_ARCHIVES)
list(JOIN WEIR_ARCH " " WEIR_CFLAGS)

install(TARGETS ${targets} EXPORT weir-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(PROGRAMS ${CMAKE_BINARY_DIR}/weir TYPE BIN OPTIONAL)

file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} weir/*.h)
list(FILTER headers EXCLUDE REGEX "/internal/")
foreach(header ${headers})
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
endforeach()

file(GLOB documents CONFIGURE_DEPENDS LICENSE README.md docs/*.md docs/openapi.yaml)
install(FILES ${documents} TYPE DOC)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
install(EXPORT weir-targets NAMESPACE weir:: DESTINATION ${package_dir})
configure_package_config_file(cmake/weir-config.cmake.in ${CMAKE_BINARY_DIR}/weir-config.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/weir-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/weir-config.cmake ${CMAKE_BINARY_DIR}/weir-config-version.cmake
  DESTINATION ${package_dir})

# The installed tree may be moved, so the paths in weir.pc start from where that file lies.
file(RELATIVE_PATH WEIR_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/weir.pc.in ${CMAKE_BINARY_DIR}/weir.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/weir.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
