/* Which tiles the portable matrix product uses: one table. Called by gemm_portable.c. */
#include "gemm_kernel.h"

/* Lanes of a processor run in lock-step along the columns; a work-item holds a column of sums. The
 * tall tile reads B with a stride where its columns are not neighbours, and amortises that. */
static const ops_gemm_tiles lanes_wide = {16, 256, 8, 16, 1, 16, 1, 0, 0};
static const ops_gemm_tiles lanes_tall = {64, 64, 8, 64, 1, 64, 1, 0, 0};

/* Work-items of their own, in order of size; a size is taken when it fills the device. */
static const ops_gemm_tiles staged[] = {
    {128, 128, 8, 8, 8, 4, 4, 1, 0},
    {64, 64, 16, 8, 4, 4, 4, 1, 0},
    {32, 32, 16, 4, 2, 4, 2, 1, 0},
    {16, 16, 16, 2, 2, 2, 2, 1, 0},
};

static ops_gemm_tiles choose_lanes(int64_t m, int64_t n, int b_along_k);
static int fits(const hal_device_info *info, const ops_gemm_tiles *t, uint32_t width);
static uint16_t cover(int64_t length, uint16_t least, uint16_t most);

void ops_gemm_choose_tiles(const hal_device_info *info, int64_t m, int64_t n, uint32_t batch,
                           uint32_t width, int b_along_k, ops_gemm_tiles *tiles)
{
    if (info->kind == HAL_DEVICE_CPU) {
        *tiles = choose_lanes(m, n, b_along_k);
        return;
    }
    uint32_t count = sizeof staged / sizeof staged[0];
    for (uint32_t i = 0; i < count; i++) {
        int64_t groups = (m + staged[i].block_m - 1) / staged[i].block_m *
                         ((n + staged[i].block_n - 1) / staged[i].block_n) * batch;
        *tiles = staged[i];
        if (fits(info, tiles, width) && groups >= info->compute_units) {
            return;
        }
    }
}

/* No larger than the matrix: idle lanes and rows cost as much as busy ones. */
static ops_gemm_tiles choose_lanes(int64_t m, int64_t n, int b_along_k)
{
    ops_gemm_tiles t = b_along_k ? lanes_tall : lanes_wide;
    t.block_n = cover(n, 16, t.block_n);
    uint16_t rows =
        (uint16_t)(t.block_m * (b_along_k ? lanes_tall : lanes_wide).block_n / t.block_n);
    t.block_m = cover(m, 1, rows < 64 ? rows : 64);
    t.thread_m = (uint8_t)t.block_m;
    t.strip_m = t.thread_m;
    return t;
}

static int fits(const hal_device_info *info, const ops_gemm_tiles *t, uint32_t width)
{
    uint32_t x = t->block_n / t->thread_n, y = t->block_m / t->thread_m;
    uint32_t shared = 2u * t->block_k * (t->block_m + t->block_n + 8u) * width;
    return x * y <= info->max_group_items && x <= info->max_group_size[0] &&
           y <= info->max_group_size[1] && shared <= info->shared_bytes;
}

/* The smallest power of two that covers a length, within limits. */
static uint16_t cover(int64_t length, uint16_t least, uint16_t most)
{
    uint16_t size = least;
    while (size < most && size < length) {
        size = (uint16_t)(2 * size);
    }
    return size;
}
