/* The lanes steps with plain instructions; chosen by device.c. */
#define CPU_LANES_NAME "plain"
#define CPU_LANES_TABLE cpu_lanes_plain
#include "lanes/lanes.inl"
