/* A plugin around the cpu plugin: eight devices with different ids, each the processor, and an
 * backend for collectives between them, for tests of communicators whose values matter. The ranks
 * of a communicator are of this process. The backend moves data on the host and computes sums of
 * i32; hal computes all other reductions. A collective begins with the second poll after the last
 * rank has submitted, so no rank finds it begun at once. It fails the communicator when hal breaks
 * the contract. */
#include "wrap.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES = 8, POLLS = 2 };

typedef struct clique clique;

struct hal_plugin_comm {
    hal_plugin_device *device;
    clique *clique;
    uint32_t rank;
    bool is_pending; /* a collective was submitted and has not ended */
    hal_plugin_collective call;
    uint8_t *send, *recv;
    uint64_t send_bytes, recv_bytes;
    hal_plugin_queue *queue;
    uint64_t value;
};

/* The ranks of a communicator. */
struct clique {
    clique *next;
    hal_plugin_comm_id id;
    uint32_t count, created, polls;
    bool is_aborted;
    hal_status failure;
    const char *message;
    hal_plugin_comm *ranks[DEVICES]; /* null before the creation and after the end of a rank */
};

static pthread_mutex_t backend_lock = PTHREAD_MUTEX_INITIALIZER;
static clique *cliques;
static uint64_t last_id;

static hal_status enumerate(hal_plugin_instance *instance, hal_device_info *infos,
                            uint32_t capacity, uint32_t *count)
{
    hal_device_info info;
    hal_status status = wrap_inside()->enumerate(instance, &info, 1, count);
    *count = DEVICES;
    for (uint32_t i = 0; status == HAL_OK && i < DEVICES && i < capacity; i++) {
        infos[i] = info;
        snprintf(infos[i].id, sizeof(infos[i].id), "backend:%u", i);
    }
    return status;
}

static hal_status device_open(hal_plugin_instance *instance, const char *id,
                              hal_plugin_device **device)
{
    return wrap_inside()->device_open(
        instance, strncmp(id, "backend:", 8) == 0 ? wrap_first_id() : id, device);
}

/* ---- Data ---- */

#define SIZE_OF_TYPE(NAME, number, since, name, bytes, ...) [number] = bytes,
static const uint8_t type_sizes[HAL_TYPE_COUNT] = {HAL_TYPE_TABLE(SIZE_OF_TYPE)};

static uint64_t call_bytes(const hal_plugin_collective *call)
{
    return call->count * type_sizes[call->type];
}

/* Whether the ranges of a rank are as long as its call needs them. */
static bool lengths_are_right(const clique *of, const hal_plugin_comm *rank)
{
    const hal_plugin_collective *call = &rank->call;
    const uint64_t bytes = call_bytes(call), all = of->count * bytes;
    const bool is_root = call->root == rank->rank;
    const bool divides =
        call->kind == HAL_COLLECTIVE_REDUCE_SCATTER || call->kind == HAL_COLLECTIVE_ALL_TO_ALL;
    const bool collects =
        call->kind == HAL_COLLECTIVE_ALL_GATHER || call->kind == HAL_COLLECTIVE_ALL_TO_ALL;
    const uint64_t sent = divides                                              ? all
                          : call->kind == HAL_COLLECTIVE_BROADCAST && !is_root ? 0
                                                                               : bytes;
    const uint64_t received = collects                                          ? all
                              : call->kind == HAL_COLLECTIVE_REDUCE && !is_root ? 0
                                                                                : bytes;
    return rank->send_bytes == sent &&
           (rank->recv_bytes == received || call->kind == HAL_COLLECTIVE_BROADCAST);
}

/* Whether all ranks have submitted the same call; the root of an exchange differs. */
static bool calls_are_equal(const clique *of)
{
    const hal_plugin_collective *first = &of->ranks[0]->call;
    bool are_equal = true;
    for (uint32_t q = 0; q < of->count; q++) {
        const hal_plugin_collective *call = &of->ranks[q]->call;
        are_equal &= call->kind == first->kind && call->count == first->count &&
                     call->type == first->type && call->reduction == first->reduction &&
                     (call->root == first->root || call->kind == HAL_COLLECTIVE_EXCHANGE) &&
                     lengths_are_right(of, of->ranks[q]);
    }
    return are_equal;
}

