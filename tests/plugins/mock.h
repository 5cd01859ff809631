/* The mock plugin's strings: what a test can ask of it and see of it. A test finds the state with
 * dlopen and dlsym(MOCK_STATE_SYMBOL), see mock_fixture.h. */
#ifndef TESTS_PLUGINS_MOCK_H
#define TESTS_PLUGINS_MOCK_H

#include <hal/plugin.h>
#include <stdatomic.h>

#include "spoil.h"

#define MOCK_STATE_SYMBOL "mock_state_of_plugin"
#define MOCK_DEVICES 4u
#define MOCK_LOGGED 4096u

/* For fail_with: HAL_OK, and no object. */
#define MOCK_NOTHING 1000

enum mock_entry {
    MOCK_ENUMERATE,
    MOCK_DEVICE_OPEN,
    MOCK_MEMORY_INFO,
    MOCK_ALLOCATE,
    MOCK_MAP,
    MOCK_KERNEL,
    MOCK_QUEUE,
    MOCK_SUBMIT,
    MOCK_WAIT,
    MOCK_REACHES,
    MOCK_ORDER,
    MOCK_ENTRIES
};

/* A command as it came in, and the value of its batch. */
typedef struct mock_logged {
    hal_command command;
    hal_binding bindings[3];
    uint32_t pattern; /* the first word of a fill's */
    uint64_t value;
} mock_logged;

typedef struct mock_state {
    /* What a test asks for. */
    uint32_t device_count;
    hal_device_info infos[MOCK_DEVICES];
    _Atomic int fail_in[MOCK_ENTRIES]; /* the n-th call from now on fails; 0: none */
    _Atomic int fail_more;             /* and as many after it */
    _Atomic int fail_with;             /* with this status, or MOCK_NOTHING */
    _Atomic int stall[MOCK_ENTRIES];   /* calls do not return while this is set */
    _Atomic int hold;                  /* submitted work does not begin */
    _Atomic int slow;                  /* it runs late: some time while it is waited for */
    _Atomic uint64_t memory_limit;     /* bytes in all */
    _Atomic int no_words;              /* failures say no sentence */
    _Atomic int stray_words;           /* successes say one */
    _Atomic int reach;                 /* devices reach one another */
    spoil_cell spoil;                  /* what kernels get wrong */

    /* What a test sees. */
    _Atomic uint32_t calls[MOCK_ENTRIES];
    _Atomic int live_devices, live_memories, live_kernels, live_queues;
    _Atomic uint64_t memory_bytes;
    _Atomic int misuses;      /* breaches of the contract by hal */
    char misuse[128];         /* the last one */
    char problem[320];        /* the last one of a kernel that ran, such as a binding too short */
    _Atomic uint32_t waits;   /* for other queues, in all batches */
    _Atomic uint32_t batches; /* submitted */
    _Atomic uint32_t untimed; /* of these, with HAL_BATCH_UNTIMED */
    uint64_t native[3];       /* the last handle that was imported, waited for, blocked */
    uint64_t native_value[2]; /* what its queue had submitted when it was waited for, blocked */
    uint64_t raised[2];       /* the last value of a fence, and what its queue had submitted then */
    _Atomic int live_fences;
    uint32_t logged_count;
    mock_logged logged[MOCK_LOGGED];
    const hal_host *host;
} mock_state;

#endif
