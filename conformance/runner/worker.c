/* worker.c: cases as they run in a child process. */
#include "runner/worker.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "case/child.h"
#include "case/provoke.h"
#include "runner/finding.h"

/* Limit of a group's time for shrinking, in the limits of one case. */
#define SHRUNK_CASES_OF_A_GROUP 4

typedef struct worker {
    case_run run;
    const runner_options *options;
    int fd;
    pid_t owner; /* the process that may send */
    bool opened;
    double open_seconds;
    bool alone;     /* the case opens what it needs */
    bool is_late;   /* the case needs its own process and has none */
    bool found;     /* the case failed by a finding, which is reported once: it cannot be shrunk */
    char why[1024]; /* the device is not open */
} worker;

/* Whether a device was opened in this process before: hal reads its layers then. */
static bool was_used;

static void close_fixture(case_run *run)
{
    ops_context_destroy(run->ops);
    hal_queue_destroy(run->queue);
    hal_device_release(run->device);
    run->ops = NULL;
    run->queue = NULL;
    run->device = NULL;
}

static bool open_fixture(worker *w)
{
    case_run *run = &w->run;
    const double begin = child_now();
    run->selection = w->options->selection;
    w->opened = hal_device_open(run->selection, &run->device) == HAL_OK &&
                hal_queue_create(run->device, &run->queue) == HAL_OK &&
                ops_context_create(run->queue, &run->ops) == HAL_OK;
    if (!w->opened) {
        snprintf(w->why, sizeof w->why, "%s", hal_status_message());
        close_fixture(run);
        return false;
    }
    run->info = hal_device_get_info(run->device);
    w->open_seconds = child_now() - begin;
    return true;
}

/* Adds the fault layer to the layers that the user asked for. */
static void request_faults(const char *faults)
{
    char layers[256];
    const char *others = getenv("HAL_LAYERS");
    snprintf(layers, sizeof layers, "%s%sfault", !others ? "" : others,
             !others || others[0] == 0 ? "" : ",");
    setenv("HAL_LAYERS", layers, 1);
    setenv("HAL_FAULT", faults, 1);
}

/* A process that a plugin forked, and that returned from the call, reports that and exits. */
static void send_message(const worker *w, message sent, const char *detail)
{
    uint8_t bytes[sizeof sent + sizeof((case_run *)0)->detail];
    const bool copied = getpid() != w->owner;
    if (copied) {
        sent.kind = MESSAGE_FORKED;
        detail = "";
    }
    sent.detail_bytes = (uint32_t)strlen(detail);
    memcpy(bytes, &sent, sizeof sent);
    memcpy(bytes + sizeof sent, detail, sent.detail_bytes);
    child_write(w->fd, bytes, sizeof sent + sent.detail_bytes);
    if (copied) {
        _exit(0);
    }
}

/* A report of the worker itself, after the case has ended. */
HAL_PRINTF(2, 3) static void fail_run(case_run *run, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    run->status = CASE_FAILED;
    vsnprintf(run->detail, sizeof run->detail, format, arguments);
    va_end(arguments);
}

static void run_case(case_run *run, const runner_options *options, const case_entry *entry)
{
    run->name = entry->name;
    run->seed = case_seed_of(entry, options->seed);
    /* Half of the cases have general kernels, which have the same bits. */
    ops_context_set_kernels(run->ops, run->seed & 1 ? OPS_KERNELS_GENERAL : OPS_KERNELS_SPECIAL);
    if (case_execute(run, entry->function, entry->parameters) && run->lacking && !run->may_work) {
        fail_run(run,
                 "the device does not claim %s, but does it: no call answered UNSUPPORTED. Claim "
                 "it in hal_device_info, or refuse it",
                 run->lacking);
    }
    case_release(run, 0);
}

static void output_check(case_run *run)
{
    char printed[256];
    child_printed(printed, sizeof printed);
    if (printed[0] != 0 && run->status != CASE_FAILED) {
        fail_run(run,
                 "something was printed to standard output, which belongs to the program; a plugin "
                 "uses the host's log: %s",
                 printed);
    }
}

/* The fault may be in work of an earlier case. */
static bool finding_check(case_run *run, bool is_alone)
{
    char words[1024];
    unsigned provoked;
    const bool found = finding_take(words, sizeof words, &provoked);
    const unsigned missing = provoke_mark_of(run->name).must & provoke_checks_on() & ~provoked;
    if (is_alone && run->status == CASE_PASSED && !found && missing) {
        fail_run(run,
                 "expected a finding of HAL_SANITIZE=%s, which the case provokes "
                 "(case/provoke.c), got none",
                 missing & PROVOKE_MATH ? "math" : "nan");
        return true;
    }
    if (!found || run->status == CASE_FAILED) {
        return false;
    }
    fail_run(run, "%s", words);
    return true;
}

