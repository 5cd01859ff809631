/* hal-info: lists the devices of this machine with their features, limits and memory, the reasons
 * for the default choice, and plugins that did not load. With --json for programs. */
#include "command_line.h"
#include "json.h"
#include "plugin_probe.h"

#include <hal/hal.h>
#include <hal/variables.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A bit of a set and its name. */
typedef struct word {
    uint32_t bit;
    const char *text;
} word;

/* A number of hal_device_info with its label in text and its key in JSON. */
typedef struct limit {
    const char *label;
    const char *key;
    uint64_t value;
} limit;

enum { LIMITS = 14 };

#define TYPE_ROW(NAME, number, since, name, ...) {HAL_TYPE_BIT(number), #name},
static const word type_words[] = {HAL_TYPE_TABLE(TYPE_ROW){0, NULL}};
#undef TYPE_ROW
static const word exactness_words[] = {{HAL_EXACT_FMA, "fma"},
                                       {HAL_EXACT_DIVIDE, "divide"},
                                       {HAL_EXACT_SQRT, "sqrt"},
                                       {HAL_EXACT_DENORMALS, "denormals"},
                                       {0, NULL}};
static const word feature_words[] = {{HAL_FEATURE_ASYNC_COPY, "async_copy"},
                                     {HAL_FEATURE_ATOMIC_64, "atomic_64"},
                                     {HAL_FEATURE_MAP_DEVICE, "map_device"},
                                     {HAL_FEATURE_TIMESTAMPS, "timestamps"},
                                     {HAL_FEATURE_FAST_MATH, "fast_math"},
                                     {HAL_FEATURE_ZERO_COPY, "zero_copy"},
                                     {HAL_FEATURE_INDIRECT, "indirect"},
                                     {HAL_FEATURE_FILL_PATTERNS, "fill_patterns"},
                                     {HAL_FEATURE_COPY_ROWS, "copy_rows"},
                                     {HAL_FEATURE_DRIVER_COMPILES, "driver_compiles"},
                                     {HAL_FEATURE_VIRTUAL_MEMORY, "virtual_memory"},
                                     {HAL_FEATURE_INTEGER_PRODUCTS, "integer_products"},
                                     {HAL_FEATURE_GROUPED_PRODUCTS, "grouped_products"},
                                     {0, NULL}};
static const word handle_words[] = {{HAL_HANDLE_BIT(HAL_HANDLE_HOST), "host"},
                                    {HAL_HANDLE_BIT(HAL_HANDLE_NATIVE), "native"},
                                    {HAL_HANDLE_BIT(HAL_HANDLE_OPAQUE_FD), "opaque_fd"},
                                    {HAL_HANDLE_BIT(HAL_HANDLE_DMA_BUF), "dma_buf"},
                                    {0, NULL}};

typedef struct info_options {
    bool json;
    bool peaks;
} info_options;

static info_options options;

static const command_option rows[] = {
    {.name = "json",
     .help = "the same as JSON",
     .kind = COMMAND_FLAG,
     .offset = offsetof(info_options, json)},
    {.name = "peaks",
     .help = "measures what each device reaches at most, a few seconds for each, and keeps it",
     .kind = COMMAND_FLAG,
     .offset = offsetof(info_options, peaks)},
};

static void print_variables(void)
{
    printf("Variables of the environment, in every program\n");
#define PRINT_ROW(name, values, reader, help) command_print_row(stdout, #name "=" values, help, 26);
    HAL_VARIABLES(PRINT_ROW)
#undef PRINT_ROW
}

static const command_line line = {
    .program = "hal-info",
    .usage = "[--json] [--peaks]",
    .about =
        "Lists the devices that Halyard finds, what each can do, which one is the default choice,\n"
        "and why others are not there.\n",
    .exit_status = "Exit status: 0 the plugins are listed, 1 they cannot be, or HAL_BACKEND\n"
                   "names no usable device, 2 wrong usage.\n",
    .options = rows,
    .option_count = sizeof rows / sizeof *rows,
    .more = print_variables,
};

static const char *kind_name(uint32_t kind)
{
    static const char *const names[] = {"unknown", "discrete", "integrated",
                                        "virtual", "software", "cpu"};
    return names[kind <= HAL_DEVICE_CPU ? kind : 0];
}

