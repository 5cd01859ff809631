/* What checks add to a kernel: a comparison, which most accesses share nothing else with, and one
 * piece of code that writes the reports of all places of a block. */
#include "ir_fixture.h"

#include "ir/instrument.h"

#include <stdio.h>

enum { LOADS = 12 };

/* A kernel that sums loads of elements that are `stride` apart; `count` of them. */
static hal_ir_kernel *sum_kernel(uint32_t count, const char *load)
{
    char text[4096];
    int end = snprintf(text, sizeof text,
                       "kernel k\ngroup 64 1 1\nbinding x f32 read\nbinding y f32 write\n"
                       "scalar n u32\n"
                       "%%n = scalar u32 n\n%%l = local_id u32 x\n%%in = lt bool %%l, %%n\n"
                       "%%i0 = mul u32 %%l, %%n\n");
    for (uint32_t i = 0; i < count; i++) {
        end += snprintf(text + end, sizeof text - (size_t)end, "%%i%u = add u32 %%i%u, %%n\n",
                        i + 1, i);
        end += snprintf(text + end, sizeof text - (size_t)end, load, i, i + 1);
        end += snprintf(text + end, sizeof text - (size_t)end,
                        i == 0 ? "%%s%u = sqrt f32 %%v%u\n" : "%%s%u = add f32 %%v%u, %%s%u\n", i,
                        i, i - 1);
    }
    snprintf(text + end, sizeof text - (size_t)end, "store y[%%l], %%s%u if %%in\n", count - 1);
    return ir_read(text);
}

/* Records of the opcode, or all of them, of a kernel with checks. */
static uint32_t checked_count_on(const hal_device_info *device, hal_ir_kernel *kernel,
                                 uint32_t checks, int opcode)
{
    hal_ir_instrumented made;
    uint32_t count = 0;
    assert_ok(hal_ir_instrument(kernel, checks, device, &made));
    assert_non_null(made.kernel);
    for (uint32_t i = 0; i < made.kernel->record_count; i++) {
        count += opcode < 0 || made.kernel->records[i].opcode == (uint32_t)opcode;
    }
    hal_ir_instrumented_free(&made);
    return count;
}

static uint32_t checked_count(hal_ir_kernel *kernel, uint32_t checks, int opcode)
{
    const hal_device_info device = ir_device();
    return checked_count_on(&device, kernel, checks, opcode);
}

/* A device that counts iterations of all loops of a kernel gets no more loops in a kernel that has
 * some, or remainders, which it may compute by loops. */
TEST(iterations_of_a_device_are_left_to_the_kernel)
{
    static const char text[] = "kernel k\ngroup 64 1 1\nbinding x f32 read\n"
                               "binding y f32 write\nscalar n u32\n%n = scalar u32 n\n"
                               "%l = local_id u32 x\n%c0 = constant u32 0\n%c1 = constant u32 1\n"
                               "%k = for u32 %c0, %n, %c1\n  %a = load f32 x[%k]\n"
                               "  %b = load f32 x[%l]\n  %s = add f32 %a, %b\n"
                               "  store y[%l], %s\nend\n";
    hal_ir_kernel *kernel = ir_read(text);
    hal_device_info device = ir_device();
    assert_int_equal(checked_count_on(&device, kernel, HAL_CHECK_BOUNDS, HAL_IR_FOR), 2);
    device.max_loop_iterations = 65535;
    assert_int_equal(checked_count_on(&device, kernel, HAL_CHECK_BOUNDS, HAL_IR_FOR), 1);
    hal_ir_kernel_destroy(kernel);
    static const char remainder[] = "kernel k\nbinding x f32 read_write\nscalar n u32\n"
                                    "%n = scalar u32 n\n%a = load f32 x[%n]\n"
                                    "%b = load f32 x[%n + 1]\n%r = rem f32 %a, %b\n"
                                    "store x[%n], %r\n";
    kernel = ir_read(remainder);
    assert_int_equal(checked_count_on(&device, kernel, HAL_CHECK_BOUNDS, HAL_IR_FOR), 0);
    hal_ir_kernel_destroy(kernel);
}

/* A kernel with a loop of its own and a shared array. */
static hal_ir_kernel *shared_kernel(uint32_t items, uint32_t elements)
{
    char text[512];
    snprintf(text, sizeof text,
             "kernel k\ngroup %u 1 1\nbinding y u32 write\nshared s u8 %u\nscalar n u32\n"
             "%%n = scalar u32 n\n%%c0 = constant u32 0\n%%c1 = constant u32 1\n"
             "%%k = for u32 %%c0, %%n, %%c1\n  %%a = load u32 s[%%c0]\n"
             "  store y[%%k], %%a\nend\n",
             items, elements);
    return ir_read(text);
}

