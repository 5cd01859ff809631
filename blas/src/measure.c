/* Measures products, transfers, copies, and one call of each kind, see measure.h. */
#include "measure.h"

#include "host.h"
#include "lane.h"
#include "matrix.h"
#include "product.h"
#include "resident.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

const int64_t blas_measure_orders[BLAS_MODEL_POINTS] = {32, 128, 512, 1024};
const int64_t blas_measure_columns[BLAS_MODEL_THIN] = {4, 16};

/* A longer measurement ends a curve. */
#define CURVE_SECONDS 0.05
#define LEAST_BYTES 64
#define PARALLEL_ORDER 512
#define PARALLEL_SECONDS 0.05

/* The kernel lets threads that share a processor take turns more often. */
#define PREEMPTION_NANOSECONDS 1e7

#define PACKED_ORDER 1024

/* A measurement is repeated this often at least, then for longer than the kernel lets others have
 * the processor: the least time counts. Calls, of which there are many, are measured for less. */
#define MIN_TURNS 3
#define TURNS_SECONDS 0.02
#define CALL_SECONDS 0.005

/* Of the calls of all kinds. */
#define CALL_ORDER 192

/* Calls are not measured of a type whose products take the device this many times as long as the
 * host, at this point of the curves: it computes none of them. */
#define HOPELESS 2
#define HOPELESS_POINT 2

/* What a measurement repeats. */
typedef struct trial {
    blas_lane *lane;
    ops_tensor a, b, c; /* on the device */
    void *memory;       /* of the host: three matrices */
    size_t bytes;       /* of each */
    blas_call call;
    clockid_t clock;
    double seconds; /* for turns */
    double share;   /* processors that a copy by one thread takes or leaves idle */
} trial;

