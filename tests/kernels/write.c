/* write.c: kernel-corpus: writes the op library's kernels in a plugin's language, a file each, for
 * compilers that need no device, or makes them on a device that need not be able to run them.
 * tests/vendors calls it. */
#include <errno.h>
#include <hal/hal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "corpus.h"
#include "languages.h"

enum { LOWERINGS = 3 };

typedef struct writer {
    hal_device *target; /* on which kernels are made; null: they are written */
    const language *language;
    const char *folder;
    const char *filter; /* a text that names have; null: any */
    int written, failed, unsupported;
    uint32_t most_records;
    double slowest_ms;
    char slowest[96];
    double before_ms, built_ms; /* the end of the last visit; the time between visits, in total */
} writer;

static const char usage[] =
    "usage: kernel-corpus [--device NAME] [--short] [--filter TEXT] LANGUAGE FOLDER\n"
    "       kernel-corpus [--device NAME] [--short] [--filter TEXT] --create SELECTION\n"
    "  --device NAME   full, single, subgroups, weak, copies or matrices\n"
    "                  (full)\n"
    "  --short         some kernels of every family\n"
    "  --filter TEXT   only kernels whose name has the text\n"
    "  --create SELECTION  makes the kernels on that device, as in HAL_BACKEND, runs nothing, and\n"
    "                  says the name of each on standard error before\n"
    "Exit status: 0 all written or made, 1 a kernel could not be, 2 wrong usage, 77 there is no\n"
    "such language in this build, or no such device.\n";

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

/* Processor time, which other processes do not count in. */
static double now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return 1e3 * (double)time.tv_sec + 1e-6 * (double)time.tv_nsec;
}

static hal_status create(hal_device *device, const hal_ir_kernel *kernel, char *message,
                         size_t bytes)
{
    hal_kernel *made = NULL;
    const hal_status status = hal_kernel_create(device, kernel, &made);
    snprintf(message, bytes, "%s", status == HAL_OK ? "" : hal_status_message());
    hal_kernel_release(made);
    return status;
}

/* Refuses a name twice: the first kernel would not be compiled. */
static bool write_file(const writer *w, const char *name, const void *data, size_t length)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%s", w->folder, name, w->language->suffix);
    FILE *file = fopen(path, "wbx");
    bool well = file && fwrite(data, 1, length, file) == length;
    if (file) {
        well = fclose(file) == 0 && well;
    }
    if (!well) {
        fprintf(stderr, "kernel-corpus: %s: %s\n", path, strerror(errno));
    }
    return well;
}

static void write_kernel(writer *w, const char *name, const hal_ir_kernel *kernel)
{
    char message[1024] = "";
    size_t length = 0;
    if (w->filter && !strstr(name, w->filter)) {
        return;
    }
    if (w->target) {
        fprintf(stderr, "kernel %s\n", name);
    }
    double taken = 1e9;
    void *data = NULL;
    hal_status status = HAL_OK;
    /* The shortest of a few, since other processes may run. */
    for (int i = 0; i < (!w->target ? LOWERINGS : 1); i++) {
        const double start = now_ms();
        if (w->target) {
            status = create(w->target, kernel, message, sizeof message);
        } else {
            free(data);
            data = w->language->lower(kernel, &length, message, sizeof message);
        }
        taken = now_ms() - start < taken ? now_ms() - start : taken;
    }
    if (status == HAL_ERROR_UNSUPPORTED) {
        w->unsupported++;
    } else if (w->target ? status == HAL_OK
                                 : data && write_file(w, name, data, length)) {
        w->written++;
    } else {
        fprintf(stderr, "kernel-corpus: %s: %s\n", name, message);
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

static void visit(void *user, const char *name, const hal_ir_kernel *kernel)
{
    writer *w = user;
    w->built_ms += now_ms() - w->before_ms;
    write_kernel(w, name, kernel);
    w->before_ms = now_ms();
}

int main(int count, char **arguments)
{
    const char *device = "full", *target = NULL, *places[2] = {NULL, NULL};
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
        } else if (strcmp(arguments[i], "--create") == 0 && i + 1 < count) {
            target = arguments[++i];
        } else if (place < 2 && arguments[i][0] != '-') {
            places[place++] = arguments[i];
        } else {
            fputs(usage, stderr);
            return 2;
        }
    }
    if (place != (!target ? 2 : 0)) {
        fputs(usage, stderr);
        return 2;
    }
    w.folder = places[1];
    if (!target && !(w.language = find_language(places[0]))) {
        printf("kernel-corpus: this build has no lowering to %s\n", places[0]);
        return 77;
    }
    if (target && hal_device_open(target, &w.target) != HAL_OK) {
        printf("kernel-corpus: no device %s: %s\n", target, hal_status_message());
        return 77;
    }
    char message[1024];
    w.before_ms = now_ms();
    const bool made = corpus_make(device, all, visit, &w, message, sizeof message);
    if (!made) {
        fprintf(stderr, "kernel-corpus: %s\n", message);
    }
    printf("kernel-corpus: %d kernels for device %s %s %s, %d failed, %d unsupported; the largest "
           "has %u records; the slowest, %s, took %.2f ms; hal and ops took %.0f us for each\n",
           w.written, device, !target ? "in" : "made on",
           !target ? places[0] : hal_device_get_info(w.target)->name, w.failed,
           w.unsupported, w.most_records, w.slowest, w.slowest_ms,
           1e3 * w.built_ms / (w.written + w.failed + w.unsupported + 1e-9));
    hal_device_release(w.target);
    return made && w.failed == 0 && w.written > 0 ? 0 : 1;
}
