/* The choice of the kernel of a matrix product, see gemm_plan.h. */
#include "gemm_plan.h"

#include "gemm_ring.h"
#include "gemm_text.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* Bytes: of the start of a matrix and of its rows, for tensor maps. */
enum { MAP_ALIGNMENT = 16 };
/* The least k of three-term products: each term has an error of up to 2^-19, see gemm_sums.c. */
enum { MIN_PARTS_DEPTH = 64 };
static const int64_t MAX_EXTENT = INT32_MAX;
static const int64_t MAX_STRIDE = INT64_C(1) << 40; /* bytes */

/* Fitted to measured products of bf16 and f32 on an H200. Bytes a cycle of one multiprocessor from
 * the L2; cycles of a launch, of adding the sums of a stage, of waiting for the registers of A in a
 * stage, of tiles up to 128 columns and of wider ones, and of a byte of sums that go through shared
 * memory, and to another group; slowness of wide tiles of three-term products that are read or
 * converted across k, of a B along n whose columns are no multiple of 64, and of wide tiles of TF32
 * whose A is across k. */
#define L2_BYTES 72.0
#define LAUNCH_CYCLES 3700.0
#define FLUSH_CYCLES 100.0
#define REGISTER_CYCLES 150.0
#define WIDE_REGISTER_CYCLES 90.0
#define WIDE_PARTS 1.25
#define STAGED_END 0.03
#define SPLIT_END 0.07
#define ODD_COLUMNS 1.5
#define WIDE_TURNED 1.08

/* The same of the portable kernel: a launch, products and bytes a cycle of one multiprocessor. */
#define PORTABLE_LAUNCH 2800.0
#define PORTABLE_PRODUCTS 300.0
#define PORTABLE_ACROSS_K 50.0  /* A is stored transposed */
#define PORTABLE_UNALIGNED 50.0 /* lines of A or B are no multiples of 16 bytes */
#define PORTABLE_BYTES 5.5
#define PORTABLE_DEPTH 8 /* up to such a k it writes C as fast as memory takes it */

/* A copy that the native kernel waits for: a launch, and bytes a cycle of one multiprocessor that
 * are read or written. */
#define COPY_LAUNCH 2500.0
#define COPY_BYTES 12.0

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static hal_status plan_decline(const char *what)
{
    return cuda_fail(HAL_ERROR_UNSUPPORTED, "cuda: gemm: %s", what);
}

