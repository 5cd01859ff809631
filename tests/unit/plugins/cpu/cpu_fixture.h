/* What the tests of the cpu plugin share: the plugin opened as hal opens it, with each of its
 * instruction sets in turn, and kernels judged by the reference interpreter. */
#ifndef TESTS_UNIT_PLUGINS_CPU_CPU_FIXTURE_H
#define TESTS_UNIT_PLUGINS_CPU_CPU_FIXTURE_H

#include "../../../plugins/open.h"
#include "unit.h"
#include <dlfcn.h>
#include <hal/ir_build.h>
#include <hal/plugin.h>
#include <kit/interpret.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CPU_FIXTURE_BINDINGS = 8, CPU_FIXTURE_SUBGROUP = 16 };

/* Memory of a binding: what it holds before, and what it must hold afterwards. */
typedef struct cpu_buffer {
    hal_type type;
    uint32_t count;
    void *data;
} cpu_buffer;

typedef struct cpu_trial {
    const hal_ir_kernel *kernel;
    uint32_t grid[3];
    cpu_buffer buffers[CPU_FIXTURE_BINDINGS];
    uint32_t buffer_count;
    const void *scalars;
    const char *what; /* for messages */
} cpu_trial;

static char cpu_message[512], cpu_log[512]; /* the last failure and the last line of the log */

static void host_free(const hal_host *host, void *memory)
{
    (void)host;
    free(memory);
}

