/* The cost model of the portable kernel, see cost.h. A product takes a launch and the time of the
 * unit with the most groups. The constants are in the tables of the device classes. Among portable
 * kernels only ratios matter; the time is compared with a plugin's estimate of its own kernels. */
#include "cost.h"

#include <math.h>

static double at_least(double x, double least)
{
    return x < least ? least : x;
}

/* How many operands are beyond the second-level cache, 0 to 1. */
static double distance(const ops_gemm_shape *s)
{
    const ops_gemm_cost_tuning *cost = &s->tuning->cost;
    const double bytes = (double)(s->m + s->n) * (double)s->k * hal_type_size(s->type);
    const double part = (bytes - cost->far_from) / cost->far_bytes;
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

/* Copies of an operand's tile by each work-item, of 16 bytes or a word. */
static double units_copies(const ops_gemm_tiles *t, uint32_t lines, uint32_t width)
{
    const double items = (double)t->block_m / t->thread_m * t->block_n / t->thread_n;
    return (double)lines * t->block_k / width / items;
}

/* The same of F64: copies of lines that do not begin with a sector take time of their own, next to
 * the multiplications of 16 x 8 x 8; and edges need a place for each copy of lines along k, next to
 * the sums, for which registers do not suffice. */
static double units_f64_access_time(const ops_gemm_shape *s, const ops_gemm_candidate *c)
{
    const ops_gemm_cost_tuning *cost = &s->tuning->cost;
    const ops_gemm_tiles *t = &c->tiles;
    const int64_t sector = 4, part = c->depth ? c->depth : s->k;
    const double a = units_copies(t, t->block_m, s->a_width),
                 b = units_copies(t, t->block_n, s->b_width);
    const double late = ((s->a_k_contiguous ? s->k : s->m) % sector ? a : 0) +
                        ((s->b_k_contiguous ? s->k : s->n) % sector ? b : 0);
    const double products = t->thread_m * t->thread_n * t->block_k / 32.0;
    const bool whole = s->m % t->block_m == 0 && s->n % t->block_n == 0 && part % t->block_k == 0;
    const double places = whole ? 0 : (s->a_k_contiguous ? a : 0) + (s->b_k_contiguous ? b : 0);
    const double beyond = places + 2 * t->thread_m * t->thread_n - cost->units_registers;
    return 1 + late / products * cost->units_late + at_least(beyond, 0) * cost->units_place;
}

/* By how much the accesses of matrix units lengthen a step. */
static double units_access_time(const ops_gemm_shape *s, const ops_gemm_candidate *c)
{
    const ops_gemm_cost_tuning *cost = &s->tuning->cost;
    const bool is_f32 = s->type == HAL_TYPE_F32;
    if (s->type == HAL_TYPE_F64) {
        return units_f64_access_time(s, c);
    }
    const double layout = 1 +
                          (s->b_k_contiguous          ? 0
                           : is_f32 || s->access < 16 ? 0.5
                                                      : 0.1) +
                          (s->a_k_contiguous ? 0
                           : is_f32          ? 0.2
                                             : 0.1);
    return layout * (s->access == hal_type_size(s->type) ? cost->units_single : 1);
}

/* By how much a step of several groups of matrix units exceeds the one of the table. */
static double units_step_time(const ops_gemm_shape *s, const ops_gemm_tiles *t)
{
    const ops_gemm_cost_tuning *cost = &s->tuning->cost;
    const bool is_narrow =
        s->type == HAL_TYPE_F32 && !(s->precision == HAL_GEMM_FAST && s->access == 16);
    return (t->matrix == 3 ? cost->units_parts
            : t->flush     ? cost->units_flush
                           : 1) *
           (is_narrow ? cost->units_narrow : 1);
}

/* Of `most` groups, for k steps. */
static double staged_ns(const ops_gemm_shape *s, const ops_gemm_candidate *c, double most, double k)
{
    const ops_gemm_cost_tuning *cost = &s->tuning->cost;
    const ops_gemm_tiles *t = &c->tiles;
    const ops_gemm_rates *r = c->rates;
    const double end = s->n % 4 ? r->odd_end : r->end;
    const double alone = r->alone * (t->matrix ? 1 : 1 + cost->far_staged * distance(s));
    const double step = r->step * (t->matrix ? units_step_time(s, t) : 1);
    const uint32_t size = hal_type_size(s->type);
    const double wide = size == 8 ? 2 : size == 4 ? 1 : cost->half_staged;
    const double factor = t->matrix ? units_access_time(s, c)
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
static double operand_ns(const ops_gemm_cost_tuning *cost, const ops_gemm_tiles *t,
                         int k_contiguous, uint32_t width, double size, double k, double lines,
                         double thread, double strip, double lanes)
{
    const double slices = at_least(32.0 / (t->lanes_m * t->lanes_n), 1);
    const double items = t->lanes_m * t->lanes_n * t->intra_group_split_k;
    const uint32_t most = k_contiguous ? t->block_k : (uint32_t)strip;
    const double loads = items * thread * t->block_k * t->unroll / (width < most ? width : most);
    const double met = k_contiguous ? lanes * at_least(slices * t->block_k * size / 128, 1)
                                    : slices * at_least(lanes * strip * size / 128, 1);
    const double sectors =
        k_contiguous ? sector_count(lines, k, width, size) : sector_count(k, lines, width, size);
    return loads * (cost->item_load + met / 32 * cost->line) + sectors * cost->sector;
}

static double intra_group_ns(const ops_gemm_shape *s, const ops_gemm_tiles *t, double most,
                             double k)
{
    const ops_gemm_cost_tuning *cost = &s->tuning->cost;
    const double size = hal_type_size(s->type), wide = size > 4 ? 2 : 1;
    const double step = (double)t->block_k * t->unroll, turn = step * t->intra_group_split_k;
    const double steps = k < turn ? k : turn;
    const double lanes_m = 32.0 / t->lanes_n < t->lanes_m ? 32.0 / t->lanes_n : t->lanes_m;
    const double loads = operand_ns(cost, t, s->a_k_contiguous, s->a_width, size, steps, t->block_m,
                                    t->thread_m, t->strip_m, at_least(lanes_m, 1)) +
                         operand_ns(cost, t, s->b_k_contiguous, s->b_width, size, steps, t->block_n,
                                    t->thread_n, t->strip_n, t->lanes_n < 32 ? t->lanes_n : 32);
    const double products = wide * t->block_m * t->block_n * turn * cost->item_step;
    const double sums =
        (double)t->block_m * t->block_n * t->intra_group_split_k * cost->partial_sum;
    const double turns = ceil(k / turn);
    return turns * cost->turn +
           most * (turns * (loads + products) * (1 + cost->far_loads * distance(s)) + wide * sums);
}

static double direct_ns(const ops_gemm_shape *s, const ops_gemm_tiles *t, double most)
{
    const ops_gemm_cost_tuning *cost = &s->tuning->cost;
    const double items = (double)t->block_m / t->thread_m * t->block_n / t->thread_n;
    const double stores = t->thread_m * (s->n % 4 ? t->thread_n : 1);
    const double wide = hal_type_size(s->type) > 4 ? 2 : 1;
    return ceil((double)s->k / t->block_k) * cost->direct_turn +
           wide * most * items *
               (cost->direct_load * (double)s->k * (t->thread_m + t->thread_n) +
                cost->direct_store * stores);
}

double ops_gemm_estimate_ns(const hal_device_info *info, const ops_gemm_shape *s,
                            const ops_gemm_candidate *c)
{
    const ops_gemm_cost_tuning *cost = &s->tuning->cost;
    const ops_gemm_tiles *t = &c->tiles;
    const double k = c->depth ? c->depth : (double)s->k;
    const double parts = c->depth ? ceil((double)s->k / c->depth) : 1;
    const double groups =
        ceil((double)s->m / t->block_m) * ceil((double)s->n / t->block_n) * parts * s->batch;
    const double most = ceil(groups / (info->compute_units ? info->compute_units : 1));
    const double elements = (double)s->m * (double)s->n * s->batch;
    if (!t->stages && !t->unroll) {
        return cost->direct_launch + elements * cost->direct_c_element + direct_ns(s, t, most);
    }
    const double wide = hal_type_size(s->type) > 4 ? 2 : 1;
    double ns = cost->launch + wide * elements * cost->c_element;
    if (t->stages) {
        ns += staged_ns(s, c, most, k);
    } else {
        ns += intra_group_ns(s, t, most, k) + groups * cost->group + (parts > 1 ? cost->parts : 0);
    }
    return parts > 1 ? ns + cost->reduce_launch + parts * elements * cost->reduce_element : ns;
}
