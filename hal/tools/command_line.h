/* Command lines of the programs: one table of options, from which arguments are read and the usage
 * is printed. Linked by hal-info, hal-replay, hal-conformance, hal-math-exhaustive and hal-bench.
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
 * --help and -h are part of every table. Values follow as "--jobs 4" or "--jobs=4". */
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
    const char *argument; /* what the usage calls its value; null: none */
    const char *help;     /* a line, which the usage wraps */
    command_kind kind;
    size_t offset;        /* of the value in the structure of options */
    uint64_t least, most;
    bool (*read)(const char *text, void *options); /* whether the value fits */
    const char *heading;  /* a line in front of this option in the usage; may be null */
} command_option;

typedef struct command_line {
    const char *program;
    const char *usage;       /* what follows the program's name; lines end with a line feed */
    const char *about;       /* lines in front of the options; may be null */
    const char *exit_status; /* lines at the end */
    const command_option *options;
    size_t option_count;
    size_t operand_offset;   /* of the const char * that takes the one operand */
    bool has_operand;        /* it must be given */
    void (*more)(void);      /* prints more lines before exit_status; may be null */
} command_line;

typedef enum command_result {
    COMMAND_GO_ON,
    COMMAND_HELP_PRINTED,
    COMMAND_WRONG_USAGE /* which standard error says */
} command_result;

/* Reads the arguments into `options`. */
command_result command_line_read(const command_line *line, int count, char **arguments,
                                 void *options);

/* Says on standard error what was wrong, and the usage. Returns COMMAND_WRONG_USAGE. */
command_result command_line_wrong(const command_line *line, const char *format, ...)
    __attribute__((__format__(__printf__, 2, 3)));

/* Prints lines "  name   help" that wrap at 96 columns, with the help at column `indent`. */
void command_print_row(FILE *file, const char *name, const char *help, int indent);

/* Whether all of `text` is a number without sign, in decimal or 0x form. */
bool command_read_u64(const char *text, uint64_t *number);

/* ---- Lists: words with commas between them, of which none is empty ---- */

/* Copies the next word, of at most bytes - 1 characters, and moves `rest` after it. 0 at the end,
 * -1 for a word that is too long. */
int command_list_next(const char **rest, char *word, size_t bytes);

/* The index of `word` among `names`, -1 when it is not there. */
int command_index_of(const char *word, const char *const *names, size_t count);

#endif
