/* Communicators from the environment of a launcher. On one host the id follows from what the
 * launcher calls the job, so no message is needed; between hosts the ranks are those of MPI. Called
 * by programs through hal/comm.h. */
#include "comm.h"

#include "base/cancel.h"
#include "base/platform.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

/* The variables of a launcher. `local` is the number of ranks on this host, `hosts` the number of
 * hosts; `job` names the job and `part` one start of it. `mpi` is the MPI library that it starts,
 * null for any; a launcher without `has_mpi` starts none. */
typedef struct launcher {
    const char *name, *rank, *count, *local, *hosts, *job, *part, *mpi;
    bool has_mpi;
} launcher;

static const launcher launchers[] = {
    {.name = "mpirun of Open MPI",
     .rank = "OMPI_COMM_WORLD_RANK",
     .count = "OMPI_COMM_WORLD_SIZE",
     .local = "OMPI_COMM_WORLD_LOCAL_SIZE",
     .job = "PMIX_NAMESPACE",
     .part = "OMPI_MCA_ess_base_jobid",
     .mpi = "openmpi",
     .has_mpi = true},
    {.name = "torchrun",
     .rank = "RANK",
     .count = "WORLD_SIZE",
     .local = "LOCAL_WORLD_SIZE",
     .job = "TORCHELASTIC_RUN_ID",
     .part = "MASTER_PORT"},
    {.name = "mpirun of MPICH",
     .rank = "PMI_RANK",
     .count = "PMI_SIZE",
     .local = "MPI_LOCALNRANKS",
     .hosts = "SLURM_STEP_NUM_NODES", /* of srun --mpi=pmi2, which sets no MPI_LOCALNRANKS */
     .job = "PMI_JOBID",
     .part = "HYDI_CONTROL_FD",
     .mpi = "mpich",
     .has_mpi = true},
    {.name = "srun",
     .rank = "SLURM_PROCID",
     .count = "SLURM_NTASKS",
     .local = "SLURM_NTASKS_PER_NODE",
     .hosts = "SLURM_STEP_NUM_NODES",
     .job = "SLURM_JOB_ID",
     .part = "SLURM_STEP_ID",
     .has_mpi = true},
};

static bool number_parse(const char *text, uint32_t *number)
{
    char *end = NULL;
    const unsigned long value = text && *text ? strtoul(text, &end, 10) : 0;
    *number = (uint32_t)value;
    return end && *end == 0 && *text >= '0' && *text <= '9' && value <= UINT32_MAX;
}

/* The id of the next communicator of a job. Every process creates its communicators in the same
 * order. */
static hal_comm_id job_id(const char *job)
{
    static _Atomic uint32_t group_count;
    char text[512];
    hal_comm_id id;
    snprintf(text, sizeof text, "%.400s/%u/%u", job, (unsigned)geteuid(),
             atomic_fetch_add(&group_count, 1));
    for (uint64_t i = 0; i < 2; i++) {
        const XXH128_hash_t hash = XXH3_128bits_withSeed(text, strlen(text), i);
        memcpy(id.bytes + 16 * i, &hash.low64, 8);
        memcpy(id.bytes + 16 * i + 8, &hash.high64, 8);
    }
    return id;
}

/* HAL_COMM=RANK/COUNT:NAME */
static hal_status read_own(const char *value, hal_comm_options *options)
{
    char text[256];
    snprintf(text, sizeof text, "%s", value);
    char *count = strchr(text, '/'), *name = count ? strchr(count, ':') : NULL;
    if (name) {
        *count++ = 0;
        *name++ = 0;
    }
    if (!name || !*name || !number_parse(text, &options->rank) ||
        !number_parse(count, &options->count)) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_comm_create_from_environment: HAL_COMM: expected RANK/COUNT:NAME, "
                        "such as 0/2:job1, got \"%s\"",
                        value);
    }
    options->id = job_id(name);
    return HAL_OK;
}

static hal_status launcher_read(const launcher *from, hal_comm_options *options)
{
    const char *job = secure_getenv(from->job), *part = secure_getenv(from->part);
    char name[400];
    if (!number_parse(secure_getenv(from->rank), &options->rank) ||
        !number_parse(secure_getenv(from->count), &options->count)) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_comm_create_from_environment: %s and %s: expected numbers, as %s "
                        "sets them, got \"%s\" and \"%s\"",
                        from->rank, from->count, from->name, secure_getenv(from->rank),
                        secure_getenv(from->count) ? secure_getenv(from->count) : "");
    }
    /* Processes that one launcher has started have one parent, which tells starts apart. */
    snprintf(name, sizeof name, "%s/%.150s/%.150s/%ld", from->name, job ? job : "",
             part ? part : "", job ? 0L : (long)getppid());
    options->id = job_id(name);
    return HAL_OK;
}

