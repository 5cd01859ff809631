/* The arrays of a kernel after its head, each at a multiple of 8 bytes. See kernel_copy.h. */
#include "kernel_copy.h"

#include <string.h>

typedef struct part {
    const void *from;
    const void **to;
    uint64_t bytes;
} part;

enum { PARTS = 5, ALIGNMENT = 8 };

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

hal_ir_kernel *kit_kernel_copy(const hal_host *host, const hal_ir_kernel *kernel)
{
    const void *places[PARTS];
    const part parts[PARTS] = {
        {kernel->records, &places[0], kernel->record_count * sizeof *kernel->records},
        {kernel->memories, &places[1], kernel->memory_count * sizeof *kernel->memories},
        {kernel->scalars, &places[2], kernel->scalar_count * sizeof *kernel->scalars},
        {kernel->constants, &places[3], kernel->constant_count * sizeof *kernel->constants},
        {kernel->names, &places[4], kernel->name_bytes},
    };
    uint64_t bytes = rounded(sizeof *kernel);
    for (uint32_t i = 0; i < PARTS; i++) {
        bytes += rounded(parts[i].bytes);
    }
    uint8_t *block = host->allocate(host, bytes, ALIGNMENT);
    if (!block) {
        return NULL;
    }
    uint8_t *next = block + rounded(sizeof *kernel);
    for (uint32_t i = 0; i < PARTS; i++) {
        *parts[i].to = next;
        if (parts[i].bytes > 0) {
            memcpy(next, parts[i].from, parts[i].bytes);
        }
        next += rounded(parts[i].bytes);
    }
    hal_ir_kernel *copy = (hal_ir_kernel *)block;
    *copy = *kernel;
    copy->records = places[0];
    copy->memories = places[1];
    copy->scalars = places[2];
    copy->constants = places[3];
    copy->names = places[4];
    return copy;
}
