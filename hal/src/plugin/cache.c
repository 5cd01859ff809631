/* The compile cache, on disk or of the program's callbacks, for plugins through the host table and
 * for hal. Errors never fail a program: without a folder kernels are compiled each time. */
#include "cache.h"

#include "base/cancel.h"
#include "base/file.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/place.h"
#include "base/platform.h"
#include "base/status.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <hal/cache.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#define MAGIC "HALCACHE"
#define VERSION 1u
#define MAX_ENTRY_BYTES (UINT64_C(1) << 30)
#define NAME_BYTES 32u /* of an entry; a temporary file has a dot and a suffix after them */
#define STALE_SECONDS 3600

/* The header of an entry's file; the entry's bytes follow. */
typedef struct header {
    char magic[8];
    uint32_t version;
    uint32_t reserved;
    uint64_t key[2]; /* the plugin's */
    char identity[sizeof((hal_cache_scope *)NULL)->identity];
    uint64_t length;
    uint64_t checksum;     /* of the bytes */
    uint64_t own_checksum; /* of the fields above */
} header;

/* Both null: the folder. */
typedef struct cache_callbacks {
    hal_cache_load_callback load;
    hal_cache_store_callback store;
    void *user;
} cache_callbacks;

static _Thread_local const hal_cache_scope *current;
static _Thread_local uint64_t hits;

static pthread_mutex_t callbacks_lock = PTHREAD_MUTEX_INITIALIZER;
HAL_FORK_GUARD(callbacks_lock, HAL_FORK_LEAF)
static cache_callbacks the_callbacks;

static atomic_bool has_warned;
static atomic_flag has_removed_stale = ATOMIC_FLAG_INIT;

static bool folders_create(char *path)
{
    struct stat what;
    if (stat(path, &what) == 0) {
        return S_ISDIR(what.st_mode);
    }
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        const bool made = mkdir(path, 0700) == 0 || errno == EEXIST;
        *slash = '/';
        if (!made) {
            return false;
        }
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

static void warn_once(const char *path)
{
    if (!atomic_exchange(&has_warned, true)) {
        hal_log(HAL_LOG_WARN, "cache: cannot write %s: %s; kernels are compiled anew each time",
                path, strerror(errno));
    }
}

/* HAL_CACHE_DIR, else XDG_CACHE_HOME/halyard, else ~/.cache/halyard. */
static bool folder_name(hal_text *folder)
{
    const char *named = getenv("HAL_CACHE_DIR");
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (hal_process_is_secure() || (named && strcmp(named, "off") == 0)) {
        return false;
    }
    if (named && *named) {
        hal_place_add(folder, named);
    } else if (cache && *cache == '/') {
        hal_text_add(folder, "%s/halyard", cache);
    } else if (home && *home == '/') {
        hal_text_add(folder, "%s/.cache/halyard", home);
    } else {
        return false;
    }
    return !folder->failed;
}

/* The folder, which is created if missing. */
static bool cache_folder(hal_text *folder)
{
    if (!folder_name(folder)) {
        return false;
    }
    if (!folders_create(folder->data)) {
        warn_once(folder->data);
        return false;
    }
    return true;
}

static void header_init(header *made, const hal_cache_scope *scope, const uint64_t key[2])
{
    memset(made, 0, sizeof *made);
    memcpy(made->magic, MAGIC, sizeof made->magic);
    made->version = VERSION;
    made->key[0] = key[0];
    made->key[1] = key[1];
    memcpy(made->identity, scope->identity, sizeof made->identity);
}

static void header_seal(header *head, const void *data, uint64_t bytes)
{
    head->length = bytes;
    head->checksum = XXH3_64bits(data, bytes);
    head->own_checksum = XXH3_64bits(head, offsetof(header, own_checksum));
}

/* Whether a header is that of the scope and key, for an entry of `bytes` bytes with it. */
static bool header_is_of(const header *head, const hal_cache_scope *scope, const uint64_t key[2],
                         uint64_t bytes)
{
    header expected;
    header_init(&expected, scope, key);
    return memcmp(head, &expected, offsetof(header, length)) == 0 &&
           head->own_checksum == XXH3_64bits(head, offsetof(header, own_checksum)) &&
           head->length <= MAX_ENTRY_BYTES && bytes == sizeof *head + head->length;
}

/* A hash of all that an entry depends on. */
static XXH128_hash_t entry_name(const hal_cache_scope *scope, const uint64_t key[2])
{
    header made;
    header_init(&made, scope, key);
    return XXH3_128bits(&made, offsetof(header, length));
}

/* Adds the name of the entry's file to its folder. */
static bool entry_path_add(const hal_cache_scope *scope, const uint64_t key[2], hal_text *path)
{
    const XXH128_hash_t name = entry_name(scope, key);
    hal_text_add(path, "/%016llx%016llx", (unsigned long long)name.high64,
                 (unsigned long long)name.low64);
    return !path->failed;
}

/* The path of the entry's file. `get_folder`: one of the above. */
static bool entry_path(bool (*get_folder)(hal_text *folder), const hal_cache_scope *scope,
                       const uint64_t key[2], hal_text *path)
{
    return get_folder(path) && entry_path_add(scope, key, path);
}

/* Errors: NOT_FOUND for what is not a file of this user or of root, IO for an invalid entry. */
static hal_status entry_read(int file, const hal_cache_scope *scope, const uint64_t key[2],
                             void **data, uint64_t *bytes)
{
    header head;
    struct stat what;
    if (fstat(file, &what) != 0 || !S_ISREG(what.st_mode) ||
        (what.st_uid != geteuid() && what.st_uid != 0)) {
        return HAL_ERROR_NOT_FOUND;
    }
    if (!hal_file_read(file, &head, sizeof head) ||
        !header_is_of(&head, scope, key, (uint64_t)what.st_size)) {
        return HAL_ERROR_IO;
    }
    void *read = malloc(head.length ? head.length : 1);
    if (!read) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    if (!hal_file_read(file, read, head.length) ||
        XXH3_64bits(read, head.length) != head.checksum) {
        free(read);
        return HAL_ERROR_IO;
    }
    *data = read;
    *bytes = head.length;
    return HAL_OK;
}

/* Reads the entry of a file. Errors: as entry_read. */
static hal_status file_load(const char *path, const hal_cache_scope *scope, const uint64_t key[2],
                            void **data, uint64_t *bytes)
{
    /* O_NONBLOCK: the open of a pipe without a writer would wait for one. */
    const int file = hal_file_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (file < 0) {
        return HAL_ERROR_NOT_FOUND;
    }
    const hal_status status = entry_read(file, scope, key, data, bytes);
    close(file);
    return status;
}

static bool is_temporary(const char *name)
{
    return strspn(name, "0123456789abcdef") == NAME_BYTES && name[NAME_BYTES] == '.';
}

/* Removes temporary files of processes that ended while they wrote, from the folder of `path`.
 * Once in a process: its length is the number of entries. */
static void stale_remove(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder =
        atomic_flag_test_and_set(&has_removed_stale) ? NULL : strndup(path, (size_t)(slash - path));
    DIR *entries = folder ? opendir(folder) : NULL;
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        struct stat what;
        if (is_temporary(entry->d_name) &&
            fstatat(dirfd(entries), entry->d_name, &what, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(what.st_mode) && what.st_uid == geteuid() &&
            time(NULL) - what.st_mtime > STALE_SECONDS) {
            unlinkat(dirfd(entries), entry->d_name, 0);
        }
    }
    if (entries) {
        closedir(entries);
    }
    free(folder);
}

static cache_callbacks callbacks_get(void)
{
    pthread_mutex_lock(&callbacks_lock);
    const cache_callbacks now = the_callbacks;
    pthread_mutex_unlock(&callbacks_lock);
    return now;
}

static void canonical_name(const hal_cache_scope *scope, const uint64_t key[2],
                           uint8_t name[HAL_CACHE_KEY_BYTES])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, entry_name(scope, key));
    memcpy(name, canonical.digest, HAL_CACHE_KEY_BYTES);
}

