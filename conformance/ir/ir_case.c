/* ir_case.c: building, running and checking one small kernel; ir_case.h says who calls it. */
#include "ir/ir_case.h"

#include <stdlib.h>

uint32_t ir_group_of(const case_run *run)
{
    const uint32_t most = run->info->max_group_items < run->info->max_group_size[0]
                              ? run->info->max_group_items
                              : run->info->max_group_size[0];
    return most < IR_GROUP ? most : IR_GROUP;
}

hal_ir_builder *ir_begin(case_run *run, const char *name)
{
    hal_ir_builder *builder = NULL;
    if (!case_ok(run, hal_ir_builder_create(name, &builder), "hal_ir_builder_create")) {
        return NULL;
    }
    hal_ir_group_size(builder, ir_group_of(run), 1, 1);
    return builder;
}

bool ir_finish(case_run *run, hal_ir_builder *builder, hal_kernel **kernel)
{
    hal_ir_kernel *ir = NULL;
    *kernel = NULL;
    bool well = case_ok(run, hal_ir_builder_finish(builder, &ir), "hal_ir_builder_finish");
    hal_ir_builder_destroy(builder);
    if (well) {
        well = case_ok(run, hal_kernel_create(run->device, ir, kernel), "hal_kernel_create");
    }
    hal_ir_kernel_destroy(ir);
    return well;
}

bool ir_dispatch(case_run *run, hal_kernel *kernel, uint32_t groups, const red_zone *zones,
                 uint32_t zone_count, const void *scalars, uint32_t scalar_bytes)
{
    const uint32_t grid[3] = {groups, 1, 1};
    hal_range bindings[HAL_IR_MAX_BINDINGS];
    for (uint32_t i = 0; i < zone_count; i++) {
        bindings[i] = zone_range(&zones[i]);
    }
    return case_ok(
        run,
        hal_queue_dispatch(run->queue, kernel, grid, bindings, zone_count, scalars, scalar_bytes),
        "hal_queue_dispatch");
}

bool ir_run(case_run *run, hal_ir_builder *builder, uint32_t groups, const red_zone *zones,
            uint32_t zone_count, const void *scalars, uint32_t scalar_bytes)
{
    hal_kernel *kernel;
    const bool well = ir_finish(run, builder, &kernel) &&
                      ir_dispatch(run, kernel, groups, zones, zone_count, scalars, scalar_bytes);
    hal_kernel_release(kernel);
    return well;
}

bool ir_check(case_run *run, const red_zone *zone, hal_type type, const void *expected,
              size_t count, const char *what)
{
    void *actual = malloc(zone->bytes + 1);
    comparison found;
    bool well = actual != NULL ? zone_read(run, zone, actual, what)
                               : case_fail(run, "the host has no memory");
    if (well && !compare_bits(type, actual, expected, count, true, &found)) {
        well = ir_report(run, &found, what);
    }
    free(actual);
    return well;
}

bool ir_report(case_run *run, const comparison *found, const char *what)
{
    char text[512];
    comparison_text(found, text, sizeof text);
    return case_fail(run, "%s: %s", what, text);
}
