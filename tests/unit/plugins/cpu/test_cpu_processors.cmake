target_sources(${test} PRIVATE ${PROJECT_SOURCE_DIR}/plugins/cpu/processors.c)
