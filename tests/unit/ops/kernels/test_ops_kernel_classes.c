/* General kernels: they give the bits of the kernels of one shape, and random shapes of a program
 * need few of them. */
#include "ops_fixture.h"

#include "ops_arrays.h"

#include "tensor/indexing.h"

#include <ops/convolution.h>

#define SHAPES 60

typedef struct program_run {
    ops_context *context;
    uint64_t random;
    uint8_t *bytes; /* of the result, on the host */
    size_t size;
} program_run;

static int64_t draw(program_run *run, int64_t least, int64_t most)
{
    run->random = run->random * 6364136223846793005u + 1442695040888963407u;
    const double unit = (double)(run->random >> 11) * 0x1p-53;
    return (int64_t)((double)least * pow((double)(most + 1) / (double)least, unit));
}

/* Numbers in [-1, 1). */
static ops_array *input(program_run *run, hal_type type, uint32_t rank, const int64_t *shape)
{
    const ops_random_key key = {.seed = run->random};
    ops_array *x = made(ops_array_uniform(run->context, HAL_TYPE_F32, rank, shape, key, -1, 1));
    return type == HAL_TYPE_F32 ? x : made(ops_array_cast(type, x));
}

static ops_array *matrix(program_run *run, int64_t rows, int64_t columns)
{
    return input(run, HAL_TYPE_F32, 2, (const int64_t[2]){rows, columns});
}

static uint32_t draw_shape(program_run *run, int64_t shape[3])
{
    const uint32_t rank = (uint32_t)draw(run, 1, 3);
    for (uint32_t i = 0; i < rank; i++) {
        shape[i] = draw(run, 1, rank == 1 ? 5000 : rank == 2 ? 200 : 40);
    }
    return rank;
}

static ops_array *any_input(program_run *run)
{
    int64_t shape[3];
    const uint32_t rank = draw_shape(run, shape);
    return input(run, HAL_TYPE_F32, rank, shape);
}

static ops_array *pointwise(program_run *run)
{
    int64_t shape[3], less[3] = {1, 1, 1};
    const uint32_t rank = draw_shape(run, shape);
    for (uint32_t i = 0; i < rank; i++) {
        less[i] = draw(run, 1, 2) == 1 ? 1 : shape[i];
    }
    ops_array *y = input(run, HAL_TYPE_F32, rank, less);
    if (rank > 1 && draw(run, 1, 2) == 1) {
        const int64_t last = shape[rank - 1];
        shape[rank - 1] = shape[rank - 2];
        shape[rank - 2] = last;
        ops_array *x = ops_array_transpose(input(run, HAL_TYPE_F32, rank, shape), -1, -2);
        return ops_add(ops_mul(x, y), x);
    }
    ops_array *x = input(run, HAL_TYPE_F32, rank, shape);
    return ops_add(ops_mul(x, y), x);
}

static ops_array *reduction(program_run *run)
{
    static const ops_reduction kinds[] = {OPS_REDUCE_SUM, OPS_REDUCE_MAX, OPS_REDUCE_MEAN,
                                          OPS_REDUCE_ARGMAX, OPS_REDUCE_PRODUCT};
    ops_array *x = any_input(run);
    const int32_t axis = (int32_t)draw(run, 1, ops_array_get_rank(x)) - 1;
    return ops_array_reduce(kinds[draw(run, 1, 5) - 1], axis, 0, x);
}

/* Sums of so many steps that they have two levels, of what the kernel computes itself. */
static ops_array *long_columns(program_run *run)
{
    ops_array *x = matrix(run, draw(run, 18000, 20000), 1);
    ops_array *y = matrix(run, 1, draw(run, 1300, 1400));
    return ops_array_reduce(OPS_REDUCE_SUM, 0, 0, ops_mul(x, y));
}

static ops_array *softmax(program_run *run)
{
    ops_array *x = any_input(run);
    return ops_array_softmax((int32_t)draw(run, 1, ops_array_get_rank(x)) - 1, x);
}

/* Memory of f16 cannot hold what the first loop computes. */
static ops_array *narrow_softmax(program_run *run)
{
    const int64_t shape[2] = {draw(run, 1, 60), draw(run, 1, 4000)};
    return ops_array_softmax(-1, input(run, HAL_TYPE_F16, 2, shape));
}

