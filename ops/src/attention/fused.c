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

/* The tensor of a side. Null: none. */
static const ops_tensor *tensor_of(const ops_attention_call *call, uint32_t side)
{
    switch (side) {
    case OPS_ATTENTION_Q:
        return &call->q;
    case OPS_ATTENTION_K:
        return &call->k;
    case OPS_ATTENTION_V:
        return &call->v;
    case OPS_ATTENTION_Y:
        return &call->y;
    default:
        return &call->mask;
    }
}

static bool side_is_output(uint32_t side)
{
    return side == OPS_ATTENTION_Y;
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

static bool all_rows_fit(const ops_attention_call *call, bool vectors)
{
    return rows_fit(&call->q, vectors) && rows_fit(&call->k, vectors) &&
           rows_fit(&call->v, vectors) && rows_fit(&call->y, vectors);
}

static uint64_t group_count(const ops_attention_call *call, uint32_t rows)
{
    return ops_ceil_divide((uint64_t)call->rows, rows) *
           (uint64_t)call->y.shape[OPS_ATTENTION_OUTER] *
           (uint64_t)call->y.shape[OPS_ATTENTION_BATCH];
}

static bool shared_fits(const ops_attention_call *call, const ops_attention_form *form,
                        uint32_t most)
{
    const uint32_t size = form->matrix ? 4 : hal_type_size(call->accumulator);
    return ops_attention_shared(form) * (uint64_t)size <= most;
}

/* ---- Forms on matrix units ---- */

/* Tiles of a work-item that stay in its registers: 128 of results, half of that of scores, 32 words
 * of the first operand. */
static void matrix_set_tiles(ops_attention_form *form, uint32_t row_tiles, uint32_t keys)
{
    form->row_tiles = (uint8_t)row_tiles;
    form->rows = (uint16_t)(16 * row_tiles * form->subgroups);
    form->keys = (uint16_t)keys;
    form->keeps_rows = row_tiles * form->d <= 128;
}

/* From the largest tiles on: those of which two groups fit, in two stages; then any that fit. */
static bool matrix_choose_tiles(const ops_attention_call *call, ops_attention_form *form)
{
    const hal_device_info *info = call->context->info;
    const uint32_t widest = form->d > form->e ? form->d : form->e;
    const uint32_t all = info->shared_bytes;
    const uint32_t half = all < TWO_GROUPS_BYTES ? all : TWO_GROUPS_BYTES;
    for (uint32_t attempt = 0; attempt < 3; attempt++) {
        form->stages = attempt < 2 ? 2 : 1;
        for (uint32_t row_tiles = widest <= 128 ? 2 : 1; row_tiles > 0; row_tiles--) {
            const uint32_t keys = row_tiles * widest <= 128 ? 64 : 32;
            matrix_set_tiles(form, row_tiles, keys);
            const bool is_busy =
                row_tiles == 1 || group_count(call, form->rows) >= info->compute_units;
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
    form->vectors = all_rows_fit(call, true) && info->max_vector_bytes >= 16;
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

/* Iterations of loops in a step of the loop over keys. */
static uint64_t plain_inner_loops(const ops_attention_form *form, uint32_t items)
{
    return (uint64_t)form->keys * (form->d + form->e) / items + 4 + form->d + form->keys + 2;
}

static bool plain_choose(const ops_attention_call *call, ops_attention_form *form)
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
            const int64_t steps =
                ops_loop_limit(call->context, plain_inner_loops(form, lanes * lanes),
                               (uint64_t)form->rows * form->d / (lanes * lanes) + 2);
            if (lanes <= width && lanes * lanes <= info->max_group_items &&
                call->columns / form->keys < steps && shared_fits(call, form, info->shared_bytes)) {
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

bool ops_attention_fused_plan(const ops_attention_call *call, ops_attention_work *work)
{
    const hal_device_info *info = call->context->info;
    ops_attention_form *form = &work->form;
    *work = (ops_attention_work){.queries = (uint32_t)call->rows,
                                 .keys = (uint32_t)call->columns,
                                 .d = (uint32_t)call->q.shape[OPS_ATTENTION_COLUMN],
                                 .e = (uint32_t)call->v.shape[OPS_ATTENTION_COLUMN],
                                 .batches = (uint32_t)call->y.shape[OPS_ATTENTION_BATCH]};
    if (work->d > OPS_ATTENTION_MAX_HEAD || work->e > OPS_ATTENTION_MAX_HEAD ||
        !(call->options.scale > 0) || isinf(call->options.scale) || !all_rows_fit(call, false)) {
        return false;
    }
    form->type = call->type;
    form->mask_type = call->options.mask ? call->mask.type : (hal_type)HAL_TYPE_NONE;
    form->causal = call->options.causal != 0;
    form->fused = (info->exactness & HAL_EXACT_FMA) != 0;
    form->power = power_choose(call);
    if (!matrix_choose(call, form) && !plain_choose(call, form)) {
        return false;
    }
    for (uint32_t i = 0; i < OPS_ATTENTION_SIDES; i++) {
        if (ops_attention_sides(form) >> i & 1) {
            form->index64 |= places_are_far(call, tensor_of(call, i));
        }
    }
    const double unit = form->power == OPS_ATTENTION_EXP2 ? 1 / log(2) : 1;
    work->factor = call->options.scale * unit;
    work->mask_factor = unit;
    work->blocks = (uint32_t)ops_ceil_divide((uint64_t)call->rows, form->rows);
    return group_count(call, form->rows) <= info->max_grid[0];
}

/* Matrix units outdo products that store their scores; single products do on devices whose table
 * says so. */
bool ops_attention_fused_is_faster(const ops_attention_call *call, const ops_attention_work *work)
{
    return work->form.matrix || call->context->tuning->attention.fuses_products;
}

/* ---- Recording ---- */

/* The tensor as the kernel reads it: matrix units take words, of 16 bytes or of two elements. */
static ops_tensor as_bound(const ops_attention_form *form, const ops_tensor *x, uint32_t side)
{
    ops_tensor bound = *x;
    if (!form->matrix || side_is_output(side) || side == OPS_ATTENTION_MASK) {
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
                                  side_is_output(i) ? HAL_ACCESS_WRITE : HAL_ACCESS_READ);
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
    ops_cache_key_begin(&key, OPS_FAMILY_ATTENTION);
    ops_cache_key_append(&key, form, sizeof *form);
    ops_bindings_key(&bindings, form->slots, OPS_ATTENTION_SIDES, &key);
    const emission made = {form, &bindings};
    HAL_TRY(ops_cache_get(context, &key, "attention", emission_emit, &made, &entry));
    ops_attention_put(work, &block);
    const uint32_t grid[3] = {(uint32_t)group_count(call, form->rows), 1, 1};
    return ops_dispatch(context, entry, grid, &bindings, &block);
}
