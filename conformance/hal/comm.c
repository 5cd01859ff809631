/* comm.c: communicators and their collectives: ranks on one thread and on one thread each, all on
 * the case's device or on one device each. The results of every rank are compared bit by bit. */
#include <hal/hal.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "case/cases.h"
#include "case/child.h"
#include "hal/collective.h"
#include "hal/fixture.h"

enum { MOST_RANKS = 8, IN_FLIGHT = 4 };

static const uint64_t time_limit_ns = UINT64_C(60000000000);

typedef struct group_parameters {
    uint32_t ranks, sequences, length; /* collectives of a sequence */
    uint64_t most;                     /* elements of a collective */
    bool is_spread; /* over all devices of the plugin, one rank each; `ranks` is not used */
} group_parameters;

static void release_group(void *comm)
{
    hal_comm_destroy(comm);
}

/* All ranks of a communicator, with a queue each. */
static void ranks_create(case_run *run, hal_device *const *devices, uint32_t ranks,
                         uint64_t limit_ns, collective_rank *made)
{
    hal_comm *comms[MOST_RANKS] = {0};
    case_ok(run, hal_comm_create_local(devices, ranks, limit_ns, comms), "hal_comm_create_local");
    for (uint32_t i = 0; i < ranks; i++) {
        case_own(run, release_group, comms[i]);
        made[i] = collective_rank_of(run, comms[i], case_queue(run, devices[i]));
    }
}

/* The same on the case's device. */
static void local_ranks(case_run *run, uint32_t ranks, uint64_t limit_ns, collective_rank *made)
{
    hal_device *devices[MOST_RANKS] = {0};
    for (uint32_t i = 0; i < ranks; i++) {
        devices[i] = run->device;
    }
    ranks_create(run, devices, ranks, limit_ns, made);
}

/* One rank on each of the plugin's devices, as far as there are; returns their number. */
static uint32_t spread_ranks(case_run *run, uint64_t limit_ns, collective_rank *made)
{
    hal_device *devices[MOST_RANKS] = {0};
    char selection[96];
    uint32_t count = 0;
    for (hal_status status = HAL_OK; count < MOST_RANKS && status == HAL_OK;) {
        snprintf(selection, sizeof selection, "%s:%u", hal_device_get_plugin_name(run->device),
                 count);
        status = hal_device_open(selection, &devices[count]);
        if (status != HAL_ERROR_NOT_FOUND) {
            case_ok(run, status, selection);
            device_own(run, devices[count++]);
        }
    }
    if (count < 2) {
        case_unsupported(run, "there is no second device: %s", hal_status_message());
    }
    ranks_create(run, devices, count, limit_ns, made);
    return count;
}

static uint32_t ranks_of(case_run *run, const group_parameters *p, collective_rank *made)
{
    if (p->is_spread) {
        return spread_ranks(run, time_limit_ns, made);
    }
    local_ranks(run, p->ranks, time_limit_ns, made);
    return p->ranks;
}

/* Random collectives on all of the thread's ranks: a few are in flight before results are read. */
static void sequence_run(case_run *run, collective_rank *ranks, uint32_t count,
                         const group_parameters *p, random_state *random)
{
    collective_flight flights[IN_FLIGHT][MOST_RANKS];
    for (uint32_t done = 0; done < p->length;) {
        const uint32_t some = 1 + (uint32_t)random_below(random, IN_FLIGHT);
        for (uint32_t i = 0; i < some; i++) {
            const collective is = collective_random(random, run->info, ranks[0].ranks, p->most);
            for (uint32_t r = 0; r < count; r++) {
                flights[i][r] = collective_start(&ranks[r], &is);
            }
        }
        for (uint32_t i = 0; i < some; i++) {
            for (uint32_t r = 0; r < count; r++) {
                collective_finish(&flights[i][count - 1 - r]);
            }
        }
        done += some;
    }
}

/* A sequence on the communicator, then one on each part of a random split, for the ranks that the
 * thread has. `draw` gives every thread and process the same numbers. */
