/* Reductions and softmax against double precision: every axis, odd lengths, strides, long axes that
 * are folded in slices, prologues and epilogues, NaN, ties, bad arguments. */
#include "ops_fixture.h"

/* The place of x's element k of output o, counted in row-major order without the axis. */
static int64_t along(const ops_tensor *x, uint32_t axis, int64_t o, int64_t k)
{
    int64_t place = x->offset + k * x->stride[axis];
    for (uint32_t i = x->rank; i-- > 0;) {
        if (i != axis) {
            place += o % x->shape[i] * x->stride[i];
            o /= x->shape[i];
        }
    }
    return place;
}

static ops_tensor without_axis(const ops_tensor *x, uint32_t axis)
{
    ops_tensor t = *x;
    t.rank--;
    for (uint32_t i = axis; i < t.rank; i++) {
        t.shape[i] = x->shape[i + 1];
        t.stride[i] = x->stride[i + 1];
    }
    return t;
}

static double fold_on_host(ops_reduction kind, const box *x, uint32_t axis, int64_t o, double *size)
{
    int64_t n = x->t.shape[axis], place = 0;
    double value = 0, sizes = 0;
    const bool is_least = kind == OPS_REDUCE_MIN || kind == OPS_REDUCE_ARGMIN;
    for (int64_t k = 0; k < n; k++) {
        double v = x->host[along(&x->t, axis, o, k)];
        sizes += fabs(v);
        if (kind == OPS_REDUCE_SUM || kind == OPS_REDUCE_MEAN) {
            value += v;
        } else if (kind == OPS_REDUCE_PRODUCT) {
            value = k == 0 ? v : value * v;
        } else if (k == 0) {
            value = v;
        } else if (!isnan(value) && (isnan(v) || (is_least ? v < value : v > value))) {
            value = v;
            place = k;
        }
    }
    *size = sizes;
    return kind == OPS_REDUCE_MEAN                                  ? value / (double)n
           : kind == OPS_REDUCE_ARGMAX || kind == OPS_REDUCE_ARGMIN ? (double)place
                                                                    : value;
}

/* Reduces x along an axis and compares; sums keep (additions in a row) * u * sum |x|. */
static void try_reduce(ops_reduction kind, const box *x, uint32_t axis, hal_type type, int keep)
{
    ops_tensor shape = without_axis(&x->t, axis);
    int64_t lengths[OPS_MAX_RANK];
    memcpy(lengths, keep ? x->t.shape : shape.shape, sizeof lengths);
    if (keep) {
        lengths[axis] = 1;
    }
    box y = box_make(type, keep ? x->t.rank : shape.rank, lengths, NULL, 0, 1);
    ok(ops_reduce(test_context, kind, axis, &x->t, NULL, &y.t));
    double *want = box_want(&y), worst = 0;
    for (int64_t o = 0; o < ops_tensor_get_element_count(&y.t); o++) {
        double size;
        want[y.t.offset + o] = fold_on_host(kind, x, axis, o, &size);
        worst = size > worst ? size : worst;
    }
    int sums = kind == OPS_REDUCE_SUM || kind == OPS_REDUCE_MEAN;
    double unit = type == HAL_TYPE_F64 ? 0x1p-53 : 0x1p-24;
    double bound = sums && hal_type_is_float(type) ? 600 * unit * worst : 0;
    bound /= kind == OPS_REDUCE_MEAN ? (double)x->t.shape[axis] : 1;
    box_check(&y, want, sums ? 1 : 0, bound);
    box_free(&y);
}

