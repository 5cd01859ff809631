/* Kernels: from IR to what the device runs, and running it. This is the file to make your own: the
 * template keeps the IR and hands it to the kit's reference interpreter. */
#include "template.h"

#include <kit/kernel_copy.h>
#include <string.h>

/* The lowering. Write your chip's code from `ir` here: its records in order, see docs/ir.md. The IR
 * is verified and holds nothing that device.c does not claim; it is gone when this returns. */
hal_status template_kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                                  hal_plugin_kernel **kernel)
{
    (void)device;
    hal_plugin_kernel *made = template_new(sizeof *made, "kernel");
    if (made == NULL) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    made->ir = kit_kernel_copy(template_host(), ir);
    if (made->ir == NULL) {
        template_host()->release(made);
        return template_fail(HAL_ERROR_OUT_OF_MEMORY, "template: no host memory for kernel %s",
                             ir->names + ir->name);
    }
    *kernel = made;
    return HAL_OK;
}

void template_kernel_destroy(hal_plugin_device *device, hal_plugin_kernel *kernel)
{
    (void)device;
    template_host()->release(kernel->ir);
    template_host()->release(kernel);
}

/* The launch. Hand the kernel's code, its bindings and its scalars to your chip here. */
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
