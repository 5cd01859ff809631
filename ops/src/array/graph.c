/* Graphs over arrays: a hal graph whose slots are the memory of arrays. */
#include "deferred.h"
#include "execute.h"
#include "horizontal.h"
#include "tensor/compile_ahead.h"

#include <ops/graph.h>

#include <stdio.h>
#include <stdlib.h>

struct ops_graph {
    ops_memory_holder holder; /* of the arrays that the recording reads */
    ops_arrays *arrays;
    hal_graph *graph;
    uint32_t input_count, output_count;
    ops_tensor *tensors;  /* inputs, then outputs, as recorded; without references */
    hal_buffer **buffers; /* of a launch; scratch */
};

static uint64_t view_bytes(const ops_tensor *view)
{
    return (uint64_t)ops_tensor_get_element_count(view) * hal_type_size(view->type);
}

static bool starts_its_buffer(const ops_array *array)
{
    return array->view.offset == 0 && ops_is_dense(&array->view);
}

/* The first rows of a larger array do not fill it: a launch brings memory of their own size. */
static bool fills_its_buffer(const ops_array *array)
{
    const uint64_t bytes = view_bytes(&array->view);
    return starts_its_buffer(array) &&
           hal_buffer_get_bytes(array->view.buffer) == (bytes ? bytes : 4);
}

/* What is wrong with an input of a recording, or null. */
static const char *input_fault(const ops_arrays *arrays, const ops_array *input)
{
    if (!input) {
        return "null";
    }
    if (input->owner != arrays) {
        return "one of another context";
    }
    if (input->state != OPS_NODE_MEMORY || input->recording == arrays->recording) {
        return "one that was made during the recording";
    }
    if (input->operation == OPS_OPERATION_CONSTANT) {
        return "a constant, whose memory others share; use ops_array_from_host or ops_array_copy";
    }
    if (ops_tensor_get_element_count(&input->view) == 0) {
        return "one without elements, which no kernel reads";
    }
    return fills_its_buffer(input) ? NULL : "a view of a larger array; use ops_array_copy";
}

static hal_status check_outputs(const ops_arrays *arrays, ops_array *const *outputs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const ops_array *output = outputs[i];
        if (!output) {
            char argument[24];
            snprintf(argument, sizeof argument, "outputs[%u]", i);
            return ops_report_null_array("ops_graph_end", argument);
        }
        if (output->owner != arrays || output->recording != arrays->recording) {
            return ops_invalid("ops_graph_end: outputs[%u]: expected an array that was made during "
                               "the recording, got one %s",
                               i,
                               output->owner == arrays ? "from before it" : "of another context");
        }
    }
    return HAL_OK;
}

static hal_status check_end(const ops_arrays *arrays, ops_array *const *inputs,
                            uint32_t input_count, ops_array *const *outputs, uint32_t output_count,
                            ops_graph **graph)
{
    if (!graph || (input_count && !inputs) || (output_count && !outputs)) {
        return ops_invalid("ops_graph_end: %s: expected a pointer, got null",
                           !graph                     ? "graph"
                           : (input_count && !inputs) ? "inputs"
                                                      : "outputs");
    }
    if (!output_count) {
        return ops_invalid("ops_graph_end: output_count: expected at least 1, got 0");
    }
    for (uint32_t i = 0; i < input_count; i++) {
        if (inputs[i] && inputs[i]->state == OPS_NODE_LOST) {
            ops_refuse_operands("ops_graph_end", inputs + i, 1);
            return HAL_ERROR_INVALID_STATE;
        }
        const char *fault = input_fault(arrays, inputs[i]);
        if (fault) {
            return ops_invalid("ops_graph_end: inputs[%u]: expected an array that was made before "
                               "the recording and fills its memory, got %s",
                               i, fault);
        }
        for (uint32_t j = 0; j < i; j++) {
            if (inputs[j]->view.buffer == inputs[i]->view.buffer) {
                return ops_invalid("ops_graph_end: inputs[%u]: expected an array that is given "
                                   "once, got the memory of inputs[%u]",
                                   i, j);
            }
        }
    }
    return check_outputs(arrays, outputs, output_count);
}