static void limits_get(const hal_device_info *info, limit limits[LIMITS])
{
    const limit all[LIMITS] = {
        {"compute units", "compute_units", info->compute_units},
        {"subgroup width", "subgroup_width", info->subgroup_width},
        {"work-items a group", "max_group_items", info->max_group_items},
        {"preferred group", "preferred_group", info->preferred_group},
        {"shared memory bytes", "shared_bytes", info->shared_bytes},
        {"bindings", "max_bindings", info->max_bindings},
        {"binding alignment", "binding_alignment", info->binding_alignment},
        {"vector bytes", "max_vector_bytes", info->max_vector_bytes},
        {"item vector bytes", "item_vector_bytes", info->item_vector_bytes},
        {"item register bytes", "item_register_bytes", info->item_register_bytes},
        {"loop iterations", "max_loop_iterations", info->max_loop_iterations},
        {"queues at once", "max_queues", info->max_queues},
        {"own f32 functions", "math_f32", (uint64_t)__builtin_popcount(info->math_f32)},
        {"own f64 functions", "math_f64", (uint64_t)__builtin_popcount(info->math_f64)},
    };
    memcpy(limits, all, sizeof all);
}

static void json_words(const char *key, uint32_t set, const word *words)
{
    printf(", \"%s\": [", key);
    const char *comma = "";
    for (; words->text; words++) {
        if (set & words->bit) {
            printf("%s\"%s\"", comma, words->text);
            comma = ", ";
        }
    }
    printf("]");
}

/* See hal_device_get_quirk. */
enum { MAX_QUIRKS = 32 };
typedef struct known_quirk {
    char name[64], reason[256];
    bool is_active;
} known_quirk;

/* What is known of a device that was opened only for this. */
typedef struct opened_device {
    hal_status status; /* the thread's message tells more of a failure */
    hal_device_info info;
    hal_memory_statistics memory;
    char quirks[2048]; /* lines, see hal_device_get_quirks */
    known_quirk known[MAX_QUIRKS];
    uint32_t known_count;
    char backend[256]; /* see hal_comm_get_backend */
    hal_external_info external;
    hal_device_peaks peaks;
    hal_status peaks_status; /* NOT_FOUND: none are kept */
    char peaks_message[256];
} opened_device;

/* A measured value with its label in text, its key in JSON, and the units of both. */
typedef struct peak {
    const char *label, *key, *unit;
    double value, unit_value;
} peak;

enum { PEAKS = 12 };

static void peaks_get(const hal_device_peaks *p, peak peaks[PEAKS])
{
    const peak all[PEAKS] = {
        {"peak copy", "copy_bytes_per_second", "GB/s", p->copy, 1e9},
        {"peak upload", "upload_bytes_per_second", "GB/s", p->upload, 1e9},
        {"peak download", "download_bytes_per_second", "GB/s", p->download, 1e9},
        {"peak f32", "add_f32_per_second", "TFLOP/s", p->add_f32, 1e12},
        {"peak f64", "add_f64_per_second", "TFLOP/s", p->add_f64, 1e12},
        {"peak matrix f16", "matrix_f16_per_second", "TFLOP/s", p->matrix_f16, 1e12},
        {"peak matrix bf16", "matrix_bf16_per_second", "TFLOP/s", p->matrix_bf16, 1e12},
        {"peak matrix f32", "matrix_f32_per_second", "TFLOP/s", p->matrix_f32, 1e12},
        {"peak matrix f64", "matrix_f64_per_second", "TFLOP/s", p->matrix_f64, 1e12},
        {"least launch", "launch_ns", "us", p->launch_ns, 1e3},
        {"least wait", "wait_ns", "us", p->wait_ns, 1e3},
        {"least transfer", "transfer_ns", "us", p->transfer_ns, 1e3},
    };
    memcpy(peaks, all, sizeof all);
}

static void quirks_look(hal_device *device, opened_device *seen)
{
    hal_quirk quirk;
    for (uint32_t i = 0; i < MAX_QUIRKS && hal_device_get_quirk(device, i, &quirk) == HAL_OK; i++) {
        known_quirk *known = &seen->known[seen->known_count++];
        snprintf(known->name, sizeof known->name, "%s", quirk.name);
        snprintf(known->reason, sizeof known->reason, "%s", quirk.reason);
        known->is_active = quirk.is_active != 0;
    }
}

static opened_device device_look(const hal_plugin_report *plugin, uint32_t index)
{
    char selection[96];
    hal_device *device = NULL;
    opened_device seen = {.info = plugin->devices[index]};
    snprintf(selection, sizeof selection, "%s:%u", plugin->name, index);
    seen.status = hal_device_open(selection, &device);
    if (seen.status == HAL_OK) {
        seen.info = *hal_device_get_info(device);
        snprintf(seen.quirks, sizeof seen.quirks, "%s", hal_device_get_quirks(device));
        quirks_look(device, &seen);
        hal_comm_get_backend(device, sizeof seen.backend, seen.backend);
        hal_device_get_external(device, &seen.external);
        seen.status = hal_device_get_memory(device, &seen.memory);
    }
    if (seen.status == HAL_OK) {
        seen.peaks.size = sizeof seen.peaks;
        seen.peaks_status = hal_device_get_peaks(device, options.peaks, &seen.peaks);
        snprintf(seen.peaks_message, sizeof seen.peaks_message, "%s", hal_status_message());
    }
    hal_device_release(device);
    return seen;
}

