/* Matrix products by levels of Strassen's algorithm, see normwise.h. A level is three steps: sums
 * of blocks of A and of B, one batched product of the sums, and one kernel that combines the
 * products and computes the epilogue. Two levels are the same three steps of 16 blocks and 49
 * products: the sums between the levels stay in registers.
 *
 * Lengths that are not multiples of 2^levels are peeled: what is left of k is a product of its own,
 * added by the combining kernel; rows and columns that are left are ordinary products. */
#include "normwise.h"

#include "bilinear.h"
#include "tensor/allocation.h"
#include "tuning/tuning.h"

#include <ops/index.h>

#include <math.h>
#include <string.h>

/* Elements that the pass over an operand reads and writes, relative to its own: a level turns 4
 * blocks into 7. */
static double pass_elements(uint32_t levels)
{
    return levels ? 1 + pow(1.75, levels) : 0;
}

static double cost_in_operations(const hal_device_info *info, const ops_normwise_shape *s,
                                 uint32_t levels)
{
    const ops_normwise_tuning *tuning = &ops_tuning_select(info)->gemm.normwise;
    const double m = (double)s->m, n = (double)s->n, k = (double)s->k;
    const bool has_units = (info->matrix_types & HAL_TYPE_BIT(s->type)) != 0;
    const bool is_f64 = s->type == HAL_TYPE_F64;
    const double per_byte =
        has_units && !is_f64 ? tuning->units_ops_per_byte : tuning->ops_per_byte;
    /* F64 has half the operations and twice the bytes; on its units as many operations as F32. */
    const double per_element = per_byte * (has_units && is_f64 ? 8 : 4);
    const bool b_is_prepared = levels && s->b_levels == levels;
    const double elements = m * k + m * n + (b_is_prepared ? 0 : k * n);
    const bool is_peeled = levels && ((s->m | s->n | s->k) & ((1 << levels) - 1));
    const double passes = pass_elements(levels) + (is_peeled ? tuning->peel_passes : 0);
    double operations = 2 * m * n * k;
    for (uint32_t l = 0; l < levels; l++) {
        operations *= 7.0 / 8.0;
    }
    const double launches = levels == 0 ? 0 : b_is_prepared ? 2 : 3;
    return operations + per_element * elements * passes + launches * tuning->ops_per_launch;
}

/* The last level reads A and B once, and writes and reads 7 sums of their 4 blocks; a level before
 * it reads 12 blocks of A and of B, and adds products to 12 blocks of C: 3 times each. */
static double native_cost_in_operations(const hal_device_info *info, const ops_normwise_shape *s,
                                        uint32_t levels)
{
    const ops_normwise_tuning *tuning = &ops_tuning_select(info)->gemm.normwise;
    const double m = (double)s->m, n = (double)s->n, k = (double)s->k;
    const double further = info->compute_units > 2 ? (double)info->compute_units - 2 : 0;
    const double first =
        info->compute_units > 1 ? tuning->inside_ops_of_two : tuning->inside_ops_of_one;
    const double grown = first + further * tuning->inside_ops_of_thread;
    const double per_byte = fmin(grown, tuning->inside_ops_of_many);
    double operations = 2 * m * n * k, passes = 1, sums = levels ? 1 : 0.5; /* 0: B is packed */
    for (uint32_t l = 0; l < levels; l++) {
        operations *= 7.0 / 8.0;
        passes *= l > 0 ? 3 : 1;
        sums *= 7.0 / 4.0;
    }
    const double moved = (passes + 2 * sums) * (m * k + k * n) + 2 * passes * m * n;
    return operations + per_byte * 4 * moved; /* half the operations, twice the bytes in F64 */
}

