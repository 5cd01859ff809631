/* See guard.h. A plugin is one shared object with one set of tables, so `inner` is a static. */
#include "guard.h"

#include "fp.h"
#include "host.h"
#include "process_state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kit_plugin inner;

/* Of entries that open and close devices, which share what the driver keeps for the process. */
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;

/* Compiling keeps the state of the process until a kernel was created: compilers install their
 * handlers once, and a handler that the program installs meanwhile would be lost. */
static _Atomic bool has_compiled;

/* Of entries that compute or wait. A thread cancelled in a driver would leave its locks taken. */
typedef struct light_guard {
    kit_fp fp;
    bool cancels;
    int cancel_state;
} light_guard;

/* Of a plugin whose submit and wait disable cancellation by themselves where they block. */
static bool waits_alone;

/* The first member of every object that has an entry. */
static const hal_host *host_of(const void *object)
{
    const hal_host *host;
    memcpy(&host, object, sizeof host);
    return host;
}

static void host_set(void *object, const hal_host *host)
{
    memcpy(object, &host, sizeof host);
}

static void light_enter(light_guard *kept, const void *object, bool is_submit)
{
    if (object) { /* destroying null is allowed */
        kit_host_enter(host_of(object));
    }
    kept->cancels = !(is_submit && waits_alone);
    if (kept->cancels) { /* takes longer than the rest of the guard */
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &kept->cancel_state);
    }
    kit_fp_enter(&kept->fp);
}

static void light_leave(light_guard *kept)
{
    kit_fp_leave(&kept->fp);
    if (kept->cancels) {
        pthread_setcancelstate(kept->cancel_state, &kept->cancel_state);
    }
}

typedef struct guard {
    light_guard light;
    kit_thread_state thread;
    kit_process_state *process; /* null: not kept */
} guard;

static void guard_enter(guard *kept, const void *object, bool keeps_process, bool blocks_signals)
{
    light_enter(&kept->light, object, false);
    kept->process = keeps_process ? kit_process_state_keep() : NULL;
    kit_thread_state_keep(&kept->thread, blocks_signals);
}

static void guard_leave(guard *kept)
{
    kit_thread_state_restore(&kept->thread);
    kit_process_state_restore(kept->process);
    light_leave(&kept->light);
}

#define GUARD_LIGHT(of, name, result, is_submit, parameters, arguments) \
    static result guarded_##name parameters                             \
    {                                                                   \
        light_guard kept;                                               \
        light_enter(&kept, SELF arguments, is_submit);                  \
        const result returned = inner.of.name arguments;                \
        light_leave(&kept);                                             \
        return returned;                                                \
    }

#define GUARD_LIGHT_VOID(of, name, parameters, arguments) \
    static void guarded_##name parameters                 \
    {                                                     \
        light_guard kept;                                 \
        light_enter(&kept, SELF arguments, false);        \
        inner.of.name arguments;                          \
        light_leave(&kept);                               \
    }

/* Entries that start threads, and with keeps_process open drivers. */
#define GUARD_START(of, name, keeps_process, parameters, arguments) \
    static hal_status guarded_##name parameters                     \
    {                                                               \
        guard kept;                                                 \
        guard_enter(&kept, SELF arguments, keeps_process, true);    \
        const hal_status status = inner.of.name arguments;          \
        guard_leave(&kept);                                         \
        return status;                                              \
    }

/* The same for an entry that makes an object. */
#define GUARD_MAKE(of, name, parameters, arguments, made)  \
    static hal_status guarded_##name parameters            \
    {                                                      \
        guard kept;                                        \
        guard_enter(&kept, SELF arguments, false, true);   \
        const hal_status status = inner.of.name arguments; \
        if (status == HAL_OK && *(made)) {                 \
            host_set(*(made), kit_host());                 \
        }                                                  \
        guard_leave(&kept);                                \
        return status;                                     \
    }

#define GUARD_COMPILE(of, name, parameters, arguments)                          \
    static hal_status guarded_##name parameters                                 \
    {                                                                           \
        guard kept;                                                             \
        guard_enter(&kept, SELF arguments, !atomic_load(&has_compiled), false); \
        const hal_status status = inner.of.name arguments;                      \
        if (status == HAL_OK) {                                                 \
            atomic_store(&has_compiled, true);                                  \
        }                                                                       \
        guard_leave(&kept);                                                     \
        return status;                                                          \
    }

/* The first of an entry's arguments is the object whose host it uses. */
#define SELF(...) FIRST(__VA_ARGS__, 0)
#define FIRST(object, ...) (object)

GUARD_MAKE(table, queue_create, (hal_plugin_device * device, hal_plugin_queue **queue),
           (device, queue), queue)
