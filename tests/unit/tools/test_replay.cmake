# The parts of hal-replay, and the reference interpreter that judges the kernels it makes.
target_link_libraries(test_replay PRIVATE hal_replay_parts hal_kit m)
