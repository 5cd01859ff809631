/* The runner of hal-conformance: cases that crash, hang, print, fork or end their process are
 * results, the run continues after them, what a device claims counts, and what fails is shrunk. On
 * the cpu plugin. */

#include "unit.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runner/runner.h"

static void pass(case_run *run, const void *parameters)
{
}

static void report_twice(case_run *run, const void *parameters)
{
    case_fail(run, "first");
    case_fail(run, "second");
}

static void crash(case_run *run, const void *parameters)
{
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
}

static void hang(case_run *run, const void *parameters)
{
    for (;;) {
        pause();
    }
}

static void leave(case_run *run, const void *parameters)
{
    _exit(3);
}

static void leave_with_success(case_run *run, const void *parameters)
{
    exit(0);
}

/* As the kernel does when memory runs out. */
static void be_killed(case_run *run, const void *parameters)
{
    raise(SIGKILL);
}

static void print_something(case_run *run, const void *parameters)
{
    printf("a plugin's own words");
}

/* A copy of unwritten memory, which only the validate layer finds. */
static void copy_the_unwritten(case_run *run, const void *parameters)
{
    hal_buffer *buffer = NULL;
    case_ok(run, hal_buffer_create(run->device, HAL_MEMORY_DEVICE, 512, &buffer), "a buffer");
    case_ok(run,
            hal_queue_copy(run->queue, (hal_range){buffer, 0, 256}, (hal_range){buffer, 256, 256}),
            "a copy");
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "a wait");
    hal_buffer_release(buffer);
}

/* A forked process returns into the harness; or it remains and holds what it inherited. */
static void fork_and_return(case_run *run, const void *parameters)
{
    const pid_t copy = fork();
    if (copy > 0) {
        waitpid(copy, NULL, 0); /* the copy comes back first */
    }
}

static void fork_and_leave(case_run *run, const void *parameters)
{
    if (fork() == 0) {
        for (;;) {
            pause();
        }
    }
}

/* The process cannot report and does not end. */
static void close_everything_and_hang(case_run *run, const void *parameters)
{
    for (int fd = 0; fd < 1024; fd++) {
        close(fd);
    }
    for (;;) {
        pause();
    }
}

static void hang_at_exit(void)
{
    for (;;) {
        pause();
    }
}

static void hang_behind_the_last(case_run *run, const void *parameters)
{
    atexit(hang_at_exit);
}

/* ---- A family ---- */

typedef struct box {
    int m, way;
    int64_t shape[2];
} box;

static void run_box(case_run *run, const void *parameters)
{
    const box *tested = parameters;
    if (tested->way == 3 && tested->m % 16 == 15 && tested->shape[0] % 7 == 5) {
        case_fail(run, "%d", tested->m);
    }
    if (tested->way == 3 || tested->m < 5 || tested->shape[1] < 300 || tested->shape[1] % 2 == 0) {
        return;
    }
    if (tested->way == 1) {
        crash(run, NULL);
    }
    case_fail(run, "%d and %d", tested->m, (int)tested->shape[1]);
}

static void print_box(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    const box *b = parameters;
    snprintf(name, bytes, "box(way=%d,m=%d,shape=%dx%d,seed=%d)", b->way, b->m, (int)b->shape[0],
             (int)b->shape[1], (int)seed);
}

static const case_size box_sizes[] = {CASE_SIZE(box, m, "m", 0, 1),
                                      CASE_SIZE(box, shape[0], "shape", 0, 1),
                                      CASE_SIZE(box, shape[1], "shape", 1, 1)};

static const case_family boxes = {.function = run_box,
                                  .bytes = sizeof(box),
                                  .sizes = box_sizes,
                                  .size_count = 3,
                                  .print = print_box};

static void unclaimed(case_run *run, const void *parameters)
{
    const bool answers = *(const int *)parameters != 0;
    case_claim(run, false, "something rare");
    if (answers) {
        case_ok(run, HAL_ERROR_UNSUPPORTED, "a call");
    }
}

static void claimed(case_run *run, const void *parameters)
{
    case_claim(run, true, "something common");
    case_ok(run, HAL_ERROR_UNSUPPORTED, "a call");
}

/* From then on the process opens no device any more. */
static void lose_for_good(case_run *run, const void *parameters)
{
    setenv("HAL_CPU_THREADS", "none", 1);
    case_fail(run, "the device is lost");
}

