/* Listing, opening and closing devices. Entries of the plugin's table. */
#include "device.h"

#include "describe.h"
#include "capability.h"

#include <kit/quirks.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MIN_CAPABILITY = 70 };
enum { CHAIN_MIN = 4, DEDICATE_AFTER = 4, EARLY_START_MIN = 1 }; /* defaults of the variables */

/* The process that started the driver; 0: none yet. */
static _Atomic pid_t owner;

/* Loads and starts the driver, and counts its devices. */
static hal_status driver_start(int *count)
{
    if (owner != 0 && owner != getpid()) {
        return kit_fail(HAL_ERROR_INVALID_STATE,
                        "cuda: the driver does not work in a child of a process that has started "
                        "it; fork before devices are listed or opened, or let the child execute "
                        "a program");
    }
    hal_status status = cuda_driver_load(kit_host());
    if (status == HAL_OK) {
        const cuda_result result = cuda_functions()->cuInit(0);
        status = cuda_check(result, "starting the driver");
        if (status == HAL_ERROR_INTERNAL) {
            status = kit_fail(HAL_ERROR_DRIVER_MISSING,
                              "cuda: the driver is installed and does not start (result %d); "
                              "nvidia-smi tells more",
                              result);
        }
    }
    if (status == HAL_OK) {
        owner = getpid();
    }
    if (status == HAL_OK) {
        status = cuda_check(cuda_functions()->cuDeviceGetCount(count), "counting devices");
    }
    if (status == HAL_OK && *count == 0) {
        status = kit_fail(HAL_ERROR_NO_DEVICE, "cuda: the driver has no device");
    }
    return status;
}

/* The device at an index among the usable ones, and the count of the usable ones. */
static hal_status device_find(uint32_t index, cuda_device *found, uint32_t *usable)
{
    int count = 0;
    *usable = 0;
    hal_status status = cuda_check(cuda_functions()->cuDeviceGetCount(&count), "counting devices");
    for (int i = 0; i < count && status == HAL_OK; i++) {
        cuda_device device = 0;
        status = cuda_check(cuda_functions()->cuDeviceGet(&device, i), "finding device %d", i);
        if (status == HAL_OK && cuda_describe_capability(device) >= MIN_CAPABILITY) {
            *found = *usable == index ? device : *found;
            ++*usable;
        }
    }
    return status;
}

hal_status cuda_variable_read_count(const char *name, uint32_t default_count, uint32_t *count)
{
    const char *text = secure_getenv(name);
    *count = default_count;
    if (text && text[0] != 0) {
        char *end = NULL;
        const unsigned long number = strtoul(text, &end, 10);
        if (*end != 0 || number > UINT32_MAX) {
            return kit_fail(HAL_ERROR_INVALID_ARGUMENT,
                            "%s: expected a number from 1, or 0 for never, got %.40s", name, text);
        }
        *count = number == 0 ? UINT32_MAX : (uint32_t)number;
    }
    return HAL_OK;
}

/* The variables choose how work is submitted, for measurements; see README.md. */
static hal_status device_read_variables(hal_plugin_device *device)
{
    const char *points = secure_getenv("HAL_CUDA_POINTS");
    const bool events = points && strcmp(points, "events") == 0;
    if (points && points[0] != 0 && !events && strcmp(points, "counter") != 0) {
        return kit_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "HAL_CUDA_POINTS: expected counter or events, got %.40s", points);
    }
    device->stream_writes =
        !events && cuda_functions()->cuStreamWriteValue64_v2 &&
        cuda_describe_attribute(device->ordinal, CUDA_DEVICE_STREAM_WRITES_64) != 0;
    hal_status status = cuda_variable_read_count("HAL_CUDA_CHAIN", CHAIN_MIN, &device->chain_min);
    if (status == HAL_OK) {
        status = cuda_variable_read_count("HAL_CUDA_KEEP", DEDICATE_AFTER, &device->dedicate_after);
    }
    if (status == HAL_OK) {
        status =
            cuda_variable_read_count("HAL_CUDA_EARLY", EARLY_START_MIN, &device->early_start_min);
    }
    device->launches_early = cuda_functions()->cuLaunchKernelEx && device->early_start_min == 1;
    if (!cuda_functions()->cuGraphAddDependencies_v2) {
        device->early_start_min = UINT32_MAX;
    }
    return status;
}

