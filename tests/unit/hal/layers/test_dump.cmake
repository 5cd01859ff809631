include(plugins/plugins.cmake)
use_test_plugins(${test})
add_dependencies(${test} hal-replay hal_template)
# A cross-compiled program needs the emulator in front of it, as ctest puts it before the tests.
string(JOIN " " emulator ${CMAKE_CROSSCOMPILING_EMULATOR})
target_compile_definitions(${test} PRIVATE HAL_REPLAY="$<TARGET_FILE:hal-replay>"
                                           TEMPLATE_FOLDER="$<TARGET_FILE_DIR:hal_template>"
                                           EMULATOR="${emulator}")
