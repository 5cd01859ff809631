/* The verifier: every rule accepts what keeps it and names what breaks it. Kernels are made by the
 * builder and then broken in one place. */
#include "ir_fixture.h"
#include <hal/ir_uniform.h>

/* A kernel that is open to changes. */
typedef struct open_kernel {
    hal_ir_kernel kernel;
    hal_ir_kernel *owner;
    hal_ir_record *records;
    hal_ir_memory *memories;
    hal_ir_scalar *scalars;
    uint64_t *constants;
    char *names;
} open_kernel;

static open_kernel open_up(hal_ir_kernel *kernel)
{
    open_kernel open = {.kernel = *kernel, .owner = kernel};
    /* A kernel of hal is one writable allocation. */
    open.records = (hal_ir_record *)(uintptr_t)kernel->records;
    open.memories = (hal_ir_memory *)(uintptr_t)kernel->memories;
    open.scalars = (hal_ir_scalar *)(uintptr_t)kernel->scalars;
    open.constants = (uint64_t *)(uintptr_t)kernel->constants;
    open.names = (char *)(uintptr_t)kernel->names;
    return open;
}

/* Two bindings, a shared array, two scalars; load, var, for, store. */
static open_kernel sample(void)
{
    hal_ir_builder *b = ir_kernel_begin();
    hal_ir_group_size(b, 64, 1, 1);
    const hal_ir_memory_id x = hal_ir_binding(b, "x", HAL_TYPE_F32, HAL_ACCESS_READ);
    const hal_ir_memory_id y = hal_ir_binding(b, "y", HAL_TYPE_F32, HAL_ACCESS_WRITE);
    const hal_ir_memory_id tile = hal_ir_shared(b, "tile", HAL_TYPE_F32, 64);
    const hal_ir_value n = hal_ir_scalar_value(b, "n", HAL_TYPE_U32);
    const hal_ir_value alpha = hal_ir_scalar_value(b, "alpha", HAL_TYPE_F64);
    const hal_ir_value i = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    const hal_ir_value sum = hal_ir_var(b, hal_ir_cast(b, HAL_TYPE_F32, alpha));
    const hal_ir_value k = hal_ir_for(b, hal_ir_u32(b, 0), n, hal_ir_u32(b, 1));
    const hal_ir_value v = hal_ir_load_wide(b, x, k, 1, 2, hal_ir_lt(b, k, i));
    hal_ir_set(b, sum, hal_ir_add(b, hal_ir_get(b, sum), hal_ir_extract(b, v, 1)));
    hal_ir_end(b);
    hal_ir_store(b, tile, i, hal_ir_get(b, sum));
    hal_ir_barrier(b);
    hal_ir_store(b, y, i, hal_ir_load(b, tile, i));
    return open_up(ir_finish(b));
}

static hal_ir_record *record_of(open_kernel *open, uint32_t opcode)
{
    for (uint32_t i = 0; i < open->kernel.record_count; i++) {
        if (open->records[i].opcode == opcode) {
            return &open->records[i];
        }
    }
    fail_msg("no %s", hal_ir_opcode_name(opcode));
    return NULL;
}

static void accepted(open_kernel *open)
{
    assert_ok(hal_ir_verify(&open->kernel));
    hal_ir_kernel_destroy(open->owner);
}

static void rejected(open_kernel *open, const char *words)
{
    assert_int_equal(hal_ir_verify(&open->kernel), HAL_ERROR_INVALID_IR);
    assert_message(words);
    hal_ir_kernel_destroy(open->owner);
}

/* Breaks the sample by one statement on `s` and expects the words. */
#define BROKEN(words, statement)     \
    do {                             \
        open_kernel s = sample();    \
        hal_ir_record *r = s.records; \
        (void)r;                     \
        statement;                   \
        rejected(&s, words);         \
    } while (0)

