/* The fault layer: makes calls into plugins fail, to test programs. With HAL_LAYERS=fault,
 *
 *     HAL_FAULT=allocation:3      the third allocation of device memory fails
 *     HAL_FAULT=compile:1+        every kernel, from the first on
 *     HAL_FAULT=submit:2,wait:7   several, with commas
 *     HAL_FAULT=lost:5            the device is lost at the fifth submit or wait */
#include "plugin/host.h"
#include "layer.h"
#include "base/platform.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum fault { ALLOCATION, COMPILE, SUBMIT, WAIT, LOST, FAULT_COUNT };

static const struct {
    const char *name;
    hal_status status; /* the answer in place of the plugin's */
} faults[FAULT_COUNT] = {
    {"allocation", HAL_ERROR_OUT_OF_MEMORY}, {"compile", HAL_ERROR_COMPILE},
    {"submit", HAL_ERROR_INTERNAL},          {"wait", HAL_ERROR_INTERNAL},
    {"lost", HAL_ERROR_DEVICE_LOST},
};

/* Number of the failing call, from 1; 0: none. Constant after the variable is read. */
static uint64_t wanted[FAULT_COUNT];
static int all_later[FAULT_COUNT];

static _Atomic uint64_t counted[FAULT_COUNT];

/* Parses one item. Returns the rest of the text; null for a syntax error. */
static const char *fault_parse(const char *text)
{
    const size_t length = strcspn(text, ":");
    for (uint32_t i = 0; i < FAULT_COUNT && text[length]; i++) {
        if (strlen(faults[i].name) != length || strncmp(faults[i].name, text, length) != 0 ||
            text[length + 1] < '0' || text[length + 1] > '9') {
            continue;
        }
        char *rest;
        const uint64_t number = strtoull(text + length + 1, &rest, 10);
        const bool later = *rest == '+';
        rest += later;
        if (number == 0 || (*rest && *rest != ',')) {
            return NULL;
        }
        wanted[i] = number;
        all_later[i] = later;
        return *rest ? rest + 1 : rest;
    }
    return NULL;
}

static hal_status fault_begin(void)
{
    const char *text = secure_getenv("HAL_FAULT");
    const char *at = text ? text : "";
    do {
        const char *rest = fault_parse(at);
        if (!rest) {
            return hal_fail(
                HAL_ERROR_INVALID_ARGUMENT,
                "HAL_FAULT: expected a list of KIND:N, or KIND:N+ for all calls from the "
                "Nth on, with KIND allocation, compile, submit, wait or lost and N from "
                "1, got \"%s\"",
                text ? text : "");
        }
        at = rest;
    } while (*at);
    return HAL_OK;
}

static hal_status fault_count(enum fault fault)
{
    const uint64_t number = atomic_fetch_add(&counted[fault], 1) + 1;
    if (wanted[fault] == 0 || number < wanted[fault] ||
        (number > wanted[fault] && !all_later[fault])) {
        return HAL_OK;
    }
    char words[96];
    snprintf(words, sizeof words, "call %llu of its kind fails by HAL_FAULT=%s:%llu%s",
             (unsigned long long)number, faults[fault].name, (unsigned long long)wanted[fault],
             all_later[fault] ? "+" : "");
    return hal_host_services()->fail(hal_host_services(), faults[fault].status, words);
}

static hal_status fault_before(hal_event *event)
{
    switch (event->kind) {
    case HAL_EVENT_ALLOCATE:
        return fault_count(ALLOCATION);
    case HAL_EVENT_COMPILE:
        return fault_count(COMPILE);
    case HAL_EVENT_SUBMIT: {
        const hal_status status = fault_count(LOST);
        return status == HAL_OK ? fault_count(SUBMIT) : status;
    }
    case HAL_EVENT_WAIT: {
        /* Polling does not count: its frequency depends on timing. */
        const hal_status status = event->timeout_ns > 0 ? fault_count(LOST) : HAL_OK;
        return status == HAL_OK && event->timeout_ns > 0 ? fault_count(WAIT) : status;
    }
    default:
        return HAL_OK;
    }
}

const hal_layer hal_layer_fault = {
    .bit = HAL_LAYER_FAULT,
    .hooks = HAL_HOOK_EVENTS,
    .begin = fault_begin,
    .before = fault_before,
};
