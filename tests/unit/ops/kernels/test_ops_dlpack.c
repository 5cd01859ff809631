/* Tensors to and from DLPack's structures: shared memory and its lifetime, copies, strides, types
 * and bad sources. */
#include "ops_fixture.h"

#include <ops/dlpack.h>

static hal_status unsupported(hal_status status)
{
    return status == HAL_ERROR_UNSUPPORTED ? HAL_OK : HAL_ERROR_INTERNAL;
}

static void exports_share_memory(void **state)
{
    const int64_t shape[2] = {3, 4};
    const float numbers[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    ops_tensor x, part;
    ok(ops_tensor_from_host(test_context, HAL_TYPE_F32, 2, shape, numbers, &x));
    ok(ops_tensor_slice(&x, 1, 3, 2, -2, &part));
    ok(ops_tensor_transpose(&part, 0, 1, &part));
    ops_dlpack_managed *first, *second, *copy;
    ok(ops_tensor_to_dlpack(test_context, &part, 0, &first));
    ok(ops_tensor_to_dlpack(test_context, &part, 0, &second)); /* twice at the same time */
    ok(ops_tensor_to_dlpack(test_context, &part, 1, &copy));
    assert_ptr_equal(first->tensor.data, second->tensor.data);
    assert_ptr_not_equal(first->tensor.data, copy->tensor.data);
    assert_int_equal(first->flags, OPS_DLPACK_READ_ONLY);
    assert_int_equal(copy->flags, OPS_DLPACK_COPIED);
    /* A new value in the tensor is seen through the export, and not in the copy. */
    const float changed[12] = {100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111};
    ok(ops_tensor_write(test_context, &x, changed, sizeof changed));
    ok(hal_queue_wait(ops_context_get_queue(test_context), HAL_WAIT_FOREVER));
    hal_memory_statistics before, after;
    ok(hal_device_get_memory(ops_context_get_device(test_context), &before));
    ops_tensor_release(&x); /* the exports keep the memory */
    const ops_dlpack_tensor *t = &first->tensor;
    assert_int_equal(t->device.kind, OPS_DLPACK_HOST);
    assert_int_equal(t->rank, 2);
    assert_true(t->type.code == 2 && t->type.bits == 32 && t->type.lanes == 1);
    const char *data = (const char *)t->data + t->byte_offset;
    const char *copied = (const char *)copy->tensor.data + copy->tensor.byte_offset;
    for (int64_t i = 0; i < 2; i++) {
        for (int64_t j = 0; j < 3; j++) {
            const float want = numbers[j * 4 + 3 - 2 * i];
            float got;
            memcpy(&got, data + 4 * (i * t->strides[0] + j * t->strides[1]), sizeof got);
            assert_true(got == want + 100);
            memcpy(&got, copied + 4 * (i * 3 + j), sizeof got);
            assert_true(got == want);
        }
    }
    first->destroy(first);
    copy->destroy(copy);
    ok(hal_device_get_memory(ops_context_get_device(test_context), &after));
    assert_int_equal(after.in_use_bytes, before.in_use_bytes);
    second->destroy(second);
    ok(hal_device_get_memory(ops_context_get_device(test_context), &after));
    assert_true(after.in_use_bytes < before.in_use_bytes);
}

static void imports_of_any_strides(void **state)
{
    int16_t numbers[40];
    for (int i = 0; i < 40; i++) {
        numbers[i] = (int16_t)i;
    }
    int64_t shape[2] = {3, 4};
    int64_t strides[4][2] = {{4, 1}, {1, 3}, {-8, 2}, {0, 1}};
    const uint64_t offsets[4] = {0, 4, 40, 6};
    for (int way = 0; way < 5; way++) {
        const ops_dlpack_tensor source = {
            .data = numbers,
            .device = {way == 1 ? OPS_DLPACK_PINNED : OPS_DLPACK_HOST, 0},
            .rank = 2,
            .type = ops_dlpack_type_of(HAL_TYPE_I16),
            .shape = shape,
            .strides = way < 4 ? strides[way] : NULL,
            .byte_offset = offsets[way % 4]};
        const int64_t *stride = strides[way % 4];
        ops_tensor made;
        ok(ops_tensor_from_dlpack(test_context, &source, &made));
        int16_t back[12];
        ok(ops_tensor_read(test_context, &made, sizeof back, back));
        for (int64_t i = 0; i < 12; i++) {
            assert_int_equal(back[i],
                             (int64_t)offsets[way % 4] / 2 + i / 4 * stride[0] + i % 4 * stride[1]);
        }
        ops_tensor_release(&made);
    }
}

static void all_types_and_ranks(void **state)
{
    for (hal_type type = 1; type < HAL_TYPE_COUNT; type++) {
        assert_int_equal(ops_dlpack_get_type(ops_dlpack_type_of(type)), type);
    }
    const ops_dlpack_type refused[] = {{5, 64, 2}, {5, 32, 1}, {2, 32, 4},
                                       {0, 4, 1},  {17, 4, 1}, {2, 128, 1}};
    float one = 7;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const ops_dlpack_tensor source = {
            .data = &one, .device = {OPS_DLPACK_HOST, 0}, .type = refused[i]};
        ops_tensor made;
        assert_int_equal(ops_dlpack_get_type(refused[i]), HAL_TYPE_NONE);
        ok(unsupported(ops_tensor_from_dlpack(test_context, &source, &made)));
    }
    ops_tensor scalar, none;
    const int64_t empty[2] = {0, 5};
    ok(ops_tensor_from_host(test_context, HAL_TYPE_F32, 0, NULL, &one, &scalar));
    ok(ops_tensor_create(test_context, HAL_TYPE_F32, 2, empty, &none));
    for (int i = 0; i < 4; i++) {
        ops_dlpack_managed *managed;
        ops_tensor back;
        ok(ops_tensor_to_dlpack(test_context, i & 1 ? &none : &scalar, i / 2, &managed));
        ok(ops_tensor_from_dlpack(test_context, &managed->tensor, &back));
        managed->destroy(managed);
        assert_int_equal(back.rank, i & 1 ? 2 : 0);
        assert_int_equal(ops_tensor_get_element_count(&back), i & 1 ? 0 : 1);
        ops_tensor_release(&back);
    }
    ops_tensor_release(&scalar);
    ops_tensor_release(&none);
}

