/* sanitize_faults.c: the table of planted faults. */
#include "ir/sanitize_faults.h"

#include <stdio.h>
#include <string.h>

/* Bindings x (f32, read), y (f32, written) and z (u32, both), which hold 1.0 and 1; the work-item
 * is %l of group %g and %i of all. */
static const char head[] = "group 64 1 1\n"
                           "binding x f32 read\n"
                           "binding y f32 write\n"
                           "binding z u32 read_write\n";

#define IDS                    \
    "%l = local_id u32 x\n"    \
    "%g = group_id u32 x\n"    \
    "%c0 = constant u32 0\n"   \
    "%c1 = constant u32 1\n"   \
    "%c2 = constant u32 2\n"   \
    "%c64 = constant u32 64\n" \
    "%f1 = constant f32 1.0\n" \
    "%b = mul u32 %g, %c64\n"  \
    "%i = add u32 %b, %l\n"

#define BOUNDS "access out of range"

/* An index %k * FACTOR whose exact value only work-item ITEM of each group takes out of 32 bits:
 * the range of %k, as the rule for its opcode says, is all that tells it. */
#define RANGE_FAULT(NAME, CALCULATION, ITEM, FACTOR, EXACT)                                     \
    {                                                                                           \
        .name = "math/range_of_" NAME, .check = "math",                                         \
        .text =                                                                                 \
            IDS CALCULATION "%n = constant u32 @\n%j = mul u32 %k, %n\n%e = constant u32 " ITEM \
                            "\n%in = eq bool %l, %e\n%v = load f32 x[%j] if %in\n"              \
                            "store y[%i], %v\n",                                                \
        .right = "1", .wrong = FACTOR, .words = {                                               \
            "index arithmetic that overflows",                                                  \
            "load f32 x[",                                                                      \
            "binding \"x\"",                                                                    \
            "exactly " EXACT                                                                    \
        }                                                                                       \
    }

