/* Fusion plans, see fusion_plan.h. */
#include "fusion_plan.h"

#include "donation.h"

#include "kernels/fold.h"
#include "kernels/pool_form.h"
#include "tensor/loop_limit.h"

#include <string.h>

/* Bindings of one kernel at most, and those that a reduction or product needs besides its prologue
 * and epilogue. */
#define MAX_BINDINGS 24u
#define ANCHOR_BINDINGS 3u

/* Bindings that the epilogue's leaves leave. */
static uint32_t plan_free_bindings(const ops_fusion_plan *plan)
{
    uint32_t bindings = plan->context->info->max_bindings;
    bindings = bindings < MAX_BINDINGS ? bindings : MAX_BINDINGS;
    uint32_t leaves = plan->epilogue.leaf_count;
    return bindings > leaves ? bindings - leaves : 1;
}

static uint32_t plan_max_outputs(const ops_fusion_plan *plan)
{
    const uint32_t left = plan_free_bindings(plan);
    return left < OPS_MAX_OUTPUTS ? left : OPS_MAX_OUTPUTS;
}

/* A node of the cluster that one of its leaves is computed from as well, and that is stored first
 * therefore: for example the state that a recurrent step both multiplies and adds. Null if none. */
static ops_array *cluster_find_operand_of_leaf(const ops_fusion_cluster *cluster)
{
    for (uint32_t i = 0; i < cluster->leaf_count; i++) {
        const ops_array *leaf = cluster->leaves[i];
        ops_array *const *operands = ops_node_operands(leaf);
        for (uint32_t k = 0; k < leaf->operand_count; k++) {
            ops_array *operand = operands[k];
            operand = ops_node_is_view(operand) ? ops_view_source(operand) : operand;
            if (ops_fusion_cluster_contains(cluster, operand) && !ops_node_is_remade(operand)) {
                return operand;
            }
        }
    }
    return NULL;
}

/* Whether leaf number `leaf` can be the anchor that the epilogue follows. */
static bool plan_can_anchor(const ops_fusion_plan *plan, uint32_t leaf)
{
    const ops_fusion_cluster *cluster = &plan->epilogue;
    const bool is_product = cluster->leaves[leaf]->operation == OPS_OPERATION_MATMUL;
    return plan->fuse && cluster->leaf_frames[leaf] == 0 &&
           !(is_product && ops_node_is_placed(plan->roots[0])) &&
           ops_fusion_cluster_may_follow(plan->roots[0], cluster->leaves[leaf]) &&
           cluster->output_count == 1 &&
           cluster->leaf_count - 1 + ANCHOR_BINDINGS <= plan->context->info->max_bindings &&
           ops_node_is_needed_once(cluster->leaves[leaf], cluster->leaf_uses[leaf]);
}

static ops_array *find_deferred(ops_array *const *arrays, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (ops_node_is_missing(arrays[i])) {
            return arrays[i];
        }
    }
    return NULL;
}

/* Operations of a kernel of rows at most: each is emitted for every element of a work-item. */
#define MAX_ROW_OPERATIONS 32u

/* Phases of a kernel of rows at most where a device limits the iterations of its loops. */
#define MAX_ROW_LOOPS 8

/* The first deferred reduction that computes a node, within `budget` visits; null if none. */
static ops_array *find_reduction(ops_array *node, uint32_t *budget)
{
    if (node->state != OPS_NODE_DEFERRED || *budget == 0) {
        return NULL;
    }
    (*budget)--;
    if (node->operation == OPS_OPERATION_REDUCE) {
        return node;
    }
    ops_array *found = NULL;
    for (uint32_t i = 0; ops_node_is_elementwise(node) && i < node->operand_count && !found; i++) {
        found = find_reduction(node->operands[i], budget);
    }
    return found;
}

