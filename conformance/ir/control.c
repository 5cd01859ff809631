/* control.c: IF, ELSE, FOR and variables, where work-items of a group go different ways and where
 * they go together. Each case is a kernel and the same thing in C for one work-item. */
#include "case/cases.h"
#include "case/cover.h"
#include "ir/fixture.h"

#define GROUPS 4u
#define POISON 0xfff5fff5u /* of an element that is not written */

/* A kernel in the making: `loaded` is x[i]; its result is stored to out[i]. */
typedef struct scene {
    hal_ir_builder *b;
    hal_ir_memory_id x, out;
    hal_ir_value i, loaded, items;
} scene;

/* Returns the value to store, HAL_IR_NONE when it has stored. */
typedef hal_ir_value (*build_function)(const scene *s);
/* The final value of out[i]. */
typedef uint32_t (*expect_function)(const uint32_t *x, uint32_t i, uint32_t items);

typedef struct control_case {
    const char *name;
    build_function build;
    expect_function expect;
    hal_type loop; /* index type of a FOR in it, else HAL_TYPE_NONE */
    bool has_else;
} control_case;

static hal_ir_value u32(const scene *s, uint32_t value)
{
    return hal_ir_u32(s->b, value);
}

static hal_ir_value bit(const scene *s, unsigned number)
{
    const hal_ir_value one =
        hal_ir_and(s->b, hal_ir_shr(s->b, s->loaded, u32(s, number)), u32(s, 1));
    return hal_ir_ne(s->b, one, u32(s, 0));
}

static hal_ir_value build_if(const scene *s)
{
    const hal_ir_value v = hal_ir_var(s->b, u32(s, 17));
    hal_ir_if(s->b, bit(s, 0));
    hal_ir_set(s->b, v, hal_ir_mul(s->b, s->loaded, u32(s, 3)));
    hal_ir_end(s->b);
    return hal_ir_get(s->b, v);
}

static uint32_t expect_if(const uint32_t *x, uint32_t i, uint32_t items)
{
    return (x[i] & 1) != 0 ? x[i] * 3 : 17;
}

static hal_ir_value build_else(const scene *s)
{
    const hal_ir_value v = hal_ir_var(s->b, u32(s, 0));
    hal_ir_if(s->b, bit(s, 1));
    hal_ir_set(s->b, v, hal_ir_add(s->b, s->loaded, u32(s, 5)));
    hal_ir_else(s->b);
    hal_ir_set(s->b, v, hal_ir_sub(s->b, s->loaded, u32(s, 9)));
    hal_ir_end(s->b);
    return hal_ir_get(s->b, v);
}

static uint32_t expect_else(const uint32_t *x, uint32_t i, uint32_t items)
{
    return (x[i] & 2) != 0 ? x[i] + 5 : x[i] - 9;
}

static void increase(const scene *s, hal_ir_value variable, hal_ir_value by)
{
    hal_ir_set(s->b, variable, hal_ir_add(s->b, hal_ir_get(s->b, variable), by));
}

static hal_ir_value build_empty_then(const scene *s)
{
    const hal_ir_value v = hal_ir_var(s->b, s->loaded);
    hal_ir_if(s->b, bit(s, 2));
    hal_ir_else(s->b);
    increase(s, v, s->i);
    hal_ir_end(s->b);
    return hal_ir_get(s->b, v);
}

static uint32_t expect_empty_then(const uint32_t *x, uint32_t i, uint32_t items)
{
    return (x[i] & 4) != 0 ? x[i] : x[i] + i;
}

/* The same way for the whole group: even groups one, odd groups the other. */
static hal_ir_value build_uniform(const scene *s)
{
    const hal_ir_value v = hal_ir_var(s->b, u32(s, 0));
    const hal_ir_value odd = hal_ir_and(s->b, hal_ir_id(s->b, HAL_IR_GROUP_ID, 0), u32(s, 1));
    hal_ir_if(s->b, hal_ir_eq(s->b, odd, u32(s, 1)));
    hal_ir_set(s->b, v, hal_ir_xor(s->b, s->loaded, u32(s, 0xffff)));
    hal_ir_else(s->b);
    hal_ir_set(s->b, v, hal_ir_add(s->b, s->loaded, u32(s, 1)));
    hal_ir_end(s->b);
    return hal_ir_get(s->b, v);
}

