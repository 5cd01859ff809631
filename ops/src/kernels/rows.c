/* The plan of one kernel of rows and its dispatch, see rows.h. */
#include "rows.h"

#include "rows_kernel.h"

#include "tensor/context.h"
#include "tensor/dispatch.h"
#include "tensor/kernel_cache.h"

#include <string.h>

/* Bytes that the alignment of shared arrays takes. */
#define CACHE_ALIGNMENT 512

/* Work-items of a group of a class, and those along the axis from which it has one row. */
#define GENERAL_ITEMS 256u
#define GENERAL_ALONG 64u

/* Work-items of one across outputs, where these are a processor's lanes. */
#define GENERAL_ACROSS 64u

/* Whether every chunk of a view starts at a multiple of the chunk's size. */
static bool view_is_vector(const ops_row_pass *pass, uint32_t view)
{
    const uint32_t width = pass->group.width, slot = pass->slots[view];
    const uint64_t start =
        pass->bindings.ranges[slot].offset / hal_type_size(pass->bindings.types[slot]);
    bool fits = width > 1 && pass->axis.step[view] == OPS_INNER_ONE &&
                pass->space.base[view] % width == 0 && start % width == 0;
    for (uint32_t i = 0; fits && i < pass->space.rank; i++) {
        fits = pass->space.stride[view][i] % width == 0;
    }
    return fits;
}

/* Whether memory may hold the costly value from its first loop to the last one. */
static bool may_store_costly(const ops_context *context, const ops_row_pass *pass)
{
    const ops_row_program *program = pass->program;
    const ops_row_schedule *schedule = &pass->schedule;
    const uint32_t value = program->costly;
    return value != OPS_ROW_NONE && context->tuning->rows.stores_costly && !pass->form.chunks &&
           !pass->form.is_sliced && program->output_count == 1 && schedule->is_element[value] &&
           schedule->first_need[value] < schedule->last &&
           pass->axis.step[program->input_count] != OPS_INNER_ZERO;
}

/* Whether the output's memory holds it. */
static bool stores_costly(const ops_context *context, const ops_row_pass *pass)
{
    const ops_row_program *program = pass->program;
    const uint32_t view = program->input_count, slot = pass->slots[view];
    if (!may_store_costly(context, pass) || pass->bindings.types[slot] != program->costly_type) {
        return false;
    }
    for (uint32_t i = 0; i < view; i++) {
        if (pass->slots[i] == slot) {
            return false;
        }
    }
    return true;
}

/* Whether an input has the memory of an output. */
static bool outputs_are_read(const ops_row_pass *pass)
{
    const uint32_t inputs = pass->program->input_count;
    for (uint32_t i = 0; i < inputs * pass->program->output_count; i++) {
        if (pass->slots[i % inputs] == pass->slots[inputs + i / inputs]) {
            return true;
        }
    }
    return false;
}

/* Bytes of shared memory of the reductions, at most. */
static uint64_t reductions_bytes(const ops_row_pass *pass)
{
    const ops_row_program *program = pass->program;
    const uint64_t items = (uint64_t)pass->group.outputs * pass->group.along;
    uint64_t bytes = 0;
    for (uint32_t v = program->input_count; v < program->value_count; v++) {
        const ops_row_step *step = ops_row_step_of(program, v);
        if (ops_row_is_reduction(step)) {
            bytes += items * hal_type_size(step->type) * (ops_fold_has_place(step->kind) ? 2 : 1);
        }
    }
    return bytes;
}

/* Marks the inputs that more than one loop reads, except those of single bytes. Returns the bytes
 * of an element of them all. */
static uint64_t mark_repeated(const ops_row_pass *pass, uint8_t *is_repeated)
{
    const ops_row_program *program = pass->program;
    const ops_row_schedule *schedule = &pass->schedule;
    uint8_t needed[OPS_ROW_VALUES];
    uint64_t bytes = 0;
    for (uint32_t phase = 1; phase <= schedule->last; phase++) {
        ops_row_needs(program, schedule, phase, &pass->axis, 0, needed);
        for (uint32_t v = 0; v < program->input_count; v++) {
            const uint32_t size = hal_type_size(pass->bindings.types[pass->slots[v]]);
            if (needed[v] && schedule->first_need[v] < phase && !is_repeated[v] && size > 1) {
                is_repeated[v] = 1;
                bytes += size;
            }
        }
    }
    return bytes;
}

