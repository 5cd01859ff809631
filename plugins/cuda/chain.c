/* Chains, see chain.h. */
#include "chain.h"

#include <stdlib.h>
#include <string.h>

/* Chains of one capacity that a queue keeps, and such as were made for one run; runs after which
 * one of these that did not come again may go. */
enum { SMALLEST = 4, ALIKE = 4, KEPT = 32, FORGOTTEN = 8 * KEPT };

/* What a node of the executable holds at present. */
typedef struct chain_node {
    cuda_node node;
    uint64_t kernel; /* serial number; 0: not known */
    uint32_t grid[3];
    uint32_t bytes;
    uint32_t room;
    uint8_t *block;
} chain_node;

/* A run as it was handed over. The same words mean the same kernels and addresses as long as no
 * object of the device is gone, whose place another one may have taken. */
typedef struct chain_run {
    uint32_t count; /* 0: none is known */
    uint64_t command_bytes, binding_bytes, scalar_bytes;
    uint64_t gone; /* of the device's objects */
    uint64_t room;
    uint8_t *words; /* commands, bindings, scalars */
} chain_run;

struct cuda_chain {
    cuda_chain *next;
    cuda_graph graph;
    cuda_executable executable;
    uint32_t capacity;
    uint32_t enabled; /* the first nodes run, the others do not */
    uint32_t early;   /* its kernels start before the one in front of them is done */
    uint32_t kept;    /* made for the run that it holds: no node was ever changed or switched off */
    uint32_t same;    /* how often the run came again, one after the other */
    uint32_t again;   /* and in all */
    uint64_t mark;    /* of the run that it holds */
    uint64_t used;    /* serial number of its last use */
    uint64_t changes; /* of nodes */
    uint64_t unloads; /* of the device, when all nodes were looked through */
    cuda_chain *then; /* ran after this one the last time */
    chain_run run;    /* that the nodes hold, once it has come again */
    chain_node nodes[];
};

static chain_run measure(const hal_plugin_queue *queue, const hal_command *commands,
                         uint32_t count)
{
    const hal_command *last = &commands[count - 1];
    const uint64_t binding_end = (uint64_t)last->binding_first + last->binding_count,
                   scalar_end = (uint64_t)last->scalar_first + last->scalar_bytes;
    return (chain_run){
        .count = count,
        .command_bytes = count * sizeof *commands,
        .binding_bytes = (binding_end - commands->binding_first) * sizeof(hal_binding),
        .scalar_bytes = scalar_end - commands->scalar_first,
        .gone = queue->device->unloads + atomic_load(&queue->device->frees),
    };
}

static bool equal(const void *one, const void *other, uint64_t bytes)
{
    return bytes == 0 || memcmp(one, other, bytes) == 0;
}

/* In the same batch or in another place of one. */
static bool equal_commands(const hal_command *known, const hal_command *commands, uint32_t count)
{
    const uint32_t bindings = commands->binding_first - known->binding_first,
                   scalars = commands->scalar_first - known->scalar_first;
    if (bindings == 0 && scalars == 0) {
        return equal(known, commands, count * sizeof *commands);
    }
    bool same = true;
    for (uint32_t i = 0; i < count && same; i++) {
        const hal_command *one = &known[i], *other = &commands[i];
        same = one->kernel == other->kernel && one->grid[0] == other->grid[0] &&
               one->grid[1] == other->grid[1] && one->grid[2] == other->grid[2] &&
               one->binding_count == other->binding_count &&
               one->scalar_bytes == other->scalar_bytes &&
               one->binding_first + bindings == other->binding_first &&
               one->scalar_first + scalars == other->scalar_first;
    }
    return same;
}

/* Whether the nodes hold this very run, word by word as it was handed over. */
static bool holds(const hal_plugin_queue *queue, const cuda_chain *chain, const hal_batch *batch,
                  const hal_command *commands, uint32_t count)
{
    const chain_run *known = &chain->run;
    if (known->count != count || chain->enabled != count) {
        return false;
    }
    const chain_run run = measure(queue, commands, count);
    const uint8_t *bindings = known->words + known->command_bytes,
                  *scalars = bindings + known->binding_bytes;
    return run.gone == known->gone && run.binding_bytes == known->binding_bytes &&
           run.scalar_bytes == known->scalar_bytes &&
           equal_commands((const hal_command *)(const void *)known->words, commands, count) &&
           equal(bindings, batch->bindings + commands->binding_first, run.binding_bytes) &&
           equal(scalars, batch->scalars + commands->scalar_first, run.scalar_bytes);
}

