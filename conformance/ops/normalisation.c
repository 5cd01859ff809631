/* normalisation.c: layer, RMS, group and batch norm with their gradients, against double
 * precision. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <ops/normalisation.h>

#include "case/cases.h"
#include "ops/fixture.h"

typedef enum norm_kind { LAYER, RMS, GROUP, BATCH, GIVEN, KIND_COUNT } norm_kind;

/* x is [N, C, length]. Layer and RMS norm are along the last two axes. */
typedef struct norm_case {
    hal_type type;
    norm_kind kind;
    int64_t images, channels, length, groups;
    bool has_weight, is_gradient;
    operand_layout layout;
} norm_case;

static const char *const kind_names[KIND_COUNT] = {"layer", "rms", "group", "batch", "given"};
static const double epsilon = 1e-3;

/* Which mean an element takes, and which weight. */
static size_t mean_of(const norm_case *t, size_t i)
{
    const size_t n = (size_t)t->length, c = (size_t)t->channels, channel = i / n % c;
    switch (t->kind) {
    case GROUP:
        return i / n / c * (size_t)t->groups + channel / (c / (size_t)t->groups);
    case BATCH:
    case GIVEN:
        return channel;
    default:
        return i / n / c;
    }
}

static size_t weight_of(const norm_case *t, size_t i)
{
    const size_t n = (size_t)t->length, c = (size_t)t->channels;
    return t->kind == LAYER || t->kind == RMS ? i % (n * c) : i / n % c;
}

static size_t mean_count(const norm_case *t)
{
    return (size_t)(t->kind == GROUP                     ? t->images * t->groups
                    : t->kind == LAYER || t->kind == RMS ? t->images
                                                         : t->channels);
}

static int64_t weight_count(const norm_case *t)
{
    return t->kind == LAYER || t->kind == RMS ? t->channels * t->length : t->channels;
}

/* What is computed from x in long double, by element and by mean. */
typedef struct norm_reference {
    size_t count, means;
    double n; /* elements of a mean */
    long double *normalised, *mean, *scale;
    double largest; /* of scale times |x| and of |normalised| */
} norm_reference;

static norm_reference refer(case_run *run, const norm_case *t, const operand *x,
                            const operand *mean, const operand *variance)
{
    norm_reference r = {.count = x->count, .means = mean_count(t)};
    long double *squares = case_allocate(run, r.means, sizeof *squares);
    r.normalised = case_allocate(run, r.count, sizeof *r.normalised);
    r.mean = case_allocate(run, r.means, sizeof *r.mean);
    r.scale = case_allocate(run, r.means, sizeof *r.scale);
    r.n = (double)(r.count / r.means);
    for (size_t i = 0; i < r.count && t->kind != RMS; i++) {
        r.mean[mean_of(t, i)] += (long double)operand_get(x, i) / (long double)r.n;
    }
    for (size_t m = 0; m < r.means && t->kind == GIVEN; m++) {
        r.mean[m] = (long double)operand_get(mean, m);
    }
    for (size_t i = 0; i < r.count; i++) {
        const long double part = (long double)operand_get(x, i) - r.mean[mean_of(t, i)];
        squares[mean_of(t, i)] += part * part / (long double)r.n;
    }
    for (size_t m = 0; m < r.means; m++) {
        const long double square =
            t->kind == GIVEN ? (long double)operand_get(variance, m) : squares[m];
        r.scale[m] = 1 / sqrtl(square + (long double)epsilon);
    }
    for (size_t i = 0; i < r.count; i++) {
        const size_t m = mean_of(t, i);
        const long double value = (long double)operand_get(x, i);
        r.normalised[i] = (value - r.mean[m]) * r.scale[m];
        r.largest = fmax(r.largest, (double)fabsl(r.normalised[i]));
        r.largest = fmax(r.largest, (double)fabsl(value * r.scale[m]));
    }
    return r;
}

/* Of means of n elements and of what is made of them: units of the type of sums, times the largest
 * values that are subtracted. */
static double spread(const norm_case *t, const norm_reference *r)
{
    return 4 * (r->n + 16) * number_roundoff(hal_type_of_value(t->type)) * (1 + r->largest);
}

static void judge_forward(case_run *run, const norm_case *t, const norm_reference *r,
                          const operand *weight, const operand *bias, const operand *y)
{
    const double v = number_roundoff(t->type);
    long double *expected = case_allocate(run, y->count, sizeof *expected);
    double *bounds = case_allocate(run, y->count, sizeof *bounds);
    for (size_t i = 0; i < y->count; i++) {
        const size_t k = weight_of(t, i);
        const double w = t->has_weight ? operand_get(weight, k) : 1;
        const double b = t->has_weight && t->kind != RMS ? operand_get(bias, k) : 0;
        expected[i] = r->normalised[i] * (long double)w + (long double)b;
        bounds[i] = spread(t, r) * (1 + r->largest) * (fabs(w) + fabs(b)) +
                    1.01 * v * (double)fabsl(expected[i]) + 1e-30;
    }
    operand_check_bounds(run, y, expected, bounds, "result");
}