GUARD_START(collectives, comm_backend, true,
            (hal_plugin_instance * instance, hal_plugin_comm_backend *backend), (instance, backend))
GUARD_START(collectives, comm_id, true, (hal_plugin_instance * instance, hal_plugin_comm_id *id),
            (instance, id))
GUARD_MAKE(collectives, comm_create,
           (hal_plugin_device * device, const hal_plugin_comm_id *id, uint32_t rank, uint32_t count,
            hal_plugin_comm **comm),
           (device, id, rank, count, comm), comm)

GUARD_COMPILE(table, kernel_create,
              (hal_plugin_device * device, const hal_ir_kernel *ir, hal_plugin_kernel **kernel),
              (device, ir, kernel))
GUARD_COMPILE(native, kernel_create_native,
              (hal_plugin_device * device, const char *format, const void *code, uint64_t bytes,
               const char *entry, const hal_ir_kernel *signature, hal_plugin_kernel **kernel),
              (device, format, code, bytes, entry, signature, kernel))
GUARD_COMPILE(gemm, gemm,
              (hal_plugin_device * device, const hal_gemm_description *description,
               hal_plugin_kernel **kernel, uint64_t *workspace_bytes),
              (device, description, kernel, workspace_bytes))
GUARD_COMPILE(attention, attention,
              (hal_plugin_device * device, const hal_attention_description *description,
               hal_plugin_kernel **kernel),
              (device, description, kernel))

GUARD_LIGHT(gemm, gemm_estimate, hal_status, false,
            (hal_plugin_device * device, const hal_gemm_description *description, double most_ns,
             double *nanoseconds),
            (device, description, most_ns, nanoseconds))
GUARD_LIGHT(gemm, gemm_workspace, hal_status, false,
            (hal_plugin_device * device, const hal_gemm_description *description,
             uint64_t *workspace_bytes),
            (device, description, workspace_bytes))
GUARD_LIGHT(table, submit, hal_status, true,
            (hal_plugin_queue * queue, const hal_batch *batch, const hal_plugin_wait *waits,
             uint32_t wait_count, uint64_t value),
            (queue, batch, waits, wait_count, value))
GUARD_LIGHT(table, wait, hal_status, false,
            (hal_plugin_queue * queue, uint64_t value, uint64_t timeout_ns),
            (queue, value, timeout_ns))
GUARD_LIGHT(timing, queue_elapsed, hal_status, false,
            (hal_plugin_queue * queue, uint64_t first, uint64_t second, uint64_t *nanoseconds),
            (queue, first, second, nanoseconds))
GUARD_LIGHT(memory_info, memory_info, hal_status, false,
            (hal_plugin_device * device, uint64_t *free_bytes, uint64_t *total_bytes),
            (device, free_bytes, total_bytes))
GUARD_LIGHT(table, memory_allocate, hal_status, false,
            (hal_plugin_device * device, uint32_t kind, uint64_t bytes, hal_plugin_memory **memory),
            (device, kind, bytes, memory))
GUARD_LIGHT(table, memory_map, hal_status, false,
            (hal_plugin_device * device, hal_plugin_memory *memory, void **pointer),
            (device, memory, pointer))
GUARD_LIGHT(coherence, memory_flush, hal_status, false,
            (hal_plugin_device * device, hal_plugin_memory *memory, uint64_t offset,
             uint64_t bytes),
            (device, memory, offset, bytes))
GUARD_LIGHT(coherence, memory_invalidate, hal_status, false,
            (hal_plugin_device * device, hal_plugin_memory *memory, uint64_t offset,
             uint64_t bytes),
            (device, memory, offset, bytes))
GUARD_LIGHT(handles, device_handle, hal_status, false,
            (hal_plugin_device * device, const char *type, uint64_t *handle),
            (device, type, handle))
GUARD_LIGHT(handles, queue_handle, hal_status, false,
            (hal_plugin_queue * queue, const char *type, uint64_t *handle), (queue, type, handle))
GUARD_LIGHT(handles, kernel_handle, hal_status, false,
            (hal_plugin_device * device, hal_plugin_kernel *kernel, const char *type,
             uint64_t *handle),
            (device, kernel, type, handle))
GUARD_MAKE(native_queues, queue_import,
           (hal_plugin_device * device, const char *type, uint64_t handle,
            hal_plugin_queue **queue),
           (device, type, handle, queue), queue)
GUARD_LIGHT(native_queues, queue_wait_native, hal_status, false,
            (hal_plugin_queue * queue, const char *type, uint64_t handle), (queue, type, handle))
GUARD_LIGHT(native_queues, queue_block_native, hal_status, false,
            (hal_plugin_queue * queue, const char *type, uint64_t handle), (queue, type, handle))
