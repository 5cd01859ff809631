/* The routines of one instruction set for f32 and for f64. Included at the end of each
 * micro_<isa>.c, which has defined, for X in f32 and f64:
 *   vec_X, mask_X               a vector, and a mask of its first elements
 *   splat_X load_X store_X stream_X fma_X zip_lo_X zip_hi_X loadm_X storem_X mask_of_X
 *   stream_fence                orders streamed stores before later ones
 *   widen_f32 widenm_f32 narrow_f32 narrowm_f32   conversions from and to storage types
 *   LANES_F32                   elements of vec_f32
 *   MR, NV                      rows, and vectors of a row, of a tile
 *   HAS_HALVES                  whether tiles of half a vector are faster: then the vector's types
 *                               and functions have forms half_... of half as many elements
 *   HAS_FAST_MASKED_STORES      whether storem_X takes about as long as store_X
 *   TABLE                       the name of the table */
ALWAYS_INLINE vec_f64 widen_f64(const void *p, int64_t i, const enum cpu_gemm_type type)
{
    (void)type;
    return load_f64((const double *)p + i);
}

ALWAYS_INLINE vec_f64 widenm_f64(const void *p, int64_t i, const enum cpu_gemm_type type, int n)
{
    (void)type;
    return loadm_f64((const double *)p + i, mask_of_f64(n));
}

ALWAYS_INLINE void narrow_f64(void *p, int64_t i, const enum cpu_gemm_type type, vec_f64 v)
{
    (void)type;
    store_f64((double *)p + i, v);
}

ALWAYS_INLINE void narrowm_f64(void *p, int64_t i, const enum cpu_gemm_type type, int n, vec_f64 v)
{
    (void)type;
    storem_f64((double *)p + i, mask_of_f64(n), v);
}

enum { MOST_Y = MR >= 8 ? 4 : 2 }; /* rows of Y that have registers for their sums in dot */
enum { MOST_CHAINS = MR * NV > 12 ? 4 : 2 }; /* rows of strips that are summed in chains */

#define T float
#if HAS_HALVES
#define LANES (LANES_F32 / 2)
#define V(name) half_##name##_f32
#include "gemm/tile.inl"
#undef LANES
#undef V
#endif
#define LANES LANES_F32
#define V(name) name##_f32
#define DISPATCH DISPATCH_F32
#include "gemm/tile.inl"
#include "gemm/few.inl"
#include "gemm/micro.inl"
#include "gemm/pack.inl"
#include "gemm/sums.inl"
#include "gemm/skinny.inl"
#undef T
#undef LANES
#undef V
#undef DISPATCH

#define T double
#if HAS_HALVES
#define LANES (LANES_F32 / 4)
#define V(name) half_##name##_f64
#include "gemm/tile.inl"
#undef LANES
#undef V
#endif
#define LANES (LANES_F32 / 2)
#define V(name) name##_f64
#define DISPATCH DISPATCH_F64
#include "gemm/tile.inl"
#include "gemm/few.inl"
#include "gemm/micro.inl"
#include "gemm/pack.inl"
#include "gemm/sums.inl"
#include "gemm/skinny.inl"

const struct cpu_gemm_kernels TABLE[2] = {
    {MR, NV *LANES_F32, LANES_F32, MOST_Y, MOST_CHAINS, strip_f32, copy_f32, transpose_f32,
     store_to_f32, dot_f32, axpy_f32, sums_f32, combine_f32},
    {MR, NV *LANES, LANES, MOST_Y, MOST_CHAINS, strip_f64, copy_f64, transpose_f64, store_to_f64,
     dot_f64, axpy_f64, sums_f64, combine_f64},
};
