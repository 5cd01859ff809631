/* points.c: places on the timelines of queues: order, waits, limits of time, several queues. */
#include <hal/buffer.h>
#include <hal/queue.h>
#include <pthread.h>
#include <time.h>

#include "case/cases.h"
#include "hal/fixture.h"

static void values_rise(case_run *run, const void *parameters)
{
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, 100, 1, 1);
    hal_buffer *y = words_create(run, run->queue, 100, 0, 0);
    hal_point points[20] = {{0}};
    for (int i = 0; i < 20; i++) {
        scale_dispatch(run, run->queue, kernel, x, y, 100, 1, (uint32_t)i);
        case_ok(run, hal_queue_flush(run->queue, &points[i]), "flush");
        case_check(run, points[i].queue == run->queue, "a point of another queue");
        case_check(run, i == 0 || points[i].value > points[i - 1].value,
                   "point %d has value %llu, not above the last", i,
                   (unsigned long long)points[i].value);
    }
    case_ok(run, hal_point_wait(points[19], HAL_WAIT_FOREVER), "a wait for the last");
    for (int i = 0; i < 20; i++) {
        case_ok(run, hal_point_wait(points[i], 0), "a look at an earlier point");
    }
    words_check(run, run->queue, y, 100, 20, 1, "the last result");
}

static void empty_flush(case_run *run, const void *parameters)
{
    hal_point one = {0}, two = {0};
    hal_buffer *x = words_create(run, run->queue, 10, 1, 1);
    case_ok(run, hal_queue_fill(run->queue, range_of(x), 1), "fill");
    case_ok(run, hal_queue_flush(run->queue, &one), "flush");
    case_ok(run, hal_queue_flush(run->queue, &two), "flush of nothing");
    case_check(run, one.value == two.value && one.queue == two.queue,
               "a flush of nothing gave another point: %llu after %llu",
               (unsigned long long)two.value, (unsigned long long)one.value);
    case_ok(run, hal_queue_flush(run->queue, NULL), "flush without a point");
}

static void zero_point(case_run *run, const void *parameters)
{
    const hal_point zero = {NULL, 0};
    case_ok(run, hal_point_wait(zero, 0), "a look at the zero point");
    case_ok(run, hal_queue_wait_point(run->queue, zero), "waiting for the zero point");
    hal_queue *fresh = case_queue(run, run->device);
    hal_point first = {0};
    case_ok(run, hal_queue_flush(fresh, &first), "flush of a fresh queue");
    case_ok(run, hal_point_wait(first, 0), "its point");
}

/* A value that the queue has not reached, nor recorded. */
static void future_point(case_run *run, const void *parameters)
{
    hal_point point = {0};
    case_ok(run, hal_queue_flush(run->queue, &point), "flush");
    point.queue = run->queue;
    point.value += 1000;
    case_expect(run, hal_point_wait(point, 1000000), HAL_ERROR_INVALID_ARGUMENT, NULL,
                "a wait for a point that was never given");
    case_expect(run, hal_queue_wait_point(case_queue(run, run->device), point),
                HAL_ERROR_INVALID_ARGUMENT, NULL,
                "a queue's wait for a point that was never given");
}

/* The second queue reads what the first one writes, at a point; a long one first. */
static void across_queues(case_run *run, const void *parameters)
{
    enum { COUNT = 200000 };
    hal_point point = {0};
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, COUNT, 1, 1);
    hal_buffer *y = words_create(run, run->queue, COUNT, 0, 0);
    hal_buffer *z = words_create(run, run->queue, COUNT, 0, 0);
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    hal_queue *other = case_queue(run, run->device);
    scale_dispatch(run, run->queue, kernel, x, y, COUNT, 3, 2);
    case_ok(run, hal_queue_flush(run->queue, &point), "flush");
    case_ok(run, hal_queue_wait_point(other, point), "hal_queue_wait_point");
    scale_dispatch(run, other, kernel, y, z, COUNT, 5, 1);
    words_check(run, other, z, COUNT, 26, 15, "what the second queue made");
}

/* A batch waits for the points of several queues, of which any may be the last one that is given
 * or reached: each of them has the most work in one turn. */
