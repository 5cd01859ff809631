/* From drafts to steps: removes unused drafts, finds the live range of each name, assigns slots,
 * and writes the arrays of the kernel. */
#include "lower/slots.h"

#include <stdlib.h>
#include <string.h>

enum { CLASS_COUNT = 16 };

/* Views of compiled kernels leave this many slots free before they reuse one: the address of an
 * access is found before the loop that uses it, and must not overwrite a slot of that loop. */
enum { VIEWS_WAIT = 32 };

/* Free slots by class, as stacks, so that the slot freed last, which is in cache, is taken first;
 * those of views of compiled kernels as queues. */
typedef struct cpu_slots {
    uint32_t *free_slots[CLASS_COUNT];
    uint32_t free_first[CLASS_COUNT], free_count[CLASS_COUNT];
    /* Bytes of each slot; 0: the slot after a view, which is the private buffer of the view. */
    uint32_t *sizes;
    uint32_t count, capacity;
} cpu_slots;

/* The names that a draft writes. Returns their count. */
uint32_t cpu_names_written(const cpu_lower *lower, const cpu_draft *draft,
                           uint32_t names[CPU_REFERENCES])
{
    uint32_t count = 0;
    names[count++] = draft->d;
    for (uint32_t k = 0; k < 8 && draft->access != CPU_NONE && !draft->stores; k++) {
        names[count++] = lower->accesses[draft->access].values[k];
    }
    return count;
}

/* The names that a draft reads. Returns their count. */
uint32_t cpu_names_read(const cpu_lower *lower, const cpu_draft *draft,
                        uint32_t names[CPU_REFERENCES])
{
    uint32_t count = 0;
    names[count++] = draft->a;
    names[count++] = draft->b;
    names[count++] = draft->c;
    names[count++] = draft->mask;
    names[count++] = draft->updates ? draft->d : CPU_NONE;
    if (draft->access != CPU_NONE) {
        const cpu_access *access = &lower->accesses[draft->access];
        names[count++] = access->index;
        names[count++] = access->base;
        names[count++] = access->guard;
        names[count++] = access->operand[0];
        names[count++] = access->operand[1];
        for (uint32_t k = 0; k < 3; k++) {
            names[count++] = access->factor[k];
        }
        for (uint32_t k = 0; k < 8 && draft->stores; k++) {
            names[count++] = access->values[k];
        }
    }
    return count;
}

static bool mark_draft(cpu_lower *lower, cpu_draft *draft)
{
    uint32_t names[CPU_REFERENCES];
    uint32_t count = cpu_names_written(lower, draft, names);
    bool wanted = draft->root;
    for (uint32_t k = 0; k < count && !wanted; k++) {
        wanted = names[k] != CPU_NONE && lower->names[names[k]].live;
    }
    if (!wanted || draft->live) {
        return false;
    }
    draft->live = true;
    count = cpu_names_read(lower, draft, names);
    for (uint32_t k = 0; k < count; k++) {
        if (names[k] != CPU_NONE) {
            lower->names[names[k]].live = true;
        }
    }
    return true;
}

/* Backwards; repeated while a loop reads a variable that is set later in it. */
static void mark_live(cpu_lower *lower)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t section = CPU_SECTION_COUNT; section-- > 0;) {
            cpu_draft_list *list = &lower->lists[section];
            for (uint32_t i = list->count; i-- > 0;) {
                changed = mark_draft(lower, &list->drafts[i]) || changed;
            }
        }
    }
}

/* The innermost loop around each draft. */
static uint32_t *find_loops(cpu_lower *lower)
{
    const uint32_t count = lower->lists[CPU_SECTION_GROUP].count;
    uint32_t *innermost = malloc((count + 1) * sizeof(uint32_t));
    if (!innermost) {
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        innermost[i] = CPU_NONE;
    }
    for (uint32_t i = lower->loop_count; i-- > 0;) { /* inner loops come first */
        cpu_loop *loop = &lower->loops[i];
        loop->outer = loop->first <= loop->last ? innermost[loop->first] : CPU_NONE;
        for (uint32_t k = loop->first; k <= loop->last; k++) {
            innermost[k] = i;
        }
    }
    return innermost;
}

static void range_extend(cpu_lower *lower, const uint32_t *innermost, uint32_t name, uint32_t at)
{
    if (name == CPU_NONE) {
        return;
    }
    cpu_name *n = &lower->names[name];
    uint32_t last = at;
    for (uint32_t loop = innermost[at]; loop != CPU_NONE && lower->loops[loop].first > n->first;
         loop = lower->loops[loop].outer) {
        last = lower->loops[loop].last;
    }
    n->last = last > n->last ? last : n->last;
}

