/* shapes.c: pointwise work over shapes, strides and broadcasts; several outputs, in place, many
 * inputs, long expressions; and calls that the op library has to refuse. */
#include <math.h>
#include <stdio.h>

#include "case/cases.h"
#include "ops/fixture.h"

typedef struct shape_case {
    uint32_t rank;
    int64_t shape[OPS_MAX_RANK];
    operand_layout x, y, z;
    hal_type type;
} shape_case;

#define SHAPE_SIZE(d) CASE_SIZE(shape_case, shape[d], "shape", d, 1)
static const case_size shape_sizes[OPS_MAX_RANK] = {
    SHAPE_SIZE(0),  SHAPE_SIZE(1),  SHAPE_SIZE(2),  SHAPE_SIZE(3),  SHAPE_SIZE(4),  SHAPE_SIZE(5),
    SHAPE_SIZE(6),  SHAPE_SIZE(7),  SHAPE_SIZE(8),  SHAPE_SIZE(9),  SHAPE_SIZE(10), SHAPE_SIZE(11),
    SHAPE_SIZE(12), SHAPE_SIZE(13), SHAPE_SIZE(14), SHAPE_SIZE(15),
};

/* Computes z from x and y on the device, and compares. */
static void binary_check(case_run *run, ops_binary_function function, const operand *x,
                         const operand *y, operand *z, const void *expected)
{
    operand_poison(run, z);
    case_ok(run, ops_binary(run->ops, function, &x->tensor, &y->tensor, &z->tensor), "ops_binary");
    operand_download(run, z, "result");
    operand_check_bits(run, z, expected, false, "result");
}

/* z = x + y, of whole numbers, so that every element has one right value. */
static void run_shape(case_run *run, const void *parameters)
{
    const shape_case *tested = parameters;
    random_state random = {run->seed};
    case_claim_storage(run, tested->type);
    case_claim_arithmetic(run, tested->type);
    operand x = operand_create(run, tested->type, tested->rank, tested->shape, tested->x);
    operand y = operand_create(run, tested->type, tested->rank, tested->shape, tested->y);
    operand z = operand_create(run, tested->type, tested->rank, tested->shape, tested->z);
    uint8_t *expected = case_allocate(run, z.count + 1, 8);
    operand_fill(&x, &random, -1000.0, 1000.0);
    operand_fill(&y, &random, -1000.0, 1000.0);
    for (size_t i = 0; i < z.count && hal_type_is_float(tested->type); i++) {
        number_put(tested->type, x.elements, i, floor(operand_get(&x, i)));
        number_put(tested->type, y.elements, i, floor(operand_get(&y, i)));
    }
    operand_upload(run, &x);
    operand_upload(run, &y);
    for (size_t i = 0; i < z.count; i++) {
        number_put(tested->type, expected, i, operand_get(&x, i) + operand_get(&y, i));
    }
    binary_check(run, OPS_ADD, &x, &y, &z, expected);
}

static void print_shape(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    const shape_case *tested = parameters;
    char text[128] = "";
    size_t used = 0;
    for (uint32_t d = 0; d < tested->rank; d++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", d == 0 ? "" : "x",
                                 (long long)tested->shape[d]);
    }
    snprintf(name, bytes, "ops/shape(type=%s,shape=%s,x=%s,y=%s,out=%s)",
             hal_type_name(tested->type), tested->rank == 0 ? "scalar" : text,
             layout_name(tested->x), layout_name(tested->y), layout_name(tested->z));
}

static const case_family pointwise_shapes = {.function = run_shape,
                                             .bytes = sizeof(shape_case),
                                             .sizes = shape_sizes,
                                             .size_count = OPS_MAX_RANK,
                                             .print = print_shape};

