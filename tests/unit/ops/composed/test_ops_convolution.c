/* Convolutions: how many kernels they take, fused work on the result, no array left, bad
 * arguments. hal-conformance compares the values with double precision. */
#include "composed/compose.h"
#include "ops_arrays.h"
#include "ops_fixture.h"

#include <math.h>
#include <ops/convolution.h>

static ops_array *numbers(uint32_t rank, const int64_t *shape, double step)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        count *= shape[i];
    }
    ops_array *line = made(ops_array_iota(test_context, HAL_TYPE_F32, count, -1, step));
    return made(ops_array_reshape(line, rank, shape));
}

/* The kernels that an array takes, and its first and last element. */
static uint64_t kernels_of(ops_array *array, float ends[2])
{
    float elements[4096];
    ok(ops_array_evaluate(&array, 1));
    const uint64_t kernels = statistics_of(test_context).kernels;
    const int64_t count = ops_array_get_element_count(made(array));
    assert_in_range(count, 1, 4096);
    ok(ops_array_read(array, (uint64_t)count * sizeof *elements, elements));
    ends[0] = elements[0];
    ends[1] = elements[count - 1];
    return kernels;
}

static void near(float got, double wanted)
{
    if (!((double)got >= wanted - 1e-5 && (double)got <= wanted + 1e-5)) {
        fail_msg("got %g, wanted %g", (double)got, wanted);
    }
}

static void kernels_are_counted(void **state)
{
    const ops_convolution_options padded = {
        .size = sizeof padded, .before = {1, 1}, .after = {1, 1}};
    const ops_convolution_options active = {.size = sizeof active, .activation = OPS_RELU};
    const ops_convolution_options depthwise = {.size = sizeof depthwise, .groups = 3};
    const uint64_t arrays = statistics_of(test_context).arrays;
    float ends[2];
    ops_context_set_convolution(test_context, OPS_CONVOLUTION_COPIED);
    ok(ops_scope_begin(test_context));
    ops_array *x = numbers(4, (int64_t[]){2, 3, 5, 4}, 0.01);
    ops_array *dot = numbers(4, (int64_t[]){4, 3, 1, 1}, 0.1);
    ops_array *w = numbers(4, (int64_t[]){4, 3, 3, 3}, 0.01);
    ops_array *thin = numbers(4, (int64_t[]){3, 1, 2, 2}, 0.1);
    ops_array *bias = numbers(1, (int64_t[]){4}, 1);
    ok(ops_array_evaluate((ops_array *[]){x, dot, w, thin, bias}, 5));
    uint64_t before = statistics_of(test_context).kernels;
    ops_array *y = ops_array_convolution(&active, x, dot, bias);
    assert_int_equal(kernels_of(y, ends) - before, 1);
    before = statistics_of(test_context).kernels;
    y = ops_array_convolution(&active, x, w, bias);
    assert_int_equal(kernels_of(y, ends) - before, 2); /* the windows, the product */
    before = statistics_of(test_context).kernels;
    y = ops_array_convolution(&padded, x, w, NULL);
    assert_in_range(kernels_of(y, ends) - before, 3, 4); /* x with zeros, or zeros and x there */
    before = statistics_of(test_context).kernels;
    y = ops_array_convolution(&depthwise, x, thin, NULL);
    /* Of processors, which have channels last in between: x, weights and the result as well. */
    assert_in_range(kernels_of(y, ends) - before, 1, 4);
    ok(ops_scope_end(test_context));
    ops_context_set_convolution(test_context, OPS_CONVOLUTION_AUTO);
    assert_int_equal(statistics_of(test_context).arrays, arrays);
}

/* Kernels of windows of one element: a product, or elementwise work with one channel per group. No
 * window is copied, and a step has a copy, and zeros where x is spread. */
