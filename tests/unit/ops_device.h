/* What a context takes its device for, and the constants that it is tuned with, as tests change
 * them. */
#ifndef TESTS_UNIT_OPS_DEVICE_H
#define TESTS_UNIT_OPS_DEVICE_H

#include "tensor/compile_policy.h"
#include "tensor/context.h"

#include <stddef.h>

/* The context's table, which a test may change; a copy of it after the first call. At most as many
 * contexts live at a time as there are copies. */
static inline ops_tuning *test_tune(ops_context *tuned)
{
    static ops_tuning copies[8];
    static uint32_t next;
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        if (tuned->tuning == &copies[i]) {
            return &copies[i];
        }
    }
    ops_tuning *copy = &copies[next++ % (sizeof copies / sizeof *copies)];
    *copy = *tuned->tuning;
    tuned->tuning = copy;
    if (tuned->compile_policy) {
        tuned->compile_policy->tuning = &copy->compile;
    }
    return copy;
}

/* Takes the context's device for another one, with the tuning of its class. What tests have changed
 * stays. */
static inline void test_set_device(ops_context *tuned, const hal_device_info *info)
{
    ops_tuning *tuning = test_tune(tuned), changed = *tuning;
    tuned->info = info;
    *tuning = *ops_tuning_select(info);
    tuning->index32_limit = changed.index32_limit;
    tuning->compile.fast_ns = changed.compile.fast_ns;
    tuning->compile.general_from_ns = changed.compile.general_from_ns;
    tuning->gemm.split_depth = changed.gemm.split_depth;
}

#endif
