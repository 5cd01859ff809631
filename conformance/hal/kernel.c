/* kernel.c: making kernels: identity, limits that the device states, errors, text and hashes. */
#include <hal/kernel.h>

#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "hal/hal_case.h"

static void same_object(case_run *run, const void *parameters)
{
    hal_kernel *one = scale_kernel(run, run->device), *two = scale_kernel(run, run->device);
    case_check(run, one == two, "the same IR gave two kernels");
    case_check(run, strcmp(hal_kernel_get_name(one), "scale") == 0, "the kernel is called %s",
               hal_kernel_get_name(one));
    case_check(run, hal_kernel_retain(one) == one, "hal_kernel_retain gives another");
    hal_kernel_release(one);
    hal_kernel_release(one);
    hal_kernel_release(two);
}

static void nulls(case_run *run, const void *parameters)
{
    hal_kernel *kernel = NULL;
    hal_ir_kernel *ir = scale_ir(run);
    uint64_t workspace;
    const hal_status wrong = HAL_ERROR_INVALID_ARGUMENT;
    hal_kernel_release(NULL);
    hal_ir_kernel_destroy(NULL);
    hal_ir_builder_destroy(NULL);
    case_check(run, hal_kernel_retain(NULL) == NULL && hal_kernel_get_name(NULL)[0] == 0,
               "a null kernel gives something");
    case_expect(run, hal_kernel_create(NULL, ir, &kernel), wrong, NULL, "a null device");
    case_expect(run, hal_kernel_create(run->device, NULL, &kernel), wrong, NULL, "null IR");
    case_expect(run, hal_kernel_create(run->device, ir, NULL), wrong, NULL, "a null result");
    case_expect(run, hal_kernel_create_gemm(run->device, NULL, &kernel, &workspace), wrong, NULL,
                "a null description");
    hal_ir_kernel_destroy(ir);
}

/* Records that were spoiled after the builder had checked them. */
static void broken_ir(case_run *run, const void *parameters)
{
    hal_ir_kernel *ir = scale_ir(run);
    for (uint32_t i = 0; ir != NULL && i < ir->record_count && case_is_well(run); i++) {
        hal_ir_record *records = malloc(ir->record_count * sizeof *records);
        if (records == NULL) {
            break;
        }
        for (int how = 0; how < 3; how++) {
            hal_ir_kernel broken = *ir;
            hal_kernel *kernel = NULL;
            memcpy(records, ir->records, ir->record_count * sizeof *records);
            broken.records = records;
            if (how == 0) {
                records[i].opcode = HAL_IR_OPCODE_COUNT + 7;
            } else if (how == 1) {
                records[i].aux = 0x7fffffff;
            } else {
                records[i].a = ir->record_count + 3;
            }
            case_expect(run, hal_kernel_create(run->device, &broken, &kernel), HAL_ERROR_INVALID_IR,
                        NULL, "a spoiled record");
            hal_kernel_release(kernel);
        }
        free(records);
    }
    hal_ir_kernel_destroy(ir);
}

static void divergent_barrier(case_run *run, const void *parameters)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    if (case_ok(run, hal_ir_builder_create("divergent", &b), "a builder")) {
        hal_ir_group_size(b, 32, 1, 1);
        hal_ir_if(b, hal_ir_lt(b, hal_ir_id(b, HAL_IR_LOCAL_ID, 0), hal_ir_u32(b, 5)));
        hal_ir_barrier(b);
        hal_ir_end(b);
        case_expect(run, hal_ir_builder_finish(b, &ir), HAL_ERROR_INVALID_IR, "barrier",
                    "a barrier that some work-items pass by");
    }
    hal_ir_builder_destroy(b);
    hal_ir_kernel_destroy(ir);
}