bool ops_fusion_plan_row_layout(const ops_fusion_plan *plan, ops_row_layout *layout)
{
    const ops_context *context = plan->context;
    const ops_fusion_cluster *cluster = &plan->epilogue;
    const bool is_limited = context->info->max_loop_iterations != 0;
    const int64_t steps = is_limited ? ops_loop_limit(context, 0, 0) / MAX_ROW_LOOPS : INT64_MAX;
    uint32_t reductions = 0;
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        const ops_array *node = cluster->nodes[i];
        if (is_limited && node->operation == OPS_OPERATION_BINARY && node->function == OPS_REM) {
            return false; /* has loops */
        }
        if (node->operation != OPS_OPERATION_REDUCE) {
            continue;
        }
        const ops_tensor *x = &node->operands[0]->view;
        ops_row_layout own;
        memset(&own, 0, sizeof own);
        if (ops_row_layout_choose(context, "ops_array_reduce", x, node->axis,
                                  hal_type_of_value(x->type), steps, &own) ||
            (is_limited && own.slices > 1) ||
            (reductions++ && memcmp(&own, layout, sizeof own) != 0)) {
            return false;
        }
        *layout = own;
    }
    return !is_limited || reductions < MAX_ROW_LOOPS;
}

/* Outputs of a program of rows at most; 0 where it cannot be recorded. With slices its kernels read
 * and write up to two results of each reduction as well. */
static uint32_t plan_max_row_outputs(const ops_fusion_plan *plan, const ops_row_layout *layout)
{
    const ops_fusion_cluster *cluster = &plan->epilogue;
    const uint32_t bindings = plan_free_bindings(plan);
    uint32_t results = 0;
    for (uint32_t i = 0; i < cluster->node_count && layout->slices > 1; i++) {
        const ops_array *node = cluster->nodes[i];
        results += node->operation != OPS_OPERATION_REDUCE ? 0
                   : ops_fold_has_place(node->function)    ? 2
                                                           : 1;
    }
    const uint32_t most = bindings < OPS_ROW_OUTPUTS ? bindings : OPS_ROW_OUTPUTS;
    const uint32_t left = most > results ? most - results : 0;
    return left < OPS_MAX_OUTPUTS ? left : OPS_MAX_OUTPUTS;
}

/* Plans the rows of a reduction, if the root is computed from them, in one kernel. Returns whether
 * it did; *first receives a deferred array that has to be computed before. */
static bool plan_rows(ops_fusion_plan *plan, ops_array *from, ops_array **first)
{
    ops_fusion_cluster *cluster = &plan->epilogue;
    uint32_t budget = MAX_ROW_OPERATIONS;
    ops_array *reduction = find_reduction(from, &budget);
    ops_row_layout layout;
    if (!plan->fuse || !reduction ||
        !ops_fusion_cluster_gather_rows(cluster, plan->roots[0], reduction) ||
        cluster->node_count > MAX_ROW_OPERATIONS || !ops_fusion_plan_row_layout(plan, &layout)) {
        return false;
    }
    const uint32_t most = plan_max_row_outputs(plan, &layout);
    if (most == 0) {
        return false;
    }
    plan->rows = reduction;
    plan->has_epilogue = 1;
    ops_fusion_cluster_choose_outputs(cluster, plan->roots, 1, most);
    *first = find_deferred(cluster->leaves, cluster->leaf_count);
    return true;
}

/* Whether any deferred leaf leads to a reduction whose rows the root is computed from. */
static bool plan_rows_of_leaves(ops_fusion_plan *plan, ops_array **first)
{
    ops_array *leaves[OPS_CLUSTER_LEAVES];
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->epilogue.leaf_count; i++) {
        ops_array *leaf = plan->epilogue.leaves[i];
        if (ops_node_is_elementwise(leaf) ||
            (leaf->state == OPS_NODE_DEFERRED && leaf->operation == OPS_OPERATION_REDUCE)) {
            leaves[count++] = leaf;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (plan_rows(plan, leaves[i], first)) {
            return true;
        }
    }
    if (count > 0) {
        ops_fusion_cluster_gather(&plan->epilogue, plan->roots, 1, plan->fuse);
    }
    return false;
}

