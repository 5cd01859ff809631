/* The CUDA driver without hal. */
#include "peers/raw/cuda_calls.h"

#include <stdio.h>
#include <string.h>

#include "peers/library.h"

enum { NON_BLOCKING = 1 }; /* of streams: no order with the legacy one */

static bool load(cuda_calls *cuda, char *message, size_t bytes)
{
#define CUDA_SYMBOL(name, symbol, parameters) {&cuda->name, symbol},
    const library_symbol symbols[] = {CUDA_CALLS(CUDA_SYMBOL)};
#undef CUDA_SYMBOL
    return library_open("libcuda.so.1", symbols, sizeof symbols / sizeof symbols[0], message,
                        bytes);
}

static bool has_id(cuda_calls *cuda, int device, const char *id)
{
    uint8_t b[16];
    char text[40];
    if (cuda->device_uuid(b, device) != 0) {
        return false;
    }
    snprintf(text, sizeof text,
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
             b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
    return strcmp(text, id) == 0;
}

/* The device with the id, which is the same in all APIs, else one with the name. */
static bool find_device(cuda_calls *cuda, const hal_device_info *info)
{
    int count = 0, device, found = -1;
    cuda->device_count(&count);
    for (int i = 0; i < count; i++) {
        char name[128] = "";
        if (cuda->device_get(&device, i) != 0) {
            continue;
        }
        if (has_id(cuda, device, info->id)) {
            found = device;
            break;
        }
        if (found < 0 && cuda->device_name(name, sizeof name, device) == 0 && name[0] != 0 &&
            strstr(info->name, name)) {
            found = device;
        }
    }
    cuda->device = found;
    return found >= 0;
}

bool cuda_open(cuda_calls *cuda, const hal_device_info *info, char *message, size_t bytes)
{
    *cuda = (cuda_calls){0};
    if (!load(cuda, message, bytes)) {
        return false;
    }
    if (cuda->init(0) != 0 || !find_device(cuda, info)) {
        snprintf(message, bytes, "the CUDA driver has no device called %s", info->name);
        return false;
    }
    if (cuda->primary_retain(&cuda->context, cuda->device) != 0) {
        cuda->context = NULL;
        snprintf(message, bytes, "the CUDA driver gives no context for %s", info->name);
        return false;
    }
    if (cuda->context_set(cuda->context) != 0 ||
        cuda->stream_create(&cuda->stream, NON_BLOCKING) != 0) {
        snprintf(message, bytes, "the CUDA driver gives no stream for %s", info->name);
        cuda_close(cuda);
        return false;
    }
    return true;
}

void cuda_close(cuda_calls *cuda)
{
    if (cuda->stream) {
        cuda->stream_destroy(cuda->stream);
    }
    if (cuda->context) {
        cuda->primary_release(cuda->device);
    }
    cuda->stream = cuda->context = NULL;
}
