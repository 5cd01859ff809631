target_sources(${test} PRIVATE
    ${PROJECT_SOURCE_DIR}/plugins/cpu/thread_pool.c ${PROJECT_SOURCE_DIR}/plugins/cpu/placement.c)
target_link_options(${test} PRIVATE -Wl,--wrap=pthread_create)
