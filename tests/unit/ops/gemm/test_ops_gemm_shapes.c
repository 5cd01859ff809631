/* The planner of products on every class of device, of which none is here but the processor: tiles
 * of lengths from 0 on are whole, and every shape is described or computed, also where k or alpha
 * is 0. */
#include "ops_gemm_fixture.h"

#include "gemm/candidates.h"
#include "gemm/task.h"

#include <ops/normwise.h>

enum { LENGTHS = 301, SAMPLES = 400 };

/* What the planner reads of a device, as real devices report it. */
typedef struct device_class {
    const char *name;
    uint32_t kind, subgroup_width, item_vector_bytes, item_register_bytes;
    uint32_t group_items, group_size[2], shared_bytes, compute_units, grid;
    uint32_t has_units, copies;
} device_class;

static const device_class classes[] = {
    {"cuda", HAL_DEVICE_DISCRETE, 32, 0, 0, 1024, {1024, 1024}, 227 << 10, 132, 65535, 1, 1},
    {"vulkan", HAL_DEVICE_DISCRETE, 32, 0, 0, 1024, {1024, 1024}, 48 << 10, 132, 65535, 1, 0},
    {"opencl", HAL_DEVICE_DISCRETE, 0, 0, 0, 1024, {1024, 1024}, 48 << 10, 64, 65535, 0, 0},
    {"integrated", HAL_DEVICE_INTEGRATED, 16, 0, 512, 512, {512, 512}, 64 << 10, 24, 65535, 0, 0},
    {"odd limits", HAL_DEVICE_DISCRETE, 64, 0, 0, 200, {200, 100}, 32 << 10, 3, 101, 0, 0},
    {"smallest", HAL_DEVICE_VIRTUAL, 0, 0, 0, 1, {1, 1}, 16 << 10, 0, 65535, 0, 0},
    {"lavapipe", HAL_DEVICE_SOFTWARE, 8, 0, 0, 1024, {1024, 1024}, 32 << 10, 16, 65535, 0, 0},
    {"pocl", HAL_DEVICE_CPU, 0, 64, 0, 4096, {4096, 4096}, 512 << 10, 16, 65535, 0, 0},
    {"processor of groups", HAL_DEVICE_CPU, 0, 0, 0, 32, {32, 32}, 16 << 10, 8, 65535, 0, 0},
    {"cpu", HAL_DEVICE_CPU, 16, 0, 0, 1024, {1024, 1024}, 64 << 10, 2, 65535, 0, 0}};
enum { CLASSES = sizeof classes / sizeof classes[0] };

static hal_device_info as_class(const device_class *class, const hal_device_info *info)
{
    hal_device_info as = *info;
    as.kind = class->kind;
    as.subgroup_width = class->subgroup_width;
    as.item_vector_bytes = class->item_vector_bytes;
    as.item_register_bytes = class->item_register_bytes;
    as.max_vector_bytes = 16;
    as.max_group_items = class->group_items;
    as.max_group_size[0] = class->group_size[0];
    as.max_group_size[1] = class->group_size[1];
    as.shared_bytes = class->shared_bytes;
    as.compute_units = class->compute_units;
    as.max_grid[0] = as.max_grid[1] = as.max_grid[2] = class->grid;
    as.matrix_types = class->has_units ? HAL_TYPES_MATRIX : 0;
    as.features &= ~(uint64_t)HAL_FEATURE_ASYNC_COPY;
    as.features |= class->copies ? HAL_FEATURE_ASYNC_COPY : 0;
    return as;
}

static int is_power_of_two(uint32_t number)
{
    return number && !(number & (number - 1));
}

/* Fails unless a block is divided into whole warps of whole work-items of whole strips, which the
 * device's groups can have. */
static void expect_whole(const hal_device_info *info, const ops_gemm_tiles *t)
{
    const uint32_t lanes_m = t->lanes_m ? t->lanes_m : t->block_m / t->thread_m;
    const uint32_t lanes_n = t->lanes_n ? t->lanes_n : t->block_n / t->thread_n;
    const uint32_t numbers[] = {t->block_m, t->block_n, t->block_k,  t->intra_group_split_k,
                                lanes_m,    lanes_n,    t->thread_m, t->thread_n,
                                t->strip_m, t->strip_n};
    for (uint32_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        assert_true(is_power_of_two(numbers[i]));
    }
    assert_int_equal(t->block_m % (lanes_m * t->thread_m), 0);
    assert_int_equal(t->block_n % (lanes_n * t->thread_n), 0);
    assert_int_equal(t->thread_m % t->strip_m, 0);
    assert_int_equal(t->thread_n % t->strip_n, 0);
    const uint32_t items_m = t->block_m / t->thread_m, items_n = t->block_n / t->thread_n;
    const int is_line = t->stages || t->unroll; /* a group of one dimension */
    const uint32_t items = items_m * items_n * t->intra_group_split_k;
    assert_true(items <= info->max_group_items);
    assert_true(is_line ? items <= info->max_group_size[0]
                        : items_n <= info->max_group_size[0] && items_m <= info->max_group_size[1]);
}

