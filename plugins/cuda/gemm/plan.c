/* The choice of the kernel of a matrix product, see gemm/plan.h. */
#include "gemm/plan.h"

#include "gemm/end/inputs.h"
#include "gemm/tile/ring.h"
#include "gemm/wgmma.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* Bytes: of the start of a matrix and of its rows, for tensor maps. */
enum { MAP_ALIGNMENT = 16 };
/* Stages of a part of k that is added through memory, at least: shorter ones did not pay
 * (docs/benchmarks, 2026-11-27-split). */
enum { MIN_PART_STAGES = 4 };
/* The least k of three-term products: each has an error of up to 2^-19, see gemm/tile/sums.c. */
enum { MIN_PARTS_DEPTH = 64 };
static const int64_t MAX_EXTENT = INT32_MAX;
static const int64_t MAX_STRIDE = INT64_C(1) << 40; /* bytes */

/* The model of the time, in cycles of one multiprocessor. Fitted to products of bf16 and f32 on an
 * H100 (docs/benchmarks, 2026-11-24b-wgmma, 2026-11-27-unaligned for rows and for products without
 * tensor maps, 2026-11-27-split for parts through memory, and 2026-11-28-pingpong for turns and
 * epilogues); constants with an asterisk are older, from an H200. L2_*BYTES are what two
 * neighbouring multiprocessors get from the L2 in a cycle; they read once what both want. */
#define CLOCK 1.755          /* cycles a nanosecond */
#define L2_BYTES 108.0       /* neighbouring tiles of single groups */
#define L2_PAIR_BYTES 119.0  /* pairs, which copy a common tile to both */
#define L2_SPLIT_BYTES 80.0  /* groups that split k, which want nothing in common */
#define L2_SPLIT_FLOATS 64.0 /* of F32 (512x4096x4096: 256 columns in 2 parts take 64 us, 128 48) */
#define L2_PARTS_BYTES 88.0  /* groups whose parts are added through memory */
#define L2_TURN_BYTES 88.0   /* groups whose warpgroups take turns */
#define L2_ODD_LINES 1.97    /* cache lines read for a line that begins inside one */
#define L2_IDLE 0.25         /* part of a copy's time that is left where few groups run */
#define LAUNCH_CYCLES 2600.0
#define CLUSTER_CYCLES 155.0      /* more for a launch of clusters */
#define FLUSH_CYCLES 100.0        /* * adding the sums of a stage to those of the tile */
#define REGISTER_CYCLES 150.0     /* * waiting for registers of A in a stage, up to 128 columns */
#define WIDE_REGISTER_CYCLES 90.0 /* * the same with more columns */
#define END_CYCLES 300.0          /* the end of a tile that leaves by tensor maps, */
#define END_COLUMN 27.0           /* and for each of its columns */
#define STAGED_END 880.0          /* the end of a tile that is stored by rows, */
#define STAGED_BYTE 0.05          /* and for each byte of its sums */
#define SPLIT_END 450.0           /* adding the sums of other groups, */
#define SPLIT_BYTE 0.037          /* and for each of their bytes */
#define STAGED_ODD_BYTE 0.055     /* more for a byte of the sums that a group stores one by one */
#define ROWS_END 700.0            /* the end of a tile whose boxes are stored by rows, */
#define ROWS_COLUMN 27.0          /* and for each of its columns */
#define DIRECT_START 1500.0       /* more for a launch without tensor maps of A and B, */
#define DIRECT_STAGE 500.0        /* a stage, */
#define DIRECT_LINE 7.5           /* and each of its lines */
#define DIRECT_REST 0.3    /* part of the shorter of stages and end of a tile, which overlap */
#define PAIR_END 415.0     /* the end of a tile of a pair */
#define OPERATION 1.0      /* an operation of the epilogue, for each column of a tile */
#define TURN_OPERATION 0.5 /* the same where warpgroups take turns, and the part of the time of */
#define TURN_COLUMNS 64    /* at most; wider tiles of 64 rows wait for the L2 more than they save */
#define TURN_DELAY 0.4     /* operations by which the other one multiplies longer */
#define PARTS_END 1750.0   /* adding sums through device memory, */
#define PARTS_BYTE 0.045   /* and for each byte that other groups add of a group's sums */

