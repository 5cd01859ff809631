/* The reports of hal-conformance: JSON, JUnit and TAP that parse whatever devices and cases are
 * called, and what a comparison with an earlier report finds. */

#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/compare.h"
#include "report/report.h"
#include "json.h"
#include "scratch.h"

enum { CASES = 9 };

static const char *const names[CASES] = {
    "plain(m=1,seed=7)",
    "quotes(\"double\",'single',\\back\\slash\\)",
    "angles(<a href=\"x\">&amp;</a>]]>)",
    "# todo is no directive # skip nor this",
    "lines\nand\ttabs\r\n1..99\nok 100 - no",
    "controls\x01\x1b[31m\x7f",
    "no UTF-8 \xff\xfe \xc3( \xed\xa0\x80 \xf4\x90\x80\x80 \xc0\xaf \xef\xbf\xbf end\xc3",
    "UTF-8 \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80",
    "",
};

typedef struct fixture {
    case_entry entries[CASES];
    report_result results[CASES];
    report_device device;
    run_report made;
    char folder[SCRATCH_BYTES];
} fixture;

static int begin(void **state)
{
    static fixture f;
    memset(&f, 0, sizeof f);
    for (int i = 0; i < CASES; i++) {
        f.entries[i] = (case_entry){.name = (char *)names[i], .group = "group"};
        f.results[i] = (report_result){.entry = &f.entries[i],
                                       .status = (case_status)(i % 5),
                                       .detail = (char *)names[(i + 2) % CASES],
                                       .seconds = 0.25 * i,
                                       .done = true};
    }
    f.results[1].smallest = (char *)names[2];
    f.results[1].smallest_detail = (char *)names[6];
    snprintf(f.device.selection, sizeof f.device.selection, "<%s>", names[5]);
    snprintf(f.device.info.name, sizeof f.device.info.name, "%s", names[6]);
    snprintf(f.device.info.driver, sizeof f.device.info.driver, "%s", names[4]);
    snprintf(f.device.info.id, sizeof f.device.info.id, "&\"#");
    f.made = (run_report){.device = &f.device,
                          .results = f.results,
                          .count = CASES,
                          .seed = UINT64_MAX,
                          .began = "2026-01-02T03:04:05Z",
                          .seconds = 1.5};
    *state = &f;
    return !scratch_folder(f.folder, "report");
}

static const char *path_in(const fixture *f, const char *name)
{
    static char path[SCRATCH_BYTES + 64];
    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    return path;
}

static int end(void **state)
{
    const fixture *f = *state;
    static const char *const files[] = {"report.json", "report.xml", "report.tap", "out"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        unlink(path_in(f, files[i]));
    }
    return rmdir(f->folder);
}

TEST_WITH(reports_parse_whatever_names_are, begin, end)
{
    const fixture *f = *state;
    char command[512];
    assert_true(report_write_json(path_in(f, "report.json"), &f->made));
    assert_true(report_write_junit(path_in(f, "report.xml"), &f->made));
    assert_true(report_write_tap(path_in(f, "report.tap"), &f->made));
    snprintf(command, sizeof command, "python3 '%s' '%s'", REPORT_CHECKER, f->folder);
    const int status = system(command);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127) {
        skip(); /* python3, or its parsers, are not there */
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

TEST_WITH(files_that_cannot_be_written_are_told, begin, end)
{
    const fixture *f = *state;
    assert_false(report_write_json(path_in(f, "no/such/folder"), &f->made));
    assert_false(report_write_tap("/dev/full", &f->made));
}

TEST(json_is_read_as_it_was_written)
{
    char message[128];
    json_value *root = json_read("{\"a\": [1, -2.5e3, true, null, {}], \"b\\u0041\": "
                                 "\"\\u00e4\\ud83d\\ude00\\n\\\\\\\"\", \"c\": {\"d\": \"e\"}}",
                                 message, sizeof message);
    assert_non_null(root);
    assert_string_equal(json_text_of(root, "bA"), "\xc3\xa4\xf0\x9f\x98\x80\n\\\"");
    assert_string_equal(json_text_of(json_find(root, "c"), "d"), "e");
    assert_true(json_find(root, "a")->first->next->number == -2500.0);
    json_free(root);
    static const char *const broken[] = {"",         "{",         "{\"a\"}",       "{\"a\": }",
                                         "[1 2]",    "\"abc",     "[1]]",          "{1: 2}",
                                         "nul",      "\"\\u12\"", "\"\\x\"",       "\"\\",
                                         "[\"a\" :", "{\"a\": 1", "\"\\ud83d\\u\""};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        message[0] = 0;
        assert_null(json_read(broken[i], message, sizeof message));
        assert_true(message[0] != 0);
    }
    char deep[200];
    memset(deep, '[', sizeof deep);
    deep[sizeof deep - 1] = 0;
    assert_null(json_read(deep, message, sizeof message));
}

