/* The vulkan plugin where something is missing or goes wrong: each situation has its status and its
 * sentence. A situation is a process of its own, since the loader is opened once: this program
 * calls itself with the situation's name. */

#include "../plugin_host.h"
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scratch.h"

enum { SKIPPED = 77 };
#define RADEON_DRIVER "/usr/share/vulkan/icd.d/radeon_icd.x86_64.json"

/* ---- In the process of a situation ---- */

/* A status and a part of its sentence, or a word on standard error. */
static int expect(hal_status made, hal_status wanted, const char *words)
{
    if (made == wanted && (!words || strstr(message, words))) {
        return 0;
    }
    fprintf(stderr, "status %d instead of %d, \"%s\" instead of \"%s\"\n", (int)made, (int)wanted,
            message, words ? words : "");
    return 1;
}

static hal_ir_kernel *small_kernel(void)
{
    static const char text[] = "kernel doubled\n"
                               "group 64 1 1\n"
                               "binding x f32 read_write\n"
                               "%i = local_id u32 x\n"
                               "%a = load f32 x[%i]\n"
                               "%b = add f32 %a, %a\n"
                               "store x[%i], %b\n";
    hal_ir_kernel *kernel = NULL;
    if (hal_ir_parse(text, strlen(text), &kernel) != HAL_OK) {
        exit(1);
    }
    return kernel;
}

static int try_memory(const hal_plugin_entries *plugin, hal_plugin_device *device)
{
    hal_plugin_memory *memory = NULL;
    int wrong = expect(plugin->memory_allocate(device, HAL_MEMORY_DEVICE, 4096, &memory),
                       HAL_ERROR_OUT_OF_MEMORY, "4096 bytes");
    plugin->device_close(device);
    return wrong;
}

static int try_kernel(const hal_plugin_entries *plugin, hal_plugin_device *device)
{
    hal_plugin_kernel *kernel = NULL;
    hal_ir_kernel *ir = small_kernel();
    int wrong = expect(plugin->kernel_create(device, ir, &kernel), HAL_ERROR_COMPILE,
                       "kernel doubled: the driver");
    wrong |= expect(HAL_OK, HAL_OK, "VK_ERROR_UNKNOWN");
    hal_ir_kernel_destroy(ir);
    plugin->device_close(device);
    return wrong;
}

/* A lost device stays lost, and all that belongs to it can be given back. */
static int try_lost(const hal_plugin_entries *plugin, hal_plugin_device *device)
{
    hal_plugin_queue *queue = NULL;
    hal_plugin_memory *memory = NULL;
    const hal_batch empty = {.size = sizeof empty};
    int wrong = expect(plugin->queue_create(device, &queue), HAL_OK, NULL);
    wrong |= expect(plugin->memory_allocate(device, HAL_MEMORY_SHARED, 100, &memory), HAL_OK, NULL);
    wrong |= expect(plugin->submit(queue, &empty, NULL, 0, 1), HAL_ERROR_DEVICE_LOST,
                    "VK_ERROR_DEVICE_LOST");
    wrong |= expect(plugin->submit(queue, &empty, NULL, 0, 1), HAL_ERROR_DEVICE_LOST, "earlier");
    wrong |= expect(plugin->wait(queue, 1, UINT64_MAX), HAL_ERROR_DEVICE_LOST, "earlier");
    hal_plugin_memory *more = NULL;
    wrong |= expect(plugin->memory_allocate(device, HAL_MEMORY_DEVICE, 100, &more),
                    HAL_ERROR_DEVICE_LOST, "earlier");
    plugin->memory_free(device, memory);
    plugin->queue_destroy(device, queue);
    plugin->device_close(device);
    return wrong;
}

/* A device without hardware makes kernels, keeps what its driver compiled, and runs nothing. */
static int try_no_hardware(const hal_plugin_entries *plugin, hal_plugin_device *device)
{
    hal_plugin_kernel *kernels[2] = {NULL, NULL};
    hal_plugin_queue *queue = NULL;
    hal_plugin_memory *memory = NULL;
    hal_ir_kernel *ir = small_kernel();
    const hal_batch empty = {.size = sizeof empty};
    int wrong = 0;
    for (int i = 0; i < 2; i++) {
        wrong |= expect(plugin->kernel_create(device, ir, &kernels[i]), HAL_OK, NULL);
        wrong |= host_cache()->loads != (uint32_t)i || host_cache()->bytes <= 32;
    }
    wrong |= expect(plugin->queue_create(device, &queue), HAL_OK, NULL);
    wrong |= expect(plugin->submit(queue, &empty, NULL, 0, 1), HAL_ERROR_UNSUPPORTED,
                    "RADV_FORCE_FAMILY");
    wrong |= expect(plugin->memory_allocate(device, HAL_MEMORY_DEVICE, 100, &memory),
                    HAL_ERROR_UNSUPPORTED, "without hardware");
    plugin->queue_destroy(device, queue);
    plugin->kernel_destroy(device, kernels[0]);
    plugin->kernel_destroy(device, kernels[1]);
    hal_ir_kernel_destroy(ir);
    plugin->device_close(device);
    return wrong;
}

