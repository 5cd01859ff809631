/* What a device is, in hal's terms. */
#ifndef PLUGINS_METAL_DESCRIBE_H
#define PLUGINS_METAL_DESCRIBE_H

#include "card.h"

/* Describes a device whose gpu and quirks are set. False, with the reason, for an
 * unusable one. */
bool metal_describe(metal_card *card, char reason[160]);

#endif
