/* Pointwise expressions as kernels of their own, and the everyday functions made of them. */
#include "tensor/overlap.h"
#include "cast.h"
#include "functions.h"
#include "tensor/plan_recorder.h"
#include "elementwise.h"
#include "tensor/dispatch.h"

#include <string.h>

/* A call in flight: what to compute, on what, and how to name it in messages. */
typedef struct call {
    const char *function;
    const ops_expression *expression;
    const ops_tensor *inputs, *outputs;
    uint32_t input_count, output_count;
    const char *const *input_names, *const *output_names;
} call;

/* What the kernel's body needs: the binding of every tensor, inputs first. */
typedef struct body_plan {
    const ops_expression *expression;
    uint8_t slots[OPS_MAX_INPUTS + OPS_MAX_OUTPUTS];
} body_plan;

static const char *const numbered_inputs[OPS_MAX_INPUTS] = {
    "inputs[0]",  "inputs[1]",  "inputs[2]",  "inputs[3]", "inputs[4]",  "inputs[5]",
    "inputs[6]",  "inputs[7]",  "inputs[8]",  "inputs[9]", "inputs[10]", "inputs[11]",
    "inputs[12]", "inputs[13]", "inputs[14]", "inputs[15]"};
static const char *const numbered_outputs[OPS_MAX_OUTPUTS] = {
    "outputs[0]", "outputs[1]", "outputs[2]", "outputs[3]",
    "outputs[4]", "outputs[5]", "outputs[6]", "outputs[7]"};
static const char *const names_xyz[] = {"x", "y", "z"};

static hal_status check_types(const call *c)
{
    const ops_expression *e = c->expression;
    char text[OPS_TEXT_BYTES];
    for (uint32_t i = 0; i < c->input_count; i++) {
        if (hal_type_of_value(c->inputs[i].type) != e->inputs[i]) {
            return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                                  "%s: %s, %s, does not fit the expression, whose input %u is %s",
                                  c->function, c->input_names[i], ops_describe(&c->inputs[i], text),
                                  i, hal_type_name(e->inputs[i]));
        }
    }
    for (uint32_t i = 0; i < c->output_count; i++) {
        if (hal_type_of_value(c->outputs[i].type) != e->outputs[i]) {
            return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                                  "%s: %s, %s, does not fit the result, which is %s", c->function,
                                  c->output_names[i], ops_describe(&c->outputs[i], text),
                                  hal_type_name(e->outputs[i]));
        }
    }
    return HAL_OK;
}

static hal_status check_overlaps(const call *c)
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
            return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                                  "%s: %s overlaps %s without being the same view of the buffer",
                                  c->function, c->output_names[i], other);
        }
    }
    return HAL_OK;
}

static hal_status check_call(const ops_context *context, const call *c)
{
    for (uint32_t i = 0; i < c->output_count; i++) {
        hal_status status =
            ops_check_output(context, c->function, c->output_names[i], &c->outputs[i]);
        if (status) {
            return status;
        }
        if (!ops_same_shape(&c->outputs[i], &c->outputs[0])) {
            char text[2][OPS_TEXT_BYTES];
            return hal_status_set(
                HAL_ERROR_INVALID_ARGUMENT, "%s: the outputs differ in shape: %s is %s, %s is %s",
                c->function, c->output_names[0], ops_describe(&c->outputs[0], text[0]),
                c->output_names[i], ops_describe(&c->outputs[i], text[1]));
        }
    }
    const ops_tensor *out = &c->outputs[0];
    for (uint32_t i = 0; i < c->input_count; i++) {
        hal_status status =
            ops_check_tensor(context, c->function, c->input_names[i], &c->inputs[i]);
        if (!status && !ops_same_shape(&c->inputs[i], out)) {
            status = ops_check_broadcast(c->function, c->input_names[i], &c->inputs[i], out->rank,
                                         out->shape);
        }
        if (status) {
            return status;
        }
    }
    hal_status status = check_types(c);
    return status ? status : check_overlaps(c);
}

