/* Shared by the sources of the IR: the table of opcodes, the type rules and the scope rule that
 * builder, verifier, printer and parser apply, and the builder's raw entries. */
#ifndef HAL_SRC_IR_INTERNAL_H
#define HAL_SRC_IR_INTERNAL_H

#include <hal/ir.h>
#include <hal/ir_build.h>
#include <stdbool.h>
#include <stddef.h>

/* Bits of hal_ir_info.traits. */
enum {
    HAL_IR_TRAIT_PURE = 1,        /* no effect but its value: dropped when unused */
    HAL_IR_TRAIT_FRAGMENT = 2,    /* allowed in fragments */
    HAL_IR_TRAIT_NO_KERNEL = 4,   /* not allowed in kernels */
    HAL_IR_TRAIT_LEADING = 8,     /* the builder makes it once and moves it to the kernel's front */
    HAL_IR_TRAIT_CONVERGENT = 16, /* only where control is uniform in the work-group */
    HAL_IR_TRAIT_READS = 32,      /* reads memory `aux` */
    HAL_IR_TRAIT_WRITES = 64      /* writes memory `aux` */
};

/* Sets of traits: the column TRAITS of HAL_IR_OPCODE_TABLE. */
enum {
    HAL_IR_TRAITS_EFFECT = 0,
    HAL_IR_TRAITS_PURE = HAL_IR_TRAIT_PURE,
    HAL_IR_TRAITS_EXPRESSION = HAL_IR_TRAIT_PURE | HAL_IR_TRAIT_FRAGMENT,
    HAL_IR_TRAITS_LEADING = HAL_IR_TRAIT_PURE | HAL_IR_TRAIT_LEADING,
    HAL_IR_TRAITS_LEADING_EXPRESSION = HAL_IR_TRAITS_LEADING | HAL_IR_TRAITS_EXPRESSION,
    HAL_IR_TRAITS_FRAGMENT_OUTPUT = HAL_IR_TRAIT_FRAGMENT | HAL_IR_TRAIT_NO_KERNEL,
    HAL_IR_TRAITS_FRAGMENT_INPUT = HAL_IR_TRAITS_FRAGMENT_OUTPUT | HAL_IR_TRAIT_LEADING,
    HAL_IR_TRAITS_READ = HAL_IR_TRAIT_PURE | HAL_IR_TRAIT_READS,
    HAL_IR_TRAITS_WRITE = HAL_IR_TRAIT_WRITES,
    HAL_IR_TRAITS_READ_WRITE = HAL_IR_TRAIT_READS | HAL_IR_TRAIT_WRITES,
    HAL_IR_TRAITS_CONVERGENT = HAL_IR_TRAIT_PURE | HAL_IR_TRAIT_CONVERGENT,
    HAL_IR_TRAITS_CONVERGENT_EFFECT = HAL_IR_TRAIT_CONVERGENT
};

/* One row of HAL_IR_OPCODE_TABLE (hal/ir_opcodes.h).
 *
 * operands: the rule for a, b, c, d, one letter each:
 *   T  a scalar; all Ts of a record have one type, which is in `types`
 *   B  a BOOL        U  a u32         I  an index: an integer
 *   g  a BOOL or NONE                 W  a vector
 *   V  a VAR         v  a scalar of the type of the VAR in a
 *   M  a scalar of the value type of memory `aux`
 *   m  as M for COMPARE_EXCHANGE, else NONE
 *   S  a scalar or vector of the value type of memory `aux`
 *   P  elements of a PACK             -  NONE
 * result: T the type of the Ts; b BOOL; u u32; f f32 of width 4, f64 where aux is; v the VAR's;
 *   m the memory's value type and the record's own width; e the element of the vector; p a PACK's;
 *   = the record's own type, which is in `types`; s no type, the width of the stored value; w no
 *   type, the record's own width; - none.
 * syntax: what follows the name in text, see docs/ir.md:
 *   a b c    an operand      T  the type      k  the constant     s  the scalar
 *   d  ", " and an operand, if there is one
 *   x  aux, a dimension      n  aux           i  imm              S  aux, a storage type
 *   R  aux, a reduction      A  flags, an atomic's kind           F  flags, ".fast"
 *   M  memory aux at a + imm N  memory aux at a   B  binding imm at d  g  the guard in b
 *   W  the width             p  the operands there are            ,  itself, and a space */
