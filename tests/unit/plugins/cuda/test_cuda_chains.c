/* Chains of dispatches of the cuda plugin, as the driver sees them (cuda_mock.h). */
#include "cuda_fixture.h"

/* A few dispatches are launched, many are one graph; repeating them sets no node; others set the
 * nodes that differ; fewer use the first nodes of the same graph. */
TEST_WITH(test_chains, begin, end)
{
    hal_plugin_kernel *kernel = kernel_of(1);
    hal_plugin_memory *memory = memory_of(HAL_MEMORY_DEVICE, BYTES);
    dispatch_many(kernel, memory, 3, 5);
    assert_int_equal(mock->single_launches, 3);
    assert_int_equal(mock->early_launches, 2); /* not the first: it comes after other things */
    assert_int_equal(mock->graph_launches, 0);

    dispatch_many(kernel, memory, 100, 5);
    assert_int_equal(mock->graph_launches, 1);
    assert_int_equal(mock->graphs_built, 1);
    assert_int_equal(mock->early_edges, 127);
    assert_int_equal(mock->nodes_switched, 28);
    const uint32_t set = mock->nodes_set;
    dispatch_many(kernel, memory, 100, 5);
    assert_int_equal(mock->nodes_set, set);
    assert_int_equal(mock->graphs_built, 1);
    assert_int_equal(mock->nodes_switched, 28);

    for (uint32_t i = 1; i < 40; i++) { /* more different batches than chains */
        dispatch_many(kernel, memory, 64 + i, 1000 * i);
    }
    assert_true(mock->graphs_built <= 4);
    dispatch_many(kernel, memory, 1024, 0);
    dispatch_many(kernel, memory, 1500, 0); /* a full chain and another */
    assert_int_equal(mock->single_launches, 3);
    plugin->kernel_destroy(device, kernel);
    plugin->memory_free(device, memory);
}

/* From a number of dispatches on, or never. */
TEST_WITH(test_early_starts, begin_early, end)
{
    hal_plugin_kernel *kernel = kernel_of(1);
    hal_plugin_memory *memory = memory_of(HAL_MEMORY_DEVICE, BYTES);
    dispatch_many(kernel, memory, 49, 5);
    assert_int_equal(mock->early_edges, 0);
    dispatch_many(kernel, memory, 50, 5);
    assert_int_equal(mock->early_edges, 63);
    plugin->kernel_destroy(device, kernel);
    plugin->memory_free(device, memory);

    close_device();
    setenv("HAL_CUDA_EARLY", "0", 1);
    open_device();
    unsetenv("HAL_CUDA_EARLY");
    kernel = kernel_of(1);
    memory = memory_of(HAL_MEMORY_DEVICE, BYTES);
    dispatch_many(kernel, memory, 500, 5);
    assert_int_equal(mock->early_edges, 63);
    dispatch_many(kernel, memory, 3, 5);
    assert_int_equal(mock->early_launches, 0);
    plugin->kernel_destroy(device, kernel);
    plugin->memory_free(device, memory);
}

/* Without memory for a graph the dispatches are launched; without memory for an event no command of
 * the batch starts, and its value is not reached. */
TEST_WITH(test_without_memory, begin, end)
{
    hal_plugin_kernel *kernel = kernel_of(1);
    hal_plugin_memory *memory = memory_of(HAL_MEMORY_DEVICE, BYTES);
    mock->graph_result = 2;
    dispatch_many(kernel, memory, 50, 5);
    assert_int_equal(mock->single_launches, 50);
    const hal_binding binding = {.memory = memory, .length = BYTES};
    static const uint32_t pattern[2] = {7};
    const hal_command command = {
        .kind = HAL_COMMAND_FILL, .binding_count = 1, .scalar_bytes = sizeof pattern[0]};
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = 1,
                             .binding_count = 1,
                             .scalar_bytes = sizeof pattern,
                             .commands = &command,
                             .bindings = &binding,
                             .scalars = (const uint8_t *)pattern};
    mock->event_result = 2;
    fails(plugin->submit(queue, &batch, NULL, 0, value + 1), HAL_ERROR_OUT_OF_MEMORY,
          "creating an event");
    assert_int_equal(plugin->wait(queue, value + 1, 0), HAL_ERROR_TIMEOUT);
    mock->event_result = mock->graph_result = 0;
    does(plugin->submit(queue, &batch, NULL, 0, ++value));
    does(plugin->wait(queue, value, 0));
    plugin->kernel_destroy(device, kernel);
    plugin->memory_free(device, memory);
}

