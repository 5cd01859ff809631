/* hal-bench: measures a device with the op library, in turns with other libraries. Results are
 * checked before they are timed. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness/bench.h"
#include "harness/caches.h"
#include "harness/interrupt.h"
#include "options.h"
#include "suites/suites.h"
#include "peers/raw/apis.h"

static const struct {
    const char *name;
    double seconds; /* for each row, unless --seconds says otherwise */
    void (*run)(bench_state *bench);
    void (*finish)(bench_state *bench);         /* of many cases, after the joins; may be null */
    bool (*list)(const bench_options *options); /* of --list; may be null */
} suites[] = {{"gemm", 1.0, suite_gemm, ratios_finish, NULL},
              {"pointwise", 1.0, suite_pointwise, NULL, NULL},
              {"reduce", 1.0, suite_reduce, NULL, NULL},
              {"dispatch", 1.0, suite_dispatch, NULL, NULL},
              {"batch", 1.0, suite_batch, NULL, NULL},
              {"start", 1.0, suite_start, NULL, NULL},
              {"sequential", 1.0, suite_sequential, NULL, NULL},
              {"transfer", 1.0, suite_transfer, NULL, NULL},
              {"collectives", 0.5, suite_collectives, NULL, NULL},
              {"grid", 0.05, suite_grid, ratios_finish, grid_list},
              {"dense", 0.05, suite_dense, ratios_finish, dense_list},
              {"mixes", 0.05, suite_mixes, ratios_finish, mixes_list},
              {"optimizer", 1.0, suite_optimizer, NULL, NULL},
              {"kernels", 0.05, suite_kernels, NULL, NULL},
              {"attention", 0.1, suite_attention, ratios_finish, attention_list},
              {"operators", 0.05, suite_operators, ratios_finish, operators_list},
              {"quantised", 0.2, suite_quantised, NULL, NULL},
              {"grouped", 0.2, suite_grouped, NULL, NULL}};
enum { SUITES = sizeof suites / sizeof suites[0] };

/* The processors of the process, which a container may limit. */
static int available_threads(void)
{
#if defined __linux__
    cpu_set_t set;
    const int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
#else
    const int count = (int)sysconf(_SC_NPROCESSORS_ONLN);
#endif
    return count > 256 ? 256 : count;
}

/* SUITES if there is no such suite. */
static int suite_find(const char *name)
{
    int i = 0;
    while (i < SUITES && strcmp(suites[i].name, name) != 0) {
        i++;
    }
    return i;
}

static bool is_suite(const char *name)
{
    return suite_find(name) < SUITES;
}

/* Opens the driver's own calls for --raw. */
static bool open_raw(bench_state *bench)
{
    const char *plugin = hal_device_get_plugin_name(bench->device);
    const raw_api *api = raw_find(plugin);
    char message[512];
    if (!bench->options.raw) {
        return true;
    }
    if (!api) {
        return bench_fail(
            bench, "--raw: expected devices whose driver this hal-bench calls, got those of %s",
            plugin);
    }
    bench->raw = raw_open(api, bench->info, message, sizeof message);
    return bench->raw || bench_fail(bench, "%s", message);
}

/* A context of which suites measure what calls take in the long run, with the kernels that programs
 * have by then; kernels and start, which measure first calls, create theirs. */
static bool open_context(bench_state *bench, hal_queue *queue, ops_context **context)
{
    if (!bench_ok(bench, ops_context_create(queue, context), "a context")) {
        return false;
    }
    ops_context_set_kernels(*context, OPS_KERNELS_SPECIAL);
    return true;
}

static bool open_second(bench_state *bench)
{
    bench_place *place = &bench->second;
    if (!bench->options.second) {
        return true;
    }
    if (!bench_ok(bench, hal_device_open(bench->options.second, &place->device),
                  "the second device")) {
        return false;
    }
    place->info = hal_device_get_info(place->device);
    return bench_ok(bench, hal_queue_create(place->device, &place->queue), "a queue") &&
           open_context(bench, place->queue, &place->ops);
}

/* The suite kernels measures first calls: `folder` receives what is removed at the end. */
static bool open_caches(bench_state *bench, bool is_first_calls, char folder[64])
{
    folder[0] = 0;
    if (is_first_calls && bench->options.caches) {
        caches_use_folder(bench->options.caches, NULL);
        return true;
    }
    return !is_first_calls || caches_disable(folder) ||
           bench_fail(bench, "no folder for caches in /tmp");
}

