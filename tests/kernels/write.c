/* write.c: kernel-corpus: writes the op library's kernels in a plugin's language, a file each, for
 * compilers that need no device. tests/vendors runs those. */
#include <errno.h>
#include <hal/hal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "corpus.h"
#include "languages.h"

typedef struct writer {
    const language *language;
    const char *folder;
    const char *filter; /* a text that names have; null: any */
    int written, failed;
    uint32_t most_records;
    double slowest_ms;
    char slowest[96];
} writer;

static const language *find_language(const char *name);
static void write_kernel(void *user, const char *name, const hal_ir_kernel *kernel);
static bool write_file(const writer *w, const char *name, const void *data, size_t length);
static double now_ms(void);

static const char usage[] =
    "usage: kernel-corpus [--device NAME] [--short] [--filter TEXT] LANGUAGE FOLDER\n"
    "  --device NAME   full, single, subgroups or weak (full)\n"
    "  --short         some kernels of every family\n"
    "  --filter TEXT   only kernels whose name has the text\n"
    "Exit status: 0 all written, 1 a kernel could not be made or lowered, 2 wrong usage, 77 this\n"
    "build does not have the language.\n";

int main(int count, char **arguments)
{
    const char *device = "full", *places[2] = {NULL, NULL};
    writer w = {0};
    bool all = true;
    int place = 0;
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--short") == 0) {
            all = false;
        } else if (strcmp(arguments[i], "--device") == 0 && i + 1 < count) {
            device = arguments[++i];
        } else if (strcmp(arguments[i], "--filter") == 0 && i + 1 < count) {
            w.filter = arguments[++i];
        } else if (place < 2 && arguments[i][0] != '-') {
            places[place++] = arguments[i];
        } else {
            fputs(usage, stderr);
            return 2;
        }
    }
    if (place != 2) {
        fputs(usage, stderr);
        return 2;
    }
    w.folder = places[1];
    w.language = find_language(places[0]);
    if (w.language == NULL) {
        printf("kernel-corpus: this build has no lowering to %s\n", places[0]);
        return 77;
    }
    char message[1024];
    if (!corpus_make(device, all, write_kernel, &w, message, sizeof message)) {
        fprintf(stderr, "kernel-corpus: %s\n", message);
        return 1;
    }
    printf("kernel-corpus: %d kernels for device %s in %s, %d failed; the largest has %u records; "
           "the slowest to lower, %s, took %.2f ms\n",
           w.written, device, places[0], w.failed, w.most_records, w.slowest, w.slowest_ms);
    return w.failed == 0 && w.written > 0 ? 0 : 1;
}

static const language *find_language(const char *name)
{
    size_t count;
    const language *known = languages(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(known[i].name, name) == 0) {
            return &known[i];
        }
    }
    return NULL;
}

static void write_kernel(void *user, const char *name, const hal_ir_kernel *kernel)
{
    writer *w = user;
    char message[1024] = "";
    size_t length = 0;
    if (w->filter != NULL && strstr(name, w->filter) == NULL) {
        return;
    }
    const double start = now_ms();
    void *data = w->language->lower(kernel, &length, message, sizeof message);
    const double taken = now_ms() - start;
    if (data == NULL) {
        fprintf(stderr, "kernel-corpus: %s: %s\n", name, message);
        w->failed++;
    } else if (write_file(w, name, data, length)) {
        w->written++;
    } else {
        w->failed++;
    }
    free(data);
    w->most_records = kernel->record_count > w->most_records ? kernel->record_count
                                                             : w->most_records;
    if (taken > w->slowest_ms) {
        w->slowest_ms = taken;
        snprintf(w->slowest, sizeof w->slowest, "%s", name);
    }
}

/* A name that is there already would be a kernel that nobody compiles. */
static bool write_file(const writer *w, const char *name, const void *data, size_t length)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%s", w->folder, name, w->language->suffix);
    FILE *file = fopen(path, "wbx");
    bool well = file != NULL && fwrite(data, 1, length, file) == length;
    if (file != NULL) {
        well = fclose(file) == 0 && well;
    }
    if (!well) {
        fprintf(stderr, "kernel-corpus: %s: %s\n", path, strerror(errno));
    }
    return well;
}

static double now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e3 * (double)time.tv_sec + 1e-6 * (double)time.tv_nsec;
}
