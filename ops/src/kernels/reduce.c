/* Reductions along an axis: checks, the choice of one pass or two, and the dispatch of each. */
#include "tensor/overlap.h"
#include "reduce.h"
#include "tensor/dispatch.h"
#include "tensor/loop_limit.h"

#include <string.h>

/* Limits of slices: elements of a work-item, elements of a slice, and their number. */
#define MIN_STEPS 16
#define MIN_SLICE 8192
#define MAX_SLICES 1024

/* Slices are whole steps of the unrolled loop. */
#define SLICE_UNROLL 4

/* The arguments of a call. */
typedef struct reduce_call {
    ops_reduction kind;
    int32_t given_axis; /* as the caller wrote it */
    uint32_t axis;      /* UINT32_MAX where x has no such axis */
    const ops_tensor *x, *y;
    ops_reduce_options options;
    hal_type type, result;
} reduce_call;

/* A zero-initialised structure, which means no prologue and no epilogue. */
static int options_are_zero(const ops_reduce_options *o)
{
    return o->size == 0 && !o->prologue && !o->prologue_inputs && o->prologue_input_count == 0 &&
           !o->epilogue && !o->epilogue_inputs && o->epilogue_input_count == 0;
}

static hal_status check_shapes(const reduce_call *c)
{
    const ops_tensor *x = c->x, *y = c->y;
    char text[2][OPS_TEXT_BYTES];
    int fits = c->axis < x->rank && (y->rank == x->rank || y->rank + 1 == x->rank);
    for (uint32_t i = 0, j = 0; fits && i < x->rank; i++) {
        if (i == c->axis) {
            fits = y->rank != x->rank || y->shape[j++] == 1;
        } else {
            fits = y->shape[j++] == x->shape[i];
        }
    }
    if (!fits) {
        return ops_invalid(
            "ops_reduce: y: expected the shape of x %s reduced along axis %d, got %s",
            ops_describe(x, text[0]), c->given_axis, ops_describe(y, text[1]));
    }
    if (x->shape[c->axis] > INT32_MAX) {
        return hal_status_set(
            HAL_ERROR_UNSUPPORTED,
            "ops_reduce: x: expected at most 2^31 - 1 elements along axis %u, got "
            "%s",
            c->axis, ops_describe(x, text[0]));
    }
    if (x->shape[c->axis] == 0 && c->kind != OPS_REDUCE_SUM &&
        ops_tensor_get_element_count(y) > 0) {
        return ops_invalid("ops_reduce: x: expected elements along axis %u, got %s; only a sum of "
                           "no elements has a value",
                           c->axis, ops_describe(x, text[0]));
    }
    return HAL_OK;
}

/* Counts, types and shapes of an expression's further inputs. */
static hal_status check_further_inputs(const ops_context *context, const char *name,
                                       const ops_expression *expression, const ops_tensor *inputs,
                                       uint32_t count, const ops_tensor *shape)
{
    if (!expression && count == 0) {
        return HAL_OK;
    }
    if (!expression || expression->input_count != 1 + count || expression->output_count != 1 ||
        (count && !inputs)) {
        return ops_invalid("ops_reduce: options.%s: expected 1 + options.%s_input_count (%u) "
                           "inputs and 1 output, got %u and %u",
                           name, name, count, expression ? expression->input_count : 0,
                           expression ? expression->output_count : 0);
    }
    for (uint32_t i = 0; i < count; i++) {
        hal_status status = ops_check_tensor(context, "ops_reduce", name, &inputs[i]);
        if (!status) {
            status = ops_check_broadcast("ops_reduce", name, &inputs[i], shape->rank, shape->shape);
        }
        if (status) {
            return status;
        }
        if (expression->inputs[1 + i] != hal_type_of_value(inputs[i].type)) {
            return ops_invalid("ops_reduce: options.%s_inputs[%u]: expected %s, got %s", name, i,
                               hal_type_name(expression->inputs[1 + i]),
                               hal_type_name(inputs[i].type));
        }
    }
    return HAL_OK;
}

