/* direct.c: the plugin under test with a host of the case's own. */
#include "hal/direct.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The host ---- */

static direct *direct_of(const hal_host *host)
{
    return (direct *)(uintptr_t)host;
}

static void *host_allocate(const hal_host *host, uint64_t bytes, uint64_t alignment)
{
    direct *d = direct_of(host);
    const size_t least = alignment < sizeof(void *) ? sizeof(void *) : (size_t)alignment;
    void *memory = NULL;
    pthread_mutex_lock(&d->lock);
    const bool fails = ++d->allocations == d->fails_at;
    pthread_mutex_unlock(&d->lock);
    if (fails || posix_memalign(&memory, least, bytes + 1) != 0) {
        return NULL;
    }
    pthread_mutex_lock(&d->lock);
    d->live++;
    pthread_mutex_unlock(&d->lock);
    return memory;
}

static void host_release(const hal_host *host, void *memory)
{
    direct *d = direct_of(host);
    pthread_mutex_lock(&d->lock);
    d->live -= memory != NULL;
    pthread_mutex_unlock(&d->lock);
    free(memory);
}

static void host_log(const hal_host *host, uint32_t level, const char *message)
{
}

static hal_status host_fail(const hal_host *host, hal_status status, const char *message)
{
    direct *d = direct_of(host);
    pthread_mutex_lock(&d->lock);
    snprintf(d->message, sizeof d->message, "%s", message ? message : "");
    pthread_mutex_unlock(&d->lock);
    return status;
}

static hal_status host_cache_load(const hal_host *host, const char *device_id,
                                  const uint64_t key[2], void **data, uint64_t *bytes)
{
    return HAL_ERROR_NOT_FOUND;
}

static hal_status host_cache_store(const hal_host *host, const char *device_id,
                                   const uint64_t key[2], const void *data, uint64_t bytes)
{
    return HAL_OK;
}

static void host_report(const hal_host *host, const char *message)
{
}

static void host_queue_reached(const hal_host *host, hal_plugin_queue *queue, uint64_t value)
{
    direct *d = direct_of(host);
    pthread_mutex_lock(&d->lock);
    for (int i = 0; i < DIRECT_QUEUES; i++) {
        if (d->queues[i] == queue && d->reached[i] < value) {
            d->reached[i] = value;
        }
    }
    pthread_mutex_unlock(&d->lock);
}

static void host_queue_failed(const hal_host *host, hal_plugin_queue *queue, const char *message)
{
    direct *d = direct_of(host);
    pthread_mutex_lock(&d->lock);
    for (int i = 0; i < DIRECT_QUEUES; i++) {
        if (d->queues[i] == queue) {
            snprintf(d->failed[i], sizeof d->failed[i], "%s", message ? message : "");
        }
    }
    pthread_mutex_unlock(&d->lock);
}

/* Hosts are never freed: a plugin may keep their addresses. The list is what leak checkers see. */
typedef struct kept_host {
    direct host; /* must be first */
    struct kept_host *next;
} kept_host;

static kept_host *kept_hosts;

direct *direct_host(case_run *run)
{
    kept_host *kept = calloc(1, sizeof *kept);
    case_check(run, kept != NULL, "no host memory");
    kept->next = kept_hosts;
    kept_hosts = kept;
    direct *made = &kept->host;
    pthread_mutex_init(&made->lock, NULL);
    made->host = (hal_host){.size = sizeof made->host,
                            .abi = HAL_PLUGIN_ABI,
                            .allocate = host_allocate,
                            .release = host_release,
                            .log = host_log,
                            .fail = host_fail,
                            .cache_load = host_cache_load,
                            .cache_store = host_cache_store,
                            .report = host_report,
                            .queue_reached = host_queue_reached,
                            .queue_failed = host_queue_failed};
    return made;
}

/* ---- The instance and its objects ---- */

static void release_report(void *report)
{
    hal_registry_report_destroy(report);
}

const char *direct_path(case_run *run)
{
    static char known[4096]; /* a process has one plugin under test; a report asks all drivers */
    hal_registry_report *report = NULL;
    if (known[0] != 0) {
        return known;
    }
    case_ok(run, hal_registry_report_create(&report), "hal_registry_report_create");
    case_own(run, release_report, report);
    for (uint32_t i = 0; i < report->plugin_count; i++) {
        const hal_plugin_report *plugin = &report->plugins[i];
        if (plugin->status == HAL_OK &&
            strcmp(plugin->name, hal_device_get_plugin_name(run->device)) == 0) {
            snprintf(known, sizeof known, "%s", plugin->path);
            return known;
        }
    }
    case_fail(run, "the device under test is not in the report");
}

