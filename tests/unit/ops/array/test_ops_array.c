/* Arrays: lifetimes and scopes, fused and dropped operations, the same bits with and without fusion
 * in random programs, views, errors, graphs. */
#include "ops_arrays.h"
#include "ops_fixture.h"

static ops_array_statistics statistics(void)
{
    return statistics_of(test_context);
}

static ops_array *ramp(hal_type type, int64_t rows, int64_t columns, double low, double high)
{
    const int64_t shape[2] = {rows, columns};
    ops_array *x =
        ops_array_uniform(test_context, type, 2, shape, (ops_random_key){3, 4}, low, high);
    return made(x);
}

/* ---- Lifetimes ---- */

static void scopes_release(void **state)
{
    const uint64_t before = statistics().arrays;
    ops_array *x = ramp(HAL_TYPE_F32, 3, 5, -1, 1);
    ok(ops_scope_begin(test_context));
    ops_array *inner, *kept;
    ok(ops_scope_begin(test_context));
    inner = ops_neg(x);
    kept = ops_array_keep(ops_abs(inner));
    assert_int_equal(statistics().arrays, before + 3);
    ok(ops_scope_end(test_context));
    assert_int_equal(statistics().arrays, before + 3); /* the kept array needs the negation */
    float got[15];
    ok(ops_array_read(kept, sizeof got, got));
    assert_int_equal(statistics().arrays, before + 2);
    ok(ops_scope_end(test_context));
    release_all(kept, x);
    assert_int_equal(statistics().arrays, before);
    refused(ops_scope_end(test_context), HAL_ERROR_INVALID_STATE, "expected an open scope");
}

static void references_count(void **state)
{
    const uint64_t before = statistics().arrays;
    ops_array *x = ramp(HAL_TYPE_F32, 2, 2, -1, 1);
    assert_ptr_equal(ops_array_retain(x), x);
    ops_array_release(x);
    assert_int_equal(statistics().arrays, before + 1);
    ok(ops_scope_begin(test_context));
    ops_array *y = ops_neg(x);
    ops_array_release(y); /* before the scope's end */
    assert_int_equal(statistics().arrays, before + 1);
    y = ops_array_retain(ops_neg(x));
    ok(ops_scope_end(test_context));
    assert_int_equal(statistics().arrays, before + 2);
    release_all(y, x);
    ops_array_release(NULL);
    assert_null(ops_array_keep(NULL));
    assert_int_equal(statistics().arrays, before);
}

/* ---- Fusion ---- */

static void expression_is_one_kernel(void **state)
{
    ops_array *a = ramp(HAL_TYPE_F32, 7, 33, -1, 1), *b = ramp(HAL_TYPE_F32, 1, 33, -2, 2);
    ops_array *c = ramp(HAL_TYPE_F32, 7, 1, -2, 1);
    const ops_array_statistics before = statistics();
    ok(ops_scope_begin(test_context));
    ops_array *y = ops_array_keep(ops_relu(ops_add(ops_mul(a, b), c)));
    ok(ops_scope_end(test_context));
    assert_int_equal(statistics().kernels, before.kernels);
    float got[7 * 33], x[7 * 33], row[33], column[7];
    ok(ops_array_read(y, sizeof got, got));
    assert_int_equal(statistics().kernels, before.kernels + 1);
    assert_int_equal(statistics().evaluated, before.evaluated + 3);
    assert_int_equal(statistics().dropped, before.dropped);
    assert_int_equal(statistics().arrays, before.arrays + 1);
    ok(ops_array_read(a, sizeof x, x));
    ok(ops_array_read(b, sizeof row, row));
    ok(ops_array_read(c, sizeof column, column));
    for (int i = 0; i < 7 * 33; i++) {
        float product = x[i] * row[i % 33], sum = product + column[i / 33];
        assert_true(got[i] == (sum > 0 ? sum : 0));
    }
    release_all(a, b, c, y);
}

static void unread_work_is_not_run(void **state)
{
    ops_array *a = ramp(HAL_TYPE_F32, 8, 8, -1, 1);
    const ops_array_statistics before = statistics();
    ok(ops_scope_begin(test_context));
    ops_array *product = ops_matmul(ops_exp(a), ops_sin(a));
    made(ops_reduce_sum(ops_array_softmax(1, product), 0));
    ops_array *y = ops_array_keep(ops_cos(a));
    ok(ops_scope_end(test_context));
    float got[64];
    ok(ops_array_read(y, sizeof got, got));
    assert_int_equal(statistics().evaluated, before.evaluated + 1);
    assert_int_equal(statistics().dropped, before.dropped + 5);
    release_all(y, a);
}

/* An array with a reference of the caller is an output of the same kernel; one with a reference of
 * a scope alone is not, the first time. */
