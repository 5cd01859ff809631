# The code in the opening comments of headers is compiled as it stands there.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(extract ${CMAKE_CURRENT_SOURCE_DIR}/unit/docs/extract_code.py)
foreach(header hal/include/hal/hal.h ops/include/ops/array.h ops/include/ops/graph.h
        ops/include/ops/pointwise.h)
    get_filename_component(name ${header} NAME_WE)
    add_custom_command(OUTPUT example_${name}.h
        COMMAND ${Python3_EXECUTABLE} ${extract} ${PROJECT_SOURCE_DIR}/${header} > example_${name}.h
        DEPENDS ${PROJECT_SOURCE_DIR}/${header} ${extract} VERBATIM)
    target_sources(${test} PRIVATE example_${name}.h)
endforeach()
target_include_directories(${test} PRIVATE
    ${CMAKE_CURRENT_BINARY_DIR} ${PROJECT_SOURCE_DIR}/ops/include)