static hal_status check_prologue(const ops_context *context, reduce_call *c)
{
    const ops_reduce_options *o = &c->options;
    hal_status status = check_further_inputs(context, "prologue", o->prologue, o->prologue_inputs,
                                             o->prologue_input_count, c->x);
    if (status) {
        return status;
    }
    c->type = hal_type_of_value(c->x->type);
    if (o->prologue) {
        if (o->prologue->inputs[0] != c->type) {
            return ops_invalid(
                "ops_reduce: options.prologue: expected %s for input 0, as in x, got %s",
                hal_type_name(c->type), hal_type_name(o->prologue->inputs[0]));
        }
        c->type = o->prologue->outputs[0];
    }
    if (c->type == HAL_TYPE_BOOL || (c->kind == OPS_REDUCE_MEAN && !hal_type_is_float(c->type))) {
        return ops_invalid("ops_reduce: x: expected %s, got %s; cast it first, or in a prologue",
                           c->kind == OPS_REDUCE_MEAN ? "floats" : "numbers",
                           hal_type_name(c->type));
    }
    return HAL_OK;
}

static hal_status check_result(const reduce_call *c)
{
    const ops_expression *e = c->options.epilogue;
    hal_type given = c->result, stored = hal_type_of_value(c->y->type);
    if (e && e->inputs[0] != given) {
        return ops_invalid(
            "ops_reduce: options.epilogue: expected %s for input 0, as the result is, got %s",
            hal_type_name(given), hal_type_name(e->inputs[0]));
    }
    given = e ? e->outputs[0] : given;
    if (given != stored) {
        return ops_invalid("ops_reduce: y: expected %s, as the result is, got %s",
                           hal_type_name(given), hal_type_name(c->y->type));
    }
    return HAL_OK;
}

static hal_status check_epilogue(const ops_context *context, reduce_call *c)
{
    const ops_reduce_options *o = &c->options;
    hal_status status = check_further_inputs(context, "epilogue", o->epilogue, o->epilogue_inputs,
                                             o->epilogue_input_count, c->y);
    if (status) {
        return status;
    }
    c->result = c->type;
    if (c->kind == OPS_REDUCE_ARGMAX) {
        c->result = o->epilogue ? o->epilogue->inputs[0] : hal_type_of_value(c->y->type);
        if (c->result != HAL_TYPE_I32 && c->result != HAL_TYPE_I64) {
            return ops_invalid("ops_reduce: %s: expected i32 or i64 for an index, got %s",
                               o->epilogue ? "options.epilogue" : "y", hal_type_name(c->result));
        }
    }
    return check_result(c);
}

static hal_status check_overlap(const reduce_call *c)
{
    int overlaps = ops_overlap(c->x, c->y);
    for (uint32_t i = 0; i < c->options.prologue_input_count; i++) {
        overlaps |= ops_overlap(&c->options.prologue_inputs[i], c->y);
    }
    for (uint32_t i = 0; i < c->options.epilogue_input_count; i++) {
        const ops_tensor *in = &c->options.epilogue_inputs[i];
        overlaps |= ops_overlap(in, c->y) && !ops_same_view(in, c->y);
    }
    return overlaps ? ops_invalid("ops_reduce: y: expected memory that x and the further inputs do "
                                  "not use, got an overlap")
                    : HAL_OK;
}

static hal_status check(const ops_context *context, reduce_call *c)
{
    hal_status status = ops_check_tensor(context, "ops_reduce", "x", c->x);
    if (!status) {
        status = ops_check_output(context, "ops_reduce", "y", c->y);
    }
    if (!status && (uint32_t)c->kind >= OPS_REDUCTION_COUNT) {
        status = ops_invalid("ops_reduce: kind: expected an ops_reduction, got %d", (int)c->kind);
    }
    if (!status) {
        status = check_shapes(c);
    }
    if (!status) {
        status = check_prologue(context, c);
    }
    if (!status) {
        status = check_epilogue(context, c);
    }
    return status ? status : check_overlap(c);
}

/* Initialises a pass over x, without outputs. */
static void pass_init(const reduce_call *c, ops_reduce_pass *pass)
{
    pass->form = (ops_reduce_form){.kind = (uint8_t)c->kind,
                                   .type = c->type,
                                   .result = c->result,
                                   .input_count = (uint8_t)(1 + c->options.prologue_input_count)};
    pass->slices = 1;
    pass->mean_length = c->x->shape[c->axis];
    pass->prologue = c->options.prologue;
    pass->epilogue = NULL;
    pass->tensors[0] = *c->x;
    for (uint32_t i = 1; i < pass->form.input_count; i++) {
        pass->tensors[i] = c->options.prologue_inputs[i - 1];
    }
}