static void split_sequence_run(case_run *run, collective_rank *ranks, uint32_t count,
                               const group_parameters *p, random_state *draw)
{
    hal_comm *comms[MOST_RANKS], *split[MOST_RANKS] = {0};
    int32_t colors[MOST_RANKS], keys[MOST_RANKS], all_colors[MOST_RANKS], all_keys[MOST_RANKS];
    const size_t objects = run->object_count;
    sequence_run(run, ranks, count, p, draw);
    for (uint32_t q = 0; q < ranks[0].ranks; q++) {
        all_colors[q] = (int32_t)random_below(draw, 3) - (random_below(draw, 8) == 0 ? 3 : 0);
        all_keys[q] = (int32_t)random_below(draw, 5) - 2;
    }
    for (uint32_t r = 0; r < count; r++) {
        comms[r] = ranks[r].comm;
        colors[r] = all_colors[ranks[r].rank];
        keys[r] = all_keys[ranks[r].rank];
    }
    case_ok(run, hal_comm_split(comms, count, colors, keys, split), "hal_comm_split");
    const uint64_t seed = random_next(draw);
    for (int32_t color = -3; color < 3; color++) {
        collective_rank parts[MOST_RANKS];
        random_state random = {seed + (uint64_t)color};
        uint32_t part_count = 0;
        for (uint32_t r = 0; r < count; r++) {
            case_check(run, (!split[r]) == (colors[r] < 0), "color %d: %s", colors[r],
                       split[r] ? "a communicator" : "no communicator");
            if (colors[r] == color && split[r]) {
                case_own(run, release_group, split[r]);
                parts[part_count++] = collective_rank_of(run, split[r], ranks[r].queue);
            }
        }
        if (part_count > 0) {
            sequence_run(run, parts, part_count, p, &random);
        }
    }
    case_release(run, objects);
}

static void on_one_thread(case_run *run, const void *parameters)
{
    const group_parameters *p = parameters;
    collective_rank ranks[MOST_RANKS];
    random_state draw = {run->seed};
    const uint32_t count = ranks_of(run, p, ranks);
    for (uint32_t s = 0; s < p->sequences; s++) {
        split_sequence_run(run, ranks, count, p, &draw);
    }
}

/* A rank on its own thread. */
typedef struct rank_thread {
    case_run run;
    collective_rank rank;
    const group_parameters *p;
    pthread_t thread;
} rank_thread;

static void thread_sequences(case_run *run, const void *parameters)
{
    rank_thread *self = *(rank_thread *const *)parameters;
    random_state draw = {run->seed};
    self->rank.run = run;
    for (uint32_t s = 0; s < self->p->sequences; s++) {
        split_sequence_run(run, &self->rank, 1, self->p, &draw);
    }
}

static void *thread_run(void *argument)
{
    rank_thread *self = argument;
    if (!case_execute(&self->run, thread_sequences, &self)) {
        hal_comm_abort(self->rank.comm, self->run.detail);
    }
    return NULL;
}

static void on_threads(case_run *run, const void *parameters)
{
    const group_parameters *p = parameters;
    collective_rank ranks[MOST_RANKS];
    rank_thread threads[MOST_RANKS];
    const uint32_t count = ranks_of(run, p, ranks);
    for (uint32_t i = 0; i < count; i++) {
        threads[i] = (rank_thread){.run = {.selection = run->selection,
                                           .name = run->name,
                                           .seed = run->seed,
                                           .device = run->device,
                                           .info = run->info},
                                   .rank = ranks[i],
                                   .p = p};
        case_check(run, pthread_create(&threads[i].thread, NULL, thread_run, &threads[i]) == 0,
                   "pthread_create");
    }
    const rank_thread *failed = NULL;
    for (uint32_t i = 0; i < count; i++) {
        pthread_join(threads[i].thread, NULL);
        case_release(&threads[i].run, 0);
        failed = !failed && threads[i].run.status != CASE_PASSED ? &threads[i] : failed;
    }
    case_check(run, !failed, "%s", failed ? failed->run.detail : "");
}