/* Factors of a stage's multiplications; SHARED_CYCLES: of its reads of shared memory. */
#define WIDE_PARTS 1.25      /* * three-term products above 96 columns, A or B across k */
#define ODD_COLUMNS 1.28     /* 16-bit types, B along n, columns no multiple of 64 */
#define WIDE_TRANSPOSED 1.08 /* * TF32 above 208 columns, A across k */
#define SHARED_CYCLES 1.57   /* 16-bit types */

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static bool operand_is_mappable(const cuda_gemm_operand *o)
{
    const int64_t size = hal_type_size(o->type);
    return o->inner > 0 && o->outer > 0 && o->inner <= MAX_EXTENT && o->outer <= MAX_EXTENT &&
           o->leading < MAX_STRIDE / size && o->leading * size % MAP_ALIGNMENT == 0 &&
           o->batch_stride < MAX_STRIDE / size && o->batch_stride * size % MAP_ALIGNMENT == 0;
}

/* Whether the producer without tensor maps reads an operand. */
static bool operand_is_readable(const cuda_gemm_operand *o)
{
    const int64_t size = hal_type_size(o->type);
    return o->inner > 0 && o->outer > 0 && o->inner <= MAX_EXTENT && o->outer <= MAX_EXTENT &&
           o->leading < MAX_STRIDE / size && o->batch_stride < MAX_STRIDE / size;
}

/* A single line needs no distance to the next one; tensor maps ask for one all the same. */
static int64_t leading_of(hal_type type, int64_t inner, int64_t outer, int64_t leading)
{
    const int64_t step = MAP_ALIGNMENT / hal_type_size(type);
    return outer == 1 ? divide_up(inner, step) * step : leading;
}

static void operands_describe(const hal_gemm_description *d, const cuda_gemm_key *key,
                              cuda_gemm_operand operands[3])
{
    const uint32_t batch_a = d->stride_a != 0 ? d->batch : 1,
                   batch_b = d->stride_b != 0 ? d->batch : 1;
    const uint32_t line = cuda_gemm_line(d->type_a);
    const bool shares_a = key->shared == CUDA_GEMM_SHARES_A,
               shares_b = key->shared == CUDA_GEMM_SHARES_B;
    operands[0] = (cuda_gemm_operand){.type = d->type_a,
                                      .inner = d->transpose_a ? d->m : d->k,
                                      .outer = d->transpose_a ? d->k : d->m,
                                      .leading = d->lda,
                                      .batch_stride = d->stride_a,
                                      .batch = batch_a,
                                      .box_inner = line,
                                      .box_outer = d->transpose_a ? line
                                                   : shares_a     ? cuda_gemm_rows(key) / 2
                                                                  : cuda_gemm_rows(key)};
    operands[1] = (cuda_gemm_operand){.type = d->type_b,
                                      .inner = d->transpose_b ? d->k : d->n,
                                      .outer = d->transpose_b ? d->n : d->k,
                                      .leading = d->ldb,
                                      .batch_stride = d->stride_b,
                                      .batch = batch_b,
                                      .box_inner = line,
                                      .box_outer = !d->transpose_b ? line
                                                   : shares_b      ? key->columns / 2
                                                                   : key->columns};
    operands[2] = (cuda_gemm_operand){.type = d->type_c,
                                      .inner = key->swapped ? d->m : d->n,
                                      .outer = key->swapped ? d->n : d->m,
                                      .leading = d->ldc,
                                      .batch_stride = d->stride_c,
                                      .batch = d->batch,
                                      .box_inner = cuda_gemm_line(d->type_c),
                                      .box_outer = cuda_gemm_store_rows(key)};
    for (uint32_t i = 0; i < 3; i++) {
        cuda_gemm_operand *o = &operands[i];
        o->leading = leading_of(o->type, o->inner, o->outer, o->leading);
    }
}