/* The cpu plugin reads its number of threads when the device is opened. */
static bool open_device(bench_state *bench)
{
    char threads[16];
    snprintf(threads, sizeof threads, "%d", bench->options.threads);
    setenv("HAL_CPU_THREADS", threads, 1);
    if (!bench_ok(bench, hal_device_open(bench->options.device, &bench->device), "the device")) {
        return false;
    }
    bench->info = hal_device_get_info(bench->device);
    return open_raw(bench) &&
           bench_ok(bench, hal_queue_create(bench->device, &bench->queue), "a queue") &&
           open_context(bench, bench->queue, &bench->ops) && open_second(bench);
}

static void close_device(bench_state *bench)
{
    if (bench->raw) {
        bench->raw->api->close(bench->raw);
    }
    ops_context_destroy(bench->second.ops);
    hal_queue_destroy(bench->second.queue);
    hal_device_release(bench->second.device);
    ops_context_destroy(bench->ops);
    hal_queue_destroy(bench->queue);
    hal_device_release(bench->device);
}

/* The command line, with quotes around what a shell would take apart, and today's date in UTC. */
static void note_run(bench_state *bench, int count, char **arguments)
{
    const time_t now = time(NULL);
    strftime(bench->date, sizeof bench->date, "%Y-%m-%d", gmtime(&now));
    int length = snprintf(bench->command, sizeof bench->command, "hal-bench");
    for (int i = 1; i < count && length < (int)sizeof bench->command; i++) {
        const char *quote = strpbrk(arguments[i], " *?()&|;<>$'\"") ? "'" : "";
        length += snprintf(bench->command + length, sizeof bench->command - (size_t)length,
                           " %s%s%s", quote, arguments[i], quote);
    }
}

int main(int count, char **arguments)
{
    bench_state bench = {.options = {.threads = available_threads()}};
    const int parsed = bench_options_parse(count, arguments, is_suite, &bench.options);
    if (parsed != 0) {
        return parsed < 0 ? 0 : 2;
    }
    if (bench.options.once) {
        return start_once(&bench.options) ? 0 : 1;
    }
    const int suite = suite_find(bench.options.suite);
    if (bench.options.list) {
        return suites[suite].list(&bench.options) ? 0 : 1;
    }
    if (bench.options.seconds == 0.0) {
        bench.options.seconds = suites[suite].seconds;
    }
    if (getloadavg(&bench.load, 1) != 1) {
        bench.load = -1.0;
    }
    if (bench.options.thread_time) {
        measure_use_thread_time();
    }
    note_run(&bench, count, arguments);
    const bool has_many =
        suites[suite].finish && (suites[suite].run != suite_gemm || bench.options.random > 0);
    bench.as_they_come = !has_many && bench.options.join_count == 0;
    char caches[64];
    if (open_caches(&bench, suites[suite].run == suite_kernels, caches) && open_device(&bench)) {
        suites[suite].run(&bench);
        for (int i = 0; i < bench.options.join_count; i++) {
            bench_join(&bench, bench.options.joins[i]);
        }
        if (has_many) {
            suites[suite].finish(&bench);
        }
        if (bench.row_count == 0 && !bench.failed && !interrupt_was_asked()) {
            bench_fail(&bench,
                       "nothing was measured: no case of %s fits the options and the device",
                       bench.options.suite);
        }
        if (interrupt_was_asked()) {
            bench_note(&bench, "Interrupted by a signal: %d rows, not all", bench.row_count);
            bench.failed = true;
        }
        output_table(&bench);
        if (bench.options.svg) {
            output_svg(&bench);
        }
        if (bench.options.json && !output_json(&bench)) {
            bench.failed = true;
        }
    }
    close_device(&bench);
    caches_remove(caches);
    for (int i = 0; i < bench.row_count; i++) {
        free(bench.rows[i].candidates);
    }
    free(bench.rows);
    for (int i = 0; i < bench.note_count; i++) {
        free(bench.notes[i]);
    }
    free(bench.notes);
    return bench.failed ? 1 : 0;
}
