/* Contents of device memory in a file of HAL_DUMP=batch. The layer keeps a copy of the contents
 * that the file has, and writes only the differences. All calls are under the layer's lock. */
#ifndef HAL_SRC_LAYERS_DUMP_CONTENTS_H
#define HAL_SRC_LAYERS_DUMP_CONTENTS_H

#include "dump_objects.h"
#include "base/map.h"

#include <stdbool.h>

/* A range of memory that a batch uses. */
typedef struct hal_dump_span {
    const hal_dump_memory *memory;
    uint64_t begin, end;
} hal_dump_span;

/* Sorted, without overlap. Begins as {0}; `items` is from malloc. */
typedef struct hal_dump_spans {
    hal_dump_span *items;
    uint32_t count;
} hal_dump_spans;

/* The contents that the file of a queue has. Begins as {.file, .device}. */
typedef struct hal_dump_contents {
    hal_dump_file *file;
    const hal_device *device; /* of the queue */
    hal_map copies;           /* by id of the memory */
} hal_dump_contents;

/* Allocates the buffer that memory is read to. Errors: OUT_OF_MEMORY. */
hal_status hal_dump_contents_start(void);

/* Collects the ranges that a batch uses, or only those that it writes. Scratch memory is left out.
 * Errors: OUT_OF_MEMORY. */
hal_status hal_dump_spans_collect(const hal_recording *recording, bool written,
                                  hal_dump_spans *spans);

/* Declares a memory in the file, once; it holds zeros. Errors: OUT_OF_MEMORY, IO. */
hal_status hal_dump_contents_declare(hal_dump_contents *contents, const hal_dump_memory *memory);

/* Reads ranges after `reached` and writes the differences as records of a kind.
 * Errors: OUT_OF_MEMORY, IO, errors of the plugin. */
hal_status hal_dump_contents_update(hal_dump_contents *contents, uint32_t kind,
                                    const hal_dump_spans *spans, hal_plugin_wait reached);

/* Writes that a memory is freed, if the file knows it. Errors: IO. */
hal_status hal_dump_contents_forget(hal_dump_contents *contents, const hal_dump_memory *memory);

void hal_dump_contents_free(hal_dump_contents *contents);

#endif