/* Inputs that more than one loop reads stay in shared memory after the first one, if all of them
 * fit. Its room for a row is a multiple of more elements for longer rows, so that lengths share
 * kernels. */
static void choose_cache(const ops_context *context, ops_row_pass *pass)
{
    const uint64_t shared = context->info->shared_bytes, length = (uint64_t)pass->axis.length;
    const ops_rows_tuning *tuning = &context->tuning->rows;
    uint8_t is_repeated[OPS_MAX_VIEWS] = {0};
    if (tuning->cache_step == 0 || pass->form.chunks || pass->form.is_sliced) {
        return;
    }
    const uint64_t bytes = mark_repeated(pass, is_repeated);
    const uint64_t taken = reductions_bytes(pass) + CACHE_ALIGNMENT + OPS_ROW_PART * bytes;
    if (bytes == 0 || taken >= shared) {
        return;
    }
    const uint64_t room =
        (shared - taken) / (bytes * pass->group.outputs) / tuning->cache_step * tuning->cache_step;
    uint64_t step = tuning->cache_step;
    while (step * tuning->cache_steps < length) {
        step *= 2;
    }
    const uint64_t wanted = (length + step - 1) / step * step;
    if (room >= length) {
        memcpy(pass->form.is_cached, is_repeated, sizeof is_repeated);
        pass->form.cached_length = (uint32_t)(wanted < room ? wanted : room);
    }
}

/* With few work-items on a compute unit, more loads at once: the order of additions has no part in
 * that except for blocks of steps. Programs with two values for a state lack the registers. */
static void choose_unroll(const ops_context *context, ops_row_pass *pass)
{
    ops_reduce_layout *group = &pass->group;
    const int64_t elements = ops_reduce_layout_chunks(group, pass->axis.length) * group->width;
    if (pass->form.cached_length && group->axis_first && !group->blocks &&
        elements >= context->tuning->rows.min_cached_loads &&
        !ops_row_program_has(pass->program, OPS_FOLD_SOFTMAX) &&
        !ops_row_program_finds_place(pass->program)) {
        group->unroll *= 2;
    }
}

/* Whether steps of the last loop begin at whole parts of the first output's memory, because its
 * rows, by their strides, do not: a GPU's stores of parts of sectors take twice the time. Where the
 * first row begins is not looked at. */
static void choose_parts(const ops_context *context, ops_row_pass *pass)
{
    const uint32_t view = pass->program->input_count;
    const ops_space *space = &pass->space;
    bool are_ragged = false;
    for (uint32_t i = 0; i < space->rank; i++) {
        are_ragged |= space->size[i] > 1 && space->stride[view][i] % OPS_ROW_PART != 0;
    }
    if (are_ragged && context->tuning->rows.stores_by_parts && pass->group.axis_first &&
        !pass->form.chunks && pass->schedule.stores_elements && !pass->layout.index64 &&
        pass->axis.step[view] == OPS_INNER_ONE) {
        pass->form.parts = (uint8_t)(view + 1);
    }
}