static uint32_t expect_uniform(const uint32_t *x, uint32_t i, uint32_t items)
{
    return i / (items / GROUPS) % 2 == 1 ? x[i] ^ 0xffff : x[i] + 1;
}

static hal_ir_value build_nested(const scene *s)
{
    const hal_ir_value v = hal_ir_var(s->b, u32(s, 0));
    hal_ir_if(s->b, bit(s, 0));
    increase(s, v, u32(s, 1));
    hal_ir_if(s->b, bit(s, 1));
    increase(s, v, u32(s, 10));
    hal_ir_if(s->b, bit(s, 2));
    increase(s, v, u32(s, 100));
    hal_ir_else(s->b);
    increase(s, v, u32(s, 1000));
    hal_ir_end(s->b);
    hal_ir_else(s->b);
    increase(s, v, u32(s, 10000));
    hal_ir_end(s->b);
    hal_ir_else(s->b);
    hal_ir_if(s->b, bit(s, 3));
    increase(s, v, u32(s, 100000));
    hal_ir_end(s->b);
    hal_ir_end(s->b);
    return hal_ir_get(s->b, v);
}

static uint32_t expect_nested(const uint32_t *x, uint32_t i, uint32_t items)
{
    if ((x[i] & 1) == 0) {
        return (x[i] & 8) != 0 ? 100000 : 0;
    }
    if ((x[i] & 2) == 0) {
        return 10001;
    }
    return (x[i] & 4) != 0 ? 111 : 1011;
}

/* As many blocks inside one another as a kernel may have, less two. */
static hal_ir_value build_deep(const scene *s)
{
    const hal_ir_value v = hal_ir_var(s->b, u32(s, 0));
    for (uint32_t depth = 0; depth < HAL_IR_MAX_DEPTH - 2; depth++) {
        hal_ir_if(s->b, hal_ir_ge(s->b, hal_ir_rem(s->b, s->loaded, u32(s, HAL_IR_MAX_DEPTH)),
                                  u32(s, depth)));
        increase(s, v, u32(s, 1));
    }
    for (uint32_t depth = 0; depth < HAL_IR_MAX_DEPTH - 2; depth++) {
        hal_ir_end(s->b);
    }
    return hal_ir_get(s->b, v);
}

static uint32_t expect_deep(const uint32_t *x, uint32_t i, uint32_t items)
{
    const uint32_t depth = x[i] % HAL_IR_MAX_DEPTH + 1;
    return depth < HAL_IR_MAX_DEPTH - 2 ? depth : HAL_IR_MAX_DEPTH - 2;
}

static hal_ir_value build_store_in_branch(const scene *s)
{
    hal_ir_if(s->b, bit(s, 0));
    hal_ir_store(s->b, s->out, s->i, s->loaded);
    hal_ir_else(s->b);
    hal_ir_if(s->b, bit(s, 1));
    hal_ir_store(s->b, s->out, s->i, s->i);
    hal_ir_end(s->b);
    hal_ir_end(s->b);
    return HAL_IR_NONE;
}

static uint32_t expect_store_in_branch(const uint32_t *x, uint32_t i, uint32_t items)
{
    return (x[i] & 1) != 0 ? x[i] : (x[i] & 2) != 0 ? i : POISON;
}

/* A branch that no work-item takes must not divide, load or store. */
static hal_ir_value build_not_taken(const scene *s)
{
    const hal_ir_value v = hal_ir_var(s->b, s->loaded);
    hal_ir_if(s->b, hal_ir_lt(s->b, s->i, u32(s, 0)));
    hal_ir_store(s->b, s->out, u32(s, 0x3fffffffu), s->i);
    hal_ir_set(s->b, v, hal_ir_load(s->b, s->x, u32(s, 0x3fffffffu)));
    hal_ir_end(s->b);
    return hal_ir_get(s->b, v);
}

