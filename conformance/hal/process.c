/* process.c: promise 26: what entries leave of the process that hosts the plugin, and kernels that
 * are created and run under another locale, floating-point environment, and traps. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <float.h>
#include <hal/hal.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case/cases.h"
#include "case/comma_locale.h"
#include "hal/entries.h"
#include "hal/fixture.h"
#include "hal/host_state.h"

enum { COUNT = 1000, CONSTANTS = 24 };

/* y = ((x + 0.1) * 0.9 + 0.2) * ... with constants that no f32 holds exactly; `group` makes
 * another kernel of the same values. */
static hal_kernel *fraction_kernel(case_run *run, uint32_t group)
{
    hal_ir_builder *b = case_builder(run, "fractions");
    hal_ir_group_size(b, group, 1, 1);
    const hal_ir_memory_id x = hal_ir_binding(b, "x", HAL_TYPE_F32, HAL_ACCESS_READ);
    const hal_ir_memory_id y = hal_ir_binding(b, "y", HAL_TYPE_F32, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const hal_ir_value inside = hal_ir_lt(b, i, hal_ir_u32(b, COUNT));
    hal_ir_if(b, inside);
    hal_ir_value v = hal_ir_load(b, x, i);
    for (int k = 0; k < CONSTANTS; k++) {
        static const float tenths[8] = {0.1F, 0.7F, 1.3F, 0.9F, 0.3F, 1.1F, 0.6F, 1.2F};
        const hal_ir_value c = hal_ir_f32(b, tenths[k % 8]);
        v = k % 4 == 0   ? hal_ir_add(b, v, c)
            : k % 4 == 1 ? hal_ir_div(b, v, c)
                         : hal_ir_mul(b, v, c);
    }
    hal_ir_store(b, y, i, v);
    hal_ir_end(b);
    return case_kernel(run, b);
}

static hal_buffer *fractions_create(case_run *run)
{
    float x[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        x[i] = 1 + (float)i / 1024;
    }
    hal_buffer *made = case_buffer(run, run->device, HAL_MEMORY_DEVICE, sizeof x);
    case_ok(run, hal_queue_write(run->queue, made, 0, x, sizeof x), "hal_queue_write");
    return made;
}

static void kernel_run(case_run *run, hal_queue *queue, hal_kernel *kernel, uint32_t group,
                       hal_buffer *x, float y[COUNT])
{
    hal_buffer *out = case_buffer(run, run->device, HAL_MEMORY_DEVICE, COUNT * sizeof *y);
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    case_ok(run,
            hal_queue_dispatch(queue, kernel, (uint32_t[3]){(COUNT + group - 1) / group, 1, 1},
                               (hal_range[]){range_of(x), range_of(out)}, 2, NULL, 0),
            "hal_queue_dispatch");
    case_ok(run, hal_queue_read(queue, out, 0, COUNT * sizeof *y, y), "hal_queue_read");
}

/* ---- The state of the process ---- */

/* Copies, maps, waits of all kinds and a second queue. */
static void more_steps(case_run *run, const host_state *before, hal_buffer *x)
{
    hal_point point = {0};
    void *pointer = NULL;
    hal_memory_statistics memory;
    hal_queue *other = case_queue(run, run->device);
    for (uint32_t kind = HAL_MEMORY_DEVICE; kind < HAL_MEMORY_KIND_COUNT; kind++) {
        hal_buffer *buffer = case_buffer(run, run->device, (hal_memory_kind)kind, COUNT * 4);
        case_ok(run, hal_queue_copy(other, range_of(x), range_of(buffer)), "hal_queue_copy");
        case_ok(run, hal_queue_flush(other, &point), "hal_queue_flush");
        case_ok(run, hal_queue_wait_point(run->queue, point), "hal_queue_wait_point");
        case_ok(run, hal_queue_fill(run->queue, range_of(buffer), kind), "hal_queue_fill");
        const hal_status status = hal_point_wait(point, kind * UINT64_C(1000));
        case_check(run, status == HAL_OK || status == HAL_ERROR_TIMEOUT, "a wait gave %s",
                   hal_status_name(status));
        case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
        if (kind != HAL_MEMORY_DEVICE) {
            case_ok(run, hal_buffer_map_begin(buffer, &pointer), "hal_buffer_map_begin");
            case_ok(run, hal_buffer_map_end(buffer), "hal_buffer_map_end");
        }
    }
    case_ok(run, hal_device_get_memory(run->device, &memory), "hal_device_get_memory");
    host_state_check(run, before, "copies, waits and maps");
}

static void release_buffer(void *buffer)
{
    hal_buffer_release(buffer);
}

/* What is called seldom: times, products, imports, long reads, many batches. */
static void seldom_steps(case_run *run, const host_state *before, hal_buffer *x)
{
    enum { BATCHES = 100, LONG = 1 << 22 };
    static uint64_t pages[4096 / 8] __attribute__((aligned(4096)));
    hal_point points[2] = {{0}};
    uint64_t nanoseconds = 0, workspace = 0;
    for (int i = 0; i < BATCHES; i++) {
        case_ok(run, hal_queue_fill(run->queue, range_of(x), (uint32_t)i), "hal_queue_fill");
        case_ok(run, hal_queue_flush(run->queue, &points[i % 2]), "hal_queue_flush");
    }
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    host_state_check(run, before, "many batches");
    if ((run->info->features & HAL_FEATURE_TIMESTAMPS) != 0) {
        case_ok(run, hal_point_get_elapsed(points[0], points[1], &nanoseconds), "a time");
        host_state_check(run, before, "hal_point_get_elapsed");
    }
    hal_external_info external = {.size = sizeof external};
    case_ok(run, hal_device_get_external(run->device, &external), "hal_device_get_external");
    const hal_memory_handle handle = {.size = sizeof handle,
                                      .kind = HAL_HANDLE_HOST,
                                      .handle = (uintptr_t)pages,
                                      .bytes = sizeof pages,
                                      .access = HAL_ACCESS_READ_WRITE};
    hal_buffer *imported = NULL;
    if ((external.import_kinds & HAL_HANDLE_BIT(HAL_HANDLE_HOST)) != 0 &&
        hal_buffer_import(run->device, &handle, NULL, NULL, &imported) == HAL_OK) {
        case_own(run, release_buffer, imported);
    }
    host_state_check(run, before, "hal_buffer_import");
    const hal_gemm_description product = square_product(64);
    hal_kernel *kernel = NULL;
    if (hal_kernel_create_gemm(run->device, &product, &kernel, &workspace) == HAL_OK) {
        case_own_kernel(run, kernel);
    }
    host_state_check(run, before, "hal_kernel_create_gemm");
    hal_buffer *large = case_buffer(run, run->device, HAL_MEMORY_DEVICE, LONG);
    void *words = case_allocate(run, 1, LONG);
    case_ok(run, hal_queue_write(run->queue, large, 0, words, LONG), "hal_queue_write");
    case_ok(run, hal_queue_read(run->queue, large, 0, LONG, words), "hal_queue_read");
    host_state_check(run, before, "a large write and read");
}

/* A process of the program that has ended is still there to be waited for. */
static void own_child_check(case_run *run, pid_t child, const char *what)
{
    case_check(run, child <= 0 || waitpid(child, NULL, 0) == child,
               "%s: an ended process of the program was waited for by another one", what);
}

static pid_t own_child_start(void)
{
    const pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    siginfo_t ended;
    if (child > 0) {
        waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT);
    }
    return child;
}

