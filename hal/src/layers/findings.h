/* The findings of the layers validate and sanitize, which hal_validate_get_finding_count counts. */
#ifndef HAL_SRC_LAYERS_FINDINGS_H
#define HAL_SRC_LAYERS_FINDINGS_H

#include <stdbool.h>
#include <stdint.h>

/* Counts a finding whose place has this hash, the first time; again if memory is out. Returns
 * whether it counted: the caller then logs the finding. Threads: any. */
bool hal_finding_is_new(uint64_t place);

#endif
