/* The host's clock. */
#ifndef PLUGINS_KIT_CLOCK_H
#define PLUGINS_KIT_CLOCK_H

#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Monotonic nanoseconds. Threads: any. */
static inline uint64_t kit_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#ifdef __cplusplus
}
#endif

#endif
