/* array_program.c: random programs over arrays, with pools of live arrays, scopes and releases at
 * random; the same bits with fusion and without (promise 17). No softmax is the first operand of a
 * product, because attention by its expression has other bits than its steps. */
#include <stdio.h>

#include <ops/loop.h>

#include "case/cases.h"
#include "ops/array_fixture.h"

enum { POOL = 8, LEAVES = 6, SIDE = 5, MOST_ELEMENTS = 2 * SIDE * SIDE };

typedef struct program_case {
    hal_type type;
    int part;
    int steps;
} program_case;

/* A program of fewer steps begins as the longer one of its seed and name. */
static const case_size program_sizes[] = {CASE_SIZE(program_case, steps, "steps", 0, 1)};

static uint32_t below(array_run *r, uint32_t limit)
{
    return (uint32_t)random_below(&r->random, limit);
}

static ops_array *unary(array_run *r, ops_array *x)
{
    static const ops_unary_function floats[] = {OPS_NEG,     OPS_ABS,  OPS_SQUARE, OPS_RELU,
                                                OPS_SIGMOID, OPS_TANH, OPS_FLOOR,  OPS_EXP};
    static const ops_unary_function integers[] = {OPS_NEG, OPS_ABS, OPS_SQUARE, OPS_RELU};
    const hal_type type = ops_array_get_type(x);
    return type == HAL_TYPE_BOOL     ? ops_array_unary(OPS_NOT, x)
           : hal_type_is_float(type) ? ops_array_unary(floats[below(r, 8)], x)
                                     : ops_array_unary(integers[below(r, 4)], x);
}

static ops_array *binary(array_run *r, ops_array *x, ops_array *y)
{
    static const ops_binary_function functions[] = {OPS_ADD,     OPS_SUB,     OPS_MUL,
                                                    OPS_MINIMUM, OPS_MAXIMUM, OPS_LT};
    const hal_type type = ops_array_get_type(x);
    y = ops_array_get_type(y) == type ? y : ops_array_cast(type, y);
    return type == HAL_TYPE_BOOL ? ops_array_binary(below(r, 2) != 0 ? OPS_AND : OPS_XOR, x, y)
                                 : ops_array_binary(functions[below(r, 6)], x, y);
}

/* y, or x itself where their shapes do not go together or become large. */
static ops_array *partner(ops_array *x, ops_array *y)
{
    const uint32_t rank = ops_array_get_rank(x), other = ops_array_get_rank(y);
    for (uint32_t i = 1; i <= rank && i <= other; i++) {
        const int64_t a = ops_array_get_length(x, rank - i), b = ops_array_get_length(y, other - i);
        if (a != b && a != 1 && b != 1) {
            return x;
        }
    }
    return ops_array_get_element_count(x) * ops_array_get_element_count(y) >
                   MOST_ELEMENTS * MOST_ELEMENTS / 2
               ? x
               : y;
}

static ops_array *view(array_run *r, ops_array *x)
{
    static const int64_t flat[1] = {-1}, wide[3] = {2, SIDE, SIDE};
    const uint32_t rank = ops_array_get_rank(x), axis = rank > 0 ? below(r, rank) : 0;
    switch (below(r, 4)) {
    case 0:
        return rank > 0 ? ops_array_slice(x, axis, 0, (ops_array_get_length(x, axis) + 1) / 2, 1)
                        : x;
    case 1:
        return rank > 1 ? ops_array_transpose(x, 0, rank - 1) : x;
    case 2:
        return ops_array_reshape(x, 1, flat);
    default:
        for (uint32_t i = 0; i < rank; i++) {
            const int64_t length = ops_array_get_length(x, i);
            if (rank > 2 || (length != SIDE && length != 1)) {
                return x;
            }
        }
        return ops_array_broadcast(x, 3, wide);
    }
}

static ops_array *reduction(array_run *r, ops_array *x)
{
    const uint32_t rank = ops_array_get_rank(x), axis = rank > 0 ? below(r, rank) : 0;
    const hal_type type = ops_array_get_type(x);
    if (rank == 0 || type == HAL_TYPE_BOOL) {
        return unary(r, x);
    }
    return below(r, 3) == 0 && hal_type_is_float(type)
               ? ops_neg(ops_array_softmax(axis, x))
               : ops_array_reduce(below(r, 2) != 0 ? OPS_REDUCE_MAX : OPS_REDUCE_SUM, axis,
                                  below(r, 2) == 0, x);
}