/* Copies the line that begins at *rest, and moves on. Returns 0 at the end. */
static bool line_next(const char **rest, char *text, size_t bytes)
{
    const size_t length = strcspn(*rest, "\n");
    snprintf(text, bytes, "%.*s", (int)length, *rest);
    const bool is_line = **rest != 0;
    *rest += length + ((*rest)[length] == '\n');
    return is_line;
}

static void json_peaks(const opened_device *seen)
{
    peak peaks[PEAKS];
    peaks_get(&seen->peaks, peaks);
    if (seen->status != HAL_OK || seen->peaks_status != HAL_OK) {
        printf("null");
        return;
    }
    for (int i = 0; i < PEAKS; i++) {
        printf("%s\"%s\": %.4g", i ? ", " : "{", peaks[i].key, peaks[i].value);
    }
    printf("}");
}

static void json_quirks(const opened_device *seen)
{
    printf("[");
    for (uint32_t i = 0; i < seen->known_count; i++) {
        printf("%s{\"name\": ", i > 0 ? ", " : "");
        json_write_text(stdout, seen->known[i].name);
        printf(", \"active\": %s, \"reason\": ", seen->known[i].is_active ? "true" : "false");
        json_write_text(stdout, seen->known[i].reason);
        printf("}");
    }
    printf("]");
}

static void json_device(const hal_plugin_report *plugin, uint32_t index)
{
    const opened_device seen = device_look(plugin, index);
    const hal_device_info *info = &seen.info;
    printf("{\"device\": \"%s:%u\", \"name\": ", plugin->name, index);
    json_write_text(stdout, info->name);
    printf(", \"kind\": \"%s\", \"id\": ", kind_name(info->kind));
    json_write_text(stdout, info->id);
    printf(", \"driver\": ");
    json_write_text(stdout, info->driver);
    printf(", \"architecture\": ");
    json_write_text(stdout, info->architecture);
    printf(",\n       \"memory_bytes\": %llu, \"max_allocation\": %llu, \"max_binding\": %llu",
           (unsigned long long)info->memory_bytes, (unsigned long long)info->max_allocation,
           (unsigned long long)info->max_binding);
    limit limits[LIMITS];
    limits_get(info, limits);
    for (int i = 0; i < LIMITS; i++) {
        printf(", \"%s\": %llu", limits[i].key, (unsigned long long)limits[i].value);
    }
    printf(",\n       \"max_group_size\": [%u, %u, %u], \"max_grid\": [%u, %u, %u]",
           info->max_group_size[0], info->max_group_size[1], info->max_group_size[2],
           info->max_grid[0], info->max_grid[1], info->max_grid[2]);
    json_words("storage_types", info->storage_types, type_words);
    json_words("arithmetic_types", info->arithmetic_types, type_words);
    json_words("matrix_types", info->matrix_types, type_words);
    json_words("wrong_constants", info->wrong_constants, type_words);
    json_words("exactness", info->exactness, exactness_words);
    json_words("features", info->features, feature_words);
    json_words("imports", seen.external.import_kinds, handle_words);
    json_words("exports", seen.external.export_kinds, handle_words);
    json_words("fence_imports", seen.external.fence_imports, handle_words);
    json_words("fence_exports", seen.external.fence_exports, handle_words);
    char quirk[512];
    const char *rest = seen.quirks, *comma = "";
    printf(",\n       \"driver_quirks\": [");
    for (; line_next(&rest, quirk, sizeof quirk); comma = ", ") {
        printf("%s", comma);
        json_write_text(stdout, quirk);
    }
    printf("],\n       \"plugin_quirks\": ");
    json_quirks(&seen);
    printf(",\n       \"peaks\": ");
    json_peaks(&seen);
    printf(",\n       \"collectives\": ");
    json_write_text(stdout, seen.backend);
    const hal_memory_statistics now = seen.memory;
    if (seen.status == HAL_OK) {
        printf(",\n       \"memory\": {\"total_bytes\": %llu, \"free_bytes\": %llu, "
               "\"in_use_bytes\": %llu, \"pooled_bytes\": %llu, \"allocation_count\": %llu, "
               "\"reuse_count\": %llu}",
               (unsigned long long)now.total_bytes, (unsigned long long)now.free_bytes,
               (unsigned long long)now.in_use_bytes, (unsigned long long)now.pooled_bytes,
               (unsigned long long)now.allocation_count, (unsigned long long)now.reuse_count);
    } else {
        printf(",\n       \"memory\": null, \"open_error\": ");
        json_write_text(stdout, hal_status_message());
    }
    printf("}");
}

