/* comma_locale.h: a locale whose numbers have a decimal comma, without one of the system. */
#ifndef CONFORMANCE_CASE_COMMA_LOCALE_H
#define CONFORMANCE_CASE_COMMA_LOCALE_H

#include <stdbool.h>

/* Sets it for numbers (LC_NUMERIC). False if the C library does not take it. */
bool comma_locale_set(void);

#endif
