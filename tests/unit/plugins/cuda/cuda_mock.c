/* The driver of cuda_mock.h. The plugin finds it where it looks for the real one. */
#include "cuda_mock.h"

#include <cuda/driver.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* Every function as the plugin declares it; what does not agree does not compile. */
#define SYMBOL(name, parameters) EXPORT cuda_result name parameters;
#define OPTIONAL(name, parameters) EXPORT cuda_result name parameters;
#include <cuda/symbols.inl>
#undef SYMBOL
#undef OPTIONAL

enum { NODES = 2048 };

struct CUmod_st {
    struct CUmod_st *self; /* null when it is gone; never freed, so that this can be asked */
    struct CUmod_st *next;
    struct CUfunc_st *function;
    int cluster;
    int traps; /* its kernel ends the context */
};

struct CUfunc_st {
    struct CUmod_st *module;
    int dynamic_shared;
    int cluster; /* groups of a cluster that the kernel asks for; 0: none */
};

struct CUgraphNode_st {
    cuda_mock_launch launch;
    int enabled;
    int cluster;   /* of the last kernel that asked for clusters */
    int was_stale; /* held a kernel when its module was unloaded */
};

struct CUgraph_st {
    struct CUgraphNode_st *nodes[NODES];
    uint32_t count;
};

struct CUevent_st {
    int recorded;
    int untimed;
    uint64_t time;
    cuda_context context;
};

struct CUctx_st {
    char peers[CUDA_MOCK_DEVICES]; /* let into their memory */
};

struct CUstream_st {
    cuda_context context;
};

typedef struct allocation {
    cuda_address address;
    cuda_context context;
} allocation;

extern EXPORT cuda_mock cuda_mock_state;
cuda_mock cuda_mock_state = {.devices = 1, .memory_limit = UINT64_C(140) << 30};
static cuda_mock *const mock = &cuda_mock_state;
static uint64_t clock_ticks;
static cuda_module modules; /* all there ever were */
static struct CUctx_st contexts[CUDA_MOCK_DEVICES];
static _Thread_local cuda_context current[8]; /* the thread's stack */
static _Thread_local int depth;               /* of it */
static pthread_t first_thread;                /* that of the tests */

static struct CUstream_st streams[64]; /* they go with their context, so none is freed */
static uint32_t stream_count;
static allocation allocations[64]; /* the last ones */
static uint32_t allocation_count;

static cuda_context now(void)
{
    return depth > 0 ? current[depth - 1] : NULL;
}

/* The context that memory was allocated in; null where that is not known. */
static cuda_context context_of(cuda_address address)
{
    for (uint32_t i = 0; i < sizeof allocations / sizeof allocations[0]; i++) {
        if (allocations[i].address == address) {
            return allocations[i].context;
        }
    }
    return NULL;
}

static cuda_result write_down(const cuda_mock_launch *launch)
{
    if (mock->fail_with) {
        return mock->fail_with;
    }
    const struct CUfunc_st *function = launch->function;
    mock->stale_functions += !function->module->self;
    if (mock->launch_count < CUDA_MOCK_LAUNCHES) {
        mock->launches[mock->launch_count++] = *launch;
    }
    return 0;
}

/* A list of parameters has no size: the only kernels launched so have one block of 704 bytes at
 * least. */
static void read_block(cuda_mock_launch *launch, void **parameters, void **extra)
{
    if (!extra) {
        launch->bytes = CUDA_MOCK_BLOCK;
        memcpy(launch->block, parameters[0], CUDA_MOCK_BLOCK);
        return;
    }
    launch->bytes = (uint32_t) * (size_t *)extra[3];
    memcpy(launch->block, extra[1], launch->bytes);
}

static void read_node(cuda_node node, const cuda_node_launch *launch)
{
    node->launch.function = launch->function;
    memcpy(node->launch.grid, launch->grid, sizeof launch->grid);
    memcpy(node->launch.group, launch->group, sizeof launch->group);
    node->launch.shared_bytes = launch->shared_bytes;
    node->cluster = launch->function->cluster ? launch->function->cluster : node->cluster;
    read_block(&node->launch, launch->parameters, launch->extra);
}

cuda_result cuInit(unsigned flags)
{
    return mock->init_result;
}

cuda_result cuDriverGetVersion(int *version)
{
    *version = mock->is_old ? 12060 : 13000;
    return 0;
}