/* A repeated batch gets a separate graph, in which no node is disabled or changed; the oldest of
 * them are destroyed. */
TEST_WITH(test_kept_chains, begin, end)
{
    hal_plugin_kernel *kernel = kernel_of(1);
    hal_plugin_memory *memory = memory_of(HAL_MEMORY_DEVICE, BYTES);
    for (uint32_t run = 0; run < 30; run++) {
        for (uint32_t again = 0; again < 8; again++) {
            dispatch_many(kernel, memory, 50, 100 * run);
        }
        const uint32_t set = mock->nodes_set, switched = mock->nodes_switched;
        dispatch_many(kernel, memory, 50, 100 * run);
        assert_int_equal(mock->nodes_set, set);
        assert_int_equal(mock->nodes_switched, switched);
        assert_in_range(mock->graphs_built, run + 2, run + 5);
        mock->launch_count = 0;
    }
    dispatch_many(kernel, memory, 50, 0); /* gone, and made again in a chain that there is */
    plugin->kernel_destroy(device, kernel);
    plugin->memory_free(device, memory);
}

/* Short runs, such as the launches of a network in batches of many lengths, take turns: each gets
 * its own graph. Long ones fill the nodes that a queue keeps, and share graphs then. */
TEST_WITH(test_many_kept_chains, begin, end)
{
    enum { RUNS = 100, LENGTH = 8, LONG_RUNS = 40, LONG = 1000, AGAIN = 12 };
    hal_plugin_kernel *kernel = kernel_of(1);
    hal_plugin_memory *memory = memory_of(HAL_MEMORY_DEVICE, BYTES);
    uint32_t set = 0;
    for (uint32_t again = 0; again < AGAIN; again++) {
        set = mock->nodes_set;
        for (uint32_t run = 0; run < RUNS; run++) {
            mock->launch_count = 0;
            dispatch_many(kernel, memory, LENGTH, 100 * run);
        }
    }
    /* Some share a counter, by addresses: a tenth of the runs in 3 of 100 processes. */
    assert_in_range(mock->nodes_set - set, 0, RUNS * LENGTH / 4);
    const uint32_t built = mock->graphs_built;
    for (uint32_t again = 0; again < AGAIN; again++) {
        for (uint32_t run = 0; run < LONG_RUNS; run++) {
            mock->launch_count = 0;
            dispatch_many(kernel, memory, LONG, 5000 * (run + 1));
        }
    }
    assert_in_range(mock->graphs_built - built, 20, 32 + 4);
    plugin->kernel_destroy(device, kernel);
    plugin->memory_free(device, memory);
}

/* A chain drops destroyed kernels, also from disabled nodes. */
TEST_WITH(test_kernels_that_are_gone, begin, end)
{
    hal_plugin_memory *memory = memory_of(HAL_MEMORY_DEVICE, BYTES);
    for (int i = 0; i < 12; i++) {
        hal_plugin_kernel *kernel = kernel_of(i);
        dispatch_many(kernel, memory, i % 2 ? 60 : 40, 0);
        plugin->kernel_destroy(device, kernel);
    }
    assert_int_equal(mock->stale_functions, 0);
    plugin->memory_free(device, memory);
}

