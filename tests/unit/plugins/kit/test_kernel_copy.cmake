# The copy is in the kit that plugins share.
target_link_libraries(test_kernel_copy PRIVATE hal_kit)