/* Reductions of every other element, along any axis of a transposed array. */
static ops_array *reduction_of_views(program_run *run)
{
    static const ops_reduction kinds[] = {OPS_REDUCE_SUM, OPS_REDUCE_ARGMIN};
    const int64_t shape[3] = {draw(run, 1, 20), draw(run, 2, 60), draw(run, 2, 60)};
    ops_array *x = input(run, HAL_TYPE_F64, 3, shape);
    const int32_t axis = (int32_t)draw(run, 1, 3) - 1;
    x = ops_array_slice(x, 1, 0, shape[1] / 2, draw(run, 1, 2));
    x = draw(run, 1, 2) == 1 ? x : ops_array_transpose(x, 1, 2);
    return ops_array_reduce(kinds[draw(run, 1, 2) - 1], axis, 0, x);
}

static ops_array *layer_norm(program_run *run)
{
    const int64_t width = draw(run, 1, 2000);
    ops_array *x = matrix(run, draw(run, 1, 100), width), *gain = matrix(run, 1, width);
    ops_array *less = ops_sub(x, ops_array_reduce(OPS_REDUCE_MEAN, -1, 1, x));
    ops_array *square = ops_array_reduce(OPS_REDUCE_MEAN, -1, 1, ops_mul(less, less));
    square = ops_array_binary_scalar(OPS_ADD, square, 1e-5);
    return ops_mul(ops_mul(less, ops_array_unary(OPS_RSQRT, square)), gain);
}

static ops_array *moves(program_run *run)
{
    ops_array *x = any_input(run), *parts[2] = {x, x};
    const int32_t rank = (int32_t)ops_array_get_rank(x), axis = (int32_t)draw(run, 1, rank) - 1;
    int32_t picks[40];
    const int64_t count = draw(run, 1, 40);
    for (int64_t i = 0; i < count; i++) {
        picks[i] = (int32_t)draw(run, 1, ops_array_get_length(x, axis)) - 1;
    }
    ops_array *indices = ops_array_from_host(run->context, HAL_TYPE_I32, 1, &count, picks);
    ops_array *both = ops_array_concatenate(axis, parts, 2);
    ops_array *some = ops_array_gather(axis, both, indices);
    return rank > 1 ? ops_array_copy(ops_array_transpose(some, 0, rank - 1)) : some;
}

/* Of the portable implementation; A or B may be stored transposed. */
static ops_array *portable_product(program_run *run, hal_type type, const int64_t mnk[3],
                                   bool turn_a, bool turn_b)
{
    const int64_t m = mnk[0], n = mnk[1], k = mnk[2];
    ops_array *a = input(run, type, 2, (const int64_t[2]){turn_a ? k : m, turn_a ? m : k});
    ops_array *b = input(run, type, 2, (const int64_t[2]){turn_b ? n : k, turn_b ? k : n});
    const ops_gemm_options options = {.size = sizeof options,
                                      .alpha = 1,
                                      .impl = OPS_GEMM_PORTABLE,
                                      .precision =
                                          type == HAL_TYPE_BF16 ? HAL_GEMM_FAST : HAL_GEMM_STRICT};
    ops_tensor x, y, z;
    ok(ops_array_get_tensor(turn_a ? ops_array_transpose(a, 0, 1) : a, &x));
    ok(ops_array_get_tensor(turn_b ? ops_array_transpose(b, 0, 1) : b, &y));
    ok(ops_tensor_create(run->context, type, 2, (const int64_t[2]){m, n}, &z));
    ok(ops_gemm(run->context, &options, &x, &y, &z));
    ops_array *result = made(ops_array_from_tensor(run->context, &z));
    ops_tensor_release(&z);
    return result;
}

static ops_array *product(program_run *run)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_BF16, HAL_TYPE_F64};
    const hal_type type = types[draw(run, 1, 3) - 1];
    const int64_t mnk[3] = {draw(run, 1, 150), draw(run, 1, 150), draw(run, 1, 300)};
    const bool turn_a = draw(run, 1, 2) == 1, turn_b = draw(run, 1, 2) == 1;
    return portable_product(run, type, mnk, turn_a, turn_b);
}

/* A step of any batch and width. */
static ops_array *lstm_step(program_run *run)
{
    const int64_t batch = draw(run, 1, 64), width = draw(run, 8, 120);
    const int64_t mnk[3] = {batch, 4 * width, width};
    ops_array *gates = ops_add(portable_product(run, HAL_TYPE_F32, mnk, false, false),
                               portable_product(run, HAL_TYPE_F32, mnk, false, false));
    ops_array *c = matrix(run, batch, width), *part[4];
    gates = ops_add(gates, matrix(run, 1, 4 * width));
    for (int i = 0; i < 4; i++) {
        part[i] = ops_array_slice(gates, 1, i * width, width, 1);
    }
    ops_array *kept = ops_mul(ops_array_unary(OPS_SIGMOID, part[0]), c);
    ops_array *added =
        ops_mul(ops_array_unary(OPS_SIGMOID, part[1]), ops_array_unary(OPS_TANH, part[2]));
    return ops_mul(ops_array_unary(OPS_SIGMOID, part[3]),
                   ops_array_unary(OPS_TANH, ops_add(kept, added)));
}