/* A collective in a graph gives each launch's sums; send and recv are slots. */
static void in_a_graph(case_run *run, const void *parameters)
{
    enum { COUNT = 3000, LAUNCHES = 5 };
    const uint32_t ranks = *(const uint32_t *)parameters;
    static const hal_collective sum = {.kind = HAL_COLLECTIVE_ALL_REDUCE, .type = HAL_TYPE_U32};
    collective_rank on[MOST_RANKS];
    hal_graph *graphs[MOST_RANKS];
    hal_buffer *x[MOST_RANKS][2], *y[MOST_RANKS][2];
    local_ranks(run, ranks, time_limit_ns, on);
    for (uint32_t r = 0; r < ranks; r++) {
        hal_kernel *kernel = scale_kernel(run, run->device);
        for (uint32_t i = 0; i < 2; i++) {
            x[r][i] = words_create(run, on[r].queue, COUNT, r + i, 1);
            y[r][i] = words_create(run, on[r].queue, COUNT, 0, 0);
        }
        case_ok(run, hal_graph_begin(on[r].queue), "hal_graph_begin");
        scale_dispatch(run, on[r].queue, kernel, x[r][0], y[r][0], COUNT, 2, 1);
        case_ok(run,
                hal_queue_collective(on[r].queue, on[r].comm, &sum, range_of(y[r][0]),
                                     range_of(x[r][0]), COUNT),
                "hal_queue_collective");
        hal_buffer *slots[2] = {x[r][0], y[r][0]};
        case_ok(run, hal_graph_end(on[r].queue, slots, 2, &graphs[r]), "hal_graph_end");
        case_own(run, (void (*)(void *))hal_graph_destroy, graphs[r]);
        case_check(run, hal_graph_get_command_count(graphs[r]) == 2, "not two commands");
    }
    uint32_t start[2] = {ranks * (ranks - 1) / 2, ranks * (ranks - 1) / 2 + ranks}, step = ranks;
    uint32_t steps[2] = {step, step};
    for (uint32_t launch = 0; launch < LAUNCHES; launch++) {
        const uint32_t i = launch % 2;
        for (uint32_t r = 0; r < ranks; r++) {
            hal_buffer *slots[2] = {x[r][i], y[r][i]};
            case_ok(run, hal_graph_launch(on[r].queue, graphs[r], slots, 2), "hal_graph_launch");
        }
        /* The first launch sums 2 x + 1 over different x, later ones over equal x. */
        const uint32_t times = launch < 2 ? 2 : 2 * ranks;
        start[i] = start[i] * times + ranks;
        steps[i] *= times;
    }
    for (uint32_t r = 0; r < ranks; r++) {
        for (uint32_t i = 0; i < 2; i++) {
            words_check(run, on[r].queue, x[r][i], COUNT, start[i], steps[i], "the sums");
        }
    }
}

/* Two queues per rank: the communicator keeps the order of the collectives, the queues overlap. */
static void on_two_queues(case_run *run, const void *parameters)
{
    enum { RANKS = 3, TURNS = 12 };
    collective_rank on[2][RANKS];
    collective_flight flights[TURNS][RANKS];
    random_state draw = {run->seed};
    local_ranks(run, RANKS, time_limit_ns, on[0]);
    for (uint32_t r = 0; r < RANKS; r++) {
        on[1][r] = on[0][r];
        on[1][r].queue = case_queue(run, run->device);
    }
    for (uint32_t i = 0; i < TURNS; i++) {
        const collective is = collective_random(&draw, run->info, RANKS, 300000);
        for (uint32_t r = 0; r < RANKS; r++) {
            flights[i][r] = collective_start(&on[(i + r) % 2][r], &is);
        }
    }
    for (uint32_t i = TURNS; i-- > 0;) {
        for (uint32_t r = 0; r < RANKS; r++) {
            collective_finish(&flights[i][r]);
        }
    }
}

