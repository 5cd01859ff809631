/* Horizontal fusion, see horizontal.h. */
#include "horizontal.h"

#include "donation.h"
#include "fusion_plan.h"
#include "profile.h"

#include <stdlib.h>
#include <string.h>

/* Results begin at multiples of as many bytes: vectors and bindings are aligned. */
#define RESULT_ALIGNMENT 256u

/* The largest result that is joined: launches do not count for larger ones. */
#define MAX_RESULT_BYTES (UINT64_C(16) << 20)

/* Bits of a node's join_marks: it is computed in the cluster of another root; a member stores it;
 * it is computed for a root of the call. */
enum { MARK_INNER = 1, MARK_STORED = 2, MARK_ROOT = 4 };

/* What one root is computed of. */
typedef struct member {
    ops_array *root; /* of the cluster */
    uint32_t form;
    uint32_t first_node, node_count; /* in the nodes of the join */
    uint8_t input_count, output_count;
    uint8_t outputs[OPS_MAX_OUTPUTS]; /* indices of nodes */
    uint8_t donors[OPS_MAX_OUTPUTS];  /* 1 + the leaf whose elements an output takes; 0: of none */
    ops_array *leaves[OPS_CLUSTER_LEAVES];
    ops_segment segment; /* without the buffers of results */
} member;

/* What members of one form have in common. */
typedef struct form_key {
    uint64_t hash[2];
    hal_type types[OPS_SEGMENT_VIEWS];
    uint32_t scalars;
} form_key;

typedef struct form {
    form_key key;
    ops_fusion_cluster cluster; /* with the nodes of a member that is not computed yet */
} form;

typedef struct join {
    ops_arrays *arrays;
    member *members;
    uint32_t member_count;
    form **forms;
    uint32_t form_count;
    ops_array **nodes;
    uint32_t node_count, node_capacity;
    uint32_t computed; /* members */
    bool has_computed; /* since the gathering began: its plans may be void */
} join;

/* ---- Gathering ---- */

static hal_status report_no_memory(void)
{
    return hal_status_set(HAL_ERROR_OUT_OF_MEMORY,
                          "ops_array_evaluate: the host has no memory for joined plans");
}

/* The node that is computed for a root: of an update of all elements, its value. Null: none. */
static ops_array *root_computes(ops_array *root)
{
    if (root->state != OPS_NODE_DEFERRED || ops_node_is_placed(root)) {
        return NULL;
    }
    if (root->operation != OPS_OPERATION_UPDATE) {
        return ops_node_is_elementwise(root) ? root : NULL;
    }
    ops_array *value = root->operands[1];
    return ops_node_update_covers(root) && ops_node_is_elementwise(value) && !value->is_reordered &&
                   !root->is_reordered && ops_node_has_shape_of(root, value)
               ? value
               : NULL;
}

/* Plans a root. Computes first what its cluster reads, as far as that does not become an anchor, up
 * to another root, which may be joined itself. *is_ready: the root can be a member. */
static hal_status root_plan(join *j, ops_array *root, const ops_compute *compute,
                            ops_fusion_plan *plan, bool *is_ready)
{
    ops_array *first = NULL;
    hal_status status = HAL_OK;
    *is_ready = false;
    while (status == HAL_OK && root->state == OPS_NODE_DEFERRED) {
        first = ops_fusion_plan_make(plan, root, true, NULL);
        if (!first || first == root || plan->anchor || plan->rows ||
            (first->join_marks & MARK_ROOT)) {
            *is_ready = !first && !plan->anchor && !plan->rows;
            break;
        }
        status = compute->node(compute, first, NULL, 0);
        j->has_computed = true;
    }
    return status;
}

/* How a leaf is read by segments: 1 as one element, 0 as the root is; -1: not by segments. */
static int leaf_kind(const ops_array *leaf, const ops_array *root)
{
    const ops_tensor *x = &leaf->view;
    bool is_scalar = leaf->state == OPS_NODE_MEMORY;
    for (uint32_t i = 0; i < x->rank; i++) {
        is_scalar = is_scalar && (x->stride[i] == 0 || x->shape[i] == 1);
    }
    if (leaf->state != OPS_NODE_MEMORY || leaf->in_host_memory ||
        hal_buffer_get_bytes(x->buffer) > ops_segments_largest_buffer(leaf->owner->context)) {
        return -1;
    }
    if (ops_node_has_shape_of(leaf, root) && ops_same_strides(x, &root->view)) {
        return 0;
    }
    return is_scalar ? 1 : -1;
}

