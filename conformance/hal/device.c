/* device.c: choosing and opening devices, what they say about themselves, and the registry. */
#include <hal/buffer.h>
#include <hal/device.h>
#include <hal/queue.h>

#include <stdio.h>
#include <string.h>

#include "case/cases.h"
#include "case/cover.h"

static void open_again(case_run *run, const void *parameters)
{
    hal_device *again = NULL;
    hal_memory_statistics statistics;
    case_ok(run, hal_device_open(run->selection, &again), "hal_device_open");
    case_check(run, again == run->device, "the device that is open was opened a second time");
    case_check(run, hal_device_retain(again) == again, "hal_device_retain gives another");
    hal_device_release(again);
    hal_device_release(again);
    case_ok(run, hal_device_get_memory(run->device, &statistics), "the device after releases");
}

static void open_absent(case_run *run, const void *parameters)
{
    hal_device *device = (hal_device *)run;
    const hal_status status = hal_device_open("no_such_plugin", &device);
    case_expect(run, status, HAL_ERROR_NOT_FOUND, "no_such_plugin", "an absent plugin");
    case_check(run, strstr(hal_status_message(), hal_device_get_plugin_name(run->device)) != NULL,
               "the message does not say what there is: %s", hal_status_message());
    case_check(run, !device || device == (hal_device *)run, "a device was given with an error");
    char selection[192];
    snprintf(selection, sizeof selection, "%s:4095", hal_device_get_plugin_name(run->device));
    case_expect(run, hal_device_open(selection, &device), HAL_ERROR_NOT_FOUND, "4095",
                "an index beyond the last");
    case_expect(run, hal_device_open("id:no-such-card", &device), HAL_ERROR_NOT_FOUND,
                "no-such-card", "an absent id");
}

static void open_malformed(case_run *run, const void *parameters)
{
    static const char *const selections[] = {",", ":0", "a,,b", " ", "id:", "a b"};
    for (size_t i = 0; i < sizeof selections / sizeof selections[0]; i++) {
        hal_device *device = NULL;
        const hal_status status = hal_device_open(selections[i], &device);
        hal_device_release(status == HAL_OK ? device : NULL);
        case_check(run, status == HAL_ERROR_INVALID_ARGUMENT || status == HAL_ERROR_NOT_FOUND,
                   "'%s' gave %s", selections[i], hal_status_name(status));
    }
    case_expect(run, hal_device_open(run->selection, NULL), HAL_ERROR_INVALID_ARGUMENT, NULL,
                "a null result");
}

/* A selection has to open the device under test. */
static void selection_check(case_run *run, const char *selection, const char *what)
{
    hal_device *device = NULL;
    case_ok(run, hal_device_open(selection, &device), what);
    const bool is_same = strcmp(hal_device_get_info(device)->id, run->info->id) == 0;
    hal_device_release(device);
    case_check(run, is_same, "%s: '%s' is another device", what, selection);
}

/* The first item that can be used counts. */
static void open_list(case_run *run, const void *parameters)
{
    char selection[192];
    snprintf(selection, sizeof selection, "no_such_plugin,%s", run->selection);
    selection_check(run, selection, "a list whose second item exists");
}

static void open_by_name(case_run *run, const void *parameters)
{
    const char *plugin = hal_device_get_plugin_name(run->device);
    char selection[256];
    snprintf(selection, sizeof selection, "id:%s", run->info->id);
    selection_check(run, selection, "the device by its id");
    if (!strchr(run->info->name, ',')) {
        hal_device *device = NULL;
        snprintf(selection, sizeof selection, "%s:%.100s", plugin, run->info->name);
        case_ok(run, hal_device_open(selection, &device), "the device by its name");
        const bool is_same = strcmp(hal_device_get_info(device)->name, run->info->name) == 0;
        hal_device_release(device);
        case_check(run, is_same, "a device of another name");
    }
}