static void held_values_are_outputs(void **state)
{
    ops_array *a = ramp(HAL_TYPE_F32, 4, 9, -1, 1);
    ops_array_statistics before = statistics();
    ops_array *x = ops_exp(a), *y = ops_neg(x);
    float got[2][36];
    ok(ops_array_read(y, sizeof got[0], got[0]));
    ok(ops_array_read(x, sizeof got[1], got[1]));
    assert_int_equal(statistics().kernels, before.kernels + 1);
    for (int i = 0; i < 36; i++) {
        assert_true(got[0][i] == -got[1][i]);
    }
    release_all(x, y);

    ok(ops_scope_begin(test_context));
    before = statistics();
    x = ops_exp(a);
    ok(ops_array_read(ops_neg(x), sizeof got[0], got[0]));
    assert_int_equal(x->state, OPS_NODE_DEFERRED);
    ok(ops_array_read(ops_abs(x), sizeof got[0], got[0]));
    assert_int_equal(x->state, OPS_NODE_MEMORY);
    ok(ops_scope_end(test_context));
    assert_int_equal(statistics().kernels, before.kernels + 2);
    assert_int_equal(statistics().evaluated, before.evaluated + 4);
    ops_array_release(a);
}

static void arrays_asked_for_together_share_a_kernel(void **state)
{
    ops_array *a = ramp(HAL_TYPE_F32, 4, 9, -1, 1);
    ops_array *all[4] = {ops_exp(a), ops_neg(a), ops_gt(a, a), ops_reduce_sum(a, 0)};
    const ops_array_statistics before = statistics();
    ok(ops_array_evaluate(all, 4));
    assert_int_equal(statistics().kernels, before.kernels + 2);
    assert_int_equal(statistics().evaluated, before.evaluated + 4);
    arrays_release(all, 4);
    ops_array_release(a);
}

static void reductions_and_products_take_pointwise_work(void **state)
{
    ops_array *a = ramp(HAL_TYPE_F32, 16, 24, -1, 1), *w = ramp(HAL_TYPE_F32, 24, 8, -1, 1);
    ops_array *bias = ramp(HAL_TYPE_F32, 1, 8, -1, 1);
    ops_array_statistics before = statistics();
    ok(ops_scope_begin(test_context));
    ops_array *y = ops_array_keep(ops_tanh(ops_add(ops_matmul(a, w), bias)));
    ops_array *z = ops_array_keep(ops_sqrt(ops_reduce_sum(ops_square(a), 1)));
    ok(ops_scope_end(test_context));
    ok(ops_array_evaluate(&y, 1));
    assert_int_equal(statistics().kernels, before.kernels + 1);
    ok(ops_array_evaluate(&z, 1));
    assert_int_equal(statistics().kernels, before.kernels + 2);
    assert_int_equal(statistics().evaluated, before.evaluated + 6);
    release_all(y, z, a, w, bias);
}

/* A state that is multiplied and added to in every step: each step is one kernel. */
static void recurrent_steps_are_one_kernel(void **state)
{
    ops_array *h = ramp(HAL_TYPE_F32, 2, 8, -1, 1), *w = ramp(HAL_TYPE_F32, 8, 8, -0.3, 0.3);
    ops_array *x = ramp(HAL_TYPE_F32, 2, 8, -1, 1);
    const ops_array_statistics before = statistics();
    for (int i = 0; i < 40; i++) {
        ok(ops_scope_begin(test_context));
        ops_array *bent = ops_tanh(ops_add(ops_matmul(h, w), x));
        ops_array *next = ops_array_keep(made(ops_add(h, ops_mul(ops_sub(bent, h), x))));
        ok(ops_scope_end(test_context));
        ops_array_release(h);
        h = next;
    }
    ok(ops_array_evaluate(&h, 1));
    assert_int_equal(statistics().kernels, before.kernels + 40);
    assert_int_equal(statistics().evaluated, before.evaluated + 40 * 6);
    release_all(h, w, x);
}

/* Ten thousand operations in a loop: kernels of 64, and flat counts. */
static void long_chains_are_cut(void **state)
{
    static const ops_unary_function functions[] = {OPS_NEG, OPS_SIN, OPS_ABS, OPS_SQUARE};
    const int64_t shape[1] = {100};
    ops_array *x = ops_array_full(test_context, HAL_TYPE_F32, 1, shape, 0.75);
    const ops_array_statistics before = statistics();
    float expected = 0.75f, got[100];
    for (int i = 0; i < 10000; i++) {
        ops_array *t = made(ops_array_unary(functions[i % 3], x));
        ops_array_release(x);
        x = t;
        assert_true(statistics().arrays <= before.arrays + OPS_CLUSTER_OPERATIONS + 2);
    }
    ok(ops_array_read(x, sizeof got, got));
    assert_int_equal(statistics().recorded, before.recorded + 10000);
    assert_int_equal(statistics().evaluated, before.evaluated + 10000);
    const uint32_t most = OPS_CLUSTER_OPERATIONS;
    assert_int_equal(statistics().kernels, before.kernels + (10000 + most - 1) / most);
    for (int i = 0; i < 10000; i++) {
        expected = i % 3 == 0 ? -expected : i % 3 == 1 ? (float)sin(expected) : fabsf(expected);
    }
    for (int i = 0; i < 100; i++) {
        assert_true(fabs(got[i] - expected) < 1e-4 * fabs(expected));
    }
    ops_array_release(x);
}

