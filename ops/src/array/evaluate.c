/* Evaluation: decides what becomes one kernel by who still holds what, and records it. */
#include "array.h"
#include "tensor/cold.h"
#include "kernels/expression.h"
#include "group.h"
#include "tensor/memo.h"

#include <ops/gemm.h>

#include <string.h>

/* Of a kernel: what a device binds at most, and what a reduction or product needs beside what comes
 * before and after it. */
#define MOST_BINDINGS 24u
#define REDUCTION_BINDINGS 3u

/* What is recorded together: a reduction, softmax or product with the pointwise operations before
 * and after it, or, where there is no such, pointwise operations alone ("after"). */
typedef struct job {
    ops_context *context;
    ops_array *main; /* the reduction, softmax or product; null when there is none */
    ops_array *roots[OPS_MAX_OUTPUTS];
    uint32_t root_count;
    int has_before, has_after;
    ops_group before, after;
    /* What is read, in the order of the signature, and what is written. */
    ops_array *inputs[2 * OPS_GROUP_LEAVES + 2];
    uint32_t input_count, after_first;
    ops_array *outputs[OPS_MAX_OUTPUTS];
    uint32_t output_count;
    hal_buffer *buffers[OPS_MEMO_OPERANDS];
} job;

static hal_status evaluate(ops_array *root, ops_array *const *others, uint32_t other_count);

static hal_status evaluate_view(ops_array *view)
{
    ops_array *x = view->operands[0];
    hal_status status = x->state == OPS_ARRAY_DEFERRED ? evaluate(x, NULL, 0) : HAL_OK;
    if (!status) {
        view->in_host_memory = x->in_host_memory;
        ops_array_settle(view, hal_buffer_retain(x->view.buffer));
    }
    return status;
}

static uint32_t most_outputs(const job *j)
{
    uint32_t bindings = j->context->info->max_bindings;
    bindings = bindings < MOST_BINDINGS ? bindings : MOST_BINDINGS;
    uint32_t left = bindings > j->after.leaf_count ? bindings - j->after.leaf_count : 1;
    return left < OPS_MAX_OUTPUTS ? left : OPS_MAX_OUTPUTS;
}

/* An operation of the group that one of its leaves is computed from as well, and so has to be in
 * memory before: such as the state that a step of a loop multiplies and adds to. Null when there is
 * none. */
static ops_array *find_inside(const ops_group *group)
{
    for (uint32_t i = 0; i < group->leaf_count; i++) {
        const ops_array *leaf = group->leaves[i];
        for (uint32_t k = 0; k < leaf->operand_count; k++) {
            ops_array *x = leaf->operands[k];
            x = x->state == OPS_ARRAY_DEFERRED && x->operation == OPS_OPERATION_VIEW
                    ? x->operands[0]
                    : x;
            if (ops_group_has(group, x)) {
                return x;
            }
        }
    }
    return NULL;
}

/* Whether nobody can ask for x once `uses` uses of it are over. A scope that holds it is taken to
 * be done with it the first time; should it not be, x is computed again, and kept. */
static int is_needed_once(const ops_array *x, uint32_t uses)
{
    return !ops_array_is_kept(x) && x->uses == uses && !(x->in_scope && x->was_computed);
}

/* Whether the pointwise operations can follow x, a leaf, in x's kernel. */
static int can_take_after(const job *j, const ops_array *x)
{
    return ops_group_may_follow(j->roots[0], x) && j->after.output_count == 1 &&
           j->after.leaf_count - 1 + REDUCTION_BINDINGS <= j->context->info->max_bindings &&
           is_needed_once(x, x->seen);
}

static ops_array *plan_after(job *j)
{
    ops_group *group = &j->after;
    j->has_after = 1;
    if (!ops_group_gather(group, j->roots, 1)) {
        return group->cut;
    }
    ops_group_choose_outputs(group, j->roots, 1, most_outputs(j));
    ops_array *inside = find_inside(group);
    if (inside) {
        return inside;
    }
    for (uint32_t i = 0; i < group->leaf_count; i++) {
        ops_array *leaf = group->leaves[i];
        if (leaf->state != OPS_ARRAY_DEFERRED) {
            continue;
        }
        if (j->main || !can_take_after(j, leaf)) {
            j->main = NULL;
            return leaf;
        }
        j->main = leaf;
    }
    return NULL;
}

