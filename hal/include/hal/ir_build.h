/* Making kernels: the builder, text, the verifier and the hash of the IR.
 *
 * A kernel is an ordinary C function that calls a builder; tile sizes, unrolling and types are C
 * variables while it runs. Errors are sticky: the first one is kept, later calls do nothing and
 * give HAL_IR_NONE, and hal_ir_builder_finish reports it, so calls can be nested without checks:
 *
 *     hal_ir_value y = hal_ir_fma(b, x, hal_ir_load(b, weights, i), hal_ir_f32(b, 1.0f));
 *
 * A builder belongs to one thread at a time. A finished kernel is plain data that never changes
 * and may be read by any thread. docs/kernels.md teaches the whole. */
#ifndef HAL_IR_BUILD_H
#define HAL_IR_BUILD_H

#include <hal/ir.h>
#include <hal/status.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hal_ir_builder hal_ir_builder;

/* The number of a memory: what hal_ir_binding and hal_ir_shared give. */
typedef uint32_t hal_ir_memory_id;

/* ---- The builder ---- */

/* Begins a kernel with groups of 1 work-item. `name` shows in messages, dumps and traces; letters,
 * digits and underscores, not beginning with a digit.
 * Ownership: the caller's, until hal_ir_builder_destroy. Threads: any.
 * Errors: INVALID_ARGUMENT for a null or unfit name, OUT_OF_MEMORY. */
HAL_API hal_status hal_ir_builder_create(const char *name, hal_ir_builder **builder);

/* Begins a fragment: an expression from hal_ir_input to hal_ir_output, without memory, variables,
 * ids, control or barriers.
 * Ownership, Threads, Errors: as hal_ir_builder_create. */
HAL_API hal_status hal_ir_builder_create_fragment(const char *name, hal_ir_builder **builder);

/* The records that follow come from line `line` of `file`: findings of HAL_SANITIZE name it. `file`
 * stays valid until the process ends; null: not known. HAL_IR_AT is the builder, for the lines that
 * want it: hal_ir_store(HAL_IR_AT(b), out, i, x).
 * Threads: the builder's. Errors: none. */
HAL_API void hal_ir_set_position(hal_ir_builder *builder, const char *file, uint32_t line);
#define HAL_IR_AT(builder) (hal_ir_set_position((builder), __FILE__, __LINE__), (builder))

/* Ends a builder, finished or not; null is allowed.
 * Threads: the builder's. Errors: none. */
HAL_API void hal_ir_builder_destroy(hal_ir_builder *builder);

/* Verifies the kernel (hal_ir_verify) and returns it. The builder can then only be destroyed.
 * Ownership: the kernel is the caller's, until hal_ir_kernel_destroy. Threads: the builder's.
 * Errors: the first error of any earlier call on the builder, INVALID_IR, OUT_OF_MEMORY. */
HAL_API hal_status hal_ir_builder_finish(hal_ir_builder *builder, hal_ir_kernel **kernel);

/* The status of the first failed call on the builder, HAL_OK when there was none.
 * Threads: the builder's. Errors: none. */
HAL_API hal_status hal_ir_builder_get_status(const hal_ir_builder *builder);

/* Frees a kernel that hal returned; null is allowed.
 * Threads: any, when no other thread reads the kernel. Errors: none. */
HAL_API void hal_ir_kernel_destroy(hal_ir_kernel *kernel);

/* An independent copy of a kernel.
 * Ownership: the caller's, until hal_ir_kernel_destroy. Threads: any. Errors: INVALID_ARGUMENT,
 * INVALID_IR for an unknown size, OUT_OF_MEMORY. */
HAL_API hal_status hal_ir_kernel_copy(const hal_ir_kernel *kernel, hal_ir_kernel **copy);

/* ---- Declarations; before the first operation or between operations ---- */

/* Sets the work-items of a group in x, y and z; their product is limited by the device.
 * Threads: the builder's. Errors: sticky, INVALID_ARGUMENT for a zero. */
HAL_API void hal_ir_group_size(hal_ir_builder *builder, uint32_t x, uint32_t y, uint32_t z);