static uint32_t expect_not_taken(const uint32_t *x, uint32_t i, uint32_t items)
{
    return x[i];
}

/* A guard inside a branch: an access takes place only where both hold. Elsewhere the index is out
 * of bounds. */
static hal_ir_value build_guard_in_branch(const scene *s)
{
    const hal_ir_value guard = bit(s, 1);
    const hal_ir_value place = hal_ir_select(s->b, guard, s->i, u32(s, 0x70000000u));
    hal_ir_if(s->b, bit(s, 0));
    const hal_ir_value seen = hal_ir_load_wide(s->b, s->x, place, 0, 1, guard);
    hal_ir_store_wide(s->b, s->out, place, 0, guard, hal_ir_add(s->b, seen, u32(s, 1)));
    hal_ir_end(s->b);
    return HAL_IR_NONE;
}

static uint32_t expect_guard_in_branch(const uint32_t *x, uint32_t i, uint32_t items)
{
    return (x[i] & 3) == 3 ? x[i] + 1 : POISON;
}

static hal_ir_value build_guarded_atomic_in_branch(const scene *s)
{
    const hal_ir_value guard = bit(s, 1);
    const hal_ir_value place = hal_ir_select(s->b, guard, s->i, u32(s, 0x70000000u));
    hal_ir_store(s->b, s->out, s->i, s->loaded);
    hal_ir_if(s->b, bit(s, 0));
    hal_ir_atomic(s->b, HAL_IR_ATOMIC_ADD, s->out, place, guard, u32(s, 7), HAL_IR_NONE);
    hal_ir_end(s->b);
    return HAL_IR_NONE;
}

static uint32_t expect_guarded_atomic_in_branch(const uint32_t *x, uint32_t i, uint32_t items)
{
    return (x[i] & 3) == 3 ? x[i] + 7 : x[i];
}

/* The same in shared memory, without an index out of bounds. */
static hal_ir_value build_guard_in_shared_branch(const scene *s)
{
    const hal_ir_memory_id tile = hal_ir_shared(s->b, "tile", HAL_TYPE_U32, IR_GROUP);
    const hal_ir_value lane = hal_ir_id(s->b, HAL_IR_LOCAL_ID, 0), guard = bit(s, 1);
    hal_ir_store(s->b, tile, lane, u32(s, 5));
    hal_ir_if(s->b, bit(s, 0));
    hal_ir_store_wide(s->b, tile, lane, 0, guard, s->loaded);
    hal_ir_end(s->b);
    hal_ir_barrier(s->b);
    const hal_ir_value result = hal_ir_var(s->b, u32(s, 9));
    hal_ir_if(s->b, bit(s, 2));
    hal_ir_set(s->b, result, hal_ir_load_wide(s->b, tile, lane, 0, 1, bit(s, 3)));
    hal_ir_end(s->b);
    return hal_ir_get(s->b, result);
}

static uint32_t expect_guard_in_shared_branch(const uint32_t *x, uint32_t i, uint32_t items)
{
    if ((x[i] & 4) == 0) {
        return 9;
    }
    return (x[i] & 8) == 0 ? 0 : (x[i] & 3) == 3 ? x[i] : 5;
}

/* The same in a loop that work-items leave one by one. */
static hal_ir_value build_guard_in_loop(const scene *s)
{
    const hal_ir_value sum = hal_ir_var(s->b, u32(s, 0));
    const hal_ir_value k =
        hal_ir_for(s->b, u32(s, 0), hal_ir_rem(s->b, s->loaded, u32(s, 6)), u32(s, 1));
    const hal_ir_value near = hal_ir_add(s->b, s->i, k);
    const hal_ir_value guard = hal_ir_lt(s->b, near, s->items);
    increase(s, sum, hal_ir_load_wide(s->b, s->x, near, 0, 1, guard));
    hal_ir_end(s->b);
    return hal_ir_get(s->b, sum);
}