/* The products are alive with the sums that they multiply. */
uint64_t ops_normwise_workspace(const ops_normwise_shape *s, uint32_t levels)
{
    const double a = (double)s->m * (double)s->k, b = (double)s->k * (double)s->n;
    const double c = (double)s->m * (double)s->n;
    double grown = 1;
    for (uint32_t l = 0; l < levels; l++) {
        grown *= 1.75;
    }
    const double tail = s->k & ((1 << levels) - 1) ? c : 0;
    const double elements = (a + c + (s->b_levels == levels ? 0 : b)) * grown + tail;
    const double bytes = elements * (double)hal_type_size(s->type);
    return bytes < 0x1p64 ? (uint64_t)bytes : UINT64_MAX;
}

/* Whether a product may have that many levels as kernels of their own: one batch of F32 or F64,
 * blocks that have elements, and max_workspace. */
static bool shape_allows(const ops_normwise_shape *s, uint32_t levels)
{
    const int64_t mn = s->m < s->n ? s->m : s->n, shortest = mn < s->k ? mn : s->k;
    return s->batch == 1 && (s->type == HAL_TYPE_F32 || s->type == HAL_TYPE_F64) &&
           shortest >> levels > 0 &&
           (!s->max_workspace || ops_normwise_workspace(s, levels) <= s->max_workspace);
}

/* The levels that take the least time as kernels of their own; 0: none gains. */
static uint32_t choose_apart(const hal_device_info *info, const ops_normwise_shape *s)
{
    const ops_normwise_tuning *tuning = &ops_tuning_select(info)->gemm.normwise;
    const int64_t mn = s->m < s->n ? s->m : s->n, shortest = mn < s->k ? mn : s->k;
    double least = cost_in_operations(info, s, 0) / tuning->min_gain;
    uint32_t chosen = 0;
    for (uint32_t l = 1; l <= OPS_NORMWISE_MAX_LEVELS && shortest >> l >= tuning->min_block; l++) {
        const double cost = cost_in_operations(info, s, l);
        if (cost < least && shape_allows(s, l)) {
            least = cost;
            chosen = l;
        }
    }
    return chosen;
}

uint32_t ops_normwise_choose_prepared(const hal_device_info *info, const ops_normwise_shape *shape,
                                      uint32_t forced)
{
    ops_normwise_shape prepared = *shape;
    uint32_t best = forced && shape_allows(shape, forced) ? forced : 0;
    for (uint32_t l = 1; l <= OPS_NORMWISE_MAX_LEVELS && !forced; l++) {
        prepared.b_levels = l;
        best = choose_apart(info, &prepared) == l ? l : best;
    }
    return best;
}

uint32_t ops_normwise_choose_inside(const hal_device_info *info, const ops_normwise_shape *s)
{
    const ops_normwise_tuning *tuning = &ops_tuning_select(info)->gemm.normwise;
    if (tuning->inside_min_length[1] == 0 || s->batch != 1 ||
        (s->type != HAL_TYPE_F32 && s->type != HAL_TYPE_F64)) {
        return 0;
    }
    const int64_t mn = s->m < s->n ? s->m : s->n, shortest = mn < s->k ? mn : s->k;
    double least = native_cost_in_operations(info, s, 0) / tuning->inside_min_gain;
    uint32_t chosen = 0;
    for (uint32_t l = 1; l <= OPS_NORMWISE_MAX_LEVELS && shortest >= tuning->inside_min_length[l];
         l++) {
        const double cost = native_cost_in_operations(info, s, l);
        if (cost < least) {
            least = cost;
            chosen = l;
        }
    }
    return chosen;
}

bool ops_normwise_takes(const hal_device_info *info, const ops_gemm_options *options)
{
    return ops_bilinear_can_combine(info, options->epilogue, options->input_count);
}

