/* Pointwise expressions: shapes, strides, broadcast, in-place outputs, types, casts, bad arguments;
 * the values of the functions are in test_ops_functions.c. */
#include "ops_fixture.h"

#include "kernels/elementwise.h"

#include <fenv.h>

/* f = x * y + z */
static ops_expression *product_sum(hal_type type)
{
    hal_ir_builder *b;
    ops_expression *e;
    ok(hal_ir_builder_create_fragment("product_sum", &b));
    hal_ir_value x = hal_ir_input(b, 0, type), y = hal_ir_input(b, 1, type),
                 z = hal_ir_input(b, 2, type);
    hal_ir_output(b, 0, hal_ir_add(b, hal_ir_mul(b, x, y), z));
    ok(ops_expression_create(b, &e));
    return e;
}

/* Runs x * y + z and compares; small whole numbers, so that only the store may round. */
static void try_layouts(hal_type type, const box *x, const box *y, const box *z, box *out)
{
    ops_expression *e = product_sum(hal_type_of_value(type));
    ops_tensor inputs[3] = {x->t, y->t, z->t};
    ok(ops_pointwise(test_context, e, inputs, 3, &out->t, 1));
    double *want = box_want(out);
    for (int64_t i = 0; i < ops_tensor_get_element_count(&out->t); i++) {
        const double sum = box_at(x, &out->t, i) * box_at(y, &out->t, i) + box_at(z, &out->t, i);
        want[place_of(&out->t, out->t.rank, out->t.shape, i)] = in_type(type, sum);
    }
    box_check(out, want, 0, 0);
    ops_expression_destroy(e);
}

/* Leaves bytes where the next call has its variables. */
__attribute__((noinline)) static void stack_fill(int byte)
{
    volatile uint8_t bytes[65536];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)byte;
    }
}

/* Whatever was on the stack, an equal call finds the kernel of the one before. */
static void equal_calls_share_a_kernel(void **state)
{
    const int64_t n = 77;
    box x = box_make(HAL_TYPE_F32, 1, &n, NULL, 0, 6),
        out = box_make(HAL_TYPE_F32, 1, &n, NULL, 0, 6);
    ops_expression *e = product_sum(HAL_TYPE_F32);
    const ops_tensor inputs[3] = {x.t, x.t, x.t};
    ok(ops_pointwise(test_context, e, inputs, 3, &out.t, 1));
    const uint64_t before = test_context->kernels.insertions;
    for (int byte = 0; byte < 256; byte += 51) {
        stack_fill(byte);
        ok(ops_pointwise(test_context, e, inputs, 3, &out.t, 1));
    }
    assert_int_equal(test_context->kernels.insertions, before);
    ops_expression_destroy(e);
    box_free(&x);
    box_free(&out);
}

static void every_type(void **state)
{
    for (hal_type type = HAL_TYPE_I8; type < HAL_TYPE_COUNT; type++) {
        for (int64_t n = 1; n <= 1500; n = n * 3 + 1) {
            box b[4];
            for (int i = 0; i < 4; i++) {
                b[i] = box_make(type, 1, &n, NULL, 0, 6);
                box_truncate(&b[i]);
            }
            try_layouts(type, &b[0], &b[1], &b[2], &b[3]);
            for (int i = 0; i < 4; i++) {
                box_free(&b[i]);
            }
        }
    }
}

static void broadcast_and_strides(void **state)
{
    const int64_t shape[3] = {5, 7, 70}, row[1] = {70}, column[2] = {7, 1}, one[1] = {1};
    const int64_t plain[3] = {490, 70, 1}, turned[3] = {1, 350, 5}, back[3] = {-600, -80, -1},
                  gaps[3] = {2000, 250, 3};
    const int64_t *strides[4] = {plain, turned, back, gaps};
    for (int s = 0; s < 16; s++) {
        box x = box_make(HAL_TYPE_F32, 3, shape, strides[s % 4], -9, 9);
        box out = box_make(HAL_TYPE_F32, 3, shape, strides[s / 4], -9, 9);
        box y = box_make(HAL_TYPE_F32, 1, row, NULL, -9, 9);
        box z = box_make(HAL_TYPE_F32, 2, column, NULL, -9, 9);
        box c = box_make(HAL_TYPE_F32, 1, one, NULL, -9, 9);
        box *whole[4] = {&x, &y, &z, &c};
        for (int j = 0; j < 4; j++) {
            box_truncate(whole[j]);
        }
        try_layouts(HAL_TYPE_F32, &x, &y, &z, &out);
        try_layouts(HAL_TYPE_F32, &y, &c, &x, &out);
        try_layouts(HAL_TYPE_F32, &z, &y, &c, &out);
        boxes_free(&x, &y, &z, &c, &out);
    }
}

/* Lines of every length, also those of which several are a step, and the last one overlaps, and few
 * lines of which there are many. The output may be an input, of which no element may then be read
 * again. */
