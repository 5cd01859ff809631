/* The list of devices of all platforms, and opening one. Entries of the plugin's table.
 * HAL_OPENCL_QUIRKS is read when devices are listed. */
#include "device.h"

#include "describe.h"
#include "quirks.h"

#include <kit/quirks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_CARDS = 64, MAX_PLATFORMS = 32 };

/* The devices that the first enumerate found. Their handles stay valid. */
typedef struct card_list {
    opencl_card cards[MAX_CARDS];
    uint32_t count;
    pid_t owner;        /* drivers may have threads, which a child of fork does not have */
    char unusable[512]; /* other devices, with the reasons */
} card_list;

static card_list *the_list;

static void list_note_unusable(card_list *list, const char *name, const char *reason)
{
    const size_t used = strlen(list->unusable);
    snprintf(list->unusable + used, sizeof list->unusable - used, "%s%s %s", used > 0 ? "; " : "",
             name, reason);
}

static void list_add_platform(card_list *list, cl_platform_id platform)
{
    cl_device_id devices[MAX_CARDS];
    cl_uint count = 0;
    char name[128] = "", device_name[128], reason[160];
    cl.clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name - 1, name, NULL);
    const cl_device_type types =
        CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR | CL_DEVICE_TYPE_CPU;
    if (cl.clGetDeviceIDs(platform, types, MAX_CARDS, devices, &count) != CL_SUCCESS) {
        return; /* CL_DEVICE_NOT_FOUND: a driver without a device hides no other */
    }
    for (cl_uint i = 0; i < count && i < MAX_CARDS && list->count < MAX_CARDS; i++) {
        opencl_card *card = &list->cards[list->count];
        *card = (opencl_card){.platform = platform, .device = devices[i]};
        memset(device_name, 0, sizeof device_name);
        cl.clGetDeviceInfo(devices[i], CL_DEVICE_NAME, sizeof device_name - 1, device_name, NULL);
        card->quirks = opencl_quirks(name, device_name, card->quirk_reasons);
        if (opencl_describe(card, name, reason)) {
            list->count++;
        } else {
            list_note_unusable(list, device_name, reason);
        }
    }
}

static hal_status platforms_find(cl_platform_id *platforms, uint32_t *count)
{
    cl_uint found = 0;
    const cl_int error = cl.clGetPlatformIDs(MAX_PLATFORMS, platforms, &found);
    if (error != CL_SUCCESS && error != CL_PLATFORM_NOT_FOUND_KHR) {
        return kit_fail(HAL_ERROR_DRIVER_MISSING,
                        "opencl: the loader lists no platform: clGetPlatformIDs: %s (%d)",
                        opencl_error_name(error), (int)error);
    }
    if (found == 0) {
        return kit_fail(HAL_ERROR_DRIVER_MISSING,
                        "opencl: no driver is registered with the loader: install the device's "
                        "OpenCL driver, whose .icd file is in /etc/OpenCL/vendors "
                        "(OCL_ICD_VENDORS changes the folder)");
    }
    *count = found < MAX_PLATFORMS ? found : MAX_PLATFORMS;
    return HAL_OK;
}

static void variables_free(char **kept)
{
    for (size_t i = 0; kept && kept[i]; i++) {
        free(kept[i]);
    }
    free(kept);
}

/* The environment's variables at a time, as in `environ`; null without memory. */
static char **variables_keep(void)
{
    size_t count = 0;
    while (environ && environ[count]) {
        count++;
    }
    char **kept = calloc(count + 1, sizeof *kept);
    for (size_t i = 0; kept && i < count; i++) {
        kept[i] = strdup(environ[i]);
        if (!kept[i]) { /* later ones would be taken for new */
            variables_free(kept);
            return NULL;
        }
    }
    return kept;
}

/* The kept variable with the name of `variable`, or null. */
static const char *variable_find(char *const *kept, const char *variable)
{
    const size_t length = strcspn(variable, "=") + 1;
    while (*kept && strncmp(*kept, variable, length) != 0) {
        kept++;
    }
    return *kept;
}

/* Gives a kept variable its value again if that was changed or removed since. */
static void variable_restore(char *kept)
{
    char *value = strchr(kept, '=');
    if (!value) {
        return;
    }
    *value = '\0';
    const char *now = secure_getenv(kept);
    if (!now || strcmp(now, value + 1) != 0) {
        setenv(kept, value + 1, 1);
    }
    *value = '=';
}

/* Makes the environment what it was: removes the variables that were set since, restores others. */
static void variables_restore(char **kept)
{
    for (size_t i = 0; kept && kept[i]; i++) {
        variable_restore(kept[i]);
    }
    for (size_t i = 0; kept && environ && environ[i];) {
        char name[256];
        const size_t length = strcspn(environ[i], "=");
        if (length < sizeof name && !variable_find(kept, environ[i])) {
            memcpy(name, environ[i], length);
            name[length] = '\0';
            unsetenv(name); /* moves the next one here */
        } else {
            i++;
        }
    }
    variables_free(kept);
}

