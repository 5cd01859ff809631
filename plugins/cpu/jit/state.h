/* The state of one compilation from drafts to machine code, and what the files of jit/ offer each
 * other, from the bottom up: jit/program.c, jit/math.c (lane programs), jit/registers.c (where
 * values are), jit/ahead.c (prefetches), jit/operation.c, jit/avx512.c, jit/avx2.c (instructions of
 * an operation), jit/loop.c (a program over all lanes), jit/split.c (one that is divided),
 * jit/access.c (addresses of memory), jit/indexed.c (instructions of indices), jit/line.c
 * (contiguous accesses under a mask), jit/open.c (the programs that are collected), jit/gather.c
 * (single elements), jit/walk.c (drafts), jit/jit.c (a kernel).
 *
 * Registers of compiled code: rbx has the worker, rbp its arena, r13 its slots, rcx the first lane
 * of the vector, rax is free. The others hold addresses during a loop. */
#ifndef HALYARD_CPU_JIT_STATE_H
#define HALYARD_CPU_JIT_STATE_H

#include "jit/program.h"
#include "jit/code.h"
#include "jit/x86_encoder.h"
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
    JIT_FRAME_AHEADS = JIT_FRAME_SKIPS + 8 * JIT_MAX_POINTERS,   /* see jit/ahead.c */
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
    JIT_ACCESS_ROW_ELEMENT, /* 2 bytes or more */
    JIT_ACCESS_LANES        /* of a pointer: an index for each lane, see jit/gather.c */
} jit_access_form;