cuda_result cuGetErrorName(cuda_result result, const char **name)
{
    *name = result == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OF_THE_MOCK";
    return 0;
}

cuda_result cuGetErrorString(cuda_result result, const char **text)
{
    *text = "words of the mock";
    return 0;
}

cuda_result cuDeviceGetCount(int *count)
{
    *count = mock->devices;
    return 0;
}

cuda_result cuDeviceGet(cuda_device *device, int ordinal)
{
    *device = ordinal;
    return 0;
}

cuda_result cuDeviceGetName(char *name, int bytes, cuda_device device)
{
    strncpy(name, "Mock GPU", (size_t)bytes);
    return 0;
}

cuda_result cuDeviceGetUuid(cuda_uuid *uuid, cuda_device device)
{
    for (int i = 0; i < 16; i++) {
        uuid->bytes[i] = (uint8_t)(0xa0 + i + device);
    }
    return 0;
}

cuda_result cuDeviceTotalMem_v2(size_t *bytes, cuda_device device)
{
    *bytes = mock->memory_limit;
    return 0;
}

cuda_result cuDeviceGetAttribute(int *value, int attribute, cuda_device device)
{
    static const int limits[] = {0, 1024, 1024, 1024, 64, 0x7fffffff, 65535, 65535, 49152};
    *value = attribute <= CUDA_DEVICE_SHARED_PER_BLOCK         ? limits[attribute]
             : attribute == CUDA_DEVICE_MULTIPROCESSORS        ? 132
             : attribute == CUDA_DEVICE_CAPABILITY_MAJOR       ? 9
             : attribute == CUDA_DEVICE_SHARED_PER_BLOCK_OPTIN ? 232448
             : attribute == CUDA_DEVICE_MULTIPROCESSORS        ? 132
             : attribute == CUDA_DEVICE_VIRTUAL_MEMORY         ? !mock->no_virtual_memory
             : attribute == CUDA_DEVICE_STREAM_WRITES_64       ? !mock->no_writes
                                                               : 0;
    return 0;
}

cuda_result cuDeviceCanAccessPeer(int *can, cuda_device device, cuda_device peer)
{
    *can = device != peer && !mock->no_peers;
    return 0;
}

cuda_result cuCtxEnablePeerAccess(cuda_context peer, unsigned flags)
{
    char *enabled = &now()->peers[peer - contexts];
    if (flags != 0 || peer == now() || mock->no_peers || *enabled) {
        return *enabled ? 704 : 1;
    }
    *enabled = 1;
    mock->peers_enabled++;
    return 0;
}

cuda_result cuDevicePrimaryCtxRetain(cuda_context *context, cuda_device device)
{
    if (mock->fail_with != 0) {
        return mock->fail_with; /* as driver 580 does after a failure of any context */
    }
    *context = &contexts[device];
    mock->retained++;
    return 0;
}

cuda_result cuDevicePrimaryCtxRelease_v2(cuda_device device)
{
    memset(&contexts[device], 0, sizeof contexts[device]);
    mock->retained--;
    return 0;
}

__attribute__((constructor)) static void thread_remember(void)
{
    first_thread = pthread_self();
}

static void contexts_count(void)
{
    if (pthread_equal(pthread_self(), first_thread)) {
        mock->contexts = depth;
    }
}

EXPORT int cuda_mock_depth(void)
{
    return depth;
}

cuda_result cuCtxPushCurrent_v2(cuda_context context)
{
    current[depth++] = context;
    contexts_count();
    return 0;
}

cuda_result cuCtxPopCurrent_v2(cuda_context *context)
{
    *context = current[--depth];
    contexts_count();
    return 0;
}

cuda_result cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    *free_bytes = mock->memory_limit - mock->memory;
    *total = mock->memory_limit;
    return mock->fail_with;
}

cuda_result cuMemAlloc_v2(cuda_address *address, size_t bytes)
{
    void *pointer = NULL;
    if (mock->memory + bytes > mock->memory_limit || posix_memalign(&pointer, 256, bytes + 8)) {
        return CUDA_OUT_OF_MEMORY;
    }
    memcpy((char *)pointer + (bytes + 7) / 8 * 8 - (bytes % 8 ? 8 : 0), &(uint64_t){0}, 8);
    mock->live_objects++;
    *address = (uintptr_t)pointer;
    allocations[allocation_count++ % (sizeof allocations / sizeof allocations[0])] =
        (allocation){*address, now()};
    return 0;
}