ops_normwise_levels ops_normwise_choose(const hal_device_info *info,
                                        const ops_gemm_options *options,
                                        const ops_normwise_shape *shape)
{
    const uint32_t forced = options->levels;
    ops_normwise_levels levels = {.inside = 0};
    if (options->impl != OPS_GEMM_PORTABLE && options->alpha != 0 && !shape->b_levels) {
        levels.inside = forced ? forced : ops_normwise_choose_inside(info, shape);
    }
    if (options->alpha == 0 || !ops_normwise_takes(info, options)) {
        levels.why_not = "the epilogue or alpha excludes them";
    } else if (forced) {
        levels.apart = shape_allows(shape, forced) ? forced : 0;
        levels.why_not = "type, batch, lengths or max_workspace exclude them";
    } else {
        levels.apart = choose_apart(info, shape);
        levels.why_not = "not faster by the cost model, or beyond max_workspace";
    }
    return levels;
}

uint32_t ops_normwise_sums_levels(const hal_device_info *info, const ops_gemm_options *options,
                                  const ops_normwise_shape *s)
{
    const uint32_t levels = ops_normwise_choose(info, options, s).apart;
    const int64_t rest = (s->m | s->n | s->k) & ((1 << levels) - 1);
    return (s->b_levels == 0 || s->b_levels == levels) && rest == 0 ? levels : 0;
}

/* `count` elements from `start` on of both axes of a matrix of rank 2 or 3 and one batch, as
 * [1, rows, columns]. */
static ops_tensor matrix_part(const ops_tensor *matrix, const int64_t start[2],
                              const int64_t count[2])
{
    ops_tensor part = *matrix;
    const int64_t *strides = matrix->stride + matrix->rank - 2;
    part.rank = 3;
    part.offset += (count[0] ? start[0] * strides[0] : 0) + (count[1] ? start[1] * strides[1] : 0);
    part.stride[2] = strides[1];
    part.stride[1] = strides[0];
    part.stride[0] = count[0] * count[1];
    part.shape[0] = 1;
    part.shape[1] = count[0];
    part.shape[2] = count[1];
    return part;
}

static int64_t whole_length(int64_t length, uint32_t levels)
{
    return length >> levels << levels;
}

ops_tensor ops_normwise_sums_layout(uint32_t levels, const ops_tensor *matrix)
{
    const int64_t *shape = matrix->shape + matrix->rank - 2;
    const ops_tensor by_rows = {NULL, matrix->type, 2, 0, {shape[0], shape[1]}, {shape[1], 1}};
    return ops_bilinear_sums_layout(levels, &by_rows);
}

static hal_status operand_sums(ops_context *context, uint32_t levels, ops_bilinear_operand operand,
                               const ops_tensor *matrix, const ops_tensor *sums)
{
    const ops_bilinear_pass pass = {
        .levels = levels, .from = matrix, .sums = sums, .operand = operand};
    return ops_bilinear_record(context, &pass);
}

/* The same, to a tensor that is made, in the matrix's order. */
static hal_status operand_sums_make(ops_context *context, uint32_t levels,
                                    ops_bilinear_operand operand, const ops_tensor *matrix,
                                    ops_tensor *sums)
{
    *sums = ops_bilinear_sums_layout(levels, matrix);
    const uint64_t bytes =
        (uint64_t)ops_tensor_get_element_count(sums) * hal_type_size(matrix->type);
    const hal_status status = ops_buffer_create(context, bytes, &sums->buffer);
    return status != HAL_OK ? status : operand_sums(context, levels, operand, matrix, sums);
}

hal_status ops_normwise_prepare(ops_context *context, uint32_t levels, const ops_tensor *b,
                                const ops_tensor *sums)
{
    const int64_t *shape = b->shape + b->rank - 2, start[2] = {0, 0};
    const int64_t count[2] = {whole_length(shape[0], levels), whole_length(shape[1], levels)};
    const ops_tensor part = matrix_part(b, start, count);
    return operand_sums(context, levels, OPS_BILINEAR_B, &part, sums);
}

