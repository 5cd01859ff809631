/* pairs.c: pairs of kernels that differ in one thing only, both alive: a cache whose key lacks that
 * thing takes the second for the first. Each work-item computes one word from x[i], y[i] and two
 * scalars. */
#include "hal/pairs.h"

#include <stdio.h>

#include "case/cases.h"
#include "hal/fixture.h"

enum { COUNT = 64, AHEAD = 8 };

static const uint32_t scalars[2] = {1000003, 77};

/* What a variant has at hand. */
typedef struct parts {
    hal_ir_builder *b;
    hal_ir_memory_id x, y, out, tile, after; /* after: in shared memory, as tile */
    hal_ir_value i, scalars[2], loaded;      /* loaded: x[i] */
    bool second;
} parts;

static uint32_t x_at(uint32_t i)
{
    return i * 2654435761u + 12345;
}

static uint32_t y_at(uint32_t i)
{
    return i * 40503u + 99;
}

static hal_ir_value word(const parts *p, uint32_t value)
{
    return hal_ir_u32(p->b, value);
}

static hal_ir_value opcode(const parts *p)
{
    const hal_ir_value other = hal_ir_load(p->b, p->y, p->i);
    return p->second ? hal_ir_sub(p->b, p->loaded, other) : hal_ir_add(p->b, p->loaded, other);
}

static uint32_t opcode_is(uint32_t i, bool second)
{
    return second ? x_at(i) - y_at(i) : x_at(i) + y_at(i);
}

static hal_ir_value operands(const parts *p)
{
    const hal_ir_value other = hal_ir_load(p->b, p->y, p->i);
    return p->second ? hal_ir_sub(p->b, other, p->loaded) : hal_ir_sub(p->b, p->loaded, other);
}

static uint32_t operands_is(uint32_t i, bool second)
{
    return second ? y_at(i) - x_at(i) : x_at(i) - y_at(i);
}

static hal_ir_value constant(const parts *p)
{
    return hal_ir_mul(p->b, p->loaded, word(p, p->second ? 5 : 3));
}

static uint32_t constant_is(uint32_t i, bool second)
{
    return x_at(i) * (second ? 5 : 3);
}

static hal_ir_value immediate(const parts *p)
{
    return hal_ir_load_wide(p->b, p->x, p->i, p->second ? 5 : 2, 1, HAL_IR_NONE);
}

static uint32_t immediate_is(uint32_t i, bool second)
{
    return x_at(i + (second ? 5 : 2));
}

static hal_ir_value stored_at(const parts *p)
{
    hal_ir_store_wide(p->b, p->out, p->i, COUNT + (p->second ? 4 : 0), HAL_IR_NONE, p->loaded);
    return p->loaded;
}

static uint32_t stored_at_is(uint32_t i, bool second)
{
    return x_at(i);
}

/* By way of f32, which rounds, or of i32. */
static hal_ir_value type(const parts *p)
{
    const hal_ir_value low = hal_ir_and(p->b, p->loaded, word(p, 0x3fffffff));
    const hal_ir_value other = hal_ir_cast(p->b, p->second ? HAL_TYPE_I32 : HAL_TYPE_F32, low);
    return hal_ir_cast(p->b, HAL_TYPE_U32, other);
}

static uint32_t type_is(uint32_t i, bool second)
{
    const uint32_t low = x_at(i) & 0x3fffffff;
    return second ? low : (uint32_t)(float)low;
}

static hal_ir_value memory(const parts *p)
{
    return hal_ir_load(p->b, p->second ? p->y : p->x, p->i);
}

static uint32_t memory_is(uint32_t i, bool second)
{
    return second ? y_at(i) : x_at(i);
}

static hal_ir_value scalar(const parts *p)
{
    return hal_ir_add(p->b, p->loaded, p->scalars[p->second]);
}

static uint32_t scalar_is(uint32_t i, bool second)
{
    return x_at(i) + scalars[second];
}

static hal_ir_value dimension(const parts *p)
{
    return hal_ir_add(p->b, p->loaded, hal_ir_id(p->b, HAL_IR_GROUP_COUNT, p->second));
}

static uint32_t dimension_is(uint32_t i, bool second)
{
    return x_at(i) + (second ? 1 : COUNT / SCALE_GROUP);
}

static hal_ir_value atomic(const parts *p)
{
    hal_ir_store(p->b, p->out, p->i, p->loaded);
    hal_ir_atomic(p->b, p->second ? HAL_IR_ATOMIC_XOR : HAL_IR_ATOMIC_ADD, p->out, p->i,
                  HAL_IR_NONE, word(p, 0x70000001), HAL_IR_NONE);
    return HAL_IR_NONE;
}

