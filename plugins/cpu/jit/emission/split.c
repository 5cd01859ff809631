/* Divides a lane program into several loops where its parts access neighbouring pieces of one
 * memory: the prefetchers of a processor follow a loop that reads one piece, and not one that goes
 * through several at once. */
#include "jit/emission/split.h"

#include "jit/emission/access.h"
#include "jit/emission/loop.h"
#include "jit/registers/registers.h"

#include <stdlib.h>
#include <string.h>

/* An access to memory by a value or by a node; see jit_split for how they are numbered. */
typedef struct split_touch {
    uint32_t element;
    const cpu_access *access;
    bool writes;
} split_touch;

/* Elements are the values of the program and after them its nodes. Those that have to be in one
 * loop have one root. */
typedef struct jit_split {
    jit_state *jit;
    const jit_program *program;
    uint32_t *parents; /* of each element; a root is its own one */
    split_touch *touches;
    uint32_t touch_count;
    uint32_t *slot_values; /* of each slot: 1 + the first value that is there */
    bool *slot_written;
    bool *needs_slot; /* of each value */
    bool *is_neighbour;
} jit_split;

static uint32_t root_of(const jit_split *split, uint32_t element)
{
    while (split->parents[element] != element) {
        element = split->parents[element] = split->parents[split->parents[element]];
    }
    return element;
}

/* The lesser root remains. */
static void roots_join(jit_split *split, uint32_t x, uint32_t y)
{
    x = root_of(split, x);
    y = root_of(split, y);
    split->parents[x > y ? x : y] = x > y ? y : x;
}

static uint32_t node_element(const jit_split *split, uint32_t node)
{
    return split->program->value_count + node;
}

static void touch_add(jit_split *split, uint32_t element, uint32_t access, bool writes)
{
    split->touches[split->touch_count++] =
        (split_touch){element, &split->jit->lower->accesses[access], writes};
}

/* A node with its result and the operands that vectors hold. False: an operation whose order among
 * the lanes counts, or an access that is not a line. */
static bool nodes_join(jit_split *split)
{
    const jit_program *program = split->program;
    for (uint32_t i = 0; i < program->node_count; i++) {
        const jit_node *node = &program->nodes[i];
        const bool is_access = node->opcode == JIT_LOAD || node->opcode == JIT_STORE;
        const uint32_t element = node_element(split, i);
        if (node->opcode == JIT_EXCHANGE || node->opcode == JIT_GATHER ||
            node->opcode == JIT_SCATTER ||
            (node->opcode >= JIT_DECLARE && node->opcode < JIT_FUNCTION) ||
            (is_access && split->jit->open.pointer_forms[node->aux] != JIT_ACCESS_LINE)) {
            return false;
        }
        if (node->d != JIT_NONE) {
            roots_join(split, element, node->d);
            split->needs_slot[node->d] |= node->opcode == JIT_LOAD || program->values[node->d].keep;
        }
        for (uint32_t k = 0; k < JIT_OPERANDS; k++) {
            const jit_value a = node->a[k];
            if (a == JIT_NONE) {
                continue;
            }
            const jit_entry *entry = &program->values[a];
            if (entry->kind == JIT_TEMPORARY || entry->kind == JIT_LANES) {
                roots_join(split, element, a);
            }
            split->needs_slot[a] |= entry->kind == JIT_LANES || node->opcode == JIT_STORE;
        }
        if (is_access) {
            touch_add(split, element, node->access, node->opcode == JIT_STORE);
        }
    }
    return true;
}

/* Values of one slot, if the program writes it; notes the slots that are memory. False: it is not
 * known which memory. */
static bool slots_join(jit_split *split)
{
    const jit_program *program = split->program;
    const cpu_name *names = split->jit->lower->names;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < program->value_count; i++) {
            const jit_entry *entry = &program->values[i];
            if (entry->name == JIT_NONE || !split->needs_slot[i]) {
                continue;
            }
            const uint32_t slot = names[entry->name].slot;
            uint32_t *first = &split->slot_values[slot];
            *first = *first == 0 ? 1 + i : *first;
            if (pass == 0) {
                split->slot_written[slot] |= entry->kind == JIT_TEMPORARY;
                continue;
            }
            if (split->slot_written[slot]) {
                roots_join(split, i, *first - 1);
            }
            const uint32_t viewed = split->jit->facts.viewed[entry->name];
            if (names[entry->name].view && viewed == 0) {
                return false;
            }
            if (names[entry->name].view) {
                touch_add(split, i, viewed - 1, entry->kind == JIT_TEMPORARY);
            }
        }
    }
    return true;
}

/* In a program, loads precede stores and each work-item stores to different elements. So only a
 * load and a store of what may be one element have to keep their order. The rest of the parts joins
 * the first one unless it accesses the same memory elsewhere. */
