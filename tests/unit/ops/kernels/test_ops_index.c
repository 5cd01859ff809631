/* Tensors and moving elements by index: views, reads of strided tensors, copies, and errors. */
#include "ops_fixture.h"

static void views(void **state)
{
    const int64_t shape[3] = {4, 6, 5};
    float numbers[120], got[120];
    for (int i = 0; i < 120; i++) {
        numbers[i] = (float)i;
    }
    ops_tensor t, v, w;
    ok(ops_tensor_from_host(test_context, HAL_TYPE_F32, 3, shape, numbers, &t));
    assert_int_equal(ops_tensor_get_element_count(&t), 120);
    assert_true(ops_tensor_is_contiguous(&t));
    ok(ops_tensor_slice(&t, 1, 5, 3, -2, &v));
    assert_false(ops_tensor_is_contiguous(&v));
    ok(ops_tensor_read(test_context, &v, 60 * 4, got));
    for (int i = 0; i < 60; i++) {
        float want = numbers[i / 15 * 30 + (5 - 2 * (i / 5 % 3)) * 5 + i % 5];
        assert_true(got[i] == want);
    }
    const int32_t axes[3] = {2, 0, 1};
    ok(ops_tensor_permute(&t, axes, &v));
    assert_int_equal(v.shape[0], 5);
    ok(ops_tensor_read(test_context, &v, sizeof got, got));
    for (int i = 0; i < 120; i++) {
        assert_true(got[i] == numbers[i / 6 % 4 * 30 + i % 6 * 5 + i / 24]);
    }
    ok(ops_tensor_transpose(&t, 0, 2, &v));
    ok(ops_tensor_read(test_context, &v, sizeof got, got));
    for (int i = 0; i < 120; i++) {
        assert_true(got[i] == numbers[i % 4 * 30 + i / 4 % 6 * 5 + i / 24]);
    }
    const int64_t flat[2] = {-1, 8}, broad[4] = {2, 4, 6, 5};
    ok(ops_tensor_reshape(&t, 2, flat, &v));
    assert_int_equal(v.shape[0], 15);
    ok(ops_tensor_slice(&t, 1, 2, 1, 1, &v));
    ok(ops_tensor_broadcast(&v, 4, broad, &w));
    float many[240];
    ok(ops_tensor_read(test_context, &w, sizeof many, many));
    for (int i = 0; i < 240; i++) {
        assert_true(many[i] == numbers[i / 30 % 4 * 30 + 10 + i % 5]);
    }
    ops_tensor_release(&t);
    ops_tensor_release(&t);
    ops_tensor_release(NULL);
}

