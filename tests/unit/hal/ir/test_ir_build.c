/* The IR builder: what it makes, where it puts it, and the sentence of every refusal. */

#include "ir_fixture.h"
#include <stdio.h>

/* Finishing fails with this status and these words. */
static void refused_at_finish(hal_ir_builder *b, hal_status expected, const char *words)
{
    hal_ir_kernel *kernel = NULL;
    assert_fails(hal_ir_builder_finish(b, &kernel), expected, words);
    assert_null(kernel);
    hal_ir_builder_destroy(b);
}

/* The builder has failed already. */
static void refused(hal_ir_builder *b, hal_status expected, const char *words)
{
    assert_int_equal(hal_ir_builder_get_status(b), expected);
    refused_at_finish(b, expected, words);
}

TEST(a_kernel_has_what_was_declared)
{
    hal_ir_builder *b = ir_kernel_begin();
    hal_ir_group_size(b, 8, 4, 2);
    hal_ir_groups_per_unit(b, 3);
    const hal_ir_memory_id x = hal_ir_binding(b, "x", HAL_TYPE_F16, HAL_ACCESS_READ);
    const hal_ir_memory_id y = hal_ir_binding(b, "y", HAL_TYPE_F32, HAL_ACCESS_WRITE);
    const hal_ir_memory_id tile = hal_ir_shared(b, "tile", HAL_TYPE_U8, 100);
    assert_int_equal(x, 0);
    assert_int_equal(y, 1);
    assert_int_equal(tile, 2);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    const hal_ir_value v = hal_ir_load(b, x, i);
    assert_int_equal(hal_ir_type_of(b, v), HAL_TYPE_F32);
    hal_ir_store(b, y, i, v);
    hal_ir_kernel *k = ir_finish(b);
    assert_int_equal(k->size, sizeof *k);
    assert_int_equal(k->version, HAL_IR_VERSION);
    assert_string_equal(k->names + k->name, "k");
    assert_int_equal(hal_ir_group_items(k), 64);
    assert_int_equal(k->groups_per_unit, 3);
    assert_int_equal(k->binding_count, 2);
    assert_int_equal(k->memory_count, 3);
    assert_string_equal(k->names + k->memories[2].name, "tile");
    assert_int_equal(k->memories[2].count, 100);
    assert_true(hal_ir_is_shared(k, 2) && !hal_ir_is_shared(k, 1));
    hal_ir_kernel_destroy(k);
}

TEST(scalars_lie_as_in_a_c_struct)
{
    struct {
        uint32_t n;
        double alpha;
        float beta;
    } like;
    hal_ir_builder *b = ir_kernel_begin();
    hal_ir_scalar_value(b, "n", HAL_TYPE_U32);
    hal_ir_scalar_value(b, "alpha", HAL_TYPE_F64);
    hal_ir_scalar_value(b, "beta", HAL_TYPE_F32);
    hal_ir_kernel *k = ir_finish(b);
    assert_int_equal(k->scalars[0].offset, (char *)&like.n - (char *)&like);
    assert_int_equal(k->scalars[1].offset, (char *)&like.alpha - (char *)&like);
    assert_int_equal(k->scalars[2].offset, (char *)&like.beta - (char *)&like);
    assert_int_equal(k->scalar_bytes, sizeof like);
    hal_ir_kernel_destroy(k);
}

TEST(constants_and_ids_are_made_once_at_the_front)
{
    hal_ir_builder *b = ir_kernel_begin();
    hal_ir_memory_id y = hal_ir_binding(b, "y", HAL_TYPE_F32, HAL_ACCESS_WRITE);
    hal_ir_value i = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    hal_ir_if(b, hal_ir_lt(b, i, hal_ir_u32(b, 5)));
    const hal_ir_value one = hal_ir_f32(b, 1.0f);
    hal_ir_store(b, y, i, one);
    hal_ir_end(b);
    assert_int_equal(one, hal_ir_f32(b, 1.0f));
    assert_int_equal(i, hal_ir_id(b, HAL_IR_LOCAL_ID, 0));
    assert_int_not_equal(i, hal_ir_id(b, HAL_IR_LOCAL_ID, 1));
    hal_ir_store(b, y, i, one);                           /* made inside of the if, and seen here */
    assert_int_not_equal(hal_ir_u32(b, 0x3f800000), one); /* same bits, other type */
    hal_ir_kernel *k = ir_finish(b);
    assert_int_equal(ir_count(k, HAL_IR_CONSTANT), 3);
    assert_int_equal(k->constant_count, 2);
    for (uint32_t n = 0; n < 5; n++) {
        assert_true(k->records[n].opcode <= HAL_IR_LANE_ID);
    }
    hal_ir_kernel_destroy(k);
}

