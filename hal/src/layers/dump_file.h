/* A file of HAL_DUMP=batch while it is written; hal/dump.h has its format. Called by dump.c. */
#ifndef HAL_SRC_LAYERS_DUMP_FILE_H
#define HAL_SRC_LAYERS_DUMP_FILE_H

#include <hal/status.h>
#include <stdint.h>

/* A payload that grows. Begins as {0}. When memory runs out `failed` is set and stays. */
typedef struct hal_payload {
    uint8_t *data;
    uint64_t bytes, capacity;
    int failed;
} hal_payload;

void hal_payload_u16(hal_payload *payload, uint16_t value);
void hal_payload_u32(hal_payload *payload, uint32_t value);
void hal_payload_u64(hal_payload *payload, uint64_t value);
void hal_payload_bytes(hal_payload *payload, const void *data, uint64_t bytes);
void hal_payload_string(hal_payload *payload, const char *text);
void hal_payload_free(hal_payload *payload);

/* No stdio: what is not written yet must not be written again by a forked child that exits. */
typedef struct hal_dump_file {
    int handle;
    char *path;
    hal_payload waiting; /* to be written */
} hal_dump_file;

/* Makes the folder's next file with its head. `file` is to be closed, also when it fails.
 * Errors: IO with the path, OUT_OF_MEMORY; by host->fail, as the plugin's words. So below. */
hal_status hal_dump_file_create(const char *folder, hal_dump_file *file);

/* Appends a record: a payload, and then `more` bytes of `data`. Errors: IO, OUT_OF_MEMORY. */
hal_status hal_dump_file_put(hal_dump_file *file, uint32_t kind, const hal_payload *payload,
                             const void *data, uint64_t more);

/* What was put is in the file now. Errors: IO. */
hal_status hal_dump_file_flush(hal_dump_file *file);

void hal_dump_file_close(hal_dump_file *file);

#endif
