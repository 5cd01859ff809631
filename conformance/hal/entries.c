/* entries.c: the walk through all entries. */
#include "hal/entries.h"

#include <string.h>

#include "hal/fixture.h"

typedef struct walk {
    case_run *run;
    direct *d;
    entries_look look;
    void *user;
    hal_plugin_kernel *kernel;
} walk;

/* After a call that has to succeed. */
static void must(const walk *w, hal_status status, const char *entry)
{
    case_check(w->run, status == HAL_OK, "%s gave %s: %s", entry, hal_status_name(status),
               w->d->message);
    w->look(w->run, w->user, entry);
}

/* After a call that a device may refuse. True where it did not. */
static bool may(const walk *w, hal_status status, const char *entry)
{
    direct_forget(w->d);
    w->look(w->run, w->user, entry);
    return status == HAL_OK;
}

static void done(const walk *w, const char *entry)
{
    w->look(w->run, w->user, entry);
}

static void begin(walk *w)
{
    enum { RECORDS = 8 };
    static uint64_t records[RECORDS * HAL_DEVICE_INFO_MAX_BYTES / sizeof(uint64_t)];
    direct *d = w->d;
    uint32_t count = 0;
    direct_instance(w->run, d);
    done(w, "hal_plugin_create and query_extension");
    must(w, d->table->enumerate(d->instance, (hal_device_info *)(void *)records, RECORDS, &count),
         "enumerate");
    may(w, d->table->device_open(d->instance, "no such device", &d->device),
        "device_open of an unknown id");
    d->device = NULL;
    must(w, d->table->device_open(d->instance, w->run->info->id, &d->device), "device_open");
    must(w, direct_make(d), "memory_allocate, memory_map and queue_create");
}

static void memories(const walk *w)
{
    const direct *d = w->d;
    hal_plugin_memory *memory = NULL;
    uint64_t numbers[2] = {0};
    void *pointer = NULL;
    for (uint32_t kind = 0; kind < HAL_MEMORY_KIND_COUNT; kind++) {
        must(w, d->table->memory_allocate(d->device, kind, 1 << 20, &memory), "memory_allocate");
        if (kind != HAL_MEMORY_DEVICE) {
            must(w, d->table->memory_map(d->device, memory, &pointer), "memory_map");
        }
        if (kind != HAL_MEMORY_DEVICE && d->coherence) {
            must(w, d->coherence->memory_flush(d->device, memory, 0, 1 << 20), "memory_flush");
        }
        if (kind != HAL_MEMORY_DEVICE && DIRECT_HAS(d, coherence, memory_invalidate)) {
            must(w, d->coherence->memory_invalidate(d->device, memory, 0, 1 << 20),
                 "memory_invalidate");
        }
        d->table->memory_free(d->device, memory);
        done(w, "memory_free");
    }
    may(w, d->table->memory_allocate(d->device, HAL_MEMORY_DEVICE, UINT64_C(1) << 56, &memory),
        "memory_allocate of 2^56 bytes");
    if (d->memory_info) {
        must(w, d->memory_info->memory_info(d->device, &numbers[0], &numbers[1]), "memory_info");
    }
    if (d->host_copy) {
        static uint8_t from[1 << 20], to[1 << 20];
        d->host_copy->host_copy(d->device, to, from, sizeof to);
        done(w, "host_copy");
    }
    if (d->peers) {
        d->peers->device_can_access_peer(d->device, d->device);
        done(w, "device_can_access_peer");
    }
}

static void batches(walk *w)
{
    direct *d = w->d;
    uint64_t nanoseconds = 0;
    must(w, d->table->kernel_create(d->device, scale_ir(w->run), &w->kernel), "kernel_create");
    must(w, direct_submit(d, 1, 1, DIRECT_FILL), "submit");
    const hal_plugin_wait wait = {.queue = d->queues[1], .value = d->submitted[1]};
    must(w, direct_submit_after(d, 0, 2, &wait, 1), "submit with a wait");
    may(w, direct_wait(d, 0, 0), "wait without a time");
    may(w, direct_wait(d, 0, 1000), "wait with a limit");
    must(w, direct_wait(d, 0, UINT64_MAX), "wait");
    if (d->timing) {
        must(w, d->timing->queue_elapsed(d->queues[0], 1, 1, &nanoseconds), "queue_elapsed");
    }
    if (d->reports) {
        hal_kernel_report report = {.size = sizeof report};
        must(w, d->reports->kernel_report(d->device, w->kernel, &report), "kernel_report");
    }
    if (d->timing && DIRECT_HAS_CLOCKS(d)) {
        hal_clocks clocks = {.size = sizeof clocks};
        must(w, d->reports->clocks_read(d->device, &clocks), "clocks_read");
        must(w, d->reports->queue_time(d->queues[0], 1, &nanoseconds), "queue_time");
    }
    if (d->quirks) {
        hal_quirk quirk = {.size = sizeof quirk};
        must(w, d->quirks->device_quirk(d->device, 0, &quirk), "device_quirk");
    }
}

