/* windows.c: copies by affine coordinates, whose bits are compared, and sums of windows with
 * weights, against sums in long double. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <ops/windows.h>

#include "case/cases.h"
#include "ops/fixture.h"

/* y [rows, columns, window]: element k of windows of x [length0, length1] along its last axis. */
typedef struct unfold_case {
    hal_type type;
    int64_t length[2], shape[3];
    int64_t origin[2], step[3]; /* the last of them along the same axis as the second */
    operand_layout layout;
} unfold_case;

static const case_size unfold_sizes[] = {
    CASE_SIZE(unfold_case, shape[0], "shape", 0, 1),
    CASE_SIZE(unfold_case, shape[1], "shape", 1, 1),
    CASE_SIZE(unfold_case, shape[2], "shape", 2, 1),
};

static void run_unfold(case_run *run, const void *parameters)
{
    const unfold_case *t = parameters;
    random_state random = {run->seed};
    case_claim_storage(run, t->type);
    case_claim_arithmetic(run, t->type);
    operand x = operand_create(run, t->type, 2, t->length, t->layout);
    operand y = operand_create(run, t->type, 3, t->shape, LAYOUT_STRIDED);
    operand outside = operand_create(run, t->type, 0, t->shape, LAYOUT_PLAIN);
    ops_unfold_places places = {.size = sizeof places, .axis = {0, 1, 1}};
    memcpy(places.step, t->step, sizeof t->step);
    memcpy(places.origin, t->origin, sizeof t->origin);
    const size_t size = hal_type_size(t->type);
    for (size_t i = 0; i < x.count; i++) { /* any bits, as copies keep them */
        number_store(t->type, x.elements, i,
                     t->type == HAL_TYPE_BOOL ? i % 2 : random_bits(&random, t->type));
    }
    number_store(t->type, outside.elements, 0, 1);
    operand_upload(run, &x);
    operand_upload(run, &outside);
    operand_poison(run, &y);
    uint8_t *expected = case_allocate(run, y.count, size);
    size_t n = 0;
    for (int64_t i = 0; i < t->shape[0]; i++) {
        for (int64_t j = 0; j < t->shape[1]; j++) {
            for (int64_t k = 0; k < t->shape[2]; k++, n++) {
                const int64_t row = t->origin[0] + i * t->step[0];
                const int64_t column = t->origin[1] + j * t->step[1] + k * t->step[2];
                const bool inside =
                    row >= 0 && row < t->length[0] && column >= 0 && column < t->length[1];
                const size_t at = inside ? (size_t)(row * t->length[1] + column) : 0;
                number_store(t->type, expected, n,
                             number_load(t->type, inside ? x.elements : outside.elements, at));
            }
        }
    }
    case_ok(run, ops_unfold(run->ops, &places, &x.tensor, &outside.tensor, &y.tensor),
            "ops_unfold");
    operand_download(run, &y, "y");
    operand_check_bits(run, &y, expected, false, "y");
}

static void print_unfold(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    const unfold_case *t = parameters;
    snprintf(name, bytes,
             "ops/unfold(type=%s,length=%lldx%lld,shape=%lldx%lldx%lld,origin=%lldx%lld,"
             "step=%lldx%lldx%lld,layout=%s,seed=%llu)",
             hal_type_name(t->type), (long long)t->length[0], (long long)t->length[1],
             (long long)t->shape[0], (long long)t->shape[1], (long long)t->shape[2],
             (long long)t->origin[0], (long long)t->origin[1], (long long)t->step[0],
             (long long)t->step[1], (long long)t->step[2], layout_name(t->layout),
             (unsigned long long)seed);
}

static const case_family unfolds = {.function = run_unfold,
                                    .bytes = sizeof(unfold_case),
                                    .sizes = unfold_sizes,
                                    .size_count = 3,
                                    .print = print_unfold};

/* Two spatial axes. */
typedef struct depthwise_case {
    hal_type type;
    int64_t images, channels, results; /* results of a channel */
    int64_t length[2], window[2], stride[2], dilation[2], before[2], places[2];
    bool has_bias;
    operand_layout layout;
} depthwise_case;

