/* The cpu plugin's gemm entry: descriptions, scalars and epilogues as hal hands them over, on every
 * instruction set. The product itself is the business of test_cpu_gemm.c; here an epilogue must
 * give the bits that its formula gives on the plain product. */
#include "cpu_fixture.h"

#include <math.h>

enum { BINDINGS = 8 };

/* One product: memory after the bindings, and the description. */
typedef struct product {
    hal_gemm_description d;
    double scalars[2];
    uint64_t bytes[BINDINGS];
    hal_plugin_memory *memory[BINDINGS];
    uint32_t binding_count;
} product;

static const struct {
    int64_t m, n, k;
} shapes[] = {{1, 1, 1},    {7, 5, 3},    {40, 300, 20}, {130, 33, 600}, {3, 500, 128},
              {600, 9, 80}, {200, 1, 64}, {64, 64, 64},  {14, 5000, 4},  {5000, 37, 4}};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static float small_number(uint32_t i)
{
    return (float)((int32_t)(i * 2654435761u >> 24) - 128) / 64;
}

static void put(void *data, hal_type type, uint64_t i, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    if (type == HAL_TYPE_F64) {
        ((double *)data)[i] = (double)value;
    } else if (type == HAL_TYPE_F32) {
        ((float *)data)[i] = value;
    } else {
        ((uint16_t *)data)[i] = (uint16_t)(bits >> 16); /* bf16 */
    }
}

static double take(const void *data, hal_type type, uint64_t i)
{
    if (type == HAL_TYPE_F64) {
        return ((const double *)data)[i];
    }
    if (type == HAL_TYPE_F32) {
        return (double)((const float *)data)[i];
    }
    uint32_t bits = (uint32_t)((const uint16_t *)data)[i] << 16;
    float value;
    memcpy(&value, &bits, 4);
    return (double)value;
}

static void *address_of(const product *p, uint32_t binding)
{
    void *place = NULL;
    assert_int_equal(cpu_plugin()->memory_map(NULL, p->memory[binding], &place), HAL_OK);
    return place;
}

static void bind_filled(product *p, hal_plugin_device *device, uint32_t binding, hal_type type,
                        uint64_t count)
{
    p->bytes[binding] = count * hal_type_size(type);
    assert_int_equal(cpu_plugin()->memory_allocate(device, HAL_MEMORY_DEVICE, p->bytes[binding],
                                                   &p->memory[binding]),
                     HAL_OK);
    for (uint64_t i = 0; i < count; i++) {
        put(address_of(p, binding), type, i, small_number((uint32_t)i * 7 + binding));
    }
}

/* A product of a shape and type with two matrices in its batch and padded rows. */
static product make_product(hal_plugin_device *device, uint32_t shape, hal_type type)
{
    const int64_t m = shapes[shape].m, n = shapes[shape].n, k = shapes[shape].k;
    product p = {.scalars = {0.5, -1}, .binding_count = 4};
    p.d = (hal_gemm_description){.size = sizeof(p.d),
                                 .type_a = type,
                                 .type_b = type,
                                 .type_c = type,
                                 .batch = 2,
                                 .m = m,
                                 .n = n,
                                 .k = k,
                                 .lda = k + 1,
                                 .ldb = n + 2,
                                 .ldc = n + 3,
                                 .stride_a = m * (k + 1),
                                 .stride_b = k * (n + 2),
                                 .stride_c = m * (n + 3)};
    bind_filled(&p, device, 0, type, (uint64_t)(2 * p.d.stride_a));
    bind_filled(&p, device, 1, type, (uint64_t)(2 * p.d.stride_b));
    bind_filled(&p, device, 2, type, (uint64_t)(2 * p.d.stride_c));
    return p;
}

static void free_product(product *p, hal_plugin_device *device)
{
    for (uint32_t i = 0; i < BINDINGS; i++) {
        if (p->memory[i] != NULL) {
            cpu_plugin()->memory_free(device, p->memory[i]);
        }
    }
}

