/* The lowering to SPIR-V, without a device: kernels as text, the modules they become as counts of
 * instructions, and the validator over all of them where it is installed. */

#include "unit.h"
#include <hal/ir_build.h>
#include <lower/lower.h>
#include <lower/spirv.h>
#include <lower/spirv_text.h>
#include <lower/spirv_writer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scratch.h"

static const spirv_target plain = {.push_bytes = 128, .subgroup_width = 32, .shared_bytes = 32768};
static const spirv_target rich = {.push_bytes = 256,
                                  .subgroup_width = 32,
                                  .zero_inf_nan = 7,
                                  .denormals = 7,
                                  .nearest_even = 7,
                                  .half_converts = 1,
                                  .half_rounds = 1,
                                  .shared_views = 1,
                                  .shared_bytes = 32768,
                                  .repairs_division = 1};

/* The same for a driver that folds conversions to f16 and back. */
static const spirv_target packing = {.push_bytes = 256,
                                     .subgroup_width = 32,
                                     .zero_inf_nan = 7,
                                     .denormals = 7,
                                     .nearest_even = 7,
                                     .half_converts = 1,
                                     .half_packs = 1,
                                     .shared_views = 1,
                                     .shared_bytes = 32768,
                                     .repairs_division = 1};

static int has_validator(void)
{
    return system("spirv-val --version >/dev/null 2>&1") == 0;
}

static void validate(const spirv_module *module, const char *text)
{
    char path[SCRATCH_BYTES], command[SCRATCH_BYTES + 64];
    const int file = scratch_file(path, "spirv");
    assert_true(file >= 0);
    const size_t bytes = 4 * (size_t)module->word_count;
    assert_int_equal(write(file, module->words, bytes), (ssize_t)bytes);
    close(file);
    snprintf(command, sizeof command, "spirv-val --target-env vulkan1.2 %s >&2", path);
    const int result = system(command);
    unlink(path);
    if (result != 0) {
        fail_msg("spirv-val rejects the module of\n%s", text);
    }
}

static void write_text(void *file, const char *line)
{
    if (strstr(line, "OpUnknown")) {
        fail_msg("%s", line);
    }
    fprintf(file, "%s\n", line);
}

/* The module as text, read back by the assembler, has the same words after the header. */
static void assemble(const spirv_module *module)
{
    char path[SCRATCH_BYTES + 8], command[2 * SCRATCH_BYTES + 128];
    uint32_t *words = malloc(4 * (size_t)module->word_count + 4);
    const int file = scratch_file(path, "spirv");
    assert_true(file >= 0);
    FILE *text = fdopen(file, "w");
    spirv_text(module->words, module->word_count, write_text, text);
    fclose(text);
    snprintf(command, sizeof command,
             "spirv-as --preserve-numeric-ids --target-env vulkan1.2 -o %s.spv %s >&2", path, path);
    assert_int_equal(system(command), 0);
    unlink(path);
    strcat(path, ".spv");
    FILE *binary = fopen(path, "rb");
    assert_non_null(binary);
    assert_int_equal(fread(words, 4, module->word_count + 1, binary), module->word_count);
    fclose(binary);
    unlink(path);
    assert_memory_equal(words + 5, module->words + 5, 4 * (size_t)(module->word_count - 5));
    free(words);
}

static spirv_module lower(const char *text, const spirv_target *target)
{
    char problem[256] = "";
    hal_ir_kernel *kernel = NULL;
    spirv_module module;
    if (hal_ir_parse(text, strlen(text), &kernel) != HAL_OK) {
        fail_msg("%s\n%s", hal_status_message(), text);
    }
    if (spirv_lower(kernel, target, &module, problem, sizeof problem) != HAL_OK) {
        fail_msg("%s\n%s", problem, text);
    }
    hal_ir_kernel_destroy(kernel);
    assert_int_equal(module.words[0], SPV_MAGIC);
    assert_int_equal(module.words[1], SPV_VERSION_1_5);
    if (has_validator()) {
        validate(&module, text);
        assemble(&module);
    }
    return module;
}

