/* cases_gemm.c: the portable product with each of its tiles, types, transpositions and
 * epilogues. */
#include "corpus_cases.h"

static void product(corpus *c, hal_type type, const int64_t size[3], int transpose_a,
                    int transpose_b)
{
    const int64_t m = size[0], n = size[1], k = size[2];
    corpus_case(c, "gemm_%s_%c%c_%lldx%lldx%lld", hal_type_name(type), transpose_a ? 't' : 'n',
                transpose_b ? 't' : 'n', (long long)m, (long long)n, (long long)k);
    ops_tensor a = corpus_matrix(c, type, transpose_a ? k : m, transpose_a ? m : k);
    ops_tensor b = corpus_matrix(c, type, transpose_b ? n : k, transpose_b ? k : n);
    const ops_tensor y = corpus_matrix(c, type, m, n);
    if (!c->failed && transpose_a) {
        corpus_did(c, ops_tensor_transpose(&a, 0, 1, &a));
    }
    if (!c->failed && transpose_b) {
        corpus_did(c, ops_tensor_transpose(&b, 0, 1, &b));
    }
    if (!c->failed) {
        corpus_did(c, ops_gemm(c->ops, NULL, &a, &b, &y));
    }
}

/* relu(value + bias). */
static hal_status make_epilogue(ops_expression **expression)
{
    hal_ir_builder *b = NULL;
    const hal_status status = hal_ir_builder_create_fragment("bias_relu", &b);
    if (status != HAL_OK) {
        return status;
    }
    const hal_ir_value value = hal_ir_input(b, 0, HAL_TYPE_F32);
    for (uint32_t i = 1; i < 4; i++) {
        hal_ir_input(b, i, HAL_TYPE_U32);
    }
    const hal_ir_value bias = hal_ir_input(b, 4, HAL_TYPE_F32);
    hal_ir_output(b, 0, ops_unary_value(b, OPS_RELU, hal_ir_add(b, value, bias)));
    return ops_expression_create(b, expression);
}

/* Layers of recurrent networks: few rows of every width, and transposed weights. */
static void steps(corpus *c, ops_expression *epilogue)
{
    static const int64_t sizes[][3] = {
        {1, 16, 16},    {1, 128, 128},  {1, 512, 512}, {16, 512, 512}, {64, 16, 16},  {64, 64, 64},
        {64, 128, 128}, {64, 512, 512}, {512, 1, 512}, {1, 500, 1001}, {64, 300, 200}};
    for (int i = 0; i < 2 * 11 && !c->failed; i += c->all ? 1 : 5) {
        const int64_t m = sizes[i / 2][0], n = sizes[i / 2][1], k = sizes[i / 2][2];
        corpus_case(c, "gemm_step_%c_%lldx%lldx%lld", i % 2 ? 't' : 'n', (long long)m, (long long)n,
                    (long long)k);
        const ops_tensor a = corpus_matrix(c, HAL_TYPE_F32, m, k);
        ops_tensor b = corpus_matrix(c, HAL_TYPE_F32, i % 2 ? n : k, i % 2 ? k : n);
        const ops_tensor y = corpus_matrix(c, HAL_TYPE_F32, m, n);
        const ops_tensor bias = corpus_vector(c, HAL_TYPE_F32, n);
        const ops_gemm_options fused = {.size = sizeof(ops_gemm_options),
                                        .alpha = 1.0,
                                        .epilogue = epilogue,
                                        .inputs = &bias,
                                        .input_count = 1};
        if (!c->failed && i % 2) {
            corpus_did(c, ops_tensor_transpose(&b, 0, 1, &b));
        }
        if (!c->failed) {
            corpus_did(c, ops_gemm(c->ops, &fused, &a, &b, &y));
        }
    }
}