/* Axes of length 1, and missing ones, are stretched by the op itself. */
static void run_broadcast(case_run *run, const void *parameters)
{
    static const struct {
        uint32_t rank;
        int64_t shape[3];
    } small[] = {{3, {1, 1, 11}}, {3, {5, 7, 1}}, {1, {11}}, {0, {0}}};
    const int kind = *(const int *)parameters;
    const int64_t shape[3] = {5, 7, 11};
    operand x = operand_create(run, HAL_TYPE_F32, 3, shape, LAYOUT_PLAIN);
    operand y =
        operand_create(run, HAL_TYPE_F32, small[kind].rank, small[kind].shape, LAYOUT_PLAIN);
    operand z = operand_create(run, HAL_TYPE_F32, 3, shape, LAYOUT_PLAIN);
    random_state random = {run->seed};
    float expected[5 * 7 * 11];
    operand_fill(&x, &random, -9.0, 9.0);
    operand_fill(&y, &random, -9.0, 9.0);
    for (size_t i = 0; i < z.count; i++) {
        const size_t of_y[4] = {i % 11, i / 11, i % 11, 0};
        expected[i] = (float)operand_get(&x, i) * (float)operand_get(&y, of_y[kind]);
    }
    operand_upload(run, &x);
    operand_upload(run, &y);
    binary_check(run, OPS_MUL, &x, &y, &z, expected);
}

/* Lines that one group covers, and enough of them that a work-item may compute elements of several;
 * their number is a prime. An operand has one element for each line, as in a convolution's bias. */
static void run_short_lines(case_run *run, const void *parameters)
{
    enum { IMAGES = 41, LINES = 211, COLUMNS = 67 };
    const hal_type type = *(const hal_type *)parameters;
    const int64_t shape[3] = {IMAGES, LINES, COLUMNS}, one[3] = {1, LINES, 1};
    case_claim_storage(run, type);
    case_claim_arithmetic(run, type);
    operand x = operand_create(run, type, 3, shape, LAYOUT_PLAIN);
    operand y = operand_create(run, type, 3, one, LAYOUT_PLAIN);
    operand z = operand_create(run, type, 3, shape, LAYOUT_PLAIN);
    uint8_t *expected = case_allocate(run, z.count, 8);
    for (size_t i = 0; i < x.count; i++) {
        number_put(type, x.elements, i, (double)(i * 7 % 1021));
    }
    for (size_t i = 0; i < y.count; i++) {
        number_put(type, y.elements, i, (double)i + 1);
    }
    for (size_t i = 0; i < z.count; i++) {
        number_put(type, expected, i, operand_get(&x, i) + operand_get(&y, i / COLUMNS % LINES));
    }
    operand_upload(run, &x);
    operand_upload(run, &y);
    binary_check(run, OPS_ADD, &x, &y, &z, expected);
}

/* x + y as f32, x < y as BOOL and x rounded to i32, of one expression. */
static void run_outputs(case_run *run, const void *parameters)
{
    enum { COUNT = 1031 };
    const int64_t shape[1] = {COUNT};
    const hal_type types[3] = {HAL_TYPE_F32, HAL_TYPE_BOOL, HAL_TYPE_I32};
    static uint8_t expected[3][COUNT * 4];
    operand inputs[2], outputs[3];
    ops_tensor in[2], out[3];
    random_state random = {run->seed};
    hal_ir_builder *b = expression_begin(run);
    const hal_ir_value a = hal_ir_input(b, 0, HAL_TYPE_F32), c = hal_ir_input(b, 1, HAL_TYPE_F32);
    hal_ir_output(b, 0, hal_ir_add(b, a, c));
    hal_ir_output(b, 1, hal_ir_lt(b, a, c));
    hal_ir_output(b, 2, hal_ir_cast(b, HAL_TYPE_I32, hal_ir_rint(b, a)));
    ops_expression *expression = expression_finish(run, b);
    for (int i = 0; i < 2; i++) {
        inputs[i] = operand_create(run, HAL_TYPE_F32, 1, shape, LAYOUT_PLAIN);
        operand_fill(&inputs[i], &random, -1e6, 1e6);
        operand_upload(run, &inputs[i]);
        in[i] = inputs[i].tensor;
    }
    for (int i = 0; i < 3; i++) {
        outputs[i] = operand_create(run, types[i], 1, shape, LAYOUT_PLAIN);
        operand_poison(run, &outputs[i]);
        out[i] = outputs[i].tensor;
    }
    case_ok(run, ops_pointwise(run->ops, expression, in, 2, out, 3), "ops_pointwise");
    for (size_t i = 0; i < COUNT; i++) {
        const float x = (float)operand_get(&inputs[0], i), y = (float)operand_get(&inputs[1], i);
        number_store(HAL_TYPE_F32, expected[0], i, number_of_f32(x + y));
        number_store(HAL_TYPE_BOOL, expected[1], i, x < y);
        number_put(HAL_TYPE_I32, expected[2], i, (double)rintf(x));
    }
    for (int i = 0; i < 3; i++) {
        operand_download(run, &outputs[i], "output");
        operand_check_bits(run, &outputs[i], expected[i], false, hal_type_name(types[i]));
    }
}

