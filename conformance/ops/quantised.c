/* quantised.c: products of quantised weights, and the weights by themselves. The reference decodes
 * formats from their definitions, in long double; the bounds are those of ops/quantised.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "case/cases.h"
#include "ops/fixture.h"

typedef struct quantised_case {
    ops_quantised_format format;
    hal_type type, scale_type, zero_type; /* of A and C; of the others: NONE: no zeros */
    int m, n, k, block, batch;            /* block 0: one scale for each column */
    operand_layout layout;                /* of the values */
    double zero, alpha, beta;
    int has_bias;
    uint32_t precision;
    ops_gemm_impl impl; /* PORTABLE: few rows by the kernel that decodes, also on processors */
} quantised_case;

static const char *const format_names[] = {
    [OPS_QUANTISED_I8] = "i8",     [OPS_QUANTISED_U8] = "u8",     [OPS_QUANTISED_I4] = "i4",
    [OPS_QUANTISED_U4] = "u4",     [OPS_QUANTISED_E4M3] = "e4m3", [OPS_QUANTISED_E5M2] = "e5m2",
    [OPS_QUANTISED_E2M1] = "e2m1",
};

static int packed_count(ops_quantised_format format)
{
    return format == OPS_QUANTISED_I4 || format == OPS_QUANTISED_U4 || format == OPS_QUANTISED_E2M1
               ? 2
               : 1;
}

static long double decode_float(uint32_t bits, int exponent_bits, int mantissa_bits, bool specials)
{
    const uint32_t first = 1u << mantissa_bits, top = (1u << exponent_bits) - 1;
    const uint32_t exponent = bits >> mantissa_bits & top, mantissa = bits & (first - 1);
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const long double sign = bits >> (exponent_bits + mantissa_bits) & 1 ? -1.0L : 1.0L;
    if (specials && exponent == top) {
        return mantissa ? (long double)NAN : sign * (long double)INFINITY;
    }
    return exponent == 0 ? sign * ldexpl(mantissa, 1 - bias - mantissa_bits)
                         : sign * ldexpl(mantissa + first, (int)exponent - bias - mantissa_bits);
}

/* Element `number` of a byte. */
static long double decode_element(ops_quantised_format format, uint32_t byte, int number)
{
    const uint32_t nibble = byte >> 4 * number & 15;
    switch (format) {
    case OPS_QUANTISED_I8:
        return byte < 128 ? byte : (long double)byte - 256;
    case OPS_QUANTISED_U8:
        return byte;
    case OPS_QUANTISED_I4:
        return nibble < 8 ? nibble : (long double)nibble - 16;
    case OPS_QUANTISED_U4:
        return nibble;
    case OPS_QUANTISED_E4M3:
        return (byte & 127) == 127 ? (long double)NAN : decode_float(byte, 4, 3, false);
    case OPS_QUANTISED_E5M2:
        return decode_float(byte, 5, 2, true);
    default:
        return decode_float(nibble, 2, 1, false);
    }
}

/* Weights on the host and the device. */
typedef struct weights {
    operand values, scales, zeros;
    ops_quantised given;
} weights;

static void fill_values(const quantised_case *c, random_state *random, operand *values)
{
    for (size_t i = 0; i < values->count; i++) {
        uint32_t byte = (uint32_t)random_below(random, 256);
        /* Weights of F16 that are written do not overflow. */
        while (!(fabsl(decode_element(c->format, byte, 0)) < 4096)) {
            byte = (uint32_t)random_below(random, 256);
        }
        values->elements[i] = (uint8_t)byte;
    }
}

