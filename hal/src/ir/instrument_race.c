/* Races: a word for each element has its last access. A read after another's write, and a write
 * after any other's access, is a race. Atomics are not noted. The greater of two words counts, so
 * that atomics in any order keep what matters. Memory for which there are no words is not checked.
 *
 * In shared memory, of the present interval between barriers:
 *
 *     interval | kind: read, read by several, written | work-item
 *
 * Of a binding, of the dispatch:
 *
 *     kind + 1 | hash of what is written | who
 *
 * that is the work-item; in a kernel with barriers, which order those of a group, the group.
 *
 * Work-items that write the same value are no race there: kernels let the last ones begin earlier,
 * so that all have as much to do. Most accesses of bindings find 0 or their own word, so what
 * others mean is looked at after a branch.
 *
 * facts[0]: the variable with the interval in its place; then, of each shared array, its words'
 * memory; facts[ITEM]: the work-item in its group; facts[READER], facts[WRITER]: the words of
 * accesses to bindings without the hash. */
#include "instrument.h"

#include "report.h"

enum { KIND_READ = 0, KIND_SEVERAL = 1, KIND_WRITE = 2, KIND_BITS = 2 };
enum {
    ITEM = HAL_IR_MAX_SHARED + 1,
    READER,
    WRITER,
    WHO_BITS = HAL_IR_ACCESS_WHO_BITS,
    HASH_BITS = 10,
    KIND_SHIFT = WHO_BITS + HASH_BITS
};

/* Bits of a work-item's number. */
static uint32_t item_bits(const hal_ir_instrumentation *s)
{
    uint32_t bits = 0;
    while (hal_ir_group_items(s->from) > 1u << bits) {
        bits++;
    }
    return bits;
}

/* Whether words are noted by a store and read again, without atomics, which cost a processor most.
 * One thread has all work-items of a group there: of those that it runs together all but one find
 * another one's word. Threads that access an element of a binding within some nanoseconds may miss
 * each other. */
static bool notes_are_plain(const hal_ir_instrumentation *s)
{
    return s->rewrite.info->kind == HAL_DEVICE_CPU || s->rewrite.info->kind == HAL_DEVICE_SOFTWARE;
}

/* Stores a word and reads it again, from an index that no compiler knows to be the same. */
static hal_ir_value word_note(hal_ir_instrumentation *s, hal_ir_memory_id words, hal_ir_value index,
                              int32_t offset, hal_ir_value guard, hal_ir_value word)
{
    hal_ir_builder *b = s->b;
    const hal_type type = hal_ir_type_of(b, index);
    const hal_ir_value again =
        hal_ir_add(b, index,
                   hal_ir_select(b, hal_ir_never(s), hal_ir_constant_of(b, type, 1),
                                 hal_ir_constant_of(b, type, 0)));
    hal_ir_store_wide(b, words, index, offset, guard, word);
    return hal_ir_load_wide(b, words, again, offset, 1, guard);
}

/* The word that was there; the greater one of it and `word` is now. */
static hal_ir_value word_raise(hal_ir_instrumentation *s, hal_ir_memory_id words,
                               hal_ir_value index, int32_t offset, hal_ir_value guard,
                               hal_ir_value word)
{
    return hal_ir_append(s->b, (hal_ir_record){.opcode = HAL_IR_ATOMIC,
                                               .type = HAL_TYPE_U32,
                                               .width = 1,
                                               .a = index,
                                               .b = guard,
                                               .c = word,
                                               .d = HAL_IR_NONE,
                                               .aux = words,
                                               .imm = offset,
                                               .flags = HAL_IR_ATOMIC_MAX});
}

/* ---- Shared memory ---- */

/* An access to an element of a shared array. */
typedef struct shared_access {
    hal_ir_memory_id words;
    hal_ir_value index, guard; /* guard NONE: always */
    int32_t offset;
    bool is_write;
    hal_ir_value interval, item;
} shared_access;

