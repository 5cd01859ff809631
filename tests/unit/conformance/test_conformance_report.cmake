# What hal-conformance writes for machines, and the comparison with an earlier report.
set(room ${PROJECT_SOURCE_DIR}/conformance)
target_sources(${test} PRIVATE
    ${room}/report.c ${room}/report_file.c ${room}/compare.c ${room}/json.c ${room}/expect.c
    ${room}/case.c ${room}/random.c ${room}/number.c)
target_include_directories(${test} PRIVATE ${room} ${PROJECT_SOURCE_DIR}/ops/include)
target_compile_definitions(${test} PRIVATE
    REPORT_CHECKER="${CMAKE_CURRENT_SOURCE_DIR}/conformance/check_reports.py")
