/* Labels and branches. */
#ifndef PLUGINS_VULKAN_LOWER_BLOCK_H
#define PLUGINS_VULKAN_LOWER_BLOCK_H

#include "lower/types.h"

/* Starts the block `label`. */
void lower_label(lower *l, uint32_t label);
void lower_branch(lower *l, uint32_t target);
void lower_branch_if(lower *l, uint32_t condition, uint32_t yes, uint32_t no, uint32_t merge);
uint32_t lower_phi(lower *l, uint32_t type, uint32_t one, uint32_t from_one, uint32_t other,
                   uint32_t from_other);

#endif
