/* Matrix products of the class NORMWISE: the table of the algorithm, levels, peeled edges,
 * epilogues, the bound and the choice of levels. */
#include "gemm/normwise/bilinear.h"
#include "gemm/normwise/normwise.h"
#include "ops_gemm_fixture.h"

/* Brent's equations: the sum over products of u v w is 1 where the blocks of A, B and C belong
 * together, else 0. */
TEST(the_table_multiplies_matrices)
{
    const ops_bilinear *t = &ops_strassen;
    for (uint32_t i = 0; i < (uint32_t)t->m * t->k; i++) {
        for (uint32_t j = 0; j < (uint32_t)t->k * t->n; j++) {
            for (uint32_t l = 0; l < (uint32_t)t->m * t->n; l++) {
                int sum = 0;
                for (uint32_t r = 0; r < t->rank; r++) {
                    sum += t->u[r][i] * t->v[r][j] * t->w[l][r];
                }
                const int belongs =
                    i % t->k == j / t->n && i / t->k == l / t->n && j % t->n == l % t->n;
                assert_int_equal(sum, belongs);
            }
        }
    }
}

/* Small whole numbers are exact with any algorithm: levels within a plugin's kernel, if it has one,
 * and levels as kernels of their own. */
static void try_levels(uint32_t levels, problem q)
{
    static const ops_gemm_impl impls[] = {OPS_GEMM_ANY, OPS_GEMM_PORTABLE};
    for (int i = 0; i < 2; i++) {
        product p = problem_make(&q);
        p.options.levels = levels;
        p.options.impl = impls[i];
        p.options.precision = HAL_GEMM_NORMWISE;
        try_product(&p, 1, NULL, NULL);
        release(&p);
    }
}

TEST(levels_are_exact_on_whole_numbers)
{
    for (uint32_t levels = 1; levels <= OPS_NORMWISE_MAX_LEVELS; levels++) {
        try_levels(levels, (problem){.m = 32, .n = 48, .k = 64});
        try_levels(levels, (problem){.type = HAL_TYPE_F64, .m = 32, .n = 16, .k = 20});
        try_levels(levels, (problem){.m = 4, .n = 4, .k = 4});
        try_levels(levels, (problem){.m = 32, .n = 48, .k = 64, .alpha = -2, .beta = 1});
    }
}

/* A product that does not allow levels has none; other classes ignore options.levels. */
TEST(levels_are_for_one_batch_of_f32_or_f64)
{
    try_levels(2, (problem){.batch = 3, .m = 16, .n = 20, .k = 24});
    try_levels(1, (problem){.type = HAL_TYPE_BF16, .m = 16, .n = 20, .k = 24});
    product p = problem_make(&(problem){.m = 16, .n = 16, .k = 16});
    p.options.levels = 2;
    try_product(&p, 1, NULL, NULL);
    p.options.precision = HAL_GEMM_NORMWISE;
    p.options.impl = OPS_GEMM_PORTABLE;
    p.options.max_workspace = 16;
    try_product(&p, 1, NULL, NULL);
    release(&p);
}

/* Blocks without elements, or of a single one. */
TEST(levels_of_the_smallest_products)
{
    for (int bits = 0; bits < 27; bits++) {
        const problem q = {.m = 1 + bits % 3, .n = 1 + bits / 3 % 3, .k = 1 + bits / 9, .beta = 1};
        try_levels(1, q);
        try_levels(2, q);
    }
}

TEST(the_description_says_who_chose_the_levels)
{
    char line[512];
    product p = problem_make(&(problem){.m = 16, .n = 16, .k = 16});
    p.options.precision = HAL_GEMM_NORMWISE;
    p.options.levels = 2;
    for (int i = 0; i < 2; i++) {
        p.options.impl = i ? OPS_GEMM_PORTABLE : OPS_GEMM_ANY;
        ok(ops_gemm_describe(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t, sizeof line, line));
        assert_non_null(strstr(line, "normwise, 2 levels of strassen"));
        assert_non_null(strstr(line, "as options.levels says"));
        assert_null(strstr(line, "cost model"));
    }
    p.options.max_workspace = 16;
    ok(ops_gemm_describe(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t, sizeof line, line));
    assert_non_null(strstr(line, "no levels of strassen: type, batch, lengths or max_workspace"));
    release(&p);
    p = problem_make(&(problem){.m = 3, .n = 16, .k = 16, .impl = OPS_GEMM_PORTABLE});
    p.options.precision = HAL_GEMM_NORMWISE;
    for (p.options.levels = 1; p.options.levels <= 2; p.options.levels++) {
        ok(ops_gemm_describe(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t, sizeof line, line));
        assert_int_equal(strstr(line, "no levels of strassen") != NULL, p.options.levels == 2);
    }
    release(&p);
}