TEST(the_sample_is_good)
{
    open_kernel s = sample();
    accepted(&s);
    assert_int_equal(hal_ir_verify(NULL), HAL_ERROR_INVALID_ARGUMENT);
}

TEST(headers_are_checked)
{
    BROKEN("got size 8", s.kernel.size = 8);
    BROKEN("version 0", s.kernel.version = 0);
    BROKEN("version", s.kernel.version = HAL_IR_VERSION + 1);
    BROKEN("null", s.kernel.records = NULL);
    BROKEN("null", s.kernel.memories = NULL);
    BROKEN("null", s.kernel.scalars = NULL);
    BROKEN("null", s.kernel.constants = NULL);
    BROKEN("null", s.kernel.names = NULL);
    BROKEN("got 0x2 and 0", s.kernel.flags = 2);
    BROKEN("got 0x0 and 1", s.kernel.reserved = 1);
    BROKEN("records", s.kernel.record_count = HAL_IR_MAX_RECORDS + 1);
    BROKEN("constants", s.kernel.constant_count = HAL_IR_MAX_RECORDS + 1);
    BROKEN("got 25 bindings", s.kernel.binding_count = 25);
    BROKEN("got 4 bindings", s.kernel.binding_count = 4);
    BROKEN("memories", s.kernel.memory_count = 3 + HAL_IR_MAX_SHARED);
    BROKEN("got 2 scalars of 513 bytes", s.kernel.scalar_bytes = 513);
    BROKEN("got 1000 scalars", s.kernel.scalar_count = 1000);
    BROKEN("got 0 x 1 x 1", s.kernel.group_size[0] = 0);
    BROKEN("group size", s.kernel.group_size[2] = UINT32_MAX);
    BROKEN("group size", (s.kernel.group_size[0] = 1u << 31, s.kernel.group_size[1] = 1u << 31));
    BROKEN("only fragments", s.kernel.input_count = 1);
    BROKEN("a fragment has no memories", s.kernel.flags = HAL_IR_FRAGMENT);
    open_kernel s = sample();
    s.kernel.size += 8; /* a newer maker's is longer */
    accepted(&s);
}

TEST(names_are_checked)
{
    BROKEN("names: expected a zero at the end", s.names[s.kernel.name_bytes - 1] = 'x');
    BROKEN("names: expected a zero at the end", s.kernel.name_bytes = 0);
    BROKEN("and _, at byte 9999", s.kernel.name = 9999);
    BROKEN("name 2", s.memories[1].name = UINT32_MAX);
    BROKEN("name 1", s.names[s.memories[0].name] = '-');
    BROKEN("name 1", s.names[s.memories[0].name] = '5');
    BROKEN("name 1", s.names[s.memories[0].name] = 0);
    BROKEN("name x: expected one declaration", s.names[s.memories[1].name] = 'x');
    BROKEN("name n: expected one declaration", s.names[s.memories[0].name] = 'n');
}

TEST(memories_are_checked)
{
    BROKEN("memory x: type: expected one of HAL_TYPE_*, got 0", s.memories[0].type = HAL_TYPE_NONE);
    BROKEN("memory x: type: expected one of HAL_TYPE_*, got 200", s.memories[0].type = 200);
    BROKEN("access: expected one of HAL_ACCESS_*, got 0", s.memories[0].access = 0);
    BROKEN("access: expected one of HAL_ACCESS_*, got 4", s.memories[0].access = 4);
    BROKEN("access: expected HAL_ACCESS_READ_WRITE, got 1", s.memories[2].access = HAL_ACCESS_READ);
    BROKEN("count: expected 0 for a binding and reserved 0 0, got 5", s.memories[1].count = 5);
    BROKEN("count: expected elements and reserved 0 0, got 0", s.memories[2].count = 0);
    BROKEN("got 0 and 1 0", s.memories[0].reserved[0] = 1);
    BROKEN("got 17179869180", s.memories[2].count = UINT32_MAX);
}