static void state_steps(case_run *run, const void *parameters)
{
    host_state before;
    float y[COUNT];
    host_state_make();
    host_state_read(&before);
    pid_t child = own_child_start();
    case_ok(run, hal_device_open(run->selection, &run->device), "hal_device_open");
    own_child_check(run, child, "hal_device_open");
    host_state_check(run, &before, "hal_device_open");
    run->info = hal_device_get_info(run->device);
    run->queue = case_queue(run, run->device);
    host_state_check(run, &before, "hal_queue_create");
    hal_buffer *x = fractions_create(run);
    host_state_check(run, &before, "hal_buffer_create and hal_queue_write");
    child = own_child_start();
    hal_kernel *kernel = fraction_kernel(run, 64);
    own_child_check(run, child, "hal_kernel_create");
    host_state_check(run, &before, "hal_kernel_create");
    kernel_run(run, run->queue, kernel, 64, x, y);
    host_state_check(run, &before, "hal_queue_dispatch and hal_queue_read");
    more_steps(run, &before, x);
    seldom_steps(run, &before, x);
    case_release(run, 0);
    case_ok(run, hal_device_trim(run->device), "hal_device_trim");
    host_state_check(run, &before, "releases and hal_device_trim");
    hal_device_release(run->device);
    run->device = NULL;
    run->queue = NULL;
    host_state_check(run, &before, "hal_device_release");
    host_state_check_folder(run);
}

