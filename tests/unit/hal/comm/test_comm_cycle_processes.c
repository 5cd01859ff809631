/* Ranks of processes that take the steps of two groups in different order: the validate layer of
 * each one reports the cycle with all processes; where a process is only slow, none does. */
#include "mock_fixture.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_PROCESSES = 3, LIMIT_SECONDS = 60, FINDING_BYTES = 2048, SLOW_NS = 400000000 };

static char finding[FINDING_BYTES];

/* Groups of two processes; process p takes the steps of groups `takes[p]`. */
typedef struct plan {
    int processes, groups;
    int members[MAX_PROCESSES][2]; /* of a group */
    int takes[MAX_PROCESSES][2];
    int waits_between; /* process that ends its first step before it records the second, or -1 */
    int sleeps;        /* process that sleeps before its steps, or -1 */
    bool wait_always;  /* all do */
    hal_comm_id ids[MAX_PROCESSES];
} plan;

static void hear(void *user, hal_log_level level, const char *message)
{
    if (strstr(message, "a cycle of waits")) {
        snprintf(finding, sizeof finding, "%s", message);
    }
}

static void all_reduce(hal_queue *queue, hal_comm *comm, hal_buffer *buffer)
{
    static const hal_collective what = {.kind = HAL_COLLECTIVE_ALL_REDUCE, .type = HAL_TYPE_U32};
    const hal_range whole = {buffer, 0, HAL_WHOLE};
    assert_ok(hal_queue_collective(queue, comm, &what, whole, whole, 16));
    assert_ok(hal_queue_flush(queue, NULL));
}

static bool has_ended(int pipe_end)
{
    struct pollfd end = {.fd = pipe_end, .events = POLLIN};
    return poll(&end, 1, 0) > 0;
}

/* One process: sends what it found, or an empty text when its work is complete, and goes on to wait
 * until `until` is closed, so that the others find their cycle too. */
static void process_run(const plan *is, int p, int send, int until)
{
    hal_device *device = mock_open("mock");
    hal_queue *queue = mock_queue(device);
    hal_buffer *buffer = mock_buffer(device, 64);
    hal_comm *comms[MAX_PROCESSES] = {NULL};
    for (int g = 0; g < is->groups; g++) {
        const uint32_t rank = is->members[g][1] == p;
        if (rank == 1 || is->members[g][0] == p) {
            const hal_comm_options options = {.id = is->ids[g], .rank = rank, .count = 2};
            assert_ok(hal_comm_create(device, &options, &comms[g]));
        }
    }
    assert_ok(hal_queue_fill(queue, (hal_range){buffer, 0, HAL_WHOLE}, 1));
    usleep(is->sleeps == p ? SLOW_NS / 1000 : 0);
    hal_status status = HAL_OK;
    all_reduce(queue, comms[is->takes[p][0]], buffer);
    if (is->waits_between == p) {
        assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
        usleep(SLOW_NS / 1000);
    }
    while (is->wait_always && !finding[0] &&
           (status = hal_queue_wait(queue, 1000000000)) == HAL_ERROR_TIMEOUT) {
    }
    if (!finding[0]) {
        all_reduce(queue, comms[is->takes[p][1]], buffer);
    }
    do {
        status = hal_queue_wait(queue, 1000000000);
    } while (status == HAL_ERROR_TIMEOUT && !finding[0]);
    if (write(send, finding, FINDING_BYTES) != FINDING_BYTES) {
        _exit(1);
    }
    while (!has_ended(until)) {
        hal_queue_wait(queue, 50000000);
    }
    _exit(0); /* without the end of the work, which there may never be */
}

