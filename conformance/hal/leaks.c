/* leaks.c: each entry of the plugin's tables called many times, without hal in between: what a call
 * took of the process is returned with the object, the batch or the wait that it was taken for, and
 * by the end of a call that failed. Judged by what malloc has given out, resident memory and the
 * numbers of usage.h, in several rounds. */
#include <hal/plugin.h>
#include <string.h>

#include "case/cases.h"
#include "hal/direct.h"
#include "hal/fixture.h"
#include "hal/usage.h"

enum { KEPT_IN_FLIGHT = 16, MOST_ROUNDS = 12 };

/* The state of a case. */
typedef struct turns {
    direct *d;
    const hal_ir_kernel *same; /* null: each turn has a kernel that was not there before */
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

static void turn_wait(case_run *run, void *user)
{
    turns *t = user;
    expect_ok(run, t, direct_submit(t->d, 0, t->number++, DIRECT_FILL), "submit");
    expect_ok(run, t, direct_wait(t->d, 0, DIRECT_LIMIT_NS), "wait");
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
    const hal_plugin_wait wait = {.queue = t->d->queues[1], .value = t->d->submitted[1]};
    expect_ok(run, t, direct_submit_after(t->d, 0, t->number++, &wait, 1),
              "submit with a wait for another queue");
    expect_ok(run, t, direct_wait(t->d, 0, DIRECT_LIMIT_NS), "wait");
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

static void turn_memory(case_run *run, void *user)
{
    turns *t = user;
    const hal_plugin *table = t->d->table;
    hal_plugin_memory *memory = NULL;
    void *pointer = NULL;
    const uint64_t bytes = 4096 * (1 + t->number++ % 3);
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
    expect_ok(run, t, t->d->coherence->memory_invalidate(t->d->device, t->d->memory, offset, bytes),
              "memory_invalidate");
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
    turns *t = user;
    uint64_t nanoseconds = 0;
    const uint64_t last = t->d->submitted[0];
    expect_ok(
        run, t,
        t->d->timing->queue_elapsed(t->d->queues[0], last - t->number++ % 2, last, &nanoseconds),
        "queue_elapsed");
}

static void turn_queue(case_run *run, void *user)
{
    turns *t = user;
    hal_plugin_queue *made = NULL;
    expect_ok(run, t, t->d->table->queue_create(t->d->device, &made), "queue_create");
    direct on_it = *t->d;
    on_it.queues[0] = made;
    on_it.submitted[0] = 0;
    hal_status status = direct_submit(&on_it, 0, t->number++, DIRECT_FILL);
    status = status == HAL_OK ? direct_wait(&on_it, 0, DIRECT_LIMIT_NS) : status;
    t->d->table->queue_destroy(t->d->device, made);
    expect_ok(run, t, status, "a batch of a new queue");
}

/* A kernel of one store, of a value that no turn has had before. */
static hal_ir_kernel *store_ir(case_run *run, uint32_t value)
{
    hal_ir_builder *b = case_builder(run, "store");
    hal_ir_group_size(b, 1, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    hal_ir_store(b, out, hal_ir_id(b, HAL_IR_LOCAL_ID, 0), hal_ir_u32(b, value));
    return case_ir(run, b);
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

static void turn_device(case_run *run, void *user)
{
    turns *t = user;
    hal_plugin_device *device = NULL;
    expect_ok(run, t, t->d->table->device_open(t->d->instance, run->info->id, &device),
              "device_open");
    t->d->table->device_close(device);
}

static void turn_unknown_device(case_run *run, void *user)
{
    turns *t = user;
    hal_plugin_device *device = NULL;
    case_check(run, t->d->table->device_open(t->d->instance, "no such device", &device) != HAL_OK,
               "a device of an unknown id was opened");
}

static void finish_work(case_run *run, void *user)
{
    turns *t = user;
    for (uint32_t i = 0; i < DIRECT_QUEUES; i++) {
        expect_ok(run, t, direct_wait(t->d, i, DIRECT_LIMIT_NS), "wait");
    }
}

typedef enum needed { NOTHING, COHERENCE, MEMORY_INFO, TIMING } needed;

typedef struct leak_case {
    const char *name, *repeated;
    void (*turn)(case_run *run, void *user);
    uint32_t turns, least;
    uint64_t bytes;        /* of a turn that are a leak */
    uint64_t driver_bytes; /* where a driver is asked */
    uint32_t kind;
    needed needed;
} leak_case;

/* Of the plugin's own code even the smallest block is seen: 24 bytes with malloc's header. A driver
 * keeps some memory of each kernel, queue and context; a layer of validation, 4 KB of a queue. */
static const leak_case leak_cases[] = {
    {"batch", "batches", turn_batch, 4000, 0, 16, 16, 0, NOTHING},
    {"wait", "waits", turn_wait, 2000, 0, 16, 16, 0, NOTHING},
    {"look", "looks", turn_look, 4000, 0, 16, 16, 0, NOTHING},
    {"cross_wait", "waits for another queue", turn_cross_wait, 2000, 0, 16, 32, 0, NOTHING},
    {"refusal", "refused batches", turn_refusal, 1000, 0, 16, 16, 0, NOTHING},
    {"memory(kind=device)", "memories", turn_memory, 500, 0, 16, 128, 0, NOTHING},
    {"memory(kind=upload)", "memories", turn_memory, 500, 0, 16, 128, 1, NOTHING},
    {"memory(kind=download)", "memories", turn_memory, 500, 0, 16, 128, 2, NOTHING},
    {"memory(kind=shared)", "memories", turn_memory, 500, 0, 16, 128, 3, NOTHING},
    {"coherence", "flushes and invalidations", turn_coherence, 2000, 0, 16, 16, 0, COHERENCE},
    {"memory_info", "questions for memory", turn_memory_info, 1000, 0, 16, 16, 0, MEMORY_INFO},
    {"elapsed", "questions for times", turn_elapsed, 2000, 0, 16, 16, 0, TIMING},
    {"queue", "queues", turn_queue, 200, 0, 16, 8192, 0, NOTHING},
    {"kernel", "kernels", turn_kernel, 2000, 0, 16, 16384, 0, NOTHING},
    {"enumerate", "enumerations", turn_enumerate, 100, 2, 16, 4096, 0, NOTHING},
    {"unknown_device", "openings of an unknown device", turn_unknown_device, 100, 2, 16, 4096, 0,
     NOTHING},
    {"device", "openings of the device", turn_device, 40, 2, 16, 1 << 20, 0, NOTHING},
    {"instance", "instances", turn_instance, 40, 2, 16, 1 << 20, 0, NOTHING}};

static void leaves_nothing(case_run *run, const void *parameters)
{
    const leak_case *tested = parameters;
    const bool has_driver = case_has_compiler(run);
    direct *d = direct_opened(run);
    turns t = {.d = d, .kind = tested->kind};
    if ((tested->needed == COHERENCE && !d->coherence) ||
        (tested->needed == MEMORY_INFO && !d->memory_info) ||
        (tested->needed == TIMING && !d->timing)) {
        case_unsupported(run, "the plugin does not offer it");
    }
    t.same = has_driver ? store_ir(run, 76) : NULL;
    for (int i = 0; i < 2; i++) {
        turn_wait(run, &t);
    }
    const bool may_be_kept = tested->turn == turn_kernel; /* up to a number */
    usage_check(run, &(usage_turns){.turn = tested->turn,
                                    .rounds = may_be_kept ? MOST_ROUNDS : 0,
                                    .finish = finish_work,
                                    .user = &t,
                                    .name = tested->repeated,
                                    .turns = tested->turns,
                                    .least = tested->least,
                                    .bytes = has_driver ? tested->driver_bytes : tested->bytes});
}

void cases_hal_leaks(case_list *list)
{
    for (size_t i = 0; i < sizeof leak_cases / sizeof leak_cases[0]; i++) {
        case_add(list, leaves_nothing, &leak_cases[i], sizeof leak_cases[i], "leaks/%s",
                 leak_cases[i].name);
    }
}