/* Hints how many groups a compute unit should hold at once; 0 for no wish.
 * Threads: the builder's. Errors: sticky. */
HAL_API void hal_ir_groups_per_unit(hal_ir_builder *builder, uint32_t groups);

/* Declares the next binding: memory that each dispatch names. At most HAL_IR_MAX_BINDINGS, all
 * before the first shared array. Names differ from those of other memories and scalars. Two
 * bindings of one dispatch may be the same memory only if both only read.
 * Threads: the builder's. Errors: sticky, INVALID_ARGUMENT. */
HAL_API hal_ir_memory_id hal_ir_binding(hal_ir_builder *builder, const char *name, hal_type type,
                                        uint32_t access);

/* Declares an array of `count` elements in the group's shared memory; not initialised.
 * Threads: the builder's. Errors: sticky, INVALID_ARGUMENT. */
HAL_API hal_ir_memory_id hal_ir_shared(hal_ir_builder *builder, const char *name, hal_type type,
                                       uint32_t count);

/* Declares the next scalar of the dispatch's block and returns its value. Each is at the next
 * multiple of its own size: the layout of a C struct with the same members. I32, U32, I64, U64,
 * F32 or F64. The block's bytes are a multiple of the largest member, as sizeof of that struct.
 * Threads: the builder's. Errors: sticky, INVALID_ARGUMENT. */
HAL_API hal_ir_value hal_ir_scalar_value(hal_ir_builder *builder, const char *name, hal_type type);

/* ---- Constants and ids ----
 *
 * Constants, ids, scalars and inputs are created once each at the start of the kernel, whichever
 * block asks for them, so all blocks may use them. */

/* Constants of each type. hal_ir_number converts a double to any value type with one rounding:
 * integers to the nearest whole number with saturation, NaN to 0.
 * Threads: the builder's. Errors: sticky. */
HAL_API hal_ir_value hal_ir_f32(hal_ir_builder *builder, float value);
HAL_API hal_ir_value hal_ir_f64(hal_ir_builder *builder, double value);
HAL_API hal_ir_value hal_ir_i32(hal_ir_builder *builder, int32_t value);
HAL_API hal_ir_value hal_ir_u32(hal_ir_builder *builder, uint32_t value);
HAL_API hal_ir_value hal_ir_i64(hal_ir_builder *builder, int64_t value);
HAL_API hal_ir_value hal_ir_u64(hal_ir_builder *builder, uint64_t value);
HAL_API hal_ir_value hal_ir_bool(hal_ir_builder *builder, int value);
HAL_API hal_ir_value hal_ir_number(hal_ir_builder *builder, hal_type type, double value);

/* LOCAL_ID, GROUP_ID or GROUP_COUNT in `dimension` 0..2, as u32; LANE_ID.
 * Threads: the builder's. Errors: sticky. */
HAL_API hal_ir_value hal_ir_id(hal_ir_builder *builder, uint32_t opcode, uint32_t dimension);

/* group id * group size + local id, in `dimension` 0..2: the place of the work-item in the grid.
 * Call it after hal_ir_group_size. Threads: the builder's. Errors: sticky. */
HAL_API hal_ir_value hal_ir_global_id(hal_ir_builder *builder, uint32_t dimension);

/* ---- Operations ---- */

/* An operation with one, two or three values: arithmetic, bits, comparisons, SELECT and the
 * transcendental functions. The result's type follows from the operands'.
 * Threads: the builder's. Errors: sticky, INVALID_IR where types do not fit. */
HAL_API hal_ir_value hal_ir_unary(hal_ir_builder *builder, uint32_t opcode, hal_ir_value x);
HAL_API hal_ir_value hal_ir_binary(hal_ir_builder *builder, uint32_t opcode, hal_ir_value x,
                                   hal_ir_value y);
HAL_API hal_ir_value hal_ir_ternary(hal_ir_builder *builder, uint32_t opcode, hal_ir_value x,
                                    hal_ir_value y, hal_ir_value z);

/* A transcendental function with flags (HAL_IR_FAST); `y` is HAL_IR_NONE except for POW.
 * Threads: the builder's. Errors: sticky, INVALID_IR. */
