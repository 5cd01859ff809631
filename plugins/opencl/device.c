/* The loader, the list of devices of all platforms, and opening one. Entries of the plugin's table.
 * HAL_OPENCL_QUIRKS is read when devices are listed. */
#include "opencl.h"

#include <kit/library.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_CARDS = 64, MAX_PLATFORMS = 32 };

/* What the first enumerate found; the handles stay valid. */
typedef struct card_list {
    opencl_card cards[MAX_CARDS];
    uint32_t count;
    pid_t owner;       /* the drivers' threads, which they may have from then on, end with fork */
    char lacking[512]; /* devices that were passed over, and why */
} card_list;

static hal_status open_loader(void);
static hal_status find_platforms(cl_platform_id *platforms, uint32_t *count);
static void list_platform(card_list *list, cl_platform_id platform);
static void pass_over(card_list *list, const char *name, const char *reason);
static hal_status make_context(hal_plugin_device *made);

opencl_api cl;
static card_list *the_list;

hal_status opencl_enumerate(hal_device_info *infos, uint32_t capacity, uint32_t *count)
{
    cl_platform_id platforms[MAX_PLATFORMS];
    uint32_t platform_count = 0;
    *count = 0;
    hal_status status = open_loader();
    if (status == HAL_OK && the_list == NULL) {
        status = find_platforms(platforms, &platform_count);
    }
    if (status != HAL_OK) {
        return status;
    }
    if (the_list == NULL) {
        card_list *list = calloc(1, sizeof *list);
        if (list == NULL) {
            return opencl_fail(HAL_ERROR_OUT_OF_MEMORY, "opencl: no host memory to list devices");
        }
        for (uint32_t i = 0; i < platform_count; i++) {
            list_platform(list, platforms[i]);
        }
        list->owner = getpid();
        the_list = list;
    }
    if (the_list->count == 0) {
        return opencl_fail(
            HAL_ERROR_NO_DEVICE,
            "OpenCL has a driver and no device that can be used%s%s; look at what clinfo says",
            the_list->lacking[0] != '\0' ? ": " : "", the_list->lacking);
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
        return opencl_fail(HAL_ERROR_NOT_FOUND, "opencl:%u: there are %u devices", index, count);
    }
    if (the_list->owner != getpid()) {
        return opencl_fail(HAL_ERROR_INVALID_STATE,
                           "opencl:%u: devices were listed before the process was forked, and "
                           "their drivers do not work in the child; fork before devices are "
                           "listed or opened, or let the child execute a program",
                           index);
    }
    hal_plugin_device *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return opencl_fail(HAL_ERROR_OUT_OF_MEMORY, "opencl:%u: no host memory to open it", index);
    }
    made->card = &the_list->cards[index];
    made->owner = getpid();
    pthread_mutex_init(&made->lock, NULL);
    status = make_context(made);
    if (status != HAL_OK) {
        opencl_device_close(made);
        return status;
    }
    *device = made;
    return HAL_OK;
}

/* In a child after fork the driver's threads are gone, and its objects are left alone. */
void opencl_device_close(hal_plugin_device *device)
{
    if (device == NULL) {
        return;
    }
    if (device->owner == getpid()) {
        if (device->transfers != NULL) {
            cl.clReleaseCommandQueue(device->transfers);
        }
        if (device->context != NULL) {
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
    return opencl_fail(HAL_ERROR_INVALID_STATE,
                       "opencl: the device was opened before fork, and its driver does not work in "
                       "the child");
}

static hal_status make_context(hal_plugin_device *made)
{
    const opencl_card *card = made->card;
    const cl_context_properties wanted[] = {CL_CONTEXT_PLATFORM,
                                            (cl_context_properties)card->platform, 0};
    cl_int error = CL_SUCCESS;
    made->context = cl.clCreateContext(wanted, 1, &card->device, NULL, NULL, &error);
    if (made->context == NULL) {
        return opencl_fail_call(error, "%s: clCreateContext", card->info.name);
    }
    made->transfers = cl.clCreateCommandQueue(made->context, card->device, 0, &error);
    if (made->transfers == NULL) {
        return opencl_fail_call(error, "%s: clCreateCommandQueue", card->info.name);
    }
    return HAL_OK;
}

static hal_status open_loader(void)
{
    static const char *const names[] = {"libOpenCL.so.1", NULL};
#define SYMBOL(name) {#name, offsetof(opencl_api, name), 1},
#define OPTIONAL(name) {#name, offsetof(opencl_api, name), 0},
    static const kit_symbol symbols[] = {
#include "symbols.inl"
    };
    static const kit_library library = {
        .title = "the OpenCL loader",
        .names = names,
        .remedy = "install the package that has libOpenCL.so.1 (ocl-icd-libopencl1 on Debian), or "
                  "the vendor's driver that brings one",
        .missing = HAL_ERROR_LIBRARY_MISSING,
        .symbols = symbols,
        .symbol_count = sizeof symbols / sizeof symbols[0],
    };
    return cl.clGetPlatformIDs != NULL ? HAL_OK : kit_library_open(opencl_host(), &library, &cl);
}

static hal_status find_platforms(cl_platform_id *platforms, uint32_t *count)
{
    cl_uint found = 0;
    const cl_int error = cl.clGetPlatformIDs(MAX_PLATFORMS, platforms, &found);
    if (error != CL_SUCCESS && error != CL_PLATFORM_NOT_FOUND_KHR) {
        return opencl_fail(HAL_ERROR_DRIVER_MISSING,
                           "the OpenCL loader is there and gives no platform: clGetPlatformIDs: %s "
                           "(%d)",
                           opencl_error_name(error), (int)error);
    }
    if (found == 0) {
        return opencl_fail(HAL_ERROR_DRIVER_MISSING,
                           "the OpenCL loader is there and no driver is registered with it: "
                           "install the device's OpenCL driver, whose .icd file belongs into "
                           "/etc/OpenCL/vendors (OCL_ICD_VENDORS changes the folder)");
    }
    *count = found < MAX_PLATFORMS ? found : MAX_PLATFORMS;
    return HAL_OK;
}

static void list_platform(card_list *list, cl_platform_id platform)
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
        card->quirks = opencl_quirks(name, device_name);
        if (opencl_describe(card, name, reason)) {
            list->count++;
        } else {
            pass_over(list, device_name, reason);
        }
    }
}

static void pass_over(card_list *list, const char *name, const char *reason)
{
    const size_t used = strlen(list->lacking);
    snprintf(list->lacking + used, sizeof list->lacking - used, "%s%s %s", used > 0 ? "; " : "",
             name, reason);
}