/* A word of the present interval. */
static hal_ir_value access_word(hal_ir_instrumentation *s, const shared_access *access,
                                uint32_t kind)
{
    hal_ir_builder *b = s->b;
    const hal_ir_value mine = hal_ir_or(b, access->interval, access->item);
    return kind == 0 ? mine : hal_ir_or(b, mine, hal_ir_u32(b, kind << item_bits(s)));
}

/* Whether a word is that of another work-item in the present interval, of a kind. Without signs
 * the difference of a word of an earlier interval is beyond all numbers. */
static hal_ir_value word_is_of_other(hal_ir_instrumentation *s, const shared_access *access,
                                     hal_ir_value word, uint32_t kind)
{
    hal_ir_builder *b = s->b;
    const hal_ir_value first = hal_ir_add(b, access->interval, hal_ir_u32(b, kind << item_bits(s)));
    const hal_ir_value item = hal_ir_sub(b, word, kind == 0 ? access->interval : first);
    return hal_ir_and(b, hal_ir_lt(b, item, hal_ir_u32(b, 1U << item_bits(s))),
                      hal_ir_ne(b, item, access->item));
}

/* Whether an access after that of the word is a race: a read after a write of another work-item; a
 * write after any access of another one in the interval, of which SEVERAL always has one. */
static hal_ir_value word_conflicts(hal_ir_instrumentation *s, const shared_access *access,
                                   hal_ir_value word)
{
    hal_ir_builder *b = s->b;
    const uint32_t bits = item_bits(s);
    if (!access->is_write) {
        return word_is_of_other(s, access, word, KIND_WRITE);
    }
    const hal_ir_value now = hal_ir_sub(b, word, access->interval);
    const hal_ir_value low = hal_ir_and(b, now, hal_ir_u32(b, ~(KIND_WRITE << bits)));
    return hal_ir_and(b, hal_ir_lt(b, now, hal_ir_u32(b, (KIND_WRITE + 1U) << bits)),
                      hal_ir_ne(b, low, access->item));
}

/* Notes an access without atomics. */
static hal_ir_value access_note_plain(hal_ir_instrumentation *s, const shared_access *access,
                                      hal_ir_value *before)
{
    hal_ir_builder *b = s->b;
    const hal_ir_value mine = access_word(s, access, access->is_write ? KIND_WRITE : KIND_READ);
    const hal_ir_value seen =
        hal_ir_load_wide(b, access->words, access->index, access->offset, 1, access->guard);
    const hal_ir_value several =
        access->is_write ? HAL_IR_NONE : access_word(s, access, KIND_SEVERAL);
    hal_ir_value word = mine;
    if (!access->is_write) {
        word = hal_ir_select(b, word_is_of_other(s, access, seen, KIND_READ), several,
                             hal_ir_max(b, mine, seen));
    }
    const hal_ir_value found =
        word_note(s, access->words, access->index, access->offset, access->guard, word);
    const hal_ir_value earlier = word_conflicts(s, access, seen);
    hal_ir_value race = hal_ir_or(b, earlier, word_conflicts(s, access, found));
    if (!access->is_write) {
        const hal_ir_value together = word_is_of_other(s, access, found, KIND_READ);
        hal_ir_store_wide(b, access->words, access->index, access->offset,
                          hal_ir_and_maybe(b, together, access->guard), several);
    }
    *before = hal_ir_select(b, earlier, seen, found);
    return hal_ir_and_maybe(b, race, access->guard);
}

/* Notes an access to one element. Returns whether it is a race; `before` is the word that was
 * there, 0 where the guard is false. */
static hal_ir_value access_note(hal_ir_instrumentation *s, const shared_access *access,
                                hal_ir_value *before)
{
    hal_ir_builder *b = s->b;
    if (notes_are_plain(s)) {
        return access_note_plain(s, access, before);
    }
    *before = word_raise(s, access->words, access->index, access->offset, access->guard,
                         access_word(s, access, access->is_write ? KIND_WRITE : KIND_READ));
    if (!access->is_write) {
        const hal_ir_value is_second = word_is_of_other(s, access, *before, KIND_READ);
        word_raise(s, access->words, access->index, access->offset,
                   hal_ir_and_maybe(b, is_second, access->guard),
                   access_word(s, access, KIND_SEVERAL));
    }
    return word_conflicts(s, access, *before);
}

