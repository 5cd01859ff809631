/* Kernels whose accesses are checked, as hal asks for when validation is on: a step before each
 * access sees to it that it lies within its memory. Made by kernel.c, used by lower_memory.c and
 * lanes_check.inl. */
#ifndef HALYARD_CPU_CHECK_H
#define HALYARD_CPU_CHECK_H

#include "kernel.h"

/* What a kernel has to keep of its IR to say where it went astray. */
struct cpu_check {
    hal_ir_record *records;
    hal_ir_memory *memories;
    char *names;
    uint32_t name;
    uint32_t group_size[3];
    _Atomic uint8_t *said; /* of each record: once is enough */
};

/* Whether the host wants kernels checked. */
bool cpu_check_wanted(void);

/* Null when memory is out. */
cpu_check *cpu_check_create(const hal_ir_kernel *ir);
void cpu_check_destroy(cpu_check *check);

/* Bytes of a shared memory. */
uint64_t cpu_check_bytes(const cpu_check *check, uint32_t memory);

#endif