/* Primary contexts, by ordinal. hal opens and closes devices from one thread at a time. */
static cuda_context retained[CUDA_MAX_DEVICES];
static uint32_t open_devices[CUDA_MAX_DEVICES]; /* that have the context */
static bool is_broken[CUDA_MAX_DEVICES];        /* the context, which open devices still have */
static bool was_lost;                           /* a device, in this process */

/* The context stays retained by the process after its first device is opened: creating one takes
 * the driver a tenth of a second. */
static hal_status context_retain(hal_plugin_device *device)
{
    const uint32_t ordinal = (uint32_t)device->ordinal;
    hal_status status = HAL_OK;
    if (ordinal >= CUDA_MAX_DEVICES) {
        return kit_fail(HAL_ERROR_UNSUPPORTED, "cuda: device: expected one of the first %u, got %u",
                        (unsigned)CUDA_MAX_DEVICES, ordinal);
    }
    cuda_result result = 0;
    if (!retained[ordinal]) {
        cuda_context context = NULL;
        result = cuda_functions()->cuDevicePrimaryCtxRetain(&context, device->ordinal);
        status = cuda_check(result, "opening device %u", ordinal);
        retained[ordinal] = status == HAL_OK ? context : NULL;
    }
    if (is_broken[ordinal] || (status == HAL_ERROR_DEVICE_LOST && was_lost)) {
        return kit_fail(HAL_ERROR_DEVICE_LOST,
                        "cuda: opening device %u: a kernel has failed in this process, in which "
                        "the driver makes no context any more (result %d); start the program again",
                        ordinal, result);
    }
    device->context = retained[ordinal];
    open_devices[ordinal] += status == HAL_OK;
    return status;
}

bool cuda_device_gives_up(const hal_plugin_device *device, bool lost)
{
    return open_devices[device->ordinal] == 1 && (lost || is_broken[device->ordinal]);
}

/* Releases a broken context. Driver 580 makes no other one in the process, neither by retaining the
 * primary context anew, also after a reset, nor by cuCtxCreate. */
static void context_give_up(hal_plugin_device *device)
{
    if (retained[device->ordinal]) {
        cuda_functions()->cuDevicePrimaryCtxRelease_v2(device->ordinal);
    }
    retained[device->ordinal] = NULL;
}

hal_status cuda_enumerate(hal_device_info *infos, uint32_t capacity, uint32_t *count)
{
    int all = 0;
    uint32_t usable = 0;
    cuda_device device = 0;
    *count = 0;
    HAL_TRY(driver_start(&all));
    HAL_TRY(device_find(UINT32_MAX, &device, &usable));
    hal_status status = HAL_OK;
    if (usable == 0) {
        return kit_fail(HAL_ERROR_TOO_OLD,
                        "cuda: expected a device of compute capability 7.0 or newer, got %d "
                        "older ones",
                        all);
    }
    for (uint32_t i = 0; i < usable && i < capacity && status == HAL_OK; i++) {
        status = device_find(i, &device, &usable);
        status = status == HAL_OK ? cuda_describe(device, &infos[i]) : status;
    }
    *count = usable;
    return status;
}

