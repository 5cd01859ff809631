/* Random tensors. Element i takes its words from the Philox block whose counter is {i / 4, stream}
 * (i / 2 for F64, which needs two words) under the seed as key. */
#include "tensor/indexing.h"
#include "philox.h"
#include "tensor/dispatch.h"
#include "tensor/number.h"
#include "tensor/kernel_cache.h"

#include <ops/random.h>

#include <math.h>
#include <stdlib.h>

/* The distribution. */
enum { UNIFORM = 0, NORMAL = 1 };

/* What the kernel depends on. */
OPS_KEY_STRUCTURES_BEGIN
typedef struct random_form {
    hal_type storage, type; /* of elements, of values */
    uint8_t kind;
    uint8_t index64;    /* indices have 64 bits */
    uint16_t vectors;   /* a block's elements are stored at once */
    uint16_t per_block; /* elements */
    uint32_t group;     /* work-items */
} random_form;
OPS_KEY_STRUCTURES_END

typedef struct random_plan {
    random_form form;
    uint32_t grid[3];
    ops_bindings bindings;
    int64_t base;
} random_plan;

/* The scalars of the kernel. */
typedef struct random_scalars {
    hal_ir_value total, base, key[2], stream[2], offset, scale, top;
} random_scalars;

static hal_status check_output(const ops_context *context, const char *function,
                               const ops_tensor *y, bool integers)
{
    HAL_TRY(ops_check_output(context, function, "y", y));
    char text[OPS_TEXT_BYTES];
    int words = y->type == HAL_TYPE_U32 || y->type == HAL_TYPE_I32;
    if (!hal_type_is_float(y->type) && !(integers && words)) {
        return ops_invalid("%s: y: expected floats%s, got %s", function,
                           integers ? ", u32 or i32" : "", ops_describe(y, text));
    }
    if (!ops_tensor_is_contiguous(y)) {
        return ops_invalid("%s: y: expected a contiguous tensor, got %s with other strides",
                           function, ops_describe(y, text));
    }
    return HAL_OK;
}

static hal_status random_plan_init(const ops_context *context, const char *function,
                                   const ops_tensor *y, random_plan *p)
{
    uint64_t total = (uint64_t)ops_tensor_get_element_count(y);
    p->form.storage = y->type;
    p->form.type = hal_type_of_value(y->type);
    p->form.per_block = y->type == HAL_TYPE_F64 ? 2 : 4;
    p->form.group = ops_group_items(context->info);
    uint32_t slot = ops_bind(context, &p->bindings, y, HAL_ACCESS_WRITE);
    p->base = ops_base(&p->bindings, slot, y);
    p->form.index64 = (int64_t)total + p->base >= context->tuning->index32_limit;
    uint64_t start = p->bindings.ranges[slot].offset / hal_type_size(y->type);
    p->form.vectors = (total | start | (uint64_t)p->base) % p->form.per_block == 0;
    uint64_t blocks = (total + p->form.per_block - 1) / p->form.per_block;
    return ops_grid_spread(context, function, (blocks + p->form.group - 1) / p->form.group,
                           p->grid);
}

static void emit_scalars(hal_ir_builder *b, const random_form *p, random_scalars *s)
{
    hal_type index = p->index64 ? HAL_TYPE_U64 : HAL_TYPE_U32;
    hal_type carrier = hal_type_is_float(p->type) ? p->type : (hal_type)HAL_TYPE_U32;
    s->total = hal_ir_scalar_value(b, "total", index);
    s->base = hal_ir_scalar_value(b, "base", index);
    s->key[0] = hal_ir_scalar_value(b, "key0", HAL_TYPE_U32);
    s->key[1] = hal_ir_scalar_value(b, "key1", HAL_TYPE_U32);
    s->stream[0] = hal_ir_scalar_value(b, "stream0", HAL_TYPE_U32);
    s->stream[1] = hal_ir_scalar_value(b, "stream1", HAL_TYPE_U32);
    s->offset = hal_ir_scalar_value(b, "offset", carrier);
    s->scale = hal_ir_scalar_value(b, "scale", carrier);
    s->top = hal_ir_scalar_value(b, "top", carrier);
}