/* One head of any length. */
static ops_array *attention(program_run *run)
{
    const int64_t length = draw(run, 1, 200);
    ops_array *scores =
        portable_product(run, HAL_TYPE_F32, (const int64_t[3]){length, length, 64}, false, true);
    ops_array *weights = ops_array_softmax(-1, ops_array_binary_scalar(OPS_MUL, scores, 0.125));
    return ops_add(weights,
                   portable_product(run, HAL_TYPE_F32, (const int64_t[3]){length, length, length},
                                    false, false));
}

static ops_array *adam(program_run *run)
{
    const int64_t rows = draw(run, 1, 100), columns = draw(run, 1, 100);
    ops_array *gradient = matrix(run, rows, columns), *w = matrix(run, rows, columns);
    ops_array *m = ops_add(ops_array_binary_scalar(OPS_MUL, matrix(run, rows, columns), 0.9),
                           ops_array_binary_scalar(OPS_MUL, gradient, 0.1));
    ops_array *v = ops_add(ops_array_binary_scalar(OPS_MUL, matrix(run, rows, columns), 0.999),
                           ops_array_binary_scalar(OPS_MUL, ops_mul(gradient, gradient), 0.001));
    ops_array *root = ops_array_unary(OPS_SQRT, ops_array_unary(OPS_ABS, v));
    return ops_sub(w, ops_div(m, ops_array_binary_scalar(OPS_ADD, root, 1e-8)));
}

/* A layer of any batch and widths, in the epilogue of its product as a rule. */
static ops_array *dense_layer(program_run *run)
{
    const int64_t mnk[3] = {draw(run, 1, 100), draw(run, 1, 100), draw(run, 1, 100)};
    ops_array *sum =
        ops_add(portable_product(run, HAL_TYPE_F32, mnk, false, true), matrix(run, 1, mnk[1]));
    return ops_array_unary(OPS_RELU, sum);
}

static ops_array *gru_step(program_run *run)
{
    const int64_t batch = draw(run, 1, 64), width = draw(run, 8, 120);
    const int64_t mnk[3] = {batch, 3 * width, width};
    ops_array *x = portable_product(run, HAL_TYPE_F32, mnk, false, false);
    ops_array *h = portable_product(run, HAL_TYPE_F32, mnk, false, false);
    ops_array *before = matrix(run, batch, width), *part[2][3];
    for (int i = 0; i < 3; i++) {
        part[0][i] = ops_array_slice(x, 1, i * width, width, 1);
        part[1][i] = ops_array_slice(h, 1, i * width, width, 1);
    }
    ops_array *reset = ops_array_unary(OPS_SIGMOID, ops_add(part[0][0], part[1][0]));
    ops_array *update = ops_array_unary(OPS_SIGMOID, ops_add(part[0][1], part[1][1]));
    ops_array *next = ops_array_unary(OPS_TANH, ops_add(part[0][2], ops_mul(reset, part[1][2])));
    return ops_add(next, ops_mul(update, ops_sub(before, next)));
}

static ops_array *rms_norm(program_run *run)
{
    const int64_t width = draw(run, 1, 2000);
    ops_array *x = matrix(run, draw(run, 1, 100), width);
    ops_array *square = ops_array_reduce(OPS_REDUCE_MEAN, -1, 1, ops_mul(x, x));
    square = ops_array_binary_scalar(OPS_ADD, square, 1e-5);
    return ops_mul(ops_mul(x, ops_array_unary(OPS_RSQRT, square)), matrix(run, 1, width));
}

/* Of columns, over the rows. */
static ops_array *batch_norm(program_run *run)
{
    ops_array *x = matrix(run, draw(run, 1, 300), draw(run, 1, 100));
    ops_array *less = ops_sub(x, ops_array_reduce(OPS_REDUCE_MEAN, 0, 1, x));
    ops_array *square = ops_array_reduce(OPS_REDUCE_MEAN, 0, 1, ops_mul(less, less));
    square = ops_array_binary_scalar(OPS_ADD, square, 1e-5);
    return ops_mul(less, ops_array_unary(OPS_RSQRT, square));
}

