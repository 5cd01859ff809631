/* scatter.c: updates of picked elements, several of one element in their order; and by atomic
 * operations, which give sums of floats a definition that knows no order. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    bool is_hard; /* values of all magnitudes, infinities, NaN, and pairs that cancel */
    ops_scatter_order order;
} scatter_case;

static const case_size scatter_sizes[] = {
    CASE_SIZE(scatter_case, shape[0], "shape", 0, 1),
    CASE_SIZE(scatter_case, shape[1], "shape", 1, 1),
    CASE_SIZE(scatter_case, shape[2], "shape", 2, 1),
    CASE_SIZE(scatter_case, updates, "updates", 0, 1),
};

static const char *const kind_names[OPS_SCATTER_KIND_COUNT] = {"assign", "add", "multiply", "max",
                                                               "min"};

/* Any bits, of which few are infinite or NaN, so that some elements get none, some one kind, some
 * several; whole numbers and zeros; the number before with the other sign. */
static void fill_hard(const scatter_case *tested, operand *filled, random_state *random)
{
    static const double special[] = {INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < filled->count; i++) {
        const uint64_t bits = random_bits(random, filled->type);
        if (i % 3 == 0) {
            number_store(filled->type, filled->elements, i, bits);
            const double number = operand_get(filled, i);
            if (random_bits(random, HAL_TYPE_U32) % (uint64_t)(1 + tested->updates) == 0) {
                number_put(filled->type, filled->elements, i, special[i / 3 % 3]);
            } else if (!isfinite(number)) {
                number_put(filled->type, filled->elements, i, 1);
            }
        } else if (i % 3 == 1) {
            number_put(filled->type, filled->elements, i, -operand_get(filled, i - 1));
        } else {
            number_put(filled->type, filled->elements, i,
                       copysign(bits >> 1 & 3, bits & 1 ? -1 : 1));
        }
    }
}

/* Floats whose sums tell the order of additions and how often they are rounded; integers that
 * wrap. */
static void fill(const scatter_case *tested, operand *filled, random_state *random)
{
    if (tested->is_hard) {
        fill_hard(tested, filled, random);
        return;
    }
    if (hal_type_is_float(tested->type)) {
        operand_fill(filled, random, -3.0, 3.0);
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
    default:
        if (isnan(x) || isnan(y)) {
            return NAN;
        }
        /* Of two zeros -0 is the smaller one. */
        const bool is_less = x < y || (x == y && signbit(x));
        return (tested->kind == OPS_SCATTER_MAX) == is_less ? y : x;
    }
}

/* A sum by its definition: of multiples of a unit that depends on the greatest member. */
typedef struct fixed_sum {
    double most, special; /* the latter: the sum of infinities and NaN */
    int64_t sum;
    bool has_zero; /* one that is not -0 */
} fixed_sum;

static bool is_sum(const scatter_case *tested)
{
    return tested->order == OPS_SCATTER_ATOMIC && tested->kind == OPS_SCATTER_ADD &&
           hal_type_is_float(tested->type) && tested->type != HAL_TYPE_F64;
}

static void sum_see(fixed_sum *sum, double x)
{
    if (isfinite(x)) {
        sum->most = fmax(sum->most, fabs(x));
        sum->has_zero |= x != 0 || !signbit(x);
    } else {
        sum->special += x;
    }
}

/* The exponent of the unit: F32 have none below -126. */
static int sum_unit(const scatter_case *tested, const fixed_sum *sum)
{
    int guard = 1;
    while (INT64_C(1) << guard < tested->updates + 1) {
        guard++;
    }
    const int exponent = sum->most > 0 ? ilogb(sum->most) : -126;
    return (exponent < -126 ? -126 : exponent) - 61 + guard;
}

static void sum_add(const scatter_case *tested, fixed_sum *sum, double x)
{
    sum->sum += isfinite(x) ? llround(ldexp(x, -sum_unit(tested, sum))) : 0;
}

/* In double precision, with a last bit that rounds right once more. */
static double sum_value(const scatter_case *tested, const fixed_sum *sum)
{
    const int64_t size = llabs(sum->sum), cut = size >> 9;
    const double value = (double)(cut | ((size & 511) != 0));
    const double exact = size < INT64_C(1) << 53 ? (double)size : value * 512;
    return sum->special != 0 ? sum->special
           : sum->sum == 0   ? (sum->has_zero ? 0.0 : -0.0)
                             : copysign(ldexp(exact, sum_unit(tested, sum)), (double)sum->sum);
}

