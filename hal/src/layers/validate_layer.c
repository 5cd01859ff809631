/* The validate layer in the list of layer.c. Its hooks are in validate.h. */
#include "layer.h"
#include "validate_state.h"

#include "base/log.h"
#include "plugin/host.h"

static hal_status validate_begin(void)
{
    hal_log_show_errors();
    hal_host_start_validation(hal_validate_plugin_finding);
    return hal_validate_begin();
}

const hal_layer hal_layer_validate = {
    .bit = HAL_LAYER_VALIDATE,
    .hooks = HAL_HOOK_CALLS,
    .begin = validate_begin,
};