static void ill_typed(case_run *run, const void *parameters)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    if (case_ok(run, hal_ir_builder_create("ill_typed", &b), "a builder")) {
        const hal_ir_value sum = hal_ir_add(b, hal_ir_f32(b, 1.0f), hal_ir_i32(b, 1));
        case_check(run, sum == HAL_IR_NONE, "f32 + i32 gave a value");
        case_check(run, hal_ir_builder_get_status(b) == HAL_ERROR_INVALID_IR,
                   "the error did not stick");
        case_expect(run, hal_ir_builder_finish(b, &ir), HAL_ERROR_INVALID_IR, NULL, "f32 + i32");
    }
    hal_ir_builder_destroy(b);
    hal_ir_kernel_destroy(ir);
}

/* out[i] = 1000 + i * 11, but 999 for the one `changed`; each a separate constant. */
static hal_kernel *kernel_of_constants(case_run *run, uint32_t count, uint32_t changed)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    hal_kernel *kernel = NULL;
    if (case_ok(run, hal_ir_builder_create("constants", &b), "a builder")) {
        hal_ir_group_size(b, 1, 1, 1);
        const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
        const hal_ir_value zero = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
        for (uint32_t i = 0; i < count; i++) {
            const hal_ir_value value = hal_ir_u32(b, i == changed ? 999 : 1000 + i * 11);
            hal_ir_store_wide(b, out, zero, (int32_t)i, HAL_IR_NONE, value);
        }
        if (case_ok(run, hal_ir_builder_finish(b, &ir), "hal_ir_builder_finish")) {
            case_ok(run, hal_kernel_create(run->device, ir, &kernel), "hal_kernel_create");
        }
    }
    hal_ir_builder_destroy(b);
    hal_ir_kernel_destroy(ir);
    return kernel;
}

/* Kernels of one name and one shape that differ in a single constant, all alive. */
static void other_constants(case_run *run, const void *parameters)
{
    enum { COUNT = 24 };
    const uint32_t grid[3] = {1, 1, 1};
    hal_kernel *kernels[COUNT] = {NULL};
    hal_buffer *out = words_create(run, run->queue, COUNT, 0, 0);
    const hal_range range = {out, 0, HAL_WHOLE};
    bool well = out != NULL;
    for (uint32_t i = 0; i < COUNT && well; i++) {
        kernels[i] = kernel_of_constants(run, COUNT, i);
        well = kernels[i] != NULL;
    }
    for (uint32_t i = 0; i < COUNT && well; i++) {
        uint32_t words[COUNT];
        well = case_ok(run, hal_queue_dispatch(run->queue, kernels[i], grid, &range, 1, NULL, 0),
                       "dispatch") &&
               case_ok(run, hal_queue_read(run->queue, out, 0, sizeof words, words), "read");
        for (uint32_t k = 0; k < COUNT && well; k++) {
            const uint32_t expected = k == i ? 999 : 1000 + k * 11;
            well = case_check(run, words[k] == expected, "constant %u of kernel %u is %u, not %u",
                              k, i, words[k], expected);
        }
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        hal_kernel_release(kernels[i]);
    }
    hal_buffer_release(out);
}

/* out[global id] = local id + 100 * groups: depends on the group's size only. */
static hal_kernel *kernel_of_group(case_run *run, uint32_t items)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    hal_kernel *kernel = NULL;
    if (case_ok(run, hal_ir_builder_create("grouped", &b), "a builder")) {
        hal_ir_group_size(b, items, 1, 1);
        const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
        const hal_ir_value group = hal_ir_id(b, HAL_IR_GROUP_ID, 0);
        const hal_ir_value lane = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
        const hal_ir_value items_of = hal_ir_scalar_value(b, "items", HAL_TYPE_U32);
        const hal_ir_value hundreds =
            hal_ir_mul(b, hal_ir_id(b, HAL_IR_GROUP_COUNT, 0), hal_ir_u32(b, 100));
        hal_ir_store(b, out, hal_ir_add(b, hal_ir_mul(b, group, items_of), lane),
                     hal_ir_add(b, lane, hundreds));
        if (case_ok(run, hal_ir_builder_finish(b, &ir), "hal_ir_builder_finish")) {
            case_ok(run, hal_kernel_create(run->device, ir, &kernel), "hal_kernel_create");
        }
    }
    hal_ir_builder_destroy(b);
    hal_ir_kernel_destroy(ir);
    return kernel;
}

