target_link_libraries(${test} PRIVATE hal_kit m)