/* C' = B' A'. The further inputs and C keep their strides. */
static void product_transpose(hal_gemm_description *d)
{
    const hal_gemm_description of = *d;
    d->type_a = of.type_b;
    d->type_b = of.type_a;
    d->transpose_a = !of.transpose_b;
    d->transpose_b = !of.transpose_a;
    d->m = of.n;
    d->n = of.m;
    d->lda = of.ldb;
    d->ldb = of.lda;
    d->stride_a = of.stride_b;
    d->stride_b = of.stride_a;
}

/* Clusters that are on the device at once, estimated: a cluster is within one processing cluster of
 * the device, whose last multiprocessors may be too few for another. As the driver tells of an
 * H100 (132 multiprocessors); the number is asked for when the kernel is there (gemm/gemm.c). */
static uint32_t cluster_count(uint32_t units, uint32_t size)
{
    static const uint8_t of_132[CUDA_GEMM_MAX_CLUSTER + 1] = {0, 132, 66, 39, 30, 22, 17, 15, 15};
    const uint32_t count = units * of_132[size] / 132;
    return count > 0 ? count : 1;
}

/* Lines of the cache that a tile has for one line of k: lines that do not begin at lines of the
 * cache are two. */
static double operand_lines(const cuda_gemm_operand *o, uint32_t lines)
{
    return lines * (o->leading * hal_type_size(o->type) % CUDA_GEMM_LINE == 0 ? 1.0 : L2_ODD_LINES);
}

/* Cycles of the copies of a stage from the L2. Two neighbours share the tile of A or B: as a pair,
 * or as the tiles of neighbouring groups do, which lie in one column of tiles where there are
 * several rows (gemm/tile/module.c); groups that split k share nothing. */
static double copy_cycles(const cuda_gemm_plan *plan, double active)
{
    const cuda_gemm_key *key = &plan->key;
    const uint32_t line = cuda_gemm_has_bytes(key) ? CUDA_GEMM_LINE : 64;
    const uint32_t columns =
        key->transpose_b ? key->columns : (key->columns + line - 1) / line * line;
    const double a = operand_lines(&plan->operands[0], cuda_gemm_rows(key)),
                 b = operand_lines(&plan->operands[1], columns);
    const bool rows = plan->tiles_m > 1 && plan->raster > 1;
    const double both = key->shared == CUDA_GEMM_SHARES_A   ? a + 2 * b
                        : key->shared == CUDA_GEMM_SHARES_B ? 2 * a + b
                        : key->split > 1 && !key->in_memory ? 2 * (a + b)
                        : rows                              ? 2 * a + b
                                                            : a + 2 * b;
    const bool pairs = key->shared != CUDA_GEMM_SHARES_NONE;
    const double rate = pairs             ? L2_PAIR_BYTES
                        : key->alternates ? L2_TURN_BYTES
                        : key->in_memory  ? L2_PARTS_BYTES
                        : key->split > 1
                            ? key->type == HAL_TYPE_F32 ? L2_SPLIT_FLOATS : L2_SPLIT_BYTES
                            : L2_BYTES;
    return both * CUDA_GEMM_LINE / rate * (L2_IDLE + (1 - L2_IDLE) * active);
}

/* Cycles of a stage: the longest of multiplying (32 x 64 elements a cycle, of F32 half as many),
 * of reading shared memory (128 bytes a cycle: A once, B once for each of two warpgroups and each
 * term), and of copies from the L2. */
