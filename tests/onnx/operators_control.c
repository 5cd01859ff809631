/* Control flow: If by ops_array_cond, Loop and Scan by ops_array_while. What each iteration gives
 * is put in its row of an array, which is a part of the loop's state. */
#include "graph.h"
#include "operators.h"

#include <ops/loop.h>

/* The state: the number of iterations, whether there is another one, what the body passes on, and
 * the rows. */
enum { STATE_COUNT, STATE_GOES_ON, STATE_FIRST };

enum { MOST_ROWS = 4096 };

/* A loop over a body. A Scan's body takes elements of inputs, a Loop's the first two arrays of the
 * state. */
typedef struct loop {
    onnx_call *call;
    const onnx_graph *body;
    uint32_t carried, rows, elements;
    uint32_t reversed_inputs, reversed_rows; /* a bit for each */
    int64_t limit;                           /* most iterations; -1: any number */
    ops_array *inputs[OPS_MAX_LOOP_STATE];   /* of which the first axis is scanned */
    ops_array *state[OPS_MAX_LOOP_STATE];
} loop;

static ops_array *number(const loop *l, int64_t value)
{
    return ops_array_from_host(l->call->context, HAL_TYPE_I64, 0, NULL, &value);
}

/* The place of an iteration in an axis. */
static ops_array *place(const loop *l, ops_array *count, bool is_reversed)
{
    return is_reversed ? ops_sub(number(l, l->limit - 1), count) : count;
}

/* x with an axis of length 1 in front; x without its first axis. */
static ops_array *with_axis(ops_array *x)
{
    return onnx_rank(x, ops_array_get_rank(x) + 1);
}

static ops_array *without_axis(ops_array *x)
{
    int64_t shape[ONNX_MAX_RANK];
    const uint32_t rank = onnx_shape(x, shape);
    return x ? ops_array_reshape(x, rank - 1, shape + 1) : NULL;
}

/* Runs the body in a state: what it passes on, and the values of its rows. */
static bool body_run(const loop *l, ops_array *const *state, ops_array **goes_on, ops_array **made)
{
    ops_array *inputs[2 * OPS_MAX_LOOP_STATE], *outputs[OPS_MAX_LOOP_STATE];
    const bool is_scan = l->elements > 0;
    uint32_t count = 0;
    for (uint32_t i = is_scan ? STATE_FIRST : 0; i < STATE_FIRST + l->carried; i++) {
        inputs[count++] = state[i];
    }
    for (uint32_t i = 0; i < l->elements; i++) {
        ops_array *at = place(l, state[STATE_COUNT], l->reversed_inputs >> i & 1);
        inputs[count++] = without_axis(ops_array_gather(0, l->inputs[i], with_axis(at)));
    }
    if (!onnx_graph_call(l->call, l->body, inputs, outputs)) {
        return false;
    }
    *goes_on = is_scan ? state[STATE_GOES_ON] : outputs[0];
    for (uint32_t i = 0; i < l->carried + l->rows; i++) {
        made[i] = outputs[i + !is_scan];
    }
    return true;
}

static hal_status step(void *user, ops_array *const *state, ops_array **next)
{
    const loop *l = user;
    ops_array *made[OPS_MAX_LOOP_STATE];
    if (!body_run(l, state, &next[STATE_GOES_ON], made)) {
        return HAL_ERROR_UNSUPPORTED;
    }
    next[STATE_COUNT] = ops_add_scalar(state[STATE_COUNT], 1);
    for (uint32_t i = 0; i < l->carried; i++) {
        next[STATE_FIRST + i] = made[i];
    }
    for (uint32_t i = l->carried; i < l->carried + l->rows; i++) {
        int64_t shape[ONNX_MAX_RANK] = {l->limit};
        const uint32_t rank = ops_array_get_rank(made[i]) + 1;
        for (uint32_t k = 1; k < rank; k++) {
            shape[k] = 1;
        }
        ops_array *at = place(l, state[STATE_COUNT], l->reversed_rows >> (i - l->carried) & 1);
        ops_array *all = ops_array_iota(l->call->context, HAL_TYPE_I64, l->limit, 0, 1);
        ops_array *is_here = ops_array_binary(OPS_EQ, ops_array_reshape(all, rank, shape), at);
        next[STATE_FIRST + i] =
            ops_array_where(is_here, with_axis(made[i]), state[STATE_FIRST + i]);
    }
    return HAL_OK;
}

static ops_array *goes_on(void *user, ops_array *const *state)
{
    (void)user;
    return state[STATE_GOES_ON];
}