/* Instructions of an opcode whose operand number `operand` (from 1) is `value`; 0: any. */
static uint32_t count_with(const spirv_module *module, uint32_t opcode, uint32_t operand,
                           uint32_t value)
{
    uint32_t count = 0;
    for (uint32_t at = 5; at < module->word_count; at += module->words[at] >> 16) {
        assert_true(module->words[at] >> 16 > 0);
        count += (module->words[at] & 0xffff) == opcode &&
                 (operand == 0 || module->words[at + operand] == value);
    }
    return count;
}

static uint32_t count(const spirv_module *module, uint32_t opcode)
{
    return count_with(module, opcode, 0, 0);
}

static uint32_t modes(const spirv_module *module, uint32_t mode)
{
    return count_with(module, SPV_OP_EXECUTION_MODE, 2, mode);
}

#define HEAD "kernel k\ngroup 64 1 1\n"

TEST(arithmetic_is_not_contracted)
{
    spirv_module m = lower(HEAD "binding x f32 read_write\n"
                                "%i = local_id u32 x\n"
                                "%a = load f32 x[%i]\n"
                                "%b = mul f32 %a, %a\n"
                                "%c = add f32 %b, %a\n"
                                "%d = fma f32 %a, %b, %c\n"
                                "%e = sub f32 %d, %b\n"
                                "store x[%i], %e\n",
                           &plain);
    assert_int_equal(count(&m, SPV_OP_F_MUL), 1);
    assert_int_equal(count(&m, SPV_OP_F_ADD), 1);
    assert_int_equal(count(&m, SPV_OP_F_SUB), 1);
    assert_int_equal(count_with(&m, SPV_OP_DECORATE, 2, SPV_DECORATION_NO_CONTRACTION), 4);
    assert_int_equal(m.argument_bytes, 8);
    free(m.words);
}

TEST(modes_are_asked_for_where_they_are)
{
    static const char text[] = HEAD "binding x f32 write\n"
                                    "%i = local_id u32 x\n"
                                    "%a = constant f32 1\n"
                                    "store x[%i], %a\n";
    spirv_module bare = lower(text, &plain), full = lower(text, &rich);
    assert_int_equal(modes(&bare, SPV_MODE_DENORM_PRESERVE), 0);
    assert_int_equal(modes(&full, SPV_MODE_DENORM_PRESERVE), 3);
    assert_int_equal(modes(&full, SPV_MODE_SIGNED_ZERO_INF_NAN_PRESERVE), 3);
    assert_int_equal(modes(&full, SPV_MODE_ROUNDING_MODE_RTE), 3);
    assert_int_equal(modes(&full, SPV_MODE_LOCAL_SIZE), 1);
    free(bare.words);
    free(full.words);
}

/* One reciprocal and six fused operations, or f64 where an exponent is near an end. */
TEST(division_is_made_exact)
{
    static const char text[] = HEAD "binding x f32 read_write\n"
                                    "%i = local_id u32 x\n"
                                    "%a = load f32 x[%i]\n"
                                    "%b = load f32 x[%i + 64]\n"
                                    "%c = div f32 %a, %b\n"
                                    "store x[%i], %c\n";
    spirv_module own = lower(text, &plain), exact = lower(text, &rich);
    assert_int_equal(count(&own, SPV_OP_F_DIV), 1);
    assert_int_equal(count(&own, SPV_OP_EXT_INST), 0);
    assert_int_equal(count(&exact, SPV_OP_F_DIV), 2);
    assert_int_equal(count_with(&exact, SPV_OP_EXT_INST, 4, SPV_GLSL_FMA), 6);
    assert_int_equal(count(&exact, SPV_OP_F_CONVERT), 3);
    free(own.words);
    free(exact.words);
}