static bool operand_is_mappable(const cuda_gemm_operand *o)
{
    const int64_t size = hal_type_size(o->type);
    return o->inner > 0 && o->outer > 0 && o->inner <= MAX_EXTENT && o->outer <= MAX_EXTENT &&
           o->leading < MAX_STRIDE / size && o->leading * size % MAP_ALIGNMENT == 0 &&
           o->batch_stride < MAX_STRIDE / size && o->batch_stride * size % MAP_ALIGNMENT == 0;
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
    operands[0] = (cuda_gemm_operand){.type = d->type_a,
                                      .inner = d->transpose_a ? d->m : d->k,
                                      .outer = d->transpose_a ? d->k : d->m,
                                      .leading = d->lda,
                                      .batch_stride = d->stride_a,
                                      .batch = batch_a,
                                      .box_inner = line,
                                      .box_outer = d->transpose_a ? line : CUDA_GEMM_ROWS};
    operands[1] = (cuda_gemm_operand){.type = d->type_b,
                                      .inner = d->transpose_b ? d->k : d->n,
                                      .outer = d->transpose_b ? d->n : d->k,
                                      .leading = d->ldb,
                                      .batch_stride = d->stride_b,
                                      .batch = batch_b,
                                      .box_inner = line,
                                      .box_outer = d->transpose_b ? key->columns : line};
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
 * the device, of about 16 multiprocessors, which leaves (split - 1) / 2 of them idle on average.
 * (30 clusters of 4 on an H200; 16 of 7 are too many for an H100.) */
static uint32_t cluster_count(uint32_t units, uint32_t split)
{
    const uint32_t idle = (split - 1) * units / 33, count = (units - idle) / split;
    return count > 0 ? count : 1;
}

/* Bytes that the second-level cache moves for a tile of one line of k: lines that do not begin at
 * lines of the cache are two. */
static double operand_lines(const cuda_gemm_operand *o, uint32_t lines)
{
    return lines * (o->leading * hal_type_size(o->type) % CUDA_GEMM_LINE == 0 ? 1.0 : 2.0);
}

/* Cycles of a stage: the longest of multiplying (32 x 64 elements a cycle, of F32 half as many),
 * of reading shared memory (128 bytes a cycle: A once, B once for each of two warpgroups and each
 * term), and of copies from the L2. */
static double stage_cycles(const cuda_gemm_plan *plan)
{
    const cuda_gemm_key *key = &plan->key;
    const double columns = key->columns;
    const bool is_f32 = key->type == HAL_TYPE_F32, parts = is_f32 && key->flushes;
    const double boxed = key->transpose_b ? columns : ceil(columns / 64) * 64;
    double multiply = 4 * columns * (parts ? 3 : 1);
    if (is_f32 && (parts || key->transpose_a)) { /* the units wait for registers of A */
        multiply += parts || columns <= 128 ? REGISTER_CYCLES : WIDE_REGISTER_CYCLES;
    }
    if (parts && columns > 96 && (key->transpose_a || !key->transpose_b)) {
        multiply *= WIDE_PARTS;
    }
    double shared = CUDA_GEMM_ROWS + 2 * columns * (parts ? 3 : 1);
    if (is_f32) { /* copies arrive; B is converted */
        shared += CUDA_GEMM_ROWS + columns + (parts ? 2 * columns : 0) +
                  (parts && !plan->product.transpose_a ? 2 * CUDA_GEMM_ROWS : 0) +
                  (key->transpose_b ? 0 : 3 * columns);
    }
    if (!is_f32 && key->columns > 64 && key->columns % 64 != 0 && !key->transpose_b) {
        multiply *= ODD_COLUMNS;
    }
    if (is_f32 && !parts && key->transpose_a && columns > 208) {
        multiply *= WIDE_TURNED;
    }
    const double copy = (operand_lines(&plan->operands[0], CUDA_GEMM_ROWS) +
                         operand_lines(&plan->operands[1], (uint32_t)boxed)) *
                        CUDA_GEMM_LINE / L2_BYTES;
    multiply += key->flushes ? FLUSH_CYCLES : 0;
    multiply = multiply > shared ? multiply : shared;
    return multiply > copy ? multiply : copy;
}

/* Estimated cycles of a launch. */
static double plan_cycles(const cuda_gemm_plan *plan, uint32_t units)
{
    const cuda_gemm_key *key = &plan->key;
    const double tiles = (double)plan->tiles_m * plan->tiles_n * plan->product.batch;
    const double waves = ceil(tiles / cluster_count(units, key->split));
    const double steps =
        ceil(ceil((double)plan->product.k / cuda_gemm_line(key->type)) / key->split);
    const double bytes = CUDA_GEMM_ROWS * 4.0 * key->columns;
    const double end = key->staged
                           ? 1500 + bytes * (STAGED_END + (key->split - 1) * SPLIT_END / key->split)
                           : 300 + 3 * key->columns;
    return LAUNCH_CYCLES + waves * (steps * stage_cycles(plan) + end);
}

/* Completes a plan whose key has a tile. Returns whether there is such a kernel. */
static bool plan_complete(const hal_plugin_device *device, const hal_gemm_description *d,
                          cuda_gemm_plan *plan)
{
    cuda_gemm_key *key = &plan->key;
    hal_gemm_description *p = &plan->product;
    memcpy(p, d, sizeof *p);
    if (key->swapped) {
        product_transpose(p);
    }
    key->transpose_a = p->transpose_a;
    key->transpose_b = p->transpose_b;
    operands_describe(p, key, plan->operands);
    const int64_t alignment = d->ldc | d->stride_c | d->n;
    key->width = alignment % 4 == 0 ? 4 : 1;
    key->staged = 0;
    key->staged =
        key->split > 1 || !operand_is_mappable(&plan->operands[2]) || !cuda_gemm_is_supported(key);
    if (!key->staged) {
        key->width = 0;
    }
    const int64_t tiles_m = divide_up(p->m, CUDA_GEMM_ROWS),
                  tiles_n = divide_up(p->n, key->columns);
    if (!cuda_gemm_is_supported(key) || !operand_is_mappable(&plan->operands[0]) ||
        !operand_is_mappable(&plan->operands[1]) ||
        tiles_m > INT32_MAX / key->split / (int64_t)d->batch / tiles_n ||
        divide_up(p->k, cuda_gemm_line(p->type_a)) < key->split) {
        return false;
    }
    plan->tiles_m = (uint32_t)tiles_m;
    plan->tiles_n = (uint32_t)tiles_n;
    if (key->split > 1 && device->gemm_tile.columns == 0 &&
        tiles_m * tiles_n * d->batch > cluster_count(device->units, key->split)) {
        return false; /* clusters pay where they fill a part of the device that is idle */
    }
    plan->cycles = plan_cycles(plan, device->units);
    return true;
}

/* Whether a plan comes after another in the order of candidates: by time, then by its key. */
static bool plan_follows(const cuda_gemm_plan *plan, const cuda_gemm_plan *other)
{
    const uint32_t keys[2] = {plan->key.swapped << 16 | plan->key.split << 12 | plan->key.columns,
                              other->key.swapped << 16 | other->key.split << 12 |
                                  other->key.columns};
    return plan->cycles > other->cycles || (plan->cycles == other->cycles && keys[0] > keys[1]);
}

/* Tries all tiles, or the one that HAL_CUDA_GEMM names, and takes the first one after `last`, which
 * may be null. */
static bool plan_search(const hal_plugin_device *device, const hal_gemm_description *d,
                        const cuda_gemm_plan *last, cuda_gemm_plan *best)
{
    static const uint16_t columns[] = {16,  32,  48,  64,  80,  96,  112, 128,
                                       144, 160, 176, 192, 208, 224, 240, 256};
    const cuda_gemm_tile *forced = &device->gemm_tile;
    cuda_gemm_plan plan = *best;
    bool found = false;
    for (uint8_t swapped = 0; swapped < 2; swapped++) {
        for (uint8_t split = 1; split <= CUDA_GEMM_MAX_SPLIT; split++) {
            for (uint32_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
                plan.key.columns = forced->columns > 0 ? forced->columns : columns[i];
                plan.key.split = split;
                plan.key.swapped = swapped;
                if (forced->columns > 0 &&
                    (forced->split != split || forced->swapped != swapped || i > 0)) {
                    continue;
                }
                if (plan_complete(device, d, &plan) && (!found || plan_follows(best, &plan)) &&
                    (last == NULL || plan_follows(&plan, last))) {
                    *best = plan;
                    found = true;
                }
            }
        }
    }
    return found;
}

/* Cycles of the copies that are made for the product. */
static double copy_cycles(const hal_gemm_description *d, uint32_t units)
{
    const double elements[2] = {(double)d->lda * (double)(d->transpose_a ? d->k : d->m) *
                                    (d->stride_a != 0 ? d->batch : 1),
                                (double)d->ldb * (double)(d->transpose_b ? d->n : d->k) *
                                    (d->stride_b != 0 ? d->batch : 1)};
    double cycles = 0;
    for (uint32_t i = 0; i < 2; i++) {
        if (d->copied >> i & 1) {
            const double bytes = 2 * elements[i] * hal_type_size(d->type_a);
            cycles += COPY_LAUNCH + bytes / COPY_BYTES / units;
        }
    }
    return cycles;
}

/* Whether the portable kernel, which splits k over groups, starts sooner and needs no copies, is
 * slower. */
static bool plan_is_worth(const hal_gemm_description *d, const cuda_gemm_plan *plan, uint32_t units)
{
    if (d->k <= PORTABLE_DEPTH) {
        return false;
    }
    const double m = (double)d->m, n = (double)d->n, k = (double)d->k;
    const double rate = d->copied        ? PORTABLE_UNALIGNED
                        : d->transpose_a ? PORTABLE_ACROSS_K
                                         : PORTABLE_PRODUCTS;
    const double slow = d->type_a == HAL_TYPE_F32 ? 2 : 1;
    const double multiply = m * n * k * slow / rate,
                 bytes =
                     (m * k + k * n) * hal_type_size(d->type_a) + m * n * hal_type_size(d->type_c);
    return PORTABLE_LAUNCH + (multiply + bytes / PORTABLE_BYTES) * d->batch / units >
           plan->cycles + copy_cycles(d, units);
}

hal_status cuda_gemm_plan_choose(const hal_plugin_device *device, const hal_gemm_description *d,
                                 cuda_gemm_plan *plan)
{
    cuda_gemm_key *key = &plan->key;
    if (device->capability != 90 || cuda_functions()->cuTensorMapEncodeTiled == NULL ||
        cuda_functions()->cuTensorMapReplaceAddress == NULL) {
        return plan_decline("device: expected compute capability 9.0 and tensor maps");
    }
    if (d->levels > 0) {
        return plan_decline("levels: expected 0");
    }
    if (d->precision == HAL_GEMM_STRICT) {
        return plan_decline("precision: expected accurate or fast: the units truncate sums");
    }
    if (d->type_a != d->type_b || (d->type_a != HAL_TYPE_F32 && hal_type_size(d->type_a) != 2)) {
        return plan_decline("types: expected A and B of f16, bf16 or f32, and C of theirs or f32");
    }
    if (d->type_a == HAL_TYPE_F32 && d->precision == HAL_GEMM_ACCURATE && d->k < MIN_PARTS_DEPTH) {
        return plan_decline("k: expected at least 64 for the bound of accurate F32");
    }
    memset(plan, 0, sizeof *plan);
    key->type = d->type_a;
    key->type_c = d->type_c;
    key->reads_c = !d->beta_is_zero;
    key->flushes = d->precision == HAL_GEMM_ACCURATE;
    key->input_count = d->input_count;
    key->epilogue = d->epilogue;
    for (uint32_t i = 0; i < d->input_count; i++) {
        key->inputs[i] = d->inputs[i].type;
    }
    if (!plan_search(device, d, NULL, plan)) {
        return plan_decline("strides: expected multiples of 16 bytes for A and B, and a short "
                            "epilogue");
    }
    for (uint32_t i = 1; i < d->candidate; i++) {
        const cuda_gemm_plan last = *plan;
        if (!plan_search(device, d, &last, plan)) {
            return plan_decline("candidate: expected the number of one of the kernels");
        }
    }
    if (!d->required && device->gemm_tile.columns == 0 && !plan_is_worth(d, plan, device->units)) {
        return plan_decline("shape: expected one that the portable kernel multiplies later");
    }
    return HAL_OK;
}
