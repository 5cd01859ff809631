/* fixture.c: building, running and checking one small kernel. */
#include "ir/fixture.h"

uint32_t ir_group_of(const case_run *run)
{
    const uint32_t most = run->info->max_group_items < run->info->max_group_size[0]
                              ? run->info->max_group_items
                              : run->info->max_group_size[0];
    return most < IR_GROUP ? most : IR_GROUP;
}

hal_ir_builder *ir_begin(case_run *run, const char *name)
{
    hal_ir_builder *builder = case_builder(run, name);
    hal_ir_group_size(builder, ir_group_of(run), 1, 1);
    return builder;
}

void ir_dispatch(case_run *run, hal_kernel *kernel, uint32_t groups, const red_zone *zones,
                 uint32_t zone_count, const void *scalars, uint32_t scalar_bytes)
{
    const uint32_t grid[3] = {groups, 1, 1};
    hal_range bindings[HAL_IR_MAX_BINDINGS];
    for (uint32_t i = 0; i < zone_count; i++) {
        bindings[i] = zone_range(&zones[i]);
    }
    case_ok(
        run,
        hal_queue_dispatch(run->queue, kernel, grid, bindings, zone_count, scalars, scalar_bytes),
        "hal_queue_dispatch");
}

void ir_run(case_run *run, hal_ir_builder *builder, uint32_t groups, const red_zone *zones,
            uint32_t zone_count, const void *scalars, uint32_t scalar_bytes)
{
    ir_dispatch(run, case_kernel(run, builder), groups, zones, zone_count, scalars, scalar_bytes);
}

void ir_check(case_run *run, const red_zone *zone, hal_type type, const void *expected,
              size_t count, const char *what)
{
    void *actual = case_allocate(run, zone->bytes + 1, 1);
    comparison found;
    zone_read(run, zone, actual, what);
    if (!compare_bits(type, actual, expected, count, true, &found)) {
        case_report(run, &found, what);
    }
}

hal_ir_value ir_constant(hal_ir_builder *b, hal_type type, uint64_t bits)
{
    switch (type) {
    case HAL_TYPE_BOOL:
        return hal_ir_bool(b, bits != 0);
    case HAL_TYPE_I32:
        return hal_ir_i32(b, (int32_t)number_signed(type, bits));
    case HAL_TYPE_U32:
        return hal_ir_u32(b, (uint32_t)bits);
    case HAL_TYPE_I64:
        return hal_ir_i64(b, number_signed(type, bits));
    case HAL_TYPE_U64:
        return hal_ir_u64(b, bits);
    case HAL_TYPE_F32:
        return hal_ir_f32(b, number_f32(bits));
    default:
        return hal_ir_f64(b, number_f64(bits));
    }
}
