/* The C interface: cblas_dgemm with 32-bit integers; with 64-bit integers cblas_dgemm_64, and
 * cblas_dgemm64_, the name in OpenBLAS. A row-major matrix is the transposed column-major one. */
#include "entry.h"
#include "forward.h"
#include "groups.h"

/* Programs declare these functions by their own header. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static void cblas_run(int layout, blas_call call)
{
    if (blas_layout_begin(layout, &call)) {
        blas_run(&call);
    }
}

/* Scalars: real ones are values, complex ones pointers. */
#define SCALAR_s(name) const float name
#define SCALAR_d(name) const double name
#define SCALAR_c(name) const void *name
#define SCALAR_z(name) const void *name
#define ADDRESS_s(name) &name
#define ADDRESS_d(name) &name
#define ADDRESS_c(name) name
#define ADDRESS_z(name) name
#define SCALAR_h(name) const uint16_t name
#define SCALAR_sh(name) const float name
#define SCALAR_sb(name) const float name
#define ADDRESS_h(name) &name
#define ADDRESS_sh(name) &name
#define ADDRESS_sb(name) &name
#define SCALARS_s(name) const float *name
#define SCALARS_d(name) const double *name
#define SCALARS_c(name) const void *name
#define SCALARS_z(name) const void *name

#define INTEGER int32_t
#define IS_64 false
#define ENTRY(name) cblas_##name
#include "cblas.inl"
#undef INTEGER
#undef IS_64
#undef ENTRY

#define INTEGER int64_t
#define IS_64 true
#define ENTRY(name) cblas_##name##_64
#include "cblas.inl"
#undef ENTRY

#define ENTRY(name) cblas_##name##64_
#include "cblas.inl"