static double stage_cycles(const cuda_gemm_plan *plan, double active)
{
    const cuda_gemm_key *key = &plan->key;
    const double columns = key->columns;
    const bool is_f32 = key->type == HAL_TYPE_F32, parts = is_f32 && key->flushes;
    const double rows = cuda_gemm_rows(key);
    double multiply = rows / 32 * columns * (parts ? 3 : 1);
    const bool loads = key->transpose_a && (is_f32 || cuda_gemm_has_bytes(key));
    if (parts || loads) { /* the units wait for registers of A */
        multiply += parts || columns <= 128 ? REGISTER_CYCLES : WIDE_REGISTER_CYCLES;
    }
    if (parts && columns > 96 && (key->transpose_a || !key->transpose_b)) {
        multiply *= WIDE_PARTS;
    }
    double shared = rows + rows / 64 * columns * (parts ? 3 : 1);
    if (is_f32) { /* copies arrive; B is converted */
        shared += rows + columns + (parts ? 2 * columns : 0) +
                  (parts && !plan->product.transpose_a ? 2 * CUDA_GEMM_ROWS : 0) +
                  (key->transpose_b ? 0 : 3 * columns);
    }
    if (cuda_gemm_has_bytes(key) && cuda_gemm_converts(key)) { /* B is read and written again */
        shared += 2 * columns;
    }
    if (hal_type_size(key->type) == 2 && key->columns > 64 && key->columns % 64 != 0 &&
        !key->transpose_b) {
        multiply *= ODD_COLUMNS;
    }
    if (is_f32 && !parts && key->transpose_a && columns > 208) {
        multiply *= WIDE_TRANSPOSED;
    }
    const double copy = copy_cycles(plan, active);
    multiply += key->flushes ? FLUSH_CYCLES : 0;
    multiply = fmax(multiply, shared * (is_f32 ? 1 : SHARED_CYCLES));
    if (key->direct) {
        const double lines =
            CUDA_GEMM_ROWS + (key->transpose_b ? columns : ceil(columns / 64) * 64);
        multiply = fmax(multiply, DIRECT_STAGE + DIRECT_LINE * lines);
    }
    return fmax(multiply, copy);
}

/* Cycles of the epilogue's operations for a tile; groups that split k share them. */
static double epilogue_cycles(const cuda_gemm_key *key)
{
    uint32_t operations = 0;
    for (uint32_t i = 0; key->epilogue && i < key->epilogue->record_count; i++) {
        const uint32_t opcode = key->epilogue->records[i].opcode;
        operations +=
            opcode != HAL_IR_INPUT && opcode != HAL_IR_OUTPUT && opcode != HAL_IR_CONSTANT;
    }
    return (key->alternates ? TURN_OPERATION : OPERATION) * operations * key->columns /
           (key->staged ? key->split : 1);
}

/* Cycles of the end of a tile, after its products. */
static double end_cycles(const cuda_gemm_key *key)
{
    const double bytes = cuda_gemm_rows(key) * 4.0 * key->columns;
    double end = key->staged    ? STAGED_END + bytes * STAGED_BYTE
                 : key->by_rows ? ROWS_END + ROWS_COLUMN * key->columns
                                : END_CYCLES + END_COLUMN * key->columns;
    if (key->staged && key->width == 1) {
        end += bytes / key->split * STAGED_ODD_BYTE;
    }
    if (key->in_memory) {
        end += PARTS_END + bytes * (key->split - 1) / key->split * PARTS_BYTE;
    } else if (key->split > 1) {
        end += SPLIT_END + bytes * (key->split - 1) / key->split * SPLIT_BYTE;
    }
    return end + (key->shared != CUDA_GEMM_SHARES_NONE ? PAIR_END : 0) + epilogue_cycles(key);
}

/* Estimated cycles of a launch. */
static double plan_cycles(const cuda_gemm_plan *plan, uint32_t units)
{
    const cuda_gemm_key *key = &plan->key;
    const uint32_t cluster = cuda_gemm_cluster(key);
    const double tiles = (double)plan->tiles_m * plan->tiles_n * plan->product.batch;
    const double clusters = tiles * (key->in_memory ? key->split : 1);
    const double waves = ceil(clusters / cluster_count(units, cluster));
    const double steps =
        ceil(ceil((double)plan->product.k / cuda_gemm_line(key->type)) / key->split);
    const double end = end_cycles(key);
    const double loop = steps * stage_cycles(plan, fmin(1, clusters * cluster / units));
    double tile = loop + end;
    if (key->direct && !key->staged) {
        tile = fmax(loop, end) + DIRECT_REST * fmin(loop, end);
    }
    double time = waves * tile;
    if (key->alternates) { /* a tile ends while the next one is multiplied */
        time = (waves - 1) * fmax(loop + TURN_DELAY * epilogue_cycles(key), tile / 2) + tile;
    }
    return LAUNCH_CYCLES + (cluster > 1 ? CLUSTER_CYCLES : 0) + (key->direct ? DIRECT_START : 0) +
           time;
}