/* The products, for the part of C whose lengths are multiples of 2^levels. */
static hal_status whole_multiply(ops_context *context, const ops_normwise_product *product,
                                 const ops_tensor *a, const ops_tensor *b, ops_tensor *products)
{
    const ops_gemm_options plain = {.size = sizeof plain,
                                    .precision = HAL_GEMM_ACCURATE,
                                    .impl = product->options->impl,
                                    .alpha = product->options->alpha};
    const ops_tensor *a_sums = product->a_sums, *b_sums = product->b_sums;
    ops_tensor own_a_sums = {0}, own_b_sums = {0};
    hal_status status = HAL_OK;
    if (!a_sums) {
        status = operand_sums_make(context, product->levels, OPS_BILINEAR_A, a, &own_a_sums);
        a_sums = &own_a_sums;
    }
    if (status == HAL_OK && !b_sums) {
        status = operand_sums_make(context, product->levels, OPS_BILINEAR_B, b, &own_b_sums);
        b_sums = &own_b_sums;
    }
    if (status == HAL_OK) {
        const int64_t shape[3] = {a_sums->shape[0], a_sums->shape[1], b_sums->shape[2]};
        status = ops_tensor_create(context, b->type, 3, shape, products);
    }
    if (status == HAL_OK) {
        status = product->multiply(context, &plain, a_sums, b_sums, products);
    }
    ops_tensor_release(&own_a_sums);
    ops_tensor_release(&own_b_sums);
    return status;
}

/* tail = alpha A B + beta C, of `lengths`, for the columns of A and rows of B that are left. `c`:
 * null where beta is 0. */
static hal_status tail_multiply(ops_context *context, const ops_normwise_product *product,
                                const ops_tensor *a, const ops_tensor *b, const int64_t lengths[2],
                                const ops_tensor *c, ops_tensor *tail)
{
    const ops_gemm_options *options = product->options;
    const int64_t shape[3] = {1, lengths[0], lengths[1]};
    ops_gemm_options plain = {.size = sizeof plain,
                              .precision = HAL_GEMM_ACCURATE,
                              .alpha = options->alpha,
                              .beta = options->beta};
    if (options->impl == OPS_GEMM_PORTABLE) { /* a native kernel need not take so few columns */
        plain.impl = OPS_GEMM_PORTABLE;
    }
    hal_status status = ops_tensor_create(context, a->type, 3, shape, tail);
    if (status == HAL_OK && options->beta != 0) {
        status = ops_copy(context, c, tail);
    }
    return status != HAL_OK ? status : product->multiply(context, &plain, a, b, tail);
}

/* The further inputs of the epilogue for the part of C, of `lengths`, from `start` on. */
static void inputs_part(const ops_gemm_options *options, const int64_t lengths[2],
                        const int64_t start[2], const int64_t count[2], ops_tensor *parts)
{
    const int64_t shape[3] = {1, lengths[0], lengths[1]};
    for (uint32_t i = 0; i < options->input_count; i++) {
        ops_tensor whole = options->inputs[i];
        whole.rank = 3;
        ops_broadcast_strides(&options->inputs[i], 3, shape, whole.stride);
        parts[i] = matrix_part(&whole, start, count);
    }
}

/* C's part from `start` on, of `count` elements, as an ordinary product. */
static hal_status edge_multiply(ops_context *context, const ops_normwise_product *product,
                                const int64_t start[2], const int64_t count[2])
{
    const ops_tensor *a = product->a, *b = product->b, *c = product->c;
    if (count[0] == 0 || count[1] == 0) {
        return HAL_OK;
    }
    const int64_t k = a->shape[a->rank - 1], rows[2] = {start[0], 0}, columns[2] = {0, start[1]};
    const int64_t shape_a[2] = {count[0], k}, shape_b[2] = {k, count[1]};
    const ops_tensor part_a = matrix_part(a, rows, shape_a),
                     part_b = matrix_part(b, columns, shape_b);
    const ops_tensor part_c = matrix_part(c, start, count);
    ops_tensor inputs[OPS_MAX_INPUTS];
    ops_gemm_options plain = *product->options;
    plain.precision = HAL_GEMM_ACCURATE;
    plain.prepared = NULL;
    plain.inputs = inputs;
    inputs_part(product->options, c->shape + c->rank - 2, start, count, inputs);
    return product->multiply(context, &plain, &part_a, &part_b, &part_c);
}

