/* Operands computed straight into parts of a result: concatenations and updates; updates in place;
 * the holders of memory. The same bits as without fusion. */
#include "ops_arrays.h"
#include "ops_fixture.h"

enum { MOST = 2048 };

static ops_array_statistics statistics(void)
{
    return statistics_of(test_context);
}

static ops_array *ramp_of(hal_type type, uint32_t rank, const int64_t *shape, uint64_t seed)
{
    return made(
        ops_array_uniform(test_context, type, rank, shape, (ops_random_key){3, seed}, -1, 1));
}

static ops_array *ramp(int64_t rows, int64_t columns, uint64_t seed)
{
    const int64_t shape[2] = {rows, columns};
    return ramp_of(HAL_TYPE_F32, 2, shape, seed);
}

/* ---- Concatenations ---- */

/* Four parts of one shape are one kernel, in slices of the result. */
static ops_array *stack_of_four(ops_array *x, ops_array *y)
{
    ops_array *parts[4] = {ops_tanh(x), ops_add(x, y), ops_exp(y), ops_neg(ops_square(x))};
    return ops_array_concatenate(0, parts, 4);
}
static ops_array *columns_of_three(ops_array *x, ops_array *y)
{
    ops_array *parts[3] = {ops_tanh(x), ops_add(x, y), ops_exp(y)};
    return ops_array_concatenate(1, parts, 3);
}
/* A part in memory is copied by the same kernel. */
static ops_array *part_in_memory(ops_array *x, ops_array *y)
{
    ops_array *parts[3] = {ops_tanh(x), y, ops_exp(y)};
    return ops_array_concatenate(1, parts, 3);
}
/* A key-value cache: other lengths are other kernels. */
static ops_array *longer_cache(ops_array *x, ops_array *y)
{
    ops_array *parts[2] = {x,
                           ops_mul(ops_array_slice(y, 0, 0, 1, 1), ops_array_slice(x, 0, 1, 1, 1))};
    return ops_array_concatenate(0, parts, 2);
}
static ops_array *reductions(ops_array *x, ops_array *y)
{
    ops_array *parts[2] = {ops_array_reduce(OPS_REDUCE_SUM, 1, 1, ops_square(x)),
                           ops_sqrt(ops_array_reduce(OPS_REDUCE_MAX, 1, 1, ops_square(y)))};
    return ops_array_concatenate(1, parts, 2);
}
/* A product with its epilogue stays one kernel, and is copied. */
static ops_array *layers(ops_array *x, ops_array *y)
{
    ops_array *w = ops_array_transpose(y, 0, 1);
    ops_array *parts[2] = {ops_relu(ops_matmul(x, w)), ops_tanh(ops_matmul(y, w))};
    return ops_array_concatenate(1, parts, 2);
}
static ops_array *nested(ops_array *x, ops_array *y)
{
    ops_array *inner[2] = {ops_tanh(x), ops_exp(y)};
    ops_array *outer[2] = {ops_array_concatenate(0, inner, 2), ops_neg(x)};
    return ops_tanh(ops_array_concatenate(0, outer, 2));
}
static ops_array *views_as_parts(ops_array *x, ops_array *y)
{
    ops_array *parts[2] = {
        ops_neg(ops_array_transpose(ops_exp(x), 0, 1)),
        ops_neg(ops_array_slice(ops_array_transpose(ops_exp(y), 0, 1), 1, 4, 5, -1))};
    return ops_array_concatenate(1, parts, 2);
}

/* Heads next to one another again, as of attention: reshapes of what is computed are placed. */
static ops_array *merged_heads(ops_array *x, ops_array *y)
{
    const int64_t heads[3] = {5, 1, 7}, flat[2] = {7, 5};
    const int32_t axes[3] = {2, 1, 0};
    ops_array *parts[2] = {ops_array_permute(ops_array_reshape(x, 3, heads), axes),
                           ops_array_permute(ops_array_reshape(y, 3, heads), axes)};
    for (int i = 0; i < 2; i++) {
        parts[i] = ops_array_reshape(ops_array_copy(parts[i]), 2, flat);
    }
    return ops_array_concatenate(1, parts, 2);
}
/* Products are computed first, then one kernel copies them. */
static ops_array *products_in_another_order(ops_array *x, ops_array *y)
{
    ops_array *w = ops_array_transpose(y, 0, 1);
    ops_array *parts[2] = {ops_array_copy(ops_array_transpose(ops_matmul(x, w), 0, 1)),
                           ops_array_copy(ops_array_transpose(ops_matmul(y, w), 0, 1))};
    return ops_array_concatenate(1, parts, 2);
}

