/* A plain reference interpreter of the IR: one work-item after the other, one record at a time, up
 * to the next barrier. Tests compare faster engines with it, and a new plugin may use it as its
 * engine. Clarity before speed. Needs ir.h, ir_math.h and status.h alone. */
#ifndef PLUGINS_KIT_INTERPRET_H
#define PLUGINS_KIT_INTERPRET_H

#include <hal/ir.h>
#include <hal/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Memory of a binding. `data` may be null when `bytes` is 0. */
typedef struct kit_span {
    void *data;
    uint64_t bytes;
} kit_span;

/* Observes a kernel, and may change values: for debuggers and for tests of tests. `values` are the
 * `width` values that the record made for one work-item; those that a store, an atomic or an
 * asynchronous copy will write; the start of a FOR. Or one truth: the condition of an IF, and 1 for
 * an ELSE that is entered and for a BARRIER that is reached; 0 skips it. */
typedef void (*kit_witness)(void *user, const hal_ir_kernel *kernel, const hal_ir_record *record,
                            uint64_t *values, uint32_t width);

typedef struct kit_dispatch {
    const hal_ir_kernel *kernel; /* verified, no fragment */
    uint32_t grid[3];            /* groups */
    uint32_t subgroup_width;     /* a power of two up to 128; 0: HAL_IR_EMULATED_SUBGROUP */
    const kit_span *bindings;    /* as many as the kernel has */
    const void *scalars;         /* scalar_bytes of them */
    kit_witness witness;         /* null: nobody looks */
    void *witness_user;
} kit_dispatch;

/* What went wrong, where: kernel, record, group and work-item. */
typedef struct kit_problem {
    char text[320];
} kit_problem;

/* Runs every group of the dispatch. Accesses are held to the lengths of bindings and shared arrays,
 * vector accesses to their alignment, loops to steps above 0 that stay within their type; all
 * work-items of a group have to meet at the same barrier; elements of a shared array to which an
 * asynchronous copy is in flight are not accessed.
 * Threads: any, on memory that no other thread writes.
 * Errors: INVALID_ARGUMENT with the problem; OUT_OF_MEMORY. Groups before the failing one have
 * written. */
hal_status kit_interpret(const kit_dispatch *dispatch, kit_problem *problem);

/* Evaluates a verified fragment: the bits of its inputs to the bits of its outputs.
 * Threads: any. Errors: OUT_OF_MEMORY. */
hal_status kit_evaluate(const hal_ir_kernel *fragment, const uint64_t *inputs, uint64_t *outputs);

#ifdef __cplusplus
}
#endif

#endif
