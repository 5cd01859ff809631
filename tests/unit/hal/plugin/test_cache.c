/* The compile cache: entries, torn and foreign ones, folders that cannot be written, races. */
#include "mock_fixture.h"
#include "scratch.h"

#include "plugin/cache.h"
#include "core/device.h"

#include <dirent.h>
#include <fcntl.h>
#include <hal/cache.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[SCRATCH_BYTES];
static hal_device *device;
static const uint64_t key[2] = {0x1234, 0x5678};

static hal_status store(const uint64_t with[2], const char *text)
{
    return hal_cache_store("mock-id-0", with, text, strlen(text));
}

static void expect(const uint64_t with[2], const char *text)
{
    void *data = NULL;
    uint64_t bytes = 0;
    const hal_status status = hal_cache_load("mock-id-0", with, &data, &bytes);
    if (!text) {
        assert_int_equal(status, HAL_ERROR_NOT_FOUND);
        assert_null(data);
        return;
    }
    assert_ok(status);
    assert_int_equal(bytes, strlen(text));
    assert_memory_equal(data, text, bytes);
    free(data);
}

/* The path of the folder's only file. */
static void only_file(char path[512])
{
    int count = 0;
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (entry->d_name[0] != '.') {
            snprintf(path, 512, "%s/%s", folder, entry->d_name);
            count++;
        }
    }
    closedir(entries);
    assert_int_equal(count, 1);
}

static void empty_folder(void)
{
    char command[512];
    snprintf(command, sizeof command, "chmod u+w '%s' && rm -rf '%s'/*", folder, folder);
    assert_int_equal(system(command), 0);
}

static int reset(void **state)
{
    setenv("HAL_CACHE_DIR", folder, 1);
    hal_cache_enter(&device->cache);
    empty_folder();
    return 0;
}

static void file_make(const char *name, time_t age)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int file = open(path, O_WRONLY | O_CREAT, 0600);
    const struct timespec times[2] = {{.tv_sec = time(NULL) - age}, {.tv_sec = time(NULL) - age}};
    assert_true(file >= 0 && futimens(file, times) == 0);
    close(file);
}

static bool file_is_there(const char *name)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

/* The first test: a process removes them once. */
TEST_WITH(temporary_files_of_ended_processes_are_removed, reset, NULL)
{
    file_make("0123456789abcdef0123456789abcdef.1.0", 7200);
    file_make("0123456789abcdef0123456789abcdef.AbCdEf", 60);
    file_make("0123456789abcdef0123456789abcdef", 7200);
    file_make("notes.1.0", 7200);
    assert_ok(store(key, "machine code"));
    assert_false(file_is_there("0123456789abcdef0123456789abcdef.1.0"));
    assert_true(file_is_there("0123456789abcdef0123456789abcdef.AbCdEf"));
    assert_true(file_is_there("0123456789abcdef0123456789abcdef"));
    assert_true(file_is_there("notes.1.0"));
}

/* In containers many processes have one number. */
TEST_WITH(temporary_files_block_no_entry, reset, NULL)
{
    char path[512], name[600];
    assert_ok(store(key, "old"));
    only_file(path);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "%s.%ld.%d", strrchr(path, '/') + 1, (long)getpid(), i);
        file_make(name, 0);
    }
    assert_ok(store(key, "new"));
    expect(key, "new");
}

