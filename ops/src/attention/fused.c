/* Attention by one kernel, see fused.h. */
#include "fused.h"

#include "kernels/short_functions.h"
#include "tensor/bindings.h"
#include "tensor/dispatch.h"
#include "tensor/indexing.h"
#include "tensor/kernel_cache.h"
#include "tensor/loop_limit.h"

#include <math.h>

#define VECTOR 8 /* elements of 16 bytes */

/* Shared memory of a group of which two fit on a GPU's compute unit, in bytes. */
#define TWO_GROUPS_BYTES (112u << 10)

static const ops_tensor *tensor_of(const ops_attention_call *call, uint32_t side)
{
    const ops_tensor *const tensors[OPS_ATTENTION_SIDES] = {
        [OPS_ATTENTION_Q] = &call->q,        [OPS_ATTENTION_K] = &call->k,
        [OPS_ATTENTION_V] = &call->v,        [OPS_ATTENTION_Y] = &call->y,
        [OPS_ATTENTION_MASK] = &call->mask,  [OPS_ATTENTION_DY] = &call->dy,
        [OPS_ATTENTION_DQ] = &call->dq,      [OPS_ATTENTION_DK] = &call->dk,
        [OPS_ATTENTION_DV] = &call->dv,      [OPS_ATTENTION_NORM] = &call->norm,
        [OPS_ATTENTION_DELTA] = &call->delta};
    return tensors[side];
}

static bool side_is_output(const ops_attention_form *form, uint32_t side)
{
    return side == OPS_ATTENTION_Y || side == OPS_ATTENTION_DQ || side == OPS_ATTENTION_DK ||
           side == OPS_ATTENTION_DV ||
           (side == OPS_ATTENTION_NORM && form->kind == OPS_ATTENTION_BY_QUERIES);
}

/* Whether a side is a matrix of the tensors' type, with a row for each query or key. */
static bool side_is_matrix(uint32_t side)
{
    return side != OPS_ATTENTION_MASK && side != OPS_ATTENTION_NORM && side != OPS_ATTENTION_DELTA;
}

/* Whether rows are contiguous, and with `vectors` begin at multiples of 16 bytes. */
static bool rows_fit(const ops_tensor *x, bool vectors)
{
    bool fits = x->stride[OPS_ATTENTION_COLUMN] == 1 || x->shape[OPS_ATTENTION_COLUMN] <= 1;
    for (uint32_t i = 0; vectors && i < OPS_ATTENTION_COLUMN; i++) {
        fits = fits && (x->shape[i] == 1 || x->stride[i] % VECTOR == 0);
    }
    return fits &&
           (!vectors || (x->offset % VECTOR == 0 && x->shape[OPS_ATTENTION_COLUMN] % VECTOR == 0));
}

static bool all_rows_fit(const ops_attention_call *call, const ops_attention_form *form,
                         bool vectors)
{
    bool fit = true;
    for (uint32_t i = 0; i < OPS_ATTENTION_SIDES; i++) {
        if (side_is_matrix(i) && (ops_attention_sides(form) >> i & 1)) {
            fit = fit && rows_fit(tensor_of(call, i), vectors);
        }
    }
    return fit;
}

/* The tensor whose rows are those of a kernel's result. */
static const ops_tensor *result_of(const ops_attention_call *call, const ops_attention_form *form)
{
    return form->kind != OPS_ATTENTION_BY_KEYS ? &call->q : form->has_dk ? &call->k : &call->v;
}

static uint64_t group_count(const ops_attention_call *call, const ops_attention_form *form)
{
    const int64_t *shape = result_of(call, form)->shape;
    return ops_ceil_divide((uint64_t)shape[OPS_ATTENTION_ROW], form->rows) *
           (uint64_t)shape[OPS_ATTENTION_OUTER] * (uint64_t)shape[OPS_ATTENTION_BATCH];
}

static bool shared_fits(const ops_attention_call *call, const ops_attention_form *form,
                        uint32_t most)
{
    const uint32_t size = form->matrix ? 4 : hal_type_size(call->accumulator);
    return ops_attention_shared(form) * (uint64_t)size <= most;
}

/* ---- Forms on matrix units ---- */

/* Tiles of a work-item that stay in its registers: 128 of results, half of that of scores, 32 words
 * of the first operand. Gradients have two tiles of scores. */
static void matrix_set_tiles(ops_attention_form *form, uint32_t row_tiles)
{
    const uint32_t widest = form->d > form->e ? form->d : form->e;
    const bool is_forward = form->kind == OPS_ATTENTION_FORWARD;
    const uint32_t kept = form->kind == OPS_ATTENTION_BY_QUERIES ? 256 : 128;
    form->row_tiles = (uint8_t)row_tiles;
    form->rows = (uint16_t)(16 * row_tiles * form->subgroups);
    form->keys = is_forward && row_tiles * widest <= 128 ? 64 : 32;
    form->keeps_rows = is_forward ? row_tiles * form->d <= 128 : form->d + form->e <= kept;
}

