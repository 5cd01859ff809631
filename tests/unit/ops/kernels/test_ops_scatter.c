/* The order of scatters: what the option changes, from which call on, and where it cannot. */
#include "kernels/scatter_atomic.h"
#include "ops_arrays.h"
#include "ops_fixture.h"

#include <hal/memory_peaks.h>

enum { COUNT = 5, TARGETS = 3 };

/* Each addition of a half to 2^24 is rounded away, their sum is not. */
static const float updates[COUNT] = {0x1p24f, 1, 1, -7, 1};
static const int32_t targets[COUNT] = {1, 1, 1, 0, 1};
static const float ordered[TARGETS] = {-7, 0x1p24f, 0}, exact[TARGETS] = {-7, 0x1p24f + 4, 0};

static bool has_atomics(void)
{
    return test_context->info->features & HAL_FEATURE_ATOMIC_64;
}

static ops_array *sums_of(const float *numbers, const int32_t *places)
{
    const int64_t count = COUNT, length = TARGETS;
    ops_array *x = made(ops_array_full(test_context, HAL_TYPE_F32, 1, &length, 0));
    ops_array *at = made(ops_array_from_host(test_context, HAL_TYPE_I32, 1, &count, places));
    ops_array *y = made(ops_array_from_host(test_context, HAL_TYPE_F32, 1, &count, numbers));
    return made(ops_array_scatter(OPS_SCATTER_ADD, 0, x, at, y));
}

static void expect(ops_array *sums, const float *want)
{
    float got[TARGETS];
    ok(ops_array_read(sums, sizeof got, got));
    assert_memory_equal(got, want, sizeof got);
}

/* Also after plans of the other order, and where the option changes before the computation. */
static void calls_have_the_order_of_their_time(void **state)
{
    for (int turn = 0; turn < 3; turn++) {
        ok(ops_scope_begin(test_context));
        ops_context_set_scatter(test_context, OPS_SCATTER_ATOMIC);
        ops_array *atomic = sums_of(updates, targets);
        ops_context_set_scatter(test_context, (ops_scatter_order)(turn == 2 ? 77 : 0));
        ops_array *in_order = sums_of(updates, targets);
        expect(turn % 2 ? in_order : atomic, turn % 2 || !has_atomics() ? ordered : exact);
        expect(turn % 2 ? atomic : in_order, turn % 2 && has_atomics() ? exact : ordered);
        ok(ops_scope_end(test_context));
    }
}

static void any_order_has_the_same_bits(void **state)
{
    static const float numbers[COUNT] = {0.1f, 3e7f, -0.3f, 1e-9f, -2.7e7f};
    static const int32_t one[COUNT] = {2, 2, 2, 2, 2};
    float turned[COUNT], first[TARGETS];
    ok(ops_scope_begin(test_context));
    ops_context_set_scatter(test_context, OPS_SCATTER_ATOMIC);
    ok(ops_array_read(sums_of(numbers, one), sizeof first, first));
    for (int turn = 1; turn < COUNT && has_atomics(); turn++) {
        for (int i = 0; i < COUNT; i++) {
            turned[i] = numbers[(i * 3 + turn) % COUNT];
        }
        expect(sums_of(turned, one), first);
    }
    ops_context_set_scatter(test_context, OPS_SCATTER_ORDERED);
    ok(ops_scope_end(test_context));
}

/* Devices without 64-bit atomics, or whose bindings do not hold the sums, add in order. */
static void others_add_in_order(void **state)
{
    const hal_device_info *own = test_context->info;
    const int64_t count = COUNT, length = TARGETS;
    const float zeros[TARGETS] = {0};
    float got[TARGETS];
    ops_tensor places, numbers, y;
    ok(ops_tensor_from_host(test_context, HAL_TYPE_I32, 1, &count, targets, &places));
    ok(ops_tensor_from_host(test_context, HAL_TYPE_F32, 1, &count, updates, &numbers));
    ops_context_set_scatter(test_context, OPS_SCATTER_ATOMIC);
    for (int turn = 0; turn < 3; turn++) {
        hal_device_info lacking = *own;
        lacking.features &= turn == 0 ? ~(uint32_t)HAL_FEATURE_ATOMIC_64 : UINT32_MAX;
        lacking.max_binding = turn == 1 ? TARGETS * sizeof(uint64_t) - 1 : own->max_binding;
        ok(ops_tensor_from_host(test_context, HAL_TYPE_F32, 1, &length, zeros, &y));
        test_context->info = &lacking;
        const hal_status status =
            ops_scatter(test_context, OPS_SCATTER_ADD, 0, &places, &numbers, &y);
        test_context->info = own;
        ok(status);
        ok(ops_tensor_read(test_context, &y, sizeof got, got));
        assert_memory_equal(got, turn < 2 || !has_atomics() ? ordered : exact, sizeof got);
        ops_tensor_release(&y);
    }
    ops_context_set_scatter(test_context, OPS_SCATTER_ORDERED);
    ops_tensor_release(&places);
    ops_tensor_release(&numbers);
}

