/* cases.c: all groups of cases, in the order in which they run. */
#include "case/cases.h"

#include <inttypes.h>

static const struct {
    const char *name;
    unsigned level;
    void (*add)(case_list *list);
} groups[] = {
    {"hal/device", CASE_LEVEL_CORE, cases_hal_device},
    {"hal/plugin_file", CASE_LEVEL_CORE, cases_hal_plugin_file},
    {"hal/buffer", CASE_LEVEL_CORE, cases_hal_buffer},
    {"hal/large", CASE_LEVEL_CORE, cases_hal_large},
    {"hal/limits", CASE_LEVEL_CORE, cases_hal_limits},
    {"hal/widths", CASE_LEVEL_CORE, cases_hal_widths},
    {"hal/coherence", CASE_LEVEL_CORE, cases_hal_coherence},
    {"hal/external", CASE_LEVEL_CORE, cases_hal_external},
    {"hal/native_queues", CASE_LEVEL_CORE, cases_hal_native_queues},
    {"hal/fences", CASE_LEVEL_CORE, cases_hal_fences},
    {"hal/reserved", CASE_LEVEL_CORE, cases_hal_reserved},
    {"hal/reports", CASE_LEVEL_CORE, cases_hal_reports},
    {"hal/host_call", CASE_LEVEL_CORE, cases_hal_host_call},
    {"hal/kernel_print", CASE_LEVEL_CORE, cases_hal_kernel_print},
    {"hal/queue", CASE_LEVEL_CORE, cases_hal_queue},
    {"hal/rows", CASE_LEVEL_CORE, cases_hal_rows},
    {"hal/indirect", CASE_LEVEL_CORE, cases_hal_indirect},
    {"hal/arguments", CASE_LEVEL_CORE, cases_hal_arguments},
    {"hal/points", CASE_LEVEL_CORE, cases_hal_points},
    {"hal/patience", CASE_LEVEL_CORE, cases_hal_patience}, /* next to the others */
    {"hal/transfer", CASE_LEVEL_CORE, cases_hal_transfer},
    {"hal/graph", CASE_LEVEL_CORE, cases_hal_graph},
    {"hal/kernel", CASE_LEVEL_CORE, cases_hal_kernel},
    {"hal/pairs", CASE_LEVEL_CORE, cases_hal_pairs},
    {"hal/lifetimes", CASE_LEVEL_CORE, cases_hal_lifetimes},
    {"hal/leaks", CASE_LEVEL_CORE, cases_hal_leaks},
    {"hal/batches", CASE_LEVEL_CORE, cases_hal_batches},
    {"hal/words", CASE_LEVEL_CORE, cases_hal_words},
    {"hal/threads", CASE_LEVEL_CORE, cases_hal_threads},
    {"hal/faults", CASE_LEVEL_CORE, cases_hal_faults},
    {"hal/failures", CASE_LEVEL_CORE, cases_hal_failures},
    {"hal/fresh", CASE_LEVEL_CORE, cases_hal_fresh},
    {"hal/comm", CASE_LEVEL_COMM, cases_hal_comm},
    {"hal/comm_process", CASE_LEVEL_COMM, cases_hal_comm_process},
    {"hal/comm_stress", CASE_LEVEL_STRESS, cases_hal_comm_stress},
    {"hal/stress", CASE_LEVEL_STRESS, cases_hal_stress},
    {"hal/process", CASE_LEVEL_CORE | CASE_LEVEL_PROCESS, cases_hal_process},
    {"hal/inherited", CASE_LEVEL_CORE | CASE_LEVEL_PROCESS, cases_hal_inherited},
    {"ir/ids", CASE_LEVEL_CORE, cases_ir_ids},
    {"ir/elementwise", CASE_LEVEL_CORE, cases_ir_elementwise},
    {"ir/as_written", CASE_LEVEL_CORE, cases_ir_as_written},
    {"ir/pairs", CASE_LEVEL_CORE, cases_ir_pairs},
    {"ir/folding", CASE_LEVEL_CORE, cases_ir_folding},
    {"ir/order", CASE_LEVEL_CORE, cases_ir_order},
    {"ir/convert", CASE_LEVEL_CORE, cases_ir_convert},
    {"ir/memory", CASE_LEVEL_CORE, cases_ir_memory},
    {"ir/index", CASE_LEVEL_CORE, cases_ir_index},
    {"ir/atomic", CASE_LEVEL_CORE, cases_ir_atomic},
    {"ir/control", CASE_LEVEL_CORE, cases_ir_control},
    {"ir/loops", CASE_LEVEL_CORE, cases_ir_loops},
    {"ir/shared", CASE_LEVEL_CORE, cases_ir_shared},
    {"ir/size", CASE_LEVEL_CORE, cases_ir_size},
    {"ir/subgroup", CASE_LEVEL_CORE, cases_ir_subgroup},
    {"ir/matrix", CASE_LEVEL_CORE, cases_ir_matrix},
    {"ir/sanitize", CASE_LEVEL_SANITIZE, cases_ir_sanitize},
    {"ops/pointwise", CASE_LEVEL_OPS, cases_ops_pointwise},
    {"ops/shapes", CASE_LEVEL_OPS, cases_ops_shapes},
    {"ops/reduce", CASE_LEVEL_OPS, cases_ops_reduce},
    {"ops/rows", CASE_LEVEL_OPS, cases_ops_rows},
    {"ops/softmax", CASE_LEVEL_OPS, cases_ops_softmax},
    {"ops/attention", CASE_LEVEL_OPS, cases_ops_attention},
    {"ops/attention_gradients", CASE_LEVEL_OPS, cases_ops_attention_gradients},
    {"ops/gemm", CASE_LEVEL_OPS, cases_ops_gemm},
    {"ops/quantised", CASE_LEVEL_OPS, cases_ops_quantised},
    {"ops/grouped", CASE_LEVEL_OPS, cases_ops_grouped},
    {"ops/gemm_classes", CASE_LEVEL_OPS, cases_ops_gemm_classes},
    {"ops/gemm_native_classes", CASE_LEVEL_OPS, cases_ops_gemm_native_classes},
    {"ops/gemm_long", CASE_LEVEL_OPS, cases_ops_gemm_long},
    {"ops/gemm_integers", CASE_LEVEL_OPS, cases_ops_gemm_integers},
    {"ops/gemm_exact", CASE_LEVEL_OPS, cases_ops_gemm_exact},
    {"ops/gemm_stress", CASE_LEVEL_STRESS, cases_ops_gemm_stress},
    {"ops/normwise", CASE_LEVEL_STRESS, cases_ops_normwise},
    {"ops/index", CASE_LEVEL_OPS, cases_ops_index},
    {"ops/recurrent", CASE_LEVEL_OPS, cases_ops_recurrent},
    {"ops/scan", CASE_LEVEL_OPS, cases_ops_scan},
    {"ops/scatter", CASE_LEVEL_OPS, cases_ops_scatter},
    {"ops/sort", CASE_LEVEL_OPS, cases_ops_sort},
    {"ops/windows", CASE_LEVEL_OPS, cases_ops_windows},
    {"ops/convolution", CASE_LEVEL_OPS, cases_ops_convolution},
    {"ops/resize", CASE_LEVEL_OPS, cases_ops_resize},
    {"ops/pooling", CASE_LEVEL_OPS, cases_ops_pooling},
    {"ops/adaptive_pooling", CASE_LEVEL_OPS, cases_ops_adaptive_pooling},
    {"ops/normalisation", CASE_LEVEL_OPS, cases_ops_normalisation},
    {"ops/statistics", CASE_LEVEL_OPS, cases_ops_statistics},
    {"ops/complex", CASE_LEVEL_OPS, cases_ops_complex},
    {"ops/random", CASE_LEVEL_OPS, cases_ops_random},
    {"ops/messages", CASE_LEVEL_OPS, cases_ops_messages},
    {"ops/array", CASE_LEVEL_OPS, cases_ops_array},
    {"ops/array_values", CASE_LEVEL_OPS, cases_ops_array_values},
    {"ops/array_kernels", CASE_LEVEL_OPS, cases_ops_array_kernels},
    {"ops/array_program", CASE_LEVEL_OPS, cases_ops_array_program},
    {"ops/array_graph", CASE_LEVEL_OPS, cases_ops_array_graph},
    {"ops/loop", CASE_LEVEL_OPS, cases_ops_loop},
    {"ops/array_network", CASE_LEVEL_OPS, cases_ops_array_network},
    {"ops/array_order", CASE_LEVEL_OPS, cases_ops_array_order},
    {"ops/ranks", CASE_LEVEL_OPS, cases_ops_ranks},
};

/* The context may hold memory, so it is destroyed first and recreated for the fixture. */
static void check_leaks(case_run *run, const void *parameters)
{
    ops_context_destroy(run->ops);
    run->ops = NULL;
    hal_memory_statistics statistics = {0};
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    case_ok(run, hal_device_get_memory(run->device, &statistics), "hal_device_get_memory");
    case_check(run, statistics.in_use_bytes == 0,
               "%" PRIu64 " bytes are still in use after all buffers were released",
               statistics.in_use_bytes);
    case_ok(run, ops_context_create(run->queue, &run->ops), "ops_context_create");
}

/* The last case of a group: that nothing stays in use when all was released. */
static void add_leak_check(case_list *list)
{
    case_add(list, check_leaks, NULL, 0, "%s/leaks", list->group);
}

void case_list_fill(case_list *list)
{
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        list->group = groups[i].name;
        list->level = groups[i].level;
        groups[i].add(list);
        list->level = groups[i].level;
        add_leak_check(list);
    }
}
