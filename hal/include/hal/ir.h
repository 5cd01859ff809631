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

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever an opcode or a field is appended. */
#define HAL_IR_VERSION 2u /* 2: MATRIX_MULTIPLY */

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

/* Element types. Memory may hold any of them. Values are BOOL, I32, U32, I64, U64, F32 or F64:
 * a load widens (F16 and BF16 to F32, I8 and I16 to I32, U8 and U16 to U32), a store narrows
 * (floats to nearest even, integers by dropping high bits). BOOL takes one byte, 0 or 1. */
typedef uint8_t hal_type;
enum {
    HAL_TYPE_NONE = 0,
    HAL_TYPE_BOOL = 1,
    HAL_TYPE_I8 = 2,
    HAL_TYPE_U8 = 3,
    HAL_TYPE_I16 = 4,
    HAL_TYPE_U16 = 5,
    HAL_TYPE_I32 = 6,
    HAL_TYPE_U32 = 7,
    HAL_TYPE_I64 = 8,
    HAL_TYPE_U64 = 9,
    HAL_TYPE_F16 = 10,
    HAL_TYPE_BF16 = 11,
    HAL_TYPE_F32 = 12,
    HAL_TYPE_F64 = 13,
    HAL_TYPE_COUNT = 14
};

/* A set of types has the bit of each member. */
#define HAL_TYPE_BIT(type) (UINT32_C(1) << (type))

/* Operands are a, b, c, d (values), aux (an index or a kind) and imm (a signed number). */
enum {
    /* Inputs. */
    HAL_IR_CONSTANT = 1,    /* aux: index in constants; the bits of `type`, zero-extended */
    HAL_IR_SCALAR = 2,      /* aux: index in scalars */
    HAL_IR_LOCAL_ID = 3,    /* aux: dimension 0..2. u32, the work-item's place in its group */
    HAL_IR_GROUP_ID = 4,    /* aux: dimension. u32, the group's place in the grid */
    HAL_IR_GROUP_COUNT = 5, /* aux: dimension. u32, groups in the grid */
    HAL_IR_LANE_ID = 6,     /* u32, the work-item's place in its subgroup */
    HAL_IR_INPUT = 7,       /* aux: number of the input. In fragments only */
    HAL_IR_OUTPUT = 8,      /* aux: number of the output, a: value. In fragments only. Each number
                             * below input_count and output_count stands once */

    /* Arithmetic, both operands and the result of one type. Integers wrap. Floats round to nearest
     * even; which NaN an operation gives is not said. */
    HAL_IR_ADD = 16,
    HAL_IR_SUB = 17,
    HAL_IR_MUL = 18,
    HAL_IR_DIV = 19,   /* integers towards zero, x / 0 = 0, INT_MIN / -1 = INT_MIN */
    HAL_IR_REM = 20,   /* sign of the dividend, x % 0 = 0; floats as C's fmod */
    HAL_IR_NEG = 21,   /* floats: the sign bit is flipped, NaN too */
    HAL_IR_ABS = 22,   /* floats: the sign bit is cleared; integers wrap at the smallest */
    HAL_IR_MIN = 23,   /* NaN if either is NaN; min(-0, 0) = -0 */
    HAL_IR_MAX = 24,   /* NaN if either is NaN; max(-0, 0) = 0 */
    HAL_IR_FMA = 25,   /* floats: a * b + c, rounded once */
    HAL_IR_SQRT = 26,  /* floats */
    HAL_IR_FLOOR = 27, /* floats */
    HAL_IR_TRUNC = 28, /* floats, towards zero */
    HAL_IR_RINT = 29,  /* floats, to nearest even */
    HAL_IR_MULHI = 30, /* integers: the high half of the full product */

    /* Bits of integers; AND, OR, XOR and NOT take BOOL too. */
    HAL_IR_AND = 32,
    HAL_IR_OR = 33,
    HAL_IR_XOR = 34,
    HAL_IR_NOT = 35,
    HAL_IR_SHL = 36, /* a << (b mod width of a); b has the type of a */
    HAL_IR_SHR = 37, /* arithmetic for signed types, logical for unsigned */