/* Runs the product twice on fresh C: the second run must find nothing of the first. */
static void run_product(product *p, hal_plugin_device *device)
{
    const hal_plugin *plugin = cpu_plugin();
    hal_plugin_kernel *kernel = NULL;
    hal_plugin_queue *queue = NULL;
    hal_binding bindings[BINDINGS] = {{0}};
    uint64_t workspace = 0;
    void *before = malloc(p->bytes[2]), *first = malloc(p->bytes[2]);

    if (plugin->gemm(device, &p->d, &kernel, &workspace) != HAL_OK) {
        fail_msg("%s", cpu_message);
    }
    assert_int_equal(plugin->queue_create(device, &queue), HAL_OK);
    p->bytes[3] = workspace;
    if (workspace > 0) {
        assert_int_equal(
            plugin->memory_allocate(device, HAL_MEMORY_DEVICE, workspace, &p->memory[3]), HAL_OK);
    }
    for (uint32_t i = 0; i < p->binding_count; i++) {
        bindings[i] = (hal_binding){.memory = p->memory[i], .length = p->bytes[i]};
    }
    const hal_command command = {.kind = HAL_COMMAND_DISPATCH,
                                 .binding_count = (uint16_t)p->binding_count,
                                 .scalar_bytes = sizeof(p->scalars),
                                 .grid = {1, 1, 1},
                                 .kernel = kernel};
    const hal_batch batch = {.size = sizeof(batch),
                             .command_count = 1,
                             .binding_count = p->binding_count,
                             .scalar_bytes = sizeof(p->scalars),
                             .commands = &command,
                             .bindings = bindings,
                             .scalars = (const uint8_t *)p->scalars};
    memcpy(before, address_of(p, 2), p->bytes[2]);
    for (uint64_t value = 1; value <= 2; value++) {
        memcpy(address_of(p, 2), before, p->bytes[2]);
        assert_int_equal(plugin->submit(queue, &batch, NULL, 0, value), HAL_OK);
        assert_int_equal(plugin->wait(queue, value, UINT64_MAX), HAL_OK);
        if (value == 1) {
            memcpy(first, address_of(p, 2), p->bytes[2]);
        }
    }
    assert_memory_equal(first, address_of(p, 2), p->bytes[2]);
    plugin->kernel_destroy(device, kernel);
    plugin->queue_destroy(device, queue);
    free(before);
    free(first);
}

/* max(value + bias[column] + 3 row - column + batch, residual[batch][row][column]) */
static hal_ir_kernel *make_epilogue(hal_type type)
{
    hal_ir_builder *b = NULL;
    assert_int_equal(hal_ir_builder_create_fragment("place", &b), HAL_OK);
    const hal_ir_value value = hal_ir_input(b, 0, type), row = hal_ir_input(b, 1, HAL_TYPE_U32);
    const hal_ir_value col = hal_ir_input(b, 2, HAL_TYPE_U32);
    const hal_ir_value batch = hal_ir_input(b, 3, HAL_TYPE_U32);
    const hal_ir_value bias = hal_ir_input(b, 4, type);
    const hal_ir_value residual = hal_ir_input(b, 5, HAL_TYPE_F32);
    const hal_ir_value three = hal_ir_cast(b, type, hal_ir_f32(b, 3));
    hal_ir_value sum = hal_ir_add(b, value, bias);
    sum = hal_ir_add(b, sum, hal_ir_mul(b, hal_ir_cast(b, type, row), three));
    sum = hal_ir_sub(b, sum, hal_ir_cast(b, type, col));
    sum = hal_ir_add(b, sum, hal_ir_cast(b, type, batch));
    sum = hal_ir_max(b, sum, hal_ir_cast(b, type, residual));
    hal_ir_output(b, 0, sum);
    return cpu_finish(b);
}

static double formula(hal_type type, double value, double bias, double residual, int64_t row,
                      int64_t col, int64_t batch)
{
    if (type == HAL_TYPE_F64) {
        double sum = value + bias + (double)row * 3 - (double)col + (double)batch;
        return sum > residual ? sum : residual;
    }
    float sum = (float)value + (float)bias;
    sum += (float)row * 3;
    sum -= (float)col;
    sum += (float)batch;
    return (double)(sum > (float)residual ? sum : (float)residual);
}

static void check_epilogue(hal_plugin_device *device, uint32_t shape, hal_type type)
{
    product plain = make_product(device, shape, type), fused = make_product(device, shape, type);
    const int64_t m = plain.d.m, n = plain.d.n;
    hal_ir_kernel *epilogue = make_epilogue(type);
    run_product(&plain, device);
    fused.d.epilogue = epilogue;
    fused.d.input_count = 2;
    fused.d.inputs[0] = (hal_gemm_input){.type = type, .column_stride = 2};
    fused.d.inputs[1] = (hal_gemm_input){.type = HAL_TYPE_BF16,
                                         .row_stride = n + 1,
                                         .column_stride = 1,
                                         .batch_stride = m * (n + 1)};
    fused.binding_count = 6;
    bind_filled(&fused, device, 4, type, (uint64_t)(2 * n));
    bind_filled(&fused, device, 5, HAL_TYPE_BF16, (uint64_t)(2 * m * (n + 1)));
    run_product(&fused, device);
    for (int64_t e = 0; e < 2 * m * plain.d.ldc; e++) {
        const int64_t batch = e / plain.d.stride_c, row = e % plain.d.stride_c / plain.d.ldc;
        const int64_t col = e % plain.d.ldc;
        const double found = take(address_of(&fused, 2), type, (uint64_t)e);
        double wanted = take(address_of(&plain, 2), type, (uint64_t)e);
        if (col < n) {
            const double bias = take(address_of(&fused, 4), type, (uint64_t)(2 * col));
            const double residual = take(address_of(&fused, 5), HAL_TYPE_BF16,
                                         (uint64_t)((batch * m + row) * (n + 1) + col));
            wanted = formula(type, wanted, bias, residual, row, col, batch);
        }
        if (found != wanted) {
            fail_msg("shape %u at %d: %g, not %g", shape, (int)e, found, wanted);
        }
    }
    hal_ir_kernel_destroy(epilogue);
    free_product(&plain, device);
    free_product(&fused, device);
}

