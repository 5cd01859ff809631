/* leaks.c: each entry of the plugin's tables called many times, without hal in between: what a call
 * took of the process is returned with the object, the batch or the wait that it was taken for, and
 * by the end of a call that failed. Judged by what malloc has given out, resident memory and the
 * numbers of usage.h, in several rounds. */
#include <hal/plugin.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "case/cases.h"
#include "hal/direct.h"
#include "hal/fixture.h"
#include "hal/usage.h"

enum { KEPT_IN_FLIGHT = 16, MOST_ROUNDS = 12 };

/* The state of a case. */
typedef struct turns {
    direct *d;
    const hal_ir_kernel *same; /* null: each turn has a kernel that was not there before */
    hal_plugin_kernel *reader; /* of turn_dispatch, made by its first turn */
    hal_plugin_memory *parts;  /* of turn_parts, made by its first turn */
    uint32_t number;           /* of the turn */
    uint32_t kind;             /* of memory */
} turns;

static void expect_ok(case_run *run, const turns *t, hal_status status, const char *what)
{
    case_check(run, status == HAL_OK, "%s gave %s: %s", what, hal_status_name(status),
               t->d->message);
}

static void turn_batch(case_run *run, void *user)
{
    turns *t = user;
    expect_ok(run, t, direct_submit(t->d, 0, t->number++, DIRECT_FILL), "submit");
    if (t->number % KEPT_IN_FLIGHT == 0) {
        expect_ok(run, t, direct_wait(t->d, 0, DIRECT_LIMIT_NS), "wait");
    }
}

/* With and without a limit. */
static void turn_wait(case_run *run, void *user)
{
    turns *t = user;
    expect_ok(run, t, direct_submit(t->d, 0, t->number++, DIRECT_FILL), "submit");
    expect_ok(run, t, direct_wait(t->d, 0, t->number % 2 ? DIRECT_LIMIT_NS : UINT64_MAX), "wait");
}

/* Looks, most of them at what is reached, and waits that end by their limit or not. */
static void turn_look(case_run *run, void *user)
{
    turns *t = user;
    if (t->number++ % KEPT_IN_FLIGHT == 0) {
        expect_ok(run, t, direct_submit(t->d, 0, t->number, DIRECT_FILL), "submit");
    }
    for (int i = 0; i < 2; i++) {
        const hal_status status = direct_wait(t->d, 0, i == 0 ? 0 : 100);
        case_check(run, status == HAL_OK || status == HAL_ERROR_TIMEOUT, "a look gave %s",
                   hal_status_name(status));
    }
}

static void turn_cross_wait(case_run *run, void *user)
{
    turns *t = user;
    expect_ok(run, t, direct_submit(t->d, 1, t->number, DIRECT_FILL), "submit");
    const hal_plugin_wait waits[2] = {
        {.queue = t->d->queues[1], .value = t->d->submitted[1]},
        {.queue = t->d->queues[1], .value = t->d->submitted[1] - 1}}; /* of earlier turns */
    expect_ok(run, t, direct_submit_after(t->d, 0, t->number, waits, 1 + t->number % 2),
              "submit with a wait for another queue");
    t->number++;
    expect_ok(run, t, direct_wait(t->d, 0, DIRECT_LIMIT_NS), "wait");
}

static void finish_work(case_run *run, void *user)
{
    turns *t = user;
    for (uint32_t i = 0; i < DIRECT_QUEUES; i++) {
        expect_ok(run, t, direct_wait(t->d, i, DIRECT_LIMIT_NS), "wait");
    }
}

/* A batch that submit refuses. Where it fails later the device is lost, and the case ends. */
static void turn_refusal(case_run *run, void *user)
{
    turns *t = user;
    const hal_status status = direct_submit(t->d, 0, t->number++, DIRECT_UNKNOWN);
    if (status == HAL_OK || status == HAL_ERROR_DEVICE_LOST) {
        case_unsupported(run, "a batch with an unknown command fails as work");
    }
}

