/* A file of timed events in the JSON form that Perfetto and Chrome's tracing open. Whatever moment
 * the process ends at, the file is whole up to the last flush. Called by layers/trace.c. */
#ifndef HAL_SRC_LAYERS_TRACE_FILE_H
#define HAL_SRC_LAYERS_TRACE_FILE_H

#include <hal/status.h>
#include <stdint.h>

#define HAL_TRACE_HOST 1u /* the group of the host's threads */

/* A line of the picture: lines come in groups, the host and each device. */
typedef struct hal_trace_line {
    uint32_t group;
    uint32_t number;
} hal_trace_line;

/* Begins the file, and has the rest written when the process exits. Once. Errors: IO. */
hal_status hal_trace_open(const char *path);

/* The calling thread's line. Threads: any. */
hal_trace_line hal_trace_thread(void);

/* Names a group, or with a number above 0 a line. Threads: any. */
void hal_trace_name(hal_trace_line line, const char *name);

/* Something that took from `begin_ns` to `end_ns` of hal_clock_ns. `format` makes further members,
 * such as "\"bytes\":%u", or is empty. Threads: any. */
void hal_trace_slice(hal_trace_line line, const char *category, const char *name,
                     uint64_t begin_ns, uint64_t end_ns, const char *format, ...)
    HAL_PRINTF(6, 7);

/* The values of a group's curve at a moment: members as above. Threads: any. */
void hal_trace_counter(uint32_t group, const char *name, uint64_t at_ns, const char *format, ...)
    HAL_PRINTF(4, 5);

/* Writes what has gathered; `now`: even when that is little and was written a moment ago. */
void hal_trace_flush(int now);

#endif