static hal_status bind_tensors(const ops_context *context, const call *c, ops_bindings *bindings,
                               body_plan *plan, ops_space *space)
{
    uint32_t count = c->input_count + c->output_count;
    bindings->count = 0;
    /* Outputs first: an input that lies with one then finds its binding. */
    for (uint32_t i = 0; i < count; i++) {
        uint32_t view = i < c->output_count ? c->input_count + i : i - c->output_count;
        int is_output = i < c->output_count;
        const ops_tensor *tensor = is_output ? &c->outputs[i] : &c->inputs[view];
        uint32_t slot =
            ops_bind(context, bindings, tensor, is_output ? HAL_ACCESS_WRITE : HAL_ACCESS_READ);
        if (slot >= context->info->max_bindings) {
            return hal_status_set(HAL_ERROR_UNSUPPORTED,
                                  "%s: %u tensors are more than the %u bindings of %s", c->function,
                                  count, context->info->max_bindings, context->info->name);
        }
        plan->slots[view] = (uint8_t)slot;
    }
    ops_space_begin(space, c->outputs[0].rank, c->outputs[0].shape);
    for (uint32_t i = 0; i < count; i++) {
        const ops_tensor *tensor =
            i < c->input_count ? &c->inputs[i] : &c->outputs[i - c->input_count];
        ops_space_add(space, tensor, ops_base(bindings, plan->slots[i], tensor));
    }
    return HAL_OK;
}

/* Elements of a vector access that the device takes at once, for the largest element type. */
static uint32_t widest_access(const ops_context *context, const ops_bindings *bindings)
{
    uint32_t size = 1;
    for (uint32_t i = 0; i < bindings->count; i++) {
        uint32_t bytes = hal_type_size(bindings->types[i]);
        size = bytes > size ? bytes : size;
    }
    uint32_t limit = context->info->max_vector_bytes < 16 ? context->info->max_vector_bytes : 16;
    return limit / size ? limit / size : 1;
}

static void emit_body(hal_ir_builder *b, const ops_element_iter *cursor, const void *user)
{
    const body_plan *plan = user;
    const ops_expression *e = plan->expression;
    hal_ir_value loaded[OPS_MAX_INPUTS][OPS_MAX_WIDTH];
    hal_ir_value stored[OPS_MAX_OUTPUTS][OPS_MAX_WIDTH];
    for (uint32_t i = 0; i < e->input_count; i++) {
        ops_element_load(b, cursor, i, plan->slots[i], loaded[i]);
    }
    for (uint32_t element = 0; element < cursor->width; element++) {
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
        uint32_t view = e->input_count + i;
        ops_element_store(b, cursor, view, plan->slots[view], stored[i]);
    }
}

static hal_status build(ops_context *context, const uint64_t key[2], const ops_bindings *bindings,
                        const body_plan *plan, const ops_space *space,
                        const ops_elementwise_plan *walk, ops_entry **entry)
{
    const hal_ir_kernel *fragment = plan->expression->fragment;
    hal_ir_builder *b;
    hal_status status = hal_ir_builder_create(fragment->names + fragment->name, &b);
    if (status) {
        return status;
    }
    ops_layout_values values;
    ops_declare_bindings(b, bindings);
    ops_elementwise_declare(b, space, walk, &values);
    ops_elementwise_emit(b, walk, &values, emit_body, plan);
    return ops_cache_build(context, key, b, entry);
}

static hal_status run(ops_context *context, const call *c)
{
    hal_status status = check_call(context, c);
    if (status || ops_tensor_get_element_count(&c->outputs[0]) == 0) {
        return status;
    }
    ops_bindings bindings;
    body_plan plan = {c->expression, {0}};
    ops_space space;
    ops_elementwise_plan walk;
    uint64_t starts[OPS_MAX_VIEWS];
    status = bind_tensors(context, c, &bindings, &plan, &space);
    if (status) {
        return status;
    }
    for (uint32_t i = 0; i < space.view_count; i++) {
        uint32_t slot = plan.slots[i];
        starts[i] = bindings.ranges[slot].offset / hal_type_size(bindings.types[slot]);
    }
    ops_space_collapse(&space, c->input_count);
    status = ops_elementwise_plan_init(context, c->function, &space,
                                       widest_access(context, &bindings), starts, 0, 0, &walk);
    if (status) {
        return status;
    }

    ops_cache_key signature;
    uint64_t key[2];
    signature.count = 0;
    ops_cache_key_append(&signature, OPS_FAMILY_POINTWISE);
    ops_cache_key_append(&signature, c->expression->hash[0]);
    ops_cache_key_append(&signature, c->expression->hash[1]);
    ops_bindings_key(&bindings, plan.slots, space.view_count, &signature);
    ops_elementwise_key(&space, &walk, &signature);
    ops_entry *entry = ops_cache_find(context, &signature, key);
    if (!entry) {
        status = build(context, key, &bindings, &plan, &space, &walk, &entry);
        if (status) {
            return status;
        }
    }
    ops_block block;
    ops_block_begin(&block);
    ops_layout_put(&space, &walk.layout, &block);
    return ops_dispatch(context, entry, walk.grid, &bindings, &block);
}

