/* Reductions along an axis: checks, one pass or two, and how each is spread over the device. */
#include "tensor/overlap.h"
#include "reduce.h"
#include "tensor/dispatch.h"

#include <string.h>

/* A work-item's share of a slice is at least this long, a slice at least so many elements. */
#define LEAST_STEPS 16
#define LEAST_SLICE 8192
#define MOST_SLICES 1024

/* The arguments of a call. */
typedef struct call {
    ops_reduction kind;
    int32_t given_axis; /* as the caller wrote it */
    uint32_t axis;      /* UINT32_MAX where x has no such axis */
    const ops_tensor *x, *y;
    ops_reduce_options options;
    hal_type type, result;
} call;

/* A structure of zeros has neither prologue nor epilogue. */
static int options_are_zero(const ops_reduce_options *o)
{
    return o->size == 0 && !o->prologue && !o->prologue_inputs && o->prologue_input_count == 0 &&
           !o->epilogue && !o->epilogue_inputs && o->epilogue_input_count == 0;
}

static hal_status check_shapes(const call *c)
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
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "ops_reduce: y %s does not fit x %s reduced along axis %d",
                              ops_describe(y, text[0]), ops_describe(x, text[1]), c->given_axis);
    }
    if (x->shape[c->axis] > INT32_MAX) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "ops_reduce: axis %u of x %s is longer than 2^31 - 1", c->axis,
                              ops_describe(x, text[0]));
    }
    if (x->shape[c->axis] == 0 && c->kind != OPS_REDUCE_SUM &&
        ops_tensor_get_element_count(y) > 0) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "ops_reduce: axis %u of x %s has no elements; only a sum of nothing "
                              "has a value",
                              c->axis, ops_describe(x, text[0]));
    }
    return HAL_OK;
}

/* Counts, types and shapes of an expression's further inputs. */
static hal_status check_further(const ops_context *context, const char *name,
                                const ops_expression *expression, const ops_tensor *inputs,
                                uint32_t count, const ops_tensor *shape)
{
    if (!expression && count == 0) {
        return HAL_OK;
    }
    if (!expression || expression->input_count != 1 + count || expression->output_count != 1 ||
        (count && !inputs)) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "ops_reduce: options.%s has %u inputs and %u outputs; it needs 1 + "
                              "%u (options.%s_input_count) inputs and 1 output",
                              name, expression ? expression->input_count : 0,
                              expression ? expression->output_count : 0, count, name);
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
            return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                                  "ops_reduce: input %u of options.%s is %s, %s is given", 1 + i,
                                  name, hal_type_name(expression->inputs[1 + i]),
                                  hal_type_name(inputs[i].type));
        }
    }
    return HAL_OK;
}

static hal_status check_prologue(const ops_context *context, call *c)
{
    const ops_reduce_options *o = &c->options;
    hal_status status = check_further(context, "prologue", o->prologue, o->prologue_inputs,
                                      o->prologue_input_count, c->x);
    if (status) {
        return status;
    }
    c->type = hal_type_of_value(c->x->type);
    if (o->prologue) {
        if (o->prologue->inputs[0] != c->type) {
            return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                                  "ops_reduce: input 0 of options.prologue is %s, x gives %s",
                                  hal_type_name(o->prologue->inputs[0]), hal_type_name(c->type));
        }
        c->type = o->prologue->outputs[0];
    }
    if (c->type == HAL_TYPE_BOOL || (c->kind == OPS_REDUCE_MEAN && !hal_type_is_float(c->type))) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "ops_reduce: %s cannot be reduced so; cast it first, or in a "
                              "prologue",
                              hal_type_name(c->type));
    }
    return HAL_OK;
}

static hal_status check_result(const call *c)
{
    const ops_expression *e = c->options.epilogue;
    hal_type given = c->result, stored = hal_type_of_value(c->y->type);
    if (e && e->inputs[0] != given) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "ops_reduce: input 0 of options.epilogue is %s, the result is %s",
                              hal_type_name(e->inputs[0]), hal_type_name(given));
    }
    given = e ? e->outputs[0] : given;
    if (given != stored) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "ops_reduce: y is of %s, the result is %s", hal_type_name(c->y->type),
                              hal_type_name(given));
    }
    return HAL_OK;
}