/* The live range of each name. A name that is used in a loop and defined before it lives to the end
 * of the loop. */
static bool find_ranges(cpu_lower *lower)
{
    uint32_t names[CPU_REFERENCES];
    uint32_t *innermost = find_loops(lower);
    cpu_draft_list *group = &lower->lists[CPU_SECTION_GROUP];
    if (!innermost) {
        return false;
    }
    for (uint32_t i = 0; i < group->count; i++) {
        const cpu_draft *draft = &group->drafts[i];
        uint32_t count = draft->live ? cpu_names_written(lower, draft, names) : 0;
        for (uint32_t k = 0; k < count; k++) {
            if (names[k] != CPU_NONE && lower->names[names[k]].first == CPU_NONE) {
                lower->names[names[k]].first = i;
            }
        }
    }
    for (uint32_t i = 0; i < group->count; i++) {
        const cpu_draft *draft = &group->drafts[i];
        uint32_t count = draft->live ? cpu_names_written(lower, draft, names) : 0;
        for (uint32_t k = 0; k < count; k++) {
            range_extend(lower, innermost, names[k], i);
        }
        count = draft->live ? cpu_names_read(lower, draft, names) : 0;
        for (uint32_t k = 0; k < count; k++) {
            range_extend(lower, innermost, names[k], i);
        }
    }
    free(innermost);
    cpu_draft_list *dispatch = &lower->lists[CPU_SECTION_DISPATCH];
    for (uint32_t i = 0; i < dispatch->count; i++) {
        if (dispatch->drafts[i].live && dispatch->drafts[i].d != CPU_NONE) {
            lower->names[dispatch->drafts[i].d].lasting = true;
            lower->names[dispatch->drafts[i].d].live = true;
        }
    }
    return true;
}

static uint32_t slot_class(const cpu_name *name)
{
    const uint32_t size = name->bytes == 1 ? 0 : name->bytes == 4 ? 1 : 2;
    return size * 4 + name->uniform * 2 + name->view;
}

/* A free slot of the name's class, or CPU_NONE. */
static uint32_t slot_reuse(const cpu_lower *lower, cpu_slots *slots, const cpu_name *name)
{
    const uint32_t class = slot_class(name), first = slots->free_first[class];
    if (name->view && lower->compiles) {
        const bool waits = slots->free_count[class] - first < VIEWS_WAIT;
        return waits ? CPU_NONE : slots->free_slots[class][slots->free_first[class]++];
    }
    return slots->free_count[class] > 0 ? slots->free_slots[class][--slots->free_count[class]]
                                        : CPU_NONE;
}

static void slot_take(const cpu_lower *lower, cpu_slots *slots, cpu_name *name)
{
    if (name->slot != CPU_NONE) {
        return;
    }
    if (!name->lasting) {
        name->slot = slot_reuse(lower, slots, name);
        if (name->slot != CPU_NONE) {
            return;
        }
    }
    name->slot = slots->count;
    slots->sizes[slots->count] = (name->uniform ? (uint32_t)CPU_BLOCK : lower->n) * name->bytes;
    slots->count += name->view ? 2 : 1;
}

static void slot_leave(cpu_slots *slots, cpu_name *name, uint32_t at)
{
    const uint32_t class = slot_class(name);
    if (name->last == at && !name->lasting && name->slot != CPU_NONE) {
        slots->free_slots[class][slots->free_count[class]++] = name->slot;
        name->last = CPU_NONE; /* freed once */
    }
}

/* Lasting names first, then in the order of the drafts. A lanewise draft may write a slot that it
 * reads for the last time. `ending` lists the names by the draft that needs them last. */
static void slots_assign_ranges(cpu_lower *lower, cpu_slots *slots, uint32_t *ending,
                                uint32_t *next)
{
    cpu_draft_list *group = &lower->lists[CPU_SECTION_GROUP];
    uint32_t names[CPU_REFERENCES];
    for (uint32_t i = 0; i < group->count; i++) {
        ending[i] = CPU_NONE;
    }
    for (uint32_t i = 0; i < lower->name_count; i++) {
        cpu_name *name = &lower->names[i];
        if (name->lasting && name->live) {
            slot_take(lower, slots, name);
        } else if (!name->lasting && name->first != CPU_NONE) {
            next[i] = ending[name->last];
            ending[name->last] = i;
        }
    }
    for (uint32_t i = 0; i < group->count; i++) {
        const cpu_draft *draft = &group->drafts[i];
        if (draft->live && draft->lanewise && draft->access == CPU_NONE) {
            const uint32_t reads[3] = {draft->a, draft->b, draft->c};
            for (uint32_t k = 0; k < 3; k++) {
                if (reads[k] != CPU_NONE && reads[k] != draft->d) {
                    slot_leave(slots, &lower->names[reads[k]], i);
                }
            }
        }
        uint32_t count = draft->live ? cpu_names_written(lower, draft, names) : 0;
        for (uint32_t k = 0; k < count; k++) {
            if (names[k] != CPU_NONE) {
                slot_take(lower, slots, &lower->names[names[k]]);
            }
        }
        for (uint32_t name = ending[i]; name != CPU_NONE; name = next[name]) {
            slot_leave(slots, &lower->names[name], i);
        }
    }
}

