/* Pointwise expressions as kernels, and the common functions made of them. */
#include "tensor/overlap.h"
#include "cast.h"
#include "functions.h"
#include "short_functions.h"
#include "tensor/plan_recorder.h"
#include "elementwise.h"
#include "tensor/dispatch.h"
#include "tensor/kernel_cache.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The arguments of a call, and their names in messages. */
typedef struct pointwise_call {
    const char *function;
    const ops_expression *expression;
    const ops_tensor *inputs, *outputs;
    uint32_t input_count, output_count;
    const char *const *input_names, *const *output_names;
} pointwise_call;

/* A kernel and its dispatch. Views are numbered inputs first. */
typedef struct pointwise_plan {
    const ops_expression *expression;
    uint8_t slots[OPS_MAX_INPUTS + OPS_MAX_OUTPUTS]; /* bindings of the views */
    ops_bindings bindings;
    ops_space space;
    ops_elementwise_plan plan;
} pointwise_plan;

static const char *const numbered_inputs[OPS_MAX_INPUTS] = {
    "inputs[0]",  "inputs[1]",  "inputs[2]",  "inputs[3]", "inputs[4]",  "inputs[5]",
    "inputs[6]",  "inputs[7]",  "inputs[8]",  "inputs[9]", "inputs[10]", "inputs[11]",
    "inputs[12]", "inputs[13]", "inputs[14]", "inputs[15]"};
static const char *const numbered_outputs[OPS_MAX_OUTPUTS] = {
    "outputs[0]", "outputs[1]", "outputs[2]", "outputs[3]",
    "outputs[4]", "outputs[5]", "outputs[6]", "outputs[7]"};
static const char *const names_xyz[] = {"x", "y", "z"};

static hal_status check_types(const pointwise_call *c)
{
    const ops_expression *e = c->expression;
    char text[OPS_TEXT_BYTES];
    for (uint32_t i = 0; i < c->input_count; i++) {
        if (hal_type_of_value(c->inputs[i].type) != e->inputs[i]) {
            return ops_invalid("%s: %s: expected %s, as input %u of the expression, got %s",
                               c->function, c->input_names[i], hal_type_name(e->inputs[i]), i,
                               ops_describe(&c->inputs[i], text));
        }
    }
    for (uint32_t i = 0; i < c->output_count; i++) {
        if (hal_type_of_value(c->outputs[i].type) != e->outputs[i]) {
            return ops_invalid("%s: %s: expected %s, as the result is, got %s", c->function,
                               c->output_names[i], hal_type_name(e->outputs[i]),
                               ops_describe(&c->outputs[i], text));
        }
    }
    return HAL_OK;
}

static hal_status check_overlaps(const pointwise_call *c)
{
    for (uint32_t i = 0; i < c->output_count; i++) {
        const ops_tensor *out = &c->outputs[i];
        const char *other = NULL;
        for (uint32_t j = 0; j < c->input_count && !other; j++) {
            const ops_tensor *in = &c->inputs[j];
            other = ops_overlap(in, out) && !ops_same_view(in, out) ? c->input_names[j] : NULL;
        }
        for (uint32_t j = 0; j < i && !other; j++) {
            other = ops_overlap(&c->outputs[j], out) ? c->output_names[j] : NULL;
        }
        if (other) {
            return ops_invalid("%s: %s: expected %s itself or other memory, got an overlap",
                               c->function, c->output_names[i], other);
        }
    }
    return HAL_OK;
}

static hal_status check_call(const ops_context *context, const pointwise_call *c)
{
    for (uint32_t i = 0; i < c->output_count; i++) {
        HAL_TRY(ops_check_output(context, c->function, c->output_names[i], &c->outputs[i]));
        if (!ops_same_shape(&c->outputs[i], &c->outputs[0])) {
            char text[2][OPS_TEXT_BYTES];
            return ops_invalid("%s: %s: expected the shape of %s %s, got %s", c->function,
                               c->output_names[i], c->output_names[0],
                               ops_describe(&c->outputs[0], text[0]),
                               ops_describe(&c->outputs[i], text[1]));
        }
    }
    const ops_tensor *out = &c->outputs[0];
    for (uint32_t i = 0; i < c->input_count; i++) {
        hal_status status =
            ops_check_tensor(context, c->function, c->input_names[i], &c->inputs[i]);
        if (status == HAL_OK && !ops_same_shape(&c->inputs[i], out)) {
            status = ops_check_broadcast(c->function, c->input_names[i], &c->inputs[i], out->rank,
                                         out->shape);
        }
        if (status != HAL_OK) {
            return status;
        }
    }
    hal_status status = check_types(c);
    return status != HAL_OK ? status : check_overlaps(c);
}

