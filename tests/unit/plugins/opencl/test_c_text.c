/* The text of small kernels, line by line, in OpenCL C: the folder c_text has NAME.ir and what is
 * expected of it in NAME.cl. After a change that is meant, C_TEXT_UPDATE=1 in the environment
 * writes the expected files anew. */

#include "unit.h"
#include <hal/ir_build.h>
#include <opencl/opencl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char message[512];

static void *host_allocate(uint64_t bytes, uint64_t alignment)
{
    void *memory = NULL;
    return posix_memalign(&memory, alignment, bytes) == 0 ? memory : NULL;
}

static void *no_memory(uint64_t bytes, uint64_t alignment)
{
    (void)bytes;
    (void)alignment;
    return NULL;
}

static hal_status host_fail(hal_status status, const char *text)
{
    snprintf(message, sizeof message, "%s", text);
    return status;
}

static const hal_host host = {.size = sizeof host,
                              .abi = HAL_PLUGIN_ABI,
                              .allocate = host_allocate,
                              .release = free,
                              .fail = host_fail};

static char *read_file(const char *name, const char *ending)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%s", C_TEXT_FOLDER, name, ending);
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 16);
    if (file != NULL) {
        text[fread(text, 1, (1 << 16) - 1, file)] = 0;
        fclose(file);
    }
    return text;
}

static void write_file(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.cl", C_TEXT_FOLDER, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static hal_ir_kernel *parsed(const char *text)
{
    hal_ir_kernel *kernel = NULL;
    if (hal_ir_parse(text, strlen(text), &kernel) != HAL_OK) {
        fail_msg("%s", hal_status_message());
    }
    return kernel;
}

static void check(const char *name, uint32_t quirks, bool in_buffer, const char *expected_name)
{
    const opencl_card card = {.quirks = quirks, .info = {.subgroup_width = OPENCL_SUBGROUP_WIDTH}};
    char *source = read_file(name, "ir"), *expected = read_file(expected_name, "cl");
    hal_ir_kernel *kernel = parsed(source);
    kit_text text = {.host = &host};
    opencl_set_host(&host);
    if (opencl_lower(&card, kernel, in_buffer, &text) != HAL_OK) {
        fail_msg("%s: %s", name, message);
    }
    if (getenv("C_TEXT_UPDATE") != NULL) {
        write_file(expected_name, text.data);
    } else if (strcmp(text.data, expected) != 0) {
        fail_msg("%s.cl differs from this:\n%s", expected_name, text.data);
    }
    kit_text_release(&text);
    hal_ir_kernel_destroy(kernel);
    free(source);
    free(expected);
}

static void texts_are_as_expected(void **state)
{
    static const char *const names[] = {"scale",   "memory",    "control",
                                        "numbers", "subgroups", "rows"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        check(names[i], 0, false, names[i]);
    }
}

static void arguments_may_come_from_a_buffer(void **state)
{
    check("scale", 0, true, "scale_in_buffer");
}

static void quirks_have_their_own_words(void **state)
{
    check("memory", OPENCL_QUIRK_SLOW_HALF, false, "memory_slow_half");
    check("numbers", OPENCL_QUIRK_FMA_OF_ZERO, false, "numbers_fma_of_zero");
}

static void declarations_stand_in_front(void **state)
{
    check("scale", OPENCL_QUIRK_OWN_DECLARATIONS, false, "scale_own_declarations");
}

static void expect_called(const char *source, bool called)
{
    const opencl_card card = {.quirks = OPENCL_QUIRK_CALLED_ITEMS};
    hal_ir_kernel *kernel = parsed(source);
    kit_text text = {.host = &host};
    opencl_set_host(&host);
    assert_int_equal(opencl_lower(&card, kernel, false, &text), HAL_OK);
    assert_int_equal(strstr(text.data, "work_item(") != NULL, called);
    kit_text_release(&text);
    hal_ir_kernel_destroy(kernel);
}

/* Only of kernels of 16-bit floats without barrier and shared memory whose rows are short. */
static void work_items_may_be_called(void **state)
{
    check("rows", OPENCL_QUIRK_CALLED_ITEMS, false, "rows_called");
    check("rows", OPENCL_QUIRK_CALLED_ITEMS, true, "rows_called_in_buffer");
#define STORED "%z = constant u32 0\n%f = constant f32 1\nstore y[%z], %f\n"
    expect_called("kernel k\ngroup 3 8 1\nbinding y bf16 write\n" STORED, true);
    expect_called("kernel k\ngroup 4 8 1\nbinding y bf16 write\n" STORED, false);
    expect_called("kernel k\ngroup 3 8 1\nbinding y f32 write\n" STORED, false);
    expect_called("kernel k\ngroup 3 8 1\nbinding y f16 write\n" STORED "barrier\n", false);
    expect_called("kernel k\ngroup 3 8 1\nbinding y f16 write\nshared t u32 64\n" STORED, false);
}

static void what_cannot_be_written_is_named(void **state)
{
    static const char text[] = "kernel lanes\nbinding x u32 write\n%z = constant u32 0\n"
                               "%l = lane_id u32\nstore x[%z], %l\n";
    const opencl_card card = {.quirks = 0};
    hal_ir_kernel *kernel = parsed(text);
    kit_text made = {.host = &host};
    opencl_set_host(&host);
    assert_int_equal(opencl_lower(&card, kernel, false, &made), HAL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(message, "kernel lanes, record 1"));
    kit_text_release(&made);
    hal_ir_kernel_destroy(kernel);
}

static void no_memory_is_told(void **state)
{
    const opencl_card card = {.quirks = 0};
    hal_host poor = host;
    poor.allocate = no_memory;
    char *source = read_file("scale", "ir");
    hal_ir_kernel *kernel = parsed(source);
    kit_text text = {.host = &poor};
    opencl_set_host(&poor);
    assert_int_equal(opencl_lower(&card, kernel, false, &text), HAL_ERROR_OUT_OF_MEMORY);
    hal_ir_kernel_destroy(kernel);
    free(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_as_expected),
        cmocka_unit_test(arguments_may_come_from_a_buffer),
        cmocka_unit_test(quirks_have_their_own_words),
        cmocka_unit_test(declarations_stand_in_front),
        cmocka_unit_test(work_items_may_be_called),
        cmocka_unit_test(what_cannot_be_written_is_named),
        cmocka_unit_test(no_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
