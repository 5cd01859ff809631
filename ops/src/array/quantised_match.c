/* Quantised weights by expressions, see quantised_match.h. */
#include "quantised_match.h"

#include "matmul.h"
#include "tensor/message.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STEPS 8u

typedef struct match {
    ops_quantised_form form;
    ops_array *values, *scales, *zeros; /* zeros: null: none */
    ops_array *steps[MAX_STEPS];        /* nodes that the product computes without storing them */
    uint32_t step_count;
} match;

/* Whether nothing but the next step reads a node. */
static bool match_step(match *m, ops_array *node)
{
    if (node->state != OPS_NODE_DEFERRED || ops_node_is_placed(node) ||
        !ops_node_is_needed_once(node, 1) || m->step_count == MAX_STEPS) {
        return false;
    }
    m->steps[m->step_count++] = node;
    return true;
}

static bool is_transposed(const ops_tensor *view, const ops_tensor *source)
{
    /* [n, k] or [n, blocks, block] without gaps as [k, n] */
    const int64_t n = source->rank >= 2 ? source->shape[0] : 0;
    return (source->rank == 2 || source->rank == 3) && view->rank == 2 && view->offset == 0 &&
           view->shape[1] == n && view->stride[0] == 1 && view->stride[1] == view->shape[0];
}

/* From B to the array that it views, whose rows or columns are those of B. */
static ops_array *match_view(match *m, ops_array *b)
{
    if (!ops_node_is_view(b)) {
        return b->view.rank == 2 ? b : NULL;
    }
    ops_array *source = ops_view_source(b);
    for (ops_array *view = b; view != source; view = view->operands[0]) {
        if (!match_step(m, view)) {
            return NULL;
        }
    }
    m->form.by_columns = 1;
    m->form.blocks = source->view.rank == 3 ? source->view.shape[1] : 1;
    return !source->is_reordered && is_transposed(&b->view, &source->view) ? source : NULL;
}

static bool array_is_number(const ops_array *array, double *value)
{
    *value = array->operation == OPS_OPERATION_CONSTANT ? array->value : 0;
    return array->operation == OPS_OPERATION_CONSTANT && array->state == OPS_NODE_MEMORY;
}

/* The cast of bytes, perhaps less zeros. */
static bool match_values(match *m, ops_array *node)
{
    if (!match_step(m, node)) {
        return false;
    }
    if (node->operation == OPS_OPERATION_BINARY && node->function == OPS_SUB) {
        ops_array *zeros = node->operands[1];
        if (array_is_number(zeros, &m->form.zero)) {
            m->zeros = NULL;
        } else {
            m->zeros = zeros;
        }
        node = node->operands[0];
        if (!match_step(m, node)) {
            return false;
        }
    }
    if (node->operation != OPS_OPERATION_CAST) {
        return false;
    }
    m->values = node->operands[0];
    const hal_type type = m->values->view.type;
    m->form.format = type == HAL_TYPE_I8        ? OPS_QUANTISED_I8
                     : type == HAL_TYPE_U8      ? OPS_QUANTISED_U8
                     : type == HAL_TYPE_F8_E4M3 ? OPS_QUANTISED_E4M3
                                                : 0;
    return m->form.format != 0 && ops_same_shape(&m->values->view, &node->view);
}

/* cast(q) * scales, or (cast(q) - zeros) * scales, of F32 perhaps in another type. */
static bool match_expression(match *m, ops_array *node)
{
    if (node->operation == OPS_OPERATION_CAST && hal_type_is_float(node->view.type) &&
        node->operands[0]->view.type == HAL_TYPE_F32 && match_step(m, node)) {
        node = node->operands[0];
    }
    if (node->operation != OPS_OPERATION_BINARY || node->function != OPS_MUL ||
        !match_step(m, node)) {
        return false;
    }
    const match before = *m;
    for (uint32_t i = 0; i < 2; i++) {
        *m = before;
        m->scales = node->operands[1 - i];
        if (match_values(m, node->operands[i]) && ops_same_shape(&m->values->view, &node->view)) {
            return true;
        }
    }
    return false;
}

static bool match_dequantise(match *m, ops_array *node)
{
    const ops_quantised_form *form = node->form;
    if (node->operation != OPS_OPERATION_DEQUANTISE || !m->form.by_columns ||
        !match_step(m, node)) {
        return false;
    }
    m->form = *form;
    m->values = node->operands[0];
    m->scales = node->operands[1];
    m->zeros = node->operand_count > 2 ? node->operands[2] : NULL;
    return true;
}