GUARD_LIGHT(virtual_memory, part_bytes, hal_status, false,
            (hal_plugin_device * device, uint64_t *bytes), (device, bytes))
GUARD_LIGHT(virtual_memory, memory_reserve, hal_status, false,
            (hal_plugin_device * device, uint64_t bytes, hal_plugin_memory **memory),
            (device, bytes, memory))
GUARD_LIGHT(virtual_memory, memory_commit, hal_status, false,
            (hal_plugin_device * device, hal_plugin_memory *memory, uint64_t offset,
             uint64_t bytes),
            (device, memory, offset, bytes))
GUARD_LIGHT(virtual_memory, memory_decommit, hal_status, false,
            (hal_plugin_device * device, hal_plugin_memory *memory, uint64_t offset,
             uint64_t bytes),
            (device, memory, offset, bytes))
GUARD_LIGHT(virtual_memory, memory_protect, hal_status, false,
            (hal_plugin_device * device, hal_plugin_memory *memory, uint64_t offset, uint64_t bytes,
             uint32_t access),
            (device, memory, offset, bytes, access))
GUARD_LIGHT(reports, kernel_report, hal_status, false,
            (hal_plugin_device * device, hal_plugin_kernel *kernel, hal_kernel_report *report),
            (device, kernel, report))
GUARD_LIGHT(reports, clocks_read, hal_status, false,
            (hal_plugin_device * device, hal_clocks *clocks), (device, clocks))
GUARD_LIGHT(reports, queue_time, hal_status, false,
            (hal_plugin_queue * queue, uint64_t value, uint64_t *device_ns),
            (queue, value, device_ns))
GUARD_LIGHT(quirks, device_quirk, hal_status, false,
            (hal_plugin_device * device, uint32_t index, hal_quirk *quirk), (device, index, quirk))
GUARD_LIGHT(fences, fence_info, hal_status, false,
            (hal_plugin_device * device, uint32_t *import_kinds, uint32_t *export_kinds),
            (device, import_kinds, export_kinds))
GUARD_LIGHT(fences, fence_import, hal_status, false,
            (hal_plugin_device * device, uint32_t kind, uint64_t handle, hal_plugin_fence **fence),
            (device, kind, handle, fence))
GUARD_LIGHT(fences, fence_create, hal_status, false,
            (hal_plugin_device * device, uint32_t kind, hal_plugin_fence **fence),
            (device, kind, fence))
GUARD_LIGHT(fences, fence_export, hal_status, false,
            (hal_plugin_device * device, hal_plugin_fence *fence, uint32_t kind, uint64_t *handle),
            (device, fence, kind, handle))
GUARD_LIGHT_VOID(fences, fence_destroy, (hal_plugin_device * device, hal_plugin_fence *fence),
                 (device, fence))
GUARD_LIGHT(fences, queue_signal_fence, hal_status, false,
            (hal_plugin_queue * queue, hal_plugin_fence *fence, uint64_t value),
            (queue, fence, value))
GUARD_LIGHT(external, external_info, hal_status, false,
            (hal_plugin_device * device, hal_external_info *info), (device, info))
GUARD_LIGHT(external, memory_import, hal_status, false,
            (hal_plugin_device * device, const hal_memory_handle *handle,
             hal_plugin_memory **memory),
            (device, handle, memory))
GUARD_LIGHT(external, memory_allocate_shareable, hal_status, false,
            (hal_plugin_device * device, uint32_t handle_kind, uint64_t bytes,
             hal_plugin_memory **memory),
            (device, handle_kind, bytes, memory))
GUARD_LIGHT(external, memory_export, hal_status, false,
            (hal_plugin_device * device, hal_plugin_memory *memory, uint32_t kind,
             hal_memory_handle *handle),
            (device, memory, kind, handle))
GUARD_LIGHT(peers, device_can_access_peer, uint32_t, false,
            (hal_plugin_device * device, hal_plugin_device *other), (device, other))
GUARD_LIGHT(collectives, comm_poll, hal_status, false, (hal_plugin_comm * comm), (comm))
GUARD_LIGHT_VOID(table, memory_free, (hal_plugin_device * device, hal_plugin_memory *memory),
                 (device, memory))
GUARD_LIGHT_VOID(table, kernel_destroy, (hal_plugin_device * device, hal_plugin_kernel *kernel),
                 (device, kernel))
GUARD_LIGHT_VOID(table, queue_destroy, (hal_plugin_device * device, hal_plugin_queue *queue),
                 (device, queue))
GUARD_LIGHT_VOID(collectives, comm_abort, (hal_plugin_comm * comm), (comm))
GUARD_LIGHT_VOID(collectives, comm_destroy, (hal_plugin_comm * comm), (comm))