/* Arrays that a joined reduction adds to what a kernel reads at most: beyond it, to read them takes
 * longer than to start a kernel. */
#define JOINED_LEAF_BYTES 65536u

/* Whether `node` is a deferred reduction of rows like those of `reduction`. */
static bool reduction_is_like(const ops_array *node, const ops_array *reduction)
{
    return node && node->state == OPS_NODE_DEFERRED && node->operation == OPS_OPERATION_REDUCE &&
           node->axis == reduction->axis && node->recording == reduction->recording &&
           !ops_node_is_placed(node) &&
           ops_node_has_shape_of(node->operands[0], reduction->operands[0]);
}

/* Whether a cluster with one root more, which was gathered last, is one kernel. `leaves`: of the
 * cluster without that root, which is gathered first as well. */
static bool joined_fits(const ops_fusion_plan *plan, const ops_fusion_cluster *cluster,
                        uint32_t leaves)
{
    ops_row_layout layout;
    for (uint32_t i = leaves; i < cluster->leaf_count; i++) {
        const ops_tensor *view = &cluster->leaves[i]->view;
        const uint64_t elements = (uint64_t)ops_tensor_get_element_count(view);
        if (ops_node_is_missing(cluster->leaves[i]) ||
            elements * hal_type_size(view->type) > JOINED_LEAF_BYTES) {
            return false;
        }
    }
    return cluster->node_count <= MAX_ROW_OPERATIONS && ops_fusion_plan_row_layout(plan, &layout) &&
           plan->root_count < plan_max_row_outputs(plan, &layout);
}

static bool cluster_has_node(const ops_fusion_cluster *cluster, const ops_array *node)
{
    bool found = false;
    for (uint32_t i = 0; i < cluster->node_count; i++) {
        found = found || cluster->nodes[i] == node;
    }
    return found;
}

/* Joins other deferred reductions of the rows of `reduction`, of which the root is computed, in one
 * kernel. Returns whether there are any; *first receives a deferred array that has to be computed
 * before. */
static bool plan_join(ops_fusion_plan *plan, const ops_array *reduction, ops_array **first)
{
    const ops_arrays *arrays = reduction->owner;
    ops_array *others[OPS_RECENT_REDUCTIONS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < OPS_RECENT_REDUCTIONS; i++) {
        ops_array *other =
            arrays->reductions[(arrays->reduction_count - 1 - i) % OPS_RECENT_REDUCTIONS];
        if (other != reduction && reduction_is_like(other, reduction)) {
            others[count++] = other;
        }
    }
    const ops_tensor *x = &reduction->operands[0]->view;
    if (!plan->fuse || count == 0 || x->shape[reduction->axis] < 2) {
        return false;
    }
    ops_fusion_plan joined = {.context = plan->context, .root_count = 1};
    ops_fusion_cluster *cluster = &joined.epilogue;
    joined.roots[0] = plan->roots[0];
    bool fits = ops_fusion_cluster_gather_joined(cluster, joined.roots, 1, reduction);
    uint32_t leaves = cluster->leaf_count;
    for (uint32_t i = 0; fits && i < count && joined.root_count < OPS_MAX_OUTPUTS; i++) {
        joined.roots[joined.root_count] = others[i];
        if (!cluster_has_node(cluster, others[i]) &&
            ops_fusion_cluster_gather_joined(cluster, joined.roots, joined.root_count + 1,
                                             reduction) &&
            joined_fits(&joined, cluster, leaves)) {
            joined.root_count++;
            leaves = cluster->leaf_count;
        }
    }
    if (joined.root_count == 1) {
        return false;
    }
    ops_row_layout layout;
    plan->root_count = joined.root_count;
    memcpy(plan->roots, joined.roots, sizeof joined.roots);
    plan->anchor = NULL;
    plan->rows = reduction;
    plan->has_prologue = 0;
    plan->has_epilogue = 1;
    cluster = &plan->epilogue;
    ops_fusion_cluster_gather_joined(cluster, plan->roots, plan->root_count, reduction);
    ops_fusion_plan_row_layout(plan, &layout);
    ops_fusion_cluster_choose_outputs(cluster, plan->roots, plan->root_count,
                                      plan_max_row_outputs(plan, &layout));
    *first = find_deferred(cluster->leaves, cluster->leaf_count);
    return true;
}

