/* Large operands on a device. */
#include "suites/pattern.h"

#include <stdlib.h>

const void *pattern_block(bench_state *bench, hal_type type)
{
    static void *blocks[3];
    const int at = type == HAL_TYPE_F32 ? 0 : type == HAL_TYPE_F16 ? 1 : 2;
    if (!blocks[at]) {
        blocks[at] = malloc((size_t)PATTERN_PERIOD * hal_type_size(type));
        if (!blocks[at]) {
            bench_fail(bench, "out of memory");
            return NULL;
        }
        bench_random(type, blocks[at], PATTERN_PERIOD, 41);
    }
    return blocks[at];
}

/* Writes the block, from `start` on, and doubles it until the memory is full. */
static bool block_repeat(bench_state *bench, hal_queue *queue, const ops_tensor *memory, int start)
{
    const char *block = pattern_block(bench, memory->type);
    const uint64_t size = hal_type_size(memory->type), whole = PATTERN_PERIOD * size;
    const uint64_t bytes = (uint64_t)memory->shape[0] * size, head = whole - (uint64_t)start * size;
    if (!block ||
        !bench_ok(bench,
                  hal_queue_write(queue, memory->buffer, 0, block + (uint64_t)start * size,
                                  bytes < head ? bytes : head),
                  "an operand")) {
        return false;
    }
    if (bytes > head && !bench_ok(bench,
                                  hal_queue_write(queue, memory->buffer, head, block,
                                                  (bytes < whole ? bytes : whole) - head),
                                  "an operand")) {
        return false;
    }
    const uint64_t end = (bytes + 3) / 4 * 4; /* of the buffer */
    for (uint64_t done = whole; done < bytes; done *= 2) {
        const uint64_t part = end - done < done ? end - done : done;
        if (!bench_ok(bench,
                      hal_queue_copy(queue, (hal_range){memory->buffer, 0, part},
                                     (hal_range){memory->buffer, done, part}),
                      "an operand")) {
            return false;
        }
    }
    return true;
}

bool pattern_create(bench_state *bench, const bench_place *place, hal_type type, int64_t count,
                    int start, ops_tensor *made)
{
    const uint64_t bytes = ((uint64_t)count * hal_type_size(type) + 3) / 4 * 4;
    *made = (ops_tensor){.type = type, .rank = 1, .shape = {count}, .stride = {1}};
    return bench_ok(bench,
                    hal_buffer_create(place->device, HAL_MEMORY_DEVICE, bytes, &made->buffer),
                    "an operand") &&
           block_repeat(bench, place->queue, made, start);
}
