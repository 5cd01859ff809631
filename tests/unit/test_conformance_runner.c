/* The runner of hal-conformance: cases that crash, hang or end their process are results, the run
 * goes on behind them, and what a device claims counts. On the cpu plugin. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner.h"

static void pass(case_run *run, const void *parameters)
{
    (void)run;
    (void)parameters;
}

static void report_twice(case_run *run, const void *parameters)
{
    (void)parameters;
    case_fail(run, "first");
    case_fail(run, "second");
}

static void crash(case_run *run, const void *parameters)
{
    (void)run;
    (void)parameters;
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
}

static void hang(case_run *run, const void *parameters)
{
    (void)run;
    (void)parameters;
    for (;;) {
        pause();
    }
}

static void leave(case_run *run, const void *parameters)
{
    (void)run;
    (void)parameters;
    _exit(3);
}

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
    (void)parameters;
    case_claim(run, true, "something common");
    case_ok(run, HAL_ERROR_UNSUPPORTED, "a call");
}

/* Runs the cases of a list and gives their results, to be freed. */
static report_result *run_list(case_list *list, expect_list *expected, unsigned jobs)
{
    report_result *results = calloc(list->count, sizeof *results);
    assert_non_null(results);
    for (size_t i = 0; i < list->count; i++) {
        results[i].entry = &list->entries[i];
    }
    const runner_options options = {
        .selection = "cpu", .seed = 1, .jobs = jobs, .seconds = 2, .expected = expected};
    assert_true(runner_run(&options, results, list->count));
    return results;
}

static void free_results(report_result *results, case_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(results[i].detail);
    }
    free(results);
    case_list_free(list);
}

static void add(case_list *list, const char *group, case_function function, int parameter,
                const char *name)
{
    list->group = group;
    case_add(list, function, &parameter, sizeof parameter, "%s", name);
}

static void crashes_and_hangs_are_results(void **state)
{
    (void)state;
    case_list list = {.level = CASE_LEVEL_CORE};
    expect_list none = {0};
    add(&list, "one", pass, 0, "passes");
    add(&list, "one", report_twice, 0, "fails");
    add(&list, "one", crash, 0, "crashes");
    add(&list, "one", pass, 0, "behind_a_crash");
    add(&list, "one", hang, 0, "hangs");
    add(&list, "one", pass, 0, "behind_a_hang");
    add(&list, "two", leave, 0, "leaves");
    add(&list, "two", pass, 0, "behind_an_exit");
    for (unsigned jobs = 1; jobs <= 2; jobs++) {
        report_result *results = run_list(&list, &none, jobs);
        static const case_status expected[] = {CASE_PASSED, CASE_FAILED, CASE_FAILED, CASE_PASSED,
                                               CASE_FAILED, CASE_PASSED, CASE_FAILED, CASE_PASSED};
        for (size_t i = 0; i < list.count; i++) {
            assert_true(results[i].done);
            assert_int_equal(results[i].status, expected[i]);
        }
        assert_string_equal(results[1].detail, "first");
        assert_non_null(strstr(results[2].detail, "signal 11"));
        assert_non_null(strstr(results[4].detail, "no answer for 2 seconds"));
        assert_non_null(strstr(results[6].detail, "status 3"));
        const report_summary sum = report_count(results, list.count);
        assert_int_equal(sum.failed, 4);
        assert_int_equal(sum.passed, 4);
        for (size_t i = 0; i < list.count; i++) {
            free(results[i].detail);
        }
        free(results);
    }
    case_list_free(&list);
}

static void claims_are_held(void **state)
{
    (void)state;
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

static void an_expected_failure_that_passes_fails(void **state)
{
    (void)state;
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

int main(void)
{
    setenv("HAL_PLUGIN_PATH", CPU_PLUGIN_PATH, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crashes_and_hangs_are_results),
        cmocka_unit_test(claims_are_held),
        cmocka_unit_test(an_expected_failure_that_passes_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
