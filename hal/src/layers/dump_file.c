/* Writing files of HAL_DUMP=batch. Called by layers/dump.c and dump_kernel.c. */
#include "dump_file.h"

#include "plugin/host.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <hal/dump.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WRITTEN_AT_ONCE (1u << 20)

static int make_room(hal_payload *payload, uint64_t more)
{
    if (payload->capacity - payload->bytes >= more) {
        return !payload->failed;
    }
    const uint64_t wanted = 2 * payload->capacity + more + 64;
    uint8_t *larger = payload->failed ? NULL : realloc(payload->data, wanted);
    if (!larger) {
        payload->failed = 1;
        return 0;
    }
    payload->data = larger;
    payload->capacity = wanted;
    return 1;
}

static hal_status out_of_memory(void)
{
    return hal_host_services()->fail(HAL_ERROR_OUT_OF_MEMORY,
                                     "HAL_DUMP=batch: no host memory for a record");
}

static hal_status fail(const hal_dump_file *file)
{
    hal_text words = {0};
    hal_text_add(&words, "HAL_DUMP=batch: %s cannot be written: %s; HAL_DUMP_DIR names the folder",
                 file->path, strerror(errno));
    const hal_status status = hal_host_services()->fail(HAL_ERROR_IO, hal_text_get(&words));
    hal_text_free(&words);
    return status;
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
    if (bytes > 0 && make_room(payload, bytes)) {
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

/* A file that is there belongs to an earlier process of the same number: the next name is free. */
hal_status hal_dump_file_create(const char *folder, hal_dump_file *file)
{
    static _Atomic uint32_t last;
    hal_text name = {0};
    *file = (hal_dump_file){.handle = -1};
    do {
        hal_text_free(&name);
        name = (hal_text){0};
        hal_text_add(&name, "%s/halyard-%ld-%u.batch", folder, (long)getpid(),
                     atomic_fetch_add(&last, 1));
        if (name.failed) {
            hal_text_free(&name);
            return out_of_memory();
        }
        file->handle = open(name.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    } while (file->handle < 0 && errno == EEXIST);
    file->path = name.data;
    if (file->handle < 0) {
        return fail(file);
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
    hal_payload *waiting = &file->waiting;
    uint64_t done = 0;
    while (!waiting->failed && done < waiting->bytes) {
        const ssize_t written = write(file->handle, waiting->data + done, waiting->bytes - done);
        if (written < 0 && errno != EINTR) {
            return fail(file);
        }
        done += written > 0 ? (uint64_t)written : 0;
    }
    waiting->bytes = 0;
    return waiting->failed ? out_of_memory() : HAL_OK;
}

void hal_dump_file_close(hal_dump_file *file)
{
    if (file->handle >= 0) {
        close(file->handle);
    }
    hal_payload_free(&file->waiting);
    free(file->path);
    *file = (hal_dump_file){.handle = -1};
}
