/* Bilinear algorithms of matrix multiplication, see bilinear.h. */
#include "bilinear.h"

#include "tensor/expression.h"

#include <string.h>

const ops_bilinear ops_strassen = {
    .name = "strassen",
    .m = 2,
    .n = 2,
    .k = 2,
    .rank = 7,
    .u = {{1, 0, 0, 1},
          {0, 0, 1, 1},
          {1, 0, 0, 0},
          {0, 0, 0, 1},
          {1, 1, 0, 0},
          {-1, 0, 1, 0},
          {0, 1, 0, -1}},
    .v = {{1, 0, 0, 1},
          {1, 0, 0, 0},
          {0, 1, 0, -1},
          {-1, 0, 1, 0},
          {0, 0, 0, 1},
          {1, 1, 0, 0},
          {0, 0, 1, 1}},
    .w = {{1, 0, 0, 1, -1, 0, 1},
          {0, 0, 1, 0, 1, 0, 0},
          {0, 1, 0, 1, 0, 0, 0},
          {1, -1, 1, 0, 0, 1, 0}},
};

/* Block `block` of each of the matrices of a tensor [parts, rows, columns] divided into
 * rows x columns blocks: a view of rank 3. */
static ops_tensor block_view(const ops_tensor *matrices, uint32_t rows, uint32_t columns,
                             uint32_t block)
{
    ops_tensor view = *matrices;
    view.shape[1] /= rows;
    view.shape[2] /= columns;
    view.offset += block / columns * view.shape[1] * view.stride[1] +
                   block % columns * view.shape[2] * view.stride[2];
    return view;
}

/* Matrix `number` of each part of a tensor [parts * rank, rows, columns]. */
static ops_tensor product_view(const ops_tensor *products, uint32_t rank, uint32_t number)
{
    ops_tensor view = *products;
    view.shape[0] /= rank;
    view.offset += number * view.stride[0];
    view.stride[0] *= rank;
    return view;
}

