/* Fuzz target: array calls. Bytes are a program of calls with any types, ranks, lengths, axes and
 * operands. No call crashes; a failed call sets a message; arrays can be counted, read and
 * released; no kernel accesses memory beyond its arrays. The device is the mock plugin. Run by
 * ./dev check as the ctest fuzz_ops_array. */
#include <dlfcn.h>
#include <ops/complex.h>
#include <ops/graph.h>
#include <ops/loop.h>
#include <ops/resize.h>
#include <ops/shape.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mock.h"

enum { POOL = 12, MOST_ELEMENTS = 64, MOST_CALLS = 64 };

typedef struct machine {
    const uint8_t *data, *end;
    ops_array *pool[POOL];
    uint8_t is_far[POOL]; /* that many elements that only shapes are looked at */
    uint32_t scopes;
    int recording, unfused;
    ops_array *spare; /* for places of the pool that are empty */
    int is_null_given;
} machine;

static hal_queue *queue;
static ops_context *context;
static const mock_state *mock;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
    if (!holds) {
        fprintf(stderr, "The last message of hal: %s\n", hal_status_message());
        abort();
    }
}

static hal_device *device;

/* The threads that compile are joined when their device is closed. */
static void close_context(void)
{
    ops_context_destroy(context);
    hal_queue_destroy(queue);
    hal_device_release(device);
}

static void open_context(void)
{
    if (!context) {
        setenv("HAL_PLUGIN_PATH", TEST_PLUGINS "/mock", 1);
        void *library = dlopen(TEST_PLUGINS "/mock/hal_mock.so", RTLD_NOW | RTLD_LOCAL);
        must(library != NULL);
        mock = dlsym(library, MOCK_STATE_SYMBOL);
        must(hal_device_open("mock", &device) == HAL_OK &&
             hal_queue_create(device, &queue) == HAL_OK &&
             ops_context_create(queue, &context) == HAL_OK);
        atexit(close_context);
    }
}

static uint32_t next(machine *m)
{
    return m->data < m->end ? *m->data++ : 0;
}

/* The pool's slot of a byte. */
static uint32_t pick(machine *m, int *is_far)
{
    const uint32_t at = next(m) % POOL;
    *is_far |= m->is_far[at];
    return at;
}

/* Records a graph of one array of the pool, where possible, and launches it once. */
static void toggle_recording(machine *m)
{
    ops_graph *graph = NULL;
    ops_array *output = NULL;
    int is_far = 0;
    if (!m->recording) {
        m->recording = ops_graph_begin(context) == HAL_OK;
        return;
    }
    m->recording = 0;
    ops_array *x = m->pool[pick(m, &is_far)];
    if (ops_graph_end(context, NULL, 0, &x, is_far ? 0 : 1, &graph) != HAL_OK) {
        must(hal_status_message()[0] != 0);
    } else {
        must(ops_graph_launch(graph, NULL, 0, &output, 1) == HAL_OK);
        ops_array_release(output);
    }
    ops_graph_destroy(graph);
}

static void read_one(machine *m)
{
    static uint8_t elements[MOST_ELEMENTS * 8];
    int is_far = 0;
    ops_array *x = m->pool[pick(m, &is_far)];
    if (is_far || !x) {
        return;
    }
    const uint64_t bytes =
        (uint64_t)ops_array_get_element_count(x) * hal_type_size(ops_array_get_type(x));
    const hal_status status = ops_array_read(x, bytes, elements);
    if (status) {
        must(hal_status_message()[0] != 0);
        /* Arrays cannot be read while a graph is recorded, nor those made in a recording. */
        must(status == HAL_ERROR_INVALID_STATE || status == HAL_ERROR_UNSUPPORTED);
    }
}

/* An array of the pool; null for the last byte. Without fusion calls compute at once, so far arrays
 * are excluded. */
