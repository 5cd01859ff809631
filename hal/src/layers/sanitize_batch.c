/* Batches as the plugin gets them with HAL_SANITIZE, see sanitize.h. */
#include "sanitize.h"

#include <string.h>

static uint64_t parameter_value(const hal_ir_parameter *parameter,
                                const hal_sanitize_kernel *kernel, const hal_binding *bindings,
                                uint32_t number)
{
    if (parameter->kind == HAL_IR_PARAMETER_DISPATCH) {
        return number;
    }
    const hal_type type = kernel->built->memories[parameter->binding].type;
    const uint64_t count = bindings[parameter->binding].length / hal_type_size(type);
    return parameter->kind == HAL_IR_PARAMETER_COUNT && count > UINT32_MAX ? UINT32_MAX : count;
}

/* Room is reserved. */
static void scalars_append(hal_recording *copy, const void *scalars, uint32_t bytes, uint32_t room)
{
    memcpy(copy->scalars + copy->scalar_bytes, scalars, bytes);
    memset(copy->scalars + copy->scalar_bytes + bytes, 0, room - bytes);
    copy->scalar_bytes += room;
}

static void parameters_set(uint8_t *scalars, const hal_sanitize_kernel *kernel,
                           const hal_binding *bindings, uint32_t number)
{
    for (uint32_t i = 0; i < kernel->checked.parameter_count; i++) {
        const hal_ir_parameter *parameter = &kernel->checked.parameters[i];
        const uint64_t value = parameter_value(parameter, kernel, bindings, number);
        const uint32_t word = (uint32_t)value;
        if (parameter->kind == HAL_IR_PARAMETER_COUNT_64) {
            memcpy(scalars + parameter->offset, &value, sizeof value);
        } else {
            memcpy(scalars + parameter->offset, &word, sizeof word);
        }
    }
}

static hal_status command_copy(const hal_recording *batch, uint32_t index, uint32_t number,
                               hal_recording *copy)
{
    const hal_command *command = &batch->commands[index];
    const hal_binding *bindings = batch->bindings + command->binding_first;
    const hal_sanitize_kernel *kernel = hal_sanitize_kernel_find(command->kernel);
    const uint32_t scalar_bytes = kernel ? kernel->scalar_bytes : command->scalar_bytes;
    const uint32_t room = (scalar_bytes + 7) & ~7u;
    const uint32_t own = kernel ? kernel->built->binding_count : command->binding_count;
    HAL_TRY(hal_recording_reserve(copy, 1, command->binding_count + 1, room));
    hal_command *made = &copy->commands[copy->command_count++];
    *made = *command;
    made->binding_first = copy->binding_count;
    made->scalar_first = copy->scalar_bytes;
    made->scalar_bytes = (uint16_t)scalar_bytes;
    for (uint32_t i = 0; i <= command->binding_count; i++) {
        if (i == own && kernel) {
            copy->bindings[copy->binding_count++] = (hal_binding){.memory = kernel->reports.memory,
                                                                  .offset = kernel->reports.offset,
                                                                  .length = kernel->reports.bytes,
                                                                  .access = HAL_ACCESS_READ_WRITE};
            made->binding_count++;
        }
        if (i < command->binding_count) {
            copy->bindings[copy->binding_count++] = bindings[i];
        }
    }
    const uint32_t given =
        command->scalar_bytes < scalar_bytes ? command->scalar_bytes : scalar_bytes;
    scalars_append(copy, batch->scalars + command->scalar_first, given, room);
    if (kernel) {
        parameters_set(copy->scalars + made->scalar_first, kernel, bindings, number);
    }
    return HAL_OK;
}

hal_status hal_sanitize_copy_batch(const hal_recording *batch, uint32_t first, hal_recording **copy)
{
    bool is_wanted = false;
    for (uint32_t i = 0; i < batch->command_count; i++) {
        is_wanted |= hal_sanitize_kernel_find(batch->commands[i].kernel) != NULL;
    }
    *copy = is_wanted ? hal_recording_create() : NULL;
    hal_status status = is_wanted && !*copy ? HAL_ERROR_OUT_OF_MEMORY : HAL_OK;
    for (uint32_t i = 0; *copy && status == HAL_OK && i < batch->command_count; i++) {
        status = command_copy(batch, i, first + i, *copy);
    }
    if (*copy && status == HAL_OK) {
        (*copy)->flags = batch->flags;
    } else if (*copy) {
        hal_recording_destroy(*copy);
        *copy = NULL;
    }
    return status;
}
