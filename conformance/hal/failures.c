/* failures.c: a plugin whose work fails, without hal in between: a batch with an unknown
 * command, a batch that fails because hal.faults says so, and memory of the host that
 * is refused in each call. A failure has a message, a lost device stays lost, another one goes on,
 * and what was refused has not run. */
#include <string.h>

#include "case/cases.h"
#include "hal/direct.h"
#include "hal/fixture.h"

enum { FIRST = 0x11111111, FAILING = 0x22222222, LATER = 0x33333333, MOST_REFUSALS = 200 };

/* An open device whose words are FIRST. */
static direct *device_with_words(case_run *run)
{
    direct *d = direct_opened(run);
    for (uint32_t queue = 0; queue < DIRECT_QUEUES; queue++) {
        case_ok(run, direct_submit(d, queue, FIRST, DIRECT_FILL), "submit");
        case_ok(run, direct_wait(d, queue, DIRECT_LIMIT_NS), "wait");
    }
    direct_check_words(run, d, FIRST, "a fill");
    return d;
}

static void lost_check(case_run *run, direct *d, uint32_t queue, hal_status status,
                       const char *what)
{
    case_check(run, status == HAL_ERROR_DEVICE_LOST, "%s gave %s instead of DEVICE_LOST", what,
               hal_status_name(status));
    case_check(run, direct_has_message(d, queue),
               "%s: DEVICE_LOST without a message, of queue_failed or of fail", what);
}

/* Of a device that was lost by the last batch of queue 0, which was submitted or failed inside
 * submit. */
static void stays_lost(case_run *run, direct *d, uint64_t failed, bool was_submitted)
{
    for (int i = 0; i < 3 && was_submitted; i++) {
        direct_forget(d);
        lost_check(run, d, 0, direct_wait(d, 0, i == 1 ? 0 : DIRECT_LIMIT_NS),
                   i == 0 ? "the wait for the batch" : "a later wait for the batch");
    }
    for (uint32_t queue = 0; queue < DIRECT_QUEUES; queue++) {
        direct_forget(d);
        lost_check(run, d, queue, direct_submit(d, queue, LATER, DIRECT_FILL),
                   queue == 0 ? "a later submit" : "a later submit to another queue");
    }
    const hal_status before = direct_wait(d, 1, DIRECT_LIMIT_NS);
    case_check(run, before == HAL_OK || before == HAL_ERROR_DEVICE_LOST,
               "a wait for what was reached before gave %s", hal_status_name(before));
    case_check(run, d->reached[0] < failed, "queue_reached told the value of the lost batch");
}

/* Of a batch that submit refused: nothing of it runs, and its value comes again. */
static void refused_check(case_run *run, direct *d)
{
    case_check(run, direct_has_message(d, 0), "a refused batch has no message");
    case_ok(run, direct_wait(d, 0, DIRECT_LIMIT_NS), "wait after a refused batch");
    direct_check_words(run, d, FIRST, "after a batch that submit refused");
    case_ok(run, direct_submit(d, 0, LATER, DIRECT_FILL), "submit after a refused batch");
    case_ok(run, direct_wait(d, 0, DIRECT_LIMIT_NS), "wait");
    direct_check_words(run, d, LATER, "a fill after a refused batch");
}

/* The batch of queue 0 that failed, or will fail, with what submit returned. */
static void failure_check(case_run *run, direct *d, hal_status status, const char *what)
{
    const uint64_t value = d->submitted[0] + (status != HAL_OK);
    if (status != HAL_OK && status != HAL_ERROR_DEVICE_LOST) {
        refused_check(run, d);
        return;
    }
    if (status == HAL_ERROR_DEVICE_LOST) {
        lost_check(run, d, 0, status, what);
    }
    stays_lost(run, d, value, status == HAL_OK);
}

static void unknown_command(case_run *run, const void *parameters)
{
    const direct_work work = *(const direct_work *)parameters;
    direct *d = device_with_words(run);
    direct_forget(d);
    failure_check(run, d, direct_submit(d, 0, FAILING, work), "a batch with an unknown command");
}

static void work_fails(case_run *run, const void *parameters)
{
    device_open_here(run);
    direct *d = device_with_words(run);
    if (!d->faults) {
        case_unsupported(run, "the plugin does not offer hal.faults");
    }
    direct_forget(d);
    d->faults->queue_fail_next(d->queues[0]);
    const hal_status status = direct_submit(d, 0, FAILING, DIRECT_FILL);
    case_check(run, status == HAL_OK || status == HAL_ERROR_DEVICE_LOST,
               "the batch that fails: submit gave %s", hal_status_name(status));
    failure_check(run, d, status, "the batch that fails");
}

/* ---- Two devices of the plugin, of which one is lost ---- */

/* Writes the id of a device that is not the one under test. False where there is none. */
static bool second_id(case_run *run, const direct *d, char id[sizeof run->info->id])
{
    enum { MOST = 8 };
    static uint8_t records[MOST * HAL_DEVICE_INFO_MAX_BYTES];
    uint32_t count = 0;
    size_t at = 0;
    case_ok(run, d->table->enumerate(d->instance, (hal_device_info *)(void *)records, MOST, &count),
            "enumerate");
    for (uint32_t i = 0; i < count && i < MOST; i++) {
        hal_device_info info;
        memcpy(&info, records + at, sizeof info);
        if (strcmp(info.id, run->info->id) != 0) {
            memcpy(id, info.id, sizeof info.id);
            return true;
        }
        at += info.size;
    }
    return false;
}

