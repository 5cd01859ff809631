/* The PTX of a kernel of attention. */
#ifndef PLUGINS_CUDA_ATTENTION_TEXT_H
#define PLUGINS_CUDA_ATTENTION_TEXT_H

#include "attention/key.h"

#include <kit/text.h>

hal_status cuda_attention_write(const cuda_attention_key *key, kit_text *text);

#endif
