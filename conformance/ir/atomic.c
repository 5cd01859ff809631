/* atomic.c: atomic operations of every kind and type, in bindings and in shared memory, with work-
 * items that contend for the same elements and some that are guarded off. */
#include "case/cases.h"
#include "case/cover.h"
#include "ir/fixture.h"

#define GROUPS 7u
#define SLOTS 5u     /* elements that are contended for */
#define CROWD 16384u /* groups that contend for one element */

typedef struct atomic {
    uint32_t kind;
    hal_type type;
    bool shared;
} atomic;

/* Work-item i of the case: `slot` i mod SLOTS; guarded off where i mod 11 is 4. The results are the
 * slots at the end, of each group where they are shared, and the old value that each item got. */
typedef struct outcome {
    size_t items, slots;
    uint64_t *operands, *initial, *finals, *olds;
} outcome;

static const char *const kind_names[HAL_IR_ATOMIC_COUNT] = {"add", "min", "max",      "and",
                                                            "or",  "xor", "exchange", "compare"};

/* EXCHANGE and COMPARE_EXCHANGE get operands that all differ, so that each old value tells whose
 * it was. Random bits reach the high half and the sign. */
static void fill_outcome(case_run *run, const atomic *tested, outcome *made)
{
    random_state random = {run->seed};
    const bool differ = tested->kind >= HAL_IR_ATOMIC_EXCHANGE;
    const uint64_t mask = number_mask(tested->type);
    for (size_t i = 0; i < made->items; i++) {
        const uint64_t unique = (UINT64_C(0x9e3779b1) * (i + 1)) << (mask > UINT32_MAX ? 8 : 0);
        made->operands[i] = (differ ? unique : random_next(&random)) & mask;
    }
    const uint64_t first = random_next(&random) & mask;
    for (size_t i = 0; i < made->slots; i++) {
        made->initial[i] = differ ? 3 : first;
    }
}

static hal_ir_builder *build(case_run *run, const atomic *tested)
{
    hal_ir_builder *b = ir_begin(run, "atomic");
    const hal_ir_memory_id operands = hal_ir_binding(b, "operands", tested->type, HAL_ACCESS_READ);
    const hal_ir_memory_id slots = hal_ir_binding(b, "slots", tested->type, HAL_ACCESS_READ_WRITE);
    const hal_ir_memory_id olds = hal_ir_binding(b, "olds", tested->type, HAL_ACCESS_WRITE);
    hal_ir_memory_id contended = slots;
    const hal_ir_value many = hal_ir_u32(b, SLOTS);
    const hal_ir_value i = hal_ir_global_id(b, 0), lane = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    const hal_ir_value own =
        hal_ir_add(b, hal_ir_mul(b, hal_ir_id(b, HAL_IR_GROUP_ID, 0), many), lane);
    const hal_ir_value keeper = hal_ir_lt(b, lane, many);
    if (tested->shared) {
        contended = hal_ir_shared(b, "shared_slots", tested->type, SLOTS);
        hal_ir_store_wide(b, contended, lane, 0, keeper,
                          hal_ir_load_wide(b, slots, own, 0, 1, keeper));
        hal_ir_barrier(b);
    }
    const hal_ir_value guard = hal_ir_ne(b, hal_ir_rem(b, i, hal_ir_u32(b, 11)), hal_ir_u32(b, 4));
    const hal_ir_value slot = hal_ir_rem(b, i, many);
    const hal_ir_value place = hal_ir_select(b, guard, slot, hal_ir_u32(b, 0x10000000u));
    const hal_ir_value old = hal_ir_atomic(
        b, tested->kind, contended, place, guard, hal_ir_load(b, operands, i),
        tested->kind == HAL_IR_ATOMIC_COMPARE_EXCHANGE ? hal_ir_number(b, tested->type, 3.0)
                                                       : HAL_IR_NONE);
    hal_ir_store(b, olds, i, old);
    if (tested->shared) {
        hal_ir_barrier(b);
        hal_ir_store_wide(b, slots, own, 0, keeper,
                          hal_ir_load_wide(b, contended, lane, 0, 1, keeper));
    }
    return b;
}

