/* Row programs: their construction, the choice of group and slices, and the dispatch. */
#include "rows_kernel.h"

#include "tensor/context.h"
#include "tensor/dispatch.h"
#include "tensor/expression.h"
#include "tensor/loop_limit.h"

#include <string.h>

_Static_assert(OPS_KEPT_ELEMENTS == OPS_ROW_SLOTS / 2, "rows that groups are chosen for are kept");

/* Bytes that the alignment of shared arrays takes. */
#define CACHE_ALIGNMENT 512

void ops_row_begin(ops_row_program *program, uint32_t input_count)
{
    program->input_count = program->value_count = input_count;
    program->operand_count = program->output_count = 0;
    program->overflowed = input_count >= OPS_ROW_VALUES;
    program->costly = OPS_ROW_NONE;
    program->exponential = OPS_ROW_EXP_FULL;
}

static uint8_t program_add(ops_row_program *p, const ops_row_step *step, const uint8_t *operands,
                           uint32_t count)
{
    if (p->overflowed || p->value_count == OPS_ROW_VALUES ||
        p->operand_count + count > OPS_ROW_OPERANDS) {
        p->overflowed = 1;
        return 0;
    }
    ops_row_step *made = &p->steps[p->value_count - p->input_count];
    *made = *step;
    made->first_operand = (uint16_t)p->operand_count;
    made->operand_count = (uint16_t)count;
    memcpy(p->operands + p->operand_count, operands, count);
    p->operand_count += count;
    return (uint8_t)p->value_count++;
}

uint8_t ops_row_map(ops_row_program *program, ops_row_function function, const void *user,
                    const uint64_t key[2], const uint8_t *operands, uint32_t count)
{
    const ops_row_step step = {
        .kind = OPS_ROW_MAP, .function = function, .user = user, .key = {key[0], key[1]}};
    return program_add(program, &step, operands, count);
}

uint8_t ops_row_reduce(ops_row_program *program, uint32_t kind, hal_type type,
                       const uint8_t *operands, uint32_t count)
{
    const ops_row_step step = {.kind = (uint8_t)kind, .type = type};
    return program_add(program, &step, operands, count);
}

uint8_t ops_row_place(ops_row_program *program, uint8_t reduction)
{
    const ops_row_step step = {.kind = OPS_ROW_PLACE};
    return program_add(program, &step, &reduction, 1);
}

void ops_row_output(ops_row_program *program, uint8_t value)
{
    program->overflowed |= program->output_count == OPS_ROW_OUTPUTS;
    if (!program->overflowed) {
        program->outputs[program->output_count++] = value;
    }
}

void ops_row_keep(ops_row_program *program, uint8_t value, hal_type type)
{
    program->costly = value;
    program->costly_type = type;
}

static hal_ir_value unary_emit(hal_ir_builder *b, const void *user, const hal_ir_value *in)
{
    const uint32_t opcode = (uint32_t)(uintptr_t)user;
    return hal_ir_is_math(opcode) ? hal_ir_math(b, opcode, in[0], HAL_IR_NONE, 0)
                                  : hal_ir_unary(b, opcode, in[0]);
}

static hal_ir_value binary_emit(hal_ir_builder *b, const void *user, const hal_ir_value *in)
{
    return hal_ir_binary(b, (uint32_t)(uintptr_t)user, in[0], in[1]);
}

uint8_t ops_row_opcode(ops_row_program *program, uint32_t opcode, uint8_t x, uint8_t y)
{
    const uint8_t operands[2] = {x, y};
    const bool is_unary = y == OPS_ROW_NONE;
    const uint64_t key[2] = {is_unary ? OPS_ROW_KEY_UNARY : OPS_ROW_KEY_BINARY, opcode};
    return ops_row_map(program, is_unary ? unary_emit : binary_emit,
                       (const void *)(uintptr_t)opcode, key, operands, is_unary ? 1 : 2);
}