static void bad_tensors(void **state)
{
    const int64_t shape[2] = {4, 6}, negative[1] = {-2}, huge[3] = {INT64_MAX / 4, 3, 3},
                  wrong[2] = {-1, 7}, rows[2] = {5, 6}, uneven[2] = {5, -1};
    const int32_t twice[2] = {1, 1};
    float numbers[24] = {0};
    ops_tensor t, v;
    ops_context *none = NULL;
    invalid(ops_context_create(NULL, &none), "queue: expected");
    invalid(ops_context_create(test_queue, NULL), "context: expected");
    ops_context_destroy(NULL);
    assert_null(ops_context_get_queue(NULL));
    assert_null(ops_context_get_device(NULL));
    assert_ptr_equal(ops_context_get_queue(test_context), test_queue);
    assert_ptr_equal(ops_context_get_device(test_context), test_device);
    invalid(ops_tensor_create(NULL, HAL_TYPE_F32, 2, shape, &t), "context: expected");
    invalid(ops_tensor_create(test_context, HAL_TYPE_F32, 2, shape, NULL), "tensor: expected");
    invalid(ops_tensor_create(test_context, HAL_TYPE_F32, OPS_MAX_RANK + 1, shape, &t), "rank");
    invalid(ops_tensor_create(test_context, HAL_TYPE_F32, 2, NULL, &t), "shape: expected");
    invalid(ops_tensor_create(test_context, 0, 2, shape, &t), "got 0");
    invalid(ops_tensor_create(test_context, HAL_TYPE_F32, 1, negative, &t),
            "shape[0]: expected at least 0, got -2");
    invalid(ops_tensor_create(test_context, HAL_TYPE_F32, 3, huge, &t), "63 bits");
    ok(ops_tensor_create(test_context, HAL_TYPE_F32, 2, shape, &t));
    invalid(ops_tensor_write(test_context, &t, numbers, 95), "got 95");
    invalid(ops_tensor_write(test_context, &t, NULL, 96), "elements: expected");
    invalid(ops_tensor_read(test_context, &t, 97, numbers), "got 97");
    invalid(ops_tensor_read(test_context, NULL, 96, numbers), "tensor: expected");
    invalid(ops_tensor_slice(&t, 2, 0, 1, 1, &v), "axis: expected -2 to 1 for f32[4, 6], got 2");
    invalid(ops_tensor_slice(&t, 1, 4, 3, 1, &v), "start 4, count 3");
    invalid(ops_tensor_slice(&t, 1, 0, 3, -1, &v), "step -1");
    invalid(ops_tensor_slice(&t, 1, 1, 3, INT64_MAX, &v), "expected elements of");
    invalid(ops_tensor_slice(&t, 1, -1, 1, 1, &v), "start -1");
    invalid(ops_tensor_slice(NULL, 1, 0, 1, 1, &v), "tensor: expected");
    invalid(ops_tensor_slice(&t, 1, 0, 1, 1, NULL), "view: expected");
    invalid(ops_tensor_permute(&t, twice, &v), "axes[1]: expected each axis of f32[4, 6] once");
    invalid(ops_tensor_permute(&t, NULL, &v), "axes: expected a pointer");
    invalid(ops_tensor_transpose(&t, 0, 2, &v), "axis2: expected -2 to 1 for f32[4, 6], got 2");
    invalid(ops_tensor_reshape(&t, 2, wrong, &v), "f32[4, 6]");
    invalid(ops_tensor_reshape(&t, 2, rows, &v), "f32[4, 6]");
    invalid(ops_tensor_reshape(&t, 2, uneven, &v), "got rank 2 with 5 in its known axes");
    invalid(ops_tensor_broadcast(&t, 2, rows, &v), "f32[4, 6]");
    ok(ops_tensor_transpose(&t, 0, 1, &v));
    invalid(ops_tensor_reshape(&v, 1, negative + 1 - 1, &v), "f32[6, 4]");
    ops_tensor_release(&t);
}

static void copies(void **state)
{
    const int64_t shape[3] = {3, 50, 41}, turned[3] = {1, 3, 150}, gaps[3] = {9000, 170, 4};
    const int64_t *strides[3] = {NULL, turned, gaps};
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        for (int i = 0; i < 9; i++) {
            box x = box_make(type, 3, shape, strides[i % 3], 0, 2);
            box y = box_make(type, 3, shape, strides[i / 3], 0, 2);
            ok(ops_copy(test_context, &x.t, &y.t));
            double *want = box_want(&y);
            for (int64_t j = 0; j < ops_tensor_get_element_count(&y.t); j++) {
                want[place_of(&y.t, 3, shape, j)] = box_at(&x, &y.t, j);
            }
            box_check(&y, want, 0, 0);
            boxes_free(&x, &y);
        }
    }
}

/* Contiguous tensors that end within a word, next to elements that stay. */
static void copies_of_odd_bytes(void **state)
{
    static const hal_type types[] = {HAL_TYPE_I8, HAL_TYPE_F16};
    static const int64_t counts[] = {65537, 65538, 65539, 65541};
    for (size_t i = 0; i < 16; i++) {
        const int64_t count = counts[i / 4], room = count + 8, shape[1] = {room};
        const hal_type type = types[i % 2];
        box x = box_make(type, 1, shape, NULL, 0, 100), y = box_make(type, 1, shape, NULL, 0, 100);
        ops_tensor from, to;
        const int64_t start = i / 2 % 2 == 0 ? 3 : 7; /* whole words: boxes begin at 5 */
        ok(ops_tensor_slice(&x.t, 0, 3, count, 1, &from));
        ok(ops_tensor_slice(&y.t, 0, start, count, 1, &to));
        double *want = box_want(&y);
        ok(ops_copy(test_context, &from, &to));
        for (int64_t j = 0; j < count; j++) {
            const int64_t at[1] = {room};
            want[place_of(&y.t, 1, at, start + j)] = box_at(&x, &x.t, 3 + j);
        }
        box_check(&y, want, 0, 0);
        boxes_free(&x, &y);
    }
}

