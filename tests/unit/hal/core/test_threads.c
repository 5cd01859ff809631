/* Several threads at once on devices, kernels, buffers and queues of their own; meant for the
 * thread sanitizer too (promise 7). */
#include "mock_sides.h"

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 6, ROUNDS = 150 };

static void *open_and_close(void *argument)
{
    const int number = *(const int *)argument;
    for (int i = 0; i < ROUNDS; i++) {
        hal_device *device = NULL;
        if (hal_device_open(i % 2 ? "mock:0" : "mock_two:1", &device) != HAL_OK) {
            return argument;
        }
        if (i % 10 == number) {
            hal_registry_report *report = NULL;
            if (hal_registry_report_create(&report) != HAL_OK) {
                return argument;
            }
            hal_registry_report_destroy(report);
        }
        hal_device_release(device);
    }
    return NULL;
}

static void *use_a_queue(void *argument)
{
    const int number = *(const int *)argument;
    hal_device *device = NULL;
    hal_queue *queue = NULL;
    void *result = argument;
    if (hal_device_open("mock", &device) != HAL_OK || hal_queue_create(device, &queue) != HAL_OK) {
        return argument;
    }
    for (int i = 0; i < ROUNDS; i++) {
        hal_buffer *buffer = NULL;
        hal_buffer *copy = NULL;
        hal_kernel *kernel = mock_kernel(device, i % 3);
        uint32_t word = 0;
        const uint32_t pattern = (uint32_t)(number * 1000 + i);
        if (hal_buffer_create(device, HAL_MEMORY_DEVICE, 1024, &buffer) != HAL_OK ||
            hal_buffer_create(device, HAL_MEMORY_DEVICE, 1024, &copy) != HAL_OK ||
            hal_queue_fill(queue, (hal_range){buffer, 0, HAL_WHOLE}, pattern) != HAL_OK ||
            mock_dispatch(queue, kernel, buffer, copy) != HAL_OK ||
            hal_queue_copy(queue, (hal_range){buffer, 0, 1024}, (hal_range){copy, 0, 1024}) !=
                HAL_OK ||
            (i % 3 == 0 && hal_queue_flush(queue, NULL) != HAL_OK) ||
            hal_queue_read(queue, copy, 1020, 4, &word) != HAL_OK || word != pattern) {
            break;
        }
        hal_kernel_release(kernel);
        hal_buffer_release(buffer);
        hal_buffer_release(copy);
        if (i % 50 == 49) {
            hal_queue_destroy(queue);
            hal_device_trim(device);
            if (hal_queue_create(device, &queue) != HAL_OK) {
                break;
            }
        }
        result = i == ROUNDS - 1 ? NULL : argument;
    }
    hal_queue_destroy(queue);
    hal_device_release(device);
    return result;
}

/* A ring of queues on two plugins, each of which waits for the last point of the one before. */
static struct {
    pthread_mutex_t lock;
    hal_point points[THREADS];
    hal_queue *queues[THREADS];
} ring = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *wait_for_the_one_before(void *argument)
{
    const int number = *(const int *)argument;
    hal_queue *queue = ring.queues[number];
    hal_buffer *buffer = NULL;
    if (hal_buffer_create(hal_queue_get_device(queue), HAL_MEMORY_DEVICE, 64, &buffer) != HAL_OK) {
        return argument;
    }
    void *result = NULL;
    for (int i = 0; i < ROUNDS && !result; i++) {
        pthread_mutex_lock(&ring.lock);
        const hal_point before = ring.points[(number + THREADS - 1) % THREADS];
        pthread_mutex_unlock(&ring.lock);
        hal_point point = {0};
        if (hal_queue_wait_point(queue, before) != HAL_OK ||
            hal_queue_fill(queue, (hal_range){buffer, 0, HAL_WHOLE}, 1) != HAL_OK ||
            hal_queue_flush(queue, &point) != HAL_OK ||
            (i % 4 == 0 && hal_point_wait(before, HAL_WAIT_FOREVER) != HAL_OK) ||
            (i % 7 == 0 && hal_point_wait(point, HAL_WAIT_FOREVER) != HAL_OK)) {
            result = argument;
        }
        pthread_mutex_lock(&ring.lock);
        ring.points[number] = point;
        pthread_mutex_unlock(&ring.lock);
    }
    hal_buffer_release(buffer);
    return result;
}