TEST(many_constants_keep_their_values)
{
    hal_ir_builder *b = ir_kernel_begin();
    hal_ir_value first[1000];
    for (uint32_t i = 0; i < 1000; i++) {
        first[i] = hal_ir_u64(b, (uint64_t)i << 32 | i);
    }
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(hal_ir_u64(b, (uint64_t)i << 32 | i), first[i]);
    }
    hal_ir_kernel *k = ir_finish(b);
    assert_int_equal(k->record_count, 1000);
    assert_int_equal(k->constants[k->records[777].aux], (uint64_t)777 << 32 | 777);
    hal_ir_kernel_destroy(k);
}

TEST(numbers_round_once_and_saturate)
{
    const struct {
        hal_type type;
        double value;
        uint64_t bits;
    } cases[] = {
        {HAL_TYPE_F32, 1.5, 0x3fc00000},
        {HAL_TYPE_F64, 1.5, 0x3ff8000000000000},
        {HAL_TYPE_BOOL, -2, 1},
        {HAL_TYPE_I32, -3.6, 0xfffffffc},
        {HAL_TYPE_I32, 2.5, 2},
        {HAL_TYPE_I32, -1e10, 0x80000000},
        {HAL_TYPE_I32, 1e10, 0x7fffffff},
        {HAL_TYPE_U32, -1, 0},
        {HAL_TYPE_U32, 1e10, 0xffffffff},
        {HAL_TYPE_I64, 1e30, INT64_MAX},
        {HAL_TYPE_I64, -1e30, (uint64_t)INT64_MIN},
        {HAL_TYPE_U64, 1e30, UINT64_MAX},
        {HAL_TYPE_U64, 7, 7},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hal_ir_builder *b = ir_kernel_begin();
        hal_ir_number(b, cases[i].type, cases[i].value);
        hal_ir_kernel *k = ir_finish(b);
        assert_int_equal(k->records[0].type, cases[i].type);
        assert_int_equal(k->constants[0], cases[i].bits);
        hal_ir_kernel_destroy(k);
    }
    hal_ir_builder *b = ir_kernel_begin();
    hal_ir_number(b, HAL_TYPE_F16, 1);
    refused(b, HAL_ERROR_INVALID_IR, "f16");
}

TEST(results_have_the_types_of_the_table)
{
    hal_ir_builder *b = ir_kernel_begin();
    const hal_ir_value f = hal_ir_f32(b, 1), d = hal_ir_f64(b, 1), u = hal_ir_u32(b, 1);
    const hal_ir_value t = hal_ir_bool(b, 1);
    assert_int_equal(hal_ir_type_of(b, hal_ir_add(b, d, d)), HAL_TYPE_F64);
    assert_int_equal(hal_ir_type_of(b, hal_ir_lt(b, f, f)), HAL_TYPE_BOOL);
    assert_int_equal(hal_ir_type_of(b, hal_ir_select(b, t, u, u)), HAL_TYPE_U32);
    assert_int_equal(hal_ir_type_of(b, hal_ir_cast(b, HAL_TYPE_I64, f)), HAL_TYPE_I64);
    assert_int_equal(hal_ir_type_of(b, hal_ir_bitcast(b, HAL_TYPE_U32, f)), HAL_TYPE_U32);
    assert_int_equal(hal_ir_type_of(b, hal_ir_narrow(b, HAL_TYPE_BF16, f)), HAL_TYPE_F32);
    assert_int_equal(hal_ir_type_of(b, hal_ir_shuffle_xor(b, d, 1)), HAL_TYPE_F64);
    assert_int_equal(hal_ir_type_of(b, hal_ir_math(b, HAL_IR_POW, d, d, HAL_IR_FAST)),
                     HAL_TYPE_F64);
    assert_int_equal(hal_ir_type_of(b, HAL_IR_NONE), HAL_TYPE_NONE);
    /* What changes nothing makes no record. */
    assert_int_equal(hal_ir_cast(b, HAL_TYPE_F32, f), f);
    assert_int_equal(hal_ir_bitcast(b, HAL_TYPE_F32, f), f);
    assert_int_equal(hal_ir_narrow(b, HAL_TYPE_F32, f), f);
    hal_ir_kernel_destroy(ir_finish(b));
}