TEST(scalars_are_checked)
{
    BROKEN("scalar n: type: expected a number type of 4 or 8 bytes and reserved 0, got 1 and 0",
           s.scalars[0].type = HAL_TYPE_BOOL);
    BROKEN("got 10 and 0", s.scalars[0].type = HAL_TYPE_F16);
    BROKEN("got 99 and 0", s.scalars[0].type = 99);
    BROKEN("got 7 and 3", s.scalars[0].reserved = 3);
    BROKEN("scalar n: offset: expected a multiple of 4 from 0 on, got 2", s.scalars[0].offset = 2);
    BROKEN("scalar alpha: offset: expected a multiple of 8 from 4 on, got 0",
           s.scalars[1].offset = 0);
    BROKEN("scalar_bytes: expected at least 16, got 15", s.kernel.scalar_bytes = 15);
    BROKEN("scalar_bytes: expected at least 65536", s.scalars[1].offset = 65528);
}

TEST(records_follow_the_table)
{
    BROKEN("opcode: expected one of HAL_IR_*, got 0", r->opcode = 0);
    BROKEN("opcode: expected one of HAL_IR_*, got 9", r->opcode = 9);
    BROKEN("HAL_IR_*, got 65535", r->opcode = 65535);
    BROKEN("(add): operand a: expected a value, got none",
           record_of(&s, HAL_IR_ADD)->a = HAL_IR_NONE);
    BROKEN("operand a: expected an earlier record, got %4000000",
           record_of(&s, HAL_IR_ADD)->a = 4000000);
    BROKEN("operand c: expected none, got %0", record_of(&s, HAL_IR_ADD)->c = 0);
    BROKEN("aux: expected 0 in an unused field", record_of(&s, HAL_IR_ADD)->aux = 1);
    BROKEN("imm: expected 0 in an unused field", record_of(&s, HAL_IR_ADD)->imm = 1);
    BROKEN("flags: expected 0 in an unused field", record_of(&s, HAL_IR_ADD)->flags = 1);
    BROKEN("result: expected type", record_of(&s, HAL_IR_ADD)->type = HAL_TYPE_F64);
    BROKEN("result: expected type", record_of(&s, HAL_IR_ADD)->width = 2);
    BROKEN("result: expected type", record_of(&s, HAL_IR_STORE)->width = 2);
    BROKEN("operand b: expected bool for a guard, got u32", record_of(&s, HAL_IR_LOAD)->b = 0);
    BROKEN("width: expected 1, 2, 4 or 8, got 3", record_of(&s, HAL_IR_LOAD)->width = 3);
    BROKEN("8, got 255", record_of(&s, HAL_IR_LOAD)->width = 255);
    BROKEN("memory: expected less than 3, got 3", record_of(&s, HAL_IR_LOAD)->aux = 3);
    BROKEN("x: expected HAL_ACCESS_WRITE", record_of(&s, HAL_IR_STORE)->aux = 0);
    BROKEN("y: expected HAL_ACCESS_READ", record_of(&s, HAL_IR_LOAD)->aux = 1);
    BROKEN("element: expected 0 to 1, got -1", record_of(&s, HAL_IR_EXTRACT)->imm = -1);
    BROKEN("dimension: expected less than 3, got 3", record_of(&s, HAL_IR_LOCAL_ID)->aux = 3);
    BROKEN("scalar: expected less than 2, got 2", record_of(&s, HAL_IR_SCALAR)->aux = 2);
    BROKEN("scalar alpha: expected its type, f64, got u32", record_of(&s, HAL_IR_SCALAR)->aux = 1);
    BROKEN("constant: expected less than 2, got 99", record_of(&s, HAL_IR_CONSTANT)->aux = 99);
    BROKEN("that constant can have, got none",
           record_of(&s, HAL_IR_CONSTANT)->type = HAL_TYPE_NONE);
    BROKEN("that constant can have, got f16", record_of(&s, HAL_IR_CONSTANT)->type = HAL_TYPE_F16);
    BROKEN("that cast can have, got ?", record_of(&s, HAL_IR_CAST)->type = 77);
    BROKEN("operand a: expected a var", record_of(&s, HAL_IR_GET)->a = 0);
    BROKEN("only fragments", r->opcode = HAL_IR_INPUT);
    BROKEN("step: expected more than 0",
           record_of(&s, HAL_IR_FOR)->c = record_of(&s, HAL_IR_FOR)->a);
}

