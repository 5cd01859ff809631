/* Reports of kernels, see hal/ir_report.h: the memory of a queue's reports, and their way to the
 * log. */
#ifndef HAL_SRC_CORE_REPORTS_H
#define HAL_SRC_CORE_REPORTS_H

#include "queue.h"

typedef struct hal_reports hal_reports;

/* The range that dispatches of the queue report to, and the number of the next one. Threads: the
 * queue's. Errors: OUT_OF_MEMORY, those of the plugin. */
hal_status hal_reports_take(hal_queue *queue, hal_range *range, uint32_t *number);

/* Writes the reports to the log and clears them; all work of the queue has run. Threads: the
 * queue's. Errors: INVALID_STATE for an assert that failed. */
hal_status hal_reports_read(hal_queue *queue);

/* Frees the memory. Threads: the queue's. */
void hal_reports_end(hal_queue *queue);

#endif
