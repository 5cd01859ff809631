/* words.c: messages of calls that fail, and none of calls that do not, without hal in between: each
 * entry of the main table and of the extensions that can be made to fail, also on a device that was
 * lost. */
#include <hal/plugin.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "case/cases.h"
#include "hal/direct.h"
#include "hal/fixture.h"

#define UNKNOWN "no_such_type"
#define TOO_MUCH (UINT64_C(1) << 56) /* bytes that no device has */

static void silent_check(case_run *run, direct *d, const char *what)
{
    case_check(run, d->message[0] == 0, "%s passed a message to fail and did not fail: %s", what,
               d->message);
}

/* Of a call that may fail: a failure has a message, and nothing else has one, as hal would report
 * it with a later failure. */
static void answer_check(case_run *run, direct *d, hal_status status, const char *what)
{
    if (status == HAL_OK) {
        silent_check(run, d, what);
        return;
    }
    case_check(run, d->message[0] != 0, "%s gave %s without a message", what,
               hal_status_name(status));
    case_check(run, direct_is_utf8(d->message), "%s: the message is not UTF-8: %s", what,
               d->message);
    direct_forget(d);
}

/* Of a call that has to fail. `wanted`: HAL_OK for any status of a failure. */
static void failure_check(case_run *run, direct *d, hal_status status, hal_status wanted,
                          const char *what)
{
    case_check(run, status != HAL_OK, "%s succeeded", what);
    case_check(run, wanted == HAL_OK || status == wanted, "%s gave %s instead of %s", what,
               hal_status_name(status), hal_status_name(wanted));
    answer_check(run, d, status, what);
}

/* ---- The main table ---- */

static void allocations_fail(case_run *run, direct *d)
{
    static const char *const names[] = {
        "memory_allocate of 2^56 bytes of the device", "memory_allocate of 2^56 bytes for uploads",
        "memory_allocate of 2^56 bytes for downloads", "memory_allocate of 2^56 shared bytes"};
    for (uint32_t kind = 0; kind < HAL_MEMORY_KIND_COUNT; kind++) {
        hal_plugin_memory *memory = NULL;
        failure_check(run, d, d->table->memory_allocate(d->device, kind, TOO_MUCH, &memory),
                      HAL_ERROR_OUT_OF_MEMORY, names[kind]);
    }
}

/* Times of batches that are no longer kept. */
static void times_fail(case_run *run, direct *d)
{
    enum { KNOWN = 1024 }; /* and by plugins whose batches cost little often more */
    const uint32_t batches = (case_has_compiler(run) ? 2 : 16) * KNOWN + 100;
    const bool has_time = DIRECT_HAS_CLOCKS(d);
    uint64_t nanoseconds = 0;
    if (!d->timing) {
        return;
    }
    for (uint32_t i = 0; i < batches; i++) {
        case_ok(run, direct_submit(d, 0, i, DIRECT_FILL), "submit");
    }
    case_ok(run, direct_wait(d, 0, DIRECT_LIMIT_NS), "wait");
    answer_check(run, d, d->timing->queue_elapsed(d->queues[0], 1, d->submitted[0], &nanoseconds),
                 "queue_elapsed of old times");
    if (has_time) {
        answer_check(run, d, d->reports->queue_time(d->queues[0], 1, &nanoseconds),
                     "queue_time of an old batch");
    }
}

/* Later such a batch is a loss. */
static void submits_fail(case_run *run, direct *d)
{
    const hal_status status = direct_submit(d, 0, 7, DIRECT_UNKNOWN);
    if (status != HAL_OK && status != HAL_ERROR_DEVICE_LOST) {
        failure_check(run, d, status, HAL_ERROR_UNSUPPORTED, "submit of an unknown command");
    }
}

