/* Matrix products of arrays, see matmul.h. */
#include "matmul.h"

#include "gemm/normwise/normwise.h"

/* `function` has 8 bits. */
#define PRECISION_BITS 4u
#define LEVELS_MASK ((OPS_MATMUL_GROUPED >> PRECISION_BITS) - 1)

_Static_assert(HAL_GEMM_EXACT >> PRECISION_BITS == 0 && HAL_GEMM_MAX_LEVELS <= LEVELS_MASK,
               "precision and levels fit into `function`");

uint32_t ops_matmul_function(uint32_t precision, uint32_t levels)
{
    return precision | levels << PRECISION_BITS;
}

ops_gemm_options ops_matmul_options(const ops_array *matmul)
{
    return (ops_gemm_options){.size = sizeof(ops_gemm_options),
                              .alpha = 1,
                              .precision = matmul->function & ((1u << PRECISION_BITS) - 1),
                              .levels = matmul->function >> PRECISION_BITS & LEVELS_MASK,
                              .prepared = ops_matmul_prepared(matmul)};
}

const ops_gemm_prepared *ops_matmul_prepared(const ops_array *matmul)
{
    const ops_array *b = matmul->operands[1];
    const uint32_t precision = matmul->function & ((1u << PRECISION_BITS) - 1);
    return !ops_node_is_grouped(matmul) && precision == HAL_GEMM_NORMWISE &&
                   b->operation == OPS_OPERATION_PREPARED &&
                   ops_gemm_prepared_get_levels(b->prepared) > 0
               ? b->prepared
               : NULL;
}

bool ops_matmul_may_take_sums(const ops_array *node)
{
    return node->operation == OPS_OPERATION_MATMUL && !ops_node_is_grouped(node) &&
           ops_matmul_options(node).precision == HAL_GEMM_NORMWISE &&
           (ops_matmul_prepared(node) || !node->owner->context->tuning->gemm.has_levels_inside);
}

uint32_t ops_matmul_sums_levels(const ops_array *matmul, const ops_array *root,
                                uint32_t input_count)
{
    const ops_tensor *a = &matmul->operands[0]->view, *b = &matmul->operands[1]->view;
    const ops_gemm_prepared *prepared = ops_matmul_prepared(matmul);
    ops_gemm_options options = ops_matmul_options(matmul);
    options.input_count = input_count;
    if (!ops_matmul_may_take_sums(matmul) || a->rank != 2 || b->rank != 2 || root->is_reordered ||
        root->view.type != a->type || matmul->view.type != a->type) {
        return 0;
    }
    const ops_normwise_shape shape = {.type = a->type,
                                      .batch = 1,
                                      .m = a->shape[0],
                                      .n = b->shape[1],
                                      .k = a->shape[1],
                                      .b_levels = ops_gemm_prepared_get_levels(prepared)};
    return ops_normwise_sums_levels(matmul->owner->context->info, &options, &shape);
}

void ops_matmul_sums_describe(ops_matmul_sums *sums, const ops_array *result)
{
    sums->array.state = OPS_NODE_MEMORY;
    sums->array.view = ops_normwise_sums_layout(sums->levels, &result->view);
}
