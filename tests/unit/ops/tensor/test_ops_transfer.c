/* Elements from and to the host: every layout of the tensor, memory of the host with gaps, and bad
 * arguments. */
#include "ops_fixture.h"

#include <stdlib.h>

static void strided_host_memory(void **state)
{
    (void)state;
    const int64_t shape[3] = {3, 5, 7};
    const int64_t device[3][3] = {{35, 7, 1}, {1, 21, 3}, {200, 20, 2}};
    const int64_t host[4][3] = {{35, 7, 1}, {100, 9, 1}, {1, 3, 15}, {150, 20, 2}};
    enum { ROOM = 600 };
    for (int i = 0; i < 3 * 4; i++) {
        box x = box_make(HAL_TYPE_F32, 3, shape, device[i / 4], -9, 9);
        const int64_t *strides = host[i % 4];
        float numbers[ROOM], back[ROOM];
        double *want = box_want(&x);
        for (int j = 0; j < ROOM; j++) {
            numbers[j] = (float)j;
            back[j] = -1;
        }
        for (int64_t j = 0; j < 105; j++) {
            want[place_of(&x.t, 3, shape, j)] =
                (double)(j / 35 * strides[0] + j / 7 % 5 * strides[1] + j % 7 * strides[2]);
        }
        ok(ops_tensor_write_strided(test_context, &x.t, numbers, strides, sizeof numbers));
        box_expect(&x, want, 0, 0);
        ok(ops_tensor_read_strided(test_context, &x.t, strides, sizeof back, back));
        int read = 0;
        for (int j = 0; j < ROOM; j++) {
            assert_true(back[j] == numbers[j] || back[j] == -1);
            read += back[j] != -1;
        }
        assert_int_equal(read, 105);
        free(want);
        box_free(&x);
    }
}

/* Memory with gaps that is more than a packed block: parts along the first axis, along the second
 * where an index of the first is too much, and of a tensor that is a transposed view. */
static void large_strided_memory(void **state)
{
    (void)state;
    const int64_t shapes[3][3] = {{900, 2, 800}, {2, 1500, 801}, {1300, 1, 1000}};
    const int64_t host[3][3] = {{1700, 850, 1}, {1500 * 803, 803, 1}, {1001, 1, 1}};
    for (int i = 0; i < 3; i++) {
        const int64_t *shape = shapes[i], *strides = host[i];
        const int64_t swapped[3] = {shape[2], shape[1], shape[0]};
        const size_t count = (size_t)(shape[0] * shape[1] * shape[2]);
        const size_t room = (size_t)(shape[0] * strides[0] + shape[1] * strides[1] + shape[2]);
        float *numbers = malloc(room * sizeof *numbers), *back = calloc(room, sizeof *back);
        float *packed = malloc(count * sizeof *packed);
        ops_tensor x, turned;
        assert_true(numbers && back && packed);
        for (size_t k = 0; k < room; k++) {
            numbers[k] = (float)(k + 1);
        }
        ok(ops_tensor_create(test_context, HAL_TYPE_F32, 3, swapped, &turned));
        ok(ops_tensor_transpose(&turned, 0, 2, &x));
        ok(ops_tensor_write_strided(test_context, &x, numbers, strides, room * sizeof *numbers));
        ok(ops_tensor_read(test_context, &x, count * sizeof *packed, packed));
        ok(ops_tensor_write(test_context, &turned, packed, count * sizeof *packed));
        const ops_tensor same = {turned.buffer,
                                 HAL_TYPE_F32,
                                 3,
                                 0,
                                 {shape[0], shape[1], shape[2]},
                                 {shape[1] * shape[2], shape[2], 1}};
        ok(ops_tensor_read_strided(test_context, &same, strides, room * sizeof *back, back));
        size_t read = 0;
        for (size_t k = 0; k < room; k++) {
            assert_true(back[k] == numbers[k] || back[k] == 0);
            read += back[k] != 0;
        }
        assert_int_equal(read, count);
        ops_tensor_release(&turned);
        free(numbers);
        free(back);
        free(packed);
    }
}

static void any_tensor_is_written(void **state)
{
    (void)state;
    const int64_t shape[2] = {6, 4}, gaps[2] = {1, 6};
    box x = box_make(HAL_TYPE_I16, 2, shape, gaps, -9, 9);
    int16_t numbers[24], back[24];
    double *want = box_want(&x);
    for (int i = 0; i < 24; i++) {
        numbers[i] = (int16_t)(100 + i);
        want[place_of(&x.t, 2, shape, i)] = 100 + i;
    }
    ok(ops_tensor_write(test_context, &x.t, numbers, sizeof numbers));
    box_expect(&x, want, 0, 0);
    ok(ops_tensor_read(test_context, &x.t, sizeof back, back));
    assert_memory_equal(numbers, back, sizeof back);
    ok(ops_tensor_write_strided(test_context, &x.t, numbers, NULL, sizeof numbers));
    ok(ops_tensor_read_strided(test_context, &x.t, NULL, sizeof back, back));
    assert_memory_equal(numbers, back, sizeof back);
    free(want);
    box_free(&x);
}

