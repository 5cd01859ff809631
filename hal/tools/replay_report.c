/* The report of a replay, see replay_report.h. */
#include "replay_report.h"

#include <math.h>
#include <string.h>

enum { MAX_SHOWN = 20 };

/* Escapes all but printable ASCII: the text is not trusted. */
static void json_text(FILE *json, const char *text, uint64_t length)
{
    fputc('"', json);
    for (uint64_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\') {
            fprintf(json, "\\%c", c);
        } else if (c < 0x20 || c >= 0x7f) {
            fprintf(json, "\\u%04x", c);
        } else {
            fputc(c, json);
        }
    }
    fputc('"', json);
}

static void json_bytes(FILE *json, const char *key, replay_bytes bytes)
{
    fprintf(json, ", \"%s\": ", key);
    json_text(json, (const char *)bytes.data, bytes.count);
}

static void json_next(replay_report *report, const char *kind, uint64_t batch)
{
    const bool first = report->different + report->not_run + report->not_ended == 1;
    fprintf(report->json, "%s\n  {\"kind\": \"%s\", \"batch\": %llu", first ? "" : ",", kind,
            (unsigned long long)batch);
}

/* Infinities and NaN are strings: JSON has no numbers for them. */
static void json_number(FILE *json, const char *key, double value)
{
    fprintf(json, isfinite(value) ? ", \"%s\": %.17g" : ", \"%s\": \"%g\"", key, value);
}

static void json_reason(replay_report *report, const char *kind, uint64_t batch, const char *reason)
{
    if (report->json) {
        json_next(report, kind, batch);
        fprintf(report->json, ", \"reason\": ");
        json_text(report->json, reason, strlen(reason));
        fprintf(report->json, "}");
    }
}

void replay_report_begin(replay_report *report, const char *path, const replay_device *recorded,
                         const hal_device *device)
{
    const hal_device_info *info = hal_device_get_info(device);
    printf("recorded on %.*s:%u  %.*s\n", (int)recorded->plugin.count,
           (const char *)recorded->plugin.data, recorded->index, (int)recorded->name.count,
           (const char *)recorded->name.data);
    printf("replayed on %s:%u  %s\n", hal_device_get_plugin_name(device),
           hal_device_get_index(device), info->name);
    if (!report->json) {
        return;
    }
    fprintf(report->json, "{\"file\": ");
    json_text(report->json, path, strlen(path));
    fprintf(report->json, ",\n \"recorded\": {\"index\": %u", recorded->index);
    json_bytes(report->json, "plugin", recorded->plugin);
    json_bytes(report->json, "name", recorded->name);
    json_bytes(report->json, "driver", recorded->driver);
    json_bytes(report->json, "architecture", recorded->architecture);
    json_bytes(report->json, "version", recorded->version);
    fprintf(report->json, "},\n \"replayed\": {\"plugin\": \"%s\", \"index\": %u, \"name\": ",
            hal_device_get_plugin_name(device), hal_device_get_index(device));
    json_text(report->json, info->name, strlen(info->name));
    fprintf(report->json, ", \"driver\": ");
    json_text(report->json, info->driver, strlen(info->driver));
    fprintf(report->json, "},\n \"findings\": [");
}

void replay_report_range(replay_report *report, const replay_place *place,
                         const replay_comparison *c)
{
    report->ranges++;
    report->identical += c->unequal == 0;
    report->within += c->unequal > 0 && c->beyond == 0;
    if (c->beyond == 0) {
        return;
    }
    report->different++;
    const char *type = place->type == HAL_TYPE_NONE ? "bytes" : hal_type_name(place->type);
    if (report->shown++ < MAX_SHOWN) {
        printf("batch %llu, command %u, %s: %s (memory %llu from byte %llu): %llu of %llu %s differ"
               "\n    worst: element %llu is %.17g here, %.17g was recorded; largest distances: "
               "%.3g, relative %.3g, %llu steps\n",
               (unsigned long long)place->batch, place->command, place->kernel, place->binding,
               (unsigned long long)place->memory, (unsigned long long)place->begin,
               (unsigned long long)c->beyond, (unsigned long long)c->elements, type,
               (unsigned long long)c->index, c->here, c->recorded, c->absolute, c->relative,
               (unsigned long long)c->ulps);
    }
    if (!report->json) {
        return;
    }
    json_next(report, "different", place->batch);
    fprintf(report->json, ", \"command\": %u, \"kernel\": ", place->command);
    json_text(report->json, place->kernel, strlen(place->kernel));
    fprintf(report->json, ", \"binding\": ");
    json_text(report->json, place->binding, strlen(place->binding));
    fprintf(report->json,
            ", \"memory\": %llu, \"offset\": %llu, \"type\": \"%s\", \"elements\": %llu, "
            "\"different\": %llu, \"index\": %llu",
            (unsigned long long)place->memory, (unsigned long long)place->begin, type,
            (unsigned long long)c->elements, (unsigned long long)c->beyond,
            (unsigned long long)c->index);
    json_number(report->json, "here", c->here);
    json_number(report->json, "recorded", c->recorded);
    json_number(report->json, "absolute", c->absolute);
    json_number(report->json, "relative", c->relative);
    fprintf(report->json, ", \"ulps\": %llu}", (unsigned long long)c->ulps);
}

void replay_report_not_run(replay_report *report, uint64_t batch, const char *reason)
{
    report->not_run++;
    if (report->shown++ < MAX_SHOWN) {
        printf("batch %llu was not run: %s\n", (unsigned long long)batch, reason);
    }
    json_reason(report, "not_run", batch, reason);
}

void replay_report_failed(replay_report *report, uint64_t batch, const char *reason)
{
    report->not_ended++;
    printf("batch %llu %s; no results to compare\n", (unsigned long long)batch, reason);
    json_reason(report, "failed_when_recorded", batch, reason);
}

void replay_report_end(replay_report *report)
{
    if (report->shown > MAX_SHOWN) {
        printf("... and %llu more\n", (unsigned long long)(report->shown - MAX_SHOWN));
    }
    printf("batches: %llu, commands: %llu, ranges compared: %llu, identical: %llu, "
           "within the bound: %llu, different: %llu; batches not run: %llu\n",
           (unsigned long long)report->batches, (unsigned long long)report->commands,
           (unsigned long long)report->ranges, (unsigned long long)report->identical,
           (unsigned long long)report->within, (unsigned long long)report->different,
           (unsigned long long)report->not_run);
    if (report->json) {
        fprintf(report->json,
                "],\n \"batches\": %llu, \"commands\": %llu, \"ranges\": %llu, "
                "\"identical\": %llu, \"within\": %llu, \"different\": %llu, \"not_run\": %llu}\n",
                (unsigned long long)report->batches, (unsigned long long)report->commands,
                (unsigned long long)report->ranges, (unsigned long long)report->identical,
                (unsigned long long)report->within, (unsigned long long)report->different,
                (unsigned long long)report->not_run);
    }
}
