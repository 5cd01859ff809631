# The fuzz targets' seeds go through them in every build, with the sanitizers that it has.
include(plugins/plugins.cmake)
use_test_plugins(test_fuzz_corpus)
foreach(target fuzz_ir_text fuzz_ir_records fuzz_ir_legalise fuzz_ops_array fuzz_replay_file)
    set(source ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/${target}.c)
    add_library(${target}_seeds OBJECT ${source})
    target_compile_definitions(${target}_seeds PRIVATE
        LLVMFuzzerTestOneInput=run_${target} TEST_PLUGINS="${test_plugins}")
    target_include_directories(${target}_seeds PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/plugins)
    target_link_libraries(${target}_seeds PRIVATE ops_internal hal_internal)
    target_link_libraries(test_fuzz_corpus PRIVATE ${target}_seeds)
endforeach()
target_include_directories(fuzz_replay_file_seeds PRIVATE ${PROJECT_SOURCE_DIR}/hal/tools)
target_link_libraries(test_fuzz_corpus PRIVATE hal_replay_parts)
target_compile_definitions(test_fuzz_corpus PRIVATE
    FUZZ_CORPUS="${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus")