/* By additions of 2^52, each a step that no driver may leave out. */
TEST(integral_values_of_f64_are_computed_where_a_driver_is_wrong)
{
    static const char text[] = HEAD "binding x f64 read_write\n"
                                    "%i = local_id u32 x\n"
                                    "%a = load f64 x[%i]\n"
                                    "%b = rint f64 %a\n"
                                    "%c = trunc f64 %b\n"
                                    "%d = floor f64 %c\n"
                                    "store x[%i], %d\n";
    spirv_target wrong = plain;
    wrong.repairs_integral = 1;
    spirv_module own = lower(text, &plain), computed = lower(text, &wrong);
    assert_int_equal(count(&own, SPV_OP_EXT_INST), 3);
    assert_int_equal(count(&computed, SPV_OP_EXT_INST), 0);
    assert_int_equal(count(&computed, SPV_OP_F_ADD), 3);
    assert_int_equal(count(&computed, SPV_OP_F_SUB), 5);
    assert_int_equal(count_with(&computed, SPV_OP_DECORATE, 2, SPV_DECORATION_NO_CONTRACTION), 8);
    free(own.words);
    free(computed.words);
}

/* Those that NVIDIA's compiler folds wrongly, each for itself. */
TEST(what_a_driver_folds_wrongly_is_hidden)
{
    static const char text[] = HEAD "binding x i64 read_write\n"
                                    "binding y f32 read_write\n"
                                    "%i = local_id u32 x\n"
                                    "%a = load i64 x[%i]\n"
                                    "%b = constant i64 2147483648\n"
                                    "%c = mul i64 %a, %b\n"
                                    "%d = abs i64 %c\n"
                                    "%n = constant f32 nan:0x7f800001\n"
                                    "store x[%i], %d\n"
                                    "store y[%i], %n\n";
    static const uint32_t kinds[] = {0, SPIRV_HIDES_FACTORS, SPIRV_HIDES_NEGATIVES,
                                     SPIRV_HIDES_NAN};
    for (uint32_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        spirv_target wrong = plain;
        wrong.hides = kinds[i];
        spirv_module m = lower(text, &wrong);
        assert_int_equal(count(&m, SPV_OP_BITWISE_XOR), kinds[i] != 0);
        free(m.words);
    }
}

TEST(control_is_structured)
{
    spirv_module m = lower(HEAD "binding x f32 read_write\n"
                                "scalar n u32\n"
                                "%zero = constant u32 0\n"
                                "%one = constant u32 1\n"
                                "%f = constant f32 0\n"
                                "%n = scalar u32 n\n"
                                "%i = local_id u32 x\n"
                                "%c = lt bool %i, %n\n"
                                "%v = var f32 %f\n"
                                "%k = for u32 %zero, %n, %one\n"
                                "if %c\n"
                                "%g = get f32 %v\n"
                                "%a = load f32 x[%k]\n"
                                "%s = add f32 %g, %a\n"
                                "set %v, %s\n"
                                "else\n"
                                "set %v, %f\n"
                                "end\n"
                                "end\n"
                                "%r = get f32 %v\n"
                                "store x[%i], %r if %c\n",
                           &plain);
    assert_int_equal(count(&m, SPV_OP_LOOP_MERGE), 1);
    assert_int_equal(count(&m, SPV_OP_SELECTION_MERGE), 2); /* the if, and the guard */
    assert_int_equal(count(&m, SPV_OP_PHI), 1);             /* the value of the for */
    assert_int_equal(count_with(&m, SPV_OP_VARIABLE, 3, SPV_STORAGE_FUNCTION), 1);
    assert_int_equal(count_with(&m, SPV_OP_VARIABLE, 3, SPV_STORAGE_PUSH_CONSTANT), 1);
    free(m.words);
}

