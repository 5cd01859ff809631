# Included by the tests of the cpu plugin: where it lies, and the interpreter that judges it.
target_compile_definitions(${test} PRIVATE CPU_PLUGIN_PATH="$<TARGET_FILE:hal_cpu>")
target_link_libraries(${test} PRIVATE hal_kit ${CMAKE_DL_LIBS} m)

# Once more with every access checked, as when hal validates: the bits stay the same.
if(test MATCHES "control|memory|operations" AND NOT HAL_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
    add_test(NAME ${test}_checked COMMAND ${test})
    set_tests_properties(${test}_checked PROPERTIES TIMEOUT ${seconds} LABELS unit
        ENVIRONMENT CPU_FIXTURE_VALIDATE=1)
endif()
