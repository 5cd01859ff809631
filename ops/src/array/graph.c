/* Graphs over arrays: a hal graph whose slots are the memory of arrays. */
#include "array.h"

#include <ops/graph.h>

#include <stdlib.h>
#include <string.h>

struct ops_graph {
    ops_context *context;
    hal_graph *graph;
    uint32_t input_count, output_count;
    ops_tensor *tensors;  /* inputs, then outputs, as they were recorded; without references */
    hal_buffer **buffers; /* of a launch */
};

static int is_whole(const ops_array *array)
{
    return array->view.offset == 0 && ops_tensor_is_contiguous(&array->view);
}

/* The front of a larger array does not: what stands for it in a launch has memory of its size. */
static int fills_memory(const ops_array *array)
{
    uint64_t bytes =
        (uint64_t)ops_tensor_get_element_count(&array->view) * hal_type_size(array->view.type);
    return is_whole(array) && hal_buffer_get_bytes(array->view.buffer) == (bytes ? bytes : 4);
}

static hal_status check_end(ops_context *context, ops_array *const *inputs, uint32_t input_count,
                            ops_array *const *outputs, uint32_t output_count, ops_graph **graph)
{
    if (!graph || (input_count && !inputs) || !output_count || !outputs) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "ops_graph_end: %s",
                              !graph         ? "graph is null"
                              : output_count ? "inputs or outputs is null"
                                             : "output_count is 0");
    }
    for (uint32_t i = 0; i < input_count; i++) {
        const ops_array *input = inputs[i];
        if (!input || input->context != context || input->state != OPS_ARRAY_MEMORY ||
            input->operation == OPS_OPERATION_CONSTANT ||
            input->generation == context->arrays->generation || !fills_memory(input)) {
            return hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "ops_graph_end: inputs[%u] is %s", i,
                                  !input ? "null"
                                  : input->operation == OPS_OPERATION_CONSTANT
                                      ? "a constant, whose memory others share; make it with "
                                        "ops_array_from_host"
                                      : "not an array that was made before the recording and "
                                        "lies in one piece in the whole of its memory");
        }
    }
    for (uint32_t i = 0; i < output_count; i++) {
        const ops_array *output = outputs[i];
        if (!output) {
            return ops_array_missing("ops_graph_end: outputs[%u]", i);
        }
        if (output->context != context || output->generation != context->arrays->generation) {
            return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                                  "ops_graph_end: outputs[%u] was not made during the recording",
                                  i);
        }
    }
    return HAL_OK;
}

/* Computes the outputs, each in memory of its own: `whole` gets references to them. */
static hal_status settle_outputs(ops_context *context, ops_array *const *outputs, uint32_t count,
                                 ops_array **whole)
{
    hal_status status = ops_evaluate(outputs, count);
    for (uint32_t i = 0; i < count && !status; i++) {
        int is_own = fills_memory(outputs[i]) && outputs[i]->operation != OPS_OPERATION_NONE &&
                     outputs[i]->operation != OPS_OPERATION_CONSTANT;
        for (uint32_t j = 0; j < i; j++) {
            is_own = is_own && whole[j]->view.buffer != outputs[i]->view.buffer;
        }
        if (is_own) {
            whole[i] = ops_array_retain(outputs[i]);
            continue;
        }
        whole[i] = ops_array_keep(ops_array_unary(OPS_IDENTITY, outputs[i]));
        status = whole[i] ? ops_evaluate(&whole[i], 1) : HAL_ERROR_OUT_OF_MEMORY;
    }
    (void)context;
    return status;
}

static ops_graph *new_graph(ops_context *context, uint32_t input_count, uint32_t output_count)
{
    ops_graph *graph = calloc(1, sizeof *graph);
    if (!graph) {
        return NULL;
    }
    graph->context = context;
    graph->input_count = input_count;
    graph->output_count = output_count;
    graph->tensors = calloc(input_count + output_count, sizeof *graph->tensors);
    graph->buffers = calloc(input_count + output_count, sizeof(hal_buffer *));
    if (!graph->tensors || !graph->buffers) {
        ops_graph_destroy(graph);
        return NULL;
    }
    return graph;
}