/* Kernels that differ in nothing but their groups, all alive. */
static void other_group_size(case_run *run, const void *parameters)
{
    enum { COUNT = 192, SIZES = 4 };
    static const uint32_t sizes[SIZES] = {8, 64, 32, 1};
    hal_kernel *kernels[SIZES] = {NULL};
    hal_buffer *out = words_create(run, run->queue, COUNT, 0, 0);
    const hal_range range = {out, 0, HAL_WHOLE};
    bool well = out != NULL;
    for (uint32_t i = 0; i < SIZES && well; i++) {
        kernels[i] = kernel_of_group(run, sizes[i]);
        well = kernels[i] != NULL;
    }
    for (uint32_t i = 0; i < SIZES && well; i++) {
        uint32_t words[COUNT];
        const uint32_t groups = COUNT / sizes[i], grid[3] = {groups, 1, 1};
        well = case_ok(run, hal_queue_fill(run->queue, range, 7), "fill") &&
               case_ok(run,
                       hal_queue_dispatch(run->queue, kernels[i], grid, &range, 1, &sizes[i],
                                          sizeof sizes[i]),
                       "dispatch") &&
               case_ok(run, hal_queue_read(run->queue, out, 0, sizeof words, words), "read");
        for (uint32_t k = 0; k < COUNT && well; k++) {
            const uint32_t expected = k % sizes[i] + 100 * groups;
            well = case_check(run, words[k] == expected,
                              "with groups of %u word %u is %u instead of %u", sizes[i], k,
                              words[k], expected);
        }
    }
    for (uint32_t i = 0; i < SIZES; i++) {
        hal_kernel_release(kernels[i]);
    }
    hal_buffer_release(out);
}

static void group_too_large(case_run *run, const void *parameters)
{
    const uint32_t most = run->info->max_group_items;
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    hal_kernel *kernel = NULL;
    if (most < HAL_IR_MAX_GROUP_ITEMS &&
        case_ok(run, hal_ir_builder_create("large", &b), "a builder")) {
        hal_ir_group_size(b, most + 1, 1, 1);
        const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
        hal_ir_store(b, out, hal_ir_global_id(b, 0), hal_ir_u32(b, 1));
        if (case_ok(run, hal_ir_builder_finish(b, &ir), "hal_ir_builder_finish")) {
            case_expect(run, hal_kernel_create(run->device, ir, &kernel), HAL_ERROR_UNSUPPORTED,
                        NULL, "a group larger than the device's");
        }
    }
    hal_ir_builder_destroy(b);
    hal_ir_kernel_destroy(ir);
    hal_kernel_release(kernel);
}

static void shared_too_large(case_run *run, const void *parameters)
{
    const uint32_t most = run->info->shared_bytes;
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    hal_kernel *kernel = NULL;
    if (most < HAL_IR_MAX_SHARED_BYTES &&
        case_ok(run, hal_ir_builder_create("shared", &b), "a builder")) {
        const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
        const hal_ir_memory_id all = hal_ir_shared(b, "all", HAL_TYPE_U32, most / 4 + 1);
        const hal_ir_value zero = hal_ir_u32(b, 0);
        hal_ir_store(b, all, zero, zero);
        hal_ir_store(b, out, zero, hal_ir_load(b, all, zero));
        if (case_ok(run, hal_ir_builder_finish(b, &ir), "hal_ir_builder_finish")) {
            case_expect(run, hal_kernel_create(run->device, ir, &kernel), HAL_ERROR_UNSUPPORTED,
                        NULL, "more shared memory than the device's");
        }
    }
    hal_ir_builder_destroy(b);
    hal_ir_kernel_destroy(ir);
    hal_kernel_release(kernel);
}

/* Types that the device claims make a kernel; those that it does not are refused, but for narrow
 * floats and BOOL, which hal may make of integers. Promise 15. */