    /* Comparisons give BOOL; with NaN all are false but NE. */
    HAL_IR_EQ = 40,
    HAL_IR_NE = 41,
    HAL_IR_LT = 42,
    HAL_IR_LE = 43,
    HAL_IR_SELECT = 44, /* a: BOOL, b: where true, c: where false */

    /* Conversions. */
    HAL_IR_CAST = 48,    /* a. Float to integer saturates, NaN gives 0; to BOOL: a != 0 */
    HAL_IR_BITCAST = 49, /* a: the same bits in another type of the same size */
    HAL_IR_NARROW = 50,  /* a, aux: a storage type. The value as it reads back after a store */
    HAL_IR_PACK = 51,    /* a, b (, c, d): width 2 or 4 of scalars; two of width 4 make width 8 */
    HAL_IR_EXTRACT = 52, /* a: vector, imm: element */

    /* Memory. aux: index in memories, a: element index (i32, u32, i64, u64), imm: added to it,
     * b: guard (BOOL or NONE). Where the guard is false no access is formed and a load or an atomic
     * gives 0. A vector access is aligned to its own size. */
    HAL_IR_LOAD = 56,         /* width elements */
    HAL_IR_STORE = 57,        /* c: value */
    HAL_IR_ATOMIC = 58,       /* c: operand, d: comparand of COMPARE_EXCHANGE, flags: what it does,
                               * HAL_IR_ATOMIC_*; gives the old value. Memory of I32, U32, I64,
                               * U64 */
    HAL_IR_ASYNC_COPY = 59,   /* aux: shared memory, a: its index; d: global index, imm: binding;
                               * width elements, b: guard (0 is written where it is false).
                               * Both memories are of one type */
    HAL_IR_ASYNC_COMMIT = 60, /* closes a set of asynchronous copies */
    HAL_IR_ASYNC_WAIT = 61,   /* imm: how many of the newest sets may still be under way */

    /* Variables: one copy for each work-item. */
    HAL_IR_VAR = 64, /* a: initial value. Names the variable; only GET and SET may take it. `type`
                      * is that of the variable, width 1 */
    HAL_IR_GET = 65, /* a: VAR */
    HAL_IR_SET = 66, /* a: VAR, b: value */

    /* Control. */
    HAL_IR_FOR = 72,     /* for (i = a; i < b; i += c), the value is i; i32 or u32, c > 0, and the
                          * last i + c stays within the type */
    HAL_IR_IF = 73,      /* a: BOOL */
    HAL_IR_ELSE = 74,    /* of the nearest open IF */
    HAL_IR_END = 75,     /* of the nearest open FOR, IF or ELSE */
    HAL_IR_BARRIER = 76, /* all work-items of the group arrive; their memory accesses are seen */

    /* Subgroups: only where control is uniform. */
    HAL_IR_SHUFFLE = 80,         /* a: value, b: u32 lane to read from, modulo the width. A lane
                                  * that a short subgroup lacks gives any value */
    HAL_IR_SHUFFLE_XOR = 81,     /* a: value, imm: mask for the own lane, 0..127 */
    HAL_IR_SUBGROUP_REDUCE = 82, /* a: value, aux: HAL_IR_REDUCE_*; every lane has the result */
    HAL_IR_MATRIX_MULTIPLY = 83, /* A B + C of matrices spread over 32 lanes, see below. a: A, U32
                                  * of width 4; b: B, U32 of width 2; c: C, and the result: F32 of
                                  * width 4; aux: element type of A and B: F16, BF16 or F32 */

