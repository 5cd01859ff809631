/* convolution.c: convolutions, transposed ones and gradients by weights, against sums in long
 * double. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <ops/convolution.h>

#include "case/cases.h"
#include "ops/fixture.h"

typedef enum convolution_kind { FORWARD, TRANSPOSED, WEIGHTS, KIND_COUNT } convolution_kind;

/* Channels are those of one group. Lengths are those of the convolution's input. */
typedef struct convolution_case {
    hal_type type;
    convolution_kind kind;
    uint32_t rank; /* of the spatial axes */
    int64_t images, groups, inputs, outputs;
    int64_t length[3], window[3], stride[3], dilation[3], before[3], after[3];
    bool channels_last, has_bias, is_active; /* by RELU */
    ops_convolution_way way;
    operand_layout layout;
} convolution_case;

static const char *const way_names[] = {"auto", "copied", "implicit", "direct"};
static const char *const kind_names[KIND_COUNT] = {"forward", "transposed", "weights"};

/* The three tensors of a convolution, with the channels second; unused spatial axes have a length
 * of 1. */
typedef struct convolution_shapes {
    int64_t x[5], w[5], y[5];
} convolution_shapes;

static convolution_shapes shapes_of(const convolution_case *t)
{
    convolution_shapes s = {{t->images, t->groups * t->inputs},
                            {t->groups * t->outputs, t->inputs},
                            {t->images, t->groups * t->outputs}};
    for (uint32_t i = 0; i < 3; i++) {
        const bool used = i < t->rank;
        s.x[i + 2] = used ? t->length[i] : 1;
        s.w[i + 2] = used ? t->window[i] : 1;
        const int64_t reach = used ? (t->window[i] - 1) * t->dilation[i] : 0;
        const int64_t padded = s.x[i + 2] + (used ? t->before[i] + t->after[i] : 0);
        s.y[i + 2] = (padded - 1 - reach) / (used ? t->stride[i] : 1) + 1;
    }
    return s;
}

static size_t count_of(const int64_t shape[5])
{
    size_t count = 1;
    for (uint32_t i = 0; i < 5; i++) {
        count *= (size_t)shape[i];
    }
    return count;
}

/* The place of an element in row-major order of the caller's axes. */
static size_t place(const int64_t shape[5], const int64_t at[5], bool channels_last)
{
    static const uint32_t second[5] = {0, 1, 2, 3, 4}, last[5] = {0, 2, 3, 4, 1};
    const uint32_t *order = channels_last ? last : second;
    size_t index = 0;
    for (uint32_t i = 0; i < 5; i++) {
        index = index * (size_t)shape[order[i]] + (size_t)at[order[i]];
    }
    return index;
}

/* Moves to the next element of a shape; false after the last one. */
static bool step(const int64_t shape[5], int64_t at[5])
{
    for (uint32_t i = 5; i-- > 0; at[i] = 0) {
        if (++at[i] < shape[i]) {
            return true;
        }
    }
    return false;
}

/* Adds every product of x, w and y that belongs together to what the kind computes; `sizes` gets
 * the sums of absolute values. */
static void reference(const convolution_case *t, const convolution_shapes *s, const double *x,
                      const double *w, const double *y, long double *result, double *sizes)
{
    const bool last = t->channels_last;
    int64_t at[5] = {0};
    do {
        int64_t of_w[5] = {at[1]};
        for (int64_t c = 0; c < t->inputs; c++) {
            of_w[1] = c;
            int64_t k[5] = {0}, window[5] = {1, 1, s->w[2], s->w[3], s->w[4]};
            do {
                int64_t of_x[5] = {at[0], at[1] / t->outputs * t->inputs + c, 0, 0, 0};
                bool inside = true;
                for (uint32_t i = 0; i < 3; i++) {
                    const bool used = i < t->rank;
                    of_w[i + 2] = k[i + 2];
                    of_x[i + 2] =
                        used ? at[i + 2] * t->stride[i] + k[i + 2] * t->dilation[i] - t->before[i]
                             : 0;
                    inside &= of_x[i + 2] >= 0 && of_x[i + 2] < s->x[i + 2];
                }
                if (!inside) {
                    continue;
                }
                const size_t in = place(s->x, of_x, last), out = place(s->y, at, last);
                const size_t weight = place(s->w, of_w, false);
                const size_t to = t->kind == FORWARD ? out : t->kind == TRANSPOSED ? in : weight;
                const long double product = (long double)(t->kind == TRANSPOSED ? y[out] : x[in]) *
                                            (long double)(t->kind == WEIGHTS ? y[out] : w[weight]);
                result[to] += product;
                sizes[to] += (double)fabsl(product);
            } while (step(window, k));
        }
    } while (step(s->y, at));
}

