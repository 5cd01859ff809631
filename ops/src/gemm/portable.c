/* The portable implementation: prepares operands and chooses split-K or one kernel. Called by
 * gemm.c. */
#include "emitter.h"
#include "split_k.h"
#include "tensor/loop_limit.h"

#include <ops/index.h>

#include <stddef.h>
#include <string.h>

/* A C that is stored by columns is computed as its transpose. A CPU's lanes run along columns, so
 * it also transposes products with few columns and many rows, and those where only A has contiguous
 * lines. */
static int prefer_transposed(const ops_context *context, const ops_product *product)
{
    const ops_matrix *c = &product->c;
    if (c->column_stride != 1) {
        return 1;
    }
    if (context->info->kind != HAL_DEVICE_CPU) {
        return 0;
    }
    return (c->columns < 16 && c->rows > 4 * c->columns) ||
           (product->b.column_stride != 1 && product->a.row_stride == 1 &&
            c->rows >= OPS_GEMM_MANY_ROWS);
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
static int b_is_strided(const ops_context *context, const ops_product *product)
{
    return context->info->kind == HAL_DEVICE_CPU && product->b.column_stride != 1 &&
           product->c.rows >= OPS_GEMM_MANY_ROWS && product->b.rows > 0;
}

static hal_status pack_b(ops_context *context, ops_product *product, ops_tensor *copy)
{
    ops_matrix *b = &product->b;
    int64_t batch = b->batch_stride ? product->batch : 1;
    const int64_t shape[3] = {batch, b->rows, b->columns};
    const ops_tensor across = {b->tensor->buffer,
                               b->tensor->type,
                               3,
                               b->tensor->offset,
                               {batch, b->rows, b->columns},
                               {b->batch_stride, b->row_stride, b->column_stride}};
    hal_status status = ops_tensor_create(context, across.type, 3, shape, copy);
    if (!status && !product->is_dry) {
        status = ops_copy(context, &across, copy);
    }
    *b = ops_matrix_of(copy, shape);
    return status;
}

/* The k of one kernel whose loops the device can execute; a multiple of OPS_GEMM_DEPTH_STEP. A
 * kernel has at most one iteration for each step of k. */
static int64_t longest_k(const ops_context *context, const ops_gemm_options *options)
{
    const uint64_t results = OPS_GEMM_MAX_SUMS * ops_loops_of(options->epilogue);
    const int64_t steps = ops_loop_limit(context, 0, results), least = OPS_GEMM_DEPTH_STEP;
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
    for (int64_t i = 0; i < t->product.batch && !status; i++) {
        ops_gemm_task one = *t;
        ops_tensor tensors[3 + OPS_GEMM_MAX_INPUTS];
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
    return status;
}

/* Tells the tiles as they are chosen, before they are fitted to where operands begin. */
static void portable_tell(const ops_gemm_task *t, int64_t longest, uint32_t depth)
{
    const ops_gemm_tiles *s = t->given ? t->given : &t->plan.tiles;
    ops_gemm_text *text = t->product.text;
    ops_gemm_tell(text, "portable: tile %u x %u x %u, %u x %u for each work-item, %s", s->block_m,
                  s->block_n, s->block_k, s->thread_m, s->thread_n,
                  s->matrix   ? "matrix units"
                  : s->unroll ? "split-K in the group"
                  : s->stages ? "staged in shared memory"
                              : "direct");
    if (t->work.k > longest) {
        ops_gemm_tell(text, ", parts of %lld in k: the device limits loops", (long long)longest);
    } else if (depth && depth < t->work.k && t->product.batch == 1) {
        ops_gemm_tell(text, ", split-K in parts of %u: few elements of c", depth);
    }
    ops_gemm_tell(text, "%s", t->plan.swapped ? ", as the transposed product" : "");
    if (t->plan.scale_only) {
        ops_gemm_tell(text, "; k or alpha is 0");
    } else if (text->native_needs) {
        ops_gemm_tell(text, "; a native kernel needs %s", text->native_needs);
    } else {
        ops_gemm_tell(text, "; as options.impl says");
    }
}

/* Whether there are tiles and parts of k to choose from: on a GPU where one kernel can have k. */
static int gpu_has_ways(const ops_context *context, const ops_gemm_task *t)
{
    return ops_gemm_is_gpu(context->info) && t->k_all > 0 &&
           t->k_all <= longest_k(context, t->product.options);
}

/* Chooses tiles and parts of k on a GPU, for products whose k one kernel can have. `candidate` is
 * valid where t->given is set. */
static hal_status choose_way(ops_context *context, ops_gemm_task *t, ops_gemm_candidate *candidate)
{
    const uint32_t number = t->product.options->candidate;
    const uint32_t forced = context->tuning->gemm.split_depth;
    const int has_ways = gpu_has_ways(context, t);
    candidate->depth = forced;
    if (number > 0 && !has_ways) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "ops_gemm: options.candidate: expected 0, since %s has one portable "
                              "kernel for this product, got %u",
                              context->info->name, number);
    }
    if (!has_ways) {
        return HAL_OK;
    }
    t->given = &candidate->tiles;
    const hal_status status =
        ops_gemm_find_way(context, t, !forced, number > 0 ? number : 1, candidate);
    candidate->depth = forced ? forced : candidate->depth;
    return status;
}

