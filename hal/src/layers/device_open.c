/* hal_device_open: starts the layers, then core opens the device. It is not in core because core
 * must not call layers. */
#include "layer.h"

#include "base/status.h"
#include "core/device.h"

hal_status hal_device_open(const char *selection, hal_device **device)
{
    if (!device) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_device_open: device: expected a valid pointer, got null");
    }
    *device = NULL;
    const hal_status status = hal_layers_start();
    return status == HAL_OK ? hal_device_open_selected(selection, device) : status;
}