static hal_ir_value expression_emit(hal_ir_builder *b, const void *user, const hal_ir_value *in)
{
    const ops_expression *expression = user;
    hal_ir_value result = HAL_IR_NONE;
    hal_ir_splice(b, expression->fragment, in, expression->input_count, &result, 1);
    return result;
}

uint8_t ops_row_expression(ops_row_program *program, const ops_expression *expression,
                           const uint8_t *operands, uint32_t count)
{
    return ops_row_map(program, expression_emit, expression, expression->hash, operands, count);
}

/* A row of nothing but the least value keeps the place of the neutral state: its first element is
 * the greatest. */
static hal_ir_value index_emit(hal_ir_builder *b, const void *user, const hal_ir_value *in)
{
    hal_ir_value none = hal_ir_eq(b, in[0], hal_ir_u32(b, UINT32_MAX));
    hal_ir_value place = hal_ir_select(b, none, hal_ir_u32(b, 0), in[0]);
    return hal_ir_cast(b, (hal_type)(uintptr_t)user, place);
}

uint8_t ops_row_index(ops_row_program *program, hal_type type, uint8_t place)
{
    const uint64_t key[2] = {OPS_ROW_KEY_INDEX, type};
    return ops_row_map(program, index_emit, (const void *)(uintptr_t)type, key, &place, 1);
}

/* The number of slices where the outputs alone would leave compute units idle. */
static int64_t slices_wanted(const ops_context *context, const ops_reduce_layout *group,
                             int64_t outputs, int64_t length)
{
    const hal_device_info *info = context->info;
    const ops_rows_tuning *tuning = &context->tuning->rows;
    if (outputs == 0) {
        return 1;
    }
    const int64_t groups = (outputs + group->outputs - 1) / group->outputs;
    const int64_t across = outputs < group->outputs ? outputs : group->outputs;
    const int64_t items = (int64_t)group->outputs * group->along;
    const int64_t units = info->compute_units, wanted = tuning->unit_groups * units;
    int64_t most = length / ((int64_t)group->along * tuning->min_steps);
    int64_t by_size = length * across / tuning->min_slice;
    if (units < tuning->min_slicing_units || length * across < tuning->min_sliced) {
        by_size = 1;
    }
    most = by_size < most ? by_size : most;
    most = most < tuning->max_slices ? most : tuning->max_slices;
    most = most < info->max_grid[2] ? most : info->max_grid[2];
    int64_t slices;
    if (wanted > 0) {
        slices = 2 * groups > wanted ? 1 : (wanted + groups - 1) / groups;
    } else {
        /* One more group than fit at once would double the time. */
        slices = groups * items >= units * tuning->busy_items
                     ? 1
                     : units * tuning->full_items / (groups * items);
    }
    return slices < most ? slices : most;
}

/* The least number of slices whose loops the device can execute. */
static hal_status least_slices(const ops_context *context, const char *function,
                               const ops_reduce_layout *group, int64_t length, int64_t steps,
                               int64_t *least)
{
    const int64_t step = (int64_t)group->width * group->unroll;
    *least = 1;
    if (ops_reduce_layout_chunks(group, length) * group->width < steps) {
        return HAL_OK;
    }
    const int64_t slice = steps / step * step * group->along;
    *least = slice ? (length + slice - 1) / slice : INT64_MAX;
    if (*least > context->info->max_grid[2] || *least >= ops_loop_limit(context, 0, 0)) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "%s: x: expected at most %lld steps along the axis for each "
                              "work-item, since %s limits the iterations of loops, got %lld "
                              "elements; reduce in parts, or without a prologue",
                              function, (long long)steps, context->info->name, (long long)length);
    }
    return HAL_OK;
}

/* The space of the outputs, and the axis. */
static void outputs_space(const ops_tensor *x, uint32_t axis, ops_space *space, ops_axis *taken)
{
    ops_space_begin(space, x->rank, x->shape);
    ops_space_add(space, x, 0);
    ops_axis_take(space, axis, taken);
    ops_space_collapse(space, 0);
}

