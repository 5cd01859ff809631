/* What a queue keeps of its chains. */
#ifndef PLUGINS_CUDA_CHAIN_CACHE_H
#define PLUGINS_CUDA_CHAIN_CACHE_H

#include <stdint.h>

typedef struct cuda_chain cuda_chain; /* chain/chain.c */
enum { CUDA_ANCHORS = 4, CUDA_SEEN_RUNS = 2048 };

/* Hashes of the dispatches at which the loops seen last were cut, as a ring. */
typedef struct cuda_loop_anchors {
    uint64_t hashes[CUDA_ANCHORS];
    uint32_t next;
} cuda_loop_anchors;

/* The chains of a queue, and how often runs were repeated. */
typedef struct cuda_chain_cache {
    cuda_chain *chains; /* a list */
    cuda_chain *last;   /* the one launched last, or null */
    uint64_t launches;
    uint64_t seen[CUDA_SEEN_RUNS]; /* hashes of runs; a newer run replaces an older one */
    uint32_t seen_again[CUDA_SEEN_RUNS];
} cuda_chain_cache;

#endif