static void short_lines(void **state)
{
    enum { FIRST_APART = 8 }; /* the first shape whose outer dimensions are not one */
    static const int64_t shapes[][3] = {{1, 70, 3},   {2, 33, 5},   {1, 100, 16}, {3, 40, 17},
                                        {1, 131, 33}, {2, 9, 100},  {1, 3, 1500}, {1, 2, 20011},
                                        {200, 5, 68}, {131, 3, 2},  {70, 17, 2},  {300, 2, 19},
                                        {33, 13, 31}, {2, 3, 9001}, {65, 7, 130}, {70, 1, 473}};
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_BF16, HAL_TYPE_I64};
    for (size_t s = 0; s < 4 * (sizeof shapes / sizeof *shapes); s++) {
        const int64_t *n = shapes[s / 4], row[1] = {n[2]};
        const int64_t column[3] = {s / 4 < FIRST_APART ? n[0] : 1, n[1], 1};
        const hal_type type = types[s % 4];
        box x = box_make(type, 3, n, NULL, -9, 9), out = box_make(type, 3, n, NULL, -9, 9);
        box y = box_make(type, 1, row, NULL, -9, 9), z = box_make(type, 3, column, NULL, -9, 9);
        box *all[4] = {&x, &y, &z, &out};
        for (int i = 0; i < 4; i++) {
            box_truncate(all[i]);
        }
        try_layouts(type, &x, &y, &z, &out);
        try_layouts(type, &x, &z, &y, &out);
        try_layouts(type, &y, &z, &x, &x);
        boxes_free(&x, &y, &z, &out);
    }
}

/* A device may limit its groups to fewer work-items than the side of a transposed tile. */
static void groups_of_any_size(void **state)
{
    static const uint32_t limits[] = {1, 3, 10, 48, 100};
    static hal_device_info limited;
    const hal_device_info *whole = test_context->info;
    const int64_t shape[2] = {70, 70}, turned[2] = {1, 70};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        box b[4];
        limited = *whole;
        limited.max_group_items = limited.max_group_size[0] = limits[i];
        limited.preferred_group = limits[i];
        test_set_device(test_context, &limited);
        for (int k = 0; k < 4; k++) {
            b[k] = box_make(HAL_TYPE_F32, 2, shape, k == 0 ? turned : NULL, -9, 9);
            box_truncate(&b[k]);
        }
        try_layouts(HAL_TYPE_F32, &b[0], &b[1], &b[2], &b[3]);
        for (int k = 0; k < 4; k++) {
            box_free(&b[k]);
        }
    }
    test_set_device(test_context, whole);
}

/* Inputs that are contiguous along another axis than the output: tiles of every proportion, with
 * parts beyond the shape, for one input and for several. */
static void transposed_inputs(void **state)
{
    static const int64_t shapes[][3] = {{1, 70, 100}, {1, 129, 65}, {3, 33, 130}, {2, 3, 500},
                                        {2, 500, 3},  {5, 40, 17},  {70, 2, 70},  {3, 64, 136},
                                        {2, 72, 16},  {3, 136, 8},  {66, 37, 6},  {9, 33, 64},
                                        {8, 40, 12}};
    static const int orders[][3] = {{0, 2, 1}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_I8, HAL_TYPE_I64};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        const int64_t *n = shapes[s];
        for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
            int64_t turned[3], stride = 1;
            for (int i = 2; i >= 0; i--) {
                turned[orders[o][i]] = stride;
                stride *= n[orders[o][i]];
            }
            const hal_type type = types[(s + o) % 4];
            box x = box_make(type, 3, n, turned, -9, 9), y = box_make(type, 3, n, NULL, -9, 9);
            box z = box_make(type, 3, n, turned, -9, 9), out = box_make(type, 3, n, NULL, -9, 9);
            box turned_out = box_make(type, 3, n, turned, -9, 9);
            box *all[5] = {&x, &y, &z, &out, &turned_out};
            for (int i = 0; i < 5; i++) {
                all[i]->t.offset += s >= 7 ? 3 : 0; /* then vectors are aligned */
                box_truncate(all[i]);
            }
            try_layouts(type, &x, &y, &z, &out);
            try_layouts(type, &y, &x, &y, &out);
            try_layouts(type, &y, &x, &z, &turned_out);
            boxes_free(&x, &y, &z, &out, &turned_out);
        }
    }
}

/* Lines that vectors do not fit: a work-item computes elements of a line that are far apart. */
static void long_odd_lines(void **state)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_I64};
    const int64_t row[1] = {1501}, column[2] = {60, 1};
    for (int i = 0; i < 6; i++) {
        const int64_t shape[2] = {60, 1501}, gaps[2] = {i < 3 ? 1517 : 1510, 1};
        const hal_type type = types[i % 3];
        box x = box_make(type, 2, shape, gaps, -9, 9), y = box_make(type, 1, row, NULL, -9, 9);
        box z = box_make(type, 2, column, NULL, -9, 9), out = box_make(type, 2, shape, gaps, -9, 9);
        box_truncate(&x);
        box_truncate(&y);
        box_truncate(&z);
        try_layouts(type, &x, &y, &z, &out);
        boxes_free(&x, &y, &z, &out);
    }
}

