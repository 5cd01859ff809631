/* See number.h. */
#include "number.h"

#include <locale.h>
#include <stdio.h>
#if defined __APPLE__
#include <xlocale.h>
#endif

const char *ops_number_text(char text[OPS_NUMBER_BYTES], double value, int decimals)
{
    const locale_t own = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* no memory: it is a constant */
    const locale_t before = own ? uselocale(own) : (locale_t)0;
    if (decimals < 0) {
        snprintf(text, OPS_NUMBER_BYTES, "%g", value);
    } else {
        snprintf(text, OPS_NUMBER_BYTES, "%.*f", decimals, value);
    }
    if (own) {
        uselocale(before);
        freelocale(own);
    }
    return text;
}
