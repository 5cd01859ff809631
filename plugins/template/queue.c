/* Queues: a batch has run when submit returns. Entries of the plugin's table. For an asynchronous
 * chip submit enqueues the batch, and `reached` is read from the chip. */
#include "template_plugin.h"

#include <string.h>

static uint8_t *address_of(const hal_binding *binding)
{
    return binding->memory->address + binding->offset;
}

static hal_status dispatch_run(const hal_batch *batch, const hal_command *command)
{
    kit_span spans[HAL_IR_MAX_BINDINGS];
    for (uint32_t i = 0; i < command->binding_count; i++) {
        const hal_binding *binding = &batch->bindings[command->binding_first + i];
        spans[i] = (kit_span){0};
        if (binding->length > 0) {
            spans[i] = (kit_span){address_of(binding), binding->length};
        }
    }
    return template_kernel_run(command->kernel, command->grid, spans,
                               batch->scalars + command->scalar_first);
}

static hal_status command_run(const hal_batch *batch, const hal_command *command)
{
    const hal_binding *bindings = &batch->bindings[command->binding_first];
    const uint8_t *pattern = batch->scalars + command->scalar_first;
    switch (command->kind) {
    case HAL_COMMAND_DISPATCH:
        return dispatch_run(batch, command);
    case HAL_COMMAND_COPY:
        memmove(address_of(&bindings[1]), address_of(&bindings[0]), bindings[0].length);
        return HAL_OK;
    case HAL_COMMAND_FILL:
        for (uint64_t i = 0; i < bindings[0].length; i++) {
            address_of(&bindings[0])[i] = pattern[i % command->scalar_bytes];
        }
        return HAL_OK;
    default:
        return template_fail(
            HAL_ERROR_UNSUPPORTED,
            "template: submit: command: expected a dispatch, copy or fill, got kind %u",
            (unsigned)command->kind);
    }
}

hal_status template_queue_create(hal_plugin_device *device, hal_plugin_queue **queue)
{
    *queue = template_new(sizeof **queue, "queue");
    if (!*queue) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    (*queue)->device = device;
    return HAL_OK;
}

void template_queue_destroy(hal_plugin_device *device, hal_plugin_queue *queue)
{
    (void)device;
    template_release(queue);
}

/* For tests: the next batch fails. */
void template_queue_fail_next(hal_plugin_queue *queue)
{
    queue->fails_next = 1;
}

/* Earlier commands of a batch have run, so memory is in an unknown state: the device is lost. */
static hal_status batch_run(hal_plugin_queue *queue, const hal_batch *batch)
{
    hal_status status = HAL_OK;
    if (queue->fails_next) {
        queue->fails_next = 0;
        status = template_fail(HAL_ERROR_DEVICE_LOST, "template: a batch fails, for a test");
    }
    for (uint32_t i = 0; i < batch->command_count && status == HAL_OK; i++) {
        status = command_run(batch, &batch->commands[i]);
    }
    if (status != HAL_OK) {
        atomic_store(&queue->device->lost, 1);
    }
    return status == HAL_OK ? HAL_OK : HAL_ERROR_DEVICE_LOST;
}

/* The values in `waits` were submitted before, so they are reached. */
hal_status template_queue_submit(hal_plugin_queue *queue, const hal_batch *batch,
                                 const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    (void)waits;
    (void)wait_count;
    if (atomic_load(&queue->device->lost)) {
        return template_fail(HAL_ERROR_DEVICE_LOST,
                             "template: the device was lost by a batch that failed");
    }
    if (batch_run(queue, batch) != HAL_OK) {
        return HAL_ERROR_DEVICE_LOST;
    }
    atomic_store(&queue->reached, value);
    return HAL_OK;
}

hal_status template_queue_wait(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    (void)timeout_ns; /* submitted values are reached */
    return atomic_load(&queue->reached) >= value ? HAL_OK : HAL_ERROR_TIMEOUT;
}
