/* Structures of other minor versions, see sized.h. */
#include "sized.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

bool hal_sized_take(void *own, size_t bytes, const void *given, size_t least)
{
    uint32_t size;
    memcpy(&size, given, sizeof size);
    if (size < least || size > HAL_SIZED_MAX_BYTES) {
        return false;
    }
    for (size_t i = bytes; i < size; i++) {
        if (((const char *)given)[i] != 0) {
            return false;
        }
    }
    memset(own, 0, bytes);
    memcpy(own, given, size < bytes ? size : bytes);
    size = (uint32_t)bytes;
    memcpy(own, &size, sizeof size);
    return true;
}
