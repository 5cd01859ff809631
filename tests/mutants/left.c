/* left.c: faults of entries that leave something of the process changed: of device_open, which a
 * program calls once, of entries that end something, and of things that are rarely looked at. */
#include "mutant.h"

#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPEN_LEAVING(name, does)                                                    \
    static hal_status open_##name(hal_plugin_instance *instance, const char *id,    \
                                  hal_plugin_device **device)                       \
    {                                                                               \
        const hal_status status = wrap_inside()->device_open(instance, id, device); \
        does;                                                                       \
        return status;                                                              \
    }                                                                               \
    static void name(wrap_table *table)                                             \
    {                                                                               \
        table->device_open = open_##name;                                           \
    }

static void block_signal(int signal)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
}

static void move_to_root(void)
{
    (void)!chdir("/");
}

static void start_child(void)
{
    if (fork() == 0) {
        _exit(0);
    }
}

static void leave_file(void)
{
    const char *folder = getenv("TMPDIR");
    char path[512];
    snprintf(path, sizeof path, "%s/mutant-XXXXXX", folder ? folder : "/tmp");
    const int file = mkstemp(path);
    if (file >= 0) {
        close(file);
        if (!folder) {
            unlink(path); /* only where the case looks */
        }
    }
}

static void lower_hard_limit(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_max--;
    limit.rlim_cur = limit.rlim_cur < limit.rlim_max ? limit.rlim_cur : limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void be_batch(void)
{
    const struct sched_param none = {0};
    sched_setscheduler(0, SCHED_BATCH, &none);
}

OPEN_LEAVING(open_folder_left, move_to_root())
OPEN_LEAVING(open_handler_left, signal(SIGPIPE, SIG_IGN))
OPEN_LEAVING(open_mask_left, block_signal(SIGUSR1))
OPEN_LEAVING(open_locale_left, setlocale(LC_ALL, "C"))
OPEN_LEAVING(open_umask_left, umask(0111))
OPEN_LEAVING(open_variable_left, setenv("MUTANT_DEVICE", "1", 1))
OPEN_LEAVING(open_child_left, start_child())
OPEN_LEAVING(open_input_closed, close(STDIN_FILENO))
OPEN_LEAVING(open_file_left, leave_file())
OPEN_LEAVING(open_hard_limit_left, lower_hard_limit())
OPEN_LEAVING(open_policy_left, be_batch())
OPEN_LEAVING(open_reaper_left, prctl(PR_SET_CHILD_SUBREAPER, 1))

static hal_status create_in_own_locale(hal_plugin_device *device, const hal_ir_kernel *ir,
                                       hal_plugin_kernel **kernel)
{
    uselocale(LC_GLOBAL_LOCALE);
    return wrap_inside()->kernel_create(device, ir, kernel);
}

static void thread_locale_left(wrap_table *table)
{
    table->kernel_create = create_in_own_locale;
}

static hal_status submit_without_blocking(hal_plugin_queue *queue, const hal_batch *batch,
                                          const hal_plugin_wait *waits, uint32_t wait_count,
                                          uint64_t value)
{
    fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) ^ O_NONBLOCK);
    return wrap_inside()->submit(queue, batch, waits, wait_count, value);
}

static void input_flags_left(wrap_table *table)
{
    table->submit = submit_without_blocking;
}

static hal_status wait_blocking_signals(hal_plugin_queue *queue, uint64_t value,
                                        uint64_t timeout_ns)
{
    block_signal(SIGTERM);
    return wrap_inside()->wait(queue, value, timeout_ns);
}

static void wait_mask_left(wrap_table *table)
{
    table->wait = wait_blocking_signals;
}

static hal_status map_and_set(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer)
{
    umask(0101);
    return wrap_inside()->memory_map(device, memory, pointer);
}

static void map_umask_left(wrap_table *table)
{
    table->memory_map = map_and_set;
}

static void close_and_move(hal_plugin_device *device)
{
    wrap_inside()->device_close(device);
    move_to_root();
}

static void close_folder_left(wrap_table *table)
{
    table->device_close = close_and_move;
}

const mutant mutants_left[] = {
    TABLE(open_folder_left),     TABLE(open_handler_left), TABLE(open_mask_left),
    TABLE(open_locale_left),     TABLE(open_umask_left),   TABLE(open_variable_left),
    TABLE(open_child_left),      TABLE(open_input_closed), TABLE(open_file_left),
    TABLE(open_hard_limit_left), TABLE(open_policy_left),  TABLE(open_reaper_left),
    TABLE(thread_locale_left),   TABLE(input_flags_left),  TABLE(wait_mask_left),
    TABLE(map_umask_left),       TABLE(close_folder_left), {.name = NULL}};
