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
#include "hal/fixture.h"

enum { COUNT = 1000, CONSTANTS = 24, SIGNALS = 64, MOST_FILES = 64, ATTRIBUTES = 7, TIMERS = 3 };
enum { MOST_VARIABLES = 1024, NUMBERS = 128 };

/* What a descriptor names; zeros: it is closed. */
typedef struct file_state {
    dev_t device;
    ino_t number;
    int flags, status; /* of the descriptor, and of what it names */
} file_state;

/* What the case changes, to be put back: a report may end it anywhere. */
typedef struct host_state {
    struct sigaction handlers[SIGNALS + 1];
    sigset_t mask;
    stack_t alternate;
    char locale[128], folder[PATH_MAX];
    fenv_t environment;
    int rounding, traps, raised, cancel_state;
    uint16_t x87_control;
    bool has_denormals;
    mode_t mask_of_files;
    int priority;
    cpu_set_t processors; /* of the thread */
    struct rlimit limits[RLIM_NLIMITS];
    struct itimerval timers[TIMERS];
    file_state files[MOST_FILES];
    locale_t locale_of_thread;
    int policy, cancel_type, attributes[ATTRIBUTES];
    pid_t session, group;
    char thread[16];
    uint64_t variables[MOST_VARIABLES]; /* hashes of the environment; 0: no more */
    char numbers[NUMBERS];              /* the state of rand */
} host_state;

#ifdef __WALL
enum { EVERY_CHILD = __WALL }; /* also those that end with another signal than SIGCHLD */
#else
enum { EVERY_CHILD = 0 };
#endif

static uint64_t variable_hash(const char *variable)
{
    uint64_t hash = 1469598103934665603u; /* FNV-1a */
    for (; *variable; variable++) {
        hash = (hash ^ (uint8_t)*variable) * 1099511628211u;
    }
    return hash;
}

static void variables_read(uint64_t variables[MOST_VARIABLES])
{
    for (int i = 0; environ && environ[i] && i < MOST_VARIABLES; i++) {
        variables[i] = variable_hash(environ[i]);
    }
}

static bool variables_have(const uint64_t variables[MOST_VARIABLES], uint64_t hash)
{
    int i = 0;
    while (i < MOST_VARIABLES && variables[i] != hash) {
        i++;
    }
    return i < MOST_VARIABLES;
}

/* The variables are the same, in any order. */
static void variables_check(case_run *run, const host_state *now, const host_state *before,
                            const char *what)
{
    for (int i = 0; environ && environ[i] && i < MOST_VARIABLES; i++) {
        case_check(run, variables_have(before->variables, variable_hash(environ[i])),
                   "%s: the environment has %s, which was not there", what, environ[i]);
    }
    for (int i = 0; i < MOST_VARIABLES; i++) {
        case_check(run,
                   !before->variables[i] || variables_have(now->variables, before->variables[i]),
                   "%s: an environment variable was changed or removed", what);
    }
}

static const char *const attribute_names[ATTRIBUTES] = {
    "whether it can be dumped",   "the signal of its parent's end",
    "the adoption of orphans",    "the slack of timers",
    "no new privileges",          "large pages",
    "the keeping of capabilities"};

/* Attributes that the system keeps of a process or a thread. */
static void attributes_read(int attributes[ATTRIBUTES])
{
#ifdef __linux__
    attributes[0] = prctl(PR_GET_DUMPABLE);
    prctl(PR_GET_PDEATHSIG, &attributes[1]);
    prctl(PR_GET_CHILD_SUBREAPER, &attributes[2]);
    attributes[3] = prctl(PR_GET_TIMERSLACK);
    attributes[4] = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
    attributes[5] = prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0);
    attributes[6] = prctl(PR_GET_KEEPCAPS);
#else
    memset(attributes, 0, ATTRIBUTES * sizeof *attributes);
#endif
}

static void files_read(file_state files[MOST_FILES])
{
    for (int i = 0; i < MOST_FILES; i++) {
        struct stat file;
        if (fstat(i, &file) == 0) {
            files[i] = (file_state){file.st_dev, file.st_ino, fcntl(i, F_GETFD), fcntl(i, F_GETFL)};
        }
    }
}