/* A wait does not spin where the device is the processor. */
static int try_software(const hal_plugin_entries *plugin, hal_plugin_device *device, uint32_t kind)
{
    hal_plugin_queue *queue = NULL;
    const hal_batch empty = {.size = sizeof empty};
    int wrong = 0;
    if (kind == HAL_DEVICE_SOFTWARE) {
        wrong |= expect(plugin->queue_create(device, &queue), HAL_OK, NULL);
        wrong |= expect(plugin->submit(queue, &empty, NULL, 0, 1), HAL_OK, NULL);
        wrong |= expect(plugin->wait(queue, 1, UINT64_MAX), HAL_OK, NULL);
        plugin->queue_destroy(device, queue);
    }
    plugin->device_close(device);
    return wrong;
}

/* A queue is destroyed right after a batch of another one that waited for it. Drivers without the
 * quirk are not asked to be idle. */
static int try_late(const hal_plugin_entries *plugin, hal_plugin_device *device)
{
    hal_plugin_queue *first = NULL, *second = NULL;
    const hal_batch empty = {.size = sizeof empty};
    int wrong = expect(plugin->queue_create(device, &first), HAL_OK, NULL);
    wrong |= expect(plugin->queue_create(device, &second), HAL_OK, NULL);
    wrong |= expect(plugin->submit(first, &empty, NULL, 0, 1), HAL_OK, NULL);
    const hal_plugin_wait wait = {.queue = first, .value = 1};
    wrong |= expect(plugin->submit(second, &empty, &wait, 1, 1), HAL_OK, NULL);
    wrong |= expect(plugin->wait(second, 1, UINT64_MAX), HAL_OK, NULL);
    plugin->queue_destroy(device, first);
    plugin->queue_destroy(device, second);
    plugin->device_close(device);
    return wrong;
}

/* Batches that hal asks no time of write none; those of an older hal, without flags, do. */
static int try_untimed(const hal_plugin_entries *plugin, hal_plugin_device *device)
{
    hal_plugin_queue *queue = NULL;
    const hal_batch untimed = {.size = sizeof untimed, .flags = HAL_BATCH_UNTIMED};
    const hal_batch older = {.size = offsetof(hal_batch, flags), .flags = HAL_BATCH_UNTIMED};
    uint64_t time = 0;
    int wrong = expect(plugin->queue_create(device, &queue), HAL_OK, NULL);
    wrong |= expect(plugin->submit(queue, &older, NULL, 0, 1), HAL_OK, NULL);
    wrong |= expect(plugin->submit(queue, &untimed, NULL, 0, 2), HAL_OK, NULL);
    wrong |= expect(plugin->submit(queue, &older, NULL, 0, 3), HAL_OK, NULL);
    wrong |= expect(plugin->wait(queue, 3, UINT64_MAX), HAL_OK, NULL);
    wrong |= expect(plugin->queue_elapsed(queue, 1, 3, &time), HAL_OK, NULL);
    wrong |= expect(plugin->queue_elapsed(queue, 1, 2, &time), HAL_ERROR_INVALID_ARGUMENT,
                    "without HAL_BATCH_UNTIMED");
    plugin->queue_destroy(device, queue);
    plugin->device_close(device);
    return wrong;
}

/* The host is far ahead of the device: it waits, instead of making command buffers without end.
 * Batches that wait for another queue are submitted one by one. */
static int try_ahead(const hal_plugin_entries *plugin, hal_plugin_device *device)
{
    enum { BATCHES = 200 };
    hal_plugin_queue *queue = NULL, *other = NULL;
    const hal_batch untimed = {.size = sizeof untimed, .flags = HAL_BATCH_UNTIMED};
    int wrong = expect(plugin->queue_create(device, &queue), HAL_OK, NULL);
    wrong |= expect(plugin->queue_create(device, &other), HAL_OK, NULL);
    wrong |= expect(plugin->submit(other, &untimed, NULL, 0, 1), HAL_OK, NULL);
    const hal_plugin_wait wait = {.queue = other, .value = 1};
    for (uint64_t value = 1; value <= BATCHES && !wrong; value++) {
        wrong |= expect(plugin->submit(queue, &untimed, &wait, 1, value), HAL_OK, NULL);
    }
    wrong |= expect(plugin->wait(queue, BATCHES, UINT64_MAX), HAL_OK, NULL);
    plugin->queue_destroy(device, queue);
    plugin->queue_destroy(device, other);
    plugin->device_close(device);
    return wrong;
}

/* A batch that fills 4 bytes of memory. */
typedef struct fill_batch {
    hal_command command;
    hal_binding binding;
    uint32_t pattern[2];
    hal_batch batch;
} fill_batch;

