/* The intermediate representation of kernels, as plain data.
 *
 * A kernel is a list of records of fixed width. Operands are 32-bit indices of earlier records, so
 * a kernel can be copied, hashed, written to a file or handed to a plugin without translation.
 * Programs build kernels with ir_build.h; plugins read them with what is in this header alone.
 * docs/kernels.md explains each opcode for people who write kernels; docs/ir.md has the reference.
 *
 * Rules that every verified kernel keeps, so that a plugin may rely on them:
 *  - a value is the index of the record that defines it; it may be used after its definition, in
 *    the same block or in a block nested in it; the value of a FOR is seen in its block only;
 *  - what changes across a loop or a branch is a variable (VAR, GET, SET); there are no phi nodes;
 *  - FOR, IF, ELSE and END are properly nested;
 *  - BARRIER, ASYNC_WAIT and the subgroup operations stand only where control is uniform in the
 *    work-group (ir_uniform.h says what that means);
 *  - vectors (width 2, 4, 8) are made by LOAD and PACK and taken by STORE and EXTRACT only. */
#ifndef HAL_IR_H
#define HAL_IR_H

#include <hal/ir_opcodes.h>
#include <hal/ir_types.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "No operand": the value of an operand field that is not used. */
#define HAL_IR_NONE UINT32_MAX

#define HAL_IR_MAX_BINDINGS 24u      /* bindings of a kernel */
#define HAL_IR_MAX_SCALAR_BYTES 512u /* the block of scalars of one dispatch */
#define HAL_IR_MAX_RECORDS (1u << 20)
#define HAL_IR_MAX_SHARED 64u            /* shared arrays of a kernel */
#define HAL_IR_MAX_SHARED_BYTES (1u << 24)
#define HAL_IR_MAX_GROUP_ITEMS (1u << 16)
#define HAL_IR_MAX_DEPTH 64u             /* blocks inside one another */
#define HAL_IR_MAX_NAME 127u             /* bytes of a name: letters, digits, _; no digit first */
#define HAL_IR_MAX_FRAGMENT_VALUES 64u   /* inputs, and outputs, of a fragment */

/* Lanes of a subgroup where hal carries out subgroup operations through shared memory, because the
 * device says subgroup_width 0. Everywhere: work-item l of a group, counted x first, then y, then
 * z, is lane l mod width of subgroup l / width; the last subgroup may be short. */
#define HAL_IR_EMULATED_SUBGROUP 32u

/* Lanes that a MATRIX_MULTIPLY is spread over. */
#define HAL_IR_MATRIX_LANES 32u

/* The index of the record that defines a value. */
typedef uint32_t hal_ir_value;

/* Flag of a transcendental function: the device's own fast version is welcome. */
#define HAL_IR_FAST 1u

/* MATRIX_MULTIPLY: A is 16 rows of 8 words along k, B is 8 words along k of 8 columns, C is 16 x 8.
 * A word is two neighbours in k of F16 or BF16, the first one in the low half; or one F32, of which
 * only the highest 19 bits count; or one F64. With g = lane / 4 and t = lane % 4 a lane holds
 *   A: (row g, word t), (g + 8, t), (g, t + 4), (g + 8, t + 4);
 *   B: (word t, column g), (t + 4, g);
 *   C: (row g, column 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1).
 * Products are exact; sums are of F32 at least as wide, in an order and with a rounding of the
 * device's own. Of F64 C and the sums are F64, and each step of k is an FMA of F64, in an order of
 * the device's own. All subgroups are full: the group's work-items are a multiple of 32. */

/* What an ATOMIC does (in flags) and how a SUBGROUP_REDUCE combines (in aux). */
enum {
    HAL_IR_ATOMIC_ADD = 0,
    HAL_IR_ATOMIC_MIN = 1,
    HAL_IR_ATOMIC_MAX = 2,
    HAL_IR_ATOMIC_AND = 3,
    HAL_IR_ATOMIC_OR = 4,
    HAL_IR_ATOMIC_XOR = 5,
    HAL_IR_ATOMIC_EXCHANGE = 6,
    HAL_IR_ATOMIC_COMPARE_EXCHANGE = 7,
    HAL_IR_ATOMIC_COUNT = 8
};
enum {
    HAL_IR_REDUCE_ADD = 0,
    HAL_IR_REDUCE_MIN = 1,
    HAL_IR_REDUCE_MAX = 2,
    HAL_IR_REDUCE_COUNT = 3
};

