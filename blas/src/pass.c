/* Levels 1 and 2, in the library that takes the place of libblas.so.3: each name jumps to the
 * host's function, whatever its arguments are. The first call of a name looks the function up. A
 * preloaded library does not have them: it leaves these names to the program's BLAS. */
#include "entry.h"
#include "host.h"

#include <stdio.h>

/* One name: where its jump leads, to the look-up at first. */
typedef struct pass_record {
    void *target;
    const char *name;
} pass_record;

/* For functions that the host lacks: returns 0, in place of what they should compute. */
static double missing(void)
{
    return 0;
}

static void tell_missing(const char *name)
{
    fprintf(stderr, "halyard blas: %s: the host's BLAS (%s) lacks it; nothing is computed\n", name,
            *blas_host_path() ? blas_host_path() : "none: set HALYARD_BLAS_HOST");
}

/* Called by the code below, which keeps the registers with arguments of the name's function. */
void *blas_pass_resolve(pass_record *record);
void *blas_pass_resolve(pass_record *record)
{
    double (*const stub)(void) = missing;
    void *target = blas_host_symbol(record->name);
    if (!target) {
        tell_missing(record->name);
        memcpy(&target, &stub, sizeof target);
    }
    __atomic_store_n(&record->target, target, __ATOMIC_RELEASE);
    return target;
}

#if defined __x86_64__
/* The record is in r11. Arguments are in six integer and eight vector registers; al counts the
 * latter for variadic functions. The stack is aligned at `call`, so it is off by 8 here. */
__asm__(".text\n"
        ".type blas_pass_lazy, @function\n"
        "blas_pass_lazy:\n"
        ".cfi_startproc\n"
        "    sub $200, %rsp\n"
        ".cfi_adjust_cfa_offset 200\n"
        "    mov %rdi, 128(%rsp)\n    mov %rsi, 136(%rsp)\n    mov %rdx, 144(%rsp)\n"
        "    mov %rcx, 152(%rsp)\n    mov %r8, 160(%rsp)\n    mov %r9, 168(%rsp)\n"
        "    mov %rax, 176(%rsp)\n"
        "    movups %xmm0, (%rsp)\n    movups %xmm1, 16(%rsp)\n    movups %xmm2, 32(%rsp)\n"
        "    movups %xmm3, 48(%rsp)\n    movups %xmm4, 64(%rsp)\n    movups %xmm5, 80(%rsp)\n"
        "    movups %xmm6, 96(%rsp)\n    movups %xmm7, 112(%rsp)\n"
        "    mov %r11, %rdi\n"
        "    call blas_pass_resolve\n"
        "    mov %rax, %r11\n"
        "    mov 128(%rsp), %rdi\n    mov 136(%rsp), %rsi\n    mov 144(%rsp), %rdx\n"
        "    mov 152(%rsp), %rcx\n    mov 160(%rsp), %r8\n    mov 168(%rsp), %r9\n"
        "    mov 176(%rsp), %rax\n"
        "    movups (%rsp), %xmm0\n    movups 16(%rsp), %xmm1\n    movups 32(%rsp), %xmm2\n"
        "    movups 48(%rsp), %xmm3\n    movups 64(%rsp), %xmm4\n    movups 80(%rsp), %xmm5\n"
        "    movups 96(%rsp), %xmm6\n    movups 112(%rsp), %xmm7\n"
        "    add $200, %rsp\n"
        ".cfi_adjust_cfa_offset -200\n"
        "    jmp *%r11\n"
        ".cfi_endproc\n"
        ".size blas_pass_lazy, . - blas_pass_lazy\n");
#define JUMP(name)                       \
    "    jmp *.Lrecord_" name "(%rip)\n" \
    ".Llazy_" name ":\n"                 \
    "    lea .Lrecord_" name "(%rip), %r11\n    jmp blas_pass_lazy\n"
