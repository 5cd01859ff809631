/* The list of slow paths. */
#include "jit/registers/slow.h"

#include <stdlib.h>

jit_slow *jit_slow_add(jit_state *jit)
{
    if (jit->slow_count == jit->slow_capacity) {
        const uint32_t wanted = jit->slow_capacity == 0 ? 32 : jit->slow_capacity * 2;
        jit_slow *grown = realloc(jit->slow_paths, wanted * sizeof(jit_slow));
        if (!grown) {
            jit->failed = true;
            return NULL;
        }
        jit->slow_paths = grown;
        jit->slow_capacity = wanted;
    }
    jit_slow *slow = &jit->slow_paths[jit->slow_count++];
    *slow = (jit_slow){
        .label = x86_label(&jit->code), .back = x86_label(&jit->code), .pointer = JIT_NONE};
    return slow;
}
