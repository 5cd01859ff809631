/* Shared modules, see modules.h. */
#include "modules.h"

#include <stdlib.h>

/* The module of a key, or null. The caller holds the lock. */
static cuda_shared_module *module_listed(const hal_plugin_device *device, const uint64_t key[2])
{
    cuda_shared_module *module = device->modules;
    while (module && (module->key[0] != key[0] || module->key[1] != key[1])) {
        module = module->next;
    }
    return module;
}

/* The caller holds the lock. */
static void module_unlist(hal_plugin_device *device, cuda_shared_module *module)
{
    cuda_shared_module **at = &device->modules;
    while (*at != module) {
        at = &(*at)->next;
    }
    *at = module->next;
    free(module);
}

/* Compiles a listed module without the lock, so that several threads compile. One that fails is not
 * listed any more. The caller holds the lock, which is free meanwhile. */
static hal_status module_compile(hal_plugin_device *device, const cuda_kernel_source *source,
                                 uint32_t shared_bytes, cuda_shared_module *module)
{
    hal_plugin_kernel loaded = {.dynamic_shared = shared_bytes};
    pthread_mutex_unlock(&device->modules_lock);
    const hal_status status = cuda_kernel_compile(device, source, &loaded);
    pthread_mutex_lock(&device->modules_lock);
    module->module = loaded.module;
    module->function = loaded.function;
    module->is_made = true;
    if (status != HAL_OK) {
        module_unlist(device, module);
    }
    pthread_cond_broadcast(&device->modules_made);
    return status;
}

hal_status cuda_modules_find(hal_plugin_device *device, const cuda_kernel_source *source,
                             uint32_t shared_bytes, const cuda_shared_module **found)
{
    hal_status status = HAL_OK;
    pthread_mutex_lock(&device->modules_lock);
    cuda_shared_module *module;
    while ((module = module_listed(device, source->key)) != NULL && !module->is_made) {
        pthread_cond_wait(&device->modules_made, &device->modules_lock);
    }
    if (!module && (module = calloc(1, sizeof *module)) != NULL) {
        *module =
            (cuda_shared_module){.key = {source->key[0], source->key[1]}, .next = device->modules};
        device->modules = module;
        status = module_compile(device, source, shared_bytes, module);
    } else if (!module) {
        status = kit_fail(HAL_ERROR_OUT_OF_MEMORY, "cuda: %s: no host memory", source->name);
    }
    pthread_mutex_unlock(&device->modules_lock);
    *found = status == HAL_OK ? module : NULL;
    return status;
}

void cuda_modules_forget(hal_plugin_device *device, bool lost)
{
    const bool unloads = !lost && device->modules && cuda_context_push(device) == HAL_OK;
    while (device->modules) {
        cuda_shared_module *module = device->modules;
        device->modules = module->next;
        if (unloads) {
            cuda_functions()->cuModuleUnload(module->module);
        }
        free(module);
    }
    if (unloads) {
        cuda_context_pop();
    }
}