/* A tensor of the output's shape with x's rank: length 1 at the axis. */
static ops_tensor with_axis(const ops_tensor *tensor, const ops_tensor *y, const reduce_call *c)
{
    int64_t strides[OPS_MAX_RANK];
    ops_broadcast_strides(tensor, y->rank, y->shape, strides);
    ops_tensor made = *tensor;
    made.rank = c->x->rank;
    for (uint32_t i = 0, j = 0; i < made.rank; i++) {
        int missing = i == c->axis && y->rank < made.rank;
        made.shape[i] = missing ? 1 : y->shape[j];
        made.stride[i] = missing ? 0 : strides[j];
        j += !missing;
    }
    return made;
}

static void pass_add_output(const reduce_call *c, ops_reduce_pass *pass)
{
    ops_tensor *next = &pass->tensors[pass->form.input_count];
    pass->epilogue = c->options.epilogue;
    pass->form.output_count = 1;
    pass->form.further_count = (uint8_t)c->options.epilogue_input_count;
    *next++ = with_axis(c->y, c->y, c);
    for (uint32_t i = 0; i < pass->form.further_count; i++) {
        *next++ = with_axis(&c->options.epilogue_inputs[i], c->y, c);
    }
}

/* The group decides the order of additions. It depends on x alone, so that fusing a prologue or an
 * epilogue does not change the result. What a prologue computes (`is_made`) counts as row-major, as
 * it would be in memory. */
static void group_choose(const ops_context *context, const ops_tensor *x, uint32_t axis,
                         int is_made, ops_reduce_layout *group)
{
    ops_tensor like = *x;
    int64_t stride = 1;
    for (uint32_t i = like.rank; is_made && i-- > 0;) {
        like.stride[i] = stride;
        stride *= like.shape[i];
    }
    ops_space space;
    ops_axis taken;
    ops_space_begin(&space, like.rank, like.shape);
    ops_space_add(&space, &like, 0);
    ops_axis_take(&space, axis, &taken);
    ops_space_collapse(&space, 0);
    ops_reduce_layout_choose(context, &space, &taken, 0, group);
}

/* Plans bindings, space and group of a pass over `shape`. */
static hal_status pass_plan(const ops_context *context, const ops_tensor *shape, uint32_t axis,
                            ops_reduce_pass *pass)
{
    uint32_t count = pass->form.input_count + pass->form.output_count + pass->form.further_count;
    uint32_t first_out = pass->form.input_count, end_out = first_out + pass->form.output_count;
    pass->bindings.count = 0;
    for (uint32_t i = 0; i < count; i++) {
        /* Outputs first, so that a further input that is the same view finds its binding. */
        uint32_t view = i < pass->form.output_count ? first_out + i
                        : i < end_out               ? i - pass->form.output_count
                                                    : i;
        int is_output = view >= first_out && view < end_out;
        uint32_t slot = ops_bind(context, &pass->bindings, &pass->tensors[view],
                                 is_output ? HAL_ACCESS_WRITE : HAL_ACCESS_READ);
        if (slot >= context->info->max_bindings) {
            return hal_status_set(
                HAL_ERROR_UNSUPPORTED,
                "ops_reduce: options: expected at most %u tensors, which %s binds, "
                "got %u",
                context->info->max_bindings, context->info->name, count);
        }
        pass->slots[view] = (uint8_t)slot;
    }
    ops_space_begin(&pass->space, shape->rank, shape->shape);
    for (uint32_t i = 0; i < count; i++) {
        const ops_tensor *tensor = &pass->tensors[i];
        ops_space_add(&pass->space, tensor, ops_base(&pass->bindings, pass->slots[i], tensor));
    }
    ops_axis_take(&pass->space, axis, &pass->axis);
    ops_space_collapse(&pass->space, 0);
    group_choose(context, shape, axis, pass->prologue != NULL, &pass->group);
    ops_layout_choose(context, &pass->space, count * 8 + 32, ops_axis_reach(&pass->axis, count),
                      &pass->layout);
    return HAL_OK;
}

