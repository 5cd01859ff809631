/* Fuzz target: every operation on tensors. Bytes are a program of calls with any types, ranks,
 * lengths, strides, offsets, axes, counts, options and null arguments. No call crashes; a failed
 * call sets a message; no kernel accesses memory beyond its buffers; everything is released. The
 * device is the mock plugin. Run by ./dev check as the ctest fuzz_ops_tensor. */
#include <dlfcn.h>
#include <math.h>
#include <ops/ops.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mock.h"

enum {
    POOL = 6, /* buffers */
    BUFFER_BYTES = 2048,
    MOST_ELEMENTS = 4096, /* of a tensor; strides of 0 make many of few */
    MOST_CALLS = 24,
    MOST_TENSORS = 20, /* of a list */
    INPUTS = 200,      /* that share a context and its kernels */
    EXPRESSIONS = 5
};

typedef struct machine {
    const uint8_t *data, *end;
    ops_tensor last; /* what the last view gave */
    int is_null_given;
} machine;

/* Storage of the arguments of a call. */
typedef struct arguments {
    ops_tensor tensors[MOST_TENSORS];
    uint32_t count;
} arguments;

static const mock_state *mock;
static hal_device *device, *other;
static hal_queue *queue;
static ops_context *the_context;
static hal_buffer *buffers[POOL]; /* the last one of another device */
static ops_expression *expressions[EXPRESSIONS];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
    if (!holds) {
        fprintf(stderr, "The last message of hal: %s\n", hal_status_message());
        abort();
    }
}

/* x * x; x + y in F32; x + y in I32; five inputs, as a product's epilogue has; two outputs. */
static void make_expressions(void)
{
    static const struct {
        uint32_t inputs, outputs;
        hal_type type;
    } plans[EXPRESSIONS] = {{1, 1, HAL_TYPE_F32},
                            {2, 1, HAL_TYPE_F32},
                            {2, 1, HAL_TYPE_I32},
                            {5, 1, HAL_TYPE_F32},
                            {3, 2, HAL_TYPE_F32}};
    for (int e = 0; e < EXPRESSIONS; e++) {
        hal_ir_builder *b = NULL;
        must(hal_ir_builder_create_fragment("fuzzed", &b) == HAL_OK);
        hal_ir_value sum = hal_ir_input(b, 0, plans[e].type);
        sum = hal_ir_mul(b, sum, sum);
        for (uint32_t i = 1; i < plans[e].inputs; i++) {
            const int is_place = plans[e].inputs == 5 && i < 4;
            const hal_ir_value x = hal_ir_input(b, i, is_place ? HAL_TYPE_U32 : plans[e].type);
            sum = is_place ? sum : hal_ir_add(b, sum, x);
        }
        for (uint32_t i = 0; i < plans[e].outputs; i++) {
            hal_ir_output(b, i, sum);
        }
        must(ops_expression_create(b, &expressions[e]) == HAL_OK);
    }
}

/* The threads that compile are joined when their device is closed. */
static void close_device(void)
{
    hal_device_release(device);
    hal_device_release(other);
}

static void open_device(void)
{
    if (mock) {
        return;
    }
    setenv("HAL_PLUGIN_PATH", TEST_PLUGINS "/mock", 1);
    void *library = dlopen(TEST_PLUGINS "/mock/hal_mock.so", RTLD_NOW | RTLD_LOCAL);
    must(library != NULL);
    mock = dlsym(library, MOCK_STATE_SYMBOL);
    must(mock && hal_device_open("mock:0", &device) == HAL_OK &&
         hal_device_open("mock:1", &other) == HAL_OK);
    atexit(close_device);
    make_expressions();
}

static void begin(void)
{
    must(hal_queue_create(device, &queue) == HAL_OK &&
         ops_context_create(queue, &the_context) == HAL_OK);
    for (int i = 0; i < POOL; i++) {
        must(hal_buffer_create(i + 1 < POOL ? device : other, HAL_MEMORY_DEVICE,
                               i == 1 ? 6 : BUFFER_BYTES, &buffers[i]) == HAL_OK);
    }
}

static uint32_t next(machine *m)
{
    return m->data < m->end ? *m->data++ : 0;
}