/* The part of C whose lengths are multiples of 2^levels: its products, what is left of k, and their
 * combination. */
static hal_status whole_compute(ops_context *context, const ops_normwise_product *product,
                                int64_t k, const int64_t lengths[2], const int64_t whole[2],
                                bool *c_is_written)
{
    const ops_gemm_options *options = product->options;
    const ops_tensor *a = product->a, *c = product->c;
    const int64_t whole_k = whole_length(k, product->levels), origin[2] = {0, 0};
    const int64_t shape_a[2] = {whole[0], whole_k}, shape_b[2] = {whole_k, whole[1]};
    const ops_tensor none = {0};
    const ops_tensor whole_a = a ? matrix_part(a, origin, shape_a) : none;
    const ops_tensor whole_b = matrix_part(product->b, origin, shape_b);
    const ops_tensor whole_c = c ? matrix_part(c, origin, whole) : none;
    const bool has_tail = whole_k < k || (options->beta != 0 && options->beta != 1);
    ops_tensor tail = {0}, products = {0}, inputs[OPS_MAX_INPUTS];
    hal_status status = HAL_OK;
    if (has_tail) {
        const int64_t start_a[2] = {0, whole_k}, start_b[2] = {whole_k, 0};
        const int64_t count_a[2] = {whole[0], k - whole_k}, count_b[2] = {k - whole_k, whole[1]};
        const ops_tensor tail_b = matrix_part(product->b, start_b, count_b);
        ops_tensor tail_a = tail_b; /* with sums in the place of A nothing is left of k */
        if (a) {
            tail_a = matrix_part(a, start_a, count_a);
        } else {
            tail_a.shape[1] = count_a[0];
            tail_a.shape[2] = 0;
        }
        status =
            tail_multiply(context, product, &tail_a, &tail_b, whole, c ? &whole_c : NULL, &tail);
    }
    if (status == HAL_OK) {
        status = whole_multiply(context, product, &whole_a, &whole_b, &products);
    }
    if (status == HAL_OK) {
        const ops_bilinear_pass pass = {.levels = product->levels,
                                        .combines = 1,
                                        .from = &products,
                                        .addend = has_tail             ? &tail
                                                  : options->beta == 1 ? &whole_c
                                                                       : NULL,
                                        .expression = options->epilogue,
                                        .inputs = inputs,
                                        .input_count = options->input_count,
                                        .blocks = c ? &whole_c : NULL,
                                        .sums = product->c_sums,
                                        .operand = OPS_BILINEAR_A};
        inputs_part(options, lengths, origin, whole, inputs);
        *c_is_written = true;
        status = ops_bilinear_record(context, &pass);
    }
    ops_tensor_release(&products);
    ops_tensor_release(&tail);
    return status;
}

hal_status ops_normwise_multiply(ops_context *context, const ops_normwise_product *product,
                                 bool *c_is_written)
{
    const ops_tensor *b = product->b;
    const int64_t *shape_b = b->shape + b->rank - 2;
    const int64_t m = product->a ? product->a->shape[product->a->rank - 2]
                                 : product->a_sums->shape[1] << product->levels;
    const int64_t n = shape_b[1], lengths[2] = {m, n};
    const int64_t whole[2] = {whole_length(m, product->levels), whole_length(n, product->levels)};
    *c_is_written = false;
    hal_status status = whole_compute(context, product, shape_b[0], lengths, whole, c_is_written);
    const int64_t below[2] = {whole[0], 0}, below_count[2] = {m - whole[0], n};
    const int64_t right[2] = {0, whole[1]}, right_count[2] = {whole[0], n - whole[1]};
    if (status == HAL_OK) {
        status = edge_multiply(context, product, below, below_count);
    }
    return status != HAL_OK ? status : edge_multiply(context, product, right, right_count);
}
