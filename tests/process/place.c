/* The library finds its plugins where it was when it was loaded: by a relative path before the
 * program changed its working folder, and in a program that has a function of the library's name.
 * devices: cpu */
#include "process.h"

#include <dlfcn.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* The library's name, which the linker resolves to this one. */
const char *hal_version(void)
{
    return "the program's own";
}

static void elsewhere_open(const char *folder)
{
    static hal_status (*device_open)(const char *, hal_device **);
    static void (*device_release)(hal_device *);
    static const char *(*message)(void);
    void *library = chdir(folder) == 0 ? dlmopen(LM_ID_NEWLM, "./libhalyard.so.0", RTLD_NOW) : NULL;
    if (!library || chdir("/") != 0) {
        process_fail("%s/libhalyard.so.0: %s", folder, library ? "chdir" : dlerror());
        return;
    }
    *(void **)&device_open = dlsym(library, "hal_device_open");
    *(void **)&device_release = dlsym(library, "hal_device_release");
    *(void **)&message = dlsym(library, "hal_status_message");
    hal_device *device = NULL;
    if (device_open("cpu", &device) != HAL_OK) {
        process_fail("loaded by a relative path: %s", message());
        return;
    }
    device_release(device);
}

int main(void)
{
    hal_device *device = NULL;
    Dl_info library;
    char folder[PATH_MAX];
    if (!dladdr(dlsym(RTLD_DEFAULT, "hal_device_open"), &library) ||
        !realpath(library.dli_fname, folder)) {
        return PROCESS_SKIP;
    }
    *strrchr(folder, '/') = 0;
    PROCESS_OK(hal_device_open("cpu", &device));
    hal_device_release(device);
    elsewhere_open(folder);
    return process_end();
}