static ops_array *operand(machine *m, int *is_far)
{
    int far = 0;
    if (m->data < m->end && *m->data == 255) {
        m->data++;
        m->is_null_given = 1;
        return NULL;
    }
    ops_array *x = m->pool[pick(m, &far)];
    if (!x || (far && m->unfused)) {
        return m->spare;
    }
    *is_far |= far;
    return x;
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
                                  100000,
                                  65536,
                                  INT64_C(3) << 40,
                                  INT64_C(1) << 61,
                                  -3,
                                  1000,
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

static ops_array *make_view(machine *m, uint32_t what, ops_array *x)
{
    int64_t shape[16];
    int32_t axes[8];
    switch (what) {
    case 16: {
        const uint32_t axis = next(m) % 9;
        const int64_t start = next_length(m), count = next_length(m);
        return ops_array_slice(x, axis, start, count, next_length(m));
    }
    case 17:
        for (uint32_t i = 0; i < 8; i++) {
            axes[i] = next(m) % 9;
        }
        return ops_array_permute(x, axes);
    case 18: {
        const uint32_t axis = next(m) % 9;
        return ops_array_transpose(x, axis, next(m) % 9);
    }
    case 19: {
        const uint32_t rank = next_shape(m, shape);
        return ops_array_broadcast(x, rank, shape);
    }
    default: {
        const uint32_t rank = next_shape(m, shape);
        return ops_array_reshape(x, rank, shape);
    }
    }
}

/* An update of a slice, or of whatever strides the bytes say. */
static ops_array *make_update(machine *m, ops_array *x, ops_array *value)
{
    ops_tensor part;
    if (!x || ops_array_describe(x, &part)) {
        m->is_null_given |= !x;
        return ops_array_update(x, NULL, value);
    }
    const uint32_t axis = next(m) % 9;
    if (next(m) % 2) {
        const int64_t start = next_length(m), count = next_length(m);
        ops_tensor_slice(&part, (int32_t)axis, start, count, next_length(m), &part);
    } else if (axis < OPS_MAX_RANK) {
        part.offset = next_length(m);
        part.stride[axis] = next_length(m);
        part.shape[axis] = next_length(m);
        part.rank = next(m) % 10;
    }
    return ops_array_update(x, &part, value);
}

/* Calls that move, sort and resize. */
static ops_array *make_move(machine *m, ops_array *x, int *is_far)
{
    int64_t before[OPS_MAX_RANK], after[OPS_MAX_RANK];
    const uint32_t what = next(m) % 4;
    const int32_t axis = (int32_t)(next(m) % 9);
    for (uint32_t i = 0; i < OPS_MAX_RANK; i++) {
        before[i] = next(m) % 5 - 1;
        after[i] = next(m) % 5 - 1;
    }
    if (what == 0) {
        return ops_array_pad((ops_pad_mode)(next(m) % 5), before, after, 1, x);
    }
    if (what == 1) {
        return ops_array_sort(axis, next(m) % 2, next_length(m), x);
    }
    if (what == 2) {
        ops_array *indices = operand(m, is_far);
        return ops_array_scatter((ops_scatter_kind)(next(m) % 6), axis, x, indices,
                                 operand(m, is_far));
    }
    const ops_resize_kind kind = (ops_resize_kind)(next(m) % 3);
    const ops_resize_places places = (ops_resize_places)(next(m) % 4);
    return next(m) % 2 ? ops_array_resize(kind, places, next(m) % 4, before, next(m) % 2, x)
                       : ops_array_resize_gradient(kind, places, next(m) % 4, after, 0, x);
}

/* Attention, or one of its gradients. */
static ops_array *make_attention(machine *m, ops_array *q, int *is_far)
{
    ops_array *k = operand(m, is_far), *v = operand(m, is_far), *gradients[3];
    ops_array *mask = next(m) % 2 ? operand(m, is_far) : NULL;
    const uint32_t form = next(m), wanted = form / 16 % 4;
    const double scale = form / 2 % 8 ? (double)(form / 2 % 8) - 1 : -1;
    ops_array *y = ops_array_scaled_attention(q, k, v, mask, form % 2 != 0, next(m) % 4, scale);
    if (!y || wanted == 3 || *is_far || ops_array_get_element_count(y) > MOST_ELEMENTS) {
        return y;
    }
    if (ops_array_attention_gradients(q, k, v, mask, y, operand(m, is_far), form % 2 != 0, 0, scale,
                                      gradients) != HAL_OK) {
        return y;
    }
    ops_array_release(y);
    ops_array_release(gradients[(wanted + 1) % 3]);
    ops_array_release(gradients[(wanted + 2) % 3]);
    return gradients[wanted];
}

/* Calls on complex arrays. Products along a far axis would be computed. */
static ops_array *make_complex(machine *m, ops_array *x, int *is_far)
{
    const uint32_t what = next(m) % 8, form = next(m);
    const int32_t axis = (int32_t)(next(m) % 9) - 1;
    switch (what) {
    case 0:
        return ops_complex_join(x, form % 2 ? operand(m, is_far) : NULL);
    case 1:
        return form % 2 ? ops_complex_real(x) : ops_complex_imag(x);
    case 2:
        return ops_complex_test((ops_unary_function)(form % (OPS_UNARY_COUNT + 1)), x);
    case 3:
        return ops_complex_matmul(x, operand(m, is_far), form % 4);
    case 4:
        return ops_complex_binary((ops_complex_binary_function)(form % OPS_COMPLEX_BINARY_COUNT), x,
                                  operand(m, is_far));
    case 5:
        return *is_far ? ops_complex_real(x)
                       : ops_complex_reduce((ops_reduction)(form % OPS_REDUCTION_COUNT), axis,
                                            form % 2 != 0, x);
    case 6:
        return *is_far ? ops_complex_imag(x)
                       : ops_complex_scan((ops_scan_kind)(form % OPS_SCAN_KIND_COUNT), axis, x);
    default:
        return ops_complex_unary((ops_complex_unary_function)(form % (OPS_COMPLEX_UNARY_COUNT + 1)),
                                 x);
    }
}

/* What the callbacks of a loop do: bits of `form`. */
static ops_array *loop_goes_on(void *user, ops_array *const *state)
{
    const uint32_t form = *(const uint32_t *)user;
    return form % 16 == 1 ? state[0] : ops_array_scalar(context, HAL_TYPE_BOOL, form % 4 != 0);
}

static hal_status loop_step(void *user, ops_array *const *state, ops_array **next)
{
    const uint32_t form = *(const uint32_t *)user;
    next[0] = form % 8 == 2 ? state[1] : ops_array_unary(OPS_ABS, state[0]);
    next[1] = form / 8 % 4 == 1 ? next[0] : form / 8 % 4 == 2 ? NULL : state[1];
    return form == 255 ? hal_status_set(HAL_ERROR_UNSUPPORTED, "no iteration") : HAL_OK;
}

static ops_array *make_loop(machine *m, ops_array *x, int *is_far)
{
    ops_array *const state[2] = {x, operand(m, is_far)};
    ops_array *results[2] = {NULL, NULL};
    uint32_t form = next(m);
    const ops_loop_options options = {
        .size = sizeof options, .stride = next(m) % 4, .limit = 1 + next(m) % 3};
    if (*is_far) {
        return ops_array_unary(OPS_IDENTITY, x);
    }
    if (form % 3 == 0) {
        ops_array_cond(state[1], loop_step, loop_step, &form, state, 2, results, 2);
    } else {
        ops_array_while(&options, loop_goes_on, loop_step, &form, state, 2, results);
    }
    ops_array_release(results[1]);
    return results[0];
}

/* One call; `is_far` is set when an operand is. */
static ops_array *make(machine *m, uint32_t what, int *is_far)
{
    static const uint8_t zeros[MOST_ELEMENTS * 8];
    int64_t shape[16];
    ops_array *x = operand(m, is_far);
    switch (what) {
    case 6: {
        const hal_type type = (hal_type)(next(m) % 16);
        const uint32_t rank = next_shape(m, shape);
        return ops_array_full(context, type, rank, shape, (double)next(m) - 100);
    }
    case 7: {
        const hal_type type = (hal_type)(next(m) % 16);
        const uint32_t rank = next_shape(m, shape);
        uint64_t elements = 1;
        for (uint32_t i = 0; i < rank && elements <= MOST_ELEMENTS; i++) {
            elements = shape[i] < 0 || shape[i] > MOST_ELEMENTS ? MOST_ELEMENTS + 1
                                                                : elements * (uint64_t)shape[i];
        }
        /* No more elements than the host has. */
        return elements > MOST_ELEMENTS ? ops_array_full(context, type, rank, shape, 0)
                                        : ops_array_from_host(context, type, rank, shape, zeros);
    }
    case 8:
        return ops_array_unary((ops_unary_function)(next(m) % (OPS_UNARY_COUNT + 2)), x);
    case 9:
    case 10: {
        const ops_binary_function function =
            (ops_binary_function)(next(m) % (OPS_BINARY_COUNT + 2));
        return ops_array_binary(function, x, operand(m, is_far));
    }
    case 11: {
        ops_array *y = operand(m, is_far);
        return ops_array_where(x, y, operand(m, is_far));
    }
    case 12:
        return ops_array_cast((hal_type)(next(m) % 16), x);
    case 13: {
        const ops_reduction reduction = (ops_reduction)(next(m) % (OPS_REDUCTION_COUNT + 1));
        const uint32_t axis = next(m) % 9;
        return ops_array_reduce(reduction, axis, next(m) % 2 != 0, x);
    }
    case 14:
        return next(m) % 2 ? ops_array_softmax(next(m) % 9, x)
                           : ops_array_log_softmax(next(m) % 9, x);
    case 15: {
        ops_array *y = operand(m, is_far);
        return ops_array_matmul(x, y, next(m) % 5);
    }
    case 21: {
        ops_array *const parts[3] = {x, operand(m, is_far), operand(m, is_far)};
        return ops_array_concatenate((int32_t)(next(m) % 9), parts, 1 + next(m) % 3);
    }
    case 22:
        return make_update(m, x, operand(m, is_far));
    case 23:
        return make_move(m, x, is_far);
    case 24:
        return make_attention(m, x, is_far);
    case 25:
        return make_complex(m, x, is_far);
    case 26:
        return make_loop(m, x, is_far);
    default:
        return make_view(m, what, x);
    }
}

/* Replaces an array of the pool, or releases the new one. */
static void place(machine *m, ops_array *made, int is_far, int may_be_far)
{
    must(ops_array_get_rank(made) <= OPS_MAX_RANK && ops_array_get_element_count(made) >= 0 &&
         hal_type_size(ops_array_get_type(made)) > 0);
    is_far |= ops_array_get_element_count(made) > MOST_ELEMENTS;
    const uint32_t at = next(m) % POOL;
    if (is_far && !may_be_far) {
        ops_array_release(made);
        return;
    }
    ops_array_keep(made);
    ops_array_release(m->pool[at]);
    m->pool[at] = made;
    m->is_far[at] = is_far != 0;
}

static void call(machine *m)
{
    const uint32_t what = next(m) % 27;
    int is_far = 0;
    switch (what) {
    case 0:
        if (m->scopes < 8) {
            must(ops_scope_begin(context) == HAL_OK);
            m->scopes++;
        }
        break;
    case 1:
        if (m->scopes > 0) {
            must(ops_scope_end(context) == HAL_OK);
            m->scopes--;
        } else {
            must(ops_scope_end(context) == HAL_ERROR_INVALID_STATE);
        }
        break;
    case 2: {
        const uint8_t options = next(m);
        m->unfused = options % 2 == 0;
        ops_context_set_fusion(context, !m->unfused);
        ops_context_set_scatter(context, (ops_scatter_order)(options / 2 % 4));
        break;
    }
    case 3:
        toggle_recording(m);
        break;
    case 4:
    case 5:
        read_one(m);
        break;
    default: {
        m->is_null_given = 0;
        ops_array *made = make(m, what, &is_far);
        if (!made) {
            must(m->is_null_given || hal_status_message()[0] != 0);
        } else {
            /* Views and constants of any size hold no memory and take no time. */
            place(m, made, is_far, what == 6 || (what >= 16 && what < 20));
        }
        break;
    }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t shape[2] = {3, 4};
    machine m = {.data = data, .end = data + size};
    ops_array_statistics statistics = {.size = sizeof statistics};
    open_context();
    m.spare = ops_array_full(context, HAL_TYPE_F32, 2, shape, 1);
    must(m.spare != NULL);
    for (int i = 0; i < MOST_CALLS && m.data < m.end; i++) {
        call(&m);
    }
    if (m.recording) {
        toggle_recording(&m);
    }
    ops_context_set_fusion(context, 1);
    ops_context_set_scatter(context, OPS_SCATTER_ORDERED);
    for (; m.scopes > 0; m.scopes--) {
        must(ops_scope_end(context) == HAL_OK);
    }
    for (int i = 0; i < POOL; i++) {
        ops_array_release(m.pool[i]);
    }
    ops_array_release(m.spare);
    ops_context_get_statistics(context, &statistics);
    must(statistics.arrays == 0 && statistics.deferred == 0);
    must(hal_queue_wait(queue, HAL_WAIT_FOREVER) == HAL_OK);
    must(mock->misuses == 0 && mock->problem[0] == 0);
    return 0;
}
