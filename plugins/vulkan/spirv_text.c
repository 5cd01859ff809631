/* One table of the instructions that the lowering writes. Called by kernel.c. */
#include "spirv_text.h"

#include "spirv.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Operands: t type, r result, i id, n number, s text; the last one stands for all that follow. */
typedef struct instruction {
    uint32_t opcode;
    const char *name, *operands;
} instruction;

static const instruction table[] = {
    {SPV_OP_NAME, "Name", "is"},
    {SPV_OP_EXTENSION, "Extension", "s"},
    {SPV_OP_EXT_INST_IMPORT, "ExtInstImport", "rs"},
    {SPV_OP_EXT_INST, "ExtInst", "trini"},
    {SPV_OP_MEMORY_MODEL, "MemoryModel", "n"},
    {SPV_OP_ENTRY_POINT, "EntryPoint", "nisi"},
    {SPV_OP_EXECUTION_MODE, "ExecutionMode", "in"},
    {SPV_OP_CAPABILITY, "Capability", "n"},
    {SPV_OP_TYPE_VOID, "TypeVoid", "r"},
    {SPV_OP_TYPE_BOOL, "TypeBool", "r"},
    {SPV_OP_TYPE_INT, "TypeInt", "rn"},
    {SPV_OP_TYPE_FLOAT, "TypeFloat", "rn"},
    {SPV_OP_TYPE_VECTOR, "TypeVector", "rin"},
    {SPV_OP_TYPE_ARRAY, "TypeArray", "ri"},
    {SPV_OP_TYPE_STRUCT, "TypeStruct", "ri"},
    {SPV_OP_TYPE_POINTER, "TypePointer", "rni"},
    {SPV_OP_TYPE_FUNCTION, "TypeFunction", "ri"},
    {SPV_OP_CONSTANT_TRUE, "ConstantTrue", "tr"},
    {SPV_OP_CONSTANT_FALSE, "ConstantFalse", "tr"},
    {SPV_OP_CONSTANT, "Constant", "trn"},
    {SPV_OP_FUNCTION, "Function", "trni"},
    {SPV_OP_FUNCTION_END, "FunctionEnd", ""},
    {SPV_OP_VARIABLE, "Variable", "trn"},
    {SPV_OP_LOAD, "Load", "trin"},
    {SPV_OP_STORE, "Store", "iin"},
    {SPV_OP_ACCESS_CHAIN, "AccessChain", "tri"},
    {SPV_OP_DECORATE, "Decorate", "in"},
    {SPV_OP_MEMBER_DECORATE, "MemberDecorate", "in"},
    {SPV_OP_COMPOSITE_CONSTRUCT, "CompositeConstruct", "tri"},
    {SPV_OP_COMPOSITE_EXTRACT, "CompositeExtract", "trin"},
    {SPV_OP_CONVERT_F_TO_U, "ConvertFToU", "tri"},
    {SPV_OP_CONVERT_F_TO_S, "ConvertFToS", "tri"},
    {SPV_OP_CONVERT_S_TO_F, "ConvertSToF", "tri"},
    {SPV_OP_CONVERT_U_TO_F, "ConvertUToF", "tri"},
    {SPV_OP_U_CONVERT, "UConvert", "tri"},
    {SPV_OP_S_CONVERT, "SConvert", "tri"},
    {SPV_OP_F_CONVERT, "FConvert", "tri"},
    {SPV_OP_CONVERT_U_TO_PTR, "ConvertUToPtr", "tri"},
    {SPV_OP_BITCAST, "Bitcast", "tri"},
    {SPV_OP_I_ADD, "IAdd", "tri"},
    {SPV_OP_F_ADD, "FAdd", "tri"},
    {SPV_OP_I_SUB, "ISub", "tri"},
    {SPV_OP_F_SUB, "FSub", "tri"},
    {SPV_OP_I_MUL, "IMul", "tri"},
    {SPV_OP_F_MUL, "FMul", "tri"},
    {SPV_OP_U_DIV, "UDiv", "tri"},
    {SPV_OP_S_DIV, "SDiv", "tri"},
    {SPV_OP_F_DIV, "FDiv", "tri"},
    {SPV_OP_U_MOD, "UMod", "tri"},
    {SPV_OP_LOGICAL_EQUAL, "LogicalEqual", "tri"},
    {SPV_OP_LOGICAL_NOT_EQUAL, "LogicalNotEqual", "tri"},
    {SPV_OP_LOGICAL_OR, "LogicalOr", "tri"},
    {SPV_OP_LOGICAL_AND, "LogicalAnd", "tri"},
    {SPV_OP_LOGICAL_NOT, "LogicalNot", "tri"},
    {SPV_OP_SELECT, "Select", "tri"},
    {SPV_OP_I_EQUAL, "IEqual", "tri"},
    {SPV_OP_I_NOT_EQUAL, "INotEqual", "tri"},
    {SPV_OP_U_GREATER_THAN, "UGreaterThan", "tri"},
    {SPV_OP_U_GREATER_THAN_EQUAL, "UGreaterThanEqual", "tri"},
    {SPV_OP_U_LESS_THAN, "ULessThan", "tri"},
    {SPV_OP_S_LESS_THAN, "SLessThan", "tri"},
    {SPV_OP_U_LESS_THAN_EQUAL, "ULessThanEqual", "tri"},
    {SPV_OP_S_LESS_THAN_EQUAL, "SLessThanEqual", "tri"},
    {SPV_OP_F_ORD_EQUAL, "FOrdEqual", "tri"},
    {SPV_OP_F_UNORD_NOT_EQUAL, "FUnordNotEqual", "tri"},
    {SPV_OP_F_ORD_LESS_THAN, "FOrdLessThan", "tri"},
    {SPV_OP_F_UNORD_LESS_THAN, "FUnordLessThan", "tri"},
    {SPV_OP_F_ORD_GREATER_THAN, "FOrdGreaterThan", "tri"},
    {SPV_OP_F_UNORD_GREATER_THAN, "FUnordGreaterThan", "tri"},
    {SPV_OP_F_ORD_LESS_THAN_EQUAL, "FOrdLessThanEqual", "tri"},
    {SPV_OP_F_ORD_GREATER_THAN_EQUAL, "FOrdGreaterThanEqual", "tri"},
    {SPV_OP_SHIFT_RIGHT_LOGICAL, "ShiftRightLogical", "tri"},
    {SPV_OP_SHIFT_RIGHT_ARITHMETIC, "ShiftRightArithmetic", "tri"},
    {SPV_OP_SHIFT_LEFT_LOGICAL, "ShiftLeftLogical", "tri"},
    {SPV_OP_BITWISE_OR, "BitwiseOr", "tri"},
    {SPV_OP_BITWISE_XOR, "BitwiseXor", "tri"},
    {SPV_OP_BITWISE_AND, "BitwiseAnd", "tri"},
    {SPV_OP_NOT, "Not", "tri"},
    {SPV_OP_CONTROL_BARRIER, "ControlBarrier", "i"},
    {SPV_OP_ATOMIC_EXCHANGE, "AtomicExchange", "tri"},
    {SPV_OP_ATOMIC_COMPARE_EXCHANGE, "AtomicCompareExchange", "tri"},
    {SPV_OP_ATOMIC_I_ADD, "AtomicIAdd", "tri"},
    {SPV_OP_ATOMIC_S_MIN, "AtomicSMin", "tri"},
    {SPV_OP_ATOMIC_U_MIN, "AtomicUMin", "tri"},
    {SPV_OP_ATOMIC_S_MAX, "AtomicSMax", "tri"},
    {SPV_OP_ATOMIC_U_MAX, "AtomicUMax", "tri"},
    {SPV_OP_ATOMIC_AND, "AtomicAnd", "tri"},
    {SPV_OP_ATOMIC_OR, "AtomicOr", "tri"},
    {SPV_OP_ATOMIC_XOR, "AtomicXor", "tri"},
    {SPV_OP_PHI, "Phi", "tri"},
    {SPV_OP_LOOP_MERGE, "LoopMerge", "iin"},
    {SPV_OP_SELECTION_MERGE, "SelectionMerge", "in"},
    {SPV_OP_LABEL, "Label", "r"},
    {SPV_OP_BRANCH, "Branch", "i"},
    {SPV_OP_BRANCH_CONDITIONAL, "BranchConditional", "i"},
    {SPV_OP_RETURN, "Return", ""},
    {SPV_OP_GROUP_NON_UNIFORM_SHUFFLE, "GroupNonUniformShuffle", "tri"},
    {SPV_OP_GROUP_NON_UNIFORM_SHUFFLE_XOR, "GroupNonUniformShuffleXor", "tri"},
};