/* One batch of every kind of command that the device has, in some turns many of them. */
static void turn_commands(case_run *run, void *user)
{
    enum { KINDS = 5, MOST = 40 };
    turns *t = user;
    const bool has_patterns = (run->info->features & HAL_FEATURE_FILL_PATTERNS) != 0;
    const bool has_rows = (run->info->features & HAL_FEATURE_COPY_ROWS) != 0;
    const hal_plugin_copy_rows rows = {8, 16, 16, 64, 64, 2, 2};
    hal_binding bindings[2] = {{t->d->memory, 0, 256, HAL_ACCESS_READ, 0},
                               {t->d->memory, 1024, 256, HAL_ACCESS_WRITE, 0}};
    uint64_t scalars[8] = {1, 2};
    hal_command commands[MOST];
    memcpy(scalars, &rows, sizeof rows);
    const uint32_t count = t->number++ % 4 == 3 ? MOST : KINDS;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t kind = i % KINDS;
        hal_command one = {.kind = HAL_COMMAND_FILL,
                           .flags = HAL_COMMAND_BARRIER,
                           .binding_count = 1,
                           .scalar_bytes = kind == 1 && has_patterns   ? 1
                                           : kind == 2 && has_patterns ? 16
                                                                       : 4,
                           .binding_first = 1,
                           .grid = {1, 1, 1}};
        if (kind == 3 || (kind == 4 && has_rows)) {
            one.kind = kind == 3 ? HAL_COMMAND_COPY : HAL_COMMAND_COPY_ROWS;
            one.binding_first = 0;
            one.binding_count = 2;
            one.scalar_bytes = kind == 3 ? 0 : sizeof rows;
        }
        commands[i] = one;
    }
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = t->number % 5 == 0 ? 0 : count,
                             .binding_count = 2,
                             .scalar_bytes = sizeof scalars,
                             .commands = commands,
                             .bindings = bindings,
                             .scalars = (const uint8_t *)scalars,
                             .flags = t->number % 2 == 0 ? HAL_BATCH_UNTIMED : 0};
    expect_ok(run, t, t->d->table->submit(t->d->queues[0], &batch, NULL, 0, t->d->submitted[0] + 1),
              "submit");
    t->d->submitted[0]++;
    if (t->number % KEPT_IN_FLIGHT == 0) {
        expect_ok(run, t, direct_wait(t->d, 0, DIRECT_LIMIT_NS), "wait");
    }
}