static void state_kept(case_run *run, const void *parameters)
{
    host_state_with(run, state_steps, parameters);
}

/* The look after each entry. */
static void entry_look(case_run *run, void *user, const char *entry)
{
    host_state_check(run, user, entry);
}

static void entry_steps(case_run *run, const void *parameters)
{
    direct *d = direct_host(run);
    host_state before;
    host_state_make();
    host_state_read(&before);
    entries_walk(run, d, entry_look, &before);
    host_state_check_folder(run);
}

/* Each entry of all tables, also those that hal calls seldom or not at all for this device. */
static void state_of_entries(case_run *run, const void *parameters)
{
    device_open_here(run);
    direct_path(run); /* asks all drivers */
    host_state_with(run, entry_steps, parameters);
}

/* ---- The same bits in another environment ---- */

typedef enum surroundings { COMMA, UPWARD, TOWARD_ZERO, TRAPS } surroundings;

static void surroundings_make(case_run *run, surroundings which)
{
    switch (which) {
    case COMMA:
        if (!comma_locale_set()) {
            case_unsupported(run, "the C library takes no locale with a decimal comma");
        }
        break;
    case UPWARD:
        fesetround(FE_UPWARD);
        break;
    case TOWARD_ZERO:
        fesetround(FE_TOWARDZERO);
        break;
    case TRAPS:
#ifdef __GLIBC__
        if (feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW) >= 0) {
            break;
        }
#endif
        case_unsupported(run, "the processor or the C library has no traps");
    }
}

static void same_bits_steps(case_run *run, const void *parameters)
{
    const surroundings which = *(const surroundings *)parameters;
    const uint32_t other_group = 24 + 8 * which; /* a kernel that was not created before */
    float expected[COUNT], y[COUNT];
    hal_buffer *x = fractions_create(run);
    hal_kernel *kernel = fraction_kernel(run, 16);
    kernel_run(run, run->queue, kernel, 16, x, expected);
    surroundings_make(run, which);
    kernel_run(run, run->queue, kernel, 16, x, y);
    case_check(run, memcmp(y, expected, sizeof y) == 0,
               "a kernel gives other bits when it runs there");
    kernel = fraction_kernel(run, other_group);
    kernel_run(run, run->queue, kernel, other_group, x, y);
    case_check(run, memcmp(y, expected, sizeof y) == 0,
               "a kernel gives other bits when it is created there");
}

static void same_bits(case_run *run, const void *parameters)
{
    host_state_with(run, same_bits_steps, parameters);
}

/* ---- A thread with a small stack ---- */

typedef struct small_stack {
    case_run *run;
    hal_buffer *x, *y;
    hal_kernel *kernel;
} small_stack;

static void small_stack_steps(case_run *run, const void *parameters)
{
    const small_stack *made = *(const small_stack *const *)parameters;
    hal_kernel *kernel = made->kernel ? made->kernel : scale_kernel(run, run->device);
    hal_point point = {0};
    scale_dispatch(run, run->queue, kernel, made->x, made->y, COUNT, 3, 1);
    case_ok(run, hal_queue_flush(run->queue, &point), "hal_queue_flush");
    case_ok(run, hal_point_wait(point, HAL_WAIT_FOREVER), "hal_point_wait");
    words_check(run, run->queue, made->y, COUNT, 4, 3, "the result");
    if (case_has_compiler(run)) {
        return; /* what a driver needs is its own */
    }
    hal_memory_statistics memory = {0};
    uint64_t nanoseconds = 0;
    hal_queue *other = case_queue(run, run->device);
    hal_buffer *large = case_buffer(run, run->device, HAL_MEMORY_SHARED, (1 << 22) + 4096);
    case_ok(run, hal_queue_fill(other, range_of(large), 1), "hal_queue_fill");
    case_ok(run, hal_queue_wait(other, HAL_WAIT_FOREVER), "hal_queue_wait");
    case_ok(run, hal_device_get_memory(run->device, &memory), "hal_device_get_memory");
    if ((run->info->features & HAL_FEATURE_TIMESTAMPS) != 0) {
        case_ok(run, hal_point_get_elapsed(point, point, &nanoseconds), "a time");
    }
    case_release(run, 0);
    case_ok(run, hal_device_trim(run->device), "hal_device_trim");
}

static void *small_stack_thread(void *argument)
{
    const small_stack *made = argument;
    case_execute(made->run, small_stack_steps, &made);
    return NULL;
}

