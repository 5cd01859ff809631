/* Row programs whose rows are cut into slices: the kernels of each phase. The reductions of a phase
 * leave partial results of every slice, which a second kernel folds; a last kernel computes the
 * elements. What a phase needs of earlier ones are the rows' values; everything else is computed
 * again from the inputs. */
#include "rows.h"

#include <string.h>

/* Tensors of results and partial results, at most. */
#define MAX_MADE 64u

typedef struct sliced_rows {
    ops_context *context;
    const ops_row_call *call;
    uint8_t ready[OPS_ROW_VALUES];      /* first phase that can use a value */
    uint8_t is_element[OPS_ROW_VALUES]; /* differs from element to element */
    uint32_t last;                      /* phase of the outputs */
    int stores_elements;
    int64_t outputs; /* rows */
    /* Of reductions: indices of results and of the slices' partial results; those of places follow
     * those of values. */
    uint8_t row[OPS_ROW_VALUES], partial[OPS_ROW_VALUES];
    uint32_t made_count;
    ops_tensor made[MAX_MADE];
} sliced_rows;

/* A part of the program that one kernel computes. */
typedef struct sliced_part {
    uint8_t needed[OPS_ROW_VALUES];
    uint8_t number[OPS_ROW_VALUES]; /* of a value in `program` */
    uint32_t tensor_count;
    ops_tensor tensors[OPS_ROW_VALUES + MAX_MADE];
    ops_row_program program;
} sliced_part;

static bool is_reduction(const ops_row_program *program, uint32_t value)
{
    return value >= program->input_count && ops_row_is_reduction(ops_row_step_of(program, value));
}

static const uint8_t *step_operands(const ops_row_program *program, uint32_t value)
{
    return program->operands + ops_row_step_of(program, value)->first_operand;
}

static bool is_place(const ops_row_program *program, uint32_t value)
{
    return value >= program->input_count && ops_row_step_of(program, value)->kind == OPS_ROW_PLACE;
}

/* Whether a phase reduces to the value. */
static bool is_reduced_in(const sliced_rows *rows, uint32_t value, uint32_t phase)
{
    return is_reduction(rows->call->program, value) && rows->ready[value] == phase + 1;
}

/* Tensors of a reduction's states. */
static uint32_t state_parts(const ops_row_step *reduction)
{
    return ops_fold_has_place(reduction->kind) ? 2 : 1;
}

/* A tensor's dimension of the axis; UINT32_MAX where it has none. */
static uint32_t tensor_axis(const ops_row_call *call, const ops_tensor *tensor)
{
    const uint32_t missing = call->rank - tensor->rank;
    return call->axis < missing ? UINT32_MAX : call->axis - missing;
}

static bool varies_along_axis(const ops_row_call *call, const ops_tensor *tensor)
{
    const uint32_t axis = tensor_axis(call, tensor);
    return axis != UINT32_MAX && tensor->shape[axis] != 1 && tensor->stride[axis] != 0;
}

static void rows_schedule(sliced_rows *rows)
{
    const ops_row_call *call = rows->call;
    const ops_row_program *program = call->program;
    rows->last = 0;
    rows->stores_elements = 0;
    for (uint32_t v = 0; v < program->input_count; v++) {
        rows->is_element[v] = (uint8_t)varies_along_axis(call, &call->tensors[v]);
    }
    ops_row_order(program, rows->is_element, rows->ready);
    for (uint32_t i = 0; i < program->output_count; i++) {
        const uint8_t ready = rows->ready[program->outputs[i]];
        rows->last = ready > rows->last ? ready : rows->last;
        rows->stores_elements |= varies_along_axis(call, &call->tensors[program->input_count + i]);
    }
}

/* Makes a tensor for `length` values of each row: row after row in row-major order, value after
 * value. */