/* ---- Failures ---- */

/* The status that a rank's collectives end with: of the flush or the wait that reports it. */
static hal_status rank_status(const collective_rank *on, const hal_collective *what,
                              hal_buffer *buffer, uint64_t count)
{
    hal_status status =
        hal_queue_collective(on->queue, on->comm, what, range_of(buffer), range_of(buffer), count);
    if (status == HAL_OK) {
        status = hal_queue_wait(on->queue, HAL_WAIT_FOREVER);
    }
    return status;
}

typedef struct disagreement {
    const char *name;
    hal_collective what;
    uint64_t count;
} disagreement;

/* Rank 1 calls something else than the others: all learn it, and no data has moved. A rank may
 * learn it in the call itself, when another one was earlier. */
static void ranks_disagree(case_run *run, const void *parameters)
{
    enum { RANKS = 3, COUNT = 400 };
    const disagreement *other = parameters;
    static const hal_collective sum = {.kind = HAL_COLLECTIVE_ALL_REDUCE, .type = HAL_TYPE_U32};
    collective_rank on[RANKS];
    hal_buffer *sent[RANKS], *words[RANKS];
    hal_status status[RANKS];
    char message[RANKS][512];
    local_ranks(run, RANKS, time_limit_ns, on);
    for (uint32_t r = 0; r < RANKS; r++) {
        sent[r] = words_create(run, on[r].queue, COUNT * RANKS, r + 7, 1);
        words[r] = words_create(run, on[r].queue, COUNT * RANKS, r, 1);
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        const hal_collective what = r == 1 ? other->what : sum;
        status[r] = hal_queue_collective(on[r].queue, on[r].comm, &what, range_of(sent[r]),
                                         range_of(words[r]), r == 1 ? other->count : COUNT);
        snprintf(message[r], sizeof message[r], "%s", hal_status_message());
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        hal_comm_status state;
        if (status[r] == HAL_OK) {
            status[r] = hal_queue_wait(on[r].queue, HAL_WAIT_FOREVER);
            snprintf(message[r], sizeof message[r], "%s", hal_status_message());
        }
        case_check(run,
                   status[r] == HAL_ERROR_INVALID_ARGUMENT &&
                       strstr(message[r], "expected the same collective") != NULL,
                   "rank %u has %s: %s", r, hal_status_name(status[r]), message[r]);
        case_ok(run, hal_comm_get_status(on[r].comm, &state), "hal_comm_get_status");
        case_check(run, state.status == HAL_ERROR_INVALID_ARGUMENT && state.message[0],
                   "the communicator's status is %s", hal_status_name(state.status));
        case_expect(run, rank_status(&on[r], &sum, words[r], COUNT), HAL_ERROR_INVALID_ARGUMENT,
                    "expected the same collective", "a later collective");
        words_check(run, on[r].queue, words[r], COUNT * RANKS, r, 1, "what no rank may change");
    }
}

/* Ranks 0 and 2 wait for rank 1. False when one of them was too late for the other one, as may be
 * where a machine is busy. A rank may learn of the failure in the call itself. */