static void several_queues(case_run *run, const void *parameters)
{
    enum { QUEUES = 3, COUNT = 10000, MOST = 8 };
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, COUNT, 1, 1), *made[QUEUES], *seen[QUEUES];
    hal_queue *queues[QUEUES];
    for (uint32_t i = 0; i < QUEUES; i++) {
        queues[i] = case_queue(run, run->device);
        made[i] = words_create(run, run->queue, COUNT, 0, 0);
        seen[i] = words_create(run, run->queue, COUNT, 0, 0);
    }
    hal_queue *last = case_queue(run, run->device);
    for (uint32_t turn = 0; turn < QUEUES; turn++) {
        hal_point points[QUEUES];
        case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
        for (uint32_t i = 0; i < QUEUES; i++) {
            const uint32_t times = i == turn ? MOST : MOST / 2;
            for (uint32_t k = 1; k <= times; k++) {
                scale_dispatch(run, queues[i], kernel, x, made[i], COUNT, i + 2, turn + k - times);
                case_ok(run, hal_queue_flush(queues[i], &points[i]), "flush");
            }
        }
        for (uint32_t i = 0; i < QUEUES; i++) {
            case_ok(run, hal_queue_wait_point(last, points[i]), "hal_queue_wait_point");
        }
        for (uint32_t i = 0; i < QUEUES; i++) {
            scale_dispatch(run, last, kernel, made[i], seen[i], COUNT, 1, i);
        }
        case_ok(run, hal_queue_wait(last, HAL_WAIT_FOREVER), "hal_queue_wait");
        for (uint32_t i = 0; i < QUEUES; i++) {
            words_check(run, last, seen[i], COUNT, (i + 2) + turn + i, i + 2,
                        "what one of the queues made");
        }
    }
}

typedef struct wait_count {
    uint32_t queues, words; /* words of each dispatch */
    uint32_t more;          /* dispatches of three queues that each third one has more */
} wait_count;

/* A batch that waits for many queues, each of which has work, after that of one more. */
static void many_waits(case_run *run, const void *parameters)
{
    enum { TIMES = 4, LONG = 40 };
    const wait_count *tested = parameters;
    const uint32_t queue_count = tested->queues, count = tested->words;
    hal_queue *first = case_queue(run, run->device);
    hal_point begun = {0};
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, count, 1, 1);
    hal_buffer **made = case_allocate(run, queue_count, sizeof(hal_buffer *));
    hal_buffer **seen = case_allocate(run, queue_count, sizeof(hal_buffer *));
    hal_queue **queues = case_allocate(run, queue_count, sizeof(hal_queue *));
    for (uint32_t i = 0; i < queue_count; i++) {
        queues[i] = case_queue(run, run->device);
        made[i] = words_create(run, run->queue, count, 0, 0);
        seen[i] = words_create(run, run->queue, count, 0, 0);
    }
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    for (uint32_t k = 0; k < LONG; k++) {
        scale_dispatch(run, first, kernel, x, made[0], count, k, k);
    }
    case_ok(run, hal_queue_flush(first, &begun), "flush");
    for (uint32_t i = 0; i < queue_count; i++) {
        hal_point point = {0};
        case_ok(run, hal_queue_wait_point(queues[i], begun), "hal_queue_wait_point");
        const uint32_t times = TIMES + tested->more * i / 3; /* the last ones end last */
        for (uint32_t k = 0; k < times; k++) {
            scale_dispatch(run, queues[i], kernel, x, made[i], count, i + 2, i + times - 1 - k);
        }
        case_ok(run, hal_queue_flush(queues[i], &point), "flush");
        case_ok(run, hal_queue_wait_point(run->queue, point), "hal_queue_wait_point");
    }
    for (uint32_t i = queue_count; i-- > 0;) { /* and are read first */
        scale_dispatch(run, run->queue, kernel, made[i], seen[i], count, 1, i);
    }
    for (uint32_t i = 0; i < queue_count; i++) {
        words_check(run, run->queue, seen[i], count, (i + 2) + 2 * i, i + 2,
                    "what one of many queues made");
    }
}

/* Batches of two queues, each of which waits for the one before it on the other queue; the host
 * waits for the last. A plugin that follows waits by calling itself has a call for each. */
static void chain_of_waits(case_run *run, const void *parameters)
{
    enum { BATCHES = 4000 };
    hal_buffer *words = words_create(run, run->queue, 64, 0, 0);
    hal_point point = {0};
    case_ok(run, hal_queue_flush(run->queue, &point), "flush");
    hal_queue *const queues[2] = {case_queue(run, run->device), case_queue(run, run->device)};
    for (uint32_t i = 1; i <= BATCHES; i++) {
        hal_queue *queue = queues[i % 2];
        case_ok(run, hal_queue_wait_point(queue, point), "hal_queue_wait_point");
        for (uint32_t k = 0; k < 4; k++) {
            case_ok(run, hal_queue_fill(queue, (hal_range){words, 4 * (i % 64), 4}, i + k % 3),
                    "fill");
        }
        case_ok(run, hal_queue_flush(queue, &point), "flush");
    }
    case_ok(run, hal_point_wait(point, HAL_WAIT_FOREVER), "the last point");
    uint32_t found[64];
    case_ok(run, hal_queue_read(run->queue, words, 0, sizeof found, found), "hal_queue_read");
    for (uint32_t i = 0; i < 64; i++) {
        const uint32_t expected = BATCHES - (BATCHES - i) % 64;
        case_check(run, found[i] == expected, "word %u is %u instead of %u", i, found[i], expected);
    }
}