static hal_status values_create(sliced_rows *rows, uint32_t length, hal_type type)
{
    const ops_row_call *call = rows->call;
    const int64_t shape[1] = {rows->outputs * length};
    if (rows->made_count == MAX_MADE) {
        return hal_status_set(HAL_ERROR_UNSUPPORTED,
                              "%s: options: expected at most %u results of reductions of slices",
                              call->function, MAX_MADE / 2);
    }
    ops_tensor *values = &rows->made[rows->made_count];
    HAL_TRY(ops_tensor_create(rows->context, type, 1, shape, values));
    rows->made_count++;
    int64_t stride = 1;
    values->rank = call->rank;
    for (uint32_t i = call->rank; i-- > 0;) {
        const bool is_axis = i == call->axis;
        values->shape[i] = is_axis ? length : call->shape[i];
        values->stride[i] = is_axis ? rows->outputs : stride;
        stride *= is_axis ? 1 : values->shape[i];
    }
    return HAL_OK;
}

/* Whether results of a phase's reductions are used by later kernels. */
static bool phase_is_used_later(const sliced_rows *rows, uint32_t phase)
{
    return phase + 1 < rows->last || rows->stores_elements;
}

/* Makes the tensors of a reduction's states: one or two, of `length` values of each row. */
static hal_status states_create(sliced_rows *rows, const ops_row_step *reduction, uint32_t length,
                                uint8_t *first)
{
    *first = (uint8_t)rows->made_count;
    hal_status status = values_create(rows, length, reduction->type);
    return status || state_parts(reduction) == 1
               ? status
               : values_create(rows, length, ops_fold_place_type(reduction->kind, reduction->type));
}

/* Makes the tensors of a phase's reductions. */
static hal_status phase_allocate(sliced_rows *rows, uint32_t phase)
{
    const ops_row_program *program = rows->call->program;
    hal_status status = HAL_OK;
    for (uint32_t v = program->input_count; v < program->value_count && status == HAL_OK; v++) {
        const ops_row_step *step = ops_row_step_of(program, v);
        if (!is_reduced_in(rows, v, phase)) {
            continue;
        }
        status = states_create(rows, step, rows->call->layout->slices, &rows->partial[v]);
        if (status == HAL_OK && phase_is_used_later(rows, phase)) {
            status = states_create(rows, step, 1, &rows->row[v]);
        }
    }
    return status;
}

/* Begins with what computes the values that `needed` marks: further inputs, which are the program's
 * and results of earlier phases, after the tensors that the part has. */
static void part_begin(const sliced_rows *rows, uint32_t phase, sliced_part *part)
{
    const ops_row_program *program = rows->call->program;
    for (uint32_t v = program->value_count; v-- > program->input_count;) {
        const ops_row_step *step = ops_row_step_of(program, v);
        for (uint32_t i = 0;
             part->needed[v] && step->kind == OPS_ROW_MAP && i < step->operand_count; i++) {
            part->needed[step_operands(program, v)[i]] = 1;
        }
    }
    for (uint32_t v = 0; v < program->value_count; v++) {
        const ops_tensor *tensor = NULL;
        if (part->needed[v] && v < program->input_count) {
            tensor = &rows->call->tensors[v];
        } else if (part->needed[v] && rows->ready[v] <= phase && is_reduction(program, v)) {
            tensor = &rows->made[rows->row[v]];
        } else if (part->needed[v] && rows->ready[v] <= phase && is_place(program, v)) {
            tensor = &rows->made[rows->row[step_operands(program, v)[0]] + 1];
        }
        if (tensor) {
            part->number[v] = (uint8_t)part->tensor_count;
            part->tensors[part->tensor_count++] = *tensor;
        }
    }
    ops_row_begin(&part->program, part->tensor_count);
    part->program.exponential = program->exponential;
}

/* Numbers of a step's operands in the part. */
static void part_list_operands(const sliced_rows *rows, const sliced_part *part, uint32_t value,
                               uint8_t *operands)
{
    const ops_row_program *program = rows->call->program;
    for (uint32_t i = 0; i < ops_row_step_of(program, value)->operand_count; i++) {
        operands[i] = part->number[step_operands(program, value)[i]];
    }
}

/* Copies the maps that are needed. */
static void part_add_maps(const sliced_rows *rows, sliced_part *part)
{
    const ops_row_program *program = rows->call->program;
    uint8_t operands[OPS_ROW_OPERANDS];
    for (uint32_t v = program->input_count; v < program->value_count; v++) {
        const ops_row_step *step = ops_row_step_of(program, v);
        if (part->needed[v] && step->kind == OPS_ROW_MAP) {
            part_list_operands(rows, part, v, operands);
            part->number[v] = ops_row_map(&part->program, step->function, step->user, step->key,
                                          operands, step->operand_count);
        }
    }
}