/* A batch with enough fills that a look is likely to find it in flight. */
static hal_status long_submit(case_run *run, direct *d)
{
    enum { COMMANDS = 5000 };
    static const uint32_t scalars[2] = {7, 0};
    const hal_binding binding = {
        .memory = d->memory, .length = 4 * DIRECT_WORDS, .access = HAL_ACCESS_WRITE};
    hal_command *commands = case_allocate(run, COMMANDS, sizeof *commands);
    for (uint32_t i = 0; i < COMMANDS; i++) {
        commands[i] = (hal_command){.kind = HAL_COMMAND_FILL,
                                    .flags = HAL_COMMAND_BARRIER,
                                    .binding_count = 1,
                                    .scalar_bytes = 4,
                                    .grid = {1, 1, 1}};
    }
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = COMMANDS,
                             .binding_count = 1,
                             .scalar_bytes = sizeof scalars,
                             .commands = commands,
                             .bindings = &binding,
                             .scalars = (const uint8_t *)scalars};
    return d->table->submit(d->queues[0], &batch, NULL, 0, ++d->submitted[0]);
}

static void successes_are_silent(case_run *run, direct *d)
{
    hal_plugin_kernel *kernel = NULL;
    uint64_t numbers[2] = {0};
    direct_forget(d);
    case_ok(run, d->table->kernel_create(d->device, scale_ir(run), &kernel), "kernel_create");
    d->table->kernel_destroy(d->device, kernel);
    silent_check(run, d, "kernel_create");
    case_ok(run, long_submit(run, d), "submit");
    silent_check(run, d, "submit");
    for (int i = 0; i < 3; i++) {
        const hal_status status = direct_wait(d, 0, i == 1 ? 1000 : 0);
        case_check(run, status == HAL_OK || status == HAL_ERROR_TIMEOUT, "a look gave %s",
                   hal_status_name(status));
        silent_check(run, d, status == HAL_OK ? "wait" : "a wait that ends by its limit");
    }
    case_ok(run, direct_wait(d, 0, DIRECT_LIMIT_NS), "wait");
    if (d->memory_info) {
        case_ok(run, d->memory_info->memory_info(d->device, &numbers[0], &numbers[1]),
                "memory_info");
    }
    if (d->timing) {
        case_ok(run, d->timing->queue_elapsed(d->queues[0], 1, 1, &numbers[0]), "queue_elapsed");
    }
    if (HAL_PLUGIN_HAS(d->table, query_extension)) {
        case_check(run, !d->table->query_extension(d->instance, "no.such.extension", 1),
                   "there is an extension of an unknown name");
        case_check(run, !d->table->query_extension(d->instance, HAL_EXTENSION_TIMING, 999),
                   "there is an extension of an unknown major version");
    }
    silent_check(run, d, "memory_info, queue_elapsed or query_extension");
}

static void words_of_failures(case_run *run, const void *parameters)
{
    direct *d = direct_opened(run);
    hal_plugin_device *device = NULL;
    successes_are_silent(run, d);
    failure_check(run, d, d->table->device_open(d->instance, "no such device", &device),
                  HAL_ERROR_NOT_FOUND, "device_open of an unknown id");
    allocations_fail(run, d);
    times_fail(run, d);
    submits_fail(run, d);
}

/* ---- Extensions ---- */

static void native_code_fails(case_run *run, direct *d)
{
    static const char code[] = "this is no code";
    hal_ir_kernel signature = *scale_ir(run);
    hal_plugin_kernel *kernel = NULL;
    char format[64] = "";
    if (!DIRECT_HAS(d, native, formats)) {
        return;
    }
    signature.record_count = 0;
    const size_t length = strcspn(d->native->formats, ",");
    memcpy(format, d->native->formats, length < sizeof format ? length : 0);
    failure_check(run, d,
                  d->native->kernel_create_native(d->device, format, code, sizeof code, "none",
                                                  &signature, &kernel),
                  HAL_OK, "kernel_create_native of nonsense");
}