/* Computes the outputs, each alone in its buffer, and returns references to them in `owned`. */
static hal_status compute_outputs(ops_array *const *outputs, uint32_t count, ops_array **owned)
{
    hal_status status = ops_execute(outputs, count);
    for (uint32_t i = 0; i < count && status == HAL_OK; i++) {
        ops_array *output = outputs[i];
        bool is_own = fills_its_buffer(output) && output->operation != OPS_OPERATION_NONE &&
                      output->operation != OPS_OPERATION_CONSTANT;
        for (uint32_t j = 0; j < i; j++) {
            is_own = is_own && owned[j]->view.buffer != output->view.buffer;
        }
        if (is_own) {
            owned[i] = ops_array_retain(output);
            continue;
        }
        owned[i] = ops_array_keep(ops_array_copy(output));
        status = owned[i] ? ops_execute(&owned[i], 1) : HAL_ERROR_OUT_OF_MEMORY;
    }
    return status;
}

static ops_graph *graph_create(ops_arrays *arrays, uint32_t input_count, uint32_t output_count)
{
    ops_graph *graph = calloc(1, sizeof *graph);
    if (!graph) {
        return NULL;
    }
    /* The batch in recording was empty when the recording of the graph began. */
    ops_memory_holder_add(&graph->holder, arrays, ops_arrays_batch(arrays) - 1);
    graph->arrays = arrays;
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
static hal_status graph_finish(ops_arrays *arrays, ops_array *const *inputs, uint32_t input_count,
                               ops_array *const *outputs, uint32_t output_count, ops_graph **graph)
{
    ops_graph *made = graph_create(arrays, input_count, output_count);
    if (!made) {
        ops_arrays_cancel_recording(arrays);
        return hal_status_set(HAL_ERROR_OUT_OF_MEMORY,
                              "ops_graph_end: the host has no memory for a graph");
    }
    for (uint32_t i = 0; i < input_count + output_count; i++) {
        const ops_array *array = i < input_count ? inputs[i] : outputs[i - input_count];
        made->tensors[i] = array->view;
        made->buffers[i] = array->view.buffer;
    }
    hal_status status = hal_graph_end(arrays->context->queue, made->buffers,
                                      input_count + output_count, &made->graph);
    if (status == HAL_ERROR_INVALID_ARGUMENT) {
        /* hal's slots are the inputs, then the outputs. */
        hal_status_set(status,
                       "ops_graph_end: inputs: expected different arrays that the recording reads, "
                       "got others (slots[i] is inputs[i]): %s",
                       hal_status_message());
    }
    if (status != HAL_OK) {
        ops_graph_destroy(made);
        return status;
    }
    *graph = made;
    return HAL_OK;
}

/* Makes all nodes of the recording void. */
static void arrays_end_recording(ops_arrays *arrays)
{
    arrays->is_recording = 0;
    for (ops_slab *slab = arrays->slabs; slab; slab = slab->next) {
        for (uint32_t i = 0; i < OPS_SLAB_NODES; i++) {
            ops_array *node = &slab->nodes[i];
            if (node->state == OPS_NODE_FREE || node->recording != arrays->recording) {
                continue;
            }
            ops_node_empty(node, OPS_NODE_VOID);
        }
    }
}

static hal_status check_launch(const ops_graph *graph, ops_array *const *inputs,
                               uint32_t input_count, ops_array **outputs, uint32_t output_count)
{
    if (!graph || (input_count && !inputs) || !outputs) {
        return ops_invalid("ops_graph_launch: %s: expected a pointer, got null", !graph ? "graph"
                                                                                 : !outputs
                                                                                     ? "outputs"
                                                                                     : "inputs");
    }
    if (input_count != graph->input_count || output_count != graph->output_count) {
        return ops_invalid(
            "ops_graph_launch: inputs and outputs: expected %u and %u, as recorded, got %u and %u",
            graph->input_count, graph->output_count, input_count, output_count);
    }
    for (uint32_t i = 0; i < input_count; i++) {
        const ops_tensor *wanted = &graph->tensors[i];
        const ops_array *input = inputs[i];
        if (input && (input->owner != graph->arrays || input->view.type != wanted->type ||
                      !ops_same_shape(&input->view, wanted))) {
            char text[2][OPS_TEXT_BYTES];
            return ops_invalid("ops_graph_launch: inputs[%u]: expected %s, as recorded, got %s%s",
                               i, ops_describe(wanted, text[0]),
                               ops_describe(&input->view, text[1]),
                               input->owner == graph->arrays ? "" : " of another context");
        }
    }
    return HAL_OK;
}

/* Computes an input and returns a reference to the buffer that it starts: of a view, and of an
 * array in another order than the recorded one, the buffer of a copy. */
static hal_status get_input_buffer(ops_array *input, const ops_tensor *recorded,
                                   hal_buffer **buffer)
{
    HAL_TRY(ops_check_operands("ops_graph_launch", &input, 1) ? ops_execute(&input, 1)
                                                              : HAL_ERROR_INVALID_STATE);
    if (starts_its_buffer(input) && ops_same_strides(&input->view, recorded)) {
        *buffer = hal_buffer_retain(input->view.buffer);
        return HAL_OK;
    }
    ops_array *copy = ops_copy_like(input, recorded);
    if (!copy) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    hal_status status = ops_execute(&copy, 1);
    if (status == HAL_OK) {
        *buffer = hal_buffer_retain(copy->view.buffer);
    }
    ops_array_release(copy);
    return status;
}

static void release_outputs(ops_array **outputs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        ops_array_release(outputs[i]);
        outputs[i] = NULL;
    }
}

