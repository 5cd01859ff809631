/* Convolutions whose product reads the windows in the image, next to those that copy them, as every
 * kind of device. */
#include "composed/convolution_direct.h"
#include "composed/convolution_implicit.h"
#include "composed/convolution_weights.h"
#include "gemm/portable.h"
#include "ops/composed/convolution_trial.h"

static void small_ones_agree(void **state)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F32, HAL_TYPE_F64, HAL_TYPE_F16};
    state_of_numbers = 1;
    for (int i = 0; i < 24; i++) {
        trial t;
        test_tune(test_context)->convolution.zeros_first = i % 2; /* padding by two kernels */
        draw(&t, false);
        t.type = types[i % 4];
        ops_context_set_kernels(test_context, i % 3 ? OPS_KERNELS_SPECIAL : OPS_KERNELS_GENERAL);
        check_way(&t, (convolution_kind)(i / 4 % KIND_COUNT), OPS_CONVOLUTION_IMPLICIT);
    }
}

/* Gradients by the input with steps: by phases, of which windows shorter than a step, and dilation
 * with a divisor of it, leave some empty, and whose results are stored that many elements apart. */
static void phases_agree(void **state)
{
    static const int64_t windows[] = {3, 1, 2, 4}, steps[] = {2, 2, 3, 2};
    state_of_numbers = 3;
    for (uint32_t i = 0; i < 12; i++) {
        trial t = {.type = i % 4 == 3 ? HAL_TYPE_F16 : HAL_TYPE_F32,
                   .rank = 1 + i / 4,
                   .images = 2,
                   .groups = 1 + i % 2,
                   .inputs = 3,
                   .outputs = 2 + i % 3,
                   .channels_last = i % 3 == 1};
        for (uint32_t a = 0; a < t.rank; a++) {
            t.window[a] = windows[(i + a) % 4];
            t.stride[a] = a == 2 ? 1 : steps[(i + a) % 4];
            t.dilation[a] = a == 2 ? 2 : 1 + (i / 2 + a) % 3;
            t.before[a] = i % 2;
            t.after[a] = 1;
            t.length[a] = 7 + a;
        }
        check_way(&t, INPUT, OPS_CONVOLUTION_IMPLICIT);
    }
}

/* Gradients of few results per group, some of which share a work-item. */
static void few_results_agree(void **state)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_BF16, HAL_TYPE_F64, HAL_TYPE_F16};
    state_of_numbers = 11;
    for (int i = 0; i < 24; i++) {
        trial t;
        draw(&t, false);
        t.type = types[i % 4];
        t.outputs = 1 + i % 8;
        t.window[0] += t.rank == 1;
        if (i % 4 == 0) { /* what processors sum so */
            t.outputs = 1;
            t.channels_last = false;
            t.stride[t.rank - 1] = 2;
        }
        t.length[0] += i % 3 * 8 + 1;
        check_way(&t, WEIGHTS, OPS_CONVOLUTION_AUTO);
    }
}

/* Gradients by the input as columns, whose neighbours are places or channels, of images that one
 * piece has or several, with zeros around places and without. */
static void columns_agree(void **state)
{
    ops_convolution_tuning *tuning = &test_tune(test_context)->convolution;
    const ops_convolution_tuning kept = *tuning;
    tuning->direct_sum_ns = tuning->copied_sum_ns = 1e6;
    tuning->column_sum_ns = tuning->column_ns = tuning->column_result_ns = 0;
    tuning->column_phase_ns = tuning->column_tap_ns = 0;
    state_of_numbers = 13;
    for (int i = 0; i < 30; i++) {
        trial t;
        draw(&t, false);
        t.type = i % 3 ? HAL_TYPE_F32 : HAL_TYPE_F64;
        t.inputs += i % 4 == 1 ? 16 : 0; /* of the gradient: neighbours */
        t.outputs += 1;
        t.window[0] += 1;
        t.length[0] += i % 5 + 1;
        tuning->piece_bytes = i % 2 ? 1 << 10 : 4 << 20;
        check_way(&t, INPUT, OPS_CONVOLUTION_AUTO);
    }
    *tuning = kept;
}

static ops_array *numbers(uint32_t rank, const int64_t *shape)
{
    whole x = whole_numbers(HAL_TYPE_F32, rank, shape);
    free(x.elements);
    return x.array;
}

