/* pooling.c: maxima with places, averages and gradients, against double precision. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <ops/pooling.h>

#include "case/cases.h"
#include "ops/fixture.h"

typedef struct pool_case {
    hal_type type;
    ops_pool_kind kind;
    bool is_gradient, channels_last, has_nan;
    uint32_t ceiling, count_padding;
    int64_t images, channels, length[2], window[2], stride[2], dilation[2], before[2], after[2];
    operand_layout layout;
} pool_case;

/* Two spatial axes; places per axis by the definition: windows that begin within x and its padding
 * before it, and end within the padding, or with `ceiling` perhaps beyond. */
static int64_t places_of(const pool_case *t, uint32_t i)
{
    int64_t count = 0;
    for (;; count++) {
        const int64_t start = count * t->stride[i];
        const int64_t end = start + (t->window[i] - 1) * t->dilation[i] + 1;
        const int64_t padded = t->length[i] + t->before[i] + t->after[i];
        const bool ends_inside = end <= padded;
        const bool is_last =
            t->ceiling && start < t->length[i] + t->before[i] &&
            (count == 0 || start - t->stride[i] + (t->window[i] - 1) * t->dilation[i] + 1 < padded);
        if (!ends_inside && !is_last) {
            return count;
        }
    }
}

/* The element of x that is element k of window p along an axis; -1: in the padding, -2: beyond. */
static int64_t element_of(const pool_case *t, uint32_t i, int64_t p, int64_t k)
{
    const int64_t at = p * t->stride[i] + k * t->dilation[i] - t->before[i];
    return at >= 0 && at < t->length[i] ? at : at >= t->length[i] + t->after[i] ? -2 : -1;
}

/* One window of a channel's plane: its maximum and place, or its sum; and how many elements an
 * average counts. */
typedef struct window_value {
    double most, sum, size;
    int64_t place, count;
} window_value;

static window_value window_at(const pool_case *t, const double *plane, int64_t row, int64_t column)
{
    window_value v = {.most = -INFINITY, .place = -1};
    for (int64_t i = 0; i < t->window[0]; i++) {
        for (int64_t j = 0; j < t->window[1]; j++) {
            const int64_t y = element_of(t, 0, row, i), x = element_of(t, 1, column, j);
            if (y < 0 || x < 0) {
                v.count += t->count_padding && y != -2 && x != -2;
                continue;
            }
            const double value = plane[y * t->length[1] + x];
            v.count++;
            v.sum += value;
            v.size += fabs(value);
            if (v.place < 0 || value > v.most || isnan(value)) {
                v.most = value;
                v.place = y * t->length[1] + x;
            }
        }
    }
    return v;
}

/* Row-major place of (image, channel, row, column) in the caller's order. */
static size_t place(const pool_case *t, const int64_t lengths[2], int64_t plane, int64_t at)
{
    const int64_t volume = lengths[0] * lengths[1], image = plane / t->channels;
    const int64_t channel = plane % t->channels;
    return (size_t)(t->channels_last ? (image * volume + at) * t->channels + channel
                                     : plane * volume + at);
}

static void read_plane(const pool_case *t, const operand *o, const int64_t lengths[2],
                       int64_t plane, double *values)
{
    for (int64_t i = 0; i < lengths[0] * lengths[1]; i++) {
        values[i] = operand_get(o, place(t, lengths, plane, i));
    }
}

static void judge_forward(case_run *run, const pool_case *t, const int64_t places[2],
                          const operand *x, const operand *y, const int64_t *found)
{
    const double u = number_roundoff(hal_type_of_value(t->type)), v = number_roundoff(t->type);
    long double *expected = case_allocate(run, y->count, sizeof *expected);
    double *bounds = case_allocate(run, y->count, sizeof *bounds);
    double *values = case_allocate(run, (size_t)(t->length[0] * t->length[1]), sizeof *values);
    for (int64_t plane = 0; plane < t->images * t->channels; plane++) {
        read_plane(t, x, t->length, plane, values);
        for (int64_t p = 0; p < places[0] * places[1]; p++) {
            const window_value w = window_at(t, values, p / places[1], p % places[1]);
            const size_t at = place(t, places, plane, p);
            const bool is_max = t->kind == OPS_POOL_MAX;
            expected[at] = (long double)(is_max ? w.most : w.sum / (double)w.count);
            const double size = w.size / (double)(w.count > 0 ? w.count : 1);
            bounds[at] = is_max ? 0 : 1.001 * ((double)(w.count + 8) * u + v) * size + 1e-30;
            if (found) {
                const int64_t place_found = found[plane * places[0] * places[1] + p];
                case_check(run, w.place < 0 || place_found == w.place,
                           "place %lld of a maximum: expected %lld", (long long)place_found,
                           (long long)w.place);
            }
        }
    }
    operand_check_bounds(run, y, expected, bounds, "result");
}

