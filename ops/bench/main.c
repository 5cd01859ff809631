/* main.c: hal-bench: what a device does with the op library's work, beside other libraries that
 * take turns with it in the same run. Results are checked before they are timed. */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "device_peers.h"
#include "peers.h"

static const char usage[] =
    "usage: hal-bench gemm|pointwise|reduce|dispatch|batch|start|sequential|transfer [options]\n"
    "  --device SELECTION   such as cpu:0 (else HAL_BACKEND, else the default)\n"
    "  --peer NAME          of gemm: openblas, blis, clblast or cublas; more than once if wanted\n"
    "  --raw                of dispatch, pointwise, sequential, transfer: beside the driver's own\n"
    "                       calls\n"
    "  --threads N          of the cpu plugin, the peers and the triad (all that there are)\n"
    "  --beside SELECTION   of sequential: a second device, such as cpu, takes turns\n"
    "  --join FILE          of sequential: adds what torch_sequential.py measured; up to 4\n"
    "  --seed N             of sequential's random trees (trees that were never met)\n"
    "  --cases LIST         of sequential: chain, alone, steps, trees, with commas (all)\n"
    "  --to SELECTION       of transfer: the device that is copied to, such as cuda:1\n"
    "  --sizes LIST         with commas: n or mxnxk of gemm, n of pointwise, mxn of reduce,\n"
    "                       hidden or batchxhidden of sequential, bytes of transfer,\n"
    "                       kernels of batch\n"
    "  --type LIST          with commas: f32, f64, f16, bf16 (f32)\n"
    "  --impl IMPL          of gemm: any, portable or native (any)\n"
    "  --precision CLASS    of gemm: strict, accurate or fast (strict)\n"
    "  --once               of start: one pass in this process, the times on a line\n"
    "  --seconds S          for each case and peer (1)\n"
    "  --json FILE          write the rows as JSON\n"
    "Exit status: 0 all measured, 1 a wrong result or a failed call, 2 wrong usage.\n";

static const struct {
    const char *name;
    void (*run)(bench_state *bench);
} suites[] = {{"gemm", suite_gemm},
              {"pointwise", suite_pointwise},
              {"reduce", suite_reduce},
              {"dispatch", suite_dispatch},
              {"batch", suite_batch},
              {"start", suite_start},
              {"sequential", suite_sequential},
              {"transfer", suite_transfer}};
enum { SUITES = sizeof suites / sizeof suites[0] };

/* What the process may run on, which a container may have made fewer. */
static int available_threads(void)
{
    cpu_set_t set;
    const int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count > 256 ? 256 : count;
}

static bool parse_peer(const char *text, bench_options *options)
{
    if ((!peer_is_known(text) && !device_peer_is_known(text)) ||
        options->peer_count == BENCH_MAX_PEERS) {
        return false;
    }
    options->peers[options->peer_count++] = text;
    return true;
}

static bool parse_threads(const char *text, int *threads)
{
    char *end;
    const long number = strtol(text, &end, 10);
    *threads = (int)number;
    return *end == 0 && end != text && number >= 1 && number <= 256;
}

static bool parse_sizes(const char *text, bench_options *options)
{
    options->size_count = 0;
    while (*text != 0 && options->size_count < BENCH_MAX_SIZES) {
        int64_t *size = options->sizes[options->size_count++];
        int read = 0;
        char *end;
        for (; read < 3; read++) {
            errno = 0;
            size[read] = strtoll(text, &end, 10);
            if (errno != 0 || end == text || size[read] < 1 || size[read] > INT64_C(1) << 31) {
                return false;
            }
            text = end;
            if (*text != 'x') {
                break;
            }
            text++;
        }
        if (read == 0) {
            size[1] = size[2] = size[0];
        } else if (read == 1) {
            size[2] = 1;
        }
        if (*text != 0 && *text++ != ',') {
            return false;
        }
    }
    return *text == 0 && options->size_count > 0;
}

