/* Arrays: gather, concatenate, one_hot, iota and copy against loops on the host, fused and not;
 * scalar operands, negative axes, reductions along several axes, arrays of tensors, views as inputs
 * of graphs, and the report of arrays that were never released. */
#include "ops_arrays.h"
#include "ops_fixture.h"

enum { ROWS = 4, COLUMNS = 6, COUNT = ROWS * COLUMNS };

static float values[COUNT]; /* 0.5, 1.5, ... */
static const int64_t shape[2] = {ROWS, COLUMNS};

static ops_array *matrix(void)
{
    for (int i = 0; i < COUNT; i++) {
        values[i] = (float)i + 0.5f;
    }
    return made(ops_array_from_host(test_context, HAL_TYPE_F32, 2, shape, values));
}

static ops_array *indices(const int32_t *elements, int64_t count)
{
    return made(ops_array_from_host(test_context, HAL_TYPE_I32, 1, &count, elements));
}

/* Reads an array and compares it, element by element. */
static void expect(ops_array *array, const float *want, uint32_t count)
{
    float got[1024];
    assert_true(count <= 1024);
    ok(ops_array_read(made(array), count * sizeof *got, got));
    for (uint32_t i = 0; i < count; i++) {
        if (got[i] != want[i]) {
            fail_msg("element %u is %g, wanted %g", i, (double)got[i], (double)want[i]);
        }
    }
}

/* Runs the program of a test with fusion and without; it leaves no array. */
static void both_ways(void **state)
{
    void (*const *program)(void) = *state;
    const uint64_t before = statistics_of(test_context).arrays;
    for (int fusion = 1; fusion >= 0; fusion--) {
        ops_context_set_fusion(test_context, fusion);
        ok(ops_scope_begin(test_context));
        (*program)();
        ok(ops_scope_end(test_context));
    }
    ops_context_set_fusion(test_context, 1);
    assert_int_equal(statistics_of(test_context).arrays, before);
    assert_int_equal(statistics_of(test_context).deferred, 0);
}

#define BOTH_WAYS(program)                                 \
    {                                                      \
#program, both_ways, NULL, NULL, &(void (*)(void)) \
        {                                                  \
            program                                        \
        }                                                  \
    }

static void gather(void)
{
    static const int32_t picks[5] = {3, 0, 0, 9, -1}; /* the last two are out of range */
    float want[5 * COLUMNS], columns[ROWS * 5];
    ops_array *x = matrix(), *index = indices(picks, 5);
    for (int i = 0; i < 5; i++) {
        const int is_inside = picks[i] >= 0 && picks[i] < ROWS;
        for (int j = 0; j < COLUMNS; j++) {
            want[i * COLUMNS + j] = is_inside ? -values[picks[i] * COLUMNS + j] + 1 : 1;
        }
        for (int j = 0; j < ROWS; j++) {
            columns[j * 5 + i] =
                picks[i] >= 0 && picks[i] < COLUMNS ? values[j * COLUMNS + picks[i]] : 0;
        }
    }
    /* Elementwise work before and after. */
    expect(ops_add_scalar(ops_array_gather(0, ops_neg(x), index), 1), want, 5 * COLUMNS);
    expect(ops_array_gather(-1, x, index), columns, ROWS * 5);
    expect(ops_array_gather(1, ops_array_transpose(ops_neg(ops_neg(x)), 0, 1),
                            indices((int32_t[]){2}, 1)),
           values + 2 * COLUMNS, COLUMNS);
}

static void concatenate(void)
{
    float want[3 * COUNT];
    ops_array *x = matrix(), *twice = ops_mul_scalar(x, 2);
    ops_array *part = ops_array_slice(x, 0, 1, 2, 1);
    ops_array *const down[3] = {twice, part, x};
    for (int i = 0; i < COUNT; i++) {
        want[i] = 2 * values[i];
        want[COUNT + 2 * COLUMNS + i] = values[i];
    }
    memcpy(want + COUNT, values + COLUMNS, 2 * COLUMNS * sizeof *want);
    expect(ops_array_concatenate(0, down, 3), want, 2 * COUNT + 2 * COLUMNS);
    ops_array *const across[2] = {x, ops_neg(x)};
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < COLUMNS; j++) {
            want[i * 2 * COLUMNS + j] = values[i * COLUMNS + j];
            want[i * 2 * COLUMNS + COLUMNS + j] = -values[i * COLUMNS + j];
        }
    }
    expect(ops_array_concatenate(-1, across, 2), want, 2 * COUNT);
    expect(ops_array_concatenate(0, across, 1), values, COUNT);
}

