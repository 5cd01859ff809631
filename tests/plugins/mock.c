/* A plugin over host memory that does as the unit tests tell it: fails the n-th call, holds work
 * back, is lost, claims any feature; records what it gets and notices what hal must not do.
 * Kernels run through the kit's interpreter. Built as hal_mock.so, hal_mock_two.so
 * and, with a fault, hal_wrong.so; loaded by the unit tests and tests/conformance. */
#include "mock.h"

#include <kit/fp.h>
#include <kit/interpret.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef MOCK_NAME
#define MOCK_NAME "mock"
#endif
#define TIMES 1024u /* batches, see contract TIME-3 */
#define EXPORT __attribute__((visibility("default")))

struct hal_plugin_device {
    uint32_t index;
};

struct hal_plugin_memory {
    uint64_t bytes;
    uint32_t device;
    uint32_t kind;
    uint8_t *data;
    int is_imported;
    int pending; /* commands of batches that have not run */
};

struct hal_plugin_kernel {
    int pending;
    hal_ir_kernel ir; /* without records for native kernels: they do nothing */
};

typedef struct pending {
    struct pending *next;
    uint64_t value;
    uint32_t command_count;
    hal_command *commands;
    hal_binding *bindings;
    uint8_t *scalars;
    hal_plugin_wait *waits;
    uint32_t wait_count;
} pending;

struct hal_plugin_queue {
    uint64_t submitted, done;
    uint32_t device;
    int named; /* in waits of batches that have not run */
    int busy;  /* `progress` is at it, perhaps by way of another queue */
    pending *first, *last;
    uint64_t ends[TIMES]; /* of the last batches, in nanoseconds */
};

extern EXPORT mock_state mock_state_of_plugin;
EXPORT const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                           hal_plugin_instance **instance);

#define INFO(n)                                                                                   \
    {                                                                                             \
        .size = sizeof(hal_device_info), .kind = HAL_DEVICE_DISCRETE,                             \
        .name = "Mock device " #n " of " MOCK_NAME, .id = MOCK_NAME "-id-" #n,                    \
        .driver = "mock 1.0", .architecture = "host", .memory_bytes = UINT64_C(1) << 30,          \
        .max_allocation = UINT64_C(1) << 29, .max_binding = UINT64_C(1) << 28,                    \
        .binding_alignment = 16, .compute_units = 1, .max_group_items = 256,                      \
        .max_group_size = {256, 256, 64}, .max_grid = {65535, 65535, 65535},                      \
        .shared_bytes = 32768, .max_bindings = 24, .max_vector_bytes = 16, .preferred_group = 64, \
        .storage_types = 0x3ffe, .arithmetic_types = 0x3ffe, .max_queues = 4                      \
    }

mock_state mock_state_of_plugin = {
    .device_count = 2,
    .infos = {INFO(0), INFO(1), INFO(2), INFO(3)},
    .fail_with = HAL_ERROR_INTERNAL,
    .memory_limit = UINT64_C(1) << 30,
#ifdef MOCK_SPOIL
    .spoil = {MOCK_SPOIL},
#endif
};

#define state mock_state_of_plugin