/* Copies do not look at elements: every bit of a NaN arrives. */
static void bits_survive(void **state)
{
    const int64_t shape[2] = {300, 2};
    uint16_t in[600], out[300];
    for (int i = 0; i < 600; i++) {
        in[i] = (uint16_t)(0x7c00 + i);
    }
    for (int t = 0; t < 2; t++) {
        ops_tensor x, column, y;
        hal_type type = t ? HAL_TYPE_F16 : HAL_TYPE_BF16;
        ok(ops_tensor_from_host(test_context, type, 2, shape, in, &x));
        ok(ops_tensor_create(test_context, type, 1, shape, &y));
        ok(ops_tensor_slice(&x, 1, 1, 1, 1, &column));
        column.rank = 1;
        ok(ops_copy(test_context, &column, &y));
        ok(ops_tensor_read(test_context, &y, sizeof out, out));
        for (int i = 0; i < 300; i++) {
            assert_int_equal(out[i], in[2 * i + 1]);
        }
        ops_tensor_release(&x);
        ops_tensor_release(&y);
    }
}

/* Whole lines at indices, aligned or not, and zeros for an index out of range. */
static void gathered_lines(void **state)
{
    enum { PICKS = 50 };
    static const int64_t shapes[][3] = {{1, 37, 48},   {3, 20, 16}, {1, 9, 24 * 3}, {2, 7, 6},
                                        {1, 9, 20000}, {3, 11, 33}, {1, 300, 17},   {2, 5, 1001}};
    int32_t picks[PICKS];
    for (int t = 0; t < 16; t++) {
        const int64_t *n = shapes[t % 8];
        const int64_t count = PICKS, lines = n[0] * n[1], spread = n[2] + (t / 8);
        const int64_t shape[3] = {n[0], PICKS, n[2]}, strides[3] = {n[1] * spread, spread, 1};
        uint16_t *in = calloc((size_t)(lines * spread), sizeof *in);
        uint16_t *out = calloc((size_t)(n[0] * PICKS * n[2]), sizeof *out);
        assert_true(in && out);
        for (int64_t i = 0; i < lines * spread; i++) {
            in[i] = (uint16_t)(i * 40503 + 1);
        }
        for (int i = 0; i < PICKS; i++) {
            picks[i] = i * 7 % ((int32_t)n[1] + 3) - 1;
        }
        const int64_t all = lines * spread;
        ops_tensor x, y, indices, memory;
        ok(ops_tensor_from_host(test_context, HAL_TYPE_F16, 1, &all, in, &memory));
        ok(ops_tensor_from_host(test_context, HAL_TYPE_I32, 1, &count, picks, &indices));
        ok(ops_tensor_create(test_context, HAL_TYPE_F16, 3, shape, &y));
        x = memory;
        x.rank = 3;
        for (int i = 0; i < 3; i++) {
            x.shape[i] = n[i];
            x.stride[i] = strides[i];
        }
        ok(ops_gather(test_context, 1, &x, &indices, &y));
        ok(ops_tensor_read(test_context, &y, (uint64_t)(n[0] * PICKS * n[2]) * 2, out));
        for (int64_t i = 0; i < n[0] * PICKS * n[2]; i++) {
            const int64_t batch = i / n[2] / PICKS, pick = picks[i / n[2] % PICKS];
            const int64_t at = (batch * n[1] + pick) * spread + i % n[2];
            assert_int_equal(out[i], pick >= 0 && pick < n[1] ? in[at] : 0);
        }
        ops_tensor_release(&memory);
        ops_tensor_release(&indices);
        ops_tensor_release(&y);
        free(in);
        free(out);
    }
}

