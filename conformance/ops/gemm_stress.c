/* gemm_stress.c: products of random types, layouts and sizes, among them few elements with a long
 * k, which devices sum in parts. On whole numbers a sample of the elements has to be right in every
 * bit; three products have to have the same bits, while another queue of the device multiplies too.
 * Each case draws products for ten seconds, all of them for ten minutes; on processors, which have
 * no pipelines between the host and a device that could hang, for one. Repeated products: the same
 * bits 1,000 times, for one product of each kind of kernel and way to add parts of k. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "case/cases.h"
#include "ops/fixture.h"

enum {
    CASES = 60,
    SECONDS = 10,
    CPU_SECONDS = 1,
    SAMPLES = 50,
    REPEATS = 3,
    REPEATED_RUNS = 1000,
    CPU_REPEATED_RUNS = 3,
    MAX_SIDE = 3000,
    MAX_K = 70000
};
#define MAX_ELEMENTS 3e6     /* of a matrix */
#define MAX_MULTIPLIES 2.0e9 /* of a product */

typedef struct stress_parameters {
    uint32_t number;
} stress_parameters;

typedef struct repeated_parameters {
    hal_type type;
    uint32_t precision;
    int64_t m, n, k;
} repeated_parameters;

/* A, B and C, and A and B on the host by rows of what is stored. */
typedef struct stress_product {
    hal_type type, type_c;
    uint32_t precision;
    int64_t m, n, k;
    bool transpose_a, transpose_b;
    ops_tensor a, b, c;
    uint8_t *host_a, *host_b;
} stress_product;

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A length whose logarithm is spread evenly; two in three are multiples of 8. */
static int64_t draw_length(random_state *random, int64_t most)
{
    const int64_t length = (int64_t)exp2(random_between(random, 0.0, log2((double)most)));
    return random_below(random, 3) > 0 ? (length + 7) / 8 * 8 : length;
}

static stress_product draw_product(random_state *random)
{
    static const hal_type types[] = {HAL_TYPE_BF16, HAL_TYPE_F16, HAL_TYPE_F32};
    stress_product drawn = {.type = types[random_below(random, 3)],
                            .precision = HAL_GEMM_STRICT + (uint32_t)random_below(random, 3),
                            .transpose_a = random_below(random, 2) != 0,
                            .transpose_b = random_below(random, 2) != 0};
    drawn.type_c = HAL_TYPE_F32;
    do {
        drawn.m = draw_length(random, MAX_SIDE);
        drawn.n = draw_length(random, MAX_SIDE);
        drawn.k = draw_length(random, MAX_K);
    } while ((double)drawn.m * (double)drawn.k > MAX_ELEMENTS ||
             (double)drawn.k * (double)drawn.n > MAX_ELEMENTS ||
             (double)drawn.m * (double)drawn.n > MAX_ELEMENTS ||
             (double)drawn.m * (double)drawn.n * (double)drawn.k > MAX_MULTIPLIES);
    return drawn;
}

static ops_tensor make_operand(case_run *run, hal_type type, int64_t rows, int64_t columns,
                               bool transposed)
{
    const int64_t shape[2] = {transposed ? columns : rows, transposed ? rows : columns};
    ops_tensor made = case_tensor(run, type, 2, shape);
    if (transposed) {
        made.shape[0] = rows;
        made.shape[1] = columns;
        made.stride[1] = made.stride[0];
        made.stride[0] = 1;
    }
    return made;
}

static void upload_operand(case_run *run, const ops_tensor *tensor, random_state *random,
                           bool whole, uint8_t *host)
{
    const size_t count = (size_t)(tensor->shape[0] * tensor->shape[1]);
    for (size_t i = 0; i < count; i++) {
        number_put(tensor->type, host, i,
                   whole ? (double)random_below(random, 5) - 2.0
                         : random_between(random, -1.0, 1.0));
    }
    case_ok(
        run,
        hal_queue_write(run->queue, tensor->buffer, 0, host, count * hal_type_size(tensor->type)),
        "hal_queue_write");
}

