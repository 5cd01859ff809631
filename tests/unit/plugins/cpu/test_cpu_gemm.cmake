# The cpu plugin's matrix product is tested on its own, without a plugin or a device.
include(${PROJECT_SOURCE_DIR}/plugins/cpu/gemm.cmake)
find_library(PTHREADPOOL_LIBRARY pthreadpool REQUIRED)
target_sources(${test} PRIVATE ${CPU_GEMM_SOURCES})
target_include_directories(${test} PRIVATE ${PROJECT_SOURCE_DIR}/plugins/cpu)
target_link_libraries(${test} PRIVATE ${PTHREADPOOL_LIBRARY})