/* Runs a function on a thread with 128 KiB of stack, and reports what it reported. */
static void on_small_stack(case_run *run, void *(*function)(void *argument), void *argument)
{
    pthread_attr_t attributes;
    pthread_t thread;
    const size_t bytes = (size_t)128 << 10;
    pthread_attr_init(&attributes);
    const bool is_made = pthread_attr_setstacksize(&attributes, bytes) == 0 &&
                         pthread_create(&thread, &attributes, function, argument) == 0;
    pthread_attr_destroy(&attributes);
    if (!is_made) {
        case_unsupported(run, "the system makes no threads with 128 KiB of stack");
    }
    pthread_join(thread, NULL);
    case_end_reported(run);
}

/* Such a thread submits and waits; where no driver compiles it creates the kernel too. */
static void small_stacks(case_run *run, const void *parameters)
{
    static small_stack made;
    made = (small_stack){.run = run,
                         .x = words_create(run, run->queue, COUNT, 1, 1),
                         .y = words_create(run, run->queue, COUNT, 0, 0),
                         .kernel = case_has_compiler(run) ? scale_kernel(run, run->device) : NULL};
    if (made.kernel) { /* a driver may finish its compilation with the first submit */
        scale_dispatch(run, run->queue, made.kernel, made.x, made.y, COUNT, 1, 1);
    }
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    on_small_stack(run, small_stack_thread, &made);
}

static void no_look(case_run *run, void *user, const char *entry)
{
    (void)run;
    (void)user;
    (void)entry;
}

static void entries_on_small_stack(case_run *run, const void *parameters)
{
    entries_walk(run, direct_host(run), no_look, NULL);
}

static void *entries_thread(void *argument)
{
    case_execute(argument, entries_on_small_stack, NULL);
    return NULL;
}

/* Each entry of all tables is called on such a thread. */
static void entries_small_stack(case_run *run, const void *parameters)
{
    if (case_has_compiler(run)) {
        case_unsupported(run, "what a driver needs is its own");
    }
    direct_path(run); /* asks all drivers */
    on_small_stack(run, entries_thread, run);
}

/* ---- Signals that arrive meanwhile ---- */

static void arrived(int signal)
{
    (void)signal;
}

static void signal_steps(case_run *run, const void *parameters)
{
    enum { TURNS = 60, MICROSECONDS = 300 };
    const struct itimerval often = {{0, MICROSECONDS}, {0, MICROSECONDS}};
    const struct sigaction handler = {.sa_handler = arrived}; /* no call is started again */
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, COUNT, 1, 1);
    hal_buffer *y = words_create(run, run->queue, COUNT, 0, 0);
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    sigaction(SIGALRM, &handler, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (uint32_t i = 0; i < TURNS; i++) {
        hal_point point = {0};
        scale_dispatch(run, run->queue, kernel, x, y, COUNT, 3, i);
        case_ok(run, hal_queue_flush(run->queue, &point), "a flush while signals arrive");
        const hal_status status = hal_point_wait(point, UINT64_C(20000000000));
        case_ok(run, status, "a wait while signals arrive");
    }
    words_check(run, run->queue, y, COUNT, 3 + TURNS - 1, 3, "the result");
    case_queue(run, run->device);
    case_buffer(run, run->device, HAL_MEMORY_SHARED, 1 << 22);
}

/* A signal that the program handles ends no call. */
static void signals_arrive(case_run *run, const void *parameters)
{
    const struct itimerval never = {{0, 0}, {0, 0}};
    struct sigaction before;
    sigaction(SIGALRM, NULL, &before);
    case_execute(run, signal_steps, parameters);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    case_end_reported(run);
}

void cases_hal_process(case_list *list)
{
    static const char *const names[] = {"locale", "rounding_upward", "rounding_toward_zero",
                                        "traps"};
    case_add(list, state_kept, NULL, 0, "process/state");
    case_has_faults(list, "%s", ""); /* its opening is the first one of the process */
    for (surroundings which = COMMA; which <= TRAPS; which++) {
        case_add(list, same_bits, &which, sizeof which, "process/%s", names[which]);
    }
    case_add(list, small_stacks, NULL, 0, "process/small_stack");
    case_add(list, entries_small_stack, NULL, 0, "process/stack_of_entries");
    case_add(list, signals_arrive, NULL, 0, "process/signals");
    case_add(list, state_of_entries, NULL, 0, "process/each_entry");
    case_has_faults(list, "%s", "");
}
