/* Matrix products through both doors against sums in double: shapes around the tiles' edges, all
 * layouts, types, batches, alpha, beta, epilogues, operands that must be copied, bad arguments. */
#include "ops_fixture.h"

#include <gemm_kernel.h>

/* One product; strides as the boxes have them. */
typedef struct product {
    int64_t batch, m, n, k;
    box a, b, c;
    ops_gemm_options options;
} product;

enum { PLAIN, TURNED, PADDED, EVERY_OTHER, BACKWARDS, LAYOUTS };

/* Strides of a batch of rows x columns in one of the layouts. */
static void lay_out(int layout, int64_t rows, int64_t columns, int64_t strides[3])
{
    const int64_t all[LAYOUTS][3] = {{rows * columns, columns, 1},
                                     {rows * columns, 1, rows},
                                     {rows * (columns + 3) + 8, columns + 3, 1},
                                     {rows * columns * 4, columns * 4, 2},
                                     {-(rows * columns), -columns, 1}};
    memcpy(strides, all[layout], 3 * sizeof(int64_t));
}

static box make_matrix(hal_type type, int64_t batch, int64_t rows, int64_t columns, int layout)
{
    int64_t strides[3], shape[3] = {batch, rows, columns};
    lay_out(layout, rows, columns, strides);
    return batch > 1 ? box_make(type, 3, shape, strides, -1, 1)
                     : box_make(type, 2, shape + 1, strides + 1, -1, 1);
}

static product make(hal_type type, hal_type type_c, int64_t batch, int64_t m, int64_t n, int64_t k,
                    int layout_a, int layout_b, int layout_c)
{
    product p = {.batch = batch, .m = m, .n = n, .k = k, .options = {.alpha = 1}};
    p.a = make_matrix(type, batch, m, k, layout_a);
    p.b = make_matrix(type, batch, k, n, layout_b);
    p.c = make_matrix(type_c, batch, m, n, layout_c);
    return p;
}

/* Boxes begin at odd places; so moved they begin where vectors can. */
static void align(product *p)
{
    p->a.t.offset += 3;
    p->b.t.offset += 3;
    p->c.t.offset += 3;
}

static void release(product *p)
{
    box_free(&p->a);
    box_free(&p->b);
    box_free(&p->c);
}

static double element(const box *b, int64_t batch, int64_t row, int64_t column)
{
    uint32_t rank = b->t.rank;
    int64_t at = b->t.offset + row * b->t.stride[rank - 2] + column * b->t.stride[rank - 1];
    int64_t batches = rank == 3 ? b->t.shape[0] : 1;
    return b->host[at + (batches > 1 ? batch * b->t.stride[0] : 0)];
}

/* What comes after alpha A B + beta C, on the host; null for nothing. */
typedef double (*epilogue)(double value, int64_t row, int64_t column, int64_t batch,
                           const box *inputs);

/* Runs the product and compares every element of C's buffer. Whole numbers must be exact; others
 * keep the bound of ops_gemm. */
static void try_product(product *p, int exact, epilogue after, const box *inputs)
{
    hal_type type = p->a.t.type;
    ok(ops_gemm(test_context, &p->options, &p->a.t, &p->b.t, &p->c.t));
    double *want = box_want(&p->c), worst = 0;
    double unit = type == HAL_TYPE_F64 ? 0x1p-53 : 0x1p-24;
    double gamma = (double)(p->k + 3) * unit;
    const int64_t shape[3] = {p->batch, p->m, p->n};
    uint32_t rank = p->c.t.rank;
    for (int64_t i = 0; i < p->batch * p->m * p->n; i++) {
        int64_t batch = i / (p->m * p->n), row = i / p->n % p->m, column = i % p->n;
        double sum = 0, size = 0;
        for (int64_t k = 0; k < p->k; k++) {
            double term = element(&p->a, batch, row, k) * element(&p->b, batch, k, column);
            sum += term;
            size += fabs(term);
        }
        int64_t place = place_of(&p->c.t, rank, shape + 3 - rank, i);
        sum *= p->options.alpha;
        size *= fabs(p->options.alpha);
        if (p->options.beta != 0) {
            sum += p->options.beta * p->c.host[place];
            size += fabs(p->options.beta * p->c.host[place]);
        }
        want[place] = after ? after(sum, row, column, batch, inputs) : sum;
        if (exact) {
            want[place] = in_type(p->c.t.type, want[place]);
        }
        worst = size > worst ? size : worst;
    }
    box_expect(&p->c, want, exact ? 0 : 1, exact ? 0 : 4 * gamma * worst);
    free(want);
}