/* ---- Random programs: the same bits, however they are fused ---- */

enum { POOL = 12, STEPS = 150, SIDE = 6, MOST_BYTES = SIDE * SIDE * SIDE * 8 };

typedef struct trace {
    uint32_t count;
    uint32_t sizes[STEPS + POOL];
    uint8_t bytes[STEPS + POOL][MOST_BYTES];
} trace;

static ops_array *random_leaf(hal_type type)
{
    const int64_t shapes[5][3] = {{SIDE, SIDE}, {1, SIDE}, {SIDE, 1}, {SIDE}, {SIDE, SIDE}};
    const uint32_t ranks[5] = {2, 2, 2, 1, 2};
    uint32_t shape = next_random() % 5;
    if (next_random() % 8 == 0) {
        return made(ops_array_scalar(test_context, type, (double)(next_random() % 5) - 1.5));
    }
    double values[SIDE * SIDE];
    uint8_t bytes[SIDE * SIDE * 8];
    int64_t count = shapes[shape][0] * (ranks[shape] > 1 ? shapes[shape][1] : 1);
    for (int64_t i = 0; i < count; i++) {
        values[i] = hal_type_is_float(type) ? between(-2, 2) : (double)(next_random() % 200) - 100;
        encode(type, values[i], bytes + (size_t)i * hal_type_size(type));
    }
    return made(ops_array_from_host(test_context, type, ranks[shape], shapes[shape], bytes));
}

static ops_array *random_unary(ops_array *x)
{
    static const ops_unary_function floats[] = {OPS_NEG,  OPS_ABS,     OPS_SQUARE,    OPS_RELU,
                                                OPS_EXP,  OPS_SIGMOID, OPS_TANH,      OPS_SIN,
                                                OPS_GELU, OPS_FLOOR,   OPS_RECIPROCAL};
    static const ops_unary_function others[] = {OPS_NEG, OPS_ABS, OPS_SQUARE, OPS_RELU};
    hal_type type = x->view.type;
    return type == HAL_TYPE_BOOL     ? ops_array_unary(OPS_NOT, x)
           : hal_type_is_float(type) ? ops_array_unary(floats[next_random() % 11], x)
                                     : ops_array_unary(others[next_random() % 4], x);
}

static ops_array *random_binary(ops_array *x, ops_array *y)
{
    static const ops_binary_function functions[] = {OPS_ADD,     OPS_SUB,     OPS_MUL, OPS_DIV,
                                                    OPS_MINIMUM, OPS_MAXIMUM, OPS_LT,  OPS_EQ};
    if (x->view.type != y->view.type) {
        y = made(ops_array_cast(x->view.type, y));
    }
    return x->view.type == HAL_TYPE_BOOL
               ? ops_array_binary(next_random() % 2 ? OPS_AND : OPS_XOR, x, y)
               : ops_array_binary(functions[next_random() % 8], x, y);
}

static ops_array *random_view(ops_array *x)
{
    uint32_t axis = x->view.rank ? next_random() % x->view.rank : 0;
    const int64_t flat[1] = {-1}, wide[3] = {2, SIDE, SIDE};
    switch (next_random() % 4) {
    case 0:
        return x->view.rank ? ops_array_slice(x, axis, 0, (x->view.shape[axis] + 1) / 2, 1) : x;
    case 1:
        return x->view.rank > 1 ? ops_array_transpose(x, 0, 1) : x;
    case 2:
        return ops_array_reshape(x, 1, flat);
    default:
        return x->view.rank == 2 && (x->view.shape[0] == SIDE || x->view.shape[0] == 1) &&
                       (x->view.shape[1] == SIDE || x->view.shape[1] == 1)
                   ? ops_array_broadcast(x, 3, wide)
                   : x;
    }
}

/* Fits two arrays to each other: the second may be the first where their shapes do not go. */
static ops_array *partner(ops_array *x, ops_array *y)
{
    for (uint32_t i = 1; i <= x->view.rank && i <= y->view.rank; i++) {
        int64_t a = x->view.shape[x->view.rank - i], b = y->view.shape[y->view.rank - i];
        if (a != b && a != 1 && b != 1) {
            return x;
        }
    }
    return ops_tensor_get_element_count(&x->view) * ops_tensor_get_element_count(&y->view) >
                   SIDE * SIDE * SIDE
               ? x
               : y;
}

