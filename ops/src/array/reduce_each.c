/* Reductions of many arrays of any lengths by few kernels (kernels/segments.h). */
#include "deferred.h"
#include "execute.h"

#include "kernels/functions.h"
#include "kernels/segments.h"

#include <stdlib.h>

#define FUNCTION "ops_array_reduce_each"

/* Elements that a group folds. Longer arrays are folded in pieces, whose results are folded after
 * that in the same way. */
#define PIECE_ELEMENTS (INT64_C(1) << 14)

/* One pass: segments in, a value of each out. */
typedef struct fold_pass {
    ops_arrays *arrays;
    ops_reduction reduction;
    ops_unary_function function; /* of elements; OPS_UNARY_COUNT: none */
    hal_type input, output;
    ops_segment *segments;
    uint32_t count;
} fold_pass;

static hal_status report_no_memory(void)
{
    return hal_status_set(HAL_ERROR_OUT_OF_MEMORY, FUNCTION ": the host has no memory for a plan");
}

static hal_ir_value emit_function(hal_ir_builder *b, const hal_ir_value *inputs, const void *user)
{
    const fold_pass *p = user;
    if (p->function == OPS_SQUARE) {
        return hal_ir_mul(b, inputs[0], inputs[0]);
    }
    return p->function == OPS_ABS ? hal_ir_abs(b, inputs[0]) : inputs[0];
}

static hal_status pass_make_expression(const void *user, ops_expression **expression)
{
    const fold_pass *p = user;
    const hal_type value = hal_type_of_value(p->input);
    return ops_expression_make("fold", &value, 1, emit_function, p, expression);
}

static hal_status pass_record(const fold_pass *p)
{
    const uint64_t form[2] = {UINT64_C(0x666f6c6465616368) + (uint32_t)p->function,
                              (uint64_t)p->input << 32 | p->output};
    ops_segments call = {.name = "fold_each",
                         .form = form,
                         .input_count = 1,
                         .output_count = 1,
                         .types = {p->input, p->output},
                         .folds = true,
                         .fold = p->reduction,
                         .make = pass_make_expression,
                         .user = p};
    for (uint32_t done = 0, taken; done < p->count; done += taken) {
        call.segments = p->segments + done;
        call.count = p->count - done;
        HAL_TRY(ops_segments_record(p->arrays->context, &call, &p->arrays->segment_tables, &taken));
        if (taken == 0) {
            return hal_status_set(HAL_ERROR_UNSUPPORTED,
                                  FUNCTION ": a kernel of the device binds too few buffers");
        }
        p->arrays->statistics.kernels++;
    }
    return HAL_OK;
}

static uint32_t pieces_of(int64_t elements)
{
    return (uint32_t)((elements + PIECE_ELEMENTS - 1) / PIECE_ELEMENTS);
}

/* Makes the segments of both passes: pieces of the arrays, and the pieces' results of each array.
 * Those are in `partial`, and the arrays' results in `result`. */
static void passes_fill(ops_array *const *arrays, uint32_t count, const ops_tensor *partial,
                        const ops_tensor *result, fold_pass *first, fold_pass *second)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        const ops_tensor *x = &arrays[i]->view;
        const int64_t elements = ops_tensor_get_element_count(x);
        const uint32_t pieces = pieces_of(elements);
        second->segments[i] = (ops_segment){.elements = pieces,
                                            .views = {{partial->buffer, partial->offset + at},
                                                      {result->buffer, result->offset + i}}};
        for (uint32_t k = 0; k < pieces; k++) {
            const int64_t begin = k * PIECE_ELEMENTS, rest = elements - begin;
            first->segments[at + k] =
                (ops_segment){.elements = rest < PIECE_ELEMENTS ? rest : PIECE_ELEMENTS,
                              .views = {{x->buffer, x->offset + begin},
                                        {partial->buffer, partial->offset + at + k}}};
        }
        at += pieces;
    }
}

static hal_status passes_run(ops_array *const *arrays, uint32_t count, const ops_tensor *result,
                             fold_pass *first)
{
    fold_pass second = *first;
    ops_tensor partial = *result;
    const int64_t pieces = first->count;
    const bool is_whole = first->count == count; /* one piece each: no second pass */
    hal_status status = HAL_OK;
    if (!is_whole) {
        status = ops_tensor_create(first->arrays->context, result->type, 1, &pieces, &partial);
    }
    second.input = result->type;
    second.function = OPS_UNARY_COUNT;
    second.count = count;
    second.segments = calloc(count, sizeof *second.segments);
    first->segments = calloc(first->count, sizeof *first->segments);
    if (status == HAL_OK && !(second.segments && first->segments)) {
        status = report_no_memory();
    }
    if (status == HAL_OK) {
        passes_fill(arrays, count, &partial, result, first, &second);
        status = pass_record(first);
    }
    if (status == HAL_OK && !is_whole) {
        status = pass_record(&second);
    }
    if (!is_whole) {
        ops_tensor_release(&partial);
    }
    free(first->segments);
    free(second.segments);
    return status;
}

