/* Fixture of the op library's tests: a context on the cpu device, and boxes: tensors whose whole
 * buffer is mirrored on the host as doubles, so that a test sees every element that an operation
 * should not have written. Included by test_ops_*.c. */
#ifndef TESTS_UNIT_OPS_FIXTURE_H
#define TESTS_UNIT_OPS_FIXTURE_H

#include "unit.h"
#include "ops_device.h"
#include <math.h>
#include <ops/ops.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hal_device *test_device;
static hal_queue *test_queue;
static ops_context *test_context;

typedef struct box {
    ops_tensor t;
    int64_t count; /* elements of the buffer */
    double *host;  /* elements of the buffer after box_upload */
} box;

static inline int open_context(void **state)
{
    if (hal_device_open("cpu", &test_device) || hal_queue_create(test_device, &test_queue) ||
        ops_context_create(test_queue, &test_context)) {
        fprintf(stderr, "%s\n", hal_status_message());
        return -1;
    }
    /* Compilation is never deferred, however busy the machine, and shapes have their own kernels.
     */
    test_tune(test_context)->compile.fast_ns = UINT64_MAX;
    test_tune(test_context)->compile.general_from_ns = UINT64_MAX;
    return 0;
}

/* The same device as a GPU: the kernels with vectors and staged tiles, on a grid so small that its
 * other dimensions are needed. */
static inline int open_other_context(void **state)
{
    static hal_device_info other;
    int failed = open_context(state);
    if (!failed) {
        other = *test_context->info;
        other.kind = HAL_DEVICE_DISCRETE;
        other.max_vector_bytes = 16;
        other.compute_units = 4;
        other.max_grid[0] = 101;
        other.max_grid[1] = 37;
        other.max_grid[2] = 65535;
        test_set_device(test_context, &other);
    }
    return failed;
}

/* The same without subgroups, and with fewer work-items in a group. */
static inline int open_third_context(void **state)
{
    static hal_device_info third;
    int failed = open_other_context(state);
    if (!failed) {
        third = *test_context->info;
        third.max_grid[0] = third.max_grid[1] = 65535;
        third.subgroup_width = 0;
        third.max_group_items = third.max_group_size[0] = 128;
        third.preferred_group = 64;
        third.compute_units = 100;
        third.shared_bytes = 16384;
        test_set_device(test_context, &third);
    }
    return failed;
}

/* A CPU whose compiler vectorises the arithmetic of a work-item. */
static inline int open_vectors_context(void **state)
{
    static hal_device_info vectors;
    int failed = open_context(state);
    if (!failed) {
        vectors = *test_context->info;
        vectors.item_vector_bytes = 64;
        vectors.max_vector_bytes = 4;
        vectors.subgroup_width = 0;
        test_set_device(test_context, &vectors);
    }
    return failed;
}

/* The other kind of device whose loops end early: long ones are divided. */
static inline int open_limited_context(void **state)
{
    static hal_device_info limited;
    int failed = open_other_context(state);
    if (!failed) {
        limited = *test_context->info;
        limited.max_loop_iterations = 700;
        test_set_device(test_context, &limited);
    }
    return failed;
}

/* The CPU and the GPU with 64-bit indices, which only tensors of gigabytes need. */
static inline int use_index64(int failed)
{
    if (!failed) {
        test_tune(test_context)->index32_limit = 0;
    }
    return failed;
}
static inline int open_wide_context(void **state)
{
    return use_index64(open_context(state));
}
static inline int open_other_wide_context(void **state)
{
    return use_index64(open_other_context(state));
}

/* Runs the tests as every kind of device. */
#define RUN_ON_ALL(tests)                                                                      \
    (cmocka_run_group_tests_name("processor", tests, open_context, close_context) +            \
     cmocka_run_group_tests_name("other kind", tests, open_other_context, close_context) +     \
     cmocka_run_group_tests_name("third kind", tests, open_third_context, close_context) +     \
     cmocka_run_group_tests_name("vectors", tests, open_vectors_context, close_context) +      \
     cmocka_run_group_tests_name("limited", tests, open_limited_context, close_context) +      \
     cmocka_run_group_tests_name("processor, wide", tests, open_wide_context, close_context) + \
     cmocka_run_group_tests_name("other kind, wide", tests, open_other_wide_context,           \
                                 close_context))