/* Kernels whose loops may take all iterations of the device clear the words of a shared array by a
 * store for each part of it, of which the last has a guard; an array of more than 256 parts has no
 * words. */
TEST(words_are_cleared_without_a_loop)
{
    static const struct {
        uint32_t items, elements, stores, guards, unchecked;
    } cases[] = {{64, 2048, 32, 0, 0},  {64, 100, 2, 1, 0},    {64, 1, 1, 1, 0},
                 {16, 4096, 256, 0, 0}, {16, 4095, 256, 1, 0}, {16, 4097, 0, 0, 1}};
    static const uint32_t checks[] = {HAL_CHECK_INIT, HAL_CHECK_RACE};
    hal_device_info device = ir_device();
    device.max_loop_iterations = 65536;
    for (size_t i = 0; i < 2 * (sizeof cases / sizeof cases[0]); i++) {
        hal_ir_kernel *kernel = shared_kernel(cases[i / 2].items, cases[i / 2].elements);
        hal_ir_instrumented made;
        uint32_t stores = 0, guards = 0;
        assert_ok(hal_ir_instrument(kernel, checks[i % 2], &device, &made));
        const hal_ir_record *records = made.kernel->records;
        for (uint32_t k = 0; records[k].opcode != HAL_IR_FOR; k++) {
            if (records[k].opcode == HAL_IR_STORE) {
                assert_int_equal(records[k].imm, stores * cases[i / 2].items);
                guards += records[k].b != HAL_IR_NONE;
                stores++;
            }
        }
        assert_int_equal(ir_count(made.kernel, HAL_IR_FOR), 1);
        assert_int_equal(stores, cases[i / 2].stores);
        assert_int_equal(guards, cases[i / 2].guards);
        assert_int_equal(made.unchecked, cases[i / 2].unchecked);
        hal_ir_instrumented_free(&made);
        hal_ir_kernel_destroy(kernel);
    }
}

/* What a kernel with checks is given. */
typedef struct given {
    uint64_t index, count; /* the program's scalar; elements of its binding and of shadows */
    uint32_t place;        /* of the first shadow word */
} given;

static uint64_t scalar_of(const hal_ir_instrumented *made, uint32_t scalar, const given *input)
{
    const uint32_t offset = made->kernel->scalars[scalar].offset;
    for (uint32_t i = 0; i < made->parameter_count; i++) {
        if (made->parameters[i].offset == offset) {
            return made->parameters[i].kind == HAL_IR_PARAMETER_DISPATCH ? 0
                   : made->parameters[i].kind == HAL_IR_PARAMETER_PLACE  ? input->place
                                                                         : input->count;
        }
    }
    return input->index;
}

/* The bits of a value that depends on scalars and constants by the operations of indices. */
static uint64_t value_of(const hal_ir_instrumented *made, hal_ir_value value, const given *input)
{
    const hal_ir_record *record = &made->kernel->records[value];
    const uint64_t mask = hal_type_size(record->type) == 8 ? UINT64_MAX : UINT32_MAX;
    if (record->opcode == HAL_IR_CONSTANT) {
        return made->kernel->constants[record->aux] & mask;
    }
    if (record->opcode == HAL_IR_SCALAR) {
        return scalar_of(made, record->aux, input) & mask;
    }
    const uint64_t a = value_of(made, record->a, input);
    if (record->opcode == HAL_IR_BITCAST || record->opcode == HAL_IR_CAST) {
        return a & mask;
    }
    const uint64_t b = value_of(made, record->b, input);
    switch (record->opcode) {
    case HAL_IR_ADD:
        return (a + b) & mask;
    case HAL_IR_SUB:
        return (a - b) & mask;
    case HAL_IR_MUL:
        return (a * b) & mask;
    case HAL_IR_MIN:
        return a < b ? a : b;
    case HAL_IR_MAX:
        return a > b ? a : b;
    default:
        assert_int_equal(record->opcode, HAL_IR_LT);
        return a < b;
    }
}

/* A kernel that stores vectors at a scalar and an offset. */
static hal_ir_kernel *store_kernel(hal_type element, hal_type type, int64_t offset, uint32_t width,
                                   bool is_shared)
{
    hal_ir_builder *b = ir_kernel_begin();
    const hal_ir_memory_id memory = is_shared ? hal_ir_shared(b, "s", element, 256)
                                              : hal_ir_binding(b, "y", element, HAL_ACCESS_WRITE);
    const hal_ir_value index = hal_ir_scalar_value(b, "index", type);
    const hal_ir_value one = hal_ir_constant_of(b, hal_type_of_value(element), 1);
    const hal_ir_value each[8] = {one, one, one, one, one, one, one, one};
    hal_ir_store_wide(b, memory, index, (int32_t)offset, HAL_IR_NONE,
                      width == 1 ? one : hal_ir_pack(b, width, each));
    return ir_finish(b);
}