static uint32_t expect_guard_in_loop(const uint32_t *x, uint32_t i, uint32_t items)
{
    uint32_t sum = 0;
    for (uint32_t k = 0; k < x[i] % 6; k++) {
        sum += i + k < items ? x[i + k] : 0;
    }
    return sum;
}

/* A value that was read stays what it was when the variable changes. */
static hal_ir_value build_old_value(const scene *s)
{
    const hal_ir_value v = hal_ir_var(s->b, s->loaded);
    const hal_ir_value before = hal_ir_get(s->b, v);
    hal_ir_set(s->b, v, u32(s, 1000));
    hal_ir_if(s->b, bit(s, 4));
    hal_ir_set(s->b, v, u32(s, 2000));
    hal_ir_end(s->b);
    return hal_ir_add(s->b, before, hal_ir_get(s->b, v));
}

static uint32_t expect_old_value(const uint32_t *x, uint32_t i, uint32_t items)
{
    return x[i] + ((x[i] & 16) != 0 ? 2000 : 1000);
}

/* Bits of another type, for some work-items. */
static hal_ir_value build_other_type(const scene *s)
{
    const hal_ir_value v = hal_ir_var(s->b, hal_ir_i32(s->b, -7));
    hal_ir_if(s->b, bit(s, 6));
    hal_ir_set(s->b, v, hal_ir_bitcast(s->b, HAL_TYPE_I32, s->loaded));
    hal_ir_end(s->b);
    return hal_ir_bitcast(s->b, HAL_TYPE_U32, hal_ir_get(s->b, v));
}

static uint32_t expect_other_type(const uint32_t *x, uint32_t i, uint32_t items)
{
    return (x[i] & 64) != 0 ? x[i] : (uint32_t)-7;
}

/* A variable made inside a loop begins anew in every turn. */
static hal_ir_value build_inner_variable(const scene *s)
{
    const hal_ir_value sum = hal_ir_var(s->b, u32(s, 0));
    const hal_ir_value k = hal_ir_for(s->b, u32(s, 0), u32(s, 5), u32(s, 1));
    const hal_ir_value inner = hal_ir_var(s->b, k);
    hal_ir_if(s->b, bit(s, 0));
    increase(s, inner, u32(s, 100));
    hal_ir_end(s->b);
    increase(s, sum, hal_ir_get(s->b, inner));
    hal_ir_end(s->b);
    return hal_ir_get(s->b, sum);
}

static uint32_t expect_inner_variable(const uint32_t *x, uint32_t i, uint32_t items)
{
    return (x[i] & 1) != 0 ? 510 : 10;
}

/* Two variables that change places: the n-th Fibonacci number, n by work-item. */
static hal_ir_value build_swap(const scene *s)
{
    const hal_ir_value a = hal_ir_var(s->b, u32(s, 0)), next = hal_ir_var(s->b, u32(s, 1));
    const hal_ir_value turns = hal_ir_rem(s->b, s->loaded, u32(s, 40));
    hal_ir_for(s->b, u32(s, 0), turns, u32(s, 1));
    const hal_ir_value old = hal_ir_get(s->b, a);
    hal_ir_set(s->b, a, hal_ir_get(s->b, next));
    hal_ir_set(s->b, next, hal_ir_add(s->b, old, hal_ir_get(s->b, next)));
    hal_ir_end(s->b);
    return hal_ir_get(s->b, a);
}

static uint32_t expect_swap(const uint32_t *x, uint32_t i, uint32_t items)
{
    uint32_t a = 0, next = 1;
    for (uint32_t k = 0; k < x[i] % 40; k++) {
        const uint32_t old = a;
        a = next;
        next += old;
    }
    return a;
}

static hal_ir_value build_for_uniform(const scene *s)
{
    const hal_ir_value v = hal_ir_var(s->b, u32(s, 1));
    const hal_ir_value k = hal_ir_for(s->b, u32(s, 2), u32(s, 30), u32(s, 7));
    hal_ir_set(s->b, v, hal_ir_add(s->b, hal_ir_mul(s->b, hal_ir_get(s->b, v), s->loaded), k));
    hal_ir_end(s->b);
    return hal_ir_get(s->b, v);
}

