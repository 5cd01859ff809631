include(plugins/plugins.cmake)
use_test_plugins(${test})
add_dependencies(${test} hal-info)
# A cross-compiled program needs the emulator in front of it, as ctest puts it before the tests.
string(JOIN " " emulator ${CMAKE_CROSSCOMPILING_EMULATOR})
target_compile_definitions(${test} PRIVATE HAL_INFO="$<TARGET_FILE:hal-info>"
                                           EMULATOR="${emulator}")
