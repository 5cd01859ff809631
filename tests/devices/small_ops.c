/* small_ops.c: the op library's kernels at sizes that a simulator can bear, as the device takes
 * them and as a GPU would; nothing is checked here, since the simulator watches every access.
 * Called by oclgrind.sh on the device of HAL_BACKEND. */
#include "tensor/context.h"
#include <ops/ops.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 150, MOST = 64 };

typedef struct trial {
    ops_context *ops;
    ops_tensor tensors[MOST];
    int count;
} trial;

#define CHECK(call) check((call), #call)

static void check(hal_status status, const char *call)
{
    if (status != HAL_OK) {
        fprintf(stderr, "%s: %s: %s\n", call, hal_status_name(status), hal_status_message());
        exit(1);
    }
}

/* A tensor of numbers, or of indices; every element is written. */
static ops_tensor filled(trial *t, hal_type type, int64_t rows, int64_t columns)
{
    const int64_t shape[2] = {rows, columns};
    const size_t bytes = (size_t)(rows * columns) * hal_type_size(type);
    unsigned char *elements = calloc(bytes, 1);
    ops_tensor made;
    for (size_t i = 0; i < bytes && elements != NULL; i++) {
        elements[i] = type == HAL_TYPE_I32 ? (i % 4 == 0) * (i / 4 % 8) : i % 64;
    }
    CHECK(ops_tensor_from_host(t->ops, type, 2, shape, elements, &made));
    free(elements);
    t->tensors[t->count++] = made;
    return made;
}

static void release(trial *t)
{
    CHECK(hal_queue_wait(ops_context_get_queue(t->ops), HAL_WAIT_FOREVER));
    while (t->count > 0) {
        ops_tensor_release(&t->tensors[--t->count]);
    }
}

static void pointwise(trial *t, hal_type type)
{
    const ops_tensor x = filled(t, type, 3, 13), y = filled(t, type, 1, 13);
    const ops_tensor z = filled(t, type, 3, 13), turned = filled(t, type, 13, 3);
    ops_tensor view;
    CHECK(ops_tensor_transpose(&turned, 0, 1, &view));
    CHECK(ops_binary(t->ops, OPS_MUL, &x, &x, &z));
    CHECK(ops_binary(t->ops, OPS_ADD, &x, &y, &z));
    CHECK(ops_binary(t->ops, OPS_MAXIMUM, &x, &view, &z));
    CHECK(ops_unary(t->ops, OPS_RELU, &view, &view));
    release(t);
}

static void reductions(trial *t, int64_t rows, int64_t columns)
{
    for (uint32_t axis = 0; axis < 2; axis++) {
        const ops_tensor x = filled(t, HAL_TYPE_F32, rows, columns);
        const int64_t lines = axis == 0 ? columns : rows;
        ops_tensor y = filled(t, HAL_TYPE_F32, lines, 1),
                   places = filled(t, HAL_TYPE_I32, lines, 1);
        y.rank = places.rank = 1;
        CHECK(ops_reduce(t->ops, OPS_REDUCE_SUM, axis, &x, NULL, &y));
        CHECK(ops_reduce(t->ops, OPS_REDUCE_ARGMAX, axis, &x, NULL, &places));
        CHECK(ops_softmax(t->ops, axis, &x, &x));
        release(t);
    }
}

static void products(trial *t, hal_type type, int64_t m, int64_t n, int64_t k)
{
    for (int turn = 0; turn < 4; turn += 3) {
        ops_tensor a = filled(t, type, (turn & 1) ? k : m, (turn & 1) ? m : k);
        ops_tensor b = filled(t, type, (turn & 2) ? n : k, (turn & 2) ? k : n);
        const ops_tensor c = filled(t, type, m, n);
        const ops_gemm_options options = {.size = sizeof(ops_gemm_options),
                                          .alpha = 1.0,
                                          .beta = turn,
                                          .impl = OPS_GEMM_PORTABLE};
        if (turn & 1) {
            CHECK(ops_tensor_transpose(&a, 0, 1, &a));
        }
        if (turn & 2) {
            CHECK(ops_tensor_transpose(&b, 0, 1, &b));
        }
        CHECK(ops_gemm(t->ops, &options, &a, &b, &c));
        release(t);
    }
}

static void indices(trial *t)
{
    const ops_tensor x = filled(t, HAL_TYPE_F32, 8, 19);
    ops_tensor places = filled(t, HAL_TYPE_I32, 6, 1), turned;
    const ops_tensor picked = filled(t, HAL_TYPE_F32, 6, 19), copy = filled(t, HAL_TYPE_F32, 19, 8);
    const ops_tensor hot = filled(t, HAL_TYPE_F32, 6, 10), parts[2] = {x, picked};
    const ops_tensor whole = filled(t, HAL_TYPE_F32, 14, 19);
    places.rank = 1;
    CHECK(ops_gather(t->ops, 0, &x, &places, &picked));
    CHECK(ops_one_hot(t->ops, &places, &hot));
    CHECK(ops_concatenate(t->ops, 0, parts, 2, &whole));
    CHECK(ops_tensor_transpose(&x, 0, 1, &turned));
    CHECK(ops_copy(t->ops, &turned, &copy));
    release(t);
}

static void random_numbers(trial *t)
{
    ops_tensor numbers = filled(t, HAL_TYPE_F32, COUNT, 1);
    const ops_random_key key = {.seed = 3};
    numbers.rank = 1;
    CHECK(ops_random_uniform(t->ops, key, 0.0, 1.0, &numbers));
    CHECK(ops_random_normal(t->ops, key, 0.0, 1.0, &numbers));
    release(t);
}

static void most(trial *t)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_BF16, HAL_TYPE_I8};
    for (int i = 0; i < 4; i++) {
        pointwise(t, types[i]);
    }
    reductions(t, 3, 21);
    reductions(t, 2, 300);
    products(t, HAL_TYPE_F32, 18, 21, 9);
    products(t, HAL_TYPE_BF16, 9, 20, 7);
    indices(t);
}

/* The same as a GPU's; which tiles a product takes depends on how large a group may be. */
static void most_as_gpu(trial *t, hal_queue *queue)
{
    static const uint32_t group_items[] = {64, 128, 256};
    static hal_device_info gpu;
    for (int i = 0; i < 3; i++) {
        CHECK(ops_context_create(queue, &t->ops));
        gpu = *t->ops->info;
        gpu.kind = HAL_DEVICE_DISCRETE;
        gpu.compute_units = 1;
        gpu.max_group_items = gpu.max_group_size[0] = group_items[i];
        gpu.preferred_group = 64;
        t->ops->info = &gpu;
        t->ops->tuning = ops_tuning_select(&gpu);
        if (i == 0) {
            most(t);
        } else {
            products(t, HAL_TYPE_F32, 35, 33, 9);
        }
        ops_context_destroy(t->ops);
    }
}

int main(void)
{
    trial t = {0};
    hal_device *device = NULL;
    hal_queue *queue = NULL;
    CHECK(hal_device_open(NULL, &device));
    CHECK(hal_queue_create(device, &queue));
    CHECK(ops_context_create(queue, &t.ops));
    most(&t);
    random_numbers(&t);
    ops_context_destroy(t.ops);
    most_as_gpu(&t, queue);
    printf("%s: every kernel ran\n", hal_device_get_info(device)->name);
    hal_queue_destroy(queue);
    hal_device_release(device);
    return 0;
}
