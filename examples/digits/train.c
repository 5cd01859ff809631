/* The training loop; used by main.c.
 *
 * The settings were chosen on the last and the first fifth of the training data (--validate uses
 * the last), never on the test data. */
#include "train.h"

#include "distort.h"
#include "network.h"
#include "report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TRY(call)                    \
    do {                             \
        hal_status status_ = (call); \
        if (status_ != HAL_OK) {     \
            return status_;          \
        }                            \
    } while (0)

enum { BATCH = TRAIN_LEAST, EPOCHS = 30, DISTORTIONS = 128, LAYERS = 3 };
static const int64_t widths[LAYERS + 1] = {DIGITS_PIXELS, 256, 128, DIGITS_CLASSES};
static const double first_rate = 0.1, momentum = 0.9, decay = 1e-4, noise = 0.15;
static const distort_limits limits = {.shift = 0.3, .turn = 0.1, .scale = 0.05};

/* Streams of the seed beyond those of the network's weights. */
enum { STREAM_ORDER = 1000, STREAM_NOISE = 1000000 };

/* Tensors of a run on the device. */
typedef struct trainer {
    ops_context *context;
    hal_comm *comm;
    int64_t rank, batch; /* rows of each batch that this rank learns from */
    uint64_t seed;
    int64_t steps_per_epoch;
    network net;
    ops_tensor pixels, targets;               /* all training pictures, their classes one-hot */
    ops_tensor distortions, rates;            /* DISTORTIONS x 64 x 64; a rate for each step */
    ops_tensor order;                         /* of the pictures in this epoch */
    ops_tensor jitter;                        /* of a whole batch */
    ops_tensor picked, input, target;         /* of the rank's rows */
    ops_tensor log_probability, loss;
    ops_expression *cross_entropy;
} trainer;

static hal_status upload(trainer *t, const digits_data *training)
{
    const int64_t pixels[2] = {training->count, DIGITS_PIXELS};
    const int64_t targets[2] = {training->count, DIGITS_CLASSES};
    ops_tensor labels;
    TRY(ops_tensor_from_host(t->context, HAL_TYPE_F32, 2, pixels, training->pixels, &t->pixels));
    TRY(ops_tensor_create(t->context, HAL_TYPE_F32, 2, targets, &t->targets));
    TRY(ops_tensor_create(t->context, HAL_TYPE_I32, 1, pixels, &t->order));
    TRY(ops_tensor_from_host(t->context, HAL_TYPE_I32, 1, pixels, training->labels, &labels));
    hal_status status = ops_one_hot(t->context, &labels, &t->targets);
    ops_tensor_release(&labels);
    return status;
}

/* The distortions, and the learning rates: half a cosine from first_rate to 0. */
static hal_status upload_schedule(trainer *t)
{
    const int64_t distortions[3] = {DISTORTIONS, DIGITS_PIXELS, DIGITS_PIXELS};
    const int64_t steps = EPOCHS * t->steps_per_epoch;
    const size_t numbers = DISTORTIONS * DIGITS_PIXELS * DIGITS_PIXELS;
    const double half_turn = acos(-1.0);
    float *values = malloc(sizeof(float) * (numbers + (size_t)steps));
    if (!values) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    float *rates = values + numbers;
    distort_make(t->seed, limits, DISTORTIONS, values);
    for (int64_t i = 0; i < steps; i++) {
        rates[i] = (float)(first_rate * 0.5 * (1 + cos(half_turn * (double)i / (double)steps)));
    }
    hal_status status =
        ops_tensor_from_host(t->context, HAL_TYPE_F32, 3, distortions, values, &t->distortions);
    if (status == HAL_OK) {
        status = ops_tensor_from_host(t->context, HAL_TYPE_F32, 1, &steps, rates, &t->rates);
    }
    free(values);
    return status;
}

/* log probability x target, to be summed. */
static hal_status make_cross_entropy(ops_expression **expression)
{
    hal_ir_builder *b;
    TRY(hal_ir_builder_create_fragment("cross_entropy", &b));
    hal_ir_value log_probability = hal_ir_input(b, 0, HAL_TYPE_F32);
    hal_ir_value target = hal_ir_input(b, 1, HAL_TYPE_F32);
    hal_ir_output(b, 0, hal_ir_mul(b, log_probability, target));
    return ops_expression_create(b, expression);
}

