/* Keys of the compile cache: hashes of 128 bits. */
#ifndef KIT_HASH_H
#define KIT_HASH_H

#include <stdint.h>

/* Adds bytes to a key, which begins as any two words. Threads: any. */
void kit_hash_add(uint64_t key[2], const void *data, uint64_t bytes);

#endif