static void progress(hal_plugin_queue *queue);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t looks; /* at slow work, under the lock */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Counts a call; the status it has to fail with, if it has to. */
static hal_status call(enum mock_entry entry)
{
    atomic_fetch_add(&state.calls[entry], 1);
    while (atomic_load(&state.stall[entry])) {
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    if (atomic_load(&state.fail_in[entry]) > 0 && atomic_fetch_sub(&state.fail_in[entry], 1) == 1) {
        if (atomic_load(&state.fail_more) > 0) {
            atomic_fetch_sub(&state.fail_more, 1);
            atomic_store(&state.fail_in[entry], 1);
        }
        const hal_status status = atomic_load(&state.fail_with);
        return atomic_load(&state.no_words)
                   ? status
                   : state.host->fail(state.host, status, "the mock was told to fail");
    }
    if (atomic_load(&state.stray_words)) {
        state.host->fail(state.host, HAL_ERROR_INTERNAL, "a stray word");
    }
    return HAL_OK;
}

static hal_status answer(hal_status status)
{
    return status == MOCK_NOTHING ? HAL_OK : status;
}

static void misuse(const char *what)
{
    atomic_fetch_add(&state.misuses, 1);
    snprintf(state.misuse, sizeof state.misuse, "%s", what);
}

static hal_status enumerate(hal_plugin_instance *instance, hal_device_info *infos,
                            uint32_t capacity, uint32_t *count)
{
    (void)instance;
    const hal_status status = call(MOCK_ENUMERATE);
    if (status != HAL_OK) {
        return status;
    }
    *count = state.device_count;
    for (uint32_t i = 0; i < state.device_count && i < capacity; i++) {
        infos[i] = state.infos[i];
    }
    return HAL_OK;
}

static hal_status device_open(hal_plugin_instance *instance, const char *id,
                              hal_plugin_device **device)
{
    (void)instance;
    const hal_status status = call(MOCK_DEVICE_OPEN);
    if (status != HAL_OK) {
        return answer(status);
    }
    uint32_t index = 0;
    while (index < state.device_count && strcmp(state.infos[index].id, id) != 0) {
        index++;
    }
    if (index == state.device_count) {
        return state.host->fail(state.host, HAL_ERROR_NOT_FOUND, "no device of this id");
    }
    *device = calloc(1, sizeof **device);
    if (!*device) {
        return answer(HAL_ERROR_OUT_OF_MEMORY);
    }
    (*device)->index = index;
    atomic_fetch_add(&state.live_devices, 1);
    return HAL_OK;
}

static void device_close(hal_plugin_device *device)
{
    atomic_fetch_sub(&state.live_devices, 1);
    free(device);
}

static hal_status memory_info(hal_plugin_device *device, uint64_t *free_bytes,
                              uint64_t *total_bytes)
{
    (void)device;
    const hal_status status = call(MOCK_MEMORY_INFO);
    *total_bytes = atomic_load(&state.memory_limit);
    *free_bytes = *total_bytes - atomic_load(&state.memory_bytes);
    return status;
}

static hal_status memory_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                  hal_plugin_memory **memory)
{
    const hal_status status = call(MOCK_ALLOCATE);
    if (status != HAL_OK) {
        return answer(status);
    }
    if (atomic_fetch_add(&state.memory_bytes, bytes) + bytes > atomic_load(&state.memory_limit)) {
        atomic_fetch_sub(&state.memory_bytes, bytes);
        return state.host->fail(state.host, HAL_ERROR_OUT_OF_MEMORY,
                                "the mock's memory is used up");
    }
    uint8_t *data = state.host->allocate(state.host, bytes, 256);
    if (!data) {
        atomic_fetch_sub(&state.memory_bytes, bytes);
        return state.host->fail(state.host, HAL_ERROR_OUT_OF_MEMORY, "mock: no host memory");
    }
    hal_plugin_memory *made = calloc(1, sizeof *made);
    made->bytes = bytes;
    made->device = device->index;
    made->kind = kind;
    made->data = data;
    memset(made->data, 0xA5, bytes < 1 << 20 ? bytes : 1 << 20);
    atomic_fetch_add(&state.live_memories, 1);
    *memory = made;
    return HAL_OK;
}

static void memory_free(hal_plugin_device *device, hal_plugin_memory *memory)
{
    (void)device;
    pthread_mutex_lock(&lock);
    if (memory->pending) {
        misuse("memory freed while a batch that uses it has not run");
    }
    pthread_mutex_unlock(&lock);
    atomic_fetch_sub(&state.live_memories, 1);
    if (!memory->is_imported) {
        atomic_fetch_sub(&state.memory_bytes, memory->bytes);
        state.host->release(state.host, memory->data);
    }
    free(memory);
}

static hal_status external_info(hal_plugin_device *device, hal_external_info *info)
{
    (void)device;
    info->import_kinds = HAL_HANDLE_BIT(HAL_HANDLE_HOST);
    return HAL_OK;
}

