/* array_order.c: arrays whose axes are in memory in another order than the row-major one. Results
 * keep it, and everything that reads them sees the same elements; small whole numbers, which no
 * operation rounds, against the host. */
#include "case/cases.h"
#include "ops/array_fixture.h"

enum { RANK = 3, ELEMENTS = 6 * 20 * 35 };

typedef struct order_case {
    hal_type type;
    int32_t axes[RANK];
    bool has_products; /* their kernels take long to make */
} order_case;

static const int64_t memory[RANK] = {6, 20, 35};

static const order_case cases[] = {{HAL_TYPE_F32, {0, 2, 1}, false},
                                   {HAL_TYPE_F32, {1, 2, 0}, true},
                                   {HAL_TYPE_F32, {2, 1, 0}, false},
                                   {HAL_TYPE_F16, {2, 0, 1}, false},
                                   {HAL_TYPE_U8, {1, 0, 2}, false}};

/* What a case computes with. y[i] is the result's element i, in row-major order of `shape`. */
typedef struct order_data {
    case_run *run;
    const order_case *tested;
    int64_t shape[RANK];
    double *y;
} order_data;

static void elements_check(const order_data *data, ops_array *array, const double *expected,
                           size_t count, const char *what)
{
    case_run *run = data->run;
    const hal_type type = data->tested->type;
    void *got = case_allocate(run, count, hal_type_size(type));
    array_check(run, array, what);
    case_ok(run, ops_array_read(array, count * hal_type_size(type), got), what);
    for (size_t i = 0; i < count; i++) {
        const double element = number_get(type, got, i);
        case_check(run, element == expected[i], "%s: element %zu is %g instead of %g", what, i,
                   element, expected[i]);
    }
}

/* Where an element of the result is in the memory of the operand. */
static size_t place_in_memory(const order_data *data, size_t i)
{
    int64_t at[RANK], place = 0;
    int64_t left = (int64_t)i;
    for (int k = RANK - 1; k >= 0; k--) {
        at[data->tested->axes[k]] = left % data->shape[k];
        left /= data->shape[k];
    }
    for (int k = 0; k < RANK; k++) {
        place = place * memory[k] + at[k];
    }
    return (size_t)place;
}

/* The products of each matrix of a batch with its transpose. */
static void products_check(const order_data *data, ops_array *y)
{
    const int64_t batch = data->shape[0], rows = data->shape[1], terms = data->shape[2];
    const size_t count = (size_t)(batch * rows * rows);
    double *products = case_allocate(data->run, count, sizeof *products);
    for (size_t i = 0; i < count; i++) {
        const int64_t line = (int64_t)i / rows, other = line / rows * rows + (int64_t)i % rows;
        products[i] = 0.0;
        for (int64_t k = 0; k < terms; k++) {
            products[i] += data->y[line * terms + k] * data->y[other * terms + k];
        }
    }
    elements_check(data, ops_matmul(y, ops_array_transpose(y, 1, 2)), products, count, "products");
}

static void run_order(case_run *run, const void *parameters)
{
    const int64_t flat[1] = {-1};
    order_data data = {.run = run, .tested = parameters};
    const hal_type type = data.tested->type;
    random_state random = {run->seed};
    ops_array *leaves[2];
    void *elements[2];
    double *sums = case_allocate(run, ELEMENTS, sizeof *sums);
    double *turned = case_allocate(run, ELEMENTS, sizeof *turned);
    int32_t back[RANK];
    case_claim_storage(run, type);
    case_claim_arithmetic(run, type);
    data.y = case_allocate(run, ELEMENTS, sizeof *data.y);
    for (int k = 0; k < RANK; k++) {
        data.shape[k] = memory[data.tested->axes[k]];
        back[data.tested->axes[k]] = k;
    }
    for (int i = 0; i < 2; i++) {
        elements[i] = case_allocate(run, ELEMENTS, hal_type_size(type));
        for (size_t k = 0; k < ELEMENTS; k++) {
            number_put(type, elements[i], k, (double)random_below(&random, 5));
        }
        leaves[i] =
            ops_array_from_host(run->ops, type, RANK, i == 0 ? memory : data.shape, elements[i]);
        array_own(run, leaves[i], "a leaf");
    }
    scope_begin(run);
    for (size_t i = 0; i < ELEMENTS; i++) {
        const size_t place = place_in_memory(&data, i);
        const double x = number_get(type, elements[0], place);
        data.y[i] = turned[place] = x * x + x;
        sums[i] = data.y[i] + number_get(type, elements[1], i);
    }
    ops_array *x = ops_array_permute(leaves[0], data.tested->axes);
    ops_array *y = ops_add(ops_mul(x, x), x);
    elements_check(&data, ops_add(y, leaves[1]), sums, ELEMENTS, "sums with a row-major array");
    elements_check(&data, ops_array_permute(y, back), turned, ELEMENTS, "the result turned back");
    elements_check(&data, ops_array_reshape(y, 1, flat), data.y, ELEMENTS, "one axis of it");
    elements_check(&data, y, data.y, ELEMENTS, "the result");
    if (data.tested->has_products) {
        products_check(&data, y);
    }
    scope_end(run);
}

void cases_ops_array_order(case_list *list)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int32_t *axes = cases[i].axes;
        case_add(list, run_order, &cases[i], sizeof cases[i],
                 "ops/array_order(type=%s,axes=%d%d%d,seed=%llu)", hal_type_name(cases[i].type),
                 axes[0], axes[1], axes[2], (unsigned long long)list->seed);
    }
}