/* Errors: NOT_FOUND for no entry and for one that is not valid, OUT_OF_MEMORY. */
static hal_status callback_load(const cache_callbacks *callbacks, const hal_cache_scope *scope,
                                const uint64_t key[2], void **data, uint64_t *bytes)
{
    uint8_t name[HAL_CACHE_KEY_BYTES];
    canonical_name(scope, key, name);
    const uint64_t size = callbacks->load(callbacks->user, name, NULL, 0);
    if (size < sizeof(header) || size > sizeof(header) + MAX_ENTRY_BYTES) {
        return HAL_ERROR_NOT_FOUND;
    }
    uint8_t *read = malloc(size);
    if (!read) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    header head = {0};
    const bool is_there = callbacks->load(callbacks->user, name, read, size) == size;
    memcpy(&head, read, is_there ? sizeof head : 0);
    if (!is_there || !header_is_of(&head, scope, key, size) ||
        XXH3_64bits(read + sizeof head, head.length) != head.checksum) {
        free(read);
        return HAL_ERROR_NOT_FOUND;
    }
    memmove(read, read + sizeof head, head.length);
    *data = read;
    *bytes = head.length;
    return HAL_OK;
}

static hal_status callback_store(const cache_callbacks *callbacks, const hal_cache_scope *scope,
                                 const uint64_t key[2], const void *data, uint64_t bytes)
{
    uint8_t name[HAL_CACHE_KEY_BYTES];
    header head;
    uint8_t *entry = malloc(sizeof head + bytes);
    if (!entry) {
        return HAL_ERROR_NOT_FOUND;
    }
    header_init(&head, scope, key);
    header_seal(&head, data, bytes);
    memcpy(entry, &head, sizeof head);
    memcpy(entry + sizeof head, data, bytes);
    canonical_name(scope, key, name);
    callbacks->store(callbacks->user, name, entry, sizeof head + bytes);
    free(entry);
    return HAL_OK;
}

