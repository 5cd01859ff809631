/* Products of quantised weights by matrix units: where emit_quantised_units.c serves, and its
 * tiles. */
#include "quantised.h"

enum { LANES = HAL_IR_MATRIX_LANES, ROWS = 8, COLUMNS = 16, MAX_ROW_TILES = 8 };
enum { TABLE_BYTES = 256 * LANES * 4, LEAST_RUN = 8, UNIT_BYTES = 16 };

bool ops_quantised_units_serve(const ops_context *context, uint32_t precision, hal_type a,
                               int64_t rows, const ops_quantised_weights *w)
{
    const hal_device_info *info = context->info;
    return precision != HAL_GEMM_STRICT && !context->quantised.without_units &&
           (a == HAL_TYPE_F16 || a == HAL_TYPE_BF16) && (info->matrix_types & HAL_TYPE_BIT(a)) &&
           info->subgroup_width == LANES && (info->storage_types & HAL_TYPE_BIT(HAL_TYPE_U16)) &&
           !w->given->zeros && w->k > 0 &&
           rows <= (context->quantised.units ? MAX_ROW_TILES * ROWS
                                             : context->tuning->gemm.quantised_unit_rows);
}

/* Bits that tell of which powers of two all numbers are multiples. */
static int64_t combine(const int64_t *numbers, uint32_t count)
{
    int64_t bits = 0;
    for (uint32_t i = 0; i < count; i++) {
        bits |= numbers[i];
    }
    return bits;
}

/* The part of B that a lane loads. */
typedef struct lane_words {
    uint32_t bits;  /* of a weight */
    uint32_t words; /* of 32 bits, in one load; 0: no load fits the layout */
    bool exchanged, is_blocked;
} lane_words;

/* Words that a lane reads of B at once: its run of k is whole, and the runs of the 4 lanes of a
 * column are in one block, or each is in one, and lanes exchange words. */
static lane_words choose_words(const ops_gemm_task *t, const ops_quantised_weights *w)
{
    const ops_gemm_place *b = &t->work.b;
    const int64_t numbers[] = {b->base, b->batch_stride, t->work.n > 1 ? b->column_stride : 0,
                               (int64_t)t->bindings.ranges[t->key.slots[1]].offset};
    const int64_t bytes = combine(numbers, 4);
    const bool is_blocked = w->block != w->k;
    lane_words found = {.bits = w->bits, .is_blocked = is_blocked};
    for (found.words = 4; found.words > 0; found.words /= 2) {
        const int64_t run = found.words * 32 / w->bits;
        const bool has_runs = run >= LEAST_RUN && bytes % (4 * found.words) == 0 && w->k % run == 0;
        const bool is_block = w->block % run == 0 && run == 4 * LEAST_RUN;
        found.exchanged = is_blocked && w->block % (4 * run) != 0 && is_block;
        if (has_runs && (!is_blocked || found.exchanged || w->block % (4 * run) == 0)) {
            break;
        }
    }
    return found;
}

/* Binds A as words of 16 bytes, or as halves. */
static void bind_a(ops_gemm_task *t)
{
    enum { UNIT = UNIT_BYTES / 2 };
    ops_gemm_place *a = &t->work.a;
    const uint32_t slot = t->key.slots[0];
    const int64_t numbers[] = {a->base, a->batch_stride, t->work.m > 1 ? a->row_stride : 0,
                               (int64_t)(t->bindings.ranges[slot].offset / 2), t->work.k};
    const bool has_units = t->key.a.k_contiguous && combine(numbers, 5) % UNIT == 0;
    t->key.a.width = has_units ? UNIT : 1;
    t->bindings.types[slot] = has_units ? HAL_TYPE_U32 : HAL_TYPE_U16;
    if (has_units) {
        a->base /= 2;
        a->batch_stride /= 2;
        a->row_stride /= 2;
    }
}

static void bind_b(ops_gemm_task *t)
{
    ops_gemm_place *b = &t->work.b;
    t->bindings.types[t->key.slots[1]] = HAL_TYPE_U32;
    t->key.quantisation.by_words = 1;
    b->base /= 4;
    b->batch_stride /= 4;
    b->column_stride /= 4;
    b->row_stride = 1;
}

static uint32_t turn_of(const ops_gemm_tiles *s)
{
    return (uint32_t)s->block_k * s->intra_group_split_k * s->unroll;
}

/* Turns of A that a group has in shared memory, those of all k where it has room, else of a stage,
 * of which it has two. 0: it has no room. */
