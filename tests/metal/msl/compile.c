/* Metal Shading Language to a loaded shared object: clang, the linker, and a folder that keeps what
 * was compiled. MSL_CLANG, MSL_LD, MSL_INCLUDE and MSL_PCH are paths that the build gives. */
#include "msl.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static uint64_t hash(uint64_t seed, const char *bytes, size_t count)
{
    uint64_t h = seed ^ 0xcbf29ce484222325u;
    for (size_t i = 0; i < count; i++) {
        h = (h ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    }
    return h ^ h >> 29;
}

/* Changes when the library, the compiler or the executor does. */
static uint64_t stamp(void)
{
    Dl_info own = {0};
    dladdr((void *)(uintptr_t)msl_compile, &own);
    const char *const files[] = {MSL_PCH, MSL_CLANG, own.dli_fname};
    uint64_t h = 7;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct stat status;
        if (stat(files[i], &status) == 0) {
            h = hash(h, (const char *)&status.st_mtim, sizeof status.st_mtim);
            h = hash(h, (const char *)&status.st_size, sizeof status.st_size);
        }
    }
    return h;
}

static void cache_folder(char *path, size_t room)
{
    const char *given = getenv("METAL_STANDIN_CACHE");
    if (given) {
        snprintf(path, room, "%s", given);
    } else {
        snprintf(path, room, "/tmp/metal-standin-%u", (unsigned)getuid());
    }
    mkdir(path, 0700);
}

/* Runs a program with its messages in the file log. Returns its exit status, -1: it did not run. */
static int run_program(const char *const *arguments, const char *log)
{
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (posix_spawn(&child, arguments[0], &actions, NULL, (char *const *)(uintptr_t)arguments,
                    environ) == 0) {
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    posix_spawn_file_actions_destroy(&actions);
    return status;
}

static void read_file(const char *path, msl_text *text)
{
    FILE *file = fopen(path, "r");
    char line[1024];
    while (file && fgets(line, sizeof line, file)) {
        msl_text_add(text, "%s", line);
    }
    if (file) {
        fclose(file);
    }
}

static int write_file(const char *path, const char *bytes, size_t count)
{
    FILE *file = fopen(path, "w");
    if (!file) {
        return -1;
    }
    const int failed = fwrite(bytes, 1, count, file) != count;
    return fclose(file) != 0 || failed ? -1 : 0;
}

/* The object at path.so from the text, or -1 with messages at path.log. */
static int build(const char *path, const msl_options *options, const msl_text *text)
{
    static atomic_uint serial;
    char base[600], source[640], object[640], shared[640], log[640], self[640] = "";
    Dl_info own;
    if (dladdr((void *)(uintptr_t)msl_compile, &own) != 0) {
        snprintf(self, sizeof self, "%s", own.dli_fname);
    }
    snprintf(base, sizeof base, "%s.%d.%u", path, (int)getpid(), atomic_fetch_add(&serial, 1));
    snprintf(source, sizeof source, "%s.cl", base);
    snprintf(object, sizeof object, "%s.o", base);
    snprintf(shared, sizeof shared, "%s.so", base);
    snprintf(log, sizeof log, "%s.log", base);
    if (write_file(source, text->bytes, text->count) != 0) {
        return -1;
    }
    const char *compile[40] = {MSL_CLANG, MSL_FLAGS, "-c", source, "-o", object};
    size_t n = 0;
    while (compile[n]) {
        n++;
    }
    if (options->fast_math || options->watch) {
        compile[n++] = "-DMSL_WITHOUT_PCH";
        compile[n++] = "-include";
        compile[n++] = MSL_INCLUDE "/metal_stdlib";
    } else {
        compile[n++] = "-Xclang";
        compile[n++] = "-include-pch";
        compile[n++] = "-Xclang";
        compile[n++] = MSL_PCH;
    }
    if (options->fast_math) {
        compile[n++] = "-DMSL_FAST_MATH";
        compile[n++] = "-ffast-math";
        compile[n++] = "-mrecip=all:1";
    }
    if (options->watch) {
        compile[n++] = "-DMSL_WATCH";
        compile[n++] = "-fsanitize=thread";
        compile[n++] = "-mllvm";
        compile[n++] = "-tsan-instrument-func-entry-exit=0";
    }
    const char *link[] = {MSL_LD, "-shared", "-z", "norelro", "-o", shared, object, self, NULL};
    int status = run_program(compile, log);
    status = status == 0 ? run_program(link, log) : status;
    char kept[640];
    snprintf(kept, sizeof kept, "%s.log", path);
    rename(log, kept);
    if (status == 0) {
        snprintf(kept, sizeof kept, "%s.so", path);
        status = rename(shared, kept);
    }
    unlink(object);
    unlink(shared);
    if (!getenv("METAL_STANDIN_KEEP")) {
        unlink(source);
    }
    return status == 0 ? 0 : -1;
}

/* Whether the object calls what has to wait for other work-items. */
static int waits(const char *path)
{
    FILE *file = fopen(path, "r");
    static const char *const names[] = {"msl_barrier", "msl_simdgroup_barrier", "msl_gather"};
    int found = 0;
    if (!file) {
        return 1;
    }
    fseek(file, 0, SEEK_END);
    const long count = ftell(file);
    rewind(file);
    char *bytes = malloc((size_t)count + 1);
    if (!bytes || fread(bytes, 1, (size_t)count, file) != (size_t)count) {
        found = 1;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !found; i++) {
        found = memmem(bytes, (size_t)count, names[i], strlen(names[i])) != NULL;
    }
    free(bytes);
    fclose(file);
    return found;
}

static int find_entries(msl_library *library, int needs_coroutines, msl_text *log)
{
    for (uint32_t i = 0; i < library->function_count; i++) {
        msl_function *f = &library->functions[i];
        char name[300];
        snprintf(name, sizeof name, "msl_kernel_%s", f->name);
        void *entry = dlsym(library->object, name);
        snprintf(name, sizeof name, "msl_info_%s", f->name);
        const uint32_t *info = dlsym(library->object, name);
        if (!entry || !info) {
            msl_text_add(log, "the compiled object has no %s\n", name);
            return -1;
        }
        memcpy(&f->entry, &entry, sizeof entry);
        f->needs_coroutines = needs_coroutines;
        for (uint32_t k = 0; k < f->parameter_count; k++) {
            f->parameters[k].size = info[2 * k];
            f->parameters[k].alignment = info[2 * k + 1];
        }
        f->threadgroup_bytes = info[2 * f->parameter_count];
    }
    return 0;
}

static msl_library *load(msl_scanned *scanned, const char *path, msl_text *log)
{
    char file[640];
    snprintf(file, sizeof file, "%s.so", path);
    msl_library *library = calloc(1, sizeof *library);
    if (!library) {
        return NULL;
    }
    library->object = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library->object) {
        msl_text_add(log, "%s\n", dlerror());
        free(library);
        return NULL;
    }
    library->functions = scanned->functions;
    library->function_count = scanned->function_count;
    scanned->functions = NULL;
    if (find_entries(library, waits(file), log) != 0) {
        msl_library_free(library);
        return NULL;
    }
    return library;
}

