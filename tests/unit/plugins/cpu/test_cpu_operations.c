/* The cpu plugin's arithmetic: every opcode on every type that it takes, with operands uniform and
 * varying in every mixture, against the reference interpreter, on each instruction set. */
#include "cpu_fixture.h"

#include <math.h>

enum { COUNT = 256, GROUP = 64 };

static const hal_type value_types[] = {HAL_TYPE_BOOL, HAL_TYPE_I32, HAL_TYPE_U32, HAL_TYPE_I64,
                                       HAL_TYPE_U64,  HAL_TYPE_F32, HAL_TYPE_F64};
enum { TYPES = sizeof(value_types) / sizeof(value_types[0]) };

/* Values where things happen: ends, zeros, denormals, halves, infinities, NaN; then anything. */
static uint64_t corner(hal_type type, uint64_t *state)
{
    static const uint32_t f32[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x00000001,
                                   0x807fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x3f000000,
                                   0x3fc00000, 0x4f000000, 0xcf000000, 0x5f000000, 0x7f7fffff,
                                   0x00800000, 0x4b800000, 0x4f800000, 0x5f800000, 0xc0200000};
    static const double f64[] = {0.0,
                                 -0.0,
                                 1.0,
                                 -1.0,
                                 5e-324,
                                 0.5,
                                 1.5,
                                 2.5,
                                 -2.5,
                                 1e308,
                                 -1e308,
                                 1e-310,
                                 0x1p31,
                                 0x1p32,
                                 0x1p63,
                                 0x1p64,
                                 -0x1p63,
                                 -0x1p31,
                                 4503599627370497.5};
    static const uint64_t whole[] = {
        0,  1,  2,  3,  UINT64_MAX, UINT64_MAX - 1,    0x7fffffff, 0x80000000, 31,
        32, 33, 63, 64, 65,         UINT64_C(1) << 63, INT64_MAX,  0xffff};
    const uint64_t any = cpu_random(state), which = cpu_random(state);
    uint64_t bits = any;
    switch (type) {
    case HAL_TYPE_BOOL:
        return any & 1;
    case HAL_TYPE_F32:
        bits = which % 3 == 0   ? f32[any % (sizeof(f32) / sizeof(f32[0]))]
               : which % 3 == 1 ? 0x3c000000 + any % 0x08000000 + (any >> 32 << 31)
                                : any;
        return (uint32_t)bits;
    case HAL_TYPE_F64:
        if (which % 3 == 0) {
            memcpy(&bits, &f64[any % (sizeof(f64) / sizeof(f64[0]))], sizeof(bits));
        } else if (which % 3 == 1) {
            bits =
                (UINT64_C(0x3f8) << 52) + (any >> 7 & ((UINT64_C(0x00f) << 52) | 0xfffffffffffff));
        }
        return bits;
    default:
        bits = which % 2 ? whole[any % (sizeof(whole) / sizeof(whole[0]))] : any;
        return hal_type_size(type) == 4 ? (uint32_t)bits : bits;
    }
}

static void fill_corners(cpu_buffer *buffer, uint64_t seed)
{
    const uint32_t bytes = hal_type_size(buffer->type);
    buffer->data = malloc((size_t)buffer->count * bytes);
    for (uint32_t i = 0; i < buffer->count; i++) {
        const uint64_t bits = corner(buffer->type, &seed);
        memcpy((char *)buffer->data + (size_t)i * bytes, &bits, bytes);
    }
}

typedef struct operation {
    uint32_t opcode, operands;
    hal_type operand[3], result;
    uint32_t storage; /* of NARROW */
} operation;

static hal_ir_value build_operation(hal_ir_builder *b, const operation *o, const hal_ir_value *x)
{
    switch (o->opcode) {
    case HAL_IR_CAST:
        return hal_ir_cast(b, o->result, x[0]);
    case HAL_IR_BITCAST:
        return hal_ir_bitcast(b, o->result, x[0]);
    case HAL_IR_NARROW:
        return hal_ir_narrow(b, (hal_type)o->storage, x[0]);
    default:
        return o->operands == 1   ? hal_ir_unary(b, o->opcode, x[0])
               : o->operands == 2 ? hal_ir_binary(b, o->opcode, x[0], x[1])
                                  : hal_ir_ternary(b, o->opcode, x[0], x[1], x[2]);
    }
}