static void *fixture_allocate(const hal_host *host, uint64_t bytes, uint64_t alignment)
{
    void *memory = NULL;
    return posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

static void fixture_log(const hal_host *host, uint32_t level, const char *message)
{
    snprintf(cpu_log, sizeof(cpu_log), "%s", message);
}

static hal_status fixture_fail(const hal_host *host, hal_status status, const char *message)
{
    snprintf(cpu_message, sizeof(cpu_message), "%s", message);
    return status;
}

/* Kernels of the tests stay within their memory. */
static void fixture_report(const hal_host *host, const char *message)
{
    fprintf(stderr, "%s\n", message);
    abort();
}

static hal_status fixture_load(const hal_host *host, const char *id, const uint64_t key[2],
                               void **data, uint64_t *bytes)
{
    return HAL_ERROR_NOT_FOUND;
}

static hal_status fixture_store(const hal_host *host, const char *id, const uint64_t key[2],
                                const void *data, uint64_t bytes)
{
    return HAL_ERROR_NOT_FOUND;
}

static void fixture_reached(const hal_host *host, hal_plugin_queue *queue, uint64_t value)
{
}

static void fixture_failed(const hal_host *host, hal_plugin_queue *queue, const char *message)
{
}

/* With CPU_FIXTURE_VALIDATE in the environment the plugin checks every access. */
static const hal_plugin_entries *cpu_plugin(void)
{
    static hal_host host = {.size = sizeof(hal_host),
                            .abi = HAL_PLUGIN_ABI,
                            .allocate = fixture_allocate,
                            .release = host_free,
                            .log = fixture_log,
                            .fail = fixture_fail,
                            .cache_load = fixture_load,
                            .cache_store = fixture_store,
                            .report = fixture_report,
                            .queue_reached = fixture_reached,
                            .queue_failed = fixture_failed};
    static const hal_plugin_entries *plugin;
    if (!plugin) {
        host.flags = getenv("CPU_FIXTURE_VALIDATE") ? HAL_HOST_VALIDATE : 0;
        void *library = dlopen(CPU_PLUGIN_PATH, RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            fail_msg("%s", dlerror());
        }
        static hal_plugin_entries entries;
        hal_plugin_create_function create;
        *(void **)&create = dlsym(library, HAL_PLUGIN_CREATE_SYMBOL);
        plugin = plugin_create(&entries, create, &host) ? &entries : NULL;
    }
    return plugin;
}

/* Kernels on avx2 and avx512 are compiled, those on NAME-steps are interpreted; on NAME-stream all
 * outputs bypass the caches. */
static const char *const cpu_sets[] = {"sse2",   "avx2",         "avx2-steps",    "avx2-stream",
                                       "avx512", "avx512-steps", "avx512-stream", "plain"};
enum { CPU_SETS = sizeof(cpu_sets) / sizeof(cpu_sets[0]) };
static hal_plugin_device *cpu_devices[CPU_SETS];

/* The device with an instruction set, open until the end; null where the machine has not got it.
 * CPU_FIXTURE_SET in the environment selects one set. */
static inline hal_plugin_device *cpu_open(uint32_t set)
{
    const char *wanted = getenv("CPU_FIXTURE_SET");
    if (wanted && strcmp(wanted, cpu_sets[set]) != 0) {
        return NULL;
    }
    if (!cpu_devices[set]) {
        char name[16];
        snprintf(name, sizeof(name), "%s", cpu_sets[set]);
        char *form = strchr(name, '-');
        if (form) {
            *form = '\0';
            setenv("HAL_CPU_JIT", strcmp(form + 1, "steps") == 0 ? "off" : "on", 1);
            setenv("HAL_CPU_STREAM", strcmp(form + 1, "stream") == 0 ? "1" : "", 1);
        }
        setenv("HAL_CPU_ISA", name, 1);
        plugin_open(cpu_plugin(), 0, &cpu_devices[set]);
        unsetenv("HAL_CPU_ISA");
        unsetenv("HAL_CPU_JIT");
        unsetenv("HAL_CPU_STREAM");
    }
    return cpu_devices[set];
}

/* The teardown of a group of tests. */
static inline int cpu_close_all(void **state)
{
    for (uint32_t set = 0; set < CPU_SETS; set++) {
        cpu_plugin()->device_close(cpu_devices[set]);
        cpu_devices[set] = NULL;
    }
    return 0;
}

/* What the plugin claims; hal keeps other types away from it. */
static inline uint32_t cpu_storage_types(void)
{
    hal_device_info info;
    uint32_t count = 0;
    assert_int_equal(plugin_list(cpu_plugin(), &info, 1, &count), HAL_OK);
    return info.storage_types;
}

static inline int equal_f32(uint32_t a, uint32_t b)
{
    const int both = (a & 0x7fffffff) > 0x7f800000 && (b & 0x7fffffff) > 0x7f800000;
    return a == b || both;
}

static inline int equal_f64(uint64_t a, uint64_t b)
{
    const uint64_t infinity = UINT64_C(0x7ff0000000000000), sign = UINT64_C(1) << 63;
    return a == b || ((a & ~sign) > infinity && (b & ~sign) > infinity);
}

/* Equal in bits; any NaN equals any other. */
static inline int cpu_equal(hal_type type, const void *a, const void *b, uint32_t element)
{
    const uint32_t bytes = hal_type_size(type);
    uint64_t x = 0, y = 0;
    memcpy(&x, (const char *)a + (size_t)element * bytes, bytes);
    memcpy(&y, (const char *)b + (size_t)element * bytes, bytes);
    if (hal_type_is_narrow_float(type)) {
        const uint32_t magnitude = hal_type_magnitude_mask(type);
        const uint32_t infinity = hal_type_overflow_bits(type);
        return x == y || ((x & magnitude) > infinity && (y & magnitude) > infinity);
    }
    switch (type) {
    case HAL_TYPE_F32:
        return equal_f32((uint32_t)x, (uint32_t)y);
    case HAL_TYPE_F64:
        return equal_f64(x, y);
    default:
        return x == y;
    }
}

/* A trial's buffer in memory of the plugin. It ends at a page that cannot be accessed, and
 * MARGIN bytes of 0x5a precede it. */
typedef struct cpu_placed {
    hal_plugin_memory *memory;
    uint8_t *data, *guard;
    hal_binding binding;
} cpu_placed;
enum { MARGIN = 64 };

static inline cpu_placed buffer_place(hal_plugin_device *device, const cpu_buffer *buffer)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uint64_t bytes = (uint64_t)buffer->count * hal_type_size(buffer->type);
    cpu_placed placed = {.binding = {.length = bytes}};
    void *base = NULL;
    assert_int_equal(cpu_plugin()->memory_allocate(device, HAL_MEMORY_DEVICE,
                                                   MARGIN + bytes + 2 * page, &placed.memory),
                     HAL_OK);
    assert_int_equal(cpu_plugin()->memory_map(device, placed.memory, &base), HAL_OK);
    placed.guard = (uint8_t *)(((uintptr_t)base + MARGIN + bytes + page - 1) / page * page);
    placed.data = placed.guard - bytes;
    placed.binding.memory = placed.memory;
    placed.binding.offset = (uint64_t)(placed.data - (uint8_t *)base);
    memset(placed.data - MARGIN, 0x5a, MARGIN);
    memcpy(placed.data, buffer->data, bytes);
    assert_int_equal(mprotect(placed.guard, page, PROT_NONE), 0);
    return placed;
}