/* The least number of slices whose loops the device can execute. */
static hal_status pass_least_slices(const ops_context *context, const ops_reduce_pass *pass,
                                    int64_t *least)
{
    const int64_t steps =
        ops_loop_limit(context, ops_loops_of(pass->prologue), ops_loops_of(pass->epilogue));
    const int64_t length = pass->axis.length;
    *least = 1;
    if (length / pass->group.along < steps) {
        return HAL_OK;
    }
    const int64_t slice = steps / SLICE_UNROLL * SLICE_UNROLL * pass->group.along;
    *least = slice ? (length + slice - 1) / slice : INT64_MAX;
    if (*least > context->info->max_grid[2] || *least >= ops_loop_limit(context, 0, 0)) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "ops_reduce: x: expected at most %lld steps along the axis for each "
                              "work-item, since %s limits the iterations of loops, got %lld "
                              "elements; reduce in parts, or without a prologue",
                              (long long)steps, context->info->name, (long long)length);
    }
    return HAL_OK;
}

/* Slices the axis where the outputs alone would leave compute units idle, and where its loops would
 * exceed the device's limit. */
static hal_status pass_choose_slices(const ops_context *context, ops_reduce_pass *pass)
{
    const ops_reduce_layout *group = &pass->group;
    int64_t outputs = ops_space_elements(&pass->space), length = pass->axis.length;
    int64_t groups = (outputs + group->outputs - 1) / group->outputs;
    int64_t wanted = 4 * (int64_t)context->info->compute_units;
    int64_t across = outputs < group->outputs ? outputs : group->outputs;
    int64_t most = length / ((int64_t)group->along * MIN_STEPS);
    int64_t by_size = length * across / MIN_SLICE;
    most = by_size < most ? by_size : most;
    most = most < MAX_SLICES ? most : MAX_SLICES;
    most = most < context->info->max_grid[2] ? most : context->info->max_grid[2];
    int64_t slices = (wanted + groups - 1) / groups;
    slices = slices < most ? slices : most;
    int64_t least;
    hal_status status = pass_least_slices(context, pass, &least);
    if (2 * groups > wanted || slices < least) {
        slices = least;
    }
    if (status || slices < 2) {
        pass->slice_length = (uint32_t)length;
        return status;
    }
    int64_t step = (int64_t)group->along * SLICE_UNROLL;
    int64_t slice = ((length + slices - 1) / slices + step - 1) / step * step;
    pass->slice_length = (uint32_t)slice;
    pass->slices = (uint32_t)((length + slice - 1) / slice);
    return HAL_OK;
}

/* Allocates the partial results: the outputs of a slice in row-major order, slice after slice. */
static hal_status partials_create(ops_context *context, const reduce_call *c,
                                  const ops_reduce_pass *pass, hal_type type, ops_tensor *partial)
{
    int64_t outputs = ops_space_elements(&pass->space);
    const int64_t shape[1] = {outputs * pass->slices};
    hal_status status = ops_tensor_create(context, type, 1, shape, partial);
    if (status) {
        return status;
    }
    int64_t stride = 1;
    partial->rank = c->x->rank;
    for (uint32_t i = partial->rank; i-- > 0;) {
        int is_axis = i == c->axis;
        partial->shape[i] = is_axis ? pass->slices : c->x->shape[i];
        partial->stride[i] = is_axis ? outputs : stride;
        stride *= is_axis ? 1 : partial->shape[i];
    }
    return HAL_OK;
}

static void pass_choose_loops(ops_reduce_pass *pass)
{
    int64_t steps =
        (pass->form.to_partials ? pass->slice_length : pass->axis.length) / pass->group.along;
    pass->form.unroll = steps >= 8 ? 4 : 1;
    pass->form.nested = (pass->form.kind == OPS_REDUCE_SUM || pass->form.kind == OPS_REDUCE_MEAN) &&
                        hal_type_is_float(pass->form.type) && steps / pass->form.unroll > 512;
}