static int64_t next_length(machine *m)
{
    static const int64_t odd[] = {-1,
                                  -2,
                                  INT64_MIN,
                                  INT64_MAX,
                                  INT32_MAX,
                                  INT32_MIN,
                                  INT64_C(1) << 31,
                                  INT64_C(1) << 32,
                                  INT64_C(1) << 62,
                                  33,
                                  INT64_C(3) << 40,
                                  -(INT64_C(1) << 40),
                                  -3,
                                  100,
                                  (INT64_C(1) << 62) - 1,
                                  64};
    const uint32_t byte = next(m);
    return byte >= 240 ? odd[byte - 240] : (int64_t)(byte % 8);
}

static uint32_t next_shape(machine *m, int64_t *shape)
{
    const uint32_t rank = next(m) % 11;
    for (uint32_t i = 0; i < rank; i++) {
        shape[i] = next_length(m);
    }
    return rank;
}

static ops_context *context(machine *m)
{
    if (m->data < m->end && *m->data == 254) {
        m->data++;
        m->is_null_given = 1;
        return NULL;
    }
    return the_context;
}

static void make_contiguous(ops_tensor *made)
{
    int64_t stride = 1;
    for (uint32_t i = made->rank < OPS_MAX_RANK ? made->rank : OPS_MAX_RANK; i-- > 0;) {
        made->stride[i] = stride;
        if (__builtin_mul_overflow(stride, made->shape[i], &stride)) {
            stride = INT64_MAX;
        }
    }
}

/* A valid tensor with too many elements would take too long: it loses its buffer. */
static void keep_in_bounds(ops_tensor *made)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < made->rank && i < OPS_MAX_RANK; i++) {
        if (made->shape[i] <= 0) {
            return;
        }
        if (__builtin_mul_overflow(count, made->shape[i], &count)) {
            count = INT64_MAX;
        }
    }
    for (uint32_t i = 0; count > MOST_ELEMENTS && i < made->rank && i < OPS_MAX_RANK; i++) {
        if (made->shape[i] > 1 && llabs(made->stride[i]) < BUFFER_BYTES) {
            made->buffer = NULL;
        }
    }
}

/* A row-major tensor of small lengths, the last view, or arbitrary numbers. Few shapes, so that
 * those of a call often fit together. */
static ops_tensor next_tensor(machine *m)
{
    static const int64_t shapes[][3] = {{1, 4, 4}, {2, 3, 4}, {1, 1, 5}, {3, 4, 4},
                                        {2, 4, 3}, {1, 2, 0}, {1, 1, 1}, {1, 33, 5}};
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F32,  HAL_TYPE_I32, HAL_TYPE_F16,
                                     HAL_TYPE_F64, HAL_TYPE_BOOL, HAL_TYPE_U8,  HAL_TYPE_I64};
    const uint32_t how = next(m), what = next(m);
    ops_tensor made = {0};
    if (how % 8 == 7) {
        return m->last;
    }
    made.buffer = what % 64 == 63 ? NULL
                                  : buffers[what % 64 == 62   ? POOL - 1
                                            : what % 32 == 31 ? 1
                                            : what % 4        ? 2 + what % 3
                                                              : 0];
    made.type = types[what / 4 % 8];
    if (how % 8 < 5) {
        made.rank = how / 8 % 4;
        for (uint32_t i = 0; i < made.rank; i++) {
            made.shape[i] = shapes[how / 32][3 - made.rank + i];
        }
        made.offset = what / 32 * 16;
        make_contiguous(&made);
        if (how % 8 == 4 && made.rank >= 2) { /* its last two axes change places */
            const uint32_t last = made.rank - 1;
            const int64_t length = made.shape[last], stride = made.stride[last];
            made.shape[last] = made.shape[last - 1];
            made.stride[last] = made.stride[last - 1];
            made.shape[last - 1] = length;
            made.stride[last - 1] = stride;
        }
        return made;
    }
    int64_t numbers[16] = {0};
    made.type = how / 8 % 2 ? (hal_type)(next(m) % 20) : made.type;
    made.rank = next_shape(m, numbers);
    memcpy(made.shape, numbers, sizeof made.shape);
    made.offset = next_length(m);
    if (how % 8 == 5) {
        make_contiguous(&made);
    } else {
        for (uint32_t i = 0; i < OPS_MAX_RANK && i < made.rank; i++) {
            made.stride[i] = next_length(m);
        }
    }
    keep_in_bounds(&made);
    return made;
}

