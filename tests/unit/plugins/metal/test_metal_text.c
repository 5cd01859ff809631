/* The text of small kernels, line by line, in Metal Shading Language: NAME.ir, of this folder's msl
 * or of the OpenCL plugin's tests, and what is expected of it in msl/NAME.metal. What a quirk
 * changes is in NAME_QUIRK.metal. After an intended change, MSL_UPDATE=1 in the environment writes
 * the expected files anew. */

#include "../plugin_host.h"
#include <hal/ir_build.h>
#include <metal/metal_plugin.h>
#include <metal/quirks.h>
#include <string.h>

static const hal_host host = {.size = sizeof host,
                              .abi = HAL_PLUGIN_ABI,
                              .allocate = host_allocate,
                              .release = free,
                              .fail = host_fail};

static char *read_file(const char *folder, const char *name, const char *ending)
{
    char path[512];
    char *text = calloc(1, 1 << 16);
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, ending);
    FILE *file = fopen(path, "rb");
    if (file != NULL) {
        text[fread(text, 1, (1 << 16) - 1, file)] = 0;
        fclose(file);
    }
    return text;
}

static void expect(const char *name, const char *text)
{
    char path[512];
    char *expected = read_file(MSL_FOLDER, name, "metal");
    if (getenv("MSL_UPDATE") != NULL) {
        snprintf(path, sizeof path, "%s/%s.metal", MSL_FOLDER, name);
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        fputs(text, file);
        fclose(file);
    } else if (strcmp(text, expected) != 0) {
        fail_msg("%s.metal differs from this:\n%s", name, text);
    }
    free(expected);
}

static hal_status lower(const char *source, uint32_t quirks, kit_text *text)
{
    hal_ir_kernel *kernel = NULL;
    if (hal_ir_parse(source, strlen(source), &kernel) != HAL_OK) {
        fail_msg("%s", hal_status_message());
    }
    metal_set_host(&host);
    const hal_status status = metal_lower(kernel, quirks, text);
    hal_ir_kernel_destroy(kernel);
    return status;
}

static void check(const char *folder, const char *name, uint32_t quirks, const char *expected)
{
    char *source = read_file(folder, name, "ir");
    kit_text text = {.host = &host};
    if (lower(source, quirks, &text) != HAL_OK) {
        fail_msg("%s: %s", name, message);
    }
    expect(expected, text.data);
    kit_text_release(&text);
    free(source);
}

static void texts_are_as_expected(void **state)
{
    static const char *const shared[] = {"scale", "memory", "control", "numbers", "subgroups"};
    for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++) {
        check(IR_FOLDER, shared[i], 0, shared[i]);
    }
    check(MSL_FOLDER, "matrix", 0, "matrix");
    check(MSL_FOLDER, "wide", 0, "wide");
}

static void halves_may_be_converted_by_integers(void **state)
{
    check(MSL_FOLDER, "wide", METAL_QUIRK_SLOW_HALF, "wide_slow_half");
}

static void doubles_are_refused(void **state)
{
    kit_text text = {.host = &host};
    assert_int_equal(lower("kernel k\nbinding x f64 write\n%z = constant u32 0\n"
                           "%d = constant f64 1\nstore x[%z], %d\n",
                           0, &text),
                     HAL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(message, "kernel k"));
    assert_non_null(strstr(message, "got f64"));
    kit_text_release(&text);
}

static void wide_atomics_are_refused(void **state)
{
    kit_text text = {.host = &host};
    assert_int_equal(lower("kernel k\nbinding x u64 read_write\n%z = constant u32 0\n"
                           "%d = constant u64 1\n%o = atomic add u64 x[%z], %d\n",
                           0, &text),
                     HAL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(message, "kernel k, record 2"));
    kit_text_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_as_expected),
        cmocka_unit_test(halves_may_be_converted_by_integers),
        cmocka_unit_test(doubles_are_refused),
        cmocka_unit_test(wide_atomics_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