/* Ends hal's recording in any case. */
static hal_status finish(ops_context *context, ops_array *const *inputs, uint32_t input_count,
                         ops_array *const *outputs, uint32_t output_count, ops_graph **graph)
{
    ops_graph *made = new_graph(context, input_count, output_count);
    if (!made) {
        ops_graph_drop(context);
        return hal_status_set(HAL_ERROR_OUT_OF_MEMORY, "ops_graph_end: no host memory");
    }
    for (uint32_t i = 0; i < input_count + output_count; i++) {
        const ops_array *array = i < input_count ? inputs[i] : outputs[i - input_count];
        made->tensors[i] = array->view;
        made->buffers[i] = array->view.buffer;
    }
    hal_status status =
        hal_graph_end(context->queue, made->buffers, input_count + output_count, &made->graph);
    if (status) {
        ops_graph_destroy(made);
        return status;
    }
    *graph = made;
    return HAL_OK;
}

/* What was made in the meantime holds nothing. */
static void end_recording(ops_context *context)
{
    struct ops_arrays *arrays = context->arrays;
    arrays->recording = 0;
    for (ops_slab *slab = arrays->slabs; slab; slab = slab->next) {
        for (uint32_t i = 0; i < OPS_SLAB_ARRAYS; i++) {
            ops_array *array = &slab->arrays[i];
            if (array->state == OPS_ARRAY_FREE || array->generation != arrays->generation) {
                continue;
            }
            hal_buffer *buffer = array->view.buffer;
            array->view.buffer = NULL;
            hal_buffer_release(buffer);
            if (array->state == OPS_ARRAY_DEFERRED) {
                arrays->statistics.dropped +=
                    !array->was_computed && array->operation != OPS_OPERATION_VIEW;
                array->was_computed = 1;
                array->uses++; /* lives through the loss of its operands */
                ops_array_settle(array, NULL);
                array->uses--;
            }
            array->state = OPS_ARRAY_VOID;
        }
    }
}

static hal_status check_launch(const ops_graph *graph, ops_array *const *inputs,
                               uint32_t input_count, ops_array **outputs, uint32_t output_count)
{
    if (!graph || (input_count && !inputs) || !outputs) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "ops_graph_launch: %s is null",
                              !graph     ? "graph"
                              : !outputs ? "outputs"
                                         : "inputs");
    }
    if (input_count != graph->input_count || output_count != graph->output_count) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "ops_graph_launch: %u inputs and %u outputs are given, the graph has "
                              "%u and %u",
                              input_count, output_count, graph->input_count, graph->output_count);
    }
    for (uint32_t i = 0; i < input_count; i++) {
        const ops_tensor *wanted = &graph->tensors[i];
        const ops_array *input = inputs[i];
        if (input && (input->context != graph->context || input->view.type != wanted->type ||
                      !ops_same_shape(&input->view, wanted))) {
            char text[2][OPS_TEXT_BYTES];
            return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                                  "ops_graph_launch: inputs[%u] is %s%s, %s was recorded", i,
                                  ops_describe(&input->view, text[0]),
                                  input->context == graph->context ? "" : " of another context",
                                  ops_describe(wanted, text[1]));
        }
    }
    return HAL_OK;
}

static hal_status make_outputs(const ops_graph *graph, ops_array **outputs)
{
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const ops_tensor *wanted = &graph->tensors[graph->input_count + i];
        uint64_t bytes =
            (uint64_t)ops_tensor_get_element_count(wanted) * hal_type_size(wanted->type);
        hal_buffer *buffer = NULL;
        hal_status status = hal_buffer_create(graph->context->device, HAL_MEMORY_DEVICE,
                                              bytes ? bytes : 4, &buffer);
        outputs[i] = status ? NULL : ops_array_new(graph->context);
        if (!outputs[i]) {
            hal_buffer_release(buffer);
            while (i-- > 0) {
                ops_array_release(outputs[i]);
                outputs[i] = NULL;
            }
            return status ? status : HAL_ERROR_OUT_OF_MEMORY;
        }
        ops_array_shape(outputs[i], wanted->type, wanted->rank, wanted->shape);
        outputs[i]->view.buffer = buffer;
        graph->buffers[graph->input_count + i] = buffer;
    }
    return HAL_OK;
}