static void fill_batch_make(fill_batch *made, hal_plugin_memory *memory, uint64_t offset,
                            uint32_t pattern)
{
    *made = (fill_batch){
        {.kind = HAL_COMMAND_FILL, .binding_count = 1, .scalar_bytes = 4},
        {.memory = memory, .offset = offset, .length = 4, .access = HAL_ACCESS_WRITE}, {pattern},
        {.size = sizeof made->batch, .command_count = 1, .commands = &made->command,
         .bindings = &made->binding, .scalars = (const uint8_t *)made->pattern}};
}

/* While the device is busy, batches are submitted together; each runs, in order, with its time. */
static int try_together(const hal_plugin_entries *plugin, hal_plugin_device *device)
{
    enum { BATCHES = 100 };
    hal_plugin_queue *queue = NULL;
    hal_plugin_memory *memory = NULL;
    void *mapped = NULL;
    uint64_t time = 0;
    fill_batch fill;
    int wrong = expect(plugin->queue_create(device, &queue), HAL_OK, NULL);
    wrong |= expect(plugin->memory_allocate(device, HAL_MEMORY_SHARED, 4 * BATCHES + 4, &memory),
                    HAL_OK, NULL);
    wrong |= expect(plugin->memory_map(device, memory, &mapped), HAL_OK, NULL);
    for (uint32_t i = 0; i < BATCHES && !wrong; i++) {
        fill_batch_make(&fill, memory, i % 2 == 0 ? 0 : 4 * i + 2, i + 1);
        wrong |= expect(plugin->submit(queue, &fill.batch, NULL, 0, i + 1), HAL_OK, NULL);
        wrong |= expect(plugin->wait(queue, i + 1, 0), HAL_ERROR_TIMEOUT, NULL);
    }
    wrong |= expect(plugin->wait(queue, BATCHES, UINT64_MAX), HAL_OK, NULL);
    wrong |= expect(plugin->queue_elapsed(queue, 1, BATCHES, &time), HAL_OK, NULL);
    for (uint32_t i = 0; i < BATCHES && !wrong; i++) {
        const uint32_t want = i % 2 == 0 ? BATCHES - 1 : i + 1;
        wrong |= memcmp((char *)mapped + (i % 2 == 0 ? 0 : 4 * i + 2), &want, 4) != 0;
    }
    plugin->queue_destroy(device, queue);
    plugin->memory_free(device, memory);
    plugin->device_close(device);
    return wrong;
}

/* The threads of the process, among them some of the driver's, that take SIGUSR1. */
static int threads_with_signals(void)
{
    char path[300], line[256];
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *at = readdir(tasks); at != NULL; at = readdir(tasks)) {
        unsigned long long blocked = 0;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", at->d_name);
        FILE *file = fopen(path, "r");
        while (file && fgets(line, sizeof line, file)) {
            if (sscanf(line, "SigBlk: %llx", &blocked) == 1) {
                count += !(blocked >> (SIGUSR1 - 1) & 1);
            }
        }
        if (file) {
            fclose(file);
        }
    }
    closedir(tasks);
    return count;
}

/* A batch that is held while another one runs is submitted though the program makes no calls, by a
 * thread that takes no signals. */
static int try_helped(const hal_plugin_entries *plugin, hal_plugin_device *device)
{
    hal_plugin_queue *queue = NULL;
    hal_plugin_memory *memory = NULL;
    void *mapped = NULL;
    fill_batch fill;
    int wrong = expect(plugin->queue_create(device, &queue), HAL_OK, NULL);
    wrong |= expect(plugin->memory_allocate(device, HAL_MEMORY_SHARED, 8, &memory), HAL_OK, NULL);
    wrong |= expect(plugin->memory_map(device, memory, &mapped), HAL_OK, NULL);
    if (wrong) {
        return wrong;
    }
    const _Atomic uint32_t *words = mapped;
    int with_signals[2];
    memset(mapped, 0, 8);
    for (uint32_t i = 0; i < 2; i++) {
        fill_batch_make(&fill, memory, 4 * i, 7);
        wrong |= expect(plugin->submit(queue, &fill.batch, NULL, 0, i + 1), HAL_OK, NULL);
        with_signals[i] = threads_with_signals();
    }
    wrong |= with_signals[1] > with_signals[0];
    for (int i = 0; i < 5000 && atomic_load(&words[1]) != 7; i++) {
        usleep(1000);
    }
    if (atomic_load(&words[1]) != 7) {
        fputs("a batch stays where it is until the program calls\n", stderr);
        wrong = 1;
    }
    wrong |= expect(plugin->wait(queue, 2, UINT64_MAX), HAL_OK, NULL);
    plugin->queue_destroy(device, queue);
    plugin->memory_free(device, memory);
    plugin->device_close(device);
    return wrong;
}

