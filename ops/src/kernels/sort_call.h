/* A call of ops_sort, for the kernels that it consists of. */
#ifndef OPS_SRC_KERNELS_SORT_CALL_H
#define OPS_SRC_KERNELS_SORT_CALL_H

#include "sort_key.h"

#include <ops/tensor.h>
#include <stdbool.h>

/* The elements, in lines, and what their sorting takes. */
typedef struct ops_sort_call {
    uint32_t axis;
    const ops_tensor *x, *values, *indices;
    int64_t length, lines;
    int64_t block;  /* elements that one group sorts, of a longer line */
    int64_t blocks; /* of a line */
    int64_t bound;  /* of indices I32 or I64 as keys: those beyond it are taken for it; 0: no bound,
                     * and keys are of the type's order */
    bool by_radix;
    bool writes_keys; /* sorted keys are left in the first buffer */
    ops_sort_key key;
    ops_tensor places; /* of the sorted elements, row-major with the axis last; I32 */
    hal_buffer *keys[2], *numbers[2]; /* of passes: from one to the other */
} ops_sort_call;

/* A contiguous tensor of rank 1 over a temporary buffer. */
static inline ops_tensor ops_sort_flat(hal_buffer *buffer, hal_type type, int64_t count)
{
    return (ops_tensor){.buffer = buffer, .type = type, .rank = 1, .shape = {count}, .stride = {1}};
}

/* Sorts the lines of a checked call; an output that is shorter along the axis gets the first ones.
 * Fills in the call. */
hal_status ops_sort_whole(ops_context *context, bool descending, ops_sort_call *c);

/* Writes the outputs of a call whose places are known. */
hal_status ops_sort_results(ops_context *context, const ops_sort_call *c);

/* Kernels of processors. Short lines: each element counts those before it. Blocks of longer ones:
 * by digits, from the lowest one, in one group. Both write places, and keys where there are several
 * blocks, to the first buffers. */
int64_t ops_sort_most_counted(const ops_context *context);
hal_status ops_sort_by_counts(ops_context *context, const ops_sort_call *c);
int64_t ops_sort_digit_block(const ops_context *context, const ops_sort_call *c);
hal_status ops_sort_by_digits(ops_context *context, const ops_sort_call *c);

/* Kernels of GPUs for long lines, by digits of as many bits as keys have. Both write to the first
 * buffers. `merges`: passes of the other way. */
bool ops_sort_is_by_radix(const ops_context *context, const ops_sort_call *c, uint32_t merges);
hal_status ops_sort_by_radix(ops_context *context, const ops_sort_call *c);

/* Sorts indices by way of keys that are at most `bound`, below 2^32 - 1, where that is made for the
 * device and these lines. *keys: U32, row-major with the axis last, as *places (I32); the caller
 * releases their buffers, which are null where it is not. */
hal_status ops_sort_bounded(ops_context *context, uint32_t axis, int64_t bound,
                            const ops_tensor *indices, ops_tensor *keys, ops_tensor *places);

/* The first `count` elements of long lines, without sorting these whole: whether that is made for
 * a call, and the places, in a buffer that the caller releases, also after a failure. */
bool ops_sort_is_top(const ops_sort_call *c, int64_t count);
hal_status ops_sort_top(ops_context *context, const ops_sort_call *c, int64_t count,
                        ops_tensor *places);

#endif
