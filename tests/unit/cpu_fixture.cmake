# Included by the tests of the cpu plugin: where it lies, and the interpreter that judges it.
target_compile_definitions(${test} PRIVATE CPU_PLUGIN_PATH="$<TARGET_FILE:hal_cpu>")
target_link_libraries(${test} PRIVATE hal_kit ${CMAKE_DL_LIBS} m)