static void choose_form(const ops_context *context, const ops_row_call *call, ops_row_pass *pass)
{
    const ops_rows_tuning *tuning = &context->tuning->rows;
    const ops_reduce_layout *group = &pass->group;
    const int64_t length = pass->axis.length;
    const int64_t chunks = ops_reduce_layout_chunks(group, length);
    const uint32_t views = pass->space.view_count;
    uint32_t words = 1; /* of a value */
    for (uint32_t view = 0; view < views; view++) {
        pass->form.is_vector[view] = (uint8_t)view_is_vector(pass, view);
        words = hal_type_size(pass->bindings.types[pass->slots[view]]) > 4 ? 2 : words;
    }
    pass->form.rest_by_chunks = tuning->rest_by_chunks;
    pass->form.all_store = tuning->all_items_store && group->axis_first && !outputs_are_read(pass);
    pass->form.is_sliced = call->layout->slices > 1;
    if (ops_row_layout_keeps(context, call->layout, length, words * pass->schedule.live)) {
        pass->form.chunks = (uint8_t)chunks;
    }
    choose_cache(context, pass);
    choose_unroll(context, pass);
    choose_parts(context, pass);
    const int64_t step =
        (int64_t)group->along * group->width * (pass->form.chunks ? chunks : group->unroll);
    pass->form.is_exact = length % step == 0 && !pass->form.is_sliced;
    /* On a GPU, fewer loads at once leave registers for the indices of the stores. */
    pass->form.last_unroll =
        (uint8_t)(group->unroll > 1 && !pass->form.rest_by_chunks ? group->unroll / 2
                                                                  : group->unroll);
    /* Their number is chosen for as many. Values of two words, or with their places, leave no
     * registers for all of them. */
    if (pass->form.is_sliced && !pass->form.rest_by_chunks) {
        const uint32_t items = words > 1 || ops_row_program_finds_place(pass->program)
                                   ? tuning->full_items / 2
                                   : tuning->full_items;
        const uint32_t groups = items / (group->outputs * group->along);
        pass->form.full_groups =
            (uint8_t)(groups < tuning->max_groups ? groups : tuning->max_groups);
    }
    pass->form.ends_backwards = !pass->form.chunks && !pass->form.rest_by_chunks &&
                                pass->schedule.stores_elements &&
                                (pass->schedule.last > 0 || pass->form.is_sliced);
    if (stores_costly(context, pass)) {
        pass->form.stored = (uint8_t)(pass->program->costly + 1);
        pass->bindings.access[pass->slots[pass->program->input_count]] |= HAL_ACCESS_READ;
    }
}

/* Whether all that a kernel does is to fold single values of elements once. */
static bool folds_once(const ops_row_pass *pass)
{
    const ops_row_program *program = pass->program;
    bool folds = pass->schedule.last == 1 && !pass->schedule.stores_elements;
    for (uint32_t v = program->input_count; v < program->value_count; v++) {
        const ops_row_step *step = ops_row_step_of(program, v);
        folds &= !ops_row_is_reduction(step) || !ops_fold_has_place(step->kind);
    }
    return folds;
}

/* Several rows for a group where they keep nothing, so that the work of a group and of the
 * steps of a loop is for all of them. The order of additions stays. */
static void share_rows(const ops_context *context, ops_row_pass *pass)
{
    const hal_device_info *info = context->info;
    const ops_rows_tuning *tuning = &context->tuning->rows;
    ops_reduce_layout *group = &pass->group;
    if (!group->axis_first || group->outputs > 1 || group->along > tuning->shared_items / 4 ||
        !folds_once(pass)) {
        return;
    }
    const uint64_t rows = (uint64_t)ops_space_elements(&pass->space);
    const uint64_t busy = (uint64_t)info->compute_units * tuning->shared_groups;
    const uint32_t most =
        info->max_group_items < tuning->shared_items ? info->max_group_items : tuning->shared_items;
    while (2 * group->outputs * group->along <= most &&
           2 * group->outputs <= info->max_group_size[1] && 2 * group->outputs * busy <= rows) {
        group->outputs *= 2;
    }
}

static hal_status bind_tensors(const ops_context *context, const ops_row_call *call,
                               ops_row_pass *pass)
{
    const ops_row_program *program = call->program;
    const uint32_t count = program->input_count + program->output_count;
    uint32_t most = context->info->max_bindings;
    most = most < OPS_MAX_VIEWS ? most : OPS_MAX_VIEWS;
    for (uint32_t i = 0; i < count && !program->overflowed; i++) {
        /* Outputs first, so that an input that is the same view finds its binding. */
        const bool is_output = i < program->output_count;
        const uint32_t view = is_output ? program->input_count + i : i - program->output_count;
        uint32_t slot = view >= OPS_MAX_VIEWS
                            ? HAL_IR_MAX_BINDINGS
                            : ops_bind(context, &pass->bindings, &call->tensors[view],
                                       is_output ? HAL_ACCESS_WRITE : HAL_ACCESS_READ);
        if (slot >= context->info->max_bindings) {
            return hal_status_set(HAL_ERROR_UNSUPPORTED,
                                  "%s: options: expected at most %u tensors, which %s binds, "
                                  "got %u",
                                  call->function, most, context->info->name, count);
        }
        pass->slots[view] = (uint8_t)slot;
    }
    return program->overflowed
               ? hal_status_set(HAL_ERROR_UNSUPPORTED,
                                "%s: options: expected at most %u operations and inputs",
                                call->function, OPS_ROW_VALUES)
               : HAL_OK;
}

