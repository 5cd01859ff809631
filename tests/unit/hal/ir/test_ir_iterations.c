/* The count of loop iterations, by which hal refuses kernels on devices that limit them. */
#include "ir_fixture.h"

#include "ir/iterations.h"

#define HEAD                                                                                     \
    "kernel k\nscalar n u32 0\n%z = constant u32 0\n%one = constant u32 1\n%ten = constant u32 " \
    "10\n"                                                                                       \
    "%n = scalar u32 n\n"

static uint64_t iterations_of(const char *text)
{
    hal_ir_kernel *kernel = ir_read(text);
    const uint64_t count = hal_ir_loop_iterations(kernel);
    hal_ir_kernel_destroy(kernel);
    return count;
}

TEST(loops_count_their_iterations_and_one_more)
{
    static const struct {
        const char *text;
        uint64_t count;
    } kernels[] = {
        {HEAD, 0},
        {HEAD "%i = for u32 %z, %ten, %one\nend\n", 11},
        {HEAD "%t = constant u32 3\n%i = for u32 %one, %ten, %t\nend\n", 4},
        {HEAD "%i = for u32 %ten, %one, %one\nend\n", 1},
        {HEAD "%i = for u32 %z, %ten, %one\nend\n%j = for u32 %z, %ten, %one\nend\n", 22},
        {HEAD "%i = for u32 %z, %ten, %one\n%j = for u32 %z, %ten, %one\nend\nend\n", 121},
        {HEAD "%i = for u32 %z, %n, %one\n%j = for u32 %z, %ten, %one\nend\nend\n", 13},
        {HEAD "%a = constant i32 -5\n%b = constant i32 5\n%s = constant i32 2\n"
              "%i = for i32 %a, %b, %s\nend\n",
         6},
        {HEAD "%m = constant u32 4294967295\n%i = for u32 %z, %m, %one\n"
              "%j = for u32 %z, %m, %one\n%k = for u32 %z, %m, %one\nend\nend\nend\n",
         UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        assert_int_equal(iterations_of(kernels[i].text), kernels[i].count);
    }
}

TEST(scalars_count_where_they_are_known)
{
    static const char text[] = "kernel k\nscalar m u32 0\nscalar n i32 4\n%z = constant u32 0\n"
                               "%one = constant u32 1\n%m = scalar u32 m\n%a = constant i32 -3\n"
                               "%s = constant i32 2\n%n = scalar i32 n\n"
                               "%i = for u32 %z, %m, %one\n%j = for i32 %a, %n, %s\nend\nend\n";
    hal_ir_kernel *kernel = ir_read(text);
    const uint32_t few[2] = {10, 5}, none[2] = {10, (uint32_t)-3}, many[2] = {UINT32_MAX, 5};
    assert_int_equal(hal_ir_has_scalar_loops(kernel), 1);
    assert_int_equal(hal_ir_loop_iterations(kernel), 4);
    assert_int_equal(hal_ir_scalar_iterations(kernel, few), 10 * (4 + 1 + 1) + 1);
    assert_int_equal(hal_ir_scalar_iterations(kernel, none), 10 * (1 + 1) + 1);
    assert_int_equal(hal_ir_scalar_iterations(kernel, many), UINT64_C(6) * UINT32_MAX + 1);
    hal_ir_kernel_destroy(kernel);
    kernel = ir_read(HEAD "%i = for u32 %z, %ten, %one\nend\n");
    assert_int_equal(hal_ir_has_scalar_loops(kernel), 0);
    hal_ir_kernel_destroy(kernel);
}

TEST(the_longer_branch_counts)
{
#define BRANCHES(first, second)                                  \
    HEAD "%c = lt bool %n, %ten\nif %c\n%i = for u32 %z, " first \
         ", %one\nend\nelse\n%j = for u32 %z, " second ", %one\nend\nend\n"
    assert_int_equal(iterations_of(BRANCHES("%ten", "%one")), 11);
    assert_int_equal(iterations_of(BRANCHES("%one", "%ten")), 11);
}

TEST(remainders_of_floats_count_as_loops)
{
    static const char expression[] = "fragment f\n%x = input f64 0\n%y = rem f64 %x, %x\n"
                                     "%a = input f32 1\n%b = rem f32 %a, %a\noutput 0, %y\n"
                                     "output 1, %b\n";
    assert_int_equal(iterations_of(expression), 196);
    assert_int_equal(iterations_of(HEAD "%r = rem u32 %n, %ten\n"), 0);
}

UNIT_MAIN(NULL, NULL)