cuda_result cuMemFree_v2(cuda_address address)
{
    mock->live_objects--;
    free((void *)(uintptr_t)address);
    return 0;
}

enum { CUDA_INVALID_VALUE = 1, CUDA_ALREADY_REGISTERED = 712 };

/* Memory of the host that the driver knows. */
static struct {
    char *first, *end;
} known[64];

static int is_known(const char *pointer)
{
    int at = 0;
    while (at < 64 && !(known[at].first <= pointer && pointer < known[at].end)) {
        at++;
    }
    return at < 64;
}

static cuda_result know(char *first, size_t bytes)
{
    int at = 0;
    while (at < 64 && known[at].end) {
        at++;
    }
    if (at == 64) {
        return CUDA_OUT_OF_MEMORY;
    }
    known[at].first = first;
    known[at].end = first + bytes;
    mock->live_objects++;
    return 0;
}

static cuda_result forget(const void *pointer)
{
    for (int at = 0; at < 64; at++) {
        if (known[at].first == pointer && known[at].end) {
            known[at].first = known[at].end = NULL;
            mock->live_objects--;
            return 0;
        }
    }
    return CUDA_INVALID_VALUE;
}

cuda_result cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
    return posix_memalign(pointer, 4096, bytes) ? CUDA_OUT_OF_MEMORY : know(*pointer, bytes);
}

cuda_result cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned flags)
{
    const int read_only = (flags & 8) != 0;
    if (!pointer || bytes == 0 || mock->read_only_pages > read_only) {
        return CUDA_INVALID_VALUE;
    }
    for (size_t at = 0; at < bytes; at += 4096) {
        if (is_known((char *)pointer + at)) {
            return CUDA_ALREADY_REGISTERED;
        }
    }
    return know(pointer, bytes);
}

cuda_result cuMemHostUnregister(void *pointer)
{
    return forget(pointer);
}

cuda_result cuMemFreeHost(void *pointer)
{
    const cuda_result result = forget(pointer);
    free(pointer);
    return result;
}

cuda_result cuMemHostGetDevicePointer_v2(cuda_address *address, void *pointer, unsigned flags)
{
    *address = (uintptr_t)pointer;
    return is_known(pointer) ? 0 : CUDA_INVALID_VALUE;
}

cuda_result cuMemcpyAsync(cuda_address to, cuda_address from, size_t bytes, cuda_stream stream)
{
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return 0;
}

/* Refuses contexts that are not those of the memory, as far as it is the beginning of a piece. */
cuda_result cuMemcpyPeerAsync(cuda_address to, cuda_context to_context, cuda_address from,
                              cuda_context from_context, size_t bytes, cuda_stream stream)
{
    const cuda_context to_own = context_of(to), from_own = context_of(from);
    if (mock->fail_with) {
        return mock->fail_with;
    }
    if ((to_own && to_own != to_context) || (from_own && from_own != from_context) ||
        to_context == from_context || stream->context != now()) {
        return 1;
    }
    mock->peer_copies++;
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return 0;
}

/* As the driver does, it refuses rows that are longer than their pitch. */
cuda_result cuMemcpy2DAsync_v2(const cuda_rows *rows, cuda_stream stream)
{
    if (rows->source.kind != CUDA_MEMORY_UNIFIED || rows->target.kind != CUDA_MEMORY_UNIFIED ||
        rows->source.pitch < rows->width || rows->target.pitch < rows->width) {
        return 1;
    }
    for (size_t i = 0; i < rows->height; i++) {
        memcpy((void *)(uintptr_t)(rows->target.address + i * rows->target.pitch),
               (const void *)(uintptr_t)(rows->source.address + i * rows->source.pitch),
               rows->width);
    }
    return 0;
}

cuda_result cuMemsetD8Async(cuda_address to, unsigned char value, size_t count, cuda_stream stream)
{
    memset((void *)(uintptr_t)to, value, count);
    return 0;
}

/* As the driver does, it refuses what is not aligned. */
cuda_result cuMemsetD32Async(cuda_address to, unsigned value, size_t count, cuda_stream stream)
{
    for (size_t i = 0; i < count && to % 4 == 0; i++) {
        ((uint32_t *)(uintptr_t)to)[i] = value;
    }
    return to % 4 ? 1 : 0;
}

