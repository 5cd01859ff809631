/* The legaliser: kernels are run in the reference interpreter before and after, and have to write
 * the same bytes; what had to go is gone; what cannot be had is refused in a sentence. */
#include "ir_fixture.h"
#include <kit/interpret.h>
#include <math.h>
#include <stdio.h>

#include "ir/legalise.h"

static hal_ir_kernel *legalised(const char *text, const hal_device_info *info)
{
    hal_ir_kernel *kernel = ir_read(text), *legal = NULL;
    assert_ok(hal_ir_legalise(kernel, info, &legal));
    assert_ok(hal_ir_verify(legal));
    hal_ir_kernel_destroy(kernel);
    return legal;
}

#define BYTES 4096u
static uint8_t inputs[BYTES];

/* One group; binding 0 is read, binding 1 is written. */
static void run(const hal_ir_kernel *kernel, uint8_t output[BYTES])
{
    kit_problem problem;
    memset(output, 0xee, BYTES);
    const kit_span spans[2] = {{inputs, BYTES}, {output, BYTES}};
    const kit_dispatch d = {.kernel = kernel, .grid = {1, 1, 1}, .bindings = spans};
    if (kit_interpret(&d, &problem) != HAL_OK) {
        fail_msg("%s", problem.text);
    }
}

/* Set where outputs are f32 whose NaNs need not have the same bits: which NaN an invalid operation
 * gives is the processor's affair. */
static int any_nan;

static int differ(const uint8_t *before, const uint8_t *after, uint32_t i)
{
    uint32_t a, b;
    memcpy(&a, before + i / 4 * 4, 4);
    memcpy(&b, after + i / 4 * 4, 4);
    const int both_nan = (a & 0x7fffffff) > 0x7f800000 && (b & 0x7fffffff) > 0x7f800000;
    return before[i] != after[i] && !(any_nan && both_nan);
}

/* The same bytes before and after, and none of `gone` left. */
static void same(const char *text, const hal_device_info *info, uint32_t gone)
{
    static uint8_t before[BYTES], after[BYTES];
    hal_ir_kernel *kernel = ir_read(text), *legal = legalised(text, info);
    run(kernel, before);
    run(legal, after);
    if (gone != 0) {
        assert_int_not_equal(ir_count(kernel, gone), 0);
        assert_int_equal(ir_count(legal, gone), 0);
    }
    for (uint32_t i = 0; i < BYTES; i++) {
        if (differ(before, after, i)) {
            char *printed = NULL;
            hal_ir_print(legal, &printed);
            fail_msg("byte %u is 0x%x, was 0x%x\n%s", i, after[i], before[i], printed);
        }
    }
    hal_ir_kernel_destroy(kernel);
    hal_ir_kernel_destroy(legal);
}

static void refused(const char *text, const hal_device_info *info, const char *words)
{
    hal_ir_kernel *kernel = ir_read(text), *legal = NULL;
    assert_int_equal(hal_ir_legalise(kernel, info, &legal), HAL_ERROR_UNSUPPORTED);
    assert_null(legal);
    assert_message(words);
    hal_ir_kernel_destroy(kernel);
}

static uint64_t random_state = 1;
static uint64_t next_random(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return random_state ^ random_state >> 29;
}

static void fill_with_floats(float low, float high)
{
    for (uint32_t i = 0; i < BYTES / 4; i++) {
        const float value = low + (high - low) * (float)(next_random() >> 40) * 0x1p-24f;
        memcpy(inputs + 4 * i, &value, 4);
    }
}

static void fill_with_bits(void)
{
    for (uint32_t i = 0; i < BYTES / 8; i++) {
        const uint64_t value = next_random();
        memcpy(inputs + 8 * i, &value, 8);
    }
}

#define HEAD(group, type) \
    "kernel k\ngroup " group "\nbinding x " type " read\nbinding y " type " write\n"
#define ID "%l = local_id u32 x\n"
#define ID_FORMAT "%%l = local_id u32 x\n" /* for snprintf */