static void outcome_compute(case_run *run, const atomic *tested, outcome *made)
{
    const uint32_t size = hal_type_size(tested->type);
    const size_t longest = made->items > made->slots ? made->items : made->slots;
    uint8_t *packed = case_allocate(run, longest, size);
    red_zone zones[3];
    for (size_t i = 0; i < made->items; i++) {
        number_store(tested->type, packed, i, made->operands[i]);
    }
    zones[0] = zone_create(run, made->items * size, packed);
    for (size_t i = 0; i < made->slots; i++) {
        number_store(tested->type, packed, i, made->initial[i]);
    }
    zones[1] = zone_create(run, made->slots * size, packed);
    zones[2] = zone_create(run, made->items * size, NULL);
    ir_run(run, build(run, tested), GROUPS, zones, 3, NULL, 0);
    zone_read(run, &zones[1], packed, "slots");
    for (size_t i = 0; i < made->slots; i++) {
        made->finals[i] = number_load(tested->type, packed, i);
    }
    zone_read(run, &zones[2], packed, "old values");
    for (size_t i = 0; i < made->items; i++) {
        made->olds[i] = number_load(tested->type, packed, i);
    }
}

static bool takes_part(size_t item, size_t slot)
{
    return item % SLOTS == slot % SLOTS && item % 11 != 4;
}

/* Exactly one wins; all others see the winner's value. */
static void judge_compare(case_run *run, const outcome *made, size_t slot, size_t first, size_t end)
{
    size_t winners = 0, wrong = 0;
    for (size_t i = first; i < end; i++) {
        if (!takes_part(i, slot)) {
            continue;
        }
        const bool won = made->olds[i] == made->initial[slot];
        winners += won;
        wrong +=
            won ? made->finals[slot] != made->operands[i] : made->olds[i] != made->finals[slot];
    }
    case_check(run, winners == 1 && wrong == 0,
               "slot %zu: %zu winners instead of 1, %zu wrong old values", slot, winners, wrong);
}

/* Exchanges form a chain: the initial value and all operands but the final one, each once. */
static void judge_chain(case_run *run, const outcome *made, size_t slot, size_t first, size_t end)
{
    uint64_t given = made->initial[slot], taken = made->finals[slot];
    size_t owners = 0;
    for (size_t i = first; i < end; i++) {
        if (takes_part(i, slot)) {
            given += made->operands[i];
            taken += made->olds[i];
            owners += made->finals[slot] == made->operands[i];
        }
    }
    case_check(run, owners == 1, "slot %zu ended as 0x%llx, which is no work-item's operand", slot,
               (unsigned long long)made->finals[slot]);
    case_check(run, given == taken, "values of slot %zu were lost or given out twice", slot);
}

static uint64_t combine(const atomic *tested, uint64_t old, uint64_t operand)
{
    static const uint32_t opcodes[] = {HAL_IR_ADD, HAL_IR_MIN, HAL_IR_MAX,
                                       HAL_IR_AND, HAL_IR_OR,  HAL_IR_XOR};
    const uint64_t operands[3] = {old, operand, 0};
    return ir_evaluate(opcodes[tested->kind], tested->type, operands);
}

/* The work-items [first, end) contend for the slot. */
static void judge_slot(case_run *run, const atomic *tested, const outcome *made, size_t slot,
                       size_t first, size_t end)
{
    if (tested->kind == HAL_IR_ATOMIC_COMPARE_EXCHANGE) {
        judge_compare(run, made, slot, first, end);
        return;
    }
    if (tested->kind == HAL_IR_ATOMIC_EXCHANGE) {
        judge_chain(run, made, slot, first, end);
        return;
    }
    uint64_t expected = made->initial[slot];
    size_t initial_seen = 0;
    for (size_t i = first; i < end; i++) {
        if (takes_part(i, slot)) {
            expected = combine(tested, expected, made->operands[i]);
            initial_seen += made->olds[i] == made->initial[slot];
        }
    }
    case_check(run, made->finals[slot] == expected, "slot %zu ended as 0x%llx instead of 0x%llx",
               slot, (unsigned long long)made->finals[slot], (unsigned long long)expected);
    case_check(run, initial_seen > 0, "no work-item got the initial value of slot %zu", slot);
}

static void claim_atomics(case_run *run, hal_type type)
{
    case_claim_arithmetic(run, type);
    if (hal_type_size(type) == 8) {
        case_claim(run, (run->info->features & HAL_FEATURE_ATOMIC_64) != 0, "64-bit atomics");
    }
}

