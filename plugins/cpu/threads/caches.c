/* Caches, see caches.h. */
#include "threads/caches.h"

#include <unistd.h>

/* The last cache of a server is large, but shared with many cores, and slow from one of them. */
enum { STREAMING_MOST = 32 << 20 };

int64_t cpu_cache_bytes(int level)
{
    static const long common[] = {32 << 10, 512 << 10, 8 << 20};
    long bytes = 0;
#if defined(_SC_LEVEL1_DCACHE_SIZE) && defined(_SC_LEVEL2_CACHE_SIZE) && \
    defined(_SC_LEVEL3_CACHE_SIZE)
    bytes = sysconf(level == 1   ? _SC_LEVEL1_DCACHE_SIZE
                    : level == 2 ? _SC_LEVEL2_CACHE_SIZE
                                 : _SC_LEVEL3_CACHE_SIZE);
#endif
    return bytes > 0 ? bytes : common[level - 1];
}

int64_t cpu_streaming_bytes(void)
{
    const int64_t last = cpu_cache_bytes(3);
    return last < STREAMING_MOST ? last : STREAMING_MOST;
}
