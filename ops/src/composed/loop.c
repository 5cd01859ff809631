/* Loops and branches: the host reads conditions, and the device computes what they decide. */
#include "compose.h"

#include <ops/loop.h>
#include <string.h>

typedef struct loop_call {
    const char *function;
    ops_loop_options options;
    ops_loop_condition condition;
    ops_loop_body body;
    void *user;
    ops_arrays *arrays;
    uint32_t count;
    ops_array *state[OPS_MAX_LOOP_STATE]; /* with a reference of the loop's */
    ops_array *goes_on;                   /* of this state; null before the first one */
} loop_call;

static hal_status check_condition(const char *function, const ops_array *x)
{
    char text[OPS_TEXT_BYTES];
    if (!x) {
        return ops_report_null_array(function, "condition");
    }
    return x->view.type == HAL_TYPE_BOOL && ops_tensor_get_element_count(&x->view) == 1
               ? HAL_OK
               : ops_invalid("%s: condition: expected one bool, got %s", function,
                             ops_describe(&x->view, text));
}

/* The condition, of rank 0, so that it broadcasts to any state. */
static ops_array *condition_scalar(ops_array *x)
{
    return x->view.rank == 0 ? x : ops_array_reshape(x, 0, NULL);
}

static hal_status check_counts(const char *function, const char *argument, uint32_t least,
                               uint32_t count, const void *list)
{
    return count >= least && count <= OPS_MAX_LOOP_STATE && (list || count == 0)
               ? HAL_OK
               : ops_invalid("%s: %s: expected %u to %u arrays, got %u%s", function, argument,
                             least, OPS_MAX_LOOP_STATE, count, list ? "" : " and no list");
}

static hal_status condition_read(ops_array *condition, bool *value)
{
    uint8_t element = 0;
    HAL_TRY(ops_array_read(condition, sizeof element, &element));
    *value = element != 0;
    return HAL_OK;
}

/* Makes arrays of the innermost scope of what a callback returned: one that is of another scope, or
 * twice in the list, is viewed. */
static hal_status results_own(const char *function, ops_arrays *arrays, ops_array **results,
                              uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        ops_array *x = results[i];
        if (!x) {
            return ops_report_null_array(function, "body: results");
        }
        bool is_own = ops_arrays_scope_has(arrays, x);
        for (uint32_t k = 0; k < i; k++) {
            is_own = is_own && results[k] != x;
        }
        if (!ops_check_operands(function, &x, 1)) {
            return HAL_ERROR_INVALID_ARGUMENT;
        }
        if (x->owner != arrays) {
            return ops_invalid("%s: body: results[%u]: expected an array of the operands' context, "
                               "got one of another",
                               function, i);
        }
        results[i] = is_own ? x : ops_compose_view(x);
        if (!results[i]) {
            return HAL_ERROR_OUT_OF_MEMORY;
        }
    }
    return HAL_OK;
}

static hal_status check_next(const loop_call *c, ops_array *const *next)
{
    char text[2][OPS_TEXT_BYTES];
    for (uint32_t i = 0; i < c->count; i++) {
        const ops_tensor *x = &next[i]->view, *before = &c->state[i]->view;
        if (x->type != before->type || !ops_same_shape(x, before)) {
            return ops_invalid("%s: body: results[%u]: expected the type and shape of the state, "
                               "%s, got %s",
                               c->function, i, ops_describe(before, text[0]),
                               ops_describe(x, text[1]));
        }
    }
    return HAL_OK;
}

/* The next state and its condition, in the innermost scope. Where the host has not read the
 * condition of this state, both depend on it. */
static hal_status loop_advance(loop_call *c, bool is_read, ops_array **next, ops_array **goes_on)
{
    hal_status status = c->body(c->user, c->state, next);
    uint32_t is_same = 0; /* one bit for each array that the body left as it is */
    for (uint32_t i = 0; i < c->count; i++) {
        is_same |= (uint32_t)(next[i] == c->state[i]) << i;
    }
    if (status == HAL_OK) {
        status = results_own(c->function, c->arrays, next, c->count);
    }
    HAL_TRY(status);
    HAL_TRY(check_next(c, next));
    for (uint32_t i = 0; i < c->count && !is_read; i++) {
        next[i] = is_same >> i & 1 ? next[i] : ops_array_where(c->goes_on, next[i], c->state[i]);
        if (!next[i]) {
            return HAL_ERROR_OUT_OF_MEMORY;
        }
    }
    *goes_on = c->condition(c->user, next);
    HAL_TRY(check_condition(c->function, *goes_on));
    *goes_on = condition_scalar(*goes_on);
    if (!is_read) {
        *goes_on = ops_array_binary(OPS_AND, *goes_on, c->goes_on);
    }
    return *goes_on ? HAL_OK : HAL_ERROR_OUT_OF_MEMORY;
}

static void loop_release(loop_call *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        ops_array_release(c->state[i]);
        c->state[i] = NULL;
    }
    ops_array_release(c->goes_on);
    c->goes_on = NULL;
}

/* One iteration in a scope of its own. What was made in it ends with it. */
static hal_status loop_iterate(loop_call *c, bool is_read)
{
    ops_array *next[OPS_MAX_LOOP_STATE + 1] = {NULL}, *goes_on = NULL;
    HAL_TRY(ops_arrays_open_scope(c->arrays));
    hal_status status = loop_advance(c, is_read, next, &goes_on);
    next[c->count] = goes_on;
    if (status == HAL_OK && !c->arrays->is_recording) {
        status = ops_array_evaluate(next, c->count + 1);
    }
    if (status == HAL_OK) {
        for (uint32_t i = 0; i <= c->count; i++) {
            ops_array_retain(next[i]);
        }
        loop_release(c);
        memcpy(c->state, next, c->count * sizeof *next);
        c->goes_on = goes_on;
    }
    ops_arrays_close_scope(c->arrays);
    return status;
}