/* From the largest tiles on: those of which two groups fit, in two stages; then any that fit. */
static bool matrix_choose_tiles(const ops_attention_call *call, ops_attention_form *form)
{
    const hal_device_info *info = call->context->info;
    const uint32_t widest = form->d > form->e ? form->d : form->e;
    const uint32_t all = info->shared_bytes;
    const uint32_t half = all < TWO_GROUPS_BYTES ? all : TWO_GROUPS_BYTES;
    const uint32_t most = widest <= 128 && form->kind == OPS_ATTENTION_FORWARD ? 2 : 1;
    for (uint32_t attempt = 0; attempt < 3; attempt++) {
        form->stages = attempt < 2 ? 2 : 1;
        for (uint32_t row_tiles = most; row_tiles > 0; row_tiles--) {
            matrix_set_tiles(form, row_tiles);
            const bool is_busy = row_tiles == 1 || group_count(call, form) >= info->compute_units;
            if (is_busy && shared_fits(call, form, attempt == 0 ? half : all)) {
                return true;
            }
        }
    }
    return false;
}

static bool matrix_choose(const ops_attention_call *call, ops_attention_form *form)
{
    const hal_device_info *info = call->context->info;
    if (call->options.precision == HAL_GEMM_STRICT || !hal_type_is_narrow_float(call->type) ||
        !(info->matrix_types & HAL_TYPE_BIT(call->type)) ||
        info->subgroup_width != HAL_IR_MATRIX_LANES || info->max_group_items < 128) {
        return false;
    }
    form->matrix = 1;
    form->subgroups = 4;
    form->vectors = all_rows_fit(call, form, true) && info->max_vector_bytes >= 16;
    form->d = (uint16_t)((call->q.shape[OPS_ATTENTION_COLUMN] + 31) / 32 * 32);
    form->e = (uint16_t)((call->v.shape[OPS_ATTENTION_COLUMN] + 31) / 32 * 32);
    return matrix_choose_tiles(call, form);
}

/* ---- Forms of single products ---- */

static uint16_t plain_width(int64_t width)
{
    uint16_t padded = 32;
    while (padded < width) {
        padded *= 2;
    }
    return padded;
}

/* Whether the loops of a kernel have as few iterations as the device allows. */
static bool plain_loops_fit(const ops_attention_call *call, const ops_attention_form *form,
                            uint32_t heads)
{
    const bool is_forward = form->kind == OPS_ATTENTION_FORWARD;
    const uint64_t items = (uint64_t)form->side_lanes * form->side_lanes;
    const uint64_t copies = (uint64_t)form->keys * (form->d + form->e) / items + 4;
    const uint64_t inner = copies + (is_forward ? 1 : 2) * (uint64_t)(form->d + form->keys + 2);
    const uint64_t rows = (uint64_t)form->rows * (form->d + form->e) / items + 4;
    const int64_t across =
        form->kind == OPS_ATTENTION_BY_KEYS ? call->rows : (is_forward ? 1 : 2) * call->columns;
    return (int64_t)heads * (across / form->keys + 2) <
           ops_loop_limit(call->context, inner, rows * heads);
}

/* Whether the device's compiler handles the kernel: those of processors without subgroups take
 * minutes for the barriers that take their place in loops (PoCL). */
static bool plain_compiles(const hal_device_info *info)
{
    return info->kind != HAL_DEVICE_CPU || info->subgroup_width > 0;
}

static bool plain_choose(const ops_attention_call *call, ops_attention_form *form, uint32_t heads)
{
    const hal_device_info *info = call->context->info;
    const uint32_t width = info->subgroup_width ? info->subgroup_width : HAL_IR_EMULATED_SUBGROUP;
    form->matrix = form->vectors = form->keeps_rows = form->row_tiles = form->subgroups = 0;
    form->stages = 1;
    form->d = plain_width(call->q.shape[OPS_ATTENTION_COLUMN]);
    form->e = plain_width(call->v.shape[OPS_ATTENTION_COLUMN]);
    for (uint32_t lanes = 16; lanes >= 8; lanes /= 2) {
        for (uint32_t each = 4; each > 0; each /= 2) {
            form->side_lanes = (uint8_t)lanes;
            form->rows = form->keys = (uint16_t)(lanes * each);
            if (plain_compiles(info) && lanes <= width && lanes * lanes <= info->max_group_items &&
                plain_loops_fit(call, form, heads) && shared_fits(call, form, info->shared_bytes)) {
                return true;
            }
        }
    }
    return false;
}