/* Processors sum the gradient of one result whose windows are more than 1 apart in memory, GPUs
 * that of a few; of many are products. */
static void few_results_are_chosen(void **state)
{
    const hal_device_info *info = test_context->info;
    const bool at_once = test_context->tuning->convolution.pools_at_once;
    const bool has_lanes = info->kind == HAL_DEVICE_CPU && info->item_vector_bytes == 0;
    ok(ops_scope_begin(test_context));
    ops_array *x = numbers(4, (int64_t[]){1, 1, 2, 2}); /* its context is asked for */
    for (int i = 0; i < 12; i++) {
        const int64_t outputs = i / 4 == 0 ? 1 : i / 4 == 1 ? 8 : 9, step = 1 + i % 2;
        const ops_convolution_form f = {.rank = 2,
                                        .channels_last = i / 2 % 2,
                                        .images = 2,
                                        .groups = 1,
                                        .inputs = 30,
                                        .outputs = outputs,
                                        .length = {34, 65},
                                        .window = {3, 3},
                                        .places = {32, step == 2 ? 32 : 63},
                                        .stride = {1, step},
                                        .dilation = {1, 1}};
        const bool is_lane = has_lanes && outputs == 1 && step == 2 && !f.channels_last;
        assert_int_equal(ops_convolution_weights_at_once(&f, x),
                         (at_once && outputs <= 8) || (!at_once && is_lane));
    }
    ok(ops_scope_end(test_context));
}

/* Many channels make columns, few ones do not, nor narrow floats, which would be rounded twice, nor
 * what is asked for otherwise. */
static void columns_are_chosen(void **state)
{
    const bool has_columns = test_context->tuning->convolution.direct_sum_ns > 0 &&
                             test_context->info->item_vector_bytes == 0;
    ops_convolution_form f = {.rank = 2,
                              .images = 2,
                              .groups = 1,
                              .inputs = 217,
                              .outputs = 34,
                              .length = {17, 17},
                              .window = {5, 5},
                              .places = {13, 13},
                              .stride = {3, 3},
                              .dilation = {1, 1}};
    ok(ops_scope_begin(test_context));
    ops_array *dy = numbers(4, (int64_t[]){2, 217, 3, 3});
    assert_int_equal(ops_convolution_is_by_columns(&f, dy), has_columns);
    assert_false(ops_convolution_is_by_columns(&f, made(ops_array_cast(HAL_TYPE_BF16, dy))));
    ops_context_set_convolution(test_context, OPS_CONVOLUTION_COPIED);
    assert_false(ops_convolution_is_by_columns(&f, dy));
    ops_context_set_convolution(test_context, OPS_CONVOLUTION_AUTO);
    f.inputs = 1;
    assert_false(ops_convolution_is_by_columns(&f, numbers(4, (int64_t[]){2, 1, 3, 3})));
    /* Of few places and a long window: places are added. */
    f = (ops_convolution_form){.rank = 3,
                               .images = 7,
                               .groups = 1,
                               .inputs = 10,
                               .outputs = 61,
                               .length = {17, 17, 17},
                               .window = {5, 5, 5},
                               .places = {9, 9, 9},
                               .stride = {1, 1, 1},
                               .dilation = {2, 2, 2},
                               .before = {0, 4, 0}};
    dy = numbers(5, (int64_t[]){7, 10, 1, 9, 1});
    assert_int_equal(ops_convolution_is_by_columns(&f, dy), has_columns);
    ok(ops_scope_end(test_context));
}

/* In parts of k, whose sums are added. */
static void parts_agree(void **state)
{
    const trial t = {.type = HAL_TYPE_F32,
                     .rank = 2,
                     .images = 5,
                     .groups = 1,
                     .inputs = 4,
                     .outputs = 3,
                     .length = {9, 8},
                     .window = {3, 3},
                     .stride = {1, 1},
                     .dilation = {1, 1},
                     .before = {1, 1},
                     .after = {1, 1},
                     .has_bias = true};
    test_tune(test_context)->gemm.split_depth = 64;
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        check_way(&t, (convolution_kind)kind, OPS_CONVOLUTION_IMPLICIT);
    }
    test_tune(test_context)->gemm.split_depth = 0;
}

