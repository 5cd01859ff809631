/* index.c: gather, concatenate, copy, iota and one_hot on every type. */
#include <math.h>
#include <stdio.h>

#include "case/cases.h"
#include "ops/fixture.h"

typedef struct gather_case {
    hal_type type, index_type;
    uint32_t axis;
    operand_layout layout;
    int64_t shape[3];
    int64_t picks; /* number of indices */
} gather_case;

typedef struct concatenate_case {
    hal_type type;
    uint32_t axis;
    operand_layout layout;
    int64_t shape[3]; /* of the other axes */
    int64_t lengths[3];
} concatenate_case;

static const case_size gather_sizes[] = {
    CASE_SIZE(gather_case, shape[0], "shape", 0, 1),
    CASE_SIZE(gather_case, shape[1], "shape", 1, 1),
    CASE_SIZE(gather_case, shape[2], "shape", 2, 1),
    CASE_SIZE(gather_case, picks, "picks", 0, 1),
};

static const case_size concatenate_sizes[] = {
    CASE_SIZE(concatenate_case, shape[0], "shape", 0, 1),
    CASE_SIZE(concatenate_case, shape[1], "shape", 1, 1),
    CASE_SIZE(concatenate_case, shape[2], "shape", 2, 1),
    CASE_SIZE(concatenate_case, lengths[0], "parts", 0, 1),
    CASE_SIZE(concatenate_case, lengths[1], "parts", 1, 0),
    CASE_SIZE(concatenate_case, lengths[2], "parts", 2, 1),
};

static void fill_bits(operand *o, random_state *random)
{
    for (size_t i = 0; i < o->count; i++) {
        number_store(o->type, o->elements, i, random_bits(random, o->type));
    }
}

/* Elements are moved as integers of their size, so the device need not have the type. */
static void claim_movement(case_run *run, hal_type type)
{
    const bool claimed = (run->info->storage_types & HAL_TYPE_BIT(type)) != 0 &&
                         (run->info->arithmetic_types & HAL_TYPE_BIT(hal_type_of_value(type))) != 0;
    case_claim_or_rewrite(run, claimed, "the type that is moved");
}

/* Indices along an axis, some of them out of range on either side. */
static void run_gather(case_run *run, const void *parameters)
{
    const gather_case *tested = parameters;
    const int64_t *shape = tested->shape, picks[1] = {tested->picks};
    int64_t out[3] = {shape[0], shape[1], shape[2]};
    out[tested->axis] = tested->picks;
    random_state random = {run->seed};
    claim_movement(run, tested->type);
    case_claim_arithmetic(run, tested->index_type);
    operand x = operand_create(run, tested->type, 3, shape, tested->layout);
    operand indices = operand_create(run, tested->index_type, 1, picks, LAYOUT_PLAIN);
    operand y = operand_create(run, tested->type, 3, out, LAYOUT_PLAIN);
    uint8_t *expected = case_allocate(run, y.count, 8);
    fill_bits(&x, &random);
    for (size_t i = 0; i < indices.count; i++) {
        const double limit = (double)shape[tested->axis];
        const double index = i == 3    ? -1.0
                             : i == 7  ? limit
                             : i == 11 ? 2e9
                                       : floor(random_between(&random, 0.0, limit));
        number_put(indices.type, indices.elements, i, index);
    }
    operand_upload(run, &x);
    operand_upload(run, &indices);
    operand_poison(run, &y);
    case_ok(run, ops_gather(run->ops, tested->axis, &x.tensor, &indices.tensor, &y.tensor),
            "ops_gather");
    operand_download(run, &y, "result");
    for (size_t i = 0; i < y.count; i++) {
        const size_t rows = (size_t)shape[1], columns = (size_t)shape[2];
        size_t at[3] = {i / (size_t)(out[1] * out[2]), i / (size_t)out[2] % (size_t)out[1],
                        i % (size_t)out[2]};
        const double index = operand_get(&indices, at[tested->axis]);
        if (index >= 0.0 && index < (double)shape[tested->axis]) {
            at[tested->axis] = (size_t)index;
            const size_t from = (at[0] * rows + at[1]) * columns + at[2];
            number_store(y.type, expected, i, number_load(x.type, x.elements, from));
        }
    }
    operand_check_bits(run, &y, expected, false, "result");
}