static bool is_in_segment(const ops_array *x)
{
    return !x->in_host_memory && ops_tensor_is_contiguous(&x->view);
}

/* Computes the arrays; those that segments do not read get copies. */
static hal_status arrays_prepare(ops_array **arrays, uint32_t count)
{
    HAL_TRY(ops_execute(arrays, count));
    for (uint32_t i = 0; i < count; i++) {
        if (!is_in_segment(arrays[i])) {
            ops_array *copy = ops_array_keep(ops_array_copy(arrays[i]));
            if (!copy) {
                return HAL_ERROR_OUT_OF_MEMORY;
            }
            ops_array_release(arrays[i]);
            arrays[i] = copy;
        }
    }
    HAL_TRY(ops_execute(arrays, count));
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t most = ops_segments_largest_buffer(arrays[i]->owner->context);
        if (!is_in_segment(arrays[i]) || hal_buffer_get_bytes(arrays[i]->view.buffer) > most) {
            return hal_status_set(HAL_ERROR_UNSUPPORTED,
                                  FUNCTION ": arrays[%u]: expected a buffer of at most %llu bytes",
                                  i, (unsigned long long)most);
        }
    }
    return HAL_OK;
}

static hal_status check_arguments(ops_reduction reduction, ops_unary_function function,
                                  ops_array *const *arrays, uint32_t count)
{
    if ((reduction != OPS_REDUCE_SUM && reduction != OPS_REDUCE_MAX &&
         reduction != OPS_REDUCE_MIN) ||
        (function != OPS_ABS && function != OPS_SQUARE)) {
        return ops_invalid(FUNCTION ": expected SUM, MAX or MIN of ABS or SQUARE, got %d of %d",
                           (int)reduction, (int)function);
    }
    for (uint32_t i = 0; i < count; i++) {
        const ops_tensor *x = &arrays[i]->view;
        if (!hal_type_is_float(x->type) || x->type != arrays[0]->view.type ||
            ops_tensor_get_element_count(x) == 0) {
            return ops_invalid(FUNCTION ": arrays[%u]: expected elements of one float type, got "
                                        "%lld of %s",
                               i, (long long)ops_tensor_get_element_count(x),
                               hal_type_name(x->type));
        }
    }
    return arrays[0]->owner->is_recording ? hal_status_set(HAL_ERROR_UNSUPPORTED, FUNCTION
                                                           ": not within the recording of a graph")
                                          : HAL_OK;
}

/* With the caller's references to the arrays in `own`, which it releases. */
static hal_status reduce_each(ops_reduction reduction, ops_unary_function function, ops_array **own,
                              uint32_t count, ops_tensor *result)
{
    const hal_type type = own[0]->view.type;
    const int64_t length = count;
    fold_pass first = {.arrays = own[0]->owner,
                       .reduction = reduction,
                       .function = function,
                       .input = type,
                       .output = hal_type_of_value(type)};
    HAL_TRY(arrays_prepare(own, count));
    for (uint32_t i = 0; i < count; i++) {
        first.count += pieces_of(ops_tensor_get_element_count(&own[i]->view));
    }
    HAL_TRY(ops_tensor_create(first.arrays->context, first.output, 1, &length, result));
    const hal_status status = passes_run(own, count, result, &first);
    if (status != HAL_OK) {
        ops_tensor_release(result);
    }
    return status;
}

ops_array *ops_array_reduce_each(ops_reduction reduction, ops_unary_function function,
                                 ops_array *const *arrays, uint32_t count)
{
    if (!arrays || count == 0) {
        ops_invalid(FUNCTION ": arrays: expected at least one array, got none");
        return NULL;
    }
    ops_arrays *owner = ops_check_operands(FUNCTION, arrays, count);
    ops_array **own = owner ? calloc(count, sizeof(ops_array *)) : NULL;
    ops_tensor result;
    if (!owner || check_arguments(reduction, function, arrays, count)) {
        free(own);
        return NULL;
    }
    hal_status status = own ? HAL_OK : report_no_memory();
    for (uint32_t i = 0; own && i < count; i++) {
        own[i] = ops_array_retain(arrays[i]);
    }
    if (status == HAL_OK) {
        status = reduce_each(reduction, function, own, count, &result);
    }
    for (uint32_t i = 0; own && i < count; i++) {
        ops_array_release(own[i]);
    }
    free(own);
    if (status != HAL_OK) {
        ops_arrays_failed(owner, status);
        return NULL;
    }
    ops_array *y = ops_array_from_tensor(owner->context, &result);
    ops_tensor_release(&result);
    return y;
}