static void slots_assign(cpu_lower *lower, cpu_slots *slots)
{
    uint32_t *ending = malloc((lower->lists[CPU_SECTION_GROUP].count + 1) * sizeof(uint32_t));
    uint32_t *next = malloc((lower->name_count + 1) * sizeof(uint32_t));
    slots->count = CPU_SLOT_FIRST;
    slots->sizes[CPU_SLOT_FULL] = slots->sizes[CPU_SLOT_EMPTY] = lower->n;
    if (!ending || !next) {
        lower->status = HAL_ERROR_OUT_OF_MEMORY;
    } else {
        slots_assign_ranges(lower, slots, ending, next);
    }
    free(ending);
    free(next);
}

static size_t aligned(size_t bytes)
{
    return (bytes + CPU_ALIGNMENT - 1) / CPU_ALIGNMENT * CPU_ALIGNMENT;
}

/* The slot of a constant that is used; CPU_NONE: it is not. */
static uint32_t constant_slot(const cpu_lower *lower, uint32_t constant)
{
    const cpu_name *name = &lower->names[lower->constants[constant].name];
    return name->live ? name->slot : CPU_NONE;
}

/* The arena: what never changes (masks and constants), then other slots, then shared memory. */
static void arena_lay_out(cpu_lower *lower, const cpu_slots *slots)
{
    cpu_program *program = lower->program;
    size_t offset = 0;
    for (uint32_t i = 0; i < slots->count; i++) {
        program->slot_offset[i] = SIZE_MAX;
    }
    for (uint32_t i = CPU_SLOT_FULL; i < CPU_SLOT_FIRST; i++) {
        program->slot_offset[i] = offset;
        offset += aligned(slots->sizes[i]);
    }
    for (uint32_t i = 0; i < lower->constant_count; i++) {
        const uint32_t slot = constant_slot(lower, i);
        if (slot != CPU_NONE) {
            program->slot_offset[slot] = offset;
            offset += aligned((size_t)lower->constants[i].bytes * CPU_BLOCK);
        }
    }
    program->image_bytes = offset;
    for (uint32_t i = CPU_SLOT_FIRST; i < slots->count; i++) {
        if (slots->sizes[i] == 0) {
            program->slot_offset[i] = program->slot_offset[i - 1];
        } else if (program->slot_offset[i] == SIZE_MAX) {
            program->slot_offset[i] = offset;
            offset += aligned(slots->sizes[i]);
        }
    }
    for (uint32_t i = program->binding_count; i < program->memory_count; i++) {
        const hal_ir_memory *memory = &lower->ir->memories[i];
        program->shared_offset[i - program->binding_count] = offset;
        offset += aligned((size_t)memory->count * hal_type_size(memory->type));
    }
    program->arena_bytes = offset;
}

/* Little-endian: the low bytes come first. */
static void image_write(cpu_lower *lower)
{
    cpu_program *program = lower->program;
    program->image = calloc(1, program->image_bytes);
    if (!program->image) {
        lower->status = HAL_ERROR_OUT_OF_MEMORY;
        return;
    }
    memset(program->image + program->slot_offset[CPU_SLOT_FULL], 1, program->items);
    for (uint32_t i = 0; i < lower->constant_count; i++) {
        const uint32_t slot = constant_slot(lower, i), bytes = lower->constants[i].bytes;
        for (uint32_t lane = 0; slot != CPU_NONE && lane < CPU_BLOCK; lane++) {
            memcpy(program->image + program->slot_offset[slot] + lane * bytes,
                   &lower->constants[i].bits, bytes);
        }
    }
}

static uint32_t slot_of(const cpu_lower *lower, uint32_t name)
{
    return name == CPU_NONE ? CPU_NONE : lower->names[name].slot;
}

