/* Command lines of the programs: a table of options defines the arguments and the usage. Linked by
 * hal-info, hal-replay, hal-conformance, hal-math-exhaustive, hal-bench and hal-warm.
 *
 *     static const command_option options[] = {
 *         {"json", "FILE", "write the findings to a file, too", COMMAND_TEXT, OF(json)},
 *         {"jobs", "N", "processes at a time (1)", COMMAND_UNSIGNED, OF(jobs), 1, 64},
 *         {"list", NULL, "print the names and end", COMMAND_FLAG, OF(list)},
 *     };
 *     static const command_line line = {.program = "hal-thing", .usage = "[options]",
 *                                       .options = options, .option_count = 3};
 *     switch (command_line_read(&line, argc, argv, &asked)) { ... }
 *
 * --help and -h are in every table. Values are "--jobs 4" or "--jobs=4". */
#ifndef HAL_TOOLS_COMMAND_LINE_H
#define HAL_TOOLS_COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum command_kind {
    COMMAND_FLAG,     /* bool, set to true */
    COMMAND_TEXT,     /* const char * */
    COMMAND_UNSIGNED, /* unsigned, from least to most */
    COMMAND_U64,      /* uint64_t, from least to most */
    COMMAND_CALL      /* read is called */
} command_kind;

typedef struct command_option {
    const char *name;     /* without the dashes */
    const char *argument; /* name of its value in the usage; null: none */
    const char *help;     /* wrapped by the usage */
    command_kind kind;
    size_t offset; /* of the value in the structure of options */
    uint64_t least, most;
    bool (*read)(const char *text, void *options); /* returns whether it is valid */
    const char *heading; /* line before the option in the usage; may be null */
} command_option;

typedef struct command_line {
    const char *program;
    const char *usage;       /* after the program's name; lines end with a line feed */
    const char *about;       /* lines before the options; may be null */
    const char *exit_status; /* lines at the end */
    const command_option *options;
    size_t option_count;
    size_t operand_offset; /* of a const char * for the operand */
    bool has_operand;      /* required */
    int unwritten_status;  /* of the exit, where standard output cannot be written; 0: it is 1 */
    void (*more)(void);    /* prints more lines before exit_status; may be null */
} command_line;

typedef enum command_result {
    COMMAND_GO_ON,
    COMMAND_HELP_PRINTED,
    COMMAND_WRONG_USAGE /* with a message on standard error */
} command_result;

/* Reads the arguments into `options`, and makes the process fit for a program of ours: a child that
 * crashes is told as that although the caller ignores SIGCHLD, and the exit status is
 * unwritten_status, with a message, where standard output could not be written. */
command_result command_line_read(const command_line *line, int count, char **arguments,
                                 void *options);

/* Prints a message and the usage on standard error. Returns COMMAND_WRONG_USAGE. */
command_result command_line_wrong(const command_line *line, const char *format, ...)
    __attribute__((__format__(__printf__, 2, 3)));

/* Prints lines "  name   help" that wrap at 96 columns, with the help at column `indent`. */
void command_print_row(FILE *file, const char *name, const char *help, int indent);

/* Whether all of `text` is an unsigned number, decimal or 0x. */
bool command_read_u64(const char *text, uint64_t *number);

/* ---- Comma lists without empty words ---- */

/* Copies the next word, of at most bytes - 1 characters, and moves `rest` after it. Returns 0 at
 * the end, -1 for a word that is too long. */
int command_list_next(const char **rest, char *word, size_t bytes);

/* The index of `word` in `names`; -1 if it is missing. */
int command_index_of(const char *word, const char *const *names, size_t count);

#endif
