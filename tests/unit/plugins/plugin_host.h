/* plugin_host.h: a host for a plugin under test, whose cache has one entry; the message of the
 * thread's last failure is in `message`, the last line of its log in `logged`, what failed after
 * submit in host_failures(); kernels as text; expected texts in files. Included by the tests of
 * plugins and lowerings. */
#ifndef TESTS_UNIT_PLUGINS_PLUGIN_HOST_H
#define TESTS_UNIT_PLUGINS_PLUGIN_HOST_H

#include "../../plugins/open.h"
#include "unit.h"
#include <dlfcn.h>
#include <hal/ir_build.h>
#include <hal/plugin.h>
#include <stdio.h>
#include <stdlib.h>

static _Thread_local char message[2048];
static _Thread_local char logged[512];

static inline void host_free(const hal_host *host, void *memory)
{
    (void)host;
    free(memory);
}

static inline void *host_allocate(const hal_host *host, uint64_t bytes, uint64_t alignment)
{
    void *memory = NULL;
    return posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

static inline void host_log(const hal_host *host, uint32_t level, const char *text)
{
    snprintf(logged, sizeof logged, "%s", text);
}

static inline hal_status host_fail(const hal_host *host, hal_status status, const char *text)
{
    snprintf(message, sizeof message, "%s", text);
    return status;
}

/* The compile cache: its last entry. */
typedef struct host_entry {
    void *data; /* null: empty */
    uint64_t bytes, key[2];
    char id[128];
    uint32_t loads, stores;
} host_entry;

static inline host_entry *host_cache(void)
{
    static host_entry entry;
    return &entry;
}

static inline hal_status host_load(const hal_host *host, const char *id, const uint64_t key[2],
                                   void **data, uint64_t *bytes)
{
    host_entry *entry = host_cache();
    if (!entry->data || strcmp(id, entry->id) != 0 ||
        memcmp(key, entry->key, sizeof entry->key) != 0) {
        return HAL_ERROR_NOT_FOUND;
    }
    entry->loads++;
    *bytes = entry->bytes;
    *data = memcpy(host_allocate(host, entry->bytes, 16), entry->data, entry->bytes);
    return HAL_OK;
}

static inline hal_status host_store(const hal_host *host, const char *id, const uint64_t key[2],
                                    const void *data, uint64_t bytes)
{
    host_entry *entry = host_cache();
    free(entry->data);
    entry->data = memcpy(host_allocate(host, bytes, 16), data, bytes);
    entry->bytes = bytes;
    entry->stores++;
    memcpy(entry->key, key, sizeof entry->key);
    snprintf(entry->id, sizeof entry->id, "%s", id);
    return HAL_OK;
}

static inline void host_report(const hal_host *host, const char *text)
{
    fprintf(stderr, "%s\n", text);
    abort();
}

static inline void host_reached(const hal_host *host, hal_plugin_queue *queue, uint64_t value)
{
}

/* Work that failed after submit: how often, and the last time. Read it where no plugin's thread can
 * add to it. */
typedef struct host_failure {
    const hal_plugin_queue *queue;
    uint32_t count;
    char message[512];
} host_failure;

static inline host_failure *host_failures(void)
{
    static host_failure failure;
    return &failure;
}

static inline void host_failed(const hal_host *host, hal_plugin_queue *queue, const char *text)
{
    host_failure *failure = host_failures();
    failure->queue = queue;
    failure->count++;
    snprintf(failure->message, sizeof failure->message, "%s", text);
}

static inline const hal_host *plugin_host(void)
{
    static const hal_host host = {.size = sizeof host,
                                  .abi = HAL_PLUGIN_ABI,
                                  .allocate = host_allocate,
                                  .release = host_free,
                                  .log = host_log,
                                  .fail = host_fail,
                                  .cache_load = host_load,
                                  .cache_store = host_store,
                                  .report = host_report,
                                  .queue_reached = host_reached,
                                  .queue_failed = host_failed};
    return &host;
}

/* The plugin of a file; null after printing why. */
static inline const hal_plugin_entries *plugin_load(const char *path)
{
    static hal_plugin_entries entries[4]; /* a test loads one plugin or two */
    static uint32_t count;
    hal_plugin_create_function create;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return NULL;
    }
    *(void **)&create = dlsym(library, HAL_PLUGIN_CREATE_SYMBOL);
    if (!plugin_create(&entries[count % 4], create, plugin_host())) {
        fprintf(stderr, "%s: %s\n", path, message);
        return NULL;
    }
    return &entries[count++ % 4];
}

static inline hal_ir_kernel *ir_parse(const char *text)
{
    hal_ir_kernel *kernel = NULL;
    assert_ok(hal_ir_parse(text, strlen(text), &kernel));
    return kernel;
}

/* Empty for a file that does not exist. */
static inline char *file_read(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 18);
    if (file) {
        text[fread(text, 1, (1 << 18) - 1, file)] = 0;
        fclose(file);
    }
    return text;
}

static inline void file_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* Compares a text with a file and reports the first line that differs. After an intended change,
 * TEXT_UPDATE=1 in the environment writes the file. */
static inline void text_check(const char *path, const char *text)
{
    if (getenv("TEXT_UPDATE")) {
        file_write(path, text);
    }
    char *expected = file_read(path);
    uint32_t line = 1;
    size_t start = 0, i = 0;
    for (; text[i] && text[i] == expected[i]; i++) {
        if (text[i] == '\n') {
            line++;
            start = i + 1;
        }
    }
    if (text[i] != expected[i]) {
        fail_msg("%s, line %u:\n  %.*s\ninstead of\n  %.*s", path, line,
                 (int)strcspn(text + start, "\n"), text + start,
                 (int)strcspn(expected + start, "\n"), expected + start);
    }
    free(expected);
}

#endif
