/* Matrix products of several sizes and types, in turns with BLAS libraries of the host or the
 * device. Called by main.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "device_peers.h"
#include "peers.h"

#define CHECKS 200 /* elements of each product that are checked */

typedef struct product {
    bench_state *bench;
    hal_type type;
    bool is_fast; /* its classes are: operands may be rounded */
    int64_t m, n, k;
    void *a, *b, *c; /* on the host, for peers and checks */
    ops_tensor on_device[3];
} product;

/* A class of --precision, with levels that are asked for. */
typedef struct product_class {
    product *product;
    hal_gemm_precision precision;
    uint32_t levels;
} product_class;

/* A BLAS library, on the device (`device`) or the host. */
typedef struct peer {
    const char *name;
    peer_blas host;
    device_peer *device;
    const product *product;
} peer;

static bool open_peer(bench_state *bench, const char *name, peer *opened)
{
    char message[512];
    *opened = (peer){.name = name};
    bool well;
    if (device_peer_is_known(name)) {
        opened->device = device_peer_open(name, bench->info, message, sizeof message);
        well = opened->device != NULL;
    } else {
        well = peer_open(name, bench->options.threads, &opened->host, message, sizeof message);
    }
    return well || bench_fail(bench, "%s", message);
}

static int open_peers(bench_state *bench, peer *peers)
{
    int count = 0;
    for (int i = 0; i < bench->options.peer_count; i++) {
        count += open_peer(bench, bench->options.peers[i], &peers[count]);
    }
    return count;
}

