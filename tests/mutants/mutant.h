/* Deliberately wrong plugins: each is the cpu plugin with one fault, by plugins/wrap.h. The file
 * hal_mutant_NAME.so has the fault NAME; all are copies of one object. With each of them the digits
 * demo and nearly all cases of hal-conformance pass; mutants.txt says which case finds the fault.
 * The mutants without a fault pass all cases.
 *
 * One table for each subject: batch.c, order.c, memory.c, mapping.c, kernel.c,
 * arithmetic.c, values.c, control.c, gemm.c, threaded.c, process.c, kinds.c, failures.c,
 * external.c, foreign.c, commands.c, leaks.c, left.c, claims.c, joined.c, seldom.c,
 * families.c, pairs.c, authors.c. */
#ifndef TESTS_MUTANTS_MUTANT_H
#define TESTS_MUTANTS_MUTANT_H

#include "wrap.h"

/* What a fault alters; null: nothing. */
typedef struct mutant {
    const char *name;                 /* null at the end of a table */
    void (*table)(wrap_table *table); /* entries */
    void (*batch)(wrap_batch *batch); /* each batch that is submitted */
    void (*ir)(wrap_ir *ir);          /* each kernel that is created */
    /* Each record of a kernel with that opcode and, unless NONE, that type; returns the last record
     * that it made or altered. */
    uint32_t (*record)(wrap_ir *ir, uint32_t record);
    uint16_t opcode;
    hal_type type;
    const char *kernel; /* of which `record` alters records; null: of all */
    void (*gemm)(hal_gemm_description *description); /* each matrix product that is created */
    bool is_fresh;                                   /* each query gives another table */
    bool takes_any_major;                            /* of the host */
} mutant;

/* Rows of the tables, by the function that has the name of the fault. RECORD: of an opcode and a
 * type, without their prefixes. */
#define TABLE(fault)                    \
    {                                   \
        .name = #fault, .table = fault, \
    }
#define BATCH(fault)                    \
    {                                   \
        .name = #fault, .batch = fault, \
    }
#define IR(fault)                    \
    {                                \
        .name = #fault, .ir = fault, \
    }
#define RECORD(fault, OPCODE, TYPE)                                                         \
    {                                                                                       \
        .name = #fault, .record = fault, .opcode = HAL_IR_##OPCODE, .type = HAL_TYPE_##TYPE \
    }

/* For faults of two threads in one place: waits until another thread has changed the value, for
 * 20 ms at most; where that was in vain many times, not at all. */
void mutant_await_change(const _Atomic uint64_t *place, uint64_t own);

/* Records and constants that `ir` may insert per record. */
#define MUTANT_ROOM 12u

extern const mutant mutants_batch[], mutants_order[], mutants_memory[], mutants_kernel[],
    mutants_arithmetic[], mutants_gemm[], mutants_threaded[], mutants_values[], mutants_control[],
    mutants_process[], mutants_mapping[], mutants_kinds[], mutants_failures[], mutants_external[],
    mutants_foreign[], mutants_commands[], mutants_leaks[], mutants_left[], mutants_claims[],
    mutants_authors[], mutants_joined[], mutants_seldom[], mutants_families[], mutants_pairs[];

#endif
