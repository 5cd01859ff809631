/* Which devices have which feature; see capability.h. */
#include "capability.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct feature_row {
    uint32_t capability; /* condition: at least this compute capability, */
    uint32_t last;       /* and at most this one; 0: any */
    uint32_t features;
} feature_row;

static const feature_row rows[] = {
    {.capability = 75, .features = CUDA_FEATURE_APPROXIMATE_TANH},
    {.capability = 80, .features = CUDA_FEATURE_ASYNC_COPY},
    {.capability = 80, .features = CUDA_FEATURE_PACKED_HALVES},
    {.capability = 80, .features = CUDA_FEATURE_NAN_EXTREMES},
    {.capability = 80, .features = CUDA_FEATURE_WARP_REDUCE},
    {.capability = 80, .features = CUDA_FEATURE_MATRIX_UNITS},
    {.capability = 80, .last = 80, .features = CUDA_FEATURE_MATRIX_F64},
    {.capability = 90, .last = 90, .features = CUDA_FEATURE_MATRIX_F64},
    {.capability = 100, .last = 100, .features = CUDA_FEATURE_MATRIX_F64},
    {.capability = 90, .features = CUDA_FEATURE_DEEP_MATRIX_F64},
    {.capability = 90, .features = CUDA_FEATURE_EARLY_START},
};

uint32_t cuda_features(uint32_t capability)
{
    uint32_t features = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const bool has =
            capability >= rows[i].capability && (rows[i].last == 0 || capability <= rows[i].last);
        features |= has ? rows[i].features : 0;
    }
    return features;
}