static void ping_pong(case_run *run, const void *parameters)
{
    enum { COUNT = 1000, TURNS = 50 };
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *buffers[2] = {words_create(run, run->queue, COUNT, 1, 1),
                              words_create(run, run->queue, COUNT, 0, 0)};
    hal_point point = {0};
    uint32_t start = 1, step = 1;
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    hal_queue *const queues[2] = {run->queue, case_queue(run, run->device)};
    for (int i = 0; i < TURNS; i++) {
        hal_queue *queue = queues[i % 2];
        case_ok(run, hal_queue_wait_point(queue, point), "hal_queue_wait_point");
        scale_dispatch(run, queue, kernel, buffers[i % 2], buffers[(i + 1) % 2], COUNT, 3, 7);
        case_ok(run, hal_queue_flush(queue, &point), "flush");
        start = start * 3 + 7;
        step *= 3;
    }
    case_ok(run, hal_point_wait(point, HAL_WAIT_FOREVER), "the last point");
    words_check(run, run->queue, buffers[TURNS % 2], COUNT, start, step, "the last buffer");
}

static void same_queue(case_run *run, const void *parameters)
{
    hal_point point = {0};
    hal_buffer *x = words_create(run, run->queue, 100, 1, 1);
    case_ok(run, hal_queue_flush(run->queue, &point), "flush");
    case_ok(run, hal_queue_wait_point(run->queue, point), "a queue's wait for itself");
    case_ok(run, hal_queue_fill(run->queue, range_of(x), 6), "fill");
    words_check(run, run->queue, x, 100, 6, 0, "what was recorded after the wait");
}

/* A wait with a limit may end either way, but when it says that the point is reached the data are
 * there, without any further wait. */
static void time_limit(case_run *run, const void *parameters)
{
    enum { COUNT = 200000, TURNS = 12 };
    static const uint64_t limits[] = {0, 1, 20000};
    hal_point point = {0};
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, COUNT, 1, 1);
    hal_buffer *out = case_buffer(run, run->device, HAL_MEMORY_DOWNLOAD, 4 * COUNT);
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        void *pointer = NULL;
        scale_dispatch(run, run->queue, kernel, x, out, COUNT, 3, turn);
        case_ok(run, hal_queue_flush(run->queue, &point), "flush");
        const hal_status status = hal_point_wait(point, limits[turn % 3]);
        if (status == HAL_ERROR_TIMEOUT) {
            case_ok(run, hal_point_wait(point, HAL_WAIT_FOREVER), "a wait without limit");
        } else {
            case_ok(run, status, "a wait with a limit");
        }
        case_ok(run, hal_buffer_map_begin(out, &pointer), "map_begin");
        for (uint32_t i = 0; i < COUNT; i++) {
            const uint32_t word = ((const uint32_t *)pointer)[i], expected = 3 * (i + 1) + turn;
            case_check(run, word == expected,
                       "after a wait of %llu ns that was %s word %u is %u instead of %u",
                       (unsigned long long)limits[turn % 3],
                       status == HAL_OK ? "enough" : "not enough", i, word, expected);
        }
        case_ok(run, hal_buffer_map_end(out), "map_end");
    }
}

/* A queue whose points need more than 16 bits. */
static void many_values(case_run *run, const void *parameters)
{
    enum { BATCHES = 66000 };
    hal_buffer *words = words_create(run, run->queue, 64, 0, 0);
    hal_point point = {0}, before = {0};
    for (uint32_t i = 1; i <= BATCHES; i++) {
        before = point;
        case_ok(run, hal_queue_fill(run->queue, (hal_range){words, 4 * (i % 64), 4}, i), "fill");
        case_ok(run, hal_queue_flush(run->queue, &point), "flush");
        if (i % 512 == 0) {
            case_ok(run, hal_point_wait(before, HAL_WAIT_FOREVER), "hal_point_wait");
        }
    }
    case_ok(run, hal_point_wait(point, HAL_WAIT_FOREVER), "hal_point_wait");
    uint32_t found[64];
    case_ok(run, hal_queue_read(run->queue, words, 0, sizeof found, found), "hal_queue_read");
    for (uint32_t i = 0; i < 64; i++) {
        const uint32_t expected = BATCHES - (BATCHES - i) % 64;
        case_check(run, found[i] == expected, "word %u is %u instead of %u", i, found[i], expected);
    }
}

