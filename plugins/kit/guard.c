/* See guard.h. A plugin is one shared object with one table, so `inner` is a static. */
#include "guard.h"

#include "fp.h"
#include "process_state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static hal_plugin inner;
static bool is_guarded, waits_alone;

/* Compiling keeps the state of the process until a kernel was created: compilers install their
 * handlers once, and a handler that the program installs meanwhile would be lost. */
static _Atomic bool has_compiled;

/* Of entries that compute or wait. A thread cancelled in a driver would leave its locks taken. */
typedef struct light_guard {
    kit_fp fp;
    int cancel_state;
} light_guard;

static void light_enter(light_guard *kept)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &kept->cancel_state);
    kit_fp_enter(&kept->fp);
}

static void light_leave(light_guard *kept)
{
    kit_fp_leave(&kept->fp);
    pthread_setcancelstate(kept->cancel_state, &kept->cancel_state);
}

typedef struct guard {
    light_guard light;
    kit_thread_state thread;
    kit_process_state *process; /* null: not kept */
} guard;

static void guard_enter(guard *kept, bool keeps_process, bool blocks_signals)
{
    light_enter(&kept->light);
    kept->process = keeps_process ? kit_process_state_keep() : NULL;
    kit_thread_state_keep(&kept->thread, blocks_signals);
}

static void guard_leave(guard *kept)
{
    kit_thread_state_restore(&kept->thread);
    kit_process_state_restore(kept->process);
    light_leave(&kept->light);
}

#define GUARD_LIGHT(name, parameters, arguments)        \
    static hal_status guarded_##name parameters         \
    {                                                   \
        light_guard kept;                               \
        light_enter(&kept);                             \
        const hal_status status = inner.name arguments; \
        light_leave(&kept);                             \
        return status;                                  \
    }

#define GUARD_LIGHT_VOID(name, parameters, arguments) \
    static void guarded_##name parameters             \
    {                                                 \
        light_guard kept;                             \
        light_enter(&kept);                           \
        inner.name arguments;                         \
        light_leave(&kept);                           \
    }

/* Entries that start threads, and with keeps_process open drivers. */
#define GUARD_START(name, keeps_process, parameters, arguments) \
    static hal_status guarded_##name parameters                 \
    {                                                           \
        guard kept;                                             \
        guard_enter(&kept, keeps_process, true);                \
        const hal_status status = inner.name arguments;         \
        guard_leave(&kept);                                     \
        return status;                                          \
    }

#define GUARD_COMPILE(name, parameters, arguments)              \
    static hal_status guarded_##name parameters                 \
    {                                                           \
        guard kept;                                             \
        guard_enter(&kept, !atomic_load(&has_compiled), false); \
        const hal_status status = inner.name arguments;         \
        if (status == HAL_OK) {                                 \
            atomic_store(&has_compiled, true);                  \
        }                                                       \
        guard_leave(&kept);                                     \
        return status;                                          \
    }

GUARD_START(enumerate, true, (hal_device_info * infos, uint32_t capacity, uint32_t *count),
            (infos, capacity, count))
GUARD_START(device_open, true, (uint32_t index, hal_plugin_device **device), (index, device))
GUARD_START(queue_create, false, (hal_plugin_device * device, hal_plugin_queue **queue),
            (device, queue))
GUARD_START(comm_backend, true, (hal_plugin_comm_backend * backend), (backend))
GUARD_START(comm_id, true, (hal_plugin_comm_id * id), (id))
GUARD_START(comm_create, false,
            (hal_plugin_device * device, const hal_plugin_comm_id *id, uint32_t rank,
             uint32_t count, hal_plugin_comm **comm),
            (device, id, rank, count, comm))

GUARD_COMPILE(kernel_create,
              (hal_plugin_device * device, const hal_ir_kernel *ir, hal_plugin_kernel **kernel),
              (device, ir, kernel))
GUARD_COMPILE(kernel_create_native,
              (hal_plugin_device * device, const char *format, const void *code, uint64_t bytes,
               const char *entry, const hal_ir_kernel *signature, hal_plugin_kernel **kernel),
              (device, format, code, bytes, entry, signature, kernel))
