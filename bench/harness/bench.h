/* State shared by the suites of hal-bench: options, rows of results, devices. Each suite adds
 * rows. */
#ifndef BENCH_HARNESS_BENCH_H
#define BENCH_HARNESS_BENCH_H

#include <ops/ops.h>
#include <stdbool.h>
#include <stddef.h>

#include "harness/measure.h"

#define BENCH_MAX_PEERS 8
#define BENCH_MAX_SIZES 32
#define BENCH_MAX_JOINS 4
#define BENCH_MAX_CLASSES 7      /* of precision */
#define BENCH_MAX_CANDIDATES 100 /* of each implementation */
#define BENCH_BEST "best"        /* the peer that is the best of --regret's alternatives */

typedef struct bench_options {
    const char *suite, *device, *json, *svg;
    const char *peers[BENCH_MAX_PEERS];
    int peer_count;
    int64_t sizes[BENCH_MAX_SIZES][3]; /* m, n, k */
    int size_count;                    /* 0: the suite's own */
    const char *types;                 /* with commas; null: the suite's own */
    ops_gemm_impl impl;
    hal_gemm_precision precision; /* of the rows that are measured now */
    uint32_t levels;              /* of those, for normwise; 0: the model chooses */
    hal_gemm_precision precisions[BENCH_MAX_CLASSES];
    uint32_t levels_of[BENCH_MAX_CLASSES];
    int precision_count; /* 0: strict alone */
    int threads;
    bool thread_time;   /* processor time of the calling thread in place of the time that passes */
    bool raw;           /* also measures the driver's own calls */
    bool once;          /* of start: this process is one pass */
    double seconds;     /* for each row; 0: the suite's own */
    const char *second; /* of sequential: a second device, which takes turns */
    const char *to;     /* of transfer: the device that is copied to */
    unsigned ranks;     /* of collectives, 0: two; of dense, 0: no group */
    bool spread;        /* a rank on each device of the plugin */
    bool any_order;     /* of additions of collectives */
    const char *joins[BENCH_MAX_JOINS];
    int join_count;
    uint64_t seed;       /* of random cases; 0: bench_seed_of draws one */
    unsigned random;     /* of gemm: number of random products; 0: those of `sizes` */
    const char *layout;  /* of gemm: n or t for A and for B, stored transposed; null: nn */
    unsigned batch;      /* of gemm: products of one call; 0: one */
    unsigned candidates; /* of --regret: kernels of each implementation */
    bool regret;         /* of gemm: the other configurations are measured as well */
    bool epilogue;       /* of gemm: each product is also measured with bias and GELU */
    const char *filter; /* of grid and dense: words in the names of cells, with commas; null: all */
    uint64_t largest;   /* of grid: most elements of a cell; of gemm: m, n, k; 0: its own limit */
    bool list;          /* of grid and dense: prints the cells */
    unsigned settle;    /* of kernels: shapes of each case that are repeated; 0: none */
    const char *caches; /* of kernels: the folder of all compile caches; null: none are used */
    const char *cases;  /* of sequential, with commas; null: all */
} bench_options;

/* A competitor's or baseline's result in the same run. */
typedef struct bench_peer {
    char name[32];
    measurement time;
    double gflops, gbps;
    double ratio; /* of the device's rate to this one; without rates: of its time to the device's */
} bench_peer;

/* One of --regret's alternatives: the config of a portable kernel, or nothing, and what
 * ops_gemm_describe says of it, cut. */
typedef struct bench_candidate {
    char config[96];
    double median_us, min_us;
    int runs;
    char how[192];
} bench_candidate;

/* Counts that do not apply to a case are 0. */
typedef struct bench_row {
    char name[96];
    hal_type type;
    int64_t m, n, k;
    measurement time;
    double first_ms;  /* of the first call in the process; 0: not measured */
    double second_ms; /* of gemm: of one more call */
    double gflops, gbps;
    bench_peer peers[BENCH_MAX_PEERS];
    int peer_count;
    bench_candidate *candidates; /* freed by main.c; null: none */
    int candidate_count;
    char how[256];      /* of gemm: what ops_gemm_describe says, cut */
    char best_how[256]; /* of --regret: the same of the fastest way, if it is not the choice */
} bench_row;

/* A device with its queue and context. */
typedef struct bench_place {
    hal_device *device;
    const hal_device_info *info;
    hal_queue *queue;
    ops_context *ops;
} bench_place;

typedef struct bench_state {
    bench_options options;
    hal_device *device;
    const hal_device_info *info;
    hal_queue *queue;
    ops_context *ops;
    bench_place second;     /* zeros without --second */
    struct raw_device *raw; /* null without --raw */
    bench_row *rows;
    int row_count;
    int printed_count;
    bool as_they_come; /* rows are printed when the next one begins, not at the end */
    char **notes;      /* notes below the table */
    int note_count;
    char date[16], command[1024]; /* of this run */
    double load;                  /* of the machine before the run; below 0: unknown */
    bool failed;                  /* a result was wrong, or a call failed */
} bench_state;

/* Prints why a row cannot be measured; the run continues and exits with status 1. Returns false. */
bool bench_fail(bench_state *bench, const char *format, ...) HAL_PRINTF(2, 3);

/* True for HAL_OK, else bench_fail with hal's message. */
bool bench_ok(bench_state *bench, hal_status status, const char *what);

/* Appends a row; null without memory. */
bench_row *bench_add(bench_state *bench, const char *name, hal_type type);

/* Adds a competitor's times to a row. */
bench_peer *bench_add_peer(bench_row *row, const char *name, const measurement *time);

/* Appends a note, printed after the table and in the JSON. */
void bench_note(bench_state *bench, const char *format, ...) HAL_PRINTF(2, 3);

/* Fills in the rates of a row and of its peers from their times, and the ratios. */
void bench_rate(bench_row *row, double flops, double bytes);

/* Whether a list with commas has the word. */
bool bench_lists(const char *list, const char *word);

/* Selects a class of --precision for the rows to come; false after the last one. */
bool bench_select_precision(bench_options *options, int index);
const char *bench_precision_name(hal_gemm_precision precision);

/* Whether a name holds one of the words of --filter (with commas; null: any name). */
bool bench_name_passes(const char *name, const char *filter);

/* Whether --type names the type; without the option, `by_default`. */
bool bench_wants(const bench_state *bench, hal_type type, bool by_default);

/* Random floats in [-1, 1): the same for the same seed. */
void bench_random(hal_type type, void *elements, size_t count, uint64_t seed);
double bench_value(hal_type type, const void *elements, size_t index);

/* The next word of a random sequence: G. Marsaglia, "Xorshift RNGs", 2003. bench_seed returns the
 * first state. */
uint64_t bench_seed(uint64_t seed);
uint64_t bench_word(uint64_t *state);

/* --seed, or a seed that was hardly used before. */
uint64_t bench_seed_of(const bench_options *options);

/* After bench_join: sorts the rows of many cases by their worst ratio and sums them up in notes
 * (ratios.c). */
void ratios_finish(bench_state *bench);

/* Adds measurements of another program (join.c): each row of the file is a peer of the rows whose
 * name is its case, or starts with it and a comma. False after a printed failure. */
bool bench_join(bench_state *bench, const char *path);

/* Prints the rows that are not printed yet (output.c). */
void output_rows(bench_state *bench);

/* Writes table and JSON (output.c). False when the file cannot be written. */
void output_table(bench_state *bench);
bool output_json(const bench_state *bench);

/* Writes the rows that have a size as a plot (plot.c). False after a printed failure. */
bool output_svg(bench_state *bench);

#endif
