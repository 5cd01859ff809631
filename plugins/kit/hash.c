/* Keys of the compile cache, see kit/hash.h. */
#include "hash.h"

#include <string.h>

static void hash_word(uint64_t word, uint64_t *a, uint64_t *b)
{
    *a = (*a ^ word) * 0x9e3779b97f4a7c15;
    *a ^= *a >> 32;
    *b = (*b + word) * 0xc2b2ae3d27d4eb4f;
    *b ^= *b >> 29;
}

/* Two multiplicative hashes over words of 8 bytes. */
void kit_hash_add(uint64_t key[2], const void *data, uint64_t bytes)
{
    const uint8_t *at = data;
    uint64_t a = key[0] ^ bytes, b = key[1], word;
    for (; bytes >= 8; bytes -= 8, at += 8) {
        memcpy(&word, at, 8);
        hash_word(word, &a, &b);
    }
    if (bytes > 0) {
        word = 0;
        memcpy(&word, at, bytes);
        hash_word(word, &a, &b);
    }
    key[0] = a;
    key[1] = b ^ a >> 7;
}