/* Tells dispatches apart well enough; what is taken for equal is compared before it is used. */
static uint64_t mark_command(const hal_batch *batch, const hal_command *command)
{
    const hal_binding *bindings = batch->bindings + command->binding_first;
    uint64_t mark = command->kernel->serial + ((uint64_t)command->grid[0] << 32);
    for (uint32_t k = 0; k < command->binding_count; k++) {
        mark = (mark + (bindings[k].memory ? bindings[k].memory->address : 0) +
                bindings[k].offset) *
               0x9e3779b97f4a7c15;
    }
    if (command->scalar_bytes > 0) {
        const uint32_t bytes = command->scalar_bytes < 8 ? command->scalar_bytes : 8;
        uint64_t word = 0;
        memcpy(&word, batch->scalars + command->scalar_first, bytes);
        mark = (mark ^ mark >> 32 ^ word) * 0x9e3779b97f4a7c15;
    }
    return mark;
}

/* The smallest distance at which all marks repeat: what is left of the run without the longest part
 * that it both begins and ends with, as D. Knuth, J. Morris and V. Pratt find it. */
static uint32_t period_of(const uint64_t *marks, uint32_t count)
{
    uint16_t borders[CUDA_CHAIN_MOST]; /* of the run's first parts: how long theirs are */
    uint32_t border = 0;
    borders[0] = 0;
    for (uint32_t i = 1; i < count; i++) {
        while (border > 0 && marks[i] != marks[border]) {
            border = borders[border - 1];
        }
        border += marks[i] == marks[border];
        borders[i] = (uint16_t)border;
    }
    return count - border;
}

/* Where in the first turn an earlier loop was cut; else this one is, where it begins. */
static uint32_t find_anchor(hal_plugin_queue *queue, const uint64_t *marks, uint32_t period)
{
    for (uint32_t i = 0; i < period; i++) {
        for (uint32_t k = 0; k < CUDA_ANCHORS; k++) {
            if (queue->anchors[k] == marks[i]) {
                return i;
            }
        }
    }
    queue->anchors[queue->next_anchor++ % CUDA_ANCHORS] = marks[0];
    return 0;
}

static uint32_t piece_locked(hal_plugin_queue *queue, const hal_batch *batch,
                             const hal_command *commands, uint32_t count)
{
    uint64_t marks[CUDA_CHAIN_MOST];
    const cuda_chain *then = queue->last_chain != NULL ? queue->last_chain->then : NULL;
    const uint32_t known = then != NULL ? then->run.count : 0;
    if (known > 0 && known <= count && known >= count / 2 &&
        holds(queue, then, batch, commands, known)) {
        return known;
    }
    for (uint32_t i = 0; i < count; i++) {
        marks[i] = mark_command(batch, &commands[i]);
    }
    const uint32_t period = period_of(marks, count);
    if (period > count / 2) {
        return count;
    }
    const uint32_t anchor = find_anchor(queue, marks, period);
    return anchor > 0 ? anchor : count / period * period;
}

/* Tells runs apart well enough to find the chain that holds the same one; never 0. */
static uint64_t mark_of(const hal_batch *batch, const hal_command *commands, uint32_t count)
{
    uint64_t mark = count;
    for (uint32_t i = 0; i < count; i++) {
        mark = (mark ^ mark >> 32 ^ mark_command(batch, &commands[i])) * 0xc2b2ae3d27d4eb4f;
    }
    return mark | 1;
}

/* Whether kernels may start while the one in front of them is on its way out: all of them wait for
 * it by themselves. */
static uint32_t can_be_early(const hal_plugin_queue *queue, const hal_command *commands,
                             uint32_t count)
{
    uint32_t early = count >= queue->device->early_after;
    for (uint32_t i = 0; i < count && early; i++) {
        early = commands[i].kernel->waits;
    }
    return early;
}

/* The chain of a capacity (of any, early or not, if it is 0) that was used the longest time ago,
 * and how many there are. */
static cuda_chain *oldest(const hal_plugin_queue *queue, uint32_t capacity, uint32_t kept,
                          uint32_t early, uint32_t *alike)
{
    cuda_chain *found = NULL;
    *alike = 0;
    for (cuda_chain *chain = queue->chains; chain != NULL; chain = chain->next) {
        if (chain->kept == kept &&
            (capacity == 0 || (chain->capacity == capacity && chain->early == early))) {
            found = found == NULL || chain->used < found->used ? chain : found;
            ++*alike;
        }
    }
    return found;
}