static void json_plugin(const hal_plugin_report *plugin)
{
    printf("{\"path\": ");
    json_write_text(stdout, plugin->path);
    printf(", \"name\": ");
    json_write_text(stdout, plugin->name);
    printf(", \"version\": ");
    json_write_text(stdout, plugin->version);
    printf(", \"extensions\": ");
    json_write_text(stdout, plugin->extensions);
    printf(", \"status\": \"%s\", \"message\": ", hal_status_name(plugin->status));
    json_write_text(stdout, plugin->message);
    printf(", \"devices\": [");
    for (uint32_t d = 0; d < plugin->device_count; d++) {
        printf("%s\n      ", d ? "," : "");
        json_device(plugin, d);
    }
    printf("]}");
}

static void print_json(const hal_registry_report *report)
{
    printf("{\n  \"version\": \"%s\",\n  \"choice\": ", hal_version());
    json_write_text(stdout, report->choice);
    printf(",\n  \"reasoning\": [");
    const char *reason = report->reasoning;
    for (int first = 1; *reason; first = 0) {
        const size_t length = strcspn(reason, "\n");
        char text[1024];
        snprintf(text, sizeof text, "%.*s", (int)length, reason);
        printf("%s\n    ", first ? "" : ",");
        json_write_text(stdout, text);
        reason += length + (reason[length] == '\n');
    }
    printf("\n  ],\n  \"searched\": [");
    for (uint32_t i = 0; i < report->path_count; i++) {
        printf("%s\n    ", i ? "," : "");
        json_write_text(stdout, report->paths[i]);
    }
    printf("\n  ],\n  \"plugins\": [");
    for (uint32_t i = 0; i < report->plugin_count; i++) {
        printf("%s\n    ", i ? "," : "");
        json_plugin(&report->plugins[i]);
    }
    printf("\n  ]\n}\n");
}

static void print_bytes(const char *label, uint64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    int unit = 0;
    while (value >= 1024.0 && unit < 6) {
        value /= 1024.0;
        unit++;
    }
    printf(unit ? "  %-20s %.1f %s\n" : "  %-20s %.0f %s\n", label, value, units[unit]);
}

static void print_memory(const opened_device *seen)
{
    const hal_memory_statistics now = seen->memory;
    if (seen->status != HAL_OK) {
        printf("  %-20s cannot be opened: %s\n", "memory", hal_status_message());
        return;
    }
    print_bytes("memory", now.total_bytes);
    print_bytes("memory free", now.free_bytes);
    printf("  %-20s %llu bytes in use, %llu pooled, %llu allocations, %llu reused\n", "pool",
           (unsigned long long)now.in_use_bytes, (unsigned long long)now.pooled_bytes,
           (unsigned long long)now.allocation_count, (unsigned long long)now.reuse_count);
}

static void print_words(const char *label, uint32_t set, const word *words)
{
    printf("  %-20s", label);
    if (!set) {
        printf(" none");
    }
    for (; words->text; words++) {
        if (set & words->bit) {
            printf(" %s", words->text);
        }
    }
    printf("\n");
}

/* Those that the device has. */
static void print_peaks(const opened_device *seen)
{
    peak peaks[PEAKS];
    peaks_get(&seen->peaks, peaks);
    if (seen->status == HAL_OK && seen->peaks_status != HAL_OK &&
        (options.peaks || seen->peaks_status != HAL_ERROR_NOT_FOUND)) {
        printf("  %-20s cannot be measured: %s\n", "peaks", seen->peaks_message);
    }
    for (int i = 0; seen->status == HAL_OK && seen->peaks_status == HAL_OK && i < PEAKS; i++) {
        if (peaks[i].value > 0) {
            printf("  %-20s %.4g %s\n", peaks[i].label, peaks[i].value / peaks[i].unit_value,
                   peaks[i].unit);
        }
    }
}

