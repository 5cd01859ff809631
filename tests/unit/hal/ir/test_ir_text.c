/* IR text: what is printed, that it reads back to the same, and the place of every mistake. */
#include "ir_fixture.h"
#include <locale.h>
#include <stdio.h>

static char *print(const hal_ir_kernel *kernel)
{
    char *text = NULL;
    assert_ok(hal_ir_print(kernel, &text));
    return text;
}

/* Printing and reading back gives the same records, the same hash and the same text. */
static void round_trip(const hal_ir_kernel *kernel)
{
    char *text = print(kernel);
    hal_ir_kernel *again = ir_read(text);
    char *text_again = print(again);
    assert_string_equal(text, text_again);
    assert_int_equal(again->record_count, kernel->record_count);
    assert_memory_equal(again->records, kernel->records,
                        kernel->record_count * sizeof *kernel->records);
    assert_int_equal(again->memory_count, kernel->memory_count);
    for (uint32_t i = 0; i < kernel->memory_count; i++) {
        assert_string_equal(again->names + again->memories[i].name,
                            kernel->names + kernel->memories[i].name);
    }
    uint64_t hash[2], hash_again[2];
    hal_ir_hash(kernel, hash);
    hal_ir_hash(again, hash_again);
    assert_memory_equal(hash, hash_again, sizeof hash);
    free(text);
    free(text_again);
    hal_ir_kernel_destroy(again);
}

static const char everything[] = "kernel everything\n"
                                 "group 64 2 1\n"
                                 "groups_per_unit 2\n"
                                 "binding x f16 read\n"
                                 "binding y i32 write\n"
                                 "binding z u32 read_write\n"
                                 "shared tile u32 256\n"
                                 "scalar n u32 0\n"
                                 "scalar alpha f64 8\n"
                                 "scalar_bytes 24\n"
                                 "  %0 = scalar u32 n\n"
                                 "  %1 = scalar f64 alpha\n"
                                 "  %2 = local_id u32 x\n"
                                 "  %3 = group_id u32 y\n"
                                 "  %4 = group_count u32 z\n"
                                 "  %5 = lane_id u32\n"
                                 "  %6 = constant bool true\n"
                                 "  %7 = constant i32 -7\n"
                                 "  %8 = constant u32 4294967295\n"
                                 "  %9 = constant i64 -9223372036854775808\n"
                                 "  %10 = constant u64 18446744073709551615\n"
                                 "  %11 = constant f32 -1.75\n"
                                 "  %12 = constant f64 0x1.921fb54442d18p+1\n"
                                 "  %13 = constant u32 1\n"
                                 "  %14 = load f32x4 x[%2 + 8] if %6\n"
                                 "  %15 = extract f32 %14, 3\n"
                                 "  %16 = fma f32 %15, %11, %15\n"
                                 "  %17 = exp.fast f32 %16\n"
                                 "  %18 = pow f32 %17, %16\n"
                                 "  %19 = narrow f32 bf16 %18\n"
                                 "  %20 = cast i32 %19\n"
                                 "  %21 = bitcast u32 %19\n"
                                 "  %22 = pack i32x2 %20, %7\n"
                                 "  store y[%2 - 2147483648], %22 if %6\n"
                                 "  %24 = atomic add u32 z[%2], %21\n"
                                 "  %25 = atomic compare_exchange u32 z[%2 + 1], %21, %8 if %6\n"
                                 "  async_copy 4 tile[%2], z[%3] if %6\n"
                                 "  async_commit\n"
                                 "  async_wait 1\n"
                                 "  %29 = var u32 %13\n"
                                 "  %30 = for u32 %13, %0, %13\n"
                                 "    %31 = get u32 %29\n"
                                 "    %32 = lt bool %31, %2\n"
                                 "    if %32\n"
                                 "      set %29, %30\n"
                                 "    else\n"
                                 "      store tile[%2], %31\n"
                                 "    end\n"
                                 "    barrier\n"
                                 "  end\n"
                                 "  %40 = shuffle u32 %21, %13\n"
                                 "  %41 = shuffle_xor u32 %40, 16\n"
                                 "  %42 = subgroup_reduce max u32 %41\n"
                                 "  %43 = select u32 %6, %42, %13\n"
                                 "  %44 = pack u32x4 %13, %21, %13, %21\n"
                                 "  %45 = pack u32x2 %13, %21\n"
                                 "  %46 = pack f32x4 %11, %15, %11, %15\n"
                                 "  %47 = matrix_multiply bf16 f32x4 %44, %45, %46\n"
                                 "  %48 = pack f64x4 %1, %12, %1, %12\n"
                                 "  %49 = pack f64x2 %12, %12\n"
                                 "  %50 = matrix_multiply f64 f64x4 %48, %49, %48\n";

