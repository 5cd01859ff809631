/* mapping.c: memory that the host does not share with the device: the host has a copy of mapped
 * memory, which goes to the device before each batch and comes back when a batch was waited for, or
 * both when hal calls memory_flush and memory_invalidate; and faults of that. */
#include "mutant.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES (UINT64_C(160) << 20) /* larger blocks are mapped as they are */

/* The host's copy of a block of memory. */
typedef struct shadow {
    struct shadow *next;
    hal_plugin_memory *memory;
    hal_plugin_device *device;
    uint64_t bytes;
    uint32_t kind;
    uint8_t *host;  /* null until it is mapped */
    uint8_t *start; /* what malloc gave */
} shadow;

static struct {
    bool up_lost;       /* the copy of shared memory does not go to the device */
    bool down_lost;     /* what a batch wrote to shared memory does not come back */
    bool is_misaligned; /* the copy is aligned to 16 bytes */
    bool flush_lost;    /* flushes of shared memory do nothing */
    bool invalidate_lost;
    bool moves_lines;            /* whole lines of 64 bytes */
    uint64_t most_flushed;       /* mask of lengths of flushes; 0: all of them */
    uint64_t invalidated_offset; /* mask of offsets */
    uint64_t flushed_offset;
    bool flushes_once;      /* of two equal flushes the second one is lost */
    bool invalidates_words; /* the last bytes of an invalidation are left out */
    bool flushes_no_download, invalidates_no_upload; /* as the names of the kinds suggest */
} faults;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static shadow *all;

static hal_status shadow_allocate(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                  hal_plugin_memory **memory)
{
    const hal_status status = wrap_inside()->memory_allocate(device, kind, bytes, memory);
    shadow *made = status == HAL_OK ? calloc(1, sizeof(*made)) : NULL;
    if (made) {
        *made = (shadow){.memory = *memory, .device = device, .bytes = bytes, .kind = kind};
        pthread_mutex_lock(&lock);
        made->next = all;
        all = made;
        pthread_mutex_unlock(&lock);
    }
    return status;
}

static shadow **shadow_find(const hal_plugin_memory *memory)
{
    shadow **place = &all;
    while (*place && (*place)->memory != memory) {
        place = &(*place)->next;
    }
    return place;
}

static void shadow_free(hal_plugin_device *device, hal_plugin_memory *memory)
{
    pthread_mutex_lock(&lock);
    shadow **place = shadow_find(memory), *old = *place;
    if (old) {
        *place = old->next;
        free(old->start);
        free(old);
    }
    pthread_mutex_unlock(&lock);
    wrap_inside()->memory_free(device, memory);
}

static hal_status shadow_map(hal_plugin_device *device, hal_plugin_memory *memory, void **pointer)
{
    void *inside = NULL;
    const hal_status status = wrap_inside()->memory_map(device, memory, &inside);
    if (status != HAL_OK) {
        return status;
    }
    pthread_mutex_lock(&lock);
    shadow *one = *shadow_find(memory);
    if (one->bytes > MOST_BYTES) {
        pthread_mutex_unlock(&lock);
        *pointer = inside;
        return HAL_OK;
    }
    if (!one->host) {
        one->start = malloc(one->bytes + 512);
        if (one->start) {
            const uintptr_t place = ((uintptr_t)one->start + 255) / 256 * 256;
            one->host = (uint8_t *)place + (faults.is_misaligned ? 16 : 0);
            memcpy(one->host, inside, one->bytes);
        }
    }
    *pointer = one->host;
    pthread_mutex_unlock(&lock);
    return *pointer != NULL ? HAL_OK
                            : wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: no memory for a copy");
}

/* Copies what a batch names between the host's copies and the device's memory: all bindings to the
 * device, those that are written to the host. Other memory may be written by the host meanwhile. */
static void shadow_move(const hal_batch *batch, bool up)
{
    for (uint32_t i = 0; i < batch->binding_count; i++) {
        const hal_binding *binding = &batch->bindings[i];
        const shadow *one = binding->memory ? *shadow_find(binding->memory) : NULL;
        void *inside = NULL;
        const bool is_lost =
            one && (up ? faults.up_lost : faults.down_lost) && one->kind == HAL_MEMORY_SHARED;
        if (!one || !one->host || is_lost || (!up && binding->access == HAL_ACCESS_READ) ||
            wrap_inside()->memory_map(one->device, one->memory, &inside) != HAL_OK) {
            continue;
        }
        uint8_t *device = (uint8_t *)inside + binding->offset, *host = one->host + binding->offset;
        memcpy(up ? device : host, up ? host : device, binding->length);
    }
}

static hal_status shadow_submit(hal_plugin_queue *queue, const hal_batch *batch,
                                const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    pthread_mutex_lock(&lock);
    shadow_move(batch, true);
    const hal_status status = wrap_inside()->submit(queue, batch, waits, wait_count, value);
    shadow_move(batch, false);
    pthread_mutex_unlock(&lock);
    return status;
}

