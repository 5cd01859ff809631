# The cpu plugin's matrix product is tested on its own, without a device: the plugin's objects.
target_sources(${test} PRIVATE
    "$<FILTER:$<TARGET_OBJECTS:hal_cpu>,INCLUDE,/(gemm(_plan|_micro_[a-z0-9]+)?|thread_pool|placement)[.]c>")
target_include_directories(${test} PRIVATE ${PROJECT_SOURCE_DIR}/plugins/cpu)
