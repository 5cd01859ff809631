/* Random work over three devices of two plugins whose work runs late: buffers come and go, queues
 * wait for each other, graphs are launched; what is read is what a plain model says. Then with
 * mostly small writes in short batches, and with devices that do not take some of the batches or
 * have no memory left. */
#include "mock_sides.h"

enum { DEVICES = 3, QUEUES = 5, BUFFERS = 24, STEPS = 6000, LARGEST = 6000 };

typedef struct piece {
    hal_buffer *buffer;
    int queue; /* that used it last, or -1 */
    uint32_t bytes;
    uint8_t expected[LARGEST];
} piece;

static hal_device *devices[DEVICES];
static hal_queue *queues[QUEUES];
static int device_of[QUEUES] = {0, 0, 1, 2, 2};
static piece pieces[BUFFERS];
static uint32_t random_state;
static int faults; /* some batches are not taken; then `dropped` says that the model is void */
static int dropped;

static uint32_t below(uint32_t limit)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % limit;
}

static int works(hal_status status)
{
    if (faults && status == HAL_ERROR_OUT_OF_MEMORY) {
        dropped = 1;
    } else if (status != HAL_OK) {
        fail_msg("%s: %s", hal_status_name(status), hal_status_message());
    }
    return status == HAL_OK;
}

/* Which device a buffer belongs to, for ever. */
static int home(int index)
{
    return index % DEVICES;
}

/* A queue of the buffer's device, made to come after the buffer's last use. */
static int queue_for(int index)
{
    int q;
    do {
        q = (int)below(QUEUES);
    } while (device_of[q] != home(index));
    piece *p = &pieces[index];
    if (p->queue >= 0 && p->queue != q) {
        hal_point point;
        works(hal_queue_flush(queues[p->queue], &point));
        works(hal_queue_wait_point(queues[q], point));
    }
    p->queue = q;
    return q;
}

static void renew(int index)
{
    piece *p = &pieces[index];
    hal_buffer_release(p->buffer);
    p->bytes = 4 + below(LARGEST / 4 - 1) * 4;
    p->queue = -1;
    if (!works(hal_buffer_create(devices[home(index)], HAL_MEMORY_DEVICE, p->bytes, &p->buffer))) {
        return;
    }
    const uint32_t pattern = below(UINT32_MAX);
    works(hal_queue_fill(queues[queue_for(index)], (hal_range){p->buffer, 0, HAL_WHOLE}, pattern));
    for (uint32_t i = 0; i < p->bytes; i += 4) {
        memcpy(p->expected + i, &pattern, 4);
    }
}

static void fill_part(int index)
{
    piece *p = &pieces[index];
    const uint32_t pattern = below(UINT32_MAX);
    const uint32_t begin = below(p->bytes / 4) * 4;
    const uint32_t length = 4 + below((p->bytes - begin) / 4) * 4;
    works(hal_queue_fill(queues[queue_for(index)], (hal_range){p->buffer, begin, length},
                         pattern));
    for (uint32_t i = 0; i < length; i += 4) {
        memcpy(p->expected + begin + i, &pattern, 4);
    }
}

static void copy_part(int from, int to)
{
    piece *source = &pieces[from];
    piece *target = &pieces[to];
    const uint32_t most = source->bytes < target->bytes ? source->bytes : target->bytes;
    const uint32_t length = 4 + below(most / 4) * 4;
    const uint32_t source_at = below((source->bytes - length) / 4 + 1) * 4;
    const uint32_t target_at = below((target->bytes - length) / 4 + 1) * 4;
    if (from == to) {
        return;
    }
    const int q = queue_for(to);
    if (home(from) != home(to)) {
        works(hal_queue_transfer(queues[queue_for(from)], source->buffer, source_at, queues[q],
                                 target->buffer, target_at, length));
    } else {
        if (source->queue != q) { /* and the source's queue comes after this reading of it */
            hal_point point = {0};
            if (source->queue >= 0) {
                works(hal_queue_flush(queues[source->queue], &point));
            }
            works(hal_queue_wait_point(queues[q], point));
            source->queue = q;
        }
        works(hal_queue_copy(queues[q], (hal_range){source->buffer, source_at, length},
                             (hal_range){target->buffer, target_at, length}));
    }
    memcpy(target->expected + target_at, source->expected + source_at, length);
}

static void write_part(int index)
{
    piece *p = &pieces[index];
    const uint32_t begin = below(p->bytes);
    const uint32_t length = 1 + below(p->bytes - begin);
    for (uint32_t i = 0; i < length; i++) {
        p->expected[begin + i] = (uint8_t)below(256);
    }
    works(hal_queue_write(queues[queue_for(index)], p->buffer, begin, p->expected + begin,
                          length));
}

static void check(int index)
{
    piece *p = &pieces[index];
    static uint8_t seen[LARGEST];
    if (works(hal_queue_read(queues[queue_for(index)], p->buffer, 0, p->bytes, seen)) && !dropped) {
        assert_memory_equal(seen, p->expected, p->bytes);
    }
}