/* The operands of the reduction, softmax or product; a reduction takes pointwise operations in. */
static ops_array *plan_main(job *j)
{
    const ops_array *main = j->main;
    ops_array *x = main->operands[0];
    if (main->operation != OPS_OPERATION_REDUCE || !ops_array_is_pointwise(x) ||
        j->context->arrays->unfused || !is_needed_once(x, 1)) {
        for (uint32_t i = 0; i < main->operand_count; i++) {
            if (main->operands[i]->state == OPS_ARRAY_DEFERRED) {
                return main->operands[i];
            }
        }
        return NULL;
    }
    if (!ops_group_gather(&j->before, &x, 1)) {
        return x;
    }
    ops_group_choose_outputs(&j->before, &x, 1, OPS_MAX_OUTPUTS);
    uint32_t bindings =
        j->before.leaf_count + REDUCTION_BINDINGS + (j->has_after ? j->after.leaf_count - 1 : 0);
    if (j->before.output_count > 1 || bindings > j->context->info->max_bindings ||
        bindings > MOST_BINDINGS) {
        return x;
    }
    for (uint32_t i = 0; i < j->before.leaf_count; i++) {
        if (j->before.leaves[i]->state == OPS_ARRAY_DEFERRED) {
            return j->before.leaves[i];
        }
    }
    j->has_before = 1;
    return NULL;
}

/* Fills in what the kernel of the first root consists of. An array that has to be computed before
 * is given back, and the plan is void; null when nothing stands in the way. */
static ops_array *plan(job *j)
{
    j->main = NULL;
    j->has_before = j->has_after = 0;
    if (ops_array_is_pointwise(j->roots[0])) {
        ops_array *first = plan_after(j);
        if (first) {
            return first;
        }
    } else {
        j->main = j->roots[0];
    }
    return j->main ? plan_main(j) : NULL;
}

/* Takes further arrays that were asked for into a kernel of pointwise operations. */
static void add_roots(job *j, ops_array *const *others, uint32_t count)
{
    uint32_t most = most_outputs(j);
    for (uint32_t i = 0; i < count && j->root_count < most; i++) {
        ops_array *other = others[i];
        if (!ops_array_is_pointwise(other) || !ops_group_may_join(j->roots[0], other)) {
            continue;
        }
        j->roots[j->root_count] = other;
        int fits = ops_group_gather(&j->after, j->roots, j->root_count + 1);
        for (uint32_t k = 0; fits && k < j->after.leaf_count; k++) {
            fits = j->after.leaves[k]->state == OPS_ARRAY_MEMORY;
        }
        j->root_count += fits && j->root_count + 1 <= most_outputs(j);
    }
    if (count > 0) {
        ops_group_gather(&j->after, j->roots, j->root_count);
        ops_group_choose_outputs(&j->after, j->roots, j->root_count, most_outputs(j));
    }
}

/* Lists what is read and written. Groups leave notes in their arrays, which a later one may share:
 * the one after is gathered again here, the one before when it is signed. */
static void place_operands(job *j)
{
    j->input_count = j->output_count = 0;
    if (j->has_after && j->main) {
        uint32_t leaf = 0;
        ops_group_gather(&j->after, j->roots, 1);
        ops_group_choose_outputs(&j->after, j->roots, 1, 1);
        while (j->after.leaves[leaf] != j->main) {
            leaf++;
        }
        ops_group_lead_with(&j->after, leaf);
    }
    for (uint32_t i = 0; j->main && !j->has_before && i < j->main->operand_count; i++) {
        j->inputs[j->input_count++] = j->main->operands[i];
    }
    for (uint32_t i = 0; j->has_before && i < j->before.leaf_count; i++) {
        j->inputs[j->input_count++] = j->before.leaves[i];
    }
    j->after_first = j->input_count;
    for (uint32_t i = j->main ? 1 : 0; j->has_after && i < j->after.leaf_count; i++) {
        j->inputs[j->input_count++] = j->after.leaves[i];
    }
    for (uint32_t i = 0; j->has_after && i < j->after.output_count; i++) {
        j->outputs[j->output_count++] = j->after.nodes[j->after.outputs[i]];
    }
    if (!j->has_after) {
        j->outputs[j->output_count++] = j->main;
    }
}