/* The sum of values with coefficients of -1, 0 and 1, of which one at least is not 0. */
static hal_ir_value signed_sum(hal_ir_builder *b, const int8_t *coefficients,
                               const hal_ir_value *values, uint32_t count)
{
    hal_ir_value sum = HAL_IR_NONE;
    for (uint32_t i = 0; i < count; i++) { /* a positive term first saves a negation */
        if (coefficients[i] > 0) {
            sum = sum == HAL_IR_NONE ? values[i] : hal_ir_add(b, sum, values[i]);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (coefficients[i] < 0) {
            sum = sum == HAL_IR_NONE ? hal_ir_neg(b, values[i]) : hal_ir_sub(b, sum, values[i]);
        }
    }
    return sum;
}

static hal_status sums_expression(const ops_bilinear *algorithm, ops_bilinear_operand operand,
                                  uint32_t blocks, hal_type type, ops_expression **expression)
{
    hal_ir_builder *b;
    hal_ir_value values[OPS_BILINEAR_MAX_BLOCKS];
    hal_status status = hal_ir_builder_create_fragment("gemm_operand_sums", &b);
    if (status) {
        return status;
    }
    for (uint32_t i = 0; i < blocks; i++) {
        values[i] = hal_ir_input(b, i, type);
    }
    for (uint32_t r = 0; r < algorithm->rank; r++) {
        const int8_t *row = operand == OPS_BILINEAR_A ? algorithm->u[r] : algorithm->v[r];
        hal_ir_output(b, r, signed_sum(b, row, values, blocks));
    }
    return ops_expression_create(b, expression);
}

/* A tensor [parts, rows, columns] whose last two axes have the order in memory of `like`. */
static hal_status matrices_create(ops_context *context, const ops_tensor *like,
                                  const int64_t shape[3], ops_tensor *made)
{
    const int by_columns = like->stride[2] != 1 && like->stride[1] == 1;
    const int64_t stored[3] = {shape[0], shape[by_columns ? 2 : 1], shape[by_columns ? 1 : 2]};
    hal_status status = ops_tensor_create(context, like->type, 3, stored, made);
    if (!status && by_columns) {
        const ops_tensor stored_tensor = *made;
        status = ops_tensor_transpose(&stored_tensor, 1, 2, made);
    }
    return status;
}

hal_status ops_bilinear_sums_create(ops_context *context, const ops_bilinear *algorithm,
                                    ops_bilinear_operand operand, const ops_tensor *from,
                                    ops_tensor *sums)
{
    const int is_a = operand == OPS_BILINEAR_A;
    const int64_t shape[3] = {from->shape[0] * algorithm->rank,
                              from->shape[1] / (is_a ? algorithm->m : algorithm->k),
                              from->shape[2] / (is_a ? algorithm->k : algorithm->n)};
    return matrices_create(context, from, shape, sums);
}

hal_status ops_bilinear_sums(ops_context *context, const ops_bilinear *algorithm,
                             ops_bilinear_operand operand, const ops_tensor *from,
                             const ops_tensor *sums)
{
    const uint32_t rows = operand == OPS_BILINEAR_A ? algorithm->m : algorithm->k;
    const uint32_t columns = operand == OPS_BILINEAR_A ? algorithm->k : algorithm->n;
    const uint32_t blocks = rows * columns, rank = algorithm->rank;
    ops_tensor inputs[OPS_BILINEAR_MAX_BLOCKS], outputs[OPS_BILINEAR_MAX_RANK];
    ops_expression *expression = NULL;
    hal_status status =
        sums_expression(algorithm, operand, blocks, hal_type_of_value(from->type), &expression);
    if (!status) {
        for (uint32_t i = 0; i < blocks; i++) {
            inputs[i] = block_view(from, rows, columns, i);
        }
        for (uint32_t r = 0; r < rank; r++) {
            outputs[r] = product_view(sums, rank, r);
        }
        status = ops_pointwise(context, expression, inputs, blocks, outputs, rank);
    }
    ops_expression_destroy(expression);
    return status;
}

/* The inputs of the combining kernel: the products, the blocks of the addend, the blocks of each
 * further input. */
static uint32_t combine_input_count(const ops_bilinear *algorithm,
                                    const ops_bilinear_epilogue *epilogue)
{
    const uint32_t blocks = (uint32_t)algorithm->m * algorithm->n;
    const uint32_t per_block = epilogue ? (epilogue->addend != NULL) + epilogue->input_count : 0;
    return algorithm->rank + blocks * per_block;
}

/* Whether a fragment reads its inputs 1 to 3: row, column and batch. */
static int reads_indices(const hal_ir_kernel *fragment)
{
    for (uint32_t i = 0; i < fragment->record_count; i++) {
        hal_ir_value operands[4];
        const uint32_t count = hal_ir_operands(&fragment->records[i], operands);
        for (uint32_t j = 0; j < count; j++) {
            const hal_ir_record *from = &fragment->records[operands[j]];
            if (from->opcode == HAL_IR_INPUT && from->aux >= 1 && from->aux <= 3) {
                return 1;
            }
        }
    }
    return 0;
}

int ops_bilinear_can_combine(const ops_bilinear *algorithm, const ops_bilinear_epilogue *epilogue)
{
    return combine_input_count(algorithm, epilogue) <= OPS_MAX_INPUTS &&
           !(epilogue->expression && reads_indices(epilogue->expression->fragment));
}

/* The value of one block of C. `addend` and `inputs` are those of the block. */
static hal_ir_value block_value(hal_ir_builder *b, hal_ir_value sum, hal_ir_value addend,
                                const ops_bilinear_epilogue *epilogue, const hal_ir_value *inputs)
{
    const ops_expression *e = epilogue ? epilogue->expression : NULL;
    hal_ir_value all[OPS_MAX_INPUTS], result = sum;
    if (addend != HAL_IR_NONE) {
        result = hal_ir_add(b, sum, addend);
    }
    if (e) {
        const hal_ir_value no_index = hal_ir_u32(b, 0); /* declared, and not read */
        all[0] = result;
        for (uint32_t i = 1; i < e->input_count; i++) {
            all[i] = i < 4 ? no_index : inputs[i - 4];
        }
        hal_ir_splice(b, e->fragment, all, e->input_count, &result, 1);
    }
    return result;
}

static hal_status combine_expression(const ops_bilinear *algorithm, hal_type type,
                                     const ops_bilinear_epilogue *epilogue,
                                     ops_expression **expression)
{
    hal_ir_builder *b;
    hal_ir_value products[OPS_BILINEAR_MAX_RANK], inputs[OPS_MAX_INPUTS];
    const uint32_t blocks = (uint32_t)algorithm->m * algorithm->n, rank = algorithm->rank;
    const uint32_t further = epilogue ? epilogue->input_count : 0;
    hal_status status = hal_ir_builder_create_fragment("gemm_combine", &b);
    if (status) {
        return status;
    }
    uint32_t next = 0;
    while (next < rank) {
        products[next] = hal_ir_input(b, next, type);
        next++;
    }
    for (uint32_t l = 0; l < blocks; l++) {
        hal_ir_value addend = HAL_IR_NONE;
        if (epilogue && epilogue->addend) {
            addend = hal_ir_input(b, next++, type);
        }
        for (uint32_t i = 0; i < further; i++) {
            inputs[i] = hal_ir_input(b, next++, hal_type_of_value(epilogue->inputs[i].type));
        }
        const hal_ir_value sum = signed_sum(b, algorithm->w[l], products, rank);
        hal_ir_output(b, l, block_value(b, sum, addend, epilogue, inputs));
    }
    return ops_expression_create(b, expression);
}

/* A further input as [parts, rows, columns] with the strides of its broadcast to C. */
static ops_tensor input_view(const ops_tensor *input, const ops_tensor *c)
{
    ops_tensor view = *input;
    view.rank = 3;
    ops_broadcast_strides(input, 3, c->shape, view.stride);
    memcpy(view.shape, c->shape, 3 * sizeof *view.shape);
    return view;
}

hal_status ops_bilinear_combine(ops_context *context, const ops_bilinear *algorithm,
                                const ops_tensor *products, const ops_bilinear_epilogue *epilogue,
                                const ops_tensor *c)
{
    const uint32_t blocks = (uint32_t)algorithm->m * algorithm->n, rank = algorithm->rank;
    ops_tensor inputs[OPS_MAX_INPUTS], outputs[OPS_BILINEAR_MAX_BLOCKS];
    ops_expression *expression = NULL;
    uint32_t count = 0;
    for (uint32_t r = 0; r < rank; r++) {
        inputs[count++] = product_view(products, rank, r);
    }
    for (uint32_t l = 0; l < blocks; l++) {
        outputs[l] = block_view(c, algorithm->m, algorithm->n, l);
        if (epilogue && epilogue->addend) {
            inputs[count++] = block_view(epilogue->addend, algorithm->m, algorithm->n, l);
        }
        for (uint32_t i = 0; epilogue && i < epilogue->input_count; i++) {
            const ops_tensor view = input_view(&epilogue->inputs[i], c);
            inputs[count++] = block_view(&view, algorithm->m, algorithm->n, l);
        }
    }
    hal_status status =
        combine_expression(algorithm, hal_type_of_value(products->type), epilogue, &expression);
    if (!status) {
        status = ops_pointwise(context, expression, inputs, count, outputs, blocks);
    }
    ops_expression_destroy(expression);
    return status;
}
