/* Lane programs: straight-line operations on vectors of lanes, between the steps of a kernel that
 * are compiled together. */
#ifndef PLUGINS_CPU_JIT_PROGRAM_PROGRAM_H
#define PLUGINS_CPU_JIT_PROGRAM_PROGRAM_H

#include <hal/ir.h>
#include <stdbool.h>

/* The index of a value in its program; JIT_NONE: none. */
typedef uint32_t jit_value;
#define JIT_NONE UINT32_MAX

/* Operations beyond those of the IR. */
enum {
    JIT_MOVE = HAL_IR_OPCODE_COUNT, /* d = a */
    JIT_BLEND,                      /* d = a ? b : c, where c is the old value */
    JIT_AGAIN,    /* d = a, or the function aux of c and e done again where b is true anywhere */
    JIT_EXCHANGE, /* d = lane (own xor aux) of a, which is in its slot */
    JIT_LOAD,     /* d = memory at the pointer aux, or d's home where that is null; 0 unless a */
    /* Of a uniform program: d = the element of the access aux, a number of a draft; 0 unless a. */
    JIT_ELEMENT,
    /* d = a + the lane's ids times the other operands; where these are JIT_NONE, times the bits of
     * aux. */
    JIT_AFFINE,
    JIT_STORE,   /* memory at the pointer aux = a if b, or a's home where the pointer is null */
    JIT_GATHER,  /* d = memory at the pointer aux, element b of each lane; 0 unless a */
    JIT_SCATTER, /* memory at the pointer aux, element b of each lane, = c where a */
    /* d is assigned later; where a is true anywhere the operations up to OTHERWISE are skipped,
     * else those up to JOIN; a = b. */
    JIT_DECLARE,
    JIT_CHOICE,
    JIT_OTHERWISE,
    JIT_JOIN,
    JIT_ASSIGN,
    JIT_RESULT,  /* a is the function's result, in vector register aux */
    JIT_FUNCTION /* d = the transcendental function aux of a and b */
};

typedef enum jit_kind {
    JIT_CONSTANT,
    JIT_UNIFORM,  /* in the block of a name */
    JIT_LANES,    /* in the slot of a name before the program begins */
    JIT_TEMPORARY /* made by the program; has a name or not */
} jit_kind;

enum { JIT_NO_REGISTER = 255, JIT_OPERANDS = 4 };

typedef struct jit_entry {
    jit_kind kind;
    hal_type type;
    bool keep;      /* needed after the program: stored when made */
    bool saved;     /* memory has the value */
    bool is_bf16;   /* an f32 whose lower half is 0 */
    bool is_f16;    /* an f32 that f16 has */
    bool follows;   /* made by a function of the program, or from the result of one */
    uint8_t reg;    /* JIT_NO_REGISTER: in memory only */
    uint8_t part;   /* of the vectors that are computed together */
    uint32_t name;  /* JIT_NONE: a temporary without a slot */
    uint32_t frame; /* place in the frame, in vectors; JIT_NONE: none yet */
    uint32_t next;  /* the node that uses it next; JIT_NONE: none */
    uint64_t bits;  /* of a constant */
} jit_entry;

typedef struct jit_node {
    uint16_t opcode;
    hal_type type; /* of the operands; LOAD, STORE, NARROW: of memory */
    jit_value d;   /* JIT_NONE for STORE */
    jit_value a[JIT_OPERANDS];
    uint32_t aux;                /* of SHUFFLE_XOR, and by the operations above */
    int32_t distance;            /* of LOAD, STORE: bytes from the pointer */
    uint32_t access;             /* of LOAD, STORE: as a draft has it */
    uint32_t next[JIT_OPERANDS]; /* the node that uses the operand after this one */
    uint32_t next_d;
    uint8_t part;
} jit_node;

typedef struct jit_program {
    jit_entry *values;
    uint32_t value_count, value_capacity;
    jit_node *nodes;
    uint32_t node_count, node_capacity;
    bool wide;    /* has values of 64 bits: vectors of 8 lanes */
    bool narrow;  /* may not have them: lanes exchange values over half a vector */
    bool is_part; /* of one that was divided */
    bool failed;
    /* The function that is being expanded, for JIT_AGAIN: its operands and number. */
    uint32_t function;
    jit_value x, y;
    /* Written to where there is no memory for another one. */
    jit_entry discarded_value;
    jit_node discarded_node;
} jit_program;

void jit_program_clear(jit_program *program);
void jit_program_release(jit_program *program);

jit_value jit_constant(jit_program *program, hal_type type, uint64_t bits);
/* A value that a name has before the program; jit_constant, jit_temporary otherwise. */
jit_value jit_named(jit_program *program, jit_kind kind, hal_type type, uint32_t name);
/* Appends an operation. Returns its result. */
jit_value jit_operation(jit_program *program, uint32_t opcode, hal_type type, hal_type result,
                        jit_value a, jit_value b, jit_value c);
/* The node that was appended last. */
jit_node *jit_last(jit_program *program);

/* A load of a type other than BOOL. */
bool jit_is_vector_load(const jit_program *program, uint32_t node);

/* jit/program/math.c: appends a transcendental function; `function` is for JIT_AGAIN. */
jit_value jit_math(jit_program *program, uint32_t opcode, hal_type type, jit_value x, jit_value y,
                   uint32_t function);

/* How many vectors can be computed together, up to `most`, so that all values fit the registers;
 * without registers for masks they are in vectors. */
uint32_t jit_program_parts(const jit_program *program, uint32_t vectors, uint32_t masks,
                           uint32_t most);
/* Interleaves the operations of several vectors, which depend on each other only in choices: long
 * chains of operations would wait for each other's results. Memory is read in its order: vectors
 * side by side together, those of several rows (`are_rows`) one after the other. */
void jit_program_unroll(jit_program *program, uint32_t parts, bool are_rows);

/* A value that is rounded to a type only to be stored in that type is rounded by its stores. */
void jit_program_round_once(jit_program *program);

/* Finds the next use of each value at each node; the kept values end with the program. */
void jit_program_finish(jit_program *program);

#endif