static void windows_of_one_are_products(void **state)
{
    const uint64_t arrays = statistics_of(test_context).arrays;
    float ends[2];
    ok(ops_scope_begin(test_context));
    for (uint32_t last = 0; last < 2; last++) {
        const ops_convolution_options plain = {.size = sizeof plain, .channels_last = last};
        const ops_convolution_options apart = {
            .size = sizeof apart, .channels_last = last, .stride = {2, 2}};
        const ops_convolution_options grouped = {
            .size = sizeof grouped, .channels_last = last, .groups = 4};
        const int64_t shapes[2][4] = {{1, 4, 5, 6}, {1, 5, 6, 4}};
        ops_array *x = numbers(4, shapes[last], 0.01);
        ops_array *w = numbers(4, (int64_t[]){4, 4, 1, 1}, 0.1);
        ops_array *thin = numbers(4, (int64_t[]){4, 1, 1, 1}, 0.1);
        ok(ops_array_evaluate((ops_array *[]){x, w, thin}, 3));
        struct {
            ops_array *y;
            uint64_t kernels;
        } made[] = {
            {ops_array_convolution_transposed(&plain, x, w, NULL, NULL), 1},
            {ops_array_convolution(&apart, x, w, NULL), 2},
            {ops_array_convolution_transposed(&apart, x, w, NULL, NULL), 3},
            {ops_array_convolution(&grouped, x, thin, NULL), 1},
            {ops_array_convolution_transposed(&grouped, x, thin, NULL, NULL), 1},
            {ops_array_convolution_weights(&plain, x, x, (int64_t[]){1, 1}), 1},
        };
        for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
            const uint64_t before = statistics_of(test_context).kernels;
            const uint64_t kernels = kernels_of(made[i].y, ends) - before;
            if (kernels != made[i].kernels) {
                fail_msg("number %zu, channels last %u: %llu kernels, wanted %llu", i, last,
                         (unsigned long long)kernels, (unsigned long long)made[i].kernels);
            }
        }
    }
    ok(ops_scope_end(test_context));
    assert_int_equal(statistics_of(test_context).arrays, arrays);
}

/* A depthwise convolution with an activation is that of its result. */
static void depthwise_with_activation(void **state)
{
    enum { RESULTS = 2 * 3 * 4 * 11 };
    const ops_convolution_options plain = {.size = sizeof plain, .groups = 3};
    const ops_convolution_options active = {
        .size = sizeof active, .groups = 3, .activation = OPS_RELU};
    float got[RESULTS], expected[RESULTS];
    bool has_negative = false;
    ok(ops_scope_begin(test_context));
    ops_array *x = numbers(4, (int64_t[]){2, 3, 5, 12}, 0.01);
    ops_array *w = numbers(4, (int64_t[]){3, 1, 2, 2}, 0.2);
    ok(ops_array_read(made(ops_array_convolution(&active, x, w, NULL)), sizeof got, got));
    ok(ops_array_read(made(ops_array_convolution(&plain, x, w, NULL)), sizeof expected, expected));
    for (int i = 0; i < RESULTS; i++) {
        has_negative |= expected[i] < 0;
        assert_true(got[i] == (expected[i] > 0 ? expected[i] : 0));
    }
    assert_true(has_negative);
    ok(ops_scope_end(test_context));
}

/* With weights -1 and -0.5, of x from -1 to 0.6. */
static void small_ones_are_right(void **state)
{
    float ends[2];
    for (int fusion = 1; fusion >= 0; fusion--) {
        ops_context_set_fusion(test_context, fusion);
        ok(ops_scope_begin(test_context));
        ops_array *x = numbers(3, (int64_t[]){1, 1, 17}, 0.1);
        ops_array *w = numbers(3, (int64_t[]){1, 1, 2}, 0.5);
        ops_array *bias = made(ops_array_full(test_context, HAL_TYPE_F32, 1, (int64_t[]){1}, 4));
        kernels_of(ops_array_convolution(NULL, x, w, bias), ends);
        near(ends[0], 1.0 + 0.45 + 4);
        near(ends[1], -0.5 - 0.3 + 4);
        kernels_of(ops_array_convolution_transposed(NULL, x, w, NULL, NULL), ends);
        near(ends[0], 1.0);
        near(ends[1], -0.3);
        kernels_of(
            ops_array_convolution_weights(NULL, x, ops_array_slice(x, 2, 0, 16, 1), (int64_t[]){2}),
            ends);
        near(ends[0], 4.4); /* the sum of squares from -1 to 0.5 in steps of 0.1 */
        ok(ops_scope_end(test_context));
    }
    ops_context_set_fusion(test_context, 1);
}

/* One channel per group: the bits of a result do not depend on the results that one work-item
 * computes with it. */