/* The group is chosen by the shape of the operand, so that work before and after it changes no
 * order of additions. Where inputs are broadcast, the outputs may be one dimension nevertheless. */
static void flatten_group(const ops_space *space, ops_reduce_layout *group)
{
    if (space->rank == 1) {
        group->outputs *= group->layers;
        group->layers = 1;
        group->rows = 0;
    }
}

static uint32_t logarithm(uint32_t power)
{
    return (uint32_t)__builtin_ctz(power);
}

/* Scalars of the layout that are not the space's: strides of the axis, and as in rows_any.c. */
static uint32_t reserved_bytes(const ops_row_pass *pass)
{
    const ops_row_program *program = pass->program;
    uint32_t means = 0;
    for (uint32_t v = program->input_count; v < program->value_count; v++) {
        means += ops_row_step_of(program, v)->kind == OPS_REDUCE_MEAN;
    }
    return (program->input_count + program->output_count) * 8 + 32 + 8 * means;
}

/* Which lanes of a vector have neighbours in memory, by the text of a general kernel: work-items
 * along the axis, or those of outputs side by side, each of which has the axis for itself. */
typedef enum general_lanes { LANES_ANYWHERE, LANES_ALONG, LANES_ACROSS } general_lanes;

static general_lanes general_lanes_of(const ops_context *context, const ops_row_pass *pass)
{
    const ops_space *space = &pass->space;
    bool has_lines = space->size[space->rank - 1] >= context->tuning->fold.vector_items;
    for (uint32_t view = 0; view < space->view_count; view++) {
        has_lines &= pass->layout.inner[view] != OPS_INNER_ANY;
    }
    if (!ops_has_lane_vectors(context) || ops_row_program_has(pass->program, OPS_FOLD_SOFTMAX)) {
        return LANES_ANYWHERE;
    }
    return pass->group.axis_first                ? LANES_ALONG
           : pass->group.along == 1 && has_lines ? LANES_ACROSS
                                                 : LANES_ANYWHERE;
}

/* Chunks take turns at as many accumulators as the class has, or one has them all. */
static void generalise_chains(const ops_context *context, ops_row_pass *pass)
{
    ops_reduce_layout *group = &pass->group;
    pass->any.turns = group->chains - 1;
    pass->form.takes_turns = ops_has_lane_vectors(context);
    if (pass->form.takes_turns) {
        group->chains = group->unroll = context->tuning->fold.max_chains;
    }
}

/* Chooses the kernel of neighbours. Work-items along the axis are compiled in, as many as a group
 * has for rows of its length; a short row has other rows in its group. */
static bool choose_lanes(const ops_context *context, ops_row_pass *pass)
{
    ops_reduce_layout *group = &pass->group;
    const general_lanes lanes = general_lanes_of(context, pass);
    const bool is_short = group->along == context->tuning->fold.vector_items;
    const uint32_t items = is_short ? GENERAL_ITEMS : GENERAL_ITEMS / 2;
    if (lanes == LANES_ANYWHERE) {
        return false;
    }
    if (lanes == LANES_ALONG) {
        group->outputs = group->along < items ? items / group->along : 1;
    } else {
        group->outputs = GENERAL_ACROSS;
    }
    generalise_chains(context, pass);
    ops_layout_generalise(reserved_bytes(pass) + 4, lanes == LANES_ALONG ? 1 : 4,
                          lanes == LANES_ACROSS, &pass->space, &pass->layout);
    group->rows = lanes == LANES_ACROSS && pass->layout.rank > 1;
    return true;
}

