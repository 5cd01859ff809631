# The plugins of the tests, in folders of ${test_plugins}.
set(test_plugins ${PROJECT_BINARY_DIR}/tests/plugins)
add_custom_target(test_plugins)

# test_plugin(FOLDER NAME SOURCE DEFINITIONS...): hal_NAME.so in a folder of tests/plugins.
function(test_plugin folder name source)
    add_library(test_plugin_${name} MODULE ${CMAKE_CURRENT_SOURCE_DIR}/plugins/${source})
    set_target_properties(test_plugin_${name} PROPERTIES
        PREFIX "" OUTPUT_NAME hal_${name} SUFFIX .so
        LIBRARY_OUTPUT_DIRECTORY ${test_plugins}/${folder})
    target_include_directories(test_plugin_${name} PRIVATE ${PROJECT_SOURCE_DIR}/hal/include)
    target_compile_definitions(test_plugin_${name} PRIVATE ${ARGN})
    target_link_libraries(test_plugin_${name} PRIVATE Threads::Threads)
    add_dependencies(test_plugins test_plugin_${name})
endfunction()

test_plugin(mock mock mock.c)
test_plugin(mock mock_two mock.c "MOCK_NAME=\"mock_two\"")
# Rounds the sums of f32 wrongly, by the lowest bit.
test_plugin(wrong wrong mock.c "MOCK_NAME=\"wrong\"" "MOCK_SPOIL=.opcode=HAL_IR_ADD,.type=HAL_TYPE_F32")
foreach(mock mock mock_two wrong)
    target_sources(test_plugin_${mock} PRIVATE
        ${CMAKE_CURRENT_SOURCE_DIR}/plugins/spoil.c
        ${PROJECT_SOURCE_DIR}/plugins/kit/interpret.c
        ${PROJECT_SOURCE_DIR}/plugins/kit/interpret_value.c)
    target_include_directories(test_plugin_${mock} PRIVATE ${PROJECT_SOURCE_DIR}/plugins)
    target_link_libraries(test_plugin_${mock} PRIVATE m)
endforeach()

# The mock plugin as of another minor than hal's, see minors.c.
foreach(minor shorter longer)
    string(TOUPPER ${minor} way)
    test_plugin(minors ${minor} minors.c ${way})
    target_sources(test_plugin_${minor} PRIVATE
        ${CMAKE_CURRENT_SOURCE_DIR}/plugins/spoil.c
        ${PROJECT_SOURCE_DIR}/plugins/kit/interpret.c
        ${PROJECT_SOURCE_DIR}/plugins/kit/interpret_value.c)
    target_include_directories(test_plugin_${minor} PRIVATE ${PROJECT_SOURCE_DIR}/plugins)
    target_link_libraries(test_plugin_${minor} PRIVATE m)
endforeach()

# Plugins as they were built for release 1.0, see abi/frozen.
foreach(plugin plain deferred)
    test_plugin(frozen ${plugin} ../abi/frozen/${plugin}.c)
    set_target_properties(test_plugin_${plugin} PROPERTIES
        INCLUDE_DIRECTORIES ${CMAKE_CURRENT_SOURCE_DIR}/abi/frozen)
endforeach()

# wrapping_plugin(FOLDER NAME SOURCES...): hal_NAME.so around the cpu plugin, or that of the target
# that `wrapped` names, see wrap.h.
function(wrapping_plugin folder name)
    if(NOT wrapped)
        set(wrapped hal_cpu)
    endif()
    add_library(test_plugin_${name} MODULE ${ARGN} ${PROJECT_SOURCE_DIR}/tests/plugins/wrap.c)
    set_target_properties(test_plugin_${name} PROPERTIES
        PREFIX "" OUTPUT_NAME hal_${name} SUFFIX .so
        LIBRARY_OUTPUT_DIRECTORY ${test_plugins}/${folder})
    target_include_directories(test_plugin_${name} PRIVATE
        ${PROJECT_SOURCE_DIR}/hal/include ${PROJECT_SOURCE_DIR}/tests/plugins)
    target_compile_definitions(test_plugin_${name} PRIVATE
        WRAP_TARGET="$<TARGET_FILE:${wrapped}>")
    target_link_libraries(test_plugin_${name} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
    add_dependencies(test_plugin_${name} ${wrapped})
    add_dependencies(test_plugins test_plugin_${name})
endfunction()

wrapping_plugin(wrap wrapped ${CMAKE_CURRENT_SOURCE_DIR}/plugins/wrapped.c)
wrapping_plugin(spoiled spoiled ${CMAKE_CURRENT_SOURCE_DIR}/plugins/spoiled.c)
wrapping_plugin(backend backend ${CMAKE_CURRENT_SOURCE_DIR}/plugins/comm_backend.c)

foreach(way right alone wrong silent shy noisy folds matrix matrix_wrong)
    if(way MATCHES "matrix")
        set(wrapped test_plugin_mock)
    endif()
    wrapping_plugin(probed probed_${way} ${CMAKE_CURRENT_SOURCE_DIR}/plugins/probed.c)
endforeach()
set(wrapped)

# hal_without_ENTRY.so for each optional entry of the table: the cpu plugin, or one that has it.
set(optional_entries version build_id memory_info queue_elapsed gemm formats kernel_create_native
                     device_can_access_peer host_copy queue_fail_next memory_import
                     query_extension)
foreach(entry IN LISTS optional_entries)
    set(wrapped)
    if(entry MATCHES "formats|native")
        set(wrapped test_plugin_mock)
    elseif(entry STREQUAL device_can_access_peer)
        set(wrapped test_plugin_longer)
    endif()
    wrapping_plugin(without without_${entry} ${CMAKE_CURRENT_SOURCE_DIR}/abi/without.c)
    target_compile_definitions(test_plugin_without_${entry} PRIVATE WITHOUT=${entry})
endforeach()
set(wrapped)
# hal_less.so and hal_less_mock.so: without the entry that the environment names.
wrapping_plugin(less less ${CMAKE_CURRENT_SOURCE_DIR}/abi/without.c)
set(wrapped test_plugin_mock)
wrapping_plugin(less less_mock ${CMAKE_CURRENT_SOURCE_DIR}/abi/without.c)
set(wrapped)

foreach(claim most least)
    string(TOUPPER ${claim} way)
    wrapping_plugin(claims claims_${claim} ${CMAKE_CURRENT_SOURCE_DIR}/abi/claims.c)
    target_compile_definitions(test_plugin_claims_${claim} PRIVATE ${way})
endforeach()

# The place in the list is the number of the way in broken.c.
set(ways no_symbol no_table newer other_major short missing bad_name tiny no_device no_driver
         bad_status bad_info bad_stride early_end counts other_name needy older cut many
         fewer unwritten absurd no_instance no_ir_version no_id same_ids other_extension draft)
set(number 0)
foreach(way IN LISTS ways)
    math(EXPR number "${number} + 1")
    test_plugin(${way} ${way} broken.c BROKEN=${number} NAME=${way})
endforeach()

set(number 0)
foreach(way hangs crashes exits)
    math(EXPR number "${number} + 1")
    test_plugin(rude ${way} rude.c RUDE=${number})
endforeach()

add_library(needed SHARED ${CMAKE_CURRENT_SOURCE_DIR}/plugins/needed.c)
set_target_properties(needed PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${test_plugins}/out_of_reach)
target_link_libraries(test_plugin_needy PRIVATE needed)
set_target_properties(test_plugin_needy PROPERTIES SKIP_BUILD_RPATH ON)