static void run_in_place(case_run *run, const void *parameters)
{
    const operand_layout layout = (operand_layout) * (const int *)parameters;
    const int64_t shape[2] = {37, 21};
    operand x = operand_create(run, HAL_TYPE_F32, 2, shape, layout);
    random_state random = {run->seed};
    float expected[37 * 21];
    operand_fill(&x, &random, -10.0, 10.0);
    for (size_t i = 0; i < x.count; i++) {
        const float value = (float)operand_get(&x, i);
        expected[i] = value * value;
    }
    operand_upload(run, &x);
    case_ok(run, ops_unary(run->ops, OPS_SQUARE, &x.tensor, &x.tensor), "ops_unary");
    operand_download(run, &x, "x");
    operand_check_bits(run, &x, expected, false, "result");
}

/* Computes an expression with one output on the device. */
static operand pointwise_compute(case_run *run, const ops_expression *expression,
                                 const ops_tensor *inputs, uint32_t count, hal_type type,
                                 int64_t length)
{
    operand z = operand_create(run, type, 1, &length, LAYOUT_PLAIN);
    operand_poison(run, &z);
    case_ok(run, ops_pointwise(run->ops, expression, inputs, count, &z.tensor, 1), "ops_pointwise");
    operand_download(run, &z, "result");
    return z;
}

static void run_inputs(case_run *run, const void *parameters)
{
    enum { COUNT = 515 };
    const int64_t shape[1] = {COUNT};
    ops_tensor in[OPS_MAX_INPUTS];
    uint32_t expected[COUNT] = {0};
    random_state random = {run->seed};
    case_claim(run, run->info->max_bindings > OPS_MAX_INPUTS, "bindings for each input and output");
    hal_ir_builder *b = expression_begin(run);
    hal_ir_value sum = hal_ir_input(b, 0, HAL_TYPE_I32);
    for (uint32_t i = 1; i < OPS_MAX_INPUTS; i++) {
        sum = hal_ir_add(b, hal_ir_mul(b, sum, hal_ir_i32(b, 3)), hal_ir_input(b, i, HAL_TYPE_I32));
    }
    hal_ir_output(b, 0, sum);
    ops_expression *expression = expression_finish(run, b);
    for (uint32_t i = 0; i < OPS_MAX_INPUTS; i++) {
        operand x =
            operand_create(run, HAL_TYPE_I32, 1, shape, i % 3 == 1 ? LAYOUT_STRIDED : LAYOUT_PLAIN);
        operand_fill(&x, &random, -1e9, 1e9);
        operand_upload(run, &x);
        in[i] = x.tensor;
        for (size_t k = 0; k < COUNT; k++) {
            expected[k] = expected[k] * 3 + (uint32_t)number_load(HAL_TYPE_I32, x.elements, k);
        }
    }
    const operand z = pointwise_compute(run, expression, in, OPS_MAX_INPUTS, HAL_TYPE_I32, COUNT);
    operand_check_bits(run, &z, expected, false, "result");
}