/* What was computed for the host to read and is used after all may be used often. In a graph, where
 * the copy would be repeated, it is read where it lies. */
static hal_status move_to_device(ops_array *array)
{
    ops_context *context = array->context;
    hal_buffer *there = array->view.buffer, *here = NULL;
    const uint64_t bytes = hal_buffer_get_bytes(there);
    if (context->arrays->recording) {
        return HAL_OK;
    }
    hal_status status = hal_buffer_create(context->device, HAL_MEMORY_DEVICE, bytes, &here);
    if (!status) {
        status = hal_queue_transfer(context->queue, there, 0, context->queue, here, 0, bytes);
    }
    if (status) {
        hal_buffer_release(here);
        return status;
    }
    array->view.buffer = here;
    array->in_host_memory = 0;
    hal_buffer_release(there);
    return HAL_OK;
}

static hal_status take_buffers(job *j)
{
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < j->input_count && !status; i++) {
        ops_array *input = j->inputs[i];
        if (input->in_host_memory) {
            status = move_to_device(input);
        }
        j->buffers[i] = input->view.buffer;
    }
    return status;
}

static void sign_shape(const ops_tensor *tensor, ops_cache_key *signature)
{
    ops_cache_key_append(signature, tensor->type | (uint64_t)tensor->rank << 8);
    for (uint32_t i = 0; i < tensor->rank; i++) {
        ops_cache_key_append(signature, (uint64_t)tensor->shape[i]);
    }
}

/* All that decides how an input is read, and with which others it shares memory; short where it
 * lies just as the output does. */
static void sign_input(const job *j, uint32_t i, const ops_tensor *usual, ops_cache_key *signature)
{
    const ops_tensor *view = &j->inputs[i]->view;
    uint64_t alias = 0;
    while (j->buffers[alias] != view->buffer) {
        alias++;
    }
    int is_usual = view->offset == 0 && ops_same_shape(view, usual) &&
                   memcmp(view->stride, usual->stride, view->rank * sizeof *view->stride) == 0;
    ops_cache_key_append(signature, view->type | (uint64_t)view->rank << 8 | alias << 16 |
                                        (uint64_t)is_usual << 24);
    for (uint32_t axis = 0; !is_usual && axis < view->rank; axis++) {
        ops_cache_key_append(signature, (uint64_t)view->shape[axis]);
        ops_cache_key_append(signature, (uint64_t)view->stride[axis]);
    }
    if (!is_usual) {
        ops_cache_key_append(signature, (uint64_t)view->offset);
    }
}

static void sign(const job *j, ops_cache_key *signature)
{
    const ops_array *main = j->main;
    const ops_tensor *usual = &j->outputs[0]->view;
    ops_cache_key_append(signature, (uint64_t)j->has_before | (uint64_t)j->has_after << 1);
    sign_shape(usual, signature);
    if (main) {
        ops_cache_key_append(signature, main->operation | (uint64_t)main->function << 8 |
                                            (uint64_t)main->axis << 16 |
                                            (uint64_t)main->view.type << 24);
        sign_shape(&main->operands[0]->view, signature);
    }
    if (j->has_after) {
        ops_group_key(&j->after, signature);
    }
    if (j->has_before) {
        /* Its places were noted before those of the group after; find them again. */
        ops_array *x = main->operands[0];
        ops_group again;
        ops_group_gather(&again, &x, 1);
        ops_group_choose_outputs(&again, &x, 1, 1);
        ops_group_key(&again, signature);
    }
    for (uint32_t i = 0; i < j->input_count; i++) {
        sign_input(j, i, usual, signature);
    }
}

/* Whether the job is done by kernels of single operations this time. A graph's recording is where
 * kernels are made ahead. */
