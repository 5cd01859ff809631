# Where things land in the build tree and when installed. Programs find the libraries, and the
# library finds its plugins, relative to themselves in both, so no variable is ever needed.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(HALYARD_PLUGIN_OUTPUT_DIR ${PROJECT_BINARY_DIR}/lib/halyard/plugins)
set(HALYARD_PLUGIN_INSTALL_DIR ${CMAKE_INSTALL_LIBDIR}/halyard/plugins)
if(NOT HAL_INSTALL)
    set(HALYARD_SKIP_INSTALL ON)
endif()

file(RELATIVE_PATH bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
if(APPLE)
    set(CMAKE_INSTALL_RPATH "@loader_path" "@loader_path/${bin_to_lib}")
else()
    set(CMAKE_INSTALL_RPATH "$ORIGIN" "$ORIGIN/${bin_to_lib}" "$ORIGIN/../lib")
    list(REMOVE_DUPLICATES CMAKE_INSTALL_RPATH)
endif()
# The same in the build tree: CMake ends a RUNPATH that installing replaces with colons, and an empty
# element means the working folder, whose libraries would be opened in place of the system's.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)

# halyard_link_build_id(TARGET): a number of its code, which the compile cache keeps kernels by. The
# library stays loaded after dlclose, as threads, handlers and plugins have its addresses, and calls
# its own functions, also where another copy or the program has some of the same name.
function(halyard_link_build_id target)
    if(NOT APPLE)
        target_link_options(${target} PRIVATE -Wl,--build-id -Wl,-z,nodelete
            -Wl,-Bsymbolic-functions)
    endif()
endfunction()

# halyard_install_library(TARGET): a library with its version, for users of the CMake package.
function(halyard_install_library target)
    if(HAL_INSTALL)
        install(TARGETS ${target} EXPORT halyard-targets
            LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev
            ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
    endif()
endfunction()

# halyard_install_program(TARGET): a program with its man page, docs/man/TARGET.1.
function(halyard_install_program target)
    set_property(GLOBAL APPEND PROPERTY HALYARD_PROGRAMS ${target})
    if(HAL_INSTALL)
        install(TARGETS ${target}
            RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
        install(FILES ${PROJECT_SOURCE_DIR}/docs/man/${target}.1
            DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
    endif()
endfunction()
