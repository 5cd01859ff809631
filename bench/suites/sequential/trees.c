/* Random expressions on 1,024 floats, each different from all others, as in programs whose shape
 * depends on data: the time of the first and second run, of compiling the kernel ahead, and of a
 * run with it.
 *
 * A tree has 8 to 40 operations over 2 to 6 inputs. An operation takes results without a user yet,
 * or inputs; at the end the unused results are added. Conditions compare inputs, so that rounding
 * does not decide them. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "suites/sequential/sequential.h"

enum { TREES = 24, INPUTS = 6, LEAST = 8, MOST = 40, NODES = 2 * MOST + INPUTS };

typedef enum node_kind { NODE_INPUT, NODE_UNARY, NODE_BINARY, NODE_WHERE } node_kind;

/* Operands are earlier nodes; the condition of NODE_WHERE is left < right of two inputs. */
typedef struct tree_node {
    node_kind kind;
    int function;
    int x, y, left, right;
} tree_node;

typedef struct tree {
    tree_node nodes[NODES];
    int count, inputs; /* the last node is the result */
} tree;

/* Timed: the first two runs, ops_prepare, a run after it, and one without fusion whose kernels
 * exist. */
enum { NEW, AGAIN, PREPARED, FUSED, UNFUSED, TIMES };
static const char *const names[TIMES] = {"random tree, new", "random tree, again",
                                         "random tree, its kernels made ahead",
                                         "random tree, fused", "random tree, unfused"};

typedef struct tree_place {
    bench_state *bench;
    bench_place place;
    ops_array *inputs[INPUTS];
    const tree *newest;
    double samples[TIMES][TREES];
    uint64_t kernels[TIMES], compiled[TIMES];
} tree_place;

static float numbers[INPUTS][SEQUENTIAL_ELEMENTS];

static bool make_inputs(bench_state *bench, tree_place *p)
{
    const int64_t shape[1] = {SEQUENTIAL_ELEMENTS};
    for (int i = 0; i < INPUTS; i++) {
        bench_random(HAL_TYPE_F32, numbers[i], SEQUENTIAL_ELEMENTS, (uint64_t)(31 + i));
        p->inputs[i] = ops_array_from_host(p->place.ops, HAL_TYPE_F32, 1, shape, numbers[i]);
        if (!p->inputs[i]) {
            return bench_fail(bench, "an input of the trees: %s", hal_status_message());
        }
    }
    return true;
}

/* Less than `limit`. */
static int draw(uint64_t *state, int limit)
{
    return (int)((bench_word(state) >> 33) % (uint64_t)limit);
}

/* Takes a result without a user, or an input. */
static int take(int *open, int *open_count, int inputs, uint64_t *state)
{
    if (*open_count > 0 && draw(state, 4) != 0) {
        const int at = draw(state, *open_count), node = open[at];
        open[at] = open[--*open_count];
        return node;
    }
    return draw(state, inputs);
}

static void grow(tree *t, uint64_t *state)
{
    static const ops_unary_function unary[] = {OPS_NEG, OPS_ABS,     OPS_SQUARE,  OPS_SIN,
                                               OPS_COS, OPS_TANH,    OPS_SIGMOID, OPS_ATAN,
                                               OPS_ERF, OPS_SOFTPLUS};
    static const ops_binary_function binary[] = {OPS_ADD, OPS_SUB, OPS_MUL, OPS_MINIMUM,
                                                 OPS_MAXIMUM};
    int open[NODES], open_count = 0;
    const int operations = LEAST + draw(state, MOST - LEAST + 1);
    *t = (tree){.inputs = 2 + draw(state, INPUTS - 1)};
    for (t->count = 0; t->count < t->inputs; t->count++) {
        t->nodes[t->count].kind = NODE_INPUT;
    }
    for (int i = 0; i < operations || open_count > 1; i++) {
        tree_node *node = &t->nodes[t->count];
        const int kind = i < operations ? draw(state, 8) : 0;
        if (i >= operations) {
            *node = (tree_node){.kind = NODE_BINARY, .function = OPS_ADD};
            node->x = open[--open_count];
            node->y = open[--open_count];
        } else if (kind < 4) {
            *node = (tree_node){.kind = NODE_UNARY, .function = (int)unary[draw(state, 10)]};
            node->x = take(open, &open_count, t->inputs, state);
        } else {
            *node = (tree_node){.kind = kind < 7 ? NODE_BINARY : NODE_WHERE,
                                .function = (int)binary[draw(state, 5)]};
            node->x = take(open, &open_count, t->inputs, state);
            node->y = take(open, &open_count, t->inputs, state);
            node->left = draw(state, t->inputs);
            node->right = (node->left + 1) % t->inputs;
        }
        open[open_count++] = t->count++;
    }
}

static ops_array *build(tree_place *p, const tree *t)
{
    ops_array *arrays[NODES];
    ops_scope_begin(p->place.ops);
    for (int i = 0; i < t->count; i++) {
        const tree_node *node = &t->nodes[i];
        switch (node->kind) {
        case NODE_INPUT:
            arrays[i] = p->inputs[i];
            break;
        case NODE_UNARY:
            arrays[i] = ops_array_unary((ops_unary_function)node->function, arrays[node->x]);
            break;
        case NODE_BINARY:
            arrays[i] = ops_array_binary((ops_binary_function)node->function, arrays[node->x],
                                         arrays[node->y]);
            break;
        case NODE_WHERE:
            arrays[i] = ops_array_where(ops_lt(arrays[node->left], arrays[node->right]),
                                        arrays[node->x], arrays[node->y]);
            break;
        }
    }
    ops_array *result = ops_array_keep(arrays[t->count - 1]);
    ops_scope_end(p->place.ops);
    return result;
}