/* 64 operations in a row, of a kind in which the order counts. */
static void run_long(case_run *run, const void *parameters)
{
    enum { COUNT = 777 };
    const int64_t shape[1] = {COUNT};
    uint32_t expected[COUNT];
    random_state random = {run->seed};
    hal_ir_builder *b = expression_begin(run);
    const hal_ir_value input = hal_ir_input(b, 0, HAL_TYPE_U32);
    hal_ir_value value = input;
    for (uint32_t i = 0; i < 32; i++) {
        value = hal_ir_mul(b, value, hal_ir_u32(b, 2 * i + 3));
        value = hal_ir_xor(b, value, input);
    }
    hal_ir_output(b, 0, value);
    ops_expression *expression = expression_finish(run, b);
    operand x = operand_create(run, HAL_TYPE_U32, 1, shape, LAYOUT_PLAIN);
    operand_fill(&x, &random, 0.0, 4e9);
    for (size_t k = 0; k < COUNT; k++) {
        const uint32_t element = (uint32_t)number_load(HAL_TYPE_U32, x.elements, k);
        expected[k] = element;
        for (uint32_t i = 0; i < 32; i++) {
            expected[k] = (expected[k] * (2 * i + 3)) ^ element;
        }
    }
    operand_upload(run, &x);
    const operand z = pointwise_compute(run, expression, &x.tensor, 1, HAL_TYPE_U32, COUNT);
    operand_check_bits(run, &z, expected, false, "result");
}

static void run_chain(case_run *run, const void *parameters)
{
    enum { COUNT = 20011 };
    const int64_t shape[1] = {COUNT};
    random_state random = {run->seed};
    hal_ir_builder *b = expression_begin(run);
    const hal_ir_value p = hal_ir_input(b, 0, HAL_TYPE_F32), q = hal_ir_input(b, 1, HAL_TYPE_F32);
    const hal_ir_value r = ops_unary_value(b, OPS_RELU, hal_ir_fma(b, p, q, p));
    hal_ir_output(b, 0, ops_unary_value(b, OPS_SIGMOID, r));
    ops_expression *chain = expression_finish(run, b);
    long double *expected = case_allocate(run, COUNT, sizeof *expected);
    operand x = operand_create(run, HAL_TYPE_F32, 1, shape, LAYOUT_PLAIN);
    operand y = operand_create(run, HAL_TYPE_F32, 1, shape, LAYOUT_PLAIN);
    operand_fill(&x, &random, -3.0, 3.0);
    operand_fill(&y, &random, -3.0, 3.0);
    for (size_t i = 0; i < COUNT; i++) {
        const float a = (float)operand_get(&x, i), c = (float)operand_get(&y, i);
        const float sum = fmaf(a, c, a);
        expected[i] = 1.0L / (1.0L + expl(sum > 0.0f ? -(long double)sum : 0.0L));
    }
    operand_upload(run, &x);
    operand_upload(run, &y);
    const ops_tensor inputs[2] = {x.tensor, y.tensor};
    const operand z = pointwise_compute(run, chain, inputs, 2, HAL_TYPE_F32, COUNT);
    comparison found;
    if (!compare_ulps(HAL_TYPE_F32, z.elements, expected, COUNT, 4.0, &found)) {
        case_report(run, &found, "result");
    }
}