static uint32_t expect_for_uniform(const uint32_t *x, uint32_t i, uint32_t items)
{
    uint32_t v = 1;
    for (uint32_t k = 2; k < 30; k += 7) {
        v = v * x[i] + k;
    }
    return v;
}

/* Start, end and step by work-item; some loops have no turn. */
static hal_ir_value build_for_divergent(const scene *s)
{
    const hal_ir_value v = hal_ir_var(s->b, u32(s, 0));
    const hal_ir_value start = hal_ir_rem(s->b, s->loaded, u32(s, 7));
    const hal_ir_value end = hal_ir_rem(s->b, hal_ir_shr(s->b, s->loaded, u32(s, 8)), u32(s, 23));
    const hal_ir_value step = hal_ir_add(s->b, hal_ir_rem(s->b, s->i, u32(s, 3)), u32(s, 1));
    const hal_ir_value k = hal_ir_for(s->b, start, end, step);
    hal_ir_set(s->b, v, hal_ir_add(s->b, hal_ir_mul(s->b, hal_ir_get(s->b, v), u32(s, 31)), k));
    hal_ir_end(s->b);
    return hal_ir_get(s->b, v);
}

static uint32_t expect_for_divergent(const uint32_t *x, uint32_t i, uint32_t items)
{
    uint32_t v = 0;
    for (uint32_t k = x[i] % 7; k < (x[i] >> 8) % 23; k += i % 3 + 1) {
        v = v * 31 + k;
    }
    return v;
}

/* Signed, from below zero. */
static hal_ir_value build_for_signed(const scene *s)
{
    const hal_ir_value v = hal_ir_var(s->b, hal_ir_i32(s->b, 5));
    const hal_ir_value end =
        hal_ir_sub(s->b, hal_ir_cast(s->b, HAL_TYPE_I32, hal_ir_rem(s->b, s->loaded, u32(s, 20))),
                   hal_ir_i32(s->b, 10));
    const hal_ir_value k = hal_ir_for(s->b, hal_ir_i32(s->b, -11), end, hal_ir_i32(s->b, 3));
    hal_ir_set(s->b, v,
               hal_ir_sub(s->b, hal_ir_mul(s->b, hal_ir_get(s->b, v), hal_ir_i32(s->b, -3)), k));
    hal_ir_end(s->b);
    return hal_ir_bitcast(s->b, HAL_TYPE_U32, hal_ir_get(s->b, v));
}

static uint32_t expect_for_signed(const uint32_t *x, uint32_t i, uint32_t items)
{
    int32_t v = 5;
    for (int32_t k = -11; k < (int32_t)(x[i] % 20) - 10; k += 3) {
        v = v * -3 - k;
    }
    return (uint32_t)v;
}

/* Bounds that would be negative if they were signed. */
static hal_ir_value build_for_high(const scene *s)
{
    const hal_ir_value v = hal_ir_var(s->b, u32(s, 0));
    const hal_ir_value end =
        hal_ir_add(s->b, u32(s, 0x80000000u), hal_ir_rem(s->b, s->loaded, u32(s, 9)));
    const hal_ir_value k = hal_ir_for(s->b, u32(s, 0x7ffffffdu), end, u32(s, 2));
    increase(s, v, k);
    hal_ir_end(s->b);
    return hal_ir_get(s->b, v);
}

static uint32_t expect_for_high(const uint32_t *x, uint32_t i, uint32_t items)
{
    uint32_t v = 0;
    for (uint32_t k = 0x7ffffffdu; k < 0x80000000u + x[i] % 9; k += 2) {
        v += k;
    }
    return v;
}