static void touches_join(jit_split *split)
{
    if (split->touch_count == 0) {
        return;
    }
    for (uint32_t i = 0; i < split->touch_count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            const split_touch *x = &split->touches[i], *y = &split->touches[k];
            if (x->access->memory == y->access->memory && (x->writes || y->writes) &&
                !jit_accesses_differ(split->jit, x->access, y->access)) {
                roots_join(split, x->element, y->element);
            }
        }
    }
    const uint32_t first = split->touches[0].element;
    for (uint32_t i = 0; i < split->touch_count; i++) {
        for (uint32_t k = 0; k < split->touch_count; k++) {
            const split_touch *x = &split->touches[i], *y = &split->touches[k];
            if (root_of(split, y->element) == root_of(split, first) &&
                x->access->memory == y->access->memory &&
                jit_accesses_differ(split->jit, x->access, y->access)) {
                split->is_neighbour[root_of(split, x->element)] = true;
            }
        }
    }
    for (uint32_t i = 0; i < split->program->node_count; i++) {
        const uint32_t element = node_element(split, i);
        if (!split->is_neighbour[root_of(split, element)]) {
            roots_join(split, element, first);
        }
    }
}

/* The program of one root. Values of other roots are not in it. */
static void part_emit(jit_split *split, uint32_t root)
{
    const jit_program *program = split->program;
    jit_program part = {.wide = program->wide, .narrow = program->narrow, .is_part = true};
    part.value_count = part.value_capacity = program->value_count;
    part.node_capacity = program->node_count;
    part.values = malloc((size_t)program->value_count * sizeof(jit_entry));
    part.nodes = malloc((size_t)program->node_count * sizeof(jit_node));
    if (!part.values || !part.nodes) {
        split->jit->failed = true;
        jit_program_release(&part);
        return;
    }
    for (uint32_t i = 0; i < program->value_count; i++) {
        jit_entry *entry = &part.values[i];
        *entry = program->values[i];
        const bool is_elsewhere = entry->kind != JIT_UNIFORM && root_of(split, i) != root;
        if (is_elsewhere || (entry->kind == JIT_TEMPORARY && !split->needs_slot[i])) {
            entry->name = JIT_NONE;
            entry->keep = false;
        }
    }
    for (uint32_t i = 0; i < program->node_count; i++) {
        if (root_of(split, node_element(split, i)) == root) {
            part.nodes[part.node_count++] = program->nodes[i];
        }
    }
    jit_loop_emit(split->jit, &part, false);
    jit_program_release(&part);
}

static bool parts_emit(jit_split *split)
{
    const jit_program *program = split->program;
    if (!nodes_join(split) || !slots_join(split)) {
        return false;
    }
    touches_join(split);
    const uint32_t first = root_of(split, node_element(split, 0));
    bool is_one = true;
    for (uint32_t i = 1; i < program->node_count; i++) {
        is_one = is_one && root_of(split, node_element(split, i)) == first;
    }
    if (is_one) {
        return false;
    }
    bool *is_done = split->is_neighbour;
    memset(is_done, 0, (size_t)program->value_count + program->node_count);
    for (uint32_t i = 0; i < program->node_count; i++) {
        const uint32_t root = root_of(split, node_element(split, i));
        if (!is_done[root]) {
            is_done[root] = true;
            part_emit(split, root);
        }
    }
    return true;
}

bool jit_split_emit(jit_state *jit, const jit_program *program)
{
    if (program->failed || program->node_count < 2 || jit->failed ||
        jit->lower->n <= jit_lanes(jit, program)) {
        return false;
    }
    const size_t elements = (size_t)program->value_count + program->node_count;
    const size_t slots = (size_t)jit->lower->program->slot_count + 1;
    jit_split split = {.jit = jit, .program = program};
    split.parents = malloc(elements * sizeof(uint32_t));
    split.touches = malloc(elements * sizeof(split_touch));
    split.slot_values = calloc(slots, sizeof(uint32_t));
    split.slot_written = calloc(slots, sizeof(bool));
    split.needs_slot = calloc(elements, sizeof(bool));
    split.is_neighbour = calloc(elements, sizeof(bool));
    const bool has_memory = split.parents && split.touches && split.slot_values &&
                            split.slot_written && split.needs_slot && split.is_neighbour != NULL;
    for (uint32_t i = 0; i < elements && has_memory; i++) {
        split.parents[i] = i;
    }
    const bool is_split = has_memory && parts_emit(&split);
    free(split.parents);
    free(split.touches);
    free(split.slot_values);
    free(split.slot_written);
    free(split.needs_slot);
    free(split.is_neighbour);
    return is_split;
}