static hal_status check_epilogue(const ops_context *context, call *c)
{
    const ops_reduce_options *o = &c->options;
    hal_status status = check_further(context, "epilogue", o->epilogue, o->epilogue_inputs,
                                      o->epilogue_input_count, c->y);
    if (status) {
        return status;
    }
    c->result = c->type;
    if (c->kind == OPS_REDUCE_ARGMAX) {
        c->result = o->epilogue ? o->epilogue->inputs[0] : hal_type_of_value(c->y->type);
        if (c->result != HAL_TYPE_I32 && c->result != HAL_TYPE_I64) {
            return hal_status_set(
                HAL_ERROR_INVALID_ARGUMENT, "ops_reduce: a place is i32 or i64, %s takes %s",
                o->epilogue ? "input 0 of options.epilogue" : "y", hal_type_name(c->result));
        }
    }
    return check_result(c);
}

static hal_status check_overlap(const call *c)
{
    int overlaps = ops_overlap(c->x, c->y);
    for (uint32_t i = 0; i < c->options.prologue_input_count; i++) {
        overlaps |= ops_overlap(&c->options.prologue_inputs[i], c->y);
    }
    for (uint32_t i = 0; i < c->options.epilogue_input_count; i++) {
        const ops_tensor *in = &c->options.epilogue_inputs[i];
        overlaps |= ops_overlap(in, c->y) && !ops_same_view(in, c->y);
    }
    return overlaps ? hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                                     "ops_reduce: y overlaps x or a further input")
                    : HAL_OK;
}

static hal_status check(const ops_context *context, call *c)
{
    hal_status status = ops_check_tensor(context, "ops_reduce", "x", c->x);
    if (!status) {
        status = ops_check_output(context, "ops_reduce", "y", c->y);
    }
    if (!status && (uint32_t)c->kind >= OPS_REDUCTION_COUNT) {
        status = hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                                "ops_reduce: kind: expected an ops_reduction, got %d",
                                (int)c->kind);
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

/* The pass over x. */
static void begin_pass(const call *c, ops_reduce_pass *pass)
{
    pass->kind = c->kind;
    pass->type = c->type;
    pass->result = c->result;
    pass->from_partials = pass->to_partials = 0;
    pass->slices = 1;
    pass->mean_length = c->x->shape[c->axis];
    pass->prologue = c->options.prologue;
    pass->epilogue = NULL;
    pass->tensors[0] = *c->x;
    pass->input_count = 1 + c->options.prologue_input_count;
    for (uint32_t i = 1; i < pass->input_count; i++) {
        pass->tensors[i] = c->options.prologue_inputs[i - 1];
    }
    pass->output_count = pass->further_count = 0;
}

/* A tensor of the output's shape as one of x's rank, with length 1 at the axis. */
static ops_tensor with_axis(const ops_tensor *tensor, const ops_tensor *y, const call *c)
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

static void add_output(const call *c, ops_reduce_pass *pass)
{
    ops_tensor *next = &pass->tensors[pass->input_count];
    pass->epilogue = c->options.epilogue;
    pass->output_count = 1;
    pass->further_count = c->options.epilogue_input_count;
    *next++ = with_axis(c->y, c->y, c);
    for (uint32_t i = 0; i < pass->further_count; i++) {
        *next++ = with_axis(&c->options.epilogue_inputs[i], c->y, c);
    }
}

/* The team decides the order of additions, so it is that of x by itself: what comes before or after
 * does not change the result. What a prologue makes is taken to lie in row-major order, as it would
 * in memory. */
static void choose_team(const ops_context *context, const ops_tensor *x, uint32_t axis, int is_made,
                        ops_reduce_layout *team)
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
    ops_reduce_layout_choose(context, &space, &taken, 0, team);
}