static void part_add_output(sliced_part *part, uint8_t value, const ops_tensor *tensor)
{
    ops_row_output(&part->program, value);
    if (!part->program.overflowed) {
        part->tensors[part->tensor_count++] = *tensor;
    }
}

static hal_status part_record(const sliced_rows *rows, const sliced_part *part, uint32_t length,
                              const ops_row_layout *layout, int64_t slice_stride)
{
    ops_row_call call = *rows->call;
    int64_t shape[OPS_MAX_RANK];
    memcpy(shape, call.shape, call.rank * sizeof *shape);
    shape[call.axis] = length;
    call.program = &part->program;
    call.shape = shape;
    call.tensors = part->tensors;
    call.layout = layout;
    return ops_row_kernel_record(rows->context, &call, slice_stride);
}

/* From slices to partial results. The divisor of a mean belongs to the fold of those. */
static hal_status record_slices(const sliced_rows *rows, uint32_t phase, sliced_part *part)
{
    const ops_row_call *call = rows->call;
    const ops_row_program *program = call->program;
    memset(part->needed, 0, sizeof part->needed);
    part->tensor_count = 0;
    for (uint32_t v = program->input_count; v < program->value_count; v++) {
        for (uint32_t i = 0;
             is_reduced_in(rows, v, phase) && i < ops_row_step_of(program, v)->operand_count; i++) {
            part->needed[step_operands(program, v)[i]] = 1;
        }
    }
    part_begin(rows, phase, part);
    part_add_maps(rows, part);
    for (uint32_t v = program->input_count; v < program->value_count; v++) {
        if (!is_reduced_in(rows, v, phase)) {
            continue;
        }
        const ops_row_step *step = ops_row_step_of(program, v);
        const uint32_t kind = step->kind == OPS_REDUCE_MEAN ? OPS_REDUCE_SUM : step->kind;
        uint8_t operands[2];
        part_list_operands(rows, part, v, operands);
        const uint8_t value =
            ops_row_reduce(&part->program, kind, step->type, operands, step->operand_count);
        part_add_output(part, value, &rows->made[rows->partial[v]]);
        if (state_parts(step) > 1) {
            part_add_output(part, ops_row_place(&part->program, value),
                            &rows->made[rows->partial[v] + 1]);
        }
    }
    return part_record(rows, part, (uint32_t)call->shape[call->axis], call->layout, rows->outputs);
}

/* Adds the folds of a phase's partial results, which are the part's first inputs. Returns one of
 * the reductions. */
static uint32_t part_add_folds(const sliced_rows *rows, uint32_t phase, sliced_part *part)
{
    const ops_row_program *program = rows->call->program;
    uint8_t operands[2] = {0, 0};
    uint32_t found = 0;
    for (uint32_t v = program->input_count; v < program->value_count; v++) {
        const ops_row_step *step = ops_row_step_of(program, v);
        if (is_reduced_in(rows, v, phase)) {
            operands[1] = (uint8_t)(operands[0] + 1);
            part->number[v] =
                ops_row_reduce(&part->program, step->kind, step->type, operands, state_parts(step));
            operands[0] = (uint8_t)(operands[0] + state_parts(step));
            found = v;
        } else if (step->kind == OPS_ROW_PLACE && rows->ready[v] == phase + 1) {
            part->number[v] =
                ops_row_place(&part->program, part->number[step_operands(program, v)[0]]);
        }
    }
    return found;
}

