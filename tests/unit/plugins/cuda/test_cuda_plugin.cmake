# The plugin, and a driver of the real one's name without a GPU behind it.
add_library(cuda_mock MODULE ${CMAKE_CURRENT_SOURCE_DIR}/unit/plugins/cuda/cuda_mock.c)
set_target_properties(cuda_mock PROPERTIES PREFIX "" OUTPUT_NAME libcuda SUFFIX .so.1
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/cuda_mock)
target_link_options(cuda_mock PRIVATE -Wl,-soname,libcuda.so.1)
target_include_directories(cuda_mock PRIVATE
    ${PROJECT_SOURCE_DIR}/hal/include ${PROJECT_SOURCE_DIR}/plugins)
add_dependencies(${test} cuda_mock)
target_compile_definitions(${test} PRIVATE CUDA_PLUGIN_PATH="$<TARGET_FILE:hal_cuda>"
    CUDA_MOCK_PATH="$<TARGET_FILE:cuda_mock>")
target_link_libraries(${test} PRIVATE ${CMAKE_DL_LIBS})
