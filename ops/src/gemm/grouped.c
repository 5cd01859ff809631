/* Products of groups of rows, see ops/grouped.h: one kernel that finds the groups in the device's
 * memory, the plugin's or a portable one (emit_groups.c), or an ordinary product for each group
 * that the host knows. */
#include "grouped.h"

#include "check.h"
#include "config.h"
#include "native.h"
#include "record.h"
#include "task.h"
#include "tensor/allocation.h"
#include "tensor/expression.h"
#include "tensor/loop_limit.h"
#include "tensor/message.h"
#include "tensor/overlap.h"
#include "portable.h"

#include <ops/grouped.h>
#include <ops/index.h>

#include <stdio.h>

typedef enum grouped_way {
    WAY_PORTABLE, /* one kernel of IR */
    WAY_NATIVE,   /* one kernel of the plugin */
    WAY_APART     /* a product for each group */
} grouped_way;

/* The plugin's kernel for a call. */
typedef struct native_call {
    ops_product product;
    ops_gemm_plan plan;
    uint32_t copies;       /* of A and B, which the plugin could not read; bits 1 and 2 */
    ops_tensor layouts[3]; /* of these copies */
    bool copies_offsets;
    ops_tensor offsets; /* as the kernel reads them */
} native_call;

/* A checked call. */
typedef struct grouped_call {
    const ops_gemm_options *options;
    const ops_tensor *a, *b, *c, *offsets;
    const int64_t *host_offsets; /* or null */
    int64_t groups, rows;
    grouped_way way;
    native_call native; /* with WAY_NATIVE */
} grouped_call;

static hal_status check_options(const ops_gemm_options *o)
{
    HAL_TRY(ops_gemm_check_options(o));
    if (o->prepared || o->levels || o->a_sums || o->c_sums) {
        return ops_invalid("ops_gemm_grouped: options.%s: expected none, got one",
                           o->prepared ? "prepared"
                           : o->levels ? "levels"
                           : o->a_sums ? "a_sums"
                                       : "c_sums");
    }
    return HAL_OK;
}

static hal_status check_offsets(const ops_context *context, const grouped_call *call)
{
    const ops_tensor *t = call->offsets;
    char text[OPS_TEXT_BYTES];
    HAL_TRY(ops_check_tensor(context, "ops_gemm_grouped", "offsets", t));
    if ((t->type != HAL_TYPE_I32 && t->type != HAL_TYPE_I64) || t->rank != 1 ||
        t->shape[0] != call->groups + 1) {
        return ops_invalid("ops_gemm_grouped: offsets: expected %lld of i32 or i64, one more than "
                           "b has groups, got %s",
                           (long long)call->groups + 1, ops_describe(t, text));
    }
    return ops_overlap(t, call->c)
               ? ops_invalid("ops_gemm_grouped: c: expected memory that offsets does not use, got "
                             "an overlap")
               : HAL_OK;
}

hal_status ops_gemm_grouped_check_host(const char *function, int64_t groups, int64_t rows,
                                       const int64_t *offsets)
{
    for (int64_t i = 0; i <= groups; i++) {
        const int64_t least = i == 0 ? 0 : offsets[i - 1];
        if (offsets[i] < least || offsets[i] > rows) {
            return ops_invalid("%s: host_offsets[%lld]: expected %lld to %lld, since offsets "
                               "ascend up to the rows of a, got %lld",
                               function, (long long)i, (long long)least, (long long)rows,
                               (long long)offsets[i]);
        }
    }
    return HAL_OK;
}

static bool call_is_empty(const grouped_call *call)
{
    return call->groups == 0 || call->rows == 0 || call->c->shape[1] == 0;
}

