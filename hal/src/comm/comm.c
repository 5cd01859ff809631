/* Communicators: creation, state and destruction of ranks. */
#include "comm.h"

#include "backend_create.h"
#include "direct.h"

#include "core/buffer.h"
#include "core/hooks.h"
#include "core/progress.h"

#include "base/cancel.h"
#include "base/fork.h"
#include "base/platform.h"
#include "base/status.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A closed fence is polled without a pause at first, 0.1 us or more each time: other ranks usually
 * come soon. The processor is kept meanwhile, since another program would use it for a time slice
 * of milliseconds; where ranks share processors, they get it soon. */
static const hal_poll_policy free_policy = {.attempts = 1000,
                                            .attempts_alone = 400,
                                            .polls_alone = 16,
                                            .yield_after = UINT32_MAX,
                                            .renew_below = 400};
static const hal_poll_policy crowded_policy = {
    .attempts = 2000, .attempts_alone = 2000, .yield_after = 64, .renew_below = 400};

/* A launcher usually binds each process to separate processors, so that one process does not know
 * those of the others. */
static bool ranks_are_crowded(const hal_mailbox *mailbox, uint32_t count)
{
    const bool is_local = mailbox && mailbox->file < 0 && !mailbox->transport;
    return (long)count > (is_local ? (long)hal_processor_count() : sysconf(_SC_NPROCESSORS_ONLN));
}

hal_status hal_comm_make(hal_device *device, hal_mailbox *mailbox, uint32_t rank, uint32_t count,
                         uint64_t time_limit_ns, const char *function, hal_comm **comm)
{
    hal_comm *made = calloc(1, sizeof *made);
    if (!made) {
        if (mailbox) {
            hal_mailbox_close(mailbox, rank);
        }
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "%s: no host memory", function);
    }
    atomic_store(&made->references, 1);
    made->device = hal_device_ref(device);
    made->mailbox = mailbox;
    made->rank = rank;
    made->count = count;
    made->policy = ranks_are_crowded(mailbox, count) ? &crowded_policy : &free_policy;
    made->time_limit_ns = time_limit_ns;
    if (mailbox) {
        hal_direct_post(mailbox, rank, made->key);
    }
    *comm = made;
    return HAL_OK;
}

/* Ranks of the process in groups of processes, for what their threads wait for. */
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
HAL_FORK_GUARD(shared_lock, HAL_FORK_LAYER)
static hal_comm *shared_comms;
static _Thread_local char thread_mark;

void hal_comm_set_thread(hal_comm *comm)
{
    atomic_store_explicit(&comm->thread, (uintptr_t)&thread_mark, memory_order_relaxed);
}

static bool comm_is_of_this_thread(hal_comm *comm)
{
    return atomic_load_explicit(&comm->thread, memory_order_relaxed) == (uintptr_t)&thread_mark;
}

static void shared_add(hal_comm *comm)
{
    if (comm && comm->mailbox && comm->mailbox->file >= 0) {
        hal_comm_set_thread(comm);
        pthread_mutex_lock(&shared_lock);
        comm->next_shared = shared_comms;
        shared_comms = comm;
        pthread_mutex_unlock(&shared_lock);
    }
}

static void shared_remove(const hal_comm *comm)
{
    pthread_mutex_lock(&shared_lock);
    for (hal_comm **at = &shared_comms; *at; at = &(*at)->next_shared) {
        if (*at == comm) {
            *at = comm->next_shared;
            break;
        }
    }
    pthread_mutex_unlock(&shared_lock);
}

bool hal_comm_has_left(const uint64_t group[4], uint32_t rank, uint64_t step)
{
    bool has_left = false;
    pthread_mutex_lock(&shared_lock);
    for (hal_comm *comm = shared_comms; comm; comm = comm->next_shared) {
        has_left |= comm->rank == rank && comm_is_of_this_thread(comm) && comm->last_step < step &&
                    memcmp(comm->mailbox->id.bytes, group, sizeof comm->mailbox->id.bytes) == 0;
    }
    pthread_mutex_unlock(&shared_lock);
    return has_left;
}