static void unclaimed_storage(case_run *run, const void *parameters)
{
    const uint32_t storage = run->info->storage_types, arithmetic = run->info->arithmetic_types;
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        hal_ir_builder *b = NULL;
        hal_ir_kernel *ir = NULL;
        hal_kernel *kernel = NULL;
        if (!case_ok(run, hal_ir_builder_create("stored", &b), "a builder")) {
            return;
        }
        const hal_ir_memory_id x = hal_ir_binding(b, "x", type, HAL_ACCESS_READ);
        const hal_ir_memory_id out = hal_ir_binding(b, "out", type, HAL_ACCESS_WRITE);
        const hal_ir_value i = hal_ir_global_id(b, 0);
        hal_ir_store(b, out, i, hal_ir_load(b, x, i));
        if (case_ok(run, hal_ir_builder_finish(b, &ir), "hal_ir_builder_finish")) {
            const hal_status status = hal_kernel_create(run->device, ir, &kernel);
            const bool claimed = (storage & HAL_TYPE_BIT(type)) != 0 &&
                                 (arithmetic & HAL_TYPE_BIT(hal_type_of_value(type))) != 0;
            const bool rewritten = hal_type_is_narrow_float(type) || type == HAL_TYPE_BOOL;
            case_check(run,
                       claimed ? status == HAL_OK
                               : status == HAL_ERROR_UNSUPPORTED || (rewritten && status == HAL_OK),
                       "%s is %sclaimed, and a kernel with it gave %s", hal_type_name(type),
                       claimed ? "" : "not ", hal_status_name(status));
        }
        hal_ir_builder_destroy(b);
        hal_ir_kernel_destroy(ir);
        hal_kernel_release(kernel);
    }
}

static void native_unknown(case_run *run, const void *parameters)
{
    hal_kernel *kernel = NULL;
    hal_ir_kernel *ir = scale_ir(run);
    if (ir != NULL) {
        hal_ir_kernel signature = *ir;
        signature.record_count = 0;
        case_expect(run,
                    hal_kernel_create_native(run->device, "no-such-format", "x", 1, "scale",
                                             &signature, &kernel),
                    HAL_ERROR_UNSUPPORTED, "no-such-format", "native code of an unknown format");
    }
    hal_ir_kernel_destroy(ir);
}

/* The printed text parses to the same kernel. */
static void text(case_run *run, const void *parameters)
{
    hal_ir_kernel *ir = scale_ir(run), *read = NULL, *nonsense = NULL;
    hal_kernel *one = NULL, *two = NULL;
    char *printed = NULL;
    uint64_t hash[2] = {0, 0}, again[2] = {1, 1};
    if (ir != NULL && case_ok(run, hal_ir_print(ir, &printed), "hal_ir_print") &&
        case_ok(run, hal_ir_parse(printed, strlen(printed), &read), "hal_ir_parse")) {
        hal_ir_hash(ir, hash);
        hal_ir_hash(read, again);
        case_check(run, hash[0] == again[0] && hash[1] == again[1], "the hash is another");
        case_ok(run, hal_kernel_create(run->device, ir, &one), "the kernel as built");
        case_ok(run, hal_kernel_create(run->device, read, &two), "the kernel as read");
        case_check(run, one == two, "the kernel that was read is another object");
        case_expect(run, hal_ir_parse("kernel nonsense {", 17, &nonsense), HAL_ERROR_INVALID_IR,
                    NULL, "text that is no kernel");
    }
    free(printed);
    hal_ir_kernel_destroy(ir);
    hal_ir_kernel_destroy(read);
    hal_kernel_release(one);
    hal_kernel_release(two);
}

static void fragment(case_run *run, const void *parameters)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    hal_kernel *kernel = NULL;
    if (case_ok(run, hal_ir_builder_create_fragment("expression", &b), "a fragment")) {
        hal_ir_output(b, 0, hal_ir_neg(b, hal_ir_input(b, 0, HAL_TYPE_F32)));
        if (case_ok(run, hal_ir_builder_finish(b, &ir), "hal_ir_builder_finish")) {
            const hal_status status = hal_kernel_create(run->device, ir, &kernel);
            case_check(run, status == HAL_ERROR_INVALID_IR || status == HAL_ERROR_INVALID_ARGUMENT,
                       "a kernel of a fragment gave %s", hal_status_name(status));
        }
    }
    hal_ir_builder_destroy(b);
    hal_ir_kernel_destroy(ir);
    hal_kernel_release(kernel);
}

