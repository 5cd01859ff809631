/* expect.h: the known failures of a plugin, from the expect.txt next to it.
 *
 * One line for each: the case's name, at least two spaces or a tab, and the reason. The name may
 * hold * and ?, and matches all its seeds when it ends before ",seed=". Empty lines and lines
 * that begin with # are passed over. An expected failure that passes is a failure. */
#ifndef CONFORMANCE_REPORT_EXPECT_H
#define CONFORMANCE_REPORT_EXPECT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct expectation {
    char *pattern;
    char *reason;
} expectation;

typedef struct expect_list {
    expectation *items;
    size_t count;
} expect_list;

/* Reads a file. False with a message in `message` when it cannot be read or a line has no
 * reason. */
bool expect_read(const char *path, expect_list *list, char *message, size_t bytes);
void expect_free(expect_list *list);

/* The expectation for a case, or null. */
const expectation *expect_find(const expect_list *list, const char *name);

/* Whether an expectation is about a case of that name. */
bool expect_fits(const expectation *one, const char *name);

#endif