/* ---- Plans ---- */

static uint8_t power_choose(const ops_attention_call *call)
{
    const hal_device_info *info = call->context->info;
    if (call->accumulator != HAL_TYPE_F32) {
        return OPS_ATTENTION_EXP;
    }
    if (info->features & HAL_FEATURE_FAST_MATH) {
        return OPS_ATTENTION_EXP2;
    }
    return !ops_expands(info, HAL_IR_EXP)         ? OPS_ATTENTION_EXP
           : hal_type_is_narrow_float(call->type) ? OPS_ATTENTION_EXP_NARROW
                                                  : OPS_ATTENTION_EXP_BELOW;
}

static bool places_are_far(const ops_attention_call *call, const ops_tensor *x)
{
    int64_t first, end;
    ops_span(x, &first, &end);
    return end - first >= call->context->tuning->index32_limit;
}

/* By keys: the matrices of queries that share one of the result's keys. */
static void plan_heads(const ops_attention_call *call, ops_attention_work *work)
{
    const int64_t *all = call->q.shape, *own = result_of(call, &work->form)->shape;
    const int64_t batches = all[OPS_ATTENTION_BATCH] / own[OPS_ATTENTION_BATCH];
    work->heads = (uint32_t)(batches * (all[OPS_ATTENTION_OUTER] / own[OPS_ATTENTION_OUTER]));
    work->head_batches = (uint32_t)batches;
    work->batches = (uint32_t)own[OPS_ATTENTION_BATCH];
}

static bool needs_64_bits(const ops_attention_call *call, const ops_attention_form *form)
{
    bool needs = false;
    for (uint32_t i = 0; i < OPS_ATTENTION_SIDES; i++) {
        if (ops_attention_sides(form) >> i & 1) {
            needs = needs || places_are_far(call, tensor_of(call, i));
        }
    }
    return needs;
}

/* Plans a kernel of form.kind. */
static bool plan_make(const ops_attention_call *call, ops_attention_work *work)
{
    const hal_device_info *info = call->context->info;
    ops_attention_form *form = &work->form;
    work->queries = (uint32_t)call->rows;
    work->keys = (uint32_t)call->columns;
    work->d = (uint32_t)call->q.shape[OPS_ATTENTION_COLUMN];
    work->e = (uint32_t)call->v.shape[OPS_ATTENTION_COLUMN];
    form->type = call->type;
    form->mask_type = call->options.mask ? call->mask.type : (hal_type)HAL_TYPE_NONE;
    if (work->d > OPS_ATTENTION_MAX_HEAD || work->e > OPS_ATTENTION_MAX_HEAD ||
        !(call->options.scale > 0) || isinf(call->options.scale) ||
        !all_rows_fit(call, form, false)) {
        return false;
    }
    plan_heads(call, work);
    form->causal = call->options.causal != 0;
    form->fused = (info->exactness & HAL_EXACT_FMA) != 0;
    form->power = power_choose(call);
    if (!matrix_choose(call, form) && !plain_choose(call, form, work->heads)) {
        return false;
    }
    form->index64 = needs_64_bits(call, form);
    work->mask_factor = form->power == OPS_ATTENTION_EXP2 ? 1 / log(2) : 1;
    work->factor = call->options.scale * work->mask_factor;
    work->blocks = (uint32_t)ops_ceil_divide(
        (uint64_t)result_of(call, form)->shape[OPS_ATTENTION_ROW], form->rows);
    return group_count(call, form) <= info->max_grid[0];
}

bool ops_attention_fused_plan(const ops_attention_call *call, ops_attention_work *work)
{
    *work = (ops_attention_work){.form = {.kind = OPS_ATTENTION_FORWARD}};
    return plan_make(call, work);
}

/* Both gradients of keys and values have one kernel where their sums fit into registers. */
uint32_t ops_attention_gradients_plan(const ops_attention_call *call,
                                      ops_attention_work works[OPS_ATTENTION_GRADIENT_KERNELS])
{
    const ops_tensor *k = &call->k, *v = &call->v;
    const bool is_one = k->shape[OPS_ATTENTION_OUTER] == v->shape[OPS_ATTENTION_OUTER] &&
                        k->shape[OPS_ATTENTION_BATCH] == v->shape[OPS_ATTENTION_BATCH] &&
                        k->shape[OPS_ATTENTION_COLUMN] <= 128 &&
                        v->shape[OPS_ATTENTION_COLUMN] <= 128;
    const uint32_t count = is_one ? 2 : 3;
    for (uint32_t i = 0; i < count; i++) {
        works[i] = (ops_attention_work){
            .form = {.kind = i ? OPS_ATTENTION_BY_KEYS : OPS_ATTENTION_BY_QUERIES,
                     .has_dk = i == 1,
                     .has_dv = i == 2 || (i == 1 && is_one)}};
        if (!plan_make(call, &works[i])) {
            return 0;
        }
    }
    return count;
}