static hal_status create_outputs(const ops_graph *graph, ops_array **outputs)
{
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const ops_tensor *wanted = &graph->tensors[graph->input_count + i];
        const uint64_t bytes = view_bytes(wanted);
        hal_buffer *buffer = NULL;
        hal_status status = hal_buffer_create(graph->arrays->context->device, HAL_MEMORY_DEVICE,
                                              bytes ? bytes : 4, &buffer);
        outputs[i] = status != HAL_OK ? NULL : ops_node_create(graph->arrays);
        if (!outputs[i]) {
            hal_buffer_release(buffer);
            release_outputs(outputs, i);
            return status != HAL_OK ? status : HAL_ERROR_OUT_OF_MEMORY;
        }
        ops_node_set_view(outputs[i], wanted);
        outputs[i]->view.buffer = buffer;
        graph->buffers[graph->input_count + i] = buffer;
    }
    return HAL_OK;
}

hal_status ops_graph_begin(ops_context *context)
{
    ops_arrays *arrays = ops_arrays_make(context, "ops_graph_begin");
    if (!arrays) {
        return context ? HAL_ERROR_OUT_OF_MEMORY : HAL_ERROR_INVALID_ARGUMENT;
    }
    ops_arrays_note_losses(arrays);
    /* Older work that is executed during the recording would be a part of the graph alone. */
    hal_status status = HAL_OK;
    for (ops_slab *slab = arrays->slabs; slab && !arrays->is_recording; slab = slab->next) {
        for (uint32_t i = 0; i < OPS_SLAB_NODES && status == HAL_OK; i++) {
            ops_array *node = &slab->nodes[i];
            if (node->state == OPS_NODE_DEFERRED && node->references > 0) {
                status = ops_execute(&node, 1);
            }
        }
    }
    if (status == HAL_OK && !arrays->is_recording) { /* inputs fill their buffers */
        status = ops_arrays_unshare_buffers(arrays);
    }
    if (status == HAL_OK) { /* which returns failures of kernels that are compiled ahead */
        status = hal_queue_flush(context->queue, NULL);
    }
    if (status == HAL_OK) { /* forgets them: they are not the graph's */
        status = ops_compile_ahead_collect(context);
    }
    if (status == HAL_OK) {
        status = hal_graph_begin(context->queue);
    }
    if (status == HAL_OK) {
        arrays->is_recording = 1;
        arrays->recording++;
    }
    return status;
}

