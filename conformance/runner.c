/* runner.c: cases in child processes; runner.h says who calls it. */
#include "runner.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "child.h"
#include "random.h"

#define MAX_JOBS 64u

/* What a child sends: when a case begins, and what came of it, followed by the detail's bytes. */
typedef enum message_kind { MESSAGE_BEGIN, MESSAGE_RESULT } message_kind;

typedef struct message {
    uint32_t kind;
    uint32_t index; /* in the results */
    uint32_t status;
    uint32_t detail_bytes;
    double seconds;
} message;

/* A group's place of work: results [next, end) are still to be run, `current` is under way. */
typedef struct group_job {
    child process;
    const runner_options *options;
    report_result *results;
    size_t next, end;
    size_t current; /* SIZE_MAX: none */
    double deadline;
    bool hung;
} group_job;

static void run_cases(void *user, int fd);
static bool open_fixture(case_run *run, const runner_options *options, char *why, size_t bytes);
static void close_fixture(case_run *run);
static void run_case(case_run *run, const runner_options *options, const case_entry *entry);
static void send_result(int fd, size_t index, const case_run *run, double seconds);
static bool start_next_group(group_job *job, const runner_options *options, report_result *results,
                             size_t count, size_t *next);
static bool restart(group_job *job);
static bool take_message(group_job *job);
static void end_of_child(group_job *job);
static void finish(group_job *job, size_t index, case_status status, const char *detail,
                   double seconds);
static int milliseconds_to_deadline(const group_job *jobs, unsigned count);
static double now(void);

/* Progress is counted over the whole run. */
static size_t done_count, all_count;

bool runner_run(const runner_options *options, report_result *results, size_t count)
{
    static group_job jobs[MAX_JOBS];
    const unsigned job_count = options->jobs < MAX_JOBS ? options->jobs : MAX_JOBS;
    size_t next = 0;
    done_count = 0;
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
            files[i] = (struct pollfd){.fd = runs ? jobs[i].process.fd : -1, .events = POLLIN};
            active += runs;
        }
        if (active == 0) {
            return true;
        }
        poll(files, job_count, milliseconds_to_deadline(jobs, job_count));
        for (unsigned i = 0; i < job_count; i++) {
            if (files[i].fd < 0) {
                continue;
            }
            if ((files[i].revents & (POLLIN | POLLHUP)) != 0) {
                if (!take_message(&jobs[i])) {
                    end_of_child(&jobs[i]);
                }
            } else if (now() > jobs[i].deadline) {
                jobs[i].hung = true;
                child_kill(&jobs[i].process);
                end_of_child(&jobs[i]);
            }
        }
    }
}

/* ---- In the child ---- */

static void run_cases(void *user, int fd)
{
    const group_job *job = user;
    case_run run = {0};
    char why[1024] = "";
    bool opened = open_fixture(&run, job->options, why, sizeof why);
    for (size_t i = job->next; i < job->end; i++) {
        const message begin = {.kind = MESSAGE_BEGIN, .index = (uint32_t)i};
        child_write(fd, &begin, sizeof begin);
        const double start = now();
        run.status = CASE_PASSED;
        run.detail[0] = 0;
        run.lacking = NULL;
        run.may_work = false;
        if (opened) {
            run_case(&run, job->options, job->results[i].entry);
        } else {
            case_fail(&run, "opening the device: %s", why);
        }
        send_result(fd, i, &run, now() - start);
        /* What a failed case left recorded must not reach the next one. */
        if (opened && run.status == CASE_FAILED) {
            close_fixture(&run);
            opened = open_fixture(&run, job->options, why, sizeof why);
        }
    }
    if (opened) {
        close_fixture(&run);
    }
}

static bool open_fixture(case_run *run, const runner_options *options, char *why, size_t bytes)
{
    run->selection = options->selection;
    bool opened = hal_device_open(options->selection, &run->device) == HAL_OK &&
                  hal_queue_create(run->device, &run->queue) == HAL_OK &&
                  ops_context_create(run->queue, &run->ops) == HAL_OK;
    if (!opened) {
        snprintf(why, bytes, "%s", hal_status_message());
        close_fixture(run);
        return false;
    }
    run->info = hal_device_get_info(run->device);
    return true;
}

static void close_fixture(case_run *run)
{
    ops_context_destroy(run->ops);
    hal_queue_destroy(run->queue);
    hal_device_release(run->device);
    run->ops = NULL;
    run->queue = NULL;
    run->device = NULL;
}

