/* Epilogues of the native matrix product on each instruction set, compiled and interpreted. The
 * sums of integers are exact, so that every element has one right value. */
#include "cpu_fixture.h"

enum { BATCH = 2, PADDING = 3, BINDINGS = 7 };

typedef struct product {
    hal_type type; /* of A, B and C */
    int64_t m, n, k;
} product;

static hal_type accumulator_of(hal_type type)
{
    return type == HAL_TYPE_F64 ? HAL_TYPE_F64 : HAL_TYPE_F32;
}

static void element_set(hal_type type, void *data, int64_t at, int value)
{
    const float single = (float)value;
    if (type == HAL_TYPE_F64) {
        ((double *)data)[at] = value;
    } else if (type == HAL_TYPE_F32) {
        ((float *)data)[at] = single;
    } else { /* BF16: the upper half of a float */
        uint32_t bits;
        memcpy(&bits, &single, sizeof(bits));
        ((uint16_t *)data)[at] = (uint16_t)(bits >> 16);
    }
}

static double element_get(hal_type type, const void *data, int64_t at)
{
    if (type == HAL_TYPE_F64) {
        return ((const double *)data)[at];
    }
    if (type == HAL_TYPE_F32) {
        return (double)((const float *)data)[at];
    }
    const uint32_t bits = (uint32_t)((const uint16_t *)data)[at] << 16;
    float single;
    memcpy(&single, &bits, sizeof(single));
    return (double)single;
}

/* The operands, the same wherever they are needed. */
static int of_a(int64_t batch, int64_t row, int64_t k)
{
    return (int)((row * 5 + k * 3 + batch) % 3) - 1;
}
static int of_b(int64_t k, int64_t col)
{
    return (int)((k * 7 + col) % 3) - 1;
}
static int bias(int64_t col)
{
    return (int)(col * 5 % 17) - 8;
}
static int row_bias(int64_t batch, int64_t row)
{
    return (int)(row % 13) + (int)batch;
}
static int addend(int64_t row, int64_t col)
{
    return (int)((row + 2 * col) % 11) - 5;
}

/* max(x + bias + row_bias + addend, -4) + (row + column + batch) % 2. */
static hal_ir_kernel *epilogue_create(hal_type type)
{
    const hal_type sum = accumulator_of(type);
    hal_ir_builder *b = NULL;
    assert_int_equal(hal_ir_builder_create_fragment("sums", &b), HAL_OK);
    hal_ir_value value = hal_ir_input(b, 0, sum), place = hal_ir_input(b, 1, HAL_TYPE_U32);
    for (uint32_t i = 2; i < 4; i++) {
        place = hal_ir_add(b, place, hal_ir_input(b, i, HAL_TYPE_U32));
    }
    for (uint32_t i = 4; i < 7; i++) {
        value = hal_ir_add(b, value, hal_ir_input(b, i, sum));
    }
    const hal_ir_value least = sum == HAL_TYPE_F64 ? hal_ir_f64(b, -4) : hal_ir_f32(b, -4);
    const hal_ir_value odd = hal_ir_and(b, place, hal_ir_u32(b, 1));
    hal_ir_output(b, 0, hal_ir_add(b, hal_ir_max(b, value, least), hal_ir_cast(b, sum, odd)));
    return cpu_finish(b);
}

/* Of a binding, all elements by a function of their place. */
typedef struct operand {
    hal_plugin_memory *memory;
    void *data;
    int64_t count;
} operand;

static operand operand_create(hal_plugin_device *device, hal_type type, int64_t count)
{
    operand made = {.count = count};
    const uint64_t bytes = (uint64_t)count * hal_type_size(type);
    assert_int_equal(cpu_plugin()->memory_allocate(device, HAL_MEMORY_DEVICE, bytes, &made.memory),
                     HAL_OK);
    assert_int_equal(cpu_plugin()->memory_map(device, made.memory, &made.data), HAL_OK);
    memset(made.data, 0, bytes);
    return made;
}

static void operands_create(hal_plugin_device *device, const product *p, operand operands[BINDINGS])
{
    const int64_t ldc = p->n + PADDING;
    operands[0] = operand_create(device, p->type, BATCH * p->m * p->k);
    operands[1] = operand_create(device, p->type, p->k * p->n);
    operands[2] = operand_create(device, p->type, BATCH * p->m * ldc);
    operands[4] = operand_create(device, p->type, p->n);
    operands[5] = operand_create(device, p->type, BATCH * p->m);
    operands[6] = operand_create(device, p->type, p->m * ldc);
    for (int64_t batch = 0; batch < BATCH; batch++) {
        for (int64_t row = 0; row < p->m; row++) {
            element_set(p->type, operands[5].data, batch * p->m + row, row_bias(batch, row));
            for (int64_t k = 0; k < p->k; k++) {
                element_set(p->type, operands[0].data, (batch * p->m + row) * p->k + k,
                            of_a(batch, row, k));
            }
        }
    }
    for (int64_t col = 0; col < p->n; col++) {
        element_set(p->type, operands[4].data, col, bias(col));
        for (int64_t k = 0; k < p->k; k++) {
            element_set(p->type, operands[1].data, k * p->n + col, of_b(k, col));
        }
        for (int64_t row = 0; row < p->m; row++) {
            element_set(p->type, operands[6].data, row * ldc + col, addend(row, col));
        }
    }
    for (int64_t i = 0; i < operands[2].count; i++) {
        element_set(p->type, operands[2].data, i, 99);
    }
}