static void make_weights(case_run *run, const quantised_case *c, random_state *random, weights *w)
{
    const bool has_batch = c->batch > 1;
    const int64_t values[3] = {c->batch, c->k / packed_count(c->format), c->n};
    const int64_t blocks[3] = {c->batch, c->block ? c->k / c->block : 1, c->n};
    const uint32_t rank = has_batch ? 3 : 2;
    const hal_type type = c->format == OPS_QUANTISED_I8     ? HAL_TYPE_I8
                          : c->format == OPS_QUANTISED_E4M3 ? HAL_TYPE_F8_E4M3
                                                            : HAL_TYPE_U8;
    w->given = (ops_quantised)OPS_QUANTISED_DEFAULT;
    w->values = operand_create(run, type, rank, values + !has_batch, c->layout);
    fill_values(c, random, &w->values);
    operand_upload(run, &w->values);
    w->scales = operand_create(run, c->scale_type, rank, blocks + !has_batch, LAYOUT_PERMUTED);
    operand_fill(&w->scales, random, c->scale_type == HAL_TYPE_U8 ? 120 : 0.5,
                 c->scale_type == HAL_TYPE_U8 ? 134 : 2);
    operand_upload(run, &w->scales);
    w->given.format = c->format;
    w->given.values = w->values.tensor;
    w->given.scales = w->scales.tensor;
    w->given.zero = c->zero;
    if (c->zero_type != HAL_TYPE_NONE) {
        w->zeros = operand_create(run, c->zero_type, rank, blocks + !has_batch, LAYOUT_PLAIN);
        operand_fill(&w->zeros, random, 0, 9);
        operand_upload(run, &w->zeros);
        w->given.zeros = &w->zeros.tensor;
    }
}

static long double weight_of(const quantised_case *c, const weights *w, int batch, int k, int n)
{
    const int packed = packed_count(c->format), rows = c->k / packed;
    const int blocks = c->block ? c->k / c->block : 1, block = c->block ? k / c->block : 0;
    const size_t at = ((size_t)batch * (size_t)rows + (size_t)(k / packed)) * (size_t)c->n;
    const size_t of = ((size_t)batch * (size_t)blocks + (size_t)block) * (size_t)c->n + (size_t)n;
    const long double scale = (long double)operand_get(&w->scales, of);
    const long double x =
        decode_element(c->format, w->values.elements[at + (size_t)n], k % packed) -
        (long double)c->zero -
        (c->zero_type != HAL_TYPE_NONE ? (long double)operand_get(&w->zeros, of) : 0.0L);
    return x * (c->scale_type == HAL_TYPE_U8 ? ldexpl(1.0L, (int)scale - 127) : scale);
}

/* Claims what the device has to store. */
static void claim_types(case_run *run, const quantised_case *c)
{
    case_claim_storage(run, c->type);
    case_claim_storage(run, HAL_TYPE_U8);
    case_claim_storage(run, c->format == OPS_QUANTISED_E4M3 ? HAL_TYPE_F8_E4M3 : HAL_TYPE_I8);
    case_claim_storage(run, c->scale_type);
    case_claim_arithmetic(run, c->type);
}

/* A, C and the bias of a case; what C held before. */
typedef struct operands {
    weights w;
    operand a, c, bias;
    uint8_t *old;
} operands;

static void make_operands(case_run *run, const quantised_case *c, operands *made)
{
    const int64_t a_shape[3] = {c->batch, c->m, c->k}, c_shape[3] = {c->batch, c->m, c->n};
    const uint32_t rank = c->batch > 1 ? 3 : 2;
    random_state random = {run->seed};
    make_weights(run, c, &random, &made->w);
    made->a = operand_create(run, c->type, rank, a_shape + (rank == 2), LAYOUT_PLAIN);
    made->c = operand_create(run, c->type, rank, c_shape + (rank == 2), LAYOUT_PLAIN);
    made->bias = operand_create(run, c->type, 1, c_shape + 2, LAYOUT_PLAIN);
    operand_fill(&made->a, &random, -1, 1);
    operand_fill(&made->c, &random, -1, 1);
    operand_fill(&made->bias, &random, -1, 1);
    made->old = case_allocate(run, made->c.count + 1, 8);
    memcpy(made->old, made->c.elements, made->c.count * hal_type_size(c->type));
    operand_upload(run, &made->a);
    operand_upload(run, &made->bias);
    if (c->beta != 0) {
        operand_upload(run, &made->c);
    } else {
        operand_poison(run, &made->c);
    }
}

