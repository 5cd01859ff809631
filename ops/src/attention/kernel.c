/* The attention kernel, see kernel.h. */
#include "kernel.h"

#include "passes.h"

/* The strides of a side that are scalars: those of rows, and the mask's of columns. */
static uint32_t stride_count(uint32_t side)
{
    const bool is_row = side == OPS_ATTENTION_NORM || side == OPS_ATTENTION_DELTA;
    return side == OPS_ATTENTION_MASK ? 4 : is_row ? 2 : 3;
}

static bool side_is_of_keys(uint32_t side)
{
    return side == OPS_ATTENTION_K || side == OPS_ATTENTION_V || side == OPS_ATTENTION_DK ||
           side == OPS_ATTENTION_DV;
}

uint32_t ops_attention_sides(const ops_attention_form *form)
{
    static const uint32_t of_kinds[3] = {
        [OPS_ATTENTION_FORWARD] = 1u << OPS_ATTENTION_Y,
        [OPS_ATTENTION_BY_QUERIES] = 1u << OPS_ATTENTION_DY | 1u << OPS_ATTENTION_DQ |
                                     1u << OPS_ATTENTION_NORM | 1u << OPS_ATTENTION_DELTA,
        [OPS_ATTENTION_BY_KEYS] =
            1u << OPS_ATTENTION_DY | 1u << OPS_ATTENTION_NORM | 1u << OPS_ATTENTION_DELTA};
    const uint32_t inputs = 1u << OPS_ATTENTION_Q | 1u << OPS_ATTENTION_K | 1u << OPS_ATTENTION_V;
    return inputs | of_kinds[form->kind] | (form->has_dk ? 1u << OPS_ATTENTION_DK : 0) |
           (form->has_dv ? 1u << OPS_ATTENTION_DV : 0) |
           (form->mask_type != HAL_TYPE_NONE ? 1u << OPS_ATTENTION_MASK : 0);
}

uint32_t ops_attention_shared(const ops_attention_form *form)
{
    return form->kind == OPS_ATTENTION_FORWARD      ? ops_attention_forward_shared(form)
           : form->kind == OPS_ATTENTION_BY_QUERIES ? ops_attention_by_queries_shared(form)
                                                    : ops_attention_by_keys_shared(form);
}

void ops_attention_put(const ops_attention_work *work, ops_block *block)
{
    const ops_attention_form *form = &work->form;
    const hal_type accumulator = hal_type_of_value(form->type);
    ops_block_begin(block);
    for (uint32_t i = 0; i < OPS_ATTENTION_SIDES; i++) {
        if (ops_attention_sides(form) >> i & 1) {
            ops_put_index(block, form->index64, work->operands[i].base);
            for (uint32_t k = 0; k < stride_count(i); k++) {
                ops_put_index(block, form->index64, work->operands[i].strides[k]);
            }
        }
    }
    ops_put_number(block, accumulator, work->factor);
    ops_put_number(block, accumulator, work->mask_factor);
    ops_put_u32(block, work->queries);
    ops_put_u32(block, work->keys);
    ops_put_u32(block, work->d);
    ops_put_u32(block, work->e);
    ops_put_u32(block, work->batches);
    ops_put_u32(block, work->blocks);
    ops_put_u32(block, work->heads);
    ops_put_u32(block, work->head_batches);
}

/* ---- The group's place ---- */

/* Scalars of a side. */
typedef struct side_scalars {
    hal_ir_value base, strides[4];
} side_scalars;

static void declare_sides(ops_attention_emitter *e, side_scalars *scalars)
{
    for (uint32_t i = 0; i < OPS_ATTENTION_SIDES; i++) {
        if (!(ops_attention_sides(e->form) >> i & 1)) {
            continue;
        }
        scalars[i].base = ops_scalar(e->b, "base", i, 0, e->index);
        for (uint32_t k = 0; k < stride_count(i); k++) {
            scalars[i].strides[k] = ops_scalar(e->b, "stride", i, k, e->index);
        }
    }
}

static hal_ir_value matrix_base(ops_attention_emitter *e, const side_scalars *scalars,
                                hal_ir_value outer, hal_ir_value batch)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value far = hal_ir_mul(b, ops_value_cast(b, e->index, outer), scalars->strides[0]);
    const hal_ir_value near =
        hal_ir_mul(b, ops_value_cast(b, e->index, batch), scalars->strides[1]);
    return hal_ir_add(b, hal_ir_add(b, scalars->base, far), near);
}

/* What the emission of a kernel's place needs. */
typedef struct group_place {
    side_scalars sides[OPS_ATTENTION_SIDES];
    hal_ir_value outer, batch; /* of the group's result */
} group_place;

