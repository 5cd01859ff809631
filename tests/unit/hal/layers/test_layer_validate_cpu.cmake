# Kernels run on the cpu plugin, which checks every access when hal validates.
target_compile_definitions(${test} PRIVATE CPU_PLUGINS="$<TARGET_FILE_DIR:hal_cpu>")