static int is_rented(const job *j, const uint64_t key[2])
{
    const struct ops_arrays *arrays = j->context->arrays;
    uint32_t kernels = (j->has_before ? j->before.node_count : 0) +
                       (j->has_after ? j->after.node_count : 0) + (j->main ? 1 : 0);
    if (kernels == 1 || arrays->recording || arrays->unfused) {
        return OPS_COLD_NO;
    }
    const ops_tensor *like = j->has_before ? &j->main->operands[0]->view : &j->outputs[0]->view;
    uint64_t bytes = (uint64_t)ops_tensor_get_element_count(like) * hal_type_size(like->type);
    return ops_cold_is_rented(j->context, key, kernels, bytes * (kernels - 1));
}

/* Computes every operation of the job by itself, operands first. */
static hal_status run_singly(const job *j)
{
    struct ops_arrays *arrays = j->context->arrays;
    hal_status status = HAL_OK;
    arrays->unfused = 1;
    for (uint32_t i = 0; j->has_before && i < j->before.node_count && !status; i++) {
        ops_array *node = j->before.nodes[i];
        status = ops_evaluate(&node, 1);
    }
    if (j->main && !status) {
        ops_array *main = j->main;
        status = ops_evaluate(&main, 1);
    }
    for (uint32_t i = 0; j->has_after && i < j->after.node_count && !status; i++) {
        ops_array *node = j->after.nodes[i];
        status = ops_evaluate(&node, 1);
    }
    arrays->unfused = 0;
    return status;
}

/* Saves the copy that a read would have to wait for; where the device's own memory is mapped there
 * is none. */
static int is_read_directly(const ops_array *array, uint64_t bytes)
{
    const uint32_t abilities = array->context->info->abilities;
    return array == array->context->arrays->read && bytes > 0 && bytes <= OPS_DIRECT_READ_BYTES &&
           (abilities & HAL_ABILITY_ZERO_COPY) && !(abilities & HAL_ABILITY_MAP_DEVICE);
}

static hal_status make_outputs(job *j)
{
    for (uint32_t i = 0; i < j->output_count; i++) {
        const ops_tensor *view = &j->outputs[i]->view;
        uint64_t bytes = (uint64_t)ops_tensor_get_element_count(view) * hal_type_size(view->type);
        hal_buffer **buffer = &j->buffers[j->input_count + i];
        j->outputs[i]->in_host_memory = is_read_directly(j->outputs[i], bytes);
        hal_status status = hal_buffer_create(j->context->device,
                                              j->outputs[i]->in_host_memory ? HAL_MEMORY_DOWNLOAD
                                                                            : HAL_MEMORY_DEVICE,
                                              bytes ? bytes : 4, buffer);
        if (status) {
            j->output_count = i;
            return status;
        }
    }
    return HAL_OK;
}

static ops_tensor output_tensor(const job *j, uint32_t i)
{
    ops_tensor tensor = j->outputs[i]->view;
    tensor.buffer = j->buffers[j->input_count + i];
    return tensor;
}

static hal_status call_pointwise(job *j)
{
    ops_tensor inputs[OPS_GROUP_LEAVES], outputs[OPS_MAX_OUTPUTS];
    ops_expression *expression;
    hal_status status = ops_group_expression(&j->after, 0, &expression);
    if (status) {
        return status;
    }
    for (uint32_t i = 0; i < j->input_count; i++) {
        inputs[i] = j->inputs[i]->view;
    }
    for (uint32_t i = 0; i < j->output_count; i++) {
        outputs[i] = output_tensor(j, i);
    }
    status =
        ops_pointwise(j->context, expression, inputs, j->input_count, outputs, j->output_count);
    ops_expression_destroy(expression);
    return status;
}

