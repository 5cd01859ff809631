/* reports.c: what a driver tells of kernels, the clocks of host and device, and quirks. */
#include <hal/hal.h>
#include <hal/ir_build.h>
#include <string.h>
#include <time.h>

#include "case/cases.h"
#include "hal/direct.h"
#include "hal/fixture.h"

static uint64_t host_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void kernel_report(case_run *run, const void *parameters)
{
    hal_kernel_report first = {0}, second = {0};
    hal_kernel *kernel = scale_kernel(run, run->device);
    case_ok(run, hal_kernel_get_report(kernel, &first), "hal_kernel_get_report");
    case_ok(run, hal_kernel_get_report(kernel, &second), "hal_kernel_get_report");
    case_check(run, first.compile_ns > 0 && first.from_cache <= 1, "hal's part has %llu ns",
               (unsigned long long)first.compile_ns);
    case_check(run, (first.known & ~15u) == 0, "unknown bits: 0x%x", first.known);
    case_check(run, !(first.known & HAL_REPORT_REGISTERS) || first.registers > 0,
               "a kernel that computes has no registers");
    case_check(run, !(first.known & HAL_REPORT_CODE) || first.code_bytes > 0,
               "a kernel that computes has no code");
    case_check(run,
               ((first.known & HAL_REPORT_REGISTERS) || first.registers == 0) &&
                   ((first.known & HAL_REPORT_CODE) || first.code_bytes == 0) &&
                   ((first.known & HAL_REPORT_SPILLS) || first.spilled_bytes == 0) &&
                   ((first.known & HAL_REPORT_SHARED) || first.shared_bytes == 0),
               "a field that is not known is not 0");
    case_check(run,
               first.known == second.known && first.registers == second.registers &&
                   first.code_bytes == second.code_bytes,
               "two reports of a kernel differ");
    case_expect(run, hal_kernel_get_report(kernel, NULL), HAL_ERROR_INVALID_ARGUMENT, "report",
                "no report");
}

/* A kernel of some hundred operations. */
static hal_kernel *long_kernel(case_run *run)
{
    enum { OPERATIONS = 300 };
    hal_ir_builder *b = case_builder(run, "long");
    hal_ir_group_size(b, SCALE_GROUP, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_READ_WRITE);
    const hal_ir_value i = hal_ir_global_id(b, 0);
    hal_ir_value x = hal_ir_load(b, out, i);
    for (uint32_t k = 0; k < OPERATIONS; k++) {
        x = hal_ir_xor(b, hal_ir_mul(b, x, hal_ir_u32(b, 2 * k + 3)),
                       hal_ir_shr(b, x, hal_ir_u32(b, k % 13 + 1)));
    }
    hal_ir_store(b, out, i, x);
    return case_kernel(run, b);
}

/* The reports of two kernels of very different size, also after the other one was created. */
static void reports_of_two(case_run *run, const void *parameters)
{
    hal_kernel_report alone = {0}, first = {0}, second = {0};
    hal_kernel *kernel = scale_kernel(run, run->device);
    case_ok(run, hal_kernel_get_report(kernel, &alone), "hal_kernel_get_report");
    hal_kernel *other = long_kernel(run);
    case_ok(run, hal_kernel_get_report(other, &second), "hal_kernel_get_report");
    case_ok(run, hal_kernel_get_report(kernel, &first), "hal_kernel_get_report");
    case_check(run,
               first.known == alone.known && first.registers == alone.registers &&
                   first.code_bytes == alone.code_bytes &&
                   first.spilled_bytes == alone.spilled_bytes,
               "the report of a kernel is another one after a second kernel was created");
    case_check(run,
               !(first.known & second.known & HAL_REPORT_CODE) ||
                   second.code_bytes > first.code_bytes,
               "a kernel of 600 operations has %llu bytes of code, one of 10 has %llu",
               (unsigned long long)second.code_bytes, (unsigned long long)first.code_bytes);
}

/* What hal fills in stays as hal gave it to the plugin. */
static void fields_of_hal(case_run *run, const void *parameters)
{
    direct *d = direct_shared(run);
    hal_kernel_report report = {.size = sizeof report};
    hal_plugin_kernel *kernel = NULL;
    if (!d->reports) {
        case_unsupported(run, "the plugin does not offer hal.reports");
    }
    case_ok(run, d->table->kernel_create(d->device, scale_ir(run), &kernel), "kernel_create");
    const hal_status status = d->reports->kernel_report(d->device, kernel, &report);
    d->table->kernel_destroy(d->device, kernel);
    case_ok(run, status, "kernel_report");
    case_check(run,
               report.size == sizeof report && report.compile_ns == 0 && report.from_cache == 0,
               "kernel_report wrote a field of hal: size %u, compile_ns %llu, from_cache %u",
               report.size, (unsigned long long)report.compile_ns, report.from_cache);
}

/* The end of a batch, the second of its queue at least, is between the clocks before it was
 * submitted and after it was waited for. */