/* Chooses the group. Returns the number of outputs. */
static int64_t layout_choose_group(const ops_context *context, const ops_tensor *x, uint32_t axis,
                                   hal_type type, ops_row_layout *layout)
{
    ops_space space;
    ops_axis taken;
    outputs_space(x, axis, &space, &taken);
    ops_reduce_layout_choose(context, &space, &taken, type, &layout->group);
    layout->slices = 1;
    layout->slice_length = (uint32_t)taken.length;
    return ops_space_elements(&space);
}

void ops_row_layout_whole(const ops_context *context, const ops_tensor *x, uint32_t axis,
                          hal_type type, ops_row_layout *layout)
{
    layout_choose_group(context, x, axis, type, layout);
}

hal_status ops_row_layout_choose(const ops_context *context, const char *function,
                                 const ops_tensor *x, uint32_t axis, hal_type type, int64_t steps,
                                 ops_row_layout *layout)
{
    int64_t least;
    const int64_t outputs = layout_choose_group(context, x, axis, type, layout);
    const ops_reduce_layout *group = &layout->group;
    const int64_t length = x->shape[axis];
    int64_t slices = slices_wanted(context, group, outputs, length);
    hal_status status = least_slices(context, function, group, length, steps, &least);
    slices = slices < least ? least : slices;
    if (status != HAL_OK || slices < 2) {
        return status;
    }
    /* Whole steps of loops, and as many slices as they fill. */
    const int64_t step = (int64_t)group->along * group->width * group->unroll;
    const int64_t slice = ((length + slices - 1) / slices + step - 1) / step * step;
    layout->slice_length = (uint32_t)slice;
    layout->slices = (uint32_t)((length + slice - 1) / slice);
    ops_reduce_layout_set_length(context, slice, type, &layout->group);
    return HAL_OK;
}

void ops_row_layout_keep(const ops_context *context, const ops_tensor *x, uint32_t axis,
                         hal_type type, ops_row_layout *layout)
{
    ops_space space;
    ops_axis taken;
    if (layout->slices == 1) {
        outputs_space(x, axis, &space, &taken);
        ops_reduce_layout_keep(context, &space, &taken, hal_type_size(x->type), type,
                               &layout->group);
    }
}

bool ops_row_layout_keeps(const ops_context *context, const ops_row_layout *layout, int64_t length,
                          uint32_t words)
{
    const ops_reduce_layout *group = &layout->group;
    const int64_t kept = ops_reduce_layout_chunks(group, length) * group->width;
    const uint32_t items = group->outputs * group->along * group->layers;
    const ops_rows_tuning *tuning = &context->tuning->rows;
    const int64_t most = items > tuning->large_group ? tuning->max_large_kept : tuning->max_kept;
    /* An order with blocks is that of loops. */
    return layout->slices == 1 && !group->blocks && length > 0 && kept <= OPS_ROW_SLOTS / 2 &&
           kept * words <= most;
}

void ops_row_order(const ops_row_program *program, uint8_t *is_element, uint8_t *ready)
{
    memset(ready, 0, program->value_count);
    for (uint32_t v = program->input_count; v < program->value_count; v++) {
        const ops_row_step *step = ops_row_step_of(program, v);
        is_element[v] = 0;
        for (uint32_t i = 0; i < step->operand_count; i++) {
            const uint8_t operand = program->operands[step->first_operand + i];
            ready[v] = ready[operand] > ready[v] ? ready[operand] : ready[v];
            is_element[v] |= step->kind == OPS_ROW_MAP && is_element[operand];
        }
        ready[v] += ops_row_is_reduction(step);
    }
}

void ops_row_needs(const ops_row_program *program, const ops_row_schedule *schedule, uint32_t phase,
                   const ops_axis *axis, uint32_t stored, uint8_t *needed)
{
    memset(needed, 0, program->value_count);
    for (uint32_t i = 0; phase == schedule->last && i < program->output_count; i++) {
        needed[program->outputs[i]] |= axis->step[program->input_count + i] != OPS_INNER_ZERO;
    }
    for (uint32_t v = program->value_count; v-- > 0;) {
        const ops_row_step *step = v < program->input_count ? NULL : ops_row_step_of(program, v);
        const int is_reduced =
            step && ops_row_is_reduction(step) && schedule->ready[v] == phase + 1;
        needed[v] = needed[v] && schedule->is_element[v];
        const bool is_loaded = v + 1 == stored && phase > schedule->first_need[v];
        const bool is_computed = (needed[v] && !is_loaded) || is_reduced;
        for (uint32_t i = 0; step && is_computed && i < step->operand_count; i++) {
            needed[program->operands[step->first_operand + i]] = 1;
        }
    }
}