/* Bindings, space, team and loops of a pass over `shape`. */
static hal_status plan(const ops_context *context, const ops_tensor *shape, uint32_t axis,
                       ops_reduce_pass *pass)
{
    uint32_t count = pass->input_count + pass->output_count + pass->further_count;
    uint32_t first_out = pass->input_count, end_out = first_out + pass->output_count;
    pass->bindings.count = 0;
    for (uint32_t i = 0; i < count; i++) {
        /* Outputs first: a further input that is the same view then finds its binding. */
        uint32_t view = i < pass->output_count ? first_out + i
                        : i < end_out          ? i - pass->output_count
                                               : i;
        int is_output = view >= first_out && view < end_out;
        uint32_t slot = ops_bind(context, &pass->bindings, &pass->tensors[view],
                                 is_output ? HAL_ACCESS_WRITE : HAL_ACCESS_READ);
        if (slot >= context->info->max_bindings) {
            return hal_status_set(HAL_ERROR_UNSUPPORTED,
                                  "ops_reduce: %u tensors are more than the %u bindings of %s",
                                  count, context->info->max_bindings, context->info->name);
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
    choose_team(context, shape, axis, pass->prologue != NULL, &pass->team);
    ops_layout_choose(context, &pass->space, count * 8 + 32, ops_axis_reach(&pass->axis, count),
                      &pass->layout);
    return HAL_OK;
}

/* Slices of the axis, where the outputs alone would leave units of the device idle. */
static void choose_slices(const ops_context *context, ops_reduce_pass *pass)
{
    const ops_reduce_layout *team = &pass->team;
    int64_t outputs = ops_space_elements(&pass->space), length = pass->axis.length;
    int64_t groups = (outputs + team->outputs - 1) / team->outputs;
    int64_t wanted = 4 * (int64_t)context->info->compute_units;
    int64_t across = outputs < team->outputs ? outputs : team->outputs;
    int64_t most = length / ((int64_t)team->along * LEAST_STEPS);
    int64_t by_size = length * across / LEAST_SLICE;
    most = by_size < most ? by_size : most;
    most = most < MOST_SLICES ? most : MOST_SLICES;
    most = most < context->info->max_grid[2] ? most : context->info->max_grid[2];
    int64_t slices = (wanted + groups - 1) / groups;
    slices = slices < most ? slices : most;
    if (2 * groups > wanted || slices < 2 || team->grid_may_overrun) {
        pass->slice_length = (uint32_t)length;
        return;
    }
    int64_t step = (int64_t)team->along * 4; /* whole steps of the unrolled loop */
    int64_t slice = ((length + slices - 1) / slices + step - 1) / step * step;
    pass->slice_length = (uint32_t)slice;
    pass->slices = (uint32_t)((length + slice - 1) / slice);
}

/* Memory for the partial results: the outputs in row-major order, slice after slice. */
static hal_status make_partials(ops_context *context, const call *c, const ops_reduce_pass *pass,
                                hal_type type, ops_tensor *partial)
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

static void choose_loops(ops_reduce_pass *pass)
{
    int64_t steps = (pass->to_partials ? pass->slice_length : pass->axis.length) / pass->team.along;
    pass->unroll = steps >= 8 ? 4 : 1;
    pass->nested = (pass->kind == OPS_REDUCE_SUM || pass->kind == OPS_REDUCE_MEAN) &&
                   hal_type_is_float(pass->type) && steps / pass->unroll > 512;
}

static void sign(const ops_reduce_pass *pass, ops_cache_key *signature)
{
    uint32_t count = pass->input_count + pass->output_count + pass->further_count;
    ops_cache_key_append(signature, OPS_FAMILY_REDUCE);
    ops_cache_key_append(
        signature, (uint64_t)pass->kind | (uint64_t)pass->type << 8 | (uint64_t)pass->result << 16 |
                       (uint64_t)pass->from_partials << 24 | (uint64_t)pass->to_partials << 25 |
                       (uint64_t)pass->nested << 26 | (uint64_t)pass->unroll << 32 |
                       (uint64_t)pass->input_count << 40 | (uint64_t)pass->further_count << 48);
    const ops_expression *expressions[2] = {pass->prologue, pass->epilogue};
    for (uint32_t i = 0; i < 2; i++) {
        ops_cache_key_append(signature, expressions[i] ? expressions[i]->hash[0] : 0);
        ops_cache_key_append(signature, expressions[i] ? expressions[i]->hash[1] : 0);
    }
    ops_bindings_key(&pass->bindings, pass->slots, count, signature);
    ops_reduce_layout_key(&pass->team, signature);
    ops_axis_key(&pass->axis, count, signature);
    ops_layout_key(&pass->space, &pass->layout, signature);
}

static hal_status record(ops_context *context, ops_reduce_pass *pass)
{
    uint32_t grid[3];
    hal_status status =
        ops_reduce_layout_grid(context, "ops_reduce", &pass->space, &pass->team, grid);
    if (status) {
        return status;
    }
    if (pass->to_partials) {
        grid[2] = pass->slices;
    }
    choose_loops(pass);
    ops_cache_key signature;
    uint64_t key[2];
    signature.count = 0;
    sign(pass, &signature);
    ops_entry *entry = ops_cache_find(context, &signature, key);
    if (!entry) {
        hal_ir_builder *b;
        status = hal_ir_builder_create("reduce", &b);
        if (status) {
            return status;
        }
        ops_declare_bindings(b, &pass->bindings);
        ops_reduce_emit(b, pass);
        status = ops_cache_build(context, key, b, &entry);
        if (status) {
            return status;
        }
    }
    ops_block block;
    ops_block_begin(&block);
    ops_reduce_put(pass, &block);
    return ops_dispatch(context, entry, grid, &pass->bindings, &block);
}

/* Two passes: slices of the axis to partial results, those to y. */
static hal_status run_sliced(ops_context *context, const call *c, ops_reduce_pass *pass)
{
    int pairs = c->kind == OPS_REDUCE_ARGMAX;
    ops_tensor partials[2] = {{0}, {0}};
    ops_reduce_pass first, second;
    begin_pass(c, &first);
    first.to_partials = 1;
    first.slices = pass->slices;
    first.slice_length = pass->slice_length;
    first.slice_stride = ops_space_elements(&pass->space);
    first.output_count = pairs ? 2 : 1;
    hal_status status = make_partials(context, c, pass, c->type, &partials[0]);
    if (!status && pairs) {
        status = make_partials(context, c, pass, HAL_TYPE_U32, &partials[1]);
    }

    begin_pass(c, &second);
    second.from_partials = 1;
    second.prologue = NULL;
    second.input_count = first.output_count;
    for (uint32_t i = 0; i < first.output_count; i++) {
        second.tensors[i] = partials[i];
        first.tensors[first.input_count + i] = partials[i];
    }
    add_output(c, &second);
    if (!status) {
        status = plan(context, c->x, c->axis, &first);
    }
    if (!status) {
        status = record(context, &first);
    }
    if (!status) {
        status = plan(context, &partials[0], c->axis, &second);
    }
    if (!status) {
        status = record(context, &second);
    }
    ops_tensor_release(&partials[0]);
    ops_tensor_release(&partials[1]);
    return status;
}

static hal_status run(ops_context *context, const call *c)
{
    ops_reduce_pass pass;
    begin_pass(c, &pass);
    add_output(c, &pass);
    hal_status status = plan(context, c->x, c->axis, &pass);
    if (status) {
        return status;
    }
    choose_slices(context, &pass);
    return pass.slices > 1 ? run_sliced(context, c, &pass) : record(context, &pass);
}

hal_status ops_reduce(ops_context *context, ops_reduction reduction, int32_t axis,
                      const ops_tensor *x, const ops_reduce_options *options, const ops_tensor *y)
{
    call c = {.kind = reduction, .given_axis = axis, .x = x, .y = y};
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
    return status || ops_tensor_get_element_count(y) == 0 ? status : run(context, &c);
}