static ops_array *random_operation(ops_array *x, ops_array *y)
{
    hal_type type = x->view.type;
    uint32_t axis = x->view.rank ? next_random() % x->view.rank : 0;
    switch (next_random() % 12) {
    case 0:
    case 1:
    case 2:
        return random_unary(x);
    case 3:
    case 4:
    case 5:
        return random_binary(x, partner(x, y));
    case 6:
        y = partner(x, y);
        return ops_array_where(type == HAL_TYPE_BOOL ? x : ops_ge(x, ops_neg(x)), x,
                               made(ops_array_cast(type, y)));
    case 7:
        return random_view(x);
    case 8:
        return ops_array_cast(next_random() % 2 ? HAL_TYPE_F32 : HAL_TYPE_I32, x);
    case 9:
        return x->view.rank && type != HAL_TYPE_BOOL && x->view.shape[axis]
                   ? ops_array_reduce(
                         (ops_reduction)(next_random() % 2 ? OPS_REDUCE_MAX : OPS_REDUCE_SUM), axis,
                         next_random() % 2 == 0, x)
                   : random_unary(x);
    case 10:
        return x->view.rank && hal_type_is_float(type) && x->view.shape[axis]
                   ? ops_array_softmax(axis, x)
                   : random_unary(x);
    default:
        return x->view.rank == 2 && hal_type_is_float(type) && y->view.rank == 2 &&
                       y->view.type == type && y->view.shape[0] == x->view.shape[1]
                   ? ops_matmul(x, y)
                   : random_unary(x);
    }
}

static void note_values(trace *t, ops_array *x)
{
    uint32_t bytes =
        (uint32_t)((uint64_t)ops_array_get_element_count(x) * hal_type_size(ops_array_get_type(x)));
    assert_true(bytes <= MOST_BYTES && t->count < STEPS + POOL);
    ok(ops_array_read(x, bytes, t->bytes[t->count]));
    t->sizes[t->count++] = bytes;
}

static void run_program(uint64_t seed, hal_type type, int fusion, trace *t)
{
    ops_array *pool[POOL];
    test_seed = seed;
    t->count = 0;
    ops_context_set_fusion(test_context, fusion);
    for (int i = 0; i < POOL; i++) {
        pool[i] = random_leaf(i % 4 == 3 ? (hal_type)HAL_TYPE_F32 : type);
    }
    for (int step = 0; step < STEPS; step++) {
        uint32_t at = next_random() % POOL;
        ops_array *x = pool[next_random() % POOL], *y = pool[next_random() % POOL];
        ok(ops_scope_begin(test_context));
        ops_array *z = made(random_operation(x, y));
        for (uint32_t more = next_random() % 4; more > 0; more--) {
            z = made(random_operation(z, next_random() % 3 ? y : z));
        }
        if (ops_array_get_element_count(z) <= SIDE * SIDE * SIDE) {
            ops_array_retain(z);
            ops_array_release(pool[at]);
            pool[at] = z;
        }
        if (next_random() % 16 == 0) {
            note_values(t, pool[at]);
        }
        ok(ops_scope_end(test_context));
    }
    for (int i = 0; i < POOL; i++) {
        note_values(t, pool[i]);
        ops_array_release(pool[i]);
    }
    ops_context_set_fusion(test_context, 1);
}

static void fused_and_unfused_give_the_same_bits(void **state)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16,  HAL_TYPE_I32, HAL_TYPE_F64,
                                     HAL_TYPE_I8,  HAL_TYPE_BF16, HAL_TYPE_U8};
    static trace fused, unfused;
    const uint64_t before = statistics().arrays;
    for (uint64_t seed = 1; seed <= 21; seed++) {
        hal_type type = types[seed % 7];
        run_program(seed, type, 1, &fused);
        run_program(seed, type, 0, &unfused);
        assert_int_equal(fused.count, unfused.count);
        for (uint32_t i = 0; i < fused.count; i++) {
            assert_int_equal(fused.sizes[i], unfused.sizes[i]);
            if (memcmp(fused.bytes[i], unfused.bytes[i], fused.sizes[i]) != 0) {
                fail_msg("seed %llu, %s: value %u of %u differs", (unsigned long long)seed,
                         hal_type_name(type), i, fused.count);
            }
        }
        assert_int_equal(statistics().arrays, before);
        assert_int_equal(statistics().deferred, 0);
    }
}

