/* The portable implementation, see portable.h: prepares operands and chooses split-K or one
 * kernel. */
#include "portable.h"

#include "config.h"
#include "emitter.h"
#include "split_k.h"
#include "tensor/allocation.h"
#include "tensor/loop_limit.h"

#include <ops/index.h>

/* A C that is stored by columns is computed as its transpose. A CPU's lanes run along columns, so
 * it also transposes products with few columns and many rows, and those where only A has contiguous
 * lines. */
static bool prefer_transposed(const ops_context *context, const ops_product *product)
{
    const ops_matrix *c = &product->c;
    if (c->separable) {
        return false; /* digits are of columns */
    }
    if (c->column_stride != 1) {
        return true;
    }
    if (product->a.separable || product->b.separable) {
        return false;
    }
    const int64_t many_rows = context->tuning->gemm.many_rows;
    if (many_rows == 0) {
        return false;
    }
    return (c->columns < 16 && c->rows > 4 * c->columns) ||
           (product->b.column_stride != 1 && product->a.row_stride == 1 && c->rows >= many_rows);
}

static void matrix_transpose(ops_matrix *matrix)
{
    int64_t rows = matrix->rows, row_stride = matrix->row_stride;
    matrix->rows = matrix->columns;
    matrix->columns = rows;
    matrix->row_stride = matrix->column_stride;
    matrix->column_stride = row_stride;
}

/* C' = B' A'. */
static void product_transpose(ops_product *product)
{
    ops_matrix a = product->a;
    product->a = product->b;
    product->b = a;
    matrix_transpose(&product->a);
    matrix_transpose(&product->b);
    matrix_transpose(&product->c);
    for (uint32_t i = 0; i < product->options->input_count; i++) {
        matrix_transpose(&product->inputs[i]);
    }
}

/* A CPU's lanes read along the columns of B for every block of rows: many rows pay for a copy with
 * contiguous rows. */
static bool b_is_strided(const ops_context *context, const ops_product *product)
{
    const int64_t many_rows = context->tuning->gemm.many_rows;
    return many_rows > 0 && product->b.column_stride != 1 && product->c.rows >= many_rows &&
           product->b.rows > 0 && !product->a.separable && !product->b.separable;
}

/* Replaces B by a layout by rows, without a buffer. */
static void b_set_packed(ops_product *product, ops_tensor *layout)
{
    ops_matrix *b = &product->b;
    const int64_t batch = b->batch_stride ? product->batch : 1;
    const int64_t shape[3] = {batch, b->rows, b->columns};
    *layout = (ops_tensor){.type = b->tensor->type,
                           .rank = 3,
                           .shape = {batch, b->rows, b->columns},
                           .stride = {b->rows * b->columns, b->columns, 1}};
    *b = ops_matrix_of(layout, shape);
}

/* A kernel has at most one iteration for each step of k, and general ones a loop around them, of
 * blocks of at least 2 steps. */
int64_t ops_gemm_longest_k(const ops_context *context, const ops_gemm_options *options)
{
    const uint64_t results = OPS_GEMM_MAX_SUMS * ops_loops_of(options ? options->epilogue : NULL);
    const int64_t limit = ops_loop_limit(context, 0, results), least = OPS_GEMM_DEPTH_STEP;
    const int64_t steps = limit - limit / 3;
    return steps < least ? least : steps / least * least;
}

/* The tensor of one matrix of the batch. */
static ops_tensor matrix_tensor(const ops_matrix *matrix, int64_t batch)
{
    const ops_tensor *all = matrix->tensor;
    return (ops_tensor){all->buffer,
                        all->type,
                        2,
                        all->offset + batch * matrix->batch_stride,
                        {matrix->rows, matrix->columns},
                        {matrix->row_stride, matrix->column_stride}};
}

/* Records products in parts of k, one of the batch after the other: the parts are a batch too. */
static hal_status record_long(ops_context *context, const ops_gemm_task *t, uint32_t depth)
{
    const uint32_t count = t->product.options->input_count;
    hal_status status = HAL_OK;
    ops_tensor *tensors =
        ops_scratch_take(&context->scratch, "ops_gemm", (3 + count) * sizeof *tensors);
    if (!tensors) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    for (int64_t i = 0; i < t->product.batch && status == HAL_OK; i++) {
        ops_gemm_task one = *t;
        ops_matrix *matrices[3 + OPS_GEMM_MAX_INPUTS] = {&one.product.a, &one.product.b,
                                                         &one.product.c};
        for (uint32_t m = 0; m < 3 + count; m++) {
            matrices[m] = m < 3 ? matrices[m] : &one.product.inputs[m - 3];
            tensors[m] = matrix_tensor(matrices[m], i);
            matrices[m]->tensor = &tensors[m];
            matrices[m]->batch_stride = 0;
        }
        one.product.batch = 1;
        one.batch_first = (uint32_t)i;
        status = ops_gemm_split_k(context, &one, depth, NULL);
    }
    ops_scratch_return(&context->scratch, tensors);
    return status;
}

/* Whether there are tiles and parts of k to choose from: on a GPU where one kernel can have k. */
static bool task_has_candidates(const ops_context *context, const ops_gemm_task *t)
{
    return ops_gemm_is_gpu(context->info) && t->k_all > 0 &&
           t->k_all <= ops_gemm_longest_k(context, t->product.options);
}

