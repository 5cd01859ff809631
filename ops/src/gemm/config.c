/* Configs, see config.h. */
#include "config.h"

#include "cost.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ops_gemm_config_print(const ops_gemm_tiles *t, uint32_t split,
                           char text[OPS_GEMM_CONFIG_BYTES])
{
    snprintf(text, OPS_GEMM_CONFIG_BYTES, "portable:%ux%ux%u:%ux%u:%u.%u.%u.%u:%u", t->block_m,
             t->block_n, t->block_k, t->thread_m, t->thread_n, t->stages, t->intra_group_split_k,
             t->unroll, t->matrix, split);
}

/* Among the tiles that a device has for parts of `k` steps. */
static bool find_tiles(const hal_device_info *info, const ops_gemm_shape *shape, const char *config,
                       int64_t k, ops_gemm_candidate *c)
{
    char text[OPS_GEMM_CONFIG_BYTES];
    for (uint32_t i = 0; ops_gemm_get_tiles(info, shape, i, k, &c->tiles, &c->rates); i++) {
        ops_gemm_config_print(&c->tiles, c->depth, text);
        if (c->tiles.block_m > 0 && strcmp(text, config) == 0) {
            c->ns = ops_gemm_estimate_ns(info, shape, c);
            return true;
        }
    }
    return false;
}

/* The parts of k are a number of the caller's; all else names tiles of the device. */
bool ops_gemm_config_find(const hal_device_info *info, const ops_gemm_shape *shape,
                          const char *config, ops_gemm_candidate *candidate)
{
    const char *last = strrchr(config, ':');
    char *end = NULL;
    const unsigned long split = last ? strtoul(last + 1, &end, 10) : 0;
    if (!last || end == last + 1 || *end || split > INT32_MAX) {
        return false;
    }
    candidate->depth = (uint32_t)split;
    return (split && find_tiles(info, shape, config, (int64_t)split, candidate)) ||
           find_tiles(info, shape, config, shape->k, candidate);
}