/* `own` of an element before its updates, `elements` of them all. */
static void sums_reference(const scatter_case *tested, const size_t *targets,
                           const operand *updates, fixed_sum *sums, uint8_t *expected,
                           size_t elements)
{
    for (size_t i = 0; i < elements; i++) {
        sums[i] = (fixed_sum){0};
        sum_see(&sums[i], number_get(tested->type, expected, i));
    }
    for (size_t i = 0; i < updates->count; i++) {
        if (targets[i] < elements) {
            sum_see(&sums[targets[i]], operand_get(updates, i));
        }
    }
    for (size_t i = 0; i < elements; i++) {
        sum_add(tested, &sums[i], number_get(tested->type, expected, i));
    }
    for (size_t i = 0; i < updates->count; i++) {
        if (targets[i] < elements) {
            sum_add(tested, &sums[targets[i]], operand_get(updates, i));
        }
    }
    for (size_t i = 0; i < elements; i++) {
        number_put(tested->type, expected, i, sum_value(tested, &sums[i]));
    }
}

/* The element of y that each update is for; SIZE_MAX: none. */
static void find_targets(const scatter_case *tested, const operand *indices, size_t count,
                         size_t *targets)
{
    const int64_t *shape = tested->shape;
    int64_t in[3] = {shape[0], shape[1], shape[2]};
    in[tested->axis] = tested->updates;
    for (size_t i = 0; i < count; i++) {
        size_t at[3] = {i / (size_t)(in[1] * in[2]), i / (size_t)in[2] % (size_t)in[1],
                        i % (size_t)in[2]};
        const double index = operand_get(indices, tested->by_rows ? at[tested->axis] : i);
        const bool is_inside = index >= 0.0 && index < (double)shape[tested->axis];
        at[tested->axis] = is_inside ? (size_t)index : 0;
        targets[i] = (at[0] * (size_t)shape[1] + at[1]) * (size_t)shape[2] + at[2];
        targets[i] = is_inside ? targets[i] : SIZE_MAX;
    }
}

/* Of narrow floats in F32, which is rounded to the type at the end. */
static void reference(const scatter_case *tested, const size_t *targets, const operand *updates,
                      double *floats, uint8_t *expected, size_t elements)
{
    const bool is_float = hal_type_is_float(tested->type), is_f64 = tested->type == HAL_TYPE_F64;
    for (size_t i = 0; is_float && i < elements; i++) {
        floats[i] = number_get(tested->type, expected, i);
    }
    for (size_t i = 0; i < updates->count; i++) {
        const size_t to = targets[i];
        if (to == SIZE_MAX) {
            continue;
        }
        if (is_float) {
            const double value = combine_floats(tested, floats[to], operand_get(updates, i));
            floats[to] = is_f64 ? value : (double)(float)value;
        } else {
            number_store(tested->type, expected, to,
                         combine_integers(tested, number_load(tested->type, expected, to),
                                          number_load(tested->type, updates->elements, i)));
        }
    }
    for (size_t i = 0; is_float && i < elements; i++) {
        number_put(tested->type, expected, i, floats[i]);
    }
}

static void run_scatter(case_run *run, const void *parameters)
{
    const scatter_case *tested = parameters;
    random_state random = {run->seed};
    case_claim_storage(run, tested->type);
    case_claim_arithmetic(run, tested->type);
    case_claim_arithmetic(run, tested->index_type);
    if (is_sum(tested) && !(run->info->features & HAL_FEATURE_ATOMIC_64)) {
        case_unsupported(run, "64-bit atomics, without which it is an ordered sum");
    }
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
    size_t *targets = case_allocate(run, updates.count, sizeof *targets);
    find_targets(tested, &indices, updates.count, targets);
    if (is_sum(tested)) {
        fixed_sum *sums = case_allocate(run, y.count, sizeof *sums);
        sums_reference(tested, targets, &updates, sums, expected, y.count);
    } else {
        double *floats = case_allocate(run, y.count, sizeof *floats);
        reference(tested, targets, &updates, floats, expected, y.count);
    }
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
    ops_context_set_scatter(run->ops, tested->order);
    const hal_status status = ops_scatter(run->ops, tested->kind, (int32_t)tested->axis, &picks,
                                          &updates.tensor, &y.tensor);
    ops_context_set_scatter(run->ops, OPS_SCATTER_ORDERED);
    case_ok(run, status, "ops_scatter");
    operand_download(run, &y, "result");
    operand_check_bits(run, &y, expected, tested->is_hard, "result");
}