static void bad_sources(void **state)
{
    float one = 7;
    int64_t shape[OPS_MAX_RANK + 1] = {1}, negative[1] = {-1};
    ops_dlpack_tensor source = {.data = &one,
                                .device = {OPS_DLPACK_HOST, 0},
                                .rank = OPS_MAX_RANK + 1,
                                .type = ops_dlpack_type_of(HAL_TYPE_F32),
                                .shape = shape};
    ops_tensor made;
    invalid(ops_tensor_from_dlpack(test_context, &source, &made), "rank 0 to 16");
    source.rank = 1;
    source.shape = negative;
    invalid(ops_tensor_from_dlpack(test_context, &source, &made), "shape");
    source.shape = NULL;
    invalid(ops_tensor_from_dlpack(test_context, &source, &made), "no shape");
    source.shape = shape;
    source.device.kind = 2;
    ok(unsupported(ops_tensor_from_dlpack(test_context, &source, &made)));
    invalid(ops_tensor_from_dlpack(test_context, NULL, &made), "null");
    invalid(ops_tensor_from_dlpack(test_context, &source, NULL), "tensor");
    ops_dlpack_managed *managed;
    invalid(ops_tensor_to_dlpack(test_context, NULL, 0, &managed), "tensor");
    invalid(ops_tensor_to_dlpack(NULL, &made, 0, &managed), "context");
}

typedef struct source {
    float numbers[24];
    int released;
} source;

static void count_release(void *user)
{
    ((source *)user)->released++;
}

/* Strides of any sign, in the memory itself: no copy, and no byte is written. */
static void shares_the_memory_of_any_strides(void **state)
{
    source own = {.released = 0}, kept;
    int64_t shape[3] = {2, 3, 2}, strides[3] = {12, -4, 2};
    for (int i = 0; i < 24; i++) {
        own.numbers[i] = (float)i;
    }
    kept = own;
    const ops_dlpack_tensor given = {.data = own.numbers,
                                     .device = {OPS_DLPACK_HOST, 0},
                                     .rank = 3,
                                     .type = {2, 32, 1},
                                     .shape = shape,
                                     .strides = strides,
                                     .byte_offset = 8 * sizeof(float)};
    hal_memory_statistics before, after;
    hal_device *device = ops_context_get_device(test_context);
    ok(hal_device_get_memory(device, &before));
    ops_tensor x;
    ok(ops_tensor_share_dlpack(test_context, &given, OPS_DLPACK_READ_ONLY, count_release, &own,
                               &x));
    ok(hal_device_get_memory(device, &after));
    assert_int_equal(after.copied_bytes, before.copied_bytes);
    assert_int_equal(after.in_use_bytes, before.in_use_bytes);
    assert_int_equal(after.imported_bytes, before.imported_bytes + 23 * sizeof(float));
    float seen[12];
    ok(ops_tensor_read(test_context, &x, sizeof seen, seen));
    for (int i = 0; i < 12; i++) {
        assert_true(seen[i] == (float)(8 + 12 * (i / 6) - 4 * (i / 2 % 3) + 2 * (i % 2)));
    }
    assert_int_equal(ops_tensor_write(test_context, &x, seen, sizeof seen),
                     HAL_ERROR_INVALID_ARGUMENT);
    assert_memory_equal(own.numbers, kept.numbers, sizeof own.numbers);
    ops_tensor_release(&x);
    ok(hal_queue_wait(ops_context_get_queue(test_context), HAL_WAIT_FOREVER));
    assert_int_equal(own.released, 1);
    ok(hal_device_get_memory(device, &after));
    assert_int_equal(after.imported_bytes, before.imported_bytes);
}

