/* Matrix products and calls that multiply them. */
#include "suites/gemm/product.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECKS 200 /* elements of each product that are checked */

/* An element of C, and the sum of the sizes of its terms. */
typedef struct gemm_check {
    int64_t at, matrix, i, j;
    long double sum, size;
} gemm_check;

static int64_t draw_length(uint64_t *state, int64_t largest)
{
    const double unit = (double)(bench_word(state) >> 11) * 0x1p-53;
    const int64_t length = (int64_t)exp2(unit * log2((double)largest + 1));
    return length < largest ? length : largest;
}

void gemm_product_draw(uint64_t *state, int64_t largest, gemm_product *product)
{
    product->batch = 1;
    product->m = draw_length(state, largest);
    product->n = draw_length(state, largest);
    product->k = draw_length(state, largest);
    const uint64_t layout = (bench_word(state) >> 20) % 3;
    product->transpose_a = layout == 1;
    product->transpose_b = layout == 2;
}

void gemm_product_name(const gemm_product *product, char *name, size_t bytes)
{
    const bool a = product->transpose_a, b = product->transpose_b;
    char count[24] = "";
    if (product->batch > 1) {
        snprintf(count, sizeof count, "%lldx", (long long)product->batch);
    }
    snprintf(name, bytes, "gemm %s%lldx%lldx%lld%s", count, (long long)product->m,
             (long long)product->n, (long long)product->k,
             a ? (b ? " tt" : " tn") : (b ? " nt" : ""));
}

/* The matrices, rows and columns of A, B and C as they are stored. */
static void stored_shapes(const gemm_product *p, int64_t (*shapes)[3])
{
    shapes[0][0] = shapes[1][0] = shapes[2][0] = p->batch;
    shapes[0][1] = p->transpose_a ? p->k : p->m;
    shapes[0][2] = p->transpose_a ? p->m : p->k;
    shapes[1][1] = p->transpose_b ? p->n : p->k;
    shapes[1][2] = p->transpose_b ? p->k : p->n;
    shapes[2][1] = p->m;
    shapes[2][2] = p->n;
}

/* Elements spread over C, including the last one. */
static bool checks_make(gemm_product *p)
{
    const int64_t count = p->batch * p->m * p->n;
    p->checks = malloc(CHECKS * sizeof *p->checks);
    for (int64_t s = 0; s < CHECKS && p->checks != NULL; s++) {
        const int64_t at = s == CHECKS - 1 ? count - 1 : (s * 7919 * (count / CHECKS + 1)) % count;
        const int64_t matrix = at / (p->m * p->n), i = at / p->n % p->m, j = at % p->n;
        long double sum = 0.0L, size = 0.0L;
        for (int64_t k = 0; k < p->k; k++) {
            const int64_t in_a =
                matrix * p->m * p->k + (p->transpose_a ? k * p->m + i : i * p->k + k);
            const int64_t in_b =
                matrix * p->k * p->n + (p->transpose_b ? j * p->k + k : k * p->n + j);
            const long double term = (long double)bench_value(p->type, p->a, (size_t)in_a) *
                                     (long double)bench_value(p->type, p->b, (size_t)in_b);
            sum += term;
            size += fabsl(term);
        }
        p->checks[s] = (gemm_check){.at = at, .matrix = matrix, .i = i, .j = j, sum, size};
    }
    return p->checks != NULL;
}

bool gemm_product_fill(gemm_product *product)
{
    int64_t shapes[4][3] = {[3] = {1, 1, product->n}};
    void **hosts[4] = {&product->a, &product->b, &product->c, &product->bias};
    stored_shapes(product, shapes);
    for (int i = 0; i < 4; i++) {
        const size_t count = (size_t)(shapes[i][0] * shapes[i][1] * shapes[i][2]);
        const hal_type type = i == 2 ? gemm_product_type_c(product) : product->type;
        *hosts[i] = aligned_alloc(64, (count * hal_type_size(type) + 63) / 64 * 64);
        if (!*hosts[i]) {
            return bench_fail(product->bench, "out of memory");
        }
        bench_random(type, *hosts[i], count, (uint64_t)i + 1);
    }
    return checks_make(product) || bench_fail(product->bench, "out of memory");
}