TEST(shuffles_take_no_bool)
{
    static const char text[] = "kernel k\ngroup 32 1 1\n%l = local_id u32 x\n%c = eq bool %l, %l\n"
                               "%s = shuffle bool %c, %l\n";
    hal_ir_kernel *kernel = NULL;
    assert_int_equal(hal_ir_parse(text, strlen(text), &kernel), HAL_ERROR_INVALID_IR);
    assert_non_null(strstr(hal_status_message(), "expected a type that shuffle takes, got bool"));
}

TEST(constants_fit_their_types)
{
    BROKEN("expected 32 bits for u32", s.constants[0] = UINT64_C(1) << 32);
    hal_ir_builder *b = ir_kernel_begin();
    hal_ir_bool(b, 1);
    open_kernel s = open_up(ir_finish(b));
    s.constants[0] = 2;
    rejected(&s, "expected 1 bits for bool, got 0x2");
}

TEST(blocks_nest)
{
    BROKEN("expected an open block", record_of(&s, HAL_IR_BARRIER)->opcode = HAL_IR_END);
    BROKEN("innermost open block, got a for", {
        hal_ir_record *get = record_of(&s, HAL_IR_END);
        get->opcode = HAL_IR_ELSE;
    });
    BROKEN("(for): expected an end of the block",
           record_of(&s, HAL_IR_END)->opcode = HAL_IR_ASYNC_COMMIT);
}

TEST(values_are_seen_in_their_block_only)
{
    BROKEN("of a block that has ended", {
        hal_ir_record *loop = record_of(&s, HAL_IR_FOR);
        hal_ir_record *last = &s.records[s.kernel.record_count - 1];
        last->a = (uint32_t)(loop - s.records);
    });
    /* Its own operands are outside of a FOR's block: it may not use itself. */
    BROKEN("expected an earlier record", {
        hal_ir_record *loop = record_of(&s, HAL_IR_FOR);
        loop->a = (uint32_t)(loop - s.records);
    });
}

/* A kernel with one thing of each kind that the sample lacks. */
static open_kernel others(void)
{
    hal_ir_builder *b = ir_kernel_begin();
    hal_ir_group_size(b, 64, 1, 1);
    const hal_ir_memory_id x = hal_ir_binding(b, "x", HAL_TYPE_I32, HAL_ACCESS_READ_WRITE);
    const hal_ir_memory_id f = hal_ir_binding(b, "f", HAL_TYPE_F32, HAL_ACCESS_READ_WRITE);
    const hal_ir_memory_id tile = hal_ir_shared(b, "tile", HAL_TYPE_I32, 64);
    const hal_ir_value i = hal_ir_id(b, HAL_IR_LOCAL_ID, 0), one = hal_ir_i32(b, 1);
    hal_ir_atomic(b, HAL_IR_ATOMIC_ADD, x, i, HAL_IR_NONE, one, HAL_IR_NONE);
    hal_ir_async_copy(b, tile, i, x, i, 1, HAL_IR_NONE);
    hal_ir_async_commit(b);
    hal_ir_async_wait(b, 0);
    hal_ir_subgroup_reduce(b, HAL_IR_REDUCE_MAX, one);
    hal_ir_shuffle_xor(b, one, 127);
    const hal_ir_value y = hal_ir_load(b, f, i);
    hal_ir_narrow(b, HAL_TYPE_F16, y);
    hal_ir_pack(b, 8, (hal_ir_value[]){y, y, y, y, y, y, y, y});
    hal_ir_math(b, HAL_IR_EXP, y, HAL_IR_NONE, HAL_IR_FAST);
    const hal_ir_value u = hal_ir_u32(b, 7);
    const hal_ir_value first = hal_ir_pack(b, 4, (hal_ir_value[]){u, u, u, u}),
                       second = hal_ir_pack(b, 2, (hal_ir_value[]){u, u}),
                       sums = hal_ir_pack(b, 4, (hal_ir_value[]){y, y, y, y});
    hal_ir_matrix_multiply(b, HAL_TYPE_BF16, first, second, sums);
    return open_up(ir_finish(b));
}

