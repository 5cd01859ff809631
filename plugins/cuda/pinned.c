/* Small pieces of pinned host memory, see pinned.h. */
#include "pinned.h"

#include <kit/fork.h>
#include <string.h>

enum { PAGE_BYTES = 4096, PAGE_COUNT = 512 };

/* An entry of `pages` is the length in pages of the piece that starts there, INSIDE_PIECE for its
 * further pages, and 0 for a free page. */
typedef struct pinned_slab {
    uint8_t *pointer; /* null until the first small piece */
    cuda_address address;
    uint16_t pages[PAGE_COUNT];
} pinned_slab;

enum { INSIDE_PIECE = UINT16_MAX };

static pinned_slab slabs[CUDA_MAX_DEVICES]; /* by ordinal, under the lock */
static pthread_mutex_t slab_lock = PTHREAD_MUTEX_INITIALIZER;

static void slabs_reset(void)
{
    memset(slabs, 0, sizeof slabs);
}
KIT_FORK_RESET(slab_lock, slabs_reset)

static cuda_result pinned_allocate_alone(uint64_t bytes, void **pointer, cuda_address *address)
{
    const cuda_driver *cu = cuda_functions();
    void *memory = NULL;
    cuda_result result =
        cu->cuMemHostAlloc(&memory, bytes, CUDA_HOST_PORTABLE | CUDA_HOST_DEVICE_MAP);
    if (result != 0) {
        return result;
    }
    result = cu->cuMemHostGetDevicePointer_v2(address, memory, 0);
    if (result != 0) {
        cu->cuMemFreeHost(memory);
        return result;
    }
    *pointer = memory;
    return 0;
}

/* The first page of the first gap of `count` pages; PAGE_COUNT if none. */
static uint32_t slab_find_gap(const pinned_slab *slab, uint32_t count)
{
    uint32_t gap = 0;
    for (uint32_t i = 0; i < PAGE_COUNT; i++) {
        gap = slab->pages[i] == 0 ? gap + 1 : 0;
        if (gap == count) {
            return i + 1 - count;
        }
    }
    return PAGE_COUNT;
}

cuda_result cuda_pinned_allocate(const hal_plugin_device *device, uint64_t bytes, void **pointer,
                                 cuda_address *address)
{
    pinned_slab *slab = &slabs[device->ordinal];
    const uint32_t count = (uint32_t)(bytes / PAGE_BYTES + (bytes % PAGE_BYTES != 0));
    if (bytes == 0 || bytes > CUDA_PINNED_MAX_PIECE) {
        return pinned_allocate_alone(bytes, pointer, address);
    }
    pthread_mutex_lock(&slab_lock);
    if (!slab->pointer) {
        void *memory = NULL;
        if (pinned_allocate_alone((uint64_t)PAGE_BYTES * PAGE_COUNT, &memory, &slab->address) ==
            0) {
            slab->pointer = memory;
        }
    }
    const uint32_t first = slab->pointer ? slab_find_gap(slab, count) : PAGE_COUNT;
    if (first < PAGE_COUNT) {
        for (uint32_t i = 0; i < count; i++) {
            slab->pages[first + i] = i == 0 ? (uint16_t)count : INSIDE_PIECE;
        }
        *pointer = slab->pointer + (size_t)first * PAGE_BYTES;
        *address = slab->address + (cuda_address)first * PAGE_BYTES;
    }
    pthread_mutex_unlock(&slab_lock);
    return first < PAGE_COUNT ? 0 : pinned_allocate_alone(bytes, pointer, address);
}

void cuda_pinned_free(const hal_plugin_device *device, void *pointer)
{
    pinned_slab *slab = &slabs[device->ordinal];
    pthread_mutex_lock(&slab_lock);
    const uintptr_t offset = (uintptr_t)pointer - (uintptr_t)slab->pointer;
    const bool inside = slab->pointer && offset < (uintptr_t)PAGE_BYTES * PAGE_COUNT;
    if (inside) {
        const uint32_t first = (uint32_t)(offset / PAGE_BYTES), count = slab->pages[first];
        memset(&slab->pages[first], 0, count * sizeof slab->pages[0]);
    }
    pthread_mutex_unlock(&slab_lock);
    if (!inside) {
        cuda_functions()->cuMemFreeHost(pointer);
    }
}

void cuda_pinned_forget(const hal_plugin_device *device)
{
    pinned_slab *slab = &slabs[device->ordinal];
    pthread_mutex_lock(&slab_lock);
    if (slab->pointer && cuda_context_push(device) == HAL_OK) {
        cuda_functions()->cuMemFreeHost(slab->pointer); /* fails where the context is broken */
        cuda_context_pop();
    }
    memset(slab, 0, sizeof *slab);
    pthread_mutex_unlock(&slab_lock);
}