/* Long arrays, whose work-items have several vectors on a GPU; whole and partial last ones. */
static void several_vectors(void **state)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_BF16, HAL_TYPE_F64,
                                     HAL_TYPE_I8};
    static const int64_t beyond[] = {0, 1, 8, 2051};
    for (size_t i = 0; i < 8; i++) { /* each type and each length */
        const int64_t n = (1 << 19) + beyond[i % 4];
        box x = box_make(types[i % 5], 1, &n, NULL, -9, 9);
        box y = box_make(types[i % 5], 1, &n, NULL, 0, 1);
        x.t.offset = y.t.offset = 16; /* a vector starts there */
        ok(ops_unary(test_context, OPS_NEG, &x.t, &y.t));
        double *want = box_want(&y);
        for (int64_t j = 0; j < n; j++) {
            want[y.t.offset + j] = -x.host[x.t.offset + j];
        }
        box_check(&y, want, 0, 0);
        boxes_free(&x, &y);
    }
}

/* Kernels of a GPU that need few registers ask for full compute units; others leave it open. */
static void full_groups(void **state)
{
    static const struct {
        uint32_t kind, inputs, size, groups;
        int64_t across; /* stride of the inputs along the rows of 4096 */
    } cases[] = {
        {HAL_DEVICE_DISCRETE, 1, 2, 6, 4096}, {HAL_DEVICE_DISCRETE, 4, 4, 6, 4096},
        {HAL_DEVICE_DISCRETE, 5, 4, 0, 4096}, {HAL_DEVICE_DISCRETE, 1, 8, 0, 4096},
        {HAL_DEVICE_DISCRETE, 1, 2, 0, 1},    {HAL_DEVICE_CPU, 1, 2, 0, 4096},
        {HAL_DEVICE_SOFTWARE, 1, 2, 0, 4096},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const hal_device_info *whole = test_context->info;
        hal_device_info info = *whole;
        info.kind = cases[i].kind;
        info.max_vector_bytes = 16;
        info.preferred_group = info.max_group_items = info.max_group_size[0] = 256;
        info.max_grid[0] = info.max_grid[1] = 65535;
        info.compute_units = 4;
        info.shared_bytes = 49152;
        uint32_t sizes[6];
        ops_space space = {.rank = 2, .view_count = cases[i].inputs + 1, .size = {4096, 4096}};
        for (uint32_t view = 0; view < space.view_count; view++) {
            const int is_output = view == cases[i].inputs;
            sizes[view] = cases[i].size;
            space.stride[view][0] = is_output ? 4096 : cases[i].across;
            space.stride[view][1] = is_output || cases[i].across > 1 ? 1 : 4096;
        }
        const ops_elementwise_use use = {.function = "full_groups",
                                         .widest = 16 / cases[i].size,
                                         .loaded = (1u << cases[i].inputs) - 1,
                                         .sizes = sizes};
        ops_elementwise_plan plan;
        ops_space_collapse(&space, cases[i].inputs);
        test_set_device(test_context, &info);
        ok(ops_elementwise_plan_init(test_context, &use, &space, &plan));
        test_set_device(test_context, whole);
        assert_int_equal(plan.full_groups, cases[i].groups);
    }
}

/* Short inner dimensions: flat kernels, which divide. */
static void odd_shapes(void **state)
{
    const int64_t shapes[][4] = {{3, 1, 5, 2},  {1, 1, 1, 1},   {2, 3, 4, 5},
                                 {9, 31, 2, 3}, {1, 129, 1, 7}, {2, 2, 2, 130}};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        const int64_t *n = shapes[s];
        const int64_t flat[4] = {1, n[1], 1, n[3]};
        const int64_t outer[4] = {n[0], 1, n[2], 1};
        box x = box_make(HAL_TYPE_I32, 4, n, NULL, -50, 50);
        box y = box_make(HAL_TYPE_I32, 4, flat, NULL, -50, 50);
        box z = box_make(HAL_TYPE_I32, 4, outer, NULL, -50, 50);
        const int64_t spread[4] = {n[3] * n[2] * n[1], n[3] * n[2], n[3], 1};
        box out = box_make(HAL_TYPE_I32, 4, n, s % 2 ? spread : NULL, -50, 50);
        try_layouts(HAL_TYPE_I32, &x, &y, &z, &out);
        boxes_free(&x, &y, &z, &out);
    }
}

/* The third output is between the elements of the others and joins their bindings. */
static void interleaved_outputs(void **state)
{
    hal_ir_builder *b;
    ops_expression *e;
    ok(hal_ir_builder_create_fragment("three", &b));
    const hal_ir_value x = hal_ir_input(b, 0, HAL_TYPE_F32);
    for (uint32_t i = 0; i < 3; i++) {
        hal_ir_output(b, i, hal_ir_add(b, x, hal_ir_f32(b, (float)i)));
    }
    ok(ops_expression_create(b, &e));
    const int64_t all[1] = {4096}, shape[1] = {2};
    const int64_t starts[3] = {0, 2304, 768}, strides[3] = {1536, 768, 1792};
    box memory = box_make(HAL_TYPE_F32, 1, all, NULL, 0, 1);
    box in = box_make(HAL_TYPE_F32, 1, shape, NULL, 5, 9);
    double *want = box_want(&memory);
    ops_tensor outputs[3];
    for (int i = 0; i < 3; i++) {
        outputs[i] = memory.t;
        outputs[i].offset += starts[i];
        outputs[i].shape[0] = 2;
        outputs[i].stride[0] = strides[i];
        for (int j = 0; j < 2; j++) {
            want[outputs[i].offset + j * strides[i]] =
                (double)((float)in.host[in.t.offset + j] + (float)i);
        }
    }
    ok(ops_pointwise(test_context, e, &in.t, 1, outputs, 3));
    box_expect(&memory, want, 0, 0);
    free(want);
    boxes_free(&memory, &in);
    ops_expression_destroy(e);
}

