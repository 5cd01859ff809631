/* Dense layers by levels of Strassen's algorithm as arrays: each makes the sums that the next one
 * reads, in 2 L + 1 kernels, and whatever a program does with the arrays between them is right.
 * Small whole numbers are exact with any algorithm. */
#include "ops_fixture.h"

#include "ops_arrays.h"

#include <sys/wait.h>
#include <unistd.h>

enum { WIDTH = 16, ROWS = 8, MOST_LAYERS = 40 };

/* Weights with one element of 1 or -1 in each row keep the numbers small. */
typedef struct network {
    int layers;
    uint32_t levels;
    ops_array *x, *weights[MOST_LAYERS], *biases[MOST_LAYERS], *prepared[MOST_LAYERS];
    float host[MOST_LAYERS + 1][ROWS * WIDTH]; /* the result of each layer */
} network;

/* Null after a failure. */
static ops_array *upload(uint32_t rank, const int64_t *shape, const float *elements)
{
    return ops_array_from_host(test_context, HAL_TYPE_F32, rank, shape, elements);
}

/* The arrays and expected results of layer l; whether it could be made. */
static int layer_try(network *n, int l)
{
    const int64_t square[2] = {WIDTH, WIDTH};
    float weights[WIDTH * WIDTH] = {0}, bias[WIDTH];
    for (int k = 0; k < WIDTH; k++) {
        weights[k * WIDTH + (k * 5 + l) % WIDTH] = next_random() % 2 ? 1 : -1;
        bias[k] = (float)(next_random() % 3) - 1;
    }
    for (int i = 0; i < ROWS * WIDTH; i++) {
        float sum = bias[i % WIDTH];
        for (int k = 0; k < WIDTH; k++) {
            sum += n->host[l][i / WIDTH * WIDTH + k] * weights[k * WIDTH + i % WIDTH];
        }
        n->host[l + 1][i] = sum > 0 ? sum : 0;
    }
    ops_gemm_prepare_options how = OPS_GEMM_PREPARE_OPTIONS_DEFAULT;
    how.levels = n->levels;
    how.rows = ROWS;
    n->weights[l] = upload(2, square, weights);
    n->biases[l] = upload(1, square, bias);
    n->prepared[l] = n->weights[l] ? ops_array_prepare(n->weights[l], &how) : NULL;
    return n->biases[l] && n->prepared[l];
}

static int network_try(network *n, int layers, uint32_t levels)
{
    const int64_t input[2] = {ROWS, WIDTH};
    *n = (network){.layers = layers, .levels = levels};
    for (int i = 0; i < ROWS * WIDTH; i++) {
        n->host[0][i] = (float)(next_random() % 9) - 4;
    }
    n->x = upload(2, input, n->host[0]);
    int well = n->x != NULL;
    for (int l = 0; l < layers && well; l++) {
        well = layer_try(n, l);
    }
    return well;
}

static void network_make(network *n, int layers, uint32_t levels)
{
    if (!network_try(n, layers, levels)) {
        fail_msg("%s", hal_status_message());
    }
}

static void network_free(network *n)
{
    ops_array_release(n->x);
    for (int l = 0; l < n->layers; l++) {
        release_all(n->weights[l], n->biases[l], n->prepared[l]);
    }
}

static ops_array *layer(const network *n, int l, ops_array *x)
{
    ops_array *product = made(ops_array_matmul_by_levels(x, n->prepared[l], n->levels));
    return made(ops_relu(made(ops_add(product, n->biases[l]))));
}

static void expect(const network *n, int l, ops_array *y)
{
    float got[ROWS * WIDTH];
    ok(ops_array_read(y, sizeof got, got));
    assert_memory_equal(got, n->host[l], sizeof got);
}

static void a_network(void **state)
{
    static const int lengths[] = {1, 2, 8, MOST_LAYERS};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (uint32_t levels = 1; levels <= HAL_GEMM_MAX_LEVELS; levels++) {
            network n;
            network_make(&n, lengths[i], levels);
            for (int again = 0; again < 3; again++) { /* recorded, then from the plan cache */
                ops_scope_begin(test_context);
                ops_array *y = n.x;
                for (int l = 0; l < n.layers; l++) {
                    y = layer(&n, l, y);
                }
                expect(&n, n.layers, y);
                ops_scope_end(test_context);
            }
            network_free(&n);
        }
    }
}

