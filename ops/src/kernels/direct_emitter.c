/* See direct_emitter.h. */
#include "direct_emitter.h"

void ops_direct_sums_get(ops_direct_emitter *e, const hal_ir_value *variables)
{
    const ops_direct_key *k = &e->task->key;
    for (uint32_t i = 0; i < k->results * k->lines; i++) {
        e->sum[i / k->lines][i % k->lines] = hal_ir_get(e->b, variables[i]);
    }
}

void ops_direct_sums_set(const ops_direct_emitter *e, const hal_ir_value *variables)
{
    const ops_direct_key *k = &e->task->key;
    for (uint32_t i = 0; i < k->results * k->lines; i++) {
        hal_ir_set(e->b, variables[i], e->sum[i / k->lines][i % k->lines]);
    }
}