static inline bool jit_is_of_rows(jit_access_form form)
{
    return form == JIT_ACCESS_ROWS || form == JIT_ACCESS_ROW_ELEMENT;
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
typedef struct jit_cold {
    uint32_t label, back;
    cpu_run *run;
    const cpu_draft *draft; /* whose step is called; null: the function is done again */
    uint8_t d, x, y, length;
    uint32_t pointer;    /* becomes null; JIT_NONE: none */
    const void *routine; /* `line_run` gets it and runs in the place of the step; null: none */
    uintptr_t line_run;
    bool own_room;           /* instead of the step, its slot points to its own room */
    uint32_t vectors, masks; /* registers in use */
} jit_cold;

/* A store whose step runs after the open lane program, unless that has stored everything. */
typedef struct jit_post {
    const cpu_draft *draft;
    uint32_t pointer; /* JIT_NONE: the value is computed in place, if its slot points there */
} jit_post;

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

typedef struct jit_state jit_state;

/* The parts that depend on the instruction set. Values of type BOOL are in mask registers, or in
 * vectors whose lanes have 32 bits, all 0 or all 1. */
typedef struct jit_target {
    uint8_t length, lanes;  /* of a vector: X86_ZMM or X86_YMM; how many of 32 bits it has */
    uint8_t vectors, masks; /* registers for values; no masks: they are in vectors */
    uint8_t most_parts;
    uint8_t mask;      /* a register that accesses take for a mask */
    uint8_t mask_from; /* bytes of the least elements whose accesses can have a mask */
    uint32_t reserved; /* vector registers that do not exist, as bits */
    bool scatters;
    bool (*cast_is_supported)(hal_type from, hal_type to);
    void (*emit_float_least)(jit_state *jit, const jit_node *node);
    void (*emit_shift)(jit_state *jit, const jit_node *node);
    void (*emit_integer)(jit_state *jit, const jit_node *node); /* neither SHL, SHR nor MULHI */
    void (*emit_bool)(jit_state *jit, const jit_node *node);
    void (*emit_comparison)(jit_state *jit, const jit_node *node);
    void (*emit_select)(jit_state *jit, const jit_node *node); /* and BLEND */
    void (*emit_cast)(jit_state *jit, const jit_node *node);
    /* To nearest even; NaN stays NaN. The result is in the lower half of each lane of d. */
    void (*emit_bf16_bits)(jit_state *jit, uint32_t d, uint32_t a);
    /* Words of 16 bits side by side where the mask is true; a load sets the others to 0. Null: all
     * instructions take masks. */
    void (*words_load)(jit_state *jit, uint32_t words, x86_operand from, uint32_t mask);
    void (*words_store)(jit_state *jit, uint32_t words, x86_operand to, uint32_t mask);
    /* The low 1 or 2 bytes of each lane, where `mask` is true unless that is 0; TEMPORARY_C may be
     * `a`. */
    void (*narrow_store)(jit_state *jit, uint32_t bytes, uint32_t a, x86_operand to, uint32_t mask);
    /* The low 2 bytes of each lane side by side, in temporary A. */
    void (*low_words)(jit_state *jit, uint32_t words, uint32_t a);
    /* A mask for gathering elements, which may be in temporary B. */
    uint32_t (*element_mask)(jit_state *jit, hal_type type, uint32_t mask);
    /* Elements of 4 or 8 bytes where the mask is true; a load sets the others to 0. */
    void (*masked_load)(jit_state *jit, hal_type type, uint32_t d, x86_operand from, uint32_t mask);
    void (*masked_store)(jit_state *jit, hal_type type, uint32_t a, x86_operand to, uint32_t mask);
    void (*bool_copy)(jit_state *jit, uint32_t d, uint32_t a);
    void (*bool_set)(jit_state *jit, uint32_t d, bool value);
    void (*bool_both)(jit_state *jit, uint32_t d, uint32_t a, uint32_t b);
    /* In memory a lane is a byte, 0 or not; in the frame it is as in the register. */
    void (*bool_load)(jit_state *jit, uint32_t d, x86_operand from);
    void (*bool_store)(jit_state *jit, uint32_t a, x86_operand to);
    void (*bool_spill)(jit_state *jit, uint32_t a, x86_operand to);
    void (*bool_fill)(jit_state *jit, uint32_t d, x86_operand from);
    /* Lanes where the mask is false become 0. */
    void (*lanes_clear)(jit_state *jit, hal_type type, uint32_t d, uint32_t mask);
    /* Sets the flag EQUAL if no lane is true. */
    void (*bool_test)(jit_state *jit, uint32_t a);
    /* The low 32 bits of a general-purpose register to all lanes. */
    void (*general_broadcast)(jit_state *jit, uint32_t d, uint32_t general);
} jit_target;

extern const jit_target jit_avx512; /* jit/avx512.c */
extern const jit_target jit_avx2;   /* jit/avx2.c */

struct jit_state {
    const jit_target *target;
    const cpu_lower *lower;
    const cpu_step *steps; /* of the section that is compiled */
    cpu_code *output;
    x86_code code;
    jit_program uniform, lanes; /* being collected, the open programs */
    jit_name *names[2];         /* in them: JIT_OPEN_* */
    uint32_t *references;       /* of each name, in all drafts */
    uint32_t *writers;          /* of each name: drafts that write it */
    /* Of names that are a mask of all work-items or of none: 1 + the condition's name; else 0. */
    uint32_t *chosen;
    bool *of_rows;    /* of names: masks that are the same for all lanes of a row */
    uint32_t *viewed; /* 1 + the access of each name whose slot points to its memory; else 0 */
    const cpu_constant_name **constants; /* of each name; null: not a constant */
    /* By slot: the last lane program that uses it, that writes it, and after which a store reads
     * it. */
    uint32_t *used_by, *written_by, *posted_by;
    uint32_t generation[2]; /* of the open programs */
    bool writes_memory;     /* the open lane program does */
    uint32_t fence;
    jit_post posts[JIT_MAX_POINTERS];
    uint32_t post_count;
    uint32_t pointer_count, frame_vectors;
    jit_access_form pointer_forms[JIT_MAX_POINTERS];
    jit_leader leader;
    uint32_t chosen_last; /* as in `chosen`: the condition of JIT_CHOSEN_POINTER, or 0 */
    jit_cold *colds;
    uint32_t cold_count, cold_capacity;
    uint32_t again; /* label of the routine that does a function again; JIT_NONE */
    uint32_t *step_labels;
    uint32_t leave;
    /* During the translation of a program. */
    jit_program *program;
    bool is_uniform;
    bool in_loop, is_long; /* of so many operations that several vectors may be computed together */
    uint32_t parts;        /* vectors that are computed together */
    jit_pointer pointers[JIT_POINTER_REGISTERS];
    uint32_t loop_pointers;
    jit_value in_vector[JIT_VECTORS], in_mask[JIT_MASKS];
    uint32_t pinned_vectors, pinned_masks; /* by the current node */
    uint32_t locked_vectors;               /* by the open choices */
    jit_aside *asides;
    uint32_t aside_count, aside_capacity;
    jit_choice choices[JIT_MOST_CHOICES];
    uint32_t choice_count;
    /* Statistics for the log. */
    uint32_t operations, calls;
    bool failed;
    /* Of stores that bypass the caches, jit_stream.c. */
    bool streams;
    uint32_t restart; /* label: the group begins again; JIT_NONE */
};

/* The step of a draft: with slots where the draft has names. */
static inline const cpu_step *jit_step_of(const jit_state *jit, const cpu_draft *draft)
{
    return &jit->steps[draft->index];
}

/* ---- jit/registers.c ---- */

/* The place of a pointer's skip. */
static inline x86_operand jit_skip_of(uint32_t pointer)
{
    return x86_memory(X86_RSP, (int32_t)(JIT_FRAME_SKIPS + 8 * pointer));
}

/* The lanes of a vector in this program. */
static inline uint32_t jit_lanes(const jit_state *jit, const jit_program *program)
{
    return program->wide ? jit->target->lanes / 2u : jit->target->lanes;
}

/* The vector length of a type in this program. */
x86_form jit_form(const jit_state *jit, hal_type type);
/* Memory at a pointer of the program, in elements of `bytes` that belong to the vector's lanes; of
 * JIT_ACCESS_ROW_ELEMENT the row's element. */
x86_operand jit_pointed(jit_state *jit, uint32_t key, uint32_t bytes, uint32_t part);
/* A mask of the vector's lanes that are work-items, in a register that lasts for one access; 0: all
 * are, in every vector. */
uint32_t jit_items_mask(jit_state *jit, uint32_t part);
/* The register of a pointer's address; JIT_SCRATCH: loaded. */
uint32_t jit_pointer_register(jit_state *jit, uint32_t key);
/* The register of an operand, loaded if need be; the register or memory of an operand. */
uint32_t jit_use(jit_state *jit, const jit_node *node, uint32_t k);
x86_operand jit_source(jit_state *jit, const jit_node *node, uint32_t k);
/* A register for the result. */
uint32_t jit_result(jit_state *jit, const jit_node *node);
/* Of a function: moves its operands to where it expects them, and what it overwrites elsewhere. */
void jit_arguments(jit_state *jit, const jit_node *nodes);
/* Says that a register has a value; empties a register. */
void jit_register_set(jit_state *jit, jit_value value, uint32_t reg);
void jit_register_empty(jit_state *jit, uint32_t reg);
/* A register for the result: that of operand k if nothing else needs it. */
uint32_t jit_result_over(jit_state *jit, const jit_node *node, uint32_t k);
/* After a node: stores a result that is kept and frees what is used no more. */
void jit_release(jit_state *jit, const jit_node *node);
void jit_registers_clear(jit_state *jit);
/* A choice: vectors that are used now keep their values on both sides, masks go to memory; forgets
 * what a side has in other registers. */
void jit_registers_lock(jit_state *jit);
void jit_registers_restore(jit_state *jit);
/* Memory with an operand that is in its slot, as the lanes have it that are `apart` from this
 * part's first one: a multiple of a vector's lanes. The lane changes until jit_elsewhere_end. */
x86_operand jit_elsewhere(jit_state *jit, const jit_node *node, uint32_t apart);
void jit_elsewhere_end(jit_state *jit, uint32_t apart);
/* The registers in use, as bits. */
void jit_registers_used(const jit_state *jit, uint32_t *vectors, uint32_t *masks);
/* Stores a value in its slot. */
void jit_store_home(jit_state *jit, jit_value value);
void jit_load_home(jit_state *jit, jit_value value, uint32_t reg);

/* ---- jit/stream_store.c ---- */

/* Before the sections; whether an access stores so. */
void jit_stream_begin(jit_state *jit);
bool jit_stream_takes(const jit_state *jit, const cpu_access *access);
/* After the address of such an access is in memory at `pointer`: where it is not that of a line,
 * the second form leaves the group. */
void jit_stream_check(jit_state *jit, const cpu_access *access, x86_operand pointer);
/* The address of such an access has no check, so the kernel has no second form. */
void jit_stream_give_up(jit_state *jit, const cpu_access *access);
/* A whole vector. */
void jit_stream_store(jit_state *jit, x86_form form, uint32_t a, x86_operand to);
/* After a section. */
void jit_stream_restart_emit(jit_state *jit);

/* ---- jit/ahead.c ---- */

/* Before a loop: how far ahead its loads in rows prefetch. */
void jit_ahead_begin(jit_state *jit, const jit_program *program);
/* After loads at one pointer, the first of which is at `place`: prefetches what comes later. */
void jit_ahead_emit(jit_state *jit, const jit_node *loads, uint32_t count, x86_operand place);

/* ---- jit/operation.c ---- */

/* Whether an operation has instructions. */
bool jit_is_supported(const jit_target *target, uint32_t opcode, hal_type type, hal_type result);
void jit_node_emit(jit_state *jit, const jit_node *node);
/* Between a register and memory of `type`, where the mask is true unless that is 0; lanes that are
 * not loaded become 0. `is_bf16`: the value needs no rounding to bf16. */
void jit_memory_load(jit_state *jit, hal_type type, uint32_t d, x86_operand from, uint32_t mask);
void jit_memory_store(jit_state *jit, hal_type type, uint32_t a, x86_operand to, uint32_t mask,
                      bool is_bf16);
/* How many nodes from a LOAD on are emitted together: loads at one pointer, under one guard. */
uint32_t jit_loads_count(const jit_state *jit, const jit_program *program, uint32_t first);
void jit_loads_emit(jit_state *jit, const jit_node *nodes, uint32_t count);
/* After a loop: the asides of its accesses. */
void jit_asides_emit(jit_state *jit);

/* ---- jit/gather.c ---- */

/* Appends the values of an affine index to the open lane program. False: not of 32 bits. */
bool jit_affine_append(jit_state *jit, const cpu_draft *draft);
/* Whether a load, or a store, accesses elements one by one in the open lane program; appends it. */
bool jit_gather_is_wanted(const jit_state *jit, const cpu_draft *draft);
bool jit_scatter_is_wanted(const jit_state *jit, const cpu_draft *draft);
void jit_gather_append(jit_state *jit, const cpu_draft *draft);
void jit_scatter_append(jit_state *jit, const cpu_draft *draft);

/* ---- jit/indexed.c ---- */

/* Of an unsigned index the highest bit is flipped, which makes it signed, and the pointer is ahead
 * by as many elements. */
#define JIT_FLIPPED (UINT32_C(1) << 31)

void jit_affine_emit(jit_state *jit, const jit_node *node);
void jit_gather_emit(jit_state *jit, const jit_node *node);
void jit_scatter_emit(jit_state *jit, const jit_node *node);

/* ---- jit/routine.c ---- */

/* Appends the code of a routine that `what` describes. */
typedef void jit_routine_emit(jit_state *jit, const void *what);

/* Makes a routine for the caller's instruction set, which lasts as long as the process; with half
 * as many lanes if `wide`. Null where it cannot be made. */
void *jit_routine_make(const jit_state *caller, bool wide, jit_routine_emit *emit,
                       const void *what);

/* ---- jit/function.c ---- */

/* Calls a function; the nodes of the parts are neighbours. */
void jit_function_emit(jit_state *jit, const jit_node *nodes);

/* ---- jit/line.c ---- */

/* Before the cold code of a section: finds what replaces steps of contiguous accesses whose
 * work-items are not all active. */
void jit_lines_find(jit_state *jit);

/* ---- jit/cold.c ---- */

/* A piece of code that is emitted later; null without memory. */
jit_cold *jit_cold_add(jit_state *jit);
void jit_colds_emit(jit_state *jit);

/* ---- jit/loop.c ---- */

void jit_loop_emit(jit_state *jit, jit_program *program, bool is_uniform);

/* ---- jit/split.c ---- */

/* Translates a lane program into several loops, each of which goes through memory in its order.
 * False, without code: one loop is as good, or the program cannot be divided. */
bool jit_split_emit(jit_state *jit, const jit_program *program);

/* ---- jit/access.c ---- */

/* An operand in the slot of a uniform value. */
x86_operand jit_block(const jit_state *jit, uint32_t slot);
/* Calls a step. */
void jit_call_step(jit_state *jit, const cpu_draft *draft);
/* How the access of a draft can go through memory. */
jit_access_form jit_access_form_of(const jit_state *jit, const cpu_draft *draft);
/* Before a loop: computes the address of an access in rows, with its skip, into the pointer
 * `pointer`. Where an index might wrap around or work-items are masked, `calls` calls the step, and
 * the pointer becomes null. The guard is up to the loop if that has it. */
void jit_rows_emit(jit_state *jit, const cpu_draft *draft, jit_access_form form, uint32_t pointer,
                   bool calls);
/* Whether a loop decides about the guard of an access in rows. */
bool jit_guard_is_in_loop(const jit_state *jit, const cpu_access *access, jit_access_form form,
                          bool loads);
/* The slot of a view that the program computes points to its own room. */
void jit_own_room_emit(jit_state *jit, uint32_t slot);
int64_t jit_greatest_index(hal_type type);
/* Whether an access is contiguous. */
bool jit_line_is_supported(const cpu_access *access);
/* Before a loop: computes the address of a contiguous access into the slot of its view, or into the
 * pointer `pointer`. Where it is not contiguous `calls` calls the step, and the pointer becomes
 * null. False, without code: the access has no such form. */
bool jit_access_emit(jit_state *jit, const cpu_draft *draft, uint32_t pointer, bool calls);
/* Whether a uniform load has code; the address of its element, in JIT_SCRATCH, by rcx. The access
 * is a draft's. */
bool jit_uniform_is_supported(const cpu_access *access);
void jit_uniform_emit(jit_state *jit, const cpu_access *access);
/* An affine index compared with a bound, where all work-items are on the true side; else a call. */
bool jit_bound_emit(jit_state *jit, const cpu_draft *draft);
/* Two masks together, where both are all work-items; else a call. */
bool jit_both_emit(jit_state *jit, const cpu_draft *draft);
/* Notes whether the result of a draft that makes a mask is the same for all lanes of a row. */
void jit_of_rows_note(jit_state *jit, const cpu_draft *draft);
/* All work-items or none, as a uniform condition says. */
void jit_choose_emit(jit_state *jit, const cpu_draft *draft);
/* The address of an access at a distance from the leader; `pointer` as in jit_access_emit: false,
 * without code, if it is not. Makes an access the leader. */
bool jit_follow_emit(jit_state *jit, const cpu_draft *draft, jit_access_form form, bool calls,
                     jit_place *place);
void jit_leader_set(jit_state *jit, const cpu_draft *draft, jit_access_form form, bool is_view,
                    uint32_t pointer);
/* Whether a work-item accesses other elements by one access than by the other: at one index, and
 * different distances from it. */
bool jit_accesses_differ(const jit_state *jit, const cpu_access *x, const cpu_access *y);

/* ---- jit/open.c ---- */

jit_program *jit_program_of(jit_state *jit, uint32_t which);
/* What an open program knows of a name; its value there; says that it has made the value. */
jit_name *jit_name_in(jit_state *jit, uint32_t which, uint32_t name);
jit_value jit_value_of(jit_state *jit, uint32_t which, uint32_t name, hal_type type);
void jit_name_define(jit_state *jit, uint32_t which, uint32_t name, jit_value value);
/* Marks of slots (used_by, written_by, posted_by) for the open lane program. */
bool jit_slot_is(const uint32_t *marks, const jit_state *jit, uint32_t name);
void jit_slot_mark(const jit_state *jit, uint32_t *marks, uint32_t name);
/* Counts the names that a draft refers to as known in a program. */
void jit_references_note(jit_state *jit, const cpu_draft *draft, uint32_t which);
/* The program that a draft with result `name` belongs to; other programs end if it would change
 * what they need. */
uint32_t jit_program_choose(jit_state *jit, uint32_t name);
/* Ends a program; ends both, with the stores after them. */
void jit_program_flush(jit_state *jit, uint32_t which);
void jit_all_flush(jit_state *jit);
/* Before a transcendental function is appended: ends the programs if an operand depends on another
 * function of the lane program. A loop with functions one after the other waits for each result;
 * of a loop with one, the processor computes several iterations at a time. */
void jit_functions_part(jit_state *jit, const cpu_draft *draft);

#endif
