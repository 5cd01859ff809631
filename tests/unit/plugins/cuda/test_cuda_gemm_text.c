/* The text of native matrix products of the cuda plugin, which goes through ptxas, where it is
 * installed, and what fits into shared memory. */
#include "../plugin_host.h"
#include <cuda/gemm/tile/ring.h>
#include <cuda/gemm/wgmma.h>

#include "ptxas.h"

static hal_ir_kernel *fragment_root(void)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    assert_int_equal(hal_ir_builder_create_fragment("e", &b), HAL_OK);
    const hal_ir_value x = hal_ir_input(b, 0, HAL_TYPE_F32);
    for (uint32_t i = 1; i < 4; i++) { /* row, column, batch */
        hal_ir_input(b, i, HAL_TYPE_U32);
    }
    const hal_ir_value bias = hal_ir_input(b, 4, HAL_TYPE_F32);
    const hal_ir_value sum = hal_ir_add(b, x, bias);
    hal_ir_output(b, 0, hal_ir_mul(b, sum, hal_ir_sqrt(b, sum)));
    if (hal_ir_builder_finish(b, &ir) != HAL_OK) {
        fail_msg("%s", hal_status_message());
    }
    hal_ir_builder_destroy(b);
    return ir;
}

/* A chain of operations that no other one follows from. */
static hal_ir_kernel *fragment_long(void)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *ir = NULL;
    assert_int_equal(hal_ir_builder_create_fragment("e", &b), HAL_OK);
    hal_ir_value x = hal_ir_input(b, 0, HAL_TYPE_F32);
    for (uint32_t i = 1; i < 4; i++) { /* row, column, batch */
        hal_ir_input(b, i, HAL_TYPE_U32);
    }
    const hal_ir_value bias = hal_ir_input(b, 4, HAL_TYPE_F32);
    for (uint32_t i = 0; i < 16; i++) {
        x = hal_ir_sub(b, bias, hal_ir_mul(b, x, bias));
    }
    hal_ir_output(b, 0, x);
    assert_int_equal(hal_ir_builder_finish(b, &ir), HAL_OK);
    hal_ir_builder_destroy(b);
    return ir;
}

static void write_and_assemble(const cuda_gemm_key *key)
{
    char expected[64];
    kit_text text = {.host = plugin_host()};
    assert_true(cuda_gemm_is_supported(key));
    assert_true(cuda_gemm_shared_bytes(key) <= 232448 && cuda_gemm_stages(key) >= 3);
    if (cuda_gemm_write(key, &text) != HAL_OK) {
        fail_msg("%s", message);
    }
    snprintf(expected, sizeof expected, "m64n%uk%s", key->columns,
             key->type == HAL_TYPE_F16    ? "16.f32.f16.f16"
             : key->type == HAL_TYPE_BF16 ? "16.f32.bf16.bf16"
                                          : "8.f32.tf32.tf32");
    assert_non_null(strstr(text.data, expected));
    assert_int_equal(strstr(text.data, "fma.rn.f32") != NULL, key->reads_c); /* beta C */
    assert_int_equal(strstr(text.data, ".multicast::cluster") != NULL, key->shared > 0);
    /* Fences that wait for the device's memory: one where parts were added. */
    assert_null(strstr(text.data, "fence.proxy.async;"));
    assert_null(strstr(text.data, "acquire.cluster.shared"));
    const char *release = strstr(text.data, "arrive.release.cluster");
    assert_int_equal(release != NULL, key->split > 1 && !key->in_memory);
    assert_int_equal(count_of(text.data, "try_wait") + key->in_memory,
                     key->wait_seconds > 0 ? count_of(text.data, "call.uni __assertfail")
                                           : count_of(text.data, "@!%done bra WAIT"));
    assert_true(!release || !strstr(release + 1, "arrive.release.cluster"));
    /* turns wait before tiles and arrive once before the first and after each of them */
    assert_int_equal(count_of(text.data, "bar.sync %turn, 256;"), key->alternates);
    assert_int_equal(count_of(text.data, "bar.arrive %other_turn, 256;"), 2 * key->alternates);
    assert_true(PTXAS[0] == 0 ||
                ptxas_takes(text.data, "-arch=sm_90a --warn-on-spills -Werror", ""));
    kit_text_release(&text);
}