static void every_axis(void **state)
{
    const int64_t shapes[][3] = {{4, 5, 6},    {1, 300, 2},  {70, 3, 130},  {2, 65, 33},
                                 {9, 1, 1},    {300, 2, 47}, {83, 37, 5},   {41, 6, 19},
                                 {600, 40, 3}, {5, 9, 717},  {3, 12, 2001}, {565, 7, 1}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        const int64_t *n = shapes[s];
        const int64_t strides[4][3] = {{n[1] * n[2], n[2], 1},
                                       {1, n[0], n[0] * n[1]},
                                       {-(n[1] * n[2] + 7), n[2], -1},
                                       {n[2] * 3, n[0] * n[2] * 3, 3}};
        for (int layout = 0; layout < 4; layout++) {
            box x = box_make(HAL_TYPE_F32, 3, n, strides[layout], -1, 1);
            for (uint32_t axis = 0; axis < 3; axis++) {
                try_reduce(OPS_REDUCE_SUM, &x, axis, HAL_TYPE_F32, 0);
                try_reduce(OPS_REDUCE_MEAN, &x, axis, HAL_TYPE_F32, 1);
                try_reduce(OPS_REDUCE_MAX, &x, axis, HAL_TYPE_F32, 1);
                try_reduce(OPS_REDUCE_MIN, &x, axis, HAL_TYPE_F32, 0);
                try_reduce(layout % 2 ? OPS_REDUCE_ARGMIN : OPS_REDUCE_ARGMAX, &x, axis,
                           axis ? HAL_TYPE_I32 : HAL_TYPE_I64, 0);
            }
            box_free(&x);
        }
    }
}

static void every_type(void **state)
{
    const int64_t shape[2] = {37, 70};
    for (hal_type type = HAL_TYPE_I8; type < HAL_TYPE_COUNT; type++) {
        box x = box_make(type, 2, shape, NULL, hal_type_is_signed(type) ? -9 : 0, 9);
        box_truncate(&x);
        hal_type wide = hal_type_of_value(type);
        for (uint32_t axis = 0; axis < 2; axis++) {
            try_reduce(OPS_REDUCE_SUM, &x, axis, wide, 0);
            try_reduce(OPS_REDUCE_MAX, &x, axis, type, 0);
            try_reduce(OPS_REDUCE_MIN, &x, axis, type, 1);
            try_reduce(OPS_REDUCE_ARGMAX, &x, axis, HAL_TYPE_I32, 1);
            try_reduce(OPS_REDUCE_ARGMIN, &x, axis, HAL_TYPE_I32, 0);
        }
        box_free(&x);
    }
}

/* Lengths around the steps of loops, slices and blocks. */
static void long_axes(void **state)
{
    const int64_t lengths[] = {63, 64, 65, 255, 256, 257, 1023, 1025, 20000, 65536, 100003, 300001};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        for (int64_t outputs = 1; outputs <= 3; outputs += 2) {
            for (uint32_t axis = 0; axis < 2; axis++) {
                int64_t shape[2] = {outputs, outputs};
                shape[axis] = lengths[i];
                box x = box_make(HAL_TYPE_F32, 2, shape, NULL, -1, 1);
                try_reduce(OPS_REDUCE_SUM, &x, axis, HAL_TYPE_F32, 0);
                try_reduce(i % 2 ? OPS_REDUCE_ARGMAX : OPS_REDUCE_ARGMIN, &x, axis, HAL_TYPE_I32,
                           0);
                try_reduce(OPS_REDUCE_MIN, &x, axis, HAL_TYPE_F32, 1);
                box_free(&x);
            }
        }
    }
}

/* The first of equal values, the first NaN, infinities. */
static void special_values(void **state)
{
    const int64_t lengths[] = {5, 100, 50000};
    for (int i = 0; i < 3; i++) {
        for (int kind = 0; kind < 4; kind++) {
            const int64_t shape[2] = {2, lengths[i]};
            box x = box_make(HAL_TYPE_F32, 2, shape, NULL, 0, 3);
            box_truncate(&x);
            double *row = x.host + x.t.offset;
            if (kind == 1) {
                row[3] = row[lengths[i] - 1] = (double)NAN;
            } else if (kind == 2) {
                row[2] = (double)INFINITY;
                row[4] = -(double)INFINITY;
            } else if (kind == 3) {
                for (int64_t k = 0; k < lengths[i]; k++) {
                    row[k] = -(double)INFINITY;
                }
            }
            box_upload(&x);
            try_reduce(OPS_REDUCE_ARGMAX, &x, 1, HAL_TYPE_I32, 0);
            try_reduce(OPS_REDUCE_MAX, &x, 1, HAL_TYPE_F32, 0);
            try_reduce(OPS_REDUCE_MIN, &x, 1, HAL_TYPE_F32, 0);
            try_reduce(OPS_REDUCE_ARGMAX, &x, 0, HAL_TYPE_I32, 0);
            box_free(&x);
        }
    }
}

