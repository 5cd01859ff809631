/* inherited.c: what children and signal handlers of the program meet of a plugin: exec closes its
 * descriptors, and its threads take no signals. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "case/cases.h"
#include "hal/direct.h"
#include "hal/fixture.h"

enum { MOST_FILES = 1024 };

/* Work on several queues of hal's device: plugins may start threads when they need them. */
static void device_use(case_run *run)
{
    enum { COUNT = 1 << 20 };
    hal_kernel *kernel = scale_kernel(run, run->device);
    for (uint32_t i = 0; i < 3; i++) {
        hal_queue *queue = case_queue(run, run->device);
        hal_buffer *x = words_create(run, queue, COUNT, i, 1);
        hal_buffer *y = words_create(run, queue, COUNT, 0, 0);
        scale_dispatch(run, queue, kernel, x, y, COUNT, 3, 1);
        words_check(run, queue, y, 64, 3 * i + 1, 3, "a kernel's result");
    }
}

/* Of descriptors that come with a second instance. */
static void descriptors(case_run *run, const void *parameters)
{
    bool was_open[MOST_FILES];
    if (case_has_compiler(run)) {
        case_unsupported(run, "the driver opens descriptors, which the plugin does not control");
    }
    for (int i = 0; i < MOST_FILES; i++) {
        was_open[i] = fcntl(i, F_GETFD) >= 0;
    }
    direct *d = direct_opened(run);
    case_ok(run, direct_submit(d, 0, 1, DIRECT_FILL), "submit");
    case_ok(run, direct_wait(d, 0, DIRECT_LIMIT_NS), "wait");
    for (int i = 0; i < MOST_FILES; i++) {
        const int flags = fcntl(i, F_GETFD);
        case_check(run, was_open[i] || flags < 0 || (flags & FD_CLOEXEC) != 0,
                   "descriptor %d, which the plugin has opened, would stay open in programs that "
                   "the process starts: it has no FD_CLOEXEC",
                   i);
    }
}

/* The signals that a thread blocks: bit i - 1 is signal i. False where the thread is not there. */
static bool blocked_signals(const char *thread, uint64_t *blocked)
{
    char path[300], line[256];
    bool is_told = false;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", thread);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "SigBlk:", 7) == 0) {
            *blocked = strtoull(line + 7, NULL, 16);
            is_told = true;
        }
    }
    if (file) {
        fclose(file);
    }
    return is_told;
}

/* Of all threads except this one: a handler of the program would run on one of them, with its stack
 * and its locks. */
static void threads(case_run *run, const void *parameters)
{
    static const int handled[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGUSR1,
                                  SIGUSR2, SIGALRM, SIGCHLD, SIGIO,   SIGPROF};
    char own[32];
    if (case_has_compiler(run)) {
        case_unsupported(run, "the driver starts threads, which the plugin does not control");
    }
    device_use(run);
    snprintf(own, sizeof own, "%ld", (long)syscall(SYS_gettid));
    DIR *folder = opendir("/proc/self/task");
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        uint64_t blocked = 0;
        const bool is_other = entry->d_name[0] != '.' && strcmp(entry->d_name, own) != 0;
        if (!is_other || !blocked_signals(entry->d_name, &blocked)) {
            continue; /* it may have ended */
        }
        for (size_t i = 0; i < sizeof handled / sizeof handled[0]; i++) {
            case_check(run, (blocked >> (handled[i] - 1) & 1) != 0,
                       "a thread that the program did not start takes signal %d: it blocks %#llx",
                       handled[i], (unsigned long long)blocked);
        }
    }
    if (folder) {
        closedir(folder);
    }
}

void cases_hal_inherited(case_list *list)
{
    case_add(list, descriptors, NULL, 0, "process/descriptors");
    case_add(list, threads, NULL, 0, "process/threads");
}