static bool is_in_range(hal_type type, int64_t offset, uint32_t width, bool is_shared,
                        const given *input)
{
    const hal_device_info device = ir_device();
    hal_ir_kernel *kernel = store_kernel(HAL_TYPE_U32, type, offset, width, is_shared);
    hal_ir_instrumented made;
    assert_ok(hal_ir_instrument(kernel, HAL_CHECK_BOUNDS, &device, &made));
    uint32_t at = 0;
    while (made.kernel->records[at].opcode != HAL_IR_LT) {
        at++;
    }
    const bool holds = value_of(&made, at, input) != 0;
    hal_ir_instrumented_free(&made);
    hal_ir_kernel_destroy(kernel);
    return holds;
}

/* Elements are index + offset without overflow, whatever the type of the index. */
TEST(elements_out_of_range_are_found_at_the_ends_of_types)
{
    static const struct {
        hal_type type;
        uint64_t index;
        int64_t offset;
        uint32_t width;
        bool holds;
    } cases[] = {
        {HAL_TYPE_I32, 0x80000000, INT32_MIN, 1, false}, /* -2^32 */
        {HAL_TYPE_I32, 0x80000005, INT32_MIN, 4, false},
        {HAL_TYPE_I32, 0, INT32_MIN, 1, false},
        {HAL_TYPE_I32, 0x7fffffff, INT32_MIN, 1, false}, /* -1 */
        {HAL_TYPE_I32, 0x7fffffff, -INT32_MAX, 1, true},
        {HAL_TYPE_I32, 0x80000000, -INT32_MAX, 1, false},
        {HAL_TYPE_I32, 0x80000001, INT32_MAX, 1, true},
        {HAL_TYPE_I32, 0x80000000, INT32_MAX, 1, false}, /* -1 */
        {HAL_TYPE_I32, 0x7fffffff, INT32_MAX, 1, false},
        {HAL_TYPE_I32, 0xfffffffc, 4, 4, true},
        {HAL_TYPE_I32, 252, 0, 4, true},
        {HAL_TYPE_I32, 253, 0, 4, false},
        {HAL_TYPE_U32, 0xffffffff, 1, 1, false}, /* 2^32 */
        {HAL_TYPE_U32, 0, INT32_MIN, 1, false},
        {HAL_TYPE_U32, 0x80000000, INT32_MIN, 1, true},
        {HAL_TYPE_U32, 0x800000ff, INT32_MIN, 2, false},
        {HAL_TYPE_U32, 0x80000000, INT32_MAX, 1, false},
        {HAL_TYPE_U32, 0, INT32_MAX, 1, false},
        {HAL_TYPE_I64, UINT64_C(1) << 63, INT32_MIN, 1, false},
        {HAL_TYPE_I64, UINT64_MAX - INT32_MAX, INT32_MIN, 1, false}, /* -2^32 */
        {HAL_TYPE_I64, UINT64_C(1) << 31, INT32_MIN, 1, true},
        {HAL_TYPE_I64, INT64_MAX, INT32_MAX, 1, false},
        {HAL_TYPE_I64, UINT64_MAX - 3, 4, 4, true},
        {HAL_TYPE_U64, UINT64_MAX, 1, 1, false}, /* 2^64 */
        {HAL_TYPE_U64, 0, INT32_MIN, 1, false},
        {HAL_TYPE_U64, UINT64_C(1) << 31, INT32_MIN, 1, true},
        {HAL_TYPE_U64, UINT64_C(1) << 32, 0, 1, false},
    };
    for (size_t i = 0; i < 2 * (sizeof cases / sizeof cases[0]); i++) {
        const given input = {.index = cases[i / 2].index, .count = 256};
        assert_int_equal(
            is_in_range(cases[i / 2].type, cases[i / 2].offset, cases[i / 2].width, i % 2, &input),
            cases[i / 2].holds);
    }
    /* The most elements that a dispatch says it has. */
    const given last = {.index = INT32_MAX, .count = UINT32_MAX},
                least = {.index = 0x80000000, .count = UINT32_MAX};
    assert_true(is_in_range(HAL_TYPE_I32, INT32_MAX, 1, false, &last));
    assert_true(is_in_range(HAL_TYPE_I32, 0, 1, false, &last));
    assert_false(is_in_range(HAL_TYPE_I32, -1, 1, false, &least));
    assert_false(is_in_range(HAL_TYPE_I32, INT32_MIN, 1, false, &least));
}