/* Views that are contiguous along the axis have a scalar stride as well. */
static void generalise_strides(const ops_context *context, ops_row_pass *pass)
{
    const uint32_t few = ops_has_lane_vectors(context) ? 4 : 2;
    for (uint32_t view = 0; view < pass->layout.view_count; view++) {
        uint8_t *step = &pass->axis.step[view];
        *step = *step == OPS_INNER_ONE ? OPS_INNER_ANY : *step;
    }
    ops_layout_generalise(reserved_bytes(pass) + OPS_ROW_ANY_SCALARS * 4, few, false, &pass->space,
                          &pass->layout);
}

/* Chooses the kernel for any layout, if the group is large enough for this one. The sums of softmax
 * go by batches, whose sizes are compiled in. Compilers that make vectors of work-items take
 * minutes for barriers inside of loops. */
static bool choose_any(const ops_context *context, ops_row_pass *pass)
{
    const hal_device_info *info = context->info;
    ops_reduce_layout *group = &pass->group;
    uint32_t items = GENERAL_ITEMS;
    while (items > info->max_group_items || items > info->max_group_size[0]) {
        items /= 2;
    }
    const uint32_t outputs = group->outputs;
    group->outputs = items / group->along;
    const bool is_straight = info->item_vector_bytes > 0;
    if ((is_straight && group->subgroup > 0) || group->along > items ||
        ops_row_program_has(pass->program, OPS_FOLD_SOFTMAX) ||
        reductions_bytes(pass) + CACHE_ALIGNMENT > info->shared_bytes) {
        group->outputs = outputs;
        return false;
    }
    generalise_strides(context, pass);
    const uint32_t along = logarithm(group->along);
    const uint32_t subgroup = group->subgroup ? logarithm(group->subgroup) : 0;
    pass->form.any = is_straight                            ? OPS_ROW_ANY_STRAIGHT
                     : context->tuning->rows.rotates_chains ? OPS_ROW_ANY_ROTATING
                                                            : OPS_ROW_ANY_LOOPS;
    pass->any = (ops_row_any){
        .items = items,
        .along = along,
        .width = logarithm(group->width),
        .q = group->axis_first ? 0 : logarithm(group->outputs),
        .p = group->axis_first ? along : 0,
        .turn = logarithm(group->unroll * group->width),
        .block = group->blocks * group->unroll * group->width,
        .pairs = subgroup,
        .halves = subgroup ? 0 : along,
        .subgroups = subgroup ? group->along >> subgroup : 1,
    };
    generalise_chains(context, pass);
    return true;
}

/* Makes a pass one of its class: a group of as many work-items for any number of rows, loops for
 * any length, vectors in all views or in none. Work-items along the axis, width, chains and blocks
 * decide the order of additions, and stay. */
static void pass_generalise(const ops_context *context, ops_row_pass *pass)
{
    const hal_device_info *info = context->info;
    ops_reduce_layout *group = &pass->group;
    const uint32_t *limit = info->max_group_size;
    const uint32_t most =
        info->max_group_items < GENERAL_ITEMS ? info->max_group_items : GENERAL_ITEMS;
    group->rows = 0;
    group->layers = 1;
    pass->layout.dense = 0;
    if (choose_lanes(context, pass)) {
        return;
    }
    if (choose_any(context, pass)) {
        return;
    }
    if (!group->axis_first || group->along < GENERAL_ALONG) {
        const uint32_t outputs = most > group->along ? most / group->along : 1;
        group->outputs = outputs < limit[group->axis_first] ? outputs : limit[group->axis_first];
    } else {
        group->outputs = 1;
    }
}

/* What the key of a general kernel has of the group. */
static void group_set_any(ops_reduce_layout *group)
{
    *group = (ops_reduce_layout){.outputs = 1,
                                 .along = 1,
                                 .width = 1,
                                 .chains = group->chains,
                                 .unroll = group->chains,
                                 .blocks = group->blocks > 0,
                                 .layers = 1,
                                 .axis_first = 1};
}

