/* Kernels: from IR to what the device runs, and running it. This is the file to replace: the
 * template keeps the IR and runs it by the kit's reference interpreter. */
#include "template_plugin.h"

#include <kit/kernel_copy.h>
#include <string.h>

/* The lowering. Replace it by yours: write code for the records in order, see docs/ir.md. The IR is
 * verified, and legalised for what device.c claims. It is valid during the call. */
hal_status template_kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                                  hal_plugin_kernel **kernel)
{
    (void)device;
    hal_plugin_kernel *made = template_new(sizeof *made, "kernel");
    if (!made) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    made->ir = kit_kernel_copy(kit_host(), ir);
    if (!made->ir) {
        template_release(made);
        return template_fail(HAL_ERROR_OUT_OF_MEMORY, "template: no host memory for kernel %s",
                             ir->names + ir->name);
    }
    *kernel = made;
    return HAL_OK;
}

void template_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel)
{
    (void)device;
    template_release(kernel->ir);
    template_release(kernel);
}

/* The launch. Replace it by yours: pass code, bindings and scalars to your chip. */
hal_status template_kernel_run(const hal_plugin_kernel *kernel, const uint32_t grid[3],
                               const kit_span *bindings, const void *scalars)
{
    kit_problem problem;
    kit_dispatch dispatch = {.kernel = kernel->ir,
                             .subgroup_width = TEMPLATE_SUBGROUP,
                             .bindings = bindings,
                             .scalars = scalars};
    memcpy(dispatch.grid, grid, sizeof dispatch.grid);
    const hal_status status = kit_interpret(&dispatch, &problem);
    return status == HAL_OK ? HAL_OK : template_fail(status, "template: %s", problem.text);
}