/* Plans the elementwise nodes; the only deferred leaf may become the anchor. */
static ops_array *plan_epilogue(ops_fusion_plan *plan)
{
    ops_fusion_cluster *cluster = &plan->epilogue;
    plan->has_epilogue = 1;
    if (!ops_fusion_cluster_gather(cluster, plan->roots, 1, plan->fuse)) {
        return cluster->excess;
    }
    ops_array *first = NULL;
    if (plan_rows_of_leaves(plan, &first)) {
        return first;
    }
    ops_fusion_cluster_choose_outputs(cluster, plan->roots, 1, plan_max_outputs(plan));
    ops_array *shared = cluster_find_operand_of_leaf(cluster);
    if (shared) {
        return shared;
    }
    for (uint32_t i = 0; i < cluster->leaf_count; i++) {
        ops_array *leaf = cluster->leaves[i];
        if (!ops_node_is_missing(leaf)) {
            continue;
        }
        if (plan->anchor || !plan_can_anchor(plan, i)) {
            plan->anchor = NULL;
            return leaf;
        }
        plan->anchor = leaf;
    }
    return NULL;
}

/* Whether the operand of a reduction is computed by its kernel alone, or by each that reads it. */
static bool operand_may_precede(const ops_array *operand)
{
    const bool is_view = ops_node_is_view(operand);
    return ops_node_is_needed_once(operand, 1) ||
           ops_node_is_remade(is_view ? ops_view_source(operand) : operand);
}

/* Plans the operands of the anchor. A reduction takes elementwise operands as its prologue. */
static ops_array *plan_prologue(ops_fusion_plan *plan)
{
    const ops_array *anchor = plan->anchor;
    ops_array *const *operands = ops_node_operands(anchor);
    ops_array *operand = operands[0];
    if (anchor->operation == OPS_OPERATION_MATMUL && plan->reads &&
        operand == plan->reads->source) {
        return find_deferred(operands + 1, 1);
    }
    if (anchor->operation != OPS_OPERATION_REDUCE ||
        !(ops_node_is_elementwise(operand) || ops_cluster_view_joins(operand)) || !plan->fuse ||
        !operand_may_precede(operand)) {
        return find_deferred(operands, anchor->operand_count);
    }
    ops_fusion_cluster *cluster = &plan->prologue;
    if (!ops_fusion_cluster_gather(cluster, &operand, 1, plan->fuse)) {
        return operand;
    }
    ops_fusion_cluster_choose_outputs(cluster, &operand, 1, OPS_MAX_OUTPUTS);
    uint32_t bindings = cluster->leaf_count + ANCHOR_BINDINGS +
                        (plan->has_epilogue ? plan->epilogue.leaf_count - 1 : 0);
    if (cluster->output_count > 1 || bindings > plan->context->info->max_bindings ||
        bindings > MAX_BINDINGS) {
        return operand;
    }
    plan->has_prologue = 1;
    return find_deferred(cluster->leaves, cluster->leaf_count);
}

static void plan_add_inputs(ops_fusion_plan *plan, ops_array *const *arrays, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        plan->inputs[plan->input_count++] = arrays[i];
    }
}

/* Type, shape and order of a node; its offset and strides where they are those of a view are a
 * matter of inputs. */
