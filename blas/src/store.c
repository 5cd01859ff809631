/* Files of measured times, see store.h. */
#include "store.h"

#include "host.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* First line of a file; another number means that other things were measured. */
#define FORMAT "halyard blas times 8"
#define NUMBERS (sizeof(blas_measurements) / sizeof(uint64_t))
#define MAX_TEXT 1024

/* As hal's compile cache chooses its folder, docs/caches.md. */
static bool folder_name(char *folder, size_t size)
{
    const char *named = secure_getenv("HAL_CACHE_DIR");
    const char *cache = secure_getenv("XDG_CACHE_HOME");
    const char *home = secure_getenv("HOME");
    int length = 0;
    if (named && *named) {
        length = strcmp(named, "off") == 0 ? 0 : snprintf(folder, size, "%s", named);
    } else if (cache && *cache == '/') {
        length = snprintf(folder, size, "%s/halyard", cache);
    } else if (home && *home == '/') {
        length = snprintf(folder, size, "%s/.cache/halyard", home);
    }
    return length > 0 && (size_t)length < size;
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

/* All that the times depend on. */
static void key_write(hal_device *device, char *key, size_t size)
{
    const hal_device_info *info = hal_device_get_info(device);
    cpu_set_t set;
    const int processors = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
    snprintf(
        key, size, "%s|%s|%s|%s|%s|%d|%s|%s|%s|%s", hal_device_get_plugin_name(device), info->name,
        info->id, info->driver, blas_host_path(), processors,
        or_empty(secure_getenv("OPENBLAS_NUM_THREADS")), or_empty(secure_getenv("MKL_NUM_THREADS")),
        or_empty(secure_getenv("BLIS_NUM_THREADS")), or_empty(secure_getenv("OMP_NUM_THREADS")));
}

/* FNV-1a (G. Fowler, L. Noll, K. Vo). */
static uint64_t hash_of(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++) {
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    }
    return hash;
}

static bool path_write(const char *key, char *path, size_t size)
{
    char folder[MAX_TEXT];
    if (!folder_name(folder, sizeof folder)) {
        return false;
    }
    const int length = snprintf(path, size, "%s/blas-%016" PRIx64 ".txt", folder, hash_of(key));
    return length > 0 && (size_t)length < size;
}

bool blas_store_read(hal_device *device, blas_measurements *measurements)
{
    char key[MAX_TEXT], path[MAX_TEXT + 64], line[MAX_TEXT] = "", format[64] = "";
    key_write(device, key, sizeof key);
    FILE *file = path_write(key, path, sizeof path) ? fopen(path, "re") : NULL;
    if (!file) {
        return false;
    }
    bool is_valid = fgets(format, sizeof format, file) && strcmp(format, FORMAT "\n") == 0 &&
                    fgets(line, sizeof line, file) && strncmp(line, key, strlen(key)) == 0 &&
                    line[strlen(key)] == '\n';
    uint64_t *numbers = (uint64_t *)measurements;
    for (size_t i = 0; is_valid && i < NUMBERS; i++) {
        is_valid = fscanf(file, "%" SCNu64, &numbers[i]) == 1;
    }
    fclose(file);
    return is_valid;
}

void blas_store_write(hal_device *device, const blas_measurements *measurements)
{
    char key[MAX_TEXT], path[MAX_TEXT + 64], made[MAX_TEXT + 96], folder[MAX_TEXT];
    key_write(device, key, sizeof key);
    if (!path_write(key, path, sizeof path) || !folder_name(folder, sizeof folder)) {
        return;
    }
    mkdir(folder, 0700); /* hal has made the folders above */
    snprintf(made, sizeof made, "%s.%ld", path, (long)getpid());
    FILE *file = fopen(made, "we");
    if (!file) {
        return;
    }
    bool is_written = fprintf(file, FORMAT "\n%s\n", key) > 0;
    const uint64_t *numbers = (const uint64_t *)measurements;
    for (size_t i = 0; i < NUMBERS; i++) {
        is_written = fprintf(file, "%" PRIu64 "\n", numbers[i]) > 0 && is_written;
    }
    is_written = fclose(file) == 0 && is_written;
    if (!is_written || rename(made, path) != 0) {
        unlink(made);
    }
}