TEST_WITH(a_comparison_finds_what_changed, begin, end)
{
    fixture *f = *state;
    static const struct {
        const char *name;
        case_status before, now;
        double seconds_before, seconds;
    } rows[] = {{"same(seed=1)", CASE_PASSED, CASE_PASSED, 0.1, 0.1},
                {"breaks(m=3,seed=1)", CASE_PASSED, CASE_FAILED, 0, 0},
                {"mended", CASE_FAILED, CASE_PASSED, 0, 0},
                {"given_up", CASE_PASSED, CASE_UNSUPPORTED, 0, 0},
                {"slow", CASE_PASSED, CASE_PASSED, 0.1, 0.3},
                {"known", CASE_EXPECTED_FAILURE, CASE_UNEXPECTED_PASS, 0, 0}};
    enum { ROWS = sizeof rows / sizeof rows[0] };
    char message[256];
    f->made.count = ROWS + 2;
    for (int i = 0; i < ROWS; i++) {
        f->entries[i].name = (char *)rows[i].name;
        f->results[i].status = rows[i].before;
        f->results[i].seconds = rows[i].seconds_before;
    }
    f->entries[ROWS].name = (char *)"gone_since";
    f->entries[ROWS + 1].name = (char *)"not_chosen_now";
    assert_true(report_write_json(path_in(f, "report.json"), &f->made));
    compare_report *earlier = compare_read(path_in(f, "report.json"), message, sizeof message);
    assert_non_null(earlier);
    for (int i = 0; i < ROWS; i++) {
        f->results[i].status = rows[i].now;
        f->results[i].seconds = rows[i].seconds;
    }
    f->entries[0].name = (char *)"same(seed=2)";
    f->entries[1].name = (char *)"breaks(m=3,seed=2)";
    f->entries[ROWS].name = (char *)"added";
    f->results[ROWS].status = CASE_PASSED;
    f->made.count = ROWS + 1;
    const case_list all = {.entries = f->entries, .count = ROWS + 2};
    FILE *file = fopen(path_in(f, "out"), "w");
    assert_non_null(file);
    const compare_counts counts = compare_print(file, earlier, &f->made, &all);
    fclose(file);
    compare_free(earlier);
    assert_int_equal(counts.newly_failing, 2);
    assert_int_equal(counts.newly_passing, 1);
    assert_int_equal(counts.newly_unsupported, 1);
    assert_int_equal(counts.added, 1);
    assert_int_equal(counts.gone, 1);
    assert_int_equal(counts.not_run, 1);
    assert_int_equal(counts.slower, 1);
}

TEST_WITH(what_is_no_report_is_refused, begin, end)
{
    const fixture *f = *state;
    char message[256];
    assert_null(compare_read(path_in(f, "absent"), message, sizeof message));
    assert_non_null(strstr(message, "No such file"));
    FILE *file = fopen(path_in(f, "out"), "w");
    fputs("{\"cases\": 3}", file);
    fclose(file);
    assert_null(compare_read(path_in(f, "out"), message, sizeof message));
    assert_non_null(strstr(message, "expected a report"));
}

UNIT_MAIN(NULL, NULL)
