/* compare.c: comparison of a run with an earlier one. */
#include "report/compare.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

/* How many names of one kind are printed; failures all are. */
enum { MOST_NAMES = 20 };

typedef struct earlier_case {
    char *stem; /* the name without its seed */
    const char *status;
    double seconds;
    bool run, there; /* now; still among all cases */
} earlier_case;

struct compare_report {
    char *path;
    json_value *root;
    earlier_case *cases; /* by stem, in order */
    size_t count;
};

typedef enum difference {
    NEWLY_FAILING,
    NEWLY_PASSING,
    NEWLY_UNSUPPORTED,
    ADDED,
    SLOWER,
    DIFFERENCES
} difference;

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size = 0, capacity = 0;
    while (file && !feof(file)) {
        if (size + 1 >= capacity) {
            capacity = capacity == 0 ? 1 << 16 : 2 * capacity;
            char *more = realloc(text, capacity);
            if (!more) {
                break;
            }
            text = more;
        }
        size += fread(text + size, 1, capacity - size - 1, file);
        text[size] = 0;
        if (ferror(file)) {
            break;
        }
    }
    const bool well = file && feof(file);
    if (file) {
        fclose(file);
    }
    if (!well) {
        free(text);
        return NULL;
    }
    return text;
}

static char *stem_of(const char *name)
{
    char *stem = strdup(!name ? "" : name);
    char *seed = !stem ? NULL : strstr(stem, "seed=");
    if (seed) {
        char *rest = seed + strcspn(seed, ",)");
        seed -= seed > stem && seed[-1] == ',';
        memmove(seed, rest, strlen(rest) + 1);
    }
    return stem;
}

static int by_stem(const void *one, const void *two)
{
    return strcmp(((const earlier_case *)one)->stem, ((const earlier_case *)two)->stem);
}

static bool take_cases(compare_report *earlier)
{
    const json_value *cases = json_find(earlier->root, "cases");
    if (!cases || cases->kind != JSON_ARRAY) {
        return false;
    }
    size_t count = 0;
    for (const json_value *one = cases->first; one != NULL; one = one->next) {
        count++;
    }
    earlier->cases = calloc(count + 1, sizeof *earlier->cases);
    for (const json_value *one = cases->first; one && earlier->cases != NULL;
         one = one->next) {
        const json_value *seconds = json_find(one, "seconds");
        earlier->cases[earlier->count++] =
            (earlier_case){.stem = stem_of(json_text_of(one, "name")),
                           .status = json_text_of(one, "status"),
                           .seconds = !seconds ? 0.0 : seconds->number};
    }
    if (earlier->cases) {
        qsort(earlier->cases, earlier->count, sizeof *earlier->cases, by_stem);
    }
    return earlier->cases != NULL;
}

static void print_head(FILE *file, const compare_report *earlier, const run_report *made)
{
    const json_value *device = json_find(earlier->root, "device");
    const json_value *seed = json_find(earlier->root, "seed");
    const struct {
        const char *what, *before, *now;
    } facts[] = {
        {"device id", json_text_of(device, "id"), made->device->info.id},
        {"driver", json_text_of(device, "driver"), made->device->info.driver},
        {"plugin", json_text_of(device, "plugin"), made->device->plugin},
        {"plugin version", json_text_of(device, "plugin_version"), made->device->plugin_version},
        {"library", json_text_of(device, "hal_version"), made->device->hal_version},
    };
    fprintf(file, "\nCompared with %s, of %s %s:\n", earlier->path,
            json_text_of(device, "selection"), json_text_of(earlier->root, "began"));
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        if (strcmp(facts[i].before, facts[i].now) != 0) {
            fprintf(file, "  %s was '%s' and is '%s'\n", facts[i].what, facts[i].before,
                    facts[i].now);
        }
    }
    if (seed && (uint64_t)seed->number != made->seed) {
        fprintf(file, "  the seed was %.0f and is %" PRIu64 "\n", seed->number, made->seed);
    }
}

static earlier_case *find(const compare_report *earlier, const char *stem)
{
    const earlier_case wanted = {.stem = (char *)stem};
    return bsearch(&wanted, earlier->cases, earlier->count, sizeof wanted, by_stem);
}

/* DIFFERENCES: none that is told. */
static difference differs(const report_result *result, const earlier_case *before)
{
    if (!before) {
        return report_is_failure(result) ? NEWLY_FAILING : ADDED;
    }
    const char *status = report_status_name(result->status);
    if (strcmp(status, before->status) != 0) {
        return report_is_failure(result)            ? NEWLY_FAILING
               : result->status == CASE_PASSED      ? NEWLY_PASSING
               : result->status == CASE_UNSUPPORTED ? NEWLY_UNSUPPORTED
                                                    : DIFFERENCES;
    }
    const bool slower = before->seconds > 0.0 && result->seconds > 2.0 * before->seconds &&
                        result->seconds > before->seconds + 0.05;
    return result->status == CASE_PASSED && slower ? SLOWER : DIFFERENCES;
}