static hal_device *shared_device;
static hal_buffer *shared_buffer;
static hal_kernel *shared_kernel;
static pthread_barrier_t all_begun;

static void *share_a_buffer(void *argument)
{
    hal_queue *queue = NULL;
    hal_buffer *own = NULL;
    void *result = argument;
    if (hal_queue_create(shared_device, &queue) == HAL_OK &&
        hal_buffer_create(shared_device, HAL_MEMORY_DEVICE, 64, &own) == HAL_OK) {
        result = NULL;
        for (int i = 0; i < ROUNDS && !result; i++) {
            hal_buffer_release(hal_buffer_retain(shared_buffer));
            hal_kernel_release(hal_kernel_retain(shared_kernel));
            if (mock_dispatch(queue, shared_kernel, shared_buffer, own) != HAL_OK ||
                hal_queue_flush(queue, NULL) != HAL_OK) {
                result = argument;
            }
        }
    }
    hal_buffer_release(own);
    hal_queue_destroy(queue);
    return result;
}

/* The first use of a buffer whose memory another queue is still going to use. */
static void *use_first(void *argument)
{
    hal_queue *queue = NULL;
    void *pointer = NULL;
    hal_status status = hal_queue_create(shared_device, &queue);
    if (status == HAL_OK && *(const int *)argument == 0) {
        status = hal_buffer_map_begin(shared_buffer, &pointer);
        status = status == HAL_OK ? hal_buffer_map_end(shared_buffer) : status;
    } else if (status == HAL_OK) {
        status = hal_queue_fill(queue, (hal_range){shared_buffer, 0, 4}, 1);
    }
    hal_queue_destroy(queue);
    return status == HAL_OK ? NULL : argument;
}

/* Small and large writes, through memory that all threads share. It may be short: then what cannot
 * be had has to be tried again, when another thread has given back what it holds. */
static void *write_much(void *argument)
{
    enum { BYTES = 40000, PLACE = 64, PLACES = BYTES / PLACE };
    const int *given = argument;
    const uint32_t number = (uint32_t)*given;
    hal_queue *queue = NULL;
    hal_buffer *buffer = NULL;
    uint32_t *data = calloc(1, BYTES), *seen = calloc(1, BYTES);
    int well = data && seen && hal_queue_create(shared_device, &queue) == HAL_OK;
    hal_status status = HAL_OK;
    do {
        status = hal_buffer_create(shared_device, HAL_MEMORY_DEVICE, BYTES, &buffer);
    } while (status == HAL_ERROR_OUT_OF_MEMORY);
    pthread_barrier_wait(&all_begun);
    for (uint32_t i = 0; well && i < ROUNDS; i++) {
        const uint32_t at = i * 7 % PLACES * PLACE, all = i % 10 == 0;
        data[at / 4] = number << 16 | i;
        do {
            status = all ? hal_queue_write(queue, buffer, 0, data, BYTES)
                         : hal_queue_write(queue, buffer, at, data + at / 4, PLACE);
        } while (status == HAL_ERROR_OUT_OF_MEMORY);
        well = status == HAL_OK && (i % 3 > 0 || hal_queue_flush(queue, NULL) == HAL_OK);
        while (well && i % 25 == 24) {
            status = hal_queue_read(queue, buffer, 0, BYTES, seen);
            well = status == HAL_ERROR_OUT_OF_MEMORY ||
                   (status == HAL_OK && memcmp(seen, data, BYTES) == 0);
            if (status == HAL_OK) {
                break;
            }
        }
    }
    free(data);
    free(seen);
    hal_buffer_release(buffer);
    hal_queue_destroy(queue);
    return well ? NULL : argument;
}

static void run_threads(void *(*function)(void *))
{
    pthread_t threads[THREADS];
    static int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, function, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        assert_null(result);
    }
}

static void *work_for_ever(void *argument)
{
    for (;;) {
        use_a_queue(argument);
    }
    return NULL;
}

/* A program may end while its threads are at work: nothing is torn down under them. Promise 5.
 * First, while the process has one thread: drivers that the registry opens leave threads,
 * and thread sanitizers allow no threads after such a fork. */
