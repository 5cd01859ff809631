/* Reports of kernels, see hal/ir_report.h: what a kernel writes, and the texts that its reports
 * have. core/reports.c reads them. */
#ifndef HAL_SRC_IR_REPORT_H
#define HAL_SRC_IR_REPORT_H

#include <hal/ir_report.h>
#include <stdbool.h>

struct hal_text;

/* The binding: a head, then reports. */
typedef struct hal_ir_report_head {
    uint32_t count;    /* of reports, also those without room */
    uint32_t dispatch; /* number of the dispatch, which a fill writes before it */
    uint32_t reserved[14];
} hal_ir_report_head;

typedef struct hal_ir_report_entry {
    uint32_t form[2]; /* key of the format, the low word first; odd: an assert */
    uint32_t dispatch;
    uint32_t group[3];
    uint32_t item; /* in the group, counted x first, then y, then z */
    uint32_t reserved;
    uint32_t values[HAL_IR_REPORT_VALUES][2]; /* the low word first */
} hal_ir_report_entry;

#define HAL_IR_REPORT_BYTES \
    (sizeof(hal_ir_report_head) + HAL_IR_REPORTS_MOST * sizeof(hal_ir_report_entry))

/* Whether the last binding of a kernel is that of reports. */
bool hal_ir_has_reports(const hal_ir_kernel *kernel);

/* Appends the place and the words of a report. Threads: any. */
void hal_ir_report_add_text(struct hal_text *text, const hal_ir_report_entry *entry);

/* The two words of a scalar value of a kernel in building; zeros for NONE. */
void hal_ir_value_words(hal_ir_builder *b, hal_ir_value value, hal_ir_value words[2]);

/* The number of the work-item in its group. */
hal_ir_value hal_ir_item_number(hal_ir_builder *b, const uint32_t group_size[3]);

/* Appends a value of a type by its two words. */
void hal_ir_add_value_text(struct hal_text *text, hal_type type, const uint32_t words[2]);

#endif