/* The state of rand and random, in memory of the case from the first call on. */
static void numbers_read(char numbers[NUMBERS])
{
    static char state[NUMBERS];
    static bool is_set;
    if (!is_set) {
        initstate(4711, state, sizeof state);
        is_set = true;
    }
    memcpy(numbers, state, sizeof state);
}

static void state_read(host_state *state)
{
    static const int timers[TIMERS] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};
    memset(state, 0, sizeof *state);
    fegetenv(&state->environment);
    state->rounding = fegetround();
#ifdef __GLIBC__
    state->traps = fegetexcept();
#endif
    state->raised = fetestexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_INVALID);
#if defined(__x86_64__) || defined(__i386__)
    __asm__ volatile("fnstcw %0" : "=m"(state->x87_control));
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
    for (int i = 0; i < TIMERS; i++) {
        getitimer(timers[i], &state->timers[i]);
    }
    files_read(state->files);
    attributes_read(state->attributes);
    state->locale_of_thread = uselocale((locale_t)0);
    state->policy = sched_getscheduler(0);
    state->session = getsid(0);
    state->group = getpgrp();
    pthread_getname_np(pthread_self(), state->thread, sizeof state->thread);
    variables_read(state->variables);
    numbers_read(state->numbers);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state->cancel_state);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &state->cancel_type);
}

static void state_write(const host_state *state)
{
    fesetenv(&state->environment);
    for (int i = 1; i <= SIGNALS; i++) {
        sigaction(i, &state->handlers[i], NULL);
    }
    pthread_sigmask(SIG_SETMASK, &state->mask, NULL);
    sigaltstack(&state->alternate, NULL);
    uselocale(state->locale_of_thread);
    setlocale(LC_ALL, state->locale);
    if (state->folder[0] && chdir(state->folder) != 0) {
        return; /* the folder is gone */
    }
}

/* What was open is open, and what it was. */
static void files_check(case_run *run, const host_state *now, const host_state *before,
                        const char *what)
{
    for (int i = 0; i < MOST_FILES; i++) {
        const file_state *old = &before->files[i], *new = &now->files[i];
        const bool was_open = old->number != 0 || old->device != 0;
        case_check(run, !was_open || (old->number == new->number && old->device == new->device),
                   "%s: descriptor %d was closed, or is another file now", what, i);
        case_check(run, !was_open || (old->flags == new->flags && old->status == new->status),
                   "%s: the flags of descriptor %d have changed", what, i);
    }
}

static void attributes_check(case_run *run, const host_state *now, const host_state *before,
                             const char *what)
{
    for (int i = 0; i < ATTRIBUTES; i++) {
        case_check(run, now->attributes[i] == before->attributes[i],
                   "%s: %s, an attribute of the process, is %d instead of %d", what,
                   attribute_names[i], now->attributes[i], before->attributes[i]);
    }
    case_check(run, now->policy == before->policy, "%s: the thread's scheduler is %d instead of %d",
               what, now->policy, before->policy);
    case_check(run, now->session == before->session && now->group == before->group,
               "%s: the process has left its session or group", what);
    case_check(run, now->cancel_type == before->cancel_type,
               "%s: the type of the thread's cancellation was switched", what);
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
        case_check(run, now->limits[i].rlim_max == before->limits[i].rlim_max,
                   "%s: the hard limit of resource %d is %llu instead of %llu", what, i,
                   (unsigned long long)now->limits[i].rlim_max,
                   (unsigned long long)before->limits[i].rlim_max);
    }
    for (int i = 0; i < TIMERS; i++) {
        case_check(run, now->timers[i].it_value.tv_sec == 0 || before->timers[i].it_value.tv_sec,
                   "%s: a timer of the process runs", what);
    }
    case_check(run, strcmp(now->thread, before->thread) == 0,
               "%s: the thread's name is %s instead of %s", what, now->thread, before->thread);
    variables_check(run, now, before, what);
    case_check(run, memcmp(now->numbers, before->numbers, sizeof now->numbers) == 0,
               "%s: the program's next number of rand is another one", what);
    errno = 0;
    case_check(run, waitpid(-1, NULL, WNOHANG | EVERY_CHILD) < 0 && errno == ECHILD,
               "%s: a process that nobody waits for is left", what);
}