static void print_gather(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    const gather_case *tested = parameters;
    snprintf(name, bytes,
             "ops/gather(type=%s,shape=%lldx%lldx%lld,picks=%lld,axis=%u,indices=%s,layout=%s)",
             hal_type_name(tested->type), (long long)tested->shape[0], (long long)tested->shape[1],
             (long long)tested->shape[2], (long long)tested->picks, tested->axis,
             hal_type_name(tested->index_type), layout_name(tested->layout));
}

static const case_family gathers = {.function = run_gather,
                                    .bytes = sizeof(gather_case),
                                    .sizes = gather_sizes,
                                    .size_count = 4,
                                    .print = print_gather};

/* An index for each element, of which every ninth is out of range on one side or the other. */
static void run_take(case_run *run, const void *parameters)
{
    const gather_case *tested = parameters;
    const int64_t *shape = tested->shape;
    int64_t out[3] = {shape[0], shape[1], shape[2]};
    out[tested->axis] = tested->picks;
    random_state random = {run->seed};
    claim_movement(run, tested->type);
    case_claim_arithmetic(run, tested->index_type);
    operand x = operand_create(run, tested->type, 3, shape, tested->layout);
    operand indices = operand_create(run, tested->index_type, 3, out, tested->layout);
    operand y = operand_create(run, tested->type, 3, out, LAYOUT_PLAIN);
    uint8_t *expected = case_allocate(run, y.count, 8);
    const double limit = (double)shape[tested->axis];
    fill_bits(&x, &random);
    for (size_t i = 0; i < indices.count; i++) {
        const double index = i % 9 == 4 ? (i % 2 ? -1.0 : limit)
                                        : floor(random_between(&random, 0.0, limit));
        number_put(indices.type, indices.elements, i, index);
    }
    operand_upload(run, &x);
    operand_upload(run, &indices);
    operand_poison(run, &y);
    case_ok(run,
            ops_take_along_axis(run->ops, (int32_t)tested->axis, &x.tensor, &indices.tensor,
                                &y.tensor),
            "ops_take_along_axis");
    operand_download(run, &y, "result");
    for (size_t i = 0; i < y.count; i++) {
        size_t at[3] = {i / (size_t)(out[1] * out[2]), i / (size_t)out[2] % (size_t)out[1],
                        i % (size_t)out[2]};
        const double index = operand_get(&indices, i);
        if (index >= 0.0 && index < limit) {
            at[tested->axis] = (size_t)index;
            const size_t row = at[0] * (size_t)shape[1] + at[1];
            const size_t from = row * (size_t)shape[2] + at[2];
            number_store(y.type, expected, i, number_load(x.type, x.elements, from));
        }
    }
    operand_check_bits(run, &y, expected, false, "result");
}

static void print_take(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    const gather_case *tested = parameters;
    snprintf(name, bytes,
             "ops/take_along_axis(type=%s,shape=%lldx%lldx%lld,picks=%lld,axis=%u,indices=%s,"
             "layout=%s)",
             hal_type_name(tested->type), (long long)tested->shape[0], (long long)tested->shape[1],
             (long long)tested->shape[2], (long long)tested->picks, tested->axis,
             hal_type_name(tested->index_type), layout_name(tested->layout));
}

static const case_family takes = {.function = run_take,
                                  .bytes = sizeof(gather_case),
                                  .sizes = gather_sizes,
                                  .size_count = 4,
                                  .print = print_take};

