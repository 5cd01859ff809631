/* What a device is, in hal's terms. */
#ifndef PLUGINS_OPENCL_DESCRIBE_H
#define PLUGINS_OPENCL_DESCRIBE_H

#include "card.h"

/* Describes a device whose handles and quirks are set. False, with the reason, for an
 * unusable one. */
bool opencl_describe(opencl_card *card, const char *platform, char reason[160]);

#endif
