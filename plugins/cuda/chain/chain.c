/* The chains of a queue: finding one for a run, and dedicating one to a run that is repeated. See
 * chain/chain.h. */
#include "chain/chain.h"

#include "chain/graph.h"

#include <stdlib.h>

enum {
    MIN_CAPACITY = 4,
    MAX_SHARED = 4,                 /* shared chains of one capacity */
    MAX_DEDICATED = 256,            /* dedicated chains */
    MAX_UNUSED = 8 * MAX_DEDICATED, /* launches after which an unused dedicated chain may go */
    MAX_NODES = 32 * CUDA_CHAIN_MAX /* of all dedicated chains */
};

/* A shared chain takes any run of its capacity; a dedicated one holds a single run for good, and
 * the driver launches it faster, as no node was ever changed or disabled. */
struct cuda_chain {
    cuda_chain *next; /* in the list of the queue */
    cuda_chain_graph graph;
    bool dedicated;
    uint32_t repeated_in_a_row; /* launches of the same run without another one between */
    uint32_t repeated;          /* launches of the same run */
    uint64_t hash;              /* of the run in the nodes; 0: none */
    uint64_t last_used;         /* in launches of the queue */
    cuda_chain *successor;      /* launched after this one the last time */
    cuda_run_copy run;          /* of the run in the nodes, once it was repeated */
};

static bool chain_holds(const hal_plugin_queue *queue, const cuda_chain *chain, const cuda_run *run)
{
    return chain->graph.enabled == run->count && cuda_run_equals(queue->device, &chain->run, run);
}

/* The chain that followed the last one before, or null. */
static cuda_chain *chain_expected(const hal_plugin_queue *queue)
{
    return queue->chains.last ? queue->chains.last->successor : NULL;
}

static uint32_t run_cut(hal_plugin_queue *queue, const cuda_run *run)
{
    uint64_t *hashes = queue->run_hashes;
    const cuda_chain *expected = chain_expected(queue);
    const cuda_run first = {run->batch, run->commands, expected ? expected->run.count : 0};
    if (first.count > 0 && first.count <= run->count && first.count >= run->count / 2 &&
        chain_holds(queue, expected, &first)) {
        return first.count;
    }
    cuda_run_hash_each(run, hashes);
    return cuda_period_cut(&queue->anchors, hashes, run->count);
}

static bool run_can_start_early(const hal_plugin_queue *queue, const cuda_run *run)
{
    bool early = run->count >= queue->device->early_start_min;
    for (uint32_t i = 0; i < run->count && early; i++) {
        early = run->commands[i].kernel->waits_itself;
    }
    return early;
}

static bool run_has_clusters(const cuda_run *run)
{
    bool found = false;
    for (uint32_t i = 0; i < run->count && !found; i++) {
        found = run->commands[i].kernel->in_clusters;
    }
    return found;
}

/* The shared chain of a capacity that was used the longest time ago, and how many there are. */
static cuda_chain *chain_oldest_shared(const hal_plugin_queue *queue, uint32_t capacity,
                                       bool early_start, uint32_t *count)
{
    cuda_chain *found = NULL;
    *count = 0;
    for (cuda_chain *chain = queue->chains.chains; chain != NULL; chain = chain->next) {
        if (!chain->dedicated && chain->graph.capacity == capacity &&
            chain->graph.early_start == early_start) {
            found = !found || chain->last_used < found->last_used ? chain : found;
            ++*count;
        }
    }
    return found;
}

/* The dedicated chain that was used the longest time ago, how many there are, and their nodes. */
static cuda_chain *chain_oldest_dedicated(const hal_plugin_queue *queue, uint32_t *count,
                                          uint32_t *nodes)
{
    cuda_chain *found = NULL;
    *count = *nodes = 0;
    for (cuda_chain *chain = queue->chains.chains; chain != NULL; chain = chain->next) {
        if (chain->dedicated) {
            found = !found || chain->last_used < found->last_used ? chain : found;
            ++*count;
            *nodes += chain->graph.capacity;
        }
    }
    return found;
}

static void chain_destroy(cuda_chain *chain)
{
    cuda_chain_graph_destroy(&chain->graph);
    free(chain->run.words);
    free(chain);
}