static void expect_whole_tiles(const hal_device_info *info, const ops_gemm_shape *s)
{
    const uint32_t width = hal_type_size(s->type);
    ops_gemm_tiles t;
    ops_gemm_choose_scale_tiles(info, s->tuning, s->m, s->n, &t);
    expect_whole(info, &t);
    ops_gemm_choose_reduce_tiles(info, s->tuning, s->m, s->n, 1 + next_random() % 70, width, &t);
    expect_whole(info, &t);
    if (!ops_gemm_is_gpu(info)) {
        ops_gemm_choose_cpu_tiles(info, s->tuning, s->m, s->n, s->batch, width, s->b_k_contiguous,
                                  &t);
        expect_whole(info, &t);
        return;
    }
    const ops_gemm_rates *rates;
    for (uint32_t i = 0; s->k && ops_gemm_get_tiles(info, s, i, s->k, &t, &rates); i++) {
        if (t.block_m) {
            expect_whole(info, &t);
        }
    }
    ops_gemm_candidate found;
    for (int parts = 0; parts < 2 && s->k; parts++) {
        assert_true(ops_gemm_find_candidate(info, s, parts, 1, &found) > 0);
        expect_whole(info, &found.tiles);
        assert_true(isfinite(found.ns) && found.ns > 0);
    }
}

/* A length from 0 on: the ends of the range, powers of two and their neighbours, or any. */
static int64_t any_length(void)
{
    const uint32_t of = next_random() % 4, power = 1u << next_random() % 9;
    return of == 0   ? next_random() % 5
           : of == 1 ? power - 1 + next_random() % 3
                     : next_random() % LENGTHS;
}

static void tiles_are_whole(void **state)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F64, HAL_TYPE_F16, HAL_TYPE_BF16};
    for (uint32_t c = 0; c < CLASSES; c++) {
        const hal_device_info info = as_class(&classes[c], test_context->info);
        for (int i = 0; i < SAMPLES; i++) {
            const hal_type type = types[i % 4];
            ops_gemm_shape s = {.tuning = &ops_tuning_select(&info)->gemm,
                                .m = any_length() + (i % 9 == 0) * 70000,
                                .n = any_length() + (i % 9 == 1) * 70000,
                                .k = any_length(),
                                .batch = 1 + i % 3,
                                .precision = next_random() % 3,
                                .type = type,
                                .a_k_contiguous = next_random() % 2,
                                .b_k_contiguous = next_random() % 2,
                                .a_width = 1 << next_random() % 2,
                                .b_width = 1 << next_random() % 2};
            s.m += s.m == 0;
            s.n += s.n == 0;
            if (ops_gemm_units_multiply(&info, s.tuning, s.precision, s.m, s.n, s.k, type)) {
                s.access = 16;
            }
            expect_whole_tiles(&info, &s);
        }
    }
}

/* F64 on matrix units, as measured on an H200: at edges, with both operands along k in words, a
 * deep tile's copies take registers that it lacks; for 322 rows unaligned copies are hidden behind
 * more multiplications by the largest tiles in parts of k. */
static void f64_choices(void **state)
{
    hal_device_info info = as_class(&classes[0], test_context->info);
    info.matrix_types = HAL_TYPES_MATRIX;
    ops_gemm_shape s = {.tuning = &ops_tuning_gpu.gemm,
                        .m = 2047,
                        .n = 2047,
                        .k = 2047,
                        .batch = 1,
                        .access = 8,
                        .type = HAL_TYPE_F64,
                        .a_k_contiguous = 1,
                        .b_k_contiguous = 1,
                        .a_width = 1,
                        .b_width = 1};
    ops_gemm_candidate c;
    assert_true(ops_gemm_find_candidate(&info, &s, true, 1, &c) > 0);
    assert_int_equal(c.tiles.matrix, 1);
    assert_int_equal(c.tiles.block_k, 16);
    s.m = 322;
    s.n = 2626;
    s.k = 2831;
    s.access = 16;
    s.a_k_contiguous = s.b_k_contiguous = 0;
    s.a_width = s.b_width = 2;
    assert_true(ops_gemm_find_candidate(&info, &s, true, 1, &c) > 0);
    assert_int_equal(c.tiles.block_m * c.tiles.block_n, 128 * 128);
    assert_int_equal(c.tiles.block_k, 32);
    assert_true(c.depth > 0);
}