TEST(every_kind_of_record_prints_as_it_was_written)
{
    hal_ir_kernel *kernel = ir_read(everything);
    char *text = print(kernel);
    assert_string_equal(text, everything);
    free(text);
    round_trip(kernel);
    assert_int_equal(kernel->scalar_bytes, 24);
    assert_int_equal(kernel->records[23].imm, INT32_MIN);
    assert_int_equal(kernel->records[26].imm, 2); /* an asynchronous copy's binding */
    assert_int_equal(kernel->records[17].flags, HAL_IR_FAST);
    hal_ir_kernel_destroy(kernel);
}

TEST(kernels_of_the_builder_read_back)
{
    hal_ir_builder *b = ir_kernel_begin();
    hal_ir_group_size(b, 32, 1, 1);
    const hal_ir_memory_id x = hal_ir_binding(b, "x", HAL_TYPE_F64, HAL_ACCESS_READ_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    hal_ir_if(b, hal_ir_lt(b, i, hal_ir_scalar_value(b, "n", HAL_TYPE_U32)));
    hal_ir_store(b, x, i, hal_ir_mul(b, hal_ir_load(b, x, i), hal_ir_f64(b, 0.1)));
    hal_ir_end(b);
    hal_ir_kernel *kernel = ir_finish(b);
    round_trip(kernel);
    hal_ir_kernel_destroy(kernel);
}

TEST(fragments_read_back)
{
    static const char text[] = "fragment f\n"
                               "  %0 = input f32 0\n"
                               "  %1 = input u32 1\n"
                               "  %2 = tanh f32 %0\n"
                               "  output 1, %1\n"
                               "  output 0, %2\n";
    hal_ir_kernel *kernel = ir_read(text);
    assert_int_equal(kernel->flags, HAL_IR_FRAGMENT);
    assert_int_equal(kernel->input_count, 2);
    assert_int_equal(kernel->output_count, 2);
    char *printed = print(kernel);
    assert_string_equal(printed, text);
    free(printed);
    round_trip(kernel);
    hal_ir_kernel_destroy(kernel);
}

static void a_float(hal_type type, uint64_t bits, const char *expected)
{
    char line[128], *text;
    hal_ir_builder *b = ir_kernel_begin();
    double f64;
    memcpy(&f64, &bits, sizeof f64);
    const uint32_t low = (uint32_t)bits;
    float f32;
    memcpy(&f32, &low, sizeof f32);
    if (type == HAL_TYPE_F32) {
        hal_ir_f32(b, f32);
    } else {
        hal_ir_f64(b, f64);
    }
    hal_ir_kernel *kernel = ir_finish(b);
    assert_int_equal(kernel->constants[0], bits);
    text = print(kernel);
    if (expected) {
        snprintf(line, sizeof line, "constant %s %s\n", hal_type_name(type), expected);
        if (!strstr(text, line)) {
            fail_msg("`%s` lacks `%s`", text, line);
        }
    }
    hal_ir_kernel *again = ir_read(text);
    assert_int_equal(again->constants[0], bits);
    free(text);
    hal_ir_kernel_destroy(again);
    hal_ir_kernel_destroy(kernel);
}

TEST(floats_keep_every_bit)
{
    a_float(HAL_TYPE_F32, 0x00000000, "0.0");
    a_float(HAL_TYPE_F32, 0x80000000, "-0.0");
    a_float(HAL_TYPE_F32, 0x3f800000, "1.0");
    a_float(HAL_TYPE_F32, 0xc0700000, "-3.75");
    a_float(HAL_TYPE_F32, 0x3eaaaaab, "0x1.555556p-2");
    a_float(HAL_TYPE_F32, 0x00000001, "0x0.000002p-126");
    a_float(HAL_TYPE_F32, 0x007fffff, NULL);
    a_float(HAL_TYPE_F32, 0x00800000, NULL);
    a_float(HAL_TYPE_F32, 0x7f7fffff, NULL);
    a_float(HAL_TYPE_F32, 0x7f800000, "inf");
    a_float(HAL_TYPE_F32, 0xff800000, "-inf");
    a_float(HAL_TYPE_F32, 0x7fc00000, "nan:0x7fc00000");
    a_float(HAL_TYPE_F32, 0xffc12345, "nan:0xffc12345");
    a_float(HAL_TYPE_F64, 0x8000000000000000, "-0.0");
    a_float(HAL_TYPE_F64, 0x0000000000000001, "0x0.0000000000001p-1022");
    a_float(HAL_TYPE_F64, 0x7fefffffffffffff, NULL);
    a_float(HAL_TYPE_F64, 0x3fb999999999999a, "0x1.999999999999ap-4");
    a_float(HAL_TYPE_F64, 0xfff8000000000001, "nan:0xfff8000000000001");
    uint64_t random = 1;
    for (int i = 0; i < 2000; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        if ((random >> 32 & 0x7f800000) != 0x7f800000) {
            a_float(HAL_TYPE_F32, random >> 32, NULL);
        }
        if ((random >> 52 & 0x7ff) != 0x7ff) {
            a_float(HAL_TYPE_F64, random, NULL);
        }
    }
}

TEST(the_locale_has_no_say)
{
    /* Any locale with a decimal comma will do; without one nothing can go wrong. */
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8")) {
        skip();
    }
    a_float(HAL_TYPE_F32, 0xc0700000, "-3.75");
    a_float(HAL_TYPE_F64, 0x3fb999999999999a, "0x1.999999999999ap-4");
    setlocale(LC_ALL, "C");
}

