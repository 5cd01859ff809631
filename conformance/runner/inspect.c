/* inspect.c: a first look at the device under test. */
#include "runner/inspect.h"

#include <stdlib.h>
#include <string.h>

#include "case/child.h"

/* The child's messages: `found`, then the device, then the same with the plugin's report. */
typedef struct inspection {
    const char *selection;
    const char *plugin_path;
} inspection;

typedef struct finding {
    bool opened;
    char message[1024];
    report_device device;
} finding;

static bool same_file(const char *path, const char *other)
{
    char *one = realpath(path, NULL);
    char *two = realpath(other, NULL);
    const bool same = one && two && strcmp(one, two) == 0;
    free(one);
    free(two);
    return same;
}

static bool first_of_file(const char *path, char *selection, size_t bytes, char *message,
                          size_t message_bytes)
{
    hal_registry_report *report = NULL;
    if (hal_registry_report_create(&report) != HAL_OK) {
        snprintf(message, message_bytes, "%s", hal_status_message());
        return false;
    }
    bool found = false;
    snprintf(message, message_bytes, "%s was not looked at; is it a file?", path);
    for (uint32_t i = 0; i < report->plugin_count && !found; i++) {
        const hal_plugin_report *plugin = &report->plugins[i];
        if (!same_file(plugin->path, path)) {
            continue;
        }
        found = plugin->status == HAL_OK && plugin->device_count > 0;
        snprintf(selection, bytes, "%s:0", plugin->name);
        const bool has_path = strstr(plugin->message, plugin->path) != NULL;
        snprintf(message, message_bytes, "%s%s%s", has_path ? "" : path, has_path ? "" : ": ",
                 plugin->message);
    }
    hal_registry_report_destroy(report);
    return found;
}

static void copy_text(char *target, size_t bytes, const char *text)
{
    snprintf(target, bytes, "%s", !text ? "" : text);
}

static bool open_and_describe(const char *selection, finding *found)
{
    hal_device *device = NULL;
    if (hal_device_open(selection, &device) != HAL_OK) {
        copy_text(found->message, sizeof found->message, hal_status_message());
        return false;
    }
    report_device *report = &found->device;
    report->info = *hal_device_get_info(device);
    report->index = hal_device_get_index(device);
    copy_text(report->plugin, sizeof report->plugin, hal_device_get_plugin_name(device));
    copy_text(report->hal_version, sizeof report->hal_version, hal_version());
    snprintf(report->selection, sizeof report->selection, "%s:%u", report->plugin, report->index);
    hal_device_release(device);
    return true;
}

static void add_plugin_report(report_device *device)
{
    hal_registry_report *report = NULL;
    if (hal_registry_report_create(&report) != HAL_OK) {
        return;
    }
    for (uint32_t i = 0; i < report->plugin_count; i++) {
        const hal_plugin_report *plugin = &report->plugins[i];
        if (plugin->status == HAL_OK && strcmp(plugin->name, device->plugin) == 0) {
            copy_text(device->plugin_version, sizeof device->plugin_version, plugin->version);
            copy_text(device->plugin_path, sizeof device->plugin_path, plugin->path);
            break;
        }
    }
    hal_registry_report_destroy(report);
}

static void look(void *user, int fd)
{
    const inspection *wanted = user;
    char selection[128];
    finding *found = calloc(1, sizeof *found);
    if (!found) {
        return;
    }
    const char *chosen = wanted->selection;
    bool well = true;
    if (!chosen && wanted->plugin_path) {
        well = first_of_file(wanted->plugin_path, selection, sizeof selection, found->message,
                             sizeof found->message);
        chosen = selection;
    }
    found->opened = well && open_and_describe(chosen, found);
    child_write(fd, found, sizeof *found);
    if (found->opened) {
        add_plugin_report(&found->device);
        child_write(fd, found, sizeof *found);
    }
    free(found);
}

bool inspect_device(const char *selection, const char *plugin_path, unsigned seconds,
                    report_device *device, char *message, size_t bytes)
{
    inspection wanted = {selection, plugin_path};
    const char *what = selection != NULL     ? selection
                       : plugin_path != NULL ? plugin_path
                                             : "the default device";
    child looker;
    if (!child_start(&looker, look, &wanted)) {
        snprintf(message, bytes, "cannot start a process");
        return false;
    }
    finding *found = calloc(1, sizeof *found);
    finding *second = calloc(1, sizeof *second);
    const double began = child_now();
    const bool answered =
        found && second && child_read_within(looker.fd, seconds, found, sizeof *found);
    const bool late = child_now() - began >= seconds;
    if (answered && found->opened &&
        child_read_within(looker.fd, seconds, second, sizeof *second)) {
        *found = *second;
    }
    char end[192];
    child_finish(&looker, late ? 0.0 : (double)seconds, end, sizeof end);
    const bool opened = answered && found->opened;
    if (opened) {
        *device = found->device;
    } else if (answered) {
        snprintf(message, bytes, "%s", found->message);
    } else if (late) {
        snprintf(message, bytes,
                 "opening %s: no answer for %u seconds; the plugin hangs while it is loaded, "
                 "enumerates or opens",
                 what, seconds);
    } else {
        snprintf(message, bytes, "opening %s: the process %s", what,
                 end[0] == 0 ? "ended early with status 0: something called exit" : end);
    }
    free(found);
    free(second);
    return opened;
}
