/* Implicit GEMM, see windows.h. */
#include "windows.h"

#include "describe.h"
#include "portable.h"
#include "tiles.h"
#include "kernels/functions.h"
#include "tensor/expression.h"

#include <ops/gemm.h>

/* A product of windows, and what its matrices refer to. */
typedef struct windows_product {
    ops_product product;
    ops_gemm_options options;
    ops_gemm_separable a, b, c;
} windows_product;

/* The elements of the axes from `first` on. */
static int64_t volume_of(const ops_tensor *tensor, uint32_t first)
{
    int64_t volume = 1;
    for (uint32_t i = first; i < tensor->rank; i++) {
        volume *= tensor->shape[i];
    }
    return volume;
}

/* Images and places, whose windows are `step` elements apart. */
static bool digits_of_places(const ops_tensor *of, const ops_tensor *y, uint32_t rank,
                             const int64_t *step, ops_gemm_digits *d)
{
    bool fits = ops_gemm_digits_add(d, y->shape[0], of->stride[0]);
    for (uint32_t i = 0; i < rank && fits; i++) {
        fits = ops_gemm_digits_add(d, y->shape[2 + i], of->stride[2 + i] * (step ? step[i] : 1));
    }
    return fits;
}

/* The elements of a window, and its channels. */
static bool digits_of_window(const ops_tensor *x, const ops_tensor *w,
                             const ops_gemm_windows_form *f, ops_gemm_digits *d)
{
    bool fits = true;
    for (uint32_t i = 0; i < f->rank && fits; i++) {
        fits = ops_gemm_digits_add(d, w->shape[1 + i], x->stride[2 + i] * f->dilation[i]);
    }
    return fits && ops_gemm_digits_add(d, w->shape[1 + f->rank], x->stride[1]);
}

/* The elements of one line of weights [O, window, C]. */
static bool digits_of_weights(const ops_tensor *w, ops_gemm_digits *d)
{
    bool fits = true;
    for (uint32_t i = 1; i < w->rank && fits; i++) {
        fits = ops_gemm_digits_add(d, w->shape[i], w->stride[i]);
    }
    return fits;
}

static bool is_unit(const ops_gemm_digits *d)
{
    return d->stride[d->count - 1] == 1 || (d->count == 1 && d->length[0] == 1);
}

/* Sets the stride of the line and of k: those of a matrix, or of a separable one a 1 for the
 * contiguous direction. False where there is none. */
static bool operand_set(const ops_gemm_separable *s, ops_matrix *matrix, int64_t *line, int64_t *k)
{
    const bool by_k = is_unit(&s->k), by_line = is_unit(&s->line);
    if (s->k.count == 1 && s->line.count == 1) {
        *line = s->line.length[0] == 1 ? 1 : s->line.stride[0];
        *k = s->k.length[0] == 1 ? 1 : s->k.stride[0];
        return by_k || by_line;
    }
    const bool prefers_line = by_line && (!by_k || s->k.length[s->k.count - 1] % 8 != 0);
    matrix->separable = s;
    *line = prefers_line;
    *k = !prefers_line && by_k;
    return by_k || by_line;
}

/* Sets the stride of C's columns, or makes C separable. */
static void result_set(const ops_gemm_separable *s, ops_matrix *c)
{
    if (s->line.count == 1) {
        c->column_stride = s->line.length[0] == 1 ? 1 : s->line.stride[0];
    } else {
        c->column_stride = is_unit(&s->line) ? 1 : s->line.stride[s->line.count - 1];
        c->separable = s;
    }
}

