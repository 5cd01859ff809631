/* Small pieces of pinned host memory, see pinned.h. */
#include "pinned.h"

#include <string.h>

enum { PAGE = 4096, PAGES = 512 };

/* `pages` has the length of the piece that begins at a page, IN_PIECE for its further pages, 0
 * where nothing is. */
typedef struct slab {
    uint8_t *pointer;
    cuda_address address;
    uint16_t pages[PAGES];
} slab;

enum { IN_PIECE = UINT16_MAX };

static slab slabs[CUDA_MOST_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static cuda_result pin_alone(uint64_t bytes, void **pointer, cuda_address *address)
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

/* The first place where so many pages are free; PAGES when there is none. */
static uint32_t find_room(const slab *s, uint32_t count)
{
    uint32_t room = 0;
    for (uint32_t i = 0; i < PAGES; i++) {
        room = s->pages[i] == 0 ? room + 1 : 0;
        if (room == count) {
            return i + 1 - count;
        }
    }
    return PAGES;
}

cuda_result cuda_pin(const hal_plugin_device *device, uint64_t bytes, void **pointer,
                     cuda_address *address)
{
    slab *s = &slabs[device->device];
    const uint32_t count = (uint32_t)(bytes / PAGE + (bytes % PAGE != 0));
    if (bytes == 0 || bytes > CUDA_PINNED_MOST) {
        return pin_alone(bytes, pointer, address);
    }
    pthread_mutex_lock(&lock);
    if (s->pointer == NULL) {
        void *memory = NULL;
        if (pin_alone((uint64_t)PAGE * PAGES, &memory, &s->address) == 0) {
            s->pointer = memory;
        }
    }
    const uint32_t first = s->pointer != NULL ? find_room(s, count) : PAGES;
    if (first < PAGES) {
        for (uint32_t i = 0; i < count; i++) {
            s->pages[first + i] = i == 0 ? (uint16_t)count : IN_PIECE;
        }
        *pointer = s->pointer + (size_t)first * PAGE;
        *address = s->address + (cuda_address)first * PAGE;
    }
    pthread_mutex_unlock(&lock);
    return first < PAGES ? 0 : pin_alone(bytes, pointer, address);
}

void cuda_unpin(const hal_plugin_device *device, void *pointer)
{
    slab *s = &slabs[device->device];
    pthread_mutex_lock(&lock);
    const uintptr_t offset = (uintptr_t)pointer - (uintptr_t)s->pointer;
    const bool inside = s->pointer != NULL && offset < (uintptr_t)PAGE * PAGES;
    if (inside) {
        const uint32_t first = (uint32_t)(offset / PAGE), count = s->pages[first];
        memset(&s->pages[first], 0, count * sizeof s->pages[0]);
    }
    pthread_mutex_unlock(&lock);
    if (!inside) {
        cuda_functions()->cuMemFreeHost(pointer);
    }
}

void cuda_forget_pinned(const hal_plugin_device *device)
{
    slab *s = &slabs[device->device];
    pthread_mutex_lock(&lock);
    if (s->pointer != NULL && cuda_enter(device) == HAL_OK) {
        cuda_functions()->cuMemFreeHost(s->pointer); /* whatever comes of it */
        cuda_leave();
    }
    memset(s, 0, sizeof *s);
    pthread_mutex_unlock(&lock);
}