static hal_status need(const char *function, const ops_context *context, const ops_tensor *x,
                       const ops_tensor *y, const ops_tensor *z)
{
    if (context && x && y && z) {
        hal_type type = hal_type_of_value(x->type);
        return type ? HAL_OK
                    : hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                                     "%s: x: expected a hal_type, got %u",
                                     function, x->type);
    }
    return hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "%s: %s is null", function,
                          !context ? "context"
                          : !x     ? "x"
                          : !y     ? "y"
                                   : "the output");
}

static hal_ir_value build_unary(hal_ir_builder *b, const hal_ir_value *in, const void *user)
{
    return ops_unary_value(b, *(const ops_unary_function *)user, in[0]);
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

/* A fill of whole words by the queue itself. False when y or the value is not fit for it. */
static int fill_plain(ops_context *context, const ops_tensor *y, double value, hal_status *status)
{
    uint64_t size = hal_type_size(y->type);
    uint64_t offset = (uint64_t)y->offset * size,
             bytes = (uint64_t)ops_tensor_get_element_count(y) * size;
    int is_zero = value == 0 && 1 / value > 0;
    int is_word = y->type == HAL_TYPE_F32 || y->type == HAL_TYPE_I32 || y->type == HAL_TYPE_U32;
    if (!(is_zero || is_word) || !ops_tensor_is_contiguous(y) || offset % 4 || bytes % 4) {
        return 0;
    }
    ops_block block;
    uint32_t pattern;
    ops_block_begin(&block);
    ops_put_number(&block, is_word ? y->type : (hal_type)HAL_TYPE_U32, value);
    memcpy(&pattern, block.bytes, sizeof pattern);
    *status = ops_record_fill(context, (hal_range){y->buffer, offset, bytes}, pattern);
    return 1;
}

static void emit_fill(hal_ir_builder *b, const ops_element_iter *cursor, const void *user)
{
    ops_element_store(b, cursor, 0, 0, user);
}

static hal_status fill_strided(ops_context *context, const ops_tensor *y, double value)
{
    ops_bindings bindings;
    ops_space space;
    ops_elementwise_plan walk;
    bindings.count = 0;
    uint32_t slot = ops_bind(context, &bindings, y, HAL_ACCESS_WRITE);
    ops_space_begin(&space, y->rank, y->shape);
    ops_space_add(&space, y, ops_base(&bindings, slot, y));
    ops_space_collapse(&space, 0);
    hal_status status =
        ops_elementwise_plan_init(context, "ops_fill", &space, 1, NULL, 16, 0, &walk);
    if (status) {
        return status;
    }
    ops_cache_key signature;
    uint64_t key[2];
    signature.count = 0;
    ops_cache_key_append(&signature, OPS_FAMILY_FILL);
    ops_cache_key_append(&signature, y->type);
    ops_elementwise_key(&space, &walk, &signature);
    ops_entry *entry = ops_cache_find(context, &signature, key);
    hal_type type = hal_type_of_value(y->type);
    hal_type carrier = type == HAL_TYPE_BOOL ? (hal_type)HAL_TYPE_U32 : type;
    if (!entry) {
        hal_ir_builder *b;
        ops_layout_values values;
        status = hal_ir_builder_create("fill", &b);
        if (status) {
            return status;
        }
        ops_declare_bindings(b, &bindings);
        ops_elementwise_declare(b, &space, &walk, &values);
        hal_ir_value element = hal_ir_scalar_value(b, "value", carrier);
        element = type == carrier ? element : hal_ir_cast(b, type, element);
        ops_elementwise_emit(b, &walk, &values, emit_fill, &element);
        status = ops_cache_build(context, key, b, &entry);
        if (status) {
            return status;
        }
    }
    ops_block block;
    ops_block_begin(&block);
    ops_layout_put(&space, &walk.layout, &block);
    ops_put_number(&block, carrier, ops_round_to(y->type, value));
    return ops_dispatch(context, entry, walk.grid, &bindings, &block);
}

hal_status ops_pointwise(ops_context *context, const ops_expression *expression,
                         const ops_tensor *inputs, uint32_t input_count, const ops_tensor *outputs,
                         uint32_t output_count)
{
    if (!context || !expression || (input_count && !inputs) || !outputs) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "ops_pointwise: %s is null",
                              !context      ? "context"
                              : !expression ? "expression"
                              : !outputs    ? "outputs"
                                            : "inputs");
    }
    if (input_count != expression->input_count || output_count != expression->output_count) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "ops_pointwise: input_count %u and output_count %u are given, the "
                              "expression has %u inputs and %u outputs",
                              input_count, output_count, expression->input_count,
                              expression->output_count);
    }
    call c = {"ops_pointwise", expression,   inputs,          outputs,
              input_count,     output_count, numbered_inputs, numbered_outputs};
    return run(context, &c);
}