/* Types of handles that no driver has. `lacks`: the status, HAL_OK for any. */
static void handles_fail(case_run *run, direct *d, hal_plugin_kernel *kernel, hal_status lacks)
{
    const hal_extension_native_queues *queues = d->native_queues;
    hal_plugin_queue *imported = NULL;
    uint64_t handle = 0;
    if (d->handles) {
        failure_check(run, d, d->handles->device_handle(d->device, UNKNOWN, &handle), lacks,
                      "device_handle of an unknown type");
        if (HAL_PLUGIN_HAS(d->handles, queue_handle)) {
            failure_check(run, d, d->handles->queue_handle(d->queues[0], UNKNOWN, &handle), lacks,
                          "queue_handle of an unknown type");
        }
        if (HAL_PLUGIN_HAS(d->handles, kernel_handle)) {
            failure_check(run, d, d->handles->kernel_handle(d->device, kernel, UNKNOWN, &handle),
                          lacks, "kernel_handle of an unknown type");
        }
    }
    if (queues) {
        failure_check(run, d, queues->queue_import(d->device, UNKNOWN, 0, &imported), lacks,
                      "queue_import of an unknown type");
        if (HAL_PLUGIN_HAS(queues, queue_wait_native)) {
            failure_check(run, d, queues->queue_wait_native(d->queues[0], UNKNOWN, 0), lacks,
                          "queue_wait_native of an unknown type");
        }
        if (HAL_PLUGIN_HAS(queues, queue_block_native)) {
            failure_check(run, d, queues->queue_block_native(d->queues[0], UNKNOWN, 0), lacks,
                          "queue_block_native of an unknown type");
        }
    }
}

static void reservations_fail(case_run *run, direct *d)
{
    hal_plugin_memory *memory = NULL;
    const hal_status status =
        d->virtual_memory ? d->virtual_memory->memory_reserve(d->device, 16 * TOO_MUCH, &memory)
                          : HAL_OK;
    answer_check(run, d, status, "memory_reserve of 2^60 bytes");
    if (status == HAL_OK && memory) {
        d->table->memory_free(d->device, memory);
    }
}

static bool has_kind(uint32_t kinds, hal_handle_kind kind)
{
    return (kinds & HAL_HANDLE_BIT(kind)) != 0;
}

/* Descriptors that are not open, and memory that no device has. */
static void descriptors_fail(case_run *run, direct *d, const hal_external_info *info)
{
    static const hal_handle_kind kinds[] = {HAL_HANDLE_OPAQUE_FD, HAL_HANDLE_DMA_BUF};
    const hal_extension_external *external = d->external;
    hal_plugin_memory *memory = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const hal_memory_handle closed = {.size = sizeof closed,
                                          .kind = kinds[i],
                                          .handle = 99999,
                                          .bytes = 65536,
                                          .access = HAL_ACCESS_READ_WRITE};
        if (has_kind(info->import_kinds, kinds[i]) && HAL_PLUGIN_HAS(external, memory_import)) {
            failure_check(run, d, external->memory_import(d->device, &closed, &memory), HAL_OK,
                          "memory_import of a descriptor that is not open");
        }
        if (has_kind(info->export_kinds, kinds[i]) &&
            HAL_PLUGIN_HAS(external, memory_allocate_shareable)) {
            failure_check(
                run, d, external->memory_allocate_shareable(d->device, kinds[i], TOO_MUCH, &memory),
                HAL_OK, "memory_allocate_shareable of 2^56 bytes");
        }
        if (has_kind(info->export_kinds, kinds[i]) && HAL_PLUGIN_HAS(external, memory_export)) {
            hal_memory_handle out = {.size = sizeof out};
            const hal_status status = external->memory_export(d->device, d->memory, kinds[i], &out);
            answer_check(run, d, status, "memory_export of memory that is not shareable");
            if (status == HAL_OK) {
                close((int)out.handle);
            }
        }
    }
}

/* Pages that nobody may write, which drivers may refuse. */
static void import_of_page(case_run *run, direct *d, const hal_external_info *info)
{
    const size_t bytes = 65536;
    hal_plugin_memory *memory = NULL;
    void *pages = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const hal_memory_handle handle = {.size = sizeof handle,
                                      .kind = HAL_HANDLE_HOST,
                                      .handle = (uintptr_t)pages,
                                      .bytes = bytes,
                                      .access = HAL_ACCESS_READ};
    if (pages == MAP_FAILED || !has_kind(info->import_kinds, HAL_HANDLE_HOST) ||
        !HAL_PLUGIN_HAS(d->external, memory_import) || info->host_alignment > bytes ||
        info->host_granularity > bytes || (handle.handle & (info->host_alignment - 1)) != 0) {
        return;
    }
    const hal_status status = d->external->memory_import(d->device, &handle, &memory);
    if (status == HAL_OK) {
        d->table->memory_free(d->device, memory);
    }
    munmap(pages, bytes);
    answer_check(run, d, status, "memory_import of pages that may only be read");
}