static void key_append_node(ops_cache_key *key, const ops_array *node)
{
    const ops_tensor *tensor = &node->view;
    const bool has_strides = node->is_reordered || ops_node_is_view(node);
    const uint32_t form[2] = {tensor->type, tensor->rank | (uint32_t)has_strides << 8};
    ops_cache_key_append(key, form, sizeof form);
    ops_cache_key_append(key, tensor->shape, tensor->rank * sizeof *tensor->shape);
    if (has_strides) {
        ops_cache_key_append(key, tensor->stride, tensor->rank * sizeof *tensor->stride);
    }
}

/* Whether input number `i` is a leaf of the plan's prologue or epilogue; which one. */
static bool plan_input_is_leaf(const ops_fusion_plan *plan, uint32_t i,
                               const ops_fusion_cluster **cluster, uint32_t *leaf)
{
    const bool is_before = i < plan->epilogue_first;
    *cluster = is_before ? &plan->prologue : &plan->epilogue;
    *leaf = is_before ? i : i - plan->epilogue_first + (plan->anchor != NULL);
    return is_before ? plan->has_prologue : plan->has_epilogue;
}

/* How input number `i` is read, and the first input that shares its buffer. An input with the
 * layout of the output, the usual case, takes four bytes. */
static void plan_append_input(const ops_fusion_plan *plan, uint32_t i, ops_cache_key *key)
{
    const ops_fusion_cluster *cluster;
    uint32_t leaf;
    const ops_tensor *view = &plan->inputs[i]->view, *usual = &plan->outputs[0]->view;
    ops_tensor mapped;
    uint8_t alias = 0;
    while (plan->inputs[alias]->view.buffer != view->buffer) {
        alias++;
    }
    if (plan_input_is_leaf(plan, i, &cluster, &leaf) && cluster->leaf_frames[leaf]) {
        mapped = ops_fusion_cluster_leaf_tensor(cluster, leaf);
        view = &mapped;
    }
    const size_t bytes = view->rank * sizeof *view->stride;
    const bool is_usual = view->offset == 0 && ops_same_shape(view, usual) &&
                          memcmp(view->stride, usual->stride, bytes) == 0;
    const uint8_t form[4] = {view->type, (uint8_t)view->rank, alias, (uint8_t)is_usual};
    ops_cache_key_append(key, form, sizeof form);
    if (!is_usual) {
        ops_cache_key_append(key, view->shape, bytes);
        ops_cache_key_append(key, view->stride, bytes);
        ops_cache_key_append(key, &view->offset, sizeof view->offset);
    }
}

/* Where a placed output is, and the first output in the same memory. */
static void plan_append_place(const ops_fusion_plan *plan, uint32_t i, ops_cache_key *key)
{
    const ops_tensor *view = &plan->outputs[i]->view;
    uint32_t form[2] = {i, 0};
    while (plan->outputs[form[1]]->view.buffer != view->buffer) {
        form[1]++;
    }
    ops_cache_key_append(key, form, sizeof form);
    ops_cache_key_append(key, view->stride, view->rank * sizeof *view->stride);
    ops_cache_key_append(key, &view->offset, sizeof view->offset);
}

ops_tensor ops_fusion_plan_input(const ops_fusion_plan *plan, uint32_t i)
{
    const ops_fusion_cluster *cluster;
    uint32_t leaf;
    return plan_input_is_leaf(plan, i, &cluster, &leaf)
               ? ops_fusion_cluster_leaf_tensor(cluster, leaf)
               : plan->inputs[i]->view;
}

/* The levels of ops_matmul_sums_levels. */
static uint32_t plan_sums_levels(const ops_fusion_plan *plan)
{
    const uint32_t inputs = plan->has_epilogue ? plan->epilogue.leaf_count - 1 : 0;
    return plan->fuse && plan->anchor && plan->anchor->operation == OPS_OPERATION_MATMUL
               ? ops_matmul_sums_levels(plan->anchor, plan->roots[0], inputs)
               : 0;
}