/* Split-K and the kernels that reduce partial sums: with beta and an epilogue, in several sizes. */
static void parts(corpus *c, ops_expression *epilogue)
{
    static const int64_t sizes[][3] = {{64, 64, 65536}, {16, 12, 40003}, {500, 120, 8200}};
    for (int i = 0; i < 3 && !c->failed; i++) {
        const int64_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
        corpus_case(c, "gemm_parts_%lldx%lldx%lld", (long long)m, (long long)n, (long long)k);
        ops_tensor a = corpus_matrix(c, HAL_TYPE_F32, k, m);
        const ops_tensor b = corpus_matrix(c, HAL_TYPE_F32, k, n);
        const ops_tensor y = corpus_matrix(c, HAL_TYPE_F32, m, n);
        const ops_tensor bias = corpus_vector(c, HAL_TYPE_F32, n);
        const ops_gemm_options fused = {.size = sizeof(ops_gemm_options),
                                        .alpha = 2.0,
                                        .beta = 0.5,
                                        .epilogue = epilogue,
                                        .inputs = &bias,
                                        .input_count = 1};
        if (!c->failed) {
            corpus_did(c, ops_tensor_transpose(&a, 0, 1, &a));
            corpus_did(c, ops_gemm(c->ops, &fused, &a, &b, &y));
        }
    }
}

/* Quantised weights: each format in both orders of memory, with words and bytes. */
static void quantised(corpus *c, ops_expression *epilogue)
{
    static const int64_t sizes[][3] = {{1, 4096, 4096}, {2, 4096, 4096}, {4, 4096, 4096},
                                       {8, 4096, 4096}, {1, 4096, 1024}, {3, 333, 516}};
    enum { SIZES = sizeof sizes / sizeof sizes[0], FORMATS = OPS_QUANTISED_E2M1 };
    for (int i = 0; i < 2 * SIZES * FORMATS && !c->failed; i += c->all ? 1 : 11) {
        const ops_quantised_format format = (ops_quantised_format)(1 + i % FORMATS);
        const bool by_rows = i / FORMATS % 2, is_packed = format == OPS_QUANTISED_I4 ||
                                                          format == OPS_QUANTISED_U4 ||
                                                          format == OPS_QUANTISED_E2M1;
        const int64_t *size = sizes[i / FORMATS / 2], m = size[0], n = size[1], k = size[2];
        const int64_t rows = is_packed ? k / 2 : k, blocks = i % 3 && k % 128 == 0 ? k / 128 : 1;
        corpus_case(c, "gemm_quantised%d_%c_%lldx%lldx%lld", (int)format, by_rows ? 'n' : 't',
                    (long long)m, (long long)n, (long long)k);
        ops_quantised q = OPS_QUANTISED_DEFAULT;
        q.format = format;
        q.values = corpus_matrix(c, format == OPS_QUANTISED_I8 ? HAL_TYPE_I8 : HAL_TYPE_U8,
                                 by_rows ? rows : n, by_rows ? n : rows);
        q.scales = corpus_matrix(c, HAL_TYPE_F32, blocks, n);
        const ops_tensor a = corpus_matrix(c, HAL_TYPE_F32, m, k);
        const ops_tensor y = corpus_matrix(c, HAL_TYPE_F32, m, n);
        const ops_tensor bias = corpus_vector(c, HAL_TYPE_F32, n);
        const ops_gemm_options fused = {.size = sizeof(ops_gemm_options),
                                        .alpha = 1.0,
                                        .epilogue = epilogue,
                                        .inputs = &bias,
                                        .input_count = 1};
        if (!c->failed && !by_rows) {
            corpus_did(c, ops_tensor_transpose(&q.values, 0, 1, &q.values));
        }
        if (!c->failed) {
            corpus_did(c, ops_gemm_quantised(c->ops, &fused, &a, &q, &y));
        }
    }
}