/* A lane stores at most 16 bytes at once: four columns of F32, two of F64. */
static void strips_are_stored_at_once(void **state)
{
    const hal_device_info *info = test_context->info, as = as_class(&classes[1], info);
    test_set_device(test_context, &as);
    for (int wide = 0; wide < 2; wide++) {
        const hal_type type = wide ? HAL_TYPE_F64 : HAL_TYPE_F32;
        hal_buffer *buffers[3];
        ops_tensor t[3];
        for (int i = 0; i < 3; i++) {
            ok(hal_buffer_create(test_device, HAL_MEMORY_DEVICE, 256 * 256 * 8, &buffers[i]));
            t[i] = (ops_tensor){buffers[i], type, 2, 0, {256, 256}, {256, 1}};
        }
        const ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
        const ops_gemm_tiles *tiles = NULL;
        for (uint32_t i = 0; i < ops_tuning_gpu.gemm.staged.count && !tiles; i++) {
            const ops_gemm_tiles *row = &ops_tuning_gpu.gemm.staged.rows[i].tiles;
            tiles = row->strip_n == 4 && row->stages == 2 ? row : NULL;
        }
        ops_gemm_task task = {.given = tiles, .k_all = 256};
        ops_product_init(&task.product, &options, &t[0], &t[1], &t[2]);
        ok(ops_gemm_task_complete(test_context, &task));
        assert_int_equal(task.key.tiles.strip_n, wide ? 2 : 4);
        assert_int_equal(task.key.width_c, wide ? 2 : 4);
        for (int i = 0; i < 3; i++) {
            hal_buffer_release(buffers[i]);
        }
    }
    test_set_device(test_context, info);
}

/* A matrix of `rows` x `columns` in a buffer that is large enough. */
static ops_tensor view_of(hal_buffer *buffer, hal_type type, int64_t batch, int64_t rows,
                          int64_t columns)
{
    int64_t strides[3];
    lay_out((int)(next_random() % BACKWARDS), rows, columns, strides);
    ops_tensor t = {buffer, type, batch == 1 ? 2 : 3, next_random() % 4, {0}, {0}};
    const int64_t shape[3] = {batch, rows, columns};
    memcpy(t.shape, shape + 3 - t.rank, t.rank * sizeof *shape);
    memcpy(t.stride, strides + 3 - t.rank, t.rank * sizeof *shape);
    return t;
}

static void shapes_are_described(void **state)
{
    enum { BYTES = 3 * LENGTHS * (LENGTHS + 8) * 4 * 8 };
    const hal_device_info *info = test_context->info;
    hal_buffer *from = NULL, *to = NULL;
    ok(hal_buffer_create(test_device, HAL_MEMORY_DEVICE, BYTES, &from));
    ok(hal_buffer_create(test_device, HAL_MEMORY_DEVICE, BYTES, &to));
    ops_expression *finish = make_epilogue();
    for (uint32_t c = 0; c < CLASSES; c++) {
        const hal_device_info as = as_class(&classes[c], info);
        test_set_device(test_context, &as);
        forget_products();
        for (int i = 0; i < SAMPLES; i++) {
            static const double factors[] = {0, 1, -2.5};
            const hal_type type = i % 3 ? HAL_TYPE_F32 : HAL_TYPE_F64;
            const int64_t batch = next_random() % 4, m = any_length(), n = any_length(),
                          k = any_length();
            const ops_tensor a = view_of(from, type, batch, m, k),
                             b = view_of(from, type, batch, k, n),
                             y = view_of(to, type, batch, m, n);
            ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
            char text[512];
            options.impl = OPS_GEMM_PORTABLE;
            options.precision = next_random() % 4;
            options.alpha = factors[next_random() % 3];
            options.beta = factors[next_random() % 3];
            const ops_tensor inputs[2] = {{from, type, 1, 0, {n}, {1}},
                                          view_of(from, type, batch, m, n)};
            if (i % 6 == 1) { /* of F32 */
                options.epilogue = finish;
                options.inputs = inputs;
                options.input_count = 2;
            }
            ok(ops_gemm_describe(test_context, &options, &a, &b, &y, sizeof text, text));
            assert_non_null(strstr(text, m && n && batch ? ", " : "nothing to compute"));
        }
        test_set_device(test_context, info);
    }
    forget_products();
    ops_expression_destroy(finish);
    hal_buffer_release(from);
    hal_buffer_release(to);
}

/* Thin matrices, whose groups of 256 work-items have all of them along one side. */
static void thin_products_are_right(void **state)
{
    static const int64_t lengths[][2] = {{129, 1}, {1, 129}, {300, 2}, {4, 257}, {1025, 1}};
    for (int i = 0; i < 5 * 3 * 4; i++) {
        try_problem((problem){.type = i % 2 ? HAL_TYPE_F64 : HAL_TYPE_F32,
                              .m = lengths[i % 5][0],
                              .n = lengths[i % 5][1],
                              .k = i % 4 ? i % 4 + 2 : 0,
                              .layout_a = i % 3 ? PLAIN : TURNED,
                              .layout_c = i % 4 == 1 ? TURNED : PLAIN,
                              .alpha = i / 5 % 3 ? 2 : -0.0,
                              .beta = i % 3 - 1,
                              .impl = i % 3 == 2 ? OPS_GEMM_ANY : OPS_GEMM_PORTABLE});
    }
}

