# The lowering without the plugin. Without Vulkan's headers there is neither.
if(TARGET hal_vulkan_lower)
    target_link_libraries(${test} PRIVATE hal_vulkan_lower)
else()
    set_tests_properties(${test} PROPERTIES DISABLED ON)
    set_target_properties(${test} PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
