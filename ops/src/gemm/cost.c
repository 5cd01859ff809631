/* The cost model of the portable kernel, see cost.h. A product takes a launch and the time of the
 * unit with the most groups. Constants are nanoseconds of one unit of an H100 with 132 units,
 * fitted by least squares of logarithms to 7,600 times of the candidates of 340 random f32 products
 * (m, n, k log-uniform in 1 to 8192, three layouts): half of the estimates are within 8 %, nine of
 * ten within 25 %. HALF_STAGED, the factor 2 of F64 and the rates of tiles for halves are not of
 * that fit but estimated; UNITS_NARROW, UNITS_SINGLE and the rates of narrow accesses to halves are
 * scaled to 100 times of random products (docs/benchmarks, 2026-11-28-regret). Among portable
 * kernels only ratios matter; plugins compare the time with that of theirs, on an H100. */
#include "cost.h"

#include <math.h>

/* A launch; that of a direct kernel; the second one of split-K, and of it an element of a part; an
 * element of C. */
#define LAUNCH 947.0
#define DIRECT_LAUNCH 732.0
#define REDUCE_LAUNCH 946.0
#define REDUCE_ELEMENT 0.00203
#define C_ELEMENT 0.00091
#define DIRECT_C_ELEMENT 0.00114

/* Intra-group split-K: a load of a work-item, a multiply-add, a sector of 32 bytes, a line of the
 * first-level cache that the loads of a warp meet, a partial sum; a turn of all slices, a group of
 * the device, a reduction that follows. */
#define ITEM_LOAD 0.0054
#define ITEM_STEP 0.0094
#define SECTOR 0.236
#define LINE 0.125
#define PARTIAL_SUM 0.0202
#define TURN 89.0
#define GROUP 0.55
#define PARTS 162.0

/* Direct kernels: a turn, a load and a store of a work-item. */
#define DIRECT_TURN 185.0
#define DIRECT_LOAD 0.017
#define DIRECT_STORE 0.0316

/* Staged halves, which are converted. */
#define HALF_STAGED 1.12

/* Operands that the second-level cache does not hold, from FAR_FROM bytes on and fully at FAR_FROM
 * + FAR_BYTES more, slow groups down that wait for loads: by these factors more. */
#define FAR_FROM 20e6
#define FAR_BYTES 40e6
#define FAR_STAGED 0.88
#define FAR_LOADS 0.22

/* Of staged tiles and matrix units: three terms for a product, second sums, narrow accesses of F32;
 * accesses of single elements. */
#define UNITS_PARTS 2.6
#define UNITS_FLUSH 1.2
#define UNITS_NARROW 1.75
#define UNITS_SINGLE 1.2

static double at_least(double x, double least)
{
    return x < least ? least : x;
}

/* How many operands are beyond the second-level cache, 0 to 1. */
static double distance(const ops_gemm_shape *s)
{
    const double bytes = (double)(s->m + s->n) * (double)s->k * hal_type_size(s->type);
    const double part = (bytes - FAR_FROM) / FAR_BYTES;
    return part < 0 ? 0 : part > 1 ? 1 : part;
}

/* What an operand's accesses add to the time of a step of staged tiles, by elements. */
static double access_time(const ops_gemm_tiles *t, int k_contiguous, uint32_t width)
{
    static const double along_k[] = {0.109, 0.098, 0.083}, across[] = {0.091, 0.013, 0};
    const uint32_t elements = t->stages > 2 && k_contiguous ? 1 : width;
    const uint32_t number = elements >= 4 ? 2 : elements / 2;
    return k_contiguous ? along_k[number] : across[number];
}

/* By how much the accesses of matrix units lengthen a step. */
static double units_access_time(const ops_gemm_shape *s)
{
    const int is_f32 = s->type == HAL_TYPE_F32;
    const double b_across = is_f32 || s->access < 16 ? 0.5 : 0.1, a_across = is_f32 ? 0.2 : 0.1;
    const double layout =
        1 + (s->b_k_contiguous ? 0 : b_across) + (s->a_k_contiguous ? 0 : a_across);
    return layout * (s->access == hal_type_size(s->type) ? UNITS_SINGLE : 1);
}

/* By how much a step of several groups of matrix units exceeds the one of the table. */
static double units_step_time(const ops_gemm_shape *s, const ops_gemm_tiles *t)
{
    const int is_narrow =
        s->type == HAL_TYPE_F32 && !(s->precision == HAL_GEMM_FAST && s->access == 16);
    return (t->matrix == 3 ? UNITS_PARTS
            : t->flush     ? UNITS_FLUSH
                           : 1) *
           (is_narrow ? UNITS_NARROW : 1);
}

