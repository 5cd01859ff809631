/* kernel.c: making kernels: identity, limits that the device states, errors, text and hashes. */
#include <hal/kernel.h>

#include <stdlib.h>
#include <string.h>

#include "case/cases.h"
#include "hal/fixture.h"

static void same_object(case_run *run, const void *parameters)
{
    hal_kernel *one = scale_kernel(run, run->device), *two = scale_kernel(run, run->device);
    case_check(run, one == two, "the same IR gave two kernels");
    case_check(run, strcmp(hal_kernel_get_name(one), "scale") == 0, "the kernel is called %s",
               hal_kernel_get_name(one));
    case_check(run, hal_kernel_retain(one) == one, "hal_kernel_retain gives another");
    hal_kernel_release(one);
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
    case_check(run, !hal_kernel_retain(NULL) && hal_kernel_get_name(NULL)[0] == 0,
               "a null kernel gives something");
    case_expect(run, hal_kernel_create(NULL, ir, &kernel), wrong, NULL, "a null device");
    case_expect(run, hal_kernel_create(run->device, NULL, &kernel), wrong, NULL, "null IR");
    case_expect(run, hal_kernel_create(run->device, ir, NULL), wrong, NULL, "a null result");
    case_expect(run, hal_kernel_create_gemm(run->device, NULL, &kernel, &workspace), wrong, NULL,
                "a null description");
}

/* Records that were spoiled after the builder had checked them. */
static void broken_ir(case_run *run, const void *parameters)
{
    const hal_ir_kernel *ir = scale_ir(run);
    hal_ir_record *records = case_allocate(run, ir->record_count, sizeof *records);
    for (uint32_t i = 0; i < ir->record_count; i++) {
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
        }
    }
}

static void divergent_barrier(case_run *run, const void *parameters)
{
    hal_ir_builder *b = case_builder(run, "divergent");
    hal_ir_kernel *ir = NULL;
    hal_ir_group_size(b, 32, 1, 1);
    hal_ir_if(b, hal_ir_lt(b, hal_ir_id(b, HAL_IR_LOCAL_ID, 0), hal_ir_u32(b, 5)));
    hal_ir_barrier(b);
    hal_ir_end(b);
    case_expect(run, hal_ir_builder_finish(b, &ir), HAL_ERROR_INVALID_IR, "barrier",
                "a barrier that some work-items pass by");
}

static void ill_typed(case_run *run, const void *parameters)
{
    hal_ir_builder *b = case_builder(run, "ill_typed");
    hal_ir_kernel *ir = NULL;
    const hal_ir_value sum = hal_ir_add(b, hal_ir_f32(b, 1.0f), hal_ir_i32(b, 1));
    case_check(run, sum == HAL_IR_NONE, "f32 + i32 gave a value");
    case_check(run, hal_ir_builder_get_status(b) == HAL_ERROR_INVALID_IR,
               "the error did not stick");
    case_expect(run, hal_ir_builder_finish(b, &ir), HAL_ERROR_INVALID_IR, NULL, "f32 + i32");
}

