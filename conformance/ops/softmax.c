/* softmax.c: softmax and its logarithm over each axis, of odd lengths and large values. */
#include <math.h>
#include <stdio.h>

#include "case/cases.h"
#include "ops/fixture.h"

typedef struct softmax_case {
    hal_type type;
    uint32_t axis;
    int64_t shape[3];
    operand_layout layout;
    double scale;
    bool logarithm, in_place;
} softmax_case;

static const case_size softmax_sizes[] = {
    CASE_SIZE(softmax_case, shape[0], "shape", 0, 1),
    CASE_SIZE(softmax_case, shape[1], "shape", 1, 1),
    CASE_SIZE(softmax_case, shape[2], "shape", 2, 1),
    CASE_SIZE(softmax_case, in_place, "in_place", 0, 0),
};

/* The difference to the greatest is rounded, which exp multiplies by its size; exp and the division
 * are off by a few units, the sum by one for each element. */
static void reference_line(const softmax_case *tested, const operand *x, size_t first, size_t step,
                           double slack, long double *expected, double *bounds)
{
    const size_t length = (size_t)tested->shape[tested->axis];
    const double u = number_roundoff(hal_type_of_value(tested->type));
    const double out = number_roundoff(tested->type);
    long double greatest = (long double)operand_get(x, first), sum = 0.0L;
    for (size_t k = 1; k < length; k++) {
        greatest = fmaxl(greatest, (long double)operand_get(x, first + k * step));
    }
    for (size_t k = 0; k < length; k++) {
        sum += expl((long double)operand_get(x, first + k * step) - greatest);
    }
    for (size_t k = 0; k < length; k++) {
        const size_t at = first + k * step;
        const long double distance = (long double)operand_get(x, at) - greatest;
        const double far = fabs((double)distance);
        if (tested->logarithm) {
            expected[at] = distance - logl(sum);
            bounds[at] =
                u * ((double)length + 8.0 + 2.0 * far) + 1.001 * out * fabs((double)expected[at]);
        } else {
            expected[at] = expl(distance) / sum;
            bounds[at] =
                (u * ((double)length + 10.0 + far) + 1.001 * out) * (double)expected[at] + slack;
        }
    }
}

/* What is added to a bound: denormals may be 0, except those of F32 that the device claims. */
static double slack_of(const case_run *run, const softmax_case *tested)
{
    const double least = ldexp(1.0, hal_type_float_format(tested->type).least);
    const bool keeps = (run->info->exactness & HAL_EXACT_DENORMALS) != 0;
    return tested->type == HAL_TYPE_F64            ? 0x1p-1022
           : tested->type == HAL_TYPE_F32 && keeps ? 0x1p-147
                                                   : fmax(least, 0x1p-126);
}

static void judge(case_run *run, const softmax_case *tested, const operand *x, const operand *y)
{
    long double *expected = case_allocate(run, y->count, sizeof *expected);
    double *bounds = case_allocate(run, y->count, sizeof *bounds);
    size_t inner = 1;
    for (uint32_t d = tested->axis + 1; d < 3; d++) {
        inner *= (size_t)tested->shape[d];
    }
    const size_t length = (size_t)tested->shape[tested->axis];
    for (size_t line = 0; line < y->count / length; line++) {
        const size_t first = line / inner * inner * length + line % inner;
        reference_line(tested, x, first, inner, slack_of(run, tested), expected, bounds);
    }
    operand_check_bounds(run, y, expected, bounds, "result");
}

static void run_softmax(case_run *run, const void *parameters)
{
    const softmax_case *tested = parameters;
    random_state random = {run->seed};
    case_claim_storage(run, tested->type);
    case_claim_arithmetic(run, tested->type);
    operand x = operand_create(run, tested->type, 3, tested->shape, tested->layout);
    operand before = operand_create(run, tested->type, 3, tested->shape, tested->layout);
    operand y = operand_create(run, tested->type, 3, tested->shape, LAYOUT_PLAIN);
    operand_fill(&x, &random, -tested->scale, tested->scale);
    operand_upload(run, &x);
    operand_poison(run, &y);
    for (size_t i = 0; i < x.count; i++) {
        number_store(x.type, before.elements, i, number_load(x.type, x.elements, i));
    }
    operand *result = tested->in_place ? &x : &y;
    case_ok(run,
            tested->logarithm ? ops_log_softmax(run->ops, tested->axis, &x.tensor, &result->tensor)
                              : ops_softmax(run->ops, tested->axis, &x.tensor, &result->tensor),
            "ops_softmax");
    operand_download(run, result, "result");
    judge(run, tested, &before, result);
}