/* The product as one kernel has it: a batch of B, from which groups of rows choose. */
static void call_make_product(const grouped_call *call, ops_product *product)
{
    const ops_gemm_options *options = call->options;
    const int64_t k = options->alpha == 0 ? 0 : call->a->shape[1], n = call->c->shape[1];
    const int64_t shape_a[3] = {1, call->rows, k}, shape_b[3] = {call->groups, k, n};
    const int64_t shape_c[3] = {1, call->rows, n}, shape_all[3] = {call->groups, call->rows, n};
    const bool is_normwise = options->precision == HAL_GEMM_NORMWISE;
    product->options = options;
    product->precision = !hal_type_is_float(call->a->type) ? (uint32_t)HAL_GEMM_STRICT
                         : is_normwise                     ? (uint32_t)HAL_GEMM_ACCURATE
                                                           : options->precision;
    product->batch = (uint32_t)call->groups;
    product->accumulator = ops_gemm_accumulator(call->a->type);
    product->k = call->a->shape[1];
    product->has_sums = false;
    product->offsets = NULL;
    product->unread[0] = *call->a;
    product->unread[1] = *call->b;
    product->unread[0].shape[1] = product->unread[1].shape[1] = k;
    product->a = ops_matrix_of(&product->unread[0], shape_a);
    product->b = ops_matrix_of(&product->unread[1], shape_b);
    product->c = ops_matrix_of(call->c, shape_c);
    for (uint32_t i = 0; i < options->input_count; i++) {
        product->inputs[i] = ops_matrix_of(&options->inputs[i], shape_all);
    }
}

/* Plans the plugin's kernel; UNSUPPORTED where there is none. It reads offsets one after the other
 * from an aligned place outside of C. */
static hal_status native_plan(ops_context *context, const grouped_call *call, native_call *n)
{
    const uint64_t at = (uint64_t)call->offsets->offset * hal_type_size(call->offsets->type);
    call_make_product(call, &n->product);
    if (n->product.a.columns == 0) {
        return HAL_ERROR_UNSUPPORTED;
    }
    n->copies = ops_product_make_contiguous(&n->product, n->layouts);
    n->offsets = *call->offsets;
    n->copies_offsets = call->offsets->stride[0] != 1 || ops_spans_meet(call->offsets, call->c) ||
                        (at & (context->info->binding_alignment - 1)) != 0;
    n->product.offsets = &n->offsets;
    n->plan = (ops_gemm_plan){.path = OPS_GEMM_PATH_NONE};
    return n->copies & 4 ? HAL_ERROR_UNSUPPORTED
                         : ops_gemm_native_plan(context, &n->product, 0, 0, &n->plan);
}

/* What a plugin says that declines is no failure where another way follows. */
static bool call_is_native(ops_context *context, grouped_call *call)
{
    ops_message message;
    if (!call->offsets || call->options->impl == OPS_GEMM_PORTABLE || call_is_empty(call)) {
        return false;
    }
    ops_message_save(&message);
    const bool is_native = native_plan(context, call, &call->native) == HAL_OK;
    ops_message_restore(&message);
    return is_native;
}

static bool epilogue_has_places(const ops_gemm_options *o)
{
    return o->epilogue &&
           (ops_expression_reads(o->epilogue, 1, 1) || ops_expression_reads(o->epilogue, 3, 3));
}

static grouped_way way_find(ops_context *context, grouped_call *call)
{
    const bool is_native = call->options->impl == OPS_GEMM_NATIVE;
    if (call_is_native(context, call)) {
        return WAY_NATIVE;
    }
    return call->host_offsets && !epilogue_has_places(call->options) &&
                   (is_native || !call->offsets || context->info->kind == HAL_DEVICE_CPU)
               ? WAY_APART
               : WAY_PORTABLE;
}

/* Chooses between one kernel and a product for each group. */
static hal_status call_choose(ops_context *context, grouped_call *call)
{
    const ops_gemm_options *o = call->options;
    const bool is_native = o->impl == OPS_GEMM_NATIVE;
    call->way = way_find(context, call);
    if (call->way != WAY_PORTABLE) {
        return HAL_OK;
    }
    if (epilogue_has_places(o) && (is_native || !call->offsets)) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "ops_gemm_grouped: options.epilogue: expected one that reads neither "
                              "row nor batch without offsets in the device's memory or with "
                              "OPS_GEMM_NATIVE, got another");
    }
    if (is_native) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "ops_gemm_grouped: options.impl: expected OPS_GEMM_ANY or _PORTABLE "
                              "without host_offsets, since the plugin has no such product of "
                              "groups, got OPS_GEMM_NATIVE");
    }
    const int64_t longest = ops_gemm_longest_k(context, o);
    if (call->a->shape[1] > longest) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "ops_gemm_grouped: a: expected a k of at most %lld, which %s adds in "
                              "a loop, got %lld",
                              (long long)longest, context->info->name,
                              (long long)call->a->shape[1]);
    }
    return HAL_OK;
}

