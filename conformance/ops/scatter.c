/* scatter.c: updates of picked elements, several of one element in their order. */
#include <math.h>
#include <stdio.h>

#include "case/cases.h"
#include "ops/fixture.h"

typedef struct scatter_case {
    hal_type type, index_type;
    ops_scatter_kind kind;
    uint32_t axis;
    int64_t shape[3];
    int64_t updates; /* along the axis */
    operand_layout layout;
    bool by_rows; /* the indices have one axis and are broadcast */
} scatter_case;

static const case_size scatter_sizes[] = {
    CASE_SIZE(scatter_case, shape[0], "shape", 0, 1),
    CASE_SIZE(scatter_case, shape[1], "shape", 1, 1),
    CASE_SIZE(scatter_case, shape[2], "shape", 2, 1),
    CASE_SIZE(scatter_case, updates, "updates", 0, 1),
};

static const char *const kind_names[OPS_SCATTER_KIND_COUNT] = {"assign", "add", "multiply", "max",
                                                               "min"};

/* Floats whose sums tell the order of additions; small whole numbers of narrow floats, which are
 * rounded once; integers that wrap. */
static void fill(const scatter_case *tested, operand *filled, random_state *random)
{
    if (hal_type_is_float(tested->type) && hal_type_is_value(tested->type)) {
        operand_fill(filled, random, -3.0, 3.0);
        return;
    }
    if (hal_type_is_float(tested->type)) {
        operand_fill(filled, random, 0.0, 3.0);
        for (size_t i = 0; i < filled->count; i++) {
            number_put(filled->type, filled->elements, i, floor(operand_get(filled, i)));
        }
        return;
    }
    for (size_t i = 0; i < filled->count; i++) {
        number_store(filled->type, filled->elements, i,
                     tested->type == HAL_TYPE_BOOL ? i % 3 == 0
                                                   : random_bits(random, filled->type));
    }
}

static uint64_t combine_integers(const scatter_case *tested, uint64_t x, uint64_t y)
{
    const int64_t a = number_signed(tested->type, x), b = number_signed(tested->type, y);
    const bool is_less = hal_type_is_signed(tested->type) ? a < b : (uint64_t)a < (uint64_t)b;
    switch (tested->kind) {
    case OPS_SCATTER_ASSIGN:
        return y;
    case OPS_SCATTER_ADD:
        return x + y;
    case OPS_SCATTER_MULTIPLY:
        return x * y;
    case OPS_SCATTER_MAX:
        return is_less ? y : x;
    default:
        return is_less ? x : y;
    }
}

static double combine_floats(const scatter_case *tested, double x, double y)
{
    switch (tested->kind) {
    case OPS_SCATTER_ASSIGN:
        return y;
    case OPS_SCATTER_ADD:
        return x + y;
    case OPS_SCATTER_MULTIPLY:
        return x * y;
    case OPS_SCATTER_MAX:
        return fmax(x, y);
    default:
        return fmin(x, y);
    }
}

static void reference(const scatter_case *tested, const operand *indices, const operand *updates,
                      uint8_t *expected)
{
    const int64_t *shape = tested->shape;
    int64_t in[3] = {shape[0], shape[1], shape[2]};
    in[tested->axis] = tested->updates;
    for (size_t i = 0; i < updates->count; i++) {
        size_t at[3] = {i / (size_t)(in[1] * in[2]), i / (size_t)in[2] % (size_t)in[1],
                        i % (size_t)in[2]};
        const double index = operand_get(indices, tested->by_rows ? at[tested->axis] : i);
        if (!(index >= 0.0 && index < (double)shape[tested->axis])) {
            continue;
        }
        at[tested->axis] = (size_t)index;
        const size_t to = (at[0] * (size_t)shape[1] + at[1]) * (size_t)shape[2] + at[2];
        if (hal_type_is_float(tested->type)) {
            number_put(tested->type, expected, to,
                       combine_floats(tested, number_get(tested->type, expected, to),
                                      operand_get(updates, i)));
        } else {
            number_store(tested->type, expected, to,
                         combine_integers(tested, number_load(tested->type, expected, to),
                                          number_load(tested->type, updates->elements, i)));
        }
    }
}

static void run_scatter(case_run *run, const void *parameters)
{
    const scatter_case *tested = parameters;
    random_state random = {run->seed};
    case_claim_storage(run, tested->type);
    case_claim_arithmetic(run, tested->type);
    case_claim_arithmetic(run, tested->index_type);
    int64_t in[3] = {tested->shape[0], tested->shape[1], tested->shape[2]};
    in[tested->axis] = tested->updates;
    operand y = operand_create(run, tested->type, 3, tested->shape, LAYOUT_PLAIN);
    operand updates = operand_create(run, tested->type, 3, in, tested->layout);
    operand indices = operand_create(run, tested->index_type, tested->by_rows ? 1 : 3,
                                     tested->by_rows ? &tested->updates : in,
                                     tested->by_rows ? LAYOUT_PLAIN : tested->layout);
    uint8_t *expected = case_allocate(run, y.count, 8);
    const double limit = (double)tested->shape[tested->axis];
    fill(tested, &y, &random);
    fill(tested, &updates, &random);
    for (size_t i = 0; i < indices.count; i++) {
        const double index =
            i % 9 == 4 ? (i % 2 ? -1.0 : limit) : floor(random_between(&random, 0.0, limit));
        number_put(indices.type, indices.elements, i, index);
    }
    for (size_t i = 0; i < y.count; i++) {
        number_store(y.type, expected, i, number_load(y.type, y.elements, i));
    }
    reference(tested, &indices, &updates, expected);
    operand_upload(run, &y);
    operand_upload(run, &updates);
    operand_upload(run, &indices);
    ops_tensor picks = indices.tensor;
    if (tested->by_rows) { /* along the axis, the same for all others */
        picks.rank = 3;
        for (uint32_t i = 0; i < 3; i++) {
            picks.shape[i] = in[i];
            picks.stride[i] = i == tested->axis ? indices.tensor.stride[0] : 0;
        }
    }
    case_ok(run,
            ops_scatter(run->ops, tested->kind, (int32_t)tested->axis, &picks, &updates.tensor,
                        &y.tensor),
            "ops_scatter");
    operand_download(run, &y, "result");
    operand_check_bits(run, &y, expected, false, "result");
}

