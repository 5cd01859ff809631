/* The table of the validate layer: all objects of the program by address, and a list of those that
 * are not retired. */
#include "validate_state.h"

#include "base/fork.h"
#include "base/map.h"

#include <stdio.h>
#include <stdlib.h>

pthread_mutex_t hal_validate_lock = PTHREAD_MUTEX_INITIALIZER;
HAL_FORK_GUARD(hal_validate_lock, HAL_FORK_TABLE) /* a child inherits consistent tables */

static hal_map objects;
static hal_object *first_object;

static const char *const kind_names[HAL_OBJECT_KIND_COUNT] = {"device", "buffer", "kernel", "queue",
                                                              "graph"};

static void free_object(hal_object *object)
{
    if (object->kind == HAL_OBJECT_BUFFER && object->known.buffer) {
        hal_ranges_free(&object->known.buffer->written);
        free(object->known.buffer->accesses);
    } else if (object->kind == HAL_OBJECT_QUEUE && object->known.queue) {
        hal_validate_free_queue(object->known.queue);
    }
    free(object->known.facts);
    free(object);
}

static void link_object(hal_object *object)
{
    object->next = first_object;
    object->previous = NULL;
    if (first_object) {
        first_object->previous = object;
    }
    first_object = object;
}

const char *hal_validate_kind_name(hal_object_kind kind)
{
    return kind_names[kind];
}

void hal_validate_unlink(hal_object *object)
{
    if (object->next) {
        object->next->previous = object->previous;
    }
    if (object->previous) {
        object->previous->next = object->next;
    } else {
        first_object = object->next;
    }
    object->next = object->previous = NULL;
}

hal_object *hal_validate_add(hal_object_kind kind, const void *address)
{
    hal_object *made = calloc(1, sizeof *made);
    if (!made) {
        return NULL;
    }
    if (kind == HAL_OBJECT_BUFFER) {
        made->known.buffer = calloc(1, sizeof *made->known.buffer);
    } else if (kind == HAL_OBJECT_QUEUE) {
        made->known.queue = calloc(1, sizeof *made->known.queue);
        if (made->known.queue) {
            made->known.queue->epoch = 1;
        }
    }
    made->address = address;
    made->kind = kind;
    hal_object *old = hal_map_get(&objects, hal_map_key(address));
    if (!hal_map_put(&objects, hal_map_key(address), made)) {
        free_object(made);
        return NULL;
    }
    if (old) {
        if (!old->retired) {
            hal_validate_unlink(old);
        }
        free_object(old);
    }
    link_object(made);
    return made;
}

void hal_validate_forget(const void *address)
{
    hal_object *object = hal_map_take(&objects, hal_map_key(address));
    if (object) {
        free_object(object);
    }
}

hal_object *hal_validate_find(hal_object_kind kind, const void *address)
{
    hal_object *object = address ? hal_map_get(&objects, hal_map_key(address)) : NULL;
    return object && object->kind == kind ? object : NULL;
}

hal_object *hal_validate_first(void)
{
    return first_object;
}

const char *hal_validate_words(const hal_object *object, char text[HAL_OBJECT_TEXT])
{
    const char *kind = kind_names[object->kind];
    switch (object->kind) {
    case HAL_OBJECT_BUFFER:
        if (object->name[0]) {
            snprintf(text, HAL_OBJECT_TEXT, "buffer \"%s\"", object->name);
        } else {
            snprintf(text, HAL_OBJECT_TEXT, "buffer of %llu bytes without a label",
                     (unsigned long long)object->bytes);
        }
        break;
    case HAL_OBJECT_QUEUE:
    case HAL_OBJECT_GRAPH:
        snprintf(text, HAL_OBJECT_TEXT, "%s %llu of %s", kind, (unsigned long long)object->number,
                 object->device);
        break;
    default:
        snprintf(text, HAL_OBJECT_TEXT, "%s %s", kind, object->name);
    }
    return text;
}