static hal_status call_check(ops_context *context, grouped_call *call)
{
    const ops_tensor *none = NULL;
    HAL_TRY(ops_gemm_resolve(&call->options, &none));
    HAL_TRY(check_options(call->options));
    HAL_TRY(ops_gemm_check_groups(context, call->options, call->a, call->b, call->c));
    call->groups = call->b->shape[0];
    call->rows = call->a->shape[0];
    if (!call->offsets && !call->host_offsets) {
        return ops_invalid("ops_gemm_grouped: offsets, host_offsets: expected one of them, got "
                           "null for both");
    }
    if (call->offsets) {
        HAL_TRY(check_offsets(context, call));
    }
    if (call->host_offsets) {
        HAL_TRY(ops_gemm_grouped_check_host("ops_gemm_grouped", call->groups, call->rows,
                                            call->host_offsets));
    }
    return call_choose(context, call);
}

/* Of A the rows are contiguous, since groups begin anywhere: accesses across rows have one. */
static bool copies_a(const ops_product *product)
{
    return product->a.column_stride != 1;
}

/* A processor's lanes read rows of B: columns take it at least ten times as long, so that a copy of
 * all of B pays where groups have a row in the mean. */
static bool copies_b(const ops_context *context, const ops_product *product)
{
    const bool reads_rows = context->tuning->gemm.many_rows > 0;
    const ops_matrix *b = &product->b;
    return b->column_stride != 1 && b->rows > 0 &&
           (b->row_stride != 1 || (reads_rows && product->c.rows >= product->batch));
}

/* Copies an operand to `copy`, by rows. */
static hal_status operand_copy(ops_context *context, ops_matrix *matrix, ops_tensor *copy)
{
    const ops_tensor *from = matrix->tensor;
    const bool has_batch = from->rank == 3;
    HAL_TRY(ops_tensor_create(context, from->type, from->rank, from->shape, copy));
    HAL_TRY(ops_copy(context, from, copy));
    const int64_t shape[3] = {has_batch ? copy->shape[0] : 1, matrix->rows, matrix->columns};
    *matrix = ops_matrix_of(copy, shape);
    return HAL_OK;
}

/* The operand as operand_copy would copy it. */
static void operand_lay_out(ops_matrix *matrix)
{
    matrix->column_stride = 1;
    matrix->row_stride = matrix->columns;
    matrix->batch_stride = matrix->rows * matrix->columns;
}

/* The task of the kernel. The offsets' binding is read alone, so that they are the same for all
 * work-items: what C shares a binding with is copied. */
static void task_make(const grouped_call *call, const ops_tensor *offsets, ops_gemm_task *t)
{
    const int64_t shape[3] = {1, 1, call->groups + 1};
    t->key = (ops_gemm_kernel_key){.grouped = 1};
    t->given = NULL;
    t->k_all = (uint32_t)t->product.a.columns;
    t->batch_first = 0;
    t->is_general = false;
    t->offsets = ops_matrix_of(offsets, shape);
    t->work.groups.steps = 0;
    while ((int64_t)1 << t->work.groups.steps < call->groups) {
        t->work.groups.steps++;
    }
}

/* Takes options.config in place of the choice of tiles. */
static hal_status task_pin(const ops_context *context, ops_gemm_task *t, ops_gemm_candidate *pinned)
{
    const char *config = t->product.options->config;
    if (!config) {
        return HAL_OK;
    }
    HAL_TRY(ops_gemm_task_describe(context, t));
    const ops_gemm_shape shape = ops_gemm_task_shape(context, t);
    if (!ops_gemm_config_find(context->info, &shape, config, pinned) || pinned->depth) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "ops_gemm_grouped: options.config: expected a portable kernel of %s "
                              "without split-K, got \"%s\"",
                              context->info->name, config);
    }
    t->given = &pinned->tiles;
    return HAL_OK;
}

static hal_status record_kernel(ops_context *context, const grouped_call *call)
{
    ops_gemm_task t;
    ops_gemm_candidate pinned;
    ops_entry *entry;
    ops_tensor a = {0}, b = {0}, offsets = {0};
    const ops_tensor *from = call->offsets;
    hal_status status = HAL_OK;
    call_make_product(call, &t.product);
    if (copies_a(&t.product)) {
        status = operand_copy(context, &t.product.a, &a);
    }
    if (status == HAL_OK && copies_b(context, &t.product)) {
        status = operand_copy(context, &t.product.b, &b);
    }
    if (status == HAL_OK && from->buffer == call->c->buffer && from->type == call->c->type) {
        status = ops_tensor_create(context, from->type, 1, from->shape, &offsets);
        status = status == HAL_OK ? ops_copy(context, from, &offsets) : status;
        from = &offsets;
    }
    task_make(call, from, &t);
    if (status == HAL_OK) {
        status = task_pin(context, &t, &pinned);
    }
    if (status == HAL_OK) {
        status = ops_gemm_task_complete(context, &t);
    }
    if (status == HAL_OK) {
        status = ops_gemm_task_find_kernel(context, &t, &entry);
    }
    if (status == HAL_OK) {
        status = ops_gemm_task_record(context, &t, entry, NULL);
    }
    ops_tensor_release(&a);
    ops_tensor_release(&b);
    ops_tensor_release(&offsets);
    return status;
}