/* A long copy between host and device starts at once, as its program may wait for it next. */
static int try_transfer(const hal_plugin_entries *plugin, hal_plugin_device *device)
{
    enum { BYTES = 1 << 18 };
    hal_plugin_queue *queue = NULL;
    hal_plugin_memory *memory[2] = {NULL, NULL};
    void *mapped[2] = {NULL, NULL};
    fill_batch fill;
    int wrong = expect(plugin->queue_create(device, &queue), HAL_OK, NULL);
    for (int i = 0; i < 2 && !wrong; i++) {
        wrong |= expect(plugin->memory_allocate(device, HAL_MEMORY_SHARED, BYTES, &memory[i]),
                        HAL_OK, NULL);
        wrong |= expect(plugin->memory_map(device, memory[i], &mapped[i]), HAL_OK, NULL);
    }
    if (wrong) {
        return wrong;
    }
    memset(mapped[0], 1, BYTES);
    memset(mapped[1], 0, BYTES);
    fill_batch_make(&fill, memory[0], 0, 0x01010101);
    wrong |= expect(plugin->submit(queue, &fill.batch, NULL, 0, 1), HAL_OK, NULL);
    const hal_binding both[2] = {
        {.memory = memory[0], .length = BYTES, .access = HAL_ACCESS_READ},
        {.memory = memory[1], .length = BYTES, .access = HAL_ACCESS_WRITE}};
    const hal_command copy = {.kind = HAL_COMMAND_COPY, .binding_count = 2};
    const hal_batch batch = {
        .size = sizeof batch, .command_count = 1, .commands = &copy, .bindings = both};
    wrong |= expect(plugin->submit(queue, &batch, NULL, 0, 2), HAL_OK, NULL);
#ifndef __SANITIZE_THREAD__ /* the device writes meanwhile what is read here */
    const _Atomic uint32_t *last = (const _Atomic uint32_t *)mapped[1] + BYTES / 4 - 1;
    for (int i = 0; i < 5000 && atomic_load(last) == 0; i++) {
        usleep(1000);
    }
    wrong |= atomic_load(last) != 0x01010101;
#endif
    wrong |= expect(plugin->wait(queue, 2, UINT64_MAX), HAL_OK, NULL);
    plugin->queue_destroy(device, queue);
    plugin->memory_free(device, memory[0]);
    plugin->memory_free(device, memory[1]);
    plugin->device_close(device);
    return wrong;
}

/* A batch that the driver refuses has not run; when others were accepted with it, the device is
 * lost. */
static int try_refused(const hal_plugin_entries *plugin, hal_plugin_device *device)
{
    hal_plugin_queue *queue = NULL;
    const hal_batch untimed = {.size = sizeof untimed, .flags = HAL_BATCH_UNTIMED};
    int wrong = expect(plugin->queue_create(device, &queue), HAL_OK, NULL);
    wrong |= expect(plugin->submit(queue, &untimed, NULL, 0, 1), HAL_OK, NULL);
    wrong |= expect(plugin->wait(queue, 1, UINT64_MAX), HAL_OK, NULL);
    wrong |= expect(plugin->submit(queue, &untimed, NULL, 0, 2), HAL_ERROR_OUT_OF_MEMORY,
                    "VK_ERROR_OUT_OF_HOST_MEMORY");
    wrong |= expect(plugin->submit(queue, &untimed, NULL, 0, 2), HAL_OK, NULL);
    wrong |= expect(plugin->submit(queue, &untimed, NULL, 0, 3), HAL_OK, NULL);
    wrong |= expect(plugin->submit(queue, &untimed, NULL, 0, 4), HAL_OK, NULL);
    wrong |= expect(plugin->wait(queue, 4, UINT64_MAX), HAL_ERROR_DEVICE_LOST,
                    "refused batches that had been accepted");
    wrong |= expect(plugin->submit(queue, &untimed, NULL, 0, 5), HAL_ERROR_DEVICE_LOST, "earlier");
    plugin->queue_destroy(device, queue);
    plugin->device_close(device);
    return wrong;
}

/* Two queues of a device whose driver refuses every other submission, and 4 bytes that batch 2 of
 * one of them fills. `untimed` does nothing. */
typedef struct refusal {
    const hal_plugin_entries *plugin;
    hal_plugin_device *device;
    hal_plugin_queue *queue, *other;
    hal_plugin_memory *memory;
    _Atomic uint32_t *word;
    fill_batch fill;
    hal_batch untimed;
} refusal;