/* Elements `from` on of start + i * step are rounded once, in F32 and from it. */
static void iota_is(hal_type type, int64_t count, double start, double step, int64_t from)
{
    const uint64_t size = hal_type_size(type);
    const int64_t looked_at = count - from;
    uint8_t *bytes = malloc((size_t)((uint64_t)looked_at * size));
    ops_tensor y, end;
    ok(ops_tensor_create(test_context, type, 1, &count, &y));
    ok(ops_tensor_slice(&y, 0, from, looked_at, 1, &end));
    const hal_status status = ops_iota(test_context, start, step, &y);
    if (status != HAL_ERROR_UNSUPPORTED) { /* the grid of some devices is too small */
        ok(status);
        ok(ops_tensor_read(test_context, &end, (uint64_t)looked_at * size, bytes));
        for (int64_t i = 0; i < looked_at; i++) {
            const double got = decode(type, bytes + (uint64_t)i * size);
            const double want = in_type(type, (double)(float)(start + (double)(from + i) * step));
            if (got != want) {
                fail_msg("%s %g + %lld * %g: %.17g, not %.17g", hal_type_name(type), start,
                         (long long)(from + i), step, got, want);
            }
        }
    }
    ops_tensor_release(&y);
    free(bytes);
}

static void iota_beyond_24_bits(void **state)
{
    const int64_t many = INT64_C(1) << 24;
    iota_is(HAL_TYPE_F32, 1000, -3, 0.1, 0);
    iota_is(HAL_TYPE_F32, 1000, 0.1, 1e-9, 0);
    iota_is(HAL_TYPE_F32, many + 300, -(double)many, 1, many - 10);
    iota_is(HAL_TYPE_F32, many + 300, -1, 2.0 / (3.0 * (double)many), many - 10);
    iota_is(HAL_TYPE_F16, many + 300, -16384, 0x1p-10, many - 10);
    iota_is(HAL_TYPE_BF16, many + 256, -(double)many, 1, many - 10);
}

/* test_ops_array_moves.c and hal-conformance have the values of all but copies. */
static void bad_arguments(void **state)
{
    const int64_t shape[2] = {4, 6}, other[2] = {6, 4}, count[1] = {3};
    box x = box_make(HAL_TYPE_F32, 2, shape, NULL, 0, 9);
    box y = box_make(HAL_TYPE_F32, 2, other, NULL, 0, 9);
    box i = box_make(HAL_TYPE_I32, 1, count, NULL, 0, 3);
    box f = box_make(HAL_TYPE_F32, 1, count, NULL, 0, 3);
    box b = box_make(HAL_TYPE_BOOL, 1, count, NULL, 0, 1);
    const ops_tensor parts[2] = {x.t, x.t};
    invalid(ops_copy(test_context, &x.t, &y.t), "x f32[4, 6], got f32[6, 4]");
    invalid(ops_copy(test_context, &x.t, &x.t), "memory that x does not use");
    invalid(ops_copy(NULL, &x.t, &y.t), "context");
    invalid(ops_gather(test_context, 0, &x.t, &f.t, &y.t), "indices: expected i32 or i64, got f32");
    invalid(ops_gather(test_context, 0, &x.t, &i.t, &y.t), "got f32[6, 4]");
    invalid(ops_gather(test_context, 3, &x.t, &i.t, &y.t), "axis: expected -");
    invalid(ops_gather(test_context, 0, NULL, &i.t, &y.t), "x: expected");
    invalid(ops_concatenate(test_context, 0, NULL, 2, &y.t), "parts: expected");
    invalid(ops_concatenate(test_context, 0, parts, 2, &y.t), "parts[0]: expected a part of y");
    invalid(ops_concatenate(test_context, 2, parts, 0, &y.t),
            "axis: expected -2 to 1 for f32[6, 4], got 2");
    invalid(ops_concatenate(test_context, 0, parts, 0, &y.t), "expected length 0");
    invalid(ops_iota(test_context, 0.5, 1, &i.t), "got start 0.5");
    invalid(ops_iota(test_context, 0, 1, &b.t), "got bool[3]");
    invalid(ops_one_hot(test_context, &f.t, &x.t), "indices: expected i32 or i64");
    invalid(ops_one_hot(test_context, &i.t, &i.t), "one axis more, got i32[3]");
    box_expect(&y, y.host, 0, 0);
    boxes_free(&x, &y, &i, &f, &b);
}