static uint32_t atomic_is(uint32_t i, bool second)
{
    return second ? x_at(i) ^ 0x70000001 : x_at(i) + 0x70000001;
}

static hal_ir_value compared(const parts *p)
{
    const hal_ir_value half = word(p, 0x80000000u);
    const hal_ir_value is =
        p->second ? hal_ir_le(p->b, half, p->loaded) : hal_ir_lt(p->b, p->loaded, half);
    return hal_ir_ternary(p->b, HAL_IR_SELECT, is, p->loaded, word(p, 1));
}

static uint32_t compared_is(uint32_t i, bool second)
{
    const bool is_high = x_at(i) >= 0x80000000u;
    return is_high == second ? x_at(i) : 1;
}

static hal_ir_value loop_step(const parts *p)
{
    const hal_ir_value sum = hal_ir_var(p->b, p->loaded);
    const hal_ir_value k = hal_ir_for(p->b, word(p, 0), word(p, 12), word(p, p->second ? 3 : 2));
    hal_ir_set(p->b, sum, hal_ir_add(p->b, hal_ir_mul(p->b, hal_ir_get(p->b, sum), word(p, 7)), k));
    hal_ir_end(p->b);
    return hal_ir_get(p->b, sum);
}

static uint32_t loop_step_is(uint32_t i, bool second)
{
    uint32_t sum = x_at(i);
    for (uint32_t k = 0; k < 12; k += second ? 3 : 2) {
        sum = sum * 7 + k;
    }
    return sum;
}

static hal_ir_value guard(const parts *p)
{
    const hal_ir_value is_low = hal_ir_lt(p->b, p->i, word(p, COUNT / 2));
    return hal_ir_load_wide(p->b, p->x, p->i, 1, 1, p->second ? is_low : HAL_IR_NONE);
}

static uint32_t guard_is(uint32_t i, bool second)
{
    return second && i >= COUNT / 2 ? 0 : x_at(i + 1);
}

static hal_ir_value shared_place(const parts *p)
{
    const hal_ir_value lane = hal_ir_id(p->b, HAL_IR_LOCAL_ID, 0);
    hal_ir_store(p->b, p->tile, lane, p->loaded);
    hal_ir_barrier(p->b);
    const hal_ir_value other = hal_ir_xor(p->b, lane, p->second ? word(p, 16) : word(p, 1));
    return hal_ir_load(p->b, p->tile, other);
}

static uint32_t shared_place_is(uint32_t i, bool second)
{
    return x_at(i ^ (second ? 16 : 1));
}

/* A half word at the same index as a word. */
static hal_ir_value element_type(const parts *p)
{
    return hal_ir_load(p->b, p->y, p->i);
}

static uint32_t element_type_is(uint32_t i, bool second)
{
    return second ? y_at(i / 2) >> (i % 2 * 16) & 0xffff : y_at(i);
}

/* Arrays of one element more than the second scalar, and what is after them. */
static hal_ir_value shared_length(const parts *p)
{
    hal_ir_builder *b = p->b;
    const hal_ir_value lane = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    const hal_ir_value guard = hal_ir_le(b, lane, p->scalars[1]);
    hal_ir_store_wide(b, p->tile, lane, 0, guard, p->loaded);
    hal_ir_barrier(b);
    hal_ir_store(b, p->after, lane, word(p, 0));
    hal_ir_barrier(b);
    return hal_ir_load(b, p->tile, hal_ir_and(b, lane, p->scalars[1]));
}

static uint32_t shared_mask(bool second)
{
    return second ? SCALE_GROUP - 1 : 3;
}

static uint32_t shared_length_is(uint32_t i, bool second)
{
    return x_at(i - i % SCALE_GROUP + (i % SCALE_GROUP & shared_mask(second)));
}

static const struct {
    const char *name;
    hal_ir_value (*build)(const parts *p); /* the word to be written; NONE: it is */
    uint32_t (*value)(uint32_t i, bool second);
} pairs[PAIR_COUNT] = {{"opcode", opcode, opcode_is},
                       {"operands", operands, operands_is},
                       {"constant", constant, constant_is},
                       {"immediate", immediate, immediate_is},
                       {"offset_of_store", stored_at, stored_at_is},
                       {"type", type, type_is},
                       {"memory", memory, memory_is},
                       {"scalar", scalar, scalar_is},
                       {"dimension", dimension, dimension_is},
                       {"atomic_kind", atomic, atomic_is},
                       {"comparison", compared, compared_is},
                       {"loop_step", loop_step, loop_step_is},
                       {"guard", guard, guard_is},
                       {"shared_index", shared_place, shared_place_is},
                       {"element_type", element_type, element_type_is},
                       {"shared_length", shared_length, shared_length_is}};

