/* The state of one compilation from drafts to machine code.
 *
 * Registers of compiled code: rbx has the worker, rbp its arena, r13 its slots, rcx the first lane
 * of the vector, rax is free. The others hold addresses during a loop. */
#ifndef PLUGINS_CPU_JIT_REGISTERS_STATE_H
#define PLUGINS_CPU_JIT_REGISTERS_STATE_H

#include "jit/program/program.h"
#include "jit/registers/target.h"
#include "jit/encoder/code.h"
#include "jit/encoder/x86_encoder.h"
#include "lower/state.h"

enum {
    JIT_WORKER = X86_RBX,
    JIT_ARENA = X86_RBP,
    JIT_SLOTS = X86_R13,
    JIT_LANE = X86_RCX,
    JIT_SCRATCH = X86_RAX
};

/* Of a line of the caches, which no vector exceeds. */
enum { JIT_LINE_BYTES = 64 };

/* A function has its operands and its results in registers from these on, one for each vector that
 * is computed together, and may overwrite all vectors and masks. */
enum { JIT_MOST_PARTS = 4, JIT_FUNCTION_X = 0, JIT_FUNCTION_Y = JIT_FUNCTION_X + JIT_MOST_PARTS };

/* Vector registers 13 to 15 are free within an operation. */
enum {
    JIT_VECTORS = 32,
    JIT_MASKS = 6,
    JIT_TEMPORARY_A = 13,
    JIT_TEMPORARY_B = 14,
    JIT_TEMPORARY_C = 15
};

/* Places in the frame, in bytes from rsp: operands and result of a function that is done again,
 * what is saved around it, the caller's rsp, addresses of accesses, vectors. */
enum {
    JIT_MAX_POINTERS = 64,
    JIT_FRAME_X = 0,
    JIT_FRAME_Y = 128,
    JIT_FRAME_D = 256,
    JIT_FRAME_VECTORS = 384,
    JIT_FRAME_MASKS = JIT_FRAME_VECTORS + 32 * 64,
    JIT_FRAME_GENERAL = JIT_FRAME_MASKS + 64,
    JIT_FRAME_STACK = JIT_FRAME_GENERAL + 64,
    JIT_FRAME_POINTERS = JIT_FRAME_STACK + 64,
    JIT_FRAME_SKIPS = JIT_FRAME_POINTERS + 8 * JIT_MAX_POINTERS, /* see jit_form_of_access */
    JIT_FRAME_AHEADS = JIT_FRAME_SKIPS + 8 * JIT_MAX_POINTERS,   /* see jit/emission/ahead.c */
    JIT_FRAME_SPILLS = JIT_FRAME_AHEADS + 8 * JIT_MAX_POINTERS,
    JIT_VIEW_POINTER = JIT_MAX_POINTERS - 1,   /* the address of the leader, if it is a view */
    JIT_CHOSEN_POINTER = JIT_MAX_POINTERS - 2, /* the mask that was chosen last */
    JIT_LOOP_POINTERS = JIT_MAX_POINTERS - 2   /* for accesses */
};

/* How an access goes through memory: not in vectors; the element of lane i is the i-th one; the
 * group is rows, and the lanes of a row access neighbours, or all one element. A pointer of rows
 * moves by its skip from row to row. */
typedef enum jit_access_form {
    JIT_ACCESS_NONE,
    JIT_ACCESS_LINE,
    JIT_ACCESS_ROWS,
    JIT_ACCESS_ROWS_APART,  /* every second to fourth element, stores second, see jit_apart_of */
    JIT_ACCESS_ROW_ELEMENT, /* 2 bytes or more */
    JIT_ACCESS_LANES        /* of a pointer: an index for each lane, see jit/gather.c */
} jit_access_form;

static inline bool jit_is_of_rows(jit_access_form form)
{
    return form == JIT_ACCESS_ROWS || form == JIT_ACCESS_ROWS_APART ||
           form == JIT_ACCESS_ROW_ELEMENT;
}

/* An address that a loop keeps in a register: of a slot, or of an access. */
typedef struct jit_pointer {
    uint32_t key; /* slot; or JIT_POINTER_ACCESS + number */
    uint8_t reg;
} jit_pointer;
#define JIT_POINTER_ACCESS (UINT32_C(1) << 31)
enum { JIT_POINTER_REGISTERS = 10 };

/* The access whose address was computed last. Others at a distance from it take its address; it is
 * known up to the end of the open program, and in the names of a draft. */
typedef struct jit_leader {
    bool known, is_view;
    jit_access_form form;
    uint32_t mask, pointer;
    cpu_access access;
} jit_leader;

/* Where an access is: bytes from a pointer. */
typedef struct jit_place {
    uint32_t pointer;
    int32_t distance;
} jit_place;