/* Shapes large enough for every kind of reduction. */
static void large_sums_have_the_same_bits(void **state)
{
    static const int64_t shapes[][3] = {{1, 512, 512}, {64, 300, 64}, {3, 2000, 7}, {65, 65, 65}};
    for (int i = 0; i < 4; i++) {
        const int64_t m = shapes[i][0], k = shapes[i][1], n = shapes[i][2];
        ops_array *a = ramp(HAL_TYPE_F32, m, k, -1, 1), *b = ramp(HAL_TYPE_F32, k, n, -1, 1);
        ops_array *c = ramp(HAL_TYPE_F32, 1, n, -1, 1);
        uint64_t bytes = (uint64_t)(m * n + m + k) * 4;
        float *got[2] = {malloc(bytes), malloc(bytes)};
        for (int fusion = 0; fusion < 2; fusion++) {
            ops_context_set_fusion(test_context, fusion);
            ok(ops_scope_begin(test_context));
            ops_array *y = ops_array_keep(ops_tanh(ops_add(ops_matmul(a, b), c)));
            ops_array *rows = ops_array_keep(ops_neg(ops_reduce_sum(ops_square(a), 1)));
            ops_array *columns = ops_array_keep(ops_reduce_mean(ops_mul(b, c), 1));
            ok(ops_scope_end(test_context));
            ok(ops_array_read(y, (uint64_t)(m * n) * 4, got[fusion]));
            ok(ops_array_read(rows, (uint64_t)m * 4, got[fusion] + m * n));
            ok(ops_array_read(columns, (uint64_t)k * 4, got[fusion] + m * n + m));
            release_all(y, rows, columns);
        }
        assert_memory_equal(got[0], got[1], bytes);
        free(got[0]);
        free(got[1]);
        release_all(a, b, c);
    }
    ops_context_set_fusion(test_context, 1);
}

/* Every number of a narrow type, through functions that need no rounding, a value that is stored
 * and used, and one that is only stored. */
static void narrow_floats_have_the_same_bits(void **state)
{
    enum { COUNT = 65536, RESULTS = 3 };
    static uint16_t bits[COUNT], got[2][RESULTS][COUNT];
    static const hal_type types[] = {HAL_TYPE_F16, HAL_TYPE_BF16};
    for (int t = 0; t < 2; t++) {
        const uint16_t infinity = t == 0 ? 0x7c00 : 0x7f80;
        for (int i = 0; i < COUNT; i++) { /* NaN may have any payload: numbers instead of them */
            bits[i] = (uint16_t)((i & 0x7fff) > infinity ? i & 0x83ff : i);
        }
        const int64_t shape[1] = {COUNT};
        ops_array *x = made(ops_array_from_host(test_context, types[t], 1, shape, bits));
        for (int fusion = 0; fusion < 2; fusion++) {
            ops_context_set_fusion(test_context, fusion);
            ok(ops_scope_begin(test_context));
            ops_array *whole = ops_array_unary(OPS_FLOOR, ops_mul_scalar(x, 0.3));
            ops_array *both = ops_array_keep(ops_maximum(ops_neg(whole), ops_abs(x)));
            ops_array *sum = ops_array_keep(ops_add(both, ops_relu(ops_square(x))));
            ops_array *last = ops_array_keep(ops_array_where(ops_lt(sum, x), ops_square(x), sum));
            ok(ops_scope_end(test_context));
            ok(ops_array_read(both, sizeof bits, got[fusion][0]));
            ok(ops_array_read(sum, sizeof bits, got[fusion][1]));
            ok(ops_array_read(last, sizeof bits, got[fusion][2]));
            release_all(both, sum, last);
        }
        for (int i = 0; i < RESULTS * COUNT; i++) {
            const uint16_t single = got[0][i / COUNT][i % COUNT];
            const uint16_t fused = got[1][i / COUNT][i % COUNT];
            const int nans = (single & 0x7fff) > infinity && (fused & 0x7fff) > infinity;
            if (single != fused && !nans) {
                fail_msg("%s 0x%04x, result %d: 0x%04x and 0x%04x", hal_type_name(types[t]),
                         (unsigned)bits[i % COUNT], i / COUNT, (unsigned)single, (unsigned)fused);
            }
        }
        ops_array_release(x);
    }
    ops_context_set_fusion(test_context, 1);
}

