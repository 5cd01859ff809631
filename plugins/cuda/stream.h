/* Idle streams. They stay with the process, as the first copies on a new one are slow. */
#ifndef PLUGINS_CUDA_STREAM_H
#define PLUGINS_CUDA_STREAM_H

#include "device.h"

hal_status cuda_stream_acquire(const hal_plugin_device *device, cuda_stream *stream);
void cuda_stream_release(const hal_plugin_device *device, cuda_stream stream);
/* Forgets the idle streams of a context that is given up. */
void cuda_stream_forget(const hal_plugin_device *device);

#endif
