/* The command line of hal-bench. */
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command_line.h"
#include "peers/device_peers.h"
#include "peers/host_blas.h"

#define OF(field) offsetof(bench_options, field)

static bool read_peer(const char *text, void *options)
{
    bench_options *asked = options;
    if ((!peer_is_known(text) && !device_peer_is_known(text)) ||
        asked->peer_count == BENCH_MAX_PEERS) {
        return false;
    }
    asked->peers[asked->peer_count++] = text;
    return true;
}

static bool read_join(const char *text, void *options)
{
    bench_options *asked = options;
    if (asked->join_count == BENCH_MAX_JOINS) {
        return false;
    }
    asked->joins[asked->join_count++] = text;
    return true;
}

/* Up to three numbers separated by x. A single one counts for all three; the third of two is 0. */
static bool read_size(const char *text, int64_t size[3])
{
    int read = 0;
    for (bool more = true; more; read++) {
        char *end;
        errno = 0;
        size[read] = strtoll(text, &end, 10);
        if (errno != 0 || end == text || size[read] < 1 || size[read] > INT64_C(1) << 31) {
            return false;
        }
        more = *end == 'x' && read < 2;
        text = end + more;
    }
    if (read == 1) {
        size[1] = size[2] = size[0];
    } else if (read == 2) {
        size[2] = 0;
    }
    return *text == 0;
}

static bool read_sizes(const char *text, void *options)
{
    bench_options *asked = options;
    char word[64];
    int more;
    asked->size_count = 0;
    while ((more = command_list_next(&text, word, sizeof word)) > 0) {
        if (asked->size_count == BENCH_MAX_SIZES ||
            !read_size(word, asked->sizes[asked->size_count])) {
            return false;
        }
        asked->size_count++;
    }
    return more == 0 && asked->size_count > 0;
}

/* Whether all words of a list are among `count` names. */
static bool words_are_known(const char *text, const char *const *names, int count)
{
    char word[16];
    int more;
    while ((more = command_list_next(&text, word, sizeof word)) > 0) {
        if (command_index_of(word, names, count) < 0) {
            return false;
        }
    }
    return more == 0;
}

static bool read_types(const char *text, void *options)
{
    static const char *const names[] = {"f32", "f64", "f16", "bf16", "f8_e4m3", "i8", "u8"};
    ((bench_options *)options)->types = text;
    return words_are_known(text, names, 7);
}

static bool read_cases(const char *text, void *options)
{
    static const char *const names[] = {"chain", "alone", "steps", "trees"};
    ((bench_options *)options)->cases = text;
    return words_are_known(text, names, 4);
}

static bool read_impl(const char *text, void *options)
{
    static const char *const names[] = {"any", "portable", "native"};
    static const ops_gemm_impl impls[] = {OPS_GEMM_ANY, OPS_GEMM_PORTABLE, OPS_GEMM_NATIVE};
    const int index = command_index_of(text, names, 3);
    if (index >= 0) {
        ((bench_options *)options)->impl = impls[index];
    }
    return index >= 0;
}

static bool read_precisions(const char *text, void *options)
{
    static const char *const names[BENCH_MAX_CLASSES] = {
        "strict", "accurate", "fast", "normwise", "normwise1", "normwise2", "exact"};
    static const hal_gemm_precision classes[BENCH_MAX_CLASSES] = {
        HAL_GEMM_STRICT,   HAL_GEMM_ACCURATE, HAL_GEMM_FAST, HAL_GEMM_NORMWISE,
        HAL_GEMM_NORMWISE, HAL_GEMM_NORMWISE, HAL_GEMM_EXACT};
    bench_options *asked = options;
    char word[16];
    int more;
    asked->precision_count = 0;
    while ((more = command_list_next(&text, word, sizeof word)) > 0) {
        const int index = command_index_of(word, names, BENCH_MAX_CLASSES);
        if (index < 0 || asked->precision_count == BENCH_MAX_CLASSES) {
            return false;
        }
        const bool has_levels = classes[index] == HAL_GEMM_NORMWISE && index > 3;
        asked->levels_of[asked->precision_count] = has_levels ? (uint32_t)index - 3 : 0;
        asked->precisions[asked->precision_count++] = classes[index];
    }
    return more == 0 && asked->precision_count > 0;
}