static void run_atomic(case_run *run, const void *parameters)
{
    const atomic *tested = parameters;
    const size_t group = ir_group_of(run);
    outcome made = {.items = GROUPS * group, .slots = tested->shared ? GROUPS * SLOTS : SLOTS};
    claim_atomics(run, tested->type);
    made.operands = case_allocate(run, made.items, 8);
    made.olds = case_allocate(run, made.items, 8);
    made.initial = case_allocate(run, made.slots, 8);
    made.finals = case_allocate(run, made.slots, 8);
    fill_outcome(run, tested, &made);
    outcome_compute(run, tested, &made);
    for (size_t i = 0; i < made.items; i++) {
        case_check(run, i % 11 != 4 || made.olds[i] == 0,
                   "work-item %zu was guarded off and got 0x%llx instead of 0", i,
                   (unsigned long long)made.olds[i]);
    }
    for (size_t slot = 0; slot < made.slots; slot++) {
        const size_t first = tested->shared ? slot / SLOTS * group : 0;
        judge_slot(run, tested, &made, slot, first, tested->shared ? first + group : made.items);
    }
}

/* (2 i + 1) times an odd number: each differs, and bits of all places are set. */
static uint64_t contending_operand(const atomic *tested, uint32_t item)
{
    return (uint64_t)((2 * item + 1) * 0x9e3779b1u) & number_mask(tested->type);
}

static hal_ir_builder *build_contention(case_run *run, const atomic *tested)
{
    hal_ir_builder *b = ir_begin(run, "contention");
    const hal_ir_memory_id slot = hal_ir_binding(b, "slot", tested->type, HAL_ACCESS_READ_WRITE);
    const hal_ir_value odd =
        hal_ir_add(b, hal_ir_mul(b, hal_ir_global_id(b, 0), hal_ir_u32(b, 2)), hal_ir_u32(b, 1));
    hal_ir_value operand = hal_ir_mul(b, odd, hal_ir_u32(b, 0x9e3779b1u));
    if (tested->type != HAL_TYPE_U32) {
        operand = hal_ir_cast(b, tested->type, operand);
    }
    hal_ir_atomic(b, tested->kind, slot, hal_ir_u32(b, 0), HAL_IR_NONE, operand, HAL_IR_NONE);
    return b;
}

/* So many groups that several run at once: an update that is lost shows. */
static void run_contention(case_run *run, const void *parameters)
{
    const atomic *tested = parameters;
    const uint32_t items = CROWD * ir_group_of(run);
    uint64_t expected = 0;
    uint8_t bytes[8] = {0};
    claim_atomics(run, tested->type);
    for (uint32_t i = 0; i < items; i++) {
        expected = combine(tested, expected, contending_operand(tested, i));
    }
    const red_zone slot = zone_create(run, hal_type_size(tested->type), bytes);
    ir_run(run, build_contention(run, tested), CROWD, &slot, 1, NULL, 0);
    zone_read(run, &slot, bytes, "the slot");
    const uint64_t actual = number_load(tested->type, bytes, 0);
    case_check(run, actual == expected, "the slot ended as 0x%llx instead of 0x%llx",
               (unsigned long long)actual, (unsigned long long)expected);
}

void cases_ir_atomic(case_list *list)
{
    for (int shared = 0; shared < 2; shared++) {
        for (uint32_t kind = 0; kind < HAL_IR_ATOMIC_COUNT; kind++) {
            for (hal_type type = HAL_TYPE_I32; type <= HAL_TYPE_U64; type++) {
                const atomic tested = {kind, type, shared != 0};
                case_add(list, run_atomic, &tested, sizeof tested,
                         "ir/atomic(kind=%s,type=%s,memory=%s)", kind_names[kind],
                         hal_type_name(type), shared != 0 ? "shared" : "binding");
                case_covers(list, type, shared != 0 ? CASE_SHARED : CASE_BINDING, "atomic %s",
                            kind_names[kind]);
                if (shared == 0 && kind < HAL_IR_ATOMIC_EXCHANGE) {
                    case_add(list, run_contention, &tested, sizeof tested,
                             "ir/atomic_contention(kind=%s,type=%s)", kind_names[kind],
                             hal_type_name(type));
                }
            }
        }
    }
}