TEST(what_the_device_has_is_left_alone)
{
    hal_device_info info = ir_device();
    info.math_f32 = UINT32_MAX;
    hal_ir_kernel *kernel = ir_read(
        HEAD("64 1 1",
             "f16") "shared s f16 64\nscalar n u32\n" ID
                    "%n = scalar u32 n\n%t = lt bool %l, %n\n%x = load f32x2 x[%l + 2] if %t\n"
                    "%a = extract f32 %x, 0\n%b = fma f32 %a, %a, %a\n%c = exp f32 %b\n"
                    "async_copy 1 s[%l], x[%l]\nasync_commit\nasync_wait 0\n"
                    "%r = subgroup_reduce add f32 %c\n%p = pack f32x2 %r, %a\nstore y[%l], %p\n");
    hal_ir_kernel *legal = NULL;
    assert_ok(hal_ir_legalise(kernel, &info, &legal));
    assert_int_equal(legal->record_count, kernel->record_count);
    assert_memory_equal(legal->records, kernel->records,
                        kernel->record_count * sizeof *kernel->records);
    assert_int_equal(legal->scalar_bytes, kernel->scalar_bytes);
    assert_string_equal(legal->names + legal->name, "k");
    hal_ir_kernel_destroy(kernel);
    hal_ir_kernel_destroy(legal);
}

/* test_ir_math compares the bits of the expansions. */
TEST(transcendental_functions_are_expanded)
{
    const hal_device_info info = ir_device();
    for (uint32_t opcode = HAL_IR_MATH_FIRST; opcode <= HAL_IR_MATH_LAST; opcode++) {
        for (hal_type type = HAL_TYPE_F32; type <= HAL_TYPE_F64; type++) {
            hal_ir_builder *b = ir_fragment_begin();
            const hal_ir_value x = hal_ir_input(b, 0, type);
            const hal_ir_value y = opcode == HAL_IR_POW ? x : HAL_IR_NONE;
            hal_ir_output(b, 0, hal_ir_math(b, opcode, x, y, HAL_IR_FAST));
            hal_ir_kernel *fragment = ir_finish(b), *legal = NULL;
            assert_ok(hal_ir_legalise(fragment, &info, &legal));
            assert_int_equal(ir_count(legal, opcode), 0);
            hal_ir_kernel_destroy(fragment);
            hal_ir_kernel_destroy(legal);
        }
    }
}

TEST(claims_and_fast_versions_are_kept)
{
    static const char text[] = HEAD("1 1 1", "f32") "%i = constant u32 0\n%a = load f32 x[%i]\n"
                                                    "%b = exp.fast f32 %a\n%c = log f32 %b\n"
                                                    "%d = cast f64 %c\n%e = exp.fast f64 %d\n"
                                                    "%f = cast f32 %e\nstore y[%i], %f\n";
    hal_device_info info = ir_device();
    info.features |= HAL_FEATURE_FAST_MATH;
    hal_ir_kernel *legal = legalised(text, &info);
    assert_int_equal(ir_count(legal, HAL_IR_EXP), 1); /* the fast one of f32 alone */
    assert_int_equal(ir_count(legal, HAL_IR_LOG), 0);
    for (uint32_t i = 0; i < legal->record_count; i++) {
        if (legal->records[i].opcode == HAL_IR_EXP) {
            assert_int_equal(legal->records[i].flags, HAL_IR_FAST);
        }
    }
    hal_ir_kernel_destroy(legal);

    info = ir_device();
    info.math_f32 = 1u << (HAL_IR_EXP - HAL_IR_MATH_FIRST);
    info.math_f32 |= 1u << (HAL_IR_LOG - HAL_IR_MATH_FIRST);
    info.math_f64 = 1u << (HAL_IR_SIN - HAL_IR_MATH_FIRST);
    legal = legalised(text, &info);
    assert_int_equal(ir_count(legal, HAL_IR_EXP), 1);
    assert_int_equal(ir_count(legal, HAL_IR_LOG), 1);
    for (uint32_t i = 0; i < legal->record_count; i++) {
        assert_int_equal(legal->records[i].flags, 0);
    }
    hal_ir_kernel_destroy(legal);
}

