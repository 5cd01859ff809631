/* The steps of one instruction set: the includer is compiled with that set's flags and
 * defines CPU_LANES_NAME (a string) and CPU_LANES_TABLE (the function to define).
 * Every step is a plain loop over lanes, which the compiler turns into vectors. */
#include "lanes/check.h"
#include "lanes/steps.h"

#include <math.h>
#include <string.h>

/* Operands and result of a step may share a slot, and a lane never reads another one, so the
 * compiler may ignore overlap. The count is read once: the compiler has to assume that a store in
 * the loop changes it, and such a loop has no vectors. */
#if defined(__clang__)
#define EACH_LANE(count)                                                                          \
    _Pragma("clang loop vectorize(assume_safety)")                                                \
    for (uint32_t i = 0, end_ = (count); i < end_; i++)
#else
#define EACH_LANE(count) _Pragma("GCC ivdep") for (uint32_t i = 0, end_ = (count); i < end_; i++)
#endif

/* Lanes of a step; tells the compiler that blocks are whole. */
static inline uint32_t lanes_of(const cpu_step *step)
{
    return step->n & ~(uint32_t)(CPU_BLOCK - 1);
}

#include "lanes/scalar.inl"
#include "lanes/arithmetic.inl"
#include "lanes/math.inl"
#include "lanes/memory.inl"
#include "lanes/check.inl"
#include "lanes/control.inl"

/* Functions are named opcode_TYPE; a row of a table names the same function again. */
#define UNARY_ENTRY(op, T, ...) table->unary[HAL_IR_##op][CPU_##T] = op##_##T;
#define BINARY_ENTRY(op, T, ...)                                                                  \
    table->binary[HAL_IR_##op][CPU_##T][0] = op##_##T##_0;                                        \
    table->binary[HAL_IR_##op][CPU_##T][1] = op##_##T##_1;                                        \
    table->binary[HAL_IR_##op][CPU_##T][2] = op##_##T##_2;
#define TERNARY_ENTRY(op, T, ...)                                                                 \
    table->ternary[CPU_TERNARY_##op][CPU_##T][0] = op##_##T##_0;                                  \
    table->ternary[CPU_TERNARY_##op][CPU_##T][1] = op##_##T##_1;                                  \
    table->ternary[CPU_TERNARY_##op][CPU_##T][2] = op##_##T##_2;                                  \
    table->ternary[CPU_TERNARY_##op][CPU_##T][3] = op##_##T##_3;                                  \
    table->ternary[CPU_TERNARY_##op][CPU_##T][4] = op##_##T##_4;                                  \
    table->ternary[CPU_TERNARY_##op][CPU_##T][5] = op##_##T##_5;                                  \
    table->ternary[CPU_TERNARY_##op][CPU_##T][6] = op##_##T##_6;
#define CAST_ENTRY(from, to, ...) table->cast[CPU_##from][CPU_##to] = cast_##from##_##to;
#define NARROW_ENTRY(T, ...) table->narrow[HAL_TYPE_##T] = narrow_##T;
#define MEMORY_ENTRY(T, ...)                                                                      \
    table->load[HAL_TYPE_##T] = load_##T;                                                         \
    table->load_uniform[HAL_TYPE_##T] = load_uniform_##T;                                         \
    table->store[HAL_TYPE_##T] = store_##T;
#define ATOMIC_ENTRY(T, ...) table->atomic[HAL_TYPE_##T] = atomic_##T;
#define MOVE_ENTRY(T, ...)                                                                        \
    table->spread[CPU_##T] = spread_##T;                                                          \
    table->copy[CPU_##T] = copy_##T;                                                              \
    table->blend[CPU_##T] = blend_##T;                                                            \
    table->scalar[CPU_##T] = scalar_##T;                                                          \
    table->shuffle[CPU_##T] = shuffle_##T;                                                        \
    table->shuffle_xor[CPU_##T] = shuffle_xor_##T;
#define INDEX_ENTRY(T, ...)                                                                       \
    table->affine[CPU_##T] = affine_##T;                                                          \
    table->within[CPU_##T] = within_##T;                                                          \
    table->beyond[CPU_##T] = beyond_##T;
#define REDUCE_ENTRY(op, T, ...) table->reduce[HAL_IR_REDUCE_##op][CPU_##T] = reduce_##op##_##T;

static void fill_control(cpu_lanes *table)
{
    table->view = view;
    table->address = address;
    table->check = check;
    table->check_uniform = check_uniform;
    table->group_id = group_id;
    table->group_count = group_count;
    table->both = both;
    table->choose = choose;
    table->branch = branch;
    table->jump = jump;
    table->if_masked = if_masked;
    table->else_masked = else_masked;
    table->loop_begin = loop_begin;
    table->loop_next = loop_next;
    table->mask_begin = mask_begin;
    table->mask_next = mask_next;
    table->end = end;
}

static void fill(cpu_lanes *table)
{
    table->name = CPU_LANES_NAME;
    EACH_UNARY(UNARY_ENTRY)
    EACH_BINARY(BINARY_ENTRY)
    EACH_TERNARY(TERNARY_ENTRY)
    EACH_CAST(CAST_ENTRY)
    EACH_NARROW(NARROW_ENTRY)
    EACH_MATH(UNARY_ENTRY)
    EACH_MATH_SPLIT(UNARY_ENTRY)
    EACH_MATH_ANGLE(UNARY_ENTRY)
    EACH_MATH_BINARY(BINARY_ENTRY)
    EACH_STORAGE(MEMORY_ENTRY)
    EACH_ATOMIC(ATOMIC_ENTRY)
    EACH_VALUE(MOVE_ENTRY)
    EACH_INDEX(INDEX_ENTRY)
    EACH_REDUCE(REDUCE_ENTRY)
    fill_control(table);
}

/* Threads: one at a time; devices are opened so. */
const cpu_lanes *CPU_LANES_TABLE(void)
{
    static cpu_lanes table;
    if (!table.name) {
        fill(&table);
    }
    return &table;
}
