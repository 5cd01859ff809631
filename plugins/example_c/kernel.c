/* Kernels: C text, compiled; and a dispatch, which runs its groups one after the other. */
#include "example_c.h"

#include <dlfcn.h>

/* What the fibers of a group pass to the code. */
typedef struct group_call {
    const hal_plugin_kernel *kernel;
    void *const *bindings;
    const uint8_t *scalars;
    const uint32_t *grid;
    uint32_t group[3];
    kit_fibers *fibers;
} group_call;

hal_status example_kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                                 hal_plugin_kernel **kernel)
{
    (void)device;
    kit_text text = {.host = kit_host()};
    hal_plugin_kernel *made = example_new(sizeof *made, "kernel");
    if (!made) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    made->items = hal_ir_group_items(ir);
    for (uint32_t i = 0; i < ir->record_count; i++) {
        made->has_barriers |= ir->records[i].opcode == HAL_IR_BARRIER;
    }
    hal_status status = example_lower(ir, &text);
    if (status == HAL_OK) {
        status = example_compile(&text, ir->names + ir->name, &made->library, &made->run);
    }
    kit_text_release(&text);
    if (status != HAL_OK) {
        example_release(made);
        return status;
    }
    *kernel = made;
    return HAL_OK;
}

void example_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel)
{
    (void)device;
    dlclose(kernel->library);
    example_release(kernel);
}

static void item_run(void *user, uint32_t item)
{
    const group_call *c = user;
    c->kernel->run(c->bindings, c->scalars, c->grid, c->group, item, item + 1, kit_fibers_barrier,
                   c->fibers);
}

static void group_run(group_call *c)
{
    if (c->kernel->has_barriers) {
        kit_fibers_run(c->fibers, c->kernel->items, item_run, c);
    } else {
        c->kernel->run(c->bindings, c->scalars, c->grid, c->group, 0, c->kernel->items,
                       kit_fibers_barrier, c->fibers);
    }
}

void example_kernel_run(const hal_plugin_kernel *kernel, const uint32_t grid[3],
                        void *const *bindings, const uint8_t *scalars, kit_fibers *fibers)
{
    group_call c = {kernel, bindings, scalars, grid, {0}, fibers};
    for (c.group[2] = 0; c.group[2] < grid[2]; c.group[2]++) {
        for (c.group[1] = 0; c.group[1] < grid[1]; c.group[1]++) {
            for (c.group[0] = 0; c.group[0] < grid[0]; c.group[0]++) {
                group_run(&c);
            }
        }
    }
}