static void pass_key(ops_reduce_pass *pass, ops_cache_key *key)
{
    const uint32_t count = pass->layout.view_count;
    pass->form.has_prologue = pass->prologue != NULL;
    pass->form.has_epilogue = pass->epilogue != NULL;
    ops_cache_key_begin(key, OPS_FAMILY_REDUCE);
    ops_cache_key_append(key, &pass->form, sizeof pass->form);
    if (pass->prologue) {
        ops_cache_key_append(key, pass->prologue->hash, sizeof pass->prologue->hash);
    }
    if (pass->epilogue) {
        ops_cache_key_append(key, pass->epilogue->hash, sizeof pass->epilogue->hash);
    }
    ops_bindings_key(&pass->bindings, pass->slots, count, key);
    ops_fold_key(&pass->space, &pass->layout, &pass->group, &pass->axis, key);
}

static hal_status pass_record(ops_context *context, ops_reduce_pass *pass)
{
    uint32_t grid[3];
    hal_status status =
        ops_reduce_layout_grid(context, "ops_reduce", &pass->space, &pass->group, grid);
    if (status) {
        return status;
    }
    if (pass->form.to_partials && pass->group.grid_may_overrun) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "ops_reduce: x: expected fewer outputs for slices of an axis of %lld "
                              "elements on %s",
                              (long long)pass->axis.length, context->info->name);
    }
    if (pass->form.to_partials) {
        grid[2] = pass->slices;
    }
    pass_choose_loops(pass);
    ops_cache_key key;
    ops_entry *entry;
    pass_key(pass, &key);
    status = ops_cache_get(context, &key, "reduce", ops_reduce_emit, pass, &entry);
    if (status) {
        return status;
    }
    ops_block block;
    ops_block_begin(&block);
    ops_reduce_put(pass, &block);
    return ops_dispatch(context, entry, grid, &pass->bindings, &block);
}

/* Two passes: from slices of the axis to partial results, and from those to y. */
static hal_status reduce_sliced(ops_context *context, const reduce_call *c, ops_reduce_pass *pass)
{
    int pairs = c->kind == OPS_REDUCE_ARGMAX;
    ops_tensor partials[2] = {{0}, {0}};
    ops_reduce_pass first, second;
    pass_init(c, &first);
    first.form.to_partials = 1;
    first.slices = pass->slices;
    first.slice_length = pass->slice_length;
    first.slice_stride = ops_space_elements(&pass->space);
    first.form.output_count = pairs ? 2 : 1;
    hal_status status = partials_create(context, c, pass, c->type, &partials[0]);
    if (!status && pairs) {
        status = partials_create(context, c, pass, HAL_TYPE_U32, &partials[1]);
    }

    pass_init(c, &second);
    second.form.from_partials = 1;
    second.prologue = NULL;
    second.form.input_count = first.form.output_count;
    for (uint32_t i = 0; i < first.form.output_count; i++) {
        second.tensors[i] = partials[i];
        first.tensors[first.form.input_count + i] = partials[i];
    }
    pass_add_output(c, &second);
    if (!status) {
        status = pass_plan(context, c->x, c->axis, &first);
    }
    if (!status) {
        status = pass_record(context, &first);
    }
    if (!status) {
        status = pass_plan(context, &partials[0], c->axis, &second);
    }
    if (!status) {
        status = pass_record(context, &second);
    }
    ops_tensor_release(&partials[0]);
    ops_tensor_release(&partials[1]);
    return status;
}

static hal_status reduce_record(ops_context *context, const reduce_call *c)
{
    ops_reduce_pass pass;
    pass_init(c, &pass);
    pass_add_output(c, &pass);
    hal_status status = pass_plan(context, c->x, c->axis, &pass);
    if (status) {
        return status;
    }
    status = pass_choose_slices(context, &pass);
    if (status) {
        return status;
    }
    return pass.slices > 1 ? reduce_sliced(context, c, &pass) : pass_record(context, &pass);
}

hal_status ops_reduce(ops_context *context, ops_reduction reduction, int32_t axis,
                      const ops_tensor *x, const ops_reduce_options *options, const ops_tensor *y)
{
    reduce_call c = {.kind = reduction, .given_axis = axis, .x = x, .y = y};
    c.axis = x ? ops_axis_number(axis, x->rank) : UINT32_MAX;
    if (options && !options_are_zero(options)) {
        hal_status status =
            ops_check_size("ops_reduce", "options", options->size, sizeof(ops_reduce_options));
        if (status) {
            return status;
        }
        c.options = *options;
    }
    hal_status status = check(context, &c);
    return status || ops_tensor_get_element_count(y) == 0 ? status : reduce_record(context, &c);
}
