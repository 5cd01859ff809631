/* Prints and asserts in kernels: for programs that debug their kernels, on every device.
 *
 *     hal_ir_reports(b);                                  // after the kernel's bindings
 *     hal_ir_printf(b, "x[%u] = %f", (hal_ir_value[]){i, x}, 2);
 *     hal_ir_assert(b, hal_ir_lt(b, i, n), "i is %u of %u", (hal_ir_value[]){i, n}, 2);
 *
 * The kernel writes into one more binding, named HAL_IR_REPORTS, which dispatches get by
 * themselves: the program dispatches the kernel as before. hal_queue_wait, hal_queue_read and
 * hal_queue_destroy write the prints to the log at level info, in the order of the dispatches, then
 * of the work-groups and work-items, then of the program in a work-item. An assert that fails is
 * counted, does not stop its work-item, and makes the queue's next wait or read fail once, with
 * INVALID_STATE and the message of the first one. A queue keeps HAL_IR_REPORTS_MOST reports between
 * two waits; the log says how many more there were. Reports of a graph go to the queue that
 * recorded it.
 *
 * Each report is an atomic operation and four wide stores; dispatches of such kernels do not
 * overlap. A kernel that is read from text or replayed in another process has the values, but not
 * the words. */
#ifndef HAL_IR_REPORT_H
#define HAL_IR_REPORT_H

#include <hal/ir_build.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAL_IR_REPORTS "hal_reports"
#define HAL_IR_REPORTS_MOST 16383u
#define HAL_IR_REPORT_VALUES 4u

/* Declares the binding of reports, once, after all other bindings and before shared arrays.
 * Threads: the builder's. Errors: sticky, INVALID_ARGUMENT. */
HAL_API void hal_ir_reports(hal_ir_builder *builder);

/* Prints where control comes by. `format` is as for printf with the conversions %d %u %x of
 * integers and bool, and %f %e %g of floats, of which only floats have a precision (%.3f), and %%;
 * the type is that of the value, not of the conversion. At most HAL_IR_REPORT_VALUES values.
 * Ownership: format and values are copied. Threads: the builder's. Errors: sticky,
 * INVALID_ARGUMENT without hal_ir_reports, and for a format that does not fit the values. */
HAL_API void hal_ir_printf(hal_ir_builder *builder, const char *format, const hal_ir_value *values,
                           uint32_t count);

/* Reports where `condition`, a bool, is false; otherwise as hal_ir_printf.
 * Threads: the builder's. Errors: sticky, INVALID_ARGUMENT, INVALID_IR. */
HAL_API void hal_ir_assert(hal_ir_builder *builder, hal_ir_value condition, const char *format,
                           const hal_ir_value *values, uint32_t count);

#ifdef __cplusplus
}
#endif
#endif