static void access_check(hal_ir_instrumentation *s, const hal_ir_value *facts, bool is_write)
{
    hal_ir_builder *b = s->b;
    const hal_ir_record *record = &s->from->records[s->index];
    if (!hal_ir_is_shared(s->from, record->aux) ||
        facts[1 + record->aux - s->from->binding_count] == HAL_IR_NONE) {
        return;
    }
    /* An asynchronous copy writes zeros where its guard is false. */
    const bool is_copy = record->opcode == HAL_IR_ASYNC_COPY;
    shared_access access = {.words = facts[1 + record->aux - s->from->binding_count],
                            .index = s->record.a,
                            .guard = is_copy ? HAL_IR_NONE : s->record.b,
                            .is_write = is_write,
                            .interval = hal_ir_get(b, facts[0]),
                            .item = facts[ITEM]};
    hal_ir_value race = HAL_IR_NONE, before = HAL_IR_NONE;
    for (uint32_t i = 0; i < record->width; i++) {
        hal_ir_value one;
        access.offset = (int32_t)((is_copy ? 0 : (uint32_t)record->imm) + i);
        const hal_ir_value wrong = access_note(s, &access, &one);
        before = race == HAL_IR_NONE ? one : hal_ir_select(b, wrong, one, before);
        race = race == HAL_IR_NONE ? wrong : hal_ir_or(b, race, wrong);
    }
    const hal_ir_value other = hal_ir_and(b, before, hal_ir_u32(b, (1u << item_bits(s)) - 1));
    hal_ir_report_fault(s, HAL_IR_FAULT_RACE, race, record->aux, s->record.a, other, HAL_IR_NONE);
}

/* ---- Bindings ---- */

/* The number of the work-item among those of the dispatch, or of the group where a barrier may
 * order its work-items; the lowest WHO_BITS. */
static hal_ir_value who_of(hal_ir_instrumentation *s)
{
    hal_ir_builder *b = s->b;
    bool has_barrier = false;
    for (uint32_t i = 0; i < s->from->record_count; i++) {
        has_barrier |= s->from->records[i].opcode == HAL_IR_BARRIER;
    }
    hal_ir_value number = hal_ir_id(b, HAL_IR_GROUP_ID, 2);
    for (uint32_t axis = 2; axis-- > 0;) {
        number = hal_ir_add(b, hal_ir_mul(b, number, hal_ir_id(b, HAL_IR_GROUP_COUNT, axis)),
                            hal_ir_id(b, HAL_IR_GROUP_ID, axis));
    }
    if (!has_barrier) {
        number = hal_ir_add(b, hal_ir_mul(b, number, hal_ir_u32(b, hal_ir_group_items(s->from))),
                            hal_ir_item_number(b, s->from->group_size));
    }
    return hal_ir_and(b, number, hal_ir_u32(b, (1u << WHO_BITS) - 1));
}

/* The index of the word of element index + offset of a binding, which has the element. An I32
 * names no word from 2^31 on, so it becomes a U32. */
static hal_ir_value binding_word(hal_ir_instrumentation *s, uint32_t memory, hal_ir_value index,
                                 int64_t offset)
{
    hal_ir_builder *b = s->b;
    if (hal_ir_type_of(b, index) == HAL_TYPE_I32) {
        index = hal_ir_bitcast(b, HAL_TYPE_U32, index);
    }
    const hal_type type = hal_ir_type_of(b, index);
    const uint64_t mask = hal_type_size(type) == 4 ? UINT32_MAX : UINT64_MAX;
    const uint32_t words = HAL_IR_ACCESS_WORDS(s->from->memories[memory].type);
    if (offset != 0) {
        index = hal_ir_add(b, index, hal_ir_constant_of(b, type, (uint64_t)offset & mask));
    }
    if (words != 1) {
        index = hal_ir_mul(b, index, hal_ir_constant_of(b, type, words));
    }
    const hal_ir_value place = hal_ir_shadow_place(s, memory);
    return hal_ir_add(b, index, type == HAL_TYPE_U32 ? place : hal_ir_cast(b, type, place));
}

