/* The kernels of fills and copies that blit encoders do not take, as macOS's take multiples of four
 * bytes only, and fills of one byte. */
#include "transfer.h"

#include "archive.h"

#define TRANSFER_HEAD           \
    "#include <metal_stdlib>\n" \
    "using namespace metal;\n"  \
    "struct transfer { ulong from, to, count; uint pattern[4]; };\n"

/* Binding 0 is the source, 1 the target, 2 the structure; places count elements. */
#define FILL(type, value)                                                           \
    TRANSFER_HEAD                                                                   \
    "kernel void hal_transfer(device " type " *to [[buffer(1)]],\n"                 \
    "    constant transfer &t [[buffer(2)]], uint i [[thread_position_in_grid]],\n" \
    "    uint n [[threads_per_grid]])\n{\n"                                         \
    "    for (ulong k = i; k < t.count; k += n) {\n"                                \
    "        to[t.to + k] = " value ";\n    }\n}\n"
#define COPY(type)                                                                 \
    TRANSFER_HEAD                                                                  \
    "kernel void hal_transfer(device const " type " *from [[buffer(0)]],\n"        \
    "    device " type " *to [[buffer(1)]], constant transfer &t [[buffer(2)]],\n" \
    "    uint i [[thread_position_in_grid]], uint n [[threads_per_grid]])\n{\n"    \
    "    for (ulong k = i; k < t.count; k += n) {\n"                               \
    "        to[t.to + k] = from[t.from + k];\n    }\n}\n"

static const char *const sources[METAL_TRANSFER_COUNT] = {
    [METAL_FILL_BYTES] =
        FILL("uchar", "uchar(t.pattern[uint(k >> 2u) & 3u] >> (8u * uint(k & 3u)))"),
    [METAL_FILL_WORDS] = FILL("uint", "t.pattern[uint(k & 3u)]"),
    [METAL_COPY_BYTES] = COPY("uchar"),
    [METAL_COPY_WORDS] = COPY("uint"),
};

metal_pipeline *metal_transfer_pipeline(hal_plugin_device *device, metal_transfer which)
{
    metal_pipeline *pipeline =
        atomic_load_explicit(&device->transfers[which], memory_order_acquire);
    if (pipeline) {
        return pipeline;
    }
    pthread_mutex_lock(&device->lock);
    pipeline = atomic_load(&device->transfers[which]);
    if (!pipeline) {
        const metal_pipeline_request request = {
            .source = sources[which], .entry = "hal_transfer", .group_items = METAL_TRANSFER_ITEMS};
        metal_pipeline_facts facts;
        if (metal_pipeline_create(device->card, "transfer", &request, &facts, &pipeline) ==
            HAL_OK) {
            atomic_store_explicit(&device->transfers[which], pipeline, memory_order_release);
        }
    }
    pthread_mutex_unlock(&device->lock);
    return pipeline;
}