/* What choose_form does for a class. */
static void choose_general_form(const ops_context *context, const ops_row_call *call,
                                ops_row_pass *pass)
{
    const ops_rows_tuning *tuning = &context->tuning->rows;
    bool is_vector = !pass->form.any;
    for (uint32_t view = 0; is_vector && view < pass->space.view_count; view++) {
        pass->form.is_vector[view] = (uint8_t)view_is_vector(pass, view);
        is_vector &= pass->form.is_vector[view] || pass->axis.step[view] != OPS_INNER_ONE;
    }
    if (!is_vector) {
        memset(pass->form.is_vector, 0, sizeof pass->form.is_vector);
    }
    pass->form.rest_by_chunks = tuning->rest_by_chunks;
    pass->form.is_sliced = call->layout->slices > 1;
    pass->form.last_unroll = (uint8_t)(pass->form.any ? 1 : pass->group.unroll);
    const uint32_t room = pass->group.along * context->tuning->fold.kept_chunks;
    if (stores_costly(context, pass)) {
        pass->form.stored = (uint8_t)(pass->program->costly + 1);
        pass->bindings.access[pass->slots[pass->program->input_count]] |= HAL_ACCESS_READ;
    } else if (pass->form.takes_turns && pass->group.axis_first && !pass->form.any &&
               pass->axis.length <= room && may_store_costly(context, pass)) {
        pass->form.stored = (uint8_t)(pass->program->costly + 1);
        pass->form.stored_length = room;
    }
}

/* An axis of one element is one of several for a class: all inputs have it, and the outputs that
 * depend on elements. Its stride is 0. */
static void generalise_length(ops_row_pass *pass)
{
    const ops_row_program *program = pass->program;
    uint8_t is_element[OPS_ROW_VALUES], ready[OPS_ROW_VALUES];
    if (pass->axis.length != 1) {
        return;
    }
    for (uint32_t i = 0; i < program->input_count; i++) {
        pass->axis.step[i] = OPS_INNER_ONE;
        is_element[i] = 1;
    }
    ops_row_order(program, is_element, ready);
    for (uint32_t i = 0; i < program->output_count; i++) {
        pass->axis.step[program->input_count + i] =
            is_element[program->outputs[i]] ? OPS_INNER_ONE : OPS_INNER_ZERO;
    }
}

/* `is_general`: the pass is that of its class, with the same order of additions. */
static hal_status pass_plan(const ops_context *context, const ops_row_call *call,
                            int64_t slice_stride, bool is_general, ops_row_pass *pass)
{
    const ops_row_program *program = call->program;
    const uint32_t count = program->input_count + program->output_count;
    HAL_TRY(bind_tensors(context, call, pass));
    pass->program = program;
    pass->group = call->layout->group;
    pass->slice_length = call->layout->slice_length;
    pass->slice_stride = slice_stride;
    pass->mean_length = call->mean_length;
    ops_space_begin(&pass->space, call->rank, call->shape);
    for (uint32_t i = 0; i < count; i++) {
        ops_space_add(&pass->space, &call->tensors[i],
                      ops_base(&pass->bindings, pass->slots[i], &call->tensors[i]));
    }
    ops_axis_take(&pass->space, call->axis, &pass->axis);
    /* There is nothing to load for the rows of an empty axis. */
    for (uint32_t i = 0; i < program->input_count && pass->axis.length == 0; i++) {
        if (ops_tensor_get_element_count(&call->tensors[i]) == 0) {
            pass->axis.step[i] = OPS_INNER_ONE;
        }
    }
    /* Partial results have the slices along the axis, one for each group. */
    for (uint32_t i = program->input_count; i < count && slice_stride != 0; i++) {
        pass->axis.stride[i] = 0;
        pass->axis.step[i] = OPS_INNER_ZERO;
    }
    if (is_general) {
        generalise_length(pass);
    }
    ops_space_collapse(&pass->space, 0);
    flatten_group(&pass->space, &pass->group);
    ops_layout_choose(context, &pass->space, reserved_bytes(pass),
                      ops_axis_reach(&pass->axis, count), &pass->layout);
    ops_row_schedule_make(program, &pass->axis, &pass->schedule);
    if (is_general) {
        pass_generalise(context, pass);
        choose_general_form(context, call, pass);
        return HAL_OK;
    }
    if (call->layout->slices == 1) {
        share_rows(context, pass);
    }
    choose_form(context, call, pass);
    return HAL_OK;
}

