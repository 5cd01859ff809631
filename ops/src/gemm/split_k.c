/* Products with few elements of C and a long k, as the gradients of weights are: parts of k are
 * computed side by side, by the kernels that other products have, as a batch that steps along k; a
 * second kernel adds the parts of each element and finishes it. ops_gemm_choose_split_k says which
 * products; the order of additions depends on shapes and the device's info alone. Called by
 * gemm/portable.c. */
#include "split_k.h"

#include <stddef.h>
#include <string.h>

/* Batch i is A's columns and B's rows from i * depth on. The last one ends with them. */
static void describe_parts(const ops_gemm_task *whole, const ops_gemm_options *plain,
                           const ops_tensor *sums, uint32_t depth, ops_gemm_task *parts)
{
    const ops_product *p = &whole->product;
    parts->plan = (ops_gemm_plan){.swapped = 0};
    parts->k_all = whole->k_all;
    ops_product *q = &parts->product;
    q->options = plain;
    q->accumulator = p->accumulator;
    q->batch = (uint32_t)sums->shape[0];
    q->a = p->a;
    q->a.columns = depth;
    q->a.batch_stride = depth * p->a.column_stride;
    q->b = p->b;
    q->b.rows = depth;
    q->b.batch_stride = depth * p->b.row_stride;
    q->c = ops_matrix_of(sums, sums->shape);
}

/* C = epilogue(alpha * (the sum of the parts) + beta * C). */
static void describe_reduction(const ops_gemm_task *whole, const ops_tensor *sums,
                               ops_gemm_task *adding)
{
    const ops_product *p = &whole->product;
    const int64_t count = sums->shape[0], m = p->c.rows, n = p->c.columns;
    memcpy(&adding->product, p,
           offsetof(ops_product, inputs) + p->options->input_count * sizeof(ops_matrix));
    adding->plan = (ops_gemm_plan){.swapped = whole->plan.swapped, .reduce_partials = 1};
    adding->k_all = (uint32_t)count;
    adding->product.a = (ops_matrix){sums, m, count, n, m * n, 0};
    adding->product.b = (ops_matrix){sums, count, n, m * n, 1, 0};
}

/* The kernels are there before the first is recorded: a failure, or a kernel that is not made now,
 * leaves nothing. */
static hal_status record_both(ops_context *context, ops_gemm_task *parts, ops_gemm_task *adding)
{
    ops_entry *entry;
    hal_status status = ops_gemm_find_kernel(context, parts, &entry);
    if (status) {
        return status;
    }
    const ops_entry first = *entry; /* the second one may make the context forget it */
    hal_kernel_retain(first.kernel);
    status = ops_gemm_find_kernel(context, adding, &entry);
    if (!status) {
        status = ops_gemm_record(context, parts, &first);
    }
    if (!status) {
        status = ops_gemm_record(context, adding, entry);
    }
    hal_kernel_release(first.kernel);
    return status;
}

hal_status ops_gemm_split_k(ops_context *context, const ops_gemm_task *task, uint32_t depth)
{
    const ops_product *p = &task->product;
    const ops_gemm_options plain = {
        .size = sizeof plain, .alpha = 1, .precision = p->options->precision};
    const int64_t count = ((int64_t)task->k_all + depth - 1) / depth;
    const int64_t shape[3] = {count, p->c.rows, p->c.columns};
    ops_gemm_task parts, adding;
    ops_tensor sums;
    hal_status status = ops_tensor_create(context, p->accumulator, 3, shape, &sums);
    if (status) {
        return status;
    }
    describe_parts(task, &plain, &sums, depth, &parts);
    describe_reduction(task, &sums, &adding);
    status = ops_gemm_plan_task(context, &parts);
    if (!status) {
        status = ops_gemm_plan_task(context, &adding);
    }
    if (!status) {
        status = record_both(context, &parts, &adding);
    }
    ops_tensor_release(&sums);
    return status;
}