TEST(packs_of_eight_are_two_of_four)
{
    hal_ir_builder *b = ir_kernel_begin();
    hal_ir_memory_id y = hal_ir_binding(b, "y", HAL_TYPE_F32, HAL_ACCESS_WRITE);
    hal_ir_value e[8];
    for (int i = 0; i < 8; i++) {
        e[i] = hal_ir_f32(b, (float)i);
    }
    const hal_ir_value v = hal_ir_pack(b, 8, e);
    hal_ir_store_wide(b, y, hal_ir_u32(b, 0), 8, hal_ir_bool(b, 1), v);
    assert_int_equal(hal_ir_type_of(b, hal_ir_extract(b, v, 7)), HAL_TYPE_F32);
    hal_ir_kernel *k = ir_finish(b);
    assert_int_equal(ir_count(k, HAL_IR_PACK), 3);
    for (uint32_t i = 0; i < k->record_count; i++) {
        if (k->records[i].opcode == HAL_IR_STORE) {
            assert_int_equal(k->records[i].width, 8);
            assert_int_equal(k->records[i].type, HAL_TYPE_NONE);
            assert_int_equal(k->records[i].imm, 8);
        }
    }
    hal_ir_kernel_destroy(k);
}

TEST(the_first_error_sticks)
{
    hal_ir_builder *b = ir_kernel_begin();
    const hal_ir_value f = hal_ir_f32(b, 1), u = hal_ir_u32(b, 1);
    assert_int_equal(hal_ir_add(b, f, u), HAL_IR_NONE);
    assert_int_equal(hal_ir_f32(b, 2), HAL_IR_NONE);
    assert_int_equal(hal_ir_sqrt(b, u), HAL_IR_NONE);
    hal_ir_group_size(b, 0, 1, 1);
    refused(b, HAL_ERROR_INVALID_IR,
            "kernel k, record 2: add: operand b: expected f32 as the others, got u32");
}

/* A builder with a binding m, values f and u, a vector and a variable. */
typedef struct scene {
    hal_ir_builder *b;
    hal_ir_memory_id m;
    hal_ir_value f, u, pair, var;
} scene;

static scene scene_begin(void)
{
    scene s = {.b = ir_kernel_begin()};
    s.m = hal_ir_binding(s.b, "m", HAL_TYPE_I32, HAL_ACCESS_READ_WRITE);
    s.f = hal_ir_f32(s.b, 1);
    s.u = hal_ir_u32(s.b, 1);
    s.pair = hal_ir_pack(s.b, 2, (hal_ir_value[]){s.f, s.f});
    s.var = hal_ir_var(s.b, s.u);
    return s;
}

/* A statement on a new scene `s` that the builder refuses with these words. */
#define REFUSED(status, words, statement) \
    do {                                  \
        scene s = scene_begin();          \
        statement;                        \
        refused(s.b, status, words);      \
    } while (0)
#define BAD_TYPE(words, statement) REFUSED(HAL_ERROR_INVALID_IR, words, statement)
#define BAD_ARGUMENT(words, statement) REFUSED(HAL_ERROR_INVALID_ARGUMENT, words, statement)

