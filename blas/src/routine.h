/* The routines of level 3: one table, from which names, entry points and properties are made. */
#ifndef BLAS_SRC_ROUTINE_H
#define BLAS_SRC_ROUTINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum blas_kind {
    BLAS_GEMM,
    BLAS_GEMMT, /* gemm of which one triangle of C is computed */
    BLAS_SYMM,
    BLAS_HEMM,
    BLAS_SYRK,
    BLAS_HERK,
    BLAS_SYR2K,
    BLAS_HER2K,
    BLAS_TRMM,
    BLAS_TRSM
} blas_kind;

#define BLAS_KINDS (BLAS_TRSM + 1)

/* Element types: the standard's letters s, d, c, z, then h for F16 and b for BF16. */
typedef enum blas_type {
    BLAS_TYPE_s,
    BLAS_TYPE_d,
    BLAS_TYPE_c,
    BLAS_TYPE_z,
    BLAS_TYPE_h,
    BLAS_TYPE_b,
    BLAS_TYPE_sh = BLAS_TYPE_s, /* of results and scalars, where A and B are narrower */
    BLAS_TYPE_sb = BLAS_TYPE_s
} blas_type;
#define BLAS_STANDARD_TYPES (BLAS_TYPE_z + 1)

/* The types of A and B of routines with that prefix. */
#define BLAS_OPERANDS_s BLAS_TYPE_s
#define BLAS_OPERANDS_d BLAS_TYPE_d
#define BLAS_OPERANDS_c BLAS_TYPE_c
#define BLAS_OPERANDS_z BLAS_TYPE_z
#define BLAS_OPERANDS_h BLAS_TYPE_h
#define BLAS_OPERANDS_sh BLAS_TYPE_h
#define BLAS_OPERANDS_sb BLAS_TYPE_b

/* One row for each routine: a macro for its arguments, of which there are eight shapes; the letters
 * of its types; its name without them; its kind; and for rank-k updates the letter of the
 * type of beta (syrk, herk: of alpha as well), which is real for the Hermitian ones. */
#define BLAS_ALL_TYPES(ROW, name, kind) \
    ROW(s, name, kind, s)               \
    ROW(d, name, kind, d)               \
    ROW(c, name, kind, c)               \
    ROW(z, name, kind, z)
#define BLAS_COMPLEX_TYPES(ROW, name, kind) \
    ROW(c, name, kind, c)                   \
    ROW(z, name, kind, z)
#define BLAS_HERMITIAN_TYPES(ROW, name, kind) \
    ROW(c, name, kind, s)                     \
    ROW(z, name, kind, d)

#define BLAS_ROUTINES(GEMM, GEMMT, SYMM, SYRK, SYR2K, TRMM, STRIDED, GROUPS) \
    BLAS_ALL_TYPES(GEMM, gemm, BLAS_GEMM)                                    \
    BLAS_COMPLEX_TYPES(GEMM, gemm3m, BLAS_GEMM)                              \
    BLAS_ALL_TYPES(GEMMT, gemmt, BLAS_GEMMT)                                 \
    BLAS_ALL_TYPES(GEMMT, gemmtr, BLAS_GEMMT)                                \
    BLAS_ALL_TYPES(SYMM, symm, BLAS_SYMM)                                    \
    BLAS_COMPLEX_TYPES(SYMM, hemm, BLAS_HEMM)                                \
    BLAS_ALL_TYPES(SYRK, syrk, BLAS_SYRK)                                    \
    BLAS_HERMITIAN_TYPES(SYRK, herk, BLAS_HERK)                              \
    BLAS_ALL_TYPES(SYR2K, syr2k, BLAS_SYR2K)                                 \
    BLAS_HERMITIAN_TYPES(SYR2K, her2k, BLAS_HER2K)                           \
    BLAS_ALL_TYPES(TRMM, trmm, BLAS_TRMM)                                    \
    BLAS_ALL_TYPES(TRMM, trsm, BLAS_TRSM)                                    \
    GEMM(h, gemm, BLAS_GEMM, h)                                              \
    GEMM(sh, gemm, BLAS_GEMM, s)                                             \
    GEMM(sb, gemm, BLAS_GEMM, s)                                             \
    BLAS_ALL_TYPES(STRIDED, gemm_batch_strided, BLAS_GEMM)                   \
    BLAS_ALL_TYPES(GROUPS, gemm_batch, BLAS_GEMM)

/* The rows of BLAS_ROUTINES with one macro for all shapes. */
#define BLAS_EACH_ROUTINE(ROW) BLAS_ROUTINES(ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW)

#define BLAS_ROUTINE_ID(letter, name, kind, scalar) BLAS_ROUTINE_##letter##name,
typedef enum blas_routine { BLAS_EACH_ROUTINE(BLAS_ROUTINE_ID) BLAS_ROUTINE_COUNT } blas_routine;

typedef struct blas_routine_info {
    const char *name; /* such as "dgemm" */
    blas_kind kind;
    blas_type type;     /* of C, and of scalars but for the real ones of Hermitian updates */
    blas_type operands; /* of A and B */
} blas_routine_info;

extern const blas_routine_info blas_routines[BLAS_ROUTINE_COUNT];

static inline bool blas_type_is_complex(blas_type type)
{
    return type == BLAS_TYPE_c || type == BLAS_TYPE_z;
}

/* The reals of an element. */
static inline int64_t blas_type_parts(blas_type type)
{
    return blas_type_is_complex(type) ? 2 : 1;
}

/* Of the real type that an element is, or consists of. */
static inline size_t blas_type_real_bytes(blas_type type)
{
    return type == BLAS_TYPE_h || type == BLAS_TYPE_b   ? sizeof(uint16_t)
           : type == BLAS_TYPE_s || type == BLAS_TYPE_c ? sizeof(float)
                                                        : sizeof(double);
}

static inline size_t blas_type_bytes(blas_type type)
{
    return blas_type_real_bytes(type) * (blas_type_is_complex(type) ? 2 : 1);
}

#endif
