/* Donation, see donation.h. */
#include "donation.h"

bool ops_donation_is_possible(const ops_fusion_cluster *cluster)
{
    uint64_t stored = 0; /* one bit per node */
    for (uint32_t i = 0; i < cluster->output_count; i++) {
        stored |= UINT64_C(1) << cluster->outputs[i];
    }
    bool ends = cluster->frame_count == 1;
    for (uint32_t i = 0; i < cluster->node_count && ends; i++) {
        const ops_array *node = cluster->nodes[i];
        ends = (stored >> i & 1) || (node->references == 0 && node->uses == cluster->node_uses[i]);
    }
    return ends;
}

bool ops_donation_is_free(const ops_fusion_cluster *cluster, uint32_t leaf, uint32_t output)
{
    const ops_array *x = cluster->leaves[leaf];
    const ops_array *y = cluster->nodes[cluster->outputs[output]];
    return x->state == OPS_NODE_MEMORY && x->references == 0 &&
           x->uses == cluster->leaf_uses[leaf] && x->operation != OPS_OPERATION_CONSTANT &&
           x->operation != OPS_OPERATION_PREPARED && !x->in_host_memory &&
           x->view.type == y->view.type && ops_node_has_shape_of(x, y) &&
           ops_same_strides(&x->view, &y->view);
}

uint32_t ops_donation_find(const ops_fusion_cluster *cluster, uint32_t output, uint32_t taken)
{
    const ops_array *y = cluster->nodes[cluster->outputs[output]];
    const uint64_t bytes =
        (uint64_t)ops_tensor_get_element_count(&y->view) * hal_type_size(y->view.type);
    uint32_t leaf = 0;
    if (bytes < OPS_DONATION_BYTES || y->owner->is_recording || ops_node_is_placed(y) ||
        !ops_donation_is_possible(cluster)) {
        return cluster->leaf_count;
    }
    for (; leaf < cluster->leaf_count; leaf++) {
        const ops_array *x = cluster->leaves[leaf];
        if (!(taken >> leaf & 1) && ops_donation_is_free(cluster, leaf, output) &&
            x->view.offset == 0 && hal_buffer_get_bytes(x->view.buffer) == bytes &&
            !hal_buffer_is_shared(x->view.buffer)) {
            break;
        }
    }
    return leaf;
}