static void bad_memory(void **state)
{
    (void)state;
    const int64_t shape[2] = {3, 4}, apart[2] = {5, 1}, negative[2] = {-5, 1}, same[2] = {0, 1};
    box x = box_make(HAL_TYPE_F32, 2, shape, NULL, -9, 9);
    float numbers[14] = {0};
    ok(ops_tensor_write_strided(test_context, &x.t, numbers, apart, sizeof numbers));
    invalid(ops_tensor_write_strided(test_context, &x.t, numbers, apart, 13 * 4), "bytes");
    invalid(ops_tensor_read_strided(test_context, &x.t, apart, 13 * 4, numbers), "bytes");
    invalid(ops_tensor_write_strided(test_context, &x.t, numbers, negative, sizeof numbers),
            "strides[0]: expected at least 0, got -5");
    ok(ops_tensor_write_strided(test_context, &x.t, numbers, same, sizeof numbers));
    invalid(ops_tensor_read_strided(test_context, &x.t, same, sizeof numbers, numbers),
            "strides: expected distinct addresses");
    invalid(ops_tensor_write_strided(test_context, &x.t, NULL, apart, sizeof numbers), "null");
    invalid(ops_tensor_write_strided(test_context, &x.t, numbers, NULL, 44), "expected 48");
    invalid(ops_tensor_write(test_context, &x.t, numbers, 44), "expected 48");
    box_free(&x);
}

/* Axes counted from the end give what their numbers from the front give. */
static void negative_axes(void **state)
{
    (void)state;
    const int64_t shape[3] = {4, 5, 6}, row[3] = {4, 5, 1}, picked[3] = {4, 2, 6};
    box x = box_make(HAL_TYPE_F32, 3, shape, NULL, -9, 9);
    box y[2], z[2], g[2];
    const int32_t picks[2] = {4, 1};
    const int64_t two[1] = {2};
    ops_tensor indices, views[2];
    ok(ops_tensor_from_host(test_context, HAL_TYPE_I32, 1, two, picks, &indices));
    for (int i = 0; i < 2; i++) {
        const int32_t from_end = i ? 3 : 0;
        y[i] = box_make(HAL_TYPE_F32, 3, row, NULL, 0, 1);
        z[i] = box_make(HAL_TYPE_F32, 3, shape, NULL, 0, 1);
        g[i] = box_make(HAL_TYPE_F32, 3, picked, NULL, 0, 1);
        ok(ops_reduce(test_context, OPS_REDUCE_SUM, 2 - from_end, &x.t, NULL, &y[i].t));
        ok(ops_softmax(test_context, 1 - from_end, &x.t, &z[i].t));
        ok(ops_gather(test_context, 1 - from_end, &x.t, &indices, &g[i].t));
    }
    float numbers[2][120];
    for (int i = 0; i < 2; i++) {
        ok(ops_tensor_read(test_context, &y[i].t, 80, numbers[i]));
    }
    assert_memory_equal(numbers[0], numbers[1], 80);
    for (int i = 0; i < 2; i++) {
        ok(ops_tensor_read(test_context, &z[i].t, 480, numbers[i]));
    }
    assert_memory_equal(numbers[0], numbers[1], 480);
    for (int i = 0; i < 2; i++) {
        ok(ops_tensor_read(test_context, &g[i].t, 192, numbers[i]));
    }
    assert_memory_equal(numbers[0], numbers[1], 192);
    const int32_t orders[2][3] = {{2, 0, 1}, {-1, -3, -2}}, twice[3] = {0, -3, 1};
    for (int i = 0; i < 2; i++) {
        ops_tensor v;
        ok(ops_tensor_permute(&x.t, orders[i], &v));
        ok(ops_tensor_slice(&v, i ? -2 : 1, 1, 2, 1, &v));
        ok(ops_tensor_transpose(&v, i ? -3 : 0, i ? -1 : 2, &views[i]));
    }
    assert_memory_equal(&views[0], &views[1], sizeof views[0]);
    invalid(ops_tensor_permute(&x.t, twice, &views[0]), "axes");
    invalid(ops_tensor_transpose(&x.t, -4, 0, &views[0]), "axis1: expected -");
    invalid(ops_tensor_slice(&x.t, -4, 0, 1, 1, &views[0]), "got -4");
    invalid(ops_reduce(test_context, OPS_REDUCE_SUM, -4, &x.t, NULL, &y[0].t), "got -4");
    for (int i = 0; i < 2; i++) {
        boxes_free(&y[i], &z[i], &g[i]);
    }
    ops_tensor_release(&indices);
    box_free(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strided_host_memory), cmocka_unit_test(large_strided_memory),
        cmocka_unit_test(any_tensor_is_written), cmocka_unit_test(bad_memory),
        cmocka_unit_test(negative_axes)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}