/* Each of forty queues adds to the words of the one before it. */
static void many_queues(case_run *run, const void *parameters)
{
    enum { QUEUES = 40, COUNT = 1000 };
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *words = words_create(run, run->queue, COUNT, 0, 1);
    hal_queue *last = run->queue;
    for (uint32_t i = 0; i < QUEUES; i++) {
        hal_queue *queue = case_queue(run, run->device);
        hal_buffer *next = words_create(run, queue, COUNT, 0, 0);
        hal_point point = {0};
        case_ok(run, hal_queue_flush(last, &point), "flush");
        case_ok(run, hal_queue_wait_point(queue, point), "hal_queue_wait_point");
        scale_dispatch(run, queue, kernel, words, next, COUNT, 1, i);
        words = next;
        last = queue;
    }
    words_check(run, last, words, COUNT, QUEUES * (QUEUES - 1) / 2, 1, "the result");
}

/* 260 queues at once, and one that waits for all of them. */
static void queues_at_once(case_run *run, const void *parameters)
{
    enum { QUEUES = 260 };
    if (case_has_compiler(run)) {
        case_unsupported(run, "a driver may have fewer queues");
    }
    hal_queue *queues[QUEUES];
    hal_point point = {0};
    hal_buffer *words = words_create(run, run->queue, QUEUES, 0, 0);
    hal_buffer *seen = words_create(run, run->queue, QUEUES, 0, 0);
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    for (uint32_t i = 0; i < QUEUES; i++) {
        queues[i] = case_queue(run, run->device);
        case_ok(run, hal_queue_fill(queues[i], (hal_range){words, 4ull * i, 4}, i + 1), "fill");
    }
    for (uint32_t i = 0; i < QUEUES; i++) {
        case_ok(run, hal_queue_flush(queues[i], &point), "flush");
        case_ok(run, hal_queue_wait_point(run->queue, point), "hal_queue_wait_point");
    }
    case_ok(run, hal_queue_copy(run->queue, range_of(words), range_of(seen)), "copy");
    words_check(run, run->queue, seen, QUEUES, 1, 1, "what each queue has written");
}

static void elapsed(case_run *run, const void *parameters)
{
    enum { COUNT = 1000000 };
    hal_point first = {0}, second = {0};
    uint64_t nanoseconds = UINT64_MAX, reversed;
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, COUNT, 1, 1);
    hal_buffer *y = words_create(run, run->queue, COUNT, 0, 0);
    case_claim(run, (run->info->features & HAL_FEATURE_TIMESTAMPS) != 0, "time stamps");
    /* The write may have used mapped memory, so time is measured from a batch. */
    case_ok(run, hal_queue_fill(run->queue, range_of(y), 0), "fill");
    case_ok(run, hal_queue_flush(run->queue, &first), "flush");
    scale_dispatch(run, run->queue, kernel, x, y, COUNT, 3, 2);
    case_ok(run, hal_queue_flush(run->queue, &second), "flush");
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    case_ok(run, hal_point_get_elapsed(first, second, &nanoseconds), "hal_point_get_elapsed");
    case_check(run, nanoseconds > 1000 && nanoseconds < UINT64_C(60000000000),
               "a million elements took %llu ns", (unsigned long long)nanoseconds);
    case_expect(run, hal_point_get_elapsed(second, first, &reversed), HAL_ERROR_INVALID_ARGUMENT,
                NULL, "time that runs backwards");
}

/* Nanoseconds of the host. */
static uint64_t host_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* One batch that keeps the device busy for some milliseconds, and how long it takes. */
typedef struct long_work {
    hal_kernel *kernel;
    hal_buffer *x, *y;
    uint32_t words, dispatches;
    uint64_t nanoseconds;
} long_work;

#define LOOK_NS UINT64_C(5000000000)              /* after which a case looks no further */
enum { LONG_LEAST = 20000, LONG_MOST = 1280000 }; /* words of a dispatch */

static hal_point long_work_flush(case_run *run, const long_work *work)
{
    hal_point point = {0};
    for (uint32_t i = 0; i < work->dispatches; i++) {
        scale_dispatch(run, run->queue, work->kernel, work->x, work->y, work->words, 3, i);
    }
    case_ok(run, hal_queue_flush(run->queue, &point), "flush");
    return point;
}