/* What the stream waits for may be up to the thread that submits, so no submit waits for it. */
TEST_WITH(test_kernels_that_go_while_chains_run, begin, end)
{
    hal_plugin_memory *memory = memory_of(HAL_MEMORY_DEVICE, BYTES);
    hal_plugin_kernel *kernel = kernel_of(1), *other = kernel_of(2);
    mock->hold = 1;
    dispatch_many(kernel, memory, 20, 0);
    plugin->kernel_destroy(device, other);
    dispatch_many(kernel, memory, 20, 0);
    assert_int_equal(mock->graphs_built, 2);
    assert_int_equal(mock->held_waits, 0);
    mock->hold = 0;
    does(plugin->wait(queue, value, UINT64_MAX));
    dispatch_many(kernel, memory, 20, 0);
    assert_int_equal(mock->graphs_built, 2);
    plugin->kernel_destroy(device, kernel);
    plugin->memory_free(device, memory);
}

/* A kernel that asks for clusters of two groups. */
static hal_plugin_kernel *cluster_kernel_make(void)
{
    static const char code[] = ".entry mine\n.reqnctapercluster 2, 1, 1\n";
    hal_ir_kernel *interface = ir_parse("kernel native\ngroup 64 1 1\nbinding out u32 write\n"
                                        "scalar n u32\n");
    hal_plugin_kernel *kernel = NULL;
    does(plugin->kernel_create_native(device, "ptx", code, sizeof code - 1, "mine", interface,
                                      &kernel));
    hal_ir_kernel_destroy(interface);
    return kernel;
}

/* A node of a graph keeps the clusters of a kernel; groups of a later kernel without clusters would
 * be lost. So kernels with clusters are launched alone, and get a graph once they are repeated. */
TEST_WITH(test_clusters, begin, end)
{
    hal_plugin_kernel *clusters = cluster_kernel_make(), *plain = kernel_of(1);
    hal_plugin_memory *memory = memory_of(HAL_MEMORY_DEVICE, BYTES);
    uint32_t graphs = mock->graph_launches;
    for (uint32_t i = 0; i < 3; i++) {
        dispatch_many(clusters, memory, 20, i);
        dispatch_many(plain, memory, 20, i);
    }
    assert_int_equal(mock->graph_launches - graphs, 3);
    for (uint32_t i = 0; i < 10; i++) {
        dispatch_many(clusters, memory, 20, 7);
        dispatch_many(plain, memory, 18 + i % 4, 7);
    }
    graphs = mock->graph_launches;
    dispatch_many(clusters, memory, 20, 7);
    assert_int_equal(mock->graph_launches - graphs, 1);
    assert_int_equal(mock->lost_groups, 0);
    plugin->kernel_destroy(device, plain);
    plugin->kernel_destroy(device, clusters);
    plugin->memory_free(device, memory);
}

/* A repeated batch is distinguished from a similar one: with another scalar, and with memory whose
 * description has the address of one that was freed. */
TEST_WITH(test_runs_that_look_alike, begin, end)
{
    enum { COUNT = 20 };
    hal_plugin_kernel *kernel = kernel_of(1);
    for (uint32_t turn = 0; turn < 6; turn++) {
        /* Each turn's memory has another size, so that its address is a new one. */
        hal_plugin_memory *memory = memory_of(HAL_MEMORY_DEVICE, BYTES << turn);
        for (uint32_t again = 0; again < 3 + turn; again++) {
            dispatch_many(kernel, memory, COUNT, 7);
            dispatch_many(kernel, memory, COUNT, 7);
            dispatch_many(kernel, memory, COUNT, again == turn ? 8 : 9);
            for (uint32_t i = 0; i < 3 * COUNT; i++) {
                uint64_t address = 0;
                memcpy(&address, mock->launches[i].block, 8);
                assert_int_equal(address, memory->address);
            }
            mock->launch_count = 0;
        }
        plugin->memory_free(device, memory);
    }
    plugin->kernel_destroy(device, kernel);
}

/* A loop of 37 dispatches in batches of 1,000, which end somewhere in it: its whole turns come
 * again as the same run, and only what is left at both ends of a batch is set anew. */
