/* The table and the JSON of hal-bench. */
#include "harness/bench.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "json.h"

static void print_rate(FILE *file, double rate)
{
    if (rate > 0.0) {
        fprintf(file, " %8.1f", rate);
    } else {
        fprintf(file, " %8s", "");
    }
}

static void processor_name(char *name, size_t bytes)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(name, bytes, "unknown");
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (colon && strncmp(line, "model name", 10) == 0) {
            snprintf(name, bytes, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    if (file) {
        fclose(file);
    }
}

/* Fields that do not apply to a case are null. */
static void write_number(FILE *file, const char *key, double number)
{
    if (number > 0.0) {
        fprintf(file, ", \"%s\": %.6g", key, number);
    } else {
        fprintf(file, ", \"%s\": null", key);
    }
}

/* A member whose value is a text, unless that is empty. */
static void write_said(FILE *file, const char *name, const char *text)
{
    if (text[0] != '\0') {
        fprintf(file, ", \"%s\": ", name);
        json_write_text(file, text);
    }
}

static void write_row(FILE *file, const bench_row *row)
{
    fprintf(file, "{\"case\": ");
    json_write_text(file, row->name);
    write_number(file, "m", (double)row->m);
    write_number(file, "n", (double)row->n);
    write_number(file, "k", (double)row->k);
    fprintf(file, ", \"type\": \"%s\"", row->type == HAL_TYPE_NONE ? "" : hal_type_name(row->type));
    write_number(file, "median_us", row->time.median_us);
    write_number(file, "min_us", row->time.min_us);
    write_number(file, "spread_us", row->time.spread_us);
    write_number(file, "first_ms", row->first_ms);
    write_number(file, "second_ms", row->second_ms);
    fprintf(file, ", \"runs\": %d, \"calls\": %d", row->time.runs, row->time.calls);
    write_number(file, "gflops", row->gflops);
    write_number(file, "gbps", row->gbps);
    fprintf(file, ", \"peers\": {");
    for (int i = 0; i < row->peer_count; i++) {
        const bench_peer *peer = &row->peers[i];
        fprintf(file, "%s\"%s\": {\"median_us\": %.6g", i == 0 ? "" : ", ", peer->name,
                peer->time.median_us);
        write_number(file, "min_us", peer->time.min_us);
        write_number(file, "spread_us", peer->time.spread_us);
        write_number(file, "gflops", peer->gflops);
        write_number(file, "gbps", peer->gbps);
        write_number(file, "ratio", peer->ratio);
        fputc('}', file);
    }
    fputc('}', file);
    for (int i = 0; i < row->candidate_count; i++) {
        const bench_candidate *candidate = &row->candidates[i];
        fprintf(file, "%s{\"config\": \"%s\", \"median_us\": %.6g, \"min_us\": %.6g, \"runs\": %d",
                i == 0 ? ", \"candidates\": [" : ", ", candidate->config, candidate->median_us,
                candidate->min_us, candidate->runs);
        write_said(file, "how", candidate->how);
        fprintf(file, "}%s", i + 1 == row->candidate_count ? "]" : "");
    }
    write_said(file, "how", row->how);
    write_said(file, "best_how", row->best_how);
    fputc('}', file);
}

static void print_heading(const bench_state *bench)
{
    const bench_options *options = &bench->options;
    printf("hal-bench %s on %s (%s), %d thread%s for all\n\n", options->suite,
           hal_device_get_plugin_name(bench->device), bench->info->name, options->threads,
           options->threads == 1 ? "" : "s");
    if (bench->load > 0.5) {
        printf("The machine was busy before (load %.1f): the figures are too low.\n\n",
               bench->load);
    }
    printf("%-46s %5s %12s %12s %8s %9s %8s  %s\n", "case", "type", "median us", "min us", "spread",
           "GFLOP/s", "GB/s", "peers");
}

static void print_row(const bench_row *row)
{
    printf("%-46s %5s %12.3f %12.3f %7.1f%%", row->name,
           row->type == HAL_TYPE_NONE ? "" : hal_type_name(row->type), row->time.median_us,
           row->time.min_us, 100.0 * row->time.spread_us / row->time.median_us);
    print_rate(stdout, row->gflops);
    print_rate(stdout, row->gbps);
    for (int p = 0; p < row->peer_count; p++) {
        const bench_peer *peer = &row->peers[p];
        if (peer->gflops > 0.0 || peer->gbps > 0.0) {
            printf("  %s %.1f: %.2f", peer->name, peer->gflops > 0.0 ? peer->gflops : peer->gbps,
                   peer->ratio);
        } else {
            printf("  %s %.3f us: %.2f", peer->name, peer->time.median_us, peer->ratio);
        }
    }
    putchar('\n');
}

void output_rows(bench_state *bench)
{
    if (bench->printed_count == 0) {
        print_heading(bench);
    }
    while (bench->printed_count < bench->row_count) {
        print_row(&bench->rows[bench->printed_count++]);
    }
    fflush(stdout);
}

void output_table(bench_state *bench)
{
    output_rows(bench);
    for (int i = 0; i < bench->note_count; i++) {
        printf("%s%s\n", i == 0 ? "\n" : "", bench->notes[i]);
    }
}

bool output_json(const bench_state *bench)
{
    const bench_options *options = &bench->options;
    struct utsname system;
    char processor[128];
    FILE *file = fopen(options->json, "w");
    if (!file) {
        fprintf(stderr, "hal-bench: cannot write %s: %s\n", options->json, strerror(errno));
        return false;
    }
    uname(&system);
    processor_name(processor, sizeof processor);
    fprintf(file, "{\n\"suite\": \"%s\",\n\"date\": \"%s\",\n\"command\": ", options->suite,
            bench->date);
    json_write_text(file, bench->command);
    fprintf(file, ",\n\"device\": {\"plugin\": \"%s\", \"name\": ",
            hal_device_get_plugin_name(bench->device));
    json_write_text(file, bench->info->name);
    fprintf(file, ", \"id\": ");
    json_write_text(file, bench->info->id);
    fprintf(file, ", \"driver\": ");
    json_write_text(file, bench->info->driver);
    fprintf(file, ", \"architecture\": ");
    json_write_text(file, bench->info->architecture);
    fprintf(file, "},\n\"host\": {\"processor\": ");
    json_write_text(file, processor);
    fprintf(file, ", \"cores\": %ld, \"threads\": %d, \"machine\": \"%s\", \"system\": ",
            sysconf(_SC_NPROCESSORS_ONLN), options->threads, system.machine);
    json_write_text(file, system.release);
    fprintf(file, ", \"load\": %.2f, \"hal_version\": \"%s\"},\n\"rows\": [", bench->load,
            hal_version());
    for (int i = 0; i < bench->row_count; i++) {
        fprintf(file, "%s\n", i == 0 ? "" : ",");
        write_row(file, &bench->rows[i]);
    }
    fprintf(file, "\n],\n\"notes\": [");
    for (int i = 0; i < bench->note_count; i++) {
        fprintf(file, "%s\n", i == 0 ? "" : ",");
        json_write_text(file, bench->notes[i]);
    }
    fprintf(file, "]\n}\n");
    if (fclose(file) != 0) {
        fprintf(stderr, "hal-bench: cannot write %s: %s\n", options->json, strerror(errno));
        return false;
    }
    return true;
}
