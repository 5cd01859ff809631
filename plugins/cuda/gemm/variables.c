/* Variables of native matrix products, see README.md. */
#include "gemm/variables.h"

#include "gemm/tile/fma.h"

#include <stdlib.h>
#include <string.h>

#ifdef HAL_CUDA_BOUNDS_WAITS
enum { GEMM_WAIT = 10 };
#else
enum { GEMM_WAIT = 0 };
#endif

/* A tile of matrix products: columns x parts of k, t for the transposed product, a or b for pairs
 * of groups that share the tile of A or B, p for warpgroups that take turns; or s and the number of
 * a tile of strict F32. */
static hal_status variable_read_tile(const char *name, cuda_gemm_tile *tile)
{
    const char *text = secure_getenv(name);
    *tile = (cuda_gemm_tile){0};
    if (text && text[0] == 's' && text[1] >= '1' && text[1] <= '0' + CUDA_FMA_TILES &&
        text[2] == 0) {
        tile->strict = (uint8_t)(text[1] - '0');
    } else if (text && text[0] != 0) {
        char *end = NULL;
        const unsigned long columns = strtoul(text, &end, 10),
                            split = *end == 'x' ? strtoul(end + 1, &end, 10) : 0;
        const bool in_memory = *end == 'm';
        const bool swapped = end[in_memory] == 't';
        const char *pair = end + in_memory + swapped;
        const uint8_t shared = *pair == 'a'   ? CUDA_GEMM_SHARES_A
                               : *pair == 'b' ? CUDA_GEMM_SHARES_B
                                              : CUDA_GEMM_SHARES_NONE;
        const bool alternates = pair[shared > 0] == 'p';
        const unsigned long most = in_memory ? CUDA_GEMM_MAX_PARTS : shared > 0 ? 4 : 8;
        if (pair[(shared > 0) + alternates] != 0 || split > most || (in_memory && split < 2) ||
            columns < 16 || columns > 256 || columns % 16 != 0 || split < 1) {
            return kit_fail(
                HAL_ERROR_INVALID_ARGUMENT,
                "%s: expected columns (16, 32, ... 256) x parts of k (1 to 8, with m 2 to 16 "
                "through memory), t for the transposed product, a or b for pairs that share A or "
                "B, with up to 4 parts but for m, and p for warpgroups that take turns, such as "
                "128x2t, 256x1b, 128x8m or 256x1bp; or s1 to s%d for strict f32, got %.40s",
                name, (int)CUDA_FMA_TILES, text);
        }
        *tile = (cuda_gemm_tile){.columns = (uint16_t)columns,
                                 .split = (uint8_t)split,
                                 .in_memory = in_memory,
                                 .swapped = swapped,
                                 .shared = shared,
                                 .alternates = alternates};
    }
    return HAL_OK;
}

/* Seconds after which a wait of a matrix product ends the kernel. */
static hal_status variable_read_wait(const char *name, uint8_t *seconds)
{
    uint32_t count = 0;
    const hal_status status =
        cuda_variable_read_count(name, GEMM_WAIT > 0 ? GEMM_WAIT : UINT32_MAX, &count);
    if (status == HAL_OK && count != UINT32_MAX && count > UINT8_MAX) {
        return kit_fail(HAL_ERROR_INVALID_ARGUMENT,
                        "%s: expected 1 to 255 seconds, or 0 for no bound, got %u", name, count);
    }
    *seconds = count == UINT32_MAX ? 0 : (uint8_t)count;
    return status;
}

static hal_status variable_read_load(const char *name, bool *loads_text)
{
    const char *text = secure_getenv(name);
    *loads_text = text && strcmp(text, "text") == 0;
    return !text || text[0] == 0 || *loads_text || strcmp(text, "linked") == 0
               ? HAL_OK
               : kit_fail(HAL_ERROR_INVALID_ARGUMENT, "%s: expected linked or text, got %.40s",
                          name, text);
}

hal_status cuda_gemm_read_variables(hal_plugin_device *device)
{
    HAL_TRY(variable_read_tile("HAL_CUDA_GEMM", &device->gemm_tile));
    HAL_TRY(variable_read_load("HAL_CUDA_GEMM_LOAD", &device->gemm_loads_text));
    return variable_read_wait("HAL_CUDA_GEMM_WAIT", &device->gemm_wait);
}
