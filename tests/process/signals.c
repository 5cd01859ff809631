/* Promise 26: signal handlers, the mask, the alternate stack, the affinity, the locale and the
 * working folder are after the opening of a device, work and its end as they were before, drivers
 * included, and the program's signals arrive. */
#include "process.h"

#include <limits.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { SIGNALS = 64, RESTORER = 0x04000000 /* which the C library adds */ };

typedef struct process_view {
    struct sigaction handlers[SIGNALS + 1];
    sigset_t mask;
    stack_t alternate;
    char locale[256], folder[PATH_MAX];
    cpu_set_t processors;
} process_view;

static volatile sig_atomic_t arrived;

static void note(int signal)
{
    (void)signal;
    arrived++;
}

static void view_take(process_view *view)
{
    memset(view, 0, sizeof *view);
    for (int i = 1; i <= SIGNALS; i++) {
        sigaction(i, NULL, &view->handlers[i]);
    }
    sigprocmask(SIG_BLOCK, NULL, &view->mask);
    sigaltstack(NULL, &view->alternate);
    snprintf(view->locale, sizeof view->locale, "%s", setlocale(LC_ALL, NULL));
    sched_getaffinity(0, sizeof view->processors, &view->processors);
    if (!getcwd(view->folder, sizeof view->folder)) {
        view->folder[0] = 0;
    }
}

static void view_compare(const process_view *before, const char *when)
{
    process_view now;
    view_take(&now);
    for (int i = 1; i <= SIGNALS; i++) {
        if (now.handlers[i].sa_handler != before->handlers[i].sa_handler ||
            ((now.handlers[i].sa_flags ^ before->handlers[i].sa_flags) & ~RESTORER) != 0) {
            process_fail("%s: another handler of signal %d", when, i);
        }
        if (sigismember(&now.mask, i) != sigismember(&before->mask, i)) {
            process_fail("%s: signal %d is%s blocked", when, i,
                         sigismember(&now.mask, i) ? "" : " not");
        }
    }
    if (now.alternate.ss_sp != before->alternate.ss_sp ||
        now.alternate.ss_flags != before->alternate.ss_flags) {
        process_fail("%s: another alternate stack", when);
    }
    if (!CPU_EQUAL(&now.processors, &before->processors)) {
        process_fail("%s: another affinity", when);
    }
    if (strcmp(now.locale, before->locale) != 0 || strcmp(now.folder, before->folder) != 0) {
        process_fail("%s: locale %s, folder %s", when, now.locale, now.folder);
    }
}

int main(void)
{
    static const int own[] = {SIGUSR1, SIGUSR2, SIGTERM, SIGHUP, SIGINT, SIGCHLD, SIGPIPE};
    enum { OWN = sizeof own / sizeof own[0] };
    for (int i = 0; i < OWN; i++) {
        sigaction(own[i], &(struct sigaction){.sa_handler = note}, NULL);
    }
    setenv("HAL_CACHE_DIR", "off", 1);
    process_view before;
    view_take(&before);
    process_device opened = process_open();
    view_compare(&before, "open");
    for (int i = 0; i < PROCESS_WORKS; i++) {
        if (!process_has_work(i)) {
            continue;
        }
        process_work(&opened, i, 1000);
        view_compare(&before, process_work_name(i));
    }
    for (int i = 0; i < OWN; i++) {
        arrived = 0;
        raise(own[i]);
        if (arrived != 1) {
            process_fail("signal %d did not arrive", own[i]);
        }
    }
    process_close(&opened);
    view_compare(&before, "close");
    return process_end();
}