static void truncate_to_small(product *p)
{
    box *all[3] = {&p->a, &p->b, &p->c};
    for (int i = 0; i < 3; i++) {
        for (int64_t j = 0; j < all[i]->count; j++) {
            all[i]->host[j] = (double)(next_random() % 7) - 3;
        }
        box_upload(all[i]);
    }
}

static void try_shape(int64_t batch, int64_t m, int64_t n, int64_t k, ops_gemm_door door)
{
    product p = make(HAL_TYPE_F32, HAL_TYPE_F32, batch, m, n, k, PLAIN, PLAIN, PLAIN);
    truncate_to_small(&p);
    p.options.door = door;
    try_product(&p, 1, NULL, NULL);
    release(&p);
}

static void shapes(void **state)
{
    (void)state;
    const int64_t sizes[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 65, 100, 257};
    const int count = sizeof sizes / sizeof sizes[0];
    for (int i = 0; i < 50; i++) {
        int64_t m = sizes[next_random() % count], n = sizes[next_random() % count],
                k = sizes[next_random() % count];
        try_shape(1, m, n, k, OPS_GEMM_PORTABLE);
        try_shape(1, m, n, k, OPS_GEMM_ANY);
    }
    try_shape(5, 33, 17, 9, OPS_GEMM_PORTABLE);
    try_shape(5, 33, 17, 9, OPS_GEMM_ANY);
    try_shape(1, 1, 300, 400, OPS_GEMM_PORTABLE);
    try_shape(1, 300, 1, 400, OPS_GEMM_PORTABLE);
    try_shape(1, 400, 6, 64, OPS_GEMM_PORTABLE);
}

static void layouts(void **state)
{
    (void)state;
    for (int i = 0; i < LAYOUTS * LAYOUTS * LAYOUTS; i++) {
        for (int door = 0; door < 2; door++) {
            for (int64_t batch = 1; batch < 4; batch += 2) {
                product p = make(HAL_TYPE_F32, HAL_TYPE_F32, batch, 37, 21, 18, i % LAYOUTS,
                                 i / LAYOUTS % LAYOUTS, i / (LAYOUTS * LAYOUTS));
                truncate_to_small(&p);
                p.options.door = door ? OPS_GEMM_PORTABLE : OPS_GEMM_ANY;
                p.options.alpha = 2;
                p.options.beta = i % 2 ? -3 : 0;
                try_product(&p, 1, NULL, NULL);
                release(&p);
            }
        }
    }
}

/* On one compute unit the tile that wastes least is taken: every row of the table of tiles, with
 * asynchronous copies and without, in the middle and at the edges of the matrices. The smallest
 * tile is for devices that have no shared memory for the next one. */
static void every_tile(void **state)
{
    (void)state;
    const int64_t shapes[][3] = {{256, 512, 24}, {130, 270, 37}, {64, 128, 96}, {60, 125, 70},
                                 {128, 128, 16}, {120, 121, 9},  {64, 64, 32},  {61, 50, 5},
                                 {32, 32, 40},   {29, 18, 20},   {32, 48, 40},  {29, 18, 33}};
    const hal_device_info *kept = test_context->info;
    hal_device_info one = *kept;
    test_context->info = &one;
    one.kind = HAL_DEVICE_DISCRETE;
    one.compute_units = 1;
    for (int i = 0; i < 12 * 2 * 4; i++) {
        const int64_t *n = shapes[i / 8];
        one.abilities = i & 1 ? kept->abilities : kept->abilities & ~HAL_ABILITY_ASYNC_COPY;
        one.shared_bytes = i / 8 < 10 ? kept->shared_bytes : 8 << 10;
        product p = make(HAL_TYPE_F32, HAL_TYPE_F32, i % 5 ? 1 : 2, n[0], n[1], n[2],
                         i & 2 ? PLAIN : TURNED, i & 4 ? PLAIN : TURNED, PLAIN);
        truncate_to_small(&p);
        p.options.door = OPS_GEMM_PORTABLE;
        p.options.alpha = i % 3 == 1 ? 1 : 2;
        p.options.beta = i % 3 ? 0 : -1;
        try_product(&p, 1, NULL, NULL);
        release(&p);
    }
    test_context->info = kept;
}

