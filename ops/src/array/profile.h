/* What a profile shows of fusion: the calls of the program that became a plan's commands, and why
 * the plan has no more of them (hal/profile.h). Nothing happens while no profile is written. */
#ifndef OPS_SRC_ARRAY_PROFILE_H
#define OPS_SRC_ARRAY_PROFILE_H

#include "fusion_plan.h"

/* Why `first` has to be computed by a kernel before `user`, whose plan needs it. A constant. */
const char *ops_profile_boundary(const ops_array *first, const ops_array *user);

/* Begins the group of a plan, which ends for the reason `end`, or of a number of nodes; labels the
 * buffers of results. */
void ops_profile_begin_plan(const ops_fusion_plan *plan, const char *end);
void ops_profile_begin_joined(ops_context *context, ops_array *const *nodes, uint32_t count);
void ops_profile_label(hal_buffer *buffer, const ops_array *result);
void ops_profile_end(ops_context *context);

#endif
