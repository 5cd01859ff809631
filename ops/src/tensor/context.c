/* The context: its memory of kernels, scalars and bindings of a dispatch. The checks of tensors are
 * in tensor.c. */
#include "context.h"

#include "compile_policy.h"
#include "plan_recorder.h"

#include <xxhash.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The entry with the key, or the free one where it belongs. */
static ops_entry *cache_slot(ops_entry *entries, uint32_t capacity, const uint64_t key[2])
{
    uint32_t i = (uint32_t)key[0] & (capacity - 1);
    while (entries[i].key[1] && (entries[i].key[0] != key[0] || entries[i].key[1] != key[1])) {
        i = (i + 1) & (capacity - 1);
    }
    return &entries[i];
}

static hal_status cache_grow(ops_context *context)
{
    uint32_t capacity = context->capacity ? 2 * context->capacity : 64;
    ops_entry *entries = calloc(capacity, sizeof *entries);
    if (!entries) {
        return hal_status_set(HAL_ERROR_OUT_OF_MEMORY,
                              "The host has no %zu bytes for %u kernels of an op context",
                              capacity * sizeof *entries, capacity);
    }
    for (uint32_t i = 0; i < context->capacity; i++) {
        const ops_entry *entry = &context->entries[i];
        if (entry->key[1]) {
            *cache_slot(entries, capacity, entry->key) = *entry;
        }
    }
    free(context->entries);
    context->entries = entries;
    context->capacity = capacity;
    return HAL_OK;
}

static void cache_clear(ops_context *context)
{
    for (uint32_t i = 0; i < context->capacity; i++) {
        hal_kernel_release(context->entries[i].kernel);
    }
    memset(context->entries, 0, context->capacity * sizeof *context->entries);
    context->count = 0;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void put_integer(ops_block *block, hal_type type, double value)
{
    if (type == HAL_TYPE_I64) {
        ops_put_u64(block, value < 0x1p63 ? (uint64_t)(int64_t)value : (uint64_t)INT64_MAX);
    } else if (type == HAL_TYPE_U64) {
        ops_put_u64(block, value < 0x1p64 ? (uint64_t)value : UINT64_MAX);
    } else {
        ops_put_u32(block, hal_type_is_signed(type) ? (uint32_t)(int32_t)value : (uint32_t)value);
    }
}

/* Rounds to nearest even and saturates, NaN to 0. The upper limit of 64 bits is one too large;
 * put_integer corrects it. */
static double clamp_integer(hal_type type, double value)
{
    int bits = 8 * (int)hal_type_size(type);
    int is_signed = hal_type_is_signed(type);
    double low = is_signed ? -ldexp(1.0, bits - 1) : 0.0;
    double high = ldexp(1.0, is_signed ? bits - 1 : bits) - (bits == 64 ? 0.0 : 1.0);
    if (isnan(value)) {
        return 0;
    }
    value = nearbyint(value);
    return value < low ? low : value > high ? high : value;
}

/* To nearest even with `digits` binary digits, the last of which is worth at least
 * 2^least_exponent. */
static double round_float(double value, int digits, int least_exponent, double largest)
{
    if (!isfinite(value) || value == 0) {
        return value;
    }
    int exponent;
    frexp(value, &exponent);
    int unit = exponent - digits > least_exponent ? exponent - digits : least_exponent;
    double rounded = ldexp(nearbyint(ldexp(value, -unit)), unit);
    return fabs(rounded) > largest ? copysign(INFINITY, value) : rounded;
}

hal_status ops_context_create(hal_queue *queue, ops_context **context)
{
    if (!queue || !context) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "ops_context_create: %s is null",
                              queue ? "context" : "queue");
    }
    ops_context *made = calloc(1, sizeof *made);
    if (!made) {
        return hal_status_set(HAL_ERROR_OUT_OF_MEMORY,
                              "ops_context_create: the host has no %zu bytes for a context",
                              sizeof *made);
    }
    made->queue = queue;
    made->device = hal_queue_get_device(queue);
    made->info = hal_device_get_info(made->device);
    made->narrow = INT64_C(1) << 31;
    made->recorder = ops_plan_recorder_create();
    made->compile_policy = ops_compile_policy_create();
    hal_status status =
        made->recorder && made->compile_policy
            ? cache_grow(made)
            : hal_status_set(HAL_ERROR_OUT_OF_MEMORY, "ops_context_create: no host memory");
    if (status) {
        ops_plan_recorder_destroy(made->recorder);
        ops_compile_policy_destroy(made->compile_policy);
        free(made);
        return status;
    }
    *context = made;
    return HAL_OK;
}

void ops_context_destroy(ops_context *context)
{
    if (!context) {
        return;
    }
    if (context->extension) {
        context->extension->destroy(context->extension);
    }
    ops_plan_recorder_destroy(context->recorder);
    ops_compile_policy_destroy(context->compile_policy);
    cache_clear(context);
    for (uint32_t type = 0; type < HAL_TYPE_COUNT; type++) {
        for (uint32_t i = 0; i < OPS_UNARY_COUNT; i++) {
            ops_expression_destroy(context->unary[i][type]);
        }
        for (uint32_t i = 0; i < OPS_BINARY_COUNT; i++) {
            ops_expression_destroy(context->binary[i][type]);
        }
        for (uint32_t to = 0; to < HAL_TYPE_COUNT; to++) {
            ops_expression_destroy(context->cast[type][to]);
        }
        ops_expression_destroy(context->where[type]);
    }
    free(context->entries);
    free(context);
}