static bool describe_forward(const ops_gemm_windows_form *f, const ops_tensor *x,
                             const ops_tensor *w, const ops_tensor *y, windows_product *p)
{
    const int64_t outputs = w->shape[0] / f->groups, inputs = w->shape[1 + f->rank];
    ops_product *q = &p->product;
    const int64_t n = y->shape[0] * volume_of(y, 2), k = volume_of(w, 1);
    q->a = (ops_matrix){w, outputs, k, 0, 0, outputs * w->stride[0], NULL};
    q->b = (ops_matrix){x, k, n, 0, 0, inputs * x->stride[1], NULL};
    q->c = (ops_matrix){y, outputs, n, y->stride[1], 0, outputs * y->stride[1], NULL};
    if (!digits_of_weights(w, &p->a.k) || !ops_gemm_digits_add(&p->a.line, outputs, w->stride[0]) ||
        !digits_of_places(x, y, f->rank, f->stride, &p->b.line) ||
        !digits_of_window(x, w, f, &p->b.k) || !digits_of_places(y, y, f->rank, NULL, &p->c.line)) {
        return false;
    }
    result_set(&p->c, &q->c);
    return operand_set(&p->a, &q->a, &q->a.row_stride, &q->a.column_stride) &&
           operand_set(&p->b, &q->b, &q->b.column_stride, &q->b.row_stride);
}

static bool describe_gradient(const ops_gemm_windows_form *f, const ops_tensor *x,
                              const ops_tensor *w, const ops_tensor *y, windows_product *p)
{
    const int64_t outputs = w->shape[0] / f->groups, inputs = w->shape[1 + f->rank];
    ops_product *q = &p->product;
    const int64_t n = volume_of(w, 1), k = y->shape[0] * volume_of(y, 2);
    q->a = (ops_matrix){y, outputs, k, 0, 0, outputs * y->stride[1], NULL};
    q->b = (ops_matrix){x, k, n, 0, 0, inputs * x->stride[1], NULL};
    q->c = (ops_matrix){w, outputs, n, w->stride[0], 0, outputs * w->stride[0], NULL};
    if (!digits_of_places(x, y, f->rank, f->stride, &p->b.k) ||
        !digits_of_window(x, w, f, &p->b.line) || !digits_of_places(y, y, f->rank, NULL, &p->a.k) ||
        !ops_gemm_digits_add(&p->a.line, outputs, y->stride[1]) ||
        !digits_of_weights(w, &p->c.line)) {
        return false;
    }
    result_set(&p->c, &q->c);
    return operand_set(&p->a, &q->a, &q->a.row_stride, &q->a.column_stride) &&
           operand_set(&p->b, &q->b, &q->b.column_stride, &q->b.row_stride);
}

/* activation(x + bias) of the epilogue's inputs, of which the bias is the last one. */
typedef struct result_body {
    const ops_expression *activation;
    bool has_bias;
} result_body;

static hal_ir_value emit_result(hal_ir_builder *b, const hal_ir_value *inputs, const void *user)
{
    const result_body *body = user;
    const hal_ir_value sum = body->has_bias ? hal_ir_add(b, inputs[0], inputs[4]) : inputs[0];
    hal_ir_value y = sum;
    if (body->activation) {
        hal_ir_splice(b, body->activation->fragment, &sum, 1, &y, 1);
    }
    return y;
}

/* The epilogue of bias and activation; null without both. */
static hal_status epilogue_make(ops_context *context, const ops_gemm_windows_form *form,
                                hal_type type, bool has_bias, ops_expression **epilogue)
{
    const hal_type value = hal_type_of_value(type);
    const hal_type types[5] = {value, HAL_TYPE_U32, HAL_TYPE_U32, HAL_TYPE_U32, value};
    result_body body = {.has_bias = has_bias};
    *epilogue = NULL;
    if (form->activation != OPS_IDENTITY) {
        ops_expression *activation;
        HAL_TRY(ops_unary_expression(context, "ops_array_convolution",
                                     (ops_unary_function)form->activation, type, &activation));
        body.activation = activation;
    }
    return has_bias || body.activation ? ops_expression_make("convolution", types, has_bias ? 5 : 1,
                                                             emit_result, &body, epilogue)
                                       : HAL_OK;
}