static void judge_gradient(case_run *run, const pool_case *t, const int64_t places[2],
                           const operand *x, const operand *dy, const operand *dx)
{
    const double u = number_roundoff(hal_type_of_value(t->type)), v = number_roundoff(t->type);
    long double *expected = case_allocate(run, dx->count, sizeof *expected);
    double *bounds = case_allocate(run, dx->count, sizeof *bounds);
    double *values = case_allocate(run, (size_t)(t->length[0] * t->length[1]), sizeof *values);
    for (int64_t plane = 0; plane < t->images * t->channels; plane++) {
        read_plane(t, x, t->length, plane, values);
        for (int64_t p = 0; p < places[0] * places[1]; p++) {
            const window_value w = window_at(t, values, p / places[1], p % places[1]);
            const double given = operand_get(dy, place(t, places, plane, p));
            for (int64_t k = 0; k < t->window[0] * t->window[1]; k++) {
                const int64_t row = element_of(t, 0, p / places[1], k / t->window[1]);
                const int64_t column = element_of(t, 1, p % places[1], k % t->window[1]);
                const int64_t at = row * t->length[1] + column;
                const bool is_max = t->kind == OPS_POOL_MAX;
                if (row < 0 || column < 0 || (is_max && at != w.place)) {
                    continue;
                }
                const double part = is_max ? given : given / (double)w.count;
                expected[place(t, t->length, plane, at)] += (long double)part;
                bounds[place(t, t->length, plane, at)] += fabs(part);
            }
        }
    }
    for (size_t i = 0; i < dx->count; i++) {
        const double terms = (double)(t->window[0] * t->window[1] + 8);
        bounds[i] = 1.001 * (terms * u + v) * bounds[i] + 1e-30;
    }
    operand_check_bounds(run, dx, expected, bounds, "gradient");
}

static operand make(case_run *run, const pool_case *t, const int64_t lengths[2],
                    operand_layout layout)
{
    const int64_t second[4] = {t->images, t->channels, lengths[0], lengths[1]};
    const int64_t last[4] = {t->images, lengths[0], lengths[1], t->channels};
    return operand_create(run, t->type, 4, t->channels_last ? last : second, layout);
}

static ops_pool_options options_of(const pool_case *t)
{
    ops_pool_options o = {.size = sizeof o,
                          .channels_last = t->channels_last,
                          .ceiling = t->ceiling,
                          .count_padding = t->count_padding};
    memcpy(o.window, t->window, sizeof t->window);
    memcpy(o.stride, t->stride, sizeof t->stride);
    memcpy(o.dilation, t->dilation, sizeof t->dilation);
    memcpy(o.before, t->before, sizeof t->before);
    memcpy(o.after, t->after, sizeof t->after);
    return o;
}

static void run_pool(case_run *run, const void *parameters)
{
    const pool_case *t = parameters;
    const ops_pool_options o = options_of(t);
    const int64_t places[2] = {places_of(t, 0), places_of(t, 1)};
    random_state random = {run->seed};
    case_claim_storage(run, t->type);
    case_claim_storage(run, HAL_TYPE_I64);
    case_claim_arithmetic(run, t->type);
    operand x = make(run, t, t->length, t->layout), y = make(run, t, places, LAYOUT_PLAIN);
    operand dx = make(run, t, t->length, LAYOUT_PLAIN);
    operand_fill(&x, &random, -9, 9);
    if (t->has_nan) {
        number_put(t->type, x.elements, x.count / 2, (double)NAN);
    }
    operand_upload(run, &x);
    operand_fill(&y, &random, -9, 9);
    operand_upload(run, &y);
    int64_t *found = case_allocate(run, y.count, sizeof *found);
    case_ok(run, ops_scope_begin(run->ops), "ops_scope_begin");
    const bool is_max = t->kind == OPS_POOL_MAX, is_gradient = t->is_gradient;
    ops_array *at = NULL, *given = ops_array_from_tensor(run->ops, &x.tensor);
    ops_array *result = ops_array_pool(t->kind, &o, given, is_max ? &at : NULL);
    hal_status status =
        at ? read_claimed(run, at, y.count * sizeof *found, found) : (hal_status)HAL_OK;
    if (is_gradient) {
        ops_array *dy = ops_array_from_tensor(run->ops, &y.tensor);
        result = ops_array_pool_gradient(t->kind, &o, dy, at, t->length);
    }
    operand *read = is_gradient ? &dx : &y;
    if (status == HAL_OK) {
        status = read_claimed(run, result, read->count * hal_type_size(t->type), read->elements);
    }
    ops_scope_end(run->ops);
    case_ok(run, status, "ops_array_read");
    if (is_gradient) {
        judge_gradient(run, t, places, &x, &y, &dx);
    } else {
        judge_forward(run, t, places, &x, &y, is_max ? found : NULL);
    }
}