static void neighbours_change_no_bits(void **state)
{
    enum { CHANNELS = 5, LINES = 23, LENGTH = 19, MOST = CHANNELS * LINES * LENGTH };
    static float whole[MOST], one[MOST];
    ops_convolution_options o = {.size = sizeof o, .groups = CHANNELS};
    ok(ops_scope_begin(test_context));
    for (uint32_t turn = 0; turn < 8; turn++) {
        const int64_t step = 1 + turn / 2 % 2, window = turn < 4 ? 3 : 5;
        const int64_t lines = (LINES - window) / step + 1, count = (LENGTH - window) / step + 1;
        const int32_t along = turn % 2 ? 1 : 2; /* channels last: the second axis */
        o.channels_last = turn % 2;
        o.stride[0] = o.stride[1] = step;
        ops_array *x =
            made(ops_sin(numbers(4,
                                 o.channels_last ? (int64_t[]){1, LINES, LENGTH, CHANNELS}
                                                 : (int64_t[]){1, CHANNELS, LINES, LENGTH},
                                 0.7)));
        ops_array *w = ops_sin(numbers(4, (int64_t[]){CHANNELS, 1, window, window}, 1.3));
        const size_t floats = (size_t)(CHANNELS * lines * count);
        ok(ops_array_read(made(ops_array_convolution(&o, x, w, NULL)), floats * sizeof *whole,
                          whole));
        for (int64_t line = 0; line < lines; line++) {
            ops_array *part = ops_array_slice(x, along, line * step, window, 1);
            part = made(ops_array_convolution(&o, part, w, NULL));
            ok(ops_array_read(part, floats / (size_t)lines * sizeof *one, one));
            for (int64_t i = 0; i < CHANNELS * count; i++) {
                const int64_t at = o.channels_last ? line * CHANNELS * count + i
                                                   : (i / count * lines + line) * count + i % count;
                assert_memory_equal(&one[i], &whole[at], sizeof *one);
            }
        }
    }
    ok(ops_scope_end(test_context));
}

static void wrong_calls_are_refused(void **state)
{
    ops_convolution_options o = {.size = sizeof o};
    ok(ops_scope_begin(test_context));
    ops_array *x = numbers(4, (int64_t[]){2, 4, 5, 4}, 0.01);
    ops_array *w = numbers(4, (int64_t[]){4, 2, 3, 3}, 0.01);
    ops_array *flat = numbers(2, (int64_t[]){4, 2}, 1), *bias = numbers(1, (int64_t[]){3}, 1);
    nothing(ops_array_convolution(NULL, x, NULL, NULL), "");
    nothing(ops_array_convolution(NULL, x, w, NULL), "w: expected [O, C, window]");
    nothing(ops_array_convolution(NULL, flat, w, NULL), "spatial axes");
    o.groups = 2;
    nothing(ops_array_convolution(&o, x, w, bias), "bias: expected f32[4], got f32[3]");
    nothing(ops_array_convolution(&o, x, ops_array_cast(HAL_TYPE_F64, w), NULL), "float type of x");
    o.dilation[1] = 2;
    nothing(ops_array_convolution(&o, x, w, NULL), "of length 4 along spatial axis 1");
    o.dilation[1] = -1;
    nothing(ops_array_convolution(&o, x, w, NULL), "options.dilation[1]");
    o.dilation[1] = 0;
    nothing(ops_array_convolution_transposed(&o, x, w, NULL, (int64_t[]){0, 1}), "got 0 from 5");
    nothing(ops_array_convolution_weights(&o, x, x, (int64_t[]){3, 3}), "dy: expected");
    o.size = 4;
    nothing(ops_array_convolution(&o, x, w, NULL), "options");
    nothing(ops_array_windows(x, 2, 6, 1, 1), "expected windows within axis 2");
    nothing(ops_array_windows(x, 4, 1, 1, 1), "got 4");
    nothing(ops_array_diagonal(x, 1, -3, 0), "the same was given twice");
    ok(ops_scope_end(test_context));
}