/* Fast functions are requested; a device without them uses the exact ones. */
static void fast_math(case_run *run, const void *parameters)
{
    enum { COUNT = 256 };
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    hal_kernel *kernel = NULL;
    hal_buffer *out = words_create(run, run->queue, 2 * COUNT, 0, 0);
    if (out != NULL && case_ok(run, hal_ir_builder_create("fast", &b), "a builder")) {
        hal_ir_group_size(b, 32, 1, 1);
        const hal_ir_memory_id y = hal_ir_binding(b, "y", HAL_TYPE_F32, HAL_ACCESS_WRITE);
        const hal_ir_value i = hal_ir_global_id(b, 0);
        const hal_ir_value x =
            hal_ir_mul(b, hal_ir_sub(b, hal_ir_cast(b, HAL_TYPE_F32, i), hal_ir_f32(b, 128.0f)),
                       hal_ir_f32(b, 0.0625f));
        hal_ir_store(b, y, i, hal_ir_math(b, HAL_IR_EXP, x, HAL_IR_NONE, 0));
        hal_ir_store_wide(b, y, i, COUNT, HAL_IR_NONE,
                          hal_ir_math(b, HAL_IR_EXP, x, HAL_IR_NONE, HAL_IR_FAST));
        const hal_range range = {out, 0, HAL_WHOLE};
        const uint32_t grid[3] = {COUNT / 32, 1, 1};
        float values[2 * COUNT];
        if (case_ok(run, hal_ir_builder_finish(b, &ir), "finish") &&
            case_ok(run, hal_kernel_create(run->device, ir, &kernel), "hal_kernel_create") &&
            case_ok(run, hal_queue_dispatch(run->queue, kernel, grid, &range, 1, NULL, 0),
                    "dispatch") &&
            case_ok(run, hal_queue_read(run->queue, out, 0, sizeof values, values), "read")) {
            const bool exact = (run->info->abilities & HAL_ABILITY_FAST_MATH) == 0;
            for (int k = 0; k < COUNT; k++) {
                const float error = values[COUNT + k] - values[k];
                case_check(run,
                           exact ? error == 0.0f : error * error < 1e-6f * values[k] * values[k],
                           "fast exp is %.9g where exp is %.9g", (double)values[COUNT + k],
                           (double)values[k]);
            }
        }
    }
    hal_ir_builder_destroy(b);
    hal_ir_kernel_destroy(ir);
    hal_kernel_release(kernel);
    hal_buffer_release(out);
}

void cases_hal_kernel(case_list *list)
{
    case_add(list, same_object, NULL, 0, "kernel/same_object");
    case_add(list, nulls, NULL, 0, "kernel/nulls");
    case_add(list, broken_ir, NULL, 0, "kernel/broken_ir");
    case_add(list, divergent_barrier, NULL, 0, "kernel/divergent_barrier");
    case_add(list, ill_typed, NULL, 0, "kernel/ill_typed");
    case_add(list, other_constants, NULL, 0, "kernel/other_constants");
    case_add(list, other_group_size, NULL, 0, "kernel/other_group_size");
    case_add(list, group_too_large, NULL, 0, "kernel/group_too_large");
    case_add(list, shared_too_large, NULL, 0, "kernel/shared_too_large");
    case_add(list, unclaimed_storage, NULL, 0, "kernel/storage_as_claimed");
    case_add(list, native_unknown, NULL, 0, "kernel/native_of_unknown_format");
    case_add(list, text, NULL, 0, "kernel/from_text");
    case_add(list, fragment, NULL, 0, "kernel/fragment");
    case_add(list, fast_math, NULL, 0, "kernel/fast_math");
}
