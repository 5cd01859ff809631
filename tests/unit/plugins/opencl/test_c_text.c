/* The text of small kernels in OpenCL C: the folder c_text has NAME.ir and the expected NAME.cl.
 * The change that a quirk makes is in NAME_QUIRK.diff, as `diff NAME.cl` prints it. */

#include "../plugin_host.h"
#include "scratch.h"
#include <opencl/lower/lower.h>
#include <kit/host.h>
#include <kit/quirks.h>
#include <opencl/quirks.h>

static void *no_memory(const hal_host *host, uint64_t bytes, uint64_t alignment)
{
    return NULL;
}

/* Compares a text with the file NAME.ENDING. */
static void expect(const char *name, const char *ending, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.%s", C_TEXT_FOLDER, name, ending);
    text_check(path, text);
}

/* How a text differs from NAME.cl, as diff prints it. */
static char *difference(const char *name, const char *text)
{
    char path[SCRATCH_BYTES], command[1024];
    assert_int_not_equal(close(scratch_file(path, "c_text")), -1);
    file_write(path, text);
    snprintf(command, sizeof command, "LC_ALL=C diff '%s/%s.cl' %s", C_TEXT_FOLDER, name, path);
    FILE *diff = popen(command, "r");
    char *found = calloc(1, 1 << 16);
    found[fread(found, 1, (1 << 16) - 1, diff)] = 0;
    assert_int_equal(WEXITSTATUS(pclose(diff)), 1);
    unlink(path);
    return found;
}

static char *lowered(const char *name, uint32_t quirks, bool in_buffer)
{
    const opencl_card card = {
        .quirks = quirks,
        .info = {.subgroup_width = quirks & OPENCL_QUIRK_WARPS ? (uint32_t)OPENCL_WARP_WIDTH
                                                               : OPENCL_SUBGROUP_WIDTH,
                 .matrix_types = quirks & OPENCL_QUIRK_WARPS ? HAL_TYPES_MATRIX : 0,
                 .features = quirks & OPENCL_QUIRK_WARPS ? HAL_FEATURE_ASYNC_COPY : 0}};
    char path[512];
    snprintf(path, sizeof path, "%s/%s.ir", C_TEXT_FOLDER, name);
    char *source = file_read(path);
    hal_ir_kernel *kernel = ir_parse(source);
    kit_text text = {.host = plugin_host()};
    kit_host_enter(plugin_host());
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
    static const char *const names[] = {"scale",     "memory", "control", "numbers",
                                        "subgroups", "rows",   "folded"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        check(names[i], 0, false, names[i]);
    }
}

TEST(warps_are_subgroups)
{
    check("subgroups", OPENCL_QUIRK_WARPS, false, "subgroups_warps");
    check("matrices", OPENCL_QUIRK_WARPS, false, "matrices_warps");
}

TEST(copies_are_asynchronous)
{
    check("copies", OPENCL_QUIRK_WARPS, false, "copies_warps");
}

TEST(arguments_may_come_from_a_buffer)
{
    check("scale", 0, true, "scale_in_buffer");
}

TEST(quirks_have_their_own_words)
{
    check_difference("memory", OPENCL_QUIRK_SLOW_HALF, "memory_slow_half");
    check_difference("memory", OPENCL_QUIRK_WARPS, "memory_warps");
    check_difference("numbers", OPENCL_QUIRK_WARPS, "numbers_warps");
    check_difference("numbers", OPENCL_QUIRK_FMA_OF_ZERO, "numbers_fma_of_zero");
}

TEST(what_is_folded_wrongly_is_hidden)
{
    check_difference("folded", OPENCL_QUIRK_WRONG_WIDENING, "folded_wrong_widening");
    check_difference("folded", OPENCL_QUIRK_WRONG_ZEROS, "folded_wrong_zeros");
    check_difference("folded", OPENCL_QUIRK_WRONG_EXTREMA, "folded_wrong_extrema");
    check_difference("folded", OPENCL_QUIRK_WRONG_ABS, "folded_wrong_abs");
}

static hal_quirk quirk_of(const opencl_card *card, const char *name)
{
    hal_quirk quirk = {.name = ""};
    for (uint32_t i = 0; quirk.name && strcmp(quirk.name, name) != 0; i++) {
        quirk = (hal_quirk){.size = sizeof quirk};
        kit_quirk_at(opencl_quirk_names, card->quirk_reasons, OPENCL_QUIRK_COUNT, card->quirks, i,
                     &quirk);
    }
    return quirk;
}

/* Those of the driver, removed ones among them, and those that the variable adds. */
TEST(quirks_have_their_reasons)
{
    opencl_card card = {.quirks = 0};
    setenv("HAL_OPENCL_QUIRKS", "shadow,-event_wait", 1);
    card.quirks = opencl_quirks("rusticl", "llvmpipe", card.quirk_reasons);
    unsetenv("HAL_OPENCL_QUIRKS");
    const hal_quirk off = quirk_of(&card, "event_wait"), added = quirk_of(&card, "shadow");
    const hal_quirk known = quirk_of(&card, "fma_of_zero");
    assert_true(off.name && off.is_active == 0 && strstr(off.reason, "clFinish"));
    assert_true(added.name && added.is_active == 1 && strstr(added.reason, "HAL_OPENCL_QUIRKS"));
    assert_true(known.name && known.is_active == 1 && strstr(known.reason, "sum of zeros"));
    assert_null(quirk_of(&card, "lazy_memory").name);
}

TEST(declarations_stand_in_front)
{
    check_difference("scale", OPENCL_QUIRK_OWN_DECLARATIONS, "scale_own_declarations");
}

static void expect_called(const char *source, bool called)
{
    const opencl_card card = {.quirks = OPENCL_QUIRK_CALLED_ITEMS};
    hal_ir_kernel *kernel = ir_parse(source);
    kit_text text = {.host = plugin_host()};
    kit_host_enter(plugin_host());
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
    hal_ir_kernel *kernel = ir_parse(text);
    kit_text made = {.host = plugin_host()};
    kit_host_enter(plugin_host());
    assert_int_equal(opencl_lower(&card, kernel, false, &made), HAL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(message, "kernel lanes, record 1"));
    kit_text_release(&made);
    hal_ir_kernel_destroy(kernel);
}

TEST(no_memory_is_told)
{
    const opencl_card card = {.quirks = 0};
    hal_host poor = *plugin_host();
    poor.allocate = no_memory;
    char path[512];
    snprintf(path, sizeof path, "%s/%s.ir", C_TEXT_FOLDER, "scale");
    char *source = file_read(path);
    hal_ir_kernel *kernel = ir_parse(source);
    kit_text text = {.host = &poor};
    kit_host_enter(&poor);
    assert_int_equal(opencl_lower(&card, kernel, false, &text), HAL_ERROR_OUT_OF_MEMORY);
    hal_ir_kernel_destroy(kernel);
    free(source);
}

UNIT_MAIN(NULL, NULL)
