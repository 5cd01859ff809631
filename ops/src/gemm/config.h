/* Configs: a portable kernel as text, by which a caller pins it. */
#ifndef OPS_SRC_GEMM_CONFIG_H
#define OPS_SRC_GEMM_CONFIG_H

#include "candidates.h"

#include <stdbool.h>

enum { OPS_GEMM_CONFIG_BYTES = 96 };

/* Writes tiles and the steps of k of a part (0: one kernel):
 * portable:BLOCK:WORK-ITEM:STAGES.SLICES.UNROLL.UNITS:SPLIT. */
void ops_gemm_config_print(const ops_gemm_tiles *tiles, uint32_t split,
                           char text[OPS_GEMM_CONFIG_BYTES]);

/* Finds the candidate of a config; returns whether the device has it for the shape. */
bool ops_gemm_config_find(const hal_device_info *info, const ops_gemm_shape *shape,
                          const char *config, ops_gemm_candidate *candidate);

#endif