/* At most the estimated cycles of a plan of which only the tiles and their number
 * are known, in a search whose plans read A and B directly, or do not. Spares most of a search. */
static double plan_least_cycles(const cuda_gemm_plan *plan, const hal_gemm_description *d,
                                bool direct, uint32_t units)
{
    const cuda_gemm_key *key = &plan->key;
    const bool is_f32 = key->type == HAL_TYPE_F32;
    const double columns = key->columns, terms = is_f32 && key->flushes ? 3 : 1;
    const double clusters =
        (double)plan->tiles_m * plan->tiles_n * d->batch * (key->in_memory ? key->split : 1);
    const double waves = ceil(clusters / cluster_count(units, cuda_gemm_cluster(key)));
    const double rows = cuda_gemm_rows(key), shared = rows + rows / 64 * columns * terms;
    const double multiply =
        fmax(rows / 32 * columns * terms, is_f32 ? shared : shared * SHARED_CYCLES);
    const double stage =
        direct ? fmax(multiply, DIRECT_STAGE + DIRECT_LINE * (rows + columns)) : multiply;
    const double loop = ceil(ceil((double)d->k / cuda_gemm_line(key->type)) / key->split) * stage;
    const double bytes = rows * 4 * columns, others = bytes * (key->split - 1) / key->split;
    double end = (key->split > 1 ? STAGED_END : END_CYCLES) + bytes * STAGED_BYTE;
    if (key->split > 1) {
        end += key->in_memory ? PARTS_END + others * PARTS_BYTE : SPLIT_END + others * SPLIT_BYTE;
    }
    end += key->shared != CUDA_GEMM_SHARES_NONE ? PAIR_END : 0;
    const double tile =
        direct && key->split == 1 ? fmax(loop, end) + DIRECT_REST * fmin(loop, end) : loop + end;
    const double next = key->alternates ? fmax(loop, tile / 2) : tile;
    return LAUNCH_CYCLES + (direct ? DIRECT_START : 0) + (waves - 1) * next + tile;
}

/* Whether k has stages enough for the parts that a key has. */
static bool depth_is_enough(const hal_plugin_device *device, const hal_gemm_description *d,
                            const cuda_gemm_key *key)
{
    const int64_t stages = divide_up(d->k, cuda_gemm_line(d->type_a));
    const bool is_chosen = device->gemm_tile.columns == 0;
    return stages >= (key->in_memory && is_chosen ? MIN_PART_STAGES : 1) * key->split;
}

/* Whether k of a product with so many tiles may be split as the key says. Parts of k pay where they
 * fill a part of the device that is idle. */
static bool split_is_possible(const hal_plugin_device *device, const cuda_gemm_key *key,
                              int64_t tiles)
{
    const int64_t clusters = tiles * (key->in_memory ? key->split : 1),
                  groups = clusters * cuda_gemm_cluster(key);
    if (key->in_memory &&
        (tiles * cuda_gemm_pairs(key) > CUDA_GEMM_STATES ||
         groups * cuda_gemm_sum_bytes(key) > (int64_t)device->units * CUDA_GEMM_MAX_SUMS)) {
        return false;
    }
    return key->split == 1 || device->gemm_tile.columns > 0 ||
           clusters <= cluster_count(device->units, cuda_gemm_cluster(key));
}

/* Counts the tiles of a plan whose key has one: of pairs, where groups share operands. Returns
 * whether they may be those of a kernel. */
static bool plan_count_tiles(const hal_plugin_device *device, const hal_gemm_description *d,
                             cuda_gemm_plan *plan)
{
    const cuda_gemm_key *key = &plan->key;
    const int64_t rows = cuda_gemm_rows(key) * (key->shared == CUDA_GEMM_SHARES_B ? 2 : 1),
                  columns = key->shared == CUDA_GEMM_SHARES_A ? 2 * key->columns : key->columns;
    const int64_t tiles_m = divide_up(key->swapped ? d->n : d->m, rows),
                  tiles_n = divide_up(key->swapped ? d->m : d->n, columns);
    const uint32_t groups = cuda_gemm_pairs(key) * key->split;
    if (tiles_m > INT32_MAX / groups / (int64_t)d->batch / tiles_n ||
        !split_is_possible(device, key, tiles_m * tiles_n * d->batch)) {
        return false;
    }
    plan->tiles_m = (uint32_t)tiles_m;
    plan->tiles_n = (uint32_t)tiles_n;
    return true;
}

