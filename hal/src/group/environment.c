/* Groups from the environment of a launcher. The id follows from what the launcher calls the job,
 * so no message is needed on one host. Called by programs through hal/group.h. */
#include "group.h"

#include "base/platform.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

/* The variables of a launcher. `local` is the number of ranks on this host; `job` names the job and
 * `part` one start of it. */
typedef struct launcher {
    const char *name, *rank, *count, *local, *job, *part;
} launcher;

static const launcher launchers[] = {
    {"mpirun of Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID", "MASTER_PORT"},
    {"mpirun of MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "PMI_JOBID", "HYDI_CONTROL_FD"},
    {"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE", "SLURM_JOB_ID",
     "SLURM_STEP_ID"},
};

static int number_parse(const char *text, uint32_t *number)
{
    char *end = NULL;
    const unsigned long value = text && *text ? strtoul(text, &end, 10) : 0;
    *number = (uint32_t)value;
    return end && *end == 0 && *text >= '0' && *text <= '9' && value <= UINT32_MAX;
}

/* The id of the next group of a job. Every process creates its groups in the same order. */
static hal_group_id job_id(const char *job)
{
    static _Atomic uint32_t group_count;
    char text[512];
    hal_group_id id;
    snprintf(text, sizeof text, "%.400s/%u/%u", job, (unsigned)geteuid(),
             atomic_fetch_add(&group_count, 1));
    for (uint64_t i = 0; i < 2; i++) {
        const XXH128_hash_t hash = XXH3_128bits_withSeed(text, strlen(text), i);
        memcpy(id.bytes + 16 * i, &hash.low64, 8);
        memcpy(id.bytes + 16 * i + 8, &hash.high64, 8);
    }
    return id;
}

/* HAL_GROUP=RANK/COUNT:NAME */
static hal_status read_own(const char *value, hal_group_options *options)
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
                        "hal_group_create_from_environment: HAL_GROUP: expected RANK/COUNT:NAME, "
                        "such as 0/2:job1, got \"%s\"",
                        value);
    }
    options->id = job_id(name);
    return HAL_OK;
}

static hal_status read_launcher(const launcher *from, hal_group_options *options)
{
    const char *job = secure_getenv(from->job), *part = secure_getenv(from->part);
    const char *local = secure_getenv(from->local);
    uint32_t local_count = 0;
    char name[400];
    if (!number_parse(secure_getenv(from->rank), &options->rank) ||
        !number_parse(secure_getenv(from->count), &options->count)) {
        return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "hal_group_create_from_environment: %s and %s: expected numbers, as %s "
                        "sets them, got \"%s\" and \"%s\"",
                        from->rank, from->count, from->name, secure_getenv(from->rank),
                        secure_getenv(from->count) ? secure_getenv(from->count) : "");
    }
    if (number_parse(local, &local_count) && local_count < options->count) {
        return hal_fail(HAL_ERROR_UNSUPPORTED,
                        "hal_group_create_from_environment: %s: expected all %u ranks on one "
                        "host, got %u",
                        from->local, options->count, local_count);
    }
    /* Processes that one launcher has started have one parent, which tells starts apart. */
    snprintf(name, sizeof name, "%s/%.150s/%.150s/%ld", from->name, job ? job : "",
             part ? part : "", job ? 0L : (long)getppid());
    options->id = job_id(name);
    return HAL_OK;
}

hal_status hal_group_create_from_environment(hal_device *device, uint64_t time_limit_ns,
                                             hal_group **group)
{
    hal_group_options options = {.count = 1, .time_limit_ns = time_limit_ns};
    const char *own = secure_getenv("HAL_GROUP");
    hal_status status = HAL_OK;
    if (own && *own) {
        status = read_own(own, &options);
    } else if (!hal_process_is_secure()) {
        for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
            if (secure_getenv(launchers[i].rank) && secure_getenv(launchers[i].count)) {
                status = read_launcher(&launchers[i], &options);
                break;
            }
        }
    }
    return status == HAL_OK ? hal_group_create(device, &options, group) : status;
}