/* More parts than one node takes, some without elements. */
static void concatenate_many(void)
{
    enum { PARTS = 600 }; /* three levels of joints */
    float want[PARTS * 3];
    ops_array *parts[PARTS], *x = matrix();
    uint32_t length = 0;
    for (int i = 0; i < PARTS; i++) {
        ops_array *row =
            ops_array_reshape(ops_array_slice(x, 0, i % ROWS, 1, 1), 1, (int64_t[]){COLUMNS});
        parts[i] = made(ops_add_scalar(ops_array_slice(row, 0, i % 3, i % 4, 1), i));
        for (int k = 0; k < i % 4; k++) {
            want[length++] = values[(i % ROWS) * COLUMNS + i % 3 + k] + (float)i;
        }
    }
    expect(ops_array_concatenate(0, parts, PARTS), want, length);
    expect(ops_neg(ops_neg(ops_array_concatenate(0, parts, 25))), want, 36);
    expect(ops_array_concatenate(0, parts, 60), want, 90);
    made(ops_array_concatenate(0, parts, PARTS)); /* never read */
}

static void one_hot(void)
{
    static const int32_t picks[4] = {2, 0, 5, -3};
    float want[4 * 5] = {0}, table[3 * 2] = {1, 2, 3, 4, 5, 6};
    ops_array *index = indices(picks, 4);
    want[2] = want[5] = 1;
    expect(ops_array_one_hot(HAL_TYPE_F32, 5, index), want, 20);
    /* A row of a table by a product. */
    ops_array *rows =
        made(ops_array_from_host(test_context, HAL_TYPE_F32, 2, (int64_t[]){3, 2}, table));
    const float picked[8] = {5, 6, 1, 2, 0, 0, 0, 0};
    expect(ops_matmul(ops_array_one_hot(HAL_TYPE_F32, 3, index), rows), picked, 8);
    assert_int_equal(ops_array_get_element_count(ops_array_one_hot(HAL_TYPE_I8, 0, index)), 0);
    ops_array *flags = made(ops_array_one_hot(HAL_TYPE_BOOL, 3, indices((int32_t[]){1}, 1)));
    uint8_t bits[3];
    ok(ops_array_read(flags, sizeof bits, bits));
    assert_true(!bits[0] && bits[1] && !bits[2]);
}

static void iota_and_copy(void)
{
    const float want[5] = {3, 2.5, 2, 1.5, 1};
    ops_array *ramp = made(ops_array_iota(test_context, HAL_TYPE_F32, 5, 3, -0.5));
    expect(ramp, want, 5);
    /* Short sequences are kept, and an update of one leaves the others alone. */
    ops_tensor first, second;
    ok(ops_array_get_tensor(ramp, &first));
    ops_array *same = made(ops_array_iota(test_context, HAL_TYPE_F32, 5, 3, -0.5));
    ok(ops_array_get_tensor(same, &second));
    assert_ptr_equal(first.buffer, second.buffer);
    ops_array *value = made(ops_array_scalar(test_context, HAL_TYPE_F32, 9));
    const float changed[5] = {9, 9, 9, 9, 9};
    expect(ops_array_update(same, &second, value), changed, 5);
    expect(ramp, want, 5);
    int32_t whole[4];
    ok(ops_array_read(made(ops_array_iota(test_context, HAL_TYPE_I32, 4, -1, 7)), sizeof whole,
                      whole));
    for (int i = 0; i < 4; i++) {
        assert_int_equal(whole[i], -1 + 7 * i);
    }
    /* A copy of a view has its own memory, row by row. */
    ops_array *back = ops_array_slice(ramp, 0, 4, 3, -2), *copy = made(ops_array_copy(back));
    const float reversed[3] = {1, 2, 3};
    expect(copy, reversed, 3);
    ops_tensor tensor;
    ok(ops_array_get_tensor(copy, &tensor));
    assert_true(tensor.offset == 0 && tensor.stride[0] == 1);
    assert_int_equal(hal_buffer_get_bytes(tensor.buffer), 12);
}

