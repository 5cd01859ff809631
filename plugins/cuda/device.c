/* Devices: what they are, opening them, and making one current for a call. Entries of the plugin's
 * table. */
#include "pinned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OLDEST = 70, AMPERE = 80, QUEUES_AT_ONCE = 32, CHAIN_FROM = 4, KEEP_AFTER = 4 };

static hal_status begin(int *count);
static hal_status retain_context(hal_plugin_device *device);
static uint32_t capability(cuda_device device);
static uint32_t attribute(cuda_device device, int number);
static hal_status find(uint32_t index, cuda_device *found, uint32_t *usable);
static hal_status describe(cuda_device device, hal_device_info *info);
static void describe_limits(cuda_device device, hal_device_info *info);
static void read_release(char *release, size_t bytes);
static hal_status read_id(cuda_device device, char *id, size_t bytes);
static hal_status read_variables(hal_plugin_device *device);
static hal_status read_count(const char *name, uint32_t usual, uint32_t *count);

/* hal opens and closes devices from one thread at a time. */
static cuda_context kept_contexts[CUDA_MOST_DEVICES];

hal_status cuda_enumerate(hal_device_info *infos, uint32_t capacity, uint32_t *count)
{
    int all = 0;
    uint32_t usable = 0;
    cuda_device device = 0;
    *count = 0;
    hal_status status = begin(&all);
    if (status != HAL_OK) {
        return status;
    }
    status = find(UINT32_MAX, &device, &usable);
    if (status != HAL_OK) {
        return status;
    }
    if (usable == 0) {
        return cuda_fail(HAL_ERROR_TOO_OLD,
                         "cuda: %d device(s), none of compute capability 7.0 or newer", all);
    }
    for (uint32_t i = 0; i < usable && i < capacity && status == HAL_OK; i++) {
        status = find(i, &device, &usable);
        status = status == HAL_OK ? describe(device, &infos[i]) : status;
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
    if (made == NULL) {
        return cuda_fail(HAL_ERROR_OUT_OF_MEMORY, "cuda: no host memory to open a device");
    }
    hal_status status = begin(&all);
    if (status == HAL_OK) {
        status = find(index, &made->device, &usable);
    }
    if (status == HAL_OK && index >= usable) {
        status = cuda_fail(HAL_ERROR_NOT_FOUND, "cuda:%u: there are %u devices", index, usable);
    }
    if (status == HAL_OK) {
        status = read_id(made->device, made->id, sizeof made->id);
    }
    if (status == HAL_OK) {
        made->sm = capability(made->device);
        status = read_variables(made);
    }
    if (status == HAL_OK) {
        status = retain_context(made);
    }
    if (status != HAL_OK) {
        free(made);
        return status;
    }
    pthread_rwlock_init(&made->unloading, NULL);
    *device = made;
    return HAL_OK;
}

/* A context in which a kernel failed is given up, so that the device can be opened anew. */
void cuda_device_close(hal_plugin_device *device)
{
    uint64_t left = 0, total = 0;
    if (device != NULL && cuda_memory_info(device, &left, &total) == HAL_ERROR_DEVICE_LOST) {
        cuda_forget_pinned(device);
        cuda_forget_streams(device);
        cuda_functions()->cuDevicePrimaryCtxRelease_v2(device->device);
        kept_contexts[device->device] = NULL;
    }
    if (device != NULL) {
        pthread_rwlock_destroy(&device->unloading);
    }
    free(device);
}

/* The driver copies between any two of its devices. Where they can, they do it without the host
 * once the one has been let into the other's memory: what comes of that changes the speed alone. */
uint32_t cuda_device_reaches(hal_plugin_device *device, hal_plugin_device *other)
{
    const cuda_driver *cu = cuda_functions();
    _Atomic(cuda_context) *known = &device->peers[other->device];
    int can = 0;
    if (atomic_load(known) == other->context) {
        return 1;
    }
    if (cu->cuDeviceCanAccessPeer(&can, device->device, other->device) == 0 && can &&
        cuda_enter(device) == HAL_OK) {
        cu->cuCtxEnablePeerAccess(other->context, 0);
        cuda_leave();
    }
    atomic_store(known, other->context);
    return 1;
}

hal_status cuda_enter(const hal_plugin_device *device)
{
    return cuda_failed(cuda_functions()->cuCtxPushCurrent_v2(device->context),
                       "making the device's context current");
}

void cuda_leave(void)
{
    cuda_context context;
    cuda_functions()->cuCtxPopCurrent_v2(&context);
}

/* The primary context stays with the process after the first opening: making one takes the driver a
 * tenth of a second. */
static hal_status retain_context(hal_plugin_device *device)
{
    const uint32_t ordinal = (uint32_t)device->device;
    hal_status status = HAL_OK;
    if (ordinal >= CUDA_MOST_DEVICES) {
        return cuda_fail(HAL_ERROR_UNSUPPORTED, "cuda: device %u is beyond the %u that are counted",
                         ordinal, (unsigned)CUDA_MOST_DEVICES);
    }
    if (kept_contexts[ordinal] == NULL) {
        status = cuda_failed(
            cuda_functions()->cuDevicePrimaryCtxRetain(&kept_contexts[ordinal], device->device),
            "opening device %u", ordinal);
    }
    device->context = kept_contexts[ordinal];
    return status;
}

/* Loads the driver and counts its devices. */
static hal_status begin(int *count)
{
    hal_status status = cuda_load_driver();
    if (status == HAL_OK) {
        const cuda_result result = cuda_functions()->cuInit(0);
        status = cuda_failed(result, "starting the driver");
        if (status == HAL_ERROR_INTERNAL) {
            status = cuda_fail(HAL_ERROR_DRIVER_MISSING,
                               "cuda: the driver is installed and does not start (result %d); "
                               "nvidia-smi says more; a process that was forked off one that uses "
                               "the driver cannot use it",
                               result);
        }
    }
    if (status == HAL_OK) {
        status = cuda_failed(cuda_functions()->cuDeviceGetCount(count), "counting devices");
    }
    if (status == HAL_OK && *count == 0) {
        status = cuda_fail(HAL_ERROR_NO_DEVICE, "cuda: the driver has no device");
    }
    return status;
}

static uint32_t attribute(cuda_device device, int number)
{
    int value = 0;
    cuda_functions()->cuDeviceGetAttribute(&value, number, device);
    return value > 0 ? (uint32_t)value : 0;
}

static uint32_t capability(cuda_device device)
{
    return 10 * attribute(device, CUDA_DEVICE_CAPABILITY_MAJOR) +
           attribute(device, CUDA_DEVICE_CAPABILITY_MINOR);
}

/* The device of a number among those new enough, and how many there are. */
static hal_status find(uint32_t index, cuda_device *found, uint32_t *usable)
{
    int count = 0;
    *usable = 0;
    hal_status status = cuda_failed(cuda_functions()->cuDeviceGetCount(&count), "counting devices");
    for (int i = 0; i < count && status == HAL_OK; i++) {
        cuda_device device = 0;
        status = cuda_failed(cuda_functions()->cuDeviceGet(&device, i), "finding device %d", i);
        if (status == HAL_OK && capability(device) >= OLDEST) {
            *found = *usable == index ? device : *found;
            ++*usable;
        }
    }
    return status;
}

static hal_status describe(cuda_device device, hal_device_info *info)
{
    const cuda_driver *cu = cuda_functions();
    size_t bytes = 0;
    int version = 0;
    memset(info, 0, sizeof *info);
    info->size = sizeof *info;
    hal_status status = read_id(device, info->id, sizeof info->id);
    if (status == HAL_OK) {
        status = cuda_failed(cu->cuDeviceGetName(info->name, sizeof info->name, device),
                             "reading a device's name");
    }
    if (status == HAL_OK) {
        status =
            cuda_failed(cu->cuDeviceTotalMem_v2(&bytes, device), "reading a device's memory size");
    }
    if (status != HAL_OK) {
        return status;
    }
    cu->cuDriverGetVersion(&version);
    const uint32_t sm = capability(device);
    info->kind =
        attribute(device, CUDA_DEVICE_INTEGRATED) ? HAL_DEVICE_INTEGRATED : HAL_DEVICE_DISCRETE;
    char release[32];
    read_release(release, sizeof release);
    snprintf(info->driver, sizeof info->driver, "CUDA driver %d.%d%s%s", version / 1000,
             version % 1000 / 10, release[0] ? ", " : "", release);
    snprintf(info->architecture, sizeof info->architecture, "sm_%u", sm);
    info->memory_bytes = info->max_allocation = info->max_binding = bytes;
    info->abilities = HAL_ABILITY_ATOMIC_64 | HAL_ABILITY_TIMESTAMPS | HAL_ABILITY_FAST_MATH |
                      HAL_ABILITY_ZERO_COPY | (sm >= AMPERE ? HAL_ABILITY_ASYNC_COPY : 0);
    info->matrix_types = sm >= AMPERE ? HAL_TYPE_BIT(HAL_TYPE_F16) | HAL_TYPE_BIT(HAL_TYPE_BF16) |
                                            HAL_TYPE_BIT(HAL_TYPE_F32)
                                      : 0;
    describe_limits(device, info);
    return HAL_OK;
}

static void describe_limits(cuda_device device, hal_device_info *info)
{
    const uint32_t plain = attribute(device, CUDA_DEVICE_SHARED_PER_BLOCK),
                   more = attribute(device, CUDA_DEVICE_SHARED_PER_BLOCK_OPTIN);
    for (int i = 0; i < 3; i++) {
        info->max_group_size[i] = attribute(device, CUDA_DEVICE_MAX_BLOCK_DIM_X + i);
        info->max_grid[i] = attribute(device, CUDA_DEVICE_MAX_GRID_DIM_X + i);
    }
    info->binding_alignment = 16;
    info->compute_units = attribute(device, CUDA_DEVICE_MULTIPROCESSORS);
    info->subgroup_width = 32;
    info->max_group_items = attribute(device, CUDA_DEVICE_MAX_THREADS_PER_BLOCK);
    info->shared_bytes = more > plain ? more : plain;
    info->max_bindings = HAL_IR_MAX_BINDINGS;
    info->max_vector_bytes = 16;
    info->preferred_group = 256;
    info->storage_types = HAL_TYPE_BIT(HAL_TYPE_COUNT) - HAL_TYPE_BIT(HAL_TYPE_BOOL);
    info->arithmetic_types = HAL_TYPE_BIT(HAL_TYPE_BOOL) | HAL_TYPE_BIT(HAL_TYPE_I32) |
                             HAL_TYPE_BIT(HAL_TYPE_U32) | HAL_TYPE_BIT(HAL_TYPE_I64) |
                             HAL_TYPE_BIT(HAL_TYPE_U64) | HAL_TYPE_BIT(HAL_TYPE_F32) |
                             HAL_TYPE_BIT(HAL_TYPE_F64);
    info->exactness = HAL_EXACT_FMA | HAL_EXACT_DIVIDE | HAL_EXACT_SQRT | HAL_EXACT_DENORMALS;
    info->max_queues = QUEUES_AT_ONCE;
}

/* The driver's own version, where the system tells: it is part of the compile cache's key. It is
 * the first word of the file that is digits and points. */
static void read_release(char *release, size_t bytes)
{
    char line[256] = "";
    FILE *file = fopen("/proc/driver/nvidia/version", "re");
    release[0] = 0;
    if (file == NULL) {
        return;
    }
    const char *at = fgets(line, sizeof line, file) != NULL ? line : "";
    fclose(file);
    while (*at != 0 && release[0] == 0) {
        const size_t length = strcspn(at, " \t\n"), digits = strspn(at, "0123456789.");
        if (digits == length && length > 2 && length < bytes) {
            snprintf(release, bytes, "%.*s", (int)length, at);
        }
        at += length + (at[length] != 0);
    }
}

/* As other interfaces write the same card's UUID. */
static hal_status read_id(cuda_device device, char *id, size_t bytes)
{
    cuda_uuid uuid;
    const hal_status status =
        cuda_failed(cuda_functions()->cuDeviceGetUuid(&uuid, device), "reading a device's UUID");
    if (status == HAL_OK) {
        const uint8_t *b = uuid.bytes;
        snprintf(id, bytes, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                 b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
                 b[13], b[14], b[15]);
    }
    return status;
}

/* The variables choose ways of submitting, for measuring; see README.md. */
static hal_status read_variables(hal_plugin_device *device)
{
    const char *points = secure_getenv("HAL_CUDA_POINTS");
    const bool events = points != NULL && strcmp(points, "events") == 0;
    if (points != NULL && points[0] != 0 && !events && strcmp(points, "counter") != 0) {
        return cuda_fail(HAL_ERROR_INVALID_ARGUMENT,
                         "HAL_CUDA_POINTS=%.40s: counter or events was expected", points);
    }
    device->stream_writes = !events && cuda_functions()->cuStreamWriteValue64_v2 != NULL &&
                            attribute(device->device, CUDA_DEVICE_STREAM_WRITES_64) != 0;
    hal_status status = read_count("HAL_CUDA_CHAIN", CHAIN_FROM, &device->chain_from);
    if (status == HAL_OK) {
        status = read_count("HAL_CUDA_KEEP", KEEP_AFTER, &device->keep_after);
    }
    if (status == HAL_OK) {
        status = read_count("HAL_CUDA_EARLY", 1, &device->early_after);
    }
    if (cuda_functions()->cuGraphAddDependencies_v2 == NULL) {
        device->early_after = UINT32_MAX;
    }
    return status;
}

/* A number of dispatches or runs; 0 stands for never. */
static hal_status read_count(const char *name, uint32_t usual, uint32_t *count)
{
    const char *text = secure_getenv(name);
    *count = usual;
    if (text != NULL && text[0] != 0) {
        char *end = NULL;
        const unsigned long number = strtoul(text, &end, 10);
        if (*end != 0 || number > UINT32_MAX) {
            return cuda_fail(HAL_ERROR_INVALID_ARGUMENT,
                             "%s=%.40s: a number was expected, 0 for never", name, text);
        }
        *count = number == 0 ? UINT32_MAX : (uint32_t)number;
    }
    return HAL_OK;
}
