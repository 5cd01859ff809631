/* hal-math-exhaustive: compares the functions of the IR on a device with the C library in higher
 * precision, on every f32 input, and on samples for f64 and two arguments. Prints the worst error
 * of each function and fails if one exceeds its bound. ./dev test runs a small part, ./dev check
 * more. */
#include "math/exhaustive_check.h"

#include "command_line.h"
#include "json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Limit of the numbers on the command line. */
#define MAX_NUMBER (UINT64_C(1) << 40)
#define OF(field) offsetof(check_options, field)

static const command_option rows[] = {
    {.name = "device",
     .argument = "SELECTION",
     .help = "as HAL_BACKEND says it (cpu, cpu:0, id:..., a list); without it HAL_BACKEND or the "
             "default choice. The inputs of a whole run are made by the kernel; threads of the "
             "host compare",
     .kind = COMMAND_TEXT,
     .offset = OF(device)},
    {.name = "reader",
     .help = "computes the polynomials as plain C instead, without any device",
     .kind = COMMAND_FLAG,
     .offset = OF(is_reader)},
    {.name = "function",
     .argument = "NAMES",
     .help = "functions with commas, or all (all)",
     .kind = COMMAND_TEXT,
     .offset = OF(functions)},
    {.name = "step",
     .argument = "N",
     .help = "every N-th f32 input (1)",
     .kind = COMMAND_U64,
     .offset = OF(step),
     .least = 1,
     .most = MAX_NUMBER},
    {.name = "samples",
     .argument = "N",
     .help = "number of samples for f64 and for two arguments (10,000,000)",
     .kind = COMMAND_U64,
     .offset = OF(samples),
     .least = 1,
     .most = MAX_NUMBER},
    {.name = "seed",
     .argument = "N",
     .help = "of the samples",
     .kind = COMMAND_U64,
     .offset = OF(seed),
     .least = 0,
     .most = MAX_NUMBER},
    {.name = "threads",
     .argument = "N",
     .help = "threads of the host that compare (all processors)",
     .kind = COMMAND_UNSIGNED,
     .offset = OF(threads),
     .least = 1,
     .most = MATH_MAX_THREADS},
    {.name = "json",
     .argument = "FILE",
     .help = "write the results as JSON",
     .kind = COMMAND_TEXT,
     .offset = OF(json)},
    {.name = "list",
     .help = "print the names of the functions and end",
     .kind = COMMAND_FLAG,
     .offset = OF(list)},
};

static const command_line line = {
    .program = "hal-math-exhaustive",
    .usage = "[options]",
    .about =
        "Computes functions on a device and compares every result with the C library in higher\n"
        "precision. Functions of one f32 run over all 2^32 inputs, or every Nth with --step; f64\n"
        "and functions of two arguments over N samples of a seed, special values among them. For\n"
        "each it prints the worst error in units in the last place, the bound, the input, the\n"
        "result and the true value.\n"
        "A device that claims exact fma, divide, square root and denormals gives the polynomials'\n"
        "bits and must meet the errors they reach; another one what users are promised. Square\n"
        "root and divide are compared bit for bit where they are claimed to be exact. Denormals\n"
        "are not judged where a device does not claim to keep them.\n",
    .exit_status =
        "Exit status: 0 all within their bounds, 1 one is not, 2 wrong usage or an error.\n",
    .options = rows,
    .option_count = sizeof rows / sizeof rows[0],
};

/* Position of the first unknown function's name, or null. */
static const char *unknown_function(const char *names)
{
    for (const char *name = names; strcmp(names, "all") != 0;) {
        const size_t length = strcspn(name, ",");
        size_t i = 0;
        while (i < math_case_count && (strncmp(math_cases[i].name, name, length) != 0 ||
                                       math_cases[i].name[length] != '\0')) {
            i++;
        }
        if (i == math_case_count) {
            return name;
        }
        if (name[length] == '\0') {
            break;
        }
        name += length + 1;
    }
    return NULL;
}

/* 0: continue, 1: wrong usage, -1: done. */
static int parse_options(int count, char **arguments, check_options *options)
{
    const command_result result = command_line_read(&line, count, arguments, options);
    if (result != COMMAND_GO_ON) {
        return result == COMMAND_HELP_PRINTED ? -1 : 1;
    }
    if (options->list) {
        for (size_t j = 0; j < math_case_count; j++) {
            puts(math_cases[j].name);
        }
        return -1;
    }
    if (options->is_reader && options->device) {
        command_line_wrong(&line, "--reader: expected no --device, got %s", options->device);
        return 1;
    }
    const char *unknown = unknown_function(options->functions);
    if (unknown) {
        fprintf(stderr, "hal-math-exhaustive: --function: expected one of --list, got %.*s\n",
                (int)strcspn(unknown, ","), unknown);
        return 1;
    }
    return 0;
}

static int report_error(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, hal_status_message());
    return 2;
}