/* Three parts of different layouts; the second one has length 0 or 1. */
static void run_concatenate(case_run *run, const void *parameters)
{
    const concatenate_case *tested = parameters;
    const int64_t *lengths = tested->lengths;
    int64_t shape[3] = {tested->shape[0], tested->shape[1], tested->shape[2]};
    int64_t out[3] = {shape[0], shape[1], shape[2]};
    operand parts[3];
    ops_tensor tensors[3];
    random_state random = {run->seed};
    claim_movement(run, tested->type);
    out[tested->axis] = lengths[0] + lengths[1] + lengths[2];
    operand y = operand_create(run, tested->type, 3, out, LAYOUT_PLAIN);
    uint8_t *expected = case_allocate(run, y.count, 8);
    for (int p = 0; p < 3; p++) {
        shape[tested->axis] = lengths[p];
        parts[p] =
            operand_create(run, tested->type, 3, shape, p == 1 ? LAYOUT_PLAIN : tested->layout);
        fill_bits(&parts[p], &random);
        operand_upload(run, &parts[p]);
        tensors[p] = parts[p].tensor;
    }
    operand_poison(run, &y);
    case_ok(run, ops_concatenate(run->ops, tested->axis, tensors, 3, &y.tensor), "ops_concatenate");
    operand_download(run, &y, "result");
    for (size_t i = 0; i < y.count; i++) {
        int64_t at[3] = {(int64_t)i / (out[1] * out[2]), (int64_t)i / out[2] % out[1],
                         (int64_t)i % out[2]};
        int p = 0;
        while (at[tested->axis] >= lengths[p]) {
            at[tested->axis] -= lengths[p++];
        }
        shape[tested->axis] = lengths[p];
        const size_t from = (size_t)((at[0] * shape[1] + at[1]) * shape[2] + at[2]);
        number_store(y.type, expected, i, number_load(y.type, parts[p].elements, from));
    }
    operand_check_bits(run, &y, expected, false, "result");
}

static void print_concatenate(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    const concatenate_case *tested = parameters;
    snprintf(name, bytes,
             "ops/concatenate(type=%s,shape=%lldx%lldx%lld,parts=%lldx%lldx%lld,axis=%u,layout=%s)",
             hal_type_name(tested->type), (long long)tested->shape[0], (long long)tested->shape[1],
             (long long)tested->shape[2], (long long)tested->lengths[0],
             (long long)tested->lengths[1], (long long)tested->lengths[2], tested->axis,
             layout_name(tested->layout));
}

static const case_family concatenations = {.function = run_concatenate,
                                           .bytes = sizeof(concatenate_case),
                                           .sizes = concatenate_sizes,
                                           .size_count = 6,
                                           .print = print_concatenate};

/* Between all pairs of layouts. */
static void run_copy(case_run *run, const void *parameters)
{
    const hal_type type = *(const hal_type *)parameters;
    const int64_t shape[3] = {5, 6, 13};
    random_state random = {run->seed};
    claim_movement(run, type);
    for (int pair = 0; pair < LAYOUT_COUNT * LAYOUT_BROADCAST; pair++) {
        operand x = operand_create(run, type, 3, shape, (operand_layout)(pair % LAYOUT_COUNT));
        operand y = operand_create(run, type, 3, shape, (operand_layout)(pair / LAYOUT_COUNT));
        fill_bits(&x, &random);
        operand_upload(run, &x);
        operand_poison(run, &y);
        case_ok(run, ops_copy(run->ops, &x.tensor, &y.tensor), "ops_copy");
        operand_download(run, &y, "copy");
        operand_check_bits(run, &y, x.elements, false, "result");
    }
}

static void run_one_hot(case_run *run, const void *parameters)
{
    const hal_type type = *(const hal_type *)parameters;
    const int64_t shape[2] = {3, 7}, out[3] = {3, 7, 10};
    random_state random = {run->seed};
    uint8_t expected[3 * 7 * 10 * 8];
    case_claim_storage(run, type);
    case_claim_arithmetic(run, type);
    operand indices = operand_create(run, HAL_TYPE_I32, 2, shape, LAYOUT_PLAIN);
    operand y = operand_create(run, type, 3, out, LAYOUT_PLAIN);
    operand_fill(&indices, &random, -2.0, 12.0);
    for (size_t i = 0; i < y.count; i++) {
        number_put(type, expected, i, operand_get(&indices, i / 10) == (double)(i % 10));
    }
    operand_upload(run, &indices);
    operand_poison(run, &y);
    case_ok(run, ops_one_hot(run->ops, &indices.tensor, &y.tensor), "ops_one_hot");
    operand_download(run, &y, "result");
    operand_check_bits(run, &y, expected, false, "result");
}

