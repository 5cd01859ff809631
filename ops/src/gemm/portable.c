/* The portable implementation: plans a dispatch of the IR kernel of gemm/kernel.c. Called by
 * gemm.c, and by
 * gemm/split_k.c for the parts of a product. */
#include "cost.h"
#include "split_k.h"

#include <ops/index.h>

#include <stddef.h>
#include <string.h>

/* Rows of C from which preparing B pays on lanes. */
#define MANY_ROWS 64

typedef ops_gemm_task task;

/* C by columns is C' by rows. Lanes run along columns: few columns and many rows are exchanged, and
 * operands of which only A has its lines side by side. */
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
           (product->b.column_stride != 1 && product->a.row_stride == 1 && c->rows >= MANY_ROWS);
}

static void transpose(ops_matrix *matrix)
{
    int64_t rows = matrix->rows, row_stride = matrix->row_stride;
    matrix->rows = matrix->columns;
    matrix->columns = rows;
    matrix->row_stride = matrix->column_stride;
    matrix->column_stride = row_stride;
}

/* C' = B' A'. */
static void swap(ops_product *product)
{
    ops_matrix a = product->a;
    product->a = product->b;
    product->b = a;
    transpose(&product->a);
    transpose(&product->b);
    transpose(&product->c);
    for (uint32_t i = 0; i < product->options->input_count; i++) {
        transpose(&product->inputs[i]);
    }
}

/* Lanes read B along its columns, again for every block of rows: from so many rows on it pays to
 * lay the columns side by side first. */
static int b_is_strided(const ops_context *context, const ops_product *product)
{
    return context->info->kind == HAL_DEVICE_CPU && product->b.column_stride != 1 &&
           product->c.rows >= MANY_ROWS && product->b.rows > 0;
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
    if (!status) {
        status = ops_copy(context, &across, copy);
    }
    *b = ops_matrix_of(copy, shape);
    return status;
}

/* In parts of k where that pays and there is memory for them. */
static hal_status run(ops_context *context, task *t)
{
    ops_entry *entry;
    hal_status status = ops_gemm_plan_task(context, t);
    if (status) {
        return status;
    }
    const uint32_t depth =
        context->forced_split_depth
            ? context->forced_split_depth
            : ops_gemm_choose_split_k(context->info, &t->plan, &t->work, t->product.batch);
    if (depth && depth < t->work.k && t->product.batch == 1) {
        status = ops_gemm_split_k(context, t, depth);
        if (status != HAL_ERROR_OUT_OF_MEMORY) {
            return status;
        }
    }
    status = ops_gemm_find_kernel(context, t, &entry);
    return status ? status : ops_gemm_record(context, t, entry);
}

hal_status ops_gemm_portable(ops_context *context, const ops_product *product)
{
    task t;
    ops_tensor copy = {0};
    hal_status status = HAL_OK;
    memcpy(&t.product, product,
           offsetof(ops_product, inputs) + product->options->input_count * sizeof(ops_matrix));
    t.plan = (ops_gemm_plan){.swapped = 0};
    t.k_all = (uint32_t)product->a.columns;
    if (prefer_transposed(context, product)) {
        swap(&t.product);
        t.plan.swapped = 1;
    }
    if (b_is_strided(context, &t.product)) {
        status = pack_b(context, &t.product, &copy);
    }
    if (!status) {
        status = run(context, &t);
    }
    ops_tensor_release(&copy);
    return status;
}
