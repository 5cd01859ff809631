/* Matrix products of several sizes and types, in turns with BLAS libraries of the host or the
 * device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/device_peers.h"
#include "suites/gemm/product.h"
#include "harness/interrupt.h"
#include "peers/host_blas.h"
#include "suites/suites.h"

/* Of each class of precision the product alone and with an epilogue. */
#define MAX_WAYS (2 * BENCH_MAX_CLASSES)
/* To the choice of a class: portable kernels, the plugin's of its class and strict, and numbers of
 * levels. */
#define MAX_ALTERNATIVES (BENCH_MAX_CANDIDATES + 4 + HAL_GEMM_MAX_LEVELS)

/* A BLAS library, on the device (`device`) or the host. */
typedef struct peer {
    const char *name;
    peer_blas host;
    device_peer *device;
    const gemm_product *product;
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

static void run_peer(void *user, int calls)
{
    enum { ROW_MAJOR = 101, AS_IT_IS = 111, TRANSPOSED = 112 };
    const peer *run = user;
    const gemm_product *p = run->product;
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k;
    const int lda = p->transpose_a ? m : k, ldb = p->transpose_b ? k : n;
    const int order_a = p->transpose_a ? TRANSPOSED : AS_IT_IS;
    const int order_b = p->transpose_b ? TRANSPOSED : AS_IT_IS;
    for (int64_t i = 0; i < calls * p->batch; i++) {
        const int64_t at = i % p->batch, in_a = at * m * k, in_b = at * k * n, in_c = at * m * n;
        if (p->type == HAL_TYPE_F64) {
            run->host.dgemm(ROW_MAJOR, order_a, order_b, m, n, k, 1.0, (const double *)p->a + in_a,
                            lda, (const double *)p->b + in_b, ldb, 0.0, (double *)p->c + in_c, n);
        } else {
            run->host.sgemm(ROW_MAJOR, order_a, order_b, m, n, k, 1.0f, (const float *)p->a + in_a,
                            lda, (const float *)p->b + in_b, ldb, 0.0f, (float *)p->c + in_c, n);
        }
    }
}

/* Multiplies once and checks the result; false where the library cannot be measured. */
static bool begin_peer(const gemm_product *p, peer *other, measured *competitor)
{
    device_peer *device = other->device;
    const device_matrices matrices = {.type = p->type,
                                      .transpose_a = p->transpose_a,
                                      .transpose_b = p->transpose_b,
                                      .batch = p->batch,
                                      .m = p->m,
                                      .n = p->n,
                                      .k = p->k,
                                      .a = p->a,
                                      .b = p->b,
                                      .fast = p->is_fast};
    other->product = p;
    memset(p->c, 0xff, gemm_product_c_bytes(p));
    if (!device) {
        if (p->type != HAL_TYPE_F32 && p->type != HAL_TYPE_F64) {
            return false;
        }
        *competitor = (measured){.function = run_peer, .user = other, .has_threads = true};
        run_peer(other, 1);
        return gemm_peer_check(p, other->name);
    }
    if (device->failed || !device->takes(p->type) || (p->batch > 1 && !device->has_batches) ||
        !device->begin(device, &matrices)) {
        return false;
    }
    *competitor = (measured){.function = device->run, .user = device};
    device->run(device, 1);
    return device->read(device, p->c) && gemm_peer_check(p, other->name);
}

static void peers_end(bench_state *bench, peer *peers, int count)
{
    for (int i = 0; i < count; i++) {
        if (peers[i].device) {
            peers[i].device->end(peers[i].device);
        }
        if (peers[i].device && peers[i].device->failed) {
            bench_fail(bench, "%s", peers[i].device->message);
        }
    }
}

/* The row of a class; the classes and peers of its product have been measured in turns. */
static bench_row *row_add(const gemm_call *call, const measurement *time, const double first_ms[2])
{
    const gemm_product *p = call->product;
    const char *const epilogue = call->has_epilogue ? " + bias, gelu" : "";
    const char *class =
        p->bench->options.precision_count > 1 ? bench_precision_name(call->precision) : "";
    char product[64], name[96], levels[12] = "";
    gemm_product_name(p, product, sizeof product);
    if (class[0] != 0 && call->levels) {
        snprintf(levels, sizeof levels, "%u", call->levels);
    }
    snprintf(name, sizeof name, "%s%s%s%s%s", product, class[0] != 0 ? ", " : "", class, levels,
             epilogue);
    bench_row *row = bench_add(p->bench, name, p->type);
    if (row) {
        row->m = p->m;
        row->n = p->n;
        row->k = p->k;
        row->time = *time;
        row->first_ms = first_ms[0];
        row->second_ms = first_ms[1];
        gemm_call_describe(call, sizeof row->how, row->how);
    }
    return row;
}

/* Appends a call if this device has it. Returns whether it has; *well becomes false where it fails
 * otherwise or its result is wrong. */
static bool alternative_add(const gemm_call *call, gemm_call *found, int *count, bool *well)
{
    const hal_status status = gemm_call_try(call, NULL);
    if (status != HAL_OK && status != HAL_ERROR_UNSUPPORTED) {
        *well = bench_ok(call->product->bench, status, "ops_gemm");
    }
    if (status != HAL_OK || !gemm_call_check(call, "an alternative")) {
        return false;
    }
    found[(*count)++] = *call;
    return true;
}

/* Whether a call has the kernels of the choice: descriptions differ in the reason alone, which
 * follows the last semicolon. */
static bool is_choice(const gemm_call *call, const char *chosen)
{
    char text[512];
    gemm_call_describe(call, sizeof text, text);
    const char *end = strrchr(text, ';'), *chosen_end = strrchr(chosen, ';');
    return end && chosen_end && end - text == chosen_end - chosen &&
           memcmp(text, chosen, (size_t)(end - text)) == 0;
}

/* Adds the portable kernels by their estimated time, without the choice. */
static void portable_add(const gemm_call *chosen, const char *text, gemm_call *found, int *count,
                         bool *well)
{
    enum { USUAL = 8 };
    const uint32_t asked = chosen->product->bench->options.candidates,
                   candidates = asked > 0 ? asked : USUAL;
    bool more = chosen->impl != OPS_GEMM_NATIVE;
    gemm_call call = *chosen;
    call.impl = OPS_GEMM_PORTABLE;
    for (uint32_t i = 1; i <= candidates && more && *well; i++) {
        more = gemm_call_set_config(&call, i) &&
               (is_choice(&call, text) || alternative_add(&call, found, count, well));
    }
}

/* Adds the plugin's kernel for a class, where it is not the choice. */
static void native_add(const gemm_call *chosen, uint32_t precision, const char *text,
                       gemm_call *found, int *count, bool *well)
{
    gemm_call call = *chosen;
    call.impl = OPS_GEMM_NATIVE;
    call.precision = precision;
    if (chosen->impl != OPS_GEMM_PORTABLE && *well && !is_choice(&call, text)) {
        alternative_add(&call, found, count, well);
    }
}

/* The other calls that multiply than that of a class: kernels of both implementations, and the
 * numbers of levels of Strassen's algorithm. Returns how many this device has. */
static int alternatives_find(const gemm_call *chosen, gemm_call found[MAX_ALTERNATIVES])
{
    int count = 0;
    bool well = true;
    gemm_call call = *chosen;
    char text[512];
    gemm_call_describe(chosen, sizeof text, text);
    call.impl = OPS_GEMM_PORTABLE;
    if (chosen->impl == OPS_GEMM_ANY && !is_choice(&call, text)) {
        alternative_add(&call, found, &count, &well);
    }
    portable_add(chosen, text, found, &count, &well);
    native_add(chosen, chosen->precision, text, found, &count, &well);
    if (chosen->precision == HAL_GEMM_FAST || chosen->precision == HAL_GEMM_ACCURATE) {
        native_add(chosen, HAL_GEMM_STRICT, text, found, &count, &well); /* serves them as well */
    }
    for (uint32_t l = 0; l <= HAL_GEMM_MAX_LEVELS && chosen->precision == HAL_GEMM_NORMWISE && well;
         l++) {
        call = *chosen;
        call.levels = l;
        call.precision = l > 0 ? HAL_GEMM_NORMWISE : HAL_GEMM_ACCURATE;
        alternative_add(&call, found, &count, &well);
    }
    return count;
}

/* Adds the fastest of the alternatives, or the choice itself, as a peer: --regret. */
static void add_best(bench_row *row, const measured *alternatives, int count)
{
    const measurement *best = &row->time;
    const gemm_call *best_call = NULL;
    row->candidates = calloc((size_t)count + 1, sizeof *row->candidates);
    for (int i = 0; i < count && row->candidates != NULL; i++) {
        const gemm_call *call = alternatives[i].user;
        bench_candidate *candidate = &row->candidates[i];
        snprintf(candidate->config, sizeof candidate->config, "%s", call->config);
        candidate->median_us = alternatives[i].time.median_us;
        candidate->min_us = alternatives[i].time.min_us;
        candidate->runs = alternatives[i].time.runs;
        gemm_call_describe(call, sizeof candidate->how, candidate->how);
        row->candidate_count = i + 1;
        if (candidate->runs > 0 && candidate->min_us < best->min_us) {
            best = &alternatives[i].time;
            best_call = call;
        }
    }
    if (best_call) {
        gemm_call_describe(best_call, sizeof row->best_how, row->best_how);
    }
    bench_add_peer(row, BENCH_BEST, best);
}

/* A row for each of `class_count` calls; one with an epilogue follows the same without. */
static void run_case(gemm_product *p, const gemm_operands *operands, gemm_call *classes,
                     int class_count, peer *peers, int peer_count)
{
    bench_state *bench = p->bench;
    static measured competitors[MAX_WAYS * (1 + MAX_ALTERNATIVES) + BENCH_MAX_PEERS];
    static gemm_call alternatives[MAX_WAYS][MAX_ALTERNATIVES];
    double first_ms[MAX_WAYS][2];
    const char *names[BENCH_MAX_PEERS];
    int count = class_count, more[MAX_WAYS] = {0};
    bool well = true;
    for (int i = 0; i < class_count && well; i++) {
        classes[i].operands = operands;
        competitors[i] = (measured){.function = gemm_call_run, .user = &classes[i]};
        well = bench_ok(bench, gemm_call_try(&classes[i], first_ms[i]), "ops_gemm") &&
               gemm_call_check(&classes[i], "the device");
    }
    for (int i = 0; i < peer_count && well; i++) {
        if (begin_peer(p, &peers[i], &competitors[count])) {
            names[count++ - class_count] = peers[i].name;
        }
    }
    const int kept = count;
    for (int i = 0; i < class_count && well && bench->options.regret; i++) {
        more[i] = classes[i].has_epilogue ? 0 : alternatives_find(&classes[i], alternatives[i]);
        for (int j = 0; j < more[i]; j++) {
            competitors[count++] =
                (measured){.function = gemm_call_run, .user = &alternatives[i][j]};
        }
    }
    if (!well) {
        return;
    }
    measure_screened(competitors, count, kept, bench->options.seconds);
    for (int i = 0, first = kept; i < class_count; first += more[i++]) {
        bench_row *row = row_add(&classes[i], &competitors[i].time, first_ms[i]);
        const bool is_plain = !classes[i].has_epilogue;
        if (row && !is_plain) {
            bench_add_peer(row, "plain", &competitors[i - 1].time);
        }
        for (int j = class_count; j < kept && row && is_plain; j++) {
            bench_add_peer(row, names[j - class_count], &competitors[j].time);
        }
        if (row && bench->options.regret && is_plain) {
            add_best(row, &competitors[first], more[i]);
        }
        if (row) {
            const double bytes = (double)(p->m * p->k + p->k * p->n) * hal_type_size(p->type) +
                                 (double)(p->m * p->n) * hal_type_size(gemm_product_type_c(p)),
                         batch = (double)p->batch;
            bench_rate(row, 2.0 * (double)p->m * (double)p->n * (double)p->k * batch,
                       bytes * batch);
        }
    }
}

/* The classes of --precision, those in turns that peers meet with the same arithmetic. */
static void run_classes(const gemm_product *shape, peer *peers, int peer_count)
{
    bench_state *bench = shape->bench;
    bench_options *options = &bench->options;
    for (int i = 0, more = bench_select_precision(options, 0); more;) {
        gemm_product p = *shape;
        gemm_call classes[MAX_WAYS];
        gemm_operands operands = {0};
        int count = 0;
        p.is_fast = options->precision == HAL_GEMM_FAST;
        do {
            classes[count++] = (gemm_call){.product = &p,
                                           .ops = bench->ops,
                                           .queue = bench->queue,
                                           .precision = options->precision,
                                           .levels = options->levels,
                                           .impl = options->impl};
            if (options->epilogue && hal_type_size(p.type) > 1 &&
                options->precision != HAL_GEMM_EXACT) {
                classes[count] = classes[count - 1];
                classes[count++].has_epilogue = true;
            }
            more = bench_select_precision(options, ++i);
        } while (more && p.is_fast == (options->precision == HAL_GEMM_FAST));
        if (gemm_product_fill(&p) && gemm_operands_make(&p, bench->ops, &operands)) {
            run_case(&p, &operands, classes, count, peers, peer_count);
        }
        peers_end(bench, peers, peer_count);
        gemm_operands_release(&operands);
        gemm_product_free(&p);
    }
}

/* The product of a number: those of --random, else of --sizes, else usual ones. The random ones are
 * the same for each type. */
static bool product_get(const bench_options *options, int index, uint64_t *state,
                        gemm_product *product)
{
    static const int64_t usual[][3] = {
        {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {2048, 2048, 2048}};
    enum { LARGEST = 8192 };
    const int given = options->size_count > 0 ? options->size_count : 4;
    if (options->random > 0) {
        gemm_product_draw(state, options->largest > 0 ? (int64_t)options->largest : LARGEST,
                          product);
        return index < (int)options->random;
    }
    if (index < given) {
        const int64_t *size = options->size_count > 0 ? options->sizes[index] : usual[index];
        product->m = size[0];
        product->n = size[1];
        product->k = size[2];
        product->transpose_a = options->layout && options->layout[0] == 't';
        product->transpose_b = options->layout && options->layout[1] == 't';
        product->batch = options->batch > 0 ? options->batch : 1;
    }
    return index < given;
}

void suite_gemm(bench_state *bench)
{
    static const hal_type types[] = {HAL_TYPE_F32,     HAL_TYPE_F64, HAL_TYPE_F16, HAL_TYPE_BF16,
                                     HAL_TYPE_F8_E4M3, HAL_TYPE_I8,  HAL_TYPE_U8};
    const bench_options *options = &bench->options;
    const uint64_t seed = bench_seed_of(options);
    peer peers[BENCH_MAX_PEERS];
    const int peer_count = open_peers(bench, peers);
    interrupt_watch();
    for (int t = 0; t < (int)(sizeof types / sizeof *types); t++) {
        gemm_product product = {.bench = bench, .type = types[t]};
        uint64_t state = bench_seed(seed);
        for (int i = 0; bench_wants(bench, types[t], t == 0) && !interrupt_was_asked() &&
                        product_get(options, i, &state, &product);
             i++) {
            run_classes(&product, peers, peer_count);
        }
    }
    if (options->random > 0) {
        bench_note(bench, "Random products: --seed %llu", (unsigned long long)seed);
    }
}