/* Fills in a member's inputs and the form of its expression. False where segments cannot be. */
static bool member_describe(member *m, const ops_fusion_plan *plan, form_key *f)
{
    const ops_fusion_cluster *cluster = &plan->epilogue;
    const ops_array *root = plan->roots[0];
    ops_cache_key key = {.size = 0};
    m->segment.elements = ops_tensor_get_element_count(&root->view);
    m->input_count = (uint8_t)cluster->leaf_count;
    m->output_count = (uint8_t)cluster->output_count;
    f->scalars = 0;
    bool fits = cluster->frame_count == 1 && !root->is_reordered && m->segment.elements > 0;
    for (uint32_t i = 0; fits && i < cluster->leaf_count; i++) {
        const ops_array *leaf = cluster->leaves[i];
        const int kind = leaf_kind(leaf, root);
        f->scalars |= (uint32_t)(kind == 1) << i;
        f->types[i] = leaf->view.type;
        m->leaves[i] = cluster->leaves[i];
        m->segment.views[i] = (ops_segment_view){leaf->view.buffer, leaf->view.offset};
        /* Kernels keep no BOOL in shared memory. */
        fits = kind == 1 || (kind == 0 && leaf->view.type != HAL_TYPE_BOOL);
    }
    for (uint32_t i = 0; fits && i < cluster->output_count; i++) {
        const ops_array *output = cluster->nodes[cluster->outputs[i]];
        const hal_type type = output->view.type;
        f->types[cluster->leaf_count + i] = type;
        m->outputs[i] = cluster->outputs[i];
        fits = !output->is_reordered &&
               (uint64_t)m->segment.elements * hal_type_size(type) <= MAX_RESULT_BYTES;
    }
    if (fits) {
        ops_fusion_cluster_append_key(cluster, &key);
        ops_cache_key_append(&key, &f->scalars, sizeof f->scalars);
        ops_cache_key_append(&key, f->types,
                             (cluster->leaf_count + cluster->output_count) * sizeof *f->types);
        ops_cache_key_hash(&key, f->hash);
    }
    return fits;
}

/* Chooses leaves in shared buffers whose elements the outputs can take. */
static void member_choose_donors(member *m, const ops_fusion_cluster *cluster)
{
    const bool is_possible = ops_donation_is_possible(cluster);
    uint32_t taken = 0;
    for (uint32_t i = 0; i < cluster->output_count; i++) {
        uint32_t leaf = is_possible ? 0 : cluster->leaf_count;
        while (leaf < cluster->leaf_count &&
               ((taken >> leaf & 1) || !cluster->leaves[leaf]->shares_buffer ||
                !ops_donation_is_free(cluster, leaf, i))) {
            leaf++;
        }
        const bool is_found = leaf < cluster->leaf_count;
        m->donors[i] = is_found ? (uint8_t)(leaf + 1) : 0;
        taken |= (uint32_t)is_found << leaf;
    }
}

/* The number of a form, which is added where it is new. */
static hal_status join_find_form(join *j, const form_key *f, const ops_fusion_cluster *cluster,
                                 uint32_t *number)
{
    uint32_t i = 0;
    while (i < j->form_count && memcmp(j->forms[i]->key.hash, f->hash, sizeof f->hash) != 0) {
        i++;
    }
    *number = i;
    if (i < j->form_count) {
        return HAL_OK;
    }
    j->forms[i] = malloc(sizeof(form));
    if (!j->forms[i]) {
        return report_no_memory();
    }
    j->forms[i]->key = *f;
    j->forms[i]->cluster = *cluster;
    j->form_count++;
    return HAL_OK;
}

static hal_status join_add_nodes(join *j, member *m, const ops_fusion_cluster *cluster)
{
    if (j->node_count + cluster->node_count > j->node_capacity) {
        const uint32_t wanted = 2 * j->node_capacity + OPS_CLUSTER_OPERATIONS;
        ops_array **nodes = realloc(j->nodes, wanted * sizeof *nodes);
        if (!nodes) {
            return report_no_memory();
        }
        j->nodes = nodes;
        j->node_capacity = wanted;
    }
    m->first_node = j->node_count;
    m->node_count = cluster->node_count;
    memcpy(j->nodes + j->node_count, cluster->nodes, cluster->node_count * sizeof *j->nodes);
    j->node_count += cluster->node_count;
    return HAL_OK;
}