hal_status cuda_device_open(uint32_t index, hal_plugin_device **device)
{
    int all = 0;
    uint32_t usable = 0;
    *device = NULL;
    hal_plugin_device *made = calloc(1, sizeof *made);
    if (!made) {
        return kit_fail(HAL_ERROR_OUT_OF_MEMORY, "cuda: no host memory to open a device");
    }
    hal_status status = driver_start(&all);
    if (status == HAL_OK) {
        status = device_find(index, &made->ordinal, &usable);
    }
    if (status == HAL_OK && index >= usable) {
        status =
            kit_fail(HAL_ERROR_NOT_FOUND, "cuda:%u: expected an index below %u", index, usable);
    }
    if (status == HAL_OK) {
        status = cuda_describe_id(made->ordinal, made->id, sizeof made->id);
    }
    if (status == HAL_OK) {
        made->capability = cuda_describe_capability(made->ordinal);
        made->features = cuda_features(made->capability);
        const uint32_t units = cuda_describe_attribute(made->ordinal, CUDA_DEVICE_MULTIPROCESSORS);
        made->units = units > 0 ? units : 1;
        status = device_read_variables(made);
    }
    if (status == HAL_OK) {
        status = context_retain(made);
    }
    if (status != HAL_OK) {
        free(made);
        return status;
    }
    pthread_rwlock_init(&made->unloading, NULL);
    pthread_mutex_init(&made->modules_lock, NULL);
    pthread_cond_init(&made->modules_made, NULL);
    *device = made;
    return HAL_OK;
}

/* A context in which a kernel failed stays broken: it is given up, by the last device that has it,
 * since queues and memories of the others are in it. */
void cuda_device_close(hal_plugin_device *device, bool lost)
{
    if (!device) {
        return;
    }
    was_lost = was_lost || lost;
    is_broken[device->ordinal] = is_broken[device->ordinal] || lost;
    if (cuda_device_gives_up(device, lost)) {
        context_give_up(device);
        is_broken[device->ordinal] = false;
    }
    open_devices[device->ordinal]--;
    pthread_rwlock_destroy(&device->unloading);
    pthread_mutex_destroy(&device->modules_lock);
    pthread_cond_destroy(&device->modules_made);
    free(device);
}

/* The driver copies between any two of its devices. With peer access, enabled here once, the copy
 * does not go through host memory; without it the copy is slower and its result the same. */
uint32_t cuda_device_can_access_peer(hal_plugin_device *device, hal_plugin_device *other)
{
    const cuda_driver *cu = cuda_functions();
    _Atomic(cuda_context) *known = &device->peers[other->ordinal];
    int can = 0;
    if (atomic_load(known) == other->context) {
        return 1;
    }
    if (cu->cuDeviceCanAccessPeer(&can, device->ordinal, other->ordinal) == 0 && can &&
        cuda_context_push(device) == HAL_OK) {
        cu->cuCtxEnablePeerAccess(other->context, 0);
        cuda_context_pop();
    }
    atomic_store(known, other->context);
    return 1;
}

hal_status cuda_context_push(const hal_plugin_device *device)
{
    return cuda_check(cuda_functions()->cuCtxPushCurrent_v2(device->context),
                      "making the device's context current");
}

void cuda_context_pop(void)
{
    cuda_context context;
    cuda_functions()->cuCtxPopCurrent_v2(&context);
}

/* Of what compute capability 9.0 brought; the README tells more. */
hal_status cuda_device_quirk(hal_plugin_device *device, uint32_t index, hal_quirk *quirk)
{
    static const char *const names[] = {"linked_registers", "kept_clusters", "unloaded_nodes",
                                        "joined_extremes"};
    static const char *const reasons[] = {
        "the linker ignores setmaxnreg: attention is loaded as text, without the compile cache",
        "a node of a graph keeps the clusters of an earlier kernel: found with driver 580.159",
        "graphs that held a kernel of an unloaded module go wrong: found with driver 580.159",
        "max(max(-a, b), c) of signed integers loses the negation: found with driver 580.159"};
    if (device->capability >= 90) {
        kit_quirk_at(names, reasons, 4, 15, index, quirk);
    }
    return HAL_OK;
}
