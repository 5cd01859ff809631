# The dump is in the kit that plugins share.
target_link_libraries(${test} PRIVATE hal_kit)
