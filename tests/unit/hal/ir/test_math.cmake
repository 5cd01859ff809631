# The distance in ULP and the functions under test are those of hal-math-exhaustive.
target_sources(${test} PRIVATE
    ${PROJECT_SOURCE_DIR}/conformance/math_exhaustive_cases.c
    ${PROJECT_SOURCE_DIR}/conformance/math_exhaustive_run.c
    ${PROJECT_SOURCE_DIR}/conformance/ulp.c)
target_include_directories(${test} PRIVATE ${PROJECT_SOURCE_DIR}/conformance)