/* Runs the processes of a plan; `found[p]` is what process p reported. */
static void plan_run(plan *is, char found[MAX_PROCESSES][FINDING_BYTES])
{
    int until[2], texts[MAX_PROCESSES][2];
    pid_t children[MAX_PROCESSES];
    for (int g = 0; g < is->groups; g++) {
        assert_ok(hal_comm_id_create(&is->ids[g]));
    }
    assert_int_equal(pipe(until), 0);
    for (int p = 0; p < is->processes; p++) {
        assert_int_equal(pipe(texts[p]), 0);
        children[p] = fork();
        assert_true(children[p] >= 0);
        if (children[p] == 0) {
            close(until[1]);
            alarm(LIMIT_SECONDS);
            process_run(is, p, texts[p][1], until[0]);
        }
        close(texts[p][1]);
    }
    for (int p = 0; p < is->processes; p++) {
        size_t length = 0;
        for (ssize_t got = 1; got > 0 && length<FINDING_BYTES; length += got> 0 ? got : 0) {
            got = read(texts[p][0], found[p] + length, FINDING_BYTES - length);
        }
        assert_int_equal(length, FINDING_BYTES);
        close(texts[p][0]);
    }
    close(until[1]);
    close(until[0]);
    for (int p = 0; p < is->processes; p++) {
        int ended = 1;
        assert_int_equal(waitpid(children[p], &ended, 0), children[p]);
        assert_int_equal(ended, 0);
    }
    /* The numbers of the processes, for the texts. */
    for (int p = 0; p < is->processes; p++) {
        for (int q = 0; found[p][0] && q < is->processes; q++) {
            char words[64];
            snprintf(words, sizeof words, "process %d: queue 1 of mock:0 (batch ",
                     (int)children[q]);
            if (!strstr(found[p], words)) {
                fail_msg("process %d: expected \"%s\" in: %s", p, words, found[p]);
            }
        }
    }
}

static int begin(void **state)
{
    setenv("HAL_LAYERS", "validate", 1);
    hal_log_set_callback(hear, NULL, 0);
    return mock_begin(state);
}

TEST(two_processes_in_different_order_report_the_cycle)
{
    static char found[MAX_PROCESSES][FINDING_BYTES];
    plan is = {.processes = 2,
               .groups = 2,
               .members = {{0, 1}, {0, 1}},
               .takes = {{0, 1}, {1, 0}},
               .waits_between = -1,
               .sleeps = -1};
    plan_run(&is, found);
    for (int p = 0; p < 2; p++) {
        assert_non_null(strstr(found[p], "all_reduce, step 1 of rank 0) waits for process"));
        assert_non_null(strstr(found[p], "all_reduce, step 1 of rank 1) waits for process"));
        assert_null(strstr(found[p], "unless another thread"));
    }
}

/* Each process sees the memory of two of the three groups. */
TEST(three_processes_in_a_circle_report_the_cycle)
{
    static char found[MAX_PROCESSES][FINDING_BYTES];
    plan is = {.processes = 3,
               .groups = 3,
               .members = {{0, 1}, {1, 2}, {2, 0}},
               .takes = {{0, 2}, {1, 0}, {2, 1}},
               .waits_between = -1,
               .sleeps = -1};
    plan_run(&is, found);
    for (int p = 0; p < 3; p++) {
        assert_string_not_equal(found[p], "");
    }
}

/* Each process waits for its first step before it records the one that the other waits for. */
TEST(steps_that_are_not_recorded_because_of_waits_are_told)
{
    static char found[MAX_PROCESSES][FINDING_BYTES];
    plan is = {.processes = 2,
               .groups = 2,
               .members = {{0, 1}, {0, 1}},
               .takes = {{0, 1}, {1, 0}},
               .waits_between = -1,
               .wait_always = true,
               .sleeps = -1};
    plan_run(&is, found);
    for (int p = 0; p < 2; p++) {
        assert_non_null(strstr(found[p], "unless another thread takes the step"));
    }
}

/* Process 0 waits for process 1, which waits for process 2, which is slow twice. */
static void slow_run(bool wait_always)
{
    static char found[MAX_PROCESSES][FINDING_BYTES];
    plan is = {.processes = 3,
               .groups = 3,
               .members = {{0, 1}, {1, 2}, {2, 0}},
               .takes = {{0, 2}, {1, 0}, {1, 2}},
               .waits_between = 2,
               .wait_always = wait_always,
               .sleeps = 2};
    plan_run(&is, found);
    for (int p = 0; p < 3; p++) {
        assert_string_equal(found[p], "");
    }
}

TEST(slow_processes_are_no_cycle)
{
    slow_run(false);
    slow_run(true);
}

UNIT_MAIN(begin, NULL)
