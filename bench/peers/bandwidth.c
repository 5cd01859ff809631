/* The baselines of a device. */
#include "peers/bandwidth.h"
#include "peers/raw/raw.h"

bool baselines_create(bench_state *bench, int64_t count, baselines *made)
{
    const uint32_t kind = bench->info->kind;
    *made = (baselines){.bench = bench, .count = count};
    if (kind == HAL_DEVICE_CPU || kind == HAL_DEVICE_SOFTWARE) {
        made->triad = triad_create((size_t)count, bench->options.threads);
        if (!made->triad) {
            return bench_fail(bench, "no memory for the triad of %lld floats", (long long)count);
        }
    }
    made->copies = kind != HAL_DEVICE_CPU;
    return !made->copies || copy_create(bench, 4 * (uint64_t)count, &made->copy);
}

void baselines_destroy(baselines *made)
{
    triad_destroy(made->triad);
    copy_destroy(&made->copy);
}

int baselines_list(baselines *all, measured *competitors)
{
    const raw_device *raw = all->bench->raw;
    int count = 1;
    if (all->triad) {
        competitors[count++] =
            (measured){.function = triad_run, .user = all->triad, .has_threads = true};
    }
    if (all->triad && triad_can_stream()) {
        competitors[count++] =
            (measured){.function = triad_run_streaming, .user = all->triad, .has_threads = true};
    }
    if (all->copies) {
        competitors[count++] = (measured){.function = copy_run, .user = &all->copy};
    }
    if (all->copies && raw) {
        competitors[count++] = (measured){.function = raw->api->copy, .user = all->bench->raw};
    }
    return count;
}

/* A triad moves three floats per element, a copy two. */
void baselines_add(const baselines *all, const measured *competitors, int count, bench_row *row)
{
    for (int i = 1; i < count; i++) {
        const measure_function function = competitors[i].function;
        const bool is_triad = function == triad_run || function == triad_run_streaming;
        const char *name = function == triad_run             ? "triad"
                           : function == triad_run_streaming ? "triad_streaming"
                           : function == copy_run            ? "copy"
                                                             : "raw_copy";
        const int64_t moved = is_triad ? 12 * (all->count / 16 * 16) : 8 * all->count;
        bench_peer *peer = bench_add_peer(row, name, &competitors[i].time);
        peer->gbps = (double)moved / peer->time.median_us * 1e-3;
    }
    if (all->bench->raw && all->bench->raw->failed) {
        bench_fail(all->bench, "%s", all->bench->raw->message);
    }
}