hal_status ops_unary(ops_context *context, ops_unary_function function, const ops_tensor *x,
                     const ops_tensor *y)
{
    hal_status status = need("ops_unary", context, x, y, y);
    if (status) {
        return status;
    }
    ops_expression *expression;
    status = ops_unary_expression(context, "ops_unary", function, x->type, &expression);
    if (status) {
        return status;
    }
    call c = {"ops_unary", expression, x, y, 1, 1, names_xyz, names_xyz + 1};
    return run(context, &c);
}

hal_status ops_binary(ops_context *context, ops_binary_function function, const ops_tensor *x,
                      const ops_tensor *y, const ops_tensor *z)
{
    hal_status status = need("ops_binary", context, x, y, z);
    if (status) {
        return status;
    }
    ops_expression *expression;
    status = ops_binary_expression(context, "ops_binary", function, x->type, &expression);
    if (status) {
        return status;
    }
    ops_tensor inputs[2] = {*x, *y};
    call c = {"ops_binary", expression, inputs, z, 2, 1, names_xyz, names_xyz + 2};
    return run(context, &c);
}

hal_status ops_unary_expression(ops_context *context, const char *caller,
                                ops_unary_function function, hal_type type,
                                ops_expression **expression)
{
    if ((uint32_t)function >= OPS_UNARY_COUNT) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "%s: function: expected one of the enum, got %d", caller,
                              (int)function);
    }
    type = hal_type_of_value(type);
    ops_expression **kept = &context->unary[function][type];
    if (!*kept &&
        ops_expression_make(ops_unary_name(function), &type, 1, build_unary, &function, kept)) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "%s: %s does not take %s (%s)", caller,
                              ops_unary_name(function), hal_type_name(type), hal_status_message());
    }
    *expression = *kept;
    return HAL_OK;
}

hal_status ops_binary_expression(ops_context *context, const char *caller,
                                 ops_binary_function function, hal_type type,
                                 ops_expression **expression)
{
    if ((uint32_t)function >= OPS_BINARY_COUNT) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "%s: function: expected one of the enum, got %d", caller,
                              (int)function);
    }
    type = hal_type_of_value(type);
    const hal_type types[2] = {type, type};
    ops_expression **kept = &context->binary[function][type];
    if (!*kept &&
        ops_expression_make(ops_binary_name(function), types, 2, build_binary, &function, kept)) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "%s: %s does not take %s (%s)", caller,
                              ops_binary_name(function), hal_type_name(type), hal_status_message());
    }
    *expression = *kept;
    return HAL_OK;
}

hal_status ops_where(ops_context *context, const ops_tensor *condition, const ops_tensor *x,
                     const ops_tensor *y, const ops_tensor *out)
{
    static const char *const names[] = {"condition", "x", "y", "out"};
    hal_status status = need("ops_where", context, x, y, out);
    if (status || !condition) {
        return status ? status
                      : hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "ops_where: condition is null");
    }
    hal_type type = hal_type_of_value(x->type);
    ops_expression **kept = &context->where[type];
    if (!*kept) {
        hal_type types[3] = {HAL_TYPE_BOOL, type, type};
        status = ops_expression_make("where", types, 3, build_where, NULL, kept);
        if (status) {
            return status;
        }
    }
    ops_tensor inputs[3] = {*condition, *x, *y};
    call c = {"ops_where", *kept, inputs, out, 3, 1, names, names + 3};
    return run(context, &c);
}

hal_status ops_cast(ops_context *context, const ops_tensor *x, const ops_tensor *y)
{
    hal_status status = need("ops_cast", context, x, y, y);
    if (status) {
        return status;
    }
    hal_type from = hal_type_of_value(x->type), to = hal_type_of_value(y->type);
    if (from == HAL_TYPE_NONE || to == HAL_TYPE_NONE) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "ops_cast: type %u of %s is none",
                              from == HAL_TYPE_NONE ? x->type : y->type,
                              from == HAL_TYPE_NONE ? "x" : "y");
    }
    /* Small types hold less than the values they widen to: the cast goes to what y holds. */
    ops_expression **kept = &context->cast[from][y->type];
    if (!*kept) {
        status = ops_expression_make("cast", &from, 1, build_cast, &y->type, kept);
        if (status) {
            return status;
        }
    }
    call c = {"ops_cast", *kept, x, y, 1, 1, names_xyz, names_xyz + 1};
    return run(context, &c);
}

hal_status ops_fill(ops_context *context, double value, const ops_tensor *y)
{
    hal_status status = ops_check_output(context, "ops_fill", "y", y);
    if (status || ops_tensor_get_element_count(y) == 0 || fill_plain(context, y, value, &status)) {
        return status;
    }
    return fill_strided(context, y, value);
}
