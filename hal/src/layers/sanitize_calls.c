/* Which calls of a library the commands of a batch came from, see hal/profile.h and sanitize.h. */
#include "sanitize.h"

#include "base/array.h"
#include "base/map.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static hal_map words_of; /* by queue */

void hal_sanitize_calls_set(const hal_queue *queue, const char *words)
{
    free(hal_map_take(&words_of, hal_map_key(queue)));
    char *copy = words ? strdup(words) : NULL;
    if (copy && !hal_map_put(&words_of, hal_map_key(queue), copy)) {
        free(copy);
    }
}

void hal_sanitize_calls_note(hal_sanitize_device *device, const hal_queue *queue,
                             const hal_recording *batch)
{
    const char *words = hal_map_get(&words_of, hal_map_key(queue));
    char *copy = words ? strdup(words) : NULL;
    if (!copy || !HAL_ARRAY_RESERVE(device->calls, device->call_capacity,
                                    (uint64_t)device->call_count + 1)) {
        free(copy);
        return;
    }
    device->calls[device->call_count++] =
        (hal_sanitize_calls){batch, batch->command_count - 1, copy};
}

const char *hal_sanitize_calls_find(const hal_sanitize_device *device, const hal_recording *batch,
                                    uint32_t command)
{
    for (uint32_t i = device->call_count; i-- > 0;) {
        if (device->calls[i].batch == batch && device->calls[i].command == command) {
            return device->calls[i].words;
        }
    }
    return NULL;
}

void hal_sanitize_calls_move(hal_sanitize_device *device, const hal_recording *batch,
                             const hal_recording *copy)
{
    for (uint32_t i = 0; i < device->call_count; i++) {
        if (device->calls[i].batch == batch) {
            device->calls[i].batch = copy;
        }
    }
}

void hal_sanitize_calls_forget(hal_sanitize_device *device, const hal_recording *batch)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < device->call_count; i++) {
        if (batch && device->calls[i].batch != batch) {
            device->calls[kept++] = device->calls[i];
        } else {
            free(device->calls[i].words);
        }
    }
    device->call_count = kept;
    if (!batch) {
        free(device->calls);
        device->calls = NULL;
        device->call_capacity = 0;
    }
}

uint32_t hal_sanitize_first_name(const hal_queue *queue)
{
    const uintptr_t address = (uintptr_t)queue;
    return (uint32_t)XXH3_64bits(&address, sizeof address) & 0x7fff0000u;
}
