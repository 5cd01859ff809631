/* runner.c: the processes that cases run in. */
#include "runner/runner.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "case/child.h"
#include "case/provoke.h"
#include "report/contract.h"
#include "runner/worker.h"

#define MAX_JOBS 64u

/* A device that takes so long to open is opened once for several groups: most of the time of a run
 * would be openings. Each group still ends with its look for leaks, and after a failed case the
 * device is opened anew. */
#define SLOW_OPEN_SECONDS 0.5
#define GROUPS_OF_SLOW 8u

/* A group's place of work. */
typedef struct group_job {
    child process;
    worker_task task;
    report_result *results;
    size_t first;   /* of the group's */
    size_t current; /* the running case; SIZE_MAX: none */
    double began;   /* of the running case */
    double deadline;
    bool trying; /* the sizes in task.search.tried are being run */
    bool closed; /* the child has no more to say and is about to end */
    bool hung;
    bool anew; /* the child ends for another one to go on */
} group_job;

/* Progress is counted over the whole run. */
static size_t done_count, all_count, hung_count;
static double open_seconds; /* of the process that opened the device last */

/* The detail of a failure with the sentences of the contract that it violates. */
static char *detail_of_failure(const char *case_name, const char *detail)
{
    char sentences[768], text[sizeof sentences + sizeof((case_run *)0)->detail];
    contract_sentences(case_name, sentences, sizeof sentences);
    snprintf(text, sizeof text, "%s%s%s", detail, sentences[0] != 0 ? "; docs/contract.md: " : "",
             sentences);
    return strdup(text);
}

static void finish(group_job *job, size_t index, case_status status, const char *detail,
                   double seconds)
{
    report_result *result = &job->results[index];
    if (!result->done) { /* else it was found guilty while it ran */
        result->status = status;
        result->detail =
            status == CASE_FAILED ? detail_of_failure(result->entry->name, detail) : strdup(detail);
    }
    result->seconds = seconds;
    result->done = true;
    report_apply_expectations(result, job->task.options->expected);
    report_progress(result, ++done_count, all_count, job->task.options->to_terminal);
}

static void take_result(group_job *job, const message *received, const char *detail)
{
    job->current = SIZE_MAX;
    job->task.next = received->index + 1;
    finish(job, received->index, (case_status)received->status, detail, received->seconds);
    if (received->status == CASE_FAILED) {
        worker_begin_shrink(&job->task, received->index);
    }
}

/* Keeps the smallest sizes so far with which the case failed. */
static void take_tried(group_job *job, bool failed, const char *detail)
{
    worker_task *task = &job->task;
    char name[CASE_NAME_BYTES];
    if (!job->trying) {
        return;
    }
    job->trying = false;
    shrink_tell(&task->search, failed);
    if (failed) {
        report_result *result = &job->results[task->shrunk];
        task->search.family->print(task->search.smallest, task->options->seed, name, sizeof name);
        free(result->smallest);
        free(result->smallest_detail);
        result->smallest = strdup(name);
        result->smallest_detail = strdup(detail);
    }
}

static void change_to_failed(group_job *job, size_t index, const char *detail)
{
    report_result *result = &job->results[index];
    if (result->done && result->status == CASE_FAILED) {
        return;
    }
    free(result->detail);
    result->detail = detail_of_failure(result->entry->name, detail);
    result->status = CASE_FAILED;
    result->done = true;
    if (index != job->current) {
        report_progress(result, done_count, all_count, job->task.options->to_terminal);
    }
}

static void blame_for_fork(group_job *job)
{
    const size_t last = job->task.next == job->first ? job->first : job->task.next - 1;
    const size_t guilty = job->current != SIZE_MAX ? job->current : last;
    change_to_failed(job, guilty,
                     "the process was forked, and the copy came back from the call: a plugin that "
                     "starts a process has to exec in it or end it");
}

