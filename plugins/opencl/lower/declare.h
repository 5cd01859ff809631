/* Declarations of the functions that kernels call. */
#ifndef PLUGINS_OPENCL_LOWER_DECLARE_H
#define PLUGINS_OPENCL_LOWER_DECLARE_H

#include <kit/text.h>

void opencl_lower_declarations(kit_text *text);

#endif