static void print_pool(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    const pool_case *t = parameters;
    snprintf(name, bytes,
             "ops/pool(kind=%s,gradient=%d,type=%s,length=%lldx%lld,window=%lldx%lld,"
             "stride=%lldx%lld,last=%d,ceiling=%u,padding=%u,nan=%d,layout=%s,seed=%llu)",
             t->kind == OPS_POOL_MAX ? "max" : "average", t->is_gradient, hal_type_name(t->type),
             (long long)t->length[0], (long long)t->length[1], (long long)t->window[0],
             (long long)t->window[1], (long long)t->stride[0], (long long)t->stride[1],
             t->channels_last, t->ceiling, t->count_padding, t->has_nan, layout_name(t->layout),
             (unsigned long long)seed);
}

static const case_family pools = {
    .function = run_pool, .bytes = sizeof(pool_case), .print = print_pool};

void cases_ops_pooling(case_list *list)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_F64, HAL_TYPE_BF16,
                                     HAL_TYPE_I32};
    static const pool_case forms[] = {
        {.length = {9, 8}, .window = {2, 2}, .stride = {2, 2}},
        {.length = {9, 11}, .window = {3, 3}, .stride = {2, 1}, .before = {1, 1}, .after = {1, 1}},
        {.length = {10, 7}, .window = {3, 2}, .stride = {3, 2}, .before = {1, 0}, .after = {0, 1}},
        {.length = {20, 17}, .window = {5, 4}, .stride = {1, 3}, .dilation = {2, 3}},
        {.length = {40, 3}, .window = {33, 1}, .stride = {5, 1}, .before = {16, 0}},
        {.length = {1, 1}, .window = {1, 1}, .stride = {1, 1}},
        {.length = {7, 9}, .window = {3, 3}, .stride = {3, 1}, .before = {2, 1}, .after = {2, 1}},
        {.length = {9, 9}, .window = {4, 4}, .stride = {1, 1}, .before = {2, 2}, .after = {1, 1}},
        /* Windows without elements. */
        {.length = {0, 3}, .window = {2, 2}, .stride = {1, 1}, .before = {1, 1}, .after = {1, 1}},
        {.length = {4, 1}, .window = {2, 2}, .stride = {1, 1}, .dilation = {3, 2}, .before = {1, 1},
         .after = {1, 1}},
        {.length = {7, 9}, .window = {3, 3}, .stride = {3, 1}, .before = {1, 2}, .after = {2, 3}},
        /* So many elements that work-items of a GPU compute several results. */
        {.length = {67, 71}, .window = {5, 5}, .stride = {1, 1}, .before = {2, 2}, .channels = 48},
        {.length = {129, 98}, .window = {3, 3}, .stride = {2, 2}, .before = {1, 1}, .channels = 48},
    };
    uint32_t turn = 0;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        for (uint32_t k = 0; k < 4; k++, turn++) {
            pool_case tested = forms[i];
            tested.images = 2;
            if (tested.channels == 0) {
                tested.channels = turn % 12 == 1 ? 8 : turn % 6 == 1 ? 6 : 3;
            }
            tested.kind = (ops_pool_kind)(k % 2);
            tested.is_gradient = k / 2 == 1;
            tested.type = types[(turn * 3 + k) % (tested.kind == OPS_POOL_MAX ? 5 : 4)];
            tested.channels_last = turn % 3 == 1;
            tested.ceiling = turn / 2 % 2;
            tested.count_padding = turn / 4 % 2;
            tested.has_nan = tested.kind == OPS_POOL_MAX && !tested.is_gradient &&
                             hal_type_is_float(tested.type) && turn % 3 == 0;
            tested.layout = (operand_layout)(turn % LAYOUT_BROADCAST);
            for (uint32_t axis = 0; axis < 2; axis++) {
                tested.dilation[axis] += tested.dilation[axis] == 0;
            }
            case_add_member(list, &pools, &tested);
        }
    }
}
