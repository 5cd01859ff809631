/* sort.c: sorted values and their places, against a stable sort of the host. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "case/cases.h"
#include "ops/fixture.h"

typedef struct sort_case {
    hal_type type, index_type;
    uint32_t axis;
    int64_t shape[3];
    int64_t taken; /* length of the outputs at the axis */
    operand_layout layout;
    bool descending, in_place;
} sort_case;

static const case_size sort_sizes[] = {
    CASE_SIZE(sort_case, shape[0], "shape", 0, 1),
    CASE_SIZE(sort_case, shape[1], "shape", 1, 1),
    CASE_SIZE(sort_case, shape[2], "shape", 2, 1),
    CASE_SIZE(sort_case, in_place, "in_place", 0, 0),
};

/* An element on its line; what qsort compares. */
typedef struct sorted {
    const operand *x;
    size_t at;    /* in x */
    size_t place; /* on the line */
    bool descending;
} sorted;

static int compare_values(const operand *x, size_t a, size_t b)
{
    const uint64_t bits[2] = {number_load(x->type, x->elements, a),
                              number_load(x->type, x->elements, b)};
    if (hal_type_is_float(x->type)) {
        const double values[2] = {number_value(x->type, bits[0]), number_value(x->type, bits[1])};
        if (isnan(values[0]) || isnan(values[1])) {
            return isnan(values[0]) - isnan(values[1]);
        }
        return (values[0] > values[1]) - (values[0] < values[1]);
    }
    if (hal_type_is_signed(x->type)) {
        const int64_t values[2] = {number_signed(x->type, bits[0]),
                                   number_signed(x->type, bits[1])};
        return (values[0] > values[1]) - (values[0] < values[1]);
    }
    return (bits[0] > bits[1]) - (bits[0] < bits[1]);
}