/* Copies a range between the host's copy and the device's memory. */
static hal_status shadow_move_range(hal_plugin_memory *memory, uint64_t offset, uint64_t bytes,
                                    bool up)
{
    void *inside = NULL;
    hal_status status = HAL_OK;
    pthread_mutex_lock(&lock);
    const shadow *one = *shadow_find(memory);
    const bool is_lost =
        one &&
        ((one->kind == HAL_MEMORY_SHARED && (up ? faults.flush_lost : faults.invalidate_lost)) ||
         (one->kind == HAL_MEMORY_DOWNLOAD && up && faults.flushes_no_download) ||
         (one->kind == HAL_MEMORY_UPLOAD && !up && faults.invalidates_no_upload));
    if (one && one->host && !is_lost) {
        status = wrap_inside()->memory_map(one->device, one->memory, &inside);
    }
    if (status == HAL_OK && inside) {
        const uint64_t begin = faults.moves_lines ? offset / 64 * 64 : offset;
        const uint64_t end = faults.moves_lines ? (offset + bytes + 63) / 64 * 64 : offset + bytes;
        uint8_t *device = (uint8_t *)inside + begin, *host = one->host + begin;
        memcpy(up ? device : host, up ? host : device,
               (end < one->bytes ? end : one->bytes) - begin);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static uint64_t masked(uint64_t number, uint64_t mask)
{
    return mask != 0 ? number & mask : number;
}

/* Whether the last flush was the same one. */
static bool flush_repeats(const hal_plugin_memory *memory, uint64_t offset, uint64_t bytes)
{
    static struct {
        const hal_plugin_memory *memory;
        uint64_t offset, bytes;
    } last;
    pthread_mutex_lock(&lock);
    const bool repeats = last.memory == memory && last.offset == offset && last.bytes == bytes;
    last.memory = memory;
    last.offset = offset;
    last.bytes = bytes;
    pthread_mutex_unlock(&lock);
    return repeats;
}

static hal_status shadow_flush(hal_plugin_device *device, hal_plugin_memory *memory,
                               uint64_t offset, uint64_t bytes)
{
    (void)device;
    if (faults.flushes_once && flush_repeats(memory, offset, bytes)) {
        return HAL_OK;
    }
    bytes = masked(bytes, faults.most_flushed);
    offset = masked(offset, faults.flushed_offset);
    return shadow_move_range(memory, offset, bytes, true);
}

static hal_status shadow_invalidate(hal_plugin_device *device, hal_plugin_memory *memory,
                                    uint64_t offset, uint64_t bytes)
{
    (void)device;
    bytes -= faults.invalidates_words ? bytes % 4 : 0;
    offset = masked(offset, faults.invalidated_offset);
    return shadow_move_range(memory, offset, bytes, false);
}

/* Imported memory would have no shadow. */
static void shadow_memory(wrap_table *table)
{
    table->size = sizeof(*table);
    table->memory_allocate = shadow_allocate;
    table->memory_free = shadow_free;
    table->memory_map = shadow_map;
    table->external_info = NULL;
    table->memory_import = NULL;
    table->memory_export = NULL;
}

/* No fault by itself. */
static void incoherent(wrap_table *table)
{
    shadow_memory(table);
    table->memory_flush = shadow_flush;
    table->memory_invalidate = shadow_invalidate;
}

static void flush_lost(wrap_table *table)
{
    faults.flush_lost = true;
    incoherent(table);
}

static void invalidate_lost(wrap_table *table)
{
    faults.invalidate_lost = true;
    incoherent(table);
}

static void flush_lines(wrap_table *table)
{
    faults.moves_lines = true;
    incoherent(table);
}

static void flush_length_24_bits(wrap_table *table)
{
    faults.most_flushed = 0xffffff;
    incoherent(table);
}

static void flush_offset_26_bits(wrap_table *table)
{
    faults.flushed_offset = 0x3ffffff;
    incoherent(table);
}

static void invalidate_offset_26_bits(wrap_table *table)
{
    faults.invalidated_offset = 0x3ffffff;
    incoherent(table);
}

static void invalidate_words(wrap_table *table)
{
    faults.invalidates_words = true;
    incoherent(table);
}

static void flush_no_download(wrap_table *table)
{
    faults.flushes_no_download = true;
    incoherent(table);
}

static void invalidate_no_upload(wrap_table *table)
{
    faults.invalidates_no_upload = true;
    incoherent(table);
}

static void flush_once(wrap_table *table)
{
    faults.flushes_once = true;
    incoherent(table);
}

/* No fault by itself. */
static void shadowed(wrap_table *table)
{
    shadow_memory(table);
    table->submit = shadow_submit;
}

static void map_up(wrap_table *table)
{
    faults.up_lost = true;
    shadowed(table);
}

static void map_down(wrap_table *table)
{
    faults.down_lost = true;
    shadowed(table);
}

static void map_misaligned(wrap_table *table)
{
    faults.is_misaligned = true;
    shadowed(table);
}

const mutant mutants_mapping[] = {TABLE(shadowed),
                                  TABLE(map_up),
                                  TABLE(map_down),
                                  TABLE(map_misaligned),
                                  TABLE(incoherent),
                                  TABLE(flush_lost),
                                  TABLE(invalidate_lost),
                                  TABLE(flush_lines),
                                  TABLE(flush_once),
                                  TABLE(flush_no_download),
                                  TABLE(invalidate_no_upload),
                                  TABLE(invalidate_words),
                                  TABLE(flush_length_24_bits),
                                  TABLE(flush_offset_26_bits),
                                  TABLE(invalidate_offset_26_bits),
                                  {.name = NULL}};