/* out[i] = 1000 + i * 11, but 999 for the one `changed`; each a separate constant. */
static hal_kernel *kernel_of_constants(case_run *run, uint32_t count, uint32_t changed)
{
    hal_ir_builder *b = case_builder(run, "constants");
    hal_ir_group_size(b, 1, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value zero = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    for (uint32_t i = 0; i < count; i++) {
        const hal_ir_value value = hal_ir_u32(b, i == changed ? 999 : 1000 + i * 11);
        hal_ir_store_wide(b, out, zero, (int32_t)i, HAL_IR_NONE, value);
    }
    return case_kernel(run, b);
}

/* Kernels of one name and one shape that differ in a single constant, all alive. */
static void other_constants(case_run *run, const void *parameters)
{
    enum { COUNT = 24 };
    const uint32_t grid[3] = {1, 1, 1};
    hal_kernel *kernels[COUNT];
    hal_buffer *out = words_create(run, run->queue, COUNT, 0, 0);
    const hal_range range = range_of(out);
    for (uint32_t i = 0; i < COUNT; i++) {
        kernels[i] = kernel_of_constants(run, COUNT, i);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t words[COUNT];
        case_ok(run, hal_queue_dispatch(run->queue, kernels[i], grid, &range, 1, NULL, 0),
                "dispatch");
        case_ok(run, hal_queue_read(run->queue, out, 0, sizeof words, words), "read");
        for (uint32_t k = 0; k < COUNT; k++) {
            const uint32_t expected = k == i ? 999 : 1000 + k * 11;
            case_check(run, words[k] == expected, "constant %u of kernel %u is %u, not %u", k, i,
                       words[k], expected);
        }
    }
}

/* out[global id] = local id + 100 * groups: depends on the group's size only. */
static hal_kernel *kernel_of_group(case_run *run, uint32_t items)
{
    hal_ir_builder *b = case_builder(run, "grouped");
    hal_ir_group_size(b, items, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value group = hal_ir_id(b, HAL_IR_GROUP_ID, 0);
    const hal_ir_value lane = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    const hal_ir_value items_of = hal_ir_scalar_value(b, "items", HAL_TYPE_U32);
    const hal_ir_value hundreds =
        hal_ir_mul(b, hal_ir_id(b, HAL_IR_GROUP_COUNT, 0), hal_ir_u32(b, 100));
    hal_ir_store(b, out, hal_ir_add(b, hal_ir_mul(b, group, items_of), lane),
                 hal_ir_add(b, lane, hundreds));
    return case_kernel(run, b);
}

/* Kernels that differ in nothing but their groups, all alive. */
static void other_group_size(case_run *run, const void *parameters)
{
    enum { COUNT = 192, SIZES = 4 };
    static const uint32_t sizes[SIZES] = {8, 64, 32, 1};
    hal_kernel *kernels[SIZES];
    hal_buffer *out = words_create(run, run->queue, COUNT, 0, 0);
    const hal_range range = range_of(out);
    for (uint32_t i = 0; i < SIZES; i++) {
        kernels[i] = kernel_of_group(run, sizes[i]);
    }
    for (uint32_t i = 0; i < SIZES; i++) {
        uint32_t words[COUNT];
        const uint32_t groups = COUNT / sizes[i], grid[3] = {groups, 1, 1};
        case_ok(run, hal_queue_fill(run->queue, range, 7), "fill");
        case_ok(
            run,
            hal_queue_dispatch(run->queue, kernels[i], grid, &range, 1, &sizes[i], sizeof sizes[i]),
            "dispatch");
        case_ok(run, hal_queue_read(run->queue, out, 0, sizeof words, words), "read");
        for (uint32_t k = 0; k < COUNT; k++) {
            const uint32_t expected = k % sizes[i] + 100 * groups;
            case_check(run, words[k] == expected, "with groups of %u word %u is %u instead of %u",
                       sizes[i], k, words[k], expected);
        }
    }
}

static void group_too_large(case_run *run, const void *parameters)
{
    const uint32_t most = run->info->max_group_items;
    if (most >= HAL_IR_MAX_GROUP_ITEMS) {
        return;
    }
    hal_ir_builder *b = case_builder(run, "large");
    hal_kernel *kernel = NULL;
    hal_ir_group_size(b, most + 1, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    hal_ir_store(b, out, hal_ir_global_id(b, 0), hal_ir_u32(b, 1));
    case_expect(run, hal_kernel_create(run->device, case_ir(run, b), &kernel),
                HAL_ERROR_UNSUPPORTED, NULL, "a group larger than the device's");
}

static void shared_too_large(case_run *run, const void *parameters)
{
    const uint32_t most = run->info->shared_bytes;
    if (most >= HAL_IR_MAX_SHARED_BYTES) {
        return;
    }
    hal_ir_builder *b = case_builder(run, "shared");
    hal_kernel *kernel = NULL;
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_memory_id all = hal_ir_shared(b, "all", HAL_TYPE_U32, most / 4 + 1);
    const hal_ir_value zero = hal_ir_u32(b, 0);
    hal_ir_store(b, all, zero, zero);
    hal_ir_store(b, out, zero, hal_ir_load(b, all, zero));
    case_expect(run, hal_kernel_create(run->device, case_ir(run, b), &kernel),
                HAL_ERROR_UNSUPPORTED, NULL, "more shared memory than the device's");
}

/* The device makes kernels of the types that it claims and refuses others, except narrow floats and
 * BOOL, which hal may rewrite as integers. Promise 15. */
static void unclaimed_storage(case_run *run, const void *parameters)
{
    const uint32_t storage = run->info->storage_types, arithmetic = run->info->arithmetic_types;
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        hal_ir_builder *b = case_builder(run, "stored");
        hal_kernel *kernel = NULL;
        const hal_ir_memory_id x = hal_ir_binding(b, "x", type, HAL_ACCESS_READ);
        const hal_ir_memory_id out = hal_ir_binding(b, "out", type, HAL_ACCESS_WRITE);
        const hal_ir_value i = hal_ir_global_id(b, 0);
        hal_ir_store(b, out, i, hal_ir_load(b, x, i));
        const hal_status status = hal_kernel_create(run->device, case_ir(run, b), &kernel);
        const bool claimed = (storage & HAL_TYPE_BIT(type)) != 0 &&
                             (arithmetic & HAL_TYPE_BIT(hal_type_of_value(type))) != 0;
        const bool rewritten = hal_type_is_narrow_float(type) || type == HAL_TYPE_BOOL;
        hal_kernel_release(kernel);
        case_check(run,
                   claimed ? status == HAL_OK
                           : status == HAL_ERROR_UNSUPPORTED || (rewritten && status == HAL_OK),
                   "%s is %sclaimed, and a kernel with it gave %s", hal_type_name(type),
                   claimed ? "" : "not ", hal_status_name(status));
    }
}

static void native_unknown(case_run *run, const void *parameters)
{
    hal_kernel *kernel = NULL;
    hal_ir_kernel interface = *scale_ir(run);
    interface.record_count = 0;
    case_expect(run,
                hal_kernel_create_native(run->device, "no-such-format", "x", 1, "scale", &interface,
                                         &kernel),
                HAL_ERROR_UNSUPPORTED, "no-such-format", "native code of an unknown format");
}

/* The printed text parses to the same kernel. */
static void text(case_run *run, const void *parameters)
{
    hal_ir_kernel *ir = scale_ir(run), *read = NULL, *nonsense = NULL;
    hal_kernel *one = NULL, *two = NULL;
    char *printed = NULL;
    uint64_t hash[2] = {0, 0}, again[2] = {1, 1};
    case_ok(run, hal_ir_print(ir, &printed), "hal_ir_print");
    case_own(run, free, printed);
    case_ok(run, hal_ir_parse(printed, strlen(printed), &read), "hal_ir_parse");
    hal_ir_hash(ir, hash);
    hal_ir_hash(read, again);
    case_ok(run, hal_kernel_create(run->device, ir, &one), "the kernel as built");
    case_own_kernel(run, one);
    case_ok(run, hal_kernel_create(run->device, read, &two), "the kernel as read");
    case_own_kernel(run, two);
    hal_ir_kernel_destroy(read);
    case_check(run, hash[0] == again[0] && hash[1] == again[1], "the hash is another");
    case_check(run, one == two, "the kernel that was read is another object");
    case_expect(run, hal_ir_parse("kernel nonsense {", 17, &nonsense), HAL_ERROR_INVALID_IR, NULL,
                "text that is no kernel");
}

static void fragment(case_run *run, const void *parameters)
{
    hal_ir_builder *b = NULL;
    hal_kernel *kernel = NULL;
    case_ok(run, hal_ir_builder_create_fragment("expression", &b), "a fragment");
    case_own_builder(run, b);
    hal_ir_output(b, 0, hal_ir_neg(b, hal_ir_input(b, 0, HAL_TYPE_F32)));
    const hal_status status = hal_kernel_create(run->device, case_ir(run, b), &kernel);
    case_check(run, status == HAL_ERROR_INVALID_IR || status == HAL_ERROR_INVALID_ARGUMENT,
               "a kernel of a fragment gave %s", hal_status_name(status));
}

/* Fast functions are requested; a device without them uses the exact ones. */
static void fast_math(case_run *run, const void *parameters)
{
    enum { COUNT = 256 };
    hal_buffer *out = words_create(run, run->queue, 2 * COUNT, 0, 0);
    hal_ir_builder *b = case_builder(run, "fast");
    hal_ir_group_size(b, 32, 1, 1);
    const hal_ir_memory_id y = hal_ir_binding(b, "y", HAL_TYPE_F32, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const hal_ir_value x =
        hal_ir_mul(b, hal_ir_sub(b, hal_ir_cast(b, HAL_TYPE_F32, i), hal_ir_f32(b, 128.0f)),
                   hal_ir_f32(b, 0.0625f));
    hal_ir_store(b, y, i, hal_ir_math(b, HAL_IR_EXP, x, HAL_IR_NONE, 0));
    hal_ir_store_wide(b, y, i, COUNT, HAL_IR_NONE,
                      hal_ir_math(b, HAL_IR_EXP, x, HAL_IR_NONE, HAL_IR_FAST));
    const hal_range range = range_of(out);
    const uint32_t grid[3] = {COUNT / 32, 1, 1};
    float values[2 * COUNT];
    case_ok(run, hal_queue_dispatch(run->queue, case_kernel(run, b), grid, &range, 1, NULL, 0),
            "dispatch");
    case_ok(run, hal_queue_read(run->queue, out, 0, sizeof values, values), "read");
    const bool exact = (run->info->features & HAL_FEATURE_FAST_MATH) == 0;
    for (int k = 0; k < COUNT; k++) {
        const float error = values[COUNT + k] - values[k];
        case_check(run, exact ? error == 0.0f : error * error < 1e-6f * values[k] * values[k],
                   "fast exp is %.9g where exp is %.9g", (double)values[COUNT + k],
                   (double)values[k]);
    }
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
