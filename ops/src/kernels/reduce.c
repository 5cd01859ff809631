/* Reductions along an axis: checks, and the row program. */
#include "reduce.h"

#include "rows.h"
#include "tensor/expression.h"
#include "tensor/loop_limit.h"
#include "tensor/overlap.h"

/* The arguments of a call. */
typedef struct reduce_call {
    ops_reduction kind;
    uint32_t axis;
    const ops_tensor *x, *y;
    const ops_tensor *made; /* what the prologue computes, as it would be in memory */
    ops_reduce_options options;
    hal_type type, result;
} reduce_call;

/* A zero-initialised structure, which means no prologue and no epilogue. */
static bool options_are_zero(const ops_reduce_options *o)
{
    return o->size == 0 && !o->prologue && !o->prologue_inputs && o->prologue_input_count == 0 &&
           !o->epilogue && !o->epilogue_inputs && o->epilogue_input_count == 0;
}

static hal_status check_shapes(const reduce_call *c)
{
    const ops_tensor *x = c->x, *y = c->y;
    char text[2][OPS_TEXT_BYTES];
    bool fits = y->rank == x->rank || y->rank + 1 == x->rank;
    for (uint32_t i = 0, j = 0; fits && i < x->rank; i++) {
        if (i == c->axis) {
            fits = y->rank != x->rank || y->shape[j++] == 1;
        } else {
            fits = y->shape[j++] == x->shape[i];
        }
    }
    if (!fits) {
        return ops_invalid(
            "ops_reduce: y: expected the shape of x %s reduced along axis %u, got %s",
            ops_describe(x, text[0]), c->axis, ops_describe(y, text[1]));
    }
    if (x->shape[c->axis] > INT32_MAX) {
        return hal_status_set(
            HAL_ERROR_UNSUPPORTED,
            "ops_reduce: x: expected at most 2^31 - 1 elements along axis %u, got "
            "%s",
            c->axis, ops_describe(x, text[0]));
    }
    if (x->shape[c->axis] == 0 && c->kind != OPS_REDUCE_SUM && c->kind != OPS_REDUCE_PRODUCT &&
        ops_tensor_get_element_count(y) > 0) {
        return ops_invalid("ops_reduce: x: expected elements along axis %u, got %s; only a sum or "
                           "product of no elements has a value",
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
        if (status == HAL_OK) {
            status = ops_check_broadcast("ops_reduce", name, &inputs[i], shape->rank, shape->shape);
        }
        if (status != HAL_OK) {
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
    HAL_TRY(check_further_inputs(context, "prologue", o->prologue, o->prologue_inputs,
                                 o->prologue_input_count, c->x));
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
    HAL_TRY(check_further_inputs(context, "epilogue", o->epilogue, o->epilogue_inputs,
                                 o->epilogue_input_count, c->y));
    c->result = c->type;
    if (ops_fold_finds_place(c->kind)) {
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
    bool overlaps = ops_overlap(c->x, c->y);
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

static hal_status check(const ops_context *context, int32_t axis, reduce_call *c)
{
    hal_status status = ops_check_tensor(context, "ops_reduce", "x", c->x);
    if (status == HAL_OK) {
        status = ops_check_output(context, "ops_reduce", "y", c->y);
    }
    if (status == HAL_OK && (uint32_t)c->kind >= OPS_REDUCTION_COUNT) {
        status = ops_invalid("ops_reduce: kind: expected an ops_reduction, got %d", (int)c->kind);
    }
    if (status == HAL_OK) {
        status = ops_check_axis("ops_reduce", "axis", c->x, axis, &c->axis);
    }
    if (status == HAL_OK) {
        status = check_shapes(c);
    }
    if (status == HAL_OK) {
        status = check_prologue(context, c);
    }
    if (status == HAL_OK) {
        status = check_epilogue(context, c);
    }
    return status != HAL_OK ? status : check_overlap(c);
}

/* A tensor of the output's shape with x's rank: length 1 at the axis. */
static ops_tensor with_axis(const ops_tensor *tensor, const ops_tensor *y, const reduce_call *c)
{
    int64_t strides[OPS_MAX_RANK];
    ops_broadcast_strides(tensor, y->rank, y->shape, strides);
    ops_tensor made = *tensor;
    made.rank = c->x->rank;
    for (uint32_t i = 0, j = 0; i < made.rank; i++) {
        bool missing = i == c->axis && y->rank < made.rank;
        made.shape[i] = missing ? 1 : y->shape[j];
        made.stride[i] = missing ? 0 : strides[j];
        j += !missing;
    }
    return made;
}

/* The program, and the tensors of inputs and outputs. */
typedef struct reduce_pass {
    ops_row_program program;
    ops_tensor tensors[2 * OPS_MAX_INPUTS + 2];
} reduce_pass;

/* Adds the values that are reduced, after the prologue, as the operand of the reduction. */
static uint8_t pass_add_elements(const reduce_call *c, reduce_pass *pass)
{
    uint8_t inputs[OPS_MAX_INPUTS] = {0};
    pass->tensors[0] = *c->x;
    for (uint32_t i = 1; i < 1 + c->options.prologue_input_count; i++) {
        inputs[i] = (uint8_t)i;
        pass->tensors[i] = c->options.prologue_inputs[i - 1];
    }
    return c->options.prologue ? ops_row_expression(&pass->program, c->options.prologue, inputs,
                                                    1 + c->options.prologue_input_count)
                               : 0;
}

/* Adds the result from the reduction: the epilogue, and y. The epilogue's further inputs are those
 * from `first_input` on. */
static void pass_add_result(const reduce_call *c, uint8_t reduction, uint32_t first_input,
                            reduce_pass *pass)
{
    const ops_reduce_options *o = &c->options;
    uint8_t inputs[OPS_MAX_INPUTS] = {reduction};
    if (ops_fold_finds_place(c->kind)) {
        const uint8_t place = ops_row_place(&pass->program, reduction);
        inputs[0] = ops_row_index(&pass->program, c->result, place);
    }
    for (uint32_t i = 0; i < o->epilogue_input_count; i++) {
        inputs[1 + i] = (uint8_t)(first_input + i);
        pass->tensors[first_input + i] = with_axis(&o->epilogue_inputs[i], c->y, c);
    }
    ops_row_output(&pass->program, o->epilogue
                                       ? ops_row_expression(&pass->program, o->epilogue, inputs,
                                                            1 + o->epilogue_input_count)
                                       : inputs[0]);
    pass->tensors[pass->program.input_count] = with_axis(c->y, c->y, c);
}

static hal_status pass_record(ops_context *context, const reduce_call *c, reduce_pass *pass)
{
    ops_row_layout layout;
    const int64_t steps = ops_loop_limit(context, ops_loops_of(c->options.prologue),
                                         ops_loops_of(c->options.epilogue));
    HAL_TRY(ops_row_layout_choose(context, "ops_reduce", c->options.prologue ? c->made : c->x,
                                  c->axis, c->type, steps, &layout));
    const uint32_t elements = 1 + c->options.prologue_input_count;
    ops_row_begin(&pass->program, elements + c->options.epilogue_input_count);
    const uint8_t operand = pass_add_elements(c, pass);
    const uint8_t reduction = ops_row_reduce(&pass->program, c->kind, c->type, &operand, 1);
    pass_add_result(c, reduction, elements, pass);
    const ops_row_call call = {.function = "ops_reduce",
                               .name = "reduce",
                               .program = &pass->program,
                               .rank = c->x->rank,
                               .axis = c->axis,
                               .shape = c->x->shape,
                               .tensors = pass->tensors,
                               .layout = &layout,
                               .mean_length = c->x->shape[c->axis]};
    return ops_row_record(context, &call);
}

static hal_status reduce_record(ops_context *context, const reduce_call *c)
{
    reduce_pass *pass = ops_scratch_take(&context->scratch, "ops_reduce", sizeof *pass);
    if (!pass) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    const hal_status status = pass_record(context, c, pass);
    ops_scratch_return(&context->scratch, pass);
    return status;
}

hal_status ops_reduce_as(ops_context *context, ops_reduction reduction, int32_t axis,
                         const ops_tensor *x, const ops_reduce_options *options,
                         const ops_tensor *y, const ops_tensor *made)
{
    reduce_call c = {.kind = reduction, .x = x, .y = y};
    if (options && !options_are_zero(options)) {
        HAL_TRY(ops_check_size("ops_reduce", "options", options->size, sizeof(ops_reduce_options)));
        c.options = *options;
    }
    hal_status status = check(context, axis, &c);
    if (status != HAL_OK || ops_tensor_get_element_count(y) == 0) {
        return status;
    }
    const ops_tensor usual = ops_row_major(x);
    c.made = made ? made : &usual;
    return reduce_record(context, &c);
}

hal_status ops_reduce(ops_context *context, ops_reduction reduction, int32_t axis,
                      const ops_tensor *x, const ops_reduce_options *options, const ops_tensor *y)
{
    return ops_reduce_as(context, reduction, axis, x, options, y, NULL);
}
