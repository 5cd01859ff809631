/* Fixture of the tests of matrix products: operands in boxes, in every layout, and the same product
 * in double on the host. Included by test_ops_gemm*.c. */
#ifndef TESTS_UNIT_OPS_GEMM_FIXTURE_H
#define TESTS_UNIT_OPS_GEMM_FIXTURE_H

#include "ops_fixture.h"

/* One product; strides as the boxes have them. */
typedef struct product {
    int64_t batch, m, n, k;
    box a, b, c;
    ops_gemm_options options;
} product;

enum { PLAIN, TURNED, PADDED, EVERY_OTHER, BACKWARDS, LAYOUTS };

/* Strides of a batch of rows x columns in one of the layouts. */
static inline void lay_out(int layout, int64_t rows, int64_t columns, int64_t strides[3])
{
    const int64_t all[LAYOUTS][3] = {{rows * columns, columns, 1},
                                     {rows * columns, 1, rows},
                                     {rows * (columns + 3) + 8, columns + 3, 1},
                                     {rows * columns * 4, columns * 4, 2},
                                     {-(rows * columns), -columns, 1}};
    memcpy(strides, all[layout], 3 * sizeof(int64_t));
}

static inline box make_matrix(hal_type type, int64_t batch, int64_t rows, int64_t columns,
                              int layout)
{
    int64_t strides[3], shape[3] = {batch, rows, columns};
    lay_out(layout, rows, columns, strides);
    return batch > 1 ? box_make(type, 3, shape, strides, -1, 1)
                     : box_make(type, 2, shape + 1, strides + 1, -1, 1);
}

/* After the device's info was changed, on which cached plans depend. */
static inline void forget_products(void)
{
    free(test_context->plans);
    test_context->plans = NULL;
}

static inline product make(hal_type type, hal_type type_c, int64_t batch, int64_t m, int64_t n,
                           int64_t k, int layout_a, int layout_b, int layout_c)
{
    product p = {.batch = batch, .m = m, .n = n, .k = k, .options = OPS_GEMM_OPTIONS_DEFAULT};
    forget_products();
    p.a = make_matrix(type, batch, m, k, layout_a);
    p.b = make_matrix(type, batch, k, n, layout_b);
    p.c = make_matrix(type_c, batch, m, n, layout_c);
    return p;
}

/* Boxes start unaligned; this moves them to where vectors can be loaded. */
static inline void align(product *p)
{
    p->a.t.offset += 3;
    p->b.t.offset += 3;
    p->c.t.offset += 3;
}

static inline void release(product *p)
{
    box_free(&p->a);
    box_free(&p->b);
    box_free(&p->c);
}

static inline double element(const box *b, int64_t batch, int64_t row, int64_t column)
{
    uint32_t rank = b->t.rank;
    int64_t at = b->t.offset + row * b->t.stride[rank - 2] + column * b->t.stride[rank - 1];
    int64_t batches = rank == 3 ? b->t.shape[0] : 1;
    return b->host[at + (batches > 1 ? batch * b->t.stride[0] : 0)];
}

/* The epilogue on the host; null: none. */
typedef double (*epilogue)(double value, int64_t row, int64_t column, int64_t batch,
                           const box *inputs);

/* Runs the product and compares every element of C's buffer. Whole numbers must be exact; others
 * keep the bound of ops_gemm. */
static inline void try_product(product *p, int exact, epilogue after, const box *inputs)
{
    hal_type type = p->a.t.type;
    const ops_tensor *b = p->options.prepared ? NULL : &p->b.t;
    ok(ops_gemm(test_context, &p->options, &p->a.t, b, &p->c.t));
    double *want = box_want(&p->c), worst = 0;
    double unit = type == HAL_TYPE_F64 ? 0x1p-53 : 0x1p-24;
    double gamma = (double)(p->k + 3) * unit;
    const int64_t shape[3] = {p->batch, p->m, p->n};
    uint32_t rank = p->c.t.rank;
    for (int64_t i = 0; i < p->batch * p->m * p->n; i++) {
        int64_t batch = i / (p->m * p->n), row = i / p->n % p->m, column = i % p->n;
        double sum = 0, size = 0;
        for (int64_t k = 0; k < p->k; k++) {
            double term = element(&p->a, batch, row, k) * element(&p->b, batch, k, column);
            sum += term;
            size += fabs(term);
        }
        int64_t place = place_of(&p->c.t, rank, shape + 3 - rank, i);
        sum *= p->options.alpha;
        size *= fabs(p->options.alpha);
        if (p->options.beta != 0) {
            sum += p->options.beta * p->c.host[place];
            size += fabs(p->options.beta * p->c.host[place]);
        }
        want[place] = after ? after(sum, row, column, batch, inputs) : sum;
        if (exact) {
            want[place] = in_type(p->c.t.type, want[place]);
        }
        worst = size > worst ? size : worst;
    }
    box_expect(&p->c, want, exact ? 0 : 1, exact ? 0 : 4 * gamma * worst);
    free(want);
}

static inline void truncate_to_small(product *p)
{
    box *all[3] = {&p->a, &p->b, &p->c};
    for (int i = 0; i < 3; i++) {
        for (int64_t j = 0; j < all[i]->count; j++) {
            all[i]->host[j] = (double)(next_random() % 7) - 3;
        }
        box_upload(all[i]);
    }
}

