/* The compile policy: whether a missing fused kernel is compiled now, or its operations run in
 * kernels of one operation each, which other work shares. The array layer asks it; the kernel cache
 * reports compile times to it.
 *
 * The first plans are compiled at once. Then the rule is that of the ski-rental problem: a plan
 * runs in single kernels until their extra cost adds up to one compilation: of the caller, or of
 * one of the processors where compilations are slow and happen in the background, while single
 * kernels compute the plan. An eighth of that is enough while one of the compilers has nothing to
 * do. So single kernels and a compilation by the caller take at most twice the least possible time
 * of any plan, and no call stalls for long.
 * docs/batching.md has the figures.
 *
 * The same rule decides between the kernel of one shape and the general kernel of its class
 * (docs/kernel-classes.md): a new shape runs in the general kernel until that has cost as much more
 * as the compilation takes. */
#ifndef OPS_SRC_TENSOR_COMPILE_POLICY_H
#define OPS_SRC_TENSOR_COMPILE_POLICY_H

#include "tuning/tuning.h"

#include <ops/tensor.h>

#include <stdbool.h>

/* Deferred plans whose cost is counted. */
#define OPS_DEFERRED_PLANS 1024u

/* Calls of shapes that are remembered, to know one that returns. */
#define OPS_SEEN_SHAPES 1024u

/* Prices of a kernel after which it is made for shapes of which each occurs once. */
#define OPS_SHARED_PRICES 8u

typedef enum ops_missing_kernels {
    OPS_MISSING_COMPILED, /* within the call */
    OPS_MISSING_REFUSED,  /* the call fails */
    OPS_MISSING_REQUESTED /* the same, and they are made in the background */
} ops_missing_kernels;

typedef struct ops_compile_policy {
    const ops_compile_tuning *tuning;
    uint64_t expected_ns;       /* the tuning's for the device */
    uint64_t recent_compile_ns; /* moving average; 0: nothing was compiled yet */
    uint64_t compile_ns;        /* the same without kernels of the compile cache */
    uint64_t least_compile_ns;  /* of all compilations; a busy machine delays some */
    uint32_t processors;        /* the program's, and those that compile in the background */
    uint32_t compilers;         /* threads that compile in the background */
    uint32_t pending;           /* kernels of this context that wait for these or are in work */
    bool specialises;           /* kernels of one shape are compiled at once */
    bool requests;              /* and in the background, while general kernels compute */
    ops_kernel_choice choice;
    uint32_t eager_plans; /* that will still be compiled at their first use */
    bool counts_eager;    /* the last decision used one of these */
    ops_missing_kernels missing; /* what becomes of kernels that are not compiled yet */
    bool has_refused;            /* a call, since ops_compile_policy_begin_refusing */
    uint64_t plan[2];            /* the hash of the plan that is being recorded; 0: none is */
    struct {
        uint64_t key, spent_ns; /* FAILED: its kernels cannot be compiled */
    } plans[OPS_DEFERRED_PLANS];      /* direct-mapped by key; a collision forgets what was spent */
    uint64_t shapes[OPS_SEEN_SHAPES]; /* the last one of each slot */
} ops_compile_policy;

/* `compilers`: as of hal_device_get_compilers. Null without memory. The table has to outlive the
 * policy. */
ops_compile_policy *ops_compile_policy_create(const ops_compile_tuning *tuning,
                                              const hal_device_info *info, uint32_t compilers);
void ops_compile_policy_destroy(ops_compile_policy *policy);

/* Adds the time that one compilation, or the loading of a kernel from the compile cache, took to
 * the averages. */
void ops_compile_policy_add_time(ops_compile_policy *policy, uint64_t nanoseconds,
                                 bool is_compilation);

/* Whether compilations are slow: then they happen in the background, and shapes have general
 * kernels. */
bool ops_compile_policy_is_slow(const ops_compile_policy *policy);

/* Whether a shape is computed by the general kernel of its class, unless it has one of its own. */
bool ops_compile_policy_generalises(const ops_compile_policy *policy);

/* Charges a call that a general kernel computes, which takes `cost_ns` longer by that, to the
 * special kernel with that key, which other shapes may need as well. Calls of one kernel that cost
 * the same are taken for those of one shape. *is_first: the kernel was not charged before. Returns
 * whether it pays now: not in the first call of a shape, since most shapes do not return, unless
 * first calls of many shapes have cost OPS_SHARED_PRICES times its price. */
bool ops_compile_policy_charge(ops_compile_policy *policy, const uint64_t key[2], uint64_t cost_ns,
                               bool *is_first);

/* Whether `kernels` general ones that have cost that much more, in a plan that is repeated, are to
 * be replaced. */
bool ops_compile_policy_is_due(const ops_compile_policy *policy, uint64_t spent_ns,
                               uint32_t kernels);

/* Forgets what was charged to a kernel of one shape, which could not be compiled. */
void ops_compile_policy_forget(ops_compile_policy *policy, const uint64_t key[2]);

/* Records that a kernel of a deferred plan could not be compiled: the plan uses single kernels from
 * then on. */
void ops_compile_policy_fail(ops_compile_policy *policy, const uint64_t plan[2]);

/* Nanoseconds that a general kernel takes longer in a call that moves that many bytes. */
uint64_t ops_compile_policy_general_ns(const ops_compile_policy *policy, uint64_t bytes);

typedef enum ops_compile_decision {
    OPS_COMPILE_NOW,
    OPS_DEFER_FIRST, /* the plan has not been deferred before */
    OPS_DEFER_AGAIN,
    OPS_DEFER_REQUESTED /* the same, while its kernels are made in the background */
} ops_compile_decision;

/* Decides for a plan that would take `kernels` single kernels with `bytes` of intermediate results
 * between them, and charges their extra cost to the plan. */
ops_compile_decision ops_defer_compile(ops_compile_policy *policy, const uint64_t key[2],
                                       uint32_t kernels, uint64_t bytes);

/* Ends the recording that the last decision was about: one that has compiled nothing does not count
 * as one of the first. */
void ops_compile_policy_end_eager(ops_compile_policy *policy, bool has_compiled);

/* From here on, calls with a kernel that is not compiled yet are refused. The end returns whether
 * one was. */
void ops_compile_policy_begin_refusing(ops_compile_policy *policy, ops_missing_kernels missing);
bool ops_compile_policy_end_refusing(ops_compile_policy *policy);

/* Refuses a call in between: returns NOT_FOUND, without a message. */
hal_status ops_compile_policy_refuse(ops_compile_policy *policy);

#endif