/* Indices below a length, of a shape. */
static ops_array *places(program_run *run, uint32_t rank, const int64_t *shape, int64_t length)
{
    ops_array *unit = ops_array_unary(OPS_ABS, input(run, HAL_TYPE_F32, rank, shape));
    return ops_array_cast(HAL_TYPE_I32,
                          ops_array_binary_scalar(OPS_MUL, unit, (double)length - 0.5));
}

static ops_array *cross_entropy(program_run *run)
{
    const int64_t rows = draw(run, 1, 100), classes = draw(run, 1, 1000);
    ops_array *picks = places(run, 2, (const int64_t[2]){rows, 1}, classes);
    ops_array *scores = ops_array_log_softmax(-1, matrix(run, rows, classes));
    return ops_array_reduce(OPS_REDUCE_MEAN, 0, 0, ops_array_take_along_axis(1, scores, picks));
}

static ops_array *momentum(program_run *run)
{
    const int64_t rows = draw(run, 1, 100), columns = draw(run, 1, 100);
    ops_array *m = ops_add(ops_array_binary_scalar(OPS_MUL, matrix(run, rows, columns), 0.9),
                           matrix(run, rows, columns));
    return ops_sub(matrix(run, rows, columns), ops_array_binary_scalar(OPS_MUL, m, 0.01));
}

static ops_array *running_sum(program_run *run)
{
    ops_array *x = any_input(run);
    const int32_t axis = (int32_t)draw(run, 1, ops_array_get_rank(x)) - 1;
    return ops_array_scan(OPS_SCAN_SUM, axis, x);
}

static ops_array *sorted(program_run *run)
{
    ops_array *x = any_input(run);
    const int32_t axis = (int32_t)draw(run, 1, ops_array_get_rank(x)) - 1;
    return ops_array_sort(axis, 0, -1, x);
}

static ops_array *histogram(program_run *run)
{
    const int64_t count = draw(run, 1, 2000), bins = draw(run, 1, 100);
    ops_array *ones = ops_array_full(run->context, HAL_TYPE_I32, 1, &count, 1);
    ops_array *zeros = ops_array_full(run->context, HAL_TYPE_I32, 1, &bins, 0);
    return ops_array_scatter(OPS_SCATTER_ADD, 0, zeros, places(run, 1, &count, bins), ones);
}

/* Rows of a table, with their positions. */
static ops_array *embedding(program_run *run)
{
    const int64_t words = draw(run, 1, 200), width = draw(run, 1, 100), length = draw(run, 1, 100);
    ops_array *table = matrix(run, words, width);
    return ops_add(ops_array_gather(0, table, places(run, 1, &length, words)),
                   matrix(run, length, width));
}

/* Sums of windows without a product: groups, steps, distances and numbers of channels. */
static ops_array *windows_of(program_run *run, hal_type type, uint32_t rank, bool has_bias,
                             bool is_transposed)
{
    const bool last = draw(run, 1, 3) == 1;
    const int64_t groups = draw(run, 1, 3), of_x = draw(run, 1, 20), of_y = draw(run, 1, 20);
    const uint32_t channel = last ? rank + 1 : 1, first = last ? 1 : 2;
    ops_convolution_options o = {.size = sizeof o, .groups = groups, .channels_last = last};
    int64_t x[5] = {draw(run, 1, 3)}, w[5] = {0}, lengths[3];
    x[channel] = groups * of_x;
    w[0] = groups * (is_transposed ? of_x : of_y);
    w[1] = is_transposed ? of_y : of_x;
    o.activation = has_bias ? OPS_RELU : OPS_IDENTITY;
    for (uint32_t i = 0; i < rank; i++) {
        w[i + 2] = draw(run, 1, rank == 1 ? 20 : rank == 2 ? 5 : 3);
        o.stride[i] = draw(run, 1, 2);
        o.dilation[i] = draw(run, 1, 2);
        o.before[i] = o.after[i] = draw(run, 1, w[i + 2]) - 1;
        x[i + first] = (w[i + 2] - 1) * o.dilation[i] + draw(run, 1, rank == 1 ? 300 : 30 / rank);
        lengths[i] =
            (x[i + first] - 1) * o.stride[i] + 1 + (w[i + 2] - 1) * o.dilation[i] - 2 * o.before[i];
    }
    ops_array *image = input(run, type, rank + 2, x), *weights = input(run, type, rank + 2, w);
    const int64_t channels = groups * of_y;
    ops_array *bias = has_bias ? input(run, type, 1, &channels) : NULL;
    ops_context_set_convolution(run->context, OPS_CONVOLUTION_DIRECT);
    ops_array *y = is_transposed
                       ? ops_array_convolution_transposed(&o, image, weights, bias, lengths)
                       : ops_array_convolution(&o, image, weights, bias);
    ops_context_set_convolution(run->context, OPS_CONVOLUTION_AUTO);
    return y;
}

