/* hal_device_open: checks HAL_LOG, starts the layers, then core opens the device. It is not in core
 * because core must not call layers. */
#include "layer.h"

#include "base/log.h"
#include "base/status.h"
#include "core/device.h"

hal_status hal_device_open(const char *selection, hal_device **device)
{
    if (!device) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_device_open: device: expected a valid pointer, got null");
    }
    *device = NULL;
    hal_status status = hal_log_check_variable();
    if (status == HAL_OK) {
        status = hal_layers_start();
    }
    return status == HAL_OK ? hal_device_open_selected(selection, device) : status;
}
