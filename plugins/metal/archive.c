/* Pipelines, and the cache of their binaries: a binary archive for each kernel, which Metal reads
 * and writes as a file; hal's cache keeps its bytes. The text is compiled to the library that names
 * the kernel in either case; an archive spares the translation to the device's code. */
#include "archive.h"

#include "quirks.h"
#include "status.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The path of a new empty file, which the caller removes. */
static FILE *temporary_file(char *path, size_t size)
{
    char folder[512];
    metal_shim_temporary_folder(folder, sizeof folder);
    if (snprintf(path, size, "%shalyard-XXXXXX", folder) >= (int)size) {
        return NULL;
    }
    const int file = mkstemp(path);
    return file >= 0 ? fdopen(file, "r+b") : NULL;
}

/* Null where hal has no binary, or the device refuses it. */
static metal_archive *archive_load(const metal_card *card, const uint64_t key[2])
{
    const hal_host *host = kit_host();
    char path[576];
    metal_archive *archive = NULL;
    metal_error error = {0};
    void *data = NULL;
    uint64_t bytes = 0;
    if (host->cache_load(host, card->info.id, key, &data, &bytes) != HAL_OK) {
        return NULL;
    }
    FILE *file = temporary_file(path, sizeof path);
    if (file) {
        const bool written = fwrite(data, 1, bytes, file) == bytes;
        if (fclose(file) == 0 && written) {
            archive = metal_shim_archive(card->gpu, path, &error);
        }
        unlink(path);
    }
    host->release(host, data);
    return archive;
}

static void archive_store_file(const metal_card *card, const uint64_t key[2], FILE *file)
{
    fseek(file, 0, SEEK_END);
    const long bytes = ftell(file);
    rewind(file);
    void *data = bytes > 0 ? malloc((size_t)bytes) : NULL;
    if (data && fread(data, 1, (size_t)bytes, file) == (size_t)bytes) {
        (void)kit_host()->cache_store(kit_host(), card->info.id, key, data, (uint64_t)bytes);
    }
    free(data);
}

/* Whatever fails here costs later processes time, and nothing else. */
static void archive_store(const metal_card *card, const uint64_t key[2], void *library,
                          const metal_pipeline_request *request)
{
    char path[576];
    metal_error error = {0};
    FILE *file = temporary_file(path, sizeof path);
    metal_archive *archive = file ? metal_shim_archive(card->gpu, NULL, &error) : NULL;
    if (archive && metal_shim_archive_add(archive, library, request, &error) &&
        metal_shim_archive_save(archive, path, &error)) {
        /* Metal may have replaced the file. */
        FILE *written = fopen(path, "rb");
        if (written) {
            archive_store_file(card, key, written);
            fclose(written);
        }
    } else {
        char line[2400];
        snprintf(line, sizeof line, "kernel %s has no binary for the cache: %s", request->entry,
                 error.message);
        kit_log(HAL_LOG_DEBUG, line);
    }
    metal_shim_release(archive);
    if (file) {
        fclose(file);
        unlink(path);
    }
}

static void key_of(const metal_pipeline_request *request, uint64_t key[2])
{
    const uint64_t facts[2] = {request->group_items, request->full_subgroups};
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    XXH3_128bits_update(&state, facts, sizeof facts);
    XXH3_128bits_update(&state, request->entry, strlen(request->entry));
    XXH3_128bits_update(&state, request->source, strlen(request->source));
    const XXH128_hash_t hash = XXH3_128bits_digest(&state);
    key[0] = hash.low64;
    key[1] = hash.high64;
}

hal_status metal_pipeline_create(const metal_card *card, const char *name,
                                 const metal_pipeline_request *request, metal_pipeline_facts *facts,
                                 metal_pipeline **pipeline)
{
    const bool cached = !(card->quirks & METAL_QUIRK_NO_ARCHIVES);
    metal_pipeline_request wanted = *request;
    metal_error error = {0};
    uint64_t key[2];
    key_of(request, key);
    *pipeline = NULL;
    void *library = metal_shim_library(card->gpu, request->source, &error);
    if (!library) {
        return kit_fail(HAL_ERROR_COMPILE, "kernel %s: the compiler of %s rejected it: %.2000s",
                        name, card->info.name, error.message);
    }
    wanted.archive = cached ? archive_load(card, key) : NULL;
    if (wanted.archive) {
        wanted.only_archive = true;
        *pipeline = metal_shim_pipeline(card->gpu, library, &wanted, facts, &error);
        metal_shim_release(wanted.archive);
    }
    if (!*pipeline) {
        *pipeline = metal_shim_pipeline(card->gpu, library, request, facts, &error);
        if (*pipeline && cached) {
            archive_store(card, key, library, request);
        }
    }
    metal_shim_release(library);
    return *pipeline != NULL
               ? HAL_OK
               : kit_fail(HAL_ERROR_COMPILE, "kernel %s: %s made no pipeline of it: %.2000s", name,
                          card->info.name, error.message);
}
