# The plain reader of the polynomials is that of the conformance tool.
target_include_directories(${test} PRIVATE ${PROJECT_SOURCE_DIR}/conformance)
