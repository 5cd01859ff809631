/* Shared by the passes of the legaliser: builds a kernel from the records of another one. */
#ifndef HAL_SRC_IR_REWRITE_H
#define HAL_SRC_IR_REWRITE_H

#include "internal.h"

#include <hal/plugin.h>
#include <stdbool.h>

typedef struct hal_ir_rewrite {
    const hal_ir_kernel *from;
    const hal_device_info *info;
    hal_ir_builder *to;
    hal_ir_value *values; /* in `to`, of each record of `from` */

    /* A vector that the device cannot hold is split: its 8 elements begin at elements[split]. */
    uint32_t *splits; /* of each record; NONE: not split */
    hal_ir_value *elements;
    uint32_t element_count, element_capacity;

    /* Set before the first record if subgroups are emulated. */
    hal_ir_value item, lane, lane_zero; /* work-item in the group, in the subgroup, of lane 0 */
    hal_ir_memory_id exchange_32, exchange_64;
} hal_ir_rewrite;

/* A binding that a pass adds; the kernel reads and writes it. */
typedef struct hal_ir_added {
    const char *name;
    hal_type type;
} hal_ir_added;

/* Begins a kernel with the declarations of `from`. `storage` maps the types of memories; null keeps
 * them. `added`: bindings after those of `from`, which raise the numbers of shared arrays; the last
 * one has no name; null: none. */
hal_status hal_ir_rewrite_begin(hal_ir_rewrite *r, const hal_ir_kernel *from,
                                const hal_device_info *info,
                                hal_type (*storage)(const hal_device_info *info, hal_type type),
                                const hal_ir_added *added);

/* Appends a copy of a record with its operands replaced. */
hal_ir_value hal_ir_rewrite_copy(hal_ir_rewrite *r, const hal_ir_record *record);

/* The replaced operand; NONE for NONE. */
static inline hal_ir_value hal_ir_rewrite_operand(const hal_ir_rewrite *r, hal_ir_value operand)
{
    return operand == HAL_IR_NONE ? HAL_IR_NONE : r->values[operand];
}

/* Finishes the new kernel and frees the state of the pass; null `made`: only frees. The kernel is
 * not verified: the legaliser does that once, after its last pass. */
hal_status hal_ir_rewrite_end(hal_ir_rewrite *r, hal_ir_kernel **made);

/* ---- The pass that lowers everything except transcendental functions, ir/lower.c ---- */

/* Whether the pass changes the kernel. */
bool hal_ir_needs_lowering(const hal_ir_kernel *kernel, const hal_device_info *info);

hal_status hal_ir_lower(const hal_ir_kernel *from, const hal_device_info *info,
                        hal_ir_kernel **made);

/* ---- The pass that hides constants of info->wrong_constants, ir/hide.c ---- */

/* Whether the pass changes the kernel. */
bool hal_ir_needs_hiding(const hal_ir_kernel *kernel, const hal_device_info *info);

/* Constants, scalars and ids of `from` come first. */
hal_status hal_ir_hide(const hal_ir_kernel *from, const hal_device_info *info,
                       hal_ir_kernel **made);

/* ---- Operations of hal_ir_lower, ir/lower_ops.c ---- */

/* Operations in terms of others: the storage type of memory of `type` on a device, conversions
 * from and to it, and NARROW. */
hal_type hal_ir_lower_storage(const hal_device_info *info, hal_type type);
hal_ir_value hal_ir_lower_loaded(hal_ir_builder *b, hal_type type, hal_type storage,
                                 hal_ir_value stored);
hal_ir_value hal_ir_lower_stored(hal_ir_builder *b, hal_type type, hal_type storage,
                                 hal_ir_value value);
hal_ir_value hal_ir_lower_narrow(hal_ir_builder *b, hal_type type, hal_ir_value value);

/* x * y + z of f32, rounded once, by f64 operations (ir/lower_fma.c); of f64, for devices that
 * flush denormals. */
hal_ir_value hal_ir_lower_fma(hal_ir_builder *b, hal_ir_value x, hal_ir_value y, hal_ir_value z);
hal_ir_value hal_ir_lower_fma_f64(hal_ir_builder *b, hal_ir_value x, hal_ir_value y,
                                  hal_ir_value z);

/* Subgroup operations through shared memory. `begin` is called before the first record. */
void hal_ir_lower_subgroup_begin(hal_ir_rewrite *r);
hal_ir_value hal_ir_lower_subgroup(hal_ir_rewrite *r, const hal_ir_record *record);

#endif
