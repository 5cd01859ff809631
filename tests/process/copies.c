/* Two copies of the library in a process with one folder of plugins: both work at the same time,
 * each gets the messages of its own failures, and each survives the other's end.
 * devices: cpu */
#include "process.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { WORDS = 1024, ROUNDS = 200 };

typedef struct hal_copy {
    void *library;
    hal_status (*device_open)(const char *, hal_device **);
    void (*device_release)(hal_device *);
    hal_status (*queue_create)(hal_device *, hal_queue **);
    void (*queue_destroy)(hal_queue *);
    hal_status (*buffer_create)(hal_device *, uint32_t, uint64_t, hal_buffer **);
    void (*buffer_release)(hal_buffer *);
    hal_status (*queue_fill)(hal_queue *, hal_range, uint32_t);
    hal_status (*queue_read)(hal_queue *, hal_buffer *, uint64_t, uint64_t, void *);
    const char *(*message)(void);
    hal_device *device;
    const char *name;
    uint32_t wrong; /* words */
} hal_copy;

static void library_folder(char folder[PATH_MAX])
{
    Dl_info library;
    if (!dladdr(dlsym(RTLD_DEFAULT, "hal_device_open"), &library) ||
        !realpath(library.dli_fname, folder)) {
        exit(PROCESS_SKIP);
    }
    *strrchr(folder, '/') = 0;
}

static hal_copy copy_load(const char *folder, const char *copies, const char *name)
{
    char command[3 * PATH_MAX], path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", copies, name);
    snprintf(command, sizeof command, "cp -L '%s/libhalyard.so.0' '%s'", folder, path);
    hal_copy copy = {.library = system(command) == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL,
                     .name = name};
    if (!copy.library) {
        printf("%s: %s\n", path, dlerror());
        exit(1);
    }
#define FIND(entry, symbol) *(void **)&copy.entry = dlsym(copy.library, symbol);
    FIND(device_open, "hal_device_open")
    FIND(device_release, "hal_device_release")
    FIND(queue_create, "hal_queue_create")
    FIND(queue_destroy, "hal_queue_destroy")
    FIND(buffer_create, "hal_buffer_create")
    FIND(buffer_release, "hal_buffer_release")
    FIND(queue_fill, "hal_queue_fill")
    FIND(queue_read, "hal_queue_read")
    FIND(message, "hal_status_message")
    return copy;
}

static void device_open(hal_copy *copy, const char *when)
{
    if (copy->device_open("cpu", &copy->device) != HAL_OK) {
        process_fail("%s, %s: %s", copy->name, when, copy->message());
    }
}

/* Fills memory with numbers and reads them. */
static void *device_use(void *user)
{
    hal_copy *copy = user;
    hal_queue *queue = NULL;
    hal_buffer *buffer = NULL;
    static _Thread_local uint32_t words[WORDS];
    if (!copy->device || copy->queue_create(copy->device, &queue) != HAL_OK ||
        copy->buffer_create(copy->device, HAL_MEMORY_DEVICE, sizeof words, &buffer) != HAL_OK) {
        copy->wrong++;
        return NULL;
    }
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        if (copy->queue_fill(queue, (hal_range){buffer, 0, HAL_WHOLE}, round) != HAL_OK ||
            copy->queue_read(queue, buffer, 0, sizeof words, words) != HAL_OK) {
            copy->wrong++;
        }
        for (uint32_t i = 0; i < WORDS; i++) {
            copy->wrong += words[i] != round;
        }
    }
    copy->buffer_release(buffer);
    copy->queue_destroy(queue);
    return NULL;
}

static void device_close(hal_copy *copy)
{
    copy->device_release(copy->device);
    copy->device = NULL;
}

static void both_use(hal_copy *first, hal_copy *second)
{
    pthread_t thread;
    device_open(first, "at first");
    device_open(second, "next to the first one");
    if (pthread_create(&thread, NULL, device_use, first) != 0) {
        exit(PROCESS_SKIP);
    }
    device_use(second);
    pthread_join(thread, NULL);
    if (first->wrong + second->wrong > 0) {
        process_fail("at the same time %u and %u words are wrong", first->wrong, second->wrong);
    }
    device_close(first);
    device_close(second);
}

/* The plugin refuses to open; its reason goes to the copy that asked, on the thread that last
 * called the other one. */
static void messages_arrive(hal_copy *asks, hal_copy *other)
{
    char before[512];
    device_open(other, "before a failure of the other one");
    snprintf(before, sizeof before, "%s", other->message());
    setenv("HAL_CPU_THREADS", "no number", 1);
    if (asks->device_open("cpu", &asks->device) != HAL_ERROR_INVALID_ARGUMENT ||
        !strstr(asks->message(), "HAL_CPU_THREADS")) {
        process_fail("%s: expected a message about HAL_CPU_THREADS, got: %s", asks->name,
                     asks->message());
    }
    if (strncmp(other->message(), before, sizeof before - 1) != 0) {
        process_fail("%s has the message of another copy: %s", other->name, other->message());
    }
    unsetenv("HAL_CPU_THREADS");
    device_close(other);
}

int main(void)
{
    char folder[PATH_MAX], plugins[PATH_MAX + 32], copies[] = "/tmp/process-copies-XXXXXX",
                                                   command[64];
    library_folder(folder);
    snprintf(plugins, sizeof plugins, "%s/halyard/plugins", folder);
    setenv("HAL_PLUGIN_PATH", plugins, 1);
    if (!mkdtemp(copies)) {
        return PROCESS_SKIP;
    }
    hal_copy first = copy_load(folder, copies, "first.so");
    hal_copy second = copy_load(folder, copies, "second.so");
    messages_arrive(&first, &second);
    both_use(&first, &second);
    messages_arrive(&second, &first);
    dlclose(second.library);
    device_open(&first, "after dlclose of the second one");
    device_use(&first);
    device_close(&first);
    if (first.wrong > 0) {
        process_fail("%u words are wrong after dlclose of the second one", first.wrong);
    }
    dlclose(first.library);
    snprintf(command, sizeof command, "rm -r '%s'", copies);
    return system(command) == 0 ? process_end() : 1;
}
