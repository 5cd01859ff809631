/* Reduction kernels of communicators: one work-item per element. */
#include "reduce.h"

#include "core/flush.h"
#include "core/record.h"

#include "base/status.h"

#include <hal/ir_build.h>
#include <stdio.h>

#define GROUP_ITEMS 256u
#define UNROLLED_RANKS 4u /* communicators of up to that many ranks have a kernel of their own */

/* Where the own contribution is, and the result. */
typedef enum reduce_form {
    REDUCE_APART,    /* in two ranges */
    REDUCE_IN_PLACE, /* in one range */
    REDUCE_PADDED    /* among the others; nothing is guarded */
} reduce_form;

_Static_assert(REDUCE_PADDED + 1 == HAL_COMM_KERNELS, "a kernel for each form");

typedef struct reduce_scalars {
    uint32_t count, stride; /* in elements */
    uint32_t rank, ranks;
} reduce_scalars;

static uint32_t group_items(const hal_device *device)
{
    const hal_device_info *info = &device->info;
    uint32_t items = GROUP_ITEMS;
    items = items < info->max_group_items ? items : info->max_group_items;
    return items < info->max_group_size[0] ? items : info->max_group_size[0];
}

static hal_ir_value reduce_pair(hal_ir_builder *b, hal_type type, hal_reduction reduction,
                                hal_ir_value x, hal_ir_value y)
{
    const bool is_bool = type == HAL_TYPE_BOOL;
    switch (reduction) {
    case HAL_REDUCE_MIN:
        return is_bool ? hal_ir_and(b, x, y) : hal_ir_min(b, x, y);
    case HAL_REDUCE_MAX:
        return is_bool ? hal_ir_or(b, x, y) : hal_ir_max(b, x, y);
    default:
        return is_bool ? hal_ir_or(b, x, y) : hal_ir_add(b, x, y);
    }
}

/* Values of the kernel that all elements share. */
typedef struct reduce_values {
    hal_ir_memory_id others;
    hal_ir_value stride, rank, ranks;
    hal_ir_value any_other; /* a rank that is not the own one */
    hal_ir_value i, own;    /* the element, and the own contribution to it */
    bool has_all;           /* `others` has the own contribution, too */
} reduce_values;

/* Element `i` of rank `q`. The inbox has no contribution of the own rank: in its place another one
 * is loaded, which is loaded anyway, so that loads need no predicate. */
static hal_ir_value element_of(hal_ir_builder *b, const reduce_values *of, hal_ir_value q)
{
    if (of->has_all) {
        return hal_ir_load(b, of->others, hal_ir_add(b, hal_ir_mul(b, q, of->stride), of->i));
    }
    const hal_ir_value is_other = hal_ir_ne(b, q, of->rank);
    const hal_ir_value from = hal_ir_select(b, is_other, q, of->any_other);
    const hal_ir_value index = hal_ir_add(b, hal_ir_mul(b, from, of->stride), of->i);
    return hal_ir_select(b, is_other, hal_ir_load(b, of->others, index), of->own);
}

/* The reduction of all ranks' elements in the order of the ranks. */
static hal_ir_value elements_reduce(hal_ir_builder *b, const reduce_values *of, hal_type type,
                                    hal_reduction reduction, uint32_t unrolled)
{
    hal_ir_value sum = element_of(b, of, hal_ir_u32(b, 0));
    if (unrolled > 0) {
        for (uint32_t q = 1; q < unrolled; q++) {
            sum = reduce_pair(b, type, reduction, sum, element_of(b, of, hal_ir_u32(b, q)));
        }
        return sum;
    }
    const hal_ir_value one = hal_ir_u32(b, 1), so_far = hal_ir_var(b, sum);
    const hal_ir_value q = hal_ir_for(b, one, of->ranks, one);
    hal_ir_set(b, so_far,
               reduce_pair(b, type, reduction, hal_ir_get(b, so_far), element_of(b, of, q)));
    hal_ir_end(b);
    return hal_ir_get(b, so_far);
}

/* The rank is a scalar, so that a kernel serves all ranks of a process; so is the number of ranks
 * above UNROLLED_RANKS. */