/* Of GPUs: y of 8 GiB, of which few elements have updates, gets no memory for all of them. */
static void memory_is_limited(void **state)
{
    hal_device_info info = *test_context->info;
    info.features |= HAL_FEATURE_ATOMIC_64;
    info.max_binding = UINT64_MAX;
    ops_context gpu = *test_context;
    gpu.info = &info;
    gpu.tuning = &ops_tuning_gpu;
    ops_scatter_call call = {.kind = OPS_SCATTER_ADD, .order = OPS_SCATTER_UNORDERED};
    call.updates = (ops_tensor){.type = HAL_TYPE_F32, .rank = 1, .shape = {1000}, .stride = {1}};
    call.indices = call.updates;
    call.y = (ops_tensor){.type = HAL_TYPE_F32, .rank = 1, .shape = {1000000}, .stride = {1}};
    assert_true(ops_scatter_is_atomic(&gpu, &call));
    call.y.shape[0] = INT64_C(1) << 31;
    assert_false(ops_scatter_is_atomic(&gpu, &call));
    call.order = OPS_SCATTER_ATOMIC;
    assert_true(ops_scatter_is_atomic(&gpu, &call));
    call.order = OPS_SCATTER_UNORDERED;
    call.updates.shape[0] = call.indices.shape[0] = INT64_C(1) << 29;
    assert_true(ops_scatter_is_atomic(&gpu, &call));
    call.order = OPS_SCATTER_ORDERED;
    assert_false(ops_scatter_is_atomic(&gpu, &call));
}

/* Sums of narrow floats, of which few elements have updates, get no memory for all of them on any
 * kind of device, and are rounded once. */
static void sums_in_order_take_little_memory(void **state)
{
    enum { UPDATES = 600, LENGTH = (int)(OPS_SCATTER_BYTES / sizeof(float)) + 1000 };
    static float ones[UPDATES];
    static int32_t places[UPDATES];
    const int64_t count = UPDATES, length = LENGTH;
    for (int i = 0; i < UPDATES; i++) {
        ones[i] = 1;
        places[i] = i < UPDATES / 2 ? LENGTH - 1 : i;
    }
    uint16_t *got = calloc(LENGTH, sizeof *got);
    ops_tensor at, numbers, y;
    ok(ops_tensor_from_host(test_context, HAL_TYPE_I32, 1, &count, places, &at));
    ok(ops_tensor_from_host(test_context, HAL_TYPE_F32, 1, &count, ones, &y));
    ok(ops_tensor_create(test_context, HAL_TYPE_BF16, 1, &count, &numbers));
    ok(ops_cast(test_context, &y, &numbers));
    ops_tensor_release(&y);
    ok(ops_tensor_from_host(test_context, HAL_TYPE_BF16, 1, &length, got, &y));
    hal_memory_statistics before;
    hal_memory_peaks peaks;
    ok(hal_device_get_memory(test_device, &before));
    ok(hal_device_reset_memory_peaks(test_device));
    ok(ops_scatter(test_context, OPS_SCATTER_ADD, 0, &at, &numbers, &y));
    ok(ops_tensor_read(test_context, &y, LENGTH * sizeof *got, got));
    ok(hal_device_get_memory_peaks(test_device, &peaks));
    assert_true(peaks.in_use_bytes < before.in_use_bytes + OPS_SCATTER_BYTES);
    assert_int_equal(got[LENGTH - 1], 0x4396); /* 300, which additions in BF16 do not reach */
    assert_int_equal(got[UPDATES - 1], 0x3f80);
    assert_int_equal(got[UPDATES], 0);
    free(got);
    ops_tensor_release(&at);
    ops_tensor_release(&numbers);
    ops_tensor_release(&y);
}

/* Nothing to add, to nothing, and to an array that shares memory with what is added. */
static void edges(void **state)
{
    const int64_t none = 0, length = TARGETS;
    const float whole[TARGETS] = {1, 2, 3};
    ops_tensor few, places, all, got = {0};
    ok(ops_tensor_from_host(test_context, HAL_TYPE_F32, 1, &length, whole, &all));
    ok(ops_tensor_from_host(test_context, HAL_TYPE_F32, 1, &none, whole, &few));
    ok(ops_tensor_from_host(test_context, HAL_TYPE_I64, 1, &none, targets, &places));
    float read[TARGETS];
    for (int order = 0; order < OPS_SCATTER_ORDER_COUNT; order++) {
        ops_context_set_scatter(test_context, (ops_scatter_order)order);
        ok(ops_scatter(test_context, OPS_SCATTER_ADD, 0, &places, &few, &all));
        ok(ops_scatter(test_context, OPS_SCATTER_ADD, 0, &places, &few, &few));
        ok(ops_tensor_read(test_context, &all, sizeof read, read));
        assert_memory_equal(read, whole, sizeof whole);
        ok(ops_tensor_from_host(test_context, HAL_TYPE_I32, 1, &length, targets, &got));
        invalid(ops_scatter(test_context, OPS_SCATTER_ADD, 0, &got, &all, &all),
                "y: expected memory that updates does not use");
        ops_tensor_release(&got);
    }
    ops_context_set_scatter(test_context, OPS_SCATTER_ORDERED);
    ops_tensor_release(&all);
    ops_tensor_release(&few);
    ops_tensor_release(&places);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(calls_have_the_order_of_their_time),
                                       cmocka_unit_test(any_order_has_the_same_bits),
                                       cmocka_unit_test(others_add_in_order),
                                       cmocka_unit_test(memory_is_limited),
                                       cmocka_unit_test(sums_in_order_take_little_memory),
                                       cmocka_unit_test(edges)};
    return RUN_ON_ALL(tests);
}
