/* Bilinear algorithms of matrix multiplication, see bilinear.h. */
#include "bilinear.h"

#include "kernels/elementwise.h"
#include "tensor/dispatch.h"
#include "tensor/expression.h"
#include "tensor/kernel_cache.h"

#include <string.h>

enum { VIEW_FROM, VIEW_INPUTS }; /* the first views of a pass */
#define MAX_PASS_VIEWS (4u + OPS_MAX_INPUTS)

const ops_bilinear ops_strassen = {
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

/* What a pass is besides its tensors. */
OPS_KEY_STRUCTURES_BEGIN
typedef struct pass_form {
    uint8_t levels, combines, operand, has_addend;
    uint8_t has_expression, has_blocks, has_sums, input_count;
} pass_form;
OPS_KEY_STRUCTURES_END

/* The first block or product of a tensor, and how far others are from it: along rows and columns,
 * or, in steps[0], from number to number. */
typedef struct pass_view {
    ops_tensor whole, first;
    int64_t steps[2];
} pass_view;

/* A kernel and its dispatch. Views: the source, further inputs, the addend, blocks, operands. */
typedef struct pass_plan {
    const ops_bilinear_pass *pass;
    pass_form form;
    hal_type type;
    uint32_t view_count, output_view; /* views from output_view on are written */
    uint32_t addend_view, blocks_view, sums_view;
    pass_view views[MAX_PASS_VIEWS];
    uint8_t slots[MAX_PASS_VIEWS];
    ops_bindings bindings;
    ops_space space;
    ops_elementwise_plan plan;
} pass_plan;

/* The kernel that is emitted. */
typedef struct pass_emission {
    const pass_plan *p;
    hal_type index_type;
    hal_ir_value steps[MAX_PASS_VIEWS][2];
} pass_emission;

typedef hal_ir_value element_values[OPS_MAX_ELEMENTS];

/* The number of blocks along an axis, 2^levels. */
static int64_t block_count(uint32_t levels)
{
    return INT64_C(1) << levels;
}

static uint32_t power(uint32_t base, uint32_t exponent)
{
    return exponent == 0 ? 1 : base * power(base, exponent - 1);
}

static pass_view matrix_view(const ops_tensor *matrix, uint32_t levels)
{
    const int64_t *shape = matrix->shape + matrix->rank - 2;
    const int64_t *stride = matrix->stride + matrix->rank - 2;
    const int64_t count = block_count(levels);
    return (pass_view){*matrix,
                       {matrix->buffer,
                        matrix->type,
                        2,
                        matrix->offset,
                        {shape[0] / count, shape[1] / count},
                        {stride[0], stride[1]}},
                       {shape[0] / count * stride[0], shape[1] / count * stride[1]}};
}

static pass_view numbered_view(const ops_tensor *products)
{
    return (pass_view){*products,
                       {products->buffer,
                        products->type,
                        2,
                        products->offset,
                        {products->shape[1], products->shape[2]},
                        {products->stride[1], products->stride[2]}},
                       {products->stride[0], 0}};
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

/* sum + coefficient * value; of NONE, the value, whose coefficient is 1. */
static hal_ir_value sum_add(hal_ir_builder *b, hal_ir_value sum, int coefficient,
                            hal_ir_value value)
{
    if (coefficient == 0) {
        return sum;
    }
    return sum == HAL_IR_NONE ? value
           : coefficient > 0  ? hal_ir_add(b, sum, value)
                              : hal_ir_sub(b, sum, value);
}

/* index + count * step */
static hal_ir_value index_step(hal_ir_builder *b, const pass_emission *e, hal_ir_value index,
                               uint32_t count, hal_ir_value step)
{
    if (count == 0) {
        return index;
    }
    const hal_ir_value distance =
        count == 1 ? step : hal_ir_mul(b, step, ops_index_constant(b, e->index_type, count));
    return hal_ir_add(b, index, distance);
}

/* The elements of block or product `number` of a view. With two levels the first one decides about
 * the larger part of a block's row and column. */
static ops_element_iter part_iter(hal_ir_builder *b, const pass_emission *e,
                                  const ops_element_iter *iter, uint32_t view, bool is_numbered,
                                  uint32_t number)
{
    ops_element_iter part = *iter;
    uint32_t row = 0, column = 0;
    for (uint32_t l = e->p->form.levels; l-- > 0;) {
        const uint32_t block = number / power(OPS_BILINEAR_MAX_BLOCKS, l) % OPS_BILINEAR_MAX_BLOCKS;
        row = 2 * row + block / 2;
        column = 2 * column + block % 2;
    }
    hal_ir_value index = iter->index[view];
    if (is_numbered) {
        index = index_step(b, e, index, number, e->steps[view][0]);
    } else {
        index = index_step(b, e, index, row, e->steps[view][0]);
        index = index_step(b, e, index, column, e->steps[view][1]);
    }
    part.index[view] = index;
    return part;
}

static void part_load(hal_ir_builder *b, const pass_emission *e, const ops_element_iter *iter,
                      uint32_t view, bool is_numbered, uint32_t number, hal_ir_value *elements)
{
    const ops_element_iter part = part_iter(b, e, iter, view, is_numbered, number);
    ops_element_load(b, &part, view, e->p->slots[view], elements);
}

static void part_store(hal_ir_builder *b, const pass_emission *e, const ops_element_iter *iter,
                       uint32_t view, bool is_numbered, uint32_t number,
                       const hal_ir_value *elements)
{
    const ops_element_iter part = part_iter(b, e, iter, view, is_numbered, number);
    ops_element_store(b, &part, view, e->p->slots[view], elements);
}

/* The blocks that the products from `first` on combine to, of one level. */
static void level_combine(hal_ir_builder *b, const pass_emission *e, const ops_element_iter *iter,
                          uint32_t first, element_values blocks[OPS_BILINEAR_MAX_BLOCKS])
{
    element_values products[OPS_BILINEAR_MAX_RANK];
    for (uint32_t r = 0; r < ops_strassen.rank; r++) {
        part_load(b, e, iter, VIEW_FROM, 1, first + r, products[r]);
    }
    for (uint32_t l = 0; l < OPS_BILINEAR_MAX_BLOCKS; l++) {
        for (uint32_t x = 0; x < iter->width; x++) {
            hal_ir_value values[OPS_BILINEAR_MAX_RANK];
            for (uint32_t r = 0; r < ops_strassen.rank; r++) {
                values[r] = products[r][x];
            }
            blocks[l][x] = signed_sum(b, ops_strassen.w[l], values, ops_strassen.rank);
        }
    }
}

static void products_combine(hal_ir_builder *b, const pass_emission *e,
                             const ops_element_iter *iter, element_values *blocks)
{
    if (e->p->form.levels == 1) {
        level_combine(b, e, iter, 0, blocks);
        return;
    }
    for (uint32_t i = 0; i < OPS_BILINEAR_ALL_BLOCKS; i++) {
        for (uint32_t x = 0; x < iter->width; x++) {
            blocks[i][x] = HAL_IR_NONE;
        }
    }
    for (uint32_t r = 0; r < ops_strassen.rank; r++) {
        element_values inner[OPS_BILINEAR_MAX_BLOCKS];
        level_combine(b, e, iter, r * ops_strassen.rank, inner);
        for (uint32_t i = 0; i < OPS_BILINEAR_ALL_BLOCKS; i++) {
            const int coefficient = ops_strassen.w[i / OPS_BILINEAR_MAX_BLOCKS][r];
            for (uint32_t x = 0; x < iter->width; x++) {
                blocks[i][x] =
                    sum_add(b, blocks[i][x], coefficient, inner[i % OPS_BILINEAR_MAX_BLOCKS][x]);
            }
        }
    }
}

/* Replaces the elements of a block by what the epilogue makes of them. */
static void block_finish(hal_ir_builder *b, const pass_emission *e, const ops_element_iter *iter,
                         uint32_t block, hal_ir_value *values)
{
    const pass_plan *p = e->p;
    const ops_expression *expression = p->pass->expression;
    element_values addend, inputs[OPS_MAX_INPUTS];
    if (p->form.has_addend) {
        part_load(b, e, iter, p->addend_view, 0, block, addend);
    }
    for (uint32_t i = 0; i < p->form.input_count; i++) {
        part_load(b, e, iter, VIEW_INPUTS + i, 0, block, inputs[i]);
    }
    for (uint32_t x = 0; x < iter->width; x++) {
        if (p->form.has_addend) {
            values[x] = hal_ir_add(b, values[x], addend[x]);
        }
        if (expression) {
            const hal_ir_value no_index = hal_ir_u32(b, 0); /* declared, and not read */
            hal_ir_value all[OPS_MAX_INPUTS] = {values[x]};
            for (uint32_t i = 1; i < expression->input_count; i++) {
                all[i] = i < 4 ? no_index : inputs[i - 4][x];
            }
            hal_ir_splice(b, expression->fragment, all, expression->input_count, &values[x], 1);
        }
    }
}

/* Stores the operands from `first` on, of one level, that blocks are summed to. */
static void level_sum(hal_ir_builder *b, const pass_emission *e, const ops_element_iter *iter,
                      uint32_t first, element_values blocks[OPS_BILINEAR_MAX_BLOCKS])
{
    const pass_plan *p = e->p;
    const bool is_a = p->form.operand == OPS_BILINEAR_A;
    for (uint32_t r = 0; r < ops_strassen.rank; r++) {
        element_values sums;
        for (uint32_t x = 0; x < iter->width; x++) {
            hal_ir_value values[OPS_BILINEAR_MAX_BLOCKS];
            for (uint32_t i = 0; i < OPS_BILINEAR_MAX_BLOCKS; i++) {
                values[i] = blocks[i][x];
            }
            sums[x] = signed_sum(b, is_a ? ops_strassen.u[r] : ops_strassen.v[r], values,
                                 OPS_BILINEAR_MAX_BLOCKS);
        }
        part_store(b, e, iter, p->sums_view, 1, first + r, sums);
    }
}

static void blocks_sum(hal_ir_builder *b, const pass_emission *e, const ops_element_iter *iter,
                       element_values *blocks)
{
    const bool is_a = e->p->form.operand == OPS_BILINEAR_A;
    if (e->p->form.levels == 1) {
        level_sum(b, e, iter, 0, blocks);
        return;
    }
    for (uint32_t r = 0; r < ops_strassen.rank; r++) {
        element_values inner[OPS_BILINEAR_MAX_BLOCKS];
        for (uint32_t i = 0; i < OPS_BILINEAR_MAX_BLOCKS; i++) {
            for (uint32_t x = 0; x < iter->width; x++) {
                hal_ir_value values[OPS_BILINEAR_MAX_BLOCKS];
                for (uint32_t k = 0; k < OPS_BILINEAR_MAX_BLOCKS; k++) {
                    values[k] = blocks[k * OPS_BILINEAR_MAX_BLOCKS + i][x];
                }
                inner[i][x] = signed_sum(b, is_a ? ops_strassen.u[r] : ops_strassen.v[r], values,
                                         OPS_BILINEAR_MAX_BLOCKS);
            }
        }
        level_sum(b, e, iter, r * ops_strassen.rank, inner);
    }
}

static void emit_place(hal_ir_builder *b, const ops_element_iter *iter, const void *user)
{
    const pass_emission *e = user;
    const pass_form *form = &e->p->form;
    const uint32_t count = power(OPS_BILINEAR_MAX_BLOCKS, form->levels);
    element_values blocks[OPS_BILINEAR_ALL_BLOCKS];
    if (form->combines) {
        products_combine(b, e, iter, blocks);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!form->combines) {
            part_load(b, e, iter, VIEW_FROM, 0, i, blocks[i]);
        }
        block_finish(b, e, iter, i, blocks[i]);
        if (form->has_blocks) {
            part_store(b, e, iter, e->p->blocks_view, 0, i, blocks[i]);
        }
    }
    if (form->has_sums) {
        blocks_sum(b, e, iter, blocks);
    }
}

static void emit_pass(hal_ir_builder *b, const void *user)
{
    const pass_plan *p = user;
    pass_emission e = {.p = p};
    ops_layout_values values;
    ops_declare_bindings(b, &p->bindings);
    ops_elementwise_declare(b, &p->space, &p->plan, &values);
    e.index_type = values.type;
    for (uint32_t i = 0; i < p->view_count; i++) {
        for (uint32_t k = 0; k < 2; k++) {
            e.steps[i][k] = ops_scalar(b, "step", i, k, values.type);
        }
    }
    ops_elementwise_emit(b, &p->plan, &values, NULL, NULL, emit_place, &e);
}

static void plan_views(const ops_bilinear_pass *pass, pass_plan *p)
{
    p->view_count = 0;
    p->views[p->view_count++] =
        pass->combines ? numbered_view(pass->from) : matrix_view(pass->from, pass->levels);
    for (uint32_t i = 0; i < pass->input_count; i++) {
        p->views[p->view_count++] = matrix_view(&pass->inputs[i], pass->levels);
    }
    p->addend_view = p->view_count;
    if (pass->addend) {
        p->views[p->view_count++] = matrix_view(pass->addend, pass->levels);
    }
    p->output_view = p->blocks_view = p->view_count;
    if (pass->blocks) {
        p->views[p->view_count++] = matrix_view(pass->blocks, pass->levels);
    }
    p->sums_view = p->view_count;
    if (pass->sums) {
        p->views[p->view_count++] = numbered_view(pass->sums);
    }
}

/* Outputs first, so that an input in the same memory finds its output's binding. */
static hal_status plan_bind(const ops_context *context, pass_plan *p)
{
    p->bindings.count = 0;
    for (uint32_t i = 0; i < p->view_count; i++) {
        const uint32_t view = (i + p->output_view) % p->view_count;
        const uint32_t access = view >= p->output_view ? HAL_ACCESS_WRITE : HAL_ACCESS_READ;
        const uint32_t slot = ops_bind(context, &p->bindings, &p->views[view].whole, access);
        if (slot >= context->info->max_bindings) {
            return hal_status_set(HAL_ERROR_UNSUPPORTED,
                                  "ops_gemm: options.inputs: expected at most %u tensors, which %s "
                                  "binds, got %u",
                                  context->info->max_bindings, context->info->name, p->view_count);
        }
        p->slots[view] = (uint8_t)slot;
    }
    ops_bindings_merge(&p->bindings, p->slots, p->view_count);
    const ops_tensor *out = &p->views[p->output_view].first;
    ops_space_begin(&p->space, 2, out->shape);
    for (uint32_t i = 0; i < p->view_count; i++) {
        const pass_view *view = &p->views[i];
        ops_space_add(&p->space, &view->first, ops_base(&p->bindings, p->slots[i], &view->whole));
    }
    ops_space_collapse(&p->space, p->output_view);
    return HAL_OK;
}

/* The largest width, at most `widest`, for which all blocks of views that step by one start
 * aligned. */
static uint32_t aligned_width(const pass_plan *p, uint32_t widest)
{
    uint32_t width = widest;
    for (uint32_t i = 0; i < p->view_count; i++) {
        const pass_view *view = &p->views[i];
        const bool is_vector = p->space.stride[i][p->space.rank - 1] == 1;
        while (is_vector && width > 1 && (view->steps[0] | view->steps[1]) % width != 0) {
            width /= 2;
        }
    }
    return width;
}

/* The largest width of an access for which the values of all blocks take at most a quarter of a
 * work-item's registers, where the device tells how many it has. */
static uint32_t pass_widest(const ops_context *context, const pass_plan *p)
{
    const uint32_t registers = context->info->item_register_bytes, size = hal_type_size(p->type);
    const uint32_t blocks = (uint32_t)(block_count(p->form.levels) * block_count(p->form.levels));
    uint32_t width = ops_elementwise_widest(context, size);
    while (registers > 0 && width > 1 && 4 * blocks * width * size > registers) {
        width /= 2;
    }
    return width;
}

static hal_status plan_choose(const ops_context *context, pass_plan *p)
{
    uint64_t starts[MAX_PASS_VIEWS];
    ops_elementwise_use use = {.function = "ops_gemm", .starts = starts};
    for (uint32_t i = 0; i < p->view_count; i++) {
        const pass_view *view = &p->views[i];
        const hal_range *range = &p->bindings.ranges[p->slots[i]];
        const int64_t last = block_count(p->form.levels) - 1;
        const bool is_numbered = i >= p->sums_view || (i == VIEW_FROM && p->form.combines);
        const int64_t reach = is_numbered ? (view->whole.shape[0] - 1) * view->steps[0]
                                          : last * (view->steps[0] + view->steps[1]);
        starts[i] = range->offset / hal_type_size(view->whole.type);
        use.reach = reach > use.reach ? reach : use.reach;
    }
    use.reserved = p->view_count * 2 * 8;
    use.widest = aligned_width(p, pass_widest(context, p));
    return ops_elementwise_plan_init(context, &use, &p->space, &p->plan);
}

ops_tensor ops_bilinear_sums_layout(uint32_t levels, const ops_tensor *matrix)
{
    const int64_t *shape = matrix->shape + matrix->rank - 2;
    const int64_t *stride = matrix->stride + matrix->rank - 2;
    const int64_t rows = shape[0] >> levels, columns = shape[1] >> levels;
    const int by_columns = stride[1] != 1 && stride[0] == 1;
    return (ops_tensor){NULL,
                        matrix->type,
                        3,
                        0,
                        {power(ops_strassen.rank, levels), rows, columns},
                        {rows * columns, by_columns ? 1 : columns, by_columns ? rows : 1}};
}

bool ops_bilinear_can_combine(const hal_device_info *info, const ops_expression *expression,
                              uint32_t input_count)
{
    const uint32_t others = MAX_PASS_VIEWS - OPS_MAX_INPUTS;
    return input_count + others <= info->max_bindings &&
           !(expression && ops_expression_reads(expression, 1, 3)); /* row, column, batch */
}

static hal_status pass_record(ops_context *context, const ops_bilinear_pass *pass, pass_plan *p)
{
    p->pass = pass;
    p->type = pass->from->type;
    p->form = (pass_form){.levels = (uint8_t)pass->levels,
                          .combines = (uint8_t)pass->combines,
                          .operand = (uint8_t)(pass->sums ? pass->operand : 0),
                          .has_addend = pass->addend != NULL,
                          .has_expression = pass->expression != NULL,
                          .has_blocks = pass->blocks != NULL,
                          .has_sums = pass->sums != NULL,
                          .input_count = (uint8_t)pass->input_count};
    plan_views(pass, p);
    HAL_TRY(plan_bind(context, p));
    HAL_TRY(plan_choose(context, p));
    ops_cache_key key;
    ops_entry *entry;
    ops_cache_key_begin(&key, OPS_FAMILY_BILINEAR);
    ops_cache_key_append(&key, &p->form, sizeof p->form);
    if (pass->expression) {
        ops_cache_key_append(&key, pass->expression->hash, sizeof pass->expression->hash);
    }
    ops_bindings_key(&p->bindings, p->slots, p->view_count, &key);
    ops_elementwise_key(&p->space, &p->plan, &key);
    HAL_TRY(ops_cache_get(context, &key, pass->combines ? "gemm_combine" : "gemm_operand_sums",
                          emit_pass, p, &entry));
    ops_block block;
    ops_block_begin(&block);
    ops_elementwise_put(&p->space, &p->plan, &block);
    for (uint32_t i = 0; i < p->view_count; i++) {
        for (uint32_t k = 0; k < 2; k++) {
            ops_put_index(&block, p->plan.layout.index64, p->views[i].steps[k]);
        }
    }
    return ops_dispatch(context, entry, p->plan.grid, &p->bindings, &block);
}

hal_status ops_bilinear_record(ops_context *context, const ops_bilinear_pass *pass)
{
    pass_plan *p = ops_scratch_take(&context->scratch, "ops_gemm", sizeof *p);
    if (!p) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    const hal_status status = pass_record(context, pass, p);
    ops_scratch_return(&context->scratch, p);
    return status;
}