/* Each refusal with its status, and nothing is touched. */
static void run_refusals(case_run *run, const void *parameters)
{
    const int64_t shape[2] = {6, 8}, other[2] = {6, 7};
    const hal_status wrong = HAL_ERROR_INVALID_ARGUMENT;
    operand x = operand_create(run, HAL_TYPE_F32, 2, shape, LAYOUT_PLAIN);
    operand y = operand_create(run, HAL_TYPE_F32, 2, other, LAYOUT_PLAIN);
    operand i = operand_create(run, HAL_TYPE_I32, 2, shape, LAYOUT_PLAIN);
    operand z = operand_create(run, HAL_TYPE_F32, 2, shape, LAYOUT_PLAIN);
    random_state random = {run->seed};
    operand_fill(&x, &random, 0.0, 1.0);
    operand_upload(run, &x);
    operand_upload(run, &y);
    operand_upload(run, &i);
    operand_poison(run, &z);
    case_expect(run, ops_binary(run->ops, OPS_ADD, &x.tensor, &y.tensor, &z.tensor), wrong, NULL,
                "shapes that do not fit");
    case_expect(run, ops_unary(run->ops, OPS_NEG, NULL, &z.tensor), wrong, NULL, "a null tensor");
    case_expect(run, ops_unary(NULL, OPS_NEG, &x.tensor, &z.tensor), wrong, NULL, "a null context");
    case_check(run, ops_binary(run->ops, OPS_ADD, &x.tensor, &i.tensor, &z.tensor) != HAL_OK,
               "f32 + i32 was taken");
    case_check(run, ops_unary(run->ops, OPS_EXP, &i.tensor, &i.tensor) != HAL_OK,
               "exp of i32 was taken");
    case_check(run, ops_unary(run->ops, (ops_unary_function)999, &x.tensor, &z.tensor) != HAL_OK,
               "an unknown function was accepted");
    ops_tensor shifted = x.tensor, part = x.tensor;
    shifted.offset += 1;
    shifted.shape[0] = 5;
    part.shape[0] = 5;
    case_expect(run, ops_unary(run->ops, OPS_NEG, &part, &shifted), wrong, NULL,
                "an output that overlaps its input");
    ops_tensor stretched = z.tensor;
    stretched.stride[0] = 0;
    case_expect(run, ops_unary(run->ops, OPS_NEG, &x.tensor, &stretched), wrong, NULL,
                "an output with a stride of 0");
    ops_tensor beyond = x.tensor;
    beyond.shape[0] = 1000000;
    case_expect(run, ops_unary(run->ops, OPS_NEG, &beyond, &z.tensor), wrong, NULL,
                "a tensor larger than its buffer");
    ops_tensor before = x.tensor;
    before.offset = -4;
    case_expect(run, ops_unary(run->ops, OPS_NEG, &before, &z.tensor), wrong, NULL,
                "a tensor that begins before its buffer");
    zone_read(run, &z.zone, z.elements, "output");
    case_check(run, canary_first_broken(z.elements, z.zone.bytes) == z.zone.bytes,
               "a refused call wrote to its output");
}

/* Views of views, read through ops_tensor_read and made contiguous by ops_copy. */
static void run_views(case_run *run, const void *parameters)
{
    const int64_t shape[3] = {6, 10, 4}, flat[2] = {30, 8}, wide[4] = {3, 4, 5, 3};
    const int32_t axes[3] = {2, 1, 0};
    ops_tensor x = {0}, view = {0};
    int32_t elements[240], got[180], seen[240];
    for (int i = 0; i < 240; i++) {
        elements[i] = i;
    }
    case_ok(run, ops_tensor_from_host(run->ops, HAL_TYPE_I32, 3, shape, elements, &x),
            "ops_tensor_from_host");
    case_own_tensor(run, x);
    case_ok(run, ops_tensor_slice(&x, 1, 9, 5, -2, &view), "ops_tensor_slice");
    case_ok(run, ops_tensor_slice(&view, 0, 1, 3, 2, &view), "ops_tensor_slice");
    case_ok(run, ops_tensor_permute(&view, axes, &view), "ops_tensor_permute");
    case_ok(run, ops_tensor_broadcast(&view, 4, wide, &view), "ops_tensor_broadcast");
    ops_tensor copy = case_tensor(run, HAL_TYPE_I32, 4, wide);
    case_ok(run, ops_copy(run->ops, &view, &copy), "ops_copy");
    case_ok(run, ops_tensor_read(run->ops, &copy, sizeof got, got), "ops_tensor_read");
    for (int i = 0; i < 180; i++) {
        const int a = i / 15 % 4, b = i / 3 % 5, c = i % 3;
        const int expected = (1 + 2 * c) * 40 + (9 - 2 * b) * 4 + a;
        case_check(run, got[i] == expected, "element %d of the copy is %d instead of %d", i, got[i],
                   expected);
    }
    case_ok(run, ops_tensor_reshape(&x, 2, flat, &view), "ops_tensor_reshape");
    case_ok(run, ops_tensor_transpose(&view, 0, 1, &view), "ops_tensor_transpose");
    case_ok(run, ops_tensor_read(run->ops, &view, sizeof seen, seen), "ops_tensor_read");
    for (int i = 0; i < 240; i++) {
        const int expected = i % 30 * 8 + i / 30;
        case_check(run, seen[i] == expected, "element %d read is %d instead of %d", i, seen[i],
                   expected);
    }
    const hal_status wrong = HAL_ERROR_INVALID_ARGUMENT;
    const int64_t unfit[2] = {7, 9};
    const int32_t twice[3] = {0, 0, 1};
    case_expect(run, ops_tensor_slice(&x, 3, 0, 1, 1, &view), wrong, NULL, "a missing axis");
    case_expect(run, ops_tensor_slice(&x, 0, 4, 3, 1, &view), wrong, NULL, "a long slice");
    case_expect(run, ops_tensor_reshape(&x, 2, unfit, &view), wrong, NULL, "an unfit shape");
    case_expect(run, ops_tensor_permute(&x, twice, &view), wrong, NULL, "an axis named twice");
    case_expect(run, ops_tensor_read(run->ops, &x, 17, seen), wrong, NULL, "a wrong size");
}