/* Each claimed kind that names what there is. */
static void exports_answer(case_run *run, direct *d, const hal_external_info *info)
{
    static const hal_handle_kind kinds[] = {HAL_HANDLE_HOST, HAL_HANDLE_NATIVE};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        hal_memory_handle out = {.size = sizeof out};
        if (has_kind(info->export_kinds, kinds[i]) && HAL_PLUGIN_HAS(d->external, memory_export)) {
            answer_check(run, d, d->external->memory_export(d->device, d->memory, kinds[i], &out),
                         "memory_export");
        }
    }
}

static void sharing_fails(case_run *run, direct *d)
{
    hal_external_info info = {.size = sizeof info};
    if (!d->external) {
        return;
    }
    answer_check(run, d, d->external->external_info(d->device, &info), "external_info");
    info.host_alignment += info.host_alignment == 0; /* as hal does */
    import_of_page(run, d, &info);
    exports_answer(run, d, &info);
    descriptors_fail(run, d, &info);
}

static void fences_fail(case_run *run, direct *d)
{
    uint32_t imports = 0, exports = 0;
    hal_plugin_fence *fence = NULL;
    if (!d->fences) {
        return;
    }
    answer_check(run, d, d->fences->fence_info(d->device, &imports, &exports), "fence_info");
    if (has_kind(imports, HAL_HANDLE_OPAQUE_FD)) {
        failure_check(run, d,
                      d->fences->fence_import(d->device, HAL_HANDLE_OPAQUE_FD, 99999, &fence),
                      HAL_OK, "fence_import of a descriptor that is not open");
    }
}

/* Products of some types, of which a plugin declines what it does not have. */
static void products_fail(case_run *run, direct *d)
{
    static const hal_type types[] = {HAL_TYPE_F16, HAL_TYPE_BF16, HAL_TYPE_F32, HAL_TYPE_F64};
    for (size_t i = 0; d->gemm && i < sizeof types / sizeof types[0]; i++) {
        hal_gemm_description description = square_product(64);
        hal_plugin_kernel *kernel = NULL;
        uint64_t bytes = 0;
        double nanoseconds = 0;
        description.type_a = description.type_b = description.type_c = types[i];
        const hal_status status = d->gemm->gemm(d->device, &description, &kernel, &bytes);
        if (status == HAL_OK) {
            d->table->kernel_destroy(d->device, kernel);
        }
        answer_check(run, d, status, "gemm");
        if (HAL_PLUGIN_HAS(d->gemm, gemm_estimate)) {
            answer_check(run, d, d->gemm->gemm_estimate(d->device, &description, 0, &nanoseconds),
                         "gemm_estimate");
        }
        if (HAL_PLUGIN_HAS(d->gemm, gemm_workspace)) {
            answer_check(run, d, d->gemm->gemm_workspace(d->device, &description, &bytes),
                         "gemm_workspace");
        }
    }
}

typedef struct made_kernel {
    direct *d;
    hal_plugin_kernel *kernel;
} made_kernel;

static void made_kernel_destroy(void *object)
{
    const made_kernel *made = object;
    made->d->table->kernel_destroy(made->d->device, made->kernel);
}

static hal_plugin_kernel *kernel_make(case_run *run, direct *d)
{
    made_kernel *made = case_allocate(run, 1, sizeof *made);
    made->d = d;
    case_ok(run, d->table->kernel_create(d->device, scale_ir(run), &made->kernel), "kernel_create");
    case_own(run, made_kernel_destroy, made);
    return made->kernel;
}

static void words_of_extensions(case_run *run, const void *parameters)
{
    direct *d = direct_shared(run);
    hal_plugin_kernel *kernel = kernel_make(run, d);
    direct_forget(d);
    native_code_fails(run, d);
    handles_fail(run, d, kernel, HAL_ERROR_UNSUPPORTED);
    reservations_fail(run, d);
    sharing_fails(run, d);
    fences_fail(run, d);
    products_fail(run, d);
}

/* ---- On a lost device ---- */

