/* Donation: an elementwise result takes the memory of an operand that nothing reads after the
 * kernel, as in an optimizer's step, whose new parameters take the place of the old ones. */
#ifndef OPS_SRC_ARRAY_DONATION_H
#define OPS_SRC_ARRAY_DONATION_H

#include "fusion_cluster.h"

/* Bytes from which on results take memory of operands. Smaller ones take it from the pool: a kernel
 * that works in place is another one to compile. */
#define OPS_DONATION_BYTES (UINT64_C(1) << 20)

/* Whether no node of the cluster remains deferred: one that is not stored has no other use. */
bool ops_donation_is_possible(const ops_fusion_cluster *cluster);

/* Of a cluster of which it is possible: whether a leaf has the type and the order of an output, and
 * can be read by nothing once the outputs are in memory, except by way of its buffer. */
bool ops_donation_is_free(const ops_fusion_cluster *cluster, uint32_t leaf, uint32_t output);

/* The leaf whose memory output number `output` may take; leaf_count: none. `taken`: a bit for each
 * leaf that another output takes. */
uint32_t ops_donation_find(const ops_fusion_cluster *cluster, uint32_t output, uint32_t taken);

#endif
