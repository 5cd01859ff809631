/* Elements as unsigned keys of the same order, which what sorts compares. */
#ifndef OPS_SRC_KERNELS_SORT_KEY_H
#define OPS_SRC_KERNELS_SORT_KEY_H

#include "tensor/context.h"

OPS_KEY_STRUCTURES_BEGIN
typedef struct ops_sort_key {
    hal_type type; /* U32 or U64 */
    uint8_t bits;  /* of an element */
    uint8_t is_float, is_signed;
    uint8_t descending;
    uint8_t reserved[3];
    uint64_t greatest; /* bits of the greatest float that is not NaN */
} ops_sort_key;
OPS_KEY_STRUCTURES_END

/* The key of elements of a type. */
void ops_sort_key_choose(const ops_context *context, hal_type element, bool descending,
                         ops_sort_key *key);

/* Loads an element of memory of ops_bits_type, and makes it a key. By integers only, since devices
 * may take denormals for 0. */
hal_ir_value ops_sort_key_load(hal_ir_builder *b, const ops_sort_key *key, hal_ir_memory_id memory,
                               hal_ir_value index, hal_ir_value guard);

#endif