/* Gradients by x, weight and bias from dy. */
static void judge_gradients(case_run *run, const norm_case *t, const norm_reference *r,
                            const operand *dy, const operand *weight, const operand results[3])
{
    const double v = number_roundoff(t->type);
    long double *g_mean = case_allocate(run, r->means, sizeof *g_mean);
    long double *product = case_allocate(run, r->means, sizeof *product);
    double *most = case_allocate(run, r->means, sizeof *most);
    for (size_t i = 0; i < r->count; i++) {
        const size_t m = mean_of(t, i), k = weight_of(t, i);
        const double w = t->has_weight ? operand_get(weight, k) : 1;
        const long double g = (long double)operand_get(dy, i) * (long double)w;
        g_mean[m] += t->kind == RMS ? 0 : g / (long double)r->n;
        product[m] += g * r->normalised[i] / (long double)r->n;
        most[m] = fmax(most[m], (double)fabsl(g));
    }
    for (uint32_t which = 0; which < 3; which++) {
        const operand *result = &results[which];
        long double *expected = case_allocate(run, result->count, sizeof *expected);
        double *bounds = case_allocate(run, result->count, sizeof *bounds);
        for (size_t i = 0; i < r->count; i++) {
            const size_t m = mean_of(t, i), k = weight_of(t, i);
            const long double given = (long double)operand_get(dy, i), y = r->normalised[i];
            const long double w = (long double)(t->has_weight ? operand_get(weight, k) : 1.0);
            if (which == 0) {
                expected[i] = r->scale[m] * (given * w - g_mean[m] - y * product[m]);
                bounds[i] = (double)r->scale[m] * most[m] * (2 + r->largest * r->largest);
            } else {
                expected[k] += which == 1 ? given * y : given;
                bounds[k] += (double)fabsl(given) * (1 + r->largest);
            }
        }
        const double terms = which == 0 ? 1 : (double)r->count / r->n;
        for (size_t i = 0; i < result->count; i++) {
            bounds[i] = spread(t, r) * terms * (1 + r->largest) * bounds[i] +
                        1.01 * v * (double)fabsl(expected[i]) + 1e-30;
        }
        operand_check_bounds(run, result, expected, bounds,
                             which == 0   ? "gradient by x"
                             : which == 1 ? "gradient by weight"
                                          : "gradient by bias");
    }
}

/* The operands of a case, on the device. */
typedef struct norm_operands {
    operand x, dy, weight, bias, mean, variance;
} norm_operands;

static operand make(case_run *run, hal_type type, uint32_t rank, const int64_t *shape,
                    operand_layout layout, random_state *random, double low)
{
    operand made = operand_create(run, type, rank, shape, layout);
    operand_fill(&made, random, low, 3.0);
    operand_upload(run, &made);
    return made;
}

static norm_operands make_all(case_run *run, const norm_case *t)
{
    random_state random = {run->seed};
    const int64_t shape[3] = {t->images, t->channels, t->length}, weights = weight_count(t);
    norm_operands o = {
        .x = make(run, t->type, 3, shape, t->layout, &random, -1.0),
        .dy = make(run, t->type, 3, shape, t->layout, &random, -2.0),
        .weight = make(run, t->type, 1, &weights, LAYOUT_PLAIN, &random, -1.0),
        .bias = make(run, t->type, 1, &weights, LAYOUT_PLAIN, &random, -1.0),
        .mean = make(run, t->type, 1, &t->channels, LAYOUT_PLAIN, &random, 0.0),
        .variance = make(run, t->type, 1, &t->channels, LAYOUT_PLAIN, &random, 0.5),
    };
    return o;
}

static ops_array *forward(case_run *run, const norm_case *t, const norm_operands *o,
                          ops_normalised more)
{
    ops_array *x = ops_array_from_tensor(run->ops, &o->x.tensor);
    ops_array *w = t->has_weight ? ops_array_from_tensor(run->ops, &o->weight.tensor) : NULL;
    ops_array *b = t->has_weight ? ops_array_from_tensor(run->ops, &o->bias.tensor) : NULL;
    switch (t->kind) {
    case LAYER:
        return ops_array_layer_norm(x, 2, w, b, epsilon, more);
    case RMS:
        return ops_array_rms_norm(x, 2, w, epsilon, more);
    case GROUP:
        return ops_array_group_norm(x, t->groups, w, b, epsilon, more);
    case BATCH:
        return ops_array_batch_norm(x, w, b, epsilon, more);
    default:
        return ops_array_batch_norm_given(x, ops_array_from_tensor(run->ops, &o->mean.tensor),
                                          ops_array_from_tensor(run->ops, &o->variance.tensor), w,
                                          b, epsilon);
    }
}