/* Work-items that follow each other down the rows lie in the second dimension of the group. */
static void groups_keep_to_each_dimension(void **state)
{
    (void)state;
    hal_device_info info = *test_context->info;
    info.item_vector_bytes = 64;
    for (uint32_t most = 1; most <= 64; most *= 4) {
        ops_gemm_tiles tiles;
        info.max_group_size[1] = most;
        ops_gemm_choose_tiles(&info, 4096, 4096, 1, 4, 0, &tiles);
        assert_in_range(tiles.block_m / tiles.thread_m, most < 16 ? most : 16, most);
    }
}

/* Shapes at which operands are exchanged or turned first. */
static void large_layouts(void **state)
{
    (void)state;
    const int64_t shapes[][3] = {{70, 50, 30}, {100, 5, 40}, {64, 130, 9}, {5, 100, 40}};
    for (int i = 0; i < 4 * 9 * 2; i++) {
        const int64_t *n = shapes[i / 18];
        product p = make(HAL_TYPE_F32, HAL_TYPE_F32, i % 2 ? 2 : 1, n[0], n[1], n[2], i / 2 % 3,
                         i / 6 % 3, i % 3);
        truncate_to_small(&p);
        p.options.door = OPS_GEMM_PORTABLE;
        try_product(&p, 1, NULL, NULL);
        release(&p);
    }
}

static void types(void **state)
{
    (void)state;
    const hal_type pairs[][2] = {{HAL_TYPE_F16, HAL_TYPE_F16},   {HAL_TYPE_F16, HAL_TYPE_F32},
                                 {HAL_TYPE_BF16, HAL_TYPE_BF16}, {HAL_TYPE_BF16, HAL_TYPE_F32},
                                 {HAL_TYPE_F32, HAL_TYPE_F32},   {HAL_TYPE_F64, HAL_TYPE_F64},
                                 {HAL_TYPE_F64, HAL_TYPE_F32}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        for (int layout = 0; layout < 4; layout++) {
            for (int door = 0; door < 2; door++) {
                product p =
                    make(pairs[i][0], pairs[i][1], 1, 45, 70, 131, layout & 1, layout >> 1, PLAIN);
                p.options.door = door ? OPS_GEMM_PORTABLE : OPS_GEMM_ANY;
                p.options.alpha = 0.75;
                p.options.beta = layout % 2 ? 0.5 : 0;
                try_product(&p, 0, NULL, NULL);
                release(&p);
            }
        }
    }
}

/* C is not read when beta is 0, and nothing around the matrices is used. */
static void nan_around(void **state)
{
    (void)state;
    for (int door = 0; door < 2; door++) {
        for (int i = 0; i < 9; i++) {
            product p = make(HAL_TYPE_F32, HAL_TYPE_F32, 1, 19, 35, 13, i % 3, i / 3, PADDED);
            truncate_to_small(&p);
            box *all[3] = {&p.a, &p.b, &p.c};
            for (int j = 0; j < 3; j++) {
                char *inside = calloc((size_t)all[j]->count, 1);
                for (int64_t l = 0; l < ops_tensor_elements(&all[j]->t); l++) {
                    inside[place_of(&all[j]->t, 2, all[j]->t.shape, l)] = 1;
                }
                for (int64_t l = 0; l < all[j]->count; l++) {
                    if (j == 2 || !inside[l]) {
                        all[j]->host[l] = (double)NAN;
                    }
                }
                free(inside);
                box_upload(all[j]);
            }
            p.options.door = door ? OPS_GEMM_PORTABLE : OPS_GEMM_ANY;
            try_product(&p, 1, NULL, NULL);
            release(&p);
        }
    }
}

