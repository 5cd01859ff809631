/* Records checked commands of any kind. */
#include "record.h"

#include "hooks.h"

const uint8_t hal_copy_access[2] = {HAL_ACCESS_READ, HAL_ACCESS_WRITE};
const uint8_t hal_fill_access[1] = {HAL_ACCESS_WRITE};

hal_status hal_record_action(hal_recorder *recorder, const hal_action *action)
{
    hal_entry entry;
    hal_status status =
        hal_entry_begin(&entry, recorder, action->range_count, action->scalar_bytes);
    for (uint32_t i = 0; status == HAL_OK && i < action->range_count; i++) {
        const hal_range *range = &action->ranges[i];
        status =
            hal_entry_bind(&entry, range->buffer, range->offset, range->length, action->access[i]);
    }
    if (status == HAL_OK) {
        status = hal_entry_end(&entry, action->kind, action->flags, action->kernel, action->grid,
                               action->scalars, action->scalar_bytes);
    }
    if (status == HAL_OK) {
        hal_hook_recorded(hal_timeline_queue(recorder->timeline), action);
    }
    return status;
}