/* Boxes of C that no tensor map describes: words of rows, and halves at their ends. */
static void write_rows(const hal_ir_kernel *root)
{
    const cuda_gemm_key keys[] = {
        {.type = HAL_TYPE_BF16,
         .type_c = HAL_TYPE_BF16,
         .transpose_a = 1,
         .by_rows = 1,
         .columns = 256,
         .split = 1},
        {.type = HAL_TYPE_F16,
         .type_c = HAL_TYPE_F16,
         .swapped = 1,
         .reads_c = 1,
         .by_rows = 1,
         .columns = 16,
         .input_count = 1,
         .inputs = {HAL_TYPE_BF16},
         .epilogue = root,
         .split = 1},
        {.type = HAL_TYPE_F32,
         .type_c = HAL_TYPE_F32,
         .transpose_b = 1,
         .swapped = 1,
         .by_rows = 1,
         .columns = 192,
         .split = 1,
         .shared = CUDA_GEMM_SHARES_B},
        {.type = HAL_TYPE_BF16, .type_c = HAL_TYPE_F32, .by_rows = 1, .columns = 208, .split = 1},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        write_and_assemble(&keys[i]);
    }
}

/* A and B without tensor maps: in all layouts, with groups of lines that not all warps have. */
static void test_direct_text(void **state)
{
    for (uint32_t i = 0; i < 32; i += 3) {
        static const uint16_t columns[] = {16, 48, 64, 128};
        const bool staged = i >= 16;
        const cuda_gemm_key key = {.type = HAL_TYPE_BF16,
                                   .type_c = HAL_TYPE_BF16,
                                   .transpose_a = i % 2,
                                   .transpose_b = i / 2 % 2,
                                   .swapped = !staged && i / 4 % 4 < 2,
                                   .direct = 1,
                                   .columns = columns[i / 4 % 4],
                                   .split = staged ? 2 : 1,
                                   .staged = staged,
                                   .by_rows = !staged,
                                   .width = staged};
        write_and_assemble(&key);
    }
}

static void test_text(void **state)
{
    hal_ir_kernel *root = fragment_root();
    const cuda_gemm_key keys[] = {
        {.type = HAL_TYPE_BF16, .type_c = HAL_TYPE_BF16, .columns = 256, .split = 1},
        {.type = HAL_TYPE_F16,
         .type_c = HAL_TYPE_F32,
         .transpose_a = 1,
         .reads_c = 1,
         .columns = 192,
         .split = 1},
        {.type = HAL_TYPE_BF16,
         .type_c = HAL_TYPE_BF16,
         .transpose_b = 1,
         .columns = 128,
         .flushes = 1,
         .split = 4,
         .staged = 1,
         .width = 4},
        {.type = HAL_TYPE_F16,
         .type_c = HAL_TYPE_F16,
         .columns = 208, /* the last box overlaps */
         .input_count = 1,
         .inputs = {HAL_TYPE_BF16},
         .epilogue = root,
         .split = 1},
        {.type = HAL_TYPE_BF16,
         .type_c = HAL_TYPE_BF16,
         .swapped = 1,
         .columns = 16,
         .split = 3,
         .staged = 1,
         .width = 1},
        {.type = HAL_TYPE_F32,
         .type_c = HAL_TYPE_F32,
         .transpose_a = 1,
         .transpose_b = 1,
         .swapped = 1,
         .reads_c = 1,
         .columns = 256,
         .split = 1},
        {.type = HAL_TYPE_F32,
         .type_c = HAL_TYPE_F32,
         .transpose_a = 1,
         .transpose_b = 1,
         .columns = 64,
         .split = 1},
        {.type = HAL_TYPE_F32,
         .type_c = HAL_TYPE_F32,
         .transpose_b = 1,
         .columns = 256, /* A from shared memory */
         .split = 1},
        {.type = HAL_TYPE_F32,
         .type_c = HAL_TYPE_F32,
         .transpose_b = 1,
         .columns = 128,
         .flushes = 1,
         .split = 1},
        {.type = HAL_TYPE_F32,
         .type_c = HAL_TYPE_F32,
         .transpose_a = 1,
         .columns = 64,
         .flushes = 1,
         .split = 2,
         .staged = 1,
         .width = 4},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        write_and_assemble(&keys[i]);
    }
    write_rows(root);
    cuda_gemm_key other = keys[2];
    other.columns = 256; /* two sets of sums do not fit */
    assert_false(cuda_gemm_is_supported(&other));
    other = keys[5];
    other.transpose_b = 0; /* three stages do not fit, as B is written again along k */
    assert_false(cuda_gemm_is_supported(&other));
    other = keys[3];
    other.epilogue = NULL;
    assert_true(cuda_gemm_is_supported(&other));
    other.reads_c = 1; /* the box before the last one is written already */
    assert_false(cuda_gemm_is_supported(&other));
    hal_ir_kernel_destroy(root);
}