bool ops_fusion_plan_wants_sums(const ops_fusion_plan *plan, const ops_array *operand,
                                ops_matmul_sums *sums)
{
    const uint32_t levels = plan_sums_levels(plan);
    if (levels == 0 || plan->anchor->operands[0] != operand) {
        return false;
    }
    sums->levels = levels;
    sums->drops_result = ops_node_is_needed_once(operand, 1);
    sums->source = operand;
    return true;
}

void ops_fusion_plan_write_sums(ops_fusion_plan *plan, ops_matmul_sums *sums)
{
    if (plan_sums_levels(plan) == sums->levels) {
        ops_matmul_sums_describe(sums, plan->outputs[0]);
        plan->writes = sums;
    }
}

uint32_t ops_fusion_plan_stored_count(const ops_fusion_plan *plan)
{
    return plan->writes && plan->writes->drops_result ? 0 : plan->output_count;
}

uint32_t ops_fusion_plan_buffer_count(const ops_fusion_plan *plan)
{
    return ops_fusion_plan_stored_count(plan) + (plan->writes != NULL);
}

/* What to compute before the root for the sake of x: rather its operand than a cast to a larger
 * type, or a view of one, which all that read it make again. */
static ops_array *first_of(const ops_array *root, ops_array *x)
{
    while (x && x != root && !x->needs_memory) {
        const ops_array *cast = ops_node_is_view(x) ? ops_view_source(x) : x;
        if (!ops_node_widens(cast) || cast->operands[0]->state != OPS_NODE_DEFERRED ||
            ops_node_is_view(cast->operands[0])) {
            break;
        }
        x = cast->operands[0];
    }
    return x;
}

/* Whether two deferred nodes are the maxima of the same windows and their places. */
static bool pools_are_twins(const ops_array *node, const ops_array *other)
{
    if (!other || other->state != OPS_NODE_DEFERRED || other->operation != OPS_OPERATION_POOL ||
        other->operands[0] != node->operands[0] || other->function != node->function ||
        other->recording != node->recording || ops_node_is_placed(other) ||
        !ops_node_has_shape_of(node, other) || !ops_node_has_order_of(node, other)) {
        return false;
    }
    ops_pool_form own = *(const ops_pool_form *)node->form;
    ops_pool_form given = *(const ops_pool_form *)other->form;
    const bool have_both =
        (own.divisor == OPS_POOL_MAXIMA && given.divisor == OPS_POOL_PLACES) ||
        (own.divisor == OPS_POOL_PLACES && given.divisor == OPS_POOL_MAXIMA);
    own.divisor = given.divisor;
    return have_both && memcmp(&own, &given, sizeof own) == 0;
}

/* The pooling that the kernel of the anchor, a pooling, computes as well; null if there is none. */
static ops_array *plan_find_twin(const ops_fusion_plan *plan)
{
    const ops_array *anchor = plan->anchor;
    ops_array *const *pools = anchor->owner->pools;
    ops_array *found = NULL;
    for (uint32_t i = 0; plan->fuse && !ops_node_is_placed(anchor) && i < OPS_RECENT_POOLS; i++) {
        found = pools_are_twins(anchor, pools[i]) ? pools[i] : found;
    }
    return found;
}

