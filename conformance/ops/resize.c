/* resize.c: nearest and linear resizing against double precision, and gradients as transposes:
 * the sum of y dy is that of x dx. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <ops/resize.h>

#include "case/cases.h"
#include "ops/fixture.h"

/* x [channels, length0, length1], or with channels last [length0, length1, channels]. */
typedef struct resize_case {
    hal_type type;
    ops_resize_kind kind;
    ops_resize_places places;
    int64_t channels, from[2], to[2];
    bool channels_last, is_gradient;
    operand_layout layout;
} resize_case;

static const char *const kind_names[] = {"nearest", "linear"};
static const char *const place_names[] = {"corner", "half", "align"};

/* The neighbours of element i of an axis, and the share of the second. */
static double neighbours(const resize_case *t, uint32_t axis, int64_t i, int64_t near[2])
{
    const double n = (double)t->from[axis], m = (double)t->to[axis];
    const bool is_nearest = t->kind == OPS_RESIZE_NEAREST;
    double at = (double)i * (n / m);
    if (t->places == OPS_RESIZE_HALF) {
        at = ((double)i + 0.5) * (n / m) - (is_nearest ? 0.0 : 0.5);
    } else if (t->places == OPS_RESIZE_ALIGN) {
        at = (m > 1.0 ? (double)i * ((n - 1.0) / (m - 1.0)) : 0.0) + (is_nearest ? 0.5 : 0.0);
    }
    at = at < 0.0 ? 0.0 : at > n - 1.0 ? n - 1.0 : at;
    near[0] = (int64_t)at;
    near[1] = near[0] + 1 < t->from[axis] ? near[0] + 1 : near[0];
    return is_nearest ? 0.0 : at - (double)near[0];
}

static size_t place(const resize_case *t, const int64_t *lengths, int64_t channel, int64_t i,
                    int64_t j)
{
    return (size_t)(t->channels_last ? (i * lengths[1] + j) * t->channels + channel
                                     : (channel * lengths[0] + i) * lengths[1] + j);
}

/* The result, or of a gradient the sums for x; `sizes` of absolute values. */
static void reference(const resize_case *t, const operand *x, long double *result, double *sizes)
{
    const int64_t c = t->channels;
    for (int64_t n = 0; n < c * t->to[0] * t->to[1]; n++) {
        const int64_t channel = n % c, i = n / c / t->to[1], j = n / c % t->to[1];
        int64_t rows[2], columns[2];
        const double down = neighbours(t, 0, i, rows), right = neighbours(t, 1, j, columns);
        for (uint32_t k = 0; k < 4; k++) {
            const long double share = (long double)(k / 2 ? down : 1.0 - down) *
                                      (long double)(k % 2 ? right : 1.0 - right);
            const size_t in = place(t, t->from, channel, rows[k / 2], columns[k % 2]);
            const size_t out = place(t, t->to, channel, i, j);
            const size_t from = t->is_gradient ? out : in, to = t->is_gradient ? in : out;
            if (share != 0.0L) {
                result[to] += share * (long double)operand_get(x, from);
                sizes[to] += (double)share * fabs(operand_get(x, from));
            }
        }
    }
}