void hal_comm_write_left(const hal_wait_chain *waits)
{
    pthread_mutex_lock(&shared_lock);
    for (hal_comm *comm = shared_comms; comm; comm = comm->next_shared) {
        hal_mailbox_rank *own = hal_mailbox_rank_at(comm->mailbox, comm->rank);
        if (comm_is_of_this_thread(comm) && atomic_load(&own->consumed) == comm->last_step) {
            hal_mailbox_write_held(own, comm->last_step + 1, waits);
        }
    }
    pthread_mutex_unlock(&shared_lock);
}

hal_status hal_comm_start(hal_comm **comms, uint32_t count, const char *function)
{
    const hal_status status = hal_backend_create(comms, count, function);
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        shared_add(comms[i]);
    }
    for (uint32_t i = 0; status != HAL_OK && i < count; i++) {
        hal_comm_destroy(comms[i]);
        comms[i] = NULL;
    }
    return status;
}

void hal_comm_ref(hal_comm *comm)
{
    atomic_fetch_add(&comm->references, 1);
}

static void comm_free(hal_comm *comm)
{
    shared_remove(comm);
    while (comm->stages) {
        hal_comm_stage *stage = comm->stages;
        comm->stages = stage->next;
        hal_buffer_release(stage->outbox);
        hal_buffer_release(stage->inbox);
        for (uint32_t i = 0; i < HAL_SCRATCHES; i++) {
            hal_buffer_release(stage->scratch[i]);
        }
        free(stage);
    }
    for (hal_type type = 0; type < HAL_TYPE_COUNT; type++) {
        for (uint32_t i = 0; i < 4 * HAL_COMM_KERNELS; i++) {
            hal_kernel_release(comm->kernels[type][i / HAL_COMM_KERNELS][i % HAL_COMM_KERNELS]);
        }
    }
    hal_backend_destroy(comm);
    if (comm->mailbox) {
        hal_mailbox_close(comm->mailbox, comm->rank);
    }
    hal_device_unref(comm->device);
    free(comm);
}

void hal_comm_unref(hal_comm *comm)
{
    if (atomic_fetch_sub(&comm->references, 1) == 1) {
        comm_free(comm);
    }
}

hal_status hal_comm_id_create(hal_comm_id *id)
{
    if (!id) {
        return hal_null_argument("hal_comm_id_create", "id");
    }
    return getentropy(id->bytes, sizeof id->bytes) == 0
               ? HAL_OK
               : hal_fail(HAL_ERROR_IO, "hal_comm_id_create: the system has no random numbers");
}

static hal_status check_count(uint32_t count, const char *function)
{
    return count >= 1 && count <= HAL_COMM_MAX_RANKS
               ? HAL_OK
               : hal_fail(HAL_ERROR_INVALID_ARGUMENT, "%s: count: expected 1 to %u ranks, got %u",
                          function, HAL_COMM_MAX_RANKS, count);
}

hal_status hal_comm_create(hal_device *device, const hal_comm_options *options, hal_comm **comm)
{
    HAL_UNCANCELLED;
    if (!comm || !options) {
        return hal_null_argument("hal_comm_create", comm ? "options" : "comm");
    }
    *comm = NULL;
    HAL_TRY(hal_comm_check_device(device, "hal_comm_create"));
    HAL_TRY(check_count(options->count, "hal_comm_create"));
    if (options->rank >= options->count) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_comm_create: rank: expected one below count %u, got %u",
                        options->count, options->rank);
    }
    hal_status status = HAL_OK;
    const uint64_t limit = options->time_limit_ns ? options->time_limit_ns : HAL_COMM_TIME_LIMIT_NS;
    hal_mailbox *mailbox = NULL;
    if (options->count > 1) {
        status = hal_mailbox_open(&options->id, options->rank, options->count, true, limit,
                                  "hal_comm_create", &mailbox);
        if (status == HAL_OK) {
            status = hal_mailbox_wait_joined(mailbox, limit, "hal_comm_create");
            if (status != HAL_OK) {
                hal_mailbox_close(mailbox, options->rank);
            }
        }
    }
    if (status == HAL_OK) {
        status = hal_comm_make(device, mailbox, options->rank, options->count, limit,
                               "hal_comm_create", comm);
    }
    if (status == HAL_OK) {
        status = hal_comm_start(comm, 1, "hal_comm_create");
    }
    return status;
}