/* Products of arrays with k = 0 are zeros, also inside of a fused kernel and of a batch. */
static void empty_sums_of_arrays(void **state)
{
    static const int64_t lengths[][2] = {{300, 1}, {1, 300}, {130, 4}, {17, 33}};
    for (int i = 0; i < 4 * 2; i++) {
        const int64_t m = lengths[i / 2][0], n = lengths[i / 2][1];
        const int64_t shape_x[3] = {2, m, 0}, shape_w[3] = {2, 0, n};
        const uint32_t rank = i % 2 ? 3 : 2;
        const int64_t count = m * n * (rank == 3 ? 2 : 1);
        float *got = malloc((size_t)count * sizeof *got);
        ops_scope_begin(test_context);
        ops_array *x =
            ops_array_from_host(test_context, HAL_TYPE_F32, rank, shape_x + 3 - rank, NULL);
        ops_array *w =
            ops_array_from_host(test_context, HAL_TYPE_F32, rank, shape_w + 3 - rank, NULL);
        ops_array *y = ops_add_scalar(ops_relu(ops_matmul(x, w)), 2);
        ok(ops_array_read(y, (uint64_t)count * sizeof *got, got));
        ops_scope_end(test_context);
        for (int64_t j = 0; j < count; j++) {
            assert_true(got[j] == 2);
        }
        free(got);
    }
}

/* With alpha = 0 neither B nor the sums in the place of A are read. */
static void scaled_sums(void **state)
{
    enum { LENGTH = 64 };
    for (int i = 0; i < 4; i++) {
        product p =
            make(HAL_TYPE_F32, HAL_TYPE_F32, 1, LENGTH, LENGTH, LENGTH, PLAIN, PLAIN, PLAIN);
        ops_tensor from, to;
        p.b.t.offset = p.c.t.offset = 0;
        p.b.t.stride[0] = p.c.t.stride[0] = LENGTH;
        p.b.t.stride[1] = p.c.t.stride[1] = 1;
        const uint32_t levels = 1 + (uint32_t)i % 2;
        ok(ops_gemm_sums_create(test_context, HAL_TYPE_F32, levels, LENGTH, LENGTH, &from));
        ok(ops_gemm_sums_create(test_context, HAL_TYPE_F32, levels, LENGTH, LENGTH, &to));
        float *numbers = malloc(LENGTH * LENGTH * sizeof *numbers);
        const uint64_t bytes = LENGTH * LENGTH * sizeof *numbers;
        for (int j = 0; j < LENGTH * LENGTH; j++) {
            numbers[j] = NAN;
        }
        ok(hal_queue_write(test_queue, p.b.t.buffer, 0, numbers, bytes));
        ok(hal_queue_write(test_queue, from.buffer, 0, numbers, bytes));
        for (int j = 0; j < LENGTH * LENGTH; j++) {
            numbers[j] = (float)j;
        }
        ok(hal_queue_write(test_queue, p.c.t.buffer, 0, numbers, bytes));
        p.options.precision = HAL_GEMM_NORMWISE;
        p.options.levels = levels;
        p.options.alpha = 0;
        p.options.beta = -2;
        p.options.a_sums = &from;
        p.options.c_sums = i / 2 ? &to : NULL;
        ok(ops_gemm(test_context, &p.options, NULL, &p.b.t, &p.c.t));
        ok(hal_queue_read(test_queue, p.c.t.buffer, 0, bytes, numbers));
        for (int j = 0; j < LENGTH * LENGTH; j++) {
            if (numbers[j] != -2 * (float)j) {
                fail_msg("case %d, element %d: %g, wanted %d", i, j, (double)numbers[j], -2 * j);
            }
        }
        free(numbers);
        ops_tensor_release(&from);
        ops_tensor_release(&to);
        release(&p);
    }
}

int main(void)
{
    const struct CMUnitTest planned[] = {
        cmocka_unit_test(tiles_are_whole), cmocka_unit_test(f64_choices),
        cmocka_unit_test(strips_are_stored_at_once), cmocka_unit_test(shapes_are_described)};
    const struct CMUnitTest computed[] = {cmocka_unit_test(thin_products_are_right),
                                          cmocka_unit_test(empty_sums_of_arrays),
                                          cmocka_unit_test(scaled_sums)};
    return cmocka_run_group_tests_name("planned", planned, open_context, close_context) +
           RUN_ON_ALL(computed);
}