static void views_are_right(void **state)
{
    static const float wanted[] = {0, 1, 2, 2, 3, 4, 4, 5, 6};
    static const float above[] = {1, 7, 13}, below[] = {5, 11};
    float got[9];
    ok(ops_scope_begin(test_context));
    ops_array *line = made(ops_array_iota(test_context, HAL_TYPE_F32, 8, 0, 1));
    ok(ops_array_read(made(ops_array_windows(line, 0, 3, 2, 1)), sizeof got, got));
    assert_memory_equal(got, wanted, sizeof wanted);
    ops_array *x = made(ops_array_iota(test_context, HAL_TYPE_F32, 15, 0, 1));
    x = ops_neg(ops_array_reshape(x, 2, (int64_t[]){3, 5})); /* a view of a deferred array */
    ok(ops_array_read(ops_neg(ops_array_diagonal(x, 0, 1, 1)), sizeof above, got));
    assert_memory_equal(got, above, sizeof above);
    ok(ops_array_read(ops_neg(ops_array_diagonal(x, 0, 1, -1)), sizeof below, got));
    assert_memory_equal(got, below, sizeof below);
    ok(ops_scope_end(test_context));
}

/* Only the phases that have elements of the window or results are looked at: of 2^40 or 10^18 no
 * walk ends. */
static void steps_may_be_far_longer_than_windows(void **state)
{
    static const float weights[4] = {1, 2, 3, 4};
    const int64_t one[4] = {1, 1, 1, 1}, wide[4] = {1, 1, 2, 2};
    ops_convolution_options o = {.size = sizeof o, .stride = {INT64_C(1) << 30, 1000000000}};
    float got[4] = {0};
    ok(ops_scope_begin(test_context));
    ops_array *x = made(ops_array_full(test_context, HAL_TYPE_F32, 4, one, 2));
    ops_array *w = made(ops_array_from_host(test_context, HAL_TYPE_F32, 4, wide, weights));
    ok(ops_array_read(made(ops_array_convolution_transposed(&o, x, w, NULL, NULL)), sizeof got,
                      got));
    for (int i = 0; i < 4; i++) {
        assert_true(got[i] == 2 * weights[i]);
    }
    ok(ops_scope_end(test_context));
}

/* Convolutions with few results per group, whose gradients are summed in parts. */
enum { IMAGES = 5, ROWS = 9, COLUMNS = 11, DOWN = 5, ACROSS = 11, WINDOW = 6 };

typedef struct few_results {
    int64_t groups, inputs, outputs;
} few_results;

/* The gradient of element k of the window of channel c of result o, in double precision; x and dy
 * have their channels second, or last. */
static double weight_gradient(const few_results *f, const float *x, const float *dy, bool last,
                              int64_t o, int64_t c, int64_t k)
{
    const int64_t outputs = f->groups * f->outputs, inputs = f->groups * f->inputs;
    double sum = 0;
    c += o / f->outputs * f->inputs;
    for (int64_t at = 0; at < IMAGES * DOWN * ACROSS; at++) {
        const int64_t n = at / (DOWN * ACROSS), place = at % (DOWN * ACROSS);
        const int64_t row = place / ACROSS * 2 + k / 2 - 1;
        const int64_t column = place % ACROSS + k % 2 * 2 - 1;
        if (row < 0 || row >= ROWS || column < 0 || column >= COLUMNS) {
            continue;
        }
        const int64_t cell = row * COLUMNS + column;
        sum += (double)x[last ? (n * ROWS * COLUMNS + cell) * inputs + c
                              : (n * inputs + c) * ROWS * COLUMNS + cell] *
               (double)dy[last ? at * outputs + o : (n * outputs + o) * DOWN * ACROSS + place];
    }
    return sum;
}

/* Few channels have parts of lines, more some of images, many one part for all, and the last part
 * may be shorter: sums are right, and of two kernels where channels are second, else three, on
 * devices that have the kernel. */
