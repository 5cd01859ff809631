/* The Vulkan loader, opened at run time, and the instance of the process, which is created when hal
 * first asks for devices and stays. After a failure the next call tries again. */
#include "driver.h"

#include "status.h"

#include <kit/fork.h>
#include <kit/library.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

typedef struct vulkan_loader {
#define LOADER(name) PFN_##name name;
#include "symbols.inl"
#undef LOADER
} vulkan_loader;

static hal_status fail_missing(const char *name)
{
    return kit_fail(HAL_ERROR_TOO_OLD,
                    "vulkan: the loader has no function %s: install a newer Vulkan loader", name);
}

static hal_status instance_create(const vulkan_instance *functions, VkInstance *handle)
{
    uint32_t version = 0;
    functions->vkEnumerateInstanceVersion(&version);
    if (version < VK_API_VERSION_1_2) {
        return kit_fail(HAL_ERROR_TOO_OLD,
                        "vulkan: loader: expected version 1.2 or newer, got %u.%u; install a newer "
                        "Vulkan loader",
                        VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version));
    }
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .pEngineName = "halyard",
                                           .apiVersion = VK_API_VERSION_1_2};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pApplicationInfo = &application};
    const VkResult result = functions->vkCreateInstance(&info, NULL, handle);
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER || result == VK_ERROR_INITIALIZATION_FAILED) {
        return kit_fail(HAL_ERROR_DRIVER_MISSING,
                        "vulkan: the loader finds no driver that works (vkCreateInstance: %s); "
                        "install the device's Vulkan driver, and check VK_DRIVER_FILES and "
                        "VK_ICD_FILENAMES if they are set",
                        vulkan_result_name(result));
    }
    return result == VK_SUCCESS ? HAL_OK
                                : vulkan_fail_attempt("vulkan", result, "vkCreateInstance");
}

static hal_status instance_load(const vulkan_loader *loader, vulkan_instance *instance)
{
    vulkan_instance made = {0};
    PFN_vkVoidFunction function = NULL;
#define GLOBAL(name)                                       \
    function = loader->vkGetInstanceProcAddr(NULL, #name); \
    if (!function) {                                       \
        return fail_missing(#name);                        \
    }                                                      \
    memcpy(&made.name, &function, sizeof function);
#include "symbols.inl"
#undef GLOBAL
    HAL_TRY(instance_create(&made, &made.handle));
#define INSTANCE(name)                                            \
    function = loader->vkGetInstanceProcAddr(made.handle, #name); \
    if (!function) {                                              \
        return fail_missing(#name);                               \
    }                                                             \
    memcpy(&made.name, &function, sizeof function);
#define EXTENSION(name)                                           \
    function = loader->vkGetInstanceProcAddr(made.handle, #name); \
    memcpy(&made.name, &function, sizeof function);
#include "symbols.inl"
#undef INSTANCE
#undef EXTENSION
    *instance = made;
    return HAL_OK;
}

static hal_status loader_open(vulkan_loader *loader)
{
    static const char *const names[] = {"libvulkan.so.1", NULL};
    static const kit_symbol symbols[] = {
#define LOADER(name) {#name, offsetof(vulkan_loader, name), 1},
#include "symbols.inl"
#undef LOADER
    };
    const kit_library library = {.title = "the Vulkan loader",
                                 .names = names,
                                 .remedy = "install the Vulkan loader (libvulkan1)",
                                 .missing = HAL_ERROR_LIBRARY_MISSING,
                                 .symbols = symbols,
                                 .symbol_count = sizeof symbols / sizeof symbols[0]};
    return kit_library_open(kit_host(), &library, loader);
}

static pthread_mutex_t instance_lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static vulkan_loader loader;
static vulkan_instance the_instance;

/* A child keeps what is complete: opening devices is refused where its parent has opened one. */
KIT_FORK_RESET(instance_lock, NULL)

hal_status vulkan_instance_get(const vulkan_instance **instance)
{
    hal_status status = HAL_OK;
    pthread_mutex_lock(&instance_lock);
    if (!loader.vkGetInstanceProcAddr) {
        status = loader_open(&loader);
    }
    if (status == HAL_OK && !the_instance.handle) {
        status = instance_load(&loader, &the_instance);
    }
    pthread_mutex_unlock(&instance_lock);
    *instance = status == HAL_OK ? &the_instance : NULL;
    return status;
}
