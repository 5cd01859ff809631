/* scan.c: sums, products, maxima and minima of every beginning of an axis. */
#include <math.h>
#include <stdio.h>

#include "case/cases.h"
#include "ops/fixture.h"

typedef struct scan_case {
    hal_type type;
    ops_scan_kind kind;
    uint32_t axis;
    int64_t shape[3];
    operand_layout layout;
    bool in_place, has_nan;
} scan_case;

static const case_size scan_sizes[] = {
    CASE_SIZE(scan_case, shape[0], "shape", 0, 1),
    CASE_SIZE(scan_case, shape[1], "shape", 1, 1),
    CASE_SIZE(scan_case, shape[2], "shape", 2, 1),
    CASE_SIZE(scan_case, in_place, "in_place", 0, 0),
};

static const char *const kind_names[OPS_SCAN_KIND_COUNT] = {"sum", "product", "max", "min"};

static void fill(const scan_case *tested, operand *x, random_state *random)
{
    if (!hal_type_is_float(tested->type)) { /* sums and products wrap */
        for (size_t i = 0; i < x->count; i++) {
            number_store(x->type, x->elements, i, random_bits(random, x->type));
        }
        return;
    }
    const bool multiplies = tested->kind == OPS_SCAN_PRODUCT;
    operand_fill(x, random, multiplies ? 0.9 : -4.0, multiplies ? 1.1 : 4.0);
    if (tested->has_nan) {
        number_put(x->type, x->elements, x->count / 2, (double)NAN);
    }
}

static uint64_t combine_bits(const scan_case *tested, uint64_t sum, uint64_t value)
{
    const bool is_signed = hal_type_is_signed(tested->type);
    const bool is_less = is_signed ? (int64_t)value < (int64_t)sum : value < sum;
    switch (tested->kind) {
    case OPS_SCAN_SUM:
        return sum + value;
    case OPS_SCAN_PRODUCT:
        return sum * value;
    case OPS_SCAN_MAX:
        return is_less ? sum : value;
    default:
        return is_less ? value : sum;
    }
}

/* An integer with its sign, in 64 bits. */
static uint64_t extended(const operand *x, size_t index)
{
    return (uint64_t)number_signed(x->type, number_load(x->type, x->elements, index));
}

static void reference_of_integers(const scan_case *tested, const operand *x, size_t first,
                                  size_t step, uint8_t *expected)
{
    uint64_t sum = 0;
    for (size_t k = 0; k < (size_t)tested->shape[tested->axis]; k++) {
        const size_t at = first + k * step;
        sum = k ? combine_bits(tested, sum, extended(x, at)) : extended(x, at);
        number_store(x->type, expected, at, sum);
    }
}

static void reference_of_floats(const scan_case *tested, const operand *x, size_t first,
                                size_t step, long double *expected, double *bounds)
{
    const double u = number_roundoff(hal_type_of_value(tested->type));
    const double out = number_roundoff(tested->type);
    const bool rounds = tested->kind == OPS_SCAN_SUM || tested->kind == OPS_SCAN_PRODUCT;
    long double result = 0.0L, size = 0.0L;
    for (size_t k = 0; k < (size_t)tested->shape[tested->axis]; k++) {
        const size_t at = first + k * step;
        const long double value = (long double)operand_get(x, at);
        switch (k ? tested->kind : OPS_SCAN_KIND_COUNT) {
        case OPS_SCAN_SUM:
            result += value;
            break;
        case OPS_SCAN_PRODUCT:
            result *= value;
            break;
        case OPS_SCAN_MAX:
            result = isnan(result) || isnan(value) ? (long double)NAN : fmaxl(result, value);
            break;
        case OPS_SCAN_MIN:
            result = isnan(result) || isnan(value) ? (long double)NAN : fminl(result, value);
            break;
        default:
            result = value;
        }
        size = tested->kind == OPS_SCAN_PRODUCT ? fabsl(result) : size + fabsl(value);
        expected[at] = result;
        bounds[at] =
            rounds ? 1.001 * ((double)k * u * (double)size + out * (double)fabsl(result)) : 0.0;
    }
}

static void judge(case_run *run, const scan_case *tested, const operand *x, const operand *y)
{
    const bool is_float = hal_type_is_float(tested->type);
    uint8_t *bits = case_allocate(run, y->count, 8);
    long double *expected = case_allocate(run, y->count, sizeof *expected);
    double *bounds = case_allocate(run, y->count, sizeof *bounds);
    size_t inner = 1;
    for (uint32_t d = tested->axis + 1; d < 3; d++) {
        inner *= (size_t)tested->shape[d];
    }
    const size_t length = (size_t)tested->shape[tested->axis];
    for (size_t line = 0; line < y->count / length; line++) {
        const size_t first = line / inner * inner * length + line % inner;
        if (is_float) {
            reference_of_floats(tested, x, first, inner, expected, bounds);
        } else {
            reference_of_integers(tested, x, first, inner, bits);
        }
    }
    if (is_float) {
        operand_check_bounds(run, y, expected, bounds, "result");
    } else {
        operand_check_bits(run, y, bits, false, "result");
    }
}