static void print_device(const hal_plugin_report *plugin, uint32_t index)
{
    const opened_device seen = device_look(plugin, index);
    const hal_device_info *info = &seen.info;
    printf("%s:%u  %s\n", plugin->name, index, info->name);
    printf("  %-20s %s\n", "kind", kind_name(info->kind));
    printf("  %-20s %s\n", "id", info->id);
    printf("  %-20s %s\n", "driver", info->driver);
    printf("  %-20s %s\n", "architecture", info->architecture);
    print_memory(&seen);
    print_bytes("largest allocation", info->max_allocation);
    print_bytes("largest binding", info->max_binding);
    limit limits[LIMITS];
    limits_get(info, limits);
    for (int i = 0; i < LIMITS; i++) {
        printf("  %-20s %llu\n", limits[i].label, (unsigned long long)limits[i].value);
    }
    printf("  %-20s %u x %u x %u\n", "largest group", info->max_group_size[0],
           info->max_group_size[1], info->max_group_size[2]);
    printf("  %-20s %u x %u x %u\n", "largest grid", info->max_grid[0], info->max_grid[1],
           info->max_grid[2]);
    print_words("storage types", info->storage_types, type_words);
    print_words("arithmetic types", info->arithmetic_types, type_words);
    print_words("matrix types", info->matrix_types, type_words);
    print_words("hidden constants", info->wrong_constants, type_words);
    print_words("exactness", info->exactness, exactness_words);
    print_words("features", info->features, feature_words);
    print_words("imports", seen.external.import_kinds, handle_words);
    print_words("exports", seen.external.export_kinds, handle_words);
    print_words("fence imports", seen.external.fence_imports, handle_words);
    print_words("fence exports", seen.external.fence_exports, handle_words);
    printf("  %-20s %s\n", "collectives", seen.backend);
    print_peaks(&seen);
    char quirk[512];
    for (const char *rest = seen.quirks; line_next(&rest, quirk, sizeof quirk);) {
        printf("  %-20s %s\n", "driver quirk", quirk);
    }
    for (uint32_t i = 0; i < seen.known_count; i++) {
        printf("  %-20s %s%s: %s\n", "plugin quirk", seen.known[i].name,
               seen.known[i].is_active ? "" : " (off)", seen.known[i].reason);
    }
    printf("\n");
}

static void print_text(const hal_registry_report *report)
{
    const char *backend = getenv("HAL_BACKEND");
    if (backend && backend[0] && !report->choice[0]) {
        printf("HAL_BACKEND=%s names no usable device; the reasons are below\n", backend);
    }
    printf("Halyard %s\n\n", hal_version());
    for (uint32_t i = 0; i < report->plugin_count; i++) {
        for (uint32_t d = 0; d < report->plugins[i].device_count; d++) {
            print_device(&report->plugins[i], d);
        }
    }
    printf("Choice without a selection: %s\n",
           report->choice[0] ? report->choice : "none, no device can be used");
    const char *reason = report->reasoning;
    while (*reason) {
        const size_t length = strcspn(reason, "\n");
        printf("  %.*s\n", (int)length, reason);
        reason += length + (reason[length] == '\n');
    }
    printf("\nPlugins\n");
    for (uint32_t i = 0; i < report->plugin_count; i++) {
        const hal_plugin_report *plugin = &report->plugins[i];
        printf("  %s\n", plugin->path);
        if (plugin->status == HAL_OK) {
            printf("    %s %s, %u device%s\n", plugin->name, plugin->version, plugin->device_count,
                   plugin->device_count == 1 ? "" : "s");
            printf("    extensions: %s\n", plugin->extensions[0] ? plugin->extensions : "none");
        } else {
            printf("    not usable: %s\n    %s\n", hal_status_name(plugin->status),
                   plugin->message);
        }
    }
    printf("%s\nSearched\n", report->plugin_count ? "" : "  none\n");
    for (uint32_t i = 0; i < report->path_count; i++) {
        printf("  %s\n", report->paths[i]);
    }
}

int main(int argc, char **argv)
{
    const command_result result = command_line_read(&line, argc, argv, &options);
    if (result != COMMAND_GO_ON) {
        return result == COMMAND_HELP_PRINTED ? 0 : 2;
    }
    hal_registry_report *report = NULL;
    plugin_probe(); /* without a child process plugins are trusted */
    const hal_status status = hal_registry_report_create(&report);
    if (status != HAL_OK) {
        fprintf(stderr, "hal-info: %s: %s\n", hal_status_name(status), hal_status_message());
        return 1;
    }
    if (options.json) {
        print_json(report);
    } else {
        print_text(report);
    }
    const char *backend = getenv("HAL_BACKEND");
    const bool unusable = backend && backend[0] && !report->choice[0];
    hal_registry_report_destroy(report);
    return unusable;
}