static void print_case(FILE *file, const report_result *result, const earlier_case *before,
                       difference kind)
{
    fprintf(file, "  %s", result->entry->name);
    switch (kind) {
    case SLOWER:
        fprintf(file, ": %.3f s, was %.3f s\n", result->seconds, before->seconds);
        break;
    case NEWLY_FAILING:
    case NEWLY_UNSUPPORTED:
        fprintf(file, " (%s before)\n      %s\n", !before ? "not there" : before->status,
                result->detail);
        break;
    case NEWLY_PASSING:
        fprintf(file, " (%s before)\n", before->status);
        break;
    default:
        fputc('\n', file);
    }
}

static size_t print_kind(FILE *file, const compare_report *earlier, const run_report *made,
                         difference kind)
{
    static const char *const titles[DIFFERENCES] = {"newly failing", "newly passing",
                                                    "newly unsupported", "new", "slower"};
    size_t count = 0;
    for (size_t i = 0; i < made->count; i++) {
        const report_result *result = &made->results[i];
        char *stem = stem_of(result->entry->name);
        const earlier_case *before = !stem ? NULL : find(earlier, stem);
        if (differs(result, before) == kind) {
            if (count++ == 0) {
                fprintf(file, "%s:\n", titles[kind]);
            }
            if (count <= MOST_NAMES || kind == NEWLY_FAILING) {
                print_case(file, result, before, kind);
            }
        }
        free(stem);
    }
    if (count > MOST_NAMES && kind != NEWLY_FAILING) {
        fprintf(file, "  and %zu more\n", count - MOST_NAMES);
    }
    return count;
}

static void mark(compare_report *earlier, const char *name, bool run)
{
    char *stem = stem_of(name);
    earlier_case *before = !stem ? NULL : find(earlier, stem);
    if (before) {
        before->there = true;
        before->run = before->run || run;
    }
    free(stem);
}

static void print_missing(FILE *file, compare_report *earlier, const run_report *made,
                          const case_list *all, compare_counts *counts)
{
    for (size_t i = 0; i < made->count; i++) {
        mark(earlier, made->results[i].entry->name, true);
    }
    for (size_t i = 0; i < all->count; i++) {
        mark(earlier, all->entries[i].name, false);
    }
    for (size_t i = 0; i < earlier->count; i++) {
        const earlier_case *before = &earlier->cases[i];
        if (before->run) {
            continue;
        }
        if (before->there) {
            counts->not_run++;
            continue;
        }
        if (counts->gone++ == 0) {
            fprintf(file, "gone:\n");
        }
        if (counts->gone <= MOST_NAMES) {
            fprintf(file, "  %s\n", before->stem);
        }
    }
    if (counts->gone > MOST_NAMES) {
        fprintf(file, "  and %zu more\n", counts->gone - MOST_NAMES);
    }
}

compare_report *compare_read(const char *path, char *message, size_t bytes)
{
    char why[128] = "no memory";
    compare_report *earlier = calloc(1, sizeof *earlier);
    char *text = read_file(path);
    if (earlier && !text) {
        snprintf(why, sizeof why, "%s", strerror(errno));
    }
    if (earlier && text) {
        earlier->path = strdup(path);
        earlier->root = json_read(text, why, sizeof why);
        if (earlier->root && !take_cases(earlier)) {
            snprintf(why, sizeof why, "expected a report by hal-conformance --json");
        }
    }
    free(text);
    if (!earlier || !earlier->cases) {
        snprintf(message, bytes, "cannot read the earlier report %s: %s", path, why);
        compare_free(earlier);
        return NULL;
    }
    return earlier;
}

void compare_free(compare_report *earlier)
{
    if (earlier) {
        for (size_t i = 0; i < earlier->count; i++) {
            free(earlier->cases[i].stem);
        }
        free(earlier->cases);
        json_free(earlier->root);
        free(earlier->path);
        free(earlier);
    }
}

compare_counts compare_print(FILE *file, compare_report *earlier, const run_report *made,
                             const case_list *all)
{
    print_head(file, earlier, made);
    compare_counts counts = {
        .newly_failing = print_kind(file, earlier, made, NEWLY_FAILING),
        .newly_passing = print_kind(file, earlier, made, NEWLY_PASSING),
        .newly_unsupported = print_kind(file, earlier, made, NEWLY_UNSUPPORTED),
        .added = print_kind(file, earlier, made, ADDED),
        .slower = print_kind(file, earlier, made, SLOWER),
    };
    print_missing(file, earlier, made, all, &counts);
    fprintf(file,
            "compared: %zu newly failing, %zu newly passing, %zu newly unsupported, %zu new, %zu "
            "gone, %zu not run, %zu slower\n",
            counts.newly_failing, counts.newly_passing, counts.newly_unsupported, counts.added,
            counts.gone, counts.not_run, counts.slower);
    return counts;
}
