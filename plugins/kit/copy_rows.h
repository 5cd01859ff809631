/* The ranges of a copy of rows, whose numbers are in the scalars of its command. */
#ifndef PLUGINS_KIT_COPY_ROWS_H
#define PLUGINS_KIT_COPY_ROWS_H

#include <hal/plugin.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline hal_plugin_copy_rows kit_copy_rows_read(const hal_batch *batch,
                                                      const hal_command *command)
{
    hal_plugin_copy_rows rows;
    memcpy(&rows, batch->scalars + command->scalar_first, sizeof rows);
    return rows;
}

/* Bytes from the first row of the source, or of the target, to row `number` of all. */
static inline uint64_t kit_copy_rows_source(const hal_plugin_copy_rows *rows, uint64_t number)
{
    return number / rows->rows * rows->source_slice + number % rows->rows * rows->source_pitch;
}

static inline uint64_t kit_copy_rows_target(const hal_plugin_copy_rows *rows, uint64_t number)
{
    return number / rows->rows * rows->target_slice + number % rows->rows * rows->target_pitch;
}

static inline uint64_t kit_copy_rows_count(const hal_plugin_copy_rows *rows)
{
    return (uint64_t)rows->rows * rows->slices;
}

#ifdef __cplusplus
}
#endif
#endif
