# The runner and what it reports to, on the cpu plugin.
set(room ${PROJECT_SOURCE_DIR}/conformance)
target_sources(${test} PRIVATE
    ${room}/runner.c ${room}/worker.c ${room}/shrink.c ${room}/child.c ${room}/finding.c ${room}/report.c
    ${room}/case.c ${room}/expect.c ${room}/random.c ${room}/number.c)
target_include_directories(${test} PRIVATE ${room} ${PROJECT_SOURCE_DIR}/ops/include)
target_compile_definitions(${test} PRIVATE CPU_PLUGIN_PATH="$<TARGET_FILE:hal_cpu>")