/* The most values of elements that are computed up to a phase and used after it. */
static uint32_t schedule_live(const ops_row_program *program, const ops_row_schedule *schedule)
{
    uint8_t last_use[OPS_ROW_VALUES] = {0};
    for (uint32_t v = program->input_count; v < program->value_count; v++) {
        const ops_row_step *step = ops_row_step_of(program, v);
        uint32_t use =
            ops_row_is_reduction(step) ? schedule->ready[v] - 1u : schedule->first_need[v];
        for (uint32_t i = 0; use != OPS_ROW_NEVER && i < step->operand_count; i++) {
            uint8_t *last = &last_use[program->operands[step->first_operand + i]];
            *last = use > *last ? (uint8_t)use : *last;
        }
    }
    for (uint32_t i = 0; i < program->output_count; i++) {
        last_use[program->outputs[i]] = (uint8_t)schedule->last;
    }
    uint32_t most = 1;
    for (uint32_t phase = 0; phase < schedule->last; phase++) {
        uint32_t live = 0;
        for (uint32_t v = 0; v < program->value_count; v++) {
            live += schedule->first_need[v] <= phase && last_use[v] > phase;
        }
        most = live > most ? live : most;
    }
    return most;
}

static void schedule_make(const ops_row_program *program, const ops_axis *axis,
                          ops_row_schedule *schedule)
{
    uint8_t needed[OPS_ROW_VALUES];
    schedule->last = 0;
    schedule->stores_elements = 0;
    for (uint32_t v = 0; v < program->input_count; v++) {
        schedule->is_element[v] = axis->step[v] != OPS_INNER_ZERO;
    }
    memset(schedule->first_need, OPS_ROW_NEVER, program->value_count);
    ops_row_order(program, schedule->is_element, schedule->ready);
    for (uint32_t i = 0; i < program->output_count; i++) {
        const uint8_t ready = schedule->ready[program->outputs[i]];
        schedule->last = ready > schedule->last ? ready : schedule->last;
        schedule->stores_elements |= axis->step[program->input_count + i] != OPS_INNER_ZERO;
    }
    for (uint32_t phase = 0; phase <= schedule->last; phase++) {
        ops_row_needs(program, schedule, phase, axis, 0, needed);
        for (uint32_t v = 0; v < program->value_count; v++) {
            if (needed[v] && schedule->first_need[v] == OPS_ROW_NEVER) {
                schedule->first_need[v] = (uint8_t)phase;
            }
        }
    }
    schedule->live = schedule_live(program, schedule);
}

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