static void bytes_move(uint8_t *target, const uint8_t *source, uint64_t bytes)
{
    if (target && source) {
        memmove(target, source, bytes);
    }
}

/* Adds what all ranks have at `from` of send. */
static void sums_write(const clique *of, uint64_t from, uint64_t count, uint8_t *result)
{
    for (uint64_t i = 0; i < count; i++) {
        uint32_t sum = 0, term;
        for (uint32_t q = 0; q < of->count; q++) {
            memcpy(&term, of->ranks[q]->send + from + i * sizeof(term), sizeof(term));
            sum += term;
        }
        memcpy(result + i * sizeof(sum), &sum, sizeof(sum));
    }
}

/* The sum of integers. Contributions are whole until a rank has its result, since a result may
 * take the place of a contribution: it goes through memory of its own. */
static bool sums_move(const clique *of)
{
    const hal_plugin_collective *call = &of->ranks[0]->call;
    const uint64_t bytes = call_bytes(call),
                   parts = call->kind == HAL_COLLECTIVE_REDUCE_SCATTER ? of->count : 1;
    uint8_t *sums = malloc(parts * bytes);
    if (!sums) {
        return false;
    }
    for (uint64_t part = 0; part < parts; part++) {
        sums_write(of, part * bytes, call->count, sums + part * bytes);
    }
    for (uint32_t q = 0; q < of->count; q++) {
        bytes_move(of->ranks[q]->recv, sums + (parts > 1 ? q * bytes : 0), bytes);
    }
    free(sums);
    return true;
}

/* What rank `to` receives from rank `from`. */
static void pair_move(const hal_plugin_comm *from, const hal_plugin_comm *to)
{
    const uint64_t bytes = call_bytes(&to->call);
    switch (to->call.kind) {
    case HAL_COLLECTIVE_ALL_GATHER:
        bytes_move(to->recv + from->rank * bytes, from->send, bytes);
        break;
    case HAL_COLLECTIVE_ALL_TO_ALL:
        bytes_move(to->recv + from->rank * bytes, from->send + to->rank * bytes, bytes);
        break;
    case HAL_COLLECTIVE_BROADCAST:
        bytes_move(from->rank == to->call.root ? to->recv : NULL, from->send, bytes);
        break;
    default: /* HAL_COLLECTIVE_EXCHANGE */
        bytes_move(from->rank == to->call.root && from != to ? to->recv : NULL, from->send, bytes);
        break;
    }
}

static bool data_move(const clique *of)
{
    const hal_plugin_collective *call = &of->ranks[0]->call;
    if (call->kind == HAL_COLLECTIVE_ALL_REDUCE || call->kind == HAL_COLLECTIVE_REDUCE_SCATTER ||
        call->kind == HAL_COLLECTIVE_REDUCE) {
        return call->type == HAL_TYPE_I32 && call->reduction == HAL_REDUCE_SUM && sums_move(of);
    }
    for (uint32_t q = 0; q < of->count; q++) {
        for (uint32_t p = 0; p < of->count; p++) {
            pair_move(of->ranks[p], of->ranks[q]);
        }
    }
    return true;
}

/* ---- Collectives; the callers hold the lock ---- */

/* The queue reaches the value of the rank's collective. */
static void rank_end(hal_plugin_comm *rank)
{
    const hal_batch nothing = {.size = sizeof(nothing)};
    if (rank->is_pending) {
        wrap_inside()->submit(rank->queue, &nothing, NULL, 0, rank->value);
        rank->is_pending = false;
    }
}

static void clique_end(clique *of)
{
    for (uint32_t q = 0; q < of->count; q++) {
        if (of->ranks[q]) {
            rank_end(of->ranks[q]);
        }
    }
}

static void clique_fail(clique *of, const char *message)
{
    of->failure = HAL_ERROR_INTERNAL;
    of->message = message;
    clique_end(of);
}