TEST(asynchronous_copies_become_plain_ones)
{
    static const char text[] = HEAD(
        "64 1 1", "u32") "shared s u32 512\n" ID "%4 = constant u32 4\n%60 = constant u32 60\n%0 = "
                                                 "constant u32 0\n%1 = constant u32 1\n"
                         "%i = mul u32 %l, %4\n%g = lt bool %l, %60\n%2 = constant u32 2\n"
                         "%r = for u32 %0, %2, %1\n%256 = constant u32 256\n%o = mul u32 %r, %256\n"
                         "%j = add u32 %i, %o\nasync_copy 4 s[%j], x[%i] if %g\nasync_commit\nend\n"
                         "async_wait 0\nbarrier\n%v = load u32x4 s[%i]\nstore y[%i], %v\n"
                         "%w = load u32x4 s[%i + 256]\nstore y[%i + 256], %w\n";
    hal_device_info info = ir_device();
    fill_with_bits();
    info.features = 0;
    same(text, &info, HAL_IR_ASYNC_COPY);
    same(text, &info, HAL_IR_ASYNC_WAIT);
    same(text, &info, HAL_IR_ASYNC_COMMIT);
    info.max_vector_bytes = 8;
    same(text, &info, HAL_IR_ASYNC_COPY);
    info.features = HAL_FEATURE_ASYNC_COPY;
    same(text, &info, 0);
    hal_ir_kernel *legal = legalised(text, &info);
    assert_int_equal(ir_count(legal, HAL_IR_ASYNC_COPY), 2);
    hal_ir_kernel_destroy(legal);
}

TEST(subgroups_go_through_shared_memory)
{
    static const char *const groups[] = {"64 1 1", "44 1 1", "7 1 1", "1 1 1", "8 3 3", "32 1 1"};
    static const char *const types[] = {"f32", "u32", "i32", "f64", "u64", "i64"};
    hal_device_info info = ir_device();
    info.subgroup_width = 0;
    for (uint32_t g = 0; g < sizeof groups / sizeof groups[0]; g++) {
        for (uint32_t t = 0; t < sizeof types / sizeof types[0]; t++) {
            char text[1024];
            uint32_t x = 1, y = 1;
            sscanf(groups[g], "%u %u", &x, &y);
            snprintf(
                text, sizeof text,
                HEAD("%s",
                     "%s") "shared subgroup_32 u8 4\n"
                           "%%lx = local_id u32 x\n%%ly = local_id u32 y\n%%lz = local_id u32 z\n"
                           "%%sx = constant u32 %u\n%%sy = constant u32 %u\n"
                           "%%i0 = mul u32 %%lz, %%sy\n%%i1 = add u32 %%i0, %%ly\n"
                           "%%i2 = mul u32 %%i1, %%sx\n%%i = add u32 %%i2, %%lx\n"
                           "%%v = load %s x[%%i]\n%%n = lane_id u32\n%%z = constant u32 0\n"
                           "%%a = shuffle %s %%v, %%z\nstore y[%%i], %%a\n"
                           "%%b = shuffle %s %%v, %%n\nstore y[%%i + 80], %%b\n"
                           "%%c = subgroup_reduce add %s %%v\nstore y[%%i + 160], %%c\n"
                           "%%d = subgroup_reduce min %s %%v\nstore y[%%i + 240], %%d\n"
                           "%%e = subgroup_reduce max %s %%v\nstore y[%%i + 320], %%e\n"
                           "%%f = shuffle_xor %s %%v, 32\nstore y[%%i + 400], %%f\n",
                groups[g], types[t], types[t], x, y, types[t], types[t], types[t], types[t],
                types[t], types[t], types[t]);
            if (types[t][0] == 'f') {
                for (uint32_t i = 0; i < BYTES / 8; i++) {
                    const double wide = (double)(int64_t)next_random() * 0x1p-60;
                    const float narrow = (float)wide;
                    memcpy(inputs + (t == 3 ? 8 : 4) * i, t == 3 ? (const void *)&wide : &narrow,
                           t == 3 ? 8 : 4);
                }
            } else {
                fill_with_bits();
            }
            same(text, &info, HAL_IR_SUBGROUP_REDUCE);
            same(text, &info, HAL_IR_SHUFFLE);
            same(text, &info, HAL_IR_SHUFFLE_XOR);
            same(text, &info, HAL_IR_LANE_ID);
        }
    }
    /* A rotation: another lane's value, in full subgroups. */
    same(HEAD("64 1 1", "u32") ID "%v = load u32 x[%l]\n%n = lane_id u32\n%o = constant u32 33\n"
                                  "%s = add u32 %n, %o\n%a = shuffle u32 %v, %s\n"
                                  "%b = shuffle_xor u32 %a, 13\nstore y[%l], %b\n",
         &info, HAL_IR_SHUFFLE);
}

