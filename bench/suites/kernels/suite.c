/* How many kernels random shapes of each family of operations take, what differs between them, and
 * the time of each first call. Counting needs no quiet machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness/interrupt.h"
#include "suites/kernels/kernels.h"
#include "suites/suites.h"

#define SHAPES 200
#define LARGEST 65536
#define MAX_WORDS 8192
#define MAX_NAMES 32
#define MAX_LISTED 32

/* What the log says of new kernels: each distinct word of a kernel's name once. */
typedef struct kernel_words {
    char words[MAX_WORDS][64];
    uint32_t count;
} kernel_words;

typedef struct case_counts {
    char names[MAX_NAMES][32];
    uint32_t kernels[MAX_NAMES], name_count;
    kernel_words forms, groups, shared;
    uint32_t shape; /* that is computed, from 0 on */
    char listed[MAX_LISTED][200];
    uint32_t listed_count;
} case_counts;

typedef struct suite_run {
    bench_state *bench;
    case_counts *counts;
    double *seconds;             /* of each shape */
    double processor_seconds[3]; /* of all threads, for each of the first shapes */
    double processor_total;
    uint32_t shapes, compiling; /* shapes that made a kernel */
    uint32_t last_compiling;    /* the last of them */
    uint64_t made, slowest_made;
    char slowest[64];
} suite_run;

static void words_add(kernel_words *set, const char *name, const char *what)
{
    char word[64];
    snprintf(word, sizeof word, "%.30s %.30s", name, what);
    for (uint32_t i = 0; i < set->count; i++) {
        if (strcmp(set->words[i], word) == 0) {
            return;
        }
    }
    if (set->count < MAX_WORDS) {
        memcpy(set->words[set->count++], word, sizeof word);
    }
}

static uint32_t words_of(const kernel_words *set, const char *name)
{
    uint32_t count = 0;
    const size_t length = strlen(name);
    for (uint32_t i = 0; i < set->count; i++) {
        count += strncmp(set->words[i], name, length) == 0 && set->words[i][length] == ' ';
    }
    return count;
}

/* Keeps the line of a kernel. */
static void line_add(case_counts *counts, const char *line)
{
    if (counts->listed_count < MAX_LISTED) {
        char *listed = counts->listed[counts->listed_count++];
        snprintf(listed, sizeof counts->listed[0], "shape %u: %s", counts->shape + 1, line);
    }
}

/* Reads the lines of ops/src/tensor/kernel_log.c. */
static void log_read(void *user, hal_log_level level, const char *message)
{
    case_counts *counts = user;
    char name[31] = "", group[31] = "", shared[31] = "", form[31] = "";
    (void)level;
    const char *start = strstr(message, "new kernel ");
    const char *group_at = start ? strstr(start, ", group ") : NULL;
    const char *form_at = start ? strstr(start, ", form ") : NULL;
    const char *shared_at = start ? strstr(start, ", shared ") : NULL;
    if (!group_at || !form_at || !shared_at || sscanf(start, "new kernel %30[^:]", name) != 1 ||
        sscanf(group_at, ", group %30[^,]", group) != 1 ||
        sscanf(shared_at, ", shared %30[^,]", shared) != 1 ||
        sscanf(form_at, ", form %30[^,]", form) != 1) {
        return;
    }
    uint32_t i = 0;
    while (i < counts->name_count && strcmp(counts->names[i], name) != 0) {
        i++;
    }
    if (i == MAX_NAMES) {
        return;
    }
    counts->name_count += i == counts->name_count;
    memcpy(counts->names[i], name, sizeof name);
    counts->kernels[i]++;
    words_add(&counts->forms, name, form);
    words_add(&counts->groups, name, group);
    words_add(&counts->shared, name, shared);
    line_add(counts, start + strlen("new kernel "));
}

static uint64_t kernels_made(ops_context *ops)
{
    ops_array_statistics statistics = {.size = sizeof statistics};
    return ops_context_get_statistics(ops, &statistics) == HAL_OK ? statistics.made : 0;
}

/* Of all threads of the process: on a busy machine it says more than the time that passed. */
static double processor_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* One shape: inputs, then the call whose time counts. */
static bool run_shape(suite_run *run, const kernels_case *what, kernels_draw *draw, uint32_t i)
{
    bench_state *bench = run->bench;
    draw->input_count = draw->result_count = 0;
    bool well = ops_scope_begin(draw->ops) == HAL_OK && what->prepare(draw) &&
                hal_queue_wait(bench->queue, HAL_WAIT_FOREVER) == HAL_OK;
    const uint64_t before = kernels_made(draw->ops);
    run->counts->shape = i;
    const double processor_start = processor_now();
    const double start = measure_now();
    well = well && what->compute(draw) &&
           ops_array_evaluate(draw->results, draw->result_count) == HAL_OK &&
           hal_queue_wait(bench->queue, HAL_WAIT_FOREVER) == HAL_OK;
    run->seconds[i] = measure_now() - start;
    const double processor_seconds = processor_now() - processor_start;
    run->processor_total += processor_seconds;
    if (i < 3) {
        run->processor_seconds[i] = processor_seconds;
    }
    const uint64_t made = kernels_made(draw->ops) - before;
    run->made += made;
    if (made > 0) {
        run->compiling++;
        run->last_compiling = i;
    }
    run->shapes = i + 1;
    for (uint32_t j = 0; j < draw->result_count; j++) {
        ops_array_release(draw->results[j]);
    }
    ops_scope_end(draw->ops);
    return bench_ok(bench, well ? HAL_OK : HAL_ERROR_INTERNAL, what->name);
}

