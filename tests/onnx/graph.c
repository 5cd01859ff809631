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
    onnx_call call = {
        .context = context, .item = item, .node = node, .values = values, .version = item->version};
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

static onnx_verdict nodes_run(ops_context *context, const onnx_case *item, const onnx_graph *graph,
                              ops_array **values, char *reason, size_t bytes)
{
    if (!values_make(context, graph->initialisers, graph->initialiser_count, values)) {
        snprintf(reason, bytes, "an initialiser: %s", hal_status_message());
        return ONNX_NOT_COVERED;
    }
    onnx_verdict verdict = ONNX_PASS;
    for (uint32_t i = 0; i < graph->node_count && verdict == ONNX_PASS; i++) {
        verdict = node_run(context, item, &graph->nodes[i], values, reason, bytes);
    }
    return verdict;
}

/* With the scope of the case open. */
static onnx_verdict case_run(ops_context *context, const onnx_case *item, ops_array **values,
                             char *reason, size_t bytes)
{
    if (!values_make(context, item->inputs, item->input_count, values)) {
        snprintf(reason, bytes, "an input: %s", hal_status_message());
        return ONNX_NOT_COVERED;
    }
    onnx_verdict verdict = nodes_run(context, item, &item->graphs[0], values, reason, bytes);
    for (uint32_t i = 0, failed = verdict != ONNX_PASS; i < item->output_count && !failed; i++) {
        const onnx_tensor *expected = &item->outputs[i];
        const onnx_verdict one = onnx_compare(values[expected->value], expected, item->relative,
                                              item->absolute, reason, bytes);
        verdict = one != ONNX_PASS ? one : verdict;
        failed = one == ONNX_FAIL;
    }
    return verdict;
}

const onnx_graph *onnx_graph_of(onnx_call *call, const char *attribute)
{
    const onnx_attribute *found = onnx_find(call, attribute);
    if (!found || found->kind != 'g' || (uint64_t)found->integer >= call->item->graph_count) {
        onnx_skip(call, "no graph %s", attribute);
        return NULL;
    }
    return &call->item->graphs[found->integer];
}

bool onnx_graph_call(onnx_call *call, const onnx_graph *graph, ops_array *const *inputs,
                     ops_array **outputs)
{
    char reason[sizeof call->skipped] = "";
    for (uint32_t i = 0; i < graph->input_count; i++) {
        call->values[graph->inputs[i]] = inputs[i];
    }
    const onnx_verdict verdict =
        nodes_run(call->context, call->item, graph, call->values, reason, sizeof reason);
    if (verdict == ONNX_NOT_COVERED) {
        onnx_skip(call, "%s", reason);
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        outputs[i] = verdict == ONNX_PASS ? call->values[graph->outputs[i]] : NULL;
    }
    return verdict == ONNX_PASS;
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
    const onnx_verdict verdict = case_run(context, item, values, reason, bytes);
    ops_scope_end(context);
    free(values);
    return verdict;
}
