/* The list of devices of the system, and opening one. Entries of the plugin's table.
 * HAL_METAL_QUIRKS is read when devices are listed. */
#include "device.h"

#include "describe.h"
#include "quirks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_CARDS = 16, UNUSED_BYTES = 256 };

/* The devices that the first enumerate found. Their objects stay valid. */
typedef struct card_list {
    metal_card cards[MAX_CARDS];
    uint32_t count;
    pid_t owner;        /* a child of fork has neither Metal's threads nor its connections */
    char unusable[512]; /* other devices, with the reasons */
} card_list;

static card_list *the_list;

static void list_add(card_list *list, metal_gpu *gpu)
{
    metal_card *card = &list->cards[list->count];
    char reason[160] = "";
    *card = (metal_card){.gpu = gpu, .quirks = metal_quirks()};
    if (metal_describe(card, reason)) {
        list->count++;
        return;
    }
    const size_t used = strlen(list->unusable);
    snprintf(list->unusable + used, sizeof list->unusable - used, "%s%s %s", used > 0 ? "; " : "",
             card->facts.name, reason);
    metal_shim_release(gpu);
}

hal_status metal_enumerate(hal_device_info *infos, uint32_t capacity, uint32_t *count)
{
    *count = 0;
    if (!the_list) {
        metal_gpu *gpus[MAX_CARDS];
        card_list *list = calloc(1, sizeof *list);
        if (!list) {
            return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "metal: no host memory to list devices");
        }
        const uint32_t found = metal_shim_devices(gpus, MAX_CARDS);
        for (uint32_t i = 0; i < found; i++) {
            list_add(list, gpus[i]);
        }
        list->owner = getpid();
        the_list = list;
    }
    if (the_list->count == 0) {
        return kit_fail(HAL_ERROR_NO_DEVICE, "metal: the system has no usable device%s%s",
                        the_list->unusable[0] != '\0' ? ": " : "", the_list->unusable);
    }
    *count = the_list->count;
    for (uint32_t i = 0; i < the_list->count && i < capacity; i++) {
        infos[i] = the_list->cards[i].info;
    }
    return HAL_OK;
}

hal_status metal_device_open(uint32_t index, hal_plugin_device **device)
{
    uint32_t count = 0;
    void *host = NULL;
    *device = NULL;
    hal_status status = metal_enumerate(NULL, 0, &count);
    if (status == HAL_OK) {
        status = metal_quirks_check();
    }
    if (status != HAL_OK) {
        return status;
    }
    if (index >= count) {
        return kit_fail(HAL_ERROR_NOT_FOUND, "metal:%u: expected an index below %u", index, count);
    }
    if (the_list->owner != getpid()) {
        return kit_fail(HAL_ERROR_INVALID_STATE,
                        "metal:%u: Metal does not work in a child of a process that has listed "
                        "devices; fork before devices are listed or opened, or let the child "
                        "execute a program",
                        index);
    }
    hal_plugin_device *made = calloc(1, sizeof *made);
    if (!made) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "metal:%u: no host memory to open it", index);
    }
    made->card = &the_list->cards[index];
    made->owner = getpid();
    pthread_mutex_init(&made->lock, NULL);
    made->unused = metal_shim_buffer(made->card->gpu, UNUSED_BYTES, false, &host);
    if (!made->unused) {
        metal_device_close(made);
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "metal:%u: %s has no memory", index,
                        the_list->cards[index].info.name);
    }
    *device = made;
    return HAL_OK;
}

/* A child of fork leaves Metal's objects alone. */
void metal_device_close(hal_plugin_device *device)
{
    if (!device) {
        return;
    }
    if (!metal_device_is_after_fork(device)) {
        for (uint32_t i = 0; i < METAL_TRANSFER_COUNT; i++) {
            metal_shim_release(atomic_load(&device->transfers[i]));
        }
        metal_shim_release(device->unused);
    }
    pthread_mutex_destroy(&device->lock);
    free(device);
}

bool metal_device_is_after_fork(const hal_plugin_device *device)
{
    return device->owner != getpid();
}

hal_status metal_device_check(const hal_plugin_device *device)
{
    if (metal_device_is_after_fork(device)) {
        return kit_fail(HAL_ERROR_INVALID_STATE,
                        "metal: a device that was opened before fork does not work in the child");
    }
    if (atomic_load_explicit(&device->lost, memory_order_relaxed)) {
        return kit_fail(HAL_ERROR_DEVICE_LOST,
                        "%s: an earlier batch failed while it ran; open the device again",
                        device->card->info.name);
    }
    return HAL_OK;
}

hal_status metal_device_quirk(hal_plugin_device *device, uint32_t index, hal_quirk *quirk)
{
    metal_quirk_at(device->card->quirks, index, quirk);
    return HAL_OK;
}
