# The lowering by itself: it needs OpenCL's headers and no driver.
if(NOT TARGET hal_opencl)
    set_tests_properties(${test} PROPERTIES DISABLED ON)
    set_target_properties(${test} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
endif()
target_sources(${test} PRIVATE ${PROJECT_SOURCE_DIR}/plugins/opencl/lower_text.c
    ${PROJECT_SOURCE_DIR}/plugins/opencl/lower_declare.c ${PROJECT_SOURCE_DIR}/plugins/opencl/status.c)
target_include_directories(${test} PRIVATE ${OPENCL_INCLUDE_DIR})
target_link_libraries(${test} PRIVATE hal_kit)
target_compile_definitions(${test} PRIVATE C_TEXT_FOLDER="${CMAKE_CURRENT_SOURCE_DIR}/unit/plugins/opencl/c_text")