TEST_WITH(test_loops, begin, end)
{
    enum { TURN = 37, COUNT = 1000, BATCHES = 40 };
    static hal_command commands[COUNT];
    static uint64_t scalars[COUNT];
    hal_plugin_kernel *kernel = kernel_of(1);
    hal_plugin_memory *memory = memory_of(HAL_MEMORY_DEVICE, BYTES);
    const hal_binding binding = {.memory = memory, .length = BYTES, .access = HAL_ACCESS_WRITE};
    uint32_t set = 0;
    for (uint32_t at = 0; at < BATCHES * COUNT; at += COUNT) {
        for (uint32_t i = 0; i < COUNT; i++) {
            scalars[i] = (at + i) % TURN;
            commands[i] = (hal_command){.kind = HAL_COMMAND_DISPATCH,
                                        .binding_count = 1,
                                        .scalar_bytes = 4,
                                        .scalar_first = 8 * i,
                                        .grid = {1, 1, 1},
                                        .kernel = kernel};
        }
        set = at == BATCHES / 2 * COUNT ? mock->nodes_set : set;
        mock->launch_count = 0;
        submit(commands, COUNT, &binding, 1, (const uint8_t *)scalars, 8 * COUNT);
        assert_int_equal(mock->launch_count, COUNT);
        for (uint32_t i = 0; i < COUNT; i++) {
            uint32_t scalar = 0;
            memcpy(&scalar, mock->launches[i].block + 8, 4);
            assert_int_equal(scalar, (at + i) % TURN);
        }
    }
    assert_in_range(mock->nodes_set - set, 0, BATCHES / 2 * 2 * TURN);
    plugin->kernel_destroy(device, kernel);
    plugin->memory_free(device, memory);
}

/* ---- Random batches ---- */

enum { KINDS = 5, MEMORIES = 6, PATTERNS = 80, LONGEST = 70, TURNS = 6000 };

/* Dispatches of a batch, which comes again and again. */
typedef struct pattern {
    uint32_t count;
    struct {
        uint32_t kernel, memory, grid[2], scalar;
    } all[LONGEST];
} pattern;

static uint32_t below(uint64_t *state, uint32_t limit)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33) % limit;
}

/* A new pattern, or one that differs from an old one in a dispatch. */
static void pattern_make(uint64_t *random, const pattern *old, pattern *made)
{
    *made = *old;
    if (below(random, 2) == 0) {
        made->count = 1 + below(random, LONGEST);
    }
    const uint32_t first = made->count == old->count ? below(random, made->count) : 0,
                   end = made->count == old->count ? first + 1 : made->count;
    for (uint32_t i = first; i < end; i++) {
        made->all[i].kernel = below(random, KINDS);
        made->all[i].memory = below(random, MEMORIES);
        made->all[i].grid[0] = 1 + below(random, 3);
        made->all[i].grid[1] = 1 + below(random, 3);
        made->all[i].scalar = below(random, 4);
    }
}

/* Submits a pattern; what the driver launched is checked. */
static void pattern_run(const pattern *p, hal_plugin_kernel *const *kernels,
                        hal_plugin_memory *const *memories)
{
    hal_command commands[LONGEST];
    hal_binding bindings[LONGEST];
    uint64_t scalars[LONGEST];
    for (uint32_t i = 0; i < p->count; i++) {
        scalars[i] = p->all[i].scalar;
        bindings[i] = (hal_binding){
            .memory = memories[p->all[i].memory], .length = BYTES, .access = HAL_ACCESS_WRITE};
        commands[i] = (hal_command){.kind = HAL_COMMAND_DISPATCH,
                                    .binding_count = 1,
                                    .binding_first = i,
                                    .scalar_bytes = 4,
                                    .scalar_first = 8 * i,
                                    .grid = {p->all[i].grid[0], p->all[i].grid[1], 1},
                                    .kernel = kernels[p->all[i].kernel]};
    }
    mock->launch_count = 0;
    submit(commands, p->count, bindings, p->count, (const uint8_t *)scalars, 8 * p->count);
    assert_int_equal(mock->launch_count, p->count);
    for (uint32_t i = 0; i < p->count; i++) {
        const cuda_mock_launch *launch = &mock->launches[i];
        uint32_t scalar = 0;
        memcpy(&scalar, launch->block + 8, 4);
        assert_ptr_equal(launch->function, kernels[p->all[i].kernel]->function);
        assert_memory_equal(launch->block, &memories[p->all[i].memory]->address, 8);
        assert_memory_equal(launch->grid, p->all[i].grid, sizeof p->all[i].grid);
        assert_int_equal(scalar, p->all[i].scalar);
    }
}