GUARD_COMPILE(gemm,
              (hal_plugin_device * device, const hal_gemm_description *description,
               hal_plugin_kernel **kernel, uint64_t *workspace_bytes),
              (device, description, kernel, workspace_bytes))

GUARD_LIGHT(gemm_estimate,
            (hal_plugin_device * device, const hal_gemm_description *description, double most_ns,
             double *nanoseconds),
            (device, description, most_ns, nanoseconds))
GUARD_LIGHT(submit,
            (hal_plugin_queue * queue, const hal_batch *batch, const hal_plugin_wait *waits,
             uint32_t wait_count, uint64_t value),
            (queue, batch, waits, wait_count, value))
GUARD_LIGHT(wait, (hal_plugin_queue * queue, uint64_t value, uint64_t timeout_ns),
            (queue, value, timeout_ns))
GUARD_LIGHT(queue_elapsed,
            (hal_plugin_queue * queue, uint64_t first, uint64_t second, uint64_t *nanoseconds),
            (queue, first, second, nanoseconds))
GUARD_LIGHT(memory_info, (hal_plugin_device * device, uint64_t *free_bytes, uint64_t *total_bytes),
            (device, free_bytes, total_bytes))
GUARD_LIGHT(memory_allocate,
            (hal_plugin_device * device, uint32_t kind, uint64_t bytes, hal_plugin_memory **memory),
            (device, kind, bytes, memory))
GUARD_LIGHT(comm_poll, (hal_plugin_comm * comm), (comm))
GUARD_LIGHT_VOID(memory_free, (hal_plugin_device * device, hal_plugin_memory *memory),
                 (device, memory))
GUARD_LIGHT_VOID(kernel_destroy, (hal_plugin_device * device, hal_plugin_kernel *kernel),
                 (device, kernel))
GUARD_LIGHT_VOID(queue_destroy, (hal_plugin_device * device, hal_plugin_queue *queue),
                 (device, queue))
GUARD_LIGHT_VOID(comm_abort, (hal_plugin_comm * comm), (comm))
GUARD_LIGHT_VOID(comm_destroy, (hal_plugin_comm * comm), (comm))

static void guarded_device_close(hal_plugin_device *device)
{
    guard kept;
    guard_enter(&kept, true, true);
    inner.device_close(device);
    guard_leave(&kept);
}

/* Disabling cancellation takes as long as the rest of a small submit. */
static hal_status submit_computing(hal_plugin_queue *queue, const hal_batch *batch,
                                   const hal_plugin_wait *waits, uint32_t wait_count,
                                   uint64_t value)
{
    kit_fp fp;
    kit_fp_enter(&fp);
    const hal_status status = inner.submit(queue, batch, waits, wait_count, value);
    kit_fp_leave(&fp);
    return status;
}

#define GUARDED(X)                                                                      \
    X(enumerate)                                                                        \
    X(device_open)                                                                      \
    X(device_close)                                                                     \
    X(memory_info)                                                                      \
    X(memory_allocate)                                                                  \
    X(memory_free)                                                                      \
    X(kernel_create)                                                                    \
    X(kernel_destroy)                                                                   \
    X(queue_create)                                                                     \
    X(queue_destroy)                                                                    \
    X(submit) X(wait) X(queue_elapsed) X(kernel_create_native) X(gemm) X(gemm_estimate) \
        X(comm_backend) X(comm_id) X(comm_create) X(comm_poll) X(comm_abort) X(comm_destroy)

void kit_guard_waits_alone(void)
{
    waits_alone = true;
}

void kit_guard_table(hal_plugin *table)
{
    if (is_guarded) {
        return;
    }
    is_guarded = true;
    inner = *table;
#define REPLACE(name) table->name = table->name ? guarded_##name : NULL;
    GUARDED(REPLACE)
#undef REPLACE
    if (waits_alone) {
        table->submit = submit_computing;
        table->wait = inner.wait;
    }
}