/* From partial results to results, and after the last phase to the rows' outputs. */
static hal_status record_folds(const sliced_rows *rows, uint32_t phase, sliced_part *part)
{
    const ops_row_call *call = rows->call;
    const ops_row_program *program = call->program;
    const ops_tensor *outputs = call->tensors + program->input_count;
    memset(part->needed, 0, sizeof part->needed);
    part->tensor_count = 0;
    for (uint32_t v = program->input_count; v < program->value_count; v++) {
        const ops_row_step *step = ops_row_step_of(program, v);
        for (uint32_t i = 0; is_reduced_in(rows, v, phase) && i < state_parts(step); i++) {
            part->tensors[part->tensor_count++] = rows->made[rows->partial[v] + i];
        }
    }
    const uint32_t folded = part->tensor_count;
    for (uint32_t i = 0; phase + 1 == rows->last && i < program->output_count; i++) {
        part->needed[program->outputs[i]] |= !varies_along_axis(call, &outputs[i]);
    }
    part_begin(rows, phase, part);
    for (uint32_t i = folded; i < part->tensor_count; i++) {
        const uint32_t axis = tensor_axis(call, &part->tensors[i]);
        if (axis != UINT32_MAX) {
            part->tensors[i].shape[axis] = 1;
        }
    }
    ops_row_layout layout;
    const uint32_t any = part_add_folds(rows, phase, part);
    ops_row_layout_whole(rows->context, &rows->made[rows->partial[any]], call->axis,
                         ops_row_step_of(program, any)->type, &layout);
    part_add_maps(rows, part);
    for (uint32_t i = 0; phase + 1 == rows->last && i < program->output_count; i++) {
        if (!varies_along_axis(call, &outputs[i])) {
            part_add_output(part, part->number[program->outputs[i]], &outputs[i]);
        }
    }
    for (uint32_t v = program->input_count; v < program->value_count; v++) {
        if (!is_reduced_in(rows, v, phase) || !phase_is_used_later(rows, phase)) {
            continue;
        }
        part_add_output(part, part->number[v], &rows->made[rows->row[v]]);
        if (state_parts(ops_row_step_of(program, v)) > 1) {
            const uint8_t place = ops_row_place(&part->program, part->number[v]);
            part_add_output(part, place, &rows->made[rows->row[v] + 1]);
        }
    }
    return part_record(rows, part, call->layout->slices, &layout, 0);
}

/* Elements from the results of all phases. */
static hal_status record_elements(const sliced_rows *rows, sliced_part *part)
{
    const ops_row_call *call = rows->call;
    const ops_row_program *program = call->program;
    const ops_tensor *outputs = call->tensors + program->input_count;
    memset(part->needed, 0, sizeof part->needed);
    part->tensor_count = 0;
    for (uint32_t i = 0; i < program->output_count; i++) {
        part->needed[program->outputs[i]] |= varies_along_axis(call, &outputs[i]);
    }
    part_begin(rows, rows->last, part);
    part_add_maps(rows, part);
    for (uint32_t i = 0; i < program->output_count; i++) {
        if (varies_along_axis(call, &outputs[i])) {
            part_add_output(part, part->number[program->outputs[i]], &outputs[i]);
        }
    }
    return part_record(rows, part, (uint32_t)call->shape[call->axis], call->layout, 0);
}

static hal_status record_sliced(sliced_rows *rows, sliced_part *part)
{
    hal_status status = HAL_OK;
    for (uint32_t phase = 0; phase < rows->last && status == HAL_OK; phase++) {
        status = phase_allocate(rows, phase);
        if (status == HAL_OK) {
            status = record_slices(rows, phase, part);
        }
        if (status == HAL_OK) {
            status = record_folds(rows, phase, part);
        }
    }
    return status || !rows->stores_elements ? status : record_elements(rows, part);
}

hal_status ops_row_record(ops_context *context, const ops_row_call *call)
{
    if (call->layout->slices == 1 || call->program->overflowed) {
        return ops_row_kernel_record(context, call, 0);
    }
    struct {
        sliced_rows rows;
        sliced_part part;
    } *memory = ops_scratch_take(&context->scratch, call->function, sizeof *memory);
    if (!memory) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    sliced_rows *rows = &memory->rows;
    rows->context = context;
    rows->call = call;
    rows->outputs = 1;
    for (uint32_t i = 0; i < call->rank; i++) {
        rows->outputs *= i == call->axis ? 1 : call->shape[i];
    }
    rows->made_count = 0;
    rows_schedule(rows);
    const hal_status status = record_sliced(rows, &memory->part);
    for (uint32_t i = 0; i < rows->made_count; i++) {
        ops_tensor_release(&rows->made[i]);
    }
    ops_scratch_return(&context->scratch, memory);
    return status;
}
