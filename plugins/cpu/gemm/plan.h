/* Plans of the matrix product: instruction set, route, block sizes and the layout of the
 * workspace. */
#ifndef PLUGINS_CPU_GEMM_PLAN_H
#define PLUGINS_CPU_GEMM_PLAN_H

#include "gemm/kernels.h"

enum { CPU_GEMM_SKINNY = 32 }; /* the longest short side that the skinny routes take */

/* Bytes of workspace that a single run has at most: a queue keeps them. */
enum { CPU_GEMM_SINGLE_BYTES = 16384 };

/* Of the route LEVELS: panels that are packed together, so that whole lines of memory are read, and
 * rows of them. */
enum { CPU_GEMM_LEVELS_PANELS = 8, CPU_GEMM_LEVELS_ROWS = 64 };

/* Multiples of which tasks are: of every strip and panel, and of the pieces of an epilogue. */
enum { CPU_GEMM_LEVELS_TASK_M = 24, CPU_GEMM_LEVELS_TASK_N = 96 };

/* The products of a number of levels of Strassen's algorithm: 7^levels. */
static inline int cpu_gemm_level_products(int levels)
{
    int products = 1;
    for (int level = 0; level < levels; level++) {
        products *= 7;
    }
    return products;
}

/* The workspace: packed A (or the short matrix of a skinny product) from offset 0, packed B, then
 * sums: one slot for each thread, or one block for each matrix of the group. In bytes. */
struct cpu_gemm_layout {
    int64_t item_a, item_b, item_c; /* of one matrix of a group; 0: not needed */
    int64_t b, scratch;             /* offsets */
    int64_t slot;
};

/* Parts of a thread's slot in the route PAIRS, as offsets: packed B is first. */
struct cpu_gemm_pairs_slot {
    int64_t a, sums, lines, bytes;
};
struct cpu_gemm_pairs_slot cpu_gemm_pairs_slot_of(const struct cpu_gemm_plan *plan);

/* Whether this machine and its operating system can run `isa`; native: without emulation; fast:
 * native, and no slower than the sets before it. */
bool cpu_gemm_isa_supported(enum cpu_gemm_isa isa);
bool cpu_gemm_isa_native(enum cpu_gemm_isa isa);
bool cpu_gemm_isa_is_fast(enum cpu_gemm_isa isa);

/* Whether there is a unit for products of i8 and u8, of a size that gives it work. */
bool cpu_gemm_isa_has_bytes(enum cpu_gemm_isa isa);

/* Makes a plan. Returns NULL, or the fault of the description. */
const char *cpu_gemm_plan_make(struct cpu_gemm_plan *plan, const struct cpu_gemm_desc *desc);

/* Makes a plan of `desc` one of a matrix with `rows` rows, with the order of additions that
 * cpu_gemm_plan_make chooses for them. Integers take the route PAIRS for any size. */
void cpu_gemm_plan_set_rows(struct cpu_gemm_plan *plan, const struct cpu_gemm_desc *desc,
                            int64_t rows);

/* Plans `rows` rows and `cols` columns of a plan of one matrix, for one thread: with the order of
 * additions of the whole. Rows and columns of skinny routes are cut along the long side alone. */
void cpu_gemm_plan_part(struct cpu_gemm_plan *part, const struct cpu_gemm_plan *whole, int64_t rows,
                        int64_t cols);

/* Chooses the route PAIRS for a plan with a unit. A strip of A and a panel of B for one slab fill
 * the first cache; a task's panels and sums half of the second. B is packed once where several
 * tasks need the same columns. */
void cpu_gemm_plan_take_pairs(struct cpu_gemm_plan *plan);

/* Rows and columns with which the parts of A and B that a task reads in a slab share half of the
 * second cache. */
int64_t cpu_gemm_plan_side(const struct cpu_gemm_plan *plan);

/* Sets what one thread takes, from common rates of its units and of memory, and how many threads
 * pay, of a plan that reads `b_count` matrices B. */
void cpu_gemm_plan_expect(struct cpu_gemm_plan *plan, double b_count);

/* Bytes of workspace that a run with at most `threads` threads needs; may be 0. */
int64_t cpu_gemm_workspace_size(const struct cpu_gemm_plan *plan, int threads);

/* The offsets of the workspace. Returns its bytes. */
int64_t cpu_gemm_layout_of(const struct cpu_gemm_plan *plan, int threads,
                           struct cpu_gemm_layout *layout);

static inline int64_t cpu_gemm_ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static inline int64_t cpu_gemm_round_up(int64_t a, int64_t b)
{
    return cpu_gemm_ceil_div(a, b) * b;
}

static inline int64_t cpu_gemm_clamp(int64_t a, int64_t low, int64_t high)
{
    return a > high ? high : a < low ? low : a;
}

static inline bool cpu_gemm_is_integer(enum cpu_gemm_type type)
{
    return type >= CPU_GEMM_I8;
}

/* The type of the plan's sums. */
static inline enum cpu_gemm_type cpu_gemm_sums_type(const struct cpu_gemm_plan *plan)
{
    return cpu_gemm_is_integer(plan->desc.type_a) ? CPU_GEMM_I32
           : plan->size == 8                      ? CPU_GEMM_F64
                                                  : CPU_GEMM_F32;
}

/* Distance of packed rows of A in elements: rows of a strip map to different cache sets. */
static inline int64_t cpu_gemm_a_stride(const struct cpu_gemm_plan *plan)
{
    return plan->desc.transpose_a ? plan->kc : cpu_gemm_round_up(plan->kc, 16) + 16;
}

#endif
