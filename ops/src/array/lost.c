/* Lost arrays and the check of operands, see lost.h. */
#include "lost.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 160 /* of "add, model.py:12" */

/* A copy of a cause; null without host memory. */
static ops_lost *lost_create(const char *operation, uint32_t site, const char *message)
{
    const size_t bytes = strlen(message) + 1;
    ops_lost *lost = malloc(sizeof *lost + bytes);
    if (lost) {
        lost->operation = operation;
        lost->site = site;
        memcpy(lost->message, message, bytes);
    }
    return lost;
}

static void name_write(const ops_arrays *arrays, const char *operation, uint32_t number,
                       char text[NAME_BYTES])
{
    const ops_site site = ops_sites_get(&arrays->sites, number);
    if (site.file) {
        snprintf(text, NAME_BYTES, "%s, %s:%u", operation, site.file, site.line);
    } else {
        snprintf(text, NAME_BYTES, "%s", operation);
    }
}

static void report_lost(const char *function, uint32_t number, const ops_array *x)
{
    char own[NAME_BYTES], source[NAME_BYTES + 32] = "which";
    const char *operation = ops_node_operation_name(x);
    const ops_lost *lost = x->form;
    name_write(x->owner, operation, x->site, own);
    if (lost && (lost->operation != operation || lost->site != x->site)) {
        char first[NAME_BYTES];
        name_write(x->owner, lost->operation, lost->site, first);
        snprintf(source, sizeof source, "whose source (%s)", first);
    }
    hal_status_set(HAL_ERROR_INVALID_STATE,
                   "%s: operand %u: expected an array with values, got one (%s), %s was lost when "
                   "its batch failed: %s; compute it again",
                   function, number, own, source, lost ? lost->message : "no host memory");
}

/* The first lost array that a deferred node reads; null if none. An update of all elements reads
 * none of what it replaces. */
static const ops_array *node_find_lost(const ops_array *node)
{
    ops_array *const *operands = ops_node_operands(node);
    const bool replaces_all =
        node->operation == OPS_OPERATION_UPDATE && ops_node_update_covers(node);
    for (uint32_t i = replaces_all ? 1 : 0; i < node->operand_count; i++) {
        if (operands[i]->state == OPS_NODE_LOST) {
            return operands[i];
        }
    }
    return NULL;
}

static void node_lose(ops_array *node, ops_lost *lost)
{
    ops_node_empty(node, OPS_NODE_LOST);
    node->form = lost;
}

/* Loses what the batches should have written. */
static void memory_lose(ops_arrays *arrays, const hal_loss *loss)
{
    for (ops_slab *slab = arrays->slabs; slab; slab = slab->next) {
        for (uint32_t i = 0; i < OPS_SLAB_NODES; i++) {
            ops_array *node = &slab->nodes[i];
            if (node->state == OPS_NODE_MEMORY && node->batch >= loss->batch) {
                node_lose(node,
                          lost_create(ops_node_operation_name(node), node->site, loss->message));
            }
        }
    }
    for (ops_memory_holder *holder = arrays->holders; holder; holder = holder->next) {
        if (holder->batch >= loss->batch && !holder->is_lost) {
            holder->is_lost = true;
            holder->lost = lost_create("", 0, loss->message);
        }
    }
}

/* Loses deferred nodes that read lost ones; returns whether there were any. */
static bool deferred_lose(ops_arrays *arrays)
{
    bool has_lost = false;
    for (ops_slab *slab = arrays->slabs; slab; slab = slab->next) {
        for (uint32_t i = 0; i < OPS_SLAB_NODES; i++) {
            ops_array *node = &slab->nodes[i];
            const ops_array *of = node->state == OPS_NODE_DEFERRED ? node_find_lost(node) : NULL;
            if (of) {
                const ops_lost *cause = of->form;
                node_lose(node, cause ? lost_create(cause->operation, cause->site, cause->message)
                                      : NULL);
                has_lost = true;
            }
        }
    }
    return has_lost;
}

void ops_arrays_find_lost(ops_arrays *arrays)
{
    hal_loss loss;
    if (hal_queue_get_loss(arrays->context->queue, arrays->losses_found, &loss) != HAL_OK ||
        loss.count == arrays->losses_found) {
        return;
    }
    arrays->losses_found = loss.count;
    ops_constants_clear(&arrays->constants);
    ops_segment_tables_clear(&arrays->segment_tables);
    memory_lose(arrays, &loss);
    while (deferred_lose(arrays)) { /* nodes may come before their operands */
    }
}

hal_status ops_arrays_failed(ops_arrays *arrays, hal_status status)
{
    ops_constants_clear(&arrays->constants);
    ops_segment_tables_clear(&arrays->segment_tables);
    ops_arrays_find_lost(arrays);
    return status;
}

void ops_memory_holder_add(ops_memory_holder *holder, ops_arrays *arrays, uint64_t batch)
{
    *holder = (ops_memory_holder){.owner = arrays, .next = arrays->holders, .batch = batch};
    arrays->holders = holder;
}

void ops_memory_holder_remove(ops_memory_holder *holder)
{
    ops_memory_holder **at = holder->owner ? &holder->owner->holders : NULL;
    while (at && *at && *at != holder) {
        at = &(*at)->next;
    }
    if (at && *at) {
        *at = holder->next;
    }
    free(holder->lost);
}

hal_status ops_memory_holder_check(const ops_memory_holder *holder, const char *function,
                                   const char *argument)
{
    ops_arrays_note_losses(holder->owner);
    return holder->is_lost
               ? hal_status_set(HAL_ERROR_INVALID_STATE,
                                "%s: %s: expected one whose arrays have values, got one that uses "
                                "an array which was lost when its batch failed: %s; record it "
                                "again",
                                function, argument,
                                holder->lost ? holder->lost->message : "no host memory")
               : HAL_OK;
}

hal_status ops_report_null_array(const char *function, const char *argument)
{
    char cause[512];
    snprintf(cause, sizeof cause, "%s", hal_status_message());
    return ops_invalid(
        "%s: %s: expected an array, got null; the last call that failed reported: %s", function,
        argument, cause);
}

void ops_refuse_operands(const char *function, ops_array *const *operands, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const ops_array *operand = operands[i];
        if (!operand) {
            return;
        }
        if (operand->state == OPS_NODE_VOID) {
            hal_status_set(HAL_ERROR_INVALID_STATE,
                           "%s: operand %u: expected an array with elements, got one that was made "
                           "while a graph was recorded; use the outputs of ops_graph_launch",
                           function, i);
            return;
        }
        if (operand->state == OPS_NODE_LOST) {
            report_lost(function, i, operand);
            return;
        }
        if (operand->state == OPS_NODE_FREE) {
            hal_status_set(HAL_ERROR_INVALID_STATE,
                           "%s: operand %u: expected an array, got one that was released", function,
                           i);
            return;
        }
        if (operand->owner != operands[0]->owner) {
            ops_invalid("%s: operand %u: expected an array of the context of operand 0, got one of "
                        "another context; read it and make one of this context",
                        function, i);
            return;
        }
    }
}