static int refusal_open(refusal *r, const hal_plugin_entries *plugin, hal_plugin_device *device)
{
    void *mapped = NULL;
    *r = (refusal){.plugin = plugin, .device = device};
    r->untimed = (hal_batch){.size = sizeof r->untimed, .flags = HAL_BATCH_UNTIMED};
    int wrong = expect(plugin->queue_create(device, &r->queue), HAL_OK, NULL);
    wrong |= expect(plugin->queue_create(device, &r->other), HAL_OK, NULL);
    wrong |=
        expect(plugin->memory_allocate(device, HAL_MEMORY_SHARED, 4096, &r->memory), HAL_OK, NULL);
    wrong |= expect(plugin->memory_map(device, r->memory, &mapped), HAL_OK, NULL);
    if (!wrong) {
        memset(mapped, 0, 4096);
        r->word = mapped;
        fill_batch_make(&r->fill, r->memory, 0, 7);
    }
    return wrong;
}

static int refusal_close(refusal *r, int wrong)
{
    r->plugin->queue_destroy(r->device, r->queue);
    r->plugin->queue_destroy(r->device, r->other);
    r->plugin->memory_free(r->device, r->memory);
    r->plugin->device_close(r->device);
    return wrong;
}

/* An accepted batch alone is refused when the program waits for it. */
static int try_refused_wait(const hal_plugin_entries *plugin, hal_plugin_device *device)
{
    refusal r;
    int wrong = refusal_open(&r, plugin, device);
    wrong |= expect(plugin->submit(r.queue, &r.untimed, NULL, 0, 1), HAL_OK, NULL);
    wrong |= expect(plugin->submit(r.queue, &r.fill.batch, NULL, 0, 2), HAL_OK, NULL);
    wrong |= expect(plugin->wait(r.queue, 2, UINT64_MAX), HAL_ERROR_DEVICE_LOST, "refused");
    wrong |=
        expect(plugin->submit(r.queue, &r.untimed, NULL, 0, 3), HAL_ERROR_DEVICE_LOST, "refused");
    wrong |= expect(plugin->wait(r.queue, 2, 0), HAL_ERROR_DEVICE_LOST, "refused");
    return refusal_close(&r, wrong);
}

/* It is refused by the submit of a batch that waits for another queue. */
static int try_refused_next(const hal_plugin_entries *plugin, hal_plugin_device *device)
{
    refusal r;
    int wrong = refusal_open(&r, plugin, device);
    const hal_plugin_wait wait = {.queue = r.other, .value = 1};
    wrong |= expect(plugin->submit(r.other, &r.untimed, NULL, 0, 1), HAL_OK, NULL);
    wrong |= expect(plugin->submit(r.queue, &r.untimed, NULL, 0, 1), HAL_ERROR_OUT_OF_MEMORY, NULL);
    wrong |= expect(plugin->submit(r.queue, &r.untimed, NULL, 0, 1), HAL_OK, NULL);
    wrong |= expect(plugin->submit(r.queue, &r.fill.batch, NULL, 0, 2), HAL_OK, NULL);
    wrong |=
        expect(plugin->submit(r.queue, &r.untimed, &wait, 1, 3), HAL_ERROR_DEVICE_LOST, "refused");
    wrong |= expect(plugin->wait(r.queue, 2, UINT64_MAX), HAL_ERROR_DEVICE_LOST, "refused");
    return refusal_close(&r, wrong);
}

/* It is refused when the helper submits it: hal hears so once, as no call of the program fails.
 * The helper has the queue's lock meanwhile, and so has told when the wait ends. */
static int try_refused_helper(const hal_plugin_entries *plugin, hal_plugin_device *device)
{
    refusal r;
    hal_plugin_queue *more = NULL;
    hal_status status = HAL_OK;
    int wrong = refusal_open(&r, plugin, device);
    wrong |= expect(plugin->submit(r.queue, &r.untimed, NULL, 0, 1), HAL_OK, NULL);
    wrong |= expect(plugin->submit(r.queue, &r.fill.batch, NULL, 0, 2), HAL_OK, NULL);
    for (int i = 0; i < 5000 && status == HAL_OK && !wrong; i++) {
        usleep(1000);
        status = plugin->queue_create(device, &more);
        plugin->queue_destroy(device, more);
    }
    wrong |= expect(status, HAL_ERROR_DEVICE_LOST, NULL);
    wrong |= expect(plugin->wait(r.queue, 2, UINT64_MAX), HAL_ERROR_DEVICE_LOST, "refused");
    const host_failure *heard = host_failures();
    wrong |= heard->count != 1 || heard->queue != r.queue || !strstr(heard->message, "refused");
    return refusal_close(&r, wrong);
}

/* It is refused when another queue is to wait for it, which never happens then. */
static int try_refused_other(const hal_plugin_entries *plugin, hal_plugin_device *device)
{
    refusal r;
    int wrong = refusal_open(&r, plugin, device);
    const hal_plugin_wait two = {.queue = r.other, .value = 2};
    wrong |= expect(plugin->submit(r.other, &r.untimed, NULL, 0, 1), HAL_OK, NULL);
    wrong |= expect(plugin->submit(r.other, &r.fill.batch, NULL, 0, 2), HAL_OK, NULL);
    for (int i = 0; i < 2 && !wrong; i++) {
        wrong |= expect(plugin->submit(r.queue, &r.untimed, &two, 1, 1), HAL_ERROR_DEVICE_LOST,
                        "refused");
    }
    if (wrong) { /* the queue may wait for a value that is never signalled */
        _Exit(1);
    }
    return refusal_close(&r, wrong);
}

