/* From IR to a SPIR-V module, without Vulkan.
 *
 * The arguments of a dispatch are a block: the address of each binding, 8 bytes each, then the
 * scalars. Up to `push_bytes` the block is the push constants; a larger block is in memory, and the
 * push constants are its address. There are no descriptors. */
#ifndef PLUGINS_VULKAN_LOWER_LOWER_H
#define PLUGINS_VULKAN_LOWER_LOWER_H

#include "lower/target.h"

#include <hal/ir.h>
#include <hal/status.h>

/* A module with the entry point "main". */
typedef struct spirv_module {
    uint32_t *words; /* from malloc */
    uint32_t word_count;
    uint32_t argument_bytes; /* of the block of arguments */
    uint32_t uses_subgroups; /* 1: it has subgroup operations */
    uint32_t items;          /* work-items of a group */
} spirv_module;

/* Writes the module of a verified and legalised kernel. The caller frees `module->words`.
 * Threads: any. Errors, with their message in `problem`: OUT_OF_MEMORY; UNSUPPORTED for an
 * operation without a lowering. */
hal_status spirv_lower(const hal_ir_kernel *ir, const spirv_target *target, spirv_module *module,
                       char *problem, uint32_t problem_bytes);

/* Bytes of the block of arguments. */
uint32_t spirv_argument_bytes(uint32_t binding_count, uint32_t scalar_bytes);

#endif