/* Rows of tiles that are taken together. Where all tiles are multiplied at once, two: neighbours
 * share columns of B, and the rows of A are read everywhere at the same time (1024x1024x8192 of
 * bf16 on an H100: 24 us with 2, 37 with 8). */
static uint32_t plan_raster(const cuda_gemm_plan *plan, uint32_t units)
{
    const cuda_gemm_key *key = &plan->key;
    const double tiles = (double)plan->tiles_m * plan->tiles_n * plan->product.batch *
                         (key->in_memory ? key->split : 1);
    return tiles <= cluster_count(units, cuda_gemm_cluster(key)) ? 2 : key->columns >= 192 ? 16 : 8;
}

/* Completes a plan that has its product, and whose key has a tile, which was counted. Returns
 * whether there is such a kernel. */
static bool plan_complete(const hal_plugin_device *device, const hal_gemm_description *d,
                          cuda_gemm_plan *plan)
{
    cuda_gemm_key *key = &plan->key;
    const hal_gemm_description *p = &plan->product;
    key->transpose_a = p->transpose_a;
    key->transpose_b = p->transpose_b;
    operands_describe(p, key, plan->operands);
    key->direct =
        !operand_is_mappable(&plan->operands[0]) || !operand_is_mappable(&plan->operands[1]);
    if (key->direct &&
        (!operand_is_readable(&plan->operands[0]) || !operand_is_readable(&plan->operands[1]))) {
        return false;
    }
    const int64_t alignment = d->ldc | d->stride_c | d->n;
    key->width = alignment % 4 == 0 ? 4 : 1;
    key->staged = 0;
    key->by_rows = !operand_is_mappable(&plan->operands[2]);
    key->staged = key->split > 1 || !cuda_gemm_is_supported(key);
    key->by_rows &= !key->staged;
    if (!key->staged) {
        key->width = 0;
    }
    for (uint32_t i = 0; i < d->input_count; i++) {
        key->layouts[i] = cuda_gemm_input_layout(key, &d->inputs[i], p->n);
    }
    if (!cuda_gemm_is_supported(key)) {
        return false;
    }
    plan->raster = plan_raster(plan, device->units);
    plan->ns = plan_cycles(plan, device->units) / CLOCK;
    return true;
}

/* Groups of the largest cluster: the fences of clusters are those of PTX 8.6, of CUDA 12.7. */
static uint32_t largest_cluster(void)
{
    int version = 0;
    return cuda_functions()->cuDriverGetVersion(&version) == 0 && version >= 12070
               ? CUDA_GEMM_MAX_CLUSTER
               : 1;
}

static uint32_t key_order(const cuda_gemm_key *key)
{
    return (uint32_t)key->alternates << 21 | (uint32_t)key->in_memory << 20 |
           (uint32_t)key->shared << 18 | (uint32_t)key->swapped << 17 | (uint32_t)key->split << 12 |
           key->columns;
}

/* Whether a plan comes after another in the order of plans: by time, then by its key. */
static bool plan_follows(const cuda_gemm_plan *plan, const cuda_gemm_plan *other)
{
    const uint32_t keys[2] = {key_order(&plan->key), key_order(&other->key)};
    return plan->ns > other->ns || (plan->ns == other->ns && keys[0] > keys[1]);
}

/* Whether sums of parts of k are added to sums of F32: of 64 elements for the bound of accurate, of
 * 128 or 256 where the units have fewer bits still. */
static bool sums_are_flushed(const hal_gemm_description *d)
{
    return d->type_a == HAL_TYPE_F8_E4M3 ||
           (d->precision == HAL_GEMM_ACCURATE && hal_type_is_float(d->type_a));
}

/* Sets all of the key that is not chosen. */
static void key_describe(const hal_plugin_device *device, const hal_gemm_description *d,
                         cuda_gemm_key *key)
{
    memset(key, 0, sizeof *key);
    key->type = d->type_a;
    key->type_c = d->type_c;
    key->flushes = sums_are_flushed(d);
    key->wait_seconds = device->gemm_wait;
    cuda_gemm_key_set_end(key, d);
}