TEST(wide_accesses_are_split)
{
    static const char *const types[] = {"u8", "u16", "u32", "f64"};
    static const char *const values[] = {"u32", "u32", "u32", "f64"};
    fill_with_bits();
    for (uint32_t t = 0; t < 4; t++) {
        for (uint32_t bytes = 0; bytes <= 64; bytes = bytes == 0 ? 1 : 2 * bytes) {
            char text[1024];
            hal_device_info info = ir_device();
            info.max_vector_bytes = bytes;
            snprintf(text, sizeof text,
                     HEAD("16 1 1", "%s") ID_FORMAT
                     "%%8 = constant u32 8\n%%i = mul u32 %%l, %%8\n%%10 = constant u32 10\n"
                     "%%g = lt bool %%l, %%10\n"
                     "%%v = load %sx8 x[%%i + 8] if %%g\nstore y[%%i], %%v\n"
                     "%%a = load %sx4 x[%%i + 4]\n%%b = load %sx4 x[%%i]\n"
                     "%%c = pack %sx8 %%a, %%b\nstore y[%%i + 128], %%c\n"
                     "%%d = extract %s %%c, 6\n%%e = extract %s %%v, 1\n"
                     "%%f = pack %sx2 %%d, %%e\nstore y[%%i + 256], %%f if %%g\n",
                     types[t], types[t], values[t], values[t], values[t], values[t], values[t],
                     values[t], values[t]);
            same(text, &info, 0);
            hal_ir_kernel *legal = legalised(text, &info);
            const uint32_t element = t == 3 ? 8 : 1u << t;
            for (uint32_t i = 0; i < legal->record_count; i++) {
                const hal_ir_record *r = &legal->records[i];
                if (r->opcode == HAL_IR_LOAD || r->opcode == HAL_IR_STORE) {
                    assert_true(r->width == 1 || r->width * element <= bytes);
                }
            }
            hal_ir_kernel_destroy(legal);
        }
    }
    hal_device_info info = ir_device();
    info.max_vector_bytes = 4;
    refused(HEAD("1 1 1", "f32") "%i = constant i32 -9\n%v = load f32x2 x[%i + 2147483647]\n"
                                 "store y[%i], %v\n",
            &info, "in an access that is split, got 2147483647");
}

TEST(halves_and_bools_are_stored_as_integers)
{
    const uint32_t narrow = (HAL_STORAGE_FLOATS & ~HAL_TYPES_VALUES) | HAL_TYPES_BOOL;
    hal_device_info info = ir_device();
    info.storage_types &= ~narrow;
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        const char *value = type == HAL_TYPE_BOOL ? "bool" : "f32", *name = hal_type_name(type);
        const uint32_t rounds = narrow & HAL_TYPE_BIT(type) ? 34 : 0;
        for (uint32_t round = 0; round < rounds; round++) {
            char text[1024];
            snprintf(
                text, sizeof text,
                HEAD(
                    "256 1 1",
                    "%s") "shared s %s 2048\n" ID_FORMAT
                          "%%8 = constant u32 8\n%%i = mul u32 %%l, %%8\n%%t = constant bool true\n"
                          "%%v = load %sx8 x[%%i] if %%t\n%%e = extract %s %%v, 3\n"
                          "store s[%%i], %%v\nbarrier\n%%w = load %sx4 s[%%i + 4]\n"
                          "store y[%%i], %%w\nstore y[%%i + 4], %%e\n",
                name, name, name, value, value, value);
            for (uint32_t i = 0; i < BYTES / 2; i++) { /* every half once in 32 rounds */
                const uint16_t half = (uint16_t)(i + round * (BYTES / 2));
                memcpy(inputs + 2 * i, &half, 2);
            }
            same(text, &info, 0);
            hal_ir_kernel *legal = legalised(text, &info);
            assert_int_equal(legal->memories[0].type,
                             hal_type_size(type) == 1 ? HAL_TYPE_U8 : HAL_TYPE_U16);
            hal_ir_kernel_destroy(legal);
        }
    }
}

