/* Lifetimes of a program's objects in the validate layer: references, calls in flight, released
 * objects in quarantine, and leaks at exit. */
#include "validate_state.h"

#include "core/buffer.h"
#include "core/device.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limits of the quarantine. */
enum { QUARANTINE_OBJECTS = 4096, QUARANTINE_BYTES = 8 << 20 };

typedef struct retired {
    struct retired *next;
    void *address;
    uint64_t bytes;
    void (*dispose)(void *);
} retired;

/* Under the lock. */
static uint64_t last_number[HAL_OBJECT_KIND_COUNT];
static retired *oldest, *newest;
static uint32_t retired_count;
static uint64_t retired_bytes;

static void report_leaks_of(const char *device)
{
    enum { NAMED = 8 };
    char text[1024] = "", place[80];
    uint32_t count = 0;
    for (const hal_object *object = hal_validate_first(); object; object = object->next) {
        if (object->references == 0 || object->generation != hal_host_generation() ||
            strcmp(object->device, device) != 0) {
            continue;
        }
        if (++count <= NAMED) {
            char words[HAL_OBJECT_TEXT];
            const size_t length = strlen(text);
            snprintf(text + length, sizeof text - length, "%s%s", length ? ", " : "",
                     hal_validate_words(object, words));
            if (object->kind == HAL_OBJECT_BUFFER && object->name[0]) {
                const size_t more = strlen(text);
                snprintf(text + more, sizeof text - more, " of %llu bytes",
                         (unsigned long long)object->bytes);
            }
        }
    }
    if (count > 0) {
        snprintf(place, sizeof place, "at exit: %s", device);
        hal_validate_found(HAL_OK, place, "expected all objects to be released, got %u left: %s%s",
                           count, text, count > NAMED ? ", and others" : "");
    }
}

/* At exit: unreleased objects, device by device. */
static void report_leaks(void)
{
    pthread_mutex_lock(&hal_validate_lock);
    for (const hal_object *object = hal_validate_first(); object; object = object->next) {
        const hal_object *other = hal_validate_first();
        while (other != object && strcmp(other->device, object->device) != 0) {
            other = other->next;
        }
        if (other == object) { /* the first of its device */
            report_leaks_of(object->device);
        }
    }
    pthread_mutex_unlock(&hal_validate_lock);
}

static hal_status report_unknown(hal_object_kind kind, const char *call)
{
    return hal_validate_found(
        HAL_ERROR_INVALID_ARGUMENT, call,
        "expected a %s, got an unknown address or an object released long ago",
        hal_validate_kind_name(kind));
}

static hal_status report_released(const hal_object *object, const char *call)
{
    char words[HAL_OBJECT_TEXT], place[HAL_OBJECT_TEXT + 64];
    snprintf(place, sizeof place, "%s: %s", call, hal_validate_words(object, words));
    return hal_validate_found(HAL_ERROR_INVALID_STATE, place, "used after its release");
}

/* A device stays usable while objects of it exist. Needs the lock, as all below. */
static hal_status object_check(hal_object_kind kind, const void *address, const char *call)
{
    const hal_object *object = hal_validate_find(kind, address);
    if (!address) {
        return HAL_OK;
    }
    if (!object) {
        return report_unknown(kind, call);
    }
    if (object->retired || (object->references == 0 && kind != HAL_OBJECT_DEVICE)) {
        return report_released(object, call);
    }
    return HAL_OK;
}

/* Removes objects beyond the limits from the quarantine. Returns them as a list. */
static retired *quarantine_shrink(void)
{
    retired *dropped = NULL;
    while (oldest && (retired_count > QUARANTINE_OBJECTS || retired_bytes > QUARANTINE_BYTES)) {
        retired *item = oldest;
        oldest = item->next;
        newest = oldest ? newest : NULL;
        retired_count--;
        retired_bytes -= item->bytes;
        hal_validate_forget(item->address);
        item->next = dropped;
        dropped = item;
    }
    return dropped;
}

hal_status hal_validate_begin(void)
{
    static bool begun;
    if (begun) {
        return HAL_OK;
    }
    begun = true;
    if (atexit(report_leaks) != 0) {
        return hal_fail(HAL_ERROR_OUT_OF_MEMORY, "HAL_LAYERS=validate: no host memory");
    }
    return HAL_OK;
}