TEST(test_epilogues)
{
    uint32_t sets = 0;
    for (uint32_t set = 0; set < CPU_SETS; set++) {
        hal_plugin_device *device = cpu_open(set);
        for (uint32_t shape = 0; device != NULL && shape < SHAPES; shape++) {
            check_epilogue(device, shape, HAL_TYPE_F32);
            check_epilogue(device, shape, HAL_TYPE_F64);
        }
        sets += device != NULL;
    }
    assert_true(sets > 0);
}

/* An f32 epilogue before a bf16 C: rounded once, after it. */
TEST(test_narrow_result)
{
    for (uint32_t set = 0; set < CPU_SETS; set++) {
        hal_plugin_device *device = cpu_open(set);
        if (device == NULL) {
            continue;
        }
        product p = make_product(device, 7, HAL_TYPE_BF16);
        hal_ir_builder *b = NULL;
        assert_int_equal(hal_ir_builder_create_fragment("halve", &b), HAL_OK);
        const hal_ir_value value = hal_ir_input(b, 0, HAL_TYPE_F32);
        for (uint32_t i = 1; i < 4; i++) {
            (void)hal_ir_input(b, i, HAL_TYPE_U32);
        }
        hal_ir_output(b, 0, hal_ir_mul(b, value, hal_ir_f32(b, 0.5f)));
        hal_ir_kernel *fragment = cpu_finish(b);
        run_product(&p, device);
        product q = make_product(device, 7, HAL_TYPE_BF16);
        q.d.epilogue = fragment;
        run_product(&q, device);
        for (int64_t e = 0; e < 2 * p.d.stride_c; e++) {
            const double full = take(address_of(&p, 2), HAL_TYPE_BF16, (uint64_t)e);
            const double half = take(address_of(&q, 2), HAL_TYPE_BF16, (uint64_t)e);
            assert_true(half == (e % p.d.ldc < p.d.n ? full / 2 : full));
        }
        hal_ir_kernel_destroy(fragment);
        free_product(&p, device);
        free_product(&q, device);
    }
}

TEST(test_beta_is_zero)
{
    hal_plugin_device *device = cpu_open(0);
    if (device == NULL) {
        device = cpu_open(3);
    }
    product p = make_product(device, 2, HAL_TYPE_F32), q = make_product(device, 2, HAL_TYPE_F32);
    p.d.beta_is_zero = 1;
    q.scalars[1] = 0;
    for (uint64_t i = 0; i < p.bytes[2] / 4; i++) {
        put(address_of(&p, 2), HAL_TYPE_F32, i, NAN);
    }
    run_product(&p, device);
    run_product(&q, device);
    for (int64_t e = 0; e < 2 * p.d.stride_c; e++) {
        if (e % p.d.ldc < p.d.n) {
            assert_true(take(address_of(&p, 2), HAL_TYPE_F32, (uint64_t)e) ==
                        take(address_of(&q, 2), HAL_TYPE_F32, (uint64_t)e));
        } else {
            assert_true(isnan(take(address_of(&p, 2), HAL_TYPE_F32, (uint64_t)e)));
        }
    }
    free_product(&p, device);
    free_product(&q, device);
}

TEST(test_declined)
{
    hal_plugin_device *device = cpu_open(0) != NULL ? cpu_open(0) : cpu_open(3);
    hal_ir_kernel *epilogue = make_epilogue(HAL_TYPE_F32);
    product p = make_product(device, 1, HAL_TYPE_F32);
    hal_plugin_kernel *kernel = NULL;
    uint64_t workspace = 0;
    hal_gemm_description d[5];

    for (uint32_t i = 0; i < 5; i++) {
        d[i] = p.d;
    }
    d[0].type_a = d[0].type_b = d[0].type_c = HAL_TYPE_I8;
    d[1].type_a = HAL_TYPE_F64;
    d[2].stride_c = 1; /* the batch overlaps in C */
    for (uint32_t i = 3; i < 5; i++) {
        d[i].epilogue = epilogue;
        d[i].input_count = 2;
        d[i].inputs[0] = (hal_gemm_input){.type = HAL_TYPE_F32, .column_stride = 1};
        d[i].inputs[1] = (hal_gemm_input){.type = HAL_TYPE_BF16, .column_stride = 1};
    }
    d[3].inputs[0].row_stride = INT64_C(1) << 40;
    d[4].inputs[0].type = HAL_TYPE_I32;
    for (uint32_t i = 0; i < 5; i++) {
        cpu_message[0] = 0;
        assert_int_equal(cpu_plugin()->gemm(device, &d[i], &kernel, &workspace),
                         i == 4 ? HAL_ERROR_INVALID_ARGUMENT : HAL_ERROR_UNSUPPORTED);
        assert_null(kernel);
        assert_true(cpu_message[0] != 0);
    }
    hal_ir_kernel_destroy(epilogue);
    free_product(&p, device);
}

UNIT_MAIN(NULL, cpu_close_all)