/* The task of a product, transposed where that is better. */
static void task_begin(const ops_context *context, const ops_product *product, ops_gemm_task *t)
{
    ops_product_copy(&t->product, product);
    t->key = (ops_gemm_kernel_key){.swapped = 0};
    t->given = NULL;
    t->k_all = (uint32_t)product->a.columns;
    t->batch_first = 0;
    t->is_general = false;
    if (prefer_transposed(context, product)) {
        product_transpose(&t->product);
        t->key.swapped = 1;
    }
}

static hal_status candidate_find(const ops_context *context, const ops_gemm_shape *shape,
                                 const ops_gemm_options *options, bool has_parts, uint32_t rank,
                                 ops_gemm_candidate *candidate)
{
    if (options->config) {
        return ops_gemm_config_find(context->info, shape, options->config, candidate)
                   ? HAL_OK
                   : hal_status_set(HAL_ERROR_UNSUPPORTED,
                                    "ops_gemm: options.config: expected one of the portable "
                                    "kernels of %s, got \"%s\"",
                                    context->info->name, options->config);
    }
    const uint32_t count =
        ops_gemm_find_candidate(context->info, shape, has_parts, rank, candidate);
    return rank <= count
               ? HAL_OK
               : hal_status_set(HAL_ERROR_UNSUPPORTED,
                                "ops_gemm_get_config: rank: expected at most %u, the portable "
                                "kernels of %s, got %u",
                                count, context->info->name, rank);
}

/* Chooses tiles and parts of k. */
static hal_status task_choose(const ops_context *context, const ops_gemm_task *t, uint32_t without,
                              uint32_t rank, ops_gemm_plan *plan)
{
    const ops_gemm_options *options = t->product.options;
    const uint32_t forced = context->tuning->gemm.split_depth;
    if (!task_has_candidates(context, t)) {
        if (rank > 1 || options->config) {
            return hal_status_set(HAL_ERROR_UNSUPPORTED,
                                  "ops_gemm: options.config: expected none, since %s has one "
                                  "portable kernel for this product, got %s",
                                  context->info->name, options->config ? options->config : "one");
        }
        ops_gemm_task_choose_tiles(context, t, &plan->tile);
        plan->split = forced;
        return HAL_OK;
    }
    const ops_gemm_shape shape = ops_gemm_task_shape(context, t);
    const bool has_parts = !forced && !(without & OPS_GEMM_WITHOUT_SPLIT);
    ops_gemm_candidate candidate;
    HAL_TRY(candidate_find(context, &shape, options, has_parts, rank, &candidate));
    plan->tile = candidate.tiles;
    plan->split = forced ? forced : candidate.depth;
    plan->ns = candidate.ns;
    return HAL_OK;
}

hal_status ops_gemm_portable_plan(ops_context *context, const ops_product *product,
                                  uint32_t without, uint32_t rank, ops_gemm_plan *plan)
{
    ops_gemm_task t;
    ops_tensor packed;
    task_begin(context, product, &t);
    const int64_t longest = ops_gemm_longest_k(context, product->options);
    if (t.k_all > longest && (product->a.separable || product->b.separable)) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "ops_array_convolution: x: expected at most %lld products for each "
                              "result, which %s adds in a loop, got %u",
                              (long long)longest, context->info->name, t.k_all);
    }
    plan->path = OPS_GEMM_PATH_PORTABLE;
    plan->is_transposed = t.key.swapped;
    plan->ns = 0;
    if (b_is_strided(context, &t.product)) {
        b_set_packed(&t.product, &packed);
        plan->copies |= OPS_GEMM_PACKS_B;
    }
    HAL_TRY(ops_gemm_task_describe(context, &t));
    HAL_TRY(task_choose(context, &t, without, rank, plan));
    plan->is_serial = t.k_all > longest;
    if (plan->is_serial) {
        plan->split = (uint32_t)longest;
    } else if (plan->split >= t.k_all || product->batch > 1 || (without & OPS_GEMM_WITHOUT_SPLIT)) {
        plan->split = 0;
    }
    plan->spares = plan->split && !plan->is_serial ? OPS_GEMM_WITHOUT_SPLIT : 0;
    return HAL_OK;
}

static hal_status kernel_record(ops_context *context, ops_gemm_task *t, const ops_product *keep)
{
    ops_entry *entry;
    ops_product_dispatch kept;
    HAL_TRY(ops_gemm_task_complete(context, t));
    HAL_TRY(ops_gemm_task_find_kernel(context, t, &entry));
    HAL_TRY(ops_gemm_task_record(context, t, entry, &kept));
    if (keep) {
        ops_gemm_cache_keep(context, keep, &kept, 1, NULL, 0);
    }
    return HAL_OK;
}

hal_status ops_gemm_portable_record(ops_context *context, const ops_product *product,
                                    const ops_gemm_plan *plan, const ops_product *keep)
{
    ops_gemm_task t;
    ops_tensor packed = {0};
    hal_status status = HAL_OK;
    task_begin(context, product, &t);
    /* Parts of k have tiles of their own where there are no candidates to choose from. */
    t.given = plan->split && plan->ns == 0 ? NULL : &plan->tile;
    if (plan->copies & OPS_GEMM_PACKS_B) {
        const ops_tensor across = ops_matrix_view(&t.product.b, product->batch);
        b_set_packed(&t.product, &packed);
        keep = NULL;
        status = ops_tensor_create(context, packed.type, 3, packed.shape, &packed);
        if (status == HAL_OK) {
            status = ops_copy(context, &across, &packed);
        }
    }
    if (status == HAL_OK) {
        status = plan->is_serial ? record_long(context, &t, plan->split)
                 : plan->split   ? ops_gemm_split_k(context, &t, plan->split, keep)
                                 : kernel_record(context, &t, keep);
    }
    ops_tensor_release(&packed);
    return status;
}