/* What a write of a value has in the bits of the hash. */
static hal_ir_value hash_of(hal_ir_builder *b, hal_ir_value value)
{
    hal_ir_value words[2];
    hal_ir_value_words(b, value, words);
    if (hal_type_size(hal_ir_type_of(b, value)) == 8) {
        words[0] =
            hal_ir_xor(b, hal_ir_mul(b, words[1], hal_ir_u32(b, UINT32_C(0x85ebca6b))), words[0]);
    }
    const hal_ir_value mixed = hal_ir_mul(b, words[0], hal_ir_u32(b, UINT32_C(0x9e3779b1)));
    return hal_ir_and(b, hal_ir_shr(b, mixed, hal_ir_u32(b, 32 - KIND_SHIFT)),
                      hal_ir_u32(b, ((1U << HASH_BITS) - 1) << WHO_BITS));
}

/* An access to an element of a binding. */
typedef struct binding_access {
    hal_ir_memory_id words;
    hal_ir_value word; /* index */
    int32_t offset;
    bool is_write;
    hal_ir_value guard, mine;
    hal_ir_value changes;     /* a read: whether it was the first */
    hal_ir_value seen, found; /* the word before, and that which its own one met; NONE: not asked */
} binding_access;

static hal_ir_value kind_word(hal_ir_builder *b, uint32_t kind)
{
    return hal_ir_u32(b, (kind + 1U) << KIND_SHIFT);
}

static hal_ir_value binding_is_kind(hal_ir_builder *b, hal_ir_value word, uint32_t kind)
{
    return hal_ir_eq(b, hal_ir_shr(b, word, hal_ir_u32(b, KIND_SHIFT)), hal_ir_u32(b, kind + 1));
}

/* Whether a word, which may be 0, is another work-item's than `mine`. */
static hal_ir_value binding_is_other(hal_ir_builder *b, hal_ir_value word, hal_ir_value mine)
{
    const hal_ir_value differs = hal_ir_xor(b, word, mine);
    return hal_ir_ne(b, hal_ir_and(b, differs, hal_ir_u32(b, (1u << WHO_BITS) - 1)),
                     hal_ir_u32(b, 0));
}

/* Whether an access after that of the word is a race. Of two writes the kinds are equal, so only
 * the hashes may differ above the numbers. */
static hal_ir_value binding_conflicts(hal_ir_builder *b, const binding_access *access,
                                      hal_ir_value word)
{
    const hal_ir_value zero = hal_ir_u32(b, 0), mine = access->mine;
    const hal_ir_value other = binding_is_other(b, word, mine);
    if (!access->is_write) {
        return hal_ir_and(b, other, binding_is_kind(b, word, KIND_WRITE));
    }
    const hal_ir_value high = hal_ir_shr(b, hal_ir_xor(b, word, mine), hal_ir_u32(b, WHO_BITS));
    const hal_ir_value is_else = hal_ir_and(b, other, hal_ir_ne(b, high, zero));
    return hal_ir_or(b, binding_is_kind(b, word, KIND_SEVERAL),
                     hal_ir_and(b, is_else, hal_ir_ne(b, word, zero)));
}

/* Whether a word may be that of a race, or of a second reader; few are. */
static hal_ir_value binding_is_notable(hal_ir_builder *b, const binding_access *access,
                                       hal_ir_value word)
{
    const hal_ir_value notable =
        hal_ir_and(b, hal_ir_ne(b, word, hal_ir_u32(b, 0)), hal_ir_ne(b, word, access->mine));
    return access->is_write
               ? notable
               : hal_ir_and(b, notable, hal_ir_ne(b, word, kind_word(b, KIND_SEVERAL)));
}