/* While compilation is slow, operations run in single kernels until that has cost as much. */
static void missing_kernels_are_deferred(void **state)
{
    ops_context *usual = test_context; /* has compiled kernels already */
    ok(ops_context_create(test_queue, &test_context));
    test_set_device(test_context, usual->info);
    test_tune(test_context)->index32_limit = usual->tuning->index32_limit;
    ops_array *x = ramp(HAL_TYPE_F32, 9, 13, -1, 1);
    float single[9 * 13], fused[9 * 13];
    uint32_t turns = 0;
    for (uint32_t plan = 0; plan < test_context->tuning->compile.eager_plans; plan++) {
        test_context->compile_policy->recent_compile_ns = test_context->tuning->compile.fast_ns;
        ok(ops_scope_begin(test_context));
        ops_array *y = ops_neg(ops_neg(x));
        for (uint32_t i = 0; i < plan; i++) {
            y = ops_sin(y);
        }
        const uint64_t before = statistics().kernels;
        ok(ops_array_read(y, sizeof single, single));
        assert_int_equal(statistics().kernels - before, 1);
        ok(ops_scope_end(test_context));
    }
    for (uint64_t kernels = 3; kernels == 3; turns++) {
        /* Two kernels more cost 2 us or so. */
        test_context->compile_policy->recent_compile_ns = test_context->tuning->compile.fast_ns;
        memcpy(single, fused, sizeof single);
        ok(ops_scope_begin(test_context));
        ops_array *y = ops_array_keep(ops_neg(ops_cos(ops_cos(x))));
        ok(ops_scope_end(test_context));
        const ops_array_statistics before = statistics();
        ok(ops_array_read(y, sizeof fused, fused));
        kernels = statistics().kernels - before.kernels;
        assert_true(kernels == 3 || kernels == 1);
        ops_array_release(y);
    }
    assert_true(turns > 1500 && turns < 2100);
    assert_memory_equal(single, fused, sizeof fused);

    test_context->compile_policy->recent_compile_ns = UINT64_C(1) << 50;
    ok(ops_scope_begin(test_context));
    ops_array *y = ops_tanh(
        ops_add(ops_matmul(x, ops_array_transpose(x, 0, 1)), ops_reduce_sum(ops_square(x), 1)));
    ops_array *z = ops_sqrt(ops_array_reduce(OPS_REDUCE_SUM, 1, 1, ops_square(ops_neg(x))));
    float sums[9], product[81];
    ops_array_statistics before = statistics();
    ok(ops_array_read(y, sizeof product, product));
    ok(ops_array_read(z, sizeof sums, sums));
    /* The plugin's own product needs no compilation and keeps its epilogue. */
    assert_int_equal(statistics().kernels - before.kernels, 2 + 1 + 4);
    ok(ops_scope_end(test_context));
    assert_int_equal(statistics().deferred, 0);
    ops_array_release(x);
    ops_context_destroy(test_context);
    test_context = usual;
}

/* Kernels that a chain of `functions` sines on x takes; it is another plan for each number. */
static uint64_t kernels_of_sines(ops_array *x, uint32_t functions)
{
    float numbers[9 * 13];
    const uint64_t before = statistics().kernels;
    ok(ops_scope_begin(test_context));
    ops_array *y = x;
    for (uint32_t i = 0; i < functions; i++) {
        y = ops_sin(y);
    }
    ok(ops_array_read(y, sizeof numbers, numbers));
    ok(ops_scope_end(test_context));
    return statistics().kernels - before;
}

/* While single kernels compute a plan, its kernel is compiled in the background, for the price
 * of one processor of eight: sooner than the call would compile it. */
static void deferred_plans_are_compiled_in_the_background(void **state)
{
    ops_context *usual = test_context;
    ok(ops_context_create(test_queue, &test_context));
    ops_compile_policy *policy = test_context->compile_policy;
    ops_array *x = ramp(HAL_TYPE_F32, 9, 13, -1, 1);
    test_tune(test_context)->compile.fast_ns = 0;
    policy->eager_plans = 0;
    policy->processors = 8;
    policy->compilers = 0; /* none of them is idle */
    for (uint32_t turn = 1; turn <= 4; turn++) {
        policy->recent_compile_ns = 80000; /* the plans cost 8 and 2 us more in single kernels */
        const uint64_t nine = kernels_of_sines(x, 9);
        policy->recent_compile_ns = 80000;
        const uint64_t three = kernels_of_sines(x, 3);
        /* Requested in the second turn, where one processor compiles at once. */
        assert_true(nine == (turn < 3 ? 9 : 1) || (turn == 2 && nine == 1));
        assert_int_equal(three, 3);
        for (uint32_t i = 0; i < test_context->ahead.count; i++) {
            ok(hal_kernel_wait(test_context->ahead.kernels[i].kernel));
        }
    }
    ops_array_release(x);
    ops_context_destroy(test_context);
    test_context = usual;
}

