/* messages.c: docs/errors.md: a call that succeeds leaves the message of the thread's last failure
 * alone. One call fails, then calls of every kind succeed, also where hal or ops asks a plugin that
 * declines. */
#include <hal/comm.h>
#include <ops/graph.h>
#include <stdio.h>
#include <string.h>

#include "case/cases.h"

enum { SIDE = 24, COUNT = SIDE * SIDE };

static char failure[512];

/* Fails a call, whose message is kept to compare with. */
static void fail_once(case_run *run)
{
    case_check(run, hal_queue_flush(NULL, NULL) != HAL_OK, "a null queue was flushed");
    snprintf(failure, sizeof failure, "%s", hal_status_message());
}

static void message_check(case_run *run, const char *call)
{
    case_check(run, strcmp(hal_status_message(), failure) == 0,
               "after %s, which succeeded, the message is: %s", call, hal_status_message());
}

#define KEEPS(run, call)               \
    do {                               \
        case_ok((run), (call), #call); \
        message_check((run), #call);   \
    } while (0)

static void keeps_array(case_run *run, ops_array *array, const char *call)
{
    case_check(run, array != NULL, "%s gave no array: %s", call, hal_status_message());
    message_check(run, call);
    const hal_status status = ops_array_evaluate(&array, 1);
    ops_array_release(array);
    case_ok(run, status, call);
    message_check(run, call);
}

#define KEEPS_ARRAY(run, call) keeps_array((run), (call), #call)

static void of_hal(case_run *run, const void *parameters)
{
    uint32_t words[64] = {0};
    hal_memory_statistics memory;
    hal_point point = {0};
    void *pointer = NULL;
    fail_once(run);
    for (uint32_t kind = 0; kind < HAL_MEMORY_KIND_COUNT; kind++) {
        hal_buffer *buffer = NULL, *other = NULL;
        KEEPS(run, hal_buffer_create(run->device, kind, sizeof words, &buffer));
        KEEPS(run, hal_buffer_create(run->device, kind, sizeof words, &other));
        KEEPS(run, hal_queue_fill(run->queue, (hal_range){buffer, 0, HAL_WHOLE}, 7));
        KEEPS(run, hal_queue_copy(run->queue, (hal_range){buffer, 0, 128},
                                  (hal_range){other, 128, 128}));
        KEEPS(run, hal_queue_write(run->queue, buffer, 4, words, 64));
        KEEPS(run, hal_queue_read(run->queue, buffer, 0, sizeof words, words));
        if (kind != HAL_MEMORY_DEVICE) {
            KEEPS(run, hal_buffer_map_begin(buffer, &pointer));
            KEEPS(run, hal_buffer_map_end(buffer));
        }
        hal_buffer_release(buffer);
        hal_buffer_release(other);
        message_check(run, "hal_buffer_release");
    }
    hal_queue *queue = NULL;
    KEEPS(run, hal_queue_create(run->device, &queue));
    KEEPS(run, hal_queue_flush(run->queue, &point));
    KEEPS(run, hal_queue_wait_point(queue, point));
    KEEPS(run, hal_queue_wait(queue, HAL_WAIT_FOREVER));
    KEEPS(run, hal_point_wait(point, HAL_WAIT_FOREVER));
    hal_queue_destroy(queue);
    message_check(run, "hal_queue_destroy");
    KEEPS(run, hal_device_get_memory(run->device, &memory));
    KEEPS(run, hal_device_trim(run->device));
}

/* Also on a plugin without a backend of its own. */
static void of_comm(case_run *run, const void *parameters)
{
    hal_device *devices[2] = {run->device, run->device};
    hal_comm *comms[2] = {NULL, NULL};
    char text[256];
    fail_once(run);
    KEEPS(run, hal_comm_create_local(devices, 2, 0, comms));
    KEEPS(run, hal_comm_get_backend(run->device, sizeof text, text));
    hal_comm_destroy(comms[0]);
    hal_comm_destroy(comms[1]);
    message_check(run, "hal_comm_destroy");
}

static void release_tensor(void *tensor)
{
    ops_tensor_release(tensor);
}

static const ops_tensor *new_tensor(case_run *run, hal_type type, uint32_t rank,
                                    const int64_t *shape)
{
    ops_tensor *made = case_allocate(run, 1, sizeof *made);
    KEEPS(run, ops_tensor_create(run->ops, type, rank, shape, made));
    case_own(run, release_tensor, made);
    KEEPS(run, ops_fill(run->ops, 1, made));
    return made;
}

/* Products of every precision, type and implementation, which plugins may decline. */
static void of_gemm(case_run *run, const void *parameters)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_BF16};
    static const uint32_t precisions[] = {HAL_GEMM_STRICT, HAL_GEMM_ACCURATE, HAL_GEMM_FAST,
                                          HAL_GEMM_NORMWISE};
    const int64_t shape[2] = {SIDE, SIDE};
    char text[512];
    fail_once(run);
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        const ops_tensor *a = new_tensor(run, types[t], 2, shape);
        const ops_tensor *b = new_tensor(run, types[t], 2, shape);
        const ops_tensor *c = new_tensor(run, HAL_TYPE_F32, 2, shape);
        KEEPS(run, ops_gemm(run->ops, NULL, a, b, c));
        for (size_t p = 0; p < sizeof precisions / sizeof precisions[0]; p++) {
            ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
            options.precision = precisions[p];
            KEEPS(run, ops_gemm(run->ops, &options, a, b, c));
            options.alpha = 2;
            options.beta = 0.5;
            KEEPS(run, ops_gemm(run->ops, &options, a, b, c));
            KEEPS(run, ops_gemm_describe(run->ops, &options, a, b, c, sizeof text, text));
            options.impl = OPS_GEMM_PORTABLE;
            KEEPS(run, ops_gemm(run->ops, &options, a, b, c));
        }
    }
}