static bool late_is_rank_1(case_run *run, uint64_t limit_ns)
{
    enum { RANKS = 3 };
    static const hal_collective sum = {.kind = HAL_COLLECTIVE_ALL_REDUCE, .type = HAL_TYPE_U32};
    collective_rank on[RANKS];
    hal_buffer *words[RANKS];
    hal_status status[RANKS] = {HAL_OK};
    char message[RANKS][512];
    hal_comm_status state;
    local_ranks(run, RANKS, limit_ns, on);
    for (uint32_t r = 0; r < RANKS; r++) {
        words[r] = words_create(run, on[r].queue, 9, r, 1);
    }
    for (uint32_t r = 0; r < RANKS; r += 2) {
        status[r] = hal_queue_collective(on[r].queue, on[r].comm, &sum, range_of(words[r]),
                                         range_of(words[r]), 9);
        snprintf(message[r], sizeof message[r], "%s", hal_status_message());
    }
    for (uint32_t r = 0; r < RANKS; r += 2) {
        if (status[r] == HAL_OK) {
            status[r] = hal_queue_wait(on[r].queue, HAL_WAIT_FOREVER);
            snprintf(message[r], sizeof message[r], "%s", hal_status_message());
        }
        case_check(run, status[r] == HAL_ERROR_TIMEOUT, "rank %u waits for rank 1 and has %s", r,
                   hal_status_name(status[r]));
    }
    case_ok(run, hal_comm_get_status(on[1].comm, &state), "hal_comm_get_status");
    case_check(run, state.status == HAL_ERROR_TIMEOUT,
               "the communicator of the late rank has status %s", hal_status_name(state.status));
    if (state.failed_rank != 1) {
        return false;
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        case_check(run, r == 1 || strstr(message[r], "rank 1 of 3") != NULL,
                   "rank %u waits for rank 1 and is told: %s", r, message[r]);
        case_expect(run, rank_status(&on[r], &sum, words[r], 9), HAL_ERROR_TIMEOUT, "rank 1 of 3",
                    r == 1 ? "the late rank" : "a later collective");
    }
    return true;
}

/* A rank that does not come is named by all others when the time limit has passed. */
static void rank_stays_away(case_run *run, const void *parameters)
{
    uint64_t limit_ns = UINT64_C(50000000);
    for (; !late_is_rank_1(run, limit_ns); limit_ns *= 8) {
        case_check(run, limit_ns < UINT64_C(10000000000),
                   "with a time limit of %llu ms the late rank is not rank 1",
                   (unsigned long long)limit_ns / 1000000);
    }
}

/* After an abort the queues continue to work, and the ranks can form another communicator. */
static void aborted(case_run *run, const void *parameters)
{
    enum { RANKS = 2 };
    static const hal_collective sum = {.kind = HAL_COLLECTIVE_ALL_REDUCE, .type = HAL_TYPE_U32};
    collective_rank on[RANKS], again[RANKS];
    local_ranks(run, RANKS, time_limit_ns, on);
    hal_buffer *words = words_create(run, on[0].queue, 9, 5, 1);
    case_ok(
        run,
        hal_queue_collective(on[0].queue, on[0].comm, &sum, range_of(words), range_of(words), 9),
        "hal_queue_collective");
    case_expect(run, hal_queue_wait(on[0].queue, 1000000), HAL_ERROR_TIMEOUT, "not reached",
                "a wait without the other rank");
    case_ok(run, hal_comm_abort(on[1].comm, "enough"), "hal_comm_abort");
    case_expect(run, hal_queue_wait(on[0].queue, HAL_WAIT_FOREVER), HAL_ERROR_INVALID_STATE,
                "rank 1 of 2: enough", "a wait after the abort");
    words_check(run, on[0].queue, words, 9, 5, 1, "what no rank may change");
    local_ranks(run, RANKS, time_limit_ns, again);
    const group_parameters p = {.length = 4, .most = 1000};
    random_state random = {run->seed};
    for (uint32_t r = 0; r < RANKS; r++) {
        again[r].queue = on[r].queue;
    }
    sequence_run(run, again, RANKS, &p, &random);
}

