# What is installed next to libraries, programs and plugins, by component: dev has the headers, below
# include/halyard (so that <hal/hal.h> works and no other folder of include is touched), CMake package, pkg-config files, the plugin kit, the template, the examples and the pages. cpack makes
# Debian packages of the components, see debian.cmake.
include(CMakePackageConfigHelpers)

set(to_dev COMPONENT dev)
install(DIRECTORY hal/include/hal ops/include/ops
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/halyard ${to_dev} FILES_MATCHING PATTERN "*.h")
install(DIRECTORY plugins/kit
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/halyard ${to_dev} FILES_MATCHING PATTERN "*.h"
    REGEX "/(c_text/state|interpret_value).h$" EXCLUDE) # what its own sources share
install(TARGETS hal_kit EXPORT halyard-targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} ${to_dev})
install(DIRECTORY plugins/template plugins/example_c DESTINATION ${CMAKE_INSTALL_DOCDIR} ${to_dev})
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} ${to_dev}
    REGEX "/examples/CMakeLists.txt$" EXCLUDE)
install(FILES docs/man/halyard.7 DESTINATION ${CMAKE_INSTALL_MANDIR}/man7 ${to_dev})

# The pages, in the places to which their links lead; the example rnn reads them too.
file(GLOB pages CONFIGURE_DEPENDS docs/*.md docs/*.svg)
file(GLOB plugin_pages CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} plugins/*/README.md)
list(FILTER plugin_pages EXCLUDE REGEX "^plugins/(template|example_c)/")
install(FILES README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE
    DESTINATION ${CMAKE_INSTALL_DOCDIR} ${to_dev})
install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs ${to_dev})
foreach(folder benchmarks notes profile)
    file(GLOB folder_pages CONFIGURE_DEPENDS docs/${folder}/*.md docs/${folder}/*.svg docs/${folder}/*.webp)
    install(FILES ${folder_pages} DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs/${folder} ${to_dev})
endforeach()
foreach(page IN LISTS plugin_pages)
    get_filename_component(folder ${page} DIRECTORY)
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder} ${to_dev})
endforeach()
# Links to headers: relative, so that an installed tree can be moved.
file(RELATIVE_PATH doc_to_include ${CMAKE_INSTALL_FULL_DOCDIR}/hal
    ${CMAKE_INSTALL_FULL_INCLUDEDIR}/halyard)
foreach(part hal ops)
    install(CODE "set(part ${CMAKE_INSTALL_DOCDIR}/${part})" ${to_dev})
    install(CODE "set(target ${doc_to_include})" ${to_dev})
    install(CODE [[
        set(folder "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${part}")
        file(MAKE_DIRECTORY "${folder}")
        file(CREATE_LINK "${target}" "${folder}/include" SYMBOLIC)]] ${to_dev})
endforeach()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/halyard)
configure_package_config_file(cmake/halyard-config.cmake.in halyard-config.cmake
    INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(halyard-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/halyard-config.cmake
              ${PROJECT_BINARY_DIR}/halyard-config-version.cmake
              cmake/halyard_plugin.cmake
        DESTINATION ${package_dir} ${to_dev})
install(EXPORT halyard-targets NAMESPACE halyard:: DESTINATION ${package_dir} ${to_dev})

# The prefix is found from the .pc file's own place, so an installed tree can be moved.
file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
foreach(pc halyard halyard-ops halyard-kit)
    configure_file(cmake/${pc}.pc.in ${pc}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${pc}.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig ${to_dev})
endforeach()

include(${PROJECT_SOURCE_DIR}/cmake/debian.cmake)
