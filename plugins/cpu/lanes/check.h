/* Kernels whose accesses are checked, for hal's validation: a step before each access checks
 * that it is within its memory. */
#ifndef PLUGINS_CPU_LANES_CHECK_H
#define PLUGINS_CPU_LANES_CHECK_H

#include <hal/plugin.h>
#include "lanes/steps.h"

/* The part of a kernel's IR that the messages need. */
typedef struct cpu_check {
    const hal_host *host; /* of the instance, for findings on the threads of the pool */
    hal_ir_record *records;
    hal_ir_memory *memories;
    char *names;
    uint32_t name;
    uint32_t group_size[3];
    _Atomic uint8_t *reported; /* of each record, which is reported once */
} cpu_check;

/* Whether the host wants kernels checked. */
bool cpu_check_wanted(void);

/* Null without memory. */
cpu_check *cpu_check_create(const hal_ir_kernel *ir);
void cpu_check_destroy(cpu_check *check);

/* Bytes of a shared memory. */
uint64_t cpu_check_bytes(const cpu_check *check, uint32_t memory);

/* Reports that a work-item, counted along x, then y, then z, accesses memory outside that of a
 * checking step; `index` is without the access's offset. */
void cpu_check_report(const cpu_worker *worker, const cpu_step *step, uint32_t item, int64_t index);

#endif