/* The shortest time of five, as the system may stop the process meanwhile; the first one that is
 * below `enough`. */
static uint64_t long_work_measure(case_run *run, const long_work *work, uint64_t enough)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 5 && least >= enough; i++) {
        const uint64_t begin = host_time();
        case_ok(run, hal_point_wait(long_work_flush(run, work), HAL_WAIT_FOREVER), "a wait");
        const uint64_t took = host_time() - begin;
        least = took < least ? took : least;
    }
    return least;
}

static void release_batch(void *queue)
{
    hal_queue_set_batch(queue, 0, 0);
}

/* Long work takes 20 ms at least; less where the system lets the process run so seldom that this
 * cannot be found out in some seconds. */
static long_work long_work_create(case_run *run)
{
    enum { MOST = HAL_QUEUE_BATCH_COMMANDS - 1 };
    const uint64_t enough = 20000000;
    long_work made = {.kernel = scale_kernel(run, run->device), .dispatches = 4};
    const uint64_t end = host_time() + LOOK_NS;
    made.words = LONG_LEAST;
    made.x = words_create(run, run->queue, LONG_MOST, 1, 1);
    made.y = words_create(run, run->queue, LONG_MOST, 0, 0);
    case_ok(run, hal_queue_set_batch(run->queue, MOST, MOST), "hal_queue_set_batch");
    case_own(run, release_batch, run->queue);
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    for (;;) {
        made.nanoseconds = long_work_measure(run, &made, enough);
        if (made.nanoseconds >= enough || made.dispatches == MOST || host_time() > end) {
            return made;
        }
        if (made.words < LONG_MOST) {
            made.words *= made.nanoseconds < enough / 8 ? 8 : 2;
            made.words = made.words < LONG_MOST ? made.words : LONG_MOST;
        } else {
            made.dispatches *= made.nanoseconds < enough / 8 ? 8 : 2;
            made.dispatches = made.dispatches < MOST ? made.dispatches : MOST;
        }
    }
}

/* Waits for long work, which the limit cuts short: sees that a wait ends before the work does. A
 * wait that finds the work done shows nothing if it was short, as the system may stop the process
 * before it, and if it was long, as the system may do so meanwhile. But not most waits are long. */
static void long_work_cut(case_run *run, const long_work *work, uint64_t limit)
{
    enum { ATTEMPTS = 12, LONG = 8 };
    const uint64_t end = host_time() + LOOK_NS;
    uint64_t longest = 0;
    for (int i = 0, is_long = 0; i < ATTEMPTS && host_time() < end; i++) {
        const hal_point point = long_work_flush(run, work);
        const uint64_t begin = host_time();
        const hal_status status = hal_point_wait(point, limit);
        const uint64_t took = host_time() - begin;
        if (status != HAL_ERROR_TIMEOUT) {
            case_ok(run, status, "a wait");
        }
        case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
        if (status == HAL_ERROR_TIMEOUT && took < work->nanoseconds / 2) {
            return;
        }
        is_long +=
            took >= (status == HAL_OK ? 2 * limit + work->nanoseconds / 64 : work->nanoseconds / 2);
        longest = took > longest ? took : longest;
        case_check(run, is_long < LONG,
                   "waits of at most %llu us took up to %llu us of work of %llu us",
                   (unsigned long long)limit / 1000, (unsigned long long)longest / 1000,
                   (unsigned long long)work->nanoseconds / 1000);
    }
}

/* A look at a point does not wait for it. */
static void look_only(case_run *run, const void *parameters)
{
    const long_work work = long_work_create(run);
    long_work_cut(run, &work, 0);
}

/* A wait ends by its limit, not much later and not before. */
static void limit_kept(case_run *run, const void *parameters)
{
    const uint64_t far = 2000000000;
    const long_work work = long_work_create(run);
    const uint64_t begin = host_time();
    const hal_status patient = hal_point_wait(long_work_flush(run, &work), far);
    const uint64_t took = host_time() - begin;
    case_check(run, patient != HAL_ERROR_TIMEOUT || took >= far - far / 10,
               "a wait of at most two seconds said TIMEOUT after %llu us",
               (unsigned long long)took / 1000);
    long_work_cut(run, &work, 100000);
}

typedef struct patience {
    uint32_t milliseconds; /* of work */
    uint64_t limit;        /* nanoseconds, far beyond the work */
} patience;

static void *wait_for_point(void *argument)
{
    const hal_point *point = argument;
    return hal_point_wait(*point, HAL_WAIT_FOREVER) == HAL_OK ? argument : NULL;
}

/* Work in a row, and when it began. */
typedef struct long_row {
    uint64_t begin, each; /* nanoseconds; of one piece, as far as known */
    hal_point first, last;
} long_row;