static void reduce_build(hal_ir_builder *b, const hal_comm *comm, hal_type type,
                         hal_reduction reduction, reduce_form form)
{
    static const char *const names[4] = {"count", "stride", "rank", "ranks"};
    hal_ir_value scalars[4];
    hal_ir_group_size(b, group_items(comm->device), 1, 1);
    const bool in_place = form == REDUCE_IN_PLACE;
    reduce_values of = {.others = hal_ir_binding(b, "others", type, HAL_ACCESS_READ),
                        .has_all = form == REDUCE_PADDED};
    hal_ir_memory_id own = 0;
    if (!of.has_all) {
        own = hal_ir_binding(b, "own", type,
                             in_place ? HAL_ACCESS_READ | HAL_ACCESS_WRITE : HAL_ACCESS_READ);
    }
    const hal_ir_memory_id result =
        in_place ? own : hal_ir_binding(b, "result", type, HAL_ACCESS_WRITE);
    for (uint32_t s = 0; s < 4; s++) {
        scalars[s] = hal_ir_scalar_value(b, names[s], HAL_TYPE_U32);
    }
    of.stride = scalars[1];
    of.rank = scalars[2];
    of.ranks = scalars[3];
    const hal_ir_value zero = hal_ir_u32(b, 0), one = hal_ir_u32(b, 1);
    of.any_other = hal_ir_select(b, hal_ir_eq(b, of.rank, zero), one, zero);
    of.i = hal_ir_global_id(b, 0);
    if (!of.has_all) {
        hal_ir_if(b, hal_ir_lt(b, of.i, scalars[0]));
        of.own = hal_ir_load(b, own, of.i);
    }
    hal_ir_value value =
        elements_reduce(b, &of, type, reduction, comm->count <= UNROLLED_RANKS ? comm->count : 0);
    if (reduction == HAL_REDUCE_MEAN) {
        value = hal_ir_div(b, value, hal_ir_cast(b, hal_type_of_value(type), of.ranks));
    }
    hal_ir_store(b, result, of.i, value);
    if (!of.has_all) {
        hal_ir_end(b);
    }
}

static hal_status kernel_create(hal_comm *comm, hal_type type, hal_reduction reduction,
                                reduce_form form)
{
    static const char *const names[] = {"sum", "mean", "min", "max"};
    char name[48];
    hal_ir_builder *builder = NULL;
    hal_ir_kernel *ir = NULL;
    snprintf(name, sizeof name, "group_%s_%s", names[reduction], hal_type_name(type));
    hal_status status = hal_ir_builder_create(name, &builder);
    if (status == HAL_OK) {
        reduce_build(builder, comm, type, reduction, form);
        status = hal_ir_builder_finish(builder, &ir);
    }
    hal_ir_builder_destroy(builder);
    if (status == HAL_OK) {
        status = hal_kernel_create(comm->device, ir, &comm->kernels[type][reduction][form]);
    }
    hal_ir_kernel_destroy(ir);
    return status;
}

hal_status hal_reduce_prepare(hal_comm *comm, hal_type type, hal_reduction reduction, bool padded)
{
    hal_status status = HAL_OK;
    if (type == HAL_TYPE_BOOL && reduction == HAL_REDUCE_MEAN) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_queue_collective: reduction: expected sum, min or max of bool, got "
                        "mean");
    }
    const reduce_form first = padded ? REDUCE_PADDED : REDUCE_APART;
    const reduce_form last = padded ? REDUCE_PADDED : REDUCE_IN_PLACE;
    for (reduce_form form = first; status == HAL_OK && form <= last; form++) {
        if (!comm->kernels[type][reduction][form]) {
            status = kernel_create(comm, type, reduction, form);
        }
    }
    return status;
}

hal_status hal_reduce_copy(hal_queue *queue, hal_range source, hal_range target)
{
    const hal_range ranges[2] = {source, target};
    const hal_action action = hal_copy_action(ranges);
    if (source.length == 0 || (source.buffer == target.buffer && source.offset == target.offset)) {
        return HAL_OK;
    }
    const hal_status status = hal_flush_if_full(queue);
    return status == HAL_OK ? hal_record_action(&queue->recorder, &action) : status;
}