/* 53 bits of two words, as F64. */
static hal_ir_value words_to_f64(hal_ir_builder *b, hal_ir_value high, hal_ir_value low)
{
    hal_ir_value upper = hal_ir_shr(b, high, hal_ir_u32(b, 5));
    hal_ir_value lower = hal_ir_shr(b, low, hal_ir_u32(b, 6));
    return hal_ir_fma(b, hal_ir_cast(b, HAL_TYPE_F64, upper), hal_ir_f64(b, 0x1p26),
                      hal_ir_cast(b, HAL_TYPE_F64, lower));
}

/* Two independent normal deviates from a radius and an angle. */
static void normal_pair(hal_ir_builder *b, const random_form *p, const hal_ir_value *words,
                        hal_ir_value *values)
{
    hal_type type = p->type;
    double pi = 3.14159265358979323846;
    hal_ir_value radius, angle;
    if (type == HAL_TYPE_F64) {
        radius = hal_ir_fma(b, words_to_f64(b, words[0], words[1]), hal_ir_f64(b, 0x1p-53),
                            hal_ir_f64(b, 0x1p-54));
        angle = hal_ir_mul(b, words_to_f64(b, words[2], words[3]), hal_ir_f64(b, pi * 0x1p-52));
    } else {
        radius = hal_ir_fma(b, hal_ir_cast(b, type, words[0]), hal_ir_f32(b, 0x1p-32f),
                            hal_ir_f32(b, 0x1p-33f));
        angle = hal_ir_mul(b, hal_ir_cast(b, type, words[1]), hal_ir_f32(b, (float)(pi * 0x1p-31)));
    }
    hal_ir_value log = hal_ir_math(b, HAL_IR_LOG, radius, HAL_IR_NONE, 0);
    radius = hal_ir_sqrt(b, hal_ir_mul(b, log, hal_ir_number(b, type, -2)));
    values[0] = hal_ir_mul(b, radius, hal_ir_math(b, HAL_IR_COS, angle, HAL_IR_NONE, 0));
    values[1] = hal_ir_mul(b, radius, hal_ir_math(b, HAL_IR_SIN, angle, HAL_IR_NONE, 0));
}

/* A number in [0, 1) of 24 or 53 bits. Narrow elements round what becomes of it: fewer bits here
 * would round down, and shift the mean. */
static hal_ir_value unit_fraction(hal_ir_builder *b, const random_form *p,
                                  const hal_ir_value *words)
{
    if (p->type == HAL_TYPE_F64) {
        return hal_ir_mul(b, words_to_f64(b, words[0], words[1]), hal_ir_f64(b, 0x1p-53));
    }
    hal_ir_value top = hal_ir_shr(b, words[0], hal_ir_u32(b, 8));
    return hal_ir_mul(b, hal_ir_cast(b, HAL_TYPE_F32, top), hal_ir_f32(b, 0x1p-24f));
}

/* The elements of a block from its words. */
static void block_elements(hal_ir_builder *b, const random_form *p, const random_scalars *s,
                           const hal_ir_value *words, hal_ir_value *values)
{
    uint32_t words_each = 4 / p->per_block;
    if (!hal_type_is_float(p->type)) {
        for (uint32_t i = 0; i < 4; i++) {
            values[i] = ops_value_cast(b, p->type, words[i]);
        }
        return;
    }
    for (uint32_t i = 0; p->kind == NORMAL && i < p->per_block; i += 2) {
        normal_pair(b, p, words + i * words_each, values + i);
    }
    for (uint32_t i = 0; i < p->per_block; i++) {
        if (p->kind == UNIFORM) {
            hal_ir_value part = unit_fraction(b, p, words + i * words_each);
            values[i] = hal_ir_min(b, hal_ir_fma(b, part, s->scale, s->offset), s->top);
        } else {
            values[i] = hal_ir_fma(b, values[i], s->scale, s->offset);
        }
    }
}