/* Adds a root as a member, if segments can compute its plan. */
static hal_status join_add(join *j, ops_array *root, const ops_fusion_plan *plan)
{
    form_key f;
    member *m = &j->members[j->member_count];
    *m = (member){.root = root};
    if (!member_describe(m, plan, &f)) {
        return HAL_OK;
    }
    HAL_TRY(join_find_form(j, &f, &plan->epilogue, &m->form));
    HAL_TRY(join_add_nodes(j, m, &plan->epilogue));
    member_choose_donors(m, &plan->epilogue);
    j->member_count++;
    for (uint32_t i = 0; i < m->node_count; i++) {
        ops_array *node = j->nodes[m->first_node + i];
        node->join_marks |= node == root ? 0 : MARK_INNER;
    }
    return HAL_OK;
}

/* Whether a member is kept: its root is no part of another cluster, which would store it, and no
 * other member stores its results. */
static bool member_claim(const join *j, const member *m)
{
    bool is_free = !(m->root->join_marks & MARK_INNER);
    for (uint32_t i = 0; i < m->output_count; i++) {
        is_free = is_free && !(j->nodes[m->first_node + m->outputs[i]]->join_marks & MARK_STORED);
    }
    for (uint32_t i = 0; is_free && i < m->output_count; i++) {
        j->nodes[m->first_node + m->outputs[i]]->join_marks |= MARK_STORED;
    }
    return is_free;
}

/* By form, then the largest first: the first segments get bindings of their own. */
static int compare_members(const void *a, const void *b)
{
    const member *x = a, *y = b;
    if (x->form != y->form) {
        return x->form < y->form ? -1 : 1;
    }
    if (x->segment.elements != y->segment.elements) {
        return x->segment.elements > y->segment.elements ? -1 : 1;
    }
    return x->first_node < y->first_node ? -1 : x->first_node > y->first_node;
}

/* Marks what is computed for the roots, or removes that mark. */
static void roots_mark(ops_array *const *roots, uint32_t count, bool is_root)
{
    for (uint32_t i = 0; i < count; i++) {
        ops_array *node = root_computes(roots[i]);
        if (node) {
            node->join_marks &= (uint8_t)~MARK_ROOT;
            node->join_marks |= is_root ? MARK_ROOT : 0;
        }
    }
}

/* Begins a gathering, and forgets another one. */
static void join_reset(join *j)
{
    for (uint32_t i = 0; i < j->form_count; i++) {
        free(j->forms[i]);
    }
    for (uint32_t i = 0; i < j->node_count; i++) {
        j->nodes[i]->join_marks = 0;
    }
    j->member_count = j->form_count = j->node_count = 0;
    j->has_computed = false;
}

/* Adds the roots that can be members. A root that another member computes would be no member. */
static hal_status join_add_roots(join *j, ops_array *const *roots, uint32_t count,
                                 const ops_compute *compute)
{
    ops_fusion_plan plan; /* large, and filled in as far as it is used */
    hal_status status = HAL_OK;
    roots_mark(roots, count, true);
    for (uint32_t i = 0; i < count && status == HAL_OK; i++) {
        ops_array *node = root_computes(roots[i]);
        if (!node || node->join_marks & MARK_INNER) {
            continue;
        }
        bool is_ready;
        status = root_plan(j, node, compute, &plan, &is_ready);
        if (status == HAL_OK && is_ready && !j->has_computed) {
            status = join_add(j, node, &plan);
        }
    }
    roots_mark(roots, count, false);
    return status;
}

/* Gathers members. What is computed for one root may be a part of members before it: then all are
 * gathered once more. */