/* The value of an element of C, and the sum of the magnitudes that its bound has. */
static long double reference_of(const quantised_case *c, const operands *made, size_t number,
                                long double *size)
{
    const int j = (int)(number % (size_t)c->n), row = (int)(number / (size_t)c->n);
    long double sum = 0;
    *size = 0;
    for (int k = 0; k < c->k; k++) {
        const long double term =
            (long double)operand_get(&made->a, (size_t)row * (size_t)c->k + (size_t)k) *
            weight_of(c, &made->w, row / c->m, k, j);
        sum += term;
        *size += fabsl(term);
    }
    sum *= (long double)c->alpha;
    *size *= fabsl((long double)c->alpha);
    if (c->beta != 0) {
        const long double before =
            (long double)c->beta * (long double)number_get(c->type, made->old, number);
        sum += before;
        *size += fabsl(before);
    }
    if (c->has_bias) {
        sum += (long double)operand_get(&made->bias, (size_t)j);
        *size += fabsl(sum);
    }
    return sum;
}

static void run_quantised(case_run *run, const void *parameters)
{
    const quantised_case *c = parameters;
    operands made = {0};
    claim_types(run, c);
    make_operands(run, c, &made);
    const ops_gemm_options options = {.size = sizeof options,
                                      .alpha = c->alpha,
                                      .beta = c->beta,
                                      .precision = c->precision,
                                      .impl = c->impl,
                                      .epilogue = c->has_bias ? expression_add_input(run) : NULL,
                                      .inputs = &made.bias.tensor,
                                      .input_count = c->has_bias ? 1 : 0};
    case_ok(run,
            ops_gemm_quantised(run->ops, &options, &made.a.tensor, &made.w.given, &made.c.tensor),
            "ops_gemm_quantised");
    operand_download(run, &made.c, "C");
    long double *expected = case_allocate(run, made.c.count + 1, sizeof *expected);
    double *bounds = case_allocate(run, made.c.count + 1, sizeof *bounds);
    const double u = number_roundoff(HAL_TYPE_F32), out = number_roundoff(c->type);
    const double per_weight = (c->k + 3) * u / (1 - (c->k + 3) * u) + out + 3 * u;
    for (size_t i = 0; i < made.c.count; i++) {
        long double size;
        expected[i] = reference_of(c, &made, i, &size);
        bounds[i] =
            1.001 * (per_weight * (double)size + out * fabs((double)expected[i])) + 0x1p-126;
    }
    operand_check_bounds(run, &made.c, expected, bounds, "C");
}

static void print_case(const quantised_case *c, uint64_t seed, char *name, size_t bytes)
{
    snprintf(name, bytes,
             "quantised(format=%s,type=%s,scales=%s,zeros=%s,m=%d,n=%d,k=%d,block=%d,batch=%d,"
             "layout=%s,zero=%g,alpha=%g,beta=%g,bias=%d,precision=%s,impl=%s,seed=%llu)",
             format_names[c->format], hal_type_name(c->type), hal_type_name(c->scale_type),
             c->zero_type ? hal_type_name(c->zero_type) : "none", c->m, c->n, c->k, c->block,
             c->batch, layout_name(c->layout), c->zero, c->alpha, c->beta, c->has_bias,
             c->precision ? "accurate" : "strict",
             c->impl == OPS_GEMM_PORTABLE ? "portable" : "any", (unsigned long long)seed);
}

static void print_member(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    print_case(parameters, seed, name, bytes);
}

static const case_family products = {
    .function = run_quantised, .bytes = sizeof(quantised_case), .print = print_member};