static hal_status make_batch_tensors(trainer *t)
{
    const int64_t input[2] = {t->batch, DIGITS_PIXELS}, output[2] = {t->batch, DIGITS_CLASSES};
    const int64_t all[2] = {BATCH, DIGITS_PIXELS}, one[1] = {1};
    TRY(ops_tensor_create(t->context, HAL_TYPE_F32, 2, input, &t->picked));
    TRY(ops_tensor_create(t->context, HAL_TYPE_F32, 2, input, &t->input));
    TRY(ops_tensor_create(t->context, HAL_TYPE_F32, 2, all, &t->jitter));
    TRY(ops_tensor_create(t->context, HAL_TYPE_F32, 2, output, &t->target));
    TRY(ops_tensor_create(t->context, HAL_TYPE_F32, 2, output, &t->log_probability));
    TRY(ops_tensor_create(t->context, HAL_TYPE_F32, 1, one, &t->loss));
    return make_cross_entropy(&t->cross_entropy);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Picks the rank's rows of a batch, distorts them, adds noise, and learns from them. */
static hal_status train_step(trainer *t, int64_t epoch, int64_t step)
{
    int64_t number = epoch * t->steps_per_epoch + step;
    ops_random_key key = {.seed = t->seed, .stream = (uint64_t)(STREAM_NOISE + number)};
    const int64_t square[2] = {DIGITS_PIXELS, DIGITS_PIXELS};
    ops_tensor rows, distortion, jitter, rate;
    const int64_t first = t->rank * t->batch;
    TRY(ops_tensor_slice(&t->order, 0, step * BATCH + first, t->batch, 1, &rows));
    TRY(ops_gather(t->context, 0, &t->pixels, &rows, &t->picked));
    TRY(ops_gather(t->context, 0, &t->targets, &rows, &t->target));

    TRY(ops_tensor_slice(&t->distortions, 0, number % DISTORTIONS, 1, 1, &distortion));
    TRY(ops_tensor_reshape(&distortion, 2, square, &distortion));
    TRY(ops_gemm(t->context, NULL, &t->picked, &distortion, &t->input));
    TRY(ops_random_normal(t->context, key, 0, noise, &t->jitter));
    TRY(ops_tensor_slice(&t->jitter, 0, first, t->batch, 1, &jitter));
    TRY(ops_binary(t->context, OPS_ADD, &t->input, &jitter, &t->input));

    TRY(ops_tensor_slice(&t->rates, 0, number, 1, 1, &rate));
    return network_train(&t->net, &t->input, &t->target, &rate);
}

static hal_status train_epoch(trainer *t, int64_t epoch)
{
    ops_random_key key = {.seed = t->seed, .stream = (uint64_t)(STREAM_ORDER + epoch)};
    TRY(ops_random_permutation(t->context, key, &t->order));
    for (int64_t i = 0; i < t->steps_per_epoch; i++) {
        TRY(train_step(t, epoch, i));
    }
    return HAL_OK;
}

/* The mean cross-entropy of the latest batch. */
static hal_status read_loss(trainer *t, double *loss)
{
    ops_reduce_options options = {.size = sizeof(ops_reduce_options),
                                  .prologue = t->cross_entropy,
                                  .prologue_inputs = &t->target,
                                  .prologue_input_count = 1};
    const int64_t flat[1] = {t->batch * DIGITS_CLASSES};
    ops_tensor x, target;
    float sum = 0;
    TRY(ops_log_softmax(t->context, 1, network_output(&t->net), &t->log_probability));
    TRY(ops_tensor_reshape(&t->log_probability, 1, flat, &x));
    TRY(ops_tensor_reshape(&t->target, 1, flat, &target));
    options.prologue_inputs = &target;
    TRY(ops_reduce(t->context, OPS_REDUCE_SUM, 0, &x, &options, &t->loss));
    TRY(ops_comm_all_reduce(t->context, t->comm, HAL_REDUCE_SUM, &t->loss, 1, NULL));
    TRY(ops_tensor_read(t->context, &t->loss, sizeof(sum), &sum));
    *loss = -(double)sum / BATCH;
    return HAL_OK;
}

static hal_status test_batch(trainer *t, const ops_tensor *pixels, int64_t first,
                             const ops_tensor *classes)
{
    ops_tensor rows, guesses;
    TRY(ops_tensor_slice(pixels, 0, first, t->batch, 1, &rows));
    TRY(ops_tensor_slice(classes, 0, first, t->batch, 1, &guesses));
    TRY(network_forward(&t->net, &rows));
    return ops_reduce(t->context, OPS_REDUCE_ARGMAX, 1, network_output(&t->net), NULL, &guesses);
}

static hal_status test_all(trainer *t, const digits_data *test, int32_t *guesses, double *accuracy)
{
    const int64_t shape[2] = {test->count, DIGITS_PIXELS};
    ops_tensor pixels = {0}, classes = {0};
    hal_status status =
        ops_tensor_from_host(t->context, HAL_TYPE_F32, 2, shape, test->pixels, &pixels);
    if (status == HAL_OK) {
        status = ops_tensor_create(t->context, HAL_TYPE_I32, 1, shape, &classes);
    }
    for (int64_t first = 0; status == HAL_OK && first < test->count; first += t->batch) {
        /* The last batch overlaps the previous one. */
        int64_t start = first + t->batch <= test->count ? first : test->count - t->batch;
        status = test_batch(t, &pixels, start, &classes);
    }
    if (status == HAL_OK) {
        status =
            ops_tensor_read(t->context, &classes, (uint64_t)test->count * sizeof(int32_t), guesses);
    }
    ops_tensor_release(&pixels);
    ops_tensor_release(&classes);
    int64_t right = 0;
    for (int64_t i = 0; status == HAL_OK && i < test->count; i++) {
        right += guesses[i] == test->labels[i];
    }
    *accuracy = (double)right / (double)test->count;
    return status;
}

static hal_status run(trainer *t, const digits_data *training, const digits_data *test,
                      int32_t *guesses, train_outcome *outcome)
{
    char title[32];
    snprintf(title, sizeof(title), "seed %llu", (unsigned long long)t->seed);
    TRY(network_create(t->context, widths, LAYERS, t->batch, momentum, decay, t->seed, &t->net));
    t->net.comm = t->comm;
    TRY(upload(t, training));
    TRY(upload_schedule(t));
    TRY(make_batch_tensors(t));

    double start = now(), loss = 0;
    for (int64_t epoch = 0; epoch < EPOCHS; epoch++) {
        TRY(train_epoch(t, epoch));
        TRY(read_loss(t, &loss));
        if (t->rank == 0) {
            report_progress(title, (epoch + 1) * t->steps_per_epoch, EPOCHS * t->steps_per_epoch,
                            loss);
        }
    }
    TRY(hal_queue_wait(ops_context_get_queue(t->context), HAL_WAIT_FOREVER));
    outcome->seconds = now() - start;
    outcome->loss = loss;
    outcome->steps = EPOCHS * t->steps_per_epoch;
    outcome->images = outcome->steps * BATCH;
    return test_all(t, test, guesses, &outcome->accuracy);
}

static void destroy(trainer *t)
{
    ops_tensor *const tensors[] = {&t->pixels, &t->targets,         &t->distortions, &t->rates,
                                   &t->order,  &t->picked,          &t->input,       &t->jitter,
                                   &t->target, &t->log_probability, &t->loss};
    for (size_t i = 0; i < sizeof(tensors) / sizeof(*tensors); i++) {
        ops_tensor_release(tensors[i]);
    }
    ops_expression_destroy(t->cross_entropy);
    network_destroy(&t->net);
}

hal_status train_and_test(ops_context *context, hal_comm *comm, const digits_data *training,
                          const digits_data *test, uint64_t seed, int32_t *guesses,
                          train_outcome *outcome)
{
    hal_comm_status ranks;
    TRY(hal_comm_get_status(comm, &ranks));
    if (BATCH % ranks.count != 0) {
        return hal_status_set(HAL_ERROR_INVALID_ARGUMENT,
                              "digits: ranks: expected a divisor of %d, got %u", BATCH,
                              ranks.count);
    }
    trainer t = {.context = context,
                 .comm = comm,
                 .rank = ranks.rank,
                 .batch = BATCH / ranks.count,
                 .seed = seed,
                 .steps_per_epoch = training->count / BATCH};
    hal_status status = run(&t, training, test, guesses, outcome);
    destroy(&t);
    return status;
}