static bool read_threads(const char *text, void *options)
{
    uint64_t number = 0;
    const bool fits = command_read_u64(text, &number) && number >= 1 && number <= 256;
    ((bench_options *)options)->threads = (int)number;
    return fits;
}

static bool read_seconds(const char *text, void *options)
{
    char *end;
    const double seconds = strtod(text, &end);
    ((bench_options *)options)->seconds = seconds;
    return *end == 0 && end != text && seconds > 0.0 && seconds <= 3600.0;
}

static const command_option rows[] = {
    {.name = "device",
     .argument = "SELECTION",
     .help = "such as cpu:0 (else HAL_BACKEND, else the default)",
     .kind = COMMAND_TEXT,
     .offset = OF(device)},
    {.name = "peer",
     .argument = "NAME",
     .help = "of gemm: openblas, blis, clblast or cublas; more than once if wanted",
     .kind = COMMAND_CALL,
     .read = read_peer},
    {.name = "raw",
     .help = "of dispatch, pointwise, sequential, transfer, collectives: compare with the calls of "
             "the driver or NCCL",
     .kind = COMMAND_FLAG,
     .offset = OF(raw)},
    {.name = "threads",
     .argument = "N",
     .help = "of the cpu plugin, the peers and the triad (all that there are)",
     .kind = COMMAND_CALL,
     .read = read_threads},
    {.name = "thread-time",
     .help = "times are processor times of the calling thread, for --device cpu --threads 1 on a "
             "busy machine",
     .kind = COMMAND_FLAG,
     .offset = OF(thread_time)},
    {.name = "second",
     .argument = "SELECTION",
     .help = "of sequential and grid: a second device, such as cpu",
     .kind = COMMAND_TEXT,
     .offset = OF(second)},
    {.name = "join",
     .argument = "FILE",
     .help = "of sequential, grid, dense, mixes, attention and operators: adds what "
             "pytorch/SUITE.py "
             "measured; up to 4",
     .kind = COMMAND_CALL,
     .read = read_join},
    {.name = "seed",
     .argument = "N",
     .help = "of sequential's random trees, grid's random cells, gemm's random products and the "
             "programs of mixes (ones that were never met); of the shapes of kernels (1)",
     .kind = COMMAND_U64,
     .offset = OF(seed),
     .least = 1,
     .most = UINT64_MAX},
    {.name = "cases",
     .argument = "LIST",
     .help = "of sequential: chain, alone, steps, trees, with commas (all)",
     .kind = COMMAND_CALL,
     .read = read_cases},
    {.name = "filter",
     .argument = "LIST",
     .help = "of grid, dense, mixes, kernels, attention and operators: cells whose names hold one "
             "of the words, with commas (all)",
     .kind = COMMAND_TEXT,
     .offset = OF(filter)},
    {.name = "largest",
     .argument = "N",
     .help =
         "of grid, mixes and kernels: arrays of at most N elements (268435456; 4096; 65536); of "
         "gemm --random: m, n and k of at most N (8192)",
     .kind = COMMAND_U64,
     .offset = OF(largest),
     .least = 1,
     .most = UINT64_C(1) << 31},
    {.name = "random",
     .argument = "N",
     .help =
         "of gemm: N random products instead of --sizes, worst ratio first; of grid: N random "
         "cells of up to --largest elements instead of all others; of mixes: N programs (24); of "
         "kernels: N shapes of each case (200); of attention and operators: N random cells",
     .kind = COMMAND_UNSIGNED,
     .offset = OF(random),
     .least = 1,
     .most = 100000},
    {.name = "settle",
     .argument = "N",
     .help = "of kernels: also repeats the first N shapes of each case until no kernel is made any "
             "more, next to special and general kernels alone (0)",
     .kind = COMMAND_UNSIGNED,
     .offset = OF(settle),
     .least = 1,
     .most = 100},
    {.name = "caches",
     .argument = "FOLDER",
     .help = "of kernels: the folder of the compile caches of hal and of the driver, which stays; "
             "without it none are used",
     .kind = COMMAND_TEXT,
     .offset = OF(caches)},
    {.name = "layout",
     .argument = "XY",
     .help = "of gemm --sizes: n or t, whether A and B are stored transposed (nn)",
     .kind = COMMAND_TEXT,
     .offset = OF(layout)},
    {.name = "batch",
     .argument = "N",
     .help = "of gemm --sizes: products of one call, of matrices one after the other (1)",
     .kind = COMMAND_UNSIGNED,
     .offset = OF(batch),
     .least = 1,
     .most = 1 << 20},
    {.name = "candidates",
     .argument = "N",
     .help =
         "of --regret: the portable and the plugin's native kernels of least estimated time, of "
         "each this many (8)",
     .kind = COMMAND_UNSIGNED,
     .offset = OF(candidates),
     .least = 1,
     .most = BENCH_MAX_CANDIDATES},
    {.name = "regret",
     .help = "of gemm: measures the other ways to multiply as well, as the peer best",
     .kind = COMMAND_FLAG,
     .offset = OF(regret)},
    {.name = "epilogue",
     .help = "of gemm: also measures each product with bias and GELU of its elements, next to the "
             "product alone as the peer plain",
     .kind = COMMAND_FLAG,
     .offset = OF(epilogue)},
    {.name = "list",
     .help = "of grid, dense, mixes, attention and operators: print the cells as JSON for "
             "pytorch/SUITE.py "
             "and end",
     .kind = COMMAND_FLAG,
     .offset = OF(list)},
    {.name = "to",
     .argument = "SELECTION",
     .help = "of transfer: the device that is copied to, such as cuda:1",
     .kind = COMMAND_TEXT,
     .offset = OF(to)},
    {.name = "ranks",
     .argument = "N",
     .help = "of collectives: ranks on the device (2); of dense: that train (none)",
     .kind = COMMAND_UNSIGNED,
     .offset = OF(ranks),
     .least = 2,
     .most = 64},
    {.name = "spread",
     .help = "of collectives and dense: a rank on each device of the plugin, at most --ranks",
     .kind = COMMAND_FLAG,
     .offset = OF(spread)},
    {.name = "any-order",
     .help = "of collectives and dense: sums may be added in any order",
     .kind = COMMAND_FLAG,
     .offset = OF(any_order)},
    {.name = "sizes",
     .argument = "LIST",
     .help = "with commas: n or mxnxk of gemm, n of pointwise, mxn of reduce, hidden or "
             "batchxhidden of "
             "sequential, bytes of transfer and collectives, kernels of batch",
     .kind = COMMAND_CALL,
     .read = read_sizes},
    {.name = "type",
     .argument = "LIST",
     .help = "with commas: f32, f64, f16, bf16, of gemm also f8_e4m3, i8, u8 (f32)",
     .kind = COMMAND_CALL,
     .read = read_types},
    {.name = "impl",
     .argument = "IMPL",
     .help = "of gemm: any, portable or native (any)",
     .kind = COMMAND_CALL,
     .read = read_impl},
    {.name = "precision",
     .argument = "LIST",
     .help = "of gemm and dense, with commas: strict, accurate, fast, normwise, and of gemm "
             "normwise1, normwise2, with as many levels, and exact, of f64 (strict)",
     .kind = COMMAND_CALL,
     .read = read_precisions},
    {.name = "once",
     .help = "of start: one pass in this process, the times on a line",
     .kind = COMMAND_FLAG,
     .offset = OF(once)},
    {.name = "seconds",
     .argument = "S",
     .help = "for each case and peer, above 0 and at most 3600 (1; of grid, dense and mixes 0.05)",
     .kind = COMMAND_CALL,
     .read = read_seconds},
    {.name = "json",
     .argument = "FILE",
     .help = "write the rows as JSON",
     .kind = COMMAND_TEXT,
     .offset = OF(json)},
    {.name = "svg",
     .argument = "FILE",
     .help = "draw the rows that have a size: speed over size",
     .kind = COMMAND_TEXT,
     .offset = OF(svg)},
};

