/* The Fortran interface: dgemm_ with 32-bit integers, dgemm_64_ with 64-bit integers. Lengths of
 * character arguments come last, by value, and are not needed. */
#include "entry.h"
#include "forward.h"
#include "groups.h"

/* Programs declare these functions themselves. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define INTEGER int32_t
#define IS_64 false
#define ENTRY(name) name##_
#include "fortran.inl"
#undef INTEGER
#undef IS_64
#undef ENTRY

#define INTEGER int64_t
#define IS_64 true
#define ENTRY(name) name##_64_
#include "fortran.inl"
