/* cases.h: the functions that add cases to the list, one for each group; cases.c calls them. */
#ifndef CONFORMANCE_CASE_CASES_H
#define CONFORMANCE_CASE_CASES_H

#include "case/case.h"

void cases_hal_device(case_list *list);
void cases_hal_plugin_file(case_list *list);
void cases_hal_buffer(case_list *list);
void cases_hal_large(case_list *list);
void cases_hal_limits(case_list *list);
void cases_hal_widths(case_list *list);
void cases_hal_coherence(case_list *list);
void cases_hal_external(case_list *list);
void cases_hal_native_queues(case_list *list);
void cases_hal_fences(case_list *list);
void cases_hal_reserved(case_list *list);
void cases_hal_reports(case_list *list);
void cases_hal_host_call(case_list *list);
void cases_hal_kernel_print(case_list *list);
void cases_hal_pairs(case_list *list);
void cases_hal_fresh(case_list *list);
void cases_hal_queue(case_list *list);
void cases_hal_rows(case_list *list);
void cases_hal_indirect(case_list *list);
void cases_hal_arguments(case_list *list);
void cases_hal_points(case_list *list);
void cases_hal_graph(case_list *list);
void cases_hal_kernel(case_list *list);
void cases_hal_lifetimes(case_list *list);
void cases_hal_leaks(case_list *list);
void cases_hal_patience(case_list *list);
void cases_hal_batches(case_list *list);
void cases_hal_words(case_list *list);
void cases_hal_threads(case_list *list);
void cases_hal_faults(case_list *list);
void cases_hal_failures(case_list *list);
void cases_hal_transfer(case_list *list);
void cases_hal_comm(case_list *list);
void cases_hal_comm_stress(case_list *list);
void cases_hal_comm_process(case_list *list);
void cases_hal_stress(case_list *list);
void cases_hal_process(case_list *list);
void cases_hal_inherited(case_list *list);

void cases_ir_ids(case_list *list);
void cases_ir_elementwise(case_list *list);
void cases_ir_as_written(case_list *list);
void cases_ir_convert(case_list *list);
void cases_ir_memory(case_list *list);
void cases_ir_index(case_list *list);
void cases_ir_atomic(case_list *list);
void cases_ir_control(case_list *list);
void cases_ir_loops(case_list *list);
void cases_ir_shared(case_list *list);
void cases_ir_subgroup(case_list *list);
void cases_ir_matrix(case_list *list);
void cases_ir_sanitize(case_list *list);
void cases_ir_pairs(case_list *list);
void cases_ir_folding(case_list *list);
void cases_ir_order(case_list *list);
void cases_ir_size(case_list *list);

void cases_ops_pointwise(case_list *list);
void cases_ops_shapes(case_list *list);
void cases_ops_reduce(case_list *list);
void cases_ops_rows(case_list *list);
void cases_ops_softmax(case_list *list);
void cases_ops_attention(case_list *list);
void cases_ops_attention_gradients(case_list *list);
void cases_ops_gemm(case_list *list);
void cases_ops_gemm_classes(case_list *list);
void cases_ops_gemm_native_classes(case_list *list);
void cases_ops_gemm_long(case_list *list);
void cases_ops_gemm_integers(case_list *list);
void cases_ops_gemm_exact(case_list *list);
void cases_ops_gemm_stress(case_list *list);
void cases_ops_normwise(case_list *list);
void cases_ops_quantised(case_list *list);
void cases_ops_grouped(case_list *list);
void cases_ops_index(case_list *list);
void cases_ops_recurrent(case_list *list);
void cases_ops_scan(case_list *list);
void cases_ops_scatter(case_list *list);
void cases_ops_sort(case_list *list);
void cases_ops_convolution(case_list *list);
void cases_ops_resize(case_list *list);
void cases_ops_windows(case_list *list);
void cases_ops_pooling(case_list *list);
void cases_ops_adaptive_pooling(case_list *list);
void cases_ops_normalisation(case_list *list);
void cases_ops_statistics(case_list *list);
void cases_ops_complex(case_list *list);
void cases_ops_random(case_list *list);
void cases_ops_messages(case_list *list);
void cases_ops_array(case_list *list);
void cases_ops_array_kernels(case_list *list);
void cases_ops_array_program(case_list *list);
void cases_ops_array_values(case_list *list);
void cases_ops_array_graph(case_list *list);
void cases_ops_loop(case_list *list);
void cases_ops_array_network(case_list *list);
void cases_ops_array_order(case_list *list);
void cases_ops_ranks(case_list *list);

#endif