static void weights_of_few_results_are_sums(void **state)
{
    enum { MOST = 512 };
    static float x[IMAGES * MOST * ROWS * COLUMNS], dy[IMAGES * MOST * DOWN * ACROSS];
    static float found[MOST * WINDOW];
    static const few_results forms[] = {{3, 1, 2},  {12, 1, 2}, {256, 1, 2}, {2, 3, 6},
                                        {1, 20, 1}, {4, 5, 8},  {16, 4, 4}};
    for (uint32_t i = 0; i < 2 * sizeof forms / sizeof *forms; i++) {
        const few_results *f = &forms[i / 2];
        const int64_t c = f->groups * f->inputs, o = f->groups * f->outputs;
        const uint32_t last = i % 2;
        const ops_convolution_options options = {.size = sizeof options,
                                                 .channels_last = last,
                                                 .groups = f->groups,
                                                 .stride = {2, 1},
                                                 .dilation = {1, 2},
                                                 .before = {1, 1},
                                                 .after = {1, 1}};
        const int64_t x_last[4] = {IMAGES, ROWS, COLUMNS, c}, y_last[4] = {IMAGES, DOWN, ACROSS, o};
        const int64_t second[4] = {IMAGES, c, ROWS, COLUMNS},
                      y_second[4] = {IMAGES, o, DOWN, ACROSS};
        ok(ops_scope_begin(test_context));
        for (int64_t k = 0; k < IMAGES * c * ROWS * COLUMNS; k++) {
            x[k] = (float)(k * 37 % 101) / 50 - 1;
        }
        for (int64_t k = 0; k < IMAGES * o * DOWN * ACROSS; k++) {
            dy[k] = (float)(k * 53 % 97) / 48 - 1;
        }
        ops_array *image =
            ops_array_from_host(test_context, HAL_TYPE_F32, 4, last ? x_last : second, x);
        ops_array *given =
            ops_array_from_host(test_context, HAL_TYPE_F32, 4, last ? y_last : y_second, dy);
        ok(ops_array_evaluate((ops_array *[]){made(image), made(given)}, 2));
        const uint64_t before = statistics_of(test_context).kernels;
        ops_array *dw = ops_array_convolution_weights(&options, image, given, (int64_t[]){3, 2});
        ok(ops_array_read(made(dw), (uint64_t)(o * f->inputs * WINDOW) * sizeof *found, found));
        if (test_context->tuning->convolution.pools_at_once) {
            assert_in_range(statistics_of(test_context).kernels - before, 2, 2 + last);
        }
        for (int64_t k = 0; k < o * f->inputs * WINDOW; k++) {
            const int64_t at = k / WINDOW;
            const double sum =
                weight_gradient(f, x, dy, last, at / f->inputs, at % f->inputs, k % WINDOW);
            assert_true(fabs(found[k] - sum) < 1e-3);
        }
        ok(ops_scope_end(test_context));
    }
}

/* Padding of images by work-items that have several planes, of as many as fill the device or fewer,
 * or neighbours, with every element in its place. */
static void padding_is_right(void **state)
{
    enum { MOST = 120000 };
    static float found[MOST];
    /* The last two axes are padded, or the middle ones. */
    static const int64_t shapes[][4] = {
        {16, 6, 30, 31}, {3, 16, 21, 23}, {7, 5, 40, 40}, {6, 30, 28, 16}, {2, 30, 31, 24}};
    for (uint32_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int64_t *from = shapes[i];
        const uint32_t first = i < 3 ? 2 : 1;
        int64_t to[4], at[4] = {0}, place[4];
        memcpy(to, from, sizeof to);
        at[first] = 2;
        at[first + 1] = 1;
        to[first] += 3;
        to[first + 1] += 2;
        const int64_t count = to[0] * to[1] * to[2] * to[3];
        assert_in_range(count, 1, MOST);
        ok(ops_scope_begin(test_context));
        ops_array *x = numbers(4, from, 1);
        ok(ops_array_evaluate(&x, 1));
        ok(ops_array_read(made(ops_compose_pad(at, to, -5, x)), (uint64_t)count * sizeof *found,
                          found));
        ok(ops_scope_end(test_context));
        for (int64_t k = 0; k < count; k++) {
            int64_t rest = k, source = 0;
            bool inside = true;
            for (uint32_t d = 4; d-- > 0; rest /= to[d]) {
                place[d] = rest % to[d] - at[d];
                inside = inside && place[d] >= 0 && place[d] < from[d];
            }
            for (uint32_t d = 0; d < 4; d++) {
                source = source * from[d] + place[d];
            }
            assert_true(found[k] == (inside ? (float)(source - 1) : -5));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_may_be_far_longer_than_windows),
                                       cmocka_unit_test(kernels_are_counted),
                                       cmocka_unit_test(windows_of_one_are_products),
                                       cmocka_unit_test(windows_of_one_are_products),
                                       cmocka_unit_test(small_ones_are_right),
                                       cmocka_unit_test(neighbours_change_no_bits),
                                       cmocka_unit_test(wrong_calls_are_refused),
                                       cmocka_unit_test(views_are_right),
                                       cmocka_unit_test(depthwise_with_activation),
                                       cmocka_unit_test(weights_of_few_results_are_sums),
                                       cmocka_unit_test(padding_is_right)};
    return RUN_ON_ALL(tests);
}