/* A thousand communicators leave no memory, no file and no queue behind. */
static void many_groups(case_run *run, const void *parameters)
{
    enum { RANKS = 3, TIMES = 1000 };
    hal_queue *queues[RANKS];
    hal_memory_statistics before, after;
    random_state random = {run->seed};
    const int first_file = dup(STDERR_FILENO);
    close(first_file);
    for (uint32_t r = 0; r < RANKS; r++) {
        queues[r] = case_queue(run, run->device);
    }
    case_ok(run, hal_device_get_memory(run->device, &before), "hal_device_get_memory");
    for (uint32_t i = 0; i < TIMES; i++) {
        const size_t objects = run->object_count;
        hal_device *devices[RANKS] = {run->device, run->device, run->device};
        hal_comm *comms[RANKS];
        collective_rank on[RANKS];
        case_ok(run, hal_comm_create_local(devices, RANKS, 0, comms), "hal_comm_create_local");
        for (uint32_t r = 0; r < RANKS; r++) {
            case_own(run, release_group, comms[r]);
            on[r] = collective_rank_of(run, comms[r], queues[r]);
        }
        if (i % 10 == 0) {
            const group_parameters p = {.length = 1, .most = 100};
            sequence_run(run, on, RANKS, &p, &random);
        }
        case_release(run, objects);
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        case_ok(run, hal_queue_wait(queues[r], HAL_WAIT_FOREVER), "hal_queue_wait");
    }
    case_ok(run, hal_device_get_memory(run->device, &after), "hal_device_get_memory");
    case_check(run, after.in_use_bytes == before.in_use_bytes, "%llu bytes more are in use",
               (unsigned long long)(after.in_use_bytes - before.in_use_bytes));
    const int last_file = dup(STDERR_FILENO);
    close(last_file);
    case_check(run, last_file == first_file, "files stay open: descriptor %d instead of %d",
               last_file, first_file);
}

void cases_hal_comm(case_list *list)
{
    static const disagreement disagreements[] = {
        {"kind", {.kind = HAL_COLLECTIVE_REDUCE_SCATTER, .type = HAL_TYPE_U32}, 400},
        {"reduction", {.reduction = HAL_REDUCE_MAX, .type = HAL_TYPE_U32}, 400},
        {"type", {.type = HAL_TYPE_I32}, 400},
        {"count", {.type = HAL_TYPE_U32}, 399},
    };
    for (uint32_t ranks = 1; ranks <= MOST_RANKS; ranks++) {
#ifdef CASE_SANITIZED
        const group_parameters p = {ranks, 2, 8, 50000, false};
#else
        const group_parameters p = {ranks, 2, 8, 500000, false};
#endif
        case_add(list, on_one_thread, &p, sizeof p, "communicator/thread ranks=%u", ranks);
    }
    for (uint32_t ranks = 2; ranks <= MOST_RANKS; ranks += 3) {
#ifdef CASE_SANITIZED /* races do not depend on the number of elements */
        const group_parameters p = {ranks, 2, 8, 20000, false};
#else
        const group_parameters p = {ranks, 3, 8, 200000, false};
#endif
        case_add(list, on_threads, &p, sizeof p, "communicator/threads ranks=%u", ranks);
        case_add(list, in_a_graph, &ranks, sizeof ranks, "communicator/graph ranks=%u", ranks);
    }
    const group_parameters spread = {0, 3, 12, 200000, true};
    case_add(list, on_one_thread, &spread, sizeof spread, "communicator/devices thread");
    case_add(list, on_threads, &spread, sizeof spread, "communicator/devices threads");
    case_add(list, on_two_queues, NULL, 0, "communicator/two_queues");
    for (size_t i = 0; i < sizeof disagreements / sizeof *disagreements; i++) {
        case_add(list, ranks_disagree, &disagreements[i], sizeof *disagreements,
                 "communicator/disagree on=%s", disagreements[i].name);
    }
    case_add(list, rank_stays_away, NULL, 0, "communicator/late");
    case_add(list, aborted, NULL, 0, "communicator/abort");
    case_add(list, many_groups, NULL, 0, "communicator/many");
}

/* Many sequences of small collectives over random divisions. */
void cases_hal_comm_stress(case_list *list)
{
    const group_parameters thread = {5, 10000, 2, 200, false}, threads = {4, 2500, 2, 200, false};
    case_add(list, on_one_thread, &thread, sizeof thread, "communicator/sequences thread");
    case_add(list, on_threads, &threads, sizeof threads, "communicator/sequences threads");
}