static ops_array *windows(program_run *run)
{
    return windows_of(run, HAL_TYPE_F32, 2, true, false);
}

/* Of any rank and type, also of transposed convolutions. */
static ops_array *any_windows(program_run *run)
{
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F32, HAL_TYPE_F64, HAL_TYPE_F16};
    const hal_type type = types[draw(run, 1, 4) - 1];
    const uint32_t rank = (uint32_t)draw(run, 1, 3);
    const bool has_bias = draw(run, 1, 2) == 1, is_transposed = draw(run, 1, 2) == 1;
    return windows_of(run, type, rank, has_bias, is_transposed);
}

/* Two convolutions of 3 x 3 and one of 1 x 1, of any images and channels, and the mean over the
 * image. The second one has a step or none. */
static ops_array *convolution_network(program_run *run)
{
    const int64_t side = draw(run, 5, 32),
                  image[4] = {draw(run, 1, 8), draw(run, 1, 4), side, side};
    ops_array *x = input(run, HAL_TYPE_F32, 4, image);
    for (int i = 0; i < 3; i++) {
        const int64_t window = i < 2 ? 3 : 1, step = i == 1 ? draw(run, 1, 2) : 1;
        const int64_t outputs = draw(run, 5, 33);
        const int64_t weights[4] = {outputs, ops_array_get_length(x, 1), window, window};
        const ops_convolution_options options = {
            .size = sizeof options, .activation = OPS_RELU, .stride = {step, step}};
        x = ops_array_convolution(&options, x, input(run, HAL_TYPE_F32, 4, weights),
                                  input(run, HAL_TYPE_F32, 1, &outputs));
    }
    x = ops_array_reduce(OPS_REDUCE_MEAN, -1, 0, x);
    return ops_array_reduce(OPS_REDUCE_MEAN, -1, 0, x);
}

/* Kernels of all shapes, and of the half that comes last, at most. */
typedef struct program_bound {
    uint32_t kernels, late;
} program_bound;

typedef struct program {
    const char *name;
    ops_array *(*build)(program_run *run);
    uint32_t shapes;
    program_bound bound[2]; /* where lanes of vectors are neighbours by the text; elsewhere */
    uint32_t most_records;  /* of a kernel; 0: neither these nor kernels are counted */
} program;

static const program programs[] = {
    {"pointwise", pointwise, SHAPES, {{11, 1}, {10, 1}}, 200},
    {"reduction", reduction, SHAPES, {{23, 8}, {12, 2}}, 885},
    {"long columns", long_columns, 1, {{3, 3}, {3, 3}}, 480},
    {"softmax", softmax, SHAPES, {{9, 0}, {6, 2}}, 850},
    {"narrow softmax", narrow_softmax, SHAPES, {{12, 0}, {8, 1}}, 850},
    {"views", reduction_of_views, SHAPES, {{17, 4}, {8, 1}}, 890},
    {"layer norm", layer_norm, SHAPES, {{11, 1}, {7, 0}}, 860},
    {"moves", moves, SHAPES, {{10, 1}, {10, 1}}, 200},
    {"product", product, SHAPES, {{25, 3}, {25, 3}}, 780},
    {"lstm step", lstm_step, SHAPES, {{11, 0}, {10, 1}}, 780},
    {"attention", attention, SHAPES, {{15, 1}, {17, 1}}, 850},
    {"adam", adam, SHAPES, {{4, 1}, {4, 1}}, 200},
    {"dense layer", dense_layer, SHAPES, {{13, 2}, {13, 2}}, 780},
    {"gru step", gru_step, SHAPES, {{6, 1}, {6, 1}}, 780},
    {"rms norm", rms_norm, SHAPES, {{9, 1}, {5, 1}}, 540},
    {"batch norm", batch_norm, SHAPES, {{9, 1}, {8, 2}}, 840},
    {"cross entropy", cross_entropy, SHAPES, {{10, 0}, {10, 1}}, 840},
    {"momentum", momentum, SHAPES, {{4, 1}, {4, 1}}, 200},
    {"running sum", running_sum, SHAPES, {{11, 1}, {18, 2}}, 200},
    {"sorted", sorted, SHAPES, {{25, 4}, {36, 5}}, 450},
    {"histogram", histogram, SHAPES, {{6, 0}, {23, 1}}, 400},
    {"embedding", embedding, SHAPES, {{6, 0}, {9, 1}}, 200},
    {"windows", windows, SHAPES, {{58, 21}, {56, 20}}, 610},
    {"any windows", any_windows, SHAPES, {{0, 0}, {0, 0}}, 0},
    {"convolution network", convolution_network, SHAPES, {{24, 2}, {15, 2}}, 1290},
};