static void launch_graph(int index)
{
    piece *p = &pieces[index];
    hal_queue *queue = queues[queue_for(index)];
    hal_graph *graph = NULL;
    const uint32_t pattern = below(UINT32_MAX);
    if (!works(hal_graph_begin(queue))) {
        return;
    }
    works(hal_queue_fill(queue, (hal_range){p->buffer, 0, 4}, pattern));
    works(hal_graph_end(queue, &p->buffer, 1, &graph));
    works(hal_graph_launch(queue, graph, &p->buffer, 1));
    hal_graph_destroy(graph);
    memcpy(p->expected, &pattern, 4);
}

static void renew_queue(int q)
{
    works(hal_queue_wait(queues[q], HAL_WAIT_FOREVER)); /* its end would not tell of a failure */
    hal_queue_destroy(queues[q]);
    works(hal_queue_create(devices[device_of[q]], &queues[q]));
    for (int i = 0; i < BUFFERS; i++) {
        if (pieces[i].queue == q) {
            pieces[i].queue = -1;
        }
    }
}

static void step(void)
{
    const int index = (int)below(BUFFERS);
    const uint32_t which = below(160);
    if (which < 24) {
        renew(index);
    } else if (which < 56) {
        fill_part(index);
    } else if (which < 96) {
        copy_part((int)below(BUFFERS), index);
    } else if (which < 112) {
        write_part(index);
    } else if (which < 120) {
        launch_graph(index);
    } else if (which < 128) {
        works(hal_queue_flush(queues[below(QUEUES)], NULL));
    } else if (which < 129) {
        renew_queue((int)below(QUEUES));
    } else if (which < 137) {
        works(hal_device_trim(devices[below(DEVICES)]));
    } else {
        check(index);
    }
}

static void step_of_writes(void)
{
    const int index = (int)below(BUFFERS);
    const int q = (int)below(QUEUES);
    const uint32_t which = below(1024);
    if (which < 4) {
        renew(index);
    } else if (which < 8) {
        check(index);
    } else if (which < 12) {
        renew_queue(q);
    } else if (which < 20) {
        const uint32_t first = 1 + below(4);
        works(hal_queue_set_batch(queues[q], first, first + below(4)));
    } else if (which < 271) {
        copy_part((int)below(BUFFERS), index);
    } else {
        write_part(index);
    }
}

static void be_well(mock_state *which)
{
    atomic_store(&which->fail_in[MOCK_SUBMIT], 0);
    atomic_store(&which->memory_limit, UINT64_C(1) << 30);
}

/* Now and then a batch is not taken, or memory gets short. What fails is reported by that call or a
 * later one; then all is made anew. */
static void bear_faults(void)
{
    mock_state *which = below(2) ? mock : two;
    if (below(64) == 0) {
        atomic_store(&which->fail_with, HAL_ERROR_OUT_OF_MEMORY);
        atomic_store(&which->fail_in[MOCK_SUBMIT], 1 + (int)below(4));
    }
    if (below(64) == 0) {
        atomic_store(&which->memory_limit, atomic_load(&which->memory_bytes) + below(400000));
    }
    while (dropped) {
        dropped = 0;
        be_well(mock);
        be_well(two);
        for (int q = 0; q < QUEUES; q++) {
            works(hal_queue_wait(queues[q], HAL_WAIT_FOREVER));
        }
        for (int i = 0; i < BUFFERS; i++) {
            renew(i);
        }
    }
}

static void random_work(uint32_t seed, void (*one)(void))
{
    random_state = seed;
    mock->slow = 1;
    two->slow = 1;
    devices[0] = mock_open("mock:0");
    devices[1] = mock_open("mock:1"); /* maps its memory */
    devices[2] = mock_open("mock_two:0");
    for (int q = 0; q < QUEUES; q++) {
        queues[q] = mock_queue(devices[device_of[q]]);
    }
    memset(pieces, 0, sizeof pieces);
    for (int i = 0; i < BUFFERS; i++) {
        renew(i);
    }
    for (int i = 0; i < STEPS; i++) {
        one();
        if (faults) {
            bear_faults();
        }
    }
    be_well(mock);
    be_well(two);
    for (int i = 0; i < BUFFERS; i++) {
        check(i);
        hal_buffer_release(pieces[i].buffer);
    }
    for (int q = 0; q < QUEUES; q++) {
        hal_queue_destroy(queues[q]);
    }
    for (int d = 0; d < DEVICES; d++) {
        hal_device_release(devices[d]);
    }
    mock_is_clean(mock);
    mock_is_clean(two);
}

TEST(random_work_is_right)
{
    for (uint32_t seed = 1; seed <= 8; seed++) {
        mock->reach = seed % 2 == 0; /* devices of the plugin copy into each other's memory */
        random_work(seed, step);
    }
}

TEST(small_writes_keep_their_data)
{
    for (uint32_t seed = 1; seed <= 4; seed++) {
        mock->reach = seed % 2 == 0;
        random_work(seed, step_of_writes);
    }
}

TEST(dropped_batches_are_all_that_is_lost)
{
    faults = 1;
    for (uint32_t seed = 1; seed <= 4; seed++) {
        mock->reach = seed % 2 == 0;
        random_work(seed, seed % 3 == 0 ? step_of_writes : step);
    }
    faults = 0;
}

static int begin(void **state)
{
    const int failed = sides_begin(state);
    mock->infos[1].features = HAL_FEATURE_MAP_DEVICE;
    return failed;
}

UNIT_MAIN(begin, NULL)