static hal_status plan_bind(const ops_context *context, const pointwise_call *c, pointwise_plan *p)
{
    const uint32_t count = c->input_count + c->output_count;
    /* Outputs first, so that an input in the same memory finds its output's binding. */
    for (uint32_t i = 0; i < count; i++) {
        const bool is_output = i < c->output_count;
        const uint32_t view = is_output ? c->input_count + i : i - c->output_count;
        const ops_tensor *tensor = is_output ? &c->outputs[i] : &c->inputs[view];
        const uint32_t slot =
            ops_bind(context, &p->bindings, tensor, is_output ? HAL_ACCESS_WRITE : HAL_ACCESS_READ);
        if (slot >= context->info->max_bindings) {
            return hal_status_set(HAL_ERROR_UNSUPPORTED,
                                  "%s: inputs: expected at most %u tensors, which %s binds, got %u",
                                  c->function, context->info->max_bindings, context->info->name,
                                  count);
        }
        p->slots[view] = (uint8_t)slot;
    }
    ops_bindings_merge(&p->bindings, p->slots, count);
    ops_space_begin(&p->space, c->outputs[0].rank, c->outputs[0].shape);
    for (uint32_t i = 0; i < count; i++) {
        const ops_tensor *tensor =
            i < c->input_count ? &c->inputs[i] : &c->outputs[i - c->input_count];
        ops_space_add(&p->space, tensor, ops_base(&p->bindings, p->slots[i], tensor));
    }
    return HAL_OK;
}

/* Plans and finds the kernel. */
static hal_status plan_find_kernel(ops_context *context, const pointwise_call *c,
                                   const ops_elementwise_kernel *kernel, pointwise_plan *p,
                                   ops_entry **entry)
{
    uint64_t starts[OPS_MAX_VIEWS];
    uint32_t sizes[OPS_MAX_VIEWS], size = 1;
    ops_elementwise_use use = {.function = c->function, .starts = starts, .sizes = sizes};
    ops_cache_key key;
    ops_cache_key_begin(&key, OPS_FAMILY_POINTWISE);
    ops_cache_key_append(&key, c->expression->hash, sizeof c->expression->hash);
    ops_bindings_key(&p->bindings, p->slots, p->space.view_count, &key);
    for (uint32_t i = 0; i < p->space.view_count; i++) {
        const uint32_t slot = p->slots[i], bytes = hal_type_size(p->bindings.types[slot]);
        starts[i] = p->bindings.ranges[slot].offset / bytes;
        sizes[i] = bytes;
        size = bytes > size ? bytes : size;
        if (i < c->input_count && c->expression->inputs[i] != HAL_TYPE_BOOL) {
            use.loaded |= UINT32_C(1) << i;
        }
    }
    use.repeatable = 1;
    for (uint32_t i = 0; i < c->input_count; i++) {
        for (uint32_t k = c->input_count; k < p->space.view_count; k++) {
            use.repeatable = use.repeatable && p->slots[i] != p->slots[k];
        }
    }
    use.widest = ops_elementwise_widest(context, size);
    ops_space_collapse(&p->space, c->input_count);
    return ops_elementwise_find_kernel(context, &use, kernel, &key, &p->space, &p->plan, entry);
}

static void emit_expression(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    const pointwise_plan *p = user;
    const ops_expression *e = p->expression;
    hal_ir_value loaded[OPS_MAX_INPUTS][OPS_MAX_ELEMENTS];
    hal_ir_value stored[OPS_MAX_OUTPUTS][OPS_MAX_ELEMENTS];
    for (uint32_t i = 0; i < e->input_count; i++) {
        ops_element_load(b, iter, i, p->slots[i], loaded[i]);
    }
    for (uint32_t element = 0; element < iter->width; element++) {
        hal_ir_value inputs[OPS_MAX_INPUTS], outputs[OPS_MAX_OUTPUTS];
        for (uint32_t i = 0; i < e->input_count; i++) {
            inputs[i] = loaded[i][element];
        }
        hal_ir_splice(b, e->fragment, inputs, e->input_count, outputs, e->output_count);
        for (uint32_t i = 0; i < e->output_count; i++) {
            stored[i][element] = outputs[i];
        }
    }
    for (uint32_t i = 0; i < e->output_count; i++) {
        const uint32_t view = e->input_count + i;
        ops_element_store(b, iter, view, p->slots[view], stored[i]);
    }
}