HAL_API hal_ir_value hal_ir_math(hal_ir_builder *builder, uint32_t opcode, hal_ir_value x,
                                 hal_ir_value y, uint32_t flags);

/* CAST, BITCAST to a value type; NARROW to the value that memory of `storage` would hold. Returns x
 * where the value does not change.
 * Threads: the builder's. Errors: sticky, INVALID_IR. */
HAL_API hal_ir_value hal_ir_cast(hal_ir_builder *builder, hal_type type, hal_ir_value x);
HAL_API hal_ir_value hal_ir_bitcast(hal_ir_builder *builder, hal_type type, hal_ir_value x);
HAL_API hal_ir_value hal_ir_narrow(hal_ir_builder *builder, hal_type storage, hal_ir_value x);

/* A vector of `width` 2, 4 or 8 from as many scalars of one type, and one element of a vector.
 * Threads: the builder's. Errors: sticky, INVALID_IR. */
HAL_API hal_ir_value hal_ir_pack(hal_ir_builder *builder, uint32_t width,
                                 const hal_ir_value *elements);
HAL_API hal_ir_value hal_ir_extract(hal_ir_builder *builder, hal_ir_value vector,
                                    uint32_t element);

/* Reads or writes element `index` (integer); the long forms take a width (the address a multiple
 * of it), an immediate offset in elements and a guard (HAL_IR_NONE for none): where the guard is
 * false no memory is accessed and a load returns 0.
 * Threads: the builder's. Errors: sticky, INVALID_IR for types, INVALID_ARGUMENT for the access. */
HAL_API hal_ir_value hal_ir_load(hal_ir_builder *builder, hal_ir_memory_id memory,
                                 hal_ir_value index);
HAL_API hal_ir_value hal_ir_load_wide(hal_ir_builder *builder, hal_ir_memory_id memory,
                                      hal_ir_value index, int32_t offset, uint32_t width,
                                      hal_ir_value guard);
HAL_API void hal_ir_store(hal_ir_builder *builder, hal_ir_memory_id memory, hal_ir_value index,
                          hal_ir_value value);
HAL_API void hal_ir_store_wide(hal_ir_builder *builder, hal_ir_memory_id memory,
                               hal_ir_value index, int32_t offset, hal_ir_value guard,
                               hal_ir_value value);

/* An atomic operation of kind HAL_IR_ATOMIC_* on one element; returns the old value. `comparand` is
 * HAL_IR_NONE except for COMPARE_EXCHANGE. Order between work-items is relaxed.
 * Threads: the builder's. Errors: sticky, INVALID_IR. */
HAL_API hal_ir_value hal_ir_atomic(hal_ir_builder *builder, uint32_t kind,
                                   hal_ir_memory_id memory, hal_ir_value index,
                                   hal_ir_value guard, hal_ir_value operand,
                                   hal_ir_value comparand);

/* Copies `width` elements from a binding to shared memory of the same type while the work-item
 * continues. They are there after hal_ir_async_wait of the set they were committed in, and for the
 * other work-items after a barrier that follows it.
 * Threads: the builder's. Errors: sticky, INVALID_IR. */
HAL_API void hal_ir_async_copy(hal_ir_builder *builder, hal_ir_memory_id shared,
                               hal_ir_value shared_index, hal_ir_memory_id binding,
                               hal_ir_value binding_index, uint32_t width, hal_ir_value guard);
HAL_API void hal_ir_async_commit(hal_ir_builder *builder);
HAL_API void hal_ir_async_wait(hal_ir_builder *builder, uint32_t sets_in_flight);

/* A variable with an initial value, reading it and writing it. The result of hal_ir_var names the
 * variable and is no value.
 * Threads: the builder's. Errors: sticky, INVALID_IR. */
HAL_API hal_ir_value hal_ir_var(hal_ir_builder *builder, hal_ir_value initial);
HAL_API hal_ir_value hal_ir_get(hal_ir_builder *builder, hal_ir_value variable);
HAL_API void hal_ir_set(hal_ir_builder *builder, hal_ir_value variable, hal_ir_value value);