static void emit_random(hal_ir_builder *b, const void *user)
{
    const random_plan *plan = user;
    const random_form *p = &plan->form;
    random_scalars s;
    hal_type index = p->index64 ? HAL_TYPE_U64 : HAL_TYPE_U32;
    ops_declare_bindings(b, &plan->bindings);
    hal_ir_group_size(b, p->group, 1, 1);
    emit_scalars(b, p, &s);
    hal_ir_value block = hal_ir_mul(b, ops_value_cast(b, index, ops_index_group(b)),
                                    ops_index_constant(b, index, p->group));
    block = hal_ir_add(b, block, ops_value_cast(b, index, hal_ir_id(b, HAL_IR_LOCAL_ID, 0)));
    hal_ir_value high = hal_ir_u32(b, 0);
    if (p->index64) {
        hal_ir_value shift = hal_ir_u64(b, 32);
        high = hal_ir_cast(b, HAL_TYPE_U32, hal_ir_shr(b, block, shift));
    }
    hal_ir_value counter[4] = {ops_value_cast(b, HAL_TYPE_U32, block), high, s.stream[0],
                               s.stream[1]};
    hal_ir_value words[4], values[4];
    ops_philox_emit(b, counter, s.key, words);
    block_elements(b, p, &s, words, values);

    hal_ir_value first = hal_ir_mul(b, block, ops_index_constant(b, index, p->per_block));
    hal_ir_value place = hal_ir_add(b, s.base, first);
    if (p->vectors) {
        hal_ir_store_wide(b, 0, place, 0, hal_ir_lt(b, first, s.total),
                          hal_ir_pack(b, p->per_block, values));
        return;
    }
    for (uint32_t i = 0; i < p->per_block; i++) {
        hal_ir_value element = hal_ir_add(b, first, ops_index_constant(b, index, i));
        hal_ir_store_wide(b, 0, place, (int32_t)i, hal_ir_lt(b, element, s.total), values[i]);
    }
}

static hal_status random_record(ops_context *context, const char *function, uint8_t kind,
                                ops_random_key key, const ops_tensor *y, double offset,
                                double scale, double top)
{
    if (ops_tensor_get_element_count(y) == 0) {
        return HAL_OK;
    }
    random_plan p = {.form = {.kind = kind}};
    HAL_TRY(random_plan_init(context, function, y, &p));
    ops_cache_key cache_key;
    ops_entry *entry;
    ops_cache_key_begin(&cache_key, OPS_FAMILY_RANDOM);
    ops_cache_key_append(&cache_key, &p.form, sizeof p.form);
    HAL_TRY(ops_cache_get(context, &cache_key, kind == NORMAL ? "random_normal" : "random_uniform",
                          emit_random, &p, &entry));
    ops_block block;
    ops_block_begin(&block);
    ops_put_index(&block, p.form.index64, ops_tensor_get_element_count(y));
    ops_put_index(&block, p.form.index64, p.base);
    const uint32_t words[4] = {(uint32_t)key.seed, (uint32_t)(key.seed >> 32), (uint32_t)key.stream,
                               (uint32_t)(key.stream >> 32)};
    for (uint32_t i = 0; i < 4; i++) {
        ops_put_u32(&block, words[i]);
    }
    hal_type carrier = hal_type_is_float(p.form.type) ? p.form.type : (hal_type)HAL_TYPE_U32;
    ops_put_number(&block, carrier, offset);
    ops_put_number(&block, carrier, scale);
    ops_put_number(&block, carrier, top);
    return ops_dispatch(context, entry, p.grid, &p.bindings, &block);
}

/* The largest number of a type below `value`, which is a number of that type. */
static double next_below(hal_type storage, double value)
{
    if (storage == HAL_TYPE_F64) {
        return nextafter(value, -(double)INFINITY);
    }
    if (storage == HAL_TYPE_F32) {
        return nextafterf((float)value, -INFINITY);
    }
    const hal_float_format format = hal_type_float_format(storage);
    const int digits = format.digits, least = format.least;
    int exponent = least;
    double part = frexp(value, &exponent);
    exponent -= digits + (part == 0.5); /* numbers below a power of two are closer */
    return value - ldexp(1.0, value == 0 || exponent < least ? least : exponent);
}