static bool parse_impl(const char *text, ops_gemm_impl *impl)
{
    static const char *const names[] = {"any", "portable", "native"};
    static const ops_gemm_impl impls[] = {OPS_GEMM_ANY, OPS_GEMM_PORTABLE, OPS_GEMM_NATIVE};
    for (int i = 0; i < 3; i++) {
        if (strcmp(names[i], text) == 0) {
            *impl = impls[i];
            return true;
        }
    }
    return false;
}

static bool parse_precision(const char *text, uint32_t *precision)
{
    static const char *const names[] = {"strict", "accurate", "fast"};
    static const uint32_t classes[] = {HAL_GEMM_STRICT, HAL_GEMM_ACCURATE, HAL_GEMM_FAST};
    for (int i = 0; i < 3; i++) {
        if (strcmp(names[i], text) == 0) {
            *precision = classes[i];
            return true;
        }
    }
    return false;
}

static bool parse_seed(const char *text, uint64_t *seed)
{
    char *end;
    errno = 0;
    *seed = strtoull(text, &end, 10);
    return errno == 0 && *end == 0 && end != text && text[0] != '-' && *seed > 0;
}

/* Options that are one suite's alone. */
static bool fits_suite(const bench_options *options)
{
    const bool sequential = strcmp(options->suite, "sequential") == 0;
    if (options->once && strcmp(options->suite, "start") != 0) {
        fprintf(stderr, "hal-bench: --once is for start\n");
        return false;
    }
    if (options->peer_count > 0 && strcmp(options->suite, "gemm") != 0) {
        fprintf(stderr, "hal-bench: --peer is for gemm; the other suites have yardsticks\n");
        return false;
    }
    if (!sequential && (options->beside != NULL || options->join_count > 0 ||
                        options->seed != 0 || options->cases != NULL)) {
        fprintf(stderr, "hal-bench: --beside, --join, --seed, --cases are for sequential\n");
        return false;
    }
    if ((options->to != NULL) != (strcmp(options->suite, "transfer") == 0)) {
        fprintf(stderr, "hal-bench: transfer needs --to, and nothing else does\n");
        return false;
    }
    return true;
}

/* 0: go on, 1: wrong usage, -1: help was printed. */
static int parse(int count, char **arguments, bench_options *options)
{
    static const struct option known[] = {
        {"device", 1, NULL, 'd'},  {"peer", 1, NULL, 'p'},      {"threads", 1, NULL, 't'},
        {"sizes", 1, NULL, 's'},   {"type", 1, NULL, 'y'},      {"impl", 1, NULL, 'o'},
        {"seconds", 1, NULL, 'c'}, {"json", 1, NULL, 'j'},      {"raw", 0, NULL, 'r'},
        {"once", 0, NULL, 'n'},    {"precision", 1, NULL, 'i'}, {"beside", 1, NULL, 'b'},
        {"join", 1, NULL, 'J'},    {"to", 1, NULL, 'T'},        {"seed", 1, NULL, 'S'},
        {"cases", 1, NULL, 'C'},   {"help", 0, NULL, 'h'},      {NULL, 0, NULL, 0}};
    bool well = true;
    int option;
    while (well && (option = getopt_long(count, arguments, "h", known, NULL)) != -1) {
        switch (option) {
        case 'd':
            options->device = optarg;
            break;
        case 'p':
            well = parse_peer(optarg, options);
            break;
        case 't':
            well = parse_threads(optarg, &options->threads);
            break;
        case 's':
            well = parse_sizes(optarg, options);
            break;
        case 'y':
            options->types = optarg;
            break;
        case 'o':
            well = parse_impl(optarg, &options->impl);
            break;
        case 'i':
            well = parse_precision(optarg, &options->precision);
            break;
        case 'c':
            options->seconds = strtod(optarg, NULL);
            well = options->seconds > 0.0 && options->seconds <= 3600.0;
            break;
        case 'j':
            options->json = optarg;
            break;
        case 'r':
            options->raw = true;
            break;
        case 'n':
            options->once = true;
            break;
        case 'b':
            options->beside = optarg;
            break;
        case 'T':
            options->to = optarg;
            break;
        case 'J':
            well = options->join_count < BENCH_MAX_JOINS;
            if (well) {
                options->joins[options->join_count++] = optarg;
            }
            break;
        case 'C':
            options->cases = optarg;
            break;
        case 'S':
            well = parse_seed(optarg, &options->seed);
            break;
        case 'h':
            fputs(usage, stdout);
            return -1;
        default:
            fputs(usage, stderr);
            return 1;
        }
    }
    if (!well) {
        fprintf(stderr, "hal-bench: '%s' is no value for that option\n%s", optarg, usage);
        return 1;
    }
    options->suite = optind < count ? arguments[optind] : "";
    bool known_suite = optind + 1 == count;
    int matches = 0;
    for (int i = 0; i < SUITES; i++) {
        matches += strcmp(suites[i].name, options->suite) == 0;
    }
    if (!known_suite || matches == 0) {
        fprintf(stderr, "hal-bench: name one of the suites\n%s", usage);
        return 1;
    }
    return fits_suite(options) ? 0 : 1;
}