static void shares_nothing_that_is_misaligned(void **state)
{
    source own = {.released = 0};
    int64_t shape[1] = {4};
    ops_dlpack_tensor given = {.data = own.numbers,
                               .device = {OPS_DLPACK_HOST, 0},
                               .rank = 1,
                               .type = {2, 32, 1},
                               .shape = shape,
                               .byte_offset = 2};
    ops_tensor x;
    ok(unsupported(ops_tensor_share_dlpack(test_context, &given, 0, count_release, &own, &x)));
    given.byte_offset = 0;
    given.device.kind = 2;
    ok(unsupported(ops_tensor_share_dlpack(test_context, &given, 0, count_release, &own, &x)));
    assert_int_equal(own.released, 0);
    given.device.kind = OPS_DLPACK_HOST;
    shape[0] = 0;
    ok(ops_tensor_share_dlpack(test_context, &given, 0, count_release, &own, &x));
    assert_int_equal(own.released, 1);
    ops_tensor_release(&x);
}

/* Complex numbers are pairs of parts here, and kDLComplex for others. */
static void complex_numbers_are_pairs(void **state)
{
    float numbers[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    int64_t shape[2] = {3, 2}, strides[2] = {2, 1};
    ops_dlpack_tensor given = {.data = numbers,
                               .device = {OPS_DLPACK_HOST, 0},
                               .rank = 1,
                               .type = {OPS_DLPACK_COMPLEX, 64, 1},
                               .shape = shape,
                               .strides = strides};
    ops_tensor x, part;
    float parts[6];
    ok(ops_tensor_from_dlpack(test_context, &given, &x)); /* every second number */
    assert_true(x.rank == 2 && x.shape[0] == 3 && x.shape[1] == 2 && x.type == HAL_TYPE_F32);
    ok(ops_tensor_read(test_context, &x, sizeof parts, parts));
    assert_true(parts[0] == 0 && parts[1] == 1 && parts[2] == 4 && parts[5] == 9);
    ops_tensor_release(&x);

    ok(ops_tensor_from_host(test_context, HAL_TYPE_F32, 2, (int64_t[]){3, 4}, numbers, &x));
    ok(ops_tensor_slice(&x, 1, 2, 2, 1, &part));
    ops_dlpack_managed *managed;
    ok(ops_tensor_to_dlpack(test_context, &part, 0, &managed));
    ok(ops_dlpack_join_parts(managed));
    assert_true(managed->tensor.rank == 1 && managed->tensor.strides[0] == 2);
    assert_true(managed->tensor.type.code == OPS_DLPACK_COMPLEX &&
                managed->tensor.type.bits == 64 && managed->tensor.byte_offset == 8);
    assert_int_equal(ops_dlpack_join_parts(managed), HAL_ERROR_INVALID_ARGUMENT);
    managed->destroy(managed);
    ok(ops_tensor_transpose(&part, 0, 1, &part));
    ok(ops_tensor_slice(&part, 1, 0, 2, 1, &part)); /* [2, 2], parts far from each other */
    ok(ops_tensor_to_dlpack(test_context, &part, 0, &managed));
    assert_int_equal(ops_dlpack_join_parts(managed), HAL_ERROR_UNSUPPORTED);
    assert_int_equal(managed->tensor.rank, 2);
    managed->destroy(managed);
    assert_int_equal(ops_dlpack_join_parts(NULL), HAL_ERROR_INVALID_ARGUMENT);
    ops_tensor_release(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(exports_share_memory),
                                       cmocka_unit_test(imports_of_any_strides),
                                       cmocka_unit_test(all_types_and_ranks),
                                       cmocka_unit_test(bad_sources),
                                       cmocka_unit_test(shares_the_memory_of_any_strides),
                                       cmocka_unit_test(shares_nothing_that_is_misaligned),
                                       cmocka_unit_test(complex_numbers_are_pairs)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}