/* Results of layers between that are read afterwards, held, or operands of other work. */
static void results_between_layers(void **state)
{
    network n;
    network_make(&n, 3, 1);
    ops_scope_begin(test_context);
    ops_array *first = layer(&n, 0, n.x), *second = layer(&n, 1, first);
    ops_array *third = layer(&n, 2, second);
    expect(&n, 3, third);
    expect(&n, 2, second); /* was not stored: computed again */
    expect(&n, 1, first);
    ops_scope_end(test_context);
    ops_scope_begin(test_context);
    ops_array *held = ops_array_keep(layer(&n, 0, n.x));
    second = layer(&n, 1, held);
    ops_array *sum = made(ops_add(layer(&n, 2, second), second));
    float got[ROWS * WIDTH];
    ok(ops_array_read(sum, sizeof got, got));
    for (int i = 0; i < ROWS * WIDTH; i++) {
        assert_float_equal(got[i], n.host[3][i] + n.host[2][i], 0);
    }
    ops_scope_end(test_context);
    expect(&n, 1, held);
    ops_array_release(held);
    network_free(&n);
}

/* Weights that are not prepared: their sums are made for each product. */
static void weights_that_change(void **state)
{
    for (uint32_t levels = 1; levels <= HAL_GEMM_MAX_LEVELS; levels++) {
        network n;
        network_make(&n, 6, levels);
        for (int again = 0; again < 2; again++) {
            ops_scope_begin(test_context);
            ops_array *y = n.x;
            for (int l = 0; l < n.layers; l++) {
                ops_array *weights = made(ops_neg(made(ops_neg(n.weights[l])))); /* deferred */
                ops_array *product = made(ops_array_matmul_by_levels(y, weights, levels));
                y = made(ops_relu(made(ops_add(product, n.biases[l]))));
            }
            expect(&n, n.layers, y);
            ops_scope_end(test_context);
        }
        network_free(&n);
    }
}

/* A layer of another class, or by other levels, has its own sums. */
static void layers_that_are_no_chain(void **state)
{
    network one, two;
    test_seed = 7;
    network_make(&one, 3, 1);
    test_seed = 7;
    network_make(&two, 3, 2);
    for (int odd = 0; odd < 3; odd++) {
        ops_scope_begin(test_context);
        ops_array *y = layer(&one, 0, one.x);
        if (odd == 0) {
            y = layer(&two, 1, y);
        } else {
            const uint32_t precision = odd == 1 ? HAL_GEMM_STRICT : HAL_GEMM_NORMWISE;
            y = ops_relu(
                ops_add(made(ops_array_matmul(y, one.weights[1], precision)), one.biases[1]));
        }
        expect(&one, 3, layer(&one, 2, y));
        ops_scope_end(test_context);
    }
    network_free(&one);
    network_free(&two);
}

static void a_network_as_a_graph(void **state)
{
    network n;
    network_make(&n, 4, 2);
    ops_graph *graph;
    ok(ops_graph_begin(test_context));
    ops_scope_begin(test_context);
    ops_array *y = n.x, *result = NULL;
    for (int l = 0; l < n.layers; l++) {
        y = layer(&n, l, y);
    }
    y = ops_array_keep(y);
    ops_scope_end(test_context);
    ok(ops_array_evaluate(&y, 1));
    ok(ops_graph_end(test_context, &n.x, 1, &y, 1, &graph));
    ops_array_release(y);
    for (int i = 0; i < 2; i++) {
        ok(ops_graph_launch(graph, &n.x, 1, &result, 1));
        expect(&n, n.layers, result);
        ops_array_release(result);
    }
    ops_graph_destroy(graph);
    network_free(&n);
}

