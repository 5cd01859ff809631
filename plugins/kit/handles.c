/* Native handles by the names of their types. */
#include "handles.h"

#include "host.h"

#include <stdio.h>
#include <string.h>

hal_status kit_handle_find(const kit_handle *handles, const char *type, uint64_t *handle)
{
    char names[192] = "none";
    size_t used = 0;
    for (const kit_handle *at = handles; at->type; at++) {
        if (strcmp(at->type, type) == 0) {
            *handle = at->handle;
            return HAL_OK;
        }
        const int length =
            snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", at->type);
        used += length > 0 && used + (size_t)length < sizeof names ? (size_t)length : 0;
    }
    return kit_fail(HAL_ERROR_UNSUPPORTED, "type: expected one of %s, got \"%s\"", names, type);
}
