/* Kernels that also store the values of some of their records, as text: for hal-replay --bisect. */
#ifndef HAL_TOOLS_REPLAY_PROBE_H
#define HAL_TOOLS_REPLAY_PROBE_H

#include <hal/hal.h>
#include <stdbool.h>

/* Words of U32 that a work-item stores for each probed record, the low one first. */
enum { REPLAY_PROBE_WORDS = 2 };

/* Whether a record has a value that can be stored. */
bool replay_probe_fits(const hal_ir_record *record);

/* The text of a kernel that stores `records`, which fit, to one more binding, the last one of its
 * bindings: REPLAY_PROBE_WORDS for each record of each work-item. Work-items of a group, and
 * groups, count x first. In loops the last value counts. Free by free().
 * Errors: OUT_OF_MEMORY, those of hal_ir_print. */
hal_status replay_probe_text(const hal_ir_kernel *ir, const uint32_t *records, uint32_t count,
                             char **text);

/* The line of a record, without blanks at its begin. Free by free(); null without host memory. */
char *replay_probe_line(const hal_ir_kernel *ir, uint32_t record);

#endif