const sanitize_fault sanitize_faults[] = {
    {.name = "bounds/store_past_the_end",
     .check = "bounds",
     .text = IDS "store y[%i@], %f1\n",
     .right = "",
     .wrong = " + 1",
     .words = {BOUNDS, "(store y[", "binding \"y\" of 256 elements, index 256",
               "work-item (63, 0, 0) of group (3, 0, 0), value 1"}},
    {.name = "bounds/load_before_the_begin",
     .check = "bounds",
     .text = IDS "%v = load f32 x[%i@]\nstore y[%i], %v\n",
     .right = "",
     .wrong = " - 1",
     .words = {BOUNDS, "load f32 x[", "binding \"x\" of 256 elements, index -1",
               "work-item (0, 0, 0) of group (0, 0, 0)"}},
    {.name = "bounds/negative_index",
     .check = "bounds",
     .text = IDS "%s = cast i32 %i\n%o = constant i32 @\n%j = sub i32 %s, %o\n"
                 "%n = constant i32 0\n%k = max i32 %j, %n\n%p = select i32 %t, %k, %j\n"
                 "store y[%p], %f1\n",
     .right = "0\n%t = constant bool true",
     .wrong = "1\n%t = constant bool false",
     .words = {BOUNDS, "(store y[", "binding \"y\" of 256 elements, index -1",
               "work-item (0, 0, 0) of group (0, 0, 0)"}},
    {.name = "bounds/signed_index_with_offset",
     .check = "bounds",
     .text = IDS "%s = cast i32 %i\n%o = constant i32 @\n%j = sub i32 %s, %o\n"
                 "%v = load f32 x[%j + 1]\nstore y[%i], %v\n",
     .right = "1",
     .wrong = "2",
     .words = {BOUNDS, "load f32 x[", "binding \"x\" of 256 elements, index -1",
               "work-item (0, 0, 0) of group (0, 0, 0)"}},
    {.name = "bounds/signed_index_before_the_begin",
     .check = "bounds",
     .text = IDS "%s = cast i32 %i\n%o = constant i32 @\n%j = add i32 %s, %o\n"
                 "%v = load f32 x[%j - 1]\nstore y[%i], %v\n",
     .right = "1",
     .wrong = "0",
     .words = {BOUNDS, "load f32 x[", "binding \"x\" of 256 elements, index -1",
               "work-item (0, 0, 0) of group (0, 0, 0)"}},
    {.name = "bounds/wide_signed_index",
     .check = "bounds",
     .text = IDS "%s = cast i64 %i\n%o = constant i64 @\n%j = sub i64 %s, %o\n"
                 "store y[%j + 3], %f1\n",
     .right = "3",
     .wrong = "4",
     .words = {BOUNDS, "(store y[", "binding \"y\" of 256 elements, index -1",
               "work-item (0, 0, 0) of group (0, 0, 0)"}},
    {.name = "bounds/least_index_and_offset", /* their sum is a number of 32 bits again: 0 */
     .check = "bounds",
     .text = IDS "%s = cast i32 %i\n@, %f1\n",
     .right = "store y[%s]",
     .wrong = "%o = constant i32 -2147483648\n%j = or i32 %s, %o\nstore y[%j - 2147483648]",
     .words = {BOUNDS, "(store y[", "binding \"y\" of 256 elements, index -4294967", "256 times"}},
    {.name = "bounds/index_beyond_32_bits",
     .check = "bounds",
     .text = IDS "%m = sub u32 %i, %c1\n%v = load f32 x[@]\nstore y[%i], %v\n",
     .right = "%i",
     .wrong = "%m + 1",
     .words = {BOUNDS, "load f32 x[", "binding \"x\" of 256 elements, index 4294967296",
               "work-item (0, 0, 0) of group (0, 0, 0)"}},
    {.name = "bounds/stride",
     .check = "bounds",
     .text = IDS "%j = mul u32 %i, %c@\n%v = load f32 x[%j]\nstore y[%i], %v\n",
     .right = "1",
     .wrong = "2",
     .words = {BOUNDS, "load f32 x[", "binding \"x\" of 256 elements, index "}},
    {.name = "bounds/wide_index",
     .check = "bounds",
     .text = IDS "%w = cast u64 %i\n%o = constant u64 @\n%j = add u64 %w, %o\n"
                 "store y[%j], %f1\n",
     .right = "0",
     .wrong = "0x100000000",
     .words = {BOUNDS, "(store y[", "binding \"y\" of 256 elements, index 42949"}},
    {.name = "bounds/atomic",
     .check = "bounds",
     .text = IDS "%o = constant u32 @\n%j = add u32 %l, %o\n%v = atomic add u32 z[%j], %c1\n",
     .right = "0",
     .wrong = "193",
     .words = {BOUNDS, "atomic add u32 z[", "binding \"z\" of 256 elements, index 256",
               "work-item (63, 0, 0) of group ("}},
    {.name = "bounds/shared_store",
     .check = "bounds",
     .has_more = true,
     .text = "shared s f32 64\n" IDS "store s[%l@], %f1\nbarrier\n%v = load f32 s[%l]\n"
             "store y[%i], %v\n",
     .right = "",
     .wrong = " + 1",
     .words = {BOUNDS, "(store s[", "shared array \"s\" of 64 elements, index 64",
               "work-item (63, 0, 0) of group ("}},
    {.name = "bounds/shared_load",
     .check = "bounds",
     .text = "shared s f32 64\n" IDS "store s[%l], %f1\nbarrier\n%v = load f32 s[%l@]\n"
             "store y[%i], %v\n",
     .right = "",
     .wrong = " - 1",
     .words = {BOUNDS, "load f32 s[", "shared array \"s\" of 64 elements, index -1",
               "work-item (0, 0, 0) of group ("}},
    {.name = "bounds/misaligned",
     .check = "bounds",
     .text = IDS "%c4 = constant u32 4\n%m = mul u32 %l, %c@\n%v = load f32x4 x[%m]\n"
                 "%e = extract f32 %v, 0\nstore y[%i], %e\n",
     .right = "4",
     .wrong = "2",
     .words = {BOUNDS, "load f32x4 x[", "binding \"x\" of 256 elements, index ", "misaligned"}},
    {.name = "bounds/wide_store_over_the_end",
     .check = "bounds",
     .text = IDS "%c4 = constant u32 4\n%m = mul u32 %l, %c4\n"
                 "%v = pack f32x4 %f1, %f1, %f1, %f1\nstore y[%m], %v\n",
     .right = "",
     .wrong = "",
     .bytes = {0, 1024 - 8, 0},
     .words = {BOUNDS, "(store y[", "binding \"y\" of 254 elements, index 252 to 255",
               "work-item (63, 0, 0) of group ("}},
    {.name = "bounds/copy_source",
     .check = "bounds",
     .text = "shared s f32 64\n" IDS "%o = constant u32 @\n%j = add u32 %i, %o\n"
             "async_copy 1 s[%l], x[%j]\nasync_commit\nasync_wait 0\nbarrier\n"
             "%v = load f32 s[%l]\nstore y[%i], %v\n",
     .right = "0",
     .wrong = "1",
     .words = {"copy from out of range", "async_copy 1 s[",
               "binding \"x\" of 256 elements, index 256",
               "work-item (63, 0, 0) of group (3, 0, 0)"}},
    {.name = "bounds/copy_target",
     .check = "bounds",
     .has_more = true,
     .text = "shared s f32 64\n" IDS "%o = constant u32 @\n%j = add u32 %l, %o\n"
             "async_copy 1 s[%j], x[%i]\nasync_commit\nasync_wait 0\nbarrier\n"
             "%v = load f32 s[%l]\nstore y[%i], %v\n",
     .right = "0",
     .wrong = "1",
     .words = {BOUNDS, "async_copy 1 s[", "shared array \"s\" of 64 elements, index 64",
               "work-item (63, 0, 0) of group ("}},
    {.name = "bounds/guard_off_by_one",
     .check = "bounds",
     .text = IDS "%n = constant u32 200\n%in = @ bool %i, %n\nstore y[%i], %f1 if %in\n",
     .right = "lt",
     .wrong = "le",
     .bytes = {0, 800, 0},
     .words = {BOUNDS, "(store y[", "binding \"y\" of 200 elements, index 200",
               "work-item (8, 0, 0) of group (3, 0, 0)"}},
    {.name = "bounds/loop_end",
     .check = "bounds",
     .text = IDS "%n = constant u32 @\n%a = var f32 %f1\n%k = for u32 %c0, %n, %c1\n"
                 "  %v = load f32 x[%k]\n  %q = get f32 %a\n  %s = add f32 %q, %v\n  set %a, %s\n"
                 "end\n%t = get f32 %a\nstore y[%i], %t\n",
     .right = "256",
     .wrong = "257",
     .words = {BOUNDS, "load f32 x[", "binding \"x\" of 256 elements, index 256", "256 times"}},
    {.name = "bounds/index_from_memory",
     .check = "bounds",
     .text = IDS "%t = load u32 z[%i]\n%o = constant u32 @\n%j = add u32 %t, %o\n"
                 "%v = load f32 x[%j]\nstore y[%i], %v\n",
     .right = "0",
     .wrong = "255",
     .words = {BOUNDS, "load f32 x[", "binding \"x\" of 256 elements, index 256", "256 times"}},
    {.name = "math/division_by_zero",
     .check = "math",
     .text = IDS "%t = load u32 z[%i]\n%o = constant u32 @\n%d = sub u32 %t, %o\n"
                 "%q = div u32 %i, %d\nstore z[%i], %q\n",
     .right = "0",
     .wrong = "1",
     .words = {"division by zero", " = div u32 %", " and 0", "256 times"}},
    {.name = "math/remainder_by_zero",
     .check = "math",
     .text = IDS "%s = cast i32 %i\n%o = constant i32 @\n%d = sub i32 %s, %o\n"
                 "%q = rem i32 %s, %d\n%u = cast u32 %q\nstore z[%i], %u\n",
     .right = "-7",
     .wrong = "7",
     .words = {"division by zero", " = rem i32 %", "of 7 and 0",
               "work-item (7, 0, 0) of group (0, 0, 0)"}},
    {.name = "math/quotient_of_the_smallest",
     .check = "math",
     .text = IDS "%s = constant i32 -2147483648\n%n = cast i32 %i\n%m = neg i32 %n\n"
                 "%o = constant i32 @\n%d = sub i32 %m, %o\n%q = div i32 %s, %d\n"
                 "%u = cast u32 %q\nstore z[%i], %u\n",
     .right = "2",
     .wrong = "1",
     .words = {"quotient of the smallest integer and -1", " = div i32 %", "of -2147483648 and -1",
               "work-item (0, 0, 0) of group (0, 0, 0)"}},
    {.name = "math/shift_by_the_width",
     .check = "math",
     .text = IDS "%n = constant u32 @\n%w = shr u32 %l, %n\n%v = shl u32 %c1, %w\n"
                 "store z[%i], %v\n",
     .right = "1",
     .wrong = "0",
     .words = {"shift by the width or more", " = shl u32 %", "of 1 and "}},
    {.name = "math/shift_by_a_negative",
     .check = "math",
     .text = IDS "%s = cast i32 %c1\n%n = cast i32 %l\n%o = constant i32 @\n%m = and i32 %n, %o\n"
                 "%d = sub i32 %m, %k\n%v = shr i32 %s, %d\n%u = cast u32 %v\nstore z[%i], %u\n",
     .right = "15\n%k = constant i32 0",
     .wrong = "15\n%k = constant i32 1",
     .words = {"shift by the width or more", " = shr i32 %", "of 1 and -1", "16 times"}},
    {.name = "math/conversion_of_a_large_float",
     .check = "math",
     .text = IDS "%v = load f32 x[%i]\n%n = constant f32 @\n%p = mul f32 %v, %n\n"
                 "%u = cast i32 %p\n%w = cast u32 %u\nstore z[%i], %w\n",
     .right = "1073741824.0",
     .wrong = "0x1.000000p+31",
     .words = {"conversion of a float out of the integer's range", " = cast i32 %", "256 times"}},
    {.name = "math/conversion_of_a_negative_float",
     .check = "math",
     .text = IDS "%v = load f32 x[%i]\n%n = constant f32 @\n%p = sub f32 %v, %n\n"
                 "%u = cast u32 %p\nstore z[%i], %u\n",
     .right = "1.5",
     .wrong = "3.0",
     .words = {"conversion of a float out of the integer's range", " = cast u32 %", "of -2"}},
    {.name = "math/index_overflow",
     .check = "math",
     .text =
         IDS "%n = constant u32 @\n%h = mul u32 %i, %n\n%j = mul u32 %h, %n\n%k = add u32 %j, %i\n"
             "%v = load f32 x[%k]\nstore y[%i], %v\n",
     .right = "0",
     .wrong = "65536",
     .words = {"index arithmetic that overflows", "load f32 x[", "binding \"x\"", "exactly "}},
    RANGE_FAULT("local_id", "%k = max u32 %l, %c0\n", "63", "68174085", "4294967355"),
    RANGE_FAULT("sum", "%k = add u32 %l, %l\n", "63", "34087043", "4294967418"),
    RANGE_FAULT("difference", "%k = sub u32 %c64, %l\n", "0", "67108864", "4294967296"),
    RANGE_FAULT("quotient", "%d = constant u32 3\n%k = div u32 %l, %d\n", "63", "204522253",
                "4294967313"),
    RANGE_FAULT("remainder", "%d = constant u32 16\n%k = rem u32 %l, %d\n", "63", "286331154",
                "4294967310"),
    RANGE_FAULT("minimum", "%d = constant u32 40\n%k = min u32 %l, %d\n", "63", "107374183",
                "4294967320"),
    RANGE_FAULT("maximum", "%d = constant u32 40\n%k = max u32 %d, %l\n", "63", "68174085",
                "4294967355"),
    RANGE_FAULT("left_shift", "%k = shl u32 %l, %c2\n", "63", "17043522", "4294967544"),
    RANGE_FAULT("right_shift", "%k = shr u32 %l, %c1\n", "63", "138547333", "4294967323"),
    RANGE_FAULT("mask", "%d = constant u32 47\n%k = and u32 %d, %l\n", "63", "91382283",
                "4294967301"),
    RANGE_FAULT("first_choice",
                "%d = constant u32 60\n%t = lt bool %c1, %l\n%k = select u32 %t, %d, %c1\n", "63",
                "71582789", "4294967340"),
    RANGE_FAULT("second_choice",
                "%d = constant u32 60\n%t = lt bool %l, %c2\n%k = select u32 %t, %c1, %d\n", "63",
                "71582789", "4294967340"),
    {.name = "math/range_of_group_id",
     .check = "math",
     .text = IDS "%n = constant u32 @\n%j = mul u32 %g, %n\n%e = constant u32 3\n"
                 "%in = eq bool %g, %e\n%v = load f32 x[%j] if %in\nstore y[%i], %v\n",
     .right = "1",
     .wrong = "1431655766",
     .words = {"index arithmetic that overflows", "load f32 x[", "exactly 4294967298",
               "of group (3, 0, 0)"}},
    {.name = "math/range_of_counter",
     .check = "math",
     .text = IDS "%n = constant u32 @\n%e = constant u32 63\n%a = var f32 %f1\n"
                 "%k = for u32 %c0, %c64, %c1\n  %j = mul u32 %k, %n\n  %in = eq bool %k, %e\n"
                 "  %v = load f32 x[%j] if %in\n  set %a, %v\nend\n%t = get f32 %a\n"
                 "store y[%i], %t\n",
     .right = "1",
     .wrong = "68174085",
     .words = {"index arithmetic that overflows", "load f32 x[", "exactly 4294967355",
               "256 times"}},
    /* A factor below 0: the least of the product is the greatest of the other. */
    {.name = "math/range_of_negative_product",
     .check = "math",
     .text = IDS "%s = cast i32 %l\n%n = constant i32 @\n%m = mul i32 %s, %n\n"
                 "%o = constant i32 64\n%j = add i32 %m, %o\n%e = constant u32 63\n"
                 "%in = eq bool %l, %e\n%v = load f32 x[%j] if %in\nstore y[%i], %v\n",
     .right = "-1",
     .wrong = "-68174085",
     .words = {"index arithmetic that overflows", "load f32 x[", "index 5", "exactly -4294967291"}},
    {.name = "math/range_of_least_difference",
     .check = "math",
     .text = IDS "%s = cast i32 %l\n%n = constant i32 @\n%m = mul i32 %s, %n\n"
                 "%j = sub i32 %d, %m\n%e = constant u32 63\n"
                 "%in = eq bool %l, %e\n%v = load f32 x[%j] if %in\nstore y[%i], %v\n",
     .right = "-1\n%d = constant i32 0",
     .wrong = "34087043\n%d = constant i32 -2147483582",
     .words = {"index arithmetic that overflows", "load f32 x[", "index 5", "exactly -4294967291"}},
    /* What is below 0 and is then read without a sign is not in the range of whole numbers. */
    {.name = "math/range_that_loses_its_sign",
     .check = "math",
     .text = IDS "%d = sub u32 %l, %c1\n%y = constant u32 24\n%h = shr u32 %d, %y\n"
                 "%n = constant u32 @\n%m = mul u32 %h, %n\n%j = add u32 %m, %n\n"
                 "%in = eq bool %l, %c0\n%v = load f32 x[%j] if %in\nstore y[%i], %v\n",
     .right = "0",
     .wrong = "16777216",
     .words = {"index arithmetic that overflows", "load f32 x[", "index 0", "exactly 4294967296"}},
    {.name = "math/range_that_gets_a_sign",
     .check = "math",
     .text = IDS "%w = constant u32 67108864\n%p = mul u32 %l, %w\n%s = cast i32 %p\n"
                 "%m = constant i32 @\n"
                 "%j = sub i32 %s, %m\n%e = constant u32 32\n%z = constant i32 0\n"
                 "%c = eq bool %l, %e\n%r = ne bool %m, %z\n%in = and bool %c, %r\n"
                 "%v = load f32 x[%j] if %in\nstore y[%i], %v\n",
     .right = "0",
     .wrong = "2147483647",
     .words = {"index arithmetic that overflows", "load f32 x[", "index 1", "exactly -4294967295"}},
    {.name = "nan/division_of_zeros",
     .check = "nan",
     .text = IDS "%v = load f32 x[%i]\n%z = sub f32 %v, %f1\n%w = @ f32 %z, %z\n"
                 "store y[%i], %w\n",
     .right = "mul",
     .wrong = "div",
     .words = {"NaN or infinity from finite operands", " = div f32 %", "result nan, of 0 and 0"}},
    {.name = "nan/division_by_zero",
     .check = "nan",
     .text = IDS "%v = load f32 x[%i]\n%z = sub f32 %v, %f1\n%w = @ f32 %v, %z\n"
                 "store y[%i], %w\n",
     .right = "mul",
     .wrong = "div",
     .words = {"NaN or infinity from finite operands", " = div f32 %", "result inf, of 1 and 0"}},
    {.name = "nan/product_too_large",
     .check = "nan",
     .text = IDS "%v = load f32 x[%i]\n%n = constant f32 @\n%p = mul f32 %v, %n\n"
                 "%q = mul f32 %p, %n\n%m = add f32 %q, %f1\nstore y[%i], %m\n",
     .right = "0x1.000000p+60",
     .wrong = "0x1.000000p+70",
     .words = {"NaN or infinity from finite operands", " = mul f32 %", "result inf"}},
    {.name = "nan/root_of_a_negative",
     .check = "nan",
     .text = IDS "%v = load f32 x[%i]\n%n = constant f32 @\n%d = sub f32 %v, %n\n"
                 "%q = sqrt f32 %d\nstore y[%i], %q\n",
     .right = "0.5",
     .wrong = "2.0",
     .words = {"NaN or infinity from finite operands", " = sqrt f32 %", "result nan, of -1"}},
    {.name = "nan/logarithm_of_zero",
     .check = "nan",
     .text = IDS "%v = load f32 x[%i]\n%n = constant f32 @\n%d = sub f32 %v, %n\n"
                 "%q = log f32 %d\nstore y[%i], %q\n",
     .right = "0.5",
     .wrong = "1.0",
     .words = {"NaN or infinity from finite operands", " = log f32 %", "result -inf, of 0"}},
    {.name = "nan/exponential_too_large",
     .check = "nan",
     .text = IDS "%v = load f32 x[%i]\n%n = constant f32 @\n%d = mul f32 %v, %n\n"
                 "%q = exp f32 %d\nstore y[%i], %q\n",
     .right = "80.0",
     .wrong = "100.0",
     .words = {"NaN or infinity from finite operands", " = exp f32 %", "result inf, of 100"}},
    {.name = "nan/sum_in_a_loop",
     .check = "nan",
     .text = IDS "%n = constant u32 @\n%h = constant f32 0x1.000000p+120\n%a = var f32 %h\n"
                 "%k = for u32 %c0, %n, %c1\n  %q = get f32 %a\n  %s = add f32 %q, %q\n"
                 "  set %a, %s\nend\n%t = get f32 %a\nstore y[%i], %t\n",
     .right = "7",
     .wrong = "12",
     .words = {"NaN or infinity from finite operands", " = add f32 %", "result inf", "256 times"}},
    {.name = "nan/store_beyond_f16",
     .check = "nan",
     .text = "shared h f16 64\n" IDS "%v = load f32 x[%i]\n%n = constant f32 @\n"
             "%d = mul f32 %v, %n\nstore h[%l], %d\nbarrier\n%w = load f32 h[%l]\n"
             "store y[%i], %w\n",
     .right = "60000.0",
     .wrong = "70000.0",
     .words = {"store of a finite number that becomes NaN or infinity", "(store h[",
               "shared array \"h\"", "value 70000"}},
    {.name = "nan/wide_store_beyond_f16",
     .check = "nan",
     .text = "shared h f16 256\n" IDS "%v = load f32 x[%i]\n%n = constant f32 @\n"
             "%d = mul f32 %v, %n\n%m = mul u32 %l, %c2\n%p = pack f32x2 %v, %d\n"
             "store h[%m], %p\nbarrier\n%w = load f32 h[%l]\nstore y[%i], %w\n",
     .right = "60000.0",
     .wrong = "70000.0",
     .words = {"store of a finite number that becomes NaN or infinity", "(store h[",
               "shared array \"h\"", "value 70000"}},
    {.name = "nan/wide_store_of_an_infinity",
     .check = "nan",
     .text = IDS "%v = load u32 z[%i]\n%x = cast f32 %v\n%k = sub f32 %x, %f1\n"
                 "%q = @ f32 %x, %k\n%m = mul u32 %l, %c2\n%p = pack f32x2 %x, %q\n"
                 "%in = eq bool %g, %c0\nstore y[%m], %p if %in\n",
     .right = "mul",
     .wrong = "div",
     .words = {"NaN or infinity from finite operands", " = div f32 %", "result inf, of 1 and 0"}},
    {.name = "nan/quotient_that_is_stored",
     .check = "nan",
     .text = IDS "%v = load f32 x[%i]\n%z = sub f32 %v, %f1\n%q = div f32 %v, %z\n"
                 "%r = div f32 %f1, %q\n%w = sqrt f32 %r\nstore y[%i], @\n",
     .right = "%w",
     .wrong = "%q",
     .words = {"NaN or infinity from finite operands", " = div f32 %", "result inf, of 1 and 0",
               "which record "}},
    {.name = "nan/chosen_by_mistake",
     .check = "nan",
     .text = IDS "%v = load f32 x[%i]\n%z = sub f32 %v, %f1\n%q = div f32 %z, %z\n"
                 "%n = @ bool %z, %z\n%w = select f32 %n, %q, %f1\nstore y[%i], %w\n",
     .right = "ne",
     .wrong = "eq",
     .words = {"NaN or infinity from finite operands", " = div f32 %", "result nan, of 0 and 0"}},
    {.name = "nan/moved_as_bits",
     .check = "nan",
     .text = IDS "%v = load f32 x[%i]\n%n = constant f32 @\n%p = mul f32 %v, %n\n"
                 "%q = mul f32 %p, %n\n%s = neg f32 %q\n%u = bitcast u32 %s\n"
                 "%h = shuffle_xor u32 %u, 1\n%a = var u32 %h\n%w = get u32 %a\n"
                 "store z[%i], %w\n",
     .right = "0x1.000000p+60",
     .wrong = "0x1.000000p+70",
     .words = {"NaN or infinity from finite operands", " = mul f32 %", "result inf"}},
    {.name = "race/missing_barrier",
     .check = "race",
     .text = "shared s f32 64\n" IDS "store s[%l], %f1\n@%o = constant u32 63\n"
             "%r = sub u32 %o, %l\n%v = load f32 s[%r]\nstore y[%i], %v\n",
     .right = "barrier\n",
     .wrong = "",
     .words = {"race", " s[", "shared array \"s\" of 64 elements", ", with work-item"}},
    {.name = "race/one_element_written_by_all",
     .check = "race",
     .text = "shared s f32 64\n" IDS "%n = constant u32 @\n%j = and u32 %l, %n\n"
             "store s[%j], %f1\nbarrier\n%v = load f32 s[%c0]\nstore y[%i], %v\n",
     .right = "63",
     .wrong = "31",
     .words = {"race", " s[", "shared array \"s\" of 64 elements", ", with work-item"}},
    {.name = "race/write_after_read",
     .check = "race",
     .text = "shared s f32 64\n" IDS "store s[%l], %f1\nbarrier\n%o = constant u32 63\n"
             "%r = sub u32 %o, %l\n%v = load f32 s[%r]\n@store s[%l], %v\nbarrier\n"
             "%w = load f32 s[%l]\nstore y[%i], %w\n",
     .right = "barrier\n",
     .wrong = "",
     .words = {"race", " s[", "shared array \"s\" of 64 elements", ", with work-item"}},
    {.name = "race/loop_without_second_barrier",
     .check = "race",
     .text = "shared s f32 64\n" IDS "%n = constant u32 4\n%o = constant u32 63\n"
             "%r = sub u32 %o, %l\n%a = var f32 %f1\n%k = for u32 %c0, %n, %c1\n"
             "  store s[%l], %f1\n  barrier\n  %v = load f32 s[%r]\n  set %a, %v\n  @end\n"
             "%t = get f32 %a\nstore y[%i], %t\n",
     .right = "barrier\n",
     .wrong = "",
     .words = {"race", " s[", "shared array \"s\" of 64 elements", ", with work-item"}},
    {.name = "race/tree_without_barrier",
     .check = "race",
     .text = "shared s f32 64\n" IDS "store s[%l], %f1\nbarrier\n%h = constant u32 32\n"
             "%in = lt bool %l, %h\n%p = load f32 s[%l] if %in\n%q = load f32 s[%l + 32] if %in\n"
             "%u = add f32 %p, %q\nstore s[%l], %u if %in\n@%m = constant u32 16\n"
             "%im = lt bool %l, %m\n%v = load f32 s[%l] if %im\n%w = load f32 s[%l + 16] if %im\n"
             "%x = add f32 %v, %w\nstore y[%i], %x\n",
     .right = "barrier\n",
     .wrong = "",
     .words = {"race", " s[", "shared array \"s\" of 64 elements", ", with work-item"}},
    {.name = "race/copy_without_barrier",
     .check = "race",
     .text = "shared s f32 64\n" IDS "async_copy 1 s[%l], x[%i]\nasync_commit\nasync_wait 0\n"
             "@%o = constant u32 63\n%r = sub u32 %o, %l\n%v = load f32 s[%r]\nstore y[%i], %v\n",
     .right = "barrier\n",
     .wrong = "",
     .words = {"race", " s[", "shared array \"s\" of 64 elements", ", with work-item"}},
    {.name = "race/wide_overlap",
     .check = "race",
     .text = "shared s f32 256\n" IDS "%c4 = constant u32 4\n%m = mul u32 %l, %c4\n"
             "%n = constant u32 @\n%j = and u32 %m, %n\n%v = pack f32x4 %f1, %f1, %f1, %f1\n"
             "store s[%j], %v\nbarrier\n%w = load f32 s[%l]\nstore y[%i], %w\n",
     .right = "255",
     .wrong = "127",
     .words = {"race", " s[", "shared array \"s\" of 256 elements", ", with work-item"}},
    {.name = "race/element_of_a_neighbour",
     .check = "race",
     .text = IDS "%n = constant u32 255\n%o = constant u32 @\n%s = add u32 %i, %o\n"
                 "%j = and u32 %s, %n\n%v = load u32 z[%j]\n%w = add u32 %v, %c1\n"
                 "store z[%i], %w\n",
     .right = "0",
     .wrong = "1",
     .words = {"race", " z[", "binding \"z\" of 256 elements", ", with "}},
    {.name = "race/two_write_one_element",
     .check = "race",
     .text = IDS "%n = constant u32 @\n%j = and u32 %i, %n\nstore z[%j], %i\n",
     .right = "255",
     .wrong = "127",
     .words = {"race", "(store z[", "binding \"z\" of 256 elements", ", with "}},
    {.name = "race/groups_without_order",
     .check = "race",
     .text = "shared s u32 64\n" IDS "store s[%l], %l\nbarrier\n%o = constant u32 63\n"
             "%r = sub u32 %o, %l\n%v = load u32 s[%r]\n%n = constant u32 @\n"
             "%j = and u32 %i, %n\n%p = load u32 z[%j]\n%w = add u32 %p, %v\n"
             "store z[%j], %w\n",
     .right = "255",
     .wrong = "63",
     .words = {"race", " z[", "binding \"z\" of 256 elements", "group"},
     .has_more = true},
    {.name = "race/wide_stores_overlap",
     .check = "race",
     .text = IDS "%c4 = constant u32 4\n%k = mul u32 %l, %c4\n%n = constant u32 @\n"
                 "%j = and u32 %k, %n\n%v = pack u32x4 %l, %c1, %c2, %l\nstore z[%j], %v\n",
     .right = "255",
     .wrong = "127",
     .words = {"race", "(store z[", "binding \"z\" of 256 elements", ", with "}},
    {.name = "init/shared_never_written",
     .check = "init",
     .text = "shared s f32 64\n" IDS "@%v = load f32 s[%l]\nstore y[%i], %v\n",
     .right = "store s[%l], %f1\nbarrier\n",
     .wrong = "",
     .words = {"use of memory that was never written", "load f32 s[", "shared array \"s\"",
               "256 times"}},
    {.name = "init/shared_partly_written",
     .check = "init",
     .text = "shared s f32 64\n" IDS "%n = constant u32 @\n%in = lt bool %l, %n\n"
             "store s[%l], %f1 if %in\nbarrier\n%v = load f32 s[%l]\nstore y[%i], %v\n",
     .right = "64",
     .wrong = "63",
     .words = {"use of memory that was never written", "load f32 s[",
               "shared array \"s\" of 64 elements, index 63", "4 times"}},
    {.name = "init/shared_counter",
     .check = "init",
     .text = "shared s u32 1\n" IDS "%first = eq bool %l, %c0\n@barrier\n"
             "%v = atomic add u32 s[%c0], %c1\nstore z[%i], %v\n",
     .right = "store s[%c0], %c0 if %first\n",
     .wrong = "",
     .words = {"use of memory that was never written", "atomic add u32 s[",
               "shared array \"s\" of 1 elements, index 0"}},
    {.name = "init/binding_never_written",
     .check = "init",
     .text = IDS "%v = load f32 x[%i]\nstore y[%i], %v@\n",
     .right = "",
     .wrong = "",
     .unwritten = {1024, 0, 0},
     .words = {"use of memory that was never written", "load f32 x[",
               "binding \"x\" of 256 elements, index ", "256 times"}},
    {.name = "init/binding_partly_written",
     .check = "init",
     .text = IDS "%v = load f32 x[%i]\n%w = add f32 %v, %f1\nstore y[%i], %w@\n",
     .right = "",
     .wrong = "",
     .unwritten = {4, 0, 0},
     .words = {"use of memory that was never written", "load f32 x[",
               "binding \"x\" of 256 elements, index 255", "1 times"}},
    {.name = "init/wide_load_over_the_written",
     .check = "init",
     .text = IDS "%c4 = constant u32 4\n%m = mul u32 %l, %c4\n%v = load f32x4 x[%m]\n"
                 "%e = extract f32 %v, 0\nstore y[%i], %e@\n",
     .right = "",
     .wrong = "",
     .unwritten = {8, 0, 0},
     .words = {"use of memory that was never written", "load f32x4 x[",
               "binding \"x\" of 256 elements, index 252 to 255", "4 times"}},
    {.name = "init/chosen_by_mistake",
     .check = "init",
     .text = IDS "%n = constant u32 @\n%in = lt bool %i, %n\n%v = load f32 x[%i]\n"
                 "%w = select f32 %in, %v, %f1\nstore y[%i], %w\n",
     .right = "254",
     .wrong = "255",
     .unwritten = {8, 0, 0},
     .words = {"use of memory that was never written", "load f32 x[",
               "binding \"x\" of 256 elements, index 254", "1 times"}},
    {.name = "init/counter_of_a_binding",
     .check = "init",
     .text = IDS "%v = atomic add u32 z[%i], %c1@\n",
     .right = "",
     .wrong = "",
     .unwritten = {0, 0, 1024},
     .words = {"use of memory that was never written", "atomic add u32 z[",
               "binding \"z\" of 256 elements, index ", "256 times"}},
};
const size_t sanitize_fault_count = sizeof sanitize_faults / sizeof *sanitize_faults;

void sanitize_fault_text(const sanitize_fault *fault, const char *part,
                         char text[static SANITIZE_TEXT_BYTES])
{
    const char *at = strchr(fault->text, '@');
    const int before = at ? (int)(at - fault->text) : (int)strlen(fault->text);
    char name[64];
    snprintf(name, sizeof name, "%s", fault->name);
    *strchr(name, '/') = '_';
    snprintf(text, SANITIZE_TEXT_BYTES, "kernel %s\n%s%.*s%s%s", name, head, before, fault->text,
             at ? part : "", at ? at + 1 : "");
}