/* Computes the condition of the first state. */
static hal_status loop_begin(loop_call *c)
{
    HAL_TRY(ops_arrays_open_scope(c->arrays));
    ops_array *goes_on = c->condition(c->user, c->state);
    hal_status status = check_condition(c->function, goes_on);
    if (status == HAL_OK) {
        goes_on = condition_scalar(goes_on);
        c->goes_on = ops_array_retain(goes_on);
        status = goes_on ? HAL_OK : HAL_ERROR_OUT_OF_MEMORY;
    }
    ops_arrays_close_scope(c->arrays);
    return status;
}

static hal_status loop_execute(loop_call *c)
{
    const uint64_t limit = c->options.limit ? c->options.limit : UINT64_MAX;
    const uint64_t stride = c->options.stride ? c->options.stride : 1;
    const bool reads = limit > stride;
    if (reads && c->arrays->is_recording) {
        return hal_status_set(HAL_ERROR_INVALID_STATE,
                              "%s: expected no recording of a graph, or options.limit of at most "
                              "options.stride, since the host reads the condition",
                              c->function);
    }
    HAL_TRY(loop_begin(c));
    for (uint64_t i = 0; i < limit; i++) {
        const bool is_read = reads && i % stride == 0;
        bool value = true;
        if (is_read) {
            HAL_TRY(condition_read(c->goes_on, &value));
        }
        if (!value) {
            break;
        }
        HAL_TRY(loop_iterate(c, is_read));
    }
    return HAL_OK;
}

/* Passes arrays, of which the call has references, to the scope or the caller, as views of
 * themselves. */
static hal_status pass_results(ops_array *const *made, uint32_t count, ops_array **results)
{
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < count; i++) {
        results[i] = status == HAL_OK ? ops_compose_view(made[i]) : NULL;
        status = results[i] ? HAL_OK : HAL_ERROR_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < count && status != HAL_OK; i++) {
        ops_array_release(results[i]);
        results[i] = NULL;
    }
    return status;
}

hal_status ops_array_while(const ops_loop_options *options, ops_loop_condition condition,
                           ops_loop_body body, void *user, ops_array *const *state, uint32_t count,
                           ops_array **results)
{
    loop_call c = {.function = "ops_array_while",
                   .options = OPS_LOOP_OPTIONS_DEFAULT,
                   .condition = condition,
                   .body = body,
                   .user = user,
                   .count = count};
    hal_status status = check_counts(c.function, "state, count", 1, count, state);
    if (status == HAL_OK && (!condition || !body || !results)) {
        status =
            ops_invalid("%s: condition, body, results: expected pointers, got null", c.function);
    }
    if (status == HAL_OK && options) {
        status = ops_check_size(c.function, "options", options->size, sizeof *options);
        c.options = *options;
    }
    if (status == HAL_OK && !(c.arrays = ops_check_operands(c.function, state, count))) {
        status = HAL_ERROR_INVALID_ARGUMENT;
    }
    if (status == HAL_OK) {
        for (uint32_t i = 0; i < count; i++) {
            c.state[i] = ops_array_retain(state[i]);
        }
        status = loop_execute(&c);
    }
    if (status == HAL_OK) {
        status = pass_results(c.state, count, results);
    } else if (results && count <= OPS_MAX_LOOP_STATE) {
        memset(results, 0, count * sizeof *results);
    }
    if (c.arrays) {
        loop_release(&c);
    }
    return status;
}

/* The results of a branch, each with a reference of the call's. */
static hal_status branch_call(ops_arrays *arrays, ops_loop_body branch, void *user,
                              ops_array *const *operands, ops_array **made, uint32_t count)
{
    HAL_TRY(ops_arrays_open_scope(arrays));
    hal_status status = branch(user, operands, made);
    if (status == HAL_OK) {
        status = results_own("ops_array_cond", arrays, made, count);
    }
    for (uint32_t i = 0; i < count && status == HAL_OK; i++) {
        ops_array_retain(made[i]);
    }
    ops_arrays_close_scope(arrays);
    return status;
}

hal_status ops_array_cond(ops_array *condition, ops_loop_body if_true, ops_loop_body if_false,
                          void *user, ops_array *const *operands, uint32_t operand_count,
                          ops_array **results, uint32_t result_count)
{
    const char *function = "ops_array_cond";
    ops_array *made[OPS_MAX_LOOP_STATE] = {NULL}, *given[OPS_MAX_LOOP_STATE];
    HAL_TRY(check_counts(function, "results", 1, result_count, results));
    HAL_TRY(check_counts(function, "operands", 0, operand_count, operands));
    memcpy(given, operands, operand_count * sizeof *given); /* results may be that list */
    memset(results, 0, result_count * sizeof *results);
    HAL_TRY(check_condition(function, condition));
    if (!if_true || !if_false) {
        return ops_invalid("%s: if_true, if_false: expected functions, got null", function);
    }
    ops_arrays *arrays = ops_check_operands(function, &condition, 1);
    if (!arrays || (operand_count && !ops_check_operands(function, given, operand_count))) {
        return HAL_ERROR_INVALID_ARGUMENT;
    }
    bool value;
    HAL_TRY(condition_read(condition, &value));
    HAL_TRY(branch_call(arrays, value ? if_true : if_false, user, given, made, result_count));
    const hal_status status = pass_results(made, result_count, results);
    for (uint32_t i = 0; i < result_count; i++) {
        ops_array_release(made[i]);
    }
    return status;
}