static void run_resize(case_run *run, const void *parameters)
{
    const resize_case *t = parameters;
    random_state random = {run->seed};
    const int64_t *in = t->is_gradient ? t->to : t->from, *out = t->is_gradient ? t->from : t->to;
    const int64_t c = t->channels;
    const int64_t first[2][3] = {{c, in[0], in[1]}, {c, out[0], out[1]}};
    const int64_t last[2][3] = {{in[0], in[1], c}, {out[0], out[1], c}};
    case_claim_storage(run, t->type);
    case_claim_arithmetic(run, t->type);
    operand x = operand_create(run, t->type, 3, t->channels_last ? last[0] : first[0], t->layout);
    operand y =
        operand_create(run, t->type, 3, t->channels_last ? last[1] : first[1], LAYOUT_PLAIN);
    operand_fill(&x, &random, hal_type_is_float(t->type) ? -1.0 : 0.0,
                 hal_type_is_float(t->type) ? 1.0 : 2.0);
    operand_upload(run, &x);
    case_ok(run, ops_scope_begin(run->ops), "ops_scope_begin");
    ops_array *array = ops_array_from_tensor(run->ops, &x.tensor);
    array = t->is_gradient
                ? ops_array_resize_gradient(t->kind, t->places, 2, t->from, t->channels_last, array)
                : ops_array_resize(t->kind, t->places, 2, t->to, t->channels_last, array);
    const hal_status status =
        read_claimed(run, array, y.count * hal_type_size(t->type), y.elements);
    ops_scope_end(run->ops);
    case_ok(run, status, "ops_array_read");
    const double u = number_roundoff(hal_type_of_value(t->type)), v = number_roundoff(t->type);
    const double terms = t->is_gradient ? (double)(t->to[0] * t->to[1]) + 8.0 : 12.0;
    long double *expected = case_allocate(run, y.count, sizeof *expected);
    double *bounds = case_allocate(run, y.count, sizeof *bounds);
    reference(t, &x, expected, bounds);
    for (size_t i = 0; i < y.count; i++) {
        const bool is_exact = t->kind == OPS_RESIZE_NEAREST && !t->is_gradient;
        bounds[i] = is_exact ? 0.0 : 1.001 * (terms * u * bounds[i] + v * bounds[i]) + 4.0 * u;
    }
    operand_check_bounds(run, &y, expected, bounds, "result");
}

static void print_resize(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    const resize_case *t = parameters;
    snprintf(
        name, bytes,
        "ops/resize(kind=%s,places=%s,type=%s,channels=%lld,from=%lldx%lld,to=%lldx%lld,last=%d,"
        "gradient=%d,layout=%s,seed=%llu)",
        kind_names[t->kind], place_names[t->places], hal_type_name(t->type), (long long)t->channels,
        (long long)t->from[0], (long long)t->from[1], (long long)t->to[0], (long long)t->to[1],
        t->channels_last, t->is_gradient, layout_name(t->layout), (unsigned long long)seed);
}

static const case_family resizes = {
    .function = run_resize, .bytes = sizeof(resize_case), .print = print_resize};

void cases_ops_resize(case_list *list)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F64, HAL_TYPE_F16, HAL_TYPE_BF16};
    static const int64_t sizes[][4] = {{5, 7, 10, 14}, {9, 8, 4, 3}, {1, 6, 5, 1}, {13, 3, 13, 7}};
    for (uint32_t i = 0; i < 24; i++) {
        const int64_t *s = sizes[i / 6];
        const resize_case tested = {.type = types[i % 4],
                                    .kind = i % 2 ? OPS_RESIZE_LINEAR : OPS_RESIZE_NEAREST,
                                    .places = (ops_resize_places)(i % 3),
                                    .channels = 2,
                                    .from = {s[0], s[1]},
                                    .to = {s[2], s[3]},
                                    .channels_last = i / 3 % 2 != 0,
                                    .is_gradient = i / 2 % 2 != 0,
                                    .layout = (operand_layout)(i % LAYOUT_BROADCAST)};
        case_add_member(list, &resizes, &tested);
    }
    const resize_case whole = {.type = HAL_TYPE_U8,
                               .channels = 2,
                               .from = {4, 5},
                               .to = {9, 3},
                               .places = OPS_RESIZE_HALF};
    case_add_member(list, &resizes, &whole);
    for (uint32_t i = 0; i < 8; i++) { /* work-items of a GPU compute several channels */
        const resize_case tested = {.type = HAL_TYPE_F32,
                                    .kind = i % 2 ? OPS_RESIZE_LINEAR : OPS_RESIZE_NEAREST,
                                    .places = OPS_RESIZE_HALF,
                                    .channels = 43,
                                    .from = {61, 92},
                                    .to = {183, 87},
                                    .channels_last = i / 4 != 0,
                                    .is_gradient = i / 2 % 2 != 0};
        case_add_member(list, &resizes, &tested);
    }
}
