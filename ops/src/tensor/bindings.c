/* The bindings of a dispatch, see bindings.h. */
#include "bindings.h"

#include "context.h"

/* Whether two ranges of one buffer overlap, of which one is written, and have one type. */
static bool bindings_meet(const ops_bindings *bindings, uint32_t i, uint32_t j)
{
    const hal_range *x = &bindings->ranges[i], *y = &bindings->ranges[j];
    return x->buffer && x->buffer == y->buffer && bindings->types[i] == bindings->types[j] &&
           ((bindings->access[i] | bindings->access[j]) & HAL_ACCESS_WRITE) &&
           x->offset < y->offset + y->length && y->offset < x->offset + x->length;
}

/* Extends binding i by binding j > i, which is removed. */
static void bindings_join(ops_bindings *bindings, uint32_t i, uint32_t j)
{
    hal_range *x = &bindings->ranges[i], *y = &bindings->ranges[j];
    const uint64_t end_x = x->offset + x->length, end_y = y->offset + y->length;
    x->offset = x->offset < y->offset ? x->offset : y->offset;
    x->length = (end_x > end_y ? end_x : end_y) - x->offset;
    bindings->access[i] |= bindings->access[j];
    bindings->count--;
    for (uint32_t k = j; k < bindings->count; k++) {
        bindings->ranges[k] = bindings->ranges[k + 1];
        bindings->access[k] = bindings->access[k + 1];
        bindings->types[k] = bindings->types[k + 1];
    }
}

void ops_bindings_merge(ops_bindings *bindings, uint8_t *slots, uint32_t count)
{
    for (uint32_t i = 0; i < bindings->count; i++) {
        for (uint32_t j = i + 1; j < bindings->count; j++) {
            if (bindings_meet(bindings, i, j)) {
                bindings_join(bindings, i, j);
                for (uint32_t k = 0; k < count; k++) {
                    slots[k] = slots[k] == j ? (uint8_t)i : (uint8_t)(slots[k] - (slots[k] > j));
                }
                i = UINT32_MAX; /* binding i may meet earlier ones now: from the start */
                break;
            }
        }
    }
}

uint32_t ops_bind(const ops_context *context, ops_bindings *bindings, const ops_tensor *tensor,
                  uint32_t access)
{
    uint64_t size = hal_type_size(tensor->type);
    uint64_t start = 0, end = 0; /* nothing is bound of a tensor without elements */
    hal_buffer *buffer = NULL;
    if (ops_tensor_get_element_count(tensor) > 0) {
        buffer = tensor->buffer;
        int64_t first, last;
        ops_span(tensor, &first, &last);
        uint64_t alignment = context->info->binding_alignment; /* a power of two */
        alignment = alignment > size ? alignment : size;
        start = (uint64_t)first * size & ~(alignment - 1);
        end = (uint64_t)last * size;
    }
    for (uint32_t i = 0; i < bindings->count; i++) {
        hal_range *range = &bindings->ranges[i];
        uint64_t range_end = range->offset + range->length;
        if (buffer && range->buffer == buffer && bindings->types[i] == tensor->type &&
            ((access | bindings->access[i]) & HAL_ACCESS_WRITE) && start < range_end &&
            range->offset < end) {
            range->offset = start < range->offset ? start : range->offset;
            range->length = (end > range_end ? end : range_end) - range->offset;
            bindings->access[i] |= (uint8_t)access;
            return i;
        }
    }
    if (bindings->count == HAL_IR_MAX_BINDINGS) {
        return HAL_IR_MAX_BINDINGS;
    }
    uint32_t slot = bindings->count++;
    bindings->ranges[slot] = (hal_range){buffer, start, end - start};
    bindings->access[slot] = (uint8_t)access;
    bindings->types[slot] = tensor->type;
    return slot;
}

int64_t ops_base(const ops_bindings *bindings, uint32_t slot, const ops_tensor *tensor)
{
    const hal_range *range = &bindings->ranges[slot];
    int64_t first = (int64_t)(range->offset >> __builtin_ctz(hal_type_size(tensor->type)));
    return ops_tensor_get_element_count(tensor) > 0 ? tensor->offset - first : 0;
}

void ops_declare_bindings(hal_ir_builder *builder, const ops_bindings *bindings)
{
    static const char *const names[HAL_IR_MAX_BINDINGS] = {
        "b0",  "b1",  "b2",  "b3",  "b4",  "b5",  "b6",  "b7",  "b8",  "b9",  "b10", "b11",
        "b12", "b13", "b14", "b15", "b16", "b17", "b18", "b19", "b20", "b21", "b22", "b23"};
    for (uint32_t i = 0; i < bindings->count; i++) {
        hal_ir_binding(builder, names[i], bindings->types[i], bindings->access[i]);
    }
}

void ops_bindings_key(const ops_bindings *bindings, const uint8_t *slots, uint32_t count,
                      ops_cache_key *key)
{
    const uint32_t counts[2] = {bindings->count, count};
    ops_cache_key_append(key, counts, sizeof counts);
    ops_cache_key_append(key, bindings->types, bindings->count * sizeof *bindings->types);
    ops_cache_key_append(key, bindings->access, bindings->count);
    ops_cache_key_append(key, slots, count);
}