/* out[i] = x[i] operation y[i]...; bit k of `uniform`: operand k is the group's, not the item's. */
static void check_operation(const operation *o, uint32_t uniform)
{
    char what[96];
    snprintf(what, sizeof(what), "%s of %s, uniform %u, storage %u", hal_ir_opcode_name(o->opcode),
             hal_type_name(o->operand[0]), uniform, o->storage);
    hal_ir_builder *b = NULL;
    hal_ir_memory_id memory[4];
    static const char *const names[] = {"x", "y", "z"};
    hal_ir_value x[3] = {0};
    assert_int_equal(hal_ir_builder_create("operation", &b), HAL_OK);
    hal_ir_group_size(b, GROUP, 1, 1);
    for (uint32_t k = 0; k < o->operands; k++) {
        memory[k] = hal_ir_binding(b, names[k], o->operand[k], HAL_ACCESS_READ);
    }
    memory[o->operands] = hal_ir_binding(b, "out", o->result, HAL_ACCESS_WRITE);
    const hal_ir_value item = hal_ir_global_id(b, 0), group = hal_ir_id(b, HAL_IR_GROUP_ID, 0);
    for (uint32_t k = 0; k < o->operands; k++) {
        x[k] = hal_ir_load(b, memory[k], uniform >> k & 1 ? group : item);
    }
    hal_ir_store(b, memory[o->operands], item, build_operation(b, o, x));
    hal_ir_kernel *kernel = cpu_finish(b);
    cpu_trial trial = {.kernel = kernel, .grid = {COUNT / GROUP, 1, 1}, .what = what};
    trial.buffer_count = o->operands + 1;
    for (uint32_t k = 0; k <= o->operands; k++) {
        trial.buffers[k].type = k < o->operands ? o->operand[k] : o->result;
        trial.buffers[k].count = COUNT;
        fill_corners(&trial.buffers[k], o->opcode * 64u + k + 17u * uniform);
    }
    cpu_check(&trial);
    for (uint32_t k = 0; k <= o->operands; k++) {
        free(trial.buffers[k].data);
    }
    hal_ir_kernel_destroy(kernel);
}

