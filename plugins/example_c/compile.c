/* C text to machine code: the host's C compiler makes a shared object, which hal's cache keeps. */
#include "example_c.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <kit/hash.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Files of one compilation, in a folder of its own. */
typedef struct files {
    char folder[64], source[96], object[96], log[96];
} files;

static int files_make(files *f)
{
    const char *root = secure_getenv("TMPDIR");
    snprintf(f->folder, sizeof f->folder, "%.40s/example_c.XXXXXX",
             root && strlen(root) <= 40 ? root : "/tmp");
    if (!mkdtemp(f->folder)) {
        return 0;
    }
    snprintf(f->source, sizeof f->source, "%s/kernel.c", f->folder);
    snprintf(f->object, sizeof f->object, "%s/kernel.so", f->folder);
    snprintf(f->log, sizeof f->log, "%s/log", f->folder);
    return 1;
}

static void files_remove(const files *f)
{
    unlink(f->source);
    unlink(f->object);
    unlink(f->log);
    rmdir(f->folder);
}

static int file_write(const char *path, const void *bytes, uint64_t count)
{
    FILE *file = fopen(path, "wb");
    const int good = file && fwrite(bytes, 1, count, file) == count;
    return (!file || fclose(file) == 0) && good;
}

/* The whole file; null where it cannot be read. Freed with host->release. */
static void *file_read(const char *path, uint64_t *count)
{
    struct stat about;
    FILE *file = fopen(path, "rb");
    void *bytes = NULL;
    if (file && fstat(fileno(file), &about) == 0) {
        *count = (uint64_t)about.st_size;
        bytes = kit_host()->allocate(kit_host(), *count + 1, 16);
    }
    if (bytes && fread(bytes, 1, *count, file) != *count) {
        example_release(bytes);
        bytes = NULL;
    }
    if (file) {
        fclose(file);
    }
    return bytes;
}

static hal_status compiler_run(const files *f, const char *name)
{
    const char *variable = secure_getenv("HAL_EXAMPLE_C_CC");
    const char *compiler = variable && variable[0] != 0 ? variable : "cc";
    const char *const words[] = {compiler,
                                 "-std=gnu11",
                                 "-O1",
                                 "-w",
                                 "-fPIC",
                                 "-shared",
                                 "-ffp-contract=off",
                                 "-fwrapv",
                                 "-fno-strict-aliasing",
                                 "-fno-math-errno",
                                 f->source,
                                 "-o",
                                 f->object,
                                 "-lm",
                                 NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int state = -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, f->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    const int failed =
        posix_spawnp(&child, compiler, &actions, NULL, (char *const *)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) {
        return example_fail(HAL_ERROR_COMPILE, "kernel %s: %s: %s; set HAL_EXAMPLE_C_CC", name,
                            compiler, strerror(failed));
    }
    if (waitpid(child, &state, 0) == child && WIFEXITED(state) && WEXITSTATUS(state) == 0) {
        return HAL_OK;
    }
    uint64_t count = 0;
    char *log = file_read(f->log, &count);
    example_fail(HAL_ERROR_COMPILE, "kernel %s: %s ended with %d: %.*s", name, compiler, state,
                 log != NULL ? (int)(count < 300 ? count : 300) : 0, log ? log : "");
    example_release(log);
    return HAL_ERROR_COMPILE;
}

static hal_status object_load(const files *f, const char *name, void **library, example_code *run)
{
    *library = dlopen(f->object, RTLD_NOW | RTLD_LOCAL);
    void *symbol = *library ? dlsym(*library, "hal_run") : NULL;
    if (!symbol) {
        return example_fail(HAL_ERROR_COMPILE, "kernel %s: %s", name, dlerror());
    }
    memcpy(run, &symbol, sizeof *run);
    return HAL_OK;
}

hal_status example_compile(const kit_text *text, const char *name, void **library,
                           example_code *run)
{
    const hal_host *host = kit_host();
    hal_device_info info;
    uint32_t count;
    uint64_t key[2] = {0}, bytes = 0;
    void *object = NULL;
    files f;
    example_enumerate(&info, 1, &count);
    kit_hash_add(key, text->data, text->length);
    if (!files_make(&f)) {
        return example_fail(HAL_ERROR_IO, "kernel %s: no temporary folder", name);
    }
    hal_status status = host->cache_load(host, info.id, key, &object, &bytes);
    if (status == HAL_OK) {
        status = file_write(f.object, object, bytes)
                     ? HAL_OK
                     : example_fail(HAL_ERROR_IO, "kernel %s: cannot write %s", name, f.object);
    } else if (!file_write(f.source, text->data, text->length)) {
        status = example_fail(HAL_ERROR_IO, "kernel %s: cannot write %s", name, f.source);
    } else if ((status = compiler_run(&f, name)) == HAL_OK &&
               (object = file_read(f.object, &bytes)) != NULL) {
        host->cache_store(host, info.id, key, object, bytes);
    }
    host->release(host, object);
    if (status == HAL_OK) {
        status = object_load(&f, name, library, run);
    }
    files_remove(&f);
    return status;
}