/* Makes the copies that the plugin's kernel reads. */
static hal_status native_copy(ops_context *context, const grouped_call *call, native_call *n)
{
    const ops_tensor *const from[2] = {call->a, call->b};
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < 2 && status == HAL_OK; i++) {
        if (n->copies >> i & 1) {
            ops_tensor *to = &n->layouts[i];
            status = ops_tensor_create(context, from[i]->type, from[i]->rank, from[i]->shape, to);
            status = status == HAL_OK ? ops_copy(context, from[i], to) : status;
        }
    }
    if (n->copies_offsets && status == HAL_OK) {
        const ops_tensor *offsets = call->offsets;
        status = ops_tensor_create(context, offsets->type, 1, offsets->shape, &n->offsets);
        status = status == HAL_OK ? ops_copy(context, offsets, &n->offsets) : status;
    }
    return status;
}

/* Records the plugin's kernel, or without memory for it the portable one. */
static hal_status record_native(ops_context *context, grouped_call *call)
{
    native_call *n = &call->native;
    ops_message message;
    ops_message_save(&message);
    if (n->copies_offsets) {
        n->offsets.buffer = NULL;
    }
    hal_status status = native_copy(context, call, n);
    if (status == HAL_OK) {
        status = ops_gemm_native_record(context, &n->product, &n->plan, NULL);
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (n->copies >> i & 1) {
            ops_tensor_release(&n->layouts[i]);
        }
    }
    if (n->copies_offsets) {
        ops_tensor_release(&n->offsets);
    }
    if (status != HAL_ERROR_OUT_OF_MEMORY || call->options->impl == OPS_GEMM_NATIVE ||
        call->a->shape[1] > ops_gemm_longest_k(context, call->options)) {
        return status;
    }
    ops_message_restore(&message);
    return record_kernel(context, call);
}

/* The rows of an input that belong to a group. */
static hal_status input_of_group(const ops_tensor *input, int64_t group, int64_t first,
                                 int64_t rows, ops_tensor *view)
{
    *view = *input;
    if (view->rank == 3) {
        *view = (ops_tensor){input->buffer,
                             input->type,
                             2,
                             input->offset + (input->shape[0] == 1 ? 0 : group * input->stride[0]),
                             {input->shape[1], input->shape[2]},
                             {input->stride[1], input->stride[2]}};
    }
    const ops_tensor all = *view;
    return view->rank == 2 && view->shape[0] != 1 ? ops_tensor_slice(&all, 0, first, rows, 1, view)
                                                  : HAL_OK;
}

static hal_status record_group(ops_context *context, const grouped_call *call, int64_t group)
{
    const int64_t first = call->host_offsets[group];
    const int64_t rows = call->host_offsets[group + 1] - first;
    const ops_tensor *b = call->b;
    ops_gemm_options options = *call->options;
    ops_tensor inputs[OPS_GEMM_MAX_INPUTS], a, c;
    const ops_tensor own = {b->buffer,
                            b->type,
                            2,
                            b->offset + group * b->stride[0],
                            {b->shape[1], b->shape[2]},
                            {b->stride[1], b->stride[2]}};
    HAL_TRY(ops_tensor_slice(call->a, 0, first, rows, 1, &a));
    HAL_TRY(ops_tensor_slice(call->c, 0, first, rows, 1, &c));
    for (uint32_t i = 0; i < options.input_count; i++) {
        HAL_TRY(input_of_group(&options.inputs[i], group, first, rows, &inputs[i]));
    }
    options.inputs = inputs;
    options.precision =
        options.precision == HAL_GEMM_NORMWISE ? (uint32_t)HAL_GEMM_ACCURATE : options.precision;
    return ops_gemm_run(context, &options, &a, &own, &c);
}