static ops_array *plan_make(ops_fusion_plan *plan, ops_array *root, bool fuse,
                            ops_matmul_sums *sums)
{
    plan->context = root->owner->context;
    plan->fuse = fuse;
    plan->roots[0] = root;
    plan->root_count = 1;
    plan->anchor = plan->twin = NULL;
    plan->rows = NULL;
    plan->has_prologue = plan->has_epilogue = 0;
    plan->reads = sums;
    plan->writes = NULL;
    ops_array *first = NULL;
    if (ops_node_is_elementwise(root)) {
        first = plan_epilogue(plan);
        if (first) {
            return first;
        }
        const ops_array *reduction = plan->rows ? plan->rows : plan->anchor;
        if (reduction && reduction->operation == OPS_OPERATION_REDUCE &&
            plan_join(plan, reduction, &first)) {
            return first;
        }
    } else {
        if (root->operation == OPS_OPERATION_REDUCE && plan_join(plan, root, &first)) {
            return first;
        }
        if (root->operation == OPS_OPERATION_REDUCE && ops_node_is_elementwise(root->operands[0]) &&
            plan_rows(plan, root->operands[0], &first)) {
            return first;
        }
        plan->anchor = root;
        plan->twin = root->operation == OPS_OPERATION_POOL ? plan_find_twin(plan) : NULL;
    }
    return plan->anchor ? plan_prologue(plan) : NULL;
}

ops_array *ops_fusion_plan_make(ops_fusion_plan *plan, ops_array *root, bool fuse,
                                ops_matmul_sums *sums)
{
    ops_array *first = plan_make(plan, root, fuse, sums);
    return fuse ? first_of(root, first) : first;
}

void ops_fusion_plan_add_roots(ops_fusion_plan *plan, ops_array *const *roots, uint32_t count)
{
    if (plan->anchor || plan->rows || !plan->fuse || count == 0) {
        return;
    }
    ops_fusion_cluster *cluster = &plan->epilogue;
    const uint32_t most = plan_max_outputs(plan);
    for (uint32_t i = 0; i < count && plan->root_count < most; i++) {
        ops_array *root = roots[i];
        if (!ops_node_is_elementwise(root) || !ops_node_has_shape_of(plan->roots[0], root) ||
            !ops_node_has_order_of(plan->roots[0], root)) {
            continue;
        }
        plan->roots[plan->root_count] = root;
        int fits =
            ops_fusion_cluster_gather(cluster, plan->roots, plan->root_count + 1, plan->fuse);
        for (uint32_t k = 0; fits && k < cluster->leaf_count; k++) {
            fits = !ops_node_is_missing(cluster->leaves[k]);
        }
        plan->root_count += fits && plan->root_count + 1 <= plan_max_outputs(plan);
    }
    ops_fusion_cluster_gather(cluster, plan->roots, plan->root_count, plan->fuse);
    ops_fusion_cluster_choose_outputs(cluster, plan->roots, plan->root_count,
                                      plan_max_outputs(plan));
}

/* Elementwise results take the memory of operands that end with their kernel. A copy is recorded as
 * one between two places. */
static void plan_choose_donors(ops_fusion_plan *plan)
{
    const ops_fusion_cluster *cluster = &plan->epilogue;
    const ops_array *first = cluster->nodes[0];
    uint32_t taken = 0;
    if (cluster->node_count == 1 && first->operation == OPS_OPERATION_UNARY &&
        first->function == OPS_IDENTITY) {
        return;
    }
    for (uint32_t i = 0; i < plan->output_count; i++) {
        const uint32_t leaf = ops_donation_find(cluster, i, taken);
        if (leaf < cluster->leaf_count) {
            plan->donors[i] = (uint8_t)(leaf + 1);
            taken |= UINT32_C(1) << leaf;
        }
    }
}