TEST(odd_lengths_are_peeled)
{
    for (uint32_t levels = 1; levels <= OPS_NORMWISE_MAX_LEVELS; levels++) {
        for (int bits = 1; bits < 8; bits++) {
            for (int beta = 0; beta < 3; beta++) {
                try_levels(levels, (problem){.m = 24 + (bits & 1) * 3,
                                             .n = 28 + (bits >> 1 & 1),
                                             .k = 20 + (bits >> 2),
                                             .beta = beta * 0.5});
            }
        }
    }
}

TEST(every_layout_is_read_and_written)
{
    for (int layout = 0; layout < LAYOUTS; layout++) {
        try_levels(1, (problem){.m = 18, .n = 21, .k = 23, .layout_a = layout});
        try_levels(2, (problem){.m = 18, .n = 21, .k = 23, .layout_b = layout, .beta = 1});
        try_levels(2, (problem){.m = 18, .n = 21, .k = 23, .layout_c = layout, .beta = 3});
    }
}

/* max(value + bias[column] + residual, 0) */
static double host_bias_relu(double value, int64_t row, int64_t column, int64_t batch,
                             const box *inputs)
{
    const double sum =
        value + inputs[0].host[inputs[0].t.offset + column] + element(&inputs[1], 0, row, column);
    return sum > 0 ? sum : 0;
}

static ops_expression *make_bias_relu(void)
{
    hal_ir_builder *b;
    ops_expression *e;
    ok(hal_ir_builder_create_fragment("bias_residual_relu", &b));
    hal_ir_value value = hal_ir_input(b, 0, HAL_TYPE_F32);
    for (uint32_t i = 1; i < 4; i++) {
        hal_ir_input(b, i, HAL_TYPE_U32);
    }
    for (uint32_t i = 4; i < 6; i++) {
        value = hal_ir_add(b, value, hal_ir_input(b, i, HAL_TYPE_F32));
    }
    hal_ir_output(b, 0, ops_unary_value(b, OPS_RELU, value));
    ok(ops_expression_create(b, &e));
    return e;
}

/* A bias along the columns and a residual, in whole parts and peeled edges. */
TEST(the_epilogue_sees_every_element_once)
{
    const int64_t shapes[3][3] = {{32, 32, 32}, {33, 34, 36}, {31, 29, 27}};
    ops_expression *e = make_bias_relu();
    for (int i = 0; i < 6; i++) {
        problem q = {.m = shapes[i / 2][0], .n = shapes[i / 2][1], .k = shapes[i / 2][2]};
        product p = problem_make(&q);
        box inputs[2] = {box_make(HAL_TYPE_F32, 1, &p.n, NULL, -9, 9),
                         make_matrix(HAL_TYPE_F32, 1, p.m, p.n, i % LAYOUTS)};
        box_truncate(&inputs[0]);
        box_truncate(&inputs[1]);
        const ops_tensor tensors[2] = {inputs[0].t, inputs[1].t};
        p.options.epilogue = e;
        p.options.inputs = tensors;
        p.options.input_count = 2;
        p.options.precision = HAL_GEMM_NORMWISE;
        assert_int_equal(ops_normwise_takes(test_context->info, &p.options), 1);
        p.options.levels = 1 + (uint32_t)i % 2;
        try_product(&p, 1, host_bias_relu, inputs);
        box_free(&inputs[0]);
        box_free(&inputs[1]);
        release(&p);
    }
    ops_expression_destroy(e);
}

