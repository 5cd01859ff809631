/* adaptive_pooling.c: adaptive pooling, its places and gradients, against double precision, along
 * one to three axes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <ops/pooling.h>

#include "case/cases.h"
#include "ops/fixture.h"

typedef struct adaptive_case {
    hal_type type;
    ops_pool_kind kind;
    bool is_gradient, channels_last, has_nan;
    uint32_t rank;
    int64_t length[3], places[3]; /* 1 beyond the rank */
} adaptive_case;

enum { IMAGES = 2, CHANNELS = 3 };

static int64_t volume(const int64_t *lengths)
{
    return lengths[0] * lengths[1] * lengths[2];
}

/* The element of the operand that has this place in a plane. */
static size_t element(const adaptive_case *t, const int64_t *lengths, int64_t plane, int64_t at)
{
    const int64_t image = plane / CHANNELS, channel = plane % CHANNELS;
    return (size_t)(t->channels_last ? (image * volume(lengths) + at) * CHANNELS + channel
                                     : plane * volume(lengths) + at);
}

/* A window: its first elements and lengths along each axis, and the number of its elements. */
typedef struct window {
    int64_t start[3], length[3], count;
} window;

static window window_at(const adaptive_case *t, int64_t place)
{
    window w = {.count = 1};
    for (int i = 2; i >= 0; i--) {
        const int64_t p = place % t->places[i], n = t->places[i];
        w.start[i] = p * t->length[i] / n;
        w.length[i] = ((p + 1) * t->length[i] + n - 1) / n - w.start[i];
        w.count *= w.length[i];
        place /= n;
    }
    return w;
}

/* The place in x of element k of a window, in row-major order. */
static int64_t place_of(const adaptive_case *t, const window *w, int64_t k)
{
    int64_t at[3];
    for (int i = 2; i >= 0; i--) {
        at[i] = w->start[i] + k % w->length[i];
        k /= w->length[i];
    }
    return (at[0] * t->length[1] + at[1]) * t->length[2] + at[2];
}

/* The first maximum, or the last NaN. */
static int64_t greatest(const adaptive_case *t, const operand *x, int64_t plane, const window *w)
{
    int64_t best = place_of(t, w, 0);
    for (int64_t k = 1; k < w->count; k++) {
        const int64_t at = place_of(t, w, k);
        const double value = operand_get(x, element(t, t->length, plane, at));
        const double most = operand_get(x, element(t, t->length, plane, best));
        best = value > most || isnan(value) ? at : best;
    }
    return best;
}

/* Adds what one window gives. `terms`: additions of a result, for the bounds. */
static void add_window(const adaptive_case *t, const operand *x, const operand *dy, int64_t plane,
                       int64_t place, long double *expected, double *sizes)
{
    const window w = window_at(t, place);
    const size_t at_y = element(t, t->places, plane, place);
    const bool is_max = t->kind == OPS_POOL_MAX;
    const int64_t most = is_max ? greatest(t, x, plane, &w) : -1;
    for (int64_t k = 0; k < w.count; k++) {
        const int64_t at = place_of(t, &w, k);
        const size_t at_x = element(t, t->length, plane, at);
        if (is_max && at != most) {
            continue;
        }
        const double share = is_max ? 1 : 1 / (double)w.count;
        const double part =
            share * operand_get(t->is_gradient ? dy : x, t->is_gradient ? at_y : at_x);
        expected[t->is_gradient ? at_x : at_y] += (long double)part;
        sizes[t->is_gradient ? at_x : at_y] += fabs(part);
    }
}

static void judge(case_run *run, const adaptive_case *t, const operand *x, const operand *dy,
                  const operand *result, const int64_t *found)
{
    const double u = number_roundoff(hal_type_of_value(t->type)), v = number_roundoff(t->type);
    long double *expected = case_allocate(run, result->count, sizeof *expected);
    double *bounds = case_allocate(run, result->count, sizeof *bounds);
    const double terms = (double)volume(t->length) + 12;
    for (int64_t plane = 0; plane < IMAGES * CHANNELS; plane++) {
        for (int64_t place = 0; place < volume(t->places); place++) {
            add_window(t, x, dy, plane, place, expected, bounds);
            if (found) {
                const window w = window_at(t, place);
                const int64_t want = greatest(t, x, plane, &w);
                const int64_t got = found[plane * volume(t->places) + place];
                case_check(run, got == want, "place %lld of a maximum: expected %lld",
                           (long long)got, (long long)want);
            }
        }
    }
    const bool is_exact = t->kind == OPS_POOL_MAX && !t->is_gradient;
    for (size_t i = 0; i < result->count; i++) {
        bounds[i] = is_exact ? 0 : 1.001 * (terms * u + v) * bounds[i] + 1e-30;
    }
    operand_check_bounds(run, result, expected, bounds, t->is_gradient ? "gradient" : "result");
}

