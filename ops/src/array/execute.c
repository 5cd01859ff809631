/* Execution of deferred nodes, see execute.h: plans kernels, replays plans that were recorded
 * before, records others. */
#include "execute.h"

#include "attention_match.h"
#include "fusion_record.h"
#include "horizontal.h"
#include "placement.h"
#include "profile.h"
#include "quantised_match.h"
#include "tensor/compile_ahead.h"
#include "tensor/compile_policy.h"
#include "tensor/message.h"

#include <string.h>

/* How to execute; passed down. */
typedef struct execution {
    hal_status (*compute)(const ops_compute *compute, ops_array *root, ops_array *const *others,
                          uint32_t other_count); /* node_compute */
    bool fuse;                                   /* 0: one kernel per operation */
    const ops_array *host_result; /* is computed into host memory where that is allowed, or null */
    const char *why;              /* roots are computed now, see ops_arrays.why */
} execution;

/* An array in host memory that a kernel uses may be used often: it moves to the device, once. A
 * graph would repeat the copy, and so reads host memory instead. */
static hal_status node_move_to_device(ops_array *node)
{
    ops_context *context = node->owner->context;
    hal_buffer *from = node->view.buffer, *to = NULL;
    const uint64_t bytes = hal_buffer_get_bytes(from);
    if (node->owner->is_recording) {
        return HAL_OK;
    }
    hal_status status = hal_buffer_create(context->device, HAL_MEMORY_DEVICE, bytes, &to);
    if (status == HAL_OK) {
        status = hal_queue_transfer(context->queue, from, 0, context->queue, to, 0, bytes);
    }
    if (status != HAL_OK) {
        hal_buffer_release(to);
        return status;
    }
    node->view.buffer = to;
    node->batch = ops_arrays_batch(node->owner);
    node->in_host_memory = 0;
    hal_buffer_release(from);
    return HAL_OK;
}

static hal_status plan_bind_inputs(const ops_fusion_plan *plan, hal_buffer **buffers)
{
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < plan->input_count && status == HAL_OK; i++) {
        ops_array *input = plan->inputs[i];
        if (input->in_host_memory) {
            status = node_move_to_device(input);
        }
        buffers[i] = input->view.buffer;
    }
    return status;
}

/* Host memory saves the copy that a read would wait for. Where the host maps the device's own
 * memory there is no copy to save. */
static bool node_is_read_directly(const ops_array *node, uint64_t bytes, const execution *how)
{
    const uint32_t features = node->owner->context->info->features;
    return node == how->host_result && bytes > 0 && bytes <= OPS_DIRECT_READ_BYTES &&
           (features & HAL_FEATURE_ZERO_COPY) && !(features & HAL_FEATURE_MAP_DEVICE);
}

static void release_buffers(hal_buffer **buffers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        hal_buffer_release(buffers[i]);
    }
}

static uint64_t view_bytes(const ops_tensor *view)
{
    return (uint64_t)ops_tensor_get_element_count(view) * hal_type_size(view->type);
}

static hal_status plan_create_outputs(const ops_fusion_plan *plan, const execution *how,
                                      hal_buffer **buffers)
{
    hal_device *device = plan->context->device;
    const uint32_t stored = ops_fusion_plan_stored_count(plan);
    hal_status status = HAL_OK;
    uint32_t made = 0;
    while (made < stored && status == HAL_OK) {
        ops_array *output = plan->outputs[made];
        const uint64_t bytes = view_bytes(&output->view);
        if (ops_node_is_placed(output)) {
            output->in_host_memory =
                hal_buffer_get_kind(output->view.buffer) == HAL_MEMORY_DOWNLOAD;
            buffers[made++] = hal_buffer_retain(output->view.buffer);
            continue;
        }
        if (plan->donors[made]) {
            output->in_host_memory = 0;
            buffers[made] = hal_buffer_retain(plan->inputs[plan->donors[made] - 1]->view.buffer);
            made++;
            continue;
        }
        output->in_host_memory = (uint8_t)node_is_read_directly(output, bytes, how);
        status = hal_buffer_create(device,
                                   output->in_host_memory ? HAL_MEMORY_DOWNLOAD : HAL_MEMORY_DEVICE,
                                   bytes ? bytes : 4, &buffers[made]);
        if (status == HAL_OK) {
            ops_profile_label(buffers[made++], output);
        }
    }
    if (status == HAL_OK && plan->writes) {
        status = hal_buffer_create(device, HAL_MEMORY_DEVICE, view_bytes(&plan->writes->array.view),
                                   &buffers[stored]);
    }
    if (status != HAL_OK) {
        release_buffers(buffers, made);
    }
    return status;
}