static void work_out(const tree *t, int element, estimate *value)
{
    for (int i = 0; i < t->count; i++) {
        const tree_node *node = &t->nodes[i];
        switch (node->kind) {
        case NODE_INPUT:
            value[i] = estimate_exact((double)numbers[i][element]);
            break;
        case NODE_UNARY:
            value[i] = estimate_unary((ops_unary_function)node->function, value[node->x]);
            break;
        case NODE_BINARY:
            value[i] = estimate_binary((ops_binary_function)node->function, value[node->x],
                                       value[node->y]);
            break;
        case NODE_WHERE:
            value[i] = numbers[node->left][element] < numbers[node->right][element]
                           ? value[node->x]
                           : value[node->y];
            break;
        }
    }
}

static bool check(tree_place *p, const tree *t, int at)
{
    estimate expected[SEQUENTIAL_ELEMENTS], nodes[NODES];
    float values[SEQUENTIAL_ELEMENTS];
    char what[64];
    ops_array *result = build(p, t);
    const bool well =
        bench_ok(p->bench, ops_array_read(result, sizeof values, values), "ops_array_read");
    ops_array_release(result);
    for (int e = 0; e < SEQUENTIAL_ELEMENTS; e++) {
        work_out(t, e, nodes);
        expected[e] = nodes[t->count - 1];
    }
    snprintf(what, sizeof what, "random tree %d", at);
    return well && estimate_check(p->bench, what, values, expected, SEQUENTIAL_ELEMENTS);
}

static hal_status rehearse(ops_context *context, void *user)
{
    tree_place *p = user;
    ops_array *result = build(p, p->newest);
    const hal_status status = ops_array_evaluate(&result, 1);
    ops_array_release(result);
    (void)context;
    return status;
}

static bool run_once(tree_place *p, const tree *t)
{
    ops_array *result = build(p, t);
    const bool well = sequential_finish(p->bench, &p->place, result);
    ops_array_release(result);
    return well;
}

/* Checks the values of the fused and of the single kernels. */
static bool run_tree(tree_place *p, const tree *t, int at)
{
    p->newest = t;
    for (int what = NEW; what < TIMES; what++) {
        ops_array_statistics before = {.size = sizeof before}, after = {.size = sizeof after};
        ops_context_set_fusion(p->place.ops, what != UNFUSED);
        if (what == UNFUSED && !check(p, t, at)) { /* compiles missing kernels */
            return false;
        }
        ops_context_get_statistics(p->place.ops, &before);
        const double start = measure_now();
        const bool well =
            what == PREPARED
                ? bench_ok(p->bench, ops_prepare(p->place.ops, rehearse, p), "ops_prepare")
                : run_once(p, t);
        p->samples[what][at] = measure_now() - start;
        ops_context_get_statistics(p->place.ops, &after);
        p->compiled[what] += after.compiled - before.compiled;
        p->kernels[what] += after.kernels - before.kernels;
        if (!well || ((what == AGAIN || what == FUSED) && !check(p, t, at))) {
            return false;
        }
    }
    return true;
}

static void add_rows(bench_state *bench, tree_place *all, int places)
{
    for (int i = 0; i < TIMES; i++) {
        bench_row *row = bench_add(bench, names[i], HAL_TYPE_F32);
        if (!row) {
            return;
        }
        row->n = SEQUENTIAL_ELEMENTS;
        measure_summarise(&row->time, all[0].samples[i], TREES, 1);
        if (places == 2) {
            measurement second;
            measure_summarise(&second, all[1].samples[i], TREES, 1);
            bench_add_peer(row, hal_device_get_plugin_name(all[1].place.device), &second);
        }
        bench_rate(row, 0.0, 0.0);
    }
    for (int i = 0; i < places; i++) {
        const tree_place *p = &all[i];
        bench_note(bench,
                   "%d random trees on %s: new, %llu kernels, %llu of them made; %llu made ahead; "
                   "fused, %llu kernels; unfused, %llu.",
                   TREES, hal_device_get_plugin_name(p->place.device),
                   (unsigned long long)p->kernels[NEW], (unsigned long long)p->compiled[NEW],
                   (unsigned long long)p->compiled[PREPARED], (unsigned long long)p->kernels[FUSED],
                   (unsigned long long)p->kernels[UNFUSED]);
    }
}

void sequential_trees(bench_state *bench)
{
    static tree_place all[2];
    bench_place places[2];
    const int count = sequential_places(bench, places);
    const uint64_t seed = bench_seed_of(&bench->options);
    uint64_t state = bench_seed(seed);
    bool well = !bench->failed;
    for (int i = 0; i < count; i++) {
        all[i] = (tree_place){.bench = bench, .place = places[i]};
        well = well && make_inputs(bench, &all[i]);
    }
    for (int at = 0; at < TREES && well; at++) {
        tree t;
        grow(&t, &state);
        for (int i = 0; i < count && well; i++) {
            well = run_tree(&all[i], &t, at);
        }
    }
    if (well) {
        add_rows(bench, all, count);
        bench_note(bench, "the random trees are those of --seed %llu.", (unsigned long long)seed);
    }
    for (int i = 0; i < count; i++) {
        ops_context_set_fusion(all[i].place.ops, 1);
        for (int input = 0; input < INPUTS; input++) {
            ops_array_release(all[i].inputs[input]);
        }
    }
}