/* The driver's own calls, when they are asked for. */
static bool open_raw(bench_state *bench)
{
    const char *plugin = hal_device_get_plugin_name(bench->device);
    const raw_api *api = raw_find(plugin);
    char message[512];
    if (!bench->options.raw) {
        return true;
    }
    if (api == NULL) {
        return bench_fail(bench, "this hal-bench makes no calls of its own to the devices of %s",
                          plugin);
    }
    bench->raw = api->open(bench->info, message, sizeof message);
    return bench->raw != NULL || bench_fail(bench, "%s", message);
}

static bool open_beside(bench_state *bench)
{
    bench_place *place = &bench->beside;
    if (bench->options.beside == NULL) {
        return true;
    }
    if (!bench_ok(bench, hal_device_open(bench->options.beside, &place->device),
                  "the device beside")) {
        return false;
    }
    place->info = hal_device_get_info(place->device);
    return bench_ok(bench, hal_queue_create(place->device, &place->queue), "a queue") &&
           bench_ok(bench, ops_context_create(place->queue, &place->ops), "a context");
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
           bench_ok(bench, ops_context_create(bench->queue, &bench->ops), "a context") &&
           open_beside(bench);
}

static void close_device(bench_state *bench)
{
    if (bench->raw != NULL) {
        bench->raw->api->close(bench->raw);
    }
    ops_context_destroy(bench->beside.ops);
    hal_queue_destroy(bench->beside.queue);
    hal_device_release(bench->beside.device);
    ops_context_destroy(bench->ops);
    hal_queue_destroy(bench->queue);
    hal_device_release(bench->device);
}

int main(int count, char **arguments)
{
    bench_state bench = {.options = {.threads = available_threads(), .seconds = 1.0}};
    const int parsed = parse(count, arguments, &bench.options);
    if (parsed != 0) {
        return parsed < 0 ? 0 : 2;
    }
    if (bench.options.once) {
        return start_once(&bench.options) ? 0 : 1;
    }
    if (getloadavg(&bench.load, 1) != 1) {
        bench.load = -1.0;
    }
    if (open_device(&bench)) {
        for (int i = 0; i < SUITES; i++) {
            if (strcmp(suites[i].name, bench.options.suite) == 0) {
                suites[i].run(&bench);
            }
        }
        for (int i = 0; i < bench.options.join_count; i++) {
            bench_join(&bench, bench.options.joins[i]);
        }
        output_table(&bench);
        if (bench.options.json != NULL && !output_json(&bench)) {
            bench.failed = true;
        }
    }
    close_device(&bench);
    free(bench.rows);
    for (int i = 0; i < bench.note_count; i++) {
        free(bench.notes[i]);
    }
    free(bench.notes);
    return bench.failed ? 1 : 0;
}