/* A kernel of one value that no turn has had before, some of many bindings and scalars. */
static hal_ir_kernel *store_ir(case_run *run, uint32_t value)
{
    enum { MORE = 6 }; /* a device may have eight */
    hal_ir_builder *b = case_builder(run, "store");
    hal_ir_group_size(b, 1, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    for (uint32_t i = 0; i < MORE && value % 2 == 1; i++) {
        const char name[3] = {i % 2 ? 's' : 'x', (char)('a' + i), 0};
        if (i % 2) {
            hal_ir_scalar_value(b, name, HAL_TYPE_U32);
        } else {
            hal_ir_binding(b, name, HAL_TYPE_U32, HAL_ACCESS_READ);
        }
    }
    const hal_ir_memory_id tile = hal_ir_shared(b, "tile", HAL_TYPE_U32, 4);
    const hal_ir_value zero = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    hal_ir_store(b, tile, zero, hal_ir_u32(b, value));
    hal_ir_barrier(b);
    hal_ir_store(b, out, zero, hal_ir_load(b, tile, zero));
    return case_ir(run, b);
}

enum { SCALARS = 40 };

/* out[0] = the last of many scalars. */
static hal_ir_kernel *scalars_ir(case_run *run)
{
    hal_ir_builder *b = case_builder(run, "scalars");
    hal_ir_value last = HAL_IR_NONE;
    char name[16];
    hal_ir_group_size(b, 1, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    for (uint32_t i = 0; i < SCALARS; i++) {
        snprintf(name, sizeof name, "s%u", i);
        last = hal_ir_scalar_value(b, name, HAL_TYPE_U32);
    }
    hal_ir_store(b, out, hal_ir_id(b, HAL_IR_LOCAL_ID, 0), last);
    return case_ir(run, b);
}

static void made_destroy(void *object)
{
    const turns *t = object;
    if (t->reader) {
        t->d->table->kernel_destroy(t->d->device, t->reader);
    }
    if (t->parts) {
        t->d->table->memory_free(t->d->device, t->parts);
    }
}

/* A dispatch with many scalars, and one whose grid is in memory. */
static void turn_dispatch(case_run *run, void *user)
{
    turns *t = user;
    const bool has_indirect = (run->info->features & HAL_FEATURE_INDIRECT) != 0;
    const hal_binding bindings[3] = {{t->d->memory, 0, 16, HAL_ACCESS_WRITE, 0},
                                     {t->d->memory, 1024, 16, HAL_ACCESS_WRITE, 0},
                                     {t->d->memory, 0, 12, HAL_ACCESS_READ, 0}};
    uint32_t scalars[SCALARS + 2] = {0};
    scalars[SCALARS] = 1; /* what the fill writes: the grid */
    hal_command commands[3] = {{.kind = HAL_COMMAND_FILL,
                                .flags = HAL_COMMAND_BARRIER,
                                .binding_count = 1,
                                .scalar_first = 4 * SCALARS,
                                .scalar_bytes = 4,
                                .grid = {1, 1, 1}},
                               {.kind = HAL_COMMAND_DISPATCH,
                                .flags = HAL_COMMAND_BARRIER,
                                .binding_first = 1,
                                .binding_count = 1,
                                .scalar_bytes = 4 * SCALARS,
                                .grid = {1, 1, 1}}};
    if (!t->reader) {
        expect_ok(run, t, t->d->table->kernel_create(t->d->device, scalars_ir(run), &t->reader),
                  "kernel_create");
    }
    commands[1].kernel = t->reader;
    commands[2] = commands[1];
    commands[2].flags |= HAL_COMMAND_INDIRECT;
    commands[2].binding_count = 2;
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = has_indirect ? 3 : 2,
                             .binding_count = 3,
                             .scalar_bytes = sizeof scalars,
                             .commands = commands,
                             .bindings = bindings,
                             .scalars = (const uint8_t *)scalars};
    expect_ok(run, t, t->d->table->submit(t->d->queues[0], &batch, NULL, 0, t->d->submitted[0] + 1),
              "submit");
    t->d->submitted[0]++;
    if (++t->number % KEPT_IN_FLIGHT == 0) {
        expect_ok(run, t, direct_wait(t->d, 0, DIRECT_LIMIT_NS), "wait");
    }
}

/* A batch on a thread that ends. */
static void *submit_and_wait(void *user)
{
    turns *t = user;
    const bool is_right = direct_submit(t->d, 0, t->number++, DIRECT_FILL) == HAL_OK &&
                          direct_wait(t->d, 0, DIRECT_LIMIT_NS) == HAL_OK;
    return is_right ? user : NULL;
}

static void turn_thread(case_run *run, void *user)
{
    pthread_t thread;
    void *answer = NULL;
    case_check(run, pthread_create(&thread, NULL, submit_and_wait, user) == 0, "no thread");
    pthread_join(thread, &answer);
    case_check(run, answer == user, "a batch of a new thread failed");
}

/* Allocations that no device can have, and some that are large; most are not touched. */
static void turn_allocation(case_run *run, void *user)
{
    turns *t = user;
    const hal_plugin *table = t->d->table;
    hal_plugin_memory *memory = NULL;
    const uint64_t large = UINT64_C(80) << 20;
    hal_status status =
        table->memory_allocate(t->d->device, HAL_MEMORY_DEVICE, UINT64_C(1) << 56, &memory);
    case_check(run, status != HAL_OK, "an allocation of 2^56 bytes succeeded");
    memory = NULL;
    status = run->info->max_allocation < large
                 ? HAL_ERROR_UNSUPPORTED
                 : table->memory_allocate(t->d->device, HAL_MEMORY_DEVICE, large, &memory);
    if (status == HAL_OK) {
        table->memory_free(t->d->device, memory);
    }
}

static void turn_gemm(case_run *run, void *user)
{
    turns *t = user;
    const hal_extension_gemm *gemm = t->d->gemm;
    const hal_gemm_description description = square_product(64);
    hal_plugin_kernel *kernel = NULL;
    uint64_t bytes = 0;
    double nanoseconds = 0;
    if (gemm->gemm(t->d->device, &description, &kernel, &bytes) == HAL_OK) {
        t->d->table->kernel_destroy(t->d->device, kernel);
    }
    for (int i = 0; i < 4; i++) {
        if (HAL_PLUGIN_HAS(gemm, gemm_estimate)) {
            gemm->gemm_estimate(t->d->device, &description, i, &nanoseconds);
        }
        if (HAL_PLUGIN_HAS(gemm, gemm_workspace)) {
            gemm->gemm_workspace(t->d->device, &description, &bytes);
        }
    }
}

static void turn_host_copy(case_run *run, void *user)
{
    static uint8_t from[1 << 16], to[1 << 16];
    turns *t = user;
    t->d->host_copy->host_copy(t->d->device, to, from, sizeof to - t->number++ % 64);
}

/* Imports a page that nobody may write, which drivers may refuse. */
static void read_only_import(direct *d)
{
    static void *page;
    hal_plugin_memory *memory = NULL;
    page = page ? page : mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const hal_memory_handle handle = {.size = sizeof handle,
                                      .kind = HAL_HANDLE_HOST,
                                      .handle = (uintptr_t)page,
                                      .bytes = 4096,
                                      .access = HAL_ACCESS_READ};
    if (page != MAP_FAILED && d->external->memory_import(d->device, &handle, &memory) == HAL_OK) {
        d->table->memory_free(d->device, memory);
    }
}

/* Imports of the host's memory, and what is exported of it. */
static void turn_import(case_run *run, void *user)
{
    static uint64_t pages[3 * 4096 / 8] __attribute__((aligned(4096)));
    turns *t = user;
    const hal_extension_external *external = t->d->external;
    hal_external_info info = {.size = sizeof info};
    const hal_memory_handle handle = {.size = sizeof handle,
                                      .kind = HAL_HANDLE_HOST,
                                      .handle = (uintptr_t)pages,
                                      .bytes = sizeof pages,
                                      .access = HAL_ACCESS_READ_WRITE};
    hal_memory_handle out = {.size = sizeof out};
    hal_plugin_memory *memory = NULL;
    expect_ok(run, t, external->external_info(t->d->device, &info), "external_info");
    if ((info.import_kinds & HAL_HANDLE_BIT(HAL_HANDLE_HOST)) == 0 || info.host_alignment > 4096 ||
        info.host_granularity > 4096 || !HAL_PLUGIN_HAS(external, memory_import) ||
        external->memory_import(t->d->device, &handle, &memory) != HAL_OK) {
        return;
    }
    if (HAL_PLUGIN_HAS(external, memory_export) &&
        (info.export_kinds & HAL_HANDLE_BIT(HAL_HANDLE_NATIVE)) != 0) {
        external->memory_export(t->d->device, memory, HAL_HANDLE_NATIVE, &out);
    }
    t->d->table->memory_free(t->d->device, memory);
    read_only_import(t->d);
}

/* A device that is lost, with its batches, and opened again. Of some drivers one is the last. */
static void turn_lost(case_run *run, void *user)
{
    turns *t = user;
    direct one = *t->d;
    one.device = NULL;
    memset(one.queues, 0, sizeof one.queues);
    one.memory = NULL;
    hal_status status = one.table->device_open(one.instance, run->info->id, &one.device);
    if (status == HAL_ERROR_DEVICE_LOST) {
        case_unsupported(run, "the driver opens no device in a process that has lost one");
    }
    expect_ok(run, t, status, "device_open");
    status = direct_make(&one);
    if (status == HAL_OK) {
        one.faults->queue_fail_next(one.queues[0]);
        for (uint32_t i = 0; i < 3; i++) {
            if (direct_submit(&one, 0, i, DIRECT_FILL) == HAL_OK) {
                direct_wait(&one, 0, DIRECT_LIMIT_NS);
            }
        }
    }
    direct_unmake(&one);
    one.table->device_close(one.device);
    expect_ok(run, t, status, "memory and queues");
}

static void turn_memory(case_run *run, void *user)
{
    turns *t = user;
    const hal_plugin *table = t->d->table;
    hal_plugin_memory *memory = NULL;
    void *pointer = NULL;
    enum { LARGE = 1 << 18 };
    const uint64_t bytes = ++t->number % 4 == 0 ? LARGE : 4096 * (t->number % 4);
    expect_ok(run, t, table->memory_allocate(t->d->device, t->kind, bytes, &memory),
              "memory_allocate");
    const hal_status status =
        t->kind == HAL_MEMORY_DEVICE ? HAL_OK : table->memory_map(t->d->device, memory, &pointer);
    table->memory_free(t->d->device, memory);
    expect_ok(run, t, status, "memory_map");
}

static void turn_coherence(case_run *run, void *user)
{
    turns *t = user;
    const uint64_t offset = t->number++ % 64, bytes = 4 * DIRECT_WORDS - 64;
    expect_ok(run, t, t->d->coherence->memory_flush(t->d->device, t->d->memory, offset, bytes),
              "memory_flush");
    if (DIRECT_HAS(t->d, coherence, memory_invalidate)) {
        expect_ok(run, t,
                  t->d->coherence->memory_invalidate(t->d->device, t->d->memory, offset, bytes),
                  "memory_invalidate");
    }
}

static void turn_memory_info(case_run *run, void *user)
{
    turns *t = user;
    uint64_t free_bytes = 0, total = 0;
    expect_ok(run, t, t->d->memory_info->memory_info(t->d->device, &free_bytes, &total),
              "memory_info");
}

static void turn_elapsed(case_run *run, void *user)
{
    enum { KNOWN = 1024 }; /* and by plugins whose batches cost little often more */
    turns *t = user;
    uint64_t nanoseconds = 0;
    while (t->d->submitted[0] < (case_has_compiler(run) ? KNOWN : 16 * KNOWN) + 16) {
        turn_batch(run, user);
    }
    const uint64_t last = t->d->submitted[0];
    expect_ok(run, t, direct_wait(t->d, 0, DIRECT_LIMIT_NS), "wait");
    expect_ok(
        run, t,
        t->d->timing->queue_elapsed(t->d->queues[0], last - t->number++ % 2, last, &nanoseconds),
        "queue_elapsed");
    t->d->timing->queue_elapsed(t->d->queues[0], 1, last, &nanoseconds); /* may be too old */
    if (DIRECT_HAS_CLOCKS(t->d)) {
        t->d->reports->queue_time(t->d->queues[0], 1, &nanoseconds);
    }
}

/* A queue with a batch, and one without. */
static void turn_queue(case_run *run, void *user)
{
    turns *t = user;
    hal_plugin_queue *made = NULL;
    expect_ok(run, t, t->d->table->queue_create(t->d->device, &made), "queue_create");
    direct on_it = *t->d;
    on_it.queues[0] = made;
    on_it.submitted[0] = 0;
    hal_status status = HAL_OK;
    if (t->number++ % 2 == 0) {
        status = direct_submit(&on_it, 0, t->number, DIRECT_FILL);
        status = status == HAL_OK ? direct_wait(&on_it, 0, DIRECT_LIMIT_NS) : status;
    }
    t->d->table->queue_destroy(t->d->device, made);
    expect_ok(run, t, status, "a batch of a new queue");
}

static void turn_kernel(case_run *run, void *user)
{
    turns *t = user;
    hal_plugin_kernel *kernel = NULL;
    const size_t objects = run->object_count;
    const hal_ir_kernel *ir = t->same ? t->same : store_ir(run, 77 + t->number++);
    const hal_status status = t->d->table->kernel_create(t->d->device, ir, &kernel);
    if (status == HAL_OK) {
        t->d->table->kernel_destroy(t->d->device, kernel);
    }
    case_release(run, objects);
    expect_ok(run, t, status, "kernel_create");
}

static void turn_enumerate(case_run *run, void *user)
{
    enum { RECORDS = 4 };
    static uint64_t infos[RECORDS * HAL_DEVICE_INFO_MAX_BYTES / sizeof(uint64_t)];
    turns *t = user;
    uint32_t count = 0;
    expect_ok(
        run, t,
        t->d->table->enumerate(t->d->instance, (hal_device_info *)(void *)infos, RECORDS, &count),
        "enumerate");
}

static void turn_instance(case_run *run, void *user)
{
    turns *t = user;
    hal_plugin_instance *own = t->d->instance;
    t->d->instance = NULL;
    direct_instance(run, t->d);
    t->d->table->instance_destroy(t->d->instance);
    t->d->instance = own;
}

/* A device that is opened, and used in every second turn. */
static void turn_device(case_run *run, void *user)
{
    turns *t = user;
    direct one = *t->d;
    memset(one.queues, 0, sizeof one.queues);
    one.memory = NULL;
    expect_ok(run, t, one.table->device_open(one.instance, run->info->id, &one.device),
              "device_open");
    hal_status status = HAL_OK;
    if (t->number++ % 2 == 0) {
        hal_plugin_kernel *kernel = NULL;
        const size_t objects = run->object_count;
        status = direct_make(&one);
        status = status == HAL_OK ? direct_submit(&one, 0, t->number, DIRECT_FILL) : status;
        if (status == HAL_OK) {
            status = one.table->kernel_create(one.device, store_ir(run, 74), &kernel);
        }
        if (status == HAL_OK) {
            one.table->kernel_destroy(one.device, kernel);
        }
        direct_unmake(&one);
        case_release(run, objects);
    }
    one.table->device_close(one.device);
    expect_ok(run, t, status, "a use of an opened device");
}

/* Ids of no device; three of them are nearly that of the device. */
static void turn_unknown_device(case_run *run, void *user)
{
    turns *t = user;
    hal_plugin_device *device = NULL;
    char ids[4][sizeof run->info->id + 1] = {"no such device"};
    snprintf(ids[1], sizeof ids[1], "%s-", run->info->id);
    snprintf(ids[2], strlen(run->info->id), "%s", run->info->id);
    snprintf(ids[3], sizeof ids[3], "%s", run->info->id);
    const size_t letter = strcspn(ids[3], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    ids[3][letter] ^= ids[3][letter] != 0 ? 'a' ^ 'A' : '-'; /* in the other case */
    const char *id = ids[t->number++ % 4];
    case_check(run, t->d->table->device_open(t->d->instance, id, &device) != HAL_OK,
               "a device of the unknown id \"%s\" was opened", id);
}

/* ---- Extensions of drivers ---- */

/* Types that no driver has: the objects stay the plugin's. */
static void turn_handles(case_run *run, void *user)
{
    static const char type[] = "no_such_type";
    const turns *t = user;
    const hal_extension_handles *handles = t->d->handles;
    uint64_t handle = 0;
    handles->device_handle(t->d->device, type, &handle);
    if (HAL_PLUGIN_HAS(handles, queue_handle)) {
        handles->queue_handle(t->d->queues[0], type, &handle);
    }
}

static void turn_native_queues(case_run *run, void *user)
{
    static const char type[] = "no_such_type";
    const turns *t = user;
    const hal_extension_native_queues *native = t->d->native_queues;
    hal_plugin_queue *queue = NULL;
    case_check(run, native->queue_import(t->d->device, type, 0, &queue) != HAL_OK,
               "a queue of an unknown type was imported");
    if (HAL_PLUGIN_HAS(native, queue_wait_native)) {
        native->queue_wait_native(t->d->queues[0], type, 0);
    }
    if (HAL_PLUGIN_HAS(native, queue_block_native)) {
        native->queue_block_native(t->d->queues[0], type, 0);
    }
}

static void turn_quirks(case_run *run, void *user)
{
    turns *t = user;
    hal_quirk quirk = {.size = sizeof quirk};
    t->d->quirks->device_quirk(t->d->device, t->number++ % 8, &quirk);
}

static void turn_reports(case_run *run, void *user)
{
    turns *t = user;
    const hal_extension_reports *reports = t->d->reports;
    hal_kernel_report report = {.size = sizeof report};
    hal_clocks clocks = {.size = sizeof clocks};
    uint64_t end = 0;
    if (!t->reader) {
        turn_wait(run, user);
        expect_ok(run, t, t->d->table->kernel_create(t->d->device, store_ir(run, 75), &t->reader),
                  "kernel_create");
    }
    expect_ok(run, t, reports->kernel_report(t->d->device, t->reader, &report), "kernel_report");
    if (DIRECT_HAS_CLOCKS(t->d)) {
        reports->clocks_read(t->d->device, &clocks);
        reports->queue_time(t->d->queues[0], t->d->submitted[0], &end);
    }
}

/* The parts of one range of addresses get memory, two after the others, which a batch writes and
 * which they lose; and another range comes and goes, in some turns with memory. */
static void turn_parts(case_run *run, void *user)
{
    enum { PARTS = 1 << 12 };
    turns *t = user;
    const hal_extension_virtual_memory *parts = t->d->virtual_memory;
    hal_plugin_memory *other = NULL;
    uint64_t bytes = 0;
    expect_ok(run, t, parts->part_bytes(t->d->device, &bytes), "part_bytes");
    if (!t->parts) {
        expect_ok(run, t, parts->memory_reserve(t->d->device, PARTS * bytes, &t->parts),
                  "memory_reserve");
    }
    expect_ok(run, t, parts->memory_reserve(t->d->device, 2 * bytes, &other), "memory_reserve");
    const hal_status status = t->number % 2 == 0 /* it is freed with the memory of a part */
                                  ? parts->memory_commit(t->d->device, other, bytes, bytes)
                                  : HAL_OK;
    t->d->table->memory_free(t->d->device, other);
    expect_ok(run, t, status, "memory_commit");
    const uint64_t at = 2 * t->number++ % PARTS * bytes, both = 2 * bytes;
    expect_ok(run, t, parts->memory_commit(t->d->device, t->parts, at, both), "memory_commit");
    expect_ok(run, t, direct_fill(t->d, 0, t->parts, at, both, t->number), "submit");
    expect_ok(run, t, direct_wait(t->d, 0, DIRECT_LIMIT_NS), "wait");
    expect_ok(run, t, parts->memory_decommit(t->d->device, t->parts, at, both), "memory_decommit");
}

/* A fence that one queue raises and a batch of another one waits for. */
static void turn_fences(case_run *run, void *user)
{
    turns *t = user;
    const hal_extension_fences *fences = t->d->fences;
    hal_plugin_fence *raised = NULL, *awaited = NULL;
    uint32_t imports = 0, exports = 0;
    uint64_t handle = 0;
    expect_ok(run, t, fences->fence_info(t->d->device, &imports, &exports), "fence_info");
    if ((imports & exports & HAL_HANDLE_BIT(HAL_HANDLE_NATIVE)) == 0 ||
        !HAL_PLUGIN_HAS(fences, fence_create) || !HAL_PLUGIN_HAS(fences, fence_export)) {
        case_unsupported(run, "the plugin exports no native fences");
    }
    expect_ok(run, t, fences->fence_create(t->d->device, HAL_HANDLE_NATIVE, &raised),
              "fence_create");
    expect_ok(run, t, fences->fence_export(t->d->device, raised, HAL_HANDLE_NATIVE, &handle),
              "fence_export");
    expect_ok(run, t, fences->fence_import(t->d->device, HAL_HANDLE_NATIVE, handle, &awaited),
              "fence_import");
    expect_ok(run, t, direct_submit(t->d, 1, t->number, DIRECT_FILL), "submit");
    expect_ok(run, t, fences->queue_signal_fence(t->d->queues[1], raised, 1), "queue_signal_fence");
    const hal_plugin_wait wait = {.kind = HAL_WAIT_FENCE, .value = 1, .fence = awaited};
    expect_ok(run, t, direct_submit_after(t->d, 0, t->number++, &wait, 1),
              "submit with a wait for a fence");
    finish_work(run, user);
    fences->fence_destroy(t->d->device, awaited);
    fences->fence_destroy(t->d->device, raised);
}

/* The extension that a case needs. */
typedef enum needed {
#define NEEDS(extension, name, entry) NEEDS_##extension,
    HAL_EXTENSIONS(NEEDS)
#undef NEEDS
        NOTHING
} needed;

static bool is_offered(const direct *d, needed what)
{
#define OFFERED(extension, name, entry) [NEEDS_##extension] = d->extension,
    const void *const tables[] = {HAL_EXTENSIONS(OFFERED)[NOTHING] = d};
#undef OFFERED
    return tables[what] != NULL;
}

typedef struct leak_case {
    const char *name, *repeated;
    void (*turn)(case_run *run, void *user);
    uint32_t turns, least;
    uint64_t bytes;        /* of a turn that are a leak */
    uint64_t driver_bytes; /* where a driver is asked */
    uint32_t kind;
    needed needed;
} leak_case;

/* Of the plugin's own code even the smallest block is seen: 24 bytes with malloc's header, and of
 * what is called often also where one call in twenty keeps it. A driver keeps some memory of each
 * kernel, queue and context; a layer of validation, 4 KB of a queue. */
static const leak_case leak_cases[] = {
    {"batch", "batches", turn_batch, 4000, 0, 1, 16, 0, NOTHING},
    {"wait", "waits", turn_wait, 2000, 0, 1, 16, 0, NOTHING},
    {"look", "looks", turn_look, 4000, 0, 1, 16, 0, NOTHING},
    {"cross_wait", "waits for another queue", turn_cross_wait, 2000, 0, 16, 32, 0, NOTHING},
    {"refusal", "refused batches", turn_refusal, 1000, 0, 16, 16, 0, NOTHING},
    {"commands", "batches of all commands", turn_commands, 1500, 0, 1, 16, 0, NOTHING},
    {"dispatch", "dispatches", turn_dispatch, 1500, 0, 16, 16, 0, NOTHING},
    {"thread", "threads with a batch", turn_thread, 300, 0, 16, 1024, 0, NOTHING},
    {"allocation", "refused and large allocations", turn_allocation, 200, 0, 16, 256, 0, NOTHING},
    {"gemm", "products", turn_gemm, 200, 4, 16, 16384, 0, NEEDS_gemm},
    {"host_copy", "copies of the host", turn_host_copy, 1000, 0, 16, 16, 0, NEEDS_host_copy},
    {"import", "imports", turn_import, 300, 0, 16, 256, 0, NEEDS_external},
    {"lost", "devices that were lost", turn_lost, 40, 2, 16, 1 << 20, 0, NEEDS_faults},
    {"memory(kind=device)", "memories", turn_memory, 500, 0, 16, 128, 0, NOTHING},
    {"memory(kind=upload)", "memories", turn_memory, 500, 0, 16, 128, 1, NOTHING},
    {"memory(kind=download)", "memories", turn_memory, 500, 0, 16, 128, 2, NOTHING},
    {"memory(kind=shared)", "memories", turn_memory, 500, 0, 16, 128, 3, NOTHING},
    {"coherence", "flushes and invalidations", turn_coherence, 2000, 0, 16, 16, 0, NEEDS_coherence},
    {"memory_info", "questions for memory", turn_memory_info, 1000, 0, 16, 16, 0,
     NEEDS_memory_info},
    {"elapsed", "questions for times", turn_elapsed, 2000, 0, 16, 16, 0, NEEDS_timing},
    {"queue", "queues", turn_queue, 200, 0, 16, 8192, 0, NOTHING},
    {"kernel", "kernels", turn_kernel, 2000, 0, 4, 16384, 0, NOTHING},
    {"enumerate", "enumerations", turn_enumerate, 100, 2, 16, 4096, 0, NOTHING},
    {"handles", "questions for handles", turn_handles, 1000, 0, 1, 16, 0, NEEDS_handles},
    {"native_queues", "refused queues of the driver", turn_native_queues, 500, 0, 1, 16, 0,
     NEEDS_native_queues},
    {"quirks", "questions for quirks", turn_quirks, 1000, 0, 1, 16, 0, NEEDS_quirks},
    {"reports", "reports", turn_reports, 500, 0, 1, 16, 0, NEEDS_reports},
    {"parts", "parts with memory", turn_parts, 60, 0, 1, 256, 0, NEEDS_virtual_memory},
    {"fences", "fences", turn_fences, 200, 0, 1, 256, 0, NEEDS_fences},
    {"unknown_device", "openings of an unknown device", turn_unknown_device, 100, 2, 16, 4096, 0,
     NOTHING},
    {"device", "openings of the device", turn_device, 40, 2, 16, 1 << 20, 0, NOTHING},
    {"instance", "instances", turn_instance, 40, 2, 16, 1 << 20, 0, NOTHING}};

static void leaves_nothing(case_run *run, const void *parameters)
{
    const leak_case *tested = parameters;
    if (tested->turn == turn_lost) {
        device_open_here(run);
    }
    const bool has_driver = case_has_compiler(run);
    direct *d = direct_shared(run);
    turns *t = case_allocate(run, 1, sizeof *t);
    *t = (turns){.d = d, .kind = tested->kind};
    case_own(run, made_destroy, t);
    if (!is_offered(d, tested->needed)) {
        case_unsupported(run, "the plugin does not offer it");
    }
    t->same = has_driver ? store_ir(run, 76) : NULL;
    for (int i = 0; i < 2; i++) {
        turn_wait(run, t);
    }
    /* Up to a number: kernels, and what a driver keeps for later batches. */
    const bool may_be_kept = tested->turn == turn_kernel || has_driver;
    usage_check(run, &(usage_turns){.turn = tested->turn,
                                    .rounds = may_be_kept ? MOST_ROUNDS : 0,
                                    .finish = finish_work,
                                    .user = t,
                                    .name = tested->repeated,
                                    .turns = tested->turns,
                                    .least = tested->least,
                                    .has_driver = has_driver,
                                    .bytes = has_driver ? tested->driver_bytes : tested->bytes});
}

void cases_hal_leaks(case_list *list)
{
    for (size_t i = 0; i < sizeof leak_cases / sizeof leak_cases[0]; i++) {
        case_add(list, leaves_nothing, &leak_cases[i], sizeof leak_cases[i], "leaks/%s",
                 leak_cases[i].name);
        if (leak_cases[i].turn == turn_lost) {
            case_has_faults(list, "%s", ""); /* a driver may end what it has in the process */
        }
    }
}
