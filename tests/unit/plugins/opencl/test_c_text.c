/* The text of small kernels, line by line, in OpenCL C: the folder c_text has NAME.ir and what is
 * expected of it in NAME.cl. What a quirk changes is in NAME_QUIRK.diff, as `diff NAME.cl` prints
 * it. After an intended change, C_TEXT_UPDATE=1 in the environment writes the expected files
 * anew. */

#include "../plugin_host.h"
#include "scratch.h"
#include <hal/ir_build.h>
#include <opencl/opencl_plugin.h>
#include <opencl/quirks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *no_memory(uint64_t bytes, uint64_t alignment)
{
    return NULL;
}

static const hal_host host = {.size = sizeof host,
                              .abi = HAL_PLUGIN_ABI,
                              .allocate = host_allocate,
                              .release = free,
                              .fail = host_fail};

static char *read_all(FILE *file)
{
    char *text = calloc(1, 1 << 16);
    if (file != NULL) {
        text[fread(text, 1, (1 << 16) - 1, file)] = 0;
    }
    return text;
}

static char *read_file(const char *name, const char *ending)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%s", C_TEXT_FOLDER, name, ending);
    FILE *file = fopen(path, "rb");
    char *text = read_all(file);
    if (file != NULL) {
        fclose(file);
    }
    return text;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* What is expected in file NAME.ENDING. */
static void expect(const char *name, const char *ending, const char *text)
{
    char path[512];
    char *expected = read_file(name, ending);
    if (getenv("C_TEXT_UPDATE") != NULL) {
        snprintf(path, sizeof path, "%s/%s.%s", C_TEXT_FOLDER, name, ending);
        write_file(path, text);
    } else if (strcmp(text, expected) != 0) {
        fail_msg("%s.%s differs from this:\n%s", name, ending, text);
    }
    free(expected);
}

/* How a text differs from NAME.cl, as diff prints it. */
static char *difference(const char *name, const char *text)
{
    char path[SCRATCH_BYTES], command[1024];
    assert_int_not_equal(close(scratch_file(path, "c_text")), -1);
    write_file(path, text);
    snprintf(command, sizeof command, "LC_ALL=C diff '%s/%s.cl' %s", C_TEXT_FOLDER, name, path);
    FILE *diff = popen(command, "r");
    char *found = read_all(diff);
    assert_int_equal(WEXITSTATUS(pclose(diff)), 1);
    unlink(path);
    return found;
}

static hal_ir_kernel *parsed(const char *text)
{
    hal_ir_kernel *kernel = NULL;
    if (hal_ir_parse(text, strlen(text), &kernel) != HAL_OK) {
        fail_msg("%s", hal_status_message());
    }
    return kernel;
}

static char *lowered(const char *name, uint32_t quirks, bool in_buffer)
{
    const opencl_card card = {.quirks = quirks, .info = {.subgroup_width = OPENCL_SUBGROUP_WIDTH}};
    char *source = read_file(name, "ir");
    hal_ir_kernel *kernel = parsed(source);
    kit_text text = {.host = &host};
    opencl_set_host(&host);
    if (opencl_lower(&card, kernel, in_buffer, &text) != HAL_OK) {
        fail_msg("%s: %s", name, message);
    }
    hal_ir_kernel_destroy(kernel);
    free(source);
    return text.data;
}

static void check(const char *name, uint32_t quirks, bool in_buffer, const char *expected_name)
{
    char *text = lowered(name, quirks, in_buffer);
    expect(expected_name, "cl", text);
    free(text);
}

static void check_difference(const char *name, uint32_t quirks, const char *expected_name)
{
    char *text = lowered(name, quirks, false), *found = difference(name, text);
    expect(expected_name, "diff", found);
    free(found);
    free(text);
}

TEST(texts_are_as_expected)
{
    static const char *const names[] = {"scale",   "memory",    "control",
                                        "numbers", "subgroups", "rows"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        check(names[i], 0, false, names[i]);
    }
}

TEST(arguments_may_come_from_a_buffer)
{
    check("scale", 0, true, "scale_in_buffer");
}

TEST(quirks_have_their_own_words)
{
    check_difference("memory", OPENCL_QUIRK_SLOW_HALF, "memory_slow_half");
    check_difference("numbers", OPENCL_QUIRK_FMA_OF_ZERO, "numbers_fma_of_zero");
}

TEST(declarations_stand_in_front)
{
    check_difference("scale", OPENCL_QUIRK_OWN_DECLARATIONS, "scale_own_declarations");
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
TEST(work_items_may_be_called)
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

TEST(what_cannot_be_written_is_named)
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

TEST(no_memory_is_told)
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

UNIT_MAIN(NULL, NULL)