/* A variable that begins anew in each turn of a loop. */
static hal_ir_value build_var_in_loop(const scene *s)
{
    const hal_ir_value sum = hal_ir_var(s->b, u32(s, 0));
    const hal_ir_value k = hal_ir_for(s->b, u32(s, 0), u32(s, 5), u32(s, 1));
    const hal_ir_value v = hal_ir_var(s->b, s->loaded);
    hal_ir_if(s->b, hal_ir_ne(s->b, hal_ir_rem(s->b, s->i, u32(s, 3)), k));
    increase(s, v, k);
    hal_ir_end(s->b);
    hal_ir_set(
        s->b, sum,
        hal_ir_add(s->b, hal_ir_mul(s->b, hal_ir_get(s->b, sum), u32(s, 3)), hal_ir_get(s->b, v)));
    hal_ir_end(s->b);
    return hal_ir_get(s->b, sum);
}

static uint32_t expect_var_in_loop(const uint32_t *x, uint32_t i, uint32_t items)
{
    uint32_t sum = 0;
    for (uint32_t k = 0; k < 5; k++) {
        sum = sum * 3 + x[i] + (i % 3 != k ? k : 0);
    }
    return sum;
}

static hal_ir_value build_for_in_if(const scene *s)
{
    const hal_ir_value v = hal_ir_var(s->b, s->loaded);
    hal_ir_if(s->b, bit(s, 5));
    hal_ir_for(s->b, u32(s, 0), hal_ir_rem(s->b, s->i, u32(s, 6)), u32(s, 1));
    hal_ir_set(s->b, v, hal_ir_mul(s->b, hal_ir_get(s->b, v), u32(s, 5)));
    hal_ir_end(s->b);
    hal_ir_else(s->b);
    hal_ir_for(s->b, u32(s, 0), u32(s, 4), u32(s, 1));
    increase(s, v, u32(s, 2));
    hal_ir_end(s->b);
    hal_ir_end(s->b);
    return hal_ir_get(s->b, v);
}

static uint32_t expect_for_in_if(const uint32_t *x, uint32_t i, uint32_t items)
{
    uint32_t v = x[i];
    if ((x[i] & 32) == 0) {
        return v + 8;
    }
    for (uint32_t k = 0; k < i % 6; k++) {
        v *= 5;
    }
    return v;
}

/* Both loops by work-item, with a branch in the inner one: as many turns of Collatz's rule. */
static hal_ir_value build_for_in_for(const scene *s)
{
    const hal_ir_value v = hal_ir_var(s->b, hal_ir_and(s->b, s->loaded, u32(s, 0xffff)));
    hal_ir_for(s->b, u32(s, 0), hal_ir_rem(s->b, s->i, u32(s, 4)), u32(s, 1));
    hal_ir_for(s->b, u32(s, 0), hal_ir_rem(s->b, s->loaded, u32(s, 5)), u32(s, 1));
    const hal_ir_value now = hal_ir_get(s->b, v);
    hal_ir_if(s->b, hal_ir_eq(s->b, hal_ir_and(s->b, now, u32(s, 1)), u32(s, 0)));
    hal_ir_set(s->b, v, hal_ir_shr(s->b, now, u32(s, 1)));
    hal_ir_else(s->b);
    hal_ir_set(s->b, v, hal_ir_add(s->b, hal_ir_mul(s->b, now, u32(s, 3)), u32(s, 1)));
    hal_ir_end(s->b);
    hal_ir_end(s->b);
    hal_ir_end(s->b);
    return hal_ir_get(s->b, v);
}

static uint32_t expect_for_in_for(const uint32_t *x, uint32_t i, uint32_t items)
{
    uint32_t v = x[i] & 0xffff;
    for (uint32_t turn = 0; turn < i % 4 * (x[i] % 5); turn++) {
        v = v % 2 == 0 ? v / 2 : v * 3 + 1;
    }
    return v;
}

