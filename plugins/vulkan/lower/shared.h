/* Shared arrays. */
#ifndef PLUGINS_VULKAN_LOWER_SHARED_H
#define PLUGINS_VULKAN_LOWER_SHARED_H

#include "lower/types.h"

/* Declares the arrays; the class of an access of `width` elements; the pointer to
 * one part of an access. */
void lower_declare_shared(lower *l);
uint32_t lower_shared_class(const lower *l, uint32_t memory, uint32_t width);
uint32_t lower_shared_pointer(lower *l, const hal_ir_record *record, uint32_t class, uint32_t part,
                              const lower_access *access);

#endif
