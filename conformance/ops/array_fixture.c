/* array_fixture.c: running programs over arrays. */
#include "ops/array_fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ops/fixture.h"

typedef struct rehearsal {
    array_run *r;
    array_program program;
} rehearsal;

static void program_execute(case_run *run, const void *parameters)
{
    const rehearsal *rehearsed = parameters;
    rehearsed->program(rehearsed->r);
}

static hal_status rehearse(ops_context *context, void *user)
{
    const rehearsal *rehearsed = user;
    return case_execute(rehearsed->r->run, program_execute, rehearsed) ? HAL_OK
                                                                       : HAL_ERROR_INTERNAL;
}

static array_values *run_once(array_run *r, array_program program, bool is_fused)
{
    r->values = case_allocate(r->run, 1, sizeof *r->values);
    ops_context_set_fusion(r->run->ops, is_fused);
    program(r);
    ops_context_set_fusion(r->run->ops, 1);
    return r->values;
}

static void compare_values(case_run *run, const array_values *fused, const array_values *unfused)
{
    case_check(run, fused->count == unfused->count, "%u values with fusion, %u without",
               fused->count, unfused->count);
    for (uint32_t i = 0; i < fused->count; i++) {
        const hal_type type = fused->all[i].type;
        const size_t elements = fused->all[i].elements;
        comparison found;
        case_check(run, type == unfused->all[i].type && elements == unfused->all[i].elements,
                   "value %u has another type or shape without fusion", i);
        if (!compare_bits(type, fused->all[i].bits, unfused->all[i].bits, elements, true, &found)) {
            char what[64];
            snprintf(what, sizeof what, "value %u of %u, fused and not", i, fused->count);
            case_report(run, &found, what);
        }
    }
}

static void scope_abandon(void *object)
{
    const case_run *run = object;
    if (run->status != CASE_PASSED) {
        ops_scope_end(run->ops);
    }
}

void scope_begin(case_run *run)
{
    case_ok(run, ops_scope_begin(run->ops), "ops_scope_begin");
    case_own(run, scope_abandon, run);
}

void scope_end(case_run *run)
{
    case_ok(run, ops_scope_end(run->ops), "ops_scope_end");
}

static void release_recording(void *context)
{
    ops_graph *graph = NULL;
    ops_graph_end(context, NULL, 0, NULL, 0, &graph);
}

static void release_graph(void *graph)
{
    ops_graph_destroy(graph);
}

void recording_begin(case_run *run)
{
    case_ok(run, ops_graph_begin(run->ops), "ops_graph_begin");
    case_own(run, release_recording, run->ops);
}

ops_graph *recording_end(case_run *run, ops_array *const *inputs, uint32_t input_count,
                         ops_array *const *outputs, uint32_t output_count)
{
    ops_graph *graph = NULL;
    case_ok(run, ops_graph_end(run->ops, inputs, input_count, outputs, output_count, &graph),
            "ops_graph_end");
    case_own(run, release_graph, graph);
    return graph;
}

ops_array *array_check(case_run *run, ops_array *array, const char *what)
{
    if (!array) {
        case_check(run, hal_status_message()[0] != 0, "%s gave no array and no message", what);
        case_check(run, run->lacking != NULL, "%s: %s", what, hal_status_message());
        case_unsupported(run, "%s: %s", run->lacking, hal_status_message());
    }
    return array;
}

static void release_array(void *object)
{
    ops_array_release(object);
}

ops_array *array_own(case_run *run, ops_array *array, const char *what)
{
    case_own(run, release_array, array_check(run, array, what));
    return array;
}

void array_add_leaf(array_run *r, hal_type type, uint32_t rank, const int64_t *shape, double low,
                    double high, void *bits)
{
    uint8_t elements[ARRAY_VALUE_BYTES];
    size_t count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        count *= (size_t)shape[i];
    }
    const size_t bytes = count * hal_type_size(type);
    case_check(r->run, bytes <= sizeof elements && r->leaf_count < ARRAY_LEAVES,
               "the case has a leaf too many or too large");
    random_fill(&r->random, type, low, high, elements, count);
    if (bits) {
        memcpy(bits, elements, bytes);
    }
    r->leaves[r->leaf_count++] =
        array_own(r->run, ops_array_from_host(r->run->ops, type, rank, shape, elements),
                  "ops_array_from_host");
}

void array_note(array_run *r, ops_array *array, const char *what)
{
    array_values *values = r->values;
    array_check(r->run, array, what);
    if (r->is_rehearsal) {
        case_ok(r->run, ops_array_evaluate(&array, 1), what);
        return;
    }
    const hal_type type = ops_array_get_type(array);
    const size_t elements = (size_t)ops_array_get_element_count(array);
    case_check(r->run,
               values->count < ARRAY_VALUES && elements * hal_type_size(type) <= ARRAY_VALUE_BYTES,
               "%s: the case notes too much", what);
    values->all[values->count].type = type;
    values->all[values->count].elements = elements;
    void *bits = values->all[values->count++].bits;
    case_ok(r->run, ops_array_read(array, elements * hal_type_size(type), bits), what);
}

const array_values *array_run_both_ways(array_run *r, array_program program)
{
    case_run *run = r->run;
    const random_state random = r->random;
    rehearsal user = {r, program};
    ops_array_statistics before = {.size = sizeof before}, after = {.size = sizeof after};
    ops_context_get_statistics(run->ops, &before);
    r->is_rehearsal = true;
    const hal_status status = ops_prepare(run->ops, rehearse, &user);
    r->is_rehearsal = false;
    case_end_reported(run);
    case_ok(run, status, "ops_prepare");
    r->random = random;
    const array_values *fused = run_once(r, program, true);
    r->random = random;
    compare_values(run, fused, run_once(r, program, false));
    ops_context_get_statistics(run->ops, &after);
    case_check(run, after.arrays == before.arrays && after.deferred == 0,
               "%" PRIu64 " arrays were left, %" PRIu64 " of them to be computed",
               after.arrays - before.arrays, after.deferred);
    return fused;
}