static void info_limits(case_run *run, const void *parameters)
{
    const hal_device_info *info = run->info;
    const uint32_t alignment = info->binding_alignment;
    case_check(run, info->name[0] != 0 && info->id[0] != 0, "no name or no id");
    case_check(run, info->kind >= HAL_DEVICE_DISCRETE && info->kind <= HAL_DEVICE_CPU, "kind %u",
               info->kind);
    case_check(run, alignment != 0 && (alignment & (alignment - 1)) == 0,
               "binding_alignment %u is no power of two", alignment);
    case_check(run, info->max_bindings >= 8 && info->max_bindings <= HAL_IR_MAX_BINDINGS,
               "max_bindings %u", info->max_bindings);
    case_check(run, info->max_group_items >= 64 && info->max_group_items <= HAL_IR_MAX_GROUP_ITEMS,
               "max_group_items %u", info->max_group_items);
    case_check(run, info->preferred_group > 0 && info->preferred_group <= info->max_group_items,
               "preferred_group %u of at most %u", info->preferred_group, info->max_group_items);
    for (int d = 0; d < 3; d++) {
        case_check(run, info->max_group_size[d] > 0 && info->max_grid[d] >= 65535,
                   "dimension %d: groups of %u, grid of %u", d, info->max_group_size[d],
                   info->max_grid[d]);
    }
    case_check(run, info->shared_bytes >= 16384, "shared memory of %u bytes", info->shared_bytes);
    case_check(run,
               info->max_allocation > 0 && info->max_binding > 0 &&
                   info->max_binding <= info->max_allocation,
               "a binding of %llu bytes, an allocation of %llu",
               (unsigned long long)info->max_binding, (unsigned long long)info->max_allocation);
    case_check(run, info->compute_units > 0 && info->max_queues > 0, "no compute units or queues");
    case_check(run, info->max_vector_bytes >= 4, "vectors of %u bytes", info->max_vector_bytes);
    case_check(run, (info->subgroup_width & (info->subgroup_width - 1)) == 0,
               "subgroups of %u lanes", info->subgroup_width);
}

/* Every arithmetic type can be stored; all devices have 32-bit integers and f32. */
static void info_types(case_run *run, const void *parameters)
{
    const uint32_t storage = run->info->storage_types, arithmetic = run->info->arithmetic_types;
    const uint32_t basic =
        HAL_TYPE_BIT(HAL_TYPE_I32) | HAL_TYPE_BIT(HAL_TYPE_U32) | HAL_TYPE_BIT(HAL_TYPE_F32);
    case_check(run, (storage & basic) == basic, "storage types 0x%x lack basic ones", storage);
    case_check(run, (arithmetic & basic) == basic, "arithmetic types 0x%x lack basic ones",
               arithmetic);
    case_check(run, ((arithmetic | storage) & ~HAL_STORAGE_TYPES) == 0,
               "bits that are no types: 0x%x 0x%x", storage, arithmetic);
    case_check(run, (arithmetic & HAL_TYPES_NUMBERS & ~storage) == 0,
               "types 0x%x are computed with and cannot be stored",
               arithmetic & HAL_TYPES_NUMBERS & ~storage);
}

static void memory_statistics(case_run *run, const void *parameters)
{
    hal_memory_statistics before, during, after;
    hal_buffer *buffer = NULL;
    case_ok(run, hal_device_trim(run->device), "hal_device_trim");
    case_ok(run, hal_device_get_memory(run->device, &before), "hal_device_get_memory");
    case_ok(run, hal_buffer_create(run->device, HAL_MEMORY_DEVICE, 1 << 20, &buffer),
            "hal_buffer_create");
    case_ok(run, hal_device_get_memory(run->device, &during), "hal_device_get_memory");
    hal_buffer_release(buffer);
    case_ok(run, hal_device_trim(run->device), "hal_device_trim");
    case_ok(run, hal_device_get_memory(run->device, &after), "hal_device_get_memory");
    case_check(run, during.in_use_bytes >= before.in_use_bytes + (1 << 20),
               "%llu bytes in use after taking 1 MiB, %llu before",
               (unsigned long long)during.in_use_bytes, (unsigned long long)before.in_use_bytes);
    case_check(run, after.in_use_bytes == before.in_use_bytes,
               "%llu bytes in use after the release, %llu before",
               (unsigned long long)after.in_use_bytes, (unsigned long long)before.in_use_bytes);
    case_check(run, after.pooled_bytes == 0, "%llu bytes in the pool after a trim",
               (unsigned long long)after.pooled_bytes);
    case_check(run, during.total_bytes > 0 && during.free_bytes <= during.total_bytes,
               "%llu bytes free of %llu", (unsigned long long)during.free_bytes,
               (unsigned long long)during.total_bytes);
}

