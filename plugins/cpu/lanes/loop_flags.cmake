# How hot loops are compiled. They want all that the compiler can do, but under sanitizers, or to be
# debugged, that takes minutes a file and has no use.
if(HAL_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")
    set(CPU_LOOP_FLAGS -O1)
else()
    set(CPU_LOOP_FLAGS -O3)
endif()
# Clang takes ten minutes and more for a file that it instruments for fuzzing with three sanitizers;
# the preset asan instruments these files too.
if(HAL_FUZZ)
    list(APPEND CPU_LOOP_FLAGS -fno-sanitize=all)
endif()
