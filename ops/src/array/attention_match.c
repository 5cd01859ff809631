/* Attention by expressions, see attention_match.h. */
#include "attention_match.h"

#include "matmul.h"

#include "attention/attention.h"
#include "tensor/message.h"

#include <math.h>

enum { CAUSAL = 1, PRECISION_SHIFT = 1, PRECISIONS = 7, TRANSPOSED = 16 };

/* Operations between the product of q and k, and the softmax, at most. */
#define MAX_STEPS 4u

typedef struct match {
    ops_array *q, *k_transposed, *v, *mask; /* mask: null: none */
    double scale;
    uint32_t precision;
    ops_array *steps[MAX_STEPS + 2]; /* nodes that the kernel computes without storing them */
    uint32_t step_count;
} match;

uint32_t ops_attention_function(bool causal, uint32_t precision, bool transposed)
{
    return (causal ? CAUSAL : 0) | precision << PRECISION_SHIFT | (transposed ? TRANSPOSED : 0);
}

ops_attention_options ops_attention_options_of(const ops_array *node, bool *transposed)
{
    ops_attention_options options = OPS_ATTENTION_OPTIONS_DEFAULT;
    options.causal = node->function & CAUSAL;
    options.precision = node->function >> PRECISION_SHIFT & PRECISIONS;
    options.scale = node->scale;
    *transposed = (node->function & TRANSPOSED) != 0;
    return options;
}

/* The value of an array that is one number; false for others. */
static bool array_is_number(const ops_array *array, double *value)
{
    *value = array->operation == OPS_OPERATION_CONSTANT ? array->value : 0;
    return array->operation == OPS_OPERATION_CONSTANT && array->state == OPS_NODE_MEMORY;
}

/* Whether a node has the shape of the scores, and only the next step reads it. */
static bool node_is_step(const ops_array *node, const ops_array *scores)
{
    return node->state == OPS_NODE_DEFERRED && ops_node_is_needed_once(node, 1) &&
           !ops_node_is_placed(node) && ops_node_has_shape_of(node, scores);
}

/* A factor of the scores, before anything else is done to them. */
static ops_array *match_factor(match *m, const ops_array *node)
{
    double value;
    if (node->function == OPS_DIV && array_is_number(node->operands[1], &value)) {
        m->scale /= value;
        return node->operands[0];
    }
    for (uint32_t i = 0; i < 2 && node->function == OPS_MUL; i++) {
        if (array_is_number(node->operands[i], &value)) {
            m->scale *= value;
            return node->operands[1 - i];
        }
    }
    return NULL;
}

/* One step from the softmax towards the product of q and k; null: no step of attention. */
static ops_array *match_step(match *m, const ops_array *node)
{
    double value;
    const bool may_mask = !m->mask && m->scale == 1;
    if (node->operation == OPS_OPERATION_WHERE && may_mask) {
        m->mask = node->operands[0];
        return array_is_number(node->operands[2], &value) && value == -INFINITY ? node->operands[1]
                                                                                : NULL;
    }
    if (node->operation != OPS_OPERATION_BINARY) {
        return NULL;
    }
    if (node->function == OPS_ADD && may_mask) {
        /* The mask is an operand that no product of this expression computes. */
        const ops_array *first = node->operands[0];
        const bool is_first =
            node_is_step(first, node) &&
            (first->operation == OPS_OPERATION_MATMUL || first->operation == OPS_OPERATION_BINARY);
        m->mask = node->operands[is_first];
        return node->operands[!is_first];
    }
    return match_factor(m, node);
}

static bool match_scores(match *m, ops_array *scores)
{
    ops_array *node = scores;
    for (uint32_t i = 0; i <= MAX_STEPS && node && node_is_step(node, scores); i++) {
        m->steps[m->step_count++] = node;
        if (node->operation == OPS_OPERATION_MATMUL && !node->form) {
            m->q = node->operands[0];
            m->k_transposed = node->operands[1];
            return node->function == m->precision;
        }
        node = match_step(m, node);
    }
    return false;
}

/* Whether the call of attention takes the operands, and gives the product's result. */
static bool match_fits(const match *m, const ops_array *matmul)
{
    const ops_tensor *kt = &m->k_transposed->view;
    const ops_tensor *mask = m->mask ? &m->mask->view : NULL;
    ops_tensor k, y;
    return kt->rank >= 2 && m->scale > 0 && !isinf(m->scale) &&
           ops_tensor_transpose(kt, kt->rank - 2, kt->rank - 1, &k) == HAL_OK &&
           ops_attention_describe("ops_array_attention", &m->q->view, &k, &m->v->view, mask, &y) ==
               HAL_OK &&
           y.type == matmul->view.type && ops_same_shape(&y, &matmul->view) &&
           ops_tensor_get_element_count(kt) > 0;
}

/* Makes the product's node that of attention, which computes the steps as well. */
static bool match_apply(match *m, ops_array *matmul)
{
    ops_array *const operands[4] = {m->q, m->k_transposed, m->v, m->mask};
    for (uint32_t i = 0; i < m->step_count; i++) {
        m->steps[i]->was_computed = 1;
    }
    if (ops_node_replace_operands(matmul, operands, m->mask ? 4 : 3) != HAL_OK) {
        return false;
    }
    matmul->owner->statistics.evaluated += m->step_count;
    matmul->operation = OPS_OPERATION_ATTENTION;
    matmul->function = (uint8_t)ops_attention_function(false, m->precision, true);
    matmul->scale = m->scale;
    return true;
}

bool ops_attention_match(ops_array *matmul)
{
    ops_array *weights = matmul->operands[0];
    match m = {.v = matmul->operands[1],
               .scale = 1,
               .precision = matmul->function,
               .steps = {weights},
               .step_count = 1};
    if (matmul->operation != OPS_OPERATION_MATMUL || matmul->form ||
        weights->operation != OPS_OPERATION_SOFTMAX || weights->view.rank < 2 ||
        weights->axis != weights->view.rank - 1 || weights->view.type != matmul->view.type ||
        m.precision > HAL_GEMM_NORMWISE || !node_is_step(weights, weights) ||
        !match_scores(&m, weights->operands[0])) {
        return false;
    }
    ops_message message;
    ops_message_save(&message);
    const bool applies = match_fits(&m, matmul) && match_apply(&m, matmul);
    ops_message_restore(&message);
    return applies;
}