/* Kernels of a name that a trace tells of. */
static int count_recorded(const char *trace, const char *name)
{
    char words[64];
    int count = 0;
    snprintf(words, sizeof words, "\"name\":\"%s\",\"cat\":\"record\"", name);
    for (const char *at = trace; (at = strstr(at, words)) != NULL; at++) {
        count++;
    }
    return count;
}

/* In a process of its own, since the trace is written from the start of the library on. */
static void a_network_is_two_kernels_a_layer_and_one(void **state)
{
    static char trace[1 << 22];
    char path[] = "/tmp/test_ops_array_layersXXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    const pid_t child = fork();
    if (child == 0) {
        network n;
        setenv("HAL_TRACE", path, 1);
        open_context(NULL);
        network_make(&n, 8, 1);
        ops_scope_begin(test_context);
        ops_array *y = n.x;
        for (int l = 0; l < n.layers; l++) {
            y = layer(&n, l, y);
        }
        expect(&n, n.layers, y);
        ops_scope_end(test_context);
        network_free(&n);
        close_context(NULL);
        _exit(0);
    }
    int ended;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    const ssize_t bytes = read(file, trace, sizeof trace - 1);
    close(file);
    unlink(path);
    assert_true(bytes > 0);
    assert_int_equal(count_recorded(trace, "gemm_combine"), 8);
    assert_int_equal(count_recorded(trace, "gemm_operand_sums"), 8 + 1); /* of weights, and of x */
    assert_int_equal(count_recorded(trace, "gemm"), 8);
}

/* How a network ends whose allocations fail from a number on. */
enum { WAS_RIGHT, WAS_WRONG, FAILED_BEFORE, RAN_OUT, OTHER_ERROR };

static int run_without_memory(int number)
{
    static network n;
    char fault[32];
    float got[ROWS * WIDTH];
    snprintf(fault, sizeof fault, "allocation:%d+", number);
    setenv("HAL_LAYERS", "fault", 1);
    setenv("HAL_FAULT", fault, 1);
    if (open_context(NULL) || !network_try(&n, 5, 2)) {
        return FAILED_BEFORE;
    }
    ops_scope_begin(test_context);
    ops_array *y = n.x;
    for (int l = 0; l < n.layers && y; l++) {
        ops_array *product = ops_array_matmul_by_levels(y, n.prepared[l], n.levels);
        ops_array *sum = product ? ops_add(product, n.biases[l]) : NULL;
        y = sum ? ops_relu(sum) : NULL;
    }
    const hal_status status = y ? ops_array_evaluate(&y, 1) : HAL_ERROR_OUT_OF_MEMORY;
    if (status || ops_array_read(y, sizeof got, got)) {
        return status && status != HAL_ERROR_OUT_OF_MEMORY ? OTHER_ERROR : RAN_OUT;
    }
    ops_scope_end(test_context);
    network_free(&n);
    close_context(NULL);
    return memcmp(got, n.host[n.layers], sizeof got) ? WAS_WRONG : WAS_RIGHT;
}

/* With little memory a layer has no sums, and is computed as it would be alone. */
static void what_succeeds_without_memory_is_right(void **state)
{
    int ends[OTHER_ERROR + 1] = {0};
    for (int number = 1; number <= 60; number++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            _exit(run_without_memory(number));
        }
        int ended = -1;
        assert_int_equal(waitpid(child, &ended, 0), child);
        assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) <= OTHER_ERROR);
        ends[WEXITSTATUS(ended)]++;
    }
    assert_int_equal(ends[WAS_WRONG] + ends[OTHER_ERROR], 0);
    assert_true(ends[FAILED_BEFORE] > 0 && ends[RAN_OUT] > 0 && ends[WAS_RIGHT] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_network), cmocka_unit_test(results_between_layers),
        cmocka_unit_test(weights_that_change), cmocka_unit_test(layers_that_are_no_chain),
        cmocka_unit_test(a_network_as_a_graph)};
    const struct CMUnitTest counts[] = {cmocka_unit_test(a_network_is_two_kernels_a_layer_and_one),
                                        cmocka_unit_test(what_succeeds_without_memory_is_right)};
    return cmocka_run_group_tests(counts, NULL, NULL) + RUN_ON_ALL(tests);
}
