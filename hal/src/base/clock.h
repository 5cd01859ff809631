/* The host's clock. */
#ifndef HAL_SRC_BASE_CLOCK_H
#define HAL_SRC_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Monotonic time in nanoseconds. Threads: any. */
static inline uint64_t hal_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