/* Numbers the later ones of equal ids: one device may have two drivers, and drivers without UUID
 * or address give the name. */
static void ids_number(hal_device_info *infos, uint32_t count)
{
    for (uint32_t i = count; i-- > 1;) {
        uint32_t earlier = 0;
        for (uint32_t j = 0; j < i; j++) {
            earlier += strcmp(infos[j].id, infos[i].id) == 0;
        }
        if (earlier > 0) {
            char number[16];
            const int bytes = snprintf(number, sizeof number, "#%u", earlier + 1);
            const size_t most = sizeof infos[i].id - 1 - (size_t)bytes, used = strlen(infos[i].id);
            memcpy(infos[i].id + (used < most ? used : most), number, (size_t)bytes + 1);
        }
    }
}

/* The devices of the driver, each with an id that no other one has. */
static hal_status devices_list(hal_device_info *infos, uint32_t capacity, uint32_t *count)
{
    const hal_status status = inner.enumerate(infos, capacity, count);
    if (status == HAL_OK && infos) {
        ids_number(infos, *count < capacity ? *count : capacity);
    }
    return status;
}

static hal_status guarded_enumerate(hal_plugin_instance *instance, hal_device_info *infos,
                                    uint32_t capacity, uint32_t *count)
{
    guard kept;
    pthread_mutex_lock(&devices_lock);
    guard_enter(&kept, instance, true, true);
    const hal_status status = devices_list(infos, capacity, count);
    guard_leave(&kept);
    pthread_mutex_unlock(&devices_lock);
    return status;
}

/* The place of an id among the devices. */
static hal_status device_find(const char *id, uint32_t *index)
{
    uint32_t count = 0;
    hal_status status = inner.enumerate(NULL, 0, &count);
    hal_device_info *infos = status == HAL_OK ? calloc(count + 1, sizeof *infos) : NULL;
    if (status == HAL_OK && !infos) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory to list devices",
                        inner.table.name);
    }
    const uint32_t capacity = count;
    if (status == HAL_OK && capacity > 0) {
        status = devices_list(infos, capacity, &count);
    }
    for (*index = 0; status == HAL_OK && *index < count && *index < capacity; ++*index) {
        if (strcmp(infos[*index].id, id) == 0) {
            free(infos);
            return HAL_OK;
        }
    }
    free(infos);
    return status != HAL_OK
               ? status
               : kit_fail(HAL_ERROR_NOT_FOUND, "%s: id: expected that of a device, got \"%s\"",
                          inner.table.name, id);
}

static hal_status guarded_device_open(hal_plugin_instance *instance, const char *id,
                                      hal_plugin_device **device)
{
    guard kept;
    uint32_t index = 0;
    *device = NULL;
    pthread_mutex_lock(&devices_lock);
    guard_enter(&kept, instance, true, true);
    hal_status status = device_find(id, &index);
    if (status == HAL_OK) {
        status = inner.device_open(index, device);
    }
    if (status == HAL_OK && *device) {
        host_set(*device, kit_host());
    }
    guard_leave(&kept);
    pthread_mutex_unlock(&devices_lock);
    return status;
}

static void guarded_device_close(hal_plugin_device *device)
{
    guard kept;
    if (!device) {
        return;
    }
    pthread_mutex_lock(&devices_lock);
    guard_enter(&kept, device, true, true);
    inner.table.device_close(device);
    guard_leave(&kept);
    pthread_mutex_unlock(&devices_lock);
}

/* Without a guard: what is no function, what makes no call of a driver, and what the kit makes. */
#define guarded_formats inner.native.formats
#define guarded_host_copy inner.host_copy.host_copy
#define guarded_queue_fail_next inner.faults.queue_fail_next
#define guarded_instance_destroy inner.table.instance_destroy

void kit_guard_waits_alone(void)
{
    waits_alone = true;
}

void kit_guard_plugin(kit_plugin *plugin)
{
    if (plugin->table.submit == guarded_submit) {
        return;
    }
    inner = *plugin;
#define REPLACE(entry) plugin->table.entry = plugin->table.entry ? guarded_##entry : NULL;
    HAL_REQUIRED_ENTRIES(REPLACE)
#undef REPLACE
#define REPLACE(of, entry) plugin->of.entry = plugin->of.entry ? guarded_##entry : NULL;
    HAL_EXTENSION_ENTRIES(REPLACE)
#undef REPLACE
    plugin->table.enumerate = plugin->enumerate ? guarded_enumerate : NULL;
    plugin->table.device_open = plugin->device_open ? guarded_device_open : NULL;
    if (waits_alone) {
        plugin->table.wait = inner.table.wait;
    }
}