/* A constant index is found right only where index + offset is, without overflow. */
TEST(constant_indices_at_the_ends_of_types_are_compared)
{
    static const char *const stores[] = {
        "%i = constant u64 0xffffffffffffffff\nstore s[%i + 1], %i\n",
        "%i = constant i64 -9223372036854775808\nstore s[%i - 1], %i\n",
        "%i = constant i64 9223372036854775807\nstore s[%i + 1], %i\n"};
    for (size_t i = 0; i < sizeof stores / sizeof stores[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "kernel k\nshared s %s 64\n%s", i == 0 ? "u64" : "i64",
                 stores[i]);
        hal_ir_kernel *kernel = ir_read(text);
        assert_int_equal(checked_count(kernel, HAL_CHECK_BOUNDS, HAL_IR_LT), 1);
        hal_ir_kernel_destroy(kernel);
    }
}

/* Shadow words of a binding are found by a number without a sign, where an I32 has too few. */
TEST(words_from_2_to_the_31_on_are_found_by_an_index_with_a_sign)
{
    static const hal_device_kind kinds[] = {HAL_DEVICE_DISCRETE, HAL_DEVICE_CPU};
    const given input = {.index = 0x50000001, .count = 0x60000000, .place = 0x1000};
    hal_ir_kernel *kernel = store_kernel(HAL_TYPE_U64, HAL_TYPE_I32, -1, 1, false);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        hal_device_info device = ir_device();
        hal_ir_instrumented made;
        uint32_t found = 0;
        device.kind = kinds[i];
        assert_ok(hal_ir_instrument(kernel, HAL_CHECK_RACE, &device, &made));
        for (uint32_t k = 0; k < made.kernel->record_count; k++) {
            const hal_ir_record *record = &made.kernel->records[k];
            const bool is_word = record->opcode == HAL_IR_ATOMIC || record->opcode == HAL_IR_STORE;
            if (is_word && record->aux == 2) { /* after y and the reports */
                assert_int_equal(made.kernel->records[record->a].type, HAL_TYPE_U32);
                assert_int_equal(value_of(&made, record->a, &input), 0xa0001000);
                found++;
            }
        }
        assert_int_equal(found, 1);
        hal_ir_instrumented_free(&made);
    }
    hal_ir_kernel_destroy(kernel);
}

/* Reports of many loads are as much code as those of two. */
TEST(reports_of_a_block_share_their_code)
{
    static const uint32_t checks[] = {HAL_CHECK_BOUNDS, HAL_CHECK_INIT,
                                      HAL_CHECK_BOUNDS | HAL_CHECK_INIT};
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        hal_ir_kernel *few = sum_kernel(2, "%%v%u = load f32 x[%%i%u] if %%in\n"),
                      *many = sum_kernel(LOADS / 2, "%%v%u = load f32 x[%%i%u] if %%in\n");
        const int opcodes[] = {HAL_IR_ATOMIC, HAL_IR_IF, HAL_IR_FOR};
        for (size_t k = 0; k < sizeof opcodes / sizeof opcodes[0]; k++) {
            assert_true(checked_count(few, checks[i], opcodes[k]) > 0);
            assert_int_equal(checked_count(many, checks[i], opcodes[k]),
                             checked_count(few, checks[i], opcodes[k]));
        }
        hal_ir_kernel_destroy(few);
        hal_ir_kernel_destroy(many);
    }
}

/* Records that one more load adds for bounds: four where it is right, the others in the code that
 * writes the report, most of which there is once, as there is what indices are compared with. */
TEST(one_more_access_adds_few_records)
{
    static const char *const loads[] = {"%%v%u = load f32 x[%%i%u] if %%in\n",
                                        "%%v%u = load f32 x[%%i%u + 3] if %%in\n",
                                        "%%v%u = load f32 x[%%i%u - 3] if %%in\n"};
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++) {
        hal_ir_kernel *few = sum_kernel(3, loads[i]), *many = sum_kernel(LOADS, loads[i]);
        const uint32_t own = (many->record_count - few->record_count) / (LOADS - 3);
        const uint32_t more =
            checked_count(many, HAL_CHECK_BOUNDS, -1) - checked_count(few, HAL_CHECK_BOUNDS, -1);
        assert_true(more <= (LOADS - 3) * (own + 11 + (i == 2)));
        assert_int_equal(checked_count(many, HAL_CHECK_BOUNDS, HAL_IR_SUB),
                         checked_count(few, HAL_CHECK_BOUNDS, HAL_IR_SUB));
        hal_ir_kernel_destroy(few);
        hal_ir_kernel_destroy(many);
    }
}

UNIT_MAIN(NULL, NULL)