/* Memory that is in use and was written is not free. */
static void memory_is_taken(case_run *run, const void *parameters)
{
    enum { PART = 4 };
    const uint64_t bytes = UINT64_C(64) << 20;
    hal_memory_statistics memory = {0};
    if (run->info->max_allocation < bytes) {
        case_unsupported(run, "allocations have at most %llu bytes",
                         (unsigned long long)run->info->max_allocation);
    }
    hal_buffer *buffer = case_buffer(run, run->device, HAL_MEMORY_DEVICE, bytes);
    const hal_range whole = {buffer, 0, HAL_WHOLE};
    case_ok(run, hal_queue_fill(run->queue, whole, 1), "hal_queue_fill");
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    case_ok(run, hal_device_get_memory(run->device, &memory), "hal_device_get_memory");
    case_check(run, memory.free_bytes + bytes <= memory.total_bytes,
               "%llu of %llu bytes are said to be free while %llu are in use",
               (unsigned long long)memory.free_bytes, (unsigned long long)memory.total_bytes,
               (unsigned long long)memory.in_use_bytes);
    const bool is_known = run->info->memory_bytes != UINT64_MAX;
    case_check(run, !is_known || memory.total_bytes >= run->info->memory_bytes / PART,
               "memory_info has %llu bytes in all, and the record %llu",
               (unsigned long long)memory.total_bytes, (unsigned long long)run->info->memory_bytes);
}

static void null_arguments(case_run *run, const void *parameters)
{
    hal_memory_statistics statistics;
    case_check(run, !hal_device_retain(NULL) && !hal_device_get_info(NULL),
               "a null device gives something");
    hal_device_release(NULL);
    hal_registry_report_destroy(NULL);
    case_expect(run, hal_device_get_memory(NULL, &statistics), HAL_ERROR_INVALID_ARGUMENT, NULL,
                "memory of a null device");
    case_expect(run, hal_device_get_memory(run->device, NULL), HAL_ERROR_INVALID_ARGUMENT, NULL,
                "memory to a null result");
    case_expect(run, hal_device_trim(NULL), HAL_ERROR_INVALID_ARGUMENT, NULL,
                "trim of a null device");
    case_expect(run, hal_registry_report_create(NULL), HAL_ERROR_INVALID_ARGUMENT, NULL,
                "inspect to a null result");
}

static void release_report(void *report)
{
    hal_registry_report_destroy(report);
}

static void registry_report(case_run *run, const void *parameters)
{
    hal_registry_report *report = NULL;
    case_ok(run, hal_registry_report_create(&report), "hal_registry_report_create");
    case_own(run, release_report, report);
    bool found = false;
    for (uint32_t i = 0; i < report->plugin_count; i++) {
        const hal_plugin_report *plugin = &report->plugins[i];
        found = found || (plugin->status == HAL_OK &&
                          strcmp(plugin->name, hal_device_get_plugin_name(run->device)) == 0 &&
                          plugin->device_count > hal_device_get_index(run->device));
        case_check(run, plugin->status == HAL_OK || plugin->message[0] != 0,
                   "%s failed without a reason", plugin->path);
        case_check(run, plugin->path[0] != 0, "a plugin without a path");
    }
    case_check(run, found, "the device under test is not in the report");
    case_check(run, report->path_count > 0 && report->choice[0] != 0 && report->reasoning[0] != 0,
               "no paths, choice or reasoning");
}

static void status_names(case_run *run, const void *parameters)
{
    char version[64];
    for (hal_status status = 0; status < HAL_STATUS_COUNT; status++) {
        case_check(run,
                   strncmp(hal_status_name(status), "HAL_", 4) == 0 &&
                       !strchr(hal_status_name(status), '?'),
                   "status %d is called %s", status, hal_status_name(status));
    }
    case_check(run, strcmp(hal_status_name(HAL_STATUS_COUNT), "HAL_STATUS_?") == 0,
               "an unknown status is called %s", hal_status_name(HAL_STATUS_COUNT));
    snprintf(version, sizeof version, "%d.%d.%d", HAL_VERSION_MAJOR, HAL_VERSION_MINOR,
             HAL_VERSION_PATCH);
    case_check(run, strcmp(hal_version(), version) == 0, "version %s instead of %s", hal_version(),
               version);
}

void cases_hal_device(case_list *list)
{
    case_add(list, open_again, NULL, 0, "device/open_again");
    case_add(list, open_absent, NULL, 0, "device/open_absent");
    case_add(list, open_malformed, NULL, 0, "device/open_malformed");
    case_add(list, open_list, NULL, 0, "device/open_list");
    case_add(list, open_by_name, NULL, 0, "device/open_by_name_and_id");
    case_add(list, info_limits, NULL, 0, "device/info_limits");
    case_add(list, info_types, NULL, 0, "device/info_types");
    case_add(list, memory_statistics, NULL, 0, "device/memory");
    case_add(list, memory_is_taken, NULL, 0, "device/taken_memory");
    case_add(list, null_arguments, NULL, 0, "device/nulls");
    case_add(list, registry_report, NULL, 0, "device/registry");
    case_add(list, status_names, NULL, 0, "device/status_names_and_version");
}
