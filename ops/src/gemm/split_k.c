/* Split-K, for products with few elements of C and a long k, such as gradients of weights. The
 * parts of k are a batch that steps along k, computed by the kernels of other products. The order
 * of additions depends on shapes and the device's info alone. */
#include "split_k.h"

/* Batch i multiplies A's columns and B's rows from i * depth on; the last one may have fewer. */
static void describe_parts(const ops_gemm_task *whole, const ops_gemm_options *plain,
                           const ops_tensor *sums, uint32_t depth, ops_gemm_task *parts)
{
    const ops_product *p = &whole->product;
    parts->key = (ops_gemm_kernel_key){.swapped = 0};
    parts->given = whole->given;
    parts->k_all = whole->k_all;
    parts->is_general = false;
    parts->batch_first = 0;
    ops_product *q = &parts->product;
    q->options = plain;
    q->precision = plain->precision;
    q->accumulator = p->accumulator;
    q->batch = (uint32_t)sums->shape[0];
    q->a = p->a;
    q->a.columns = depth;
    q->a.batch_stride = p->a.separable ? 0 : depth * p->a.column_stride;
    q->b = p->b;
    q->b.rows = depth;
    q->b.batch_stride = p->b.separable ? 0 : depth * p->b.row_stride;
    q->c = ops_matrix_of(sums, sums->shape);
}

/* C = epilogue(alpha * (sum of the parts) + beta * C). */
static void describe_reduction(const ops_gemm_task *whole, const ops_tensor *sums,
                               ops_gemm_task *reduction)
{
    const ops_product *p = &whole->product;
    const int64_t count = sums->shape[0], m = p->c.rows, n = p->c.columns;
    ops_product_copy(&reduction->product, p);
    reduction->key = (ops_gemm_kernel_key){.swapped = whole->key.swapped, .reduce_partials = 1};
    reduction->given = NULL;
    reduction->k_all = (uint32_t)count;
    reduction->is_general = false;
    reduction->batch_first = whole->batch_first;
    reduction->product.a = (ops_matrix){sums, m, count, n, m * n, 0, NULL};
    reduction->product.b = (ops_matrix){sums, count, n, m * n, 1, 0, NULL};
}

/* Finds both kernels before it records the first, so that a failure or a deferred compilation
 * records nothing. `kept` has no kernels if the second one is new, which may evict the first. */
static hal_status record_both(ops_context *context, ops_gemm_task *parts, ops_gemm_task *reduction,
                              ops_product_dispatch kept[2])
{
    ops_entry *entry;
    HAL_TRY(ops_gemm_task_find_kernel(context, parts, &entry));
    const ops_entry first = *entry; /* the second lookup may evict it */
    const uint64_t insertions = context->kernels.insertions;
    hal_kernel_retain(first.kernel);
    hal_status status = ops_gemm_task_find_kernel(context, reduction, &entry);
    if (status == HAL_OK) {
        status = ops_gemm_task_record(context, parts, &first, &kept[0]);
    }
    if (status == HAL_OK) {
        status = ops_gemm_task_record(context, reduction, entry, &kept[1]);
    }
    if (context->kernels.insertions != insertions) {
        kept[0].kernel = NULL;
    }
    hal_kernel_release(first.kernel);
    return status;
}

hal_status ops_gemm_split_k(ops_context *context, const ops_gemm_task *task, uint32_t depth,
                            const ops_product *keep)
{
    const ops_product *p = &task->product;
    const ops_gemm_options plain = {.size = sizeof plain, .alpha = 1, .precision = p->precision};
    const int64_t count = ((int64_t)task->k_all + depth - 1) / depth;
    const int64_t shape[3] = {count, p->c.rows, p->c.columns};
    ops_product_dispatch kept[2];
    ops_gemm_task parts, reduction;
    ops_tensor sums;
    HAL_TRY(ops_tensor_create(context, p->accumulator, 3, shape, &sums));
    describe_parts(task, &plain, &sums, depth, &parts);
    describe_reduction(task, &sums, &reduction);
    hal_status status = ops_gemm_task_complete(context, &parts);
    if (status == HAL_OK) {
        status = ops_gemm_task_complete(context, &reduction);
    }
    if (status == HAL_OK) {
        status = record_both(context, &parts, &reduction, kept);
    }
    if (status == HAL_OK && keep) {
        const int64_t elements = count * shape[1] * shape[2];
        ops_gemm_cache_keep(context, keep, kept, 2, sums.buffer,
                            (uint64_t)elements * hal_type_size(p->accumulator));
    }
    ops_tensor_release(&sums);
    return status;
}
