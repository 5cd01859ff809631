/* secure_getenv on systems whose C library lacks it: set-uid processes read no variable. */
#ifndef PLUGINS_KIT_ENVIRONMENT_H
#define PLUGINS_KIT_ENVIRONMENT_H

#include <stdlib.h>

#if defined __APPLE__
#include <unistd.h>

static inline char *secure_getenv(const char *name)
{
    return issetugid() ? NULL : (getenv)(name);
}
#endif

#endif
