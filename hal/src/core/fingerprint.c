/* Kernels in the compile cache by what they were built from, see fingerprint.h. */
#include "fingerprint.h"

#include "hooks.h"

#include "base/build_id.h"
#include "base/platform.h"
#include "ir/internal.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* All that a kernel's legalised IR depends on; the scope of the cache has plugin and driver. */
typedef struct fingerprint_text {
    char what[8];
    uint64_t hash[2];
    uint8_t builder[HAL_BUILD_ID_BYTES]; /* build id of the code that builds the kernel */
    uint8_t own[HAL_BUILD_ID_BYTES];     /* and of hal, which legalises it */
    hal_device_info info;                /* with what the probe has taken from it */
} fingerprint_text;

/* The start of an entry; the packed kernel follows. */
typedef struct entry_head {
    uint64_t key[2];
} entry_head;

/* Returns whether there is a key: the code has build ids. */
static bool fingerprint_key(const hal_device *device, const hal_kernel_fingerprint *fingerprint,
                            uint64_t key[2])
{
    fingerprint_text text;
    memset(&text, 0, sizeof text);
    memcpy(text.what, "recall", 6);
    memcpy(text.hash, fingerprint->hash, sizeof text.hash);
    memcpy(&text.info, &device->info, sizeof text.info);
    if (hal_build_id_get(fingerprint->code, text.builder) == 0 ||
        hal_build_id_get((const void *)(uintptr_t)hal_fingerprint_find, text.own) == 0) {
        return false;
    }
    const XXH128_hash_t hash = XXH3_128bits(&text, sizeof text);
    key[0] = hash.low64;
    key[1] = hash.high64;
    return true;
}

static bool fingerprint_is_used(const hal_device *device)
{
    const char *dump = secure_getenv("HAL_DUMP");
    return device->info.kind != HAL_DEVICE_CPU && (!dump || dump[0] == 0) &&
           !hal_hooks_on(HAL_HOOK_EVENTS | HAL_HOOK_CALLS | HAL_HOOK_BATCHES);
}

bool hal_fingerprint_find(hal_device *device, const hal_kernel_fingerprint *fingerprint,
                          hal_fingerprint_kernel *found)
{
    uint64_t key[2], bytes = 0;
    found->entry = NULL;
    if (!fingerprint_is_used(device) || !fingerprint_key(device, fingerprint, key)) {
        return false;
    }
    const hal_cache_scope *outer = hal_cache_enter(&device->cache);
    const hal_status status = hal_cache_load(device->info.id, key, &found->entry, &bytes);
    hal_cache_enter(outer);
    if (status != HAL_OK) {
        return false;
    }
    if (bytes > sizeof(entry_head)) {
        memcpy(found->key, found->entry, sizeof found->key);
        found->ir = hal_ir_kernel_unpack((char *)found->entry + sizeof(entry_head),
                                         bytes - sizeof(entry_head));
    }
    if (bytes <= sizeof(entry_head) || !found->ir) {
        hal_fingerprint_release(found);
        return false;
    }
    return true;
}

void hal_fingerprint_release(hal_fingerprint_kernel *found)
{
    free(found->entry);
    found->entry = NULL;
}

void hal_fingerprint_store(hal_device *device, const hal_kernel_fingerprint *fingerprint,
                           const hal_ir_kernel *ir, const uint64_t key[2])
{
    uint64_t place[2];
    if (!fingerprint_is_used(device) || !fingerprint_key(device, fingerprint, place)) {
        return;
    }
    const size_t bytes = sizeof(entry_head) + hal_ir_kernel_packed_bytes(ir);
    char *entry = malloc(bytes);
    if (!entry) {
        return;
    }
    memcpy(entry, key, sizeof(entry_head));
    hal_ir_kernel *packed = hal_ir_kernel_pack(ir, entry + sizeof(entry_head));
    packed->records = NULL; /* equal kernels are equal files */
    packed->memories = NULL;
    packed->scalars = NULL;
    packed->constants = NULL;
    packed->names = NULL;
    const hal_cache_scope *outer = hal_cache_enter(&device->cache);
    hal_cache_store(device->info.id, place, entry, bytes);
    hal_cache_enter(outer);
    free(entry);
}
