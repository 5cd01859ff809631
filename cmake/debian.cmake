# cpack: one Debian package for each component, and so for each plugin; no list of plugins is kept.
# A plugin's CMakeLists.txt says what its package needs to know by properties of its target:
# DEBIAN_DESCRIPTION, and DEBIAN_RECOMMENDS for what it opens at run time. A plugin runs with any
# newer Halyard of the same plugin interface; programs and headers belong to their own version.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME halyard)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The Halyard developers <halyard@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# Dependencies on libraries are read from the binaries, by Debian's packages dpkg-dev and file.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)

# What packages of others that link our libraries will depend on: the control file `shlibs`.
# (Plugins are linked by nobody; cpack's log says that they have no version.)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")

# debian_package(COMPONENT NAME SECTION DESCRIPTION DEPENDS RECOMMENDS)
function(debian_package component name section description depends recommends)
    string(TOUPPER ${component} upper)
    foreach(field NAME SECTION DEPENDS RECOMMENDS)
        string(TOLOWER ${field} value)
        set(CPACK_DEBIAN_${upper}_PACKAGE_${field} "${${value}}" PARENT_SCOPE)
    endforeach()
    set(CPACK_COMPONENT_${upper}_DESCRIPTION "${description}" PARENT_SCOPE)
    set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
    install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${name} RENAME copyright
        COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

set(CPACK_COMPONENTS_ALL)
set(host "libhalyard0 (= ${PROJECT_VERSION})")
debian_package(runtime libhalyard0 libs "Hardware abstraction layer for computing"
    "" "halyard-plugin-cpu")
debian_package(dev libhalyard-dev libdevel "Headers and plugin kit of Halyard" "${host}" "")
debian_package(tools halyard-tools utils "Programs that list, check and time devices of Halyard"
    "${host}" "halyard-plugin-cpu")
if(TARGET halyard_blas)
    debian_package(blas libhalyard-blas0 libs "BLAS over Halyard for existing programs" "${host}"
        "halyard-plugin-cpu")
endif()
get_property(plugins GLOBAL PROPERTY HALYARD_INSTALLED_PLUGINS)
foreach(plugin IN LISTS plugins)
    get_target_property(description hal_${plugin} DEBIAN_DESCRIPTION)
    get_target_property(recommends hal_${plugin} DEBIAN_RECOMMENDS)
    if(NOT description)
        set(description "Plugin ${plugin} of Halyard")
    endif()
    if(NOT recommends)
        set(recommends "")
    endif()
    string(REPLACE _ - package halyard-plugin-${plugin})
    debian_package(plugin_${plugin} ${package} libs "${description}"
        "libhalyard0 (>= ${PROJECT_VERSION})" "${recommends}")
endforeach()
get_property(modules GLOBAL PROPERTY HALYARD_MPI_MODULES)
foreach(module IN LISTS modules)
    debian_package(mpi_${module} halyard-mpi-${module} libs
        "Communicators of processes over the MPI library ${module} for Halyard" "${host}" "")
endforeach()
include(CPack)
