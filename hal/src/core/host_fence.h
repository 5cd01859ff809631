/* A gate keeps a batch from the device until the host has done something that no point stands for:
 * data of other ranks of a communicator has arrived. Core polls gates with the held batches
 * (held.c) and knows nothing else of them; hal/src/comm implements them. */
#ifndef HAL_SRC_CORE_GATE_H
#define HAL_SRC_CORE_GATE_H

#include <hal/queue.h>
#include <stdint.h>

typedef struct hal_gate hal_gate;
struct hal_gate {
    /* Does what can be done without a wait and sets `*open` when the batch may be submitted. Called
     * again until it is open or failed; never records commands. Threads: one at a time, no lock is
     * held. Errors: the batch is dropped, and its queue reports the error. */
    hal_status (*advance)(hal_gate *gate, int *open);
    void (*destroy)(hal_gate *gate);
    int is_repeated; /* the poll follows another one at once: no need to read the clock */
    int is_crowded;  /* those that open the gate may need the processor of the waiting thread */
};

static inline void hal_gate_destroy(hal_gate *gate)
{
    if (gate) {
        gate->destroy(gate);
    }
}

/* A call that a graph records in place of a command: it records its own commands and gates each
 * time that the graph is launched. `ranges` are those of the action. */
typedef struct hal_call hal_call;
struct hal_call {
    hal_status (*record)(hal_call *call, hal_queue *queue, const hal_range *ranges);
    void (*destroy)(hal_call *call);
};

#endif
