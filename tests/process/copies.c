/* Two copies of the library in a process with one folder of plugins: the second one is refused with
 * the reason, and the first one continues after the second one is closed.
 * devices: cpu */
#include "process.h"

#include <dlfcn.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

typedef struct hal_copy {
    void *library;
    hal_status (*device_open)(const char *, hal_device **);
    void (*device_release)(hal_device *);
    const char *(*message)(void);
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
    hal_copy copy = {.library = system(command) == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL};
    if (!copy.library) {
        printf("%s: %s\n", path, dlerror());
        exit(1);
    }
    *(void **)&copy.device_open = dlsym(copy.library, "hal_device_open");
    *(void **)&copy.device_release = dlsym(copy.library, "hal_device_release");
    *(void **)&copy.message = dlsym(copy.library, "hal_status_message");
    return copy;
}

static void device_use(const hal_copy *copy, const char *when)
{
    hal_device *device = NULL;
    if (copy->device_open("cpu", &device) != HAL_OK) {
        process_fail("the first copy, %s: %s", when, copy->message());
        return;
    }
    copy->device_release(device);
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
    const hal_copy first = copy_load(folder, copies, "first.so");
    const hal_copy second = copy_load(folder, copies, "second.so");
    hal_device *device = NULL;
    device_use(&first, "alone");
    if (second.device_open("cpu", &device) != HAL_ERROR_INVALID_STATE ||
        !strstr(second.message(), "another copy of libhalyard")) {
        process_fail("the second copy: %s", second.message());
    }
    device_use(&first, "next to the second one");
    dlclose(second.library);
    device_use(&first, "after dlclose of the second one");
    dlclose(first.library);
    snprintf(command, sizeof command, "rm -r '%s'", copies);
    return system(command) == 0 ? process_end() : 1;
}