/* max(value + bias[column], 0) + row - 2 batch + residual */
static double host_epilogue(double value, int64_t row, int64_t column, int64_t batch,
                            const box *inputs)
{
    double sum = value + inputs[0].host[inputs[0].t.offset + column];
    const box *r = &inputs[1];
    return (sum > 0 ? sum : 0) + (double)row - 2 * (double)batch + element(r, batch, row, column);
}

static ops_expression *make_epilogue(void)
{
    hal_ir_builder *b;
    ops_expression *e;
    ok(hal_ir_builder_create_fragment("bias_relu", &b));
    hal_ir_value value = hal_ir_input(b, 0, HAL_TYPE_F32), row = hal_ir_input(b, 1, HAL_TYPE_U32);
    hal_ir_input(b, 2, HAL_TYPE_U32);
    hal_ir_value batch = hal_ir_input(b, 3, HAL_TYPE_U32);
    hal_ir_value bias = hal_ir_input(b, 4, HAL_TYPE_F32), r = hal_ir_input(b, 5, HAL_TYPE_F32);
    value = ops_unary_value(b, OPS_RELU, hal_ir_add(b, value, bias));
    value = hal_ir_add(b, value, hal_ir_cast(b, HAL_TYPE_F32, row));
    batch = hal_ir_mul(b, hal_ir_cast(b, HAL_TYPE_F32, batch), hal_ir_f32(b, 2));
    hal_ir_output(b, 0, hal_ir_add(b, hal_ir_sub(b, value, batch), r));
    ok(ops_expression_create(b, &e));
    return e;
}

static void epilogues(void **state)
{
    (void)state;
    ops_expression *e = make_epilogue();
    for (int i = 0; i < 24; i++) {
        product p = make(HAL_TYPE_F32, HAL_TYPE_F32, i % 2 ? 3 : 1, 29, 43, 17, PLAIN, i / 2 % 2,
                         i / 4 % 3);
        truncate_to_small(&p);
        const int64_t columns[1] = {43};
        box inputs[2] = {box_make(HAL_TYPE_F32, 1, columns, NULL, -9, 9),
                         make_matrix(HAL_TYPE_F32, p.batch, 29, 43, i % 3)};
        box_truncate(&inputs[0]);
        for (int64_t j = 0; j < inputs[1].count; j++) {
            inputs[1].host[j] = (double)(next_random() % 9) - 4;
        }
        box_upload(&inputs[1]);
        ops_tensor tensors[2] = {inputs[0].t, inputs[1].t};
        p.options.door = i / 12 ? OPS_GEMM_PORTABLE : OPS_GEMM_ANY;
        p.options.epilogue = e;
        p.options.inputs = tensors;
        p.options.input_count = 2;
        p.options.beta = 1;
        try_product(&p, 1, host_epilogue, inputs);
        box_free(&inputs[0]);
        box_free(&inputs[1]);
        release(&p);
    }
    ops_expression_destroy(e);
}

/* Products in slices of k, as a device with units of its own takes them: few rows, few columns, few
 * elements for each unit; whole blocks and ragged ones, all layouts, one turn of k and several. */