static void run_case(case_run *run, const runner_options *options, const case_entry *entry)
{
    run->name = entry->name;
    run->seed = random_seed_of(options->seed, entry->name);
    entry->function(run, entry->parameters);
    if (run->status == CASE_PASSED && run->lacking != NULL && !run->may_work) {
        case_fail(run, "the device does not claim %s, and no call answered UNSUPPORTED",
                  run->lacking);
    }
}

static void send_result(int fd, size_t index, const case_run *run, double seconds)
{
    const message result = {.kind = MESSAGE_RESULT,
                            .index = (uint32_t)index,
                            .status = (uint32_t)run->status,
                            .detail_bytes = (uint32_t)strlen(run->detail),
                            .seconds = seconds};
    child_write(fd, &result, sizeof result);
    child_write(fd, run->detail, result.detail_bytes);
}

/* ---- In the parent ---- */

static bool start_next_group(group_job *job, const runner_options *options, report_result *results,
                             size_t count, size_t *next)
{
    const char *group = results[*next].entry->group;
    *job = (group_job){.options = options, .results = results, .next = *next, .end = *next};
    while (job->end < count && strcmp(results[job->end].entry->group, group) == 0) {
        job->end++;
    }
    *next = job->end;
    return restart(job);
}

static bool restart(group_job *job)
{
    job->current = SIZE_MAX;
    job->hung = false;
    job->deadline = now() + job->options->seconds;
    if (!child_start(&job->process, run_cases, job)) {
        fprintf(stderr, "hal-conformance: cannot start a process: %s\n", strerror(errno));
        return false;
    }
    return true;
}

/* False when the child has no more to say. */
static bool take_message(group_job *job)
{
    message received;
    char detail[sizeof((case_run *)0)->detail];
    if (!child_read(job->process.fd, &received, sizeof received) || received.index >= job->end ||
        received.detail_bytes >= sizeof detail ||
        !child_read(job->process.fd, detail, received.detail_bytes)) {
        return false;
    }
    detail[received.detail_bytes] = 0;
    job->deadline = now() + job->options->seconds;
    if (received.kind == MESSAGE_BEGIN) {
        job->current = received.index;
    } else {
        job->current = SIZE_MAX;
        job->next = received.index + 1;
        finish(job, received.index, (case_status)received.status, detail, received.seconds);
    }
    return true;
}

/* The case under way takes the blame; behind the last one, that does, as for a leak at exit. */
static void end_of_child(group_job *job)
{
    char end[128], text[256];
    child_finish(&job->process, end, sizeof end);
    if (job->hung) {
        snprintf(text, sizeof text, "no answer for %u seconds", job->options->seconds);
    } else {
        snprintf(text, sizeof text, "the process %s", end[0] == 0 ? "ended early" : end);
    }
    if (job->current != SIZE_MAX) {
        finish(job, job->current, CASE_FAILED, text, 0.0);
        job->next = job->current + 1;
    } else if (job->next == job->end && (end[0] != 0 || job->hung)) {
        report_result *last = &job->results[job->end - 1];
        last->status = CASE_FAILED;
        free(last->detail);
        strncat(text, " after the group's last case", sizeof text - strlen(text) - 1);
        last->detail = strdup(text);
        report_progress(last, done_count, all_count, job->options->to_terminal);
    } else if (job->next < job->end) {
        finish(job, job->next, CASE_FAILED, text, 0.0);
        job->next++;
    }
    if (job->next < job->end) {
        restart(job);
    }
}

static void finish(group_job *job, size_t index, case_status status, const char *detail,
                   double seconds)
{
    report_result *result = &job->results[index];
    result->status = status;
    result->seconds = seconds;
    result->detail = strdup(detail);
    result->done = true;
    report_apply_expectations(result, job->options->expected);
    report_progress(result, ++done_count, all_count, job->options->to_terminal);
}

static int milliseconds_to_deadline(const group_job *jobs, unsigned count)
{
    double nearest = 1.0;
    for (unsigned i = 0; i < count; i++) {
        if (jobs[i].process.pid != 0 && jobs[i].deadline - now() < nearest) {
            nearest = jobs[i].deadline - now();
        }
    }
    return nearest < 0 ? 0 : (int)(nearest * 1000) + 1;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}