/* sum over k of (x - c)^2, then its root plus d; at last the output added to itself. */
static void prologue_and_epilogue(void **state)
{
    hal_ir_builder *b;
    ops_expression *before, *after;
    ok(hal_ir_builder_create_fragment("square_difference", &b));
    hal_ir_value d =
        hal_ir_sub(b, hal_ir_input(b, 0, HAL_TYPE_F32), hal_ir_input(b, 1, HAL_TYPE_F32));
    hal_ir_output(b, 0, hal_ir_mul(b, d, d));
    ok(ops_expression_create(b, &before));
    ok(hal_ir_builder_create_fragment("root_plus", &b));
    hal_ir_value root = hal_ir_sqrt(b, hal_ir_input(b, 0, HAL_TYPE_F32));
    root = hal_ir_add(b, root, hal_ir_input(b, 1, HAL_TYPE_F32));
    hal_ir_output(b, 0, hal_ir_add(b, root, hal_ir_input(b, 2, HAL_TYPE_F32)));
    ok(ops_expression_create(b, &after));
    const int64_t shapes[][2] = {{33, 77}, {3, 90000}, {90000, 3}};
    for (int s = 0; s < 3; s++) {
        for (uint32_t axis = 0; axis < 2; axis++) {
            const int64_t *n = shapes[s];
            int64_t column[2] = {n[0], n[1]}, outputs[1] = {n[1 - axis]}, one[1] = {1};
            column[1 - axis] = 1;
            box x = box_make(HAL_TYPE_F16, 2, n, NULL, -1, 1);
            box c = box_make(HAL_TYPE_F32, 2, column, NULL, -1, 1);
            box e = box_make(HAL_TYPE_F32, 1, one, NULL, -1, 1);
            box y = box_make(HAL_TYPE_F32, 1, outputs, NULL, -1, 1);
            ops_tensor after_inputs[2] = {e.t, y.t};
            ops_reduce_options o = {sizeof o, before, &c.t, 1, after, after_inputs, 2};
            ok(ops_reduce(test_context, OPS_REDUCE_SUM, axis, &x.t, &o, &y.t));
            double *want = box_want(&y), worst = 0;
            for (int64_t i = 0; i < outputs[0]; i++) {
                double sum = 0;
                for (int64_t k = 0; k < n[axis]; k++) {
                    double v = x.host[along(&x.t, axis, i, k)] - c.host[c.t.offset + k];
                    sum += v * v;
                }
                want[y.t.offset + i] += sqrt(sum) + e.host[e.t.offset];
                worst = sqrt(sum) > worst ? sqrt(sum) : worst;
            }
            box_check(&y, want, 2, worst * 1e-5);
            boxes_free(&x, &c, &e, &y);
        }
    }
    ops_expression_destroy(before);
    ops_expression_destroy(after);
}