static void run_iota(case_run *run, const void *parameters)
{
    const hal_type type = *(const hal_type *)parameters;
    const int64_t shape[1] = {101};
    const double start = hal_type_is_float(type) ? -2.5 : hal_type_is_signed(type) ? -50.0 : 3.0;
    const double step = hal_type_is_float(type) ? 0.5 : 1.0;
    uint8_t expected[101 * 8];
    case_claim_storage(run, type);
    case_claim_arithmetic(run, type);
    for (size_t i = 0; i < 101; i++) {
        number_put(type, expected, i, start + (double)i * step);
    }
    operand y = operand_create(run, type, 1, shape, LAYOUT_PLAIN);
    operand_poison(run, &y);
    case_ok(run, ops_iota(run->ops, start, step, &y.tensor), "ops_iota");
    operand_download(run, &y, "result");
    operand_check_bits(run, &y, expected, false, "result");
}

static void run_refusals(case_run *run, const void *parameters)
{
    const int64_t shape[2] = {4, 6}, row[1] = {5}, unfit[2] = {4, 4};
    const hal_status wrong = HAL_ERROR_INVALID_ARGUMENT;
    ops_tensor x = case_tensor(run, HAL_TYPE_F32, 2, shape);
    ops_tensor i = case_tensor(run, HAL_TYPE_I32, 1, row);
    ops_tensor y = case_tensor(run, HAL_TYPE_F32, 2, unfit);
    case_expect(run, ops_gather(run->ops, 1, &x, &i, &y), wrong, NULL, "gather to 4x4");
    case_expect(run, ops_gather(run->ops, 2, &x, &i, &y), wrong, NULL, "gather on axis 2");
    case_expect(run, ops_take_along_axis(run->ops, 1, &x, &i, &y), wrong, NULL,
                "an index for each of other elements");
    case_expect(run, ops_concatenate(run->ops, 0, &x, 1, &y), wrong, NULL,
                "a part of another length");
    case_expect(run, ops_concatenate(run->ops, 0, NULL, 2, &y), wrong, NULL, "null parts");
    case_expect(run, ops_iota(run->ops, 0.0, 1.0, &y), wrong, NULL, "iota of rank 2");
    case_expect(run, ops_one_hot(run->ops, &i, &x), wrong, NULL, "one_hot of another length");
    case_expect(run, ops_copy(run->ops, &x, &y), wrong, NULL, "a copy to another shape");
    case_check(run, ops_copy(run->ops, &i, &y) != HAL_OK, "a copy to another type was taken");
}

void cases_ops_index(case_list *list)
{
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        const char *name = hal_type_name(type);
        for (uint32_t axis = 0; axis < 3; axis++) {
            const operand_layout layout = (operand_layout)((type + axis) % LAYOUT_COUNT);
            const gather_case tested = {.type = type,
                                        .index_type = axis == 1 ? HAL_TYPE_I64 : HAL_TYPE_I32,
                                        .axis = axis,
                                        .layout = layout,
                                        .shape = {6, 9, 11},
                                        .picks = 19};
            case_add_member(list, &gathers, &tested);
            case_covers(list, type, CASE_BINDING, "ops gather");
            if (axis == type % 3) {
                gather_case each = tested;
                each.layout = (operand_layout)(type % LAYOUT_BROADCAST);
                each.picks = 7;
                case_add_member(list, &takes, &each);
                case_covers(list, type, CASE_BINDING, "ops take_along_axis");
            }
            const concatenate_case joined = {.type = type,
                                             .axis = axis,
                                             .layout = layout,
                                             .shape = {3, 5, 8},
                                             .lengths = {4, axis == 1 ? 0 : 1, 7}};
            case_add_member(list, &concatenations, &joined);
            case_covers(list, type, CASE_BINDING, "ops concatenate");
        }
        case_add(list, run_copy, &type, sizeof type, "ops/copy(type=%s)", name);
        case_covers(list, type, CASE_BINDING, "ops copy");
        case_add(list, run_one_hot, &type, sizeof type, "ops/one_hot(type=%s)", name);
        case_covers(list, type, CASE_BINDING, "ops one_hot");
        if (type != HAL_TYPE_BOOL) {
            case_add(list, run_iota, &type, sizeof type, "ops/iota(type=%s)", name);
            case_covers(list, type, CASE_BINDING, "ops iota");
        }
    }
    case_add(list, run_refusals, NULL, 0, "ops/refuses(index)");
}