/* for (i = start; i < end; i += step), i32 or u32, step > 0; returns i, which is valid in the
 * loop only. The last i + step must not overflow the type. hal_ir_end closes the block.
 * Threads: the builder's. Errors: sticky, INVALID_IR. */
HAL_API hal_ir_value hal_ir_for(hal_ir_builder *builder, hal_ir_value start, hal_ir_value end,
                                hal_ir_value step);
HAL_API void hal_ir_if(hal_ir_builder *builder, hal_ir_value condition);
HAL_API void hal_ir_else(hal_ir_builder *builder);
HAL_API void hal_ir_end(hal_ir_builder *builder);

/* Waits until all work-items of the group have reached it; only under uniform control.
 * Threads: the builder's. Errors: sticky. */
HAL_API void hal_ir_barrier(hal_ir_builder *builder);

/* Subgroup operations, under uniform control: the value of another lane; of lane LANE_ID xor mask;
 * the sum, minimum or maximum over the subgroup's lanes, in butterfly order (lane xor 1, 2, 4 and
 * so on), so that devices with the same subgroup width compute the same bits.
 * Threads: the builder's. Errors: sticky, INVALID_IR. */
HAL_API hal_ir_value hal_ir_shuffle(hal_ir_builder *builder, hal_ir_value x, hal_ir_value lane);
HAL_API hal_ir_value hal_ir_shuffle_xor(hal_ir_builder *builder, hal_ir_value x, uint32_t mask);
HAL_API hal_ir_value hal_ir_subgroup_reduce(hal_ir_builder *builder, uint32_t kind,
                                            hal_ir_value x);

/* A B + C of matrices that are distributed over the 32 lanes of a subgroup, see
 * HAL_IR_MATRIX_MULTIPLY in ir.h: `type` (F16, BF16, F32 or F64) is that of A's and B's elements, a
 * and b are vectors of U32, c and the result of F32; with F64 all are of F64. On devices whose info
 * has the type in matrix_types.
 * Threads: the builder's. Errors: sticky, INVALID_IR. */
HAL_API hal_ir_value hal_ir_matrix_multiply(hal_ir_builder *builder, hal_type type, hal_ir_value a,
                                            hal_ir_value b, hal_ir_value c);

/* ---- Fragments ---- */

/* Input `number` of a fragment, of a value type; output `number` = value. Numbers count from 0
 * without gaps.
 * Threads: the builder's. Errors: sticky, INVALID_ARGUMENT in a builder that makes no fragment. */
HAL_API hal_ir_value hal_ir_input(hal_ir_builder *builder, uint32_t number, hal_type type);
HAL_API void hal_ir_output(hal_ir_builder *builder, uint32_t number, hal_ir_value value);

/* Copies a fragment's operations to where the builder stands: inputs are replaced by `inputs`
 * (types as declared), the values of its outputs are written to `outputs`, which may be `inputs`.
 * Threads: the builder's. Errors: sticky, INVALID_ARGUMENT for counts or types that differ. */
HAL_API void hal_ir_splice(hal_ir_builder *builder, const hal_ir_kernel *fragment,
                           const hal_ir_value *inputs, uint32_t input_count,
                           hal_ir_value *outputs, uint32_t output_count);

/* The type of a value of the builder; HAL_TYPE_NONE for HAL_IR_NONE.
 * Threads: the builder's. Errors: none. */
HAL_API hal_type hal_ir_type_of(const hal_ir_builder *builder, hal_ir_value value);

/* ---- Whole kernels ---- */

/* Checks a kernel or fragment that may come from anywhere, even from hostile bytes as long as the
 * counts are those of the arrays: structure, types, scopes, uniformity, limits of the IR.
 * Threads: any. Errors: INVALID_IR, with record number and opcode in the message. */
HAL_API hal_status hal_ir_verify(const hal_ir_kernel *kernel);

/* A 128-bit hash of all that a verified kernel means; names do not count. Stable between processes
 * and versions of hal, unless the meaning of existing records changes.
 * Threads: any. Errors: none. */
HAL_API void hal_ir_hash(const hal_ir_kernel *kernel, uint64_t hash[2]);