/* An epilogue that reads the row is computed by an ordinary product. */
TEST(indices_are_declined)
{
    ops_expression *e = make_epilogue();
    const ops_gemm_options options = {.size = sizeof options, .alpha = 1, .epilogue = e};
    assert_int_equal(ops_normwise_takes(test_context->info, &options), 0);
    problem q = {.m = 32, .n = 32, .k = 32};
    product p = problem_make(&q);
    box inputs[2] = {box_make(HAL_TYPE_F32, 1, &p.n, NULL, -9, 9),
                     make_matrix(HAL_TYPE_F32, 1, p.m, p.n, PLAIN)};
    box_truncate(&inputs[0]);
    box_truncate(&inputs[1]);
    const ops_tensor tensors[2] = {inputs[0].t, inputs[1].t};
    p.options.epilogue = e;
    p.options.inputs = tensors;
    p.options.input_count = 2;
    p.options.precision = HAL_GEMM_NORMWISE;
    p.options.levels = 1;
    try_product(&p, 1, host_epilogue, inputs);
    box_free(&inputs[0]);
    box_free(&inputs[1]);
    release(&p);
    ops_expression_destroy(e);
}

/* The largest error over u max|A| max|B| in the rows from `first` on. */
static double error_of(product *p, uint32_t levels, int64_t first)
{
    double worst = 0, max_a = 0, max_b = 0;
    p->options.levels = levels;
    p->options.precision = levels ? HAL_GEMM_NORMWISE : HAL_GEMM_STRICT;
    ok(ops_gemm(test_context, &p->options, &p->a.t, &p->b.t, &p->c.t));
    float *c = malloc((size_t)(p->m * p->n) * sizeof *c);
    ok(ops_tensor_read(test_context, &p->c.t, (uint64_t)(p->m * p->n) * sizeof *c, c));
    for (int64_t i = 0; i < p->m * p->n; i++) {
        double sum = 0;
        for (int64_t k = 0; k < p->k; k++) {
            const double x = element(&p->a, 0, i / p->n, k), y = element(&p->b, 0, k, i % p->n);
            sum += x * y;
            max_a = fmax(max_a, fabs(x));
            max_b = fmax(max_b, fabs(y));
        }
        worst = i / p->n >= first ? fmax(worst, fabs((double)c[i] - sum)) : worst;
    }
    free(c);
    return worst / (0x1p-24 * max_a * max_b);
}

/* Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, (23.14). */
static double bound_of(int64_t k, uint32_t levels)
{
    const double last = (double)k / (1 << levels);
    return pow(12, levels) * (last * last + 5 * last) - 5 * (double)k;
}

/* One block of each operand is 2^20 times larger than the others, so that what belongs to the small
 * blocks of C drowns: the bound of the norm holds, and that of the elements does not. */
static void scale_first_block(box *b, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows * columns; i++) {
        const int64_t row = i / columns, column = i % columns;
        if (row < rows / 2 && column < columns / 2) {
            b->host[b->t.offset + row * b->t.stride[0] + column] *= 0x1p20;
        }
    }
    box_upload(b);
}

TEST(the_norm_of_the_error_is_bounded)
{
    for (int is_scaled = 0; is_scaled < 2; is_scaled++) {
        for (uint32_t levels = 1; levels <= OPS_NORMWISE_MAX_LEVELS; levels++) {
            product p = make(HAL_TYPE_F32, HAL_TYPE_F32, 1, 96, 80, 128, PLAIN, PLAIN, PLAIN);
            if (is_scaled) {
                scale_first_block(&p.a, p.m, p.k);
                scale_first_block(&p.b, p.k, p.n);
            }
            const double error = error_of(&p, levels, 0);
            assert_true(error > 0);
            assert_true(error <= bound_of(p.k, levels));
            release(&p);
        }
    }
}

/* The first rows of A are 2^20 times larger than the others: their rounding errors reach the other
 * rows of C, where an ordinary product keeps the bound of each element. */
TEST(small_elements_lose_digits)
{
    double errors[2];
    product p = make(HAL_TYPE_F32, HAL_TYPE_F32, 1, 64, 64, 64, PLAIN, PLAIN, PLAIN);
    scale_first_block(&p.a, p.m, p.k);
    for (uint32_t levels = 0; levels < 2; levels++) {
        errors[levels] = error_of(&p, levels, p.m / 2);
    }
    assert_true(errors[1] > 1000 * errors[0]);
    release(&p);
}

static uint32_t levels_apart(const hal_device_info *info, const ops_normwise_shape *shape)
{
    const ops_gemm_options options = {.alpha = 1, .precision = HAL_GEMM_NORMWISE};
    return ops_normwise_choose(info, &options, shape).apart;
}