/* False when the child has no more to say. */
static bool take_message(group_job *job)
{
    message received;
    char detail[sizeof((case_run *)0)->detail];
    worker_task *task = &job->task;
    if (!child_read(job->process.fd, &received, sizeof received) || received.index >= task->end ||
        received.detail_bytes >= sizeof detail ||
        !child_read(job->process.fd, detail, received.detail_bytes)) {
        return false;
    }
    detail[received.detail_bytes] = 0;
    job->deadline = child_now() + task->options->seconds;
    switch (received.kind) {
    case MESSAGE_BEGIN:
        worker_end_shrink(task);
        job->current = received.index;
        job->began = child_now();
        open_seconds = received.seconds > 0 ? received.seconds : open_seconds;
        return true;
    case MESSAGE_RESULT:
        take_result(job, &received, detail);
        return true;
    case MESSAGE_TRY:
        job->trying = task->search.family && shrink_next(&task->search);
        if (task->shrink_until + 1.0 < job->deadline) {
            job->deadline = task->shrink_until + 1.0;
        }
        return true;
    case MESSAGE_TRIED:
        take_tried(job, received.status == CASE_FAILED, detail);
        return true;
    case MESSAGE_ANEW:
        job->anew = true;
        return true;
    case MESSAGE_FORKED:
        blame_for_fork(job);
        return true;
    default:
        return false;
    }
}

/* The messages go to a file, and are read when the group is over. */
static bool run_here(group_job *job)
{
    job->process = (child){.fd = child_unnamed_file()};
    if (job->process.fd < 0) {
        fprintf(stderr, "hal-conformance: no place for messages: %s\n", strerror(errno));
        return false;
    }
    worker_task copy = job->task;
    worker_run(&copy, job->process.fd);
    lseek(job->process.fd, 0, SEEK_SET);
    while (take_message(job)) {
    }
    child_close(&job->process);
    return true;
}

static bool restart(group_job *job)
{
    job->current = SIZE_MAX;
    job->hung = false;
    job->anew = false;
    job->closed = false;
    job->trying = false;
    job->deadline = child_now() + job->task.options->seconds;
    if (job->task.options->in_process) {
        return run_here(job);
    }
    if (!child_start(&job->process, worker_run, &job->task)) {
        fprintf(stderr, "hal-conformance: cannot start a process: %s\n", strerror(errno));
        return false;
    }
    return true;
}

/* A place is reported once in a process, so a case that has to have a finding is alone there. */
static bool case_is_alone(const case_entry *entry)
{
    return entry->faults || (provoke_mark_of(entry->name).must & provoke_checks_on()) != 0;
}

static bool start_next_group(group_job *job, const runner_options *options, report_result *results,
                             size_t count, size_t *next)
{
    const char *group = results[*next].entry->group;
    const unsigned most = open_seconds < SLOW_OPEN_SECONDS ? 1 : GROUPS_OF_SLOW;
    unsigned groups = 1;
    *job = (group_job){.results = results, .first = *next};
    job->task = (worker_task){.options = options, .results = results, .next = *next, .end = *next};
    do {
        job->task.end++;
        if (job->task.end < count && strcmp(results[job->task.end].entry->group, group) != 0) {
            group = results[job->task.end].entry->group;
            groups++;
        }
    } while (job->task.end < count && groups <= most &&
             !case_is_alone(results[job->task.end].entry) &&
             !case_is_alone(results[job->task.end - 1].entry));
    *next = job->task.end;
    return restart(job);
}

static int milliseconds_to_look(const group_job *jobs, unsigned count)
{
    double nearest = 0.2;
    for (unsigned i = 0; i < count; i++) {
        if (jobs[i].process.pid != 0) {
            const double left = jobs[i].closed ? 0.005 : jobs[i].deadline - child_now();
            nearest = left < nearest ? left : nearest;
        }
    }
    return nearest < 0 ? 0 : (int)(nearest * 1000) + 1;
}