hal_status ops_graph_begin(ops_context *context)
{
    struct ops_arrays *arrays = context ? ops_arrays_of(context) : NULL;
    if (!arrays) {
        return context
                   ? HAL_ERROR_OUT_OF_MEMORY
                   : hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "ops_graph_begin: context is null");
    }
    /* What is computed late would be recorded in the graph, and not be there without it. */
    hal_status status = HAL_OK;
    for (ops_slab *slab = arrays->slabs; slab && !arrays->recording; slab = slab->next) {
        for (uint32_t i = 0; i < OPS_SLAB_ARRAYS && !status; i++) {
            ops_array *array = &slab->arrays[i];
            if (array->state == OPS_ARRAY_DEFERRED && array->holders > 0) {
                status = ops_evaluate(&array, 1);
            }
        }
    }
    if (!status) {
        status = hal_graph_begin(context->queue);
    }
    if (!status) {
        arrays->recording = 1;
        arrays->generation++;
    }
    return status;
}

hal_status ops_graph_end(ops_context *context, ops_array *const *inputs, uint32_t input_count,
                         ops_array *const *outputs, uint32_t output_count, ops_graph **graph)
{
    if (!context || !context->arrays || !context->arrays->recording) {
        return hal_status_set(
            context ? HAL_ERROR_INVALID_STATE : HAL_ERROR_INVALID_ARGUMENT, "ops_graph_end: %s",
            context ? "no graph is being recorded; call ops_graph_begin first" : "context is null");
    }
    hal_status status = check_end(context, inputs, input_count, outputs, output_count, graph);
    ops_array **whole = calloc(output_count ? output_count : 1, sizeof *whole);
    if (!status && !whole) {
        status = hal_status_set(HAL_ERROR_OUT_OF_MEMORY, "ops_graph_end: no host memory");
    }
    if (!status) {
        status = settle_outputs(context, outputs, output_count, whole);
    }
    if (!status) {
        status = finish(context, inputs, input_count, whole, output_count, graph);
    } else {
        char cause[512];
        strncpy(cause, hal_status_message(), sizeof cause - 1);
        cause[sizeof cause - 1] = 0;
        ops_graph_drop(context);
        hal_status_set(status, "%s", cause);
    }
    for (uint32_t i = 0; whole && i < output_count; i++) {
        ops_array_release(whole[i]);
    }
    free(whole);
    end_recording(context);
    return status;
}

hal_status ops_graph_launch(ops_graph *graph, ops_array *const *inputs, uint32_t input_count,
                            ops_array **outputs, uint32_t output_count)
{
    hal_status status = check_launch(graph, inputs, input_count, outputs, output_count);
    for (uint32_t i = 0; i < input_count && !status; i++) {
        ops_tensor tensor = {0};
        if (inputs[i]) {
            status = ops_array_get_tensor(inputs[i], &tensor);
        }
        if (!status && inputs[i] && !is_whole(inputs[i])) {
            status = hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                                    "ops_graph_launch: inputs[%u] does not lie in one piece from "
                                    "the beginning of its memory; make a copy of the view with "
                                    "ops_array_unary(OPS_IDENTITY, ...)",
                                    i);
        }
        graph->buffers[i] = tensor.buffer;
    }
    if (!status) {
        status = make_outputs(graph, outputs);
    }
    if (status) {
        return status;
    }
    status = hal_graph_launch(graph->context->queue, graph->graph, graph->buffers,
                              input_count + output_count);
    for (uint32_t i = 0; i < output_count && status; i++) {
        ops_array_release(outputs[i]);
        outputs[i] = NULL;
    }
    return status;
}

void ops_graph_destroy(ops_graph *graph)
{
    if (graph) {
        hal_graph_destroy(graph->graph);
        free(graph->tensors);
        free(graph->buffers);
        free(graph);
    }
}

hal_status ops_prepare(ops_context *context,
                       hal_status (*program)(ops_context *context, void *user), void *user)
{
    if (!program) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT, "ops_prepare: program is null");
    }
    hal_status status = ops_graph_begin(context);
    if (status) {
        return status;
    }
    status = program(context, user);
    hal_status ended = ops_graph_drop(context);
    end_recording(context);
    return status ? status : ended;
}

hal_status ops_graph_drop(ops_context *context)
{
    hal_graph *dropped = NULL;
    hal_status status = hal_graph_end(context->queue, NULL, 0, &dropped);
    hal_graph_destroy(dropped);
    return status;
}