/* Whether two plans add in the same order. */
static bool plans_have_one_order(const cuda_gemm_plan *plan, const cuda_gemm_plan *other)
{
    const cuda_gemm_key *a = &plan->key, *b = &other->key;
    return a->split == b->split && a->in_memory == b->in_memory && a->swapped == b->swapped;
}

/* Whether a tile is that of HAL_CUDA_GEMM except for its columns, or may be chosen where that names
 * none. Pairs whose parts are added through memory are slower on an H100 except for few products,
 * which gain little, as are pairs whose warpgroups take turns; turns were measured with 16-bit
 * types alone. */
static bool way_is_taken(const cuda_gemm_key *key, const cuda_gemm_tile *forced)
{
    if (forced->columns == 0) {
        return key->alternates
                   ? hal_type_size(key->type) <= 2 && key->shared == CUDA_GEMM_SHARES_NONE
                   : !(key->in_memory && key->shared != CUDA_GEMM_SHARES_NONE);
    }
    return forced->split == key->split && forced->in_memory == key->in_memory &&
           forced->swapped == key->swapped && forced->shared == key->shared &&
           forced->alternates == key->alternates;
}

/* Tries all tiles, or the one that HAL_CUDA_GEMM names, and takes the first one of those with the
 * order of `like`, which may be null. */
static bool plan_search(const hal_plugin_device *device, const hal_gemm_description *d,
                        const cuda_gemm_plan *like, cuda_gemm_plan *best)
{
    static const uint16_t columns[] = {16,  32,  48,  64,  80,  96,  112, 128,
                                       144, 160, 176, 192, 208, 224, 240, 256};
    const cuda_gemm_tile *forced = &device->gemm_tile;
    cuda_gemm_plan plan;
    const uint32_t most = largest_cluster();
    memset(&plan, 0, sizeof plan);
    key_describe(device, d, &plan.key);
    bool found = false;
    const uint32_t together = 2 * 3 * (CUDA_GEMM_MAX_CLUSTER + CUDA_GEMM_MAX_PARTS - 1);
    for (uint32_t way = 0; way < together + 2 * 3; way++) {
        plan.key.swapped = way % 2;
        plan.key.shared = way / 2 % 3;
        plan.key.alternates = way >= together;
        plan.key.in_memory = way >= 6 * CUDA_GEMM_MAX_CLUSTER && !plan.key.alternates;
        plan.key.split = (uint8_t)(plan.key.alternates  ? 1
                                   : plan.key.in_memory ? 2 + way / 6 - CUDA_GEMM_MAX_CLUSTER
                                                        : 1 + way / 6);
        if (!way_is_taken(&plan.key, forced)) {
            continue;
        }
        /* Of clusters the tiles that were measured. */
        const uint32_t step = plan.key.split > 1 && plan.key.shared != CUDA_GEMM_SHARES_NONE ? 64
                              : cuda_gemm_cluster(&plan.key) > 1                             ? 32
                                                                                             : 16;
        if (cuda_gemm_cluster(&plan.key) > most || !depth_is_enough(device, d, &plan.key) ||
            (like && !plans_have_one_order(&plan, like))) {
            continue;
        }
        memcpy(&plan.product, d, sizeof plan.product);
        if (plan.key.swapped) {
            product_transpose(&plan.product);
        }
        for (uint32_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
            plan.key.columns = forced->columns > 0 ? forced->columns : columns[i];
            if (forced->columns > 0 ? i > 0
                                    : plan.key.columns % step != 0 ||
                                          (plan.key.alternates && columns[i] > TURN_COLUMNS)) {
                continue;
            }
            /* Once there is a plan, `direct` is that of all. */
            if (!plan_count_tiles(device, d, &plan) ||
                (found &&
                 plan_least_cycles(&plan, d, plan.key.direct, device->units) > best->ns * CLOCK)) {
                continue;
            }
            if (plan_complete(device, d, &plan) && (!found || plan_follows(best, &plan))) {
                *best = plan;
                found = true;
            }
        }
    }
    return found;
}

