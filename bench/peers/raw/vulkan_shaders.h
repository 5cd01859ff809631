/* vulkan_shaders.h: the two kernels of vulkan.c in the words of SPIR-V 1.3. */
#ifndef BENCH_PEERS_RAW_VULKAN_SHADERS_H
#define BENCH_PEERS_RAW_VULKAN_SHADERS_H

#include <stdint.h>

/* clang-format off */
/* void main() {} with a group of one work-item. */
static const uint32_t empty_shader[] = {
    0x07230203, 0x00010300, 0,          5,          0,
    2 << 16 | 17,  1,                                   /* OpCapability Shader */
    3 << 16 | 14,  0, 1,                                /* OpMemoryModel Logical GLSL450 */
    5 << 16 | 15,  5, 1, 0x6e69616d, 0,                 /* OpEntryPoint GLCompute %1 "main" */
    6 << 16 | 16,  1, 17, 1, 1, 1,                      /* OpExecutionMode %1 LocalSize 1 1 1 */
    2 << 16 | 19,  2,                                   /* %2 = OpTypeVoid */
    3 << 16 | 33,  3, 2,                                /* %3 = OpTypeFunction %2 */
    5 << 16 | 54,  2, 1, 0, 3,                          /* %1 = OpFunction %2 None %3 */
    2 << 16 | 248, 4,                                   /* %4 = OpLabel */
    1 << 16 | 253, 1 << 16 | 56,                        /* OpReturn, OpFunctionEnd */
};

/* y[i] = 3 * x[i] + i with groups of 128; x and y are the bindings 0 and 1 of set 0. */
static const uint32_t step_shader[] = {
    0x07230203, 0x00010300, 0,          24,         0,
    2 << 16 | 17,  1,                              /* OpCapability Shader */
    3 << 16 | 14,  0, 1,                           /* OpMemoryModel Logical GLSL450 */
    6 << 16 | 15,  5, 1, 0x6e69616d, 0, 2,         /* OpEntryPoint GLCompute %1 "main" %2 */
    6 << 16 | 16,  1, 17, 128, 1, 1,               /* OpExecutionMode %1 LocalSize 128 1 1 */
    4 << 16 | 71,  2, 11, 28,                      /* OpDecorate %2 BuiltIn GlobalInvocationId */
    4 << 16 | 71,  3, 6, 4,                        /* OpDecorate %3 ArrayStride 4 */
    3 << 16 | 71,  4, 2,                           /* OpDecorate %4 Block */
    5 << 16 | 72,  4, 0, 35, 0,                    /* OpMemberDecorate %4 0 Offset 0 */
    4 << 16 | 71,  5, 34, 0,                       /* OpDecorate %5 DescriptorSet 0 */
    4 << 16 | 71,  5, 33, 0,                       /* OpDecorate %5 Binding 0 */
    4 << 16 | 71,  6, 34, 0,                       /* OpDecorate %6 DescriptorSet 0 */
    4 << 16 | 71,  6, 33, 1,                       /* OpDecorate %6 Binding 1 */
    2 << 16 | 19,  7,                              /* %7 = OpTypeVoid */
    3 << 16 | 33,  8, 7,                           /* %8 = OpTypeFunction %7 */
    4 << 16 | 21,  9, 32, 0,                       /* %9 = OpTypeInt 32 0 */
    4 << 16 | 23,  10, 9, 3,                       /* %10 = OpTypeVector %9 3 */
    4 << 16 | 32,  11, 1, 10,                      /* %11 = OpTypePointer Input %10 */
    4 << 16 | 59,  11, 2, 1,                       /* %2 = OpVariable %11 Input */
    3 << 16 | 29,  3, 9,                           /* %3 = OpTypeRuntimeArray %9 */
    3 << 16 | 30,  4, 3,                           /* %4 = OpTypeStruct %3 */
    4 << 16 | 32,  12, 12, 4,                      /* %12 = OpTypePointer StorageBuffer %4 */
    4 << 16 | 59,  12, 5, 12,                      /* %5 = OpVariable %12 StorageBuffer */
    4 << 16 | 59,  12, 6, 12,                      /* %6 = OpVariable %12 StorageBuffer */
    4 << 16 | 43,  9, 13, 0,                       /* %13 = OpConstant %9 0 */
    4 << 16 | 43,  9, 14, 3,                       /* %14 = OpConstant %9 3 */
    4 << 16 | 32,  15, 12, 9,                      /* %15 = OpTypePointer StorageBuffer %9 */
    5 << 16 | 54,  7, 1, 0, 8,                     /* %1 = OpFunction %7 None %8 */
    2 << 16 | 248, 16,                             /* %16 = OpLabel */
    4 << 16 | 61,  10, 17, 2,                      /* %17 = OpLoad %10 %2 */
    5 << 16 | 81,  9, 18, 17, 0,                   /* %18 = OpCompositeExtract %9 %17 0 */
    6 << 16 | 65,  15, 19, 5, 13, 18,              /* %19 = OpAccessChain %15 %5 %13 %18 */
    4 << 16 | 61,  9, 20, 19,                      /* %20 = OpLoad %9 %19 */
    5 << 16 | 132, 9, 21, 20, 14,                  /* %21 = OpIMul %9 %20 %14 */
    5 << 16 | 128, 9, 22, 21, 18,                  /* %22 = OpIAdd %9 %21 %18 */
    6 << 16 | 65,  15, 23, 6, 13, 18,              /* %23 = OpAccessChain %15 %6 %13 %18 */
    3 << 16 | 62,  23, 22,                         /* OpStore %23 %22 */
    1 << 16 | 253, 1 << 16 | 56,                   /* OpReturn, OpFunctionEnd */
};
/* clang-format on */

#endif