static void several_outputs(void **state)
{
    hal_ir_builder *b;
    ops_expression *e;
    ok(hal_ir_builder_create_fragment("both", &b));
    hal_ir_value x = hal_ir_input(b, 0, HAL_TYPE_F32), y = hal_ir_input(b, 1, HAL_TYPE_F32);
    hal_ir_output(b, 0, hal_ir_add(b, x, y));
    hal_ir_output(b, 1, hal_ir_lt(b, x, y));
    hal_ir_output(b, 2, hal_ir_cast(b, HAL_TYPE_I32, hal_ir_sub(b, x, y)));
    ok(ops_expression_create(b, &e));
    const int64_t shape[2] = {13, 100};
    box in[2], out[3];
    in[0] = box_make(HAL_TYPE_F16, 2, shape, NULL, -20, 20);
    in[1] = box_make(HAL_TYPE_F32, 2, shape, NULL, -20, 20);
    out[0] = box_make(HAL_TYPE_BF16, 2, shape, NULL, 0, 1);
    out[1] = box_make(HAL_TYPE_BOOL, 2, shape, NULL, 0, 1);
    out[2] = box_make(HAL_TYPE_I16, 2, shape, NULL, 0, 1);
    ops_tensor inputs[2] = {in[0].t, in[1].t}, outputs[3] = {out[0].t, out[1].t, out[2].t};
    ok(ops_pointwise(test_context, e, inputs, 2, outputs, 3));
    double *want[3] = {box_want(&out[0]), box_want(&out[1]), box_want(&out[2])};
    for (int64_t i = 0; i < 1300; i++) {
        float u = (float)box_at(&in[0], &out[0].t, i), v = (float)box_at(&in[1], &out[0].t, i);
        int64_t at = out[0].t.offset + i;
        want[0][at] = in_type(HAL_TYPE_BF16, (double)(u + v));
        want[1][at] = u < v;
        want[2][at] = trunc((double)(u - v));
    }
    for (int i = 0; i < 3; i++) {
        box_expect(&out[i], want[i], 0, 0);
        free(want[i]);
        box_free(&out[i]);
    }
    boxes_free(&in[0], &in[1]);
    ops_expression_destroy(e);
}

static void in_place(void **state)
{
    const int64_t shape[2] = {33, 47}, row[1] = {47}, turned[2] = {1, 40};
    for (int s = 0; s < 2; s++) {
        box x = box_make(HAL_TYPE_F32, 2, shape, s ? turned : NULL, -9, 9);
        box y = box_make(HAL_TYPE_F32, 1, row, NULL, -9, 9);
        double *want = box_want(&x);
        ok(ops_binary(test_context, OPS_ADD, &x.t, &y.t, &x.t));
        ok(ops_binary(test_context, OPS_MUL, &x.t, &x.t, &x.t));
        for (int64_t i = 0; i < 33 * 47; i++) {
            float sum = (float)box_at(&x, &x.t, i) + (float)box_at(&y, &x.t, i);
            want[place_of(&x.t, 2, shape, i)] = (double)(sum * sum);
        }
        box_check(&x, want, 0, 0);
        boxes_free(&x, &y);
    }
}

/* Neighbours in one buffer whose aligned ranges meet, and views that overlap. */
static void one_buffer(void **state)
{
    const int64_t shape[1] = {300};
    box x = box_make(HAL_TYPE_F32, 1, shape, NULL, -9, 9);
    ops_tensor parts[3];
    for (int i = 0; i < 3; i++) {
        ok(ops_tensor_slice(&x.t, 0, 101 * i, 97, 1, &parts[i]));
    }
    ok(ops_binary(test_context, OPS_SUB, &parts[0], &parts[2], &parts[1]));
    double *want = box_want(&x);
    for (int64_t i = 0; i < 97; i++) {
        want[x.t.offset + 101 + i] =
            (double)((float)x.host[x.t.offset + i] - (float)x.host[x.t.offset + 202 + i]);
    }
    box_check(&x, want, 0, 0);
    ok(ops_tensor_slice(&x.t, 0, 1, 97, 1, &parts[1]));
    invalid(ops_unary(test_context, OPS_NEG, &parts[0], &parts[1]),
            "y: expected x itself or other memory");
    box_free(&x);
}