/* Runs the cases of a list, each for that many seconds at most. The results are to be freed. */
static report_result *run_list_within(case_list *list, expect_list *expected, unsigned jobs,
                                      unsigned seconds)
{
    report_result *results = calloc(list->count, sizeof *results);
    assert_non_null(results);
    for (size_t i = 0; i < list->count; i++) {
        results[i].entry = &list->entries[i];
    }
    const runner_options options = {.selection = "cpu",
                                    .seed = 1,
                                    .jobs = jobs,
                                    .seconds = seconds,
                                    .shrink_seconds = 60,
                                    .expected = expected};
    assert_true(runner_run(&options, results, list->count));
    return results;
}

static report_result *run_list(case_list *list, expect_list *expected, unsigned jobs)
{
    return run_list_within(list, expected, jobs, 120);
}

/* The same where some cases hang: first for two seconds, then for longer as long as a busy machine
 * makes others seem to hang. */
static report_result *run_hanging(case_list *list, unsigned jobs, size_t hanging)
{
    expect_list none = {0};
    for (unsigned seconds = 2;; seconds *= 5) {
        report_result *results = run_list_within(list, &none, jobs, seconds);
        size_t found = 0;
        for (size_t i = 0; i < list->count; i++) {
            found += strstr(results[i].detail, "no answer for ") != NULL;
        }
        if (found <= hanging || seconds >= 50) {
            return results;
        }
        report_free_results(results, list->count);
    }
}

static void free_results(report_result *results, case_list *list)
{
    report_free_results(results, list->count);
    case_list_free(list);
}

static void add(case_list *list, const char *group, case_function function, int parameter,
                const char *name)
{
    list->group = group;
    case_add(list, function, &parameter, sizeof parameter, "%s", name);
}

TEST(crashes_and_hangs_are_results)
{
    case_list list = {.level = CASE_LEVEL_CORE};
    add(&list, "one", pass, 0, "passes");
    add(&list, "one", report_twice, 0, "fails");
    add(&list, "one", crash, 0, "crashes");
    add(&list, "one", pass, 0, "behind_a_crash");
    add(&list, "one", hang, 0, "hangs");
    add(&list, "one", pass, 0, "behind_a_hang");
    add(&list, "two", leave, 0, "leaves");
    add(&list, "two", pass, 0, "behind_an_exit");
    for (unsigned jobs = 1; jobs <= 2; jobs++) {
        report_result *results = run_hanging(&list, jobs, 1);
        static const case_status expected[] = {CASE_PASSED, CASE_FAILED, CASE_FAILED, CASE_PASSED,
                                               CASE_FAILED, CASE_PASSED, CASE_FAILED, CASE_PASSED};
        for (size_t i = 0; i < list.count; i++) {
            assert_true(results[i].done);
            assert_int_equal(results[i].status, expected[i]);
        }
        assert_string_equal(results[1].detail, "first");
        assert_non_null(strstr(results[2].detail, "signal 11"));
        assert_non_null(strstr(results[4].detail, "no answer for "));
        assert_true(results[4].seconds >= 1.0); /* it is told how long a case hung */
        assert_non_null(strstr(results[6].detail, "status 3"));
        const report_summary sum = report_count(results, list.count);
        assert_int_equal(sum.failed, 4);
        assert_int_equal(sum.passed, 4);
        report_free_results(results, list.count);
    }
    case_list_free(&list);
}

/* A device that never answers does not take a day. */
TEST(enough_hung_cases_end_the_run)
{
    case_list list = {.level = CASE_LEVEL_CORE};
    report_result results[5] = {{0}};
    expect_list none = {0};
    for (size_t i = 0; i < 5; i++) {
        static const char *const names[5] = {"first", "second", "third", "fourth", "fifth"};
        add(&list, i < 3 ? "one" : "two", hang, 0, names[i]);
    }
    for (size_t i = 0; i < 5; i++) {
        results[i].entry = &list.entries[i];
    }
    const runner_options options = {
        .selection = "cpu", .seed = 1, .jobs = 1, .seconds = 1, .most_hung = 2, .expected = &none};
    assert_true(runner_run(&options, results, 5));
    assert_true(results[0].done && results[1].done);
    assert_true(!results[2].done && !results[3].done && !results[4].done);
    for (size_t i = 0; i < 2; i++) {
        free(results[i].detail);
    }
    case_list_free(&list);
}

