/* Reports of kernels, see reports.h. */
#include "reports.h"

#include "buffer.h"

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "ir/report.h"

#include <stdlib.h>
#include <string.h>

struct hal_reports {
    hal_buffer *buffer;
    hal_ir_report_head *head;     /* in mapped memory, */
    hal_ir_report_entry *entries; /* with these after it */
    uint32_t dispatches;
};

static hal_status reports_create(hal_queue *queue)
{
    void *pointer = NULL;
    hal_reports *made = calloc(1, sizeof *made);
    if (!made) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "reports of kernels: no host memory");
    }
    hal_status status = hal_buffer_create(queue->timeline.device, HAL_MEMORY_SHARED,
                                          HAL_IR_REPORT_BYTES, &made->buffer);
    if (status == HAL_OK) {
        hal_buffer_set_label(made->buffer, "reports of kernels");
        status = hal_buffer_map_begin(made->buffer, &pointer);
    }
    if (status == HAL_OK) {
        memset(pointer, 0, HAL_IR_REPORT_BYTES);
        made->head = pointer;
        made->entries = (hal_ir_report_entry *)(made->head + 1);
        status = hal_buffer_map_end(made->buffer);
    }
    if (status != HAL_OK) {
        hal_buffer_release(made->buffer);
        free(made);
        return status;
    }
    queue->reports = made;
    return HAL_OK;
}

hal_status hal_reports_take(hal_queue *queue, hal_range *range, uint32_t *number)
{
    if (!queue->reports) {
        HAL_TRY(reports_create(queue));
    }
    *range = (hal_range){queue->reports->buffer, 0, HAL_IR_REPORT_BYTES};
    *number = queue->reports->dispatches++;
    return HAL_OK;
}

/* Dispatch, group, item, then the place in memory: a work-item's reports are in its order there. */
static int entry_compare(const void *one, const void *other)
{
    const hal_ir_report_entry *a = *(const hal_ir_report_entry *const *)one;
    const hal_ir_report_entry *b = *(const hal_ir_report_entry *const *)other;
    const uint32_t left[] = {a->dispatch, a->group[2], a->group[1], a->group[0], a->item};
    const uint32_t right[] = {b->dispatch, b->group[2], b->group[1], b->group[0], b->item};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        if (left[i] != right[i]) {
            return left[i] < right[i] ? -1 : 1;
        }
    }
    return a < b ? -1 : 1;
}

/* Returns how many asserts failed; `first` receives the text of the first one. */
static uint32_t entries_log(const hal_ir_report_entry **entries, uint32_t count, hal_text *first)
{
    uint32_t failed = 0;
    qsort(entries, count, sizeof *entries, entry_compare);
    for (uint32_t i = 0; i < count; i++) {
        const bool is_assert = (entries[i]->form[0] & 1) != 0;
        hal_text line = {0};
        hal_ir_report_add_text(&line, entries[i]);
        if (is_assert && failed++ == 0) {
            hal_text_add(first, "%s", hal_text_get(&line));
        }
        hal_log(HAL_LOG_INFO, "%s: %s", is_assert ? "assert" : "print", hal_text_get(&line));
        hal_text_free(&line);
    }
    return failed;
}

hal_status hal_reports_read(hal_queue *queue)
{
    hal_reports *reports = queue->reports;
    hal_text first = {0};
    HAL_TRY(hal_buffer_invalidate(reports->buffer, 0, sizeof *reports->head));
    const uint32_t made = reports->head->count;
    const uint32_t count = made < HAL_IR_REPORTS_MOST ? made : HAL_IR_REPORTS_MOST;
    if (count == 0) {
        return HAL_OK;
    }
    HAL_TRY(hal_buffer_invalidate(reports->buffer, 0, HAL_IR_REPORT_BYTES));
    const hal_ir_report_entry **entries = malloc(count * sizeof *entries);
    if (!entries) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "reports of kernels: no host memory");
    }
    for (uint32_t i = 0; i < count; i++) {
        entries[i] = &reports->entries[i];
    }
    const uint32_t failed = entries_log(entries, count, &first);
    free(entries);
    if (made > count) {
        hal_log(HAL_LOG_INFO, "print: %u reports more had no room", made - count);
    }
    reports->head->count = 0;
    hal_status status = hal_buffer_flush(reports->buffer, 0, sizeof *reports->head);
    if (failed > 0) {
        status = hal_fail(HAL_ERROR_INVALID_STATE,
                          "hal_queue_wait: %u assert%s of kernels failed; "
                          "the first of kernel %s",
                          failed, failed > 1 ? "s" : "", hal_text_get(&first));
    }
    hal_text_free(&first);
    return status;
}

void hal_reports_end(hal_queue *queue)
{
    if (queue->reports) {
        hal_buffer_release(queue->reports->buffer);
        free(queue->reports);
        queue->reports = NULL;
    }
}
