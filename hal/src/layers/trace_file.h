/* Files of timed events: JSON that Perfetto and Chrome open, and a page that shows them itself.
 * They are complete after each flush, whenever the process ends. */
#ifndef HAL_SRC_LAYERS_TRACE_FILE_H
#define HAL_SRC_LAYERS_TRACE_FILE_H

#include <hal/status.h>
#include <stdbool.h>
#include <stdint.h>

#define HAL_TRACE_HOST 1u /* the group of the host's threads */

/* A line of the timeline; the host and each device are a group of lines. */
typedef struct hal_trace_line {
    uint32_t group;
    uint32_t number;
} hal_trace_line;

/* Creates the files, once: of events, and a page; null or "" for none. The rest is written at exit.
 * Errors: IO. */
hal_status hal_trace_open(const char *trace, const char *page);

/* The calling thread's line. Threads: any. */
hal_trace_line hal_trace_thread(void);

/* Names a group (number 0) or a line. Threads: any. */
void hal_trace_name(hal_trace_line line, const char *name);

/* An event from `begin_ns` to `end_ns` of hal_clock_ns. `format` gives further JSON fields, such as
 * "\"bytes\":%u", or is empty. Threads: any. */
void hal_trace_slice(hal_trace_line line, const char *category, const char *name, uint64_t begin_ns,
                     uint64_t end_ns, const char *format, ...) HAL_PRINTF(6, 7);

/* What happened now; `detail` is a text, `format` as above. Threads: any. */
void hal_trace_instant(hal_trace_line line, const char *category, const char *name,
                       const char *detail, const char *format, ...) HAL_PRINTF(5, 6);

/* Values of a counter of a group; fields as above. Threads: any. */
void hal_trace_counter(uint32_t group, const char *name, uint64_t at_ns, const char *format, ...)
    HAL_PRINTF(4, 5);

/* Writes the buffer if the last write is 0.2 s ago, or `now`. */
void hal_trace_flush(bool now);

#endif
