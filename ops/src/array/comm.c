/* Reductions of arrays over the ranks of a communicator. */
#include "tensor/comm.h"

#include "execute.h"

#include <stdio.h>
#include <stdlib.h>

static hal_status arguments_check(hal_comm *comm, ops_array *const *arrays, uint32_t count,
                                  const ops_comm_options *options, bool *is_alone)
{
    static const char function[] = "ops_array_all_reduce";
    if (!arrays || count == 0) {
        return ops_invalid("%s: %s", function,
                           !arrays ? "arrays: expected a pointer, got null"
                                   : "count: expected at least 1, got 0");
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!arrays[i]) {
            char argument[24];
            snprintf(argument, sizeof argument, "arrays[%u]", i);
            return ops_report_null_array(function, argument);
        }
    }
    const ops_arrays *owner = ops_check_operands(function, arrays, count);
    if (!owner) {
        return HAL_ERROR_INVALID_STATE;
    }
    hal_status status = ops_comm_check(function, owner->context, comm, options, is_alone);
    if (status == HAL_OK && owner->is_recording && options && options->queue &&
        options->queue != ops_context_get_queue(owner->context)) {
        return ops_invalid(
            "%s: options.queue: expected null while a graph is recorded, got a queue", function);
    }
    return status;
}

/* Computes an array and retains it; one that a collective does not read where it is, as a copy. */
static hal_status source_compute(ops_array *array, ops_array **source)
{
    hal_status status = ops_execute(&array, 1);
    if (status == HAL_OK && ops_comm_takes_tensor(&array->view)) {
        *source = ops_array_retain(array);
    } else if (status == HAL_OK) {
        *source = ops_array_keep(ops_array_copy(array));
        status = *source ? ops_execute(source, 1) : HAL_ERROR_OUT_OF_MEMORY;
    }
    return status;
}

/* An array of the type and shape of another one, in memory that is written next. */
static hal_status result_create(const ops_array *like, ops_array **result)
{
    const uint64_t bytes =
        (uint64_t)ops_tensor_get_element_count(&like->view) * hal_type_size(like->view.type);
    hal_buffer *buffer = NULL;
    hal_status status = hal_buffer_create(like->owner->context->device, HAL_MEMORY_DEVICE,
                                          bytes ? bytes : 4, &buffer);
    *result = status == HAL_OK ? ops_node_create(like->owner) : NULL;
    if (!*result) {
        hal_buffer_release(buffer);
        return status == HAL_OK ? HAL_ERROR_OUT_OF_MEMORY : status;
    }
    ops_node_set_shape(*result, like->view.type, like->view.rank, like->view.shape);
    (*result)->view.buffer = buffer;
    return HAL_OK;
}

/* The arrays of a call: those that the collective reads, the results, and the tensors of both. */
typedef struct reduction_lists {
    ops_array **sources, **results;
    ops_tensor *tensors;
} reduction_lists;

static void arrays_release(ops_array **arrays, uint32_t count)
{
    for (uint32_t i = 0; arrays && i < count; i++) {
        ops_array_release(arrays[i]);
    }
}

static hal_status results_view(ops_array *const *arrays, uint32_t count,
                               const reduction_lists *lists)
{
    hal_status status = HAL_OK;
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        const ops_tensor *like = &arrays[i]->view;
        lists->results[i] = ops_array_broadcast(arrays[i], like->rank, like->shape);
        status = lists->results[i] ? HAL_OK : HAL_ERROR_OUT_OF_MEMORY;
    }
    return status;
}

static hal_status results_reduce(hal_comm *comm, hal_collective what, ops_array *const *arrays,
                                 uint32_t count, const ops_comm_options *options,
                                 const reduction_lists *lists)
{
    hal_status status = ops_execute(arrays, count); /* together: it may take fewer kernels */
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        status = source_compute(arrays[i], &lists->sources[i]);
    }
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        status = result_create(arrays[i], &lists->results[i]);
    }
    if (status != HAL_OK) { /* the other ranks must not wait for this one */
        hal_comm_abort(comm, hal_status_message());
        return status;
    }
    for (uint32_t i = 0; i < count; i++) {
        lists->tensors[i] = lists->sources[i]->view;
        lists->tensors[count + i] = lists->results[i]->view;
    }
    status = ops_comm_record(arrays[0]->owner->context, comm, what, lists->tensors,
                             lists->tensors + count, count, options);
    for (uint32_t i = 0; i < count; i++) {
        lists->results[i]->batch = ops_arrays_batch(arrays[0]->owner);
    }
    return status == HAL_OK ? HAL_OK : ops_arrays_failed(arrays[0]->owner, status);
}

hal_status ops_array_all_reduce(hal_comm *comm, uint32_t reduction, ops_array *const *arrays,
                                uint32_t count, const ops_comm_options *options,
                                ops_array **results)
{
    const hal_collective what = ops_comm_reduction(reduction, options);
    bool is_alone = false;
    if (!results) {
        return ops_invalid("ops_array_all_reduce: results: expected a pointer, got null");
    }
    hal_status status = arguments_check(comm, arrays, count, options, &is_alone);
    reduction_lists lists = {calloc(count + 1, sizeof(ops_array *)),
                             calloc(count + 1, sizeof(ops_array *)),
                             calloc(count + 1, 2 * sizeof(ops_tensor))};
    if (status == HAL_OK && (!lists.sources || !lists.results || !lists.tensors)) {
        status =
            hal_status_set(HAL_ERROR_OUT_OF_MEMORY,
                           "ops_array_all_reduce: the host has no memory for %u arrays", count);
    }
    if (status == HAL_OK) {
        status = is_alone ? results_view(arrays, count, &lists)
                          : results_reduce(comm, what, arrays, count, options, &lists);
    }
    if (status != HAL_OK) {
        arrays_release(lists.results, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        results[i] = status == HAL_OK ? lists.results[i] : NULL;
    }
    arrays_release(lists.sources, count);
    free(lists.sources);
    free(lists.results);
    free(lists.tensors);
    return status;
}