#elif defined __aarch64__
/* The record is in x17. Arguments are in x0 to x7, x8 and eight vector registers. */
__asm__(".text\n"
        ".type blas_pass_lazy, %function\n"
        "blas_pass_lazy:\n"
        ".cfi_startproc\n"
        "    sub sp, sp, #208\n"
        ".cfi_adjust_cfa_offset 208\n"
        "    stp q0, q1, [sp]\n    stp q2, q3, [sp, #32]\n    stp q4, q5, [sp, #64]\n"
        "    stp q6, q7, [sp, #96]\n    stp x0, x1, [sp, #128]\n    stp x2, x3, [sp, #144]\n"
        "    stp x4, x5, [sp, #160]\n    stp x6, x7, [sp, #176]\n    stp x8, x30, [sp, #192]\n"
        ".cfi_rel_offset 30, 200\n"
        "    mov x0, x17\n"
        "    bl blas_pass_resolve\n"
        "    mov x16, x0\n"
        "    ldp q0, q1, [sp]\n    ldp q2, q3, [sp, #32]\n    ldp q4, q5, [sp, #64]\n"
        "    ldp q6, q7, [sp, #96]\n    ldp x0, x1, [sp, #128]\n    ldp x2, x3, [sp, #144]\n"
        "    ldp x4, x5, [sp, #160]\n    ldp x6, x7, [sp, #176]\n    ldp x8, x30, [sp, #192]\n"
        ".cfi_restore 30\n"
        "    add sp, sp, #208\n"
        ".cfi_adjust_cfa_offset -208\n"
        "    br x16\n"
        ".cfi_endproc\n"
        ".size blas_pass_lazy, . - blas_pass_lazy\n");
#define JUMP(name)                                                                 \
    "    adrp x17, .Lrecord_" name "\n    add x17, x17, :lo12:.Lrecord_" name "\n" \
    "    ldr x16, [x17]\n    br x16\n"                                             \
    ".Llazy_" name ":\n    b blas_pass_lazy\n" /* x17 still has the record */
#endif

/* A function that jumps, and its record. */
#define PASS_NAME(name)                                                                         \
    __asm__(".text\n.globl " name "\n.type " name ", %function\n.balign 16\n" name              \
            ":\n" JUMP(name) ".size " name ", . - " name "\n"                                   \
                             ".pushsection .data.rel.local, \"aw\"\n.balign 8\n"                \
                             ".Lrecord_" name ":\n    .quad .Llazy_" name ", .Lname_" name "\n" \
                             ".popsection\n.pushsection .rodata\n"                              \
                             ".Lname_" name ":\n    .asciz \"" name "\"\n.popsection\n");

/* Names of the Fortran interface, which end with _ or _64_, and of C, without or with _64. */
#define PASS_FORTRAN(name) PASS_NAME(#name "_") PASS_NAME(#name "_64_")
#define PASS_C(name) PASS_NAME("cblas_" #name) PASS_NAME("cblas_" #name "_64")
#define PASS(name) PASS_FORTRAN(name) PASS_C(name)

#define PASS_REAL(s)                                                                   \
    PASS(s##rotg)                                                                      \
    PASS(s##rotmg)                                                                     \
    PASS(s##rot)                                                                       \
    PASS(s##rotm)                                                                      \
    PASS(s##dot)                                                                       \
    PASS(s##nrm2) PASS(s##asum) PASS(s##ger) PASS(s##symv) PASS(s##sbmv) PASS(s##spmv) \
        PASS(s##syr) PASS(s##spr) PASS(s##syr2) PASS(s##spr2)
#define PASS_COMPLEX(c)                                                                \
    PASS(c##rotg)                                                                      \
    PASS_FORTRAN(c##dotu)                                                              \
    PASS_FORTRAN(c##dotc)                                                              \
    PASS_C(c##dotu_sub)                                                                \
    PASS_C(c##dotc_sub)                                                                \
    PASS(c##geru) PASS(c##gerc) PASS(c##hemv) PASS(c##hbmv) PASS(c##hpmv) PASS(c##her) \
        PASS(c##hpr) PASS(c##her2) PASS(c##hpr2)
#define PASS_ALL(t)                                                                        \
    PASS(t##swap)                                                                          \
    PASS(t##scal)                                                                          \
    PASS(t##copy)                                                                          \
    PASS(t##axpy)                                                                          \
    PASS(t##axpby)                                                                         \
    PASS(i##t##amax) PASS(t##gemv) PASS(t##gbmv) PASS(t##trmv) PASS(t##tbmv) PASS(t##tpmv) \
        PASS(t##trsv) PASS(t##tbsv) PASS(t##tpsv)

PASS_REAL(s)
PASS_REAL(d)
PASS_COMPLEX(c)
PASS_COMPLEX(z)
PASS_ALL(s)
PASS_ALL(d)
PASS_ALL(c)
PASS_ALL(z)
PASS(sdsdot)
PASS(dsdot)
PASS(csscal)
PASS(zdscal)
PASS(scnrm2)
PASS(dznrm2)
PASS(scasum)
PASS(dzasum)
PASS(csrot)
PASS(zdrot)
PASS(scabs1)
PASS(dcabs1)
PASS_FORTRAN(lsame)
PASS_FORTRAN(xerbla)
PASS_C(xerbla)
