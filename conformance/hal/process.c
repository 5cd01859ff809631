/* process.c: promise 26: what entries leave of the process that hosts the plugin, and kernels that
 * are created and run under another locale, floating-point environment, and traps. */
#include <errno.h>
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
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case/cases.h"
#include "case/comma_locale.h"
#include "hal/fixture.h"

enum { COUNT = 1000, CONSTANTS = 24, SIGNALS = 64 };

/* What the case changes, to be put back: a report may end it anywhere. */
typedef struct host_state {
    struct sigaction handlers[SIGNALS + 1];
    sigset_t mask;
    stack_t alternate;
    char locale[128], folder[PATH_MAX];
    fenv_t environment;
    int rounding, traps, cancel_state;
    bool has_denormals;
    mode_t mask_of_files;
    int priority;
    cpu_set_t processors; /* of the thread */
    struct rlimit limits[RLIM_NLIMITS];
    struct itimerval timer;
    char thread[16];
    uint64_t variables; /* hash of the process's environment */
} host_state;

static uint64_t variables_hash(void)
{
    uint64_t hash = 0;
    for (char **variable = environ; *variable; variable++) {
        uint64_t one = 1469598103934665603u; /* FNV-1a, in any order of the variables */
        for (const char *at = *variable; *at; at++) {
            one = (one ^ (uint8_t)*at) * 1099511628211u;
        }
        hash += one;
    }
    return hash;
}

static void state_read(host_state *state)
{
    memset(state, 0, sizeof *state);
    fegetenv(&state->environment);
    state->rounding = fegetround();
#ifdef __GLIBC__
    state->traps = fegetexcept();
#endif
    volatile float smallest = FLT_MIN;
    smallest /= 2;
    state->has_denormals = smallest != 0;
    for (int i = 1; i <= SIGNALS; i++) {
        sigaction(i, NULL, &state->handlers[i]);
    }
    pthread_sigmask(SIG_BLOCK, NULL, &state->mask);
    sigaltstack(NULL, &state->alternate);
    snprintf(state->locale, sizeof state->locale, "%s", setlocale(LC_ALL, NULL));
    if (!getcwd(state->folder, sizeof state->folder)) {
        state->folder[0] = 0;
    }
    state->mask_of_files = umask(0);
    umask(state->mask_of_files);
    state->priority = getpriority(PRIO_PROCESS, 0);
    sched_getaffinity(0, sizeof state->processors, &state->processors);
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        getrlimit(i, &state->limits[i]);
    }
    getitimer(ITIMER_REAL, &state->timer);
    pthread_getname_np(pthread_self(), state->thread, sizeof state->thread);
    state->variables = variables_hash();
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state->cancel_state);
}

static void state_write(const host_state *state)
{
    fesetenv(&state->environment);
    for (int i = 1; i <= SIGNALS; i++) {
        sigaction(i, &state->handlers[i], NULL);
    }
    pthread_sigmask(SIG_SETMASK, &state->mask, NULL);
    sigaltstack(&state->alternate, NULL);
    setlocale(LC_ALL, state->locale);
    if (state->folder[0] && chdir(state->folder) != 0) {
        return; /* the folder is gone */
    }
}

/* The same of what belongs to the process. */
static void surroundings_check(case_run *run, const host_state *now, const host_state *before,
                               const char *what)
{
    case_check(run, now->mask_of_files == before->mask_of_files, "%s: the umask is %03o, not %03o",
               what, (unsigned)now->mask_of_files, (unsigned)before->mask_of_files);
    case_check(run, now->priority == before->priority, "%s: the priority is %d instead of %d", what,
               now->priority, before->priority);
    case_check(run, CPU_EQUAL(&now->processors, &before->processors),
               "%s: the thread may run on %d processors instead of %d, or on others", what,
               CPU_COUNT(&now->processors), CPU_COUNT(&before->processors));
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        case_check(run, now->limits[i].rlim_cur == before->limits[i].rlim_cur,
                   "%s: the limit of resource %d is %llu instead of %llu", what, i,
                   (unsigned long long)now->limits[i].rlim_cur,
                   (unsigned long long)before->limits[i].rlim_cur);
    }
    case_check(run, now->timer.it_value.tv_sec == 0 || before->timer.it_value.tv_sec != 0,
               "%s: a timer of the process runs", what);
    case_check(run, strcmp(now->thread, before->thread) == 0,
               "%s: the thread's name is %s instead of %s", what, now->thread, before->thread);
    case_check(run, now->variables == before->variables,
               "%s: the environment variables have changed", what);
    errno = 0;
    case_check(run, waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD,
               "%s: a process that nobody waits for is left", what);
}