/* A handler of the case. */
static void arrived(int signal)
{
    (void)signal;
}

/* Without the one that the C library sets when a handler is put back. */
static int own_flags(const struct sigaction *handler)
{
    enum { RESTORER = 0x04000000 };
    return handler->sa_flags & ~RESTORER;
}

/* Reports what differs from `before` after the calls that `what` names. */
static void state_check(case_run *run, const host_state *before, const char *what)
{
    host_state now;
    state_read(&now);
    for (int i = 1; i <= SIGNALS; i++) {
        case_check(run, now.handlers[i].sa_handler == before->handlers[i].sa_handler,
                   "%s: the handler of signal %d was replaced", what, i);
        case_check(run, own_flags(&now.handlers[i]) == own_flags(&before->handlers[i]),
                   "%s: the flags of the handler of signal %d have changed", what, i);
        case_check(run, sigismember(&now.mask, i) == sigismember(&before->mask, i),
                   "%s: signal %d is %s", what, i,
                   sigismember(&now.mask, i) ? "blocked" : "no longer blocked");
    }
    case_check(run, now.alternate.ss_sp == before->alternate.ss_sp,
               "%s: the alternate stack was replaced", what);
    case_check(run, strcmp(now.locale, before->locale) == 0, "%s: the locale is %s instead of %s",
               what, now.locale, before->locale);
    case_check(run, now.locale_of_thread == before->locale_of_thread,
               "%s: the thread has another locale of its own (uselocale)", what);
    case_check(run, strcmp(now.folder, before->folder) == 0,
               "%s: the working folder is %s instead of %s", what, now.folder, before->folder);
    case_check(run, now.rounding == before->rounding, "%s: the rounding mode is %d instead of %d",
               what, now.rounding, before->rounding);
    case_check(run, now.x87_control == before->x87_control,
               "%s: the control word of the x87 unit is %#x instead of %#x", what, now.x87_control,
               before->x87_control);
    case_check(run, now.raised == before->raised,
               "%s: the raised floating-point exceptions are %#x instead of %#x", what,
               (unsigned)now.raised, (unsigned)before->raised);
    case_check(run, now.traps == before->traps, "%s: the traps are %#x instead of %#x", what,
               (unsigned)now.traps, (unsigned)before->traps);
    case_check(run, now.has_denormals == before->has_denormals, "%s: denormals are %s", what,
               now.has_denormals ? "kept" : "flushed");
    case_check(run, now.cancel_state == before->cancel_state,
               "%s: cancellation of the thread was switched", what);
    surroundings_check(run, &now, before, what);
    files_check(run, &now, before, what);
    attributes_check(run, &now, before, what);
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

static locale_t own_locale; /* of the thread */
static char own_folder[32]; /* for temporary files */

/* Removes the folder for temporary files. Returns the name of a file that was left there, or "". */
static const char *own_folder_remove(void)
{
    static char left[256];
    left[0] = 0;
    DIR *folder = opendir(own_folder);
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        char path[sizeof own_folder + sizeof left];
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            snprintf(left, sizeof left, "%s", entry->d_name);
            snprintf(path, sizeof path, "%s/%s", own_folder, left);
            if (unlink(path) != 0) {
                rmdir(path);
            }
        }
    }
    if (folder) {
        closedir(folder);
    }
    rmdir(own_folder);
    return left;
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
    own_locale = duplocale(LC_GLOBAL_LOCALE);
    uselocale(own_locale ? own_locale : LC_GLOBAL_LOCALE);
    strcpy(own_folder, "/tmp/conformance-XXXXXX");
    if (mkdtemp(own_folder)) {
        setenv("TMPDIR", own_folder, 1);
    }
    if (chdir("/usr") != 0 && chdir("/tmp") != 0) {
        return; /* the folder of before is as good */
    }
    fesetround(FE_UPWARD);
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(FE_DIVBYZERO);
}

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
    state_check(run, before, "copies, waits and maps");
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
    state_check(run, before, "many batches");
    if ((run->info->features & HAL_FEATURE_TIMESTAMPS) != 0) {
        case_ok(run, hal_point_get_elapsed(points[0], points[1], &nanoseconds), "a time");
        state_check(run, before, "hal_point_get_elapsed");
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
    state_check(run, before, "hal_buffer_import");
    const hal_gemm_description product = square_product(64);
    hal_kernel *kernel = NULL;
    if (hal_kernel_create_gemm(run->device, &product, &kernel, &workspace) == HAL_OK) {
        case_own_kernel(run, kernel);
    }
    state_check(run, before, "hal_kernel_create_gemm");
    hal_buffer *large = case_buffer(run, run->device, HAL_MEMORY_DEVICE, LONG);
    void *words = case_allocate(run, 1, LONG);
    case_ok(run, hal_queue_write(run->queue, large, 0, words, LONG), "hal_queue_write");
    case_ok(run, hal_queue_read(run->queue, large, 0, LONG, words), "hal_queue_read");
    state_check(run, before, "a large write and read");
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
    state_make();
    state_read(&before);
    pid_t child = own_child_start();
    case_ok(run, hal_device_open(run->selection, &run->device), "hal_device_open");
    own_child_check(run, child, "hal_device_open");
    state_check(run, &before, "hal_device_open");
    run->info = hal_device_get_info(run->device);
    run->queue = case_queue(run, run->device);
    state_check(run, &before, "hal_queue_create");
    hal_buffer *x = fractions_create(run);
    state_check(run, &before, "hal_buffer_create and hal_queue_write");
    child = own_child_start();
    hal_kernel *kernel = fraction_kernel(run, 64);
    own_child_check(run, child, "hal_kernel_create");
    state_check(run, &before, "hal_kernel_create");
    kernel_run(run, run->queue, kernel, 64, x, y);
    state_check(run, &before, "hal_queue_dispatch and hal_queue_read");
    more_steps(run, &before, x);
    seldom_steps(run, &before, x);
    case_release(run, 0);
    case_ok(run, hal_device_trim(run->device), "hal_device_trim");
    state_check(run, &before, "releases and hal_device_trim");
    hal_device_release(run->device);
    run->device = NULL;
    run->queue = NULL;
    state_check(run, &before, "hal_device_release");
    const char *left = own_folder_remove();
    case_check(run, left[0] == 0, "the temporary file %s was left", left);
}

