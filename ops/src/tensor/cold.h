/* Cold signatures: whether a kernel that does not exist yet is made now, or the work is done by
 * kernels of single operations, which other work shares. docs/batching.md has the rule and the
 * figures behind it.
 *
 * The rule is that of renting or buying: single kernels are used until what they cost beyond the
 * fused one adds up to what making that one takes, so that at most twice the least possible time is
 * spent, and no call stalls for long. */
#ifndef OPS_SRC_TENSOR_COLD_H
#define OPS_SRC_TENSOR_COLD_H

#include "context.h"

/* Kernels that are made faster than this are made at once: those of the cpu, those of a warm disk
 * cache. Nanoseconds. */
#define OPS_COLD_LEAST UINT64_C(4000000)

/* What a job costs more in single kernels: each, and the bytes of what lies between them. */
#define OPS_COLD_KERNEL_NS 1000u
#define OPS_COLD_BYTES_PER_NS 500u     /* of a device of its own */
#define OPS_COLD_CPU_BYTES_PER_NS 15u /* of a processor's memory */

#define OPS_COLD_SIGNATURES 1024u
struct ops_cold {
    uint64_t least_ns;  /* OPS_COLD_LEAST; tests that count kernels raise it, for no clock's sake */
    uint64_t making_ns; /* what kernels took to make lately; 0: none was made */
    int refuse;         /* kernels are not made now */
    struct {
        uint64_t key, spent_ns;
    } signatures[OPS_COLD_SIGNATURES];
};

/* What making a kernel answers while it is refused; it never leaves the library. */
#define OPS_COLD_REFUSED ((hal_status)-1)

/* Notes what making a kernel took. */
void ops_cold_note(ops_context *context, uint64_t nanoseconds);

/* Whether a job of that many kernels, with so many bytes between them, is done by single ones this
 * time, and each such time's cost is added up: NO, FIRST (it has not come before) or AGAIN. */
enum { OPS_COLD_NO, OPS_COLD_FIRST, OPS_COLD_AGAIN };
int ops_cold_is_rented(ops_context *context, const uint64_t key[2], uint32_t kernels,
                       uint64_t bytes);

#endif