static void plan_log(const ops_context *context, const ops_product *product,
                     const ops_gemm_plan *plan)
{
    if (hal_log_is_enabled(HAL_LOG_DEBUG)) {
        char text[OPS_GEMM_LINE_LENGTH];
        ops_gemm_plan_describe(context, product, plan, sizeof text, text);
        hal_log_write(HAL_LOG_DEBUG, "ops_array_convolution: windows in place: %s", text);
    }
}

/* Records the portable kernel, with less memory where that does not suffice. */
static hal_status product_record(ops_context *context, const ops_product *product)
{
    ops_gemm_plan plan = {.without = 0};
    hal_status status;
    do {
        plan = (ops_gemm_plan){.without = plan.without | plan.spares};
        HAL_TRY(ops_gemm_portable_plan(context, product, plan.without, 1, &plan));
        status = ops_gemm_portable_record(context, product, &plan, NULL);
    } while (status == HAL_ERROR_OUT_OF_MEMORY && plan.spares);
    if (status == HAL_OK) {
        plan_log(context, product, &plan);
    }
    return status;
}

hal_status ops_gemm_windows(ops_context *context, const ops_gemm_windows_form *form,
                            const ops_tensor *x, const ops_tensor *w, const ops_tensor *bias,
                            const ops_tensor *y)
{
    windows_product p = {.options = {.size = sizeof p.options,
                                     .precision = form->precision == HAL_GEMM_NORMWISE
                                                      ? (uint32_t)HAL_GEMM_ACCURATE
                                                      : form->precision,
                                     .impl = OPS_GEMM_PORTABLE,
                                     .alpha = 1}};
    ops_product *q = &p.product;
    const bool fits = form->is_gradient ? describe_gradient(form, x, w, y, &p)
                                        : describe_forward(form, x, w, y, &p);
    if (!fits || !ops_gemm_windows_fit(context, q->c.rows, q->c.columns, q->a.columns)) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "ops_array_convolution: x: expected an image whose windows %s "
                              "multiplies in place; use OPS_CONVOLUTION_COPIED",
                              context->info->name);
    }
    ops_expression *epilogue;
    HAL_TRY(epilogue_make(context, form, y->type, bias != NULL, &epilogue));
    p.options.epilogue = epilogue;
    p.options.input_count = bias ? 1 : 0;
    q->options = &p.options;
    q->precision = p.options.precision;
    q->batch = (uint32_t)form->groups;
    q->accumulator = ops_gemm_accumulator(x->type);
    q->k = q->a.columns;
    if (bias) {
        q->inputs[0] = (ops_matrix){
            bias, q->c.rows, q->c.columns, bias->stride[0], 0, q->c.rows * bias->stride[0], NULL};
    }
    const hal_status status = product_record(context, q);
    ops_expression_destroy(epilogue);
    return status;
}

bool ops_gemm_windows_fit(const ops_context *context, int64_t m, int64_t n, int64_t k)
{
    const ops_gemm_tiles least = ops_gemm_least_staged_tiles();
    const uint32_t items =
        (uint32_t)(least.block_m / least.thread_m) * (least.block_n / least.thread_n);
    const uint64_t bytes = (uint64_t)ops_gemm_shared_elements(&least) * sizeof(double);
    return m <= INT32_MAX && n <= INT32_MAX && k <= ops_gemm_longest_k(context, NULL) &&
           items <= context->info->max_group_items && items <= context->info->max_group_size[0] &&
           bytes <= context->info->shared_bytes;
}

uint32_t ops_gemm_windows_access(const ops_context *context, uint32_t precision, int64_t m,
                                 int64_t n, int64_t k, hal_type type)
{
    enum { BYTES = 16 };
    const hal_device_info *info = context->info;
    return ops_gemm_is_gpu(info) &&
                   ops_gemm_units_multiply(info, &context->tuning->gemm, precision, m, n, k, type)
               ? BYTES / hal_type_size(type)
               : 1;
}
