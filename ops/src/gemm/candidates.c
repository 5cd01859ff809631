/* Ways to compute a product, see candidates.h. */
#include "candidates.h"

#include "cost.h"

#include <stdlib.h>

/* Least depth of a part; most parts; most groups for each unit of tiles that could be larger. These
 * and the waves of parts_add are not fitted: they bound the number of candidates. */
enum { MIN_DEPTH = 128, MAX_PARTS = 64, MAX_GROUPS = 64 };

typedef struct candidate_list {
    const hal_device_info *info;
    const ops_gemm_shape *shape;
    uint32_t count;
    ops_gemm_candidate candidates[OPS_GEMM_MAX_CANDIDATES];
} candidate_list;

static uint64_t group_count(const ops_gemm_shape *shape, const ops_gemm_tiles *t)
{
    return ops_gemm_blocks((uint64_t)shape->m, t->block_m) *
           ops_gemm_blocks((uint64_t)shape->n, t->block_n) * shape->batch;
}

static bool tiles_fit_grid(const hal_device_info *info, const ops_gemm_shape *shape,
                           const ops_gemm_tiles *t)
{
    return ops_gemm_blocks((uint64_t)shape->n, t->block_n) <= info->max_grid[0];
}

/* Whether tiles may be worth a try: they exceed the matrix less than twice, or are small, and are
 * not too many where larger ones would do. */
static bool tiles_are_sensible(const hal_device_info *info, const ops_gemm_shape *shape,
                               const ops_gemm_tiles *t)
{
    enum { SMALL_SIDE = 32 };
    const bool can_grow = (t->block_m < SMALL_SIDE && t->block_m < shape->m) ||
                          (t->block_n < SMALL_SIDE && t->block_n < shape->n);
    return tiles_fit_grid(info, shape, t) &&
           (t->block_m <= SMALL_SIDE || t->block_m / 2 < shape->m) &&
           (t->block_n <= SMALL_SIDE || t->block_n / 2 < shape->n) &&
           (!can_grow || !(t->stages || t->unroll) ||
            group_count(shape, t) <= (uint64_t)MAX_GROUPS * info->compute_units);
}

static void candidate_add(candidate_list *list, uint32_t number, uint32_t depth)
{
    const ops_gemm_shape *shape = list->shape;
    ops_gemm_candidate *c = &list->candidates[list->count];
    c->depth = depth;
    ops_gemm_get_tiles(list->info, shape, number, depth ? depth : shape->k, &c->tiles, &c->rates);
    c->ns = ops_gemm_estimate_ns(list->info, shape, c);
    list->count += list->count + 1 < OPS_GEMM_MAX_CANDIDATES;
}

/* Whether the partial sums and their reduction fit the device. */
static bool parts_fit(const hal_device_info *info, const ops_gemm_shape *shape, uint64_t parts)
{
    const uint32_t sum = hal_type_size(hal_type_of_value(shape->type));
    ops_gemm_tiles reduce;
    ops_gemm_choose_reduce_tiles(info, shape->tuning, shape->m, shape->n, (uint32_t)parts, sum,
                                 &reduce);
    return ops_gemm_blocks((uint64_t)shape->n, reduce.block_n) <= info->max_grid[0] &&
           (double)shape->m * (double)shape->n * (double)parts * sum <= (double)info->max_binding;
}

/* Adds tiles with as many parts of k as give each unit some groups; of intra-group split-K, whose
 * tiles are many, fewer ways. */
static void parts_add(candidate_list *list, uint32_t number, const ops_gemm_tiles *t)
{
    static const uint8_t waves[] = {1, 2, 3, 4, 6};
    const hal_device_info *info = list->info;
    const ops_gemm_shape *shape = list->shape;
    const uint64_t groups = group_count(shape, t);
    uint64_t last = 0;
    for (uint32_t w = 0; w < sizeof waves; w++) {
        const uint64_t most = (uint64_t)waves[w] * info->compute_units / groups;
        const uint64_t parts = most < MAX_PARTS ? most : MAX_PARTS;
        if (parts < 2 || (t->unroll && waves[w] == 3)) {
            continue;
        }
        uint64_t depth = ops_gemm_blocks((uint64_t)shape->k, (uint32_t)parts);
        depth = depth < MIN_DEPTH ? MIN_DEPTH : depth;
        depth = ops_gemm_blocks(depth, OPS_GEMM_DEPTH_STEP) * OPS_GEMM_DEPTH_STEP;
        if (depth < (uint64_t)shape->k && depth != last && parts_fit(info, shape, parts)) {
            last = depth;
            candidate_add(list, number, (uint32_t)depth);
        }
    }
}

static int compare(const void *a, const void *b)
{
    const double x = ((const ops_gemm_candidate *)a)->ns, y = ((const ops_gemm_candidate *)b)->ns;
    return (x > y) - (x < y);
}

/* Lists the sensible tiles, or if there are none those that fit the grid, or all: intra-group
 * split-K fits any group, so that the list is not empty. Processors take kernels that stage nothing
 * only where they have no others. */
static void candidates_list(candidate_list *list, bool has_parts)
{
    const hal_device_info *info = list->info;
    const ops_gemm_shape *shape = list->shape;
    const bool is_cpu = info->kind == HAL_DEVICE_CPU || info->item_vector_bytes > 0;
    for (int level = 0; level < 3 && list->count == 0; level++) {
        ops_gemm_tiles t;
        const ops_gemm_rates *rates;
        for (uint32_t i = 0; ops_gemm_get_tiles(info, shape, i, shape->k, &t, &rates); i++) {
            if (t.block_m == 0 || (level < 2 && is_cpu && !t.stages) ||
                (shape->is_staged && !t.stages) ||
                (level == 0 && !tiles_are_sensible(info, shape, &t)) ||
                (level == 1 && !tiles_fit_grid(info, shape, &t))) {
                continue;
            }
            candidate_add(list, i, 0);
            if (has_parts && shape->batch == 1 && (t.stages || t.unroll) && !is_cpu) {
                parts_add(list, i, &t);
            }
        }
    }
}

uint32_t ops_gemm_find_candidate(const hal_device_info *info, const ops_gemm_shape *shape,
                                 bool has_parts, uint32_t number, ops_gemm_candidate *found)
{
    candidate_list list;
    list.info = info;
    list.shape = shape;
    list.count = 0;
    candidates_list(&list, has_parts);
    if (list.count == 0 && shape->is_staged) {
        list.candidates[list.count++] =
            (ops_gemm_candidate){.tiles = ops_gemm_least_staged_tiles()};
    }
    if (number == 1 && list.count > 0) {
        const ops_gemm_candidate *best = &list.candidates[0];
        for (uint32_t i = 1; i < list.count; i++) {
            best = list.candidates[i].ns < best->ns ? &list.candidates[i] : best;
        }
        *found = *best;
    } else if (number <= list.count) {
        qsort(list.candidates, list.count, sizeof *list.candidates, compare);
        *found = list.candidates[number - 1];
    }
    return list.count;
}