/* All codes of a format, also those that are no numbers, in every bit. */
static void run_codes(case_run *run, const void *parameters)
{
    enum { CODES = 256 };
    quantised_case c = *(const quantised_case *)parameters;
    const int packed = packed_count(c.format);
    const int64_t values[2] = {CODES, 1}, shape[2] = {CODES * packed, 1}, one[2] = {1, 1};
    claim_types(run, &c);
    case_claim_or_rewrite(run,
                          !ops_may_flush(run, HAL_TYPE_F32, 0x1p-127L) &&
                              !ops_may_flush(run, c.type, c.type == HAL_TYPE_F16 ? 0x1p-20L : 1),
                          "denormal numbers");
    operand q = operand_create(run, c.format == OPS_QUANTISED_I8 ? HAL_TYPE_I8 : HAL_TYPE_U8, 2,
                               values, LAYOUT_PLAIN);
    operand scale = operand_create(run, c.scale_type, 2, one, LAYOUT_PLAIN);
    operand y = operand_create(run, c.type, 2, shape, LAYOUT_PLAIN);
    uint8_t *expected = case_allocate(run, y.count, 8);
    /* So that some weights of F16 are denormal. */
    const double factor = c.scale_type == HAL_TYPE_U8 ? 0.25
                          : c.type == HAL_TYPE_F16    ? 0x1.8p-16
                                                      : 0.375;
    number_put(c.scale_type, scale.elements, 0, c.scale_type == HAL_TYPE_U8 ? 125 : factor);
    for (size_t i = 0; i < y.count; i++) {
        const size_t byte = i / (size_t)packed;
        q.elements[byte] = (uint8_t)byte;
        const long double x = decode_element(c.format, (uint32_t)byte, (int)(i % (size_t)packed));
        number_put(c.type, expected, i, (double)x * factor);
    }
    operand_upload(run, &q);
    operand_upload(run, &scale);
    operand_poison(run, &y);
    ops_quantised b = OPS_QUANTISED_DEFAULT;
    b.format = c.format;
    b.values = q.tensor;
    b.scales = scale.tensor;
    case_ok(run, ops_dequantise(run->ops, &b, &y.tensor), "ops_dequantise");
    operand_download(run, &y, "weights");
    operand_check_bits(run, &y, expected, true, "weights");
}

/* What most cases start from: one row, no zeros, no bias. */
static quantised_case case_of(ops_quantised_format format, hal_type type, int64_t n, int64_t k)
{
    return (quantised_case){.format = format,
                            .type = type,
                            .scale_type = type,
                            .zero_type = HAL_TYPE_NONE,
                            .m = 1,
                            .n = n,
                            .k = k,
                            .batch = 1,
                            .alpha = 1,
                            .layout = LAYOUT_PERMUTED};
}

static void add_case(case_list *list, const quantised_case *c)
{
    case_add_member(list, &products, c);
}

/* Each format in both orders of memory, with one block of k and with several, by words and by
 * bytes. Some devices compile a kernel for seconds: other layouts and numbers of rows have three
 * formats. */
static void add_formats(case_list *list, hal_type type)
{
    for (int f = OPS_QUANTISED_I8; f <= OPS_QUANTISED_E2M1; f++) {
        quantised_case plain = case_of((ops_quantised_format)f, type, 68, 192);
        plain.impl = OPS_GEMM_PORTABLE;
        const bool has_all = type == HAL_TYPE_F32 && f % 3 == 1;
        quantised_case c = plain;
        c.block = 32;
        add_case(list, &c);
        c = plain;
        c.layout = LAYOUT_PLAIN;
        c.m = 3;
        add_case(list, &c);
        if (type != HAL_TYPE_F32) {
            continue;
        }
        c.k = 22; /* no whole words along k */
        c.n = 7;
        add_case(list, &c);
        c.layout = LAYOUT_PERMUTED;
        add_case(list, &c);
        for (int layout = LAYOUT_PLAIN; layout <= LAYOUT_REVERSED && has_all; layout++) {
            c = plain;
            c.layout = (operand_layout)layout;
            c.block = layout % 2 ? 64 : 0;
            add_case(list, &c);
        }
        for (int m = 2; m < 12 && has_all; m += 3) {
            c = plain;
            c.m = m;
            c.block = 64;
            add_case(list, &c);
        }
        c = plain;
        c.k = 48;
        c.block = 24; /* no power of two: copied */
        add_case(list, &c);
    }
}