static void goes_on(case_run *run, direct *d, uint32_t pattern, const char *when)
{
    for (uint32_t queue = 0; queue < DIRECT_QUEUES; queue++) {
        hal_status status = direct_submit(d, queue, pattern + queue, DIRECT_FILL);
        status = status == HAL_OK ? direct_wait(d, queue, DIRECT_LIMIT_NS) : status;
        case_check(run, status == HAL_OK, "a batch of a device %s gave %s", when,
                   hal_status_name(status));
        direct_check_words(run, d, pattern + queue, when);
    }
}

/* A device, of an instance of its own or of that of the first one, goes on when another one is lost
 * before and while batches of it are in flight. */
static void other_device(case_run *run, const void *parameters)
{
    const bool own_instance = *(const bool *)parameters;
    char id[sizeof run->info->id] = "";
    device_open_here(run);
    direct *asked = direct_host(run);
    case_own(run, direct_close_object, asked);
    direct_instance(run, asked);
    if (!asked->faults || !second_id(run, asked, id)) {
        case_unsupported(run, "the plugin has one device, or does not offer hal.faults");
    }
    direct *d = device_with_words(run), *other = direct_host(run);
    if (own_instance) {
        direct_instance(run, other);
    } else {
        other->table = d->table;
        other->coherence = d->coherence;
    }
    case_own(run, direct_close_object, other);
    case_ok(
        run,
        other->table->device_open(own_instance ? other->instance : d->instance, id, &other->device),
        "device_open of the second device");
    case_ok(run, direct_make(other), "memory and queues of the second device");
    goes_on(run, other, FIRST, "next to another one");
    case_ok(run, direct_submit(other, 0, FAILING, DIRECT_FILL), "submit");
    d->faults->queue_fail_next(d->queues[0]);
    if (direct_submit(d, 0, FAILING, DIRECT_FILL) == HAL_OK) {
        direct_wait(d, 0, DIRECT_LIMIT_NS);
    }
    case_ok(run, direct_wait(other, 0, DIRECT_LIMIT_NS), "the wait for a batch of another device");
    goes_on(run, other, LATER, "after another one was lost");
    const hal_status status = direct_submit(d, 1, LATER, DIRECT_FILL);
    case_check(run, status == HAL_ERROR_DEVICE_LOST, "a submit to the lost device gave %s",
               hal_status_name(status));
}

/* Uses everything once. True if nothing failed; then the result is right. */
static bool program_runs(case_run *run, direct *d, hal_ir_kernel *ir)
{
    hal_plugin_kernel *kernel = NULL;
    hal_status status = direct_open(run, d);
    status = status == HAL_OK ? direct_make(d) : status;
    if (status == HAL_OK) {
        status = d->table->kernel_create(d->device, ir, &kernel);
        if (status == HAL_OK) {
            d->table->kernel_destroy(d->device, kernel);
            status = direct_submit(d, 0, FAILING, DIRECT_FILL);
        }
    }
    status = status == HAL_OK ? direct_wait(d, 0, DIRECT_LIMIT_NS) : status;
    case_check(run, status == HAL_OK || direct_has_message(d, 0),
               "where allocation %llu of the host fails a call gives %s without a message",
               (unsigned long long)d->fails_at, hal_status_name(status));
    if (status == HAL_OK) {
        direct_check_words(run, d, FAILING, "a fill");
    }
    return status == HAL_OK;
}

/* Each allocation of the host's memory fails in turn. What is left of the first programs, such as a
 * cache, is what may be left of each. */
static void host_memory(case_run *run, const void *parameters)
{
    hal_ir_kernel *ir = scale_ir(run);
    direct *d = direct_host(run);
    uint64_t count = 0, left = 0;
    case_own(run, direct_close_object, d);
    for (uint64_t number = 0; number <= count && number < MOST_REFUSALS; number++) {
        direct_forget(d);
        d->allocations = 0;
        d->fails_at = number;
        const bool worked = program_runs(run, d, ir);
        case_check(run, worked || number > 0, "a program on a second instance fails: %s",
                   d->message);
        direct_close(d);
        if (number == 0) {
            count = d->allocations;
            left = d->live;
        }
        case_check(run, d->live <= left,
                   "where allocation %llu of the host fails, %llu others are not released",
                   (unsigned long long)number, (unsigned long long)(d->live - left));
    }
    if (count == 0) {
        case_unsupported(run, "the plugin takes no memory of the host");
    }
}

void cases_hal_failures(case_list *list)
{
    static const direct_work works[] = {DIRECT_FILL_UNKNOWN, DIRECT_UNKNOWN};
    case_add(list, unknown_command, &works[0], sizeof works[0], "failures/unknown_command");
    case_add(list, unknown_command, &works[1], sizeof works[1], "failures/unknown_alone");
    case_add(list, work_fails, NULL, 0, "failures/work");
    case_has_faults(list, "%s", ""); /* a driver may end what it has in the process */
    static const bool instances[] = {false, true};
    for (int i = 0; i < 2; i++) {
        case_add(list, other_device, &instances[i], sizeof instances[i],
                 "failures/other_device(instances=%d)", 1 + instances[i]);
        case_has_faults(list, "%s", "");
    }
    case_add(list, host_memory, NULL, 0, "failures/host_memory");
}