/* By the model of the device's table. */
bool ops_attention_fused_is_faster(const ops_attention_call *call, const ops_attention_work *work)
{
    const ops_attention_tuning *tuning = &call->context->tuning->attention;
    const bool by_units = work->form.matrix;
    const bool is_wide = work->d > 64 || work->e > 64;
    const double rate = by_units  ? tuning->matrix_ops
                        : is_wide ? tuning->plain_wide_ops
                                  : tuning->plain_ops;
    const double units = (double)call->context->info->compute_units;
    const double matrices =
        (double)call->y.shape[OPS_ATTENTION_OUTER] * (double)call->y.shape[OPS_ATTENTION_BATCH];
    const double all =
        2.0 * matrices * (double)call->rows * (double)call->columns * (work->d + work->e);
    const double skipped = call->options.causal && call->rows > 1 ? 0.5 : 1.0;
    const double least = by_units ? tuning->key_ns * (double)call->columns : 0.0;
    const double block_rate = by_units ? tuning->block_matrix_ops : tuning->block_ops;
    return rate > 0 && fmax(least, skipped * all / (units * rate)) <
                           tuning->block_ns + all / (units * block_rate);
}

/* ---- Recording ---- */

/* The tensor as the kernel reads it: matrix units take words, of 16 bytes or of two elements. */
static ops_tensor as_bound(const ops_attention_form *form, const ops_tensor *x, uint32_t side)
{
    ops_tensor bound = *x;
    if (!form->matrix || side_is_output(form, side) || !side_is_matrix(side)) {
        return bound;
    }
    bound.type = form->vectors ? HAL_TYPE_U32 : HAL_TYPE_U16;
    if (form->vectors) {
        bound.shape[OPS_ATTENTION_COLUMN] /= 2;
        bound.offset /= 2;
        for (uint32_t i = 0; i < OPS_ATTENTION_COLUMN; i++) {
            bound.stride[i] /= 2;
        }
    }
    return bound;
}

/* What a kernel is emitted from. */
typedef struct emission {
    const ops_attention_form *form;
    const ops_bindings *bindings;
} emission;

static void emission_emit(hal_ir_builder *b, const void *user)
{
    const emission *made = user;
    ops_declare_bindings(b, made->bindings);
    ops_attention_emit(b, made->form);
}

hal_status ops_attention_fused_record(const ops_attention_call *call, ops_attention_work *work)
{
    ops_context *context = call->context;
    ops_attention_form *form = &work->form;
    ops_bindings bindings = {0};
    ops_tensor bound[OPS_ATTENTION_SIDES];
    ops_cache_key key;
    ops_entry *entry;
    ops_block block;
    for (uint32_t i = 0; i < OPS_ATTENTION_SIDES; i++) {
        if (ops_attention_sides(form) >> i & 1) {
            bound[i] = as_bound(form, tensor_of(call, i), i);
            form->slots[i] =
                (uint8_t)ops_bind(context, &bindings, &bound[i],
                                  side_is_output(form, i) ? HAL_ACCESS_WRITE : HAL_ACCESS_READ);
        }
    }
    for (uint32_t i = 0; i < OPS_ATTENTION_SIDES; i++) {
        if (ops_attention_sides(form) >> i & 1) {
            work->operands[i].base = ops_base(&bindings, form->slots[i], &bound[i]);
            for (uint32_t k = 0; k < OPS_ATTENTION_RANK; k++) {
                const bool is_one = bound[i].shape[k] == 1; /* broadcast */
                work->operands[i].strides[k] = is_one ? 0 : bound[i].stride[k];
            }
        }
    }
    static const char *const names[3] = {"attention", "attention_queries", "attention_keys"};
    ops_cache_key_begin(&key, OPS_FAMILY_ATTENTION);
    ops_cache_key_append(&key, form, sizeof *form);
    ops_bindings_key(&bindings, form->slots, OPS_ATTENTION_SIDES, &key);
    const emission made = {form, &bindings};
    HAL_TRY(ops_cache_get(context, &key, names[form->kind], emission_emit, &made, &entry));
    ops_attention_put(work, &block);
    const uint32_t grid[3] = {(uint32_t)group_count(call, form), 1, 1};
    return ops_dispatch(context, entry, grid, &bindings, &block);
}