static void add_variants(case_list *list)
{
    const quantised_case plain = {.format = OPS_QUANTISED_U4,
                                  .type = HAL_TYPE_F32,
                                  .scale_type = HAL_TYPE_F32,
                                  .m = 1,
                                  .n = 36,
                                  .k = 320,
                                  .block = 64,
                                  .batch = 1,
                                  .alpha = 1,
                                  .impl = OPS_GEMM_PORTABLE,
                                  .layout = LAYOUT_PERMUTED};
    static const hal_type zero_types[] = {HAL_TYPE_U8, HAL_TYPE_I8, HAL_TYPE_F32, HAL_TYPE_BF16};
    quantised_case c = plain;
    for (int i = 0; i < 8; i++) {
        c.zero_type = zero_types[i % 4];
        c.layout = i < 4 ? LAYOUT_PERMUTED : LAYOUT_PLAIN;
        c.block = i % 2 ? 64 : 0;
        add_case(list, &c);
    }
    c = plain;
    c.zero = 8;
    add_case(list, &c);
    c.format = OPS_QUANTISED_U8;
    c.zero = -3;
    c.layout = LAYOUT_PLAIN;
    add_case(list, &c);
    c = plain;
    c.batch = 3;
    add_case(list, &c);
    c.layout = LAYOUT_PLAIN;
    c.m = 2;
    add_case(list, &c);
    c.alpha = -0.5;
    c.beta = 2;
    c.has_bias = 1;
    add_case(list, &c);
    c = plain;
    c.has_bias = 1;
    add_case(list, &c);
    c.beta = 0.5;
    c.m = 4;
    add_case(list, &c);
    c = plain;
    c.format = OPS_QUANTISED_E2M1; /* as MXFP4 and MXFP8 */
    c.scale_type = HAL_TYPE_U8;
    c.block = 32;
    add_case(list, &c);
    c.format = OPS_QUANTISED_E4M3;
    add_case(list, &c);
    c = plain;
    c.m = 70; /* copied */
    add_case(list, &c);
    c = plain;
    c.n = 1;
    add_case(list, &c);
    c.k = 0;
    c.block = 0;
    c.beta = 2;
    add_case(list, &c);
    c = plain;
    c.alpha = 0;
    c.beta = 0.5;
    add_case(list, &c);
    c = plain;
    c.k = 4096;
    c.block = 128;
    c.n = 20;
    add_case(list, &c);
    c.format = OPS_QUANTISED_I8;
    c.layout = LAYOUT_PLAIN;
    c.block = 0;
    add_case(list, &c);
}

/* Any implementation, from one row to more than processors copy weights in pieces for: each format
 * with both orders of memory and types of A, scales for columns and blocks, and zeros. The last
 * ones have several pieces. */
static void add_rows(case_list *list)
{
    static const int rows[] = {1, 9, 12, 16, 24, 33, 48, 64, 96, 130};
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_BF16, HAL_TYPE_F16};
    enum { ROWS = sizeof rows / sizeof *rows, FORMATS = OPS_QUANTISED_E2M1 };
    for (int i = 0; i < 2 * FORMATS; i++) {
        quantised_case c = {.format = (ops_quantised_format)(1 + i % FORMATS),
                            .type = HAL_TYPE_F32,
                            .scale_type = HAL_TYPE_F32,
                            .m = rows[i % ROWS],
                            .n = 77,
                            .k = 144,
                            .block = i % 2 ? 48 : 16,
                            .batch = 1,
                            .alpha = 1,
                            .layout = i < FORMATS ? LAYOUT_PERMUTED : LAYOUT_PLAIN};
        add_case(list, &c);
        c.m = rows[(i + 5) % ROWS];
        c.type = types[i % 3];
        c.scale_type = i % 2 && c.type != HAL_TYPE_F16 ? HAL_TYPE_U8 : c.type; /* no overflow */
        c.zero_type = i % 4 == 0 ? HAL_TYPE_F32 : HAL_TYPE_NONE;
        c.zero = c.format <= OPS_QUANTISED_U4 ? 3 : 0;
        c.has_bias = 1;
        c.beta = i % 3 == 0 ? 0.5 : 0;
        c.batch = i % 5 == 0 ? 2 : 1;
        add_case(list, &c);
    }
    quantised_case c = case_of(OPS_QUANTISED_U4, HAL_TYPE_F32, 258, 8192);
    c.zero_type = HAL_TYPE_U8;
    c.m = 9;
    c.block = 128;
    c.has_bias = 1;
    add_case(list, &c);
    c.format = OPS_QUANTISED_I8;
    c.layout = LAYOUT_PLAIN;
    c.block = 0;
    add_case(list, &c);
}