/* Submits about so much work; no more than is made in that time, where submissions wait. */
static void row_submit(case_run *run, const long_work *work, uint64_t nanoseconds, long_row *row)
{
    row->begin = host_time();
    row->first = row->last = long_work_flush(run, work);
    for (uint64_t made = 0; made < nanoseconds && host_time() - row->begin < nanoseconds;
         made += row->each) {
        row->last = long_work_flush(run, work);
    }
}

/* A wait for all of a row, next to one without a limit on another thread. False: the machine is so
 * busy that the limit was reached. `waited`: nanoseconds. */
static bool row_wait(case_run *run, const patience *tested, long_row *row, uint64_t *waited)
{
    static hal_point last; /* the thread may outlive this function after a report */
    pthread_t thread;
    void *answer = NULL;
    last = row->last;
    const uint64_t begin = host_time();
    case_check(run, pthread_create(&thread, NULL, wait_for_point, &last) == 0,
               "no thread could be made");
    const hal_status status = hal_point_wait(last, tested->limit);
    const uint64_t end = host_time();
    pthread_join(thread, &answer);
    *waited = end - begin;
    case_check(run, answer == (void *)&last, "a wait without limit on another thread failed");
    if (status == HAL_ERROR_TIMEOUT && end - row->begin >= tested->limit) {
        return false;
    }
    case_check(run, status != HAL_ERROR_TIMEOUT,
               "a wait of at most %llu s said TIMEOUT %llu ms after its work began",
               (unsigned long long)(tested->limit / 1000000000),
               (unsigned long long)(end - row->begin) / 1000000);
    case_ok(run, status, "a wait");
    case_ok(run, hal_point_wait(last, 0), "a look after the wait");
    return true;
}

/* The device's time of a row is at least so long. */
static void row_expect_time(case_run *run, const long_row *row, uint64_t least, uint64_t host_ns)
{
    uint64_t device_ns = 0;
    case_ok(run, hal_point_get_elapsed(row->first, row->last, &device_ns), "hal_point_get_elapsed");
    case_check(run, device_ns >= least,
               "work that takes %llu ms took the device %llu ms, as it says",
               (unsigned long long)host_ns / 1000000, (unsigned long long)device_ns / 1000000);
}

/* A wait with a limit far beyond the work does not end before the work does, nor does one without
 * limit on another thread; the device's time of the work is as long. Work that was measured on a
 * busy machine may take less: then there is more of it. */
static void long_wait(case_run *run, const void *parameters)
{
    enum { MEASURED = 10, TRIES = 4 };
    const patience *tested = parameters;
    const uint64_t asked = tested->milliseconds * UINT64_C(1000000);
    const bool has_times = (run->info->features & HAL_FEATURE_TIMESTAMPS) != 0;
    const long_work work = long_work_create(run);
    long_row row;
    uint64_t waited = 0;
    row.begin = host_time();
    for (int i = 0; i < MEASURED; i++) { /* many in a row take less each than one alone */
        row.last = long_work_flush(run, &work);
    }
    case_ok(run, hal_point_wait(row.last, HAL_WAIT_FOREVER), "a wait");
    row.each = (host_time() - row.begin) / MEASURED;
    for (int i = 0; i < TRIES && waited < asked / 16 * 15; i++) {
        row_submit(run, &work, asked, &row);
        const uint64_t submitted = host_time() - row.begin;
        if (!row_wait(run, tested, &row, &waited)) {
            return;
        }
        if (submitted >= asked) {
            break; /* the device works while it is given work */
        }
        row.each = row.each * (waited + asked / 16) / (asked + asked / 8) + 1;
    }
    if (has_times) {
        row_expect_time(run, &row, waited / 2, waited);
    }
    while (host_time() - row.begin < asked) { /* it took less than it did before */
        row.last = long_work_flush(run, &work);
        case_ok(run, hal_point_wait(row.last, HAL_WAIT_FOREVER), "a wait");
    }
    if (has_times) {
        row_expect_time(run, &row, asked / 4, asked);
    }
}