/* A lost device that its driver opens in another process only. */
TEST(other_cases_outlive_a_lost_device)
{
    case_list list = {.level = CASE_LEVEL_CORE};
    expect_list none = {0};
    add(&list, "one", lose_for_good, 0, "loses");
    add(&list, "one", pass, 0, "passes");
    add(&list, "one", lose_for_good, 0, "loses_again");
    add(&list, "two", pass, 0, "passes_elsewhere");
    report_result *results = run_list(&list, &none, 1);
    for (size_t i = 0; i < list.count; i++) {
        const bool loses = strstr(list.entries[i].name, "loses") != NULL;
        assert_int_equal(results[i].status, loses ? CASE_FAILED : CASE_PASSED);
        assert_string_equal(results[i].detail, loses ? "the device is lost" : "");
    }
    free_results(results, &list);
}

TEST(ill_manners_are_results)
{
    case_list list = {.level = CASE_LEVEL_CORE};
    const struct {
        case_function function;
        const char *says;
    } cases[] = {{leave_with_success, "something called exit"},
                 {pass, NULL},
                 {be_killed, "signal 9"},
                 {pass, NULL},
                 {print_something, "standard output, which belongs to the program"},
                 {pass, NULL},
                 {fork_and_return, "forked, and the copy came back"},
                 {pass, NULL},
                 {close_everything_and_hang, "no answer for "},
                 {pass, NULL},
                 {fork_and_leave, NULL},
                 {pass, NULL}};
    const size_t count = sizeof cases / sizeof cases[0];
    for (size_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "case_%zu", i);
        add(&list, "one", cases[i].function, 0, name);
    }
    add(&list, "two", hang_behind_the_last, 0, "hangs_at_exit");
    report_result *results = run_hanging(&list, 2, 2);
    for (size_t i = 0; i < count; i++) {
        if (!cases[i].says) {
            assert_string_equal(results[i].detail, "");
            assert_int_equal(results[i].status, CASE_PASSED);
        } else {
            assert_int_equal(results[i].status, CASE_FAILED);
            assert_non_null(strstr(results[i].detail, cases[i].says));
        }
    }
    assert_non_null(strstr(results[2].detail, "out of memory"));
    assert_non_null(strstr(results[4].detail, "a plugin's own words"));
    assert_int_equal(results[count].status, CASE_FAILED);
    assert_non_null(strstr(results[count].detail, "after the group's last case"));
    free_results(results, &list);
}

TEST(failures_are_shrunk)
{
    case_list list = {.level = CASE_LEVEL_CORE, .group = "one", .seed = 1};
    expectation known = {.pattern = strdup("box(way=2*"), .reason = strdup("known")};
    expect_list expected = {&known, 1};
    for (int way = 0; way < 3; way++) {
        case_add_member(&list, &boxes, &(box){.m = 77, .way = way, .shape = {9, 1001}});
    }
    case_add_member(&list, &boxes, &(box){.m = 77, .way = 0, .shape = {9, 1000}});
    case_add_member(&list, &boxes, &(box){.m = 127, .way = 3, .shape = {33, 1}});
    add(&list, "one", pass, 0, "behind_them");
    report_result *results = run_list(&list, &expected, 1);
    assert_string_equal(results[0].detail, "77 and 1001");
    assert_string_equal(results[0].smallest_detail, "5 and 301");
    assert_string_equal(results[0].smallest, "box(way=0,m=5,shape=1x301,seed=1)");
    assert_non_null(strstr(results[1].detail, "signal 11"));
    assert_non_null(strstr(results[1].smallest_detail, "signal 11"));
    assert_string_equal(results[1].smallest, "box(way=1,m=5,shape=1x301,seed=1)");
    assert_int_equal(results[2].status, CASE_EXPECTED_FAILURE);
    assert_null(results[2].smallest);
    assert_int_equal(results[3].status, CASE_PASSED);
    assert_string_equal(results[4].smallest, "box(way=3,m=15,shape=5x1,seed=1)");
    assert_int_equal(results[5].status, CASE_PASSED);
    free_results(results, &list);
    free(known.pattern);
    free(known.reason);
}

