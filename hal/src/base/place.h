/* Where the library and the process were when the library was loaded: a program may change its
 * working folder afterwards. */
#ifndef HAL_SRC_BASE_PLACE_H
#define HAL_SRC_BASE_PLACE_H

#include "text.h"

/* The folder of the library's file, absolute; null if it is not known. */
const char *hal_place_library(void);

/* Appends a path; a relative one after the working folder of that time. Threads: the text's. */
void hal_place_add(hal_text *text, const char *path);

#endif