static hal_status record_groups(ops_context *context, const grouped_call *call)
{
    hal_status status = HAL_OK;
    for (int64_t i = 0; i < call->groups && status == HAL_OK; i++) {
        if (call->host_offsets[i + 1] > call->host_offsets[i]) {
            status = record_group(context, call, i);
        }
    }
    return status;
}

hal_status ops_gemm_grouped(ops_context *context, const ops_gemm_options *options,
                            const ops_tensor *a, const ops_tensor *b, const ops_tensor *offsets,
                            const int64_t *host_offsets, const ops_tensor *c)
{
    grouped_call call = {.options = options,
                         .a = a,
                         .b = b,
                         .c = c,
                         .offsets = offsets,
                         .host_offsets = host_offsets};
    HAL_TRY(call_check(context, &call));
    if (call_is_empty(&call)) {
        return HAL_OK;
    }
    if (call.way == WAY_NATIVE) {
        return record_native(context, &call);
    }
    return call.way == WAY_APART ? record_groups(context, &call) : record_kernel(context, &call);
}

hal_status ops_gemm_grouped_describe(ops_context *context, const ops_gemm_options *options,
                                     const ops_tensor *a, const ops_tensor *b,
                                     const ops_tensor *offsets, const int64_t *host_offsets,
                                     const ops_tensor *c, uint64_t bytes, char *text)
{
    grouped_call call = {.options = options,
                         .a = a,
                         .b = b,
                         .c = c,
                         .offsets = offsets,
                         .host_offsets = host_offsets};
    ops_gemm_task t;
    ops_gemm_candidate pinned;
    char config[OPS_GEMM_CONFIG_BYTES];
    if (!text || bytes == 0) {
        return ops_invalid("ops_gemm_grouped_describe: text: expected memory for a line, got %s",
                           text ? "0 bytes" : "null");
    }
    text[0] = 0;
    HAL_TRY(call_check(context, &call));
    const int count =
        snprintf(text, bytes, "%lld groups of %lld rows x %lld x %lld: ", (long long)call.groups,
                 (long long)call.rows, (long long)c->shape[1], (long long)a->shape[1]);
    char *end = text + ((uint64_t)count < bytes ? (uint64_t)count : bytes - 1);
    const uint64_t left = bytes - (uint64_t)(end - text);
    if (call_is_empty(&call) || call.way == WAY_APART) {
        snprintf(end, left, "%s",
                 call_is_empty(&call) ? "nothing to compute" : "a product for each group");
        return HAL_OK;
    }
    if (call.way == WAY_NATIVE) {
        const uint32_t copies =
            call.native.copies | call.native.plan.copies >> OPS_GEMM_ALIGNS_SHIFT;
        snprintf(end, left, "one kernel, native%s%s, %llu bytes of workspace",
                 copies & 1 ? ", a copied" : "", copies & 2 ? ", b copied" : "",
                 (unsigned long long)call.native.plan.workspace_bytes);
        return HAL_OK;
    }
    call_make_product(&call, &t.product);
    const bool has_a = copies_a(&t.product), has_b = copies_b(context, &t.product);
    if (has_a) {
        operand_lay_out(&t.product.a);
    }
    if (has_b) {
        operand_lay_out(&t.product.b);
    }
    task_make(&call, offsets, &t);
    HAL_TRY(task_pin(context, &t, &pinned));
    HAL_TRY(ops_gemm_task_complete(context, &t));
    ops_gemm_config_print(&t.key.tiles, 0, config);
    snprintf(end, left, "one kernel, %s%s%s", config, has_a ? ", a copied" : "",
             has_b ? ", b copied" : "");
    return HAL_OK;
}

bool ops_gemm_grouped_epilogue_changes(ops_context *context, const ops_gemm_options *options,
                                       const ops_tensor *a, const ops_tensor *b,
                                       const ops_tensor *offsets, const int64_t *host_offsets,
                                       const ops_tensor *c, const ops_tensor *product)
{
    ops_gemm_options plain = *options;
    ops_tensor layout = *product;
    grouped_call call = {.options = options,
                         .a = a,
                         .b = b,
                         .c = c,
                         .offsets = offsets,
                         .host_offsets = host_offsets,
                         .groups = b->shape[0],
                         .rows = a->shape[0]};
    const grouped_way way = way_find(context, &call);
    layout.buffer = NULL;
    plain.epilogue = NULL;
    plain.input_count = 0;
    call.options = &plain;
    call.c = &layout;
    return way == WAY_APART || way != way_find(context, &call);
}
