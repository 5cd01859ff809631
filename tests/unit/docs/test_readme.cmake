# The code of README.md is compiled as it stands there.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(page ${PROJECT_SOURCE_DIR}/README.md)
set(extract ${CMAKE_CURRENT_SOURCE_DIR}/unit/docs/extract_code.py)
foreach(number 1 2)
    add_custom_command(OUTPUT readme_${number}.h
        COMMAND ${Python3_EXECUTABLE} ${extract} ${page} ${number} > readme_${number}.h
        DEPENDS ${page} ${extract} VERBATIM)
    target_sources(${test} PRIVATE readme_${number}.h)
endforeach()
target_include_directories(${test} PRIVATE
    ${CMAKE_CURRENT_BINARY_DIR} ${PROJECT_SOURCE_DIR}/ops/include)
target_compile_definitions(${test} PRIVATE README="${page}"
    EXAMPLE="${PROJECT_SOURCE_DIR}/examples/matmul/main.c")
