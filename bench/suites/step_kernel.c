/* step_kernel.c: see step_kernel.h. */
#include "suites/step_kernel.h"

#include <string.h>

hal_kernel *step_kernel_make(bench_state *bench)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    hal_kernel *kernel = NULL;
    if (!bench_ok(bench, hal_ir_builder_create("step", &b), "a builder")) {
        return NULL;
    }
    hal_ir_group_size(b, STEP_GROUP, 1, 1);
    const hal_ir_memory_id in = hal_ir_binding(b, "in", HAL_TYPE_U32, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const hal_ir_value tripled = hal_ir_mul(b, hal_ir_load(b, in, i), hal_ir_u32(b, 3));
    hal_ir_store(b, out, i, hal_ir_add(b, tripled, i));
    if (bench_ok(bench, hal_ir_builder_finish(b, &ir), "hal_ir_builder_finish")) {
        bench_ok(bench, hal_kernel_create(bench->device, ir, &kernel), "hal_kernel_create");
    }
    hal_ir_builder_destroy(b);
    hal_ir_kernel_destroy(ir);
    return kernel;
}

void step_kernel_expect(uint32_t words[STEP_WORDS], int64_t steps)
{
    memset(words, 0, STEP_WORDS * sizeof *words);
    for (int64_t step = 0; step < steps; step++) {
        for (uint32_t i = 0; i < STEP_WORDS; i++) {
            words[i] = words[i] * 3 + i;
        }
    }
}
