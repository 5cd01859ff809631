/* Sizes of the processor's caches, and when stores had better bypass them. */
#ifndef PLUGINS_CPU_THREADS_CACHES_H
#define PLUGINS_CPU_THREADS_CACHES_H

#include <stdint.h>

/* Bytes of a data cache of level 1 or 2, which a core has for itself, or of level 3; a common size
 * if the system does not report it. */
int64_t cpu_cache_bytes(int level);

/* Output of this many bytes from one command is written with streaming stores: most of it would
 * leave the caches before it is read, and ordinary stores read memory before they overwrite it. */
int64_t cpu_streaming_bytes(void);

#endif