TEST(processes_end_with_live_threads)
{
    for (int i = 0; i < 20; i++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            static int number = 1;
            pthread_t thread;
            hal_device *own = NULL;
            if (hal_device_open("mock", &own) != HAL_OK ||
                pthread_create(&thread, NULL, work_for_ever, &number) != 0) {
                _exit(1);
            }
            nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
            exit(0);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

TEST(the_registry_is_anybodys)
{
    run_threads(open_and_close);
    mock_is_clean(mock);
    mock_is_clean(two);
}

TEST(queues_on_threads_of_their_own)
{
    run_threads(use_a_queue);
    mock_is_clean(mock);
}

TEST(queues_whose_work_runs_late)
{
    mock->slow = 1;
    run_threads(use_a_queue);
    mock->slow = 0;
    mock_is_clean(mock);
}

TEST(waits_cross_threads_and_plugins)
{
    mock->slow = 1;
    hal_device *devices[THREADS];
    for (int i = 0; i < THREADS; i++) {
        devices[i] = mock_open(i % 2 ? "mock" : "mock_two");
        ring.queues[i] = mock_queue(devices[i]);
        ring.points[i] = (hal_point){0};
    }
    run_threads(wait_for_the_one_before);
    for (int i = 0; i < THREADS; i++) {
        hal_queue_destroy(ring.queues[i]);
        hal_device_release(devices[i]);
    }
    mock->slow = 0;
    mock_is_clean(mock);
    mock_is_clean(two);
}

TEST(buffers_and_kernels_are_shared)
{
    shared_device = mock_open("mock");
    shared_buffer = mock_buffer(shared_device, 64);
    shared_kernel = mock_kernel(shared_device, 1);
    run_threads(share_a_buffer);
    hal_buffer_release(shared_buffer);
    hal_kernel_release(shared_kernel);
    hal_device_release(shared_device);
    mock_is_clean(mock);
}

/* Two threads use a buffer first; one of them gets it other memory, which takes a while. */
TEST(memory_in_use_is_replaced_once)
{
    shared_device = mock_open("mock:1");
    hal_queue *queue = mock_queue(shared_device);
    for (int first = 0; first < 2; first++) { /* maps, or fills */
        const int numbers[2] = {first, 1 - first};
        pthread_t threads[2];
        hal_memory_statistics now;
        shared_buffer = mock_buffer(shared_device, 4096);
        assert_ok(hal_queue_fill(queue, (hal_range){shared_buffer, 0, 4}, 1)); /* in recording */
        hal_buffer_release(shared_buffer);
        shared_buffer = mock_buffer(shared_device, 4096);
        const uint32_t before = mock->calls[MOCK_ALLOCATE];
        mock->stall[MOCK_ALLOCATE] = 1;
        for (int i = 0; i < 2; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, use_first, (void *)&numbers[i]), 0);
            while (i == 0 && mock->calls[MOCK_ALLOCATE] == before) {
                nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
            }
        }
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* the second one waits */
        mock->stall[MOCK_ALLOCATE] = 0;
        for (int i = 0; i < 2; i++) {
            void *result = NULL;
            pthread_join(threads[i], &result);
            assert_null(result);
        }
        assert_int_equal(mock->calls[MOCK_ALLOCATE], before + 1);
        hal_buffer_release(shared_buffer);
        assert_ok(hal_queue_wait(queue, HAL_WAIT_FOREVER));
        assert_ok(hal_device_get_memory(shared_device, &now));
        assert_int_equal(now.in_use_bytes, 0);
        assert_int_equal(now.pooled_bytes, mock->memory_bytes);
        assert_ok(hal_device_trim(shared_device));
    }
    hal_queue_destroy(queue);
    hal_device_release(shared_device);
    mock_is_clean(mock);
}

TEST(writes_share_the_pool)
{
    shared_device = mock_open("mock");
    pthread_barrier_init(&all_begun, NULL, THREADS);
    mock->slow = 1;
    run_threads(write_much);
    assert_ok(hal_device_trim(shared_device));
    mock->memory_limit = mock->memory_bytes + (THREADS + 1) * 41984; /* buffers, and one more */
    run_threads(write_much);
    mock->memory_limit = UINT64_C(1) << 30;
    mock->slow = 0;
    pthread_barrier_destroy(&all_begun);
    hal_device_release(shared_device);
    mock_is_clean(mock);
}

static int begin(void **state)
{
    mock_find("mock")->infos[1].features = HAL_FEATURE_MAP_DEVICE;
    return sides_begin(state);
}

UNIT_MAIN(begin, NULL)