static hal_status memory_import(hal_plugin_device *device, const hal_memory_handle *handle,
                                hal_plugin_memory **memory)
{
    const hal_status status = call(MOCK_ALLOCATE);
    if (status == HAL_OK) {
        hal_plugin_memory *made = calloc(1, sizeof *made);
        made->bytes = handle->bytes;
        made->device = device->index;
        made->kind = HAL_MEMORY_SHARED;
        made->data = (uint8_t *)(uintptr_t)handle->handle + handle->offset;
        made->is_imported = 1;
        atomic_fetch_add(&state.live_memories, 1);
        *memory = made;
    }
    return answer(status);
}

static hal_status memory_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer)
{
    const hal_status status = call(MOCK_MAP);
    if (memory->kind == HAL_MEMORY_DEVICE &&
        !(state.infos[device->index].features & HAL_FEATURE_MAP_DEVICE)) {
        misuse("memory mapped that the device does not map");
    }
    *pointer = status == MOCK_NOTHING ? NULL : memory->data;
    return answer(status);
}

static void *copy_of(const void *data, uint64_t bytes)
{
    void *copy = malloc(bytes ? bytes : 1);
    if (bytes) {
        memcpy(copy, data, bytes);
    }
    return copy;
}

static hal_status kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                                hal_plugin_kernel **kernel)
{
    (void)device;
    const hal_status status = call(MOCK_KERNEL);
    if (status == HAL_OK) {
        hal_plugin_kernel *made = calloc(1, sizeof *made);
        if (ir) {
            made->ir = *ir;
            made->ir.records = copy_of(ir->records, ir->record_count * sizeof *ir->records);
            made->ir.memories = copy_of(ir->memories, ir->memory_count * sizeof *ir->memories);
            made->ir.scalars = copy_of(ir->scalars, ir->scalar_count * sizeof *ir->scalars);
            made->ir.constants = copy_of(ir->constants, ir->constant_count * sizeof(uint64_t));
            made->ir.names = copy_of(ir->names, ir->name_bytes);
        }
        atomic_fetch_add(&state.live_kernels, 1);
        *kernel = made;
    }
    return answer(status);
}

static void kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel)
{
    (void)device;
    pthread_mutex_lock(&lock);
    if (kernel->pending) {
        misuse("kernel destroyed while a batch that uses it has not run");
    }
    pthread_mutex_unlock(&lock);
    atomic_fetch_sub(&state.live_kernels, 1);
    free((void *)kernel->ir.records);
    free((void *)kernel->ir.memories);
    free((void *)kernel->ir.scalars);
    free((void *)kernel->ir.constants);
    free((void *)kernel->ir.names);
    free(kernel);
}

static hal_status queue_create(hal_plugin_device *device, hal_plugin_queue **queue)
{
    const hal_status status = call(MOCK_QUEUE);
    if (status == HAL_OK) {
        *queue = calloc(1, sizeof **queue);
        (*queue)->device = device->index;
        atomic_fetch_add(&state.live_queues, 1);
    }
    return answer(status);
}

/* Marks what a batch uses, or with -1 takes the marks away. */
static void mark(pending *batch, int by)
{
    for (uint32_t i = 0; i < batch->wait_count; i++) {
        if (batch->waits[i].queue) {
            batch->waits[i].queue->named += by;
        }
    }
    for (uint32_t c = 0; c < batch->command_count; c++) {
        const hal_command *command = &batch->commands[c];
        if (command->kernel) {
            command->kernel->pending += by;
        }
        for (uint32_t i = 0; i < command->binding_count; i++) {
            const hal_binding *binding = &batch->bindings[command->binding_first + i];
            if (binding->memory) {
                binding->memory->pending += by;
            }
        }
    }
}