/* A tensor, or sometimes null. */
static const ops_tensor *tensor(machine *m, ops_tensor *place)
{
    if (m->data < m->end && *m->data == 255) {
        m->data++;
        m->is_null_given = 1;
        return NULL;
    }
    *place = next_tensor(m);
    return place;
}

static hal_status call_tensor(machine *m, uint32_t what)
{
    static uint8_t elements[MOST_ELEMENTS * 8];
    int64_t shape[16];
    ops_tensor made = {0}, place;
    if (what < 2) {
        const hal_type type = (hal_type)(next(m) % 16);
        const uint32_t rank = next_shape(m, shape);
        int64_t count = 1;
        for (uint32_t i = 0; i < rank; i++) {
            count = shape[i] < 0 || shape[i] > MOST_ELEMENTS ? MOST_ELEMENTS : count * shape[i];
            count = count > MOST_ELEMENTS ? MOST_ELEMENTS : count;
        }
        ops_context *at = context(m);
        /* No more elements than the host has. */
        const hal_status status =
            what == 0 || count >= MOST_ELEMENTS
                ? ops_tensor_create(at, type, rank, shape, &made)
                : ops_tensor_from_host(at, type, rank, shape, elements, &made);
        must(status != HAL_OK || ops_tensor_is_contiguous(&made));
        ops_tensor_release(&made);
        return status;
    }
    const ops_tensor *x = tensor(m, &place);
    const uint32_t size = x ? hal_type_size(x->type) : 0;
    const int64_t count = ops_tensor_get_element_count(x);
    uint64_t bytes = count >= 0 && count < MOST_ELEMENTS ? (uint64_t)count * size : 1;
    bytes += next(m) % 16 == 0;
    void *memory = next(m) == 255 ? NULL : elements;
    ops_context *at = context(m);
    if (!memory && bytes == 0) {
        memory = elements; /* nothing from nowhere is allowed */
    }
    (void)ops_tensor_is_contiguous(x);
    return what == 2 ? ops_tensor_write(at, x, memory, bytes)
                     : ops_tensor_read(at, x, bytes, memory);
}

static hal_status call_view(machine *m, uint32_t what)
{
    int64_t shape[16];
    int32_t axes[OPS_MAX_RANK];
    ops_tensor place, view = {0};
    const ops_tensor *x = next(m) % 2 ? &m->last : tensor(m, &place);
    hal_status status;
    if (what == 5) {
        const uint32_t axis = next(m) % 10;
        const int64_t start = next_length(m), count = next_length(m);
        status = ops_tensor_slice(x, axis, start, count, next_length(m), &view);
    } else if (what == 6) {
        for (uint32_t i = 0; i < OPS_MAX_RANK; i++) {
            axes[i] = (int32_t)(next(m) % 18) - 9;
        }
        status = ops_tensor_permute(x, axes, &view);
    } else if (what == 7) {
        const uint32_t axis = next(m) % 10;
        status = ops_tensor_transpose(x, axis, next(m) % 10, &view);
    } else {
        const uint32_t rank = next_shape(m, shape);
        status = what == 8 ? ops_tensor_reshape(x, rank, shape, &view)
                           : ops_tensor_broadcast(x, rank, shape, &view);
    }
    if (status == HAL_OK) {
        must(view.rank <= OPS_MAX_RANK);
        keep_in_bounds(&view);
        m->last = view;
    }
    return status;
}

static double next_number(machine *m)
{
    static const double numbers[] = {0, 1, -1, 0.5, 1e300, -1e300, 3e9, 1e-320};
    const uint32_t byte = next(m);
    return byte == 255 ? (double)NAN : byte == 254 ? (double)INFINITY : numbers[byte % 8];
}

static const ops_expression *expression(machine *m)
{
    const uint32_t byte = next(m);
    m->is_null_given |= byte == 255;
    return byte == 255 ? NULL : expressions[byte % EXPRESSIONS];
}