/* Adds to expected and to the sizes of sums of element (n, c, o, p, q). */
static void sum_window(const depthwise_case *t, const operand *x, const operand *w, int64_t image,
                       int64_t result, const int64_t *at, long double *sum, double *size)
{
    const int64_t channel = image * t->channels + result / t->results;
    for (int64_t k = 0; k < t->window[0]; k++) {
        for (int64_t l = 0; l < t->window[1]; l++) {
            const int64_t row = at[0] * t->stride[0] + k * t->dilation[0] - t->before[0];
            const int64_t column = at[1] * t->stride[1] + l * t->dilation[1] - t->before[1];
            if (row >= 0 && row < t->length[0] && column >= 0 && column < t->length[1]) {
                const size_t from =
                    (size_t)((channel * t->length[0] + row) * t->length[1] + column);
                const size_t weight = (size_t)((result * t->window[0] + k) * t->window[1] + l);
                const long double product =
                    (long double)operand_get(x, from) * (long double)operand_get(w, weight);
                *sum += product;
                *size += (double)fabsl(product);
            }
        }
    }
}

static void judge(case_run *run, const depthwise_case *t, const operand *x, const operand *w,
                  const operand *bias, const operand *y)
{
    const double u = number_roundoff(hal_type_of_value(t->type)), v = number_roundoff(t->type);
    const double terms = (double)(t->window[0] * t->window[1] + 2);
    const int64_t all = t->channels * t->results;
    long double *expected = case_allocate(run, y->count, sizeof *expected);
    double *bounds = case_allocate(run, y->count, sizeof *bounds);
    for (size_t i = 0; i < y->count; i++) {
        const int64_t n = (int64_t)i, columns = t->places[1], places = t->places[0] * columns;
        const int64_t at[2] = {n % places / columns, n % columns};
        const int64_t result = n / places % all;
        double size = 0;
        sum_window(t, x, w, n / places / all, result, at, &expected[i], &size);
        if (t->has_bias) {
            expected[i] += (long double)operand_get(bias, (size_t)result);
            size += fabs(operand_get(bias, (size_t)result));
        }
        bounds[i] = 1.001 * (terms * u * size + v * size) + 1e-30;
    }
    operand_check_bounds(run, y, expected, bounds, "y");
}

static void run_depthwise(case_run *run, const void *parameters)
{
    const depthwise_case *t = parameters;
    random_state random = {run->seed};
    const int64_t all = t->channels * t->results;
    case_claim_storage(run, t->type);
    case_claim_arithmetic(run, t->type);
    operand in[3] = {
        operand_create(run, t->type, 4,
                       (int64_t[]){t->images, t->channels, t->length[0], t->length[1]}, t->layout),
        operand_create(run, t->type, 3, (int64_t[]){all, t->window[0], t->window[1]}, t->layout),
        operand_create(run, t->type, 1, (int64_t[]){all}, LAYOUT_PLAIN)};
    operand y = operand_create(
        run, t->type, 4, (int64_t[]){t->images, all, t->places[0], t->places[1]}, LAYOUT_OFFSET);
    for (uint32_t i = 0; i < 3; i++) {
        operand_fill(&in[i], &random, -1.0, 1.0);
        operand_upload(run, &in[i]);
    }
    operand_poison(run, &y);
    ops_depthwise_options o = {.size = sizeof o, .rank = 2};
    memcpy(o.stride, t->stride, sizeof t->stride);
    memcpy(o.dilation, t->dilation, sizeof t->dilation);
    memcpy(o.before, t->before, sizeof t->before);
    case_ok(run,
            ops_depthwise(run->ops, &o, &in[0].tensor, &in[1].tensor,
                          t->has_bias ? &in[2].tensor : NULL, &y.tensor),
            "ops_depthwise");
    operand_download(run, &y, "y");
    judge(run, t, &in[0], &in[1], &in[2], &y);
}

static void print_depthwise(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    const depthwise_case *t = parameters;
    snprintf(
        name, bytes,
        "ops/depthwise(type=%s,images=%lld,channels=%lldx%lld,length=%lldx%lld,"
        "window=%lldx%lld,stride=%lldx%lld,before=%lldx%lld,places=%lldx%lld,bias=%d,layout=%s,"
        "seed=%llu)",
        hal_type_name(t->type), (long long)t->images, (long long)t->channels, (long long)t->results,
        (long long)t->length[0], (long long)t->length[1], (long long)t->window[0],
        (long long)t->window[1], (long long)t->stride[0], (long long)t->stride[1],
        (long long)t->before[0], (long long)t->before[1], (long long)t->places[0],
        (long long)t->places[1], t->has_bias, layout_name(t->layout), (unsigned long long)seed);
}

