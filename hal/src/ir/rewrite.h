/* What the passes of the legaliser share: reading one kernel while building another. */
#ifndef HAL_SRC_IR_REWRITE_H
#define HAL_SRC_IR_REWRITE_H

#include "internal.h"

#include <hal/plugin.h>

typedef struct hal_ir_rewrite {
    const hal_ir_kernel *from;
    const hal_device_info *info;
    hal_ir_builder *to;
    hal_ir_value *values; /* in `to`, of each record of `from` */

    /* Vectors that exist as their elements only: 8 places for each, from elements[split]. */
    uint32_t *splits; /* of each record, NONE when its vector is whole; null in most passes */
    hal_ir_value *elements;
    uint32_t element_count, element_capacity;

    /* Where subgroups are emulated: set before the first record is rewritten. */
    hal_ir_value item, lane, lane_zero; /* of the group; of the subgroup; the item of lane 0 */
    hal_ir_memory_id exchange_32, exchange_64;
} hal_ir_rewrite;

/* Begins a kernel with the declarations of `from`; memories get the types that `storage` gives, or
 * keep theirs when it is null. On failure nothing is held. */
hal_status hal_ir_rewrite_begin(hal_ir_rewrite *r, const hal_ir_kernel *from,
                                const hal_device_info *info,
                                hal_type (*storage)(const hal_device_info *info, hal_type type));

/* Copies a record with its operands replaced. */
hal_ir_value hal_ir_rewrite_copy(hal_ir_rewrite *r, const hal_ir_record *record);

/* The replaced operand; NONE for NONE. */
static inline hal_ir_value hal_ir_rewrite_operand(const hal_ir_rewrite *r, hal_ir_value operand)
{
    return operand == HAL_IR_NONE ? HAL_IR_NONE : r->values[operand];
}

/* Finishes the new kernel and frees what the pass held. */
hal_status hal_ir_rewrite_end(hal_ir_rewrite *r, hal_ir_kernel **made);

/* ---- The pass that lowers all but the transcendental functions, ir/lower.c ---- */

hal_status hal_ir_lower(const hal_ir_kernel *from, const hal_device_info *info,
                        hal_ir_kernel **made);

/* Its operations, ir/lower_ops.c. The type that memory of `type` gets on a device; the value of
 * what was loaded from there, and what is stored there for a value; NARROW computed. */
hal_type hal_ir_lower_storage(const hal_device_info *info, hal_type type);
hal_ir_value hal_ir_lower_loaded(hal_ir_builder *b, hal_type type, hal_type storage,
                                 hal_ir_value stored);
hal_ir_value hal_ir_lower_stored(hal_ir_builder *b, hal_type type, hal_type storage,
                                 hal_ir_value value);
hal_ir_value hal_ir_lower_narrow(hal_ir_builder *b, hal_type type, hal_ir_value value);

/* x * y + z, rounded once, by f64 without a fused multiply-add, ir/lower_fma.c: of f32; of f64 for
 * devices that flush denormals. */
hal_ir_value hal_ir_lower_fma(hal_ir_builder *b, hal_ir_value x, hal_ir_value y, hal_ir_value z);
hal_ir_value hal_ir_lower_fma_f64(hal_ir_builder *b, hal_ir_value x, hal_ir_value y,
                                  hal_ir_value z);

/* Subgroup operations through shared memory: what they need, before the first record, and each. */
void hal_ir_lower_subgroup_begin(hal_ir_rewrite *r);
hal_ir_value hal_ir_lower_subgroup(hal_ir_rewrite *r, const hal_ir_record *record);

#endif
