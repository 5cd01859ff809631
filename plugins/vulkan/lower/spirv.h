/* The part of the SPIR-V specification that the lowering writes: numbers of instructions,
 * capabilities and the like, under the specification's own names. */
#ifndef PLUGINS_VULKAN_LOWER_SPIRV_H
#define PLUGINS_VULKAN_LOWER_SPIRV_H

enum { SPV_MAGIC = 0x07230203, SPV_VERSION_1_5 = 0x00010500 };

/* Instructions. X(NAME, number, Name, operands): SPV_OP_<NAME> is the number, Name the one of the
 * specification. Operands, for text: t type, r result, i id, n number, s text; the last one stands
 * for all that follow. Arithmetic, comparisons and bits of scalars are complete (126 to 205), so
 * that an opcode of the IR finds its instruction here; of the rest there is what is written. */
#define SPV_INSTRUCTIONS(X)                                                 \
    X(NAME, 5, Name, "is")                                                  \
    X(EXTENSION, 10, Extension, "s")                                        \
    X(EXT_INST_IMPORT, 11, ExtInstImport, "rs")                             \
    X(EXT_INST, 12, ExtInst, "trini")                                       \
    X(MEMORY_MODEL, 14, MemoryModel, "n")                                   \
    X(ENTRY_POINT, 15, EntryPoint, "nisi")                                  \
    X(EXECUTION_MODE, 16, ExecutionMode, "in")                              \
    X(CAPABILITY, 17, Capability, "n")                                      \
    X(TYPE_VOID, 19, TypeVoid, "r")                                         \
    X(TYPE_BOOL, 20, TypeBool, "r")                                         \
    X(TYPE_INT, 21, TypeInt, "rn")                                          \
    X(TYPE_FLOAT, 22, TypeFloat, "rn")                                      \
    X(TYPE_VECTOR, 23, TypeVector, "rin")                                   \
    X(TYPE_ARRAY, 28, TypeArray, "ri")                                      \
    X(TYPE_STRUCT, 30, TypeStruct, "ri")                                    \
    X(TYPE_POINTER, 32, TypePointer, "rni")                                 \
    X(TYPE_FUNCTION, 33, TypeFunction, "ri")                                \
    X(CONSTANT_TRUE, 41, ConstantTrue, "tr")                                \
    X(CONSTANT_FALSE, 42, ConstantFalse, "tr")                              \
    X(CONSTANT, 43, Constant, "trn")                                        \
    X(FUNCTION, 54, Function, "trni")                                       \
    X(FUNCTION_END, 56, FunctionEnd, "")                                    \
    X(VARIABLE, 59, Variable, "trn")                                        \
    X(LOAD, 61, Load, "trin")                                               \
    X(STORE, 62, Store, "iin")                                              \
    X(ACCESS_CHAIN, 65, AccessChain, "tri")                                 \
    X(DECORATE, 71, Decorate, "in")                                         \
    X(MEMBER_DECORATE, 72, MemberDecorate, "in")                            \
    X(COMPOSITE_CONSTRUCT, 80, CompositeConstruct, "tri")                   \
    X(COMPOSITE_EXTRACT, 81, CompositeExtract, "trin")                      \
    X(CONVERT_F_TO_U, 109, ConvertFToU, "tri")                              \
    X(CONVERT_F_TO_S, 110, ConvertFToS, "tri")                              \
    X(CONVERT_S_TO_F, 111, ConvertSToF, "tri")                              \
    X(CONVERT_U_TO_F, 112, ConvertUToF, "tri")                              \
    X(U_CONVERT, 113, UConvert, "tri")                                      \
    X(S_CONVERT, 114, SConvert, "tri")                                      \
    X(F_CONVERT, 115, FConvert, "tri")                                      \
    X(CONVERT_U_TO_PTR, 120, ConvertUToPtr, "tri")                          \
    X(BITCAST, 124, Bitcast, "tri")                                         \
    X(S_NEGATE, 126, SNegate, "tri")                                        \
    X(F_NEGATE, 127, FNegate, "tri")                                        \
    X(I_ADD, 128, IAdd, "tri")                                              \
    X(F_ADD, 129, FAdd, "tri")                                              \
    X(I_SUB, 130, ISub, "tri")                                              \
    X(F_SUB, 131, FSub, "tri")                                              \
    X(I_MUL, 132, IMul, "tri")                                              \
    X(F_MUL, 133, FMul, "tri")                                              \
    X(U_DIV, 134, UDiv, "tri")                                              \
    X(S_DIV, 135, SDiv, "tri")                                              \
    X(F_DIV, 136, FDiv, "tri")                                              \
    X(U_MOD, 137, UMod, "tri")                                              \
    X(S_REM, 138, SRem, "tri")                                              \
    X(S_MOD, 139, SMod, "tri")                                              \
    X(F_REM, 140, FRem, "tri")                                              \
    X(F_MOD, 141, FMod, "tri")                                              \
    X(I_ADD_CARRY, 149, IAddCarry, "tri")                                   \
    X(I_SUB_BORROW, 150, ISubBorrow, "tri")                                 \
    X(U_MUL_EXTENDED, 151, UMulExtended, "tri")                             \
    X(S_MUL_EXTENDED, 152, SMulExtended, "tri")                             \
    X(IS_NAN, 156, IsNan, "tri")                                            \
    X(IS_INF, 157, IsInf, "tri")                                            \
    X(LOGICAL_EQUAL, 164, LogicalEqual, "tri")                              \
    X(LOGICAL_NOT_EQUAL, 165, LogicalNotEqual, "tri")                       \
    X(LOGICAL_OR, 166, LogicalOr, "tri")                                    \
    X(LOGICAL_AND, 167, LogicalAnd, "tri")                                  \
    X(LOGICAL_NOT, 168, LogicalNot, "tri")                                  \
    X(SELECT, 169, Select, "tri")                                           \
    X(I_EQUAL, 170, IEqual, "tri")                                          \
    X(I_NOT_EQUAL, 171, INotEqual, "tri")                                   \
    X(U_GREATER_THAN, 172, UGreaterThan, "tri")                             \
    X(S_GREATER_THAN, 173, SGreaterThan, "tri")                             \
    X(U_GREATER_THAN_EQUAL, 174, UGreaterThanEqual, "tri")                  \
    X(S_GREATER_THAN_EQUAL, 175, SGreaterThanEqual, "tri")                  \
    X(U_LESS_THAN, 176, ULessThan, "tri")                                   \
    X(S_LESS_THAN, 177, SLessThan, "tri")                                   \
    X(U_LESS_THAN_EQUAL, 178, ULessThanEqual, "tri")                        \
    X(S_LESS_THAN_EQUAL, 179, SLessThanEqual, "tri")                        \
    X(F_ORD_EQUAL, 180, FOrdEqual, "tri")                                   \
    X(F_UNORD_EQUAL, 181, FUnordEqual, "tri")                               \
    X(F_ORD_NOT_EQUAL, 182, FOrdNotEqual, "tri")                            \
    X(F_UNORD_NOT_EQUAL, 183, FUnordNotEqual, "tri")                        \
    X(F_ORD_LESS_THAN, 184, FOrdLessThan, "tri")                            \
    X(F_UNORD_LESS_THAN, 185, FUnordLessThan, "tri")                        \
    X(F_ORD_GREATER_THAN, 186, FOrdGreaterThan, "tri")                      \
    X(F_UNORD_GREATER_THAN, 187, FUnordGreaterThan, "tri")                  \
    X(F_ORD_LESS_THAN_EQUAL, 188, FOrdLessThanEqual, "tri")                 \
    X(F_UNORD_LESS_THAN_EQUAL, 189, FUnordLessThanEqual, "tri")             \
    X(F_ORD_GREATER_THAN_EQUAL, 190, FOrdGreaterThanEqual, "tri")           \
    X(F_UNORD_GREATER_THAN_EQUAL, 191, FUnordGreaterThanEqual, "tri")       \
    X(SHIFT_RIGHT_LOGICAL, 194, ShiftRightLogical, "tri")                   \
    X(SHIFT_RIGHT_ARITHMETIC, 195, ShiftRightArithmetic, "tri")             \
    X(SHIFT_LEFT_LOGICAL, 196, ShiftLeftLogical, "tri")                     \
    X(BITWISE_OR, 197, BitwiseOr, "tri")                                    \
    X(BITWISE_XOR, 198, BitwiseXor, "tri")                                  \
    X(BITWISE_AND, 199, BitwiseAnd, "tri")                                  \
    X(NOT, 200, Not, "tri")                                                 \
    X(BIT_FIELD_INSERT, 201, BitFieldInsert, "tri")                         \
    X(BIT_FIELD_S_EXTRACT, 202, BitFieldSExtract, "tri")                    \
    X(BIT_FIELD_U_EXTRACT, 203, BitFieldUExtract, "tri")                    \
    X(BIT_REVERSE, 204, BitReverse, "tri")                                  \
    X(BIT_COUNT, 205, BitCount, "tri")                                      \
    X(CONTROL_BARRIER, 224, ControlBarrier, "i")                            \
    X(ATOMIC_EXCHANGE, 229, AtomicExchange, "tri")                          \
    X(ATOMIC_COMPARE_EXCHANGE, 230, AtomicCompareExchange, "tri")           \
    X(ATOMIC_I_ADD, 234, AtomicIAdd, "tri")                                 \
    X(ATOMIC_S_MIN, 236, AtomicSMin, "tri")                                 \
    X(ATOMIC_U_MIN, 237, AtomicUMin, "tri")                                 \
    X(ATOMIC_S_MAX, 238, AtomicSMax, "tri")                                 \
    X(ATOMIC_U_MAX, 239, AtomicUMax, "tri")                                 \
    X(ATOMIC_AND, 240, AtomicAnd, "tri")                                    \
    X(ATOMIC_OR, 241, AtomicOr, "tri")                                      \
    X(ATOMIC_XOR, 242, AtomicXor, "tri")                                    \
    X(PHI, 245, Phi, "tri")                                                 \
    X(LOOP_MERGE, 246, LoopMerge, "iin")                                    \
    X(SELECTION_MERGE, 247, SelectionMerge, "in")                           \
    X(LABEL, 248, Label, "r")                                               \
    X(BRANCH, 249, Branch, "i")                                             \
    X(BRANCH_CONDITIONAL, 250, BranchConditional, "i")                      \
    X(RETURN, 253, Return, "")                                              \
    X(GROUP_NON_UNIFORM_SHUFFLE, 345, GroupNonUniformShuffle, "tri")        \
    X(GROUP_NON_UNIFORM_SHUFFLE_XOR, 346, GroupNonUniformShuffleXor, "tri") \
    X(TYPE_COOPERATIVE_MATRIX, 4456, TypeCooperativeMatrixKHR, "ri")        \
    X(COOPERATIVE_MATRIX_MUL_ADD, 4459, CooperativeMatrixMulAddKHR, "tri")