/* Whether the units take the types of A and B, and an epilogue that of C. */
static bool types_are_known(const hal_gemm_description *d)
{
    const bool is_byte = d->type_a == HAL_TYPE_I8 || d->type_a == HAL_TYPE_U8;
    return d->type_a == d->type_b &&
           (d->type_a == HAL_TYPE_F16 || d->type_a == HAL_TYPE_BF16 || d->type_a == HAL_TYPE_F32 ||
            d->type_a == HAL_TYPE_F8_E4M3 ||
            (is_byte && (d->epilogue || d->type_c == hal_type_of_value(d->type_a))));
}

static bool k_is_too_short(const hal_gemm_description *d)
{
    return d->type_a == HAL_TYPE_F32 && d->precision == HAL_GEMM_ACCURATE && d->k < MIN_PARTS_DEPTH;
}

/* Whether one tile of the fewest columns and the shortest part of k takes longer than most_ns,
 * above 0. Spares small products the search. */
static bool product_is_small(const hal_gemm_description *d, uint32_t units, double most_ns)
{
    cuda_gemm_plan least;
    memset(&least, 0, sizeof least);
    least.key.type = d->type_a;
    least.key.flushes = sums_are_flushed(d);
    least.key.columns = 16;
    least.tiles_m = least.tiles_n = least.key.split = 1;
    const hal_gemm_description shortest = {.batch = 1, .k = divide_up(d->k, CUDA_GEMM_MAX_PARTS)};
    const double cycles = fmin(plan_least_cycles(&least, &shortest, false, units),
                               plan_least_cycles(&least, &shortest, true, units));
    return most_ns > 0 && most_ns <= cycles / CLOCK;
}

hal_status cuda_gemm_plan_choose(const hal_plugin_device *device, const hal_gemm_description *d,
                                 double most_ns, cuda_gemm_plan *plan)
{
    if (device->capability != 90 || !cuda_functions()->cuTensorMapEncodeTiled ||
        !cuda_functions()->cuTensorMapReplaceAddress) {
        return cuda_gemm_decline("device: expected compute capability 9.0 and tensor maps");
    }
    if (d->levels > 0) {
        return cuda_gemm_decline("levels: expected 0");
    }
    if (!types_are_known(d)) {
        return cuda_gemm_decline("types: expected A and B of f16, bf16 or f32, and C of theirs or "
                                 "f32; of f8_e4m3, and C of f32; or of i8 or u8, and C of their "
                                 "sums, or with an epilogue of f32, f16 or bf16");
    }
    if (d->precision == HAL_GEMM_STRICT && hal_type_is_float(d->type_a)) {
        return cuda_gemm_decline("precision: expected accurate or fast: the units truncate sums");
    }
    if (d->type_a == HAL_TYPE_F8_E4M3 && d->precision != HAL_GEMM_FAST) {
        return cuda_gemm_decline(
            "precision: expected fast: the units drop bits of sums of f8_e4m3");
    }
    if (k_is_too_short(d)) {
        return cuda_gemm_decline("k: expected at least 64 for the bound of accurate F32");
    }
    if (product_is_small(d, device->units, most_ns)) {
        return cuda_gemm_decline(CUDA_GEMM_SLOWER);
    }
    hal_gemm_description plain = *d;
    plain.beta_is_zero = 1;
    plain.epilogue = NULL;
    plain.input_count = 0;
    if (hal_type_is_integer(d->type_a)) {
        plain.type_c = hal_type_of_value(d->type_a); /* others are the epilogue's */
    }
    if (!plan_search(device, &plain, NULL, plan)) {
        return cuda_gemm_decline(
            "strides: expected multiples of 16 bytes for A and B of f32, and of "
            "bytes that are both across k, and fewer tiles than 2^31");
    }
    /* C and the epilogue do not change the order of additions. */
    const cuda_gemm_plan like = *plan;
    if ((d->epilogue || !d->beta_is_zero) && !plan_search(device, d, &like, plan)) {
        return cuda_gemm_decline(CUDA_GEMM_LONG_EPILOGUE);
    }
    return HAL_OK;
}
