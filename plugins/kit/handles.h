/* Native handles by the names of their types, for the extension hal.native_handles. */
#ifndef PLUGINS_KIT_HANDLES_H
#define PLUGINS_KIT_HANDLES_H

#include <hal/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kit_handle {
    const char *type; /* null after the last one */
    uint64_t handle;
} kit_handle;

#define KIT_HANDLE(name, value)            \
    {                                      \
        name, (uint64_t)(uintptr_t)(value) \
    }

/* Returns the handle of a type. Errors: UNSUPPORTED with the names of all types. */
hal_status kit_handle_find(const kit_handle *handles, const char *type, uint64_t *handle);

#ifdef __cplusplus
}
#endif
#endif