static void clocks(case_run *run, const void *parameters)
{
    hal_clocks before = {0}, after = {0};
    hal_point point = {0};
    uint64_t end = 0;
    case_claim(run, (run->info->features & HAL_FEATURE_TIMESTAMPS) != 0, "times of batches");
    hal_buffer *buffer = words_create(run, run->queue, 1024, 0, 1);
    case_ok(run, hal_queue_fill(run->queue, range_of(buffer), 2), "fill");
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    const uint64_t first = host_ns();
    hal_status status = hal_device_get_clocks(run->device, &before);
    if (status == HAL_ERROR_UNSUPPORTED) {
        case_unsupported(run, "the device's clock");
    }
    case_ok(run, status, "hal_device_get_clocks");
    case_ok(run, hal_queue_fill(run->queue, range_of(buffer), 3), "fill");
    case_ok(run, hal_queue_flush(run->queue, &point), "hal_queue_flush");
    case_ok(run, hal_point_wait(point, HAL_WAIT_FOREVER), "hal_point_wait");
    case_ok(run, hal_point_get_time(point, &end), "hal_point_get_time");
    case_ok(run, hal_device_get_clocks(run->device, &after), "hal_device_get_clocks");
    const uint64_t last = host_ns();
    case_check(run,
               first <= before.host_ns + before.deviation_ns && before.host_ns <= after.host_ns,
               "the host's clock is %llu, read before at %llu", (unsigned long long)before.host_ns,
               (unsigned long long)first);
    case_check(run, after.host_ns <= last + after.deviation_ns,
               "the host's clock is %llu, read after at %llu", (unsigned long long)after.host_ns,
               (unsigned long long)last);
    case_check(run,
               before.device_ns <= end + before.deviation_ns &&
                   end <= after.device_ns + after.deviation_ns,
               "the batch ended at %llu, and not between %llu and %llu", (unsigned long long)end,
               (unsigned long long)before.device_ns, (unsigned long long)after.device_ns);
}

/* More than any driver has. */
enum { MANY_QUIRKS = 1000 };

static bool is_word(const char *text)
{
    return text[0] && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(text);
}

static bool is_line(const char *text)
{
    const char *next = text;
    while ((unsigned char)*next >= ' ' && *next != 0x7f) {
        next++;
    }
    return *text && !*next;
}

static uint32_t quirks_read(case_run *run, hal_quirk quirks[MANY_QUIRKS])
{
    uint32_t count = 0;
    hal_status status = HAL_OK;
    for (; status == HAL_OK && count < MANY_QUIRKS; count += status == HAL_OK) {
        status = hal_device_get_quirk(run->device, count, &quirks[count]);
    }
    case_check(run, count < MANY_QUIRKS, "there are %u quirks and more", count);
    case_expect(run, status, HAL_ERROR_NOT_FOUND, "index", "the index after the last one");
    return count;
}

static bool quirks_equal(const hal_quirk *one, const hal_quirk *other)
{
    return strcmp(one->name, other->name) == 0 && strcmp(one->reason, other->reason) == 0 &&
           one->is_active == other->is_active;
}

/* Each quirk has a word, a reason and its number in each call. All are read before one is looked
 * at, so that their strings have to stay. */
static void quirks(case_run *run, const void *parameters)
{
    static hal_quirk first[MANY_QUIRKS], second[MANY_QUIRKS];
    const uint32_t count = quirks_read(run, first);
    case_check(run, quirks_read(run, second) == count, "the number of quirks changes");
    for (uint32_t i = 0; i < count; i++) {
        case_check(run, is_word(first[i].name), "quirk %u is called %s", i, first[i].name);
        case_check(run, is_line(first[i].reason), "quirk %u: reason: %s", i, first[i].reason);
        case_check(run, quirks_equal(&first[i], &second[i]), "quirk %u was %s and is %s", i,
                   first[i].name, second[i].name);
        for (uint32_t j = 0; j < i; j++) {
            case_check(run, strcmp(first[i].name, first[j].name) != 0, "quirks %u and %u are %s", j,
                       i, first[i].name);
        }
    }
    case_expect(run, hal_device_get_quirk(run->device, UINT32_MAX, &first[0]), HAL_ERROR_NOT_FOUND,
                "index", "the greatest index");
    case_expect(run, hal_device_get_quirk(run->device, 0, NULL), HAL_ERROR_INVALID_ARGUMENT,
                "quirk", "no quirk");
}

void cases_hal_reports(case_list *list)
{
    case_add(list, kernel_report, NULL, 0, "reports/kernel");
    case_add(list, reports_of_two, NULL, 0, "reports/two_kernels");
    case_add(list, fields_of_hal, NULL, 0, "reports/fields_of_hal");
    case_add(list, clocks, NULL, 0, "reports/clocks");
    case_add(list, quirks, NULL, 0, "reports/quirks");
}