static void run_kernel(const pending *batch, const hal_command *command, uint32_t device)
{
    const hal_ir_kernel *ir = &command->kernel->ir;
    kit_span spans[HAL_IR_MAX_BINDINGS];
    for (uint32_t i = 0; i < command->binding_count; i++) {
        const hal_binding *binding = &batch->bindings[command->binding_first + i];
        spans[i] = (kit_span){0};
        if (binding->memory) {
            spans[i] = (kit_span){binding->memory->data + binding->offset, binding->length};
        }
    }
    kit_dispatch dispatch = {.kernel = ir,
                             .subgroup_width = state.infos[device].subgroup_width,
                             .witness = state.spoil.opcode != 0 ? spoil_witness : NULL,
                             .witness_user = &state.spoil,
                             .bindings = spans,
                             .scalars = batch->scalars + command->scalar_first};
    memcpy(dispatch.grid, command->grid, sizeof dispatch.grid);
    kit_problem problem;
    kit_fp fp;
    kit_fp_enter(&fp);
    if (ir->record_count > 0 && kit_interpret(&dispatch, &problem) != HAL_OK) {
        snprintf(state.problem, sizeof state.problem, "%s", problem.text);
    }
    kit_fp_leave(&fp);
}

static void run(const pending *batch, uint32_t device)
{
    for (uint32_t c = 0; c < batch->command_count; c++) {
        const hal_command *command = &batch->commands[c];
        const hal_binding *bindings = &batch->bindings[command->binding_first];
        if (command->kind == HAL_COMMAND_COPY) {
            memcpy(bindings[1].memory->data + bindings[1].offset,
                   bindings[0].memory->data + bindings[0].offset, bindings[0].length);
        } else if (command->kind == HAL_COMMAND_FILL) {
            for (uint64_t i = 0; i < bindings[0].length; i += command->scalar_bytes) {
                memcpy(bindings[0].memory->data + bindings[0].offset + i,
                       batch->scalars + command->scalar_first, command->scalar_bytes);
            }
        } else {
            run_kernel(batch, command, device);
        }
    }
}

static void free_pending(pending *batch)
{
    free(batch->commands);
    free(batch->bindings);
    free(batch->scalars);
    free(batch->waits);
    free(batch);
}

/* Whether what a batch waits for is done, after the other queues got on. Needs the lock. */
static int may_begin(const pending *batch)
{
    for (uint32_t i = 0; i < batch->wait_count; i++) {
        if (batch->waits[i].kind == HAL_WAIT_FENCE) {
            if (*(uint64_t *)(void *)batch->waits[i].fence < batch->waits[i].value) {
                return 0;
            }
            continue;
        }
        if (batch->waits[i].queue->done < batch->waits[i].value) {
            progress(batch->waits[i].queue);
        }
        if (batch->waits[i].queue->done < batch->waits[i].value) {
            return 0;
        }
    }
    return 1;
}

/* Runs what may run, on this queue and those it waits for. Needs the lock. */
static void progress(hal_plugin_queue *queue)
{
    if (queue->busy || atomic_load(&state.hold)) {
        return;
    }
    queue->busy = 1;
    while (queue->first && may_begin(queue->first)) {
        pending *batch = queue->first;
        run(batch, queue->device);
        mark(batch, -1);
        queue->done = batch->value;
        queue->ends[batch->value % TIMES] = now_ns();
        queue->first = batch->next;
        queue->last = queue->first ? queue->last : NULL;
        free_pending(batch);
    }
    queue->busy = 0;
}

/* Only the target of a copy may be of another device. */
static void check_devices(const hal_plugin_queue *queue, const hal_batch *batch,
                          const hal_command *command)
{
    for (uint32_t i = 0; i < command->binding_count; i++) {
        const hal_plugin_memory *memory = batch->bindings[command->binding_first + i].memory;
        const int may = command->kind == HAL_COMMAND_COPY && i == 1 && atomic_load(&state.reach);
        if (memory && memory->device != queue->device && !may) {
            misuse("memory of another device");
        }
    }
}