typedef struct hal_ir_info {
    const char *name;
    const char *syntax;
    char operands[5];
    char result;
    uint8_t traits; /* HAL_IR_TRAIT_* */
    uint32_t types; /* HAL_TYPE_BIT of the operands of rule T */
} hal_ir_info;

/* The row of an opcode; null if no opcode has the number. */
const hal_ir_info *hal_ir_info_of(uint32_t opcode);

/* Appends a record of a verified kernel as hal_ir_print writes it, without a line feed. */
struct hal_text;
void hal_ir_print_record(struct hal_text *text, const hal_ir_kernel *kernel, uint32_t index);

/* Names in text of small numbers; null ends each list. */
extern const char *const hal_ir_atomic_names[HAL_IR_ATOMIC_COUNT + 1];
extern const char *const hal_ir_reduction_names[HAL_IR_REDUCE_COUNT + 1];
extern const char *const hal_ir_dimension_names[4];

/* The message about a violated rule. */
typedef struct hal_ir_problem {
    char text[320];
} hal_ir_problem;

/* Sets the message. Returns 0. */
bool hal_ir_reject(hal_ir_problem *problem, const char *format, ...) HAL_PRINTF(2, 3);

/* Checks a record against the table: opcode, operands, types, fields, but not scopes. Operands are
 * records before `count`; the kernel's declarations have been checked. Returns 1 with the type and
 * width of the result, or 0 with the problem. */
bool hal_ir_check_record(const hal_ir_kernel *kernel, uint32_t count, const hal_ir_record *record,
                         hal_type *type, uint32_t *width, hal_ir_problem *problem);

/* A name is a letter or _, then letters, digits and _, at most HAL_IR_MAX_NAME of them. */
bool hal_ir_is_name(const char *name);

/* The bytes of a block of scalars: the end of the last one, rounded up to the largest size. */
uint32_t hal_ir_scalar_block(const hal_ir_scalar *scalars, uint32_t count);

/* The block in which a value is defined. The value is visible while that block is open. */
typedef struct hal_ir_place {
    uint32_t block;
    uint32_t depth;
} hal_ir_place;

/* The blocks that are open at a point of a kernel. */
typedef struct hal_ir_scope {
    uint32_t depth;
    uint32_t blocks; /* opened so far */
    uint32_t block[HAL_IR_MAX_DEPTH + 1];
    uint32_t opener[HAL_IR_MAX_DEPTH + 1]; /* the record that opened it */
} hal_ir_scope;

/* Moves the scope past record `index`: closes and opens blocks, and sets the place of its value.
 * 1, or 0 and the problem. */
bool hal_ir_scope_pass(hal_ir_scope *scope, const hal_ir_record *records, uint32_t index,
                       hal_ir_place *place, hal_ir_problem *problem);

/* Checks that the operands of a record are visible; `places` has those of the `count` records. */
bool hal_ir_scope_check(const hal_ir_scope *scope, const hal_ir_record *records,
                        const hal_ir_place *places, uint32_t count, const hal_ir_record *record,
                        hal_ir_problem *problem);

/* ---- The builder's raw entries, for parser, splice and legaliser ---- */

/* Whether calls on the builder have an effect: it is not null, not finished and has not failed.
 * Sets the thread's message otherwise. */
bool hal_ir_builder_is_usable(hal_ir_builder *builder);

/* Appends a record. Type and width are checked, or filled in where they are 0. Errors: sticky. */
hal_ir_value hal_ir_append(hal_ir_builder *builder, hal_ir_record record);