/* Small whole numbers in A and B of one batch; NAN in all of C, and around A and B. */
static inline void surround_with_nan(product *p)
{
    truncate_to_small(p);
    box *all[3] = {&p->a, &p->b, &p->c};
    for (int i = 0; i < 3; i++) {
        char *inside = calloc((size_t)all[i]->count, 1);
        for (int64_t j = 0; j < ops_tensor_get_element_count(&all[i]->t); j++) {
            inside[place_of(&all[i]->t, 2, all[i]->t.shape, j)] = 1;
        }
        for (int64_t j = 0; j < all[i]->count; j++) {
            if (i == 2 || !inside[j]) {
                all[i]->host[j] = (double)NAN;
            }
        }
        free(inside);
        box_upload(all[i]);
    }
}

/* max(value + bias[column], 0) + row - 2 batch + residual */
static inline double host_epilogue(double value, int64_t row, int64_t column, int64_t batch,
                                   const box *inputs)
{
    double sum = value + inputs[0].host[inputs[0].t.offset + column];
    const box *r = &inputs[1];
    return (sum > 0 ? sum : 0) + (double)row - 2 * (double)batch + element(r, batch, row, column);
}

static inline ops_expression *make_epilogue(void)
{
    hal_ir_builder *b;
    ops_expression *e;
    ok(hal_ir_builder_create_fragment("bias_relu", &b));
    hal_ir_value value = hal_ir_input(b, 0, HAL_TYPE_F32), row = hal_ir_input(b, 1, HAL_TYPE_U32);
    hal_ir_input(b, 2, HAL_TYPE_U32);
    hal_ir_value batch = hal_ir_input(b, 3, HAL_TYPE_U32);
    hal_ir_value bias = hal_ir_input(b, 4, HAL_TYPE_F32), r = hal_ir_input(b, 5, HAL_TYPE_F32);
    value = ops_unary_value(b, OPS_RELU, hal_ir_add(b, value, bias));
    value = hal_ir_add(b, value, hal_ir_cast(b, HAL_TYPE_F32, row));
    batch = hal_ir_mul(b, hal_ir_cast(b, HAL_TYPE_F32, batch), hal_ir_f32(b, 2));
    hal_ir_output(b, 0, hal_ir_add(b, hal_ir_sub(b, value, batch), r));
    ok(ops_expression_create(b, &e));
    return e;
}

/* A product to try; zero means F32, one batch, PLAIN and an alpha of one (-0.0 is an alpha of
 * 0). */
typedef struct problem {
    hal_type type, type_c;
    int64_t batch, m, n, k;
    int layout_a, layout_b, layout_c;
    int is_aligned; /* matrices begin where vectors can */
    int is_rounded; /* random numbers, within the bound; else small whole ones, exact */
    double alpha, beta;
    ops_gemm_impl impl;
} problem;

static inline product problem_make(const problem *q)
{
    const hal_type type = q->type ? q->type : (hal_type)HAL_TYPE_F32;
    product p = make(type, q->type_c ? q->type_c : type, q->batch ? q->batch : 1, q->m, q->n, q->k,
                     q->layout_a, q->layout_b, q->layout_c);
    p.options.alpha = q->alpha != 0 || signbit(q->alpha) ? q->alpha : 1;
    p.options.beta = q->beta;
    p.options.impl = q->impl;
    if (q->is_aligned) {
        align(&p);
    }
    if (!q->is_rounded) {
        truncate_to_small(&p);
    }
    return p;
}

static inline void try_problem(problem q)
{
    product p = problem_make(&q);
    try_product(&p, !q.is_rounded, NULL, NULL);
    release(&p);
}

/* The same with make_epilogue, whose residual has a layout; a negative one: the residual is C. */
static inline void try_epilogue(problem q, int residual_layout)
{
    ops_expression *e = make_epilogue();
    product p = problem_make(&q);
    box inputs[2] = {
        box_make(HAL_TYPE_F32, 1, &p.n, NULL, -9, 9),
        residual_layout < 0 ? p.c : make_matrix(HAL_TYPE_F32, p.batch, p.m, p.n, residual_layout)};
    box_truncate(&inputs[0]);
    if (residual_layout >= 0) {
        for (int64_t i = 0; i < inputs[1].count; i++) {
            inputs[1].host[i] = (double)(next_random() % 9) - 4;
        }
        box_upload(&inputs[1]);
    }
    const ops_tensor tensors[2] = {inputs[0].t, inputs[1].t};
    p.options.epilogue = e;
    p.options.inputs = tensors;
    p.options.input_count = 2;
    try_product(&p, 1, host_epilogue, inputs);
    box_free(&inputs[0]);
    if (residual_layout >= 0) {
        box_free(&inputs[1]);
    }
    release(&p);
    ops_expression_destroy(e);
}

static const hal_type type_pairs[7][2] = {
    {HAL_TYPE_F16, HAL_TYPE_F16},  {HAL_TYPE_F16, HAL_TYPE_F32}, {HAL_TYPE_BF16, HAL_TYPE_BF16},
    {HAL_TYPE_BF16, HAL_TYPE_F32}, {HAL_TYPE_F32, HAL_TYPE_F32}, {HAL_TYPE_F64, HAL_TYPE_F64},
    {HAL_TYPE_F64, HAL_TYPE_F32}};

#endif
