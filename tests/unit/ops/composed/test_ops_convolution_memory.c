/* Convolutions of many images: besides arrays the memory in use is that of some pieces, however
 * many pieces there are. */
#include "ops_arrays.h"
#include "ops_fixture.h"

#include <hal/memory_peaks.h>
#include <ops/convolution.h>

#include <stdlib.h>

enum { IMAGES = 128, CHANNELS = 16, WINDOW = 5, PLACES = 8, LENGTH = PLACES + WINDOW - 1 };

/* Bytes of a piece, and how many may be in use: windows or columns, copies of them, their sums. */
enum { PIECE_BYTES = 1 << 18, MOST_PIECES = 5 };

static ops_array *ones(int64_t images, int64_t length)
{
    const int64_t shape[4] = {images, CHANNELS, length, length};
    ops_array *array = made(ops_array_full(test_context, HAL_TYPE_F32, 4, shape, 1));
    array = made(ops_array_copy(array));
    ok(ops_array_evaluate(&array, 1));
    return array;
}

/* Bytes in use, and from now on their peak. */
static uint64_t begin(void)
{
    hal_memory_statistics before;
    ok(hal_queue_wait(test_queue, HAL_WAIT_FOREVER));
    ok(hal_device_get_memory(test_device, &before));
    ok(hal_device_reset_memory_peaks(test_device));
    return before.in_use_bytes;
}

/* A result's first and last element, and its peak: it may be there twice. */
static void end(uint64_t before, ops_array *result, float wanted)
{
    const uint64_t count = (uint64_t)ops_array_get_element_count(made(result));
    const uint64_t most = before + 2 * count * sizeof(float) + MOST_PIECES * PIECE_BYTES;
    hal_memory_peaks peaks;
    ok(ops_array_evaluate(&result, 1));
    ok(hal_device_get_memory_peaks(test_device, &peaks));
    if (peaks.in_use_bytes > most) {
        fail_msg("expected at most %llu bytes in use, got %llu", (unsigned long long)most,
                 (unsigned long long)peaks.in_use_bytes);
    }
    float *elements = malloc(count * sizeof *elements);
    assert_non_null(elements);
    ok(ops_array_read(result, count * sizeof *elements, elements));
    assert_true(elements[0] == wanted && elements[count - 1] == wanted);
    free(elements);
    ok(ops_scope_end(test_context));
}

static void check_transposed(int64_t step, uint32_t way)
{
    const ops_convolution_options options = {.size = sizeof options, .stride = {step, step}};
    ok(ops_scope_begin(test_context));
    ops_array *x = ones(IMAGES, PLACES), *w = ones(CHANNELS, WINDOW);
    ops_context_set_convolution(test_context, way);
    const uint64_t before = begin();
    end(before, ops_array_convolution_transposed(&options, x, w, NULL, NULL), CHANNELS);
    ops_context_set_convolution(test_context, OPS_CONVOLUTION_AUTO);
}

static void columns_are_those_of_pieces(void **state)
{
    ops_convolution_tuning *tuning = &test_tune(test_context)->convolution;
    tuning->piece_bytes = PIECE_BYTES;
    tuning->column_sum_ns = tuning->column_ns = tuning->column_result_ns = 0; /* are chosen */
    tuning->column_phase_ns = tuning->column_tap_ns = 0;
    check_transposed(1, OPS_CONVOLUTION_AUTO);
    check_transposed(3, OPS_CONVOLUTION_AUTO);
}

static void windows_of_phases_are_those_of_pieces(void **state)
{
    test_tune(test_context)->convolution.piece_bytes = PIECE_BYTES;
    check_transposed(3, OPS_CONVOLUTION_COPIED);
}

static void windows_are_those_of_pieces(void **state)
{
    test_tune(test_context)->convolution.piece_bytes = PIECE_BYTES;
    ok(ops_scope_begin(test_context));
    ops_array *x = ones(IMAGES, LENGTH), *w = ones(CHANNELS, WINDOW);
    const uint64_t before = begin();
    end(before, ops_array_convolution(NULL, x, w, NULL), CHANNELS * WINDOW * WINDOW);
}

static void windows_of_weights_are_those_of_pieces(void **state)
{
    const int64_t window[] = {WINDOW, WINDOW};
    test_tune(test_context)->convolution.piece_bytes = PIECE_BYTES;
    ok(ops_scope_begin(test_context));
    ops_array *x = ones(IMAGES, LENGTH), *dy = ones(IMAGES, PLACES);
    const uint64_t before = begin();
    end(before, ops_array_convolution_weights(NULL, x, dy, window), IMAGES * PLACES * PLACES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(columns_are_those_of_pieces),
                                       cmocka_unit_test(windows_of_phases_are_those_of_pieces),
                                       cmocka_unit_test(windows_are_those_of_pieces),
                                       cmocka_unit_test(windows_of_weights_are_those_of_pieces)};
    return cmocka_run_group_tests_name("processor", tests, open_context, close_context);
}