static void print_device(const math_device *device)
{
    if (!device) {
        puts("plain C, no device");
    } else {
        printf("%s:%u, %s, %s\n", hal_device_get_plugin_name(device->device),
               hal_device_get_index(device->device), device->info->name, device->info->driver);
    }
}

static void write_json_head(FILE *file, const check_options *options, const math_device *device)
{
    fputs("{\"device\":", file);
    if (!device) {
        fputs("null", file);
    } else {
        fprintf(file, "{\"plugin\":\"%s\",\"index\":%u,\"name\":",
                hal_device_get_plugin_name(device->device), hal_device_get_index(device->device));
        json_write_text(file, device->info->name);
        fputs(",\"driver\":", file);
        json_write_text(file, device->info->driver);
        fputs("}", file);
    }
    fprintf(file, ",\"seed\":%" PRIu64 ",\"step\":%" PRIu64 ",\"functions\":[", options->seed,
            options->step);
}

static bool is_listed(const char *names, const char *name)
{
    const size_t length = strlen(name);
    if (strcmp(names, "all") == 0) {
        return 1;
    }
    for (const char *at = names; (at = strstr(at, name)) != NULL; at++) {
        if ((at == names || at[-1] == ',') && (at[length] == ',' || at[length] == '\0')) {
            return 1;
        }
    }
    return 0;
}

static void print_result(const check_result *result)
{
    const math_case *function = result->function;
    const math_worst *worst = &result->worst;
    const int digits = function->is_double ? 17 : 9;
    printf("%-10s %11" PRIu64 " inputs %6.1f s  worst %.4f ULP of %g  at %.*g", function->name,
           result->inputs, result->seconds, worst->distance, result->demand.bound, digits,
           worst->x);
    if (function->has_two_arguments) {
        printf(", %.*g", digits, worst->y);
    }
    printf(": %.*g, true value %.*Lg%s\n", digits, worst->result, digits + 3, worst->reference,
           worst->distance <= result->demand.bound ? "" : "  TOO FAR");
    fflush(stdout);
}

/* JSON has no infinities and no NaN: numbers that may be one are written as strings. */
static void write_json_result(FILE *file, const check_result *result)
{
    const math_worst *worst = &result->worst;
    fprintf(file,
            "\n{\"name\":\"%s\",\"inputs\":%" PRIu64 ",\"seconds\":%.3f,\"bound_ulp\":%g,"
            "\"worst_ulp\":\"%.6g\",\"x\":\"%.17g\",\"y\":\"%.17g\",\"result\":\"%.17g\","
            "\"reference\":\"%.21Lg\",\"passed\":%s}",
            result->function->name, result->inputs, result->seconds, result->demand.bound,
            worst->distance, worst->x, worst->y, worst->result, worst->reference,
            worst->distance <= result->demand.bound ? "true" : "false");
}

/* Returns the exit status. */
static int functions_check(const check_options *options, math_device *device, FILE *json)
{
    int exit_status = 0;
    const char *separator = "";
    print_device(device);
    if (json) {
        write_json_head(json, options, device);
    }
    for (size_t i = 0; i < math_case_count; i++) {
        const math_case *function = &math_cases[i];
        if (!is_listed(options->functions, function->name)) {
            continue;
        }
        if (device && !math_device_offers(device, function)) {
            printf("%-10s skipped: the device lacks the type\n", function->name);
            continue;
        }
        check_result result;
        if (check_function(function, options, device, &result) != HAL_OK) {
            exit_status = report_error(function->name);
            break;
        }
        print_result(&result);
        if (json) {
            fputs(separator, json);
            write_json_result(json, &result);
            separator = ",";
        }
        if (!(result.worst.distance <= result.demand.bound)) {
            exit_status = 1;
        }
    }
    if (json) {
        fputs("\n]}\n", json);
    }
    return exit_status;
}

int main(int count, char **arguments)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    check_options options = {.functions = "all", .samples = 10000000, .seed = 1, .step = 1};
    options.threads = processors < 1                  ? 1
                      : processors > MATH_MAX_THREADS ? MATH_MAX_THREADS
                                                      : (unsigned)processors;
    const int parsed = parse_options(count, arguments, &options);
    if (parsed != 0) {
        return parsed < 0 ? 0 : 2;
    }
    math_device device = {0};
    if (!options.is_reader && math_device_open(&device, options.device) != HAL_OK) {
        math_device_close(&device);
        return report_error("cannot open a device");
    }
    FILE *json = options.json ? fopen(options.json, "w") : NULL;
    int exit_status = 2;
    if (options.json && !json) {
        fprintf(stderr, "cannot write %s: %s\n", options.json, strerror(errno));
    } else {
        exit_status = functions_check(&options, options.is_reader ? NULL : &device, json);
    }
    if (json && fclose(json) != 0) {
        fprintf(stderr, "cannot write %s: %s\n", options.json, strerror(errno));
        exit_status = 2;
    }
    math_device_close(&device);
    return exit_status;
}