#define SPV_INSTRUCTION_CONSTANT_(NAME, number, ...) SPV_OP_##NAME = number,
enum { SPV_INSTRUCTIONS(SPV_INSTRUCTION_CONSTANT_) SPV_OP_END };

/* Instructions of the set GLSL.std.450. */
enum {
    SPV_GLSL_ROUND_EVEN = 2,
    SPV_GLSL_TRUNC = 3,
    SPV_GLSL_FLOOR = 8,
    SPV_GLSL_SIN = 13,
    SPV_GLSL_COS = 14,
    SPV_GLSL_TAN = 15,
    SPV_GLSL_ATAN = 18,
    SPV_GLSL_TANH = 21,
    SPV_GLSL_POW = 26,
    SPV_GLSL_EXP = 27,
    SPV_GLSL_LOG = 28,
    SPV_GLSL_EXP2 = 29,
    SPV_GLSL_LOG2 = 30,
    SPV_GLSL_SQRT = 31,
    SPV_GLSL_INVERSE_SQRT = 32,
    SPV_GLSL_FMA = 50,
    SPV_GLSL_PACK_HALF_2X16 = 58
};

enum {
    SPV_CAPABILITY_SHADER = 1,
    SPV_CAPABILITY_FLOAT16 = 9,
    SPV_CAPABILITY_FLOAT64 = 10,
    SPV_CAPABILITY_INT64 = 11,
    SPV_CAPABILITY_INT64_ATOMICS = 12,
    SPV_CAPABILITY_INT16 = 22,
    SPV_CAPABILITY_INT8 = 39,
    SPV_CAPABILITY_GROUP_NON_UNIFORM = 61,
    SPV_CAPABILITY_GROUP_NON_UNIFORM_SHUFFLE = 65,
    SPV_CAPABILITY_WORKGROUP_LAYOUT = 4428,
    SPV_CAPABILITY_WORKGROUP_LAYOUT_8 = 4429,
    SPV_CAPABILITY_WORKGROUP_LAYOUT_16 = 4430,
    SPV_CAPABILITY_STORAGE_16 = 4433,
    SPV_CAPABILITY_STORAGE_8 = 4448,
    SPV_CAPABILITY_DENORM_PRESERVE = 4464,
    SPV_CAPABILITY_SIGNED_ZERO_INF_NAN_PRESERVE = 4466,
    SPV_CAPABILITY_ROUNDING_MODE_RTE = 4467,
    SPV_CAPABILITY_BFLOAT16_TYPE = 5116,
    SPV_CAPABILITY_BFLOAT16_COOPERATIVE_MATRIX = 5118,
    SPV_CAPABILITY_VULKAN_MEMORY_MODEL = 5345,
    SPV_CAPABILITY_PHYSICAL_STORAGE_BUFFER = 5347,
    SPV_CAPABILITY_COOPERATIVE_MATRIX = 6022
};