static hal_status chain_create(hal_plugin_queue *queue, uint32_t capacity, bool early_start,
                               const cuda_run *run, cuda_chain **chain)
{
    cuda_chain *made = calloc(1, sizeof *made);
    *chain = NULL;
    if (!made) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "cuda: no host memory for a chain");
    }
    const hal_status status =
        cuda_chain_graph_create(queue, capacity, early_start, run, &made->graph);
    if (status != HAL_OK) {
        free(made);
        return status;
    }
    made->next = queue->chains.chains;
    queue->chains.chains = made;
    *chain = made;
    return HAL_OK;
}

/* How often a run was seen before. It counts runs that no chain holds as well, as more of them may
 * take turns than there are chains; a run with the same slot restarts the count. */
static uint32_t run_seen_again(hal_plugin_queue *queue, uint64_t hash)
{
    const uint32_t slot = hash >> 8 & (CUDA_SEEN_RUNS - 1);
    if (queue->chains.seen[slot] != hash) {
        queue->chains.seen[slot] = hash;
        queue->chains.seen_again[slot] = 0;
        return 0;
    }
    return ++queue->chains.seen_again[slot];
}

/* The chain that holds a run with the same hash, or null. */
static cuda_chain *chain_known(const hal_plugin_queue *queue, const cuda_run *run, uint64_t hash,
                               bool early_start)
{
    cuda_chain *known = queue->chains.chains;
    while (known && (known->hash != hash || known->graph.enabled != run->count ||
                     known->graph.early_start != early_start)) {
        known = known->next;
    }
    return known;
}

/* A shared chain of the run's capacity, whose nodes are still to be set. */
static hal_status chain_share(hal_plugin_queue *queue, const cuda_run *run, uint64_t hash,
                              bool early_start, cuda_chain **chain)
{
    uint32_t capacity = MIN_CAPACITY, count = 0;
    while (capacity < run->count) {
        capacity *= 2;
    }
    *chain = chain_oldest_shared(queue, capacity, early_start, &count);
    hal_status status = HAL_OK;
    if (count < MAX_SHARED) {
        const cuda_run first = {run->batch, run->commands, 1};
        status = chain_create(queue, capacity, early_start, &first, chain);
    }
    if (status == HAL_OK) {
        (*chain)->hash = hash;
        (*chain)->repeated_in_a_row = 0;
        (*chain)->repeated = run_seen_again(queue, hash);
    }
    return status;
}

static hal_status chain_set(const hal_plugin_queue *queue, cuda_chain *chain, const cuda_run *run)
{
    bool changed = false;
    chain->run.count = 0;
    const hal_status status = cuda_chain_graph_set(queue, &chain->graph, run, &changed);
    chain->repeated_in_a_row = changed ? 0 : chain->repeated_in_a_row + 1;
    if (status == HAL_OK && chain->repeated_in_a_row > 0) {
        cuda_run_record(queue->device, &chain->run, run);
    }
    return status;
}

static void chain_unlink(hal_plugin_queue *queue, cuda_chain *chain)
{
    cuda_chain **link = &queue->chains.chains;
    while (*link != chain) {
        link = &(*link)->next;
    }
    *link = chain->next;
    for (cuda_chain *other = queue->chains.chains; other != NULL; other = other->next) {
        other->successor = other->successor == chain ? NULL : other->successor;
    }
    queue->chains.last = queue->chains.last == chain ? NULL : queue->chains.last;
}

/* A dedicated chain for the run; null without memory, and where there are too many. */
static cuda_chain *chain_dedicate(hal_plugin_queue *queue, const cuda_run *run, uint64_t hash,
                                  bool early_start)
{
    uint32_t count = 0, nodes = 0;
    cuda_chain *made = NULL, *oldest = chain_oldest_dedicated(queue, &count, &nodes);
    while (count >= MAX_DEDICATED || nodes + run->count > MAX_NODES) {
        if (oldest->last_used + MAX_UNUSED > queue->chains.launches) {
            return NULL; /* more runs take turns than fit: each would evict one needed soon */
        }
        cuda_functions()->cuStreamSynchronize(queue->stream); /* it may be running */
        chain_unlink(queue, oldest);
        chain_destroy(oldest);
        oldest = chain_oldest_dedicated(queue, &count, &nodes);
    }
    if (chain_create(queue, run->count, early_start, run, &made) != HAL_OK) {
        return NULL;
    }
    made->dedicated = true;
    made->hash = hash;
    return made;
}