TEST(types_that_do_not_fit_are_refused)
{
    BAD_TYPE("sqrt: operand a: expected a type that sqrt takes, got u32", hal_ir_sqrt(s.b, s.u));
    BAD_TYPE("operand a: expected bool for a condition, got f32", hal_ir_if(s.b, s.f));
    BAD_TYPE("result: expected a type of the size of f32, got f64",
             hal_ir_bitcast(s.b, HAL_TYPE_F64, s.f));
    BAD_TYPE("operand a: expected u32 for memory of u8, got f32",
             hal_ir_narrow(s.b, HAL_TYPE_U8, s.f));
    BAD_TYPE("operand c: expected i32 for this memory, got u32",
             hal_ir_atomic(s.b, HAL_IR_ATOMIC_ADD, s.m, s.u, HAL_IR_NONE, s.u, HAL_IR_NONE));
    BAD_TYPE("operand b: expected u32 for this var, got f32", hal_ir_set(s.b, s.var, s.f));
    BAD_TYPE("operand a: expected an integer index, got f32", hal_ir_load(s.b, s.m, s.f));
    BAD_TYPE("operand b: expected bool for a guard, got u32",
             hal_ir_load_wide(s.b, s.m, s.u, 0, 1, s.u));
    BAD_TYPE("operand b: expected u32 for a lane, got f32", hal_ir_shuffle(s.b, s.u, s.f));
    BAD_TYPE("element: expected 0 to 1, got 2", hal_ir_extract(s.b, s.pair, 2));
    BAD_TYPE("expected a scalar, got the vector %2; take its elements with extract",
             hal_ir_add(s.b, s.pair, s.pair));
    BAD_TYPE("(var); read it with get", hal_ir_add(s.b, s.var, s.u));
    BAD_TYPE("add: expected 2 operands, got 1", hal_ir_unary(s.b, HAL_IR_ADD, s.u));
    BAD_TYPE("opcode: expected HAL_IR_*, got 65546", hal_ir_unary(s.b, 65546, s.u));
    BAD_TYPE("opcode: expected a transcendental function",
             hal_ir_math(s.b, HAL_IR_ADD, s.f, s.f, 0));
    BAD_TYPE("pack: width: expected 2, 4 or 8, got 3", hal_ir_pack(s.b, 3, &s.f));
    BAD_TYPE("pack: elements: expected a valid pointer", hal_ir_pack(s.b, 2, NULL));
}

static void declare_512_bytes_and_more(hal_ir_builder *b)
{
    for (int n = 0; n <= 64; n++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", n);
        hal_ir_scalar_value(b, name, HAL_TYPE_F64);
    }
}

static void declare_a_binding_after_a_shared_array(hal_ir_builder *b)
{
    hal_ir_shared(b, "s", HAL_TYPE_I32, 1);
    hal_ir_binding(b, "y", HAL_TYPE_I32, HAL_ACCESS_READ);
}

TEST(arguments_that_do_not_fit_are_refused)
{
    BAD_ARGUMENT("group size: expected 1 or more, got 1 x 0 x 1", hal_ir_group_size(s.b, 1, 0, 1));
    BAD_ARGUMENT("access: expected one of HAL_ACCESS_*, got 4",
                 hal_ir_binding(s.b, "y", HAL_TYPE_I32, 4));
    BAD_ARGUMENT("then letters, digits and _, got \"9x\"",
                 hal_ir_binding(s.b, "9x", HAL_TYPE_I32, HAL_ACCESS_READ));
    BAD_ARGUMENT("or scalar has, got m", hal_ir_shared(s.b, "m", HAL_TYPE_I32, 1));
    BAD_ARGUMENT("type: expected one of HAL_TYPE_*, got 77",
                 hal_ir_binding(s.b, "y", 77, HAL_ACCESS_READ));
    BAD_ARGUMENT("got 0 elements after 0 arrays", hal_ir_shared(s.b, "s", HAL_TYPE_I32, 0));
    BAD_ARGUMENT("declared before shared arrays", declare_a_binding_after_a_shared_array(s.b));
    BAD_ARGUMENT("type: expected i32", hal_ir_scalar_value(s.b, "s", HAL_TYPE_F16));
    BAD_ARGUMENT("expected at most 512 bytes", declare_512_bytes_and_more(s.b));
    BAD_ARGUMENT("load: memory: expected one of the 1 memories of this builder, got 9",
                 assert_int_equal(hal_ir_load(s.b, 9, s.u), HAL_IR_NONE));
    BAD_ARGUMENT("input: expected a fragment", hal_ir_input(s.b, 0, HAL_TYPE_F32));
    BAD_ARGUMENT("output: expected a fragment", hal_ir_output(s.b, 0, s.u));
    BAD_ARGUMENT("opcode: expected an id, got 16", hal_ir_id(s.b, HAL_IR_ADD, 0));
    BAD_ARGUMENT("got \"(null)\"", hal_ir_binding(s.b, NULL, HAL_TYPE_I32, HAL_ACCESS_READ));
}

