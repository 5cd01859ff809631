/* What a plugin knows of a driver, for the extension hal.quirks. */
#ifndef PLUGINS_KIT_QUIRKS_H
#define PLUGINS_KIT_QUIRKS_H

#include <hal/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes quirk `index` of those that have a reason, if there is one.
 *   names, reasons  `count` of each, at most 32; a null reason: the driver does not have it
 *   active          bit i: the plugin acts on quirk i */
void kit_quirk_at(const char *const *names, const char *const *reasons, uint32_t count,
                  uint32_t active, uint32_t index, hal_quirk *quirk);

#ifdef __cplusplus
}
#endif
#endif
