/* The network and its training as arrays; used by train.c.
 *
 * Source of the update: D. P. Kingma, J. Ba, "Adam: A Method for Stochastic Optimization", 2015;
 * the correction of its first steps is in the learning rate. */
#include "model.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_STEPS = 256 };

static const double mean_decay = 0.9, square_decay = 0.999, tiny = 1e-8, largest_norm = 1.0;

/* Intermediates of the forward pass that the backward pass needs. */
typedef struct trace {
    ops_array *hidden[MOST_STEPS + 1]; /* before each step and after the last */
    ops_array *candidate[MOST_STEPS];  /* tanh(...) of each step */
    ops_array *error[MOST_STEPS];      /* gradient of the loss by the step's output layer */
    ops_array *letters;                /* one-hot, [steps * batch, letters] */
    ops_array *loss;                   /* of all steps, [1] */
} trace;

/* The rows of a step in [steps * batch, ...]. */
static ops_array *rows(const model *m, ops_array *x, int64_t step)
{
    return ops_array_slice(x, 0, step * m->sizes.batch, m->sizes.batch, 1);
}

/* From the host, because inputs of graphs cannot be constants. */
static ops_array *zeros(ops_context *context, int64_t rows, int64_t columns)
{
    const int64_t shape[2] = {rows, columns};
    float *numbers = calloc((size_t)(rows * columns), sizeof(*numbers));
    ops_array *made =
        !numbers ? NULL : ops_array_from_host(context, HAL_TYPE_F32, 2, shape, numbers);
    free(numbers);
    return made;
}

/* Arrays report failures as null: hal has the message, the status is lost. */
static hal_status failure(void)
{
    return HAL_ERROR_INVALID_STATE;
}

/* [n, 1] numbers to [n, letters] ones and zeros. */
static ops_array *one_hot(const model *m, ops_array *letters)
{
    return ops_array_cast(HAL_TYPE_F32, ops_eq(letters, m->alphabet));
}

static ops_array *weight(const model *m, int which)
{
    return m->state[STATE_WEIGHT + which];
}

static ops_array *hidden_step(const model *m, ops_array *hidden, ops_array *input,
                              ops_array **candidate)
{
    *candidate = ops_tanh(ops_add(ops_matmul(hidden, weight(m, WEIGHT_HIDDEN)), input));
    return ops_add(hidden, ops_mul(m->forgetting, ops_sub(*candidate, hidden)));
}

/* The sum of a matrix, [1, 1]. */
static ops_array *total(ops_array *x)
{
    return ops_array_reduce(OPS_REDUCE_SUM, 0, 1, ops_array_reduce(OPS_REDUCE_SUM, 1, 1, x));
}

/* The output layer's error is (probability - target) / count. */
static void forward_pass(const model *m, ops_array *const batch[BATCH_ARRAYS], trace *t)
{
    const double share = 1 / (double)(m->sizes.steps * m->sizes.batch);
    ops_array *targets = one_hot(m, batch[BATCH_NEXT]);
    t->letters = one_hot(m, batch[BATCH_LETTERS]);
    ops_array *inputs = ops_matmul(t->letters, weight(m, WEIGHT_INPUT));
    t->hidden[0] = m->state[STATE_HIDDEN];
    for (int64_t i = 0; i < m->sizes.steps; i++) {
        t->hidden[i + 1] = hidden_step(m, t->hidden[i], rows(m, inputs, i), &t->candidate[i]);
        ops_array *guess =
            ops_add(ops_matmul(t->hidden[i + 1], weight(m, WEIGHT_OUTPUT)), weight(m, WEIGHT_BIAS));
        ops_array *logarithm = ops_array_log_softmax(1, guess);
        ops_array *target = rows(m, targets, i);
        t->error[i] = ops_mul_scalar(ops_sub(ops_exp(logarithm), target), share);
        ops_array *loss = ops_mul_scalar(total(ops_mul(logarithm, target)), -share);
        t->loss = i == 0 ? loss : ops_add(t->loss, loss);
    }
}

static ops_array *transposed(ops_array *x)
{
    return ops_array_transpose(x, 0, 1);
}