static void write_access(const cpu_lower *lower, cpu_access *to, const cpu_access *from)
{
    *to = *from;
    to->index = slot_of(lower, from->index);
    to->base = slot_of(lower, from->base);
    to->guard = slot_of(lower, from->guard);
    for (uint32_t k = 0; k < 3; k++) {
        to->factor[k] = slot_of(lower, from->factor[k]);
    }
    for (uint32_t k = 0; k < 2; k++) {
        to->operand[k] = slot_of(lower, from->operand[k]);
    }
    for (uint32_t k = 0; k < 8; k++) {
        to->values[k] = slot_of(lower, from->values[k]);
    }
}

/* Live drafts in order. A jump to a removed draft goes to the next live one. */
static void write_steps(cpu_lower *lower, uint32_t section, cpu_step *steps)
{
    cpu_draft_list *list = &lower->lists[section];
    cpu_program *program = lower->program;
    uint32_t index = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        list->drafts[i].index = index;
        index += list->drafts[i].live;
    }
    for (uint32_t i = 0; i < list->count; i++) {
        const cpu_draft *draft = &list->drafts[i];
        if (!draft->live) {
            continue;
        }
        cpu_step *step = &steps[draft->index];
        *step = (cpu_step){.run = cpu_lanes_find(lower->lanes, &draft->action),
                           .d = slot_of(lower, draft->d),
                           .a = slot_of(lower, draft->a),
                           .b = slot_of(lower, draft->b),
                           .c = slot_of(lower, draft->c),
                           .n = draft->n,
                           .mask = slot_of(lower, draft->mask),
                           .aux = draft->aux};
        if (draft->access != CPU_NONE) {
            cpu_access *access = &program->accesses[program->access_count++];
            write_access(lower, access, &lower->accesses[draft->access]);
            if (draft->action.class == CPU_STEP_VIEW) {
                access->otherwise = lower->lanes->load[draft->action.type];
            }
            step->access = access;
        }
        if (draft->target != CPU_NONE) {
            step->jump = (int32_t)list->drafts[draft->target].index - (int32_t)draft->index;
        }
    }
}

/* Nanoseconds of a group, estimated, and measured when the kernel runs: 4 per step and 1.5 per
 * block of lanes; loops are taken to have 16 iterations. */
static uint64_t guess_work(const cpu_lower *lower)
{
    const cpu_draft_list *group = &lower->lists[CPU_SECTION_GROUP];
    uint64_t quarters = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        const cpu_draft *draft = &group->drafts[i];
        uint64_t iterations = 1;
        for (uint32_t k = 0; k < lower->loop_count && iterations < 4096; k++) {
            iterations *= lower->loops[k].first <= i && i <= lower->loops[k].last ? 16 : 1;
        }
        quarters += draft->live ? iterations * (16 + draft->n / CPU_BLOCK * 6) : 0;
    }
    return quarters / 4;
}

static void write_kernel(cpu_lower *lower, cpu_slots *slots)
{
    cpu_program *program = lower->program;
    const uint32_t shared = program->memory_count - program->binding_count;
    program->slot_count = slots->count;
    program->dispatch = calloc(lower->lists[0].count + 1, sizeof(cpu_step));
    program->group = calloc(lower->lists[1].count + 1, sizeof(cpu_step));
    program->accesses = calloc(lower->access_count + 1, sizeof(cpu_access));
    program->slot_offset = calloc(slots->count + 1, sizeof(size_t));
    program->shared_offset = calloc(shared + 1, sizeof(size_t));
    if (!program->dispatch || !program->group || !program->accesses || !program->slot_offset ||
        !program->shared_offset) {
        lower->status = HAL_ERROR_OUT_OF_MEMORY;
        return;
    }
    arena_lay_out(lower, slots);
    image_write(lower);
    write_steps(lower, CPU_SECTION_DISPATCH, program->dispatch);
    write_steps(lower, CPU_SECTION_GROUP, program->group);
    program->work = guess_work(lower);
}

void cpu_assign_slots(cpu_lower *lower)
{
    cpu_slots slots = {.count = 0};
    if (lower->status != HAL_OK) {
        return;
    }
    mark_live(lower);
    slots.capacity = CPU_SLOT_FIRST + 2 * lower->name_count;
    slots.sizes = calloc(slots.capacity, sizeof(uint32_t));
    bool made = slots.sizes != NULL;
    for (uint32_t i = 0; i < CLASS_COUNT; i++) {
        slots.free_slots[i] = malloc((lower->name_count + 1) * sizeof(uint32_t));
        made = made && slots.free_slots[i] != NULL;
    }
    if (made && find_ranges(lower)) {
        slots_assign(lower, &slots);
        write_kernel(lower, &slots);
    } else {
        lower->status = HAL_ERROR_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < CLASS_COUNT; i++) {
        free(slots.free_slots[i]);
    }
    free(slots.sizes);
}
