# All cases of hal-conformance, over the mock plugin.
target_sources(${test} PRIVATE $<TARGET_OBJECTS:conformance_parts>)
target_include_directories(${test} PRIVATE
    ${PROJECT_SOURCE_DIR}/conformance ${PROJECT_SOURCE_DIR}/ops/include)
include(plugins/plugins.cmake)
use_test_plugins(${test})
