/* The application's own store for compiled kernels, in place of the folder of HAL_CACHE_DIR. */
#ifndef HAL_CACHE_H
#define HAL_CACHE_H

#include <hal/status.h>
#include <hal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAL_CACHE_KEY_BYTES 16

/* Copies the entry of a key to `data` if it has at most `capacity` bytes; `data` may be null with a
 * capacity of 0. Returns the entry's size in bytes, 0 for no entry. */
typedef uint64_t (*hal_cache_load_callback)(void *user, const uint8_t key[HAL_CACHE_KEY_BYTES],
                                            void *data, uint64_t capacity);

/* Keeps an entry, in place of one with the same key; both are valid during the call. */
typedef void (*hal_cache_store_callback)(void *user, const uint8_t key[HAL_CACHE_KEY_BYTES],
                                         const void *data, uint64_t bytes);

/* Sends what hal and its plugins keep of compiled kernels to callbacks; two null ones go back to
 * the folder. Keys are hashes of the kernel, plugin, driver and device. hal checks what it loads:
 * an entry that was damaged counts as missing. Callbacks run on the threads that create kernels,
 * several at once, and must not call hal.
 * Threads: any; calls in flight may still use the earlier callbacks.
 * Errors: INVALID_ARGUMENT for one null callback. */
HAL_API hal_status hal_cache_set_callbacks(hal_cache_load_callback load,
                                           hal_cache_store_callback store, void *user);

#ifdef __cplusplus
}
#endif
#endif