static void emit_pointwise(hal_ir_builder *b, const void *user)
{
    const pointwise_plan *p = user;
    ops_layout_values values;
    ops_declare_bindings(b, &p->bindings);
    ops_elementwise_declare(b, &p->space, &p->plan, &values);
    ops_elementwise_emit(b, &p->plan, &values, p->slots, p->bindings.types, emit_expression, p);
}

static hal_status pointwise_record(ops_context *context, const pointwise_call *c)
{
    hal_status status = check_call(context, c);
    if (status != HAL_OK || ops_tensor_get_element_count(&c->outputs[0]) == 0) {
        return status;
    }
    pointwise_plan p;
    p.expression = c->expression;
    p.bindings.count = 0;
    const hal_ir_kernel *fragment = c->expression->fragment;
    const ops_elementwise_kernel kernel = {
        .name = fragment->names + fragment->name, .emit = emit_pointwise, .user = &p};
    ops_entry *entry;
    HAL_TRY(plan_bind(context, c, &p));
    HAL_TRY(plan_find_kernel(context, c, &kernel, &p, &entry));
    ops_block block;
    ops_block_begin(&block);
    ops_elementwise_put(&p.space, &p.plan, &block);
    return ops_dispatch(context, entry, p.plan.grid, &p.bindings, &block);
}

static hal_status check_operands(const char *function, const ops_context *context,
                                 const ops_tensor *x, const ops_tensor *y, const ops_tensor *z)
{
    if (context && x && y && z) {
        hal_type type = hal_type_of_value(x->type);
        return type ? HAL_OK : ops_invalid("%s: x: expected a hal_type, got %u", function, x->type);
    }
    return ops_invalid("%s: %s: expected a pointer, got null", function,
                       !context ? "context"
                       : !x     ? "x"
                       : !y     ? "y"
                                : "the output");
}

/* A function of one value, and the type that its result is rounded to. */
typedef struct rounded_function {
    const hal_device_info *info;
    ops_unary_function function;
    hal_type type;
} rounded_function;

static hal_ir_value build_unary(hal_ir_builder *b, const hal_ir_value *in, const void *user)
{
    const rounded_function *rounded = user;
    return ops_unary_rounded(b, rounded->info, rounded->function, rounded->type, in[0]);
}

static hal_ir_value build_binary(hal_ir_builder *b, const hal_ir_value *in, const void *user)
{
    return ops_binary_value(b, *(const ops_binary_function *)user, in[0], in[1]);
}

static hal_ir_value build_where(hal_ir_builder *b, const hal_ir_value *in, const void *user)
{
    (void)user;
    return hal_ir_select(b, in[0], in[1], in[2]);
}

static hal_ir_value build_cast(hal_ir_builder *b, const hal_ir_value *in, const void *user)
{
    return ops_cast_value(b, *(const hal_type *)user, in[0]);
}

/* Records a fill of whole words by the queue. False when y or the value does not consist of
 * them. */
static bool record_word_fill(ops_context *context, const ops_tensor *y, double value,
                             hal_status *status)
{
    uint64_t size = hal_type_size(y->type);
    uint64_t offset = (uint64_t)y->offset * size,
             bytes = (uint64_t)ops_tensor_get_element_count(y) * size;
    bool is_zero = value == 0 && !signbit(value);
    bool is_word = y->type == HAL_TYPE_F32 || y->type == HAL_TYPE_I32 || y->type == HAL_TYPE_U32;
    if (!(is_zero || is_word) || !ops_tensor_is_contiguous(y) || offset % 4 || bytes % 4) {
        return false;
    }
    ops_block block;
    uint32_t pattern;
    ops_block_begin(&block);
    ops_put_number(&block, is_word ? y->type : (hal_type)HAL_TYPE_U32, value);
    memcpy(&pattern, block.bytes, sizeof pattern);
    *status = ops_record_fill(context, (hal_range){y->buffer, offset, bytes}, pattern);
    return true;
}

/* A fill by a kernel. */
typedef struct fill_plan {
    hal_type type, scalar_type; /* of values; of the scalar, which cannot be BOOL */
    ops_bindings bindings;
    ops_space space;
    ops_elementwise_plan plan;
} fill_plan;

