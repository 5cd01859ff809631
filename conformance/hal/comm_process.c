/* comm_process.c: communicators of processes: their collectives, and what the others learn when a
 * process is killed or its device fails at any step. Each case forks in a process without open
 * devices. */
#include <hal/hal.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "case/cases.h"
#include "case/child.h"
#include "hal/collective.h"
#include "hal/fixture.h"

/* MANY elements are read from the memory of the other processes. */
enum { MOST_RANKS = 8, STEPS = 12, NEVER = 1000, FEW = 500, MANY = 700000 };

/* Nothing fails in the process of the case itself; its children choose their own faults. */
static const char *const no_fault = "wait:4000000000";

typedef struct process_parameters {
    uint32_t ranks, sequences, length;
    uint32_t more;       /* elements of a random collective than it would have */
    uint32_t kill_at;    /* step at which rank 1 is killed; NEVER: not */
    uint32_t count;      /* elements of a collective until then; 0: FEW */
    uint32_t fault_at;   /* submission of rank 1 that fails; 0: none */
    bool by_environment; /* the communicator comes from HAL_COMM */
} process_parameters;

typedef struct process_job {
    const case_run *outer;
    const process_parameters *p;
    hal_comm_id id;
    uint32_t rank;
} process_job;

typedef struct process_result {
    bool passed;
    char detail[600];
} process_result;

static void release_group(void *comm)
{
    hal_comm_destroy(comm);
}

static uint64_t limit_of(const process_parameters *p)
{
    return p->kill_at == 0 ? UINT64_C(1000000000) : UINT64_C(60000000000);
}

/* Opens the device in the new process and joins the communicator. */
static hal_status rank_open(case_run *run, const process_job *job, collective_rank *on)
{
    const process_parameters *p = job->p;
    hal_comm *comm = NULL;
    hal_status status;
    char text[64];
    unsetenv("HAL_LAYERS");
    if (p->fault_at > 0 && job->rank == 1) {
        snprintf(text, sizeof text, "submit:%u", p->fault_at);
        setenv("HAL_LAYERS", "fault", 1);
        setenv("HAL_FAULT", text, 1);
    }
    device_open_here(run);
    if (p->by_environment) {
        snprintf(text, sizeof text, "%u/%u:case-%ld", job->rank, p->ranks, (long)getppid());
        setenv("HAL_COMM", text, 1);
        status = hal_comm_create_from_environment(run->device, limit_of(p), &comm);
    } else {
        const hal_comm_options options = {job->id, job->rank, p->ranks, limit_of(p)};
        status = hal_comm_create(run->device, &options, &comm);
    }
    case_own(run, release_group, comm);
    if (status == HAL_OK) {
        *on = collective_rank_of(run, comm, run->queue);
    }
    return status;
}

/* Random collectives of the communicator and of its parts after random splits. */
static void sequences_run(case_run *run, collective_rank on, const process_parameters *p)
{
    random_state draw = {run->seed};
    for (uint32_t s = 0; s < p->sequences; s++) {
        hal_comm *split = NULL;
        const int32_t color = (int32_t)(random_next(&draw) >> (2 * on.rank) & 1);
        const int32_t key = -(int32_t)on.rank;
        const uint64_t seed = random_next(&draw);
        for (uint32_t i = 0; i < p->length; i++) {
            collective is = collective_random(&draw, run->info, on.ranks, 400000);
            is.count += p->more;
            collective_flight flight = collective_start(&on, &is);
            collective_finish(&flight);
        }
        case_ok(run, hal_comm_split(&on.comm, 1, &color, &key, &split), "hal_comm_split");
        collective_rank part = collective_rank_of(run, split, run->queue);
        random_state random = {seed + (uint64_t)color};
        for (uint32_t i = 0; i < p->length; i++) {
            collective is = collective_random(&random, run->info, part.ranks, 400000);
            is.count += p->more;
            collective_flight flight = collective_start(&part, &is);
            collective_finish(&flight);
        }
        hal_comm_destroy(split);
    }
}

static void rank_sequences(case_run *run, const void *parameters)
{
    const process_job *job = parameters;
    collective_rank on;
    case_ok(run, rank_open(run, job, &on), "creating the communicator");
    sequences_run(run, on, job->p);
}

/* This process is a rank of the communicator that a launcher started; without one it is the only
 * rank. */
static void launched(case_run *run, const void *parameters)
{
    hal_comm *comm = NULL;
    case_ok(run, hal_comm_create_from_environment(run->device, 0, &comm),
            "hal_comm_create_from_environment");
    case_own(run, release_group, comm);
    sequences_run(run, collective_rank_of(run, comm, run->queue), parameters);
}

/* Whether a failure is rank 1's. Before the communicator exists other ranks may be late as well. */
static bool message_names_rank_1(const char *message, const process_parameters *p)
{
    const char *missing = strstr(message, "missing are ranks");
    return p->kill_at == 0 ? missing && strstr(missing, " 1") != NULL
                           : strstr(message, "rank 1 of") != NULL;
}