static void make_product(case_run *run, random_state *random, bool whole, stress_product *p)
{
    const uint32_t size = hal_type_size(p->type);
    p->a = make_operand(run, p->type, p->m, p->k, p->transpose_a);
    p->b = make_operand(run, p->type, p->k, p->n, p->transpose_b);
    p->c = make_operand(run, p->type_c, p->m, p->n, false);
    p->host_a = case_allocate(run, (size_t)(p->m * p->k), size);
    p->host_b = case_allocate(run, (size_t)(p->k * p->n), size);
    upload_operand(run, &p->a, random, whole, p->host_a);
    upload_operand(run, &p->b, random, whole, p->host_b);
}

static void multiply(case_run *run, ops_context *context, const stress_product *p)
{
    const ops_gemm_options options = {
        .size = sizeof options, .alpha = 1.0, .precision = p->precision};
    case_ok(run, ops_gemm(context, &options, &p->a, &p->b, &p->c), "ops_gemm");
}

static void read_product(case_run *run, const stress_product *p, float *elements)
{
    case_ok(run,
            hal_queue_read(run->queue, p->c.buffer, 0, (uint64_t)(p->m * p->n) * sizeof *elements,
                           elements),
            "hal_queue_read");
}

static void check_samples(case_run *run, random_state *random, const stress_product *p,
                          const float *elements)
{
    for (int s = 0; s < SAMPLES; s++) {
        const int64_t i = (int64_t)random_below(random, (uint64_t)p->m),
                      j = (int64_t)random_below(random, (uint64_t)p->n);
        double expected = 0.0;
        for (int64_t k = 0; k < p->k; k++) {
            expected +=
                number_get(p->type, p->host_a, (size_t)(i * p->a.stride[0] + k * p->a.stride[1])) *
                number_get(p->type, p->host_b, (size_t)(k * p->b.stride[0] + j * p->b.stride[1]));
        }
        const double found = (double)elements[i * p->n + j];
        case_check(run, found == expected,
                   "%lldx%lldx%lld of %s, ta=%d, tb=%d, precision %u: element (%lld, %lld): "
                   "expected %g, got %g",
                   (long long)p->m, (long long)p->n, (long long)p->k, hal_type_name(p->type),
                   p->transpose_a, p->transpose_b, p->precision, (long long)i, (long long)j,
                   expected, found);
    }
}

/* Multiplies `runs` - 1 times while `other` multiplies on its queue: always the bits of `first`. */
static void repeat_product(case_run *run, ops_context *other, hal_queue *queue,
                           const stress_product *p, const stress_product *noise, const float *first,
                           int runs)
{
    const size_t count = (size_t)(p->m * p->n);
    float *again = case_allocate(run, count, sizeof *again);
    for (int r = 1; r < runs; r++) {
        multiply(run, other, noise);
        case_ok(run, hal_queue_flush(queue, NULL), "hal_queue_flush");
        multiply(run, run->ops, p);
        read_product(run, p, again);
        case_check(run, memcmp(first, again, count * sizeof *first) == 0,
                   "%lldx%lldx%lld of %s, ta=%d, tb=%d, precision %u: other bits in run %d",
                   (long long)p->m, (long long)p->n, (long long)p->k, hal_type_name(p->type),
                   p->transpose_a, p->transpose_b, p->precision, r + 1);
    }
}

/* A product, and the same one again while `other` multiplies on its queue. */
static void run_turn(case_run *run, random_state *random, ops_context *other, hal_queue *queue)
{
    stress_product p = draw_product(random), noise = draw_product(random);
    const size_t count = (size_t)(p.m * p.n);
    const bool whole = random_below(random, 2) != 0;
    make_product(run, random, whole, &p);
    make_product(run, random, false, &noise);
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    float *first = case_allocate(run, count, sizeof *first);
    multiply(run, run->ops, &p);
    read_product(run, &p, first);
    if (whole) {
        check_samples(run, random, &p, first);
    }
    repeat_product(run, other, queue, &p, &noise, first, REPEATS);
}

