/* The nodes of a graph in order, each by the mapping of its operator. */
#include "graph.h"

#include "operators.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes the arrays of tensors whose numbers are below `count`. */
static bool values_make(ops_context *context, const onnx_tensor *tensors, uint32_t count,
                        ops_array **values)
{
    bool made = true;
    for (uint32_t i = 0; i < count && made; i++) {
        const onnx_tensor *x = &tensors[i];
        values[x->value] = ops_array_from_host(context, x->type, x->rank, x->shape, x->elements);
        made = values[x->value] != NULL;
    }
    return made;
}

/* Runs one node. Returns PASS unless it is not covered or a call failed. */
static onnx_verdict node_run(ops_context *context, const onnx_case *item, const onnx_node *node,
                             ops_array **values, char *reason, size_t bytes)
{
    onnx_call call = {.context = context, .node = node, .version = item->version};
    const onnx_mapping mapping = onnx_operator_find(node->operator_name);
    if (!mapping) {
        snprintf(reason, bytes, "operator %s", node->operator_name);
        return ONNX_NOT_COVERED;
    }
    if (node->input_count > ONNX_MAX_OPERANDS || node->output_count > ONNX_MAX_OPERANDS) {
        snprintf(reason, bytes, "%s of more than %d operands", node->operator_name,
                 (int)ONNX_MAX_OPERANDS);
        return ONNX_NOT_COVERED;
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        call.x[i] = values[node->inputs[i]];
    }
    mapping(&call);
    if (*call.skipped) {
        snprintf(reason, bytes, "%s: %s", node->operator_name, call.skipped);
        return ONNX_NOT_COVERED;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] && !call.y[i]) {
            snprintf(reason, bytes, "%s: output %u: %s", node->operator_name, i,
                     hal_status_message());
            return ONNX_FAIL;
        }
        values[node->outputs[i]] = call.y[i];
    }
    values[0] = NULL;
    return ONNX_PASS;
}

/* With the scope of the case open. */
static onnx_verdict graph_run(ops_context *context, const onnx_case *item, ops_array **values,
                              char *reason, size_t bytes)
{
    if (!values_make(context, item->initialisers, item->initialiser_count, values) ||
        !values_make(context, item->inputs, item->input_count, values)) {
        snprintf(reason, bytes, "an input: %s", hal_status_message());
        return ONNX_NOT_COVERED;
    }
    for (uint32_t i = 0; i < item->node_count; i++) {
        const onnx_verdict verdict =
            node_run(context, item, &item->nodes[i], values, reason, bytes);
        if (verdict != ONNX_PASS) {
            return verdict;
        }
    }
    onnx_verdict verdict = ONNX_PASS;
    for (uint32_t i = 0; i < item->output_count && verdict != ONNX_FAIL; i++) {
        const onnx_tensor *expected = &item->outputs[i];
        const onnx_verdict one = onnx_compare(values[expected->value], expected, item->relative,
                                              item->absolute, reason, bytes);
        verdict = one != ONNX_PASS ? one : verdict;
    }
    return verdict;
}

onnx_verdict onnx_run(ops_context *context, const onnx_case *item, char *reason, size_t bytes)
{
    if (*item->unwritten) {
        snprintf(reason, bytes, "%s", item->unwritten);
        return ONNX_NOT_COVERED;
    }
    ops_array **values = calloc(item->value_count + 1, sizeof *values);
    if (!values || ops_scope_begin(context)) {
        free(values);
        snprintf(reason, bytes, "no memory");
        return ONNX_FAIL;
    }
    const onnx_verdict verdict = graph_run(context, item, values, reason, bytes);
    ops_scope_end(context);
    free(values);
    return verdict;
}