static void print_softmax(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    const softmax_case *tested = parameters;
    snprintf(
        name, bytes,
        "ops/%s(type=%s,shape=%lldx%lldx%lld,axis=%u,layout=%s,scale=%g,in_place=%d,seed=%llu)",
        tested->logarithm ? "log_softmax" : "softmax", hal_type_name(tested->type),
        (long long)tested->shape[0], (long long)tested->shape[1], (long long)tested->shape[2],
        tested->axis, layout_name(tested->layout), tested->scale, tested->in_place,
        (unsigned long long)seed);
}

static const case_family softmaxes = {.function = run_softmax,
                                      .bytes = sizeof(softmax_case),
                                      .sizes = softmax_sizes,
                                      .size_count = 4,
                                      .print = print_softmax};

static void add_softmax(case_list *list, const softmax_case *tested)
{
    case_add_member(list, &softmaxes, tested);
    case_covers(list, tested->type, CASE_BINDING, "ops %s",
                tested->logarithm ? "log_softmax" : "softmax");
}

void cases_ops_softmax(case_list *list)
{
    static const int64_t shapes[][3] = {{1, 10, 1},  {5, 10, 3},   {33, 1, 2},
                                        {4, 257, 1}, {2, 3001, 3}, {81, 47, 1}};
    for (int logarithm = 0; logarithm < 2; logarithm++) {
        for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
            const size_t count = hal_type_is_float(type) ? sizeof shapes / sizeof shapes[0] : 0;
            for (size_t s = 0; s < count; s++) {
                const softmax_case tested = {.type = type,
                                             .axis = 1,
                                             .shape = {shapes[s][0], shapes[s][1], shapes[s][2]},
                                             .scale = s == 3 ? 80.0 : 5.0,
                                             .logarithm = logarithm != 0,
                                             .in_place = s == 1};
                add_softmax(list, &tested);
            }
        }
        for (uint32_t axis = 0; axis < 3; axis++) {
            const softmax_case tested = {.type = HAL_TYPE_F32,
                                         .axis = axis,
                                         .shape = {9, 14, 23},
                                         .layout = (operand_layout)(axis + 2),
                                         .scale = 1000.0,
                                         .logarithm = logarithm != 0};
            add_softmax(list, &tested);
        }
    }
    /* Rows that a GPU keeps in registers or in shared memory, and that begin inside sectors. */
    static const int64_t kept[][3] = {{3, 40003, 1}, {2, 600, 48}, {2, 1500, 40}};
    for (size_t s = 0; s < sizeof kept / sizeof kept[0]; s++) {
        const softmax_case tested = {.type = s == 0 ? HAL_TYPE_BF16 : HAL_TYPE_F32,
                                     .axis = 1,
                                     .shape = {kept[s][0], kept[s][1], kept[s][2]},
                                     .scale = 5.0,
                                     .in_place = s == 0};
        add_softmax(list, &tested);
    }
    /* Three loops of 21,845 steps of a work-item. */
    list->level = CASE_LEVEL_STRESS;
    const softmax_case tall = {HAL_TYPE_F32, 0, {21845, 256, 1}, LAYOUT_PLAIN, 5.0, false, true};
    add_softmax(list, &tall);
    for (int logarithm = 0; logarithm < 2; logarithm++) {
        const softmax_case line = {HAL_TYPE_F32,   0,    {5592065, 1, 1}, LAYOUT_PLAIN, 5.0,
                                   logarithm != 0, false};
        const softmax_case block = {HAL_TYPE_F32,   0,    {349505, 16, 1}, LAYOUT_PLAIN, 5.0,
                                    logarithm != 0, false};
        add_softmax(list, &line);
        add_softmax(list, &block);
    }
}