static const ops_tensor *list(machine *m, arguments *made)
{
    const uint32_t byte = next(m);
    made->count = byte % 8 == 7 ? byte % MOST_TENSORS : byte % 4;
    for (uint32_t i = 0; i < made->count; i++) {
        made->tensors[i] = next_tensor(m);
    }
    m->is_null_given |= byte == 255 && made->count > 0;
    return byte == 255 ? NULL : made->tensors;
}

static hal_status call_pointwise(machine *m, uint32_t what)
{
    arguments inputs, outputs;
    ops_tensor p, q, r, s;
    switch (what) {
    case 10: {
        const ops_unary_function function = (ops_unary_function)(next(m) % (OPS_UNARY_COUNT + 2));
        const ops_tensor *x = tensor(m, &p), *y = tensor(m, &q);
        return ops_unary(context(m), function, x, y);
    }
    case 11: {
        const ops_binary_function function =
            (ops_binary_function)(next(m) % (OPS_BINARY_COUNT + 2));
        const ops_tensor *x = tensor(m, &p), *y = tensor(m, &q), *z = tensor(m, &r);
        return ops_binary(context(m), function, x, y, z);
    }
    case 12: {
        const ops_tensor *condition = tensor(m, &p), *x = tensor(m, &q), *y = tensor(m, &r);
        const ops_tensor *out = tensor(m, &s);
        return ops_where(context(m), condition, x, y, out);
    }
    case 13: {
        const ops_tensor *x = tensor(m, &p), *y = tensor(m, &q);
        return ops_cast(context(m), x, y);
    }
    case 14: {
        const ops_tensor *y = tensor(m, &p);
        const double value = next_number(m);
        return ops_fill(context(m), value, y);
    }
    default: {
        const ops_expression *wanted = expression(m);
        const ops_tensor *x = list(m, &inputs), *y = list(m, &outputs);
        return ops_pointwise(context(m), wanted, x, inputs.count, y, outputs.count);
    }
    }
}

static hal_status call_other(machine *m, uint32_t what)
{
    arguments parts;
    ops_tensor p, q, r;
    const uint32_t axis = next(m) % 10;
    const ops_random_key key = {next(m), next(m)};
    const double first = next_number(m), second = next_number(m);
    const ops_tensor *y = tensor(m, &p);
    if (what == 17) {
        const ops_tensor *x = list(m, &parts);
        return ops_concatenate(context(m), axis, x, parts.count, y);
    }
    if (what == 18) {
        return ops_iota(context(m), first, second, y);
    }
    if (what == 19) {
        return ops_random_uniform(context(m), key, first, second, y);
    }
    if (what == 20) {
        return ops_random_normal(context(m), key, first, second, y);
    }
    if (what == 21) {
        return ops_random_permutation(context(m), key, y);
    }
    const ops_tensor *x = tensor(m, &q);
    switch (what) {
    case 22:
        return ops_softmax(context(m), axis, x, y);
    case 23:
        return ops_log_softmax(context(m), axis, x, y);
    case 24:
        return ops_one_hot(context(m), x, y);
    case 25:
        return ops_copy(context(m), x, y);
    default: {
        const ops_tensor *indices = tensor(m, &r);
        return ops_gather(context(m), axis, x, indices, y);
    }
    }
}

static hal_status call_gemm(machine *m)
{
    arguments inputs;
    ops_tensor p, q, r;
    ops_gemm_options options = {.size = sizeof(ops_gemm_options),
                                .alpha = next_number(m),
                                .beta = next(m) % 2 ? next_number(m) : 0,
                                .precision = next(m) % 6,
                                .impl = (ops_gemm_impl)(next(m) % 4)};
    const uint32_t has = next(m);
    if (has % 4 == 0) {
        options.epilogue = expression(m);
        options.inputs = list(m, &inputs);
        options.input_count = inputs.count;
    }
    const ops_tensor *a = tensor(m, &p), *b = tensor(m, &q), *c = tensor(m, &r);
    /* A null expression means no epilogue. */
    m->is_null_given = 0;
    return ops_gemm(context(m), has % 8 == 7 ? NULL : &options, a, b, c);
}

