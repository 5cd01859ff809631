/* Which devices have which quirk; see quirks.h. */
#include "quirks.h"

#include <stddef.h>

typedef struct quirk_row {
    uint32_t capability; /* condition: at least this compute capability */
    uint32_t quirks;
} quirk_row;

static const quirk_row rows[] = {
    {.capability = 75, .quirks = CUDA_QUIRK_APPROXIMATE_TANH},
    {.capability = 80, .quirks = CUDA_QUIRK_ASYNC_COPY},
    {.capability = 80, .quirks = CUDA_QUIRK_PACKED_HALVES},
    {.capability = 80, .quirks = CUDA_QUIRK_NAN_EXTREMES},
    {.capability = 80, .quirks = CUDA_QUIRK_WARP_REDUCE},
    {.capability = 80, .quirks = CUDA_QUIRK_MATRIX_UNITS},
    {.capability = 90, .quirks = CUDA_QUIRK_EARLY_START},
};

uint32_t cuda_quirks(uint32_t capability)
{
    uint32_t quirks = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        quirks |= capability >= rows[i].capability ? rows[i].quirks : 0;
    }
    return quirks;
}