/* R. Durstenfeld's form of the shuffle of R. A. Fisher and F. Yates: number i is exchanged with one
 * of the first i + 1. */
static void numbers_shuffle(int32_t *numbers, uint32_t count, ops_random_key key)
{
    const uint32_t seed[2] = {(uint32_t)key.seed, (uint32_t)(key.seed >> 32)};
    uint32_t words[4] = {0};
    for (uint32_t i = 0; i < count; i++) {
        if (i % 2 == 0) {
            const uint32_t counter[4] = {i / 2, 0, (uint32_t)key.stream,
                                         (uint32_t)(key.stream >> 32)};
            ops_philox(counter, seed, words);
        }
        /* 64 random bits times (i + 1), the upper part of the product. */
        const uint32_t *pair = words + i % 2 * 2;
        uint64_t range = (uint64_t)i + 1;
        uint64_t place = (pair[0] * range + (pair[1] * range >> 32)) >> 32;
        numbers[i] = numbers[place];
        numbers[place] = (int32_t)i;
    }
}

hal_status ops_random_uniform(ops_context *context, ops_random_key key, double low, double high,
                              const ops_tensor *y)
{
    HAL_TRY(check_output(context, "ops_random_uniform", y, 1));
    if (hal_type_is_integer(y->type)) {
        return random_record(context, "ops_random_uniform", UNIFORM, key, y, 0, 1, 0);
    }
    double from = ops_round_to(y->type, low), to = ops_round_to(y->type, high);
    const double range = ops_subtract(to, from);
    if (!(from < to) || !isfinite(ops_round_to(hal_type_of_value(y->type), range))) {
        return ops_invalid("ops_random_uniform: high: expected a finite range above low in %s, got "
                           "low %s and high %s",
                           hal_type_name(y->type), OPS_NUMBER(low, -1), OPS_NUMBER(high, -1));
    }
    return random_record(context, "ops_random_uniform", UNIFORM, key, y, from, range,
                         next_below(y->type, to));
}

hal_status ops_random_normal(ops_context *context, ops_random_key key, double mean,
                             double deviation, const ops_tensor *y)
{
    hal_status status = check_output(context, "ops_random_normal", y, 0);
    if (status == HAL_OK && (!isfinite(mean) || !isfinite(deviation) || deviation < 0)) {
        status = ops_invalid("ops_random_normal: deviation: expected a finite mean and a finite "
                             "deviation of at least 0, got mean %s and deviation %s",
                             OPS_NUMBER(mean, -1), OPS_NUMBER(deviation, -1));
    }
    return status != HAL_OK
               ? status
               : random_record(context, "ops_random_normal", NORMAL, key, y, mean, deviation, 0);
}

hal_status ops_random_permutation(ops_context *context, ops_random_key key, const ops_tensor *y)
{
    HAL_TRY(ops_check_output(context, "ops_random_permutation", "y", y));
    if (y->rank != 1 || y->type != HAL_TYPE_I32 || y->shape[0] > INT32_MAX) {
        char text[OPS_TEXT_BYTES];
        return ops_invalid("ops_random_permutation: y: expected i32 of rank 1, got %s",
                           ops_describe(y, text));
    }
    uint32_t count = (uint32_t)y->shape[0];
    if (count == 0) {
        return HAL_OK;
    }
    int32_t *numbers = malloc(count * sizeof *numbers);
    if (!numbers) {
        return hal_status_set(HAL_ERROR_OUT_OF_MEMORY,
                              "ops_random_permutation: the host has no memory for %u numbers",
                              count);
    }
    numbers_shuffle(numbers, count, key);
    uint64_t bytes = (uint64_t)count * sizeof *numbers;
    hal_status status = ops_tensor_write(context, y, numbers, bytes);
    free(numbers);
    return status;
}