void hal_validate_object_created(hal_object_kind kind, const void *address,
                                 const hal_device *device, const char *name, uint64_t bytes)
{
    pthread_mutex_lock(&hal_validate_lock);
    hal_object *object = hal_validate_find(kind, address);
    if (object && !object->retired) { /* a kernel or device that is shared */
        object->references++;
    } else if ((object = hal_validate_add(kind, address)) != NULL) {
        object->references = 1;
        object->bytes = bytes;
        object->generation = hal_host_generation();
        object->number = ++last_number[kind];
        snprintf(object->name, sizeof object->name, "%s", name);
        snprintf(object->device, sizeof object->device, "%s:%u", device->plugin->name,
                 device->index);
        if (kind == HAL_OBJECT_BUFFER && object->known.buffer &&
            atomic_load(&((const hal_buffer *)address)->is_external)) {
            hal_ranges_add(&object->known.buffer->written, 0, bytes); /* by its owner */
        }
    }
    pthread_mutex_unlock(&hal_validate_lock);
}

hal_status hal_validate_object_use(hal_object_kind kind, const void *address, const char *call)
{
    pthread_mutex_lock(&hal_validate_lock);
    const hal_status status = object_check(kind, address, call);
    pthread_mutex_unlock(&hal_validate_lock);
    return status;
}

hal_status hal_validate_object_retain(hal_object_kind kind, const void *address, const char *call)
{
    pthread_mutex_lock(&hal_validate_lock);
    const hal_status status = object_check(kind, address, call);
    hal_object *object = status == HAL_OK ? hal_validate_find(kind, address) : NULL;
    if (object) {
        object->references++;
    }
    pthread_mutex_unlock(&hal_validate_lock);
    return status;
}

hal_status hal_validate_object_release(hal_object_kind kind, const void *address, const char *call)
{
    hal_status status = HAL_OK;
    pthread_mutex_lock(&hal_validate_lock);
    hal_object *object = hal_validate_find(kind, address);
    if (address && !object) {
        status = report_unknown(kind, call);
    } else if (object && object->references == 0) {
        char words[HAL_OBJECT_TEXT], place[HAL_OBJECT_TEXT + 64];
        snprintf(place, sizeof place, "%s: %s", call, hal_validate_words(object, words));
        status = hal_validate_found(HAL_ERROR_INVALID_STATE, place,
                                    "released more often than created and retained");
    } else if (object) {
        object->references--;
    }
    pthread_mutex_unlock(&hal_validate_lock);
    return status;
}

void hal_validate_buffer_labelled(const hal_buffer *buffer, const char *label)
{
    pthread_mutex_lock(&hal_validate_lock);
    hal_object *object = hal_validate_find(HAL_OBJECT_BUFFER, buffer);
    if (object) {
        snprintf(object->name, sizeof object->name, "%s", label);
    }
    pthread_mutex_unlock(&hal_validate_lock);
}

void hal_validate_object_retire(hal_object_kind kind, void *address, uint64_t bytes,
                                void (*dispose)(void *))
{
    retired *item = malloc(sizeof *item);
    retired *over = NULL;
    pthread_mutex_lock(&hal_validate_lock);
    hal_object *object = hal_validate_find(kind, address);
    if (object && item) {
        object->retired = true;
        object->references = 0;
        if (kind == HAL_OBJECT_QUEUE) {
            hal_validate_forget_queue(object);
        }
        hal_validate_unlink(object);
        *item = (retired){NULL, address, bytes, dispose};
        if (newest) {
            newest->next = item;
        } else {
            oldest = item;
        }
        newest = item;
        retired_count++;
        retired_bytes += bytes;
        over = quarantine_shrink();
    }
    pthread_mutex_unlock(&hal_validate_lock);
    if (!object || !item) { /* memory was out */
        free(item);
        dispose(address);
    }
    while (over) {
        retired *next = over->next;
        over->dispose(over->address);
        free(over);
        over = next;
    }
}

hal_status hal_validate_object_enter(hal_object_kind kind, const void *address, const char *call)
{
    pthread_mutex_lock(&hal_validate_lock);
    hal_status status = object_check(kind, address, call);
    hal_object *object = status == HAL_OK ? hal_validate_find(kind, address) : NULL;
    if (object && object->depth > 0 && !pthread_equal(object->thread, pthread_self())) {
        char words[HAL_OBJECT_TEXT], place[HAL_OBJECT_TEXT + 64];
        snprintf(place, sizeof place, "%s: %s", call, hal_validate_words(object, words));
        status = hal_validate_found(HAL_ERROR_INVALID_STATE, place,
                                    "expected one thread at a time on a %s, got another one in %s",
                                    hal_validate_kind_name(kind), object->call);
    } else if (object && object->depth++ == 0) {
        object->thread = pthread_self();
        object->call = call;
    }
    pthread_mutex_unlock(&hal_validate_lock);
    return status;
}

void hal_validate_object_leave(hal_object_kind kind, const void *address)
{
    pthread_mutex_lock(&hal_validate_lock);
    hal_object *object = hal_validate_find(kind, address);
    if (object && object->depth > 0) {
        object->depth--;
    }
    pthread_mutex_unlock(&hal_validate_lock);
}