static void place_sides(ops_attention_emitter *e, const side_scalars *scalars, hal_ir_value outer,
                        hal_ir_value batch)
{
    for (uint32_t i = 0; i < OPS_ATTENTION_SIDES; i++) {
        if (!(ops_attention_sides(e->form) >> i & 1)) {
            continue;
        }
        const bool is_narrow = i == OPS_ATTENTION_Q || i == OPS_ATTENTION_K ||
                               i == OPS_ATTENTION_DQ || i == OPS_ATTENTION_DK;
        e->sides[i] = (ops_attention_side){.memory = e->form->slots[i],
                                           .base = matrix_base(e, &scalars[i], outer, batch),
                                           .stride = scalars[i].strides[2],
                                           .rows = side_is_of_keys(i) ? e->keys : e->queries,
                                           .width = is_narrow ? e->d : e->e};
    }
    e->mask_column = scalars[OPS_ATTENTION_MASK].strides[3];
}

/* By keys: the matrices of one that shares the group's keys. Those of keys have strides of 0 along
 * axes that they share. */
static void place_head(ops_attention_emitter *e, hal_ir_value head, void *user)
{
    const group_place *p = user;
    hal_ir_builder *b = e->b;
    const hal_ir_value outer = hal_ir_add(b, p->outer, hal_ir_div(b, head, e->head_batches));
    place_sides(e, p->sides, outer, hal_ir_add(b, p->batch, hal_ir_rem(b, head, e->head_batches)));
}

/* Declares scalars in the order of ops_attention_put, and finds the group's matrix and rows. With
 * causal scores the last queries, which have most keys, come first. */
static void emit_place(ops_attention_emitter *e, group_place *p)
{
    hal_ir_builder *b = e->b;
    declare_sides(e, p->sides);
    e->factor = hal_ir_scalar_value(b, "factor", e->accumulator);
    e->mask_factor = hal_ir_scalar_value(b, "mask_factor", e->accumulator);
    e->queries = hal_ir_scalar_value(b, "queries", HAL_TYPE_U32);
    e->keys = hal_ir_scalar_value(b, "keys", HAL_TYPE_U32);
    e->d = hal_ir_scalar_value(b, "d", HAL_TYPE_U32);
    e->e = hal_ir_scalar_value(b, "e", HAL_TYPE_U32);
    const hal_ir_value batches = hal_ir_scalar_value(b, "batches", HAL_TYPE_U32);
    const hal_ir_value blocks = hal_ir_scalar_value(b, "blocks", HAL_TYPE_U32);
    e->heads = hal_ir_scalar_value(b, "heads", HAL_TYPE_U32);
    e->head_batches = hal_ir_scalar_value(b, "head_batches", HAL_TYPE_U32);
    const hal_ir_value number = ops_index_group(b);
    const hal_ir_value matrix = hal_ir_div(b, number, blocks);
    hal_ir_value block = hal_ir_rem(b, number, blocks);
    if (e->form->causal && e->form->kind != OPS_ATTENTION_BY_KEYS) {
        block = hal_ir_sub(b, hal_ir_sub(b, blocks, hal_ir_u32(b, 1)), block);
    }
    e->first_row = ops_attention_times(e, block, e->form->rows);
    e->shift = hal_ir_cast(b, HAL_TYPE_I32, hal_ir_sub(b, e->keys, e->queries));
    p->outer = hal_ir_div(b, matrix, batches);
    p->batch = hal_ir_rem(b, matrix, batches);
    place_sides(e, p->sides, p->outer, p->batch);
}

void ops_attention_emit(hal_ir_builder *b, const ops_attention_form *form)
{
    const ops_attention_unit *unit = form->matrix ? &ops_attention_matrix : &ops_attention_plain;
    ops_attention_emitter e = {.b = b,
                               .form = form,
                               .index = form->index64 ? HAL_TYPE_U64 : HAL_TYPE_U32,
                               .accumulator = hal_type_of_value(form->type)};
    const uint32_t items = form->matrix ? HAL_IR_MATRIX_LANES * form->subgroups
                                        : (uint32_t)form->side_lanes * form->side_lanes;
    hal_ir_group_size(b, items, 1, 1);
    e.shared = hal_ir_shared(b, "tiles", form->matrix ? HAL_TYPE_U32 : e.accumulator,
                             ops_attention_shared(form));
    e.item = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    unit->begin(&e);
    group_place place = {.outer = HAL_IR_NONE};
    emit_place(&e, &place);
    switch (form->kind) {
    case OPS_ATTENTION_FORWARD:
        ops_attention_emit_forward(&e, unit);
        break;
    case OPS_ATTENTION_BY_QUERIES:
        ops_attention_emit_by_queries(&e, unit);
        break;
    default:
        ops_attention_emit_by_keys(&e, unit, place_head, &place);
        break;
    }
}
