/* Native attention: the plugin's entry `attention`. */
#ifndef PLUGINS_CUDA_ATTENTION_ATTENTION_H
#define PLUGINS_CUDA_ATTENTION_ATTENTION_H

#include "device.h"

hal_status cuda_attention(hal_plugin_device *device, const hal_attention_description *description,
                          hal_plugin_kernel **kernel);

#endif