static hal_status join_gather(join *j, ops_array *const *roots, uint32_t count,
                              const ops_compute *compute)
{
    hal_status status;
    do {
        join_reset(j);
        status = join_add_roots(j, roots, count, compute);
    } while (status == HAL_OK && j->has_computed);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < j->member_count && status == HAL_OK; i++) {
        if (member_claim(j, &j->members[i])) {
            j->members[kept++] = j->members[i];
        }
    }
    j->member_count = kept;
    for (uint32_t i = 0; i < j->node_count; i++) {
        j->nodes[i]->join_marks = 0;
    }
    j->node_count = 0; /* of those, some end while the members are computed */
    qsort(j->members, kept, sizeof *j->members, compare_members);
    return status;
}

/* ---- Execution ---- */

static hal_status form_make(const void *user, ops_expression **expression)
{
    const form *f = user;
    return ops_fusion_cluster_make_expression(&f->cluster, 0, 1, expression);
}

/* The buffer that results of a type share. */
typedef struct shared_buffer {
    hal_type type;
    hal_buffer *buffer;
    uint64_t bytes; /* that are used */
} shared_buffer;

typedef struct shared_buffers {
    shared_buffer of_type[OPS_MAX_OUTPUTS];
    uint32_t count;
} shared_buffers;

static shared_buffer *buffers_find(shared_buffers *s, hal_type type)
{
    uint32_t i = 0;
    while (i < s->count && s->of_type[i].type != type) {
        i++;
    }
    if (i == s->count) {
        s->of_type[s->count++] = (shared_buffer){.type = type};
    }
    return &s->of_type[i];
}

static void buffers_release(shared_buffers *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        hal_buffer_release(s->of_type[i].buffer);
    }
}

/* Gives the results of members their places, as many members as buffers have room for. Returns the
 * number of members. */
static uint32_t buffers_place(shared_buffers *s, const form *f, member *members, uint32_t count)
{
    const uint64_t most = ops_segments_largest_buffer(members[0].root->owner->context);
    uint32_t taken = 0;
    bool fits = true;
    for (; taken < count && fits; taken += fits) {
        member *m = &members[taken];
        for (uint32_t i = 0; i < m->output_count && fits; i++) {
            const hal_type type = f->key.types[m->input_count + i];
            const uint64_t size = hal_type_size(type);
            shared_buffer *at = buffers_find(s, type);
            const uint64_t end = at->bytes + (uint64_t)m->segment.elements * size;
            m->segment.views[m->input_count + i].offset = (int64_t)(at->bytes / size);
            fits = end <= most;
            at->bytes =
                fits ? (end + RESULT_ALIGNMENT - 1) & ~(uint64_t)(RESULT_ALIGNMENT - 1) : at->bytes;
        }
    }
    return taken;
}

static hal_status buffers_create(shared_buffers *s, const form *f, member *members, uint32_t count)
{
    hal_device *device = members[0].root->owner->context->device;
    for (uint32_t i = 0; i < s->count; i++) {
        HAL_TRY(hal_buffer_create(device, HAL_MEMORY_DEVICE, s->of_type[i].bytes,
                                  &s->of_type[i].buffer));
    }
    for (uint32_t k = 0; k < count; k++) {
        for (uint32_t i = 0; i < members[k].output_count; i++) {
            const uint32_t view = members[k].input_count + i;
            members[k].segment.views[view].buffer = buffers_find(s, f->key.types[view])->buffer;
        }
    }
    return HAL_OK;
}

/* ---- Results in the memory of operands ---- */

/* Whether a member's outputs take elements of leaves in `buffer`, and it reads that buffer where
 * `like` does: a kernel has one binding for it. */
static bool member_is_donated(const member *m, const member *like, const hal_buffer *buffer)
{
    bool is_donated = true;
    for (uint32_t i = 0; i < m->output_count && is_donated; i++) {
        is_donated = m->donors[i] && m->segment.views[m->donors[i] - 1].buffer == buffer;
    }
    for (uint32_t i = 0; i < m->input_count && is_donated; i++) {
        is_donated =
            (m->segment.views[i].buffer == buffer) == (like->segment.views[i].buffer == buffer);
    }
    return is_donated;
}

/* Whether nothing has a reference to a buffer but `count` nodes. */
static bool buffer_is_of_nodes(hal_buffer *buffer, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        hal_buffer_release(buffer);
    }
    const bool is_of_nodes = !hal_buffer_is_shared(buffer);
    for (uint32_t i = 1; i < count; i++) {
        hal_buffer_retain(buffer);
    }
    return is_of_nodes;
}