static void print_scatter(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    const scatter_case *tested = parameters;
    snprintf(name, bytes,
             "ops/scatter(kind=%s,type=%s,shape=%lldx%lldx%lld,axis=%u,updates=%lld,indices=%s,"
             "layout=%s,rows=%d,seed=%llu)",
             kind_names[tested->kind], hal_type_name(tested->type), (long long)tested->shape[0],
             (long long)tested->shape[1], (long long)tested->shape[2], tested->axis,
             (long long)tested->updates, hal_type_name(tested->index_type),
             layout_name(tested->layout), tested->by_rows, (unsigned long long)seed);
}

static const case_family scatters = {.function = run_scatter,
                                     .bytes = sizeof(scatter_case),
                                     .sizes = scatter_sizes,
                                     .size_count = 4,
                                     .print = print_scatter};

static void run_refusals(case_run *run, const void *parameters)
{
    const int64_t shape[2] = {4, 6}, row[1] = {6};
    const hal_status wrong = HAL_ERROR_INVALID_ARGUMENT;
    const ops_scatter_kind add = OPS_SCATTER_ADD;
    ops_tensor x = case_tensor(run, HAL_TYPE_F32, 2, shape);
    ops_tensor y = case_tensor(run, HAL_TYPE_F32, 2, shape);
    ops_tensor i = case_tensor(run, HAL_TYPE_I32, 2, shape);
    ops_tensor few = case_tensor(run, HAL_TYPE_I32, 1, row);
    case_expect(run, ops_scatter(run->ops, add, 0, &few, &x, &y), wrong, NULL, "few indices");
    case_expect(run, ops_scatter(run->ops, add, 0, &x, &x, &y), wrong, NULL, "indices of f32");
    case_expect(run, ops_scatter(run->ops, add, 0, &i, &i, &y), wrong, NULL, "other updates");
    case_expect(run, ops_scatter(run->ops, add, 0, &i, &y, &y), wrong, NULL, "updates that are y");
    case_expect(run, ops_scatter(run->ops, add, 2, &i, &x, &y), wrong, NULL, "axis 2");
}

void cases_ops_scatter(case_list *list)
{
    uint32_t turn = 0;
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        for (uint32_t i = 0; i < (type == HAL_TYPE_BOOL ? 1u : 2u); i++, turn++) {
            const uint32_t kind = i ? 1 + (turn / 2) % (OPS_SCATTER_KIND_COUNT - 1) : 0;
            const scatter_case tested = {.type = type,
                                         .index_type = turn % 2 ? HAL_TYPE_I32 : HAL_TYPE_I64,
                                         .kind = (ops_scatter_kind)kind,
                                         .axis = turn % 3,
                                         .shape = {6, 9, 11},
                                         .updates = turn % 4 == 1 ? 40 : 7,
                                         .layout = (operand_layout)(turn % LAYOUT_BROADCAST),
                                         .by_rows = turn % 4 > 1};
            case_add_member(list, &scatters, &tested);
            case_covers(list, type, CASE_BINDING, "ops scatter");
        }
    }
    /* Gradients of an embedding; many updates of few elements, more than a block that is sorted. */
    const scatter_case rows = {.type = HAL_TYPE_F32,
                               .index_type = HAL_TYPE_I64,
                               .kind = OPS_SCATTER_ADD,
                               .shape = {50, 1, 33},
                               .updates = 3000,
                               .by_rows = true};
    case_add_member(list, &scatters, &rows);
    /* More: GPUs sort the indices by digits, of one and two bytes. */
    for (uint32_t i = 0; i < 3; i++) {
        const scatter_case many = {.type = i ? HAL_TYPE_F32 : HAL_TYPE_I32,
                                   .index_type = i ? HAL_TYPE_I32 : HAL_TYPE_I64,
                                   .kind = i ? OPS_SCATTER_ADD : OPS_SCATTER_ASSIGN,
                                   .axis = i == 2 ? 1 : 0,
                                   .shape = {i ? 3 : 700, i == 2 ? 90 : 2, 1},
                                   .updates = i == 2 ? 5001 : 17001,
                                   .by_rows = i < 2};
        case_add_member(list, &scatters, &many);
    }
    case_add(list, run_refusals, NULL, 0, "ops/refuses(scatter)");
}
