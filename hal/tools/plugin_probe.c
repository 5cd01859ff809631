/* Plugins in a child process, see plugin_probe.h. */
#include "plugin_probe.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SECONDS = 60, MOST_PLUGINS = 64 };

/* What the child tells: the file that it is about to call, and that it came to its end. */
typedef struct probe_page {
    bool has_ended;
    char path[4096];
} probe_page;

/* Follows the lines that hal logs before it calls a plugin. */
static void line_follow(void *user, hal_log_level level, const char *message)
{
    static const char opening[] = "opening plugin ";
    probe_page *page = user;
    (void)level;
    if (strncmp(message, opening, sizeof opening - 1) == 0) {
        snprintf(page->path, sizeof page->path, "%s", message + sizeof opening - 1);
    }
}

static _Noreturn void child_run(probe_page *page)
{
    hal_registry_report *report = NULL;
    hal_log_set_callback(line_follow, page, HAL_LOG_DEBUG);
    hal_registry_report_create(&report);
    page->has_ended = true;
    _exit(0); /* without the destructors of drivers, which belong to no report */
}

/* Waits for the child, which is killed after its time; how it ended. */
static void child_wait(pid_t child, char *words, size_t bytes)
{
    const struct timespec pause = {0, 1000000};
    int state = 0;
    for (int64_t left = (int64_t)SECONDS * 1000; waitpid(child, &state, WNOHANG) == 0; left--) {
        if (left == 0) {
            kill(child, SIGKILL);
            waitpid(child, &state, 0);
            snprintf(words, bytes, "gave no answer for %d seconds", SECONDS);
            return;
        }
        nanosleep(&pause, NULL);
    }
    if (WIFSIGNALED(state)) {
        snprintf(words, bytes, "crashed (signal %d, %s)", WTERMSIG(state),
                 strsignal(WTERMSIG(state)));
    } else {
        snprintf(words, bytes, "ended the process with status %d", WEXITSTATUS(state));
    }
}

static hal_status file_exclude(const char *path, const char *words)
{
    char message[512];
    snprintf(message, sizeof message,
             "plugin %.200s: %s when it was loaded or asked for its devices; remove it, or update "
             "it or its driver",
             path, words);
    return hal_registry_exclude(path, message);
}

hal_status plugin_probe(void)
{
    probe_page *page =
        mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    hal_status status = page == MAP_FAILED ? HAL_ERROR_IO : HAL_OK;
    for (int i = 0; status == HAL_OK && i < MOST_PLUGINS; i++) {
        char words[128] = "";
        memset(page, 0, sizeof *page);
        fflush(NULL);
        const pid_t child = fork();
        if (child < 0) {
            status = HAL_ERROR_IO;
            break;
        }
        if (child == 0) {
            child_run(page);
        }
        child_wait(child, words, sizeof words);
        if (page->has_ended || page->path[0] == 0) {
            break; /* to its end; or it failed before any plugin, as this process will */
        }
        status = file_exclude(page->path, words);
    }
    if (page != MAP_FAILED) {
        munmap(page, sizeof *page);
    }
    return status;
}