/* Gives the results of the first members the elements of their donors, if those are all that a
 * buffer has: what one kernel has stored, and equal members replace. Returns the number of members.
 */
static uint32_t members_take_donors(const form *f, member *members, uint32_t count)
{
    hal_buffer *buffer =
        members->donors[0] ? members->segment.views[members->donors[0] - 1].buffer : NULL;
    const hal_type type = f->key.types[members->input_count];
    uint32_t taken = 0, outputs = 0;
    while (buffer && taken < count && member_is_donated(&members[taken], members, buffer)) {
        outputs += members[taken++].output_count;
    }
    for (uint32_t i = 0; i < members->input_count && taken; i++) { /* a binding has one type */
        taken = members->segment.views[i].buffer != buffer || f->key.types[i] == type ? taken : 0;
    }
    if (taken < OPS_HORIZONTAL_LEAST || !buffer_is_of_nodes(buffer, outputs)) {
        return 0;
    }
    for (uint32_t k = 0; k < taken; k++) {
        member *m = &members[k];
        for (uint32_t i = 0; i < m->output_count; i++) {
            m->segment.views[m->input_count + i] = m->segment.views[m->donors[i] - 1];
        }
    }
    return taken;
}

static void node_set_part(ops_array *node, const ops_segment_view *at)
{
    node->in_host_memory = 0;
    node->shares_buffer = 1;
    node->view.offset = at->offset;
    ops_node_set_result(node, hal_buffer_retain(at->buffer));
}

/* Gives what a member stores its memory. */
static void member_set_results(const join *j, const member *m)
{
    ops_array *const *nodes = j->nodes + m->first_node;
    for (uint32_t i = 0; i < m->node_count; i++) {
        nodes[i]->was_computed = 1;
    }
    j->arrays->statistics.evaluated += m->node_count;
    const ops_segment_view *views = &m->segment.views[m->input_count];
    for (uint32_t i = 0; i < m->output_count; i++) {
        node_set_part(nodes[m->outputs[i]], &views[i]);
    }
}

/* Whether joined plans can be recorded after such a failure of one kernel: each by itself. */
static bool is_left_to_others(hal_status status)
{
    return status == HAL_ERROR_UNSUPPORTED || status == HAL_ERROR_OUT_OF_MEMORY;
}

/* Records the kernels of members whose results have memory. */
static hal_status members_record(join *j, form *f, const member *members,
                                 const ops_segment *segments, uint32_t count)
{
    ops_context *context = j->arrays->context;
    ops_segments call = {.name = "joined",
                         .form = f->key.hash,
                         .input_count = members[0].input_count,
                         .output_count = members[0].output_count,
                         .scalars = f->key.scalars,
                         .make = form_make,
                         .user = f};
    memcpy(call.types, f->key.types, sizeof call.types);
    for (uint32_t i = 0; i < count;) {
        const uint64_t kernels = context->kernels.insertions;
        uint32_t taken;
        call.segments = segments + i;
        call.count = count - i;
        memcpy(f->cluster.nodes, j->nodes + members[i].first_node,
               members[i].node_count * sizeof *f->cluster.nodes);
        memcpy(f->cluster.leaves, members[i].leaves, sizeof members[i].leaves);
        ops_profile_begin_joined(context, f->cluster.nodes, members[i].node_count);
        const hal_status status =
            ops_segments_record(context, &call, &j->arrays->segment_tables, &taken);
        ops_profile_end(context);
        HAL_TRY(status);
        for (uint32_t k = 0; k < taken; k++) {
            member_set_results(j, &members[i + k]);
        }
        j->arrays->statistics.kernels += taken > 0;
        j->arrays->statistics.compiled += taken > 0 && context->kernels.insertions != kernels;
        j->computed += taken;
        i += taken > 0 ? taken : 1;
    }
    return HAL_OK;
}