msl_library *msl_compile(const char *source, const msl_options *options, msl_text *log)
{
    msl_scanned scanned;
    msl_text text = {0};
    char folder[400], path[520], file[640];
    msl_library *library = NULL;
    if (msl_scan(source, &scanned) != 0) {
        msl_text_add(log, "program_source: error: %s\n", scanned.error);
        msl_scanned_free(&scanned);
        return NULL;
    }
    msl_text_add(&text, "#define __METAL__ 1\n#define __METAL_VERSION__ %u\n", options->language);
    if (!scanned.contract_off) {
        msl_text_add(&text, "#pragma clang fp contract(fast)\n");
    }
    msl_text_add(&text, "#line 1 \"program_source\"\n%s", scanned.text.bytes);
    uint64_t h[2] = {stamp(), 99};
    for (uint32_t i = 0; i < 2; i++) {
        h[i] = hash(h[i] + (uint64_t)options->fast_math + 2 * (uint64_t)options->watch, text.bytes,
                    text.count);
    }
    cache_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/%016llx%016llx", folder, (unsigned long long)h[0],
             (unsigned long long)h[1]);
    snprintf(file, sizeof file, "%s.so", path);
    const int built = access(file, R_OK) == 0 || build(path, options, &text) == 0;
    snprintf(file, sizeof file, "%s.log", path);
    read_file(file, log);
    if (built) {
        library = load(&scanned, path, log);
    }
    free(text.bytes);
    msl_scanned_free(&scanned);
    return library;
}

void msl_library_free(msl_library *library)
{
    if (library) {
        dlclose(library->object);
        free(library->functions);
        free(library);
    }
}
