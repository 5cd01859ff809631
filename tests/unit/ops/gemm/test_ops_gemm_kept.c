/* Products that were met before, at random: whether one is recorded from what was kept of an equal
 * one or planned anew, its status and all bytes of all buffers are the same. */
#include "ops_gemm_fixture.h"

enum { BUFFERS = 4, BYTES = 24000, SMALL_BYTES = 1600, RECENT = 8, CALLS = 1500 };

static hal_buffer *buffers[BUFFERS]; /* the last one is too small for some products */
static uint8_t contents[BUFFERS][BYTES];
static ops_tensor sums;

typedef struct call {
    ops_tensor a, b, c;
    ops_gemm_options options;
} call;

static uint32_t pick(uint32_t count)
{
    return (uint32_t)(next_random() % count);
}

static ops_tensor random_matrix(hal_type type, int64_t batch, int64_t rows, int64_t columns)
{
    int64_t strides[3];
    lay_out(pick(3) ? PLAIN : (int)pick(BACKWARDS), rows, columns, strides);
    ops_tensor t = {buffers[pick(BUFFERS)],
                    type,
                    3,
                    pick(3) ? 0 : (int64_t)pick(3),
                    {batch, rows, columns},
                    {strides[0], strides[1], strides[2]}};
    if (batch == 1 && pick(2)) {
        t.rank = 2;
        memmove(t.shape, t.shape + 1, 2 * sizeof *t.shape);
        memmove(t.stride, t.stride + 1, 2 * sizeof *t.stride);
    }
    return t;
}

static call random_call(void)
{
    static const int64_t lengths[] = {1, 2, 3, 8, 17, 20}, depths[] = {0, 1, 4, 8, 30, 60};
    const hal_type type = pick(5) ? HAL_TYPE_F32 : HAL_TYPE_F16;
    const int64_t m = lengths[pick(6)], n = lengths[pick(6)], k = depths[pick(6)];
    const int64_t batch = pick(4) ? 1 : 2;
    call made = {.options = OPS_GEMM_OPTIONS_DEFAULT};
    made.a = random_matrix(type, pick(2) ? batch : 1, m, k);
    made.b = random_matrix(type, pick(2) ? batch : 1, k, n);
    made.c = random_matrix(pick(8) ? type : HAL_TYPE_F32, batch, m, n);
    made.options.alpha = pick(4) ? 1 : -2 * (double)pick(2);
    made.options.beta = pick(3) ? 0 : 1;
    made.options.precision = pick(4);
    made.options.impl = (ops_gemm_impl)pick(3);
    return made;
}

/* The call with something else, which may be invalid. */
static call changed(call c)
{
    ops_gemm_options *o = &c.options;
    ops_tensor *const tensors[3] = {&c.a, &c.b, &c.c};
    ops_tensor *t = tensors[pick(3)];
    switch (pick(16)) {
    case 0:
    case 1:
        t->buffer = buffers[pick(BUFFERS)];
        break;
    case 2:
        t->offset = (int64_t)pick(3);
        break;
    case 3:
        t->stride[t->rank - 2] += 1;
        break;
    case 4:
        t->rank = 2 + pick(2);
        break;
    case 5:
        t->type = pick(2) ? HAL_TYPE_F32 : HAL_TYPE_I32;
        break;
    case 6:
        o->alpha = (double)pick(4) - 1;
        break;
    case 7:
        o->beta = pick(2) ? 1 : -0.0;
        break;
    case 8:
        o->precision = pick(5);
        break;
    case 9:
        o->impl = (ops_gemm_impl)pick(4);
        break;
    case 10:
        o->config = pick(2) ? "portable:none" : NULL;
        break;
    case 11:
        o->max_workspace = pick(9000);
        break;
    case 12:
        o->levels = pick(4);
        break;
    case 13:
        o->input_count = pick(2);
        break;
    case 14:
        o->a_sums = pick(2) ? &sums : NULL;
        o->c_sums = pick(2) ? &sums : NULL;
        break;
    default:
        o->size = pick(2) ? sizeof *o : 4;
    }
    return c;
}

static uint64_t bytes_of(int i)
{
    return i == BUFFERS - 1 ? SMALL_BYTES : BYTES;
}

static hal_status multiply(const call *c, uint8_t got[BUFFERS][BYTES])
{
    for (int i = 0; i < BUFFERS; i++) {
        ok(hal_queue_write(test_queue, buffers[i], 0, contents[i], bytes_of(i)));
    }
    const hal_status status = ops_gemm(test_context, &c->options, &c->a, &c->b, &c->c);
    for (int i = 0; i < BUFFERS; i++) {
        ok(hal_queue_read(test_queue, buffers[i], 0, bytes_of(i), got[i]));
    }
    return status;
}

static void kept_and_new_products_are_equal(void **state)
{
    static uint8_t kept[BUFFERS][BYTES], fresh[BUFFERS][BYTES];
    static const int64_t shape[3] = {7, 10, 10};
    call recent[RECENT];
    uint32_t computed = 0;
    ok(ops_tensor_create(test_context, HAL_TYPE_F32, 3, shape, &sums));
    for (int i = 0; i < BUFFERS; i++) {
        ok(hal_buffer_create(test_device, HAL_MEMORY_DEVICE, bytes_of(i), &buffers[i]));
        for (int k = 0; k < BYTES; k += 4) {
            const float value = (float)pick(9) / 4 - 1;
            memcpy(contents[i] + k, &value, 4);
        }
    }
    for (int i = 0; i < RECENT; i++) {
        recent[i] = random_call();
    }
    for (int i = 0; i < CALLS; i++) {
        call c = pick(5) ? recent[pick(RECENT)] : random_call();
        multiply(&c, kept); /* it is kept, where products like it are */
        c = pick(4) ? changed(c) : c;
        const hal_status status = multiply(&c, kept);
        void *products = test_context->plans;
        test_context->plans = NULL;
        const hal_status expected = multiply(&c, fresh);
        free(test_context->plans);
        test_context->plans = products;
        assert_int_equal(status, expected);
        if (expected == HAL_OK) {
            assert_memory_equal(kept, fresh, sizeof kept);
            recent[pick(RECENT)] = c;
            computed++;
        }
    }
    assert_true(computed > CALLS / 3);
    for (int i = 0; i < BUFFERS; i++) {
        hal_buffer_release(buffers[i]);
    }
    ops_tensor_release(&sums);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(kept_and_new_products_are_equal, open_context,
                                        close_context),
        cmocka_unit_test_setup_teardown(kept_and_new_products_are_equal, open_other_context,
                                        close_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
