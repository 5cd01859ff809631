# How hot loops are compiled. They want all that the compiler can do, but under sanitizers, or to be
# debugged, that takes minutes a file and has no use.
if(HAL_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")
    set(CPU_LOOP_FLAGS -O1)
else()
    set(CPU_LOOP_FLAGS -O3)
endif()
