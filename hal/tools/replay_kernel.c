/* Kernels of a replay, parsed from the file and created for the device. */
#include "replay_kernel.h"

#include "../src/base/array.h"

#include <hal/dump.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A copy with a closing zero, for free(). */
static char *text_copy(replay_bytes text)
{
    return strndup((const char *)text.data, text.count);
}

static hal_status ir_parse(replay_bytes text, hal_ir_kernel **ir)
{
    return hal_ir_parse((const char *)text.data, text.count, ir);
}

/* The device's own product, or else the plain kernel. */
static hal_status create_gemm(replay_made *made, hal_device *device, const replay_kernel *from)
{
    hal_ir_kernel *epilogue = NULL;
    uint64_t workspace = 0;
    made->is_gemm = 1;
    made->gemm = from->gemm;
    hal_status status = from->ir.count > 0 ? ir_parse(from->ir, &epilogue) : HAL_OK;
    if (status == HAL_OK && epilogue &&
        (!(epilogue->flags & HAL_IR_FRAGMENT) || epilogue->output_count != 1 ||
         epilogue->input_count > 4 + from->gemm.input_count)) {
        status = hal_status_set(
            HAL_ERROR_INVALID_IR,
            "epilogue: expected a fragment of one output for the inputs of the product");
    }
    if (status == HAL_OK) {
        hal_gemm_description description = from->gemm;
        description.epilogue = epilogue;
        status = hal_kernel_create_gemm(device, &description, &made->kernel, &workspace);
        if (status == HAL_OK && workspace > 0) {
            status = hal_buffer_create(device, HAL_MEMORY_DEVICE, workspace, &made->workspace);
        }
    }
    if (status == HAL_ERROR_UNSUPPORTED) {
        hal_kernel_release(made->kernel);
        made->is_plain = 1;
        status = replay_plain_gemm(&from->gemm, epilogue, &made->ir);
        if (status == HAL_OK) {
            status = hal_kernel_create(device, made->ir, &made->kernel);
        }
    }
    hal_ir_kernel_destroy(epilogue);
    return status;
}

static hal_status create_native(replay_made *made, hal_device *device, const replay_kernel *from)
{
    char *format = text_copy(from->format), *entry = text_copy(from->entry);
    const hal_status status =
        format && entry ? hal_kernel_create_native(device, format, from->code.data,
                                                   from->code.count, entry, made->ir, &made->kernel)
                        : hal_status_set(HAL_ERROR_OUT_OF_MEMORY, "no host memory for a kernel");
    free(format);
    free(entry);
    return status;
}

static hal_status create_ir(replay_made *made, hal_device *device, uint32_t lanes)
{
    const uint32_t width = hal_device_get_info(device)->subgroup_width;
    const uint32_t here = width ? width : HAL_IR_EMULATED_SUBGROUP;
    if (!replay_lanes_fit(made->ir, lanes, here)) {
        hal_ir_kernel *fixed = NULL;
        const hal_status status = replay_fix_lanes(made->ir, lanes, &fixed);
        if (status != HAL_OK) {
            return hal_status_set(status, "expected subgroups of %u lanes, got %u: %s", lanes, here,
                                  hal_status_message());
        }
        hal_ir_kernel_destroy(made->ir);
        made->ir = fixed;
    }
    return hal_kernel_create(device, made->ir, &made->kernel);
}

static void kernel_create(replay_made *made, hal_device *device, const replay_kernel *from,
                          uint32_t lanes)
{
    hal_status status = HAL_OK;
    if (from->form == HAL_DUMP_KERNEL_GEMM || from->form == HAL_DUMP_KERNEL_GROUPED_GEMM) {
        status = create_gemm(made, device, from);
    } else if (from->form == HAL_DUMP_KERNEL_ATTENTION) {
        made->attention = from->attention.type;
        status = hal_kernel_create_attention(device, &from->attention, &made->kernel);
    } else {
        status = ir_parse(from->ir, &made->ir);
        if (status == HAL_OK) {
            status = from->form == HAL_DUMP_KERNEL_NATIVE ? create_native(made, device, from)
                                                          : create_ir(made, device, lanes);
        }
    }
    if (status != HAL_OK) {
        made->kernel = NULL;
        made->reason = strdup(hal_status_message());
    }
}

hal_status replay_kernel_add(replay_kernels *kernels, hal_device *device, const replay_kernel *from,
                             uint32_t lanes)
{
    if (replay_kernel_find(kernels, from->id)) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "kernel %llu: expected one description, got two",
                              (unsigned long long)from->id);
    }
    if (!HAL_ARRAY_RESERVE(kernels->items, kernels->capacity, (uint64_t)kernels->count + 1)) {
        return hal_status_set(HAL_ERROR_OUT_OF_MEMORY, "no host memory for a kernel");
    }
    replay_made *made = &kernels->items[kernels->count];
    *made = (replay_made){.id = from->id, .name = text_copy(from->name)};
    if (!made->name) {
        return hal_status_set(HAL_ERROR_OUT_OF_MEMORY, "no host memory for a kernel");
    }
    kernels->count++;
    kernel_create(made, device, from, lanes);
    return HAL_OK;
}

replay_made *replay_kernel_find(const replay_kernels *kernels, uint64_t id)
{
    for (uint32_t i = 0; i < kernels->count; i++) {
        if (kernels->items[i].id == id) {
            return &kernels->items[i];
        }
    }
    return NULL;
}

void replay_kernels_free(replay_kernels *kernels)
{
    for (uint32_t i = 0; i < kernels->count; i++) {
        replay_made *made = &kernels->items[i];
        hal_kernel_release(made->kernel);
        hal_buffer_release(made->workspace);
        hal_ir_kernel_destroy(made->ir);
        free(made->name);
        free(made->reason);
    }
    free(kernels->items);
    *kernels = (replay_kernels){0};
}

hal_type replay_binding_type(const replay_made *made, uint32_t binding)
{
    enum { WORKSPACE = 3, INPUTS = 4 };
    if (made->attention != HAL_TYPE_NONE) {
        return made->attention;
    }
    if (!made->is_gemm) {
        const bool known = made->ir && binding < made->ir->binding_count;
        return known ? made->ir->memories[binding].type : (hal_type)HAL_TYPE_NONE;
    }
    const hal_gemm_description *gemm = &made->gemm;
    if (binding >= INPUTS) {
        const uint32_t input = binding - INPUTS;
        return input < gemm->input_count    ? gemm->inputs[input].type
               : input == gemm->input_count ? gemm->type_offsets
                                            : (hal_type)HAL_TYPE_NONE;
    }
    const hal_type types[INPUTS] = {gemm->type_a, gemm->type_b, gemm->type_c, HAL_TYPE_NONE};
    return types[binding];
}

const char *replay_binding_name(const replay_made *made, uint32_t binding)
{
    static const char *const names[] = {"a", "b", "c", "workspace"};
    static const char *const sides[] = {"q", "k", "v", "y"};
    if (made->attention != HAL_TYPE_NONE) {
        return binding < 4 ? sides[binding] : "";
    }
    if (made->is_gemm) {
        return binding < 4                            ? names[binding]
               : binding < 4 + made->gemm.input_count ? "input"
                                                      : "offsets";
    }
    return made->ir && binding < made->ir->binding_count
               ? made->ir->names + made->ir->memories[binding].name
               : "";
}