/* Iterations of loops that a work-item executes, as hal_device_info.max_loop_iterations counts
 * them: an execution of a FOR with constant bounds counts its iterations and one more, each with
 * the loops in it; with other bounds, one iteration and one more. Of IF and ELSE the larger counts.
 * A REM of floats counts the loop by which plugins may compute it. UINT64_MAX: that many or more.
 * The kernel or fragment is one that verifies. Threads: any. Errors: none. */
HAL_API uint64_t hal_ir_loop_iterations(const hal_ir_kernel *kernel);

/* The kernel as text, which hal_ir_parse reads back to the same records, hash and text (constants
 * come back in the order of their first use, which is that of every kernel of the builder).
 * Ownership: *text is the caller's, freed with free(). Threads: any.
 * Errors: OUT_OF_MEMORY, INVALID_ARGUMENT, INVALID_IR for a kernel that does not verify. */
HAL_API hal_status hal_ir_print(const hal_ir_kernel *kernel, char **text);

/* Reads text of hal_ir_print, or written by hand, and verifies the kernel. `bytes` counts without
 * a closing zero.
 * Ownership: *kernel is the caller's, until hal_ir_kernel_destroy. Threads: any.
 * Errors: INVALID_IR with line and column in the message, OUT_OF_MEMORY. */
HAL_API hal_status hal_ir_parse(const char *text, size_t bytes, hal_ir_kernel **kernel);

/* The name of an opcode as in text, such as "add"; null for an unknown number.
 * Ownership: a constant string. Threads: any. Errors: none. */
HAL_API const char *hal_ir_opcode_name(uint32_t opcode);

/* The name of a type as in text, such as "f32"; null for an unknown number.
 * Ownership: a constant string. Threads: any. Errors: none. */
HAL_API const char *hal_type_name(hal_type type);

/* ---- Short names for the operations that are used most ---- */

/* hal_ir_neg(b, x), hal_ir_add(b, x, y), hal_ir_fma(b, x, y, z) and so on: one function for each
 * opcode of hal/ir_opcodes.h that has an ARITY, named hal_ir_<name>. The table says what each
 * computes.
 * Threads: the builder's. Errors: sticky, INVALID_IR where types do not fit. */
#define HAL_IR_WRAP_UNARY_(OPCODE, function)                                       \
    static inline hal_ir_value function(hal_ir_builder *b, hal_ir_value x)         \
    {                                                                              \
        return hal_ir_unary(b, OPCODE, x);                                         \
    }
#define HAL_IR_WRAP_BINARY_(OPCODE, function)                                               \
    static inline hal_ir_value function(hal_ir_builder *b, hal_ir_value x, hal_ir_value y)  \
    {                                                                                       \
        return hal_ir_binary(b, OPCODE, x, y);                                              \
    }
#define HAL_IR_WRAP_TERNARY_(OPCODE, function)                                             \
    static inline hal_ir_value function(hal_ir_builder *b, hal_ir_value x, hal_ir_value y, \
                                        hal_ir_value z)                                    \
    {                                                                                      \
        return hal_ir_ternary(b, OPCODE, x, y, z);                                         \
    }
#define HAL_IR_WRAP_OTHER_(OPCODE, function)
#define HAL_IR_WRAP_(NAME, number, since, name, ARITY, CLASS, TYPES, TRAITS, syntax, operands, \
                     result)                                                                   \
    HAL_IR_WRAP_##ARITY##_(HAL_IR_##NAME, hal_ir_##name)
/* The expansion. Threads: the builder's. */
HAL_IR_OPCODE_TABLE(HAL_IR_WRAP_)

/* x > y, as y < x. */
static inline hal_ir_value hal_ir_gt(hal_ir_builder *b, hal_ir_value x, hal_ir_value y)
{
    return hal_ir_binary(b, HAL_IR_LT, y, x);
}
/* x >= y, as y <= x. */
static inline hal_ir_value hal_ir_ge(hal_ir_builder *b, hal_ir_value x, hal_ir_value y)
{
    return hal_ir_binary(b, HAL_IR_LE, y, x);
}
#ifdef __cplusplus
}
#endif
#endif