/* The device is lost for the plugin alone, so it still runs what another queue has sent: waits for
 * that end later than the work. What the other queue holds is not sent any more. */
static int try_refused_busy(const hal_plugin_entries *plugin, hal_plugin_device *device)
{
    const uint64_t bytes = UINT64_C(128) << 20;
    hal_plugin_memory *large = NULL;
    fill_batch last;
    refusal r;
    int wrong = refusal_open(&r, plugin, device);
    wrong |=
        expect(plugin->memory_allocate(device, HAL_MEMORY_DEVICE, bytes, &large), HAL_OK, NULL);
    const hal_binding bindings[2] = {{.memory = large, .length = bytes, .access = HAL_ACCESS_WRITE},
                                     r.fill.binding};
    hal_command commands[2] = {r.fill.command, r.fill.command};
    commands[1].flags = HAL_COMMAND_BARRIER;
    commands[1].binding_first = 1;
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = 2,
                             .binding_count = 2,
                             .commands = commands,
                             .bindings = bindings,
                             .scalars = r.fill.batch.scalars,
                             .flags = HAL_BATCH_UNTIMED};
    fill_batch_make(&last, r.memory, 4, 7);
    wrong |= expect(plugin->submit(r.queue, &batch, NULL, 0, 1), HAL_OK, NULL);
    wrong |= expect(plugin->submit(r.queue, &last.batch, NULL, 0, 2), HAL_OK, NULL);
    wrong |= expect(plugin->submit(r.other, &r.untimed, NULL, 0, 1), HAL_ERROR_OUT_OF_MEMORY, NULL);
    wrong |= expect(plugin->submit(r.other, &r.untimed, NULL, 0, 1), HAL_OK, NULL);
    wrong |= expect(plugin->submit(r.other, &r.untimed, NULL, 0, 2), HAL_OK, NULL);
    wrong |= expect(plugin->wait(r.other, 2, UINT64_MAX), HAL_ERROR_DEVICE_LOST, "refused");
    wrong |= expect(plugin->wait(r.queue, 1, 0), HAL_ERROR_TIMEOUT, NULL);
    wrong |= expect(plugin->wait(r.queue, 2, 0), HAL_ERROR_TIMEOUT, NULL);
    wrong |= expect(plugin->wait(r.queue, 2, UINT64_MAX), HAL_ERROR_DEVICE_LOST, "refused");
    if (!wrong && (atomic_load(&r.word[0]) != 7 || atomic_load(&r.word[1]) != 0)) {
        fputs("a wait ended before the work, or a lost device got more of it\n", stderr);
        wrong = 1;
    }
    plugin->memory_free(device, large);
    return refusal_close(&r, wrong);
}

/* A queue that waits for command buffers in another thread. */
typedef struct full_queue {
    const hal_plugin_entries *plugin;
    hal_plugin_queue *queue, *other;
    _Atomic uint64_t submitted;
    _Atomic int ended, wrong;
} full_queue;

enum { FULL_BATCHES = 80 };

/* The thread that submits. */
static void *full_main(void *user)
{
    full_queue *full = user;
    const hal_batch untimed = {.size = sizeof untimed, .flags = HAL_BATCH_UNTIMED};
    const hal_plugin_wait wait = {.queue = full->other, .value = 1};
    for (uint64_t value = 1; value <= FULL_BATCHES; value++) {
        if (full->plugin->submit(full->queue, &untimed, &wait, 1, value) != HAL_OK) {
            atomic_store(&full->wrong, 1);
        }
        atomic_store(&full->submitted, value);
    }
    atomic_store(&full->ended, 1);
    return NULL;
}

static int try_full(const hal_plugin_entries *plugin, hal_plugin_device *device)
{
    full_queue full = {.plugin = plugin};
    pthread_t thread;
    const hal_batch untimed = {.size = sizeof untimed, .flags = HAL_BATCH_UNTIMED};
    alarm(120); /* for a queue that stands still */
    int wrong = expect(plugin->queue_create(device, &full.queue), HAL_OK, NULL);
    wrong |= expect(plugin->queue_create(device, &full.other), HAL_OK, NULL);
    wrong |= expect(plugin->submit(full.other, &untimed, NULL, 0, 1), HAL_OK, NULL);
    if (wrong || pthread_create(&thread, NULL, full_main, &full) != 0) {
        return 1;
    }
    while (!atomic_load(&full.ended)) {
        const uint64_t newest = atomic_load(&full.submitted);
        if (newest > 0) {
            wrong |= expect(plugin->wait(full.queue, newest, 1000000), HAL_ERROR_TIMEOUT, NULL);
        }
        sched_yield();
    }
    pthread_join(thread, NULL);
    wrong |= atomic_load(&full.wrong);
    /* The destructions wait without a limit as well. */
    fflush(NULL);
    _Exit(wrong);
}