static void products(const walk *w)
{
    const direct *d = w->d;
    const hal_gemm_description description = square_product(64);
    hal_plugin_kernel *kernel = NULL;
    uint64_t bytes = 0;
    double nanoseconds = 0;
    if (!d->gemm) {
        return;
    }
    if (may(w, d->gemm->gemm(d->device, &description, &kernel, &bytes), "gemm")) {
        d->table->kernel_destroy(d->device, kernel);
        done(w, "kernel_destroy of a product");
    }
    if (HAL_PLUGIN_HAS(d->gemm, gemm_estimate)) {
        may(w, d->gemm->gemm_estimate(d->device, &description, 0, &nanoseconds), "gemm_estimate");
    }
    if (HAL_PLUGIN_HAS(d->gemm, gemm_workspace)) {
        may(w, d->gemm->gemm_workspace(d->device, &description, &bytes), "gemm_workspace");
    }
}

static void parts(const walk *w)
{
    const direct *d = w->d;
    const hal_extension_virtual_memory *is = d->virtual_memory;
    hal_plugin_memory *memory = NULL;
    uint64_t part = 0;
    if (!is) {
        return;
    }
    must(w, is->part_bytes(d->device, &part), "part_bytes");
    must(w, is->memory_reserve(d->device, 2 * part, &memory), "memory_reserve");
    must(w, is->memory_commit(d->device, memory, 0, 2 * part), "memory_commit");
    if (HAL_PLUGIN_HAS(is, memory_protect)) {
        must(w, is->memory_protect(d->device, memory, part, part, HAL_ACCESS_READ),
             "memory_protect");
    }
    must(w, is->memory_decommit(d->device, memory, part, part), "memory_decommit");
    d->table->memory_free(d->device, memory);
    done(w, "memory_free of reserved memory");
    may(w, is->memory_reserve(d->device, UINT64_C(1) << 60, &memory),
        "memory_reserve of 2^60 bytes");
}

static void sharing(const walk *w)
{
    static uint64_t pages[65536 / 8] __attribute__((aligned(65536)));
    const direct *d = w->d;
    hal_external_info info = {.size = sizeof info};
    hal_memory_handle out = {.size = sizeof out};
    hal_plugin_memory *memory = NULL;
    const hal_memory_handle handle = {.size = sizeof handle,
                                      .kind = HAL_HANDLE_HOST,
                                      .handle = (uintptr_t)pages,
                                      .bytes = sizeof pages,
                                      .access = HAL_ACCESS_READ_WRITE};
    if (!d->external) {
        return;
    }
    must(w, d->external->external_info(d->device, &info), "external_info");
    const bool imports = (info.import_kinds & HAL_HANDLE_BIT(HAL_HANDLE_HOST)) != 0 &&
                         info.host_alignment <= sizeof pages &&
                         info.host_granularity <= sizeof pages;
    if ((info.export_kinds & HAL_HANDLE_BIT(HAL_HANDLE_NATIVE)) != 0 &&
        DIRECT_HAS(d, external, memory_export)) {
        may(w, d->external->memory_export(d->device, d->memory, HAL_HANDLE_NATIVE, &out),
            "memory_export");
    }
    if (imports && DIRECT_HAS(d, external, memory_import) &&
        may(w, d->external->memory_import(d->device, &handle, &memory), "memory_import")) {
        d->table->memory_free(d->device, memory);
        done(w, "memory_free of imported memory");
    }
}