static uint32_t stage_turns(const ops_context *context, const ops_gemm_kernel_key *key, int64_t k,
                            bool *has_all)
{
    enum { MOST = UINT8_MAX, GROUP_BYTES = 1024 }; /* that a group takes itself */
    const ops_gemm_tiles *s = &key->tiles;
    const uint64_t groups = s->min_groups_per_unit, all = context->info->shared_bytes;
    const uint64_t room = groups > 1 ? all / groups - GROUP_BYTES : all;
    const uint64_t partials = 4ull * s->intra_group_split_k * s->block_n * s->block_m;
    const uint64_t table = partials > TABLE_BYTES ? partials : TABLE_BYTES;
    const uint64_t turn = 2ull * turn_of(s) * (s->block_m / ROWS) * key->unit_rows;
    const uint64_t fit = room > table ? (room - table) / turn : 0;
    const uint64_t needed = ops_gemm_blocks(k, turn_of(s));
    uint64_t turns = 1;
    while (turns < needed) { /* powers of two, for fewer kernels */
        turns *= 2;
    }
    turns = turns < fit ? turns : fit;
    *has_all = turns >= needed && turns <= MOST;
    turns = *has_all ? turns : fit / 2;
    return (uint32_t)(turns < MOST ? turns : MOST);
}

static bool choose_stage(const ops_context *context, ops_gemm_kernel_key *key, int64_t k)
{
    bool has_all = false;
    uint32_t turns = stage_turns(context, key, k, &has_all);
    if (turns == 0) {
        key->tiles.min_groups_per_unit = 1;
        turns = stage_turns(context, key, k, &has_all);
    }
    key->unit_turns = (uint8_t)turns;
    key->unit_has_all = has_all;
    return turns > 0;
}

/* Turns that B is ahead, as many as registers have room for, up to 2. False: they have none. */
static bool choose_ahead(ops_gemm_kernel_key *key, const lane_words *w, uint32_t items)
{
    enum { FILE = 1 << 16, MOST = 2, MOST_OF_ITEM = 255, OTHERS = 48 };
    const ops_gemm_tiles *s = &key->tiles;
    const uint32_t lines = s->thread_n, tiles = lines / 2, row_tiles = s->block_m / ROWS;
    const uint32_t sums = tiles * row_tiles * 4 * (w->is_blocked ? 2 : 1) + row_tiles * 4;
    const uint32_t of_turn =
        s->unroll / (w->exchanged ? 4 : 1) * lines * (w->words + w->is_blocked);
    const uint32_t room = FILE / items / s->min_groups_per_unit;
    const uint32_t most = room < MOST_OF_ITEM ? room : MOST_OF_ITEM;
    key->unit_ahead = 0;
    while (key->unit_ahead < MOST && OTHERS + sums + of_turn * (key->unit_ahead + 2u) <= most) {
        key->unit_ahead++;
    }
    return key->unit_ahead > 0;
}

/* Bytes that a compute unit moves in the time of a product: groups read their columns of B and all
 * of A's rows, and write a table. Few warps have few bytes in flight. */
static uint64_t tiles_cost(const ops_context *context, const ops_gemm_task *t,
                           const ops_gemm_tiles *s, uint32_t bits)
{
    enum { GROUP_BYTES = 12 << 10, LEAST_ITEMS = 512 };
    const uint32_t units = context->info->compute_units ? context->info->compute_units : 1;
    const uint64_t items =
        (uint64_t)s->intra_group_split_k * s->block_n / (8u * s->thread_n) * LANES;
    const uint64_t groups =
        ops_gemm_blocks(t->work.n, s->block_n) * ops_gemm_blocks(t->work.m, s->block_m);
    const uint64_t most = ops_gemm_blocks(groups * t->product.batch, units);
    const uint64_t b = (uint64_t)s->block_n * t->work.k * bits / 8;
    const uint64_t a = 2 * (uint64_t)t->work.k * (t->work.m < s->block_m ? t->work.m : s->block_m);
    const uint64_t cost = most * (b + a / 2 + GROUP_BYTES);
    return most * items < LEAST_ITEMS ? cost * LEAST_ITEMS / (most * items) : cost;
}

static ops_gemm_tiles make_tiles(const ops_gemm_task *t, const lane_words *w, uint32_t tiles,
                                 uint32_t warps_n, uint32_t warps)
{
    const uint32_t run = w->words * 32 / w->bits / (w->exchanged ? 4 : 1);
    const uint32_t slices = warps / warps_n;
    uint32_t rows = ROWS, unroll = w->exchanged ? 4 : 4 / w->words;
    while (rows < MAX_ROW_TILES * ROWS && rows < t->work.m) {
        rows *= 2;
    }
    while (4 * run * slices * unroll < warps * LANES) { /* each work-item copies a part of A */
        unroll *= 2;
    }
    return (ops_gemm_tiles){.block_m = (uint16_t)rows,
                            .block_n = (uint16_t)(tiles * warps_n * COLUMNS),
                            .block_k = (uint16_t)(4 * run),
                            .intra_group_split_k = (uint16_t)slices,
                            .lanes_m = 4,
                            .lanes_n = 8,
                            .thread_m = (uint8_t)(rows / 4),
                            .thread_n = (uint8_t)(2 * tiles),
                            .strip_m = 2,
                            .strip_n = 1,
                            .min_groups_per_unit = (uint8_t)(rows <= 16 && warps <= 8 ? 2 : 1),
                            .unroll = (uint8_t)unroll,
                            .matrix = 1};
}