typedef struct join_program {
    ops_array *(*make)(ops_array *x, ops_array *y);
    uint32_t kernels;
} join_program;

static const join_program joins[] = {{stack_of_four, 1},  {columns_of_three, 1},
                                     {part_in_memory, 1}, {longer_cache, 2},
                                     {reductions, 2},     {layers, 3},
                                     {nested, 4},         {views_as_parts, 1},
                                     {merged_heads, 1},   {products_in_another_order, 3}};

static void parts_are_computed_in_place(void **state)
{
    static float got[2][MOST];
    ops_array *x = ramp(5, 7, 1), *y = ramp(5, 7, 2);
    for (size_t i = 0; i < sizeof joins / sizeof *joins; i++) {
        for (int run = 0; run < 3; run++) { /* fused, replayed, without fusion */
            ops_context_set_fusion(test_context, run < 2);
            const uint64_t before = statistics().kernels;
            ok(ops_scope_begin(test_context));
            ops_array *z = made(joins[i].make(x, y));
            const uint64_t bytes = (uint64_t)ops_array_get_element_count(z) * sizeof(float);
            ok(ops_array_evaluate(&z, 1));
            if (run < 2 && statistics().kernels - before != joins[i].kernels) {
                fail_msg("program %zu: %llu kernels", i,
                         (unsigned long long)(statistics().kernels - before));
            }
            memset(got[run > 0], 0, sizeof got[0]);
            ok(ops_array_read(z, bytes, got[run > 0]));
            ok(ops_scope_end(test_context));
            if (run > 0) {
                assert_memory_equal(got[0], got[1], sizeof got[0]);
            }
        }
    }
    ops_context_set_fusion(test_context, 1);
    release_all(x, y);
}

/* A part that something else reads has its own memory; one that only a scope holds is a view. */
static void parts_that_are_read_stay_apart(void **state)
{
    ops_array *x = ramp(3, 4, 1);
    float all[12], got[24];
    ok(ops_array_read(x, sizeof all, all));
    ok(ops_scope_begin(test_context));
    ops_array *held = ops_array_keep(ops_neg(x)), *scoped = ops_square(x);
    ops_array *z = ops_array_concatenate(0, (ops_array *[]){held, scoped}, 2);
    ok(ops_array_read(z, sizeof got, got));
    for (int i = 0; i < 12; i++) {
        assert_true(got[i] == -all[i] && got[12 + i] == all[i] * all[i]);
    }
    assert_ptr_not_equal(held->view.buffer, z->view.buffer);
    assert_ptr_equal(scoped->view.buffer, z->view.buffer);
    ok(ops_array_read(scoped, sizeof all, all));
    assert_memory_equal(all, got + 12, sizeof all);
    ok(ops_scope_end(test_context));
    release_all(held, x);
}

/* ---- Updates ---- */

static ops_tensor rows_of(ops_array *x, int64_t first, int64_t count, int64_t step)
{
    ops_tensor all, part;
    ok(ops_array_describe(x, &all));
    ok(ops_tensor_slice(&all, 0, first, count, step, &part));
    return part;
}

static void updates_are_in_place(void **state)
{
    ops_array *x = ramp(6, 4, 1), *v = ramp(2, 4, 2);
    float want[24], values[8], got[24];
    ok(ops_array_read(x, sizeof want, want));
    ok(ops_array_read(v, sizeof values, values));
    hal_buffer *memory = x->view.buffer;
    uint64_t before = statistics().kernels;
    const ops_tensor rows = rows_of(x, 5, 2, -3);
    ops_array *y = made(ops_array_update(x, &rows, v));
    ops_array_release(x);
    ok(ops_array_evaluate(&y, 1));
    assert_ptr_equal(y->view.buffer, memory);
    assert_int_equal(statistics().kernels, before + 1);
    for (int i = 0; i < 8; i++) {
        want[(5 - i / 4 * 3) * 4 + i % 4] = values[i];
    }
    ok(ops_array_read(y, sizeof got, got));
    assert_memory_equal(got, want, sizeof got);
    /* A value that is computed for it: by the same kernel. Updates of updates. */
    before = statistics().kernels;
    for (int64_t row = 0; row < 3; row++) {
        const ops_tensor one = rows_of(y, row, 1, 1);
        ops_array *sum = made(ops_array_reduce(OPS_REDUCE_SUM, 0, 1, v));
        ops_array *value = made(ops_neg(sum));
        x = made(ops_array_update(y, &one, value));
        release_all(y, value, sum);
        y = x;
        for (int i = 0; i < 4; i++) {
            want[row * 4 + i] = -(values[i] + values[4 + i]);
        }
    }
    ok(ops_array_read(y, sizeof got, got));
    assert_memory_equal(got, want, sizeof got);
    assert_int_equal(statistics().kernels, before + 3);
    assert_ptr_equal(y->view.buffer, memory);
    /* A value that reads the array: x[0:2] += v is two kernels, in place. */
    before = statistics().kernels;
    const ops_tensor two = rows_of(y, 0, 2, 1);
    ops_array *part = made(ops_array_slice(y, 0, 0, 2, 1)), *sum = made(ops_add(part, v));
    x = made(ops_array_update(y, &two, sum));
    release_all(part, sum, y);
    ok(ops_array_read(x, sizeof got, got));
    for (int i = 0; i < 8; i++) {
        want[i] += values[i];
    }
    assert_memory_equal(got, want, sizeof got);
    assert_ptr_equal(x->view.buffer, memory);
    assert_int_equal(statistics().kernels, before + 2);
    release_all(x, v);
}

