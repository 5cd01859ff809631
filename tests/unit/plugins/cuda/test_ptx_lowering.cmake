# The lowering by itself: it needs no driver.
file(GLOB lowering CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/plugins/cuda/lower*.c
    ${PROJECT_SOURCE_DIR}/plugins/cuda/quirks.c)
target_sources(${test} PRIVATE ${lowering})
target_link_libraries(${test} PRIVATE hal_kit)
target_include_directories(${test} PRIVATE ${PROJECT_SOURCE_DIR}/hal/src)
target_compile_definitions(${test} PRIVATE PTX_FOLDER="${CMAKE_CURRENT_SOURCE_DIR}/unit/plugins/cuda/ptx")