/* Halfway between two numbers of a narrow float, and next to it, in and just outside its range. */
static void fill_with_halves(hal_type type)
{
    const hal_float_format format = hal_type_float_format(type);
    const uint32_t shift = 23 - (uint32_t)format.digits;
    const int exponents = format.highest - format.least + 4;
    fill_with_bits();
    for (uint32_t i = 0; i < BYTES / 4; i += 2) {
        uint32_t bits = (uint32_t)next_random();
        const int exponent = format.least - 2 + (int)(next_random() % (uint32_t)exponents);
        if (i % 4 == 0 && exponent > -127 && exponent < 128) {
            bits = (bits & 0x807fffff) | (uint32_t)(127 + exponent) << 23;
        }
        bits = (bits >> shift << shift) + (uint32_t)(next_random() % 3) - 1;
        memcpy(inputs + 4 * i, &bits, 4);
    }
}

TEST(narrowing_is_computed)
{
    hal_device_info info = ir_device();
    info.storage_types =
        HAL_TYPE_BIT(HAL_TYPE_F32) | HAL_TYPE_BIT(HAL_TYPE_U32) | HAL_TYPE_BIT(HAL_TYPE_I32);
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        const char *value = hal_type_name(hal_type_of_value(type));
        char text[512];
        snprintf(text, sizeof text,
                 HEAD("1024 1 1", "%s") ID_FORMAT
                 "%%v = load %s x[%%l]\n%%n = narrow %s %s %%v\nstore y[%%l], %%n\n",
                 value, value, value, value, hal_type_name(type));
        const uint32_t rounds = hal_type_is_value(type)          ? 0
                                : hal_type_is_narrow_float(type) ? 40
                                                                 : 1;
        for (uint32_t round = 0; round < rounds; round++) {
            if (hal_type_is_narrow_float(type)) {
                fill_with_halves(type);
            } else {
                fill_with_bits();
            }
            same(text, &info, HAL_IR_NARROW);
        }
    }
}

#define FMA                                                                          \
    HEAD("256 1 1", "f32")                                                           \
    ID "%a = load f32 x[%l]\n%b = load f32 x[%l + 256]\n%c = load f32 x[%l + 512]\n" \
       "%d = fma f32 %a, %b, %c\nstore y[%l], %d\n"

static void put_float(uint32_t place, float value)
{
    memcpy(inputs + 4 * place, &value, 4);
}

TEST(fma_is_computed_in_f64)
{
    static const uint32_t corners[] = {0,          0x80000000, 1,          0x80000001,
                                       0x007fffff, 0x00800000, 0x3f800000, 0xbf800000,
                                       0x3f800001, 0x7f7fffff, 0xff7fffff, 0x7f800000,
                                       0xff800000, 0x7fc00000, 0x33800000, 0x4b800000};
    enum { CORNERS = sizeof corners / sizeof corners[0] };
    hal_device_info info = ir_device();
    any_nan = 1;
    info.exactness &= ~(uint32_t)HAL_EXACT_FMA;
    for (uint32_t round = 0; round < CORNERS; round++) {
        for (uint32_t i = 0; i < 256; i++) {
            memcpy(inputs + 4 * i, &corners[round], 4);
            memcpy(inputs + 4 * (256 + i), &corners[i / CORNERS], 4);
            memcpy(inputs + 4 * (512 + i), &corners[i % CORNERS], 4);
        }
        same(FMA, &info, HAL_IR_FMA);
    }
    for (uint32_t round = 0; round < 100; round++) {
        for (uint32_t i = 0; i < 256; i++) {
            /* Products that end in a tie of f32, and a third far below that decides it. */
            const float a = 1 + (float)(next_random() % (1 << 12)) * 0x1p-12f;
            const float b = 1 + (float)(next_random() % (1 << 12)) * 0x1p-12f;
            const int far = -30 - (int)(next_random() % 90);
            const float c = ldexpf((float)(int64_t)(next_random() % 5) - 2, far);
            put_float(i, round % 2 ? a : ldexpf(a, -70));
            put_float(256 + i, round % 2 ? b : ldexpf(b, -70));
            put_float(512 + i, round % 2 ? c : ldexpf(c, -29));
        }
        same(FMA, &info, HAL_IR_FMA);
        fill_with_bits();
        same(FMA, &info, HAL_IR_FMA);
    }
    /* A case where rounding first to f64 and then to f32 goes wrong: 1 + 2^-24 is a tie, and
     * 2^-80 is lost in f64. */
    for (uint32_t i = 0; i < 256; i++) {
        put_float(i, 1 + 0x1p-12f);
        put_float(256 + i, 1 + 0x1p-12f);
        put_float(512 + i, i % 2 ? 0x1p-80f : -0x1p-80f);
    }
    same(FMA, &info, HAL_IR_FMA);

    any_nan = 0;
    info.arithmetic_types &= ~HAL_TYPE_BIT(HAL_TYPE_F64);
    refused(FMA, &info,
            "fma: expected a device with a fused multiply-add of f32 or wider arithmetic, got "
            "Testbed");
    info = ir_device();
    info.exactness = HAL_EXACT_DENORMALS;
    refused(HEAD("1 1 1", "f64") "%i = constant u32 0\n%v = load f64 x[%i]\n"
                                 "%w = fma f64 %v, %v, %v\nstore y[%i], %w\n",
            &info, "a fused multiply-add of f64");
}

