/* Helpers of the emitters, see emitter.h. */
#include "emitter.h"

hal_ir_value ops_attention_place(const ops_attention_emitter *e, const ops_attention_side *side,
                                 hal_ir_value row, hal_ir_value column)
{
    hal_ir_builder *b = e->b;
    const hal_ir_value far = hal_ir_mul(b, ops_value_cast(b, e->index, row), side->stride);
    return hal_ir_add(b, hal_ir_add(b, side->base, far), ops_value_cast(b, e->index, column));
}

hal_ir_value ops_attention_fma(const ops_attention_emitter *e, hal_ir_value x, hal_ir_value y,
                               hal_ir_value z)
{
    return e->form->fused ? hal_ir_fma(e->b, x, y, z) : hal_ir_add(e->b, hal_ir_mul(e->b, x, y), z);
}