static void run_device(void *user, int calls)
{
    const product_class *run = user;
    const product *p = run->product;
    bench_state *bench = p->bench;
    const ops_gemm_options options = {.size = sizeof(ops_gemm_options),
                                      .alpha = 1.0,
                                      .precision = run->precision,
                                      .levels = run->levels,
                                      .impl = bench->options.impl};
    for (int i = 0; i < calls && !bench->failed; i++) {
        bench_ok(
            bench,
            ops_gemm(bench->ops, &options, &p->on_device[0], &p->on_device[1], &p->on_device[2]),
            "ops_gemm");
    }
    bench_ok(bench, hal_queue_wait(bench->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
}

static bool make(bench_state *bench, product *made)
{
    const int64_t shapes[3][2] = {{made->m, made->k}, {made->k, made->n}, {made->m, made->n}};
    void **hosts[3] = {&made->a, &made->b, &made->c};
    const uint32_t size = hal_type_size(made->type);
    for (int i = 0; i < 3; i++) {
        const size_t count = (size_t)(shapes[i][0] * shapes[i][1]);
        *hosts[i] = aligned_alloc(64, (count * size + 63) / 64 * 64);
        if (*hosts[i] == NULL) {
            return bench_fail(bench, "out of memory");
        }
        bench_random(made->type, *hosts[i], count, (uint64_t)i + 1);
        if (!bench_ok(bench,
                      ops_tensor_from_host(bench->ops, made->type, 2, shapes[i], *hosts[i],
                                           &made->on_device[i]),
                      "a matrix on the device")) {
            return false;
        }
    }
    return true;
}

static double unit_of(hal_type type)
{
    switch (type) {
    case HAL_TYPE_F64:
        return 0x1p-53;
    case HAL_TYPE_F16:
        return 0x1p-11;
    case HAL_TYPE_BF16:
        return 0x1p-8;
    default:
        return 0x1p-24;
    }
}

/* |c' - c| <= gamma(K) (|A||B|) + u |c| for elements spread over C, including the last one; the
 * fast class may round one operand to 11 bits and truncate the other. Peers may round partial sums
 * to the type of C. */
static bool check(const product *p, const char *who, bool is_peer)
{
    const bool fast = p->is_fast && p->type == HAL_TYPE_F32;
    const double u = p->type == HAL_TYPE_F64 ? 0x1p-53 : 0x1p-24, out = unit_of(p->type);
    const double operand = (fast ? 0x1.8p-10 : 0.0) + (is_peer ? out : 0.0);
    const double gamma = (double)p->k * u / (1.0 - (double)p->k * u);
    const int64_t count = p->m * p->n;
    for (int64_t s = 0; s < CHECKS; s++) {
        const int64_t at = s == CHECKS - 1 ? count - 1 : (s * 7919 * (count / CHECKS + 1)) % count;
        const int64_t i = at / p->n, j = at % p->n;
        long double sum = 0.0L, size = 0.0L;
        for (int64_t k = 0; k < p->k; k++) {
            const long double term =
                (long double)bench_value(p->type, p->a, (size_t)(i * p->k + k)) *
                (long double)bench_value(p->type, p->b, (size_t)(k * p->n + j));
            sum += term;
            size += fabsl(term);
        }
        const double value = bench_value(p->type, p->c, (size_t)at);
        const double bound = (gamma + operand) * (double)size + 1.001 * out * fabs((double)sum);
        if (!(fabs(value - (double)sum) <= bound)) {
            return bench_fail(p->bench,
                              "gemm %lldx%lldx%lld by %s: C[%lld][%lld] is %.9g instead of %.9Lg",
                              (long long)p->m, (long long)p->n, (long long)p->k, who, (long long)i,
                              (long long)j, value, sum);
        }
    }
    return true;
}

static bool run_first(product_class *run)
{
    product *p = run->product;
    run_device(run, 1);
    return !p->bench->failed &&
           bench_ok(p->bench,
                    ops_tensor_read(p->bench->ops, &p->on_device[2],
                                    (uint64_t)(p->m * p->n) * hal_type_size(p->type), p->c),
                    "reading C") &&
           check(p, "the device", false);
}

static void run_peer(void *user, int calls)
{
    enum { ROW_MAJOR = 101, AS_IT_IS = 111 };
    const peer *run = user;
    const product *p = run->product;
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k;
    for (int i = 0; i < calls; i++) {
        if (p->type == HAL_TYPE_F64) {
            run->host.dgemm(ROW_MAJOR, AS_IT_IS, AS_IT_IS, m, n, k, 1.0, p->a, k, p->b, n, 0.0,
                            p->c, n);
        } else {
            run->host.sgemm(ROW_MAJOR, AS_IT_IS, AS_IT_IS, m, n, k, 1.0f, p->a, k, p->b, n, 0.0f,
                            p->c, n);
        }
    }
}

/* Multiplies once and checks the result; false where the library cannot be measured. */
static bool begin_peer(product *p, peer *other, measured *competitor)
{
    device_peer *device = other->device;
    const device_matrices matrices = {p->type, p->m, p->n, p->k, p->a, p->b, p->is_fast};
    other->product = p;
    memset(p->c, 0xff, (size_t)(p->m * p->n) * hal_type_size(p->type));
    if (device == NULL) {
        if (p->type != HAL_TYPE_F32 && p->type != HAL_TYPE_F64) {
            return false;
        }
        *competitor = (measured){.function = run_peer, .user = other};
        run_peer(other, 1);
        return check(p, other->name, true);
    }
    if (device->failed || !device->takes(p->type) || !device->begin(device, &matrices)) {
        return false;
    }
    *competitor = (measured){.function = device->run, .user = device};
    device->run(device, 1);
    return device->read(device, p->c) && check(p, other->name, true);
}

static void release(product *made)
{
    for (int i = 0; i < 3; i++) {
        ops_tensor_release(&made->on_device[i]);
    }
    free(made->a);
    free(made->b);
    free(made->c);
}

static void peers_end(bench_state *bench, peer *peers, int count)
{
    for (int i = 0; i < count; i++) {
        if (peers[i].device != NULL) {
            peers[i].device->end(peers[i].device);
        }
        if (peers[i].device != NULL && peers[i].device->failed) {
            bench_fail(bench, "%s", peers[i].device->message);
        }
    }
}

/* The row of a class; the classes and peers of its product have been measured in turns. */
static bench_row *row_add(const product_class *run, const measurement *time)
{
    const product *p = run->product;
    const char *class =
        p->bench->options.precision_count > 1 ? bench_precision_name(run->precision) : "";
    char name[96], levels[12] = "";
    if (class[0] != 0 && run->levels) {
        snprintf(levels, sizeof levels, "%u", run->levels);
    }
    snprintf(name, sizeof name, "gemm %lldx%lldx%lld%s%s%s", (long long)p->m, (long long)p->n,
             (long long)p->k, class[0] != 0 ? ", " : "", class, levels);
    bench_row *row = bench_add(p->bench, name, p->type);
    if (row != NULL) {
        row->m = p->m;
        row->n = p->n;
        row->k = p->k;
        row->time = *time;
    }
    return row;
}

/* A row for each of `class_count` classes. */
static void run_case(product *p, product_class *classes, int class_count, peer *peers,
                     int peer_count)
{
    bench_state *bench = p->bench;
    measured competitors[BENCH_MAX_CLASSES + BENCH_MAX_PEERS];
    const char *names[BENCH_MAX_PEERS];
    int count = class_count;
    bool well = make(bench, p);
    for (int i = 0; i < class_count && well; i++) {
        competitors[i] = (measured){.function = run_device, .user = &classes[i]};
        well = run_first(&classes[i]);
    }
    for (int i = 0; i < peer_count && well; i++) {
        if (begin_peer(p, &peers[i], &competitors[count])) {
            names[count++ - class_count] = peers[i].name;
        }
    }
    if (well) {
        measure_alternating(competitors, count, bench->options.seconds);
    }
    for (int i = 0; i < class_count && well; i++) {
        bench_row *row = row_add(&classes[i], &competitors[i].time);
        for (int j = class_count; j < count && row != NULL; j++) {
            bench_add_peer(row, names[j - class_count], &competitors[j].time);
        }
        if (row != NULL) {
            bench_rate(row, 2.0 * (double)p->m * (double)p->n * (double)p->k,
                       (double)(p->m * p->k + p->k * p->n + p->m * p->n) * hal_type_size(p->type));
        }
    }
    peers_end(bench, peers, peer_count);
    release(p);
}

/* The classes of --precision, those in turns that peers meet with the same arithmetic. */
static void run_classes(bench_state *bench, hal_type type, const int64_t size[3], peer *peers,
                        int peer_count)
{
    bench_options *options = &bench->options;
    for (int i = 0, more = bench_select_precision(options, 0); more;) {
        product p = {.bench = bench, .type = type, .m = size[0], .n = size[1], .k = size[2]};
        product_class classes[BENCH_MAX_CLASSES];
        int count = 0;
        p.is_fast = options->precision == HAL_GEMM_FAST;
        do {
            classes[count++] = (product_class){&p, options->precision, options->levels};
            more = bench_select_precision(options, ++i);
        } while (more && p.is_fast == (options->precision == HAL_GEMM_FAST));
        run_case(&p, classes, count, peers, peer_count);
    }
}

void suite_gemm(bench_state *bench)
{
    static const int64_t usual[][3] = {
        {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048}};
    static const hal_type types[] = {HAL_TYPE_F32, HAL_TYPE_F64, HAL_TYPE_F16, HAL_TYPE_BF16};
    bench_options *options = &bench->options;
    const int count = options->size_count > 0 ? options->size_count : 4;
    peer peers[BENCH_MAX_PEERS];
    const int peer_count = open_peers(bench, peers);
    for (int t = 0; t < 4; t++) {
        for (int s = 0; s < count && bench_wants(bench, types[t], t == 0); s++) {
            const int64_t *size = options->size_count > 0 ? options->sizes[s] : usual[s];
            run_classes(bench, types[t], size, peers, peer_count);
        }
    }
}