/* 20 bindings are 160 bytes: more than 128 of push constants, fewer than 256. */
TEST(large_arguments_go_by_address)
{
    char text[2048] = HEAD;
    for (int i = 0; i < 20; i++) {
        sprintf(text + strlen(text), "binding x%d f32 read_write\n", i);
    }
    strcat(text, "%i = local_id u32 x\n%a = load f32 x3[%i]\nstore x19[%i], %a\n");
    spirv_module small = lower(text, &plain), large = lower(text, &rich);
    assert_int_equal(small.argument_bytes, 160);
    /* A load and a store each make a pointer, and the block of arguments does. */
    assert_int_equal(count(&small, SPV_OP_CONVERT_U_TO_PTR), 3);
    assert_int_equal(count(&large, SPV_OP_CONVERT_U_TO_PTR), 2);
    free(small.words);
    free(large.words);
}

TEST(addresses_are_made_once)
{
    spirv_module m = lower(HEAD "binding x f32 read_write\n"
                                "%i = local_id u32 x\n"
                                "%a = load f32 x[%i]\n"
                                "%b = load f32 x[%i + 64]\n"
                                "%c = add f32 %a, %b\n"
                                "store x[%i + 128], %c\n",
                           &plain);
    assert_int_equal(count(&m, SPV_OP_I_MUL), 1);
    assert_int_equal(count(&m, SPV_OP_I_ADD), 3); /* the address, and two distances */
    free(m.words);
}

/* One array read in vectors and written in elements. */
TEST(shared_memory_in_two_widths)
{
    static const char text[] = HEAD "binding x f32 read_write\n"
                                    "shared s f32 256\n"
                                    "shared h f16 64\n"
                                    "%four = constant u32 4\n"
                                    "%i = local_id u32 x\n"
                                    "%a = load f32 x[%i]\n"
                                    "store s[%i], %a\n"
                                    "store h[%i], %a\n"
                                    "barrier\n"
                                    "%j = mul u32 %i, %four\n"
                                    "%v = load f32x4 s[%j]\n"
                                    "%w = extract f32 %v, 2\n"
                                    "store x[%i], %w\n";
    spirv_module split = lower(text, &plain), views = lower(text, &rich);
    assert_int_equal(count_with(&split, SPV_OP_VARIABLE, 3, SPV_STORAGE_WORKGROUP), 2);
    assert_int_equal(count_with(&views, SPV_OP_VARIABLE, 3, SPV_STORAGE_WORKGROUP), 3);
    assert_int_equal(count_with(&views, SPV_OP_DECORATE, 2, SPV_DECORATION_ALIASED), 3);
    assert_int_equal(count(&views, SPV_OP_CONTROL_BARRIER), 1);
    free(split.words);
    free(views.words);
}

/* Whether the barriers of a kernel order accesses to bindings, and the stores to y take part. */
static void communicates(const char *body, uint32_t expected)
{
    static const char head[] = HEAD "binding x f32 read\n"
                                    "binding y f32 read_write\n"
                                    "shared s f32 64\n"
                                    "%i = local_id u32 x\n"
                                    "%n = constant u32 8\n"
                                    "%z = constant u32 0\n"
                                    "%a = load f32 x[%i]\n"
                                    "store s[%i], %a\n";
    enum { OF_BINDING = 5 }; /* words of a store that has an alignment */
    char text[1024];
    snprintf(text, sizeof text, "%s%s", head, body);
    spirv_module m = lower(text, &plain);
    uint32_t stores = 0, ordered = 0;
    for (uint32_t at = 5; at < m.word_count; at += m.words[at] >> 16) {
        if (m.words[at] == (OF_BINDING << 16 | SPV_OP_STORE)) {
            stores++;
            ordered += (m.words[at + 3] & SPV_ACCESS_NON_PRIVATE) != 0;
        }
    }
    const uint32_t semantics = SPV_SEMANTICS_ACQUIRE_RELEASE | SPV_SEMANTICS_WORKGROUP_MEMORY |
                               SPV_SEMANTICS_MAKE_AVAILABLE | SPV_SEMANTICS_MAKE_VISIBLE;
    assert_int_equal(stores, 1);
    assert_int_equal(ordered, expected);
    assert_int_equal(count_with(&m, SPV_OP_CONSTANT, 3, semantics), !expected);
    assert_int_equal(count_with(&m, SPV_OP_CONSTANT, 3, semantics | SPV_SEMANTICS_UNIFORM_MEMORY),
                     expected);
    free(m.words);
}

