/* The PTX of small kernels: the folder ptx has NAME.ir, and NAME.SM.ptx for each compute capability
 * at which the code differs. */

#include "../plugin_host.h"
#include <cuda/lower/lower.h>

#include "ir/legalise.h"

/* A device as the plugin describes one. */
static hal_device_info info_of(uint32_t sm)
{
    return (hal_device_info){.size = sizeof(hal_device_info),
                             .name = "card",
                             .subgroup_width = 32,
                             .max_group_items = 1024,
                             .max_group_size = {1024, 1024, 64},
                             .shared_bytes = sm >= 80 ? 227 << 10 : 64 << 10,
                             .max_bindings = HAL_IR_MAX_BINDINGS,
                             .max_vector_bytes = 16,
                             .storage_types = 0x3ffe,
                             .arithmetic_types = 0x3ffe,
                             .exactness = 15,
                             .matrix_types = sm >= 80 ? HAL_TYPES_MATRIX : 0,
                             .features = HAL_FEATURE_ATOMIC_64 | HAL_FEATURE_FAST_MATH |
                                         (sm >= 80 ? HAL_FEATURE_ASYNC_COPY : 0)};
}

static hal_ir_kernel *legalised(const char *text, uint32_t sm)
{
    const hal_device_info info = info_of(sm);
    hal_ir_kernel *kernel = ir_parse(text), *legal = NULL;
    assert_ok(hal_ir_legalise(kernel, &info, &legal));
    hal_ir_kernel_destroy(kernel);
    return legal;
}

static void check(const char *name, uint32_t sm)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.ir", PTX_FOLDER, name);
    char *source = file_read(path);
    hal_ir_kernel *kernel = legalised(source, sm);
    kit_text text = {.host = plugin_host()};
    assert_int_equal(cuda_lower(kernel, sm, &text), HAL_OK);
    snprintf(path, sizeof path, "%s/%s.%u.ptx", PTX_FOLDER, name, sm);
    text_check(path, text.data);
    free(source);
    kit_text_release(&text);
    hal_ir_kernel_destroy(kernel);
}

TEST(test_texts)
{
    static const struct {
        const char *name;
        uint32_t sm;
    } expected[] = {{"vectors", 75},  {"vectors", 80}, {"vectors", 90}, {"storage", 75},
                    {"storage", 80},  {"shared", 75},  {"shared", 80},  {"control", 80},
                    {"integers", 80}, {"matrix", 80},  {"matrix", 90},  {"rounding", 80},
                    {"table", 80}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        check(expected[i].name, expected[i].sm);
    }
}

TEST(test_layout)
{
    static const char text[] = "kernel layout\ngroup 1 1 1\nbinding a f32 write\n"
                               "binding b f32 write\nshared s f32 20000\nshared t u8 3\n"
                               "scalar n u64\nscalar m u32\n%n = scalar u32 m\n"
                               "%f = constant f32 1\nstore a[%n], %f\n";
    hal_ir_kernel *kernel = legalised(text, 80);
    cuda_layout layout;
    cuda_layout_of(kernel, &layout);
    assert_int_equal(layout.scalars, 16);
    assert_int_equal(layout.parameter_bytes, 28);
    assert_int_equal(layout.shared_bytes, 80003);
    assert_int_equal(layout.dynamic_shared, 80003);
    hal_ir_kernel_destroy(kernel);
}

/* A record that no lowering knows is an error with its number. */
TEST(test_unknown)
{
    static const char text[] = "kernel unknown\ngroup 1 1 1\nbinding a f32 write\n"
                               "%i = constant u32 0\n%f = constant f32 1\nstore a[%i], %f\n";
    hal_ir_kernel *kernel = legalised(text, 80);
    hal_ir_record records[8];
    hal_ir_kernel wrong = *kernel;
    memcpy(records, kernel->records, kernel->record_count * sizeof records[0]);
    records[kernel->record_count - 1].opcode = 999;
    wrong.records = records;
    kit_text out = {.host = plugin_host()};
    assert_int_equal(cuda_lower(&wrong, 80, &out), HAL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(message, "opcode 999"));
    kit_text_release(&out);
    hal_ir_kernel_destroy(kernel);
}

UNIT_MAIN(NULL, NULL)
