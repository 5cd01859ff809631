/* Device memory, see allocation.h. */
#include "allocation.h"

#include "plan_recorder.h"

hal_status ops_buffer_create(ops_context *context, uint64_t bytes, hal_buffer **buffer)
{
    hal_status status = hal_buffer_create(context->device, HAL_MEMORY_DEVICE, bytes, buffer);
    ops_plan_recorder_add_temporary(context->recorder, status != HAL_OK ? NULL : *buffer, bytes);
    return status;
}