/* Code that rarely runs, after the rest: does a function again, or calls a step. */
typedef struct jit_slow {
    uint32_t label, back;
    cpu_run *run;
    const cpu_draft *draft; /* whose step is called; null: the function is done again */
    uint8_t d, x, y, length;
    uint32_t pointer;    /* becomes null; JIT_NONE: none */
    const void *routine; /* `line_run` gets it and runs in the place of the step; null: none */
    uintptr_t line_run;
    bool is_private;         /* instead of the step, its slot points to its private buffer */
    uint32_t vectors, masks; /* registers in use */
} jit_slow;

/* A store whose step runs after the open lane program, unless that has stored everything. */
typedef struct jit_deferred_store {
    const cpu_draft *draft;
    uint32_t pointer; /* JIT_NONE: the value is computed in place, if its slot points there */
} jit_deferred_store;

/* Code after a loop for an access whose pointer is null, which reads or writes the home of its
 * value instead, or for a load whose guard is false in all lanes. */
typedef enum jit_aside_kind { JIT_ASIDE_LOAD, JIT_ASIDE_STORE, JIT_ASIDE_CLEAR } jit_aside_kind;
typedef struct jit_aside {
    jit_aside_kind kind;
    jit_value value;
    uint32_t label, back;
    uint8_t reg;
} jit_aside;

/* An open choice of sides: its labels, and the registers that the one around it locks. */
typedef struct jit_choice {
    uint32_t otherwise, join, locked;
} jit_choice;
enum { JIT_MOST_CHOICES = 4 };

/* A name in an open program. */
typedef struct jit_name {
    uint32_t generation; /* the program that the rest is about */
    jit_value value;     /* the newest */
    uint32_t references;
    bool read_first; /* before it was written */
} jit_name;

enum { JIT_OPEN_UNIFORM, JIT_OPEN_LANES };

/* Facts about the names of all drafts. */
typedef struct jit_facts {
    uint32_t *references; /* in all drafts */
    uint32_t *writers;    /* drafts that write it */
    uint32_t *chosen;     /* 1 + the condition's name of a mask of all work-items or none; else 0 */
    bool *of_rows;        /* masks that are the same for all lanes of a row */
    uint32_t *viewed;     /* 1 + the access of a name whose slot points to its memory; else 0 */
    const cpu_constant_name **constants; /* null: not a constant */
} jit_facts;

/* The open programs, in which operations are collected. */
typedef struct jit_open {
    jit_program uniform, lanes;
    jit_name *names[2];     /* in them: JIT_OPEN_* */
    uint32_t generation[2]; /* of the programs */
    /* By slot: the last lane program that uses it, that writes it, and after which a store reads
     * it. */
    uint32_t *used_by, *written_by, *stored_by;
    bool writes_memory; /* the lane program does */
    uint32_t fence;
    jit_deferred_store stores[JIT_MAX_POINTERS];
    uint32_t store_count;
    uint32_t pointer_count;
    jit_access_form pointer_forms[JIT_MAX_POINTERS];
    uint8_t
        pointer_apart[JIT_MAX_POINTERS]; /* of JIT_ACCESS_ROWS_APART: elements from lane to lane */
    jit_leader leader;
    uint32_t chosen_last; /* as jit_facts.chosen: the condition of JIT_CHOSEN_POINTER, or 0 */
} jit_open;

/* What registers have during the translation of a program. */
typedef struct jit_registers {
    jit_pointer pointers[JIT_POINTER_REGISTERS];
    uint32_t loop_pointers;
    jit_value in_vector[JIT_VECTORS], in_mask[JIT_MASKS];
    uint32_t pinned_vectors, pinned_masks; /* by the current node */
    uint32_t locked_vectors;               /* by the open choices */
    uint32_t frame_vectors;                /* of the section's frame */
} jit_registers;

/* The program that is translated. */
typedef struct jit_loop {
    jit_program *program;
    bool is_uniform;
    bool in_loop;
    bool is_long;   /* enough operations to compute several vectors together */
    uint32_t parts; /* vectors that are computed together */
    jit_aside *asides;
    uint32_t aside_count, aside_capacity;
    jit_choice choices[JIT_MOST_CHOICES];
    uint32_t choice_count;
    uint32_t element_end;    /* 1 + the last node, if that is a uniform load without a guard */
    uint32_t element_access; /* whose address JIT_SCRATCH has then */
} jit_loop;

struct jit_state {
    const jit_target *target;
    const cpu_lower *lower;
    const cpu_step *steps; /* of the section that is compiled */
    cpu_code *output;
    jit_facts facts;
    jit_open open;
    jit_registers registers;
    jit_loop loop;
    /* Emission. */
    x86_code code;
    jit_slow *slow_paths;
    uint32_t slow_count, slow_capacity;
    uint32_t again; /* label of the routine that does a function again; JIT_NONE */
    uint32_t *step_labels;
    uint32_t leave;
    bool streams;     /* stores may bypass the caches */
    uint32_t restart; /* label: the group begins again; JIT_NONE */
    bool failed;
    uint32_t operations, calls; /* for the log */
};

/* The step of a draft: with slots where the draft has names. */
static inline const cpu_step *jit_step_of(const jit_state *jit, const cpu_draft *draft)
{
    return &jit->steps[draft->index];
}

#endif