/* As the driver does, it refuses what is not aligned. */
cuda_result cuMemsetD2D32Async(cuda_address to, size_t pitch, unsigned value, size_t width,
                               size_t height, cuda_stream stream)
{
    const int is_aligned = to % 4 == 0 && pitch % 4 == 0 && pitch >= 4 * width;
    for (size_t i = 0; i < width * height && is_aligned; i++) {
        ((uint32_t *)(uintptr_t)(to + i / width * pitch))[i % width] = value;
    }
    return is_aligned ? 0 : 1;
}

cuda_result cuStreamCreate(cuda_stream *stream, unsigned flags)
{
    mock->streams++;
    *stream = &streams[stream_count++ % (sizeof streams / sizeof streams[0])];
    (*stream)->context = now();
    return 0;
}

cuda_result cuStreamDestroy_v2(cuda_stream stream)
{
    mock->streams--;
    return 0;
}

static cuda_address late_address; /* of a counter */
static uint64_t late_value;

cuda_result cuStreamQuery(cuda_stream stream)
{
    if (mock->late_writes == 2) {
        *(volatile uint64_t *)(uintptr_t)late_address = late_value;
        mock->late_writes = 1;
        return CUDA_NOT_READY;
    }
    return mock->fail_with ? mock->fail_with : mock->hold ? CUDA_NOT_READY : 0;
}

cuda_result cuStreamSynchronize(cuda_stream stream)
{
    mock->held_waits += mock->hold;
    return 0;
}

cuda_result cuStreamWaitEvent(cuda_stream stream, cuda_event event, unsigned flags)
{
    mock->event_waits++;
    mock->foreign_waits += event->context != stream->context;
    return event->recorded ? 0 : 1;
}

cuda_result cuStreamWriteValue64_v2(cuda_stream stream, cuda_address address, uint64_t value,
                                    unsigned flags)
{
    mock->writes++;
    if (mock->late_writes) {
        late_address = address;
        late_value = value;
        mock->late_writes = 2;
    } else if (!mock->hold && !mock->fail_with) { /* a context that has ended runs nothing */
        *(volatile uint64_t *)(uintptr_t)address = value;
    }
    return 0;
}

cuda_result cuEventCreate(cuda_event *event, unsigned flags)
{
    if (mock->event_result) {
        return mock->event_result;
    }
    mock->live_objects++;
    *event = calloc(1, sizeof **event);
    (*event)->context = now();
    (*event)->untimed = flags == CUDA_EVENT_UNTIMED;
    return 0;
}

cuda_result cuEventDestroy_v2(cuda_event event)
{
    mock->live_objects--;
    free(event);
    return 0;
}

cuda_result cuEventRecord(cuda_event event, cuda_stream stream)
{
    if (event->context != stream->context) {
        return 1;
    }
    event->recorded = 1;
    event->time = ++clock_ticks;
    return 0;
}

/* As the driver, it calls an event reached that was never recorded. */
cuda_result cuEventQuery(cuda_event event)
{
    if (mock->late_event > 0) {
        mock->late_event--;
        return CUDA_NOT_READY;
    }
    return mock->fail_with ? mock->fail_with : mock->hold && event->recorded ? CUDA_NOT_READY : 0;
}

cuda_result cuEventSynchronize(cuda_event event)
{
    mock->event_synchronized++;
    return mock->fail_with;
}

cuda_result cuEventElapsedTime(float *milliseconds, cuda_event first, cuda_event second)
{
    *milliseconds = (float)(second->time - first->time);
    if (first->untimed || second->untimed) {
        return 400;
    }
    return mock->late_event > 0 ? CUDA_NOT_READY : 0;
}

cuda_result cuLinkCreate_v2(unsigned count, const int *options, void **values, cuda_linker *linker)
{
    mock->assembler_level = 4;
    for (unsigned i = 2; i < count; i++) {
        if (options[i] == CUDA_JIT_OPTIMIZATION_LEVEL) {
            mock->assembler_level = (uint32_t)(uintptr_t)values[i];
        }
    }
    *linker = calloc(1, 64);
    return *linker ? 0 : CUDA_OUT_OF_MEMORY;
}