/* Plans the kernel of the shape, or of its class; the rest of the grid is the caller's. */
static hal_status pass_begin(const ops_context *context, const ops_row_call *call,
                             int64_t slice_stride, bool is_general, ops_row_pass *pass,
                             uint32_t grid[3])
{
    pass->bindings.count = 0;
    pass->form = (ops_row_form){.chunks = 0};
    HAL_TRY(pass_plan(context, call, slice_stride, is_general, pass));
    HAL_TRY(ops_reduce_layout_grid(context, call->function, &pass->space, &pass->group, grid));
    pass->group.is_whole &= !is_general;
    if (pass->form.any) {
        group_set_any(&pass->group);
    }
    return HAL_OK;
}

static void pass_append_key(const ops_row_pass *pass, ops_cache_key *key)
{
    const uint32_t count = pass->program->input_count + pass->program->output_count;
    ops_cache_key_begin(key, OPS_FAMILY_ROWS);
    ops_row_program_append_key(pass->program, key);
    ops_cache_key_append(key, &pass->form, sizeof pass->form);
    ops_bindings_key(&pass->bindings, pass->slots, count, key);
    ops_fold_key(&pass->space, &pass->layout, &pass->group, &pass->axis, key);
}

/* Bytes that the general kernel is charged for. */
static uint64_t pass_bytes(const ops_context *context, const ops_row_pass *pass)
{
    const ops_rows_tuning *tuning = &context->tuning->rows;
    const uint64_t rows = (uint64_t)ops_space_elements(&pass->space);
    const uint64_t elements = rows * (uint64_t)pass->axis.length * pass->space.view_count;
    const bool is_apart = pass->group.along == 1 && pass->axis.step[0] == OPS_INNER_ONE;
    if (general_lanes_of(context, pass) != LANES_ANYWHERE) {
        return elements * tuning->general_lanes_bytes + rows * tuning->general_row_bytes;
    }
    return elements * (is_apart && ops_has_lane_vectors(context) ? tuning->general_apart_bytes
                                                                 : tuning->general_bytes);
}

static hal_status pass_record(ops_context *context, const ops_row_call *call, int64_t slice_stride,
                              ops_row_pass *pass)
{
    uint32_t grid[3];
    HAL_TRY(pass_begin(context, call, slice_stride, false, pass, grid));
    if (pass->form.is_sliced) {
        if (pass->group.grid_may_overrun) {
            return hal_status_set(HAL_ERROR_UNSUPPORTED,
                                  "%s: x: expected fewer outputs for slices of an axis of %lld "
                                  "elements on %s",
                                  call->function, (long long)pass->axis.length,
                                  context->info->name);
        }
        grid[2] = call->layout->slices;
    }
    ops_cache_key key;
    ops_entry *entry;
    pass_append_key(pass, &key);
    HAL_TRY(ops_cache_get_special(context, &key, call->name, ops_row_emit, pass,
                                  pass_bytes(context, pass), &entry));
    if (!entry) {
        const uint32_t slices = grid[2];
        HAL_TRY(pass_begin(context, call, slice_stride, true, pass, grid));
        grid[2] = pass->form.is_sliced ? slices : grid[2];
        pass_append_key(pass, &key);
        HAL_TRY(ops_cache_get(context, &key, call->name, ops_row_emit, pass, &entry));
    }
    ops_block block;
    ops_block_begin(&block);
    ops_row_put(pass, &block);
    return ops_dispatch(context, entry, grid, &pass->bindings, &block);
}

hal_status ops_row_kernel_record(ops_context *context, const ops_row_call *call,
                                 int64_t slice_stride)
{
    /* The emitter follows the pass. */
    const size_t emitter_at = (sizeof(ops_row_pass) + 15) / 16 * 16;
    uint8_t *memory =
        ops_scratch_take(&context->scratch, call->function, emitter_at + ops_row_emitter_bytes());
    if (!memory) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    ops_row_pass *pass = (ops_row_pass *)(void *)memory;
    pass->emitter = (ops_row_emitter *)(void *)(memory + emitter_at);
    const hal_status status = pass_record(context, call, slice_stride, pass);
    ops_scratch_return(&context->scratch, memory);
    return status;
}