/* The types and the letters of the operands of each opcode. */
static const struct {
    uint32_t types;
    const char *letters;
} rules[HAL_IR_OPCODE_COUNT] = {
#define ROW(NAME, number, since, name, ARITY, CLASS, TYPES, TRAITS, syntax, operands, result) \
    [number] = {HAL_TYPES_##TYPES, operands},
    HAL_IR_OPCODE_TABLE(ROW)
#undef ROW
};

static int takes(uint32_t opcode, hal_type type)
{
    return (rules[opcode].types & HAL_TYPE_BIT(type)) != 0;
}

static uint32_t operands_of(uint32_t opcode)
{
    return (uint32_t)strcspn(rules[opcode].letters, "-");
}

static void check_range(uint32_t first, uint32_t last)
{
    for (uint32_t opcode = first; opcode <= last; opcode++) {
        if (hal_ir_opcode_name(opcode) == NULL) {
            continue;
        }
        for (uint32_t t = 0; t < TYPES; t++) {
            operation o = {.opcode = opcode, .operands = operands_of(opcode)};
            o.operand[0] = o.operand[1] = o.operand[2] = o.result = value_types[t];
            if (!takes(opcode, value_types[t])) {
                continue;
            }
            if (opcode >= HAL_IR_EQ && opcode <= HAL_IR_LE) {
                o.result = HAL_TYPE_BOOL;
            }
            for (uint32_t uniform = 0; uniform < 1u << o.operands; uniform++) {
                check_operation(&o, uniform);
            }
        }
    }
}

static void test_arithmetic(void **state)
{
    check_range(HAL_IR_ADD, HAL_IR_MULHI);
}

static void test_bits_and_comparisons(void **state)
{
    check_range(HAL_IR_AND, HAL_IR_LE);
}

static void test_select(void **state)
{
    for (uint32_t t = 0; t < TYPES; t++) {
        operation o = {.opcode = HAL_IR_SELECT, .operands = 3, .result = value_types[t]};
        o.operand[0] = HAL_TYPE_BOOL;
        o.operand[1] = o.operand[2] = value_types[t];
        for (uint32_t uniform = 0; uniform < 8; uniform++) {
            check_operation(&o, uniform);
        }
    }
}

static void test_casts(void **state)
{
    for (uint32_t from = 0; from < TYPES; from++) {
        for (uint32_t to = 0; to < TYPES; to++) {
            operation o = {.opcode = HAL_IR_CAST, .operands = 1, .result = value_types[to]};
            o.operand[0] = value_types[from];
            check_operation(&o, 0);
            check_operation(&o, 1);
            o.opcode = HAL_IR_BITCAST;
            if (from > 0 && to > 0 &&
                hal_type_size(value_types[from]) == hal_type_size(value_types[to])) {
                check_operation(&o, 0);
                check_operation(&o, 1);
            }
        }
    }
}

static void test_narrow(void **state)
{
    const uint32_t types = cpu_storage_types();
    for (uint32_t storage = HAL_TYPE_I8; storage < HAL_TYPE_COUNT; storage++) {
        if (!(types & HAL_TYPE_BIT(storage))) {
            continue;
        }
        operation o = {.opcode = HAL_IR_NARROW, .operands = 1, .storage = storage};
        o.operand[0] = o.result = hal_type_of_value((hal_type)storage);
        check_operation(&o, 0);
        check_operation(&o, 1);
    }
}

static void test_math(void **state)
{
    check_range(HAL_IR_MATH_FIRST, HAL_IR_MATH_LAST);
}

/* Sizes below 1, with zeros and denormals; all but the first two pieces of 256 have an odd one at
 * their beginning, end or in between, which decides how the piece is done. */
static void fill_small(cpu_buffer *buffer, int positive, uint64_t seed)
{
    static const double odd[] = {0.5, 1.0, -3.0, 0x1p17, 1e30, NAN, -0x1p-149, -1.0};
    enum { PIECE = 256 };
    buffer->data = malloc((size_t)buffer->count * hal_type_size(buffer->type));
    for (uint32_t i = 0; i < buffer->count; i++) {
        const uint64_t any = cpu_random(&seed);
        double x = (double)(any >> 11) * 0x1p-53;
        x = any % 7 == 0 ? x * 0x1p-140 : any % 31 == 0 ? 0.0 : x;
        x = positive ? x + 0x1p-100 : any & 1 << 9 ? -x : x;
        const uint32_t piece = i / PIECE, at = piece % 3 == 0 ? 0 : piece % 3 == 1 ? 255 : 100;
        x = piece >= 2 && i % PIECE == at ? odd[piece % 8] : x;
        if (buffer->type == HAL_TYPE_F32) {
            ((float *)buffer->data)[i] = (float)x;
        } else {
            ((double *)buffer->data)[i] = x;
        }
    }
}

/* Functions have parts for operands that are all small, or all ordinary: the same bits, also where
 * the second of two calls computes in place. */
static void check_small(uint32_t opcode, hal_type type, int positive)
{
    enum { ITEMS = 1024, GROUPS = 3 };
    char what[96];
    snprintf(what, sizeof(what), "%s of small %s", hal_ir_opcode_name(opcode), hal_type_name(type));
    hal_ir_builder *b = NULL;
    assert_int_equal(hal_ir_builder_create("small", &b), HAL_OK);
    hal_ir_group_size(b, ITEMS, 1, 1);
    const hal_ir_memory_id in = hal_ir_binding(b, "x", type, HAL_ACCESS_READ);
    const hal_ir_memory_id once = hal_ir_binding(b, "once", type, HAL_ACCESS_WRITE);
    const hal_ir_memory_id twice = hal_ir_binding(b, "twice", type, HAL_ACCESS_WRITE);
    const hal_ir_value item = hal_ir_global_id(b, 0);
    const hal_ir_value x = hal_ir_load(b, in, item), y = hal_ir_unary(b, opcode, x);
    hal_ir_store(b, once, item, y);
    hal_ir_store(b, twice, item, hal_ir_unary(b, opcode, hal_ir_neg(b, hal_ir_neg(b, x))));
    cpu_trial trial = {.kernel = cpu_finish(b), .grid = {GROUPS, 1, 1}, .what = what};
    trial.buffer_count = 3;
    for (uint32_t k = 0; k < 3; k++) {
        trial.buffers[k] = (cpu_buffer){.type = type, .count = ITEMS * GROUPS};
        fill_small(&trial.buffers[k], positive, opcode);
    }
    cpu_check(&trial);
    for (uint32_t k = 0; k < 3; k++) {
        free(trial.buffers[k].data);
    }
    hal_ir_kernel_destroy((hal_ir_kernel *)trial.kernel);
}

static void test_small_operands(void **state)
{
    for (uint32_t opcode = HAL_IR_MATH_FIRST; opcode <= HAL_IR_MATH_LAST; opcode++) {
        for (int positive = 0; hal_ir_is_math(opcode) && positive < 2; positive++) {
            if (operands_of(opcode) == 1) {
                check_small(opcode, HAL_TYPE_F32, positive);
                check_small(opcode, HAL_TYPE_F64, positive);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arithmetic),     cmocka_unit_test(test_bits_and_comparisons),
        cmocka_unit_test(test_select),         cmocka_unit_test(test_casts),
        cmocka_unit_test(test_narrow),         cmocka_unit_test(test_math),
        cmocka_unit_test(test_small_operands),
    };
    return cmocka_run_group_tests_name("cpu operations", tests, NULL, cpu_close_all);
}