/* A double whose fraction has few bits, many or all of them, so that products end in ties and sums
 * cancel; its exponent is near to `exponent`. */
static double some_double(int exponent)
{
    static const uint64_t fractions[] = {0,
                                         1,
                                         UINT64_C(0xfffffffffffff),
                                         UINT64_C(0x8000000),
                                         UINT64_C(0x8000001),
                                         UINT64_C(0x8000000000000)};
    const uint64_t any = next_random(), which = next_random();
    const uint64_t fraction = which % 8 < 6 ? fractions[which % 8] : any >> 12;
    const double size = ldexp(1 + (double)fraction * 0x1p-52, exponent + (int)(any % 5) - 2);
    return any & 64 ? size : -size;
}

TEST(fma_of_f64_is_computed)
{
    static const int spread[] = {0,   -1,  1,    -26,  -27,  27,   -52,  -53, -54, 52,  53,  54,
                                 105, 106, -105, -106, -119, -120, -121, 119, 120, 121, 200, -200};
    static const double corners[] = {0,         -0.0,      1,         -1,  0x1p1023,
                                     -0x1p1023, INFINITY,  -INFINITY, NAN, 0x1.fffffffffffffp1023,
                                     0x1p-500,  0x1.8p-510};
    enum { SPREAD = sizeof spread / sizeof spread[0], CORNERS = sizeof corners / sizeof *corners };
    hal_device_info info = ir_device();
    double values[3][64];
    any_nan = 1;
    info.exactness = HAL_EXACT_DIVIDE | HAL_EXACT_SQRT;
    for (int round = 0; round < 60 * SPREAD + CORNERS; round++) {
        const int corner = round - 60 * SPREAD, middle = (int)(next_random() % 600) - 300;
        for (int i = 0; i < 64; i++) {
            values[0][i] = corner >= 0 ? corners[corner] : some_double(middle);
            values[1][i] = corner >= 0 ? corners[i % CORNERS] : some_double(-200);
            values[2][i] = corner >= 0 ? corners[(i / CORNERS + i) % CORNERS]
                           : i % 8     ? some_double(middle - 200 + spread[round % SPREAD])
                                       : -(values[0][i] * values[1][i]);
            for (int k = 0; k < 3; k++) {
                memcpy(inputs + 8 * (64 * k + i), &values[k][i], 8);
            }
        }
        same(HEAD("64 1 1", "f64") "%l = local_id u32 x\n%a = load f64 x[%l]\n"
                                   "%b = load f64 x[%l + 64]\n%c = load f64 x[%l + 128]\n"
                                   "%d = fma f64 %a, %b, %c\nstore y[%l], %d\n",
             &info, HAL_IR_FMA);
    }
    any_nan = 0;
}