static void run_and_send(worker *w, const case_entry *entry, size_t index, message_kind kind)
{
    case_run *run = &w->run;
    const double start = child_now();
    run->status = CASE_PASSED;
    run->detail[0] = 0;
    run->lacking = NULL;
    run->may_work = false;
    finding_allow(provoke_mark_of(entry->name).may);
    if (w->opened || w->alone) {
        run->selection = w->options->selection;
        run_case(run, w->options, entry);
    } else if (w->is_late) {
        fail_run(run, "this case needs a separate process: choose it alone");
        run->status = CASE_UNSUPPORTED;
    } else {
        fail_run(run, "opening the device: %s", w->why);
    }
    output_check(run);
    if (entry->level == CASE_LEVEL_SANITIZE) {
        finding_listen(); /* the case has judged them */
    } else {
        w->found = finding_check(run, !w->options->in_process);
    }
    const message sent = {.kind = kind,
                          .index = (uint32_t)index,
                          .status = (uint32_t)run->status,
                          .seconds = child_now() - start};
    send_message(w, sent, run->detail);
}

/* Commands recorded by a failed case must not reach the next one. */
static void reopen_after_failure(worker *w)
{
    close_fixture(&w->run);
    open_fixture(w);
}

/* Whether the process has to end, since a driver opens no device after one was lost. */
static bool ends_early(const worker *w, size_t index)
{
    if (w->opened || w->options->in_process) {
        return false;
    }
    send_message(w, (message){.kind = MESSAGE_ANEW, .index = (uint32_t)index}, "");
    return true;
}

/* False when the process has to end. */
static bool shrink_case(worker *w, worker_task *task)
{
    char name[CASE_NAME_BYTES];
    case_entry tried = *task->results[task->shrunk].entry;
    tried.name = name;
    tried.parameters = task->search.tried;
    while (child_now() < task->shrink_until && shrink_next(&task->search)) {
        send_message(w, (message){.kind = MESSAGE_TRY, .index = (uint32_t)task->shrunk}, "");
        tried.family->print(task->search.tried, w->options->seed, name, sizeof name);
        run_and_send(w, &tried, task->shrunk, MESSAGE_TRIED);
        const bool failed = w->run.status == CASE_FAILED;
        if (failed) {
            reopen_after_failure(w);
        }
        shrink_tell(&task->search, failed);
        if (failed && ends_early(w, task->shrunk)) {
            return false;
        }
    }
    worker_end_shrink(task);
    return true;
}

void worker_run(void *user, int fd)
{
    worker_task *task = user;
    worker *w = calloc(1, sizeof *w);
    if (!w) {
        _exit(1);
    }
    w->options = task->options;
    w->fd = fd;
    w->owner = getpid();
    finding_listen();
    if (task->next == task->end || !task->results[task->next].entry->faults) {
        open_fixture(w);
    } else if (was_used) {
        w->is_late = true;
    } else {
        if (task->results[task->next].entry->faults[0] != 0) {
            request_faults(task->results[task->next].entry->faults);
        }
        w->alone = true;
    }
    was_used = true;
    bool goes_on = !task->search.family || shrink_case(w, task);
    for (size_t i = task->next; i < task->end && goes_on; i++) {
        send_message(
            w, (message){.kind = MESSAGE_BEGIN, .index = (uint32_t)i, .seconds = w->open_seconds},
            "");
        run_and_send(w, task->results[i].entry, i, MESSAGE_RESULT);
        if (w->opened && w->run.status == CASE_FAILED) {
            reopen_after_failure(w);
            goes_on = !ends_early(w, i) &&
                      (w->found || !worker_begin_shrink(task, i) || shrink_case(w, task));
        }
    }
    if (w->opened) {
        close_fixture(&w->run);
    }
    free(w);
}

bool worker_begin_shrink(worker_task *task, size_t index)
{
    const case_entry *entry = task->results[index].entry;
    const double most = task->options->shrink_seconds;
    const double left = SHRUNK_CASES_OF_A_GROUP * most - task->shrink_spent;
    if (!entry->family || left <= 0.0 || expect_find(task->options->expected, entry->name)) {
        return false;
    }
    task->shrunk = index;
    task->shrink_began = child_now();
    task->shrink_until = task->shrink_began + (left < most ? left : most);
    shrink_begin(&task->search, entry);
    return true;
}

void worker_end_shrink(worker_task *task)
{
    if (task->search.family) {
        task->shrink_spent += child_now() - task->shrink_began;
        task->search.family = NULL;
    }
}