/* The thread's scope if it is that of the device, else null. */
static const hal_cache_scope *scope_find(const char *device_id)
{
    if (current && strcmp(current->device_id, device_id) != 0) {
        hal_log(HAL_LOG_WARN,
                "compile cache: device_id: expected \"%s\", the id of the device's info, got "
                "\"%s\"; nothing is found or stored",
                current->device_id, device_id);
        return NULL;
    }
    return current;
}

const hal_cache_scope *hal_cache_enter(const hal_cache_scope *scope)
{
    const hal_cache_scope *outer = current;
    current = scope;
    return outer;
}

hal_status hal_cache_set_callbacks(hal_cache_load_callback load, hal_cache_store_callback store,
                                   void *user)
{
    if (!load != !store) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_cache_set_callbacks: %s: expected a function, or null for both, got "
                        "null",
                        load ? "store" : "load");
    }
    pthread_mutex_lock(&callbacks_lock);
    the_callbacks = (cache_callbacks){load, store, user};
    pthread_mutex_unlock(&callbacks_lock);
    return HAL_OK;
}

bool hal_cache_is_on(void)
{
    hal_text folder = {0};
    const bool is_on = callbacks_get().load || cache_folder(&folder);
    hal_text_free(&folder);
    return is_on;
}

static hal_status cache_load(const char *device_id, const uint64_t key[2], void **data,
                             uint64_t *bytes)
{
    HAL_UNCANCELLED;
    if (!device_id || !key || !data || !bytes) {
        return HAL_ERROR_INVALID_ARGUMENT;
    }
    *data = NULL;
    *bytes = 0;
    const hal_cache_scope *scope = scope_find(device_id);
    const cache_callbacks callbacks = callbacks_get();
    if (scope && callbacks.load) {
        return callback_load(&callbacks, scope, key, data, bytes);
    }
    hal_text path = {0};
    if (!scope || !entry_path(folder_name, scope, key, &path)) {
        hal_text_free(&path);
        return HAL_ERROR_NOT_FOUND;
    }
    hal_status status = file_load(path.data, scope, key, data, bytes);
    if (status == HAL_ERROR_IO) {
        /* Truncated, or of another version: it is compiled again. */
        hal_log(HAL_LOG_INFO, "cache: dropping the unusable entry %s", path.data);
        unlink(path.data);
        status = HAL_ERROR_NOT_FOUND;
    }
    hal_text_free(&path);
    return status;
}

hal_status hal_cache_load(const char *device_id, const uint64_t key[2], void **data,
                          uint64_t *bytes)
{
    const hal_status status = cache_load(device_id, key, data, bytes);
    hits += status == HAL_OK;
    return status;
}

uint64_t hal_cache_count_hits(void)
{
    return hits;
}

hal_status hal_cache_load_from(const char *folder, const uint64_t key[2], void **data,
                               uint64_t *bytes)
{
    HAL_UNCANCELLED;
    hal_text path = {0};
    hal_status status = HAL_ERROR_NOT_FOUND;
    *data = NULL;
    *bytes = 0;
    hal_text_add(&path, "%s", folder);
    if (current && entry_path_add(current, key, &path)) {
        status = file_load(path.data, current, key, data, bytes);
    }
    hal_text_free(&path);
    return status == HAL_ERROR_IO ? HAL_ERROR_NOT_FOUND : status;
}

hal_status hal_cache_store(const char *device_id, const uint64_t key[2], const void *data,
                           uint64_t bytes)
{
    HAL_UNCANCELLED;
    if (!device_id || !key || (!data && bytes > 0) || bytes > MAX_ENTRY_BYTES) {
        return HAL_ERROR_INVALID_ARGUMENT;
    }
    const hal_cache_scope *scope = scope_find(device_id);
    const cache_callbacks callbacks = callbacks_get();
    if (scope && callbacks.store) {
        return callback_store(&callbacks, scope, key, data, bytes);
    }
    hal_text path = {0};
    hal_text temporary = {0};
    if (!scope || !entry_path(cache_folder, scope, key, &path)) {
        hal_text_free(&path);
        return HAL_ERROR_NOT_FOUND;
    }
    stale_remove(path.data);
    hal_text_add(&temporary, "%s.XXXXXX", path.data);
    header head;
    header_init(&head, scope, key);
    header_seal(&head, data, bytes);
    hal_status status = HAL_ERROR_IO;
    const int file = temporary.failed ? -1 : hal_file_create_unique(temporary.data);
    if (file >= 0) {
        const bool is_written =
            hal_file_write(file, &head, sizeof head) && hal_file_write(file, data, bytes);
        if (close(file) == 0 && is_written && rename(temporary.data, path.data) == 0) {
            status = HAL_OK;
        } else {
            unlink(temporary.data);
        }
    }
    if (status != HAL_OK) {
        warn_once(path.data);
    }
    hal_text_free(&path);
    hal_text_free(&temporary);
    return status;
}