/* Records split-K where it is faster and there is memory for it, or where one kernel's loops would
 * be too long for the device; else one kernel. `keep`: the product of the caller, for the
 * product cache; null: it is not kept. */
static hal_status task_record(ops_context *context, ops_gemm_task *t, const ops_product *keep)
{
    ops_gemm_candidate candidate;
    ops_entry *entry;
    hal_status status = choose_way(context, t, &candidate);
    if (!status) {
        status = ops_gemm_plan_task(context, t);
    }
    if (status) {
        return status;
    }
    const int64_t longest = longest_k(context, t->product.options);
    const uint32_t depth = candidate.depth;
    if (t->product.text) {
        portable_tell(t, longest, depth);
    }
    if (t->product.is_dry) {
        return HAL_OK;
    }
    if (t->work.k > longest) {
        return record_long(context, t, (uint32_t)longest);
    }
    if (depth && depth < t->work.k && t->product.batch == 1) {
        status = ops_gemm_split_k(context, t, depth, keep);
        if (status != HAL_ERROR_OUT_OF_MEMORY) {
            return status;
        }
        *t->product.lacked_memory = 1;
        t->given = NULL; /* one kernel, with its own tiles */
        status = ops_gemm_plan_task(context, t);
        if (status) {
            return status;
        }
    }
    ops_product_dispatch kept;
    status = ops_gemm_find_kernel(context, t, &entry);
    if (!status) {
        status = ops_gemm_record(context, t, entry, &kept);
    }
    if (!status && keep) {
        ops_product_cache_insert(context, keep, &kept, 1, NULL, 0);
    }
    return status;
}

/* The task of a product, transposed where that is better. */
static void task_begin(const ops_context *context, const ops_product *product, ops_gemm_task *t)
{
    memcpy(&t->product, product,
           offsetof(ops_product, inputs) + product->options->input_count * sizeof(ops_matrix));
    t->plan = (ops_gemm_plan){.swapped = 0};
    t->given = NULL;
    t->k_all = (uint32_t)product->a.columns;
    t->batch_first = 0;
    if (prefer_transposed(context, product)) {
        product_transpose(&t->product);
        t->plan.swapped = 1;
    }
}

double ops_gemm_portable_ns(ops_context *context, const ops_product *product)
{
    ops_gemm_task t;
    ops_gemm_candidate candidate;
    task_begin(context, product, &t);
    const int is_split = !context->tuning->gemm.split_depth;
    return gpu_has_ways(context, &t) &&
                   ops_gemm_find_way(context, &t, is_split, 1, &candidate) == HAL_OK
               ? candidate.ns
               : 0;
}

hal_status ops_gemm_portable(ops_context *context, const ops_product *product)
{
    ops_gemm_task t;
    ops_tensor copy = {0};
    hal_status status = HAL_OK;
    task_begin(context, product, &t);
    if (b_is_strided(context, &t.product)) {
        status = pack_b(context, &t.product, &copy);
    }
    if (!status) {
        status = task_record(context, &t, copy.buffer ? NULL : product);
    }
    ops_tensor_release(&copy);
    return status;
}