/* How a plan is recorded. */
typedef enum plan_recording {
    PLAN_AS_BEFORE, /* with the kernels that there are, and general ones for others */
    PLAN_AGAIN,     /* the same, though it is recorded */
    PLAN_REQUESTS,  /* the same, and the kernels of its shapes are made in the background */
    PLAN_SPECIALISES
} plan_recording;

/* A plan whose general kernels have cost more than compilations is recorded again twice: to request
 * kernels of its shapes, and with them. */
static hal_status plan_choose_recording(const ops_fusion_plan *plan, const ops_arrays *arrays,
                                        const uint64_t hash[2], ops_recorded_plan *recorded,
                                        plan_recording *choice)
{
    ops_context *context = plan->context;
    uint32_t kernels;
    *choice = arrays->is_recording ? PLAN_SPECIALISES : PLAN_AS_BEFORE;
    if (arrays->is_recording || !recorded || !ops_recorded_plan_is_general(recorded)) {
        return HAL_OK;
    }
    const uint64_t spent = ops_recorded_plan_count_use(recorded, &kernels);
    if (ops_recorded_plan_has_requested(recorded)) {
        HAL_TRY(ops_compile_ahead_collect(context));
        *choice = ops_compile_ahead_is_awaited(context, hash) ? PLAN_AS_BEFORE : PLAN_AGAIN;
    } else if (ops_compile_policy_is_due(context->compile_policy, spent, kernels)) {
        *choice = ops_compile_ahead_pays(context) ? PLAN_REQUESTS : PLAN_SPECIALISES;
    }
    return HAL_OK;
}

/* A recording of a graph is where kernels are compiled ahead. */
static hal_status plan_defer_compile(const ops_fusion_plan *plan, const ops_arrays *arrays,
                                     const uint64_t hash[2], ops_compile_decision *decision)
{
    const uint32_t kernels = ops_fusion_plan_operation_count(plan);
    if (kernels == 1 || arrays->is_recording || !plan->fuse || plan->reads || plan->writes) {
        *decision = OPS_COMPILE_NOW;
        return HAL_OK;
    }
    const ops_tensor *like =
        plan->has_prologue ? &plan->anchor->operands[0]->view : &plan->outputs[0]->view;
    HAL_TRY(ops_compile_ahead_collect(plan->context));
    *decision = ops_defer_compile(plan->context->compile_policy, hash, kernels,
                                  view_bytes(like) * (kernels - 1));
    if (*decision == OPS_DEFER_REQUESTED) {
        const bool waits = ops_compile_ahead_is_awaited(plan->context, hash) ||
                           !ops_compile_ahead_has_room(plan->context);
        *decision = waits ? OPS_DEFER_AGAIN : OPS_DEFER_REQUESTED;
    }
    return HAL_OK;
}

/* Marks all nodes as computed and gives the outputs their buffers. */
static void plan_set_results(const ops_fusion_plan *plan, ops_arrays *arrays,
                             hal_buffer *const *buffers)
{
    if (plan->has_prologue) {
        ops_fusion_cluster_mark_computed(&plan->prologue);
    }
    if (plan->has_epilogue) {
        ops_fusion_cluster_mark_computed(&plan->epilogue);
    }
    if (plan->anchor) {
        plan->anchor->was_computed = 1;
    }
    if (plan->twin) {
        plan->twin->was_computed = 1;
    }
    arrays->statistics.evaluated += ops_fusion_plan_operation_count(plan) + (plan->twin != NULL);
    arrays->statistics.kernels++;
    const uint32_t stored = ops_fusion_plan_stored_count(plan);
    if (plan->writes) {
        plan->writes->array.view.buffer = buffers[stored];
    }
    for (uint32_t i = 0; i < stored; i++) {
        plan->outputs[i]->uses++; /* views of one may have only other outputs as users */
    }
    for (uint32_t i = 0; i < stored; i++) {
        ops_node_set_result(plan->outputs[i], buffers[i]);
    }
    for (uint32_t i = 0; i < stored; i++) {
        ops_node_remove_use(plan->outputs[i]);
    }
}