/* Loads whose place depends on what was loaded: a binary search in x as if it were sorted. */
static hal_ir_value build_search(const scene *s)
{
    const hal_ir_value low = hal_ir_var(s->b, u32(s, 0)), high = hal_ir_var(s->b, s->items);
    hal_ir_for(s->b, u32(s, 0), u32(s, 32), u32(s, 1));
    const hal_ir_value first = hal_ir_get(s->b, low), end = hal_ir_get(s->b, high);
    hal_ir_if(s->b, hal_ir_lt(s->b, first, end));
    const hal_ir_value middle = hal_ir_shr(s->b, hal_ir_add(s->b, first, end), u32(s, 1));
    hal_ir_if(s->b, hal_ir_lt(s->b, hal_ir_load(s->b, s->x, middle), s->loaded));
    hal_ir_set(s->b, low, hal_ir_add(s->b, middle, u32(s, 1)));
    hal_ir_else(s->b);
    hal_ir_set(s->b, high, middle);
    hal_ir_end(s->b);
    hal_ir_end(s->b);
    hal_ir_end(s->b);
    return hal_ir_get(s->b, low);
}

static uint32_t expect_search(const uint32_t *x, uint32_t i, uint32_t items)
{
    uint32_t low = 0, high = items;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (x[middle] < x[i]) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static const control_case control_cases[] = {
    {"if", build_if, expect_if, HAL_TYPE_NONE, false},
    {"if_else", build_else, expect_else, HAL_TYPE_NONE, true},
    {"if_empty_then", build_empty_then, expect_empty_then, HAL_TYPE_NONE, true},
    {"if_uniform", build_uniform, expect_uniform, HAL_TYPE_NONE, true},
    {"if_nested", build_nested, expect_nested, HAL_TYPE_NONE, true},
    {"if_deep", build_deep, expect_deep, HAL_TYPE_NONE, false},
    {"if_store", build_store_in_branch, expect_store_in_branch, HAL_TYPE_NONE, true},
    {"if_nobody", build_not_taken, expect_not_taken, HAL_TYPE_NONE, false},
    {"var_in_loop", build_var_in_loop, expect_var_in_loop, HAL_TYPE_U32, false},
    {"guard_in_branch", build_guard_in_branch, expect_guard_in_branch, HAL_TYPE_NONE, false},
    {"guarded_atomic_in_branch", build_guarded_atomic_in_branch, expect_guarded_atomic_in_branch,
     HAL_TYPE_NONE, false},
    {"guard_in_shared_branch", build_guard_in_shared_branch, expect_guard_in_shared_branch,
     HAL_TYPE_NONE, false},
    {"guard_in_loop", build_guard_in_loop, expect_guard_in_loop, HAL_TYPE_U32, false},
    {"variable_old_value", build_old_value, expect_old_value, HAL_TYPE_NONE, false},
    {"variable_of_other_type", build_other_type, expect_other_type, HAL_TYPE_NONE, false},
    {"variable_in_loop", build_inner_variable, expect_inner_variable, HAL_TYPE_U32, false},
    {"variable_swap", build_swap, expect_swap, HAL_TYPE_U32, false},
    {"for_uniform", build_for_uniform, expect_for_uniform, HAL_TYPE_U32, false},
    {"for_divergent", build_for_divergent, expect_for_divergent, HAL_TYPE_U32, false},
    {"for_signed", build_for_signed, expect_for_signed, HAL_TYPE_I32, false},
    {"for_high", build_for_high, expect_for_high, HAL_TYPE_U32, false},
    {"for_in_if", build_for_in_if, expect_for_in_if, HAL_TYPE_U32, true},
    {"for_in_for", build_for_in_for, expect_for_in_for, HAL_TYPE_U32, true},
    {"search", build_search, expect_search, HAL_TYPE_U32, true},
};

static void run_control(case_run *run, const void *parameters)
{
    const control_case *tested = parameters;
    const uint32_t items = GROUPS * ir_group_of(run);
    uint32_t *x = case_allocate(run, items, 4), *expected = case_allocate(run, items, 4);
    random_state random = {run->seed};
    for (uint32_t i = 0; i < items; i++) {
        x[i] = (uint32_t)random_next(&random);
    }
    for (uint32_t i = 0; i < items; i++) {
        expected[i] = tested->expect(x, i, items);
    }
    const red_zone zones[2] = {zone_create(run, 4ull * items, x),
                               zone_create(run, 4ull * items, NULL)};
    hal_ir_builder *b = ir_begin(run, "control");
    scene s = {.b = b};
    s.x = hal_ir_binding(b, "x", HAL_TYPE_U32, HAL_ACCESS_READ);
    s.out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_READ_WRITE);
    s.items = hal_ir_scalar_value(b, "items", HAL_TYPE_U32);
    s.i = hal_ir_global_id(b, 0);
    s.loaded = hal_ir_load(b, s.x, s.i);
    const hal_ir_value result = tested->build(&s);
    if (result != HAL_IR_NONE) {
        hal_ir_store(b, s.out, s.i, result);
    }
    ir_run(run, b, GROUPS, zones, 2, &items, sizeof items);
    ir_check(run, &zones[1], HAL_TYPE_U32, expected, items, "result");
}