static void clique_advance(clique *of)
{
    uint32_t pending = 0;
    for (uint32_t q = 0; q < of->count; q++) {
        pending += of->ranks[q] && of->ranks[q]->is_pending;
    }
    if (pending < of->count || ++of->polls < POLLS) {
        return;
    }
    of->polls = 0;
    if (!calls_are_equal(of)) {
        clique_fail(of, "backend: the ranks' calls differ, or their ranges are of wrong lengths");
    } else if (!data_move(of)) {
        clique_fail(of, "backend: a reduction that it does not claim, or no memory");
    } else {
        clique_end(of);
    }
}

/* A rank with a collective that has not begun, whose queue or device this is, or null. */
static hal_plugin_comm *pending_find(const hal_plugin_queue *queue, const hal_plugin_device *device)
{
    for (clique *of = cliques; of != NULL; of = of->next) {
        for (uint32_t q = 0; q < of->count; q++) {
            hal_plugin_comm *rank = of->ranks[q];
            if (rank && rank->is_pending && (rank->queue == queue || rank->device == device)) {
                return rank;
            }
        }
    }
    return NULL;
}

/* Fails the communicator whose collective another batch or collective has come after too early. */
static hal_status order_check(const hal_plugin_queue *queue, const hal_plugin_device *device)
{
    hal_plugin_comm *pending = pending_find(queue, device);
    if (!pending) {
        return HAL_OK;
    }
    clique_fail(pending->clique, "backend: a batch came before the collective had begun");
    return wrap_fail(HAL_ERROR_INTERNAL, pending->clique->message);
}

static hal_status range_find(const hal_plugin_comm *rank, const hal_binding *binding,
                             uint8_t **range)
{
    void *view = NULL;
    hal_status status = HAL_OK;
    *range = NULL;
    if (binding->length > 0) {
        status = wrap_inside()->memory_map(rank->device, binding->memory, &view);
    }
    if (status == HAL_OK && binding->length > 0) {
        *range = (uint8_t *)view + binding->offset;
    }
    return status;
}

/* The cpu plugin has run the earlier batches of the queue when their submit has returned. */
static hal_status collective_submit(hal_plugin_queue *queue, const hal_batch *batch, uint64_t value)
{
    const hal_command *command = &batch->commands[0];
    const hal_binding *bindings = batch->bindings + command->binding_first;
    hal_plugin_collective call;
    memcpy(&call, batch->scalars + command->scalar_first, sizeof(call));
    hal_plugin_comm *rank = call.comm;
    hal_status status = order_check(queue, rank->device);
    if (status == HAL_OK && (batch->command_count != 1 || command->binding_count != 2)) {
        status = wrap_fail(HAL_ERROR_INTERNAL, "backend: a collective is not alone");
    }
    if (status == HAL_OK) {
        status = range_find(rank, &bindings[0], &rank->send);
    }
    if (status == HAL_OK) {
        status = range_find(rank, &bindings[1], &rank->recv);
    }
    if (status != HAL_OK) {
        return status;
    }
    rank->call = call;
    rank->send_bytes = bindings[0].length;
    rank->recv_bytes = bindings[1].length;
    rank->queue = queue;
    rank->value = value;
    rank->is_pending = true;
    if (rank->clique->is_aborted || rank->clique->failure != HAL_OK) {
        rank_end(rank);
    }
    return HAL_OK;
}

static hal_status submit(hal_plugin_queue *queue, const hal_batch *batch,
                         const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    hal_status status = HAL_OK;
    const bool is_collective =
        batch->command_count > 0 && batch->commands[0].kind == HAL_COMMAND_COLLECTIVE;
    for (uint32_t i = 0; is_collective && status == HAL_OK && i < wait_count; i++) {
        status = wrap_inside()->wait(waits[i].queue, waits[i].value, UINT64_MAX);
    }
    pthread_mutex_lock(&backend_lock);
    if (status == HAL_OK) {
        status = is_collective ? collective_submit(queue, batch, value) : order_check(queue, NULL);
    }
    pthread_mutex_unlock(&backend_lock);
    return status == HAL_OK && !is_collective
               ? wrap_inside()->submit(queue, batch, waits, wait_count, value)
               : status;
}