static cuda_node_launch describe(const hal_command *command, void **parameters)
{
    const hal_plugin_kernel *kernel = command->kernel;
    cuda_node_launch launch = {
        .function = kernel->function, .shared_bytes = kernel->dynamic_shared, .extra = parameters};
    memcpy(launch.grid, command->grid, sizeof launch.grid);
    memcpy(launch.group, kernel->group, sizeof launch.group);
    return launch;
}

/* A node behind the last one. An early one begins as soon as every group of the one in front is
 * done or gone; what that wrote is seen behind the kernel's own wait. */
static cuda_result add_node(cuda_chain *chain, uint32_t index, const cuda_node_launch *launch)
{
    const cuda_driver *cu = cuda_functions();
    const cuda_node *front = index ? &chain->nodes[index - 1].node : NULL;
    cuda_node *node = &chain->nodes[index].node;
    if (!chain->early || front == NULL) {
        return cu->cuGraphAddKernelNode(node, chain->graph, front, front != NULL, launch);
    }
    const cuda_edge edge = {.from_port = CUDA_PORT_PROGRAMMATIC, .type = CUDA_EDGE_PROGRAMMATIC};
    const cuda_result result = cu->cuGraphAddKernelNode(node, chain->graph, NULL, 0, launch);
    return result ? result : cu->cuGraphAddDependencies_v2(chain->graph, front, node, &edge, 1);
}

/* Notes what a node holds; without memory for it, it is set anew the next time. */
static void keep(chain_node *node, const hal_command *command, const uint8_t *block, uint32_t bytes)
{
    if (node->room < bytes || node->block == NULL) {
        uint8_t *room = realloc(node->block, bytes + 1);
        if (room == NULL) {
            return;
        }
        node->block = room;
        node->room = bytes;
    }
    memcpy(node->block, block, bytes);
    memcpy(node->grid, command->grid, sizeof node->grid);
    node->bytes = bytes;
    node->kernel = command->kernel->serial;
}

static void release(cuda_chain *chain)
{
    if (chain->executable != NULL) {
        cuda_functions()->cuGraphExecDestroy(chain->executable);
    }
    if (chain->graph != NULL) {
        cuda_functions()->cuGraphDestroy(chain->graph);
    }
    for (uint32_t i = 0; i < chain->capacity; i++) {
        free(chain->nodes[i].block);
    }
    free(chain->run.words);
    free(chain);
}

/* A chain whose first nodes hold `count` dispatches, and the others the first of them. */
static hal_status build(hal_plugin_queue *queue, uint32_t capacity, uint32_t early,
                        const hal_batch *batch, const hal_command *commands, uint32_t count,
                        cuda_chain **chain)
{
    const cuda_driver *cu = cuda_functions();
    cuda_chain *made = calloc(1, sizeof *made + capacity * sizeof made->nodes[0]);
    *chain = NULL;
    if (made == NULL) {
        return cuda_fail(HAL_ERROR_OUT_OF_MEMORY, "cuda: no host memory for a graph of %u kernels",
                         capacity);
    }
    made->capacity = made->enabled = capacity;
    made->early = early;
    made->unloads = queue->device->unloads;
    cuda_result result = cu->cuGraphCreate(&made->graph, 0);
    for (uint32_t i = 0; i < capacity && result == 0; i++) {
        const hal_command *command = &commands[i < count ? i : 0];
        uint8_t block[CUDA_MAX_PARAMETERS];
        size_t bytes = cuda_fill_block(batch, command, block);
        void *parameters[5] = {CUDA_LAUNCH_BUFFER, block, CUDA_LAUNCH_SIZE, &bytes,
                               CUDA_LAUNCH_END};
        const cuda_node_launch launch = describe(command, parameters);
        result = add_node(made, i, &launch);
        keep(&made->nodes[i], command, block, (uint32_t)bytes);
    }
    if (result == 0) {
        result = cu->cuGraphInstantiateWithFlags(&made->executable, made->graph, 0);
    }
    if (result != 0) {
        release(made);
        return cuda_failed(result, "building a graph of %u kernels", capacity);
    }
    made->next = queue->chains;
    queue->chains = made;
    *chain = made;
    return HAL_OK;
}

/* How often a run came before, as far as others have not taken its place in the table: more
 * different ones may take turns than there are chains to hold them. */
static uint32_t note_mark(hal_plugin_queue *queue, uint64_t mark)
{
    const uint32_t at = mark >> 8 & (CUDA_MARKS - 1);
    if (queue->marks[at] != mark) {
        queue->marks[at] = mark;
        queue->mark_counts[at] = 0;
        return 0;
    }
    return ++queue->mark_counts[at];
}