/* Gradients of few groups and many places are a product for each group, which parts of k share; of
 * few places one product of a batch. */
static void groups_agree(void **state)
{
    trial t = {.type = HAL_TYPE_F32,
               .rank = 2,
               .images = 1,
               .groups = 2,
               .inputs = 2,
               .outputs = 9,
               .length = {40, 40},
               .window = {2, 2},
               .stride = {1, 1},
               .dilation = {1, 1},
               .before = {1, 1},
               .after = {1, 0}};
    uint64_t kernels[2], before = statistics_of(test_context).kernels;
    check_way(&t, WEIGHTS, OPS_CONVOLUTION_IMPLICIT);
    kernels[0] = statistics_of(test_context).kernels - before;
    t.images = 3;
    before = statistics_of(test_context).kernels;
    check_way(&t, WEIGHTS, OPS_CONVOLUTION_IMPLICIT);
    kernels[1] = statistics_of(test_context).kernels - before;
    assert_int_equal(kernels[1] > kernels[0],
                     test_context->info->compute_units > 2 &&
                         ops_gemm_longest_k(test_context, NULL) >= 3 * 41 * 40);
}

/* Elements that sums round, as the kernel of the shape and as that of its class. */
static void elements_by(ops_kernel_choice kernels, const trial *t, convolution_kind kind,
                        float *elements, int64_t *count)
{
    int64_t shapes[3][5] = {{0}, {t->outputs, t->inputs}}, places[3];
    places_of(t, places);
    image_shape(t, t->inputs, t->length, shapes[0]);
    image_shape(t, t->outputs, places, shapes[2]);
    memcpy(shapes[1] + 2, t->window, t->rank * sizeof *places);
    state_of_numbers = 5;
    ok(ops_scope_begin(test_context));
    whole x[3];
    for (int i = 0; i < 3; i++) {
        x[i] = whole_numbers(t->type, t->rank + 2, shapes[i]);
        x[i].array = made(ops_div_scalar(x[i].array, 7));
        free(x[i].elements);
    }
    ops_context_set_kernels(test_context, kernels);
    ops_context_set_convolution(test_context, OPS_CONVOLUTION_IMPLICIT);
    *count = elements_of(compute(t, kind, x, NULL), elements);
    ops_context_set_convolution(test_context, OPS_CONVOLUTION_AUTO);
    ok(ops_scope_end(test_context));
}

static void kernels_agree(void **state)
{
    static float special[MAX_RESULTS], general[MAX_RESULTS];
    for (int i = 0; i < 6; i++) {
        int64_t count[2];
        const convolution_kind kind = (convolution_kind)(i % KIND_COUNT);
        const trial t = {.type = i % 2 ? HAL_TYPE_F16 : HAL_TYPE_F32,
                         .rank = 2,
                         .channels_last = i % 4 < 2,
                         .images = 3,
                         .groups = 1,
                         .inputs = 4 + i,
                         .outputs = 8 + i,
                         .length = {9, 7},
                         .window = {3, 2},
                         .stride = {1, 1},
                         .dilation = {1, 2},
                         .before = {1, 0},
                         .after = {0, 1}};
        elements_by(OPS_KERNELS_SPECIAL, &t, kind, special, &count[0]);
        elements_by(OPS_KERNELS_GENERAL, &t, kind, general, &count[1]);
        assert_int_equal(count[0], count[1]);
        assert_memory_equal(special, general, (size_t)count[0] * sizeof *special);
    }
    ops_context_set_kernels(test_context, OPS_KERNELS_AUTO);
}

/* One kernel multiplies: no windows are copied. */
static void kernels_are_counted(void **state)
{
    const ops_convolution_options last = {
        .size = sizeof last, .channels_last = 1, .activation = OPS_RELU};
    ok(ops_scope_begin(test_context));
    ops_array *x = numbers(4, (int64_t[]){2, 6, 5, 4});
    ops_array *w = numbers(4, (int64_t[]){8, 4, 3, 3}), *bias = numbers(1, (int64_t[]){8});
    ok(ops_array_evaluate((ops_array *[]){x, w, bias}, 3));
    ops_context_set_convolution(test_context, OPS_CONVOLUTION_IMPLICIT);
    const uint64_t before = statistics_of(test_context).kernels;
    ops_array *y = made(ops_array_convolution(&last, x, w, bias));
    ok(ops_array_evaluate(&y, 1));
    /* The weights in the order of the windows, and the product with bias and activation. */
    assert_int_equal(statistics_of(test_context).kernels - before, 2);
    ops_context_set_convolution(test_context, OPS_CONVOLUTION_AUTO);
    ok(ops_scope_end(test_context));
}