static void emit_fill_element(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    ops_element_store(b, iter, 0, 0, user);
}

static void emit_fill(hal_ir_builder *b, const void *user)
{
    const fill_plan *p = user;
    ops_layout_values values;
    ops_declare_bindings(b, &p->bindings);
    ops_elementwise_declare(b, &p->space, &p->plan, &values);
    hal_ir_value element = hal_ir_scalar_value(b, "value", p->scalar_type);
    element = p->type == p->scalar_type ? element : hal_ir_cast(b, p->type, element);
    ops_elementwise_emit(b, &p->plan, &values, NULL, NULL, emit_fill_element, &element);
}

static hal_status fill_strided(ops_context *context, const ops_tensor *y, double value)
{
    fill_plan p;
    p.type = hal_type_of_value(y->type);
    p.scalar_type = p.type == HAL_TYPE_BOOL ? (hal_type)HAL_TYPE_U32 : p.type;
    p.bindings.count = 0;
    const uint8_t slot = (uint8_t)ops_bind(context, &p.bindings, y, HAL_ACCESS_WRITE);
    ops_space_begin(&p.space, y->rank, y->shape);
    ops_space_add(&p.space, y, ops_base(&p.bindings, slot, y));
    ops_space_collapse(&p.space, 0);
    const ops_elementwise_use use = {.function = "ops_fill", .widest = 1, .reserved = 16};
    const ops_elementwise_kernel kernel = {.name = "fill", .emit = emit_fill, .user = &p};
    ops_cache_key key;
    ops_entry *entry;
    ops_cache_key_begin(&key, OPS_FAMILY_FILL);
    ops_bindings_key(&p.bindings, &slot, 1, &key);
    HAL_TRY(ops_elementwise_find_kernel(context, &use, &kernel, &key, &p.space, &p.plan, &entry));
    ops_block block;
    ops_block_begin(&block);
    ops_elementwise_put(&p.space, &p.plan, &block);
    ops_put_number(&block, p.scalar_type, ops_round_to(y->type, value));
    return ops_dispatch(context, entry, p.plan.grid, &p.bindings, &block);
}

hal_status ops_pointwise(ops_context *context, const ops_expression *expression,
                         const ops_tensor *inputs, uint32_t input_count, const ops_tensor *outputs,
                         uint32_t output_count)
{
    if (!context || !expression || (input_count && !inputs) || !outputs) {
        return ops_invalid("ops_pointwise: %s: expected a pointer, got null",
                           !context      ? "context"
                           : !expression ? "expression"
                           : !outputs    ? "outputs"
                                         : "inputs");
    }
    if (input_count != expression->input_count || output_count != expression->output_count) {
        return ops_invalid("ops_pointwise: input_count, output_count: expected %u and %u, as the "
                           "expression has, got %u and %u",
                           expression->input_count, expression->output_count, input_count,
                           output_count);
    }
    pointwise_call c = {"ops_pointwise", expression,   inputs,          outputs,
                        input_count,     output_count, numbered_inputs, numbered_outputs};
    return pointwise_record(context, &c);
}

hal_status ops_unary(ops_context *context, ops_unary_function function, const ops_tensor *x,
                     const ops_tensor *y)
{
    HAL_TRY(check_operands("ops_unary", context, x, y, y));
    ops_expression *expression;
    const hal_type rounded =
        hal_type_of_value(y->type) == hal_type_of_value(x->type) ? y->type : x->type;
    HAL_TRY(ops_unary_expression(context, "ops_unary", function, rounded, &expression));
    pointwise_call c = {"ops_unary", expression, x, y, 1, 1, names_xyz, names_xyz + 1};
    return pointwise_record(context, &c);
}

hal_status ops_binary(ops_context *context, ops_binary_function function, const ops_tensor *x,
                      const ops_tensor *y, const ops_tensor *z)
{
    HAL_TRY(check_operands("ops_binary", context, x, y, z));
    ops_expression *expression;
    HAL_TRY(ops_binary_expression(context, "ops_binary", function, x->type, &expression));
    ops_tensor inputs[2] = {*x, *y};
    pointwise_call c = {"ops_binary", expression, inputs, z, 2, 1, names_xyz, names_xyz + 2};
    return pointwise_record(context, &c);
}

/* Makes the expression of a function of `count` operands of one type. For a type that the function
 * does not take, the message lists those that it takes. */