/* The chain that holds the run already, else another one for runs of its length. */
static hal_status find(hal_plugin_queue *queue, const hal_batch *batch, const hal_command *commands,
                       uint32_t count, cuda_chain **chain)
{
    const uint64_t mark = mark_of(batch, commands, count);
    const uint32_t early = can_be_early(queue, commands, count);
    uint32_t capacity = SMALLEST, alike = 0;
    for (cuda_chain *known = queue->chains; known != NULL; known = known->next) {
        if (known->mark == mark && known->enabled == count && known->early == early) {
            *chain = known;
            return HAL_OK;
        }
    }
    while (capacity < count) {
        capacity *= 2;
    }
    *chain = oldest(queue, capacity, 0, early, &alike);
    const hal_status status =
        alike < ALIKE ? build(queue, capacity, early, batch, commands, 1, chain) : HAL_OK;
    if (status == HAL_OK) {
        (*chain)->mark = mark;
        (*chain)->same = 0;
        (*chain)->again = note_mark(queue, mark);
    }
    return status;
}

static hal_status set_node(cuda_chain *chain, uint32_t index, const hal_batch *batch,
                           const hal_command *command)
{
    uint8_t block[CUDA_MAX_PARAMETERS];
    chain_node *node = &chain->nodes[index];
    size_t bytes = cuda_fill_block(batch, command, block);
    if (node->kernel == command->kernel->serial && node->bytes == bytes &&
        memcmp(node->grid, command->grid, sizeof node->grid) == 0 &&
        memcmp(node->block, block, bytes) == 0) {
        return HAL_OK;
    }
    void *parameters[5] = {CUDA_LAUNCH_BUFFER, block, CUDA_LAUNCH_SIZE, &bytes, CUDA_LAUNCH_END};
    const cuda_node_launch launch = describe(command, parameters);
    node->kernel = 0; /* should it fail, it holds nothing that is known */
    chain->changes++;
    const cuda_result result =
        cuda_functions()->cuGraphExecKernelNodeSetParams(chain->executable, node->node, &launch);
    if (result != 0) {
        return cuda_failed(result, "setting a kernel of a graph");
    }
    keep(node, command, block, (uint32_t)bytes);
    return HAL_OK;
}

/* The first `count` nodes shall run, the others not. */
static hal_status enable(cuda_chain *chain, uint32_t count)
{
    cuda_result result = 0;
    while (chain->enabled != count && result == 0) {
        const bool more = chain->enabled < count;
        const uint32_t index = more ? chain->enabled : chain->enabled - 1;
        result = cuda_functions()->cuGraphNodeSetEnabled(chain->executable,
                                                         chain->nodes[index].node, more);
        chain->enabled += result != 0 ? 0 : more ? 1 : UINT32_MAX;
    }
    return cuda_failed(result, "enabling a kernel of a graph");
}

static void *append(uint8_t *at, const void *words, uint64_t bytes)
{
    if (bytes > 0) {
        memcpy(at, words, bytes);
    }
    return at + bytes;
}

/* Notes the run that the nodes hold. Without memory for it, or when bindings or scalars do not lie
 * between those of the first and of the last command, the nodes are compared one by one. */
static void note_run(const hal_plugin_queue *queue, cuda_chain *chain, const hal_batch *batch,
                     const hal_command *commands, uint32_t count)
{
    chain_run run = measure(queue, commands, count);
    const uint64_t all = run.command_bytes + run.binding_bytes + run.scalar_bytes;
    for (uint32_t i = 0; i < count; i++) {
        const hal_command *command = &commands[i];
        const uint64_t binding = command->binding_first - (uint64_t)commands->binding_first,
                       scalar = command->scalar_first - (uint64_t)commands->scalar_first;
        if (command->binding_first < commands->binding_first ||
            command->scalar_first < commands->scalar_first ||
            (binding + command->binding_count) * sizeof(hal_binding) > run.binding_bytes ||
            scalar + command->scalar_bytes > run.scalar_bytes) {
            return;
        }
    }
    run.words = chain->run.room < all ? realloc(chain->run.words, all) : chain->run.words;
    if (run.words == NULL) {
        return;
    }
    run.room = chain->run.room < all ? all : chain->run.room;
    uint8_t *at = append(run.words, commands, run.command_bytes);
    at = append(at, batch->bindings + commands->binding_first, run.binding_bytes);
    append(at, batch->scalars + commands->scalar_first, run.scalar_bytes);
    chain->run = run;
}