/* Lines of an odd length, contiguous along another axis than those of one operand. */
static void add_ragged_lines(case_list *list)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_I16, HAL_TYPE_F64};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        const shape_case tested = {
            .rank = 2, .shape = {301, 267}, .y = LAYOUT_PERMUTED, .type = types[i]};
        case_add_member(list, &pointwise_shapes, &tested);
    }
}

void cases_ops_shapes(case_list *list)
{
    static const struct {
        uint32_t rank;
        int64_t shape[OPS_MAX_RANK];
    } shapes[] = {{0, {0}},
                  {1, {1}},
                  {1, {17}},
                  {1, {4097}},
                  {1, {0}},
                  {2, {3, 5}},
                  {2, {64, 64}},
                  {2, {1023, 3}},
                  {2, {1, 129}},
                  {3, {5, 0, 3}},
                  {3, {7, 1, 33}},
                  {4, {2, 3, 4, 5}},
                  {5, {3, 1, 5, 1, 7}},
                  {8, {2, 3, 2, 2, 3, 2, 2, 3}},
                  {16, {2, 2, 1, 2, 2, 2, 1, 3, 2, 2, 2, 2, 1, 2, 2, 2}}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        shape_case tested = {.rank = shapes[i].rank, .type = HAL_TYPE_F32};
        for (uint32_t d = 0; d < tested.rank; d++) {
            tested.shape[d] = shapes[i].shape[d];
        }
        for (int l = 0; l < LAYOUT_COUNT; l++) {
            const operand_layout layout = (operand_layout)l;
            tested.x = layout;
            tested.y = (operand_layout)((l + 2) % LAYOUT_COUNT);
            tested.z = layout == LAYOUT_BROADCAST ? LAYOUT_PLAIN : layout;
            tested.type = l % 2 == 0 ? HAL_TYPE_F32 : HAL_TYPE_I16;
            case_add_member(list, &pointwise_shapes, &tested);
        }
    }
    add_ragged_lines(list);
    for (int i = 0; i < 4; i++) {
        static const char *const names[] = {"row", "column", "missing_axes", "scalar"};
        case_add(list, run_broadcast, &i, sizeof i, "ops/broadcast(%s)", names[i]);
    }
    for (int i = 0; i < 2; i++) {
        static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16};
        case_add(list, run_short_lines, &types[i], sizeof types[i],
                 "ops/broadcast(short_lines,type=%s)", hal_type_name(types[i]));
    }
    case_add(list, run_outputs, NULL, 0, "ops/outputs(three_types)");
    for (int l = 0; l < (int)LAYOUT_BROADCAST; l++) {
        case_add(list, run_in_place, &l, sizeof l, "ops/in_place(layout=%s)",
                 layout_name((operand_layout)l));
    }
    case_add(list, run_inputs, NULL, 0, "ops/inputs(16)");
    case_add(list, run_long, NULL, 0, "ops/operations(64)");
    case_add(list, run_chain, NULL, 0, "ops/chain(relu_fma_sigmoid)");
    case_add(list, run_refusals, NULL, 0, "ops/refuses(pointwise)");
    case_add(list, run_views, NULL, 0, "ops/views(slice_permute_reshape_broadcast)");
}