/* Whether not all ranks are on this host. */
static bool launcher_has_hosts(const launcher *from, uint32_t count)
{
    uint32_t local_count = 0, host_count = 0;
    const bool has_local = number_parse(secure_getenv(from->local), &local_count);
    const bool has_hosts = from->hosts && number_parse(secure_getenv(from->hosts), &host_count);
    return (has_local && local_count < count) || (has_hosts && host_count > 1);
}

/* HAL_COMM_TRANSPORT=shared, mpi or mpi:LIBRARY; unset: what the launcher needs. */
static hal_status backend_choose(const launcher *from, uint32_t count, bool *is_mpi,
                                 hal_mpi_choice *choice)
{
    const char *backend = secure_getenv("HAL_COMM_TRANSPORT");
    backend = backend ? backend : "";
    *is_mpi = strncmp(backend, "mpi", 3) == 0 && (backend[3] == 0 || backend[3] == ':');
    choice->is_named = *is_mpi && backend[3] == ':';
    choice->library = choice->is_named ? backend + 4 : from ? from->mpi : NULL;
    if (!*is_mpi && *backend && strcmp(backend, "shared") != 0) {
        return hal_fail(
            HAL_ERROR_INVALID_ARGUMENT,
            "hal_comm_create_from_environment: HAL_COMM_TRANSPORT: expected shared, mpi "
            "or mpi:LIBRARY, got \"%s\"",
            backend);
    }
    if (!from && *is_mpi) {
        return hal_fail(
            HAL_ERROR_UNSUPPORTED,
            "hal_comm_create_from_environment: HAL_COMM_TRANSPORT: expected \"%s\" with "
            "a launcher of MPI, got no variables of a launcher",
            backend);
    }
    if (from && !*backend && launcher_has_hosts(from, count)) {
        *is_mpi = true;
    }
    if (from && *is_mpi && !from->has_mpi) {
        return hal_fail(HAL_ERROR_UNSUPPORTED,
                        "hal_comm_create_from_environment: expected all %u ranks on one host, or "
                        "a launcher of MPI instead of %s",
                        count, from->name);
    }
    return HAL_OK;
}

static hal_status group_create_by_mpi(hal_device *device, const hal_comm_options *options,
                                      hal_mpi_choice choice, hal_comm **comm)
{
    static const char function[] = "hal_comm_create_from_environment";
    const uint64_t limit = options->time_limit_ns ? options->time_limit_ns : HAL_COMM_TIME_LIMIT_NS;
    hal_transport *transport = NULL;
    hal_mailbox *mailbox = NULL;
    if (options->count > HAL_COMM_MAX_RANKS) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT, "%s: count: expected 1 to %u ranks, got %u",
                        function, HAL_COMM_MAX_RANKS, options->count);
    }
    hal_status status = hal_comm_check_device(device, function);
    if (status == HAL_OK) {
        status =
            hal_transport_join(options->rank, options->count, choice, limit, function, &transport);
    }
    if (status == HAL_OK) {
        status = hal_mailbox_create_linked(transport, function, &mailbox);
    }
    if (status == HAL_OK) {
        status =
            hal_comm_make(device, mailbox, options->rank, options->count, limit, function, comm);
    }
    return status == HAL_OK ? hal_comm_start(comm, 1, function) : status;
}

hal_status hal_comm_create_from_environment(hal_device *device, uint64_t time_limit_ns,
                                            hal_comm **comm)
{
    HAL_UNCANCELLED;
    hal_comm_options options = {.count = 1, .time_limit_ns = time_limit_ns};
    const char *own = secure_getenv("HAL_COMM");
    hal_mpi_choice choice = {0};
    const launcher *from = NULL;
    bool is_mpi = false;
    if (!comm) {
        return hal_null_argument("hal_comm_create_from_environment", "comm");
    }
    *comm = NULL;
    if (own && *own) {
        HAL_TRY(read_own(own, &options));
    } else if (!hal_process_is_secure()) {
        for (size_t i = 0; !from && i < sizeof launchers / sizeof *launchers; i++) {
            if (secure_getenv(launchers[i].rank) && secure_getenv(launchers[i].count)) {
                from = &launchers[i];
            }
        }
        if (from) {
            HAL_TRY(launcher_read(from, &options));
        }
    }
    HAL_TRY(backend_choose(from, options.count, &is_mpi, &choice));
    return from && is_mpi && options.count > 1 ? group_create_by_mpi(device, &options, choice, comm)
                                               : hal_comm_create(device, &options, comm);
}