/* Quantised weights that matrix units multiply, where there are any: formats, rows, lengths. */
static void quantised_units(corpus *c)
{
    static const int64_t sizes[][4] = {{1, 14336, 4096, 128}, {16, 4096, 4096, 32},
                                       {32, 4096, 4096, 0},   {64, 4096, 14336, 128},
                                       {9, 4096, 1024, 64},   {3, 333, 520, 0}};
    enum { SIZES = sizeof sizes / sizeof sizes[0], FORMATS = OPS_QUANTISED_E2M1 };
    for (int i = 0; i < SIZES * FORMATS && !c->failed; i += c->all ? 1 : 11) {
        const ops_quantised_format format = (ops_quantised_format)(1 + i % FORMATS);
        const bool is_packed = format == OPS_QUANTISED_I4 || format == OPS_QUANTISED_U4 ||
                               format == OPS_QUANTISED_E2M1;
        const hal_type type = i % 2 ? HAL_TYPE_F16 : HAL_TYPE_BF16;
        const int64_t *size = sizes[i / FORMATS], m = size[0], n = size[1], k = size[2];
        corpus_case(c, "gemm_quantised_units%d_%lldx%lldx%lld", (int)format, (long long)m,
                    (long long)n, (long long)k);
        ops_quantised q = OPS_QUANTISED_DEFAULT;
        q.format = format;
        q.values = corpus_matrix(c, format == OPS_QUANTISED_I8 ? HAL_TYPE_I8 : HAL_TYPE_U8, n,
                                 is_packed ? k / 2 : k);
        q.scales = corpus_matrix(c, type, size[3] ? k / size[3] : 1, n);
        const ops_tensor a = corpus_matrix(c, type, m, k), y = corpus_matrix(c, type, m, n);
        const ops_gemm_options options = {
            .size = sizeof options, .alpha = 1.0, .precision = HAL_GEMM_FAST};
        if (!c->failed) {
            corpus_did(c, ops_tensor_transpose(&q.values, 0, 1, &q.values));
        }
        if (!c->failed) {
            corpus_did(c, ops_gemm_quantised(c->ops, &options, &a, &q, &y));
        }
    }
}

/* The passes of levels: sums of A and of B, combinations to C, to sums and to both, of vectors and
 * of single elements. */
static void levels(corpus *c, ops_expression *epilogue)
{
    static const int64_t lengths[] = {4096, 2052, 500};
    for (uint32_t i = 0; i < 6 && !c->failed; i++) {
        const int64_t n = lengths[i / 2];
        corpus_case(c, "gemm_levels%u_%lld", 1 + i % 2, (long long)n);
        const ops_tensor a = corpus_matrix(c, HAL_TYPE_F32, n, n);
        const ops_tensor b = corpus_matrix(c, HAL_TYPE_F32, n, n);
        const ops_tensor y = corpus_matrix(c, HAL_TYPE_F32, n, n);
        const ops_tensor bias = corpus_vector(c, HAL_TYPE_F32, n);
        const int64_t parts = i % 2 ? 49 : 7, block = n >> (1 + i % 2);
        const int64_t shape[3] = {parts, block, block};
        const ops_tensor sums = corpus_tensor(c, HAL_TYPE_F32, 3, shape);
        ops_gemm_options by_levels = {.size = sizeof(ops_gemm_options),
                                      .alpha = 1.0,
                                      .precision = HAL_GEMM_NORMWISE,
                                      .levels = 1 + i % 2,
                                      .epilogue = epilogue,
                                      .inputs = &bias,
                                      .input_count = 1};
        for (int writes = 0; writes < 3 && !c->failed; writes++) {
            by_levels.c_sums = writes > 0 ? &sums : NULL;
            corpus_did(c, ops_gemm(c->ops, &by_levels, &a, &b, writes == 1 ? NULL : &y));
        }
    }
}

/* Groups of rows in every class, by either order of B. */
static void groups(corpus *c, const ops_expression *epilogue)
{
    static const int64_t sizes[][4] = {
        {8, 1024, 512, 512}, {64, 64, 512, 512}, {16, 333, 77, 65}, {128, 16, 512, 256}};
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_BF16, HAL_TYPE_F16};
    for (int i = 0; i < 4 * 6 && !c->failed; i += c->all ? 1 : 5) {
        const int64_t *s = sizes[i % 4],
                      stored[3] = {s[0], i % 2 ? s[2] : s[3], i % 2 ? s[3] : s[2]};
        const hal_type type = types[i / 4 % 3];
        const int64_t count[1] = {s[0] + 1};
        corpus_case(c, "gemm_groups_%s_%s_%c_%lldx%lldx%lldx%lld", i / 12 ? "fast" : "strict",
                    hal_type_name(type), i % 2 ? 't' : 'n', (long long)s[0], (long long)s[1],
                    (long long)s[2], (long long)s[3]);
        const ops_tensor a = corpus_matrix(c, type, s[1], s[3]);
        ops_tensor b = corpus_tensor(c, type, 3, stored);
        const ops_tensor y = corpus_matrix(c, type, s[1], s[2]);
        const ops_tensor bias = corpus_vector(c, HAL_TYPE_F32, s[2]);
        const ops_tensor offsets = corpus_tensor(c, HAL_TYPE_I32, 1, count);
        const bool has_bias = type == HAL_TYPE_F32;
        const ops_gemm_options options = {.size = sizeof options,
                                          .alpha = 1.0,
                                          .precision = i / 12 ? HAL_GEMM_FAST : HAL_GEMM_STRICT,
                                          .epilogue = has_bias ? epilogue : NULL,
                                          .inputs = &bias,
                                          .input_count = has_bias ? 1 : 0};
        if (!c->failed && i % 2) {
            corpus_did(c, ops_tensor_transpose(&b, 1, 2, &b));
        }
        if (!c->failed) {
            corpus_did(c, ops_gemm_grouped(c->ops, &options, &a, &b, &offsets, NULL, &y));
        }
    }
}

