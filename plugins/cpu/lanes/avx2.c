/* The lanes steps with avx2 instructions; chosen by device.c. */
#define CPU_LANES_NAME "avx2"
#define CPU_LANES_TABLE cpu_lanes_avx2
#include "lanes/lanes.inl"