/* The running case fails; after the last one, the last case (for example a leak at exit). */
static void end_of_child(group_job *job, const char *end)
{
    worker_task *task = &job->task;
    char text[320];
    if (job->hung) {
        snprintf(text, sizeof text, "no answer for %u seconds", task->options->seconds);
        hung_count += !job->trying;
    } else {
        snprintf(text, sizeof text, "the process %s",
                 end[0] == 0 ? "ended early with status 0: something called exit" : end);
    }
    if (job->trying && !job->hung) {
        take_tried(job, true, text);
    } else if (job->trying) {
        worker_end_shrink(task);
    } else if (job->anew && !job->hung) {
        job->current = SIZE_MAX; /* all that it ran has a result */
    } else if (job->current != SIZE_MAX) {
        finish(job, job->current, CASE_FAILED, text, child_now() - job->began);
        task->next = job->current + 1;
        if (job->hung || !worker_begin_shrink(task, job->current)) {
            worker_end_shrink(task);
        }
    } else if (task->next == task->end) {
        worker_end_shrink(task);
        if (end[0] != 0 || job->hung) {
            strncat(text, " after the group's last case", sizeof text - strlen(text) - 1);
            change_to_failed(job, task->end - 1, text);
        }
    } else {
        worker_end_shrink(task);
        finish(job, task->next, CASE_FAILED, text, 0.0);
        task->next++;
    }
    if (task->next < task->end || task->search.family) {
        restart(job);
    }
}

/* The run is over before all cases ran: the device does not answer. */
static bool has_enough_hung(const runner_options *options)
{
    return options->most_hung > 0 && hung_count >= options->most_hung;
}

static void kill_all(group_job *jobs, unsigned count)
{
    char end[192];
    for (unsigned i = 0; i < count; i++) {
        if (jobs[i].process.pid != 0) {
            child_kill(&jobs[i].process);
            child_finish(&jobs[i].process, 1.0, end, sizeof end);
        }
    }
}

static void take_what_is_left(group_job *job)
{
    struct pollfd file = {.fd = job->process.fd, .events = POLLIN};
    while (!job->closed && poll(&file, 1, 0) == 1 && (file.revents & POLLIN) != 0) {
        job->closed = !take_message(job);
    }
}

/* The end of a child is its exit, not that of the pipe, which a process that the plugin started
 * may hold open; and a child whose pipe is closed may still hang. */
static void look_after(group_job *job, short events)
{
    char end[192];
    if ((events & (POLLIN | POLLHUP)) != 0) {
        job->closed = !take_message(job);
        return;
    }
    if (child_now() > job->deadline) {
        job->hung = true;
        child_kill(&job->process);
        child_finish(&job->process, 1.0, end, sizeof end);
        end_of_child(job, end);
        return;
    }
    if (child_has_ended(&job->process, end, sizeof end)) {
        take_what_is_left(job);
        child_close(&job->process);
        end_of_child(job, end);
    }
}

bool runner_run(const runner_options *options, report_result *results, size_t count)
{
    static group_job jobs[MAX_JOBS];
    const unsigned job_count = options->jobs < MAX_JOBS ? options->jobs : MAX_JOBS;
    size_t next = 0;
    done_count = 0;
    hung_count = 0;
    open_seconds = 0;
    all_count = count;
    memset(jobs, 0, sizeof jobs);
    for (;;) {
        struct pollfd files[MAX_JOBS];
        unsigned active = 0;
        for (unsigned i = 0; i < job_count; i++) {
            if (jobs[i].process.pid == 0 && next < count &&
                !start_next_group(&jobs[i], options, results, count, &next)) {
                return false;
            }
            const bool runs = jobs[i].process.pid != 0;
            const bool talks = runs && !jobs[i].closed;
            files[i] = (struct pollfd){.fd = talks ? jobs[i].process.fd : -1, .events = POLLIN};
            active += runs;
        }
        if (active == 0 && next == count) {
            return true;
        }
        if (has_enough_hung(options)) {
            kill_all(jobs, job_count);
            return true;
        }
        if (active == 0) {
            continue; /* a group ran here, and is over */
        }
        poll(files, job_count, milliseconds_to_look(jobs, job_count));
        for (unsigned i = 0; i < job_count; i++) {
            if (jobs[i].process.pid != 0) {
                look_after(&jobs[i], files[i].fd < 0 ? 0 : files[i].revents);
            }
        }
    }
}