/* Forgets extensions without the entries that hal uses together. */
static void extensions_complete(direct *d)
{
#define NEED(extension, name, entry) \
    d->extension = DIRECT_HAS(d, extension, entry) ? d->extension : NULL;
    HAL_EXTENSIONS(NEED)
#undef NEED
    if (!DIRECT_HAS(d, virtual_memory, part_bytes) ||
        !DIRECT_HAS(d, virtual_memory, memory_commit) ||
        !DIRECT_HAS(d, virtual_memory, memory_decommit)) {
        d->virtual_memory = NULL;
    }
    if (!DIRECT_HAS(d, fences, fence_info) || !DIRECT_HAS(d, fences, fence_destroy) ||
        !DIRECT_HAS(d, fences, queue_signal_fence)) {
        d->fences = NULL;
    }
}

static const void *extension_find(const direct *d, const char *name)
{
    return HAL_PLUGIN_HAS(d->table, query_extension)
               ? d->table->query_extension(d->instance, name, 1)
               : NULL;
}

void direct_instance(case_run *run, direct *opened)
{
    void *library = dlopen(direct_path(run), RTLD_NOW | RTLD_LOCAL); /* stays, as hal's does */
    void *symbol = library ? dlsym(library, HAL_PLUGIN_CREATE_SYMBOL) : NULL;
    hal_plugin_create_function create = NULL;
    case_check(run, symbol != NULL, "no %s in the plugin", HAL_PLUGIN_CREATE_SYMBOL);
    memcpy(&create, &symbol, sizeof create);
    opened->table = create(HAL_PLUGIN_ABI, &opened->host, &opened->instance);
    case_check(run, opened->table != NULL, "a second instance is refused: %s", opened->message);
#define FIND(extension, name, needed) opened->extension = extension_find(opened, name);
    HAL_EXTENSIONS(FIND)
#undef FIND
    extensions_complete(opened);
    opened->timing = (run->info->features & HAL_FEATURE_TIMESTAMPS) != 0 ? opened->timing : NULL;
}

hal_status direct_open(case_run *run, direct *opened)
{
    direct_instance(run, opened);
    return opened->table->device_open(opened->instance, run->info->id, &opened->device);
}

static hal_status memory_make(direct *d)
{
    void *pointer = NULL;
    hal_status status =
        d->table->memory_allocate(d->device, HAL_MEMORY_SHARED, DIRECT_WORDS * 4, &d->memory);
    if (status != HAL_OK) {
        d->memory = NULL;
        return status;
    }
    status = d->table->memory_map(d->device, d->memory, &pointer);
    d->words = pointer;
    return status;
}

hal_status direct_make(direct *opened)
{
    hal_status status = memory_make(opened);
    for (int i = 0; i < DIRECT_QUEUES && status == HAL_OK; i++) {
        hal_plugin_queue *made = NULL;
        status = opened->table->queue_create(opened->device, &made);
        pthread_mutex_lock(&opened->lock);
        opened->queues[i] = status == HAL_OK ? made : NULL;
        opened->submitted[i] = opened->reached[i] = 0;
        opened->failed[i][0] = 0;
        pthread_mutex_unlock(&opened->lock);
    }
    return status;
}

void direct_unmake(direct *opened)
{
    for (int i = 0; i < DIRECT_QUEUES; i++) {
        if (opened->queues[i]) {
            direct_wait(opened, (uint32_t)i, DIRECT_LIMIT_NS);
            opened->table->queue_destroy(opened->device, opened->queues[i]);
        }
        opened->queues[i] = NULL;
    }
    if (opened->memory) {
        opened->table->memory_free(opened->device, opened->memory);
    }
    opened->memory = NULL;
}

void direct_close(direct *opened)
{
    direct_unmake(opened);
    if (opened->device) {
        opened->table->device_close(opened->device);
    }
    if (opened->instance) {
        opened->table->instance_destroy(opened->instance);
    }
    opened->device = NULL;
    opened->instance = NULL;
}

void direct_close_object(void *opened)
{
    direct_close(opened);
}

direct *direct_opened(case_run *run)
{
    direct *d = direct_host(run);
    case_own(run, direct_close_object, d);
    case_ok(run, direct_open(run, d), "device_open of a second instance");
    case_ok(run, direct_make(d), "memory and queues of a second instance");
    return d;
}

static direct *shared;

/* After a report the device may be anything. */
static void shared_return(void *object)
{
    const case_run *run = object;
    if (run->status == CASE_FAILED || shared->may_be_lost) {
        direct_close(shared);
        shared = NULL;
    }
}