/* Notes an access. Returns whether binding_judge has to look at it. */
static hal_ir_value binding_note(hal_ir_instrumentation *s, binding_access *access)
{
    hal_ir_builder *b = s->b;
    const bool is_plain = notes_are_plain(s);
    hal_ir_value guard = access->guard;
    access->seen = HAL_IR_NONE;
    if (is_plain || !access->is_write) {
        access->seen = hal_ir_load_wide(b, access->words, access->word, access->offset, 1, guard);
    }
    if (!access->is_write) {
        guard = hal_ir_and_maybe(b, hal_ir_eq(b, access->seen, hal_ir_u32(b, 0)), guard);
        access->changes = guard;
    }
    access->found =
        is_plain ? word_note(s, access->words, access->word, access->offset, guard, access->mine)
                 : word_raise(s, access->words, access->word, access->offset, guard, access->mine);
    const hal_ir_value notable = binding_is_notable(b, access, access->found);
    return access->seen == HAL_IR_NONE
               ? notable
               : hal_ir_or(b, notable, binding_is_notable(b, access, access->seen));
}

/* Whether a noted access is a race; notes that several read. `before`: the word that was there. */
static hal_ir_value binding_judge(hal_ir_instrumentation *s, const binding_access *access,
                                  hal_ir_value *before)
{
    hal_ir_builder *b = s->b;
    hal_ir_value word = access->found;
    if (access->is_write && access->seen == HAL_IR_NONE) {
        *before = word;
        return binding_conflicts(b, access, word);
    }
    if (access->is_write) {
        const hal_ir_value earlier = binding_conflicts(b, access, access->seen);
        *before = hal_ir_select(b, earlier, access->seen, word);
        return hal_ir_or(b, earlier, binding_conflicts(b, access, word));
    }
    word = hal_ir_select(b, access->changes, word, access->seen);
    const hal_ir_value several = kind_word(b, KIND_SEVERAL);
    const hal_ir_value is_second =
        hal_ir_and(b, binding_is_other(b, word, access->mine), binding_is_kind(b, word, KIND_READ));
    if (notes_are_plain(s)) {
        hal_ir_store_wide(b, access->words, access->word, access->offset, is_second, several);
    } else {
        const hal_ir_value again =
            word_raise(s, access->words, access->word, access->offset, is_second, several);
        word = hal_ir_select(b, is_second, again, word);
    }
    *before = word;
    return binding_conflicts(b, access, word);
}

/* What noted accesses of a record met, if that is a race; else 0. */
static hal_ir_value binding_met(hal_ir_instrumentation *s, const binding_access *accesses)
{
    hal_ir_builder *b = s->b;
    hal_ir_value met = hal_ir_u32(b, 0);
    for (uint32_t i = 0; i < s->record.width; i++) {
        hal_ir_value before;
        const hal_ir_value race = binding_judge(s, &accesses[i], &before);
        met = hal_ir_select(b, race, before, met);
    }
    return met;
}

static void binding_report(hal_ir_instrumentation *s, hal_ir_value met, uint32_t memory,
                           hal_ir_value index)
{
    hal_ir_report_fault(s, HAL_IR_FAULT_RACE, hal_ir_ne(s->b, met, hal_ir_u32(s->b, 0)), memory,
                        index, met, HAL_IR_NONE);
}

/* Notes the accesses of a record; whether one of them may be a race. */
static hal_ir_value bindings_note(hal_ir_instrumentation *s, const hal_ir_value *facts,
                                  uint32_t memory, binding_access access,
                                  binding_access accesses[8])
{
    hal_ir_builder *b = s->b;
    const uint32_t width = s->record.width;
    hal_ir_value notable = HAL_IR_NONE;
    for (uint32_t i = 0; i < width; i++) {
        access.offset = (int32_t)(i * HAL_IR_ACCESS_WORDS(s->from->memories[memory].type));
        if (access.is_write) {
            const hal_ir_value value = width == 1 ? s->record.c : hal_ir_extract(b, s->record.c, i);
            access.mine = hal_ir_or(b, facts[WRITER], hash_of(b, value));
        }
        accesses[i] = access;
        const hal_ir_value one = binding_note(s, &accesses[i]);
        notable = i == 0 ? one : hal_ir_or(b, notable, one);
    }
    return notable;
}