/* Every second pattern of 16 bits: a copy moves bits, also those of NaN, on processors that store
 * 16-bit integers. */
static void copies_move_bits(void)
{
    enum { PATTERNS = 1 << 16 };
    static uint16_t patterns[PATTERNS], got[PATTERNS / 2];
    const int64_t count = PATTERNS;
    for (uint32_t i = 0; i < PATTERNS; i++) {
        patterns[i] = (uint16_t)i;
    }
    const hal_device_info *info = test_context->info;
    if (info->kind != HAL_DEVICE_CPU || !(info->storage_types & HAL_TYPE_BIT(HAL_TYPE_U16))) {
        return;
    }
    for (int k = 0; k < 2; k++) {
        const hal_type type = k ? HAL_TYPE_BF16 : HAL_TYPE_F16;
        ops_array *x = made(ops_array_from_host(test_context, type, 1, &count, patterns));
        ops_array *copy = ops_array_copy(made(ops_array_slice(x, 0, 1, PATTERNS / 2, 2)));
        ok(ops_array_read(made(copy), sizeof got, got));
        for (uint32_t i = 0; i < PATTERNS / 2; i++) {
            assert_int_equal(got[i], patterns[2 * i + 1]);
        }
    }
}

static void scalar_operands(void)
{
    float want[COUNT];
    ops_array *x = matrix();
    for (int i = 0; i < COUNT; i++) {
        want[i] = 1 - ((values[i] + 2) * 3 - 1.5f) / 4;
    }
    ops_array *y = ops_div_scalar(ops_sub_scalar(ops_mul_scalar(ops_add_scalar(x, 2), 3), 1.5), 4);
    y = made(ops_array_scalar_binary(OPS_SUB, 1, y));
    expect(y, want, COUNT);
    for (int i = 0; i < COUNT; i++) {
        want[i] = values[i] < 5 ? 5 : values[i] > 9 ? 9 : values[i];
    }
    expect(ops_minimum_scalar(ops_maximum_scalar(x, 5), 9), want, COUNT);
    for (int i = 0; i < COUNT; i++) {
        want[i] = values[i] * values[i];
    }
    float got[COUNT];
    ok(ops_array_read(made(ops_pow_scalar(x, 2)), sizeof got, got));
    for (int i = 0; i < COUNT; i++) {
        assert_true(fabsf(got[i] - want[i]) <= 1e-5f * want[i]);
    }
    /* The scalar has the type of the array, so integers round it. */
    ops_array *whole = ops_add_scalar(made(ops_array_cast(HAL_TYPE_I32, x)), 2);
    int32_t first;
    ok(ops_array_read(made(ops_array_slice(ops_array_slice(whole, 0, 0, 1, 1), 1, 0, 1, 1)), 4,
                      &first));
    assert_int_equal(first, 2);
    nothing(ops_mul_scalar(NULL, 2), "");
    nothing(ops_array_scalar_binary(OPS_AND, 1, x), "and does not take f32");
}

/* Scalars are not arrays of the caller, also without a scope. */
static void scalars_need_no_release(void **state)
{
    const uint64_t before = statistics_of(test_context).arrays;
    ops_array *x = matrix(), *y = made(ops_mul_scalar(x, 3));
    ops_array_release(x);
    float got[COUNT];
    ok(ops_array_read(y, sizeof got, got));
    ops_array_release(y);
    assert_int_equal(statistics_of(test_context).arrays, before);
}