/* From the last step to the first: with g the gradient with respect to h' and d that with respect
 * to h W + E[letter], d = a g (1 - tanh^2); that with respect to h is (1 - a) g + d W^T. */
static void backward_pass(const model *m, const trace *t, ops_array *gradients[WEIGHTS])
{
    ops_array *kept = ops_array_scalar_binary(OPS_SUB, 1, m->forgetting);
    ops_array *output_back = transposed(weight(m, WEIGHT_OUTPUT));
    ops_array *hidden_back = transposed(weight(m, WEIGHT_HIDDEN));
    ops_array *later = NULL;
    for (int64_t i = m->sizes.steps - 1; i >= 0; i--) {
        ops_array *g = ops_matmul(t->error[i], output_back);
        if (i < m->sizes.steps - 1) { /* `later` is null after a failure, too */
            g = ops_add(g, later);
        }
        ops_array *slope = ops_array_scalar_binary(OPS_SUB, 1, ops_square(t->candidate[i]));
        ops_array *d = ops_mul(ops_mul(g, m->forgetting), slope);
        later = ops_add(ops_mul(g, kept), ops_matmul(d, hidden_back));
        ops_array *parts[WEIGHTS] = {
            [WEIGHT_INPUT] = ops_matmul(transposed(rows(m, t->letters, i)), d),
            [WEIGHT_HIDDEN] = ops_matmul(transposed(t->hidden[i]), d),
            [WEIGHT_OUTPUT] = ops_matmul(transposed(t->hidden[i + 1]), t->error[i]),
            [WEIGHT_BIAS] = ops_array_reduce(OPS_REDUCE_SUM, 0, 1, t->error[i])};
        for (int w = 0; w < WEIGHTS; w++) {
            gradients[w] = i == m->sizes.steps - 1 ? parts[w] : ops_add(gradients[w], parts[w]);
        }
    }
}

/* Adam, with gradients scaled to a norm of at most largest_norm. */
static void update(const model *m, ops_array *rate, ops_array *const gradients[WEIGHTS],
                   ops_array *next[STATES])
{
    ops_array *squares = NULL;
    for (int w = 0; w < WEIGHTS; w++) {
        ops_array *own = total(ops_square(gradients[w]));
        squares = w == 0 ? own : ops_add(squares, own);
    }
    ops_array *factor = ops_minimum_scalar(ops_mul_scalar(ops_rsqrt(squares), largest_norm), 1);
    for (int w = 0; w < WEIGHTS; w++) {
        ops_array *gradient = ops_mul(gradients[w], factor);
        ops_array *mean = ops_add(ops_mul_scalar(m->state[STATE_MEAN + w], mean_decay),
                                  ops_mul_scalar(gradient, 1 - mean_decay));
        ops_array *square = ops_add(ops_mul_scalar(m->state[STATE_SQUARE + w], square_decay),
                                    ops_mul_scalar(ops_square(gradient), 1 - square_decay));
        ops_array *step = ops_div(ops_mul(rate, mean), ops_add_scalar(ops_sqrt(square), tiny));
        next[STATE_WEIGHT + w] = ops_sub(weight(m, w), step);
        next[STATE_MEAN + w] = mean;
        next[STATE_SQUARE + w] = square;
    }
}