/* One operation. `type` and `width` are those of the result; HAL_TYPE_NONE and 0 where there is
 * none; STORE and ASYNC_COPY have the width of the access without a type. Unused operands are
 * HAL_IR_NONE, unused aux, imm and flags are 0. */
typedef struct hal_ir_record {
    uint16_t opcode;
    hal_type type;
    uint8_t width;
    uint32_t a, b, c, d;
    uint32_t aux;
    int32_t imm;
    uint32_t flags;
} hal_ir_record;

/* How a kernel touches a binding; the same bits mark a binding of a command. Bytes that a kernel
 * does not write keep their values, with HAL_ACCESS_WRITE too. */
enum { HAL_ACCESS_READ = 1, HAL_ACCESS_WRITE = 2, HAL_ACCESS_READ_WRITE = 3 };

/* A binding (device memory that a dispatch names) or an array in the group's shared memory. */
typedef struct hal_ir_memory {
    uint32_t name;  /* offset in names */
    uint32_t count; /* shared: elements; bindings: 0, their length comes with the dispatch */
    hal_type type;
    uint8_t access;   /* HAL_ACCESS_*; shared: READ_WRITE */
    uint8_t reserved[2];
} hal_ir_memory;

/* A scalar: `offset` bytes into the dispatch's block, aligned to its own size; in rising order. */
typedef struct hal_ir_scalar {
    uint32_t name;
    uint16_t offset;
    hal_type type;
    uint8_t reserved;
} hal_ir_scalar;

/* Set in hal_ir_kernel.flags: not a kernel but an expression, INPUTs to OUTPUTs, that is
 * spliced into kernels or handed to a plugin as an epilogue. */
#define HAL_IR_FRAGMENT 1u

/* A kernel. The arrays belong to whoever made the kernel and never change. Names are for people:
 * each word of each language may be one. */
typedef struct hal_ir_kernel {
    uint32_t size;          /* sizeof(hal_ir_kernel) of the maker */
    uint32_t version;       /* HAL_IR_VERSION of the maker */
    uint32_t flags;
    uint32_t name;          /* offset in names */
    uint32_t group_size[3]; /* work-items of a group */
    uint32_t record_count;
    uint32_t memory_count;  /* bindings first, then shared arrays */
    uint32_t binding_count;
    uint32_t scalar_count;
    uint32_t scalar_bytes;  /* of the whole block */
    uint32_t constant_count;
    uint32_t name_bytes;
    uint32_t input_count;   /* of a fragment */
    uint32_t output_count;
    uint32_t groups_per_unit; /* hint: groups a compute unit should hold at once; 0: no wish */
    uint32_t reserved;
    const hal_ir_record *records;
    const hal_ir_memory *memories;
    const hal_ir_scalar *scalars;
    const uint64_t *constants;
    const char *names; /* zero-terminated strings */
} hal_ir_kernel;

/* Whether memory `index` of a kernel is an array in shared memory rather than a binding. */
static inline int hal_ir_is_shared(const hal_ir_kernel *kernel, uint32_t index)
{
    return index >= kernel->binding_count;
}

/* Work-items of a group. */
static inline uint32_t hal_ir_group_items(const hal_ir_kernel *kernel)
{
    return kernel->group_size[0] * kernel->group_size[1] * kernel->group_size[2];
}

/* The operands of a record that are values (or a VAR), in the order a, b, c, d: writes up to four
 * and gives their number. */
static inline uint32_t hal_ir_operands(const hal_ir_record *record, hal_ir_value operands[4])
{
    const hal_ir_value all[4] = {record->a, record->b, record->c, record->d};
    uint32_t count = 0;
    for (uint32_t i = 0; i < 4; i++) {
        if (all[i] != HAL_IR_NONE) {
            operands[count++] = all[i];
        }
    }
    return count;
}

/* Whether a record opens a block, and whether it closes one (ELSE does both). */
static inline int hal_ir_opens_block(uint32_t opcode)
{
    return opcode == HAL_IR_FOR || opcode == HAL_IR_IF || opcode == HAL_IR_ELSE;
}
static inline int hal_ir_closes_block(uint32_t opcode)
{
    return opcode == HAL_IR_ELSE || opcode == HAL_IR_END;
}

#ifdef __cplusplus
}
#endif
#endif