/* Whether the output's memory holds the costly value from its first loop to the last one. */
static bool stores_costly(const ops_context *context, const ops_row_pass *pass)
{
    const ops_row_program *program = pass->program;
    const ops_row_schedule *schedule = &pass->schedule;
    const uint32_t view = program->input_count, value = program->costly, slot = pass->slots[view];
    if (value == OPS_ROW_NONE || !context->tuning->rows.stores_costly || pass->form.chunks ||
        pass->form.is_sliced || program->output_count != 1 || !schedule->is_element[value] ||
        schedule->first_need[value] >= schedule->last ||
        pass->bindings.types[slot] != program->costly_type ||
        pass->axis.step[view] == OPS_INNER_ZERO) {
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

static bool program_has(const ops_row_program *program, uint32_t kind)
{
    for (uint32_t i = 0; i < program->value_count - program->input_count; i++) {
        if (program->steps[i].kind == kind) {
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

/* Marks the inputs that more than one loop reads, but for those of single bytes. Returns the bytes
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
 * that but for blocks of steps. Programs with two values for a state lack the registers. */
static void choose_unroll(const ops_context *context, ops_row_pass *pass)
{
    ops_reduce_layout *group = &pass->group;
    const int64_t elements = ops_reduce_layout_chunks(group, pass->axis.length) * group->width;
    if (pass->form.cached_length && group->axis_first && !group->blocks &&
        elements >= context->tuning->rows.min_cached_loads &&
        !program_has(pass->program, OPS_FOLD_SOFTMAX) &&
        !program_has(pass->program, OPS_REDUCE_ARGMAX)) {
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
        const uint32_t items = words > 1 || program_has(pass->program, OPS_REDUCE_ARGMAX)
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

static void program_key(const ops_row_program *program, ops_cache_key *key)
{
    const uint32_t counts[5] = {program->input_count, program->value_count, program->operand_count,
                                program->output_count, program->exponential};
    ops_cache_key_append(key, counts, sizeof counts);
    for (uint32_t v = program->input_count; v < program->value_count; v++) {
        const ops_row_step *step = ops_row_step_of(program, v);
        const uint64_t form[3] = {step->kind | (uint64_t)step->type << 8 |
                                      (uint64_t)step->operand_count << 16,
                                  step->key[0], step->key[1]};
        ops_cache_key_append(key, form, sizeof form);
    }
    ops_cache_key_append(key, program->operands, program->operand_count);
    ops_cache_key_append(key, program->outputs, program->output_count);
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

static hal_status pass_plan(const ops_context *context, const ops_row_call *call,
                            int64_t slice_stride, ops_row_pass *pass)
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
    ops_space_collapse(&pass->space, 0);
    flatten_group(&pass->space, &pass->group);
    uint32_t means = 0;
    for (uint32_t v = program->input_count; v < program->value_count; v++) {
        means += ops_row_step_of(program, v)->kind == OPS_REDUCE_MEAN;
    }
    ops_layout_choose(context, &pass->space, count * 8 + 32 + 8 * means,
                      ops_axis_reach(&pass->axis, count), &pass->layout);
    schedule_make(program, &pass->axis, &pass->schedule);
    if (call->layout->slices == 1) {
        share_rows(context, pass);
    }
    choose_form(context, call, pass);
    return HAL_OK;
}

hal_status ops_row_kernel_record(ops_context *context, const ops_row_call *call,
                                 int64_t slice_stride)
{
    ops_row_pass pass;
    pass.bindings.count = 0;
    pass.form = (ops_row_form){.chunks = 0};
    uint32_t grid[3];
    hal_status status = pass_plan(context, call, slice_stride, &pass);
    if (status == HAL_OK) {
        status = ops_reduce_layout_grid(context, call->function, &pass.space, &pass.group, grid);
    }
    if (status != HAL_OK) {
        return status;
    }
    if (pass.form.is_sliced) {
        if (pass.group.grid_may_overrun) {
            return hal_status_set(HAL_ERROR_UNSUPPORTED,
                                  "%s: x: expected fewer outputs for slices of an axis of %lld "
                                  "elements on %s",
                                  call->function, (long long)pass.axis.length, context->info->name);
        }
        grid[2] = call->layout->slices;
    }
    const uint32_t count = call->program->input_count + call->program->output_count;
    ops_cache_key key;
    ops_entry *entry;
    ops_cache_key_begin(&key, OPS_FAMILY_ROWS);
    program_key(call->program, &key);
    ops_cache_key_append(&key, &pass.form, sizeof pass.form);
    ops_bindings_key(&pass.bindings, pass.slots, count, &key);
    ops_fold_key(&pass.space, &pass.layout, &pass.group, &pass.axis, &key);
    HAL_TRY(ops_cache_get(context, &key, call->name, ops_row_emit, &pass, &entry));
    ops_block block;
    ops_block_begin(&block);
    ops_row_put(&pass, &block);
    return ops_dispatch(context, entry, grid, &pass.bindings, &block);
}
