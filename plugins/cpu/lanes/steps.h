/* Steps: the form of a kernel on the cpu plugin. Each step applies one operation to all work-items
 * of a group, one per lane; lanes.inl implements it for each instruction set. */
#ifndef PLUGINS_CPU_LANES_STEPS_H
#define PLUGINS_CPU_LANES_STEPS_H

#include <hal/ir.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CPU_BLOCK = 16,       /* lanes come in whole blocks; also the width of a subgroup */
    CPU_MAX_ITEMS = 1024, /* work-items of a group */
    CPU_ALIGNMENT = 64    /* of slots, in bytes */
};
#define CPU_NONE UINT32_MAX

/* Slots that every kernel has: the mask of all work-items (padding lanes are 0), and the empty
 * one. A BOOL whose address is one of the two is known to be all true or all false. */
enum { CPU_SLOT_FULL = 0, CPU_SLOT_EMPTY = 1, CPU_SLOT_FIRST = 2 };

typedef struct cpu_worker cpu_worker;
typedef struct cpu_step cpu_step;

/* Executes a step. Returns the next one, or null at the end of the group. */
typedef const cpu_step *cpu_run(cpu_worker *worker, const cpu_step *step);

/* A memory access of a step. The index of a work-item is a value (`index`), or affine in its ids in
 * the group: base + place[0] * factor[0] + place[1] * factor[1] + place[2] * factor[2]. */
typedef struct cpu_access {
    uint32_t memory;
    uint32_t width;
    int32_t offset; /* in elements, added to the index */
    hal_type type;
    hal_type index_type;
    uint8_t atomic; /* HAL_IR_ATOMIC_* */
    uint8_t shared; /* 1: the worker's own memory */
    uint8_t run;    /* 1: the factors are such that the index is base + lane */
    uint32_t index; /* slot, or CPU_NONE for an affine index */
    uint32_t base;  /* uniform slots */
    uint32_t factor[3];
    uint32_t guard;      /* slot or CPU_NONE */
    uint32_t values[8];  /* slots: what is loaded or stored */
    uint32_t operand[2]; /* of atomics: operand and comparand; values[0] has the old value */
    cpu_run *otherwise;  /* when a view is not possible */
} cpu_access;

/* Operands are slots: indices into worker.slots, which has addresses. A uniform value is the
 * same in all lanes of one block. */
struct cpu_step {
    cpu_run *run;
    uint32_t d, a, b, c;
    uint32_t n;    /* lanes, a multiple of CPU_BLOCK */
    uint32_t mask; /* slot: the active work-items, or CPU_NONE for all */
    int32_t jump;  /* of control flow: distance to the next step */
    uint32_t aux;  /* a type, a memory, a byte offset or a mask of lanes, by the step */
    const cpu_access *access;
};

/* The state of a thread that runs groups. `slots` point into its arena, or directly to memory. */
struct cpu_worker {
    void **slots;
    void **memory;   /* of the kernel's memories: bindings as this dispatch has them, then shared */
    uint64_t *bytes; /* of each memory, for checked kernels */
    const uint8_t *scalars;
    uint32_t grid[3];
    uint32_t group[3];
    uint32_t items;    /* work-items of the group */
    uint32_t place[3]; /* extents of the ids of work-items */
    int64_t *index;    /* room for CPU_MAX_ITEMS */
    uint8_t *chosen;   /* room for CPU_MAX_ITEMS */
    uint8_t *arena;
    size_t arena_bytes;
    uint64_t executable; /* the number of that which the slots are laid out for; 0: none */
    const struct cpu_check *check;           /* lanes/check.h, of a checked kernel */
    void (*stream_code)(cpu_worker *worker); /* for large outputs; null: none */
    uint32_t restarts; /* not 0: stream_code left the group, which begins again without it */
};

/* Indices of value types in the tables. */
enum { CPU_BOOL, CPU_I32, CPU_U32, CPU_I64, CPU_U64, CPU_F32, CPU_F64, CPU_TYPE_COUNT };

/* Forms of an operation: bit k is set where operand k is uniform and the others are not. An
 * operation whose operands are all uniform is form 0 on one block. */
