/* Checks of the description of attention. */
#ifndef HAL_SRC_CORE_ATTENTION_CHECK_H
#define HAL_SRC_CORE_ATTENTION_CHECK_H

#include <hal/types.h>
#include <hal/status.h>

/* Checks a description of any size and makes one of this hal's.
 * Errors: INVALID_ARGUMENT. */
hal_status hal_attention_check(const hal_attention_description *given,
                               hal_attention_description *checked);

#endif