/* Each entry may still succeed. What it makes is destroyed. */
static void objects_of_lost(case_run *run, direct *d)
{
    for (uint32_t kind = 0; kind < HAL_MEMORY_KIND_COUNT; kind++) {
        hal_plugin_memory *memory = NULL;
        void *pointer = NULL;
        hal_status status = d->table->memory_allocate(d->device, kind, 4096, &memory);
        answer_check(run, d, status, "memory_allocate on a lost device");
        if (status == HAL_OK) {
            status = kind == HAL_MEMORY_DEVICE ? HAL_OK
                                               : d->table->memory_map(d->device, memory, &pointer);
            d->table->memory_free(d->device, memory);
            answer_check(run, d, status, "memory_map on a lost device");
        }
    }
    hal_plugin_kernel *kernel = NULL;
    hal_status status = d->table->kernel_create(d->device, scale_ir(run), &kernel);
    if (status == HAL_OK) {
        d->table->kernel_destroy(d->device, kernel);
    }
    answer_check(run, d, status, "kernel_create on a lost device");
    hal_plugin_queue *queue = NULL;
    status = d->table->queue_create(d->device, &queue);
    if (status == HAL_OK) {
        d->table->queue_destroy(d->device, queue);
    }
    answer_check(run, d, status, "queue_create on a lost device");
}

static void questions_of_lost(case_run *run, direct *d, hal_plugin_kernel *kernel)
{
    uint64_t numbers[2] = {0};
    hal_clocks clocks = {.size = sizeof clocks};
    hal_kernel_report report = {.size = sizeof report};
    if (d->memory_info) {
        answer_check(run, d, d->memory_info->memory_info(d->device, &numbers[0], &numbers[1]),
                     "memory_info of a lost device");
    }
    if (d->timing) {
        answer_check(run, d, d->timing->queue_elapsed(d->queues[1], 1, 1, &numbers[0]),
                     "queue_elapsed on a lost device");
    }
    if (d->coherence) {
        answer_check(run, d, d->coherence->memory_flush(d->device, d->memory, 0, 64),
                     "memory_flush on a lost device");
    }
    if (DIRECT_HAS(d, coherence, memory_invalidate)) {
        answer_check(run, d, d->coherence->memory_invalidate(d->device, d->memory, 0, 64),
                     "memory_invalidate on a lost device");
    }
    if (d->reports) {
        answer_check(run, d, d->reports->kernel_report(d->device, kernel, &report),
                     "kernel_report on a lost device");
    }
    if (DIRECT_HAS_CLOCKS(d)) {
        answer_check(run, d, d->reports->clocks_read(d->device, &clocks),
                     "clocks_read of a lost device");
        answer_check(run, d, d->reports->queue_time(d->queues[1], 1, &numbers[0]),
                     "queue_time on a lost device");
    }
}

static void words_of_lost(case_run *run, const void *parameters)
{
    device_open_here(run);
    direct *d = direct_opened(run);
    if (!d->faults) {
        case_unsupported(run, "the plugin does not offer hal.faults");
    }
    hal_plugin_kernel *kernel = kernel_make(run, d);
    case_ok(run, direct_submit(d, 1, 1, DIRECT_FILL), "submit");
    case_ok(run, direct_wait(d, 1, DIRECT_LIMIT_NS), "wait");
    d->faults->queue_fail_next(d->queues[0]);
    if (direct_submit(d, 0, 1, DIRECT_FILL) == HAL_OK) {
        direct_wait(d, 0, DIRECT_LIMIT_NS);
    }
    direct_forget(d);
    objects_of_lost(run, d);
    questions_of_lost(run, d, kernel);
    handles_fail(run, d, kernel, HAL_OK);
    reservations_fail(run, d);
    sharing_fails(run, d);
    fences_fail(run, d);
}

void cases_hal_words(case_list *list)
{
    case_add(list, words_of_failures, NULL, 0, "failures/words");
    case_add(list, words_of_extensions, NULL, 0, "failures/extensions_speak");
    case_add(list, words_of_lost, NULL, 0, "failures/lost_speaks");
    case_has_faults(list, "%s", ""); /* a driver may end what it has in the process */
}
