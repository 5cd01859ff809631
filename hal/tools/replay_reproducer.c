/* Writes a recording of one command, see replay_reproducer.h. */
#include "replay_reproducer.h"

#include <hal/dump.h>
#include <hal/hal.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_u16(FILE *to, uint16_t value)
{
    const uint8_t bytes[2] = {(uint8_t)value, (uint8_t)(value >> 8)};
    fwrite(bytes, 1, sizeof bytes, to);
}

static void put_u32(FILE *to, uint32_t value)
{
    put_u16(to, (uint16_t)value);
    put_u16(to, (uint16_t)(value >> 16));
}

static void put_u64(FILE *to, uint64_t value)
{
    put_u32(to, (uint32_t)value);
    put_u32(to, (uint32_t)(value >> 32));
}

static void put_string(FILE *to, const char *text, uint32_t bytes)
{
    put_u32(to, bytes);
    fwrite(text, 1, bytes, to);
}

static void put_head(FILE *to, uint32_t kind, uint64_t bytes)
{
    put_u32(to, kind);
    put_u32(to, 0);
    put_u64(to, bytes);
}

/* Contents of a binding, whose memory has its number from 1. */
static void put_data(FILE *to, uint32_t kind, uint32_t binding, const uint8_t *data, uint64_t bytes)
{
    put_head(to, kind, 16 + bytes);
    put_u64(to, binding + 1);
    put_u64(to, 0);
    fwrite(data, 1, bytes, to);
}

static void put_batch(FILE *to, const replay_work *work)
{
    put_head(to, HAL_DUMP_BATCH, 12 + 36 + UINT64_C(32) * work->binding_count + work->scalar_bytes);
    put_u64(to, 1);
    put_u32(to, 1);
    put_u16(to, (uint16_t)work->kind);
    put_u16(to, 0);
    put_u32(to, work->binding_count);
    put_u32(to, work->scalar_bytes);
    for (uint32_t i = 0; i < 3; i++) {
        put_u32(to, work->grid[i]);
    }
    put_u32(to, 0);
    put_u64(to, work->kind == HAL_COMMAND_DISPATCH ? 1 : 0);
    for (uint32_t i = 0; i < work->binding_count; i++) {
        put_u64(to, work->bytes[i] ? i + 1 : 0);
        put_u64(to, 0);
        put_u64(to, work->bytes[i]);
        put_u32(to, work->access[i]);
        put_u32(to, 0);
    }
    fwrite(work->scalars, 1, work->scalar_bytes, to);
}

static void put_recording(FILE *to, const replay_work *work, uint8_t *const *expected)
{
    static const char name[] = "bisected";
    const uint32_t empty = 5 * 4 + 3 * 4; /* five strings and three numbers */
    fwrite(HAL_DUMP_MAGIC, 1, 8, to);
    put_u32(to, HAL_DUMP_VERSION);
    put_u32(to, 0);
    put_head(to, HAL_DUMP_DEVICE, empty);
    for (uint32_t i = 0; i < empty / 4; i++) {
        put_u32(to, 0);
    }
    if (work->kind == HAL_COMMAND_DISPATCH) {
        put_head(to, HAL_DUMP_KERNEL, 12 + 4 + sizeof name - 1 + 4 + (uint64_t)work->ir_bytes);
        put_u64(to, 1);
        put_u32(to, HAL_DUMP_KERNEL_IR);
        put_string(to, name, sizeof name - 1);
        put_string(to, work->ir, work->ir_bytes);
    }
    for (uint32_t i = 0; i < work->binding_count; i++) {
        if (work->bytes[i] > 0) {
            put_head(to, HAL_DUMP_MEMORY, 16);
            put_u64(to, i + 1);
            put_u64(to, work->bytes[i]);
            put_data(to, HAL_DUMP_DATA, i, work->data[i], work->bytes[i]);
        }
    }
    put_batch(to, work);
    for (uint32_t i = 0; i < work->binding_count; i++) {
        if (work->bytes[i] > 0 && (work->access[i] & HAL_ACCESS_WRITE)) {
            put_data(to, HAL_DUMP_RESULT, i, expected[i], work->bytes[i]);
        }
    }
    put_head(to, HAL_DUMP_OUTCOME, 8);
    put_u32(to, 0);
    put_u32(to, 0);
}

/* The IR, and 16 bytes around the first that differ. */
static void put_text(FILE *to, const replay_work *work, uint8_t *const *expected,
                     uint8_t *const *got)
{
    fprintf(to, "%.*s; grid %u x %u x %u\n", (int)work->ir_bytes, work->ir, work->grid[0],
            work->grid[1], work->grid[2]);
    for (uint32_t i = 0; i < work->binding_count; i++) {
        uint64_t at = 0;
        while (at < work->bytes[i] && expected[i][at] == got[i][at]) {
            at++;
        }
        fprintf(to, "; binding %u: %" PRIu64 " bytes", i, work->bytes[i]);
        if (!(work->access[i] & HAL_ACCESS_WRITE) || at == work->bytes[i]) {
            fprintf(to, "\n");
            continue;
        }
        at -= at % 16;
        const uint64_t end = at + 16 < work->bytes[i] ? at + 16 : work->bytes[i];
        fprintf(to, ", from byte %" PRIu64 " expected", at);
        for (uint64_t k = at; k < end; k++) {
            fprintf(to, " %02x", expected[i][k]);
        }
        fprintf(to, ", got");
        for (uint64_t k = at; k < end; k++) {
            fprintf(to, " %02x", got[i][k]);
        }
        fprintf(to, "\n");
    }
}

static hal_status file_close(FILE *file, const char *path)
{
    const bool well = file && !ferror(file);
    const bool closed = file && fclose(file) == 0;
    return well && closed
               ? HAL_OK
               : hal_status_set(HAL_ERROR_IO, "%s cannot be written: %s", path, strerror(errno));
}

hal_status replay_reproducer_write(const char *path, const replay_work *work,
                                   uint8_t *const *expected, uint8_t *const *got)
{
    char text[4096];
    FILE *file = fopen(path, "wb");
    if (file) {
        put_recording(file, work, expected);
    }
    HAL_TRY(file_close(file, path));
    snprintf(text, sizeof text, "%s.txt", path);
    file = fopen(text, "w");
    if (file) {
        put_text(file, work, expected, got);
    }
    HAL_TRY(file_close(file, text));
    printf("written: %s, which hal-replay runs, and %s\n", path, text);
    return HAL_OK;
}