TEST(text_by_hand_may_be_looser)
{
    hal_ir_kernel *kernel = ir_read("; a comment\n\n"
                                      "\tkernel  loose ; another\r\n"
                                      "binding out f32 write\n"
                                      "scalar n u32\n"
                                      "scalar a f64\n"
                                      "%zero=constant u32 0\n"
                                      "%pi_ = constant f32 3.14159274 ; rounded once\n"
                                      "%big = constant u32 0xFF\n"
                                      "store out[ %zero+0x10 ] , %pi_");
    assert_int_equal(kernel->scalars[1].offset, 8);
    assert_int_equal(kernel->scalar_bytes, 16);
    assert_int_equal(kernel->records[3].imm, 16);
    assert_int_equal(kernel->constants[1], 0x40490fdb);
    assert_int_equal(kernel->constants[2], 255);
    round_trip(kernel);
    hal_ir_kernel_destroy(kernel);
}

static void wrong(const char *text, const char *words)
{
    hal_ir_kernel *kernel = NULL;
    assert_fails(hal_ir_parse(text, strlen(text), &kernel), HAL_ERROR_INVALID_IR, words);
    assert_null(kernel);
}

TEST(mistakes_are_named_with_their_place)
{
    wrong("", "line 1, column 1: expected `kernel` or `fragment`");
    wrong("\n\n  kern x", "line 3, column 3: expected `kernel` or `fragment`, got `kern`");
    wrong("kernel", "expected a name");
    wrong("kernel 5x", "got \"5x\"");
    wrong("kernel k extra", "line 1, column 10: expected the end of the line");
    wrong("kernel k\nfrobnicate",
          "line 2, column 1: expected an opcode or a declaration, got `frob");
    wrong("kernel k\n%1 = barrier", "expected no name, as barrier has no value");
    wrong("kernel k\nconstant u32 1", "expected a name for the value: %name = constant");
    wrong("kernel k\n%1 constant u32 1", "line 2, column 4: expected `=`");
    wrong("kernel k\n%1 = constant u31 1", "line 2, column 15: expected a type, got `u31`");
    wrong("kernel k\n%1 = constant u32 -1", "column 19: expected a constant of type u32, got `-1`");
    wrong("kernel k\n%1 = constant u32 4294967296", "expected a constant of type u32");
    wrong("kernel k\n%1 = constant i32 2147483648", "expected a constant of type i32");
    wrong("kernel k\n%1 = constant bool 2", "expected a constant of type bool");
    wrong("kernel k\n%1 = constant f32 1.0f", "expected a constant of type f32");
    wrong("kernel k\n%1 = constant f32 nan", "expected a constant of type f32");
    wrong("kernel k\n%1 = constant f32 nan:0x7f800000", "expected a constant of type f32");
    wrong("kernel k\n%1 = constant u32 1\n%1 = constant u32 1",
          "line 3, column 2: expected a new name, got %1");
    wrong("kernel k\n%1 = neg f32 %2",
          "line 2, column 15: expected a value that is defined above, got %2");
    wrong("kernel k\n%1 = constant u32 1\n%2 = add f32 %1, %1",
          "add: result: expected u32 of width 1, got f32 of width 1");
    wrong("kernel k\n%1 = constant u32 1\n%2 = add u32 %1", "expected `,`");
    wrong("kernel k\n%1 = constant u32 1\n%2 = load f32 x[%1]",
          "line 3, column 15: expected a declared binding or shared array, got `x`");
    wrong("kernel k\nbinding x f32 peek", "expected an access, got `peek`");
    wrong("kernel k\nbinding x f32 read\nbinding x f32 read", "line 3, column 15: kernel k");
    wrong("kernel k\ngroup 1 2", "expected a group size");
    wrong("kernel k\nshared s f32 -1", "a count of elements: expected a whole number");
    wrong("kernel k\n%1 = local_id u32 w", "expected a dimension, got `w`");
    wrong("kernel k\n%1 = scalar u32 n", "expected a declared scalar, got `n`");
    wrong("kernel k\nbinding x f32 read\n%1 = constant u32 1\n%2 = load f32x3 x[%1]",
          "width: expected 1, 2, 4 or 8, got 3");
    wrong("kernel k\nbinding x f32 read\n%1 = constant u32 1\n%2 = load f32x0 x[%1]",
          "width: expected 2, 4 or 8, got 0");
    wrong("kernel k\nbinding x f32 read\n%1 = constant u32 1\n%2 = load f32 x[%1] when %1",
          "expected `if` and a guard, got `when`");
    wrong("kernel k\nbinding x f32 read\n%1 = constant u32 1\n%2 = load f32 x[%1 + 2147483648]",
          "an offset: expected a whole number from 0 to 2147483647");
    wrong("kernel k\nend", "line 2, column 1: kernel k, record 0: end: expected an open block");
    wrong("kernel k\n%1 = exp.slow f32 %1", "expected fast, got `slow`");
    wrong("fragment f\noutput 64, %1", "a number: expected a whole number from 0 to 63");
    /* What only the whole kernel shows carries the line of its record. */
    wrong("kernel k\ngroup 9 1 1\n%n = local_id u32 x\n%f = constant u32 5\n%c = lt bool %n, %f\n"
          "if %c\n\nbarrier\nend",
          "line 8, column 1: kernel k, record 4 (barrier): expected control that is uniform");
    wrong("kernel k\n%c = constant bool true\nif %c\n", "line 4, column 1: kernel k, record 2: if");
}

