/* together.c: one process loads cpu, opencl and vulkan and moves data between their devices; the
 * ctest devices_together. Two of them bring an LLVM each. Ends with 77 where one is missing. */
#include <hal/hal.h>
#include <math.h>
#include <ops/ops.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 3, COUNT = 100000, SIDE = 96, ROUNDS = 3, SKIPPED = 77 };
static const char *const plugins[PLACES] = {"cpu", "opencl", "vulkan"};

typedef struct place {
    const char *plugin;
    hal_device *device;
    hal_queue *queue;
    ops_context *ops;
    ops_tensor vector;
} place;

#define CHECK(call)                                                                               \
    do {                                                                                          \
        const hal_status status_ = (call);                                                        \
        if (status_ != HAL_OK) {                                                                  \
            fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call,                     \
                    hal_status_name(status_), hal_status_message());                              \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)

static void open_place(const char *plugin, place *p)
{
    const int64_t count = COUNT;
    *p = (place){.plugin = plugin};
    if (hal_device_open(plugin, &p->device) != HAL_OK) {
        printf("skipped: no device of %s: %s\n", plugin, hal_status_message());
        exit(getenv("CI") ? 1 : SKIPPED);
    }
    printf("%s: %s\n", plugin, hal_device_get_info(p->device)->name);
    CHECK(hal_queue_create(p->device, &p->queue));
    CHECK(ops_context_create(p->queue, &p->ops));
    CHECK(ops_tensor_create(p->ops, HAL_TYPE_F32, 1, &count, &p->vector));
}

/* vector += by, recorded. */
static void step(place *p, double by)
{
    const int64_t one = 1, count = COUNT;
    ops_tensor number, wide;
    const float value = (float)by;
    CHECK(ops_tensor_from_host(p->ops, HAL_TYPE_F32, 1, &one, &value, &number));
    CHECK(ops_tensor_broadcast(&number, 1, &count, &wide));
    CHECK(ops_binary(p->ops, OPS_ADD, &p->vector, &wide, &p->vector));
    ops_tensor_release(&number);
}

/* A point of one plugin's queue that another one's waits for changes nothing, and must not hang. */
static void transfer(place *from, place *to, bool with_point)
{
    if (with_point) {
        hal_point point;
        CHECK(hal_queue_flush(from->queue, &point));
        CHECK(hal_queue_wait_point(to->queue, point));
        step(to, 0.0); /* ordered after the point */
    }
    CHECK(hal_queue_transfer(from->queue, from->vector.buffer, 0, to->queue, to->vector.buffer, 0,
                             COUNT * sizeof(float)));
}

/* Whole numbers go round and round, and grow by another number at each device. */
static void move_in_rings(place *places)
{
    static float numbers[COUNT];
    float grown = 0.0f;
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = (float)(i % 4099);
    }
    CHECK(ops_tensor_write(places[0].ops, &places[0].vector, numbers, sizeof numbers));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < PLACES; i++) {
            step(&places[i], i + 1);
            grown += (float)(i + 1);
            transfer(&places[i], &places[(i + 1) % PLACES], round % 2 == 0);
        }
    }
    CHECK(ops_tensor_read(places[0].ops, &places[0].vector, sizeof numbers, numbers));
    for (int i = 0; i < COUNT; i++) {
        if (numbers[i] != (float)(i % 4099) + grown) {
            fprintf(stderr, "element %d is %g instead of %g\n", i, (double)numbers[i],
                    (double)((float)(i % 4099) + grown));
            exit(1);
        }
    }
}

/* Small whole numbers, whose product is exact in any order. */
static void *multiply(void *user)
{
    place *p = user;
    const int64_t shape[2] = {SIDE, SIDE};
    float *numbers = malloc(sizeof *numbers * 2 * SIDE * SIDE), *result = numbers + SIDE * SIDE;
    ops_tensor a, c;
    if (!numbers) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    for (int i = 0; i < SIDE * SIDE; i++) {
        numbers[i] = (float)(i * 7919 % 17 - 8);
    }
    CHECK(ops_tensor_from_host(p->ops, HAL_TYPE_F32, 2, shape, numbers, &a));
    CHECK(ops_tensor_create(p->ops, HAL_TYPE_F32, 2, shape, &c));
    for (int turn = 0; turn < 10; turn++) {
        CHECK(ops_gemm(p->ops, NULL, &a, &a, &c));
    }
    CHECK(ops_tensor_read(p->ops, &c, sizeof *result * SIDE * SIDE, result));
    for (int i = 0; i < SIDE * SIDE; i++) {
        float sum = 0.0f;
        for (int k = 0; k < SIDE; k++) {
            sum += numbers[i / SIDE * SIDE + k] * numbers[k * SIDE + i % SIDE];
        }
        if (result[i] != sum) {
            fprintf(stderr, "%s: element %d of the product is %g instead of %g\n", p->plugin, i,
                    (double)result[i], (double)sum);
            exit(1);
        }
    }
    ops_tensor_release(&a);
    ops_tensor_release(&c);
    free(numbers);
    return NULL;
}

/* All devices compile and compute at the same time, each from a separate thread. */
static void compute_at_once(place *places)
{
    pthread_t threads[PLACES];
    for (int i = 0; i < PLACES; i++) {
        if (pthread_create(&threads[i], NULL, multiply, &places[i]) != 0) {
            fprintf(stderr, "no thread\n");
            exit(1);
        }
    }
    for (int i = 0; i < PLACES; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* Devices that claim the same exactness give the same bits of a transcendental function. */
static void same_bits(place *places)
{
    static float numbers[PLACES][COUNT];
    const uint32_t all =
        HAL_EXACT_FMA | HAL_EXACT_DIVIDE | HAL_EXACT_SQRT | HAL_EXACT_DENORMALS;
    for (int i = 0; i < PLACES; i++) {
        for (int n = 0; n < COUNT; n++) {
            numbers[i][n] = -30.0f + (float)n * 6e-4f;
        }
        CHECK(ops_tensor_write(places[i].ops, &places[i].vector, numbers[i], sizeof numbers[i]));
        CHECK(ops_unary(places[i].ops, OPS_TANH, &places[i].vector, &places[i].vector));
        CHECK(ops_tensor_read(places[i].ops, &places[i].vector, sizeof numbers[i], numbers[i]));
        const bool exact = (hal_device_get_info(places[i].device)->exactness & all) == all;
        for (int n = 0; n < COUNT; n++) {
            const float difference = fabsf(numbers[i][n] - numbers[0][n]);
            if (exact ? difference != 0.0f : !(difference <= 1e-6f)) {
                fprintf(stderr, "%s: tanh number %d is %.9g, on the cpu %.9g\n", places[i].plugin,
                        n, (double)numbers[i][n], (double)numbers[0][n]);
                exit(1);
            }
        }
    }
}

static void close_place(place *p)
{
    ops_tensor_release(&p->vector);
    ops_context_destroy(p->ops);
    hal_queue_destroy(p->queue);
    hal_device_release(p->device);
}

int main(void)
{
    place places[PLACES];
    for (int i = 0; i < PLACES; i++) {
        open_place(plugins[i], &places[i]);
    }
    move_in_rings(places);
    compute_at_once(places);
    same_bits(places);
    for (int i = 0; i < PLACES; i++) {
        close_place(&places[i]);
    }
    puts("data moved between three plugins' devices");
    return 0;
}