/* Who else holds x: the caller, a scope, a view, a deferred reader, a tensor. */
static void what_is_held_is_copied(void **state)
{
    float before[24], after[24], got[24];
    for (int holder = 0; holder < 6; holder++) {
        ops_array *x = ramp(6, 4, 1), *v = ramp(1, 4, 2), *other = NULL;
        ops_tensor tensor = {0};
        ok(ops_array_read(x, sizeof before, before));
        memcpy(after, before, sizeof after);
        ok(ops_array_read(v, 4 * sizeof *after, after + 8));
        hal_buffer *memory = hal_buffer_retain(x->view.buffer);
        hal_buffer_release(memory);
        ok(ops_scope_begin(test_context));
        const ops_tensor row = rows_of(x, 2, 1, 1);
        ops_array *y = ops_array_keep(made(ops_array_update(x, &row, v)));
        if (holder == 1) {
            other = ops_array_retain(x);
        } else if (holder == 2) {
            other = ops_array_keep(ops_array_slice(x, 0, 2, 2, 1));
        } else if (holder == 3) {
            other = ops_array_keep(ops_neg(x));
        } else if (holder == 4) {
            tensor = x->view;
            hal_buffer_retain(tensor.buffer);
        } else if (holder == 5) {
            other = ops_array_keep(ops_array_reshape(ops_neg(x), 1, (int64_t[]){24}));
        }
        ops_array_release(x);
        ok(ops_scope_end(test_context));
        ok(ops_array_read(y, sizeof got, got));
        assert_memory_equal(got, after, sizeof got);
        assert_int_equal(y->view.buffer == memory, holder == 0);
        if (holder == 1) {
            ok(ops_array_read(other, sizeof got, got));
            assert_memory_equal(got, before, sizeof got);
        } else if (holder == 2) {
            ok(ops_array_read(other, 8 * sizeof *got, got));
            assert_memory_equal(got, before + 8, 8 * sizeof *got);
        } else if (holder == 3 || holder == 5) {
            ok(ops_array_read(other, sizeof got, got));
            for (int i = 0; i < 24; i++) {
                assert_true(got[i] == -before[i]);
            }
        }
        ops_tensor_release(&tensor);
        release_all(y, v, other);
    }
    /* A constant is one element in memory that others share. */
    ops_array *zeros = made(ops_array_full(test_context, HAL_TYPE_F32, 2, (int64_t[]){2, 3}, 0));
    ops_array *one = made(ops_array_scalar(test_context, HAL_TYPE_F32, 1));
    const ops_tensor row = rows_of(zeros, 1, 1, 1);
    ops_array *y = made(ops_array_update(zeros, &row, one));
    release_all(zeros, one);
    static const float want[6] = {0, 0, 0, 1, 1, 1};
    ok(ops_array_read(y, sizeof want, got));
    assert_memory_equal(got, want, sizeof want);
    ops_array_release(y);
}