/* Nanoseconds. */
static double clock_read(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static double now(const trial *t)
{
    return clock_read(t->clock);
}

static hal_status device_product(trial *t)
{
    ops_gemm_options options = OPS_GEMM_OPTIONS_DEFAULT;
    options.precision = HAL_GEMM_ACCURATE;
    HAL_TRY(ops_gemm(t->lane->context, &options, &t->a, &t->b, &t->c));
    return hal_queue_wait(t->lane->queue, HAL_WAIT_FOREVER);
}

static hal_status host_product(trial *t)
{
    return blas_host_compute(&t->call) ? HAL_OK : HAL_ERROR_UNSUPPORTED;
}

/* Of t->bytes. */
static hal_status upload(trial *t)
{
    HAL_TRY(hal_queue_write(t->lane->queue, t->a.buffer, 0, t->memory, t->bytes));
    return hal_queue_wait(t->lane->queue, HAL_WAIT_FOREVER);
}

static hal_status download(trial *t)
{
    return hal_queue_read(t->lane->queue, t->a.buffer, 0, t->bytes, t->memory);
}

/* Calls pack into memory that they allocate, whose pages the kernel may have to make. */
static hal_status pack_matrix(trial *t, blas_type type, blas_structure structure, bool is_expanded)
{
    const blas_matrix matrix = {.data = t->memory,
                                .count = 1,
                                .type = type,
                                .structure = structure,
                                .rows = PACKED_ORDER,
                                .columns = PACKED_ORDER,
                                .leading = PACKED_ORDER};
    void *packed = malloc(BLAS_PACKED_BYTES * (is_expanded ? 2 : 1));
    if (!packed) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    blas_matrix_pack(&matrix, (blas_number){1, 0}, is_expanded, packed);
    free(packed);
    return HAL_OK;
}

static hal_status pack(trial *t)
{
    return pack_matrix(t, BLAS_TYPE_d, BLAS_SYMMETRIC, false);
}

static hal_status expand(trial *t)
{
    return pack_matrix(t, BLAS_TYPE_c, BLAS_GENERAL, true);
}

static hal_status time_action(hal_status (*action)(trial *), trial *t, uint64_t *nanoseconds)
{
    const double start = now(t);
    HAL_TRY(action(t));
    const double taken = now(t) - start;
    *nanoseconds = taken < (double)*nanoseconds ? (uint64_t)taken + 1 : *nanoseconds;
    return HAL_OK;
}

/* The least times of two actions, which alternate; the first turn may compile. */
static hal_status measure(hal_status (*first)(trial *), hal_status (*second)(trial *), trial *t,
                          uint64_t *first_time, uint64_t *second_time)
{
    const double start = clock_read(CLOCK_MONOTONIC);
    *first_time = *second_time = UINT64_MAX;
    for (int turn = 0; turn < MIN_TURNS || clock_read(CLOCK_MONOTONIC) - start < 1e9 * t->seconds;
         turn++) {
        HAL_TRY(time_action(first, t, first_time));
        HAL_TRY(time_action(second, t, second_time));
    }
    return HAL_OK;
}

/* The host's memory holds zeros, which take the same time as other numbers. */
static hal_status trial_create(trial *t, hal_type type, int64_t order)
{
    const int64_t shape[2] = {order, order};
    HAL_TRY(ops_tensor_create(t->lane->context, type, 2, shape, &t->a));
    HAL_TRY(ops_tensor_create(t->lane->context, type, 2, shape, &t->b));
    HAL_TRY(ops_tensor_create(t->lane->context, type, 2, shape, &t->c));
    HAL_TRY(ops_fill(t->lane->context, 0, &t->a));
    HAL_TRY(ops_fill(t->lane->context, 0, &t->b));
    t->bytes = (size_t)hal_buffer_get_bytes(t->a.buffer);
    t->memory = calloc(3, t->bytes);
    return t->memory ? HAL_OK : HAL_ERROR_OUT_OF_MEMORY;
}

static void trial_destroy(trial *t)
{
    ops_tensor_release(&t->a);
    ops_tensor_release(&t->b);
    ops_tensor_release(&t->c);
    free(t->memory);
    t->memory = NULL;
}

/* Prepares a square matrix times one with `columns` columns. */
static hal_status product_create(trial *t, bool is_double, int64_t n, int64_t columns)
{
    static const double double_one = 1, double_zero;
    static const float single_one = 1, single_zero;
    HAL_TRY(trial_create(t, is_double ? HAL_TYPE_F64 : HAL_TYPE_F32, n));
    t->a.shape[0] = t->c.shape[0] = columns;
    char *memory = t->memory;
    t->call = (blas_call){.routine = is_double ? BLAS_ROUTINE_dgemm : BLAS_ROUTINE_sgemm,
                          .transa = 'N',
                          .transb = 'N',
                          .m = n,
                          .n = columns,
                          .k = n,
                          .lda = n,
                          .ldb = n,
                          .ldc = n,
                          .batch = 1,
                          .alpha = is_double ? (const void *)&double_one : &single_one,
                          .beta = is_double ? (const void *)&double_zero : &single_zero,
                          .a = memory,
                          .b = memory + t->bytes,
                          .c = memory + 2 * t->bytes};
    return HAL_OK;
}

static hal_status measure_product(trial *t, bool is_double, int64_t n, int64_t columns,
                                  uint64_t *device, uint64_t *host)
{
    hal_status status = product_create(t, is_double, n, columns);
    if (status == HAL_OK) {
        status = measure(device_product, host_product, t, device, host);
    }
    trial_destroy(t);
    return status;
}

/* How often others have taken a processor from a thread of the process. */
static long preemptions(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

/* Where device and host are the same processors: several threads are timed by the clock, since
 * those that wait take time of processors as well, and copies by one thread leave the others idle.
 * With one thread, or while others use the processors, time of processors counts, of copies that of
 * the idle ones as well. */
static hal_status clock_choose(trial *t)
{
    hal_status status = product_create(t, false, PARALLEL_ORDER, PARALLEL_ORDER);
    if (status == HAL_OK) {
        status = host_product(t); /* starts threads */
    }
    const long before = preemptions();
    const double begin = clock_read(CLOCK_MONOTONIC);
    const double begin_processors = clock_read(CLOCK_PROCESS_CPUTIME_ID);
    double elapsed = 0;
    while (status == HAL_OK && elapsed < 1e9 * PARALLEL_SECONDS) {
        status = host_product(t);
        elapsed = clock_read(CLOCK_MONOTONIC) - begin;
    }
    const double processors = clock_read(CLOCK_PROCESS_CPUTIME_ID) - begin_processors;
    const bool is_parallel = processors > 1.25 * elapsed;
    const bool is_alone = (double)(preemptions() - before) < elapsed / PREEMPTION_NANOSECONDS;
    t->clock = is_parallel && is_alone ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID;
    t->share = is_parallel && !is_alone ? processors / elapsed : 1;
    trial_destroy(t);
    return status;
}

/* Both curves of a type end where one takes long. */
static hal_status measure_curves(trial *t, bool is_double, blas_measurements *made)
{
    for (int point = 0; point < BLAS_MODEL_POINTS; point++) {
        HAL_TRY(measure_product(t, is_double, blas_measure_orders[point],
                                blas_measure_orders[point], &made->device[is_double][point],
                                &made->host[is_double][point]));
        const uint64_t device = made->device[is_double][point], host = made->host[is_double][point];
        if ((double)(device > host ? device : host) > 1e9 * CURVE_SECONDS) {
            break;
        }
    }
    for (int i = 0; i < BLAS_MODEL_THIN; i++) {
        HAL_TRY(measure_product(t, is_double, BLAS_THIN_ORDER, blas_measure_columns[i],
                                &made->device_thin[is_double][i], &made->host_thin[is_double][i]));
    }
    return HAL_OK;
}

static hal_status measure_transfers(trial *t, blas_measurements *made)
{
    const int64_t order = 2048; /* of f32: BLAS_TRANSFER_BYTES */
    hal_status status = trial_create(t, HAL_TYPE_F32, order);
    if (status == HAL_OK) {
        status = measure(upload, download, t, &made->upload, &made->download);
    }
    if (status == HAL_OK) {
        t->bytes = LEAST_BYTES;
        status = measure(upload, download, t, &made->least_upload, &made->least_download);
    }
    if (status == HAL_OK) {
        status = measure(pack, expand, t, &made->pack, &made->expand);
    }
    if (status == HAL_OK) {
        made->pack = (uint64_t)((double)made->pack * t->share);
        made->expand = (uint64_t)((double)made->expand * t->share);
    }
    trial_destroy(t);
    return status;
}

/* ---- One call of each kind ---- */

static hal_status device_call(trial *t)
{
    halyard_blas_written(t->memory, 3 * t->bytes); /* no operand stays */
    return blas_product_compute(t->lane, &t->call);
}

static bool has_side(blas_kind kind)
{
    return kind == BLAS_SYMM || kind == BLAS_HEMM || kind >= BLAS_TRMM;
}

bool blas_measure_call(blas_kind kind, blas_type type, void *memory, blas_call *call)
{
    static const double double_one[2] = {1, 0};
    static const float single_one[2] = {1, 0};
    const bool is_double = blas_type_real_bytes(type) == sizeof(double);
    const int64_t n = CALL_ORDER;
    int routine = 0;
    while (routine < BLAS_ROUTINE_COUNT &&
           (blas_routines[routine].kind != kind || blas_routines[routine].type != type)) {
        routine++;
    }
    char *bytes = memory;
    *call = (blas_call){.routine = (blas_routine)routine,
                        .side = has_side(kind) ? 'L' : 0,
                        .uplo = 'L',
                        .transa = 'N',
                        .transb = 'N',
                        .diag = 'U', /* systems of zeros have a solution */
                        .m = n,
                        .n = n,
                        .k = n,
                        .lda = n,
                        .ldb = n,
                        .ldc = n,
                        .batch = 1,
                        .alpha = is_double ? (const void *)double_one : single_one,
                        .beta = kind >= BLAS_TRMM ? NULL
                                : is_double       ? (const void *)double_one
                                                  : single_one,
                        .a = bytes,
                        .b = bytes + BLAS_CALL_BYTES,
                        .c = bytes + 2 * BLAS_CALL_BYTES};
    return routine < BLAS_ROUTINE_COUNT;
}

/* Those of one type. What fails has no time. */
static hal_status measure_calls(trial *t, blas_type type, blas_measurements *made)
{
    const bool is_double = blas_type_real_bytes(type) == sizeof(double);
    const uint64_t device = made->device[is_double][HOPELESS_POINT];
    const uint64_t host = made->host[is_double][HOPELESS_POINT];
    if (device == 0 || device > HOPELESS * host) {
        return HAL_OK;
    }
    HAL_TRY(trial_create(t, HAL_TYPE_F32, 512)); /* of BLAS_CALL_BYTES */
    t->seconds = CALL_SECONDS;
    for (int kind = 0; kind < BLAS_KINDS; kind++) {
        uint64_t *on_device = &made->device_calls[kind][type],
                 *on_host = &made->host_calls[kind][type];
        if (!blas_measure_call((blas_kind)kind, type, t->memory, &t->call) ||
            !blas_host_has(&t->call) ||
            measure(device_call, host_product, t, on_device, on_host) != HAL_OK) {
            *on_device = *on_host = 0;
        }
    }
    t->seconds = TURNS_SECONDS;
    trial_destroy(t);
    return HAL_OK;
}

/* A device without f64 has no times of it. */
hal_status blas_measure_all(blas_measurements *made)
{
    trial t = {.seconds = TURNS_SECONDS, .share = 1};
    HAL_TRY(blas_lane_acquire(&t.lane));
    const hal_device_info *info = hal_device_get_info(ops_context_get_device(t.lane->context));
    t.clock = CLOCK_MONOTONIC;
    *made = (blas_measurements){0};
    hal_status status = info->kind == HAL_DEVICE_CPU ? clock_choose(&t) : HAL_OK;
    if (status == HAL_OK) {
        status = measure_transfers(&t, made);
    }
    if (status == HAL_OK) {
        status = measure_curves(&t, false, made);
    }
    if (status == HAL_OK && measure_curves(&t, true, made) != HAL_OK) {
        made->device[1][0] = 0;
    }
    for (int type = 0; type < BLAS_STANDARD_TYPES && status == HAL_OK; type++) {
        status = measure_calls(&t, (blas_type)type, made);
    }
    blas_lane_release(t.lane, status != HAL_OK);
    return status;
}