/* beta, a batch, an epilogue with a further input, and unaligned leading dimensions. */
static void variants(corpus *c)
{
    ops_expression *epilogue = NULL;
    const int64_t batch[3] = {8, 512, 512};
    corpus_case(c, "gemm_beta");
    const ops_tensor a = corpus_matrix(c, HAL_TYPE_F32, 1024, 1024);
    const ops_tensor b = corpus_matrix(c, HAL_TYPE_F32, 1024, 1024);
    const ops_tensor y = corpus_matrix(c, HAL_TYPE_F32, 1024, 1024);
    const ops_gemm_options beta = {.size = sizeof(ops_gemm_options), .alpha = 2.0, .beta = 0.5};
    corpus_did(c, ops_gemm(c->ops, &beta, &a, &b, &y));
    corpus_did(c, make_epilogue(&epilogue));
    corpus_case(c, "gemm_epilogue");
    const ops_tensor bias = corpus_vector(c, HAL_TYPE_F32, 1024);
    const ops_tensor p = corpus_matrix(c, HAL_TYPE_F32, 1024, 1024);
    const ops_tensor q = corpus_matrix(c, HAL_TYPE_F32, 1024, 1024);
    const ops_tensor r = corpus_matrix(c, HAL_TYPE_F32, 1024, 1024);
    const ops_gemm_options fused = {.size = sizeof(ops_gemm_options),
                                    .alpha = 1.0,
                                    .epilogue = epilogue,
                                    .inputs = &bias,
                                    .input_count = 1};
    if (!c->failed) {
        corpus_did(c, ops_gemm(c->ops, &fused, &p, &q, &r));
    }
    steps(c, epilogue);
    parts(c, epilogue);
    quantised(c, epilogue);
    quantised_units(c);
    groups(c, epilogue);
    levels(c, epilogue);
    ops_expression_destroy(epilogue);
    corpus_case(c, "gemm_batch");
    const ops_tensor s = corpus_tensor(c, HAL_TYPE_F32, 3, batch);
    const ops_tensor t = corpus_tensor(c, HAL_TYPE_F32, 3, batch);
    const ops_tensor u = corpus_tensor(c, HAL_TYPE_F32, 3, batch);
    if (!c->failed) {
        corpus_did(c, ops_gemm(c->ops, NULL, &s, &t, &u));
    }
    corpus_case(c, "gemm_odd_leading_dimension");
    ops_tensor narrow = corpus_matrix(c, HAL_TYPE_F32, 1024, 1027);
    const ops_tensor v = corpus_matrix(c, HAL_TYPE_F32, 1024, 1024);
    const ops_tensor w = corpus_matrix(c, HAL_TYPE_F32, 1024, 1024);
    if (!c->failed) {
        corpus_did(c, ops_tensor_slice(&narrow, 1, 1, 1024, 1, &narrow));
        corpus_did(c, ops_gemm(c->ops, NULL, &narrow, &v, &w));
    }
}

/* The classes of precision that may use matrix units, on shapes that are multiples of the tiles and
 * others; where there are units, down to odd ones, which only they handle in another way. */
