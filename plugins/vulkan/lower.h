/* Lowering: a kernel's IR to a SPIR-V module. lower.h is for kernel.c and tests; what the
 * lowering's own files share is lower_state.h. Nothing here needs Vulkan.
 *
 * How a dispatch hands over its arguments: a block of 8 bytes for each binding, its address, and
 * then the block of scalars. Up to `push_bytes` it is the push constants themselves; a larger one
 * lies in memory and the push constants are its address. There are no descriptors. */
#ifndef HALYARD_VULKAN_LOWER_H
#define HALYARD_VULKAN_LOWER_H

#include <hal/ir.h>
#include <hal/status.h>

/* Sets of float widths. */
enum { SPIRV_FLOAT_16 = 1, SPIRV_FLOAT_32 = 2, SPIRV_FLOAT_64 = 4 };

/* What a device lets a module use. */
typedef struct spirv_target {
    uint32_t push_bytes;       /* the most bytes of push constants */
    uint32_t subgroup_width;   /* 0: none */
    uint32_t zero_inf_nan;     /* float widths whose signed zeros, infinities and NaN can be kept */
    uint32_t denormals;        /* whose denormals can be kept */
    uint32_t nearest_even;     /* whose results can be rounded to nearest even */
    uint32_t half_converts;    /* 1: its own conversions from f16 to f32 are exact */
    uint32_t half_rounds;      /* 1: those from f32 to f16 round, whatever becomes of the result */
    uint32_t shared_views;     /* 1: shared memory can be declared with several layouts at a time */
    uint32_t shared_bytes;     /* of a group */
    uint32_t repairs_division; /* 1: division and square root of f32 are made exact by fused
                                * multiply-adds and f64, which the device has */
} spirv_target;

/* A module for VkShaderModuleCreateInfo; its entry point is "main". */
typedef struct spirv_module {
    uint32_t *words; /* from malloc */
    uint32_t word_count;
    uint32_t argument_bytes; /* of the block of arguments */
    uint32_t uses_subgroups; /* 1: it has subgroup operations */
    uint32_t items;          /* work-items of a group */
} spirv_module;

/* Writes the module of a verified and legalised kernel. The caller frees `module->words`.
 * Threads: any. Errors, with their sentence in `problem`: OUT_OF_MEMORY; UNSUPPORTED for an
 * operation without a lowering. */
hal_status spirv_lower(const hal_ir_kernel *ir, const spirv_target *target, spirv_module *module,
                       char *problem, uint32_t problem_bytes);

/* The block of arguments of a kernel, in bytes. */
uint32_t spirv_argument_bytes(uint32_t binding_count, uint32_t scalar_bytes);

#endif