static void release_context(void *context)
{
    ops_context_destroy(context);
}

/* A second context of the device, and its queue. */
static ops_context *make_other(case_run *run, hal_queue **queue)
{
    ops_context *other = NULL;
    *queue = case_queue(run, run->device);
    case_ok(run, ops_context_create(*queue, &other), "ops_context_create");
    case_own(run, release_context, other);
    return other;
}

static void run_stress(case_run *run, const void *parameters)
{
    random_state random = {run->seed};
    hal_queue *queue = NULL;
    ops_context *other = make_other(run, &queue);
    const size_t objects = run->object_count;
    const bool is_cpu = run->info->kind == HAL_DEVICE_CPU;
    const double end = seconds_now() + (is_cpu ? CPU_SECONDS : SECONDS);
    do {
        run_turn(run, &random, other, queue);
        case_ok(run, hal_queue_wait(queue, HAL_WAIT_FOREVER), "hal_queue_wait");
        case_release(run, objects);
    } while (seconds_now() < end);
}

static void run_repeated(case_run *run, const void *parameters)
{
    const repeated_parameters *drawn = parameters;
    random_state random = {run->seed};
    hal_queue *queue = NULL;
    ops_context *other = make_other(run, &queue);
    stress_product p = {.type = drawn->type,
                        .type_c = HAL_TYPE_F32,
                        .precision = drawn->precision,
                        .m = drawn->m,
                        .n = drawn->n,
                        .k = drawn->k},
                   noise = draw_product(&random);
    make_product(run, &random, false, &p);
    make_product(run, &random, false, &noise);
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    float *first = case_allocate(run, (size_t)(p.m * p.n), sizeof *first);
    multiply(run, run->ops, &p);
    read_product(run, &p, first);
    repeat_product(run, other, queue, &p, &noise, first,
                   run->info->kind == HAL_DEVICE_CPU ? CPU_REPEATED_RUNS : REPEATED_RUNS);
}

void cases_ops_gemm_stress(case_list *list)
{
    for (uint32_t i = 0; i < CASES; i++) {
        const stress_parameters parameters = {i};
        case_add(list, run_stress, &parameters, sizeof parameters,
                 "gemm(random,number=%u,seed=%llu)", i, (unsigned long long)list->seed);
    }
    /* Large, few rows, few columns, a long k of few and of many elements, and odd lines. */
    static const int64_t lengths[][3] = {{1024, 1024, 1024}, {16, 4096, 512},  {4096, 64, 512},
                                         {64, 64, 65536},    {512, 512, 4096}, {333, 517, 1001}};
    static const struct {
        hal_type type;
        uint32_t precision;
    } classes[] = {{HAL_TYPE_F32, HAL_GEMM_STRICT},
                   {HAL_TYPE_F32, HAL_GEMM_ACCURATE},
                   {HAL_TYPE_F32, HAL_GEMM_FAST},
                   {HAL_TYPE_BF16, HAL_GEMM_FAST}};
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        for (size_t j = 0; j < sizeof lengths / sizeof lengths[0]; j++) {
            const repeated_parameters parameters = {classes[i].type, classes[i].precision,
                                                    lengths[j][0], lengths[j][1], lengths[j][2]};
            case_add(list, run_repeated, &parameters, sizeof parameters,
                     "gemm(repeated,type=%s,precision=%u,m=%lld,n=%lld,k=%lld,seed=%llu)",
                     hal_type_name(parameters.type), parameters.precision, (long long)parameters.m,
                     (long long)parameters.n, (long long)parameters.k,
                     (unsigned long long)list->seed);
        }
    }
}
