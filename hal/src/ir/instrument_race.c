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
 * so that all have as much to do.
 *
 * facts[0]: the variable with the interval; then, of each shared array, its words' memory;
 * facts[WHO]: who accesses bindings. */
#include "instrument.h"

#include "report.h"

enum { KIND_READ = 0, KIND_SEVERAL = 1, KIND_WRITE = 2, KIND_BITS = 2 };
enum {
    WHO = HAL_IR_MAX_SHARED + 1,
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

/* A word of the present interval. */
static hal_ir_value access_word(hal_ir_instrumentation *s, hal_ir_value interval, uint32_t kind)
{
    const uint32_t bits = item_bits(s);
    const hal_ir_value high = hal_ir_shl(s->b, interval, hal_ir_u32(s->b, bits + KIND_BITS));
    const hal_ir_value low = hal_ir_or(s->b, hal_ir_u32(s->b, kind << bits),
                                       hal_ir_item_number(s->b, s->from->group_size));
    return hal_ir_or(s->b, high, low);
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
                              hal_ir_value guard, hal_ir_value word)
{
    hal_ir_builder *b = s->b;
    const hal_type type = hal_ir_type_of(b, index);
    const hal_ir_value never = hal_ir_never(s);
    const hal_ir_value again = hal_ir_add(
        b, index,
        hal_ir_select(b, never, hal_ir_constant_of(b, type, 1), hal_ir_constant_of(b, type, 0)));
    hal_ir_store_wide(b, words, index, 0, guard, word);
    return hal_ir_load_wide(b, words, again, 0, 1, guard);
}

/* An access to one element of a shared array. */
typedef struct shared_access {
    hal_ir_memory_id words;
    hal_ir_value index, guard; /* guard NONE: always */
    bool is_write;
    hal_ir_value interval;
} shared_access;

/* Whether a word is that of another work-item in the present interval. */
static hal_ir_value word_is_other(hal_ir_instrumentation *s, const shared_access *access,
                                  hal_ir_value word)
{
    hal_ir_builder *b = s->b;
    const uint32_t bits = item_bits(s);
    const hal_ir_value other = hal_ir_ne(b, hal_ir_and(b, word, hal_ir_u32(b, (1u << bits) - 1)),
                                         hal_ir_item_number(b, s->from->group_size));
    return hal_ir_and(
        b, other,
        hal_ir_eq(b, hal_ir_shr(b, word, hal_ir_u32(b, bits + KIND_BITS)), access->interval));
}

static hal_ir_value word_is_kind(hal_ir_instrumentation *s, hal_ir_value word, uint32_t kind)
{
    hal_ir_builder *b = s->b;
    const hal_ir_value of = hal_ir_and(b, hal_ir_shr(b, word, hal_ir_u32(b, item_bits(s))),
                                       hal_ir_u32(b, (1 << KIND_BITS) - 1));
    return hal_ir_eq(b, of, hal_ir_u32(b, kind));
}

/* Whether an access after that of the word is a race. */
static hal_ir_value word_conflicts(hal_ir_instrumentation *s, const shared_access *access,
                                   hal_ir_value word)
{
    hal_ir_builder *b = s->b;
    const hal_ir_value other = word_is_other(s, access, word);
    if (!access->is_write) {
        return hal_ir_and(b, other, word_is_kind(s, word, KIND_WRITE));
    }
    const hal_ir_value is_now = hal_ir_eq(
        b, hal_ir_shr(b, word, hal_ir_u32(b, item_bits(s) + KIND_BITS)), access->interval);
    return hal_ir_or(b, other, hal_ir_and(b, is_now, word_is_kind(s, word, KIND_SEVERAL)));
}

/* Notes an access without atomics. */
static hal_ir_value access_note_plain(hal_ir_instrumentation *s, const shared_access *access,
                                      hal_ir_value *before)
{
    hal_ir_builder *b = s->b;
    const hal_ir_value mine =
        access_word(s, access->interval, access->is_write ? KIND_WRITE : KIND_READ);
    const hal_ir_value seen =
        hal_ir_load_wide(b, access->words, access->index, 0, 1, access->guard);
    hal_ir_value word = mine;
    if (!access->is_write) {
        const hal_ir_value is_second =
            hal_ir_and(b, word_is_other(s, access, seen), word_is_kind(s, seen, KIND_READ));
        const hal_ir_value several = access_word(s, access->interval, KIND_SEVERAL);
        word = hal_ir_select(b, is_second, several, hal_ir_max(b, mine, seen));
    }
    const hal_ir_value found = word_note(s, access->words, access->index, access->guard, word);
    const hal_ir_value earlier = word_conflicts(s, access, seen);
    hal_ir_value race = hal_ir_or(b, earlier, word_conflicts(s, access, found));
    if (!access->is_write) {
        const hal_ir_value together =
            hal_ir_and(b, word_is_other(s, access, found), word_is_kind(s, found, KIND_READ));
        hal_ir_store_wide(b, access->words, access->index, 0,
                          hal_ir_and_maybe(b, together, access->guard),
                          access_word(s, access->interval, KIND_SEVERAL));
    }
    *before = hal_ir_select(b, earlier, seen, found);
    return hal_ir_and_maybe(b, race, access->guard);
}

/* Notes an access to one element. Returns whether it is a race; `before` is the word that was
 * there. */
static hal_ir_value access_note(hal_ir_instrumentation *s, const shared_access *access,
                                hal_ir_value *before)
{
    hal_ir_builder *b = s->b;
    if (notes_are_plain(s)) {
        return access_note_plain(s, access, before);
    }
    const uint32_t kind = access->is_write ? KIND_WRITE : KIND_READ;
    *before = hal_ir_atomic(b, HAL_IR_ATOMIC_MAX, access->words, access->index, access->guard,
                            access_word(s, access->interval, kind), HAL_IR_NONE);
    if (!access->is_write) {
        const hal_ir_value is_second =
            hal_ir_and(b, word_is_other(s, access, *before), word_is_kind(s, *before, KIND_READ));
        hal_ir_atomic(b, HAL_IR_ATOMIC_MAX, access->words, access->index,
                      hal_ir_and_maybe(b, is_second, access->guard),
                      access_word(s, access->interval, KIND_SEVERAL), HAL_IR_NONE);
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
    const hal_ir_memory_id words = facts[1 + record->aux - s->from->binding_count];
    const hal_ir_value interval = hal_ir_get(b, facts[0]);
    const hal_type type = hal_ir_type_of(b, s->record.a);
    hal_ir_value race = HAL_IR_NONE, before = HAL_IR_NONE;
    /* An asynchronous copy writes zeros where its guard is false. */
    const bool is_copy = record->opcode == HAL_IR_ASYNC_COPY;
    const hal_ir_value guard = is_copy ? HAL_IR_NONE : s->record.b;
    for (uint32_t i = 0; i < record->width; i++) {
        const int64_t offset = (is_copy ? 0 : (int64_t)record->imm) + i;
        const hal_ir_value index =
            offset == 0
                ? s->record.a
                : hal_ir_add(b, s->record.a,
                             hal_ir_constant_of(b, type,
                                                hal_type_size(type) == 4 ? (uint32_t)offset
                                                                         : (uint64_t)offset));
        hal_ir_value one;
        const shared_access access = {words, index, guard, is_write, interval};
        const hal_ir_value wrong = access_note(s, &access, &one);
        before = race == HAL_IR_NONE ? one : hal_ir_select(b, wrong, one, before);
        race = race == HAL_IR_NONE ? wrong : hal_ir_or(b, race, wrong);
    }
    const hal_ir_value other = hal_ir_and(b, before, hal_ir_u32(b, (1u << item_bits(s)) - 1));
    hal_ir_report_fault(s, HAL_IR_FAULT_RACE, race, record->aux, s->record.a, other, HAL_IR_NONE);
}

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

/* The index of the word of element index + offset of a binding. */
static hal_ir_value binding_word(hal_ir_instrumentation *s, uint32_t memory, hal_ir_value index,
                                 int64_t offset)
{
    hal_ir_builder *b = s->b;
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

/* What a write of a value has in the bits of the hash; 0 for a read, of NONE. */
static hal_ir_value hash_of(hal_ir_instrumentation *s, hal_ir_value value)
{
    hal_ir_builder *b = s->b;
    if (value == HAL_IR_NONE) {
        return hal_ir_u32(b, 0);
    }
    hal_ir_value words[2];
    hal_ir_value_words(b, value, words);
    const hal_ir_value mixed = hal_ir_mul(
        b, hal_ir_xor(b, hal_ir_mul(b, words[1], hal_ir_u32(b, UINT32_C(0x85ebca6b))), words[0]),
        hal_ir_u32(b, UINT32_C(0x9e3779b1)));
    return hal_ir_shl(b, hal_ir_shr(b, mixed, hal_ir_u32(b, 32 - HASH_BITS)),
                      hal_ir_u32(b, WHO_BITS));
}

/* An access to one element of a binding. */
typedef struct binding_access {
    hal_ir_memory_id words;
    hal_ir_value word;  /* index */
    hal_ir_value value; /* that is written; NONE: a read */
    hal_ir_value guard, who;
} binding_access;

/* The word of an access to a binding. */
static hal_ir_value binding_mine(hal_ir_instrumentation *s, const binding_access *access)
{
    hal_ir_builder *b = s->b;
    const uint32_t kind = access->value == HAL_IR_NONE ? KIND_READ : KIND_WRITE;
    const hal_ir_value mark = hal_ir_u32(b, (kind + 1) << KIND_SHIFT);
    return hal_ir_or(b, hal_ir_or(b, access->who, mark), hash_of(s, access->value));
}

static hal_ir_value binding_is_kind(hal_ir_instrumentation *s, hal_ir_value word, uint32_t kind)
{
    return hal_ir_eq(s->b, hal_ir_shr(s->b, word, hal_ir_u32(s->b, KIND_SHIFT)),
                     hal_ir_u32(s->b, kind + 1));
}

/* Whether a word, which may be 0, is another work-item's than `mine`. */
static hal_ir_value binding_is_other(hal_ir_instrumentation *s, hal_ir_value word,
                                     hal_ir_value mine)
{
    hal_ir_builder *b = s->b;
    const hal_ir_value differs = hal_ir_xor(b, word, mine);
    return hal_ir_ne(b, hal_ir_and(b, differs, hal_ir_u32(b, (1u << WHO_BITS) - 1)),
                     hal_ir_u32(b, 0));
}

/* Whether an access after that of the word is a race. Of two writes the kinds are equal, so only
 * the hashes may differ above the numbers. */
static hal_ir_value binding_conflicts(hal_ir_instrumentation *s, const binding_access *access,
                                      hal_ir_value word, hal_ir_value mine)
{
    hal_ir_builder *b = s->b;
    const hal_ir_value zero = hal_ir_u32(b, 0);
    const hal_ir_value other = binding_is_other(s, word, mine);
    if (access->value == HAL_IR_NONE) {
        return hal_ir_and(b, other, binding_is_kind(s, word, KIND_WRITE));
    }
    const hal_ir_value high = hal_ir_shr(b, hal_ir_xor(b, word, mine), hal_ir_u32(b, WHO_BITS));
    const hal_ir_value is_else = hal_ir_and(b, other, hal_ir_ne(b, high, zero));
    return hal_ir_or(b, binding_is_kind(s, word, KIND_SEVERAL),
                     hal_ir_and(b, is_else, hal_ir_ne(b, word, zero)));
}

/* Notes an access without atomics. */
static hal_ir_value binding_note_plain(hal_ir_instrumentation *s, const binding_access *access,
                                       hal_ir_value *before)
{
    hal_ir_builder *b = s->b;
    const bool is_write = access->value != HAL_IR_NONE;
    const hal_ir_value mine = binding_mine(s, access), guard = access->guard;
    const hal_ir_value several = hal_ir_u32(b, (KIND_SEVERAL + 1u) << KIND_SHIFT);
    const hal_ir_value seen = hal_ir_load_wide(b, access->words, access->word, 0, 1, guard);
    const hal_ir_value earlier = binding_conflicts(s, access, seen, mine);
    hal_ir_value word = mine;
    hal_ir_value changes = guard;
    if (!is_write) {
        const hal_ir_value is_second =
            hal_ir_and(b, binding_is_other(s, seen, mine), binding_is_kind(s, seen, KIND_READ));
        word = hal_ir_select(b, is_second, several, mine);
        changes = hal_ir_and(b, changes, hal_ir_lt(b, seen, several));
    }
    const hal_ir_value found = word_note(s, access->words, access->word, changes, word);
    hal_ir_value race = hal_ir_and(b, changes, binding_conflicts(s, access, found, mine));
    if (!is_write) {
        const hal_ir_value together =
            hal_ir_and(b, binding_is_other(s, found, mine), binding_is_kind(s, found, KIND_READ));
        hal_ir_store_wide(b, access->words, access->word, 0, hal_ir_and(b, changes, together),
                          several);
    }
    race = hal_ir_or(b, race, hal_ir_and(b, guard, earlier));
    *before = hal_ir_select(b, earlier, seen, found);
    return race;
}

/* Notes an access, whose word most accesses need not change. Returns whether it is a race;
 * `before`: the word that was there. */
static hal_ir_value binding_note(hal_ir_instrumentation *s, const binding_access *access,
                                 hal_ir_value *before)
{
    hal_ir_builder *b = s->b;
    const bool is_write = access->value != HAL_IR_NONE;
    if (notes_are_plain(s)) {
        return binding_note_plain(s, access, before);
    }
    const hal_ir_value mine = binding_mine(s, access), guard = access->guard;
    const hal_ir_value several = hal_ir_u32(b, (KIND_SEVERAL + 1u) << KIND_SHIFT);
    const hal_ir_value seen = hal_ir_load_wide(b, access->words, access->word, 0, 1, guard);
    hal_ir_value changes = hal_ir_and(b, guard, hal_ir_ne(b, seen, mine));
    if (!is_write) {
        changes = hal_ir_and(b, changes, hal_ir_lt(b, seen, several));
    }
    const hal_ir_value old = hal_ir_atomic(b, HAL_IR_ATOMIC_MAX, access->words, access->word,
                                           changes, mine, HAL_IR_NONE);
    *before = hal_ir_select(b, changes, old, seen);
    const hal_ir_value conflicts = binding_conflicts(s, access, *before, mine);
    if (is_write) {
        return hal_ir_and(b, changes, conflicts);
    }
    const hal_ir_value is_second =
        hal_ir_and(b, hal_ir_and(b, changes, binding_is_other(s, *before, mine)),
                   binding_is_kind(s, *before, KIND_READ));
    hal_ir_atomic(b, HAL_IR_ATOMIC_MAX, access->words, access->word, is_second, several,
                  HAL_IR_NONE);
    return hal_ir_and(b, guard, conflicts);
}

static void binding_check(hal_ir_instrumentation *s, const hal_ir_value *facts, uint32_t memory,
                          hal_ir_value index, int64_t offset, bool is_write)
{
    hal_ir_builder *b = s->b;
    const hal_ir_memory_id words =
        hal_ir_is_shared(s->from, memory) ? HAL_IR_NONE : s->shadow[HAL_IR_SHADOW_ACCESSED][memory];
    if (words == HAL_IR_NONE) {
        return;
    }
    const uint32_t width = s->record.width;
    hal_ir_reports_end(s);
    hal_ir_if(b, hal_ir_shadow_exists(s, HAL_IR_SHADOW_ACCESSED, memory));
    const hal_ir_value guard = hal_ir_and_maybe(
        b, hal_ir_index_holds(s, HAL_IR_COUNT_ACCESSED, memory, index, offset, width), s->record.b);
    hal_ir_value race = HAL_IR_NONE, before = HAL_IR_NONE;
    for (uint32_t i = 0; i < width; i++) {
        hal_ir_value one;
        const binding_access access = {.words = words,
                                       .word = binding_word(s, memory, index, offset + i),
                                       .value = !is_write    ? HAL_IR_NONE
                                                : width == 1 ? s->record.c
                                                             : hal_ir_extract(b, s->record.c, i),
                                       .guard = guard,
                                       .who = facts[WHO]};
        const hal_ir_value wrong = binding_note(s, &access, &one);
        before = race == HAL_IR_NONE ? one : hal_ir_select(b, wrong, one, before);
        race = race == HAL_IR_NONE ? wrong : hal_ir_or(b, race, wrong);
    }
    hal_ir_report_fault(s, HAL_IR_FAULT_RACE, race, memory, index, before, HAL_IR_NONE);
    hal_ir_reports_end(s);
    hal_ir_end(b);
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
        hal_ir_set(s->b, facts[0],
                   hal_ir_add(s->b, hal_ir_get(s->b, facts[0]), hal_ir_u32(s->b, 1)));
    }
}

static void race_begin(hal_ir_instrumentation *s, hal_ir_value *facts)
{
    facts[WHO] = who_of(s);
    if (hal_ir_shadow_shared(s, "accesses", facts + 1)) {
        facts[0] = hal_ir_var(s->b, hal_ir_u32(s->b, 1));
    }
}

const hal_ir_pass hal_ir_pass_race = {
    .check = HAL_CHECK_RACE, .begin = race_begin, .before = race_before, .after = race_after};