static ops_context *context_make(ops_kernel_choice choice)
{
    ops_context *context;
    ok(ops_context_create(test_queue, &context));
    context->info = test_context->info;
    context->tuning = test_context->tuning;
    context->compile_policy->tuning = &test_context->tuning->compile;
    ops_context_set_kernels(context, choice);
    return context;
}

static void shape_run(program_run *run, const program *what, uint64_t seed)
{
    run->random = seed;
    draw(run, 1, 2);
    ok(ops_scope_begin(run->context));
    ops_array *result = made(what->build(run));
    run->size =
        (size_t)ops_array_get_element_count(result) * hal_type_size(ops_array_get_type(result));
    run->bytes = malloc(run->size);
    ok(ops_array_read(result, run->size, run->bytes));
    ok(ops_scope_end(run->context));
}

static void general_kernels_have_the_same_bits(void **state)
{
    program_run general = {.context = context_make(OPS_KERNELS_GENERAL)};
    program_run special = {.context = context_make(OPS_KERNELS_SPECIAL)};
    for (size_t p = 0; p < sizeof programs / sizeof *programs; p++) {
        for (uint64_t seed = 1; seed <= programs[p].shapes; seed++) {
            shape_run(&general, &programs[p], seed);
            shape_run(&special, &programs[p], seed);
            if (general.size != special.size ||
                memcmp(general.bytes, special.bytes, general.size) != 0) {
                fail_msg("%s, seed %u: other bits", programs[p].name, (unsigned)seed);
            }
            free(general.bytes);
            free(special.bytes);
        }
    }
    assert_true(statistics_of(general.context).made < statistics_of(special.context).made);
    ops_context_destroy(general.context);
    ops_context_destroy(special.context);
}

/* Reads the lines of ops/src/tensor/kernel_log.c. */
static void log_read(void *user, hal_log_level level, const char *message)
{
    uint32_t *most = user, records = 0;
    const char *at = strstr(message, ", records ");
    if (at && sscanf(at, ", records %u", &records) == 1 && records > *most) {
        *most = records;
    }
}

/* The kernels of each program in a context of its own; the half of the shapes that comes last needs
 * hardly any. Their text is short, since the first call waits until they are compiled. */
static void few_kernels_for_any_shape(void **state)
{
    for (size_t p = 0; p < sizeof programs / sizeof *programs; p++) {
        if (programs[p].most_records == 0) {
            continue;
        }
        program_run run = {.context = context_make(OPS_KERNELS_GENERAL)};
        uint64_t kernels = 0, half = 0;
        uint32_t records = 0;
        hal_log_set_callback(log_read, &records, HAL_LOG_DEBUG);
        for (uint64_t seed = 1; seed <= programs[p].shapes; seed++) {
            shape_run(&run, &programs[p], seed);
            free(run.bytes);
            kernels = statistics_of(run.context).made;
            half = seed == programs[p].shapes / 2 ? kernels : half;
        }
        hal_log_set_callback(NULL, NULL, 0);
        const program_bound *bound = &programs[p].bound[!ops_has_lane_vectors(run.context)];
        if (kernels > bound->kernels || kernels - half > bound->late) {
            fail_msg("%s: expected at most %u kernels, %u of them late, got %u, %u",
                     programs[p].name, bound->kernels, bound->late, (unsigned)kernels,
                     (unsigned)(kernels - half));
        }
        if (records > programs[p].most_records) {
            fail_msg("%s: expected kernels of at most %u records, got %u", programs[p].name,
                     programs[p].most_records, records);
        }
        ops_context_destroy(run.context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(general_kernels_have_the_same_bits),
        cmocka_unit_test(few_kernels_for_any_shape),
    };
    return RUN_ON_ALL(tests);
}
