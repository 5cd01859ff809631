/* kernel_print.c: prints and asserts in kernels, hal/ir_report.h. */
#include <hal/hal.h>
#include <stdio.h>
#include <string.h>

#include "case/cases.h"
#include "hal/fixture.h"

enum { GROUP = 32, GROUPS = 3, ITEMS = GROUP * GROUPS, EVERY = 7, LINES = 64 };

/* What the log has said, lines of reports only. */
typedef struct heard_lines {
    char text[LINES][160];
    uint32_t count;
} heard_lines;

static void hear(void *user, hal_log_level level, const char *message)
{
    heard_lines *heard = user;
    const char *at = strstr(message, "print: ");
    at = at ? at : strstr(message, "assert: ");
    if (level == HAL_LOG_INFO && at && heard->count < LINES) {
        snprintf(heard->text[heard->count++], sizeof heard->text[0], "%s", at);
    }
}

/* y[i] = i * 3; every EVERY-th work-item prints twice, and one above `most` fails. */
static hal_kernel *printing_kernel(case_run *run, uint32_t most)
{
    hal_ir_builder *b = case_builder(run, "printing");
    hal_ir_group_size(b, GROUP, 1, 1);
    const hal_ir_memory_id y = hal_ir_binding(b, "y", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    hal_ir_reports(b);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const hal_ir_value x = hal_ir_mul(b, i, hal_ir_u32(b, 3));
    const hal_ir_value half = hal_ir_mul(b, hal_ir_cast(b, HAL_TYPE_F32, i), hal_ir_f32(b, 0.5f));
    hal_ir_store(b, y, i, x);
    hal_ir_if(b, hal_ir_eq(b, hal_ir_rem(b, i, hal_ir_u32(b, EVERY)), hal_ir_u32(b, 0)));
    const hal_ir_value minus = hal_ir_sub(b, hal_ir_i32(b, 0), hal_ir_cast(b, HAL_TYPE_I32, i));
    hal_ir_printf(b, "first of %u", (hal_ir_value[]){i}, 1);
    hal_ir_printf(b, "x %u, half %.1f, hex %x, minus %d", (hal_ir_value[]){x, half, x, minus}, 4);
    hal_ir_end(b);
    hal_ir_assert(b, hal_ir_le(b, i, hal_ir_u32(b, most)), "%u is above 100%%", (hal_ir_value[]){i},
                  1);
    return case_kernel(run, b);
}

static void check_line(case_run *run, const heard_lines *heard, uint32_t line, const char *expected)
{
    case_check(run, line < heard->count && strcmp(heard->text[line], expected) == 0,
               "line %u: expected \"%s\", got \"%s\"", line, expected,
               line < heard->count ? heard->text[line] : "nothing");
}

static void dispatch_printing(case_run *run, hal_queue *queue, hal_kernel *kernel,
                              hal_buffer *buffer)
{
    const hal_range y = range_of(buffer);
    case_ok(run, hal_queue_dispatch(queue, kernel, (uint32_t[]){GROUPS, 1, 1}, &y, 1, NULL, 0),
            "hal_queue_dispatch without the binding of reports");
}

/* Two dispatches: prints in the order of dispatches, work-items and the program. */
static void prints_in_order(case_run *run, const void *parameters)
{
    static heard_lines heard;
    char expected[160];
    hal_queue *queue = case_queue(run, run->device);
    hal_kernel *kernel = printing_kernel(run, ITEMS);
    hal_buffer *buffer = case_buffer(run, run->device, HAL_MEMORY_DEVICE, 4 * ITEMS);
    heard.count = 0;
    hal_log_set_callback(hear, &heard, HAL_LOG_INFO);
    dispatch_printing(run, queue, kernel, buffer);
    dispatch_printing(run, queue, kernel, buffer);
    const hal_status status = hal_queue_wait(queue, HAL_WAIT_FOREVER);
    hal_log_set_callback(NULL, NULL, 0);
    case_ok(run, status, "hal_queue_wait");
    uint32_t line = 0;
    for (int dispatch = 0; dispatch < 2; dispatch++) {
        for (uint32_t i = 0; i < ITEMS; i += EVERY) {
            snprintf(expected, sizeof expected,
                     "print: printing, group (%u, 0, 0), item %u: first of %u", i / GROUP,
                     i % GROUP, i);
            check_line(run, &heard, line++, expected);
            snprintf(
                expected, sizeof expected,
                "print: printing, group (%u, 0, 0), item %u: x %u, half %u.%c, hex %x, minus %d",
                i / GROUP, i % GROUP, 3 * i, i / 2, i % 2 ? '5' : '0', 3 * i, -(int)i);
            check_line(run, &heard, line++, expected);
        }
    }
    case_check(run, heard.count == line, "expected %u lines, got %u", line, heard.count);
    words_check(run, queue, buffer, ITEMS, 0, 3, "what the kernel computes");
}

/* The next wait fails once, with the first work-item; the queue goes on. */
static void asserts_fail_the_wait(case_run *run, const void *parameters)
{
    hal_queue *queue = case_queue(run, run->device);
    hal_kernel *kernel = printing_kernel(run, ITEMS - 3);
    hal_buffer *buffer = case_buffer(run, run->device, HAL_MEMORY_DEVICE, 4 * ITEMS);
    dispatch_printing(run, queue, kernel, buffer);
    const hal_status status = hal_queue_wait(queue, HAL_WAIT_FOREVER);
    case_check(run, status == HAL_ERROR_INVALID_STATE, "expected %s, got %s",
               hal_status_name(HAL_ERROR_INVALID_STATE), hal_status_name(status));
    case_check(run,
               strstr(hal_status_message(), "2 asserts of kernels failed; the first of kernel "
                                            "printing, group (2, 0, 0), item 30: 94 is above 100%"),
               "the message is: %s", hal_status_message());
    case_ok(run, hal_queue_wait(queue, HAL_WAIT_FOREVER), "the wait after it");
    words_check(run, queue, buffer, ITEMS, 0, 3, "what the kernel computes");
}

void cases_hal_kernel_print(case_list *list)
{
    case_add(list, prints_in_order, NULL, 0, "kernel_print/in_order");
    case_add(list, asserts_fail_the_wait, NULL, 0, "kernel_print/asserts");
}
