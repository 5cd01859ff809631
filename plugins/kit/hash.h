/* Keys of the compile cache: hashes of 128 bits. */
#ifndef PLUGINS_KIT_HASH_H
#define PLUGINS_KIT_HASH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Adds bytes to a key, which begins as any two words. Threads: any. */
void kit_hash_add(uint64_t key[2], const void *data, uint64_t bytes);

/* Multiplicative hash of a number for small tables. The upper bits of the result depend on all bits
 * of the number: shift right. */
static inline uint64_t kit_mix(uint64_t number)
{
    return (number ^ number >> 32) * UINT64_C(0x9e3779b97f4a7c15);
}

#ifdef __cplusplus
}
#endif

#endif