/* The machine code is the text. */
cuda_result cuLinkAddData_v2(cuda_linker linker, int kind, void *data, size_t bytes,
                             const char *name, unsigned count, const int *options, void **values)
{
    char **text = (char **)(void *)linker;
    mock->linked++;
    *text = malloc(bytes);
    if (!*text || kind != CUDA_INPUT_PTX || ((const char *)data)[bytes - 1] != 0) {
        return CUDA_INVALID_PTX;
    }
    memcpy(*text, data, bytes);
    return 0;
}

cuda_result cuLinkComplete(cuda_linker linker, void **cubin, size_t *bytes)
{
    *cubin = *(char **)(void *)linker;
    *bytes = strlen(*cubin) + 1;
    return 0;
}

cuda_result cuLinkDestroy(cuda_linker linker)
{
    free(*(char **)(void *)linker);
    free(linker);
    return 0;
}

cuda_result cuModuleLoadDataEx(cuda_module *module, const void *image, unsigned count,
                               const int *options, void **values)
{
    if (!strstr(image, ".entry")) {
        if (count == 2) {
            strcpy(values[0], "line 1: no entry");
        }
        return CUDA_INVALID_IMAGE;
    }
    mock->loaded++;
    cuda_module made = calloc(1, sizeof *made);
    const char *const cluster = strstr(image, ".reqnctapercluster ");
    made->self = made;
    made->traps = strstr(image, ".entry hal_trap") != NULL;
    mock->live_modules += !made->traps; /* it goes with its context */
    made->cluster = cluster ? atoi(cluster + strlen(".reqnctapercluster ")) : 0;
    made->next = modules;
    modules = made;
    *module = made;
    return 0;
}

cuda_result cuModuleUnload(cuda_module module)
{
    module->self = NULL;
    mock->live_modules--;
    return 0;
}

cuda_result cuModuleGetFunction(cuda_function *function, cuda_module module, const char *name)
{
    if (!module->function) {
        module->function = calloc(1, sizeof *module->function);
        module->function->module = module;
        module->function->cluster = module->cluster;
    }
    *function = module->function;
    return 0;
}

cuda_result cuFuncGetAttribute(int *value, int attribute, cuda_function function)
{
    *value = attribute == CUDA_FUNCTION_CLUSTER_WIDTH ? function->cluster
             : attribute == CUDA_FUNCTION_REGISTERS   ? 40
             : attribute == CUDA_FUNCTION_LOCAL_BYTES ? 16
                                                      : 0;
    return 0;
}

cuda_result cuFuncSetAttribute(cuda_function function, int attribute, int value)
{
    function->dynamic_shared = attribute == CUDA_FUNCTION_MAX_DYNAMIC_SHARED ? value : 0;
    return 0;
}

cuda_result cuLaunchKernel(cuda_function function, unsigned grid_x, unsigned grid_y,
                           unsigned grid_z, unsigned group_x, unsigned group_y, unsigned group_z,
                           unsigned shared, cuda_stream stream, void **parameters, void **extra)
{
    cuda_mock_launch launch = {.function = function,
                               .grid = {grid_x, grid_y, grid_z},
                               .group = {group_x, group_y, group_z},
                               .shared_bytes = shared};
    if (function->module->traps && !mock->fail_with) {
        mock->fail_with = CUDA_LAUNCH_FAILED; /* of all calls after this one */
        return 0;
    }
    read_block(&launch, parameters, extra);
    mock->single_launches++;
    return shared > 49152 && function->dynamic_shared < (int)shared ? 1 : write_down(&launch);
}

cuda_result cuLaunchKernelEx(const cuda_launch_config *config, cuda_function function,
                             void **parameters, void **extra)
{
    const cuda_launch_attribute *early = config->attributes;
    if (config->attribute_count != 1 || early->kind != CUDA_LAUNCH_EARLY || early->value[0] != 1) {
        return 1;
    }
    mock->early_launches++;
    return cuLaunchKernel(function, config->grid[0], config->grid[1], config->grid[2],
                          config->group[0], config->group[1], config->group[2],
                          config->shared_bytes, config->stream, parameters, extra);
}

