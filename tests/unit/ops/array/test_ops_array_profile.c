/* Fusion as a profile shows it: the calls of each group, and why it ends. */
#include "ops_fixture.h"

#include "ops_arrays.h"
#include "scratch.h"

static char path[SCRATCH_BYTES];
static char text[1 << 18];

static int begin(void **state)
{
    if (scratch_file(path, "groups") < 0) {
        return -1;
    }
    setenv("HAL_PROFILE", path, 1);
    return open_context(state);
}

/* How often a group of the page has these calls and this reason. */
static int count_groups(const char *calls, const char *end)
{
    char words[512];
    int found = 0;
    snprintf(words, sizeof words, "\"name\":\"%s\",\"cat\":\"group\",\"s\":\"t\",\"detail\":\"%s\"",
             calls, end);
    for (const char *at = text; (at = strstr(at, words)) != NULL; at++) {
        found++;
    }
    return found;
}

static ops_array *ones(void)
{
    const float values[16] = {1};
    return made(ops_array_from_host(test_context, HAL_TYPE_F32, 2, (int64_t[]){4, 4}, values));
}

TEST(groups_have_calls_and_reasons)
{
    float result[16];
    ops_scope_begin(test_context);
    ops_array *x = ones();
    assert_int_equal(ops_array_read(ops_tanh(ops_add(x, x)), sizeof result, result), HAL_OK);
    ops_array *y = ops_matmul(ops_exp(ops_mul(x, x)), x);
    assert_int_equal(ops_array_read(ops_abs(y), sizeof result, result), HAL_OK);
    ops_array *held = ops_array_keep(ops_array_reduce(OPS_REDUCE_SUM, 0, 0, ops_square(x)));
    assert_int_equal(ops_array_read(ops_sqrt(held), 4 * sizeof(float), result), HAL_OK);
    ops_array *chain = x;
    for (int i = 0; i < 70; i++) {
        chain = ops_sin(chain);
    }
    assert_int_equal(ops_array_read(chain, sizeof result, result), HAL_OK);
    ops_array_release(held);
    ops_scope_end(test_context);
    close_context(NULL);

    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    remove(path);
    const char *const asked = "the program asks for the values";
    assert_int_equal(count_groups("add tanh", asked), 1);
    assert_int_equal(
        count_groups("mul exp", "a product, softmax or move reads its operand from memory"), 1);
    assert_int_equal(count_groups("matmul abs", asked), 1);
    assert_non_null(strstr(text, "the next call would exceed the operations or arrays of one"));
    assert_non_null(strstr(text, "\"detail\":\"tanh\"")); /* the label of a result */
    assert_int_equal(
        count_groups("sin sin", asked) > 0 || strstr(text, "sin sin sin sin sin sin\"") != NULL, 1);
}

UNIT_MAIN(begin, NULL)