/* Parts of words in buffers of their own are copied by kernels that many share; y's other elements
 * stay. `size`: bytes of an element. */
static void concatenate_many(hal_type type, uint32_t size, uint64_t most, uint64_t kernels)
{
    enum { PARTS = 40, COLUMNS = 12 };
    ops_copy_tuning *tuning = &test_tune(test_context)->copy;
    const uint64_t before = tuning->max_joined_bytes;
    ops_tensor parts[PARTS], whole, y;
    uint8_t numbers[200 * COLUMNS * 8], want[PARTS * 200 * COLUMNS * 8], got[sizeof want];
    int64_t rows = 0;
    uint32_t state = 5;
    for (uint32_t i = 0; i < PARTS; i++) {
        const int64_t shape[2] = {i % 7 == 3 ? 0 : i == 21 ? 199 : 1 + i % 5, COLUMNS};
        const size_t bytes = (size_t)shape[0] * COLUMNS * size;
        for (size_t k = 0; k < bytes; k++) {
            numbers[k] = (uint8_t)((state = state * 1664525u + 1013904223u) >> 24) & 63;
        }
        memcpy(want + (size_t)rows * COLUMNS * size, numbers, bytes);
        ok(ops_tensor_from_host(test_context, type, 2, shape, numbers, &parts[i]));
        rows += shape[0];
    }
    const int64_t shape[2] = {rows + 2, COLUMNS};
    ok(ops_tensor_create(test_context, type, 2, shape, &whole));
    ok(ops_fill(test_context, 0, &whole));
    ok(ops_tensor_slice(&whole, 0, 1, rows, 1, &y));
    tuning->max_joined_bytes = most;
    const uint64_t inserted = test_context->kernels.insertions;
    ok(ops_concatenate(test_context, 0, parts, PARTS, &y));
    assert_int_equal(test_context->kernels.insertions - inserted, kernels);
    tuning->max_joined_bytes = before;
    ok(ops_tensor_read(test_context, &y, (uint64_t)rows * COLUMNS * size, got));
    assert_memory_equal(got, want, (size_t)rows * COLUMNS * size);
    const uint8_t zeros[COLUMNS * 8] = {0};
    for (int64_t row = 0; row <= rows + 1; row += rows + 1) {
        ops_tensor line;
        ok(ops_tensor_slice(&whole, 0, row, 1, 1, &line));
        ok(ops_tensor_read(test_context, &line, COLUMNS * size, got));
        assert_memory_equal(got, zeros, COLUMNS * size);
    }
    for (uint32_t i = 0; i < PARTS; i++) {
        ops_tensor_release(&parts[i]);
    }
    ops_tensor_release(&whole);
}

static void many_parts_are_few_kernels(void **state)
{
    concatenate_many(HAL_TYPE_F32, 4, UINT64_C(1) << 20, 1);
    concatenate_many(HAL_TYPE_F32, 4, 192, 0); /* longer parts by themselves; the kernel is known */
    concatenate_many(HAL_TYPE_I64, 8, UINT64_C(1) << 20, 0);
    concatenate_many(HAL_TYPE_F16, 2, UINT64_C(1) << 20, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_parts_are_few_kernels),
                                       cmocka_unit_test(views),
                                       cmocka_unit_test(bad_tensors),
                                       cmocka_unit_test(copies),
                                       cmocka_unit_test(copies_of_odd_bytes),
                                       cmocka_unit_test(bits_survive),
                                       cmocka_unit_test(gathered_lines),
                                       cmocka_unit_test(iota_beyond_24_bits),
                                       cmocka_unit_test(bad_arguments)};
    return RUN_ON_ALL(tests);
}
