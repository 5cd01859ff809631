/* Communicators: ranks that exchange data, each with a device. The ranks are devices of one
 * process, processes of one host, or processes of several hosts; a device may serve several ranks.
 *
 * A collective is recorded on a queue like a command and takes effect in the queue's order. Every
 * rank of the communicator records the same collectives in the same order. No thread of hal works
 * on it: a rank's part advances in flushes and waits of any queue of its process, so a rank that
 * stays away from hal keeps the others waiting, up to the communicator's time limit.
 *
 * Sums are added in the order of the ranks, unless the program allows any. The bits of a result
 * then depend on the inputs and the number of ranks only, not on timing, sizes of pieces, or where
 * the ranks are.
 *
 * A failure of one rank ends the communicator on all ranks: their collectives in flight fail with
 * the rank's status and message, later ones at once. Other work of their queues continues.
 *
 * docs/communicators.md describes algorithms, failures and launchers. */
#ifndef HAL_COMM_H
#define HAL_COMM_H

#include <hal/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAL_COMM_MAX_RANKS 128u
#define HAL_COMM_TIME_LIMIT_NS \
    UINT64_C(60000000000) /* of a communicator whose limit is given as 0
                                                      * */

/* One rank of a communicator. */
typedef struct hal_comm hal_comm;

/* Names a communicator that is about to be created. Plain bytes, to be sent to the other ranks by
 * any means. */
typedef struct hal_comm_id {
    uint8_t bytes[32];
} hal_comm_id;

typedef struct hal_comm_options {
    hal_comm_id id;         /* of hal_comm_id_create; the same on all ranks, used once */
    uint32_t rank;          /* of the caller, below `count` */
    uint32_t count;         /* of ranks, at most HAL_COMM_MAX_RANKS */
    uint64_t time_limit_ns; /* for a rank that others wait for; 0: HAL_COMM_TIME_LIMIT_NS */
} hal_comm_options;

/* Floats narrower than 32 bits are reduced in F32, integers in 32 bits at least, and rounded or
 * narrowed once at the end. */
typedef struct hal_collective {
    uint32_t kind;       /* HAL_COLLECTIVE_ALL_REDUCE ... */
    uint32_t reduction;  /* HAL_REDUCE_SUM ...; of the kinds that reduce */
    uint32_t root;       /* of HAL_COLLECTIVE_BROADCAST, HAL_COLLECTIVE_REDUCE and
                          * HAL_COLLECTIVE_EXCHANGE */
    hal_type type;       /* of the elements, any type of hal */
    uint8_t any_order;   /* 1: sums and means of floats may be added in any order, and narrow floats
                          * rounded after each addition, so that a backend of the devices' vendor
                          * can compute them; the bits then depend on it */
    uint8_t reserved[2]; /* 0 */
} hal_collective;

typedef struct hal_comm_status {
    hal_status status;     /* of the communicator: HAL_OK until a rank failed */
    uint32_t failed_rank;  /* the first that failed, if status is not HAL_OK */
    const char *message;   /* of the failure, with the rank; "" if there is none */
    const char *backend;    /* moves the data: "none" (one rank), "host" (memory of the process),
                            * "shared" (memory shared between processes), "mpi", or a backend of
                            * the devices, such as "nccl", which leaves some collectives to hal */
    uint32_t rank, count;  /* of the caller; of the communicator */
    uint64_t completed;    /* steps that this rank has received, and collectives of a backend; a
                            * collective has one or more steps */
    uint8_t deterministic; /* 1: all sums so far were added in the order of the ranks */
    uint8_t reserved[7];   /* 0 */
} hal_comm_status;

/* Makes an id that no other communicator has.
 * Threads: any. Errors: INVALID_ARGUMENT, IO if the system has no random numbers. */
HAL_API hal_status hal_comm_id_create(HAL_OUT hal_comm_id *id);

/* Creates the caller's rank of a communicator of processes on one host, and waits for the other
 * ranks. With a count of 1 the id is not used.
 * Ownership: the caller's, until hal_comm_destroy. Threads: any.
 * Errors: INVALID_ARGUMENT for a rank that exists already or a count that differs, TIMEOUT with the
 * ranks that did not come, UNSUPPORTED without shared memory, OUT_OF_MEMORY, IO. */
HAL_API hal_status hal_comm_create(hal_device *device, const hal_comm_options *options,
                                   HAL_OUT hal_comm **comm);

/* Creates all ranks of a communicator within this process: rank i, on devices[i], is comms[i]. A
 * device may occur more than once. Ranks may be used by one thread or by one thread each.
 * Ownership: the communicators are the caller's. Threads: any. Errors: INVALID_ARGUMENT,
 * OUT_OF_MEMORY. */