static void slices(void **state)
{
    (void)state;
    const int64_t shapes[][3] = {{1, 512, 512}, {1, 64, 64},  {1, 16, 16},   {1, 37, 1500},
                                 {512, 1, 200}, {3, 70, 100}, {7, 5, 3},     {16, 40, 129},
                                 {64, 64, 64},  {64, 96, 80}, {13, 200, 1},  {1, 1, 2000},
                                 {90, 11, 30},  {64, 16, 16}, {33, 61, 130}, {2, 3, 0}};
    const uint32_t units[3] = {1, 12, 132};
    const hal_device_info *kept = test_context->info;
    hal_device_info faked = *kept;
    test_context->info = &faked;
    faked.kind = HAL_DEVICE_DISCRETE;
    for (int i = 0; i < 16 * 9 * 3; i++) {
        const int64_t *n = shapes[i / 27];
        faked.compute_units = units[i % 3];
        faked.max_group_items = i % 2 ? kept->max_group_items : 64;
        faked.shared_bytes = i % 5 ? kept->shared_bytes : 4 << 10;
        faked.max_grid[0] = i % 11 ? kept->max_grid[0] : 40; /* slices of 512 columns need more */
        product p = make(HAL_TYPE_F32, HAL_TYPE_F32, i % 4 ? 1 : 3, n[0], n[1], n[2], i / 3 % 3,
                         i / 9 % 3, i % 7 == 0);
        if (i % 8 > 2) {
            align(&p);
        }
        truncate_to_small(&p);
        p.options.door = OPS_GEMM_PORTABLE;
        p.options.alpha = i % 3 == 1 ? 1 : 2;
        p.options.beta = i % 5 ? 0 : -1;
        try_product(&p, 1, NULL, NULL);
        release(&p);
    }
    test_context->info = kept;
}

/* The same with every type, and with an epilogue whose inputs are fetched before the sums. */
static void slices_of_all_types(void **state)
{
    (void)state;
    const hal_type pairs[][2] = {{HAL_TYPE_F16, HAL_TYPE_F32},
                                 {HAL_TYPE_BF16, HAL_TYPE_BF16},
                                 {HAL_TYPE_F32, HAL_TYPE_F32},
                                 {HAL_TYPE_F64, HAL_TYPE_F64}};
    const hal_device_info *kept = test_context->info;
    hal_device_info faked = *kept;
    test_context->info = &faked;
    faked.kind = HAL_DEVICE_DISCRETE;
    faked.compute_units = 12;
    for (int i = 0; i < 4 * 4 * 3; i++) {
        const int64_t m = i % 3 == 0 ? 1 : i % 3 == 1 ? 16 : 31, n = i % 3 == 2 ? 29 : 72;
        product p = make(pairs[i / 12][0], pairs[i / 12][1], 1, m, n, i % 3 == 1 ? 256 : 75,
                         i / 3 % 2, i / 6 % 2, PLAIN);
        align(&p);
        p.options.door = OPS_GEMM_PORTABLE;
        p.options.alpha = 0.75;
        p.options.beta = i % 2 ? 0.5 : 0;
        try_product(&p, 0, NULL, NULL);
        release(&p);
    }
    ops_expression *e = make_epilogue();
    for (int i = 0; i < 6; i++) {
        product p = make(HAL_TYPE_F32, HAL_TYPE_F32, i % 2 ? 3 : 1, i / 2 == 0 ? 1 : 17, 43, 100,
                         PLAIN, i % 3, i == 5);
        truncate_to_small(&p);
        const int64_t columns[1] = {43};
        box inputs[2] = {box_make(HAL_TYPE_F32, 1, columns, NULL, -9, 9),
                         make_matrix(HAL_TYPE_F32, p.batch, p.m, 43, i % 3)};
        box_truncate(&inputs[0]);
        box_truncate(&inputs[1]);
        const ops_tensor tensors[2] = {inputs[0].t, inputs[1].t};
        p.options = (ops_gemm_options){.alpha = 1,
                                       .beta = i % 2,
                                       .door = OPS_GEMM_PORTABLE,
                                       .epilogue = e,
                                       .inputs = tensors,
                                       .input_count = 2};
        try_product(&p, 1, host_epilogue, inputs);
        box_free(&inputs[0]);
        box_free(&inputs[1]);
        release(&p);
    }
    ops_expression_destroy(e);
    test_context->info = kept;
}

