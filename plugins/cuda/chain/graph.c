/* Executable graphs of kernel nodes, see chain/graph.h. */
#include "chain/graph.h"

#include <stdlib.h>
#include <string.h>

static cuda_node_launch launch_of(const hal_command *command, const cuda_arguments *arguments)
{
    const hal_plugin_kernel *kernel = command->kernel;
    cuda_node_launch launch = {.function = kernel->function,
                               .shared_bytes = kernel->dynamic_shared,
                               .parameters = arguments->parameters,
                               .extra = arguments->extra};
    cuda_kernel_grid(command, launch.grid);
    memcpy(launch.group, kernel->group, sizeof launch.group);
    return launch;
}

/* With an early start the node begins when every group of the node before it has ended or has no
 * work left to start; the kernel's own wait makes the writes of that node visible. */
static cuda_result node_add(cuda_chain_graph *graph, uint32_t index, const cuda_node_launch *launch)
{
    const cuda_driver *cu = cuda_functions();
    const cuda_node *previous = index ? &graph->nodes[index - 1].node : NULL;
    cuda_node *node = &graph->nodes[index].node;
    if (!graph->early_start || !previous) {
        return cu->cuGraphAddKernelNode(node, graph->graph, previous, previous != NULL, launch);
    }
    const cuda_edge edge = {.from_port = CUDA_PORT_PROGRAMMATIC, .type = CUDA_EDGE_PROGRAMMATIC};
    const cuda_result result = cu->cuGraphAddKernelNode(node, graph->graph, NULL, 0, launch);
    return result ? result : cu->cuGraphAddDependencies_v2(graph->graph, previous, node, &edge, 1);
}

/* Notes what a node holds. Without memory the node stays unknown, and is written again next
 * time. */
static void node_note(cuda_graph_node *node, const hal_command *command, const uint8_t *parameters,
                      uint32_t bytes)
{
    if (node->capacity < bytes || !node->parameters) {
        uint8_t *grown = realloc(node->parameters, bytes + 1);
        if (!grown) {
            return;
        }
        node->parameters = grown;
        node->capacity = bytes;
    }
    memcpy(node->parameters, parameters, bytes);
    memcpy(node->grid, command->grid, sizeof node->grid);
    node->bytes = bytes;
    node->kernel = command->kernel->serial;
}

static hal_status node_set(const hal_plugin_queue *queue, const cuda_chain_graph *graph,
                           uint32_t index, const hal_batch *batch, const hal_command *command,
                           bool *changed)
{
    cuda_arguments arguments;
    cuda_graph_node *node = &graph->nodes[index];
    cuda_kernel_arguments(queue, batch, command, &arguments);
    if (node->kernel == command->kernel->serial && node->bytes == arguments.bytes &&
        memcmp(node->grid, command->grid, sizeof node->grid) == 0 &&
        memcmp(node->parameters, arguments.block, arguments.bytes) == 0) {
        return HAL_OK;
    }
    const cuda_node_launch launch = launch_of(command, &arguments);
    node->kernel = 0; /* unknown, if the driver fails */
    *changed = true;
    const cuda_result result =
        cuda_functions()->cuGraphExecKernelNodeSetParams(graph->executable, node->node, &launch);
    if (result != 0) {
        return cuda_check(result, "setting a kernel of a graph");
    }
    node_note(node, command, arguments.block, (uint32_t)arguments.bytes);
    return HAL_OK;
}

/* Enables the first `count` nodes and disables the others. */
static hal_status graph_enable(cuda_chain_graph *graph, uint32_t count)
{
    cuda_result result = 0;
    while (graph->enabled != count && result == 0) {
        const bool more = graph->enabled < count;
        const uint32_t index = more ? graph->enabled : graph->enabled - 1;
        result = cuda_functions()->cuGraphNodeSetEnabled(graph->executable,
                                                         graph->nodes[index].node, more);
        graph->enabled += result != 0 ? 0 : more ? 1 : UINT32_MAX;
    }
    return cuda_check(result, "enabling a kernel of a graph");
}

hal_status cuda_chain_graph_create(const hal_plugin_queue *queue, uint32_t capacity,
                                   bool early_start, const cuda_run *run, cuda_chain_graph *graph)
{
    const cuda_driver *cu = cuda_functions();
    *graph = (cuda_chain_graph){.capacity = capacity,
                                .enabled = capacity,
                                .early_start = early_start,
                                .nodes = calloc(capacity, sizeof *graph->nodes)};
    if (!graph->nodes) {
        *graph = (cuda_chain_graph){.capacity = 0};
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "cuda: no host memory for a graph of %u kernels",
                        capacity);
    }
    cuda_result result = cu->cuGraphCreate(&graph->graph, 0);
    for (uint32_t i = 0; i < capacity && result == 0; i++) {
        const hal_command *command = &run->commands[i < run->count ? i : 0];
        cuda_arguments arguments;
        cuda_kernel_arguments(queue, run->batch, command, &arguments);
        const cuda_node_launch launch = launch_of(command, &arguments);
        result = node_add(graph, i, &launch);
        node_note(&graph->nodes[i], command, arguments.block, (uint32_t)arguments.bytes);
    }
    if (result == 0) {
        result = cu->cuGraphInstantiateWithFlags(&graph->executable, graph->graph, 0);
    }
    if (result != 0) {
        cuda_chain_graph_destroy(graph);
        return cuda_check(result, "building a graph of %u kernels", capacity);
    }
    return HAL_OK;
}

void cuda_chain_graph_destroy(cuda_chain_graph *graph)
{
    if (graph->executable) {
        cuda_functions()->cuGraphExecDestroy(graph->executable);
    }
    if (graph->graph) {
        cuda_functions()->cuGraphDestroy(graph->graph);
    }
    for (uint32_t i = 0; i < graph->capacity; i++) {
        free(graph->nodes[i].parameters);
    }
    free(graph->nodes);
    *graph = (cuda_chain_graph){.capacity = 0};
}

hal_status cuda_chain_graph_set(const hal_plugin_queue *queue, cuda_chain_graph *graph,
                                const cuda_run *run, bool *changed)
{
    hal_status status = HAL_OK;
    *changed = false;
    for (uint32_t i = 0; i < run->count && status == HAL_OK; i++) {
        status = node_set(queue, graph, i, run->batch, &run->commands[i], changed);
    }
    return status == HAL_OK ? graph_enable(graph, run->count) : status;
}