/* A thread that only waits sees what was computed, without a wait on the thread that submitted. */
static void wait_elsewhere(case_run *run, const void *parameters)
{
    static hal_point point; /* the thread may outlive this function after a report */
    const long_work work = long_work_create(run);
    hal_buffer *out = case_buffer(run, run->device, HAL_MEMORY_DOWNLOAD, 4 * LONG_LEAST);
    for (uint32_t turn = 0; turn < 2; turn++) {
        pthread_t thread;
        void *answer = NULL, *pointer = NULL;
        long_work_flush(run, &work);
        scale_dispatch(run, run->queue, work.kernel, work.x, out, LONG_LEAST, 3, turn);
        case_ok(run, hal_queue_flush(run->queue, &point), "flush");
        case_check(run, pthread_create(&thread, NULL, wait_for_point, &point) == 0,
                   "no thread could be made");
        pthread_join(thread, &answer);
        case_check(run, answer == (void *)&point, "the wait on another thread failed");
        case_ok(run, hal_buffer_map_begin(out, &pointer), "map_begin");
        for (uint32_t i = 0; i < LONG_LEAST; i++) {
            const uint32_t word = ((const uint32_t *)pointer)[i], expected = 3 * (i + 1) + turn;
            case_check(run, word == expected,
                       "after a wait on another thread word %u is %u instead of %u", i, word,
                       expected);
        }
        case_ok(run, hal_buffer_map_end(out), "map_end");
    }
}

/* Device time of long work is about the host's: the shortest of three. */
static void elapsed_unit(case_run *run, const void *parameters)
{
    hal_point first = {0};
    uint64_t least = UINT64_MAX;
    case_claim(run, (run->info->features & HAL_FEATURE_TIMESTAMPS) != 0, "time stamps");
    const long_work work = long_work_create(run);
    for (int i = 0; i < 3; i++) {
        uint64_t nanoseconds = 0;
        case_ok(run, hal_queue_fill(run->queue, range_of(work.y), 0), "fill");
        case_ok(run, hal_queue_flush(run->queue, &first), "flush");
        case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
        const hal_point last = long_work_flush(run, &work);
        case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
        case_ok(run, hal_point_get_elapsed(first, last, &nanoseconds), "hal_point_get_elapsed");
        least = nanoseconds < least ? nanoseconds : least;
    }
    case_check(run, least > work.nanoseconds / 20,
               "work that takes the host %llu ns took the device %llu ns",
               (unsigned long long)work.nanoseconds, (unsigned long long)least);
}

/* Partial times add up to the whole, which is at most the host's time. */
static void elapsed_sum(case_run *run, const void *parameters)
{
    enum { COUNT = 100000, POINTS = 4 };
    hal_point points[POINTS] = {{0}};
    uint64_t part = 0, whole = 0, sum = 0, none = 1;
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, COUNT, 1, 1);
    hal_buffer *y = words_create(run, run->queue, COUNT, 0, 0);
    case_claim(run, (run->info->features & HAL_FEATURE_TIMESTAMPS) != 0, "time stamps");
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    const uint64_t begin = host_time();
    for (int i = 0; i < POINTS; i++) {
        scale_dispatch(run, run->queue, kernel, x, y, COUNT, 3, 2);
        case_ok(run, hal_queue_flush(run->queue, &points[i]), "flush");
    }
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    const uint64_t host = host_time() - begin;
    for (int i = 0; i + 1 < POINTS; i++) {
        case_ok(run, hal_point_get_elapsed(points[i], points[i + 1], &part), "a part");
        sum += part;
    }
    case_ok(run, hal_point_get_elapsed(points[0], points[POINTS - 1], &whole), "all");
    case_ok(run, hal_point_get_elapsed(points[1], points[1], &none), "a point and itself");
    const uint64_t difference = whole > sum ? whole - sum : sum - whole;
    case_check(run, difference <= 1000 + whole / 100, "%llu ns in parts are %llu in all",
               (unsigned long long)sum, (unsigned long long)whole);
    case_check(run, whole <= host + host / 20 + 1000000, "%llu ns of the host's %llu",
               (unsigned long long)whole, (unsigned long long)host);
    case_check(run, none == 0, "%llu ns between a point and itself", (unsigned long long)none);
}

/* The times of 1024 batches are kept. In one of several turns the system may stop the process for
 * so long that what is lost is little of the whole. */
