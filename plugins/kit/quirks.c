/* See quirks.h. */
#include "quirks.h"

void kit_quirk_at(const char *const *names, const char *const *reasons, uint32_t count,
                  uint32_t active, uint32_t index, hal_quirk *quirk)
{
    for (uint32_t i = 0, seen = 0; i < count; i++) {
        if (reasons[i] && seen++ == index) {
            quirk->name = names[i];
            quirk->reason = reasons[i];
            quirk->is_active = active >> i & 1;
            return;
        }
    }
}