enum {
    SPV_ADDRESSING_PHYSICAL_STORAGE_BUFFER_64 = 5348,
    SPV_MEMORY_MODEL_VULKAN = 3,
    SPV_EXECUTION_MODEL_GL_COMPUTE = 5
};

enum {
    SPV_MODE_LOCAL_SIZE = 17,
    SPV_MODE_DENORM_PRESERVE = 4459,
    SPV_MODE_SIGNED_ZERO_INF_NAN_PRESERVE = 4461,
    SPV_MODE_ROUNDING_MODE_RTE = 4462
};

enum {
    SPV_STORAGE_INPUT = 1,
    SPV_STORAGE_WORKGROUP = 4,
    SPV_STORAGE_FUNCTION = 7,
    SPV_STORAGE_PUSH_CONSTANT = 9,
    SPV_STORAGE_PHYSICAL_STORAGE_BUFFER = 5349
};

enum {
    SPV_DECORATION_BLOCK = 2,
    SPV_DECORATION_ARRAY_STRIDE = 6,
    SPV_DECORATION_BUILT_IN = 11,
    SPV_DECORATION_ALIASED = 20,
    SPV_DECORATION_NON_WRITABLE = 24,
    SPV_DECORATION_OFFSET = 35,
    SPV_DECORATION_NO_CONTRACTION = 42
};

