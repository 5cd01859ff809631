/* Draws and prints random eager programs. */
#include "suites/mixes/mixes.h"

#include <math.h>

/* Numbers stay within this bound, so that no program overflows. */
static const double most_value = 4.0;

typedef struct named_function {
    int function;
    const char *name;
} named_function;

static const named_function unary[] = {
    {OPS_NEG, "neg"},   {OPS_ABS, "abs"}, {OPS_RELU, "relu"}, {OPS_SQUARE, "square"},
    {OPS_TANH, "tanh"}, {OPS_SIN, "sin"}, {OPS_COS, "cos"},   {OPS_EXP, "exp"},
    {OPS_ATAN, "atan"}};
static const named_function binary[] = {{OPS_ADD, "add"},
                                        {OPS_SUB, "sub"},
                                        {OPS_MUL, "mul"},
                                        {OPS_MINIMUM, "minimum"},
                                        {OPS_MAXIMUM, "maximum"}};
static const named_function reductions[] = {
    {OPS_REDUCE_MEAN, "mean"}, {OPS_REDUCE_MAX, "max"}, {OPS_REDUCE_MIN, "min"}};
enum {
    UNARY = sizeof unary / sizeof unary[0],
    BINARY = sizeof binary / sizeof binary[0],
    REDUCTIONS = sizeof reductions / sizeof reductions[0]
};

/* Which axes the variables have, as bits. */
static const int variable_axes[MIXES_VARIABLES] = {3, 3, 3, 3, 2, 2, 1, 1, 0};

bool mixes_has_axis(int variable, int axis)
{
    return variable_axes[variable] >> axis & 1;
}

static int draw(uint64_t *state, int limit)
{
    return (int)((bench_word(state) >> 33) % (uint64_t)limit);
}

/* A variable that has these axes. */
static int draw_variable(uint64_t *state, int axes)
{
    int variable;
    do {
        variable = draw(state, MIXES_VARIABLES);
    } while (variable_axes[variable] != axes);
    return variable;
}

static double unary_bound(int function, double x)
{
    switch (function) {
    case OPS_SQUARE:
        return x * x;
    case OPS_EXP:
        return exp(x);
    case OPS_TANH:
    case OPS_SIN:
    case OPS_COS:
        return 1.0;
    case OPS_ATAN:
        return fmin(x, 2.0);
    default:
        return x;
    }
}

static double binary_bound(int function, double x, double y)
{
    switch (function) {
    case OPS_ADD:
    case OPS_SUB:
        return x + y;
    case OPS_MUL:
        return x * y;
    default:
        return fmax(x, y);
    }
}

/* Of 32 operations about 13 have one operand, 14 have two, 4 reduce and 1 reads a number. Returns
 * the bound of the result. */
static double draw_operation(uint64_t *state, const double *bounds, mixes_operation *operation)
{
    const int kind = draw(state, 32);
    const int x = draw(state, MIXES_VARIABLES), y = draw(state, MIXES_VARIABLES);
    *operation = (mixes_operation){.x = x, .y = y};
    if (kind < 13) {
        operation->function = unary[draw(state, UNARY)].function;
        operation->target = draw_variable(state, variable_axes[x]);
        return unary_bound(operation->function, bounds[x]);
    }
    if (kind < 27) {
        operation->kind = MIXES_BINARY;
        operation->function = binary[draw(state, BINARY)].function;
        operation->target = draw_variable(state, variable_axes[x] | variable_axes[y]);
        return binary_bound(operation->function, bounds[x], bounds[y]);
    }
    if (kind < 31 && variable_axes[x] != 0) {
        operation->kind = MIXES_REDUCE;
        operation->function = reductions[draw(state, REDUCTIONS)].function;
        operation->axis = variable_axes[x] == 3 ? draw(state, 2) : variable_axes[x] - 1;
        operation->target = draw_variable(state, variable_axes[x] & ~(1 << operation->axis));
        return bounds[x];
    }
    operation->kind = MIXES_READ;
    operation->x = operation->target = MIXES_VARIABLES - 1;
    return bounds[operation->x];
}

void mixes_draw(uint64_t seed, int number, uint64_t most, mixes_program *program)
{
    uint64_t state = bench_seed(seed * 1000 + (uint64_t)number);
    double bounds[MIXES_VARIABLES];
    for (int i = 0; i < 8; i++) {
        bench_word(&state); /* the first words of near seeds are near */
    }
    /* The number of elements is as likely from 1 to 2 as from 2,048 to 4,096. */
    const double unit = (double)(bench_word(&state) >> 11) / 9007199254740992.0;
    const int64_t elements = (int64_t)exp2(unit * log2((double)most + 1.0));
    const double part = (double)(bench_word(&state) >> 11) / 9007199254740992.0;
    program->shape[0] = (int64_t)exp2(part * log2((double)elements));
    program->shape[1] = elements / program->shape[0];
    program->count = 16 + draw(&state, MIXES_MOST_OPERATIONS - 16 + 1);
    program->seed = seed + (uint64_t)(number * MIXES_VARIABLES);
    for (int i = 0; i < MIXES_VARIABLES; i++) {
        bounds[i] = 1.0;
    }
    for (int i = 0; i < program->count; i++) {
        mixes_operation *operation = &program->operations[i];
        double bound;
        do {
            bound = draw_operation(&state, bounds, operation);
        } while (bound > most_value);
        bounds[operation->target] = bound;
    }
    snprintf(program->name, sizeof program->name, "mix %d: %lldx%lld, %d operations", number,
             (long long)program->shape[0], (long long)program->shape[1], program->count);
}

static const char *function_name(const mixes_operation *operation)
{
    static const named_function *const tables[] = {unary, binary, reductions};
    static const int counts[] = {UNARY, BINARY, REDUCTIONS};
    for (int i = 0; operation->kind != MIXES_READ && i < counts[operation->kind]; i++) {
        if (tables[operation->kind][i].function == operation->function) {
            return tables[operation->kind][i].name;
        }
    }
    return "read";
}

void mixes_print(const mixes_program *program)
{
    static const char *const kinds[] = {"unary", "binary", "reduce", "read"};
    printf("  {\"case\": \"%s\", \"rows\": %lld, \"columns\": %lld, \"seed\": %llu,\n"
           "   \"axes\": [",
           program->name, (long long)program->shape[0], (long long)program->shape[1],
           (unsigned long long)program->seed);
    for (int i = 0; i < MIXES_VARIABLES; i++) {
        printf("%s%d", i > 0 ? ", " : "", variable_axes[i]);
    }
    printf("],\n   \"operations\": [");
    for (int i = 0; i < program->count; i++) {
        const mixes_operation *operation = &program->operations[i];
        printf("%s[\"%s\", \"%s\", %d, %d, %d, %d]", i > 0 ? ",\n    " : "",
               kinds[operation->kind], function_name(operation), operation->target, operation->x,
               operation->y, operation->axis);
    }
    printf("]}");
}