static const command_line line = {
    .program = "hal-bench",
    .usage = "gemm|pointwise|reduce|dispatch|batch|start|sequential|transfer|"
             "collectives|grid|dense|mixes|optimizer|kernels|attention|operators|quantised|"
             "grouped [options]",
    .exit_status =
        "Exit status: 0 all measured, 1 a wrong result or a failed call, 2 wrong usage.\n",
    .options = rows,
    .option_count = sizeof rows / sizeof rows[0],
    .has_operand = true,
    .operand_offset = OF(suite),
};

/* Options that only some suites have. */
static command_result check_owners(const bench_options *options)
{
    const bool seeded = options->random == 0; /* --random has a seed and a largest size */
    const struct {
        const char *option;
        bool is_given;
        const char *suites;
    } owners[] = {
        {"--once", options->once, "start"},
        {"--peer", options->peer_count > 0, "gemm"},
        {"--second", options->second != NULL, "sequential,grid"},
        {"--seed", seeded && options->seed != 0,
         "sequential,grid,mixes,kernels,attention,operators,quantised,grouped"},
        {"--epilogue", options->epilogue, "gemm"},
        {"--regret", options->regret, "gemm"},
        {"--random", options->random != 0,
         "gemm,grid,mixes,kernels,attention,operators,quantised,grouped"},
        {"--settle", options->settle != 0, "kernels"},
        {"--caches", options->caches != NULL, "kernels"},
        {"--layout", options->layout != NULL, "gemm"},
        {"--batch", options->batch != 0, "gemm"},
        {"--join", options->join_count > 0, "sequential,grid,dense,mixes,attention,operators"},
        {"--cases", options->cases != NULL, "sequential"},
        {"--filter", options->filter != NULL, "grid,dense,mixes,kernels,attention,operators"},
        {"--list", options->list, "grid,dense,mixes,attention,operators"},
        {"--largest", seeded && options->largest != 0, "grid,mixes,kernels,attention,operators"},
        {"--to", options->to != NULL, "transfer"},
        {"--ranks", options->ranks != 0, "collectives,dense"},
        {"--spread", options->spread, "collectives,dense"},
        {"--any-order", options->any_order, "collectives,dense"},
    };
    for (size_t i = 0; i < sizeof owners / sizeof owners[0]; i++) {
        if (owners[i].is_given && !bench_lists(owners[i].suites, options->suite)) {
            return command_line_wrong(&line, "%s: expected a suite of %s, got %s", owners[i].option,
                                      owners[i].suites, options->suite);
        }
    }
    return COMMAND_GO_ON;
}