/* The residual is C itself. */
static void epilogue_reads_c(void **state)
{
    (void)state;
    ops_expression *e = make_epilogue();
    product p = make(HAL_TYPE_F32, HAL_TYPE_F32, 1, 20, 30, 10, PLAIN, PLAIN, PLAIN);
    truncate_to_small(&p);
    const int64_t columns[1] = {30};
    box inputs[2] = {box_make(HAL_TYPE_F32, 1, columns, NULL, -9, 9), p.c};
    box_truncate(&inputs[0]);
    ops_tensor tensors[2] = {inputs[0].t, p.c.t};
    p.options.epilogue = e;
    p.options.inputs = tensors;
    p.options.input_count = 2;
    try_product(&p, 1, host_epilogue, inputs);
    box_free(&inputs[0]);
    release(&p);
    ops_expression_destroy(e);
}

/* A, B and C are columns of one matrix. */
static void side_by_side(void **state)
{
    (void)state;
    for (int door = 0; door < 2; door++) {
        const int64_t shape[2] = {16, 60};
        box x = box_make(HAL_TYPE_F32, 2, shape, NULL, -3, 3);
        box_truncate(&x);
        ops_tensor a, b, c;
        ok(ops_tensor_slice(&x.t, 1, 0, 16, 1, &a));
        ok(ops_tensor_slice(&x.t, 1, 16, 20, 1, &b));
        ok(ops_tensor_slice(&x.t, 1, 36, 20, 1, &c));
        const ops_gemm_options options = {.alpha = 1,
                                          .door = door ? OPS_GEMM_PORTABLE : OPS_GEMM_ANY};
        ok(ops_gemm(test_context, &options, &a, &b, &c));
        double *want = box_want(&x);
        for (int64_t i = 0; i < 320; i++) {
            double sum = 0;
            for (int64_t k = 0; k < 16; k++) {
                sum += x.host[x.t.offset + i / 20 * 60 + k] *
                       x.host[x.t.offset + k * 60 + 16 + i % 20];
            }
            want[x.t.offset + i / 20 * 60 + 36 + i % 20] = sum;
        }
        box_expect(&x, want, 0, 0);
        free(want);
        box_free(&x);
    }
}

static void broadcast_batch(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        product p = make(HAL_TYPE_F32, HAL_TYPE_F32, 4, 12, 14, 16, PLAIN, PLAIN, PLAIN);
        truncate_to_small(&p);
        p.options.door = i % 2 ? OPS_GEMM_PORTABLE : OPS_GEMM_ANY;
        box *one = i / 2 ? &p.a : &p.b;
        one->t.shape[0] = 1;
        try_product(&p, 1, NULL, NULL);
        one->t.rank = 2;
        memmove(one->t.shape, one->t.shape + 1, 2 * sizeof(int64_t));
        memmove(one->t.stride, one->t.stride + 1, 2 * sizeof(int64_t));
        box_upload(&p.c);
        try_product(&p, 1, NULL, NULL);
        release(&p);
    }
}

static void empty(void **state)
{
    (void)state;
    for (int door = 0; door < 2; door++) {
        for (int i = 0; i < 4; i++) {
            product p = make(HAL_TYPE_F32, HAL_TYPE_F32, 1, i == 0 ? 0 : 6, i == 1 ? 0 : 5,
                             i == 2 ? 0 : 4, PLAIN, PLAIN, PLAIN);
            truncate_to_small(&p);
            p.options.door = door ? OPS_GEMM_PORTABLE : OPS_GEMM_ANY;
            p.options.beta = 2;
            try_product(&p, 1, NULL, NULL);
            release(&p);
        }
    }
}

