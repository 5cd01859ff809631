/* What a device is, in hal's terms. */
#include "describe.h"

#include "lower/lower.h"
#include "quirks.h"
#include "status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct answers {
    cl_device_type type;
    cl_device_fp_config f32, f64;
    cl_bool available, compiler, little_endian, unified;
    char version[128], profile[64], extensions[8192];
} answers;

/* Intel's threads have 128 registers of 32 bytes, and compilers take 8 work-items into one of them
 * where a kernel needs many. */
enum { INTEL_ITEM_REGISTERS = 128 * 32 / 8 };

/* Of a driver with OPENCL_QUIRK_LIMITED_LOOPS: the test that ends the last loop is free. */
enum { LIMITED_ITERATIONS = 65536 };

/* Leaves `answer` unchanged where the device does not know the query. */
static void device_query(cl_device_id device, cl_device_info what, void *answer, size_t bytes)
{
    size_t needed = 0;
    if (cl.clGetDeviceInfo(device, what, 0, NULL, &needed) == CL_SUCCESS && needed <= bytes) {
        (void)cl.clGetDeviceInfo(device, what, bytes, answer, NULL);
    }
}

static bool has_extension(const answers *a, const char *extension)
{
    const size_t length = strlen(extension);
    for (const char *at = a->extensions; (at = strstr(at, extension)) != NULL; at += length) {
        const bool begins = at == a->extensions || at[-1] == ' ';
        if (begins && (at[length] == ' ' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

/* The first requirement that the device does not meet, or null. */
static const char *missing_feature(const answers *a)
{
    unsigned major = 0, minor = 0;
    sscanf(a->version, "OpenCL %u.%u", &major, &minor);
    if (major < 1 || (major == 1 && minor < 2)) {
        return "is below OpenCL 1.2";
    }
    if (!a->available) {
        return "is not available at the moment";
    }
    if (!a->compiler) {
        return "has no compiler for OpenCL C";
    }
    if (!a->little_endian) {
        return "is big-endian";
    }
    if (strcmp(a->profile, "FULL_PROFILE") != 0 && !has_extension(a, "cles_khr_int64")) {
        return "has no 64-bit integers (embedded profile)";
    }
    return NULL;
}

/* The answer to a query of 4 or 8 bytes. */
static uint64_t query_number(cl_device_id device, cl_device_info what, size_t bytes)
{
    uint32_t narrow = 0;
    uint64_t wide = 0;
    device_query(device, what, bytes == 4 ? (void *)&narrow : (void *)&wide, bytes);
    return bytes == 4 ? narrow : wide;
}

static void describe_limits(opencl_card *card)
{
    cl_device_id device = card->device;
    hal_device_info *info = &card->info;
    size_t sizes[8] = {0};
    info->memory_bytes = query_number(device, CL_DEVICE_GLOBAL_MEM_SIZE, 8);
    info->max_allocation = query_number(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 8);
    info->max_binding = info->max_allocation;
    info->binding_alignment = 16; /* of the widest access */
    info->compute_units = (uint32_t)query_number(device, CL_DEVICE_MAX_COMPUTE_UNITS, 4);
    info->max_group_items =
        (uint32_t)query_number(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t));
    if (info->max_group_items > 1024) {
        info->max_group_items = 1024;
    }
    device_query(device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizes, sizeof sizes);
    for (uint32_t i = 0; i < 3; i++) {
        info->max_group_size[i] =
            sizes[i] < info->max_group_items ? (uint32_t)sizes[i] : info->max_group_items;
        info->max_grid[i] = i == 0 ? INT32_MAX : UINT16_MAX;
    }
    const uint64_t shared = query_number(device, CL_DEVICE_LOCAL_MEM_SIZE, 8);
    info->shared_bytes = shared < UINT32_MAX ? (uint32_t)shared : UINT32_MAX;
    info->max_bindings = HAL_IR_MAX_BINDINGS;
    info->max_vector_bytes = card->quirks & OPENCL_QUIRK_SCALAR_ACCESS ? 4 : 16;
    info->preferred_group = info->max_group_items < 256 ? info->max_group_items : 256;
    info->max_queues = 8;
}

/* Shuffles, products of matrices and asynchronous copies in PTX, by the generations that have
 * them. */
static void describe_warps(opencl_card *card, const answers *a)
{
    const uint64_t generation =
        has_extension(a, "cl_nv_device_attribute_query")
            ? query_number(card->device, CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV, 4)
            : 0;
    if (generation >= 7) {
        card->info.subgroup_width = OPENCL_WARP_WIDTH;
    }
    if (generation >= 8) {
        /* Of F64 the assembler is right at a lower level alone, see plugins/cuda/kernel.c. */
        card->info.matrix_types = HAL_TYPES_MATRIX & ~HAL_TYPE_BIT(HAL_TYPE_F64);
        card->info.features |= HAL_FEATURE_ASYNC_COPY;
    }
}

/* Only where a kernel can require a width: elsewhere the compiler chooses one for each kernel.
 * All of Intel's GPUs have 16. */
static void describe_subgroups(opencl_card *card, const answers *a)
{
    size_t widths[16] = {0};
    if (card->quirks & OPENCL_QUIRK_WARPS && !(card->quirks & OPENCL_QUIRK_NO_SUBGROUPS)) {
        describe_warps(card, a);
        return;
    }
    if (!has_extension(a, "cl_intel_subgroups") ||
        !has_extension(a, "cl_intel_required_subgroup_size") ||
        (card->quirks & OPENCL_QUIRK_NO_SUBGROUPS)) {
        return;
    }
    device_query(card->device, CL_DEVICE_SUB_GROUP_SIZES_INTEL, widths, sizeof widths);
    for (uint32_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        if (widths[i] == OPENCL_SUBGROUP_WIDTH) {
            card->info.subgroup_width = OPENCL_SUBGROUP_WIDTH;
        }
    }
}

static void describe_types(opencl_card *card, const answers *a)
{
    hal_device_info *info = &card->info;
    const uint32_t all = opencl_lower_storage_types();
    const bool doubles = a->f64 != 0;
    info->storage_types = doubles ? all : all & ~HAL_TYPE_BIT(HAL_TYPE_F64);
    info->arithmetic_types = HAL_TYPE_BIT(HAL_TYPE_BOOL) | HAL_TYPE_BIT(HAL_TYPE_I32) |
                             HAL_TYPE_BIT(HAL_TYPE_U32) | HAL_TYPE_BIT(HAL_TYPE_I64) |
                             HAL_TYPE_BIT(HAL_TYPE_U64) | HAL_TYPE_BIT(HAL_TYPE_F32) |
                             (doubles ? HAL_TYPE_BIT(HAL_TYPE_F64) : 0);
    if (card->quirks & OPENCL_QUIRK_NO_HALF) {
        info->storage_types &= ~HAL_TYPE_BIT(HAL_TYPE_F16);
    }
    /* fma() is correctly rounded on every device; CL_FP_FMA only says that it is fast. */
    if (!(card->quirks & OPENCL_QUIRK_FMA_NOT_FUSED)) {
        info->exactness |= HAL_EXACT_FMA;
    }
    if ((a->f32 & CL_FP_DENORM) && !(card->quirks & OPENCL_QUIRK_NO_DENORMALS)) {
        info->exactness |= HAL_EXACT_DENORMALS;
    }
    if (a->f32 & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) {
        card->correct_divide = true;
        info->exactness |= HAL_EXACT_DIVIDE | HAL_EXACT_SQRT;
    }
    if (has_extension(a, "cl_khr_int64_base_atomics") &&
        has_extension(a, "cl_khr_int64_extended_atomics")) {
        info->features |= HAL_FEATURE_ATOMIC_64;
    }
    info->features |=
        HAL_FEATURE_FILL_PATTERNS | HAL_FEATURE_COPY_ROWS | HAL_FEATURE_DRIVER_COMPILES;
    if (card->profiling) {
        info->features |= HAL_FEATURE_TIMESTAMPS;
    }
    if (card->fine_shared) {
        info->max_allocation -= OPENCL_ALIGNMENT; /* what memory.c adds */
        info->max_binding = info->max_allocation;
        info->features |= HAL_FEATURE_MAP_DEVICE | HAL_FEATURE_ZERO_COPY;
    }
}

static void copy_text(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%.*s", (int)size - 1, from);
}

/* The last words that fit into `size` bytes: the first words are the same for all devices of a
 * version, and a processor's name follows. */
static const char *last_words(const char *text, size_t size)
{
    const size_t length = strlen(text);
    if (length < size) {
        return text;
    }
    const char *end = text + length - (size - 1);
    const char *space = strchr(end - 1, ' ');
    return space ? space + 1 : end;
}

/* The UUID, PCI address or name of the device, which are the same with every driver. */
static void describe_id(opencl_card *card, const answers *a)
{
    hal_device_info *info = &card->info;
    cl_device_id device = card->device;
    uint8_t uuid[CL_UUID_SIZE_KHR] = {0};
    if (has_extension(a, "cl_khr_device_uuid")) {
        char *at = info->id;
        device_query(device, CL_DEVICE_UUID_KHR, uuid, sizeof uuid);
        for (uint32_t i = 0; i < sizeof uuid; i++) {
            const bool dash = i == 4 || i == 6 || i == 8 || i == 10;
            at += sprintf(at, "%s%02x", dash ? "-" : "", (unsigned)uuid[i]);
        }
    } else if (has_extension(a, "cl_khr_pci_bus_info")) {
        cl_device_pci_bus_info_khr pci = {0};
        device_query(device, CL_DEVICE_PCI_BUS_INFO_KHR, &pci, sizeof pci);
        snprintf(info->id, sizeof info->id, "pci:%04x:%02x:%02x.%x", pci.pci_domain, pci.pci_bus,
                 pci.pci_device, pci.pci_function);
    } else {
        snprintf(info->id, sizeof info->id, "opencl:%.50s", info->name);
        for (char *at = info->id + sizeof "opencl:" - 1; *at != '\0'; at++) {
            *at = strchr(" ,()", *at) ? '_' : *at; /* lists of ids have commas */
        }
    }
}

static void describe_identity(opencl_card *card, const answers *a, const char *platform)
{
    hal_device_info *info = &card->info;
    cl_device_id device = card->device;
    char name[256] = "", driver[256] = "";
    device_query(device, CL_DEVICE_NAME, name, sizeof name - 1);
    device_query(device, CL_DRIVER_VERSION, driver, sizeof driver - 1);
    copy_text(info->name, sizeof info->name, name);
    snprintf(info->driver, sizeof info->driver, "%.30s %.30s", platform, driver);
    copy_text(info->architecture, sizeof info->architecture,
              last_words(a->version, sizeof info->architecture));
    if (a->type & CL_DEVICE_TYPE_CPU) {
        const uint64_t floats = query_number(device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, 4);
        info->kind = HAL_DEVICE_CPU;
        info->item_vector_bytes = floats > 1 ? (uint32_t)floats * 4 : 0;
    } else {
        info->kind = a->unified ? HAL_DEVICE_INTEGRATED : HAL_DEVICE_DISCRETE;
        info->item_register_bytes =
            has_extension(a, "cl_intel_subgroups") ? INTEL_ITEM_REGISTERS : 0;
    }
    info->max_loop_iterations = card->quirks & OPENCL_QUIRK_LIMITED_LOOPS ? LIMITED_ITERATIONS : 0;
    if (card->quirks & OPENCL_QUIRK_SOFTWARE) {
        info->kind = HAL_DEVICE_SOFTWARE;
    }
    describe_id(card, a);
}

bool opencl_describe(opencl_card *card, const char *platform, char reason[160])
{
    answers *a = calloc(1, sizeof *a);
    cl_device_id device = card->device;
    if (!a) {
        snprintf(reason, 160, "could not be asked: no host memory");
        return false;
    }
    device_query(device, CL_DEVICE_TYPE, &a->type, sizeof a->type);
    device_query(device, CL_DEVICE_SINGLE_FP_CONFIG, &a->f32, sizeof a->f32);
    device_query(device, CL_DEVICE_DOUBLE_FP_CONFIG, &a->f64, sizeof a->f64);
    device_query(device, CL_DEVICE_AVAILABLE, &a->available, sizeof a->available);
    device_query(device, CL_DEVICE_COMPILER_AVAILABLE, &a->compiler, sizeof a->compiler);
    device_query(device, CL_DEVICE_ENDIAN_LITTLE, &a->little_endian, sizeof a->little_endian);
    device_query(device, CL_DEVICE_HOST_UNIFIED_MEMORY, &a->unified, sizeof a->unified);
    device_query(device, CL_DEVICE_VERSION, a->version, sizeof a->version - 1);
    device_query(device, CL_DEVICE_PROFILE, a->profile, sizeof a->profile - 1);
    device_query(device, CL_DEVICE_EXTENSIONS, a->extensions, sizeof a->extensions - 1);
    const char *missing = missing_feature(a);
    if (!missing) {
        cl_device_svm_capabilities svm = 0;
        device_query(device, CL_DEVICE_SVM_CAPABILITIES, &svm, sizeof svm);
        card->unified = a->unified == CL_TRUE;
        card->fine_shared = (svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) && card->unified &&
                            cl.clSVMAlloc && cl.clSVMFree && !(card->quirks & OPENCL_QUIRK_SHADOW);
        card->profiling = !(card->quirks & OPENCL_QUIRK_NO_PROFILING);
        card->max_parameters = query_number(device, CL_DEVICE_MAX_PARAMETER_SIZE, sizeof(size_t));
        card->info.size = sizeof card->info;
        describe_limits(card);
        describe_subgroups(card, a);
        describe_types(card, a);
        describe_identity(card, a, platform);
    } else {
        snprintf(reason, 160, "%.150s", missing);
    }
    free(a);
    return !missing;
}
