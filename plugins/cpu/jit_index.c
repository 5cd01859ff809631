/* Values that are affine in the ids of a work-item, as vectors: what steps compute when an index is
 * needed as a number. Called by jit.c and jit_operation.c. */
#include "jit_emit.h"

#include <stdlib.h>

/* The ids of every lane, one dimension after the other; null without memory. */
static const uint32_t *lane_ids(cpu_kernel *kernel, uint32_t n)
{
    if (kernel->lane_ids != NULL) {
        return kernel->lane_ids;
    }
    kernel->lane_ids = malloc((size_t)3 * n * sizeof(uint32_t));
    for (uint32_t lane = 0; lane < n && kernel->lane_ids != NULL; lane++) {
        kernel->lane_ids[lane] = lane % kernel->place[0];
        kernel->lane_ids[n + lane] = lane / kernel->place[0] % kernel->place[1];
        kernel->lane_ids[2 * n + lane] = lane / kernel->place[0] / kernel->place[1];
    }
    return kernel->lane_ids;
}

jit_value jit_affine_value(jit_state *jit, const cpu_access *access)
{
    const uint32_t which = JIT_OPEN_LANES;
    cpu_kernel *kernel = jit->lower->kernel;
    const hal_type type = access->index_type;
    jit->failed = jit->failed || lane_ids(kernel, jit->lower->n) == NULL;
    jit_value factors[3] = {JIT_NONE, JIT_NONE, JIT_NONE};
    uint32_t ones = 0;
    for (uint32_t k = 0; k < 3; k++) {
        const cpu_constant_name *known = jit->constants[access->factor[k]];
        if (kernel->place[k] == 1 || (known != NULL && known->bits == 0)) {
            continue;
        }
        if (known != NULL && known->bits == 1) {
            ones |= 1u << k;
        } else {
            factors[k] = jit_value_of(jit, which, access->factor[k], type);
        }
    }
    const jit_value base = jit_value_of(jit, which, access->base, type);
    const jit_value d =
        jit_operation(&jit->lanes, JIT_AFFINE, type, type, base, factors[0], factors[1]);
    jit_last(&jit->lanes)->a[3] = factors[2];
    jit_last(&jit->lanes)->aux = ones;
    return d;
}

bool jit_affine_append(jit_state *jit, const cpu_draft *draft)
{
    const cpu_access *access = &jit->lower->accesses[draft->access];
    if (hal_type_size(access->index_type) != 4) {
        return false;
    }
    jit_program_choose(jit, draft->step.d);
    jit_references_note(jit, draft, JIT_OPEN_LANES);
    jit_name_define(jit, JIT_OPEN_LANES, draft->step.d, jit_affine_value(jit, access));
    return true;
}

/* The ids of a vector's lanes in a dimension, by rax. */
static x86_operand ids_of(jit_state *jit, const jit_node *node, uint32_t dimension)
{
    const uint32_t *ids = jit->lower->kernel->lane_ids + dimension * jit->lower->n;
    x86_operand operand =
        x86_memory(JIT_SCRATCH, (int32_t)(4 * node->part * jit_lanes(jit, jit->program)));
    operand.index = jit->in_loop ? JIT_LANE : X86_NO_REGISTER;
    operand.scale = 4;
    x86_load_immediate(&jit->code, JIT_SCRATCH, (uint64_t)(uintptr_t)ids);
    return operand;
}

void jit_affine_emit(jit_state *jit, const jit_node *node)
{
    const hal_type type = node->type;
    uint32_t sum = jit_use(jit, node, 0);
    const uint32_t d = jit_result(jit, node);
    for (uint32_t k = 0; k < 3; k++) {
        if ((node->aux >> k & 1) != 0) {
            emit(jit, X86_PADDD, type, d, sum, ids_of(jit, node, k));
        } else if (node->a[1 + k] != JIT_NONE) {
            emit(jit, X86_MOVDQU32, type, JIT_TEMPORARY_A, 0, ids_of(jit, node, k));
            emit(jit, X86_PMULLD, type, JIT_TEMPORARY_A, JIT_TEMPORARY_A,
                 jit_source(jit, node, 1 + k));
            emit(jit, X86_PADDD, type, d, sum, x86_register(JIT_TEMPORARY_A));
        } else {
            continue;
        }
        sum = d;
    }
    register_copy(jit, type, d, sum);
}