static hal_status call_reduce(job *j, const ops_expression *before, const ops_expression *after)
{
    const ops_array *main = j->main;
    const ops_tensor *shape = &main->operands[0]->view;
    ops_tensor further[2 * OPS_GROUP_LEAVES + 2], out = output_tensor(j, 0), x;
    for (uint32_t i = 0; i < j->input_count; i++) {
        further[i] = j->inputs[i]->view;
    }
    /* The first input stands for x, in x's shape. */
    hal_status status = ops_tensor_broadcast(&further[0], shape->rank, shape->shape, &x);
    if (status) {
        return status;
    }
    const ops_reduce_options options = {.prologue = before,
                                        .prologue_inputs = further + 1,
                                        .prologue_input_count = j->after_first - 1,
                                        .epilogue = after,
                                        .epilogue_inputs = further + j->after_first,
                                        .epilogue_input_count = j->input_count - j->after_first};
    return ops_reduce(j->context, (ops_reduction)main->function, main->axis, &x, &options, &out);
}

static hal_status call_main(job *j, const ops_expression *before, const ops_expression *after)
{
    const ops_array *main = j->main;
    ops_tensor out = output_tensor(j, 0);
    const ops_tensor *x = &j->inputs[0]->view;
    ops_tensor further[OPS_GROUP_LEAVES];
    switch (main->operation) {
    case OPS_OPERATION_REDUCE:
        return call_reduce(j, before, after);
    case OPS_OPERATION_SOFTMAX:
        return ops_softmax(j->context, main->axis, x, &out);
    case OPS_OPERATION_LOG_SOFTMAX:
        return ops_log_softmax(j->context, main->axis, x, &out);
    default:
        break;
    }
    for (uint32_t i = j->after_first; i < j->input_count; i++) {
        further[i - j->after_first] = j->inputs[i]->view;
    }
    const ops_gemm_options options = {.alpha = 1,
                                      .precision = main->function,
                                      .epilogue = after,
                                      .inputs = further,
                                      .input_count = j->input_count - j->after_first};
    return ops_gemm(j->context, &options, x, &j->inputs[1]->view, &out);
}

/* Plans the kernel and records it: the way of a job that was not met before. */
static hal_status call(job *j)
{
    if (!j->main) {
        return call_pointwise(j);
    }
    ops_expression *before = NULL, *after = NULL;
    hal_status status = HAL_OK;
    if (j->has_before) {
        status = ops_group_expression(&j->before, 0, &before);
    }
    if (!status && j->has_after) {
        place_operands(j); /* notes the places of the group after again */
        status = ops_group_expression(&j->after, j->main->operation == OPS_OPERATION_MATMUL ? 3 : 0,
                                      &after);
    }
    if (!status) {
        status = call_main(j, before, after);
    }
    ops_expression_destroy(before);
    ops_expression_destroy(after);
    return status;
}

/* What was recorded is computed: outputs get their memory, the others have been inside. */
static void finish(job *j)
{
    ops_array_statistics *statistics = &j->context->arrays->statistics;
    for (uint32_t i = 0; j->has_before && i < j->before.node_count; i++) {
        j->before.nodes[i]->was_computed = 1;
    }
    for (uint32_t i = 0; j->has_after && i < j->after.node_count; i++) {
        j->after.nodes[i]->was_computed = 1;
    }
    if (j->main) {
        j->main->was_computed = 1;
    }
    statistics->evaluated += (j->has_before ? j->before.node_count : 0) +
                             (j->has_after ? j->after.node_count : 0) + (j->main ? 1 : 0);
    statistics->kernels++;
    for (uint32_t i = 0; i < j->output_count; i++) {
        ops_array_settle(j->outputs[i], j->buffers[j->input_count + i]);
    }
}

