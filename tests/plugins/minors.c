/* Plugins of other minor versions than hal's: two devices over host memory, whose kernels run
 * through the reference interpreter. Built three times, for test_plugin_minors and conformance:
 *   hal_minor_0.so   states minor 0, with tables and records as short as that one had them, and
 *                    refuses opcodes that are newer;
 *   hal_shorter.so   SHORTER: the table ends before its optional entries at the end, and the memory
 *                    after it is filled with addresses that must not be called;
 *   hal_longer.so    LONGER: as a later minor might be: a longer table and longer infos. */
#include <hal/plugin.h>
#include <kit/interpret.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEVICES 2u
#define TIMES 256u /* batches whose ends a queue remembers */
#define MEMORY_BYTES (UINT64_C(1) << 30)

#if defined SHORTER
#define NAME "shorter"
#define MINOR HAL_PLUGIN_ABI_MINOR
#elif defined LONGER
#define NAME "longer"
#define MINOR (HAL_PLUGIN_ABI_MINOR + 1)
#else
#define NAME "minor_0"
#define MINOR 0u
#endif

/* What minor 0 has of each structure. */
#define INFO_BYTES offsetof(hal_device_info, reserved)
#define HOST_BYTES offsetof(hal_host, flags)

struct hal_plugin_device {
    uint32_t index;
};

struct hal_plugin_memory {
    uint8_t *data;
};

struct hal_plugin_kernel {
    hal_ir_kernel ir;
};

struct hal_plugin_queue {
    _Atomic uint64_t reached;
    uint64_t ends[TIMES]; /* of batches, in nanoseconds */
};

/* An info as a later minor has it. */
typedef struct longer_info {
    hal_device_info known;
    uint64_t more[5];
} longer_info;

/* A table as a later minor has it: hal must not call, nor copy, what it does not know. */
typedef struct longer_table {
    hal_plugin known;
    void *more[16];
} longer_table;

__attribute__((visibility("default"))) const hal_plugin *hal_plugin_query(uint32_t host_abi,
                                                                          const hal_host *host);

static const hal_host *services;

static hal_status enumerate(hal_device_info *infos, uint32_t capacity, uint32_t *count)
{
#ifdef LONGER
    const uint32_t stride = sizeof(longer_info);
#else
    const uint32_t stride = INFO_BYTES;
#endif
    *count = DEVICES;
    for (uint32_t i = 0; i < DEVICES && i < capacity; i++) {
        const hal_device_info info = {
            .size = stride,
            .kind = HAL_DEVICE_SOFTWARE,
            .name = {'D', 'e', 'v', 'i', 'c', 'e', ' ', (char)('A' + i)},
            .id = {'m', 'i', 'n', 'o', 'r', '-', (char)('0' + i)},
            .driver = "none",
            .architecture = "host",
            .memory_bytes = MEMORY_BYTES,
            .max_allocation = MEMORY_BYTES,
            .max_binding = MEMORY_BYTES,
            .binding_alignment = 16,
            .compute_units = 1,
            .max_group_items = 256,
            .max_group_size = {256, 256, 64},
            .max_grid = {65535, 65535, 65535},
            .shared_bytes = 32768,
            .max_bindings = HAL_IR_MAX_BINDINGS,
            .max_vector_bytes = 16,
            .preferred_group = 64,
            .storage_types = HAL_STORAGE_TYPES,
            .arithmetic_types = HAL_TYPES_VALUES,
            .exactness = HAL_EXACT_FMA | HAL_EXACT_DIVIDE | HAL_EXACT_SQRT | HAL_EXACT_DENORMALS,
            .abilities = HAL_ABILITY_TIMESTAMPS,
            .max_queues = 1,
        };
        uint8_t *place = (uint8_t *)infos + (size_t)i * stride;
        memset(place, 0xff, stride);
        memcpy(place, &info, stride < sizeof info ? stride : sizeof info);
    }
    return HAL_OK;
}

static hal_status device_open(uint32_t index, hal_plugin_device **device)
{
    *device = calloc(1, sizeof **device);
    if (!*device) {
        return services->fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for a device");
    }
    (*device)->index = index;
    return HAL_OK;
}