static double *values_of(case_run *run, const operand *o)
{
    double *values = case_allocate(run, o->count, sizeof *values);
    for (size_t i = 0; i < o->count; i++) {
        values[i] = operand_get(o, i);
    }
    return values;
}

/* An operand in the caller's order, on the device unless it is the result. */
static operand make(case_run *run, const convolution_case *t, const int64_t shape[5], bool is_data,
                    operand_layout layout, random_state *random)
{
    int64_t own[5] = {shape[0], shape[1]};
    for (uint32_t i = 0; i < t->rank; i++) {
        own[2 + i] = shape[2 + i];
    }
    if (is_data && t->channels_last) {
        memmove(own + 1, own + 2, t->rank * sizeof *own);
        own[t->rank + 1] = shape[1];
    }
    operand made = operand_create(run, t->type, t->rank + 2, own, layout);
    if (random) {
        operand_fill(&made, random, -1.0, 1.0);
        operand_upload(run, &made);
    }
    return made;
}

static ops_array *array_of(case_run *run, const operand *o)
{
    ops_array *array = ops_array_from_tensor(run->ops, &o->tensor);
    case_check(run, array != NULL, "ops_array_from_tensor: %s", hal_status_message());
    return array;
}

static ops_array *compute(case_run *run, const convolution_case *t, const operand *x,
                          const operand *w, const operand *y, const operand *bias)
{
    ops_convolution_options o = {.size = sizeof o,
                                 .channels_last = t->channels_last,
                                 .groups = t->groups,
                                 .activation = t->is_active ? OPS_RELU : 0};
    memcpy(o.stride, t->stride, sizeof o.stride);
    memcpy(o.dilation, t->dilation, sizeof o.dilation);
    memcpy(o.before, t->before, sizeof o.before);
    memcpy(o.after, t->after, sizeof o.after);
    ops_array *added = t->has_bias ? array_of(run, bias) : NULL;
    switch (t->kind) {
    case FORWARD:
        return ops_array_convolution(&o, array_of(run, x), array_of(run, w), added);
    case TRANSPOSED:
        return ops_array_convolution_transposed(&o, array_of(run, y), array_of(run, w), added,
                                                t->length);
    default:
        return ops_array_convolution_weights(&o, array_of(run, x), array_of(run, y), t->window);
    }
}

/* Products and sums are those of ops_gemm, of narrow floats in F32; with pieces and the bias a
 * result is rounded at most twice more. */
static void judge(case_run *run, const convolution_case *t, const convolution_shapes *s,
                  const operand *x, const operand *w, const operand *y, const operand *bias,
                  const operand *result)
{
    const double u = number_roundoff(hal_type_of_value(t->type)), v = number_roundoff(t->type);
    const int64_t *volume = t->kind == WEIGHTS ? s->y : s->w;
    const double terms = (double)(count_of(volume) + 8);
    long double *expected = case_allocate(run, result->count, sizeof *expected);
    double *bounds = case_allocate(run, result->count, sizeof *bounds);
    reference(t, s, values_of(run, x), values_of(run, w), values_of(run, y), expected, bounds);
    for (size_t i = 0; i < result->count; i++) {
        if (t->has_bias) {
            const int64_t *shape = t->kind == FORWARD ? s->y : s->x;
            const size_t volume_of_image = (size_t)(shape[2] * shape[3] * shape[4]);
            const size_t channel =
                t->channels_last ? i % (size_t)shape[1] : i / volume_of_image % (size_t)shape[1];
            expected[i] += (long double)operand_get(bias, channel);
            bounds[i] += fabs(operand_get(bias, channel));
        }
        expected[i] = t->is_active ? fmaxl(expected[i], 0) : expected[i];
        bounds[i] = 1.001 * (terms * u * bounds[i] + 3.0 * v * bounds[i]) + 1e-30;
    }
    operand_check_bounds(run, result, expected, bounds, "result");
}

