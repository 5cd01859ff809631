/* array_case.c: running programs over arrays; array_case.h says who calls it. */
#include "ops/array_case.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/ops_case.h"

typedef struct rehearsal {
    array_run *r;
    array_program program;
} rehearsal;

static hal_status rehearse(ops_context *context, void *user)
{
    const rehearsal *rehearsed = user;
    return rehearsed->program(rehearsed->r) ? HAL_OK : HAL_ERROR_INTERNAL;
}

static bool run_once(array_run *r, array_program program, bool is_fused, array_values *values)
{
    values->count = 0;
    r->values = values;
    ops_context_set_fusion(r->context, is_fused);
    const bool well = program(r);
    ops_context_set_fusion(r->context, 1);
    return well;
}

static bool compare_values(case_run *run, const array_values *fused, const array_values *unfused)
{
    if (!case_check(run, fused->count == unfused->count, "%u values with fusion, %u without",
                    fused->count, unfused->count)) {
        return false;
    }
    for (uint32_t i = 0; i < fused->count; i++) {
        const hal_type type = fused->all[i].type;
        const size_t elements = fused->all[i].elements;
        comparison found;
        if (type != unfused->all[i].type || elements != unfused->all[i].elements) {
            return case_fail(run, "value %u has another type or shape without fusion", i);
        }
        if (!compare_bits(type, fused->all[i].bits, unfused->all[i].bits, elements, true, &found)) {
            char what[64];
            snprintf(what, sizeof what, "value %u of %u, fused and not", i, fused->count);
            return ops_report(run, &found, what);
        }
    }
    return true;
}

bool array_is_made(case_run *run, const ops_array *array, const char *what)
{
    if (array != NULL) {
        return true;
    }
    if (hal_status_message()[0] == 0) {
        return case_fail(run, "%s gave no array and no sentence", what);
    }
    return run->lacking != NULL
               ? case_unsupported(run, "%s: %s", run->lacking, hal_status_message())
               : case_fail(run, "%s: %s", what, hal_status_message());
}

bool array_add_leaf(array_run *r, hal_type type, uint32_t rank, const int64_t *shape, double low,
                    double high, void *bits)
{
    uint8_t elements[ARRAY_VALUE_BYTES];
    size_t count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        count *= (size_t)shape[i];
    }
    const size_t bytes = count * hal_type_size(type);
    if (bytes > sizeof elements || r->leaf_count == ARRAY_LEAVES) {
        return case_fail(r->run, "the case has a leaf too many or too large");
    }
    random_fill(&r->random, type, low, high, elements, count);
    if (bits != NULL) {
        memcpy(bits, elements, bytes);
    }
    ops_array *leaf = ops_array_from_host(r->context, type, rank, shape, elements);
    if (!array_is_made(r->run, leaf, "ops_array_from_host")) {
        return false;
    }
    r->leaves[r->leaf_count++] = leaf;
    return true;
}

void array_release_leaves(array_run *r)
{
    while (r->leaf_count > 0) {
        ops_array_release(r->leaves[--r->leaf_count]);
    }
}

bool array_note(array_run *r, ops_array *array, const char *what)
{
    if (!array_is_made(r->run, array, what)) {
        return false;
    }
    if (r->is_rehearsal) {
        return case_ok(r->run, ops_array_evaluate(&array, 1), what);
    }
    const hal_type type = ops_array_get_type(array);
    const size_t elements = (size_t)ops_array_get_element_count(array);
    array_values *values = r->values;
    if (values->count == ARRAY_VALUES || elements * hal_type_size(type) > ARRAY_VALUE_BYTES) {
        return case_fail(r->run, "%s: the case notes too much", what);
    }
    values->all[values->count].type = type;
    values->all[values->count].elements = elements;
    return case_ok(
        r->run,
        ops_array_read(array, values->all[values->count++].bits, elements * hal_type_size(type)),
        what);
}

bool array_run_both_ways(array_run *r, array_program program, array_values *fused)
{
    array_values *values[2] = {fused != NULL ? fused : malloc(sizeof *fused),
                               malloc(sizeof *fused)};
    const random_state random = r->random;
    rehearsal user = {r, program};
    ops_array_statistics before = {.size = sizeof before}, after = {.size = sizeof after};
    ops_context_get_statistics(r->context, &before);
    bool well =
        (values[0] != NULL && values[1] != NULL) || case_fail(r->run, "the host has no memory");
    if (well) {
        r->is_rehearsal = true;
        const hal_status status = ops_prepare(r->context, rehearse, &user);
        r->is_rehearsal = false;
        well = case_is_well(r->run) && case_ok(r->run, status, "ops_prepare");
    }
    r->random = random;
    well = well && run_once(r, program, true, values[0]);
    r->random = random;
    well = well && run_once(r, program, false, values[1]) &&
           compare_values(r->run, values[0], values[1]);
    ops_context_get_statistics(r->context, &after);
    well = well && case_check(r->run, after.arrays == before.arrays && after.deferred == 0,
                              "%" PRIu64 " arrays were left, %" PRIu64 " of them to be computed",
                              after.arrays - before.arrays, after.deferred);
    free(fused != NULL ? NULL : values[0]);
    free(values[1]);
    return well;
}