static void run_scan(case_run *run, const void *parameters)
{
    const scan_case *tested = parameters;
    random_state random = {run->seed};
    case_claim_storage(run, tested->type);
    case_claim_arithmetic(run, tested->type);
    operand x = operand_create(run, tested->type, 3, tested->shape, tested->layout);
    operand before = operand_create(run, tested->type, 3, tested->shape, tested->layout);
    operand y = operand_create(run, tested->type, 3, tested->shape, LAYOUT_PLAIN);
    fill(tested, &x, &random);
    operand_upload(run, &x);
    operand_poison(run, &y);
    for (size_t i = 0; i < x.count; i++) {
        number_store(x.type, before.elements, i, number_load(x.type, x.elements, i));
    }
    operand *result = tested->in_place ? &x : &y;
    case_ok(run,
            ops_scan(run->ops, tested->kind, (int32_t)tested->axis, &x.tensor, &result->tensor),
            "ops_scan");
    operand_download(run, result, "result");
    judge(run, tested, &before, result);
}

static void print_scan(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    const scan_case *tested = parameters;
    snprintf(name, bytes,
             "ops/scan(kind=%s,type=%s,shape=%lldx%lldx%lld,axis=%u,layout=%s,in_place=%d,nan=%d,"
             "seed=%llu)",
             kind_names[tested->kind], hal_type_name(tested->type), (long long)tested->shape[0],
             (long long)tested->shape[1], (long long)tested->shape[2], tested->axis,
             layout_name(tested->layout), tested->in_place, tested->has_nan,
             (unsigned long long)seed);
}

static const case_family scans = {.function = run_scan,
                                  .bytes = sizeof(scan_case),
                                  .sizes = scan_sizes,
                                  .size_count = 4,
                                  .print = print_scan};

static void run_refusals(case_run *run, const void *parameters)
{
    const int64_t shape[2] = {4, 6}, unfit[2] = {4, 4};
    const hal_status wrong = HAL_ERROR_INVALID_ARGUMENT;
    ops_tensor x = case_tensor(run, HAL_TYPE_F32, 2, shape);
    ops_tensor i = case_tensor(run, HAL_TYPE_I32, 2, shape);
    ops_tensor small = case_tensor(run, HAL_TYPE_F32, 2, unfit), shifted = x;
    case_expect(run, ops_scan(run->ops, OPS_SCAN_SUM, 0, &x, &small), wrong, NULL,
                "a scan to another shape");
    case_expect(run, ops_scan(run->ops, OPS_SCAN_SUM, 0, &x, &i), wrong, NULL,
                "a scan to another type");
    case_expect(run, ops_scan(run->ops, OPS_SCAN_SUM, 2, &x, &x), wrong, NULL, "a scan of axis 2");
    case_expect(run, ops_scan(run->ops, OPS_SCAN_KIND_COUNT, 0, &x, &x), wrong, NULL,
                "a scan of no kind");
    shifted.shape[1] = 3;
    small = shifted;
    small.offset = 1;
    case_expect(run, ops_scan(run->ops, OPS_SCAN_SUM, 0, &shifted, &small), wrong, NULL,
                "a scan to a part of x");
}

void cases_ops_scan(case_list *list)
{
    uint32_t turn = 0;
    for (hal_type type = HAL_TYPE_BOOL + 1; type < HAL_TYPE_COUNT; type++) {
        for (uint32_t kind = 0; kind < OPS_SCAN_KIND_COUNT; kind++, turn++) {
            const scan_case tested = {.type = type,
                                      .kind = (ops_scan_kind)kind,
                                      .axis = turn % 3,
                                      .shape = {turn % 2 ? 7 : 67, 29, turn % 5 ? 31 : 130},
                                      .layout = (operand_layout)(turn % LAYOUT_BROADCAST),
                                      .in_place = turn % 4 == 3,
                                      .has_nan = turn % 2 == 0};
            case_add_member(list, &scans, &tested);
            case_covers(list, type, CASE_BINDING, "ops scan");
        }
    }
    /* Few long lines, which are cut, and one that is not whole in steps. */
    static const int64_t lengths[] = {1, 255, 4097, 70001};
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t axis = 0; axis < 3; axis += 2) {
            scan_case tested = {.type = i % 2 ? HAL_TYPE_F32 : HAL_TYPE_I32,
                                .kind = OPS_SCAN_SUM,
                                .axis = axis,
                                .shape = {1, 2, 1}};
            tested.shape[axis] = lengths[i];
            case_add_member(list, &scans, &tested);
        }
    }
    case_add(list, run_refusals, NULL, 0, "ops/refuses(scan)");
}