/* gelu(value + bias), to be the operands' expression, in the form that arrays give it. */
static bool expression_make(const gemm_product *product, gemm_operands *operands)
{
    const hal_type type = product->type == HAL_TYPE_F64 ? HAL_TYPE_F64 : HAL_TYPE_F32;
    hal_ir_builder *b = NULL;
    if (!bench_ok(product->bench, hal_ir_builder_create_fragment("bias_gelu", &b), "a builder")) {
        return false;
    }
    const hal_ir_value value = hal_ir_input(b, 0, type);
    for (uint32_t i = 1; i < 4; i++) {
        hal_ir_input(b, i, HAL_TYPE_U32);
    }
    const hal_ir_value bias = hal_ir_input(b, 4, type);
    hal_ir_output(b, 0,
                  ops_unary_rounded(b, product->bench->info, OPS_GELU, product->type,
                                    hal_ir_add(b, value, bias)));
    return bench_ok(product->bench, ops_expression_create(b, &operands->bias_gelu),
                    "an expression");
}

static bool epilogue_make(const gemm_product *product, ops_context *ops, gemm_operands *operands)
{
    const int64_t shape[1] = {product->n};
    return bench_ok(
               product->bench,
               ops_tensor_from_host(ops, product->type, 1, shape, product->bias, &operands->bias),
               "a bias on the device") &&
           expression_make(product, operands);
}

hal_type gemm_product_type_c(const gemm_product *product)
{
    return hal_type_size(product->type) == 1 ? hal_type_of_value(product->type) : product->type;
}

size_t gemm_product_c_bytes(const gemm_product *product)
{
    return (size_t)(product->batch * product->m * product->n) *
           hal_type_size(gemm_product_type_c(product));
}

void gemm_product_free(gemm_product *product)
{
    free(product->a);
    free(product->b);
    free(product->c);
    free(product->bias);
    free(product->checks);
}

/* The view takes over the tensor's reference. */
static bool transpose(bench_state *bench, uint32_t rank, ops_tensor *tensor)
{
    ops_tensor view;
    if (!bench_ok(bench, ops_tensor_transpose(tensor, rank - 2, rank - 1, &view),
                  "a transposed matrix")) {
        return false;
    }
    *tensor = view;
    return true;
}

bool gemm_operands_make(const gemm_product *product, ops_context *ops, gemm_operands *operands)
{
    const void *hosts[3] = {product->a, product->b, product->c};
    ops_tensor *made[3] = {&operands->a, &operands->b, &operands->c};
    int64_t shapes[3][3];
    const uint32_t rank = product->batch > 1 ? 3 : 2;
    stored_shapes(product, shapes);
    *operands = (gemm_operands){0};
    for (int i = 0; i < 3; i++) {
        const hal_type type = i == 2 ? gemm_product_type_c(product) : product->type;
        if (!bench_ok(
                product->bench,
                ops_tensor_from_host(ops, type, rank, shapes[i] + 3 - rank, hosts[i], made[i]),
                "a matrix on the device")) {
            return false;
        }
    }
    const bool has_epilogue = product->bench->options.epilogue && hal_type_size(product->type) > 1;
    return (!has_epilogue || epilogue_make(product, ops, operands)) &&
           (!product->transpose_a || transpose(product->bench, rank, &operands->a)) &&
           (!product->transpose_b || transpose(product->bench, rank, &operands->b));
}

void gemm_operands_release(gemm_operands *operands)
{
    ops_tensor_release(&operands->a);
    ops_tensor_release(&operands->b);
    ops_tensor_release(&operands->c);
    ops_tensor_release(&operands->bias);
    ops_expression_destroy(operands->bias_gelu);
}

static ops_gemm_options call_options(const gemm_call *call)
{
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    options.precision = call->precision;
    options.levels = call->levels;
    options.impl = call->impl;
    options.config = call->config[0] ? call->config : NULL;
    if (call->has_epilogue) {
        options.epilogue = call->operands->bias_gelu;
        options.inputs = &call->operands->bias;
        options.input_count = 1;
    }
    return options;
}

static hal_status call_multiply(const gemm_call *call)
{
    const ops_gemm_options options = call_options(call);
    return ops_gemm(call->ops, &options, &call->operands->a, &call->operands->b,
                    &call->operands->c);
}

bool gemm_call_set_config(gemm_call *call, uint32_t rank)
{
    call->config[0] = '\0';
    const ops_gemm_options options = call_options(call);
    return ops_gemm_get_config(call->ops, &options, &call->operands->a, &call->operands->b,
                               &call->operands->c, rank, sizeof call->config,
                               call->config) == HAL_OK;
}

void gemm_call_describe(const gemm_call *call, size_t bytes, char *text)
{
    const ops_gemm_options options = call_options(call);
    if (ops_gemm_describe(call->ops, &options, &call->operands->a, &call->operands->b,
                          &call->operands->c, bytes, text) != HAL_OK) {
        text[0] = '\0';
    }
}