TEST(null_and_misuse_give_values)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *k = NULL;
    assert_int_equal(hal_ir_builder_create("k", NULL), HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(hal_ir_builder_create(NULL, &b), HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(hal_ir_builder_create("", &b), HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(hal_ir_builder_create("two words", &b), HAL_ERROR_INVALID_ARGUMENT);
    assert_null(b);
    assert_int_equal(hal_ir_builder_finish(NULL, &k), HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(hal_ir_builder_get_status(NULL), HAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(hal_ir_add(NULL, 0, 0), HAL_IR_NONE);
    assert_int_equal(hal_ir_f32(NULL, 0), HAL_IR_NONE);
    hal_ir_barrier(NULL);
    hal_ir_builder_destroy(NULL);
    hal_ir_kernel_destroy(NULL);

    b = ir_kernel_begin();
    assert_int_equal(hal_ir_builder_finish(b, NULL), HAL_ERROR_INVALID_ARGUMENT);
    assert_ok(hal_ir_builder_finish(b, &k));
    hal_ir_kernel_destroy(k);
    assert_int_equal(hal_ir_builder_finish(b, &k), HAL_ERROR_INVALID_STATE);
    assert_int_equal(hal_ir_u32(b, 1), HAL_IR_NONE);
    hal_ir_builder_destroy(b);
}

TEST(blocks_have_to_fit)
{
    hal_ir_builder *b = ir_kernel_begin();
    hal_ir_if(b, hal_ir_bool(b, 1));
    refused_at_finish(b, HAL_ERROR_INVALID_IR, "if: expected an end");
    b = ir_kernel_begin();
    hal_ir_end(b);
    refused(b, HAL_ERROR_INVALID_IR, "expected an open block");
    b = ir_kernel_begin();
    hal_ir_else(b);
    refused(b, HAL_ERROR_INVALID_IR, "expected an open block");
    b = ir_kernel_begin();
    hal_ir_for(b, hal_ir_u32(b, 0), hal_ir_u32(b, 9), hal_ir_u32(b, 1));
    hal_ir_else(b);
    refused(b, HAL_ERROR_INVALID_IR, "expected an if as innermost open block, got a for");
    b = ir_kernel_begin();
    for (uint32_t i = 0; i <= HAL_IR_MAX_DEPTH; i++) {
        hal_ir_if(b, hal_ir_bool(b, 1));
    }
    refused(b, HAL_ERROR_INVALID_IR, "expected at most 64 nested blocks");
}

TEST(values_of_closed_blocks_are_refused)
{
    hal_ir_builder *b = ir_kernel_begin();
    const hal_ir_value u = hal_ir_u32(b, 1);
    const hal_ir_value i = hal_ir_for(b, u, u, u);
    hal_ir_add(b, i, u);
    hal_ir_end(b);
    hal_ir_add(b, i, u);
    refused(b, HAL_ERROR_INVALID_IR, "of a block that has ended; carry it out in a var");
    b = ir_kernel_begin();
    hal_ir_if(b, hal_ir_bool(b, 1));
    const hal_ir_value v = hal_ir_add(b, hal_ir_u32(b, 1), hal_ir_u32(b, 2));
    hal_ir_else(b);
    hal_ir_add(b, v, v);
    refused(b, HAL_ERROR_INVALID_IR, "of a block that has ended");
}

static hal_ir_kernel *relu_plus(void)
{
    hal_ir_builder *b = NULL;
    hal_ir_kernel *k = NULL;
    assert_ok(hal_ir_builder_create_fragment("relu_plus", &b));
    const hal_ir_value x = hal_ir_input(b, 0, HAL_TYPE_F32), y = hal_ir_input(b, 1, HAL_TYPE_F32);
    hal_ir_output(b, 1, hal_ir_add(b, x, y));
    hal_ir_output(b, 0, hal_ir_max(b, x, hal_ir_f32(b, 0)));
    assert_ok(hal_ir_builder_finish(b, &k));
    hal_ir_builder_destroy(b);
    return k;
}

TEST(fragments_splice_into_kernels)
{
    hal_ir_kernel *fragment = relu_plus();
    assert_int_equal(fragment->input_count, 2);
    assert_int_equal(fragment->output_count, 2);
    hal_ir_builder *b = ir_kernel_begin();
    const hal_ir_value in[2] = {hal_ir_f32(b, 3), hal_ir_f32(b, 4)};
    hal_ir_value out[2];
    hal_ir_splice(b, fragment, in, 2, out, 2);
    assert_int_equal(hal_ir_type_of(b, out[0]), HAL_TYPE_F32);
    assert_int_not_equal(out[0], out[1]);
    hal_ir_splice(b, fragment, out, 2, out, 2); /* one array for both */
    assert_int_equal(hal_ir_type_of(b, out[0]), HAL_TYPE_F32);
    assert_int_not_equal(out[0], out[1]);
    hal_ir_kernel *k = ir_finish(b);
    assert_int_equal(ir_count(k, HAL_IR_MAX), 2);
    assert_int_equal(ir_count(k, HAL_IR_ADD), 2);
    hal_ir_kernel_destroy(k);

    b = ir_kernel_begin();
    hal_ir_splice(b, fragment, in, 1, out, 2);
    assert_int_equal(out[0], HAL_IR_NONE);
    refused(b, HAL_ERROR_INVALID_ARGUMENT, "expected one of 1 inputs and 2 outputs, got 2 and 2");
    b = ir_kernel_begin();
    const hal_ir_value bad[2] = {hal_ir_f32(b, 3), hal_ir_u32(b, 4)};
    hal_ir_splice(b, fragment, bad, 2, out, 2);
    refused(b, HAL_ERROR_INVALID_ARGUMENT,
            "inputs[1]: expected f32, as fragment relu_plus declares, got u32");
    hal_ir_kernel_destroy(fragment);
}

TEST(fragments_are_expressions_only)
{
    hal_ir_builder *b = ir_fragment_begin();
    hal_ir_binding(b, "x", HAL_TYPE_F32, HAL_ACCESS_READ);
    refused(b, HAL_ERROR_INVALID_ARGUMENT, "got a fragment, which has no memory");
    b = ir_fragment_begin();
    hal_ir_var(b, hal_ir_f32(b, 1));
    refused(b, HAL_ERROR_INVALID_IR, "not allowed in a fragment");
    b = ir_fragment_begin();
    hal_ir_output(b, 1, hal_ir_input(b, 0, HAL_TYPE_F32));
    refused_at_finish(b, HAL_ERROR_INVALID_IR,
                      "outputs: expected one record of each of 2, got 1 of 1");
    b = ir_fragment_begin();
    hal_ir_output(b, 0, hal_ir_input(b, 1, HAL_TYPE_F32));
    refused_at_finish(b, HAL_ERROR_INVALID_IR,
                      "inputs: expected one record of each of 2, got 1 of 1");
}

TEST(copies_stand_alone)
{
    hal_ir_kernel *k = relu_plus();
    hal_ir_kernel *copy = NULL;
    assert_ok(hal_ir_kernel_copy(k, &copy));
    assert_ptr_not_equal(copy->records, k->records);
    assert_memory_equal(copy->records, k->records, k->record_count * sizeof *k->records);
    hal_ir_kernel_destroy(k);
    assert_ok(hal_ir_verify(copy));
    hal_ir_kernel_destroy(copy);
    assert_int_equal(hal_ir_kernel_copy(NULL, &copy), HAL_ERROR_INVALID_ARGUMENT);
}

TEST(names_are_there_for_every_opcode_and_type)
{
#define ROW(NAME, number, since, name, ...) assert_string_equal(hal_ir_opcode_name(number), #name);
    HAL_IR_OPCODE_TABLE(ROW)
#undef ROW
    assert_string_equal(hal_ir_opcode_name(HAL_IR_SUBGROUP_REDUCE), "subgroup_reduce");
    assert_null(hal_ir_opcode_name(0));
    assert_null(hal_ir_opcode_name(HAL_IR_OPCODE_COUNT));
    for (hal_type i = 0; i < HAL_TYPE_COUNT; i++) {
        assert_non_null(hal_type_name(i));
    }
    assert_string_equal(hal_type_name(HAL_TYPE_BF16), "bf16");
    assert_null(hal_type_name(HAL_TYPE_COUNT));
}

UNIT_MAIN(NULL, NULL)