static void negative_axes(void)
{
    const int64_t cube[3] = {2, 3, 4};
    float data[24], want[12];
    for (int i = 0; i < 24; i++) {
        data[i] = (float)((i * 7) % 13);
    }
    ops_array *x = made(ops_array_from_host(test_context, HAL_TYPE_F32, 3, cube, data));
    assert_int_equal(ops_array_get_length(x, -1), 4);
    assert_int_equal(ops_array_get_length(x, -3), 2);
    assert_int_equal(ops_array_get_length(x, -4), -1);
    assert_int_equal(ops_array_get_length(x, 3), -1);
    for (int i = 0; i < 6; i++) {
        want[i] = 0;
        for (int j = 0; j < 4; j++) {
            want[i] += data[4 * i + j];
        }
    }
    expect(ops_reduce_sum(x, -1), want, 6);
    for (int i = 0; i < 12; i++) {
        want[i] = fmaxf(data[i], data[12 + i]);
    }
    expect(ops_reduce_max(x, -3), want, 12);
    expect(ops_array_slice(ops_array_slice(x, -3, 0, 1, 1), -1, 0, 4, 1), data, 12);
    assert_int_equal(ops_array_get_length(ops_array_transpose(x, -1, 0), 0), 4);
    assert_int_equal(ops_array_get_length(ops_array_permute(x, (int32_t[]){-1, -3, -2}), 2), 3);
    assert_int_equal(ops_array_get_rank(ops_array_softmax(-2, x)), 3);
    nothing(ops_reduce_sum(x, -4), "expected -3 to 2 for f32[2, 3, 4], got -4");
    nothing(ops_array_slice(x, 3, 0, 1, 1), "expected -3 to 2 for f32[2, 3, 4], got 3");
    nothing(ops_array_transpose(x, 0, -9), "axis2");
}

static void several_axes(void)
{
    const int64_t cube[3] = {2, 3, 4};
    float data[24], sums[3] = {0}, total = 0, largest = 0;
    for (int i = 0; i < 24; i++) {
        data[i] = (float)((i * 7) % 13);
        sums[i / 4 % 3] += 2 * data[i];
        total += data[i];
        largest = fmaxf(largest, data[i]);
    }
    ops_array *x = made(ops_array_from_host(test_context, HAL_TYPE_F32, 3, cube, data));
    const int32_t outer[2] = {0, -1};
    ops_array *y = ops_array_reduce_axes(OPS_REDUCE_SUM, outer, 2, 0, ops_mul_scalar(x, 2));
    assert_int_equal(ops_array_get_rank(made(y)), 1);
    expect(y, sums, 3);
    y = made(ops_array_reduce_axes(OPS_REDUCE_SUM, outer, 2, 1, ops_mul_scalar(x, 2)));
    assert_int_equal(ops_array_get_rank(y), 3);
    assert_int_equal(ops_array_get_length(y, 1), 3);
    expect(y, sums, 3);
    expect(ops_array_reduce_axes(OPS_REDUCE_SUM, NULL, 0, 0, x), &total, 1);
    expect(ops_array_reduce_axes(OPS_REDUCE_MAX, NULL, 0, 1, x), &largest, 1);
    total /= 24;
    float mean;
    ok(ops_array_read(made(ops_array_reduce_axes(OPS_REDUCE_MEAN, NULL, 0, 0, x)), 4, &mean));
    assert_true(fabsf(mean - total) < 1e-6f * total);
    expect(ops_array_reduce_axes(OPS_REDUCE_SUM, outer, 0, 0, x), data, 24);
    nothing(ops_array_reduce_axes(OPS_REDUCE_SUM, (int32_t[]){1, -2}, 2, 0, x), "axis 1 twice");
    nothing(ops_array_reduce_axes(OPS_REDUCE_ARGMAX, NULL, 0, 0, x), "got 3");
    nothing(ops_array_reduce_axes(OPS_REDUCE_SUM, (int32_t[]){3}, 1, 0, x), "got 3");
}

