/* Which layers are on, and the way of an event through them. Called where hal calls plugins. */
#include "layer.h"

#include "base/clock.h"
#include "base/status.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

_Atomic uint32_t hal_layers;

static const hal_layer *const layers[] = {&hal_layer_dump, &hal_layer_trace, &hal_layer_fault,
                                          &hal_layer_validate};
enum { LAYER_COUNT = sizeof layers / sizeof *layers };

static hal_status read_list(const char *list, uint32_t *on)
{
    static const struct {
        const char *name;
        uint32_t bit;
    } known[] = {{"fault", HAL_LAYER_FAULT}, {"validate", HAL_LAYER_VALIDATE}};
    const char *rest = list, *word;
    for (size_t length; (length = hal_list_next(&rest, &word)) > 0;) {
        uint32_t bit = 0;
        for (uint32_t i = 0; i < sizeof known / sizeof *known; i++) {
            if (strlen(known[i].name) == length && strncmp(known[i].name, word, length) == 0) {
                bit = known[i].bit;
            }
        }
        if (!bit) {
            return hal_fail(HAL_ERROR_INVALID_ARGUMENT,
                            "HAL_LAYERS \"%s\": there is no layer \"%.*s\"; there are "
                            "validate and fault, and HAL_TRACE=FILE",
                            list, (int)length, word);
        }
        *on |= bit;
    }
    return HAL_OK;
}

static hal_status read_variables(uint32_t *on)
{
    const char *trace = secure_getenv("HAL_TRACE");
    const char *list = secure_getenv("HAL_LAYERS");
    const char *dump = secure_getenv("HAL_DUMP");
    if (trace && trace[0]) {
        *on |= HAL_LAYER_TRACE;
    }
    /* It has words that are no layer's, too. */
    if (dump && hal_list_has(dump, "batch")) {
        *on |= HAL_LAYER_DUMP;
    }
    return list ? read_list(list, on) : HAL_OK;
}

hal_status hal_layers_begin(void)
{
    static int begun;
    uint32_t on = 0;
    if (begun) {
        return HAL_OK;
    }
    hal_status status = read_variables(&on);
    for (uint32_t i = 0; status == HAL_OK && i < LAYER_COUNT; i++) {
        if (on & layers[i]->bit) {
            status = layers[i]->begin();
        }
    }
    if (status == HAL_OK) {
        begun = 1;
        atomic_store(&hal_layers, on);
    }
    return status;
}

hal_status hal_layers_before(hal_event *event)
{
    hal_status status = HAL_OK;
    event->begin_ns = hal_clock_ns();
    for (uint32_t i = 0; status == HAL_OK && i < LAYER_COUNT; i++) {
        if (hal_layers_on(layers[i]->bit) && layers[i]->before) {
            status = layers[i]->before(event);
        }
    }
    return status;
}

void hal_layers_after(const hal_event *event, hal_status status)
{
    for (uint32_t i = LAYER_COUNT; i-- > 0;) {
        if (hal_layers_on(layers[i]->bit) && layers[i]->after) {
            layers[i]->after(event, status);
        }
    }
}