/* ---- Entries of the backend ---- */

static hal_status comm_backend(hal_plugin_instance *instance, hal_plugin_comm_backend *backend)
{
    (void)instance;
    const uint32_t size = backend->size;
    *backend = (hal_plugin_comm_backend){.size = size,
                                         .version = 1,
                                         .name = "memmove",
                                         .description = "copies of the host",
                                         .sum_types = HAL_TYPE_BIT(HAL_TYPE_I32)};
    return HAL_OK;
}

static hal_status comm_id(hal_plugin_instance *instance, hal_plugin_comm_id *id)
{
    (void)instance;
    pthread_mutex_lock(&backend_lock);
    last_id++;
    memset(id, 0, sizeof(*id));
    memcpy(id->bytes, &last_id, sizeof(last_id));
    pthread_mutex_unlock(&backend_lock);
    return HAL_OK;
}

/* Null without memory. */
static clique *clique_for(const hal_plugin_comm_id *id, uint32_t count)
{
    clique *found = cliques;
    while (found && memcmp(&found->id, id, sizeof(*id)) != 0) {
        found = found->next;
    }
    if (!found && (found = calloc(1, sizeof(*found))) != NULL) {
        found->id = *id;
        found->count = count;
        found->next = cliques;
        cliques = found;
    }
    return found;
}

static hal_status comm_create(hal_plugin_device *device, const hal_plugin_comm_id *id,
                              uint32_t rank, uint32_t count, hal_plugin_comm **comm)
{
    hal_plugin_comm *made = count <= DEVICES ? calloc(1, sizeof(*made)) : NULL;
    pthread_mutex_lock(&backend_lock);
    clique *of = made ? clique_for(id, count) : NULL;
    if (of) {
        *made = (hal_plugin_comm){.device = device, .clique = of, .rank = rank};
        of->ranks[rank] = made;
        of->created++;
    }
    pthread_mutex_unlock(&backend_lock);
    if (!of) {
        free(made);
        return wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "backend: no memory, or too many ranks");
    }
    *comm = made;
    return HAL_OK;
}

static hal_status comm_poll(hal_plugin_comm *comm)
{
    clique *of = comm->clique;
    hal_status status = HAL_OK;
    pthread_mutex_lock(&backend_lock);
    if (comm->is_pending) {
        clique_advance(of);
    }
    if (of->failure != HAL_OK) {
        status = wrap_fail(of->failure, of->message);
    } else if (comm->is_pending || of->created < of->count) {
        status = HAL_ERROR_TIMEOUT;
    }
    pthread_mutex_unlock(&backend_lock);
    return status;
}

static void comm_abort(hal_plugin_comm *comm)
{
    pthread_mutex_lock(&backend_lock);
    comm->clique->is_aborted = true;
    clique_end(comm->clique);
    pthread_mutex_unlock(&backend_lock);
}

static void comm_destroy(hal_plugin_comm *comm)
{
    clique *of = comm->clique, **at = &cliques;
    uint32_t left = 0;
    pthread_mutex_lock(&backend_lock);
    of->ranks[comm->rank] = NULL;
    for (uint32_t q = 0; q < of->count; q++) {
        left += of->ranks[q] != NULL;
    }
    while (left == 0 && *at != of) {
        at = &(*at)->next;
    }
    if (left == 0) {
        *at = of->next;
        free(of);
    }
    pthread_mutex_unlock(&backend_lock);
    free(comm);
}

const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                    hal_plugin_instance **instance)
{
    wrap_table *table = wrap_open(WRAP_TARGET, host_abi, host, instance);
    if (table) {
        table->enumerate = enumerate;
        table->device_open = device_open;
        table->submit = submit;
        table->comm_backend = comm_backend;
        table->comm_id = comm_id;
        table->comm_create = comm_create;
        table->comm_poll = comm_poll;
        table->comm_abort = comm_abort;
        table->comm_destroy = comm_destroy;
    }
    return wrap_plugin(table);
}