/* Nodes that do not run shall not hold kernels that are gone either. */
static hal_status set_all(hal_plugin_queue *queue, cuda_chain *chain, const hal_batch *batch,
                          const hal_command *commands, uint32_t count)
{
    const uint64_t unloads = queue->device->unloads;
    const uint64_t changes = chain->changes;
    hal_status status = HAL_OK;
    for (uint32_t i = 0; i < count && status == HAL_OK; i++) {
        status = set_node(chain, i, batch, &commands[i]);
    }
    chain->same = chain->changes == changes ? chain->same + 1 : 0;
    chain->run.count = 0;
    for (uint32_t i = count; i < chain->capacity && status == HAL_OK && chain->unloads != unloads;
         i++) {
        status = set_node(chain, i, batch, &commands[0]);
    }
    if (status == HAL_OK) {
        chain->unloads = unloads;
        status = enable(chain, count);
    }
    if (status == HAL_OK && chain->same > 0) {
        note_run(queue, chain, batch, commands, count);
    }
    return status;
}

static void unlink_chain(hal_plugin_queue *queue, cuda_chain *chain)
{
    cuda_chain **at = &queue->chains;
    while (*at != chain) {
        at = &(*at)->next;
    }
    *at = chain->next;
    for (cuda_chain *other = queue->chains; other != NULL; other = other->next) {
        other->then = other->then == chain ? NULL : other->then;
    }
    queue->last_chain = queue->last_chain == chain ? NULL : queue->last_chain;
}

/* A run that comes again and again gets a chain of its own, which the driver runs faster than one
 * whose nodes were changed. Without it the run goes on as it did. */
static void keep_run(hal_plugin_queue *queue, const hal_batch *batch, const hal_command *commands,
                     uint32_t count, cuda_chain **chain)
{
    uint32_t kept = 0;
    cuda_chain *own = NULL, *last = oldest(queue, 0, 1, 0, &kept);
    (*chain)->same = (*chain)->again = 0;
    if (kept >= KEPT) {
        if (last->used + FORGOTTEN > queue->chain_uses) {
            return; /* a turn of more runs than can be kept would only drive them out */
        }
        cuda_functions()->cuStreamSynchronize(queue->stream); /* it may be running */
        unlink_chain(queue, last);
        release(last);
    }
    if (build(queue, count, (*chain)->early, batch, commands, count, &own) == HAL_OK) {
        own->kept = 1;
        own->mark = (*chain)->mark;
        (*chain)->mark = 0;
        *chain = own;
    }
}

static hal_status run_locked(hal_plugin_queue *queue, const hal_batch *batch,
                             const hal_command *commands, uint32_t count)
{
    cuda_chain *chain = queue->last_chain != NULL ? queue->last_chain->then : NULL;
    hal_status status = HAL_OK;
    if (chain != NULL && holds(queue, chain, batch, commands, count)) {
        chain->same++;
    } else {
        status = find(queue, batch, commands, count, &chain);
        status = status == HAL_OK ? set_all(queue, chain, batch, commands, count) : status;
    }
    if (status != HAL_OK) {
        return status;
    }
    if (!chain->kept && (chain->same >= queue->device->keep_after ||
                         chain->again >= queue->device->keep_after)) {
        keep_run(queue, batch, commands, count, &chain);
    }
    chain->used = ++queue->chain_uses;
    if (queue->last_chain != NULL) {
        queue->last_chain->then = chain;
    }
    queue->last_chain = chain;
    return cuda_failed(cuda_functions()->cuGraphLaunch(chain->executable, queue->stream),
                       "launching a graph of %u kernels", count);
}

uint32_t cuda_chain_piece(hal_plugin_queue *queue, const hal_batch *batch,
                          const hal_command *commands, uint32_t count)
{
    if (count < queue->device->chain_from) {
        return count;
    }
    pthread_rwlock_rdlock(&queue->device->unloading);
    const uint32_t piece = piece_locked(queue, batch, commands, count);
    pthread_rwlock_unlock(&queue->device->unloading);
    return piece;
}

hal_status cuda_chain_run(hal_plugin_queue *queue, const hal_batch *batch,
                          const hal_command *commands, uint32_t count)
{
    /* No module goes while an executable that may still name it is looked through and launched. */
    pthread_rwlock_rdlock(&queue->device->unloading);
    const hal_status status = run_locked(queue, batch, commands, count);
    pthread_rwlock_unlock(&queue->device->unloading);
    return status;
}

void cuda_chain_end(hal_plugin_queue *queue)
{
    while (queue->chains != NULL) {
        cuda_chain *next = queue->chains->next;
        release(queue->chains);
        queue->chains = next;
    }
}
