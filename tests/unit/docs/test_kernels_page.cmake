# The code of docs/kernels.md is compiled as it stands there, and its messages are looked up.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(page ${PROJECT_SOURCE_DIR}/docs/kernels.md)
set(extract ${CMAKE_CURRENT_SOURCE_DIR}/unit/docs/extract_code.py)
add_custom_command(OUTPUT kernels_page.h
    COMMAND ${Python3_EXECUTABLE} ${extract} ${page} > kernels_page.h
    DEPENDS ${page} ${extract} VERBATIM)
target_sources(test_kernels_page PRIVATE kernels_page.h)
target_include_directories(test_kernels_page PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
target_compile_definitions(test_kernels_page PRIVATE KERNELS_PAGE="${page}")
target_link_libraries(test_kernels_page PRIVATE hal_kit m)