/* What matrix units may compute, where there are any: each format with one scale for each column
 * and with blocks, rows of one tile and of several, and lengths that are no multiples of them. */
static void add_accurate(case_list *list)
{
    static const int rows[] = {1, 8, 9, 16, 17, 32, 33, 64}, blocks[] = {0, 32, 128, 64, 0};
    for (int i = 0; i < 3 * OPS_QUANTISED_E2M1; i++) {
        const hal_type type = i % 2 ? HAL_TYPE_F16 : HAL_TYPE_BF16;
        quantised_case c = case_of((ops_quantised_format)(1 + i % OPS_QUANTISED_E2M1), type,
                                   i % 3 ? 160 : 77, 768);
        c.precision = HAL_GEMM_ACCURATE;
        c.m = rows[i % 8];
        c.block = blocks[i % 5];
        c.scale_type = c.block == 32 && type == HAL_TYPE_BF16 ? HAL_TYPE_U8 : type;
        c.zero = c.format <= OPS_QUANTISED_U4 && i % 4 == 0 ? 8 : 0;
        c.has_bias = i % 7 == 0;
        c.beta = i % 6 == 0 ? 0.5 : 0;
        c.batch = i % 9 == 0 ? 2 : 1;
        c.k = i % 5 == 0 ? 776 : 768; /* as many as lanes read at once, or less */
        add_case(list, &c);
    }
    quantised_case c = case_of(OPS_QUANTISED_I4, HAL_TYPE_BF16, 200, 4096);
    c.precision = HAL_GEMM_ACCURATE;
    c.block = 128;
    c.m = 3;
    add_case(list, &c);
    c.layout = LAYOUT_PLAIN; /* k x n */
    add_case(list, &c);
}

static void add_codes(case_list *list, const quantised_case *c)
{
    case_add(list, run_codes, c, sizeof *c, "quantised(format=%s,codes,type=%s,scales=%s)",
             format_names[c->format], hal_type_name(c->type), hal_type_name(c->scale_type));
}

void cases_ops_quantised(case_list *list)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_BF16};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        add_formats(list, types[i]);
    }
    add_variants(list);
    add_rows(list);
    add_accurate(list);
    for (int f = OPS_QUANTISED_I8; f <= OPS_QUANTISED_E2M1; f++) {
        for (int exponents = 0; exponents < 2; exponents++) {
            const quantised_case c = {.format = (ops_quantised_format)f,
                                      .type = HAL_TYPE_F32,
                                      .scale_type = exponents ? HAL_TYPE_U8 : HAL_TYPE_F32};
            add_codes(list, &c);
        }
        for (size_t i = 1; i < sizeof types / sizeof types[0]; i++) {
            quantised_case c = {.format = (ops_quantised_format)f,
                                .type = types[i],
                                .scale_type = HAL_TYPE_F32,
                                .m = 11, /* copied */
                                .n = 20,
                                .k = 64,
                                .block = 32,
                                .batch = 1,
                                .alpha = 1,
                                .layout = LAYOUT_PERMUTED};
            add_codes(list, &c);
            add_case(list, &c);
        }
    }
}