/* Batches that are repeated, alike and new, more than there are chains; kernels and memory come and
 * go. Each dispatch is launched once, in order and with its own arguments. */
TEST_WITH(test_random_batches, begin, end)
{
    static pattern patterns[PATTERNS];
    hal_plugin_kernel *kernels[KINDS];
    hal_plugin_memory *memories[MEMORIES];
    uint64_t random = 2611;
    for (uint32_t i = 0; i < KINDS; i++) {
        kernels[i] = i == 0 ? cluster_kernel_make() : kernel_of((int)i);
    }
    for (uint32_t i = 0; i < MEMORIES; i++) {
        memories[i] = memory_of(HAL_MEMORY_DEVICE, BYTES);
    }
    for (uint32_t i = 0; i < PATTERNS; i++) {
        patterns[i].count = 20;
        pattern_make(&random, &patterns[i / 2], &patterns[i]);
    }
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        const uint32_t at = (turn / 100 + below(&random, 4)) % PATTERNS, what = below(&random, 300);
        for (uint32_t again = 1 + below(&random, 3); again > 0; again--) {
            pattern_run(&patterns[at], kernels, memories);
        }
        if (what < KINDS) {
            plugin->kernel_destroy(device, kernels[what]);
            kernels[what] = what == 0 ? cluster_kernel_make() : kernel_of((int)turn);
        } else if (what < KINDS + MEMORIES) {
            plugin->memory_free(device, memories[what - KINDS]);
            memories[what - KINDS] = memory_of(HAL_MEMORY_DEVICE, BYTES);
        } else if (what == 299) {
            pattern_make(&random, &patterns[at], &patterns[below(&random, PATTERNS)]);
        }
    }
    assert_int_equal(mock->lost_groups, 0);
    for (uint32_t i = 0; i < KINDS; i++) {
        plugin->kernel_destroy(device, kernels[i]);
    }
    for (uint32_t i = 0; i < MEMORIES; i++) {
        plugin->memory_free(device, memories[i]);
    }
}

/* Never a chain, or always one. */
TEST_WITH(test_chain_variable, begin, end)
{
    static const char *const values[] = {"0", "1"};
    for (int i = 0; i < 2; i++) {
        close_device();
        setenv("HAL_CUDA_CHAIN", values[i], 1);
        open_device();
        hal_plugin_kernel *kernel = kernel_of(1);
        hal_plugin_memory *memory = memory_of(HAL_MEMORY_DEVICE, BYTES);
        const uint32_t graphs = mock->graph_launches;
        dispatch_many(kernel, memory, 1, 0);
        dispatch_many(kernel, memory, 50, 0);
        assert_int_equal(mock->graph_launches - graphs, i ? 2 : 0);
        plugin->kernel_destroy(device, kernel);
        plugin->memory_free(device, memory);
    }
    hal_plugin_device *other = NULL;
    setenv("HAL_CUDA_CHAIN", "some", 1);
    fails(plugin_open(plugin, 0, &other), HAL_ERROR_INVALID_ARGUMENT,
          "HAL_CUDA_CHAIN: expected a number from 1, or 0 for never, got some");
    unsetenv("HAL_CUDA_CHAIN");
    setenv("HAL_CUDA_POINTS", "stars", 1);
    fails(plugin_open(plugin, 0, &other), HAL_ERROR_INVALID_ARGUMENT,
          "HAL_CUDA_POINTS: expected counter or events, got stars");
}

UNIT_MAIN(load_plugin, NULL)
