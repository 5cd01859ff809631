/* What single drivers may get wrong, and what the plugin then does. No driver is known to have one
 * of these quirks; HAL_METAL_QUIRKS sets them in the first runs on hardware. */
#ifndef PLUGINS_METAL_QUIRKS_H
#define PLUGINS_METAL_QUIRKS_H

#include <hal/status.h>
#include <hal/types.h>
#include <stdint.h>

enum {
    METAL_QUIRK_SLOW_HALF = 1,     /* halves are converted by integer operations */
    METAL_QUIRK_NO_SUBGROUPS = 2,  /* subgroups are left to hal */
    METAL_QUIRK_NO_MATRICES = 4,   /* no MATRIX_MULTIPLY */
    METAL_QUIRK_NO_ARCHIVES = 8,   /* no binaries in hal's cache */
    METAL_QUIRK_IN_ORDER = 16,     /* every command waits for the one before */
    METAL_QUIRK_STAGED_MEMORY = 32 /* private device memory, as on discrete GPUs */
};

/* Those that HAL_METAL_QUIRKS lists, separated by commas; unknown names are ignored. */
uint32_t metal_quirks(void);

/* Writes quirk `index` of those that `quirks` has; none from their number on. */
void metal_quirk_at(uint32_t quirks, uint32_t index, hal_quirk *quirk);

/* INVALID_ARGUMENT where HAL_METAL_QUIRKS has an unknown name. */
hal_status metal_quirks_check(void);

#endif
