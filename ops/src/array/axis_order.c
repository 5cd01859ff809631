/* The order of axes, see axis_order.h. */
#include "axis_order.h"

#include <stdlib.h>
#include <string.h>

/* An operand: its strides along the result's axes, 0 where it has no order. */
typedef struct order_voter {
    int64_t bytes;
    bool is_reordered;
    int64_t stride[OPS_MAX_RANK];
} order_voter;

static void voter_init(order_voter *voter, const ops_array *node, const ops_array *x)
{
    const ops_tensor *y = &node->view;
    if (node->operation == OPS_OPERATION_REDUCE && y->rank < x->view.rank) {
        for (uint32_t i = 0; i < y->rank; i++) {
            voter->stride[i] = x->view.stride[i + (i >= node->axis)];
        }
    } else {
        ops_broadcast_strides(&x->view, y->rank, y->shape, voter->stride);
    }
    voter->is_reordered = x->is_reordered;
    voter->bytes = hal_type_size(x->view.type);
    for (uint32_t i = 0; i < y->rank; i++) {
        voter->stride[i] = y->shape[i] == 1 ? 0 : llabs(voter->stride[i]);
        voter->bytes *= voter->stride[i] ? y->shape[i] : 1;
    }
}

/* Sorts the voters by their weight. */
static void voters_sort(order_voter *voters, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        for (uint32_t k = i; k > 0; k--) {
            const order_voter *one = &voters[k - 1], *other = &voters[k];
            if (one->bytes > other->bytes ||
                (one->bytes == other->bytes && one->is_reordered <= other->is_reordered)) {
                break;
            }
            const order_voter moved = *other;
            voters[k] = *one;
            voters[k - 1] = moved;
        }
    }
}

/* Above 0 where `axis` belongs outside of `other`, below 0 where inside, 0 without an order. */
static int voters_compare(const order_voter *voters, uint32_t count, uint32_t axis, uint32_t other)
{
    int sign = 0;
    for (uint32_t i = 0; i < count && sign == 0; i++) {
        const int64_t one = voters[i].stride[axis], two = voters[i].stride[other];
        sign = one == 0 || two == 0 ? 0 : (one > two) - (one < two);
    }
    return sign;
}

/* Whether all operands have the shape of the result and the strides of the first one, without
 * gaps: the usual case within a chain. */
static bool operands_agree(const ops_array *node)
{
    const ops_tensor *first = &node->operands[0]->view;
    bool agree = ops_same_shape(first, &node->view) && ops_is_dense(first);
    for (uint32_t i = 1; agree && i < node->operand_count; i++) {
        const ops_tensor *x = &node->operands[i]->view;
        agree = ops_same_shape(x, first) && ops_same_strides(x, first);
    }
    return agree;
}

void ops_axis_order_set(ops_array *node)
{
    order_voter voters[OPS_INLINE_OPERANDS];
    uint32_t order[OPS_MAX_RANK]; /* axes, the outermost one first */
    ops_tensor *y = &node->view;
    if (operands_agree(node)) {
        memcpy(y->stride, node->operands[0]->view.stride, y->rank * sizeof *y->stride);
        node->is_reordered = 1;
        return;
    }
    for (uint32_t i = 0; i < node->operand_count; i++) {
        voter_init(&voters[i], node, node->operands[i]);
    }
    voters_sort(voters, node->operand_count);
    for (uint32_t i = 0; i < y->rank; i++) {
        /* Outside of the first axis that belongs inside of it; beyond those without an order. */
        uint32_t place = i;
        for (uint32_t k = i; k-- > 0;) {
            const int sign = voters_compare(voters, node->operand_count, i, order[k]);
            if (sign < 0) {
                break;
            }
            place = sign > 0 ? k : place;
        }
        for (uint32_t k = i; k > place; k--) {
            order[k] = order[k - 1];
        }
        order[place] = i;
    }
    int64_t stride = 1;
    for (uint32_t k = y->rank; k-- > 0;) {
        y->stride[order[k]] = stride;
        stride *= y->shape[order[k]] ? y->shape[order[k]] : 1;
    }
    node->is_reordered = (uint8_t)ops_is_reordered(y);
}