TEST(shrunk_names_run_again)
{
    case_list list = {.level = CASE_LEVEL_CORE, .group = "one", .seed = 1};
    expect_list none = {0};
    case_add_member(&list, &boxes, &(box){.m = 1, .shape = {1, 1}});
    add(&list, "one", pass, 0, "alone");
    assert_false(case_add_by_name(&list, "box(way=1,m=5,shape=1x301,seed=1)")); /* no such way */
    assert_false(case_add_by_name(&list, "box(way=0,m=5,shape=1x301,seed=2)")); /* nor seed */
    assert_false(case_add_by_name(&list, "box(way=0,m=-5,shape=1x301,seed=1)"));
    assert_true(case_add_by_name(&list, "box(way=0,m=5,shape=1x301,seed=1)"));
    assert_int_equal(list.count, 3);
    assert_string_equal(list.entries[2].name, "box(way=0,m=5,shape=1x301,seed=1)");
    report_result *results = run_list(&list, &none, 1);
    assert_int_equal(results[0].status, CASE_PASSED);
    assert_string_equal(results[2].detail, "5 and 301");
    assert_null(results[2].smallest);
    free_results(results, &list);
}

TEST(fewer_steps_have_the_same_numbers)
{
    case_family sequences = boxes;
    case_list list = {.level = CASE_LEVEL_CORE, .group = "one", .seed = 1};
    for (int i = 0; i < 2; i++) {
        sequences.one_stream = i == 1;
        case_add_member(&list, &sequences, &(box){.m = 7, .shape = {1, 1}});
        case_add_member(&list, &sequences, &(box){.m = 9, .shape = {1, 1}});
        const uint64_t seven = case_seed_of(&list.entries[2 * i], 1);
        const uint64_t nine = case_seed_of(&list.entries[2 * i + 1], 1);
        assert_int_equal(seven == nine, i == 1);
    }
    case_list_free(&list);
}

TEST(claims_are_held)
{
    case_list list = {.level = CASE_LEVEL_CORE};
    expect_list none = {0};
    add(&list, "claims", unclaimed, 1, "unclaimed_and_refused");
    add(&list, "claims", unclaimed, 0, "unclaimed_and_done");
    add(&list, "claims", claimed, 0, "claimed_and_refused");
    report_result *results = run_list(&list, &none, 1);
    assert_int_equal(results[0].status, CASE_UNSUPPORTED);
    assert_int_equal(results[1].status, CASE_FAILED);
    assert_int_equal(results[2].status, CASE_FAILED);
    free_results(results, &list);
}

TEST(findings_of_the_validate_layer_are_failures)
{
    case_list list = {.level = CASE_LEVEL_CORE};
    expect_list none = {0};
    add(&list, "one", pass, 0, "passes");
    add(&list, "one", copy_the_unwritten, 0, "is_found");
    add(&list, "one", pass, 0, "behind_it");
    for (int on = 0; on <= 1; on++) {
        if (on) {
            setenv("HAL_LAYERS", "validate", 1);
        }
        report_result *results = run_list(&list, &none, 1);
        unsetenv("HAL_LAYERS");
        assert_int_equal(results[0].status, CASE_PASSED);
        assert_int_equal(results[1].status, on ? CASE_FAILED : CASE_PASSED);
        assert_int_equal(results[2].status, CASE_PASSED);
        if (on) {
            assert_non_null(strstr(results[1].detail, "the validate layer found: hal_queue_copy"));
            assert_non_null(strstr(results[1].detail, "ever written"));
        }
        report_free_results(results, list.count);
    }
    case_list_free(&list);
}

TEST(an_expected_failure_that_passes_fails)
{
    case_list list = {.level = CASE_LEVEL_CORE};
    expectation items[] = {{.pattern = strdup("fails"), .reason = strdup("known")},
                           {.pattern = strdup("pass*"), .reason = strdup("repaired since")}};
    expect_list expected = {items, 2};
    add(&list, "expected", report_twice, 0, "fails");
    add(&list, "expected", pass, 0, "passes");
    report_result *results = run_list(&list, &expected, 1);
    assert_int_equal(results[0].status, CASE_EXPECTED_FAILURE);
    assert_int_equal(results[1].status, CASE_UNEXPECTED_PASS);
    assert_string_equal(report_status_name(results[1].status), "failed");
    const report_summary sum = report_count(results, list.count);
    assert_int_equal(sum.failed, 1);
    assert_int_equal(sum.expected_failures, 1);
    free_results(results, &list);
    for (size_t i = 0; i < 2; i++) {
        free(items[i].pattern);
        free(items[i].reason);
    }
}

static int plugin_choose(void **state)
{
    return setenv("HAL_PLUGIN_PATH", CPU_PLUGIN_PATH, 1);
}

UNIT_MAIN(plugin_choose, NULL)