/* A barrier leaves accesses to bindings in flight where no work-item writes for another one. */
TEST(barriers_order_bindings_that_work_items_share)
{
    communicates("barrier\nstore y[%i], %a\n", 0);
    communicates("%b = load f32 y[%i]\nstore y[%i], %b\nbarrier\n", 0);
    communicates("%k = for u32 %z, %n, %n\nbarrier\n%b = load f32 x[%k]\nstore s[%i], %b\nend\n"
                 "store y[%i], %a\n",
                 0);
    communicates("store y[%i], %a\nbarrier\n%b = load f32 y[%n]\nstore s[%i], %b\n", 1);
    communicates("%b = load f32 y[%n]\nbarrier\nstore y[%i], %b\n", 1);
    communicates("%k = for u32 %z, %n, %n\nbarrier\nstore y[%i], %a\nend\n", 1);
}

TEST(halves_are_packed_and_hidden)
{
    static const char text[] = HEAD "binding x f16 read_write\n"
                                    "%i = local_id u32 x\n"
                                    "%n = constant u32 4\n"
                                    "%p = mul u32 %i, %n\n"
                                    "%a = load f32x4 x[%p]\n"
                                    "%b = extract f32 %a, 0\n"
                                    "%c = narrow f32 f16 %b\n"
                                    "%v = pack f32x4 %c, %b, %b, %c\n"
                                    "store x[%p], %v\n";
    spirv_module m = lower(text, &packing);
    /* One for the rounding, two for four elements; each is hidden. What is loaded, and the rounded
     * value, are converted. */
    assert_int_equal(count_with(&m, SPV_OP_EXT_INST, 4, SPV_GLSL_PACK_HALF_2X16), 3);
    assert_int_equal(count(&m, SPV_OP_BITWISE_XOR), 3);
    assert_int_equal(count(&m, SPV_OP_F_CONVERT), 5);
    free(m.words);
    m = lower(text, &rich);
    assert_int_equal(count_with(&m, SPV_OP_EXT_INST, 4, SPV_GLSL_PACK_HALF_2X16), 0);
    free(m.words);
}

TEST(bfloats_are_rounded_in_place)
{
    spirv_module m = lower(HEAD "binding x bf16 read_write\n"
                                "%i = local_id u32 x\n"
                                "%n = constant u32 2\n"
                                "%p = mul u32 %i, %n\n"
                                "%a = load f32x2 x[%p]\n"
                                "%b = extract f32 %a, 0\n"
                                "%c = extract f32 %a, 1\n"
                                "%d = narrow f32 bf16 %b\n"
                                "%v = pack f32x2 %d, %c\n"
                                "store x[%p], %v\n",
                           &packing);
    /* Three roundings shift their lowest bit down, and the lower one of the pair its result. */
    assert_int_equal(count(&m, SPV_OP_SHIFT_RIGHT_LOGICAL), 4);
    assert_int_equal(count(&m, SPV_OP_SHIFT_LEFT_LOGICAL), 1);
    assert_int_equal(count(&m, SPV_OP_SELECT), 3);
    free(m.words);
}