hal_status model_create(ops_context *context, model_sizes sizes, uint64_t seed, model *m)
{
    const int64_t shapes[WEIGHTS][2] = {{sizes.letters, sizes.hidden},
                                        {sizes.hidden, sizes.hidden},
                                        {sizes.hidden, sizes.letters},
                                        {1, sizes.letters}};
    const int64_t hidden[2] = {1, sizes.hidden}, letters[2] = {1, sizes.letters};
    float *forgetting = malloc((size_t)sizes.hidden * sizeof(*forgetting));
    int32_t *alphabet = malloc((size_t)sizes.letters * sizeof(*alphabet));
    *m = (model){.context = context, .sizes = sizes};
    int good = forgetting && alphabet && sizes.steps <= MOST_STEPS;
    for (int64_t i = 0; good && i < sizes.hidden; i++) {
        forgetting[i] = (float)exp2(-3.0 * (double)i / (double)sizes.hidden);
    }
    for (int64_t i = 0; good && i < sizes.letters; i++) {
        alphabet[i] = (int32_t)i;
    }
    if (good) {
        m->forgetting = ops_array_from_host(context, HAL_TYPE_F32, 2, hidden, forgetting);
        m->alphabet = ops_array_from_host(context, HAL_TYPE_I32, 2, letters, alphabet);
        good = m->forgetting && m->alphabet != NULL;
    }
    free(forgetting);
    free(alphabet);
    for (int i = 0; good && i < WEIGHTS; i++) {
        const ops_random_key key = {.seed = seed, .stream = (uint64_t)i};
        const double deviation = i == WEIGHT_INPUT ? 0.5 : 1 / sqrt((double)sizes.hidden);
        m->state[STATE_WEIGHT + i] =
            i == WEIGHT_BIAS
                ? zeros(context, 1, sizes.letters)
                : ops_array_normal(context, HAL_TYPE_F32, 2, shapes[i], key, 0, deviation);
        m->state[STATE_MEAN + i] = zeros(context, shapes[i][0], shapes[i][1]);
        m->state[STATE_SQUARE + i] = zeros(context, shapes[i][0], shapes[i][1]);
        good = m->state[STATE_WEIGHT + i] && m->state[STATE_MEAN + i] &&
               m->state[STATE_SQUARE + i] != NULL;
    }
    good = good && model_clear_hidden(m) == HAL_OK && model_clear_loss(m) == HAL_OK;
    return good ? HAL_OK : failure();
}

void model_destroy(model *m)
{
    ops_array_release(m->forgetting);
    ops_array_release(m->alphabet);
    for (int i = 0; i < STATES; i++) {
        ops_array_release(m->state[i]);
    }
    *m = (model){0};
}

hal_status model_clear_hidden(model *m)
{
    ops_array_release(m->state[STATE_HIDDEN]);
    m->state[STATE_HIDDEN] = zeros(m->context, m->sizes.batch, m->sizes.hidden);
    return m->state[STATE_HIDDEN] ? HAL_OK : failure();
}

hal_status model_clear_loss(model *m)
{
    ops_array_release(m->state[STATE_LOSS]);
    m->state[STATE_LOSS] = zeros(m->context, 1, 1);
    return m->state[STATE_LOSS] ? HAL_OK : failure();
}

hal_status model_train(const model *m, ops_array *const batch[BATCH_ARRAYS],
                       ops_array *next[STATES])
{
    static trace t;
    ops_array *gradients[WEIGHTS];
    hal_status status = ops_scope_begin(m->context);
    if (status != HAL_OK) {
        return status;
    }
    forward_pass(m, batch, &t);
    backward_pass(m, &t, gradients);
    update(m, batch[BATCH_RATE], gradients, next);
    next[STATE_HIDDEN] = t.hidden[m->sizes.steps];
    next[STATE_LOSS] = ops_add(m->state[STATE_LOSS], t.loss);
    for (int i = 0; i < STATES; i++) {
        if (!ops_array_keep(next[i])) {
            status = failure();
        }
    }
    ops_scope_end(m->context);
    for (int i = 0; status != HAL_OK && i < STATES; i++) {
        ops_array_release(next[i]);
        next[i] = NULL;
    }
    return status;
}

hal_status model_guess(const model *m, ops_array *hidden, ops_array *letter, ops_array **next,
                       ops_array **probabilities)
{
    ops_array *candidate;
    hal_status status = ops_scope_begin(m->context);
    if (status != HAL_OK) {
        return status;
    }
    ops_array *input = ops_matmul(one_hot(m, letter), weight(m, WEIGHT_INPUT));
    *next = ops_array_keep(hidden_step(m, hidden, input, &candidate));
    ops_array *guess = ops_add(ops_matmul(*next, weight(m, WEIGHT_OUTPUT)), weight(m, WEIGHT_BIAS));
    *probabilities = ops_array_keep(ops_array_softmax(1, guess));
    ops_scope_end(m->context);
    return *next && *probabilities ? HAL_OK : failure();
}