/* Runs the steps, then puts the state back, then reports. */
static void with_state(case_run *run, case_function steps, const void *parameters)
{
    host_state before;
    state_read(&before);
    case_execute(run, steps, parameters);
    own_folder_remove();
    state_write(&before);
    if (own_locale) {
        freelocale(own_locale);
        own_locale = (locale_t)0;
    }
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

/* A thread with 128 KiB of stack submits and waits; where no driver compiles it creates the kernel
 * too. */
static void small_stacks(case_run *run, const void *parameters)
{
    static small_stack made;
    pthread_attr_t attributes;
    pthread_t thread;
    const size_t bytes = (size_t)128 << 10;
    made = (small_stack){.run = run,
                         .x = words_create(run, run->queue, COUNT, 1, 1),
                         .y = words_create(run, run->queue, COUNT, 0, 0),
                         .kernel = case_has_compiler(run) ? scale_kernel(run, run->device) : NULL};
    if (made.kernel) { /* a driver may finish its compilation with the first submit */
        scale_dispatch(run, run->queue, made.kernel, made.x, made.y, COUNT, 1, 1);
    }
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    pthread_attr_init(&attributes);
    const bool is_made = pthread_attr_setstacksize(&attributes, bytes) == 0 &&
                         pthread_create(&thread, &attributes, small_stack_thread, &made) == 0;
    pthread_attr_destroy(&attributes);
    if (!is_made) {
        case_unsupported(run, "the system makes no threads with 128 KiB of stack");
    }
    pthread_join(thread, NULL);
    case_end_reported(run);
}

/* ---- Signals that arrive meanwhile ---- */

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
    case_add(list, signals_arrive, NULL, 0, "process/signals");
}