/* Records the plan and inserts it into the plan cache. *is_deferred receives whether a kernel was
 * missing that is not to be compiled now, so that nothing was recorded. */
static hal_status plan_record(const ops_fusion_plan *plan, ops_arrays *arrays,
                              const uint64_t hash[2], hal_buffer *const *buffers,
                              ops_compile_decision decision, bool *is_deferred)
{
    const uint32_t count = plan->input_count + ops_fusion_plan_buffer_count(plan);
    const bool may_defer = decision != OPS_COMPILE_NOW;
    ops_compile_policy *policy = plan->context->compile_policy;
    ops_plan_recorder *recorder = plan->context->recorder;
    ops_plan_recorder_begin(recorder, buffers, count);
    if (may_defer) {
        ops_compile_policy_begin_refusing(
            policy, decision == OPS_DEFER_REQUESTED ? OPS_MISSING_REQUESTED : OPS_MISSING_REFUSED);
    }
    memcpy(policy->plan, hash, sizeof policy->plan);
    const hal_status status = ops_fusion_record(plan, buffers + plan->input_count);
    memset(policy->plan, 0, sizeof policy->plan);
    *is_deferred = may_defer && ops_compile_policy_end_refusing(policy) && status != HAL_OK;
    if (status != HAL_OK) {
        ops_plan_recorder_cancel(recorder);
        return *is_deferred ? HAL_OK : status;
    }
    ops_recorded_plan *recorded = ops_plan_recorder_end(recorder);
    if (recorded && policy->requests) {
        ops_recorded_plan_set_requested(recorded);
    }
    ops_plan_cache_insert(arrays->plan_cache, hash, recorded);
    arrays->statistics.compiled++;
    return HAL_OK;
}

/* Replays or records the plan. *is_deferred: its operations have to be computed one by one. The
 * reference to the buffer of sums that it writes is the caller's. */
static hal_status plan_execute(const ops_fusion_plan *plan, ops_arrays *arrays,
                               const execution *how, bool *is_deferred)
{
    hal_buffer *buffers[OPS_PLAN_INPUTS + OPS_MAX_OUTPUTS];
    hal_buffer **outputs = buffers + plan->input_count;
    ops_cache_key key;
    uint64_t hash[2];
    HAL_TRY(plan_bind_inputs(plan, buffers));
    key.size = 0;
    ops_fusion_plan_append_key(plan, &key);
    ops_recorded_plan *recorded = ops_plan_cache_find(arrays->plan_cache, &key, hash);
    plan_recording choice;
    HAL_TRY(plan_choose_recording(plan, arrays, hash, recorded, &choice));
    const bool is_general = recorded && ops_recorded_plan_is_general(recorded);
    recorded = choice != PLAN_AS_BEFORE && is_general ? NULL : recorded;
    ops_compile_decision decision = OPS_COMPILE_NOW;
    if (!recorded && choice == PLAN_AS_BEFORE) {
        HAL_TRY(plan_defer_compile(plan, arrays, hash, &decision));
    }
    *is_deferred = decision != OPS_COMPILE_NOW;
    if (decision == OPS_DEFER_AGAIN) {
        return HAL_OK;
    }
    HAL_TRY(plan_create_outputs(plan, how, outputs));
    hal_status status = HAL_OK;
    bool lacks_memory = false;
    if (recorded) {
        status = ops_recorded_plan_replay(recorded, plan->context, buffers, &lacks_memory);
    }
    if (!recorded || lacks_memory) {
        const uint64_t kernels = plan->context->kernels.insertions;
        ops_compile_policy *policy = plan->context->compile_policy;
        policy->specialises = choice == PLAN_SPECIALISES;
        policy->requests = choice == PLAN_REQUESTS;
        status = plan_record(plan, arrays, hash, buffers, decision, is_deferred);
        policy->specialises = policy->requests = false;
        ops_compile_policy_end_eager(policy, plan->context->kernels.insertions != kernels);
    }
    if (status != HAL_OK || *is_deferred) {
        release_buffers(outputs, ops_fusion_plan_buffer_count(plan));
        return status;
    }
    plan_set_results(plan, arrays, outputs);
    return HAL_OK;
}