static void print_scatter(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    const scatter_case *tested = parameters;
    const bool is_atomic = tested->order == OPS_SCATTER_ATOMIC;
    snprintf(name, bytes,
             "ops/scatter%s(kind=%s,type=%s,shape=%lldx%lldx%lld,axis=%u,updates=%lld,indices=%s,"
             "layout=%s,rows=%d%s,seed=%llu)",
             is_atomic ? "_atomic" : "", kind_names[tested->kind], hal_type_name(tested->type),
             (long long)tested->shape[0], (long long)tested->shape[1], (long long)tested->shape[2],
             tested->axis, (long long)tested->updates, hal_type_name(tested->index_type),
             layout_name(tested->layout), tested->by_rows,
             !is_atomic        ? ""
             : tested->is_hard ? ",hard=1"
                               : ",hard=0",
             (unsigned long long)seed);
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

/* By atomic operations: each type and kind, with values that are hard for sums and order. */
static void add_atomic(case_list *list)
{
    uint32_t turn = 0;
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        for (uint32_t kind = 0; kind < (type == HAL_TYPE_BOOL ? 1u : 5u); kind++, turn++) {
            const bool is_float = hal_type_is_float(type) && type != HAL_TYPE_F64;
            const scatter_case tested = {.type = type,
                                         .index_type = turn % 2 ? HAL_TYPE_I32 : HAL_TYPE_I64,
                                         .kind = (ops_scatter_kind)kind,
                                         .axis = turn % 3,
                                         .shape = {6, turn % 5 ? 9 : 50, 11},
                                         .updates = turn % 4 == 1 ? 40 : 7,
                                         .layout = (operand_layout)(turn % LAYOUT_BROADCAST),
                                         .by_rows = turn % 4 > 1,
                                         .is_hard = is_float && kind != OPS_SCATTER_MULTIPLY,
                                         .order = OPS_SCATTER_ATOMIC};
            case_add_member(list, &scatters, &tested);
        }
    }
    /* Sums: all updates of one element; several elements with copies of their sums; 10^6 elements
     * of which few have updates, and most; rows. */
    static const struct {
        int64_t shape[3], updates;
        uint32_t axis;
        bool by_rows;
    } sums[] = {{{1, 1, 1}, 20000, 0, false},     {{2, 3, 5}, 1537, 1, false},
                {{1000000, 1, 1}, 999, 0, false}, {{1000000, 1, 1}, 300000, 0, false},
                {{50, 1, 33}, 3000, 0, true},     {{4000, 1, 33}, 50, 0, true}};
    for (uint32_t i = 0; i < 2 * sizeof sums / sizeof sums[0]; i++) {
        scatter_case tested = {.type = i % 3 == 1 ? HAL_TYPE_BF16 : HAL_TYPE_F32,
                               .index_type = i % 2 ? HAL_TYPE_I64 : HAL_TYPE_I32,
                               .kind = i % 4 < 3 ? OPS_SCATTER_ADD : OPS_SCATTER_MIN,
                               .axis = sums[i / 2].axis,
                               .updates = sums[i / 2].updates,
                               .by_rows = sums[i / 2].by_rows,
                               .is_hard = i % 2,
                               .order = OPS_SCATTER_ATOMIC};
        memcpy(tested.shape, sums[i / 2].shape, sizeof tested.shape);
        case_add_member(list, &scatters, &tested);
    }
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
    /* More updates than those that GPUs let each element look at: sums and products in order. */
    for (hal_type type = HAL_TYPE_I8; type < HAL_TYPE_COUNT; type++, turn++) {
        const scatter_case many = {.type = type,
                                   .index_type = turn % 2 ? HAL_TYPE_I32 : HAL_TYPE_I64,
                                   .kind = type % 2 ? OPS_SCATTER_ADD : OPS_SCATTER_MULTIPLY,
                                   .axis = turn % 3,
                                   .shape = {8, 9, 11},
                                   .updates = 90,
                                   .layout = (operand_layout)(turn % LAYOUT_BROADCAST),
                                   .by_rows = turn % 2};
        case_add_member(list, &scatters, &many);
    }
    add_atomic(list);
    case_add(list, run_refusals, NULL, 0, "ops/refuses(scatter)");
}