/* A variable of each type begins as x, becomes y for some work-items, x again for some of those. */
static void run_variable(case_run *run, const void *parameters)
{
    const hal_type type = *(const hal_type *)parameters;
    const uint32_t items = GROUPS * ir_group_of(run), size = hal_type_size(type);
    case_claim_arithmetic(run, type);
    uint8_t *x = case_allocate(run, items, 8), *y = case_allocate(run, items, 8);
    uint8_t *expected = case_allocate(run, items, 8);
    random_state random = {run->seed};
    for (uint32_t i = 0; i < items; i++) {
        number_store(type, x, i, random_bits(&random, type));
        number_store(type, y, i, random_bits(&random, type));
        number_store(type, expected, i, number_load(type, i % 3 == 1 && i % 5 != 2 ? y : x, i));
    }
    const red_zone zones[3] = {zone_create(run, items * size, x), zone_create(run, items * size, y),
                               zone_create(run, items * size, NULL)};
    hal_ir_builder *b = ir_begin(run, "variable");
    const hal_ir_memory_id in = hal_ir_binding(b, "x", type, HAL_ACCESS_READ);
    const hal_ir_memory_id other = hal_ir_binding(b, "y", type, HAL_ACCESS_READ);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", type, HAL_ACCESS_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const hal_ir_value v = hal_ir_var(b, hal_ir_load(b, in, i));
    hal_ir_if(b, hal_ir_eq(b, hal_ir_rem(b, i, hal_ir_u32(b, 3)), hal_ir_u32(b, 1)));
    const hal_ir_value before = hal_ir_get(b, v);
    hal_ir_set(b, v, hal_ir_load(b, other, i));
    hal_ir_if(b, hal_ir_eq(b, hal_ir_rem(b, i, hal_ir_u32(b, 5)), hal_ir_u32(b, 2)));
    hal_ir_set(b, v, before);
    hal_ir_end(b);
    hal_ir_end(b);
    hal_ir_store(b, out, i, hal_ir_get(b, v));
    ir_run(run, b, GROUPS, zones, 3, NULL, 0);
    ir_check(run, &zones[2], type, expected, items, "result");
}

void cases_ir_control(case_list *list)
{
    for (size_t i = 0; i < sizeof control_cases / sizeof control_cases[0]; i++) {
        const control_case *tested = &control_cases[i];
        case_add(list, run_control, tested, sizeof *tested, "ir/control(%s)", tested->name);
        case_covers(list, HAL_TYPE_BOOL, CASE_VALUES, "if");
        if (tested->has_else) {
            case_covers(list, HAL_TYPE_BOOL, CASE_VALUES, "else");
        }
        if (tested->loop != HAL_TYPE_NONE) {
            case_covers(list, tested->loop, CASE_VALUES, "for");
        }
    }
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        if ((HAL_TYPES_VALUES & HAL_TYPE_BIT(type)) != 0) {
            case_add(list, run_variable, &type, sizeof type, "ir/var(type=%s)",
                     hal_type_name(type));
            case_covers(list, type, CASE_VALUES, "var get set");
        }
    }
}