TEST(limits_are_held)
{
    hal_device_info info = ir_device();
    info.max_group_items = 256;
    refused("kernel k\ngroup 16 32 1\n", &info,
            "kernel k: group size: expected at most 256 work-items on Testbed, got 512");
    info = ir_device();
    info.max_group_size[2] = 4;
    refused("kernel k\ngroup 1 1 8\n", &info,
            "expected at most 1024 x 1024 x 4 on Testbed, got 1 x 1 x 8");
    info.max_bindings = 1;
    refused(HEAD("1 1 1", "f32"), &info,
            "kernel k: bindings: expected at most 1 on Testbed, got 2");
    info = ir_device();
    refused("kernel k\nshared a u8 1\nshared b f64 8000\n", &info,
            "kernel k: shared arrays: expected at most 49152 bytes on Testbed, got 64008");
    info.storage_types &= ~HAL_TYPE_BIT(HAL_TYPE_U8);
    refused("kernel k\nbinding pixels u8 read\n", &info,
            "kernel k: memory pixels: expected a storage type of Testbed, got u8");
    info = ir_device();
    info.arithmetic_types &= ~(HAL_TYPE_BIT(HAL_TYPE_F64) | HAL_TYPE_BIT(HAL_TYPE_BOOL));
    refused(HEAD("1 1 1", "f32") "%i = constant u32 0\n%v = load f32 x[%i]\n%w = cast f64 %v\n"
                                 "%z = add f64 %w, %w\n%u = cast f32 %z\nstore y[%i], %u\n",
            &info, "kernel k: cast: expected an arithmetic type of Testbed, got f64");
    hal_ir_kernel_destroy(
        legalised(HEAD("1 1 1", "f32") "%i = constant u32 0\n%b = lt bool %i, %i\n"
                                       "%f = constant f32 1.0\nstore y[%i], %f if %b\n",
                  &info));
    info = ir_device();
    info.features = 0;
    refused("kernel k\nbinding x u64 read_write\n%i = constant u64 0\n"
            "%o = atomic add u64 x[%i], %i\n",
            &info, "kernel k: atomic: expected a type of 32 bits on Testbed, got u64");
    info.subgroup_width = 0;
    info.shared_bytes = 100;
    refused("kernel k\ngroup 32 1 1\nbinding x u32 write\n%l = local_id u32 x\n"
            "%r = subgroup_reduce add u32 %l\nstore x[%l], %r\n",
            &info, "got 128");
}

TEST(what_nobody_uses_is_dropped)
{
    const hal_device_info info = ir_device();
    static const char text[] =
        HEAD("64 1 1", "u32") ID "%a = load u32 x[%l]\n%b = add u32 %a, %l\n"
                                 "%dead = mul u32 %b, %b\n%deader = sub u32 %dead, %a\n"
                                 "%unread = var u32 %a\nset %unread, %deader\n"
                                 "%v = var u32 %l\n%0 = constant u32 0\n%1 = constant u32 1\n"
                                 "%9 = constant u32 9\n%i = for u32 %0, %9, %1\n"
                                 "%g = get u32 %v\n%h = add u32 %g, %b\nset %v, %h\n"
                                 "%lost = get u32 %unread\n%never = constant f32 5.0\nend\n"
                                 "%r = get u32 %v\nstore y[%l], %r\n";
    fill_with_bits();
    same(text, &info, HAL_IR_MUL);
    same(text, &info, HAL_IR_SUB);
    hal_ir_kernel *legal = legalised(text, &info);
    assert_int_equal(ir_count(legal, HAL_IR_VAR), 1);
    assert_int_equal(ir_count(legal, HAL_IR_SET), 1);
    assert_int_equal(ir_count(legal, HAL_IR_GET), 2);
    assert_int_equal(legal->constant_count, 3);
    hal_ir_kernel_destroy(legal);
}

TEST(fragments_are_legalised_too)
{
    static const char text[] = "fragment f\n%x = input f32 0\n%unused = input u32 1\n"
                               "%e = exp f32 %x\n%n = narrow f32 bf16 %e\noutput 0, %n\n"
                               "%l = log f32 %x\noutput 1, %l\n";
    hal_device_info info = ir_device();
    info.exactness = 0;
    info.storage_types = HAL_TYPE_BIT(HAL_TYPE_F32);
    hal_ir_kernel *fragment = ir_read(text), *legal = legalised(text, &info);
    assert_int_equal(legal->input_count, 2);
    assert_int_equal(ir_count(legal, HAL_IR_EXP) + ir_count(legal, HAL_IR_LOG) +
                         ir_count(legal, HAL_IR_FMA) + ir_count(legal, HAL_IR_NARROW),
                     0);
    for (int i = 0; i < 2000; i++) {
        const uint64_t in[2] = {(uint32_t)next_random(), 0};
        uint64_t before[2], after[2];
        assert_ok(kit_evaluate(fragment, in, before));
        assert_ok(kit_evaluate(legal, in, after));
        for (int k = 0; k < 2; k++) {
            const int both_nan =
                (before[k] & 0x7fffffff) > 0x7f800000 && (after[k] & 0x7fffffff) > 0x7f800000;
            assert_true(both_nan || before[k] == after[k]);
        }
    }
    hal_ir_kernel_destroy(fragment);
    hal_ir_kernel_destroy(legal);
}