static void try_softmax(const box *x, uint32_t axis, int logarithm, int in_place)
{
    box y = in_place ? *x : box_make(x->t.type, x->t.rank, x->t.shape, NULL, 0, 1);
    ok(logarithm ? ops_log_softmax(test_context, axis, &x->t, &y.t)
                 : ops_softmax(test_context, axis, &x->t, &y.t));
    int64_t n = x->t.shape[axis], outputs = ops_tensor_get_element_count(&x->t) / n;
    double *want = box_want(&y);
    for (int64_t o = 0; o < outputs; o++) {
        double top = -(double)INFINITY, sum = 0;
        for (int64_t k = 0; k < n; k++) {
            double v = x->host[along(&x->t, axis, o, k)];
            top = isnan(v) || isnan(top) ? (double)NAN : v > top ? v : top;
        }
        for (int64_t k = 0; k < n; k++) {
            sum += exp(x->host[along(&x->t, axis, o, k)] - top);
        }
        for (int64_t k = 0; k < n; k++) {
            double v = x->host[along(&x->t, axis, o, k)] - top;
            want[along(&y.t, axis, o, k)] = logarithm ? v - log(sum) : exp(v) / sum;
        }
    }
    /* x - max, up to 60, is rounded once before exp makes that error a relative one; the sums of
     * 5000 numbers differ too. */
    double unit = float_unit(x->t.type, 1);
    box_check(&y, want, logarithm ? 2 : 96, logarithm ? 64 * unit : 0);
    if (!in_place) {
        box_free(&y);
    }
}

static void softmax(void **state)
{
    const int64_t shapes[][3] = {{4, 5, 6},   {3, 70, 11},  {2, 3, 300}, {1, 2, 5000},
                                 {64, 1, 10}, {2, 5000, 3}, {83, 37, 5}, {41, 6, 19}};
    const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_BF16, HAL_TYPE_F64};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        for (int t = 0; t < 4; t++) {
            for (uint32_t axis = 0; axis < 3; axis++) {
                const int64_t *n = shapes[s];
                const int64_t strides[3] = {1, n[0], n[0] * n[1]};
                box x = box_make(types[t], 3, n, t % 2 ? strides : NULL, -30, 30);
                try_softmax(&x, axis, 0, 0);
                try_softmax(&x, axis, 1, 0);
                try_softmax(&x, axis, t & 1, 1);
                box_free(&x);
            }
        }
    }
    const int64_t shape[2] = {3, 20};
    box x = box_make(HAL_TYPE_F32, 2, shape, NULL, -30, 30);
    x.host[x.t.offset + 4] = -(double)INFINITY;
    x.host[x.t.offset + 24] = (double)NAN;
    x.host[x.t.offset + 44] = 3e38;
    box_upload(&x);
    try_softmax(&x, 1, 0, 0);
    try_softmax(&x, 1, 1, 0);
    box_free(&x);
}

/* A processor keeps exponentials in the result's memory, unless that is x. */
/* Rows that a group of a GPU keeps in shared memory, as they do not fit into its registers; next to
 * others, and in place. */
static void rows_in_shared_memory(void **state)
{
    const int64_t shapes[][3] = {{12, 1, 7001}, {2, 200, 70}, {2, 1100, 70}, {12, 1, 33002}};
    const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_BF16};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        for (int t = 0; t < 3; t++) {
            const uint32_t axis = shapes[s][1] == 1 ? 2 : 1;
            box x = box_make(types[t], 3, shapes[s], NULL, -30, 30);
            try_softmax(&x, axis, t & 1, 0);
            try_softmax(&x, axis, 0, 1);
            box_free(&x);
        }
    }
}

/* Rows of one element: 1 or 0, and NaN where the element is not finite. */
static void softmax_of_single_elements(void **state)
{
    static const float corners[] = {3, -0.0f, 1e38f, -1e-40f, INFINITY, -INFINITY, NAN};
    enum { CORNERS = sizeof corners / sizeof corners[0] };
    const int64_t shape[2] = {CORNERS, 1};
    for (int i = 0; i < 4; i++) {
        float got[CORNERS];
        ops_tensor x, y;
        ok(ops_tensor_from_host(test_context, HAL_TYPE_F32, 2, shape, corners, &x));
        ok(ops_tensor_create(test_context, HAL_TYPE_F32, 2, shape, &y));
        const ops_tensor *to = i < 2 ? &y : &x;
        ok(i % 2 ? ops_log_softmax(test_context, 1, &x, to) : ops_softmax(test_context, 1, &x, to));
        ok(ops_tensor_read(test_context, to, sizeof got, got));
        for (int k = 0; k < CORNERS; k++) {
            assert_true(isfinite(corners[k]) ? got[k] == (float)(i % 2 == 0) : isnan(got[k]));
        }
        ops_tensor_release(&x);
        ops_tensor_release(&y);
    }
}