static int compare(const void *a, const void *b)
{
    const sorted *x = a, *y = b;
    int order = compare_values(x->x, x->at, y->at);
    order = x->descending ? -order : order;
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

/* Few different values, both zeros, NaN of both signs, infinities and denormals. */
static void fill(operand *x, random_state *random)
{
    static const double special[] = {0.0, -0.0, INFINITY, -INFINITY, 1.0, -1.0, 1e-40, -1e-40};
    operand_fill(x, random, hal_type_is_signed(x->type) || hal_type_is_float(x->type) ? -40.0 : 0.0,
                 40.0);
    for (size_t i = 0; i < x->count && hal_type_is_float(x->type); i += 5) {
        number_put(x->type, x->elements, i, special[i / 5 % 8]);
        if (i % 35 == 0) { /* NaN, of either sign */
            const uint64_t nan = number_bits(x->type, (double)NAN);
            const uint64_t sign = UINT64_C(1) << (8 * hal_type_size(x->type) - 1);
            number_store(x->type, x->elements, i, i % 2 ? nan | sign : nan & ~sign);
        }
    }
    for (size_t i = 0; i < x->count && !hal_type_is_float(x->type); i += 7) {
        number_store(x->type, x->elements, i,
                     x->type == HAL_TYPE_BOOL ? i % 2 : random_bits(random, x->type));
    }
}

/* The expected bits of values and places. */
static void reference(case_run *run, const sort_case *tested, const operand *x, uint8_t *values,
                      uint8_t *places)
{
    size_t inner = 1;
    for (uint32_t d = tested->axis + 1; d < 3; d++) {
        inner *= (size_t)tested->shape[d];
    }
    const size_t length = (size_t)tested->shape[tested->axis], taken = (size_t)tested->taken;
    sorted *line = case_allocate(run, length, sizeof *line);
    for (size_t i = 0; i < x->count / length; i++) {
        const size_t first = i / inner * inner * length + i % inner;
        const size_t out = i / inner * inner * taken + i % inner;
        for (size_t k = 0; k < length; k++) {
            line[k] = (sorted){x, first + k * inner, k, tested->descending};
        }
        qsort(line, length, sizeof *line, compare);
        for (size_t k = 0; k < taken; k++) {
            number_store(x->type, values, out + k * inner,
                         number_load(x->type, x->elements, line[k].at));
            number_store(tested->index_type, places, out + k * inner, line[k].place);
        }
    }
}

static void run_sort(case_run *run, const void *parameters)
{
    sort_case made = *(const sort_case *)parameters;
    const sort_case *tested = &made;
    made.taken = made.taken < made.shape[made.axis] ? made.taken : made.shape[made.axis];
    random_state random = {run->seed};
    case_claim_storage(run, tested->type);
    case_claim_arithmetic(run, tested->type);
    case_claim_arithmetic(run, tested->index_type);
    int64_t out[3] = {tested->shape[0], tested->shape[1], tested->shape[2]};
    out[tested->axis] = tested->taken;
    operand x = operand_create(run, tested->type, 3, tested->shape, tested->layout);
    operand y = operand_create(run, tested->type, 3, out, LAYOUT_PLAIN);
    operand places = operand_create(run, tested->index_type, 3, out, LAYOUT_OFFSET);
    uint8_t *values = case_allocate(run, y.count, 8), *numbers = case_allocate(run, y.count, 8);
    fill(&x, &random);
    reference(run, tested, &x, values, numbers);
    operand_upload(run, &x);
    operand_poison(run, &y);
    operand_poison(run, &places);
    operand *result = tested->in_place ? &x : &y;
    case_ok(run,
            ops_sort(run->ops, (int32_t)tested->axis, tested->descending, &x.tensor,
                     &result->tensor, &places.tensor),
            "ops_sort");
    operand_download(run, &places, "indices");
    operand_check_bits(run, &places, numbers, false, "indices");
    operand_download(run, result, "values");
    operand_check_bits(run, result, values, false, "values");
}

static void print_sort(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    const sort_case *tested = parameters;
    snprintf(name, bytes,
             "ops/sort(type=%s,shape=%lldx%lldx%lld,axis=%u,taken=%lld,indices=%s,layout=%s,"
             "descending=%d,in_place=%d,seed=%llu)",
             hal_type_name(tested->type), (long long)tested->shape[0], (long long)tested->shape[1],
             (long long)tested->shape[2], tested->axis, (long long)tested->taken,
             hal_type_name(tested->index_type), layout_name(tested->layout), tested->descending,
             tested->in_place, (unsigned long long)seed);
}

static const case_family sorts = {.function = run_sort,
                                  .bytes = sizeof(sort_case),
                                  .sizes = sort_sizes,
                                  .size_count = 4,
                                  .print = print_sort};

static void run_refusals(case_run *run, const void *parameters)
{
    const int64_t shape[2] = {4, 6}, longer[2] = {4, 7};
    const hal_status wrong = HAL_ERROR_INVALID_ARGUMENT;
    ops_tensor x = case_tensor(run, HAL_TYPE_F32, 2, shape);
    ops_tensor i = case_tensor(run, HAL_TYPE_I32, 2, shape);
    ops_tensor large = case_tensor(run, HAL_TYPE_F32, 2, longer);
    case_expect(run, ops_sort(run->ops, 0, 0, &x, NULL, NULL), wrong, NULL, "no outputs");
    case_expect(run, ops_sort(run->ops, 0, 0, &x, &i, NULL), wrong, NULL, "values of another type");
    case_expect(run, ops_sort(run->ops, 0, 0, &x, NULL, &x), wrong, NULL, "indices of f32");
    case_expect(run, ops_sort(run->ops, 1, 0, &x, &large, NULL), wrong, NULL, "a longer output");
    case_expect(run, ops_sort(run->ops, 2, 0, &x, &x, NULL), wrong, NULL, "a sort of axis 2");
}

void cases_ops_sort(case_list *list)
{
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        sort_case tested = {.type = type,
                            .index_type = type % 2 ? HAL_TYPE_I32 : HAL_TYPE_I64,
                            .axis = type % 3,
                            .shape = {5, 9, 70},
                            .layout = (operand_layout)(type % LAYOUT_BROADCAST),
                            .descending = type % 4 < 2,
                            .in_place = type % 4 == 3};
        tested.taken = tested.shape[tested.axis] - (type % 5 == 2 ? 2 : 0);
        tested.in_place &= tested.taken == tested.shape[tested.axis];
        case_add_member(list, &sorts, &tested);
        case_covers(list, type, CASE_BINDING, "ops sort");
    }
    /* One block, several, and a last one that is not whole. */
    static const int64_t lengths[] = {1, 2, 1024, 1025, 5000, 40001};
    for (uint32_t i = 0; i < 6; i++) {
        sort_case tested = {.type = i == 4 ? HAL_TYPE_F64 : HAL_TYPE_F32,
                            .index_type = HAL_TYPE_I32,
                            .axis = i % 2 ? 1 : 2,
                            .shape = {1, 2, 2},
                            .taken = lengths[i],
                            .descending = i == 3};
        tested.shape[tested.axis] = lengths[i];
        case_add_member(list, &sorts, &tested);
    }
    /* The first elements of long lines. */
    for (uint32_t i = 0; i < 4; i++) {
        const sort_case tested = {.type = i == 2   ? HAL_TYPE_I64
                                          : i == 3 ? HAL_TYPE_BF16
                                                   : HAL_TYPE_F32,
                                  .index_type = i % 2 ? HAL_TYPE_I64 : HAL_TYPE_I32,
                                  .axis = 1,
                                  .shape = {3, i == 1 ? 30011 : 601, 2},
                                  .taken = 1 + 9 * i,
                                  .layout = (operand_layout)i,
                                  .descending = i % 2 == 0,
                                  .in_place = false};
        case_add_member(list, &sorts, &tested);
    }
    case_add(list, run_refusals, NULL, 0, "ops/refuses(sort)");
}