static void run_convolution(case_run *run, const void *parameters)
{
    const convolution_case *t = parameters;
    const convolution_shapes s = shapes_of(t);
    random_state random = {run->seed};
    const int64_t *shape = t->kind == FORWARD ? s.y : t->kind == TRANSPOSED ? s.x : s.w;
    case_claim_storage(run, t->type);
    case_claim_arithmetic(run, t->type);
    operand x = make(run, t, s.x, true, t->layout, &random);
    operand w = make(run, t, s.w, false, t->layout, &random);
    operand y = make(run, t, s.y, true, t->layout, &random);
    operand bias = operand_create(run, t->type, 1, &shape[1], LAYOUT_PLAIN);
    operand_fill(&bias, &random, -1.0, 1.0);
    operand_upload(run, &bias);
    operand result = make(run, t, shape, t->kind != WEIGHTS, LAYOUT_PLAIN, NULL);
    if (t->way != OPS_CONVOLUTION_AUTO) {
        ops_context_set_convolution(run->ops, t->way);
    }
    case_ok(run, ops_scope_begin(run->ops), "ops_scope_begin");
    ops_array *computed = compute(run, t, &x, &w, &y, &bias);
    const hal_status status =
        read_claimed(run, computed, result.count * hal_type_size(t->type), result.elements);
    ops_scope_end(run->ops);
    case_ok(run, status, "ops_array_read");
    judge(run, t, &s, &x, &w, &y, &bias, &result);
}

static void print_convolution(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    const convolution_case *t = parameters;
    snprintf(
        name, bytes,
        "ops/convolution(kind=%s,type=%s,rank=%u,images=%lld,groups=%lld,channels=%lldx%lld,"
        "length=%lldx%lldx%lld,window=%lldx%lldx%lld,last=%d,bias=%d,active=%d,way=%s,layout=%s,"
        "seed=%llu)",
        kind_names[t->kind], hal_type_name(t->type), t->rank, (long long)t->images,
        (long long)t->groups, (long long)t->inputs, (long long)t->outputs, (long long)t->length[0],
        (long long)t->length[1], (long long)t->length[2], (long long)t->window[0],
        (long long)t->window[1], (long long)t->window[2], t->channels_last, t->has_bias,
        t->is_active, way_names[t->way], layout_name(t->layout), (unsigned long long)seed);
}

static const case_family convolutions = {
    .function = run_convolution, .bytes = sizeof(convolution_case), .print = print_convolution};

/* Forms that take different ways: one group, groups in fewer and in more images, one channel per
 * group with and without several results, windows of 1, steps beyond the window, one spatial place,
 * and of transposed ones phases of one size, without any element of x, of which some read beyond x
 * on both sides, and with dilation, where some have no element of the window; at the end, in either
 * order of axes, more channels than a vector has. */
static const convolution_case forms[] = {
    {.rank = 2,
     .images = 2,
     .groups = 1,
     .inputs = 3,
     .outputs = 5,
     .length = {9, 8},
     .window = {3, 3},
     .before = {1, 1},
     .after = {1, 1}},
    {.rank = 2,
     .images = 3,
     .groups = 2,
     .inputs = 2,
     .outputs = 3,
     .length = {7, 11},
     .window = {3, 2},
     .stride = {2, 3},
     .after = {0, 1}},
    {.rank = 2,
     .images = 1,
     .groups = 3,
     .inputs = 2,
     .outputs = 2,
     .length = {8, 7},
     .window = {2, 3},
     .dilation = {3, 2},
     .before = {2, 0}},
    {.rank = 2,
     .images = 2,
     .groups = 6,
     .inputs = 1,
     .outputs = 1,
     .length = {10, 9},
     .window = {3, 3},
     .stride = {2, 2},
     .before = {1, 1},
     .after = {1, 1}},
    {.rank = 1,
     .images = 2,
     .groups = 4,
     .inputs = 1,
     .outputs = 3,
     .length = {37},
     .window = {5},
     .dilation = {2},
     .before = {4}},
    {.rank = 1, .images = 3, .groups = 1, .inputs = 7, .outputs = 6, .length = {29}, .window = {1}},
    {.rank = 1,
     .images = 2,
     .groups = 2,
     .inputs = 3,
     .outputs = 1,
     .length = {19},
     .window = {2},
     .stride = {4}},
    {.rank = 3,
     .images = 2,
     .groups = 1,
     .inputs = 2,
     .outputs = 3,
     .length = {5, 4, 6},
     .window = {3, 2, 3},
     .stride = {1, 2, 1},
     .before = {1, 0, 2},
     .after = {1, 1, 0}},
    {.rank = 3,
     .images = 1,
     .groups = 3,
     .inputs = 1,
     .outputs = 1,
     .length = {4, 5, 4},
     .window = {3, 3, 2}},
    {.rank = 2,
     .images = 1,
     .groups = 1,
     .inputs = 4,
     .outputs = 4,
     .length = {3, 3},
     .window = {3, 3}},
    {.rank = 2,
     .images = 2,
     .groups = 1,
     .inputs = 3,
     .outputs = 4,
     .length = {8, 10},
     .window = {4, 2},
     .stride = {2, 2},
     .before = {1, 0},
     .after = {1, 0}},
    {.rank = 1,
     .images = 2,
     .groups = 1,
     .inputs = 2,
     .outputs = 3,
     .length = {1},
     .window = {2},
     .stride = {4},
     .before = {3},
     .after = {2}},
    {.rank = 2,
     .images = 1,
     .groups = 2,
     .inputs = 2,
     .outputs = 2,
     .length = {7, 6},
     .window = {3, 5},
     .stride = {3, 2},
     .before = {5, 1},
     .after = {4, 7}},
    {.rank = 2,
     .images = 2,
     .groups = 1,
     .inputs = 2,
     .outputs = 3,
     .length = {11, 14},
     .window = {3, 4},
     .stride = {4, 3},
     .dilation = {2, 2},
     .before = {2, 1},
     .after = {1, 3}},
    {.rank = 1,
     .images = 2,
     .groups = 3,
     .inputs = 2,
     .outputs = 2,
     .length = {40},
     .window = {7},
     .stride = {6},
     .dilation = {4},
     .before = {5},
     .after = {2}},
    {.rank = 2,
     .images = 2,
     .groups = 17,
     .inputs = 1,
     .outputs = 1,
     .length = {9, 20},
     .window = {3, 2},
     .before = {1, 0}},
    {.rank = 2,
     .images = 2,
     .groups = 17,
     .inputs = 1,
     .outputs = 1,
     .length = {9, 20},
     .window = {3, 2},
     .before = {1, 0}},
};