static void product_run(hal_plugin_device *device, const product *p, hal_plugin_kernel *kernel,
                        const operand operands[BINDINGS])
{
    const double scalars[2] = {1, 0};
    hal_binding bindings[BINDINGS] = {{0}};
    hal_plugin_queue *queue = NULL;
    for (uint32_t i = 0; i < BINDINGS; i++) {
        const uint32_t size = i == 3 ? 1 : hal_type_size(p->type);
        bindings[i] =
            (hal_binding){.memory = operands[i].memory,
                          .length = (uint64_t)operands[i].count * size,
                          .access = i == 2 || i == 3 ? HAL_ACCESS_READ_WRITE : HAL_ACCESS_READ};
    }
    const hal_command command = {.kind = HAL_COMMAND_DISPATCH,
                                 .binding_count = BINDINGS,
                                 .scalar_bytes = sizeof(scalars),
                                 .kernel = kernel,
                                 .grid = {1, 1, 1}};
    const hal_batch batch = {.size = sizeof(batch),
                             .command_count = 1,
                             .binding_count = BINDINGS,
                             .scalar_bytes = sizeof(scalars),
                             .commands = &command,
                             .bindings = bindings,
                             .scalars = (const uint8_t *)scalars};
    assert_int_equal(cpu_plugin()->queue_create(device, &queue), HAL_OK);
    assert_int_equal(cpu_plugin()->submit(queue, &batch, NULL, 0, 1), HAL_OK);
    assert_int_equal(cpu_plugin()->wait(queue, 1, UINT64_MAX), HAL_OK);
    cpu_plugin()->queue_destroy(device, queue);
}

static void result_check(const product *p, const char *set, const void *c)
{
    const int64_t ldc = p->n + PADDING;
    for (int64_t batch = 0; batch < BATCH; batch++) {
        for (int64_t row = 0; row < p->m; row++) {
            for (int64_t col = 0; col < ldc; col++) {
                int64_t sum = 0;
                for (int64_t k = 0; k < p->k; k++) {
                    sum += of_a(batch, row, k) * of_b(k, col);
                }
                sum += bias(col) + row_bias(batch, row) + addend(row, col);
                sum = (sum > -4 ? sum : -4) + (row + col + batch) % 2;
                const double wanted = col < p->n ? (double)sum : 99;
                const double found = element_get(p->type, c, (batch * p->m + row) * ldc + col);
                if (wanted != found) {
                    fail_msg("%s, type %u, %lld x %lld x %lld: element %lld, %lld of matrix %lld: "
                             "expected %g, got %g",
                             set, (unsigned)p->type, (long long)p->m, (long long)p->n,
                             (long long)p->k, (long long)row, (long long)col, (long long)batch,
                             wanted, found);
                }
            }
        }
    }
}

static void product_check(uint32_t set, const product *p, const hal_ir_kernel *epilogue)
{
    hal_plugin_device *device = cpu_open(set);
    hal_plugin_kernel *kernel = NULL;
    operand operands[BINDINGS] = {{0}};
    uint64_t workspace = 0;
    if (!device) {
        return;
    }
    const hal_gemm_description description = {
        .size = sizeof(description),
        .type_a = p->type,
        .type_b = p->type,
        .type_c = p->type,
        .beta_is_zero = 1,
        .batch = BATCH,
        .input_count = 3,
        .m = p->m,
        .n = p->n,
        .k = p->k,
        .lda = p->k,
        .ldb = p->n,
        .ldc = p->n + PADDING,
        .stride_a = p->m * p->k,
        .stride_c = p->m * (p->n + PADDING),
        .inputs = {{.type = p->type, .column_stride = 1},
                   {.type = p->type, .row_stride = 1, .batch_stride = p->m},
                   {.type = p->type, .row_stride = p->n + PADDING, .column_stride = 1}},
        .epilogue = epilogue};
    if (cpu_plugin()->gemm(device, &description, &kernel, &workspace) != HAL_OK) {
        fail_msg("%s: %s", cpu_sets[set], cpu_message);
    }
    operands_create(device, p, operands);
    if (workspace > 0) {
        operands[3] = operand_create(device, HAL_TYPE_U8, (int64_t)workspace);
    }
    product_run(device, p, kernel, operands);
    result_check(p, cpu_sets[set], operands[2].data);
    for (uint32_t i = 0; i < BINDINGS; i++) {
        cpu_plugin()->memory_free(device, operands[i].memory);
    }
    cpu_plugin()->kernel_destroy(device, kernel);
}

/* Rows of whole blocks of lanes, of blocks and a rest, of less, and of one column; products of both
 * skinny routes and of several strips, slabs and tasks. */
TEST(test_shapes)
{
    static const int64_t shapes[][3] = {{1, 1, 3},    {5, 16, 4},    {13, 48, 8},   {30, 64, 20},
                                        {7, 65, 9},   {25, 100, 33}, {40, 15, 5},   {3, 400, 70},
                                        {300, 2, 90}, {70, 1, 40},   {26, 1030, 6}, {90, 80, 700}};
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F64, HAL_TYPE_BF16};
    for (uint32_t t = 0; t < 3; t++) {
        hal_ir_kernel *epilogue = epilogue_create(types[t]);
        for (uint32_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
            const product p = {types[t], shapes[s][0], shapes[s][1], shapes[s][2]};
            for (uint32_t set = 0; set < CPU_SETS; set++) {
                product_check(set, &p, epilogue);
            }
        }
        hal_ir_kernel_destroy(epilogue);
    }
}

UNIT_MAIN(NULL, cpu_close_all)