/* Reports what differs from `before` after the calls that `what` names. */
static void state_check(case_run *run, const host_state *before, const char *what)
{
    host_state now;
    state_read(&now);
    for (int i = 1; i <= SIGNALS; i++) {
        case_check(run, now.handlers[i].sa_handler == before->handlers[i].sa_handler,
                   "%s: the handler of signal %d was replaced", what, i);
        case_check(run, sigismember(&now.mask, i) == sigismember(&before->mask, i),
                   "%s: signal %d is %s", what, i,
                   sigismember(&now.mask, i) ? "blocked" : "no longer blocked");
    }
    case_check(run, now.alternate.ss_sp == before->alternate.ss_sp,
               "%s: the alternate stack was replaced", what);
    case_check(run, strcmp(now.locale, before->locale) == 0, "%s: the locale is %s instead of %s",
               what, now.locale, before->locale);
    case_check(run, strcmp(now.folder, before->folder) == 0,
               "%s: the working folder is %s instead of %s", what, now.folder, before->folder);
    case_check(run, now.rounding == before->rounding, "%s: the rounding mode is %d instead of %d",
               what, now.rounding, before->rounding);
    case_check(run, now.traps == before->traps, "%s: the traps are %#x instead of %#x", what,
               (unsigned)now.traps, (unsigned)before->traps);
    case_check(run, now.has_denormals == before->has_denormals, "%s: denormals are %s", what,
               now.has_denormals ? "kept" : "flushed");
    case_check(run, now.cancel_state == before->cancel_state,
               "%s: cancellation of the thread was switched", what);
    surroundings_check(run, &now, before, what);
}

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

static void arrived(int signal)
{
    (void)signal;
}

/* A state that no plugin sets by chance. */
static void state_make(void)
{
    static const int own[] = {SIGUSR1, SIGUSR2, SIGHUP, SIGPIPE, SIGWINCH};
    sigset_t blocked;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        sigaction(own[i], &(struct sigaction){.sa_handler = arrived}, NULL);
    }
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGURG);
    sigaddset(&blocked, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    comma_locale_set();
    if (chdir("/usr") != 0 && chdir("/tmp") != 0) {
        return; /* the folder of before is as good */
    }
    fesetround(FE_UPWARD);
}

static void state_steps(case_run *run, const void *parameters)
{
    host_state before;
    float y[COUNT];
    state_make();
    state_read(&before);
    case_ok(run, hal_device_open(run->selection, &run->device), "hal_device_open");
    state_check(run, &before, "hal_device_open");
    run->info = hal_device_get_info(run->device);
    run->queue = case_queue(run, run->device);
    state_check(run, &before, "hal_queue_create");
    hal_buffer *x = fractions_create(run);
    state_check(run, &before, "hal_buffer_create and hal_queue_write");
    hal_kernel *kernel = fraction_kernel(run, 64);
    state_check(run, &before, "hal_kernel_create");
    kernel_run(run, run->queue, kernel, 64, x, y);
    state_check(run, &before, "hal_queue_dispatch and hal_queue_read");
    case_release(run, 0);
    hal_device_release(run->device);
    run->device = NULL;
    run->queue = NULL;
    state_check(run, &before, "hal_kernel_release, hal_queue_destroy and hal_device_release");
}

/* Runs the steps, then puts the state back, then reports. */
static void with_state(case_run *run, case_function steps, const void *parameters)
{
    host_state before;
    state_read(&before);
    case_execute(run, steps, parameters);
    state_write(&before);
    case_end_reported(run);
}

static void state_kept(case_run *run, const void *parameters)
{
    with_state(run, state_steps, parameters);
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
    with_state(run, same_bits_steps, parameters);
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
}