static void bad_arguments(void **state)
{
    (void)state;
    product p = make(HAL_TYPE_F32, HAL_TYPE_F32, 1, 6, 5, 4, PLAIN, PLAIN, PLAIN);
    box wide = make_matrix(HAL_TYPE_F64, 1, 4, 5, PLAIN);
    hal_status bad = HAL_ERROR_INVALID_ARGUMENT;
    const ops_gemm_options *o = &p.options;
    refused(ops_gemm(NULL, o, &p.a.t, &p.b.t, &p.c.t), bad, "context");
    refused(ops_gemm(test_context, o, NULL, &p.b.t, &p.c.t), bad, "a is null");
    refused(ops_gemm(test_context, o, &p.a.t, NULL, &p.c.t), bad, "b is null");
    refused(ops_gemm(test_context, o, &p.a.t, &p.b.t, NULL), bad, "c is null");
    refused(ops_gemm(test_context, o, &p.b.t, &p.a.t, &p.c.t), bad, "a f32[4, 5]");
    refused(ops_gemm(test_context, o, &p.a.t, &wide.t, &p.c.t), bad, "b is f64");
    refused(ops_gemm(test_context, o, &wide.t, &wide.t, &p.c.t), bad, "do not fit");
    refused(ops_gemm(test_context, o, &p.a.t, &p.b.t, &p.a.t), bad, "do not fit");
    ops_tensor c = p.a.t;
    c.shape[1] = 4;
    ops_tensor square = p.b.t;
    square.shape[1] = 4;
    refused(ops_gemm(test_context, o, &p.a.t, &square, &c), bad, "c overlaps a");
    p.options.door = (ops_gemm_door)7;
    refused(ops_gemm(test_context, o, &p.a.t, &p.b.t, &p.c.t), bad, "options.door 7");
    p.options.door = OPS_GEMM_ANY;
    p.options.input_count = 1;
    refused(ops_gemm(test_context, o, &p.a.t, &p.b.t, &p.c.t), bad, "options.input_count is 1");
    p.options.epilogue = make_epilogue();
    refused(ops_gemm(test_context, o, &p.a.t, &p.b.t, &p.c.t), bad, "options.epilogue has 6");
    ops_tensor inputs[2] = {p.a.t, p.c.t};
    p.options.inputs = inputs;
    p.options.input_count = 2;
    refused(ops_gemm(test_context, o, &p.a.t, &p.b.t, &p.c.t), bad, "options.inputs, f32[6, 4]");
    ops_expression_destroy((ops_expression *)(uintptr_t)p.options.epilogue);
    box_expect(&p.c, p.c.host, 0, 0);
    box_free(&wide);
    release(&p);
}

/* Every shape is another kernel of the plugin: the context forgets old ones, and still works. */
static void ever_new_shapes(void **state)
{
    (void)state;
    product p = make(HAL_TYPE_F32, HAL_TYPE_F32, 1, 80, 80, 2, PLAIN, PLAIN, PLAIN);
    for (int64_t i = 0; i < 6400; i++) {
        ops_tensor a = p.a.t, b = p.b.t, c = p.c.t;
        a.shape[0] = c.shape[0] = i / 80 + 1;
        b.shape[1] = c.shape[1] = i % 80 + 1;
        ok(ops_gemm(test_context, NULL, &a, &b, &c));
        assert_true(test_context->count <= OPS_CACHE_KERNELS);
    }
    ok(hal_queue_wait(test_queue, HAL_WAIT_FOREVER));
    truncate_to_small(&p);
    try_product(&p, 1, NULL, NULL);
    release(&p);
}

static void plain_options(void **state)
{
    (void)state;
    product p = make(HAL_TYPE_F32, HAL_TYPE_F32, 1, 6, 5, 4, PLAIN, PLAIN, PLAIN);
    truncate_to_small(&p);
    ok(ops_gemm(test_context, NULL, &p.a.t, &p.b.t, &p.c.t));
    try_product(&p, 1, NULL, NULL);
    release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),           cmocka_unit_test(layouts),
        cmocka_unit_test(large_layouts),    cmocka_unit_test(types),
        cmocka_unit_test(nan_around),       cmocka_unit_test(epilogues),
        cmocka_unit_test(epilogue_reads_c), cmocka_unit_test(side_by_side),
        cmocka_unit_test(broadcast_batch),  cmocka_unit_test(empty),
        cmocka_unit_test(bad_arguments),    cmocka_unit_test(plain_options),
    };
    const struct CMUnitTest growth[] = {cmocka_unit_test(ever_new_shapes),
                                        cmocka_unit_test(groups_keep_to_each_dimension),
                                        cmocka_unit_test(every_tile), cmocka_unit_test(slices),
                                        cmocka_unit_test(slices_of_all_types)};
    return RUN_ON_ALL(tests) + cmocka_run_group_tests(growth, open_context, close_context);
}