const char *pair_difference(uint32_t pair)
{
    return pairs[pair].name;
}

hal_kernel *pair_kernel(case_run *run, uint32_t pair, uint32_t which)
{
    parts p = {.b = case_builder(run, "pair"), .second = which != 0};
    hal_ir_group_size(p.b, SCALE_GROUP, 1, 1);
    p.x = hal_ir_binding(p.b, "x", HAL_TYPE_U32, HAL_ACCESS_READ);
    const bool is_half = p.second && pairs[pair].build == element_type;
    const bool is_short = !p.second && pairs[pair].build == shared_length;
    if (is_half) {
        case_claim_storage(run, HAL_TYPE_U16);
    }
    p.y = hal_ir_binding(p.b, "y", is_half ? HAL_TYPE_U16 : HAL_TYPE_U32, HAL_ACCESS_READ);
    p.out = hal_ir_binding(p.b, "out", HAL_TYPE_U32, HAL_ACCESS_READ_WRITE);
    p.tile =
        hal_ir_shared(p.b, "tile", HAL_TYPE_U32, is_short ? shared_mask(false) + 1 : SCALE_GROUP);
    p.after = hal_ir_shared(p.b, "after", HAL_TYPE_U32, SCALE_GROUP);
    p.scalars[0] = hal_ir_scalar_value(p.b, "first", HAL_TYPE_U32);
    p.scalars[1] = hal_ir_scalar_value(p.b, "second", HAL_TYPE_U32);
    p.i = hal_ir_global_id(p.b, 0);
    p.loaded = hal_ir_load(p.b, p.x, p.i);
    const hal_ir_value made = pairs[pair].build(&p);
    if (made != HAL_IR_NONE) {
        hal_ir_store(p.b, p.out, p.i, made);
    }
    return case_kernel(run, p.b);
}

void pair_check(case_run *run, hal_kernel *kernel, uint32_t pair, uint32_t which)
{
    enum { OUT = 2 * COUNT + AHEAD };
    uint32_t x[COUNT + AHEAD], y[COUNT + AHEAD], seen[OUT];
    const uint32_t grid[3] = {COUNT / SCALE_GROUP, 1, 1};
    for (uint32_t i = 0; i < COUNT + AHEAD; i++) {
        x[i] = x_at(i);
        y[i] = y_at(i);
    }
    hal_buffer *in = case_buffer(run, run->device, HAL_MEMORY_DEVICE, sizeof x);
    hal_buffer *other = case_buffer(run, run->device, HAL_MEMORY_DEVICE, sizeof y);
    hal_buffer *out = words_create(run, run->queue, OUT, 7, 0);
    const hal_range ranges[3] = {range_of(in), range_of(other), range_of(out)};
    const bool is_length = pairs[pair].build == shared_length;
    const uint32_t given[2] = {scalars[0], is_length ? shared_mask(which != 0) : scalars[1]};
    case_ok(run, hal_queue_write(run->queue, in, 0, x, sizeof x), "hal_queue_write");
    case_ok(run, hal_queue_write(run->queue, other, 0, y, sizeof y), "hal_queue_write");
    case_ok(run, hal_queue_dispatch(run->queue, kernel, grid, ranges, 3, given, sizeof given),
            "hal_queue_dispatch");
    case_ok(run, hal_queue_read(run->queue, out, 0, sizeof seen, seen), "hal_queue_read");
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t expected = pairs[pair].value(i, which != 0);
        case_check(run, seen[i] == expected,
                   "of two kernels that differ in their %s, number %u wrote 0x%x instead of 0x%x "
                   "to word %u",
                   pairs[pair].name, which + 1, seen[i], expected, i);
    }
    if (pairs[pair].build == stored_at) {
        const uint32_t first = COUNT + (which != 0 ? 4 : 0);
        case_check(
            run, seen[first] == x_at(0) && seen[first + COUNT - 1] == x_at(COUNT - 1),
            "of two kernels that differ in the offset of a store, number %u stored elsewhere",
            which + 1);
    }
}

static void both(case_run *run, const void *parameters)
{
    const uint32_t pair = *(const uint32_t *)parameters;
    hal_kernel *kernels[2];
    for (uint32_t i = 0; i < 2; i++) {
        kernels[i] = pair_kernel(run, pair, i);
    }
    for (uint32_t i = 0; i < 2; i++) {
        pair_check(run, kernels[1 - i], pair, 1 - i);
    }
}

void cases_hal_pairs(case_list *list)
{
    for (uint32_t pair = 0; pair < PAIR_COUNT; pair++) {
        case_add(list, both, &pair, sizeof pair, "kernel/pair(difference=%s)", pairs[pair].name);
    }
}