/* A product whose epilogue is a kernel after it is no exception. */
static void products_apart_are_compiled_in_the_background(void **state)
{
    ops_context *usual = test_context;
    ok(ops_context_create(test_queue, &test_context));
    ops_compile_policy *policy = test_context->compile_policy;
    ops_array *x = ramp(HAL_TYPE_F32, 6, 8, -1, 1);
    ops_array *wide = made(ops_array_cast(HAL_TYPE_F64, x));
    ok(ops_array_evaluate(&wide, 1));
    test_tune(test_context)->compile.fast_ns = 0;
    policy->eager_plans = 0;
    policy->processors = 8;
    uint64_t last = 0;
    for (uint32_t turn = 1; turn <= 12; turn++) {
        double got[36];
        policy->recent_compile_ns = 80000;
        ok(ops_scope_begin(test_context));
        const uint64_t before = statistics().kernels;
        ops_array *y = ops_array_matmul(wide, ops_array_transpose(wide, 0, 1), HAL_GEMM_EXACT);
        ok(ops_array_read(ops_exp(ops_neg(ops_cos(ops_sin(y)))), sizeof got, got));
        last = statistics().kernels - before;
        ok(ops_scope_end(test_context));
        for (uint32_t i = 0; i < test_context->ahead.count; i++) {
            ok(hal_kernel_wait(test_context->ahead.kernels[i].kernel));
        }
    }
    assert_int_equal(last, 1);
    release_all(x, wide);
    ops_context_destroy(test_context);
    test_context = usual;
}

/* ---- Errors ---- */

static void wrong_calls_are_refused(void **state)
{
    const uint64_t before = statistics().arrays;
    ops_array *x = ramp(HAL_TYPE_F32, 3, 4, -1, 1), *y = ramp(HAL_TYPE_F32, 5, 4, -1, 1);
    ops_array *i = made(ops_array_cast(HAL_TYPE_I32, x));
    const int32_t axes[2] = {0, 0};
    nothing(ops_add(x, y), "f32[3, 4] and f32[5, 4]");
    nothing(ops_relu(ops_add(ops_mul(x, y), x)), "f32[3, 4] and f32[5, 4]");
    nothing(ops_add(x, i), "expected f32, the type of x, for add, got i32");
    nothing(ops_exp(i), "exp does not take i32");
    nothing(ops_array_unary((ops_unary_function)1000, x), "got 1000");
    nothing(ops_array_where(x, x, x), "got f32, f32 and f32");
    nothing(ops_matmul(x, y), "got f32[3, 4] and f32[5, 4]");
    nothing(ops_matmul(i, i), "of one type of numbers");
    nothing(ops_array_matmul(x, x, 77), "got 77");
    nothing(ops_reduce_sum(x, 2), "expected -2 to 1 for f32[3, 4], got 2");
    nothing(ops_array_softmax(0, i), "expected a float type, got i32");
    nothing(ops_array_reduce(OPS_REDUCE_MEAN, 0, 0, i), "expected a float type");
    nothing(ops_array_cast((hal_type)99, x), "expected a hal_type, got 99");
    nothing(ops_array_permute(x, axes), "axes[1]: expected each axis");
    nothing(ops_array_slice(x, 0, 2, 5, 1), "expected elements of axis 0 of f32[3, 4]");
    nothing(ops_array_from_host(test_context, HAL_TYPE_F32, 2, NULL, NULL), "shape: expected");
    invalid(ops_array_read(x, 5, NULL), "expected 48");
    invalid(ops_array_read(NULL, 5, NULL), "expected 48");
    invalid(ops_array_evaluate(&x, 1) ? HAL_ERROR_INTERNAL : ops_array_evaluate(NULL, 1),
            "arrays: expected");

    ops_context *other;
    ok(ops_context_create(test_queue, &other));
    ops_array *foreign = made(ops_array_scalar(other, HAL_TYPE_F32, 1));
    nothing(ops_add(x, foreign), "another context");
    ops_context_destroy(other); /* with an array that was not released */
    release_all(x, y, i);
    assert_int_equal(statistics().arrays, before);
}

/* ---- Graphs ---- */

static ops_array *step(ops_array *h, ops_array *w, ops_array *x)
{
    ok(ops_scope_begin(test_context));
    ops_array *y = ops_array_keep(made(ops_tanh(ops_add(ops_matmul(h, w), x))));
    ok(ops_scope_end(test_context));
    return y;
}