static operand make(case_run *run, const adaptive_case *t, const int64_t *lengths)
{
    int64_t shape[5] = {IMAGES, CHANNELS};
    memcpy(shape + (t->channels_last ? 1 : 2), lengths, t->rank * sizeof *lengths);
    if (t->channels_last) {
        shape[t->rank + 1] = CHANNELS;
    }
    return operand_create(run, t->type, t->rank + 2, shape, LAYOUT_PLAIN);
}

static void run_adaptive(case_run *run, const void *parameters)
{
    const adaptive_case *t = parameters;
    const bool is_max = t->kind == OPS_POOL_MAX;
    random_state random = {run->seed};
    case_claim_storage(run, t->type);
    case_claim_storage(run, HAL_TYPE_I64);
    case_claim_arithmetic(run, t->type);
    operand x = make(run, t, t->length), y = make(run, t, t->places), dx = make(run, t, t->length);
    operand_fill(&x, &random, -9, 9);
    for (size_t i = 0; t->has_nan && i < 5; i++) { /* several in a window */
        number_put(t->type, x.elements, x.count / 2 + i, (double)NAN);
    }
    operand_upload(run, &x);
    operand_fill(&y, &random, -9, 9);
    operand_upload(run, &y);
    operand dy = make(run, t, t->places);
    memcpy(dy.elements, y.elements, y.count * hal_type_size(t->type));
    int64_t *found = case_allocate(run, y.count, sizeof *found);
    case_ok(run, ops_scope_begin(run->ops), "ops_scope_begin");
    ops_array *at = NULL, *given = ops_array_from_tensor(run->ops, &x.tensor);
    ops_array *result = is_max
                            ? ops_array_adaptive_maxima(t->places, t->channels_last, given, &at)
                            : ops_array_adaptive_pool(t->kind, t->places, t->channels_last, given);
    hal_status status =
        at ? read_claimed(run, at, y.count * sizeof *found, found) : (hal_status)HAL_OK;
    if (t->is_gradient) {
        ops_array *of_y = ops_array_from_tensor(run->ops, &y.tensor);
        result = ops_array_adaptive_pool_gradient(t->kind, t->length, t->channels_last, of_y, at);
    }
    operand *read = t->is_gradient ? &dx : &y;
    if (status == HAL_OK) {
        status = read_claimed(run, result, read->count * hal_type_size(t->type), read->elements);
    }
    if (status == HAL_OK && is_max && !t->is_gradient) { /* without places: the same */
        operand again = make(run, t, t->places);
        result = ops_array_adaptive_pool(t->kind, t->places, t->channels_last, given);
        status = read_claimed(run, result, y.count * hal_type_size(t->type), again.elements);
        operand_check_bits(run, &again, y.elements, true, "result without places");
    }
    ops_scope_end(run->ops);
    case_ok(run, status, "ops_array_read");
    judge(run, t, &x, &dy, read, is_max ? found : NULL);
}

static void print_adaptive(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    const adaptive_case *t = parameters;
    snprintf(name, bytes,
             "ops/adaptive_pool(kind=%s,gradient=%d,type=%s,rank=%u,length=%lldx%lldx%lld,"
             "places=%lldx%lldx%lld,last=%d,nan=%d,seed=%llu)",
             t->kind == OPS_POOL_MAX ? "max" : "average", t->is_gradient, hal_type_name(t->type),
             t->rank, (long long)t->length[0], (long long)t->length[1], (long long)t->length[2],
             (long long)t->places[0], (long long)t->places[1], (long long)t->places[2],
             t->channels_last, t->has_nan, (unsigned long long)seed);
}

static const case_family adaptive = {
    .function = run_adaptive, .bytes = sizeof(adaptive_case), .print = print_adaptive};

void cases_ops_adaptive_pooling(case_list *list)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F64, HAL_TYPE_F16, HAL_TYPE_BF16,
                                     HAL_TYPE_I32};
    static const adaptive_case forms[] = {
        {.rank = 1, .length = {11, 1, 1}, .places = {4, 1, 1}},
        {.rank = 1, .length = {3, 1, 1}, .places = {7, 1, 1}}, /* more windows than elements */
        {.rank = 2, .length = {8, 9, 1}, .places = {4, 3, 1}},
        {.rank = 2, .length = {7, 5, 1}, .places = {3, 10, 1}},
        {.rank = 3, .length = {5, 4, 7}, .places = {2, 4, 3}},
        {.rank = 2, .length = {1, 6, 1}, .places = {1, 1, 1}},
    };
    uint32_t turn = 0;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        for (uint32_t k = 0; k < 4; k++, turn++) {
            adaptive_case tested = forms[i];
            tested.kind = (ops_pool_kind)(k % 2);
            tested.is_gradient = k / 2 == 1;
            tested.type = types[(turn * 3 + k) % (tested.kind == OPS_POOL_MAX ? 5 : 4)];
            tested.channels_last = turn % 3 == 1;
            tested.has_nan = tested.kind == OPS_POOL_MAX && !tested.is_gradient &&
                             hal_type_is_float(tested.type);
            case_add_member(list, &adaptive, &tested);
        }
    }
}
