/* index.c: gather, concatenate, copy, iota and one_hot on every type. */
#include <math.h>
#include <stdlib.h>

#include "cases.h"
#include "ops/ops_case.h"

typedef struct gather_case {
    hal_type type, index_type;
    uint32_t axis;
    operand_layout layout;
} gather_case;

static void run_gather(case_run *run, const void *parameters);
static void run_concatenate(case_run *run, const void *parameters);
static void run_copy(case_run *run, const void *parameters);
static void run_iota(case_run *run, const void *parameters);
static void run_one_hot(case_run *run, const void *parameters);
static void run_refusals(case_run *run, const void *parameters);
static void fill_bits(operand *o, random_state *random);
static bool check_bits(case_run *run, const operand *o, const void *expected);

void cases_ops_index(case_list *list)
{
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        const char *name = hal_type_name(type);
        for (uint32_t axis = 0; axis < 3; axis++) {
            const gather_case tested = {type, axis == 1 ? HAL_TYPE_I64 : HAL_TYPE_I32, axis,
                                        (operand_layout)((type + axis) % LAYOUT_COUNT)};
            case_add(list, run_gather, &tested, sizeof tested,
                     "ops/gather(type=%s,axis=%u,indices=%s,layout=%s)", name, axis,
                     hal_type_name(tested.index_type), layout_name(tested.layout));
            case_covers(list, type, CASE_BINDING, "ops gather");
            const gather_case joined = {type, HAL_TYPE_NONE, axis, tested.layout};
            case_add(list, run_concatenate, &joined, sizeof joined,
                     "ops/concatenate(type=%s,axis=%u,layout=%s)", name, axis,
                     layout_name(joined.layout));
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

static void fill_bits(operand *o, random_state *random)
{
    for (size_t i = 0; i < o->count; i++) {
        number_store(o->type, o->elements, i, random_bits(random, o->type));
    }
}

static bool check_bits(case_run *run, const operand *o, const void *expected)
{
    comparison found;
    return compare_bits(o->type, o->elements, expected, o->count, false, &found) ||
           ops_report(run, &found, "result");
}

/* 19 indices along an axis, some of them out of range on either side. */
static void run_gather(case_run *run, const void *parameters)
{
    const gather_case *tested = parameters;
    enum { PICKS = 19 };
    const int64_t shape[3] = {6, 9, 11}, picks[1] = {PICKS};
    int64_t out[3] = {6, 9, 11};
    out[tested->axis] = PICKS;
    operand x = {0}, indices = {0}, y = {0};
    random_state random = {run->seed};
    case_claim_storage(run, tested->type);
    case_claim_arithmetic(run, tested->type);
    case_claim_arithmetic(run, tested->index_type);
    const bool made = operand_create(run, &x, tested->type, 3, shape, tested->layout) &&
                      operand_create(run, &indices, tested->index_type, 1, picks, LAYOUT_PLAIN) &&
                      operand_create(run, &y, tested->type, 3, out, LAYOUT_PLAIN);
    uint8_t *expected = made ? calloc(y.count, 8) : NULL;
    if (expected != NULL) {
        fill_bits(&x, &random);
        for (size_t i = 0; i < PICKS; i++) {
            const double limit = (double)shape[tested->axis];
            const double index = i == 3    ? -1.0
                                 : i == 7  ? limit
                                 : i == 11 ? 2e9
                                           : floor(random_between(&random, 0.0, limit));
            number_put(indices.type, indices.elements, i, index);
        }
        if (operand_upload(run, &x) && operand_upload(run, &indices) && operand_poison(run, &y) &&
            case_ok(run, ops_gather(run->ops, tested->axis, &x.tensor, &indices.tensor, &y.tensor),
                    "ops_gather") &&
            operand_download(run, &y, "result")) {
            for (size_t i = 0; i < y.count; i++) {
                size_t at[3] = {i / (size_t)(out[1] * out[2]), i / (size_t)out[2] % (size_t)out[1],
                                i % (size_t)out[2]};
                const double index = operand_get(&indices, at[tested->axis]);
                if (index >= 0.0 && index < (double)shape[tested->axis]) {
                    at[tested->axis] = (size_t)index;
                    number_store(y.type, expected, i,
                                 number_load(x.type, x.elements, (at[0] * 9 + at[1]) * 11 + at[2]));
                }
            }
            check_bits(run, &y, expected);
        }
    }
    operand_release(&x);
    operand_release(&indices);
    operand_release(&y);
    free(expected);
}

/* Three parts, of lengths 4, 0 or 1, and 7, of different layouts. */
static void run_concatenate(case_run *run, const void *parameters)
{
    const gather_case *tested = parameters;
    const int64_t lengths[3] = {4, tested->axis == 1 ? 0 : 1, 7};
    int64_t shape[3] = {3, 5, 8}, out[3] = {3, 5, 8};
    operand parts[3] = {0}, y = {0};
    ops_tensor tensors[3];
    random_state random = {run->seed};
    case_claim_storage(run, tested->type);
    case_claim_arithmetic(run, tested->type);
    out[tested->axis] = lengths[0] + lengths[1] + lengths[2];
    bool well = operand_create(run, &y, tested->type, 3, out, LAYOUT_PLAIN);
    for (int p = 0; p < 3 && well; p++) {
        shape[tested->axis] = lengths[p];
        well = operand_create(run, &parts[p], tested->type, 3, shape,
                              p == 1 ? LAYOUT_PLAIN : tested->layout);
        if (well) {
            fill_bits(&parts[p], &random);
            well = operand_upload(run, &parts[p]);
            tensors[p] = parts[p].tensor;
        }
    }
    uint8_t *expected = well ? calloc(y.count, 8) : NULL;
    if (expected != NULL && operand_poison(run, &y) &&
        case_ok(run, ops_concatenate(run->ops, tested->axis, tensors, 3, &y.tensor),
                "ops_concatenate") &&
        operand_download(run, &y, "result")) {
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
        check_bits(run, &y, expected);
    }
    for (int p = 0; p < 3; p++) {
        operand_release(&parts[p]);
    }
    operand_release(&y);
    free(expected);
}

/* Between all pairs of layouts. */
static void run_copy(case_run *run, const void *parameters)
{
    const hal_type type = *(const hal_type *)parameters;
    const int64_t shape[3] = {5, 6, 13};
    random_state random = {run->seed};
    case_claim_storage(run, type);
    case_claim_arithmetic(run, type);
    for (int pair = 0; pair < LAYOUT_COUNT * LAYOUT_BROADCAST && case_is_well(run); pair++) {
        operand x = {0}, y = {0};
        if (operand_create(run, &x, type, 3, shape, (operand_layout)(pair % LAYOUT_COUNT)) &&
            operand_create(run, &y, type, 3, shape, (operand_layout)(pair / LAYOUT_COUNT))) {
            fill_bits(&x, &random);
            if (operand_upload(run, &x) && operand_poison(run, &y) &&
                case_ok(run, ops_copy(run->ops, &x.tensor, &y.tensor), "ops_copy") &&
                operand_download(run, &y, "copy")) {
                check_bits(run, &y, x.elements);
            }
        }
        operand_release(&x);
        operand_release(&y);
    }
}

static void run_iota(case_run *run, const void *parameters)
{
    const hal_type type = *(const hal_type *)parameters;
    const int64_t shape[1] = {101};
    const double start = hal_type_is_float(type) ? -2.5 : hal_type_is_signed(type) ? -50.0 : 3.0;
    const double step = hal_type_is_float(type) ? 0.5 : 1.0;
    operand y = {0};
    uint8_t expected[101 * 8];
    case_claim_storage(run, type);
    case_claim_arithmetic(run, type);
    for (size_t i = 0; i < 101; i++) {
        number_put(type, expected, i, start + (double)i * step);
    }
    if (operand_create(run, &y, type, 1, shape, LAYOUT_PLAIN) && operand_poison(run, &y) &&
        case_ok(run, ops_iota(run->ops, start, step, &y.tensor), "ops_iota") &&
        operand_download(run, &y, "result")) {
        check_bits(run, &y, expected);
    }
    operand_release(&y);
}

static void run_one_hot(case_run *run, const void *parameters)
{
    const hal_type type = *(const hal_type *)parameters;
    const int64_t shape[2] = {3, 7}, out[3] = {3, 7, 10};
    operand indices = {0}, y = {0};
    random_state random = {run->seed};
    uint8_t expected[3 * 7 * 10 * 8];
    case_claim_storage(run, type);
    case_claim_arithmetic(run, type);
    if (operand_create(run, &indices, HAL_TYPE_I32, 2, shape, LAYOUT_PLAIN) &&
        operand_create(run, &y, type, 3, out, LAYOUT_PLAIN)) {
        operand_fill(&indices, &random, -2.0, 12.0);
        for (size_t i = 0; i < y.count; i++) {
            number_put(type, expected, i, operand_get(&indices, i / 10) == (double)(i % 10));
        }
        if (operand_upload(run, &indices) && operand_poison(run, &y) &&
            case_ok(run, ops_one_hot(run->ops, &indices.tensor, &y.tensor), "ops_one_hot") &&
            operand_download(run, &y, "result")) {
            check_bits(run, &y, expected);
        }
    }
    operand_release(&indices);
    operand_release(&y);
}

static void run_refusals(case_run *run, const void *parameters)
{
    (void)parameters;
    const int64_t shape[2] = {4, 6}, row[1] = {5}, unfit[2] = {4, 4};
    ops_tensor x = {0}, i = {0}, y = {0};
    const hal_status wrong = HAL_ERROR_INVALID_ARGUMENT;
    if (case_ok(run, ops_tensor_create(run->ops, HAL_TYPE_F32, 2, shape, &x), "a tensor") &&
        case_ok(run, ops_tensor_create(run->ops, HAL_TYPE_I32, 1, row, &i), "a tensor") &&
        case_ok(run, ops_tensor_create(run->ops, HAL_TYPE_F32, 2, unfit, &y), "a tensor")) {
        case_expect(run, ops_gather(run->ops, 1, &x, &i, &y), wrong, NULL, "gather to 4x4");
        case_expect(run, ops_gather(run->ops, 2, &x, &i, &y), wrong, NULL, "gather on axis 2");
        case_expect(run, ops_concatenate(run->ops, 0, &x, 1, &y), wrong, NULL,
                    "a part of another length");
        case_expect(run, ops_concatenate(run->ops, 0, NULL, 2, &y), wrong, NULL, "null parts");
        case_expect(run, ops_iota(run->ops, 0.0, 1.0, &y), wrong, NULL, "iota of rank 2");
        case_expect(run, ops_one_hot(run->ops, &i, &x), wrong, NULL, "one_hot of another length");
        case_expect(run, ops_copy(run->ops, &x, &y), wrong, NULL, "a copy to another shape");
        case_check(run, ops_copy(run->ops, &i, &y) != HAL_OK, "a copy to another type was taken");
    }
    ops_tensor_release(&x);
    ops_tensor_release(&i);
    ops_tensor_release(&y);
}
