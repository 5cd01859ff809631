# halyard_add_plugin(NAME SOURCES...): a plugin as the loader wants it, hal_NAME.so, which shows
# one symbol and links neither hal nor ops. Used by plugins/ here, and installed with the package
# for plugins that live elsewhere. Installed under the project's own prefix, as component
# plugin_NAME, together with an expect.txt that lies beside the sources.
include(GNUInstallDirs)
if(NOT HALYARD_PLUGIN_INSTALL_DIR)
    set(HALYARD_PLUGIN_INSTALL_DIR ${CMAKE_INSTALL_LIBDIR}/halyard/plugins)
endif()

function(halyard_add_plugin name)
    set(target hal_${name})
    add_library(${target} MODULE ${ARGN})
    set_target_properties(${target} PROPERTIES
        PREFIX "" OUTPUT_NAME hal_${name} SUFFIX .so C_VISIBILITY_PRESET hidden)
    target_include_directories(${target} PRIVATE
        $<TARGET_PROPERTY:halyard::halyard,INTERFACE_INCLUDE_DIRECTORIES>)
    # What kit_plugin_create reads; macOS always has a UUID.
    if(NOT APPLE)
        target_link_options(${target} PRIVATE -Wl,--build-id -Wl,-z,nodelete)
    endif()
    if(HALYARD_PLUGIN_OUTPUT_DIR)
        set(output ${HALYARD_PLUGIN_OUTPUT_DIR})
    else()
        set(output ${CMAKE_CURRENT_BINARY_DIR})
    endif()
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${output})
    if(TARGET halyard_plugins)
        add_dependencies(halyard_plugins ${target})
    endif()
    # hal-conformance looks for the known failures beside the plugin, under its name.
    set(expect)
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/expect.txt)
        set(expect ${output}/hal_${name}.expect.txt)
        configure_file(expect.txt ${expect} COPYONLY)
    endif()
    if(HALYARD_SKIP_INSTALL)
        return()
    endif()
    set(where DESTINATION ${HALYARD_PLUGIN_INSTALL_DIR} COMPONENT plugin_${name})
    install(TARGETS ${target} LIBRARY ${where})
    if(expect)
        install(FILES ${expect} ${where})
    endif()
    set_property(GLOBAL APPEND PROPERTY HALYARD_INSTALLED_PLUGINS ${name})
endfunction()