/* Handles of a type that no driver has, and a fence that a queue raises. */
static void handles(const walk *w)
{
    static const char type[] = "no_such_type";
    direct *d = w->d;
    uint64_t handle = 0;
    hal_plugin_queue *queue = NULL;
    if (d->handles) {
        may(w, d->handles->device_handle(d->device, type, &handle), "device_handle");
    }
    if (DIRECT_HAS(d, handles, queue_handle)) {
        may(w, d->handles->queue_handle(d->queues[0], type, &handle), "queue_handle");
    }
    if (DIRECT_HAS(d, handles, kernel_handle)) {
        may(w, d->handles->kernel_handle(d->device, w->kernel, type, &handle), "kernel_handle");
    }
    if (d->native_queues) {
        may(w, d->native_queues->queue_import(d->device, type, 0, &queue), "queue_import");
    }
    if (DIRECT_HAS(d, native_queues, queue_wait_native)) {
        may(w, d->native_queues->queue_wait_native(d->queues[0], type, 0), "queue_wait_native");
    }
    if (DIRECT_HAS(d, native_queues, queue_block_native)) {
        may(w, d->native_queues->queue_block_native(d->queues[0], type, 0), "queue_block_native");
    }
}

static void fences(const walk *w)
{
    direct *d = w->d;
    const hal_extension_fences *is = d->fences;
    const uint32_t bit = HAL_HANDLE_BIT(HAL_HANDLE_NATIVE);
    uint32_t imports = 0, exports = 0;
    uint64_t handle = 0;
    hal_plugin_fence *made = NULL, *imported = NULL;
    if (!is) {
        return;
    }
    must(w, is->fence_info(d->device, &imports, &exports), "fence_info");
    if ((imports & exports & bit) == 0 || !HAL_PLUGIN_HAS(is, fence_create) ||
        !HAL_PLUGIN_HAS(is, fence_export)) {
        return;
    }
    must(w, is->fence_create(d->device, HAL_HANDLE_NATIVE, &made), "fence_create");
    must(w, is->fence_export(d->device, made, HAL_HANDLE_NATIVE, &handle), "fence_export");
    must(w, is->fence_import(d->device, HAL_HANDLE_NATIVE, handle, &imported), "fence_import");
    must(w, is->queue_signal_fence(d->queues[1], made, 1), "queue_signal_fence");
    const hal_plugin_wait wait = {.kind = HAL_WAIT_FENCE, .value = 1, .fence = imported};
    must(w, direct_submit_after(d, 0, 3, &wait, 1), "submit with a wait for a fence");
    must(w, direct_wait(d, 0, UINT64_MAX), "wait");
    is->fence_destroy(d->device, imported);
    is->fence_destroy(d->device, made);
    done(w, "fence_destroy");
}

/* A batch that fails, where no driver ends more with it, and the end of all objects. */
static void end(walk *w)
{
    direct *d = w->d;
    if (d->faults && !case_has_compiler(w->run)) {
        d->faults->queue_fail_next(d->queues[0]);
        done(w, "queue_fail_next");
        if (may(w, direct_submit(d, 0, 4, DIRECT_FILL), "submit of a batch that fails")) {
            may(w, direct_wait(d, 0, DIRECT_LIMIT_NS), "wait for a batch that failed");
        }
    }
    d->table->kernel_destroy(d->device, w->kernel);
    done(w, "kernel_destroy");
    w->kernel = NULL;
    direct_unmake(d);
    done(w, "queue_destroy and memory_free");
    d->table->device_close(d->device);
    d->device = NULL;
    done(w, "device_close");
    d->table->instance_destroy(d->instance);
    d->instance = NULL;
    done(w, "instance_destroy");
}

static void kernel_release(void *object)
{
    const walk *w = object;
    if (w->kernel) {
        w->d->table->kernel_destroy(w->d->device, w->kernel);
    }
}

void entries_walk(case_run *run, direct *d, entries_look look, void *user)
{
    walk *w = case_allocate(run, 1, sizeof *w);
    *w = (walk){.run = run, .d = d, .look = look, .user = user};
    case_own(run, direct_close_object, d);
    case_own(run, kernel_release, w);
    begin(w);
    memories(w);
    batches(w);
    products(w);
    parts(w);
    sharing(w);
    handles(w);
    fences(w);
    end(w);
}