static void add_forms(case_list *list)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F64, HAL_TYPE_F16, HAL_TYPE_BF16};
    uint32_t turn = 0;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        for (uint32_t kind = 0; kind < KIND_COUNT; kind++, turn++) {
            convolution_case tested = forms[i];
            for (uint32_t k = 0; k < 3; k++) {
                tested.stride[k] += tested.stride[k] == 0;
                tested.dilation[k] += tested.dilation[k] == 0;
            }
            tested.kind = (convolution_kind)kind;
            tested.type = turn % 2 ? types[turn / 2 % 4] : (hal_type)HAL_TYPE_F32;
            tested.channels_last = (i / 2 + kind) % 2;
            tested.has_bias = kind != WEIGHTS && turn % 4 != 2;
            tested.is_active = kind != WEIGHTS && (turn % 2 == 0 || tested.inputs == 1);
            tested.layout = (operand_layout)(turn % LAYOUT_BROADCAST);
            case_add_member(list, &convolutions, &tested);
        }
    }
}

/* Forms by a way that is asked for, by their number: products that read the windows in the image,
 * and sums without a product. Several images, groups, one channel per group, steps, dilation, one
 * and three spatial axes. */
static void add_ways(case_list *list)
{
    static const struct {
        uint32_t form;
        ops_convolution_way way;
        convolution_kind kind;
        hal_type type;
        bool channels_last;
    } chosen[] = {{0, OPS_CONVOLUTION_IMPLICIT, FORWARD, HAL_TYPE_F32, false},
                  {0, OPS_CONVOLUTION_IMPLICIT, WEIGHTS, HAL_TYPE_BF16, false},
                  {1, OPS_CONVOLUTION_IMPLICIT, WEIGHTS, HAL_TYPE_F32, true},
                  {2, OPS_CONVOLUTION_IMPLICIT, TRANSPOSED, HAL_TYPE_F64, false},
                  {6, OPS_CONVOLUTION_IMPLICIT, FORWARD, HAL_TYPE_F32, true},
                  {7, OPS_CONVOLUTION_IMPLICIT, FORWARD, HAL_TYPE_F16, false},
                  {7, OPS_CONVOLUTION_IMPLICIT, TRANSPOSED, HAL_TYPE_F32, false},
                  {1, OPS_CONVOLUTION_IMPLICIT, TRANSPOSED, HAL_TYPE_F32, false},
                  {0, OPS_CONVOLUTION_DIRECT, FORWARD, HAL_TYPE_F32, false},
                  {1, OPS_CONVOLUTION_DIRECT, FORWARD, HAL_TYPE_F64, true},
                  {1, OPS_CONVOLUTION_DIRECT, TRANSPOSED, HAL_TYPE_F32, false},
                  {2, OPS_CONVOLUTION_DIRECT, FORWARD, HAL_TYPE_F16, false},
                  {3, OPS_CONVOLUTION_DIRECT, FORWARD, HAL_TYPE_F32, true},
                  {4, OPS_CONVOLUTION_DIRECT, FORWARD, HAL_TYPE_BF16, false},
                  {7, OPS_CONVOLUTION_DIRECT, FORWARD, HAL_TYPE_F32, false},
                  {7, OPS_CONVOLUTION_DIRECT, TRANSPOSED, HAL_TYPE_F32, true},
                  {8, OPS_CONVOLUTION_DIRECT, FORWARD, HAL_TYPE_F32, false},
                  {13, OPS_CONVOLUTION_DIRECT, TRANSPOSED, HAL_TYPE_F32, false}};
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++) {
        convolution_case tested = forms[chosen[i].form];
        for (uint32_t k = 0; k < 3; k++) {
            tested.stride[k] += tested.stride[k] == 0;
            tested.dilation[k] += tested.dilation[k] == 0;
        }
        tested.kind = chosen[i].kind;
        tested.type = chosen[i].type;
        tested.channels_last = chosen[i].channels_last;
        tested.has_bias = tested.kind == FORWARD;
        tested.is_active = chosen[i].way == OPS_CONVOLUTION_DIRECT && i % 2;
        tested.way = chosen[i].way;
        case_add_member(list, &convolutions, &tested);
    }
}