hal_status ops_graph_end(ops_context *context, ops_array *const *inputs, uint32_t input_count,
                         ops_array *const *outputs, uint32_t output_count, ops_graph **graph)
{
    if (!context) {
        return ops_invalid("ops_graph_end: context: expected a context, got null");
    }
    ops_arrays *arrays = ops_arrays_of(context);
    if (!arrays || !arrays->is_recording) {
        return hal_status_set(HAL_ERROR_INVALID_STATE,
                              "ops_graph_end: context: expected a recording, got none; call "
                              "ops_graph_begin first");
    }
    hal_status status = check_end(arrays, inputs, input_count, outputs, output_count, graph);
    ops_array **owned = calloc(output_count ? output_count : 1, sizeof *owned);
    if (status == HAL_OK && !owned) {
        status =
            hal_status_set(HAL_ERROR_OUT_OF_MEMORY,
                           "ops_graph_end: the host has no memory for %u outputs", output_count);
    }
    if (status == HAL_OK) {
        status = compute_outputs(outputs, output_count, owned);
    }
    if (status == HAL_OK) {
        status = ops_compile_ahead_wait(context);
    }
    if (status == HAL_OK) {
        status = graph_finish(arrays, inputs, input_count, owned, output_count, graph);
    } else {
        char cause[512];
        snprintf(cause, sizeof cause, "%s", hal_status_message());
        ops_arrays_cancel_recording(arrays);
        hal_status_set(status, "%s", cause);
    }
    for (uint32_t i = 0; owned && i < output_count; i++) {
        ops_array_release(owned[i]);
    }
    free(owned);
    arrays_end_recording(arrays);
    return status;
}

hal_status ops_graph_launch(ops_graph *graph, ops_array *const *inputs, uint32_t input_count,
                            ops_array **outputs, uint32_t output_count)
{
    HAL_TRY(check_launch(graph, inputs, input_count, outputs, output_count));
    HAL_TRY(ops_memory_holder_check(&graph->holder, "ops_graph_launch", "graph"));
    hal_status status = HAL_OK;
    uint32_t bound = 0; /* inputs whose buffer is retained */
    for (; bound < input_count && status == HAL_OK; bound += status == HAL_OK) {
        graph->buffers[bound] = NULL;
        if (inputs[bound]) {
            status =
                get_input_buffer(inputs[bound], &graph->tensors[bound], &graph->buffers[bound]);
        }
    }
    if (status == HAL_OK) {
        status = create_outputs(graph, outputs);
    }
    if (status == HAL_OK) {
        status = hal_graph_launch(graph->arrays->context->queue, graph->graph, graph->buffers,
                                  input_count + output_count);
        if (status != HAL_OK) {
            release_outputs(outputs, output_count);
            ops_arrays_failed(graph->arrays, status);
        }
    }
    for (uint32_t i = 0; i < output_count && status == HAL_OK; i++) {
        outputs[i]->batch = ops_arrays_batch(graph->arrays);
    }
    while (bound > 0) {
        hal_buffer_release(graph->buffers[--bound]);
    }
    return status;
}

void ops_graph_destroy(ops_graph *graph)
{
    if (graph) {
        ops_memory_holder_remove(&graph->holder);
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
        return ops_invalid("ops_prepare: program: expected a function, got null");
    }
    HAL_TRY(ops_graph_begin(context));
    hal_status status = program(context, user);
    hal_status ended = ops_arrays_cancel_recording(ops_arrays_of(context));
    arrays_end_recording(ops_arrays_of(context));
    ended = status == HAL_OK && ended == HAL_OK ? ops_compile_ahead_wait(context) : ended;
    return status != HAL_OK ? status : ended;
}
