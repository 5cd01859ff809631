/* The triad. */
#include "peers/triad.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#if defined __APPLE__
/* macOS has no barriers of threads. */
typedef struct pthread_barrier {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned wanted, arrived, turn;
} pthread_barrier_t;

static void pthread_barrier_init(pthread_barrier_t *barrier, const void *none, unsigned wanted)
{
    (void)none;
    *barrier = (pthread_barrier_t){.wanted = wanted};
    pthread_mutex_init(&barrier->lock, NULL);
    pthread_cond_init(&barrier->changed, NULL);
}

static void pthread_barrier_wait(pthread_barrier_t *barrier)
{
    pthread_mutex_lock(&barrier->lock);
    const unsigned turn = barrier->turn;
    if (++barrier->arrived == barrier->wanted) {
        barrier->arrived = 0;
        barrier->turn++;
        pthread_cond_broadcast(&barrier->changed);
    }
    while (turn == barrier->turn) {
        pthread_cond_wait(&barrier->changed, &barrier->lock);
    }
    pthread_mutex_unlock(&barrier->lock);
}

static void pthread_barrier_destroy(pthread_barrier_t *barrier)
{
    pthread_cond_destroy(&barrier->changed);
    pthread_mutex_destroy(&barrier->lock);
}
#endif

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define MAX_THREADS 256
/* Large pages, as device memory has; without them the triad is much slower. */
#define ALIGNMENT ((size_t)2 << 20)
#define BLOCK 16 /* floats of a cache line; parts start at multiples of it */

typedef struct part {
    triad *owner;
    int number;
    pthread_t thread;
} part;

struct triad {
    float *a, *b, *c;
    size_t count;
    int threads; /* the calling one included */
    part parts[MAX_THREADS];
    pthread_barrier_t begin, end;
    bool streaming, closing;
};

static float *allocate(size_t count)
{
    const size_t bytes = (count * sizeof(float) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    float *numbers = aligned_alloc(ALIGNMENT, bytes);
    if (numbers) {
#if defined __linux__
        (void)madvise(numbers, bytes, MADV_HUGEPAGE);
#endif
    }
    return numbers;
}

/* A cache line at a time, so that every compiler vectorises it. */
static void add(float *restrict a, const float *restrict b, const float *restrict c, size_t count)
{
    for (size_t i = 0; i < count; i += BLOCK) {
        for (size_t k = 0; k < BLOCK; k++) {
            a[i + k] = b[i + k] + 3.0f * c[i + k];
        }
    }
}

static void add_streaming(float *a, const float *b, const float *c, size_t count)
{
#ifdef __SSE2__
    const __m128 s = _mm_set1_ps(3.0f);
    for (size_t i = 0; i < count; i += 4) {
        _mm_stream_ps(a + i, _mm_add_ps(_mm_load_ps(b + i), _mm_mul_ps(s, _mm_load_ps(c + i))));
    }
    _mm_sfence();
#else
    add(a, b, c, count);
#endif
}

static void run_part(const triad *t, int number)
{
    const size_t blocks = t->count / BLOCK, threads = (size_t)t->threads;
    const size_t first = blocks * (size_t)number / threads * BLOCK;
    const size_t end = blocks * ((size_t)number + 1) / threads * BLOCK;
    if (t->streaming) {
        add_streaming(t->a + first, t->b + first, t->c + first, end - first);
    } else {
        add(t->a + first, t->b + first, t->c + first, end - first);
    }
}

static void *work(void *argument)
{
    const part *self = argument;
    triad *t = self->owner;
    for (;;) {
        pthread_barrier_wait(&t->begin);
        if (t->closing) {
            return NULL;
        }
        run_part(t, self->number);
        pthread_barrier_wait(&t->end);
    }
}

static void run(triad *t, int calls, bool streaming)
{
    for (int i = 0; i < calls; i++) {
        t->streaming = streaming;
        pthread_barrier_wait(&t->begin);
        run_part(t, 0);
        pthread_barrier_wait(&t->end);
    }
}

triad *triad_create(size_t count, int threads)
{
    triad *t = calloc(1, sizeof *t);
    if (!t) {
        return NULL;
    }
    count = count / BLOCK * BLOCK;
    t->count = count;
    t->threads = threads < 1 ? 1 : threads > MAX_THREADS ? MAX_THREADS : threads;
    t->a = allocate(count);
    t->b = allocate(count);
    t->c = allocate(count);
    if (!t->a || !t->b || !t->c) {
        free(t->a);
        free(t->b);
        free(t->c);
        free(t);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        t->a[i] = 0.0f;
        t->b[i] = (float)(i % 1000) * 0.001f;
        t->c[i] = (float)(i % 777) * 0.002f;
    }
    pthread_barrier_init(&t->begin, NULL, (unsigned)t->threads);
    pthread_barrier_init(&t->end, NULL, (unsigned)t->threads);
    for (int i = 1; i < t->threads; i++) {
        t->parts[i] = (part){.owner = t, .number = i};
        if (pthread_create(&t->parts[i].thread, NULL, work, &t->parts[i]) != 0) {
            abort(); /* the barriers count on all of them; this is a program, not a library */
        }
    }
    return t;
}

void triad_destroy(triad *t)
{
    if (!t) {
        return;
    }
    t->closing = true;
    pthread_barrier_wait(&t->begin);
    for (int i = 1; i < t->threads; i++) {
        pthread_join(t->parts[i].thread, NULL);
    }
    pthread_barrier_destroy(&t->begin);
    pthread_barrier_destroy(&t->end);
    free(t->a);
    free(t->b);
    free(t->c);
    free(t);
}

void triad_run(void *baseline, int calls)
{
    run(baseline, calls, false);
}

void triad_run_streaming(void *baseline, int calls)
{
    run(baseline, calls, true);
}

bool triad_can_stream(void)
{
#ifdef __SSE2__
    return true;
#else
    return false;
#endif
}