hal_queue *ops_context_get_queue(const ops_context *context)
{
    return context ? context->queue : NULL;
}

hal_device *ops_context_get_device(const ops_context *context)
{
    return context ? context->device : NULL;
}

ops_entry *ops_cache_find(ops_context *context, const ops_cache_key *signature, uint64_t key[2])
{
    XXH128_hash_t hash = XXH3_128bits(signature->words, signature->count * sizeof(uint64_t));
    key[0] = hash.low64;
    key[1] = hash.high64 | 1; /* never the key of a free slot */
    ops_entry *entry = cache_slot(context->entries, context->capacity, key);
    return entry->key[1] ? entry : NULL;
}

hal_status ops_cache_insert(ops_context *context, const uint64_t key[2], hal_kernel *kernel,
                            uint64_t workspace_bytes, ops_entry **entry)
{
    if (context->count == OPS_CACHE_KERNELS) {
        cache_clear(context);
    }
    if (2 * (context->count + 1) > context->capacity) {
        hal_status status = cache_grow(context);
        if (status) {
            hal_kernel_release(kernel);
            return status;
        }
    }
    *entry = cache_slot(context->entries, context->capacity, key);
    **entry = (ops_entry){{key[0], key[1]}, kernel, workspace_bytes};
    context->count++;
    return HAL_OK;
}

hal_status ops_cache_build(ops_context *context, const uint64_t key[2], hal_ir_builder *builder,
                           ops_entry **entry)
{
    if (context->compile_policy->refuses) {
        hal_ir_builder_destroy(builder);
        return OPS_COMPILE_DEFERRED;
    }
    const uint64_t begin = now_ns();
    hal_ir_kernel *ir = NULL;
    hal_kernel *kernel = NULL;
    hal_status status = hal_ir_builder_finish(builder, &ir);
    hal_ir_builder_destroy(builder);
    if (!status) {
        status = hal_kernel_create(context->device, ir, &kernel);
    }
    hal_ir_kernel_destroy(ir);
    ops_compile_policy_add_time(context->compile_policy, now_ns() - begin);
    return status ? status : ops_cache_insert(context, key, kernel, 0, entry);
}

hal_status ops_dispatch(ops_context *context, const ops_entry *entry, const uint32_t grid[3],
                        const ops_bindings *bindings, const ops_block *block)
{
    uint32_t bytes = (block->used + block->alignment - 1) / block->alignment * block->alignment;
    return ops_record_dispatch(context, entry->kernel, grid, bindings->ranges, bindings->count,
                               block->bytes, bytes);
}

void ops_put(ops_block *block, const void *value, uint32_t bytes)
{
    if (bytes == 8) {
        uint64_t wide;
        memcpy(&wide, value, sizeof wide);
        ops_put_u64(block, wide);
    } else {
        uint32_t narrow;
        memcpy(&narrow, value, sizeof narrow);
        ops_put_u32(block, narrow);
    }
}

/* The block stays a whole number of 8 bytes, with zeros where nothing was put. */
void ops_put_u32(ops_block *block, uint32_t value)
{
    const uint32_t at = block->used;
    const uint64_t with_zeros = value;
    if (at % 8 == 0 && at + 8 <= sizeof block->bytes) {
        memcpy(block->bytes + at, &with_zeros, 8);
    } else if (at + 4 <= sizeof block->bytes) {
        memcpy(block->bytes + at, &value, 4);
    }
    block->used = at + 4;
}

void ops_put_u64(ops_block *block, uint64_t value)
{
    const uint32_t at = (block->used + 7) & ~7u;
    if (at + 8 <= sizeof block->bytes) {
        memcpy(block->bytes + at, &value, 8);
    }
    block->used = at + 8;
    block->alignment = 8;
}

void ops_put_index(ops_block *block, int wide, int64_t value)
{
    if (wide) {
        ops_put_u64(block, (uint64_t)value);
    } else {
        ops_put_u32(block, (uint32_t)value);
    }
}

void ops_put_number(ops_block *block, hal_type type, double value)
{
    if (type == HAL_TYPE_F32) {
        float number = (float)value;
        ops_put(block, &number, sizeof number);
    } else if (type == HAL_TYPE_F64) {
        ops_put(block, &value, sizeof value);
    } else {
        put_integer(block, type, clamp_integer(type, value));
    }
}

double ops_round_to(hal_type storage, double value)
{
    switch (storage) {
    case HAL_TYPE_F16:
        return round_float(value, 11, -24, 65504.0);
    case HAL_TYPE_BF16:
        return round_float(value, 8, -133, 0x1.fep127);
    case HAL_TYPE_F32:
        return (float)value;
    case HAL_TYPE_F64:
        return value;
    case HAL_TYPE_BOOL:
        return value != 0;
    default:
        return clamp_integer(storage, value);
    }
}

hal_ir_value ops_scalar(hal_ir_builder *builder, const char *name, uint32_t i, uint32_t j,
                        hal_type type)
{
    char text[40];
    snprintf(text, sizeof text, "%s_%u_%u", name, i, j);
    return hal_ir_scalar_value(builder, text, type);
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
        if (range->buffer == buffer && bindings->types[i] == tensor->type &&
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