enum { LINE_BYTES = 4096, HEADER_WORDS = 5 };

static const instruction *find(uint32_t opcode)
{
    static const instruction unknown = {0, "Unknown", "n"};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].opcode == opcode) {
            return &table[i];
        }
    }
    return &unknown;
}

/* Writes one instruction; the result comes in front, as in the assembler's language. */
static void write_line(char *line, const uint32_t *words, uint32_t count)
{
    const instruction *what = find(words[0] & 0xffff);
    const char *kind = what->operands;
    char operands[LINE_BYTES - 64] = "";
    size_t used = 0;
    uint32_t result = 0;
    for (uint32_t i = 1; i < count && used < sizeof operands - 300; i++) {
        char *at = operands + used;
        const size_t left = sizeof operands - used;
        if (*kind == 'r') {
            result = words[i];
        } else if (*kind == 's') {
            const char *text = (const char *)(words + i);
            used += (size_t)snprintf(at, left, " \"%.200s\"", text);
            i += (uint32_t)(strlen(text) / 4);
        } else {
            used += (size_t)snprintf(at, left, *kind == 'n' ? " !%u" : " %%%u", words[i]);
        }
        kind += kind[0] != 0 && kind[1] != 0;
    }
    if (result != 0) {
        snprintf(line, LINE_BYTES, "%%%u = Op%s%s", result, what->name, operands);
    } else {
        snprintf(line, LINE_BYTES, "Op%s%s", what->name, operands);
    }
}

void spirv_text(const uint32_t *words, uint32_t word_count,
                void (*line)(void *context, const char *text), void *context)
{
    char text[LINE_BYTES];
    uint32_t length = 0;
    for (uint32_t at = HEADER_WORDS; at < word_count; at += length) {
        length = words[at] >> 16;
        if (length == 0 || length > word_count - at) {
            return;
        }
        write_line(text, words + at, length);
        line(context, text);
    }
}