static void device_close(hal_plugin_device *device)
{
    free(device);
}

static hal_status memory_info(hal_plugin_device *device, uint64_t *free_bytes,
                              uint64_t *total_bytes)
{
    (void)device;
    *free_bytes = MEMORY_BYTES / 2;
    *total_bytes = MEMORY_BYTES;
    return HAL_OK;
}

static hal_status memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                  hal_plugin_memory **memory)
{
    (void)device;
    (void)kind;
    hal_plugin_memory *made = calloc(1, sizeof *made);
    if (made) {
        made->data = services->allocate(bytes, 256);
    }
    if (!made || !made->data) {
        free(made);
        return services->fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for a device's");
    }
    *memory = made;
    return HAL_OK;
}

static void memory_free(hal_plugin_device *device, hal_plugin_memory *memory)
{
    (void)device;
    services->release(memory->data);
    free(memory);
}

static hal_status memory_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer)
{
    (void)device;
    *pointer = memory->data;
    return HAL_OK;
}

static void *copy_of(const void *data, uint64_t bytes)
{
    void *copy = malloc(bytes ? bytes : 1);
    return copy && bytes ? memcpy(copy, data, bytes) : copy;
}

static void kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel)
{
    (void)device;
    free((void *)(uintptr_t)kernel->ir.records);
    free((void *)(uintptr_t)kernel->ir.memories);
    free((void *)(uintptr_t)kernel->ir.scalars);
    free((void *)(uintptr_t)kernel->ir.constants);
    free((void *)(uintptr_t)kernel->ir.names);
    free(kernel);
}

/* Fails when a kernel has an opcode that a plugin of this minor does not know. */
static hal_status check_opcodes(const hal_ir_kernel *ir)
{
#define ROW(NAME, number, since, ...) [number] = since,
    static const uint8_t since[HAL_IR_OPCODE_COUNT] = {HAL_IR_OPCODE_TABLE(ROW)};
#undef ROW
    for (uint32_t i = 0; i < ir->record_count; i++) {
        if (since[ir->records[i].opcode] > MINOR) {
            return services->fail(HAL_ERROR_INTERNAL, "an opcode that this minor does not have");
        }
    }
    return HAL_OK;
}

static hal_status kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                                hal_plugin_kernel **kernel)
{
    const hal_status status = check_opcodes(ir);
    if (status != HAL_OK) {
        return status;
    }
    hal_plugin_kernel *made = calloc(1, sizeof *made);
    if (!made) {
        return services->fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for a kernel");
    }
    if (ir->size < sizeof *ir) {
        free(made);
        return services->fail(HAL_ERROR_INTERNAL, "a kernel that is shorter than one of minor 0");
    }
    made->ir = *ir;
    made->ir.records = copy_of(ir->records, ir->record_count * sizeof *ir->records);
    made->ir.memories = copy_of(ir->memories, ir->memory_count * sizeof *ir->memories);
    made->ir.scalars = copy_of(ir->scalars, ir->scalar_count * sizeof *ir->scalars);
    made->ir.constants = copy_of(ir->constants, ir->constant_count * sizeof *ir->constants);
    made->ir.names = copy_of(ir->names, ir->name_bytes);
    if (!made->ir.records || !made->ir.memories || !made->ir.scalars || !made->ir.constants ||
        !made->ir.names) {
        kernel_destroy(device, made);
        return services->fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for a kernel");
    }
    *kernel = made;
    return HAL_OK;
}

static hal_status queue_create(hal_plugin_device *device, hal_plugin_queue **queue)
{
    (void)device;
    *queue = calloc(1, sizeof **queue);
    return *queue ? HAL_OK : services->fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for a queue");
}

static void queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue)
{
    (void)device;
    free(queue);
}

static uint8_t *bytes_of(const hal_binding *binding)
{
    return binding->length ? binding->memory->data + binding->offset : NULL;
}