static hal_status report_too_many_operands(const ops_array *node)
{
    const hal_device_info *info = node->owner->context->info;
    return hal_status_set(HAL_ERROR_UNSUPPORTED,
                          "ops_array_evaluate: %s: expected at most %u arrays, which %s binds, got "
                          "%u operands",
                          ops_node_operation_name(node), info->max_bindings - 1, info->name,
                          node->operand_count);
}

/* The nodes of a plan, operands first. */
static uint32_t plan_list_nodes(const ops_fusion_plan *plan,
                                ops_array *nodes[2 * OPS_CLUSTER_OPERATIONS + 1])
{
    uint32_t count = 0;
    for (uint32_t i = 0; plan->has_prologue && i < plan->prologue.node_count; i++) {
        nodes[count++] = plan->prologue.nodes[i];
    }
    if (plan->anchor) {
        nodes[count++] = plan->anchor;
    }
    for (uint32_t i = 0; plan->has_epilogue && i < plan->epilogue.node_count; i++) {
        nodes[count++] = plan->epilogue.nodes[i];
    }
    return count;
}

/* Computes a node whose operands are computed into its memory. */
static hal_status node_assemble(ops_array *root, const execution *how)
{
    const ops_compute compute = {.node = how->compute, .user = how};
    if (root->operation == OPS_OPERATION_UPDATE) {
        return ops_update_compute(root, &compute);
    }
    root->in_host_memory = (uint8_t)node_is_read_directly(root, view_bytes(&root->view), how);
    return ops_concatenation_compute(
        root, root->in_host_memory ? HAL_MEMORY_DOWNLOAD : HAL_MEMORY_DEVICE, &compute);
}

/* Computes a deferred node, and others with it where they fit into its kernel. What has to be
 * computed first recurses, at most OPS_DEFERRED_DEPTH plans and the operations of one plan deep.
 * `wanted`: sums of the node, made where its kernel can; null: none are wanted. */
static hal_status node_execute(ops_array *root, ops_array *const *others, uint32_t other_count,
                               const execution *how, ops_matmul_sums *wanted)
{
    ops_fusion_plan plan; /* large, and filled in as far as it is used */
    execution before = *how;
    ops_matmul_sums sums = {.levels = 0};
    hal_status status = HAL_OK;
    if (root->operation == OPS_OPERATION_VIEW) {
        ops_array *x = ops_view_source(root);
        status = x->state == OPS_NODE_DEFERRED ? node_execute(x, NULL, 0, how, NULL) : HAL_OK;
        if (status == HAL_OK) {
            ops_node_is_missing(root);
        }
        return status;
    }
    if (root->operation == OPS_OPERATION_UPDATE ||
        (how->fuse && root->operation == OPS_OPERATION_CONCATENATE &&
         ops_concatenation_may_place(root))) {
        return node_assemble(root, how);
    }
    ops_array *first;
    while ((first = ops_fusion_plan_make(&plan, root, how->fuse,
                                         sums.array.view.buffer ? &sums : NULL))) {
        if (first == root) {
            return report_too_many_operands(root);
        }
        if (how->fuse && plan.anchor &&
            (ops_attention_match(plan.anchor) || ops_quantised_match(plan.anchor))) {
            continue; /* other operands come first now */
        }
        const bool by_sums = !sums.source && ops_fusion_plan_wants_sums(&plan, first, &sums);
        before.why = ops_profile_boundary(first, root);
        status = node_execute(first, NULL, 0, &before, by_sums ? &sums : NULL);
        if (by_sums && status == HAL_ERROR_OUT_OF_MEMORY && first->state == OPS_NODE_DEFERRED) {
            status = node_execute(first, NULL, 0, &before, NULL);
        }
        if (status != HAL_OK || root->state != OPS_NODE_DEFERRED) {
            hal_buffer_release(sums.array.view.buffer);
            return status; /* the root may be an output of that kernel */
        }
    }
    ops_fusion_plan_add_roots(&plan, others, other_count);
    ops_fusion_plan_list_operands(&plan);
    if (wanted) {
        ops_fusion_plan_write_sums(&plan, wanted);
    }
    bool is_deferred;
    ops_profile_begin_plan(&plan, how->why);
    status = plan_execute(&plan, root->owner, how, &is_deferred);
    ops_profile_end(plan.context);
    hal_buffer_release(sums.array.view.buffer);
    if (status == HAL_ERROR_OUT_OF_MEMORY && plan.reads) { /* once more, without sums */
        ops_array *source = plan.anchor->operands[0];
        status =
            source->state == OPS_NODE_DEFERRED ? node_execute(source, NULL, 0, how, NULL) : HAL_OK;
        return status != HAL_OK ? status : node_execute(root, others, other_count, how, wanted);
    }
    if (status != HAL_OK || !is_deferred) {
        return status;
    }
    /* One kernel per operation. */
    const execution single = {.fuse = 0,
                              .host_result = how->host_result,
                              .compute = how->compute,
                              .why = "the fused kernel is not compiled yet"};
    ops_array *nodes[2 * OPS_CLUSTER_OPERATIONS + 1];
    const uint32_t count = plan_list_nodes(&plan, nodes);
    status = HAL_OK;
    for (uint32_t i = 0; i < count && status == HAL_OK; i++) {
        if (nodes[i]->state == OPS_NODE_DEFERRED) {
            status = node_execute(nodes[i], NULL, 0, &single, NULL);
        }
    }
    return status;
}