static void classes(corpus *c, hal_type type, int transpose_b, int transpose_a)
{
    enum { SIZES = 7, ALIGNED_SIZES = 4 };
    static const int64_t sizes[SIZES][3] = {
        {1024, 1024, 1024}, {1000, 1016, 1048}, {512, 512, 512}, {256, 256, 256},
        {2046, 2050, 2054}, {999, 1003, 1005},  {255, 257, 513}};
    static const struct {
        const char *name;
        uint32_t precision;
    } kinds[2] = {{"accurate", HAL_GEMM_ACCURATE}, {"fast", HAL_GEMM_FAST}};
    const int sizes_taken = c->info->matrix_types ? SIZES : ALIGNED_SIZES;
    for (int i = 0; i < 2 * sizes_taken && !c->failed; i++) {
        const int64_t *size = sizes[i % sizes_taken];
        const int64_t m = size[0], n = size[1], k = size[2];
        corpus_case(c, "gemm_%s_%s_%c%c_%lld", kinds[i / sizes_taken].name, hal_type_name(type),
                    transpose_a ? 't' : 'n', transpose_b ? 't' : 'n', (long long)m);
        ops_tensor a = corpus_matrix(c, type, transpose_a ? k : m, transpose_a ? m : k);
        ops_tensor b = corpus_matrix(c, type, transpose_b ? n : k, transpose_b ? k : n);
        const ops_tensor y = corpus_matrix(c, type, m, n);
        const ops_gemm_options options = {.size = sizeof(ops_gemm_options),
                                          .alpha = 1.0,
                                          .precision = kinds[i / sizes_taken].precision};
        if (!c->failed && transpose_a) {
            corpus_did(c, ops_tensor_transpose(&a, 0, 1, &a));
        }
        if (!c->failed && transpose_b) {
            corpus_did(c, ops_tensor_transpose(&b, 0, 1, &b));
        }
        if (!c->failed) {
            corpus_did(c, ops_gemm(c->ops, &options, &a, &b, &y));
        }
    }
}

/* F64 by integers, on every device: from sums of residues, and from the operands alone. */
static void exact(corpus *c)
{
    static const int64_t sizes[][3] = {{512, 512, 512}, {100, 70, 8}};
    for (int i = 0; i < 4 && !c->failed; i++) {
        const int64_t m = sizes[i / 2][0], n = sizes[i / 2][1], k = sizes[i / 2][2];
        corpus_case(c, "gemm_exact_%s_%lldx%lldx%lld", i % 2 ? "scaled" : "plain", (long long)m,
                    (long long)n, (long long)k);
        const ops_tensor a = corpus_matrix(c, HAL_TYPE_F64, m, k);
        const ops_tensor b = corpus_matrix(c, HAL_TYPE_F64, k, n);
        const ops_tensor y = corpus_matrix(c, HAL_TYPE_F64, m, n);
        const ops_gemm_options options = {.size = sizeof(ops_gemm_options),
                                          .alpha = i % 2 ? 2.0 : 1.0,
                                          .beta = i % 2 ? 0.5 : 0.0,
                                          .precision = HAL_GEMM_EXACT};
        if (!c->failed) {
            corpus_did(c, ops_gemm(c->ops, &options, &a, &b, &y));
        }
    }
}

void cases_gemm(corpus *c)
{
    static const int64_t sizes[][3] = {{2048, 2048, 2048}, {512, 512, 512}, {256, 256, 256},
                                       {128, 128, 128},    {33, 65, 127},   {1, 4096, 4096},
                                       {64, 64, 65536},    {5307, 2525, 11}};
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_BF16, HAL_TYPE_F64};
    for (int t = 0; t < (c->all ? 4 : 1); t++) {
        for (int s = 0; s < 8 && corpus_computes(c, types[t]); s++) {
            for (int turn = 0; turn < (c->all ? 4 : 1) && !c->failed; turn++) {
                product(c, types[t], sizes[s], turn & 1, turn >> 1);
            }
        }
    }
    if (!c->failed) {
        variants(c);
    }
    exact(c);
    for (int t = 0; t < 3 && !c->failed; t++) {
        for (int turn = 0; turn < (c->all ? 4 : 2) && !c->failed; turn++) {
            classes(c, types[t], turn & 1, turn >> 1);
        }
    }
}