static hal_status backward(case_run *run, const norm_case *t, const norm_operands *o,
                           ops_array *mean, ops_array *scale, ops_array *gradients[3])
{
    ops_array *x = ops_array_from_tensor(run->ops, &o->x.tensor);
    ops_array *dy = ops_array_from_tensor(run->ops, &o->dy.tensor);
    ops_array *w = t->has_weight ? ops_array_from_tensor(run->ops, &o->weight.tensor) : NULL;
    const ops_norm_gradients all = {&gradients[0], &gradients[1], &gradients[2]};
    switch (t->kind) {
    case GROUP:
        return ops_array_group_norm_gradients(dy, x, t->groups, mean, scale, w, all);
    case BATCH:
        return ops_array_batch_norm_gradients(dy, x, mean, scale, w, all);
    default:
        return ops_array_layer_norm_gradients(dy, x, 2, mean, scale, w, all);
    }
}

static void run_norm(case_run *run, const void *parameters)
{
    const norm_case *t = parameters;
    case_claim_storage(run, t->type);
    case_claim_arithmetic(run, t->type);
    norm_operands o = make_all(run, t);
    const int64_t shape[3] = {t->images, t->channels, t->length}, weights = weight_count(t);
    operand y = operand_create(run, t->type, 3, shape, LAYOUT_PLAIN);
    operand results[3] = {operand_create(run, t->type, 3, shape, LAYOUT_PLAIN),
                          operand_create(run, t->type, 1, &weights, LAYOUT_PLAIN),
                          operand_create(run, t->type, 1, &weights, LAYOUT_PLAIN)};
    case_ok(run, ops_scope_begin(run->ops), "ops_scope_begin");
    ops_array *mean = NULL, *scale = NULL, *gradients[3] = {NULL, NULL, NULL};
    ops_array *array = forward(run, t, &o, (ops_normalised){&mean, &scale});
    hal_status status = read_claimed(run, array, y.count * hal_type_size(t->type), y.elements);
    if (status == HAL_OK && t->is_gradient) {
        status = backward(run, t, &o, mean, scale, gradients);
    }
    for (uint32_t i = 0; status == HAL_OK && t->is_gradient && i < 3; i++) {
        status = read_claimed(run, gradients[i], results[i].count * hal_type_size(t->type),
                              results[i].elements);
    }
    ops_scope_end(run->ops);
    case_ok(run, status, "ops_array_read");
    const norm_reference r = refer(run, t, &o.x, &o.mean, &o.variance);
    judge_forward(run, t, &r, &o.weight, &o.bias, &y);
    if (t->is_gradient) {
        judge_gradients(run, t, &r, &o.dy, &o.weight, results);
    }
}

static void print_norm(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    const norm_case *t = parameters;
    snprintf(name, bytes,
             "ops/norm(kind=%s,type=%s,shape=%lldx%lldx%lld,groups=%lld,weight=%d,gradient=%d,"
             "layout=%s,seed=%llu)",
             kind_names[t->kind], hal_type_name(t->type), (long long)t->images,
             (long long)t->channels, (long long)t->length, (long long)t->groups, t->has_weight,
             t->is_gradient, layout_name(t->layout), (unsigned long long)seed);
}

static const case_family norms = {
    .function = run_norm, .bytes = sizeof(norm_case), .print = print_norm};

void cases_ops_normalisation(case_list *list)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16, HAL_TYPE_F64, HAL_TYPE_BF16};
    static const int64_t shapes[][3] = {{3, 4, 5}, {2, 6, 33}, {5, 2, 1}};
    uint32_t turn = 0;
    for (uint32_t s = 0; s < 3; s++) {
        for (uint32_t kind = 0; kind < KIND_COUNT; kind++, turn++) {
            const norm_case tested = {.type = types[(turn + s) % 4],
                                      .kind = (norm_kind)kind,
                                      .images = shapes[s][0],
                                      .channels = shapes[s][1],
                                      .length = shapes[s][2],
                                      .groups = 2,
                                      .has_weight = turn % 3 != 1,
                                      .is_gradient = kind != GIVEN,
                                      .layout = (operand_layout)(turn % LAYOUT_BROADCAST)};
            case_add_member(list, &norms, &tested);
        }
    }
}
