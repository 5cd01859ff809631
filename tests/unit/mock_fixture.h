/* What the tests over the mock plugin share: its state, an open device, small kernels, and a look
 * at what is left at the end. */
#ifndef TESTS_UNIT_MOCK_FIXTURE_H
#define TESTS_UNIT_MOCK_FIXTURE_H

#include "unit.h"
#include <dlfcn.h>
#include <hal/hal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mock.h"

/* The state of hal_<name>.so; the same that hal will see. */
static inline mock_state *mock_find(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/mock/hal_%s.so", TEST_PLUGINS, name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    mock_state *state = dlsym(library, MOCK_STATE_SYMBOL);
    assert_non_null(state);
    return state;
}

/* For the group's set-up: the mock plugins are found, and nothing else is chosen. */
static inline int mock_begin(void **state)
{
    setenv("HAL_PLUGIN_PATH", TEST_PLUGINS "/mock", 1);
    setenv("HAL_BACKEND", "mock", 1);
    return 0;
}

/* Forgets what was logged and asked for. */
static inline void mock_reset(mock_state *mock)
{
    for (int i = 0; i < MOCK_ENTRIES; i++) {
        atomic_store(&mock->fail_in[i], 0);
        atomic_store(&mock->stall[i], 0);
        atomic_store(&mock->calls[i], 0);
    }
    atomic_store(&mock->fail_with, HAL_ERROR_INTERNAL);
    atomic_store(&mock->hold, 0);
    atomic_store(&mock->slow, 0);
    atomic_store(&mock->memory_limit, UINT64_C(1) << 30);
    atomic_store(&mock->no_words, 0);
    atomic_store(&mock->stray_words, 0);
    atomic_store(&mock->reach, 0);
    mock->logged_count = 0;
}

/* Nothing is left and nothing was done that the contract forbids. */
static inline void mock_is_clean(mock_state *mock)
{
    if (atomic_load(&mock->misuses)) {
        fail_msg("hal broke the contract: %s", mock->misuse);
    }
    assert_int_equal(atomic_load(&mock->live_queues), 0);
    assert_int_equal(atomic_load(&mock->live_kernels), 0);
    assert_int_equal(atomic_load(&mock->live_memories), 0);
    assert_int_equal(atomic_load(&mock->live_devices), 0);
}

static inline hal_device *mock_open(const char *selection)
{
    hal_device *device = NULL;
    assert_ok(hal_device_open(selection, &device));
    return device;
}

static inline hal_queue *mock_queue(hal_device *device)
{
    hal_queue *queue = NULL;
    assert_ok(hal_queue_create(device, &queue));
    return queue;
}

static inline hal_buffer *mock_buffer(hal_device *device, uint64_t bytes)
{
    hal_buffer *buffer = NULL;
    assert_ok(hal_buffer_create(device, HAL_MEMORY_DEVICE, bytes, &buffer));
    return buffer;
}

/* IR of out[i] = in[i] + number, with one i32 scalar that it does not use; `number` makes kernels
 * differ. */
static inline hal_ir_kernel *mock_ir(int32_t number)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    assert_ok(hal_ir_builder_create("shift", &b));
    hal_ir_group_size(b, 64, 1, 1);
    const hal_ir_memory_id in = hal_ir_binding(b, "in", HAL_TYPE_I32, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_I32, HAL_ACCESS_WRITE);
    hal_ir_scalar_value(b, "unused", HAL_TYPE_I32);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    hal_ir_store(b, out, i, hal_ir_add(b, hal_ir_load(b, in, i), hal_ir_i32(b, number)));
    assert_ok(hal_ir_builder_finish(b, &ir));
    hal_ir_builder_destroy(b);
    return ir;
}

static inline hal_kernel *mock_kernel(hal_device *device, int32_t number)
{
    hal_ir_kernel *ir = mock_ir(number);
    hal_kernel *kernel = NULL;
    assert_ok(hal_kernel_create(device, ir, &kernel));
    hal_ir_kernel_destroy(ir);
    return kernel;
}

/* A product of 4 x 4 matrices that the mock plugin takes. */
/* Two matrices of 5 queries, 7 keys and heads of 8, which share keys and values. */
static inline hal_attention_description mock_attention(void)
{
    return (hal_attention_description){.size = sizeof(hal_attention_description),
                                       .type = HAL_TYPE_F32,
                                       .batch = 2,
                                       .outer = 1,
                                       .m = 5,
                                       .n = 7,
                                       .d = 8,
                                       .e = 8,
                                       .q = {8, 40, 0},
                                       .k = {8, 0, 0},
                                       .v = {8, 0, 0},
                                       .y = {8, 40, 0}};
}

static inline hal_gemm_description mock_product(void)
{
    return (hal_gemm_description){.size = sizeof(hal_gemm_description),
                                  .type_a = HAL_TYPE_F32,
                                  .type_b = HAL_TYPE_F32,
                                  .type_c = HAL_TYPE_F32,
                                  .batch = 1,
                                  .m = 4,
                                  .n = 4,
                                  .k = 4,
                                  .lda = 4,
                                  .ldb = 4,
                                  .ldc = 4};
}

/* Records the kernel of mock_ir over whole buffers. */
static inline hal_status mock_dispatch(hal_queue *queue, hal_kernel *kernel, hal_buffer *in,
                                       hal_buffer *out)
{
    const uint32_t grid[3] = {1, 1, 1};
    const hal_range bindings[2] = {{in, 0, HAL_WHOLE}, {out, 0, HAL_WHOLE}};
    const int32_t scalar = 0;
    return hal_queue_dispatch(queue, kernel, grid, bindings, 2, &scalar, sizeof scalar);
}

#endif