static hal_status call_reduce(machine *m)
{
    arguments before, after;
    ops_tensor p, q;
    ops_reduce_options options = OPS_REDUCE_OPTIONS_DEFAULT;
    const ops_reduction reduction = (ops_reduction)(next(m) % (OPS_REDUCTION_COUNT + 1));
    const uint32_t axis = next(m) % 10, has = next(m);
    const ops_tensor *x = tensor(m, &p), *y = tensor(m, &q);
    if (has % 4 == 1) {
        options.prologue = expression(m);
        options.prologue_inputs = list(m, &before);
        options.prologue_input_count = before.count;
    }
    if (has % 8 == 2) {
        options.epilogue = expression(m);
        options.epilogue_inputs = list(m, &after);
        options.epilogue_input_count = after.count;
    }
    m->is_null_given = 0;
    return ops_reduce(context(m), reduction, axis, x, has % 2 ? &options : NULL, y);
}

/* An expression of any functions over any types. */
static hal_status build(machine *m)
{
    hal_ir_builder *b = NULL;
    ops_expression *made = NULL;
    const uint32_t count = next(m) % 20;
    const hal_status created = next(m) % 8 ? hal_ir_builder_create_fragment("wild", &b)
                                           : hal_ir_builder_create("whole", &b);
    must(created == HAL_OK);
    hal_ir_value value = hal_ir_input(b, 0, (hal_type)(next(m) % 16));
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t function = next(m);
        const hal_ir_value x = i % 3 ? value : hal_ir_input(b, i + 1, (hal_type)(next(m) % 16));
        value = function % 2
                    ? ops_unary_value(b, (ops_unary_function)(function / 2 % 50), value)
                    : ops_binary_value(b, (ops_binary_function)(function / 2 % 25), value, x);
        must((!ops_unary_name((ops_unary_function)(function / 2))) ==
             (function / 2 >= OPS_UNARY_COUNT));
        must((!ops_binary_name((ops_binary_function)(function / 2))) ==
             (function / 2 >= OPS_BINARY_COUNT));
    }
    hal_ir_output(b, next(m) % 10, value);
    const hal_status status = ops_expression_create(b, &made);
    must((ops_expression_get_fragment(made) != NULL) == (status == HAL_OK));
    ops_expression_destroy(made);
    return status;
}

static void call(machine *m)
{
    const uint32_t what = next(m) % 32;
    m->is_null_given = 0;
    const hal_status status = what < 5    ? call_tensor(m, what)
                              : what < 10 ? call_view(m, what)
                              : what < 17 ? call_pointwise(m, what)
                              : what < 28 ? call_other(m, what)
                              : what < 30 ? call_gemm(m)
                              : what < 31 ? call_reduce(m)
                                          : build(m);
    if (status != HAL_OK) {
        must(hal_status_message()[0] != 0);
        must(status == HAL_ERROR_INVALID_ARGUMENT || status == HAL_ERROR_UNSUPPORTED ||
             status == HAL_ERROR_OUT_OF_MEMORY || status == HAL_ERROR_INVALID_IR);
    } else {
        must(!m->is_null_given);
    }
}

static void end(void)
{
    for (int i = 0; i < POOL; i++) {
        hal_buffer_release(buffers[i]);
    }
    ops_context_destroy(the_context);
    hal_queue_destroy(queue);
    hal_device_trim(device);
    hal_device_trim(other);
    must(mock->live_queues == 0 && mock->live_kernels == 0 && mock->live_memories == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint32_t inputs;
    machine m = {.data = data, .end = data + size};
    open_device();
    if (inputs % INPUTS == 0) {
        begin();
    }
    for (int i = 0; i < MOST_CALLS && m.data < m.end; i++) {
        call(&m);
    }
    must(hal_queue_wait(queue, HAL_WAIT_FOREVER) == HAL_OK);
    if (mock->misuses || mock->problem[0]) {
        fprintf(stderr, "The mock plugin: %s%s\n", mock->misuse, mock->problem);
        abort();
    }
    if (++inputs % INPUTS == 0) {
        end();
    }
    return 0;
}