TEST(subgroups_make_a_group_flat)
{
    spirv_module m = lower("kernel k\ngroup 4 8 1\n"
                           "binding x f32 write\n"
                           "%w = constant u32 4\n"
                           "%i = local_id u32 x\n"
                           "%j = local_id u32 y\n"
                           "%jw = mul u32 %j, %w\n"
                           "%p = add u32 %i, %jw\n"
                           "%a = cast f32 %p\n"
                           "%s = subgroup_reduce add f32 %a\n"
                           "store x[%p], %s\n",
                           &plain);
    assert_int_equal(m.uses_subgroups, 1);
    assert_int_equal(count_with(&m, SPV_OP_EXECUTION_MODE, 3, 32), 1); /* LocalSize 32 1 1 */
    assert_int_equal(count(&m, SPV_OP_GROUP_NON_UNIFORM_SHUFFLE_XOR), 5);
    free(m.words);
}

/* Every cell of opcode and type that has a lowering at all goes through the validator. */
TEST(every_operation)
{
    static const char *const types[] = {"i32", "u32", "i64", "u64", "f32", "f64"};
    static const char *const binary[] = {"add", "sub", "mul", "div", "rem", "min", "max"};
    static const char *const whole[] = {"mulhi", "and", "or", "xor", "shl", "shr"};
    static const char *const stored[] = {"bool", "i8", "u8", "i16", "u16", "f16", "bf16"};
    static const char *const values[] = {"bool", "i32", "u32", "i32", "u32", "f32", "f32"};
    char text[4096];
    for (int t = 0; t < 6; t++) {
        const char *y = types[t];
        const int length =
            sprintf(text,
                    HEAD "binding x %s read_write\n%%i = local_id u32 x\n%%a = load %s x[%%i]\n"
                         "%%b = load %s x[%%i + 1]\n%%n = neg %s %%a\n%%m = abs %s %%b\n"
                         "store x[%%i + 2], %%n\nstore x[%%i + 3], %%m\n",
                    y, y, y, y, y);
        char *at = text + length;
        for (int k = 0; k < 7; k++) {
            at += sprintf(at, "%%r%d = %s %s %%a, %%b\nstore x[%%i + %d], %%r%d\n", k, binary[k], y,
                          4 + k, k);
        }
        for (int k = 0; k < 6 && t < 4; k++) {
            at += sprintf(at, "%%w%d = %s %s %%a, %%b\nstore x[%%i + %d], %%w%d\n", k, whole[k], y,
                          12 + k, k);
        }
        for (int k = 0; k < 6; k++) {
            at += sprintf(at,
                          "%%c%d = cast %s %%a\n%%d%d = cast %s %%c%d\nstore x[%%i + %d], "
                          "%%d%d\n",
                          k, types[k], k, y, k, 20 + k, k);
        }
        free(lower(text, &plain).words);
        free(lower(text, &rich).words);
    }
    for (int t = 0; t < 7; t++) {
        sprintf(text,
                HEAD "binding x %s read_write\nshared s %s 64\n%%i = local_id u32 x\n"
                     "%%a = load %s x[%%i]\n%%v = load %sx4 x[%%i]\nstore x[%%i + 8], %%v\n"
                     "%%w = load %sx2 x[%%i]\nstore x[%%i + 8], %%w\nstore s[%%i], %%a\n"
                     "barrier\n%%b = load %s s[%%i]\nstore x[%%i], %%b\n",
                stored[t], stored[t], values[t], values[t], values[t], values[t]);
        free(lower(text, &plain).words);
        free(lower(text, &rich).words);
        free(lower(text, &packing).words);
    }
    if (!has_validator()) {
        print_message("spirv-val is not installed: lowered only\n");
    }
}