/* On GPUs images whose windows are many bytes; on processors, small ones and single channels never,
 * unless that is forced. */
static void large_ones_are_chosen(void **state)
{
    const bool is_gpu = test_context->info->kind != HAL_DEVICE_CPU;
    const int64_t longest = ops_gemm_longest_k(test_context, NULL);
    ops_convolution_form f = {.rank = 2,
                              .images = 32,
                              .groups = 1,
                              .inputs = 64,
                              .outputs = 64,
                              .length = {56, 56},
                              .window = {3, 3},
                              .places = {56, 56},
                              .stride = {1, 1},
                              .dilation = {1, 1},
                              .before = {1, 1},
                              .after = {1, 1}};
    ok(ops_scope_begin(test_context));
    ops_array *x = numbers(4, (int64_t[]){1, 1, 2, 2}); /* its type and context are asked for */
    assert_int_equal(ops_convolution_is_implicit(&f, x, false), is_gpu && longest >= 64 * 9);
    assert_int_equal(ops_convolution_is_implicit(&f, x, true), is_gpu && longest >= 32 * 56 * 56);
    ops_context_set_convolution(test_context, OPS_CONVOLUTION_COPIED);
    assert_false(ops_convolution_is_implicit(&f, x, false));
    ops_context_set_convolution(test_context, OPS_CONVOLUTION_AUTO);
    f.images = 1;
    f.inputs = 4;
    f.places[0] = f.places[1] = f.length[0] = f.length[1] = 8;
    assert_false(ops_convolution_is_implicit(&f, x, false));
    ops_context_set_convolution(test_context, OPS_CONVOLUTION_IMPLICIT);
    assert_true(ops_convolution_is_implicit(&f, x, false));
    f.inputs = 1;
    assert_false(ops_convolution_is_implicit(&f, x, false));
    ops_context_set_convolution(test_context, OPS_CONVOLUTION_AUTO);
    ok(ops_scope_end(test_context));
}

/* Gradients of narrow floats whose windows are too many for one piece are not copied, since pieces
 * are added in F32: that of one piece is. */
static void narrow_pieces_are_not_copied(void **state)
{
    const bool is_gpu = test_context->info->kind != HAL_DEVICE_CPU;
    ops_convolution_form f = {.rank = 2,
                              .images = 32,
                              .precision = HAL_GEMM_ACCURATE,
                              .groups = 1,
                              .inputs = 512,
                              .outputs = 512,
                              .length = {7, 7},
                              .window = {3, 3},
                              .places = {7, 7},
                              .stride = {1, 1},
                              .dilation = {1, 1},
                              .before = {1, 1},
                              .after = {1, 1}};
    ok(ops_scope_begin(test_context));
    ops_array *x = made(ops_array_cast(HAL_TYPE_BF16, numbers(4, (int64_t[]){1, 1, 2, 2})));
    assert_false(ops_convolution_is_implicit(&f, x, true));
    f.images = 256;
    assert_int_equal(ops_convolution_is_implicit(&f, x, true),
                     is_gpu && ops_gemm_longest_k(test_context, NULL) >= 256 * 49);
    ok(ops_scope_end(test_context));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_ones_agree),       cmocka_unit_test(phases_agree),
        cmocka_unit_test(kernels_agree),          cmocka_unit_test(few_results_agree),
        cmocka_unit_test(few_results_are_chosen), cmocka_unit_test(columns_agree),
        cmocka_unit_test(columns_are_chosen),     cmocka_unit_test(parts_agree),
        cmocka_unit_test(groups_agree),           cmocka_unit_test(kernels_are_counted),
        cmocka_unit_test(large_ones_are_chosen),  cmocka_unit_test(narrow_pieces_are_not_copied)};
    return RUN_ON_ALL(tests);
}