static hal_status device_create_context(hal_plugin_device *made)
{
    const opencl_card *card = made->card;
    const cl_context_properties wanted[] = {CL_CONTEXT_PLATFORM,
                                            (cl_context_properties)card->platform, 0};
    cl_int error = CL_SUCCESS;
    made->context = cl.clCreateContext(wanted, 1, &card->device, NULL, NULL, &error);
    if (!made->context) {
        return opencl_fail_result(error, "%s: clCreateContext", card->info.name);
    }
    made->transfers = cl.clCreateCommandQueue(made->context, card->device, 0, &error);
    if (!made->transfers) {
        return opencl_fail_result(error, "%s: clCreateCommandQueue", card->info.name);
    }
    return HAL_OK;
}

static hal_status list_make(card_list **made)
{
    cl_platform_id platforms[MAX_PLATFORMS];
    uint32_t platform_count = 0;
    HAL_TRY(platforms_find(platforms, &platform_count));
    card_list *list = calloc(1, sizeof *list);
    if (!list) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "opencl: no host memory to list devices");
    }
    for (uint32_t i = 0; i < platform_count; i++) {
        list_add_platform(list, platforms[i]);
    }
    list->owner = getpid();
    *made = list;
    return HAL_OK;
}

hal_status opencl_enumerate(hal_device_info *infos, uint32_t capacity, uint32_t *count)
{
    *count = 0;
    HAL_TRY(opencl_driver_load(kit_host()));
    if (!the_list) {
        char **kept = variables_keep(); /* PoCL sets HWLOC_PLUGINS_PATH, and others may */
        const hal_status status = list_make(&the_list);
        variables_restore(kept);
        HAL_TRY(status);
    }
    if (the_list->count == 0) {
        return kit_fail(HAL_ERROR_NO_DEVICE,
                        "opencl: the drivers have no usable device%s%s; clinfo tells more",
                        the_list->unusable[0] != '\0' ? ": " : "", the_list->unusable);
    }
    *count = the_list->count;
    for (uint32_t i = 0; i < the_list->count && i < capacity; i++) {
        infos[i] = the_list->cards[i].info;
    }
    return HAL_OK;
}

hal_status opencl_device_open(uint32_t index, hal_plugin_device **device)
{
    uint32_t count = 0;
    *device = NULL;
    hal_status status = opencl_enumerate(NULL, 0, &count);
    if (status == HAL_OK) {
        status = opencl_quirks_check();
    }
    if (status != HAL_OK) {
        return status;
    }
    if (index >= count) {
        return kit_fail(HAL_ERROR_NOT_FOUND, "opencl:%u: expected an index below %u", index, count);
    }
    if (the_list->owner != getpid()) {
        return kit_fail(HAL_ERROR_INVALID_STATE,
                        "opencl:%u: drivers do not work in a child of a process that has listed "
                        "devices; fork before devices are listed or opened, or let the child "
                        "execute a program",
                        index);
    }
    hal_plugin_device *made = calloc(1, sizeof *made);
    if (!made) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "opencl:%u: no host memory to open it", index);
    }
    made->card = &the_list->cards[index];
    made->owner = getpid();
    pthread_mutex_init(&made->lock, NULL);
    char **kept = variables_keep();
    status = device_create_context(made);
    variables_restore(kept);
    if (status != HAL_OK) {
        opencl_device_close(made);
        return status;
    }
    *device = made;
    return HAL_OK;
}

/* A child of fork does not have the driver's threads, and leaves its objects alone. */
void opencl_device_close(hal_plugin_device *device)
{
    if (!device) {
        return;
    }
    if (device->owner == getpid()) {
        if (device->transfers) {
            cl.clReleaseCommandQueue(device->transfers);
        }
        if (device->context) {
            cl.clReleaseContext(device->context);
        }
    }
    pthread_mutex_destroy(&device->lock);
    free(device);
}

hal_status opencl_device_check(const hal_plugin_device *device)
{
    if (device->owner == getpid()) {
        return HAL_OK;
    }
    return kit_fail(HAL_ERROR_INVALID_STATE,
                    "opencl: a device that was opened before fork does not work in the child");
}

hal_status opencl_device_check_lost(const hal_plugin_device *device)
{
    if (!atomic_load_explicit(&device->lost, memory_order_relaxed)) {
        return HAL_OK;
    }
    return kit_fail(HAL_ERROR_DEVICE_LOST, "%s: the device was lost earlier; open it again",
                    device->card->info.name);
}

hal_status opencl_device_quirk(hal_plugin_device *device, uint32_t index, hal_quirk *quirk)
{
    kit_quirk_at(opencl_quirk_names, device->card->quirk_reasons, OPENCL_QUIRK_COUNT,
                 device->card->quirks, index, quirk);
    return HAL_OK;
}
