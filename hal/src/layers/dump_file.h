/* A file of HAL_DUMP=batch while it is written; hal/dump.h has its format. */
#ifndef HAL_SRC_LAYERS_DUMP_FILE_H
#define HAL_SRC_LAYERS_DUMP_FILE_H

#include <hal/status.h>
#include <stdbool.h>
#include <stdint.h>

/* A growing payload. Begins as {0}. Out of memory sets `failed`, which is sticky. */
typedef struct hal_payload {
    uint8_t *data;
    uint64_t bytes, capacity;
    bool failed;
} hal_payload;

void hal_payload_u16(hal_payload *payload, uint16_t value);
void hal_payload_u32(hal_payload *payload, uint32_t value);
void hal_payload_u64(hal_payload *payload, uint64_t value);
void hal_payload_bytes(hal_payload *payload, const void *data, uint64_t bytes);
void hal_payload_string(hal_payload *payload, const char *text);
void hal_payload_free(hal_payload *payload);

/* Sets the thread's message, as a plugin does. Returns `status`. */
hal_status hal_dump_fail(hal_status status, const char *words);

/* Not stdio: a forked child that exits must not write the buffer again. */
typedef struct hal_dump_file {
    int handle;
    char *path;
    hal_payload waiting; /* to be written */
} hal_dump_file;

/* Creates the next file of a folder with its header. `file` has to be closed, also after a failure.
 * Errors: IO with the path, OUT_OF_MEMORY; all by hal_dump_fail. */
hal_status hal_dump_file_create(const char *folder, hal_dump_file *file);

/* Appends a record: a payload, and then `more` bytes of `data`. Errors: IO, OUT_OF_MEMORY. */
hal_status hal_dump_file_put(hal_dump_file *file, uint32_t kind, const hal_payload *payload,
                             const void *data, uint64_t more);

/* Writes buffered records. Errors: IO. */
hal_status hal_dump_file_flush(hal_dump_file *file);

void hal_dump_file_close(hal_dump_file *file);

#endif
