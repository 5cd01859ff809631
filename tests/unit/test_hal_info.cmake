include(plugins/plugins.cmake)
use_test_plugins(${test})
add_dependencies(${test} hal-info)
target_compile_definitions(${test} PRIVATE HAL_INFO="$<TARGET_FILE:hal-info>")