static void check_batch(const hal_plugin_queue *queue, const hal_batch *batch,
                        const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    if (value != queue->submitted + 1) {
        misuse("values do not grow by 1");
    }
    for (uint32_t i = 0; i < wait_count; i++) {
        if (waits[i].kind == HAL_WAIT_FENCE) {
            continue;
        }
        if (waits[i].value > waits[i].queue->submitted) {
            misuse("a wait for a value that was never submitted");
        }
        if (waits[i].queue->device != queue->device && !atomic_load(&state.reach)) {
            misuse("a wait for a queue of a device that is not reached");
        }
    }
    for (uint32_t c = 0; c < batch->command_count; c++) {
        check_devices(queue, batch, &batch->commands[c]);
    }
    for (uint32_t i = 0; i < batch->binding_count; i++) {
        const hal_binding *binding = &batch->bindings[i];
        if ((!binding->memory) != (binding->length == 0)) {
            misuse("a binding with memory and no length, or the reverse");
        } else if (binding->memory && binding->offset + binding->length > binding->memory->bytes) {
            misuse("a binding beyond its memory");
        }
    }
}

static void log_commands(const hal_batch *batch, uint64_t value)
{
    for (uint32_t c = 0; c < batch->command_count && state.logged_count < MOCK_LOGGED; c++) {
        mock_logged *logged = &state.logged[state.logged_count++];
        logged->command = batch->commands[c];
        logged->value = value;
        if (logged->command.kind == HAL_COMMAND_FILL) {
            memcpy(&logged->pattern, batch->scalars + logged->command.scalar_first,
                   sizeof logged->pattern);
        }
        for (uint32_t i = 0; i < 3 && i < logged->command.binding_count; i++) {
            logged->bindings[i] = batch->bindings[logged->command.binding_first + i];
        }
    }
}

static void queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue)
{
    (void)device;
    pthread_mutex_lock(&lock);
    if (queue->first) {
        misuse("queue destroyed while its work is not done");
    }
    if (queue->named) {
        misuse("queue destroyed while a batch that waits for it has not run");
    }
    while (queue->first) {
        pending *batch = queue->first;
        queue->first = batch->next;
        mark(batch, -1);
        free_pending(batch);
    }
    pthread_mutex_unlock(&lock);
    atomic_fetch_sub(&state.live_queues, 1);
    free(queue);
}

static hal_status fail_unknown(const hal_batch *batch)
{
    for (uint32_t c = 0; c < batch->command_count; c++) {
        if (batch->commands[c].kind > HAL_COMMAND_FILL) {
            return state.host->fail(state.host, HAL_ERROR_UNSUPPORTED,
                                    "mock: a command of an unknown kind");
        }
    }
    return HAL_OK;
}

static hal_status submit(hal_plugin_queue *queue, const hal_batch *batch,
                         const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    hal_status status = call(MOCK_SUBMIT);
    status = status == HAL_OK ? fail_unknown(batch) : status;
    if (status != HAL_OK) {
        return status;
    }
    pthread_mutex_lock(&lock);
    check_batch(queue, batch, waits, wait_count, value);
    log_commands(batch, value);
    pending *kept = calloc(1, sizeof *kept);
    kept->value = value;
    kept->command_count = batch->command_count;
    kept->commands = copy_of(batch->commands, batch->command_count * sizeof *batch->commands);
    kept->bindings = copy_of(batch->bindings, batch->binding_count * sizeof *batch->bindings);
    kept->scalars = copy_of(batch->scalars, batch->scalar_bytes);
    kept->waits = copy_of(waits, wait_count * sizeof *waits);
    kept->wait_count = wait_count;
    state.waits += wait_count;
    state.batches++;
    state.untimed += (batch->flags & HAL_BATCH_UNTIMED) != 0;
    mark(kept, 1);
    if (queue->last) {
        queue->last->next = kept;
    } else {
        queue->first = kept;
    }
    queue->last = kept;
    queue->submitted = value;
    if (!atomic_load(&state.slow)) {
        progress(queue);
    }
    pthread_mutex_unlock(&lock);
    return HAL_OK;
}