/* Every view of a matrix, of arrays in both orders, against the host. */
static void updates_write_every_view(void **state)
{
    float base[24], got[24], values[24];
    for (int order = 0; order < 2; order++) {
        for (int form = 0; form < 5; form++) {
            ops_array *m = order ? ramp(4, 6, 1) : ramp(6, 4, 1);
            ops_array *turned = order ? ops_array_transpose(m, 0, 1) : ops_array_retain(m);
            ops_array *x = made(ops_square(turned)); /* [6, 4] in the order of m */
            ops_tensor all, part;
            ok(ops_array_read(x, sizeof base, base));
            ok(ops_array_describe(x, &all));
            if (form == 0) {
                ok(ops_tensor_transpose(&all, 0, 1, &part));
            } else if (form == 1) {
                ok(ops_tensor_slice(&all, 1, 3, 2, -2, &part));
            } else if (form == 2) {
                ok(ops_tensor_reshape(&all, 3, (int64_t[]){2, 3, 4}, &part));
            } else if (form == 3) {
                ok(ops_tensor_reshape(&all, 1, (int64_t[]){24}, &part));
                ok(ops_tensor_slice(&part, 0, 1, 7, 3, &part));
            } else {
                ok(ops_tensor_slice(&all, 0, 2, 0, 1, &part));
            }
            ops_array *v = ramp_of(HAL_TYPE_F32, part.rank, part.shape, 7);
            const int64_t count = ops_tensor_get_element_count(&part);
            ok(ops_array_read(v, (uint64_t)count * sizeof *values, values));
            ops_array *y = made(ops_array_update(x, &part, v));
            release_all(x, m, turned, v);
            for (int64_t i = 0; i < count; i++) {
                int64_t at = part.offset, rest = i;
                for (uint32_t k = part.rank; k-- > 0;) {
                    at += rest % part.shape[k] * part.stride[k];
                    rest /= part.shape[k];
                }
                base[at] = values[i];
            }
            ok(ops_array_read(y, sizeof got, got));
            assert_memory_equal(got, base, sizeof got);
            ops_array_release(y);
        }
    }
}

static void wrong_updates_are_refused(void **state)
{
    ops_array *x = ramp(6, 4, 1), *v = ramp(2, 4, 2);
    ops_array *whole = made(ops_array_cast(HAL_TYPE_I32, v));
    ops_tensor rows = rows_of(x, 0, 2, 1), wrong = rows;
    nothing(ops_array_update(x, NULL, v), "expected a tensor, got null");
    nothing(ops_array_update(x, &rows, whole), "the type of x");
    wrong.offset = 17;
    nothing(ops_array_update(x, &wrong, v), "beyond");
    wrong.offset = -1;
    nothing(ops_array_update(x, &wrong, v), "beyond");
    wrong = rows;
    wrong.stride[0] = 2;
    nothing(ops_array_update(x, &wrong, v), "do not overlap");
    rows = rows_of(x, 0, 3, 1);
    nothing(ops_array_update(x, &rows, v), "value");
    refused(ops_array_describe(x, NULL), HAL_ERROR_INVALID_ARGUMENT, "expected a pointer");
    release_all(x, v, whole);
}

/* ---- Holders ---- */

/* Short sequences are cached: taking the buffer of one returns a copy. */
static void a_sequence_is_taken(void **state)
{
    const float changed[3] = {7, 8, 9};
    float got[3];
    ops_tensor tensor;
    ops_array *x = made(ops_array_iota(test_context, HAL_TYPE_F32, 3, 1, 1));
    ok(ops_array_take_buffer(x, &tensor));
    assert_int_equal(hal_buffer_is_shared(tensor.buffer), 0);
    ok(hal_queue_write(test_queue, tensor.buffer, 0, changed, sizeof changed));
    x = made(ops_array_iota(test_context, HAL_TYPE_F32, 3, 1, 1));
    ok(ops_array_read(x, sizeof got, got));
    for (int i = 0; i < 3; i++) {
        assert_true(got[i] == (float)(i + 1));
    }
    ops_array_release(x);
    ops_tensor_release(&tensor);
}

static void memory_is_taken(void **state)
{
    ops_array *x = ramp(2, 3, 1);
    ops_tensor tensor;
    float want[6], got[6];
    ok(ops_array_read(x, sizeof want, want));
    assert_int_equal(ops_array_is_sole_holder(NULL), 0);
    assert_int_equal(ops_array_is_sole_holder(x), 1);
    ops_array *view = made(ops_array_slice(x, 0, 0, 1, 1));
    assert_int_equal(ops_array_is_sole_holder(x), 0);
    refused(ops_array_take_buffer(x, &tensor), HAL_ERROR_INVALID_STATE, "only holder");
    assert_null(tensor.buffer);
    ops_array_release(view);
    ops_array *reader = made(ops_neg(x));
    assert_int_equal(ops_array_is_sole_holder(x), 0);
    assert_int_equal(ops_array_is_sole_holder(reader), 0); /* not computed */
    ops_array_release(reader);
    ops_array_retain(x);
    assert_int_equal(ops_array_is_sole_holder(x), 0);
    ops_array_release(x);
    const uint64_t before = statistics().arrays;
    ok(ops_array_take_buffer(x, &tensor));
    assert_int_equal(statistics().arrays, before - 1);
    assert_int_equal(hal_buffer_is_shared(tensor.buffer), 0);
    ok(ops_tensor_read(test_context, &tensor, sizeof got, got));
    assert_memory_equal(got, want, sizeof got);
    hal_buffer_retain(tensor.buffer);
    assert_int_equal(hal_buffer_is_shared(tensor.buffer), 1);
    hal_buffer_release(tensor.buffer);
    ops_tensor_release(&tensor);
    assert_int_equal(hal_buffer_is_shared(NULL), 0);
    ops_array *constant = made(ops_array_scalar(test_context, HAL_TYPE_F32, 1));
    assert_int_equal(ops_array_is_sole_holder(constant), 0);
    ops_array_release(constant);
}

