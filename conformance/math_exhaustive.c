/* hal-math-exhaustive: runs the functions of the IR on a device, over every f32 input, and over
 * samples for f64 and two arguments, against the C library in higher precision; prints the worst
 * error of each and fails when one is over its bound. Run by hand, by ./dev test in small and by
 * ./dev check. */
#include "math_exhaustive_check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: hal-math-exhaustive [--device SELECTION | --reader] [--function NAME,NAME...|all]\n"
    "                           [--step N] [--samples N] [--seed N] [--threads N]\n"
    "                           [--json FILE] [--list]\n"
    "Computes functions on a device and holds every result against the C library in higher\n"
    "precision. Functions of one f32 run over all 2^32 inputs, or every Nth with --step; f64 and\n"
    "functions of two arguments over N samples of a seed (10,000,000), special values among them.\n"
    "For each it prints the worst error in units in the last place, the bound, the input, the\n"
    "result and the true value.\n"
    "  --device SELECTION  as HAL_BACKEND says it (cpu, cpu:0, id:..., a list); without it\n"
    "                      HAL_BACKEND or the default choice. The inputs of a whole run are made\n"
    "                      by the kernel; the host's threads judge (--threads, all processors)\n"
    "  --reader            computes the polynomials as plain C instead, without any device\n"
    "A device that claims exact fma, divide, square root and denormals gives the polynomials' "
    "bits\n"
    "and is held to the errors they reach; another one to what users are promised. Square root "
    "and\n"
    "divide are compared bit for bit where they are claimed to be exact. Denormals are not judged\n"
    "where a device does not claim to keep them.\n"
    "Exit status: 0 all within their bounds, 1 one is not, 2 wrong usage or an error.\n";

static int parse_number(const char *text, uint64_t lowest, uint64_t *number)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 0);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value < lowest ||
        value > UINT64_C(1) << 40) {
        return 1;
    }
    *number = value;
    return 0;
}

static int parse_option(const char *name, const char *value, check_options *options)
{
    uint64_t threads = 0;
    int wrong = 0;
    if (strcmp(name, "--device") == 0) {
        options->device = value;
    } else if (strcmp(name, "--function") == 0) {
        options->functions = value;
    } else if (strcmp(name, "--json") == 0) {
        options->json = value;
    } else if (strcmp(name, "--samples") == 0) {
        wrong = parse_number(value, 1, &options->samples);
    } else if (strcmp(name, "--seed") == 0) {
        wrong = parse_number(value, 0, &options->seed);
    } else if (strcmp(name, "--step") == 0) {
        wrong = parse_number(value, 1, &options->step);
    } else if (strcmp(name, "--threads") == 0) {
        wrong = parse_number(value, 1, &threads) || threads > MATH_MAX_THREADS;
        options->threads = (unsigned)threads;
    } else {
        wrong = 1;
    }
    return wrong;
}

/* Where the first name stands that is no function's; null when there is none. */
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

/* 0 to go on, 1 for wrong usage, -1 when all is done. */
static int parse_options(int count, char **arguments, check_options *options)
{
    for (int i = 1; i < count; i++) {
        const char *name = arguments[i];
        if (strcmp(name, "--list") == 0) {
            for (size_t j = 0; j < math_case_count; j++) {
                puts(math_cases[j].name);
            }
            return -1;
        }
        if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
            fputs(usage, stdout);
            return -1;
        }
        if (strcmp(name, "--reader") == 0) {
            options->is_reader = 1;
        } else if (i + 1 == count || parse_option(name, arguments[++i], options) != 0) {
            fprintf(stderr,
                    "hal-math-exhaustive: %s is unknown or its value is missing or unfit\n%s",
                    name, usage);
            return 1;
        }
    }
    if (options->is_reader && options->device != NULL) {
        fputs("--reader runs without a device: leave out --device\n", stderr);
        return 1;
    }
    const char *unknown = unknown_function(options->functions);
    if (unknown != NULL) {
        fprintf(stderr, "no function is named %.*s; --list shows them all\n",
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
    if (device == NULL) {
        puts("plain C, no device");
    } else {
        printf("%s:%u, %s, %s\n", hal_device_get_plugin_name(device->device),
               hal_device_get_index(device->device), device->info->name, device->info->driver);
    }
}

static void write_json_text(FILE *file, const char *text)
{
    putc('"', file);
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c < 0x20) {
            fprintf(file, "\\u%04x", c);
        } else {
            fprintf(file, c == '"' || c == '\\' ? "\\%c" : "%c", c);
        }
    }
    putc('"', file);
}

static void write_json_head(FILE *file, const check_options *options, const math_device *device)
{
    fputs("{\"device\":", file);
    if (device == NULL) {
        fputs("null", file);
    } else {
        fprintf(file, "{\"plugin\":\"%s\",\"index\":%u,\"name\":",
                hal_device_get_plugin_name(device->device), hal_device_get_index(device->device));
        write_json_text(file, device->info->name);
        fputs(",\"driver\":", file);
        write_json_text(file, device->info->driver);
        fputs("}", file);
    }
    fprintf(file, ",\"seed\":%" PRIu64 ",\"step\":%" PRIu64 ",\"functions\":[", options->seed,
            options->step);
}

static int is_listed(const char *names, const char *name)
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

/* Gives the exit status. */
static int run(const check_options *options, math_device *device, FILE *json)
{
    int exit_status = 0;
    const char *separator = "";
    print_device(device);
    if (json != NULL) {
        write_json_head(json, options, device);
    }
    for (size_t i = 0; i < math_case_count; i++) {
        const math_case *function = &math_cases[i];
        if (!is_listed(options->functions, function->name)) {
            continue;
        }
        if (device != NULL && !math_device_offers(device, function)) {
            printf("%-10s skipped: the device lacks the type\n", function->name);
            continue;
        }
        check_result result;
        if (check_function(function, options, device, &result) != HAL_OK) {
            exit_status = report_error(function->name);
            break;
        }
        print_result(&result);
        if (json != NULL) {
            fputs(separator, json);
            write_json_result(json, &result);
            separator = ",";
        }
        if (!(result.worst.distance <= result.demand.bound)) {
            exit_status = 1;
        }
    }
    if (json != NULL) {
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
    FILE *json = options.json != NULL ? fopen(options.json, "w") : NULL;
    int exit_status = 2;
    if (options.json != NULL && json == NULL) {
        fprintf(stderr, "cannot write %s: %s\n", options.json, strerror(errno));
    } else {
        exit_status = run(&options, options.is_reader ? NULL : &device, json);
    }
    if (json != NULL && fclose(json) != 0) {
        fprintf(stderr, "cannot write %s: %s\n", options.json, strerror(errno));
        exit_status = 2;
    }
    math_device_close(&device);
    return exit_status;
}