static hal_status wait_for(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    const hal_status status = call(MOCK_WAIT);
    if (status != HAL_OK) {
        return status;
    }
    const uint64_t begin = now_ns();
    for (;;) {
        pthread_mutex_lock(&lock);
        if (value > queue->submitted) {
            misuse("a wait for a value that was never submitted");
        }
        /* One look in four finds slow work a little further on. */
        if (!atomic_load(&state.slow) || timeout_ns > 0 || ++looks % 4 == 0) {
            progress(queue);
        }
        const int done = queue->done >= value;
        pthread_mutex_unlock(&lock);
        if (done) {
            return HAL_OK;
        }
        if (now_ns() - begin >= timeout_ns) {
            return HAL_ERROR_TIMEOUT;
        }
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
}

/* Natives of the mock are numbers, which a test sees. */
static hal_status native_check(const char *type)
{
    char text[96];
    snprintf(text, sizeof text, "mock: expected mock_stream, got %s", type);
    const bool is_known = strcmp(type, "mock_stream") == 0;
    return is_known ? call(MOCK_ORDER) : state.host->fail(state.host, HAL_ERROR_UNSUPPORTED, text);
}

static hal_status queue_import(hal_plugin_device *device, const char *type, uint64_t handle,
                               hal_plugin_queue **queue)
{
    state.native[0] = handle;
    const hal_status status = native_check(type);
    return status == HAL_OK ? queue_create(device, queue) : status;
}

static hal_status queue_wait_native(hal_plugin_queue *queue, const char *type, uint64_t handle)
{
    state.native[1] = handle;
    state.native_value[0] = queue->submitted;
    return native_check(type);
}

static hal_status queue_block_native(hal_plugin_queue *queue, const char *type, uint64_t handle)
{
    state.native[2] = handle;
    state.native_value[1] = queue->submitted;
    return native_check(type);
}

/* The fences of the mock are addresses of a value of the test, which it raises itself. */
static hal_status fence_info(hal_plugin_device *device, uint32_t *imports, uint32_t *exports)
{
    *imports = *exports = HAL_HANDLE_BIT(HAL_HANDLE_NATIVE);
    return device ? HAL_OK : HAL_ERROR_INTERNAL;
}

static hal_status fence_import(hal_plugin_device *device, uint32_t kind, uint64_t handle,
                               hal_plugin_fence **fence)
{
    const hal_status status = device && kind ? call(MOCK_ORDER) : HAL_ERROR_INTERNAL;
    *fence = status == HAL_OK ? (hal_plugin_fence *)(uintptr_t)handle : NULL;
    state.live_fences += status == HAL_OK;
    return status;
}

static void fence_destroy(hal_plugin_device *device, hal_plugin_fence *fence)
{
    state.live_fences -= device && fence;
}

static hal_status queue_signal_fence(hal_plugin_queue *queue, hal_plugin_fence *fence,
                                     uint64_t value)
{
    state.raised[0] = value;
    state.raised[1] = queue->submitted;
    return fence ? call(MOCK_ORDER) : HAL_ERROR_INTERNAL;
}

static hal_status queue_elapsed(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                uint64_t *nanoseconds)
{
    *nanoseconds = queue ? (second - first) * 1000 : 0;
    return HAL_OK;
}

static hal_status kernel_create_native(hal_plugin_device *device, const char *format,
                                       const void *code, uint64_t bytes, const char *entry,
                                       const hal_ir_kernel *signature, hal_plugin_kernel **kernel)
{
    const bool is_known = format && entry && bytes == 4 && memcmp(code, "code", 4) == 0;
    return is_known ? kernel_create(device, signature, kernel)
                    : state.host->fail(state.host, HAL_ERROR_INVALID_ARGUMENT, "mock: no code");
}

static bool gemm_declines(const hal_gemm_description *description)
{
    return description->m > 1000 ||
           (description->input_count > 0 && description->inputs[0].type == HAL_TYPE_BOOL);
}

static hal_status gemm(hal_plugin_device *device, const hal_gemm_description *description,
                       hal_plugin_kernel **kernel, uint64_t *workspace_bytes)
{
    if (gemm_declines(description)) {
        return HAL_ERROR_UNSUPPORTED;
    }
    *workspace_bytes = 4096;
    return kernel_create(device, NULL, kernel);
}

static hal_status gemm_workspace(hal_plugin_device *device, const hal_gemm_description *description,
                                 uint64_t *workspace_bytes)
{
    (void)device;
    *workspace_bytes = 4096;
    return gemm_declines(description) ? HAL_ERROR_UNSUPPORTED : HAL_OK;
}

static hal_status attention(hal_plugin_device *device, const hal_attention_description *description,
                            hal_plugin_kernel **kernel)
{
    return description->m > 1000 || description->type != HAL_TYPE_F32
               ? HAL_ERROR_UNSUPPORTED
               : kernel_create(device, NULL, kernel);
}

static uint32_t device_can_access_peer(hal_plugin_device *device, hal_plugin_device *other)
{
    if (device == other) {
        misuse("asked whether a device reaches itself");
    }
    return call(MOCK_REACHES) == HAL_OK && atomic_load(&state.reach);
}

struct hal_plugin_instance {
    const hal_host *host;
};

static void instance_destroy(hal_plugin_instance *instance)
{
    free(instance);
}

#define EXTENSION(extension) \
    .size = sizeof(hal_extension_##extension), .version = HAL_EXTENSION_VERSION(1, 0)

static const void *query_extension(hal_plugin_instance *instance, const char *name, uint32_t major)
{
    static const hal_extension_memory_info memory = {EXTENSION(memory_info),
                                                     .memory_info = memory_info};
    static const hal_extension_timing timing = {EXTENSION(timing), .queue_elapsed = queue_elapsed};
    static const hal_extension_native native = {EXTENSION(native),
                                                .formats = "mock-text,mock-binary",
                                                .kernel_create_native = kernel_create_native};
    static const hal_extension_gemm products = {EXTENSION(gemm), .gemm = gemm,
                                                .gemm_workspace = gemm_workspace};
    static const hal_extension_attention attentions = {EXTENSION(attention),
                                                       .attention = attention};
    static const hal_extension_peers peers = {EXTENSION(peers),
                                              .device_can_access_peer = device_can_access_peer};
    static const hal_extension_external external = {
        EXTENSION(external), .external_info = external_info, .memory_import = memory_import};
    static const hal_extension_native_queues queues = {
        EXTENSION(native_queues), .queue_import = queue_import,
        .queue_wait_native = queue_wait_native, .queue_block_native = queue_block_native};
    static const hal_extension_fences fences = {
        EXTENSION(fences), .fence_info = fence_info, .fence_import = fence_import,
        .fence_destroy = fence_destroy, .queue_signal_fence = queue_signal_fence};
    static const struct {
        const char *name;
        const void *table;
    } all[] = {
        {HAL_EXTENSION_MEMORY_INFO, &memory},   {HAL_EXTENSION_TIMING, &timing},
        {HAL_EXTENSION_NATIVE, &native},        {HAL_EXTENSION_GEMM, &products},
        {HAL_EXTENSION_PEERS, &peers},          {HAL_EXTENSION_EXTERNAL, &external},
        {HAL_EXTENSION_NATIVE_QUEUES, &queues}, {HAL_EXTENSION_FENCES, &fences},
        {HAL_EXTENSION_ATTENTION, &attentions},
    };
    (void)instance;
    for (size_t i = 0; i < sizeof all / sizeof all[0] && major == 1; i++) {
        if (strcmp(all[i].name, name) == 0) {
            return all[i].table;
        }
    }
    return NULL;
}

const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                    hal_plugin_instance **instance)
{
    static const hal_plugin table = {
        .size = sizeof table,
        .abi = HAL_PLUGIN_ABI,
        .name = MOCK_NAME,
        .version = "1.0",
        .build_id = "mock-1",
        .ir_version = HAL_IR_VERSION,
        .instance_destroy = instance_destroy,
        .enumerate = enumerate,
        .device_open = device_open,
        .device_close = device_close,
        .memory_allocate = memory_allocate,
        .memory_free = memory_free,
        .memory_map = memory_map,
        .kernel_create = kernel_create,
        .kernel_destroy = kernel_destroy,
        .queue_create = queue_create,
        .queue_destroy = queue_destroy,
        .submit = submit,
        .wait = wait_for,
        .query_extension = query_extension,
    };
    state.host = host;
    if (host_abi >> 16 != HAL_PLUGIN_ABI_MAJOR || !(*instance = calloc(1, sizeof **instance))) {
        return NULL;
    }
    (*instance)->host = host;
    return &table;
}
