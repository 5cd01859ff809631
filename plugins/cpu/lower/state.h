/* The state of one lowering. A draft is a step whose operands are names: names are unlimited, slots
 * are few and reused. The files, from the bottom up:
 *   draft      drafts, names, values
 *   plan       finds ahead what can be computed in place, read in place, or left out
 *   index      uniform quantities, and indices that are affine in the ids of a work-item
 *   memory     loads, stores, atomics
 *   control    branches, loops and their masks
 *   slots      removes unused drafts, assigns a slot to each name, writes the steps
 *   lower      the records in order; arithmetic, variables */
#ifndef PLUGINS_CPU_LOWER_STATE_H
#define PLUGINS_CPU_LOWER_STATE_H

#include "lanes/action.h"
#include "lower/program.h"

#include <hal/status.h>

/* Drafts that run once per dispatch on each worker, and drafts that run for each group. */
enum { CPU_SECTION_DISPATCH = 0, CPU_SECTION_GROUP = 1, CPU_SECTION_COUNT = 2 };

/* Facts about a record before the lowering. */
typedef struct cpu_plan {
    uint32_t block;    /* the record that opened its block, or CPU_NONE */
    uint32_t masked;   /* the nearest opener around it where work-items diverge, or CPU_NONE */
    uint32_t end;      /* of FOR: its END */
    uint32_t last_use; /* the last record that needs the value; a loop needs it to its end */
    uint32_t variable; /* the VAR in whose slot the value is computed, or CPU_NONE */
    uint32_t store;    /* the STORE in whose memory the value is computed, or CPU_NONE */
    uint32_t next; /* list of the references of a VAR, or of the accesses of a memory, in order */
    uint32_t previous;
    uint8_t uniform; /* HAL_IR_UNIFORM_* */
    bool in_place;   /* SET: the slot has the value; GET: reads the VAR's slot; LOAD: a view */
} cpu_plan;

/* A uniform value: known when lowering, or in a name of one block. */
typedef struct cpu_quantity {
    uint32_t name; /* CPU_NONE: known */
    uint32_t section;
    uint64_t bits;
} cpu_quantity;

typedef enum cpu_kind { CPU_NOTHING, CPU_UNIFORM, CPU_AFFINE, CPU_VARYING, CPU_VECTOR } cpu_kind;

/* The result of a record. */
typedef struct cpu_value {
    cpu_kind kind;
    uint32_t name;          /* AFFINE and VARYING: all lanes. VECTOR: first in elements */
    cpu_quantity base;      /* UNIFORM: the value. AFFINE: the constant part */
    cpu_quantity factor[3]; /* AFFINE */
    hal_type type;
} cpu_value;

typedef struct cpu_name {
    uint8_t bytes;   /* of a lane */
    bool uniform;    /* one block */
    bool view;       /* the slot may point to memory; its private buffer is the slot after it */
    bool lasting;    /* constants and names of the dispatch section: their slots are not reused */
    bool live;
    uint32_t first, last; /* drafts of the group section */
    uint32_t slot;
} cpu_name;

typedef struct cpu_draft {
    cpu_action action;
    uint32_t d, a, b, c; /* operands, as those of the step: names */
    uint32_t n;          /* lanes */
    uint32_t mask;       /* name, or CPU_NONE */
    uint32_t aux;        /* as the step's */
    uint32_t access;     /* number in lower.accesses, or CPU_NONE */
    uint32_t target;     /* of a jump: a draft of the same section */
    bool root;           /* has a side effect */
    bool updates;        /* reads d as well as writing it */
    bool lanewise;       /* each lane reads its own lane only: d may have the slot of an operand */
    bool stores;         /* reads the values of the access, instead of writing them */
    bool live;
    uint32_t index; /* among the live drafts */
    uint32_t fence; /* barriers before it */
} cpu_draft;

typedef struct cpu_draft_list {
    cpu_draft *drafts;
    uint32_t count, capacity;
} cpu_draft_list;

typedef struct cpu_constant_name {
    uint64_t bits;
    uint32_t name;
    uint32_t bytes;
    uint32_t next; /* of the same hash */
} cpu_constant_name;

enum { CPU_CONSTANT_HASHES = 256 };

/* An open block of the control flow. */
typedef struct cpu_block {
    uint32_t record;     /* IF, ELSE or FOR */
    uint32_t first;      /* the draft that enters it */
    uint32_t skip;       /* a draft that jumps to the end of the block, or CPU_NONE */
    uint32_t outer_mask; /* name, or CPU_NONE */
    uint32_t condition;  /* name: of IF; of a masked FOR its counter */
    uint32_t mask;       /* of a masked FOR */
    bool masked;
} cpu_block;

typedef struct cpu_loop {
    uint32_t first, last, outer; /* drafts of the group section; the index of the enclosing loop */
} cpu_loop;

typedef struct cpu_lower {
    const hal_ir_kernel *ir;
    const cpu_lanes *lanes;
    cpu_program *program;
    bool compiles; /* views keep their slots longer, see slots.c */
    bool checks;   /* accesses */
    uint32_t n;    /* lanes */
    cpu_plan *plan;
    cpu_value *values; /* of each record */
    cpu_value *elements;
    uint32_t element_count, element_capacity;
    cpu_name *names;
    uint32_t name_count, name_capacity;
    cpu_constant_name *constants;
    uint32_t constant_count, constant_capacity;
    uint32_t constant_hashes[CPU_CONSTANT_HASHES]; /* index of the newest, plus 1 */
    cpu_access *accesses;
    uint32_t access_count, access_capacity;
    cpu_draft_list lists[CPU_SECTION_COUNT];
    cpu_block *blocks;
    uint32_t block_count, block_capacity;
    cpu_loop *loops;
    uint32_t loop_count, loop_capacity;
    uint32_t fence;  /* barriers so far */
    uint32_t mask;   /* name of the current mask, or CPU_NONE */
    uint32_t record; /* being lowered, for messages */
    hal_status status;
    /* Written to where there is no memory for another one. */
    cpu_draft discarded_draft;
    cpu_block discarded_block;
} cpu_lower;

#endif