/* Replaces a shared chain by a dedicated one, where the run was repeated. */
static void run_dedicate(hal_plugin_queue *queue, const cuda_run *run, cuda_chain **chain)
{
    cuda_chain *shared = *chain;
    if (shared->dedicated || (shared->repeated_in_a_row < queue->device->dedicate_after &&
                              shared->repeated < queue->device->dedicate_after)) {
        return;
    }
    shared->repeated_in_a_row = shared->repeated = 0;
    cuda_chain *dedicated = chain_dedicate(queue, run, shared->hash, shared->graph.early_start);
    if (dedicated) {
        shared->hash = 0;
        *chain = dedicated;
    }
}

/* The chain of a run, with its nodes set; null where the run has none, see cuda_chain_submit. */
static hal_status chain_find(hal_plugin_queue *queue, const cuda_run *run, cuda_chain **chain)
{
    const uint64_t hash = cuda_run_hash(run);
    const bool early_start = run_can_start_early(queue, run);
    hal_status status = HAL_OK;
    *chain = chain_known(queue, run, hash, early_start);
    if (!*chain && run_has_clusters(run)) {
        if (run_seen_again(queue, hash) < queue->device->dedicate_after) {
            return HAL_OK;
        }
        *chain = chain_dedicate(queue, run, hash, early_start);
    } else if (!*chain) {
        status = chain_share(queue, run, hash, early_start, chain);
    }
    return status == HAL_OK && *chain ? chain_set(queue, *chain, run) : status;
}

static hal_status run_launch(hal_plugin_queue *queue, const cuda_run *run, bool *submitted)
{
    cuda_chain *chain = chain_expected(queue);
    if (chain && chain_holds(queue, chain, run)) {
        chain->repeated_in_a_row++;
    } else {
        const hal_status status = chain_find(queue, run, &chain);
        if (status != HAL_OK || !chain) {
            return status == HAL_ERROR_OUT_OF_MEMORY ? HAL_OK : status;
        }
    }
    run_dedicate(queue, run, &chain);
    *submitted = true;
    chain->last_used = ++queue->chains.launches;
    if (queue->chains.last) {
        queue->chains.last->successor = chain;
    }
    queue->chains.last = chain;
    return cuda_check(cuda_functions()->cuGraphLaunch(chain->graph.executable, queue->stream),
                      "launching a graph of %u kernels", run->count);
}

static void list_destroy(cuda_chain **list)
{
    while (*list) {
        cuda_chain *next = (*list)->next;
        chain_destroy(*list);
        *list = next;
    }
}

/* Where a module was unloaded since, see chain/chain.h. Chains that may be running are destroyed by
 * a later call, as what they wait for may be up to the thread that submits. The device's
 * `unloading` is held. */
static void chains_drop_stale(hal_plugin_queue *queue)
{
    cuda_chain_cache *chains = &queue->chains;
    if (chains->stale && atomic_load(&queue->reached) >= chains->stale_until) {
        list_destroy(&chains->stale);
    }
    if (chains->unloads == queue->device->unloads) {
        return;
    }
    cuda_chain **end = &chains->stale;
    while (*end) {
        end = &(*end)->next;
    }
    *end = chains->chains;
    chains->stale_until = atomic_load(&queue->submitted) + 1; /* the batch in the making */
    chains->chains = chains->last = NULL;
    chains->unloads = queue->device->unloads;
}

uint32_t cuda_chain_cut(hal_plugin_queue *queue, const cuda_run *run)
{
    if (run->count < queue->device->chain_min) {
        return run->count;
    }
    pthread_rwlock_rdlock(&queue->device->unloading);
    const uint32_t count = run_cut(queue, run);
    pthread_rwlock_unlock(&queue->device->unloading);
    return count;
}

hal_status cuda_chain_submit(hal_plugin_queue *queue, const cuda_run *run, bool *submitted)
{
    *submitted = false;
    /* No module is unloaded while a graph that may hold one of its kernels is set and launched. */
    pthread_rwlock_rdlock(&queue->device->unloading);
    chains_drop_stale(queue);
    const hal_status status = run_launch(queue, run, submitted);
    pthread_rwlock_unlock(&queue->device->unloading);
    return status;
}

void cuda_chain_destroy_all(hal_plugin_queue *queue)
{
    list_destroy(&queue->chains.chains);
    list_destroy(&queue->chains.stale);
    queue->chains.last = NULL;
}