/* An array in a tensor's memory: of its strides, with a reference to its buffer. */
static void arrays_of_tensors(void **state)
{
    ops_tensor tensor, turned, other = {0};
    float got[COUNT];
    ops_array *filler = matrix(); /* sets `values` */
    ok(ops_tensor_from_host(test_context, HAL_TYPE_F32, 2, shape, values, &tensor));
    ok(ops_tensor_transpose(&tensor, 0, 1, &turned));
    ops_array *x = made(ops_array_from_tensor(test_context, &turned));
    ops_tensor_release(&tensor);
    assert_int_equal(ops_array_get_length(x, 0), COLUMNS);
    ops_array *y = made(ops_neg(x));
    ok(ops_array_read(y, sizeof got, got));
    for (int i = 0; i < COUNT; i++) {
        assert_true(got[i] == -values[i % ROWS * COLUMNS + i / ROWS]);
    }
    nothing(ops_array_from_tensor(test_context, &other), "ops_array_from_tensor");
    nothing(ops_array_from_tensor(test_context, NULL), "ops_array_from_tensor");
    release_all(x, y, filler);
}

/* A launch copies inputs that are views. */
static void graphs_take_views(void **state)
{
    ops_array *x = matrix(), *first = made(ops_array_slice(x, 0, 0, 1, 1)), *out;
    ops_array *input = made(ops_array_copy(first));
    ops_graph *graph;
    float got[COLUMNS];
    ok(ops_array_evaluate(&input, 1));
    ok(ops_graph_begin(test_context));
    ops_array *y = made(ops_neg(input));
    ok(ops_graph_end(test_context, &input, 1, &y, 1, &graph));
    ops_array_release(y);
    for (int64_t row = 0; row < ROWS; row++) {
        for (int step = 1; step >= -1; step -= 2) {
            ops_array *part = made(ops_array_slice(x, 0, row, 1, 1));
            ops_array *view =
                made(ops_array_slice(part, 1, step > 0 ? 0 : COLUMNS - 1, COLUMNS, step));
            ok(ops_graph_launch(graph, &view, 1, &out, 1));
            release_all(view, part);
            ok(ops_array_read(out, sizeof got, got));
            for (int i = 0; i < COLUMNS; i++) {
                assert_true(got[i] == -values[row * COLUMNS + (step > 0 ? i : COLUMNS - 1 - i)]);
            }
            ops_array_release(out);
        }
    }
    ops_array *same =
        made(ops_array_full(test_context, HAL_TYPE_F32, 2, (int64_t[]){1, COLUMNS}, 4));
    ok(ops_graph_launch(graph, &same, 1, &out, 1));
    ok(ops_array_read(out, sizeof got, got));
    assert_true(got[0] == -4 && got[COLUMNS - 1] == -4);
    release_all(same, out);
    ops_graph_destroy(graph);
    release_all(input, first, x);
}

/* Inputs that a graph cannot have, in words of arrays. */
static void graphs_refuse_inputs(void **state)
{
    ops_graph *graph = NULL;
    ops_array *x = matrix(), *unused = matrix();
    ops_array *empty =
        made(ops_array_from_host(test_context, HAL_TYPE_F32, 1, (int64_t[]){0}, NULL));
    ops_array *const cases[3][2] = {{x, empty}, {x, unused}, {x, x}};
    const char *const words[3] = {"and fills its memory, got one without elements",
                                  "inputs: expected different arrays that the recording reads",
                                  "inputs[1]: expected an array that is given once"};
    for (int i = 0; i < 3; i++) {
        ok(ops_graph_begin(test_context));
        ops_array *y = made(ops_neg(x));
        invalid(ops_graph_end(test_context, cases[i], 2, &y, 1, &graph), words[i]);
        ops_array_release(y);
        assert_null(graph);
    }
    release_all(x, unused, empty);
}