TEST(all_rewrites_work_together)
{
    /* The poorest device: 32-bit integers, f32 and f64 to compute with, 32 bits in memory. */
    hal_device_info info = ir_device();
    info.subgroup_width = 0;
    info.exactness = 0;
    info.features = 0;
    info.max_vector_bytes = 4;
    info.storage_types = HAL_TYPE_BIT(HAL_TYPE_U16) | HAL_TYPE_BIT(HAL_TYPE_U32);
    fill_with_floats(-4, 4);
    same(HEAD("32 2 1", "f16") "shared s f16 512\n%x = local_id u32 x\n%y = local_id u32 y\n"
                               "%32 = constant u32 32\n%8 = constant u32 8\n%m = mul u32 %y, %32\n"
                               "%n = add u32 %m, %x\n%i = mul u32 %n, %8\n"
                               "async_copy 8 s[%i], x[%i]\nasync_commit\nasync_wait 0\nbarrier\n"
                               "%v = load f32x8 s[%i]\n%a = extract f32 %v, 5\n"
                               "%b = tanh f32 %a\n%c = fma f32 %b, %b, %a\n"
                               "%d = subgroup_reduce add f32 %c\n"
                               "%p = pack f32x4 %a, %b, %c, %d\n%q = load f32x4 s[%i]\n"
                               "%r = pack f32x8 %p, %q\nstore y[%i], %r\n",
         &info, HAL_IR_TANH);
}

/* No arithmetic on a constant of the type is left, nor a widened integer without the zero. */
TEST(constants_of_a_wrong_compiler_are_hidden)
{
    hal_device_info device = ir_device();
    device.wrong_constants = HAL_TYPE_BIT(HAL_TYPE_F32) | HAL_TYPE_BIT(HAL_TYPE_I64);
    hal_ir_kernel *kernel = ir_read("kernel k\ngroup 64 1 1\nbinding x f32 read_write\n"
                                    "binding y i32 read_write\n%l = local_id u32 x\n"
                                    "%c = constant f32 0\n%k = constant i64 5\n"
                                    "%n = constant i32 7\n%x = load f32 x[%l]\n"
                                    "%s = add f32 %x, %c\nstore x[%l], %s\n"
                                    "%y = load i32 y[%l]\n%w = cast i64 %y\n"
                                    "%b = lt bool %w, %k\n%r = cast i32 %b\n"
                                    "%t = add i32 %r, %n\nstore y[%l], %t\n");
    hal_ir_kernel *legal = NULL;
    assert_ok(hal_ir_legalise(kernel, &device, &legal));
    assert_int_equal(ir_count(legal, HAL_IR_XOR), 3);
    for (uint32_t i = 0; i < legal->record_count; i++) {
        const hal_ir_record *record = &legal->records[i];
        if (record->opcode == HAL_IR_ADD || record->opcode == HAL_IR_LT) {
            const int is_i32 = record->type == HAL_TYPE_I32;
            assert_int_equal(legal->records[record->b].opcode == HAL_IR_CONSTANT, is_i32);
            assert_int_not_equal(legal->records[record->a].opcode, HAL_IR_CONSTANT);
        }
    }
    hal_ir_kernel_destroy(legal);
    device.wrong_constants = 0;
    assert_ok(hal_ir_legalise(kernel, &device, &legal));
    assert_int_equal(ir_count(legal, HAL_IR_XOR), 0);
    hal_ir_kernel_destroy(legal);
    hal_ir_kernel_destroy(kernel);
}

UNIT_MAIN(NULL, NULL)
