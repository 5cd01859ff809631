/* Selects the layers that are on and installs the hooks through which core calls them. */
#include "layer.h"

#include "plugin/registry.h"
#include "base/list.h"
#include "base/clock.h"
#include "base/platform.h"
#include "base/status.h"
#include "base/text.h"
#include "validate.h"

#include <stdlib.h>
#include <string.h>

/* HAL_LAYER_*; does not change once hooks are installed. */
static uint32_t layers_on;

/* Outermost first: the order in which an event passes them on its way to the plugin. Dump is
 * first, so its files contain what the others refuse. Sanitize is last: it changes what the plugin
 * gets. */
static const hal_layer *const layers[] = {&hal_layer_dump,    &hal_layer_trace,
                                          &hal_layer_fault,   &hal_layer_validate,
                                          &hal_layer_profile, &hal_layer_sanitize};
enum { LAYER_COUNT = sizeof layers / sizeof *layers };

/* A variable that is a list of words, each with the layer that it turns on: 0 for none. */
typedef struct word_list {
    const char *variable;
    const char *expected, *hint; /* of the message about another word */
    uint32_t count;
    struct {
        const char *word;
        uint32_t bit;
    } known[6];
} word_list;

static const word_list layer_words = {
    "HAL_LAYERS",
    "validate and fault",
    "; HAL_TRACE=FILE starts a trace, HAL_PROFILE=FILE a profile",
    2,
    {{"fault", HAL_LAYER_FAULT}, {"validate", HAL_LAYER_VALIDATE}}};
static const word_list dump_words = {"HAL_DUMP",
                                     "ir, native, batch, calls and unfused",
                                     "",
                                     5,
                                     {{"batch", HAL_LAYER_DUMP},
                                      {"calls", HAL_LAYER_DUMP},
                                      {"unfused", HAL_LAYER_DUMP},
                                      {"ir", 0},
                                      {"native", 0}}};
/* Which checks they name is read by the layer. */
static const word_list sanitize_words = {"HAL_SANITIZE",
                                         "bounds, init, race, math, nan and stop",
                                         "",
                                         6,
                                         {{"bounds", HAL_LAYER_SANITIZE},
                                          {"init", HAL_LAYER_SANITIZE},
                                          {"race", HAL_LAYER_SANITIZE},
                                          {"math", HAL_LAYER_SANITIZE},
                                          {"nan", HAL_LAYER_SANITIZE},
                                          {"stop", 0}}};

/* `value`: of the variable, or null. */
static hal_status words_parse(const word_list *list, const char *value, uint32_t *on)
{
    const char *rest = value, *word;
    for (size_t length; value && (length = hal_list_next(&rest, &word)) > 0;) {
        uint32_t i = 0;
        while (i < list->count && (strlen(list->known[i].word) != length ||
                                   strncmp(list->known[i].word, word, length) != 0)) {
            i++;
        }
        if (i == list->count) {
            return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                            "%s: expected a list of %s, got \"%.*s\" in \"%s\"%s", list->variable,
                            list->expected, (int)length, word, value, list->hint);
        }
        *on |= list->known[i].bit;
    }
    return HAL_OK;
}

static hal_status read_variables(uint32_t *on)
{
    const char *trace = secure_getenv("HAL_TRACE");
    const char *page = secure_getenv("HAL_PROFILE");
    if (trace && trace[0]) {
        *on |= HAL_LAYER_TRACE;
    }
    if (page && page[0]) {
        *on |= HAL_LAYER_TRACE | HAL_LAYER_PROFILE;
    }
    HAL_TRY(words_parse(&layer_words, secure_getenv("HAL_LAYERS"), on));
    HAL_TRY(words_parse(&sanitize_words, secure_getenv("HAL_SANITIZE"), on));
    return words_parse(&dump_words, secure_getenv("HAL_DUMP"), on);
}

static hal_status event_before(hal_event *event)
{
    hal_status status = HAL_OK;
    event->begin_ns = hal_clock_ns();
    for (uint32_t i = 0; status == HAL_OK && i < LAYER_COUNT; i++) {
        if ((layers_on & layers[i]->bit) && layers[i]->before) {
            status = layers[i]->before(event);
        }
    }
    return status;
}

static void event_after(const hal_event *event, hal_status status)
{
    for (uint32_t i = LAYER_COUNT; i-- > 0;) {
        if ((layers_on & layers[i]->bit) && layers[i]->after) {
            layers[i]->after(event, status);
        }
    }
}