static void wrong_moves_are_refused(void **state)
{
    ok(ops_scope_begin(test_context));
    ops_array *x = matrix(), *whole = indices((int32_t[]){1, 2}, 2);
    ops_array *const mixed[2] = {x, whole};
    nothing(ops_array_gather(0, x, x), "indices: expected i32 or i64, got f32");
    nothing(ops_array_gather(0, x, made(ops_array_cast(HAL_TYPE_I32, x))), "expected rank 1");
    nothing(ops_array_gather(2, x, whole), "got 2");
    nothing(ops_array_gather(0, NULL, whole), "");
    nothing(ops_array_concatenate(0, mixed, 2), "parts[1]: expected");
    nothing(ops_array_concatenate(0, mixed, 0), "at least one array, got 0");
    nothing(ops_array_concatenate(0, NULL, 1), "got null");
    nothing(ops_array_concatenate(5, mixed, 1), "got 5");
    nothing(ops_array_one_hot(HAL_TYPE_F32, -1, whole), "got i32[2] and -1");
    nothing(ops_array_one_hot((hal_type)99, 3, whole), "expected a hal_type, got 99");
    nothing(ops_array_one_hot(HAL_TYPE_F32, 3, x), "expected i32 or i64");
    nothing(ops_array_iota(test_context, HAL_TYPE_F32, -1, 0, 1), "");
    nothing(ops_array_iota(NULL, HAL_TYPE_F32, 1, 0, 1), "ops_array_iota");
    nothing(ops_array_copy(NULL), "");
    invalid(ops_context_get_statistics(test_context, &(ops_array_statistics){0}), "size");
    invalid(ops_context_get_statistics(test_context, NULL), "statistics");
    ok(ops_scope_end(test_context));
}

/* A caller that knows fewer counters gets those. */
static void statistics_fit_their_size(void **state)
{
    ops_array_statistics s;
    memset(&s, 0x5a, sizeof s);
    s.size = offsetof(ops_array_statistics, evaluated);
    ok(ops_context_get_statistics(test_context, &s));
    assert_int_equal(s.size, offsetof(ops_array_statistics, evaluated));
    assert_true(s.recorded < UINT64_C(1) << 40);
    assert_true(s.evaluated == UINT64_C(0x5a5a5a5a5a5a5a5a));
}

static char last_line[512];
static int line_count;

static void note_line(void *user, hal_log_level level, const char *message)
{
    (void)user;
    if (level == HAL_LOG_WARN) {
        line_count++;
        snprintf(last_line, sizeof last_line, "%s", message);
    }
}

/* Nested calls without a scope: the report names how many arrays were lost, and the first one. */
static void lost_arrays_are_reported(void **state)
{
    ops_context *usual = test_context;
    for (int has_scope = 0; has_scope < 2; has_scope++) {
        ok(ops_context_create(test_queue, &test_context));
        ops_array *x = matrix();
        ok(has_scope ? ops_scope_begin(test_context) : HAL_OK);
        ops_array *y = ops_array_keep(made(ops_tanh(ops_add(ops_mul(x, x), x))));
        ok(has_scope ? ops_scope_end(test_context) : HAL_OK);
        release_all(y, x);
        line_count = 0;
        hal_log_set_callback(note_line, NULL, HAL_LOG_WARN);
        ops_context_destroy(test_context);
        hal_log_set_callback(NULL, NULL, 0);
        assert_int_equal(line_count, !has_scope);
        if (!has_scope) {
            assert_non_null(strstr(last_line, "2 arrays were not released, first mul f32[4, 6]"));
            assert_non_null(strstr(last_line, "ops_scope_begin"));
        }
    }
    test_context = usual;
}

int main(void)
{
    const struct CMUnitTest tests[] = {BOTH_WAYS(gather),
                                       BOTH_WAYS(concatenate),
                                       BOTH_WAYS(concatenate_many),
                                       BOTH_WAYS(one_hot),
                                       BOTH_WAYS(iota_and_copy),
                                       BOTH_WAYS(copies_move_bits),
                                       BOTH_WAYS(scalar_operands),
                                       BOTH_WAYS(negative_axes),
                                       BOTH_WAYS(several_axes),
                                       cmocka_unit_test(scalars_need_no_release),
                                       cmocka_unit_test(arrays_of_tensors),
                                       cmocka_unit_test(graphs_take_views),
                                       cmocka_unit_test(graphs_refuse_inputs),
                                       cmocka_unit_test(wrong_moves_are_refused),
                                       cmocka_unit_test(statistics_fit_their_size),
                                       cmocka_unit_test(lost_arrays_are_reported)};
    return RUN_ON_ALL(tests);
}