/* A range that a binding may have: `range` itself, or scratch memory of its length. */
static hal_status range_align(hal_comm *comm, hal_comm_stage *stage, uint32_t which,
                              hal_range range, hal_range *aligned)
{
    hal_status status = HAL_OK;
    *aligned = range;
    if (range.offset % comm->device->info.binding_alignment != 0) {
        status = hal_comm_scratch(comm, stage, which, range.length, &aligned->buffer);
        aligned->offset = 0;
    }
    return status;
}

/* Dispatches a kernel over `count` elements. `ranges` are its bindings. */
static hal_status reduce_dispatch(hal_comm *comm, hal_queue *queue, hal_kernel *kernel,
                                  uint64_t stride, const hal_range *ranges, uint32_t range_count,
                                  uint64_t count)
{
    const uint32_t items = group_items(comm->device);
    const reduce_scalars scalars = {(uint32_t)count, (uint32_t)stride, comm->rank, comm->count};
    const hal_action action = {.kind = HAL_COMMAND_DISPATCH,
                               .range_count = (uint16_t)range_count,
                               .scalar_bytes = sizeof scalars,
                               .grid = {(uint32_t)((count + items - 1) / items), 1, 1},
                               .kernel = kernel,
                               .scalars = &scalars,
                               .ranges = ranges,
                               .access = kernel->access};
    const hal_status status = hal_flush_if_full(queue);
    return status == HAL_OK ? hal_record_action(&queue->recorder, &action) : status;
}

hal_status hal_reduce_record(hal_comm *comm, hal_queue *queue, hal_comm_stage *stage, hal_type type,
                             hal_reduction reduction, hal_range others, uint64_t stride,
                             hal_range own, hal_range result, uint64_t count)
{
    hal_range ranges[3] = {others, own, result};
    if (count == 0) {
        return HAL_OK;
    }
    hal_status status = range_align(comm, stage, HAL_SCRATCH_OPERAND, own, &ranges[1]);
    if (status == HAL_OK) {
        status = range_align(comm, stage, HAL_SCRATCH_RESULT, result, &ranges[2]);
    }
    if (status == HAL_OK) {
        status = hal_reduce_copy(queue, own, ranges[1]);
    }
    const bool in_place =
        ranges[1].buffer == ranges[2].buffer && ranges[1].offset == ranges[2].offset;
    if (status == HAL_OK) {
        hal_kernel *kernel =
            comm->kernels[type][reduction][in_place ? REDUCE_IN_PLACE : REDUCE_APART];
        status = reduce_dispatch(comm, queue, kernel, stride, ranges, in_place ? 2 : 3, count);
    }
    return status == HAL_OK ? hal_reduce_copy(queue, ranges[2], result) : status;
}

uint64_t hal_reduce_padded_count(const hal_device *device, uint64_t count)
{
    const uint64_t items = group_items(device);
    return (count + items - 1) / items * items;
}

hal_status hal_reduce_record_padded(hal_comm *comm, hal_queue *queue, hal_comm_stage *stage,
                                    hal_type type, hal_reduction reduction, uint64_t stride,
                                    hal_range result, uint64_t count)
{
    const uint64_t size = hal_type_size(type);
    const uint64_t padded = hal_reduce_padded_count(comm->device, count);
    hal_range ranges[2] = {{stage->inbox, 0, comm->count * stride * size}, {0}};
    if (count == 0) {
        return HAL_OK;
    }
    hal_status status =
        hal_comm_scratch(comm, stage, HAL_SCRATCH_RESULT, padded * size, &ranges[1].buffer);
    if (status == HAL_OK) {
        ranges[1].length = padded * size;
        status = reduce_dispatch(comm, queue, comm->kernels[type][reduction][REDUCE_PADDED], stride,
                                 ranges, 2, padded);
    }
    return status == HAL_OK
               ? hal_reduce_copy(queue, (hal_range){ranges[1].buffer, 0, count * size}, result)
               : status;
}