static hal_status record(job *j)
{
    ops_cache_key signature;
    uint64_t key[2];
    signature.count = 0;
    place_operands(j);
    hal_status status = take_buffers(j);
    if (status) {
        return status;
    }
    sign(j, &signature);
    const ops_memo *memo = ops_memos_find(j->context->memos, &signature, key);
    const int rented = memo ? OPS_COLD_NO : is_rented(j, key);
    if (rented == OPS_COLD_AGAIN) {
        return run_singly(j);
    }
    status = make_outputs(j);
    if (!status && memo) {
        status = ops_memo_replay(j->context, memo, j->buffers);
    }
    if (status == OPS_MEMO_NO_ROOM || (!status && !memo)) {
        ops_memo_begin(j->context, j->buffers, j->input_count + j->output_count);
        j->context->cold->refuse = rented; /* should the kernel be there after all, it is used */
        status = call(j);
        j->context->cold->refuse = 0;
        ops_memo_end(j->context, key, !status);
        j->context->arrays->statistics.compiled += !status;
    }
    if (status) {
        for (uint32_t i = 0; i < j->output_count; i++) {
            hal_buffer_release(j->buffers[j->input_count + i]);
        }
        return status == OPS_COLD_REFUSED ? run_singly(j) : status;
    }
    finish(j);
    return HAL_OK;
}

/* Computes a deferred array, and others with it where they fit into its kernel. What it follows
 * from and cannot be part of its kernel comes first; so few levels lie above each other that
 * recursion is no matter (OPS_DEFERRED_DEPTH). */
static hal_status evaluate(ops_array *root, ops_array *const *others, uint32_t other_count)
{
    if (root->operation == OPS_OPERATION_VIEW) {
        return evaluate_view(root);
    }
    job j; /* large, and filled in as far as it is used */
    j.context = root->context;
    j.roots[0] = root;
    j.root_count = 1;
    for (;;) {
        ops_array *first = plan(&j);
        if (!first) {
            break;
        }
        if (first == root) {
            return hal_status_set(HAL_ERROR_UNSUPPORTED,
                                  "ops_array_evaluate: an operation on %u arrays, and %s binds no "
                                  "more than %u",
                                  root->operand_count, j.context->info->name,
                                  j.context->info->max_bindings);
        }
        hal_status status = evaluate(first, NULL, 0);
        if (status || root->state != OPS_ARRAY_DEFERRED) {
            return status; /* it may have been computed along with another one */
        }
    }
    if (!j.main) {
        add_roots(&j, others, other_count);
    }
    return record(&j);
}

hal_status ops_array_evaluate(ops_array *const *arrays, uint32_t count)
{
    if (count && !arrays) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "ops_array_evaluate: arrays is null");
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!arrays[i]) {
            return ops_array_missing("ops_array_evaluate: arrays[%u]", i);
        }
    }
    if (count == 0) {
        return HAL_OK;
    }
    ops_context *context = ops_array_operands("ops_array_evaluate", arrays, count);
    if (!context) {
        return HAL_ERROR_INVALID_STATE;
    }
    hal_status status = ops_evaluate(arrays, count);
    if (!status && !context->arrays->recording) {
        status = hal_queue_flush(context->queue, NULL);
    }
    return status ? ops_arrays_failed(context, status) : HAL_OK;
}

void ops_context_set_fusion(ops_context *context, int fusion)
{
    struct ops_arrays *arrays = context ? ops_arrays_of(context) : NULL;
    if (arrays) {
        arrays->unfused = !fusion;
    }
}

void ops_context_get_statistics(const ops_context *context, ops_array_statistics *statistics)
{
    static const ops_array_statistics none;
    if (context && statistics) {
        *statistics = context->arrays ? context->arrays->statistics : none;
    }
}

hal_status ops_evaluate(ops_array *const *arrays, uint32_t count)
{
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < count && !status; i++) {
        if (arrays[i]->state == OPS_ARRAY_DEFERRED) {
            status = evaluate(arrays[i], arrays + i + 1, count - i - 1);
        }
    }
    return status ? ops_arrays_failed(arrays[0]->context, status) : HAL_OK;
}

/* What further work uses, or somebody holds behind a view, is computed into the device's memory. */
hal_status ops_evaluate_to_read(ops_array *array)
{
    struct ops_arrays *arrays = array->context->arrays;
    const int is_view = array->operation == OPS_OPERATION_VIEW;
    const ops_array *x = is_view ? array->operands[0] : array;
    const int has_other_uses = array->uses > 0 || (is_view && (x->uses > 1 || x->holders > 0));
    arrays->read = has_other_uses ? NULL : x;
    const hal_status status = ops_evaluate(&array, 1);
    arrays->read = NULL;
    return status;
}
