/* The lanes steps with avx512 instructions; chosen by device.c. */
#define CPU_LANES_NAME "avx512"
#define CPU_LANES_TABLE cpu_lanes_avx512
#include "lanes/lanes.inl"