/* A map is its address, extents, strides and box. As the driver, it wants a current context. */
cuda_result cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address,
                                   const uint64_t *extents, const uint64_t *strides,
                                   const uint32_t *box, const uint32_t *steps, int interleave,
                                   int swizzle, int promotion, int fill)
{
    cuda_mock_map made = {.address = address, .type = type};
    if (depth == 0 || rank < 3 || rank > 4 || steps[0] != 1 || interleave != 0 || swizzle != 3 ||
        promotion != 3 || fill != 0) {
        return 1;
    }
    for (uint32_t i = 0; i < rank; i++) {
        made.extents[i] = extents[i];
        made.box[i] = box[i];
        if (extents[i] == 0 || box[i] == 0 || box[i] > 256) {
            return 1;
        }
    }
    for (uint32_t i = 0; i + 1 < rank; i++) {
        made.strides[i] = strides[i];
        if (strides[i] == 0 || strides[i] % 16 != 0 || strides[i] >= UINT64_C(1) << 40) {
            return 1;
        }
    }
    memcpy(map, &made, sizeof made);
    return 0;
}

cuda_result cuTensorMapReplaceAddress(void *map, void *address)
{
    memcpy(map, &address, sizeof address);
    return (uintptr_t)map % 64 == 0 && (uintptr_t)address % 16 == 0 ? 0 : 1;
}

cuda_result cuOccupancyMaxActiveClusters(int *count, cuda_function function,
                                         const cuda_launch_config *config)
{
    *count = 120 / (int)config->attributes[0].value[0]; /* of 132 multiprocessors */
    return config->attribute_count == 1 && config->group[0] == 384 ? 0 : 1;
}

cuda_result cuGraphCreate(cuda_graph *graph, unsigned flags)
{
    mock->live_objects++;
    *graph = calloc(1, sizeof **graph);
    return *graph ? 0 : CUDA_OUT_OF_MEMORY;
}

cuda_result cuGraphDestroy(cuda_graph graph)
{
    mock->live_objects--;
    for (uint32_t i = 0; i < graph->count; i++) {
        free(graph->nodes[i]);
    }
    free(graph);
    return 0;
}

cuda_result cuGraphAddKernelNode(cuda_node *node, cuda_graph graph, const cuda_node *after,
                                 size_t after_count, const cuda_node_launch *launch)
{
    if (after_count > 0 && after[0] != graph->nodes[graph->count - 1]) {
        return 1; /* the test has chains only */
    }
    *node = calloc(1, sizeof **node);
    (*node)->enabled = 1;
    read_node(*node, launch);
    graph->nodes[graph->count++] = *node;
    return 0;
}

cuda_result cuGraphAddDependencies_v2(cuda_graph graph, const cuda_node *from, const cuda_node *to,
                                      const cuda_edge *edges, size_t count)
{
    const uint32_t last = graph->count - 1;
    if (count != 1 || from[0] != graph->nodes[last - 1] || to[0] != graph->nodes[last] ||
        edges[0].from_port != 1 || edges[0].type != 1 || edges[0].to_port != 0) {
        return 1; /* chains only, whose kernels start early */
    }
    mock->early_edges++;
    return 0;
}

/* The executable is the graph. */
cuda_result cuGraphInstantiateWithFlags(cuda_executable *executable, cuda_graph graph,
                                        unsigned long long flags)
{
    mock->graphs_built++;
    *executable = mock->graph_result ? NULL : (cuda_executable)(void *)graph;
    return mock->graph_result;
}

cuda_result cuGraphExecKernelNodeSetParams(cuda_executable executable, cuda_node node,
                                           const cuda_node_launch *launch)
{
    mock->nodes_set++;
    const struct CUfunc_st *before = node->launch.function;
    node->was_stale = node->was_stale || !before->module->self;
    read_node(node, launch);
    return 0;
}

cuda_result cuGraphNodeSetEnabled(cuda_executable executable, cuda_node node, unsigned enabled)
{
    mock->nodes_switched++;
    node->enabled = (int)enabled;
    return 0;
}

cuda_result cuGraphLaunch(cuda_executable executable, cuda_stream stream)
{
    const cuda_graph graph = (cuda_graph)(void *)executable;
    mock->graph_launches++;
    for (uint32_t i = 0; i < graph->count; i++) {
        const struct CUfunc_st *function = graph->nodes[i]->launch.function;
        mock->stale_functions += graph->nodes[i]->was_stale || !function->module->self;
        mock->lost_groups +=
            graph->nodes[i]->enabled && graph->nodes[i]->cluster != function->cluster;
        if (graph->nodes[i]->enabled && write_down(&graph->nodes[i]->launch)) {
            return mock->fail_with;
        }
    }
    return 0;
}

cuda_result cuGraphExecDestroy(cuda_executable executable)
{
    return 0;
}