HAL_API hal_status hal_comm_create_local(hal_device *const *devices, uint32_t count,
                                         uint64_t time_limit_ns, HAL_OUT hal_comm **comms);

/* Creates the caller's rank of the communicator of all processes that a launcher started. Rank,
 * count and id come from the environment: HAL_COMM (RANK/COUNT:NAME), mpirun of Open MPI and MPICH,
 * torchrun, srun. Without any of them the communicator has one rank. Ranks on several hosts use
 * MPI, which the first such call starts unless the program has; HAL_COMM_TRANSPORT=mpi uses it on
 * one host. Ownership, Threads: as hal_comm_create; over MPI one thread at a time. Errors: those of
 * hal_comm_create; INVALID_ARGUMENT for variables that cannot be read, UNSUPPORTED for ranks on
 * several hosts without the MPI library of the launcher, for HAL_COMM_TRANSPORT=mpi without a
 * launcher or without the library that it names, and in a fork of the process that started MPI. */
HAL_API hal_status hal_comm_create_from_environment(hal_device *device, uint64_t time_limit_ns,
                                                    HAL_OUT hal_comm **comm);

/* Divides a communicator: ranks with equal colors form a new communicator, in the order of `keys`,
 * then of the old ranks. `comms` are the ranks of the communicator that the calling thread uses,
 * usually one; a thread that uses all ranks of a local communicator passes all of them. A negative
 * color gives null. Waits until all ranks of the communicator have called it. The old communicator
 * stays. Ownership: the new communicators are the caller's. Threads: those of the communicators.
 * Errors: as hal_comm_create, and the status of a communicator that failed. */
HAL_API hal_status hal_comm_split(hal_comm *const *comms, uint32_t count, const int32_t *colors,
                                  const int32_t *keys, HAL_OUT hal_comm **split);

/* Ends the communicator on all ranks: collectives in flight and later ones fail with INVALID_STATE
 * and `reason`, which may be null.
 * Threads: any.
 * Errors: INVALID_ARGUMENT for a null communicator, INVALID_STATE in a fork of the process. */
HAL_API hal_status hal_comm_abort(hal_comm *comm, const char *reason);

/* Returns the state of the communicator without waiting.
 * Ownership: strings are the communicator's. Threads: any.
 * Errors: INVALID_ARGUMENT, INVALID_STATE in a fork of the process. */
HAL_API hal_status hal_comm_get_status(hal_comm *comm, HAL_OUT hal_comm_status *status);

/* Writes what would move the data of a communicator of several devices like this one, for people:
 * such as "nccl: NCCL 2.27.3", or "host" and the reason why the devices' own library is not used.
 * `bytes` is the size of `text`, whose end is cut off if it is longer. May load that library.
 * Threads: any. Errors: INVALID_ARGUMENT, INVALID_STATE in a fork of the process, DEVICE_LOST. */
HAL_API hal_status hal_comm_get_backend(hal_device *device, uint64_t bytes, HAL_OUT char *text);

/* Leaves the communicator. Collectives in flight go on; the other ranks fail only if they wait for
 * one that this rank never recorded. Null is allowed.
 * Threads: any, when no other thread uses the rank. Errors: none. */
HAL_API void hal_comm_destroy(hal_comm *comm);

/* Records a collective over `count` elements, see hal_collective_kind, on a queue of the rank's
 * device. It comes after earlier commands of the queue and before later ones; the batch is flushed.
 * Within a graph it is recorded by each launch instead. The other arguments must be the same on all
 * ranks, except `root` of an exchange.
 * `send` and `recv` hold at least the elements of the kind, at an offset that is a multiple of the
 * element's size; a range that the rank does not need may be {0}. They do not overlap, unless recv
 * is the place of the result within send, or send its place within recv (all_reduce, broadcast,
 * reduce: the same place; all_gather: send is part `rank` of recv; reduce_scatter: recv is part
 * `rank` of send).
 * Between processes on a backend of the devices' vendor the call waits while 8 of the rank's
 * collectives are in flight there.
 * Ownership: buffers and communicator are kept alive. Threads: the queue's, one thread per rank at
 * a time. Errors: INVALID_ARGUMENT, UNSUPPORTED for a type that the device cannot reduce,
 * OUT_OF_MEMORY and errors of kernels before anything is recorded: the other ranks wait for this
 * one until their time limit, unless the program records the call again or aborts the communicator.
 * The status of a communicator that failed. A failure of recorded work ends the communicator. */
HAL_API hal_status hal_queue_collective(hal_queue *queue, hal_comm *comm,
                                        const hal_collective *collective, hal_range send,
                                        hal_range recv, uint64_t count);

#ifdef __cplusplus
}
#endif
#endif