/* Options that go together, or do not. */
static command_result check_values(const bench_options *options)
{
    const bool gemm = strcmp(options->suite, "gemm") == 0;
    if (options->layout && (strspn(options->layout, "nt") != 2 || options->layout[2] != 0)) {
        return command_line_wrong(&line, "--layout: expected nn, nt, tn or tt, got %s",
                                  options->layout);
    }
    if (options->random != 0 && (options->size_count > 0 || options->layout || options->batch)) {
        return command_line_wrong(&line, "--random: expected no --sizes, --layout or --batch");
    }
    for (int i = 0; gemm && i < options->size_count; i++) {
        if (options->sizes[i][2] == 0) {
            return command_line_wrong(&line, "--sizes: expected n or mxnxk of gemm, got %lldx%lld",
                                      (long long)options->sizes[i][0],
                                      (long long)options->sizes[i][1]);
        }
    }
    if (strcmp(options->suite, "transfer") == 0 && !options->to) {
        return command_line_wrong(&line, "transfer: expected --to, got nothing");
    }
    return COMMAND_GO_ON;
}

int bench_options_parse(int count, char **arguments, bool (*is_suite)(const char *name),
                        bench_options *options)
{
    command_result result = command_line_read(&line, count, arguments, options);
    if (result == COMMAND_GO_ON && !is_suite(options->suite)) {
        result = command_line_wrong(&line, "expected one of the suites, got %s", options->suite);
    }
    if (result == COMMAND_GO_ON) {
        result = check_owners(options);
    }
    if (result == COMMAND_GO_ON) {
        result = check_values(options);
    }
    return result == COMMAND_GO_ON ? 0 : result == COMMAND_HELP_PRINTED ? -1 : 1;
}
