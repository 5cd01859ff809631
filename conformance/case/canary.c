/* canary.c: the pattern around ranges and in outputs. */
#include "case/canary.h"

#include <stddef.h>
#include <string.h>

/* Little-endian halfword 0xfff5. */
static const uint8_t canary[2] = {0xf5, 0xff};

uint8_t canary_at(uint64_t place)
{
    return canary[place % 2];
}

void canary_fill(void *memory, uint64_t bytes)
{
    uint8_t *byte = memory, line[64];
    for (size_t i = 0; i < sizeof line; i++) {
        line[i] = canary[i % 2];
    }
    for (; bytes >= sizeof line; bytes -= sizeof line, byte += sizeof line) {
        memcpy(byte, line, sizeof line);
    }
    memcpy(byte, line, bytes);
}

uint64_t canary_first_broken(const void *memory, uint64_t bytes)
{
    const uint8_t *byte = memory;
    uint64_t i = 0;
    while (i < bytes && byte[i] == canary[i % 2]) {
        i++;
    }
    return i;
}