/* Zeros for the rows, whose shapes one run of the body shows; nothing computes what it gives. */
static bool rows_make(loop *l)
{
    ops_array *ignored, *made[OPS_MAX_LOOP_STATE];
    if (!body_run(l, l->state, &ignored, made)) {
        return false;
    }
    for (uint32_t i = 0; i < l->carried + l->rows; i++) {
        int64_t shape[ONNX_MAX_RANK + 1] = {l->limit}, before[ONNX_MAX_RANK];
        const uint32_t rank = onnx_shape(made[i], shape + 1);
        if (i >= l->carried) {
            l->state[STATE_FIRST + i] = ops_array_broadcast(
                ops_array_scalar(l->call->context, ops_array_get_type(made[i]), 0), rank + 1,
                shape);
            continue;
        }
        bool is_same = onnx_shape(l->state[STATE_FIRST + i], before) == rank;
        for (uint32_t k = 0; k < rank && is_same; k++) {
            is_same = before[k] == shape[k + 1];
        }
        if (!is_same) {
            onnx_skip(l->call, "a state that changes its shape");
            return false;
        }
    }
    return true;
}

/* Runs the loop; the results are its state. The host reads every `stride`-th condition. */
static bool loop_run(loop *l, uint64_t stride)
{
    if (STATE_FIRST + l->carried + l->rows > OPS_MAX_LOOP_STATE || l->limit > MOST_ROWS ||
        (l->limit < 0 && l->rows > 0)) {
        onnx_skip(l->call, "more than %u arrays as state, or rows without a number",
                  OPS_MAX_LOOP_STATE);
        return false;
    }
    if (!rows_make(l)) {
        return false;
    }
    const ops_loop_options options = {.size = sizeof options,
                                      .stride = (uint32_t)stride,
                                      .limit = l->limit < 0 ? 0 : (uint64_t)l->limit};
    return l->limit == 0 || ops_array_while(&options, goes_on, step, l, l->state,
                                            STATE_FIRST + l->carried + l->rows, l->state) == HAL_OK;
}

static bool counts_are_right(loop *l, uint32_t inputs, uint32_t outputs)
{
    const onnx_graph *body = l->body;
    const bool are = body && body->input_count == inputs && body->output_count == outputs &&
                     inputs <= OPS_MAX_LOOP_STATE && outputs <= OPS_MAX_LOOP_STATE;
    if (body && !are) {
        onnx_skip(l->call, "a body of other inputs and outputs");
    }
    return are;
}

static void map_loop(onnx_call *c)
{
    loop l = {.call = c, .body = onnx_graph_of(c, "body"), .limit = -1};
    l.carried = c->node->input_count - 2;
    l.rows = c->node->output_count - l.carried;
    if (!counts_are_right(&l, l.carried + 2, l.carried + l.rows + 1) ||
        (c->x[0] && onnx_host_integers(c, c->x[0], &l.limit, 1) != 1)) {
        return;
    }
    l.limit = c->x[0] && l.limit < 0 ? 0 : l.limit;
    l.state[STATE_COUNT] = number(&l, 0);
    l.state[STATE_GOES_ON] = c->x[1] ? c->x[1] : ops_array_scalar(c->context, HAL_TYPE_BOOL, 1);
    for (uint32_t i = 0; i < l.carried; i++) {
        l.state[STATE_FIRST + i] = c->x[i + 2];
    }
    int64_t count = 0;
    if (!loop_run(&l, 1) || onnx_host_integers(c, l.state[STATE_COUNT], &count, 1) != 1) {
        return;
    }
    for (uint32_t i = 0; i < l.carried + l.rows; i++) {
        ops_array *y = l.state[STATE_FIRST + i];
        c->y[i] = i < l.carried ? y : ops_array_slice(y, 0, 0, count, 1);
    }
}

/* x with axis `from` at place `to`. */
static ops_array *axis_moved(ops_array *x, int32_t from, int32_t to)
{
    int32_t axes[ONNX_MAX_RANK], next = 0;
    for (int32_t i = 0; i < (int32_t)ops_array_get_rank(x); i++) {
        next += next == from;
        axes[i] = i == to ? from : next++;
    }
    return from == to ? x : ops_array_permute(x, axes);
}

static uint32_t directions(const onnx_call *c, const char *name)
{
    int64_t values[OPS_MAX_LOOP_STATE];
    const int32_t count = onnx_integers(c, name, values, OPS_MAX_LOOP_STATE);
    uint32_t bits = 0;
    for (int32_t i = 0; i < count; i++) {
        bits |= (uint32_t)(values[i] != 0) << i;
    }
    return bits;
}