TEST(few_elements_are_not_divided)
{
    hal_device_info info = *test_context->info;
    for (int kind = 0; kind < 2; kind++) {
        info.kind = kind ? HAL_DEVICE_DISCRETE : HAL_DEVICE_CPU;
        ops_normwise_shape s = {.type = HAL_TYPE_F32, .batch = 1, .m = 512, .n = 512, .k = 512};
        assert_int_equal(levels_apart(&info, &s), 0);
        s.m = s.n = s.k = 16384;
        assert_int_equal(levels_apart(&info, &s), 2);
        s.max_workspace = ops_normwise_workspace(&s, 1);
        assert_int_equal(levels_apart(&info, &s), 1);
        s.max_workspace--;
        assert_int_equal(levels_apart(&info, &s), 0);
        s.max_workspace = 0;
        s.m = 64;
        assert_int_equal(levels_apart(&info, &s), 0);
        s.m = 16384;
        s.batch = 2;
        assert_int_equal(levels_apart(&info, &s), 0);
        s.batch = 1;
        s.type = HAL_TYPE_BF16;
        assert_int_equal(levels_apart(&info, &s), 0);
    }
}

/* Processors: units are threads. Lengths next to a power of two choose as it does. */
TEST(levels_within_a_kernel_depend_on_lengths_and_threads)
{
    static const struct {
        uint32_t units;
        int64_t m, n, k;
        uint32_t levels;
    } cases[] = {{1, 1024, 1024, 1024, 0}, {1, 1536, 1536, 1536, 1},    {1, 2047, 2047, 2047, 1},
                 {1, 2048, 2048, 2048, 2}, {1, 4096, 4096, 4096, 2},    {2, 1536, 1536, 1536, 0},
                 {2, 2047, 2047, 2047, 1}, {2, 2049, 2049, 2049, 1},    {2, 2440, 2658, 1494, 1},
                 {2, 2440, 2658, 900, 0},  {2, 3072, 3072, 3072, 2},    {2, 4097, 4097, 4097, 2},
                 {4, 4096, 4096, 4096, 0}, {16, 8192, 8192, 8192, 1},   {16, 2048, 2048, 2048, 0},
                 {2, 8192, 8192, 128, 0},  {16, 16384, 16384, 16384, 2}};
    hal_device_info info = *test_context->info;
    info.kind = HAL_DEVICE_CPU;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        info.compute_units = cases[i].units;
        for (int type = 0; type < 2; type++) {
            const ops_normwise_shape s = {.type = type ? HAL_TYPE_F64 : HAL_TYPE_F32,
                                          .batch = 1,
                                          .m = cases[i].m,
                                          .n = cases[i].n,
                                          .k = cases[i].k};
            assert_int_equal(ops_normwise_choose_inside(&info, &s), cases[i].levels);
        }
    }
}

TEST(the_workspace_of_huge_products_is_saturated)
{
    const ops_normwise_shape s = {
        .type = HAL_TYPE_F64, .batch = 1, .m = INT32_MAX, .n = INT32_MAX, .k = INT32_MAX};
    assert_true(ops_normwise_workspace(&s, 1) == UINT64_MAX);
    assert_true(ops_normwise_workspace(&s, 2) == UINT64_MAX);
}

TEST(a_large_product_chooses_levels_by_itself)
{
    problem q = {.m = 1030, .n = 1029, .k = 1031};
    product p = problem_make(&q);
    p.options.precision = HAL_GEMM_NORMWISE;
    ok(ops_gemm(test_context, &p.options, &p.a.t, &p.b.t, &p.c.t));
    float *c = malloc((size_t)(p.m * p.n) * sizeof *c);
    ok(ops_tensor_read(test_context, &p.c.t, (uint64_t)(p.m * p.n) * sizeof *c, c));
    for (int64_t i = 0; i < p.m * p.n; i += 1009) { /* exact: small whole numbers */
        double sum = 0;
        for (int64_t k = 0; k < p.k; k++) {
            sum += element(&p.a, 0, i / p.n, k) * element(&p.b, 0, k, i % p.n);
        }
        assert_float_equal(c[i], sum, 0);
    }
    free(c);
    release(&p);
}

UNIT_MAIN(open_context, close_context)