/* Scales, or zeros, of an expression: [.., 1] of [n, k] or [n, blocks, block]; [1, n] of [k, n]. */
static bool blocks_view(const ops_quantised_form *form, const ops_tensor *values,
                        const ops_tensor *t, ops_tensor *view)
{
    int64_t shape[OPS_MAX_RANK];
    const uint32_t rank = values->rank, inner = form->by_columns ? rank - 1 : 0;
    for (uint32_t i = 0; i < rank; i++) {
        shape[i] = i == inner ? 1 : values->shape[i];
    }
    if (t->rank > rank || ops_tensor_broadcast(t, rank, shape, view) != HAL_OK) {
        return false;
    }
    if (form->by_columns) {
        const ops_tensor whole = *view;
        *view = (ops_tensor){whole.buffer,
                             whole.type,
                             2,
                             whole.offset,
                             {rank == 3 ? whole.shape[1] : 1, whole.shape[0]},
                             {rank == 3 ? whole.stride[1] : 0, whole.stride[0]}};
    }
    return true;
}

/* Values of [n, blocks, block] as [k, n]. */
static bool values_view(const ops_tensor *values, ops_tensor *view)
{
    const ops_tensor t = *values;
    const bool has_blocks = t.rank == 3;
    if (has_blocks && t.stride[1] != t.shape[2] * t.stride[2]) {
        return false;
    }
    *view = (ops_tensor){t.buffer,
                         t.type,
                         2,
                         t.offset,
                         {has_blocks ? t.shape[1] * t.shape[2] : t.shape[1], t.shape[0]},
                         {t.stride[t.rank - 1], t.stride[0]}};
    return true;
}

bool ops_quantised_form_weights(const ops_quantised_form *form, const ops_tensor *values,
                                const ops_tensor *scales, ops_tensor *zeros, ops_quantised *weights)
{
    *weights = (ops_quantised)OPS_QUANTISED_DEFAULT;
    weights->format = (ops_quantised_format)form->format;
    weights->zero = form->zero;
    weights->values = *values;
    weights->zeros = zeros;
    if (form->by_columns && !values_view(values, &weights->values)) {
        return false;
    }
    if (form->in_blocks) {
        return ops_tensor_transpose(scales, 0, 1, &weights->scales) == HAL_OK &&
               (!zeros || ops_tensor_transpose(zeros, 0, 1, zeros) == HAL_OK);
    }
    return blocks_view(form, values, scales, &weights->scales) &&
           (!zeros || blocks_view(form, values, zeros, zeros));
}

static bool type_is_taken(hal_type type, bool is_scale)
{
    return type == HAL_TYPE_F32 || type == HAL_TYPE_F16 || type == HAL_TYPE_BF16 ||
           (type == HAL_TYPE_U8 && is_scale);
}

/* Whether ops_gemm_quantised takes the weights. */
static bool match_fits(const match *m, const ops_array *matmul)
{
    const ops_tensor *b = &matmul->operands[1]->view;
    ops_tensor zeros = m->zeros ? m->zeros->view : (ops_tensor){0};
    const bool takes_zero = m->form.format < OPS_QUANTISED_E4M3;
    ops_quantised w;
    return type_is_taken(matmul->view.type, false) && b->rank == 2 &&
           matmul->operands[0]->view.type == matmul->view.type &&
           type_is_taken(m->scales->view.type, m->form.in_blocks) &&
           (!m->zeros || type_is_taken(zeros.type, false) || zeros.type == HAL_TYPE_U8 ||
            zeros.type == HAL_TYPE_I8) &&
           fabs(m->form.zero) <= (takes_zero ? 0x1p15 : 0) && m->form.zero == floor(m->form.zero) &&
           ops_tensor_get_element_count(b) > 0 &&
           ops_quantised_form_weights(&m->form, &m->values->view, &m->scales->view,
                                      m->zeros ? &zeros : NULL, &w);
}

/* Makes the product's node one of values and scales. */
static bool match_apply(const match *m, ops_array *matmul)
{
    ops_array *const operands[4] = {matmul->operands[0], m->values, m->scales, m->zeros};
    ops_quantised_form *form = malloc(sizeof *form);
    if (!form) {
        return false;
    }
    *form = m->form;
    for (uint32_t i = 0; i < m->step_count; i++) {
        m->steps[i]->was_computed = 1;
    }
    if (ops_node_replace_operands(matmul, operands, m->zeros ? 4 : 3) != HAL_OK) {
        free(form);
        return false;
    }
    matmul->form = form;
    matmul->owner->statistics.evaluated += m->step_count;
    return true;
}

bool ops_quantised_match(ops_array *matmul)
{
    match m;
    memset(&m, 0, sizeof m);
    m.form.blocks = 1;
    if (matmul->operation != OPS_OPERATION_MATMUL || matmul->form ||
        ops_matmul_options(matmul).precision == HAL_GEMM_NORMWISE) {
        return false;
    }
    ops_message message;
    ops_message_save(&message);
    ops_array *weights = match_view(&m, matmul->operands[1]);
    const match before = m;
    bool applies = weights && match_dequantise(&m, weights);
    if (weights && !applies) {
        m = before;
        applies = match_expression(&m, weights);
    }
    applies = applies && match_fits(&m, matmul) && match_apply(&m, matmul);
    ops_message_restore(&message);
    return applies;
}
