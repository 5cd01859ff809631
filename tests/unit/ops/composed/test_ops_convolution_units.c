/* Convolutions whose product reads the windows in the image, on the matrix units of the mock
 * plugin's interpreter. */
#include "composed/convolution_implicit.h"
#include "mock_fixture.h"
#include "ops/composed/convolution_trial.h"

static mock_state *mock;

static int open_units(uint32_t features, uint32_t shared_bytes)
{
    void *state = NULL;
    mock_begin(&state);
    mock = mock_find("mock");
    hal_device_info *info = &mock->infos[0]; /* hal reads it once in a process */
    info->subgroup_width = 32;
    info->shared_bytes = 227 << 10;
    info->exactness = HAL_EXACT_FMA | HAL_EXACT_DIVIDE | HAL_EXACT_SQRT | HAL_EXACT_DENORMALS;
    info->features |= HAL_FEATURE_ASYNC_COPY;
    info->matrix_types = HAL_TYPES_MATRIX;
    mock->problem[0] = 0;
    if (hal_device_open("mock:0", &test_device) || hal_queue_create(test_device, &test_queue) ||
        ops_context_create(test_queue, &test_context)) {
        return 1;
    }
    static hal_device_info planned;
    planned = *test_context->info;
    planned.compute_units = 2;
    planned.shared_bytes = shared_bytes;
    planned.features = (planned.features & ~HAL_FEATURE_ASYNC_COPY) | features;
    test_set_device(test_context, &planned);
    ops_gemm_tuning *tuning = &test_tune(test_context)->gemm;
    tuning->units_least_f32 = tuning->units_least_f64 = tuning->units_least_half = 1;
    tuning->staged.count = 0; /* no others for products as small as these */
    return 0;
}

static int open_copies(void **state)
{
    return open_units(HAL_FEATURE_ASYNC_COPY, 227 << 10);
}

static int open_registers(void **state)
{
    return open_units(0, 48 << 10);
}

static void units_are_clean(void)
{
    if (mock->problem[0]) {
        fail_msg("%s", mock->problem);
    }
}

static void units_agree(void **state)
{
    static const hal_type types[] = {HAL_TYPE_BF16, HAL_TYPE_F16, HAL_TYPE_F32, HAL_TYPE_F64};
    state_of_numbers = 7;
    check_device = units_are_clean;
    for (int i = 0; i < 24; i++) {
        const int turn = i / 4;
        trial t;
        draw(&t, true);
        t.type = types[i % 4];
        t.precision = t.type == HAL_TYPE_F64               ? HAL_GEMM_STRICT
                      : t.type == HAL_TYPE_F32 && turn % 2 ? HAL_GEMM_FAST
                                                           : HAL_GEMM_ACCURATE;
        ops_context_set_kernels(test_context, OPS_KERNELS_SPECIAL);
        check_way(&t, (convolution_kind)(turn % KIND_COUNT), OPS_CONVOLUTION_IMPLICIT);
    }
}

/* Images get zeros to whole accesses, but for groups, and few channels that these would exceed more
 * than twice. */
static void odd_channels_have_whole_accesses(void **state)
{
    static const int64_t channels[][2] = {{41, 48}, {167, 168}, {64, 64}, {4, 8}, {3, 3}};
    ops_convolution_form f = {.rank = 1,
                              .images = 8,
                              .precision = HAL_GEMM_ACCURATE,
                              .outputs = 24,
                              .window = {11},
                              .places = {64},
                              .length = {74},
                              .stride = {1},
                              .dilation = {1}};
    for (int i = 0; i < 10; i++) {
        const int64_t c = channels[i / 2][0];
        f.groups = 1 + i % 2;
        f.inputs = c;
        ok(ops_scope_begin(test_context));
        const int64_t shape[3] = {8, f.groups * c, 74};
        ops_array *x = made(ops_array_full(test_context, HAL_TYPE_BF16, 3, shape, 1));
        assert_int_equal(ops_convolution_implicit_channels(&f, x),
                         f.groups > 1 ? f.groups * c : channels[i / 2][1]);
        ok(ops_scope_end(test_context));
    }
}

int main(void)
{
    const struct CMUnitTest units[] = {cmocka_unit_test(units_agree),
                                       cmocka_unit_test(odd_channels_have_whole_accesses)};
    return cmocka_run_group_tests_name("copies", units, open_copies, close_context) +
           cmocka_run_group_tests_name("registers", units, open_registers, close_context);
}