static void test_pair_text(void **state)
{
    static const cuda_gemm_key keys[] = {
        {.type = HAL_TYPE_BF16,
         .type_c = HAL_TYPE_BF16,
         .transpose_a = 1,
         .columns = 256,
         .split = 1,
         .shared = CUDA_GEMM_SHARES_B},
        {.type = HAL_TYPE_F32,
         .type_c = HAL_TYPE_F32,
         .transpose_a = 1,
         .transpose_b = 1,
         .swapped = 1,
         .columns = 128,
         .flushes = 1,
         .split = 1,
         .shared = CUDA_GEMM_SHARES_A},
        {.type = HAL_TYPE_BF16,
         .type_c = HAL_TYPE_BF16,
         .swapped = 1,
         .columns = 256,
         .split = 3,
         .staged = 1,
         .width = 4,
         .shared = CUDA_GEMM_SHARES_A},
        {.type = HAL_TYPE_F16,
         .type_c = HAL_TYPE_F32,
         .transpose_b = 1,
         .columns = 96,
         .split = 1,
         .staged = 1,
         .width = 1,
         .shared = CUDA_GEMM_SHARES_B},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        write_and_assemble(&keys[i]);
    }
    cuda_gemm_key other = keys[0];
    other.transpose_a = 0;
    other.columns = 192;
    other.shared = CUDA_GEMM_SHARES_A;
    assert_true(cuda_gemm_is_supported(&other));
    other.shared = CUDA_GEMM_SHARES_B; /* a half would be one and a half boxes */
    assert_false(cuda_gemm_is_supported(&other));
    other.transpose_b = 1;
    assert_true(cuda_gemm_is_supported(&other));
    other.staged = 1;
    other.width = 4;
    assert_true(cuda_gemm_is_supported(&other));
    other.split = 4; /* 8 groups in a cluster */
    assert_true(cuda_gemm_is_supported(&other));
    other.split = 5;
    assert_false(cuda_gemm_is_supported(&other));
}

/* Parts through memory, and waits that are bounded. */
static void test_partial_text(void **state)
{
    static const cuda_gemm_key keys[] = {
        {.type = HAL_TYPE_BF16,
         .type_c = HAL_TYPE_BF16,
         .columns = 256,
         .split = 16,
         .in_memory = 1,
         .staged = 1,
         .width = 4},
        {.type = HAL_TYPE_F16,
         .type_c = HAL_TYPE_F32,
         .transpose_b = 1,
         .swapped = 1,
         .columns = 96,
         .split = 7, /* slices of one and two blocks */
         .in_memory = 1,
         .staged = 1,
         .width = 1,
         .wait_seconds = 10,
         .shared = CUDA_GEMM_SHARES_A},
        {.type = HAL_TYPE_F32,
         .type_c = HAL_TYPE_F32,
         .columns = 64,
         .flushes = 1,
         .split = 2,
         .in_memory = 1,
         .staged = 1,
         .width = 4,
         .wait_seconds = 1},
        {.type = HAL_TYPE_BF16,
         .type_c = HAL_TYPE_BF16,
         .columns = 128,
         .split = 2,
         .staged = 1,
         .width = 4,
         .wait_seconds = 255,
         .shared = CUDA_GEMM_SHARES_A},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        write_and_assemble(&keys[i]);
    }
    cuda_gemm_key other = keys[0];
    other.columns = 112; /* 14 blocks */
    assert_false(cuda_gemm_is_supported(&other));
    other.split = 14;
    assert_true(cuda_gemm_is_supported(&other));
    other.split = 1;
    assert_false(cuda_gemm_is_supported(&other));
    other = keys[2];
    other.columns = 80; /* too few registers */
    assert_false(cuda_gemm_is_supported(&other));
}