/* Processors keep what an access met in a variable, and report it with the other faults of the
 * block. GPUs report it in the branch that hardly any work-item takes, so that no register holds it
 * afterwards. */
static void binding_check(hal_ir_instrumentation *s, const hal_ir_value *facts, uint32_t memory,
                          hal_ir_value index, int64_t offset, bool is_write)
{
    hal_ir_builder *b = s->b;
    const hal_ir_memory_id words =
        hal_ir_is_shared(s->from, memory) ? HAL_IR_NONE : s->shadow[HAL_IR_SHADOW_ACCESSED][memory];
    const bool is_plain = notes_are_plain(s);
    hal_ir_value kept = HAL_IR_NONE;
    if (words == HAL_IR_NONE) {
        return;
    }
    if (is_plain) {
        kept = hal_ir_var(b, hal_ir_u32(b, 0));
    } else {
        hal_ir_reports_end(s);
    }
    hal_ir_if(b, hal_ir_shadow_exists(s, HAL_IR_SHADOW_ACCESSED, memory));
    const hal_ir_value holds = hal_ir_and_maybe(
        b, hal_ir_index_holds(s, HAL_IR_COUNT_ACCESSED, memory, index, offset, s->record.width),
        s->record.b);
    if (!is_plain) {
        hal_ir_if(b, holds); /* one branch, where each guarded atomic has one */
    }
    binding_access accesses[8];
    const binding_access access = {.words = words,
                                   .word = binding_word(s, memory, index, offset),
                                   .is_write = is_write,
                                   .guard = is_plain ? holds : HAL_IR_NONE,
                                   .mine = facts[READER]};
    hal_ir_if(b, bindings_note(s, facts, memory, access, accesses));
    const hal_ir_value met = binding_met(s, accesses);
    if (is_plain) {
        hal_ir_set(b, kept, met);
    } else {
        binding_report(s, met, memory, index);
        hal_ir_reports_end(s);
        hal_ir_end(b);
    }
    hal_ir_end(b);
    hal_ir_end(b);
    if (is_plain) {
        binding_report(s, hal_ir_get(b, kept), memory, index);
    }
}

static void race_before(hal_ir_instrumentation *s, hal_ir_value *facts)
{
    const hal_ir_record *record = &s->from->records[s->index];
    switch (s->record.opcode) {
    case HAL_IR_LOAD:
        access_check(s, facts, false);
        binding_check(s, facts, record->aux, s->record.a, record->imm, false);
        break;
    case HAL_IR_STORE:
        access_check(s, facts, true);
        binding_check(s, facts, record->aux, s->record.a, record->imm, true);
        break;
    case HAL_IR_ASYNC_COPY:
        access_check(s, facts, true);
        binding_check(s, facts, (uint32_t)record->imm, s->record.d, 0, false);
        break;
    default:
        break;
    }
}

static void race_after(hal_ir_instrumentation *s, hal_ir_value *facts, hal_ir_value value)
{
    (void)value;
    if (s->record.opcode == HAL_IR_BARRIER && facts[0] != HAL_IR_NONE) {
        const hal_ir_value one = hal_ir_u32(s->b, 1U << (item_bits(s) + KIND_BITS));
        hal_ir_set(s->b, facts[0], hal_ir_add(s->b, hal_ir_get(s->b, facts[0]), one));
    }
}

static void race_begin(hal_ir_instrumentation *s, hal_ir_value *facts)
{
    hal_ir_builder *b = s->b;
    const hal_ir_value who = who_of(s);
    facts[READER] = hal_ir_or(b, who, kind_word(b, KIND_READ));
    facts[WRITER] = hal_ir_or(b, who, kind_word(b, KIND_WRITE));
    facts[ITEM] = hal_ir_item_number(b, s->from->group_size);
    if (hal_ir_shadow_shared(s, "accesses", facts + 1)) {
        facts[0] = hal_ir_var(b, hal_ir_u32(b, 1U << (item_bits(s) + KIND_BITS)));
    }
}

const hal_ir_pass hal_ir_pass_race = {
    .check = HAL_CHECK_RACE, .begin = race_begin, .before = race_before, .after = race_after};