static hal_status function_make(const char *caller, const char *name, hal_type type, uint32_t count,
                                ops_expression_body build, const void *user,
                                ops_expression **expression)
{
    hal_type types[2] = {type, type};
    const hal_status status = ops_expression_make(name, types, count, build, user, expression);
    if (status == HAL_OK || status == HAL_ERROR_OUT_OF_MEMORY) {
        return status;
    }
    char taken[64] = "";
    for (hal_type other = 1; other < HAL_TYPE_COUNT; other++) {
        ops_expression *made = NULL;
        types[0] = types[1] = other;
        if (hal_type_of_value(other) == other &&
            !ops_expression_make(name, types, count, build, user, &made)) {
            const size_t used = strlen(taken);
            snprintf(taken + used, sizeof taken - used, " %s", hal_type_name(other));
        }
        ops_expression_destroy(made);
    }
    return ops_invalid("%s: x: %s does not take %s, only%s", caller, name, hal_type_name(type),
                       taken);
}

hal_status ops_unary_expression_make(ops_context *context, const char *caller,
                                     ops_unary_function function, hal_type type,
                                     ops_expression **expression)
{
    if ((uint32_t)function >= OPS_UNARY_COUNT) {
        return ops_invalid("%s: function: expected an ops_unary_function, got %d", caller,
                           (int)function);
    }
    const rounded_function rounded = {context->info, function, type};
    ops_expression **kept = &context->unary[function][type];
    const hal_status status = function_make(
        caller, ops_unary_name(function), hal_type_of_value(type), 1, build_unary, &rounded, kept);
    *expression = *kept;
    return status;
}

hal_status ops_binary_expression_make(ops_context *context, const char *caller,
                                      ops_binary_function function, hal_type type,
                                      ops_expression **expression)
{
    if ((uint32_t)function >= OPS_BINARY_COUNT) {
        return ops_invalid("%s: function: expected an ops_binary_function, got %d", caller,
                           (int)function);
    }
    ops_expression **kept = &context->binary[function][type];
    const hal_status status =
        function_make(caller, ops_binary_name(function), hal_type_of_value(type), 2, build_binary,
                      &function, kept);
    *expression = *kept;
    return status;
}

hal_status ops_where(ops_context *context, const ops_tensor *condition, const ops_tensor *x,
                     const ops_tensor *y, const ops_tensor *out)
{
    static const char *const names[] = {"condition", "x", "y", "out"};
    hal_status status = check_operands("ops_where", context, x, y, out);
    if (status != HAL_OK || !condition) {
        return status != HAL_OK ? status
                                : ops_invalid("ops_where: condition: expected a pointer, got null");
    }
    hal_type type = hal_type_of_value(x->type);
    ops_expression **kept = &context->where[type];
    if (!*kept) {
        hal_type types[3] = {HAL_TYPE_BOOL, type, type};
        HAL_TRY(ops_expression_make("where", types, 3, build_where, NULL, kept));
    }
    ops_tensor inputs[3] = {*condition, *x, *y};
    pointwise_call c = {"ops_where", *kept, inputs, out, 3, 1, names, names + 3};
    return pointwise_record(context, &c);
}

hal_status ops_cast(ops_context *context, const ops_tensor *x, const ops_tensor *y)
{
    HAL_TRY(check_operands("ops_cast", context, x, y, y));
    hal_type from = hal_type_of_value(x->type), to = hal_type_of_value(y->type);
    if (from == HAL_TYPE_NONE || to == HAL_TYPE_NONE) {
        return ops_invalid("ops_cast: %s: expected a hal_type, got %u",
                           from == HAL_TYPE_NONE ? "x" : "y",
                           from == HAL_TYPE_NONE ? x->type : y->type);
    }
    /* Casts saturate and round for the storage type: one expression per y->type. */
    ops_expression **kept = &context->cast[from][y->type];
    if (!*kept) {
        HAL_TRY(ops_expression_make("cast", &from, 1, build_cast, &y->type, kept));
    }
    pointwise_call c = {"ops_cast", *kept, x, y, 1, 1, names_xyz, names_xyz + 1};
    return pointwise_record(context, &c);
}

hal_status ops_fill(ops_context *context, double value, const ops_tensor *y)
{
    hal_status status = ops_check_output(context, "ops_fill", "y", y);
    if (status != HAL_OK || ops_tensor_get_element_count(y) == 0 ||
        record_word_fill(context, y, value, &status)) {
        return status;
    }
    return fill_strided(context, y, value);
}