static void of_tensors(case_run *run, const void *parameters)
{
    const int64_t shape[2] = {SIDE, SIDE}, line[1] = {SIDE};
    const ops_random_key key = {1, 2};
    float elements[COUNT] = {0};
    fail_once(run);
    const ops_tensor *x = new_tensor(run, HAL_TYPE_F32, 2, shape);
    const ops_tensor *y = new_tensor(run, HAL_TYPE_F32, 2, shape);
    const ops_tensor *row = new_tensor(run, HAL_TYPE_F32, 1, line);
    const ops_tensor *indices = new_tensor(run, HAL_TYPE_I32, 1, line);
    ops_tensor view;
    KEEPS(run, ops_tensor_write(run->ops, x, elements, sizeof elements));
    KEEPS(run, ops_tensor_read(run->ops, x, sizeof elements, elements));
    KEEPS(run, ops_tensor_transpose(x, 0, 1, &view));
    KEEPS(run, ops_copy(run->ops, &view, y));
    KEEPS(run, ops_unary(run->ops, OPS_TANH, x, y));
    KEEPS(run, ops_binary(run->ops, OPS_ADD, x, x, y));
    KEEPS(run, ops_reduce(run->ops, OPS_REDUCE_SUM, 1, x, NULL, row));
    KEEPS(run, ops_reduce(run->ops, OPS_REDUCE_ARGMAX, 1, x, NULL, indices));
    KEEPS(run, ops_softmax(run->ops, 1, x, y));
    KEEPS(run, ops_log_softmax(run->ops, 0, x, y));
    KEEPS(run, ops_gather(run->ops, 0, x, indices, y));
    KEEPS(run, ops_one_hot(run->ops, indices, y));
    KEEPS(run, ops_iota(run->ops, 0, 1, row));
    KEEPS(run, ops_random_uniform(run->ops, key, 0, 1, y));
    KEEPS(run, ops_random_normal(run->ops, key, 0, 1, y));
    KEEPS(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER));
}

static void of_arrays(case_run *run, const void *parameters)
{
    const int64_t shape[2] = {SIDE, SIDE}, flat[1] = {COUNT};
    float elements[COUNT] = {0};
    int32_t zeros[SIDE] = {0};
    fail_once(run);
    KEEPS(run, ops_scope_begin(run->ops));
    ops_array *x = ops_array_from_host(run->ops, HAL_TYPE_F32, 2, shape, elements);
    ops_array *i = ops_array_from_host(run->ops, HAL_TYPE_I32, 1, shape, zeros);
    case_check(run, x && i, "no array: %s", hal_status_message());
    KEEPS_ARRAY(run, ops_array_keep(ops_tanh(ops_add_scalar(ops_mul(x, x), 1))));
    KEEPS_ARRAY(run, ops_array_keep(ops_array_cast(HAL_TYPE_F16, x)));
    KEEPS_ARRAY(run, ops_array_keep(ops_array_reshape(ops_array_transpose(x, 0, 1), 1, flat)));
    KEEPS_ARRAY(run, ops_array_keep(ops_array_slice(x, 0, 1, 3, 2)));
    KEEPS_ARRAY(run, ops_array_keep(ops_reduce_sum(x, 0)));
    KEEPS_ARRAY(run, ops_array_keep(ops_array_softmax(1, x)));
    KEEPS_ARRAY(run, ops_array_keep(ops_array_log_softmax(1, x)));
    KEEPS_ARRAY(run, ops_array_keep(ops_matmul(x, x)));
    KEEPS_ARRAY(run, ops_array_keep(ops_tanh(ops_add(ops_matmul(x, x), ops_reduce_sum(x, 0)))));
    KEEPS_ARRAY(run, ops_array_keep(ops_array_gather(0, x, i)));
    KEEPS_ARRAY(run, ops_array_keep(ops_array_one_hot(HAL_TYPE_F32, 5, i)));
    KEEPS_ARRAY(run, ops_array_keep(ops_array_iota(run->ops, HAL_TYPE_I32, 9, 0, 1)));
    KEEPS_ARRAY(run, ops_array_keep(ops_array_where(ops_array_binary(OPS_LT, x, x), x, x)));
    KEEPS(run, ops_array_read(x, sizeof elements, elements));
    KEEPS(run, ops_scope_end(run->ops));
}

void cases_ops_messages(case_list *list)
{
    case_add(list, of_hal, NULL, 0, "messages/hal");
    case_add(list, of_comm, NULL, 0, "messages/communicators");
    case_add(list, of_tensors, NULL, 0, "messages/tensors");
    case_add(list, of_gemm, NULL, 0, "messages/gemm");
    case_add(list, of_arrays, NULL, 0, "messages/arrays");
}