/* ---- Calls of programs: validate may refuse them, the profile counts what is left ---- */

static bool layer_is_on(uint32_t bit)
{
    return (layers_on & bit) != 0;
}

static void object_created(hal_object_kind kind, const void *object, const hal_device *device,
                           const char *name, uint64_t bytes)
{
    if (layer_is_on(HAL_LAYER_VALIDATE)) {
        hal_validate_object_created(kind, object, device, name, bytes);
    }
    if (layer_is_on(HAL_LAYER_PROFILE)) {
        hal_profile_object_created(kind, object);
    }
    if (kind == HAL_OBJECT_BUFFER && layer_is_on(HAL_LAYER_SANITIZE)) {
        hal_sanitize_buffer_created(object);
    }
}

static hal_status object_use(hal_object_kind kind, const void *object, const char *call)
{
    return layer_is_on(HAL_LAYER_VALIDATE) ? hal_validate_object_use(kind, object, call) : HAL_OK;
}

static hal_status object_retain(hal_object_kind kind, const void *object, const char *call)
{
    return layer_is_on(HAL_LAYER_VALIDATE) ? hal_validate_object_retain(kind, object, call)
                                           : HAL_OK;
}

static hal_status object_release(hal_object_kind kind, const void *object, const char *call)
{
    return layer_is_on(HAL_LAYER_VALIDATE) ? hal_validate_object_release(kind, object, call)
                                           : HAL_OK;
}

static hal_status object_enter(hal_object_kind kind, const void *object, const char *call)
{
    if (layer_is_on(HAL_LAYER_VALIDATE)) {
        HAL_TRY(hal_validate_object_enter(kind, object, call));
    }
    if (layer_is_on(HAL_LAYER_PROFILE)) {
        hal_profile_call_begun(call);
    }
    return HAL_OK;
}

static void object_leave(hal_object_kind kind, const void *object)
{
    if (layer_is_on(HAL_LAYER_PROFILE)) {
        hal_profile_call_ended();
    }
    if (layer_is_on(HAL_LAYER_VALIDATE)) {
        hal_validate_object_leave(kind, object);
    }
}

static void object_retire(hal_object_kind kind, void *object, uint64_t bytes,
                          void (*dispose)(void *))
{
    if (layer_is_on(HAL_LAYER_PROFILE)) {
        hal_profile_object_retired(kind, object);
    }
    if (layer_is_on(HAL_LAYER_VALIDATE)) {
        hal_validate_object_retire(kind, object, bytes, dispose);
    } else {
        dispose(object);
    }
}

static void buffer_labelled(const hal_buffer *buffer, const char *label)
{
    if (layer_is_on(HAL_LAYER_VALIDATE)) {
        hal_validate_buffer_labelled(buffer, label);
    }
    if (layer_is_on(HAL_LAYER_PROFILE)) {
        hal_profile_buffer_labelled(buffer, label);
    }
}

static void buffer_mapped(const hal_buffer *buffer)
{
    if (layer_is_on(HAL_LAYER_VALIDATE)) {
        hal_validate_buffer_mapped(buffer);
    }
    if (layer_is_on(HAL_LAYER_SANITIZE)) {
        hal_sanitize_host_access(
            &(hal_range){(hal_buffer *)buffer, 0, hal_buffer_get_bytes(buffer)}, HAL_ACCESS_WRITE);
    }
}

static void buffer_unmapped(const hal_buffer *buffer)
{
    if (layer_is_on(HAL_LAYER_VALIDATE)) {
        hal_validate_buffer_unmapped(buffer);
    }
}

static void buffer_exported(const hal_buffer *buffer)
{
    if (layer_is_on(HAL_LAYER_SANITIZE)) {
        hal_sanitize_buffer_exported(buffer);
    }
}

static void gemm_created(const hal_kernel *kernel, const hal_gemm_description *description,
                         uint64_t workspace_bytes)
{
    if (layer_is_on(HAL_LAYER_VALIDATE)) {
        hal_validate_gemm_created(kernel, description, workspace_bytes);
    }
    if (layer_is_on(HAL_LAYER_PROFILE)) {
        hal_profile_gemm_created(kernel, description);
    }
}

static void attention_created(const hal_kernel *kernel,
                              const hal_attention_description *description)
{
    if (layer_is_on(HAL_LAYER_VALIDATE)) {
        hal_validate_attention_created(kernel, description);
    }
}