static hal_status node_compute(const ops_compute *compute, ops_array *root,
                               ops_array *const *others, uint32_t other_count)
{
    return node_execute(root, others, other_count, compute->user, NULL);
}

/* Refuses arrays without values. */
static hal_status check_values(ops_array *const *arrays, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (arrays[i]->state == OPS_NODE_LOST) {
            ops_refuse_operands("ops_array_evaluate", arrays, count);
            return HAL_ERROR_INVALID_STATE;
        }
    }
    return HAL_OK;
}

static hal_status arrays_compute(ops_array *const *arrays, uint32_t count, const execution *how)
{
    const bool joins =
        count >= OPS_HORIZONTAL_LEAST && how->fuse && !arrays[0]->owner->is_recording;
    if (joins) {
        const ops_compute compute = {.node = how->compute, .user = how};
        HAL_TRY(ops_horizontal_execute(arrays, count, &compute));
    }
    for (uint32_t i = 0; i < count; i++) {
        if (arrays[i]->state == OPS_NODE_DEFERRED) {
            HAL_TRY(node_execute(arrays[i], arrays + i + 1, count - i - 1, how, NULL));
        } else if (arrays[i]->state == OPS_NODE_LOST) {
            return check_values(arrays, count);
        }
    }
    return HAL_OK;
}

static hal_status execute_all(ops_array *const *arrays, uint32_t count, const execution *how)
{
    if (count == 0) {
        return HAL_OK;
    }
    ops_arrays *owner = arrays[0]->owner;
    ops_message message; /* of before: a lack of memory that other plans make up for says nothing */
    ops_message_save(&message);
    ops_arrays_drain(owner);
    ops_arrays_note_losses(owner);
    owner->why = NULL;
    const uint32_t losses = owner->losses_found;
    hal_status status = arrays_compute(arrays, count, how);
    /* What makes up for a lack of memory returns no error, also where a batch was dropped. */
    ops_arrays_note_losses(owner);
    if (status == HAL_OK && owner->losses_found != losses) {
        status = check_values(arrays, count);
    }
    if (status != HAL_OK) {
        return ops_arrays_failed(owner, status);
    }
    ops_message_restore(&message);
    return HAL_OK;
}

hal_status ops_execute(ops_array *const *arrays, uint32_t count)
{
    const execution how = {.fuse = count && arrays[0]->owner->fusion,
                           .compute = node_compute,
                           .why = count ? arrays[0]->owner->why : NULL};
    return execute_all(arrays, count, &how);
}

/* An array that is an operand of other work, or a view whose base is still held, goes to the
 * device's memory as usual. */
hal_status ops_execute_for_host(ops_array *array)
{
    const bool is_view = array->operation == OPS_OPERATION_VIEW;
    const ops_array *x = is_view ? ops_view_source(array) : array;
    const bool has_other_uses = array->uses > 0 || (is_view && (x->uses > 1 || x->references > 0));
    const execution how = {.fuse = array->owner->fusion,
                           .host_result = has_other_uses ? NULL : x,
                           .compute = node_compute,
                           .why = array->owner->why};
    return execute_all(&array, 1, &how);
}