/* Two reductions of one array, which become one kernel, and what takes both. */
static ops_array *reductions(array_run *r, ops_array *x)
{
    static const ops_reduction kinds[] = {OPS_REDUCE_MAX, OPS_REDUCE_MIN, OPS_REDUCE_SUM};
    const uint32_t rank = ops_array_get_rank(x), axis = rank > 0 ? below(r, rank) : 0;
    if (rank == 0 || ops_array_get_type(x) == HAL_TYPE_BOOL ||
        ops_array_get_length(x, (int32_t)axis) == 0) {
        return unary(r, x);
    }
    const int keeps = below(r, 2) == 0;
    ops_array *first = ops_array_reduce(kinds[below(r, 3)], (int32_t)axis, keeps, x);
    ops_array *second = ops_array_reduce(kinds[below(r, 3)], (int32_t)axis, keeps, unary(r, x));
    if (below(r, 2) == 0) {
        array_note(r, first, "one of two reductions");
    }
    return ops_sub(first, second);
}

static ops_array *product(array_run *r, ops_array *x, ops_array *y)
{
    const hal_type type = ops_array_get_type(x);
    return ops_array_get_rank(x) == 2 && hal_type_is_float(type) && ops_array_get_rank(y) == 2 &&
                   ops_array_get_type(y) == type &&
                   ops_array_get_length(y, 0) == ops_array_get_length(x, 1)
               ? ops_matmul(x, y)
               : unary(r, x);
}

/* Of x with itself, or with y as keys and values. */
static ops_array *attention(array_run *r, ops_array *x, ops_array *y)
{
    const hal_type type = ops_array_get_type(x);
    if (ops_array_get_rank(x) != 2 || !hal_type_is_float(type)) {
        return unary(r, x);
    }
    const bool fits = ops_array_get_rank(y) == 2 && ops_array_get_type(y) == type &&
                      ops_array_get_length(y, 1) == ops_array_get_length(x, 1);
    ops_array *keys = fits ? y : x;
    return ops_array_scaled_attention(x, keys, keys, NULL, below(r, 2) != 0, HAL_GEMM_STRICT, 0.5);
}

/* x and what is computed of it, one after the other, as far as that stays small. */
static ops_array *join(array_run *r, ops_array *x)
{
    const uint32_t rank = ops_array_get_rank(x);
    if (rank == 0 || 3 * ops_array_get_element_count(x) > MOST_ELEMENTS) {
        return unary(r, x);
    }
    ops_array *const parts[3] = {unary(r, x), below(r, 2) != 0 ? x : unary(r, x), unary(r, x)};
    return ops_array_concatenate((int32_t)below(r, rank), parts, 2 + below(r, 2));
}

/* x with half of an axis replaced by what is computed of a row of it. */
static ops_array *update(array_run *r, ops_array *x)
{
    const uint32_t rank = ops_array_get_rank(x), axis = rank > 0 ? below(r, rank) : 0;
    ops_tensor all, part;
    if (rank == 0 || ops_array_get_length(x, (int32_t)axis) == 0) {
        return unary(r, x);
    }
    const int64_t count = (ops_array_get_length(x, (int32_t)axis) + 1) / 2;
    const int64_t values = below(r, 2) != 0 ? count : 1;
    if (ops_array_describe(x, &all) != HAL_OK ||
        ops_tensor_slice(&all, (int32_t)axis, 2 * count - 2, count, -2, &part) != HAL_OK) {
        return NULL;
    }
    return ops_array_update(x, &part, unary(r, ops_array_slice(x, (int32_t)axis, 0, values, 1)));
}

/* The state: a value, one that stays, and the number of iterations. */
static ops_array *loop_goes_on(void *user, ops_array *const *state)
{
    return ops_array_binary_scalar(OPS_LT, state[2], *(const uint32_t *)user);
}

static hal_status loop_step(void *user, ops_array *const *state, ops_array **next)
{
    (void)user;
    const hal_type type = ops_array_get_type(state[0]);
    next[0] = type == HAL_TYPE_BOOL ? ops_array_binary(OPS_XOR, state[0], state[1])
                                    : ops_minimum(ops_add(state[0], state[1]), ops_abs(state[0]));
    next[1] = state[1];
    next[2] = ops_add_scalar(state[2], 1);
    return HAL_OK;
}

/* A loop of a few iterations, without a read: programs are rehearsed in a recording. */
static ops_array *loop(array_run *r, ops_array *x)
{
    uint32_t bound = below(r, 4);
    const uint32_t limit = 1 + below(r, 3);
    const ops_loop_options options = {.size = sizeof options, .stride = limit, .limit = limit};
    ops_array *count = ops_array_scalar(ops_array_get_context(x), HAL_TYPE_I32, 0);
    ops_array *results[3], *const state[3] = {x, unary(r, x), count};
    return ops_array_while(&options, loop_goes_on, loop_step, &bound, state, 3, results) == HAL_OK
               ? results[0]
               : NULL;
}