static hal_status dispatch(const hal_kernel *kernel, const hal_range *bindings,
                           uint32_t binding_count)
{
    return layer_is_on(HAL_LAYER_VALIDATE) ? hal_validate_dispatch(kernel, bindings, binding_count)
                                           : HAL_OK;
}

static void command_recorded(const hal_queue *queue, const hal_action *action)
{
    if (layer_is_on(HAL_LAYER_VALIDATE)) {
        hal_validate_command_recorded(queue, action);
    }
    if (layer_is_on(HAL_LAYER_PROFILE)) {
        hal_profile_command_recorded(action);
    }
    if (layer_is_on(HAL_LAYER_SANITIZE)) {
        hal_sanitize_command_recorded(queue, action);
    }
}

static void host_access(const hal_queue *queue, const hal_range *range, uint32_t access)
{
    if (layer_is_on(HAL_LAYER_VALIDATE)) {
        hal_validate_host_access(queue, range, access);
    }
    if (layer_is_on(HAL_LAYER_PROFILE)) {
        hal_profile_host_access(range);
    }
    if (layer_is_on(HAL_LAYER_SANITIZE)) {
        hal_sanitize_host_access(range, access);
    }
}

static void batch_flushed(const hal_queue *queue, uint64_t value, hal_status status)
{
    if (layer_is_on(HAL_LAYER_VALIDATE)) {
        hal_validate_batch_flushed(queue, value, status);
    }
}

static void point_waited(const hal_queue *queue, hal_point point)
{
    if (layer_is_on(HAL_LAYER_VALIDATE)) {
        hal_validate_point_waited(queue, point);
    }
    if (!queue && layer_is_on(HAL_LAYER_SANITIZE)) {
        hal_sanitize_waited(point.queue);
    }
}

static void queue_describe(const hal_queue *queue, char *text, size_t bytes)
{
    if (layer_is_on(HAL_LAYER_VALIDATE)) {
        hal_validate_queue_describe(queue, text, bytes);
    }
}

static void cycle_found(const char *text, bool is_certain)
{
    if (layer_is_on(HAL_LAYER_VALIDATE)) {
        hal_validate_cycle_found(text, is_certain);
    }
}

static void batch_started(hal_queue *queue)
{
    if (layer_is_on(HAL_LAYER_TRACE)) {
        hal_trace_batch_started(queue);
    }
}

static void queue_closing(hal_queue *queue)
{
    if (layer_is_on(HAL_LAYER_TRACE)) {
        hal_trace_queue_closing(queue);
    }
    if (layer_is_on(HAL_LAYER_SANITIZE)) {
        hal_sanitize_waited(queue);
    }
}

static const hal_hooks hooks = {
    .event_before = event_before,
    .event_after = event_after,
    .object_created = object_created,
    .object_use = object_use,
    .object_retain = object_retain,
    .object_release = object_release,
    .object_enter = object_enter,
    .object_leave = object_leave,
    .object_retire = object_retire,
    .buffer_labelled = buffer_labelled,
    .buffer_mapped = buffer_mapped,
    .buffer_unmapped = buffer_unmapped,
    .buffer_exported = buffer_exported,
    .gemm_created = gemm_created,
    .attention_created = attention_created,
    .dispatch = dispatch,
    .command_recorded = command_recorded,
    .host_access = host_access,
    .batch_flushed = batch_flushed,
    .point_waited = point_waited,
    .queue_describe = queue_describe,
    .cycle_found = cycle_found,
    .batch_started = batch_started,
    .queue_closing = queue_closing,
};

/* Needs the registry's lock. */
static hal_status start_layers(void)
{
    uint32_t on = 0, mask = 0;
    hal_status status = read_variables(&on);
    for (uint32_t i = 0; status == HAL_OK && i < LAYER_COUNT; i++) {
        if (on & layers[i]->bit) {
            status = layers[i]->begin();
            mask |= layers[i]->hooks;
        }
    }
    if (status == HAL_OK) {
        mask |= hal_dump_has_calls() ? HAL_HOOK_BATCHES : 0;
        layers_on = on;
        hal_hooks_install(&hooks, mask);
    }
    return status;
}

hal_status hal_layers_start(void)
{
    static bool started;
    hal_status status = HAL_OK;
    hal_registry_lock();
    if (!started) {
        status = start_layers();
        started = status == HAL_OK;
    }
    hal_registry_unlock();
    return status;
}