void ops_fusion_plan_list_operands(ops_fusion_plan *plan)
{
    const ops_array *anchor = plan->anchor;
    ops_fusion_cluster *epilogue = &plan->epilogue;
    memset(plan->donors, 0, sizeof plan->donors);
    plan->input_count = plan->output_count = 0;
    if (plan->has_prologue) {
        plan_add_inputs(plan, plan->prologue.leaves, plan->prologue.leaf_count);
    } else if (anchor) {
        plan_add_inputs(plan, ops_node_operands(anchor), anchor->operand_count);
    }
    if (plan->reads && anchor && anchor->operation == OPS_OPERATION_MATMUL &&
        plan->inputs[0] == plan->reads->source) {
        plan->inputs[0] = &plan->reads->array;
    } else {
        plan->reads = NULL;
    }
    plan->epilogue_first = plan->input_count;
    if (!plan->has_epilogue) {
        plan->outputs[plan->output_count++] = plan->anchor;
        if (plan->twin) {
            plan->outputs[plan->output_count++] = plan->twin;
        }
        return;
    }
    if (anchor) {
        uint32_t leaf = 0;
        while (epilogue->leaves[leaf] != anchor) {
            leaf++;
        }
        ops_fusion_cluster_lead_with(epilogue, leaf);
        plan_add_inputs(plan, epilogue->leaves + 1, epilogue->leaf_count - 1);
    } else {
        plan_add_inputs(plan, epilogue->leaves, epilogue->leaf_count);
    }
    for (uint32_t i = 0; i < epilogue->output_count; i++) {
        plan->outputs[plan->output_count++] = epilogue->nodes[epilogue->outputs[i]];
    }
    if (!anchor && !plan->rows) {
        plan_choose_donors(plan);
    }
}

uint32_t ops_fusion_plan_operation_count(const ops_fusion_plan *plan)
{
    return (plan->has_prologue ? plan->prologue.node_count : 0) +
           (plan->has_epilogue ? plan->epilogue.node_count : 0) + (plan->anchor ? 1 : 0);
}

void ops_fusion_plan_append_key(const ops_fusion_plan *plan, ops_cache_key *key)
{
    const ops_array *anchor = plan->anchor;
    const ops_matmul_sums *reads = plan->reads, *writes = plan->writes;
    const uint32_t sums = (reads ? reads->levels << 1 : 0) |
                          (writes ? writes->levels << 3 | (uint32_t)writes->drops_result << 5 : 0);
    const uint8_t form[4] = {(uint8_t)((uint32_t)plan->has_prologue | sums),
                             (uint8_t)plan->has_epilogue, (uint8_t)plan->input_count,
                             (uint8_t)((anchor != NULL) + 2 * (plan->rows != NULL))};
    ops_cache_key_append(key, form, sizeof form);
    key_append_node(key, plan->outputs[0]);
    if (anchor) {
        const ops_gemm_prepared *prepared =
            anchor->operation == OPS_OPERATION_MATMUL ? ops_matmul_prepared(anchor) : NULL;
        const uint8_t operation[6] = {anchor->operation,
                                      anchor->function,
                                      anchor->axis,
                                      anchor->view.type,
                                      (uint8_t)ops_gemm_prepared_get_levels(prepared),
                                      (uint8_t)(plan->twin != NULL)};
        ops_cache_key_append(key, operation, sizeof operation);
        if (anchor->operation == OPS_OPERATION_ATTENTION) {
            ops_cache_key_append(key, &anchor->scale, sizeof anchor->scale);
        }
        key_append_node(key, ops_node_operands(anchor)[0]);
        if (anchor->form) {
            ops_cache_key_append(key, anchor->form, ops_node_form_bytes(anchor));
        }
    }
    if (plan->rows) {
        const uint32_t axis = plan->rows->axis;
        ops_cache_key_append(key, &axis, sizeof axis);
        key_append_node(key, plan->rows->operands[0]);
    }
    if (plan->has_epilogue) {
        ops_fusion_cluster_append_key(&plan->epilogue, key);
    }
    if (plan->has_prologue) {
        ops_fusion_cluster_append_key(&plan->prologue, key);
    }
    for (uint32_t i = 0; i < plan->input_count; i++) {
        plan_append_input(plan, i, key);
    }
    for (uint32_t i = 0; i < plan->output_count; i++) {
        if (ops_node_is_placed(plan->outputs[i])) {
            plan_append_place(plan, i, key);
        }
        if (plan->donors[i]) {
            const uint32_t donation[2] = {i | 1u << 8, plan->donors[i]}; /* no place */
            ops_cache_key_append(key, donation, sizeof donation);
        }
    }
}