direct *direct_shared(case_run *run)
{
    if (!shared) {
        (void)direct_path(run); /* whose report the case owns */
        direct *opened = direct_host(run);
        const size_t objects = run->object_count;
        case_own(run, direct_close_object, opened);
        case_ok(run, direct_open(run, opened), "device_open of a second instance");
        case_ok(run, direct_make(opened), "memory and queues of a second instance");
        run->object_count = objects; /* it is no longer the case's */
        shared = opened;
    }
    case_own(run, shared_return, run);
    direct_forget(shared);
    return shared;
}

/* ---- Work ---- */

static hal_status work_submit(direct *opened, uint32_t queue, hal_binding binding, uint32_t pattern,
                              direct_work work, const hal_plugin_wait *waits, uint32_t wait_count)
{
    const uint32_t scalars[2] = {pattern, 0};
    const hal_command commands[2] = {
        {.kind = HAL_COMMAND_FILL, .binding_count = 1, .scalar_bytes = 4, .grid = {1, 1, 1}},
        {.kind = 0x7fff, .flags = HAL_COMMAND_BARRIER, .grid = {1, 1, 1}}};
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = work == DIRECT_FILL_UNKNOWN ? 2 : 1,
                             .binding_count = 1,
                             .scalar_bytes = sizeof scalars,
                             .commands = commands + (work == DIRECT_UNKNOWN),
                             .bindings = &binding,
                             .scalars = (const uint8_t *)scalars};
    const uint64_t value = opened->submitted[queue] + 1;
    const hal_status status =
        opened->table->submit(opened->queues[queue], &batch, waits, wait_count, value);
    opened->submitted[queue] += status == HAL_OK;
    opened->may_be_lost |=
        work != DIRECT_FILL && (status == HAL_OK || status == HAL_ERROR_DEVICE_LOST);
    return status;
}

static hal_binding all_words(const direct *opened)
{
    return (hal_binding){
        .memory = opened->memory, .length = DIRECT_WORDS * 4, .access = HAL_ACCESS_WRITE};
}

hal_status direct_submit(direct *opened, uint32_t queue, uint32_t pattern, direct_work work)
{
    return work_submit(opened, queue, all_words(opened), pattern, work, NULL, 0);
}

hal_status direct_fill(direct *opened, uint32_t queue, hal_plugin_memory *memory, uint64_t offset,
                       uint64_t bytes, uint32_t pattern)
{
    const hal_binding binding = {
        .memory = memory, .offset = offset, .length = bytes, .access = HAL_ACCESS_WRITE};
    return work_submit(opened, queue, binding, pattern, DIRECT_FILL, NULL, 0);
}

hal_status direct_submit_after(direct *opened, uint32_t queue, uint32_t pattern,
                               const hal_plugin_wait *waits, uint32_t wait_count)
{
    return work_submit(opened, queue, all_words(opened), pattern, DIRECT_FILL, waits, wait_count);
}

hal_status direct_wait(direct *opened, uint32_t queue, uint64_t timeout_ns)
{
    return opened->table->wait(opened->queues[queue], opened->submitted[queue], timeout_ns);
}

void direct_see_words(case_run *run, direct *opened)
{
    if (DIRECT_HAS(opened, coherence, memory_invalidate)) {
        case_ok(run,
                opened->coherence->memory_invalidate(opened->device, opened->memory, 0,
                                                     DIRECT_WORDS * 4),
                "memory_invalidate");
    }
}

void direct_check_words(case_run *run, direct *opened, uint32_t pattern, const char *what)
{
    direct_see_words(run, opened);
    for (uint32_t i = 0; i < DIRECT_WORDS; i++) {
        case_check(run, opened->words[i] == pattern, "%s: word %u is 0x%x instead of 0x%x", what, i,
                   opened->words[i], pattern);
    }
}

void direct_forget(direct *opened)
{
    pthread_mutex_lock(&opened->lock);
    opened->message[0] = 0;
    pthread_mutex_unlock(&opened->lock);
}

bool direct_has_message(direct *opened, uint32_t queue)
{
    pthread_mutex_lock(&opened->lock);
    const bool has = opened->message[0] != 0 || opened->failed[queue][0] != 0;
    pthread_mutex_unlock(&opened->lock);
    return has;
}

bool direct_is_utf8(const char *text)
{
    for (const uint8_t *at = (const uint8_t *)text; *at;) {
        const uint32_t more = *at < 0x80 ? 0 : *at >> 5 == 6 ? 1 : *at >> 4 == 14 ? 2 : 9;
        for (uint32_t i = 1; i <= more; i++) {
            if (more > 2 || at[i] >> 6 != 2) {
                return false;
            }
        }
        at += 1 + more;
    }
    return true;
}
