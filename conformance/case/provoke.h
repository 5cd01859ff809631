/* provoke.h: cases that compute on purpose what HAL_SANITIZE reports of programs: x / 0, which the
 * IR defines, or the logarithm of a negative number. Their findings of that check do not fail them,
 * and a case that always computes it fails without a finding. Used by the runner. */
#ifndef CONFORMANCE_CASE_PROVOKE_H
#define CONFORMANCE_CASE_PROVOKE_H

#include <stdbool.h>

enum { PROVOKE_MATH = 1, PROVOKE_NAN = 2 };

/* The checks of which the case may have findings, and of which it has to have one in a process of
 * its own. */
typedef struct provoke_mark {
    unsigned may, must;
} provoke_mark;

provoke_mark provoke_mark_of(const char *name);

/* The checks that HAL_SANITIZE turns on. */
unsigned provoke_checks_on(void);

/* Whether HAL_SANITIZE turns on any check, of which compilers take several times as long. */
bool provoke_is_sanitized(void);

/* The check of a line of the sanitize layer; 0: another one. */
unsigned provoke_check_of(const char *line);

#endif