static bool choose_tiles(const ops_context *context, ops_gemm_task *t, const lane_words *w)
{
    enum { MAX_TILES = 2, LEAST_WARPS = 4, MOST_WARPS = 16, MAX_UNROLL = 8 };
    const hal_device_info *info = context->info;
    const ops_quantised_way *way = &context->quantised;
    ops_gemm_kernel_key key = t->key;
    key.unit_rows = 1;
    while (key.unit_rows < ROWS && key.unit_rows < t->work.m) {
        key.unit_rows *= 2;
    }
    uint64_t least = UINT64_MAX;
    for (uint32_t tiles = MAX_TILES; tiles > 0; tiles--) {
        for (uint32_t warps = LEAST_WARPS; warps <= MOST_WARPS; warps *= 2) {
            for (uint32_t warps_n = 1; warps_n <= warps; warps_n *= 2) {
                key.tiles = make_tiles(t, w, tiles, warps_n, warps);
                const uint32_t items = warps * LANES;
                bool fits = items <= info->max_group_items && items <= info->max_group_size[0] &&
                            key.tiles.unroll <= MAX_UNROLL &&
                            choose_stage(context, &key, t->work.k);
                const bool has_registers = choose_ahead(&key, w, items);
                if (way->ahead) {
                    key.unit_ahead = way->ahead;
                }
                fits = fits && (has_registers || way->ahead);
                const bool is_given = !way->tiles || (tiles == way->tiles && warps == way->warps &&
                                                      warps_n == way->warps_n);
                const uint64_t cost = tiles_cost(context, t, &key.tiles, w->bits);
                if (fits && is_given && cost < least) {
                    least = cost;
                    t->key = key;
                }
            }
        }
    }
    return least < UINT64_MAX;
}

/* Femtoseconds of a weight by the kernel without matrix units, which has 1, 2, 4 or 8 rows in
 * registers; fitted to the figures of docs/quantised.md as those below. */
static uint32_t lanes_time(const ops_quantised_weights *w, int64_t m)
{
    const uint32_t format = w->given->format;
    const uint32_t decoding = format < OPS_QUANTISED_E4M3 ? 200 : w->bits == 4 ? 270 : 400;
    const uint32_t of_row = format < OPS_QUANTISED_E4M3 ? 70 : w->bits == 4 ? 95 : 90;
    uint32_t rows = 1;
    while (rows < m) {
        rows *= 2;
    }
    return decoding + of_row * rows;
}

/* The same by matrix units, to which a group brings rows of A for its columns. */
static uint32_t units_time(const lane_words *w, uint32_t rows, uint32_t columns)
{
    enum { OF_BYTE = 700 };
    const uint32_t decoding = w->exchanged ? 320 : w->words < 4 ? 530 : w->bits == 4 ? 270 : 420;
    return decoding + OF_BYTE * 2 * rows / columns;
}

/* Whether matrix units take less time than the kernel without them, which brings rows of A to few
 * columns as well, or with more rows than that one has, than a copy. */
static bool is_faster(const ops_context *context, const ops_quantised_weights *w,
                      const lane_words *words, const ops_gemm_task *t)
{
    enum { COPIED = 1300, MANY_COLUMNS = 128, MOST_ROWS = 16 };
    const int64_t m = t->work.m;
    if (m > MOST_ROWS && !words->exchanged) { /* about as fast as a copy, or slower */
        return false;
    }
    if (m <= OPS_GEMM_QUANTISED_ROWS) {
        return units_time(words, (uint32_t)m, MANY_COLUMNS) < lanes_time(w, m);
    }
    const double weights = (double)t->work.n * (double)t->work.k * (double)t->product.batch;
    const double copied = COPIED * weights + 1e6 * context->tuning->gemm.copy_launch_ns;
    return units_time(words, (uint32_t)m, t->key.tiles.block_n) * weights < copied;
}

bool ops_quantised_units_complete(const ops_context *context, const ops_quantised_weights *w,
                                  ops_gemm_task *t)
{
    const ops_gemm_kernel_key before = t->key;
    const lane_words words = t->key.b.k_contiguous ? choose_words(t, w) : (lane_words){.words = 0};
    if (words.words == 0 || t->bindings.access[t->key.slots[0]] != HAL_ACCESS_READ ||
        !choose_tiles(context, t, &words)) {
        return false;
    }
    if (!context->quantised.units && !is_faster(context, w, &words, t)) {
        t->key = before;
        return false;
    }
    bind_a(t);
    bind_b(t);
    t->key.unit_words = (uint8_t)words.words;
    t->key.unit_exchanged = words.exchanged;
    t->key.whole = t->work.k % turn_of(&t->key.tiles) == 0 && t->work.n % t->key.tiles.block_n == 0;
    return true;
}
