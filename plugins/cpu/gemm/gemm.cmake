# Sources of the native matrix product, with the flags of each instruction set; CPU_LOOP_FLAGS: lanes/loop_flags.cmake.
set(CPU_GEMM_DIR ${CMAKE_CURRENT_LIST_DIR})
set(CPU_GEMM_SOURCES
    ${CPU_GEMM_DIR}/gemm.c ${CPU_GEMM_DIR}/plan.c ${CPU_GEMM_DIR}/pairs.c
    ${CPU_GEMM_DIR}/levels.c ${CPU_GEMM_DIR}/single.c ${CPU_GEMM_DIR}/skinny.c
    ${CPU_GEMM_DIR}/groups.c
    ${CPU_GEMM_DIR}/micro_base.c ${CPU_GEMM_DIR}/product.c ${CPU_GEMM_DIR}/epilogue.c)
set_source_files_properties(${CPU_GEMM_DIR}/micro_base.c PROPERTIES
    COMPILE_OPTIONS "${CPU_LOOP_FLAGS}")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
    list(APPEND CPU_GEMM_SOURCES
        ${CPU_GEMM_DIR}/micro_avx2.c ${CPU_GEMM_DIR}/micro_avx512.c
        ${CPU_GEMM_DIR}/micro_bf16.c ${CPU_GEMM_DIR}/micro_amx.c ${CPU_GEMM_DIR}/micro_vnni.c)
    set_source_files_properties(${CPU_GEMM_DIR}/micro_vnni.c PROPERTIES
        COMPILE_OPTIONS
        "${CPU_LOOP_FLAGS};-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512vnni")
    set_source_files_properties(${CPU_GEMM_DIR}/micro_avx2.c PROPERTIES
        COMPILE_OPTIONS "${CPU_LOOP_FLAGS};-mavx2;-mfma;-mf16c")
    set_source_files_properties(${CPU_GEMM_DIR}/micro_avx512.c PROPERTIES
        COMPILE_OPTIONS
        "${CPU_LOOP_FLAGS};-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mfma;-mf16c")
    include(CheckCCompilerFlag)
    check_c_compiler_flag(-mavx512bf16 HAL_COMPILER_HAS_AVX512_BF16)
    set(bf16_flags $<$<BOOL:${HAL_COMPILER_HAS_AVX512_BF16}>:-mavx512bf16>)
    set_source_files_properties(${CPU_GEMM_DIR}/micro_bf16.c PROPERTIES
        COMPILE_OPTIONS
        "${CPU_LOOP_FLAGS};-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mfma;-mf16c;${bf16_flags}")
    check_c_compiler_flag("-mamx-tile -mamx-bf16" HAL_COMPILER_HAS_AMX)
    set(amx_flags $<$<BOOL:${HAL_COMPILER_HAS_AMX}>:-mamx-tile;-mamx-bf16>)
    set_source_files_properties(${CPU_GEMM_DIR}/micro_amx.c PROPERTIES
        COMPILE_OPTIONS
        "${CPU_LOOP_FLAGS};-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mfma;-mf16c;${amx_flags}")
endif()
