/* The text of small kernels in Metal Shading Language: NAME.ir, of this folder's msl or of the
 * OpenCL plugin's tests, and the expected msl/NAME.metal. With a quirk: NAME_QUIRK.metal. */

#include "../plugin_host.h"
#include <metal/lower/lower.h>
#include <kit/host.h>
#include <metal/quirks.h>

static hal_status lower(const char *source, uint32_t quirks, kit_text *text)
{
    hal_ir_kernel *kernel = ir_parse(source);
    kit_host_enter(plugin_host());
    const hal_status status = metal_lower(kernel, quirks, text);
    hal_ir_kernel_destroy(kernel);
    return status;
}

static void check(const char *folder, const char *name, uint32_t quirks, const char *expected)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.ir", folder, name);
    char *source = file_read(path);
    kit_text text = {.host = plugin_host()};
    if (lower(source, quirks, &text) != HAL_OK) {
        fail_msg("%s: %s", name, message);
    }
    snprintf(path, sizeof path, "%s/%s.metal", MSL_FOLDER, expected);
    text_check(path, text.data);
    kit_text_release(&text);
    free(source);
}

TEST(texts_are_as_expected)
{
    static const char *const shared[] = {"scale", "memory", "control", "numbers", "subgroups"};
    for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++) {
        check(IR_FOLDER, shared[i], 0, shared[i]);
    }
    check(MSL_FOLDER, "matrix", 0, "matrix");
    check(MSL_FOLDER, "wide", 0, "wide");
}

TEST(halves_may_be_converted_by_integers)
{
    check(MSL_FOLDER, "wide", METAL_QUIRK_SLOW_HALF, "wide_slow_half");
}

TEST(doubles_are_refused)
{
    kit_text text = {.host = plugin_host()};
    assert_int_equal(lower("kernel k\nbinding x f64 write\n%z = constant u32 0\n"
                           "%d = constant f64 1\nstore x[%z], %d\n",
                           0, &text),
                     HAL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(message, "kernel k"));
    assert_non_null(strstr(message, "got f64"));
    kit_text_release(&text);
}

TEST(wide_atomics_are_refused)
{
    kit_text text = {.host = plugin_host()};
    assert_int_equal(lower("kernel k\nbinding x u64 read_write\n%z = constant u32 0\n"
                           "%d = constant u64 1\n%o = atomic add u64 x[%z], %d\n",
                           0, &text),
                     HAL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(message, "kernel k, record 2"));
    kit_text_release(&text);
}

UNIT_MAIN(NULL, NULL)