static hal_status run(const hal_batch *batch, const hal_command *command)
{
    const hal_binding *bindings = batch->bindings + command->binding_first;
    kit_span spans[HAL_IR_MAX_BINDINGS];
    for (uint32_t i = 0; i < command->binding_count; i++) {
        spans[i] = (kit_span){bytes_of(&bindings[i]), bindings[i].length};
    }
    switch (command->kind) {
    case HAL_COMMAND_DISPATCH: {
        const kit_dispatch dispatch = {
            .kernel = &command->kernel->ir,
            .grid = {command->grid[0], command->grid[1], command->grid[2]},
            .bindings = spans,
            .scalars = batch->scalars + command->scalar_first,
        };
        kit_problem problem;
        const hal_status status = kit_interpret(&dispatch, &problem);
        return status == HAL_OK ? HAL_OK : services->fail(HAL_ERROR_DEVICE_LOST, problem.text);
    }
    case HAL_COMMAND_COPY:
        memmove(spans[1].data, spans[0].data, spans[0].bytes);
        return HAL_OK;
    case HAL_COMMAND_FILL:
        for (uint64_t i = 0; i < spans[0].bytes; i++) {
            ((uint8_t *)spans[0].data)[i] = (uint8_t)(command->pattern >> i % 4 * 8);
        }
        return HAL_OK;
    default:
        return services->fail(HAL_ERROR_DEVICE_LOST, "a command that minor 0 does not have");
    }
}

static hal_status submit(hal_plugin_queue *queue, const hal_batch *batch,
                         const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    (void)waits; /* all work is done inside submit, so what they name is reached */
    (void)wait_count;
    if (batch->size < sizeof *batch) {
        return services->fail(HAL_ERROR_INTERNAL, "a batch that is shorter than that of minor 0");
    }
    for (uint32_t i = 0; i < batch->command_count; i++) {
        const hal_status status = run(batch, &batch->commands[i]);
        if (status != HAL_OK) {
            return status;
        }
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    queue->ends[value % TIMES] = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    atomic_store(&queue->reached, value);
    return HAL_OK;
}

static hal_status wait_for(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    (void)timeout_ns;
    return atomic_load(&queue->reached) >= value ? HAL_OK : HAL_ERROR_TIMEOUT;
}

static hal_status queue_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                uint64_t *nanoseconds)
{
    if (first + TIMES <= atomic_load(&queue->reached)) {
        return services->fail(HAL_ERROR_INVALID_ARGUMENT, "the first batch is forgotten");
    }
    *nanoseconds = queue->ends[second % TIMES] - queue->ends[first % TIMES];
    return HAL_OK;
}

static uint32_t device_can_access_peer(hal_plugin_device *device, hal_plugin_device *other)
{
    return device->index != other->index;
}

const hal_plugin *hal_plugin_query(uint32_t host_abi, const hal_host *host)
{
    static longer_table table;
    if (host_abi >> 16 != HAL_PLUGIN_ABI_MAJOR || host->size < HOST_BYTES) {
        return NULL;
    }
    services = host;
    memset(&table, 0xff, sizeof table);
    table.known = (hal_plugin){
        .size = sizeof(hal_plugin),
        .abi = HAL_PLUGIN_ABI_MAJOR << 16 | MINOR,
        .name = NAME,
        .version = "1",
        .build_id = "1",
        .enumerate = enumerate,
        .device_open = device_open,
        .device_close = device_close,
        .memory_info = memory_info,
        .memory_allocate = memory_allocate,
        .memory_free = memory_free,
        .memory_map = memory_map,
        .kernel_create = kernel_create,
        .kernel_destroy = kernel_destroy,
        .queue_create = queue_create,
        .queue_destroy = queue_destroy,
        .submit = submit,
        .wait = wait_for,
        .queue_elapsed = queue_elapsed,
        .device_can_access_peer = device_can_access_peer,
    };
#if defined SHORTER
    const size_t end = offsetof(hal_plugin, queue_elapsed);
    memset((char *)&table + end, 0xff, sizeof table - end);
    table.known.size = (uint32_t)end;
#elif defined LONGER
    table.known.size = sizeof table;
    table.known.abi = HAL_PLUGIN_ABI + 9;
#endif
    return &table.known;
}