/* Axes to scan, of inputs or outputs: 0 by default. */
static void axes_of(const onnx_call *c, const char *name, int64_t axes[OPS_MAX_LOOP_STATE])
{
    for (uint32_t i = 0; i < OPS_MAX_LOOP_STATE; i++) {
        axes[i] = 0;
    }
    onnx_integers(c, name, axes, OPS_MAX_LOOP_STATE);
}

/* A scan of states and then inputs, `x`. */
static void scan(onnx_call *c, ops_array *const *x, uint32_t count, ops_array **y)
{
    int64_t axes[OPS_MAX_LOOP_STATE];
    loop l = {.call = c, .body = onnx_graph_of(c, "body")};
    l.elements = (uint32_t)onnx_integer(c, "num_scan_inputs", 1);
    l.carried = count - l.elements;
    l.rows = c->node->output_count - l.carried;
    l.reversed_inputs = directions(c, "scan_input_directions");
    l.reversed_rows = directions(c, "scan_output_directions");
    if (!counts_are_right(&l, count, l.carried + l.rows)) {
        return;
    }
    axes_of(c, "scan_input_axes", axes);
    for (uint32_t i = 0; i < l.elements; i++) {
        ops_array *input = x[l.carried + i];
        l.inputs[i] = axis_moved(input, onnx_axis(input, axes[i]), 0);
    }
    l.limit = ops_array_get_length(l.inputs[0], 0);
    l.state[STATE_COUNT] = number(&l, 0);
    l.state[STATE_GOES_ON] = ops_array_scalar(c->context, HAL_TYPE_BOOL, 1);
    for (uint32_t i = 0; i < l.carried; i++) {
        l.state[STATE_FIRST + i] = x[i];
    }
    if (!loop_run(&l, (uint64_t)l.limit)) {
        return;
    }
    axes_of(c, "scan_output_axes", axes);
    for (uint32_t i = 0; i < l.carried + l.rows; i++) {
        ops_array *one = l.state[STATE_FIRST + i];
        y[i] = i < l.carried ? one : axis_moved(one, 0, onnx_axis(one, axes[i - l.carried]));
    }
}

/* Version 8 has a first input for lengths, and an axis of batches in front of all others. */
static void map_scan(onnx_call *c)
{
    const uint32_t count = c->node->input_count - 1, outputs = c->node->output_count;
    if (c->version >= 9) {
        scan(c, c->x, c->node->input_count, c->y);
        return;
    }
    if (c->x[0]) {
        onnx_skip(c, "lengths of sequences");
        return;
    }
    const int64_t batches = ops_array_get_length(c->x[1], 0);
    for (int64_t b = 0; b < batches; b++) {
        ops_array *x[ONNX_MAX_OPERANDS], *y[ONNX_MAX_OPERANDS] = {NULL};
        for (uint32_t i = 0; i < count; i++) {
            x[i] = without_axis(ops_array_slice(c->x[i + 1], 0, b, 1, 1));
        }
        scan(c, x, count, y);
        for (uint32_t i = 0; i < outputs && y[i]; i++) {
            ops_array *const parts[2] = {c->y[i], with_axis(y[i])};
            c->y[i] = b == 0 ? parts[1] : ops_array_concatenate(0, parts, 2);
        }
    }
}

typedef struct branches {
    onnx_call *call;
    const onnx_graph *if_true, *if_false;
} branches;

static hal_status branch_run(const branches *b, const onnx_graph *graph, ops_array **results)
{
    return onnx_graph_call(b->call, graph, NULL, results) ? HAL_OK : HAL_ERROR_UNSUPPORTED;
}

static hal_status if_true(void *user, ops_array *const *operands, ops_array **results)
{
    (void)operands;
    const branches *b = user;
    return branch_run(b, b->if_true, results);
}

static hal_status if_false(void *user, ops_array *const *operands, ops_array **results)
{
    (void)operands;
    const branches *b = user;
    return branch_run(b, b->if_false, results);
}

static void map_if(onnx_call *c)
{
    branches b = {c, onnx_graph_of(c, "then_branch"), onnx_graph_of(c, "else_branch")};
    const uint32_t count = c->node->output_count;
    if (!b.if_true || !b.if_false || count > OPS_MAX_LOOP_STATE ||
        b.if_true->output_count != count || b.if_false->output_count != count) {
        onnx_skip(c, "branches of other outputs, or more than %u", OPS_MAX_LOOP_STATE);
        return;
    }
    ops_array_cond(c->x[0], if_true, if_false, &b, NULL, 0, c->y, count);
}

const onnx_operator onnx_control_operators[] = {
    {"If", map_if}, {"Loop", map_loop}, {"Scan", map_scan}, {NULL, NULL}};
