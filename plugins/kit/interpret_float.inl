/* interpret_float.inl: the operations on floats of BITS bits, which C calls REAL; C_NAME is the
 * name of its function for them. */
#define PASTE(a, b) a##b
#define NAME(a, b) PASTE(a, b)
#define OWN(name) NAME(name##_f, BITS)
#define TO_BITS OWN(math_bits)
#define SIGN (UINT64_C(1) << (BITS - 1))

static REAL OWN(math)(uint32_t opcode, REAL x, REAL y)
{
    return opcode == HAL_IR_POW ? OWN(math_pow)(0, x, y)
                                : functions[opcode - HAL_IR_MATH_FIRST].NAME(f, BITS)(0, x);
}

static uint64_t OWN(operate)(uint32_t opcode, REAL a, REAL b, REAL c)
{
    switch (opcode) {
    case HAL_IR_ADD:
        return TO_BITS(a + b);
    case HAL_IR_SUB:
        return TO_BITS(a - b);
    case HAL_IR_MUL:
        return TO_BITS(a * b);
    case HAL_IR_DIV:
        return TO_BITS(a / b);
    case HAL_IR_REM:
        return TO_BITS(C_NAME(fmod)(a, b));
    case HAL_IR_NEG:
        return TO_BITS(a) ^ SIGN;
    case HAL_IR_ABS:
        return TO_BITS(a) & (SIGN - 1);
    case HAL_IR_MIN:
    case HAL_IR_MAX:
        return TO_BITS((REAL)math_float_f64(extreme_f64(opcode, a, b)));
    case HAL_IR_FMA:
        return TO_BITS(C_NAME(fma)(a, b, c));
    case HAL_IR_SQRT:
        return TO_BITS(C_NAME(sqrt)(a));
    case HAL_IR_FLOOR:
        return TO_BITS(C_NAME(floor)(a));
    case HAL_IR_TRUNC:
        return TO_BITS(C_NAME(trunc)(a));
    case HAL_IR_RINT:
        return TO_BITS(C_NAME(rint)(a));
    case HAL_IR_EQ:
    case HAL_IR_NE:
    case HAL_IR_LT:
    case HAL_IR_LE:
        return compare_floats(opcode, a, b);
    default:
        return TO_BITS(OWN(math)(opcode, a, b));
    }
}

#undef PASTE
#undef NAME
#undef OWN
#undef TO_BITS
#undef SIGN