static void graphs_run_a_step_again(void **state)
{
    ops_array *h = ramp(HAL_TYPE_F32, 5, 12, -1, 1), *w = ramp(HAL_TYPE_F32, 12, 12, -1, 1);
    ops_array *xs[6], *next;
    ops_graph *graph;
    float want[60], got[60];
    for (int i = 0; i < 6; i++) {
        const int64_t shape[2] = {5, 12};
        xs[i] = made(ops_array_uniform(test_context, HAL_TYPE_F32, 2, shape,
                                       (ops_random_key){9, (uint64_t)i}, -1, 1));
    }
    ops_array *late = made(ops_neg(xs[0])); /* to be computed before the recording */
    ok(ops_graph_begin(test_context));
    assert_int_equal(late->state, OPS_NODE_MEMORY);
    next = step(h, w, xs[0]);
    nothing(ops_array_from_host(test_context, HAL_TYPE_F32, 1, &(int64_t){1}, want), "graph");
    refused(ops_array_read(next, sizeof got, got), HAL_ERROR_INVALID_STATE, "recorded");
    ok(ops_graph_end(test_context, (ops_array *[]){h, xs[0]}, 2, &next, 1, &graph));
    nothing(ops_neg(next), "ops_graph_launch");
    ops_array_release(next);

    ops_array *a = ops_array_retain(h), *b = ops_array_retain(h);
    for (int i = 0; i < 6; i++) {
        ops_array *t = step(a, w, xs[i]);
        ops_array_release(a);
        a = t;
        ok(ops_graph_launch(graph, (ops_array *[]){b, xs[i]}, 2, &t, 1));
        ops_array_release(b);
        b = t;
    }
    ok(ops_array_read(a, sizeof want, want));
    ok(ops_array_read(b, sizeof got, got));
    assert_memory_equal(want, got, sizeof got);
    invalid(ops_graph_launch(graph, (ops_array *[]){w, xs[0]}, 2, &next, 1),
            "expected f32[5, 12], as recorded");
    invalid(ops_graph_launch(graph, &b, 1, &next, 1), "got 1 and 1");
    ops_graph_destroy(graph);
    release_all(a, b, late);
    arrays_release(xs, 6);
    release_all(h, w);
    assert_int_equal(statistics().arrays, 0);
    assert_int_equal(statistics().deferred, 0);
}

static void recordings_that_fail_are_dropped(void **state)
{
    ops_array *x = ramp(HAL_TYPE_F32, 2, 3, -1, 1), *unused = ramp(HAL_TYPE_F32, 2, 3, -1, 1);
    ops_graph *graph = NULL;
    refused(ops_graph_end(test_context, NULL, 0, &x, 1, &graph), HAL_ERROR_INVALID_STATE,
            "ops_graph_begin");
    ok(ops_graph_begin(test_context));
    refused(ops_graph_begin(test_context), HAL_ERROR_INVALID_STATE, "graph");
    ops_array *y = made(ops_neg(x));
    invalid(ops_graph_end(test_context, &unused, 1, &y, 1, &graph), "");
    ops_array_release(y);
    ok(ops_graph_begin(test_context));
    invalid(ops_graph_end(test_context, NULL, 0, &x, 1, &graph), "got one from before it");
    float got[6];
    ok(ops_array_read(x, sizeof got, got));
    release_all(x, unused);
    assert_null(graph);
}

static hal_status rehearse(ops_context *context, void *user)
{
    (void)context;
    ops_array *y = ops_sigmoid(ops_exp(user));
    hal_status status = ops_array_evaluate(&y, 1);
    ops_array_release(y);
    return status;
}

/* Promise 10: ops_prepare compiles ahead. */
static void prepared_programs_plan_nothing(void **state)
{
    ops_array *x = ramp(HAL_TYPE_F32, 31, 3, -1, 1);
    float before[93], after[93];
    ok(ops_array_read(x, sizeof before, before));
    ok(ops_scope_begin(test_context));
    ok(ops_prepare(test_context, rehearse, x));
    ok(ops_scope_end(test_context));
    const ops_array_statistics was = statistics();
    ok(ops_scope_begin(test_context));
    ops_array *y = ops_array_keep(ops_sigmoid(ops_exp(x)));
    ok(ops_scope_end(test_context));
    ok(ops_array_read(y, sizeof after, after));
    assert_int_equal(statistics().compiled, was.compiled);
    assert_true(fabs(after[5] - 1 / (1 + exp(-exp(before[5])))) < 1e-6);
    release_all(y, x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scopes_release),
        cmocka_unit_test(references_count),
        cmocka_unit_test(expression_is_one_kernel),
        cmocka_unit_test(unread_work_is_not_run),
        cmocka_unit_test(held_values_are_outputs),
        cmocka_unit_test(arrays_asked_for_together_share_a_kernel),
        cmocka_unit_test(reductions_and_products_take_pointwise_work),
        cmocka_unit_test(recurrent_steps_are_one_kernel),
        cmocka_unit_test(long_chains_are_cut),
        cmocka_unit_test(fused_and_unfused_give_the_same_bits),
        cmocka_unit_test(large_sums_have_the_same_bits),
        cmocka_unit_test(narrow_floats_have_the_same_bits),
        cmocka_unit_test(missing_kernels_are_deferred),
        cmocka_unit_test(deferred_plans_are_compiled_in_the_background),
        cmocka_unit_test(products_apart_are_compiled_in_the_background),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(graphs_run_a_step_again),
        cmocka_unit_test(recordings_that_fail_are_dropped),
        cmocka_unit_test(prepared_programs_plan_nothing),
    };
    return RUN_ON_ALL(tests);
}
