# The reference interpreter is in the kit that plugins share.
target_link_libraries(test_interpret PRIVATE hal_kit m)
