/* How the ratios to the peers of a run are distributed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/bench.h"

static double worst_ratio(const bench_row *row)
{
    double worst = HUGE_VAL;
    for (int i = 0; i < row->peer_count; i++) {
        worst = fmin(worst, row->peers[i].ratio);
    }
    return worst;
}

static int compare_worst(const void *a, const void *b)
{
    const double x = worst_ratio(a), y = worst_ratio(b);
    return (x > y) - (x < y);
}

static int compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of at least one number, in ascending order. */
static double median_of(const double *sorted, int count)
{
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2.0;
}

/* Of --regret: how much longer the chosen kernels take than the best of those that there are, by
 * the least times: medians of calls of 1 us differ by a third where the host has other work. */
static void regret_note(bench_state *bench, const double *ratios, int count)
{
    bench_note(bench,
               "Regret, the time over that of the best alternative: %d cases, median %.1f%%, 95 of "
               "100 at most %.1f%%, worst %.1f%%",
               count, 100.0 / median_of(ratios, count) - 100.0, 100.0 / ratios[count / 20] - 100.0,
               100.0 / ratios[0] - 100.0);
}

/* Appends how the ratios to one peer are distributed, over all rows or the random ones. */
static void ratios_note(bench_state *bench, const char *peer, bool only_random)
{
    double *ratios = calloc((size_t)bench->row_count + 1, sizeof *ratios);
    int count = 0, well = 0;
    for (int i = 0; i < bench->row_count && ratios != NULL; i++) {
        const bench_row *row = &bench->rows[i];
        for (int p = 0; p < row->peer_count; p++) {
            if (strcmp(row->peers[p].name, peer) == 0 &&
                (!only_random || strstr(row->name, " random"))) {
                ratios[count++] = strcmp(peer, BENCH_BEST) == 0
                                      ? row->peers[p].time.min_us / row->time.min_us
                                      : row->peers[p].ratio;
                well += row->peers[p].ratio >= 0.9;
                break;
            }
        }
    }
    if (count > 0) {
        qsort(ratios, (size_t)count, sizeof *ratios, compare_numbers);
    }
    if (count > 0 && strcmp(peer, BENCH_BEST) == 0) {
        regret_note(bench, ratios, count);
    } else if (count > 0) {
        bench_note(bench,
                   "%s over %s: %d cells, worst %.2f, median %.2f, %d at 0.9 or more (%.0f%%)",
                   only_random ? "Random cells" : "All cells", peer, count, ratios[0],
                   median_of(ratios, count), well, 100.0 * well / count);
    }
    free(ratios);
}

void ratios_finish(bench_state *bench)
{
    char seen[BENCH_MAX_PEERS][32];
    int count = 0;
    for (int i = 0; i < bench->row_count; i++) {
        for (int p = 0; p < bench->rows[i].peer_count; p++) {
            int at = 0;
            while (at < count && strcmp(seen[at], bench->rows[i].peers[p].name) != 0) {
                at++;
            }
            if (at == count && count < BENCH_MAX_PEERS) {
                memcpy(seen[count++], bench->rows[i].peers[p].name, sizeof seen[0]);
            }
        }
    }
    for (int i = 0; i < count; i++) {
        ratios_note(bench, seen[i], false);
        ratios_note(bench, seen[i], true);
    }
    qsort(bench->rows, (size_t)bench->row_count, sizeof *bench->rows, compare_worst);
}
