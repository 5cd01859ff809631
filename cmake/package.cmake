# Headers, CMake package and pkg-config files of the installed libraries.
include(CMakePackageConfigHelpers)

install(DIRECTORY hal/include/hal ops/include/ops DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/halyard)
configure_package_config_file(cmake/halyard-config.cmake.in halyard-config.cmake
    INSTALL_DESTINATION ${package_dir}
    PATH_VARS HALYARD_PLUGIN_INSTALL_DIR)
write_basic_package_version_file(halyard-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/halyard-config.cmake
              ${PROJECT_BINARY_DIR}/halyard-config-version.cmake
              cmake/halyard_plugin.cmake
        DESTINATION ${package_dir})
install(EXPORT halyard-targets NAMESPACE halyard:: DESTINATION ${package_dir})

# The prefix is found from the .pc file's own place, so an installed tree can be moved.
file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
foreach(pc halyard halyard-ops)
    configure_file(cmake/${pc}.pc.in ${pc}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${pc}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