enum {
    SPV_BUILT_IN_NUM_WORKGROUPS = 24,
    SPV_BUILT_IN_WORKGROUP_ID = 26,
    SPV_BUILT_IN_LOCAL_INVOCATION_ID = 27,
    SPV_BUILT_IN_SUBGROUP_LOCAL_INVOCATION_ID = 41
};

enum { SPV_SCOPE_WORKGROUP = 2, SPV_SCOPE_SUBGROUP = 3, SPV_SCOPE_QUEUE_FAMILY = 5 };

/* Memory semantics, and operands of loads and stores. */
enum {
    SPV_SEMANTICS_ACQUIRE_RELEASE = 0x8,
    SPV_SEMANTICS_UNIFORM_MEMORY = 0x40,
    SPV_SEMANTICS_WORKGROUP_MEMORY = 0x100,
    SPV_SEMANTICS_MAKE_AVAILABLE = 0x2000,
    SPV_SEMANTICS_MAKE_VISIBLE = 0x4000
};
enum { SPV_ACCESS_ALIGNED = 0x2, SPV_ACCESS_NON_PRIVATE = 0x20 };

/* Uses of a cooperative matrix, and the encoding of a float type. */
enum { SPV_MATRIX_A, SPV_MATRIX_B, SPV_MATRIX_ACCUMULATOR, SPV_MATRIX_USES };
enum { SPV_FP_ENCODING_BFLOAT16 = 0 };

#endif