static void add_row(suite_run *run, const kernels_case *what)
{
    bench_row *row = bench_add(run->bench, what->name, HAL_TYPE_NONE);
    if (!row) {
        return;
    }
    double slowest = 0.0;
    for (uint32_t i = 2; i < run->shapes; i++) {
        slowest = run->seconds[i] > slowest ? run->seconds[i] : slowest;
    }
    const double first = 1e3 * run->seconds[0];
    const double second = run->shapes > 1 ? 1e3 * run->seconds[1] : 0.0;
    const double third = run->shapes > 2 ? 1e3 * run->seconds[2] : 0.0;
    double total = 0.0;
    for (uint32_t i = 0; i < run->shapes; i++) {
        total += run->seconds[i];
    }
    row->first_ms = first;
    row->second_ms = second;
    measure_summarise(&row->time, run->seconds, (int)run->shapes, 1);
    snprintf(row->how, sizeof row->how, "%llu kernels, %u of %u shapes made some, the last was %u",
             (unsigned long long)run->made, run->compiling, run->shapes,
             run->compiling ? run->last_compiling + 1 : 0);
    bench_note(
        run->bench,
        "%s: %s; ms of the first three shapes %.2f %.2f %.2f, slowest later %.2f, total %.0f",
        what->name, row->how, first, second, third, 1e3 * slowest, 1e3 * total);
    bench_note(run->bench, "    processor ms of the first three shapes %.2f %.2f %.2f, total %.0f",
               1e3 * run->processor_seconds[0], 1e3 * run->processor_seconds[1],
               1e3 * run->processor_seconds[2], 1e3 * run->processor_total);
    const case_counts *counts = run->counts;
    for (uint32_t i = 0; i < counts->name_count; i++) {
        bench_note(run->bench, "    %s: %u kernels, %u forms, %u groups, %u sizes of shared memory",
                   counts->names[i], counts->kernels[i], words_of(&counts->forms, counts->names[i]),
                   words_of(&counts->groups, counts->names[i]),
                   words_of(&counts->shared, counts->names[i]));
    }
    for (uint32_t i = 0; i < counts->listed_count; i++) {
        bench_note(run->bench, "    %s", counts->listed[i]);
    }
}

/* The cases by the share of their shapes that made a kernel. */
typedef struct case_share {
    const kernels_case *what;
    uint64_t made;
    double percent;
} case_share;

static int share_compare(const void *a, const void *b)
{
    const double x = ((const case_share *)a)->percent, y = ((const case_share *)b)->percent;
    return (x < y) - (x > y);
}

static void note_shares(bench_state *bench, case_share *shares, uint32_t count)
{
    qsort(shares, count, sizeof *shares, share_compare);
    bench_note(bench, "shapes that made a kernel, worst first:");
    for (uint32_t i = 0; i < count; i++) {
        const case_share *one = &shares[i];
        const uint32_t most = one->what->most_kernels;
        bench_note(bench, "    %5.1f %% %s, %llu kernels%s", one->percent, one->what->name,
                   (unsigned long long)one->made,
                   most > 0 && one->made > most ? ", more than docs/kernel-classes.md promises"
                                                : "");
    }
}

/* A context of its own, which has no kernels yet. */
static void run_case(suite_run *run, const kernels_case *what, uint32_t shapes, uint64_t seed)
{
    bench_state *bench = run->bench;
    uint64_t random = bench_seed(seed);
    const uint64_t largest = bench->options.largest ? bench->options.largest : LARGEST;
    kernels_draw draw = {.bench = bench, .random = &random, .largest = (int64_t)largest};
    if (!bench_ok(bench, ops_context_create(bench->queue, &draw.ops), "a context")) {
        return;
    }
    *run->counts = (case_counts){.name_count = 0};
    hal_log_set_callback(log_read, run->counts, HAL_LOG_DEBUG);
    uint32_t i = 0;
    while (i < shapes && !interrupt_was_asked() && run_shape(run, what, &draw, i)) {
        i++;
    }
    hal_log_set_callback(NULL, NULL, 0);
    if (run->shapes > 0) {
        add_row(run, what);
    }
    ops_context_destroy(draw.ops);
    if (bench->options.settle > 0 && !bench->failed) {
        kernels_settle(bench, what, seed, (int64_t)largest);
    }
}

void suite_kernels(bench_state *bench)
{
    const uint32_t shapes = bench->options.random ? bench->options.random : SHAPES;
    const uint64_t seed = bench->options.seed ? bench->options.seed : 1;
    case_counts *counts = malloc(sizeof *counts);
    double *seconds = malloc(shapes * sizeof *seconds);
    case_share *shares = malloc(kernels_case_count * sizeof *shares);
    uint32_t share_count = 0;
    if (!counts || !seconds || !shares) {
        bench_fail(bench, "out of memory");
    }
    for (uint32_t i = 0; i < kernels_case_count && !bench->failed; i++) {
        if (bench_name_passes(kernels_cases[i].name, bench->options.filter)) {
            suite_run run = {.bench = bench, .counts = counts, .seconds = seconds};
            run_case(&run, &kernels_cases[i], shapes, seed);
            shares[share_count++] =
                (case_share){.what = &kernels_cases[i],
                             .made = run.made,
                             .percent = 100.0 * run.compiling / (run.shapes > 0 ? run.shapes : 1)};
        }
    }
    if (!bench->failed) {
        note_shares(bench, shares, share_count);
    }
    free(shares);
    free(seconds);
    free(counts);
}