static void elapsed_far(case_run *run, const void *parameters)
{
    enum { POINTS = 1024, TURNS = 4 };
    hal_point points[POINTS] = {{0}};
    uint64_t parts[2] = {0}, whole = 0;
    hal_buffer *x = case_buffer(run, run->device, HAL_MEMORY_DEVICE, 256);
    case_claim(run, (run->info->features & HAL_FEATURE_TIMESTAMPS) != 0, "time stamps");
    for (int turn = 0; turn < TURNS; turn++) {
        for (uint32_t i = 0; i < POINTS; i++) {
            case_ok(run, hal_queue_fill(run->queue, range_of(x), i), "fill");
            case_ok(run, hal_queue_flush(run->queue, &points[i]), "flush");
        }
        case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
        const hal_point first = points[0], middle = points[POINTS / 2], last = points[POINTS - 1];
        case_ok(run, hal_point_get_elapsed(first, last, &whole), "of all batches");
        case_ok(run, hal_point_get_elapsed(first, middle, &parts[0]), "of the first half");
        case_ok(run, hal_point_get_elapsed(middle, last, &parts[1]), "of the second half");
        const uint64_t sum = parts[0] + parts[1];
        case_check(run, (whole > sum ? whole - sum : sum - whole) <= 1000 + whole / 100,
                   "of 1024 batches the halves took %llu and %llu ns, all of them %llu ns",
                   (unsigned long long)parts[0], (unsigned long long)parts[1],
                   (unsigned long long)whole);
    }
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Times of short batches have steps of 10 us at most: not all are multiples of more. */
static void elapsed_steps(case_run *run, const void *parameters)
{
    enum { POINTS = 64, COUNT = 500, MOST_NS = 10000 };
    hal_point points[POINTS] = {{0}};
    uint64_t divisor = 0, all = 0;
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, COUNT * POINTS, 1, 1);
    hal_buffer *y = words_create(run, run->queue, COUNT * POINTS, 0, 0);
    case_claim(run, (run->info->features & HAL_FEATURE_TIMESTAMPS) != 0, "time stamps");
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    for (uint32_t i = 0; i < POINTS; i++) {
        scale_dispatch(run, run->queue, kernel, x, y, COUNT * (i + 1), 3, i);
        case_ok(run, hal_queue_flush(run->queue, &points[i]), "flush");
    }
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    for (uint32_t i = 1; i < POINTS; i++) {
        uint64_t nanoseconds = 0;
        case_ok(run, hal_point_get_elapsed(points[i - 1], points[i], &nanoseconds), "a time");
        divisor = common_divisor(divisor, nanoseconds);
        all += nanoseconds;
    }
    case_check(run, divisor != 0 && divisor <= MOST_NS,
               "the times of %d batches, %llu ns together, are all multiples of %llu ns",
               POINTS - 1, (unsigned long long)all, (unsigned long long)divisor);
}

void cases_hal_points(case_list *list)
{
    static const wait_count counts[] = {{20, 20000, 9}, {70, 4000, 1}};
    case_add(list, values_rise, NULL, 0, "points/rising");
    case_add(list, empty_flush, NULL, 0, "points/flush_of_nothing");
    case_add(list, zero_point, NULL, 0, "points/zero_is_reached");
    case_add(list, future_point, NULL, 0, "points/never_given");
    case_add(list, across_queues, NULL, 0, "points/across_queues");
    case_add(list, several_queues, NULL, 0, "points/several_queues");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        case_add(list, many_waits, &counts[i], sizeof counts[i], "points/waits(queues=%u)",
                 counts[i].queues);
    }
    case_add(list, chain_of_waits, NULL, 0, "points/chain_of_waits");
    case_add(list, many_values, NULL, 0, "points/more_than_65536");
    case_add(list, many_queues, NULL, 0, "points/forty_queues");
    case_add(list, queues_at_once, NULL, 0, "points/queues_at_once");
    case_add(list, ping_pong, NULL, 0, "points/ping_pong");
    case_add(list, same_queue, NULL, 0, "points/of_the_same_queue");
    case_add(list, time_limit, NULL, 0, "points/time_limit");
    case_add(list, look_only, NULL, 0, "points/look_does_not_wait");
    case_add(list, limit_kept, NULL, 0, "points/limit_is_kept");
    case_add(list, wait_elsewhere, NULL, 0, "points/wait_on_another_thread");
    case_add(list, elapsed, NULL, 0, "points/elapsed");
    case_add(list, elapsed_unit, NULL, 0, "points/elapsed_in_nanoseconds");
    case_add(list, elapsed_sum, NULL, 0, "points/elapsed_adds_up");
    case_add(list, elapsed_far, NULL, 0, "points/elapsed_of_1024");
    case_add(list, elapsed_steps, NULL, 0, "points/elapsed_steps");
}

void cases_hal_patience(case_list *list)
{
    static const patience waits[] = {
        {300, UINT64_C(20000000000)}, {4800, UINT64_C(20000000000)}, {9000, HAL_WAIT_FOREVER}};
    for (int i = 0; i < 3; i++) {
        list->level = i == 2 ? CASE_LEVEL_STRESS : CASE_LEVEL_CORE;
        case_add(list, long_wait, &waits[i], sizeof waits[i], "points/long_wait(ms=%u)",
                 waits[i].milliseconds);
    }
}