/* Computes members of one form, as many as the buffers have room for; *taken: how many. */
static hal_status members_compute(join *j, form *f, member *members, uint32_t count,
                                  uint32_t *taken)
{
    shared_buffers s = {.count = 0};
    const uint32_t donated = members_take_donors(f, members, count);
    *taken = donated ? donated : buffers_place(&s, f, members, count);
    ops_segment *segments = malloc((*taken ? *taken : 1) * sizeof *segments);
    hal_status status = !segments            ? report_no_memory()
                        : !*taken || donated ? HAL_OK
                                             : buffers_create(&s, f, members, *taken);
    for (uint32_t k = 0; status == HAL_OK && k < *taken; k++) {
        segments[k] = members[k].segment;
    }
    if (status == HAL_OK && *taken) {
        status = members_record(j, f, members, segments, *taken);
    }
    free(segments);
    buffers_release(&s);
    *taken += *taken == 0;
    return is_left_to_others(status) ? HAL_OK : status;
}

static hal_status join_execute(join *j)
{
    hal_status status = HAL_OK;
    for (uint32_t i = 0, end; i < j->member_count && status == HAL_OK; i = end) {
        end = i;
        while (end < j->member_count && j->members[end].form == j->members[i].form) {
            end++;
        }
        for (uint32_t taken; end - i >= OPS_HORIZONTAL_LEAST && i < end && status == HAL_OK;
             i += taken) {
            status =
                members_compute(j, j->forms[j->members[i].form], &j->members[i], end - i, &taken);
        }
    }
    return status;
}

/* Makes an update of all elements the memory of its value, if that was joined. */
static void update_set_value(ops_array *root)
{
    const ops_array *value = root->operation == OPS_OPERATION_UPDATE ? root->operands[1] : NULL;
    if (root->state == OPS_NODE_DEFERRED && value && value->state == OPS_NODE_MEMORY &&
        value->shares_buffer && ops_node_update_covers(root) &&
        ops_node_has_shape_of(root, value)) {
        const ops_segment_view at = {value->view.buffer, value->view.offset};
        root->was_computed = 1;
        root->owner->statistics.evaluated++;
        node_set_part(root, &at);
    }
}

/* Computes those roots that can be joined, and what they read. *computed: how many plans. */
static hal_status roots_join(ops_array *const *roots, uint32_t count, const ops_compute *compute,
                             uint32_t *computed)
{
    join j = {.arrays = roots[0]->owner,
              .members = malloc(count * sizeof *j.members),
              .forms = malloc(count * sizeof(form *))};
    hal_status status = j.members && j.forms ? HAL_OK : report_no_memory();
    if (status == HAL_OK) {
        status = join_gather(&j, roots, count, compute);
    }
    if (status == HAL_OK) {
        status = join_execute(&j);
    }
    for (uint32_t i = 0; i < count; i++) {
        update_set_value(roots[i]);
    }
    join_reset(&j);
    free(j.members);
    free(j.forms);
    free(j.nodes);
    *computed = j.computed;
    return status;
}

hal_status ops_horizontal_execute(ops_array *const *roots, uint32_t count,
                                  const ops_compute *compute)
{
    uint32_t computed = 1;
    hal_status status = HAL_OK;
    while (status == HAL_OK && computed > 0) { /* then those that are computed of these */
        status = roots_join(roots, count, compute, &computed);
    }
    return status;
}

/* ---- Shared buffers ---- */

hal_status ops_node_unshare_buffer(ops_array *array)
{
    if (array->state != OPS_NODE_MEMORY || !array->shares_buffer) {
        return HAL_OK;
    }
    ops_context *context = array->owner->context;
    ops_tensor own = ops_row_major(&array->view);
    const uint64_t bytes = (uint64_t)ops_tensor_get_element_count(&own) * hal_type_size(own.type);
    HAL_TRY(hal_buffer_create(context->device, HAL_MEMORY_DEVICE, bytes, &own.buffer));
    const hal_status status = ops_copy(context, &array->view, &own);
    if (status != HAL_OK) {
        hal_buffer_release(own.buffer);
        return status;
    }
    hal_buffer_release(array->view.buffer);
    ops_node_set_view(array, &own);
    array->batch = ops_arrays_batch(array->owner);
    array->shares_buffer = 0;
    return HAL_OK;
}

hal_status ops_arrays_unshare_buffers(ops_arrays *arrays)
{
    hal_status status = HAL_OK;
    for (ops_slab *block = arrays->slabs; block; block = block->next) {
        for (uint32_t i = 0; i < OPS_SLAB_NODES && status == HAL_OK; i++) {
            status = ops_node_unshare_buffer(&block->nodes[i]);
        }
    }
    return status;
}