/* Windows of one element, which are products of x without windows, in both orders of axes: one
 * group, groups of few and of many results in one image and in several, one channel per group with
 * several results and with one; steps, padding on each side, results that read no x at all. */
static void add_points(case_list *list)
{
    static const convolution_case points[] = {
        {.images = 2, .groups = 1, .inputs = 7, .outputs = 5, .length = {9, 8}, .stride = {1, 1}},
        {.images = 2,
         .groups = 1,
         .inputs = 3,
         .outputs = 4,
         .length = {9, 8},
         .stride = {2, 3},
         .before = {3, 1},
         .after = {1, 4}},
        {.images = 3, .groups = 2, .inputs = 3, .outputs = 2, .length = {5, 6}, .stride = {1, 1}},
        {.images = 1, .groups = 3, .inputs = 2, .outputs = 17, .length = {8, 7}, .stride = {3, 2}},
        {.images = 2, .groups = 3, .inputs = 1, .outputs = 2, .length = {7, 9}, .stride = {2, 1}},
        {.images = 2, .groups = 5, .inputs = 1, .outputs = 1, .length = {6, 7}, .stride = {2, 2}},
        {.images = 2,
         .groups = 1,
         .inputs = 2,
         .outputs = 2,
         .length = {1, 2},
         .stride = {4, 4},
         .before = {2, 3},
         .after = {1, 1}}};
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F16};
    uint32_t turn = 0;
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        for (uint32_t kind = 0; kind < KIND_COUNT; kind++) {
            for (uint32_t last = 0; last < 2; last++, turn++) {
                convolution_case tested = points[i];
                tested.rank = 2;
                tested.stride[2] = 1;
                for (uint32_t k = 0; k < 3; k++) {
                    tested.window[k] = tested.dilation[k] = 1;
                }
                tested.kind = (convolution_kind)kind;
                tested.type = types[turn % 4 == 3];
                tested.channels_last = last;
                tested.has_bias = tested.is_active = kind != WEIGHTS && turn % 3 != 0;
                tested.layout = (operand_layout)(turn % LAYOUT_BROADCAST);
                case_add_member(list, &convolutions, &tested);
            }
        }
    }
}

void cases_ops_convolution(case_list *list)
{
    add_forms(list);
    add_points(list);
    add_ways(list);
    /* 64 MiB are windows of 8 x 8 in 4 channels at 256 x 256 places: some lines of an image. */
    const convolution_case large = {.type = HAL_TYPE_F32,
                                    .rank = 2,
                                    .images = 1,
                                    .groups = 1,
                                    .inputs = 4,
                                    .outputs = 1,
                                    .length = {300, 270},
                                    .window = {8, 8},
                                    .stride = {1, 1, 1},
                                    .dilation = {1, 1, 1},
                                    .has_bias = true};
    case_add_member(list, &convolutions, &large);
    convolution_case weights = large;
    weights.kind = WEIGHTS;
    weights.images = 2;
    weights.length[0] = 150;
    weights.has_bias = false;
    case_add_member(list, &convolutions, &weights);
}