/* Warpgroups that take turns: tiles of 64 rows, which four warps of a group empty, more stages, and
 * one box of C for each warpgroup. */
static void test_turns_text(void **state)
{
    hal_ir_kernel *root = fragment_root();
    const cuda_gemm_key keys[] = {
        {.type = HAL_TYPE_BF16,
         .type_c = HAL_TYPE_BF16,
         .reads_c = 1,
         .alternates = 1,
         .columns = 256,
         .split = 1,
         .shared = CUDA_GEMM_SHARES_B},
        {.type = HAL_TYPE_F16,
         .type_c = HAL_TYPE_F32,
         .transpose_a = 1,
         .transpose_b = 1,
         .swapped = 1,
         .alternates = 1,
         .columns = 208,
         .input_count = 1,
         .inputs = {HAL_TYPE_F32},
         .epilogue = root,
         .split = 1},
        {.type = HAL_TYPE_F32,
         .type_c = HAL_TYPE_F32,
         .wait_seconds = 10,
         .alternates = 1,
         .columns = 192, /* B is written again along k */
         .split = 1,
         .shared = CUDA_GEMM_SHARES_A},
        {.type = HAL_TYPE_BF16,
         .type_c = HAL_TYPE_BF16,
         .swapped = 1,
         .alternates = 1,
         .columns = 16,
         .split = 1},
    };
    static const uint32_t stages[] = {5, 6, 3, 8};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        assert_int_equal(cuda_gemm_rows(&keys[i]), 64);
        assert_int_equal(cuda_gemm_tile_a_bytes(&keys[i]), 8192);
        assert_int_equal(cuda_gemm_stages(&keys[i]), stages[i]);
        assert_int_equal(cuda_gemm_empty_arrivals(&keys[i]), keys[i].shared > 0 ? 8 : 4);
        assert_int_equal(cuda_gemm_barrier_offset(&keys[i]) - cuda_gemm_store_offset(&keys[i]),
                         2 * 64 * 128);
        write_and_assemble(&keys[i]);
    }
    hal_ir_kernel_destroy(root);
}

/* Boxes with a long fragment are a loop, whose text has the stores of one: but where both
 * warpgroups compute them at once and the tile is wide, and where C is F32. */
