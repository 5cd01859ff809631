# Sources of the native matrix product, with the flags of each instruction set. Included by the
# plugin and by its unit test, because properties of sources count in one folder only.
set(CPU_GEMM_DIR ${CMAKE_CURRENT_LIST_DIR})
set(CPU_GEMM_SOURCES
    ${CPU_GEMM_DIR}/gemm.c ${CPU_GEMM_DIR}/gemm_plan.c ${CPU_GEMM_DIR}/gemm_pairs.c
    ${CPU_GEMM_DIR}/gemm_levels.c ${CPU_GEMM_DIR}/gemm_single.c ${CPU_GEMM_DIR}/gemm_skinny.c
    ${CPU_GEMM_DIR}/gemm_micro_base.c)
include(${CPU_GEMM_DIR}/loop_flags.cmake)
set_source_files_properties(${CPU_GEMM_DIR}/gemm_micro_base.c PROPERTIES
    COMPILE_OPTIONS "${CPU_LOOP_FLAGS}")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
    list(APPEND CPU_GEMM_SOURCES
        ${CPU_GEMM_DIR}/gemm_micro_avx2.c ${CPU_GEMM_DIR}/gemm_micro_avx512.c
        ${CPU_GEMM_DIR}/gemm_micro_bf16.c ${CPU_GEMM_DIR}/gemm_micro_amx.c)
    set_source_files_properties(${CPU_GEMM_DIR}/gemm_micro_avx2.c PROPERTIES
        COMPILE_OPTIONS "${CPU_LOOP_FLAGS};-mavx2;-mfma;-mf16c")
    set_source_files_properties(${CPU_GEMM_DIR}/gemm_micro_avx512.c PROPERTIES
        COMPILE_OPTIONS
        "${CPU_LOOP_FLAGS};-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mfma;-mf16c")
    include(CheckCCompilerFlag)
    check_c_compiler_flag(-mavx512bf16 HAL_COMPILER_HAS_AVX512_BF16)
    set(bf16_flags $<$<BOOL:${HAL_COMPILER_HAS_AVX512_BF16}>:-mavx512bf16>)
    set_source_files_properties(${CPU_GEMM_DIR}/gemm_micro_bf16.c PROPERTIES
        COMPILE_OPTIONS
        "${CPU_LOOP_FLAGS};-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mfma;-mf16c;${bf16_flags}")
    check_c_compiler_flag("-mamx-tile -mamx-bf16" HAL_COMPILER_HAS_AMX)
    set(amx_flags $<$<BOOL:${HAL_COMPILER_HAS_AMX}>:-mamx-tile;-mamx-bf16>)
    set_source_files_properties(${CPU_GEMM_DIR}/gemm_micro_amx.c PROPERTIES
        COMPILE_OPTIONS
        "${CPU_LOOP_FLAGS};-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mfma;-mf16c;${amx_flags}")
endif()

# Included at the end of the plugin's own list file: the product and its entry join the plugin.
if(CMAKE_CURRENT_SOURCE_DIR STREQUAL CPU_GEMM_DIR)
    target_sources(hal_cpu PRIVATE ${CPU_GEMM_SOURCES} gemm_native.c gemm_epilogue.c)
endif()