static void softmax_in_place_has_the_same_bits(void **state)
{
    const int64_t shapes[][2] = {{5, 1025}, {1025, 5}, {70, 64}, {2, 5000}};
    const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_F64};
    static uint8_t apart[5 * 5000 * 8], in_place[sizeof apart];
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        for (int t = 0; t < 3; t++) {
            for (uint32_t axis = 0; axis < 2; axis++) {
                box x = box_make(types[t], 2, shapes[s], NULL, -9, 9);
                box y = box_make(types[t], 2, shapes[s], NULL, 0, 1);
                const uint64_t bytes =
                    (uint64_t)ops_tensor_get_element_count(&x.t) * hal_type_size(types[t]);
                assert_true(bytes <= sizeof apart);
                ok(ops_softmax(test_context, axis, &x.t, &y.t));
                ok(ops_softmax(test_context, axis, &x.t, &x.t));
                ok(ops_tensor_read(test_context, &y.t, bytes, apart));
                ok(ops_tensor_read(test_context, &x.t, bytes, in_place));
                assert_memory_equal(apart, in_place, bytes);
                box_free(&x);
                box_free(&y);
            }
        }
    }
}

static void zero_sizes(void **state)
{
    const int64_t shape[2] = {0, 5}, outputs[1] = {5}, none[1] = {0};
    box x = box_make(HAL_TYPE_F32, 2, shape, NULL, 0, 1);
    box y = box_make(HAL_TYPE_F32, 1, outputs, NULL, 1, 2);
    box z = box_make(HAL_TYPE_F32, 1, none, NULL, 1, 2);
    ok(ops_reduce(test_context, OPS_REDUCE_SUM, 0, &x.t, NULL, &y.t));
    double *want = box_want(&y);
    for (int i = 0; i < 5; i++) {
        want[y.t.offset + i] = 0;
    }
    box_expect(&y, want, 0, 0);
    ok(ops_reduce(test_context, OPS_REDUCE_MAX, 1, &x.t, NULL, &z.t));
    ok(ops_softmax(test_context, 0, &x.t, &x.t));
    invalid(ops_reduce(test_context, OPS_REDUCE_MAX, 0, &x.t, NULL, &y.t),
            "elements along axis 0, got f32[0, 5]");
    free(want);
    boxes_free(&x, &y, &z);
}

/* A device may limit its groups to any number of work-items, in all and in each dimension. */
static void groups_of_any_size(void **state)
{
    static hal_device_info limited;
    static const uint32_t limits[][3] = {{48, 256, 256}, {3, 256, 256}, {100, 24, 256},
                                         {255, 256, 7},  {1, 1, 1},     {256, 5, 1}};
    const hal_device_info *whole = test_context->info;
    const int64_t shape[2] = {5, 70};
    box x = box_make(HAL_TYPE_F32, 2, shape, NULL, -4, 4);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        limited = *whole;
        limited.max_group_items = limits[i][0];
        limited.max_group_size[0] = limits[i][1];
        limited.max_group_size[1] = limits[i][2];
        test_set_device(test_context, &limited);
        for (uint32_t axis = 0; axis < 2; axis++) {
            try_reduce(OPS_REDUCE_SUM, &x, axis, HAL_TYPE_F32, 0);
            try_reduce(OPS_REDUCE_ARGMAX, &x, axis, HAL_TYPE_I32, 1);
            try_reduce(OPS_REDUCE_ARGMIN, &x, axis, HAL_TYPE_I32, 0);
        }
    }
    test_set_device(test_context, whole);
    box_free(&x);
}