hal_status hal_comm_create_local(hal_device *const *devices, uint32_t count, uint64_t time_limit_ns,
                                 hal_comm **comms)
{
    HAL_UNCANCELLED;
    if (!devices || !comms) {
        return hal_null_argument("hal_comm_create_local", devices ? "comms" : "devices");
    }
    hal_comm_id id;
    HAL_TRY(check_count(count, "hal_comm_create_local"));
    hal_status status = HAL_OK;
    memset(comms, 0, count * sizeof(hal_comm *));
    const uint64_t limit = time_limit_ns ? time_limit_ns : HAL_COMM_TIME_LIMIT_NS;
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        status = hal_comm_check_device(devices[i], "hal_comm_create_local");
    }
    if (status == HAL_OK) {
        status = hal_comm_id_create(&id);
    }
    for (uint32_t i = 0; status == HAL_OK && i < count; i++) {
        hal_mailbox *mailbox = NULL;
        if (count > 1) {
            status =
                hal_mailbox_open(&id, i, count, false, limit, "hal_comm_create_local", &mailbox);
        }
        if (status == HAL_OK) {
            status = hal_comm_make(devices[i], mailbox, i, count, limit, "hal_comm_create_local",
                                   &comms[i]);
        }
    }
    if (status == HAL_OK) {
        return hal_comm_start(comms, count, "hal_comm_create_local");
    }
    for (uint32_t i = 0; i < count; i++) {
        hal_comm_destroy(comms[i]);
        comms[i] = NULL;
    }
    return status;
}

hal_status hal_comm_abort(hal_comm *comm, const char *reason)
{
    if (!comm) {
        return hal_null_argument("hal_comm_abort", "comm");
    }
    if (hal_device_is_after_fork(comm->device)) {
        return hal_device_check(comm->device, "hal_comm_abort");
    }
    if (comm->mailbox) {
        hal_mailbox_fail(comm->mailbox, comm->rank, HAL_ERROR_INVALID_STATE,
                         reason && *reason ? reason : "hal_comm_abort was called");
    }
    atomic_store(&comm->is_aborted, 1);
    return HAL_OK;
}

hal_status hal_comm_get_status(hal_comm *comm, hal_comm_status *status)
{
    if (!comm || !status) {
        return hal_null_argument("hal_comm_get_status", comm ? "status" : "comm");
    }
    if (hal_device_is_after_fork(comm->device)) {
        return hal_device_check(comm->device, "hal_comm_get_status");
    }
    const hal_mailbox *mailbox = comm->mailbox;
    hal_progress_poll_all(true);
    *status = (hal_comm_status){.message = "",
                                .backend = comm->backend ? hal_backend_name(comm)
                                           : mailbox     ? hal_mailbox_backend(mailbox)
                                                         : "none",
                                .rank = comm->rank,
                                .count = comm->count,
                                .deterministic = !atomic_load(&comm->has_varied)};
    if (mailbox) {
        const hal_mailbox_header *header = mailbox->header;
        hal_saved_message before; /* the failure of the communicator is the answer of this call */
        hal_message_save(&before);
        hal_mailbox_check(comm->mailbox, "hal_comm_get_status");
        hal_message_restore(&before);
        status->completed = atomic_load(&hal_mailbox_rank_at(mailbox, comm->rank)->consumed) +
                            hal_backend_completed(comm);
        if (atomic_load_explicit(&header->failure, memory_order_acquire) == 2) {
            status->status = header->failed_status;
            status->failed_rank = header->failed_rank;
            status->message = header->message;
        }
    } else if (atomic_load(&comm->is_aborted)) {
        status->status = HAL_ERROR_INVALID_STATE;
        status->message = "rank 0 of 1: hal_comm_abort was called";
    }
    return HAL_OK;
}

void hal_comm_destroy(hal_comm *comm)
{
    HAL_UNCANCELLED;
    if (comm && !hal_device_is_after_fork(comm->device)) {
        hal_progress_poll_all(true); /* collectives that have ended leave the communicator */
        hal_comm_unref(comm);
    }
}