enum { CPU_BINARY_FORMS = 3, CPU_TERNARY_FORMS = 7 };

/* The steps of one instruction set. */
typedef struct cpu_lanes {
    const char *name;
    cpu_run *unary[HAL_IR_OPCODE_COUNT][CPU_TYPE_COUNT];
    cpu_run *binary[HAL_IR_OPCODE_COUNT][CPU_TYPE_COUNT][CPU_BINARY_FORMS];
    cpu_run *ternary[2][CPU_TYPE_COUNT][CPU_TERNARY_FORMS]; /* FMA, SELECT */
    cpu_run *cast[CPU_TYPE_COUNT][CPU_TYPE_COUNT];          /* [from][to] */
    cpu_run *narrow[HAL_TYPE_COUNT];                        /* to a storage type and back */

    cpu_run *load[HAL_TYPE_COUNT];
    cpu_run *load_uniform[HAL_TYPE_COUNT]; /* one element for all work-items */
    cpu_run *store[HAL_TYPE_COUNT];
    cpu_run *view;    /* a load after which the slot points to the memory, where possible */
    cpu_run *address; /* the destination of the operation that computes a stored value */
    cpu_run *atomic[HAL_TYPE_COUNT];
    cpu_run *check; /* d = guard and whether the access is within its memory; aux: record */
    cpu_run *check_uniform;

    cpu_run *spread[CPU_TYPE_COUNT]; /* d = a, a uniform, d not */
    cpu_run *copy[CPU_TYPE_COUNT];
    cpu_run *blend[CPU_TYPE_COUNT];       /* d = a where mask */
    cpu_run *affine[CPU_TYPE_COUNT];      /* d = the index that access describes */
    cpu_run *within[CPU_TYPE_COUNT];      /* d = affine index < a, or <= where aux is 1 */
    cpu_run *beyond[CPU_TYPE_COUNT];      /* d = a < affine index, or <= where aux is 1 */
    cpu_run *scalar[CPU_TYPE_COUNT];      /* d = the scalar at aux bytes */
    cpu_run *group_id, *group_count;      /* d, of dimension aux */
    cpu_run *both;                        /* d = a and b: masks */
    cpu_run *choose;                      /* d = all or none, as a, which is uniform, says */
    cpu_run *shuffle[CPU_TYPE_COUNT];     /* d = a of lane b */
    cpu_run *shuffle_xor[CPU_TYPE_COUNT]; /* d = a of lane xor aux */
    cpu_run *reduce[HAL_IR_REDUCE_COUNT][CPU_TYPE_COUNT];

    cpu_run *branch;      /* jump unless a, which is uniform */
    cpu_run *jump;        /* always */
    cpu_run *if_masked;   /* d = mask and a; jump where that is empty */
    cpu_run *else_masked; /* d = mask and not a; jump where that is empty */
    cpu_run *loop_begin;  /* d = a; jump unless d < b; all uniform, of type aux */
    cpu_run *loop_next;   /* d += c; jump (back) while d < b */
    cpu_run *mask_begin;  /* d = mask and a; jump where that is empty */
    cpu_run *mask_next;   /* d = d and a; jump (back) unless that is empty */
    cpu_run *end;
} cpu_lanes;

/* The tables; null where the build has none. */
const cpu_lanes *cpu_lanes_plain(void);
const cpu_lanes *cpu_lanes_sse2(void);
const cpu_lanes *cpu_lanes_avx2(void);
const cpu_lanes *cpu_lanes_avx512(void);

/* The index of a value type in the tables; CPU_TYPE_COUNT for other types. */
static inline uint32_t cpu_type(hal_type type)
{
    switch (type) {
    case HAL_TYPE_BOOL:
        return CPU_BOOL;
    case HAL_TYPE_I32:
        return CPU_I32;
    case HAL_TYPE_U32:
        return CPU_U32;
    case HAL_TYPE_I64:
        return CPU_I64;
    case HAL_TYPE_U64:
        return CPU_U64;
    case HAL_TYPE_F32:
        return CPU_F32;
    case HAL_TYPE_F64:
        return CPU_F64;
    default:
        return CPU_TYPE_COUNT;
    }
}

#endif
