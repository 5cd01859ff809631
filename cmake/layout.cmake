# Where things land in the build tree and when installed. Programs find the libraries, and the
# library finds its plugins, relative to themselves in both, so no variable is ever needed.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(HALYARD_PLUGIN_OUTPUT_DIR ${PROJECT_BINARY_DIR}/lib/halyard/plugins)
set(HALYARD_PLUGIN_INSTALL_DIR ${CMAKE_INSTALL_LIBDIR}/halyard/plugins)

set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
file(RELATIVE_PATH bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set(CMAKE_INSTALL_RPATH "$ORIGIN" "$ORIGIN/${bin_to_lib}")