TEST(a_word_may_not_be_endless)
{
    char text[400] = "kernel ";
    memset(text + 7, 'a', 300);
    wrong(text, "line 1, column 8: a name: expected at most 127 characters");
}

TEST(bytes_behind_the_end_are_not_read)
{
    static const char text[] = "kernel k\n%1 = constant u32 12";
    for (size_t n = 0; n < sizeof text - 1; n++) {
        char *exact = malloc(n + 1);
        hal_ir_kernel *kernel = NULL;
        memcpy(exact, text, n);
        hal_ir_parse(n == 0 ? exact : exact, n, &kernel);
        hal_ir_kernel_destroy(kernel);
        free(exact);
    }
    hal_ir_kernel *kernel = NULL;
    assert_ok(hal_ir_parse(text, sizeof text - 2, &kernel));
    assert_int_equal(kernel->constants[0], 1);
    hal_ir_kernel_destroy(kernel);
}

TEST(null_arguments_are_refused)
{
    hal_ir_kernel *kernel = NULL;
    char *text = NULL;
    assert_int_equal(hal_ir_parse(NULL, 5, &kernel), HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(hal_ir_parse("x", 1, NULL), HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(hal_ir_print(NULL, &text), HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(hal_ir_parse(NULL, 0, &kernel), HAL_ERROR_INVALID_IR);
    kernel = ir_read("kernel k");
    assert_int_equal(hal_ir_print(kernel, NULL), HAL_ERROR_INVALID_ARGUMENT);
    kernel->version = 99;
    assert_int_equal(hal_ir_print(kernel, &text), HAL_ERROR_INVALID_IR);
    assert_null(text);
    hal_ir_kernel_destroy(kernel);
}

UNIT_MAIN(NULL, NULL)
