/* An NCCL without GPUs, for tests of the cuda plugin over cuda_mock.h: ranks of one process, whose
 * memory is the host's. The end of a unit waits until all ranks have called, and data has moved.
 * Built as libnccl.so.2; nccl_mock.c has it. */
#ifndef TESTS_UNIT_PLUGINS_CUDA_NCCL_MOCK_H
#define TESTS_UNIT_PLUGINS_CUDA_NCCL_MOCK_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { NCCL_MOCK_CALLS = 256 };

enum { /* functions that a test lets fail */
       NCCL_MOCK_ID,
       NCCL_MOCK_INIT,
       NCCL_MOCK_START,
       NCCL_MOCK_CALL, /* ncclAllReduce ... ncclRecv */
       NCCL_MOCK_END,
       NCCL_MOCK_ASK, /* ncclCommGetAsyncError itself */
       NCCL_MOCK_FUNCTIONS
};

enum { /* nccl_mock_call.kind */
       NCCL_MOCK_ALL_REDUCE,
       NCCL_MOCK_REDUCE_SCATTER,
       NCCL_MOCK_REDUCE,
       NCCL_MOCK_ALL_GATHER,
       NCCL_MOCK_BROADCAST,
       NCCL_MOCK_SEND,
       NCCL_MOCK_RECV
};

/* A call of a rank, and its arguments as they came. */
typedef struct nccl_mock_call {
    int kind;
    int rank;
    const void *send;
    void *recv;
    size_t count;
    int type, reduction, root;
    const void *stream;
} nccl_mock_call;

typedef struct nccl_mock {
    nccl_mock_call calls[NCCL_MOCK_CALLS];
    _Atomic uint32_t call_count;
    _Atomic uint32_t ends;  /* of units, with calls or not */
    _Atomic uint32_t units; /* that had calls */
    int version;
    _Atomic int hold; /* communicators are not created */
    _Atomic int
        fails_in[NCCL_MOCK_FUNCTIONS]; /* 1: the next call fails, 2: the one after it, ... */
    _Atomic int fail_with;             /* result of that */
    _Atomic int async_error;           /* what all communicators report of their work; 0: nothing */
    _Atomic int holds_abort;           /* ncclCommAbort waits for its end */
    _Atomic int live, aborted, destroyed;
    _Atomic int misuses; /* calls that NCCL does not allow */
    char misuse[128];    /* the first one */
} nccl_mock;

#define NCCL_MOCK_SYMBOL "nccl_mock_state"

#endif