/* Collectives until one fails. Every rank but the one that ends has to be told of rank 1. */
static void rank_until_failure(case_run *run, const void *parameters)
{
    static const uint32_t kinds[] = {HAL_COLLECTIVE_ALL_REDUCE, HAL_COLLECTIVE_BROADCAST,
                                     HAL_COLLECTIVE_ALL_GATHER, HAL_COLLECTIVE_REDUCE};
    const process_job *job = parameters;
    const process_parameters *p = job->p;
    const uint64_t count = p->count > 0 ? p->count : FEW;
    collective_rank on;
    hal_status status = HAL_OK;
    if (job->rank == 1 && p->kill_at == 0) {
        kill(getpid(), SIGKILL);
    }
    status = rank_open(run, job, &on);
    hal_buffer *send = case_buffer(run, run->device, HAL_MEMORY_DEVICE, 4 * count);
    hal_buffer *recv = case_buffer(run, run->device, HAL_MEMORY_DEVICE, 4 * count * p->ranks);
    for (uint32_t step = 1; status == HAL_OK && step < 4 * STEPS; step++) {
        const hal_collective what = {
            .kind = kinds[step / 2 % 4], .type = HAL_TYPE_F32, .root = step / 8 % p->ranks};
        if (job->rank == 1 && p->kill_at == step) {
            kill(getpid(), SIGKILL);
        }
        if (step % 2 == 0) {
            status =
                hal_queue_collective(run->queue, on.comm, &what, (hal_range){send, 0, HAL_WHOLE},
                                     (hal_range){recv, 0, HAL_WHOLE}, count);
        } else {
            status = hal_queue_fill(run->queue, (hal_range){send, 0, HAL_WHOLE}, step);
            status = status == HAL_OK ? hal_queue_wait(run->queue, HAL_WAIT_FOREVER) : status;
        }
    }
    case_check(run, status != HAL_OK, "rank %u was told nothing", job->rank);
    if (job->rank == 1) {
        return;
    }
    case_check(run, message_names_rank_1(hal_status_message(), p),
               "rank %u has %s, expected one that names rank 1: %s", job->rank,
               hal_status_name(status), hal_status_message());
}

static void job_body(void *user, int fd)
{
    const process_job *job = user;
    const bool fails = job->p->kill_at != NEVER || job->p->fault_at > 0;
    case_run run = {
        .selection = job->outer->selection, .name = job->outer->name, .seed = job->outer->seed};
    process_result result = {
        .passed = case_execute(&run, fails ? rank_until_failure : rank_sequences, job)};
    case_release(&run, 0);
    snprintf(result.detail, sizeof result.detail, "%.590s", run.detail);
    child_write(fd, &result, sizeof result);
}

static void processes(case_run *run, const void *parameters)
{
    const process_parameters *p = parameters;
    process_job jobs[MOST_RANKS];
    child children[MOST_RANKS];
    process_result results[MOST_RANKS];
    hal_comm_id id;
    case_ok(run, hal_comm_id_create(&id), "hal_comm_id_create");
    for (uint32_t r = 0; r < p->ranks; r++) {
        jobs[r] = (process_job){run, p, id, r};
        case_check(run, child_start(&children[r], job_body, &jobs[r]), "cannot start a process");
    }
    for (uint32_t r = 0; r < p->ranks; r++) {
        char how[128] = "";
        results[r] = (process_result){0};
        if (!child_read_within(children[r].fd, 120, &results[r], sizeof results[r])) {
            snprintf(results[r].detail, sizeof results[r].detail, "no result");
            results[r].passed = r == 1 && p->kill_at != NEVER;
            child_kill(&children[r]);
        }
        child_finish(&children[r], 20, how, sizeof how);
    }
    for (uint32_t r = 0; r < p->ranks; r++) {
        case_check(run, results[r].passed, "process of rank %u: %s", r, results[r].detail);
    }
}

void cases_hal_comm_process(case_list *list)
{
    for (uint32_t ranks = 2; ranks <= MOST_RANKS; ranks += ranks < 4 ? 1 : 4) {
        const process_parameters p = {
            .ranks = ranks, .sequences = 2, .length = 8, .kill_at = NEVER};
        case_add(list, processes, &p, sizeof p, "communicator/processes ranks=%u", ranks);
        case_has_faults(list, "%s", no_fault);
    }
    const process_parameters launch = {.sequences = 3, .length = 8};
    case_add(list, launched, &launch, sizeof launch, "communicator/launched");
    const process_parameters named = {
        .ranks = 2, .sequences = 1, .length = 4, .kill_at = NEVER, .by_environment = true};
    case_add(list, processes, &named, sizeof named, "communicator/environment");
    case_has_faults(list, "%s", no_fault);
    for (uint32_t step = 0; step < STEPS; step++) {
        const process_parameters p = {.ranks = 3, .kill_at = step};
        case_add(list, processes, &p, sizeof p, "communicator/killed step=%u", step);
        case_has_faults(list, "%s", no_fault);
    }
    const process_parameters large = {
        .ranks = 3, .sequences = 1, .length = 8, .more = MANY, .kill_at = NEVER};
    case_add(list, processes, &large, sizeof large, "communicator/large ranks=3");
    case_has_faults(list, "%s", no_fault);
    for (uint32_t step = 2; step < STEPS; step++) {
        const process_parameters p = {.ranks = 3, .kill_at = step, .count = MANY};
        case_add(list, processes, &p, sizeof p, "communicator/killed large step=%u", step);
        case_has_faults(list, "%s", no_fault);
    }
    for (uint32_t fault = 1; fault <= STEPS; fault++) {
        const process_parameters p = {.ranks = 3, .kill_at = NEVER, .fault_at = fault};
        case_add(list, processes, &p, sizeof p, "communicator/fault submit=%u", fault);
        case_has_faults(list, "%s", no_fault);
    }
}