/* After a wait for a batch inside a group, the batches of a queue are sent one by one; not after a
 * look, nor after a wait that leaves the device a later submission: hal makes both for memory. */
static int try_awaited(const hal_plugin_entries *plugin, hal_plugin_device *device)
{
    enum { WAIT, OTHER, LOOK, LATER, LAST, HELD, WAYS };
    enum { GROUP = 9 }; /* the last of the second submission: 8 batches count as 8 commands */
    const hal_batch untimed = {.size = sizeof untimed, .flags = HAL_BATCH_UNTIMED};
    unsigned (*submits)(void) = NULL;
    void *loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_NOLOAD);
    *(void **)&submits = loader ? dlsym(loader, "vulkan_fault_submits") : NULL;
    int wrong = !submits;
    for (int way = WAIT; way < WAYS && !wrong; way++) {
        hal_plugin_queue *queue = NULL, *other = NULL;
        wrong |= expect(plugin->queue_create(device, &queue), HAL_OK, NULL);
        wrong |= expect(plugin->queue_create(device, &other), HAL_OK, NULL);
        const hal_plugin_wait wait = {.queue = queue, .value = 3};
        const uint64_t last = way == LATER ? GROUP + 1 : GROUP;
        const unsigned before = submits();
        for (uint64_t value = 1; value <= last; value++) {
            wrong |= expect(plugin->submit(queue, &untimed, NULL, 0, value), HAL_OK, NULL);
            if (way == HELD) {
                wrong |= expect(plugin->wait(queue, value, 0), HAL_ERROR_TIMEOUT, NULL);
            }
        }
        wrong |= submits() != before + 2;
        if (way == OTHER) {
            wrong |= expect(plugin->submit(other, &untimed, &wait, 1, 1), HAL_OK, NULL);
        } else if (way != HELD) {
            const uint64_t value = way == LAST ? last : 3;
            wrong |= expect(plugin->wait(queue, value, way == LOOK ? 0 : UINT64_MAX),
                            way == LOOK ? HAL_ERROR_TIMEOUT : HAL_OK, NULL);
        }
        const unsigned first = submits();
        for (uint64_t value = last + 1; value <= last + 3; value++) {
            wrong |= expect(plugin->submit(queue, &untimed, NULL, 0, value), HAL_OK, NULL);
        }
        wrong |= (submits() - first == 3) != (way == WAIT || way == OTHER);
        wrong |= expect(plugin->wait(queue, last + 3, UINT64_MAX), HAL_OK, NULL);
        plugin->queue_destroy(device, other);
        plugin->queue_destroy(device, queue);
    }
    plugin->device_close(device);
    return wrong;
}

/* Promise 25: a child of fork does not have the driver's threads, and would wait for them
 * forever. */
static int try_forked(const hal_plugin_entries *plugin, hal_plugin_device *device)
{
    plugin->device_close(device);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        _exit(
            expect(plugin_open(plugin, 0, &device), HAL_ERROR_INVALID_STATE, "child of a process"));
    }
    int state = 1;
    int wrong = waitpid(child, &state, 0) != child || state != 0;
    wrong |= expect(plugin_open(plugin, 0, &device), HAL_OK, NULL);
    plugin->device_close(device);
    return wrong;
}