/* Of `most` groups, for k steps. */
static double staged_ns(const ops_gemm_shape *s, const ops_gemm_candidate *c, double most, double k)
{
    const ops_gemm_tiles *t = &c->tiles;
    const ops_gemm_rates *r = c->rates;
    const double end = s->n % 4 ? r->odd_end : r->end;
    const double alone = r->alone * (t->matrix ? 1 : 1 + FAR_STAGED * distance(s));
    const double step = r->step * (t->matrix ? units_step_time(s, t) : 1);
    const double wide = s->type == HAL_TYPE_F64 ? 2 : s->type == HAL_TYPE_F32 ? 1 : HALF_STAGED;
    const double factor = t->matrix ? units_access_time(s)
                                    : wide + access_time(t, s->a_k_contiguous, s->a_width) +
                                          access_time(t, s->b_k_contiguous, s->b_width);
    const double steps = ceil(k / t->block_k) * t->block_k * factor;
    const double full = floor(most / r->resident), rest = most - full * r->resident;
    const double ns = full * (steps * at_least(r->resident * step, alone) + end);
    return rest > 0 ? ns + steps * at_least(rest * step, alone) + end : ns;
}

/* Sectors of `lines` lines of `length` elements, whose starts are multiples of `width`. */
static double sector_count(double lines, double length, uint32_t width, double size)
{
    return lines * ((length - width) * size + 32) / 32;
}

/* The loads of A or B in one turn of a group: `lines` of `thread` for each of `lanes` work-items of
 * a warp along them. */
static double operand_ns(const ops_gemm_tiles *t, int k_contiguous, uint32_t width, double size,
                         double k, double lines, double thread, double strip, double lanes)
{
    const double slices = at_least(32.0 / (t->lanes_m * t->lanes_n), 1);
    const double items = t->lanes_m * t->lanes_n * t->intra_group_split_k;
    const uint32_t most = k_contiguous ? t->block_k : (uint32_t)strip;
    const double loads = items * thread * t->block_k * t->unroll / (width < most ? width : most);
    const double met = k_contiguous ? lanes * at_least(slices * t->block_k * size / 128, 1)
                                    : slices * at_least(lanes * strip * size / 128, 1);
    const double sectors =
        k_contiguous ? sector_count(lines, k, width, size) : sector_count(k, lines, width, size);
    return loads * (ITEM_LOAD + met / 32 * LINE) + sectors * SECTOR;
}

static double intra_group_ns(const ops_gemm_shape *s, const ops_gemm_tiles *t, double most,
                             double k)
{
    const double size = hal_type_size(s->type), wide = size > 4 ? 2 : 1;
    const double step = (double)t->block_k * t->unroll, turn = step * t->intra_group_split_k;
    const double steps = k < turn ? k : turn;
    const double lanes_m = 32.0 / t->lanes_n < t->lanes_m ? 32.0 / t->lanes_n : t->lanes_m;
    const double loads = operand_ns(t, s->a_k_contiguous, s->a_width, size, steps, t->block_m,
                                    t->thread_m, t->strip_m, at_least(lanes_m, 1)) +
                         operand_ns(t, s->b_k_contiguous, s->b_width, size, steps, t->block_n,
                                    t->thread_n, t->strip_n, t->lanes_n < 32 ? t->lanes_n : 32);
    const double products = wide * t->block_m * t->block_n * turn * ITEM_STEP;
    const double sums = (double)t->block_m * t->block_n * t->intra_group_split_k * PARTIAL_SUM;
    const double turns = ceil(k / turn);
    return turns * TURN +
           most * (turns * (loads + products) * (1 + FAR_LOADS * distance(s)) + wide * sums);
}

static double direct_ns(const ops_gemm_shape *s, const ops_gemm_tiles *t, double most)
{
    const double items = (double)t->block_m / t->thread_m * t->block_n / t->thread_n;
    const double stores = t->thread_m * (s->n % 4 ? t->thread_n : 1);
    return ceil((double)s->k / t->block_k) * DIRECT_TURN +
           most * items *
               (DIRECT_LOAD * (double)s->k * (t->thread_m + t->thread_n) + DIRECT_STORE * stores);
}

double ops_gemm_estimate_ns(const hal_device_info *info, const ops_gemm_shape *s,
                            const ops_gemm_candidate *c)
{
    const ops_gemm_tiles *t = &c->tiles;
    const double k = c->depth ? c->depth : (double)s->k;
    const double parts = c->depth ? ceil((double)s->k / c->depth) : 1;
    const double groups =
        ceil((double)s->m / t->block_m) * ceil((double)s->n / t->block_n) * parts * s->batch;
    const double most = ceil(groups / (info->compute_units ? info->compute_units : 1));
    const double elements = (double)s->m * (double)s->n * s->batch;
    if (!t->stages && !t->unroll) {
        return DIRECT_LAUNCH + elements * DIRECT_C_ELEMENT + direct_ns(s, t, most);
    }
    double ns = LAUNCH + elements * C_ELEMENT;
    if (t->stages) {
        ns += staged_ns(s, c, most, k);
    } else {
        ns += intra_group_ns(s, t, most, k) + groups * GROUP + (parts > 1 ? PARTS : 0);
    }
    return parts > 1 ? ns + REDUCE_LAUNCH + parts * elements * REDUCE_ELEMENT : ns;
}
