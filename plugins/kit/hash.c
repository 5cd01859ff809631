/* XXH3 with 128 bits, see hash.h. */
#include "hash.h"

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

void kit_hash_add(uint64_t key[2], const void *data, uint64_t bytes)
{
    const XXH128_hash_t hash = XXH3_128bits_withSeed(data, bytes, key[0]);
    key[0] = hash.low64;
    key[1] = hash.high64 ^ (key[1] << 1 | key[1] >> 63);
}