/* The same of a record that a verified kernel has, with its operands renamed: not checked again. */
hal_ir_value hal_ir_append_copy(hal_ir_builder *builder, const hal_ir_record *record);

/* hal_ir_builder_finish without its copy: hal_ir_builder_view is then a verified kernel.
 * `function`: who finishes it, for messages. Errors: those of finish. */
hal_status hal_ir_builder_end(hal_ir_builder *builder, const char *function);

/* hal_ir_builder_finish without its check, for a caller that verifies what comes of the kernel. */
hal_status hal_ir_builder_finish_unverified(hal_ir_builder *builder, hal_ir_kernel **kernel);

/* A builder that keeps the order of records and makes no constants or ids by itself: the
 * parser's. */
hal_status hal_ir_builder_create_raw(const char *name, uint32_t flags, hal_ir_builder **builder);

/* The index of a constant in the pool, which holds each once. */
uint32_t hal_ir_pool(hal_ir_builder *builder, uint64_t bits);
hal_ir_value hal_ir_constant_of(hal_ir_builder *builder, hal_type type, uint64_t bits);

/* The record that finish rejected; NONE if the fault is not in one record. */
uint32_t hal_ir_builder_wrong_record(const hal_ir_builder *builder);

/* hal_ir_verify with the index of the rejected record. */
hal_status hal_ir_verify_at(const hal_ir_kernel *kernel, uint32_t *record);

/* The same of records that hal_ir_append has checked one by one. */
hal_status hal_ir_verify_appended(const hal_ir_kernel *kernel, uint32_t *record);

/* Declares a scalar at an offset without a record. Returns its index. */
uint32_t hal_ir_declare_scalar(hal_ir_builder *builder, const char *name, hal_type type,
                               uint32_t offset);
void hal_ir_set_scalar_bytes(hal_ir_builder *builder, uint32_t bytes);

/* Counts an input or output of a fragment before its record is appended. */
void hal_ir_count_fragment(hal_ir_builder *builder, uint32_t opcode, uint32_t number);

/* Sets the thread's message and, if it is the first, the builder's error. */
void hal_ir_builder_fail(hal_ir_builder *builder, hal_status status, const char *format, ...)
    HAL_PRINTF(3, 4);

/* The kernel so far. */
const hal_ir_kernel *hal_ir_builder_view(const hal_ir_builder *builder);

/* A record with these operands; all other fields are 0. */
static inline hal_ir_record hal_ir_record_of(uint32_t opcode, hal_ir_value a, hal_ir_value b,
                                             hal_ir_value c, hal_ir_value d)
{
    return (hal_ir_record){.opcode = (uint16_t)opcode, .a = a, .b = b, .c = c, .d = d};
}

static inline hal_ir_record hal_ir_record_blank(uint32_t opcode)
{
    return hal_ir_record_of(opcode, HAL_IR_NONE, HAL_IR_NONE, HAL_IR_NONE, HAL_IR_NONE);
}

/* Replaces every operand by its entry in `values`. */
static inline void hal_ir_record_rename(hal_ir_record *record, const hal_ir_value *values)
{
    hal_ir_value *operands[4] = {&record->a, &record->b, &record->c, &record->d};
    for (uint32_t k = 0; k < 4; k++) {
        if (*operands[k] != HAL_IR_NONE) {
            *operands[k] = values[*operands[k]];
        }
    }
}

/* A kernel in one block of memory: the structure, then its arrays. */

/* Bytes of the block. */
size_t hal_ir_kernel_packed_bytes(const hal_ir_kernel *kernel);

/* Copies a kernel to a block of that many bytes, aligned to 8. Returns the block. */
hal_ir_kernel *hal_ir_kernel_pack(const hal_ir_kernel *kernel, void *block);

/* Sets the pointers of a packed kernel that has moved. Returns it, or null where the block is not
 * one of this version; its arrays are not checked. */
const hal_ir_kernel *hal_ir_kernel_unpack(void *block, size_t bytes);

#endif
