/* Narrow floats. */
#ifndef PLUGINS_OPENCL_LOWER_NARROW_H
#define PLUGINS_OPENCL_LOWER_NARROW_H

#include "card.h"

#include <kit/c_text.h>
#include <kit/text.h>

/* Functions for narrow floats, which are appended to the text, and their words. */
void opencl_lower_narrow(const opencl_card *card, const hal_ir_kernel *ir, kit_c_dialect *words,
                         kit_text *text);

#endif
