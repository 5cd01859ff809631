# With a file that has the headers of 1.0.
add_library(sizes_1_0 OBJECT ${PROJECT_SOURCE_DIR}/tests/abi/1.0/sizes.c)
target_include_directories(sizes_1_0 PRIVATE ${PROJECT_SOURCE_DIR}/tests/abi/1.0)
target_link_libraries(${test} PRIVATE sizes_1_0)