#define BROKEN_OTHER(words, opcode_, statement)           \
    do {                                                  \
        open_kernel s = others();                         \
        hal_ir_record *r = record_of(&s, HAL_IR_##opcode_); \
        statement;                                        \
        rejected(&s, words);                              \
    } while (0)

TEST(fields_of_the_rarer_opcodes_are_checked)
{
    open_kernel good = others();
    accepted(&good);
    BROKEN_OTHER("kind of atomic: expected less than 8, got 8", ATOMIC, r->flags = 8);
    BROKEN_OTHER("operand d: expected a value", ATOMIC, r->flags = HAL_IR_ATOMIC_COMPARE_EXCHANGE);
    BROKEN_OTHER("operand d: expected none", ATOMIC, r->d = r->c);
    BROKEN_OTHER("memory f: expected i32, u32, i64 or u64, got f32", ATOMIC, r->aux = 1);
    BROKEN_OTHER("memories: expected a binding that is read and a shared array", ASYNC_COPY,
                 r->aux = 0);
    BROKEN_OTHER("memories: expected a binding that is read and a shared array", ASYNC_COPY,
                 r->imm = 1);
    BROKEN_OTHER("memories: expected a binding that is read and a shared array", ASYNC_COPY,
                 r->imm = -1);
    BROKEN_OTHER("memories: expected a binding that is read and a shared array", ASYNC_COPY,
                 r->imm = 2);
    BROKEN_OTHER("8, got 0", ASYNC_COPY, r->width = 0);
    BROKEN_OTHER("sets: expected 0 or more, got -1", ASYNC_WAIT, r->imm = -1);
    BROKEN_OTHER("reduction: expected less than 3, got 3", SUBGROUP_REDUCE, r->aux = 3);
    BROKEN_OTHER("mask: expected 0 to 127, got 128", SHUFFLE_XOR, r->imm = 128);
    BROKEN_OTHER("type: expected f16, bf16, f32 or f64, got i8", MATRIX_MULTIPLY,
                 r->aux = HAL_TYPE_I8);
    BROKEN_OTHER("storage type: expected less than", MATRIX_MULTIPLY, r->aux = 99);
    BROKEN_OTHER("operand a: expected f64 of width 4, got u32 of width 4", MATRIX_MULTIPLY,
                 (r->aux = HAL_TYPE_F64, r->type = HAL_TYPE_F64));
    BROKEN_OTHER("operand a: expected u32 of width 4, got u32 of width 2", MATRIX_MULTIPLY,
                 r->a = r->b);
    BROKEN_OTHER("operand b: expected u32 of width 2, got u32 of width 4", MATRIX_MULTIPLY,
                 r->b = r->a);
    BROKEN_OTHER("operand c: expected f32 of width 4, got u32 of width 4", MATRIX_MULTIPLY,
                 r->c = r->a);
    BROKEN_OTHER("expected type 12 and width 4, got 12 and 2", MATRIX_MULTIPLY, r->width = 2);
    BROKEN_OTHER("group size: expected a multiple of 32, got 72 work-items", MATRIX_MULTIPLY,
                 (s.kernel.group_size[0] = 72, (void)r));
    BROKEN_OTHER("storage type: expected less than", NARROW, r->aux = 31);
    BROKEN_OTHER("got 300", NARROW, r->aux = 300);
    BROKEN_OTHER("operand a: expected i32 for memory of i8, got f32", NARROW, r->aux = HAL_TYPE_I8);
    BROKEN_OTHER("flags: expected less than 2, got 2", EXP, r->flags = 2);
    BROKEN_OTHER("operands: expected a to d for width 4", PACK, r->d = HAL_IR_NONE);
    BROKEN_OTHER("expected 4 scalars of one type", PACK, r->d = 0);
    BROKEN_OTHER("width: expected 2, 4 or 8, got 5", PACK, r->width = 5);
    BROKEN_OTHER("operands: expected a to b for width 8", PACK, r->width = 8);
}

TEST(fragments_are_checked)
{
    static const uint64_t zero = 0;
    for (int i = 0; i < 5; i++) {
        static const char *const words[] = {NULL, "number: expected less than 1, got 5",
                                            "inputs: expected one record of each of 1, got 0 of 0",
                                            "outputs: expected one record of each of 1, got 0 of 0",
                                            "at most 64"};
        hal_ir_builder *b = ir_fragment_begin();
        hal_ir_output(b, 0, hal_ir_neg(b, hal_ir_input(b, 0, HAL_TYPE_F32)));
        open_kernel s = open_up(ir_finish(b));
        hal_ir_record *r = record_of(&s, i == 3 ? HAL_IR_OUTPUT : HAL_IR_INPUT);
        if (i == 1) {
            r->aux = 5;
        } else if (i == 2) {
            r->opcode = HAL_IR_CONSTANT;
            s.kernel.constants = &zero;
            s.kernel.constant_count = 1;
        } else if (i == 3) {
            s.kernel.record_count--;
        } else if (i == 4) {
            s.kernel.input_count = 65;
        }
        if (i == 0) {
            accepted(&s);
        } else {
            rejected(&s, words[i]);
        }
    }
}

/* ---- Uniformity ---- */

enum place {
    TOP,
    IF_SCALAR,      /* if (n < 5) */
    IF_LOCAL,       /* if (local id < 5) */
    ELSE_LOCAL,     /* the other side of it */
    IF_FLAT_LOCAL,  /* if (local id y < 5), the group is flat */
    FOR_SCALAR,     /* for (0..n) */
    FOR_LOCAL,      /* for (0..local id) */
    FOR_IN_IF,      /* for (0..n) in if (local id < 5) */
    IF_LOADED,      /* of a binding that is read only, at a uniform index */
    IF_LOADED_RW,   /* of one that is written too */
    IF_LOADED_FAR,  /* at an index that differs */
    IF_SHARED,      /* of a shared array */
    IF_GROUP,       /* if (group id < 5) */
    IF_VAR,         /* of a var set to uniform values */
    IF_VAR_LATER,   /* of a var that a later round of the loop sets to something that differs */
    IF_VAR_IN_IF,   /* of a var set to a uniform value in if (local id < 5) */
    IF_LOOP_VALUE,  /* of the value of a uniform for */
    IF_LANE,        /* if (lane id < 5) */
    IF_ATOMIC,      /* of what an atomic gave */
    IF_REDUCED,     /* of what a subgroup agreed on */
    AFTER_IF_LOCAL, /* after if (local id < 5) */
    PLACE_COUNT
};

static const uint8_t place_is_uniform[PLACE_COUNT] = {
    [TOP] = 1,           [IF_SCALAR] = 1, [IF_FLAT_LOCAL] = 1,  [FOR_SCALAR] = 1, [IF_LOADED] = 1,
    [IF_GROUP] = 1,      [IF_VAR] = 1,    [IF_LOOP_VALUE] = 1, [AFTER_IF_LOCAL] = 1};

typedef struct scene {
    hal_ir_builder *b;
    hal_ir_memory_id read, both, tile;
    hal_ir_value n, local, five, one, zero;
} scene;

static void if_below(scene *s, hal_ir_value v)
{
    hal_ir_if(s->b, hal_ir_lt(s->b, v, s->five));
}

static uint32_t enter_var(scene *s, int where)
{
    hal_ir_builder *b = s->b;
    const hal_ir_value var = hal_ir_var(b, s->zero);
    switch (where) {
    case IF_VAR:
        hal_ir_set(b, var, s->n);
        if_below(s, hal_ir_get(b, var));
        return 1;
    case IF_VAR_LATER: {
        /* The set that differs comes after the get, two variables away. */
        const hal_ir_value other = hal_ir_var(b, s->zero);
        hal_ir_for(b, s->zero, s->n, s->one);
        if_below(s, hal_ir_get(b, var));
        hal_ir_barrier(b);
        hal_ir_end(b);
        hal_ir_set(b, var, hal_ir_get(b, other));
        hal_ir_set(b, other, s->local);
        return 1;
    }
    default:
        if_below(s, s->local);
        hal_ir_set(b, var, s->one);
        hal_ir_end(b);
        if_below(s, hal_ir_get(b, var));
        return 1;
    }
}

/* Opens the blocks of a place; gives how many. */
static uint32_t enter(scene *s, int where)
{
    hal_ir_builder *b = s->b;
    switch (where) {
    case TOP:
        return 0;
    case IF_SCALAR:
        if_below(s, s->n);
        return 1;
    case IF_LOCAL:
        if_below(s, s->local);
        return 1;
    case ELSE_LOCAL:
        if_below(s, s->local);
        hal_ir_else(b);
        return 1;
    case IF_FLAT_LOCAL:
        if_below(s, hal_ir_id(b, HAL_IR_LOCAL_ID, 1));
        return 1;
    case FOR_SCALAR:
        hal_ir_for(b, s->zero, s->n, s->one);
        return 1;
    case FOR_LOCAL:
        hal_ir_for(b, s->zero, s->local, s->one);
        return 1;
    case FOR_IN_IF:
        if_below(s, s->local);
        hal_ir_for(b, s->zero, s->n, s->one);
        return 2;
    case IF_LOADED:
        if_below(s, hal_ir_load_wide(b, s->read, s->n, 0, 1, hal_ir_lt(b, s->n, s->five)));
        return 1;
    case IF_LOADED_RW:
        if_below(s, hal_ir_load(b, s->both, s->n));
        return 1;
    case IF_LOADED_FAR:
        if_below(s, hal_ir_load(b, s->read, s->local));
        return 1;
    case IF_SHARED:
        if_below(s, hal_ir_load(b, s->tile, s->n));
        return 1;
    case IF_GROUP:
        if_below(s, hal_ir_id(b, HAL_IR_GROUP_ID, 2));
        return 1;
    case IF_LOOP_VALUE:
        if_below(s, hal_ir_for(b, s->zero, s->n, s->one));
        return 2;
    case IF_LANE:
        if_below(s, hal_ir_id(b, HAL_IR_LANE_ID, 0));
        return 1;
    case IF_ATOMIC:
        if_below(s, hal_ir_atomic(b, HAL_IR_ATOMIC_ADD, s->both, s->zero, HAL_IR_NONE, s->one,
                                  HAL_IR_NONE));
        return 1;
    case IF_REDUCED:
        if_below(s, hal_ir_subgroup_reduce(b, HAL_IR_REDUCE_ADD, s->local));
        return 1;
    case AFTER_IF_LOCAL:
        if_below(s, s->local);
        hal_ir_end(b);
        return 0;
    default:
        return enter_var(s, where);
    }
}

static scene set_up(void)
{
    scene s = {0};
    assert_ok(hal_ir_builder_create("scene", &s.b));
    hal_ir_group_size(s.b, 64, 1, 1);
    s.read = hal_ir_binding(s.b, "read", HAL_TYPE_U32, HAL_ACCESS_READ);
    s.both = hal_ir_binding(s.b, "both", HAL_TYPE_U32, HAL_ACCESS_READ_WRITE);
    s.tile = hal_ir_shared(s.b, "tile", HAL_TYPE_U32, 64);
    s.n = hal_ir_scalar_value(s.b, "n", HAL_TYPE_U32);
    s.local = hal_ir_id(s.b, HAL_IR_LOCAL_ID, 0);
    s.five = hal_ir_u32(s.b, 5);
    s.one = hal_ir_u32(s.b, 1);
    s.zero = hal_ir_u32(s.b, 0);
    return s;
}

TEST(barriers_stand_where_control_is_uniform)
{
    for (int where = 0; where < PLACE_COUNT; where++) {
        scene s = set_up();
        hal_ir_kernel *kernel = NULL;
        const uint32_t depth = enter(&s, where);
        hal_ir_barrier(s.b);
        for (uint32_t i = 0; i < depth; i++) {
            hal_ir_end(s.b);
        }
        const hal_status status = hal_ir_builder_finish(s.b, &kernel);
        if ((status == HAL_OK) != place_is_uniform[where]) {
            fail_msg("place %d: %s", where, hal_status_message());
        }
        if (status != HAL_OK) {
            assert_int_equal(status, HAL_ERROR_INVALID_IR);
            assert_non_null(
                strstr(hal_status_message(), "(barrier): expected control that is uniform"));
        }
        hal_ir_kernel_destroy(kernel);
        hal_ir_builder_destroy(s.b);
    }
}

TEST(so_do_subgroup_operations_and_waits)
{
    for (int which = 0; which < 4; which++) {
        for (int where = TOP; where <= IF_LOCAL; where++) {
            scene s = set_up();
            hal_ir_kernel *kernel = NULL;
            const uint32_t depth = enter(&s, where);
            if (which == 0) {
                hal_ir_shuffle(s.b, s.local, s.one);
            } else if (which == 1) {
                hal_ir_shuffle_xor(s.b, s.local, 1);
            } else if (which == 2) {
                hal_ir_subgroup_reduce(s.b, HAL_IR_REDUCE_MIN, s.local);
            } else {
                hal_ir_async_wait(s.b, 0);
            }
            for (uint32_t i = 0; i < depth; i++) {
                hal_ir_end(s.b);
            }
            assert_int_equal(hal_ir_builder_finish(s.b, &kernel),
                             place_is_uniform[where] ? HAL_OK : HAL_ERROR_INVALID_IR);
            hal_ir_kernel_destroy(kernel);
            hal_ir_builder_destroy(s.b);
        }
    }
}

TEST(uniform_values_are_told_from_others)
{
    open_kernel s = sample();
    const uint32_t count = s.kernel.record_count;
    uint32_t *scratch = malloc(HAL_IR_UNIFORM_SCRATCH(count) * sizeof *scratch);
    uint8_t *uniform = malloc(count);
    hal_ir_uniformity(&s.kernel, scratch, uniform);
    for (uint32_t i = 0; i < count; i++) {
        const hal_ir_record *r = &s.records[i];
        assert_true(uniform[i] & HAL_IR_UNIFORM_CONTROL);
        const int expected = r->opcode == HAL_IR_CONSTANT || r->opcode == HAL_IR_SCALAR ||
                             r->opcode == HAL_IR_CAST || r->opcode == HAL_IR_FOR;
        const int other = r->opcode == HAL_IR_LOCAL_ID || r->opcode == HAL_IR_LT ||
                          r->opcode == HAL_IR_LOAD || r->opcode == HAL_IR_VAR ||
                          r->opcode == HAL_IR_GET || r->opcode == HAL_IR_ADD;
        if (expected || other) {
            assert_int_equal((uniform[i] & HAL_IR_UNIFORM_VALUE) != 0, expected);
        }
    }
    free(scratch);
    free(uniform);
    hal_ir_kernel_destroy(s.owner);
}

UNIT_MAIN(NULL, NULL)