/* The validator of Debian 12 does not know cooperative matrices. */
TEST(matrices_are_cooperative)
{
    static const char text[] =
        "kernel k\ngroup 32 1 1\nbinding a u32 read\nbinding c f32 read_write\n"
        "%i = local_id u32 x\n%a = load u32x4 a[%i]\n%b = load u32x2 a[%i + 4]\n"
        "%c = load f32x4 c[%i]\n%r = matrix_multiply f16 f32x4 %a, %b, %c\n"
        "%s = matrix_multiply bf16 f32x4 %a, %b, %r\n%t = matrix_multiply f16 f32x4 %a, %b, %s\n"
        "store c[%i], %t\n";
    char problem[128] = "";
    hal_ir_kernel *kernel = NULL;
    spirv_module module;
    assert_int_equal(hal_ir_parse(text, strlen(text), &kernel), HAL_OK);
    assert_int_equal(spirv_lower(kernel, &rich, &module, problem, sizeof problem), HAL_OK);
    assert_true(module.uses_subgroups);
    assert_int_equal(count_with(&module, SPV_OP_COOPERATIVE_MATRIX_MUL_ADD, 0, 0), 3);
    assert_int_equal(count_with(&module, SPV_OP_TYPE_COOPERATIVE_MATRIX, 0, 0), 5);
    assert_int_equal(count_with(&module, SPV_OP_CAPABILITY, 1, SPV_CAPABILITY_COOPERATIVE_MATRIX),
                     1);
    assert_int_equal(count_with(&module, SPV_OP_CAPABILITY, 1, SPV_CAPABILITY_BFLOAT16_TYPE), 1);
    assert_int_equal(count_with(&module, SPV_OP_EXTENSION, 0, 0), 2);
    free(module.words);
    hal_ir_kernel_destroy(kernel);
}

TEST(subgroups_of_none_are_refused)
{
    static const char text[] = HEAD "binding x u32 write\n%i = lane_id u32\nstore x[%i], %i\n";
    const spirv_target none = {.push_bytes = 128};
    char problem[128] = "";
    hal_ir_kernel *kernel = NULL;
    spirv_module module;
    assert_int_equal(hal_ir_parse(text, strlen(text), &kernel), HAL_OK);
    assert_int_equal(spirv_lower(kernel, &none, &module, problem, sizeof problem),
                     HAL_ERROR_UNSUPPORTED);
    assert_non_null(strstr(problem, "subgroups"));
    assert_null(module.words);
    hal_ir_kernel_destroy(kernel);
}

TEST(declarations_are_unique)
{
    spirv_writer writer = {0};
    uint32_t ids[3000], words = 0;
    const uint32_t type = UNIQUE(&writer, SPV_OP_TYPE_INT, 0, 32, 0);
    const uint32_t matrix = UNIQUE(&writer, SPV_OP_TYPE_COOPERATIVE_MATRIX, 0, 1, 2, 3, 4, 5);
    for (uint32_t i = 0; i < 3000; i++) { /* through several growths of the table */
        ids[i] = UNIQUE(&writer, SPV_OP_CONSTANT, type, i);
    }
    assert_int_equal(UNIQUE(&writer, SPV_OP_TYPE_INT, 0, 32, 0), type);
    assert_int_equal(UNIQUE(&writer, SPV_OP_TYPE_COOPERATIVE_MATRIX, 0, 1, 2, 3, 4, 5), matrix);
    for (uint32_t i = 0; i < 3000; i++) {
        assert_int_equal(UNIQUE(&writer, SPV_OP_CONSTANT, type, i), ids[i]);
    }
    spirv_capability(&writer, SPV_CAPABILITY_SHADER);
    spirv_capability(&writer, SPV_CAPABILITY_SHADER);
    const uint32_t name = 7;
    spirv_emit_text(&writer, SPIRV_NAMES, SPV_OP_NAME, &name, 1, "four", NULL, 0);
    uint32_t *module = spirv_finish(&writer, &words);
    assert_int_equal(words, 5 + 2 + 4 + 4 + 7 + 3000 * 4);
    assert_int_equal(module[3], writer.last_id + 1);
    assert_int_equal(module[5], 2u << 16 | SPV_OP_CAPABILITY);
    assert_int_equal(module[7], 4u << 16 | SPV_OP_NAME); /* the text ends with a whole zero word */
    assert_int_equal(module[10], 0);
    free(module);
    spirv_release(&writer);
}

UNIT_MAIN(NULL, NULL)