static void test_loop_text(void **state)
{
    hal_ir_kernel *fragment = fragment_long();
    const struct {
        hal_type type_c;
        uint8_t swapped, alternates;
        uint32_t columns, stores; /* of 16 columns */
    } cases[] = {{HAL_TYPE_BF16, 0, 1, 256, 4},  {HAL_TYPE_BF16, 1, 1, 192, 4},
                 {HAL_TYPE_BF16, 1, 0, 256, 4},  {HAL_TYPE_BF16, 0, 0, 128, 4},
                 {HAL_TYPE_BF16, 0, 0, 256, 16}, {HAL_TYPE_BF16, 0, 1, 208, 16},
                 {HAL_TYPE_BF16, 0, 1, 64, 4},   {HAL_TYPE_F32, 0, 1, 256, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cuda_gemm_key key = {.type = HAL_TYPE_BF16,
                             .type_c = cases[i].type_c,
                             .swapped = cases[i].swapped,
                             .alternates = cases[i].alternates,
                             .columns = cases[i].columns,
                             .input_count = 1,
                             .inputs = {HAL_TYPE_BF16},
                             .epilogue = fragment,
                             .split = 1};
        key.layouts[0] = cases[i].swapped ? CUDA_GEMM_INPUT_SAME_COLUMNS
                                          : CUDA_GEMM_INPUT_SAME_ROWS | CUDA_GEMM_INPUT_PAIRS;
        kit_text text = {.host = plugin_host()};
        write_and_assemble(&key);
        assert_int_equal(cuda_gemm_write(&key, &text), HAL_OK);
        assert_int_equal(count_of(text.data, "stmatrix"), cases[i].stores);
        assert_int_equal(count_of(text.data, "@%last bra BOX;"),
                         cases[i].stores == 4 && cases[i].columns > 64);
        kit_text_release(&text);
    }
    hal_ir_kernel_destroy(fragment);
}

static void test_turns_are_supported(void **state)
{
    const cuda_gemm_key key = {.type = HAL_TYPE_BF16,
                               .type_c = HAL_TYPE_BF16,
                               .alternates = 1,
                               .columns = 128,
                               .split = 1};
    assert_true(cuda_gemm_is_supported(&key));
    cuda_gemm_key other = key;
    other.flushes = 1;
    assert_false(cuda_gemm_is_supported(&other));
    other = key;
    other.by_rows = 1;
    assert_false(cuda_gemm_is_supported(&other));
    other = key;
    other.direct = 1;
    assert_false(cuda_gemm_is_supported(&other));
    other = key;
    other.staged = 1;
    other.width = 4;
    assert_false(cuda_gemm_is_supported(&other));
    other.split = 2;
    assert_false(cuda_gemm_is_supported(&other));
    other.in_memory = 1;
    assert_false(cuda_gemm_is_supported(&other));
    other = key;
    other.shared = CUDA_GEMM_SHARES_A;
    assert_true(cuda_gemm_is_supported(&other));
    other.transpose_a = 1; /* half of the rows is half of a box */
    assert_false(cuda_gemm_is_supported(&other));
    other.shared = CUDA_GEMM_SHARES_B;
    assert_true(cuda_gemm_is_supported(&other));
    other.shared = CUDA_GEMM_SHARES_NONE;
    other.type = other.type_c = HAL_TYPE_F32; /* A in registers */
    assert_false(cuda_gemm_is_supported(&other));
    other.transpose_a = 0;
    assert_true(cuda_gemm_is_supported(&other));
}

/* All tiles of all kernels fit into shared memory, staged tiles into the ring. */
static void test_sizes(void **state)
{
    static const hal_type types[] = {HAL_TYPE_BF16, HAL_TYPE_F32};
    uint32_t supported = 0;
    for (uint32_t i = 0; i < 2 * 16 * 16 * 8; i++) {
        cuda_gemm_key key = {.type = types[i % 2],
                             .type_c = types[i % 2],
                             .transpose_a = i / 2 % 2 != 0,
                             .transpose_b = i / 4 % 2 != 0,
                             .swapped = i / 8 % 2 != 0,
                             .flushes = i / 16 % 2 != 0,
                             .columns = 16 * (i / 32 % 16 + 1),
                             .split = (uint8_t)(i / 512 % 8 + 1)};
        key.staged = key.split > 1;
        key.width = key.staged ? 4 : 0;
        if (cuda_gemm_is_supported(&key)) {
            supported++;
            assert_true(cuda_gemm_shared_bytes(&key) <= 232448);
            assert_true(cuda_gemm_stages(&key) >= 3 && cuda_gemm_stages(&key) <= 8);
        } else { /* sums, boxes, or a ring of three stages do not fit */
            assert_true(key.columns > 96 || key.columns < 64);
        }
    }
    assert_true(supported > 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_direct_text),
        cmocka_unit_test(test_pair_text),
        cmocka_unit_test(test_partial_text),
        cmocka_unit_test(test_loop_text),
        cmocka_unit_test(test_turns_text),
        cmocka_unit_test(test_turns_are_supported),
        cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