/* Takes what the buffer holds and frees its memory. */
static inline void buffer_take(hal_plugin_device *device, cpu_placed *placed, void *result,
                               const char *what)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    assert_int_equal(mprotect(placed->guard, page, PROT_READ | PROT_WRITE), 0);
    memcpy(result, placed->data, placed->binding.length);
    for (uint32_t k = 1; k <= MARGIN; k++) {
        if (placed->data[-(ptrdiff_t)k] != 0x5a) {
            fail_msg("%s: a binding was written before its beginning", what);
        }
    }
    cpu_plugin()->memory_free(device, placed->memory);
}

/* Runs a trial on a device; `results` receives what the buffers hold then. */
static inline void cpu_run_on(hal_plugin_device *device, const cpu_trial *trial, void **results)
{
    const hal_plugin_entries *plugin = cpu_plugin();
    cpu_placed placed[CPU_FIXTURE_BINDINGS];
    hal_binding bindings[CPU_FIXTURE_BINDINGS] = {{0}};
    hal_plugin_kernel *kernel = NULL;
    hal_plugin_queue *queue = NULL;
    if (plugin->kernel_create(device, trial->kernel, &kernel) != HAL_OK) {
        fail_msg("%s: %s", trial->what, cpu_message);
    }
    assert_int_equal(plugin->queue_create(device, &queue), HAL_OK);
    for (uint32_t i = 0; i < trial->buffer_count; i++) {
        placed[i] = buffer_place(device, &trial->buffers[i]);
        bindings[i] = placed[i].binding;
        bindings[i].access = trial->kernel->memories[i].access;
    }
    hal_command command = {.kind = HAL_COMMAND_DISPATCH,
                           .binding_count = (uint16_t)trial->buffer_count,
                           .scalar_bytes = (uint16_t)trial->kernel->scalar_bytes,
                           .kernel = kernel};
    memcpy(command.grid, trial->grid, sizeof(command.grid));
    const hal_batch batch = {.size = sizeof(batch),
                             .command_count = 1,
                             .binding_count = trial->buffer_count,
                             .scalar_bytes = trial->kernel->scalar_bytes,
                             .commands = &command,
                             .bindings = bindings,
                             .scalars = trial->scalars};
    if (plugin->submit(queue, &batch, NULL, 0, 1) != HAL_OK) {
        fail_msg("%s: %s", trial->what, cpu_message);
    }
    assert_int_equal(plugin->wait(queue, 1, UINT64_MAX), HAL_OK);
    for (uint32_t i = 0; i < trial->buffer_count; i++) {
        buffer_take(device, &placed[i], results[i], trial->what);
    }
    plugin->kernel_destroy(device, kernel);
    plugin->queue_destroy(device, queue);
}

static inline void interpret(const cpu_trial *trial, void **results)
{
    kit_span spans[CPU_FIXTURE_BINDINGS];
    kit_problem problem;
    for (uint32_t i = 0; i < trial->buffer_count; i++) {
        spans[i].bytes = (uint64_t)trial->buffers[i].count * hal_type_size(trial->buffers[i].type);
        spans[i].data = results[i];
        memcpy(results[i], trial->buffers[i].data, spans[i].bytes);
    }
    kit_dispatch dispatch = {.kernel = trial->kernel,
                             .subgroup_width = CPU_FIXTURE_SUBGROUP,
                             .bindings = spans,
                             .scalars = trial->scalars};
    memcpy(dispatch.grid, trial->grid, sizeof(dispatch.grid));
    if (kit_interpret(&dispatch, &problem) != HAL_OK) {
        fail_msg("%s: the interpreter says: %s", trial->what, problem.text);
    }
}

static inline void show_difference(const cpu_trial *trial, const char *set, uint32_t buffer,
                                   uint32_t element, const void *wanted, const void *found)
{
    const uint32_t bytes = hal_type_size(trial->buffers[buffer].type);
    uint64_t x = 0, y = 0;
    char *text = NULL;
    memcpy(&x, (const char *)wanted + (size_t)element * bytes, bytes);
    memcpy(&y, (const char *)found + (size_t)element * bytes, bytes);
    hal_ir_print(trial->kernel, &text);
    fprintf(stderr, "%s\n", !text ? "" : text);
    fail_msg("%s, %s: binding %u[%u] is %llx, the interpreter has %llx", trial->what, set, buffer,
             element, (unsigned long long)y, (unsigned long long)x);
}