void gemm_call_run(void *call, int calls)
{
    gemm_call *run = call;
    bench_state *bench = run->product->bench;
    for (int i = 0; i < calls && !run->failed; i++) {
        run->failed = !bench_ok(bench, call_multiply(run), "ops_gemm");
    }
    bench_ok(bench, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
}

/* Multiplies once, with the wait. */
static hal_status call_multiply_once(const gemm_call *call, double *ms)
{
    const double start = measure_now();
    hal_status status = call_multiply(call);
    if (status == HAL_OK) {
        status = hal_queue_wait(call->queue, HAL_WAIT_FOREVER);
    }
    *ms = 1e3 * (measure_now() - start);
    return status;
}

hal_status gemm_call_try(const gemm_call *call, double times_ms[2])
{
    const gemm_product *p = call->product;
    double unused[2], *times = times_ms ? times_ms : unused;
    /* The operands may still be on their way to the device. */
    hal_status status = hal_queue_wait(call->queue, HAL_WAIT_FOREVER);
    for (int i = 0; i < (times_ms ? 2 : 1) && !status; i++) {
        status = call_multiply_once(call, &times[i]);
    }
    return status ? status
                  : ops_tensor_read(call->ops, &call->operands->c, gemm_product_c_bytes(p), p->c);
}

static double unit_of(hal_type type)
{
    switch (type) {
    case HAL_TYPE_F64:
        return 0x1p-53;
    case HAL_TYPE_F16:
        return 0x1p-11;
    case HAL_TYPE_BF16:
        return 0x1p-8;
    default:
        return 0x1p-24;
    }
}

/* What levels of Strassen's algorithm add to the bound of an element, see ops_gemm: A and B are
 * below 1. */
static double levels_bound(const gemm_product *p, uint32_t levels, double u)
{
    const double q = ceil(ldexp((double)p->k, -(int)levels));
    return levels > 0 ? (pow(12.0, levels) * (q * q + 5.0 * q) - 5.0 * (double)p->k) * u : 0.0;
}

/* gelu(sum + bias[column]); *bound, of the error of the sum, becomes that of the result. The slope
 * of gelu is at most 1.13. */
static long double epilogue_apply(const gemm_product *p, int64_t column, long double sum, double u,
                                  double *bound)
{
    const double x = (double)sum + bench_value(p->type, p->bias, (size_t)column);
    *bound = 1.13 * *bound + 32.0 * u * fabs(x);
    return 0.5 * x * (1.0 + erf(x * sqrt(0.5)));
}

/* |c' - c| <= gamma(K) (|A||B|) + u |c| for the product's checks; the
 * fast class may round one operand to 11 bits and truncate the other, and drops bits of sums of
 * F8_E4M3. Of integers c' = c. */
static bool product_check(const gemm_product *p, const char *who, bool is_peer, uint32_t levels,
                          bool has_epilogue)
{
    const bool fast = p->is_fast && p->type == HAL_TYPE_F32;
    const double u = p->type == HAL_TYPE_F64 ? 0x1p-53 : 0x1p-24, out = unit_of(p->type);
    const double dropped = p->is_fast && p->type == HAL_TYPE_F8_E4M3 ? 0x1p-5 : 0.0;
    const double operand = (fast ? 0x1.8p-10 : dropped) + (is_peer ? out : 0.0);
    const double gamma = (double)p->k * u / (1.0 - (double)p->k * u);
    for (const gemm_check *e = p->checks; e < p->checks + CHECKS; e++) {
        const double value = bench_value(gemm_product_type_c(p), p->c, (size_t)e->at);
        double bound = (gamma + operand) * (double)e->size + levels_bound(p, levels, u);
        const long double want = has_epilogue ? epilogue_apply(p, e->j, e->sum, u, &bound) : e->sum;
        bound = hal_type_is_integer(p->type) ? 0.0 : bound + 1.001 * out * fabs((double)want);
        if (!(fabs(value - (double)want) <= bound)) {
            char name[64];
            gemm_product_name(p, name, sizeof name);
            return bench_fail(p->bench, "%s by %s: C[%lld][%lld][%lld] is %.9g instead of %.9Lg",
                              name, who, (long long)e->matrix, (long long)e->i, (long long)e->j,
                              value, want);
        }
    }
    return true;
}

bool gemm_call_check(const gemm_call *call, const char *who)
{
    const bool is_normwise = call->precision == HAL_GEMM_NORMWISE;
    const uint32_t levels = call->levels ? call->levels : HAL_GEMM_MAX_LEVELS;
    return product_check(call->product, who, false, is_normwise ? levels : 0, call->has_epilogue);
}

bool gemm_peer_check(const gemm_product *product, const char *who)
{
    return product_check(product, who, true, 0, false);
}
