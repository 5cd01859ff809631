/* Deliberately wrong plugins: each is the cpu plugin with one fault, by plugins/wrap.h. The file
 * hal_mutant_NAME.so has the fault NAME; they are all the same object under other names. Whoever
 * passes the digits demo and nearly all of hal-conformance with one of them has found out nothing:
 * mutants.txt says which case finds it. Those without a fault of the same make have to pass all.
 *
 * One table for each subject: batch.c, order.c, memory.c, kernel.c, arithmetic.c, gemm.c. */
#ifndef TESTS_MUTANTS_MUTANT_H
#define TESTS_MUTANTS_MUTANT_H

#include "wrap.h"

/* What a fault alters; what is null stays as it is. */
typedef struct mutant {
    const char *name;                                /* null behind the last one of a table */
    void (*table)(hal_plugin *table);                /* entries */
    void (*batch)(wrap_batch *batch);                /* each batch that is submitted */
    void (*ir)(wrap_ir *ir);                         /* each kernel that is made */
    void (*gemm)(hal_gemm_description *description); /* each product that is made */
} mutant;

/* Records and constants that `ir` may insert for each record that there was. */
#define MUTANT_ROOM 8u

extern const mutant mutants_batch[], mutants_order[], mutants_memory[], mutants_kernel[],
    mutants_arithmetic[], mutants_gemm[];

#endif
