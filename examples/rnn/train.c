/* The training loop and the sampling; used by main.c. */
#include "train.h"

#include "model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRY(call)                    \
    do {                             \
        hal_status status_ = (call); \
        if (status_ != HAL_OK) {     \
            return status_;          \
        }                            \
    } while (0)

enum {
    HIDDEN = 128,
    BATCH = 16,
    STEPS = 32,
    COUNT = BATCH * STEPS,
    INPUTS = STATES + BATCH_ARRAYS
};
static const double learning_rate = 0.004, mean_decay = 0.9, square_decay = 0.999;

typedef struct trainer {
    const rnn_text *text;
    const train_settings *settings;
    model net;
    ops_graph *graph; /* of a step; null: eager, or not recorded yet */
    ops_array *batch[BATCH_ARRAYS];
    int64_t position; /* in the streams */
} trainer;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void release(ops_array **arrays, int count)
{
    for (int i = 0; i < count; i++) {
        ops_array_release(arrays[i]);
        arrays[i] = NULL;
    }
}

/* Letters, the following letters, and the learning rate with Adam's correction of first steps. */
static hal_status next_batch(trainer *t, int64_t step)
{
    ops_context *context = t->net.context;
    const int64_t column[2] = {COUNT, 1}, one[2] = {1, 1};
    int32_t letters[COUNT], next[COUNT];
    const float rate = (float)(learning_rate * sqrt(1 - pow(square_decay, (double)step)) /
                               (1 - pow(mean_decay, (double)step)));
    if (t->position == 0) {
        TRY(model_clear_hidden(&t->net));
    }
    t->position = rnn_text_batch(t->text, BATCH, STEPS, t->position, letters, next);
    release(t->batch, BATCH_ARRAYS);
    t->batch[BATCH_LETTERS] = ops_array_from_host(context, HAL_TYPE_I32, 2, column, letters);
    t->batch[BATCH_NEXT] = ops_array_from_host(context, HAL_TYPE_I32, 2, column, next);
    t->batch[BATCH_RATE] = ops_array_from_host(context, HAL_TYPE_F32, 2, one, &rate);
    for (int i = 0; i < BATCH_ARRAYS; i++) {
        if (!t->batch[i]) {
            return HAL_ERROR_OUT_OF_MEMORY;
        }
    }
    return HAL_OK;
}

/* Records a step as a graph: inputs are the states and the batch, outputs the new states. */
static hal_status record(trainer *t)
{
    ops_array *inputs[INPUTS], *outputs[STATES] = {NULL};
    memcpy(inputs, t->net.state, sizeof(t->net.state));
    memcpy(inputs + STATES, t->batch, sizeof(t->batch));
    TRY(ops_graph_begin(t->net.context));
    hal_status noted = model_train(&t->net, t->batch, outputs);
    hal_status ended = ops_graph_end(t->net.context, inputs, INPUTS, outputs, STATES, &t->graph);
    release(outputs, STATES);
    return noted != HAL_OK ? noted : ended;
}

static hal_status train_step(trainer *t, ops_array *next[STATES])
{
    ops_array *inputs[INPUTS];
    if (!t->graph) {
        return model_train(&t->net, t->batch, next);
    }
    memcpy(inputs, t->net.state, sizeof(t->net.state));
    memcpy(inputs + STATES, t->batch, sizeof(t->batch));
    return ops_graph_launch(t->graph, inputs, INPUTS, next, STATES);
}

/* The mean loss of the steps since the last call. */
static hal_status mean_loss(trainer *t, double *loss)
{
    float sum = 0;
    TRY(ops_array_read(t->net.state[STATE_LOSS], sizeof(sum), &sum));
    *loss = (double)sum / (double)t->settings->every;
    return model_clear_loss(&t->net);
}

static hal_status run(trainer *t, train_outcome *outcome)
{
    const int64_t every = t->settings->every;
    double start = now();
    int64_t counted = 0; /* steps since `start` */
    for (int64_t step = 1; step <= t->settings->steps; step++) {
        ops_array *next[STATES];
        TRY(next_batch(t, step));
        if (!t->settings->eager && !t->graph) {
            TRY(record(t));
        }
        TRY(train_step(t, next));
        release(t->net.state, STATES);
        memcpy(t->net.state, next, sizeof(next));
        counted++;
        if (step % every == 0) {
            TRY(mean_loss(t, &outcome->loss));
            outcome->step_us = 1e6 * (now() - start) / (double)counted;
            printf("step %6lld: loss %.4f, %.0f us a step\n", (long long)step, outcome->loss,
                   outcome->step_us);
            fflush(stdout);
            if (step == every) {
                outcome->first_loss = outcome->loss;
                start = now();
                counted = 0;
            }
        }
    }
    return HAL_OK;
}

/* G. Marsaglia, "Xorshift RNGs", 2003. */
static int32_t draw(const float *probabilities, int32_t count, uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    double left = (double)(*state >> 11) * 0x1p-53;
    int32_t letter = 0;
    while (letter + 1 < count && left >= (double)probabilities[letter]) {
        left -= (double)probabilities[letter++];
    }
    return letter;
}

static hal_status write_letter(trainer *t, ops_array **hidden, int32_t *letter, uint64_t *state)
{
    const int64_t one[2] = {1, 1};
    float probabilities[256];
    ops_array *number = ops_array_from_host(t->net.context, HAL_TYPE_I32, 2, one, letter);
    ops_array *next = NULL, *guess = NULL;
    hal_status status = model_guess(&t->net, *hidden, number, &next, &guess);
    if (status == HAL_OK) {
        status =
            ops_array_read(guess, (uint64_t)t->text->letter_count * sizeof(float), probabilities);
    }
    if (status == HAL_OK) {
        *letter = draw(probabilities, t->text->letter_count, state);
    }
    ops_array_release(number);
    ops_array_release(guess);
    ops_array_release(*hidden);
    *hidden = next;
    return status;
}

/* Samples letter by letter from the network's probabilities, starting with the text's first. */
static hal_status write_sample(trainer *t)
{
    const int64_t shape[2] = {1, HIDDEN};
    const float zeros[HIDDEN] = {0};
    int32_t letter = t->text->letters[0];
    uint64_t state = t->settings->seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    ops_array *hidden = ops_array_from_host(t->net.context, HAL_TYPE_F32, 2, shape, zeros);
    hal_status status = hidden ? HAL_OK : HAL_ERROR_OUT_OF_MEMORY;
    printf("\n");
    for (int64_t i = 0; status == HAL_OK && i < t->settings->sample; i++) {
        putchar(t->text->bytes[letter]);
        status = write_letter(t, &hidden, &letter, &state);
    }
    printf("\n");
    ops_array_release(hidden);
    return status;
}

int64_t train_least(void)
{
    return (int64_t)BATCH * (STEPS + 1);
}

hal_status train_and_write(ops_context *context, const rnn_text *text,
                           const train_settings *settings, train_outcome *outcome)
{
    const model_sizes sizes = {
        .letters = text->letter_count, .hidden = HIDDEN, .batch = BATCH, .steps = STEPS};
    trainer t = {.text = text, .settings = settings};
    hal_status status = model_create(context, sizes, settings->seed, &t.net);
    if (status == HAL_OK) {
        status = run(&t, outcome);
    }
    if (status == HAL_OK && settings->sample > 0) {
        status = write_sample(&t);
    }
    ops_graph_destroy(t.graph);
    release(t.batch, BATCH_ARRAYS);
    model_destroy(&t.net);
    return status;
}