static const case_family depthwises = {
    .function = run_depthwise, .bytes = sizeof(depthwise_case), .print = print_depthwise};

static void run_refusals(case_run *run, const void *parameters)
{
    const hal_status wrong = HAL_ERROR_INVALID_ARGUMENT;
    const ops_tensor x = case_tensor(run, HAL_TYPE_F32, 4, (int64_t[]){1, 2, 5, 5});
    const ops_tensor y = case_tensor(run, HAL_TYPE_F32, 4, (int64_t[]){1, 2, 3, 3});
    const ops_tensor w = case_tensor(run, HAL_TYPE_F32, 3, (int64_t[]){2, 3, 3});
    const ops_tensor large = case_tensor(run, HAL_TYPE_F32, 3, (int64_t[]){2, 9, 9});
    const ops_tensor one = case_tensor(run, HAL_TYPE_F32, 0, NULL);
    ops_depthwise_options o = {.size = sizeof o, .rank = 2, .stride = {1, 1}, .dilation = {1, 0}};
    ops_unfold_places places = {.size = sizeof places, .axis = {0, 1, 2, 4}};
    case_expect(run, ops_depthwise(run->ops, &o, &x, &w, NULL, &y), wrong, NULL, "dilation 0");
    o.dilation[1] = 1;
    case_expect(run, ops_depthwise(run->ops, &o, &x, &large, NULL, &y), wrong, NULL, "81 elements");
    case_expect(run, ops_depthwise(run->ops, &o, &x, &w, &w, &y), wrong, NULL, "a bias of rank 3");
    case_expect(run, ops_depthwise(run->ops, &o, &x, &w, NULL, &x), wrong, NULL, "an overlap");
    case_expect(run, ops_unfold(run->ops, &places, &x, &one, &y), wrong, NULL, "an axis 4 of x");
    places.axis[3] = 3;
    places.step[3] = INT64_MAX / 2;
    case_expect(run, ops_unfold(run->ops, &places, &x, &one, &y), wrong, NULL, "far coordinates");
    case_expect(run, ops_unfold(run->ops, &places, &x, &x, &y), wrong, NULL, "many outside");
}

void cases_ops_windows(case_list *list)
{
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        const unfold_case tested = {.type = type,
                                    .length = {5, 17},
                                    .shape = {8, 11, 3},
                                    .origin = {type % 2 ? -2 : 1, type % 3 ? -3 : 20},
                                    .step = {1, type % 3 ? 2 : -2, 1},
                                    .layout = (operand_layout)(type % LAYOUT_BROADCAST)};
        case_add_member(list, &unfolds, &tested);
        case_covers(list, type, CASE_BINDING, "ops unfold");
    }
    const unfold_case empty = {
        .type = HAL_TYPE_F32, .length = {0, 4}, .shape = {3, 40, 2}, .step = {1, 1, 1}};
    case_add_member(list, &unfolds, &empty);
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F64, HAL_TYPE_F16, HAL_TYPE_BF16};
    for (uint32_t i = 0; i < 8; i++) {
        depthwise_case tested = {.type = types[i % 4],
                                 .images = 1 + i % 2,
                                 .channels = i == 7 ? 70 : 3,
                                 .results = 1 + i / 4 % 2,
                                 .length = {9, i == 5 ? 300 : 13},
                                 .window = {1 + i % 5, 5 - i % 3},
                                 .stride = {1 + i % 2, 1 + i % 3},
                                 .dilation = {1 + i % 3, 1},
                                 .before = {i % 4, i < 2 ? 0 : 2},
                                 .has_bias = i % 2 != 0,
                                 .layout = (operand_layout)(i % LAYOUT_BROADCAST)};
        for (uint32_t k = 0; k < 2; k++) { /* the last windows end one element after x */
            const int64_t reach = (tested.window[k] - 1) * tested.dilation[k];
            tested.places[k] = (tested.length[k] + tested.before[k] - reach) / tested.stride[k] + 1;
        }
        case_add_member(list, &depthwises, &tested);
        case_covers(list, tested.type, CASE_BINDING, "ops depthwise");
    }
    case_add(list, run_refusals, NULL, 0, "ops/refuses(windows)");
}
