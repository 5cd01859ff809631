/* Parses command lines and prints usages, see command_line.h. */
#include "command_line.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../src/base/list.h"

enum { COLUMNS = 96, MAX_INDENT = 24, NAME_BYTES = 64 };

void command_print_row(FILE *file, const char *name, const char *help, int indent)
{
    int column = fprintf(file, "  %s", name);
    if (column >= indent) {
        column = fprintf(file, "\n") - 1;
    }
    fprintf(file, "%*s", indent - column, "");
    column = indent;
    const char *rest = help;
    while (*rest) {
        const int length = (int)strcspn(rest, " ");
        if (column > indent && column + 1 + length > COLUMNS) {
            column = fprintf(file, "\n%*s", indent, "") - 1;
        } else if (column > indent) {
            column += fprintf(file, " ");
        }
        column += fprintf(file, "%.*s", length, rest);
        rest += length;
        rest += strspn(rest, " ");
    }
    fprintf(file, "\n");
}

static void option_heading(const command_option *option, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "--%s%s%s", option->name, option->argument ? " " : "",
             option->argument ? option->argument : "");
}

static void usage_print(const command_line *line, FILE *file)
{
    char name[NAME_BYTES];
    int indent = (int)strlen("--help, -h") + 4;
    for (size_t i = 0; i < line->option_count; i++) {
        option_heading(&line->options[i], name);
        const int width = (int)strlen(name) + 4;
        indent = width > indent && width <= MAX_INDENT ? width : indent;
    }
    fprintf(file, "usage: %s %s\n%s", line->program, line->usage, line->about ? line->about : "");
    for (size_t i = 0; i < line->option_count; i++) {
        if (line->options[i].heading) {
            fprintf(file, "%s\n", line->options[i].heading);
        }
        option_heading(&line->options[i], name);
        command_print_row(file, name, line->options[i].help, indent);
    }
    command_print_row(file, "--help, -h", "print this and end", indent);
    if (line->more && file == stdout) {
        line->more();
    }
    fputs(line->exit_status, file);
}

command_result command_line_wrong(const command_line *line, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "%s: ", line->program);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n");
    usage_print(line, stderr);
    return COMMAND_WRONG_USAGE;
}

bool command_read_u64(const char *text, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 0);
    return errno == 0 && end != text && *end == 0 && text[0] >= '0' && text[0] <= '9';
}

int command_list_next(const char **rest, char *word, size_t bytes)
{
    const char *begin;
    const size_t length = hal_list_next(rest, &begin);
    if (length >= bytes) {
        return -1;
    }
    memcpy(word, begin, length);
    word[length] = 0;
    return length > 0;
}

int command_index_of(const char *word, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], word) == 0) {
            return (int)i;
        }
    }
    return -1;
}

/* Sets the value. Returns whether it is valid. */
static bool option_set(const command_option *option, const char *value, void *options)
{
    void *target = (char *)options + option->offset;
    uint64_t number = 0;
    switch (option->kind) {
    case COMMAND_FLAG:
        *(bool *)target = true;
        return true;
    case COMMAND_TEXT:
        *(const char **)target = value;
        return true;
    case COMMAND_CALL:
        return option->read(value, options);
    default:
        break;
    }
    if (!command_read_u64(value, &number) || number < option->least || number > option->most) {
        return false;
    }
    if (option->kind == COMMAND_U64) {
        *(uint64_t *)target = number;
    } else {
        *(unsigned *)target = (unsigned)number;
    }
    return true;
}

static const command_option *option_find(const command_line *line, const char *name, size_t length)
{
    for (size_t i = 0; i < line->option_count; i++) {
        if (strlen(line->options[i].name) == length &&
            strncmp(line->options[i].name, name, length) == 0) {
            return &line->options[i];
        }
    }
    return NULL;
}

static command_result option_wrong(const command_line *line, const command_option *option,
                                   const char *value)
{
    const bool is_number = option->kind == COMMAND_UNSIGNED || option->kind == COMMAND_U64;
    if (is_number) {
        return command_line_wrong(line, "--%s: expected a number from %llu to %llu, got %s",
                                  option->name, (unsigned long long)option->least,
                                  (unsigned long long)option->most, value);
    }
    return command_line_wrong(line, "--%s: expected %s (%s), got %s", option->name,
                              option->argument, option->help, value);
}

/* Parses the option at arguments[*at], and moves *at to its value. */
static command_result option_read(const command_line *line, int count, char **arguments, int *at,
                                  void *options)
{
    const char *name = arguments[*at] + 2;
    const size_t length = strcspn(name, "=");
    const command_option *option = option_find(line, name, length);
    if (!option) {
        return command_line_wrong(line, "expected an option of those below, got %s",
                                  arguments[*at]);
    }
    const char *value = name[length] ? name + length + 1 : NULL;
    if (!option->argument) {
        return !value && option_set(option, NULL, options)
                   ? COMMAND_GO_ON
                   : command_line_wrong(line, "--%s: expected no value, got %s", option->name,
                                        value ? value : "one");
    }
    if (!value && *at + 1 < count) {
        value = arguments[++*at];
    }
    if (!value) {
        return command_line_wrong(line, "--%s: expected %s, got nothing", option->name,
                                  option->argument);
    }
    return option_set(option, value, options) ? COMMAND_GO_ON : option_wrong(line, option, value);
}

static const command_line *program; /* of this process */
static pid_t program_process;

static void output_close(void)
{
    const bool failed = ferror(stdout) != 0;
    if (getpid() == program_process && (fflush(stdout) != 0 || failed)) {
        fprintf(stderr, "%s: standard output cannot be written\n", program->program);
        _exit(program->unwritten_status == 0 ? 1 : program->unwritten_status);
    }
}

static void process_prepare(const command_line *line)
{
    signal(SIGCHLD, SIG_DFL);
    if (!program) {
        atexit(output_close);
    }
    program = line;
    program_process = getpid();
}

command_result command_line_read(const command_line *line, int count, char **arguments,
                                 void *options)
{
    const char *operand = NULL;
    process_prepare(line);
    for (int i = 1; i < count; i++) {
        const char *word = arguments[i];
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            usage_print(line, stdout);
            return COMMAND_HELP_PRINTED;
        }
        if (strncmp(word, "--", 2) == 0) {
            const command_result result = option_read(line, count, arguments, &i, options);
            if (result != COMMAND_GO_ON) {
                return result;
            }
        } else if (word[0] == '-' || !line->has_operand || operand) {
            return command_line_wrong(line, "expected an option of those below, got %s", word);
        } else {
            operand = word;
        }
    }
    if (line->has_operand && !operand) {
        return command_line_wrong(line, "expected %s, got nothing", line->usage);
    }
    if (line->has_operand) {
        *(const char **)(void *)((char *)options + line->operand_offset) = operand;
    }
    return COMMAND_GO_ON;
}
