/* The lanes steps with sse2 instructions; chosen by device.c. */
#define CPU_LANES_NAME "sse2"
#define CPU_LANES_TABLE cpu_lanes_sse2
#include "lanes/lanes.inl"