/* A reshape whose source was computed in a part of a result is read from there afterwards. */
static void reshapes_of_parts_are_read(void **state)
{
    static const int64_t shape[2] = {3, 4}, wide[2] = {6, 4}, cube[3] = {3, 2, 2};
    float all[24], part[12];
    ops_tensor rows;
    ops_array *x = ramp_of(HAL_TYPE_F32, 3, cube, 1), *y = ramp(3, 4, 2);
    for (int updates = 0; updates < 2; updates++) {
        ok(ops_scope_begin(test_context));
        ops_array *reshaped = ops_array_reshape(ops_tanh(x), 2, shape);
        ops_array *parts[2] = {ops_exp(y), reshaped};
        ops_array *result = ops_array_concatenate(0, parts, 2);
        if (updates) {
            ops_array *zeros = ops_array_full(test_context, HAL_TYPE_F32, 2, wide, 0);
            ok(ops_array_describe(zeros, &rows));
            ok(ops_tensor_slice(&rows, 0, 3, 3, 1, &rows));
            result = ops_array_update(zeros, &rows, reshaped);
        }
        ok(ops_array_read(result, sizeof all, all));
        ok(ops_array_read(reshaped, sizeof part, part));
        assert_memory_equal(part, all + 12, sizeof part);
        ok(ops_scope_end(test_context));
    }
    release_all(x, y);
}

/* Views of arrays that are computed together, and so share a buffer. */
static void views_of_joined_arrays_are_read(void **state)
{
    enum { COUNT = 20 };
    static const int64_t two[2] = {2, 2};
    ops_array *x[COUNT], *y[COUNT], *line[COUNT], *square[COUNT];
    float want[4 * (COUNT + 1)], got[4 * (COUNT + 1)];
    ok(ops_scope_begin(test_context));
    for (int i = 0; i < COUNT; i++) {
        const int64_t rows = i % 5 + 2, all = 4 * rows;
        x[i] = ramp(rows, 4, (uint64_t)i);
        y[i] = ops_tanh(x[i]);
        line[i] = ops_array_reshape(y[i], 1, &all);
        square[i] = ops_array_reshape(ops_array_slice(y[i], 0, 1, 1, 1), 2, two);
    }
    ok(ops_array_evaluate(y, COUNT));
    for (int i = 0; i < COUNT; i++) {
        const size_t count = 4 * (size_t)(i % 5 + 2);
        ok(ops_array_read(y[i], count * sizeof *want, want));
        ok(ops_array_read(line[i], count * sizeof *got, got));
        assert_memory_equal(want, got, count * sizeof *got);
        ok(ops_array_read(square[i], 4 * sizeof *got, got));
        assert_memory_equal(want + 4, got, 4 * sizeof *got);
    }
    ok(ops_scope_end(test_context));
    for (int i = 0; i < COUNT; i++) {
        ops_array_release(x[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_computed_in_place),
        cmocka_unit_test(parts_that_are_read_stay_apart),
        cmocka_unit_test(updates_are_in_place),
        cmocka_unit_test(what_is_held_is_copied),
        cmocka_unit_test(updates_write_every_view),
        cmocka_unit_test(wrong_updates_are_refused),
        cmocka_unit_test(a_sequence_is_taken),
        cmocka_unit_test(memory_is_taken),
        cmocka_unit_test(reshapes_of_parts_are_read),
        cmocka_unit_test(views_of_joined_arrays_are_read),
    };
    return cmocka_run_group_tests_name("processor", tests, open_context, close_context) +
           cmocka_run_group_tests_name("other kind", tests, open_other_context, close_context);
}
