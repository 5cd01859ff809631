/* The generation of the process: the number of forks since its first call. */
#include "threads/process.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static _Atomic uint32_t forks;
static pthread_once_t watched = PTHREAD_ONCE_INIT;

static void forked(void)
{
    atomic_fetch_add(&forks, 1);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forked);
}

uint32_t cpu_process_generation(void)
{
    pthread_once(&watched, watch_forks);
    return atomic_load_explicit(&forks, memory_order_relaxed);
}