static int in_situation(const char *situation)
{
    static const struct {
        const char *name;
        hal_status status;
        const char *words;
    } listed[] = {
        {"bad_loader", HAL_ERROR_LIBRARY_MISSING, "libvulkan.so.1"},
        {"no_driver", HAL_ERROR_DRIVER_MISSING, "VK_ERROR_INCOMPATIBLE_DRIVER"},
        {"old_loader", HAL_ERROR_TOO_OLD, "expected version 1.2 or newer, got 1.1"},
        {"no_device", HAL_ERROR_NO_DEVICE, "no device"},
        {"no_addresses", HAL_ERROR_NO_DEVICE, "bufferDeviceAddress"},
        {"old_device", HAL_ERROR_NO_DEVICE, "no Vulkan 1.2"},
    };
    static const struct {
        const char *name;
        int (*function)(const hal_plugin_entries *plugin, hal_plugin_device *device);
    } tries[] = {
        {"no_hardware", try_no_hardware},
        {"no_memory", try_memory},
        {"rejected", try_kernel},
        {"lost", try_lost},
        {"forked", try_forked},
        {"other_driver", try_late},
        {"untimed", try_untimed},
        {"ahead", try_ahead},
        {"full", try_full},
        {"together", try_together},
        {"awaited", try_awaited},
        {"helped", try_helped},
        {"transfer", try_transfer},
        {"refused", try_refused},
        {"refused_wait", try_refused_wait},
        {"refused_next", try_refused_next},
        {"refused_helper", try_refused_helper},
        {"refused_other", try_refused_other},
        {"refused_busy", try_refused_busy},
    };
    const hal_plugin_entries *plugin = plugin_load(VULKAN_PLUGIN_PATH);
    hal_device_info infos[8];
    uint32_t count = 99;
    const hal_status status = plugin_list(plugin, infos, 8, &count);
    for (size_t i = 0; i < sizeof listed / sizeof listed[0]; i++) {
        if (strcmp(listed[i].name, situation) == 0) {
            return expect(status, listed[i].status, listed[i].words) | (count != 0);
        }
    }
    hal_plugin_device *device = NULL;
    if (status != HAL_OK) {
        return SKIPPED;
    }
    if (strcmp(situation, "no_function") == 0) {
        return expect(plugin_open(plugin, 0, &device), HAL_ERROR_TOO_OLD, "vkWaitSemaphores");
    }
    if (expect(plugin_open(plugin, count, &device), HAL_ERROR_NOT_FOUND,
               "id: expected that of a device") ||
        expect(plugin_open(plugin, 0, &device), HAL_OK, NULL)) {
        return 1;
    }
    if (strcmp(situation, "software") == 0) {
        return try_software(plugin, device, infos[0].kind);
    }
    if (strcmp(situation, "late") == 0) {
        return infos[0].kind == HAL_DEVICE_SOFTWARE ? try_late(plugin, device) : 0;
    }
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        if (strcmp(tries[i].name, situation) == 0) {
            return tries[i].function(plugin, device);
        }
    }
    return 1;
}

/* ---- In the test's process ---- */

static char self[4096];

/* Runs this program in a situation. `loader` is a folder to look for the loader in first. */
static void run(const char *situation, const char *loader)
{
    const pid_t child = fork();
    if (child == 0) {
        if (loader) {
            setenv("LD_LIBRARY_PATH", loader, 1);
        }
        setenv("VULKAN_FAULT", situation, 1);
        if (strcmp(situation, "no_driver") == 0) {
            setenv("VK_DRIVER_FILES", "/nonexistent", 1);
            setenv("VK_ICD_FILENAMES", "/nonexistent", 1);
        }
        if (strcmp(situation, "no_hardware") == 0) {
            setenv("RADV_FORCE_FAMILY", "navi21", 1);
            setenv("VK_DRIVER_FILES", RADEON_DRIVER, 1);
            setenv("VK_ICD_FILENAMES", RADEON_DRIVER, 1);
        }
        execl(self, self, situation, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
        print_message("%s: no Vulkan device on this machine\n", situation);
        skip();
    }
    if (status != 0) {
        fail_msg("%s: ended with %d, by signal %d", situation, WEXITSTATUS(status),
                 WTERMSIG(status));
    }
}

TEST(no_loader)
{
    char folder[SCRATCH_BYTES], path[SCRATCH_BYTES + 32];
    assert_non_null(scratch_folder(folder, "vulkan"));
    snprintf(path, sizeof path, "%s/libvulkan.so.1", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("This is no shared object, and it lies in front of the loader.\n", file);
    fclose(file);
    run("bad_loader", folder);
    unlink(path);
    rmdir(folder);
}

TEST(no_driver)
{
    if (REAL_VULKAN_LOADER[0] == 0) {
        print_message("no Vulkan loader on this machine\n");
        skip();
    }
    run("no_driver", NULL);
}

TEST(faults)
{
    static const char *const names[] = {
        "old_loader",   "no_device",    "no_addresses",  "old_device",     "no_function",
        "no_memory",    "rejected",     "lost",          "forked",         "late",
        "other_driver", "software",     "untimed",       "ahead",          "full",
        "together",     "awaited",      "helped",        "transfer",       "refused",
        "refused_wait", "refused_next", "refused_other", "refused_helper", "refused_busy"};
    if (REAL_VULKAN_LOADER[0] == 0) {
        print_message("no Vulkan loader on this machine\n");
        skip();
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        run(names[i], VULKAN_FAULT_FOLDER);
    }
}

TEST(no_hardware)
{
    if (REAL_VULKAN_LOADER[0] == 0 || access(RADEON_DRIVER, R_OK) != 0) {
        print_message("%s is not there: Mesa's driver for AMD GPUs is not installed\n",
                      RADEON_DRIVER);
        skip();
    }
    run("no_hardware", NULL);
}

int main(int argument_count, char **arguments)
{
    if (argument_count == 2) {
        return in_situation(arguments[1]);
    }
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = 0;
    const unit_list *list = unit_tests();
    return _cmocka_run_group_tests(__FILE__, list->tests, list->count, NULL, NULL);
}
