# halyard_add_plugin(NAME SOURCES...): a plugin as the loader wants it, hal_NAME.so, which shows
# one symbol and links neither hal nor ops. Used by plugins/ here, and installed with the package
# for plugins that live elsewhere.
function(halyard_add_plugin name)
    set(target hal_${name})
    add_library(${target} MODULE ${ARGN})
    set_target_properties(${target} PROPERTIES
        PREFIX "" OUTPUT_NAME hal_${name} SUFFIX .so C_VISIBILITY_PRESET hidden)
    target_include_directories(${target} PRIVATE
        $<TARGET_PROPERTY:halyard::halyard,INTERFACE_INCLUDE_DIRECTORIES>)
    if(HALYARD_PLUGIN_OUTPUT_DIR)
        set_target_properties(${target} PROPERTIES
            LIBRARY_OUTPUT_DIRECTORY ${HALYARD_PLUGIN_OUTPUT_DIR})
    endif()
    install(TARGETS ${target} LIBRARY DESTINATION ${HALYARD_PLUGIN_INSTALL_DIR})
    # hal-conformance looks for the known failures beside the plugin, under its name.
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/expect.txt)
        if(HALYARD_PLUGIN_OUTPUT_DIR)
            configure_file(expect.txt ${HALYARD_PLUGIN_OUTPUT_DIR}/hal_${name}.expect.txt COPYONLY)
        endif()
        install(FILES expect.txt DESTINATION ${HALYARD_PLUGIN_INSTALL_DIR}
            RENAME hal_${name}.expect.txt)
    endif()
    if(TARGET halyard_plugins)
        add_dependencies(halyard_plugins ${target})
    endif()
endfunction()
