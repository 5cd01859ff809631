/* Matrices of F64 as words, see operand.h. */
#include "operand.h"

#include "tensor/indexing.h"

enum { WORDS = 2 }; /* of a number */

void ops_exact_operand_bind(const ops_context *context, ops_bindings *bindings, const ops_tensor *x,
                            uint32_t access, ops_exact_operand *operand)
{
    operand->words = (ops_tensor){
        .buffer = x->buffer,
        .type = HAL_TYPE_U32,
        .rank = 4,
        .offset = WORDS * x->offset,
        .shape = {x->shape[0], x->shape[1], x->shape[2], WORDS},
        .stride = {WORDS * x->stride[0], WORDS * x->stride[1], WORDS * x->stride[2], 1}};
    operand->slot = (uint8_t)ops_bind(context, bindings, &operand->words, access);
}

bool ops_exact_needs_index64(const ops_bindings *bindings)
{
    bool needs = false;
    for (uint32_t i = 0; i < bindings->count; i++) {
        needs = needs || bindings->ranges[i].length / sizeof(uint32_t) > INT32_MAX;
    }
    return needs;
}

void ops_exact_operand_put(const ops_bindings *bindings, const ops_exact_operand *operand,
                           bool index64, ops_block *block)
{
    ops_put_index(block, index64, ops_base(bindings, operand->slot, &operand->words));
    for (uint32_t axis = 0; axis < 3; axis++) {
        ops_put_index(block, index64, operand->words.stride[axis]);
    }
}

ops_exact_place ops_exact_operand_declare(hal_ir_builder *b, const ops_exact_operand *operand,
                                          bool index64, uint32_t number)
{
    ops_exact_place place = {.memory = operand->slot,
                             .type = index64 ? HAL_TYPE_U64 : HAL_TYPE_U32};
    place.base = ops_scalar(b, "base", number, 0, place.type);
    place.batch = ops_scalar(b, "stride", number, 0, place.type);
    place.line = ops_scalar(b, "stride", number, 1, place.type);
    place.step = ops_scalar(b, "stride", number, 2, place.type);
    return place;
}

static hal_ir_value advance(hal_ir_builder *b, const ops_exact_place *place, hal_ir_value index,
                            hal_ir_value count, hal_ir_value stride)
{
    const hal_ir_value wide = ops_value_cast(b, place->type, count);
    return hal_ir_add(b, index, hal_ir_mul(b, wide, stride));
}

hal_ir_value ops_exact_line_index(hal_ir_builder *b, const ops_exact_place *place,
                                  hal_ir_value batch, hal_ir_value line)
{
    const hal_ir_value matrix = advance(b, place, place->base, batch, place->batch);
    return advance(b, place, matrix, line, place->line);
}

hal_ir_value ops_exact_step_index(hal_ir_builder *b, const ops_exact_place *place,
                                  hal_ir_value line_index, hal_ir_value step)
{
    return advance(b, place, line_index, step, place->step);
}

ops_f64_words ops_exact_load(hal_ir_builder *b, const ops_exact_place *place, hal_ir_value index,
                             hal_ir_value guard)
{
    const hal_ir_value both = hal_ir_load_wide(b, place->memory, index, 0, WORDS, guard);
    ops_f64_words x;
    x.low = hal_ir_extract(b, both, 0);
    x.high = hal_ir_extract(b, both, 1);
    return x;
}

void ops_exact_store(hal_ir_builder *b, const ops_exact_place *place, hal_ir_value index,
                     ops_f64_words x)
{
    const hal_ir_value words[WORDS] = {x.low, x.high};
    hal_ir_store_wide(b, place->memory, index, 0, HAL_IR_NONE, hal_ir_pack(b, WORDS, words));
}
