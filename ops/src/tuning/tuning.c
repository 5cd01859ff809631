/* The choice of a table, see tuning.h. */
#include "tuning.h"

const ops_tuning *ops_tuning_select(const hal_device_info *info)
{
    switch (info->kind) {
    case HAL_DEVICE_CPU:
        return &ops_tuning_processor;
    case HAL_DEVICE_SOFTWARE:
        return &ops_tuning_software;
    default:
        return &ops_tuning_gpu;
    }
}