static inline int close_context(void **state)
{
    ops_context_destroy(test_context);
    hal_queue_destroy(test_queue);
    hal_device_release(test_device);
    return 0;
}

/* Fails the test with hal's message when the call fails. */
#define ok(call)                                                                           \
    do {                                                                                   \
        hal_status status_ = (call);                                                       \
        if (status_ != HAL_OK) {                                                           \
            fail_msg("%s: %s: %s", #call, hal_status_name(status_), hal_status_message()); \
        }                                                                                  \
    } while (0)

/* Expects a status, and words in the message. */
#define refused(call, wanted, words)                                             \
    do {                                                                         \
        hal_status status_ = (call);                                             \
        if (status_ != (wanted) || !strstr(hal_status_message(), (words))) {     \
            fail_msg("%s: %s: '%s' lacks '%s'", #call, hal_status_name(status_), \
                     hal_status_message(), (words));                             \
        }                                                                        \
    } while (0)

#define invalid(call, words) refused(call, HAL_ERROR_INVALID_ARGUMENT, words)

/* A small generator, so that tests depend on the seed alone. */
static uint64_t test_seed = 1;
static inline uint32_t next_random(void)
{
    test_seed = test_seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(test_seed >> 33);
}
static inline double between(double low, double high)
{
    return low + (high - low) * (next_random() / 2147483648.0);
}

static inline double float_unit(hal_type type, double value)
{
    const hal_float_format format = hal_type_float_format(type);
    int exponent = format.least;
    if (value != 0 && isfinite(value)) {
        frexp(value, &exponent);
        exponent -= format.digits;
    }
    return ldexp(1.0, exponent > format.least ? exponent : format.least);
}

/* The largest finite number of a float type. */
static inline double float_largest(hal_type type)
{
    const hal_float_format format = hal_type_float_format(type);
    const double ones = ldexp(1.0, format.digits) - (format.infinite ? 1 : 2);
    return ldexp(ones, format.highest - format.digits + 1);
}

/* What a number too large for a float type becomes in memory. */
static inline double float_overflow(hal_type type, double value)
{
    const int infinite = hal_type_float_format(type).infinite;
    return copysign(infinite ? (double)INFINITY : (double)NAN, value);
}

/* What memory of `type` holds of a number that is in its range. */
static inline double in_type(hal_type type, double value)
{
    if (type == HAL_TYPE_BOOL) {
        return value != 0;
    }
    if (hal_type_is_integer(type)) {
        return trunc(value);
    }
    if (isnan(value) || type == HAL_TYPE_F64) {
        return value;
    }
    if (isinf(value)) {
        return float_overflow(type, value);
    }
    double unit = float_unit(type, value);
    double rounded = rint(value / unit) * unit;
    return fabs(rounded) > float_largest(type) ? float_overflow(type, value) : rounded;
}

static inline uint16_t encode_narrow(hal_type type, double value)
{
    const hal_float_format format = hal_type_float_format(type);
    const int first = 1 << (format.digits - 1);
    const uint32_t sign = signbit(value) ? hal_type_magnitude_mask(type) + 1 : 0;
    if (isnan(value)) {
        return (uint16_t)(sign | hal_type_overflow_bits(type) | (uint32_t)(first / 2));
    }
    if (isinf(value)) {
        return (uint16_t)(sign | hal_type_overflow_bits(type));
    }
    double units = ldexp(fabs(value), -format.least); /* of the smallest denormal */
    int exponent = 0;
    while (units >= 2 * first) {
        units /= 2;
        exponent++;
    }
    return (uint16_t)(sign | (uint32_t)(exponent * first + (int)units));
}

static inline double decode_narrow(hal_type type, uint32_t bits)
{
    const hal_float_format format = hal_type_float_format(type);
    const uint32_t magnitude = bits & hal_type_magnitude_mask(type);
    const int first = 1 << (format.digits - 1), overflow = (int)hal_type_overflow_bits(type);
    const int exponent = (int)magnitude / first, part = (int)magnitude % first;
    double size = exponent == 0 ? ldexp(part, format.least)
                                : ldexp(part + first, format.least + exponent - 1);
    if ((int)magnitude >= overflow) {
        size = format.infinite && part == 0 ? (double)INFINITY : (double)NAN;
    }
    return bits == magnitude ? size : -size;
}

static inline double decode_f16(uint16_t bits)
{
    return decode_narrow(HAL_TYPE_F16, bits);
}

/* One element to and from memory; `value` is one of the type's numbers. */
static inline void encode(hal_type type, double value, void *out)
{
    union {
        int8_t i8;
        uint8_t u8;
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        float f32;
        double f64;
    } u;
    if (hal_type_is_narrow_float(type)) {
        u.u16 = encode_narrow(type, value);
        memcpy(out, &u, hal_type_size(type));
        return;
    }
    switch (type) {
    case HAL_TYPE_BOOL:
    case HAL_TYPE_U8:
        u.u8 = (uint8_t)value;
        break;
    case HAL_TYPE_I8:
        u.i8 = (int8_t)value;
        break;
    case HAL_TYPE_I16:
        u.i16 = (int16_t)value;
        break;
    case HAL_TYPE_U16:
        u.u16 = (uint16_t)value;
        break;
    case HAL_TYPE_I32:
        u.i32 = (int32_t)value;
        break;
    case HAL_TYPE_U32:
        u.u32 = (uint32_t)value;
        break;
    case HAL_TYPE_I64:
        u.i64 = (int64_t)value;
        break;
    case HAL_TYPE_U64:
        u.u64 = (uint64_t)value;
        break;
    case HAL_TYPE_F32:
        u.f32 = (float)value;
        break;
    default:
        u.f64 = value;
        break;
    }
    memcpy(out, &u, hal_type_size(type));
}

static inline double decode(hal_type type, const void *in)
{
    union {
        int8_t i8;
        uint8_t u8;
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        float f32;
        double f64;
    } u;
    memset(&u, 0, sizeof u);
    memcpy(&u, in, hal_type_size(type));
    if (hal_type_is_narrow_float(type)) {
        return decode_narrow(type, u.u16);
    }
    switch (type) {
    case HAL_TYPE_BOOL:
    case HAL_TYPE_U8:
        return u.u8;
    case HAL_TYPE_I8:
        return u.i8;
    case HAL_TYPE_I16:
        return u.i16;
    case HAL_TYPE_U16:
        return u.u16;
    case HAL_TYPE_I32:
        return u.i32;
    case HAL_TYPE_U32:
        return u.u32;
    case HAL_TYPE_I64:
        return (double)u.i64;
    case HAL_TYPE_U64:
        return (double)u.u64;
    case HAL_TYPE_F32:
        return (double)u.f32;
    default:
        return u.f64;
    }
}

/* Sends the mirror to the buffer, whatever the view looks like. */
static inline void box_upload(box *b)
{
    uint64_t size = hal_type_size(b->t.type);
    char *bytes = malloc((size_t)(b->count ? (uint64_t)b->count * size : 1));
    for (int64_t i = 0; i < b->count; i++) {
        encode(b->t.type, b->host[i], bytes + (uint64_t)i * size);
    }
    ok(hal_queue_write(test_queue, b->t.buffer, 0, bytes, (uint64_t)b->count * size));
    free(bytes);
}

/* A tensor with strides (null: contiguous), surrounded by elements that nothing may touch; the
 * whole buffer is filled with random numbers between low and high. */
static inline box box_make(hal_type type, uint32_t rank, const int64_t *shape,
                           const int64_t *strides, double low, double high)
{
    box b = {.t = {NULL, type, rank, 0, {0}, {0}}};
    int64_t stride = 1, before = 0, after = 1;
    for (uint32_t i = rank; i-- > 0;) {
        b.t.shape[i] = shape[i];
        b.t.stride[i] = strides ? strides[i] : stride;
        stride *= shape[i];
        int64_t reach = shape[i] > 0 ? (shape[i] - 1) * b.t.stride[i] : 0;
        before -= reach < 0 ? reach : 0;
        after += reach > 0 ? reach : 0;
    }
    b.t.offset = before + 5;
    b.count = before + 5 + after + 67;
    b.host = malloc((size_t)b.count * sizeof *b.host);
    for (int64_t i = 0; i < b.count; i++) {
        b.host[i] = in_type(type, between(low, high));
    }
    ok(hal_buffer_create(test_device, HAL_MEMORY_DEVICE, (uint64_t)b.count * hal_type_size(type),
                         &b.t.buffer));
    box_upload(&b);
    return b;
}

/* Rounds to whole numbers: arithmetic on small ones is exact in every type. */
static inline void box_truncate(box *b)
{
    for (int64_t i = 0; i < b->count; i++) {
        b->host[i] = trunc(b->host[i]);
    }
    box_upload(b);
}

static inline void box_free(box *b)
{
    ops_tensor_release(&b->t);
    free(b->host);
}

#define boxes_free(...) boxes_free_list((box *const[]){__VA_ARGS__, NULL})

static inline void boxes_free_list(box *const *boxes)
{
    for (; *boxes; boxes++) {
        box_free(*boxes);
    }
}

/* The place of element number `linear`, counted in row-major order over `shape`, in a tensor that
 * is broadcast to it. */
static inline int64_t place_of(const ops_tensor *t, uint32_t rank, const int64_t *shape,
                               int64_t linear)
{
    int64_t place = t->offset;
    for (uint32_t i = rank; i-- > 0;) {
        int64_t at = linear % shape[i];
        linear /= shape[i];
        if (i + t->rank >= rank && t->shape[i + t->rank - rank] != 1) {
            place += at * t->stride[i + t->rank - rank];
        }
    }
    return place;
}

static inline double box_at(const box *b, const ops_tensor *like, int64_t linear)
{
    return b->host[place_of(&b->t, like->rank, like->shape, linear)];
}

/* Reads the whole buffer and compares it with want[]: within `ulps` units in the last place of the
 * type, or `absolute`. */
static inline void box_expect(const box *b, const double *want, double ulps, double absolute)
{
    uint64_t size = hal_type_size(b->t.type);
    char *bytes = malloc((size_t)((uint64_t)b->count * size));
    ok(hal_queue_read(test_queue, b->t.buffer, 0, (uint64_t)b->count * size, bytes));
    for (int64_t i = 0; i < b->count; i++) {
        double got = decode(b->t.type, bytes + (uint64_t)i * size);
        double bound = absolute;
        if (hal_type_is_float(b->t.type) && isfinite(want[i])) {
            double allowed = ulps * float_unit(b->t.type, want[i]);
            bound = allowed > bound ? allowed : bound;
        }
        int same = (isnan(got) && isnan(want[i])) || got == want[i] || fabs(got - want[i]) <= bound;
        if (!same) {
            free(bytes);
            fail_msg("element %lld of the buffer (offset %lld, type %s): %.17g, wanted %.17g, "
                     "bound %g",
                     (long long)i, (long long)b->t.offset, hal_type_name(b->t.type), got, want[i],
                     bound);
        }
    }
    free(bytes);
}

/* The same, and frees want. */
static inline void box_check(const box *b, double *want, double ulps, double absolute)
{
    box_expect(b, want, ulps, absolute);
    free(want);
}

/* A copy of the mirror, for the expected elements. */
static inline double *box_want(const box *b)
{
    double *want = malloc((size_t)b->count * sizeof *want);
    memcpy(want, b->host, (size_t)b->count * sizeof *want);
    return want;
}

#endif