/* Columns of one matrix: their ranges overlap, their elements do not. */
static void side_by_side(void **state)
{
    const int64_t shape[2] = {20, 90};
    box x = box_make(HAL_TYPE_F32, 2, shape, NULL, -9, 9);
    ops_tensor left, middle, right, rows;
    ok(ops_tensor_slice(&x.t, 1, 0, 30, 1, &left));
    ok(ops_tensor_slice(&x.t, 1, 30, 30, 1, &middle));
    ok(ops_tensor_slice(&x.t, 1, 60, 30, 1, &right));
    ok(ops_binary(test_context, OPS_ADD, &left, &right, &middle));
    double *want = box_want(&x);
    for (int64_t i = 0; i < 600; i++) {
        int64_t at = x.t.offset + i / 30 * 90 + i % 30;
        want[at + 30] = (double)((float)x.host[at] + (float)x.host[at + 60]);
    }
    box_check(&x, want, 0, 0);
    ok(ops_tensor_slice(&x.t, 1, 29, 30, 1, &middle));
    invalid(ops_binary(test_context, OPS_ADD, &left, &right, &middle), "z: expected x itself");
    ok(ops_tensor_slice(&x.t, 1, 31, 30, 1, &middle));
    invalid(ops_binary(test_context, OPS_ADD, &left, &right, &middle), "z: expected y itself");
    ok(ops_tensor_slice(&x.t, 0, 1, 10, 1, &rows));
    ok(ops_tensor_slice(&rows, 1, 0, 30, 1, &rows));
    ok(ops_tensor_slice(&left, 0, 0, 10, 1, &left));
    invalid(ops_unary(test_context, OPS_NEG, &left, &rows), "y: expected x itself");
    box_free(&x);
}

static void zero_sizes(void **state)
{
    const int64_t shape[2] = {0, 5}, row[1] = {5};
    box x = box_make(HAL_TYPE_F32, 2, shape, NULL, -9, 9);
    box y = box_make(HAL_TYPE_F32, 1, row, NULL, -9, 9);
    box out = box_make(HAL_TYPE_F32, 2, shape, NULL, -9, 9);
    ok(ops_binary(test_context, OPS_ADD, &x.t, &y.t, &out.t));
    ok(ops_fill(test_context, 3, &out.t));
    ok(ops_cast(test_context, &x.t, &out.t));
    box_expect(&out, out.host, 0, 0);
    boxes_free(&x, &y, &out);
}

static void where_and_fill(void **state)
{
    const int64_t shape[2] = {21, 35}, column[2] = {21, 1}, gaps[2] = {90, 2};
    box c = box_make(HAL_TYPE_BOOL, 2, shape, NULL, 0, 1);
    for (int64_t i = 0; i < c.count; i++) {
        c.host[i] = next_random() & 1;
    }
    box_upload(&c);
    box x = box_make(HAL_TYPE_I64, 2, column, NULL, -1e6, 1e6);
    box y = box_make(HAL_TYPE_I64, 2, shape, NULL, -1e6, 1e6);
    box out = box_make(HAL_TYPE_I64, 2, shape, gaps, -1e6, 1e6);
    ok(ops_where(test_context, &c.t, &x.t, &y.t, &out.t));
    double *want = box_want(&out);
    for (int64_t i = 0; i < 21 * 35; i++) {
        want[place_of(&out.t, 2, shape, i)] =
            box_at(&c, &out.t, i) != 0 ? box_at(&x, &out.t, i) : box_at(&y, &out.t, i);
    }
    box_check(&out, want, 0, 0);
    boxes_free(&c, &x, &y, &out);
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        const double values[7] = {0, 1, 300.7, -2.25, 2.5, 3.5, -1.75};
        for (int v = 0; v < 7; v++) {
            for (int s = 0; s < 2; s++) {
                box f = box_make(type, 2, shape, s ? gaps : NULL, 0, 9);
                feclearexcept(FE_DIVBYZERO);
                ok(ops_fill(test_context, values[v], &f.t));
                assert_int_equal(fetestexcept(FE_DIVBYZERO), 0);
                double value = values[v], *filled = box_want(&f);
                if (hal_type_is_integer(type)) {
                    int bits = 8 * (int)hal_type_size(type) - hal_type_is_signed(type);
                    double high = ldexp(1.0, bits) - 1, low = hal_type_is_signed(type) ? -high : 0;
                    value = rint(value > high ? high : value < low ? low : value);
                }
                for (int64_t i = 0; i < 21 * 35; i++) {
                    filled[place_of(&f.t, 2, shape, i)] = in_type(type, value);
                }
                box_check(&f, filled, 0, 0);
                box_free(&f);
            }
        }
    }
}

/* The one rounding of a 64-bit integer, or of the F64 with these bits, to a narrow float. */
static double rounded_once(hal_type from, uint64_t bits, hal_type to)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    if (from != HAL_TYPE_F64) {
        /* A double has room for what decides, once the bits below are gathered in one. */
        int is_negative = hal_type_is_signed(from) && (int64_t)bits < 0;
        uint64_t size = is_negative ? 0 - bits : bits;
        size = size >> 53 ? size >> 12 << 12 | (uint64_t)((size & 0xfff) != 0) << 12 : size;
        value = is_negative ? -(double)size : (double)size;
    }
    return in_type(to, value);
}