static ops_array *operation(array_run *r, ops_array *x, ops_array *y)
{
    const hal_type type = ops_array_get_type(x);
    switch (below(r, 16)) {
    case 0:
    case 1:
    case 2:
        return unary(r, x);
    case 3:
    case 4:
    case 5:
        return binary(r, x, partner(x, y));
    case 6:
        y = partner(x, y);
        return ops_array_where(type == HAL_TYPE_BOOL ? x : ops_ge(x, ops_array_cast(type, y)), x,
                               ops_array_cast(type, y));
    case 7:
    case 8:
        return view(r, x);
    case 9:
        return ops_array_cast(below(r, 2) != 0 ? HAL_TYPE_F32 : HAL_TYPE_I32, x);
    case 10:
        return below(r, 2) != 0 ? reduction(r, x) : reductions(r, x);
    case 11:
        return join(r, x);
    case 12:
        return update(r, x);
    case 13:
        return attention(r, x, y);
    case 14:
        return loop(r, x);
    default:
        return product(r, x, y);
    }
}

/* One to three operations in a scope; the last result takes a place of the pool. */
static void step(array_run *r, ops_array **pool, uint32_t number)
{
    const uint32_t at = below(r, POOL);
    ops_array *x = pool[below(r, POOL)], *y = pool[below(r, POOL)];
    scope_begin(r->run);
    ops_array *z = operation(r, x, y);
    for (uint32_t more = below(r, 3); more > 0 && z != NULL; more--) {
        z = operation(r, z, below(r, 3) != 0 ? y : z);
    }
    array_check(r->run, z, "an operation");
    if (ops_array_get_element_count(z) <= MOST_ELEMENTS) {
        ops_array_retain(z);
        ops_array_release(pool[at]);
        pool[at] = z;
    }
    if (number % 6 == 5) {
        array_note(r, pool[at], "a value in between");
    }
    scope_end(r->run);
}

static void program(array_run *r)
{
    const uint32_t steps = (uint32_t)((const program_case *)r->parameters)->steps;
    ops_array *pool[POOL];
    for (uint32_t i = 0; i < POOL; i++) {
        pool[i] = ops_array_retain(r->leaves[i % LEAVES]);
    }
    for (uint32_t i = 0; i < steps; i++) {
        step(r, pool, i);
    }
    for (uint32_t i = 0; i < POOL; i++) {
        array_note(r, pool[i], "a value of the pool");
        ops_array_release(pool[i]);
    }
}

static void run_program(case_run *run, const void *parameters)
{
    static const int64_t shapes[LEAVES][2] = {{SIDE, SIDE}, {SIDE, SIDE}, {1, SIDE},
                                              {SIDE, 1},    {SIDE, 0},    {0, 0}};
    static const uint32_t ranks[LEAVES] = {2, 2, 2, 2, 1, 0};
    const program_case *tested = parameters;
    const hal_type type = tested->type;
    const double low = hal_type_is_signed(type) ? -3.0 : 0.0;
    case_claim_storage(run, type);
    case_claim_arithmetic(run, type);
    case_claim_storage(run, HAL_TYPE_BOOL);
    array_run r = {.run = run, .parameters = tested, .random = {run->seed}};
    for (uint32_t i = 0; i < LEAVES; i++) {
        array_add_leaf(&r, i == 1 && tested->part == 1 ? (hal_type)HAL_TYPE_F32 : type, ranks[i],
                       shapes[i], low, 3.0, NULL);
    }
    array_run_both_ways(&r, program);
}

static void print_program(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    const program_case *tested = parameters;
    snprintf(name, bytes, "ops/array_program(type=%s,part=%d,steps=%d,seed=%llu)",
             hal_type_name(tested->type), tested->part, tested->steps, (unsigned long long)seed);
}

static const case_family programs = {.function = run_program,
                                     .bytes = sizeof(program_case),
                                     .sizes = program_sizes,
                                     .size_count = 1,
                                     .one_stream = true,
                                     .print = print_program};

void cases_ops_array_program(case_list *list)
{
    static const hal_type others[] = {HAL_TYPE_I32, HAL_TYPE_I8, HAL_TYPE_U8, HAL_TYPE_BOOL};
    uint32_t types = HAL_STORAGE_FLOATS;
    for (size_t t = 0; t < sizeof others / sizeof others[0]; t++) {
        types |= HAL_TYPE_BIT(others[t]);
    }
    for (hal_type type = HAL_TYPE_BOOL; type < HAL_TYPE_COUNT; type++) {
        const int parts = type == HAL_TYPE_F32 || type == HAL_TYPE_I32 ? 2 : 1;
        for (int part = 0; part < ((types & HAL_TYPE_BIT(type)) != 0 ? parts : 0); part++) {
            const program_case tested = {type, part, 15};
            case_add_member(list, &programs, &tested);
        }
    }
}