/* Every instruction set of the machine must do to the buffers what the interpreter does. */
static inline void cpu_trial_check(const cpu_trial *trial)
{
    void *wanted[CPU_FIXTURE_BINDINGS] = {NULL}, *found[CPU_FIXTURE_BINDINGS] = {NULL};
    uint32_t sets = 0;
    for (uint32_t i = 0; i < trial->buffer_count; i++) {
        const size_t bytes =
            (size_t)trial->buffers[i].count * hal_type_size(trial->buffers[i].type);
        wanted[i] = malloc(bytes);
        found[i] = malloc(bytes);
    }
    interpret(trial, wanted);
    for (uint32_t s = 0; s < CPU_SETS; s++) {
        hal_plugin_device *device = cpu_open(s);
        if (!device) {
            continue;
        }
        sets++;
        cpu_run_on(device, trial, found);
        for (uint32_t i = 0; i < trial->buffer_count; i++) {
            for (uint32_t k = 0; k < trial->buffers[i].count; k++) {
                if (!cpu_equal(trial->buffers[i].type, wanted[i], found[i], k)) {
                    show_difference(trial, cpu_sets[s], i, k, wanted[i], found[i]);
                }
            }
        }
    }
    assert_true(sets > 0);
    for (uint32_t i = 0; i < trial->buffer_count; i++) {
        free(wanted[i]);
        free(found[i]);
    }
}

/* Numbers without a pattern, the same in every run. */
static inline uint64_t cpu_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t x = *state ^ (*state >> 33);
    x *= UINT64_C(0xff51afd7ed558ccd);
    return x ^ (x >> 29);
}

/* Random contents. */
static inline cpu_buffer numbers(hal_type type, uint32_t count, uint64_t seed)
{
    cpu_buffer buffer = {.type = type, .count = count};
    uint32_t *words = calloc(count, hal_type_size(type));
    for (uint32_t i = 0; i < count * hal_type_size(type) / 4; i++) {
        const uint64_t any = cpu_random(&seed);
        const float f = (float)(int64_t)(any % 2001 - 1000) / 64.0f;
        words[i] = (uint32_t)any;
        if (type == HAL_TYPE_F32) {
            memcpy(&words[i], &f, sizeof(f));
        }
    }
    buffer.data = words;
    return buffer;
}

/* Checks a kernel, and frees it and the contents of its buffers. */
static inline void check(hal_ir_kernel *kernel, uint32_t groups, cpu_buffer *buffers,
                         uint32_t count, const void *scalars, const char *what)
{
    cpu_trial trial = {.kernel = kernel, .grid = {groups, 1, 1}, .buffer_count = count};
    trial.scalars = scalars;
    trial.what = what;
    memcpy(trial.buffers, buffers, count * sizeof(*buffers));
    cpu_trial_check(&trial);
    for (uint32_t i = 0; i < count; i++) {
        free(buffers[i].data);
    }
    hal_ir_kernel_destroy(kernel);
}

/* A kernel is compiled as a whole, without steps. */
static inline void check_no_calls(const hal_ir_kernel *ir)
{
    for (uint32_t set = 0; set < CPU_SETS; set++) {
        hal_plugin_device *device = cpu_open(set);
        hal_plugin_kernel *kernel = NULL;
        const int compiles =
            device && strncmp(cpu_sets[set], "avx", 3) == 0 && !strstr(cpu_sets[set], "-steps");
        if (compiles && !getenv("CPU_FIXTURE_VALIDATE")) {
            assert_int_equal(cpu_plugin()->kernel_create(device, ir, &kernel), 0);
            if (!strstr(cpu_log, " 0 calls of steps,")) {
                fail_msg("%s: expected no calls of steps, got %s", cpu_sets[set], cpu_log);
            }
            cpu_plugin()->kernel_destroy(device, kernel);
        }
    }
}

/* The kernel that a builder holds. */
static inline hal_ir_kernel *cpu_finish(hal_ir_builder *builder)
{
    hal_ir_kernel *kernel = NULL;
    if (hal_ir_builder_finish(builder, &kernel) != HAL_OK) {
        fail_msg("%s", hal_status_message());
    }
    hal_ir_builder_destroy(builder);
    return kernel;
}

#endif
