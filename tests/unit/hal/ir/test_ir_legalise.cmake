# Kernels are run before and after in the reference interpreter.
target_link_libraries(test_ir_legalise PRIVATE hal_kit m)