TEST_WITH(pipes_and_devices_are_no_entries, reset, NULL)
{
    char path[512];
    assert_ok(store(key, "machine code"));
    only_file(path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect(key, NULL); /* does not wait for a writer */
    assert_int_equal(access(path, F_OK), 0);
    assert_ok(store(key, "machine code"));
    expect(key, "machine code");
}

/* Two users of a folder do not remove each other's entries, and use those that root prepared. */
TEST_WITH(entries_of_other_users, reset, NULL)
{
    char path[512];
    if (geteuid() != 0) {
        skip();
    }
    assert_ok(store(key, "machine code"));
    only_file(path);
    assert_int_equal(chown(path, 12345, 12345), 0);
    expect(key, NULL);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(chown(path, 0, 0), 0);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(chmod(folder, 0755), 0);
    const pid_t child = fork();
    if (child == 0) {
        void *data = NULL;
        uint64_t bytes = 0;
        _exit(seteuid(12345) != 0 || hal_cache_load("mock-id-0", key, &data, &bytes) != HAL_OK);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

TEST_WITH(a_limit_of_file_sizes_ends_no_process, reset, NULL)
{
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit limit = {1000, 1000};
        static char data[5000];
        _exit(setrlimit(RLIMIT_FSIZE, &limit) != 0 ||
              hal_cache_store("mock-id-0", key, data, sizeof data) != HAL_ERROR_IO);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    expect(key, NULL);
}

/* A relative folder is that of the process's start. */
TEST_WITH(relative_folders_stay, reset, NULL)
{
    char before[512], relative[1024] = "";
    assert_non_null(getcwd(before, sizeof before));
    for (const char *at = before; *at; at++) {
        strcat(relative, *at == '/' && at[1] ? "../" : "");
    }
    strcat(relative, folder + 1);
    setenv("HAL_CACHE_DIR", relative, 1);
    assert_int_equal(chdir("/dev"), 0);
    const hal_status status = store(key, "machine code");
    assert_int_equal(chdir(before), 0);
    assert_ok(status);
    setenv("HAL_CACHE_DIR", folder, 1);
    expect(key, "machine code");
}

TEST_WITH(entries_come_back, reset, NULL)
{
    const uint64_t other[2] = {0x1234, 0x5679};
    expect(key, NULL);
    assert_ok(store(key, "machine code"));
    expect(key, "machine code");
    expect(other, NULL);
    assert_ok(store(other, ""));
    expect(other, "");
    assert_ok(store(key, "better machine code"));
    expect(key, "better machine code");
}

TEST_WITH(only_the_device_at_work_has_entries, reset, NULL)
{
    void *data;
    uint64_t bytes;
    assert_ok(store(key, "x"));
    assert_int_equal(hal_cache_load("mock-id-1", key, &data, &bytes), HAL_ERROR_NOT_FOUND);
    hal_cache_enter(NULL);
    expect(key, NULL);
    assert_int_equal(store(key, "x"), HAL_ERROR_NOT_FOUND);
    hal_cache_enter(&device->cache);
    assert_int_equal(hal_cache_load(NULL, key, &data, &bytes), HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(hal_cache_store("mock-id-0", key, NULL, 4), HAL_ERROR_INVALID_ARGUMENT);
}

TEST_WITH(another_driver_or_build_has_its_own, reset, NULL)
{
    assert_ok(store(key, "of the old driver"));
    char identity[sizeof device->cache.identity];
    memcpy(identity, device->cache.identity, sizeof identity);
    assert_non_null(strstr(identity, "mock mock-1 mock 1.0 host"));
    strcat(device->cache.identity, "1");
    expect(key, NULL);
    memcpy(device->cache.identity, identity, sizeof identity);
    expect(key, "of the old driver");
}

TEST_WITH(torn_entries_are_dropped, reset, NULL)
{
    char path[512];
    static const long cuts[] = {0, 1, 100, -1};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        struct stat what;
        assert_ok(store(key, "machine code"));
        only_file(path);
        stat(path, &what);
        assert_int_equal(truncate(path, cuts[i] < 0 ? what.st_size + cuts[i] : cuts[i]), 0);
        expect(key, NULL);
        assert_int_equal(access(path, F_OK), -1);
    }
    /* Any byte that changes is noticed. */
    assert_ok(store(key, "machine code"));
    only_file(path);
    struct stat what;
    stat(path, &what);
    for (long at = 0; at < what.st_size; at += at < what.st_size - 40 ? 13 : 1) {
        assert_ok(store(key, "machine code"));
        FILE *file = fopen(path, "r+b");
        assert_non_null(file);
        fseek(file, at, SEEK_SET);
        const int byte = fgetc(file);
        fseek(file, at, SEEK_SET);
        fputc(byte ^ 0x40, file);
        fclose(file);
        expect(key, NULL);
    }
    assert_ok(store(key, "machine code"));
    expect(key, "machine code");
}

TEST_WITH(foreign_entries_are_dropped, reset, NULL)
{
    char path[512];
    char elsewhere[600];
    const uint64_t other[2] = {1, 2};
    assert_ok(store(key, "machine code"));
    only_file(path);
    snprintf(elsewhere, sizeof elsewhere, "%s.other", path);
    assert_int_equal(rename(path, elsewhere), 0);
    assert_ok(store(other, "of another key"));
    /* The file of one key under the name of another. */
    DIR *entries = opendir(folder);
    for (struct dirent *entry; (entry = readdir(entries));) {
        char from[600];
        snprintf(from, sizeof from, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.' && strcmp(from, elsewhere) != 0) {
            assert_int_equal(rename(from, path), 0);
            break;
        }
    }
    closedir(entries);
    expect(key, NULL);
    /* A link or a folder in its place. */
    assert_int_equal(symlink("/etc/passwd", path), 0);
    expect(key, NULL);
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    expect(key, NULL);
    rmdir(path);
}

TEST_WITH(without_a_folder_all_goes_on, reset, NULL)
{
    setenv("HAL_CACHE_DIR", "off", 1);
    assert_int_equal(store(key, "x"), HAL_ERROR_NOT_FOUND);
    expect(key, NULL);
    setenv("HAL_CACHE_DIR", "/proc/nothing/here", 1);
    assert_int_equal(store(key, "x"), HAL_ERROR_NOT_FOUND);
    expect(key, NULL);
    setenv("HAL_CACHE_DIR", "/dev/null", 1);
    assert_int_equal(store(key, "x"), HAL_ERROR_NOT_FOUND);
    setenv("HAL_CACHE_DIR", "/proc", 1); /* a folder that takes no file */
    assert_int_equal(store(key, "x"), HAL_ERROR_IO);
    expect(key, NULL);
    hal_kernel_release(mock_kernel(device, 3));
}

TEST_WITH(folders_are_made_where_the_variables_say, reset, NULL)
{
    char path[512];
    const char *before = getenv("HOME");
    char *home = !before ? NULL : strdup(before);
    snprintf(path, sizeof path, "%s/deep/er", folder);
    setenv("HAL_CACHE_DIR", path, 1);
    assert_ok(store(key, "x"));
    assert_int_equal(access(path, F_OK), 0);
    unsetenv("HAL_CACHE_DIR");
    setenv("XDG_CACHE_HOME", folder, 1);
    assert_ok(store(key, "y"));
    snprintf(path, sizeof path, "%s/halyard", folder);
    assert_int_equal(access(path, F_OK), 0);
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", folder, 1);
    assert_ok(store(key, "z"));
    snprintf(path, sizeof path, "%s/.cache/halyard", folder);
    assert_int_equal(access(path, F_OK), 0);
    !home ? unsetenv("HOME") : setenv("HOME", home, 1);
    free(home);
    snprintf(path, sizeof path, "rm -rf '%s/.cache'", folder);
    assert_int_equal(system(path), 0);
}

/* A folder with good entries that cannot be written is read all the same, and nothing is said but
 * that what is new is not kept (promise 11). */
TEST_WITH(folders_that_are_read_only, reset, NULL)
{
    char path[512];
    const uint64_t other[2] = {1, 2};
    assert_ok(store(key, "machine code"));
    only_file(path);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        hal_device *own = NULL; /* opened while its plugin's folder can be read */
        int wrong = hal_device_open("mock", &own) != HAL_OK;
        wrong |= (chmod(path, 0400) || chmod(folder, 0500)) << 1;
        scratch_obey_modes(true);
        void *data = NULL;
        uint64_t bytes = 0;
        wrong |= (hal_cache_load("mock-id-0", key, &data, &bytes) != HAL_OK) << 3;
        wrong |= (store(other, "new") != HAL_ERROR_IO) << 4;
        wrong |= (hal_cache_load("mock-id-0", other, &data, &bytes) != HAL_ERROR_NOT_FOUND) << 5;
        if (!wrong) {
            hal_kernel_release(mock_kernel(own, 3));
            hal_device_release(own);
        }
        _exit(wrong);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Promise 11: all make the folder and the same entries at once. */
/* A store of one entry. */
typedef struct one_entry {
    uint8_t key[HAL_CACHE_KEY_BYTES], data[512];
    uint64_t bytes;
    int loads, stores;
} one_entry;

static uint64_t entry_load(void *user, const uint8_t name[HAL_CACHE_KEY_BYTES], void *data,
                           uint64_t capacity)
{
    one_entry *kept = user;
    kept->loads++;
    if (kept->bytes == 0 || memcmp(kept->key, name, sizeof kept->key) != 0) {
        return 0;
    }
    if (capacity >= kept->bytes) {
        memcpy(data, kept->data, kept->bytes);
    }
    return kept->bytes;
}

static void entry_store(void *user, const uint8_t name[HAL_CACHE_KEY_BYTES], const void *data,
                        uint64_t bytes)
{
    one_entry *kept = user;
    assert_in_range(bytes, 1, sizeof kept->data);
    memcpy(kept->key, name, sizeof kept->key);
    memcpy(kept->data, data, bytes);
    kept->bytes = bytes;
    kept->stores++;
}

TEST_WITH(the_program_keeps_entries_itself, reset, NULL)
{
    static one_entry kept;
    const uint64_t other[2] = {1, 2};
    assert_ok(store(key, "of the folder"));
    assert_fails(hal_cache_set_callbacks(entry_load, NULL, &kept), HAL_ERROR_INVALID_ARGUMENT,
                 "store");
    assert_ok(hal_cache_set_callbacks(entry_load, entry_store, &kept));
    setenv("HAL_CACHE_DIR", "off", 1);
    assert_true(hal_cache_is_on());
    expect(key, NULL);
    assert_ok(store(key, "of the program"));
    expect(key, "of the program");
    expect(other, NULL);
    assert_int_equal(kept.stores, 1);
    for (uint64_t at = 0; at < kept.bytes; at += at < kept.bytes - 40 ? 13 : 1) {
        kept.data[at] ^= 0x40;
        expect(key, NULL);
        kept.data[at] ^= 0x40;
    }
    for (kept.bytes--; kept.bytes > 0; kept.bytes /= 2) {
        expect(key, NULL);
    }
    setenv("HAL_CACHE_DIR", folder, 1);
    assert_ok(hal_cache_set_callbacks(NULL, NULL, NULL));
    const int loads = kept.loads;
    expect(key, "of the folder");
    assert_int_equal(kept.loads, loads);
}

TEST_WITH(many_processes_may_race, reset, NULL)
{
    enum { PROCESSES = 64, ROUNDS = 20, BYTES = 20000 };
    pid_t children[PROCESSES];
    char missing[512];
    snprintf(missing, sizeof missing, "%s/not/there/yet", folder);
    setenv("HAL_CACHE_DIR", missing, 1);
    hal_cache_enter(NULL);
    for (int p = 0; p < PROCESSES; p++) {
        children[p] = fork();
        assert_true(children[p] >= 0);
        if (children[p] > 0) {
            continue;
        }
        int wrong = 0;
        hal_device *own = NULL;
        wrong += hal_device_open("mock", &own) != HAL_OK;
        hal_cache_enter(&own->cache);
        static char data[BYTES];
        for (int r = 0; r < ROUNDS && !wrong; r++) {
            const uint64_t shared[2] = {(uint64_t)r % 4, 0};
            memset(data, 'a' + r % 4, sizeof data);
            wrong += hal_cache_store("mock-id-0", shared, data, sizeof data) != HAL_OK;
            void *read = NULL;
            uint64_t bytes = 0;
            if (hal_cache_load("mock-id-0", shared, &read, &bytes) == HAL_OK) {
                wrong += bytes != BYTES || memcmp(read, data, BYTES) != 0;
                free(read);
            } else {
                wrong++;
            }
        }
        _exit(wrong);
    }
    for (int p = 0; p < PROCESSES; p++) {
        int status;
        assert_int_equal(waitpid(children[p], &status, 0), children[p]);
        assert_int_equal(status, 0);
    }
    int files = 0;
    char names[1024] = "";
    DIR *entries = opendir(missing);
    assert_non_null(entries);
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (entry->d_name[0] != '.') {
            files++;
            snprintf(names + strlen(names), sizeof names - strlen(names), " %s", entry->d_name);
        }
    }
    closedir(entries);
    if (files != 4) { /* and nothing temporary */
        fail_msg("expected 4 files, got%s", names);
    }
    hal_cache_enter(&device->cache);
}

static int begin(void **state)
{
    setenv("HAL_PROBE", "off", 1); /* its answers are in the cache too */
    mock_begin(state);
    device = mock_open("mock");
    return !scratch_folder(folder, "cache");
}

static int end(void **state)
{
    empty_folder();
    hal_cache_enter(NULL);
    hal_device_release(device);
    return rmdir(folder);
}

UNIT_MAIN(begin, end)
