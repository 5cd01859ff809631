if(NOT TARGET hal_opencl OR CMAKE_CROSSCOMPILING)
    set_tests_properties(${test} PROPERTIES DISABLED ON)
    set_target_properties(${test} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
endif()
# The plugin, and a loader of the real one's name without a device behind it.
add_library(opencl_mock MODULE ${CMAKE_CURRENT_SOURCE_DIR}/unit/plugins/opencl/opencl_mock.c)
set_target_properties(opencl_mock PROPERTIES PREFIX "" OUTPUT_NAME libOpenCL SUFFIX .so.1
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/opencl_mock)
target_include_directories(opencl_mock PRIVATE ${OPENCL_INCLUDE_DIR})
target_link_options(opencl_mock PRIVATE -Wl,-soname,libOpenCL.so.1)
# A loader from before OpenCL 1.2: it has hardly any function.
add_library(opencl_old MODULE ${CMAKE_CURRENT_SOURCE_DIR}/unit/plugins/opencl/opencl_mock.c)
set_target_properties(opencl_old PROPERTIES PREFIX "" OUTPUT_NAME libOpenCL SUFFIX .so.1
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/opencl_old)
target_compile_definitions(opencl_old PRIVATE MOCK_OLD)
target_include_directories(opencl_old PRIVATE ${OPENCL_INCLUDE_DIR})
target_link_options(opencl_old PRIVATE -Wl,-soname,libOpenCL.so.1)
# And one that no loader of libraries takes.
file(WRITE ${PROJECT_BINARY_DIR}/tests/opencl_none/libOpenCL.so.1 "this is no library\n")
add_dependencies(${test} opencl_mock opencl_old)
target_compile_definitions(${test} PRIVATE OPENCL_PLUGIN_PATH="$<TARGET_FILE:hal_opencl>"
    OPENCL_MOCK_PATH="$<TARGET_FILE:opencl_mock>" OPENCL_OLD_PATH="$<TARGET_FILE:opencl_old>"
    OPENCL_NO_LOADER="${PROJECT_BINARY_DIR}/tests/opencl_none")
target_link_libraries(${test} PRIVATE ${CMAKE_DL_LIBS})