/* Equal inputs give equal bits, twice. */
static void repeatable(void **state)
{
    const int64_t shape[1] = {300007}, one[1] = {1};
    box x = box_make(HAL_TYPE_F32, 1, shape, NULL, -1, 1);
    box y[2];
    float values[2];
    for (int i = 0; i < 2; i++) {
        y[i] = box_make(HAL_TYPE_F32, 1, one, NULL, 0, 1);
        ok(ops_reduce(test_context, OPS_REDUCE_SUM, 0, &x.t, NULL, &y[i].t));
        ok(ops_tensor_read(test_context, &y[i].t, 4, &values[i]));
        box_free(&y[i]);
    }
    assert_memory_equal(&values[0], &values[1], 4);
    box_free(&x);
}

static void bad_arguments(void **state)
{
    const int64_t shape[2] = {4, 6}, outputs[1] = {4}, other[1] = {5};
    box x = box_make(HAL_TYPE_F32, 2, shape, NULL, 0, 1);
    box i = box_make(HAL_TYPE_I32, 2, shape, NULL, 0, 9);
    box y = box_make(HAL_TYPE_F32, 1, outputs, NULL, 0, 1);
    box z = box_make(HAL_TYPE_F32, 1, other, NULL, 0, 1);
    box flag = box_make(HAL_TYPE_BOOL, 2, shape, NULL, 0, 1);
    invalid(ops_reduce(NULL, OPS_REDUCE_SUM, 1, &x.t, NULL, &y.t), "context");
    invalid(ops_reduce(test_context, OPS_REDUCE_SUM, 1, NULL, NULL, &y.t), "x: expected");
    invalid(ops_reduce(test_context, OPS_REDUCE_SUM, 1, &x.t, NULL, NULL), "y: expected");
    invalid(ops_reduce(test_context, (ops_reduction)9, 1, &x.t, NULL, &y.t), "got 9");
    invalid(ops_reduce(test_context, OPS_REDUCE_SUM, 2, &x.t, NULL, &y.t),
            "axis: expected -2 to 1 for");
    invalid(ops_reduce(test_context, OPS_REDUCE_SUM, 1, &x.t, NULL, &z.t), "got f32[5]");
    invalid(ops_reduce(test_context, OPS_REDUCE_SUM, 1, &i.t, NULL, &y.t), "y: expected i32");
    invalid(ops_reduce(test_context, OPS_REDUCE_MEAN, 1, &i.t, NULL, &y.t),
            "expected floats, got i32");
    invalid(ops_reduce(test_context, OPS_REDUCE_SUM, 1, &flag.t, NULL, &y.t),
            "expected numbers, got bool");
    invalid(ops_reduce(test_context, OPS_REDUCE_ARGMAX, 1, &x.t, NULL, &y.t),
            "y: expected i32 or i64 for an index, got f32");
    ops_reduce_options o = {.size = sizeof(ops_reduce_options), .prologue_input_count = 1};
    invalid(ops_reduce(test_context, OPS_REDUCE_SUM, 1, &x.t, &o, &y.t), "options.prologue");
    ops_tensor part;
    ok(ops_tensor_slice(&x.t, 1, 0, 1, 1, &part));
    invalid(ops_reduce(test_context, OPS_REDUCE_SUM, 1, &x.t, NULL, &part), "y: expected memory");
    invalid(ops_softmax(test_context, 2, &x.t, &x.t), "axis: expected -");
    invalid(ops_softmax(test_context, 0, &i.t, &i.t), "got x i32[4, 6]");
    invalid(ops_log_softmax(test_context, 0, &x.t, &y.t), "and y f32[4]");
    box_expect(&y, y.host, 0, 0);
    boxes_free(&x, &i, &y, &z, &flag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_axis),
        cmocka_unit_test(every_type),
        cmocka_unit_test(long_axes),
        cmocka_unit_test(special_values),
        cmocka_unit_test(prologue_and_epilogue),
        cmocka_unit_test(softmax),
        cmocka_unit_test(rows_in_shared_memory),
        cmocka_unit_test(softmax_of_single_elements),
        cmocka_unit_test(softmax_in_place_has_the_same_bits),
        cmocka_unit_test(zero_sizes),
        cmocka_unit_test(groups_of_any_size),
        cmocka_unit_test(repeatable),
        cmocka_unit_test(bad_arguments),
    };
    return RUN_ON_ALL(tests);
}