    /* Transcendental functions of f32 and f64. hal expands them by ir_math.h unless the device
     * claims them, with the same bits, or flags ask for HAL_IR_FAST. */
    HAL_IR_EXP = 96,
    HAL_IR_EXP2 = 97,
    HAL_IR_EXPM1 = 98,
    HAL_IR_LOG = 99,
    HAL_IR_LOG2 = 100,
    HAL_IR_LOG1P = 101,
    HAL_IR_SIN = 102,
    HAL_IR_COS = 103,
    HAL_IR_TAN = 104,
    HAL_IR_ATAN = 105,
    HAL_IR_TANH = 106,
    HAL_IR_ERF = 107,
    HAL_IR_RSQRT = 108,
    HAL_IR_POW = 109,
    HAL_IR_OPCODE_COUNT = 110
};
#define HAL_IR_MATH_FIRST HAL_IR_EXP
#define HAL_IR_MATH_COUNT (HAL_IR_OPCODE_COUNT - HAL_IR_EXP)

/* Flag of a transcendental function: the device's own fast version is welcome. */
#define HAL_IR_FAST 1u

/* MATRIX_MULTIPLY: A is 16 rows of 8 words along k, B is 8 words along k of 8 columns, C is 16 x 8.
 * A word is two neighbours in k of F16 or BF16, the first one in the low half, or one F32, of which
 * only the highest 19 bits count. With g = lane / 4 and t = lane % 4 a lane holds
 *   A: (row g, word t), (g + 8, t), (g, t + 4), (g + 8, t + 4);
 *   B: (word t, column g), (t + 4, g);
 *   C: (row g, column 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1).
 * Products are exact; sums are of F32 at least as wide, in an order and with a rounding of the
 * device's own. All subgroups are full: the group's work-items are a multiple of 32. */

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

/* How a kernel touches a binding; the same bits mark a binding of a command. */
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

/* Set in hal_ir_kernel.flags: no kernel of its own but an expression, INPUTs to OUTPUTs, that is
 * spliced into kernels or handed to a plugin as an epilogue. */
#define HAL_IR_FRAGMENT 1u

/* A kernel. The arrays belong to whoever made the kernel and never change. */
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

/* Bytes of one element in memory; 0 for HAL_TYPE_NONE and values that are no type. */
static inline uint32_t hal_type_size(hal_type type)
{
    static const uint8_t bytes[HAL_TYPE_COUNT] = {0, 1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
    return type < HAL_TYPE_COUNT ? bytes[type] : 0;
}

/* The type that a value has after a load from memory of `type`, as said above. */
static inline hal_type hal_type_of_value(hal_type type)
{
    static const hal_type widened[HAL_TYPE_COUNT] = {
        HAL_TYPE_NONE, HAL_TYPE_BOOL, HAL_TYPE_I32, HAL_TYPE_U32, HAL_TYPE_I32,
        HAL_TYPE_U32,  HAL_TYPE_I32,  HAL_TYPE_U32, HAL_TYPE_I64, HAL_TYPE_U64,
        HAL_TYPE_F32,  HAL_TYPE_F32,  HAL_TYPE_F32, HAL_TYPE_F64};
    return type < HAL_TYPE_COUNT ? widened[type] : (hal_type)HAL_TYPE_NONE;
}

/* Whether a type is a float, and whether it is an integer (BOOL is neither). */
static inline int hal_type_is_float(hal_type type)
{
    return type >= HAL_TYPE_F16 && type <= HAL_TYPE_F64;
}
static inline int hal_type_is_integer(hal_type type)
{
    return type >= HAL_TYPE_I8 && type <= HAL_TYPE_U64;
}
static inline int hal_type_is_signed(hal_type type)
{
    return type == HAL_TYPE_I8 || type == HAL_TYPE_I16 || type == HAL_TYPE_I32 ||
           type == HAL_TYPE_I64;
}

/* Whether a record is a transcendental function. */
static inline int hal_ir_is_math(uint32_t opcode)
{
    return opcode >= HAL_IR_MATH_FIRST && opcode < HAL_IR_OPCODE_COUNT;
}

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
