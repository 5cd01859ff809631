/* Writes files of HAL_DUMP=batch, see dump_file.h. */
#include "dump_file.h"

#include "plugin/host.h"
#include "base/cancel.h"
#include "base/file.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <hal/dump.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WRITTEN_AT_ONCE (1u << 20)

static bool payload_reserve(hal_payload *payload, uint64_t more)
{
    if (payload->capacity - payload->bytes >= more) {
        return !payload->failed;
    }
    const uint64_t wanted = 2 * payload->capacity + more + 64;
    uint8_t *larger = payload->failed ? NULL : realloc(payload->data, wanted);
    if (!larger) {
        payload->failed = true;
        return false;
    }
    payload->data = larger;
    payload->capacity = wanted;
    return true;
}

static hal_status file_fail(const hal_dump_file *file)
{
    char words[512];
    snprintf(words, sizeof words, "%s cannot be written: %s; HAL_DUMP_DIR names the folder",
             file->path, strerror(errno));
    return hal_dump_fail(HAL_ERROR_IO, words);
}

void hal_payload_u16(hal_payload *payload, uint16_t value)
{
    const uint8_t bytes[2] = {(uint8_t)value, (uint8_t)(value >> 8)};
    hal_payload_bytes(payload, bytes, sizeof bytes);
}

void hal_payload_u32(hal_payload *payload, uint32_t value)
{
    hal_payload_u16(payload, (uint16_t)value);
    hal_payload_u16(payload, (uint16_t)(value >> 16));
}

void hal_payload_u64(hal_payload *payload, uint64_t value)
{
    hal_payload_u32(payload, (uint32_t)value);
    hal_payload_u32(payload, (uint32_t)(value >> 32));
}

void hal_payload_bytes(hal_payload *payload, const void *data, uint64_t bytes)
{
    if (bytes > 0 && payload_reserve(payload, bytes)) {
        memcpy(payload->data + payload->bytes, data, bytes);
        payload->bytes += bytes;
    }
}

void hal_payload_string(hal_payload *payload, const char *text)
{
    const size_t length = strlen(text);
    hal_payload_u32(payload, (uint32_t)length);
    hal_payload_bytes(payload, text, (uint32_t)length);
}

void hal_payload_free(hal_payload *payload)
{
    free(payload->data);
    *payload = (hal_payload){0};
}

hal_status hal_dump_fail(hal_status status, const char *words)
{
    static const char prefix[] = "HAL_DUMP";
    char message[512];
    snprintf(message, sizeof message, "%s%s",
             strncmp(words, prefix, sizeof prefix - 1) == 0 ? "" : "HAL_DUMP=batch: ", words);
    return hal_host_services()->fail(hal_host_services(), status, message);
}

/* An existing file is that of an earlier process of the same number; the next name is tried. */
hal_status hal_dump_file_create(const char *folder, hal_dump_file *file)
{
    static _Atomic uint32_t last;
    HAL_UNCANCELLED;
    hal_text name = {0};
    *file = (hal_dump_file){.handle = -1};
    do {
        hal_text_free(&name);
        name = (hal_text){0};
        hal_text_add(&name, "%s/halyard-%ld-%u.batch", folder, (long)getpid(),
                     atomic_fetch_add(&last, 1));
        if (name.failed) {
            hal_text_free(&name);
            return hal_dump_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for a record");
        }
        file->handle = hal_file_open(name.data, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    } while (file->handle < 0 && errno == EEXIST);
    file->path = name.data;
    if (file->handle < 0) {
        return file_fail(file);
    }
    hal_payload_bytes(&file->waiting, HAL_DUMP_MAGIC, strlen(HAL_DUMP_MAGIC));
    hal_payload_u32(&file->waiting, HAL_DUMP_VERSION);
    hal_payload_u32(&file->waiting, 0);
    return hal_dump_file_flush(file);
}

hal_status hal_dump_file_put(hal_dump_file *file, uint32_t kind, const hal_payload *payload,
                             const void *data, uint64_t more)
{
    hal_payload_u32(&file->waiting, kind);
    hal_payload_u32(&file->waiting, 0);
    hal_payload_u64(&file->waiting, payload->bytes + more);
    hal_payload_bytes(&file->waiting, payload->data, payload->bytes);
    hal_payload_bytes(&file->waiting, data, more);
    file->waiting.failed |= payload->failed;
    return file->waiting.bytes < WRITTEN_AT_ONCE ? HAL_OK : hal_dump_file_flush(file);
}

hal_status hal_dump_file_flush(hal_dump_file *file)
{
    HAL_UNCANCELLED;
    hal_payload *waiting = &file->waiting;
    if (!waiting->failed && !hal_file_write(file->handle, waiting->data, waiting->bytes)) {
        return file_fail(file);
    }
    waiting->bytes = 0;
    return waiting->failed ? hal_dump_fail(HAL_ERROR_OUT_OF_MEMORY, "no host memory for a record")
                           : HAL_OK;
}

void hal_dump_file_close(hal_dump_file *file)
{
    HAL_UNCANCELLED;
    if (file->handle >= 0) {
        close(file->handle);
    }
    hal_payload_free(&file->waiting);
    free(file->path);
    *file = (hal_dump_file){.handle = -1};
}