/* Halfway between two numbers of a narrow float, and a little off, less than F32 can tell. */
static void casts_round_once(void **state)
{
    const hal_type from[] = {HAL_TYPE_F64, HAL_TYPE_I32, HAL_TYPE_U32, HAL_TYPE_I64, HAL_TYPE_U64};
    enum { COUNT = 4000 };
    const int64_t shape[1] = {COUNT};
    for (int f = 0; f < 5 * HAL_TYPE_COUNT; f++) {
        const hal_type x_type = from[f % 5], y_type = (hal_type)(f / 5);
        const hal_float_format format = hal_type_float_format(y_type);
        if (!hal_type_is_narrow_float(y_type)) {
            continue;
        }
        const uint32_t size = hal_type_size(x_type);
        char *elements = malloc((size_t)COUNT * size);
        uint64_t numbers[COUNT];
        for (int i = 0; i < COUNT; i++) {
            const int half = format.digits; /* bits below the first one */
            const int last = x_type == HAL_TYPE_F64 ? 52 : next_random() % (8 * size);
            uint64_t significand = (uint64_t)(next_random() & 0xfff) << (52 - half);
            significand = (significand & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << (52 - half);
            significand |= i % 3 == 2 ? 0 : UINT64_C(1) << (next_random() % (i % 5 ? 24 : 52));
            significand -= i % 7 == 0;
            const uint64_t sign = next_random() & 1;
            if (x_type == HAL_TYPE_F64) {
                const int low = format.least - 2, high = format.highest + 2;
                const int exponent = low + (int)(next_random() % (uint32_t)(high - low));
                numbers[i] = sign << 63 | (uint64_t)(exponent + 1023) << 52 | significand;
            } else {
                significand |= UINT64_C(1) << 52;
                numbers[i] = last > 52 ? significand << (last - 52) | (i & 1)
                                       : significand >> (52 - last) | (i % 3 == 1);
                numbers[i] = sign && hal_type_is_signed(x_type) ? 0 - numbers[i] : numbers[i];
                numbers[i] = size == 8                    ? numbers[i]
                             : hal_type_is_signed(x_type) ? (uint64_t)(int32_t)numbers[i]
                                                          : (uint32_t)numbers[i];
            }
            memcpy(elements + (size_t)i * size, &numbers[i], size);
        }
        ops_tensor x;
        ok(ops_tensor_from_host(test_context, x_type, 1, shape, elements, &x));
        box y = box_make(y_type, 1, shape, NULL, 0, 1);
        ok(ops_cast(test_context, &x, &y.t));
        double *want = box_want(&y);
        for (int i = 0; i < COUNT; i++) {
            want[y.t.offset + i] = rounded_once(x_type, numbers[i], y_type);
        }
        box_check(&y, want, 0, 0);
        free(elements);
        ops_tensor_release(&x);
        box_free(&y);
    }
}

static void casts(void **state)
{
    const int64_t shape[1] = {40};
    const double numbers[] = {0,
                              1,
                              -1,
                              2.5,
                              -2.5,
                              127,
                              128,
                              -128,
                              -129,
                              255,
                              256,
                              1e6,
                              -1e6,
                              3e9,
                              1e20,
                              -1e20,
                              (double)INFINITY,
                              -(double)INFINITY,
                              (double)NAN};
    const int count = sizeof numbers / sizeof numbers[0];
    for (hal_type to = HAL_TYPE_BOOL; to < HAL_TYPE_COUNT; to++) {
        box x = box_make(HAL_TYPE_F32, 1, shape, NULL, -100, 100);
        for (int i = 0; i < count; i++) {
            x.host[x.t.offset + i] = (double)(float)numbers[i];
        }
        box_upload(&x);
        box y = box_make(to, 1, shape, NULL, 0, 1);
        ok(ops_cast(test_context, &x.t, &y.t));
        double *want = box_want(&y);
        for (int64_t i = 0; i < 40; i++) {
            double v = x.host[x.t.offset + i];
            if (hal_type_is_integer(to)) {
                int bits = 8 * (int)hal_type_size(to), is_signed = hal_type_is_signed(to);
                double high = ldexp(1.0, bits - is_signed), low = is_signed ? -high : 0;
                v = isnan(v) ? 0 : trunc(v);
                v = v < low ? low : v;
                /* The largest of 64 bits reads back as the next power of two. */
                v = v >= high ? (bits == 64 ? high : high - 1) : v;
            } else if (to == HAL_TYPE_BOOL) {
                v = v != 0;
            }
            want[y.t.offset + i] = in_type(to, v);
        }
        box_check(&y, want, 0, 0);
        boxes_free(&x, &y);
    }
    /* From integers, by wrapping. */
    const double wholes[] = {0, 1, -1, 127, 128, 255, 256, 70000, -70000, 2147483647.0};
    box x = box_make(HAL_TYPE_I32, 1, shape, NULL, -100, 100);
    for (int i = 0; i < 10; i++) {
        x.host[x.t.offset + i] = wholes[i];
    }
    box_upload(&x);
    box y = box_make(HAL_TYPE_U8, 1, shape, NULL, 0, 1);
    ok(ops_cast(test_context, &x.t, &y.t));
    double *want = box_want(&y);
    for (int64_t i = 0; i < 40; i++) {
        want[y.t.offset + i] = (uint8_t)(int32_t)x.host[x.t.offset + i];
    }
    box_check(&y, want, 0, 0);
    boxes_free(&x, &y);
}

static void bad_arguments(void **state)
{
    const int64_t shape[2] = {4, 6}, other[2] = {4, 5};
    box x = box_make(HAL_TYPE_F32, 2, shape, NULL, 0, 1);
    box y = box_make(HAL_TYPE_F32, 2, other, NULL, 0, 1);
    box i = box_make(HAL_TYPE_I32, 2, shape, NULL, 0, 9);
    box out = box_make(HAL_TYPE_F32, 2, shape, NULL, 0, 1);
    ops_expression *e = product_sum(HAL_TYPE_F32);
    ops_tensor three[3] = {x.t, x.t, x.t};
    invalid(ops_pointwise(NULL, e, three, 3, &out.t, 1), "context");
    invalid(ops_pointwise(test_context, NULL, three, 3, &out.t, 1), "expression");
    invalid(ops_pointwise(test_context, e, NULL, 3, &out.t, 1), "inputs");
    invalid(ops_pointwise(test_context, e, three, 3, NULL, 1), "outputs");
    invalid(ops_pointwise(test_context, e, three, 2, &out.t, 1),
            "expected 3 and 1, as the expression has, got 2 and 1");
    three[1] = y.t;
    invalid(ops_pointwise(test_context, e, three, 3, &out.t, 1), "to f32[4, 6], got f32[4, 5]");
    three[1] = i.t;
    invalid(ops_pointwise(test_context, e, three, 3, &out.t, 1),
            "inputs[1]: expected f32, as input 1 of the expression, got i32[4, 6]");
    three[1] = x.t;
    invalid(ops_pointwise(test_context, e, three, 3, &i.t, 1),
            "outputs[0]: expected f32, as the result is, got i32[4, 6]");
    invalid(ops_unary(test_context, OPS_EXP, &i.t, &i.t), "exp does not take i32, only f32 f64");
    invalid(ops_unary(test_context, (ops_unary_function)999, &x.t, &out.t), "got 999");
    invalid(ops_unary(test_context, OPS_EXP, NULL, &out.t), "x: expected");
    invalid(ops_binary(test_context, OPS_ADD, &x.t, &i.t, &out.t), "y: expected f32");
    invalid(ops_binary(test_context, OPS_SHL, &x.t, &x.t, &out.t),
            "shl does not take f32, only i32 u32 i64 u64");
    ops_tensor flat = out.t;
    flat.stride[0] = 0;
    invalid(ops_unary(test_context, OPS_EXP, &x.t, &flat), "y: expected distinct addresses");
    ops_tensor beyond = out.t;
    beyond.offset += 1000;
    invalid(ops_unary(test_context, OPS_EXP, &x.t, &beyond), "expected elements within the buffer");
    beyond = x.t;
    beyond.offset = -1;
    invalid(ops_unary(test_context, OPS_EXP, &beyond, &out.t), "got f32[4, 6] at offset -1");
    beyond = x.t;
    beyond.stride[0] = INT64_MAX;
    invalid(ops_unary(test_context, OPS_EXP, &beyond, &out.t),
            "expected elements within the buffer");
    beyond = x.t;
    beyond.type = 77;
    invalid(ops_unary(test_context, OPS_EXP, &beyond, &out.t), "got 77");
    beyond = x.t;
    beyond.buffer = NULL;
    invalid(ops_unary(test_context, OPS_EXP, &beyond, &out.t),
            "x: expected a tensor with a buffer");
    invalid(ops_where(test_context, &x.t, &x.t, &x.t, &out.t), "condition: expected bool");
    box_expect(&out, out.host, 0, 0);
    ops_expression_destroy(e);
    boxes_free(&x, &y, &i, &out);
}

/* Sizes that overflow when multiplied, also for the undefined-behaviour sanitizer. */
static void uncountable_tensors(void **state)
{
    const int64_t far = INT64_C(1) << 40, shape[1] = {4};
    const int32_t axes[2] = {1, 0};
    box x = box_make(HAL_TYPE_F32, 1, shape, NULL, -1, 1);
    ops_tensor view, wide = {x.t.buffer, HAL_TYPE_F32, 3, 0, {far, far, 1}, {1, 1, 1}};
    assert_int_equal(ops_tensor_get_element_count(&wide), INT64_MAX);
    invalid(ops_copy(test_context, &wide, &wide), "expected elements within the buffer");
    invalid(ops_tensor_slice(&wide, 0, 1, 1, 1, &view), "63 bits");
    invalid(ops_tensor_permute(&wide, axes, &view), "63 bits");
    invalid(ops_tensor_reshape(&wide, 1, shape, &view), "63 bits");
    wide.shape[2] = 0; /* none at all, except for strides the other axes count */
    assert_int_equal(ops_tensor_get_element_count(&wide), 0);
    invalid(ops_copy(test_context, &wide, &wide), "expected elements within the buffer");
    wide.rank = 2;
    wide.stride[0] = far;
    assert_false(ops_tensor_is_contiguous(&wide));
    ops_tensor steep = {x.t.buffer, HAL_TYPE_F32, 1, 0, {8}, {INT64_MAX / 2}};
    invalid(ops_tensor_slice(&steep, 0, 4, 1, 1, &view), "63 bits");
    invalid(ops_tensor_transpose(&steep, 0, 0, &view), "63 bits");
    steep.shape[0] = -1;
    invalid(ops_tensor_broadcast(&steep, 1, shape, &view), "at least 0");
    box_free(&x);
}

static void bad_expressions(void **state)
{
    hal_ir_builder *b;
    ops_expression *e = NULL;
    invalid(ops_expression_create(NULL, &e), "builder: expected");
    ok(hal_ir_builder_create("kernel", &b));
    invalid(ops_expression_create(b, &e), "got that of a kernel");
    ok(hal_ir_builder_create_fragment("wide", &b));
    hal_ir_value sum = hal_ir_input(b, 0, HAL_TYPE_F32);
    for (uint32_t i = 1; i < 17; i++) {
        sum = hal_ir_add(b, sum, hal_ir_input(b, i, HAL_TYPE_F32));
    }
    hal_ir_output(b, 0, sum);
    refused(ops_expression_create(b, &e), HAL_ERROR_UNSUPPORTED, "got 17 and 1");
    ok(hal_ir_builder_create_fragment("wrong", &b));
    hal_ir_output(b, 0, ops_unary_value(b, OPS_SIN, hal_ir_input(b, 0, HAL_TYPE_I32)));
    assert_int_equal(ops_expression_create(b, &e), HAL_ERROR_INVALID_IR);
    assert_null(e);
    ops_expression_destroy(NULL);
    assert_null(ops_expression_get_fragment(NULL));
}

/* Sixteen inputs of many strides do not fit the scalars: the layout becomes constants. */
static void many_strided_inputs(void **state)
{
    if (hal_device_get_info(test_device)->max_bindings < 17) {
        skip(); /* a layer has some of them */
    }
    hal_ir_builder *b;
    ops_expression *e;
    ok(hal_ir_builder_create_fragment("sixteen", &b));
    hal_ir_value sum = hal_ir_input(b, 0, HAL_TYPE_I32);
    for (uint32_t i = 1; i < 16; i++) {
        hal_ir_value x = hal_ir_input(b, i, HAL_TYPE_I32);
        sum = hal_ir_add(b, hal_ir_mul(b, sum, hal_ir_i32(b, 3)), x);
    }
    hal_ir_output(b, 0, sum);
    ok(ops_expression_create(b, &e));
    const int64_t shape[6] = {2, 3, 2, 3, 2, 5};
    int64_t strides[16][6];
    box in[16], out = box_make(HAL_TYPE_I32, 6, shape, NULL, 0, 1);
    ops_tensor inputs[16];
    for (int i = 0; i < 16; i++) {
        int64_t stride = 1;
        for (int d = 0; d < 6; d++) {
            int at = (d * (i % 2 ? 5 : 1) + i) % 6;
            strides[i][at] = stride;
            stride *= shape[at] + (i & 1);
        }
        in[i] = box_make(HAL_TYPE_I32, 6, shape, strides[i], -9, 9);
        inputs[i] = in[i].t;
    }
    ok(ops_pointwise(test_context, e, inputs, 16, &out.t, 1));
    double *want = box_want(&out);
    for (int64_t i = 0; i < ops_tensor_get_element_count(&out.t); i++) {
        double value = box_at(&in[0], &out.t, i);
        for (int j = 1; j < 16; j++) {
            value = value * 3 + box_at(&in[j], &out.t, i);
        }
        want[out.t.offset + i] = value;
    }
    box_check(&out, want, 0, 0);
    for (int i = 0; i < 16; i++) {
        box_free(&in[i]);
    }
    box_free(&out);
    ops_expression_destroy(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_calls_share_a_kernel),
        cmocka_unit_test(every_type),
        cmocka_unit_test(broadcast_and_strides),
        cmocka_unit_test(short_lines),
        cmocka_unit_test(groups_of_any_size),
        cmocka_unit_test(transposed_inputs),
        cmocka_unit_test(long_odd_lines),
        cmocka_unit_test(several_vectors),
        cmocka_unit_test(full_groups),
        cmocka_unit_test(odd_shapes),
        cmocka_unit_test(several_outputs),
        cmocka_unit_test(interleaved_outputs),
        cmocka_unit_test(in_place),
        cmocka_unit_test(one_buffer),
        cmocka_unit_test(side_by_side),
        cmocka_unit_test(zero_sizes),
        cmocka_unit_test(where_and_fill),
        cmocka_unit_test(casts),
        cmocka_unit_test(casts_round_once),
        cmocka_unit_test(bad_arguments),
        cmocka_unit_test(uncountable_tensors),
        cmocka_unit_test(bad_expressions),
        cmocka_unit_test(many_strided_inputs),
    };
    return RUN_ON_ALL(tests);
}
